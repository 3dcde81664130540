"""The states of a statistic by group, as rows come: in all groups at once, or group by group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from streammetrics.core.field import not_among
from streammetrics.core.groups import GroupedStates
from streammetrics.core.statistic import Statistic
from streammetrics.statistics.grouped.waiting import GroupedRows, appended, in_order, rows_of
from streammetrics.statistics.scores.histogram import ScoreHistogram
from streammetrics.statistics.sums.values import ValueHistogram

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.counting import GroupCodes
    from streammetrics.core.types import Array, Arrays, Floats, Ints, Places, ReadColumn

_ROWS = 1 << 16  # that are worth a call of the statistic of every group
_EACH = 1024  # rows of a group that are
_MOST = 1 << 20  # rows that wait, at most
_BIN = 64  # bytes for each bin of a histogram, a few times what bins take, that rows may wait in
_KEPT = 48  # of them that a histogram keeps: less than rows take that have waited for their groups
_BYTES = 1 << 27  # of rows that wait for histograms, at most


class _Held(NamedTuple):
    """The state, replaced in one assignment."""

    states: GroupedStates
    pending: tuple[GroupedRows, ...] = ()


class BufferedStates:
    """The states of a statistic for groups 0 to ``size - 1``, and rows that are not in them yet.

    Rows that `Statistic.lift` takes go to all groups at once. Others are kept until there are
    enough for most groups, and then sorted: the state of each group takes its own. It never changes
    but for the rows that are kept: every operation returns another one.
    """

    def __init__(self, held: _Held) -> None:
        self._held = held
        self.of, self.size = held.states.of, held.states.size

    @classmethod
    def empty(cls, of: Statistic, size: int = 0) -> Self:
        """Return the states of no rows."""
        return cls(_Held(GroupedStates.empty(of, size)))

    @classmethod
    def restored(cls, of: Statistic, arrays: Arrays, rows: Sequence[int]) -> Self:
        """Return the states of `arrays`, of so many rows each, or raise `StateFormatError`."""
        return cls(_Held(GroupedStates.restored(of, arrays, len(rows)).of_rows(rows)))

    def updated(self, by: GroupCodes, columns: Sequence[ReadColumn], weight: Floats | None) -> Self:
        """Return the states after rows, each of its group."""
        states, pending = self._held
        batch = GroupedStates.of_batch(self.of, tuple(columns), weight, by)
        if batch is not None:
            return type(self)(_Held(states.plus(batch), pending))
        rows = GroupedRows.of(by, columns, weight)
        return self._settled(_Held(states, appended(pending, rows, self.size)))

    def regrouped(self, places: Places, size: int) -> Self:
        """Return `size` groups: group ``i`` is added to group ``places[i]``; -1 drops it."""
        states, pending = self._held
        moved = [rows.moved(places, size) for rows in pending]
        kept = tuple([rows for rows in moved if rows.codes.size])
        return type(self)(_Held(states.regrouped(places, size), kept))

    def plus(self, other: Self) -> Self:
        """Return what both hold, group by group."""
        (mine, pending), (theirs, more) = self._held, other._held
        for rows in more:
            pending = appended(pending, rows, self.size)
        return self._settled(_Held(mine.plus(theirs), pending))

    def minus(self, places: Places, other: Self, rows: Ints) -> Self:
        """Return the states without those of another, whose groups are at `places` here.

        Of a group without `rows` left, both must hold the same.
        """
        states, left = self.states, []
        for place, less in zip(places.tolist(), other.states.each(), strict=True):
            mine = states.at(place)
            if rows[place] or mine.own_rows is not None:
                left.append(mine.minus(less))
            elif mine.is_same(less):
                left.append(self.of)
            else:
                raise not_among("there are as many rows of a key here, but not the same")
        return type(self)(_Held(states.put(places, left)))

    def _settled(self, held: _Held) -> Self:
        return type(self)(held if self._may_wait(held.pending) else _fed(held))

    def _may_wait(self, pending: Sequence[GroupedRows]) -> bool:
        """Whether rows are too few for a call of the statistic of every group."""
        if not pending:
            return True
        if type(self.of).may_refuse is not Statistic.may_refuse:
            return False
        if rows_of(pending) < min(max(_ROWS, _EACH * self.size), _MOST):
            return True
        if not isinstance(self.of, ScoreHistogram | ValueHistogram):
            return False
        room = min(_BIN * self.of.max_bins * self.size, _BYTES)
        return sum([rows.nbytes for rows in pending]) < room

    @property
    def states(self) -> GroupedStates:
        """The states after all rows."""
        held = self._held
        if held.pending:
            held = self._held = _fed(held)
        return held.states

    def value(self, name: str) -> Any:
        """Return the grouped value of a field."""
        return self.states.value(name)

    def at(self, group: int) -> Statistic:
        """Return the state of a group, which nobody may write to."""
        return self.states.at(group)

    def arrays(self) -> dict[str, Array]:
        """Return the canonical arrays over all groups."""
        return self.states.arrays()

    @property
    def nbytes(self) -> int:
        """Bytes of state held now."""
        states, pending = self._held
        return states.nbytes + sum([rows.nbytes for rows in pending])


def _fed(held: _Held) -> _Held:
    """Return the states after the rows that were kept."""
    states = held.states
    found = states.of.by_sorted_group(rows_of(held.pending), in_order(held.pending, states.size))
    if found is not None and found.keys() == states.of.fields.keys():
        return _Held(states.plus(GroupedStates(states.of, states.size, found)))
    groups: list[int] = []
    after: list[Statistic] = []
    for starts, columns, weight in in_order(held.pending, states.size):
        groups += (seen := np.flatnonzero(np.diff(starts)).tolist())
        for group in seen:
            part = slice(starts[group], starts[group + 1])
            own = None if weight is None else weight[part]
            after.append(states.at(group).fork())
            after[-1].update(*[column[part] for column in columns], weight=own)
            _settle(after[-1])
    return _Held(states.put(np.array(groups, np.intp), after))


def _settle(state: Statistic) -> None:
    """Bring rows that wait in a histogram to their bins, where these take less.

    A histogram lets many rows wait for the sake of speed, and here there is one for each group.
    """
    if isinstance(state, ScoreHistogram | ValueHistogram):
        histograms = state.histograms
        if sum([histogram.nbytes for histogram in histograms]) > _KEPT * state.max_bins:
            for histogram in histograms:
                _ = histogram.level  # a read counts what waits
