"""A live state as rules see it: the panes that are over, and what was found in them before."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from streammetrics.core.locks import Locked
from streammetrics.core.metric_set import MetricSet
from streammetrics.live.alerts.rule import WindowRule, metric_of
from streammetrics.live.alerts.states import Alerts, alert_of
from streammetrics.live.coverage import SUITE as COVERAGE
from streammetrics.live.coverage import coverage_of
from streammetrics.live.reading import Span
from streammetrics.live.stream import merged
from streammetrics.live.time import duration, shown_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from streammetrics.core.layout import State
    from streammetrics.live.alerts.rule import Moment, Rule
    from streammetrics.live.config import Config
    from streammetrics.live.stream import Stream
    from streammetrics.live.tiers import Tier

Parts = tuple["State", ...]  # states that together have seen the rows of a window

_RULES = 1024  # of which it is remembered what they found


def delay_of(config: Config, after: str | None, *, waits: bool) -> int:
    """Return how long after its end a pane is judged.

    Args:
        config: The tiers, and how long labels may take.
        after: What the rule says of it, if it does.
        waits: Whether predictions wait for their labels.
    """
    if after is not None:
        return duration(after, "after")
    return config.horizon if waits else config.tiers[0].length


def place_of(tiers: Sequence[Tier], length: int, back: int) -> int:
    """Return the finest tier that has windows of a length, which ended so long ago.

    Raises:
        ValueError: There is none.
    """
    for place, tier in enumerate(tiers):
        reach = tier.length * (tier.count - 1)  # the newest pane is not over
        if length % tier.length == 0 and length + back <= reach:
            return place
    raise ValueError(
        f"a window of {shown_duration(length)} is no whole number of panes, or longer than "
        f"they are kept once {shown_duration(back)} are over, for which the rule waits; "
        f"there are {'; '.join(tier.shown for tier in tiers)}: keep them longer, or judge earlier "
        'with after="5min"'
    )


def check_windows(config: Config, rule: Rule, *, waits: bool) -> None:
    """Raise `ValueError` where a rule judges windows that no tier has.

    Args:
        config: The tiers, and how long labels may take.
        rule: The rule.
        waits: Whether predictions wait for their labels.
    """
    if isinstance(rule, WindowRule):
        back = rule.reach + delay_of(config, rule.after, waits=waits)
        for length in rule.lengths:
            place_of(config.tiers, length, back)


class Found(NamedTuple):
    """What was made of some states, which are the same objects as long as no row has come."""

    parts: tuple[Parts, ...]
    made: Any


class View:
    """A stream at a time of reading, as one rule sees it.

    Args:
        stream: The stream, of which nobody else changes anything meanwhile.
        clock: The time of reading, not before the newest event.
        before: What the rule made of parts when it looked last.
    """

    def __init__(self, stream: Stream, clock: int, before: dict[Any, Found]) -> None:
        self._stream, self.clock, self._before = stream, clock, before
        self.suite = stream.suite  # the empty set, or metric
        self.kept: dict[Any, Found] = {}

    @property
    def newest(self) -> int:
        """The newest time of an event, below 0 where there was none."""
        return self._stream.panes.newest

    @property
    def tiers(self) -> tuple[Tier, ...]:
        """The tiers, the finest first."""
        return self._stream.config.tiers

    def until(self, after: str | None) -> int:
        """Return the time before which panes are over: nothing more is expected in them.

        Args:
            after: How long after its end a pane is; ``None``: as long as a label in time may still
                come where predictions wait for theirs, and else one pane of the finest tier.
        """
        return self.clock - self._delay(after)

    @property
    def _oldest(self) -> int:
        """A time before which there are no rows, of which so nothing is to be said."""
        return min(self._stream.oldest(), self.clock)

    def _delay(self, after: str | None) -> int:
        return delay_of(self._stream.config, after, waits=bool(self._stream.join.names))

    def judged(self, rule: WindowRule) -> Callable[[], list[Moment]]:
        """Return what judges the windows that end with each pane that is over."""
        delay = self._delay(rule.after)
        if self.newest < 0:
            return list
        lengths = rule.lengths
        short = min(lengths)
        back = rule.reach + delay
        tier = self.tiers[place_of(self.tiers, short, back)]
        oldest = tier.oldest(self.newest) + short // tier.length - 1
        last = tier.number(max(self.clock - delay, 0)) - 1
        first = max(oldest, min(tier.number(self._oldest), last), 0)
        ends = [tier.start(number + 1) for number in range(first, last + 1)]
        every = [self._spans(length, back, ends) for length in lengths]
        whole = tuple(self._whole(spans, rule.counted) for spans in every)
        read = partial(self._read, rule, ends, every)
        return self.later(("all", len(ends), *ends[:1]), whole, read)

    def _read(
        self, rule: WindowRule, ends: list[int], every: list[list[Span | None]]
    ) -> Callable[[], list[Moment]]:
        """Read the windows that end one after the other; return what judges those that are new."""
        return partial(
            self._each, rule, ends, [self._parts(spans, rule.counted) for spans in every]
        )

    def _each(
        self, rule: WindowRule, ends: list[int], read: list[list[Parts | None]]
    ) -> list[Moment]:
        moments = []
        blank: Moment | None = None  # of windows without rows, which are all alike
        for place, end in enumerate(ends):
            parts = tuple(found for of in read if (found := of[place]) is not None)
            if len(parts) == len(read) and not any(parts):
                blank = blank or self._judge(rule, end, parts)
                moments.append(blank._replace(end=end))
            elif len(parts) == len(read):
                moments.append(self.made(end, parts, partial(self._judge, rule, end)))
        return moments

    def later(
        self, key: Any, parts: tuple[Parts, ...], read: Callable[[], Callable[[], Any]]
    ) -> Callable[[], Any]:
        """Return what makes something of parts that cover all that it is made of.

        Where they are those from which it was made before, that is what it makes. Else they are
        read now, while nobody else changes the stream, and it takes its time afterwards.
        """
        found = self._before.get(key)
        if found is not None and _are_same(found.parts, parts):
            self.kept.update(self._before)
            return lambda: found.made
        make = read()
        return lambda: self.made(key, parts, lambda _: make())

    def _judge(self, rule: WindowRule, end: int, parts: tuple[Parts, ...]) -> Moment:
        if rule.counted:
            windows = tuple(coverage_of(merged(COVERAGE, p), (0,) * 5) for p in parts)
            return rule.judge(end, windows)
        return rule.judge(end, tuple(self.window(each, rule.reads) for each in parts))

    def window(self, parts: Parts, metric: str | None = None) -> Any:
        """Return the set of a window, or one metric, for which nothing else is merged."""
        suite = self.suite
        if metric is None or type(suite) is not MetricSet:
            whole = suite._at(merged(suite, parts))
            return whole if metric is None else metric_of(whole, metric)
        only = suite[metric]
        return only._at(merged(only, [suite._layout.part(one, only._layout) for one in parts]))

    def busy(self) -> list[tuple[int, int]]:
        """Return the times in which there are events, as runs of panes that begin in order."""
        return self._stream.busy()

    def panes(self, after: str | None) -> list[Span]:
        """Return the panes that are over, the oldest first, as runs of one tier each.

        They cover the time that any tier reaches back, each row once, by the finest panes there
        are.
        """
        if self.newest < 0:
            return []
        found: list[Span] = []
        until, longest = self.until(after), self.tiers[-1]
        oldest = max(longest.start(longest.number(self._oldest)), 0)  # where panes of all begin
        for place, tier in enumerate(self.tiers):
            last = tier.number(max(until, 0)) - 1
            first = max(tier.oldest(self.newest), tier.number(oldest), 0)
            if place + 1 < len(self.tiers):  # from where a pane of the next one begins
                first = self._aligned(first, tier, self.tiers[place + 1])
            if first <= last:
                found = [Span(place, first, last), *found]
            until = min(until, tier.start(first))
        return found

    def whole(self, runs: Sequence[Span]) -> tuple[Parts, ...]:
        """Return what each run of panes is made of."""
        return tuple(self._whole([run], counted=False) for run in runs)

    def each(self, runs: Sequence[Span]) -> list[tuple[int, Parts]]:
        """Return when each pane of some runs ends, and what was seen in it."""
        found = []
        for place, first, last in runs:
            spans = [Span(place, number, number) for number in range(first, last + 1)]
            parts = self._stream.parts(spans, self.clock)
            ends = [self.tiers[place].start(span.last + 1) for span in spans]
            found += list(zip(ends, map(tuple, parts), strict=True))
        return found

    def _aligned(self, first: int, tier: Tier, coarse: Tier) -> int:
        """Return the first pane, from one on, at which or after which a coarse one begins."""
        start = tier.start(first)
        number = coarse.number(start)
        begins = coarse.start(number)
        if begins < start:
            begins = coarse.start(number + 1)
        place = tier.number(begins)
        return place if tier.start(place) == begins else place + 1

    def _spans(self, length: int, back: int, ends: Sequence[int]) -> list[Span | None]:
        """Return the panes of windows, ``None`` where they are no longer kept.

        Where panes are longer than those by which it is judged, the last whole one counts.
        """
        place = place_of(self.tiers, length, back)
        tier = self.tiers[place]
        n, oldest = length // tier.length, tier.oldest(self.newest)
        lasts = [tier.number(end) - 1 for end in ends]
        return [Span(place, k - n + 1, k) if k - n + 1 >= oldest else None for k in lasts]

    def _whole(self, spans: Sequence[Span | None], counted: bool) -> Parts:
        """Return what all windows together are made of."""
        some = [span for span in spans if span]
        if not some:
            return ()
        whole = some[0]._replace(last=some[-1].last)
        return tuple(self._stream.parts([whole], self.clock, counted=counted)[0])

    def _parts(self, spans: Sequence[Span | None], counted: bool) -> list[Parts | None]:
        some = iter(self._stream.parts([s for s in spans if s], self.clock, counted=counted))
        return [tuple(next(some)) if span else None for span in spans]

    def made(
        self, key: Any, parts: tuple[Parts, ...], make: Callable[[tuple[Parts, ...]], Any]
    ) -> Any:
        """Return what is made of parts, or was made of the very same ones."""
        found = self._before.get(key)
        if found is None or not _are_same(found.parts, parts):
            found = Found(parts, make(parts))
        self.kept[key] = found
        return found.made


def _are_same(one: tuple[Parts, ...], other: tuple[Parts, ...]) -> bool:
    return all(
        len(a) == len(b) and all(x is y for x, y in zip(a, b, strict=True))
        for a, b in zip(one, other, strict=True)
    )


class Watch:
    """What rules found when they looked last, so that only what is new is read."""

    def __init__(self) -> None:
        self._found: dict[Rule, dict[Any, Found]] = {}
        self._guard = Locked()  # which is taken before that of the stream

    def alerts(
        self,
        stream: AbstractContextManager[Stream],
        clock: Callable[[], int],
        rules: Sequence[Rule],
    ) -> Alerts:
        """Return the alerts of rules, in their order.

        All are judged by one state of the stream, which is held while they read it: others go on
        while what was read is judged, as states are never written to.
        """
        with self._guard._lock:
            with stream as held:
                now = clock()
                views = [View(held, now, self._found.get(rule, {})) for rule in rules]
                judges = [rule.moments(view) for rule, view in zip(rules, views, strict=True)]
            found = zip(rules, views, judges, strict=True)
            alerts = []
            for rule, view, judge in found:
                alerts.append(alert_of(rule, judge(), rule.reach))
                self._found[rule] = view.kept
            while len(self._found) > _RULES:
                del self._found[next(iter(self._found))]
            return Alerts(alerts)
