"""Cells of a dyadic histogram read from the arrays of a state, which may come from anyone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.errors import StateFormatError
from streammetrics.core.exact.sums import ExactSum
from streammetrics.core.histograms.cells import (
    INTEGER_LIMIT,
    Cells,
    narrow_counts,
    narrow_ids,
    normal_mass,
)
from streammetrics.core.histograms.keys import MAX_LEVEL, cell_edges, cell_id_range, cell_ids
from streammetrics.core.histograms.long import LongCells, are_tails, split
from streammetrics.core.state.arrays import take_array

if TYPE_CHECKING:
    from streammetrics.core.types import Array, Arrays, Bools, Floats, Ints


def read_cells(max_cells: int, classes: int, arrays: Arrays) -> tuple[Cells, LongCells | None]:
    """Return the cells of the arrays of a state, those of scores with tails apart.

    The latter are ``None`` if no score ever had a tail. Raises `StateFormatError` unless the
    arrays are such as a histogram writes, in every point that they can show.
    """
    mass_names = {name for name in arrays if name.startswith("mass.")} or {"counts"}
    tailed = "tails" in arrays
    if set(arrays) != {"level", "cells", "scores", *["tails"][:tailed]} | mass_names:
        raise StateFormatError(f"these are not the arrays of a histogram: {sorted(arrays)}")
    levels, scores = take_array(arrays, "level", "int64"), take_array(arrays, "scores", "float64")
    if levels.size != 1 or not 0 <= levels[0] <= MAX_LEVEL:
        raise StateFormatError(f"the level of a histogram cannot be {levels.tolist()}")
    level = int(levels[0])
    ids = take_array(arrays, "cells", "int64")
    if ids.size != (scores.size if level else 0) or scores.size > max_cells:
        raise StateFormatError(f"{ids.size} cells and {scores.size} scores, of {max_cells} cells")
    order = ids if level else scores
    tails = _read_tails(arrays, level, scores) if tailed else None
    ascending = order[1:] > order[:-1]
    if tails is not None and not level:
        ascending |= (order[1:] == order[:-1]) & (tails[1:] > tails[:-1])
    if not ascending.all():
        raise StateFormatError("the cells of a histogram are not in ascending order")
    mixed = np.isnan(scores)
    plain = scores + 0.0
    np.copyto(plain, np.nan, where=mixed)
    if plain.tobytes() != scores.tobytes():
        raise StateFormatError("the scores of a histogram hold -0.0 or a nan that is not ours")
    if level:
        check_ids(ids, scores, mixed, level)
        if _below(ids[mixed], level, tailed=tailed) + np.count_nonzero(~mixed) <= max_cells:
            raise StateFormatError(f"the cells fit a level below {level}")
    elif mixed.any():
        raise StateFormatError("a score of a histogram is nan at level 0")
    mass = _read_mass(arrays, (scores.size, classes))
    ids = narrow_ids(ids.copy(), level) if level else plain
    cells = Cells(level, ids, plain, mass, classes)
    if tails is None:
        return cells, None
    return (cells, LongCells.empty(classes)) if level else split(cells, tails)


def _read_tails(arrays: Arrays, level: int, scores: Floats) -> Floats:
    tails = take_array(arrays, "tails", "float64")
    if level:
        if tails.size:
            raise StateFormatError("there are tails of scores past level 0")
        return tails
    if tails.size != scores.size or not tails.any():
        raise StateFormatError(f"{tails.size} tails of {scores.size} scores of a histogram")
    if not are_tails(scores, tails).all() or (np.signbit(tails) & (tails == 0)).any():
        raise StateFormatError("a tail of a score is not what float64 leaves of an integer")
    return tails


def _below(mixed: Ints, level: int, *, tailed: bool) -> float:
    """Return how many cells the `mixed` ones, of several scores, can be at the level below.

    They are two each. Below level 1 they are as many as they can hold scores: two doubles or,
    with tails, all the integers that are nearest to either.
    """
    if not tailed:
        return 2.0 * mixed.size
    first, last = cell_edges(mixed, level)
    above = (first <= 2.0**64) & (last >= 2.0**53)
    if not (above | ((first <= -(2.0**53)) & (last >= -(2.0**63)))).any():
        raise StateFormatError("no cell of a histogram can hold the scores that had tails")
    if level > 1:
        return 2.0 * mixed.size
    size = np.abs(np.concatenate([first, last]))
    long = (size >= 2.0**53) & (size <= 2.0**64)
    return float(np.where(long, np.spacing(np.where(long, size, 1.0)) + 1, 1.0).sum())


def check_ids(ids: Ints, scores: Floats, mixed: Bools, level: int) -> None:
    """Raise if ids are out of the range of a level, or not those of their scores."""
    low, high = cell_id_range(level)
    if ids.size and not (low <= ids.min() and ids.max() <= high):
        raise StateFormatError("a cell of a histogram is beyond every score")
    if (cell_ids(scores[~mixed], level) != ids[~mixed]).any():
        raise StateFormatError("a score of a histogram is not in its cell")
    first, last = cell_edges(ids[mixed], level)
    if not (first < last).all():
        raise StateFormatError("a cell of a single double is said to hold several scores")


def _read_mass(arrays: Arrays, shape: tuple[int, int]) -> Array | ExactSum:
    """Return the weights (n, classes); raises unless they are canonical and none is negative."""
    if "counts" in arrays:
        return _read_counts(take_array(arrays, "counts", "int64", 2), shape)
    parts = {name[5:]: array for name, array in arrays.items() if name.startswith("mass.")}
    mass = ExactSum.from_arrays(shape, parts)
    # The highest digit has the sign.
    if (mass.digits[:, -1:] < 0).any():
        raise StateFormatError("a weight of a histogram is negative")
    if not mass.digits.reshape(shape[0], shape[1] * mass.digits.shape[1]).any(axis=1).all():
        raise StateFormatError("a cell of a histogram weighs nothing")
    if not isinstance(normal_mass(mass), ExactSum):
        raise StateFormatError("the weights of a histogram are not in our form")
    return mass


def _read_counts(counts: Ints, shape: tuple[int, int]) -> Array:
    if counts.shape != shape:
        raise StateFormatError(f"the counts of a histogram are {counts.shape}, not {shape}")
    if counts.min(initial=0) < 0:
        raise StateFormatError("a weight of a histogram is negative")
    if not (counts[:, 0] | counts[:, -1]).all():  # of one class or two
        raise StateFormatError("a cell of a histogram weighs nothing")
    # A sum that overflows int64 is found in float64, which is exact enough to tell.
    fits = counts.sum(dtype=np.float64) < 2 * INTEGER_LIMIT
    narrow = narrow_counts(counts) if fits else None
    if narrow is None or isinstance(narrow, ExactSum):
        raise StateFormatError("the weights of a histogram are not in our form")
    return narrow
