"""What commands do around the work: show progress, explain errors, save, print."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from streammetrics.cli.earlier import is_csv, is_json, is_markdown
from streammetrics.cli.errors import CommandError
from streammetrics.cli.outcome import Outcome
from streammetrics.cli.outputs import Output, write
from streammetrics.cli.tasks import PROBABILITIES
from streammetrics.core.columns.naming import is_several
from streammetrics.core.errors import StreamMetricsError
from streammetrics.core.stateful import load
from streammetrics.show.machines import as_csv, as_json
from streammetrics.show.markdown import as_markdown
from streammetrics.show.terminal import as_text, console

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from streammetrics.cli.planning import Plan
    from streammetrics.core.metric import Metric
    from streammetrics.core.metric_set import MetricSet
    from streammetrics.ledger.ledger import Ledger
    from streammetrics.readers.pieces import Piece
    from streammetrics.show.report import ModelReports

NO_ROWS = 1
_BINS = re.compile(r"sm\.Bins\('([^']*)', edges\)")
# What errors advise in Python, and how it is said here.
_OPTIONS = {
    ', raise max_slices, or pass overflow="other"': ", or raise --max-slices",
    "max_slices=": "--max-slices ",
    "for one label a row leave multilabel=True away": "for one label a row say --task multiclass",
    "scores take a threshold, classes a column of one label": "scores come as --y-score",
    'nan_policy="omit"': "--nan-policy omit",
    "from_logits=True": "--from-logits",
    "to cut scores, give the metric a threshold, as threshold=0.5": "--y-score takes scores",
    "threshold=0.5": "--threshold 0.5",
    "average='macro', 'micro', 'weighted' or None": "--average macro, micro, weighted or none",
    "pos_label=": "--pos-label ",
    "labels=[...]": "--labels cat,dog,eel",
    "pass both as one kind of labels, such as names[codes], where names is the array of the "
    "classes' names": "write both columns with one kind of labels",
}
_FORMS = {"--json": as_json, "--csv": as_csv, "--markdown": as_markdown}


@contextmanager
def advice(what: Plan) -> Iterator[None]:
    """Add to an error what can be done about it on the command line."""
    try:
        yield
    except StreamMetricsError as error:
        message = str(error)
        for written, typed in _OPTIONS.items():
            message = message.replace(written, typed)
        message = _BINS.sub(r"--by \1:18:30:50", message)
        scores = what.asked.get("y_score", "")
        classes = what.task == "multiclass" and is_several(scores)
        strict = [name for name, one in what.suite.items() if _needs_probabilities(one, classes)]
        if "outside [0, 1]" in message and strict:
            rest = ",".join(name for name in what.suite if name not in strict)
            message += f"; {', '.join(strict)} need{'s' * (len(strict) == 1)} probabilities"
            message += f": leave out with --metrics '{rest}'" if rest else ""
        labels = ("third label", "neither 0, 1 nor", " label, nor ", "is not a label")
        amiss = any(text in message for text in labels)
        amiss |= "outside [0, 1]" in message and not classes
        if what.task == "multiclass" and scores and amiss:
            message += "; --y-score needs a column for each class"
        raise CommandError(message) from error


def _needs_probabilities(metric: Metric, classes: bool) -> bool:
    """Whether it does: of one score a row some metrics, of scores of classes all that read such."""
    needs = "y_score" in metric.inputs if classes else type(metric).__name__ in PROBABILITIES
    return needs and not metric.config["from_logits"]


@contextmanager
def progress_bar(
    pieces: Sequence[Piece], title: str = ""
) -> Iterator[Callable[[int], None] | None]:
    """Show a bar with rows a second on a terminal, nothing elsewhere."""
    sizes = [piece.rows for piece in pieces]
    total = None if None in sizes else sum(size or 0 for size in sizes)
    with progress_of(total, title) as progress:
        yield progress


@contextmanager
def progress_of(total: int | None, title: str = "") -> Iterator[Callable[[int], None] | None]:
    """Show the bar of so many rows, if their number is known."""
    err = console(stderr=True)
    if not err.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415 - it is slow to import

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[rows]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, transient=True) as bar:
        job = bar.add_task(title, total=total, rows="")

        def advance(rows: int) -> None:
            now = bar.tasks[0]
            done = int(now.completed) + rows
            speed = done / max(now.elapsed or 0, 1e-9)
            bar.update(job, advance=rows, rows=f"{done:,} rows  {speed:,.0f} rows/s")

        yield advance


def state_of(path: str) -> Metric | MetricSet | Ledger:
    """Read a saved state."""
    try:
        state: Metric | MetricSet | Ledger = load(path)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from error
    return state


def outputs_of(json: str | None, csv: str | None, markdown: str | None) -> list[Output]:
    """Return what the options for results ask for."""
    asked = (
        ("--json", json, is_json),
        ("--csv", csv, is_csv),
        ("--markdown", markdown, is_markdown),
    )
    return [Output(option, path, known) for option, path, known in asked if path is not None]


def finish(results: ModelReports, outputs: Sequence[Output]) -> Outcome:
    """Write the results where they are wanted; the table goes where nothing else is printed."""
    empty = [name for name, report in results.models.items() if not report.n_rows]
    text = as_text(results) if len(empty) < len(results.models) else ""
    for output in outputs:
        form = _FORMS.get(output.option)
        if form is None:
            continue
        if output.is_stdout:
            text = form(results)
        else:
            write(output.path, form(results))
    if not empty:
        return Outcome(text)
    return Outcome(text, NO_ROWS, _nothing(results, empty))


def _nothing(results: ModelReports, empty: Sequence[str]) -> str:
    of = f" of {', '.join(empty)}" if len(results.models) > 1 else ""
    omitted = sum(results.models[name].n_omitted for name in empty)
    if omitted:
        return f"no rows{of}: all {omitted:,} lack a value and were omitted"
    return f"no rows{of}: nothing was measured"
