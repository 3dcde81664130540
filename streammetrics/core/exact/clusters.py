"""Exact sums of points by cluster, and of all their squares, from the same folds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.exact.sums import ExactSum
from streammetrics.core.exact.totals import Totals

if TYPE_CHECKING:
    from streammetrics.core.types import Floats, Ints, Places


_DOT = 1 << 13  # elements of a dot product: so few that BLAS starts no threads
_FOLDS = 6  # more than ordinary data needs
_LOW, _HIGH = 2.0**-300, 2.0**400  # largest magnitudes whose folds have normal squares


def cluster_sums(points: Floats, codes: Places, size: int) -> tuple[ExactSum, ExactSum]:
    """Return the sums of `points` (n, d) in each of `size` clusters, and of all squares.

    Points are put in the order of clusters and split into folds (see `core.exact.folds`) of so few
    bits that sums of folds, and of their products, are exact in float64. Dot products of the folds
    give the squares; two folds at a time are added up by cluster. Points whose exponents range so
    widely that they need more than `_FOLDS` of them take a slower way.
    """
    largest = max(float(points.max()), -float(points.min()))
    if largest == 0.0:
        return ExactSum.zero((size, points.shape[1])), ExactSum.zero()
    work = _Work(points, codes, size, math.frexp(largest)[1])
    if not _LOW < largest < _HIGH or not work.run():
        return _slowly(points, codes, size)
    return work.sums(), work.squares()


def _slowly(points: Floats, codes: Places, size: int) -> tuple[ExactSum, ExactSum]:
    width, flat = points.shape[1], points.ravel()
    index = (codes[:, None] * width + np.arange(width)).ravel()
    sums = ExactSum.grouped(index, size * width, flat)
    return sums.reshaped((size, width)), ExactSum.product(flat, flat)


class _Work:
    """The blocks of one call and what they add up to: integers, by the exponent of their unit."""

    def __init__(self, points: Floats, codes: Places, size: int, top: int) -> None:
        self._points, self._size = points, size
        n, width = points.shape
        narrow = np.uint16 if size <= 1 << 16 else np.intp  # radix sort takes 16 bits
        self._order = np.argsort(codes.astype(narrow), kind="stable")
        self._codes = codes[self._order]
        self._rows = min(max(tuning.WIDE_ROWS, tuning.CLUSTER_ELEMENTS // width), n)
        # One bit fewer than products allow, so that sums of two folds together are exact, too.
        bits = (52 - (self._rows * width - 1).bit_length()) // 2
        # A fold leaves at most half of its unit, so the top of the next one is below that unit.
        self._units = [top - bits - fold * (bits + 1) for fold in range(_FOLDS)]
        self._groups: dict[int, Ints] = {}
        self._products: dict[int, int] = {}

    def run(self) -> bool:
        """Go through the blocks; return whether `_FOLDS` folds were enough."""
        n, width = self._points.shape
        shape = (self._rows, width)
        rest_buffer, pair_buffer = np.empty(shape), np.empty(shape)
        # Zeros behind the last row fill up the last dot product of a block.
        flat = np.zeros((_FOLDS, -(-self._rows * width // _DOT) * _DOT))
        for start in range(0, n, self._rows):
            rows = self._order[start : start + self._rows]
            rest, pair = rest_buffer[: rows.size], pair_buffer[: rows.size]
            np.take(self._points, rows, axis=0, out=rest, mode="clip")
            folds: list[Floats] = []
            while len(folds) < 2 or _left(rest):
                if len(folds) == _FOLDS:
                    return False
                fold = flat[len(folds), : rest.size].reshape(rest.shape)
                sigma = math.ldexp(1.5, self._units[len(folds)] + 52)
                np.add(rest, sigma, out=fold)
                np.subtract(fold, sigma, out=fold)
                np.subtract(rest, fold, out=rest)
                folds.append(fold)
            flat[: len(folds), folds[0].size :] = 0.0
            self._multiply(flat[: len(folds)].reshape(len(folds), -1, _DOT))
            self._group(folds, pair, self._codes[start : start + self._rows])
        return True

    def _multiply(self, folds: Floats) -> None:
        for i, left in enumerate(folds):
            for j in range(i, len(folds)):
                unit = self._units[i] + self._units[j]
                dot = float(np.vecdot(left, folds[j]).sum())
                whole = int(math.ldexp(dot, -unit)) << (i != j)
                self._products[unit] = self._products.get(unit, 0) + whole

    def _group(self, folds: list[Floats], pair: Floats, codes: Places) -> None:
        starts = np.flatnonzero(np.diff(codes, prepend=-1))
        for place in range(0, len(folds), 2):
            both = folds[place]
            if place + 1 < len(folds):
                both = np.add(both, folds[place + 1], out=pair)
            unit = self._units[min(place + 1, len(folds) - 1)]
            sums = np.add.reduceat(both, starts, axis=0)
            sums *= 2.0**-unit
            table = self._groups.get(unit)
            if table is None:
                table = self._groups[unit] = np.zeros((self._size, both.shape[1]), np.int64)
            table[codes[starts]] += sums.astype(np.int64)

    def sums(self) -> ExactSum:
        """Return the sums of each cluster."""
        shape = (self._size, self._points.shape[1])
        totals = Totals(shape)
        for unit, table in self._groups.items():
            low = table & 0xFFFFFFFF
            totals.add(low * 2.0**unit, unit, 0)
            totals.add((table >> 32) * 2.0 ** (unit + 32), unit + 32, 0)
        return ExactSum(shape, *totals.result())

    def squares(self) -> ExactSum:
        """Return the sum of all squares."""
        base = min(self._products)
        total = sum(whole << (unit - base) for unit, whole in self._products.items())
        return ExactSum.single(total, base)


def _left(rest: Floats) -> bool:
    # A difference of equals is +0.0, whose bits are all zero: one pass, and nothing underflows.
    return bool(np.bitwise_or.reduce(rest.reshape(-1).view(np.int64)))
