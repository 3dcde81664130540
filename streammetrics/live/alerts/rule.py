"""Base classes of alert rules, the alerts, and the windows that rules judge."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.accumulator import Locked
from streammetrics.core.columns.batch import near
from streammetrics.core.configured import Configured, configure, require, written
from streammetrics.core.errors import an, undefined_expected
from streammetrics.core.metric import read_together
from streammetrics.core.metric_set import MetricSet
from streammetrics.core.results.table import Table
from streammetrics.core.results.values import Result
from streammetrics.live.events import duration, shown_duration
from streammetrics.live.panes import SUITE as COVERAGE
from streammetrics.live.panes import coverage_of, same
from streammetrics.live.pipeline import merged
from streammetrics.live.spans import ALONE, Span, attempt, metrics_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from streammetrics.core.feeding.states import State as MetricState
    from streammetrics.core.mergeable import Mergeable
    from streammetrics.core.types import Bools, Document, Ints, Options, Places

    Marks = Bools
    from contextlib import AbstractContextManager

    from streammetrics.live.config import Config
    from streammetrics.live.events import By, Tier
    from streammetrics.live.join import Content
    from streammetrics.live.pipeline import Pipeline


Verdict = Literal["bad", "good", "between", "no data"]

_DURATIONS = frozenset({"window", "windows", "length", "for_", "after"})  # parameters


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
    """The value of a metric in a window, its bounds, and its number of rows."""

    value: float
    low: float
    high: float
    rows: int

    @property
    def known(self) -> bool:
        """Whether the value is defined."""
        return not (math.isnan(self.low) or math.isnan(self.high))


class Rule(Configured, ABC):
    """An alert rule with validated, immutable parameters.

    Two rules are equal if their parameters are equal. `name` identifies a rule in output.
    """

    name: str = ""

    def _configure(self, given: Mapping[str, object]) -> None:
        """Set the parameters; durations become text in canonical form.

        Each rule has its own constructor, which gives its parameters explicit signatures; `given`
        are its local variables.
        """
        kept = {
            name: self._shortened(given[name], name) if name in _DURATIONS else given[name]
            for name in self._parameters
        }
        configure(self, (), kept)

    def _shortened(self, value: Any, name: str) -> object:
        """Return durations in canonical form; ``None`` stays ``None`` if it is the default."""
        default = self._parameters[name].given
        if isinstance(default, tuple):
            return tuple(shown_duration(duration(each, name)) for each in value)
        if value is None and default is None:
            return None
        return shown_duration(duration(value, name))

    @property
    def title(self) -> str:
        """The name, or a short description if there is none."""
        return self.name or self._says()

    @abstractmethod
    def _says(self) -> str:
        """Return a short description."""

    @property
    def reach(self) -> int:
        """How long the verdict must be bad before the alert fires, in nanoseconds."""
        return 0

    def line(self, suite: Mergeable) -> tuple[str, float] | None:
        """Return the metric that is judged and its limit, for charts; None if there is no metric.

        Args:
            suite: The metrics.
        """

    def check(self, suite: Mergeable) -> None:
        """Raise `ValueError` if a suite lacks what the rule reads."""

    def part(self, suite: Mergeable) -> Mergeable:
        """Return the part of a suite to judge: the metric of the rule, or the whole suite."""
        found: Mergeable = (
            metric_of(suite, self.config["metric"]) if "metric" in self.config else suite
        )
        return found

    @abstractmethod
    def moments(self, view: View) -> Callable[[], list[Moment]]:
        """Return a function that computes the moments, oldest first, as far back as panes are kept.

        Everything needed from the view is read before this method returns.
        """

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rule) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({written(self)})"


class WindowRule(Rule):
    """A rule that judges successive windows independently.

    Args:
        min_rows: Minimum rows in a window; with fewer, the state is "no data".
        for_: How long the verdict must be bad before the alert fires; ``None`` fires at once.
        after: How long after its end a window is judged. ``None`` waits until no more events are
            expected in it, see `Live.alerts`. A shorter time judges earlier, by the events received
            so far.
    """

    counted: ClassVar[bool] = False  # whether it judges label coverage instead of metrics

    min_rows: int = 1
    for_: str | None = None
    after: str | None = None

    @property
    @abstractmethod
    def lengths(self) -> tuple[int, ...]:
        """The lengths of the windows judged together, in nanoseconds."""

    @property
    def reach(self) -> int:
        """How long the verdict must be bad before the alert fires, in nanoseconds."""
        return 0 if self.for_ is None else duration(self.for_, "for_")

    def check_parameters(self) -> None:
        """Check the minimum number of rows."""
        require(self, "min_rows", self.min_rows >= 1, "1 or more")

    @abstractmethod
    def judge(self, end: int, windows: tuple[object, ...]) -> Moment:
        """Return the verdict on the windows that end at a time."""

    def moments(self, view: View) -> Callable[[], list[Moment]]:
        """Judge the windows that end with each pane."""
        return view.judged(self)


def metric_of(suite: Mergeable, name: str) -> Any:
    """Return a metric of a suite.

    Raises:
        ValueError: There is no metric of that name; the message lists the names.
    """
    names: Iterable[str] = suite if isinstance(suite, MetricSet) else (ALONE,)
    if name not in names:
        raise ValueError(f"there is no metric {name!r}{near(name, names)}")
    return suite[name] if isinstance(suite, MetricSet) else suite


def reading_of(metric: Any, name: str) -> Reading:
    """Return the reading of a metric in a window.

    Raises:
        TypeError: The metric's value is not a number.
    """
    ignored = undefined_expected()
    with ignored, read_together():
        value = metric.compute()
        low, high = (value, value) if metric.exact else metric.bounds()
    if not isinstance(value, int | float | np.number):
        told = f"{name} is not a number but {an(type(value).__name__)}: watch one of its parts"
        raise TypeError(told)
    return Reading(float(value), float(low), float(high), int(metric.n_rows))


State = Literal["ok", "firing", "no data"]
_TIMES = ("since", "until")
_PLAIN = ("name", "state", "value", "low", "high", "rows", "why")


@dataclass(frozen=True)
class Alert:
    """The state of a rule and its reason.

    Attributes:
        name: The name of the alert.
        state: ``"ok"``, ``"firing"`` or ``"no data"``.
        since: When the state began, as far back as panes are kept; ``None`` if there was never any
            data.
        until: The end of the last judged window.
        value: The value compared in that window; the exact value lies between `low` and `high`.
        low: Lower bound of `value`.
        high: Upper bound of `value`.
        rows: The number of rows in that window.
        why: The reason as a sentence with the threshold; for a firing alert, about the window that
            triggered it and the last one.
        changes: The time and new state of each change, oldest first.
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
        """Whether the alert is firing."""
        return self.state == "firing"

    @classmethod
    def from_dict(cls, told: Document, rule: Rule) -> Alert:
        """Return an alert from a dictionary that `to_dict` returned.

        Raises:
            KeyError: An entry is missing.
            ValueError: A time is invalid.
        """
        rest: Options = {name: told[name] for name in _PLAIN}
        rest |= {name: told[name] and datetime.fromisoformat(told[name]) for name in _TIMES}
        changes = [
            (datetime.fromisoformat(each["time"]), each["state"]) for each in told["changes"]
        ]
        return cls(**rest, changes=tuple(changes), rule=rule)

    def to_dict(self) -> Document:
        """Return the alert as plain Python objects, with times as ISO 8601 text."""
        told: Document = {each.name: getattr(self, each.name) for each in fields(self)}
        told |= {name: told[name] and told[name].isoformat() for name in _TIMES}
        changes = [{"time": time.isoformat(), "state": state} for time, state in self.changes]
        return {**told, "changes": changes, "rule": repr(self.rule)}


