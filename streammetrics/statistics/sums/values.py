"""Sorted histograms of values, or of the absolute errors of a regression, and their quantiles."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.columns.long import nearest
from streammetrics.core.constraints import Bins
from streammetrics.core.fields.weighed import WeighedHistograms
from streammetrics.core.statistic import Statistic
from streammetrics.statistics.sums.targets import values_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.arithmetic.histogram import DyadicHistogram
    from streammetrics.core.columns.schema import Schema
    from streammetrics.core.types import Array, Floats


QuantileMethod: TypeAlias = Literal["linear", "averaged_inverted_cdf"]

_ROOM = 2.0**-40  # relative: more than sums over cells are rounded by
_LARGEST = float(np.finfo(np.float64).max)


class ValueHistogram(Statistic):
    """One `DyadicHistogram` of at most `max_bins` cells for each output.

    Of values, which may be infinite, of targets, or of absolute errors ``|y_true - y_pred|``.
    """

    in_kernels = True

    of: Literal["values", "targets", "errors"]
    max_bins: Bins = 1 << 20
    nan_policy: Literal["raise", "omit"] = "raise"

    weighed = WeighedHistograms(lambda of: of.max_bins, 1, "outputs", inline=True)

    @property
    def schema(self) -> Schema:
        """Values, or a target and a prediction."""
        return values_schema(self.of, self.nan_policy)

    def update(self, *columns: Floats, weight: Floats | None) -> None:
        """Count the values of the rows."""
        values = np.abs(columns[0] - columns[1]) if self.of == "errors" else nearest(columns[0])
        values = values.reshape(len(values), -1)
        rows = [(np.ascontiguousarray(column), None, weight, None) for column in values.T]
        self.weighed = type(self).weighed.added(self.weighed, rows, self)

    def of_rows(self, n: int) -> None:
        """Forget squares of weights where amounts exceed n: such rows do not weigh one each."""
        totals = (total for histogram in self.histograms for total in histogram.totals())
        ones = all(isinstance(total, int) and total <= n for total in totals)
        self.weighed = self.weighed.of_ones(ones)

    @property
    def histograms(self) -> tuple[DyadicHistogram, ...]:
        """One for each output; none without rows."""
        return self.weighed.columns

    def quantiles(self, q: float, method: QuantileMethod) -> list[EnclosedValue]:
        """Return the quantile of each output, none without rows."""
        return [quantile(histogram, q, method) for histogram in self.histograms]


# Why a quantile is undefined.
LIGHT = "the weights add up to less than 1 (method='averaged_inverted_cdf' takes them)"


class EnclosedValue(NamedTuple):
    """A value and what it certainly lies between; all three are equal where it is exact."""

    value: float
    low: float
    high: float


class _Rank(NamedTuple):
    """A mass counted from below; `left` is for what ends there, otherwise for what begins."""

    mass: Fraction
    left: bool = False


def quantile(histogram: DyadicHistogram, q: float, method: QuantileMethod) -> EnclosedValue:
    """Return the quantile of level `q`, read as the decimal it prints as, of a total mass n.

    ``"linear"``: order statistics are counted from 0 and a weight is that many equal rows. With
    ``h = q (n - 1)``, interpolate between those of the ranks ``floor(h)`` and ``floor(h) + 1``;
    undefined for n < 1. This is NumPy's default, and ``wtd.quantile`` of Harrell's Hmisc.
    ``"averaged_inverted_cdf"``: the value at which the cumulative share passes `q`, or the mean of
    the two neighbours where it is met exactly. It does not depend on the scale of the weights.
    """
    level = Fraction(str(q))
    unit = Fraction(2) ** histogram.unit
    total = _mass(histogram)
    if method == "linear":
        if total < 1:
            return EnclosedValue(math.nan, math.nan, math.nan)
        h = level * (total - 1)
        first = Fraction(math.floor(h))
        ranks = (_Rank(first + 1, left=True), _Rank(min(first + 2, total), left=True))
        share = h - first
    else:
        ranks, share = (_Rank(level * total, left=True), _Rank(level * total)), Fraction(1, 2)
    (low_a, high_a), (low_b, high_b) = _located(
        histogram, [rank._replace(mass=rank.mass / unit) for rank in ranks]
    )
    low, high = _between(low_a, low_b, share), _between(high_a, high_b, share)
    if not low < high:
        return EnclosedValue(low, low, high)
    # The outermost cells reach to infinity: their middle is taken of what is finite.
    middle = _between(max(low, -_LARGEST), min(high, _LARGEST), Fraction(1, 2))
    return EnclosedValue(middle, low, high)


def ranked(histogram: DyadicHistogram, rank: int) -> tuple[float, float]:
    """Return the edges of the cell that holds the row of a rank, counted from 1, of rows of 1."""
    (edges,) = _located(histogram, [_Rank(Fraction(rank), left=True)])
    return edges


def cells_at(histogram: DyadicHistogram, levels: Sequence[Fraction]) -> list[tuple[float, float]]:
    """Return the edges of the cells in which each share of the total mass is reached, ascending."""
    total = _mass(histogram) / Fraction(2) ** histogram.unit
    return _located(histogram, [_Rank(level * total, left=True) for level in levels])


def deviation(
    histogram: DyadicHistogram,
    around: tuple[Fraction | float, Fraction | float],
    up: Fraction,
    down: Fraction,
) -> tuple[Fraction | float, Fraction | float, Fraction | float]:
    """Return the sum of up (y - c) above c and down (c - y) below, and bounds: low, value, high.

    `around` is what c lies between: one number, or where the sum is the least that there is. Exact,
    and all three the same, where cells hold single values and c is one number.
    """
    low, high = Fraction(around[0]), Fraction(around[1])
    if histogram.exact and low == high:
        total = Fraction(0)
        for block in histogram.cells():
            for side, slope in ((block.low > float(low), up), (block.low < float(low), -down)):
                values, mass = block.low[side], block.counts[0][side].astype(np.float64)
                weight = ExactSum.of(mass).fraction()
                total += slope * (ExactSum.of(values, mass).fraction() - low * weight)
        total *= Fraction(2) ** histogram.unit
        return total, total, total
    ends = np.zeros(3)
    slopes, at = (float(up), float(down)), (float(low), float((low + high) / 2), float(high))
    for block in histogram.cells():
        mass = block.counts[0].astype(np.float64)
        near = np.maximum(slopes[0] * (block.low - at[2]), slopes[1] * (at[0] - block.high))
        middle = np.clip(block.low / 2 + block.high / 2, -_LARGEST, _LARGEST)
        ends[0] += (mass * np.maximum(near, 0.0)).sum()
        ends[1] += (mass * _tilted(middle - at[1], slopes)).sum()
        far = np.maximum(*(_tilted(side - at[1], slopes) for side in (block.low, block.high)))
        ends[2] += (mass * far).sum()
    scaled = np.ldexp(ends, histogram.unit)
    least, value, most = float(scaled[0] * (1 - _ROOM)), *map(float, scaled[1:])
    return least, min(max(value, least), most), most * (1 + _ROOM)


def _tilted(off: Floats, slopes: tuple[float, float]) -> Floats:
    return np.maximum(slopes[0] * off, -slopes[1] * off)


def _between(a: float, b: float, share: Fraction) -> float:
    """Return a (1 - share) + b share, rounded once."""
    if a == b or share == 0:
        return a
    if math.isinf(a) or math.isinf(b):
        return a + b
    return float(Fraction(a) * (1 - share) + Fraction(b) * share)


def _mass(histogram: DyadicHistogram) -> Fraction:
    totals = histogram.totals()
    if all(isinstance(total, int) for total in totals):
        return Fraction(sum(totals))
    told = sum((_exact(block.counts) for block in histogram.cells()), Fraction(0))
    return told * Fraction(2) ** histogram.unit


def _exact(mass: Array) -> Fraction:
    if mass.dtype.kind == "i":
        return Fraction(int(mass.sum()))
    return ExactSum.of(mass.ravel()).fraction()


def _located(histogram: DyadicHistogram, ranks: Sequence[_Rank]) -> list[tuple[float, float]]:
    """Return the edges of the cells that hold the ranks; of the last cell for those beyond."""
    found: list[tuple[float, float]] = []
    passed = Fraction(0)
    edges = (math.nan, math.nan)
    for block in histogram.cells():
        mass = block.counts
        total = _exact(mass)
        for rank in ranks[len(found) :]:
            inside = rank.mass - passed
            if inside > total or (inside == total and not rank.left):
                break
            place = _place(mass, inside, left=rank.left)
            found.append((float(block.low[place]), float(block.high[place])))
        if len(found) == len(ranks):
            return found
        edges = float(block.low[-1]), float(block.high[-1])
        passed += total
    return found + [edges] * (len(ranks) - len(found))


def _place(mass: Array, inside: Fraction, *, left: bool) -> int:
    """Return the first cell whose cumulative mass exceeds `inside`, or reaches it if `left`.

    The mass (classes, m) of a cell is that of all its classes.
    """
    if mass.dtype.kind == "i":
        sums = np.cumsum(mass.sum(axis=0))
        if left:
            return int(np.searchsorted(sums, math.ceil(inside), "left"))
        return int(np.searchsorted(sums, math.floor(inside), "right"))
    # Cumulative sums of floats round: bisect over exact ones.
    bisect = bisect_left if left else bisect_right
    cells = range(mass.shape[1])
    return bisect(cells, inside, key=lambda last: _exact(mass[:, : last + 1]))
