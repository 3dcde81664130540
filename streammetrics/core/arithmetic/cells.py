"""Cells of a sorted histogram: counting rows, merging, and conversion to and from arrays.

At level 0 every distinct score has its own cell. If there are too many, the cell of a score is its
key shifted right by ``level`` (see `streammetrics.core.arithmetic.keys`), at the lowest level at
which the number of occupied cells is within the budget. The kernels find the level, count rows or
sum their weights exactly in each cell, and merge cells; this file allocates the arrays.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.arithmetic.keys import (
    MAX_LEVEL,
    cell_edges,
    cell_id_range,
    cell_ids,
    plain,
)
from streammetrics.core.errors import IncompatibleMetricsError, StateFormatError
from streammetrics.core.kernels import kernels
from streammetrics.core.state.arrays import take_array, take_sizes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from streammetrics.core.types import Array, Arrays, Bools, Floats, Ints

Mass: TypeAlias = "Array | ExactSum"

CALL_ROWS = 1 << 22  # rows that a kernel sorts per call, unless the budget of cells is larger
INTEGER_LIMIT = 1 << 53  # integer weights with a smaller sum are stored as integers; exact as float
_NARROW = 1 << 31
_NONE = np.empty(0, np.int64)


class CellBlock(NamedTuple):
    """Consecutive cells of a histogram, in ascending order.

    Attributes:
        low: The lowest double of each cell (m,), or its score if `single`.
        high: The highest double of each cell (m,), or its score if `single`.
        single: Whether the cell holds only one distinct score (m,).
        counts: The weight of each class (classes, m).

    """

    low: Floats
    high: Floats
    single: Bools
    counts: Ints | Floats


class ScoredRows(NamedTuple):
    """Rows to be counted.

    Attributes:
        scores: Scores (n,).
        codes: The class of each row (n,), integers of any type; ``None`` if there is
            only one class.
        weight: Weights (n,); with shape (n, 1) a row weighs the square; int64 for rows that count
            several times, less than 2**53 together; ``None`` for 1.
        tails: The differences between exact integers and `scores` (n,), all nonzero; ``None`` if
            scores are exact.

    """

    scores: Floats
    codes: Array | None
    weight: Array | None
    tails: Floats | None = None

    def part(self, index: slice | Array) -> ScoredRows:
        """Return the rows selected by a slice, positions or a mask."""
        return ScoredRows._make([None if column is None else column[index] for column in self])

    def copy(self) -> ScoredRows:
        """Return the rows with copied arrays."""
        return ScoredRows._make([None if column is None else column.copy() for column in self])

    @property
    def nbytes(self) -> int:
        """Bytes of the columns."""
        return sum([column.nbytes for column in self if column is not None])

    @property
    def counted(self) -> bool:
        """Whether the rows have no weights, or are rows that count several times."""
        return self.weight is None or self.weight.dtype.kind == "i"

    @property
    def kind(self) -> tuple[object, bool]:
        """Which weights, and whether tails the rows have; only those of one kind can be joined."""
        return self.weight is None or self.weight.dtype.kind, self.tails is not None


def batches(every: Iterable[ScoredRows], most: int) -> Iterator[ScoredRows]:
    """Yield all rows of one kind in order: batches joined up to `most` rows, larger ones as is."""
    pending: list[ScoredRows] = []
    room = most
    for rows in every:
        size = rows.scores.size
        if pending and size > room:
            yield _joined(pending)
            pending, room = [], most
        pending.append(rows)
        room -= size
    if pending:
        yield _joined(pending)


def _joined(every: Sequence[ScoredRows]) -> ScoredRows:
    if len(every) == 1:
        return every[0]
    columns = zip(*every, strict=True)
    return ScoredRows._make([None if c[0] is None else np.concatenate(c) for c in columns])


class Cells(NamedTuple):
    """Occupied cells of one level. Immutable: arrays are shared and never written to.

    Attributes:
        level: 0 if each score has its own cell, otherwise the shift of the keys.
        ids: Ascending ids (n,); ``None`` at level 0, where the scores are ascending.
        scores: The score of each cell (n,); nan if it holds several.
        mass: The weight of each class in each cell: integers (n, classes), or an `ExactSum` of that
            shape if a weight is not an integer or the weights sum to 2**53 or more.
        tails: The differences between exact integers and their scores (n,); equal scores are in
            the order of their tails. Empty above level 0, where a score with a tail is nan.
            ``None`` if no score ever had a tail.

    """

    level: int
    ids: Ints | None
    scores: Floats
    mass: Mass
    tails: Floats | None = None

    @classmethod
    def empty(cls, classes: int) -> Cells:
        """Return cells without rows."""
        return cls(0, None, np.empty(0), np.empty((0, classes), np.int32))

    @property
    def size(self) -> int:
        """The number of cells."""
        return self.scores.size

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        arrays = (self.ids, self.scores, self.mass, self.tails)
        return sum([array.nbytes for array in arrays if array is not None])

    @classmethod
    def of(cls, rows: ScoredRows, classes: int, max_cells: int, level: int) -> Cells:
        """Return the cells of rows at the lowest sufficient level that is at least `level`.

        The cells of rows with tails are at level 0, even if too many; `merged` finds their level.
        Raises ``ValueError`` if a score is nan or a code is neither 0 nor 1.
        """
        scores, codes, weight, tails = rows
        size, call = scores.size, max(CALL_ROWS, max_cells)
        if size > call and (weight is not None or size >= _NARROW):
            return cls._of_parts(rows, classes, max_cells, level, call)
        if tails is not None:
            each = cls(0, None, scores, _summed(np.arange(size), rows, size, classes), tails)
            return _with_tails(each, cls.empty(classes))
        room = min(size, max_cells)
        found = np.empty(room)
        ids = np.empty(room, np.int64) if level or size > max_cells else None
        scores = plain(scores, np.float64)
        codes = None if codes is None else np.ascontiguousarray(codes)
        low, power = 0, 1
        counts: Array = np.empty((room, classes), np.int32)
        counted = rows.counted and (weight is None or int(weight.sum()) < _NARROW)
        if weight is not None and not counted:
            weight, power = plain(weight.reshape(-1), np.float64), weight.ndim
            low, width = ExactSum.window(weight, power)
            counts = np.empty((room, classes, width), np.int64)
        before = level
        level, size, canonical = kernels.cells_count(
            *(scores, codes, weight, None, max_cells, before, ids, found, counts, low, power)
        )
        if level < 0:
            return cls._of_parts(rows, classes, max_cells, before, call)
        counts = _cut(counts, size)
        mass = counts if counted else _mass(counts, low, canonical=canonical)
        ids = _cut(ids, size) if level and ids is not None else None
        return cls(level, ids, _cut(found, size), mass)

    @classmethod
    def _of_parts(
        cls, rows: ScoredRows, classes: int, max_cells: int, level: int, size: int
    ) -> Cells:
        """Return the cells of many rows, counted in parts of `size`.

        Once the first part gives a level, the kernel gets all other rows without weights at once.
        """
        cells, start, n = cls.empty(classes), 0, rows.scores.size
        while start < n:
            rest = rows.weight is None and cells.level > level == 0 and n - start < _NARROW
            part = rows.part(slice(start, n if rest else start + size))
            start += part.scores.size
            more = cls.of(part, classes, max_cells, max(level, cells.level))
            cells = merged(cells, more, max_cells)
        return cells

    def raised(self, level: int) -> Cells:
        """Return the cells at a higher or equal level, where neighbours may share an id.

        Above level 0, a score with a tail is nan, like a cell of several scores.
        """
        if level == self.level:
            return self
        if self.ids is not None:
            return self._replace(level=level, ids=self.ids >> (level - self.level))
        scores = self.scores
        if self.tails is not None:
            scores = np.where(self.tails == 0, scores, np.nan)
        tails = None if self.tails is None else np.empty(0)
        return Cells(level, cell_ids(self.scores, level), scores, self.mass, tails)

    def totals(self) -> tuple[float, ...]:
        """Return the weight of each class: Python integers if the mass is integer."""
        if isinstance(self.mass, ExactSum):
            return tuple(np.atleast_1d(self.mass.sum(0).to_float()).tolist())
        return tuple(_totals(self.mass))

    def area(self) -> tuple[int, int] | None:
        """Return twice the correctly ordered pairs of rows, ties once, and the ties in mixed cells.

        ``None`` unless the mass is integer.
        """
        if isinstance(self.mass, ExactSum):
            return None
        area: tuple[int, int] = kernels.cells_area(self.scores if self.level else None, self.mass)
        return area

    @property
    def unit(self) -> int:
        """The exponent of the unit of block counts: 0 unless float64 could overflow."""
        if not isinstance(self.mass, ExactSum):
            return 0
        above: int = self.mass.exponent + 32 * self.mass.digits.shape[1] - 960
        return max(0, above)

    def blocks(self) -> Iterator[CellBlock]:
        """Yield the cells in blocks."""
        for start in range(0, self.size, tuning.CELLS_READ):
            part = slice(start, start + tuning.CELLS_READ)
            scores = low = high = self.scores[part]
            single = ~np.isnan(scores)
            if self.ids is not None:
                low, high = cell_edges(self.ids[part], self.level)
                low, high = np.where(single, scores, low), np.where(single, scores, high)
            yield CellBlock(low, high, single, self._counts(part))

    def masses(self) -> Iterator[Mass]:
        """Yield the mass of the cells, in the same blocks."""
        for start in range(0, self.size, tuning.CELLS_READ):
            yield self.mass[start : start + tuning.CELLS_READ]

    def _counts(self, rows: slice) -> Ints | Floats:
        """Return the weight of each class in the selected cells (classes, m)."""
        if isinstance(self.mass, ExactSum):
            return self.mass.rounded(rows, -self.unit).T.copy()
        return self.mass[rows].T.astype(np.int64, order="C")

    def arrays(self) -> dict[str, Array]:
        """Return the canonical state, as documented in `SortedHistogram.arrays`."""
        arrays: dict[str, Array] = {
            "level": np.array([self.level], np.int64),
            "cells": _NONE if self.ids is None else self.ids,
            "scores": self.scores,
        }
        if self.tails is not None:
            arrays["tails"] = self.tails
        if isinstance(self.mass, ExactSum):
            exact = {f"mass.{name}": array for name, array in self.mass.arrays().items()}
            return arrays | exact
        return arrays | {"counts": self.mass.astype(np.int64)}

    def minus(self, other: Cells) -> Cells:
        """Return the cells without the rows of `other`; both must be at level 0."""
        both = merged(self, other._replace(mass=-other.mass), self.size + other.size + 2)
        mass = both.mass
        if isinstance(mass, ExactSum):
            digits = mass.digits.reshape(both.size, -1)
            negative, kept = (mass.digits[:, -1:] < 0).any(), digits.any(axis=1)
        else:
            negative, kept = (mass < 0).any(), mass.any(axis=1)
        if other.level or both.size != self.size or negative:
            raise IncompatibleMetricsError(
                "the rows to be taken out are not among those of this state: some scores, or some "
                "of the rows with them, were never added"
            )
        left = mass[kept]
        tails = None if both.tails is None else both.tails[kept]
        return Cells(
            *(0, None, both.scores[kept], normal_mass(left)),
            tails if tails is not None and tails.any() else None,
        )


def _summed(index: Ints, rows: ScoredRows, size: int, classes: int) -> Mass:
    """Return the weight of each class in each of `size` cells; `index` has the rows' cells."""
    weight = np.ones(index.size) if rows.weight is None else rows.weight
    if rows.codes is not None:
        index *= classes
        index += rows.codes
    column = weight.reshape(-1)
    sums = ExactSum.grouped(index, size * classes, column, column if weight.ndim > 1 else None)
    return normal_mass(sums.reshaped((size, classes)))


