"""How sure are curves: each of their points, at its threshold or in its bin."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from streammetrics.core.confidence import (
    Asked,
    ConfidenceInterval,
    not_anytime,
    rule_of,
    without,
)
from streammetrics.core.results.labelled import LabelledArray
from streammetrics.inference.areas import Influences
from streammetrics.inference.distributions import normal_quantile
from streammetrics.inference.limits import share_limits
from streammetrics.inference.scores import ladders
from streammetrics.inference.shares import units_of
from streammetrics.metrics.families import Family
from streammetrics.metrics.scores import calibration
from streammetrics.metrics.scores.base import one_or_all
from streammetrics.metrics.scores.bins import bins_of_cells

if TYPE_CHECKING:
    from collections.abc import Callable

    from streammetrics.core.metric import Metric
    from streammetrics.core.results.curves import Points
    from streammetrics.core.types import Floats
    from streammetrics.inference.areas import Ladder
    from streammetrics.metrics.scores.view import Staircase
    from streammetrics.statistics.scores.histogram import ScoreHistogram
    from streammetrics.statistics.sums.forecasts import BinnedShares

    Sides = tuple[Floats, Floats]  # sums of weights, and of their squares

P = TypeVar("P", bound="Points")

_POINTWISE = "Wilson's score of each point alone"


def _pointwise(
    metric: Any,
    asked: Asked,
    scores: ScoreHistogram,
    sides_of: Callable[[Ladder, P, float], list[P]],
) -> ConfidenceInterval:
    if asked.anytime:
        raise not_anytime(metric)
    value = metric.readout(scores)
    cells = [ladder for _, ladder in ladders(metric, asked, scores)]
    points = [value] if len(cells) == 1 else list(value)
    pairs = [sides_of(*both, asked.tail) for both in zip(cells, points, strict=True)]
    low, high = (one_or_all(side, metric.labels) for side in zip(*pairs, strict=True))
    return ConfidenceInterval(low, high, asked.level, _POINTWISE)


def _shares(rates: Floats, success: Sides, failure: Sides, tail: float) -> Sides:
    """Return the limits of shares, of which the rows of both kinds and Σ w² of them are given."""
    units = units_of(*zip(success, failure, strict=True))
    n = success[0] + failure[0]
    return share_limits(rates * n, (1 - rates) * n, tail, units)


def _of_class(rates: Floats, weight: float, squares: Floats, tail: float) -> Sides:
    """Return the limits of shares of a class, whose rows are all taken to weigh as they do."""
    unit = squares.sum() / weight if weight else 1.0
    return share_limits(rates * weight, (1 - rates) * weight, tail, (unit, unit))


def _down(weights: Floats, squares: Floats) -> Sides:
    """Return sums from each cell up, and at last those above all."""
    pair = [np.append(np.cumsum(side[::-1])[::-1], 0.0) for side in (weights, squares)]
    return pair[0], pair[1]


def _rest(side: Sides) -> Sides:
    """Return what is below each threshold."""
    return side[0][0] - side[0], np.maximum(side[1][0] - side[1], 0.0)


def _up(side: Sides) -> Sides:
    """Return sums in the order of falling thresholds."""
    return side[0][::-1], side[1][::-1]


@rule_of(Family.ROC_CURVE)
def of_roc(metric: Metric, asked: Asked, scores: ScoreHistogram) -> ConfidenceInterval:
    """Both rates at each threshold; above all scores they are 0 for certain."""

    def sides(cells: Ladder, points: Any, tail: float) -> Any:
        false, true = _down(cells.n, cells.n_square), _down(cells.p, cells.p_square)
        fpr, tpr = (
            _shares(rates, _up(side), _up(_rest(side)), tail)
            for rates, side in ((points.fpr, false), (points.tpr, true))
        )
        for side in (*fpr, *tpr):
            side[:1] *= 0
        return [type(points)(f, t, points.thresholds) for f, t in zip(fpr, tpr, strict=True)]

    return _pointwise(metric, asked, scores, sides)


@rule_of(Family.DET_CURVE)
def of_errors(metric: Metric, asked: Asked, scores: ScoreHistogram) -> ConfidenceInterval:
    """Both rates of errors at each threshold."""

    def sides(cells: Ladder, points: Any, tail: float) -> Any:
        fpr, fnr = (
            _of_class(points.fpr, cells.negatives, cells.n_square, tail),
            _of_class(points.fnr, cells.positives, cells.p_square, tail),
        )
        return [type(points)(f, m, points.thresholds) for f, m in zip(fpr, fnr, strict=True)]

    return _pointwise(metric, asked, scores, sides)


@rule_of(Family.GAINS)
def of_gains(metric: Metric, asked: Asked, scores: ScoreHistogram) -> ConfidenceInterval:
    """The share of the positives at each depth, the depth being given; it is 0 of no rows."""

    def sides(cells: Ladder, points: Any, tail: float) -> Any:
        gain = _of_class(points.gain, cells.positives, cells.p_square, tail)
        for side in gain:
            side[:1] *= 0
        return [type(points)(points.depth, side, points.thresholds) for side in gain]

    return _pointwise(metric, asked, scores, sides)


@rule_of(Family.PR_CURVE)
def of_precision_recall(metric: Metric, asked: Asked, scores: ScoreHistogram) -> ConfidenceInterval:
    """Precision and recall at each threshold; the last point is there by definition."""

    def sides(cells: Ladder, points: Any, tail: float) -> Any:
        false, true = _down(cells.n, cells.n_square), _down(cells.p, cells.p_square)
        precision = _shares(points.precision, true, false, tail)
        recall = _shares(points.recall, true, _rest(true), tail)
        for side in precision:
            side[-1] = 1.0
        for side in recall:
            side[-1] *= 0
        return [
            type(points)(p, r, points.thresholds) for p, r in zip(precision, recall, strict=True)
        ]

    return _pointwise(metric, asked, scores, sides)


@rule_of(Family.CALIBRATION_FIT)
def of_fit(metric: Any, asked: Asked, scores: ScoreHistogram, *_: object) -> ConfidenceInterval:
    """A coefficient, by the information of its fit, or by what each row of a weight adds."""
    if asked.anytime:
        raise not_anytime(metric)
    found = ladders(metric, asked, scores)
    if len(found) > 1 and metric.average is not None:
        raise without(metric, "classes share their rows; average=None has limits for each")
    weighted = scores.weighed.squares is not None
    method = "Wald's, by the squares of weights" if weighted else "Wald's, by the information"
    reach = normal_quantile(1 - asked.tail)
    low, high = [], []
    for stairs, cells in found:
        fit, sides = metric._fit(stairs), metric._sides(stairs)
        error = fit.error
        if weighted and not math.isnan(fit.value):
            adds = Influences(fit.moved * (1 - fit.share), -fit.moved * fit.share)
            error = adds.error(cells)
        low.append(sides[0] - reach * error)
        high.append(sides[1] + reach * error)
    if len(found) == 1:
        return ConfidenceInterval(low[0], high[0], asked.level, method)
    labels = metric.labels or range(len(found))
    below, above = (LabelledArray.of(side, labels) for side in (low, high))
    return ConfidenceInterval(below, above, asked.level, method)


@rule_of(Family.CALIBRATION_CURVE)
def of_calibration(
    metric: Any, asked: Asked, scores: ScoreHistogram, *_: object
) -> ConfidenceInterval:
    """The fraction of positives in each bin, given its rows and their mean score."""
    if asked.anytime:
        raise not_anytime(metric)
    found = [_of_bins(metric, *both) for both in ladders(metric, asked, scores)]
    sides = []
    for place, certain in enumerate(metric.interval(scores)):
        curve = [certain] if isinstance(certain, calibration.CalibrationPoints) else list(certain)
        points = [
            type(one)(
                np.atleast_1d(_shares(one.prob_true, *both, asked.tail)[place]), one.prob_pred
            )
            for one, both in zip(curve, found, strict=True)
        ]
        sides.append(one_or_all(points, metric.labels))
    return ConfidenceInterval(sides[0], sides[1], asked.level, _POINTWISE)


def _of_bins(
    metric: calibration.CalibrationCurve, stairs: Staircase, cells: Ladder
) -> tuple[Sides, Sides]:
    """Return the positives and the negatives of the bins that a curve shows."""
    at = bins_of_cells(stairs, metric.n_bins, metric.strategy)
    every = (cells.p, cells.p_square, cells.n, cells.n_square)
    sums = np.array([np.bincount(at, side, metric.n_bins) for side in every])
    shown = sums[0] + sums[2] > 0
    p, p_square, n, n_square = sums[:, shown] if shown.any() else np.zeros((4, 1))
    return (p, p_square), (n, n_square)


@rule_of(Family.BINNED_SHARES)
def of_bins(metric: Metric, asked: Asked, held: BinnedShares) -> ConfidenceInterval:
    """The share of each bin alone."""
    if asked.anytime:
        raise not_anytime(metric)
    rows = np.asarray(held.bins.exact().to_float())
    if rows.sum() != asked.n_rows:
        raise without(metric, "its state holds weights, and not how many rows they are worth")
    low, high = share_limits(rows, rows.sum() - rows, asked.tail)
    below, above = (LabelledArray.of(side, range(rows.size), "bin") for side in (low, high))
    return ConfidenceInterval(below, above, asked.level, _POINTWISE)
