"""Ingestion of events: immediate validation, buffering, and batched transfer to the pipeline."""

from __future__ import annotations

import math
import time as clock
from contextlib import contextmanager
from functools import partial
from itertools import starmap
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy import ma  # loaded here, because a signal handler may run while it loads

from streammetrics.core.columns.batch import COUNTS
from streammetrics.core.columns.column import EXACT
from streammetrics.core.columns.conversion import as_column
from streammetrics.core.columns.nested import Nested
from streammetrics.core.errors import InvalidBatchError, StreamMetricsError
from streammetrics.core.floating import check_arithmetic
from streammetrics.live.events import (
    LATEST,
    SECOND,
    Events,
    SliceKeys,
    instant,
    instants,
    keys_of,
    keys_of_checked,
    nanoseconds,
    packed,
    shown_time,
    versions_of,
)
from streammetrics.live.inputs import MISSING
from streammetrics.live.join import NO_LIMIT
from streammetrics.live.panes import NEVER
from streammetrics.live.rows import batch_of, columns_of
from streammetrics.live.validation import Checks, truth_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.conversion import Column
    from streammetrics.core.columns.schema import Kind as ColumnKind
    from streammetrics.core.types import ArrayLike, Ints
    from streammetrics.live.events import Kind
    from streammetrics.live.journal import Journal
    from streammetrics.live.pipeline import Pipeline, SharedPipeline

    # Type class of a value; values of one class share a list, "alone" values are not buffered.
    ValueType = Literal["number", "alone"] | type | tuple[tuple[int, ...], np.dtype]
    # Takes a time, the id and the version, and columns. Returns whether the buffer has room for
    # more rows, or None if the row is not known to be valid and has to take the slow path.
    Add = Callable[[object, tuple[object, ...], Mapping[str, object]], bool | None]

MAX_ROWS = 768  # rows to buffer: transferring them takes about 2 ms with seven metrics
MAX_JOINED_ROWS = 2048  # more for rows with an id, because batched lookups are cheaper
VERSIONS = 1 << 63  # versions of labels are smaller
_LABELS = 1 << 16  # maximum number of labels that a buffer remembers as valid
_LONGEST = 1 << 63  # buffered integers are smaller in magnitude
_NUMBER = frozenset({float, int})


class ColumnCheck:
    """The known valid values of a column: an interval of numbers, or a set of labels."""

    __slots__ = ("high", "labels", "low", "missing", "name", "types")

    def __init__(self, name: str, of: ValueType) -> None:
        self.name, self.low, self.high, self.missing = name, 1.0, 0.0, False
        self.types = _NUMBER if of == "number" else frozenset({of} if isinstance(of, type) else ())
        self.labels: set[object] | None = None if of == "number" else set()

    def learn(self, value: Any) -> None:
        """Remember a value that was accepted."""
        if value is None or value is MISSING:
            self.missing = True
        elif self.labels is None:
            empty = self.low > self.high
            self.low = value if empty else min(self.low, value)
            self.high = value if empty else max(self.high, value)
        elif self.types and len(self.labels) < _LABELS:
            self.labels.add(value)

    def knows(self, value: Any) -> bool:
        """Return whether a value is known to be valid."""
        if value is None or value is MISSING:
            return self.missing
        if type(value) not in self.types:
            return False
        return self.low <= value <= self.high if self.labels is None else value in self.labels


# --- the fast path: rows are added atomically, so that threads and signal handlers may add rows


def _add_none(time: object, heads: tuple[object, ...], columns: Mapping[str, object]) -> None:
    """Send every row to the slow path."""


def _adding(values: list[object], checks: Sequence[ColumnCheck], until: float, full: int) -> Add:
    """Return a function that appends a row if all its values are known to be valid.

    Args:
        values: The flat list of rows.
        checks: The columns.
        until: The time in seconds before which times are valid.
        full: The number of values at which the buffer is full.
    """
    n, known = len(checks), list[Any]((c.name, c.types, c.low, c.high, c.labels) for c in checks)

    def add(time: Any, heads: tuple[object, ...], columns: Mapping[str, Any]) -> bool | None:
        nonlocal values
        if type(time) not in _NUMBER or not 0.0 <= time < until or len(columns) != n:
            return None
        row = [*heads, time]
        for name, types, low, high, labels in known:
            value = columns.get(name)
            if type(value) not in types:
                return None
            if not (low <= value <= high if labels is None else value in labels):
                return None
            row.append(value)
        values += row
        return len(values) < full

    return add


