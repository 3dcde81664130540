"""Calibration of probabilities."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from operator import add
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum, nearest, quotient
from streammetrics.core.columns.scores import sigmoid
from streammetrics.core.confidence import Biased, Refusal
from streammetrics.core.constraints import Between
from streammetrics.core.errors import StreamMetricsError
from streammetrics.core.results.values import Curves, Interval, KeyedValues, Points
from streammetrics.core.types import NoAverage
from streammetrics.metrics.families import SEVERAL, Family
from streammetrics.metrics.scores.base import (
    ClassScoreMetric,
    ScoredMetric,
    ScoreMetric,
    one_or_all,
    outward,
    staircases,
)
from streammetrics.statistics.histograms import LabelProbabilities, TopLabelHistogram
from streammetrics.statistics.probabilities import EPSILON, Probabilities

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import Array, Floats, Places
    from streammetrics.metrics.scores.base import CumulativeCounts, Steps
    from streammetrics.statistics.histograms import ScoreHistogram


Strategy: TypeAlias = Literal["uniform", "quantile"]

MOST_BINS = 1 << 20  # more would take memory on reading that the size of the state does not show


class ScoreBins(NamedTuple):
    """Exact sums over the rows of each bin, with the rows of a cell at its midpoint."""

    positives: ExactSum
    rows: ExactSum
    scores: ExactSum


class UncertainBins(NamedTuple):
    """Rows that are certainly in each bin, and rows that may be.

    `p` and `n` are the positives and negatives of cells entirely within the bin; `low` and `high`
    bound the sum of their scores. `p_moved` and `n_moved` are those of cells across an edge: any
    part of them may be in the bin, with scores from `floor` to `ceiling`.
    """

    p: Floats
    n: Floats
    low: Floats
    high: Floats
    p_moved: Floats
    n_moved: Floats
    floor: Floats
    ceiling: Floats


def bin_sums(stairs: CumulativeCounts, size: int, strategy: Strategy = "uniform") -> ScoreBins:
    """Return the sums of each of `size` bins."""
    bounds = edges_of(stairs, size, strategy)
    sums: ScoreBins | None = None
    for steps in stairs.steps():
        middle = _middle(stairs, steps)
        at, rows = _bins(middle, bounds.middle), steps.p + steps.n
        if not rows.all():  # bins with only such rows would be left out
            raise StreamMetricsError(
                "the weights lie more than 2**1300 apart; give the smallest ones the weight 0"
            )
        positives, weight = _grouped(at, size, steps.p), None
        if (rows == 1).all():  # the common case of one row per score needs no product
            counts = ExactSum.counts(np.bincount(at, minlength=size))
        else:
            counts, weight = _grouped(at, size, rows), rows.astype(np.float64)
        parts = ScoreBins(positives, counts, ExactSum.grouped(at, size, middle, weight))
        sums = parts if sums is None else ScoreBins(*map(add, sums, parts))
    return sums or ScoreBins(*[ExactSum.zero((size,))] * 3)


def bins_of_cells(stairs: CumulativeCounts, size: int, strategy: Strategy) -> Places:
    """Return the bin of each cell of scores, by its midpoint."""
    bounds = edges_of(stairs, size, strategy).middle
    bins = [_bins(_middle(stairs, steps), bounds) for steps in stairs.steps()]
    return np.concatenate(bins) if bins else np.zeros(0, np.intp)


def uncertain_bin_sums(
    stairs: CumulativeCounts, size: int, strategy: Strategy = "uniform"
) -> UncertainBins:
    """Return the rows of each of `size` bins that are certain and that are uncertain."""
    bounds = edges_of(stairs, size, strategy)
    sums = [ExactSum.zero((size,))] * 4
    p_moved, n_moved = np.zeros(size), np.zeros(size)
    floor, ceiling = np.ones(size), np.zeros(size)
    for steps in stairs.steps():
        low, high = _edges(stairs, steps)
        first, last = _bins(low, bounds.high), _bins(high, bounds.low)
        within = first == last
        at, rows = first[within], (steps.p + steps.n)[within].astype(np.float64)
        parts = (
            _grouped(at, size, steps.p[within]),
            _grouped(at, size, steps.n[within]),
            ExactSum.grouped(at, size, low[within], rows),
            ExactSum.grouped(at, size, high[within], rows),
        )
        sums = [total + part for total, part in zip(sums, parts, strict=True)]
        cells = np.flatnonzero(~within)
        reach = last[cells] - first[cells] + 1
        cell = np.repeat(cells, reach)
        at = np.arange(cell.size) + np.repeat(first[cells] - np.cumsum(reach) + reach, reach)
        p_moved += np.bincount(at, steps.p[cell], size)
        n_moved += np.bincount(at, steps.n[cell], size)
        np.minimum.at(floor, at, np.maximum(low[cell], bounds.low[at]))
        np.maximum.at(ceiling, at, np.minimum(high[cell], bounds.high[at + 1]))
    p, n, low, high = map(floats, sums)
    return UncertainBins(p, n, low, high, p_moved, n_moved, floor, ceiling)


def _middle(stairs: CumulativeCounts, steps: Steps) -> Floats:
    if steps.single.all():
        return stairs.probabilities(steps.low)
    low, high = _edges(stairs, steps)
    return np.where(steps.single, low, (low + high) / 2)


def _edges(stairs: CumulativeCounts, steps: Steps) -> tuple[Floats, Floats]:
    """Return the edges of cells, clipped to [0, 1], because scores do not lie outside."""
    low, high = stairs.probabilities(steps.low), stairs.probabilities(steps.high)
    return np.maximum(low, 0.0), np.minimum(high, 1.0)


class Bounds(NamedTuple):
    """The edges of bins (size + 1,): estimates with bounds, all read-only."""

    low: Floats
    middle: Floats
    high: Floats


def edges_of(stairs: CumulativeCounts, size: int, strategy: Strategy) -> Bounds:
    """Return the edges of bins of equal width or of equal mass."""
    if strategy == "uniform":
        return _equal_widths(size)
    ends = stairs.quantiles([Fraction(place, size) for place in range(1, size)])
    low, high = (np.clip(stairs.probabilities(side), 0.0, 1.0) for side in ends)
    middle = np.where(low == high, low, (low + high) / 2)
    return Bounds(*(np.concatenate([[0.0], side, [1.0]]) for side in (low, middle, high)))


@lru_cache(maxsize=16)
def _equal_widths(size: int) -> Bounds:
    edges = np.linspace(0.0, 1.0, size + 1)
    return Bounds(edges, edges, edges)


def _bins(scores: Floats, bounds: Floats) -> Places:
    """Return the bins of ascending scores; the outer bounds are 0 and 1."""
    ends = scores.searchsorted(bounds[1:], side="right")
    ends[-1] = scores.size
    ends[1:] -= ends[:-1]
    return np.repeat(_places(ends.size), ends)


@lru_cache(maxsize=16)
def _places(size: int) -> Places:
    places = np.arange(size)
    places.flags.writeable = False
    return places


def _grouped(at: Places, size: int, amount: Array) -> ExactSum:
    if amount.dtype == np.int64:  # below 2**53, so these sums are exact
        return ExactSum.counts(np.bincount(at, amount, size).astype(np.int64))
    return ExactSum.grouped(at, size, amount)


def floats(sums: ExactSum) -> Floats:
    """Return the sums as floats, each rounded once."""
    return np.asarray(sums.to_float())


def ratio_or(part: Floats, whole: Floats, nothing: float) -> Floats:
    """Return the quotients, and `nothing` if `whole` is 0."""
    return np.divide(part, whole, out=np.full_like(part, nothing), where=whole > 0)


class _Calibration(NamedTuple):
    prob_true: Floats
    prob_pred: Floats


class CalibrationPoints(Points, _Calibration):
    """Fraction of positives and mean score (m,) of the bins that hold rows, by ascending score."""


class CalibrationError(ClassScoreMetric[NoAverage]):
    """Calibration error: the difference between fractions of positives and mean scores in bins.

    Formula: l1: Σ_b w_b gap_b; l2: √(Σ_b w_b gap_b²); max: max_b gap_b

    gap_b is the absolute difference between the fraction of positives and the mean score in bin b,
    and w_b the share of all rows in it. ``"l1"`` is the expected calibration error (ECE),
    ``"max"`` the maximum calibration error (MCE). A bin contains its upper edge but not its lower
    one; the first bin also contains 0. The rows of a cell of several scores are placed at its
    midpoint, and `bounds()` holds wherever scores lie in their cells. ``nan`` without rows.

    The other parameters are those of `ClassScoreMetric`.

    Args:
        n_bins: The number of bins.
        norm: How to combine the gaps of bins: ``"l1"``, ``"l2"`` or ``"max"``.
        strategy: ``"uniform"``: bins of equal width. ``"quantile"``: bins of equal mass, for the
            adaptive calibration error. Edge i of B is then the smallest score at or below which a
            share i / B of all rows lies; equal scores stay in one bin.
        average: For (n, K) scores. ``"macro"``, ``"weighted"``, ``"micro"`` or ``None``: each class
            against the rest, the class-wise calibration error. ``"top_label"``: the largest score
            of each row (the first if tied), and whether its class is the true one.

    Raises:
        ValueError: `n_bins` is not from 1 to 2**20.

    Memory and cost: that of a `ScoreHistogram`; `compute` takes about 50 ns per cell.

    Reference: Guo et al., "On calibration of modern neural networks", ICML 2017; Nixon et al.,
    "Measuring calibration in deep learning", CVPR Workshops 2019 (adaptive, class-wise);
    ``torchmetrics.classification.BinaryCalibrationError``, and ``MulticlassCalibrationError`` for
    ``"top_label"``, except that scores on an edge are in the bin where
    ``sklearn.calibration.calibration_curve`` has them. Quantiles are those of
    ``numpy.quantile(method="inverted_cdf")``, of exact shares.

    Example:
        >>> import streammetrics as sm
        >>> sm.CalibrationError(n_bins=2).update([0, 1, 1, 1], [0.25, 0.25, 0.75, 1.0]).compute()
        0.1875
    """

    higher_is_better = False
    value_range = (0.0, 1.0)
    family = Biased(
        "chance alone moves every bin off its score, so that it is too large by what is not known; "
        "CalibrationCurve has limits for each bin, and BrierScore has them"
    )

    average: Literal["macro", "weighted", "micro", "top_label"] | NoAverage = "macro"  # type: ignore[assignment]  # one more value than in the base
    n_bins: Annotated[int, Between(1, MOST_BINS)] = 15
    norm: Literal["l1", "l2", "max"] = "l1"
    strategy: Strategy = "uniform"

    def check_parameters(self) -> None:
        """Check that rows with several labels have no largest score to judge.

        Raises:
            ValueError: ``average="top_label"`` with `multilabel`.
        """
        super().check_parameters()
        if self.multilabel and self.average == "top_label":
            raise ValueError(
                "CalibrationError(average='top_label', multilabel=True): a row of several labels "
                "has no top label; average='macro' is the mean over labels"
            )

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the score histogram, and a check that scores are probabilities."""
        if self.average != "top_label":
            return (*super().statistics(), *check_of(self))
        options = {"from_logits": self.from_logits, **self._schema_options}
        return (TopLabelHistogram(max_bins=self.max_bins, **options), *check_of(self))

    def _curve(self, stairs: CumulativeCounts) -> CalibrationPoints:
        return _points(bin_sums(stairs, self.n_bins, self.strategy), stairs)

    def read(self, stairs: CumulativeCounts) -> float:
        """Return the error with the rows of a cell at its midpoint."""
        bins = bin_sums(stairs, self.n_bins, self.strategy)
        return self._of_gaps(np.abs(floats(bins.positives - bins.scores)), floats(bins.rows))

    def _of_gaps(self, gap: Floats, rows: Floats) -> float:
        """Return the error from the gap of each bin, summed over its rows; ``nan`` without rows."""
        if not rows.any():
            return math.nan
        return self._whole(self._parts(gap, rows), rows.sum())

    def certain(self, stairs: CumulativeCounts) -> tuple[float, float, float]:
        """Return the error for the smallest, the estimated and the largest gap of each bin."""
        bins = uncertain_bin_sums(stairs, self.n_bins, self.strategy)
        least, most = self._between(bins, bins, stairs.positives + stairs.negatives)
        return least, self.read(stairs), most

    def _between(
        self, fewest: UncertainBins, bins: UncertainBins, total: float
    ) -> tuple[float, float]:
        """Return the error for the smallest and the largest gap of each bin.

        Args:
            fewest: The bins if unknown labels are negative.
            bins: The bins if unknown labels are positive.
            total: The weight of all rows.
        """
        rows, below, above = bins.p + bins.n, fewest.p - bins.high, bins.p - bins.low
        # Of the rows that may be in a bin, a positive widens a gap above 0 by at most 1 - score,
        # and a negative a gap below 0 by at most its score. The norm of a bin is convex or monotone
        # in their number, so it is largest with all of them or with none.
        up, down = bins.p_moved * (1.0 - bins.floor), fewest.n_moved * bins.ceiling
        most = [
            self._parts(np.maximum(gap, 0.0), held)
            for gap, held in (
                (above, rows),
                (above + up, rows + bins.p_moved),
                (-below, rows),
                (down - below, rows + fewest.n_moved),
            )
        ]
        least = np.maximum(np.maximum(below - down, -above - up), 0.0)
        held = rows + bins.p_moved + bins.n_moved
        return (
            self._whole(self._parts(least, held), total),
            self._whole(np.max(most, axis=0), total),
        )

    def _parts(self, gap: Floats, rows: Floats) -> Floats:
        """Return the contribution of each bin to the norm; `gap` is summed over its rows."""
        if self.norm == "l1":
            return gap
        share = ratio_or(gap, rows, 0.0)
        return share if self.norm == "max" else gap * share

    def _whole(self, parts: Floats, total: float) -> float:
        if self.norm == "max":
            return float(parts.max())
        error = parts.sum() / total
        return float(error if self.norm == "l1" else np.sqrt(error))


