"""The inputs of `evaluate`: the metrics of a task, the columns of each model, and the files."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from streammetrics.cli.result import CommandError, blaming
from streammetrics.cli.tasks import (
    OF_MODELS,
    OF_TREC_FILES,
    SHORTHANDS,
    TASKS,
    Task,
    at_each,
    construct,
    flag,
    parse,
)
from streammetrics.core.columns.batch import COUNTS, WEIGHT, natural, near
from streammetrics.core.elsewhere import ELSEWHERE
from streammetrics.core.errors import NoConfidenceError, StreamMetricsError, an
from streammetrics.core.loading import load
from streammetrics.core.metric_set import MetricSet
from streammetrics.core.names import letters, meant_metric
from streammetrics.core.registry import catalogue
from streammetrics.inference.comparison import Comparison
from streammetrics.inference.paired import refused
from streammetrics.inference.units import BY_UNIT
from streammetrics.metrics.drift import CATEGORIES, SampleDistance
from streammetrics.metrics.ranking.base import ranking_preset
from streammetrics.metrics.specs import Spec, parameters_of
from streammetrics.readers import coco, formats, trec
from streammetrics.readers.paths import Found, find, format_of
from streammetrics.readers.selection import classes_of
from streammetrics.readers.where import conditions
from streammetrics.show.report import Sliced
from streammetrics.slices.bins import KeySpec, column_of, title_of
from streammetrics.slices.slices import Slices

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from streammetrics.core.confidence import Unit
    from streammetrics.core.mergeable import Mergeable
    from streammetrics.core.metric import Metric
    from streammetrics.core.types import Options
    from streammetrics.readers.coco import CocoPiece
    from streammetrics.readers.files import Piece
    from streammetrics.readers.paths import Source
    from streammetrics.readers.trec import TrecPiece
    from streammetrics.readers.where import RowCondition


_NOT_SHARED = ("k", "preset")  # not passed to metrics directly: each value of k makes a metric


@dataclass(frozen=True)
class TaskPlan:
    """A task with its chosen columns and metrics."""

    task: str
    columns: Mapping[str, str]  # by input, as the user wrote them
    options: Options  # parameters set for all metrics
    suite: MetricSet


def plan(
    name: str,
    columns: Mapping[str, str],
    options: Options,
    metrics: Sequence[Spec] | None,
    first: Sequence[Spec] = (),
) -> TaskPlan:
    """Choose the columns and metrics of a task.

    Args:
        name: The task.
        columns: The columns of each input that was given.
        options: Parameters for all metrics that have them, and the preset.
        metrics: The metrics; ``None`` for the task's defaults with these inputs.
        first: Metrics to list before the defaults.

    Raises:
        CommandError: The arguments contradict each other, or some are missing.
    """
    task, own = _task(name), _own_inputs(metrics or (), options)
    if not own or any(":" not in spec.name for spec in metrics or ()):
        known = {key: text for key, text in columns.items() if key in task.inputs or key not in own}
        _check_given(name, task, known, options)
    # In the order of the task, so that a state does not depend on the order of options.
    given = {key: columns[key] for key in (*task.inputs, *own, COUNTS) if key in columns}
    chosen = {**task.parameters, **options}
    if task.argmax and "y_score" in given:
        given.setdefault(task.argmax, given["y_score"])
    if "y_pred" in columns:
        chosen.pop("threshold", None)
    parameters = {**_preset(chosen), **chosen}
    if parameters.get("ties") == "doc" and "doc" not in given:
        raise CommandError("ties=doc needs --doc; or choose --param ties=average")
    if metrics:
        specs = at_each(metrics, options["k"], strict=True) if "k" in options else metrics
    else:
        defaults = _defaults(task, given, chosen)
        specs = [*first, *at_each(defaults, chosen.get("k", ()), strict="k" in options)]
    shared = {key: value for key, value in parameters.items() if key not in _NOT_SHARED}
    built = construct(specs, shared, strict=options.keys() & shared.keys())
    read = _read(built, given)
    for key in columns:
        is_argmax = key == "y_score" and task.argmax in read - columns.keys()
        if key not in read and not is_argmax:
            raise CommandError(
                f"{flag(key)} is not read by any of the metrics ({', '.join(built)}): leave it "
                "out, or add a metric that reads it to --metrics"
            )
    if metrics and "k" not in options:
        chosen.pop("k", None)
    given = {key: text for key, text in given.items() if key in read}
    # A set reads weights and counts only if they are renamed, even to the same name.
    renamed = {k: text for k, text in given.items() if k != text or k in {WEIGHT, COUNTS}}
    return TaskPlan(name, given, chosen, MetricSet(built, columns=renamed))


def _task(name: str) -> Task:
    if name not in TASKS:
        raise CommandError(f"no task {name!r}{near(name, TASKS)}")
    return TASKS[name]


def _own_inputs(metrics: Sequence[Spec], options: Options) -> tuple[str, ...]:
    """Return the inputs of metrics of the user's modules."""
    named = [spec for spec in metrics if ":" in spec.name]
    shared = {key: value for key, value in options.items() if key not in _NOT_SHARED}
    own = construct(at_each(named, options.get("k", ()), strict=False), shared, strict=())
    return tuple(dict.fromkeys(name for metric in own.values() for name in metric.inputs))


