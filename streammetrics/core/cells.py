"""Cells of a dyadic histogram: counted from sorted rows, widened, united, read, checked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streammetrics.core.errors import StateFormatError
from streammetrics.core.exact import ExactSum
from streammetrics.core.keys import (
    BLOCK,
    INT32_LEVEL,
    MAX_LEVEL,
    Rows,
    cell_edges,
    cell_id_range,
    cell_ids,
)
from streammetrics.core.statistic import take_array

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from streammetrics.core.keys import Floats

READ = 1 << 16  # cells read at a time
_INTEGER_LIMIT = 1 << 53  # integers with a sum below are counts, and doubles as well


class CellBlock(NamedTuple):
    """A run of cells in ascending order, as read from a histogram.

    ``low`` and ``high`` (m,) are the lowest and the highest double of each cell, both equal to
    the score where ``single`` (m,) says that the cell holds one score only; ``counts``
    (classes, m) is what each class weighs.
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    single: NDArray[np.bool_]
    counts: NDArray[np.int64] | NDArray[np.float64]


class Cells(NamedTuple):
    """Occupied cells of one level: ids (n,) ascending, scores (n,) or nan, mass per class.

    At level 0 the scores are the ids. The mass is a table (n, classes) of integers or an
    ``ExactSum`` of that shape.
    """

    level: int
    ids: NDArray[Any]
    scores: Floats
    mass: NDArray[Any] | ExactSum
    classes: int

    @classmethod
    def empty(cls, classes: int) -> Cells:
        """Cells of no rows."""
        none = np.empty(0)
        return cls(0, none, none, np.empty((0, classes), np.int64), classes)

    def at_level(self, level: int) -> Cells:
        """The same rows in the wider cells of a level at least as high."""
        if level == self.level:
            return self
        if self.level == 0:
            ids = _narrow_ids(cell_ids(self.scores, level), level)
        else:
            ids = _narrow_ids(self.ids >> (level - self.level), level)
        starts, first, scores = _runs(ids, self.scores)
        if isinstance(self.mass, ExactSum):
            index = np.repeat(np.arange(starts.size), np.diff(starts, append=ids.size))
            mass = self.mass.regroup(index, starts.size)
            return Cells(level, first, scores, mass, self.classes)
        counts = self.mass
        if starts.size:
            counts = np.add.reduceat(counts, starts, axis=0, dtype=counts.dtype)
        return Cells(level, first, scores, counts, self.classes)

    def fitted(self, max_cells: int) -> Cells:
        """The same rows at the lowest level that needs at most ``max_cells`` cells."""
        if self.ids.size <= max_cells:
            return self
        return self.at_level(fitting_level(self.ids, self.level, max_cells))

    def union(self, other: Cells) -> Cells:
        """The rows of both; levels may differ."""
        level = max(self.level, other.level)
        many, few = self.at_level(level), other.at_level(level)
        if many.ids.size < few.ids.size:
            many, few = few, many
        if not few.ids.size:
            return many
        near = np.searchsorted(many.ids, few.ids)
        found = many.ids[np.minimum(near, many.ids.size - 1)] == few.ids
        place = near + np.cumsum(~found) - ~found
        size = many.ids.size + few.ids.size - int(np.count_nonzero(found))
        kept = np.bincount(near[~found], minlength=many.ids.size + 1)[:-1]
        kept[1:] += 1
        np.cumsum(kept, out=kept)
        scores = np.empty(size)
        scores[kept] = many.scores
        shared = place[found]
        mixed = shared[scores[shared] != few.scores[found]]
        scores[place] = few.scores
        scores[mixed] = np.nan
        ids = scores
        if level:
            ids = np.empty(size, many.ids.dtype)
            ids[kept], ids[place] = many.ids, few.ids
        dtype = _count_dtype(many.mass, few.mass)
        if dtype is None or isinstance(many.mass, ExactSum) or isinstance(few.mass, ExactSum):
            mass = _exact(many.mass).regroup(kept, size) + _exact(few.mass).regroup(place, size)
            return Cells(level, ids, scores, mass, self.classes)
        counts = np.zeros((size, self.classes), dtype)
        for column, more, less in zip(counts.T, many.mass.T, few.mass.T, strict=True):
            column[kept] = more
            column[place] += less
        return Cells(level, ids, scores, counts, self.classes)

    def normal(self) -> Cells:
        """The same cells with the mass in its canonical form."""
        if not isinstance(self.mass, ExactSum):
            return self
        return self._replace(mass=_normal_mass(self.mass))

    def totals(self) -> tuple[float, ...]:
        """What each class weighs: integers where the mass is in integers."""
        if isinstance(self.mass, ExactSum):
            return tuple(np.atleast_1d(self.mass.sum(0).to_float()).tolist())
        return tuple(self.mass.sum(axis=0, dtype=np.int64).tolist())

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The canonical state, as :meth:`DyadicHistogram.arrays` documents it."""
        none = np.empty(0, np.int64)
        arrays: dict[str, NDArray[Any]] = {
            "level": np.array([self.level], np.int64),
            "cells": self.ids.astype(np.int64) if self.level else none,
            "scores": self.scores,
        }
        if isinstance(self.mass, ExactSum):
            exact = {f"mass.{name}": array for name, array in self.mass.arrays().items()}
            return arrays | exact
        return arrays | {"counts": self.mass.astype(np.int64)}

    def blocks(self) -> Iterator[CellBlock]:
        """What the cells hold, in blocks."""
        exact = isinstance(self.mass, ExactSum)
        mass = np.asarray(self.mass.to_float() if isinstance(self.mass, ExactSum) else self.mass)
        for start in range(0, self.ids.size, READ):
            part = slice(start, start + READ)
            scores = low = high = self.scores[part]
            single = ~np.isnan(scores)
            if self.level:
                low, high = cell_edges(self.ids[part], self.level)
                low, high = np.where(single, scores, low), np.where(single, scores, high)
            counts: Any = mass[part].T.astype(np.float64 if exact else np.int64, order="C")
            yield CellBlock(low, high, single, counts)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        ids = self.ids.nbytes if self.level else 0
        return ids + self.scores.nbytes + self.mass.nbytes


def _narrow_ids(ids: NDArray[Any], level: int) -> NDArray[Any]:
    """Ids in half the memory from the level on where they fit."""
    return ids.astype(np.int32, copy=False) if level >= INT32_LEVEL else ids


def narrow_counts(counts: NDArray[np.int64]) -> NDArray[Any] | ExactSum:
    """Counts in half the memory where they fit, or exact sums past what int64 is safe for."""
    dtype = _count_dtype(counts)
    return ExactSum.counts(counts) if dtype is None else counts.astype(dtype)


def _count_dtype(*masses: NDArray[Any] | ExactSum) -> type[np.integer[Any]] | None:
    """Integers that hold the sum of all counts, hence every sum of some; None where none do."""
    total = 0
    for mass in masses:
        if isinstance(mass, ExactSum):
            return None
        total += int(mass.sum(dtype=np.int64))
    return np.int32 if total < 1 << 31 else np.int64 if total < _INTEGER_LIMIT else None


def _normal_mass(mass: ExactSum) -> NDArray[Any] | ExactSum:
    """The canonical form: integers where every weight is one and their sum is below 2**53."""
    if mass.exponent < 0:
        return mass
    near = np.asarray(mass.to_float())
    with np.errstate(over="ignore"):
        integral = near.sum() < _INTEGER_LIMIT
    return narrow_counts(near.astype(np.int64)) if integral else mass


def _exact(mass: NDArray[Any] | ExactSum) -> ExactSum:
    return mass if isinstance(mass, ExactSum) else ExactSum.counts(mass.astype(np.int64))


def fitting_level(ids: NDArray[Any], level: int, max_cells: int) -> int:
    """The lowest level at which ascending ids of a level, or scores at 0, fit ``max_cells``."""
    if 1 + np.count_nonzero(ids[1:] != ids[:-1]) <= max_cells:
        return level
    lengths = np.zeros(MAX_LEVEL + 1, np.int64)
    for start in range(0, ids.size - 1, BLOCK):
        block = ids[start : start + BLOCK + 1]
        block = block.astype(np.int64) if level else cell_ids(block, 1)
        # Neighbours part at every shift below the length of what differs between them. Clearing
        # the second highest bit keeps the conversion to float64 from rounding up.
        differs = (block[1:] ^ block[:-1]).view(np.uint64)
        length = np.frexp((differs & ~(differs >> 1)).astype(np.float64))[1]
        lengths += np.bincount(length, minlength=MAX_LEVEL + 1)
    remaining = ids.size - np.cumsum(lengths)
    return max(level, 1) + int(np.argmax(remaining <= max_cells))


def _runs(
    ids: NDArray[Any], scores: Floats
) -> tuple[NDArray[np.intp], NDArray[Any], NDArray[np.float64]]:
    """Starts of the runs of equal ids, their ids, and the score of those that hold only one.

    Scores are ascending, or nan, so a run is of one score if it begins and ends with it.
    """
    starts = np.flatnonzero(ids[1:] != ids[:-1])
    starts += 1
    starts = np.concatenate([np.zeros(min(ids.size, 1), np.intp), starts])
    first = scores[starts]
    if ids is scores:
        return starts, first, first
    last = scores[np.append(starts[1:], ids.size) - 1] if starts.size else first
    return starts, ids[starts], np.where(first == last, first, np.nan)


def counted_parts(rows: Rows, level: int, classes: int) -> Iterator[Cells]:
    """Ascending parts of the cells of rows that ``sorted_rows`` has sorted.

    The temporaries of a part stay in the cache.
    """
    start, size = 0, rows.scores.size
    while start < size:
        stop = start + READ
        if stop < size:  # do not cut through a cell
            edge = rows.scores[stop - 1 : stop]
            if level:
                edge = cell_edges(cell_ids(edge, level), level)[1]
            stop = int(np.searchsorted(rows.scores, edge[0], side="right"))
        yield _counted(rows.part(slice(start, stop)), level, classes)
        start = stop


def counted(rows: Rows, level: int, classes: int) -> Cells:
    """Cells of rows that :func:`~streammetrics.core.keys.sorted_rows` has sorted."""
    if rows.weight is not None:
        return _counted(rows, level, classes)
    _, ids, scores, masses, _ = zip(*counted_parts(rows, level, classes), strict=True)
    single = np.concatenate(scores)
    first = np.concatenate(ids) if level else single
    return Cells(level, first, single, np.concatenate(masses), classes)


def _counted(rows: Rows, level: int, classes: int) -> Cells:
    scores, size = rows.scores, rows.scores.size
    ids = _narrow_ids(cell_ids(scores, level), level) if level else scores
    starts, first, single = _runs(ids, scores)
    runs = np.diff(starts, append=size)
    mass: NDArray[Any] | ExactSum
    if rows.weight is not None:
        entry = np.repeat(np.arange(starts.size) * classes, runs)
        if rows.codes is not None:
            entry += rows.codes
        flat = ExactSum.grouped(entry, starts.size * classes, rows.weight)
        mass = replace(flat, shape=(starts.size, classes))
    elif rows.codes is None:
        mass = narrow_counts(runs[:, None])
    else:
        counts = np.empty((starts.size, classes), np.int64)
        if starts.size == size:
            counts[:, 1] = rows.codes
        else:
            ones = np.cumsum(rows.codes, dtype=np.int64)
            counts[:, 1] = np.diff(ones[starts + runs - 1], prepend=0)
        np.subtract(runs, counts[:, 1], out=counts[:, 0])
        mass = narrow_counts(counts)
    return Cells(level, first, single, mass, classes)


def read_cells(max_cells: int, classes: int, arrays: Mapping[str, NDArray[Any]]) -> Cells:
    """Cells of the arrays of a state, after checking everything that can be."""
    mass_names = {name for name in arrays if name.startswith("mass.")} or {"counts"}
    if set(arrays) != {"level", "cells", "scores"} | mass_names:
        raise StateFormatError(f"these are not the arrays of a histogram: {sorted(arrays)}")
    levels, scores = take_array(arrays, "level", "int64"), take_array(arrays, "scores", "float64")
    if levels.size != 1 or not 0 <= levels[0] <= MAX_LEVEL:
        raise StateFormatError(f"the level of a histogram cannot be {levels.tolist()}")
    level = int(levels[0])
    ids = take_array(arrays, "cells", "int64")
    if ids.size != (scores.size if level else 0) or scores.size > max_cells:
        raise StateFormatError(f"{ids.size} cells and {scores.size} scores, of {max_cells} cells")
    order = ids if level else scores
    if not (order[1:] > order[:-1]).all():
        raise StateFormatError("the cells of a histogram are not in ascending order")
    mixed = np.isnan(scores)
    plain = np.where(mixed, np.nan, scores + 0.0)
    if plain.tobytes() != scores.tobytes():
        raise StateFormatError("the scores of a histogram hold -0.0 or a nan that is not ours")
    if level:
        _check_ids(ids, scores, mixed, level)
        # At the level below, a cell of several scores is at most two cells.
        if scores.size + np.count_nonzero(mixed) <= max_cells:
            raise StateFormatError(f"the cells fit a level below {level}")
    elif mixed.any():
        raise StateFormatError("a score of a histogram is nan at level 0")
    mass = _read_mass(arrays, (scores.size, classes))
    ids = _narrow_ids(ids.copy(), level) if level else plain
    return Cells(level, ids, plain, mass, classes)


def _check_ids(
    ids: NDArray[np.int64], scores: Floats, mixed: NDArray[np.bool_], level: int
) -> None:
    low, high = cell_id_range(level)
    if ids.size and not (low <= ids[0] and ids[-1] <= high):
        raise StateFormatError("a cell of a histogram is beyond every score")
    if (cell_ids(scores[~mixed], level) != ids[~mixed]).any():
        raise StateFormatError("a score of a histogram is not in its cell")
    first, last = cell_edges(ids[mixed], level)
    if not (first < last).all():
        raise StateFormatError("a cell of a single double is said to hold several scores")


def _read_mass(
    arrays: Mapping[str, NDArray[Any]], shape: tuple[int, int]
) -> NDArray[Any] | ExactSum:
    """Weights (n, classes), after checking that they are in our form and not negative."""
    if "counts" in arrays:
        mass = ExactSum.counts(take_array(arrays, "counts", "int64", 2))
    else:
        parts = {name[5:]: array for name, array in arrays.items() if name.startswith("mass.")}
        mass = ExactSum.from_arrays(shape, parts)
    if mass.shape != shape:
        raise StateFormatError(f"the counts of a histogram are {mass.shape}, not {shape}")
    # The highest digit has the sign.
    if (mass.digits[:, -1:] < 0).any():
        raise StateFormatError("a weight of a histogram is negative")
    if not mass.digits.reshape(shape[0], shape[1] * mass.digits.shape[1]).any(axis=1).all():
        raise StateFormatError("a cell of a histogram weighs nothing")
    normal = _normal_mass(mass)
    if isinstance(normal, ExactSum) == ("counts" in arrays):
        raise StateFormatError("the weights of a histogram are not in our form")
    return normal