class CalibrationCurve(ScoreMetric[CalibrationPoints | Any]):
    """Calibration curve (reliability diagram): fractions of positives over mean scores, in bins.

    Formula: o_b = P_b / n_b over f_b = mean_(i in b) s_i, with P_b positives among the n_b rows of
    bin b.

    A bin contains its upper edge but not its lower one; the first bin also contains 0. Bins without
    rows are left out. The rows of a cell of several scores are placed at its midpoint, and
    `bounds()` holds, for the bins shown, wherever scores lie in their cells. (n, K) scores give a
    tuple of curves, each class against the rest.

    The other parameters are those of `ScoreMetric`.

    Args:
        n_bins: The number of bins.
        strategy: ``"uniform"``: bins of equal width on [0, 1]. ``"quantile"``: bins of equal mass,
            as in `CalibrationError`.

    Raises:
        ValueError: `n_bins` is not from 1 to 2**20.

    Memory and cost: that of a `ScoreHistogram`; `compute` takes about 50 ns per cell.

    Reference: ``sklearn.calibration.calibration_curve``, whose quantiles are interpolated.

    Example:
        >>> import streammetrics as sm
        >>> sm.CalibrationCurve(n_bins=2).update([0, 1, 1, 1], [0.25, 0.25, 0.75, 1.0]).compute()
        CalibrationPoints(prob_true=array([0.5, 1. ]), prob_pred=array([0.25 , 0.875]))
    """

    family = Family.CALIBRATION_CURVE
    _incomparable = SEVERAL

    n_bins: Annotated[int, Between(1, MOST_BINS)] = 5
    strategy: Strategy = "uniform"

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the score histogram, and a check that scores are probabilities."""
        return (*super().statistics(), *check_of(self))

    def readout(self, scores: ScoreHistogram, *_: object) -> CalibrationPoints | Curves:
        """Return the curve with the rows of a cell at its midpoint, or one curve per class."""
        classes = staircases(scores)
        curves = [
            _points(bin_sums(stairs, self.n_bins, self.strategy), stairs) for stairs in classes
        ]
        return one_or_all(curves, self.labels)

    def interval(self, scores: ScoreHistogram, *_: object) -> Interval[CalibrationPoints | Curves]:
        """Return the curves of the lower and of the upper bounds of each point."""
        spans = [self.certain(stairs) for stairs in staircases(scores)]
        low, high = zip(*spans, strict=True)
        return Interval(one_or_all(low, self.labels), one_or_all(high, self.labels))

    def certain(self, stairs: CumulativeCounts) -> tuple[CalibrationPoints, CalibrationPoints]:
        """Return the lower and the upper bounds of each point for one class."""
        known = bin_sums(stairs, self.n_bins, self.strategy)
        value = _points(known, stairs)
        if stairs.exact:
            return value, value
        bins, shown = uncertain_bin_sums(stairs, self.n_bins, self.strategy), floats(known.rows) > 0
        rows, moved = bins.p + bins.n, bins.p_moved + bins.n_moved
        true = (
            ratio_or(bins.p, rows + bins.n_moved, 1.0),
            ratio_or(bins.p + bins.p_moved, rows + bins.p_moved, 0.0),
        )
        # Rows that may be in the bin only move its mean towards themselves.
        low = ratio_or(bins.low + moved * bins.floor, rows + moved, 0.0)
        high = ratio_or(bins.high + moved * bins.ceiling, rows + moved, 1.0)
        mean = (
            np.minimum(low, ratio_or(bins.low, rows, math.inf)),
            np.maximum(high, ratio_or(bins.high, rows, -math.inf)),
        )
        sides = [
            outward(least[shown], own, most[shown])
            for (least, most), own in zip((true, mean), value, strict=True)
        ]
        low_side, high_side = zip(*sides, strict=True)
        return CalibrationPoints(*low_side), CalibrationPoints(*high_side)


def _points(bins: ScoreBins, stairs: CumulativeCounts) -> CalibrationPoints:
    rows = floats(bins.rows)
    shown = rows > 0
    if not shown.any():
        return CalibrationPoints(np.array([math.nan]), np.array([math.nan]))
    true, pred = floats(bins.positives)[shown], floats(bins.scores)[shown]
    points = CalibrationPoints(true / rows[shown], pred / rows[shown])
    return points.told(rows=rows[shown] * (stairs.rows / rows.sum()))  # weights may be scaled


def check_of(metric: ScoredMetric[object]) -> tuple[Statistic, ...]:
    """Return a statistic that checks that scores are probabilities; logits need none."""
    if metric.from_logits:
        return ()
    if getattr(metric, "multilabel", False):
        shared = {n: getattr(metric, n) for n in ("labels", "nan_policy", "ignore_index")}
        return (LabelProbabilities(**shared),)
    return (Probabilities(**metric._schema_options),)


_FURTHEST = math.log((1 - EPSILON) / EPSILON)  # the largest logit of a clipped probability
_STEPS = 200
_FARTHEST_STEP = 8.0  # in log odds; Newton's steps are too long if every cell is saturated
_CLOSE = 1e-13  # relative; a fit has converged if it changes by less


class LogitCells(NamedTuple):
    """Cells (m,): the range of their logits, and the weights of positives and of negatives."""

    low: Floats
    high: Floats
    positives: Floats
    negatives: Floats

    @property
    def rows(self) -> Floats:
        """The weight of all rows of each cell."""
        return self.positives + self.negatives

    @property
    def middle(self) -> Floats:
        """The midpoint of each cell."""
        return np.where(self.low == self.high, self.low, (self.low + self.high) / 2)


class _Expected(NamedTuple):
    """Cells at log odds eta: P = sigmoid(eta), and the excess of positives over rows times P.

    The excess is `small` plus `whole`. `small` is rows times P or 1 - P, whichever is smaller, with
    full precision; `whole` is whole rows. `weight` is rows times P (1 - P).
    """

    share: Floats
    small: Floats
    whole: Floats
    weight: Floats

    @classmethod
    def of(cls, cells: LogitCells, eta: Floats) -> _Expected:
        """Return the expectations for cells at these log odds."""
        p, q, above = sigmoid(eta), sigmoid(-eta), eta > 0
        small = cells.rows * np.where(above, q, -p)
        whole = np.where(above, -cells.negatives, cells.positives)
        return cls(p, small, whole, cells.rows * p * q)

    def lacking(self, factor: Floats | float = 1.0) -> float:
        """Return the sum of positives minus expected positives, each times a factor."""
        terms = np.concatenate([self.small * factor, self.whole * factor])
        return float(ExactSum.of(terms).to_float())


class Fit(NamedTuple):
    """A fitted coefficient, its standard error, and the influence of single rows.

    Adding a row of weight 1 to a cell changes the coefficient by `moved` times (y - `share`), where
    `share` is the fitted probability of the cell.
    """

    value: float
    error: float
    share: Floats
    moved: Floats

    @classmethod
    def none(cls) -> Fit:
        """Return the undefined fit: there is one class, or a score separates the classes."""
        return cls(math.nan, math.nan, np.zeros(0), np.zeros(0))


def cells_of(stairs: CumulativeCounts) -> LogitCells:
    """Return the cells of one class."""
    blocks = [
        (_logits(stairs, each.low), _logits(stairs, each.high), each.p, each.n)
        for each in stairs.steps()
    ]
    if not blocks:
        return LogitCells(*(np.zeros(0) for _ in range(4)))
    return LogitCells(
        *(np.concatenate(side).astype(np.float64) for side in zip(*blocks, strict=True))
    )


def _logits(stairs: CumulativeCounts, scores: Floats) -> Floats:
    if stairs.logits:
        return np.clip(scores, -_FURTHEST, _FURTHEST)
    p = np.clip(scores, EPSILON, 1 - EPSILON)
    return np.log(p) - np.log1p(-p)


def fitted(stairs: CumulativeCounts, fit: Callable[[Floats, LogitCells], Fit]) -> Fit:
    """Return a coefficient fitted with the rows of a cell at its midpoint."""
    cells = cells_of(stairs)
    positives, negatives = cells.positives.sum(), cells.negatives.sum()
    share = positives / ((positives + negatives) or 1.0)
    if not 0 < share < 1:
        return Fit.none()  # one class weighs so little that float64 loses it beside the other
    found = fit(cells.middle, cells)  # of scaled amounts, if they are large or weights
    error, moved = found.error * math.sqrt(stairs.one), found.moved * stairs.one
    return found._replace(error=error, moved=moved)


def slope_of(logits: Floats, cells: LogitCells) -> Fit:
    """Return the slope, fitted by Newton's method."""
    ones, zeros = logits[cells.positives > 0], logits[cells.rows > cells.positives]
    if ones.min() >= zeros.max() or zeros.min() >= ones.max():
        return Fit.none()  # a score separates the classes: the likelihood has no maximum
    z = logits - (logits * cells.rows).sum() / cells.rows.sum()
    at, b, best = 0.0, 0.0, -math.inf
    step = np.zeros(2)
    for _ in range(_STEPS):
        eta = at + b * z
        lost = cells.positives * np.logaddexp(0.0, -eta) + cells.negatives * np.logaddexp(0.0, eta)
        likelihood = -lost.sum()
        if likelihood < best + _CLOSE * best:  # the step was too long; the likelihood is negative
            step /= 2
            at, b = at - step[0], b - step[1]
            continue
        best, expected = likelihood, _Expected.of(cells, eta)
        weight = expected.weight.sum()
        middle = (expected.weight * z).sum() / weight if weight > 0 else 0.0
        apart = z - middle
        spread = (expected.weight * apart * apart).sum()
        if not spread > 0:
            return Fit.none()  # weights differ so much that in float64 there is a single logit
        steeper = expected.lacking(apart) / spread
        step = np.array([expected.lacking() / weight - middle * steeper, steeper])
        step /= max(1.0, np.abs(step[0] + step[1] * z).max() / _FARTHEST_STEP)
        at, b = at + step[0], b + step[1]
        if np.abs(step).max() <= _CLOSE * (1 + abs(at) + abs(b)):
            break
    return Fit(float(b), 1 / math.sqrt(spread), expected.share, apart / spread)