def _check_given(name: str, task: Task, columns: Mapping[str, str], options: Options) -> None:
    for key in columns:
        if key not in {*task.inputs, COUNTS}:
            text = flag(key) if key in SHORTHANDS else f"--column {key}"
            raise CommandError(f"{text} is not for --task {name}{near(key, task.inputs)}")
    if "preset" in options and name != "ranking":
        raise CommandError(f"--preset is not for --task {name}")
    missing = [flag(key) for key in task.required if key not in columns]
    if missing:
        raise CommandError(f"--task {name} needs {' and '.join(missing)}")
    for group in task.either:
        given = [key for key in group if key in columns]
        rest = [flag(key) for key in group if key not in columns]
        if given and rest:
            raise CommandError(
                f"{flag(given[0])} needs {' and '.join(rest)} beside it{task.instead}"
            )
    if not any(set(group) <= columns.keys() for group in task.either):
        groups = " or ".join(" and ".join(map(flag, group)) for group in task.either)
        raise CommandError(f"--task {name} needs {groups}{task.instead}")
    if "threshold" in options and "y_pred" in columns:
        raise CommandError(
            "--param threshold makes labels of scores, but --y-pred has labels: give one of them"
        )


def _preset(options: Options) -> dict[str, object]:
    if "preset" not in options:
        return {}
    with blaming(f"--preset {options['preset']}", ValueError):
        return ranking_preset(options["preset"])


def _defaults(task: Task, given: Mapping[str, str], options: Options) -> list[Spec]:
    cut = "threshold" in options  # turns scores into labels
    specs = [
        spec
        for key, names in task.defaults.items()
        if key in given or (key == "y_pred" and cut)
        for spec in parse(names)
    ]
    if options.get("bins") == CATEGORIES:  # the other metrics need numbers
        specs = [spec for spec in specs if "bins" in parameters_of(spec)]
    return specs


def _read(built: Mapping[str, Metric], given: Mapping[str, str]) -> set[str]:
    """Return the inputs that the metrics read; raise if a required one is not given."""
    read = {WEIGHT, COUNTS}
    for title, metric in built.items():
        schemas = [statistic.schema for statistic in metric.statistics()]
        optional = frozenset().union(*(schema.optional for schema in schemas))
        missing = [flag(i) for i in metric.inputs if i not in given and i not in optional]
        if missing:
            other = _of_the_same_name(metric, given)
            raise CommandError(f"{title} needs {' and '.join(missing)}{other}")
        read.update(metric.inputs)
    return read


def _of_the_same_name(metric: Metric, given: Mapping[str, str]) -> str:
    """Suggest metrics of the given columns that other libraries give the same name, e.g. AP."""
    shared = [names.split(", ") for names in ELSEWHERE.values()]
    names = {name for each in shared if type(metric).__name__ in each for name in each}
    known = catalogue()
    made = [
        known[name]()
        for name in sorted(names & known.keys())
        if not any(parameter.required for parameter in known[name]._parameters.values())
    ]
    fits = [repr(type(other).__name__) for other in made if {*other.inputs} <= {*given}]
    return f"; did you mean {' or '.join(fits)}?" if fits else ""


