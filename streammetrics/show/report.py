"""What metrics say: their values, how sure they are, and what there is to say besides."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from streammetrics.core.confidence import ConfidenceInterval, unsure
from streammetrics.core.errors import NoConfidenceError, StreamMetricsError
from streammetrics.core.metric import Metric
from streammetrics.metrics.ranking.base import RankingMetric

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from streammetrics.core.confidence import Unit
    from streammetrics.core.metric_set import MetricSet
    from streammetrics.core.results.differences import Differences
    from streammetrics.core.types import Document, Json
    from streammetrics.show.sliced import Sliced


@dataclass(frozen=True)
class MetricRow:
    """One metric's result."""

    name: str
    parameters: Mapping[str, object]
    value: Any
    low: Any
    high: Any
    exact: bool
    n_rows: int
    n_omitted: int
    per_query: Mapping[Any, float] | None = None  # where it was asked for
    sure: ConfidenceInterval | None = None  # where it was asked for: nan limits if there are none


@dataclass
class ModelReport:
    """The results of one model, what they are of, and what there is to say about them."""

    about: Document  # task, columns, ...: shown in a line above, and in the JSON
    rows: list[MetricRow]
    n_rows: int
    n_omitted: int
    notes: list[str] = field(default_factory=list)
    slices: Sliced | None = None


@dataclass
class ModelReports:
    """The reports of one model or of several, most of whose metrics are the same."""

    models: Mapping[str, ModelReport]
    differences: Differences | None = None  # of several models that are compared

    @property
    def only(self) -> ModelReport:
        """The report, where there is one."""
        (report,) = self.models.values()
        return report

    @property
    def shared(self) -> Document:
        """What is true of all models."""
        first, *others = (report.about for report in self.models.values())
        return _common(first, others)

    @property
    def notes(self) -> list[str]:
        """What is said of all models, then what is said of some, with their names."""
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
    """Return what stands in all of them alike, also inside of what stands in them."""
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
    """Read every metric, with its limits of confidence at a level; warnings become notes.

    Raises:
        StreamMetricsError: A metric cannot be read from the rows seen, or none has values by query.
    """
    members = (
        {type(what).__name__: what} if isinstance(what, Metric) else {n: what[n] for n in what}
    )
    if per_query and not any(isinstance(metric, RankingMetric) for metric in members.values()):
        raise StreamMetricsError(
            f"--per-query: none of the metrics is of rankings ({', '.join(members)})"
        )
    said = list(notes)
    rows = []
    limits = None if confidence is None else (confidence, unit)
    for name, metric in members.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                rows.append(_row(name, metric, limits, per_query=per_query))
            except StreamMetricsError as error:
                raise StreamMetricsError(f"{name}: {error}") from error
        said += [_note(name, type(metric).__name__, str(warning.message)) for warning in caught]
    said += _queries(members)
    return ModelReport(
        dict(about), rows, what.n_rows, what.n_omitted, list(dict.fromkeys(said)), slices
    )


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
    """Say how many queries the means of rankings are of."""
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
    """Return a number as tables show it."""
    if isinstance(value, int):
        return f"{value:,}"
    if math.isnan(value):
        return "undefined"
    return f"{value:.6f}" if 1e-3 <= abs(value) < 1e7 or value == 0 else f"{value:.6g}"
