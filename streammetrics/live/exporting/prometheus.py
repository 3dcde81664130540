"""Families of metrics for Prometheus, in a process and as files."""

from __future__ import annotations

import json
import math
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streammetrics.core.needs import needs
from streammetrics.live.events import SECOND, duration, shown_duration
from streammetrics.live.reading import length_of, numbers_of
from streammetrics.live.series import series_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from prometheus_client import Metric
    from prometheus_client.registry import Collector

    from streammetrics.live.alerts.rule import Alerts, Rule
    from streammetrics.live.asking import Asking
    from streammetrics.live.panes import Coverage


__all__ = [
    "LiveCollector",
    "exposition",
]


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
    """One number and what it is of."""

    labels: dict[str, str]
    value: float


Families = dict[str, list[Sample]]  # by the name without its prefix


def families(live: Asking, window: str) -> Families:
    """Return what there is to say of a live state, which is read once."""
    found = _of_window(live.window(window), window)
    found |= _of_coverage(live.coverage(window), window)
    with live._at_rest() as stream:
        newest, dropped = stream.panes.newest, stream.panes.dropped
    if newest >= 0:
        found["newest_event_timestamp_seconds"] = [Sample({}, newest / 1e9)]
    found["dropped_rows"] = [Sample({}, float(dropped))]
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
    refused = {
        kind: float(getattr(counted, f"{kind}_refused"))
        for kind in ("predictions", "labels", "observations")
    }
    found: Families = {
        "predictions": [
            Sample({"window": window, "label": fate}, float(getattr(counted, fate)))
            for fate in FATES
        ],
        "refused_events": [Sample({"kind": kind}, n) for kind, n in refused.items()],
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
    """Return what there is to say of alerts."""
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
    """Return labels as the text formats of Prometheus have them."""
    escaped = {
        name: value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
        for name, value in labels.items()
    }
    inside = ",".join(f'{name}="{value}"' for name, value in escaped.items())
    return f"{{{inside}}}" if inside else ""


with needs("prometheus_client", "live"):
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
    from prometheus_client.exposition import choose_encoder


class LiveCollector:
    """Metrics of a live state: values with their bounds, rows, coverage, delays and alerts.

    Every worker reads the whole service where there is a store, so that one target is enough and
    several say the same; no files of `prometheus_client`'s own are needed. `docs/alerts.md` lists
    the names.

    Args:
        live: The live state.
        window: Of which window values are told.
        rules: Rules of alerts.
        title: The name of the service in `streammetrics_info`, by which generated rules select it.

    Example:
        >>> import streammetrics as sm
        >>> from prometheus_client import CollectorRegistry, generate_latest
        >>> from streammetrics.live.exporting.prometheus import LiveCollector
        >>> live = sm.Live(sm.Mean()).observe(time=[0, 60], values=[1.0, 4.0])
        >>> registry = CollectorRegistry()
        >>> registry.register(LiveCollector(live, window="1h"))
        >>> print(generate_latest(registry).decode().splitlines()[5])
        streammetrics_value{metric="value",window="1h"} 2.5
    """

    def __init__(
        self,
        live: Asking,
        *,
        window: str = "1h",
        rules: Sequence[Rule] = (),
        title: str = "Live metrics",
    ) -> None:
        self._live, self._window, self._title = live, window, title
        self._rules = tuple(rules)

    def describe(self) -> list[Metric]:
        """Return nothing, so that registering does not read the state."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield the families of one moment."""
        yield info(self._title)
        yield from metrics(
            families(self._live, self._window) | families_of(self._live.alerts(self._rules))
        )


def info(title: str) -> Metric:
    """Return the family that carries the name of the service."""
    family = GaugeMetricFamily(f"{PREFIX}info", "The service, by its title.", labels=("title",))
    family.add_metric([title], 1.0)
    return family


def metrics(found: Families) -> Iterator[Metric]:
    """Yield families as `prometheus_client` has them; what only grows is a counter."""
    for name, samples in found.items():
        labels = tuple(samples[0].labels) if samples else ()
        kind = CounterMetricFamily if name in COUNTERS else GaugeMetricFamily
        family = kind(PREFIX + name, HELP[name], labels=labels)
        for of, value in samples:
            family.add_metric(list(of.values()), value)
        yield family


def exposition(collector: Collector, accept: str = "") -> tuple[bytes, str]:
    """Return what a scrape gets, and its content type, by the ``Accept`` header that it has."""
    registry = CollectorRegistry()
    registry.register(collector)
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type


JOB = "live"  # what `prometheus.yml` of docs/alerts.md calls a service
_KEPT = "15m"  # for which an alert goes on where nothing is scraped, as while a service restarts


class Notice(NamedTuple):
    """How Prometheus passes an alert on.

    Attributes:
        alert: Its name.
        says: The rule in words, with its threshold.
        severity: Whom it is for, as Alertmanager routes it.
        wait: How long it has to fire before it is passed on.
    """

    alert: str
    says: str = ""
    severity: str = "page"
    wait: str = "1min"


def rules(name: str, notices: Sequence[Notice] = (), job: str = JOB) -> str:
    """Return alerting rules of Prometheus, as YAML.

    `Live.alerts` judges what an alert means; these rules pass it on. They select one service of one
    job: `streammetrics_info` says which title an instance has.

    Args:
        name: The title of the service, which is also the name of the group.
        notices: A rule for each of these alerts; without any, one rule for all alerts.
        job: What the configuration of Prometheus calls the service.
    """
    mine = {"job": job}
    info = f"{PREFIX}info{text_of({**mine, 'title': name})}"
    own = f" and on (job, instance) {info}"
    lines = ["groups:", f"  - name: {json.dumps(name)}", "    rules:"]
    for notice in notices:
        of = text_of({**mine, "alert": notice.alert})
        wait = f"{duration(notice.wait, 'for') // SECOND}s"
        now = f"{{{{ with query {json.dumps(f'{PREFIX}alert_value{of}{own}')} }}}}"
        says = f": {notice.says}" if notice.says else ""
        told = f"{notice.alert} fires{says}{now}, now at {{{{ . | first | value }}}}{{{{ end }}}}"
        firing = f"{PREFIX}alert_firing{of} == 1{own}"
        lines += _rule(notice.alert, firing, wait, notice.severity, told)
    if not notices:
        firing = f"{PREFIX}alert_firing{text_of(mine)} == 1{own}"
        lines += _rule("StreammetricsAlert", firing, "1m", "page", "{{ $labels.alert }} fires")
    silent = text_of({**mine, "state": "no data"})
    told = "{{ $labels.alert }} has no data"
    no_data = f"{PREFIX}alert_state{silent} == 1{own}"
    lines += _rule("StreammetricsNoData", no_data, "15m", "ticket", told)
    differs = text_of({**mine, "title!": name})  # title!="..."
    others = f"last_over_time({PREFIX}info{differs}[1d])"
    down = f"up{text_of(mine)} == 0 unless on (job, instance) {others} or on (job) absent({info})"
    told = f"nothing is scraped of {job}"
    lines += _rule("StreammetricsDown", down, "5m", "page", told, "")
    return "\n".join(lines) + "\n"


def _rule(
    alert: str, expression: str, wait: str, severity: str, summary: str, kept: str = _KEPT
) -> list[str]:
    return [
        f"      - alert: {json.dumps(alert)}",
        f"        expr: {json.dumps(expression)}",
        f"        for: {wait}",
        *([f"        keep_firing_for: {kept}"] if kept else []),
        "        labels:",
        f"          severity: {json.dumps(severity)}",
        "        annotations:",
        f"          summary: {json.dumps(summary)}",
    ]


def dashboard(title: str, metrics: Sequence[str], window: str) -> str:
    """Return a dashboard of Grafana, as JSON: a panel for each metric, rows, labels, alerts."""
    panels = []
    for metric in metrics:
        of = text_of({"metric": metric, "window": window})
        sides = (("value", metric), ("value_low", "low"), ("value_high", "high"))
        queries = [(f"{PREFIX}{family}{of}", legend) for family, legend in sides]
        panels.append(_panel(metric, queries))
    of = text_of({"window": window})
    panels += [
        _panel("Rows with a label", [(f"{PREFIX}rows{of}", "rows")]),
        _panel("Labels", [(f"{PREFIX}predictions{of}", "{{label}}")], stacked=True),
        _panel("Label delay", [(f"{PREFIX}label_delay_seconds{of}", "{{percentile}}")], unit="s"),
        _panel("Alerts that fire", [(f"{PREFIX}alert_firing", "{{alert}}")]),
        _panel(
            "Age of the newest event",
            [(f"time() - {PREFIX}newest_event_timestamp_seconds", "age")],
            unit="s",
        ),
    ]
    for place, panel in enumerate(panels):
        panel["id"] = place + 1
        panel["gridPos"] = {"h": 8, "w": 12, "x": 12 * (place % 2), "y": 8 * (place // 2)}
    return json.dumps(
        {
            "title": title,
            "tags": ["streammetrics"],
            "schemaVersion": 39,
            "refresh": "30s",
            "time": {"from": "now-24h", "to": "now"},
            "templating": {
                "list": [{"name": "source", "type": "datasource", "query": "prometheus"}]
            },
            "panels": panels,
        },
        indent=2,
    )


def _panel(
    title: str, queries: Sequence[tuple[str, str]], unit: str = "short", *, stacked: bool = False
) -> dict[str, object]:
    source = {"type": "prometheus", "uid": "${source}"}
    custom = {"stacking": {"mode": "normal"}, "fillOpacity": 20} if stacked else {}
    return {
        "type": "timeseries",
        "title": title,
        "datasource": source,
        "fieldConfig": {"defaults": {"unit": unit, "custom": custom}, "overrides": []},
        "targets": [
            {"refId": chr(65 + place), "datasource": source, "expr": query, "legendFormat": legend}
            for place, (query, legend) in enumerate(queries)
        ],
    }


def openmetrics(live: Asking, window: str, every: str) -> Iterator[str]:
    """Yield the lines of the history that is kept, for `promtool tsdb create-blocks-from`.

    Labels that come late change windows that were scraped long ago; what is scraped stays as it
    was. This is each window as it is known now, at its end. Where only coarser panes are kept, a
    window is longer, and its label ``window`` says so.
    """
    tiers = live._config.tiers
    windows = [*live._read(live._spans(window, every))]
    series = series_of(live._suite, windows)
    lengths = [shown_duration(length_of(tiers, window.span)) for window in windows]
    seconds = [f"{ns // 10**9}.{ns % 10**9:09d}" for ns in _nanoseconds(series["time"])]
    for family, columns in _columns(series).items():
        yield f"# HELP {PREFIX}{family} {HELP[family]}\n# TYPE {PREFIX}{family} gauge\n"
        for (labels, values), length in product(columns, dict.fromkeys(lengths)):
            of = f"{PREFIX}{family}{text_of({**labels, 'window': length})}"
            for time, value, mine in zip(seconds, values.tolist(), lengths, strict=True):
                if mine == length and not math.isnan(value):
                    yield f"{of} {value!r} {time}\n"
    yield "# EOF\n"


def _nanoseconds(times: object) -> list[int]:
    found: list[int] = np.asarray(times).astype("datetime64[ns]").view(np.int64).tolist()
    return found


def _columns(series: Any) -> dict[str, list[tuple[dict[str, str], Any]]]:
    """Return the columns of a series by family, and the labels of each."""
    found: dict[str, list[tuple[dict[str, str], Any]]] = {
        "value": [],
        "value_low": [],
        "value_high": [],
        "rows": [({}, series["n_rows"].astype(float))],
        "coverage": [({}, series["coverage"])],
    }
    for name in series:
        alone = name == "value" and "low" in series
        low, high = ("low", "high") if alone else (f"{name}_low", f"{name}_high")
        if low in series and high in series:
            sides = zip(("value", "value_low", "value_high"), (name, low, high), strict=True)
            for family, column in sides:
                found[family].append(({"metric": name}, series[column]))
    return found
