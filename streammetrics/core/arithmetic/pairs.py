"""Counts of pairs of numbers, in cells of both coordinates."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core.arithmetic.keys import MAX_LEVEL, cell_ids, plain
from streammetrics.core.counting import Union
from streammetrics.core.kernels import kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streammetrics.core.types import Array, Bools, Floats, Ints, Places

    Ranks = NDArray[np.int32]  # indices into the cells of an axis

ROW = 32  # the code of a pair is (row << ROW) | column
COLUMN = (1 << ROW) - 1


class Axis(NamedTuple):
    """Occupied cells of one coordinate.

    Attributes:
        ids: Ascending ids (n,); at level 0 they are the values.
        values: The value of each cell (n,); nan if it holds several.

    """

    ids: Array
    values: Floats

    def at_level(self, before: int, level: int) -> tuple[Axis, Ranks]:
        """Return the cells at a higher level, and the new place of each cell."""
        ids = self.ids >> (level - before) if before else cell_ids(self.values, level)
        starts, places = _runs(ids)
        single = np.diff(starts, append=ids.size) == 1
        return Axis(ids[starts], np.where(single, self.values[starts], np.nan)), places

    def union(self, other: Axis) -> tuple[Axis, Ints, Ints]:
        """Return the union of cells, and the places of each side's cells in it."""
        ids, *places = Union.of(self.ids, other.ids)
        mine, theirs = (np.arange(ids.size) if at is None else at for at in places)
        if self.ids is self.values:
            return Axis(ids, ids), mine, theirs
        values = np.full(ids.size, np.inf)
        values[theirs] = other.values
        new = np.ones(ids.size, np.bool_)
        new[theirs] = False
        values[mine] = np.where(new[mine] | (values[mine] == self.values), self.values, np.nan)
        return Axis(ids, values), mine, theirs

    def used(self, places: Ints) -> tuple[Axis, Ints]:
        """Return the cells of level 0 that occur in `places`, and `places` renumbered."""
        seen = np.zeros(self.ids.size, np.bool_)
        seen[places] = True
        values = self.values[seen]
        moved: Ints = (np.cumsum(seen) - 1)[places]
        return Axis(values, values), moved


class Marginal(NamedTuple):
    """Number of rows in each cell of one coordinate (n,), and whether it holds several values."""

    counts: Ints
    mixed: Bools