def exact_mass(mass: Mass) -> ExactSum:
    """Return the mass as exact sums."""
    return mass if isinstance(mass, ExactSum) else ExactSum.counts(mass.astype(np.int64))


def normal_mass(mass: Mass) -> Mass:
    """Return the canonical form: integers if all weights are integers with a sum below 2**53."""
    if not isinstance(mass, ExactSum) or mass.exponent < 0:
        return mass
    near = np.asarray(mass.to_float())
    with np.errstate(over="ignore"):
        total = np.abs(near).sum()
    if total >= INTEGER_LIMIT:
        return mass
    return _narrowed(near, total)


def _mass(digits: Array, low: int, *, canonical: bool) -> Mass:
    """Return the mass of weights from the digits (n, classes, W) of their sums."""
    if low == 0 and digits.shape[2] == 1:  # whole weights below 2**32: a digit is the sum
        total = float(digits.sum(dtype=np.float64))
        if total < INTEGER_LIMIT:
            return _narrowed(digits[:, :, 0], total)
    return normal_mass(ExactSum.carried(digits, low, canonical=canonical))


def _narrowed(sums: Array, total: float) -> Array:
    """Return whole numbers in the narrowest type that holds their total."""
    return sums.astype(np.int32 if total < _NARROW else np.int64, order="C")


