"""The cells of many histograms merged: looked up where most are there already, else sorted."""

from __future__ import annotations

from itertools import accumulate, takewhile
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.exact.sums import ExactSum
from streammetrics.core.histograms.addressed import addressed, summed
from streammetrics.core.histograms.cells import (
    Cells,
    columns_of,
    count_dtype,
    exact_mass,
    fitting_level,
    runs_of,
)
from streammetrics.core.histograms.lookup import NOWHERE, CellIndex

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streammetrics.core.histograms.cells import CountType
    from streammetrics.core.types import Array, Places


def merged(cells: Cells, others: Sequence[Cells], max_cells: int) -> Cells:
    """Return the rows of all at the lowest level at which they need at most `max_cells` cells."""
    start = 0
    while start < len(others):
        rest = others[start : start + tuning.INDEXED_HISTOGRAMS]
        plain = _plain(cells, rest)
        worthwhile = len(plain) > _together(cells, rest)
        dtype = count_dtype(cells.mass, *(c.mass for c in plain)) if worthwhile else None
        index = CellIndex.of(cells) if dtype else None
        if dtype is None or index is None:
            some = rest[: _together(cells, rest)]
            cells = united([cells, *some], max_cells)
            start += len(some)
        else:
            found = _Lookups(cells, index, plain, dtype)
            start += found.taken
            cells = united([found.cells, *found.unplaced], max_cells)
    return cells


# --- by sorting ----------------------------------------------------------------------------------


def _together(cells: Cells, others: Sequence[Cells]) -> int:
    """Return how many others are sorted with the cells: some, or more that fit the cache."""
    sizes = accumulate((other.ids.size for other in others), initial=cells.ids.size)
    short = sum(size <= tuning.KEY_ROWS for size in sizes) - 1
    return max(short, tuning.UNITED_HISTOGRAMS)


def united(every: Sequence[Cells], max_cells: int) -> Cells:
    """Return the rows of all, sorted together."""
    some = [cells for cells in every if cells.ids.size]
    if len(some) < 2 and (not some or some[0].ids.size <= max_cells):
        return some[0] if some else every[0]
    level = max(cells.level for cells in some)
    n = sum([cells.ids.size for cells in some])
    if n <= tuning.KEY_ROWS and not any(isinstance(cells.mass, ExactSum) for cells in some):
        some = [_chained(some, level)]
    dtype = count_dtype(*(cells.mass for cells in some))
    if dtype and max_cells < n <= tuning.KEY_ROWS:
        found = addressed(some[0], max_cells, dtype)
        if found is not None:
            return found
    if not dtype and (sums := summed(some, max_cells)) is not None:
        return sums
    if n > max_cells:
        # The ids alone tell the level, so that more cells than the budget are never made.
        ids = np.concatenate([cells.ids_at(level) for cells in some])
        ids.sort()
        level = fitting_level(ids, level, max_cells)
        del ids
    same = [cells.raised(level) for cells in some]
    if dtype:
        return _joined(same, dtype)
    # First find which cells there are, then add the mass of each to its own.
    bare = [cells._replace(mass=np.empty((cells.ids.size, 0), np.int64)) for cells in same]
    union = _joined(bare, np.int64)
    parts = [(np.searchsorted(union.ids, c.ids), exact_mass(c.mass)) for c in same]
    return union._replace(mass=ExactSum.gathered(parts, union.ids.size))


def _chained(every: Sequence[Cells], level: int) -> Cells:
    """Return all cells one after the other, in no order, raised to a level."""
    same = every
    if any(cells.level != level for cells in every):
        same = [cells.raised(level) for cells in every]
    return Cells(
        level,
        np.concatenate([cells.ids for cells in same]),
        np.concatenate([cells.scores for cells in same]),
        np.concatenate([np.asarray(cells.mass) for cells in same]),
        same[0].classes,
    )


def _joined(every: Sequence[Cells], dtype: CountType) -> Cells:
    """Return the union of cells of one level, with their mass in integers that hold the sums."""
    _, ids, scores, masses, classes = zip(
        *(_sorted(part, dtype) for part in _aligned(every)), strict=True
    )
    single = np.concatenate(scores)
    first = np.concatenate(ids) if every[0].level else single
    return Cells(every[0].level, first, single, np.concatenate(masses), classes[0])


