"""Order-preserving integer keys of float64 scores: the cells of a histogram, and their edges.

The bits of a double, read as an integer, sort like the double. A shift by ``level`` therefore
groups neighbours into cells of constant relative width, which are fine near 0. Probabilities also
cluster near 1, so scores in (0.5, 1] are keyed by the mirrored bits of ``1 - s``, which is exact
there::

    W(s) = u(s)                                              s <= 0.5
    W(s) = 2 * bits(0.5) - max(bits(1 - s), bits(2**-54))    0.5 < s <= 1
    W(s) = u(s) + 52 * 2**52                                 s > 1

with ``u`` the signed bits of the double. W is strictly increasing and has no jumps. It needs
slightly more than 64 bits, so cells are computed from half of it:
``cell = (W >> 1) >> (level - 1)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.kernels import kernels

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from streammetrics.core.types import Array, Floats, Ints

MAX_LEVEL = 64  # two cells: negative scores and all others

_HALF = 1022 << 52  # bits(0.5)
_ONE = 1023 << 52
_INFINITY = 2047 << 52
_SIGN = np.int64(-(1 << 63))
_STEP = 2.0**53  # 1 - s is a whole multiple of 1 / _STEP for s in (0.5, 1]
_HALF_KEY_OF_ONE = 1075 << 51
_SHIFT_ABOVE_ONE = 26 << 52
_LOWEST, _HIGHEST = -(2047 << 51), 2099 << 51  # half keys of -inf and inf


def plain(array: Array, dtype: DTypeLike) -> Array:
    """Return an array in the form required by kernels: contiguous, aligned, and of the dtype."""
    flags = array.flags
    if array.dtype == dtype and flags.c_contiguous and flags.aligned:
        return array
    return np.require(array, dtype, ["C", "A"])


def cell_ids(scores: Floats, level: int) -> Ints:
    """Return the cell ids of scores (n,) at a level; at level 0 they are ``u``."""
    ids = np.empty(scores.size, np.int64)
    kernels.cells_ids(ids, plain(scores, np.float64), level)
    return ids


def cell_id_range(level: int) -> tuple[int, int]:
    """Return the lowest and the highest cell id at a level >= 1: those of -inf and inf."""
    return _LOWEST >> (level - 1), _HIGHEST >> (level - 1)


def cell_edges(ids: Ints, level: int) -> tuple[Floats, Floats]:
    """Return the lowest and the highest double of each cell at a level >= 1."""
    low = ids << (level - 1)
    high = low + ((1 << (level - 1)) - 1)
    return _first_score(np.maximum(low, _LOWEST)), _last_score(np.minimum(high, _HIGHEST))


def _first_score(half: Ints) -> Floats:
    """Return the lowest double s with W(s) >= 2 * half."""
    scores = _double(2 * half)
    upper = half > _HALF >> 1
    if upper.any():
        half = half[upper]
        mirrored = (2 * _HALF - 2 * np.minimum(half, _HALF_KEY_OF_ONE)).view(np.float64)
        found = 1.0 - np.floor(mirrored * _STEP) / _STEP
        above = half > _HALF_KEY_OF_ONE
        found[above] = (2 * (half[above] - _SHIFT_ABOVE_ONE)).view(np.float64)
        scores[upper] = found
    return scores


def _last_score(half: Ints) -> Floats:
    """Return the highest double s with W(s) <= 2 * half + 1."""
    scores = _double(2 * half + 1)
    upper = half >= _HALF >> 1
    if upper.any():
        half = half[upper]
        mirrored = (2 * _HALF - 1 - 2 * np.minimum(half, _HALF_KEY_OF_ONE - 1)).view(np.float64)
        found = 1.0 - np.ceil(mirrored * _STEP) / _STEP
        above = half >= _HALF_KEY_OF_ONE
        last = 2 * (half[above] - _SHIFT_ABOVE_ONE) + 1
        found[above] = np.minimum(last, _INFINITY).view(np.float64)
        scores[upper] = found
    return scores


def _double(signed: Ints) -> Floats:
    """Return the doubles of signed bits: the inverse of ``u``."""
    return np.where(signed < 0, _SIGN - signed, signed).view(np.float64)