def _cut(array: Array, size: int) -> Array:
    """Truncate an array in place to its first entries; no other reference to it may exist."""
    array.resize((size, *array.shape[1:]), refcheck=False)
    return array


# ---- merging ----


def merged(a: Cells, b: Cells, max_cells: int) -> Cells:
    """Return the rows of both at the lowest level with at most `max_cells` cells."""
    tailed = a.tails is not None or b.tails is not None
    one, other = a.scores.size, b.scores.size
    if not tailed and not (one and other) and max(one, other) <= max_cells:
        return a if one else b
    if tailed and not a.level and not b.level:
        both = _with_tails(a, b)
        if both.size <= max_cells:
            return both
        a, b = both, Cells.empty(both.mass.shape[1])
    level = max(int(tailed), a.level, b.level)
    cells = _united(a.raised(level), b.raised(level), max_cells)
    return cells._replace(tails=np.empty(0)) if tailed else cells


def _united(a: Cells, b: Cells, max_cells: int) -> Cells:
    """Return the rows of both, at one level; within each, cells may share an id."""
    level = a.level
    classes, room = a.mass.shape[1], min(a.size + b.size, max_cells)
    low, masses = 0, [(a.mass, 0), (b.mass, 0)]
    if dtype := _dtype_of(a.mass, b.mass):
        counts = np.empty((room, classes), dtype)
    else:
        low, width, masses = ExactSum.placed([exact_mass(a.mass), exact_mass(b.mass)])
        counts = np.empty((room, classes, width), np.int64)
    ids = np.empty(room, np.int64) if level or a.size + b.size > max_cells else None
    scores = np.empty(room)
    level, size, canonical = kernels.cells_merge(
        *(level, a.ids, a.scores, *masses[0], b.ids, b.scores, *masses[1]),
        *(max_cells, ids, scores, counts),
    )
    counts = _cut(counts, size)
    mass: Mass = counts
    if not dtype:
        mass = normal_mass(ExactSum.carried(counts, low, canonical=canonical))
    ids = _cut(ids, size) if level and ids is not None else None
    return Cells(level, ids, _cut(scores, size), mass)


