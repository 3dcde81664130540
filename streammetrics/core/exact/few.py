"""Exact sums of few rows in Python's integers: folds have more to set up than to add.

``math.fsum`` gives the float64 nearest to the sum of floats, and what is left of them once that is
taken out, until there is nothing: a few floats, whose sum is exactly the sum. Products have no such
help, so they are of integers: a float64 is one of at most 53 bits times a power of two.
"""

from __future__ import annotations

import math
from operator import lshift, mul
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core.columns.batch import extent
from streammetrics.core.errors import InvalidBatchError
from streammetrics.core.exact.folds import HIGH, LOW

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streammetrics.core.types import Array

MANY = 1 << 15  # rows of few groups from which blocks in the cache are quicker
_HEAVIEST = 2.0**30
_SHORTEST = 16  # bits of a fold


def few_sum(values: Array, least: float = 0.0) -> tuple[int, int]:
    """The sum of values (n,), an integer and the exponent of its unit; raises unless finite.

    None of them but 0 is smaller than `least`: they are multiples of its last bit, and so is what
    is left of their sum, of which a part no larger is the whole. Not to look for more saves a pass.

    >>> few_sum(np.array([1e16, 1.25, -1e16]))
    (5, -2)
    """
    floats, total, unit = values.tolist(), 0, 1
    try:
        part = math.fsum(floats)
        while part:
            above, below = part.as_integer_ratio()  # a power of two
            if below > unit:
                total, unit = total * (below // unit), below
            total += above * (unit // below)
            if -least <= part <= least:
                break
            floats.append(-part)
            part = math.fsum(floats)
    except (OverflowError, ValueError):  # of partial sums beyond float64, of infinities and nan
        return DigitColumn.of(values).total()
    return total, 1 - unit.bit_length()


def few_groups(
    index: NDArray[np.intp], size: int, values: Array, weight: Array | None
) -> tuple[list[int], int] | None:
    """The sums of few groups, integers and the exponent of their unit.

    Values are split in folds (see `core.exact.folds`) so short that float64 adds them up exactly,
    times weights that are whole. ``None`` where weights are not, or exponents are out of the
    ordinary.
    """
    values = np.asarray(values, np.float64)
    low, high = extent(values)
    largest, rows = max(-low, high), float(values.size)
    if weight is not None:
        least, most = extent(weight)
        if not 0 <= least <= most < _HEAVIEST or (np.rint(weight) != weight).any():
            return None
        rows = float(weight.sum())
    bits = min(50, 53 - int(rows).bit_length())
    if bits < _SHORTEST:
        return None
    folds: list[tuple[Array, int]] = []
    e = math.frexp(largest)[1]
    while True:
        if not (LOW <= e <= HIGH and largest < math.inf):
            return None
        unit = e - bits
        sigma = math.ldexp(1.5, unit + 52)
        head = values + sigma
        head -= sigma
        held = np.bincount(index, head if weight is None else head * weight, size)
        folds.append(((held * 2.0**-unit).astype(np.int64), unit))
        values = values - head
        if not np.count_nonzero(values):
            break
        e = unit - 1
    base = folds[-1][1]
    sums = [0] * size
    for held, unit in folds:
        more, shift = held.tolist(), unit - base
        sums = [a + (b << shift) for a, b in zip(sums, more, strict=True)]
    return sums, base


class DigitColumn(NamedTuple):
    """The value of each row, ``integers * 2**(exponents - unit)``."""

    integers: list[int]
    exponents: NDArray[np.int32]
    unit: int

    @classmethod
    def of(cls, values: Array) -> DigitColumn:
        """The same values (n,) as float64; raises where one is not finite."""
        values = np.asarray(values, np.float64)
        low, high = extent(values)
        if not (math.isfinite(low) and math.isfinite(high)):
            raise InvalidBatchError("values to be summed must be finite")
        fractions, exponents = np.frexp(values)
        return cls((fractions * 2.0**53).astype(np.int64).tolist(), exponents, 53)

    def times(self, other: DigitColumn) -> DigitColumn:
        """The products of each row's values."""
        return DigitColumn(
            list(map(mul, self.integers, other.integers)),
            self.exponents + other.exponents,
            self.unit + other.unit,
        )

    def total(self) -> tuple[int, int]:
        """The sum, an integer and the exponent of its unit."""
        low = int(extent(self.exponents)[0])
        shifts = (self.exponents - low).tolist()
        return sum(map(lshift, self.integers, shifts)), low - self.unit
