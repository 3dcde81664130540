"""Metrics of the pairs of two columns: rank correlation, and the pairs that pictures show."""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, NamedTuple, Self, TypeAlias

import numpy as np

from streammetrics.core.arithmetic.exact import exact_dot, root
from streammetrics.core.arithmetic.keys import cell_edges
from streammetrics.core.constraints import MaxPairs, NanPolicy
from streammetrics.core.kernels import kernels
from streammetrics.core.metric import Metric
from streammetrics.core.results.values import Interval, Points
from streammetrics.core.types import Floats, Ints, V_co
from streammetrics.metrics.families import Family
from streammetrics.statistics.pairs import MAX_PAIRS, PairHistogram

if TYPE_CHECKING:
    from streammetrics.core.arithmetic.pairs import Axis, Marginal, PairCells
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import ArrayLike


class Untied(NamedTuple):
    """Numbers of pairs of rows that differ in one coordinate, and of its distinct values."""

    certain: int  # pairs that certainly differ
    least: int
    most: int
    least_distinct: int
    most_distinct: int

    @classmethod
    def of(cls, side: Marginal, pairs: int) -> Self:
        """Return the numbers for one coordinate."""
        mixed = side.counts[side.mixed]
        single = side.counts.size - mixed.size
        certain = pairs - _pairs_within(side.counts)
        rows = int(mixed.sum())
        # If m rows are not all equal, at least m - 1 pairs differ: one row from all others.
        return cls(
            certain,
            certain + rows - mixed.size,
            certain + _pairs_within(mixed),
            single + 2 * mixed.size,
            single + rows,
        )


class Concordance(NamedTuple):
    """Numbers of pairs of rows: all, concordant minus discordant, and those that may be either."""

    all: int
    known: int
    unknown: int
    x: Untied
    y: Untied

    @classmethod
    def of(cls, cells: PairCells) -> Self:
        """Return the numbers for the cells of a histogram."""
        (x, y), counts = cells.marginals(), cells.counts
        pairs = cells.size * (cells.size - 1) // 2
        untied_x, untied_y = Untied.of(x, pairs), Untied.of(y, pairs)
        # Pairs untied in both: those untied in x, plus those in y, minus those in either.
        known = untied_x.certain + untied_y.certain - (pairs - _pairs_within(counts))
        known -= 2 * _discordant(cells)
        unknown = _pairs_within(x.counts[x.mixed]) + _pairs_within(y.counts[y.mixed])
        if unknown:
            # Pairs within one cell are tied if one coordinate has a single value, whatever the
            # other is. If both have several values, the pairs were counted twice.
            mixed = x.mixed[cells.rows] | y.mixed[cells.columns]
            unknown -= _pairs_within(counts[mixed])
        return cls(pairs, known, unknown, untied_x, untied_y)

    def times(self, largest: Fraction, smallest: Fraction) -> tuple[float, float, float]:
        """Return bounds and value of C - D times a factor that lies in an interval."""
        low, high = self.known - self.unknown, self.known + self.unknown
        return (
            float(low * (largest if low < 0 else smallest)),
            float(self.known * smallest),
            float(high * (largest if high > 0 else smallest)),
        )


def largest_tau_b(pairs: Concordance, known: int) -> float:
    """Return the largest possible tau-b, where `known` is the certain part of C - D.

    Let a and b be the numbers of pairs untied in x and in y, of which a0 and b0 are certain. Then
    C - D is at most known + min(a - a0 + b - b0, unknown), and tau-b is that over √(a b). While the
    sum is below `unknown`, the bound first falls and then rises with a, and likewise with b. Beyond
    that it falls with both, or rises with both if it is negative. So the maximum is at a corner of
    the rectangle of possible (a, b), or where the line with the sum `unknown` crosses an edge.
    """
    x, y = pairs.x, pairs.y
    line = pairs.unknown + x.certain + y.certain
    places = [(a, b) for a in (x.least, x.most) for b in (y.least, y.most)]
    places += [(a, line - a) for a in (x.least, x.most)]
    places += [(line - b, b) for b in (y.least, y.most)]
    return max(
        over_root(known + min(a + b - x.certain - y.certain, pairs.unknown), a * b)
        for a, b in places
        if x.least <= a <= x.most and y.least <= b <= y.most
    )


