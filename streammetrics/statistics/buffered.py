"""The states of a statistic by group, as rows come: in all groups at once, or group by group."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.columns.conversion import Column
from streammetrics.core.columns.long import LongNumbers
from streammetrics.core.columns.nested import Nested, joined, joined_weights
from streammetrics.core.counting import are_moved, counts_of, group_order, rows_by_group
from streammetrics.core.field import piled
from streammetrics.core.statistic import GroupedStates, Statistic
from streammetrics.statistics.histograms import ScoreHistogram, ValueHistogram

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streammetrics.core.counting import GroupCodes
    from streammetrics.core.types import Array, Arrays, Columns, Floats, Ints, Places, ReadColumn

_PIECE = 1 << 18  # rows that are brought together at a time


class GroupedRows(NamedTuple):
    """Rows beside the group of each, in arrays of their own."""

    codes: Array
    columns: Columns
    weight: Floats | None

    @classmethod
    def of(
        cls, by: GroupCodes, columns: Sequence[ReadColumn], weight: Floats | None
    ) -> GroupedRows:
        """Return rows of groups in the order of these."""
        narrow = by.codes.astype(np.uint16 if by.size <= 1 << 16 else np.int64)
        if not by.ascending or any(not isinstance(column, np.ndarray) for column in columns):
            return cls(narrow, tuple(columns), weight).ordered(by.size)
        own = tuple([column.copy() for column in columns])
        return cls(narrow, own, None if weight is None else weight.copy())

    def ordered(self, size: int) -> GroupedRows:
        """Return the rows by ascending group."""
        return self.at(group_order(self.codes, size)[0])

    def by_group(self, size: int) -> tuple[Places, Columns, Floats | None]:
        """Return where the rows of each group begin, and columns and weight ordered by group."""
        given = [*self.columns, *([] if self.weight is None else [self.weight])]
        if are_moved(given):
            starts, moved = rows_by_group(self.codes, size, given)
        else:
            order, starts = group_order(self.codes, size)
            moved = [column[order] for column in given]
        weight = None if self.weight is None else moved.pop()
        return starts, tuple(moved), weight

    def at(self, rows: Places | slice) -> GroupedRows:
        """Return some of the rows, or all in another order."""
        weight = None if self.weight is None else self.weight[rows]
        return GroupedRows(
            self.codes[rows], tuple([column[rows] for column in self.columns]), weight
        )

    def moved(self, places: Places, size: int) -> GroupedRows:
        """Return the rows with the groups that they go to; those that go nowhere are left out."""
        codes, rows = places[self.codes], self
        if codes.min(initial=0) < 0:
            kept = np.flatnonzero(codes >= 0)
            codes, rows = codes[kept], rows.at(kept)
        return rows._replace(codes=codes).ordered(size)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        size = self.codes.nbytes + (0 if self.weight is None else self.weight.nbytes)
        return size + sum([_size(column) for column in self.columns])


def _size(column: ReadColumn) -> int:
    if isinstance(column, Nested):
        return column.values.nbytes + column.flat.values.nbytes
    if isinstance(column, LongNumbers):
        return column.head.nbytes + column.tail.nbytes
    values: Array = column.values if isinstance(column, Column) else column
    return values.nbytes


def rows_of(chunks: Sequence[GroupedRows]) -> int:
    """Return how many rows there are in all chunks."""
    return sum([rows.codes.size for rows in chunks])


def appended(
    chunks: tuple[GroupedRows, ...], last: GroupedRows, size: int
) -> tuple[GroupedRows, ...]:
    """Return the chunks and one more, joined with small ones before it."""

    def join(some: Sequence[GroupedRows]) -> GroupedRows:
        return _joined(some).ordered(size)

    rows = tuning.JOINED_ROWS
    return piled(chunks, last, size=lambda rows: rows.codes.size, join=join, small=rows)


def in_order(
    chunks: Sequence[GroupedRows], size: int
) -> Iterator[tuple[Places, Columns, Floats | None]]:
    """Yield where the rows of each group begin, columns and weight of some groups at a time.

    All rows come by ascending group. Chunks are in this order, so that runs of rows are moved.
    """
    starts = np.zeros((len(chunks), size + 1), np.intp)  # of the rows of each group in a chunk
    for each, rows in zip(starts, chunks, strict=True):
        np.cumsum(counts_of((size,), rows.codes), out=each[1:])
    before, low = starts.sum(axis=0), 0  # rows of the groups before each
    while low < size:
        high = int(np.searchsorted(before, before[low] + _PIECE, "right")) - 1
        high = max(high, low + 1)
        ends = starts[:, [low, high]].tolist()
        parts = [rows.at(slice(*end)) for rows, end in zip(chunks, ends, strict=True)]
        if before[high] > before[low]:
            yield _joined(parts).by_group(size)
        low = high


def _joined(parts: Sequence[GroupedRows]) -> GroupedRows:
    if len(parts) == 1:
        return parts[0]
    weight = joined_weights([(rows.weight, rows.codes.size) for rows in parts])
    codes = np.concatenate([rows.codes for rows in parts])
    columns = map(joined, zip(*[rows.columns for rows in parts], strict=True))
    return GroupedRows(codes, tuple(columns), weight)


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
        states = GroupedStates.restored(of, arrays, len(rows))
        states.check_rows(rows)
        return cls(_Held(states))

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
        states, pairs = self.states, zip(places.tolist(), other.states.each(), strict=True)
        left = [states.at(place).left(less, int(rows[place])) for place, less in pairs]
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
