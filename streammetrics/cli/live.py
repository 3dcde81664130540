"""Live states: replayed and shown."""

from __future__ import annotations

import io
import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from streammetrics.cli.errors import CommandError
from streammetrics.cli.evaluating import NO_ROWS, progress_of
from streammetrics.cli.outputs import Outcome, Output, check_outputs, say, write
from streammetrics.core.results.table import csv_text
from streammetrics.live.panes import TOLD
from streammetrics.live.service import answers
from streammetrics.live.service.config import settings
from streammetrics.live.service.history import history, series_rows
from streammetrics.show.formats import Grid, drawn
from streammetrics.show.report import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.types import Array
    from streammetrics.live.live import Live
    from streammetrics.live.service.config import Settings

    Series = dict[str, Array]
    from collections.abc import Callable, Iterator, Mapping

    from streammetrics.core.types import Json


OUT = "--series-out"
_HEAD = b"time,n_rows,coverage"
_SHOWN = 48  # lines of a series that are printed


def replayed(
    found: Settings,
    predictions: Sequence[str],
    labels: Sequence[str],
    fmt: str | None,
    out: str | None,
    *,
    force: bool,
) -> Outcome:
    """Feed files to the live state of a configuration, and return its series as text."""
    outputs = [] if out is None else [Output(OUT, out, is_series)]
    if out is not None and not outputs[0].is_stdout and _form(out) not in {".csv", ".parquet"}:
        raise CommandError(f"{OUT} {out}: expected a file that ends in .csv or .parquet, or -")
    events = history(found, predictions, labels, fmt)
    store = found.options["store"]
    check_outputs(outputs, [*events.sources, *([store] if store else [])], force=force)
    for note in events.notes:
        say(f"note: {note}")
    live = found.live()
    journal = live._ingest.journal
    with (
        nullcontext() if journal is None else journal.all_or_none(),
        progress_of(events.n_events, "replay") as progress,
    ):
        events.feed(live, progress)
    with live:
        series = live.series(found.view.window, every=found.view.every)
        told = [_counted(live, found), *_replayed_alerts(live, found)]
    if out is None:
        text = drawn([_grid(series, found), *told])
    elif outputs[0].is_stdout:
        text = _csv(series)
    else:
        write(out, _csv(series) if _form(out) == ".csv" else _parquet(series))
        text = drawn(told)
    if not events.n_events:
        return Outcome(text, NO_ROWS, "no rows: nothing was measured")
    return Outcome(text)


def _form(path: str) -> str:
    return os.path.splitext(path)[1].lower()


def is_series(path: str) -> bool:
    """Whether a file is a series that was written before."""
    with open(path, "rb") as file:
        if file.read(len(_HEAD)) == _HEAD:
            return True
    try:
        return pq.read_schema(path).names[:3] == ["time", "n_rows", "coverage"]
    except (OSError, pa.ArrowException):
        return False


def _csv(series: Series) -> str:
    return csv_text(series_rows(series))


def _parquet(series: Series) -> bytes:
    sink = io.BytesIO()
    columns: dict[str, Any] = {name: pa.array(column) for name, column in series.items()}
    for name in ("start", "time"):
        columns[name] = pa.array(series[name], pa.timestamp("ns", "UTC"))
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def _grid(series: Series, found: Settings) -> Grid:
    """Return the newest windows as a table."""
    total = len(series["time"])
    some = np.flatnonzero(series["n_rows"] > 0)[-_SHOWN:]
    title = f"Windows of {found.view.window} (UTC), longer where only coarser panes are kept"
    if len(some) < total:
        title += f": the last {len(some)} of {total:,} that have rows; {OUT} has all"
    names = [name for name in found.suite if name in series]
    starts, times = (series[name].astype("datetime64[m]") for name in ("start", "time"))
    lines = [
        (
            str(starts[row]).replace("T", " "),
            str(times[row]).replace("T", " "),
            f"{series['n_rows'][row]:,}",
            "" if np.isnan(share := series["coverage"][row]) else f"{share:.1%}",
            *(number(float(series[name][row])) for name in names),
        )
        for row in some.tolist()
    ]
    return Grid(title, ("From", "Until", "Rows", "Labelled", *names), lines)


def _replayed_alerts(live: Live, found: Settings) -> list[Grid]:
    """Return what the alerts would have done."""
    alerts = live.alerts(found.rules)
    lines: list[tuple[str, ...]] = [
        (alert.name, state, f"{time:%Y-%m-%d %H:%M}", alert.why if last else "")
        for alert in alerts
        for place, (time, state) in enumerate(alert.changes)
        for last in [place == len(alert.changes) - 1]
    ]
    return [Grid("Alerts", ("Alert", "State", "Since", "Why"), lines)] if lines else []


def _counted(live: Live, found: Settings) -> Grid:
    """Return what became of all events, as far back as the coarsest panes reach."""
    tier = found.options["tiers"][-1]
    counts = live.coverage(tier[1])
    wanted = (
        "predicted", "labelled", "pending", "expired", "displaced", "corrected",
        "labels_waiting", "labels_unmatched", "predictions_refused", "labels_refused",
    )  # fmt: skip
    lines: list[tuple[str, ...]] = [("rows", f"{live.n_rows:,}")]
    lines += [
        (name.replace("_", " "), f"{getattr(counts, name):,}")
        for name in wanted
        if getattr(counts, name)
    ]
    if live.dropped:
        lines.append(("older than any pane", f"{live.dropped:,}"))
    return Grid(f"In {tier[1]}", ("Events", "Count"), lines)


