"""Confidence limits of means, moments, correlations and quantiles."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from streammetrics.core.arithmetic.exact import LARGEST, ExactSum, nearest, root
from streammetrics.core.confidence import (
    ConfidenceInterval,
    ConfidenceRequest,
    not_anytime,
    rule_of,
    unsure,
    without,
)
from streammetrics.core.results.values import LabelledArray
from streammetrics.inference.areas import derivatives
from streammetrics.inference.distributions import (
    anytime_limits,
    binomial_quantile,
    clopper_pearson,
    limits,
    normal_quantile,
    share_limits,
    t_quantile,
)
from streammetrics.inference.tables import UNBOUNDED, no_squares
from streammetrics.metrics import text as recognition
from streammetrics.metrics.families import Family
from streammetrics.metrics.regression.base import averaged, check_outputs
from streammetrics.metrics.scores.losses import exponential
from streammetrics.statistics.histograms import quantile, ranked

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streammetrics.core.arithmetic.histogram import SortedHistogram
    from streammetrics.core.arithmetic.pairs import PairCells
    from streammetrics.core.metric import Metric
    from streammetrics.core.types import Floats, Numeric
    from streammetrics.metrics.attempts import AttemptMetric
    from streammetrics.metrics.correlation import KendallTau
    from streammetrics.metrics.distributions import Quantile
    from streammetrics.metrics.ranking.base import RankingMetric
    from streammetrics.metrics.regression.quantiles import ErrorQuantile
    from streammetrics.metrics.rowwise import RowMean
    from streammetrics.metrics.text import TextMetric
    from streammetrics.statistics.attempts import AttemptCounts
    from streammetrics.statistics.histograms import EnclosedValue, ValueHistogram
    from streammetrics.statistics.joint import MomentSample
    from streammetrics.statistics.pairs import PairHistogram
    from streammetrics.statistics.probabilities import LabelRankingSum, ProbabilityLossSum
    from streammetrics.statistics.rankings import RankingBuffer
    from streammetrics.statistics.sums import FormulaSum, LossSum, Moments, RowSum
    from streammetrics.statistics.texts import TextCounts


_SCALES = {(False, True): ", on the logarithm", (False, False): ", on the logit"}
_NOISE = Fraction(1, 1 << 40)  # share of the squares below which a difference is rounding error

NOT_NEGATIVE = (0.0, math.inf)

Sums = tuple[Fraction, Fraction, Fraction]  # Σ w² x², Σ w² x and Σ w² of one output


def sums_of(metric: Any, held: Any) -> list[Sums]:
    """Return the sums of each output."""
    if not metric.spread:
        raise without(
            metric,
            "its state keeps no squares of the losses; "
            f"{type(metric).__name__}(spread=True), the default, keeps them",
        )
    weights = held.squared_weight.fraction()
    if not weights:
        return []
    squares, values = (held.powers[name] for name in ("squares", "values"))
    if not values.shape:
        return [(squares.fraction(), values.fraction(), weights)]
    outputs = range(values.shape[0])
    return [(squares[k].fraction(), values[k].fraction(), weights) for k in outputs]


def _worth(total: Fraction, held: Any) -> float:
    """Return how many rows of equal weight those of a state are worth, (Σ w)² / Σ w²."""
    squares = held.squared_weight.fraction()
    return float(total**2 / squares) if squares else 0.0


def freedom(worth: float) -> float:
    """Return the degrees of freedom of rows that are worth that many of equal weight."""
    return max(worth - 1, 1 / 64)  # where one row weighs nearly all, limits are nearly endless


def error_of(sums: Sums, mean: Fraction, total: Fraction, n: int) -> float:
    """Return the standard error of a mean; 0 if the rows differ by rounding error only."""
    squares, values, weights = sums
    around = squares - 2 * mean * values + mean * mean * weights
    if n < 2 or around <= _NOISE * squares or _clipped(squares, weights, n):
        return 0.0
    return root(around * n / (n - 1) / total**2)


def _clipped(squares: Fraction, weights: Fraction, n: int) -> bool:
    """Return whether squares of numbers are too large to be exact, given Σ w² x² and Σ w²."""
    return squares * n >= int(LARGEST) * weights


def _answer(
    metric: Metric,
    asked: ConfidenceRequest,
    values: Sequence[Fraction | float],
    errors: Sequence[float],
    low: float,
    high: float = math.inf,
    *,
    worth: float,
) -> ConfidenceInterval:
    """Return the limits of each output, or of their mean as if all were perfectly correlated.

    The rows are `worth` that many of equal weight.
    """
    scale = _SCALES.get((math.isinf(low), math.isinf(high)), "")
    method = f"Student's t{scale}"
    if not values:
        return unsure(asked.level, method)
    df = freedom(min(worth, float(asked.n_rows)))
    quantile = t_quantile(1 - asked.tail, df) if asked.n_rows > 1 else math.nan
    multioutput = getattr(metric, "multioutput", "uniform_average")
    check_outputs(len(values), multioutput)
    if multioutput == "raw_values":
        sides = limits(averaged(values, multioutput), np.array(errors), quantile, low, high)
        below, above = (
            LabelledArray.of(s, range(len(values)), "output") for s in map(np.atleast_1d, sides)
        )
        return ConfidenceInterval(below, above, asked.level, method)
    if len(values) > 1:
        method += ", of a mean over outputs as if they varied together (at most)"
    weights = multioutput if isinstance(multioutput, tuple) else None
    error = float(np.average(errors, weights=weights))
    sides = limits(averaged(values, multioutput), error, quantile, low, high)
    return ConfidenceInterval(*sides, asked.level, method)


def _means(
    metric: Metric,
    asked: ConfidenceRequest,
    held: object,
    means: Sequence[Fraction],
    total: Fraction,
) -> tuple[Sequence[Fraction], list[float]]:
    every = sums_of(metric, held)
    n = asked.n_rows
    return means, [error_of(s, m, total, n) for s, m in zip(every, means, strict=True)]


@rule_of(Family.MEAN_LOSS, Family.BOUNDED_LOSS, anytime=True)
def of_losses(metric: Metric, asked: ConfidenceRequest, held: LossSum) -> ConfidenceInterval:
    """The mean of non-negative losses."""
    if asked.anytime:
        if metric.family != Family.BOUNDED_LOSS:
            raise not_anytime(metric)
        return _anytime(metric, asked, held.exact("loss"), held.total, 2)
    found = _means(metric, asked, held, held.means("loss"), held.total)
    ends = metric.value_range or NOT_NEGATIVE
    return _answer(metric, asked, *found, *ends, worth=_worth(held.total, held))


@rule_of(Family.ROOT_MEAN_LOSS)
def of_roots(metric: Metric, asked: ConfidenceRequest, held: LossSum) -> ConfidenceInterval:
    """The square root of such a mean, whose relative error is half as large."""
    values, errors = _means(metric, asked, held, held.means("loss"), held.total)
    roots = [root(value) for value in values]
    halved = [e / 2 / r if r else 0.0 for e, r in zip(errors, roots, strict=True)]
    return _answer(metric, asked, roots, halved, 0.0, worth=_worth(held.total, held))


@rule_of(Family.MEAN, Family.MEAN_ERROR)
def of_values(metric: Metric, asked: ConfidenceRequest, held: Moments) -> ConfidenceInterval:
    """The mean of values, or of signed errors."""
    if metric.family == Family.MEAN:
        means = held.means("x")
    else:
        means = [p - y for y, p in zip(held.means("y"), held.means("p"), strict=True)]
    found = _means(metric, asked, held, means, held.total)
    return _answer(metric, asked, *found, -math.inf, worth=_worth(held.total, held))


@rule_of(Family.LOSS_RATIO)
def of_ratio(metric: Metric, asked: ConfidenceRequest, *held: LossSum) -> ConfidenceInterval:
    """A ratio of two means, linearized: the mean of e - r |y| divided by that of |y|."""
    above, below, both = (sums_of(metric, part) for part in (held * 2)[:3])
    values: list[Fraction | float] = []
    errors: list[float] = []
    parts = zip(above, below, both, held[0].exact("loss"), held[1].exact("loss"), strict=True)
    for e, y, together, up, down in parts:
        if not down:
            values.append(math.nan)
            errors.append(0.0)
            continue
        ratio = up / down
        cross = (together[0] - e[0] - y[0]) / 2  # Σ w² e |y|
        # Variance of e - r |y|, whose mean is 0.
        squares = e[0] - 2 * ratio * cross + ratio * ratio * y[0]
        scale = e[0] + ratio * ratio * y[0]
        n = asked.n_rows
        vanishes = squares <= _NOISE * scale or _clipped(together[0], together[2], n) or n < 2
        errors.append(0.0 if vanishes else root(squares * n / (n - 1) / down**2))
        values.append(ratio)
    return _answer(metric, asked, values, errors, 0.0, worth=_worth(held[0].total, held[0]))


@rule_of(Family.LOG_LOSS, Family.BRIER, Family.SCORE_LOSS, Family.SIGNED_SCORE_LOSS, anytime=True)
def of_probabilities(
    metric: Metric, asked: ConfidenceRequest, held: ProbabilityLossSum | LabelRankingSum
) -> ConfidenceInterval:
    """The mean loss of probabilities; the Brier loss is at most 2, or 1 if halved."""
    total = held.rows.fraction()
    if asked.anytime and metric.family != Family.BRIER:
        raise not_anytime(metric)
    value = metric.readout(held)
    means = [held.total.fraction() / total] if total else []
    scale = value / float(means[0]) if means and means[0] else 1.0
    if asked.anytime:
        interval = _anytime(metric, asked, [held.total.fraction()] if total else [], total, 2)
        low, high = (scale * side for side in interval)
        return ConfidenceInterval(low, high, asked.level, interval.method)
    _, errors = _means(metric, asked, held, means, total)
    factors = [value] if means else [], [scale * e for e in errors]
    if metric.family != Family.BRIER:
        ends = metric.value_range or NOT_NEGATIVE
        return _answer(metric, asked, *factors, *ends, worth=_worth(total, held))
    low, high = interval = _answer(metric, asked, *factors, 0.0, worth=_worth(total, held))
    # Limits for few rows would exceed the largest loss.
    return ConfidenceInterval(low, min(high, 2 * scale), interval.level, interval.method)


@rule_of(Family.PERPLEXITY)
def of_perplexity(
    metric: Metric, asked: ConfidenceRequest, held: ProbabilityLossSum
) -> ConfidenceInterval:
    """The exponential of the limits of the mean log loss."""
    total = held.rows.fraction()
    means = [held.total.fraction() / total] if total else []
    found = _means(metric, asked, held, means, total)
    low, high = _answer(metric, asked, *found, 0.0, worth=_worth(total, held))
    method = "Student's t, on the logarithm of the log loss"
    ends = exponential(low), exponential(high)
    return ConfidenceInterval(*ends, asked.level, method)


@rule_of(Family.ROW_MEAN, Family.ROOT_ROW_MEAN, anytime=True)
def of_rows(metric: Metric, asked: ConfidenceRequest, held: RowSum) -> ConfidenceInterval:
    """The mean of one number per row; Wilson's score for a share of rows."""
    mean, total = held.exact_mean(), held.rows.fraction()
    low, high = metric.value_range or (-math.inf, math.inf)
    if asked.anytime:
        if (low, high) != (0.0, 1.0):
            raise not_anytime(metric)
        return _anytime(metric, asked, [] if mean is None else [held.total.fraction()], total, 1)
    if mean is None:
        return unsure(asked.level, "Student's t")
    powers = [held.powers[name].fraction() for name in ("squares", "values")]
    squared = held.squared_weight.fraction()
    # Numbers from 0 to 1 are all 0 or 1 where the squares add up to the same.
    if (low, high) == (0.0, 1.0) and powers[0] == powers[1]:
        hits = held.total.fraction()
        of_hits, wrong = powers[1], total - hits
        units = (
            float(of_hits / hits if hits else squared / total),
            float((squared - of_hits) / wrong if wrong else squared / total),
        )
        sides = share_limits(float(hits), float(wrong), asked.tail, units)
        return ConfidenceInterval(float(sides[0]), float(sides[1]), asked.level, "Wilson's score")
    sums = (powers[0], powers[1], squared)
    error, value = error_of(sums, mean, total, asked.n_rows), metric.readout(held)
    if metric.family == Family.ROOT_ROW_MEAN:
        error = error / 2 / value if value else 0.0
    elif mean:  # the value is a multiple of the mean
        error *= value / float(mean)
    return _answer(metric, asked, [value], [error], low, high, worth=_worth(total, held))


