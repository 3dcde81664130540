"""Decisions at thresholds: the confusion table at each of them, and the best threshold."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np

from streammetrics.core.arithmetic.rounding import nearest, root
from streammetrics.core.confidence import Refusal
from streammetrics.core.configured import require
from streammetrics.core.constraints import AtLeast
from streammetrics.core.results.curves import Curves, Points
from streammetrics.core.results.table import Table
from streammetrics.core.results.values import Interval
from streammetrics.metrics.families import GROWS, SEVERAL
from streammetrics.metrics.scores.base import ROUNDING, ScoreMetric, one_or_all
from streammetrics.metrics.scores.criteria import EXACTLY, SQUARED, VALUES
from streammetrics.metrics.scores.view import corners, staircases

if TYPE_CHECKING:
    from streammetrics.core.types import Array, Floats, Places
    from streammetrics.metrics.scores.view import Corners, Staircase
    from streammetrics.statistics.scores.histogram import ScoreHistogram

__all__ = ["BestThreshold", "ConfusionAtThresholds"]


class _Counts(NamedTuple):
    tn: Floats
    fp: Floats
    fn: Floats
    tp: Floats
    thresholds: Floats


class ConfusionPoints(Points, _Counts):
    """Entries (m,) of the two-by-two confusion table at each threshold."""

    __slots__ = ()


class ConfusionAtThresholds(ScoreMetric[ConfusionPoints | Curves]):
    """Confusion table at thresholds: true and false negatives and positives at each of them.

    Formula: TP(t) = Σ w [y = 1, s >= t], with FP, FN and TN likewise.

    Without `thresholds` there is one table per distinct score, from the highest down; beyond
    `max_bins` distinct scores one per cell, at its lower edge. Every table is then exact, and
    `exact` says whether there is one for every score. With given thresholds, `compute()` counts as
    positive the rows that certainly are, and `bounds()` holds wherever in their cells the scores
    are. (n, K) scores give a tuple, one per class.

    The other parameters are those of `ScoreMetric`.

    Args:
        thresholds: The thresholds, in the order of the result; ``None``: all scores. With
            `from_logits` they are probabilities.

    Memory and cost: that of a `ScoreHistogram`; the result takes 40 bytes per threshold.

    Reference: ``sklearn.metrics.confusion_matrix_at_thresholds``.

    Example:
        >>> import streammetrics as sm
        >>> table = sm.ConfusionAtThresholds(thresholds=[0.35, 0.5])
        >>> table.update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).compute().to_frame("polars").rows()
        [(1.0, 1.0, 0.0, 2.0, 0.35), (2.0, 0.0, 1.0, 1.0, 0.5)]
    """

    family = Refusal(GROWS.format("ROCCurve, of rates,"))
    _incomparable = SEVERAL

    thresholds: tuple[float, ...] | None = None

    def check_parameters(self) -> None:
        """Check that thresholds are numbers."""
        super().check_parameters()
        known = [] if self.thresholds is None else self.thresholds
        require(
            self,
            "thresholds",
            all(isinstance(x, int | float) and not math.isnan(x) for x in known),
            "a sequence of numbers",
        )

    def readout(self, scores: ScoreHistogram) -> ConfusionPoints | Curves:
        """Return the table, or one per class."""
        tables = [certain for certain, _ in map(self._sides, staircases(scores))]
        return one_or_all(tables, self.labels)

    def interval(self, scores: ScoreHistogram, *_: object) -> Interval[ConfusionPoints | Curves]:
        """Return the smallest and the largest count of each entry.

        Positives are fewest where only rows count that certainly reach a threshold; negatives are
        fewest where all rows do that may.
        """
        sides = [_ordered(*self._sides(stairs)) for stairs in staircases(scores)]
        low, high = zip(*sides, strict=True)
        return Interval(one_or_all(low, self.labels), one_or_all(high, self.labels))

    def is_exact(self, scores: ScoreHistogram, *_: object) -> bool:
        """Whether no threshold is left out and none lies within a cell of several scores."""
        if self.thresholds is None:
            return scores.exact
        places = (self._places(stairs, corners(stairs)) for stairs in staircases(scores))
        return all((certain == possible).all() for certain, possible in places)

    def _sides(self, stairs: Staircase) -> tuple[ConfusionPoints, ConfusionPoints]:
        """Return the table of the rows that certainly are positive, and of those that may be."""
        known = corners(stairs)
        if self.thresholds is None:
            down = np.arange(known.low.size)[::-1]
            points = _points(stairs, known, down, stairs.probabilities(known.low[down]))
            return points, points
        cuts = np.array(self.thresholds, np.float64)
        low, high = (_points(stairs, known, places, cuts) for places in self._places(stairs, known))
        return low, high

    def _places(self, stairs: Staircase, known: Corners) -> tuple[Places, Places]:
        """Return the first cells whose scores certainly, and may, reach each threshold."""
        cuts = stairs.cuts(np.array(self.thresholds, np.float64))
        return np.searchsorted(known.low, cuts), np.searchsorted(known.high, cuts)


def _ordered(
    certain: ConfusionPoints, possible: ConfusionPoints
) -> tuple[ConfusionPoints, ConfusionPoints]:
    return (
        certain._replace(tn=possible.tn, fn=possible.fn),
        possible._replace(tn=certain.tn, fn=certain.fn),
    )


def _points(stairs: Staircase, known: Corners, places: Places, cuts: Floats) -> ConfusionPoints:
    table = (known.tn, known.fp, known.fn, known.tp)
    tn, fp, fn, tp = (stairs.unscaled(entry[places]) for entry in table)
    return ConfusionPoints(tn, fp, fn, tp, cuts)


class _Best(NamedTuple):
    threshold: float
    value: float


class BestPoint(Points, _Best):
    """The best threshold, and the value of the metric there."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return both numbers."""
        return self._asdict()

    def _table(self) -> Table:
        return Table({}, {name: np.array([value]) for name, value in self._asdict().items()})

    __repr__ = _Best.__repr__


