"""Amounts read from the arrays of states, which may come from anyone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.errors import StateFormatError
from streammetrics.core.fields.amounts import Amount, signs_of
from streammetrics.core.state.arrays import part

if TYPE_CHECKING:
    from streammetrics.core.types import Array, Arrays


def read_amount(shape: tuple[int, ...], arrays: Arrays, *, squared: bool = False) -> Amount:
    """Return the amounts of `arrays`: counts if they are whole and without squares.

    With `squared`, those of rows that do not all weigh one have squares.
    """
    own, squares = split_squares(arrays)
    exact = ExactSum.from_arrays(shape, own)
    if not squares:
        if squared and (exact.exponent < 0):
            raise StateFormatError("weights that are no integers have no squares")
        return Amount.of_exact(exact)
    return _with_squares(exact, ExactSum.from_arrays(shape, squares))


def split_squares(arrays: Arrays) -> tuple[Arrays, dict[str, Array]]:
    """Return arrays of weights, and those of their squares."""
    squares = part(arrays, "squares")
    if squares:
        arrays = {key: array for key, array in arrays.items() if not key.startswith("squares/")}
    return arrays, squares


def _with_squares(amount: ExactSum, squares: ExactSum) -> Amount:
    """Return the amounts that a state tells, with the squares of their weights."""
    if (signs_of(squares) != np.sign(signs_of(amount))).any():
        raise StateFormatError("there are squares of weights without weights, or the reverse")
    if squares == amount and amount.exponent >= 0:
        raise StateFormatError("squared weights are stored although all weights are 1")
    return Amount.of_exact(amount, squares)