_FAINT = 2.0**-960  # a sum of squared weights below this lacks digits
_STEP = 2.0**-17  # of the larger of a mean and the spread of its numbers


@rule_of(Family.OF_MEANS)
def of_means(metric: RowMean, asked: ConfidenceRequest, held: FormulaSum) -> ConfidenceInterval:
    """A function of the means of several numbers per row, linearized: the delta method."""
    low, high = metric.value_range or (-math.inf, math.inf)
    scale = _SCALES.get((math.isinf(low), math.isinf(high)), "")
    method = f"Student's t, linearised{scale}"
    n, means, total = asked.n_rows, held.exact_means(), held.rows.fraction()
    if n < 2 or not means:
        return unsure(asked.level, method)
    rest, weights = held.products(), held.squared_weight.fraction()
    values = held.powers["values"]
    single = [values] if metric._count == 1 else [values[i] for i in range(metric._count)]
    sums = [each.fraction() for each in single]
    slopes = slopes_of_means(
        metric, means, [float(rest[i][i] / weights) for i in range(len(means))]
    )
    if not all(map(math.isfinite, slopes)):
        return unsure(asked.level, method)
    terms = [
        Fraction(slopes[i])
        * Fraction(slopes[j])
        * (rest[i][j] - one * sums[j] - other * sums[i] + one * other * weights)
        for i, one in enumerate(means)
        for j, other in enumerate(means)
    ]
    around = sum(terms, Fraction(0))
    size = sum(Fraction(g) ** 2 * rest[i][i] for i, g in enumerate(slopes))
    if around <= _NOISE * size or _clipped(max(rest[i][i] for i in range(len(means))), weights, n):
        return unsure(asked.level, method)
    error = math.sqrt(around * n / (n - 1) / total**2)
    df = freedom(min(_worth(total, held), float(n)))
    sides = limits(metric.readout(held), error, t_quantile(1 - asked.tail, df), low, high)
    return ConfidenceInterval(*sides, asked.level, method)


