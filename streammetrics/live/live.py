"""Live: any metric over any recent window of a stream, a function of its events."""

from __future__ import annotations

import time as clock
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from streammetrics.core.errors import IncompatibleMetricsError, InvalidBatchError
from streammetrics.core.locks import Locked
from streammetrics.core.mergeable import Mergeable
from streammetrics.core.stateful import Stateful
from streammetrics.live import form
from streammetrics.live.buffer import MOST, Buffer, as_row, is_column, plain
from streammetrics.live.checking import Checks
from streammetrics.live.config import Config
from streammetrics.live.ids import IDS, keys_of, versions_of
from streammetrics.live.reading import Span, series_of, span_of, spans_of
from streammetrics.live.rows import batch_of
from streammetrics.live.stream import Stream
from streammetrics.live.tiers import DEFAULT
from streammetrics.live.time import LATEST, SECOND, duration, instant, instants, shown_time
from streammetrics.live.truth import kinds_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import timedelta

    from numpy.typing import NDArray

    from streammetrics.live.coverage import Coverage

__all__ = ["Live"]

_SECONDS = (float, int)
_VERSIONS = 1 << 63


class Live(Stateful):
    """The metrics of a service over time: panes of ordinary states, merged into windows.

    Time is cut into panes, and a window is a merge of panes: a plain `MetricSet`. The state is a
    function of the events, not of their arrival: any order, lateness, number of workers, restart
    or replay of the same events gives the same `to_bytes()`. Any number of threads may observe,
    merge and read.

    Args:
        suite: An empty `MetricSet`, or a metric, of which every pane has one.
        tiers: The length of a pane, and how far back such panes are kept; the finest first. Panes
            of ``"1d"`` may be calendar days of a zone: ``("1d", "400d", "Europe/Berlin")``.
        max_ahead: How far ahead of the clock a time may be; ``None`` takes any.

    Raises:
        InvalidBatchError: From `observe`: a time or a value is not what it should be; nothing has
            changed. Also from reads, where a row that waited was refused after all.
        ValueError: A duration is none, or no tier has the window; the message names what there is.

    Memory and cost:
        One state a pane, of the rows in it. An event of scalars is checked and kept in about a
        microsecond; rows reach the panes together, 1,024 at a time or when something is read. A
        window is some 2 log2(n) merges at worst, and one where nothing but the newest pane changed.

    Example:
        >>> import streammetrics as sm
        >>> live = sm.Live(sm.MetricSet({"accuracy": sm.Accuracy(threshold=0.5)}))
        >>> for second in range(600):
        ...     _ = live.observe(time=1_700_000_000 + second, y_true=1, y_score=second / 600)
        >>> live.window("5min").compute()
        {'accuracy': 1.0}
        >>> live.window("1h").compute()
        {'accuracy': 0.5}
    """

    _ahead: int | None

    def __init__(
        self,
        suite: Mergeable,
        *,
        tiers: Sequence[Sequence[Any]] = DEFAULT,
        label_ttl: str | timedelta = "1d",
        label_lateness: str | timedelta = "1d",
        default_label: Any = None,
        keep_rows: int = 0,
        max_pending: int = 10_000_000,
        max_ahead: str | timedelta | None = "10min",
    ) -> None:
        if not isinstance(suite, Mergeable):
            raise TypeError(f"a {type(suite).__name__} is not a metric or a MetricSet")
        if suite.n_rows or suite.n_omitted:
            raise ValueError(f"the suite has already seen {suite.n_rows:,} rows: reset() it")
        config = Config.of(tiers, label_ttl, label_lateness, default_label, keep_rows, max_pending)
        self._bind(suite.copy(), config)
        self._ahead = None if max_ahead is None else duration(max_ahead, "max_ahead")

    def _bind(self, suite: Mergeable, config: Config) -> None:
        self._suite, self._config = suite, config
        self._guard = Locked()  # of its own, as what is compared by its state has no hash
        self._ahead = None
        self._now = 0  # the time of reading, as somebody said
        self._forget()

    def _forget(self) -> None:
        self._stream = Stream(self._suite, self._config)
        self._limit = 0.0  # seconds up to which times are known not to be ahead of the clock
        kinds = kinds_of(self._suite)
        checks = Checks(self._suite, kinds)
        self._observed = Buffer(checks.observed, kinds)
        self._predicted = Buffer(checks.predicted, kinds, heads=2)
        self._labelled = Buffer(checks.labelled, kinds, heads=3)

    # --- events in ---------------------------------------------------------------------------

    def observe(self, *, time: Any, **columns: Any) -> Self:
        """Take an event, or columns of them, with all that the metrics read; return this object.

        Args:
            time: When it happened: an aware ``datetime``, a ``datetime64`` in UTC, or POSIX seconds
                as ``time.time()`` gives them; a column of such times for columns of events.
            **columns: What `update` of the suite takes, by name: one value, or columns.
        """
        form = self._observed.forms.get(tuple(columns))
        if (
            form is not None
            and type(time) in _SECONDS
            and 0 <= time < self._limit
            and form.known(values := columns.values())
        ):
            form.rows.append((time, *values))
            if len(form.rows) >= MOST:
                self.flush()
            return self
        return self._take(self._observed, time, (), columns)

    def predict(self, *, id: Any, time: Any, **columns: Any) -> Self:  # noqa: A002 - as it is called
        """Take a prediction, or columns of them, whose label comes later; return this object.

        Args:
            id: A string, bytes, an integer or a UUID, by which `label` names it; the same event
                again changes nothing.
            time: When it was made, as for `observe`: it says in which pane the row is.
            **columns: What `update` of the suite takes, without the label.
        """
        form = self._predicted.forms.get(tuple(columns))
        if (
            form is not None
            and type(time) in _SECONDS
            and 0 <= time < self._limit
            and type(id) in IDS
            and form.known(values := columns.values())
        ):
            form.rows.append((time, id, *values))
            if len(form.rows) >= MOST:
                self.flush()
            return self
        return self._take(self._predicted, time, (id,), columns)

    def label(self, *, id: Any, time: Any, version: Any = 1, **columns: Any) -> Self:  # noqa: A002 - as it is called
        """Take a label, or columns of them, before or after its prediction; return this object.

        Args:
            id: The id of the prediction.
            time: When the label was known: it counts if that is at most `label_ttl` after the
                time of the prediction, and at most `label_lateness` before it.
            version: A label of a larger version replaces those of smaller ones.
            **columns: The label, under the name that the suite has for it.
        """
        form = self._labelled.forms.get(tuple(columns))
        if (
            form is not None
            and type(time) in _SECONDS
            and 0 <= time < self._limit
            and type(id) in IDS
            and type(version) is int
            and 0 <= version < _VERSIONS
            and form.known(values := columns.values())
        ):
            form.rows.append((time, id, version, *values))
            if len(form.rows) >= MOST:
                self.flush()
            return self
        return self._take(self._labelled, time, (id, version), columns)

    def _take(
        self, buffer: Buffer, time: Any, heads: tuple[Any, ...], columns: Mapping[str, Any]
    ) -> Self:
        """Take events of any form."""
        self._check_names(buffer, columns)
        if is_column(time):
            times = instants(time)
            if len(times):
                latest = int(times.argmax())
                self._check_ahead(int(times[latest]), latest)
            self._enter(buffer, times, heads, columns, several=True)
            return self
        nanoseconds = instant(time)
        self._check_ahead(nanoseconds, 0)
        self._check_heads(heads)
        columns = {name: plain(value) for name, value in columns.items()}
        form = buffer.checked(columns)
        if form is not None and type(time) in _SECONDS:
            form.rows.append((time, *heads, *columns.values()))
        else:
            one = {name: as_row(value) for name, value in columns.items()}
            alone = tuple([head] for head in heads)
            self._enter(buffer, np.array([nanoseconds], np.int64), alone, one, several=False)
        return self

    def _check_names(self, buffer: Buffer, columns: Mapping[str, Any]) -> None:
        truth = self._stream.join.label
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
            known = self._stream.join.names or next(iter(buffer.forms), ())
            if known and set(known) != set(columns):
                raise InvalidBatchError(
                    f"a prediction has {', '.join(columns)} here and {', '.join(known)} before; "
                    "all have the same columns"
                )

    @staticmethod
    def _check_heads(heads: tuple[Any, ...]) -> None:
        """Raise where an id, or a version, is none."""
        if heads:
            keys_of([heads[0]])
            versions_of([*heads[1:]])

    def _enter(
        self,
        buffer: Buffer,
        times: NDArray[np.int64],
        heads: tuple[Any, ...],
        columns: Mapping[str, Any],
        *,
        several: bool,
    ) -> None:
        """Bring columns of events to the state, checked where there are `several`."""
        stream = self._stream
        if buffer is self._observed:
            batch = batch_of(self._suite, columns)
            with self._guard._lock:
                stream.observe(times, batch)
            return
        keys = keys_of(heads[0])
        whole = stream.columns(columns)
        lengths = {len(keys), len(times), *map(len, whole.values())}
        if len(lengths) > 1:
            raise InvalidBatchError(f"columns differ in length: {sorted(lengths)}")
        if several and len(times):
            buffer.check(whole)
        with self._guard._lock:
            self.flush()
            if buffer is self._predicted:
                stream.predict(keys, times, whole)
            else:
                versions = versions_of(heads[1], len(times))
                stream.label(keys, times, versions, whole[stream.join.label])

    def _check_ahead(self, time: int, row: int) -> None:
        """Raise where a time is further ahead of the clock than it may be."""
        if self._ahead is None:
            self._limit = float(LATEST)
            return
        limit = clock.time_ns() + self._ahead
        if time > limit:
            raise InvalidBatchError(
                f"time is {shown_time(time)} in row {row}, ahead of the clock by more than "
                f"max_ahead: POSIX seconds are needed, not milliseconds", "time", row,
            )  # fmt: skip
        self._limit = limit / SECOND

    def flush(self) -> Self:
        """Bring the events that wait to the panes; every read does it."""
        with self._guard._lock:
            stream = self._stream
            for (times,), columns in self._observed.taken():
                stream.observe(_instants(times), batch_of(self._suite, columns))
            for (times, ids), columns in self._predicted.taken():
                stream.predict(keys_of(ids), _instants(times), stream.columns(columns))
            for (times, ids, versions), columns in self._labelled.taken():
                (values,) = stream.columns(columns).values()
                each = np.array(versions, np.int64)
                stream.label(keys_of(ids), _instants(times), each, values)
        return self

    # --- reading -----------------------------------------------------------------------------

    def now(self, time: Any) -> Self:
        """Say what time it is for those who read, so that windows of an idle stream empty.

        No state depends on it, and no time before the newest event's counts; ``None`` takes it
        back. Return this object.
        """
        self._now = 0 if time is None else instant(time)
        return self

    def window(self, length: str | timedelta, *, end: Any = None) -> Any:
        """Return a new set, or metric, that has seen the rows of a window.

        Args:
            length: How long: a whole number of panes of a tier that reaches back so far. The finest
                such tier counts.
            end: A time that ends the window: the pane that it falls into, or ends, is the last
                one, and is taken whole. Without it, that is the newest pane, or the one of `now`.

        Raises:
            ValueError: No tier has such a window, or it is kept no longer.

        Example:
            >>> import streammetrics as sm
            >>> live = sm.Live(sm.Mean())
            >>> _ = live.observe(time=[0, 60, 120, 180], values=[1.0, 2.0, 3.0, 4.0])
            >>> live.window("2min").compute(), live.window("2min", end=120).compute()
            (3.5, 1.5)
        """
        until = None if end is None else instant(end, "end")
        with self._guard._lock:
            self.flush()
            return self._over(self._span(length, until))

    def _span(self, length: str | timedelta, until: int | None) -> Span:
        newest = self._stream.panes.newest
        return span_of(self._config.tiers, length, newest, until, self._clock)

    @property
    def _clock(self) -> int:
        """The time of reading."""
        return max(self._stream.panes.newest, self._now, 0)

    def _over(self, span: Span) -> Any:
        return self._suite._at(self._stream.over(span, self._clock))

    def coverage(self, length: str | timedelta, *, end: Any = None) -> Coverage:
        """Return how many predictions of a window have their label, and what became of the others.

        Example:
            >>> import streammetrics as sm
            >>> live = sm.Live(sm.Accuracy())
            >>> _ = live.predict(id="a", time=10, y_pred=1).predict(id="b", time=20, y_pred=0)
            >>> _ = live.label(id="a", time=3610, y_true=1)
            >>> found = live.coverage("1min")
            >>> found.predicted, found.labelled, found.pending, found.delay_median
            (2, 1, 1, 3600.0)
            >>> live.window("1min").compute()
            1.0
        """
        until = None if end is None else instant(end, "end")
        with self._guard._lock:
            self.flush()
            return self._stream.coverage(self._span(length, until), self._clock)

    def series(self, window: str | timedelta, *, every: str | timedelta) -> dict[str, NDArray[Any]]:
        """Return the metrics over windows that end one after the other, as columns.

        The columns are ``time``, the end of each window (UTC), ``n_rows``, ``coverage``, and of
        each metric ``NAME``, ``NAME_low`` and ``NAME_high``; of a single metric ``value``, ``low``
        and ``high``. Values that are no numbers, as those of curves, have no column. The last
        window is that of `window`; the first one begins with the oldest pane that is kept.

        Example:
            >>> import streammetrics as sm
            >>> live = sm.Live(sm.Mean(), tiers=[("1min", "4min")])
            >>> _ = live.observe(time=[0, 60, 120, 180], values=[1.0, 2.0, 3.0, 4.0])
            >>> live.series("2min", every="1min")["value"]
            array([1.5, 2.5, 3.5])
        """
        with self._guard._lock:
            self.flush()
            newest = self._stream.panes.newest
            spans = spans_of(self._config.tiers, window, every, newest, self._clock)
            states = [self._over(span) for span in spans]
            covered = [self._stream.coverage(span, self._clock).coverage for span in spans]
        ends = [self._config.tiers[span.place].start(span.last + 1) for span in spans]
        times = np.array(ends, np.int64).view("datetime64[ns]")
        return series_of(states, times, np.array(covered, np.float64))

    @property
    def n_rows(self) -> int:
        """Rows with a label in the panes of the coarsest tier, which reaches back furthest."""
        with self._guard._lock:
            self.flush()
            place, tier = len(self._config.tiers) - 1, self._config.tiers[-1]
            last = tier.number(self._clock)
            return int(self._over(Span(place, last - tier.count + 1, last)).n_rows)

    @property
    def nbytes(self) -> int:
        """Bytes of state held now."""
        with self._guard._lock:
            return self.flush()._stream.nbytes

    @property
    def dropped(self) -> int:
        """Rows that came so late that no tier keeps their pane; counted beside the state."""
        with self._guard._lock:
            return self.flush()._stream.panes.dropped

    # --- states ------------------------------------------------------------------------------

    def merge(self, *others: Self) -> Self:
        """Take what others have seen, in place, and return this object; they are untouched.

        Raises:
            IncompatibleMetricsError: Their configuration differs; nothing has changed.
        """
        for other in others:
            self._check_alike(other)
        theirs = [other._snapshot() for other in others]  # before the lock: nobody holds two
        with self._guard._lock:
            stream = self.flush()._stream.copy()
            stream.merge(theirs)
            self._stream = stream
        return self

    def _check_alike(self, other: object) -> None:
        if not isinstance(other, Live):
            raise IncompatibleMetricsError(f"cannot merge a {type(other).__name__} into a Live")
        if not self._suite._alike(other._suite):
            raise IncompatibleMetricsError(
                f"cannot merge a Live of {other._suite._titled()} into one of "
                f"{self._suite._titled()}: they differ{self._suite._differing(other._suite)}"
            )
        if other._config != self._config:
            raise IncompatibleMetricsError(
                f"cannot merge these: {self._config.differing(other._config)}"
            )

    def _snapshot(self) -> Stream:
        """Return the present state, in which every row is where it belongs."""
        with self._guard._lock:
            stream = self.flush()._stream
            stream.settle()
            return stream.copy()

    def copy(self) -> Self:
        """Return an independent object of the same configuration and state."""
        twin = self._of(self._snapshot())
        twin._ahead, twin._now = self._ahead, self._now
        return twin

    @classmethod
    def _of(cls, stream: Stream) -> Self:
        live = object.__new__(cls)
        live._bind(stream.suite, stream.config)
        live._stream = stream
        return live

    def reset(self) -> Self:
        """Forget all events; the configuration stays."""
        with self._guard._lock:
            self._forget()
        return self

    def __repr__(self) -> str:
        inside = repr(self._suite).rpartition(" <")[0]
        newest = self.flush()._stream.panes.newest
        until = f", up to {shown_time(newest)}" if newest >= 0 else ""
        return f"Live({inside}) <{self.n_rows:,} rows{until}>"

    @property
    def _types(self) -> tuple[type, ...]:
        return self._suite._types

    def _describe(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]], str]:
        """Return what a file says of the panes, and their states as columns."""
        return form.described(type(self), self._snapshot())

    @classmethod
    def _rebuild(cls, meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the object that was described."""
        return cls._of(form.read(meta, arrays))


def _instants(seconds: Sequence[Any]) -> NDArray[np.int64]:
    return instants(np.array(seconds, np.float64))
