"""The rule of each metric: the statistic to keep of unlabelled rows, and the interval from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from streammetrics.live.possible import calibration, classes, losses, orders, targets

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streammetrics.core.metric import Metric
    from streammetrics.core.results.values import Interval
    from streammetrics.live.possible.remembered import Remembered

    Range = tuple[float, float] | None


class MissingLabelRule(NamedTuple):
    """The statistic that a metric needs of unlabelled rows, and how to get its interval."""

    asks: Remembered
    interval: Callable[[Metric, Any, Range], Interval | None]


_RULES = (targets, orders, calibration, losses, classes)


def rule_of(metric: Metric, titles: Mapping[str, str]) -> MissingLabelRule | None:
    """Return the rule for a metric whose inputs have these names, ``None`` if there is none."""
    for each in _RULES:
        asks = each.asks(metric, titles)
        if asks is not None:
            return MissingLabelRule(asks, each.interval)
    return None
