"""The interval of each metric: which rule there is for it, and the values at its extremes."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.errors import InvalidBatchError, UndefinedMetricWarning
from streammetrics.core.metric_set import MetricSet
from streammetrics.live.possible import calibration, classes, orders, targets
from streammetrics.live.rows import AT_ONCE, batch_of
from streammetrics.metrics.scores.calibration import CalibrationError
from streammetrics.metrics.scores.view import staircases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from streammetrics.core.layout import State
    from streammetrics.core.mergeable import Mergeable
    from streammetrics.core.metric import Metric
    from streammetrics.core.results.values import Interval
    from streammetrics.live.possible.unlabelled import Unlabelled
    from streammetrics.metrics.scores.view import Staircase

    Labels = Iterable[NDArray[Any]]
    Range = tuple[float, float] | None


def possible(suite: Mergeable, state: State, rows: Unlabelled, target_range: Range) -> Any:
    """Return what each metric may be, by name, or of a single one; ``None`` where nobody knows."""
    metrics: Any = suite.items() if isinstance(suite, MetricSet) else [("", suite)]
    found = {name: _interval(metric, suite, state, rows, target_range) for name, metric in metrics}
    return found if isinstance(suite, MetricSet) else found[""]


def _interval(
    metric: Metric, suite: Mergeable, state: State, rows: Unlabelled, target_range: Range
) -> Interval | None:
    known = metric._over(suite._at(state)._accumulator)  # of this metric at the state
    if not rows.columns or not len(next(iter(rows.columns.values()))):
        return known.bounds()
    if "sample_weight" in rows.columns or not known.exact:
        return None
    try:
        if targets.has(metric):
            return _extremes(known, rows, targets.labels(metric, rows, target_range))
        two = classes.two_classes(known, rows)
        if type(metric) in orders.RULES and orders.is_plain(metric):
            scores = rows.of("y_score")
            return None if two is None or scores is None else _by_order(known, scores)
        if isinstance(metric, CalibrationError):
            return _calibration(known, rows, two)
        rule = classes.rule_of(metric, rows, two, known)
        return None if rule is None else _extremes(known, rows, *rule)
    except InvalidBatchError:  # labels are of another kind than those seen
        return None


def _by_order(known: Metric, scores: NDArray[np.float64]) -> Interval | None:
    stairs = _stairs(known)
    if stairs is None:
        return None
    return orders.RULES[type(known)](orders.groups_of(stairs, scores))


def _stairs(known: Metric) -> Staircase | None:
    """Return the scores of one class against the other, ``None`` where there are more classes."""
    scores_seen: Any = known._read()[0]
    stairs: Sequence[Staircase] = staircases(scores_seen)
    return stairs[0] if len(stairs) == 1 and stairs[0].counted else None


def _calibration(known: Any, rows: Unlabelled, two: Any) -> Interval | None:
    scores = rows.of("y_score")
    if two is None or scores is None or not orders.is_plain(known, "n_bins", "norm", "strategy"):
        return None
    blank = _with(known, rows, np.full(len(scores), two[0]))
    stairs = _stairs(blank)
    if stairs is None:
        return None
    called = calibration.labels(known, stairs, scores)
    return _extremes(known, rows, [np.where(one, two[1], two[0]) for one in called])


def _extremes(
    known: Metric,
    rows: Unlabelled,
    assigned: Labels,
    further: Callable[[], Labels] | None = None,
) -> Interval | None:
    """Return the least and the most of a metric's values at some labels of the rows.

    Those `further` ones are tried where some of the values are undefined.
    """
    values = [_value(_with(known, rows, labels)) for labels in assigned]
    if further is not None and any(map(math.isnan, values)):
        values += [_value(_with(known, rows, labels)) for labels in further()]
    return orders.between(values)


def _with(known: Metric, rows: Unlabelled, labels: NDArray[Any]) -> Metric:
    """Return a metric that has seen the rows with these labels as well."""
    twin = known.copy()
    title = rows.titles.get("y_true", "y_true")
    every: dict[str, Any] = {**rows.columns, title: labels}
    inputs = {name: every[rows.titles.get(name, name)] for name in known.inputs}
    for start in range(0, len(labels), AT_ONCE):
        part = {name: column[start : start + AT_ONCE] for name, column in inputs.items()}
        twin.feed(batch_of(twin, part)._columns)
    return twin


def _value(metric: Metric) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        return float(metric.compute())
