"""How sure are metrics of scores: the limits of one class, of each of several or of their mean."""

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
from streammetrics.inference.areas import Ladder
from streammetrics.inference.bootstrap import GROUPS, jackknife_error
from streammetrics.inference.limits import clopper_pearson, limits
from streammetrics.inference.score_errors import ERRORS, StandardError, rate_of
from streammetrics.inference.tables import UNBOUNDED, no_squares
from streammetrics.metrics.families import Family
from streammetrics.metrics.scores.view import staircases
from streammetrics.statistics.scores.versus import VersusHistogram

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.metric import Metric
    from streammetrics.core.types import Floats, Numeric
    from streammetrics.metrics.scores.base import ClassScoreMetric
    from streammetrics.metrics.scores.view import Staircase
    from streammetrics.statistics.scores.histogram import ScoreHistogram


def ladders(
    metric: Metric[object], asked: Asked, scores: ScoreHistogram
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


_MOST_CELLS = 1 << 17  # of which 64 readouts take some seconds
_OF_BOTH = {Family.STAIRS, Family.ROC_AREA, Family.CROSSING, Family.GINI, Family.DISTANCE}


class _OfClass(NamedTuple):
    """A class's value, between which ones it certainly is, and how sure that is."""

    value: float
    low: float
    high: float
    sure: StandardError
    rows: float  # what the smallest class that it depends on is worth


def _of_class(metric: ClassScoreMetric, stairs: Staircase, cells: Ladder) -> _OfClass:
    value = metric.read(stairs)
    low, high = (value, value) if stairs.exact else metric._sides(stairs)
    sure = StandardError(math.nan, "")
    if value == value:  # noqa: PLR0124 - the test for nan
        sure = _error_of(metric, stairs, cells, value)
    if sure.error > 0 and sure.excess:  # still above the end
        least = _least(metric)
        low = least + max(low - least - sure.excess, (low - least) / 1024)
    rows = min(cells.rows) if metric.family in _OF_BOTH else cells.rows[0]
    return _OfClass(value, low, high, sure, rows)


def _error_of(
    metric: ClassScoreMetric, stairs: Staircase, cells: Ladder, value: float
) -> StandardError:
    """Return the standard error of a class's value, of any formula by a jackknife."""
    if metric.family != Family.STAIRS:
        return ERRORS[str(metric.family)](metric, cells, value)
    if not stairs.exact or not stairs.counted or cells.p_square is not cells.p:
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
    metric: ClassScoreMetric, asked: Asked, scores: ScoreHistogram, *_: object
) -> ConfidenceInterval:
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
    metric: ClassScoreMetric, asked: Asked, each: Sequence[_OfClass], least: Numeric, most: object
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
    metric: ClassScoreMetric, low: float, high: float, sure: StandardError, n: float, asked: Asked
) -> tuple[float, float, bool]:
    """Return L(low) and U(high), and whether they are the exact ones of values that do not vary."""
    ends, reach = (_least(metric), _ends(metric)[1]), sure.reach(asked)
    middle, inward = sum(ends) / 2, sure.inmost
    below = limits(low, inward if low > middle else sure.error, reach, *ends)[0]
    above = limits(high, inward if high < middle else sure.error, reach, *ends)[1]
    if low != low or high != high:  # noqa: PLR0124 - the test for nan
        return math.nan, math.nan, False
    exact = (math.isnan(below) or math.isnan(above)) and n > 0 and math.isfinite(ends[1] - ends[0])
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
    if metric.family == Family.ROC_AREA and (rate := rate_of(metric)) < 1:
        return 0.5 * (1 - rate / (2 - rate))  # standardised, an area of 0 is not 0
    return _ends(metric)[0]


def _ends(metric: ClassScoreMetric) -> tuple[float, float]:
    return metric.value_range or UNBOUNDED


def _error_of_mean(
    metric: ClassScoreMetric,
    scores: Any,
    classes: Sequence[Ladder],
    values: Floats,
    errors: Floats,
) -> float:
    """Return the error of the mean of classes: at most what they have if they vary together.

    The rows of all classes are the same, but not kept together. Those of a class weigh as many as
    there happen to be, which adds its own error.
    """
    known = ~np.isnan(values)
    if not known.any():
        return math.nan
    if metric.average == "macro":
        return float(errors[known].sum() / known.sum())
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
