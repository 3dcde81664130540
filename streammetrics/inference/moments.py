"""How sure are ratios of moments: from what each row of a sample adds to them.

The value itself is of all rows. Only the variance is of a sample, Σ w² ψ² of its rows times what
all squared weights are of theirs, ψ being the value's derivative by the weight of a row.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streammetrics.core.confidence import (
    Asked,
    ConfidenceInterval,
    not_anytime,
    rule_of,
    without,
)
from streammetrics.core.results.labelled import LabelledArray
from streammetrics.inference.distributions import t_quantile
from streammetrics.inference.limits import limits
from streammetrics.metrics.families import Family

if TYPE_CHECKING:
    from collections.abc import Callable

    from streammetrics.core.metric import Metric
    from streammetrics.core.types import Floats, Numeric
    from streammetrics.statistics.joint.pairs import MomentSample


class CentredRows(NamedTuple):
    """The sampled rows less the means of all, (rows, outputs), and sums over all rows.

    `y`, `p` and `e` are targets, predictions and their difference; of values there is only `y`,
    and `e`, the same less a trimmed mean. A `weight` is (rows, 1).
    """

    weight: Floats
    y: Floats
    p: Floats
    e: Floats
    total: float
    yy: Floats
    pp: Floats
    yp: Floats
    bias: Floats  # mean target less mean prediction


def _of_errors(rows: CentredRows) -> Floats:
    """Errors that a bias is part of: what rows do to Σ w e² / Σ w (y - ȳ)²."""
    left = rows.yy + rows.pp - 2 * rows.yp + rows.total * rows.bias**2
    return _of_ratio(rows, rows.e + rows.bias, left)


def _of_explained(rows: CentredRows) -> Floats:
    """Errors less their mean."""
    return _of_ratio(rows, rows.e, rows.yy + rows.pp - 2 * rows.yp)


def _of_ratio(rows: CentredRows, e: Floats, left: Floats) -> Floats:
    """The derivative of a ratio of sums, each of them without the row itself.

    With it in the sums, a row of a long tail hides how much it did: limits would hold too rarely.
    """
    sides = ((e**2, left), (rows.y**2, rows.yy))
    shares = [each / np.maximum(whole - rows.weight * each, 0.0) for each, whole in sides]
    slopes: Floats = left / rows.yy * (shares[0] - shares[1])
    return slopes


def _of_correlation(rows: CentredRows) -> Floats:
    root = np.sqrt(rows.yy * rows.pp)
    together = rows.y**2 / rows.yy + rows.p**2 / rows.pp
    slopes: Floats = rows.y * rows.p / root - rows.yp / root * together / 2
    return slopes


def _of_concordance(rows: CentredRows) -> Floats:
    below = rows.yy + rows.pp + rows.total * rows.bias**2
    moved = rows.y**2 + rows.p**2 + rows.bias**2 + 2 * rows.bias * rows.e
    slopes: Floats = (2 * rows.y * rows.p - 2 * rows.yp / below * moved) / below
    return slopes


def _of_variance(rows: CentredRows) -> Floats:
    """Squares about a trimmed mean: of skewed values those about the mean vary too little."""
    slopes: Floats = (rows.e**2 - rows.yy / rows.total) / rows.total
    return slopes


Ends = tuple[float, float]

# What a row adds, and of one less or the value itself between which ends the limits are found.
_KINDS: dict[str, tuple[Callable[[CentredRows], Floats], bool, Ends]] = {
    Family.R2: (_of_errors, True, (0.0, math.inf)),
    Family.SQUARED_RATIO: (_of_errors, False, (0.0, math.inf)),
    Family.EXPLAINED_VARIANCE: (_of_explained, True, (0.0, math.inf)),
    Family.PEARSON: (_of_correlation, False, (-1.0, 1.0)),
    Family.CONCORDANCE: (_of_concordance, False, (-1.0, 1.0)),
    Family.VARIANCE: (_of_variance, False, (0.0, math.inf)),
}


@rule_of(*_KINDS)
def of_moments(metric: Any, asked: Asked, *statistics: Any) -> ConfidenceInterval:
    """A ratio of variances, a correlation, or a variance."""
    if asked.anytime:
        raise not_anytime(metric)
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
        return _answer(metric, nothing, nothing, asked, told)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        slopes = _averaged(metric, slopes_of, _rows(metric, statistics, sample))
    (part,) = sample.strata
    squares = part.copies * part.points[:, -1] ** 2
    known = float(np.asarray(sample.sums.to_float())[0, 1])
    variance = squares @ slopes**2 * (known / float(squares.sum()))
    error = np.sqrt(variance * asked.n_rows / (asked.n_rows - 1)).reshape(value.shape)
    reach = t_quantile(1 - asked.tail, asked.n_rows - 1)
    if metric.family == Family.VARIANCE:  # Bonett's too: the upper side has the long tail
        lean = asked.n_rows / max(asked.n_rows - reach, 1.0)
        value, error = value * lean, error * lean**2
    low, high = limits(1 - value if from_one else value, error, reach, *ends)
    if from_one:
        low, high = 1 - np.asarray(high), 1 - np.asarray(low)
    return _answer(metric, low, high, asked, told)


def _rows(metric: Any, statistics: Any, sample: MomentSample) -> CentredRows:
    """Return the rows of a sample around the means, and the sums of all rows."""
    (part,) = sample.strata
    held, weight = part.points[:, :-1], part.points[:, -1:]
    if metric.family == Family.VARIANCE:
        (moment,) = statistics[:-1]
        y = held - float(moment.means("x")[0])
        mass = part.copies * weight[:, 0]
        e = y - _trimmed_mean(y[:, 0], mass, moment.total)
        yy = np.array([float(moment.centred("x", "x")[0])])
        return CentredRows(
            weight, y, y, e, float(moment.total) - metric.ddof, yy, yy, yy, np.zeros(1)
        )
    wide = held.shape[1] // 2
    squares, moment = statistics[0], statistics[-2]
    total = float(moment.total)
    means = [float(mean) for mean in moment.means("y")]
    yy = np.array([float(each) for each in moment.centred("y", "y")])
    y = held[:, :wide] - means
    if moment.of == "pair":
        guessed = [float(mean) for mean in moment.means("p")]
        pp, yp = (np.array([float(x) for x in moment.centred(a, "p")]) for a in ("p", "y"))
        p, bias = held[:, wide:] - guessed, np.array(means) - np.array(guessed)
        return CentredRows(weight, y, p, y - p, total, yy, pp, yp, bias)
    # Of the target alone there is the sum of squared errors, which a bias is part of.
    e = held[:, :wide] - held[:, wide:]
    left = np.array([float(each) for each in squares.exact("loss")])
    none = np.zeros(wide)
    return CentredRows(weight, y, none, e, total, yy, left - yy, none, none)


def _trimmed_mean(values: Floats, mass: Floats, n: float) -> float:
    """Return a mean without 3 / (2 √n) of the values on either side.

    Bonett (2006) leaves out a third of it, with which limits hold too rarely of skewed values.
    """
    share = min(1.5 / math.sqrt(n), 0.4)
    order = np.argsort(values)
    passed = np.cumsum(mass[order]) / mass.sum()
    inside = (passed - mass[order] / mass.sum() < 1 - share) & (passed > share)
    return float(np.average(values[order][inside], weights=mass[order][inside]))


def _averaged(
    metric: Metric[object], slopes_of: Callable[[CentredRows], Floats], rows: CentredRows
) -> Floats:
    """Return what rows add to each output, or to the average of outputs."""
    multioutput = getattr(metric, "multioutput", "uniform_average")
    if multioutput == "variance_weighted":  # one ratio of the sums over outputs
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


def _answer(
    metric: Metric, low: Numeric, high: Numeric, asked: Asked, method: str
) -> ConfidenceInterval:
    if getattr(metric, "multioutput", "") == "raw_values":
        sides = [np.atleast_1d(side) for side in (low, high)]
        low, high = (LabelledArray.of(side, range(side.size), "output") for side in sides)
    else:
        low, high = float(np.squeeze(low)), float(np.squeeze(high))
    return ConfidenceInterval(low, high, asked.level, method)
