"""Where events come in: one by one, in columns, or columns of several kinds, from any thread.

All are checked at once. Of events that come together all are taken, or none.
"""

from __future__ import annotations

import time as clock
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from streammetrics.core.errors import InvalidBatchError
from streammetrics.core.floating import check_arithmetic
from streammetrics.live.buffer import ABSENT, Buffer, WaitingRows, is_column, plain
from streammetrics.live.events import (
    KINDS,
    LATEST,
    SECOND,
    Events,
    instant,
    instants,
    keys_of,
    shown_time,
    versions_of,
)
from streammetrics.live.gathered import Gathered
from streammetrics.live.rows import batch_of, columns_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from streammetrics.core.types import ArrayLike, Ints
    from streammetrics.live.events import Kind

_SECONDS = (float, int)


class EventColumns(NamedTuple):
    """Columns of events of one kind."""

    kind: Kind
    time: ArrayLike
    heads: tuple[object, ...]  # the ids of predictions, the ids and versions of labels
    columns: Mapping[str, ArrayLike]


class PartError(InvalidBatchError):
    """One of several parts is refused, and so are all; `place` says which."""

    def __init__(self, place: int, error: InvalidBatchError) -> None:
        super().__init__(str(error), error.column, error.row)
        self.place = place


@contextmanager
def _naming(place: int) -> Iterator[None]:
    try:
        yield
    except InvalidBatchError as error:
        raise PartError(place, error) from error


