"""Live: any metric over any recent window of a stream of events."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from html import escape
from typing import TYPE_CHECKING, Any, Generic, Self, overload

from streammetrics.core.columns.batch import COUNTS
from streammetrics.core.errors import IncompatibleMetricsError, StreamMetricsError, an
from streammetrics.core.mergeable import M_co, Mergeable, Stateful
from streammetrics.core.metric_set import MetricSet
from streammetrics.core.results.hooks import reported
from streammetrics.live import serialization
from streammetrics.live.config import DEDUPE, Config
from streammetrics.live.events import DEFAULT, EPOCH, IDS, duration, instant, shown_time, size
from streammetrics.live.ingest import VERSIONS, Ingest
from streammetrics.live.inputs import inputs_of
from streammetrics.live.journal import LEAST, Journal
from streammetrics.live.pipeline import Pipeline, SharedPipeline
from streammetrics.live.queries import Queries, Series
from streammetrics.live.spans import bounds_of
from streammetrics.live.validation import Declared
from streammetrics.slices.slices import Slices

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streammetrics.core.mergeable import Description
    from streammetrics.core.types import Arrays, ClassLabel, Foreign
    from streammetrics.live.alerts.rule import Alerts, Rule
    from streammetrics.live.events import By
    from streammetrics.live.inputs import InputTable
    from streammetrics.live.panes import Coverage
    from streammetrics.live.validation import Type
    from streammetrics.slices.keyed import By as SliceBy


class Live(Stateful, Generic[M_co]):
    """Metrics of a service over time: states of short panes, merged into windows.

    Time is divided into panes. A window is the merge of its panes and is a plain `MetricSet`. The
    state depends only on the events, not on their arrival: the same events in any order, late, from
    any number of workers, restarted or replayed, give the same `to_bytes()`. The object is
    thread-safe.

    Args:
        suite: An empty `MetricSet`, or an empty metric.
        tiers: Pairs of a pane length and how far back its panes are kept, the finest first. Panes
            of ``"1d"`` may be calendar days in a time zone: ``("1d", "400d", "Europe/Berlin")``.
        label_ttl: The maximum time from a prediction to its label for the label to count.
        label_lateness: How much longer the label may take to arrive.
        default_label: The label assumed when none arrives within `label_ttl`; ``None`` leaves the
            row out.
        labels: The classes of the label; an event with another one is refused. By default the
            classes that the metrics name, or 0 and 1 where a metric judges two classes by one
            score, or all integers.
        types: The types of columns by name: ``"text"``, ``"integers"``, ``"booleans"``,
            ``"dates"``, or how many numbers a row has. By default slice keys and ids are text,
            classes are integers, all other columns hold one number a row, and predictions have no
            weight.
        target_range: The smallest and the largest target of a regression; others are refused.
        proxy: The column of judgments, such as those of a language model. All predictions and
            observations then have one, and `estimated` reads them.
        inputs: Columns of events to watch without labels, by name: ``"number"``, ``"category"``, or
            a dictionary with ``type``, ``range``, ``categories`` and ``reference``; see `inputs`.
        max_pending: How many predictions may wait for labels; beyond it the oldest leave early,
            with a warning.
        dedupe: How long an observation with an id waits for copies, in event time; copies count
            once. Later ones are refused. At most `max_pending` observations wait.
        by: The columns to slice by, as for `Slices`. Observations and predictions need these
            columns as well, and ``window("1h", by="country")`` returns the `Slices` of a window.
        max_slices: The maximum number of slices of each kind. Beyond it, the slices whose keys have
            the highest hashes are merged into one slice ``(other)``.
        keep_rows: How many of the newest rows are also stored individually, for `last`.
        max_ahead: How far ahead of the clock a time may be; ``None`` allows any.
        store: The path of a file that keeps the state across restarts. Other processes on this
            machine may share it; each of them reads the events of all. A missing file is created.
        durable: Write events to the disk before each call returns, instead of within a second. A
            call that cannot write raises `StoreError` and keeps nothing.
        max_store: The maximum size of the store's file and its log, in bytes or as ``"2GB"``.
            Beyond it, the oldest panes expire early, those of the finest tier first.

    Raises:
        InvalidBatchError: `observe`, `predict` or `label` got an invalid time or value; nothing has
            changed.
        ValueError: A duration is not valid, or no tier has the window; the message lists the tiers.

    Memory and cost:
        One state for each pane with rows. Validating and buffering an event of scalars takes about
        a microsecond. Events reach the panes in batches, of one or two thousand or when something
        is read. A window of n panes takes about 2 log2(n) merges at worst, and one if only the
        newest pane has changed.

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
        suite: M_co,
        *,
        tiers: Sequence[Sequence[object]] = DEFAULT,
        label_ttl: str | timedelta = "1d",
        label_lateness: str | timedelta = "1d",
        default_label: object = None,
        labels: Sequence[ClassLabel] | None = None,
        types: Mapping[str, Type] | None = None,
        target_range: tuple[float, float] | None = None,
        proxy: str | None = None,
        inputs: Mapping[str, object] | None = None,
        by: SliceBy = (),
        max_slices: int = 10_000,
        max_pending: int = 10_000_000,
        dedupe: str | timedelta = DEDUPE,
        keep_rows: int = 0,
        max_ahead: str | timedelta | None = "10min",
        store: str | os.PathLike[str] | None = None,
        durable: bool = False,
        max_store: int | str | None = None,
    ) -> None:
        if not isinstance(suite, Mergeable):
            raise TypeError(f"{an(type(suite).__name__)} is not a metric or a MetricSet")
        if suite.n_rows or suite.n_omitted:
            raise ValueError(f"the suite has already seen {suite.n_rows:,} rows: reset() it")
        if isinstance(suite, Slices):
            raise TypeError("pass the suite itself, and what to slice by: Live(suite, by=...)")
        if isinstance(suite, MetricSet) and any(isinstance(m, MetricSet) for m in suite.values()):
            raise TypeError(f"{an(type(suite).__name__)} is not for Live: pass its set of metrics")
        if COUNTS in getattr(suite, "columns", {}):
            raise ValueError("counts are not for Live: every event is one row")
        sliced: Mergeable = suite
        if by:
            sliced = Slices(suite, by=by, max_slices=max_slices, overflow="other")  # type: ignore[arg-type]  # Slices checks it
        if store is not None and not os.fspath(store):
            raise ValueError(f"store={store!r}: name a file, or None to keep all in memory")
        most = size(max_store, "max_store") if isinstance(max_store, str) else max_store
        if most is not None and most < LEAST:
            raise ValueError(f"max_store={max_store!r}: at least {LEAST:,} bytes are needed")
        declared = Declared(sliced, labels, types, target_range, proxy, inputs_of(inputs))
        declared.check_default(default_label)
        if keep_rows and any(f.nested for s in sliced._plan.schemas for f in s.fields):
            raise ValueError("keep_rows holds rows of single values, not of boxes, tags or pixels")
        config = Config.of(
            tiers,
            label_ttl,
            label_lateness,
            default_label,
            max_pending,
            keep_rows,
            declared,
            dedupe,
        )
        ahead = None if max_ahead is None else duration(max_ahead, "max_ahead")
        self._bind(Pipeline(sliced.copy(), config), ahead)
        if store is not None:
            path = os.fspath(store)
            self._ingest.journal = Journal(
                self._ingest, type(self), path, durable=durable, most=most or 0
            )

    def _bind(self, pipeline: Pipeline, max_ahead: int | None) -> None:
        self._shared = SharedPipeline(pipeline)
        self._ingest = Ingest(self._shared, max_ahead)
        self._observed, self._predicted = self._ingest.observed, self._ingest.predicted
        self._labelled, self._queries = self._ingest.labelled, Queries(self._ingest)
        self._suite, self._config = pipeline.suite, self._shared.config

    # --- events ----------------------------------------------------------------------------------

    def observe(self, *, time: object, id: object = None, **columns: object) -> Self:  # noqa: A002 - the user's name for it
        """Take an event with its label, or columns of events; return this object.

        Args:
            id: A string, bytes, an integer or a UUID; for columns of events, a column of such ids.
                An event that is repeated with its id within `dedupe` counts once.
            time: The time of the event: an aware ``datetime``, a ``datetime64`` in UTC, or POSIX
                seconds such as ``time.time()``; for columns of events, a column of such times.
            **columns: The inputs of the suite's `update` by name: values, or columns.
        """
        if id is not None and self._ingest.reads_id:
            columns["id"] = id
        elif id is not None:
            self._ingest.take(self._observed, time, (id,), columns)
            return self
        waits = self._observed.add(time, (), columns)
        if not waits:
            self._ingest.take(self._observed, time, (), columns, added=waits is False)
        return self

    def predict(self, *, id: object, time: object, **columns: object) -> Self:  # noqa: A002 - the user's name for it
        """Take a prediction, or columns of predictions, without labels; return this object.

        Args:
            id: A string, bytes, an integer or a UUID, to which `label` refers. Repeating the same
                event changes nothing.
            time: The time of the prediction, as for `observe`; the row belongs to its pane.
            **columns: The inputs of the suite's `update`, without the label.
        """
        heads = (id,)
        waits = self._predicted.add(time, heads, columns) if type(id) in IDS else None
        if not waits:
            self._ingest.take(self._predicted, time, heads, columns, added=waits is False)
        return self

    def label(self, *, id: object, time: object, version: object = 1, **columns: object) -> Self:  # noqa: A002 - the user's name for it
        """Take a label, or columns of labels, before or after the prediction; return this object.

        Args:
            id: The id of the prediction.
            time: The time of the label. The label counts if this time is at most `label_ttl` after
                the prediction and at most `label_lateness` before it.
            version: A label with a larger version replaces those with smaller ones.
            **columns: The label, by the suite's name for it.
        """
        heads = (id, version)
        valid = type(id) in IDS and type(version) is int and 0 <= version < VERSIONS
        waits = self._labelled.add(time, heads, columns) if valid else None
        if not waits:
            self._ingest.take(self._labelled, time, heads, columns, added=waits is False)
        return self

    def flush(self) -> Self:
        """Transfer buffered events to the panes, as every read does; return this object.

        With a store, they are in the file when this returns, unless the file cannot be written.
        """
        if self._ingest.journal is not None:
            self._ingest.journal.write()
        with self._shared.locked():
            self._ingest.drain()
        return self

    def close(self) -> None:
        """Write buffered events, close the store, and accept no more events; reads still work.

        Raises:
            StreamMetricsError: The store cannot be written; nothing was closed.
            StateFormatError: The store was damaged meanwhile; it is closed.
        """
        journal = self._ingest.journal
        try:
            if journal is not None:
                journal.sync()
        finally:  # what is here is written, also to a file that is damaged
            if journal is not None:
                journal.close()
            self._ingest.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- queries ---------------------------------------------------------------------------------

    def now(self, time: object) -> Self:
        """Set the time of reading, which lets idle windows become empty; return this object.

        No state depends on it. A time before the newest event has no effect; ``None`` unsets it.
        """
        self._queries.now = 0 if time is None else instant(time)
        return self

    @overload
    def window(self, length: str | timedelta, *, end: object = None, by: None = None) -> M_co: ...
    @overload
    def window(
        self, length: str | timedelta, *, end: object = None, by: str | Sequence[str]
    ) -> Slices: ...
    def window(self, length: str | timedelta, *, end: object = None, by: By = None) -> object:
        """Return a new set or metric of the rows of a window.

        Args:
            length: The length: a whole number of panes of a tier that reaches back far enough. The
                finest such tier is used.
            end: The end of the window. The pane that contains it or ends there is the last one, and
                is included completely. The default is the newest pane, or the pane of `now`. If
                only coarser panes are kept that far back and the window changes, a warning states
                its times; `span` returns them.
            by: The column or columns of one kind of slices; the result is then a `Slices`.

        Raises:
            ValueError: No tier has such a window, it is no longer kept, or there are no such
                slices.

        Example:
            >>> import streammetrics as sm
            >>> live = sm.Live(sm.Mean())
            >>> _ = live.observe(time=[0, 60, 120, 180], values=[1.0, 2.0, 3.0, 4.0])
            >>> live.window("2min").compute(), live.window("2min", end=120).compute()
            (3.5, 1.5)
        """
        return self._queries.window(length, end=end, by=by)

    @overload
    def last(self, n: int, *, by: None = None) -> M_co: ...
    @overload
    def last(self, n: int, *, by: str | Sequence[str]) -> Slices: ...
    def last(self, n: int, *, by: By = None) -> object:
        """Return a new set or metric of the newest n labelled rows.

        Rows are ordered by time, then by id. Rows of `observe` have no id; at equal times they are
        ordered by their values.

        Raises:
            ValueError: n is more than `keep_rows`.

        Example:
            >>> import streammetrics as sm
            >>> live = sm.Live(sm.Mean(), keep_rows=100)
            >>> _ = live.observe(time=[30, 10, 20], values=[3.0, 1.0, 2.0])
            >>> live.last(2).compute()
            2.5
        """
        return self._queries.last(n, by=by)

    def span(self, length: str | timedelta, *, end: object = None) -> tuple[datetime, datetime]:
        """Return the start and end of the window that `window` returns for these arguments.

        A window consists of whole panes. They belong to a coarser tier if the window ended longer
        ago than the finest tier reaches back.

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
        """Return the metrics over successive windows, as columns.

        The columns are ``time``, the end of each window (UTC), ``n_rows``, ``coverage``, ``start``,
        the start of the window, and for each metric ``NAME``, ``NAME_low`` and ``NAME_high``; for a
        single metric ``value``, ``low`` and ``high``. Declared `inputs` have such columns too, e.g.
        ``age/nulls``. Metrics with non-numeric values, such as
        curves, have no column.

        The last window is that of `window`, and the first one is the first with a row. Before any
        event, the columns are empty. Beyond the reach of a tier, the series continues in coarser
        tiers, where windows are rounded up to whole panes. Windows of whole days are calendar days
        if a tier has a time zone.

        With `by`, there is a row for each slice of each window; its keys are columns, and there is
        no ``coverage``. Windows are read one after the other, and each sees the events that arrived
        before it was read.

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
        """Return the interval of each metric of a window over all values of the missing labels.

        The interval certainly contains the metric's value with all labels, whichever classes they
        are, or targets within `target_range`. It is available for areas and distances of curves,
        calibration, losses of labels, ratios of counts of two classes, accuracy, and losses of
        numbers; it is ``None`` for other metrics and for weighted rows. Expired rows without a
        label are included as long as the window is kept.

        Raises:
            ValueError: `target_range` is not valid, or no tier has such a window.

        Example:
            >>> import streammetrics as sm
            >>> live = sm.Live(sm.Accuracy(threshold=0.5))
            >>> _ = live.observe(time=10, y_true=1, y_score=0.75)
            >>> _ = live.predict(id="a", time=20, y_score=0.25)
            >>> live.window("1min").compute(), live.possible("1min")
            (1.0, Interval(low=0.5, high=1.0))
        """
        return self._queries.possible(length, end=end, target_range=target_range)

    def estimated(self, length: str | timedelta, *, end: object = None, level: float = 0.95) -> Any:
        """Return the estimate of each metric over all rows of a window, by their judgments.

        It is that of `Estimated` for the same rows: a row counts with its label if it has one, and
        by its judgment alone while it waits and after it has expired. Labels are assumed to be
        drawn at random. The estimate is ``None`` for metrics that `Estimated` does not take, and
        while no row of the window has a label.

        Args:
            length: As for `window`.
            end: As for `window`.
            level: The confidence level of the limits.

        Raises:
            ValueError: There is no `proxy`, the level is not valid, or no tier has such a window.

        Example:
            >>> import streammetrics as sm
            >>> live = sm.Live(sm.Accuracy(), proxy="judge")
            >>> predicted, judge = [1, 1, 0, 1] * 500, [1, 0, 0, 1] * 400 + [1, 1, 0, 0] * 100
            >>> _ = live.predict(id=range(2000), time=[10] * 2000, y_pred=predicted, judge=judge)
            >>> labels = [1, 0, 0, 1] * 45 + [1, 1, 1, 0] * 5
            >>> _ = live.label(id=range(200), time=[20] * 200, y_true=labels)
            >>> found = live.estimated("1min")
            >>> round(found.value, 3), round(found.low, 3), round(found.high, 3)
            (0.725, 0.683, 0.763)
        """
        return self._queries.estimated(length, end=end, level=level)

    def inputs(self, length: str | timedelta, *, end: object = None) -> InputTable:
        """Return what the declared inputs of a window are like, whether labels came or not.

        For each input: the number of rows, of missing values, of numbers out of range and of
        categories that are not known, and its distances from the reference.

        Args:
            length: As for `window`.
            end: As for `window`.

        Raises:
            ValueError: There are no inputs, or no tier has such a window.

        Example:
            >>> import streammetrics as sm
            >>> age = {"type": "number", "range": [18, 100], "reference": range(20, 60)}
            >>> live = sm.Live(sm.Accuracy(), inputs={"age": age, "country": "category"})
            >>> _ = live.predict(id="a", time=10, y_pred=1, age=17, country="DE")
            >>> _ = live.predict(id="b", time=20, y_pred=0, age=42, country=None)
            >>> found = live.inputs("1min")
            >>> found[0].outside, found[1].nulls, found[0].distances["ks"].value
            (1, 1, 0.5)
        """
        return self._queries.inputs(length, end=end)

    def decayed(self, half_life: str | timedelta) -> M_co:
        """Return a new set or metric of all rows, with exponentially decaying weights.

        A row in pane k weighs ``2 ** -((newest - k) * length / half_life)``; sums of weights are
        exact. The panes are those of the finest tier that covers eight half-lives, or else of the
        tier that reaches back furthest.

        Raises:
            InvalidBatchError: A metric does not support row weights, e.g. a ranking metric.

        Example:
            >>> import streammetrics as sm
            >>> live = sm.Live(sm.Mean())
            >>> _ = live.observe(time=[0, 60], values=[1.0, 4.0])
            >>> live.decayed("1min").compute()
            3.0
        """
        found: M_co = self._queries.decayed(half_life)
        return found

    def coverage(self, length: str | timedelta, *, end: object = None) -> Coverage:
        """Count the predictions of a window that are labelled, pending, expired and so on.

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
        """Return the state of each rule: ok, firing or no data, with its start and reason.

        A rule judges a pane once no more events are expected in it: with predictions, after
        `label_ttl` + `label_lateness` or the rule's ``after=``; without, after one pane of the
        finest tier. Where panes of its tier end, coarser ones go on with the history. Alerts
        therefore depend only on the events, and a replay reproduces the alerts of the live run.
        `now` sets the time.

        Raises:
            ValueError: A rule names a metric that does not exist, or a window that no tier has.

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
        """Labelled rows in the panes of the coarsest tier, which reaches back furthest."""
        return int(self._queries.shown(self._queries.whole()).n_rows)

    @property
    def nbytes(self) -> int:
        """Bytes used by the state."""
        with self._queries.reading() as pipeline:
            return pipeline.nbytes

    @property
    def dropped(self) -> int:
        """Rows that came too late for every tier; not part of the state."""
        with self._queries.reading() as pipeline:
            return pipeline.totals["dropped"]

    def asgi(
        self,
        *,
        title: str = "Live metrics",
        window: str = "1h",
        every: str = "5min",
        token: str = "",
        local: bool = False,
    ) -> Foreign:
        """Return an ASGI application that takes events and serves queries and a page.

        Its endpoints are described in docs/live.md.

        Args:
            title: The title of the page.
            window: The window of the values on the page.
            every: The distance between the points of the page's charts.
            token: The bearer token that requests need; if empty, they need none.
            local: Whether to answer only requests to host names of this machine.
        """
        from streammetrics.live.service.app import application  # noqa: PLC0415 - needs the extra
        from streammetrics.live.service.server import PageView, Server  # noqa: PLC0415

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
        """Write a report of all rows and of their history, as `MetricSet.report` does.

        Args:
            path: The file; an existing one is replaced.
            title: The title of the report.
            confidence: The level of the confidence intervals.
            rules: Rules whose alerts are part of the report.

        Raises:
            ImportError: Matplotlib or Jinja is not installed.
            OSError: The file cannot be written.
        """
        reported(self, path, title=title, confidence=confidence, rules=rules)

    # --- states ----------------------------------------------------------------------------------

    def merge(self, *others: Live) -> Self:
        """Merge the states of others into this one, and return it; the others stay unchanged.

        Raises:
            IncompatibleMetricsError: Their configuration differs; nothing has changed.
        """
        for other in others:
            self._check_alike(other)
        if self._ingest.journal is not None:
            raise StreamMetricsError("a Live with a store takes events, not states of others")
        self._ingest.merge([other._ingest.snapshot() for other in others])  # never hold two locks
        return self

    def _check_alike(self, other: object) -> None:
        if not isinstance(other, Live):
            raise IncompatibleMetricsError(f"cannot merge {an(type(other).__name__)} into a Live")
        self._shared.current.check_alike(other._shared.current)

    def copy(self) -> Self:
        """Return an independent object with the same configuration and state."""
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
        """Drop all events; the configuration stays.

        Raises:
            StreamMetricsError: There is a store, which other workers may share: remove the file.
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
