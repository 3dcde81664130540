"""Counting and grouping of rows by codes, extents of columns, and unions of sorted keys."""

from __future__ import annotations

from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core.kernels import kernels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.types import Array, Ints, Places

_MOVED = 7  # maximum number of columns that a kernel moves
_RUN = 16  # rows per group from which searching for the ends is faster than counting
_DENSE = 1 << 16  # cells up to which a table is always dense: 512 KB


def extent(values: Array) -> tuple[float, float]:
    """Return minimum and maximum; ``(nan, nan)`` if a value is NaN, ``(inf, -inf)`` if empty."""
    try:
        found: tuple[float, float] = kernels.extent(values)
    except (BufferError, ValueError):  # not contiguous, or float16
        wide = np.float32 if values.dtype.char == "e" else values.dtype
        found = kernels.extent(np.ascontiguousarray(values, wide))
    return found


def counts_of(shape: tuple[int, ...], *codes: Array, times: Array | None = None) -> Ints:
    """Return the number of rows with each combination of codes; each code is a column of integers.

    A row counts as often as its entry in `times` says.

    >>> counts_of((2, 3), np.array([0, 1, 1]), np.array([2, 0, 0]))
    array([[0, 0, 1],
           [2, 0, 0]])
    """
    counts = np.zeros(shape, np.int64)
    repeated = () if times is None else (np.ascontiguousarray(times),)
    done = kernels.count(counts, *chain.from_iterable(zip(codes, shape, strict=True)), *repeated)
    if done < len(codes[0]):
        raise _beyond(done)
    return counts


def counts_above(
    shape: tuple[int, ...],
    score: Array,
    threshold: float,
    *codes: Array,
    times: Array | None = None,
) -> Ints:
    """Return `counts_of` with a last axis of two: scores below the threshold, and the others."""
    counts = np.zeros((*shape, 2), np.int64)
    arguments = chain.from_iterable(zip(codes, shape, strict=True))
    repeated = () if times is None else (np.ascontiguousarray(times),)
    done = kernels.count_above(counts, score, threshold, *arguments, *repeated)
    if done < len(score):
        raise _beyond(done)
    return counts


