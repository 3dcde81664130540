"""The interval of each metric over all values of missing labels."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from streammetrics.core.metric_set import MetricSet
from streammetrics.live.possible.rules import rule_of
from streammetrics.live.spans import ALONE, attempt, metrics_of

if TYPE_CHECKING:
    from streammetrics.core.feeding.states import State
    from streammetrics.core.mergeable import Mergeable
    from streammetrics.core.metric import Metric
    from streammetrics.core.results.values import Interval
    from streammetrics.live.possible.unlabelled import Unlabelled

    Range = tuple[float, float] | None


def possible(suite: Mergeable, state: State, rows: Unlabelled, target_range: Range) -> object:
    """Return the interval of each metric by name, or of a single metric; ``None`` if unknown."""
    seen = suite._at(state)._accumulator
    found = {
        name: _interval(metric._over(seen), metric, suite, rows, target_range)
        for name, metric in metrics_of(suite).items()
    }
    return found if isinstance(suite, MetricSet) else found[ALONE]


def _interval(
    known: Metric, metric: Metric, suite: Mergeable, rows: Unlabelled, target_range: Range
) -> Interval | None:
    """Return the interval of one metric; `known` is the metric of the labelled rows."""
    if not rows.n_left + rows.n_waiting:
        return attempt(known.bounds)[0]
    rule = rule_of(metric, getattr(suite, "columns", {}))
    held = None if rule is None else rows.of(rule.asks)
    if rule is None or held is None:
        return None
    return attempt(partial(rule.interval, known, held, target_range))[0]  # or labels do not fit