def slopes_of_means(
    metric: RowMean, means: Sequence[Fraction], squares: Sequence[float]
) -> list[float]:
    """Return the derivatives of the value with respect to each mean, by differences."""
    at, slopes = list(map(float, means)), []
    for place, (mean, square) in enumerate(zip(at, squares, strict=True)):
        step = max(abs(mean), math.sqrt(square)) * _STEP
        ends = []
        for moved in (mean + step, mean - step):
            given = [np.float64(moved if i == place else each) for i, each in enumerate(at)]
            ends.append(float(metric.of_mean(*given)))
        slopes.append((ends[0] - ends[1]) / (2 * step) if step else 0.0)
    return slopes


def _anytime(
    metric: Metric,
    asked: ConfidenceRequest,
    sums: Sequence[Fraction],
    total: Fraction,
    most: int,
) -> ConfidenceInterval:
    """Return anytime-valid limits of a mean between 0 and `most`; they need no squares."""
    if total != asked.n_rows:
        raise without(metric, "limits at all times count rows, and these have weights")
    if len(sums) > 1:
        raise without(metric, "limits at all times are of one output")
    method = "mixture for bounded means, at all times at once"
    if not sums:
        return unsure(asked.level, method)
    sides = anytime_limits(float(sums[0]) / most, float(total), 1 - asked.level)
    return ConfidenceInterval(most * sides[0], most * sides[1], asked.level, method)