class PairCells:
    """Occupied pairs of cells at one level; immutable.

    Attributes:
        level: The level of both axes; 0 if all distinct values have their own cells.
        x: Cells of the first coordinate.
        y: Cells of the second coordinate.
        codes: The place on `x` and on `y` of each pair in one integer (m,), ascending.
        counts: Number of rows of each pair (m,).

    """

    def __init__(self, level: int, x: Axis, y: Axis, codes: Ints, counts: Ints) -> None:
        self.level, self.x, self.y = level, x, y
        self.codes, self.counts = codes, counts

    @classmethod
    def empty(cls) -> PairCells:
        """Return cells without rows."""
        nothing, none = np.empty(0), np.empty(0, np.int64)
        axis = Axis(nothing, nothing)
        return cls(0, axis, axis, none, none)

    @classmethod
    def of(cls, x: Floats, y: Floats, counts: Ints | None = None) -> PairCells:
        """Return the cells of rows at level 0; each row counts once without `counts`."""
        order, x_values, rows = _ranked(x)
        y_order, y_values, y_ranks = _ranked(y)
        columns = np.empty(y.size, np.int32)
        columns[y_order] = y_ranks
        # Rows are mostly in the order of x, so that codes are already sorted if x has no ties.
        own = None if counts is None else counts[order]
        codes, counts = _tallied(_coded(rows, columns[order]), own)
        return cls(0, Axis(x_values, x_values), Axis(y_values, y_values), codes, counts)

    @property
    def rows(self) -> Ints:
        """The place of each pair on the first axis (m,)."""
        return self.codes >> ROW

    @property
    def columns(self) -> Ints:
        """The place of each pair on the second axis (m,)."""
        return self.codes & COLUMN

    @cached_property
    def size(self) -> int:
        """The number of rows."""
        return int(self.counts.sum())

    def marginals(self) -> tuple[Marginal, Marginal]:
        """Return the rows in each cell of the first and of the second coordinate."""
        places = ((self.x, self.rows), (self.y, self.columns))
        x, y = (Marginal(self._summed(at, axis), np.isnan(axis.values)) for axis, at in places)
        return x, y

    def _summed(self, places: Array, axis: Axis) -> Ints:
        if self.size == axis.ids.size:
            return np.ones(axis.ids.size, np.int64)
        if self.size == self.codes.size:
            return np.bincount(places, minlength=axis.ids.size)
        # Sums of counts are exact in float64: at most 2**52 rows are held.
        return np.bincount(places, self.counts, axis.ids.size).astype(np.int64)

    def at_level(self, level: int) -> PairCells:
        """Return the same rows in the wider cells of a higher or equal level."""
        if level == self.level:
            return self
        x, rows = self.x.at_level(self.level, level)
        y, columns = self.y.at_level(self.level, level)
        codes = _coded(rows[self.rows], columns[self.columns])
        return PairCells(level, x, y, *_tallied(codes, self.counts))

    def _occupied(self, level: int) -> int:
        """Return the number of occupied pairs of cells at a higher or equal level."""
        rows = self.x.at_level(self.level, level)[1][self.rows]
        columns = self.y.at_level(self.level, level)[1][self.columns]
        codes = _coded(rows, columns)
        codes.sort()
        return 1 + int(np.count_nonzero(codes[1:] != codes[:-1]))

    def union(self, other: PairCells) -> PairCells:
        """Return the rows of both, at the higher of their levels."""
        level = max(self.level, other.level)
        a, b = self.at_level(level), other.at_level(level)
        if not a.codes.size or not b.codes.size:
            return a if a.codes.size else b
        x, *rows = a.x.union(b.x)
        y, *columns = a.y.union(b.y)
        codes = [
            _coded(row[cells.rows], column[cells.columns])
            for cells, row, column in zip((a, b), rows, columns, strict=True)
        ]
        counts = np.concatenate([a.counts, b.counts])
        return PairCells(level, x, y, *_tallied(np.concatenate(codes), counts))

    def without(self, other: PairCells) -> PairCells | None:
        """Return the rows without those of `other`, at level 0; ``None`` if some are absent."""
        both = self.union(other)
        if both.codes.size != self.codes.size:
            return None
        counts = 2 * self.counts - both.counts  # the pairs are the same
        if counts.min(initial=0) < 0:
            return None
        kept = np.flatnonzero(counts)
        rows, columns = self.rows[kept], self.columns[kept]
        (x, rows), (y, columns) = self.x.used(rows), self.y.used(columns)
        return PairCells(0, x, y, _coded(rows, columns), counts[kept])

    def fitted(self, max_pairs: int) -> PairCells:
        """Return the same rows at the lowest level, from this one on, within `max_pairs` pairs."""
        if self.codes.size <= max_pairs:
            return self
        # Usually only a few pairs are too many and the next level suffices: try it first.
        low, high, level = self.level, MAX_LEVEL, self.level + 1
        while high - low > 1:
            if self._occupied(level) <= max_pairs:
                high = level
            else:
                low = level
            level = (low + high) // 2
        return self.at_level(high)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        axes = {id(array): array.nbytes for array in (*self.x, *self.y)}
        return sum(axes.values()) + self.codes.nbytes + self.counts.nbytes


def _ranked(values: Floats) -> tuple[Places, Floats, Ints]:
    """Return rows, the distinct values in ascending order, and the value's place for each row.

    The returned rows are in the order of their values, unless values repeat often.
    """
    order, ranks = np.arange(values.size), np.empty(values.size, np.int64)
    distinct, most = np.empty(values.size), max(values.size, 2)
    # The kernel permutes row numbers as it would weights.
    _, size, _ = kernels.cells_count(
        *(plain(values, np.float64), None, order.view(np.float64), ranks, most, 0),
        *(None, distinct, None, 0, 1),
    )
    distinct.resize(size, refcheck=False)
    return order, distinct, ranks


def _runs(ascending: Array) -> tuple[Places, Ranks]:
    """Return where runs of equal values start, and the run number of each value."""
    new = np.ones(ascending.size, np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=new[1:])
    ranks = np.cumsum(new, dtype=np.int32)
    ranks -= 1
    return np.flatnonzero(new), ranks


def _coded(rows: Array, columns: Array) -> Ints:
    codes = rows.astype(np.int64)
    codes <<= ROW
    codes |= columns
    return codes


def _tallied(codes: Ints, counts: Ints | None) -> tuple[Ints, Ints]:
    """Return the distinct codes, ascending, with counts; ``None`` counts each code once."""
    if (codes[1:] > codes[:-1]).all():
        return codes, np.ones(codes.size, np.int64) if counts is None else counts
    if counts is None or counts.max(initial=1) == 1:
        ascending = np.sort(codes)
        starts, _ = _runs(ascending)
        return ascending[starts], np.diff(starts, append=codes.size)
    order = np.argsort(codes, kind="stable")  # they are mostly in order
    ascending = codes[order]
    starts, _ = _runs(ascending)
    return ascending[starts], np.add.reduceat(counts[order], starts)
