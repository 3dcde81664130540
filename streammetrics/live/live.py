"""Live: any metric over any recent window of a stream, a function of its events."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from html import escape
from typing import TYPE_CHECKING, Any, Self

from streammetrics.core.errors import IncompatibleMetricsError, StreamMetricsError, an
from streammetrics.core.mergeable import Mergeable
from streammetrics.core.results.hooks import reported
from streammetrics.core.stateful import Stateful
from streammetrics.live import serialization
from streammetrics.live.config import Config
from streammetrics.live.events import DEFAULT, EPOCH, IDS, duration, instant, shown_time
from streammetrics.live.ingest import VERSIONS, Ingest
from streammetrics.live.journal import Journal
from streammetrics.live.pipeline import Pipeline, SharedPipeline
from streammetrics.live.queries import Queries, Series
from streammetrics.live.spans import bounds_of
from streammetrics.live.validation import Declared
from streammetrics.slices.slices import Slices

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streammetrics.core.stateful import Description
    from streammetrics.core.types import Arrays, ClassLabel
    from streammetrics.live.alerts.rule import Alerts, Rule
    from streammetrics.live.events import By
    from streammetrics.live.panes import Coverage
    from streammetrics.live.validation import Type
    from streammetrics.slices.keyed import By as SliceBy

__all__ = ["Live"]


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
        by: SliceBy = (),
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
        ahead = None if max_ahead is None else duration(max_ahead, "max_ahead")
        self._bind(Pipeline(suite.copy(), config), ahead)
        if store is not None:
            path = os.fspath(store)
            self._ingest.journal = Journal(self._ingest, type(self), path, durable=durable)

    def _bind(self, pipeline: Pipeline, max_ahead: int | None) -> None:
        self._shared = SharedPipeline(pipeline)
        self._ingest = Ingest(self._shared, max_ahead)
        self._observed, self._predicted = self._ingest.observed, self._ingest.predicted
        self._labelled, self._queries = self._ingest.labelled, Queries(self._ingest)
        self._suite, self._config = pipeline.suite, pipeline.config

    # --- events ----------------------------------------------------------------------------------

    def observe(self, *, time: object, **columns: object) -> Self:
        """Take an event, or columns of them, with all that the metrics read; return this object.

        Args:
            time: When it happened: an aware ``datetime``, a ``datetime64`` in UTC, or POSIX seconds
                as ``time.time()`` gives them; a column of such times for columns of events.
            **columns: What `update` of the suite takes, by name: one value, or columns.
        """
        waits = self._observed.add(time, (), columns)
        if not waits:
            self._ingest.take(self._observed, time, (), columns, added=waits is False)
        return self

    def predict(self, *, id: object, time: object, **columns: object) -> Self:  # noqa: A002 - as users call it
        """Take a prediction, or columns of them, whose label comes later; return this object.

        Args:
            id: A string, bytes, an integer or a UUID, by which `label` names it; the same event
                again changes nothing.
            time: When it was made, as for `observe`: it says in which pane the row is.
            **columns: What `update` of the suite takes, without the label.
        """
        heads = (id,)
        waits = self._predicted.add(time, heads, columns) if type(id) in IDS else None
        if not waits:
            self._ingest.take(self._predicted, time, heads, columns, added=waits is False)
        return self

    def label(self, *, id: object, time: object, version: object = 1, **columns: object) -> Self:  # noqa: A002 - as users call it
        """Take a label, or columns of them, before or after its prediction; return this object.

        Args:
            id: The id of the prediction.
            time: When the label was known: it counts if that is at most `label_ttl` after the
                time of the prediction, and at most `label_lateness` before it.
            version: A label of a larger version replaces those of smaller ones.
            **columns: The label, under the name that the suite has for it.
        """
        heads = (id, version)
        valid = type(id) in IDS and type(version) is int and 0 <= version < VERSIONS
        waits = self._labelled.add(time, heads, columns) if valid else None
        if not waits:
            self._ingest.take(self._labelled, time, heads, columns, added=waits is False)
        return self

    def flush(self) -> Self:
        """Bring the events that wait to the panes; every read does it.

        Where there is a store, they are in it when this returns, unless it cannot be written.
        """
        if self._ingest.journal is not None:
            self._ingest.journal.write()
        with self._shared.locked():
            self._ingest.drain()
        return self

    def close(self) -> None:
        """Write what waits, and close the store; no more events are taken. Reading goes on.

        Raises:
            StreamMetricsError: The store cannot be written just now; nothing was closed.
        """
        journal = self._ingest.journal
        if journal is not None:
            journal.sync()
            journal.close()
        self._ingest.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- queries ---------------------------------------------------------------------------------

    def now(self, time: object) -> Self:
        """Say what time it is for those who read, so that windows of an idle stream empty.

        No state depends on it, and no time before the newest event's counts; ``None`` takes it
        back. Return this object.
        """
        self._queries.now = 0 if time is None else instant(time)
        return self

    def window(self, length: str | timedelta, *, end: object = None, by: By = None) -> Any:
        """Return a new set, or metric, that has seen the rows of a window.

        Args:
            length: How long: a whole number of panes of a tier that reaches back so far. The finest
                such tier counts.
            end: A time that ends the window: the pane that it falls into, or ends, is the last
                one, and is taken whole. Without it, that is the newest pane, or the one of `now`.
                Where only coarser panes are kept so far back, a warning says which span the window
                is of, unless it ends where it should; `span` returns it.
            by: One kind of the slices that are kept, its column or columns: then it is a `Slices`.

        Raises:
            ValueError: No tier has such a window, or it is kept no longer; or there are no such
                slices.

        Example:
            >>> import streammetrics as sm
            >>> live = sm.Live(sm.Mean())
            >>> _ = live.observe(time=[0, 60, 120, 180], values=[1.0, 2.0, 3.0, 4.0])
            >>> live.window("2min").compute(), live.window("2min", end=120).compute()
            (3.5, 1.5)
        """
        return self._queries.window(length, end=end, by=by)

    def last(self, n: int, *, by: By = None) -> Any:
        """Return a new set, or metric, that has seen the newest n rows that have a label.

        Rows are in order of their time, then their id; rows of `observe` have none, and those of
        one time are in order of their values.

        Raises:
            ValueError: Fewer rows are kept: `keep_rows` says how many.

        Example:
            >>> import streammetrics as sm
            >>> live = sm.Live(sm.Mean(), keep_rows=100)
            >>> _ = live.observe(time=[30, 10, 20], values=[3.0, 1.0, 2.0])
            >>> live.last(2).compute()
            2.5
        """
        return self._queries.last(n, by=by)

    def span(self, length: str | timedelta, *, end: object = None) -> tuple[datetime, datetime]:
        """Return when the window of these arguments begins, and when it ends.

        A window is of whole panes. One that ended longer ago than the finest tier reaches back is
        of the panes of a coarser tier.

        Raises:
            ValueError: As for `window`.

        Example:
            >>> import streammetrics as sm
            >>> live = sm.Live(sm.Mean(), tiers=[("1min", "1h"), ("1h", "1d")])
            >>> _ = live.observe(time=[0, 36_000], values=[1.0, 2.0])
            >>> [f"{time:%H:%M}" for time in live.span("1h")]
            ['09:01', '10:01']
            >>> [f"{time:%H:%M}" for time in live.span("1h", end=30 * 60)]
            ['00:00', '01:00']
        """
        until = None if end is None else instant(end, "end")
        span = self._queries.span(length, until, warn=False)
        start, stop = bounds_of(self._config.tiers, span)
        return EPOCH + timedelta(microseconds=start // 1000), EPOCH + timedelta(
            microseconds=stop // 1000
        )

    def series(self, window: str | timedelta, *, every: str | timedelta, by: By = None) -> Series:
        """Return the metrics over windows that end one after the other, as columns.

        The columns are ``time``, the end of each window (UTC), ``n_rows``, ``coverage``, ``start``,
        when the window begins, and of each metric ``NAME``, ``NAME_low`` and ``NAME_high``; of a
        single metric ``value``, ``low`` and ``high``. Values that are no numbers, as those of
        curves, have no column.

        The last window is that of `window`, the first one is the first that reaches a row: before
        any event there is none, and the columns are empty. Where the panes of its tier end, windows
        continue in the coarser tiers: there a window is as few panes as hold one, so it may be
        longer. Where a tier has days of a calendar, whole days are these.

        With `by`, a kind of the slices that are kept, there is a row for each slice of each window:
        its keys are columns, and there is no ``coverage``. Windows are read one after the other:
        events that come meanwhile are in those that are read after.

        Example:
            >>> import streammetrics as sm
            >>> live = sm.Live(sm.Mean(), tiers=[("1min", "4min")])
            >>> _ = live.observe(time=[0, 60, 120, 180], values=[1.0, 2.0, 3.0, 4.0])
            >>> live.series("2min", every="1min")["value"]
            array([1.5, 2.5, 3.5])
        """
        return self._queries.series(self._queries.spans(window, every), by)

    def possible(
        self,
        length: str | timedelta,
        *,
        end: object = None,
        target_range: tuple[float, float] | None = None,
    ) -> Any:
        """Return, for each metric of a window, what it may be whatever the missing labels are.

        The interval certainly holds the value that the metric has once all labels are there,
        whichever of the classes they are, or which targets within `target_range`: that of areas and
        distances of curves, calibration, losses of labels, ratios of counts of two classes,
        accuracy of any, and losses of numbers. ``None`` for other metrics and for weighted rows.
        Rows whose time for a label is over are among them, as long as the window is kept.

        Raises:
            ValueError: `target_range` is none, or no tier has such a window.

        Example:
            >>> import streammetrics as sm
            >>> live = sm.Live(sm.Accuracy(threshold=0.5))
            >>> _ = live.observe(time=10, y_true=1, y_score=0.75)
            >>> _ = live.predict(id="a", time=20, y_score=0.25)
            >>> live.window("1min").compute(), live.possible("1min")
            (1.0, Interval(low=0.5, high=1.0))
        """
        return self._queries.possible(length, end=end, target_range=target_range)

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
        return self._queries.decayed(half_life)

    def coverage(self, length: str | timedelta, *, end: object = None) -> Coverage:
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
        return self._queries.coverage(length, end=end)

    def alerts(self, rules: Sequence[Rule]) -> Alerts:
        """Return how rules stand: ok, firing or without data, since when, and why.

        Rules judge panes that are over, one after the other: those in which nothing more is
        expected. Where predictions wait for their labels these are `label_ttl` + `label_lateness`
        old, unless a rule says ``after=``; otherwise a pane of the finest tier. So alerts are a
        function of the events: history that is replayed gives those that running live gave. What
        time it is says `now`.

        Raises:
            ValueError: A rule asks for a metric that is not there, or for a window that no tier
                has.

        Example:
            >>> import streammetrics as sm
            >>> live = sm.Live(sm.Mean())
            >>> _ = live.observe(time=range(0, 7200, 60), values=[1.0] * 100 + [9.0] * 20)
            >>> (alert,) = live.alerts([sm.Above("value", 5, window="10min")])
            >>> alert.state, str(alert.since)
            ('firing', '1970-01-01 01:46:00+00:00')
        """
        return self._queries.alerts(rules)

    @property
    def n_rows(self) -> int:
        """Rows with a label in the panes of the coarsest tier, which reaches back furthest."""
        return int(self._queries.shown(self._queries.whole()).n_rows)

    @property
    def nbytes(self) -> int:
        """Bytes of state held now."""
        with self._queries.reading() as pipeline:
            return pipeline.nbytes

    @property
    def dropped(self) -> int:
        """Rows that came so late that no tier keeps their pane; counted beside the state."""
        with self._queries.reading() as pipeline:
            return pipeline.panes.dropped

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

    # --- states ----------------------------------------------------------------------------------

    def merge(self, *others: Self) -> Self:
        """Take what others have seen, in place, and return this object; they are untouched.

        Raises:
            IncompatibleMetricsError: Their configuration differs; nothing has changed.
        """
        for other in others:
            self._check_alike(other)
        if self._ingest.journal is not None:
            raise StreamMetricsError("a Live with a store takes events, not states of others")
        self._ingest.merge([other._ingest.snapshot() for other in others])  # nobody holds two locks
        return self

    def _check_alike(self, other: object) -> None:
        if not isinstance(other, Live):
            raise IncompatibleMetricsError(f"cannot merge {an(type(other).__name__)} into a Live")
        self._shared.current.check_alike(other._shared.current)

    def copy(self) -> Self:
        """Return an independent object of the same configuration and state."""
        self._ingest.sync()
        twin = self._of(self._ingest.snapshot(), self._ingest.max_ahead)
        twin._queries.now = self._queries.now
        return twin

    @classmethod
    def _of(cls, pipeline: Pipeline, max_ahead: int | None = None) -> Self:
        live = cls.__new__(cls)
        live._bind(pipeline, max_ahead)
        return live

    def reset(self) -> Self:
        """Forget all events; the configuration stays.

        Raises:
            StreamMetricsError: There is a store, which other workers share: remove the file.
        """
        if self._ingest.journal is not None:
            raise StreamMetricsError("a Live with a store is not reset: close it, remove the file")
        with self._shared.locked():
            self._shared.current = Pipeline(self._suite, self._config)
            self._ingest.reset()
        return self

    def __repr__(self) -> str:
        inside = repr(self._suite).rpartition(" <")[0]
        newest = self._shared.current.panes.newest
        until = f", up to {shown_time(newest)}" if newest >= 0 else ""
        return f"Live({inside}) <{self.n_rows:,} rows{until}>"

    def _repr_html_(self) -> str:
        line, whole = f"<p>{escape(repr(self))}</p>", self._queries.shown(self._queries.whole())
        return f"{line}{whole._repr_html_()}" if whole.n_rows else line

    @property
    def _types(self) -> tuple[type, ...]:
        return self._suite._types

    def _describe(self) -> Description:
        self._ingest.sync()
        return serialization.described(type(self), self._ingest.snapshot())

    @classmethod
    def _rebuild(cls, meta: Mapping[str, object], arrays: Arrays) -> Self:
        return cls._of(serialization.read(meta, arrays))