def _aligned(every: Sequence[Cells]) -> Iterator[list[Cells]]:
    """Yield parts of all cells that begin and end at the same ids, to be sorted in the cache."""
    largest = max((cells.ids for cells in every), key=len)
    edges = largest[tuning.KEY_ROWS :: tuning.KEY_ROWS]
    cuts = [[0, *np.searchsorted(cells.ids, edges).tolist(), None] for cells in every]
    for index in range(edges.size + 1):
        yield [
            cells.part(slice(cut[index], cut[index + 1]))
            for cells, cut in zip(every, cuts, strict=True)
        ]


def _sorted(every: Sequence[Cells], dtype: CountType) -> Cells:
    level, classes = every[0].level, every[0].classes
    ids = np.concatenate([cells.ids for cells in every])
    order = ids.argsort(kind="stable")  # finds the ascending runs and merges them
    scores = ids = ids[order]
    if level:
        scores = np.concatenate([cells.scores for cells in every])[order]
    starts, first, single = runs_of(ids, scores, ascending=False)
    table = np.concatenate([np.asarray(cells.mass) for cells in every], dtype=dtype)
    return Cells(level, first, single, _added(table, order, starts), classes)


def _added(table: Array, order: Places, starts: Places) -> Array:
    """Return the sums of the runs of a table whose rows are taken in an order."""
    if 8 * (order.size - starts.size) < order.size:  # most runs are of one cell
        counts = table.take(order[starts], axis=0)
        others = np.delete(np.arange(order.size), starts)
        run = np.searchsorted(starts, others, "right") - 1
        np.add.at(counts, run, table.take(order[others], axis=0))
        return counts
    counts = np.empty((starts.size, table.shape[1]), table.dtype)
    for column, more in zip(
        columns_of(counts, table.dtype), columns_of(table, table.dtype), strict=True
    ):
        np.add.reduceat(more[order], starts, dtype=more.dtype, out=column)
    return counts


# --- by looking up -------------------------------------------------------------------------------


def _plain(cells: Cells, others: Sequence[Cells]) -> list[Cells]:
    """Return the others up to the first whose mass cannot be added to the cells as it is.

    Those before are counts, at no higher level.
    """
    if not cells.level:
        return []
    return list(
        takewhile(
            lambda other: other.level <= cells.level and not isinstance(other.mass, ExactSum),
            others,
        )
    )


class _Lookups:
    """Cells with the counts of others added; those that have no cell here are `unplaced`.

    It stops once the unplaced ones are so many that a new index is worth making: `taken` says how
    many of the others were added by then.
    """

    def __init__(
        self, cells: Cells, index: CellIndex, others: Sequence[Cells], dtype: CountType
    ) -> None:
        self.unplaced: list[Cells] = []
        self._level, self._index, self._scores = cells.level, index, cells.scores.copy()
        size, classes = cells.ids.size, cells.classes
        # One more cell takes the counts of those that have none.
        counts = np.zeros((size + 1, classes), dtype)
        counts[:size] = np.asarray(cells.mass)
        self._columns = list(columns_of(counts, dtype))
        waiting = 0
        for self.taken, other in enumerate(others, 1):
            for start in range(0, other.ids.size, tuning.KEY_ROWS):
                waiting += self._add(other.part(slice(start, start + tuning.KEY_ROWS)), dtype)
            if waiting > max(tuning.KEY_ROWS, size // 2):
                break
        self.cells = cells._replace(scores=self._scores, mass=counts[:size])

    def _add(self, other: Cells, dtype: CountType) -> int:
        """Add the counts of some cells; return how many have no cell here."""
        unplaced = 0
        ids = other.ids_at(self._level).astype(np.int64)
        entries = np.empty(ids.size, np.int32)
        self._index.find(ids, np.empty_like(ids), entries)
        unsure = np.flatnonzero(entries < 0)
        if unsure.size:
            alone = ~entries[unsure]
            absent = alone == NOWHERE
            if absent.any():
                rows = unsure[absent]
                unplaced = rows.size
                self.unplaced.append(other.part(rows).raised(self._level))
                alone[absent] = self._scores.size * other.classes
            entries[unsure] = alone
            known, cell = unsure[~absent], alone[~absent] // other.classes
            self._scores[cell[self._scores[cell] != other.scores[known]]] = np.nan
        place = (entries // other.classes).astype(np.intp)
        mass = np.asarray(other.mass, dtype)
        for column, more in zip(self._columns, columns_of(mass, dtype), strict=True):
            np.add.at(column, place, more)
        return unplaced