BY = "by "  # prefix of the columns to slice by, among the names of inputs
MAX_SLICES = 10_000


def _sliced(what: TaskPlan, asked: EvaluateOptions) -> TaskPlan:
    """Return the plan with its metrics also by slice, and clustered by unit.

    Raises:
        CommandError: The options contradict each other, or one requires --by.
    """
    by, unit, worst = asked.by, asked.unit, asked.worst
    if not by:
        for option, given in (("--worst", worst is not None), ("--min-rows", asked.min_rows)):
            if given:
                raise CommandError(f"{option} requires --by, e.g. --by country")
        if unit is None:
            return what
        suite = MetricSet(dict(what.suite.items()), columns=what.suite.columns, unit=unit)
        return replace(what, columns={**what.columns, BY_UNIT: unit}, suite=suite)
    if worst is not None:
        named(worst, what.suite)
    specs = [[column(part) for part in text.split(",")] for text in by]
    with blaming(f"--by {' --by '.join(by)}", ValueError):
        slices = Slices(what.suite, by=[[], *specs], max_slices=asked.max_slices, unit=unit)
    columns = {f"{BY}{title_of(part)}": title_of(part) for spec in specs for part in spec}
    if unit is not None:
        columns[f"{BY}{unit}"] = unit
    return replace(what, columns={**what.columns, **columns}, suite=slices)


def unit_of(text: str | None) -> Unit:
    """Return the unit: a column, ``None`` for rows, or the default without ``--unit``."""
    if text is None:
        return ...
    return None if text == "none" else text


def grouped_by(what: TaskPlan) -> Options:
    """Return the columns of slices and units, for the reports."""
    found: Options = {}
    if isinstance(what.suite, Slices):
        found["by"] = [",".join(map(title_of, spec)) for spec in what.suite.by if spec]
    if what.suite._kept_unit is not None:
        found["unit"] = what.suite._kept_unit
    return found


def named(text: str, suite: Iterable[str], option: str = "--worst") -> str:
    """Return the metric that an option names, ignoring case and underscores.

    Raises:
        CommandError: There is no such metric.
    """
    names = list(suite)
    found = [name for name in names if letters(name) == letters(text)]
    if text not in names and len(found) != 1:
        raise CommandError(f"{option} {text}: no such metric{meant_metric(text, names)}")
    return text if text in names else found[0]


def column(text: str) -> KeySpec:
    """Return a column, with the edges of its bins if written as ``age:18:30``."""
    try:
        return column_of(text)
    except ValueError as error:
        raise CommandError(f"--by {error}") from error


def state_of(path: str) -> Mergeable:
    """Read a saved state."""
    with blaming(path, OSError):
        return load(path)


def slices_of(
    state: MetricSet,
    min_rows: int,
    worst: str | None,
    confidence: float | None = None,
    unit: Unit = ...,
) -> Sliced | None:
    """Return the slices of a state for output, ``None`` for a set without slices."""
    if not isinstance(state, Slices):
        return None
    ranked = None
    if worst is not None:
        worst = named(worst, state)
        level = 0.95 if confidence is None else confidence
        with blaming(f"--worst {worst}", StreamMetricsError, ValueError):
            try:
                ranked = state.worst(worst, min_rows=min_rows, confidence=level, unit=unit)
            except NoConfidenceError:  # if --confidence is given, a note says so
                ranked = state.worst(worst, min_rows=min_rows, confidence=None)
    return Sliced.of(state, min_rows, worst, ranked, confidence, unit)


