"""Any statistic by group: rows are sorted by it, and each group's statistic takes its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from streammetrics.core.statistic import Statistic
from streammetrics.statistics.grouped.forms import Form
from streammetrics.statistics.grouped.waiting import GroupedRows, appended, in_order, rows_of
from streammetrics.statistics.scores.histogram import ScoreHistogram
from streammetrics.statistics.sums.values import ValueHistogram

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.counting import Grouping
    from streammetrics.core.types import Array, Arrays, Floats, Places, ReadColumn

_ROWS = 1 << 16  # that are worth a call of the statistic of every group
_EACH = 1024  # rows of a group that are
_MOST = 1 << 20  # rows that wait, at most
_BIN = 64  # bytes for each bin of a histogram, a few times what bins take, that rows may wait in
_KEPT = 48  # of them that a histogram keeps: less than rows take that have waited for their groups
_BYTES = 1 << 26  # of rows that wait for histograms, at most


class _Held(NamedTuple):
    """The state, replaced in one assignment."""

    states: tuple[Statistic, ...]
    waiting: tuple[GroupedRows, ...] = ()


class Split(Form):
    """One statistic for every group. Rows wait until there are enough for most groups."""

    def __init__(self, of: Statistic, held: _Held) -> None:
        self.of, self.size, self._held = of, len(held.states), held
        self._patient = type(of).may_refuse is Statistic.may_refuse  # others may refuse rows

    @classmethod
    def empty(cls, of: Statistic, size: int = 0) -> Self:
        """Return the states of no rows."""
        return cls(of, _Held((of,) * size))

    @classmethod
    def restored(cls, of: Statistic, every: Sequence[Arrays]) -> Self:
        """Return the states whose `arrays_at` are given."""
        return cls(of, _Held(tuple([of.restored(arrays) for arrays in every])))

    def updated(self, by: Grouping, columns: Sequence[ReadColumn], weight: Floats | None) -> Self:
        """Return the states after rows, or with rows that wait."""
        states, waiting = self._held
        rows = GroupedRows.of(by.codes, columns, weight, self.size)
        held = _Held(states, appended(waiting, rows, self.size))
        return type(self)(self.of, held if self._may_wait(held.waiting) else _fed(held))

    def regrouped(self, places: Places, size: int) -> Self:
        """Return what the groups at each place hold together."""
        states, waiting = self._held
        gathered: list[list[Statistic]] = [[] for _ in range(size)]
        for state, place in zip(states, places.tolist(), strict=True):
            if place >= 0 and state is not self.of:
                gathered[place].append(state)
        moved = [some.moved(places, size) for some in waiting]
        kept = tuple([rows for rows in moved if rows.codes.size])
        return type(self)(self.of, _Held(tuple(map(self._together, gathered)), kept))

    def plus(self, other: Self) -> Self:
        """Return what both hold together, group by group."""
        (mine, waiting), (theirs, more) = self._held, other._held
        pairs = zip(mine, theirs, strict=True)
        states = tuple([self._together([s for s in pair if s is not self.of]) for pair in pairs])
        for rows in more:
            waiting = appended(waiting, rows, self.size)
        both = _Held(states, waiting)
        return type(self)(self.of, both if self._may_wait(waiting) else _fed(both))

    def _may_wait(self, waiting: Sequence[GroupedRows]) -> bool:
        """Whether rows are too few for a call of the statistic of every group."""
        if not self._patient or not waiting:
            return not waiting
        if rows_of(waiting) < min(max(_ROWS, _EACH * self.size), _MOST):
            return True
        if not isinstance(self.of, ScoreHistogram | ValueHistogram):
            return False
        room = min(_BIN * self.of.max_bins * self.size, _BYTES)
        return sum([rows.nbytes for rows in waiting]) < room

    def _together(self, states: list[Statistic]) -> Statistic:
        if len(states) < 2:
            return states[0] if states else self.of
        whole = states[0].fork()
        whole.merge_all(states[1:])
        return whole

    def _read(self) -> tuple[Statistic, ...]:
        held = self._held
        if held.waiting:
            held = self._held = _fed(held)
        return held.states

    def arrays_at(self, group: int) -> dict[str, Array]:
        """Return the canonical arrays of the state of a group."""
        return self._read()[group].arrays()

    def at(self, group: int) -> Statistic:
        """Return the state of a group, which nobody writes to."""
        return self._read()[group]

    @property
    def nbytes(self) -> int:
        """Bytes of state held now."""
        states, waiting = self._held
        size = sum(state.nbytes for state in states if state is not self.of)
        return size + sum([rows.nbytes for rows in waiting])


def _fed(held: _Held) -> _Held:
    """Return the states after the rows that waited."""
    return _Held(tuple(split(*held)))


def split(states: Sequence[Statistic], chunks: Sequence[GroupedRows]) -> list[Statistic]:
    """Return the state of each group after its rows."""
    after = list(states)
    for codes, columns, weight in in_order(chunks, len(states)):
        ends = [*(np.flatnonzero(codes[1:] != codes[:-1]) + 1).tolist(), codes.size]
        for start, end in zip([0, *ends], ends, strict=False):
            group = int(codes[start])
            after[group] = state = after[group].fork()
            part = slice(start, end)
            own = None if weight is None else weight[part]
            state.update(*[column[part] for column in columns], weight=own)
            _settle(state)
    return after


def _settle(state: Statistic) -> None:
    """Bring rows that wait in a histogram to their bins, where these take less.

    A histogram lets many rows wait for the sake of speed, and here there is one for each group.
    """
    if isinstance(state, ScoreHistogram | ValueHistogram):
        histograms = state.histograms
        if sum([histogram.nbytes for histogram in histograms]) > _KEPT * state.max_bins:
            for histogram in histograms:
                _ = histogram.level  # a read counts what waits
