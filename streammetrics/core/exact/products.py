"""Exact products of columns: matrices of the dot products of folds, many at a time.

The folds of a block are the rows of one matrix. One product of matrices gives all their dot
products for a piece of the block, so short that each of them is exact.
"""

import math
import threading
from collections.abc import Mapping, Sequence
from operator import lshift
from typing import NamedTuple

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.exact.digits import Floats
from streammetrics.core.exact.folds import (
    HIGH,
    LOW,
    any_left,
    can_multiply,
    exponents,
    exponents_of,
    extremes,
    folds,
    terms,
    two_square,
)
from streammetrics.core.exact.totals import Totals
from streammetrics.core.exact.workspace import Workspace, aligned
from streammetrics.core.types import Array, Ints

STACKED_BLOCK = 2**15  # rows of a block, several folds of each of whose columns are kept
PIECE = 2**13  # rows of one product of matrices at most: fewer rows leave folds more bits
_GEMM_WORK = 2**19  # multiplications of one call: so few that BLAS starts no threads
_MAX_ADDITIONS = 512  # integers up to 2**53 that int64 can add up


class FoldStack:
    """Folds of several columns as the rows of one matrix, which the thread keeps for reuse.

    Short ones are not kept.
    """

    _local = threading.local()

    def __init__(self, rows: int) -> None:
        self._keep = rows >= PIECE
        if not self._keep:
            self._table = aligned((12, rows + -rows % 8))
        elif "table" in self._local.__dict__:
            self._table = self._local.__dict__.pop("table")
        else:  # rows a power of two apart would compete for the cache
            self._table = aligned((12, STACKED_BLOCK + 72))
        self.levels: list[tuple[int, int]] = []  # (unit, shift) of each row

    def __enter__(self) -> "FoldStack":
        return self

    def __exit__(self, *_: object) -> None:
        if self._keep and len(self._table) <= tuning.KEPT_PRODUCTS:
            self._local.table = self._table

    def _free(self, rows: int, count: int) -> Floats:
        """Return `count` unused rows of the matrix, which may move: get rows in use again."""
        end = len(self.levels) + count
        if end > len(self._table):
            more = max(end - len(self._table), len(self._table))
            table = aligned((len(self._table) + more, self._table.shape[1]))
            table[: len(self._table)] = self._table
            self._table = table
        return self._table[len(self.levels) : end, :rows]

    def push(self, x: Floats, w: Floats | None, bits: int, work: Workspace) -> int:
        """Append the folds of ``x * w``, or of `x`; return how many rows are in use."""
        for term, shift in terms(x, w, work):
            self._push_term(term, shift, bits, work)
        return len(self.levels)

    def push_square(self, x: Floats, bits: int, work: Workspace) -> int:
        """Append the folds of ``x * x``; return how many rows are in use."""
        low, high = extremes(x, work.take(x.shape))
        limits = exponents_of(low, high)
        if not can_multiply(*limits):
            return self.push(x, x, bits, work)
        square, rest = (work.take(x.shape) for _ in range(2))
        two_square(x, square, rest, work)
        e, lowest = exponents_of(low * low, high * high)
        self._push_term(square, 0, bits, work, (e, lowest))
        if any_left(rest):  # half a unit in the last place at most, and of x * x no bit is lower
            self._push_term(rest, 0, bits, work, (e - 53, 2 * limits[1]))
        return len(self.levels)

    def _push_term(
        self,
        x: Floats,
        shift: int,
        bits: int,
        work: Workspace,
        limits: tuple[int, int] | None = None,
    ) -> None:
        """Append the folds of a column; `limits` are its `exponents`, if they are known.

        The second row holds what is left until the end, and is then the last fold: its level is
        set last.
        """
        e, lowest = limits or exponents(x, self._free(x.size, 1)[0])
        if e == lowest:  # nothing but zeros
            return
        if e > HIGH or lowest - bits < LOW:
            for fold in folds(x, bits, work, lambda _: self._free(x.size, 1)[0]):
                self.push_row(fold.values, fold.unit, fold.shift + shift)
            return
        first = len(self.levels)
        free = self._free(x.size, 3 + max(0, e - lowest) // bits)
        if lowest >= e - bits:
            self.push_row(x, e - bits, shift)
            return
        rest, used = free[1], 0
        while lowest < e - bits:
            fold, e = free[used], e - bits - 1
            sigma = math.ldexp(1.5, e + 53)
            np.add(rest if used else x, sigma, out=fold)
            fold -= sigma
            np.subtract(rest if used else x, fold, out=rest)
            self.levels.append((e + 1, shift))
            if not any_left(rest):
                break
            if not used:
                self.levels.append((0, 0))
            used = len(self.levels) - first
        if used:
            self.levels[first + 1] = (e - bits, shift)

    def push_row(self, values: Array, unit: int, shift: int) -> int:
        """Append a fold, or ones and zeros; return how many rows are in use."""
        row = self._free(values.size, 1)[0]
        np.copyto(row, values)
        self.levels.append((unit, shift))
        return len(self.levels)

    def push_scaled(self, start: int, stop: int, w: Floats, unit: int) -> int:
        """Append rows `start` to `stop` times `w`, whole multiples of ``2**unit``.

        Returns how many rows are in use.
        """
        scaled = self._free(w.size, stop - start)
        np.multiply(self._table[start:stop, : w.size], w, out=scaled)
        self.levels += [(u + unit, shift) for u, shift in self.levels[start:stop]]
        return len(self.levels)

    def products(self, split: int, start: int, rows: int) -> Array:
        """Return the dot products of rows before `split` with those from `start`, by piece."""
        left, right = self._table[:split, :rows], self._table[start : len(self.levels), :rows]
        step = PIECE
        while step * len(left) * len(right) > _GEMM_WORK and step > PIECE // 8:
            step //= 2
        whole, count = rows - rows % step, rows // step
        parts = left[:, :whole].reshape(split, count, step).transpose(1, 0, 2) @ right[
            :, :whole
        ].reshape(len(right), count, step).transpose(1, 2, 0)
        if whole == rows:
            return parts
        return np.concatenate([parts, (left[:, whole:] @ right[:, whole:].T)[None]])


class StackLayout(NamedTuple):
    """What each row of a stack is."""

    levels: tuple[tuple[int, int], ...]  # (unit, shift) of each row
    left: tuple[int, ...]  # left factor i is the rows from left[i] to left[i + 1]
    right: tuple[int, ...]  # likewise; then comes the last row, of weights or ones


class Products:
    """Dot products of folds, added up as matrices of int64 as long as the layout is the same."""

    def __init__(
        self, first: Sequence[Totals], second: Mapping[tuple[int, int], Totals], right_from: int
    ) -> None:
        self._first, self._second, self._right_from = first, second, right_from
        self._sums: dict[StackLayout, tuple[Floats, Ints]] = {}
        self._additions = 0

    def add(self, layout: StackLayout, dots: Floats) -> None:
        """Add the dot products of the left rows with the right ones and the last row."""
        if layout not in self._sums:
            units = np.array([unit for unit, _ in layout.levels])
            scale = -(units[: layout.left[-1], None] + units[layout.right[0] :])
            self._sums[layout] = np.ldexp(1.0, scale), np.zeros(scale.shape, np.int64)
        scale, sums = self._sums[layout]
        dots *= scale
        np.add(sums, dots.astype(np.int64).sum(axis=0), out=sums)
        self._additions += 1
        if self._additions == _MAX_ADDITIONS:
            self.flush()

    def flush(self) -> None:
        """Move all that was added to the totals."""
        for (levels, left, right), (_, matrix) in self._sums.items():
            powers = [unit + shift for unit, shift in levels]
            base = min(powers)
            rows = matrix.tolist()
            last = powers[-1] - base
            for (i, j), totals in self._second.items():
                start, stop = right[j - self._right_from], right[j - self._right_from + 1]
                shifts = [power - base for power in powers[start:stop]]
                value = 0
                for a in range(left[i], left[i + 1]):
                    part = rows[a][start - right[0] : stop - right[0]]
                    value += sum(map(lshift, part, shifts)) << (powers[a] - base)
                totals.add_integer(value, 2 * base)
            for i, totals in enumerate(self._first):
                value = sum(rows[a][-1] << (powers[a] - base) for a in range(left[i], left[i + 1]))
                totals.add_integer(value << last, 2 * base)
        self._sums.clear()
        self._additions = 0
