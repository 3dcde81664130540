"""From options to values: planning, opening, running and slicing."""

from __future__ import annotations

import os
import re
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from streammetrics.cli.errors import CommandError
from streammetrics.cli.outputs import Outcome, Output, is_csv, is_json, is_markdown, write
from streammetrics.cli.tasks import (
    OF_MODELS,
    OF_TREC_FILES,
    PROBABILITIES,
    TASKS,
    WEIGHT,
    Task,
    at_each,
    construct,
    flag,
    parse,
)
from streammetrics.core.columns.batch import is_several, near
from streammetrics.core.elsewhere import ELSEWHERE
from streammetrics.core.errors import NoConfidenceError, StreamMetricsError
from streammetrics.core.metric_set import MetricSet
from streammetrics.core.registry import catalogue
from streammetrics.core.stateful import load
from streammetrics.engines.local import evaluate
from streammetrics.inference.comparing.comparison import Comparison, compare
from streammetrics.inference.comparing.tests import refused
from streammetrics.ledger.ledger import Ledger
from streammetrics.metrics.ranking.base import ranking_preset
from streammetrics.metrics.specs import Spec
from streammetrics.readers import coco, formats, trec
from streammetrics.readers.paths import find
from streammetrics.show.formats import as_csv, as_json, as_markdown, as_text, console
from streammetrics.show.report import ModelReport, ModelReports, Sliced, report
from streammetrics.slices.bins import KeySpec, column_of, title_of
from streammetrics.slices.keyed import KeyedSet
from streammetrics.slices.slices import Slices

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from streammetrics.core.confidence import Unit
    from streammetrics.core.metric import Metric
    from streammetrics.core.types import Options
    from streammetrics.readers.coco import CocoPiece
    from streammetrics.readers.paths import Found
    from streammetrics.readers.pieces import Piece
    from streammetrics.readers.sources import Source
    from streammetrics.readers.trec import TrecPiece


_AHEAD = ("k", "preset")  # options that are no parameter of every metric, but become some


@dataclass(frozen=True)
class TaskPlan:
    """A task with its columns and metrics chosen."""

    task: str
    asked: Mapping[str, str]  # for each input, what the user wrote
    options: Options  # those set for all metrics at once
    suite: MetricSet


def plan(
    name: str,
    columns: Mapping[str, str],
    options: Options,
    metrics: Sequence[Spec] | None,
    besides: Sequence[Spec] = (),
) -> TaskPlan:
    """Choose what to compute.

    Args:
        name: The task.
        columns: For each input that was given, the columns.
        options: Parameters that were given, for all metrics that take them.
        metrics: What was asked for; ``None``: the task's default for these inputs.
        besides: What comes before the default.

    Raises:
        CommandError: What was given contradicts itself or does not suffice.
    """
    task = _task(name)
    _check_given(name, task, columns, options)
    asked, chosen = dict(columns), {**task.parameters, **options}
    if task.argmax and "y_score" in asked:
        asked.setdefault(task.argmax, asked["y_score"])
    if "threshold" in task.options and "y_pred" not in asked:
        chosen.setdefault("threshold", 0.5)
    parameters = {**_preset(chosen), **chosen}
    if parameters.get("ties") == "doc" and "doc" not in asked:
        raise CommandError("ties are broken by document, which needs --doc; or choose other --ties")
    if metrics:
        specs = at_each(metrics, options["k"], strict=True) if "k" in options else metrics
    else:
        depths = chosen.get("k", ())
        specs = [*besides, *at_each(_defaults(task, asked, chosen), depths, strict=False)]
    shared = {key: value for key, value in parameters.items() if key not in _AHEAD}
    built = construct(specs, shared, strict=options.keys() & shared.keys())
    read = _read(built, asked)
    for key in columns:
        is_argmax = key == "y_score" and task.argmax in read - columns.keys()
        if key not in read and not is_argmax:
            raise CommandError(
                f"{flag(key)} is read by none of the metrics ({', '.join(built)}): leave it "
                "out, or ask for one that reads it with --metrics"
            )
    if metrics and "k" not in options:
        chosen.pop("k", None)
    asked = {key: text for key, text in asked.items() if key in read}
    # A set uses a table's weights only if a column is named for them, even under the same name.
    renamed = {key: text for key, text in asked.items() if key != text or key == WEIGHT}
    return TaskPlan(name, asked, chosen, MetricSet(built, columns=renamed))


