"""Cells of a dyadic histogram: their ids at wider levels, their counts, and reading them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.exact.floats import rounded
from streammetrics.core.exact.sums import ExactSum
from streammetrics.core.histograms.keys import (
    INT32_LEVEL,
    MAX_LEVEL,
    cell_edges,
    cell_ids,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import DTypeLike, NDArray

    from streammetrics.core.types import Floats

INTEGER_LIMIT = 1 << 53  # integers with a sum below are counts, and doubles as well


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

    def ids_at(self, level: int) -> NDArray[Any]:
        """The ids of the cells at a level at least as high, where several may be one."""
        if level == self.level:
            return self.ids
        ids = self.ids >> (level - self.level) if self.level else cell_ids(self.scores, level)
        return narrow_ids(ids, level)

    def part(self, rows: slice | NDArray[np.intp]) -> Cells:
        """Some of the cells, of integer mass."""
        return self._replace(
            ids=self.ids[rows], scores=self.scores[rows], mass=np.asarray(self.mass)[rows]
        )

    def raised(self, level: int) -> Cells:
        """The same cells with their ids at a level at least as high, where several may be one."""
        return self._replace(level=level, ids=self.ids_at(level))

    def normal(self) -> Cells:
        """The same cells with the mass in its canonical form."""
        if not isinstance(self.mass, ExactSum):
            return self
        return self._replace(mass=normal_mass(self.mass))

    def totals(self) -> tuple[float, ...]:
        """What each class weighs: integers where the mass is in integers."""
        if isinstance(self.mass, ExactSum):
            return tuple(np.atleast_1d(self.mass.sum(0).to_float()).tolist())
        if self.mass.dtype == np.int32 and self.classes == 2:
            (both,) = columns_of(self.mass, np.int32)
            return tuple(both.sum(keepdims=True).view(np.int32).tolist())
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

    @property
    def unit(self) -> int:
        """The power of two in which float64 weights are told: 0 unless they could overflow."""
        if not isinstance(self.mass, ExactSum):
            return 0
        above: int = self.mass.exponent + 32 * self.mass.digits.shape[1] - 960
        return max(0, above)

    def blocks(self) -> Iterator[CellBlock]:
        """What the cells hold, in blocks."""
        for start in range(0, self.ids.size, tuning.CELLS_READ):
            part = slice(start, start + tuning.CELLS_READ)
            scores = low = high = self.scores[part]
            single = ~np.isnan(scores)
            if self.level:
                low, high = cell_edges(self.ids[part], self.level)
                low, high = np.where(single, scores, low), np.where(single, scores, high)
            yield CellBlock(low, high, single, self._counts(part))

    def _counts(self, rows: slice) -> Any:
        """What each class weighs in some cells (classes, m)."""
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


def narrow_ids(ids: NDArray[Any], level: int) -> NDArray[Any]:
    """Ids in half the memory from the level on where they fit."""
    return ids.astype(np.int32, copy=False) if level >= INT32_LEVEL else ids


def narrow_counts(counts: NDArray[np.int64]) -> NDArray[Any] | ExactSum:
    """Counts in half the memory where they fit, or exact sums past what int64 is safe for."""
    dtype = count_dtype(counts)
    return ExactSum.counts(counts) if dtype is None else counts.astype(dtype, order="C")


def count_dtype(*masses: NDArray[Any] | ExactSum, more: int = 0) -> type[np.integer[Any]] | None:
    """Integers that hold the sum of all counts and ``more``, hence of some; None where none do."""
    total = more
    for mass in masses:
        if isinstance(mass, ExactSum):
            return None
        total += int(mass.sum(dtype=np.int64))
    return np.int32 if total < 1 << 31 else np.int64 if total < INTEGER_LIMIT else None


def normal_mass(mass: ExactSum) -> NDArray[Any] | ExactSum:
    """The canonical form: integers where every weight is one and their sum is below 2**53."""
    if mass.exponent < 0:
        return mass
    near = np.asarray(mass.to_float())
    with np.errstate(over="ignore"):
        integral = near.sum() < INTEGER_LIMIT
    return narrow_counts(near.astype(np.int64)) if integral else mass


def exact_mass(mass: NDArray[Any] | ExactSum) -> ExactSum:
    """The mass as exact sums."""
    return mass if isinstance(mass, ExactSum) else ExactSum.counts(mass.astype(np.int64))


def columns_of(table: NDArray[Any], dtype: DTypeLike) -> Iterable[NDArray[Any]]:
    """Columns of a table of counts, to be added up as integers of a type that holds the sums.

    Two columns of int32 are one of int64, as their sums are too small to carry over.
    """
    if dtype == np.int32 and table.shape[1] == 2:
        return [np.ascontiguousarray(table).view(np.int64).ravel()]
    return table.T


def fitting_level(ids: NDArray[Any], level: int, max_cells: int) -> int:
    """The lowest level at which ascending ids of a level, or scores at 0, fit ``max_cells``."""
    if 1 + np.count_nonzero(ids[1:] != ids[:-1]) <= max_cells:
        return level
    lengths = np.zeros(MAX_LEVEL + 1, np.int64)
    for start in range(0, ids.size - 1, tuning.KEY_ROWS):
        block = ids[start : start + tuning.KEY_ROWS + 1]
        block = block.astype(np.int64) if level else cell_ids(block, 1)
        # Neighbours part at every shift below the length of what differs between them. Clearing
        # the second highest bit keeps the conversion to float64 from rounding up.
        differs = (block[1:] ^ block[:-1]).view(np.uint64)
        length = np.frexp((differs & ~(differs >> 1)).astype(np.float64))[1]
        lengths += np.bincount(length, minlength=MAX_LEVEL + 1)
    remaining = ids.size - np.cumsum(lengths)
    return max(level, 1) + int(np.argmax(remaining <= max_cells))


def runs_of(
    ids: NDArray[Any], scores: Floats, *, ascending: bool = True
) -> tuple[NDArray[np.intp], NDArray[Any], NDArray[np.float64]]:
    """Starts of the runs of equal ids, their ids, and the score of those that hold only one.

    Scores may be nan. Where they are ascending, a run is of one score if it begins and ends with
    it.
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