def _pairs_within(counts: Ints) -> int:
    """Return the number of pairs of rows within groups."""
    if counts.size == counts.sum():
        return 0
    return exact_dot(counts, counts - 1) // 2


def _discordant(cells: PairCells) -> int:
    """Return the number of pairs of rows whose cells are in opposite order in both coordinates."""
    # Pairs within a row are in ascending order of columns, so they are no inversions.
    ranks, counts = cells.columns.astype(np.int32), cells.counts
    found: int = (
        kernels.inversions(ranks)
        if cells.size == ranks.size
        else kernels.inversions(ranks, counts, counts)
    )
    return found


def over_root(numerator: int, squared: int) -> float:
    """Return numerator / √squared, rounded once."""
    return math.copysign(root(Fraction(numerator * numerator, squared)), numerator)


_UNDEFINED = (math.nan, math.nan, math.nan)


Place: TypeAlias = Literal["low", "middle", "high"]


class _PairColumns(NamedTuple):
    y_true: Floats
    y_pred: Floats
    n_rows: Ints


class PredictionPairs(Points, _PairColumns):
    """Distinct pairs (m,) of target and prediction, and the number of rows of each.

    They ascend by target, then by prediction.
    """

    @classmethod
    def of(cls, cells: PairCells, place: Place = "middle") -> Self:
        """Return the pairs; a value stands at this place of a cell that holds several."""
        true, pred = (_values(axis, cells.level, place) for axis in (cells.x, cells.y))
        pairs = cls(true[cells.rows], pred[cells.columns], cells.counts)
        return pairs.told(exact=cells.level == 0)


def _values(axis: Axis, level: int, place: Place) -> Floats:
    values, mixed = axis.values.copy(), np.isnan(axis.values)
    if mixed.any():
        low, high = cell_edges(axis.ids[mixed], level)
        values[mixed] = {"low": low, "middle": low / 2 + high / 2, "high": high}[place]
    return values


