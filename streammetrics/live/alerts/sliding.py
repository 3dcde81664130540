"""Windows of panes that end one after the other: which have changed, and what each comes to."""

from __future__ import annotations

import operator
from functools import cached_property
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streammetrics.core import tuning
from streammetrics.live.stream import merged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from streammetrics.core.feeding.states import State
    from streammetrics.core.mergeable import Mergeable
    from streammetrics.core.types import Bools, Ints, Places

    Marks = Bools

Parts = tuple["State", ...]  # states that together have seen the rows of a pane


class Reads(NamedTuple):
    """How states are read: of what suite, which part of a pane's, and as what they are shown."""

    suite: Mergeable
    part: Callable[[State], State]
    shown: Callable[[State], object]

    def of(self, states: Sequence[State]) -> Any:
        """Return what some states of panes come to, as it is shown."""
        return self.shown(merged(self.suite, [*map(self.part, states)]))


class PaneRun:
    """Panes one after the other, from a number on, as they were at a time of reading.

    States are never written to: those of a pane are the same objects until rows come to it.
    """

    def __init__(self, first: int, panes: Sequence[Parts]) -> None:
        self.first, self.panes = first, panes

    @cached_property
    def filled(self) -> Marks:
        """Which panes have rows."""
        return np.fromiter(map(bool, self.panes), np.bool_, len(self.panes))

    def changed(self, before: PaneRun | None) -> Marks:
        """Return which panes are not what they were."""
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
    """What a rule saw when it looked last, and what it made of it."""

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
        """Return in which windows there is a pane that is marked."""
        before = np.concatenate([[0], np.cumsum(marks)])
        found: Marks = before[self._stops] > before[self._stops - self._panes]
        return found

    def read(self, reads: Reads, asked: Places) -> Iterator[Any]:
        """Yield what some windows come to, in their order.

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
    """Return what no pane, the first one, the first two and so on come to."""
    found: list[Parts] = [()]
    for parts in panes:
        before = found[-1]
        found.append((merged(suite, before + parts),) if parts else before)
    return found