def _adding_one(values: list[object], column: ColumnCheck, until: float, full: int) -> Add:
    """Return `_adding` specialized for one column, without a loop."""
    name, types, labels = column.name, column.types, column.labels
    low, high = column.low, column.high

    def add(time: object, heads: tuple[object, ...], columns: Mapping[str, object]) -> bool | None:
        nonlocal values
        if (type(time) is float or type(time) is int) and 0.0 <= time < until and len(columns) == 1:
            one: Any = columns.get(name)
            if type(one) in types and (low <= one <= high if labels is None else one in labels):
                values += heads + (time, one)  # noqa: RUF005 - faster
                return len(values) < full
        return None

    return add


def _adding_two(
    values: list[object], first: ColumnCheck, second: ColumnCheck, until: float, full: int
) -> Add:
    """Return `_adding` specialized for two columns, without a loop."""
    one_name, one_types, one_labels = first.name, first.types, first.labels
    two_name, two_types, two_labels = second.name, second.types, second.labels
    one_low, one_high, two_low, two_high = first.low, first.high, second.low, second.high

    def add(time: object, heads: tuple[object, ...], columns: Mapping[str, object]) -> bool | None:
        nonlocal values
        if (type(time) is float or type(time) is int) and 0.0 <= time < until and len(columns) == 2:
            one: Any = columns.get(one_name)
            two: Any = columns.get(two_name)
            if (
                type(one) in one_types
                and type(two) in two_types
                and (one_low <= one <= one_high if one_labels is None else one in one_labels)
                and (two_low <= two <= two_high if two_labels is None else two in two_labels)
            ):
                values += heads + (time, one, two)  # noqa: RUF005 - faster
                return len(values) < full
        return None

    return add


class WaitingRows:
    """Buffered rows with the same columns and the same types of values."""

    __slots__ = ("checks", "names", "types", "values", "width")

    def __init__(self, heads: int, names: tuple[str, ...], types: Sequence[ValueType]) -> None:
        self.names, self.types, self.width = names, types, heads + 1 + len(names)
        self.values: list[Any] = []  # flat, which allocates the least per event
        self.checks = [*map(ColumnCheck, names, types)]

    def adding(self, until: float, max_rows: int) -> Add:
        """Return the fast path that adds to these rows, see `_adding`."""
        full = max_rows * self.width
        if len(self.checks) == 1:
            return _adding_one(self.values, self.checks[0], until, full)
        if len(self.checks) == 2:
            return _adding_two(self.values, self.checks[0], self.checks[1], until, full)
        return _adding(self.values, self.checks, until, full)

    def knows(self, columns: Mapping[str, object]) -> bool:
        """Return whether all values of a row are known to be valid."""
        return all(check.knows(columns[check.name]) for check in self.checks)

    def learn(self, columns: Mapping[str, object]) -> None:
        """Remember accepted values as valid."""
        for check in self.checks:
            check.learn(columns[check.name])

    @property
    def n(self) -> int:
        """The number of buffered rows."""
        return len(self.values) // self.width

    @property
    def times(self) -> list[Any]:
        """The times of the buffered rows."""
        place = self.width - len(self.names) - 1
        return self.values[place :: self.width]

    def append(
        self, time: object, heads: tuple[object, ...], columns: Mapping[str, object]
    ) -> None:
        """Append a validated row."""
        self.values.extend((*heads, time, *[columns[name] for name in self.names]))

    def drain(self) -> tuple[list[list[Any]], dict[str, Any]]:
        """Remove and return the rows: heads and times as lists, other columns by name."""
        width, n = self.width, self.n * self.width
        columns = [self.values[place:n:width] for place in range(width)]
        del self.values[:n]  # other threads may have appended rows meanwhile
        heads = width - len(self.names)
        named = zip(self.names, self.types, columns[heads:], strict=True)
        return columns[:heads], {name: _array(of, column) for name, of, column in named}