class CentredRows(NamedTuple):
    """The sampled rows minus the means of all rows, (rows, outputs), and sums over all rows.

    `y`, `p` and `e` are targets, predictions and `y - p`. For values there is only `y`, and `e`,
    the values minus a trimmed mean. `weight` is (rows, 1).
    """

    weight: Floats
    y: Floats
    p: Floats
    e: Floats
    total: float
    yy: Floats
    pp: Floats
    yp: Floats
    bias: Floats  # mean target minus mean prediction


def _of_errors(rows: CentredRows) -> Floats:
    """Errors including the bias: the influence of rows on Σ w e² / Σ w (y - ȳ)²."""
    left = rows.yy + rows.pp - 2 * rows.yp + rows.total * rows.bias**2
    return _of_ratio(rows, rows.e + rows.bias, left)


def _of_explained(rows: CentredRows) -> Floats:
    """Errors minus their mean."""
    return _of_ratio(rows, rows.e, rows.yy + rows.pp - 2 * rows.yp)


def _of_ratio(rows: CentredRows, e: Floats, left: Floats) -> Floats:
    """The derivative of a ratio of sums, evaluated without the row itself.

    If the sums included it, an extreme row would mask its own influence, and limits would cover the
    value too rarely.
    """
    sides = ((e**2, left), (rows.y**2, rows.yy))
    shares = [each / np.maximum(whole - rows.weight * each, 0.0) for each, whole in sides]
    return left / rows.yy * (shares[0] - shares[1])


def _of_correlation(rows: CentredRows) -> Floats:
    root = np.sqrt(rows.yy * rows.pp)
    together = rows.y**2 / rows.yy + rows.p**2 / rows.pp
    return rows.y * rows.p / root - rows.yp / root * together / 2


def _of_concordance(rows: CentredRows) -> Floats:
    below = rows.yy + rows.pp + rows.total * rows.bias**2
    moved = rows.y**2 + rows.p**2 + rows.bias**2 + 2 * rows.bias * rows.e
    return (2 * rows.y * rows.p - 2 * rows.yp / below * moved) / below


def _of_variance(rows: CentredRows) -> Floats:
    """Squares around a trimmed mean: for skewed values, those around the mean vary too little."""
    return (rows.e**2 - rows.yy / rows.total) / rows.total


Ends = tuple[float, float]

# Influence function; whether the limits are computed for 1 - value; the range for `limits`.
_KINDS: dict[str, tuple[Callable[[CentredRows], Floats], bool, Ends]] = {
    Family.R2: (_of_errors, True, (0.0, math.inf)),
    Family.SQUARED_RATIO: (_of_errors, False, (0.0, math.inf)),
    Family.EXPLAINED_VARIANCE: (_of_explained, True, (0.0, math.inf)),
    Family.PEARSON: (_of_correlation, False, (-1.0, 1.0)),
    Family.CONCORDANCE: (_of_concordance, False, (-1.0, 1.0)),
    Family.VARIANCE: (_of_variance, False, (0.0, math.inf)),
}