class Entrance(Gathered):
    """Events in: each is looked at as it comes, and waits in a buffer with those of its kind."""

    _ahead: int | None  # nanoseconds that a time may be ahead of the clock

    def observe(self, *, time: object, **columns: object) -> Self:
        """Take an event, or columns of them, with all that the metrics read; return this object.

        Args:
            time: When it happened: an aware ``datetime``, a ``datetime64`` in UTC, or POSIX seconds
                as ``time.time()`` gives them; a column of such times for columns of events.
            **columns: What `update` of the suite takes, by name: one value, or columns.
        """
        return self._take(self._observed, time, (), columns)

    def predict(self, *, id: object, time: object, **columns: object) -> Self:  # noqa: A002 - as it is called
        """Take a prediction, or columns of them, whose label comes later; return this object.

        Args:
            id: A string, bytes, an integer or a UUID, by which `label` names it; the same event
                again changes nothing.
            time: When it was made, as for `observe`: it says in which pane the row is.
            **columns: What `update` of the suite takes, without the label.
        """
        return self._take(self._predicted, time, (id,), columns)

    def label(self, *, id: object, time: object, version: object = 1, **columns: object) -> Self:  # noqa: A002 - as it is called
        """Take a label, or columns of them, before or after its prediction; return this object.

        Args:
            id: The id of the prediction.
            time: When the label was known: it counts if that is at most `label_ttl` after the
                time of the prediction, and at most `label_lateness` before it.
            version: A label of a larger version replaces those of smaller ones.
            **columns: The label, under the name that the suite has for it.
        """
        return self._take(self._labelled, time, (id, version), columns)

    def _take(
        self, buffer: Buffer, time: object, heads: tuple[object, ...], columns: Mapping[str, object]
    ) -> Self:
        """Take events of any form."""
        check_arithmetic()
        self._check_open()
        self._check_names(buffer, columns)
        if is_column(time):
            self._enter(buffer, self._times(time), heads, columns, several=True)
            return self
        nanoseconds = instant(time)
        self._check_ahead(nanoseconds, 0)
        self._check_heads(heads)
        columns = {name: plain(value) for name, value in columns.items()}
        form = buffer.checked(columns)
        if form is not None and type(time) in _SECONDS and not self._is_durable:
            if buffer.first is None:
                self._let_in(buffer, form)
            form.values.extend((time, *heads, *[columns[name] for name in form.names]))
            if 1 < buffer.most <= len(form.values) // form.width:
                self._full(buffer)
        else:
            one = buffer.as_rows(columns)
            alone = tuple([head] for head in heads)
            self._enter(buffer, np.array([nanoseconds], np.int64), alone, one, several=False)
        return self

    def _let_in(self, buffer: Buffer, form: WaitingRows) -> None:
        """Let events of the first form of a buffer in by a function of their own."""
        kind = buffer.kind
        with self._guard._lock:
            self._check_open()
            if buffer not in self._buffers:  # all was forgotten meanwhile
                return
            buffer.first = form
            form.until(self._limit)
            if getattr(type(self), kind) is not getattr(Entrance, kind):
                return  # a subclass has its own
            bring, take = partial(self._full, buffer), partial(self._take_named, kind)
            entry = form.entry(kind, self, buffer.most, bring, take)
            if entry is not None:
                entry.__qualname__, entry.__doc__ = f"Live.{kind}", getattr(Entrance, kind).__doc__
                vars(self)[kind] = entry

    def _take_named(
        self,
        kind: Kind,
        heads: Sequence[object],
        named: Mapping[str, object],
        others: dict[str, Any],
    ) -> Self:
        """Take events of any form, some of whose columns may be `ABSENT`."""
        buffer = self._buffers[KINDS.index(kind)]  # of now, also for who holds an old entry
        columns = {name: value for name, value in named.items() if value is not ABSENT} | others
        return self._take(buffer, heads[0], tuple(heads[1:]), columns)

    def _check_names(self, buffer: Buffer, columns: Mapping[str, object]) -> None:
        truth = self._truth
        if buffer is self._observed:
            return
        if not truth:
            raise InvalidBatchError("these metrics read no label: observe() takes their rows")
        if buffer is self._labelled and set(columns) != {truth}:
            raise InvalidBatchError(f"a label has one column, {truth!r}, not {sorted(columns)}")
        if buffer is self._predicted:
            if truth in columns:
                raise InvalidBatchError(
                    f"a prediction comes without {truth!r}: observe() takes both, label() the label"
                )
            if truth in self._stream.keys.kinds:
                raise InvalidBatchError(
                    f"slices are by the label, {truth!r}, which a prediction does not have: "
                    "observe() takes both"
                )
            self._config.declared.check_weights(columns)
            names, keys = self._stream.join.names, self._stream.keys
            known = keys.named(names) if names else buffer.names
            if known and set(known) != set(columns):
                raise InvalidBatchError(
                    f"a prediction has {', '.join(columns)} here and {', '.join(sorted(known))} "
                    "before; all have the same columns"
                )

    @staticmethod
    def _check_heads(heads: tuple[object, ...]) -> None:
        """Raise where an id, or a version, is none."""
        if heads:
            keys_of([heads[0]])
            versions_of([*heads[1:]])

    def _enter(
        self,
        buffer: Buffer,
        times: Ints,
        heads: tuple[object, ...],
        columns: Mapping[str, object],
        *,
        several: bool,
    ) -> None:
        """Bring columns of events to the state, checked where there are `several`."""
        events = self._events(buffer, times, heads, columns, several=several)
        if self._is_durable and several and buffer is self._observed:
            buffer.check(columns)
        self._bring([events])

    def _take_all(self, parts: Sequence[EventColumns]) -> None:
        """Take columns of events of several kinds, or raise and leave all as it was.

        Raises:
            PartError: One of them is refused.
            StreamMetricsError: The live state is closed, or its durable store cannot be written.
        """
        self._check_open()
        alone = len(parts) == 1 and not self._is_durable
        self._bring([self._ready(place, part, alone=alone) for place, part in enumerate(parts)])

    def _ready(self, place: int, part: EventColumns, *, alone: bool) -> Events:
        """Return columns as events, after checking them by themselves."""
        buffer = dict(zip(KINDS, self._buffers, strict=True))[part.kind]
        with _naming(place):
            self._check_names(buffer, part.columns)
            times = self._times(part.time)
            events = self._events(buffer, times, part.heads, part.columns, several=True)
            if part.kind == "observe" and not alone:
                buffer.check(part.columns)
            return events

    def _bring(self, ready: Sequence[Events]) -> None:
        """Bring events to the state, all or none; where the store is durable, by way of it.

        Raises:
            PartError: One of them is refused.
            StoreError: A durable store cannot be written; nothing has changed.
        """
        if self._keeper is not None and self._is_durable:
            self._keeper.commit(
                ready, partial(self._try_all, ready), partial(self._take_stored, ready)
            )
            return
        with self._guard._lock:
            self._drain()  # those that came before are in the right, where they contradict these
            with self._holding("taking"):
                if len(ready) > 1:
                    self._try(ready)
                for place, events in enumerate(ready):
                    with _naming(place):
                        self._came(events, checked=False)
                self._stream.tidy()

    def _try_all(self, ready: Sequence[Events]) -> None:
        """Raise where events would be refused once they are in the store."""
        with self._guard._lock:
            self._drain()
            with self._holding("taking"):
                self._try(ready)

    def _take_stored(self, ready: Sequence[Events]) -> None:
        """Take events that are in the store."""
        with self._guard._lock, self._holding("taking"):
            for events in ready:
                self._stream.take_good(events)
            self._stream.tidy()

    def _try(self, ready: Sequence[Events]) -> None:
        """Raise where a part does not go with what came before: none of them is taken yet."""
        refusing = self._suite._plan.can_refuse  # of what the other parts have brought, too
        stream = self._stream.copy() if refusing else self._stream
        for place, events in enumerate(ready):
            with _naming(place):
                if events.kind != "observe":
                    stream.check(events.columns)
                if refusing:
                    stream.take(events)

    def _events(
        self,
        buffer: Buffer,
        times: Ints,
        heads: tuple[object, ...],
        columns: Mapping[str, object],
        *,
        several: bool,
    ) -> Events:
        """Return columns as events, checked where there are `several`."""
        if buffer is self._observed:
            taken = columns_of(batch_of(self._suite, columns))
            if several:
                self._config.declared.check(taken)
            return Events("observe", times, taken)
        keys, stream = keys_of(heads[0]), self._stream
        whole = (stream.predicted if buffer is self._predicted else stream.columns)(columns)
        versions = versions_of(heads[1], len(times)) if heads[1:] else times
        lengths = {len(keys), len(times), len(versions), *map(len, whole.values())}
        if len(lengths) > 1:
            raise InvalidBatchError(f"columns differ in length: {sorted(lengths)}")
        if several and len(times):
            buffer.check(columns if stream.keys.kinds else whole)
        if buffer is self._predicted:
            return Events("predict", times, whole, keys)
        return Events("label", times, whole, keys, versions)

    def _times(self, column: object) -> Ints:
        """Return a column of times, or raise where one is further ahead than it may be."""
        times = instants(column)
        if len(times):
            latest = int(times.argmax())
            self._check_ahead(int(times[latest]), latest)
        return times

    def _check_ahead(self, time: int, row: int) -> None:
        """Raise where a time is further ahead of the clock than it may be."""
        if self._ahead is None:
            self._know(float(LATEST))
            return
        limit = clock.time_ns() + self._ahead
        if time > limit:
            raise InvalidBatchError(
                f"time is {shown_time(time)} in row {row}, ahead of the clock by more than "
                f"max_ahead: set the sender's clock, or raise max_ahead", "time", row,
            )  # fmt: skip
        self._know(limit / SECOND)