def _task(name: str) -> Task:
    if name not in TASKS:
        raise CommandError(f"no task {name!r}{near(name, TASKS)}")
    return TASKS[name]


def _check_given(name: str, task: Task, columns: Mapping[str, str], options: Options) -> None:
    foreign = [
        *(c for c in columns if c not in task.inputs),
        *(o for o in options if o not in task.options),
    ]
    if foreign:
        raise CommandError(f"{flag(foreign[0])} is not for --task {name}")
    missing = [flag(key) for key in task.required if key not in columns]
    if missing:
        raise CommandError(f"--task {name} needs {' and '.join(missing)}")
    for group in task.either:
        given = [key for key in group if key in columns]
        rest = [flag(key) for key in group if key not in columns]
        if given and rest:
            raise CommandError(f"{flag(given[0])} needs {' and '.join(rest)} beside it")
    if not any(set(group) <= columns.keys() for group in task.either):
        groups = " or ".join(" and ".join(map(flag, group)) for group in task.either)
        raise CommandError(f"--task {name} needs {groups}{task.instead}")
    if "threshold" in options and "y_pred" in columns:
        raise CommandError(
            "--threshold makes labels of scores, but --y-pred has the labels: give one of them"
        )


def _preset(options: Options) -> dict[str, object]:
    if "preset" not in options:
        return {}
    try:
        return ranking_preset(options["preset"])
    except ValueError as error:
        raise CommandError(f"--preset {options['preset']}: {error}") from None


def _defaults(task: Task, asked: Mapping[str, str], options: Options) -> list[Spec]:
    cut = "threshold" in options  # scores make labels
    return [
        spec
        for key, names in task.defaults.items()
        if key in asked or (key == "y_pred" and cut)
        for spec in parse(names)
    ]


def _read(built: Mapping[str, Metric], asked: Mapping[str, str]) -> set[str]:
    """Return the inputs that the metrics read; raise where one that is needed was not given."""
    read = {WEIGHT}
    for title, metric in built.items():
        schemas = [statistic.schema for statistic in metric.statistics()]
        optional = frozenset().union(*(schema.optional for schema in schemas))
        missing = [flag(i) for i in metric.inputs if i not in asked and i not in optional]
        if missing:
            told = _of_the_same_name(metric, asked)
            raise CommandError(f"{title} needs {' and '.join(missing)}{told}")
        read.update(metric.inputs)
    return read


def _of_the_same_name(metric: Metric, asked: Mapping[str, str]) -> str:
    """Return which metric of the given columns is called elsewhere what this one is, as AP is."""
    shared = [names.split(", ") for names in ELSEWHERE.values()]
    names = {name for each in shared if type(metric).__name__ in each for name in each}
    known = catalogue()
    made = [
        known[name]()
        for name in sorted(names & known.keys())
        if not any(parameter.required for parameter in known[name]._parameters.values())
    ]
    fits = [repr(type(other).__name__) for other in made if {*other.inputs} <= {*asked}]
    return f"; did you mean {' or '.join(fits)}?" if fits else ""


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
def advice(what: TaskPlan) -> Iterator[None]:
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


BY = "by "  # how the names of columns to slice by begin, beside those of inputs
MOST = 10_000


def sliced(
    what: TaskPlan,
    asked_by: Sequence[str],
    most: int,
    worst: str | None,
    min_rows: int,
    unit: str | None = None,
) -> TaskPlan:
    """Return the plan with its metrics by slice, and by all rows besides, in groups of units.

    Raises:
        CommandError: The options have no sense, or no slices are asked for and something of them.
    """
    if not asked_by:
        if worst is not None:
            raise CommandError("--worst is of slices: say by which columns, as --by country")
        if min_rows:
            raise CommandError("--min-rows is of slices: say by which columns, as --by country")
        if unit is None:
            return what
        suite = MetricSet(dict(what.suite.items()), columns=what.suite.columns, unit=unit)
        return replace(what, asked={**what.asked, f"{BY}{unit}": unit}, suite=suite)
    if worst is not None:
        named(worst, what.suite)
    specs = [[column(part) for part in text.split(",")] for text in asked_by]
    try:
        slices = Slices(what.suite, by=[[], *specs], max_slices=most, unit=unit)
    except ValueError as error:
        raise CommandError(f"--by {' --by '.join(asked_by)}: {error}") from error
    asked = {f"{BY}{title_of(part)}": title_of(part) for spec in specs for part in spec}
    if unit is not None:
        asked[f"{BY}{unit}"] = unit
    return replace(what, asked={**what.asked, **asked}, suite=slices)