@rule_of(*_KINDS)
def of_moments(metric: Any, asked: ConfidenceRequest, *statistics: Any) -> ConfidenceInterval:
    """A ratio of variances, a correlation, or a variance."""
    if not metric.spread:
        raise without(
            metric,
            "how it varies takes fourth moments of the rows, which exact sums do not keep; "
            f"{type(metric).__name__}(spread=True) keeps a sample of rows, which tells",
        )
    slopes_of, from_one, ends = _KINDS[metric.family]
    value = np.asarray(metric.readout(*statistics), np.float64)
    sample: MomentSample = statistics[-1]
    told = f"sample of {sum(len(part.copies) for part in sample.strata):,} rows, Student's t"
    if asked.n_rows < 2 or np.isnan(value).any():
        nothing = np.full(value.shape, math.nan)
        return _moment_limits(metric, nothing, nothing, asked, told)
    known = float(np.asarray(sample.sums.to_float())[0, 1])
    if not _FAINT < known < 1 / _FAINT:
        raise no_squares(metric)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        rows, power = _rows(metric, statistics, sample, known)
        slopes = _averaged(metric, slopes_of, rows)
    (part,) = sample.strata
    squares = part.copies * part.points[:, -1] ** 2
    variance = squares @ slopes**2 * (known / float(squares.sum()))
    error = np.sqrt(variance * asked.n_rows / (asked.n_rows - 1)).reshape(value.shape)
    if metric.family == Family.VARIANCE:  # the others do not depend on the scale
        error = np.ldexp(error, -2 * power)
        # Of two rows the squares are the same, up to rounding.
        error = np.where(error > 2.0**-40 * value, error, 0.0)
    reach = t_quantile(1 - asked.tail, asked.n_rows - 1)
    if metric.family == Family.VARIANCE:  # as in Bonett: the upper side has the longer tail
        lean = asked.n_rows / max(asked.n_rows - reach, 1.0)
        value, error = value * lean, error * lean**2
    low, high = limits(1 - value if from_one else value, error, reach, *ends)
    if from_one:  # rounding may put them past the value
        low, high = np.minimum(1 - np.asarray(high), value), np.maximum(1 - np.asarray(low), value)
    return _moment_limits(metric, low, high, asked, told)


def _rows(
    metric: Any, statistics: Any, sample: MomentSample, squared_weight: float
) -> tuple[CentredRows, int]:
    """Return the sampled rows relative to the means, and the sums over all rows.

    Both are multiplied by a power of two, which is returned as well, so that the largest row is
    about 1: squares of rows near 1e-160 or 1e160 would be beyond float64.
    """
    (part,) = sample.strata
    held, weight = part.points[:, :-1], part.points[:, -1:]
    if metric.family == Family.VARIANCE:
        (moment,) = statistics[:-1]
        power, (y,) = _scaled(held - float(moment.means("x")[0]))
        mass, all_mass = part.copies * weight[:, 0], float(moment.total)
        e = y - _trimmed_mean(y[:, 0], mass, all_mass * (all_mass / squared_weight))
        yy = _squares(moment.centred("x", "x"), power)
        total = float(moment.total) - metric.ddof
        return CentredRows(weight, y, y, e, total, yy, yy, yy, np.zeros(1)), power
    wide = held.shape[1] // 2
    squares, moment = statistics[0], statistics[-2]
    total = float(moment.total)
    means = [float(mean) for mean in moment.means("y")]
    y = held[:, :wide] - means
    if moment.of == "pair":
        guessed = [float(mean) for mean in moment.means("p")]
        gap = np.array(means) - np.array(guessed)
        power, (y, p, bias) = _scaled(y, held[:, wide:] - guessed, gap)
        yy, pp, yp = (
            _squares(moment.centred(a, b), power) for a, b in (("y", "y"), ("p", "p"), ("y", "p"))
        )
        return CentredRows(weight, y, p, y - p, total, yy, pp, yp, bias), power
    # For the target alone, the state has the sum of squared errors, which includes the bias.
    power, (y, e) = _scaled(y, held[:, :wide] - held[:, wide:])
    yy, left = _squares(moment.centred("y", "y"), power), _squares(squares.exact("loss"), power)
    none = np.zeros(wide)
    return CentredRows(weight, y, none, e, total, yy, left - yy, none, none), power


def _scaled(*columns: Floats) -> tuple[int, list[Floats]]:
    """Return columns times a power of two, and its exponent; the largest number is then about 1."""
    largest = max(float(np.abs(column).max(initial=0.0)) for column in columns)
    power = -math.frexp(largest)[1] if math.isfinite(largest) else 0
    return power, [np.ldexp(column, power) for column in columns]


def _squares(sums: Sequence[Fraction], power: int) -> Floats:
    """Return sums of squares of numbers multiplied by ``2**power``."""
    return np.array([nearest(each * Fraction(4) ** power) for each in sums])


def _trimmed_mean(values: Floats, mass: Floats, n: float) -> float:
    """Return a mean without a share of 3 / (2 √n) of the values on either side; n is effective.

    Bonett (2006) omits a third of that share, but then limits for skewed values cover too rarely.
    """
    share = min(1.5 / math.sqrt(n), 0.4) + 1e-9  # sums of weights are rounded
    order = np.argsort(values)
    passed = np.cumsum(mass[order]) / mass.sum()
    inside = (passed - mass[order] / mass.sum() < 1 - share) & (passed > share)
    return float(np.average(values[order][inside], weights=mass[order][inside]))


