"""Rules of alerts, the alerts they give, and the windows that they judge."""

from __future__ import annotations

import math
import operator
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.columns.batch import near
from streammetrics.core.configured import Configured, configure, require, written
from streammetrics.core.errors import UndefinedMetricWarning, an
from streammetrics.core.locks import Locked
from streammetrics.core.metric_set import MetricSet
from streammetrics.core.results.result import Result
from streammetrics.core.results.table import Table
from streammetrics.live.events import duration, shown_duration
from streammetrics.live.panes import SUITE as COVERAGE
from streammetrics.live.panes import coverage_of
from streammetrics.live.pipeline import merged
from streammetrics.live.spans import ALONE, Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from streammetrics.core.feeding.states import State as MetricState
    from streammetrics.core.mergeable import Mergeable
    from streammetrics.core.types import Bools, Ints, Places

    Marks = Bools
    from contextlib import AbstractContextManager

    from streammetrics.live.config import Config
    from streammetrics.live.events import Tier
    from streammetrics.live.pipeline import Pipeline


Verdict = Literal["bad", "good", "between", "no data"]

_DURATIONS = frozenset({"window", "windows", "length", "for_", "after"})  # among the parameters


class Moment(NamedTuple):
    """The verdict of a rule at the end of a window."""

    end: int  # nanoseconds
    verdict: Verdict
    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    rows: int = 0
    told: str = ""


class Reading(NamedTuple):
    """The value of a metric of a window, its bounds, and its rows."""

    value: float
    low: float
    high: float
    rows: int

    @property
    def known(self) -> bool:
        """Whether there is a value."""
        return not (math.isnan(self.low) or math.isnan(self.high))


class Rule(Configured, ABC):
    """A rule of an alert, with its parameters checked and fixed.

    Rules that are equal have equal parameters. `name` tells one from others to people and machines.
    """

    name: str = ""

    def _configure(self, **parameters: object) -> None:
        """Set the parameters, durations as text in canonical form.

        Each rule has a constructor of its own, as people write it.
        """
        kept = {
            name: self._shortened(value, name) if name in _DURATIONS else value
            for name, value in parameters.items()
        }
        configure(self, (), kept)

    def _shortened(self, value: Any, name: str) -> object:
        """Return a duration, or several, in canonical form; ``None`` if that is the default."""
        default = self._parameters[name].given
        if isinstance(default, tuple):
            return tuple(shown_duration(duration(each, name)) for each in value)
        if value is None and default is None:
            return None
        return shown_duration(duration(value, name))

    @property
    def title(self) -> str:
        """The name, or a short description."""
        return self.name or self._says()

    @abstractmethod
    def _says(self) -> str:
        """Return a short description."""

    @property
    def reach(self) -> int:
        """How long the verdict must be bad before the alert fires, in nanoseconds."""
        return 0

    def check(self, suite: Mergeable) -> None:
        """Raise `ValueError` where a suite does not have what the rule reads."""

    @abstractmethod
    def moments(self, view: Any) -> Callable[[], list[Moment]]:
        """Return a function that finds moments, the oldest first, as far back as panes are kept.

        All that is needed of the view is read before this returns.
        """

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rule) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({written(self)})"


class WindowRule(Rule):
    """A rule that judges successive windows, each by itself.

    Args:
        for_: How long the verdict must be bad before the alert fires; ``None``: it fires at once.
        after: How long after its end a window is judged. ``None``: once no more events are expected
            in it, see `Live.alerts`. A shorter time judges earlier, by the events so far.
    """

    counted: ClassVar[bool] = False  # whether it judges coverage, and not metrics

    min_rows: int = 1
    for_: str | None = None
    after: str | None = None

    @property
    @abstractmethod
    def lengths(self) -> tuple[int, ...]:
        """The lengths of the windows that are judged together, in nanoseconds."""

    @property
    def reach(self) -> int:
        """How long the verdict must be bad, in nanoseconds."""
        return 0 if self.for_ is None else duration(self.for_, "for_")

    def check_parameters(self) -> None:
        """Check the number of rows."""
        require(self, "min_rows", self.min_rows >= 1, "1 or more")

    @abstractmethod
    def judge(self, end: int, windows: tuple[object, ...]) -> Moment:
        """Return the verdict on the windows that end at a time."""

    def part(self, suite: Mergeable) -> Mergeable:
        """Return the part of a suite that is judged: all of it, or one metric."""
        return suite

    def moments(self, view: Any) -> Callable[[], list[Moment]]:
        """Judge the windows of all panes."""
        found: Callable[[], list[Moment]] = view.judged(self)
        return found