def type_of(value: Any, kind: ColumnKind) -> ValueType:
    """Return the type class of a value."""
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype
    cls = type(value)
    if kind == "number":
        return "number" if cls in _NUMBER and -EXACT < value < EXACT else "alone"
    if cls is int:
        return int if -_LONGEST < value < _LONGEST else "alone"
    return cls if cls is str or cls is bool or cls is float else "alone"


def _array(of: ValueType, values: Sequence[object]) -> object:
    if of in {"number", float}:
        return packed(values, "d")
    if of is int:
        return packed(values, "q")
    return values if of is str else np.array(values)


class Buffer:
    """Buffered events of one kind, grouped by columns and types.

    Args:
        kind: The kind of events.
        kinds: The kind of each column.
        keys: Slice columns, in which a missing value is a key.
        inputs: Columns that are inputs alone, which may lack a value.

    Attributes:
        check: Raises if columns are invalid; returns whether the rows can be buffered.
        add: The fast path for the columns and types seen first, which are usually the only ones.
    """

    check: Callable[[Mapping[str, ArrayLike]], bool]

    def __init__(
        self,
        kind: Kind,
        kinds: Mapping[str, ColumnKind],
        keys: Collection[str] = (),
        inputs: Collection[str] = (),
    ) -> None:
        self.kind, self._kinds, self._inputs = kind, kinds, inputs
        self._keys = {*keys, *inputs}
        self._heads = {"observe": 0, "predict": 1, "label": 2}[kind]
        self.max_rows = MAX_JOINED_ROWS if self._heads else MAX_ROWS
        self.close()

    def close(self) -> None:
        """Drop all rows and disable the fast path."""
        self.waiting: dict[tuple[object, ...], WaitingRows] = {}
        self._first: WaitingRows | None = None
        self._alike = dict[str, object]()
        self.add: Add = _add_none

    def open_fast_path(self, rows: WaitingRows, until: float) -> None:
        """Enable the fast path for the first rows seen and the values known to be valid."""
        self._first = self._first or rows
        self.limit_times(until)

    def limit_times(self, until: float) -> None:
        """Accept times before `until`, in seconds, on the fast path."""
        if self._first is not None:
            self.add = self._first.adding(until, self.max_rows)

    @property
    def n(self) -> int:
        """The number of buffered rows."""
        return sum(rows.n for rows in list(self.waiting.values()))

    def accepted(self, columns: Mapping[str, object]) -> WaitingRows | None:
        """Validate a row of values converted by `plain`; return its buffer, or None if it has none.

        Raises:
            InvalidBatchError: The row is invalid, or contradicts earlier rows.
        """
        key = names, types = tuple(columns), tuple(starmap(self._type, columns.items()))
        rows = self.waiting.get(key)
        if rows is not None and rows.knows(columns):
            return rows
        waits = self.check(self.as_rows(columns))
        if not (waits and all(map(self._fits, names, types))):
            return None
        rows = self.waiting.setdefault(key, rows or WaitingRows(self._heads, names, types))
        rows.learn(columns)
        return rows

    def _type(self, name: str, value: object) -> ValueType:
        """Return the type class of a value, which is missing in an input as None or NaN."""
        if name in self._inputs and (value is None or value is MISSING):
            return str if value is None else "number"
        return type_of(value, self._kinds.get(name, "number"))

    def _fits(self, name: str, of: ValueType) -> bool:
        """Whether a value can share a buffer with earlier ones: text with text, others by shape."""
        if of == "alone":
            return False
        alike = of if isinstance(of, tuple) else (of is str)
        return bool(self._alike.setdefault(name, alike) == alike)

    def as_rows(self, columns: Mapping[str, object]) -> dict[str, object]:
        """Return one row as columns; a missing value is a key, or else makes its column None."""
        return {
            name: None if value is None and name not in self._keys else [value]
            for name, value in columns.items()
        }

    @property
    def newest(self) -> int:
        """The newest time of the buffered rows."""
        seconds = [t for rows in list(self.waiting.values()) for t in rows.times]
        return int(nanoseconds(packed([max(seconds)], "d"))[0]) if seconds else NEVER

    def drain(self) -> list[tuple[list[list[Any]], dict[str, Any]]]:
        """Remove and return all rows as columns."""
        return [rows.drain() for rows in list(self.waiting.values()) if rows.values]