def _averaged(
    metric: Metric[object], slopes_of: Callable[[CentredRows], Floats], rows: CentredRows
) -> Floats:
    """Return the influence of rows on each output, or on the average of outputs."""
    multioutput = getattr(metric, "multioutput", "uniform_average")
    if multioutput == "variance_weighted":  # the ratio of sums over outputs
        sums = (rows.yy, rows.pp, rows.yp)
        yy, pp, yp = (np.array([side.sum()]) for side in sums)
        e = rows.e + rows.bias if slopes_of is _of_errors else rows.e
        biased = rows.total * (rows.bias**2).sum() if slopes_of is _of_errors else 0.0
        lengths = [np.sqrt((side**2).sum(axis=1, keepdims=True)) for side in (rows.y, e)]
        y, error = lengths
        none = np.zeros(1)
        return slopes_of(
            CentredRows(rows.weight, y, y, error, rows.total, yy, pp + biased, yp, none)
        )
    slopes = slopes_of(rows)
    if multioutput == "raw_values":
        return slopes
    weights = multioutput if isinstance(multioutput, tuple) else None
    return np.average(slopes, axis=1, weights=weights, keepdims=True)


def _moment_limits(
    metric: Metric, low: Numeric, high: Numeric, asked: ConfidenceRequest, method: str
) -> ConfidenceInterval:
    if getattr(metric, "multioutput", "") == "raw_values":
        sides = [np.atleast_1d(side) for side in (low, high)]
        low, high = (LabelledArray.of(side, range(side.size), "output") for side in sides)
    else:
        low, high = float(np.squeeze(low)), float(np.squeeze(high))
    return ConfidenceInterval(low, high, asked.level, method)


_SIDE = 256  # cells along each side of the grid


@rule_of(Family.KENDALL, Family.SPEARMAN)
def of_ranks(metric: Any, asked: ConfidenceRequest, pairs: PairHistogram) -> ConfidenceInterval:
    """Kendall's tau and Spearman's rho, with Fisher's z."""
    method = "infinitesimal jackknife of ranks, Fisher's z"
    low, high = metric.interval(pairs)
    if low != low:  # noqa: PLR0124 - tests for NaN
        return unsure(asked.level, method)
    grid = grid_of(pairs.cells())
    slopes = _spearman(grid) if metric.family == Family.SPEARMAN else _kendall(grid, metric)
    error = float(np.sqrt((grid * slopes**2).sum()))
    z = normal_quantile(1 - asked.tail)
    below, above = limits(low, error, z, -1.0, 1.0)[0], limits(high, error, z, -1.0, 1.0)[1]
    if math.isnan(below) or math.isnan(above):
        n = float(grid.sum())
        method = f"Clopper-Pearson of {n:g} rows, as no row varies"
        exact = [2 * clopper_pearson((side + 1) / 2 * n, n, asked.tail)[k] - 1
                 for k, side in enumerate((low, high))]  # fmt: skip
        below = exact[0] if math.isnan(below) else below
        above = exact[1] if math.isnan(above) else above
    return ConfidenceInterval(below, above, asked.level, method)


def grid_of(cells: PairCells) -> Floats:
    """Return the number of rows in each cell of a grid of both ranks, coarsened if large."""
    places = []
    for at, marginal in zip((cells.rows, cells.columns), cells.marginals(), strict=True):
        counts = marginal.counts
        order = np.arange(counts.size)
        if counts.size > _SIDE:
            middle = np.cumsum(counts) - counts / 2
            order = np.minimum(middle * (_SIDE / cells.size), _SIDE - 1).astype(np.intp)
        places.append(np.unique(order, return_inverse=True)[1][at])
    rows, columns = places
    grid = np.zeros((int(rows.max()) + 1, int(columns.max()) + 1))
    np.add.at(grid, (rows, columns), cells.counts)
    return grid


def _kendall(grid: Floats, metric: KendallTau) -> Numeric:
    n, (x, y) = grid.sum(), (grid.sum(axis=1), grid.sum(axis=0))
    moved = _above(_above(grid, 0), 1) + _below(_below(grid, 0), 1)
    moved -= _above(_below(grid, 0), 1) + _below(_above(grid, 0), 1)
    balance = float((grid * moved).sum()) / 2  # concordant minus discordant pairs
    if metric.variant == "a":
        return (moved - 2 * balance / n) * 2 / n**2
    if metric.variant == "c":
        levels = min(grid.shape)
        return (moved - 2 * balance / n) * 2 * levels / (levels - 1) / n**2
    a, b = (n * n - x @ x) / 2, (n * n - y @ y) / 2
    untied = (n - x)[:, None] / a + (n - y) / b
    return moved / np.sqrt(a * b) - balance / np.sqrt(a * b) / 2 * untied


def _spearman(grid: Floats) -> Numeric:
    n, (x, y) = grid.sum(), (grid.sum(axis=1), grid.sum(axis=0))
    ranks_x, ranks_y = np.cumsum(x) - x / 2, np.cumsum(y) - y / 2
    together = ranks_x @ grid @ ranks_y - n**3 / 4
    slopes = np.outer(ranks_x, ranks_y) - 3 * n * n / 4
    slopes += _later(grid @ ranks_y)[:, None] + _later(ranks_x @ grid)
    spreads, moved = [], []
    for counts, ranks in ((x, ranks_x), (y, ranks_y)):
        spreads.append(counts @ ranks**2 - n**3 / 4)
        moved.append(ranks**2 + 2 * _later(counts * ranks) - 3 * n * n / 4)
    root = math.sqrt(spreads[0] * spreads[1])
    value = together / root
    both = (moved[0] / spreads[0])[:, None] + moved[1] / spreads[1]
    return slopes / root - value / 2 * both


