"""The numbers of a live state as metric families: samples with labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from streammetrics.live.pipeline import Refused
from streammetrics.live.spans import numbers_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streammetrics.live.alerts.rule import Alerts
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


def families(queries: Queries, window: str) -> Families:
    """Return the families of a live state."""
    found = _of_window(queries.window(window), window)
    found |= _of_coverage(queries.coverage(window), window)
    with queries.reading() as pipeline:
        newest, own = pipeline.panes.newest, pipeline.counters
    if newest >= 0:
        found["newest_event_timestamp_seconds"] = [Sample({}, newest / 1e9)]
    found["dropped_rows"] = [Sample({}, float(own["dropped"]))]
    found["refused_events"] = [Sample({"kind": kind}, float(own[kind])) for kind in Refused._fields]
    return found


def _of_window(state: object, window: str) -> Families:
    found: Families = {"value": [], "value_low": [], "value_high": []}
    for name, sides in numbers_of(state).items():
        labels = {"metric": name, "window": window}
        for family, value in zip(found.values(), sides, strict=True):
            family.append(Sample(labels, value))
    rows = float(state.n_rows)  # type: ignore[attr-defined]  # a metric or a set
    return found | {"rows": [Sample({"window": window}, rows)]}


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
