"""Scores as integers in their order, as small as there are few: sorted, or counted where they are.

Scores of float32, of a grid, or that are whole numbers lack most of the bits of a float64: sorted
as 32 bits they take half the time. Where there are no more integers than rows nothing is sorted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.histograms.addressed import addressed, row_cells
from streammetrics.core.histograms.cells import Cells, narrow_counts
from streammetrics.core.histograms.keys import (
    FEW,
    MAGNITUDE,
    ScoredRows,
    blocks,
    double_in_place,
    rows_by_cell,
    signed_in_place,
)
from streammetrics.core.histograms.waiting import size_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.types import Array, Floats, Ints

_LACKING = 16  # bits, from which on it is worth to look how few keys there may be
_HALF = 1 << 31  # keys that fit 32 bits with a code


class Packing(NamedTuple):
    """How scores become keys: signed bits, shifted, without the gap of unused ones around 0.

    Attributes:
        shift: How many of the last bits are 0 in all scores.
        gap: How many keys are skipped on either side of 0.
        first: The lowest key, which is counted as 0; 0 where keys take 63 bits.
        size: How many keys there may be; `_HALF` or less are small.
        low: The lowest score.
    """

    shift: int
    gap: int
    first: int
    size: int
    low: float

    @classmethod
    def of(cls, chunks: Sequence[ScoredRows]) -> Packing | None:
        """Return how the scores of unweighted chunks are packed.

        ``None`` if 63 bits are too few, or rows so few that packing costs more than it saves.
        """
        if size_of(chunks) <= FEW:
            return None
        low, high, used = np.inf, -np.inf, 0
        for scores, _, _ in blocks(chunks):
            low, high = min(low, float(scores.min())), max(high, float(scores.max()))
            used |= int(np.bitwise_or.reduce(scores.view(np.int64)))
        top, used = max(-low, high), used & int(MAGNITUDE)
        shift = (used & -used).bit_length() - 1
        if top < 2.0 and shift < _LACKING:
            return cls(0, 0, 0, 1 << 62, low)
        if low > 0.0:
            nearest = int(np.float64(low).view(np.int64)) - 1
        else:
            nearest = min([_least(scores) for scores, _, _ in blocks(chunks)])
        last = int(np.float64(top).view(np.int64))
        gap = nearest >> shift
        width = (last >> shift) - gap
        first = -width if low < 0.0 else 0
        if width - first < _HALF:
            return cls(shift, gap, first, width - first + 1, low)
        if top < 2.0:
            return cls(0, 0, 0, 1 << 62, low)
        return cls(0, nearest, 0, 1 << 62, low) if last - nearest < 1 << 62 else None

    def write(self, scores: Floats, out: Ints) -> None:
        """Write the keys of scores to integers; -0.0 is as 0.0."""
        np.add(scores, 0.0, out=out.view(np.float64))
        if self.low < 0.0:
            signed_in_place(out)
        if self.shift:
            out >>= self.shift
        if self.gap and self.low < 0.0:
            out -= np.sign(out) * self.gap
        elif self.gap:
            out -= self.gap
            if self.low <= 0.0:
                np.maximum(out, 0, out=out)
        if self.first:
            out -= self.first

    def read(self, keys: Ints) -> Floats:
        """Return the scores of ascending keys, in their place."""
        if self.first:
            keys += self.first
        if self.gap:
            keys += np.sign(keys) * self.gap
        if self.shift:
            keys <<= self.shift
        if keys.size and keys[0] < 0:
            double_in_place(keys)
        return keys.view(np.float64)


def _least(scores: Floats) -> int:
    """Return the bits of the score nearest to 0, but 0 itself, less one."""
    # Less one, the bits of 0 wrap around to the largest integer, which is no minimum.
    return int((np.abs(scores).view(np.uint64) - 1).min())


def sorted_rows(chunks: Sequence[ScoredRows]) -> ScoredRows:
    """Return the rows of unweighted chunks by ascending score, in new arrays; -0.0 becomes 0.0.

    A score and its code in {0, 1} are packed into one integer, ``key << 1 | code``, for a
    vectorised sort: five times as fast as a sort of positions. Keys must fit 63 bits: those of
    scores in (-2, 2) do, others may once the gap of unused keys around 0 is closed.
    """
    return _sorted(chunks, None if chunks[0].codes is None else Packing.of(chunks))


def cells_or_rows(chunks: Sequence[ScoredRows], max_cells: int, classes: int) -> Cells | ScoredRows:
    """Return cells at level 0, or at that which rows need; if they cannot be told, `sorted_rows`.

    Chunks have no weights.
    """
    packing, size = Packing.of(chunks), size_of(chunks)
    if packing is not None and packing.size * classes <= max(tuning.DENSE_CELLS, 2 * size):
        return _counted(chunks, packing, classes)
    if max_cells < size <= tuning.KEY_ROWS:
        cells = addressed(row_cells(chunks, classes), max_cells, np.int32)
        if cells is not None:
            return cells
    return _sorted(chunks, packing)


def _counted(chunks: Sequence[ScoredRows], packing: Packing, classes: int) -> Cells:
    packed = np.empty(size_of(chunks), np.int64)
    _pack(packing, chunks, packed)
    counts = np.bincount(packed, minlength=classes * packing.size).reshape(-1, classes)
    occupied = np.flatnonzero((counts[:, 0] + counts[:, -1]) != 0)
    mass = narrow_counts(counts.take(occupied, axis=0))
    scores = packing.read(occupied)
    return Cells(0, scores, scores, mass, classes)


def _sorted(chunks: Sequence[ScoredRows], packing: Packing | None) -> ScoredRows:
    if chunks[0].codes is None:
        scores = np.concatenate([rows.scores for rows in chunks])
        scores += 0.0
        scores.sort()
        return ScoredRows(scores, None, None)
    if packing is None:
        return rows_by_cell(chunks, 0)
    size = size_of(chunks)
    packed: Array = np.empty(size, np.uint32 if packing.size <= _HALF else np.int64)
    _pack(packing, chunks, packed)
    packed.sort()
    scores, codes = np.empty(size), np.empty(size, np.uint8)
    if packed.dtype == np.int64:
        scores = packed.view(np.float64)
    for start in range(0, size, tuning.KEY_ROWS):
        part = slice(start, start + tuning.KEY_ROWS)
        np.bitwise_and(packed[part], 1, out=codes[part], casting="unsafe")
        keys = scores[part].view(np.int64)
        np.right_shift(packed[part], 1, out=keys)
        packing.read(keys)
    return ScoredRows(scores, codes, None)


def _pack(packing: Packing, chunks: Sequence[ScoredRows], out: Array) -> None:
    """Write the keys of all rows, with their codes where they have such, to `out`."""
    start, spare = 0, np.empty(min(tuning.KEY_ROWS, out.size), np.int64)
    for block in blocks(chunks):
        mine = out[start : start + block.scores.size]
        keys = mine if mine.dtype == np.int64 else spare[: mine.size]
        packing.write(block.scores, keys)
        if block.codes is not None:
            keys <<= 1
            keys += block.codes
        if keys is not mine:
            np.copyto(mine, keys, casting="unsafe")
        start += mine.size
