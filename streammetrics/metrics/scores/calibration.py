"""Calibration of predicted probabilities, in bins of scores."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import numpy as np

from streammetrics.core.confidence import Refusal
from streammetrics.core.constraints import Between
from streammetrics.core.results.curves import Curves, Points
from streammetrics.core.results.values import Interval
from streammetrics.metrics.families import SEVERAL, Family
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
    bin_sums,
    floats,
    ratio_or,
    uncertain_bin_sums,
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
    """Fraction of positives and mean score (m,) of the bins that hold rows, by ascending score."""


class CalibrationError(ClassScoreMetric):
    """Calibration error: how far fractions of positives and mean scores differ, over bins.

    Formula: l1: Σ_b w_b gap_b; l2: √(Σ_b w_b gap_b²); max: max_b gap_b

    gap_b is the absolute difference between the fraction of positives and the mean score in bin b,
    and w_b the share of all rows in it. ``"l1"`` is the expected calibration error (ECE),
    ``"max"`` the maximum calibration error (MCE). A bin contains its upper edge but not its lower
    one; the first also contains 0. A cell of several scores is read at its midpoint, and
    `bounds()` holds wherever in their cells the scores are. ``nan`` without rows.

    The other parameters are those of `ClassScoreMetric`.

    Args:
        n_bins: How many bins.
        norm: How the gaps of bins are combined: ``"l1"``, ``"l2"`` or ``"max"``.
        strategy: ``"uniform"``: bins of equal width; ``"quantile"``: bins of equal mass, which
            gives the adaptive calibration error. Edge i of B is then the smallest score at or below
            which a share i / B of all rows lies; equal scores stay in one bin.
        average: For (n, K) scores. ``"macro"``, ``"weighted"``, ``"micro"`` or ``None``: each class
            against the rest, the class-wise calibration error. ``"top_label"``: the largest score
            of each row (the first of equal ones), and whether its class is the true one.

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
    family = Refusal(
        "chance alone moves every bin off its score, so that it is too large by what is not known; "
        "CalibrationCurve has limits for each bin, and BrierScore has them"
    )

    average: Literal["macro", "weighted", "micro", "top_label"] | None = "macro"  # type: ignore[assignment]  # one more than elsewhere
    n_bins: Annotated[int, Between(1, MOST_BINS)] = 15
    norm: Literal["l1", "l2", "max"] = "l1"
    strategy: Strategy = "uniform"

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the score histogram, and the check that scores are probabilities."""
        if self.average != "top_label":
            return (*super().statistics(), *check_of(self))
        options = {"from_logits": self.from_logits, **self._schema_options}
        return (TopLabelHistogram(max_bins=self.max_bins, **options), *check_of(self))

    def _curve(self, stairs: Staircase) -> CalibrationPoints:
        return _points(bin_sums(stairs, self.n_bins, self.strategy), stairs)

    def read(self, stairs: Staircase) -> float:
        """Return the error with every cell at its midpoint."""
        bins = bin_sums(stairs, self.n_bins, self.strategy)
        return self._of_gaps(np.abs(floats(bins.positives - bins.scores)), floats(bins.rows))

    def _of_gaps(self, gap: Floats, rows: Floats) -> float:
        """Return the error from each bin's gap, summed over its rows; ``nan`` without rows."""
        if not rows.any():
            return math.nan
        return self._whole(self._parts(gap, rows), rows.sum())

    def certain(self, stairs: Staircase) -> tuple[float, float, float]:
        """Return the error with the smallest, the estimated and the largest gap of each bin."""
        bins = uncertain_bin_sums(stairs, self.n_bins, self.strategy)
        least, most = self._between(bins, bins, stairs.positives + stairs.negatives)
        return least, self.read(stairs), most

    def _between(
        self, fewest: UncertainBins, bins: UncertainBins, total: float
    ) -> tuple[float, float]:
        """Return the error with the smallest and the largest gap of each bin.

        Args:
            fewest: The bins, where unknown labels are negative.
            bins: The same bins, where unknown labels are positive.
            total: The weight of all rows.
        """
        rows, below, above = bins.p + bins.n, fewest.p - bins.high, bins.p - bins.low
        # Of the rows that may or may not be in a bin, a positive widens a gap above 0 by at most
        # 1 - score, a negative a gap below 0 by its score. The norm of a bin is convex or monotone
        # in their number, so it is largest with all of them or none.
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
        """Return what each bin adds to the norm, where `gap` is summed over the rows of the bin."""
        if self.norm == "l1":
            return gap
        share = ratio_or(gap, rows, 0.0)
        return share if self.norm == "max" else gap * share

    def _whole(self, parts: Floats, total: float) -> float:
        if self.norm == "max":
            return float(parts.max())
        error = parts.sum() / total
        return float(error if self.norm == "l1" else np.sqrt(error))


class CalibrationCurve(ScoreMetric[CalibrationPoints | Curves]):
    """Calibration curve (reliability diagram): fractions of positives over mean scores, in bins.

    Formula: o_b = P_b / n_b over f_b = mean_(i in b) s_i, with P_b positives among the n_b rows of
    bin b.

    A bin contains its upper edge but not its lower one; the first also contains 0. Bins without
    rows are left out. A cell of several scores is read at its midpoint, and `bounds()` holds, for
    the bins that are shown, wherever in their cells the scores are. (n, K) scores give a tuple of
    curves, each class against the rest.

    The other parameters are those of `ScoreMetric`.

    Args:
        n_bins: How many bins.
        strategy: ``"uniform"``: bins of equal width on [0, 1]; ``"quantile"``: bins of equal mass,
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
        """Return the score histogram, and the check that scores are probabilities."""
        return (*super().statistics(), *check_of(self))

    def readout(self, scores: ScoreHistogram, *_: object) -> CalibrationPoints | Curves:
        """Return the curve with every cell at its midpoint, or one per class."""
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

    def certain(self, stairs: Staircase) -> tuple[CalibrationPoints, CalibrationPoints]:
        """Return the lower and the upper bounds of each point, for one class."""
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
        # Rows that may be in the bin move its mean only towards themselves.
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


def _points(bins: ScoreBins, stairs: Staircase) -> CalibrationPoints:
    rows = floats(bins.rows)
    shown = rows > 0
    if not shown.any():
        return CalibrationPoints(np.array([math.nan]), np.array([math.nan]))
    true, pred = floats(bins.positives)[shown], floats(bins.scores)[shown]
    points = CalibrationPoints(true / rows[shown], pred / rows[shown])
    return points.told(rows=rows[shown] * (stairs.rows / rows.sum()))  # weights may be scaled


def check_of(metric: ScoredMetric[Any]) -> tuple[Statistic, ...]:
    """Return the statistic that checks that scores are probabilities; logits need none."""
    if metric.from_logits:
        return ()
    if getattr(metric, "multilabel", False):
        return (LabelProbabilities(labels=metric.labels, nan_policy=metric.nan_policy),)
    return (Probabilities(**metric._schema_options),)