class Alerts(tuple[Alert, ...], Result):
    """Alerts in the order of their rules; `firing` selects those that fire."""

    __slots__ = ()

    @property
    def firing(self) -> Alerts:
        """The alerts that are firing."""
        return Alerts(alert for alert in self if alert.firing)

    def to_dict(self) -> Document:
        """Return each alert as plain Python objects, by name."""
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
    """Return the alert from moments, oldest first; it fires once the verdict is bad for `reach`.

    A firing alert continues until a verdict is good, or there is no data.
    """
    state: State = "no data"
    changes: list[tuple[datetime, State]] = []
    began: int | None = None  # end of the first bad window in a row
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


Parts = tuple["MetricState", ...]  # the states to merge into the state of a pane


class Reads(NamedTuple):
    """How to read states: the suite, how to select its part of a state, and how to show it."""

    suite: Mergeable
    part: Callable[[MetricState], MetricState]
    shown: Callable[[MetricState], object]

    def of(self, states: Sequence[MetricState]) -> Any:
        """Return the merge of some pane states, as shown to the rule."""
        return self.shown(merged(self.suite, [*map(self.part, states)]))


class PaneRun:
    """The consecutive panes of a span, as they were when read.

    States are immutable: a pane holds the same objects until it receives rows.
    """

    def __init__(self, span: Span, panes: Sequence[Parts]) -> None:
        self.place, self.first, self.panes = span.place, span.first, panes

    @cached_property
    def filled(self) -> Marks:
        """A mask of the panes with rows."""
        return np.fromiter(map(bool, self.panes), np.bool_, len(self.panes))

    def changed(self, before: PaneRun | None) -> Marks:
        """Return a mask of the panes that differ from those of `before`."""
        marks = np.ones(len(self.panes), np.bool_)
        if before is self:
            return ~marks
        if before is not None and before.place == self.place:
            start = max(self.first, before.first)
            mine, theirs = (line.panes[start - line.first :] for line in (self, before))
            differ = [not same(a, b) for a, b in zip(mine, theirs, strict=False)]
            marks[start - self.first :][: len(differ)] = differ
        return marks


