"""What commands do around the evaluation: open files, show progress, explain, save, report."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from streammetrics.cli.errors import CommandError
from streammetrics.cli.tasks import PROBABILITIES
from streammetrics.cli.writing import write
from streammetrics.core.errors import StateFormatError, StreamMetricsError
from streammetrics.core.stateful import from_bytes
from streammetrics.readers import formats
from streammetrics.readers.sources import STDIN
from streammetrics.show.report import Report, as_json, report
from streammetrics.show.terminal import console, show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from streammetrics.cli.planning import Plan
    from streammetrics.core.metric import Metric
    from streammetrics.core.metric_set import MetricSet
    from streammetrics.ledger.ledger import Ledger
    from streammetrics.readers.paths import Found
    from streammetrics.readers.pieces import Piece


def opened(found: Found, what: Plan) -> tuple[dict[str, Any], list[Piece], list[str]]:
    """Open every file; return the columns that each input is read from, pieces, and notes."""
    columns, pieces, notes = formats.pieces_of(
        found.sources, lambda _: what.asked, what.suite._kinds
    )
    names = {
        key: list(column.names) if len(column.names) > 1 else column.names[0]
        for key, column in columns.items()
    }
    said = [*found.notes, *notes]
    for note in said:
        print(f"note: {note}", file=sys.stderr)
    return names, pieces, said


@contextmanager
def advice(what: Plan) -> Iterator[None]:
    """Add to an error what can be done about it on the command line."""
    try:
        yield
    except StreamMetricsError as error:
        message = str(error).replace('nan_policy="omit"', "--nan-policy omit")
        members = {name: type(what.suite[name]).__name__ for name in what.suite}
        strict = [name for name, kind in members.items() if kind in PROBABILITIES]
        if "outside [0, 1]" in message and strict:
            rest = ",".join(name for name in members if name not in strict)
            message += f"; {', '.join(strict)} need{'s' * (len(strict) == 1)} probabilities"
            message += f": leave out with --metrics '{rest}'" if rest else ""
        if what.task == "multiclass" and "third label" in message:
            message += "; --y-score needs a column for each class"
        raise CommandError(message) from error


@contextmanager
def progress_bar(pieces: Sequence[Piece]) -> Iterator[Callable[[int], None] | None]:
    """Show a bar with rows a second on a terminal, nothing elsewhere."""
    err = console(stderr=True)
    if not err.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    sizes = [piece.rows for piece in pieces]
    total = None if None in sizes else sum(size or 0 for size in sizes)
    columns = (BarColumn(), TextColumn("{task.fields[rows]}"), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True) as bar:
        job = bar.add_task("", total=total, rows="")

        def advance(rows: int) -> None:
            now = bar.tasks[0]
            done = int(now.completed) + rows
            speed = done / max(now.elapsed or 0, 1e-9)
            bar.update(job, advance=rows, rows=f"{done:,} rows  {speed:,.0f} rows/s")

        yield advance


def state_of(path: str) -> Metric | MetricSet | Ledger:
    """Read a saved state."""
    try:
        with open(path, "rb") as file:
            state: Metric | MetricSet | Ledger = from_bytes(file.read())
            return state
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from error
    except StateFormatError as error:
        raise CommandError(f"{path}: {error}") from error


def finish(
    what: Metric | MetricSet,
    about: dict[str, Any],
    notes: Sequence[str],
    json_path: str | None,
    *,
    save: str | None = None,
    per_query: bool = False,
) -> None:
    """Save the state, read the metrics and print them."""
    if save is not None:
        write(save, what.to_bytes())
    result: Report = report(what, about, notes, per_query=per_query)
    if json_path == STDIN:
        sys.stdout.write(as_json(result))
        return
    if json_path is not None:
        write(json_path, as_json(result).encode())
    show(result, console())
