"""`streammetrics live`: the service, its configuration, and its history from files."""

from __future__ import annotations

import errno
import io
import os
import socket
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import typer

from streammetrics.cli import live_status
from streammetrics.cli import options as typed
from streammetrics.cli.evaluate import progress_of
from streammetrics.cli.live_status import open_store
from streammetrics.cli.outputs import Output, check_outputs, write
from streammetrics.cli.result import MISTAKE, NO_ROWS, NOTHING, CommandError, CommandResult, say
from streammetrics.core.errors import StreamMetricsError
from streammetrics.core.results.table import csv_text
from streammetrics.live.exporting import files
from streammetrics.live.service import logs
from streammetrics.live.service.config import TEMPLATE, settings
from streammetrics.live.service.history import history, series_rows
from streammetrics.live.service.judging import estimated, judging, replayed
from streammetrics.show.formats import Grid, drawn
from streammetrics.show.report import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.types import Array
    from streammetrics.live.live import Live
    from streammetrics.live.service.config import Settings

    Series = dict[str, Array]


_OUT = "--series-out"
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

Target = Annotated[
    str,
    typer.Argument(metavar="TARGET", help="The URL of a service, or a configuration with a store."),
]
Token = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Environment variable with the token of the service."),
]


@live.command(
    cls=typed.Command,
    epilog="""
    streammetrics live init
    streammetrics live init staging.toml
    streammetrics live init live.toml --force
    """,
)
@typed.importing
def init(
    path: Annotated[
        str, typer.Argument(metavar="PATH", help="File to write (live.toml).")
    ] = "live.toml",
    force: typed.Force = False,
) -> CommandResult:
    """Write a configuration in which every key is explained."""
    check_outputs([Output("PATH", path)], [], force=force)
    write(path, TEMPLATE.encode())
    return CommandResult(f"wrote {path}: streammetrics live serve {path} runs it\n")


@live.command(
    cls=typed.Command,
    epilog="""
    streammetrics live check live.toml
    streammetrics live check live.toml --rows-per-minute 40
    streammetrics live check live.toml --reference predictions.parquet
    """,
)
@typed.importing
def check(
    config: Config,
    rows_per_minute: Annotated[
        float | None,
        typer.Option(
            metavar="N", min=0.001, help="Expected rows a minute: warns of rules that will flap."
        ),
    ] = None,
    reference: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Log of predictions on which rules are tried."),
    ] = None,
    labels: Annotated[
        list[str] | None,
        typer.Option("--labels", metavar="FILE", help="File or glob of labels; repeatable."),
    ] = None,
    input_format: typed.InputFormat = None,
) -> CommandResult:
    """Check a configuration without starting anything."""
    found = settings(config)
    lines = [f"{config} is good: {repr(found.suite).rpartition(' <')[0]}", *judging(found)]
    if rows_per_minute is not None:
        lines += estimated(found, rows_per_minute)
    if reference is not None:
        events = history(found, reference, labels or (), input_format)
        if not events.n_events:
            return CommandResult("", NO_ROWS, NOTHING)
        lines += replayed(found, events)
    elif labels is not None:
        raise CommandError("--labels needs --reference, the log of their predictions")
    return CommandResult("".join(f"{line}\n" for line in lines))


@live.command(
    cls=typed.Command,
    epilog="""
    streammetrics live serve live.toml
    streammetrics live serve live.toml --port 8080
    streammetrics live serve live.toml --log json
    """,
)
@typed.importing
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
    log: Annotated[
        str, typer.Option(metavar="text|json", help="Form of the log on standard error.")
    ] = "text",
) -> CommandResult:
    """Run the service: events by HTTP, metrics on a page. Ctrl-C or SIGTERM ends it."""
    from streammetrics.live.service.running import serve as run  # noqa: PLC0415 - needs the extra

    if log not in logs.FORMS:
        raise CommandError(f"--log {log}: expected {' or '.join(logs.FORMS)}")
    logs.use(log)
    try:
        found = settings(config)
        server = found.server
        if server.socket and port is not None:
            raise CommandError(
                f"--port {port}: [server] socket = {server.socket!r} replaces the port"
            )
        if not server.socket:
            free = _free_port(server.host, server.port if port is None else port)
            server = replace(server, port=free)
        run(replace(found, server=server))
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