class LastLook(NamedTuple):
    """The panes that a rule read at its last evaluation, and its results."""

    lines: tuple[PaneRun, ...] = ()
    made: Any = None


class Windows:
    """Windows of a fixed number of consecutive panes.

    Args:
        line: The panes, starting with the first pane of the first window that is kept.
        lasts: The number of the last pane of each window, ascending.
        panes: Panes per window.
    """

    def __init__(self, line: PaneRun, lasts: Ints, panes: int) -> None:
        self.line, self._panes = line, panes
        self._stops = lasts - line.first + 1  # exclusive ends

    def touched(self, marks: Marks) -> Marks:
        """Return a mask of the windows that contain a marked pane."""
        before = np.concatenate([[0], np.cumsum(marks)])
        return before[self._stops] > before[self._stops - self._panes]

    def read(self, reads: Reads, asked: Places) -> Iterator[Any]:
        """Yield the merged states of the requested windows, in order.

        Panes are split into runs as long as a window, so that each window is the end of one run and
        the beginning of the next. If many windows that share a boundary between runs are requested,
        panes are merged cumulatively from the boundary in both directions. A window then costs
        about three merges of two states, regardless of its length.
        """
        n, suite = self._panes, reads.suite

        def parts(first: int, stop: int) -> list[Parts]:
            return [tuple(map(reads.part, pane)) for pane in self.line.panes[first:stop]]

        for run, stops in groupby(self._stops[asked].tolist(), lambda stop: stop // n):
            some, middle = list(stops), run * n
            start = some[0] - n
            if len(some) * n < tuning.MERGED_PARTS * (2 * n + len(some)):
                each = parts(start, some[-1])
                for stop in some:
                    window = each[stop - n - start : stop - start]
                    yield reads.shown(merged(suite, [*chain(*window)]))
                continue
            ends = _running(suite, reversed(parts(start, middle)))
            begins = _running(suite, parts(middle, some[-1]))
            for stop in some:
                both = ends[middle - stop + n] + begins[stop - middle]
                yield reads.shown(merged(suite, both))


class WindowsRun(NamedTuple):
    """The windows that a rule judges together at each of some ends, ascending."""

    ends: Ints
    windows: Sequence[Windows]


def _running(suite: Mergeable, panes: Iterable[Parts]) -> list[Parts]:
    """Return the cumulative merges of the first 0, 1, 2, ... panes."""
    found: list[Parts] = [()]
    for parts in panes:
        before = found[-1]
        found.append((merged(suite, before + parts),) if parts else before)
    return found


_RULES = 1024  # number of rules whose last evaluation is kept


def delay_of(config: Config, after: str | None, *, waits: bool) -> int:
    """Return how long after its end a pane is judged, in nanoseconds.

    Args:
        config: The tiers, and the time that labels may take.
        after: The delay set by the rule, if any.
        waits: Whether predictions wait for labels.
    """
    if after is not None:
        return duration(after, "after")
    return config.horizon if waits else config.tiers[0].length


def place_of(tiers: Sequence[Tier], length: int, back: int) -> int:
    """Return the index of the finest tier with windows of a length that ended `back` ago.

    Raises:
        ValueError: There is no such tier.
    """
    for place, tier in enumerate(tiers):
        reach = tier.length * (tier.count - 1)  # the newest pane is incomplete
        if length % tier.length == 0 and length + back <= reach:
            return place
    raise ValueError(
        f"a window of {shown_duration(length)} is not a whole number of panes, or longer than "
        f"they are kept once {shown_duration(back)} are over, for which the rule waits; "
        f"there are {'; '.join(tier.shown for tier in tiers)}: keep them longer, or judge earlier "
        'with after="5min"'
    )


def places_of(tiers: Sequence[Tier], lengths: Iterable[int], place: int) -> list[int]:
    """Return the tier in which windows are judged, and the coarser ones that have them too."""
    coarser = range(place + 1, len(tiers))
    every = [*lengths]
    return [place, *(n for n in coarser if not any(w % tiers[n].length for w in every))]


def check_windows(config: Config, rule: Rule, *, waits: bool) -> None:
    """Raise `ValueError` if a rule judges windows that no tier can provide.

    Args:
        config: The tiers, and the time that labels may take.
        rule: The rule.
        waits: Whether predictions wait for labels.
    """
    if isinstance(rule, WindowRule):
        back = rule.reach + delay_of(config, rule.after, waits=waits)
        for length in rule.lengths:
            place_of(config.tiers, length, back)


def source_of(rule: Rule, pipeline: Pipeline) -> tuple[Mergeable, Content]:
    """Return the metrics that a rule names, not sliced, and in which panes they are."""
    inputs, column = pipeline.inputs.suite, getattr(rule, "column", None)
    name = getattr(rule, "metric", column and f"{column}/ks")  # any that has the histogram
    if inputs is not None and name is not None and name in inputs:
        return inputs, "inputs"
    if column is None and name is not None and name not in metrics_of(pipeline.keys.inner):
        pipeline.inputs.check_name(name)
    return pipeline.keys.inner, "coverage" if getattr(rule, "counted", False) else "metrics"


class View:
    """A snapshot of a stream for one rule.

    Args:
        rule: The rule.
        pipeline: The pipeline, which is locked while the view reads it.
        now: The time of reading, 0 if none is set.
        seen: What the rule read at its last evaluation; updated by this one.
        lines: Panes already read by other rules.
    """

    def __init__(
        self,
        rule: Rule,
        pipeline: Pipeline,
        now: int,
        seen: LastLook,
        lines: dict[tuple[Span, Content], PaneRun],
    ) -> None:
        self._pipeline, self.now, self.seen, self._lines = pipeline, now, seen, lines
        self.clock = max(now, self.newest, 0)  # not earlier than the newest event
        self._keys = pipeline.keys
        self.suite, self._of = source_of(rule, pipeline)

    @property
    def newest(self) -> int:
        """The time of the newest event, negative if there is none."""
        return self._pipeline.panes.newest

    @property
    def tiers(self) -> tuple[Tier, ...]:
        """The tiers, the finest first."""
        return self._pipeline.config.tiers

    def until(self, after: str | None) -> int:
        """Return the time before which panes are complete, i.e. no more events are expected.

        Args:
            after: How long after its end a pane is complete. ``None``: if metrics wait for
                labels, as long as a label can arrive in time; otherwise one pane of the finest
                tier.
        """
        return self.clock - self._delay(after)

    @property
    def _oldest(self) -> int:
        """A time before which there are no rows."""
        return min(self._pipeline.oldest(), self.clock)

    def _delay(self, after: str | None) -> int:
        waits = bool(self._pipeline.join.names) and self._of != "inputs"
        return delay_of(self._pipeline.config, after, waits=waits)

    def judged(self, rule: WindowRule) -> Callable[[], list[Moment]]:
        """Return a function that judges the windows that end with each complete pane.

        Where the panes of a tier end, the history goes on in the coarser ones.
        """
        delay = self._delay(rule.after)
        if self.newest < 0:
            return list
        back = rule.reach + delay
        places = [place_of(self.tiers, length, back) for length in rule.lengths]
        place = places[rule.lengths.index(min(rule.lengths))]
        last = self.tiers[place].number(max(self.clock - delay, 0)) - 1
        found = self._windows(rule, places, place, last)
        if found is None:
            return list
        runs = [found]
        for coarse in places_of(self.tiers, rule.lengths, place)[1:]:
            tier, before = self.tiers[coarse], int(runs[-1].ends[0])
            last = tier.number(before - 1) - 1
            if tier.number(self._oldest) <= last:
                found = self._windows(rule, [coarse] * len(places), coarse, last)
                runs += [] if found is None else [found]
        return partial(self._judged, rule, runs)

    def _windows(
        self, rule: WindowRule, places: Sequence[int], place: int, last: int
    ) -> WindowsRun | None:
        """Return the kept windows that end with the panes of a tier up to `last`.

        Args:
            rule: The rule.
            places: The tier of each of its windows.
            place: The tier of the shortest one.
            last: The number of the last pane of the last windows.
        """
        tier = self.tiers[place]
        oldest = tier.oldest(self.newest) + min(rule.lengths) // tier.length - 1
        first = max(oldest, min(tier.number(self._oldest), last), 0)
        if first > last:
            return None
        ends, kept = self._ends(Span(place, first, last)), np.ones(last - first + 1, np.bool_)
        every = []
        for length, of in zip(rule.lengths, places, strict=True):
            panes, lasts = length // self.tiers[of].length, self._lasts(of, ends)
            kept &= lasts - panes + 1 >= self.tiers[of].oldest(self.newest)
            every.append((of, panes, lasts))
        if not kept.any():
            return None
        windows = []
        for of, panes, lasts in every:
            some = lasts[kept]
            begin = int(some[0]) - panes + 1
            line = self._line(Span(of, begin, int(some[-1])))
            windows.append(Windows(line, some, panes))
        return WindowsRun(ends[kept], windows)

    def _lasts(self, place: int, ends: Ints) -> Ints:
        """Return the last complete pane of each window in a tier."""
        return self.tiers[place].numbers(ends) - 1

    def _judged(self, rule: WindowRule, runs: Sequence[WindowsRun]) -> list[Moment]:
        """Return the moment at each end; unchanged windows are not judged again."""
        before: list[PaneRun | None] = [*self.seen.lines]
        known: dict[int, Moment] = dict(self.seen.made or {})
        reads, found = self._reads(rule), dict[int, Moment]()
        for ends, windows in runs:
            olds = [before.pop(0) if before else None for _ in windows]
            pairs = list(zip(windows, olds, strict=True))
            new = np.any([mine.touched(mine.line.changed(old)) for mine, old in pairs], axis=0)
            empty = ~np.any([mine.touched(mine.line.filled) for mine in windows], axis=0)
            found |= {end: known[end] for end in ends[~new].tolist() if end in known}
            due = np.array([end not in found for end in ends.tolist()], np.bool_)
            if (due & empty).any():  # all windows without rows are equal
                blank = rule.judge(0, tuple(reads.of(()) for _ in windows))
                found |= {end: blank._replace(end=end) for end in ends[due & empty].tolist()}
            asked = np.flatnonzero(due & ~empty)
            each = zip(*[mine.read(reads, asked) for mine in windows], strict=True)
            for end, read in zip(ends[asked].tolist(), each, strict=True):
                moment, why = attempt(partial(rule.judge, end, read))
                found[end] = moment or Moment(end, "no data", told=f"it cannot be read: {why}")
        lines = tuple(mine.line for run in runs for mine in run.windows)
        self.seen = LastLook(lines, found)
        return [found[end] for end in sorted(found)]

    def _reads(self, rule: WindowRule) -> Reads:
        """Return how the rule reads states; only the part that it judges is merged."""
        if self._of == "coverage":
            return Reads(COVERAGE, lambda state: state, lambda state: coverage_of(state, (0,) * 5))
        return self.reads(rule.part(self.suite), getattr(rule, "by", None))

    def reads(self, part: Mergeable, by: By = None) -> Reads:
        """Return how to read a part of the suite from sliced states, or all of it with `by`."""
        if by is not None:
            shown = self._keys.shown
            return Reads(self._pipeline.suite, lambda state: state, lambda state: shown(state, by))
        parted, whole = self.suite._plan.parting(part._plan), self._keys.whole
        if self._of == "inputs":  # which are not sliced
            return Reads(part, parted, part._at)
        return Reads(part, lambda state: parted(whole(state)), part._at)

    def _line(self, span: Span) -> PaneRun:
        """Return the current panes of a span."""
        line = self._lines.get((span, self._of))
        if line is None:
            parts = self._pipeline.each(span, self.clock, self._of)
            line = self._lines[span, self._of] = PaneRun(span, parts)
        return line

    def busy(self) -> list[tuple[int, int]]:
        """Return the start and end of each run of panes with events, in order."""
        return self._pipeline.busy()

    def panes(self, after: str | None) -> list[Span]:
        """Return the complete panes, oldest first, as runs of one tier each.

        The runs cover the time that any tier keeps. Each row is in exactly one run, in the finest
        panes available.
        """
        if self.newest < 0:
            return []
        found: list[Span] = []
        until, longest = self.until(after), self.tiers[-1]
        oldest = max(longest.start(longest.number(self._oldest)), 0)  # a coarse boundary
        for place, tier in enumerate(self.tiers):
            last = tier.number(max(until, 0)) - 1
            first = max(tier.oldest(self.newest), tier.number(oldest), 0)
            if place + 1 < len(self.tiers):  # start at the boundary of a coarser pane
                first = self._aligned(first, tier, self.tiers[place + 1])
            if first <= last:
                found = [Span(place, first, last), *found]
            until = min(until, tier.start(first))
        return found

    def lines(self, runs: Sequence[Span]) -> list[tuple[Ints, PaneRun]]:
        """Return the ends and the panes of each run."""
        return [(self._ends(run), self._line(run)) for run in runs]

    def _ends(self, span: Span) -> Ints:
        """Return the end time of each pane of a span."""
        tier = self.tiers[span.place]
        return np.array([tier.start(n + 1) for n in range(span.first, span.last + 1)], np.int64)

    def _aligned(self, first: int, tier: Tier, coarse: Tier) -> int:
        """Return the first pane from `first` on that begins at or after a coarse boundary."""
        start = tier.start(first)
        number = coarse.number(start)
        begins = coarse.start(number)
        if begins < start:
            begins = coarse.start(number + 1)
        place = tier.number(begins)
        return place if tier.start(place) == begins else place + 1


class Watch:
    """Evaluates rules, and caches what each rule read, so that only changes are read again."""

    def __init__(self) -> None:
        self._seen: dict[Rule, LastLook] = {}
        self._guard = Locked()  # acquired before the lock of the pipeline

    def alerts(
        self,
        pipeline: AbstractContextManager[Pipeline],
        time: Callable[[], int],
        rules: Sequence[Rule],
    ) -> Alerts:
        """Return the alerts of rules, in order.

        All rules see one state of the stream, which is locked only while they read it. Judging
        happens after the lock is released, because states are immutable.
        """
        with self._guard._lock:
            with pipeline as held:
                now = time()
                lines: dict[tuple[Span, Content], PaneRun] = {}
                views = [
                    View(rule, held, now, self._seen.get(rule, LastLook()), lines) for rule in rules
                ]
                judges = [rule.moments(view) for rule, view in zip(rules, views, strict=True)]
            alerts = []
            for rule, view, judge in zip(rules, views, judges, strict=True):
                alerts.append(alert_of(rule, judge(), rule.reach))
                self._seen[rule] = view.seen
            while len(self._seen) > _RULES:
                del self._seen[next(iter(self._seen))]
            return Alerts(alerts)