def metric_of(suite: Mergeable, name: str) -> Any:
    """Return a metric of a suite.

    Raises:
        ValueError: It has none of that name; the message says which it has.
    """
    names: Iterable[str] = suite if isinstance(suite, MetricSet) else (ALONE,)
    if name not in names:
        raise ValueError(f"there is no metric {name!r}{near(name, names)}")
    return suite[name] if isinstance(suite, MetricSet) else suite


def reading_of(metric: Any, name: str) -> Reading:
    """Return the reading of a metric of a window.

    Raises:
        ValueError: Its value is no number.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        value = metric.compute()
        low, high = (value, value) if metric.exact else metric.bounds()
    if not isinstance(value, int | float | np.number):
        told = f"{name} is no number but {an(type(value).__name__)}: watch one of its parts"
        raise ValueError(told)  # noqa: TRY004 - the name is wrong
    return Reading(float(value), float(low), float(high), int(metric.n_rows))


State = Literal["ok", "firing", "no data"]
_TIMES = ("since", "until")
_PLAIN = ("name", "state", "value", "low", "high", "rows", "why")


@dataclass(frozen=True)
class Alert:
    """The state of a rule, and the reason.

    Attributes:
        name: What the alert is called.
        state: ``"ok"``, ``"firing"`` or ``"no data"``.
        since: When that state began, as far back as panes are kept; ``None`` if there never was
            any data.
        until: The end of the last window that was judged.
        value: What was compared, of that window; `low` and `high` certainly hold the exact one.
        low: See `value`.
        high: See `value`.
        rows: Of how many rows.
        why: That in a sentence, with the threshold; where it fires, of the window that made it fire
            and of the last one.
        changes: When it was in which state, the oldest first.
        rule: The rule.
    """

    name: str
    state: State
    since: datetime | None
    until: datetime | None
    value: float
    low: float
    high: float
    rows: int
    why: str
    changes: tuple[tuple[datetime, State], ...]
    rule: Rule

    @property
    def firing(self) -> bool:
        """Whether it fires."""
        return self.state == "firing"

    @classmethod
    def from_dict(cls, told: Mapping[str, Any], rule: Rule) -> Alert:
        """Return the alert of which `to_dict` gave the dictionary.

        Raises:
            KeyError: Something is not told.
            ValueError: A time is none.
        """
        rest: dict[str, Any] = {name: told[name] for name in _PLAIN}
        rest |= {name: told[name] and datetime.fromisoformat(told[name]) for name in _TIMES}
        changes = [
            (datetime.fromisoformat(each["time"]), each["state"]) for each in told["changes"]
        ]
        return cls(**rest, changes=tuple(changes), rule=rule)

    def to_dict(self) -> dict[str, Any]:
        """Return the alert as plain Python objects, times as ISO 8601 text."""
        times = {name: getattr(self, name) for name in _TIMES}
        return {
            "name": self.name,
            "state": self.state,
            **{name: time and time.isoformat() for name, time in times.items()},
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "rows": self.rows,
            "why": self.why,
            "changes": [{"time": time.isoformat(), "state": to} for time, to in self.changes],
            "rule": repr(self.rule),
        }


class Alerts(tuple[Alert, ...], Result):
    """Alerts in the order of their rules; those that fire are `firing`."""

    __slots__ = ()

    @property
    def firing(self) -> Alerts:
        """Those that fire."""
        return Alerts(alert for alert in self if alert.firing)

    def to_dict(self) -> dict[Any, Any]:
        """Return each alert as plain Python objects by its name."""
        return {alert.name: alert.to_dict() for alert in self}

    def _table(self) -> Table:
        columns = ("state", "since", "value", "low", "high", "rows", "why")
        return Table(
            {"alert": [alert.name for alert in self]},
            {name: [getattr(alert, name) for alert in self] for name in columns},
        )

    def __repr__(self) -> str:
        titles = ("alert", "state", "since", "why")
        lines = [titles, *((a.name, a.state, _short(a.since), a.why) for a in self)]
        widths = [max(len(line[place]) for line in lines) for place in range(3)]
        return "\n".join(
            "  ".join([*(text.ljust(w) for text, w in zip(line, widths, strict=False)), line[3]])
            for line in lines
        )


def alert_of(rule: Rule, moments: Iterable[Moment], reach: int) -> Alert:
    """Return the alert of moments, the oldest first, which fires once bad for `reach`.

    An alert that fires goes on until all is good again, or there is no data.
    """
    state: State = "no data"
    changes: list[tuple[datetime, State]] = []
    began: int | None = None  # when it began to be bad
    last: Moment | None = None
    why = "nothing was judged yet"
    for moment in moments:
        before = state
        if moment.verdict == "bad":
            began = moment.end if began is None else began
            if moment.end - began >= reach:
                state = "firing"
            elif state == "no data":
                state = "ok"
        else:
            began = None
            if moment.verdict == "no data":
                state = "no data"
            elif moment.verdict == "good" or state != "firing":
                state = "ok"
        if state != before:
            changes.append((_time(moment.end), state))
        if state != before or state != "firing":
            why = moment.told
        last = moment
    if state == "firing" and last is not None and last.told != why:
        why = f"{why}; now {last.told}"
    since = changes[-1][0] if changes else None
    if last is None:
        nan = math.nan
        return Alert(rule.title, state, None, None, nan, nan, nan, 0, why, (), rule)
    end, _, value, low, high, rows, _ = last
    return Alert(
        rule.title, state, since, _time(end), value, low, high, rows, why, tuple(changes), rule
    )


def _time(nanoseconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=nanoseconds // 1000)


def _short(time: datetime | None) -> str:
    return "" if time is None else f"{time:%Y-%m-%d %H:%M:%S}Z"


Parts = tuple["MetricState", ...]  # the states whose merge is that of a pane


class Reads(NamedTuple):
    """How states are read: their suite, the part of a state, and the object that shows it."""

    suite: Mergeable
    part: Callable[[MetricState], MetricState]
    shown: Callable[[MetricState], object]

    def of(self, states: Sequence[MetricState]) -> Any:
        """Return the merge of some states of panes, as it is shown."""
        return self.shown(merged(self.suite, [*map(self.part, states)]))


class PaneRun:
    """Successive panes from a number on, as they were at a time of reading.

    States are never written to: those of a pane are the same objects until rows come to it.
    """

    def __init__(self, first: int, panes: Sequence[Parts]) -> None:
        self.first, self.panes = first, panes

    @cached_property
    def filled(self) -> Marks:
        """Which panes have rows."""
        return np.fromiter(map(bool, self.panes), np.bool_, len(self.panes))

    def changed(self, before: PaneRun | None) -> Marks:
        """Return which panes have changed."""
        marks = np.ones(len(self.panes), np.bool_)
        if before is self:
            return ~marks
        if before is not None:
            start = max(self.first, before.first)
            mine, theirs = (line.panes[start - line.first :] for line in (self, before))
            differ = [not _are_same(a, b) for a, b in zip(mine, theirs, strict=False)]
            marks[start - self.first :][: len(differ)] = differ
        return marks


def _are_same(one: Parts, other: Parts) -> bool:
    return len(one) == len(other) and all(map(operator.is_, one, other))


class LastLook(NamedTuple):
    """The panes that a rule read the last time, and its moments."""

    lines: tuple[PaneRun, ...] = ()
    made: Any = None


class Windows:
    """Windows of so many panes of a line each, by the number of the last one.

    Args:
        line: The panes, the first of which is that of the first window that is kept.
        lasts: The last pane of each window; they do not descend.
        panes: How many make a window.
        kept: Which windows are kept.
    """

    def __init__(self, line: PaneRun, lasts: Ints, panes: int, kept: Bools) -> None:
        self.line, self.kept, self._panes = line, kept, panes
        self._stops = np.where(kept, lasts - line.first + 1, panes)  # places after the last panes

    def touched(self, marks: Marks) -> Marks:
        """Return which windows contain a marked pane."""
        before = np.concatenate([[0], np.cumsum(marks)])
        found: Marks = before[self._stops] > before[self._stops - self._panes]
        return found

    def read(self, reads: Reads, asked: Places) -> Iterator[Any]:
        """Yield the merges of some windows, in their order.

        Each is the end of a run of as many panes as it has, and the beginning of the next run.
        Where many of one run are asked for, these are merged pane after pane: a window is then
        some three merges of two states, however long it is.
        """
        n, suite = self._panes, reads.suite

        def parts(first: int, stop: int) -> list[Parts]:
            return [tuple(map(reads.part, pane)) for pane in self.line.panes[first:stop]]

        for run, stops in groupby(self._stops[asked].tolist(), lambda stop: stop // n):
            some, middle = list(stops), run * n
            if len(some) * n < tuning.MERGED_PARTS * (2 * n + len(some)):
                yield from (reads.of([*chain(*self.line.panes[stop - n : stop])]) for stop in some)
                continue
            start = some[0] - n
            ends = _running(suite, reversed(parts(start, middle)))
            begins = _running(suite, parts(middle, some[-1]))
            for stop in some:
                both = ends[middle - stop + n] + begins[stop - middle]
                yield reads.shown(merged(suite, both))


def _running(suite: Mergeable, panes: Iterable[Parts]) -> list[Parts]:
    """Return the merges of no pane, of the first one, of the first two and so on."""
    found: list[Parts] = [()]
    for parts in panes:
        before = found[-1]
        found.append((merged(suite, before + parts),) if parts else before)
    return found


_RULES = 1024  # rules whose last reading is kept


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
    """Return the finest tier that has windows of a length that ended so long ago.

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
        pipeline: The pipeline, which nobody else changes meanwhile.
        clock: The time of reading, not before the newest event.
        seen: What the rule saw when it looked last; what it sees now stands there afterwards.
        lines: Panes that other rules have looked at.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        clock: int,
        seen: LastLook,
        lines: dict[tuple[Span, bool], PaneRun],
    ) -> None:
        self._pipeline, self.clock, self.seen, self._lines = pipeline, clock, seen, lines
        self._keys = pipeline.keys
        self.suite = pipeline.keys.inner  # the empty set, or metric, as it is of all rows

    @property
    def newest(self) -> int:
        """The newest time of an event, negative before any."""
        return self._pipeline.panes.newest

    @property
    def tiers(self) -> tuple[Tier, ...]:
        """The tiers, the finest first."""
        return self._pipeline.config.tiers

    def until(self, after: str | None) -> int:
        """Return the time before which panes are over: no more events are expected in them.

        Args:
            after: How long after its end a pane is; ``None``: as long as a label in time may still
                come where predictions wait for theirs, and else one pane of the finest tier.
        """
        return self.clock - self._delay(after)

    @property
    def _oldest(self) -> int:
        """A time before which there are no rows."""
        return min(self._pipeline.oldest(), self.clock)

    def _delay(self, after: str | None) -> int:
        return delay_of(self._pipeline.config, after, waits=bool(self._pipeline.join.names))

    def judged(self, rule: WindowRule) -> Callable[[], list[Moment]]:
        """Return a function that judges the windows that end with each pane that is over."""
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
        """Return the moment of each end; windows that have not changed are not judged again."""
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
        """Return how a part of the suite is read from states of all slices."""
        parted, whole = self.suite._plan.parting(part._plan), self._keys.whole
        return Reads(part, lambda state: parted(whole(state)), part._at)

    def _line(self, span: Span, *, counted: bool = False) -> PaneRun:
        """Return some panes as they are now."""
        line = self._lines.get((span, counted))
        if line is None:
            parts = self._pipeline.each(span, self.clock, counted=counted)
            line = self._lines[span, counted] = PaneRun(span.first, parts)
        return line

    def busy(self) -> list[tuple[int, int]]:
        """Return the start and the end of each run of panes with events, in order."""
        return self._pipeline.busy()

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
        """Return the ends of the panes of some runs, and the panes."""
        return [(self._ends(run), self._line(run)) for run in runs]

    def _ends(self, span: Span) -> Ints:
        """Return the ends of some panes."""
        tier = self.tiers[span.place]
        return np.array([tier.start(n + 1) for n in range(span.first, span.last + 1)], np.int64)

    def _aligned(self, first: int, tier: Tier, coarse: Tier) -> int:
        """Return the first pane, from one on, that begins where a coarse one does, or after."""
        start = tier.start(first)
        number = coarse.number(start)
        begins = coarse.start(number)
        if begins < start:
            begins = coarse.start(number + 1)
        place = tier.number(begins)
        return place if tier.start(place) == begins else place + 1


class Watch:
    """Evaluates rules, and remembers what each of them read, so that only changes are read."""

    def __init__(self) -> None:
        self._seen: dict[Rule, LastLook] = {}
        self._guard = Locked()  # taken before the lock of the pipeline

    def alerts(
        self,
        pipeline: AbstractContextManager[Pipeline],
        clock: Callable[[], int],
        rules: Sequence[Rule],
    ) -> Alerts:
        """Return the alerts of rules, in their order.

        All are judged by one state of the stream, which is held while they read it: others go on
        while what was read is judged, as states are never written to.
        """
        with self._guard._lock:
            with pipeline as held:
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
