"""Histograms of values and errors, and their extremes."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.columns.long import nearest
from streammetrics.core.constraints import Bins
from streammetrics.core.errors import StateFormatError
from streammetrics.core.fields.histograms import GroupedHistograms, WeighedHistograms
from streammetrics.core.fields.sums import Extreme
from streammetrics.core.statistic import Statistic
from streammetrics.statistics.sums.losses import values_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from streammetrics.core.arithmetic.cells import Mass
    from streammetrics.core.arithmetic.histogram import SortedHistogram
    from streammetrics.core.columns.schema import Schema
    from streammetrics.core.counting import GroupCodes
    from streammetrics.core.types import Array, Floats, Ints, Places


class Extremes(Statistic):
    """The extremes for each output; weights do not matter, as rows of weight 0 are left out.

    Of values, which may be infinite, of targets, or of errors ``y_true - y_pred``. -0.0 counts as
    0.0.
    Rounding keeps the order, so the extremes of rounded numbers are the rounded extremes.
    """

    takes_counts = True

    of: Literal["values", "targets", "errors"]
    nan_policy: Literal["raise", "omit"] = "raise"

    low = Extreme()
    high = Extreme(largest=True)

    @property
    def schema(self) -> Schema:
        """Values, or a target and a prediction."""
        return values_schema(self.of, self.nan_policy, long=True)

    def lift(
        self, columns: tuple[Any, ...], weight: Array | None, group: GroupCodes | None = None
    ) -> dict[str, Any]:
        """Return the extremes of rows; of groups the numbers, whose extremes the fields take."""
        values = self._values(*columns)
        if group is not None:
            values = values.reshape(group.codes.size, -1) + 0.0
            return {"low": values, "high": values}
        if values.ndim == 1 or values.shape[1] == 1:  # a reduction of one column is vectorised
            flat = values.reshape(-1)
            low, high = np.array([flat.min()]), np.array([flat.max()])
        else:
            low, high = values.min(axis=0), values.max(axis=0)
        return {"low": low + 0.0, "high": high + 0.0}

    def _values(self, *columns: Floats) -> Floats:
        return columns[0] - columns[1] if self.of == "errors" else nearest(columns[0])

    def check_fields(self) -> None:
        """Check that nothing is smaller than the smallest, and that targets are finite."""
        if self.low.shape != self.high.shape or not (self.low <= self.high).all():
            raise StateFormatError("the extremes are not those of any rows")
        if self.of == "targets" and np.isinf([self.low, self.high]).any():
            raise StateFormatError("the extremes of the targets are not finite")


def only(extremes: Floats) -> float:
    """Return the extreme of one column, ``nan`` without rows; of all groups an array of them."""
    if extremes.ndim > 1:
        return extremes[:, 0]  # type: ignore[return-value]  # of groups
    return float(extremes[0]) if extremes.size else math.nan


QuantileMethod: TypeAlias = Literal["linear", "averaged_inverted_cdf"]

_NONE = Fraction(0)
_LARGEST = float(np.finfo(np.float64).max)


class ValueHistogram(Statistic):
    """One `SortedHistogram` of at most `max_bins` cells for each output.

    Of values, which may be infinite, of targets, or of absolute errors ``|y_true - y_pred|``.
    """

    in_kernels = takes_counts = True

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
        values = self._values(columns).reshape(len(columns[0]), -1)
        rows = [(np.ascontiguousarray(column), None, weight, None) for column in values.T]
        self.weighed = type(self).weighed.added(self.weighed, rows, self)

    def by_sorted_group(
        self, n: int, pieces: Iterable[tuple[Places, Any, Array | None]]
    ) -> dict[str, object] | None:
        """Return the histograms of rows of weight one that have one output."""
        found = GroupedHistograms.of_rows(
            self.max_bins,
            n,
            ((starts, (None, self._values(columns)), w) for starts, columns, w in pieces),
        )
        return None if found is None else {"weighed": found}

    def _values(self, columns: Sequence[Floats]) -> Floats:
        """Return the values, (n,) where there is one output."""
        values = np.abs(columns[0] - columns[1]) if self.of == "errors" else nearest(columns[0])
        return values[:, 0] if values.shape[1:] == (1,) else values

    @property
    def histograms(self) -> tuple[SortedHistogram, ...]:
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


def quantile(histogram: SortedHistogram, q: float, method: QuantileMethod) -> EnclosedValue:
    """Return the quantile of level `q`, read as the decimal it prints as, of a total mass n.

    ``"linear"``: order statistics are counted from 0 and a weight is that many equal rows. With
    ``h = q (n - 1)``, interpolate between those of the ranks ``floor(h)`` and ``floor(h) + 1``;
    undefined for n < 1. This is NumPy's default, and ``wtd.quantile`` of Harrell's Hmisc.
    ``"averaged_inverted_cdf"``: the value at which the cumulative share passes `q`, or the mean of
    the two neighbours where it is met exactly. It does not depend on the scale of the weights.
    """
    level = Fraction(str(q))
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
    (low_a, high_a), (low_b, high_b) = _located(histogram, ranks)
    low, high = _between(low_a, low_b, share), _between(high_a, high_b, share)
    if not low < high:
        return EnclosedValue(low, low, high)
    # The outermost cells reach to infinity: their middle is taken of what is finite.
    middle = _between(max(low, -_LARGEST), min(high, _LARGEST), Fraction(1, 2))
    return EnclosedValue(middle, low, high)


def ranked(histogram: SortedHistogram, rank: int) -> tuple[float, float]:
    """Return the edges of the cell that holds the row of a rank, counted from 1, of rows of 1."""
    (edges,) = _located(histogram, [_Rank(Fraction(rank), left=True)])
    return edges


def cells_at(histogram: SortedHistogram, levels: Sequence[Fraction]) -> list[tuple[float, float]]:
    """Return the edges of the cells in which each share of the total mass is reached, ascending."""
    total = _mass(histogram)
    return _located(histogram, [_Rank(level * total, left=True) for level in levels])


def deviation(
    histogram: SortedHistogram,
    around: tuple[Fraction | float, Fraction | float],
    up: Fraction,
    down: Fraction,
) -> tuple[Fraction, Fraction, Fraction]:
    """Return the sum of up (y - c) above c and down (c - y) below, and bounds: low, value, high.

    `around` is what c lies between: one number, or where the sum is the least that there is. Exact,
    and all three the same, where cells hold single values and c is one number. Values are finite,
    so that the outermost cells end at the largest floats.
    """
    first, last = (_finite(side) for side in around)
    middle = (first + last) / 2
    exact = histogram.exact and first == last
    least = value = most = Fraction(0)
    for block, mass in zip(histogram.cells(), histogram.masses(), strict=True):
        low, high = (np.clip(side, -_LARGEST, _LARGEST) for side in (block.low, block.high))
        least += _apart(low, mass, last, up, _NONE) + _apart(high, mass, first, _NONE, down)
        if not exact:
            centre = np.where(block.single, low, low / 2 + high / 2)
            value += _apart(centre, mass, middle, up, down)
            most += _apart(_farther(low, high, middle, up, down), mass, middle, up, down)
    if exact:
        return least, least, least
    return least, min(max(value, least), most), most


def _apart(values: Floats, mass: Mass, c: Fraction, up: Fraction, down: Fraction) -> Fraction:
    """Return the sum of up (y - c) above c and down (c - y) below, of values that weigh this."""
    near = float(c)
    above = values >= near if near > c else values > near
    total = Fraction(0)
    for side, slope in ((above, up), (~above, -down)):
        if slope:
            part = mass[side]
            total += slope * (_product(values[side], part) - c * _exact(part))
    return total


def _farther(low: Floats, high: Floats, c: Fraction, up: Fraction, down: Fraction) -> Floats:
    """Return the end of each cell that costs more: where c is inside, the costs are compared."""
    far = np.where(low >= float(c), high, low)
    for cell in np.flatnonzero((low <= float(c)) & (float(c) <= high)):
        above, below = (Fraction(high[cell]) - c) * up, (c - Fraction(low[cell])) * down
        far[cell] = high[cell] if above > below else low[cell]
    return far


def _product(values: Floats, mass: Mass) -> Fraction:
    """Return the sum of values times what their cells weigh, which has one class."""
    if not isinstance(mass, ExactSum):
        return ExactSum.of(values, mass[:, 0].astype(np.float64)).fraction()
    digits = mass.digits.astype(np.float64)
    sums = (ExactSum.of(values, np.ascontiguousarray(digit)).fraction() for digit in digits.T)
    total = sum((each * 2 ** (32 * place) for place, each in enumerate(sums)), Fraction(0))
    return total * Fraction(2) ** mass.exponent


def _finite(value: Fraction | float) -> Fraction:
    return Fraction(value if isinstance(value, Fraction) else max(-_LARGEST, min(value, _LARGEST)))


def _between(a: float, b: float, share: Fraction) -> float:
    """Return a (1 - share) + b share, rounded once."""
    if a == b or share == 0:
        return a
    if math.isinf(a) or math.isinf(b):
        return a + b
    return float(Fraction(a) * (1 - share) + Fraction(b) * share)


def _mass(histogram: SortedHistogram) -> Fraction:
    return sum(map(_exact, histogram.masses()), Fraction(0))


def _exact(mass: Mass) -> Fraction:
    return mass.sum().fraction() if isinstance(mass, ExactSum) else Fraction(int(mass.sum()))


def _located(histogram: SortedHistogram, ranks: Sequence[_Rank]) -> list[tuple[float, float]]:
    """Return the edges of the cells that hold the ranks; of the last cell for those beyond."""
    found: list[tuple[float, float]] = []
    passed = Fraction(0)
    edges = (math.nan, math.nan)
    for block, mass in zip(histogram.cells(), histogram.masses(), strict=True):
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


def _place(mass: Mass, inside: Fraction, *, left: bool) -> int:
    """Return the first cell whose cumulative mass exceeds `inside`, or reaches it if `left`.

    The mass (m, classes) of a cell is that of all its classes.
    """
    if not isinstance(mass, ExactSum):
        sums = np.cumsum(mass.sum(axis=1))
        if left:
            return int(np.searchsorted(sums, math.ceil(inside), "left"))
        return int(np.searchsorted(sums, math.floor(inside), "right"))
    # Digits are added up without carries: they are made integers only where they are compared.
    digits = np.cumsum(mass.digits.reshape(*mass.shape, -1).sum(axis=1), axis=0)
    reached = inside / Fraction(2) ** mass.exponent
    cells = range(len(digits))
    if left:
        return bisect_left(cells, math.ceil(reached), key=lambda cell: _integer(digits[cell]))
    return bisect_right(cells, math.floor(reached), key=lambda cell: _integer(digits[cell]))


def _integer(digits: Ints) -> int:
    """Return the integer of digits, the lowest first, that may be larger than their base."""
    return sum(digit << 32 * place for place, digit in enumerate(digits.tolist()))