def intercept_of(logits: Floats, cells: LogitCells) -> Fit:
    """Return the intercept at slope 1, fitted by Newton's method within a shrinking bracket."""
    # The expected positives are at most the actual ones at one end, and at least at the other.
    mean = math.log(cells.positives.sum()) - math.log(cells.negatives.sum())
    low, high = mean - logits.max(), mean - logits.min()
    a = min(max(0.0, low), high)
    for _ in range(_STEPS):
        expected = _Expected.of(cells, a + logits)
        lacking, slope = expected.lacking(), expected.weight.sum()
        low, high = (low, a) if lacking < 0 else (a, high)
        newton = a + lacking / slope if slope > 0 else math.inf
        ahead = newton if low <= newton <= high else (low + high) / 2
        if abs(ahead - a) <= _CLOSE * (1 + abs(a)):
            break
        a = ahead
    return Fit(float(a), 1 / math.sqrt(slope), expected.share, np.full(logits.size, 1 / slope))


_SLACK = 1e-9  # relative; far above the error of a fit
_PARTS = ("reliability", "resolution", "uncertainty")


class _Coefficient(Protocol):
    """A coefficient of a logistic regression."""

    @property
    def _solve(self) -> Callable[[Floats, LogitCells], Fit]:
        """The function that fits it to cells, with all rows at the given logits."""