def _later(parts: Floats) -> Numeric:
    """Return the sum of all later parts plus half of the part itself, as a row changes ranks."""
    return parts.sum() - np.cumsum(parts) + parts / 2


def _above(grid: Floats, axis: int) -> Numeric:
    """Return the sums of the cells at higher places of an axis."""
    return grid.sum(axis=axis, keepdims=True) - np.cumsum(grid, axis=axis)


def _below(grid: Floats, axis: int) -> Numeric:
    """Return the sums of the cells at lower places of an axis."""
    return np.cumsum(grid, axis=axis) - grid


@rule_of(Family.QUANTILE)
def quantile_of_values(
    metric: Quantile[Sequence[float]], asked: ConfidenceRequest, values: ValueHistogram
) -> ConfidenceInterval:
    """A quantile of values, which may be infinite."""
    found, method = [], ""
    for q in metric._levels:
        estimates = values.quantiles(q, metric.method)
        sides, method = _sides(metric, q, asked, values, estimates, -math.inf)
        found.append(sides[0] if sides else (math.nan, math.nan))
    low, high = map(metric._of_levels, zip(*found, strict=True))
    method = method if len(found) == 1 else "order statistics of each level"
    return ConfidenceInterval(low, high, asked.level, method)


@rule_of(Family.ERROR_QUANTILE)
def quantile_of_errors(
    metric: ErrorQuantile[Literal["raw_values"]], asked: ConfidenceRequest, errors: ValueHistogram
) -> ConfidenceInterval:
    """A quantile of absolute errors, for each output or as their mean."""
    level = getattr(metric, "q", 0.5)
    sides, method = _sides(metric, level, asked, errors, metric._estimates(errors), 0.0)
    low, high = (averaged(side, metric.multioutput) for side in _split(sides))
    if len(sides) > 1 and metric.multioutput != "raw_values":
        method += ", of a mean over outputs as if they varied together (at most)"
    return ConfidenceInterval(low, high, asked.level, method)


