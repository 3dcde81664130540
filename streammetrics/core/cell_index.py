"""Direct-address counting: rows into existing cells, without a sort."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.cells import Cells, narrow_counts
from streammetrics.core.exact import ExactSum
from streammetrics.core.keys import BLOCK, Rows, write_cell_ids

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MISSING = np.iinfo(np.int32).min
_PAGE_BITS = (6, 8, 10, 12)
_FEWEST_COUNTED = 1 << 17  # rows worth a pass over the counts


class CellIndex:
    """Positions of cells by id: one table over their range, or a page table and pages.

    Ids may be spread over a wide range but crowd together, so the tables are small and a look-up
    is one or two gathers, whatever the number of cells. An entry is ``classes * position`` for a
    cell of several scores, its complement for a single-score cell, whose rows need a closer look.
    """

    def __init__(self, cells: Cells, bits: int) -> None:
        entries = np.arange(0, cells.classes * cells.ids.size, cells.classes, dtype=np.int32)
        np.invert(entries, out=entries, where=~np.isnan(cells.scores))
        self.ids = cells.ids
        self._bits = bits
        places = cells.ids.astype(np.int64)
        if bits:
            pages = places >> bits
            slots = np.cumsum(np.diff(pages, prepend=pages[0] - 1) != 0) << bits
            # Page 0 is empty; what is outside the range is clipped to one that points to it.
            self._base = int(pages[0]) - 1
            self._pages = np.zeros(int(pages[-1]) - self._base + 2, np.int64)
            self._pages[pages - self._base] = slots
            places &= (1 << bits) - 1
            places += slots
            size = int(slots[-1]) + (1 << bits)
        else:
            self._base = int(places[0]) - 1
            places -= self._base
            size = int(places[-1]) + 2
        self._entries = np.full(size, _MISSING, np.int32)
        self._entries[places] = entries

    @classmethod
    def of(cls, cells: Cells) -> CellIndex | None:
        """Index of cells of a level >= 1, or None where they are too scattered for one."""
        size = cells.ids.size
        span = int(cells.ids[-1]) - int(cells.ids[0])
        room = 4 * size + BLOCK
        if span < room:
            return cls(cells, 0)
        for bits in _PAGE_BITS:
            if span >> bits <= max(size, BLOCK):
                pages = cells.ids >> bits
                occupied = 1 + int(np.count_nonzero(pages[1:] != pages[:-1]))
                if occupied << bits <= room:
                    return cls(cells, bits)
        return None

    def find(self, ids: NDArray[np.int64], spare: NDArray[np.int64], out: NDArray[Any]) -> None:
        """Write the entries of ids (m,) to ``out`` (m,) int32; ids and spare are scratch."""
        if self._bits:
            np.right_shift(ids, self._bits, out=spare)
            spare -= self._base
            ids &= (1 << self._bits) - 1
            ids += np.take(self._pages, spare, mode="clip")
        else:
            ids -= self._base
        np.take(self._entries, ids, out=out, mode="clip")


def filled(cells: Cells, index: CellIndex, rows: Rows) -> tuple[Cells, NDArray[np.intp]]:
    """Cells with unweighted rows counted in, and the positions of rows that have no cell yet."""
    tally, unsure, entries = _tallied(cells, index, rows)
    known = entries != _MISSING
    missed, entries = unsure[~known], ~entries[known]
    scores, cell = cells.scores, entries // cells.classes
    mixed = cell[scores[cell] != rows.scores[unsure[known]]]
    if mixed.size:
        scores = scores.copy()
        scores[mixed] = np.nan
    if rows.codes is not None:
        entries += rows.codes[unsure[known]]
    tally += np.bincount(entries, minlength=tally.size)
    counts = tally.reshape(cells.ids.size, cells.classes)
    if isinstance(cells.mass, ExactSum):
        return cells._replace(scores=scores, mass=cells.mass + ExactSum.counts(counts)), missed
    counts += cells.mass
    return cells._replace(scores=scores, mass=narrow_counts(counts)), missed


def _tallied(
    cells: Cells, index: CellIndex, rows: Rows
) -> tuple[NDArray[np.int64], NDArray[np.intp], NDArray[np.int32]]:
    """Counts of the rows of cells of several scores; positions and entries of all other rows."""
    size = cells.ids.size * cells.classes
    tally = np.zeros(size + cells.classes, np.int64)  # with a cell more for all other rows
    places = np.empty(min(max(size, _FEWEST_COUNTED), rows.scores.size) + BLOCK, np.int64)
    scratch = np.empty((2, BLOCK), np.int64)
    found = np.empty(BLOCK, np.int32)
    positions, entries = [np.empty(0, np.intp)], [np.empty(0, np.int32)]
    waiting = 0
    for start in range(0, rows.scores.size, BLOCK):
        scores = rows.scores[start : start + BLOCK]
        ids, spare = scratch[:, : scores.size]
        block = found[: scores.size]
        write_cell_ids(scores, cells.level, ids, spare)
        index.find(ids, spare, block)
        if block.min() < 0:
            unsure = np.flatnonzero(block < 0)
            entries.append(block[unsure])
            block[unsure] = size
            unsure += start
            positions.append(unsure)
        place = places[waiting : waiting + scores.size]
        if rows.codes is None:
            place[:] = block
        else:
            np.add(block, rows.codes[start : start + BLOCK], out=place)
        waiting += scores.size
        if waiting > places.size - BLOCK:
            tally += np.bincount(places[:waiting], minlength=tally.size)
            waiting = 0
    tally += np.bincount(places[:waiting], minlength=tally.size)
    return tally[:size], np.concatenate(positions), np.concatenate(entries)
