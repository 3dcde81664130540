"""Whether predicted probabilities mean what they say: calibration in bins."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import numpy as np

from streammetrics.core.constraints import Between
from streammetrics.core.results.curves import Curves, Points
from streammetrics.core.results.values import Interval
from streammetrics.metrics.scores.base import (
    ClassScoreMetric,
    ScoredMetric,
    ScoreMetric,
    one_or_all,
    outward,
)
from streammetrics.metrics.scores.bins import (
    MOST_BINS,
    ScoreBins,
    Strategy,
    UncertainBins,
    floats,
    ratio,
    read,
    read_uncertain,
)
from streammetrics.metrics.scores.view import staircases
from streammetrics.statistics.scores.histogram import TopLabelHistogram
from streammetrics.statistics.scores.joined import LabelProbabilities
from streammetrics.statistics.scores.losses import Probabilities

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import Floats
    from streammetrics.metrics.scores.view import Staircase
    from streammetrics.statistics.scores.histogram import ScoreHistogram


__all__ = ["CalibrationCurve", "CalibrationError"]


class _Calibration(NamedTuple):
    prob_true: Floats
    prob_pred: Floats


class CalibrationPoints(Points, _Calibration):
    """Fraction of positives and mean score of each bin that holds rows, by ascending score."""


class CalibrationError(ClassScoreMetric):
    """Distance between the fraction of positives and the mean score, over bins of scores.

    Formula: l1: Σ_b w_b gap_b; l2: √(Σ_b w_b gap_b²); max: max_b gap_b

    With gap_b that distance in bin b and w_b the part of all rows that it holds, ``"l1"`` is
    the expected calibration error, the sum of w_b gap_b; ``"l2"`` the root of the sum of
    w_b gap_b**2; ``"max"`` the largest gap, the maximum calibration error. Bins hold scores above
    their lower edge up to their upper one, the first also 0. A cell of several scores counts with
    the middle of its edges; `bounds()` holds for any scores that its rows may have, in any bin.
    ``nan`` of no rows.

    The other parameters are those of `ScoreMetric`.

    Args:
        n_bins: How many bins.
        norm: ``"l1"``, ``"l2"`` or ``"max"``.
        strategy: ``"uniform"``: bins of equal width; ``"quantile"``: of equal mass, which is the
            adaptive calibration error. An edge is then the least score at which the part of all
            rows that its place says is reached; equal scores stay together.
        average: Of (n, K) scores. ``"macro"``, ``"weighted"`` or ``None``: each class against the
            rest, which is the class-wise calibration error. ``"top_label"``: the largest score of
            each row, and whether its class is the true one; the first largest counts.

    Raises:
        ValueError: `n_bins` is not positive, or beyond a million.

    Memory and cost: that of a `ScoreHistogram`; `compute` takes about 50 ns per cell.

    Reference: Guo et al. 2017, Nixon et al. 2019 (adaptive, class-wise);
    ``torchmetrics.classification.BinaryCalibrationError``, and for ``"top_label"``
    ``MulticlassCalibrationError``, but for scores on the edge of a bin, which go where
    ``sklearn.calibration.calibration_curve`` has them. Quantiles are those of
    ``numpy.quantile(method="inverted_cdf")``, of exact shares.

    Example:
        >>> import streammetrics as sm
        >>> sm.CalibrationError(n_bins=2).update([0, 1, 1, 1], [0.25, 0.25, 0.75, 1.0]).compute()
        0.1875
    """

    higher_is_better = False

    average: Literal["macro", "weighted", "micro", "top_label"] | None = "macro"  # type: ignore[assignment]  # one more than elsewhere
    n_bins: Annotated[int, Between(1, MOST_BINS)] = 15
    norm: Literal["l1", "l2", "max"] = "l1"
    strategy: Strategy = "uniform"

    _younger = (*ClassScoreMetric._younger, ("strategy", "uniform"))

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the score histogram, and the check that scores are probabilities."""
        if self.average != "top_label":
            return (*super().statistics(), *check_of(self))
        options = {"from_logits": self.from_logits, **self._schema_options}
        return (TopLabelHistogram(max_bins=self.max_bins, **options), *check_of(self))

    def _curve(self, stairs: Staircase) -> CalibrationPoints:
        return _points(read(stairs, self.n_bins, self.strategy), stairs)

    def read(self, stairs: Staircase) -> float:
        """Return the error with every cell in its middle."""
        bins = read(stairs, self.n_bins, self.strategy)
        return self._of_gaps(np.abs(floats(bins.positives - bins.scores)), floats(bins.rows))

    def _of_gaps(self, gap: Floats, rows: Floats) -> float:
        """Return the error where bins have a gap in sum over their rows, ``nan`` without rows."""
        if not rows.any():
            return math.nan
        return self._whole(self._parts(gap, rows), rows.sum())

    def certain(self, stairs: Staircase) -> tuple[float, float, float]:
        """Return the error with the least, the middle and the largest gap of each bin."""
        bins = read_uncertain(stairs, self.n_bins, self.strategy)
        least, most = self._between(bins, bins, stairs.positives + stairs.negatives)
        return least, self.read(stairs), most

    def _between(
        self, fewest: UncertainBins, bins: UncertainBins, total: float
    ) -> tuple[float, float]:
        """Return the error with the least and the largest gap of each bin.

        Args:
            fewest: The rows, with those labels of which fewest are positive.
            bins: The same rows, with those labels of which most are positive.
            total: How many rows there are.
        """
        rows, below, above = bins.p + bins.n, fewest.p - bins.high, bins.p - bins.low
        # Of the rows that may come, a positive widens a gap above 0 by 1 - score at most, a
        # negative one below 0 by its score. Every norm of a bin is convex, or monotone, in how
        # many of them come: it is largest with all or none.
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
        """Return what bins add, where `gap` is what they have in sum over their rows."""
        if self.norm == "l1":
            return gap
        share = ratio(gap, rows, 0.0)
        return share if self.norm == "max" else gap * share

    def _whole(self, parts: Floats, total: float) -> float:
        if self.norm == "max":
            return float(parts.max())
        error = parts.sum() / total
        return float(error if self.norm == "l1" else np.sqrt(error))


