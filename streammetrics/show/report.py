"""Results of models and slices, prepared for output but independent of the output format."""

from __future__ import annotations

import math
import re
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.confidence import ConfidenceInterval, unsure
from streammetrics.core.errors import (
    NoConfidenceError,
    StreamMetricsError,
    undefined_expected,
)
from streammetrics.core.metric import Metric
from streammetrics.core.results.values import (
    Curves,
    KeyedValues,
    LabelledArray,
    Points,
    Report,
    flat,
    is_curve,
    numbers,
)
from streammetrics.inference.estimated import Estimated
from streammetrics.metrics.ranking.base import RankingMetric
from streammetrics.slices.table import SliceTable, key_text, named

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from streammetrics.core.confidence import Unit
    from streammetrics.core.metric_set import MetricSet
    from streammetrics.core.results.differences import Differences
    from streammetrics.core.types import ClassLabel, Document, Json
    from streammetrics.slices.keyed import SliceReading
    from streammetrics.slices.slices import Slices


@dataclass(frozen=True)
class Vector:
    """One number for each class, output or cluster."""

    what: str
    names: tuple[str, ...]
    values: tuple[float, ...]


@dataclass(frozen=True)
class Matrix:
    """Numbers in rows and columns, e.g. true classes down and predicted classes across."""

    what: tuple[str, str]
    down: tuple[str, ...]
    across: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class NumberTable:
    """Several numbers for each name; None where a name lacks a number."""

    what: str
    header: tuple[str, ...]
    lines: Mapping[str, tuple[float | None, ...]]


def part_of(value: object) -> Vector | Matrix | NumberTable | int:
    """Return the parts of a value: its number of points for a curve, 0 for a plain number."""
    match value:
        case LabelledArray(axes=[(what, labels)]):
            return Vector(what, _texts(labels), tuple(value.tolist()))
        case LabelledArray(axes=[(down, labels), (across, titles)]):
            rows = tuple(map(tuple, value.tolist()))
            return Matrix((down, across), _texts(labels), _texts(titles), rows)
        case KeyedValues(name=what):
            return Vector(what, _texts(value), tuple(value.values()))
        case Report():
            return _table(value)
        case Points() if not is_curve(value):
            return Vector("best", tuple(value._named()), _floats(value))
        case Curves() if value and not is_curve(value):
            lines = zip(value.labels, map(_floats, value), strict=True)
            header = tuple(value[0]._named())
            return NumberTable("class", header, {str(label): numbers for label, numbers in lines})
        case tuple():
            return len(value[-1])
    return 0


def _floats(point: Points) -> tuple[float, ...]:
    return tuple(map(float, point._named().values()))


def _texts(labels: Iterable[object]) -> tuple[str, ...]:
    return tuple(map(str, labels))


def _table(value: Report) -> NumberTable:
    header = tuple(next(part for part in value.values() if isinstance(part, dict)))
    lines = {
        name: tuple(part.values())
        if isinstance(part, dict)
        else (*[None] * (len(header) - 2), part, None)  # accuracy, placed as scikit-learn does
        for name, part in value.items()
    }
    return NumberTable("class", header, lines)


@dataclass(frozen=True)
class MetricRow:
    """One metric's result."""

    name: str
    parameters: Mapping[str, object]
    value: Json
    low: Json
    high: Json
    exact: bool
    n_rows: int
    n_omitted: int
    per_query: Mapping[ClassLabel, float] | None = None  # if requested
    sure: ConfidenceInterval | None = None  # if requested; NaN limits if the metric has none


@dataclass
class ModelReport:
    """The results of one model, their source, and notes on them."""

    about: Document  # task, columns, etc.: shown in the line above the table, and in the JSON
    rows: list[MetricRow]
    n_rows: int
    n_omitted: int
    notes: list[str] = field(default_factory=list)
    slices: Sliced | None = None


