"""Confidence limits of areas, curves and thresholds."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from streammetrics.core.confidence import (
    ConfidenceInterval,
    ConfidenceRequest,
    rule_of,
    without,
)
from streammetrics.core.results.values import LabelledArray, Points
from streammetrics.inference.areas import (
    GROUPS,
    Influences,
    Ladder,
    best_errors,
    distance_influences,
    distance_variances,
    exponential_variance,
    jackknife_error,
    partial_roc_influences,
    point_errors,
    precision_influences,
    roc_influences,
    top_rise,
)
from streammetrics.inference.distributions import (
    clopper_pearson,
    limits,
    normal_quantile,
    share_limits,
    t_quantile,
)
from streammetrics.inference.tables import UNBOUNDED, check_known, no_squares, units_of
from streammetrics.metrics.families import Family
from streammetrics.metrics.scores import calibration
from streammetrics.metrics.scores.areas import ROCAUC
from streammetrics.metrics.scores.base import one_or_all, staircases
from streammetrics.metrics.scores.calibration import bins_of_cells
from streammetrics.statistics.histograms import VersusHistogram

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.metric import Metric
    from streammetrics.core.types import Floats, Numeric
    from streammetrics.metrics.scores import areas, base
    from streammetrics.metrics.scores.base import ClassScoreMetric, CumulativeCounts
    from streammetrics.statistics.forecasts import BinnedShares
    from streammetrics.statistics.histograms import ScoreHistogram

    Sides = tuple[Floats, Floats]  # sums of weights, and of their squares


class StandardError(NamedTuple):
    """The standard error of a value, its method, and its degrees of freedom.

    `excess` is the bias: sample values exceed the population value by this much on average. The
    limit on the side of the middle of the range uses `inward` if that is larger than `error`.
    """

    error: float
    method: str
    freedom: float = math.inf
    excess: float = 0.0
    inward: float = 0.0

    @property
    def inmost(self) -> float:
        """The error for the limit on the side of the middle of the range."""
        return max(self.error, self.inward)

    def reach(self, asked: ConfidenceRequest) -> float:
        """Return the distance of the limits, in standard errors."""
        if math.isfinite(self.freedom):
            return t_quantile(1 - asked.tail, self.freedom)
        return normal_quantile(1 - asked.tail)


# Degrees of freedom given to a model's variance of an area, which is independent of the rows. The
# smallest number for which limits covered the value in 93 % of simulated samples at 0.98, including
# samples whose few positives have twice the spread.
_MODEL_FREEDOM = 10


def _roc(metric: ROCAUC[None], cells: Ladder, value: float) -> StandardError:
    rate = rate_of(metric)
    if rate == 1:
        if min(cells.rows) <= 1:
            return StandardError(0.0, "DeLong")
        variances = roc_influences(cells, value).variances(cells)
        freedom, inward = _freedom(variances, cells.rows), sum(variances)
        if inward > 0 and freedom < math.inf:
            # Near an end most samples lack the few rows that vary, and their error is too small.
            model = exponential_variance(value, *cells.rows)
            inward = (freedom * inward + _MODEL_FREEDOM * model) / (freedom + _MODEL_FREEDOM)
        errors = math.sqrt(sum(variances)), math.sqrt(inward)
        return StandardError(errors[0], "DeLong", freedom, inward=errors[1])
    side = cells if metric.min_tpr is None else cells.mirrored()
    error = partial_roc_influences(side, rate).error(side)
    return StandardError(error / (2 * (rate - rate**2 / 2)), "influences of the partial area")


def _freedom(variances: tuple[float, float], rows: tuple[float, float]) -> float:
    """Return the degrees of freedom of a sum of two variances, by Satterthwaite (1946)."""
    parts = zip(variances, rows, strict=True)
    doubt = sum(variance * variance / (n - 1) for variance, n in parts)
    return sum(variances) ** 2 / doubt if doubt > 0 else math.inf


def rate_of(metric: ROCAUC[None]) -> float:
    """Return the largest rate of the area: of false positives, or of false negatives."""
    if metric.min_tpr is not None:
        return 1 - metric.min_tpr
    return 1.0 if metric.max_fpr is None else metric.max_fpr


def _precision(metric: Metric[object], cells: Ladder, value: float) -> StandardError:
    freedom = cells.rows[0] - 1
    if freedom <= 0:
        return StandardError(0.0, "influences")
    trapezoid = metric.family == Family.PR_AREA
    influences, excess = precision_influences(cells, value, trapezoid=trapezoid)
    variances = influences.variances(cells)
    # As for a mean over positives, whose variance is divided by their number minus one.
    variance, scale = sum(variances), math.sqrt(1 + 1 / freedom)
    if cells.weighted and variance > 0 and cells.rows[1] > 1:
        freedom = min(freedom, _freedom(variances, cells.rows))
        variance = _widened(variance, exponential_variance(value, *cells.rows), freedom)
    return StandardError(math.sqrt(variance) * scale, "influences", freedom, excess)


# Degrees of freedom given to a model's variance of weighted rows. Of 10, 40 and infinitely many,
# the smallest with which limits of the Kolmogorov-Smirnov distance covered it in nine of ten
# simulated samples of which three to twenty rows have half of the weight.
_WEIGHTED_FREEDOM = 40


def _widened(variance: float, model: float, freedom: float) -> float:
    """Return the variance of weighted rows, at least its mean with that of a model.

    A few heavy rows that lie on one side of all others seem not to vary.
    """
    total = freedom + _WEIGHTED_FREEDOM
    return max(variance, freedom / total * variance + _WEIGHTED_FREEDOM / total * model)


def _distance(metric: Metric[object], cells: Ladder, value: float) -> StandardError:  # noqa: ARG001 - common signature
    """Return the binomial error; the bias is twice the rise of the maximum in redraws.

    Redraws start from a maximum that is already too large, and exceed it by less than the sample
    exceeds the population. Doubling their rise corrects for both.
    """
    method = "binomial at the largest distance, the lower limit less what a maximum is too high"
    variance, freedom = sum(distance_influences(cells).variances(cells)), math.inf
    if cells.weighted and variance > 0 and min(cells.rows) > 1:
        model = distance_variances(cells)
        freedom = _freedom(model, cells.rows)
        variance = _widened(variance, sum(model), freedom)
    excess = 2 * top_rise(cells) if variance > 0 else 0.0
    return StandardError(math.sqrt(variance), method, freedom, excess)


def _threshold(metric: Metric[object], cells: Ladder, value: float) -> StandardError:  # noqa: ARG001 - common signature
    return StandardError(best_errors(metric, cells), "bootstrap of the cells")


def _point(
    metric: base.EqualErrorRate | areas.TopDecileLift,
    cells: Ladder,
    value: float,  # noqa: ARG001 - common signature
) -> StandardError:
    return StandardError(point_errors(metric, cells), "bootstrap of the cells")


def _gini(metric: Metric[object], cells: Ladder, value: float) -> StandardError:  # noqa: ARG001 - common signature
    of_area = _roc(ROCAUC(), cells, (value + 1) / 2)
    return of_area._replace(error=2 * of_area.error, inward=2 * of_area.inward)


ERRORS: dict[str, Callable[[Any, Ladder, float], StandardError]] = {
    Family.ROC_AREA: _roc,
    Family.AVERAGE_PRECISION: _precision,
    Family.PR_AREA: _precision,
    Family.DISTANCE: _distance,
    Family.BEST_RATE: _threshold,
    Family.CROSSING: _point,
    Family.GINI: _gini,
    Family.DEPTH: _point,
}


def ladders(
    metric: Metric[object], asked: ConfidenceRequest, scores: ScoreHistogram
) -> list[tuple[CumulativeCounts, Ladder]]:
    """Return the cumulative counts of each class, with its cells."""
    check_known(metric)
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


_MOST_CELLS = 1 << 17  # 64 readouts of this many take some seconds
_OF_BOTH = {Family.STAIRS, Family.ROC_AREA, Family.CROSSING, Family.GINI, Family.DISTANCE}


class _OfClass(NamedTuple):
    """The value of a class, its guaranteed bounds, and its standard error."""

    value: float
    low: float
    high: float
    sure: StandardError
    rows: float  # effective number of rows of the smallest class it depends on


def _of_class(metric: ClassScoreMetric[None], stairs: CumulativeCounts, cells: Ladder) -> _OfClass:
    value = metric.read(stairs)
    low, high = (value, value) if stairs.exact else metric._sides(stairs)
    sure = StandardError(math.nan, "")
    if value == value:  # noqa: PLR0124 - false for NaN
        sure = _error_of(metric, stairs, cells, value)
    if sure.error > 0 and sure.excess:  # correct the bias, but stay above the least value
        least = _least(metric)
        low = least + max(low - least - sure.excess, (low - least) / 1024)
    rows = min(cells.rows) if metric.family in _OF_BOTH else cells.rows[0]
    return _OfClass(value, low, high, sure, rows)


def _error_of(
    metric: ClassScoreMetric[None], stairs: CumulativeCounts, cells: Ladder, value: float
) -> StandardError:
    """Return the standard error of a class's value; for an arbitrary formula by a jackknife."""
    if metric.family != Family.STAIRS:
        return ERRORS[str(metric.family)](metric, cells, value)
    if not stairs.exact or not stairs.counted or cells.weighted:
        raise without(
            metric,
            "a jackknife of its formula needs rows of weight 1 whose scores are all kept apart; "
            f"raise max_bins={metric.max_bins}, or leave out the weights",
        )
    if cells.p.size > _MOST_CELLS:
        raise without(
            metric,
            f"a jackknife of its formula over {cells.p.size:,} scores takes too long: a smaller "
            f"max_bins, or scores rounded to fewer than {_MOST_CELLS:,} values, has limits",
        )
    freedom = min(GROUPS, int(cells.positives + cells.negatives)) - 1
    return StandardError(jackknife_error(metric, stairs, cells), "jackknife of rows", freedom)