class NumberPairs(Metric[V_co]):
    """Base class of metrics of pairs of numbers, exact for up to `max_pairs` distinct pairs.

    Args:
        max_pairs: The largest number of distinct pairs (y_true, y_pred) kept apart. Beyond that,
            neighbouring pairs share a cell: memory stays bounded, and `bounds()` holds for any
            order and any ties of the rows within a cell.
        nan_policy: ``"raise"``, or ``"omit"``: rows with a missing value are left out.
    """

    max_pairs: MaxPairs = MAX_PAIRS
    nan_policy: NanPolicy = "raise"

    def update(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        sample_weight: ArrayLike = None,
        counts: ArrayLike = None,
    ) -> Self:
        """Add a batch of rows.

        Args:
            y_true: Numbers, (n,), which may be infinite.
            y_pred: Numbers, (n,), which may be infinite.
            sample_weight: Must be ``None``: counts of pairs do not support weights.
            counts: How many rows each row stands for, (n,); whole numbers.

        Raises:
            InvalidBatchError: Weights are given, a column has a wrong type or length, or a value is
                nan with ``nan_policy="raise"``; the state is unchanged.
        """
        return self.feed(
            {"y_true": y_true, "y_pred": y_pred, "sample_weight": sample_weight, "counts": counts}
        )

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the histogram of pairs."""
        return (PairHistogram(max_pairs=self.max_pairs, nan_policy=self.nan_policy),)

    def _shape(self, pairs: PairHistogram) -> PredictionPairs:
        return PredictionPairs.of(pairs.cells())

    def is_exact(self, pairs: PairHistogram) -> bool:
        """Whether every distinct pair has its own cell."""
        return pairs.exact


class RankCorrelation(NumberPairs[float]):
    """Base class of rank correlations; its parameters are those of `NumberPairs`."""

    higher_is_better = True
    _formula = ("readout", "certain")

    @abstractmethod
    def certain(self, cells: PairCells) -> tuple[float, float, float]:
        """Return a lower bound, the value and an upper bound, each rounded once."""

    def readout(self, pairs: PairHistogram) -> float:
        """Return the value; beyond `max_pairs` the rows of a cell count as in random order."""
        return self.certain(pairs.cells())[1]

    def interval(self, pairs: PairHistogram) -> Interval[float]:
        """Return the range over all orders and ties of rows within cells."""
        low, value, high = self.certain(pairs.cells())
        if pairs.exact or math.isnan(value):
            return Interval(value, value)
        # One float outward, because each bound was rounded once.
        least, most = self.value_range or (-math.inf, math.inf)
        return Interval(
            max(least, math.nextafter(low, -math.inf)), min(most, math.nextafter(high, math.inf))
        )

    def _lacking(self, pairs: PairHistogram) -> str:
        cells = pairs.cells()
        for name, marginal in zip(("y_true", "y_pred"), cells.marginals(), strict=True):
            if marginal.counts.size == 1:
                return f"{name} is constant"
        return ""


class KendallTau(RankCorrelation):
    """Kendall's tau: concordant minus discordant pairs of rows, over all pairs.

    Formula: tau_b = (C - D) / √((n_0 - n_1) (n_0 - n_2)), with C concordant and D discordant of the
    n_0 pairs of rows, of which n_1 are tied in `y_true` and n_2 in `y_pred`.

    For ``"a"`` C - D is divided by n_0 = n (n - 1) / 2; for ``"c"`` (Stuart) by n² (m - 1) / (2 m),
    with m the smaller number of distinct values of the two columns. ``nan`` for fewer than two
    rows, and for ``"b"`` and ``"c"`` if all rows are tied in one column.

    Beyond `max_pairs`, the half-width of `bounds()` for ``"a"`` is the share of pairs of rows that
    share a cell of either column, without those known to be tied. Discordant pairs are counted by
    merge sort (Knight 1966).

    The other parameters are those of `NumberPairs`.

    Args:
        variant: ``"b"`` (SciPy's default), ``"c"`` or ``"a"``.

    Raises:
        InvalidBatchError: From `update`, if weights are given or a value is nan.

    Memory and cost: that of a `PairHistogram`; `compute` merge sorts the pairs, at about 60 ns per
    pair, or 160 ns if pairs repeat.

    Reference: ``scipy.stats.kendalltau``; Kendall, Rank Correlation Methods (1970).

    Example:
        >>> import streammetrics as sm
        >>> sm.KendallTau().update([1, 2, 3, 4], [1, 3, 2, 4]).compute()
        0.6666666666666666
    """

    higher_is_better = True
    value_range = (-1.0, 1.0)
    family = Family.KENDALL

    variant: Literal["a", "b", "c"] = "b"

    def certain(self, cells: PairCells) -> tuple[float, float, float]:
        """Return bounds from those of C - D and of the untied pairs."""
        pairs = Concordance.of(cells)
        x, y = pairs.x, pairs.y
        if not pairs.all or (self.variant != "a" and not (x.most and y.most)):
            return _UNDEFINED
        if self.variant == "a":
            return pairs.times(Fraction(1, pairs.all), Fraction(1, pairs.all))
        if self.variant == "b":
            value = over_root(pairs.known, x.most * y.most)
            low, high = -largest_tau_b(pairs, -pairs.known), largest_tau_b(pairs, pairs.known)
            return low, value, high
        least = min(x.least_distinct, y.least_distinct)
        most = min(x.most_distinct, y.most_distinct)
        return pairs.times(*(Fraction(2 * m, cells.size**2 * (m - 1)) for m in (least, most)))


class SpearmanRho(RankCorrelation):
    """Spearman's rho: the Pearson correlation of ranks; tied rows have their average rank.

    Formula: Σ r s / √(Σ r² Σ s²), with r and s the ranks less their mean.

    ``nan`` for a single row, or if all rows are tied in one column. Computed in integers, from
    doubled ranks. Beyond `max_pairs`, the effect of the ranks within cells is bounded by the
    rearrangement and the Cauchy-Schwarz inequalities.

    Parameters are those of `NumberPairs`.

    Raises:
        InvalidBatchError: From `update`, if weights are given or a value is nan.

    Memory and cost: that of a `PairHistogram`; `compute` takes about 20 ns per pair.

    Reference: ``scipy.stats.spearmanr``.

    Example:
        >>> import streammetrics as sm
        >>> sm.SpearmanRho().update([1, 2, 3, 4], [1, 3, 2, 4]).compute()
        0.8
    """

    higher_is_better = True
    value_range = (-1.0, 1.0)
    family = Family.SPEARMAN

    def certain(self, cells: PairCells) -> tuple[float, float, float]:
        """Return bounds: the product of average ranks, and the most that ranks within cells add.

        A rank r is the average A of its cell plus a deviation e, whose sum over the cell is 0, and
        likewise s = B + f. So Σ r s = Σ A B + Σ e B + Σ A f + Σ e f. The second sum is largest
        if e ascends with B (rearrangement inequality), and likewise the third. The last is bounded
        by the Cauchy-Schwarz inequality.
        """
        (x, y), rows, columns = cells.marginals(), cells.rows, cells.columns
        rank_x, rank_y = _average_ranks(x.counts), _average_ranks(y.counts)
        (least_x, most_x), (least_y, most_y) = _open_squares(x), _open_squares(y)
        square_x = exact_dot(rank_x, rank_x, x.counts)
        square_y = exact_dot(rank_y, rank_y, y.counts)
        most = (square_x + most_x) * (square_y + most_y)
        if not most:
            return _UNDEFINED
        known = exact_dot(rank_x[rows], rank_y[columns], cells.counts)
        value = over_root(known, most)
        if cells.level == 0:
            return value, value, value
        reach = math.isqrt(most_x * most_y) + 1
        reach += _in_order(rows, x, cells.counts, rank_y[columns])
        order = np.argsort(columns, kind="stable")
        reach += _in_order(columns[order], y, cells.counts[order], rank_x[rows[order]])
        least = (square_x + least_x) * (square_y + least_y)
        return (
            over_root(known - reach, least if known < reach else most),
            value,
            over_root(known + reach, least if known > -reach else most),
        )


def _average_ranks(counts: Ints) -> Ints:
    """Return twice the deviation of each group's average rank from the mean rank, as integers."""
    last = np.cumsum(counts)
    return 2 * last - counts - last[-1:]


def _open_squares(side: Marginal) -> tuple[int, int]:
    """Return the range of the sum of squared deviations of ranks from the average of their cell.

    Ranks are doubled. The sum is smallest if m - 1 of the m rows of a cell are equal, and largest
    if all differ, with deviations -(m - 1), ..., m - 1 in steps of 2.
    """
    m = side.counts[side.mixed]
    return exact_dot(m, m - 1), exact_dot(m - 1, m + 1, m) // 3


def _in_order(groups: Ints, side: Marginal, counts: Ints, other: Ints) -> int:
    """Return the sum of the rank within the group times `other`, over groups of several rows.

    Ranks are doubled, minus their mean, and in the order of `other` within each group.
    """
    before = np.cumsum(counts) - counts
    first = np.cumsum(side.counts) - side.counts
    ranks = 2 * (before - first[groups]) + counts - side.counts[groups]
    ranks[~side.mixed[groups]] = 0
    return exact_dot(ranks, other, counts)
