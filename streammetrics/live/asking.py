"""What is asked of a live state: windows, what is missing from them, and how they went."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

from streammetrics.live.alerts.rule import Rule
from streammetrics.live.events import EPOCH, duration, instant, shown_duration, shown_time
from streammetrics.live.possible.intervals import possible
from streammetrics.live.possible.targets import check_range
from streammetrics.live.reading import Span, bounds_of, span_of, spans_of
from streammetrics.live.series import Series, WindowRead, decayed, series_of
from streammetrics.live.stream import merged
from streammetrics.live.telling import tell
from streammetrics.live.windows import size_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from streammetrics.core.feeding.states import State
    from streammetrics.core.locks import Locked
    from streammetrics.core.mergeable import Mergeable
    from streammetrics.live.alerts.rule import Alerts, Watch
    from streammetrics.live.config import Config
    from streammetrics.live.events import By
    from streammetrics.live.panes import Coverage
    from streammetrics.live.store import Keeper
    from streammetrics.live.stream import Stream


class Asking:
    """Readings of a stream: each sees every event that came before, here and in the store."""

    _suite: Mergeable
    _config: Config
    _stream: Stream
    _guard: Locked
    _watch: Watch
    _keeper: Keeper | None
    _now: int  # the time of reading, as somebody said

    @abstractmethod
    def _catch_up(self) -> None:
        """Read what other workers have written; before the lock is taken."""

    @abstractmethod
    def _drain(self) -> None:
        """Take the events that wait; the lock is held."""

    @abstractmethod
    def _holding(self, held: str) -> AbstractContextManager[None]:
        """Say what is done with the stream; the lock is held."""

    @contextmanager
    def _at_rest(self) -> Iterator[Stream]:
        """Hold the lock around the stream, in which is all that came, here and in the store."""
        self._catch_up()
        with self._at_hand() as stream:
            yield stream

    @contextmanager
    def _at_hand(self) -> Iterator[Stream]:
        """Hold the lock around the stream, in which is all that came here."""
        with self._guard._lock:
            self._drain()
            with self._holding("reading"):
                yield self._stream

    def now(self, time: object) -> Self:
        """Say what time it is for those who read, so that windows of an idle stream empty.

        No state depends on it, and no time before the newest event's counts; ``None`` takes it
        back. Return this object.
        """
        self._now = 0 if time is None else instant(time)
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
        until = None if end is None else instant(end, "end")
        state = self._state(lambda: self._span(length, until))
        return self._stream.keys.shown(state, by)

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
        most = self._config.keep_rows
        if isinstance(n, bool) or not isinstance(n, int) or not 0 < n <= most:
            raise ValueError(f"last({n!r}): keep_rows={most:,} rows are kept one by one")
        with self._at_rest() as stream:
            return stream.keys.shown(stream.last(n, self._clock), by)

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
        with self._at_rest():
            times = bounds_of(self._config.tiers, self._span(length, until, told=False))
        start, end_ = (EPOCH + timedelta(microseconds=time // 1000) for time in times)
        return start, end_

    def _span(self, length: str | timedelta, until: int | None, *, told: bool = True) -> Span:
        """Return the panes of a window; `told`: warn where they are coarser than others are."""
        tiers, newest = self._config.tiers, self._stream.panes.newest
        found = span_of(tiers, length, newest, until, self._clock)
        if told and until is not None:
            fine = span_of(tiers, length, max(until - 1, 0), until, until)
            start, end = bounds_of(tiers, found)
            if (start, end) != bounds_of(tiers, fine):
                tell(
                    f"the window of {shown_duration(duration(length, 'window'))} that ends at "
                    f"{shown_time(until)} is of {tiers[found.place].shown}, as finer ones are no "
                    f"longer kept: it is from {shown_time(start)} to {shown_time(end)}; span() "
                    "returns both"
                )
        return found

    @property
    def _clock(self) -> int:
        """The time of reading."""
        return max(self._stream.panes.newest, self._now, 0)

    def _state(self, choose: Callable[[], Span]) -> State:
        """Return the merged state of some panes, which are chosen with the lock held.

        The lock is held to find the states that are merged, and not while they are: a long history
        keeps nobody waiting.
        """
        self._catch_up()
        with self._at_hand():
            span = choose()
        self._prepare(span)
        with self._at_hand() as stream:
            if not stream.keeps(span):  # newer events came meanwhile
                span = choose()
            known = stream.known(self._clock)
            parts = [] if span in known else stream.parts(span, self._clock)
        if span not in known:
            known[span] = merged(self._suite, parts)
        return known[span]

    def _prepare(self, span: Span, go_on: Callable[[], None] | None = None) -> None:
        """Merge the nodes that a span is read from, each without the lock.

        Args:
            span: Some panes.
            go_on: What is called before each of them, and raises where nobody waits any more.
        """
        if go_on is not None:
            go_on()
        with self._at_hand() as stream:
            due = stream.unmerged(span, self._clock)
        for tree, node in due:
            if go_on is not None:
                go_on()
            with self._at_hand():
                parts = tree.parts(node)
            if parts:
                state = tree.plan.merged(parts[0], parts[1:])
                with self._at_hand():
                    tree.keep(node, parts, state)

    def _cost(self, span: Span) -> int:
        """Return how many bytes of states a span is merged from."""
        with self._at_hand() as stream:
            return size_of(stream.parts(span, self._clock))

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
        until = None if end is None else instant(end, "end")
        check_range(target_range)
        if target_range is None:
            target_range = self._config.declared.target_range
        self._catch_up()
        with self._at_hand():
            span = self._span(length, until)
        self._prepare(span)
        with self._at_hand() as stream:
            if not stream.keeps(span):
                span = self._span(length, until)
            parts, rows = stream.parts(span, self._clock), stream.unlabelled(span, self._clock)
            keys = stream.keys
        state = keys.whole(merged(self._suite, parts))
        return possible(keys.inner, state, rows, target_range)

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
        with self._at_rest() as stream:
            states, inner = decayed(stream, length, self._clock), stream.keys.inner
            return inner._at(inner._plan.merged(inner._plan.start, states))

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
        until = None if end is None else instant(end, "end")
        with self._at_rest() as stream:
            return stream.coverage(self._span(length, until), self._clock)

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
        if isinstance(rules, Rule):
            raise TypeError("alerts() takes rules in a list: live.alerts([rule])")
        for rule in rules:
            if not isinstance(rule, Rule):
                raise TypeError(f'{rule!r} is no rule, such as sm.Below("auc", 0.8)')
            rule.check(self._stream.keys.inner)
        return self._watch.alerts(self._at_rest(), lambda: self._clock, rules)

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
        return series_of(self._suite, self._read(self._spans(window, every)), by)

    def _course(self, place: int, panes: int, since: int) -> Series:
        """Return the metrics over runs of panes of one tier, one after the other since a time."""
        tier = self._config.tiers[place]
        with self._at_rest():
            lasts = range(tier.number(self._clock), tier.number(since) - 1, -panes)
        spans = [Span(place, last - panes + 1, last) for last in reversed(lasts)]
        return series_of(self._suite, self._read(spans))

    def _spans(self, window: str | timedelta, every: str | timedelta) -> list[Span]:
        """Return the windows of a series, the oldest first."""
        tiers = self._config.tiers
        with self._at_rest() as stream:
            newest, clock = stream.panes.newest, self._clock
            return spans_of(tiers, window, every, newest, clock, stream.oldest())

    def _read(
        self, spans: Iterable[Span], go_on: Callable[[], None] | None = None
    ) -> Iterator[WindowRead]:
        """Yield what some windows hold, but for those whose panes leave before they are read."""
        for span in spans:
            self._prepare(span, go_on)
            with self._at_hand() as stream:
                if not stream.keeps(span):
                    continue
                parts = stream.parts(span, self._clock)
                share = stream.share(span, self._clock)
            yield WindowRead(span, *bounds_of(self._config.tiers, span), parts, share)

    @property
    def n_rows(self) -> int:
        """Rows with a label in the panes of the coarsest tier, which reaches back furthest."""
        return int(self._reach().n_rows)

    def _reach(self) -> Any:
        """Return the rows of all panes of the coarsest tier."""
        return self._stream.keys.shown(self._state(self._longest))

    def _whole(self) -> object:
        """Return a set, or metric, or slices where there are some, of all that is kept."""
        return self._suite._at(self._state(self._longest))

    def _longest(self) -> Span:
        """Return all panes of the coarsest tier."""
        place, tier = len(self._config.tiers) - 1, self._config.tiers[-1]
        last = tier.number(self._clock)
        return Span(place, last - tier.count + 1, last)

    def _since(self) -> tuple[int, int]:
        """Return when the oldest pane begins that has rows, and the time of reading."""
        with self._at_rest() as stream:
            return min(stream.oldest(), self._clock), self._clock

    @property
    def nbytes(self) -> int:
        """Bytes of state held now."""
        with self._at_rest() as stream:
            return stream.nbytes

    @property
    def dropped(self) -> int:
        """Rows that came so late that no tier keeps their pane; counted beside the state."""
        with self._at_rest() as stream:
            return stream.panes.dropped
