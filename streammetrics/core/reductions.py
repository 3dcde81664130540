"""Exact sums over the rows of columns: plain, by group, and of products.

Each function walks the rows in blocks, splits a block into folds and adds the sums of the folds,
which have no rounding error, to :class:`~streammetrics.core.digits.Totals`.
"""

import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.digits import Floats, Totals
from streammetrics.core.folds import BLOCK, Fold, Workspace, dot, folds, terms

_STACKED_BLOCK = 2**14  # rows of a block whose folds are kept, several to a column
_GROUP_BLOCK = 2**20  # rows at most, when there are more groups than rows of an ordinary block
_MIN_ROWS = 64  # of a block of wide rows
_KEPT_ROWS = 48
_GEMM_WORK = 2**19  # multiplications of one call, few enough not to wake the threads of BLAS
_MAX_ADDITIONS = 512  # of integers up to 2**53 that cannot overflow int64

_ONES = np.ones(BLOCK)
_ONES.flags.writeable = False


def _blocks(
    shape: tuple[int, ...], elements: int
) -> Iterator[tuple[slice, tuple[int, ...], Workspace]]:
    """Slices of the rows with about so many elements each, their shapes, and scratch for them."""
    width = math.prod(shape[1:])
    step = max(_MIN_ROWS, elements // max(1, width))
    with Workspace(min(step, shape[0]) * width) as work:
        for start in range(0, shape[0] if width else 0, step):
            work.reset()
            rows = slice(start, min(start + step, shape[0]))
            yield rows, (rows.stop - start, *shape[1:]), work


def _load_weight(
    weight: NDArray[Any] | None, rows: slice, shape: tuple[int, ...], work: Workspace
) -> Floats | None:
    """Those rows of the weight, repeated along the columns of the block."""
    if weight is None:
        return None
    block = work.load(weight, rows)
    if len(shape) == 1:
        return block
    wide = work.take(shape)
    np.copyto(wide, block[:, None])
    return wide


def _bits(rows: int, factors: int) -> int:
    """Bits of a fold for which sums of products of so many factors stay below 2**53 units."""
    return min(50, (53 - (rows - 1).bit_length()) // factors)


def _column_sums(values: Floats) -> Any:
    # A product with ones takes half the time of a sum.
    ones = _ONES[: len(values)]
    return dot(ones, values) if values.ndim == 1 else ones @ values


def _weighted_folds(x: Floats, w: Floats | None, bits: int, work: Workspace) -> Iterator[Fold]:
    """Folds of ``x * w``, each of which overwrites the one before."""
    values = work.take(x.shape)
    for term, shift in terms(x, w, work):
        for fold in folds(term, bits, work, lambda _: values):
            yield fold._replace(shift=fold.shift + shift)


def add_sums(totals: Totals, values: NDArray[Any], weight: NDArray[Any] | None) -> None:
    """Add the sums over axis 0 of ``values`` ``(n,)`` or ``(n, d)``, times weights ``(n,)``."""
    for rows, shape, work in _blocks(values.shape, BLOCK):
        w = _load_weight(weight, rows, shape, work)
        for fold in _weighted_folds(work.load(values, rows), w, _bits(shape[0], 1), work):
            totals.add(_column_sums(fold.values), fold.unit, fold.shift)


def add_groups(
    totals: Totals, index: NDArray[np.intp], values: NDArray[Any], weight: NDArray[Any] | None
) -> None:
    """Add each of ``values`` ``(n,)`` to the entry that ``index`` ``(n,)`` names."""
    (size,) = totals.shape
    # A fold costs a pass over all groups: with many of them, blocks as long as the table.
    for rows, shape, work in _blocks(values.shape, min(max(BLOCK, size), _GROUP_BLOCK)):
        w = _load_weight(weight, rows, shape, work)
        for fold in _weighted_folds(work.load(values, rows), w, _bits(shape[0], 1), work):
            sums = np.bincount(index[rows], fold.values, size)
            if len(sums) != size:
                raise IndexError(f"group {len(sums) - 1} of {size}")
            totals.add(sums, fold.unit, fold.shift)


class _Stack:
    """Folds of several columns as the rows of one matrix, which the thread keeps."""

    _local = threading.local()

    def __init__(self) -> None:
        self._table: Floats = self._local.__dict__.pop("table", None)
        if self._table is None:  # rows a power of two apart would compete for the cache
            self._table = np.empty((12, _STACKED_BLOCK + 72))
        self._lent = False
        self.levels: list[tuple[int, int]] = []  # (unit, shift) of each row

    def __enter__(self) -> "_Stack":
        return self

    def __exit__(self, *_: object) -> None:
        if len(self._table) <= _KEPT_ROWS:
            self._local.table = self._table

    def take(self, shape: tuple[int, ...]) -> Floats:
        """The next row, to be filled."""
        if len(self.levels) == len(self._table):
            self._table = np.concatenate([self._table, np.empty_like(self._table)])
        self._lent = True
        return self._table[len(self.levels), : shape[0]]

    def push(self, x: Floats, w: Floats | None, bits: int, work: Workspace) -> int:
        """Append the folds of ``x * w`` and return the number of rows."""
        for term, shift in terms(x, w, work):
            for fold in folds(term, bits, work, self.take):
                self.push_fold(fold._replace(shift=fold.shift + shift))
        return len(self.levels)

    def push_fold(self, fold: Fold) -> None:
        """Append a fold, which is in the row just taken, or elsewhere when none was."""
        if not self._lent:
            np.copyto(self.take(fold.values.shape), fold.values)
        self._lent = False
        self.levels.append((fold.unit, fold.shift))

    def products(self, split: int, start: int, rows: int) -> Floats:
        """Dot products of the rows before ``split`` with those from ``start``."""
        left, right = self._table[:split, :rows], self._table[start : len(self.levels), :rows]
        step = max(1024, _GEMM_WORK // max(1, len(left) * len(right)))
        result = np.zeros((len(left), len(right)))
        for k in range(0, rows, step):
            result += left[:, k : k + step] @ right[:, k : k + step].T
        return result


class _Layout(NamedTuple):
    """Which rows of a stack are what."""

    levels: tuple[tuple[int, int], ...]
    left: tuple[int, ...]  # left factor i is the rows from left[i] to left[i + 1]
    right: tuple[int, ...]  # likewise; the last row, after them, is of ones


class _Products:
    """Matrices of dot products of folds, added up for each layout before they are read."""

    def __init__(
        self, first: Sequence[Totals], second: Mapping[tuple[int, int], Totals], right_from: int
    ) -> None:
        self._first, self._second, self._right_from = first, second, right_from
        self._sums: dict[_Layout, NDArray[np.int64]] = {}
        self._additions = 0

    def add(self, layout: _Layout, dots: Floats) -> None:
        """Add the dot products of the left and the right rows, and of the left with ones."""
        units = np.array([unit for unit, _ in layout.levels])
        left, right = units[: layout.left[-1], None], units[layout.right[0] :]
        whole = np.ldexp(dots, -(left + right)).astype(np.int64)
        if layout in self._sums:
            self._sums[layout] += whole
        else:
            self._sums[layout] = whole
        self._additions += 1
        if self._additions == _MAX_ADDITIONS:
            self.flush()

    def flush(self) -> None:
        """Move everything to the totals."""
        for (levels, left, right), matrix in self._sums.items():
            powers = [unit + shift for unit, shift in levels]
            rows = matrix.tolist()
            for (i, j), totals in self._second.items():
                j_right = j - self._right_from
                for a in range(left[i], left[i + 1]):
                    for b in range(right[j_right], right[j_right + 1]):
                        totals.add_integer(rows[a][b - right[0]], powers[a] + powers[b])
            for i, totals in enumerate(self._first):
                for a in range(left[i], left[i + 1]):
                    totals.add_integer(rows[a][-1], powers[a])
        self._sums.clear()
        self._additions = 0


def add_moments(
    first: Sequence[Totals],
    second: Mapping[tuple[int, int], Totals],
    columns: Sequence[NDArray[Any]],
    weight: NDArray[Any] | None,
) -> None:
    """Add sums of columns ``(n,)`` to ``first``, if any, and of products to ``second``."""
    left_columns = max(i for i, _ in second) + 1
    right_from = min(j for _, j in second)
    products = _Products(first, second, right_from)
    with _Stack() as stack:
        for rows, shape, work in _blocks(columns[0].shape, _STACKED_BLOCK):
            stack.levels.clear()
            bits = _bits(shape[0], 2)
            blocks = [work.load(column, rows) for column in columns]
            if weight is None:
                bounds = [0, *(stack.push(x, None, bits, work) for x in blocks)]
                left, right = bounds[: left_columns + 1], bounds[right_from:]
            else:
                w = work.load(weight, rows)
                left = [0, *(stack.push(x, w, bits, work) for x in blocks[:left_columns])]
                right = [left[-1]]
                right += [stack.push(x, None, bits, work) for x in blocks[right_from:]]
            # The row of ones also keeps NumPy from taking the product for a symmetric one, which
            # BLAS computes several times more slowly.
            stack.push_fold(Fold(_ONES[: shape[0]], 0, 0))
            dots = stack.products(left[-1], right[0], shape[0])
            products.add(_Layout(tuple(stack.levels), tuple(left), tuple(right)), dots)
    products.flush()


def add_wide_moments(
    first: Sequence[Totals],
    second: Mapping[tuple[int, int], Totals],
    columns: Sequence[NDArray[Any]],
    weight: NDArray[Any] | None,
) -> None:
    """The same for columns ``(n, d)``, whose sums have shape ``(d,)``."""
    for rows, shape, work in _blocks(columns[0].shape, _STACKED_BLOCK):
        bits = _bits(shape[0], 2)
        w = _load_weight(weight, rows, shape, work)
        blocks = [work.load(column, rows) for column in columns]
        plain = [list(folds(x, bits, work, work.take)) for x in blocks]
        weighted = plain
        if w is not None:
            weighted = [
                [
                    fold._replace(shift=fold.shift + shift)
                    for term, shift in terms(x, w, work)
                    for fold in folds(term, bits, work, work.take)
                ]
                for x in blocks
            ]
        for totals, parts in zip(first, weighted, strict=False):
            for a in parts:
                totals.add(_column_sums(a.values), a.unit, a.shift)
        for (i, j), totals in second.items():
            for a, b in product(weighted[i], plain[j]):
                dots = np.einsum("ij,ij->j", a.values, b.values)
                totals.add(dots, a.unit + b.unit, a.shift + b.shift)