def unit_of(text: str | None) -> Unit:
    """Return what ``--unit`` says: a column, ``None`` for rows, or without it the default."""
    if text is None:
        return ...
    return None if text == "none" else text


def by(what: TaskPlan) -> Options:
    """Return the line that names the columns of slices and units."""
    told: Options = {}
    if isinstance(what.suite, Slices):
        told["by"] = [",".join(map(title_of, spec)) for spec in what.suite.by if spec]
    if isinstance(what.suite, KeyedSet) and what.suite.unit is not None:
        told["unit"] = what.suite.unit
    return told


def named(worst: str, suite: MetricSet) -> str:
    """Return the metric that ``--worst`` names, in any case as ``--metrics`` takes it.

    Raises:
        CommandError: There is none.
    """
    found = [name for name in suite if name.lower() == worst.lower()]
    if worst not in suite and len(found) != 1:
        raise CommandError(f"--worst {worst}: no such metric{near(worst, suite)}")
    return worst if worst in suite else found[0]


def column(text: str) -> KeySpec:
    """Return a column as it is written: its name, or with the edges of bins ``age:18:30``."""
    try:
        return column_of(text)
    except ValueError as error:
        raise CommandError(f"--by {error}") from error


def slices_of(
    state: MetricSet,
    min_rows: int,
    worst: str | None,
    confidence: float | None = None,
    unit: Unit = ...,
) -> Sliced | None:
    """Return the slices of a state as they are shown, ``None`` of a set without."""
    if not isinstance(state, Slices):
        return None
    ranked = None
    try:
        if worst is not None:
            worst = named(worst, state)
            level = 0.95 if confidence is None else confidence
            try:
                ranked = state.worst(worst, min_rows=min_rows, confidence=level, unit=unit)
            except NoConfidenceError:  # which a note tells where limits were asked for
                ranked = state.worst(worst, min_rows=min_rows, confidence=None)
    except (StreamMetricsError, ValueError) as error:
        raise CommandError(f"--worst {worst}: {error}") from error
    return Sliced.of(state, min_rows, worst, ranked, confidence, unit)


@dataclass(frozen=True)
class Evaluated:
    """The state of every model, and of all together where they are compared."""

    states: Mapping[str, MetricSet]
    comparison: Comparison | None = None


def measured(work: Work, *, workers: int, batch_rows: int) -> Evaluated:
    """Read every model's rows, and those of all together: once, where this has all metrics."""
    comparison = None
    if work.duel is not None:
        with advice(next(iter(work.models.values())).plan):
            comparison = work.duel.fought(workers=workers, batch_rows=batch_rows)
        if work.duel.whole:
            return Evaluated(dict(comparison.items()), comparison)
    found = {}
    for name, model in work.models.items():
        with progress_bar(model.pieces, name) as progress, advice(model.plan):
            found[name] = evaluate(
                model.plan.suite,
                model.pieces,
                workers=workers,
                batch_rows=batch_rows,
                progress=progress,
            )
    return Evaluated(found, comparison)


def reported(
    work: Work, found: Evaluated, asked: EvaluateOptions, *, per_query: bool
) -> ModelReports:
    """Read the metrics of every model, and how models differ."""
    reports = {
        name: _report(work.models[name], state, asked, per_query)
        for name, state in found.states.items()
    }
    differences = None
    if found.comparison is not None and all(report.n_rows for report in reports.values()):
        with warnings.catch_warnings(), advice(next(iter(work.models.values())).plan):
            warnings.simplefilter("ignore")  # the reports have told
            differences = found.comparison.compute()
    return ModelReports(reports, differences)


