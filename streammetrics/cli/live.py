"""`streammetrics live`: the service, its configuration, and its history from files."""

from __future__ import annotations

import errno
import io
import os
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from json import dumps, loads
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import typer

from streammetrics.cli import options as typed
from streammetrics.cli.evaluate import progress_of
from streammetrics.cli.outputs import Output, check_outputs, write
from streammetrics.cli.result import (
    MISTAKE,
    NO_ROWS,
    NOTHING,
    CommandError,
    CommandResult,
    blaming,
    say,
)
from streammetrics.core.errors import StreamMetricsError
from streammetrics.core.results.table import csv_text
from streammetrics.live import maintenance
from streammetrics.live.client import connecting
from streammetrics.live.exporting import files
from streammetrics.live.forgetting import forget as forget_rows
from streammetrics.live.forgetting import keys_named
from streammetrics.live.panes import TOLD
from streammetrics.live.service import answers, logs
from streammetrics.live.service.config import TEMPLATE, models_of, settings
from streammetrics.live.service.history import history, series_rows
from streammetrics.live.service.judging import estimated, judging, replayed
from streammetrics.live.service.sizing import sized
from streammetrics.live.store import check_log
from streammetrics.show.formats import Grid, drawn
from streammetrics.show.report import number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from http.client import HTTPConnection, HTTPResponse

    from streammetrics.core.types import Array, Foreign, Json
    from streammetrics.live.forgetting import Forgotten
    from streammetrics.live.live import Live
    from streammetrics.live.service.config import Settings

    Series = dict[str, Array]


_OUT = "--series-out"
_FIRING = 1  # exit code if an alert fires
_TIMEOUT = 60.0  # seconds; the first read of a long history is slow
_SHOWN = 48  # maximum rows of a printed series

live = typer.Typer(
    cls=typed.CommandGroup,
    help="Monitor a service: metrics over time. Labels may come late, rules raise alerts.",
    rich_markup_mode=None,
    context_settings=typed.WIDTH,
    epilog="""
    streammetrics live init
    streammetrics live serve live.toml
    streammetrics live replay live.toml predictions.csv --labels labels.csv
    """,
)

Config = Annotated[
    str, typer.Argument(metavar="CONFIG.toml", help="A configuration; see `live init`.")
]
LogForm = Annotated[
    str, typer.Option(metavar="text|json", help="Form of the log on standard error.")
]

Labels = Annotated[
    list[str] | None,
    typer.Option("--labels", metavar="FILE", help="File or glob of labels; repeatable."),
]

Target = Annotated[
    str,
    typer.Argument(metavar="TARGET", help="The URL of a service, or a configuration with a store."),
]
Token = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Environment variable with the token of the service."),
]


def use_log(form: str) -> None:
    """Choose the form of the log; raise `CommandError` if there is no such form."""
    if form not in logs.FORMS:
        raise CommandError(f"--log {form}: expected {' or '.join(logs.FORMS)}")
    logs.use(form)


@typed.command(live)
def init(
    path: Annotated[
        str, typer.Argument(metavar="PATH", help="File to write (live.toml).")
    ] = "live.toml",
    force: typed.Force = False,
) -> CommandResult:
    """Write a configuration in which every key is explained.

    Examples:
        streammetrics live init
        streammetrics live init staging.toml
        streammetrics live init live.toml --force
    """
    check_outputs([Output("PATH", path)], [], force=force)
    write(path, TEMPLATE.encode())
    return CommandResult(f"wrote {path}: streammetrics live serve {path} runs it\n")


def _check_store(title: str, found: Settings) -> None:
    """Raise unless the store of a configuration, and files beside it, can be written."""
    path = found.options["store"]
    if path is None:
        return
    folder = os.path.dirname(os.path.realpath(path))
    try:
        with TemporaryFile(dir=folder):
            pass
        check_log(path)
        if os.path.exists(path):
            os.close(os.open(path, os.O_RDWR))
            if not os.path.isfile(path) or os.path.getsize(path):  # a new one is empty
                maintenance.check(path)
                found.check_store()
    except OSError as error:
        raise CommandError(
            f"{title}: live.store: {path!r} cannot be written ({error.strerror or error}): give "
            f"this user the right to write in {folder!r}, or name another folder"
        ) from error