def merged_all(every: Sequence[Cells], max_cells: int) -> Cells:
    """Return the rows of all: summed in a table if dense, sorted together if few, or by halves."""
    if (summed := _tabulated(every)) is not None:
        return merged(summed, Cells.empty(summed.mass.shape[1]), max_cells)
    if len(every) == 1:
        return every[0]
    few = sum([one.size for one in every]) <= tuning.SORTED_CELLS
    if few and all(one.tails is None for one in every):
        chain = _chained(every)
        none = Cells.empty(chain.mass.shape[1])
        return _united(chain, none.raised(chain.level), max_cells)
    half = len(every) // 2
    cells, rest = merged_all(every[:half], max_cells), every[half:]
    if cells.level > max(one.level for one in every):  # ids are denser now
        return merged_all([cells, *rest], max_cells)
    return merged(cells, merged_all(rest, max_cells), max_cells)


def _tabulated(every: Sequence[Cells]) -> Cells | None:
    """Return the rows of all at the highest of their levels, without a limit on cells.

    The table has one place for each id between the smallest and the largest. ``None`` if that
    exceeds half the number of cells, at level 0, with tails, or with exact sums.
    """
    every = [one for one in every if one.size]
    masses = [one.mass for one in every if not isinstance(one.mass, ExactSum)]
    level, size, total = max([one.level for one in every], default=0), sum(map(len, masses)), 0
    if not level or len(masses) < len(every) or any(one.tails is not None for one in every):
        return None
    ends = [
        cell_ids(one.scores[[0, -1]], level)
        if one.ids is None
        else one.ids[[0, -1]] >> (level - one.level)
        for one in every
    ]
    low = int(np.min(ends))
    span = int(np.max(ends)) - low + 1
    if 2 * span > size:
        return None
    narrow = all(mass.dtype == np.int32 for mass in masses)
    totals = np.zeros((span, masses[0].shape[1]), np.int32 if narrow else np.int64)
    scores = np.empty(span)
    for one in every:
        total += kernels.cells_add(totals, scores, low, level, *one[:4])
        if total >= INTEGER_LIMIT:
            return None
        if total >= _NARROW and narrow:  # no overflow of uint32: both sums were below 2**31
            totals, narrow = totals.view(np.uint32).astype(np.int64), False
    at = np.flatnonzero(totals[:, 0] | totals[:, -1])
    return Cells(level, at + low, scores[at], totals[at])