def _checked(metric: ClassScoreMetric[None]) -> tuple[Statistic, ...]:
    """Return the score histogram, and a check that scores are probabilities."""
    return (*ClassScoreMetric.statistics(metric), *check_of(metric))


def _fitted(metric: _Coefficient, stairs: CumulativeCounts) -> Fit:
    """Return the fit with the rows of a cell at its midpoint."""
    return fitted(stairs, metric._solve)


def _at_midpoints(metric: _Coefficient, stairs: CumulativeCounts) -> float:
    """Return the coefficient with the rows of a cell at its midpoint."""
    return _fitted(metric, stairs).value


def _unrounded(metric: ClassScoreMetric[None], stairs: CumulativeCounts) -> tuple[float, float]:
    """Return the bounds of `certain` unchanged, because they already allow for rounding."""
    low, value, high = metric.certain(stairs)
    return (value, value) if stairs.exact else (low, high)


class CalibrationSlope(ClassScoreMetric[NoAverage]):
    """Calibration slope: the slope of a logistic regression of labels on logits.

    Formula: log(P / (1 - P)) = a + b z, with z the logit of a row's probability and b the slope.

    1 is ideal. Below 1 probabilities are too extreme, a sign of overfitting; above 1 they are not
    extreme enough. Probabilities are clipped as in `LogLoss`. Exact for up to `max_bins` distinct
    scores; beyond that the rows of a cell are placed at its midpoint, and `bounds()` is infinite.
    Undefined if a threshold separates the classes, or all scores are equal.

    Parameters are those of `ClassScoreMetric`.

    Memory and cost: that of a `ScoreHistogram`; `compute` takes about 200 ns per cell.

    Reference: Cox, "Two further applications of a model for binary regression", Biometrika 45
    (1958); ``statsmodels.api.Logit``.

    Example:
        >>> import streammetrics as sm
        >>> rows = [0, 0, 1, 0, 1, 1], [0.125, 0.25, 0.25, 0.75, 0.75, 0.875]
        >>> round(sm.CalibrationSlope().update(*rows).compute(), 6)
        0.694719
    """

    higher_is_better = None
    family = Family.CALIBRATION_FIT
    _nan_reason = "a threshold separates the classes, or the scores are all equal"

    _solve = staticmethod(slope_of)

    statistics, read, _fit, _sides = _checked, _at_midpoints, _fitted, _unrounded

    def certain(self, stairs: CumulativeCounts) -> tuple[float, float, float]:
        """Return the slope between infinite bounds, because no others are known."""
        return -math.inf, self.read(stairs), math.inf