@rule_of(Family.STAIRS, *ERRORS)
def of_scores(
    metric: ClassScoreMetric[None], asked: ConfidenceRequest, scores: ScoreHistogram, *_: object
) -> ConfidenceInterval:
    """A number for one class, or a mean over several classes."""
    if metric.average == "micro":
        raise without(
            metric,
            "the scores of a row are correlated; each class alone has limits (average=None)",
        )
    found = ladders(metric, asked, scores)
    each = [_of_class(metric, stairs, cells) for stairs, cells in found]
    classes = tuple(stairs for stairs, _ in found)
    least: Numeric = metric._averaged(classes, [one.low for one in each])[0]
    most: Numeric = metric._averaged(classes, [one.high for one in each])[0]
    if len(each) == 1 or metric.average is None:
        return _one_by_one(metric, asked, each, least, most)
    every = [cells for _, cells in found]
    values = np.array([one.value for one in each])
    errors = [one.sure.error for one in each], [one.sure.inmost for one in each]
    error, inward = (
        _error_of_mean(metric, scores, every, values, np.array(side)) for side in errors
    )
    rows = min(one.rows for one in each)
    freedom = min(one.sure.freedom for one in each)
    method = f"{_method(each)}, of a mean over classes as if they varied together (at most)"
    sure = StandardError(error, method, freedom, inward=inward)
    least, most, exact = _sides(metric, least, most, sure, rows, asked)
    if exact:
        method = f"Clopper-Pearson of {rows:g} rows, as no row varies"
    return ConfidenceInterval(least, most, asked.level, method)