@dataclass
class ModelReports:
    """The reports of one or more models, most of whose metrics are the same."""

    models: Mapping[str, ModelReport]
    differences: Differences | None = None  # if several models are compared

    @property
    def only(self) -> ModelReport:
        """The report of the only model."""
        (report,) = self.models.values()
        return report

    @property
    def shared(self) -> Document:
        """The entries of `about` that all models share."""
        first, *others = (report.about for report in self.models.values())
        return _common(first, others)

    @property
    def notes(self) -> list[str]:
        """Notes shared by all models, then the other notes, each prefixed with its model's name."""
        said = [report.notes for report in self.models.values()]
        of_all = [note for note in said[0] if all(note in notes for notes in said)]
        of_some = [
            f"{name}: {note}"
            for name, report in self.models.items()
            for note in report.notes
            if note not in of_all
        ]
        return of_all + of_some


def _common(first: Mapping[str, Json], others: Sequence[Mapping[str, Json]]) -> dict[str, object]:
    """Return the entries that are equal in all mappings, also within nested mappings."""
    found = {}
    for key, value in first.items():
        rest = [other.get(key) for other in others]
        if all(other == value for other in rest):
            found[key] = value
        elif isinstance(value, dict):
            found[key] = _common(value, [other or {} for other in rest])
    return found


def report(
    what: Metric | MetricSet,
    about: Mapping[str, object],
    notes: Iterable[str] = (),
    *,
    per_query: bool = False,
    slices: Sliced | None = None,
    confidence: float | None = None,
    unit: Unit = ...,
) -> ModelReport:
    """Compute every metric, with confidence limits if a level is given; warnings become notes.

    Raises:
        StreamMetricsError: A metric cannot be computed from the rows seen, or `per_query` is set
            and no metric is a ranking metric.
    """
    if isinstance(what, Estimated):
        return _estimated(what, about, notes, confidence)
    members = (
        {type(what).__name__: what} if isinstance(what, Metric) else {n: what[n] for n in what}
    )
    if per_query and not any(isinstance(metric, RankingMetric) for metric in members.values()):
        raise StreamMetricsError(
            f"--per-query: no metric is a ranking metric ({', '.join(members)})"
        )
    said = list(notes)
    rows = []
    limits = None if confidence is None else (confidence, unit)
    for name, metric in members.items():
        with warnings.catch_warnings(record=True, action="always") as caught:
            try:
                rows.append(_row(name, metric, limits, per_query=per_query))
            except StreamMetricsError as error:
                raise StreamMetricsError(f"{name}: {error.problem}", error.hint) from error
        said += [_note(name, type(metric).__name__, str(warning.message)) for warning in caught]
    said += _queries(members)
    return ModelReport(
        dict(about), rows, what.n_rows, what.n_omitted, list(dict.fromkeys(said)), slices
    )


