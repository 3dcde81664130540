"""Any statistic by group: rows are sorted by it, and each group's statistic takes its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from streammetrics.core.columns.conversion import Column
from streammetrics.core.columns.nested import Nested, joined
from streammetrics.core.statistic import Statistic
from streammetrics.statistics.grouped.forms import Form
from streammetrics.statistics.scores.histogram import ScoreHistogram
from streammetrics.statistics.sums.values import ValueHistogram

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.types import Array, Arrays, Columns, Floats, Places, ReadColumn
    from streammetrics.statistics.grouped.grouping import Grouping

_ROWS = 1 << 16  # that are worth a call of the statistic of every group
_EACH = 1024  # rows of a group that are
_MOST = 1 << 20  # rows that wait, at most
_BIN = 64  # bytes for each bin of a histogram, a few times what bins take, that rows may wait in


class _Waiting(NamedTuple):
    """Rows that wait to be sorted by group, in arrays of their own."""

    codes: Array
    columns: Columns
    weight: Floats | None

    def moved(self, places: Places) -> _Waiting:
        """Return the rows with the groups that they go to; those that go nowhere are left out."""
        codes = places[self.codes]
        if codes.min(initial=0) >= 0:
            return self._replace(codes=codes)
        rows = np.flatnonzero(codes >= 0)
        weight = None if self.weight is None else self.weight[rows]
        return _Waiting(codes[rows], tuple(column[rows] for column in self.columns), weight)


class _Held(NamedTuple):
    """The state, replaced in one assignment."""

    states: tuple[Statistic, ...]
    waiting: tuple[_Waiting, ...] = ()


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
        codes = by.codes
        rows = _Waiting(codes, tuple(columns), weight)
        total = codes.size + sum(some.codes.size for some in waiting)
        if self._patient and total < _room(self.size):
            own = None if weight is None else weight.copy()
            narrow = codes.astype(np.uint16 if self.size <= 1 << 16 else np.intp)
            kept = _Waiting(narrow, tuple(column.copy() for column in columns), own)
            return type(self)(self.of, _Held(states, (*waiting, kept)))
        return type(self)(self.of, _fed(_Held(states, (*waiting, rows))))

    def regrouped(self, places: Places, size: int) -> Self:
        """Return what the groups at each place hold together."""
        states, waiting = self._held
        gathered: list[list[Statistic]] = [[] for _ in range(size)]
        for state, place in zip(states, places.tolist(), strict=True):
            if place >= 0 and state is not self.of:
                gathered[place].append(state)
        moved = tuple(rows for some in waiting if (rows := some.moved(places)).codes.size)
        return type(self)(self.of, _Held(tuple(map(self._together, gathered)), moved))

    def plus(self, other: Self) -> Self:
        """Return what both hold together, group by group."""
        (mine, waiting), (theirs, more) = self._held, other._held
        pairs = zip(mine, theirs, strict=True)
        states = tuple([self._together([s for s in pair if s is not self.of]) for pair in pairs])
        both = _Held(states, (*waiting, *more))
        rows = sum(some.codes.size for some in both.waiting)
        return type(self)(self.of, both if rows < _room(self.size) else _fed(both))

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
        for codes, columns, weight in waiting:
            size += codes.nbytes + (0 if weight is None else weight.nbytes)
            size += sum(_size(column) for column in columns)
        return size


def _room(size: int) -> int:
    """Return how many rows may wait."""
    return min(max(_ROWS, _EACH * size), _MOST)


def _size(column: ReadColumn) -> int:
    if isinstance(column, Nested):
        return column.values.nbytes + column.flat.values.nbytes
    if isinstance(column, Column):
        return column.values.nbytes
    return 8 * int(column.size)


def _fed(held: _Held) -> _Held:
    """Return the states after the rows that waited."""
    states, waiting = held
    codes = np.concatenate([rows.codes for rows in waiting])
    columns = list(map(joined, zip(*(rows.columns for rows in waiting), strict=True)))
    weight: Floats | None = None
    if any(rows.weight is not None for rows in waiting):
        ones = [np.ones(r.codes.size) if r.weight is None else r.weight for r in waiting]
        weight = np.concatenate(ones)
    return _Held(tuple(split(states, codes, columns, weight)))


def split(
    states: Sequence[Statistic],
    codes: Places,
    columns: Sequence[ReadColumn],
    weight: Floats | None,
) -> list[Statistic]:
    """Return the state of each group after its rows."""
    narrow = codes.astype(np.uint16) if len(states) <= 1 << 16 else codes  # sorted by radix
    order = np.argsort(narrow, kind="stable")
    bounds = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=len(states)))]).tolist()
    columns = [column[order] for column in columns]
    weight = None if weight is None else weight[order]
    after = list(states)
    for group, state in enumerate(states):
        start, stop = bounds[group], bounds[group + 1]
        if start < stop:
            after[group] = state = state.fork()  # noqa: PLW2901 - the loop's own copy from here on
            part = slice(start, stop)
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
        if sum([histogram.nbytes for histogram in histograms]) > _BIN * state.max_bins:
            for histogram in histograms:
                _ = histogram.level  # a read counts what waits