def _one_by_one(
    metric: ClassScoreMetric[None],
    asked: ConfidenceRequest,
    each: Sequence[_OfClass],
    least: Numeric,
    most: object,
) -> ConfidenceInterval:
    """Return the limits of the only class, or of each of several."""
    sides = [np.atleast_1d(np.asarray(side, np.float64)) for side in (least, most)]
    pairs = [
        _sides(metric, low, high, one.sure, one.rows, asked)
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
    return next(filter(None, [one.sure.method for one in each]), "no rows of a class")


def _sides(
    metric: ClassScoreMetric[None],
    low: float,
    high: float,
    sure: StandardError,
    n: float,
    asked: ConfidenceRequest,
) -> tuple[float, float, bool]:
    """Return the lower and upper limits, and whether exact ones replace those without variance."""
    ends, reach = (_least(metric), _ends(metric)[1]), sure.reach(asked)
    middle, inward = sum(ends) / 2, sure.inmost
    below = limits(low, inward if low > middle else sure.error, reach, *ends)[0]
    above = limits(high, inward if high < middle else sure.error, reach, *ends)[1]
    if low != low or high != high:  # noqa: PLR0124 - tests for NaN
        return math.nan, math.nan, False
    exact = (math.isnan(below) or math.isnan(above)) and n > 0 and math.isfinite(ends[1] - ends[0])
    if exact:
        start, width = ends[0], ends[1] - ends[0]
        shares = [min(max((side - start) / width, 0.0), 1.0) for side in (low, high)]
        # If the error is known, only the side at the end needs an exact limit.
        if math.isnan(below):
            below = start + width * clopper_pearson(shares[0] * n, n, asked.tail)[0]
        if math.isnan(above):
            above = start + width * clopper_pearson(shares[1] * n, n, asked.tail)[1]
    return float(below), float(above), exact


def _least(metric: Any) -> float:
    """Return the least possible value."""
    if metric.family == Family.ROC_AREA and (rate := rate_of(metric)) < 1:
        return 0.5 * (1 - rate / (2 - rate))  # a standardized partial area of 0 is not 0
    return _ends(metric)[0]


def _ends(metric: ClassScoreMetric[None]) -> tuple[float, float]:
    return metric.value_range or UNBOUNDED


def _error_of_mean(
    metric: ClassScoreMetric[None],
    scores: ScoreHistogram,
    classes: Sequence[Ladder],
    values: Floats,
    errors: Floats,
) -> float:
    """Return the error of a mean over classes: at most that of perfectly correlated classes.

    The classes share their rows, but the state does not keep them together. Weights of classes are
    random sample sizes, which adds to the error.
    """
    known = ~np.isnan(values)
    if not known.any():
        return math.nan
    if metric.average == "macro":
        return float(errors[known].sum() / known.sum())
    weight, shared = np.array([c.positives for c in classes]), 1
    squares = sum(c.p_square.sum() for c in classes)
    if isinstance(scores, VersusHistogram):  # each row belongs to 2 (K - 1) pairs
        weight, shared = weight + [c.negatives for c in classes], 2 * (scores.width - 1)
        squares = sum((c.n_square.sum() for c in classes), squares)
    share = weight[known] / weight[known].sum()
    mean = float(share @ values[known])
    spread = float(share @ (values[known] - mean) ** 2)
    drawn = math.sqrt(spread * squares * shared) / float(weight[known].sum())
    return float(share @ errors[known]) + drawn


P = TypeVar("P", bound=Points)
# The limits of a curve of one class from its cells, given the probability outside on each side.
CurveLimits = Callable[[Ladder, P, float], list[P]]
_POINTWISE = "Wilson's score of each point alone"


def _pointwise(family: str) -> Callable[[CurveLimits[P]], CurveLimits[P]]:
    """Register the limits of the curves of a family, each point alone."""

    def register(sides_of: CurveLimits[P]) -> CurveLimits[P]:
        def rule(
            metric: base.CurveMetric, asked: ConfidenceRequest, scores: ScoreHistogram
        ) -> ConfidenceInterval:
            value = metric.readout(scores)
            cells = [ladder for _, ladder in ladders(metric, asked, scores)]
            points = [value] if len(cells) == 1 else list(value)
            pairs = [sides_of(*both, asked.tail) for both in zip(cells, points, strict=True)]
            low, high = (one_or_all(side, metric.labels) for side in zip(*pairs, strict=True))
            return ConfidenceInterval(low, high, asked.level, _POINTWISE)

        rule_of(family)(rule)
        return sides_of

    return register


def _shares(rates: Floats, success: Sides, failure: Sides, tail: float) -> Sides:
    """Return limits of shares, given (Σ w, Σ w²) of successes and failures."""
    units = units_of(*zip(success, failure, strict=True))
    n = success[0] + failure[0]
    return share_limits(rates * n, (1 - rates) * n, tail, units)


def _curve_of_class(rates: Floats, weight: float, squares: Floats, tail: float) -> Sides:
    """Return limits of shares of a class, with the same unit of weight for all of its rows."""
    unit = squares.sum() / weight if weight else 1.0
    return share_limits(rates * weight, (1 - rates) * weight, tail, (unit, unit))


def _down(weights: Floats, squares: Floats) -> Sides:
    """Return sums over each cell and all cells above, followed by 0."""
    pair = [np.append(np.cumsum(side[::-1])[::-1], 0.0) for side in (weights, squares)]
    return pair[0], pair[1]


def _rest(side: Sides) -> Sides:
    """Return the sums below each threshold."""
    return side[0][0] - side[0], np.maximum(side[1][0] - side[1], 0.0)


def _up(side: Sides) -> Sides:
    """Return sums in the order of descending thresholds."""
    return side[0][::-1], side[1][::-1]


@_pointwise(Family.ROC_CURVE)
def of_roc(cells: Ladder, points: base.ROCPoints, tail: float) -> list[base.ROCPoints]:
    """Both rates at each threshold; above all scores they are exactly 0."""
    false, true = _down(cells.n, cells.n_square), _down(cells.p, cells.p_square)
    fpr, tpr = (
        _shares(rates, _up(side), _up(_rest(side)), tail)
        for rates, side in ((points.fpr, false), (points.tpr, true))
    )
    for side in (*fpr, *tpr):
        side[:1] *= 0
    return [type(points)(f, t, points.thresholds) for f, t in zip(fpr, tpr, strict=True)]


@_pointwise(Family.DET_CURVE)
def of_errors(cells: Ladder, points: base.DETPoints, tail: float) -> list[base.DETPoints]:
    """Both error rates at each threshold."""
    fpr = _curve_of_class(points.fpr, cells.negatives, cells.n_square, tail)
    fnr = _curve_of_class(points.fnr, cells.positives, cells.p_square, tail)
    return [type(points)(f, m, points.thresholds) for f, m in zip(fpr, fnr, strict=True)]


@_pointwise(Family.GAINS)
def of_gains(cells: Ladder, points: areas.GainPoints, tail: float) -> list[areas.GainPoints]:
    """The share of the positives at each given depth; exactly 0 at depth 0."""
    gain = _curve_of_class(points.gain, cells.positives, cells.p_square, tail)
    for side in gain:
        side[:1] *= 0
    return [type(points)(points.depth, side, points.thresholds) for side in gain]


@_pointwise(Family.PR_CURVE)
def of_precision_recall(cells: Ladder, points: base.PRPoints, tail: float) -> list[base.PRPoints]:
    """Precision and recall at each threshold; the last point is fixed by definition."""
    false, true = _down(cells.n, cells.n_square), _down(cells.p, cells.p_square)
    precision = _shares(points.precision, true, false, tail)
    recall = _shares(points.recall, true, _rest(true), tail)
    for side in precision:
        side[-1] = 1.0
    for side in recall:
        side[-1] *= 0
    return [type(points)(p, r, points.thresholds) for p, r in zip(precision, recall, strict=True)]


@rule_of(Family.CALIBRATION_FIT)
def of_fit(
    metric: Any, asked: ConfidenceRequest, scores: ScoreHistogram, *_: object
) -> ConfidenceInterval:
    """A coefficient of a fit, by its information or, with weights, by the influence of rows."""
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
    metric: Any, asked: ConfidenceRequest, scores: ScoreHistogram, *_: object
) -> ConfidenceInterval:
    """The fraction of positives in each bin, given its rows and their mean score."""
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
    metric: calibration.CalibrationCurve, stairs: CumulativeCounts, cells: Ladder
) -> tuple[Sides, Sides]:
    """Return (Σ w, Σ w²) of the positives and of the negatives in the bins that a curve shows."""
    at = bins_of_cells(stairs, metric.n_bins, metric.strategy)
    every = (cells.p, cells.p_square, cells.n, cells.n_square)
    sums = np.array([np.bincount(at, side, metric.n_bins) for side in every])
    shown = sums[0] + sums[2] > 0
    p, p_square, n, n_square = sums[:, shown] if shown.any() else np.zeros((4, 1))
    return (p, p_square), (n, n_square)


@rule_of(Family.BINNED_SHARES)
def of_bins(metric: Metric, asked: ConfidenceRequest, held: BinnedShares) -> ConfidenceInterval:
    """The share of each bin, independently of the others."""
    rows = np.asarray(held.bins.exact().to_float())
    if rows.sum() != asked.n_rows:
        raise without(metric, "its state holds weights, and not how many rows they are worth")
    low, high = share_limits(rows, rows.sum() - rows, asked.tail)
    below, above = (LabelledArray.of(side, range(rows.size), "bin") for side in (low, high))
    return ConfidenceInterval(below, above, asked.level, _POINTWISE)