def _chained(every: Sequence[Cells]) -> Cells:
    """Return all cells at the highest of their levels, in order; ids may repeat."""
    level = max(cells.level for cells in every)
    every = [cells.raised(level) for cells in every if cells.size] or [every[0]]
    scores = np.concatenate([cells.scores for cells in every])
    ids = np.concatenate([cells.ids for cells in every if cells.ids is not None]) if level else None
    masses = [cells.mass for cells in every]
    mass, dtype = _stacked(masses), _dtype_of(*masses)
    if not isinstance(mass, ExactSum):  # of which the sum may be larger than any of the counts
        mass = mass.astype(dtype, copy=False) if dtype else exact_mass(mass)
    order = np.argsort(scores if ids is None else ids, kind="stable")
    # `take` moves the rows of a table ten times as fast as an index does.
    moved = mass[order] if isinstance(mass, ExactSum) else mass.take(order, axis=0)
    return Cells(level, None if ids is None else ids[order], scores[order], moved)


def _stacked(every: Sequence[Mass]) -> Mass:
    """Return the masses, concatenated."""
    integers = [mass for mass in every if not isinstance(mass, ExactSum)]
    if len(integers) == len(every):
        return np.concatenate(integers)
    tables, exponent = ExactSum.aligned(list(map(exact_mass, every)))
    return ExactSum.of_digits(np.concatenate(tables), exponent)


def _totals(counts: Array) -> list[int]:
    """Return the sum of each class. Sums of int32 counts fit int32; two are added as one int64."""
    if counts.dtype != np.int32 or counts.shape[1] == 1:
        sums: list[int] = counts.sum(axis=0, dtype=np.int64).tolist()
        return sums
    both = int(np.add.reduce(counts.view(np.int64), axis=None))
    low = (both + _NARROW) % (2 * _NARROW) - _NARROW
    sums = [low, (both - low) >> 32]
    return sums if sys.byteorder == "little" else sums[::-1]


def _dtype_of(*masses: Mass) -> type[np.signedinteger] | None:
    """Return the integer dtype that holds the sum of all counts; ``None`` for exact sums."""
    total, narrow = 0, True
    for mass in masses:
        if isinstance(mass, ExactSum):
            return None
        total += sum(_totals(mass))
        narrow &= mass.dtype == np.int32
    if total < _NARROW and narrow:
        return np.int32
    return np.int64 if total < INTEGER_LIMIT else None


def _with_tails(a: Cells, b: Cells) -> Cells:
    """Return the merged cells of level 0 of both, in order of score and tail."""
    heads = np.concatenate([a.scores, b.scores]) + 0.0
    tails = np.concatenate([np.zeros(c.size) if c.tails is None else c.tails for c in (a, b)])
    order = np.lexsort((tails, heads))
    head, tail, new = heads[order], tails[order], np.ones(order.size, np.bool_)
    new[1:] = (head[1:] != head[:-1]) | (tail[1:] != tail[:-1])
    place = np.empty(order.size, np.int64)
    place[order] = np.cumsum(new) - 1
    size = int(np.count_nonzero(new))
    mass = exact_mass(_stacked([a.mass, b.mass])).regroup(place, size)
    return Cells(0, None, head[new], normal_mass(mass), tail[new] + 0.0)


# ---- states, which may come from untrusted sources ----


