"""Exact sums times a float64: what they would be if every row weighed that many times as much."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.errors import InvalidBatchError
from streammetrics.core.exact.digits import HIGHEST, LOWEST, Digits, canonical
from streammetrics.core.exact.sums import ExactSum

if TYPE_CHECKING:
    from collections.abc import Iterator

_BITS = 53  # of a float64
_PIECE = 16  # bits of the factor at a time: a digit times a piece leaves room to add up
_LOW = (1 << _PIECE) - 1


def times(sums: ExactSum, factor: float) -> ExactSum:
    """Return each sum times a finite `factor`, exactly.

    Raises `InvalidBatchError` if a product is too large, or too small, for a state to hold.

    >>> import numpy as np
    >>> times(ExactSum.of(np.array([[0.1, 3.0]])), 0.1).to_float()
    array([0.01, 0.3 ])
    """
    fraction, exponent = math.frexp(factor)
    integer, unit = int(math.ldexp(fraction, _BITS)), exponent - _BITS
    if sums.shape == ():  # Python's integers are quicker for one
        value, below = sums.integers()
        product = ExactSum.single(value * integer, below + unit)
    else:
        # Digits start at multiples of 32 bits: the rest of the exponent goes into the integer.
        position, shift = divmod(unit, 32)
        digits = _product(sums.digits, integer << shift)
        product = ExactSum(sums.shape, *canonical(digits, sums.exponent + 32 * position))
    low, width = product.exponent, product.digits.shape[1]
    if low < LOWEST or low + 32 * width > HIGHEST:
        raise InvalidBatchError(f"sums times {factor!r} are beyond what a state holds")
    return product


def _product(digits: Digits, integer: int) -> Digits:
    """Return digits ``(m, D)`` times an integer, not carried yet."""
    rows, width = digits.shape
    table = np.zeros((rows, width + integer.bit_length() // 32 + 2), np.int64)
    sign = -1 if integer < 0 else 1
    for offset, piece in _pieces(abs(integer)):
        position, odd = divmod(offset, 2)
        part = digits * (sign * piece)  # below 2**48 in magnitude
        if odd:
            table[:, position + 1 : position + 1 + width] += part >> _PIECE
            part = (part & _LOW) << _PIECE
        table[:, position : position + width] += part
    return table


def _pieces(integer: int) -> Iterator[tuple[int, int]]:
    """Yield the pieces of an integer that are not 0, lowest first, each with its place."""
    for place in range(-(-integer.bit_length() // _PIECE)):
        if piece := integer >> (_PIECE * place) & _LOW:
            yield place, piece
