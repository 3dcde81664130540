"""Where events come in: one by one or in columns, checked at once, from any number of threads."""

from __future__ import annotations

import time as clock
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from streammetrics.core.errors import InvalidBatchError
from streammetrics.live.buffer import ABSENT, Buffer, WaitingRows, is_column, plain
from streammetrics.live.events import KINDS, Events
from streammetrics.live.gathered import Gathered
from streammetrics.live.ids import keys_of, versions_of
from streammetrics.live.rows import batch_of, columns_of
from streammetrics.live.time import LATEST, SECOND, instant, instants, shown_time

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streammetrics.core.types import Ints
    from streammetrics.live.events import Kind

_SECONDS = (float, int)


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
        self._check_open()
        self._check_names(buffer, columns)
        if is_column(time):
            self._enter(buffer, self._times(time), heads, columns, several=True)
            return self._entered()
        nanoseconds = instant(time)
        self._check_ahead(nanoseconds, 0)
        self._check_heads(heads)
        columns = {name: plain(value) for name, value in columns.items()}
        form = buffer.checked(columns)
        if form is not None and type(time) in _SECONDS:
            if buffer.first is None:
                self._let_in(buffer, form)
            form.values.extend((time, *heads, *[columns[name] for name in form.names]))
            if 1 < buffer.most <= len(form.values) // form.width:
                self._full(buffer)
        else:
            one = buffer.as_rows(columns)
            alone = tuple([head] for head in heads)
            self._enter(buffer, np.array([nanoseconds], np.int64), alone, one, several=False)
        return self._entered()

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

    def _entered(self) -> Self:
        """Bring events on at once where none may wait."""
        if self._observed.most == 1:
            self.flush()
        return self

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
        with self._guard._lock:
            self._drain()  # those that came before are in the right, where they contradict these
            with self._holding("taking"):
                self._came(events, checked=False)
                self._stream.tidy()

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
            return Events("observe", times, columns_of(batch_of(self._suite, columns)))
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
                f"max_ahead: POSIX seconds are needed, not milliseconds", "time", row,
            )  # fmt: skip
        self._know(limit / SECOND)
