"""What a report is of: states, each read once, and how they differ."""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from streammetrics.core.errors import StreamMetricsError, UndefinedMetricWarning
from streammetrics.core.metric import Metric
from streammetrics.inference.comparing.comparison import Comparison
from streammetrics.inference.comparing.states import compare
from streammetrics.ledger.ledger import Ledger
from streammetrics.live.live import Live
from streammetrics.live.time import shown_time
from streammetrics.show.pages.courses import course_of
from streammetrics.show.report import ModelReports, report
from streammetrics.show.sliced import Sliced
from streammetrics.slices.slices import Slices

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streammetrics.core.metric_set import MetricSet
    from streammetrics.core.results.differences import Differences
    from streammetrics.core.types import Json
    from streammetrics.live.alerts.rule import Rule
    from streammetrics.show.pages.courses import Course
    from streammetrics.show.report import ModelReport

UNPAIRED = "The models were measured on different rows, which is the weaker test."


@dataclass(frozen=True)
class Subject:
    """One model: its metrics, or slices of them, and what they were read from."""

    name: str
    state: Metric | MetricSet
    about: Mapping[str, Json] = field(default_factory=dict)

    @cached_property
    def metrics(self) -> dict[str, Metric]:
        """The metrics by name, of all rows."""
        if isinstance(self.state, Metric):
            return {type(self.state).__name__: self.state}
        whole = self.state[{}] if isinstance(self.state, Slices) else self.state
        return {name: whole[name] for name in whole}


@dataclass(frozen=True)
class Findings:
    """What a report says: the subjects, their values, and the differences of their metrics."""

    subjects: Sequence[Subject]
    results: ModelReports
    confidence: float
    notes: Sequence[str]
    courses: Mapping[str, Course] = field(default_factory=dict)  # of live states

    @property
    def differences(self) -> Differences | None:
        """How the models differ, where there are several."""
        return self.results.differences


def subjects_of(name: str, state: Any, about: Mapping[str, object]) -> list[Subject]:
    """Return the models of a state: of a comparison all of them, of any other one."""
    told = dict(about)
    if isinstance(state, Ledger):
        told["shards"] = len(state.ids)
        state = state.merged()
    if isinstance(state, Live):
        begin, end = state._since()
        told["from"], told["until"] = shown_time(begin), shown_time(end)
        state = state._whole()
    told["checksum"] = f"sha256:{hashlib.sha256(state.to_bytes()).hexdigest()}"
    if not isinstance(state, Metric):
        told["columns"] = dict(state.columns)
    if isinstance(state, Slices):
        told["sliced by"] = [", ".join(map(str, spec)) for spec in state.by if spec]
    if isinstance(state, Comparison):
        return [Subject(model, state[model], told) for model in state]
    return [Subject(name, state, told)]


def findings(
    states: Mapping[str, object],
    about: Mapping[str, Mapping[str, Json]],
    *,
    confidence: float,
    min_rows: int = 0,
    rules: Mapping[str, Sequence[Rule]] | None = None,
) -> Findings:
    """Read every state, and compare them where there are several.

    Args:
        states: What is reported, by name.
        about: What is known of each besides, by name.
        confidence: The level of the limits.
        min_rows: Slices of fewer rows are left out.
        rules: Of alerts of live states, by name.

    Raises:
        StreamMetricsError: A metric cannot be read from the rows seen.
    """
    subjects = [s for name, state in states.items() for s in subjects_of(name, state, about[name])]
    notes: list[str] = []
    reports = {each.name: _report(each, confidence, min_rows) for each in subjects}
    differences = _differences(states, subjects, confidence, notes)
    courses = {
        name: course_of(state, (rules or {}).get(name, ()))
        for name, state in states.items()
        if isinstance(state, Live)
    }
    return Findings(subjects, ModelReports(reports, differences), confidence, notes, courses)


def _report(subject: Subject, confidence: float, min_rows: int) -> ModelReport:
    state, sliced = subject.state, None
    if isinstance(state, Slices):
        by = next((n for n, m in subject.metrics.items() if _is_rankable(m)), None)
        worst = None
        if by is not None:
            try:
                worst = state.worst(by, min_rows=min_rows, confidence=confidence)
            except StreamMetricsError:  # there are no limits to rank by
                worst = state.worst(by, min_rows=min_rows, confidence=None)
        sliced = Sliced.of(state, min_rows, by, worst)
    return report(state, subject.about, slices=sliced, confidence=confidence)


def _is_rankable(metric: Metric) -> bool:
    if metric.higher_is_better is None:
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        return isinstance(metric.compute(), int | float)


def _differences(
    states: Mapping[str, object], subjects: Sequence[Subject], confidence: float, notes: list[str]
) -> Differences | None:
    """Return how models differ: of the same rows where a state says so, else of each pair."""
    (first, *others) = states.values()
    if not others:
        return first.compute(confidence) if isinstance(first, Comparison) and first.n_rows else None
    one, *rest = subjects
    lines: Any = None
    rows = {one.name: one.state.n_rows}
    for other in rest:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                names = one.name, other.name
                found = compare(
                    _plain(one), _plain(other), confidence=confidence, names=names
                )  # fmt: skip
            except (StreamMetricsError, TypeError, ValueError) as error:
                notes.append(f"{one.name} and {other.name} are not compared: {error}")
                continue
        notes += [str(warning.message) for warning in caught]
        rows[other.name] = other.state.n_rows
        lines = type(found)([*(lines or ()), *found], confidence, rows)
    if lines is not None:
        notes.append(UNPAIRED)
    return lines  # type: ignore[no-any-return]  # what compare gave


def _plain(subject: Subject) -> Any:
    state = subject.state
    return state[{}] if isinstance(state, Slices) else state
