"""Queries of a live state: windows, coverage, alerts, and series of windows."""

from __future__ import annotations

import math
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from streammetrics.core.confidence import check_level
from streammetrics.core.errors import UndefinedMetricWarning, undefined_expected, warn_caller
from streammetrics.core.metric_set import MetricSet
from streammetrics.core.results.table import Table
from streammetrics.core.results.values import Result
from streammetrics.core.types import Array, Json
from streammetrics.live.alerts.rule import Rule, Watch, source_of
from streammetrics.live.events import SliceKeys, duration, instant, shown_duration, shown_time
from streammetrics.live.panes import size_of
from streammetrics.live.pipeline import merged
from streammetrics.live.possible.intervals import possible
from streammetrics.live.possible.judged import estimates
from streammetrics.live.possible.targets import check_range
from streammetrics.live.spans import Span, bounds_of, numbers_of, span_of, spans_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import timedelta

    from streammetrics.core.feeding.states import State
    from streammetrics.core.mergeable import Mergeable
    from streammetrics.inference.estimated import Estimated
    from streammetrics.live.alerts.rule import Alerts
    from streammetrics.live.config import Config
    from streammetrics.live.events import By, Tier
    from streammetrics.live.ingest import Ingest
    from streammetrics.live.inputs import InputTable
    from streammetrics.live.join import Content
    from streammetrics.live.panes import Coverage
    from streammetrics.live.pipeline import Pipeline

    Duration = str | timedelta
    # Called between two merges; raises when the client has disconnected.
    GoOn = Callable[[], None]


_LENGTHS = 8  # lengths of windows of which the parts of the last window are kept