def plain(value: Any) -> Any:
    """Convert a value to a Python scalar, or copy it to an array if a row has several values."""
    if value is ma.masked:  # NumPy would convert it to 0.0
        return math.nan
    if isinstance(value, np.generic) or getattr(value, "ndim", 1) == 0:
        return value.item()
    if isinstance(value, list | tuple) and value and isinstance(value[0], str):
        return list(value)  # the tags of a sentence stay a list
    return np.array(value) if isinstance(value, list | tuple | np.ndarray) else value


def is_column(times: object) -> bool:
    """Return whether times are a column rather than the time of one event."""
    if isinstance(times, str) or not hasattr(times, "__len__"):
        return False
    return bool(getattr(times, "ndim", 1) > 0)


class EventColumns(NamedTuple):
    """Columns of events of one kind."""

    kind: Kind
    time: ArrayLike
    heads: tuple[object, ...]  # ids, if there are any; for labels, also versions
    columns: Mapping[str, ArrayLike]


class PartError(InvalidBatchError):
    """One of several parts is invalid, so all are rejected; `place` is its index."""

    def __init__(self, place: int, error: InvalidBatchError) -> None:
        super().__init__(error.problem, error.column, error.row, error.hint)
        self.place = place


@contextmanager
def _naming(place: int) -> Iterator[None]:
    try:
        yield
    except InvalidBatchError as error:
        raise PartError(place, error) from error


