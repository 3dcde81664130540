"""What is made of an estimate: corrected for several pairs, widened by what is not exact, said."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from streammetrics.inference.distributions import normal_quantile, normal_tail

if TYPE_CHECKING:
    from streammetrics.core.metric import Metric
    from streammetrics.inference.comparing.base import Estimate, Side

NO_EVIDENCE = "no evidence"


def verdict(
    metric: Metric[object], pair: tuple[str, str], difference: float, p: float, chance: float
) -> str:
    """Return which model is better; where more is neither better nor worse, which is higher."""
    if not p < chance:  # or nan
        return NO_EVIDENCE
    higher = metric.higher_is_better
    first = difference > 0 if higher is not False else difference < 0
    return f"{pair[0] if first else pair[1]} {'higher' if higher is None else 'better'}"


def widened(estimate: Estimate, one: Side, other: Side) -> Estimate:
    """Return an estimate that holds for whatever the exact values are, where these are not known.

    The limits are moved outwards by as much as the difference may be off, and p is that of the
    least difference there may be.
    """
    if one.metric.exact and other.metric.exact:
        return estimate
    first, second = one.metric.bounds(), other.metric.bounds()
    below = (one.value - first.low) + (second.high - other.value)
    above = (first.high - one.value) + (other.value - second.low)
    difference = estimate.difference
    off = below if difference > 0 else above
    p = estimate.p
    if off >= abs(difference):
        p = 1.0
    elif off > 0 and 0 < p < 1:
        z = -normal_quantile(p / 2) if p > 1e-300 else math.inf
        p = min(1.0, 2 * normal_tail(z * (1 - off / abs(difference)))) if z < math.inf else p
    return estimate._replace(low=estimate.low - below, high=estimate.high + above, p=p)


def clipped(estimate: Estimate, metric: Metric[object]) -> Estimate:
    """Return an estimate with limits that two values of the metric can differ by."""
    if metric.value_range is None:
        return estimate
    lowest, highest = metric.value_range
    most = highest - lowest
    return estimate._replace(low=max(estimate.low, -most), high=min(estimate.high, most))