def read_cells(max_cells: int, classes: int, arrays: Arrays) -> Cells:
    """Return the cells from the arrays of a state.

    Raises:
        StateFormatError: The arrays differ from what a histogram writes in any verifiable way.
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
    single = scores + 0.0
    np.copyto(single, np.nan, where=mixed)
    if single.tobytes() != scores.tobytes():
        raise StateFormatError("the scores of a histogram hold -0.0 or a nan that is not ours")
    if level:
        _check_ids(ids, scores, mixed, level)
        if _below(ids[mixed], level, tailed=tailed) + np.count_nonzero(~mixed) <= max_cells:
            raise StateFormatError(f"the cells fit a level below {level}")
    elif mixed.any():
        raise StateFormatError("a score of a histogram is nan at level 0")
    mass = _read_mass(arrays, (scores.size, classes))
    tails = None if tails is None else tails.copy()
    return Cells(level, ids.copy() if level else None, single, mass, tails)


def arrays_of_all(every: Sequence[Cells]) -> dict[str, Array]:
    """Return concatenated arrays of many cells with integer counts and no tails, with sizes."""
    masses = [np.asarray(cells.mass).reshape(-1) for cells in every]
    return {
        "levels": np.array([cells.level for cells in every], np.int64),
        "sizes": np.array([cells.size for cells in every], np.int64),
        "cells": np.concatenate([_NONE, *(cells.ids for cells in every if cells.ids is not None)]),
        "scores": np.concatenate([np.empty(0), *(cells.scores for cells in every)]),
        "counts": np.concatenate([_NONE, *masses]),
    }


def read_all(max_cells: int, classes: int, arrays: Arrays) -> list[Cells]:
    """Return the cells from the arrays of `arrays_of_all`, all checked together.

    If a check fails, `read_cells` checks each one separately and raises a specific error.
    """
    level, sizes, ids, scores, mass = every = _columns_of_all(classes, arrays)
    together = _read_together(max_cells, *every)
    found, start, first = [], 0, 0
    if together is not None:
        ids, scores, mass = together
        for one, size in zip(level.tolist(), sizes.tolist(), strict=True):
            part = slice(start, start + size)
            own = ids[part].copy() if one else None  # copies, so that each can be freed separately
            found.append(Cells(one, own, scores[part].copy(), mass[part].copy()))
            start += size
        return found
    for one, size in zip(level.tolist(), sizes.tolist(), strict=True):
        part, last = slice(start, start + size), first + size * (one != 0)
        mine = {"cells": ids[first:last], "scores": scores[part], "counts": mass[part]}
        found.append(read_cells(max_cells, classes, {"level": np.array([one]), **mine}))
        start, first = start + size, last
    return found


def read_joined(
    max_cells: int, classes: int, arrays: Arrays
) -> tuple[Ints, Ints, Ints | None, Floats, Array] | None:
    """Return what `read_all` does as joined columns; ``None`` if a check fails.

    They are the level and the size of each, and of every cell its id (``None`` if all levels are
    0), its score, and its counts as int32.
    """
    level, sizes, ids, scores, counts = _columns_of_all(classes, arrays)
    together = _read_together(max_cells, level, sizes, ids, scores, counts)
    if together is None:
        return None
    ids, scores, narrow = together
    return level, sizes, ids if level.any() else None, scores, narrow


def _columns_of_all(classes: int, arrays: Arrays) -> tuple[Ints, Ints, Ints, Floats, Ints]:
    """Return levels, sizes, ids, scores and counts of the arrays of `arrays_of_all`."""
    level, ids = take_array(arrays, "levels", "int64"), take_array(arrays, "cells", "int64")
    scores, counts = take_array(arrays, "scores", "float64"), take_array(arrays, "counts", "int64")
    sizes = take_sizes(arrays, "sizes", len(level), len(scores))
    if len(arrays) != 5 or counts.size != classes * scores.size:
        raise StateFormatError("the arrays of histograms do not fit each other")
    if ids.size != sizes[level != 0].sum():
        raise StateFormatError(f"{ids.size} cells do not fit {scores.size} scores of histograms")
    return level, sizes, ids, scores, counts.reshape(-1, classes)


def _read_together(
    max_cells: int, level: Ints, sizes: Ints, ids: Ints, scores: Floats, mass: Ints
) -> tuple[Ints, Floats, Array] | None:
    if not sizes.size:
        return ids, scores, mass.astype(np.int32)
    if not (0 <= level.min() <= level.max() <= MAX_LEVEL and sizes.min() > 0):
        return None
    if sizes.max() > max_cells:
        return None
    state, starts = np.repeat(np.arange(len(sizes)), sizes), np.cumsum(sizes) - sizes
    at, every = level[state], np.zeros(len(state), np.int64)
    every[at > 0] = ids
    single, mixed = scores + 0.0, np.isnan(scores)
    single[mixed] = np.nan
    order = np.where(at > 0, 0.0, single)
    ascend = (order[1:] > order[:-1]) | (every[1:] > every[:-1]) | (state[1:] != state[:-1])
    several = np.bincount(state[mixed], minlength=len(level))
    if (
        (single.view(np.int64) != scores.view(np.int64)).any()
        or not ascend.all()
        or several[level == 0].any()
        or ((several + sizes)[level > 0] <= max_cells).any()  # they fit one level below
        or not (0 <= mass.min() <= mass.max() < _NARROW and (mass[:, 0] | mass[:, -1]).all())
        or np.add.reduceat(mass, starts).sum(axis=1).max() >= _NARROW
    ):
        return None
    for one in np.unique(level[level > 0]).tolist():
        mine = at == one
        _check_ids(every[mine], single[mine], mixed[mine], one)
    return every, single, mass.astype(np.int32)


def _read_tails(arrays: Arrays, level: int, scores: Floats) -> Floats:
    tails = take_array(arrays, "tails", "float64")
    if level:
        if tails.size:
            raise StateFormatError("there are tails of scores past level 0")
        return tails
    if tails.size != scores.size or not tails.any():
        raise StateFormatError(f"{tails.size} tails of {scores.size} scores of a histogram")
    if not _are_tails(scores, tails).all() or (np.signbit(tails) & (tails == 0)).any():
        raise StateFormatError("a tail of a score is not what float64 leaves of an integer")
    return tails


def _are_tails(heads: Floats, tails: Floats) -> Bools:
    """Whether each tail is 0, or the difference between a 64-bit integer and its head."""
    with np.errstate(invalid="ignore", over="ignore"):
        whole = (np.abs(tails) <= 1024) & (np.rint(tails) == tails)
        nearest = (heads + tails == heads) & (np.abs(heads) <= 2.0**64)
    low, high = -(2.0**63), 2.0**64
    inside = (heads > low) | ((heads == low) & (tails >= 0))
    inside &= (heads < high) | ((heads == high) & (tails < 0))
    found: Bools = (tails == 0) | (whole & nearest & inside)
    return found


def _below(mixed: Ints, level: int, *, tailed: bool) -> float:
    """Return the maximum number of cells that mixed cells become one level below.

    Each becomes two. Below level 1, they become as many cells as they can hold scores: two doubles
    or, with tails, all integers that round to either.
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


