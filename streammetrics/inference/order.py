"""How sure are quantiles: the rows whose ranks hold the population's by the binomial."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from streammetrics.core.confidence import (
    Asked,
    ConfidenceInterval,
    not_anytime,
    rule_of,
)
from streammetrics.inference.distributions import binomial_quantile
from streammetrics.inference.tables import no_squares
from streammetrics.metrics.families import Family
from streammetrics.metrics.regression.base import averaged
from streammetrics.statistics.sums.values import quantile, ranked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.arithmetic.histogram import DyadicHistogram
    from streammetrics.core.metric import Metric
    from streammetrics.metrics.distributions import Quantile
    from streammetrics.metrics.regression.quantiles import ErrorQuantile
    from streammetrics.statistics.sums.values import EnclosedValue, ValueHistogram


@rule_of(Family.QUANTILE)
def of_values(metric: Quantile, asked: Asked, values: ValueHistogram) -> ConfidenceInterval:
    """A quantile of values, which may be infinite."""
    estimates = values.quantiles(metric.q, metric.method)
    sides, method = _sides(metric, metric.q, asked, values, estimates, -math.inf)
    low, high = sides[0] if sides else (math.nan, math.nan)
    return ConfidenceInterval(low, high, asked.level, method)


@rule_of(Family.ERROR_QUANTILE)
def of_errors(metric: ErrorQuantile, asked: Asked, errors: ValueHistogram) -> ConfidenceInterval:
    """A quantile of absolute errors, for each output or their mean."""
    level = getattr(metric, "q", 0.5)
    sides, method = _sides(metric, level, asked, errors, metric._estimates(errors), 0.0)
    low, high = (averaged(side, metric.multioutput) for side in _split(sides))
    if len(sides) > 1 and metric.multioutput != "raw_values":
        method += ", of a mean over outputs as if they varied together (at most)"
    return ConfidenceInterval(low, high, asked.level, method)


def _split(sides: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [low for low, _ in sides], [high for _, high in sides]


def _sides(
    metric: Metric[object],
    q: float,
    asked: Asked,
    values: ValueHistogram,
    estimates: Sequence[EnclosedValue],
    least: float,
) -> tuple[list[tuple[float, float]], str]:
    """Return the limits of each output, and how they were found.

    As many rows as the lower rank lie below the population's quantile with the probability of the
    upper tail of a binomial, whatever the distribution. Where so few rows have no such rank, the
    limit is as far as values go. The value may be read of other ranks, between two of which it
    lies: limits that it is not between are moved out to it, with which they hold more often.
    """
    if asked.anytime:
        raise not_anytime(metric)
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
    histogram: DyadicHistogram, squares: DyadicHistogram, q: float, asked: Asked, least: float
) -> tuple[float, float]:
    """Return Woodruff's (1952) limits: the quantiles where the share below may be this one.

    That share is a mean of rows below and above, and varies by Σ w² of both. As many rows of weight
    one have a share that varies so, though no more than all weights are worth: limits are at the
    shares of their order statistics.
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
        return math.nan, math.nan  # weights whose squares no float64 holds
    most = worth / (below + above)
    rows = int(min(worth * q * (1 - q) / varies, most) if varies else most)
    first = binomial_quantile(asked.tail, rows, q)
    last = binomial_quantile(1 - asked.tail, rows, q) + 1
    low = least if first < 1 else quantile(histogram, first / rows, "averaged_inverted_cdf").low
    if last > rows:
        return low, math.inf
    return low, quantile(histogram, last / rows, "averaged_inverted_cdf").high


def _at(histogram: DyadicHistogram, rank: int, n: int, least: float) -> tuple[float, float]:
    """Return the edges of the cell that holds the row of a rank, counted from 1."""
    if rank < 1:
        return least, least
    return (math.inf, math.inf) if rank > n else ranked(histogram, rank)