@dataclass(frozen=True)
class EvaluateOptions:
    """The arguments of `evaluate`."""

    task: str
    columns: Mapping[str, Sequence[str]]  # one column for each input, or one for each model
    options: Options
    specs: Sequence[Spec] | None
    paths: Sequence[str] = ()
    qrels: str | None = None
    runs: Sequence[str] = ()
    annotations: str | None = None
    results: Sequence[str] = ()
    format: str | None = None
    delimiter: str | None = None
    decimal: str | None = None
    where: str | None = None
    scores: str | None = None  # the pattern of the columns of scores
    reference: Sequence[str] = ()
    by: Sequence[str] = ()
    max_slices: int = MAX_SLICES
    min_rows: int = 0
    worst: str | None = None
    confidence: float | None = None
    unit: str | None = None

    @property
    def patterns(self) -> list[str]:
        """The arguments that lead to the files to read."""
        single = [path for path in (self.qrels, self.annotations) if path is not None]
        return [*self.paths, *self.reference, *self.runs, *self.results, *single]

    @property
    def filters(self) -> tuple[RowCondition, ...]:
        """The conditions on the rows to read."""
        if self.where is None:
            return ()
        with blaming(f"--where {self.where}", ValueError):
            return conditions(self.where)


@dataclass(frozen=True)
class Model:
    """One model: its metrics, and the pieces with its rows."""

    plan: TaskPlan
    pieces: Sequence[Piece]
    about: Mapping[str, Any]


@dataclass(frozen=True)
class Work:
    """All models by name, and the files to read for them."""

    models: Mapping[str, Model]
    files: Sequence[str]
    notes: Sequence[str] = ()  # about files left out
    comparison: ModelComparison | None = None  # if there are several models
    reference: ReferenceState | None = None

    def check_one_state(self, option: str) -> list[str]:
        """Return notes on what the one state that an option is about lacks.

        Raises:
            CommandError: There are several models and no comparison.
        """
        if self.comparison is not None:
            metrics = next(iter(self.models.values())).plan.suite
            compared = self.comparison.comparison.of_metrics
            lacking = [name for name in metrics if name not in compared]
            told = (
                f"{option} is about the comparison, which has no {', '.join(lacking)}, as "
                "such values cannot be compared; evaluate the models one by one to keep them"
            )
            return [told] if lacking else []
        if len(self.models) > 1:
            raise CommandError(
                f"{option} is about one state, and the {len(self.models)} models are not compared: "
                "no metric can be, or --by is given; evaluate them one by one"
            )
        return []


def opened(asked: EvaluateOptions) -> Work:
    """Plan every model and open every file, so that mistakes are reported before reading."""
    if unit_of(asked.unit) is None:
        asked = replace(asked, unit=None)
    if asked.qrels is not None or asked.runs:
        return _of_trec_files(asked)
    if asked.annotations is not None or asked.results:
        return _of_coco_files(asked)
    filters, reference, found = asked.filters, None, None
    if asked.reference:
        asked, reference = _with_reference(asked)
    if asked.scores is not None:
        found = _found(asked)
        asked = _with_classes(asked, found.sources[0])
    named = _by_model(asked.columns)
    plans = {
        name: _sliced(plan(asked.task, columns, asked.options, asked.specs), asked)
        for name, columns in named.items()
    }
    found = found or _found(asked)
    _check_again(found.sources, len(plans))
    more: dict[str, object] = {"reference": list(asked.reference)} if asked.reference else {}
    models = {name: _of_files(what, found, filters, more) for name, what in plans.items()}
    notes = [note for model in models.values() for note in model.about["left_out"]]
    paths = [source.path for source in found.sources]
    if reference is not None:
        paths.append(reference.path)
        if filters:
            notes.append(f"--where leaves the rows of {reference.path} alone: it is a saved state")
    comparison = None
    if len(plans) > 1 and not asked.by:
        comparison = _compared_columns(plans, found, filters)
    if len(plans) > 1 and asked.by:
        notes.append("with --by several models are shown but not compared")
    elif len(plans) > 1 and not _comparable(next(iter(plans.values()))):
        notes.append("the models are not compared, as none of these metrics can be")
    return Work(models, paths, list(dict.fromkeys(notes)), comparison, reference)


_SAMPLE = "(sample)"  # the column of the sample, which files do not have


