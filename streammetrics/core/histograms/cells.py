"""Cells of a dyadic histogram: their ids at wider levels, their counts, and reading them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.exact.rounding import rounded
from streammetrics.core.exact.sums import ExactSum
from streammetrics.core.histograms.keys import (
    INT32_LEVEL,
    MAX_LEVEL,
    cell_edges,
    cell_ids,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import DTypeLike

    from streammetrics.core.types import Array, Bools, Floats, Ints, Places


_NO_BITS = 1022  # the exponent, as a float64 has it, of what has no bits before the point
INTEGER_LIMIT = 1 << 53  # weights that are integers stay so below this sum: all are doubles, too

CountType: TypeAlias = type[np.int32] | type[np.int64]  # the integers that counts are held in


class CellBlock(NamedTuple):
    """Consecutive cells in ascending order, as read from a histogram.

    Attributes:
        low: The lowest double of each cell (m,), or its score if `single`.
        high: The highest double of each cell (m,), or its score if `single`.
        single: Whether the cell holds one score only (m,).
        counts: What each class weighs (classes, m).

    """

    low: Floats
    high: Floats
    single: Bools
    counts: Ints | Floats


class Cells(NamedTuple):
    """Occupied cells of one level.

    Attributes:
        level: 0 if each score has a cell of its own, else how far the keys are shifted.
        ids: Ids (n,), ascending; at level 0 they are the scores.
        scores: The score of each cell (n,), nan if it holds several.
        mass: What each class weighs in each cell: integers (n, classes), or an `ExactSum` of that
            shape.
        classes: The number of classes.

    """

    level: int
    ids: Array
    scores: Floats
    mass: Array | ExactSum
    classes: int

    @classmethod
    def empty(cls, classes: int) -> Cells:
        """Return the cells of no rows."""
        none = np.empty(0)
        return cls(0, none, none, np.empty((0, classes), np.int64), classes)

    def ids_at(self, level: int) -> Array:
        """Return the ids at a level at least as high, at which neighbours may share one."""
        if level == self.level:
            return self.ids
        ids = self.ids >> (level - self.level) if self.level else cell_ids(self.scores, level)
        return narrow_ids(ids, level)

    def part(self, rows: slice | Places) -> Cells:
        """Return some of the cells, whose mass must be integers."""
        return self._replace(
            ids=self.ids[rows], scores=self.scores[rows], mass=np.asarray(self.mass)[rows]
        )

    def raised(self, level: int) -> Cells:
        """Return the cells with their ids at a higher level, at which neighbours may share one."""
        return self._replace(level=level, ids=self.ids_at(level))

    def normal(self) -> Cells:
        """Return the same cells with the mass in its canonical form."""
        if not isinstance(self.mass, ExactSum):
            return self
        return self._replace(mass=normal_mass(self.mass))

    def totals(self) -> tuple[float, ...]:
        """Return what each class weighs: Python integers if the mass is integers."""
        if isinstance(self.mass, ExactSum):
            return tuple(np.atleast_1d(self.mass.sum(0).to_float()).tolist())
        if self.mass.dtype == np.int32 and self.classes == 2:
            (both,) = columns_of(self.mass, np.int32)
            return tuple(both.sum(keepdims=True).view(np.int32).tolist())
        return tuple(self.mass.sum(axis=0, dtype=np.int64).tolist())

    def arrays(self) -> dict[str, Array]:
        """Return the canonical state, as `DyadicHistogram.arrays` documents it."""
        none = np.empty(0, np.int64)
        arrays: dict[str, Array] = {
            "level": np.array([self.level], np.int64),
            "cells": self.ids.astype(np.int64) if self.level else none,
            "scores": self.scores,
        }
        if isinstance(self.mass, ExactSum):
            exact = {f"mass.{name}": array for name, array in self.mass.arrays().items()}
            return arrays | exact
        return arrays | {"counts": self.mass.astype(np.int64)}

    @property
    def unit(self) -> int:
        """The exponent of the unit of the counts in blocks: 0 unless float64 could overflow."""
        if not isinstance(self.mass, ExactSum):
            return 0
        above: int = self.mass.exponent + 32 * self.mass.digits.shape[1] - 960
        return max(0, above)

    def blocks(self) -> Iterator[CellBlock]:
        """Yield the cells in blocks."""
        for start in range(0, self.ids.size, tuning.CELLS_READ):
            part = slice(start, start + tuning.CELLS_READ)
            scores = low = high = self.scores[part]
            single = ~np.isnan(scores)
            if self.level:
                low, high = cell_edges(self.ids[part], self.level)
                low, high = np.where(single, scores, low), np.where(single, scores, high)
            yield CellBlock(low, high, single, self._counts(part))

    def _counts(self, rows: slice) -> Ints | Floats:
        """Return what each class weighs in some cells (classes, m)."""
        if isinstance(self.mass, ExactSum):
            mass = self.mass.digits.reshape(*self.mass.shape, -1)[rows]
            near = rounded(mass.reshape(-1, mass.shape[2]), self.mass.exponent - self.unit)
            return near.reshape(mass.shape[:2]).T.copy()
        return self.mass[rows].T.astype(np.int64, order="C")

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        ids = self.ids.nbytes if self.level else 0
        return ids + self.scores.nbytes + self.mass.nbytes


def narrow_ids(ids: Array, level: int) -> Array:
    """Return ids as int32 from the level on at which all of them fit."""
    return ids.astype(np.int32, copy=False) if level >= INT32_LEVEL else ids


def narrow_counts(counts: Ints) -> Array | ExactSum:
    """Return counts as int32 or int64, or as exact sums if they add up to 2**53 or more."""
    dtype = count_dtype(counts)
    return ExactSum.counts(counts) if dtype is None else counts.astype(dtype, order="C")


def count_dtype(*masses: Array | ExactSum, more: int = 0) -> CountType | None:
    """Return the integers that hold the sum of all counts and `more`, and so every part of it.

    ``None`` if it is 2**53 or more, or if some are exact sums.
    """
    total = more
    for mass in masses:
        if isinstance(mass, ExactSum):
            return None
        total += int(mass.sum(dtype=np.int64))
    return np.int32 if total < 1 << 31 else np.int64 if total < INTEGER_LIMIT else None


def normal_mass(mass: ExactSum) -> Array | ExactSum:
    """Return the canonical form: integers if every weight is one and they add up to below 2**53."""
    if mass.exponent < 0:
        return mass
    near = np.asarray(mass.to_float())
    with np.errstate(over="ignore"):
        integral = near.sum() < INTEGER_LIMIT
    return narrow_counts(near.astype(np.int64)) if integral else mass


def exact_mass(mass: Array | ExactSum) -> ExactSum:
    """Return the mass as exact sums."""
    return mass if isinstance(mass, ExactSum) else ExactSum.counts(mass.astype(np.int64))


def columns_of(table: Array, dtype: DTypeLike) -> Iterable[Array]:
    """Return the columns of a table of counts, to be added up in a type that holds all sums.

    Two columns of int32 are viewed as one of int64, which halves the work: no sum of the lower
    one is so large that it would carry into the upper.
    """
    if dtype == np.int32 and table.shape[1] == 2:
        return [np.ascontiguousarray(table).view(np.int64).ravel()]
    return table.T


def fitting_level(ids: Array, level: int, max_cells: int) -> int:
    """Return the lowest level, from theirs on, at which ascending ids fit `max_cells`.

    At level 0 the ids are scores.
    """
    if 1 + np.count_nonzero(ids[1:] != ids[:-1]) <= max_cells:
        return level
    lengths = np.zeros(MAX_LEVEL + 1, np.int64)
    for start in range(0, ids.size - 1, tuning.KEY_ROWS):
        block = ids[start : start + tuning.KEY_ROWS + 1]
        block = block.astype(np.int64) if level else cell_ids(block, 1)
        # Two neighbours stay apart for every shift below the bit length of their difference (xor).
        # Clearing its second highest bit keeps the conversion to float64 from rounding up.
        differs = (block[1:] ^ block[:-1]).view(np.uint64)
        exponent = (differs & ~(differs >> 1)).astype(np.float64).view(np.int64) >> 52
        counts = np.bincount(exponent, minlength=_NO_BITS + MAX_LEVEL + 1)
        lengths += counts[_NO_BITS:]
        lengths[0] += counts[0]  # of equal ids
    remaining = ids.size - np.cumsum(lengths)
    return max(level, 1) + int(np.argmax(remaining <= max_cells))


def runs_of(ids: Array, scores: Floats, *, ascending: bool = True) -> tuple[Places, Array, Floats]:
    """Return where each run of equal ids starts, its id, and its score, nan if it has several.

    Equal ids stand together. Scores may be nan; if they are ascending as well, a run that begins
    and ends with the same score has no other, which saves a look at each.
    """
    parted = ids[1:] != ids[:-1]
    starts = np.flatnonzero(parted)
    starts += 1
    starts = np.concatenate([np.zeros(min(ids.size, 1), np.intp), starts])
    first = scores[starts]
    if ids is scores or not starts.size:
        return starts, ids[starts], first
    if ascending:
        differs = first[:-1] != scores[starts[1:] - 1]
        np.copyto(first[:-1], np.nan, where=differs)
        first[-1] = first[-1] if first[-1] == scores[-1] else np.nan
    else:
        mixed = np.zeros(ids.size, np.bool_)
        np.not_equal(scores[1:], scores[:-1], out=mixed[1:])
        mixed[1:] &= ~parted
        np.copyto(first, np.nan, where=np.logical_or.reduceat(mixed, starts))
    return starts, ids[starts], first
