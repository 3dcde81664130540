"""`streammetrics evaluate`: metrics of files of predictions."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from dataclasses import dataclass, replace
from json import dumps
from typing import TYPE_CHECKING, Any

from streammetrics.cli import options as typed
from streammetrics.cli.inputs import MAX_SLICES, EvaluateOptions, opened, slices_of, unit_of
from streammetrics.cli.outputs import (
    Output,
    check_outputs,
    check_places,
    finish,
    outputs_of,
    write,
)
from streammetrics.cli.result import NO_ROWS, CommandError, CommandResult, say
from streammetrics.cli.tasks import (
    PROBABILITIES,
    columns_of,
    delimiter_of,
    parameters_of,
    parse,
)
from streammetrics.core.columns.batch import COUNTS, WEIGHT, is_several
from streammetrics.core.errors import StreamMetricsError
from streammetrics.engines.local import evaluate as evaluated
from streammetrics.metrics import specs as written
from streammetrics.metrics.drift import SampleDistance
from streammetrics.readers.files import BATCH_ROWS
from streammetrics.show.formats import console
from streammetrics.show.report import ModelReport, ModelReports, report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from streammetrics.cli.inputs import Model, TaskPlan, Work
    from streammetrics.core.errors import Hint
    from streammetrics.core.metric import Metric
    from streammetrics.core.metric_set import MetricSet
    from streammetrics.core.types import Options
    from streammetrics.inference.comparison import Comparison
    from streammetrics.readers.files import Piece


def evaluate(
    task: typed.Task,
    paths: typed.Paths = None,
    metrics: typed.Metrics = None,
    param: typed.Parameters = None,
    preset: typed.Preset = None,
    per_query: typed.PerQuery = False,
    y_true: typed.YTrue = None,
    y_score: typed.YScore = None,
    scores: typed.Scores = None,
    y_pred: typed.YPred = None,
    weight: typed.Weight = None,
    counts: typed.Counts = None,
    query: typed.Query = None,
    doc: typed.Doc = None,
    relevance: typed.Relevance = None,
    score: typed.Score = None,
    column: typed.Columns = None,
    qrels: typed.Qrels = None,
    run: typed.Run = None,
    annotations: typed.Annotations = None,
    results: typed.ResultsFiles = None,
    input_format: typed.InputFormat = None,
    delimiter: typed.Delimiter = None,
    decimal: typed.Decimal = None,
    where: typed.Where = None,
    reference: typed.Reference = None,
    batch_rows: typed.BatchRows = BATCH_ROWS,
    workers: typed.Workers = 1,
    confidence: typed.Confidence = None,
    unit: typed.Unit = None,
    by: typed.By = None,
    min_rows: typed.MinRows = 0,
    worst: typed.Worst = None,
    max_slices: typed.MaxSlices = MAX_SLICES,
    json: typed.Json = None,
    csv: typed.Csv = None,
    markdown: typed.Markdown = None,
    save: typed.Save = None,
    receipt: typed.Receipt = None,
    force: typed.Force = False,
) -> CommandResult:
    r"""Compute metrics of files of predictions.

    Repeat --y-score, --y-pred, --score, --run or --results, or --column for labels_pred,
    prediction or pred_boxes, to compare several models.

    Examples:
        streammetrics evaluate predictions/ --task binary \
            --y-true label --y-score logistic --y-score boosted
        streammetrics evaluate users.csv --task regression --y-true y --y-pred p \
            --metrics 'MAE,PinballLoss(alpha=0.9)' --by country --confidence 0.95
        streammetrics evaluate --task ranking --qrels judgments.qrels --run bm25.run \
            --param k=5,10 --json result.json --force
    """
    options: Options = parameters_of(param or ())
    if preset is not None:
        options["preset"] = preset
    if per_query and task != "ranking":
        raise CommandError(f"--per-query is not for --task {task}")
    shorthands = {
        "y_true": y_true, "y_score": y_score, "y_pred": y_pred, WEIGHT: weight,
        COUNTS: counts,
        "query": query, "doc": doc, "relevance": relevance, "score": score,
    }  # fmt: skip
    given = EvaluateOptions(
        task=task,
        columns=columns_of(shorthands, column or ()),
        options=options,
        specs=parse(metrics) if metrics else None,
        paths=paths or (),
        qrels=qrels,
        runs=run or (),
        annotations=annotations,
        results=results or (),
        format=input_format,
        delimiter=delimiter_of(delimiter),
        decimal=decimal,
        where=where,
        scores=scores,
        reference=reference or (),
        by=by or (),
        max_slices=max_slices,
        min_rows=min_rows,
        worst=worst,
        confidence=confidence,
        unit=unit,
    )
    outputs = outputs_of(json, csv, markdown)
    of_state = {"--save": save, "--receipt": receipt}
    saved = [Output(option, path) for option, path in of_state.items() if path is not None]
    check_places([*outputs, *saved])
    several = any(len(texts) > 1 for texts in given.columns.values())
    asked = save is not None or confidence is not None or worst is not None or several
    if isinstance(unit_of(unit), str) and not asked:
        raise CommandError("--unit requires --confidence, e.g. --confidence 0.95, or --save")
    work = opened(given)
    lacking = work.check_one_state(saved[0].option) if saved else []
    check_outputs(
        [*outputs, *saved], work.files, force=force, patterns=given.patterns, fmt=given.format
    )
    for note in [*work.notes, *lacking]:
        say(f"note: {note}")
    found = measured(work, workers=workers, batch_rows=batch_rows)
    if work.reference is not None:
        work.reference.add_to(found.states)
    reports = reported(work, found, given, per_query=per_query)
    if saved:
        state = found.comparison or next(iter(found.states.values()))
        if save is not None:
            write(save, state.to_bytes())
        if receipt is not None:
            write(receipt, f"{dumps(state.receipt(), indent=2)}\n")
    result = finish(reports, outputs)
    lacks = _lacking_sample(found) if given.paths and given.reference else None
    return replace(result, code=NO_ROWS, error=lacks) if lacks and not result.code else result


def _lacking_sample(found: Evaluated) -> str | None:
    """Say which of two samples has no rows, as their distance is then no measurement."""
    for state in found.states.values():
        for metric in state.values():
            if isinstance(metric, SampleDistance):
                samples: Any = metric._read()[0]
                if not all(metric._seen(samples)):
                    return f"{metric._lacking(samples)}: nothing was measured"
    return None


@dataclass(frozen=True)
class Evaluated:
    """The state of every model, and of their comparison."""

    states: Mapping[str, MetricSet]
    comparison: Comparison | None = None


def measured(work: Work, *, workers: int, batch_rows: int) -> Evaluated:
    """Read the rows of every model and of the comparison; only once if that has all metrics."""
    comparison = None
    if work.comparison is not None:
        pieces = work.comparison.pieces
        with (
            progress_bar(pieces, "comparing") as progress,
            hints(next(iter(work.models.values())).plan),
        ):
            comparison = evaluated(
                work.comparison.comparison,
                pieces,
                workers=workers,
                batch_rows=batch_rows,
                progress=progress,
            )
        if work.comparison.whole:
            return Evaluated(dict(comparison.items()), comparison)
    found = {}
    for name, model in work.models.items():
        with progress_bar(model.pieces, name) as progress, hints(model.plan):
            found[name] = evaluated(
                model.plan.suite,
                model.pieces,
                workers=workers,
                batch_rows=batch_rows,
                progress=progress,
            )
    return Evaluated(found, comparison)


def reported(
    work: Work, found: Evaluated, given: EvaluateOptions, *, per_query: bool
) -> ModelReports:
    """Read the metrics of every model, and the differences between models."""
    reports = {
        name: _report(work.models[name], state, given, per_query)
        for name, state in found.states.items()
    }
    differences = None
    if found.comparison is not None and all(report.n_rows for report in reports.values()):
        plan = next(iter(work.models.values())).plan
        with warnings.catch_warnings(action="ignore"), hints(plan):  # the reports have the warnings
            differences = found.comparison.compute()
    return ModelReports(reports, differences)


def _report(model: Model, state: MetricSet, given: EvaluateOptions, per_query: bool) -> ModelReport:
    about = {**model.about, "options": dict(model.plan.options)}
    weight = model.plan.columns.get(WEIGHT)
    notes = [] if weight is None else [f"weighted by {weight}"]
    if COUNTS in model.plan.columns:
        notes.append(f"counted by {model.plan.columns[COUNTS]}")
    with hints(model.plan):
        slices = slices_of(state, given.min_rows, given.worst, given.confidence)
        return report(
            state, about, notes, per_query=per_query, slices=slices, confidence=given.confidence
        )


@contextmanager
def hints(plan: TaskPlan) -> Iterator[None]:
    """Rephrase an error's hint as command-line options, and add further advice."""
    try:
        yield
    except StreamMetricsError as error:
        advice = [] if error.hint is None else [error.hint.spelled(_as_option)]
        raise CommandError("; ".join([error.problem, *advice, *_more(plan, error.hint)])) from error


