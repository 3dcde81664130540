"""`streammetrics live backup`, `restore`, `compact`, `export` and `forget`: the store as a file."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from streammetrics.cli import options as typed
from streammetrics.cli.live import Config, Labels, check_table, live, open_store, write_series
from streammetrics.cli.outputs import Output, check_outputs
from streammetrics.cli.result import NO_ROWS, CommandError, CommandResult, blaming
from streammetrics.live import maintenance
from streammetrics.live.forgetting import forget as forget_rows
from streammetrics.live.forgetting import keys_named
from streammetrics.live.service.config import settings
from streammetrics.live.service.history import history

if TYPE_CHECKING:
    from streammetrics.live.forgetting import Forgotten

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
        series = opened.series(window or found.view.window, every=every or found.view.every)
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
    with open_store(found) as opened:
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