def _check_ids(ids: Ints, scores: Floats, mixed: Bools, level: int) -> None:
    """Raise `StateFormatError` if ids are out of range, or do not match their scores."""
    low, high = cell_id_range(level)
    if ids.size and not (low <= ids.min() and ids.max() <= high):
        raise StateFormatError("a cell of a histogram is beyond every score")
    if (cell_ids(scores[~mixed], level) != ids[~mixed]).any():
        raise StateFormatError("a score of a histogram is not in its cell")
    first, last = cell_edges(ids[mixed], level)
    if not (first < last).all():
        raise StateFormatError("a cell of a single double is said to hold several scores")


def _read_mass(arrays: Arrays, shape: tuple[int, int]) -> Mass:
    """Return the weights (n, classes); raise unless they are canonical and non-negative."""
    if "counts" not in arrays:
        parts = {name[5:]: array for name, array in arrays.items() if name.startswith("mass.")}
        mass = ExactSum.from_arrays(shape, parts)
        # The highest digit carries the sign.
        if (mass.digits[:, -1:] < 0).any():
            raise StateFormatError("a weight of a histogram is negative")
        if not mass.digits.reshape(shape[0], shape[1] * mass.digits.shape[1]).any(axis=1).all():
            raise StateFormatError("a cell of a histogram weighs nothing")
        if not isinstance(normal_mass(mass), ExactSum):
            raise StateFormatError("the weights of a histogram are not in our form")
        return mass
    counts = take_array(arrays, "counts", "int64", 2)
    if counts.shape != shape:
        raise StateFormatError(f"the counts of a histogram are {counts.shape}, not {shape}")
    if counts.min(initial=0) < 0:
        raise StateFormatError("a weight of a histogram is negative")
    if not (counts[:, 0] | counts[:, -1]).all():  # one class or two
        raise StateFormatError("a cell of a histogram weighs nothing")
    # A sum that overflows int64 is detected in float64, which is precise enough.
    if (
        not counts.sum(dtype=np.float64) < 2 * INTEGER_LIMIT
        or not (total := counts.sum()) < INTEGER_LIMIT
    ):
        raise StateFormatError("the weights of a histogram are not in our form")
    return counts.astype(np.int32 if total < _NARROW else np.int64, order="C")
