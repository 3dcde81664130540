"""What `evaluate` does before it reads: plan each model and open the files."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from streammetrics.cli.comparing import Duel, of_files, of_runs
from streammetrics.cli.errors import CommandError
from streammetrics.cli.planning import Plan, plan
from streammetrics.cli.slicing import BY, MOST, by, sliced, unit_of
from streammetrics.cli.tasks import OF_MODELS, OF_TREC_FILES, flag
from streammetrics.metrics.specs import Spec
from streammetrics.readers import coco, formats, trec
from streammetrics.readers.paths import find

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from streammetrics.core.metric_set import MetricSet
    from streammetrics.core.types import Options
    from streammetrics.readers.coco import CocoPiece
    from streammetrics.readers.paths import Found
    from streammetrics.readers.pieces import Piece
    from streammetrics.readers.sources import Source
    from streammetrics.readers.trec import TrecPiece


@dataclass(frozen=True)
class Asked:
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

    plan: Plan
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


def opened(asked: Asked) -> Work:
    """Plan every model and open every file, so that a mistake is told before anything is read."""
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


def _of_files(what: Plan, found: Found) -> Model:
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


def _of_trec_files(asked: Asked) -> Work:
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


def _of_coco_files(asked: Asked) -> Work:
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


def _check_pair(asked: Asked, task: str, files: Mapping[str, Any], kind: str) -> str:
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
