"""Amounts read from the arrays of states, which may come from anyone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum, read_digits
from streammetrics.core.errors import StateFormatError
from streammetrics.core.fields.amounts import Amount, signs_of
from streammetrics.core.state.arrays import part

if TYPE_CHECKING:
    from streammetrics.core.types import Array, Arrays


def read_amount(shape: tuple[int, ...], arrays: Arrays) -> Amount:
    """Return the amounts of `arrays`: counts if they are whole and without squares."""
    own, squares = split_squares(arrays)
    exact = ExactSum.from_arrays(shape, own)
    if not squares:
        return Amount.of_exact(exact)
    return _with_squares(exact, ExactSum.from_arrays(shape, squares))


def each_amount(shape: tuple[int, ...], stacks: Arrays, n: int) -> list[Amount]:
    """Return the amounts of each of `n` states, whose arrays are ``(n, ...)``, all checked."""
    own, squares = split_squares(stacks)
    if not squares:
        digits, units = read_digits(shape, own, n)
        if shape and digits.shape[2] == 1 and not any(units):  # digits are the counts
            counts = digits.reshape(n, *shape)
            most = digits.max(axis=(1, 2), initial=0).tolist()
            return list(map(Amount.of_counts, counts, most))
    sums = ExactSum.each_of_arrays(shape, own, n)
    if not squares:
        return [Amount.of_exact(total) for total in sums]
    every = zip(sums, ExactSum.each_of_arrays(shape, squares, n), strict=True)
    return [_with_squares(total, square) for total, square in every]


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
        raise StateFormatError("there are squares of weights of which all may be one")
    return Amount.of_exact(amount, squares)