def _found(asked: EvaluateOptions) -> Found:
    """Return the files to read; those of the reference say that they are."""
    if not asked.paths and not asked.reference:
        raise CommandError("PATH is missing: name the files to read")
    found = Found([], [])
    parts = {
        "0": [path for path in asked.reference if not _is_state(path, asked)],
        "1": asked.paths,
    }
    for sample, paths in parts.items():
        if not paths:
            continue
        sources, notes = find(paths, asked.format, asked.delimiter, asked.decimal)
        if asked.reference:
            sources = [replace(source, added=((_SAMPLE, sample),)) for source in sources]
        found = Found([*found.sources, *sources], [*found.notes, *notes])
    if not found.sources:
        raise CommandError("PATH is missing: name the files of the current sample")
    return found


def _is_state(path: str, asked: EvaluateOptions) -> bool:
    return asked.format is None and os.path.isfile(path) and format_of(path) is None


@dataclass(frozen=True)
class ReferenceState:
    """A saved state of the reference sample."""

    path: str
    state: MetricSet

    def add_to(self, states: Mapping[str, MetricSet]) -> None:
        """Add the reference to the state of the current sample.

        Raises:
            CommandError: It holds other metrics, or rows of a current sample.
        """
        (suite,) = states.values()
        for name, metric in self.state.items():
            if isinstance(metric, SampleDistance) and metric._seen(*metric._read())[0]:
                raise CommandError(
                    f"--reference {self.path} holds rows of a current sample, too ({name}): save "
                    "a state of the reference alone, with --reference FILE and no PATH"
                )
        with blaming(f"--reference {self.path} does not fit", StreamMetricsError):
            suite.merge(self.state)


def _with_reference(asked: EvaluateOptions) -> tuple[EvaluateOptions, ReferenceState | None]:
    """Return the arguments with the column of samples, and the saved reference, if it is one."""
    if asked.task != "drift":
        raise CommandError("--reference is for --task drift")
    if "sample" in asked.columns:
        raise CommandError("--reference says which rows are of which sample: leave out sample")
    if "current" in asked.options:
        raise CommandError("--reference says which sample is current: leave out --param current")
    states = [path for path in asked.reference if _is_state(path, asked)]
    if states and len(asked.reference) > 1:
        raise CommandError(f"--reference {states[0]} is a saved state: give it alone, merged")
    if states and len(asked.columns.get("values", ())) > 1:
        raise CommandError("--reference with a saved state is for one column of values")
    columns = {"sample": [_SAMPLE], **asked.columns}
    if not states:
        return replace(asked, columns=columns), None
    (path,) = states
    state = state_of(path)
    if not isinstance(state, MetricSet):
        raise CommandError(f"--reference {path} is {an(type(state).__name__)}: name a saved set")
    return replace(asked, columns=columns), ReferenceState(path, state)


def _with_classes(asked: EvaluateOptions, source: Source) -> EvaluateOptions:
    """Return the arguments with the columns of ``--scores``, and the classes that they name.

    Raises:
        CommandError: It is not clear which columns are scores, or what the classes are.
    """
    pattern = asked.scores or ""
    before, star, after = pattern.partition("*")
    if asked.task != "multiclass":
        raise CommandError("--scores is for --task multiclass")
    for option, given in (
        ("--y-score", "y_score" in asked.columns),
        ("--param labels", "labels" in asked.options),
    ):
        if given:
            raise CommandError(f"--scores has the scores and the classes: leave out {option}")
    if not star or {*before, *after} & {*"*?[],"}:
        raise CommandError(f"--scores {pattern}: expected one *, the class, e.g. 'p_*'")
    least = len(before) + len(after)
    file = formats.FILES[source.format](source)
    names = [
        name
        for name in sorted(file.names, key=natural)
        if len(name) > least and name.startswith(before) and name.endswith(after)
    ]
    if len(names) < 2:
        raise CommandError(
            f"--scores {pattern}: {source} has {len(names)} such columns{near(pattern, file.names)}"
        )
    advice = "name the columns with --y-score, and their classes with --param labels"
    for key, texts in asked.columns.items():
        if both := {*names} & {*texts}:
            raise CommandError(
                f"--scores {pattern} matches {min(both)}, which {flag(key)} names: {advice}"
            )
    for name in names:
        if "," in name:
            raise CommandError(
                f"--scores {pattern}: the column {name!r} has a comma, which separates names: "
                "rename it"
            )
    classes = [name[len(before) : len(name) - len(after)] for name in names]
    labels = classes_of(classes)
    if labels is None:
        raise CommandError(
            f"--scores {pattern}: classes {', '.join(classes)} may be numbers or text: {advice}"
        )
    columns = {**asked.columns, "y_score": [",".join(names)]}
    return replace(asked, columns=columns, options={**asked.options, "labels": labels})


