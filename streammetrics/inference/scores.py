"""How sure are metrics of scores: areas by their influences, best thresholds by a bootstrap."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streammetrics.core.confidence import (
    Asked,
    ConfidenceInterval,
    confidence_of,
    not_anytime,
    without,
)
from streammetrics.core.results.values import LabelledArray
from streammetrics.inference.areas import (
    Ladder,
    distance_influences,
    partial_roc_influences,
    precision_influences,
    roc_influences,
)
from streammetrics.inference.bootstrap import best_errors, point_errors, top_rise
from streammetrics.inference.distributions import normal_quantile
from streammetrics.inference.limits import clopper_pearson, limits
from streammetrics.inference.tables import no_squares
from streammetrics.metrics.scores import errors, gains, precision_area, roc_area, thresholds
from streammetrics.metrics.scores.view import staircases
from streammetrics.statistics.scores.versus import VersusHistogram

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streammetrics.core.metric import Metric
    from streammetrics.core.types import Floats
    from streammetrics.metrics.scores.base import ClassScoreMetric
    from streammetrics.metrics.scores.view import Staircase
    from streammetrics.statistics.scores.histogram import ScoreHistogram


_BOYD = 30  # positives below which the influences of an average precision say too little


def ladders(
    metric: Metric[Any], asked: Asked, scores: ScoreHistogram
) -> list[tuple[Staircase, Ladder]]:
    """Return what each class is read from, with its cells."""
    weighed = scores.weighed
    classes = scores.classes()
    squares = weighed.squares or (None,) * len(classes)
    found = []
    for stairs, histogram, square in zip(staircases(scores), classes, squares, strict=True):
        negatives, positives = histogram.totals()
        counted = isinstance(negatives, int) and isinstance(positives, int)
        ones = counted and scores.amount == asked.n_rows
        if not weighed.known or (square is None and not ones):
            raise no_squares(metric)
        found.append((stairs, Ladder.of(stairs, positives, negatives, square)))
    return found


def _roc(metric: roc_area.ROCAUC, cells: Ladder, value: float) -> tuple[float, str]:
    rate = _rate(metric)
    if rate == 1:
        if min(cells.rows) <= 1:
            return 0.0, "DeLong"
        return roc_influences(cells, value).error(cells), "DeLong"
    side = cells if metric.min_tpr is None else cells.mirrored()
    error = partial_roc_influences(side, rate).error(side)
    return error / (2 * (rate - rate**2 / 2)), "influences of the partial area"


def _rate(metric: roc_area.ROCAUC) -> float:
    """Return up to which rate the area goes, of false positives or of false negatives."""
    if metric.min_tpr is not None:
        return 1 - metric.min_tpr
    return 1.0 if metric.max_fpr is None else metric.max_fpr


def _precision(metric: Metric[Any], cells: Ladder, value: float) -> tuple[float, str]:
    positives = cells.rows[0]
    if positives < _BOYD:
        error = math.sqrt(max(value * (1 - value), 0.0) / positives)
        return error, f"Boyd, of {positives:g} positives"
    trapezoid = isinstance(metric, precision_area.PRAUC)
    return precision_influences(cells, value, trapezoid=trapezoid).error(cells), "influences"


def _distance(metric: Metric[Any], cells: Ladder, value: float) -> tuple[float, str]:  # noqa: ARG001 - as others
    method = "binomial at the largest distance, the lower limit less what a maximum is too high"
    return distance_influences(cells).error(cells), method


def _lowered(low: float, cells: Ladder) -> float:
    """Return the largest distance less what it is too large as a maximum, still above 0.

    Redraws start from a maximum that is too high already, and rise above it by less than it did
    above that of the population: twice their rise makes up for both.
    """
    return max(low - 2 * top_rise(cells), low / 1024)


def _threshold(metric: Metric[Any], cells: Ladder, value: float) -> tuple[float, str]:  # noqa: ARG001 - as others
    return best_errors(metric, cells), "bootstrap of the cells"


def _point(metric: Metric[Any], cells: Ladder, value: float) -> tuple[float, str]:  # noqa: ARG001 - as others
    return point_errors(metric, cells), "bootstrap of the cells"


def _gini(metric: Metric[Any], cells: Ladder, value: float) -> tuple[float, str]:  # noqa: ARG001 - as others
    error, method = _roc(roc_area.ROCAUC(), cells, (value + 1) / 2)
    return 2 * error, method


_ERRORS: dict[type, Callable[[Any, Ladder, float], tuple[float, str]]] = {
    roc_area.ROCAUC: _roc,
    precision_area.AveragePrecision: _precision,
    precision_area.PRAUC: _precision,
    thresholds.KolmogorovSmirnov: _distance,
    thresholds.PrecisionAtRecall: _threshold,
    thresholds.RecallAtPrecision: _threshold,
    thresholds.SensitivityAtSpecificity: _threshold,
    thresholds.SpecificityAtSensitivity: _threshold,
    errors.EqualErrorRate: _point,
    gains.Gini: _gini,
    gains.TopDecileLift: _point,
}
_OF_BOTH = (
    roc_area.ROCAUC, errors.EqualErrorRate, gains.Gini, thresholds.KolmogorovSmirnov
)  # fmt: skip


class _OfClass(NamedTuple):
    """A class's value, between which ones it certainly is, and how sure that is."""

    value: float
    low: float
    high: float
    error: float
    method: str
    rows: float  # what the smallest class that it depends on is worth


