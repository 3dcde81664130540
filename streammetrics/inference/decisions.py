"""Decisions about differences: margins, verdicts, and the power to detect a difference."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from streammetrics.core.columns.batch import near
from streammetrics.inference.distributions import normal_quantile, t_quantile

if TYPE_CHECKING:
    from streammetrics.core.metric import Metric
    from streammetrics.inference.paired import Estimate


Margin: TypeAlias = float | Mapping[str, float] | None

BETTER, NOT_WORSE, WORSE, UNDECIDED = "better", "not worse", "worse", "undecided"
_MOST = 1 << 62  # units at which the search ends


def margins_of(
    margin: float | Mapping[str, float], metrics: Mapping[str, Metric]
) -> dict[str, float]:
    """Return the margin of each metric that has one.

    One number applies to all metrics with a better direction.

    Raises:
        ValueError: A margin is negative or no number, or its metric does not exist or has no better
            direction.
    """
    directed = [name for name, metric in metrics.items() if metric.higher_is_better is not None]
    given = margin if isinstance(margin, Mapping) else dict.fromkeys(directed, margin)
    if not given:
        raise ValueError(
            f"margin={margin!r}: expected a margin of a metric that has a better direction"
        )
    for name, value in given.items():
        if name not in metrics:
            raise ValueError(f"margin: no metric {name!r}{near(str(name), metrics)}")
        if name not in directed:
            raise ValueError(
                f"margin: {name!r}, {metrics[name]._titled()}, has no better direction"
            )
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not 0 <= value < math.inf:
            raise ValueError(f"margin of {name!r} is {value!r}: expected a number >= 0")
    return {name: float(value) for name, value in given.items()}


def decided(metric: Metric, estimate: Estimate, margin: float) -> str:
    """Return the verdict about a model: better, not worse, worse or undecided."""
    low, high = estimate.low, estimate.high
    if metric.higher_is_better is False:
        low, high = -high, -low
    if low > 0:
        return BETTER
    if low > -margin:
        return NOT_WORSE
    return WORSE if high < 0 else UNDECIDED


def check_power(power: object) -> float:
    """Validate a power; raise `ValueError` for an invalid one."""
    if not isinstance(power, int | float) or isinstance(power, bool) or not 0 < power < 1:
        raise ValueError(f"power={power!r}: expected a share such as 0.8")
    return float(power)


def _quantile(p: float, df: float) -> float:
    return normal_quantile(p) if math.isinf(df) else t_quantile(p, df)


def standard_error(low: float, high: float, level: float, df: float = math.inf) -> float:
    """Return the standard error of a value with these limits of the given level."""
    return (high - low) / 2 / _quantile((1 + level) / 2, df)


def _reach(power: float, level: float, df: float) -> float:
    """Return the detectable difference in standard errors."""
    return _quantile((1 + level) / 2, df) + _quantile(power, df)


def detectable(error: float, df: float, power: float, level: float) -> float:
    """Return the smallest difference whose lower limit is above 0 with the given power.

    It is ``nan`` if the standard error is not known.
    """
    return error * _reach(power, level, df) if error > 0 else math.nan


def needed(error: float, n: int, difference: float, power: float, level: float) -> int:
    """Return the units needed to detect a difference, given the standard error of `n` units."""

    def detects(units: int) -> bool:
        scaled = error * math.sqrt(n / units)
        return detectable(scaled, units - 1, power, level) <= difference

    low, high = 1, 2
    while not detects(high):
        low, high = high, 2 * high
        if high > _MOST:
            return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if detects(middle) else (middle, high)
    return high
