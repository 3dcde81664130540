"""Files for other tools: Prometheus rules, a Grafana dashboard, and history for `promtool`."""

from __future__ import annotations

import json
import math
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.live.events import SECOND, duration, shown_duration
from streammetrics.live.exporting.families import HELP, PREFIX, text_of
from streammetrics.live.queries import series_of
from streammetrics.live.spans import length_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from streammetrics.core.types import Array
    from streammetrics.live.queries import Readable, Series

JOB = "live"  # job name in the `prometheus.yml` of docs/alerts.md
_KEPT = "15m"  # how long an alert keeps firing while nothing is scraped, e.g. during a restart


class Notice(NamedTuple):
    """How Prometheus forwards an alert.

    Attributes:
        alert: The name of the alert.
        says: The rule in words, with its threshold.
        severity: The severity label, by which Alertmanager routes it.
        wait: How long it has to fire before it is forwarded.
        labels: More labels, as pairs of name and value.
        runbook: The address of the instructions for whoever gets the alert.
    """

    alert: str
    says: str = ""
    severity: str = "page"
    wait: str = "1min"
    labels: tuple[tuple[str, str], ...] = ()
    runbook: str = ""

    @property
    def every_label(self) -> dict[str, str]:
        """The labels, including the severity."""
        return {"severity": self.severity, **dict(self.labels)}


def rules(name: str, notices: Sequence[Notice] = (), job: str = JOB) -> str:
    """Return Prometheus alerting rules as YAML.

    `Live.alerts` evaluates the alerts; these rules only forward them. They select one service of
    one job by the title in `streammetrics_info`.

    Args:
        name: The title of the service, also used as the name of the group.
        notices: One rule for each of these alerts; if empty, one rule for all alerts.
        job: The job name of the service in the Prometheus configuration.
    """
    mine = {"job": job}
    info = f"{PREFIX}info{text_of({**mine, 'title': name})}"
    own = f" and on (job, instance, model) {info}"
    lines = ["groups:", f"  - name: {json.dumps(name)}", "    rules:"]
    for notice in notices:
        of = text_of({**mine, "alert": notice.alert})
        wait = f"{duration(notice.wait, 'for') // SECOND}s"
        now = f"{{{{ with query {json.dumps(f'{PREFIX}alert_value{of}{own}')} }}}}"
        says = f": {notice.says}" if notice.says else ""
        fires = _literal(f"{notice.alert} fires{says}")
        told = f"{fires}{now}, now at {{{{ . | first | value }}}}{{{{ end }}}}"
        firing = f"{PREFIX}alert_firing{of} == 1{own}"
        notes = {"summary": told, "runbook_url": _literal(notice.runbook)}
        labels = {label: _literal(value) for label, value in notice.every_label.items()}
        lines += _rule(notice.alert, firing, wait, labels, notes)
    if not notices:
        firing = f"{PREFIX}alert_firing{text_of(mine)} == 1{own}"
        told = "{{ $labels.alert }} fires"
        lines += _rule("StreammetricsAlert", firing, "1m", {"severity": "page"}, {"summary": told})
    silent = text_of({**mine, "state": "no data"})
    told = "{{ $labels.alert }} has no data"
    no_data = f"{PREFIX}alert_state{silent} == 1{own}"
    lines += _rule("StreammetricsNoData", no_data, "15m", {"severity": "ticket"}, {"summary": told})
    differs = text_of({**mine, "title!": name})  # formatted as title!="..."
    others = (
        f"(last_over_time({PREFIX}info{differs}[1d]) unless on (job, instance) "
        f"last_over_time({info}[1d]))"
    )
    down = f"up{text_of(mine)} == 0 unless on (job, instance) {others} or on (job) absent({info})"
    told = _literal(f"nothing is scraped of {job}")
    lines += _rule("StreammetricsDown", down, "5m", {"severity": "page"}, {"summary": told}, "")
    return "\n".join(lines) + "\n"


def _literal(text: str) -> str:
    """Escape text for a Prometheus template."""
    return text.replace("{{", '{{"{{"}}')


def _rule(
    alert: str,
    expression: str,
    wait: str,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    kept: str = _KEPT,
) -> list[str]:
    return [
        f"      - alert: {json.dumps(alert)}",
        f"        expr: {json.dumps(expression)}",
        f"        for: {wait}",
        *([f"        keep_firing_for: {kept}"] if kept else []),
        "        labels:",
        *(f"          {name}: {json.dumps(value)}" for name, value in labels.items()),
        "        annotations:",
        *(f"          {name}: {json.dumps(text)}" for name, text in annotations.items() if text),
    ]


def dashboard(title: str, metrics: Sequence[str], window: str, model: str = "") -> str:
    """Return a Grafana dashboard as JSON, with panels for each metric, rows, labels and alerts.

    Args:
        title: The title.
        metrics: The names of the metrics.
        window: The window of their values.
        model: The name of the model, if the service has several.
    """
    panels, only = [], {"model": model} if model else {}
    own = text_of(only) if only else ""
    for metric in metrics:
        of = text_of({"metric": metric, "window": window, **only})
        sides = (("value", metric), ("value_low", "low"), ("value_high", "high"))
        queries = [(f"{PREFIX}{family}{of}", legend) for family, legend in sides]
        panels.append(_panel(metric, queries))
    of = text_of({"window": window, **only})
    panels += [
        _panel("Rows with a label", [(f"{PREFIX}rows{of}", "rows")]),
        _panel("Labels", [(f"{PREFIX}predictions{of}", "{{label}}")], stacked=True),
        _panel("Label delay", [(f"{PREFIX}label_delay_seconds{of}", "{{percentile}}")], unit="s"),
        _panel("Alerts that fire", [(f"{PREFIX}alert_firing{own}", "{{alert}}")]),
        _panel(
            "Age of the newest event",
            [(f"time() - {PREFIX}newest_event_timestamp_seconds{own}", "age")],
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


def openmetrics(live: Readable, window: str, every: str) -> Iterator[str]:
    """Yield the lines of the stored history, for `promtool tsdb create-blocks-from`.

    Late labels change windows after they were scraped, but scraped values are final. This history
    has each window as it is known now, at the time of its end. Where only coarser panes are kept,
    windows are longer, and their ``window`` label states the actual length.
    """
    queries = live._queries
    windows = [*queries.windows(queries.spans(window, every))]
    series = series_of(queries.suite, windows)
    lengths = [shown_duration(length_of(queries.config.tiers, window.span)) for window in windows]
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


def _columns(series: Series) -> dict[str, list[tuple[dict[str, str], Array]]]:
    """Return the columns of a series by family, with the labels of each."""
    found: dict[str, list[tuple[dict[str, str], Array]]] = {
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
