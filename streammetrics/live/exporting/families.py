"""The numbers of a live state as metric families: samples with labels."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.live.pipeline import Refused
from streammetrics.live.spans import (
    ALONE,
    confidence_of,
    metrics_of,
    numbers_of,
    slice_columns,
)
from streammetrics.slices.bins import title_of
from streammetrics.slices.slices import Slices

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from streammetrics.core.confidence import ConfidenceInterval
    from streammetrics.core.types import Json
    from streammetrics.live.alerts.rule import Alerts
    from streammetrics.live.inputs import InputTable
    from streammetrics.live.panes import Coverage
    from streammetrics.live.queries import Queries

PREFIX = "streammetrics_"
FATES = ("labelled", "pending", "expired", "displaced")
PERCENTILES = {"50": "delay_median", "90": "delay_p90", "99": "delay_p99"}
STATES = ("ok", "firing", "no data")

HELP = {
    "value": "A metric of the window.",
    "value_low": "The exact value of the metric is certainly not below.",
    "value_high": "The exact value of the metric is certainly not above.",
    "unreadable": "1 if a metric cannot be read and its value is NaN; /api/now has the reason.",
    "confidence_low": "The 95 % confidence interval of the metric begins here.",
    "confidence_high": "The 95 % confidence interval of the metric ends here.",
    "possible_low": "With all labels, the metric is certainly not below.",
    "possible_high": "With all labels, the metric is certainly not above.",
    "slice_value": "A metric of a slice of the window.",
    "slice_rows": "Rows with a label in a slice of the window.",
    "slices_left_out": "Slices of the window with fewer rows than those that are shown.",
    "input_rows": "Predictions and observations of the window.",
    "input_share": "The part of them that lacks the input, or has one out of order.",
    "input_distance": "The distance of the input from its reference.",
    "input_distance_chance": "Without drift, the distance is below in 999 of 1,000 windows.",
    "rows": "Rows with a label in the window.",
    "predictions": "Predictions of the window by what became of their label.",
    "coverage": "The part of the predictions of the window whose label is known.",
    "label_delay_seconds": "Percentiles of the time from a prediction to its label.",
    "newest_event_timestamp_seconds": "The time of the newest event.",
    "dropped_rows": "Rows that came too late for every pane, as this process saw them.",
    "refused_events": "Events that came too late, or contradict others, as this process saw them.",
    "alert_state": "1 for the state that an alert is in.",
    "alert_firing": "Whether an alert fires.",
    "alert_since_timestamp_seconds": "Since when an alert is in its state.",
    "alert_value": "What an alert compares.",
}


COUNTERS = frozenset({"dropped_rows", "refused_events"})  # all others are gauges


class Sample(NamedTuple):
    """One number and its labels."""

    labels: dict[str, str]
    value: float


Families = dict[str, list[Sample]]  # by name without the prefix


class Exported(NamedTuple):
    """What is exported beside values and certain bounds.

    Attributes:
        slices: The maximum number of slices of each kind, those with the most rows first.
        confidence: Whether to export confidence intervals.
        possible: Whether to export what the missing labels could do.
        target_range: The smallest and the largest target, for `possible`.
        inputs: Whether to export the declared inputs.
    """

    slices: int = 0
    confidence: bool = False
    possible: bool = False
    target_range: tuple[float, float] | None = None
    inputs: bool = False


NOTHING = Exported()


def families(queries: Queries, window: str, more: Exported = NOTHING) -> Families:
    """Return the families of a live state."""
    state = queries.window(window)
    found = _of_window(state, window)
    if more.confidence:
        every = {name: confidence_of(metric) for name, metric in metrics_of(state).items()}
        found |= _of_intervals("confidence", every, window)
    if more.possible:
        may_be = queries.possible(window, target_range=more.target_range)
        every = may_be if isinstance(may_be, dict) else {ALONE: may_be}
        found |= _of_intervals("possible", every, window)
    if more.slices:
        found |= _of_slices(queries, window, more.slices)
    if more.inputs and queries.config.declared.inputs:
        found |= _of_inputs(queries.inputs(window), window)
    found |= _of_coverage(queries.coverage(window), window)
    with queries.reading() as pipeline:
        newest, own = pipeline.panes.newest, pipeline.counters
    if newest >= 0:
        found["newest_event_timestamp_seconds"] = [Sample({}, newest / 1e9)]
    found["dropped_rows"] = [Sample({}, float(own["dropped"]))]
    found["refused_events"] = [Sample({"kind": kind}, float(own[kind])) for kind in Refused._fields]
    return found


def _of_window(state: object, window: str) -> Families:
    found: Families = {"value": [], "value_low": [], "value_high": [], "unreadable": []}
    for name, (*sides, why) in numbers_of(state).items():
        labels = {"metric": name, "window": window}
        for family, value in zip(found.values(), (*sides, float(bool(why))), strict=True):
            family.append(Sample(labels, value))
    rows = float(state.n_rows)  # type: ignore[attr-defined]  # a metric or a set
    return found | {"rows": [Sample({"window": window}, rows)]}


def _of_intervals(
    title: str, every: Mapping[str, ConfidenceInterval | None], window: str
) -> Families:
    found: Families = {f"{title}_low": [], f"{title}_high": []}
    for name, interval in every.items():
        if interval is None or not isinstance(interval.low, int | float | np.number):
            continue
        ends = float(interval.low), float(interval.high)
        if any(map(math.isnan, ends)):
            continue
        for family, end in zip(found.values(), ends, strict=True):
            family.append(Sample({"metric": name, "window": window}, end))
    return found


def _of_slices(queries: Queries, window: str, most: int) -> Families:
    found: Families = {"slice_value": [], "slice_rows": [], "slices_left_out": []}
    if not isinstance(queries.suite, Slices):
        return found
    for spec in filter(None, queries.suite.by):
        by = [title_of(column) for column in spec]
        columns = slice_columns(queries.window(window, by=by))
        rows = columns.pop("n_rows")
        keys = [_key(parts) for parts in zip(*[columns.pop(name) for name in by], strict=True)]
        places = sorted(range(len(rows)), key=lambda place: (-rows[place], keys[place]))
        kind = {"window": window, "by": ", ".join(by)}
        found["slices_left_out"].append(Sample(kind, float(max(len(rows) - most, 0))))
        for place in places[:most]:
            labels = {**kind, "slice": keys[place]}
            found["slice_rows"].append(Sample(labels, float(rows[place])))
            for name, value in _numbers(columns, place):
                found["slice_value"].append(Sample({"metric": name, **labels}, value))
    return found


def _key(parts: tuple[object, ...]) -> str:
    """Return the key of a slice as text: that of one column, or a JSON list."""
    texts = [None if part is None else str(part) for part in parts]
    if len(texts) > 1:
        return json.dumps(texts, ensure_ascii=False)
    return "(missing)" if texts[0] is None else texts[0]


def _numbers(columns: Mapping[str, list[Json]], place: int) -> Iterator[tuple[str, float]]:
    for name, cells in columns.items():
        if isinstance(cells[place], int | float | np.number):
            yield name, float(cells[place])


def _of_inputs(table: InputTable, window: str) -> Families:
    found: Families = {name: [] for name in HELP if name.startswith("input_")}
    for one in table:
        labels = {"input": one.name, "window": window}
        found["input_rows"].append(Sample(labels, float(one.rows)))
        for of in ("nulls", "outside", "unseen"):
            count = getattr(one, of)
            if count is not None and one.rows:
                found["input_share"].append(Sample({**labels, "of": of}, count / one.rows))
        for method, distance in one.distances.items():
            if not math.isnan(distance.value):
                named = {**labels, "method": method}
                found["input_distance"].append(Sample(named, distance.value))
                found["input_distance_chance"].append(Sample(named, distance.chance))
    return found


def _of_coverage(counted: Coverage, window: str) -> Families:
    found: Families = {
        "predictions": [
            Sample({"window": window, "label": fate}, float(getattr(counted, fate)))
            for fate in FATES
        ],
    }
    if counted.predicted:
        found["coverage"] = [Sample({"window": window}, counted.coverage)]
    if counted.labelled:
        found["label_delay_seconds"] = [
            Sample({"window": window, "percentile": p}, getattr(counted, name))
            for p, name in PERCENTILES.items()
        ]
    return found


def families_of(alerts: Alerts) -> Families:
    """Return the families of alerts."""
    found: Families = {name: [] for name in HELP if name.startswith("alert_")} if alerts else {}
    for alert in alerts:
        labels = {"alert": alert.name}
        for state in STATES:
            found["alert_state"].append(Sample({**labels, "state": state}, alert.state == state))
        found["alert_firing"].append(Sample(labels, float(alert.firing)))
        if alert.since is not None:
            since = Sample(labels, alert.since.timestamp())
            found["alert_since_timestamp_seconds"].append(since)
        if alert.until is not None:
            found["alert_value"].append(Sample(labels, alert.value))
    return found


def text_of(labels: Mapping[str, str]) -> str:
    """Format labels as in the Prometheus text formats."""
    escaped = {
        name: value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
        for name, value in labels.items()
    }
    inside = ",".join(f'{name}="{value}"' for name, value in escaped.items())
    return f"{{{inside}}}" if inside else ""
