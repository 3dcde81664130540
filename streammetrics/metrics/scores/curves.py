"""Curves over thresholds: ROC, precision-recall, DET."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streammetrics.core.results.curves import Curves, Points
from streammetrics.core.types import NoAverage
from streammetrics.metrics.families import SEVERAL, Family
from streammetrics.metrics.scores.base import (
    ClassScoreMetric,
    CurveMetric,
    certain_points,
    corners,
    middle_of,
    one_or_all,
    staircases,
)

if TYPE_CHECKING:
    from streammetrics.core.types import Array, Floats
    from streammetrics.metrics.scores.base import Corners, CumulativeCounts
    from streammetrics.statistics.scores.histogram import ScoreHistogram


class _ROC(NamedTuple):
    fpr: Floats
    tpr: Floats
    thresholds: Floats


class ROCPoints(Points, _ROC):
    """False and true positive rates (m,) of the rows with a score of at least each threshold."""


class _PR(NamedTuple):
    precision: Floats
    recall: Floats
    thresholds: Floats


class PRPoints(Points, _PR):
    """Precision (m + 1,) and recall (m + 1,) at thresholds (m,): score >= threshold is positive."""


class ROCCurve(CurveMetric[ROCPoints | Any]):
    """ROC curve: the true positive rate over the false positive rate, at every threshold.

    Formula: TP / P over FP / N, with P positives and N negatives.

    The first point is (0, 0) at the threshold ``inf``, followed by one per distinct score. Beyond
    `max_bins` distinct scores there is one point per cell, at its lower edge. Every point is exact;
    `exact` is True if every score has a point. A rate is ``nan`` if its class has no rows.
    (n, K) scores give a tuple of curves, one per class.

    Parameters are those of `CurveMetric`.

    Memory and cost: that of a `ScoreHistogram`; the curve takes 24 bytes per point.

    Reference: ``sklearn.metrics.roc_curve(drop_intermediate=False)``.

    Example:
        >>> import streammetrics as sm
        >>> curve = sm.ROCCurve().update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).compute()
        >>> curve.fpr.tolist(), curve.tpr.tolist()
        ([0.0, 0.0, 0.5, 0.5, 1.0], [0.0, 0.5, 0.5, 1.0, 1.0])
        >>> curve.thresholds.tolist()
        [inf, 0.8, 0.4, 0.35, 0.1]
    """

    family = Family.ROC_CURVE
    _incomparable = SEVERAL

    interval = certain_points

    def readout(self, scores: ScoreHistogram) -> ROCPoints | Curves:
        """Return the curve, or one per class."""
        return one_or_all([roc_points(stairs) for stairs in staircases(scores)], self.labels)


class PrecisionRecallCurve(CurveMetric[PRPoints | Any]):
    """Precision-recall curve: the precision over the recall, from the lowest threshold up.

    Formula: TP / (TP + FP) over TP / P, with P positives.

    There is one point per distinct score, and a last one (recall 0, precision 1) without a
    threshold. Beyond `max_bins` distinct scores there is one point per cell, at its lower edge.
    Every point is exact; `exact` is True if every score has a point. Recall is ``nan``
    without positives. (n, K) scores give a tuple of curves, one per class.

    Parameters are those of `CurveMetric`.

    Memory and cost: that of a `ScoreHistogram`; the curve takes 24 bytes per point.

    Reference: ``sklearn.metrics.precision_recall_curve``.

    Example:
        >>> import streammetrics as sm
        >>> curve = sm.PrecisionRecallCurve().update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).compute()
        >>> curve.precision.round(3).tolist(), curve.recall.tolist()
        ([0.5, 0.667, 0.5, 1.0, 1.0], [1.0, 1.0, 0.5, 0.5, 0.0])
        >>> curve.thresholds.tolist()
        [0.1, 0.35, 0.4, 0.8]
    """

    family = Family.PR_CURVE
    _incomparable = SEVERAL

    interval = certain_points

    def readout(self, scores: ScoreHistogram) -> PRPoints | Curves:
        """Return the curve, or one per class."""
        return one_or_all([pr_points(stairs) for stairs in staircases(scores)], self.labels)


def _points(stairs: CumulativeCounts) -> tuple[Array, Array, Floats]:
    """Return the true and false positives at ascending thresholds, and the thresholds."""
    parts = [(steps.tp, steps.fp, steps.low) for steps in stairs.steps()]
    if not parts:
        return np.zeros(0), np.zeros(0), np.zeros(0)
    tp, fp, low = map(np.concatenate, zip(*parts, strict=True))
    return tp, fp, low


def roc_points(stairs: CumulativeCounts) -> ROCPoints:
    """Return the ROC curve of one class."""
    tp, fp, low = _points(stairs)
    with np.errstate(invalid="ignore"):
        fpr = np.append(fp, 0)[::-1] / np.float64(stairs.negatives)
        tpr = np.append(tp, 0)[::-1] / np.float64(stairs.positives)
    thresholds = np.append(stairs.probabilities(low), math.inf)[::-1].copy()
    return ROCPoints(fpr, tpr, thresholds).told(**rows_of(stairs))


def pr_points(stairs: CumulativeCounts) -> PRPoints:
    """Return the precision-recall curve of one class."""
    tp, fp, low = _points(stairs)
    with np.errstate(invalid="ignore"):
        recall = np.append(tp, 0) / np.float64(stairs.positives)
    points = PRPoints(np.append(tp / (tp + fp), 1.0), recall, stairs.probabilities(low))
    return points.told(**rows_of(stairs))


def rows_of(stairs: CumulativeCounts) -> dict[str, Any]:
    """Return the information on rows shown in a plot; no counts if weights are fractional."""
    known = {"positives": stairs.positives, "negatives": stairs.negatives}
    return {"exact": stairs.exact, **(known if stairs.counted else {})}


class _DET(NamedTuple):
    fpr: Floats
    fnr: Floats
    thresholds: Floats


class DETPoints(Points, _DET):
    """False positive and false negative rates (m,) at each threshold."""


class DETCurve(CurveMetric[DETPoints | Any]):
    """DET curve (detection error tradeoff): the false negative rate over the false positive rate.

    Formula: FN / P over FP / N, with P positives and N negatives.

    The curve runs from the highest threshold without false negatives to the lowest without false
    positives, with one point per distinct score. Beyond `max_bins` distinct scores there is one
    point per cell, at its lower edge. Every point is exact; `exact` is True if every score has a
    point. A rate is ``nan`` if its class has no rows. (n, K) scores give a tuple of curves, one per
    class.

    Parameters are those of `CurveMetric`.

    Memory and cost: that of a `ScoreHistogram`; the curve takes 24 bytes per point.

    Reference: ``sklearn.metrics.det_curve``.

    Example:
        >>> import streammetrics as sm
        >>> curve = sm.DETCurve().update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).compute()
        >>> curve.fpr.tolist(), curve.fnr.tolist(), curve.thresholds.tolist()
        ([0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.35, 0.4, 0.8])
    """

    family = Family.DET_CURVE
    _incomparable = SEVERAL

    interval = certain_points

    def readout(self, scores: ScoreHistogram) -> DETPoints | Curves:
        """Return the curve, or one per class."""
        return one_or_all([_det_points(stairs) for stairs in staircases(scores)], self.labels)


def _det_points(stairs: CumulativeCounts) -> DETPoints:
    known = corners(stairs)
    cuts = np.append(stairs.probabilities(known.low), math.inf)
    first = int(np.flatnonzero(known.tp == known.tp[0])[-1])
    last = int(np.flatnonzero(known.fp == 0)[0])
    shown = slice(first, max(first, last) + 1)
    with np.errstate(invalid="ignore"):
        fpr = known.fp[shown] / np.float64(stairs.negatives)
        fnr = known.fn[shown] / np.float64(stairs.positives)
    return DETPoints(fpr, fnr, cuts[shown].copy()).told(**rows_of(stairs))


class EqualErrorRate(ClassScoreMetric[NoAverage]):
    """Equal error rate: the false positive rate where it equals the false negative rate.

    Formula: FP / N = FN / P, with P positives and N negatives.

    The ROC curve is interpolated linearly between thresholds. If the point lies in a cell of
    several scores, the bounds are the larger of the two smallest rates in the cell and the smaller
    of the two largest. ``nan`` without rows of both classes.

    Parameters are those of `ClassScoreMetric`.

    Memory and cost: that of a `ScoreHistogram`; `compute` takes about 20 ns per cell.

    Reference: ``scipy.optimize.brentq`` of ``sklearn.metrics.roc_curve``; torchmetrics' EER is
    the mean of both rates at the threshold where they are nearest.

    Example:
        >>> import streammetrics as sm
        >>> sm.EqualErrorRate().update([0, 0, 1, 1, 1], [0.1, 0.4, 0.35, 0.8, 0.9]).compute()
        0.3333333333333333
    """

    higher_is_better = False
    value_range = (0.0, 1.0)
    family = Family.CROSSING

    def certain(self, stairs: CumulativeCounts) -> tuple[float, float, float]:
        """Return the smallest, the interpolated and the largest rate."""
        if not stairs.positives or not stairs.negatives:
            return math.nan, math.nan, math.nan
        return self._found(corners(stairs))

    read = middle_of(certain)

    def _found(self, known: Corners) -> tuple[float, float, float]:
        fpr = known.fp / np.float64(known.fp[0])
        fnr = known.fn / np.float64(known.tp[0])
        # From the lowest threshold up, false positives decrease and false negatives increase.
        cell = int(np.flatnonzero(fpr >= fnr)[-1])
        if cell + 1 == fpr.size:  # a threshold above all scores: nothing is predicted positive
            return (float(fpr[cell]),) * 3
        (most_p, least_p), (least_n, most_n) = fpr[cell : cell + 2], fnr[cell : cell + 2]
        gap, other = most_p - least_n, most_n - least_p
        value = float(least_n + (most_n - least_n) * (gap / (gap + other)))
        if known.single[cell]:
            return value, value, value
        return float(max(least_p, least_n)), value, float(min(most_p, most_n))