def added_at(codes: Array, rows: Ints, size: int) -> Ints:
    """Sum rows of integers (n, ...) by their codes; return the sums (size, ...).

    >>> added_at(np.array([1, 0, 1]), np.array([5, 6, 7]), 2)
    array([ 6, 12])
    """
    totals = np.zeros((size, *rows.shape[1:]), np.int64)
    if not totals.size:
        return totals
    rows = np.require(rows, np.int64, ["C", "A"])
    done = kernels.add_rows(totals, totals.size // size, rows, codes)
    if done < len(codes):
        raise _beyond(done)
    return totals


def group_order(codes: Array, size: int) -> tuple[Places, Places]:
    """Return a stable order of the rows by group, and the start of each of `size` groups in it.

    The starts have a last entry, the number of rows.

    >>> order, starts = group_order(np.array([1, 0, 1]), 2)
    >>> order.tolist(), starts.tolist()
    ([1, 0, 2], [0, 1, 3])
    """
    starts, (order,) = rows_by_group(codes, size, [np.arange(len(codes))])
    return order, starts


def are_moved(columns: Sequence[object]) -> bool:
    """Whether `rows_by_group` accepts these columns and one more."""
    return len(columns) < _MOVED and all(isinstance(column, np.ndarray) for column in columns)


def rows_by_group(codes: Array, size: int, columns: Sequence[Array]) -> tuple[Places, list[Array]]:
    """Return where groups start, and up to seven columns (n, ...) ordered as by `group_order`.

    >>> starts, (column,) = rows_by_group(np.array([1, 0, 1]), 2, [np.array([5, 6, 7])])
    >>> starts.tolist(), column.tolist()
    ([0, 1, 3], [6, 5, 7])
    """
    starts = np.empty(size + 1, np.int64)
    columns = list(map(np.ascontiguousarray, columns))
    moved = list(map(np.empty_like, columns))
    pairs = chain.from_iterable(zip(columns, moved, strict=True))
    done = kernels.group_rows(starts, codes, *pairs)
    if done < len(codes):
        raise _beyond(done)
    return starts, moved


def is_dense(size: int, rows: int) -> bool:
    """Whether a dense table of `size` cells is small, absolutely or relative to the rows."""
    return size <= max(_DENSE, 4 * rows)


def packed(shape: tuple[int, ...], *codes: Array) -> Ints:
    """Return the flat index of each combination of codes in a table of this shape."""
    places = codes[0].astype(np.int64)
    for size, each in zip(shape[1:], codes[1:], strict=True):
        places *= size
        places += each
    return places


def _beyond(row: int) -> IndexError:
    return IndexError(f"the code of row {row} is out of range")


class GroupCodes:
    """The group of each row, 0 to ``size - 1``, given as integers of any width."""

    def __init__(self, codes: Array, size: int) -> None:
        self.codes, self.size = codes, size

    @cached_property
    def index(self) -> Ints:
        """The group of each row as int64; read-only by convention."""
        return self.codes.astype(np.int64, copy=False)

    @cached_property
    def ascending(self) -> bool:
        """Whether rows are ordered by group."""
        return bool((self.codes[1:] >= self.codes[:-1]).all())

    @cached_property
    def counts(self) -> Ints:
        """The number of rows in each group; read-only by convention."""
        if self.codes.size < _RUN * self.size or not self.ascending:
            return counts_of((self.size,), self.codes)
        groups = np.arange(self.size, dtype=self.codes.dtype)
        ends: Ints = np.searchsorted(self.codes, groups, "right")
        return np.diff(ends, prepend=0)


# ---- unions of sorted keys ----


class Union(NamedTuple):
    """Distinct keys, ascending, and the index in them of each key of either side.

    An index array is None if a side's keys are all of the keys, in the same order.
    """

    keys: Array
    mine: Places | None
    theirs: Places | None

    @classmethod
    def of(cls, mine: Array, theirs: Array) -> Union:
        """Return the union of two ascending arrays of distinct keys."""
        if _same(mine, theirs) or not len(theirs):
            return cls(mine, None, None if len(theirs) else np.empty(0, np.intp))
        if not len(mine):
            return cls(theirs, np.empty(0, np.intp), None)
        before = np.searchsorted(mine, theirs)
        fresh = mine[np.minimum(before, len(mine) - 1)] != theirs
        added = before[fresh]
        # Each key of mine is shifted by the number of new keys below it.
        places = (
            np.arange(len(mine)) + np.cumsum(np.bincount(added, minlength=len(mine)))[: len(mine)]
        )
        found = np.empty(len(theirs), np.intp)
        found[fresh] = added + np.arange(added.size)
        found[~fresh] = places[before[~fresh]]
        keys = np.empty(len(mine) + added.size, np.result_type(mine, theirs))
        keys[places], keys[found] = mine, theirs
        return cls(
            keys,
            None if len(keys) == len(mine) else places,
            None if len(keys) == len(theirs) else found,
        )


def _same(mine: Array, theirs: Array) -> bool:
    return mine is theirs or (
        len(mine) == len(theirs)
        and mine.dtype == theirs.dtype
        and mine.tobytes() == theirs.tobytes()
    )


def moved(places: Places | None, codes: Array) -> Array:
    """Convert codes of one side to codes of the union."""
    return codes if places is None else places[codes]


def spread(rows: Array, places: Places | None, size: int, fill: object = 0) -> Array:
    """Place rows ``(n, ...)`` in a table of `size` rows; the others are `fill`."""
    if places is None:
        return rows
    table = np.full((size, *rows.shape[1:]), fill, rows.dtype)
    table[places] = rows
    return table
