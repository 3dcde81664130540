"""Windows: states of a row of panes merged through a tree, of which what did not change is kept."""

from __future__ import annotations

import operator
from operator import attrgetter
from typing import TYPE_CHECKING

from sortedcontainers import SortedDict

from streammetrics.core import tuning
from streammetrics.core.errors import InvalidBatchError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from streammetrics.core.feeding.plan import Plan
    from streammetrics.core.feeding.states import State
    from streammetrics.core.statistic import Statistic


_BITS = 4  # of a place: sixteen nodes are one of the next level

Node = tuple[int, int]  # level and place


class PaneTree:
    """States by number, and what any run of them comes to.

    The node of level l and place k is what the panes k·16^l to (k+1)·16^l - 1 come to, merged in
    one go, as many states together cost less than two at a time. A run of n panes is at most
    30 log16(n) nodes; a pane that changes forgets the log16(n) nodes above it.
    """

    def __init__(self, plan: Plan, most: int) -> None:
        self.plan = plan
        self.states: SortedDict[int, State] = SortedDict()
        self._levels = range(_BITS, most.bit_length() + 1, _BITS)
        self._nodes: dict[tuple[int, int], State] = {}
        self._open: dict[int, int] = {}  # panes with new rows: how many statistics are small again
        self._most = (0, 0)  # of the newest pane: bytes up to which its statistics are left alone

    def put(self, changed: Mapping[int, State]) -> None:
        """Set the states of some panes."""
        for number, state in changed.items():
            self.states[number] = state
        self._open.update(dict.fromkeys(changed, 0))
        self._forget(changed)

    def drop(self, numbers: Iterable[int]) -> None:
        """Take panes away."""
        gone = list(numbers)
        for number in gone:
            del self.states[number]
            self._open.pop(number, None)
        self._forget(gone)

    def before(self, number: int) -> list[int]:
        """Return the numbers of the panes before one."""
        return list(self.states.irange(maximum=number, inclusive=(True, False)))

    def work(self, newest: int) -> bool:
        """Do a piece of what rows have left to do; return whether there was one.

        Those that wait in the newest pane are counted as soon as they are many. The panes before it
        are held in as little room as they are written in: most of them take no more rows, rows that
        wait take room for each of them, however few scores they have, and there may be thousands of
        panes.
        """
        state: State | None = self.states.get(newest)
        if state is not None:
            if state.pending >= tuning.PANE_ROWS:
                self.settled(newest)
                return True
            if self._large(newest, state):
                return True
        number = next((number for number in self._open if number < newest), None)
        if number is None:
            return False
        state = self.states[number]
        if state.buffered:
            self.settled(number)
            return True
        sizes, place = [statistic.nbytes for statistic in state.statistics], self._open[number]
        while place < len(sizes) and sizes[place] <= tuning.SMALL_STATE:
            place += 1
        if place < len(sizes):
            self._make_small(number, state, place)
        self._open[number] = place + 1
        if place + 1 >= len(sizes):
            del self._open[number]
        return True

    def _large(self, number: int, state: State) -> bool:
        """Make a statistic of the newest pane small if it has grown much; return whether it had."""
        sizes = [statistic.nbytes for statistic in state.statistics]
        largest = max(sizes)
        if self._most[0] != number:
            self._most = number, tuning.PANE_BYTES
        if largest <= self._most[1]:
            return False
        size = self._make_small(number, state, sizes.index(largest)).nbytes
        self._most = number, max(tuning.PANE_BYTES, 2 * size)
        return True

    def _make_small(self, number: int, state: State, place: int) -> Statistic:
        """Hold a statistic of a pane as it is read from what it writes, if that takes less room."""
        statistics = list(state.statistics)
        statistic = statistics[place]
        written = statistic.restored(statistic.arrays())
        statistics[place] = min(written, statistic, key=attrgetter("nbytes"))
        self.states[number] = state._replace(statistics=tuple(statistics))
        return statistics[place]

    def settled(self, number: int) -> State | None:
        """Return the state of a pane without buffered rows, ``None`` where there is none."""
        state: State | None = self.states.get(number)
        if state is not None and state.buffered:
            state = self.states[number] = self._fed(number, state)
        return state

    def _fed(self, number: int, state: State) -> State:
        try:
            return self.plan.fed(state)
        except MemoryError:  # the rows are not to blame
            raise
        except Exception:  # of whatever kind: it is a user's statistic
            self.states[number], refused = self.plan.sifted(state)
            raise InvalidBatchError("; ".join(map(str, refused))) from refused[0].error

    @property
    def nbytes(self) -> int:
        """Bytes of state held now."""
        return size_of(filter(None, map(self.settled, list(self.states))))

    def over(self, first: int, last: int) -> list[State]:
        """Return states that together have seen what the panes `first` to `last` have."""
        nodes = (self._node(*node) for node in self._run(first, last))
        return [state for state in nodes if state is not None]

    def unmerged(self, first: int, last: int) -> Iterator[Node]:
        """Yield the nodes that `over` has to merge first, each after those that it is made of."""
        for level, place in self._run(first, last):
            yield from self._unmerged(level, place)

    def parts(self, node: Node) -> list[State]:
        """Return the states that a node is made of."""
        level, place = node
        below = range(place << _BITS, (place + 1) << _BITS)
        found = (self._node(level - _BITS, part) for part in below)
        return [state for state in found if state is not None]

    def keep(self, node: Node, parts: Sequence[State], state: State) -> None:
        """Keep what the parts of a node are merged to, unless rows have changed them meanwhile."""
        if same(self.parts(node), parts):
            self._nodes[node] = state

    def _run(self, first: int, last: int) -> Iterator[Node]:
        """Yield the largest nodes that make up a run of panes."""
        while first <= last:
            level = 0
            for higher in self._levels:
                if first & ((1 << higher) - 1) or first + (1 << higher) - 1 > last:
                    break
                level = higher
            yield level, first >> level
            first += 1 << level

    def _unmerged(self, level: int, place: int) -> Iterator[Node]:
        if level == 0 or (level, place) in self._nodes:
            return
        start = place << level
        if self._has(start, start + (1 << level) - 1):
            for part in range(place << _BITS, (place + 1) << _BITS):
                yield from self._unmerged(level - _BITS, part)
            yield level, place

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
            parts = self.parts((level, place))
            node = self._nodes[level, place] = self.plan.merged(parts[0], parts[1:])
        return node

    def _has(self, first: int, last: int) -> bool:
        return next(self.states.irange(first, last), None) is not None

    def _forget(self, numbers: Iterable[int]) -> None:
        if self._nodes:
            for number in numbers:
                for level in self._levels:
                    self._nodes.pop((level, number >> level), None)


def same(mine: Sequence[State], theirs: Sequence[State]) -> bool:
    """Return whether two rows of states are the same objects, which nobody ever changes."""
    return len(mine) == len(theirs) and all(map(operator.is_, mine, theirs))


def size_of(states: Iterable[State]) -> int:
    """Return how many bytes states hold."""
    return sum(statistic.nbytes for state in states for statistic in state.statistics)
