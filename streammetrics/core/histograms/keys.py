"""Order-preserving integer keys of float64 scores: the cells of a histogram, and fast sorting.

Read as integers, the bits of the doubles are in the doubles' own order, so a shift by ``level``
gathers neighbours into cells whose width is relative: fine near 0. Probabilities crowd near 1 as
well, so scores in (0.5, 1] are keyed by the bits of ``1 - s`` (exact there), mirrored::

    W(s) = u(s)                                              s <= 0.5
    W(s) = 2 * bits(0.5) - max(bits(1 - s), bits(2**-54))    0.5 < s <= 1
    W(s) = u(s) + 52 * 2**52                                 s > 1

with ``u`` the signed bits of the double. W is strictly increasing and has no jump. It needs a
little more than 64 bits, so cells are cut from its half: ``cell = (W >> 1) >> (level - 1)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core import tuning

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from streammetrics.core.types import Array, Floats, Ints, Places

    Codes = NDArray[np.uint8]

FEW = 1 << 12  # rows of which positions are sorted at less cost than it takes to pack them
MAX_LEVEL = 64  # two cells: the negative scores and the others
INT32_LEVEL = 33  # from this level on every cell id fits 32 bits

_HALF = 1022 << 52  # bits(0.5)
_ONE = 1023 << 52
_INFINITY = 2047 << 52
_SIGN = np.int64(-(1 << 63))
MAGNITUDE = np.int64((1 << 63) - 1)
_CLOSEST = 2.0**-54  # stands for 1 - s at s = 1: half the step of the doubles below 1
_STEP = 2.0**53  # 1 - s is a whole multiple of 1 / _STEP for s in (0.5, 1]
_HALF_KEY_OF_ONE = 1075 << 51
_SHIFT_ABOVE_ONE = 26 << 52
_LOWEST, _HIGHEST = -(2047 << 51), 2099 << 51  # half keys of -inf and inf


def write_cell_ids(scores: Floats, level: int, out: Ints, spare: Ints) -> None:
    """Write the cell ids at a level >= 1 of a block of scores to `out`.

    All three arrays have the same length; `spare` is scratch. Instead of a choice by masks, W is
    the sum of three clipped pieces, so that every operation is a vector operation.
    """
    piece = spare.view(np.float64)
    np.minimum(scores, 0.5, out=out.view(np.float64))
    if out.min() < 0:
        signed_in_place(out)
    np.subtract(1.0, scores, out=piece)
    lowest = spare.min()  # positive where every score is below 1
    np.minimum(piece, 0.5, out=piece)
    if lowest <= 0:
        np.maximum(piece, _CLOSEST, out=piece)
    out -= spare
    out += _HALF
    if lowest >= 0:
        out >>= level
        return
    out >>= 1
    np.maximum(scores, 1.0, out=piece)
    spare -= _ONE
    spare >>= 1
    out += spare
    out >>= level - 1


def cell_ids(scores: Floats, level: int) -> Ints:
    """Return the cell ids at a level >= 1 of scores (n,), in the same order."""
    ids = np.empty(scores.size, np.int64)
    spare = np.empty(min(tuning.KEY_ROWS, scores.size), np.int64)
    for start in range(0, scores.size, tuning.KEY_ROWS):
        block = scores[start : start + tuning.KEY_ROWS]
        write_cell_ids(block, level, ids[start : start + tuning.KEY_ROWS], spare[: block.size])
    return ids


def cell_id_range(level: int) -> tuple[int, int]:
    """Return the lowest and the highest cell id at a level >= 1: the cells of -inf and inf."""
    return _LOWEST >> (level - 1), _HIGHEST >> (level - 1)


def cell_edges(ids: NDArray[np.integer], level: int) -> tuple[Floats, Floats]:
    """Return the lowest and the highest double in each cell at a level >= 1."""
    low = ids.astype(np.int64) << (level - 1)
    high = low + ((1 << (level - 1)) - 1)
    return _first_score(np.maximum(low, _LOWEST)), _last_score(np.minimum(high, _HIGHEST))


def _first_score(half: Ints) -> Floats:
    """Return the lowest double s with W(s) >= 2 * half."""
    mirrored = _double(2 * _HALF - 2 * np.clip(half, _HALF >> 1, _HALF_KEY_OF_ONE))
    near_one = 1.0 - np.floor(mirrored * _STEP) / _STEP
    below = _double(2 * np.minimum(half, _HALF >> 1))
    above = _double(2 * np.maximum(half - _SHIFT_ABOVE_ONE, _ONE >> 1))
    return np.where(half <= _HALF >> 1, below, np.where(half <= _HALF_KEY_OF_ONE, near_one, above))


def _last_score(half: Ints) -> Floats:
    """Return the highest double s with W(s) <= 2 * half + 1."""
    mirrored = _double(2 * _HALF - 1 - 2 * np.clip(half, _HALF >> 1, _HALF_KEY_OF_ONE - 1))
    near_one = 1.0 - np.ceil(mirrored * _STEP) / _STEP
    below = _double(2 * np.minimum(half, _HALF >> 1) + 1)
    above = 2 * np.maximum(half - _SHIFT_ABOVE_ONE, _ONE >> 1) + 1
    above = _double(np.minimum(above, _INFINITY))
    return np.where(half < _HALF >> 1, below, np.where(half < _HALF_KEY_OF_ONE, near_one, above))


def signed_in_place(bits: Ints) -> None:
    """Turn bits of doubles into integers in their order, in place; -0.0 becomes 0."""
    negative = bits >> 63
    bits ^= negative & MAGNITUDE
    bits -= negative


def double_in_place(signed: Ints) -> None:
    """Turn signed bits into those of their doubles, in place."""
    signed.view(np.float64)[:] = _double(signed)


def _double(signed: Ints) -> Floats:
    """Return the doubles of signed bits: the inverse of `_signed`."""
    return np.where(signed < 0, _SIGN - signed, signed).view(np.float64)


class ScoredRows(NamedTuple):
    """Rows of one batch.

    Attributes:
        scores: Scores (n,).
        codes: The class of each row (n,); ``None`` if there is only one.
        weight: Weights (n,), or (n, 2) where a row weighs the sum of its two; ``None`` for 1 each.

    """

    scores: Floats
    codes: Codes | None
    weight: Floats | None

    def part(self, index: slice | Array) -> ScoredRows:
        """Return the rows picked by a slice, by positions or by a mask."""
        return ScoredRows(
            self.scores[index],
            None if self.codes is None else self.codes[index],
            None if self.weight is None else self.weight[index],
        )

    def copy(self) -> ScoredRows:
        """Return the rows with arrays of their own."""
        return ScoredRows(
            self.scores.copy(),
            None if self.codes is None else self.codes.copy(),
            None if self.weight is None else self.weight.copy(),
        )

    @property
    def nbytes(self) -> int:
        """Bytes of the columns."""
        scores, codes, weight = self
        size = scores.nbytes if codes is None else scores.nbytes + codes.nbytes
        return size if weight is None else size + weight.nbytes


def blocks(chunks: Sequence[ScoredRows]) -> Iterator[ScoredRows]:
    """Yield all rows in views small enough for the cache."""
    for rows in chunks:
        for start in range(0, rows.scores.size, tuning.KEY_ROWS):
            yield rows.part(slice(start, start + tuning.KEY_ROWS))


def concatenated(chunks: Sequence[ScoredRows]) -> ScoredRows:
    """Return all chunks as one; they have the same columns."""
    if len(chunks) == 1:
        return chunks[0]
    scores, codes, weights = zip(*chunks, strict=True)
    return ScoredRows(
        np.concatenate(scores),
        None if codes[0] is None else np.concatenate(codes),
        None if weights[0] is None else np.concatenate(weights),
    )


def rows_by_cell(chunks: Sequence[ScoredRows], level: int) -> ScoredRows:
    """Return all rows by ascending cell of a level, in new arrays; -0.0 becomes 0.0."""
    rows = concatenated(chunks)
    rows = rows.part(order_of(rows.scores, level))
    return rows._replace(scores=rows.scores + 0.0)


def order_of(scores: Floats, level: int = 0) -> Places:
    """Return the positions that sort scores by their cells of a level, at 0 by themselves.

    A position is packed in one integer with as much of the cell's id as there is room for, which
    mostly leaves nothing to be sorted.
    """
    if scores.size <= FEW:
        return np.argsort(scores)
    bits = (scores.size - 1).bit_length()
    packed = cell_ids(scores, level or 1)
    low, high = int(packed.min()), int(packed.max())
    above = max((high - low).bit_length() + bits - 63, 0)
    packed -= low  # wraps around only of scores whose ids are shifted, and so sorted once more
    packed >>= above
    packed <<= bits
    packed |= np.arange(packed.size)
    packed.sort()
    packed &= (1 << bits) - 1
    if above or not level:
        near = scores[packed]
        if (near[1:] < near[:-1]).any():
            packed = packed[near.argsort(kind="stable")]  # which merges what is in order
    return packed