@typed.command(live)
def check(
    config: Config,
    rows_per_minute: Annotated[
        float | None,
        typer.Option(
            metavar="N",
            min=0.001,
            help="Expected rows a minute: tells memory and disk, warns of rules that will flap.",
        ),
    ] = None,
    slices: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Expected slices of each kind, for the memory."),
    ] = None,
    reference: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Log of predictions on which rules are tried."),
    ] = None,
    labels: Labels = None,
    input_format: typed.InputFormat = None,
) -> CommandResult:
    """Check a configuration without starting anything.

    Examples:
        streammetrics live check live.toml
        streammetrics live check live.toml --rows-per-minute 40 --slices 50
        streammetrics live check live.toml --reference predictions.parquet
    """
    models = models_of(config) if os.path.exists(config) else {"": settings(config)}
    if len(models) > 1 and reference is not None:
        raise CommandError(f"name one model, as {config}#{next(iter(models))}")
    lines = []
    for name, found in models.items():
        title = f"{config}#{name}" if name else config
        _check_store(title, found)
        lines += [f"{title} is good: {repr(found.suite).rpartition(' <')[0]}", *judging(found)]
        if rows_per_minute is not None:
            lines += sized(found, rows_per_minute, slices or 1)
            lines += estimated(found, rows_per_minute)
    if slices is not None and rows_per_minute is None:
        raise CommandError("--slices needs --rows-per-minute, by which memory is estimated")
    if reference is not None:
        events = history(found, reference, labels or (), input_format)
        if not events.n_events:
            return CommandResult("", NO_ROWS, NOTHING)
        lines += replayed(found, events)
    elif labels is not None:
        raise CommandError("--labels needs --reference, the log of their predictions")
    return CommandResult("".join(f"{line}\n" for line in lines))


@typed.command(live)
def serve(
    config: Config,
    port: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            max=65535,
            help="Port, instead of the one in the file; 0 for any free one.",
        ),
    ] = None,
    log: LogForm = "text",
) -> CommandResult:
    """Run the service: events by HTTP, metrics on a page. Ctrl-C or SIGTERM ends it.

    Examples:
        streammetrics live serve live.toml
        streammetrics live serve live.toml --port 8080
        streammetrics live serve live.toml --log json
    """
    from streammetrics.live.service.running import serve as run  # noqa: PLC0415 - needs the extra

    use_log(log)
    try:
        models = models_of(config)
        server = next(iter(models.values())).server
        if server.socket and port is not None:
            raise CommandError(
                f"--port {port}: [server] socket = {server.socket!r} replaces the port"
            )
        if not server.socket:
            free = _free_port(server.host, server.port if port is None else port)
            server = replace(server, port=free)
        run(models, server)
    except StreamMetricsError as error:
        if not logs.is_json():
            raise
        for line in getattr(error, "mistakes", (str(error),)):
            logs.log("error", line)
        return CommandResult(code=MISTAKE)
    return CommandResult()


def _free_port(host: str, port: int) -> int:
    """Return the port, or a free one for 0, after checking that it can be listened on."""
    try:
        with socket.create_server((host, port), family=_family(host)) as listening:
            found: int = listening.getsockname()[1]
            return found
    except OSError as error:
        why = str(error.strerror).partition(" (while")[0]
        taken = error.errno in {errno.EADDRINUSE, errno.EACCES}
        advice = "--port names another" if taken else "[server] host is an address of this machine"
        raise CommandError(f"cannot listen on {host}, port {port}: {why}; {advice}") from error


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


