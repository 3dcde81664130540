"""Direct-address counting: rows into existing cells, without a sort."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.cells import Cells, narrow_counts
from streammetrics.core.exact import ExactSum
from streammetrics.core.keys import BLOCK, Rows, blocks, joined, write_cell_ids

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_NOWHERE = np.iinfo(np.int32).max
_PAGE_BITS = (6, 8, 10, 12)
_FEWEST_COUNTED = 1 << 17  # rows worth a pass over the counts


class CellIndex:
    """Positions of cells by id: one table over their range, or a page table and pages.

    Ids may be spread over a wide range but crowd together, so the tables are small and a look-up
    is one or two gathers, whatever the number of cells. An entry is ``classes * position`` for a
    cell of several scores, its complement for a single-score cell, whose rows need a closer look.
    """

    def __init__(self, cells: Cells, bits: int) -> None:
        self.ids = cells.ids
        self._bits = bits
        # The table begins and ends with an empty page, or entry, to which other ids are clipped.
        self._base = (int(cells.ids[0]) >> bits) - 1
        pages = cells.ids >> bits
        size = int(pages[-1]) - self._base + 2
        if bits:
            pages = pages[np.flatnonzero(np.diff(pages, prepend=self._base))]
            self._pages = np.zeros(size, np.int64)
            self._pages[pages - self._base] = np.arange(1, pages.size + 1) << bits
            size = (pages.size + 1) << bits
        self._entries = np.full(size, ~_NOWHERE, np.int32)
        for start in range(0, cells.ids.size, BLOCK):
            ids = cells.ids[start : start + BLOCK].astype(np.int64)
            self._locate(ids, np.empty_like(ids))
            entries = np.arange(start, start + ids.size, dtype=np.int32) * cells.classes
            mixed = np.isnan(cells.scores[start : start + BLOCK])
            self._entries[ids] = np.where(mixed, entries, ~entries)

    @classmethod
    def of(cls, cells: Cells) -> CellIndex | None:
        """Index of cells of a level >= 1, or None where they are too scattered for one."""
        size = cells.ids.size
        span = int(cells.ids[-1]) - int(cells.ids[0])
        room = 4 * size + BLOCK
        if span < 2 * size + BLOCK:
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
        self._locate(ids, spare)
        np.take(self._entries, ids, out=out, mode="clip")

    def _locate(self, ids: NDArray[np.int64], spare: NDArray[np.int64]) -> None:
        """Turn ids into places in the table of entries; outside it means in its ends."""
        if not self._bits:
            ids -= self._base
            return
        np.right_shift(ids, self._bits, out=spare)
        spare -= self._base
        ids &= (1 << self._bits) - 1
        ids += np.take(self._pages, spare, mode="clip")


def filled(cells: Cells, index: CellIndex, chunks: Sequence[Rows]) -> tuple[Cells, Rows]:
    """Cells with unweighted rows counted in, and the rows that have no cell yet."""
    counts, unsure, entries = _tallied(cells, index, chunks)
    absent = entries == _NOWHERE
    known = ~absent
    scores, cell = cells.scores, entries[known] // cells.classes
    mixed = cell[scores[cell] != unsure.scores[known]]
    if mixed.size:
        scores = scores.copy()
        scores[mixed] = np.nan
    late = unsure.part(absent)
    if isinstance(cells.mass, ExactSum):
        return cells._replace(scores=scores, mass=cells.mass + ExactSum.counts(counts)), late
    counts += cells.mass
    return cells._replace(scores=scores, mass=narrow_counts(counts)), late


def _tallied(
    cells: Cells, index: CellIndex, chunks: Sequence[Rows]
) -> tuple[NDArray[np.int64], Rows, NDArray[np.int32]]:
    """Counts (n, classes), and the rows of no cell or of a single-score cell.

    Of the latter also the entries: ``classes * position`` of the cell, or ``_NOWHERE``.
    """
    size = cells.ids.size * cells.classes
    left = sum(rows.scores.size for rows in chunks)
    tally = np.zeros(0, np.int64)  # has a cell more, for the rows of no cell
    places = np.empty(min(max(size, _FEWEST_COUNTED), left) + BLOCK, np.int64)
    scratch = np.empty((2, BLOCK), np.int64)
    found = np.empty(BLOCK, np.int32)
    unsure, entries = [chunks[0].part(slice(0))], [np.empty(0, np.int32)]
    waiting = 0
    for rows in blocks(chunks):
        ids, spare = scratch[:, : rows.scores.size]
        block = found[: rows.scores.size]
        write_cell_ids(rows.scores, cells.level, ids, spare)
        index.find(ids, spare, block)
        if block.min() < 0:
            which = np.flatnonzero(block < 0)
            unsure.append(rows.part(which))
            entries.append(~block[which])
            block[which] = np.minimum(entries[-1], size)
        place = places[waiting : waiting + rows.scores.size]
        if rows.codes is None:
            place[:] = block
        else:
            np.add(block, rows.codes, out=place)
        waiting += rows.scores.size
        left -= rows.scores.size
        if waiting > places.size - BLOCK or not left:
            more = np.bincount(places[:waiting], minlength=size + cells.classes)
            tally = np.add(tally, more, out=more) if tally.size else more
            waiting = 0
    return tally[:size].reshape(-1, cells.classes), joined(unsure), np.concatenate(entries)