class CalibrationIntercept(ClassScoreMetric[NoAverage]):
    """Calibration intercept: the intercept of a logistic regression on logits, with slope 1.

    Formula: log(P / (1 - P)) = a + z, with z the logit of a row's probability and a the intercept.

    0 is ideal; below 0 probabilities are too high overall. They are clipped as in `LogLoss`. The
    rows of a cell of several scores are placed at its midpoint, and `bounds()` holds wherever
    scores lie in their cells. Undefined if there is only one class.

    Parameters are those of `ClassScoreMetric`.

    Memory and cost: that of a `ScoreHistogram`; `compute` takes about 200 ns per cell.

    Reference: Cox, "Two further applications of a model for binary regression", Biometrika 45
    (1958); ``statsmodels.api.GLM`` with the logits as offset.

    Example:
        >>> import streammetrics as sm
        >>> rows = [0, 0, 1, 0, 1, 1], [0.125, 0.25, 0.25, 0.75, 0.75, 0.875]
        >>> abs(sm.CalibrationIntercept().update(*rows).compute()) < 1e-12
        True
    """

    higher_is_better = None
    family = Family.CALIBRATION_FIT

    _solve = staticmethod(intercept_of)

    statistics, read, _fit, _sides = _checked, _at_midpoints, _fitted, _unrounded

    def certain(self, stairs: CumulativeCounts) -> tuple[float, float, float]:
        """Return the intercepts for the highest, the middle and the lowest scores of each cell."""
        cells, value = cells_of(stairs), self.read(stairs)
        if math.isnan(value):
            return value, value, value
        low, high = (intercept_of(side, cells).value for side in (cells.high, cells.low))
        slack = _SLACK * (1 + abs(value))
        return low - slack, value, high + slack