def _by_model(columns: Mapping[str, Sequence[str]]) -> dict[str, dict[str, str]]:
    """Return the columns of each model, named after the column that only it has."""
    several = {key: texts for key, texts in columns.items() if len(texts) > 1}
    if not several:
        return {"": {key: texts[0] for key, texts in columns.items()}}
    counts = {len(texts) for texts in several.values()}
    if len(counts) > 1:
        given = " and ".join(f"{key} {len(texts)} times" for key, texts in several.items())
        raise CommandError(f"{given}: give every input of a model once for each model")
    (count,) = counts
    leader = next((key for key in OF_MODELS if key in several), next(iter(several)))
    names = several[leader]
    _check_distinct(flag(leader).removesuffix("=..."), names)
    return {
        names[i]: {key: texts[i % len(texts)] for key, texts in columns.items()}
        for i in range(count)
    }


def _check_distinct(option: str, names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise CommandError(f"{option} {name} is given twice")


def _check_again(files: Iterable[Source | TrecPiece | CocoPiece], models: int) -> None:
    """Raise if a file that can be read only once would be read for several models."""
    for file in files:
        if file.once and models > 1:
            raise CommandError(
                f"{file} can be read once, and there are {models} models: save it to a file first"
            )


def _of_files(
    what: TaskPlan, found: Found, filters: Sequence[RowCondition], more: Mapping[str, object]
) -> Model:
    columns, pieces, notes = formats.pieces_of(
        found.sources, lambda _: what.columns, what.suite._kinds, filters
    )
    read = {
        key: list(column.names) if len(column.names) > 1 else column.names[0]
        for key, column in columns.items()
        if not key.startswith(BY) and column.title != _SAMPLE
    }
    about = {
        "task": what.task,
        "columns": read,
        **grouped_by(what),
        **more,
        **({"where": " and ".join(map(str, filters))} if filters else {}),
        "files": [str(source) for source in found.sources],
        "left_out": [*found.notes, *notes],
    }
    return Model(what, pieces, about)


def _of_trec_files(asked: EvaluateOptions) -> Work:
    judgments = _check_pair(
        asked, "ranking", {"--qrels": asked.qrels, "--run": asked.runs}, "TREC files"
    )
    options = {"preset": "trec_eval", **asked.options}
    first = tuple(map(Spec, OF_TREC_FILES))
    runs = _by_name(asked.runs)
    models = {}
    files: list[str] = []
    for name, run in runs.items():
        what = plan(asked.task, trec.INPUTS, options, asked.specs, first)
        pieces = trec.pieces(judgments, run)
        _check_again(pieces, len(runs))
        files += map(str, pieces)
        about = {"task": asked.task, "qrels": judgments, "run": run}
        models[name] = Model(what, pieces, about)
    plans = {name: model.plan for name, model in models.items()}
    return Work(models, files, comparison=_compared_runs(plans, judgments, runs))


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
        pieces = coco.pieces(true, path, masks=options["box_format"] == "rle")
        _check_again(pieces, len(results))
        files += [str(source) for piece in pieces for source in piece.results]
        models[name] = Model(
            what, pieces, {"task": asked.task, "annotations": true, "results": path}
        )
    return Work(models, files)


def _check_pair(asked: EvaluateOptions, task: str, files: Mapping[str, Any], kind: str) -> str:
    """Return the file of true values; raise unless it and the results are the only inputs."""
    given = " and ".join(files)
    (_, truth), (of_results, results) = files.items()
    if asked.task != task:
        raise CommandError(f"{given} are not for --task {asked.task}")
    for option, texts in (("--by", asked.by), ("--unit", asked.unit), ("--where", asked.where)):
        if texts:
            raise CommandError(f"{option} is not for {kind}, whose rows have no other columns")
    if truth is None or not results:
        raise CommandError(f"{given} need each other")
    others = [*asked.paths, *(flag(key).removesuffix("=...") for key in asked.columns)]
    if others:
        raise CommandError(f"{given} are all that is read: leave out {others[0]}")
    further = {
        "--input-format": asked.format, "--delimiter": asked.delimiter, "--decimal": asked.decimal,
        "--scores": asked.scores, "--reference": asked.reference,
    }  # fmt: skip
    for option, value in further.items():
        if value:
            raise CommandError(f"{option} is not for {kind}: leave it out")
    _check_distinct(of_results, results)
    return str(truth)


def _by_name(paths: Sequence[str]) -> dict[str, str]:
    """Return the files of models by file name, or by path if file names repeat."""
    short = [os.path.basename(path) for path in paths]
    return dict(zip(short if len({*short}) == len(short) else paths, paths, strict=True))


@dataclass(frozen=True)
class ModelComparison:
    """The comparison of several models over the same rows, before reading.

    It is `whole` if it holds every metric of every model, so that nothing is read twice.
    """

    comparison: Comparison
    pieces: Sequence[Piece]
    whole: bool


def _compared_columns(
    plans: Mapping[str, TaskPlan], found: Found, filters: Sequence[RowCondition]
) -> ModelComparison | None:
    """Return the comparison of models that are columns of the same files."""
    first = next(iter(plans.values()))
    needed = {name for metric in _comparable(first).values() for name in metric.inputs}
    own = [key for key in OF_MODELS if key in needed]
    models = {name: {key: plan.columns[key] for key in own} for name, plan in plans.items()}
    comparison = _comparison(first, models)
    if comparison is None:
        return None
    pieces = formats.pieces_of(found.sources, comparison._asked, comparison._kinds, filters).pieces
    omits = any(metric.config["nan_policy"] == "omit" for metric in first.suite.values())
    # A comparison omits a row for all models if one model's score is missing.
    whole = len(comparison.of_metrics) == len(first.suite) and not omits
    return ModelComparison(comparison, pieces, whole)


def _compared_runs(
    plans: Mapping[str, TaskPlan], qrels: str, runs: Mapping[str, str]
) -> ModelComparison | None:
    """Return the comparison of runs with the same judgments."""
    first = next(iter(plans.values()))
    comparison = _comparison(first, {name: {"score": f"score of {name}"} for name in runs})
    if comparison is None:
        return None
    pieces: dict[str, trec.TrecPiece] = {}
    for name, run in runs.items():
        for piece in trec.pieces(qrels, run):
            key = str(piece) if piece.judged else f"{name}/{piece}"
            pieces[key] = piece if piece.judged else replace(piece, score=f"score of {name}")
    # Not whole: each run has its own number of rows.
    return ModelComparison(comparison, list(pieces.values()), whole=False)


def _comparable(plan: TaskPlan) -> Options:
    return {name: metric for name, metric in plan.suite.items() if not refused(metric)}


def _comparison(plan: TaskPlan, models: Mapping[str, Mapping[str, str]]) -> Comparison | None:
    """Return the comparison of the comparable metrics, ``None`` if there are none."""
    metrics = _comparable(plan)
    if len(models) < 2 or not metrics:
        return None
    needed = {name for metric in metrics.values() for name in metric.inputs}
    shared = {
        key: text
        for key, text in plan.suite.columns.items()
        if key not in OF_MODELS and (key in needed or key in {WEIGHT, COUNTS})
    }
    if len({tuple(texts.items()) for texts in models.values()}) < len(models):
        return None  # two models read the same columns
    unit = plan.suite._kept_unit
    return Comparison(MetricSet(metrics, columns=shared), models, unit=unit)
