"""Files for tools that read them: alerting rules, a dashboard, and history for `promtool`."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.live.exporting.families import HELP, PREFIX, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streammetrics.live.asking import Asking

_RULES = (
    (
        "StreammetricsAlert",
        f"{PREFIX}alert_firing == 1",
        "0s",
        "page",
        "{{ $labels.alert }} fires",
    ),
    (
        "StreammetricsNoData",
        f'{PREFIX}alert_state{{state="no data"}} == 1',
        "0s",
        "ticket",
        "{{ $labels.alert }} has no data",
    ),
    (
        "StreammetricsDown",
        f"absent({PREFIX}rows)",
        "5m",
        "page",
        "nothing is scraped of streammetrics",
    ),
)


def rules(name: str) -> str:
    """Return alerting rules of Prometheus, as YAML.

    What an alert means is judged by `Live.alerts`, which knows how sure it is; these rules pass it
    on, so that they are the same for every service.

    Args:
        name: What their group is called.
    """
    lines = ["groups:", f"  - name: {json.dumps(name)}", "    rules:"]
    for alert, expression, wait, severity, summary in _RULES:
        lines += [
            f"      - alert: {alert}",
            f"        expr: {json.dumps(expression)}",
            f"        for: {wait}",
            "        labels:",
            f"          severity: {severity}",
            "        annotations:",
            f"          summary: {json.dumps(summary)}",
        ]
    return "\n".join(lines) + "\n"


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
        _panel("Label delay", [(f"{PREFIX}label_delay_seconds{of}", "{{quantile}}")], unit="s"),
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
    was. This is each window as it is known now, at its end.
    """
    series = live.series(window, every=every)
    seconds = [f"{ns // 10**9}.{ns % 10**9:09d}" for ns in _nanoseconds(series["time"])]
    for family, columns in _columns(series, window).items():
        yield f"# HELP {PREFIX}{family} {HELP[family]}\n# TYPE {PREFIX}{family} gauge\n"
        for labels, values in columns:
            of = f"{PREFIX}{family}{text_of(labels)}"
            for time, value in zip(seconds, values.tolist(), strict=True):
                if not math.isnan(value):
                    yield f"{of} {value!r} {time}\n"
    yield "# EOF\n"


def _nanoseconds(times: object) -> list[int]:
    found: list[int] = np.asarray(times).astype("datetime64[ns]").view(np.int64).tolist()
    return found


def _columns(series: Any, window: str) -> dict[str, list[tuple[dict[str, str], Any]]]:
    """Return the columns of a series by family."""
    of = {"window": window}
    found: dict[str, list[tuple[dict[str, str], Any]]] = {
        "value": [],
        "value_low": [],
        "value_high": [],
        "rows": [(of, series["n_rows"].astype(float))],
        "coverage": [(of, series["coverage"])],
    }
    for name in series:
        alone = name == "value" and "low" in series
        low, high = ("low", "high") if alone else (f"{name}_low", f"{name}_high")
        if low in series and high in series:
            sides = zip(("value", "value_low", "value_high"), (name, low, high), strict=True)
            for family, column in sides:
                found[family].append(({"metric": name, **of}, series[column]))
    return found