_OPTIONS = {
    "bins": "--by {}:18:30:50",
    "periods": "--by {}:day (or hour, week, month)",
    "max_slices": "--max-slices {}",
    "multilabel": "--task multilabel",
    "threshold": "--y-score",  # evaluate applies a threshold to it
}


def _as_option(name: str, value: object) -> str:
    if name in _OPTIONS:
        return _OPTIONS[name].format(value)
    text = {"Ellipsis": "...", "[Ellipsis]": "cat,dog,eel"}.get(repr(value), str(value))
    if isinstance(value, str) and written.value(value) != value:  # text that looks like a number
        text = f"\"'{value}'\""
    return f"--param {name}={text.lower() if isinstance(value, bool) else text}"


def _more(plan: TaskPlan, hint: Hint | None) -> Iterator[str]:
    scores = plan.columns.get("y_score", "")
    if hint is None or not scores:
        return
    classes = plan.task == "multiclass" and is_several(scores)
    strict = [name for name, each in plan.suite.items() if _needs_probabilities(each, classes)]
    if "from_logits" in hint.parameters and strict:
        rest = ",".join(name for name in plan.suite if name not in strict)
        leave = f": leave out with --metrics '{rest}'" if rest else ""
        yield f"{', '.join(strict)} need{'s' * (len(strict) == 1)} probabilities{leave}"
    if plan.task == "multiclass" and not classes and "nan_policy" not in hint.parameters:
        yield "--y-score needs a column for each class"


def _needs_probabilities(metric: Metric, classes: bool) -> bool:
    """Return whether a metric needs probabilities; with scores per class, all score metrics do."""
    needs = "y_score" in metric.inputs if classes else type(metric).__name__ in PROBABILITIES
    return needs and not metric.config["from_logits"]


@contextmanager
def progress_bar(
    pieces: Sequence[Piece], title: str = ""
) -> Iterator[Callable[[int], None] | None]:
    """Show a progress bar with rows per second on a terminal; do nothing elsewhere."""
    sizes = [piece.rows for piece in pieces]
    total = None if None in sizes else sum(size or 0 for size in sizes)
    with progress_of(total, title) as progress:
        yield progress


@contextmanager
def progress_of(total: int | None, title: str = "") -> Iterator[Callable[[int], None] | None]:
    """Show a progress bar for a number of rows, ``None`` if unknown."""
    err = console(stderr=True)
    if not err.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415 - slow to import

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