@live.command(
    cls=typed.Command,
    epilog="""
    streammetrics live replay live.toml events.parquet
    streammetrics live replay live.toml 'predictions/*.csv' --labels labels.csv
    streammetrics live replay live.toml events.parquet --series-out series.csv
    """,
)
@typed.importing
def replay(
    config: Config,
    predictions: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE", help="Files or globs of predictions, or of rows with their labels."
        ),
    ],
    labels: Annotated[
        list[str] | None,
        typer.Option("--labels", metavar="FILE", help="File or glob of labels; repeatable."),
    ] = None,
    series_out: Annotated[
        str | None,
        typer.Option(_OUT, help="Write the series as CSV or Parquet.", metavar="FILE|-"),
    ] = None,
    input_format: typed.InputFormat = None,
    force: typed.Force = False,
) -> CommandResult:
    """Feed files of events to the metrics, as if they arrived now."""
    found = settings(config, secrets=False)
    return _replayed(found, predictions, labels or (), input_format, series_out, force=force)


@live.command(
    cls=typed.Command,
    epilog="""
    streammetrics live status http://127.0.0.1:8080
    streammetrics live status https://metrics.example.org --token-env LIVE_TOKEN
    streammetrics live status live.toml
    """,
)
@typed.importing
def status(target: Target, token_env: Token = None) -> CommandResult:
    """Print the current metrics, the counts of labels, and the alerts."""
    return live_status.status(target, token_env)


@live.command(
    cls=typed.Command,
    epilog="""
    streammetrics live alerts http://127.0.0.1:8080
    streammetrics live alerts live.toml --json -
    streammetrics live alerts live.toml || mail -s alert team@example.org
    """,
)
@typed.importing
def alerts(
    target: Target, token_env: Token = None, json: typed.Json = None, force: typed.Force = False
) -> CommandResult:
    """Print the state of every alert rule. The exit code is 1 if one fires."""
    return live_status.alerts(target, token_env, json, force=force)


@live.command(
    cls=typed.Command,
    epilog="""
    streammetrics live rules live.toml > rules.yml
    streammetrics live rules live.toml --job fraud > rules.yml
    streammetrics live rules live.toml | promtool check rules /dev/stdin
    """,
)
@typed.importing
def rules(
    config: Config,
    job: Annotated[
        str, typer.Option(metavar="NAME", help="The service's job_name in prometheus.yml (live).")
    ] = files.JOB,
) -> CommandResult:
    """Print the alert rules for Prometheus."""
    found = settings(config, secrets=False)
    return CommandResult(files.rules(found.view.title, found.delivery.notices, job))


@live.command(
    cls=typed.Command,
    epilog="""
    streammetrics live grafana live.toml > dashboard.json
    streammetrics live grafana staging.toml > staging.json
    streammetrics live grafana live.toml | ssh host 'cat > dashboards/live.json'
    """,
)
@typed.importing
def grafana(config: Config) -> CommandResult:
    """Print a dashboard for Grafana."""
    found = settings(config, secrets=False)
    names = [*found.suite]
    return CommandResult(files.dashboard(found.view.title, names, found.view.window) + "\n")


@live.command(
    cls=typed.Command,
    epilog="""
    streammetrics live backfill live.toml > history.om
    streammetrics live backfill live.toml | head
    streammetrics live backfill live.toml > history.om && \\
        promtool tsdb create-blocks-from openmetrics history.om data/
    """,
)
@typed.importing
def backfill(config: Config) -> CommandResult:
    """Print the history in the store as OpenMetrics, for Prometheus."""
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
    if out is not None and not outputs[0].is_stdout and _form(out) not in {".csv", ".parquet"}:
        raise CommandError(f"{_OUT} {out}: expected a file that ends in .csv or .parquet, or -")
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
        elif outputs[0].is_stdout:
            text = series_csv(series)
        else:
            write(out, series_csv(series) if _form(out) == ".csv" else series_parquet(series))
            text = drawn(grids)
        transaction = stack.pop_all()

    def finish() -> None:
        transaction.close()
        live.close()

    if not events.n_events:
        return CommandResult(text, NO_ROWS, NOTHING, finish)
    return CommandResult(text, finish=finish)


def _form(path: str) -> str:
    return os.path.splitext(path)[1].lower()


def series_csv(series: Series) -> str:
    """Return a series as CSV."""
    return csv_text(series_rows(series))


def series_parquet(series: Series) -> bytes:
    """Return a series as Parquet."""
    sink = io.BytesIO()
    columns: dict[str, Any] = {name: pa.array(column) for name, column in series.items()}
    for name in ("start", "time"):
        columns[name] = pa.array(series[name], pa.timestamp("ns", "UTC"))
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


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
