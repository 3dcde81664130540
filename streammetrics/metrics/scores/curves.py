"""ROC and precision-recall curves over all thresholds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streammetrics.core.results.curves import Curves, Points
from streammetrics.metrics.families import SEVERAL, Family
from streammetrics.metrics.scores.base import CurveMetric, certain_points, one_or_all
from streammetrics.metrics.scores.view import staircases

if TYPE_CHECKING:
    from streammetrics.core.types import Array, Floats
    from streammetrics.metrics.scores.view import Staircase
    from streammetrics.statistics.scores.histogram import ScoreHistogram


__all__ = ["PrecisionRecallCurve", "ROCCurve"]


class _ROC(NamedTuple):
    fpr: Floats
    tpr: Floats
    thresholds: Floats


class ROCPoints(Points, _ROC):
    """False and true positive rates (m,) where the score is at least each threshold."""


class _PR(NamedTuple):
    precision: Floats
    recall: Floats
    thresholds: Floats


class PRPoints(Points, _PR):
    """Precision and recall (m + 1,) where the score is at least each threshold (m,)."""


class ROCCurve(CurveMetric[ROCPoints | Curves]):
    """ROC curve: the true positive rate over the false positive rate, at every threshold.

    Formula: TP / P over FP / N, with P positives and N negatives.

    The first point is (0, 0) at the threshold ``inf``, followed by one per distinct score. Beyond
    `max_bins` distinct scores there is one point per cell, at its lower edge. Every point is exact;
    `exact` says whether there is one for every score. A rate is ``nan`` where its class has no
    rows. (n, K) scores give a tuple of curves, one per class.

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


class PrecisionRecallCurve(CurveMetric[PRPoints | Curves]):
    """Precision-recall curve: the precision over the recall, from the lowest threshold up.

    Formula: TP / (TP + FP) over TP / P, with P positives.

    There is one point per distinct score, and a last one (recall 0, precision 1) without a
    threshold. Beyond `max_bins` distinct scores there is one point per cell, at its lower edge.
    Every point is exact; `exact` says whether there is one for every score. Recall is ``nan``
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


def _points(stairs: Staircase) -> tuple[Array, Array, Floats]:
    """Return the true and false positives at ascending thresholds, and the thresholds."""
    parts = [(steps.tp, steps.fp, steps.low) for steps in stairs.steps()]
    if not parts:
        return np.zeros(0), np.zeros(0), np.zeros(0)
    tp, fp, low = map(np.concatenate, zip(*parts, strict=True))
    return tp, fp, low


def roc_points(stairs: Staircase) -> ROCPoints:
    """Return the ROC curve of one class."""
    tp, fp, low = _points(stairs)
    with np.errstate(invalid="ignore"):
        fpr = np.append(fp, 0)[::-1] / np.float64(stairs.negatives)
        tpr = np.append(tp, 0)[::-1] / np.float64(stairs.positives)
    thresholds = np.append(stairs.probabilities(low), math.inf)[::-1].copy()
    return ROCPoints(fpr, tpr, thresholds).told(**rows_of(stairs))


def pr_points(stairs: Staircase) -> PRPoints:
    """Return the precision-recall curve of one class."""
    tp, fp, low = _points(stairs)
    with np.errstate(invalid="ignore"):
        recall = np.append(tp, 0) / np.float64(stairs.positives)
    points = PRPoints(np.append(tp / (tp + fp), 1.0), recall, stairs.probabilities(low))
    return points.told(**rows_of(stairs))


def rows_of(stairs: Staircase) -> dict[str, Any]:
    """Return what a picture of the curve says about its rows; no numbers for fractional weights."""
    known = {"positives": stairs.positives, "negatives": stairs.negatives}
    return {"exact": stairs.exact, **(known if stairs.counted else {})}
