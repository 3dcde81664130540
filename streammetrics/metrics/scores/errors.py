"""False positive against false negative rates: the DET curve, and where the two are equal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core.results.curves import Curves, Points
from streammetrics.metrics.families import SEVERAL, Family
from streammetrics.metrics.scores.base import (
    ClassScoreMetric,
    CurveMetric,
    certain_points,
    middle_of,
    one_or_all,
)
from streammetrics.metrics.scores.curves import rows_of
from streammetrics.metrics.scores.view import corners, staircases

if TYPE_CHECKING:
    from streammetrics.core.types import Floats
    from streammetrics.metrics.scores.view import Corners, Staircase
    from streammetrics.statistics.scores.histogram import ScoreHistogram

__all__ = ["DETCurve", "EqualErrorRate"]


class _DET(NamedTuple):
    fpr: Floats
    fnr: Floats
    thresholds: Floats


class DETPoints(Points, _DET):
    """False positive and negative rates (m,) where the score is at least each threshold."""


class DETCurve(CurveMetric[DETPoints | Curves]):
    """DET curve (detection error tradeoff): the false negative rate over the false positive rate.

    Formula: FN / P over FP / N, with P positives and N negatives.

    The curve runs from the highest threshold without false negatives to the lowest without false
    positives, with one point per distinct score. Beyond `max_bins` distinct scores there is one
    point per cell, at its lower edge. Every point is exact; `exact` says whether there is one for
    every score. A rate is ``nan`` where its class has no rows. (n, K) scores give a tuple of
    curves, one per class.

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
        return one_or_all([_points(stairs) for stairs in staircases(scores)], self.labels)


def _points(stairs: Staircase) -> DETPoints:
    known = corners(stairs)
    cuts = np.append(stairs.probabilities(known.low), math.inf)
    first = int(np.flatnonzero(known.tp == known.tp[0])[-1])
    last = int(np.flatnonzero(known.fp == 0)[0])
    shown = slice(first, max(first, last) + 1)
    with np.errstate(invalid="ignore"):
        fpr = known.fp[shown] / np.float64(stairs.negatives)
        fnr = known.fn[shown] / np.float64(stairs.positives)
    return DETPoints(fpr, fnr, cuts[shown].copy()).told(**rows_of(stairs))


class EqualErrorRate(ClassScoreMetric):
    """Equal error rate: the false positive rate where it equals the false negative rate.

    Formula: FP / N = FN / P, with P positives and N negatives.

    Between two thresholds the ROC curve is interpolated linearly. Where the point lies in a cell of
    several scores, the bounds are the larger of the smallest two rates in the cell and the smaller
    of the largest two. ``nan`` without rows of both classes.

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

    def certain(self, stairs: Staircase) -> tuple[float, float, float]:
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