class CalibrationCurve(ScoreMetric[CalibrationPoints | Curves]):
    """Fraction of positives and mean score in each of `n_bins` bins of scores.

    Formula: o_b = P_b / n_b over f_b = mean_(i in b) s_i, with P_b positives among the n_b rows of
    bin b.

    Bins hold scores above their lower edge up to their upper one, the first also 0; bins without
    rows are left out. A cell of several scores counts with the middle of its edges; `bounds()`
    holds for any scores that its rows may have, in the bins that are shown. (n, K) scores give a
    tuple of curves, each class against the rest.

    The other parameters are those of `ScoreMetric`.

    Args:
        n_bins: How many bins.
        strategy: ``"uniform"``: of equal width on [0, 1]; ``"quantile"``: of equal mass, as in
            `CalibrationError`.

    Raises:
        ValueError: `n_bins` is not positive, or beyond a million.

    Memory and cost: that of a `ScoreHistogram`; `compute` takes about 50 ns per cell.

    Reference: ``sklearn.calibration.calibration_curve``, whose quantiles are interpolated.

    Example:
        >>> import streammetrics as sm
        >>> sm.CalibrationCurve(n_bins=2).update([0, 1, 1, 1], [0.25, 0.25, 0.75, 1.0]).compute()
        CalibrationPoints(prob_true=array([0.5, 1. ]), prob_pred=array([0.25 , 0.875]))
    """

    n_bins: Annotated[int, Between(1, MOST_BINS)] = 5
    strategy: Strategy = "uniform"

    _younger = (*ScoreMetric._younger, ("strategy", "uniform"))

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the score histogram, and the check that scores are probabilities."""
        return (*super().statistics(), *check_of(self))

    def readout(self, scores: ScoreHistogram, *_: object) -> CalibrationPoints | Curves:
        """Return the curve with every cell in its middle, or one for each class."""
        classes = staircases(scores)
        curves = [_points(read(stairs, self.n_bins, self.strategy), stairs) for stairs in classes]
        return one_or_all(curves, self.labels)

    def interval(self, scores: ScoreHistogram, *_: object) -> Interval[CalibrationPoints | Curves]:
        """Return the curve with the least and with the most that each point may have."""
        spans = [self.certain(stairs) for stairs in staircases(scores)]
        low, high = zip(*spans, strict=True)
        return Interval(one_or_all(low, self.labels), one_or_all(high, self.labels))

    def certain(self, stairs: Staircase) -> tuple[CalibrationPoints, CalibrationPoints]:
        """Return the least and the most that each point of one class may have."""
        known = read(stairs, self.n_bins, self.strategy)
        value = _points(known, stairs)
        if stairs.exact:
            return value, value
        bins, shown = read_uncertain(stairs, self.n_bins, self.strategy), floats(known.rows) > 0
        rows, moved = bins.p + bins.n, bins.p_moved + bins.n_moved
        true = (
            ratio(bins.p, rows + bins.n_moved, 1.0),
            ratio(bins.p + bins.p_moved, rows + bins.p_moved, 0.0),
        )
        # Rows that may come to a bin can only pull its mean as far as they lie beyond it.
        low = ratio(bins.low + moved * bins.floor, rows + moved, 0.0)
        high = ratio(bins.high + moved * bins.ceiling, rows + moved, 1.0)
        mean = (
            np.minimum(low, ratio(bins.low, rows, math.inf)),
            np.maximum(high, ratio(bins.high, rows, -math.inf)),
        )
        sides = [
            outward(least[shown], own, most[shown])
            for (least, most), own in zip((true, mean), value, strict=True)
        ]
        low_side, high_side = zip(*sides, strict=True)
        return CalibrationPoints(*low_side), CalibrationPoints(*high_side)


def _points(bins: ScoreBins, stairs: Staircase) -> CalibrationPoints:
    rows = floats(bins.rows)
    shown = rows > 0
    if not shown.any():
        return CalibrationPoints(np.array([math.nan]), np.array([math.nan]))
    true, pred = floats(bins.positives)[shown], floats(bins.scores)[shown]
    points = CalibrationPoints(true / rows[shown], pred / rows[shown])
    return points.told(rows=rows[shown] * (stairs.rows / rows.sum()))  # weights may be scaled


def check_of(metric: ScoredMetric[Any]) -> tuple[Statistic, ...]:
    """Return the statistic that checks probabilities, where they are not made of logits."""
    if metric.from_logits:
        return ()
    if getattr(metric, "multilabel", False):
        return (LabelProbabilities(labels=metric.labels, nan_policy=metric.nan_policy),)
    return (Probabilities(**metric._schema_options),)