def _estimated(
    what: Estimated, about: Mapping[str, object], notes: Iterable[str], confidence: float | None
) -> ModelReport:
    """Read the estimates over all rows."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        values, ends, labelled = what.compute(), what.bounds(), what["labels"]
        limits = {} if confidence is None else what.confidence(confidence)
    rows = [
        MetricRow(
            name, labelled[name].config, value, ends[name].low, ends[name].high, exact=False,
            n_rows=what.n_rows, n_omitted=what.n_omitted, sure=limits.get(name),
        )
        for name, value in values.items()
    ]  # fmt: skip
    said = dict.fromkeys([*notes, *(str(warning.message) for warning in caught)])
    return ModelReport(dict(about), rows, what.n_rows, what.n_omitted, list(said))


def _row(
    name: str, metric: Metric, limits: tuple[float, Unit] | None, *, per_query: bool
) -> MetricRow:
    value, exact = metric.compute(), metric.exact
    low, high = (value, value) if exact else metric.bounds()
    each = metric.per_query() if per_query and isinstance(metric, RankingMetric) else None
    counts = metric.n_rows, metric.n_omitted
    sure = None if limits is None else _sure(metric, *limits)
    return MetricRow(name, metric.config, value, low, high, exact, *counts, each, sure)


def _sure(metric: Metric, level: float, unit: Unit) -> ConfidenceInterval:
    try:
        return metric.confidence(level, unit=unit)
    except NoConfidenceError as error:
        warnings.warn(str(error), stacklevel=2)
        return unsure(level, str(error))


def _queries(members: Mapping[str, Metric]) -> list[str]:
    """Return notes on how many queries the ranking metrics average over."""
    groups: dict[tuple[int, int], list[str]] = {}
    ranked = {name: m for name, m in members.items() if isinstance(m, RankingMetric)}
    for name, metric in ranked.items():
        groups.setdefault((metric.n_queries, metric.n_unjudged), []).append(name)
    notes = []
    for (queries, unjudged), names in groups.items():
        of = f" ({', '.join(names)})" if len(groups) > 1 else ""
        notes.append(
            f"means over {queries:,} queries; {unjudged:,} without any judgment left out{of}"
        )
    return notes


def _note(name: str, kind: str, message: str) -> str:
    return message.replace(kind, name, 1) if message.startswith(kind) else f"{name}: {message}"


def number(value: float) -> str:
    """Format a number as tables show it."""
    if isinstance(value, int):
        return f"{value:,}"
    if math.isnan(value):
        return "undefined"
    return f"{value:.6f}" if 1e-3 <= abs(value) < 1e7 or value == 0 else f"{value:.6g}"


SHOWN = 40  # maximum number of slices in a printed table; JSON and CSV have all of them


def cells(table: SliceTable) -> tuple[tuple[str, ...], list[tuple[str, ...]], frozenset[int]]:
    """Return the header, the rows to print and the indices of the text columns of a slice table."""
    columns = {title: column for title, column in table.items() if title != "by"}
    keys = table._keys()
    header = tuple("Rows" if title == "n_rows" else title for title in columns)
    lines = []
    for row in range(min(len(table), SHOWN)):
        used = table._sliced(row)
        line = [key_text(columns[title][row]) if title in used else "" for title in keys]
        line += [_number(columns[title][row]) for title in columns if title not in keys]
        lines.append(tuple(line))
    return header, lines, frozenset(range(len(keys)))


def _number(value: object) -> str:
    plain = value.item() if hasattr(value, "item") else value
    if isinstance(plain, float) and 0 < abs(plain) < 1e-300:
        return f"{plain:.1e}"
    if not isinstance(plain, int | float):
        return str(plain)
    return "" if isinstance(plain, float) and math.isnan(plain) else number(plain)


@dataclass(frozen=True)
class Sliced:
    """The slices of a report.

    Attributes:
        table: Slices with at least `min_rows` rows, without the slice of all rows.
        read: All slices, including those with fewer than `min_rows` rows.
        hidden: Number of slices with fewer than `min_rows` rows.
        by: The metric by which the worst slices are ranked, if requested.
        worst: The worst slices by that metric, if requested.
        sure: Whether the table has confidence limits.
    """

    table: SliceTable
    read: Slices
    min_rows: int
    hidden: int
    by: str | None
    worst: SliceTable | None
    sure: bool

    @classmethod
    def of(
        cls,
        slices: Slices,
        min_rows: int,
        by: str | None,
        worst: SliceTable | None,
        level: float | None = None,
        unit: Unit = ...,
    ) -> Sliced:
        """Compute all slices, with confidence limits if a level is given."""
        with undefined_expected():
            table = slices.compute(confidence=level, unit=unit)
        whole, rows = table._whole(), table["n_rows"].tolist()
        parts = [place for place in range(len(table)) if place != whole]
        kept = [place for place in parts if rows[place] >= min_rows]
        hidden, sure = len(parts) - len(kept), level is not None
        return cls(taken(table, kept), slices, min_rows, hidden, by, worst, sure)

    def lines(self) -> Iterator[tuple[object, ...]]:
        """Yield each number: metric, part, value, certain bounds, whether exact, rows, omitted.

        Confidence limits come last, if there are any.
        """
        state, place = self.read._accumulator.flush(), 0
        for spec in self.read._specs:
            kept = spec.kept(state)
            if not kept.columns:
                continue
            shown = np.flatnonzero(kept.n_rows >= self.min_rows).tolist()
            metrics = self.read._metrics.items()
            for at, *readings in zip(
                shown, *(kept.readings(metric, shown) for _, metric in metrics), strict=True
            ):
                slice_name = named(kept.columns, kept.keys[at])
                for (name, _), reading in zip(metrics, readings, strict=True):
                    for part, line in _lines(slice_name, reading):
                        title = f"{name}_{part}" if part else name
                        yield name, *line, *self._limits(title, place)
                place += 1

    def _limits(self, title: str, place: int) -> Iterator[object]:
        """Yield both limits of a table row; None for a curve, which has no columns."""
        for side in ("low", "high") if self.sure else ():
            column = self.table.get(f"{title}_{side}")
            yield None if column is None else column[place]

    def without(self, metrics: Sequence[str]) -> SliceTable:
        """Return the table without the columns of the given metrics."""

        def of(title: str) -> str:
            """Return the metric that the column belongs to, or an empty string."""
            names = (n for n in self.read._metrics if title == n or title.startswith(f"{n}_"))
            return max(names, key=len, default="")

        keys = {"by", *self.table._keys()}
        kept = [title for title in self.table if title in keys or of(title) not in metrics]
        return SliceTable({title: self.table[title] for title in kept})

    def document(self) -> Document:
        """Return the slices for JSON, column by column."""
        found: Document = {"slices": self.table.to_dict()}
        if self.worst is not None:
            found["worst"] = {"by": self.by, **self.worst.to_dict()}
        return found


def taken(table: SliceTable, places: list[int]) -> SliceTable:
    """Return the rows at the given places."""
    return SliceTable({title: column[places] for title, column in table.items()})


def _lines(slice_name: str, reading: SliceReading) -> Iterator[tuple[str, tuple[object, ...]]]:
    limits = dict(numbers(reading.bounds))
    counts = "true" if reading.exact else "false", reading.n_rows, reading.n_omitted
    for part, row in numbers(reading.value):
        sides = limits.get(part, {})
        title = "/".join(filter(None, (slice_name, part)))
        yield part, (title, row["value"], sides.get("low"), sides.get("high"), *counts)


# The Hub's names of metrics that are not the class name in lower case.
_TYPES = {
    "MatthewsCorrcoef": "matthews_correlation",
    "PearsonCorrelation": "pearsonr",
    "SpearmanRho": "spearmanr",
    "ROCAUC": "roc_auc",
    "R2": "r_squared",
}


def model_index(
    suite: MetricSet,
    *,
    model: str,
    task: str,
    dataset: str,
    dataset_name: str = "",
    split: str = "test",
    revision: str | None = None,
) -> dict[str, list[Document]]:
    """Return the ``model-index`` of a model card: the results that the Hub shows beside a model.

    Put it into the YAML header of a README, or pass it to `huggingface_hub.ModelCardData` as
    ``eval_results=model_index_to_eval_results(...)``. Undefined values are left out.

    Args:
        suite: The metrics, computed on one split of one dataset.
        model: The model's name.
        task: The Hub's name of the task, e.g. ``"text-classification"``.
        dataset: The dataset's id on the Hub.
        dataset_name: The dataset's display name; defaults to its id.
        split: The split of the dataset.
        revision: The revision of the dataset.

    Example:
        >>> import streammetrics as sm
        >>> suite = sm.MetricSet({"acc": sm.Accuracy()}).update(y_true=[0, 1], y_pred=[0, 1])
        >>> card = sm.model_index(suite, model="tree", task="tabular-classification", dataset="u/d")
        >>> card["model-index"][0]["results"][0]["metrics"]
        [{'type': 'accuracy', 'value': 1.0, 'name': 'acc', 'args': {}}]
    """
    told = {"type": dataset, "name": dataset_name or dataset, "split": split}
    if revision is not None:
        told["revision"] = revision
    with undefined_expected():
        metrics = [
            {"type": _type(metric), "value": value, "name": title, "args": _args(metric)}
            for name, metric in suite.items()
            for title, value in flat(name, metric.compute()).items()
            if math.isfinite(value)
        ]
    result = {"task": {"type": task, "name": task}, "dataset": told, "metrics": metrics}
    return {"model-index": [{"name": model, "results": [result]}]}


def _type(metric: Metric) -> str:
    name = type(metric).__name__
    return _TYPES.get(name) or re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def _args(metric: Metric) -> dict[str, object]:
    """Return the parameters that differ from the metric's defaults."""
    plain = (bool, int, float, str)
    known = metric._parameters
    return {
        name: value
        for name, value in metric.config.items()
        if isinstance(value, plain) and (known[name].required or value != known[name].default)
    }
