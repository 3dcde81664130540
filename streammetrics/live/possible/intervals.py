"""The interval of each metric: what it may be, whatever labels are missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streammetrics.core.errors import IncompatibleMetricsError, InvalidBatchError
from streammetrics.core.metric_set import MetricSet
from streammetrics.live.possible.rules import rule_of
from streammetrics.live.spans import ALONE, metrics_of

if TYPE_CHECKING:
    from streammetrics.core.feeding.states import State
    from streammetrics.core.mergeable import Mergeable
    from streammetrics.core.metric import Metric
    from streammetrics.core.results.values import Interval
    from streammetrics.live.possible.unlabelled import Unlabelled

    Range = tuple[float, float] | None


def possible(suite: Mergeable, state: State, rows: Unlabelled, target_range: Range) -> object:
    """Return what each metric may be, by name, or of a single one; ``None`` where nobody knows."""
    seen = suite._at(state)._accumulator
    found = {
        name: _interval(metric._over(seen), metric, suite, rows, target_range)
        for name, metric in metrics_of(suite).items()
    }
    return found if isinstance(suite, MetricSet) else found[ALONE]


def _interval(
    known: Metric, metric: Metric, suite: Mergeable, rows: Unlabelled, target_range: Range
) -> Interval | None:
    """Return what one metric may be, which is `known` of the rows with a label."""
    if not rows.n_left + rows.n_waiting:
        return known.bounds()
    rule = rule_of(metric, getattr(suite, "columns", {}))
    held = None if rule is None else rows.of(rule.asks)
    if rule is None or held is None:
        return None
    try:
        return rule.interval(known, held, target_range)
    except (InvalidBatchError, IncompatibleMetricsError):  # labels are of another kind
        return None