class Ingest:
    """Takes events from any number of threads: validates, buffers and transfers them.

    Args:
        shared: The pipeline.
        max_ahead: How many nanoseconds ahead of the clock a time may be, ``None`` for no limit.

    Attributes:
        observed: The buffer of observations.
        predicted: The buffer of predictions.
        labelled: The buffer of labels.
        journal: The journal, if there is a store.
        closed: Whether the object accepts no more events.
    """

    def __init__(self, shared: SharedPipeline, max_ahead: int | None) -> None:
        self.shared, self.max_ahead = shared, max_ahead
        self.journal: Journal | None = None
        self._arrived: list[Events] = []  # in the pipeline but not yet in the journal
        self._declared = shared.config.declared
        self._truth = truth_of(shared.suite)
        self.closed = False
        kinds, keys = self._declared.kinds, SliceKeys(shared.suite).kinds
        self._inputs = self._declared.inputs
        for one in self._inputs.every:
            kinds = {one.name: self._inputs.kinds[one.column], **kinds}
        self.reads_id = "id" in kinds or "id" in keys  # then observations have no id of their own
        self._reads_counts = COUNTS in kinds or COUNTS in keys
        self.observed = Buffer("observe", kinds, keys, self._inputs.only)
        self.predicted = Buffer("predict", kinds, keys, self._inputs.only)
        self.labelled = Buffer("label", kinds)
        self._buffers = {b.kind: b for b in (self.observed, self.predicted, self.labelled)}
        as_column([0], "time")  # NumPy loads parts lazily; load them before the first event
        self.reset()

    def reset(self) -> None:
        """Drop all buffered events and everything learned from events."""
        self._until = 0.0  # time in seconds before which times are not ahead of the clock
        shared, declared = self.shared, self._declared
        checks = self._checks = Checks(
            shared.suite,
            lambda: shared.current.panes.facts,
            default=shared.config.default_label,
            declared=declared.check,
            estimator=declared.estimator,
            inputs=declared.inputs,
        )
        self.observed.check = checks.observed
        self.predicted.check = checks.predicted
        self.labelled.check = checks.labelled
        for buffer in self._buffers.values():
            buffer.close()

    def close(self) -> None:
        """Accept no more events."""
        with self.shared.locked():
            self.drain()
            self.closed, self.journal = True, None
            self.limit(NO_LIMIT)
            for buffer in self._buffers.values():
                buffer.close()

    def _check_open(self) -> None:
        if self.closed:
            raise StreamMetricsError("this Live is closed: it takes no more events")

    @property
    def _is_durable(self) -> bool:
        """Whether events are written to the store before they reach the pipeline."""
        return self.journal is not None and self.journal.durable

    # --- events in -------------------------------------------------------------------------------

    def take(
        self,
        buffer: Buffer,
        time: object,
        heads: tuple[object, ...],
        columns: Mapping[str, object],
        *,
        added: bool = False,
    ) -> None:
        """Take an event, or columns of events, on the slow path.

        Args:
            buffer: The buffer of this kind of event.
            time: The time or times.
            heads: The ids of predictions; the ids and versions of labels.
            columns: The other columns.
            added: Whether the event is already in the buffer, which is full.
        """
        if added:
            self.hand_on(buffer)
            return
        check_arithmetic()
        self._check_open()
        self._check_names(buffer, columns)
        if is_column(time):
            events = self._events(buffer, self._times(time), heads, columns, several=True)
            if buffer is self.observed and (self._is_durable or self._declared.proxy):
                buffer.check(columns)
            self._deliver([events])
            return
        nanosecond = instant(time)
        self._check_ahead(nanosecond, 0)
        if heads:
            keys_of([heads[0]])
            versions_of([*heads[1:]])
        columns = self._inputs.with_nan({name: plain(value) for name, value in columns.items()})
        waits = bool(heads) and buffer is self.observed
        rows = buffer.accepted(columns)
        if rows is not None and type(time) in _NUMBER and not self._is_durable and not waits:
            rows.append(time, heads, columns)
            with self.shared.locked():
                if rows in buffer.waiting.values():  # otherwise the buffer was reset meanwhile
                    buffer.open_fast_path(rows, self._until)
            if rows.n >= buffer.max_rows:
                self.hand_on(buffer)
        else:
            alone = tuple([head] for head in heads)
            times = np.array([nanosecond], np.int64)
            one = buffer.as_rows(columns)
            self._deliver([self._events(buffer, times, alone, one, several=False)])

    def take_all(self, parts: Sequence[EventColumns]) -> list[int]:
        """Take columns of events of several kinds, or raise and leave everything as it was.

        Returns:
            For each part, the number of events that came too late and are not taken.

        Raises:
            PartError: A part is invalid.
            StreamMetricsError: The live state is closed, or its durable store cannot be written.
        """
        self._check_open()
        alone = len(parts) == 1 and not self._is_durable
        events = [self._validated(place, part, alone) for place, part in enumerate(parts)]
        return self._deliver(events)

    def check_all(self, parts: Sequence[EventColumns]) -> list[int]:
        """Raise as `take_all` does, but take nothing, and learn nothing; return an empty list."""
        self._check_open()
        with self._checks.forgotten():
            self._check([self._validated(place, part, False) for place, part in enumerate(parts)])
        return []

    def _validated(self, place: int, part: EventColumns, alone: bool) -> Events:
        """Return columns as events, each part validated independently."""
        buffer = self._buffers[part.kind]
        with _naming(place):
            self._check_names(buffer, part.columns)
            times = self._times(part.time)
            events = self._events(buffer, times, part.heads, part.columns, several=True)
            if buffer is self.observed and (not alone or self._declared.proxy):
                buffer.check(part.columns)
            return events

    def _check_names(self, buffer: Buffer, columns: Mapping[str, object]) -> None:
        truth, proxy = self._truth, self._declared.proxy
        if COUNTS in columns and not self._reads_counts:
            raise InvalidBatchError(f"{COUNTS!r} is not for Live: every event is one row", COUNTS)
        if proxy is not None and buffer is not self.labelled and columns.get(proxy) is None:
            raise InvalidBatchError(
                f"{proxy!r} is missing: every prediction and observation has a judgment", proxy
            )
        if buffer is self.observed:
            return
        if not truth:
            raise InvalidBatchError("these metrics read no label: observe() takes their rows")
        if buffer is self.labelled:
            if set(columns) != {truth}:
                raise InvalidBatchError(f"a label has one column, {truth!r}, not {sorted(columns)}")
            return
        if truth in columns:
            raise InvalidBatchError(
                f"a prediction comes without {truth!r}: observe() takes both, label() the label"
            )
        if truth in self.shared.current.keys.kinds:
            raise InvalidBatchError(
                f"slices are by the label, {truth!r}, which a prediction does not have: observe() "
                "takes both"
            )
        self._declared.check_optional(self._inputs.rest(columns))

    def _events(
        self,
        buffer: Buffer,
        times: Ints,
        heads: tuple[object, ...],
        columns: Mapping[str, object],
        *,
        several: bool,
    ) -> Events:
        """Return columns as events, validated if they are `several`."""
        if buffer is self.observed:
            found = self._observations(columns, len(times))[1]
            if several:
                self._declared.check(found)
            if heads:
                return self._identified(times, found, heads)
            return Events("observe", times, found)
        keys, pipeline = keys_of(heads[0]), self.shared.current
        if buffer is self.predicted:
            found = pipeline.prediction_columns(columns, len(times))
        else:
            found = pipeline.columns(columns)
        versions = versions_of(heads[1], len(times)) if heads[1:] else times
        lengths = {len(keys), len(times), len(versions), *map(len, found.values())}
        if len(lengths) > 1:
            raise InvalidBatchError(f"columns differ in length: {sorted(lengths)}")
        if several and len(times):
            buffer.check(columns if pipeline.keys.kinds else found)
        if buffer is self.predicted:
            return Events("predict", times, found, keys)
        return Events("label", times, found, keys, versions)

    def _observations(
        self, columns: Mapping[str, object], n: int
    ) -> tuple[Batch, dict[str, Column]]:
        """Return n observations as a batch, and as columns with their judgments and inputs."""
        proxy, inputs = self._declared.proxy, self._inputs
        read = inputs.rest(columns)
        batch = batch_of(self.shared.suite, {n: c for n, c in read.items() if n != proxy})
        judgments = {} if proxy is None else {proxy: as_column(columns[proxy], proxy)}
        return batch, columns_of(batch) | judgments | inputs.take(columns, n)

    def _identified(
        self, times: Ints, columns: Mapping[str, Column], heads: tuple[object, ...]
    ) -> Events:
        """Return observations with ids, with columns as the join stores them."""
        keys = keys_of(heads[0])
        are_nested = any(isinstance(column, Nested) for column in columns.values())
        if are_nested or self.shared.suite._plan.can_refuse:
            raise InvalidBatchError(
                "these metrics take observations without ids: rows of boxes, tags or pixels, and "
                "rows that can contradict earlier ones, do not wait for copies",
                "id",
            )
        found = self.shared.current.columns(columns)
        lengths = {len(keys), len(times), *map(len, found.values())}
        if len(lengths) > 1:
            raise InvalidBatchError(f"columns differ in length: {sorted(lengths)}")
        return Events("observe", times, found, keys)

    def _times(self, column: object) -> Ints:
        """Return a column of times; raise if one is too far ahead of the clock."""
        times = instants(column)
        if len(times):
            latest = int(times.argmax())
            self._check_ahead(int(times[latest]), latest)
        return times

    def _check_ahead(self, time: int, row: int) -> None:
        """Raise if a time is too far ahead of the clock; else update the fast path's limit."""
        limit = LATEST * SECOND
        if self.max_ahead is not None:
            limit = clock.time_ns() + self.max_ahead
            if time > limit:
                raise InvalidBatchError(
                    f"time is {shown_time(time)} in row {row}, ahead of the clock by more than "
                    f"max_ahead: set the sender's clock, or raise max_ahead", "time", row,
                )  # fmt: skip
        with self.shared.locked():
            self._until = limit / SECOND
            for buffer in self._buffers.values():
                buffer.limit_times(self._until)

    # --- to the pipeline -------------------------------------------------------------------------

    def _deliver(self, ready: Sequence[Events]) -> list[int]:
        """Bring events to the pipeline, all or none; first to the store, where it is durable.

        Returns:
            For each part, the number of events that came too late and are not taken.

        Raises:
            PartError: A part is invalid.
            StoreError: A durable store cannot be written; nothing has changed.
        """
        if self.journal is not None and self.journal.durable:
            check, take = partial(self._check, ready), partial(self._take_stored, ready)
            return self.journal.commit(check, take)
        with self.shared.locked():
            self.drain()  # earlier events take precedence if these contradict them
            with self.shared.active("taking") as pipeline:
                if len(ready) > 1:
                    self._try(ready)
                kept = [pipeline.accept(events) for events in ready]
                late = self._take(pipeline.take, ready, kept)
            for events in kept:
                self._note(events)
            return late

    def _take(
        self, take: Callable[[Events], None], ready: Sequence[Events], kept: Sequence[Events]
    ) -> list[int]:
        """Take those events of each part that were accepted; return the numbers of the others."""
        pipeline, late = self.shared.current, []
        for place, (events, accepted) in enumerate(zip(ready, kept, strict=True)):
            dropped = pipeline.panes.dropped
            # These rows reach the panes later, when it is too late to count them.
            waits = accepted.are_waiting_rows
            outside = pipeline.panes.outside(accepted.times) if waits else 0
            with _naming(place):
                take(accepted)
            pipeline.panes.dropped += outside
            refused = len(events.times) - len(accepted.times)
            pipeline.refuse(events.kind, refused)
            late.append(refused + pipeline.panes.dropped - dropped)
        pipeline.finish()
        return late

    def _note(self, events: Events) -> None:
        """Keep events that are in the pipeline for the journal."""
        if self.journal is not None:
            self._arrived.append(events)

    def _check(self, ready: Sequence[Events]) -> list[Events]:
        """Return the events that may be taken, or raise where some contradict earlier ones."""
        with self.shared.locked():
            self.drain()
            with self.shared.active("taking") as pipeline:
                self._try(ready)
                return [pipeline.accept(events) for events in ready]

    def _take_stored(self, ready: Sequence[Events], kept: Sequence[Events]) -> list[int]:
        """Take events that are in the store; return how many of each part are not."""
        with self.shared.locked(), self.shared.active("taking") as pipeline:
            return self._take(pipeline.take_consistent, ready, kept)

    def _try(self, ready: Sequence[Events]) -> None:
        """Raise if a part contradicts earlier events or parts, before any part is taken."""
        refusing = self.shared.suite._plan.can_refuse  # also a combination of parts
        pipeline = self.shared.current.copy() if refusing else self.shared.current
        for place, events in enumerate(ready):
            with _naming(place):
                if events.kind != "observe":
                    pipeline.check(events.columns)
                elif events.are_waiting_rows:
                    pipeline.check_identified(events.columns)
                if refusing:
                    pipeline.take(events)

    def hand_on(self, buffer: Buffer) -> None:
        """Transfer the events of a full buffer to the pipeline.

        The remaining work is spread over the next calls, so that no call takes long.
        """
        check_arithmetic()
        with self.shared.locked():
            if self.shared.activity:  # called by a signal handler amid other work
                return
            with self.shared.active("taking") as pipeline:
                if not pipeline.work():
                    self._empty(buffer)
                    if pipeline.is_over:  # before any row leaves, all that came is taken
                        self._empty_all()
                    pipeline.release()

    def drain(self, *, match: bool = False) -> None:
        """Transfer all buffered events to the pipeline; the caller holds the lock.

        Args:
            match: Whether to join labels with predictions that arrived after them, for a read.
        """
        self.shared.check_interrupted()
        check_arithmetic()
        if self.shared.activity:  # nothing may change while this thread reads
            return
        with self.shared.active("taking") as pipeline:
            self._empty_all()
            pipeline.finish()
            if match:
                pipeline.join.match()

    def _empty_all(self) -> None:
        for buffer in (self.predicted, self.labelled, self.observed):
            self._empty(buffer)

    def _empty(self, buffer: Buffer) -> None:
        """Transfer the events of one buffer to the pipeline; the caller holds the lock."""
        pipeline = self.shared.current
        for (*heads, seconds), columns in buffer.drain():
            times, batch = nanoseconds(packed(seconds, "d")), None
            if buffer is self.observed:
                batch, found = self._observations(columns, len(times))
                events = Events("observe", times, found)
            elif buffer is self.predicted:
                found = pipeline.prediction_columns(columns, len(times))
                events = Events("predict", times, found, keys_of_checked(heads[0]))
            else:
                found, keys = pipeline.columns(columns), keys_of_checked(heads[0])
                events = Events("label", times, found, keys, packed(heads[1], "q"))
            events = self._accepted(events)
            if buffer is self.predicted:
                newest = self.observed.newest
                pipeline.panes.dropped += pipeline.panes.outside(events.times, newest)
            pipeline.take_consistent(events, batch)
            self._note(events)

    def _accepted(self, events: Events) -> Events:
        """Return the events that do not come too late, and count the others."""
        pipeline = self.shared.current
        kept = pipeline.accept(events)
        pipeline.refuse(events.kind, len(events.times) - len(kept.times))
        return kept

    # --- for those who read and merge ------------------------------------------------------------

    def sync(self) -> None:
        """Read what other workers have written; call it before taking the lock."""
        if self.journal is not None:
            self.journal.sync()

    def snapshot(self, *, limited: bool = False) -> Pipeline:
        """Return a settled copy of the pipeline, with all events that came before.

        Args:
            limited: Whether those rows wait that must not leave because of other workers.
        """
        with self.shared.locked():
            self.drain()
            with self.shared.active("taking") as pipeline:
                pipeline.settle()
                twin = pipeline.copy()
        if self.journal is not None and not limited:  # the state is that of its events alone
            twin.limit(NO_LIMIT)
            twin.settle()
        return twin

    def merge(self, others: Sequence[Pipeline]) -> None:
        """Merge settled pipelines into this one; on an error, nothing changes."""
        with self.shared.locked():
            self.drain()
            with self.shared.active("taking") as pipeline:
                merged = pipeline.copy()
                merged.merge(others)
                self.shared.current = merged

    # --- for the journal -------------------------------------------------------------------------

    @property
    def unwritten(self) -> int:
        """The number of events since the last `take_arrived`."""
        arrived = sum(len(events.times) for events in list(self._arrived))
        return arrived + sum(buffer.n for buffer in self._buffers.values())

    def take_arrived(self, ahead: int = 0, lowest: int = 0) -> tuple[list[Events], int]:
        """Return the events that came since the last call; they are in the pipeline already.

        Returns:
            The events, and the time before which no prediction is taken after them; `ahead` and
            `lowest` are those of `Pipeline.close`.
        """
        with self.shared.locked():
            self.drain()
            arrived, self._arrived = self._arrived, []
            return arrived, self.shared.current.close(ahead, lowest)

    def limit(self, time: int) -> None:
        """Let rows before a time leave, and keep the others."""
        with self.shared.locked():
            self.shared.current.limit(time)

    def evict(self, floors: Sequence[int]) -> None:
        """Let panes before some floors expire early."""
        if any(floors):
            with self.shared.locked(), self.shared.active("taking") as pipeline:
                pipeline.evict(floors)

    def apply(self, events: Sequence[Events]) -> None:
        """Transfer events to the pipeline that were counted where they were dropped."""
        with self.shared.locked():
            self.shared.check_interrupted()
            with self.shared.active("taking") as pipeline:
                dropped = pipeline.panes.dropped
                pipeline.take_parts(events)
                pipeline.finish()
                pipeline.panes.dropped = dropped

    def replace(
        self,
        pipeline: Pipeline,
        events: Sequence[Events],
        own: Sequence[Events],
        lowest: int,
        *,
        again: bool,
    ) -> list[Events]:
        """Use another pipeline from now on.

        Args:
            pipeline: The pipeline.
            events: The events that it lacks.
            own: The events of this worker that are not in the store.
            lowest: See `Pipeline.close`.
            again: Whether others have gone on without this worker: then some of its events may be
                too late.

        Returns:
            The events of this worker that are not in the store, with those that came meanwhile.
        """
        with self.shared.locked():
            self.drain()
            current, join = self.shared.current, pipeline.join
            pipeline.continue_from(current)
            self.shared.current = pipeline
            self.apply(events)
            pipeline.counters = current.counters
            pipeline.left_out, pipeline.contradiction = current.left_out, current.contradiction
            pipeline.close(max(join.oldest, 0), lowest)
            mine, self._arrived = [*own, *self._arrived], []
            if again:
                mine = [self._accepted(events) for events in mine]
            self.apply(mine)
            return mine
