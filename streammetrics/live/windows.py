"""Windows: states of a row of panes merged through a tree, of which what did not change is kept."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from sortedcontainers import SortedDict

from streammetrics.core import tuning
from streammetrics.core.errors import InvalidBatchError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from streammetrics.core.layout import Layout, State
    from streammetrics.core.statistic import Statistic


_BITS = 4  # of a place: sixteen nodes are one of the next level


class Row:
    """States by number, and what any run of them comes to.

    The node of level l and place k is what the panes k·16^l to (k+1)·16^l - 1 come to, merged in
    one go, as many states together cost less than two at a time. A run of n panes is at most
    30 log16(n) nodes; a pane that changes forgets the log16(n) nodes above it.
    """

    def __init__(self, layout: Layout, most: int) -> None:
        self.layout = layout
        self.states: SortedDict[int, State] = SortedDict()
        self._levels = range(_BITS, most.bit_length() + 1, _BITS)
        self._nodes: dict[tuple[int, int], State] = {}
        self._open: set[int] = set()  # panes that have taken rows since they were made small

    def put(self, changed: Mapping[int, State]) -> None:
        """Set the states of some panes."""
        for number, state in changed.items():
            self.states[number] = state
        self._open.update(changed)
        self._forget(changed)

    def drop(self, numbers: Iterable[int]) -> None:
        """Take panes away."""
        gone = list(numbers)
        for number in gone:
            del self.states[number]
        self._open.difference_update(gone)
        self._forget(gone)

    def before(self, number: int) -> list[int]:
        """Return the numbers of the panes before one."""
        return list(self.states.irange(maximum=number, inclusive=(True, False)))

    def rest(self, newest: int) -> None:
        """Hold the panes before one in as little room as they are written in.

        Most of them take no more rows. Rows that wait to be counted take room for each of them,
        however few scores they have, and there may be thousands of panes.
        """
        for number in [number for number in self._open if number < newest]:
            self._open.remove(number)
            state = self.settled(number)
            assert state is not None
            self.states[number] = state._replace(statistics=tuple(map(_small, state.statistics)))

    def settled(self, number: int) -> State | None:
        """Return the state of a pane with no rows staged, ``None`` where there is no such pane."""
        state: State | None = self.states.get(number)
        if state is not None and state.staged:
            state = self.states[number] = self._fed(number, state)
        return state

    def _fed(self, number: int, state: State) -> State:
        try:
            return self.layout.fed(state)
        except MemoryError:  # the rows are not to blame
            raise
        except Exception:  # of whatever kind: it is a user's statistic
            self.states[number], refused = self.layout.sifted(state)
            raise InvalidBatchError("; ".join(map(str, refused))) from refused[0].error

    @property
    def nbytes(self) -> int:
        """Bytes of state held now."""
        states = filter(None, map(self.settled, list(self.states)))
        return sum(statistic.nbytes for state in states for statistic in state.statistics)

    def over(self, first: int, last: int) -> list[State]:
        """Return states that together have seen what the panes `first` to `last` have."""
        found = []
        while first <= last:
            level = 0
            for higher in self._levels:
                if first & ((1 << higher) - 1) or first + (1 << higher) - 1 > last:
                    break
                level = higher
            node = self._node(level, first >> level)
            if node is not None:
                found.append(node)
            first += 1 << level
        return found

    def each(self, first: int, last: int) -> list[tuple[State, ...]]:
        """Return for each of the panes `first` to `last` its state, if it has one."""
        there = (self.settled(number) for number in range(first, last + 1))
        return [() if state is None else (state,) for state in there]

    def _node(self, level: int, place: int) -> State | None:
        if level == 0:
            return self.settled(place)
        node: State | None = self._nodes.get((level, place))
        if node is None:
            start = place << level
            if not self._has(start, start + (1 << level) - 1):
                return None
            parts = range(place << _BITS, (place + 1) << _BITS)
            some = [n for part in parts if (n := self._node(level - _BITS, part)) is not None]
            node = some[0] if len(some) == 1 else self.layout.merged(some[0], some[1:])
            self._nodes[level, place] = node
        return node

    def _has(self, first: int, last: int) -> bool:
        return next(self.states.irange(first, last), None) is not None

    def _forget(self, numbers: Iterable[int]) -> None:
        if self._nodes:
            for number in numbers:
                for level in self._levels:
                    self._nodes.pop((level, number >> level), None)


def _small(statistic: Statistic) -> Statistic:
    """Return a statistic as it is read from what it writes, where that takes less room."""
    if statistic.nbytes <= tuning.SMALL_STATE:
        return statistic
    written = statistic.restored(statistic.arrays())
    return min(written, statistic, key=attrgetter("nbytes"))
