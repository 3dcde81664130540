"""What is asked of a live state: windows, what is missing from them, and how they went."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from streammetrics.live.alerts.rule import Rule
from streammetrics.live.decay import decayed
from streammetrics.live.possible.targets import check_range
from streammetrics.live.reading import Span, span_of, spans_of
from streammetrics.live.series import Series, series_over
from streammetrics.live.time import duration, instant

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager
    from datetime import timedelta

    from streammetrics.core.locks import Locked
    from streammetrics.core.mergeable import Mergeable
    from streammetrics.live.alerts.states import Alerts
    from streammetrics.live.alerts.view import Watch
    from streammetrics.live.config import Config
    from streammetrics.live.coverage import Coverage
    from streammetrics.live.keys import By
    from streammetrics.live.stream import Stream


class Asking:
    """Readings of a stream: each sees every event that came before, here and in the store."""

    _suite: Mergeable
    _config: Config
    _stream: Stream
    _guard: Locked
    _watch: Watch
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
        """Hold the lock around the stream, in which is all that came."""
        self._catch_up()
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
        with self._at_rest():
            return self._over(self._span(length, until), by)

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

    def _span(self, length: str | timedelta, until: int | None) -> Span:
        newest = self._stream.panes.newest
        return span_of(self._config.tiers, length, newest, until, self._clock)

    @property
    def _clock(self) -> int:
        """The time of reading."""
        return max(self._stream.panes.newest, self._now, 0)

    def _over(self, span: Span, by: By = None) -> Any:
        return self._stream.keys.shown(self._stream.over(span, self._clock), by)

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
        with self._at_rest() as stream:
            return stream.possible(self._span(length, until), self._clock, target_range)

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
            return inner._at(inner._layout.merged(inner._layout.start, states))

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
            >>> live.alerts([sm.Above("value", 5, window="10min"), sm.Below("value", 0)])
            alert                     state   since                 why
            value above 5 over 10min  firing  1970-01-01 01:46:00Z  value 5.8 of 10 rows
            value below 0 over 1h     ok      1970-01-01 00:01:00Z  value 3.4 of 60 rows
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

        The columns are ``time``, the end of each window (UTC), ``n_rows``, ``coverage``, and of
        each metric ``NAME``, ``NAME_low`` and ``NAME_high``; of a single metric ``value``, ``low``
        and ``high``. Values that are no numbers, as those of curves, have no column. The last
        window is that of `window`; the first one begins with the oldest pane that is kept. Before
        any event, and without `now`, there is no window: columns without rows.

        With `by`, a kind of the slices that are kept, there is a row for each slice of each window:
        its keys are columns, and there is no ``coverage``.

        Example:
            >>> import streammetrics as sm
            >>> live = sm.Live(sm.Mean(), tiers=[("1min", "4min")])
            >>> _ = live.observe(time=[0, 60, 120, 180], values=[1.0, 2.0, 3.0, 4.0])
            >>> live.series("2min", every="1min")["value"]
            array([1.5, 2.5, 3.5])
        """
        with self._at_rest() as stream:
            newest = stream.panes.newest
            spans = spans_of(self._config.tiers, window, every, newest, self._clock)
            return series_over(stream, spans, self._clock, by)

    def _course(self, place: int, panes: int, since: int) -> Series:
        """Return the metrics over runs of panes of one tier, one after the other since a time."""
        tier = self._config.tiers[place]
        with self._at_rest() as stream:
            lasts = range(tier.number(self._clock), tier.number(since) - 1, -panes)
            spans = [Span(place, last - panes + 1, last) for last in reversed(lasts)]
            return series_over(stream, spans, self._clock)

    @property
    def n_rows(self) -> int:
        """Rows with a label in the panes of the coarsest tier, which reaches back furthest."""
        return int(self._reach().n_rows)

    def _reach(self) -> Any:
        """Return the rows of all panes of the coarsest tier."""
        with self._at_rest():
            return self._over(self._longest())

    def _whole(self) -> object:
        """Return a set, or metric, or slices where there are some, of all that is kept."""
        with self._at_rest() as stream:
            return self._suite._at(stream.over(self._longest(), self._clock))

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
