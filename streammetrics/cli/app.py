"""The commands: their arguments, and one line for every mistake."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streammetrics.cli import columns as wanted
from streammetrics.cli.errors import CommandError
from streammetrics.cli.evaluation import evaluate as evaluate_pieces
from streammetrics.cli.readers import opened
from streammetrics.cli.reading import BATCH_ROWS
from streammetrics.cli.report import Report, as_json, check_writable, console, report, show, write
from streammetrics.cli.sources import FORMATS, STDIN, find
from streammetrics.cli.specs import literal, literals, parse
from streammetrics.cli.tasks import PROBABILITIES, TASKS, Plan, plan
from streammetrics.core.errors import IncompatibleMetricsError, StateFormatError, StreamMetricsError
from streammetrics.core.metric import Metric
from streammetrics.core.state import from_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from streammetrics.cli.reading import Piece
    from streammetrics.cli.sources import Source
    from streammetrics.core.metric_set import MetricSet

app = typer.Typer(
    help="Exact metrics of prediction files of any size.",
    add_completion=False,
    rich_markup_mode=None,
)

_INTERRUPTED = 130  # 128 and the number of the signal, as shells have it

JsonOption = Annotated[
    str | None, typer.Option("--json", metavar="FILE|-", help="Write the results as JSON.")
]


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command; every mistake is one line on standard error and exit code 2."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        code = app(args=words or ["--help"], standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        code = _INTERRUPTED  # some versions of the parser return this code, others raise
    except StreamMetricsError as error:
        return _mistake(str(error))
    except MemoryError:
        return _mistake("not enough memory: try fewer --workers or --max-bins")
    except Exception as error:
        told = getattr(error, "format_message", None)  # how the parser's errors are known
        if told is None:
            raise
        return _mistake(f"{told()}; see streammetrics --help")
    if code == _INTERRUPTED:
        print("interrupted", file=sys.stderr)
    return int(code or 0)


def _mistake(message: str) -> int:
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
    return 2


@app.command()
def evaluate(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH...",
            help="Parquet, Arrow, CSV or JSON lines: files, folders, globs; - is standard input.",
        ),
    ],
    task: Annotated[
        str, typer.Option(metavar="|".join(TASKS), help="What is predicted.", show_default=False)
    ],
    y_true: Annotated[str | None, typer.Option(help="The column of true labels or values.")] = None,
    y_score: Annotated[
        str | None,
        typer.Option(
            help="The column of scores; for several classes a list p0,p1,p2 or a glob 'p*'."
        ),
    ] = None,
    y_pred: Annotated[
        str | None, typer.Option(help="The column of predicted labels or values.")
    ] = None,
    weight: Annotated[str | None, typer.Option(help="The column of row weights.")] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            help="What to compute, such as 'F1,FBeta(beta=2),ROCAUC', instead of the default."
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(help="Scores from here on are positive; 0.5 if there is no --y-pred."),
    ] = None,
    max_bins: Annotated[
        int | None,
        typer.Option(help="Distinct scores kept apart; past them values are certified intervals."),
    ] = None,
    nan_policy: Annotated[
        str | None,
        typer.Option(
            metavar="raise|omit", help="What to do with rows that lack a value; raise by default."
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(help="The classes, as 0,1,2 or cat,dog: any other label is a mistake."),
    ] = None,
    pos_label: Annotated[str | None, typer.Option(help="The positive class; 1 by default.")] = None,
    average: Annotated[
        str | None,
        typer.Option(metavar="binary|micro|macro|weighted|none", help="How classes are averaged."),
    ] = None,
    format: Annotated[  # noqa: A002 - the option's name
        str | None,
        typer.Option(
            metavar="|".join(FORMATS), help="The files' format, where their endings do not say it."
        ),
    ] = None,
    batch_rows: Annotated[int, typer.Option(min=1, help="Rows read at a time.")] = BATCH_ROWS,
    workers: Annotated[
        int,
        typer.Option(min=1, help="Processes that read; the result is the same to the last bit."),
    ] = 1,
    json: JsonOption = None,
    save: Annotated[
        str | None, typer.Option(metavar="STATE", help="Save the state, for show, merge or Python.")
    ] = None,
) -> None:
    """Compute metrics of files of predictions."""
    given = {"y_true": y_true, "y_score": y_score, "y_pred": y_pred, "sample_weight": weight}
    options = {
        "threshold": threshold,
        "max_bins": max_bins,
        "nan_policy": nan_policy,
        "labels": None if labels is None else literals(labels),
        "pos_label": None if pos_label is None else literal(pos_label),
        "average": average,
    }
    what = plan(
        task,
        {key: text for key, text in given.items() if text is not None},
        {key: value for key, value in options.items() if value is not None},
        None if metrics is None else parse(metrics),
    )
    for path in (save, json):
        if path not in {None, STDIN}:
            check_writable(str(path))
    found = find(paths, format)
    columns, pieces = _planned(found.sources, what)
    with _progress(pieces) as progress, _advice(what):
        evaluate_pieces(
            what.suite, pieces, batch_rows=batch_rows, workers=workers, progress=progress
        )
    about = {
        "task": what.task,
        "columns": {
            key: list(c.names) if len(c.names) > 1 else c.names[0] for key, c in columns.items()
        },
        "options": dict(what.parameters),
        "files": [str(source) for source in found.sources],
    }
    _finish(what.suite, about, _ignored(found.ignored), json, save)


@app.command()
def merge(
    states: Annotated[list[str], typer.Argument(metavar="STATE...", help="Saved states.")],
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="STATE", help="Where to save the merged state.")
    ],
) -> None:
    """Merge saved states into one: as if one worker had seen all their rows."""
    check_writable(output)
    first, *others = states
    merged: Any = _state(first)
    for path in others:
        try:
            merged.merge(_state(path))
        except IncompatibleMetricsError as error:
            raise CommandError(f"{path} does not go with {first}: {error}") from error
    write(output, merged.to_bytes())
    count = f"{len(states)} state{'s' * (len(states) != 1)}"
    console().print(f"merged {count} of {merged.n_rows:,} rows into {output}")


@app.command(name="show")
def show_state(
    state: Annotated[str, typer.Argument(metavar="STATE", help="A saved state.")],
    json: JsonOption = None,
) -> None:
    """Show the values of a saved state."""
    if json not in {None, STDIN}:
        check_writable(str(json))
    what = _state(state)
    columns = {} if isinstance(what, Metric) else {"columns": what.columns}
    _finish(what, {"state": state, **columns}, [], json, None)


def _planned(sources: Sequence[Source], what: Plan) -> tuple[dict[str, wanted.Column], list[Piece]]:
    """Open every file, so that a mistake in the last one is told before the first is read."""
    columns: dict[str, wanted.Column] = {}
    pieces: list[Piece] = []
    for source in sources:
        file = opened(source)
        columns = columns or wanted.resolve(what.asked, what.numeric, file.names, source)
        pieces += file.pieces(tuple({c.title: c for c in columns.values()}.values()))
    return columns, pieces


@contextmanager
def _advice(what: Plan) -> Iterator[None]:
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
def _progress(pieces: Sequence[Piece]) -> Iterator[Callable[[int], None] | None]:
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


def _ignored(files: Sequence[str]) -> list[str]:
    if not files:
        return []
    shown = ", ".join(files[:3]) + (", ..." if len(files) > 3 else "")
    return [f"{len(files)} file{'s' * (len(files) != 1)} of other kinds left out: {shown}"]


def _state(path: str) -> Metric | MetricSet:
    try:
        with open(path, "rb") as file:
            return from_bytes(file.read())
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from error
    except StateFormatError as error:
        raise CommandError(f"{path}: {error}") from error


def _finish(
    what: Metric | MetricSet,
    about: dict[str, Any],
    notes: Sequence[str],
    json_path: str | None,
    save: str | None,
) -> None:
    if save is not None:
        write(save, what.to_bytes())
    result: Report = report(what, about, notes)
    if json_path == STDIN:
        sys.stdout.write(as_json(result))
        return
    if json_path is not None:
        write(json_path, as_json(result).encode())
    show(result, console())
