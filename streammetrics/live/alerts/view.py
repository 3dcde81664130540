"""A live state as rules see it: the panes that are over, and what was found in them before."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.locks import Locked
from streammetrics.live.alerts.rule import WindowRule
from streammetrics.live.alerts.sliding import LastLook, PaneRun, Reads, Windows
from streammetrics.live.alerts.states import Alerts, alert_of
from streammetrics.live.coverage import SUITE as COVERAGE
from streammetrics.live.coverage import coverage_of
from streammetrics.live.reading import Span
from streammetrics.live.time import duration, shown_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from streammetrics.core.mergeable import Mergeable
    from streammetrics.core.types import Ints
    from streammetrics.live.alerts.rule import Moment, Rule
    from streammetrics.live.config import Config
    from streammetrics.live.stream import Stream
    from streammetrics.live.tiers import Tier

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


class View:
    """A stream at a time of reading, as one rule sees it.

    Args:
        stream: The stream, of which nobody else changes anything meanwhile.
        clock: The time of reading, not before the newest event.
        seen: What the rule saw when it looked last; what it sees now stands there afterwards.
        lines: Panes that other rules have looked at.
    """

    def __init__(
        self, stream: Stream, clock: int, seen: LastLook, lines: dict[tuple[Span, bool], PaneRun]
    ) -> None:
        self._stream, self.clock, self.seen, self._lines = stream, clock, seen, lines
        self._keys = stream.keys
        self.suite = stream.keys.inner  # the empty set, or metric, as it is of all rows

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
        short, back = min(rule.lengths), rule.reach + delay
        place = place_of(self.tiers, short, back)
        tier = self.tiers[place]
        oldest = tier.oldest(self.newest) + short // tier.length - 1
        last = tier.number(max(self.clock - delay, 0)) - 1
        first = max(oldest, min(tier.number(self._oldest), last), 0)
        if first > last:
            return list
        ends, windows = self._ends(Span(place, first, last)), []
        for length in rule.lengths:
            place = place_of(self.tiers, length, back)
            panes, lasts = length // self.tiers[place].length, self._lasts(place, ends)
            kept = lasts - panes + 1 >= self.tiers[place].oldest(self.newest)
            if not kept.any():
                return list
            begin = int(lasts[kept][0]) - panes + 1
            line = self._line(Span(place, begin, int(lasts[-1])), counted=rule.counted)
            windows.append(Windows(line, lasts, panes, kept))
        return partial(self._judged, rule, ends, windows)

    def _lasts(self, place: int, ends: Ints) -> Ints:
        """Return the last panes of windows: where panes are long, the last whole one."""
        return self.tiers[place].numbers(ends) - 1

    def _judged(self, rule: WindowRule, ends: Ints, windows: Sequence[Windows]) -> list[Moment]:
        """Return what is found at each end; windows that are as they were are not judged again."""
        kept = np.all([each.kept for each in windows], axis=0)
        before = self.seen.lines or [None] * len(windows)
        pairs = list(zip(windows, before, strict=True))
        new = np.any([mine.touched(mine.line.changed(old)) for mine, old in pairs], axis=0)
        empty = ~np.any([mine.touched(mine.line.filled) for mine in windows], axis=0)
        known: dict[int, Moment] = dict(self.seen.made or {})
        found = {end: known[end] for end in ends[kept & ~new].tolist() if end in known}
        due = kept.copy()
        due[kept] = [end not in found for end in ends[kept].tolist()]
        reads = self._reads(rule)
        if (due & empty).any():  # windows without rows are all alike
            blank = rule.judge(0, tuple(reads.of(()) for _ in windows))
            found |= {end: blank._replace(end=end) for end in ends[due & empty].tolist()}
        asked = np.flatnonzero(due & ~empty)
        each = zip(*[mine.read(reads, asked) for mine in windows], strict=True)
        for end, read in zip(ends[asked].tolist(), each, strict=True):
            found[end] = rule.judge(end, read)
        self.seen = LastLook(tuple(mine.line for mine in windows), found)
        return [found[end] for end in ends[kept].tolist()]

    def _reads(self, rule: WindowRule) -> Reads:
        """Return how a rule reads states: only what it judges is merged."""
        if rule.counted:
            return Reads(COVERAGE, lambda state: state, lambda state: coverage_of(state, (0,) * 5))
        return self.reads(rule.part(self.suite))

    def reads(self, part: Mergeable) -> Reads:
        """Return how a part of the suite is read of states of the stream, whatever their keys."""
        parted, whole = self.suite._layout.parting(part._layout), self._keys.whole
        return Reads(part, lambda state: parted(whole(state)), part._at)

    def _line(self, span: Span, *, counted: bool = False) -> PaneRun:
        """Return some panes as they are now."""
        line = self._lines.get((span, counted))
        if line is None:
            parts = self._stream.each(span, self.clock, counted=counted)
            line = self._lines[span, counted] = PaneRun(span.first, parts)
        return line

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

    def lines(self, runs: Sequence[Span]) -> list[tuple[Ints, PaneRun]]:
        """Return when the panes of some runs end, and what was seen in them."""
        return [(self._ends(run), self._line(run)) for run in runs]

    def _ends(self, span: Span) -> Ints:
        """Return when some panes end."""
        tier = self.tiers[span.place]
        return np.array([tier.start(n + 1) for n in range(span.first, span.last + 1)], np.int64)

    def _aligned(self, first: int, tier: Tier, coarse: Tier) -> int:
        """Return the first pane, from one on, at which or after which a coarse one begins."""
        start = tier.start(first)
        number = coarse.number(start)
        begins = coarse.start(number)
        if begins < start:
            begins = coarse.start(number + 1)
        place = tier.number(begins)
        return place if tier.start(place) == begins else place + 1


class Watch:
    """What rules found when they looked last, so that only what is new is read."""

    def __init__(self) -> None:
        self._seen: dict[Rule, LastLook] = {}
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
                lines: dict[tuple[Span, bool], PaneRun] = {}
                views = [View(held, now, self._seen.get(rule, LastLook()), lines) for rule in rules]
                judges = [rule.moments(view) for rule, view in zip(rules, views, strict=True)]
            alerts = []
            for rule, view, judge in zip(rules, views, judges, strict=True):
                alerts.append(alert_of(rule, judge(), rule.reach))
                self._seen[rule] = view.seen
            while len(self._seen) > _RULES:
                del self._seen[next(iter(self._seen))]
            return Alerts(alerts)