class BrierDecomposition(ScoreMetric[KeyedValues]):
    """Brier score decomposition: reliability, resolution and uncertainty (Murphy).

    Formula: Σ_b w_b (f_b - o_b)², Σ_b w_b (o_b - o)², o (1 - o)

    f_b is the mean score of bin b, o_b its fraction of positives, w_b the share of all rows in it,
    and o the fraction of positives among all rows. The Brier score is reliability minus resolution
    plus uncertainty, if the scores within each bin are equal. For (n, K) scores each part is the
    sum over classes, each against the rest. `bounds()` holds wherever scores lie in their cells.

    The other parameters are those of `ScoreMetric`.

    Args:
        n_bins: The number of bins.
        strategy: ``"uniform"`` or ``"quantile"``, as in `CalibrationError`.

    Memory and cost: that of a `ScoreHistogram`; `compute` takes about 50 ns per cell.

    Reference: Murphy, "A new vector partition of the probability score", J. Appl. Meteorol. 12
    (1973).

    Example:
        >>> import streammetrics as sm
        >>> parts = sm.BrierDecomposition().update([0, 1, 1, 1], [0.25, 0.25, 0.75, 0.75])
        >>> parts.compute()
        {'reliability': 0.0625, 'resolution': 0.0625, 'uncertainty': 0.1875}
    """

    _incomparable = SEVERAL
    family = Refusal(
        "chance alone moves every bin off its score and off the mean, so that two of its parts are "
        "too large by what is not known; BrierScore has limits"
    )

    n_bins: Annotated[int, Between(1, MOST_BINS)] = 10
    strategy: Strategy = "uniform"

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the score histogram, and a check that scores are probabilities."""
        return (*super().statistics(), *check_of(self))

    def readout(self, scores: ScoreHistogram, *_: object) -> KeyedValues:
        """Return the three parts with the rows of a cell at its midpoint."""
        return _parts([self._parts_of(stairs) for stairs in staircases(scores)])

    def interval(self, scores: ScoreHistogram, *_: object) -> Interval[KeyedValues]:
        """Return the bounds of each part."""
        spans = [self._certain(stairs) for stairs in staircases(scores)]
        low, high = zip(*spans, strict=True)
        return Interval(_parts(low), _parts(high))

    def _parts_of(self, stairs: CumulativeCounts) -> Floats:
        bins = bin_sums(stairs, self.n_bins, self.strategy)
        rows = floats(bins.rows)
        if not rows.any():
            return np.full(3, math.nan)
        gap = np.abs(floats(bins.positives - bins.scores))
        reliability = (gap * ratio_or(gap, rows, 0.0)).sum() / rows.sum()
        p, n = Fraction(stairs.positives), Fraction(stairs.negatives)
        uncertainty = nearest(p * n / (p + n) ** 2)
        return np.array([reliability, _resolution(bins), uncertainty])

    def _certain(self, stairs: CumulativeCounts) -> tuple[Floats, Floats]:
        value = self._parts_of(stairs)
        if stairs.exact:
            return value, value
        bins = uncertain_bin_sums(stairs, self.n_bins, self.strategy)
        total = stairs.positives + stairs.negatives
        rows, most = bins.p + bins.n, bins.p + bins.n + bins.p_moved + bins.n_moved
        least_share = ratio_or(bins.p, rows + bins.n_moved, 0.0)
        most_share = ratio_or(bins.p + bins.p_moved, rows + bins.p_moved, 1.0)
        near, far = _distances(least_share, most_share, stairs.share, stairs.share)
        resolution = (rows * near).sum() / total, (most * far).sum() / total
        moved = bins.p_moved + bins.n_moved
        low = np.minimum(
            ratio_or(bins.low, rows, 1.0), ratio_or(bins.low + moved * bins.floor, most, 1.0)
        )
        high = np.maximum(
            ratio_or(bins.high, rows, 0.0), ratio_or(bins.high + moved * bins.ceiling, most, 0.0)
        )
        near, far = _distances(least_share, most_share, low, high)
        reliability = (rows * near).sum() / total, (most * far).sum() / total
        ends = [np.array([*pair, value[2]]) for pair in zip(reliability, resolution, strict=True)]
        return outward(ends[0], value, ends[1])


def _resolution(bins: ScoreBins) -> float:
    """Return Σ r_b (p_b / r_b - P / R)² / R; every term is exact and rounded once."""
    sums = bins.rows.integers(), bins.positives.integers()
    unit = min(exponent for _, exponent in sums)
    rows, positives = (
        [each << exponent - unit for each in ints.tolist()] for ints, exponent in sums
    )
    whole, p = sum(rows), sum(positives)
    return math.fsum(
        quotient((mine * whole - p * of) ** 2, of * whole**3)
        for mine, of in zip(positives, rows, strict=True)
        if of
    )


def _distances(
    low: Floats, high: Floats, start: float | Floats, end: float | Floats
) -> tuple[Floats, Floats]:
    """Return the smallest and the largest squared distance between two intervals."""
    near = np.maximum(np.maximum(low - end, start - high), 0.0)
    far = np.maximum(np.abs(high - start), np.abs(end - low))
    return near * near, far * far


def _parts(classes: Sequence[Floats]) -> KeyedValues:
    values = np.sum(classes, axis=0).tolist()
    return KeyedValues(dict(zip(_PARTS, values, strict=True)), "part")