FIRING = 1  # the exit code where an alert fires
_PATIENCE = 60.0  # seconds; a long history takes some at first


def standing(target: str, token_env: str | None) -> Outcome:
    """Return the newest window of a service or a store: its metrics, coverage and alerts."""
    now, alerts = _answers(target, token_env, "now", "alerts")
    with _expecting(target):
        grids = [_metrics(now), *_coverage(now["coverage"]), *_alerts(alerts["alerts"])]
    return Outcome(drawn(grids))


def firing(target: str, token_env: str | None, out: str | None, *, force: bool) -> Outcome:
    """Return how the rules of a service or a store stand; the exit code is 1 where one fires."""
    outputs = [] if out is None else [Output("--json", out, _is_alerts)]
    check_outputs(outputs, [target], force=force)
    (told,) = _answers(target, token_env, "alerts")
    with _expecting(target):
        grids = _alerts(told["alerts"])
        code = FIRING if any(each["state"] == "firing" for each in told["alerts"]) else 0
    text = drawn(grids) if grids else f"{target} has no rules: [alerts] holds them\n"
    if out is not None:
        whole = json.dumps(told, indent=2, ensure_ascii=False) + "\n"
        if outputs[0].is_stdout:
            return Outcome(whole, code)
        write(out, whole)
    return Outcome(text, code)


def _is_alerts(path: str) -> bool:
    with open(path, "rb") as file:
        try:
            found = json.load(file)
        except (ValueError, RecursionError):
            return False
    return isinstance(found, dict) and {*found} == {"alerts"}


@contextmanager
def _expecting(target: str) -> Iterator[None]:
    """Raise about the address where an answer is of another form."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise CommandError(f"{target} answers, but not as a live service does") from error


def _answers(target: str, token_env: str | None, *names: str) -> list[Json]:
    """Return what a service, or the store of a configuration, answers to some questions."""
    if not target.startswith(("http://", "https://")):
        return _read(target, names)
    token = os.environ.get(token_env, "") if token_env else ""
    if token_env and not token:
        raise CommandError(f"the environment has no {token_env}, or an empty one: export it")
    _check_address(target)
    base = target.rstrip("/")
    return [_asked(f"{base}/api/{name}", token) for name in names]


def _check_address(target: str) -> None:
    """Raise unless an address names a host, and a port or none."""
    try:
        parts = urllib.parse.urlsplit(target)
        host, _ = parts.hostname or "", parts.port
        host.encode("idna")
    except ValueError:
        host = ""
    if not host or any(c.isspace() for c in target):
        raise CommandError(f"{target} is no address of a service, as http://127.0.0.1:8080 is one")


@contextmanager
def of_store(
    found: Settings, advice: str = "give the address of the service, http://..."
) -> Iterator[Live]:
    """Open the live state that settings have a store for.

    Raises:
        CommandError: There is no store; the message ends with the advice.
    """
    store = found.options["store"]
    if store is None or not os.path.exists(store):
        lack = "has no store" if store is None else f"has a store, {store}, which is not there yet"
        raise CommandError(f"{found.path} {lack}: {advice}")
    with found.live() as live:
        if found.server.clock == "wall":
            live.now(time.time())
        yield live


def _read(config: str, names: Sequence[str]) -> list[Json]:
    found = settings(config)
    with of_store(found) as live:
        every: dict[str, Callable[[], Json]] = {
            "now": partial(answers.now, live._queries, found.view),
            "alerts": lambda: answers.alerts(live.alerts(found.rules)),
        }
        return [every[name]() for name in names]


def _asked(url: str, token: str) -> Json:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        request = urllib.request.Request(url, headers=headers)
        with urllib.request.urlopen(request, timeout=_PATIENCE) as answer:
            return json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            hint = "; --token-env names the variable with its token" if error.code == 401 else ""
        raise CommandError(f"{url} answers {error.code} {error.reason}{hint}") from error
    except OSError as error:
        raise CommandError(f"{url} does not answer: {getattr(error, 'reason', error)}") from error
    except ValueError as error:
        raise CommandError(f"{url} answers with no JSON: is it a live service?") from error


def _metrics(now: Mapping[str, Json]) -> Grid:
    title = f"{now['title']}: last {now['window']}, until {_moment(now['end'])} (UTC)"
    lines: list[tuple[str, ...]] = [
        (
            name,
            _shown(found["value"]),
            _between(found["sure_low"], found["sure_high"]),
            _between(*(found["possible"] or (None, None))),
        )
        for name, found in now["metrics"].items()
    ]
    header = ("Metric", "Value", "95 % confidence", "With all labels")
    return Grid(f"{title}, {now['n_rows']:,} rows", header, lines)


def _coverage(found: Mapping[str, object]) -> list[Grid]:
    if not found["predicted"]:
        return []
    lines: list[tuple[str, ...]] = [(name, f"{found[name]:,}") for name in TOLD if found[name]]
    return [Grid(f"{found['coverage']:.1%} have their label", ("Predictions", "Count"), lines)]


def _alerts(found: Sequence[Mapping[str, Json]]) -> list[Grid]:
    lines: list[tuple[str, ...]] = [
        (each["name"], each["state"], _moment(each["since"]), each["why"] or "") for each in found
    ]
    return [Grid("Alerts", ("Alert", "State", "Since", "Why"), lines)] if lines else []


def _shown(value: float | None) -> str:
    return "undefined" if value is None else number(value)


def _between(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{number(low)} to {number(high)}"


def _moment(text: str | None) -> str:
    return "" if text is None else text[:16].replace("T", " ")