@typed.command(live)
def replay(
    config: Config,
    predictions: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE", help="Files or globs of predictions, or of rows with their labels."
        ),
    ],
    labels: Labels = None,
    series_out: Annotated[
        str | None,
        typer.Option(_OUT, help="Write the series as CSV or Parquet.", metavar="FILE|-"),
    ] = None,
    input_format: typed.InputFormat = None,
    force: typed.Force = False,
) -> CommandResult:
    """Feed files of events to the metrics, as if they arrived now.

    Examples:
        streammetrics live replay live.toml events.parquet
        streammetrics live replay live.toml 'predictions/*.csv' --labels labels.csv
        streammetrics live replay live.toml events.parquet --series-out series.csv
    """
    found = settings(config, secrets=False)
    return _replayed(found, predictions, labels or (), input_format, series_out, force=force)


@typed.command(live)
def status(target: Target, token_env: Token = None) -> CommandResult:
    """Print the current metrics, the counts of labels, the inputs, and the alerts.

    Examples:
        streammetrics live status http://127.0.0.1:8080
        streammetrics live status https://metrics.example.org --token-env LIVE_TOKEN
        streammetrics live status live.toml
    """
    now, found, inputs = _answers(target, token_env, "now", "alerts", "inputs")
    with _expecting(target):
        grids = [_metrics(now), *_coverage(now["coverage"]), *_inputs(inputs["inputs"])]
        grids += _alerts(found["alerts"])
        if early := now["expired_early"]:
            lines: list[tuple[str, ...]] = [(of, _moment(until)) for of, until in early.items()]
            told = "Expired early, because the store has reached max_store (UTC)"
            grids.append(Grid(told, ("Panes of", "Before"), lines))
    return CommandResult(drawn(grids))


@typed.command(live)
def alerts(
    target: Target, token_env: Token = None, json: typed.Json = None, force: typed.Force = False
) -> CommandResult:
    """Print the state of every alert rule. The exit code is 1 if one fires.

    Examples:
        streammetrics live alerts http://127.0.0.1:8080
        streammetrics live alerts live.toml --json -
        streammetrics live alerts live.toml || mail -s alert team@example.org
    """
    outputs = [] if json is None else [Output("--json", json)]
    check_outputs(outputs, [target], force=force)
    (found,) = _answers(target, token_env, "alerts")
    with _expecting(target):
        grids = _alerts(found["alerts"])
        code = _FIRING if any(each["state"] == "firing" for each in found["alerts"]) else 0
    text = drawn(grids) if grids else f"{target} has no rules: add some to [alerts]\n"
    if json is not None:
        whole = dumps(found, indent=2, ensure_ascii=False) + "\n"
        if outputs[0].is_stdout:
            return CommandResult(whole, code)
        write(json, whole)
    return CommandResult(text, code)


@typed.command(live)
def rules(
    config: Config,
    job: Annotated[
        str, typer.Option(metavar="NAME", help="The service's job_name in prometheus.yml (live).")
    ] = files.JOB,
) -> CommandResult:
    """Print the alert rules for Prometheus.

    Examples:
        streammetrics live rules live.toml > rules.yml
        streammetrics live rules live.toml --job fraud > rules.yml
        streammetrics live rules live.toml | promtool check rules /dev/stdin
    """
    found = settings(config, secrets=False)
    return CommandResult(files.rules(found.view.title, found.delivery.notices, job))


@typed.command(live)
def grafana(config: Config) -> CommandResult:
    """Print a dashboard for Grafana.

    Examples:
        streammetrics live grafana live.toml > dashboard.json
        streammetrics live grafana staging.toml > staging.json
        streammetrics live grafana live.toml | ssh host 'cat > dashboards/live.json'
    """
    found = settings(config, secrets=False)
    names = [*found.suite]
    return CommandResult(
        files.dashboard(found.view.title, names, found.view.window, found.view.model) + "\n"
    )