def _split(sides: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [low for low, _ in sides], [high for _, high in sides]


def _sides(
    metric: Metric,
    q: float,
    asked: ConfidenceRequest,
    values: ValueHistogram,
    estimates: Sequence[EnclosedValue],
    least: float,
) -> tuple[list[tuple[float, float]], str]:
    """Return the limits of each output, and the method.

    The limits are order statistics. Their ranks are quantiles of the binomial distribution of the
    number of rows below the population's quantile, which does not depend on the distribution of the
    values. If there are too few rows for such a rank, the limit is the end of the range. Quantile
    methods that use other ranks may give a value outside these limits, which are then widened to
    include it.
    """
    weighed = values.weighed
    share = float(Fraction(str(q)))
    found, method = [], "order statistics of no rows"
    for place, histogram in enumerate(weighed.columns):
        if weighed.squares is not None:
            found.append(_weighted(histogram, weighed.squares[place], share, asked, least))
            method = "Woodruff's, by the share of the weights below"
            continue
        n = asked.n_rows
        if not weighed.known or histogram.totals() != (n,):
            raise no_squares(metric)
        first = binomial_quantile(asked.tail, n, share)
        last = binomial_quantile(1 - asked.tail, n, share) + 1
        method = f"order statistics {first:,} and {last:,} of {n:,}"
        found.append((_at(histogram, first, n, least)[0], _at(histogram, last, n, least)[1]))
    held = [
        (min(low, estimate.low), max(high, estimate.high))
        for (low, high), estimate in zip(found, estimates, strict=True)
    ]
    return held, method


def _weighted(
    histogram: SortedHistogram,
    squares: SortedHistogram,
    q: float,
    asked: ConfidenceRequest,
    least: float,
) -> tuple[float, float]:
    """Return Woodruff's (1952) limits: quantiles whose estimated share below may equal q.

    That share is a weighted mean of indicators, with a variance that depends on Σ w² of the rows
    below and above. An equivalent number of rows of weight one has the same variance, up to the
    effective number of all rows. The limits are order statistics for that number.
    """
    unit = 2.0**squares.unit
    middle = quantile(histogram, q, "averaged_inverted_cdf").value
    below = above = 0.0
    for edge, _, _, (square,) in squares.cells():
        lower = edge <= middle
        below += float(square[lower].sum()) * unit
        above += float(square[~lower].sum()) * unit
    total = float(histogram.totals()[0])
    varies = (1 - q) ** 2 * below + q**2 * above
    worth = total * total
    if not 0 < worth < math.inf or not 0 < below + above < math.inf:
        return math.nan, math.nan  # float64 cannot represent the squared weights
    most = worth / (below + above)
    rows = int(min(worth * q * (1 - q) / varies, most) if varies else most)
    first = binomial_quantile(asked.tail, rows, q)
    last = binomial_quantile(1 - asked.tail, rows, q) + 1
    low = least if first < 1 else quantile(histogram, first / rows, "averaged_inverted_cdf").low
    if last > rows:
        return low, math.inf
    return low, quantile(histogram, last / rows, "averaged_inverted_cdf").high


def _at(histogram: SortedHistogram, rank: int, n: int, least: float) -> tuple[float, float]:
    """Return the edges of the cell that contains the row of a rank, counted from 1."""
    if rank < 1:
        return least, least
    return (math.inf, math.inf) if rank > n else ranked(histogram, rank)


@rule_of(Family.CORPUS)
def of_corpus(metric: TextMetric, asked: ConfidenceRequest, held: TextCounts) -> ConfidenceInterval:
    """A score of sums over rows, linearized."""
    low, high = metric.value_range or UNBOUNDED
    scale = _SCALES.get((math.isinf(low), math.isinf(high)), "")
    method = f"Student's t, linearised{scale}"
    n, *counts = held.counts.tolist()
    silent = isinstance(metric, recognition.ErrorRate) and not any(counts[:3])
    if n < 2 or silent:  # without reference words the rate is a sum
        return unsure(asked.level, method)
    sums = np.array(counts, np.float64)
    slopes = derivatives(sums, lambda moved: list(map(metric.read, moved.tolist()))).tolist()
    exact, products = list(map(Fraction, slopes)), held.moments()
    terms = [
        one * other * products[i][j] for i, one in enumerate(exact) for j, other in enumerate(exact)
    ]
    around = sum(terms, Fraction(0))
    if around <= _NOISE * sum(map(abs, terms), Fraction(0)):
        return unsure(asked.level, method)
    error = root(around * n / (n - 1))
    sides = limits(metric.read(counts), error, t_quantile(1 - asked.tail, n - 1), low, high)
    return ConfidenceInterval(*sides, asked.level, method)


@rule_of(Family.QUERIES, anytime=True)
def of_queries(
    metric: RankingMetric, asked: ConfidenceRequest, buffer: RankingBuffer
) -> ConfidenceInterval:
    """The mean over queries, which are the sample; their numbers of rows do not matter."""
    if metric.aggregation != "mean":
        raise without(metric, "only the mean over queries has one; use aggregation='mean'")
    counted, values = metric._counted(buffer)
    n, weights = len(values), metric._weights(buffer, counted)
    share = metric.value_range == (0.0, 1.0)
    if asked.anytime:
        if not share or weights is not None:
            raise not_anytime(metric)
        total = float(ExactSum.of(values).fraction()) if n else 0.0
        sides = anytime_limits(total, float(n), 1 - asked.level)
        return ConfidenceInterval(*sides, asked.level, f"mixture over {n} queries, at all times")
    if not np.isfinite(values).all():
        raise without(metric, "the gains of a query are beyond float64")
    return _of_values(values, metric.readout(buffer), weights, asked, "queries", share=share)


@rule_of(Family.UNITS)
def of_units(
    metric: AttemptMetric, asked: ConfidenceRequest, held: AttemptCounts
) -> ConfidenceInterval:
    """The mean over units, which are the sample: how many attempts each has does not matter."""
    mean = metric._mean(held)
    if mean is None:
        return unsure(asked.level, "Student's t over units")
    values = metric._unit_values(held)
    share = metric.value_range == (0.0, 1.0)
    found = _of_values(values, nearest(mean), None, asked, "units", share=share)
    if not metric._root:
        return found
    low, high = (math.sqrt(max(end, 0.0)) for end in found)
    return ConfidenceInterval(low, high, asked.level, f"{found.method}, of variances")


def _of_values(
    values: Floats,
    mean: float,
    weights: Floats | None,
    asked: ConfidenceRequest,
    of: str,
    *,
    share: bool,
) -> ConfidenceInterval:
    """Return the limits of a mean over queries or units, of which `values` has one each."""
    n = len(values)
    if share and n and mean in {0.0, 1.0}:
        low, high = clopper_pearson(mean * n, n, asked.tail)
        method = f"Clopper-Pearson of {n} {of}: all of them have {mean:g}"
        return ConfidenceInterval(low, high, asked.level, method)
    method = f"Student's t over {n} {of}"
    error = error_of_mean(values, mean, weights)
    if n < 2 or not error:
        return unsure(asked.level, method)
    half = t_quantile(1 - asked.tail, n - 1) * error
    low, high = mean - half, mean + half
    if share:
        low, high = max(low, 0.0), min(high, 1.0)
    return ConfidenceInterval(low, high, asked.level, method)


def error_of_mean(values: Floats, mean: float, weights: Floats | None) -> float:
    """Return the standard error of a mean, weighted or not; 0 for fewer than two values.

    Squares around the rounded mean are summed exactly, so that the order of queries has no effect.
    """
    n = len(values)
    if n < 2:
        return 0.0
    shares = np.ones(n) if weights is None else weights / weights.max()
    spread = float(ExactSum.of((shares * (values - mean)) ** 2).fraction())
    return math.sqrt(spread * n / (n - 1)) / float(ExactSum.of(shares).fraction())
