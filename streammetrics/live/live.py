"""Live: any metric over any recent window of a stream, a function of its events."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from streammetrics.core.errors import (
    IncompatibleMetricsError,
    InvalidBatchError,
    StreamMetricsError,
)
from streammetrics.core.locks import Locked
from streammetrics.core.mergeable import Mergeable
from streammetrics.core.stateful import Stateful, from_bytes
from streammetrics.live import form
from streammetrics.live.config import Config
from streammetrics.live.decay import decayed
from streammetrics.live.entrance import Entrance
from streammetrics.live.keeper import Image, Keeper, StoreWarning
from streammetrics.live.reading import Span, series_of, span_of, spans_of
from streammetrics.live.stream import Stream
from streammetrics.live.tiers import DEFAULT
from streammetrics.live.time import duration, instant, shown_time

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import timedelta

    from numpy.typing import NDArray

    from streammetrics.live.coverage import Coverage
    from streammetrics.live.events import Events

__all__ = ["Live"]


class Live(Entrance, Stateful):
    """The metrics of a service over time: panes of ordinary states, merged into windows.

    Time is cut into panes, and a window is a merge of panes: a plain `MetricSet`. The state is a
    function of the events, not of their arrival: any order, lateness, number of workers, restart
    or replay of the same events gives the same `to_bytes()`. Any number of threads may observe,
    merge and read.

    Args:
        suite: An empty `MetricSet`, or a metric, of which every pane has one.
        tiers: The length of a pane, and how far back such panes are kept; the finest first. Panes
            of ``"1d"`` may be calendar days of a zone: ``("1d", "400d", "Europe/Berlin")``.
        label_ttl: How long after its prediction the time of a label may be.
        label_lateness: How much longer its arrival may take.
        default_label: What a label that never came means; ``None``: nothing.
        max_pending: Predictions that may wait for labels; beyond it the oldest leave, and it warns.
        max_ahead: How far ahead of the clock a time may be; ``None`` takes any.
        store: A file in which the state survives, and which other processes on this machine may
            share: each reads the whole service. It is made where there is none.
        durable: Whether each call returns when its events are on the disk, and not within a second.

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

    def __init__(
        self,
        suite: Mergeable,
        *,
        tiers: Sequence[Sequence[Any]] = DEFAULT,
        label_ttl: str | timedelta = "1d",
        label_lateness: str | timedelta = "1d",
        default_label: Any = None,
        max_pending: int = 10_000_000,
        max_ahead: str | timedelta | None = "10min",
        store: str | os.PathLike[str] | None = None,
        durable: bool = False,
    ) -> None:
        if not isinstance(suite, Mergeable):
            raise TypeError(f"a {type(suite).__name__} is not a metric or a MetricSet")
        if suite.n_rows or suite.n_omitted:
            raise ValueError(f"the suite has already seen {suite.n_rows:,} rows: reset() it")
        config = Config.of(tiers, label_ttl, label_lateness, default_label, max_pending)
        self._bind(suite.copy(), config)
        self._ahead = None if max_ahead is None else duration(max_ahead, "max_ahead")
        if store is not None:
            self._keep(os.fspath(store), durable=durable)

    def _bind(self, suite: Mergeable, config: Config) -> None:
        self._suite, self._config = suite, config
        self._guard = Locked()  # of its own, as what is compared by its state has no hash
        self._ahead = None
        self._now = 0  # the time of reading, as somebody said
        self._stream = Stream(suite, config)
        self._keeper: Keeper | None = None
        self._arrived: list[Events] = []  # which are in the stream, and not yet in the store
        self._open()

    def _came(self, events: Events) -> None:
        self._stream.take(events)
        if self._keeper is not None:
            self._arrived.append(events)

    def _full(self) -> None:
        if self._observed.most == 1:
            self.flush()
        else:
            with self._guard._lock:
                self._drain()

    def flush(self) -> Self:
        """Bring the events that wait to the panes; every read does it.

        Where there is a store, they are in it when this returns, unless it cannot be written.
        """
        if self._keeper is not None:
            self._keeper.write()
        with self._guard._lock:
            self._drain()
        return self

    # --- the store ---------------------------------------------------------------------------

    def _keep(self, path: str, *, durable: bool) -> None:
        """Keep the state in a file from now on."""
        self._keeper = Keeper(self, path, self.to_bytes(), durable=durable)
        if durable:
            for buffer in self._buffers:
                buffer.most = 1

    def _taken(self) -> list[Events]:
        with self._guard._lock:
            self._drain()
            taken, self._arrived = self._arrived, []
            return taken

    def _apply(self, events: list[Events]) -> None:
        with self._guard._lock:
            for part in events:
                try:
                    self._stream.take(part)
                except InvalidBatchError as error:
                    message = f"another worker's events do not go with those of this one: {error}"
                    warnings.warn(message, StoreWarning, stacklevel=2)
            self._stream.tidy()

    def _restore(self, blob: bytes, counters: Mapping[str, int], events: list[Events]) -> None:
        stream = Stream(self._suite, self._config)
        if blob:
            found = from_bytes(blob)
            self._check_alike(found)
            stream = found._stream
        stream.counters = counters
        with self._guard._lock:
            self._drain()
            self._stream = stream
            self._apply([*events, *self._arrived])  # also what came since the last were taken

    def _differing(self, blob: bytes) -> str:
        try:
            self._check_alike(from_bytes(blob))
        except IncompatibleMetricsError as error:
            return str(error)
        return "it was written otherwise"

    def _image(self) -> Image:
        with self._guard._lock:
            events, stream = self._taken(), self._snapshot()
            return Image(events, stream.counters, self._of(stream).to_bytes)

    def close(self) -> None:
        """Write what waits, and close the store; no more events are taken. Reading goes on.

        Raises:
            StreamMetricsError: The store cannot be written just now; nothing was closed.
        """
        if self._closed:
            return
        if self._keeper is not None:
            self._keeper.sync()
            self._keeper.close()
        with self._guard._lock:
            self._drain()
            self._closed, self._keeper = True, None
            for buffer in self._buffers:
                buffer.forms.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- reading -----------------------------------------------------------------------------

    def now(self, time: Any) -> Self:
        """Say what time it is for those who read, so that windows of an idle stream empty.

        No state depends on it, and no time before the newest event's counts; ``None`` takes it
        back. Return this object.
        """
        self._now = 0 if time is None else instant(time)
        return self

    def _catch_up(self) -> None:
        """Read what other workers have written; before the lock is taken."""
        if self._keeper is not None:
            self._keeper.sync()

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
        self._catch_up()
        with self._guard._lock:
            self._drain()
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

    def possible(
        self,
        length: str | timedelta,
        *,
        end: Any = None,
        target_range: tuple[float, float] | None = None,
    ) -> Any:
        """Return, for each metric of a window, what it may be whatever the missing labels are.

        The interval certainly holds the value that the metric has once all labels are there, each
        0 or 1, or a target within `target_range`: that of the ROC area, of losses (log loss, Brier
        score, MAE, MSE, RMSE), and of ratios of counts at a threshold. ``None`` for other metrics,
        for weighted rows, and where rows have left without a label.

        Example:
            >>> import streammetrics as sm
            >>> live = sm.Live(sm.Accuracy(threshold=0.5))
            >>> _ = live.observe(time=10, y_true=1, y_score=0.75)
            >>> _ = live.predict(id="a", time=20, y_score=0.25)
            >>> live.window("1min").compute(), live.possible("1min")
            (1.0, Interval(low=0.5, high=1.0))
        """
        until = None if end is None else instant(end, "end")
        self._catch_up()
        with self._guard._lock:
            self._drain()
            return self._stream.possible(self._span(length, until), self._clock, target_range)

    def decayed(self, half_life: str | timedelta) -> Any:
        """Return a new set, or metric, of all rows, of which older panes weigh less.

        A row in pane k weighs ``2 ** -((newest - k) * length / half_life)``, exactly: sums of
        weights are exact. The panes are those of the finest tier that reaches back eight
        half-lives, else of the one that reaches back furthest.

        Raises:
            InvalidBatchError: The rows of a metric have no weights, as those of rankings.

        Example:
            >>> import streammetrics as sm
            >>> live = sm.Live(sm.Mean())
            >>> _ = live.observe(time=[0, 60], values=[1.0, 4.0])
            >>> live.decayed("1min").compute()
            3.0
        """
        length = duration(half_life, "half_life")
        self._catch_up()
        with self._guard._lock:
            self._drain()
            states, layout = decayed(self._stream, length, self._clock), self._suite._layout
            return self._suite._at(layout.merged(layout.start, states))

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
        self._catch_up()
        with self._guard._lock:
            self._drain()
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
        self._catch_up()
        with self._guard._lock:
            self._drain()
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
        self._catch_up()
        with self._guard._lock:
            self._drain()
            place, tier = len(self._config.tiers) - 1, self._config.tiers[-1]
            last = tier.number(self._clock)
            return int(self._over(Span(place, last - tier.count + 1, last)).n_rows)

    @property
    def nbytes(self) -> int:
        """Bytes of state held now."""
        self._catch_up()
        with self._guard._lock:
            self._drain()
            return self._stream.nbytes

    @property
    def dropped(self) -> int:
        """Rows that came so late that no tier keeps their pane; counted beside the state."""
        self._catch_up()
        with self._guard._lock:
            self._drain()
            return self._stream.panes.dropped

    # --- states ------------------------------------------------------------------------------

    def merge(self, *others: Self) -> Self:
        """Take what others have seen, in place, and return this object; they are untouched.

        Raises:
            IncompatibleMetricsError: Their configuration differs; nothing has changed.
        """
        for other in others:
            self._check_alike(other)
        if self._keeper is not None:
            raise StreamMetricsError("a Live with a store takes events, not states of others")
        theirs = [other._snapshot() for other in others]  # before the lock: nobody holds two
        with self._guard._lock:
            self._drain()
            stream = self._stream.copy()
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
            self._drain()
            stream = self._stream
            stream.settle()
            return stream.copy()

    def copy(self) -> Self:
        """Return an independent object of the same configuration and state."""
        self._catch_up()
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
        """Forget all events; the configuration stays.

        Raises:
            StreamMetricsError: There is a store, which other workers share: remove the file.
        """
        if self._keeper is not None:
            raise StreamMetricsError("a Live with a store is not reset: close it, remove the file")
        with self._guard._lock:
            self._stream = Stream(self._suite, self._config)
            self._open()
        return self

    def __repr__(self) -> str:
        inside = repr(self._suite).rpartition(" <")[0]
        newest = self._stream.panes.newest
        until = f", up to {shown_time(newest)}" if newest >= 0 else ""
        return f"Live({inside}) <{self.n_rows:,} rows{until}>"

    @property
    def _types(self) -> tuple[type, ...]:
        return self._suite._types

    def _describe(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]], str]:
        """Return what a file says of the panes, and their states as columns."""
        self._catch_up()
        return form.described(type(self), self._snapshot())

    @classmethod
    def _rebuild(cls, meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the object that was described."""
        return cls._of(form.read(meta, arrays))