@typed.command(live)
def backfill(config: Config) -> CommandResult:
    r"""Print the history in the store as OpenMetrics, for Prometheus.

    Examples:
        streammetrics live backfill live.toml > history.om
        streammetrics live backfill live.toml | head
        streammetrics live backfill live.toml > history.om && \
            promtool tsdb create-blocks-from openmetrics history.om data/
    """
    found = settings(config, secrets=False)
    advice = "there is no history; `live serve` and `live replay` write the store that [live] names"
    with open_store(found, advice) as live:
        live.now(None)  # the last window ends with the newest event
        lines = [*files.openmetrics(live, found.view.window, found.view.every)]
    if all(line.startswith("#") for line in lines):
        return CommandResult(
            "".join(lines), NO_ROWS, f"no rows: {found.options['store']} has no event"
        )
    return CommandResult("".join(lines))


def _replayed(
    found: Settings,
    predictions: Sequence[str],
    labels: Sequence[str],
    fmt: str | None,
    out: str | None,
    *,
    force: bool,
) -> CommandResult:
    """Feed files to the live state of a configuration, and return its series as text."""
    outputs = [] if out is None else [Output(_OUT, out)]
    for output in outputs:
        check_table(output)
    events = history(found, predictions, labels, fmt)
    store = found.options["store"]
    check_outputs(outputs, [*events.sources, *([store] if store else [])], force=force)
    for note in events.notes:
        say(f"note: {note}")
    live = found.live()
    journal = live._ingest.journal
    kinds = [kind for kind, _ in events.kinds]
    if live.n_rows and "observe" in kinds:
        say(f"note: {store} has {live.n_rows:,} rows, and rows without ids are added to them")
    with ExitStack() as stack:
        if journal is not None:
            stack.enter_context(journal.all_or_none())
        with progress_of(events.n_events, "replay") as progress:
            events.feed(live, progress)
        series = live.series(found.view.window, every=found.view.every)
        grids = [_counted(live, found), *_replayed_alerts(live, found)]
        if out is None:
            text = drawn([_grid(series, found), *grids])
        else:
            text = write_series(outputs[0], series) or drawn(grids)
        transaction = stack.pop_all()

    def finish() -> None:
        transaction.close()
        live.close()

    if not events.n_events:
        return CommandResult(text, NO_ROWS, NOTHING, finish)
    return CommandResult(text, finish=finish)


def check_table(output: Output) -> None:
    """Raise unless a series can be written: to a CSV or Parquet file, or to standard output."""
    if not output.is_stdout and _form(output.path) not in {".csv", ".parquet"}:
        raise CommandError(
            f"{output.option} {output.path}: expected a file that ends in .csv or .parquet, or -"
        )


def _form(path: str) -> str:
    return os.path.splitext(path)[1].lower()


def write_series(output: Output, series: Series) -> str:
    """Write a series to a file; return it as CSV if the output is standard output."""
    if _form(output.path) == ".parquet" and not output.is_stdout:
        columns: dict[str, Foreign] = {name: pa.array(column) for name, column in series.items()}
        for name in ("start", "time"):
            columns[name] = pa.array(series[name], pa.timestamp("ns", "UTC"))
        sink = io.BytesIO()
        pq.write_table(pa.table(columns), sink)
        write(output.path, sink.getvalue())
        return ""
    text = csv_text(series_rows(series))
    if output.is_stdout:
        return text
    write(output.path, text)
    return ""


def _grid(series: Series, found: Settings) -> Grid:
    """Return the newest windows with rows as a table."""
    total = len(series["time"])
    some = np.flatnonzero(series["n_rows"] > 0)[-_SHOWN:]
    title = f"Windows of {found.view.window} (UTC), longer where only coarser panes are kept"
    if len(some) < total:
        title += f": the last {len(some)} of {total:,} that have rows; {_OUT} has all"
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
    """Return the state changes of the alerts."""
    alerts = live.alerts(found.rules)
    lines: list[tuple[str, ...]] = [
        (alert.name, state, f"{time:%Y-%m-%d %H:%M}", alert.why if last else "")
        for alert in alerts
        for place, (time, state) in enumerate(alert.changes)
        for last in [place == len(alert.changes) - 1]
    ]
    return _alert_grid(lines)