class BestThreshold(ScoreMetric[BestPoint | Curves]):
    """Best threshold: where a metric of the confusion table is best, and its value there.

    Formula: argmax_t m(t), with m(t) the metric at threshold t.

    The thresholds are the scores seen and ``inf``; of equally good ones the highest is taken.
    Beyond `max_bins` distinct scores they are the lower edges of cells, and `bounds()` contains the
    best value and its threshold over all scores: at best, a threshold within a cell passes all
    positives of the cell and no negatives. ``nan`` without rows.

    The other parameters are those of `ScoreMetric`.

    Args:
        for_: ``"f1"``, ``"fbeta"``, ``"jaccard"``, ``"accuracy"``, ``"balanced_accuracy"``,
            ``"informedness"`` (Youden's J), ``"g_mean"``, ``"matthews_corrcoef"`` or
            ``"cohen_kappa"``; or a matrix of costs ``((tn, fp), (fn, tp))``, for the smallest mean
            cost.
        beta: The beta of ``"fbeta"``.

    Raises:
        ValueError: `for_` is none of these, or a correct decision costs more than a wrong one.

    Memory and cost: that of a `ScoreHistogram`; `compute` takes about 50 ns per cell.

    Reference: the best of ``sklearn.metrics.confusion_matrix_at_thresholds``, as
    ``sklearn.model_selection.TunedThresholdClassifierCV`` looks for it.

    Example:
        >>> import streammetrics as sm
        >>> sm.BestThreshold(for_="f1").update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).compute()
        BestPoint(threshold=0.35, value=0.8)
        >>> costs = ((0, 1), (5, 0))
        >>> sm.BestThreshold(for_=costs).update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).compute()
        BestPoint(threshold=0.35, value=0.25)
    """

    family = Refusal(
        "where a value is best varies unlike any mean, and the value there is best of these rows "
        "only; the same metric at that threshold, on other rows, has one"
    )
    _incomparable = SEVERAL

    _nan_reason = "the scores are all equal"

    for_: Any = "f1"
    beta: Annotated[float, AtLeast(0)] = 1.0

    def check_parameters(self) -> None:
        """Check that there is such a metric, or a matrix in which errors cost."""
        super().check_parameters()
        if isinstance(self.for_, str):
            known = ", ".join(map(repr, VALUES))
            require(self, "for_", self.for_ in VALUES, f"a matrix of costs or one of {known}")
            return
        costs = np.array(self.for_ if isinstance(self.for_, tuple) else (), object)
        numbers = costs.shape == (2, 2) and all(isinstance(x, int | float) for x in costs.flat)
        fits = numbers and costs[0, 0] <= costs[0, 1] and costs[1, 1] <= costs[1, 0]
        words = "a metric's name, or costs ((tn, fp), (fn, tp)) with fp >= tn and fn >= tp"
        fits = fits and all(map(math.isfinite, costs.flat))
        require(self, "for_", bool(fits), words)

    def readout(self, scores: ScoreHistogram) -> BestPoint | Curves:
        """Return the best of the thresholds at edges, or one per class."""
        return one_or_all([self._best(stairs)[1] for stairs in staircases(scores)], self.labels)

    def interval(self, scores: ScoreHistogram, *_: object) -> Interval[BestPoint | Curves]:
        """Return bounds of the best value and of its threshold."""
        sides = [self._best(stairs) for stairs in staircases(scores)]
        low, _, high = zip(*sides, strict=True)
        return Interval(one_or_all(low, self.labels), one_or_all(high, self.labels))

    def _best(self, stairs: Staircase) -> tuple[BestPoint, BestPoint, BestPoint]:
        """Return lower bounds, the best of the thresholds at edges, and upper bounds."""
        known = corners(stairs)
        values = self._values(known.tp, known.fp, known.fn, known.tn)
        if self.for_ == "informedness" and not stairs.counted and stairs.positives:
            values = np.append(stairs.gaps(), 0.0) if stairs.negatives else values
        if not stairs.rows or np.isnan(values).all():
            return (BestPoint(math.nan, math.nan),) * 3
        sign = 1.0 if isinstance(self.for_, str) else -1.0  # costs are negative values
        best, at = self._highest(stairs, values)
        edges = np.append(stairs.probabilities(known.low), math.inf)
        value = BestPoint(float(edges[at]), sign * best + 0.0)
        if stairs.exact:
            return value, value, value
        # Where values are negative, one within a cell may exceed that of its corner, but not 0.
        most = self._values(known.tp[:-1], known.fp[1:], known.fn[:-1], known.tn[1:])
        most = np.where(known.single, values[:-1], most)
        if isinstance(self.for_, str):
            most = np.where(known.single, most, np.fmax(most, 0.0))
        margin = ROUNDING * max(abs(best), 1.0)
        near = np.flatnonzero(np.append(most, values[-1]) >= best - margin)
        highs = np.append(stairs.probabilities(known.high), math.inf)
        certain = best if stairs.counted else best - margin
        ends = sorted((sign * certain, sign * (max(best, float(np.nanmax(most))) + margin)))
        return (
            BestPoint(float(edges[near].min()), ends[0]),
            value,
            BestPoint(float(highs[near].max()), ends[1]),
        )

    def _highest(self, stairs: Staircase, values: Floats) -> tuple[float, int]:
        """Return the best of values at edges, rounded once, and the highest place that has it."""
        best = float(np.nanmax(values))
        if not isinstance(self.for_, str):
            room = ROUNDING * float(np.abs(self.for_).max())
        elif stairs.counted or self.for_ == "informedness":
            room = ROUNDING * abs(best)
        else:
            room = ROUNDING
        # What may be the best but for rounding is compared in integers.
        near = np.flatnonzero(values >= best - room)
        (negatives, positives), *sums = stairs.sums_above(near)
        exact, at = max(
            (self._exactly(tp, fp, positives - tp, negatives - fp), place)
            for place, (fp, tp) in zip(near.tolist(), sums, strict=True)
        )
        if self.for_ in SQUARED:
            return math.copysign(root(abs(exact)), exact), at
        return nearest(exact), at

    def _exactly(self, tp: int, fp: int, fn: int, tn: int) -> Fraction:
        """Return the value of a confusion table, or the square of it with its sign."""
        if isinstance(self.for_, str):
            return EXACTLY[self.for_](tp, fp, fn, tn, self.beta)
        (right_n, wrong_n), (wrong_p, right_p) = self.for_
        costs = map(Fraction, (right_p, wrong_n, wrong_p, right_n))
        terms = (cost * rows for cost, rows in zip(costs, (tp, fp, fn, tn), strict=True))
        return -sum(terms, Fraction(0)) / (tp + fp + fn + tn)

    def _values(self, *table: Array) -> Floats:
        """Return the value at thresholds with these confusion tables; larger is better."""
        tp, fp, fn, tn = (entry.astype(np.float64) for entry in table)
        with np.errstate(all="ignore"):
            if isinstance(self.for_, str):
                return VALUES[self.for_](tp, fp, fn, tn, self.beta)
            (right_n, wrong_n), (wrong_p, right_p) = self.for_
            lost: Floats = right_n * tn + wrong_n * fp + wrong_p * fn + right_p * tp
            return -lost / (tp + fp + fn + tn)
