"""Live: any metric over any recent window of a stream, a function of its events."""

from __future__ import annotations

import os
from html import escape
from typing import TYPE_CHECKING, Any, Self

from streammetrics.core.errors import (
    IncompatibleMetricsError,
    StreamMetricsError,
    an,
)
from streammetrics.core.locks import Locked
from streammetrics.core.mergeable import Mergeable
from streammetrics.core.results.hooks import reported
from streammetrics.core.stateful import Stateful
from streammetrics.live import form
from streammetrics.live.alerts.rule import Watch
from streammetrics.live.asking import Asking
from streammetrics.live.checking import Declared
from streammetrics.live.config import Config
from streammetrics.live.entrance import Entrance
from streammetrics.live.events import DEFAULT, duration, shown_time
from streammetrics.live.stream import Stream
from streammetrics.live.surviving import Surviving
from streammetrics.slices.slices import Slices

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import timedelta

    from streammetrics.core.stateful import Description
    from streammetrics.core.types import Arrays, ClassLabel
    from streammetrics.live.alerts.rule import Rule
    from streammetrics.live.checking import Type
    from streammetrics.live.events import Events
    from streammetrics.slices.keyed import By

__all__ = ["Live"]


class Live(Stateful, Entrance, Surviving, Asking):
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
        labels: The classes of the label; an event with another one is refused. By default those
            that the metrics name, else 0 and 1 where a metric judges two classes by one score, else
            all integers.
        types: What columns hold, by name: ``"text"``, ``"integers"``, ``"booleans"``, ``"dates"``,
            or how many numbers a row has. By default slices and ids are text, classes are integers,
            all else is one number a row, and predictions have no weight.
        target_range: The least and the largest target of a regression; others are refused.
        max_pending: Predictions that may wait for labels; beyond it the oldest leave, and it warns.
        by: What to slice by, as for `Slices`: events bring these columns, too, and
            ``window("1h", by="country")`` is a `Slices` of the window. Of labels, predictions do.
        max_slices: How many slices of a kind there may be; those with the highest hashes of their
            keys are one slice ``(other)``, whatever came first.
        keep_rows: How many of the newest rows are held one by one as well, for `last`.
        max_ahead: How far ahead of the clock a time may be; ``None`` takes any.
        store: A file in which the state survives, and which other processes on this machine may
            share: each reads the whole service. It is made where there is none.
        durable: Write events to the disk before each call returns, and not within a second. Where
            that fails the call raises `StoreError`, and nothing was kept.

    Raises:
        InvalidBatchError: From `observe`: a time or a value is not what it should be; nothing has
            changed.
        ValueError: A duration is none, or no tier has the window; the message names what there is.

    Memory and cost:
        One state a pane, of the rows in it. An event of scalars is checked and kept in about a
        microsecond; rows reach the panes together, a thousand or two at a time or when something
        is read. A window is some 2 log2(n) merges at worst, and one where nothing but the newest
        pane changed.

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
        tiers: Sequence[Sequence[object]] = DEFAULT,
        label_ttl: str | timedelta = "1d",
        label_lateness: str | timedelta = "1d",
        default_label: object = None,
        labels: Sequence[ClassLabel] | None = None,
        types: Mapping[str, Type] | None = None,
        target_range: tuple[float, float] | None = None,
        by: By = (),
        max_slices: int = 10_000,
        max_pending: int = 10_000_000,
        keep_rows: int = 0,
        max_ahead: str | timedelta | None = "10min",
        store: str | os.PathLike[str] | None = None,
        durable: bool = False,
    ) -> None:
        if not isinstance(suite, Mergeable):
            raise TypeError(f"{an(type(suite).__name__)} is not a metric or a MetricSet")
        if suite.n_rows or suite.n_omitted:
            raise ValueError(f"the suite has already seen {suite.n_rows:,} rows: reset() it")
        if isinstance(suite, Slices):
            raise TypeError("pass the suite itself, and what to slice by: Live(suite, by=...)")
        if by:
            suite = Slices(suite, by=by, max_slices=max_slices, overflow="other")  # type: ignore[arg-type]  # it checks it
        if store is not None and not os.fspath(store):
            raise ValueError(f"store={store!r}: name a file, or None to keep all in memory")
        declared = Declared(suite, labels, types, target_range)
        declared.check_default(default_label)
        if keep_rows and any(f.nested for s in suite._plan.schemas for f in s.fields):
            raise ValueError("keep_rows holds rows of single values, not of boxes, tags or pixels")
        config = Config.of(
            tiers, label_ttl, label_lateness, default_label, max_pending, keep_rows, declared
        )
        self._bind(suite.copy(), config)
        self._ahead = None if max_ahead is None else duration(max_ahead, "max_ahead")
        if store is not None:
            self._keep(os.fspath(store), durable=durable)

    def _bind(self, suite: Mergeable, config: Config) -> None:
        self._suite, self._config = suite, config
        self._guard = Locked()  # of its own, as what is compared by its state has no hash
        self._ahead = None
        self._now = 0  # the time of reading, as somebody said
        self._stream = self._start()
        self._watch = Watch()
        self._keeper = None
        self._arrived = []
        self._open()

    def _start(self) -> Stream:
        """Return the stream before any event."""
        return Stream(self._suite, self._config)

    def _came(self, events: Events, *, checked: bool) -> None:
        if checked:
            self._stream.take_good(events)
        else:
            self._stream.take(events)
        if self._keeper is not None:
            self._arrived.append(events)

    def flush(self) -> Self:
        """Bring the events that wait to the panes; every read does it.

        Where there is a store, they are in it when this returns, unless it cannot be written.
        """
        if self._keeper is not None:
            self._keeper.write()
        with self._guard._lock:
            self._drain()
        return self

    def asgi(
        self,
        *,
        title: str = "Live metrics",
        window: str = "1h",
        every: str = "5min",
        token: str = "",
        local: bool = False,
    ) -> Any:
        """Return an ASGI application: events in, answers and a page out; docs/live.md has all.

        Args:
            title: What the page is called.
            window: What "now" is on it.
            every: How far apart the points of its lines are.
            token: What requests bear; without one, whoever reaches the application may ask.
            local: Whether it answers to names of this machine alone.
        """
        from streammetrics.live.service.app import application  # noqa: PLC0415 - needs the extra
        from streammetrics.live.service.names import PageView  # noqa: PLC0415
        from streammetrics.live.service.server import Server  # noqa: PLC0415

        server = Server(host="127.0.0.1" if local else "", token=token)
        return application(self, view=PageView(title, window, every), server=server)

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        title: str = "",
        confidence: float = 0.95,
        rules: Sequence[Rule] = (),
    ) -> None:
        """Write a report for people, as `MetricSet.report` does: of all rows, and over time.

        Args:
            path: Where to; an earlier file is replaced.
            title: What stands above it.
            confidence: The level of the confidence limits.
            rules: Of alerts, which are told with how they stand.

        Raises:
            ImportError: Matplotlib or Jinja is not installed.
            OSError: The file cannot be written.
        """
        reported(self, path, title=title, confidence=confidence, rules=rules)

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
            with self._holding("taking"):
                stream = self._stream.copy()
                stream.merge(theirs)
                self._stream = stream
        return self

    def _check_alike(self, other: object) -> None:
        if not isinstance(other, Live):
            raise IncompatibleMetricsError(f"cannot merge {an(type(other).__name__)} into a Live")
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
            with self._holding("taking"):
                self._stream.settle()
                return self._stream.copy()

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
            self._stream = self._start()
            self._open()
        return self

    def __repr__(self) -> str:
        inside = repr(self._suite).rpartition(" <")[0]
        newest = self._stream.panes.newest
        until = f", up to {shown_time(newest)}" if newest >= 0 else ""
        return f"Live({inside}) <{self.n_rows:,} rows{until}>"

    def _repr_html_(self) -> str:
        line = f"<p>{escape(repr(self))}</p>"
        return f"{line}{self._reach()._repr_html_()}" if self.n_rows else line

    @property
    def _types(self) -> tuple[type, ...]:
        return self._suite._types

    def _describe(self) -> Description:
        """Return what a file says of the panes, and their states as columns."""
        self._catch_up()
        return form.described(type(self), self._snapshot())

    @classmethod
    def _rebuild(cls, meta: Mapping[str, object], arrays: Arrays) -> Self:
        """Return the object that was described."""
        return cls._of(form.read(meta, arrays))
