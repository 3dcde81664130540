"""The state of a stream as a function of its events, and what is read of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np

from streammetrics.live.join import Waiting, named_columns, newest_labelled, unlabelled
from streammetrics.live.panes import SUITE as COVERAGE
from streammetrics.live.panes import Coverage, coverage_of, share_of
from streammetrics.live.possible.unlabelled import Unlabelled
from streammetrics.live.reading import Span
from streammetrics.live.rows import batch_of
from streammetrics.live.taking import Taking

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.feeding.states import State
    from streammetrics.core.mergeable import Mergeable
    from streammetrics.live.config import Config
    from streammetrics.live.events import Events
    from streammetrics.live.windows import Node, PaneTree

_BEYOND = np.iinfo(np.int64).max  # any time


class Stream(Taking):
    """What events come to; not thread-safe."""

    def __init__(self, suite: Mergeable, config: Config) -> None:
        super().__init__(suite, config)
        self._waiting = Waiting(suite, self.join)
        self._found: dict[Span, State] = {}  # windows that were read since events came
        self._clock = -1  # the time of reading of these

    def take(self, events: Events) -> None:
        """Take events, or raise and be as before."""
        self._found = {}
        super().take(events)

    def merge(self, others: Sequence[Self]) -> None:
        """Take what others have seen, which are settled and untouched; may leave this one half."""
        super().merge(others)
        self._found = {}

    def over(self, span: Span, clock: int) -> State:
        """Return the merged state of the panes of a span."""
        found = self.known(clock)
        if span not in found:
            found[span] = merged(self.suite, self.parts(span, clock))
        return found[span]

    def known(self, clock: int) -> dict[Span, State]:
        """Return the windows that were merged at this time, and since events came."""
        if clock != self._clock:
            self._found, self._clock = {}, clock
        return self._found

    def parts(self, span: Span, clock: int) -> list[State]:
        """Return the states that the rows of some panes are merged from."""
        units = self._units(span, clock)
        return self.panes.over(*span) + self._waiting.over(*units)

    def unmerged(self, span: Span, clock: int) -> list[tuple[PaneTree, Node]]:
        """Return the nodes that `parts` has to merge first, each after those that it is made of."""
        if span in self.known(clock):
            return []
        units = self._units(span, clock)
        return [*self.panes.unmerged(*span), *self._waiting.unmerged(*units)]

    def keeps(self, span: Span) -> bool:
        """Whether some panes are all kept, as far as there were any."""
        return span.first >= self.config.tiers[span.place].oldest(max(self.panes.newest, 0))

    def each(self, span: Span, clock: int, *, counted: bool = False) -> list[tuple[State, ...]]:
        """Return for each of some panes the states that it is merged from.

        They are the same objects until rows come to their panes. With `counted` they are states of
        what became of predictions.
        """
        self._units(span, clock)
        panes, waiting = (
            (self.counted, self._waiting.counted) if counted else (self.panes, self._waiting.over)
        )
        place, first, last = span
        found = panes.each(place, first, last)
        oldest = self._waiting.oldest()
        if oldest is not None:
            begin = self.config.tiers[place].number(oldest * self.join.unit)
            for number in range(max(begin, first), last + 1):
                found[number - first] += tuple(waiting(*self._range(Span(place, number, number))))
        return found

    def last(self, n: int, clock: int) -> State:
        """Return what the newest n rows that have a label come to."""
        newest, plan = self.newest.copy(), self.suite._plan
        labelled = newest_labelled(self.suite, self.join, n, max(clock, self.join.newest))
        if labelled is not None:
            newest.add(labelled)
        state = plan.start
        for rows in newest.rows(n):
            state = plan.with_slices(state, batch_of(self.suite, rows.named))
        return state

    def oldest(self) -> int:
        """Return when the first pane that has rows begins; of no rows a time beyond all."""
        kept = [
            tier.start(row.states.keys()[0])
            for panes in (self.panes, self.counted)
            for tier, row in zip(panes.tiers, panes.rows, strict=True)
            if row.states
        ]
        return min([*kept, int(self.join.table.present.starts.min(initial=_BEYOND))])

    def busy(self) -> list[tuple[int, int]]:
        """Return when runs of panes that have predictions or observations begin and end."""
        found: list[tuple[int, int]] = []
        for place, tier in enumerate(self.panes.tiers):
            kept = [*self.panes.rows[place].states, *self.counted.rows[place].states]
            numbers = np.array(kept, np.int64)
            if not place:
                numbers = np.append(numbers, tier.numbers(self.join.table.present.starts))
            numbers = np.unique(numbers)
            runs = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)
            ends = [(int(run[0]), int(run[-1])) for run in runs if run.size]
            found += [(tier.start(first), tier.start(last + 1)) for first, last in ends]
        return sorted(found)

    def coverage(self, span: Span, clock: int) -> Coverage:
        """Return what became of the predictions of some panes."""
        state, join = self._counted(span, clock), self.join
        waiting = join.orphans()
        alone = 0 if waiting is None else len(waiting.keys)
        return coverage_of(state, (alone, join.unmatched, *self.refused))

    def share(self, span: Span, clock: int) -> float:
        """Return which part of the predictions of some panes has its label."""
        return share_of(self._counted(span, clock))

    def _counted(self, span: Span, clock: int) -> State:
        """Return a state of what became of the predictions of some panes."""
        units = self._units(span, clock)
        return merged(COVERAGE, self.counted.over(*span) + self._waiting.counted(*units))

    def unlabelled(self, span: Span, clock: int) -> Unlabelled:
        """Return the rows of some panes that have no label."""
        join = self.join
        first, last = self._units(span, clock)
        numbers, clock = join.table.times.values // join.unit, max(clock, join.newest)
        rows = np.flatnonzero((numbers >= first) & (numbers <= last))
        waiting = unlabelled(join, rows, clock)
        gone = coverage_of(merged(COVERAGE, self.counted.over(*span)), (0,) * 5)
        left = gone.displaced + (gone.expired if self.config.default_label is None else 0)
        return Unlabelled(
            self.left, self.left.over(span), left, named_columns(join, waiting), len(waiting)
        )

    def _units(self, span: Span, clock: int) -> tuple[int, int]:
        """Return the panes, of those in which rows wait, that make up others."""
        first, last = self._range(span)
        self._waiting.update(self.join, first, last, max(clock, self.join.newest))
        return first, last

    def _range(self, span: Span) -> tuple[int, int]:
        tier, unit = self.config.tiers[span.place], self.join.unit
        return tier.start(span.first) // unit, (tier.start(span.last + 1) - 1) // unit

    @property
    def nbytes(self) -> int:
        """Bytes of state held now."""
        parts = (self.panes, self.counted, self.left, self.join.table, self._waiting, self.newest)
        return sum(part.nbytes for part in parts)

    def copy(self) -> Stream:
        """Return an independent stream at the same state."""
        twin = object.__new__(Stream)
        twin.__dict__.update(self.__dict__)
        twin.panes, twin.counted = self.panes.copy(), self.counted.copy()
        twin.left = self.left.copy()
        twin.join, twin.newest = self.join.copy(), self.newest.copy()
        twin._begin_checks()
        twin.restart()
        return twin

    def restart(self) -> None:
        """Read all rows that wait again when they are asked for."""
        self._found = {}
        self._waiting = Waiting(self.suite, self.join)
        times = self.join.table.times.values // self.join.unit
        self.join.changed = set(np.unique(times).tolist())


def merged(suite: Mergeable, states: Sequence[State]) -> State:
    """Return what some states of a suite come to; none of them are one without rows."""
    plan = suite._plan
    return plan.merged(states[0], states[1:]) if states else plan.start