class Queries:
    """Reads a live state; each query sees all earlier events, also those of other workers.

    Args:
        ingest: The source of events.
    """

    def __init__(self, ingest: Ingest) -> None:
        self.ingest, self.now = ingest, 0  # time of reading in nanoseconds, set by `Live.now`
        self.suite = ingest.shared.suite
        self._shared, self._watch = ingest.shared, Watch()
        self._wholes: dict[str, Wholes] = {}  # of the last lengths of windows

    @property
    def config(self) -> Config:
        """The parameters, with the panes that were removed early."""
        return self._shared.current.config

    @property
    def expired_early(self) -> dict[str, str]:
        """The time before which panes expired early because the store was full, by their length."""
        return {
            shown_duration(tier.length): shown_time(tier.start(tier.floor))
            for tier in self.config.tiers
            if tier.floor
        }

    @contextmanager
    def reading(self) -> Iterator[Pipeline]:
        """Lock the pipeline after reading all events, including those in the store."""
        self.ingest.sync()
        with self._local() as pipeline:
            yield pipeline

    @contextmanager
    def _local(self) -> Iterator[Pipeline]:
        """Lock the pipeline after taking and joining all buffered events of this process."""
        with self._shared.locked():
            self.ingest.drain(match=True)
            with self._shared.active("reading") as pipeline:
                yield pipeline

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline; what changes in it is read within `reading`."""
        return self._shared.current

    @property
    def clock(self) -> int:
        """The time of reading: the later of `now` and the newest event."""
        return max(self._shared.current.panes.newest, self.now, 0)

    # --- windows ---------------------------------------------------------------------------------

    def window(self, length: Duration, *, end: object = None, by: By = None) -> Any:
        """Return the metrics of a window, see `Live.window`."""
        keys = self._shared.current.keys
        if by is None and keys.kinds:
            with self._prepared(length, end) as (pipeline, span):
                parts = pipeline.parts(span, self.clock)
            return keys.inner._at(self._wholes_of(length).state(parts))
        until = None if end is None else instant(end, "end")
        return keys.shown(self._state(lambda: self._span_of(length, until)), by)

    def last(self, n: int, *, by: By = None) -> Any:
        """Return the metrics of the newest rows, see `Live.last`."""
        most = self.config.keep_rows
        if isinstance(n, bool) or not isinstance(n, int) or not 0 < n <= most:
            raise ValueError(f"last({n!r}): keep_rows={most:,} rows are kept one by one")
        with self.reading() as pipeline:
            return pipeline.keys.shown(pipeline.last(n, self.clock), by)

    def decayed(self, half_life: Duration) -> Any:
        """Return the metrics of all rows, weighted by their age, see `Live.decayed`."""
        length = duration(half_life, "half_life")
        with self.reading() as pipeline:
            states, inner = decayed(pipeline, length, self.clock), pipeline.keys.inner
            return inner._at(inner._plan.merged(inner._plan.start, states))

    def possible(
        self,
        length: Duration,
        *,
        end: object = None,
        target_range: tuple[float, float] | None = None,
    ) -> Any:
        """Return the interval of each metric over all possible labels, see `Live.possible`."""
        check_range(target_range)
        if target_range is None:
            target_range = self.config.declared.target_range
        with self._prepared(length, end) as (pipeline, span):
            parts = pipeline.parts(span, self.clock)
            rows, keys = pipeline.unlabelled(span, self.clock), pipeline.keys
        return possible(keys.inner, self._wholes_of(length).state(parts), rows, target_range)

    def estimated(self, length: Duration, *, end: object = None, level: float = 0.95) -> Any:
        """Return the estimate of each metric by its judgments, see `Live.estimated`."""
        found = self.judged(length, end=end)
        return estimates(self._shared.current.keys.inner, found, check_level(level))

    def judged(self, length: Duration, *, end: object = None) -> Estimated:
        """Return the metrics of all rows of a window, with their labels and judgments."""
        estimator = self.config.declared.estimator
        if estimator is None:
            raise ValueError('estimated() needs judgments: name their column, Live(proxy="judge")')
        with self._prepared(length, end, "judgments") as (pipeline, span):
            states, waiting = pipeline.judgments(span, self.clock)
        state = merged(estimator, states)
        for batch in waiting:
            state = estimator._plan.with_slices(state, batch)
        return estimator._at(state)

    def inputs(self, length: Duration, *, end: object = None) -> InputTable:
        """Return the inputs of a window, see `Live.inputs`."""
        inputs = self.config.declared.inputs
        if not inputs:
            raise ValueError('there are no inputs: declare some, Live(inputs={"age": "number"})')
        with self._prepared(length, end, "inputs") as (pipeline, span):
            parts = pipeline.input_parts(span, self.clock)
        state = inputs.plan.merged(inputs.plan.start, parts)
        return inputs.table(state)

    def coverage(self, length: Duration, *, end: object = None) -> Coverage:
        """Return the coverage of a window, see `Live.coverage`."""
        until = None if end is None else instant(end, "end")
        with self.reading() as pipeline:
            return pipeline.coverage(self._span_of(length, until), self.clock)

    def alerts(self, rules: Sequence[Rule]) -> Alerts:
        """Return the alerts of the rules, see `Live.alerts`."""
        if isinstance(rules, Rule):
            raise TypeError("alerts() takes rules in a list: live.alerts([rule])")
        for rule in rules:
            if not isinstance(rule, Rule):
                raise TypeError(f'{rule!r} is not a rule, such as sm.Below("auc", 0.8)')
            keys = self._shared.current.keys
            suite, of = source_of(rule, self.pipeline)
            by = getattr(rule, "by", None)
            if by is not None and of == "inputs":
                raise ValueError(f"by={by!r}: inputs are not kept by slice: leave it out")
            rule.check(suite)
            if by is not None:
                keys.shown(self.suite._plan.start, by)  # there have to be such slices
        return self._watch.alerts(self.reading(), lambda: self.now, rules)

    def whole(self) -> State:
        """Return the state of all panes of the coarsest tier, which reaches back furthest."""
        place, tier = len(self.config.tiers) - 1, self.config.tiers[-1]

        def longest() -> Span:
            last = tier.number(self.clock)
            return Span(place, last - tier.count + 1, last)

        return self._state(longest)

    def shown(self, state: State) -> Any:
        """Return the set or metric at a state of the suite, across slices."""
        return self._shared.current.keys.shown(state)

    # --- spans -----------------------------------------------------------------------------------

    def span(self, length: Duration, until: int | None = None, *, warn: bool = True) -> Span:
        """Return the panes of a window; `warn` if finer panes are no longer kept."""
        with self.reading():
            return self._span_of(length, until, warn=warn)

    def _span_of(self, length: Duration, until: int | None, *, warn: bool = True) -> Span:
        """Return the panes of a window; the caller holds the lock."""
        tiers, newest = self.config.tiers, self._shared.current.panes.newest
        found = span_of(tiers, length, newest, until, self.clock)
        if warn and until is not None:
            all_kept = self._shared.config.tiers
            fine = span_of(all_kept, length, max(until - 1, 0), until, until)
            start, end = bounds_of(tiers, found)
            if (start, end) != bounds_of(tiers, fine):
                warn_caller(
                    f"the window of {shown_duration(duration(length, 'window'))} that ends at "
                    f"{shown_time(until)} is made of {tiers[found.place].shown}, because finer "
                    f"panes are no longer kept: it lasts from {shown_time(start)} to "
                    f"{shown_time(end)}; span() returns both times"
                )
        return found

    def extent(self) -> tuple[int, int]:
        """Return the start of the oldest pane with rows, and the time of reading."""
        with self.reading() as pipeline:
            return min(pipeline.oldest(), self.clock), self.clock

    def spans(self, window: Duration, every: Duration, *, idle: bool = True) -> list[Span]:
        """Return the windows of a series, the oldest first; without `idle`, to the newest event."""
        with self.reading() as pipeline:
            newest, oldest = pipeline.panes.newest, pipeline.oldest()
            now = self.clock if idle else newest
            return spans_of(self.config.tiers, window, every, newest, now, oldest)

    def runs(self, place: int, panes: int, since: int) -> list[Span]:
        """Return runs of `panes` panes of a tier since a time, oldest first."""
        tier = self.config.tiers[place]
        with self.reading():
            lasts = range(tier.number(self.clock), tier.number(since) - 1, -panes)
        return [Span(place, last - panes + 1, last) for last in reversed(lasts)]

    # --- merging without the lock ----------------------------------------------------------------

    def _state(self, choose: Callable[[], Span]) -> State:
        """Return the merged state of a span that is chosen while the lock is held.

        The lock is held while states are collected, not while they are merged, so that merging a
        long history does not block other threads.
        """
        with self.reading():
            span = choose()
        self._prepare(span)
        with self._local() as pipeline:
            if not pipeline.keeps(span):  # newer events came meanwhile
                span = choose()
            cache = pipeline.merged_windows(self.clock)
            parts = [] if span in cache else pipeline.parts(span, self.clock)
        if span not in cache:
            cache[span] = merged(self.suite, parts)
        return cache[span]

    def _wholes_of(self, length: Duration) -> Wholes:
        """Return what keeps the parts of the last window of a length, across slices."""
        found = self._wholes.pop(str(length), None) or Wholes(self.suite)
        self._wholes[str(length)] = found
        for old in list(self._wholes)[:-_LENGTHS]:
            self._wholes.pop(old, None)
        return found

    @contextmanager
    def _prepared(
        self, length: Duration, end: object, of: Content = "metrics"
    ) -> Iterator[tuple[Pipeline, Span]]:
        """Lock the pipeline, with the panes of a window, which are prepared before."""
        until = None if end is None else instant(end, "end")
        span = self.span(length, until)
        self._prepare(span, of=of)
        with self._local() as pipeline:
            yield pipeline, span if pipeline.keeps(span) else self._span_of(length, until)

    def _prepare(self, span: Span, go_on: GoOn | None = None, *, of: Content = "metrics") -> None:
        """Read and merge the tree nodes that a span is read from, without holding the lock."""
        if go_on is not None:
            go_on()
        with self._local() as pipeline:
            unread = pipeline.unread(span, of)
        for tree, document in unread:
            if go_on is not None:
                go_on()
            states = document.states()
            with self._local():
                tree.fill(document, states)
        with self._local() as pipeline:
            missing = pipeline.unmerged(span, self.clock, of)
        for tree, node in missing:
            if go_on is not None:
                go_on()
            with self._local():
                parts = tree.parts(node)
            if parts:
                state = tree.plan.merged(parts[0], parts[1:])
                with self._local():
                    tree.keep(node, parts, state)

    def cost(self, span: Span, go_on: GoOn | None = None) -> int:
        """Return the number of bytes of the states that a span is merged from."""
        self._prepare(span, go_on)
        with self._local() as pipeline:
            return size_of(pipeline.parts(span, self.clock))

    def windows(
        self, spans: Iterable[Span], go_on: GoOn | None = None, *, inputs: bool = False
    ) -> Iterator[WindowRead]:
        """Yield windows, except those whose panes are dropped before they are read.

        Args:
            spans: Their panes.
            go_on: Called between two merges; raises if no client waits any more.
            inputs: Whether to read their inputs too.
        """
        for span in spans:
            self._prepare(span, go_on)
            with self._local() as pipeline:
                if not pipeline.keeps(span):
                    continue
                parts = pipeline.parts(span, self.clock)
                share = pipeline.share(span, self.clock)
                more = pipeline.input_parts(span, self.clock) if inputs else ()
            yield WindowRead(span, *bounds_of(self.config.tiers, span), parts, share, more)

    def series(self, spans: Iterable[Span], by: By = None) -> Series:
        """Return the metrics over windows, the oldest first, see `Live.series`."""
        inputs = self.config.declared.inputs.suite if by is None else None
        windows = self.windows(spans, inputs=inputs is not None)
        return series_of(self.suite, windows, by, inputs)


class Readable(Protocol):
    """A `Live`; this protocol avoids a circular import."""

    @property
    def _queries(self) -> Queries: ...


class Series(Result, dict[str, Array]):
    """Metrics over successive windows, as columns by name."""

    def to_dict(self) -> dict[str, list[Json]]:
        """Return the columns as lists, with times as ISO 8601 text."""
        return {name: _plain(column) for name, column in self.items()}

    def _table(self) -> Table:
        return Table({}, dict(self))


def _plain(column: Array) -> list[Json]:
    if column.dtype.kind == "M":
        column = np.datetime_as_string(column, timezone="UTC")
    found: list[Json] = column.tolist()
    return found


class WindowRead(NamedTuple):
    """A window that was read.

    Attributes:
        span: Its panes.
        start: The start time in nanoseconds.
        end: The end time in nanoseconds.
        parts: The states to merge.
        coverage: The share of its predictions with a label.
        inputs: The states of its inputs to merge, if they were read.
    """

    span: Span
    start: int
    end: int
    parts: Sequence[State]
    coverage: float
    inputs: Sequence[State] = ()


class Wholes:
    """Windows of all rows, across slices.

    Successive windows share most of their parts. Each part is reduced to the state of all rows
    before they are merged, and once for the windows in a row that share it: that costs less than
    merging every slice of every window.

    Args:
        suite: The metrics, sliced or not.
    """

    def __init__(self, suite: Mergeable) -> None:
        self._keys = SliceKeys(suite)
        self._known: dict[int, tuple[State, State]] = {}  # parts of the last window, by identity

    def shown(self, parts: Sequence[State]) -> Any:
        """Return the set or metric of all rows of a window that consists of these parts."""
        return self._keys.inner._at(self.state(parts))

    def state(self, parts: Sequence[State]) -> State:
        """Return the state of all rows of a window that consists of these parts."""
        found = [self._known.get(id(part)) or (part, self._keys.whole(part)) for part in parts]
        self._known = {id(part): (part, whole) for part, whole in found}
        return merged(self._keys.inner, [whole for _, whole in found])


def series_of(
    suite: Mergeable,
    windows: Iterable[WindowRead],
    by: By = None,
    inputs: MetricSet | None = None,
) -> Series:
    """Return the series of windows of a suite and its inputs, or of its slices with `by`.

    Each window is merged and released before the next, so that memory does not grow with length.
    """
    keys, wholes, ends, tables = SliceKeys(suite), Wholes(suite), [], []
    for window in windows:
        if by is None:
            shown = wholes.shown(window.parts)
        else:
            shown = keys.shown(merged(suite, window.parts), by)
        ends.append(window.end)
        table = _table(shown, window.start, window.coverage, by)
        tables.append(table | _of_inputs(inputs, window.inputs))
    if not tables:  # a window without rows has the same columns
        none = _table(keys.shown(suite._plan.start, by), 0, math.nan, by)
        none |= _of_inputs(inputs, ())
        return Series({name: column[:0] for name, column in _joined([0], [none]).items()})
    return _joined(ends, tables)


def _table(window: Any, start: int, coverage: float, by: By) -> dict[str, Array]:
    """Return the columns of one window: one row, or one for each slice with `by`."""
    begin = np.array([start], np.int64).view("datetime64[ns]")
    if by is None:
        numbers = {name: np.array([value]) for name, value in _numbers(window).items()}
        rows = np.array([window.n_rows], np.int64)
        return {"n_rows": rows, "coverage": np.array([coverage]), "start": begin, **numbers}
    with undefined_expected():
        slices = {**window.compute(), **window.bounds()}
    place, starts = list(slices).index("n_rows") + 1, begin.repeat(len(slices["n_rows"]))
    columns = list(slices.items())
    return dict([*columns[:place], ("start", starts), *columns[place:]])


def _of_inputs(inputs: MetricSet | None, states: Sequence[State]) -> dict[str, Array]:
    if inputs is None:
        return {}
    window = inputs._at(merged(inputs, states))
    return {name: np.array([value]) for name, value in _numbers(window).items()}


def _joined(ends: Sequence[int], tables: Sequence[Mapping[str, Array]]) -> Series:
    """Concatenate the tables of windows that end at the given times."""
    times, rows = np.array(ends, np.int64).view("datetime64[ns]"), [*map(_rows, tables)]
    some = [table for table, n in zip(tables, rows, strict=True) if n] or tables[-1:]
    names = [name for name in some[-1] if all(name in table for table in some)]
    columns = {name: np.concatenate([table[name] for table in some]) for name in names}
    return Series({"time": times.repeat(rows), **columns})


def _rows(table: Mapping[str, Array]) -> int:
    return len(table["n_rows"])


def _numbers(window: object) -> dict[str, float]:
    """Return the columns of a window; a single metric has ``value``, ``low`` and ``high``."""
    alone = not isinstance(window, MetricSet)
    found: dict[str, float] = {}
    for name, (value, low, high, why) in numbers_of(window).items():
        if why:
            warn_caller(f"{name} has no value in a window: {why}", UndefinedMetricWarning)
        prefix = "" if alone else f"{name}_"
        found |= {name: value, f"{prefix}low": low, f"{prefix}high": high}
    return found


_REACH = 8  # half-lives that a tier should cover; older rows weigh less than 1/256


def decayed(pipeline: Pipeline, half_life: int, clock: int) -> list[State]:
    """Return the panes of a tier, each scaled by its age.

    A row in pane k weighs ``2 ** -((newest - k) * length / half_life)``. The tier is the finest one
    that covers eight half-lives, or else the one that reaches back furthest.

    Raises:
        InvalidBatchError: A metric does not support row weights.
    """
    tiers = pipeline.config.tiers
    place = next((n for n, tier in enumerate(tiers) if _reaches(tier, half_life)), len(tiers) - 1)
    tier = tiers[place]
    newest = tier.number(clock)
    found = []
    for number in range(newest - tier.count + 1, newest + 1):
        weight = 2.0 ** -((newest - number) * tier.length / half_life)
        state = merged(pipeline.suite, pipeline.parts(Span(place, number, number), clock))
        if weight > 0 and any(feed.n_rows for feed in state.infos):
            whole = pipeline.keys.whole(state)
            scaled = tuple([statistic.scaled(weight) for statistic in whole.statistics])
            found.append(whole._replace(statistics=scaled))
    return found


def _reaches(tier: Tier, half_life: int) -> bool:
    return tier.length * tier.count >= _REACH * half_life