def _alert_grid(lines: list[tuple[str, ...]]) -> list[Grid]:
    return [Grid("Alerts", ("Alert", "State", "Since", "Why"), lines)] if lines else []


def _counted(live: Live, found: Settings) -> Grid:
    """Return the counts of events in the window that the coarsest tier covers."""
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


@contextmanager
def _expecting(target: str) -> Iterator[None]:
    """Name the address if an answer is unexpected."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise CommandError(f"{target} answers, but not like a live service") from error


def _answers(target: str, token_env: str | None, *names: str) -> list[Json]:
    """Return the answers of a service, or of the store of a configuration."""
    if not target.startswith(("http://", "https://", "unix:")):
        return _read(target, names)
    token = os.environ.get(token_env, "") if token_env else ""
    if token_env and not token:
        raise CommandError(f"the environment variable {token_env} is not set, or empty: export it")
    if target.startswith("unix:"):
        with blaming("", ValueError):
            connect = connecting(target, _TIMEOUT)
        opened = urllib.request.build_opener(_OverSocket(connect)).open
        return [_asked(f"http://localhost/api/{name}", token, opened, target) for name in names]
    _check_address(target)
    base = target.rstrip("/")
    try:
        return [_asked(f"{base}/api/{name}", token) for name in names]
    except _NotFoundError:
        if not (models := _models(base)):
            raise
        told = f"has several models, {', '.join(models)}: name one, as {base}/models/{models[0]}"
        raise CommandError(f"{target} {told}") from None


class _NotFoundError(CommandError):
    """A service has no such path."""


def _models(base: str) -> list[str]:
    """Return the names of the models of a service, none if it is not one of several models."""
    try:
        return [*_asked(f"{base}/health", "")["models"]]
    except (CommandError, KeyError, TypeError):
        return []


class _OverSocket(urllib.request.HTTPHandler):
    """Sends requests over a unix socket, whatever host they name."""

    def __init__(self, connect: Callable[[], HTTPConnection]) -> None:
        super().__init__()
        self._connect = connect

    def http_open(self, request: urllib.request.Request) -> HTTPResponse:
        """Return the answer to a request."""
        return self.do_open(lambda *_, **__: self._connect(), request)


def _check_address(target: str) -> None:
    """Raise unless an address has a host and a valid port, if any."""
    try:
        parts = urllib.parse.urlsplit(target)
        host, _ = parts.hostname or "", parts.port
        host.encode("idna")
    except ValueError:
        host = ""
    if not host or any(c.isspace() for c in target):
        raise CommandError(
            f"{target} is not an address of a service, such as http://127.0.0.1:8080"
        )


@contextmanager
def open_store(
    found: Settings, advice: str = "give the address of the service, http://..."
) -> Iterator[Live]:
    """Open the live state in the store of a configuration, to read it.

    Raises:
        CommandError: There is no store; the message ends with `advice`.
    """
    store = found.options["store"]
    if store is None:
        raise CommandError(f"{found.path} has no store: {advice}")
    check_log(store)
    exists = os.path.exists(store)
    if not exists or not os.path.getsize(store):
        what = "is empty" if exists else "does not exist yet"
        raise CommandError(f"{found.path} has a store, {store}, that {what}: {advice}")
    with (
        maintenance.readable(store) as path,
        replace(found, options={**found.options, "store": path}).live() as live,
    ):
        if found.server.clock == "wall":
            live.now(time.time())
        yield live


def _read(config: str, names: Sequence[str]) -> list[Json]:
    found = settings(config, secrets=False)
    with open_store(found) as live:
        every: dict[str, Callable[[], Json]] = {
            "now": partial(answers.now, live._queries, found.view),
            "alerts": lambda: answers.alerts(live._queries, live.alerts(found.rules)),
            "inputs": partial(answers.inputs, live._queries, found.view),
        }
        return [every[name]() for name in names]


def _asked(
    url: str, token: str, opened: Callable[..., Any] = urllib.request.urlopen, shown: str = ""
) -> Json:
    """Return the answer of a service; errors name the address that is `shown`, if it is another."""
    shown = shown or url
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        request = urllib.request.Request(url, headers=headers)
        with opened(request, timeout=_TIMEOUT) as answer:
            return loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            hint = "; --token-env names the variable with its token" if error.code == 401 else ""
        kind = _NotFoundError if error.code == HTTPStatus.NOT_FOUND else CommandError
        raise kind(f"{shown} answers {error.code} {error.reason}{hint}") from error
    except OSError as error:
        raise CommandError(f"{shown} does not answer: {getattr(error, 'reason', error)}") from error
    except ValueError as error:
        raise CommandError(f"{shown} answers, but not with JSON: is it a live service?") from error


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


def _inputs(found: Sequence[Mapping[str, Json]]) -> list[Grid]:
    """Return the inputs of the window; a distance beyond chance has a mark."""
    lines: list[tuple[str, ...]] = []
    for each in found:
        counts = [
            "" if each[name] is None else f"{each[name]:,}"
            for name in ("rows", "nulls", "outside", "unseen")
        ]
        distances = [
            f"{method} {number(one['value'])}{'!' if one['value'] > one['chance'] else ''}"
            for method, one in each["distances"].items()
            if one["value"] is not None
        ]
        lines.append((each["name"], *counts, ", ".join(distances)))
    header = ("Input", "Rows", "Nulls", "Outside", "Unseen", "Distances (! beyond chance)")
    return [Grid("Inputs, with and without labels", header, lines)] if lines else []


def _alerts(found: Sequence[Mapping[str, Json]]) -> list[Grid]:
    lines: list[tuple[str, ...]] = [
        (each["name"], each["state"], _moment(each["since"]), each["why"] or "") for each in found
    ]
    return _alert_grid(lines)


def _shown(value: float | None) -> str:
    return "undefined" if value is None else number(value)


def _between(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{number(low)} to {number(high)}"


def _moment(text: str | None) -> str:
    return "" if text is None else text[:16].replace("T", " ")


__all__ = ["live"]

Store = Annotated[str, typer.Argument(metavar="STORE", help="The file that [live] store names.")]


@typed.command(live)
def backup(
    store: Store,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The copy to write.")],
    force: typed.Force = False,
) -> CommandResult:
    """Copy a store at one moment, also while the service runs.

    Examples:
        streammetrics live backup live.db live.backup.db
        streammetrics live backup live.db /backups/live.db --force
        streammetrics live backup live.db today.db && scp today.db host:
    """
    check_outputs([Output("FILE", file)], [store], force=force)
    size = maintenance.backup(store, file)
    return CommandResult(f"wrote {file}, {size:,} bytes\n")


@typed.command(live)
def restore(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A copy that `backup` wrote.")],
    store: Store,
    force: typed.Force = False,
) -> CommandResult:
    """Replace a store by a copy, while the service is stopped.

    Examples:
        streammetrics live restore live.backup.db live.db
        streammetrics live restore /backups/live.db live.db --force
        streammetrics live restore today.db live.db && systemctl start live
    """
    check_outputs([Output("STORE", store)], [file], force=force)
    maintenance.restore(file, store)
    return CommandResult(f"wrote {store}\n")


@typed.command(live)
def compact(store: Store) -> CommandResult:
    """Give unused space of a store back to its disk, while the service is stopped.

    Examples:
        streammetrics live compact live.db
        streammetrics live compact /var/lib/live/live.db
        streammetrics live compact live.db && systemctl start live
    """
    before, after = maintenance.compact(store)
    return CommandResult(f"{store} has {after:,} bytes, {before:,} before\n")


@typed.command(live)
def export(
    config: Config,
    file: Annotated[
        str, typer.Argument(metavar="FILE|-", help="A .csv or .parquet file; - for CSV.")
    ],
    window: Annotated[
        str | None, typer.Option(metavar="TIME", help="Length of a window ([page] window).")
    ] = None,
    every: Annotated[
        str | None, typer.Option(metavar="TIME", help="Time between windows ([page] every).")
    ] = None,
    force: typed.Force = False,
) -> CommandResult:
    """Write the windows in the store as CSV or Parquet: values, limits, rows and coverage.

    The last window has the newest event.

    Examples:
        streammetrics live export live.toml history.parquet
        streammetrics live export live.toml - > history.csv
        streammetrics live export live.toml days.csv --window 1d --every 1d
    """
    found, output = settings(config, secrets=False), Output("FILE", file)
    check_table(output)
    store = found.options["store"]
    check_outputs([output], [config, *([store] if store else [])], force=force)
    lack = "there is nothing to export; `live serve` writes a store"
    with open_store(found, lack) as opened, blaming("", ValueError):
        queries, view = opened._queries, found.view
        spans = queries.spans(window or view.window, every or view.every, idle=False)
        series = queries.series(spans)
    n = len(series["time"])
    text = write_series(output, series) or f"wrote {file}, {n:,} windows\n"
    return CommandResult(text) if n else CommandResult(text, NO_ROWS, "no rows: no window has any")


@typed.command(live)
def forget(
    config: Config,
    ids: Annotated[
        list[str], typer.Option("--id", metavar="ID", help="Id of rows to forget; repeatable.")
    ],
    rows: Annotated[
        list[str] | None,
        typer.Option("--rows", metavar="FILE", help="File or glob of the rows as they were sent."),
    ] = None,
    labels: Labels = None,
) -> CommandResult:
    """Remove the rows of ids from a store, while the service is stopped.

    Examples:
        streammetrics live forget live.toml --id r1
        streammetrics live forget live.toml --id r1 --id r2
        streammetrics live forget live.toml --id r1 --rows sent.csv
    """
    found, keys = settings(config, secrets=False), keys_named(ids)
    store, known = found.options["store"], None
    if labels and not rows:
        raise CommandError("--labels needs --rows: name the file of the predictions as well")
    if rows:
        scratch = found.live(store=False)
        scratch._ingest.limit(0)  # rows stay in the join, by their ids
        history(found, rows, labels or (), None).feed(scratch)
        known = scratch._ingest.snapshot(limited=True)
    if store is None:
        raise CommandError(f"{config} has no store: there is nothing to forget")
    maintenance.check_unused(store)
    with found.live() as opened:
        journal = opened._ingest.journal
        assert journal is not None  # there is a store
        told = journal.rewrite(lambda pipeline: forget_rows(pipeline, keys, known))
    maintenance.compact(store)
    return CommandResult(_told(told, store, is_known=known is not None))


def _told(told: Forgotten, store: str, *, is_known: bool) -> str:
    """Return what was forgotten, and what is still there, as text."""
    lines = [
        f"{told.waiting:,} waiting rows and labels are removed from {store}",
        f"{told.newest:,} rows kept one by one are removed",
        f"{told.taken_back:,} rows are taken back from panes",
    ]
    lines += [
        f"still in the pane from {_time(start)} to {_time(end)}: its metrics do not determine what "
        "is left without the rows, or these have no label, or were never in it"
        for start, end in told.kept
    ]
    if told.anonymous is not None and not is_known:
        start, end = map(_time, told.anonymous)
        lines.append(
            f"panes from {start} to {end} hold sums without ids, which may include such rows: name "
            "them as they were sent, --rows FILE"
        )
    lines.append("backups and dead-letter files may still hold the rows")
    return "".join(f"{line}\n" for line in lines)


def _time(nanoseconds: int) -> str:
    return f"{datetime.fromtimestamp(nanoseconds / 1e9, UTC):%Y-%m-%d %H:%M} UTC"
