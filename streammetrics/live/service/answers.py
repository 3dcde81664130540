"""What a service says of its metrics, as what JSON has."""

from __future__ import annotations

import math
import warnings
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.errors import NoConfidenceError, UndefinedMetricWarning
from streammetrics.live.reading import ALONE, metrics_of, spans_of
from streammetrics.live.time import shown_time
from streammetrics.slices.bins import title_of
from streammetrics.slices.slices import Slices

if TYPE_CHECKING:
    from streammetrics.core.metric import Metric
    from streammetrics.core.types import Document, Json
    from streammetrics.live.alerts.states import Alerts
    from streammetrics.live.asking import Asking
    from streammetrics.live.coverage import Coverage
    from streammetrics.live.service.names import PageView

LEVEL = 0.95  # of confidence
MOST = 500  # points of a line


def now(live: Asking, view: PageView) -> Document:
    """Return the newest window: each metric with its intervals, and what became of its rows."""
    window = live.window(view.window)
    end = _end(live, view.window)
    may_be = _possible(live, view)
    metrics = {
        name: {**measured(metric), "possible": may_be[name]}
        for name, metric in metrics_of(window).items()
    }
    return {
        "title": view.title,
        "window": view.window,
        "end": end,
        "n_rows": window.n_rows,
        "metrics": metrics,
        "coverage": counted(live.coverage(view.window)),
    }


class WindowAnswers:
    """Windows one after the other; one that is as it was is not measured again."""

    def __init__(self) -> None:
        self._known: dict[bytes, dict[str, Document]] = {}

    def read(self, live: Asking, window: str, every: str) -> Document:
        """Return the windows, the newest last: each metric as columns."""
        with live._at_rest() as stream:
            newest, tiers = stream.panes.newest, live._config.tiers
            spans = spans_of(tiers, window, every, newest, live._clock)[-MOST:]
        times: list[str] = []
        rows: list[int] = []
        covered: list[float | None] = []
        columns: dict[str, dict[str, list[Json]]] = {}
        known: dict[bytes, dict[str, dict[str, object]]] = {}
        for span in spans:
            with live._at_rest() as stream:  # others come in between
                found, share = live._over(span), stream.share(span, live._clock)
            if not (found.n_rows or times):
                continue  # a line begins where there are rows
            times.append(shown_time(tiers[span.place].start(span.last + 1)))
            rows.append(found.n_rows)
            covered.append(_number(share))
            key = blake2b(found.to_bytes(), digest_size=16).digest()
            known[key] = self._known.get(key) or {
                n: measured(m) for n, m in metrics_of(found).items()
            }
            for name, values in known[key].items():
                for part, value in values.items():
                    columns.setdefault(name, {}).setdefault(part, []).append(value)
        self._known = known
        return {
            "window": window,
            "every": every,
            "time": times,
            "n_rows": rows,
            "coverage": covered,
            "metrics": columns,
        }


def coverage(live: Asking, window: str) -> Document:
    """Return what became of the predictions of the newest window."""
    return {"window": window, **counted(live.coverage(window))}


def possible(live: Asking, view: PageView) -> dict[str, object]:
    """Return what each metric may be, whatever the missing labels are."""
    return {"window": view.window, "metrics": _possible(live, view)}


def _possible(live: Asking, view: PageView) -> dict[str, list[object] | None]:
    found = live.possible(view.window, target_range=view.target_range)
    named = found if isinstance(found, dict) else {ALONE: found}
    return {name: _interval(interval) for name, interval in named.items()}


def alerts(judged: Alerts) -> Document:
    """Return how rules stand, those that fire first."""
    found = [{**alert.to_dict(), "changes": len(alert.changes)} for alert in judged]
    for alert in found:
        alert |= {key: _number(alert[key]) for key in ("value", "low", "high")}
    order = {"firing": 0, "no data": 1}
    return {"alerts": sorted(found, key=lambda alert: order.get(str(alert["state"]), 2))}


def slices(live: Any, window: str) -> dict[str, object]:
    """Return each kind of slices that is kept, of the newest window, as lines of a table."""
    if not isinstance(live._suite, Slices):
        return {"window": window, "slices": []}
    found = []
    for spec in filter(None, live._suite.by):
        by = [title_of(part) for part in spec]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            columns = live.window(window, by=by).compute().to_dict()
        wanted = {n: c for n, c in columns.items() if n in by or _is_plain(c)}
        rows = [[_cell(cell) for cell in row] for row in zip(*wanted.values(), strict=True)]
        found.append({"by": by, "header": list(wanted), "rows": rows[:MOST]})
    return {"window": window, "slices": found}


def _is_plain(cells: Json) -> bool:
    return all(isinstance(cell, int | float | np.number) for cell in cells)


def _cell(cell: object) -> object:
    return _number(cell) if isinstance(cell, int | float | np.number) else shown_key(cell)


def shown_key(key: object) -> str | None:
    """Return a key as text; one that is missing is nothing."""
    return None if key is None else str(key)


def measured(metric: Metric[Any]) -> dict[str, object]:
    """Return a value that is a number, what certainly holds the exact one, and its confidence."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        value, bounds = metric.compute(), metric.bounds()
        if not isinstance(value, int | float | np.number):
            return {"value": None, "low": None, "high": None, "sure_low": None, "sure_high": None}
        try:
            sure = metric.confidence(LEVEL)
            limits = _number(sure.low), _number(sure.high)
        except NoConfidenceError:  # metrics without limits, or of weights that tell too little
            limits = None, None
    return {
        "value": _number(value),
        "low": _number(bounds.low),
        "high": _number(bounds.high),
        "sure_low": limits[0],
        "sure_high": limits[1],
    }


def counted(found: Coverage) -> Document:
    """Return what became of predictions."""
    counts = {name: _number(value) for name, value in found._asdict().items()}
    return {**counts, "coverage": _number(found.coverage)}


def _end(live: Asking, window: str) -> str:
    with live._at_rest():
        span = live._span(window, None)
    return shown_time(live._config.tiers[span.place].start(span.last + 1))


def _interval(interval: Any) -> list[object] | None:
    if interval is None or not isinstance(interval.low, int | float | np.number):
        return None
    return [_number(interval.low), _number(interval.high)]


def _number(value: object) -> Json:
    """Return a number as JSON has it, which knows no nan."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, int | float) else None
