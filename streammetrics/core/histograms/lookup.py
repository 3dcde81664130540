"""Rows counted in cells that there are already: found in a table, without a sort."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.histograms.cells import Cells, count_dtype, exact_mass
from streammetrics.core.histograms.keys import (
    ScoredRows,
    blocks,
    concatenated,
    write_cell_ids,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from streammetrics.core.exact.sums import ExactSum
    from streammetrics.core.histograms.cells import CountType
    from streammetrics.core.types import Array, Floats, Ints, Places

NOWHERE = np.iinfo(np.int32).max
_PAGE_BITS = (6, 8, 10, 12)
_NONE = np.empty(0, np.intp)


class CellIndex:
    """Positions of cells by id: one table over the range of ids, or a table of pages.

    A wide range is cut into pages, of which only those with cells are kept: ids crowd together, so
    that the tables are small. A look-up is one or two gathers, however many cells there are.

    An entry is ``classes * position`` for a cell of several scores. It is the complement of this
    (``~``) for a cell of one score, whose rows need a closer look: theirs may be another. The
    index stays valid while the cells take more rows; a cell that turns out to hold several scores
    is only looked at more closely than it needs.
    """

    def __init__(self, cells: Cells, bits: int) -> None:
        self._bits = bits
        # The table begins and ends with an empty page, or entry, to which ids out of range clip.
        self._base = (int(cells.ids[0]) >> bits) - 1
        pages = cells.ids >> bits
        size = int(pages[-1]) - self._base + 2
        if bits:
            pages = pages[np.flatnonzero(np.diff(pages, prepend=self._base))]
            self._pages = np.zeros(size, np.int64)
            self._pages[pages - self._base] = np.arange(1, pages.size + 1) << bits
            size = (pages.size + 1) << bits
        self._entries = np.full(size, ~NOWHERE, np.int32)
        for start in range(0, cells.ids.size, tuning.KEY_ROWS):
            ids = cells.ids[start : start + tuning.KEY_ROWS].astype(np.int64)
            self._locate(ids, np.empty_like(ids))
            entries = np.arange(start, start + ids.size, dtype=np.int32) * cells.classes
            mixed = np.isnan(cells.scores[start : start + tuning.KEY_ROWS])
            self._entries[ids] = np.where(mixed, entries, ~entries)

    @classmethod
    def of(cls, cells: Cells) -> CellIndex | None:
        """Return the index of cells of a level >= 1; ``None`` if they are too scattered for one."""
        size = cells.ids.size
        span = int(cells.ids[-1]) - int(cells.ids[0])
        room = 4 * size + tuning.KEY_ROWS
        if span + 3 <= room:
            return cls(cells, 0)
        for bits in _PAGE_BITS:
            if span >> bits <= max(size, tuning.KEY_ROWS):
                pages = cells.ids >> bits
                occupied = 1 + int(np.count_nonzero(pages[1:] != pages[:-1]))
                if occupied << bits <= room:
                    return cls(cells, bits)
        return None

    @property
    def nbytes(self) -> int:
        """Bytes of the tables."""
        return self._entries.nbytes + (self._pages.nbytes if self._bits else 0)

    def find(self, ids: Ints, spare: Ints, out: Array) -> None:
        """Write the entries of ids (m,) to `out` (m,) int32; `ids` and `spare` are overwritten."""
        self._locate(ids, spare)
        np.take(self._entries, ids, out=out, mode="clip")

    def refreshed(self, cells: Cells, tally: Tally) -> CellIndex:
        """Return an index that knows in which cells the tally found several scores."""
        twin = copy.copy(self)
        twin._entries = self._entries.copy()
        for mixed in tally.mixed:
            places = cells.ids[mixed].astype(np.int64)
            self._locate(places, np.empty_like(places))
            entries = twin._entries[places]
            twin._entries[places] = np.maximum(entries, ~entries)
        return twin

    def _locate(self, ids: Ints, spare: Ints) -> None:
        """Overwrite ids with places in the table; those out of range clip to its empty ends."""
        if not self._bits:
            ids -= self._base
            return
        np.right_shift(ids, self._bits, out=spare)
        spare -= self._base
        ids &= (1 << self._bits) - 1
        ids += np.take(self._pages, spare, mode="clip")


class Tally(NamedTuple):
    """Rows whose cells were found, but that are not counted there yet.

    Attributes:
        places: Chunks of ``classes * position + code``, 4 bytes a row. A row that has no cell is
            past the last one; with weights it is in the first, and weighs 0.
        weights: What the rows of each chunk weigh; ``None`` for 1 each.
        mixed: Positions of cells of one score in which another was found.

    """

    places: tuple[NDArray[np.int32], ...] = ()
    weights: tuple[Floats | None, ...] = ()
    mixed: tuple[NDArray[np.int32], ...] = ()

    @property
    def size(self) -> int:
        """How many rows wait."""
        return sum(chunk.size for chunk in self.places)

    @property
    def nbytes(self) -> int:
        """Bytes of the rows that wait."""
        weights = (weight.nbytes for weight in self.weights if weight is not None)
        return sum(chunk.nbytes for chunk in (*self.places, *self.mixed)) + sum(weights)


def placed(
    cells: Cells, index: CellIndex, chunks: Sequence[ScoredRows], tally: Tally
) -> tuple[Tally, ScoredRows]:
    """Return the tally with the rows that have a cell, and copies of those that have none.

    Either all chunks have weights or none has.
    """
    scratch = np.empty((2, tuning.KEY_ROWS), np.int64)
    places = np.empty(sum(rows.scores.size for rows in chunks), np.int32)
    unplaced, absences, mixed, size = [chunks[0].part(_NONE)], [_NONE], [np.empty(0, np.int32)], 0
    beyond = cells.ids.size * cells.classes
    for rows in blocks(chunks):
        ids, spare = scratch[:, : rows.scores.size]
        place = places[size : size + rows.scores.size]
        size += place.size
        write_cell_ids(rows.scores, cells.level, ids, spare)
        index.find(ids, spare, place)
        if place.min() < 0:
            unsure = np.flatnonzero(place < 0)
            entries = ~place.take(unsure, mode="clip")
            absent = unsure[entries == NOWHERE]
            if absent.size:
                unplaced.append(rows.part(absent))
                absences.append(absent + (size - place.size))
                known = entries != NOWHERE
                np.minimum(entries, beyond, out=entries)
                place[unsure] = entries
                unsure, entries = unsure[known], entries[known]
            else:
                place[unsure] = entries
            cell = entries >> 1 if cells.classes == 2 else entries
            scores = cells.scores.take(cell, mode="clip")
            mixed.append(cell[scores != rows.scores.take(unsure, mode="clip")])
        if rows.codes is not None:
            place += rows.codes
    strays, weight = np.concatenate(mixed), None
    if unplaced[0].weight is not None:
        weight, absent = np.concatenate([rows.weight for rows in chunks]), np.concatenate(absences)
        weight[absent], places[absent] = 0.0, 0
    return (
        Tally(
            (*tally.places, places),
            (*tally.weights, weight),
            (*tally.mixed, strays) if strays.size else tally.mixed,
        ),
        concatenated(unplaced),
    )


def tallied(cells: Cells, tally: Tally) -> Cells:
    """Return the cells with the rows of a tally counted in."""
    if not tally.places:
        return cells
    scores = cells.scores
    if tally.mixed:
        scores = scores.copy()
        for mixed in tally.mixed:
            scores[mixed] = np.nan
    plain = all(weight is None for weight in tally.weights)
    dtype = count_dtype(cells.mass, more=tally.size) if plain else None
    mass = _counted(cells, tally, dtype) if dtype else _weighed(cells, tally)
    return cells._replace(scores=scores, mass=mass)


def _counted(cells: Cells, tally: Tally, dtype: CountType) -> Array:
    """Return integer mass with rows of weight 1 added."""
    size = cells.ids.size * cells.classes
    counts = np.zeros(size + cells.classes, dtype)
    counts[:size] = np.asarray(cells.mass).ravel()
    one = counts.dtype.type(1)  # an operand of another type would take a slower path
    for places in tally.places:
        for start in range(0, places.size, tuning.KEY_ROWS):
            np.add.at(counts, places[start : start + tuning.KEY_ROWS].astype(np.intp), one)
    return counts[:size].reshape(-1, cells.classes)


def _weighed(cells: Cells, tally: Tally) -> ExactSum:
    """Return exact mass with rows added."""
    size = cells.ids.size * cells.classes
    sums = exact_mass(cells.mass).reshaped((size,)).plus_at(_blocks(tally, size))
    return sums.reshaped((cells.ids.size, cells.classes))


def _blocks(tally: Tally, size: int) -> Iterator[tuple[Places, Floats | None]]:
    """Yield the places and weights of rows; of those of weight 1 the places below `size`."""
    for places, weight in zip(tally.places, tally.weights, strict=True):
        for start in range(0, places.size, tuning.KEY_ROWS):
            index = places[start : start + tuning.KEY_ROWS].astype(np.intp)
            if weight is None:
                yield index[index < size], None
            else:
                yield index, weight[start : start + tuning.KEY_ROWS]
