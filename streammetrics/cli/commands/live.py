"""The commands of a live service: its configuration, its history from files, and itself."""

from __future__ import annotations

import errno
import socket
from dataclasses import replace
from typing import Annotated

import typer

from streammetrics.cli import options as typed
from streammetrics.cli.errors import CommandError
from streammetrics.cli.evaluating import NO_ROWS
from streammetrics.cli.live import OUT, firing, of_store, replayed, standing
from streammetrics.cli.outputs import Outcome, Output, check_outputs, write
from streammetrics.cli.parsing import Once
from streammetrics.live.exporting import files
from streammetrics.live.service.config import TEMPLATE, settings
from streammetrics.live.service.judging import judging

live = typer.Typer(help="Metrics of a service over time.", rich_markup_mode=None)

Config = Annotated[
    str, typer.Argument(metavar="CONFIG.toml", help="What `streammetrics live init` writes.")
]

Target = Annotated[
    str,
    typer.Argument(
        metavar="URL|CONFIG.toml", help="A service that runs, or a configuration with a store."
    ),
]
Token = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The variable with the token that the service asks for."),
]


@live.command(cls=Once)
def init(
    path: Annotated[str, typer.Argument(metavar="[PATH]", help="Where to write it.")] = "live.toml",
    force: typed.Force = False,
) -> Outcome:
    """Write a configuration in which every key is explained."""
    check_outputs([Output("PATH", path, _is_untouched)], [], force=force)
    write(path, TEMPLATE.encode())
    return Outcome(f"wrote {path}: streammetrics live serve {path} runs it\n")


def _is_untouched(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(len(TEMPLATE.encode()) + 1) == TEMPLATE.encode()


@live.command(cls=Once)
def check(config: Config) -> Outcome:
    """Check a configuration, all of it, without starting anything."""
    found = settings(config)
    text = f"{config} is good: {repr(found.suite).rpartition(' <')[0]}\n"
    return Outcome(text + "".join(f"{line}\n" for line in judging(found)))


@live.command(cls=Once)
def serve(
    config: Config,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="In place of that in the file. 0: any free one."),
    ] = None,
) -> Outcome:
    """Take events by HTTP and show the metrics on a page. Ctrl-C or SIGTERM ends it."""
    from streammetrics.live.service.running import serve as run  # noqa: PLC0415 - needs the extra

    found = settings(config)
    server = found.server
    free = _free_port(server.host, server.port if port is None else port)
    run(replace(found, server=replace(server, port=free)))
    return Outcome()


def _free_port(host: str, port: int) -> int:
    """Return a port, or any free one for 0, after seeing that one can listen there."""
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


@live.command(cls=Once)
def replay(
    config: Config,
    predictions: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...", help="Files of predictions, or of rows with their labels; or globs."
        ),
    ],
    labels: Annotated[
        list[str] | None,
        typer.Option("--labels", help="A file of labels, or a glob. Given again: more of them."),
    ] = None,
    series_out: Annotated[
        str | None,
        typer.Option(OUT, help="Write the series as CSV or Parquet.", metavar="FILE|-"),
    ] = None,
    input_format: typed.InputFormat = None,
    force: typed.Force = False,
) -> Outcome:
    """Feed files of events through the metrics. It is as if they came now."""
    found = settings(config)
    return replayed(found, predictions, labels or (), input_format, series_out, force=force)


@live.command(cls=Once)
def status(target: Target, token_env: Token = None) -> Outcome:
    """Print the metrics now, what became of labels, and the alerts."""
    return standing(target, token_env)


@live.command(cls=Once)
def alerts(
    target: Target, token_env: Token = None, json: typed.Json = None, force: typed.Force = False
) -> Outcome:
    """Print how every rule stands; the exit code is 1 where one fires."""
    return firing(target, token_env, json, force=force)


@live.command(cls=Once)
def rules(
    config: Config,
    job: Annotated[
        str, typer.Option(metavar="NAME", help="The service's job_name in prometheus.yml.")
    ] = files.JOB,
) -> Outcome:
    """Print alerting rules for Prometheus: one for each rule of the configuration."""
    found = settings(config)
    return Outcome(files.rules(found.view.title, found.notices, job))


@live.command(cls=Once)
def grafana(config: Config) -> Outcome:
    """Print a dashboard for Grafana."""
    found = settings(config)
    names = [*found.suite]
    return Outcome(files.dashboard(found.view.title, names, found.view.window) + "\n")


@live.command(cls=Once)
def backfill(config: Config) -> Outcome:
    """Print the history in the store as OpenMetrics. `promtool` makes blocks of it."""
    found = settings(config)
    advice = "there is no history; `live serve` and `live replay` write the store that [live] names"
    with of_store(found, advice) as live:
        live.now(None)  # the last window is that of the newest event
        lines = [*files.openmetrics(live, found.view.window, found.view.every)]
    if all(line.startswith("#") for line in lines):
        return Outcome("".join(lines), NO_ROWS, f"no rows: {found.options['store']} has no event")
    return Outcome("".join(lines))