def _of_class(metric: ClassScoreMetric, stairs: Staircase, cells: Ladder) -> _OfClass:
    value = metric.read(stairs)
    low, high = (value, value) if stairs.exact else metric._sides(stairs)
    error, method = math.nan, ""
    if value == value:  # noqa: PLR0124 - the test for nan
        error_of = next(_ERRORS[cls] for cls in type(metric).__mro__ if cls in _ERRORS)
        error, method = error_of(metric, cells, value)
    if isinstance(metric, thresholds.KolmogorovSmirnov) and error > 0:
        low = _lowered(low, cells)
    rows = min(cells.rows) if isinstance(metric, _OF_BOTH) else cells.rows[0]
    return _OfClass(value, low, high, error, method, rows)


def of_scores(metric: ClassScoreMetric, asked: Asked, scores: Any, *_: Any) -> ConfidenceInterval:
    """A number for one class, or a mean of those of several."""
    if asked.anytime:
        raise not_anytime(metric)
    if metric.average == "micro":
        raise without(
            metric, "the scores of a row hang together, and how is not kept; each class has limits"
        )
    found = ladders(metric, asked, scores)
    each = [_of_class(metric, stairs, cells) for stairs, cells in found]
    classes = tuple(stairs for stairs, _ in found)
    least: Any = metric._averaged(classes, [one.low for one in each])[0]
    most: Any = metric._averaged(classes, [one.high for one in each])[0]
    if len(each) == 1 or metric.average is None:
        return _one_by_one(metric, asked, each, least, most)
    every = [cells for _, cells in found]
    values, errors = (np.array([one[place] for one in each]) for place in (0, 3))
    error, rows = _error_of_mean(metric, scores, every, values, errors), min(o.rows for o in each)
    least, most, exact = _sides(least, most, error, rows, _ends(metric), asked)
    method = f"{_method(each)}, of a mean over classes as if they varied together (at most)"
    if exact:
        method = f"Clopper-Pearson of {rows:g} rows, as no row varies"
    return ConfidenceInterval(least, most, asked.level, method)


def _one_by_one(
    metric: ClassScoreMetric, asked: Asked, each: Sequence[_OfClass], least: Any, most: Any
) -> ConfidenceInterval:
    """Return the limits of the only class, or of each of several."""
    sides = [np.atleast_1d(np.asarray(side, np.float64)) for side in (least, most)]
    pairs = [
        _sides(low, high, one.error, one.rows, _ends(metric), asked)
        for low, high, one in zip(*sides, each, strict=True)
    ]
    exactly = [one.rows for (*_, exact), one in zip(pairs, each, strict=True) if exact]
    method = _method(each)
    if exactly:
        method = f"Clopper-Pearson of {exactly[0]:g} rows, as no row varies"
    low, high = ([pair[place] for pair in pairs] for place in (0, 1))
    if metric.average is None and len(each) > 1:
        axes = least.axes
        return ConfidenceInterval(
            LabelledArray(low, axes), LabelledArray(high, axes), asked.level, method
        )
    return ConfidenceInterval(low[0], high[0], asked.level, method)


def _method(each: Sequence[_OfClass]) -> str:
    return next(filter(None, [one.method for one in each]), "no rows of a class")


def _ends(metric: ClassScoreMetric) -> tuple[float, float]:
    return _least(metric), metric._ends[1]


for _kind in _ERRORS:
    confidence_of.register(_kind, of_scores)


def _sides(
    low: float, high: float, error: float, n: float, ends: tuple[float, float], asked: Asked
) -> tuple[float, float, bool]:
    """Return L(low) and U(high), and whether they are the exact ones of values that do not vary."""
    z = normal_quantile(1 - asked.tail)
    below, above = limits(low, error, z, *ends)[0], limits(high, error, z, *ends)[1]
    if low != low or high != high:  # noqa: PLR0124 - the test for nan
        return math.nan, math.nan, False
    exact = (math.isnan(below) or math.isnan(above)) and n > 0
    if exact:
        start, width = ends[0], ends[1] - ends[0]
        shares = [min(max((side - start) / width, 0.0), 1.0) for side in (low, high)]
        # Where the error is known, only the side at the end needs what is exact.
        if math.isnan(below):
            below = start + width * clopper_pearson(shares[0] * n, n, asked.tail)[0]
        if math.isnan(above):
            above = start + width * clopper_pearson(shares[1] * n, n, asked.tail)[1]
    return float(below), float(above), exact


def _least(metric: Any) -> float:
    """Return the least value that there can be."""
    if isinstance(metric, roc_area.ROCAUC) and (rate := _rate(metric)) < 1:
        return 0.5 * (1 - rate / (2 - rate))  # standardised, an area of 0 is not 0
    least: float = metric._ends[0]
    return least


def _error_of_mean(
    metric: Any, scores: Any, classes: Sequence[Ladder], values: Floats, errors: Floats
) -> float:
    """Return the error of the mean of classes: at most what they have if they vary together.

    The rows of all classes are the same, but not kept together. Those of a class weigh as many as
    there happen to be, which adds its own error.
    """
    known = ~np.isnan(values)
    if metric.average == "macro":
        return float(errors[known].sum() / max(known.sum(), 1))
    versus = isinstance(scores, VersusHistogram)
    sides = [(c.positives, c.p_square) for c in classes]
    if versus:  # each row is among those of 2 (K - 1) pairs
        sides += [(c.negatives, c.n_square) for c in classes]
    weight = np.array([weight for weight, _ in sides])
    squares = sum(square.sum() for _, square in sides)
    weight, shared = (
        (weight.reshape(2, -1).sum(axis=0), 2 * (scores.width - 1)) if versus else (weight, 1)
    )
    share = weight[known] / weight[known].sum()
    mean = float(share @ values[known])
    spread = float(share @ (values[known] - mean) ** 2)
    drawn = math.sqrt(spread * squares * shared) / float(weight[known].sum())
    return float(share @ errors[known]) + drawn
