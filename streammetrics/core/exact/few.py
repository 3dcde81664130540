"""Exact sums of few rows, for which scratch buffers and totals would take longer than adding.

Sums are those of folds (see `core.exact.folds`), products of columns dot products of folds scaled
to whole numbers. Still fewer rows are added up by ``math.fsum``, which gives the float64 nearest to
the exact sum: taken out of the values and called again, it gives that of what is left, until
nothing is. Products with weights are those of Python's integers, as a float64 is an integer
of at most 53 bits times a power of two.
"""

from __future__ import annotations

import functools
import math
from math import frexp, ldexp
from operator import lshift, mul
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.columns.batch import extent
from streammetrics.core.errors import InvalidBatchError
from streammetrics.core.exact.folds import HIGH, LOW, ONES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from streammetrics.core.types import Array, Floats, Places

MANY = 1 << 15  # rows from which blocks in the cache are quicker, also for few groups
_HIGHEST = 2.0**1000  # sums of few that are smaller cannot overflow
_HEAVIEST = 2.0**30  # weights from here on leave too few bits to a fold
_SHORTEST = 16  # bits of a fold: with fewer there would be too many of them
_MOST_FOLDS = 5  # of a column: if it needs more, integers are quicker
_STEPS = [np.array(2.0 ** (bits + 1)) for bits in range(27)]  # quicker than floats


def few_sums(
    columns: Sequence[Floats], leasts: Sequence[float], most: float
) -> list[tuple[int, int]]:
    """Return the sum of each column (n,), an integer and the exponent of its unit.

    All are split into folds of one unit. The first of the `extremes` of each is its least, 0 where
    that is not known; nothing is larger than `most`.

    >>> (total, unit), = few_sums([np.array([1e16, 1.25, -1e16])], [0.0], 1e16)
    >>> total * 2.0**unit
    1.25
    """
    if not most < _HIGHEST:
        return [DigitColumn.of(column).total() for column in columns]
    n = columns[0].size
    if n <= tuning.FLOAT_ROWS:
        return [_sum(column.tolist(), low) for column, low in zip(columns, leasts, strict=True)]
    least = min(leasts)
    bits = min(50, 53 - (n - 1).bit_length())
    step = bits + 1
    lowest = frexp(least)[1] - 53 if least else -1074  # all are multiples of 2**lowest
    first = unit = frexp(most)[1] - bits
    ones, rest, parts = ONES[:n], np.concatenate(columns).reshape(-1, n), []
    while lowest < unit:
        sigma = _sigma(unit)
        head = rest + sigma - sigma
        parts.append(head.dot(ones).tolist())
        rest = rest - head
        unit -= step
        if not least and not np.count_nonzero(rest):
            break
    parts.append(rest.dot(ones).tolist())
    totals = []
    for row in zip(*parts, strict=True):
        total, shift = 0, -first
        for part in row:
            total = (total << step) + int(ldexp(part, shift))
            shift += step
        totals.append((total, unit))
    return totals


def _sum(floats: list[float], least: float) -> tuple[int, int]:
    """Return the sum of a few floats, as `few_sums` does.

    If the next part is no larger than `least`, of whose last bit all are multiples, it is all that
    is left, and no further pass has to show that.
    """
    total, unit = 0, 1
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
    return total, 1 - unit.bit_length()


@functools.cache  # there are 2099 at most
def _sigma(unit: int) -> Floats:
    """Return what rounds to multiples of ``2**unit``, quicker as an array than as a float."""
    return np.array(ldexp(1.5, unit + 52))


def few_groups(
    index: Places, size: int, values: Array, weight: Array | None
) -> tuple[list[int], int] | None:
    """Return the sums of few groups, integers and the exponent of their unit.

    Values are split into folds (see `core.exact.folds`) so short that float64 adds them up
    exactly, also times weights, which must be whole. ``None`` if these are not, or if exponents
    are out of the ordinary.
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
    e = frexp(largest)[1]
    while True:
        if not (LOW <= e <= HIGH and largest < math.inf):
            return None
        unit = e - bits
        sigma = _sigma(unit)
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


def few_moments(
    columns: Sequence[Array],
) -> tuple[list[tuple[int, int]], dict[tuple[int, int], tuple[int, int]]] | None:
    """Return the sums of columns (n,), and of the products of each pair ``(i, j)``, ``i <= j``.

    Each is an integer and the exponent of its unit. ``None`` if exponents are out of the ordinary,
    or too far from each other.
    """
    rows = columns[0].size
    bits = (53 - (rows - 1).bit_length()) // 2
    table = np.empty((1 + _MOST_FOLDS * len(columns), rows))
    table[0] = 1.0
    held, end = [], 1
    for column in columns:
        start = end
        found = _whole_folds(np.asarray(column, np.float64), bits, table[start:])
        if found is None:
            return None
        end += found[0]
        held.append((slice(start, end), found[1]))
    table = table[:end]
    dots = np.dot(table, table.T).astype(np.int64).tolist()
    step = bits + 1
    first = [(_joined(dots[0][folds], step), unit) for folds, unit in held]
    second = {}
    for i, (folds, unit) in enumerate(held):
        for j, (others, other) in enumerate(held[i:], i):
            each = [_joined(row[others], step) for row in dots[folds]]
            second[i, j] = _joined(each, step), unit + other
    return first, second


def _whole_folds(column: Floats, bits: int, table: Floats) -> tuple[int, int] | None:
    """Write the folds of a column as whole numbers, none larger than ``2**bits``.

    Returns how many there are, and the exponent of the unit of the last. The unit of each is
    ``2**(bits + 1)`` times that of the next.
    """
    low, high = extent(column)
    e = frexp(max(-low, high))[1]
    if not (LOW <= e <= HIGH and high - low < math.inf):
        return None
    rest = column * 2.0 ** (bits - e)
    if e > bits and np.count_nonzero(rest) < np.count_nonzero(column):  # underflow
        return None
    for place in range(_MOST_FOLDS):
        rest = np.subtract(rest, np.rint(rest, out=table[place]), out=rest)
        if not np.count_nonzero(rest):
            return place + 1, e - bits - place * (bits + 1)
        np.multiply(rest, _STEPS[bits], out=rest)
    return None


def _joined(digits: Sequence[int], bits: int) -> int:
    """Return the integer of digits in base ``2**bits``, the highest first."""
    total = 0
    for digit in digits:
        total = (total << bits) + digit
    return total


class DigitColumn(NamedTuple):
    """A column of exact values: that of each row is ``integer * 2**(exponent - unit)``."""

    integers: list[int]
    exponents: NDArray[np.int32]
    unit: int

    @classmethod
    def of(cls, values: Array) -> DigitColumn:
        """Return the values (n,), each of them a float64; raises unless all are finite."""
        values = np.asarray(values, np.float64)
        low, high = extent(values)
        if not (math.isfinite(low) and math.isfinite(high)):
            raise InvalidBatchError("values to be summed must be finite")
        fractions, exponents = np.frexp(values)
        return cls((fractions * 2.0**53).astype(np.int64).tolist(), exponents, 53)

    def times(self, other: DigitColumn) -> DigitColumn:
        """Return the products of each row's values."""
        return DigitColumn(
            list(map(mul, self.integers, other.integers)),
            self.exponents + other.exponents,
            self.unit + other.unit,
        )

    def total(self) -> tuple[int, int]:
        """Return the sum, an integer and the exponent of its unit."""
        low = int(extent(self.exponents)[0])
        shifts = (self.exponents - low).tolist()
        return sum(map(lshift, self.integers, shifts)), low - self.unit
