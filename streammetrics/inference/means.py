"""How sure are means over rows: by how far these spread, on the logarithm where none is negative.

With weights w the mean is m = Σ w x / Σ w, and its variance Σ w² (x - m)² / (Σ w)², which the sums
of `Spread` say; a ratio of two means is linearised.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.arithmetic.exact import LARGEST
from streammetrics.core.confidence import (
    Asked,
    ConfidenceInterval,
    not_anytime,
    rule_of,
    unsure,
    without,
)
from streammetrics.core.results.labelled import LabelledArray
from streammetrics.inference.distributions import t_quantile
from streammetrics.inference.limits import anytime_limits, limits, share_limits
from streammetrics.metrics.families import Family
from streammetrics.metrics.regression.base import check_outputs
from streammetrics.metrics.scores.losses import exponential

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.metric import Metric
    from streammetrics.statistics.scores.labels import LabelRankingSum
    from streammetrics.statistics.scores.losses import ProbabilityLossSum
    from streammetrics.statistics.sums.losses import LossSum
    from streammetrics.statistics.sums.moments import Moments
    from streammetrics.statistics.sums.rowwise import RowSum


_NOISE = Fraction(1, 1 << 40)  # of the squares: less than that is their rounding

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


def error_of(sums: Sums, mean: Fraction, total: Fraction, n: int) -> float:
    """Return the standard error of a mean; 0 where rows differ by no more than is rounded."""
    squares, values, weights = sums
    around = squares - 2 * mean * values + mean * mean * weights
    if n < 2 or around <= _NOISE * squares or squares >= LARGEST:
        return 0.0
    return math.sqrt(around * n / (n - 1) / total**2)


def _answer(
    metric: Metric[object],
    asked: Asked,
    values: Sequence[float],
    errors: Sequence[float],
    low: float,
) -> ConfidenceInterval:
    """Return the limits of each output, or of their mean as if all varied together."""
    n = asked.n_rows
    scale = "" if math.isinf(low) else ", on the logarithm"
    method = f"Student's t{scale}"
    if not values:
        return unsure(asked.level, method)
    quantile = t_quantile(1 - asked.tail, n - 1) if n > 1 else math.nan
    multioutput = getattr(metric, "multioutput", "uniform_average")
    check_outputs(len(values), multioutput)
    if multioutput == "raw_values":
        sides = limits(np.array(values), np.array(errors), quantile, low)
        below, above = (
            LabelledArray.of(s, range(len(values)), "output") for s in map(np.atleast_1d, sides)
        )
        return ConfidenceInterval(below, above, asked.level, method)
    if len(values) > 1:
        method += ", of a mean over outputs as if they varied together (at most)"
    weights = multioutput if isinstance(multioutput, tuple) else None
    value, error = (float(np.average(side, weights=weights)) for side in (values, errors))
    return ConfidenceInterval(*limits(value, error, quantile, low), asked.level, method)


def _means(
    metric: Metric[object], asked: Asked, held: object, means: Sequence[Fraction], total: Fraction
) -> tuple[list[float], list[float]]:
    every = sums_of(metric, held)
    values = [float(mean) for mean in means]
    n = asked.n_rows
    return values, [error_of(s, m, total, n) for s, m in zip(every, means, strict=True)]


@rule_of(Family.MEAN_LOSS, Family.BOUNDED_LOSS)
def of_losses(metric: Metric, asked: Asked, held: LossSum) -> ConfidenceInterval:
    """The mean of losses that are not negative."""
    if asked.anytime:
        if metric.family != Family.BOUNDED_LOSS:
            raise not_anytime(metric)
        return _anytime(metric, asked, held.exact("loss"), held.total, 2)
    values, errors = _means(metric, asked, held, held.means("loss"), held.total)
    return _answer(metric, asked, values, errors, 0.0)


@rule_of(Family.ROOT_MEAN_LOSS)
def of_roots(metric: Metric, asked: Asked, held: LossSum) -> ConfidenceInterval:
    """The root of such a mean, whose relative error is half as large."""
    if asked.anytime:
        raise not_anytime(metric)
    values, errors = _means(metric, asked, held, held.means("loss"), held.total)
    roots = [math.sqrt(value) for value in values]
    halved = [e / 2 / root if root else 0.0 for e, root in zip(errors, roots, strict=True)]
    return _answer(metric, asked, roots, halved, 0.0)


@rule_of(Family.MEAN_ERROR)
def of_errors(metric: Metric, asked: Asked, held: Moments) -> ConfidenceInterval:
    """The mean of errors of either sign."""
    if asked.anytime:
        raise not_anytime(metric)
    means = [p - y for y, p in zip(held.means("y"), held.means("p"), strict=True)]
    values, errors = _means(metric, asked, held, means, held.total)
    return _answer(metric, asked, values, errors, -math.inf)


@rule_of(Family.MEAN)
def of_values(metric: Metric, asked: Asked, held: Moments) -> ConfidenceInterval:
    """The mean of values."""
    if asked.anytime:
        raise not_anytime(metric)
    values, errors = _means(metric, asked, held, held.means("x"), held.total)
    return _answer(metric, asked, values, errors, -math.inf)


@rule_of(Family.LOSS_RATIO)
def of_ratio(metric: Metric, asked: Asked, *held: LossSum) -> ConfidenceInterval:
    """A ratio of two means, linearised: the mean of e - r |y| over that of |y|."""
    if asked.anytime:
        raise not_anytime(metric)
    above, below, both = (sums_of(metric, part) for part in (held * 2)[:3])
    values, errors = [], []
    parts = zip(above, below, both, held[0].exact("loss"), held[1].exact("loss"), strict=True)
    for e, y, together, up, down in parts:
        if not down:
            values.append(math.nan)
            errors.append(0.0)
            continue
        ratio = up / down
        cross = (together[0] - e[0] - y[0]) / 2  # Σ w² e |y|
        # Around e - r |y|, whose mean is 0.
        squares = e[0] - 2 * ratio * cross + ratio * ratio * y[0]
        scale = e[0] + ratio * ratio * y[0]
        vanishes = squares <= _NOISE * scale or scale >= LARGEST or asked.n_rows < 2
        n = asked.n_rows
        errors.append(0.0 if vanishes else math.sqrt(squares * n / (n - 1) / down**2))
        values.append(float(ratio))
    return _answer(metric, asked, values, errors, 0.0)


@rule_of(Family.LOG_LOSS, Family.BRIER, Family.SCORE_LOSS, Family.SIGNED_SCORE_LOSS)
def of_probabilities(
    metric: Metric, asked: Asked, held: ProbabilityLossSum | LabelRankingSum
) -> ConfidenceInterval:
    """The mean loss of probabilities; that of Brier is bounded, by 2 or halved by 1."""
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
    values, errors = _means(metric, asked, held, means, total)
    factors = [scale * v for v in values], [scale * e for e in errors]
    signed = metric.family == Family.SIGNED_SCORE_LOSS
    interval = _answer(metric, asked, *factors, -math.inf if signed else 0.0)
    if metric.family == Family.BRIER:  # no value is above, and few rows have limits far beyond
        low, high, most = *interval, 2 * scale
        interval = ConfidenceInterval(low, min(high, most), interval.level, interval.method)
    return interval


@rule_of(Family.PERPLEXITY)
def of_perplexity(metric: Metric, asked: Asked, held: ProbabilityLossSum) -> ConfidenceInterval:
    """The exponential of the limits of the mean log loss."""
    if asked.anytime:
        raise not_anytime(metric)
    total = held.rows.fraction()
    means = [held.total.fraction() / total] if total else []
    low, high = _answer(metric, asked, *_means(metric, asked, held, means, total), 0.0)
    method = "Student's t, on the logarithm of the log loss"
    ends = exponential(low), exponential(high)
    return ConfidenceInterval(*ends, asked.level, method)


@rule_of(Family.ROW_MEAN, Family.ROOT_ROW_MEAN)
def of_rows(metric: Metric, asked: Asked, held: RowSum) -> ConfidenceInterval:
    """The mean of a number of each row; a share of rows by Wilson's score."""
    mean, total = held.exact_mean(), held.rows.fraction()
    low, high = metric.value_range or (-math.inf, math.inf)
    if asked.anytime:
        if (low, high) != (0.0, 1.0):
            raise not_anytime(metric)
        return _anytime(metric, asked, [] if mean is None else [held.total.fraction()], total, 1)
    if mean is None:
        return unsure(asked.level, "Student's t")
    if (low, high) == (0.0, 1.0) and total == asked.n_rows:
        hits = float(held.total.fraction())
        sides = share_limits(hits, float(total) - hits, asked.tail)
        return ConfidenceInterval(float(sides[0]), float(sides[1]), asked.level, "Wilson's score")
    powers = [held.powers[name].fraction() for name in ("squares", "values")]
    sums = (powers[0], powers[1], held.squared_weight.fraction())
    error, value = error_of(sums, mean, total, asked.n_rows), metric.readout(held)
    if metric.family == Family.ROOT_ROW_MEAN:
        error = error / 2 / value if value else 0.0
    elif mean:  # what is read of the mean is a multiple of it
        error *= value / float(mean)
    return _answer(metric, asked, [value], [error], low)


def _anytime(
    metric: Metric[object], asked: Asked, sums: Sequence[Fraction], total: Fraction, most: int
) -> ConfidenceInterval:
    """Return limits at all times of a mean between 0 and `most`, which need no squares."""
    if total != asked.n_rows:
        raise without(metric, "limits at all times count rows, and these have weights")
    if len(sums) > 1:
        raise without(metric, "limits at all times are of one output")
    method = "mixture for bounded means, at all times at once"
    if not sums:
        return unsure(asked.level, method)
    sides = anytime_limits(float(sums[0]) / most, float(total), 1 - asked.level)
    return ConfidenceInterval(most * sides[0], most * sides[1], asked.level, method)
