"""How sure are curves: each of their points, at its threshold or in its bin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.confidence import (
    Asked,
    ConfidenceInterval,
    confidence_of,
    not_anytime,
    without,
)
from streammetrics.core.results.values import LabelledArray
from streammetrics.inference.distributions import normal_quantile
from streammetrics.inference.limits import share_limits
from streammetrics.inference.scores import ladders
from streammetrics.metrics.scores import calibration, curves, errors, gains, reliability
from streammetrics.metrics.scores.base import one_or_all

if TYPE_CHECKING:
    from collections.abc import Callable

    from streammetrics.inference.areas import Ladder

_POINTWISE = "Wilson's score of each point alone"


def _pointwise(
    metric: Any, asked: Asked, scores: Any, sides_of: Callable[[Ladder, Any, float], Any]
) -> ConfidenceInterval:
    if asked.anytime:
        raise not_anytime(metric)
    value = metric.readout(scores)
    cells = [ladder for _, ladder in ladders(metric, asked, scores)]
    points = [value] if len(cells) == 1 else list(value)
    pairs = [sides_of(*both, asked.tail) for both in zip(cells, points, strict=True)]
    low, high = (one_or_all(side, metric.labels) for side in zip(*pairs, strict=True))
    return ConfidenceInterval(low, high, asked.level, _POINTWISE)


def _shares(rates: Any, n: Any, tail: float) -> tuple[Any, Any]:
    return share_limits(rates * n, (1 - rates) * n, tail)


@confidence_of.register(curves.ROCCurve)
def of_roc(metric: Any, asked: Asked, scores: Any) -> ConfidenceInterval:
    """Both rates at each threshold; above all scores they are 0 for certain."""

    def sides(cells: Ladder, points: Any, tail: float) -> Any:
        fpr, tpr = (
            _shares(points.fpr, cells.negatives, tail),
            _shares(points.tpr, cells.positives, tail),
        )
        for side in (*fpr, *tpr):
            side[:1] *= 0
        return [type(points)(f, t, points.thresholds) for f, t in zip(fpr, tpr, strict=True)]

    return _pointwise(metric, asked, scores, sides)


@confidence_of.register(errors.DETCurve)
def of_errors(metric: Any, asked: Asked, scores: Any) -> ConfidenceInterval:
    """Both rates of errors at each threshold."""

    def sides(cells: Ladder, points: Any, tail: float) -> Any:
        fpr, fnr = (
            _shares(points.fpr, cells.negatives, tail),
            _shares(points.fnr, cells.positives, tail),
        )
        return [type(points)(f, m, points.thresholds) for f, m in zip(fpr, fnr, strict=True)]

    return _pointwise(metric, asked, scores, sides)


@confidence_of.register(gains.CumulativeGains)
def of_gains(metric: Any, asked: Asked, scores: Any) -> ConfidenceInterval:
    """The share of the positives at each depth, the depth being given; it is 0 of no rows."""

    def sides(cells: Ladder, points: Any, tail: float) -> Any:
        gain = _shares(points.gain, cells.positives, tail)
        for side in gain:
            side[:1] *= 0
        return [type(points)(points.depth, side, points.thresholds) for side in gain]

    return _pointwise(metric, asked, scores, sides)


@confidence_of.register(curves.PrecisionRecallCurve)
def of_precision_recall(metric: Any, asked: Asked, scores: Any) -> ConfidenceInterval:
    """Precision and recall at each threshold; the last point is there by definition."""

    def sides(cells: Ladder, points: Any, tail: float) -> Any:
        called = np.append(cells.p_above + cells.p + cells.n_above + cells.n, 0.0)
        precision = _shares(points.precision, called, tail)
        recall = _shares(points.recall, cells.positives, tail)
        for side in precision:
            side[-1] = 1.0
        for side in recall:
            side[-1] *= 0
        return [
            type(points)(p, r, points.thresholds) for p, r in zip(precision, recall, strict=True)
        ]

    return _pointwise(metric, asked, scores, sides)


@confidence_of.register(reliability.CalibrationIntercept)
@confidence_of.register(reliability.CalibrationSlope)
def of_fit(metric: Any, asked: Asked, scores: Any, *_: Any) -> ConfidenceInterval:
    """A coefficient, by the information of its fit."""
    if asked.anytime:
        raise not_anytime(metric)
    found = ladders(metric, asked, scores)
    fits = [metric._fit(stairs) for stairs, _ in found]
    spans = [metric._sides(stairs) for stairs, _ in found]
    reach = normal_quantile(1 - asked.tail)
    errors = [error for _, error in fits]
    if len(fits) > 1 and metric.average is not None:
        raise without(metric, "classes share their rows; average=None has limits for each")
    low = [side[0] - reach * error for side, error in zip(spans, errors, strict=True)]
    high = [side[1] + reach * error for side, error in zip(spans, errors, strict=True)]
    if len(fits) == 1:
        return ConfidenceInterval(low[0], high[0], asked.level, "Wald's, by the information")
    labels = metric.labels or range(len(fits))
    below, above = (LabelledArray.of(side, labels) for side in (low, high))
    return ConfidenceInterval(below, above, asked.level, "Wald's, by the information")


@confidence_of.register(calibration.CalibrationCurve)
def of_calibration(metric: Any, asked: Asked, scores: Any, *_: Any) -> ConfidenceInterval:
    """The fraction of positives in each bin, given its rows and their mean score."""
    if asked.anytime:
        raise not_anytime(metric)
    ladders(metric, asked, scores)
    sides = []
    for place, certain in enumerate(metric.interval(scores)):
        curve = [certain] if isinstance(certain, calibration.CalibrationPoints) else list(certain)
        rows = calibration.rows_of_bins(metric, scores)
        points = [
            type(one)(np.atleast_1d(_shares(one.prob_true, n, asked.tail)[place]), one.prob_pred)
            for one, n in zip(curve, rows, strict=True)
        ]
        sides.append(one_or_all(points, metric.labels))
    return ConfidenceInterval(sides[0], sides[1], asked.level, _POINTWISE)
