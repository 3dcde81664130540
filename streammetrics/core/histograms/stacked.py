"""Cells of many histograms written to and read from the arrays of their states, all at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.exact.sums import ExactSum
from streammetrics.core.histograms.cells import Cells, narrow_ids
from streammetrics.core.histograms.keys import MAX_LEVEL
from streammetrics.core.histograms.restoring import check_ids
from streammetrics.core.state.arrays import Stack

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from streammetrics.core.types import Array, Bools, Floats, Ints, Places

_NO_IDS = np.empty(0, np.int64)
_MOST = 1 << 31  # so many rows are more than int32 counts


def each_written(every: Sequence[Cells]) -> dict[str, Stack] | None:
    """Return the arrays of each, as `Cells.arrays`; ``None`` if some do not hold counts."""
    masses = [cells.mass for cells in every if not isinstance(cells.mass, ExactSum)]
    if len(masses) < len(every):
        return None
    return {
        "level": Stack.equal(np.array([cells.level for cells in every], np.int64), (1,)),
        "cells": Stack.of([cells.ids if cells.level else _NO_IDS for cells in every], np.int64),
        "scores": Stack.of([cells.scores for cells in every], np.float64),
        "counts": Stack.of(masses, np.int64),
    }


def plain_cells(max_cells: int, classes: int, stacks: Mapping[str, Stack]) -> list[Cells] | None:
    """Return the cells of each of many states, if all hold counts of scores without tails.

    ``None`` if one holds anything else, or may be no state of ours: `read_cells` looks at it by
    itself then, and says what is wrong.
    """
    if set(stacks) != {"level", "cells", "scores", "counts"}:
        return None
    levels, ids, scores, counts = (stacks[k] for k in ("level", "cells", "scores", "counts"))
    integers = all(stack.data.dtype == np.int64 for stack in (levels, ids, counts))
    if not integers or scores.data.dtype != np.float64 or not _fit(stacks, classes):
        return None
    sizes, level = scores.shapes[:, 0], levels.data
    if not (
        sizes.all() and sizes.max() <= max_cells and 0 <= level.min() <= level.max() <= MAX_LEVEL
    ):
        return None
    state = np.repeat(np.arange(len(sizes)), sizes)
    at, every = level[state], np.zeros(len(state), np.int64)
    every[at > 0] = ids.data
    single, mixed = scores.data + 0.0, np.isnan(scores.data)
    single[mixed] = np.nan
    mass = counts.data.reshape(-1, classes)
    if (
        (single.view(np.int64) != scores.data.view(np.int64)).any()
        or not _ascend(state, np.where(at > 0, 0.0, single), every)
        or not _fill(state, level, mixed, max_cells)
        or not _are_counts(mass, sizes)
    ):
        return None
    for one in np.unique(level[level > 0]).tolist():
        mine = at == one
        check_ids(every[mine], single[mine], mixed[mine], one)
    return _parted(level, sizes, every, single, mass.astype(np.int32))


def _fit(stacks: Mapping[str, Stack], classes: int) -> bool:
    """Whether the shapes of the arrays of each state are those of one histogram."""
    shapes = {name: stack.shapes for name, stack in stacks.items()}
    if [shapes[name].shape[1] for name in ("level", "cells", "scores", "counts")] != [1, 1, 1, 2]:
        return False
    if (shapes["level"] != 1).any() or (shapes["counts"][:, 1] != classes).any():
        return False
    sizes = shapes["scores"][:, 0]
    ids = np.where(stacks["level"].data > 0, sizes, 0)
    return bool((shapes["counts"][:, 0] == sizes).all() and (shapes["cells"][:, 0] == ids).all())


def _ascend(state: Places, scores: Floats, ids: Ints) -> bool:
    """Whether the cells of each state are in order: by their scores, or by their ids."""
    above = (scores[1:] > scores[:-1]) | (ids[1:] > ids[:-1])
    return bool((above | (state[1:] != state[:-1])).all())


def _fill(state: Places, level: Ints, mixed: Bools, max_cells: int) -> bool:
    """Whether no state could be at the level below: its cells would not fit there."""
    several = np.bincount(state[mixed], minlength=len(level))
    below = several + np.bincount(state)  # a cell of several scores would be two
    return not several[level == 0].any() and bool((below[level > 0] > max_cells).all())


def _are_counts(mass: Array, sizes: Ints) -> bool:
    """Whether every cell holds rows, and no state more than int32 counts."""
    if not 0 <= mass.min(initial=0) <= mass.max(initial=0) < _MOST:
        return False
    occupied, totals = np.zeros(len(mass), np.bool_), np.zeros(len(sizes), np.int64)
    starts = np.cumsum(sizes) - sizes
    for column in mass.T:
        occupied |= column != 0
        totals += np.add.reduceat(np.ascontiguousarray(column), starts)
    return bool(occupied.all() and totals.max() < _MOST)


def _parted(
    level: Ints, sizes: Ints, ids: Ints, scores: Floats, mass: NDArray[np.int32]
) -> list[Cells]:
    """Return the cells of each state in arrays of their own, so that each is freed by itself."""
    found, start, classes = [], 0, mass.shape[1]
    for one, size in zip(level.tolist(), sizes.tolist(), strict=True):
        part = slice(start, start := start + size)
        mine = scores[part].copy()
        first = narrow_ids(ids[part].copy(), one) if one else mine
        found.append(Cells(one, first, mine, mass[part].copy(), classes))
    return found