def _report(model: Model, state: MetricSet, asked: EvaluateOptions, per_query: bool) -> ModelReport:
    about = {**model.about, "options": dict(model.plan.options)}
    weight = model.plan.asked.get(WEIGHT)
    notes = [] if weight is None else [f"weighted by {weight}"]
    with advice(model.plan):
        slices = slices_of(state, asked.min_rows, asked.worst, asked.confidence)
        return report(
            state, about, notes, per_query=per_query, slices=slices, confidence=asked.confidence
        )


@dataclass(frozen=True)
class Duel:
    """What is read to compare models: those of the metrics that can be compared, and the pieces.

    It is `whole` where it has all metrics of every model, so that nothing is read again for them.
    """

    comparison: Comparison
    pieces: Sequence[Piece]
    whole: bool

    def fought(self, *, workers: int, batch_rows: int) -> Comparison:
        """Read the rows of all models."""
        with progress_bar(self.pieces, "comparing") as progress:
            return evaluate(
                self.comparison,
                self.pieces,
                workers=workers,
                batch_rows=batch_rows,
                progress=progress,
            )


def of_files(plans: Mapping[str, TaskPlan], found: Found) -> Duel | None:
    """Return the duel of models that are columns of the same files."""
    first = next(iter(plans.values()))
    needed = {name for metric in _able(first).values() for name in metric.inputs}
    own = [key for key in OF_MODELS if key in needed]
    models = {name: {key: plan.asked[key] for key in own} for name, plan in plans.items()}
    duel = _between(first, models)
    if duel is None:
        return None
    pieces = formats.pieces_of(found.sources, duel._asked, duel._kinds).pieces
    omits = any(metric.config["nan_policy"] == "omit" for metric in first.suite.values())
    # A row that lacks one model's score is left out for all where they are compared.
    return Duel(duel, pieces, whole=len(duel.of_metrics) == len(first.suite) and not omits)


def of_runs(plans: Mapping[str, TaskPlan], qrels: str, runs: Mapping[str, str]) -> Duel | None:
    """Return the duel of runs by the same judgments."""
    first = next(iter(plans.values()))
    duel = _between(first, {name: {"score": f"score of {name}"} for name in runs})
    if duel is None:
        return None
    pieces: dict[str, trec.TrecPiece] = {}
    for name, run in runs.items():
        for piece in trec.pieces(qrels, run):
            key = str(piece) if piece.judged else f"{name}/{piece}"
            pieces[key] = piece if piece.judged else replace(piece, score=f"score of {name}")
    return Duel(duel, list(pieces.values()), whole=False)  # counts of rows are of each run's


def _able(plan: TaskPlan) -> Options:
    return {name: metric for name, metric in plan.suite.items() if not refused(metric)}


def _between(plan: TaskPlan, models: Mapping[str, Mapping[str, str]]) -> Comparison | None:
    """Return the comparison of the metrics that can be, nothing where there is nothing to it."""
    metrics = _able(plan)
    if len(models) < 2 or not metrics:
        return None
    needed = {name for metric in metrics.values() for name in metric.inputs}
    shared = {
        key: text
        for key, text in plan.suite.columns.items()
        if key not in OF_MODELS and (key in needed or key == "sample_weight")
    }
    if len({tuple(texts.items()) for texts in models.values()}) < len(models):
        return None  # two models read the same columns
    return Comparison(MetricSet(metrics, columns=shared), models)


def of_comparison(
    what: Comparison, about: Mapping[str, object], notes: Sequence[str]
) -> ModelReports:
    """Read a saved comparison: every model, and how they differ."""
    reports = {name: report(suite, about, notes) for name, suite in what.items()}
    differences = what.compute() if what.n_rows else None
    return ModelReports(reports, differences)


def of_states(paths: Sequence[str], confidence: float, unit: str | None) -> ModelReports:
    """Compare two saved states of different rows, as samples of units where one is named."""
    names = [os.path.basename(path) for path in paths]
    if len({*names}) < 2:
        names = list(paths)
    if names[0] == names[1]:
        raise CommandError(f"{names[0]} is named twice: name the state of another model or time")
    states = [_merged(path) for path in paths]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = compare(
                *states,
                confidence=confidence,
                names=(names[0], names[1]),
                unit=unit_of(unit),
            )
        except (StreamMetricsError, TypeError, ValueError) as error:
            raise CommandError(str(error)) from error
    notes = [*dict.fromkeys(str(warning.message) for warning in caught), UNPAIRED]
    reports = {
        name: report(state, {"state": path}, notes)
        for name, state, path in zip(names, states, paths, strict=True)
    }
    return ModelReports(reports, found)


