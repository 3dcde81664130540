"""How sure are means over queries: Student's t, or limits that hold at all times."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.confidence import (
    Asked,
    ConfidenceInterval,
    not_anytime,
    rule_of,
    unsure,
    without,
)
from streammetrics.inference.distributions import t_quantile
from streammetrics.inference.limits import anytime_limits, clopper_pearson
from streammetrics.metrics.families import Family

if TYPE_CHECKING:
    from streammetrics.core.types import Floats
    from streammetrics.metrics.ranking.base import RankingMetric
    from streammetrics.statistics.rankings.buffer import RankingBuffer


@rule_of(Family.QUERIES)
def of_queries(metric: RankingMetric, asked: Asked, buffer: RankingBuffer) -> ConfidenceInterval:
    """The mean over queries, which are the sample: how many rows each has does not matter."""
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
    mean = metric.readout(buffer)
    if share and n and mean in {0.0, 1.0}:
        low, high = clopper_pearson(mean * n, n, asked.tail)
        method = f"Clopper-Pearson of {n} queries: all of them have {mean:g}"
        return ConfidenceInterval(low, high, asked.level, method)
    method = f"Student's t over {n} queries"
    error = error_of_mean(values, mean, weights)
    if n < 2 or not error:
        return unsure(asked.level, method)
    half = t_quantile(1 - asked.tail, n - 1) * error
    low, high = mean - half, mean + half
    if share:
        low, high = max(low, 0.0), min(high, 1.0)
    return ConfidenceInterval(low, high, asked.level, method)


def error_of_mean(values: Floats, mean: float, weights: Floats | None) -> float:
    """Return the standard error of a mean, weighted or not; 0 of less than two values.

    Sums of squares around the rounded mean are exact: the order of queries does not show.
    """
    n = len(values)
    if n < 2:
        return 0.0
    shares = np.ones(n) if weights is None else weights / weights.max()
    spread = float(ExactSum.of((shares * (values - mean)) ** 2).fraction())
    return math.sqrt(spread * n / (n - 1)) / float(ExactSum.of(shares).fraction())