UNPAIRED = (
    "the states are of different rows, which is the weaker test: models that judge the same rows "
    "are compared by evaluate with several --y-score or --run"
)


def _merged(path: str) -> Any:
    state = state_of(path)
    return state.merged() if isinstance(state, Ledger) else state


@dataclass(frozen=True)
class EvaluateOptions:
    """What was asked for on the command line."""

    task: str
    columns: Mapping[str, Sequence[str]]  # for each input one text, or one for each model
    options: Options
    specs: Sequence[Spec] | None
    paths: Sequence[str] = ()
    qrels: str | None = None
    runs: Sequence[str] = ()
    annotations: str | None = None
    results: Sequence[str] = ()
    format: str | None = None
    delimiter: str | None = None
    by: Sequence[str] = ()
    max_slices: int = MOST
    min_rows: int = 0
    worst: str | None = None
    confidence: float | None = None
    unit: str | None = None

    @property
    def patterns(self) -> list[str]:
        """What leads to the files that are read."""
        single = [path for path in (self.qrels, self.annotations) if path is not None]
        return [*self.paths, *self.runs, *self.results, *single]


@dataclass(frozen=True)
class Model:
    """What is measured of one model: its metrics, and the pieces with its rows."""

    plan: TaskPlan
    pieces: Sequence[Piece]
    about: Mapping[str, Any]


@dataclass(frozen=True)
class Work:
    """All models by name, and the files that are read for them."""

    models: Mapping[str, Model]
    files: Sequence[str]
    notes: Sequence[str] = ()  # on what is not read
    duel: Duel | None = None  # of several models

    def to_save(self) -> MetricSet:
        """Return what `--save` writes, before it has rows: of several models their comparison.

        Raises:
            CommandError: There are several, and no one state is of all of them.
        """
        first, *others = (model.plan.suite for model in self.models.values())
        if not others:
            return first
        if self.duel is None:
            raise CommandError(
                f"--save holds one state, and the {1 + len(others)} models are not compared, be it "
                "that no metric of theirs can be or that --by or --unit is given: evaluate them "
                "one by one"
            )
        return self.duel.comparison


def opened(asked: EvaluateOptions) -> Work:
    """TaskPlan every model and open every file: mistakes are reported before anything is read."""
    if unit_of(asked.unit) is None:
        asked = replace(asked, unit=None)
    if asked.qrels is not None or asked.runs:
        return _of_trec_files(asked)
    if asked.annotations is not None or asked.results:
        return _of_coco_files(asked)
    named = _by_model(asked.columns)
    plans = {
        name: sliced(
            plan(asked.task, columns, asked.options, asked.specs),
            asked.by,
            asked.max_slices,
            asked.worst,
            asked.min_rows,
            asked.unit,
        )
        for name, columns in named.items()
    }
    if not asked.paths:
        raise CommandError("which files are to be read? PATH... is missing")
    found = find(asked.paths, asked.format, asked.delimiter)
    _check_again(found.sources, len(plans))
    models = {name: _of_files(what, found) for name, what in plans.items()}
    notes = [note for model in models.values() for note in model.about["left_out"]]
    paths = [source.path for source in found.sources]
    apart = [flag for flag, given in (("--by", asked.by), ("--unit", asked.unit)) if given]
    duel = of_files(plans, found) if len(plans) > 1 and not apart else None
    if len(plans) > 1 and apart:
        notes.append(f"with {apart[0]} models stand side by side and are not compared")
    return Work(models, paths, list(dict.fromkeys(notes)), duel)


def _by_model(columns: Mapping[str, Sequence[str]]) -> dict[str, dict[str, str]]:
    """Return the columns of each model, named for what it has of its own."""
    several = {key: texts for key, texts in columns.items() if len(texts) > 1}
    if not several:
        return {"": {key: texts[0] for key, texts in columns.items()}}
    counts = {len(texts) for texts in several.values()}
    if len(counts) > 1:
        given = " and ".join(f"{flag(key)} {len(texts)} times" for key, texts in several.items())
        raise CommandError(f"{given}: give each option of a model once for each model")
    (count,) = counts
    leader = next(key for key in OF_MODELS if key in several)
    names = several[leader]
    _check_distinct(flag(leader), names)
    return {
        names[i]: {key: texts[i % len(texts)] for key, texts in columns.items()}
        for i in range(count)
    }


def _check_distinct(option: str, names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise CommandError(f"{option} {name} is given twice")


def _check_again(files: Iterable[Source | TrecPiece | CocoPiece], models: int) -> None:
    """Raise where a file has to be read for each of several models, and cannot be."""
    for file in files:
        if file.once and models > 1:
            raise CommandError(
                f"{file} can be read once, and there are {models} models: save it to a file first"
            )


def _of_files(what: TaskPlan, found: Found) -> Model:
    columns, pieces, notes = formats.pieces_of(
        found.sources, lambda _: what.asked, what.suite._kinds
    )
    read = {
        key: list(column.names) if len(column.names) > 1 else column.names[0]
        for key, column in columns.items()
        if not key.startswith(BY)
    }
    about = {
        "task": what.task,
        "columns": read,
        **by(what),
        "files": [str(source) for source in found.sources],
        "left_out": [*found.notes, *notes],
    }
    return Model(what, pieces, about)


def _of_trec_files(asked: EvaluateOptions) -> Work:
    judgments = _check_pair(
        asked, "ranking", {"--qrels": asked.qrels, "--run": asked.runs}, "TREC files"
    )
    options = {"preset": "trec_eval", **asked.options}
    besides = tuple(map(Spec, OF_TREC_FILES))
    runs = _by_name(asked.runs)
    models = {}
    files: list[str] = []
    for name, run in runs.items():
        what = plan(asked.task, trec.INPUTS, options, asked.specs, besides)
        pieces = trec.pieces(judgments, run)
        _check_again(pieces, len(runs))
        files += map(str, pieces)
        about = {"task": asked.task, "qrels": judgments, "run": run}
        models[name] = Model(what, pieces, about)
    plans = {name: model.plan for name, model in models.items()}
    return Work(models, files, duel=of_runs(plans, judgments, runs))


def _of_coco_files(asked: EvaluateOptions) -> Work:
    true = _check_pair(
        asked,
        "boxes",
        {"--annotations": asked.annotations, "--results": asked.results},
        "COCO files",
    )
    options = {"box_format": "xywh", **asked.options}
    results = _by_name(asked.results)
    models = {}
    files = [true]
    for name, path in results.items():
        what = plan(asked.task, coco.INPUTS, options, asked.specs)
        pieces = coco.pieces(true, path)
        _check_again(pieces, len(results))
        files += [str(source) for piece in pieces for source in piece.results]
        models[name] = Model(
            what, pieces, {"task": asked.task, "annotations": true, "results": path}
        )
    return Work(models, files)


def _check_pair(asked: EvaluateOptions, task: str, files: Mapping[str, Any], kind: str) -> str:
    """Return the file of truths, if it and those of results are all that is to be read."""
    given = " and ".join(files)
    (_, truth), (of_results, results) = files.items()
    if asked.task != task:
        raise CommandError(f"{given} are not for --task {asked.task}")
    for option, texts in (("--by", asked.by), ("--unit", asked.unit)):
        if texts:
            raise CommandError(f"{option} is not for {kind}, whose rows have no other columns")
    if truth is None or not results:
        raise CommandError(f"{given} need each other")
    others = [*asked.paths, *map(flag, asked.columns)]
    if others:
        raise CommandError(f"{given} are all that is read: leave out {others[0]}")
    for option, value in (("--input-format", asked.format), ("--delimiter", asked.delimiter)):
        if value is not None:
            raise CommandError(f"{option} is not for {kind}: leave it out")
    _check_distinct(of_results, results)
    return str(truth)


def _by_name(paths: Sequence[str]) -> dict[str, str]:
    """Return the files of models by their names, or by their paths where names come again."""
    short = [os.path.basename(path) for path in paths]
    return dict(zip(short if len({*short}) == len(short) else paths, paths, strict=True))
