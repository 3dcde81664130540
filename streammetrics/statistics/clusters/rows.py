"""Rows of labelled points in canonical order: by a seeded hash, equal ones once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.counting import added_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from streammetrics.core.types import Array, Bools, Floats, Ints, Places

_GOLDEN = 0x9E3779B97F4A7C15  # 2**64 / golden ratio, odd


class PointRows(NamedTuple):
    """Distinct rows, each with the number of times it occurs."""

    hashes: NDArray[np.uint64]
    codes: Places
    points: Floats
    copies: Ints

    def take(self, rows: Any) -> PointRows:
        """Return some of the rows."""
        return PointRows(*(column[rows] for column in self))


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spread 64 bits over 64 bits one to one, zero to zero (the finaliser of SplitMix64)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def _factors(start: int, count: int) -> NDArray[np.uint64]:
    steps = np.arange(start + 1, start + count + 1, dtype=np.uint64) * np.uint64(_GOLDEN)
    return _mixed(steps) | np.uint64(1)


def label_hashes(labels: Array, seed: int) -> NDArray[np.uint64]:
    """Return a hash of each label: of its value or text, not of how wide its array is."""
    if labels.dtype.kind != "U":
        words = labels.astype(np.int64).view(np.uint64)
    else:
        letters = np.ascontiguousarray(labels).view(np.uint32).reshape(len(labels), -1)
        # The padding of short strings is zeros, and they add nothing.
        words = _mixed(letters.astype(np.uint64)) @ _factors(1 << 32, letters.shape[1])
    return _mixed(words + _factors(seed, 1))


def point_hashes(points: Floats) -> NDArray[np.uint64]:
    """Return a hash of each row of coordinates (n, d), in which no zero is negative."""
    n, width = points.shape
    factors = _factors(0, width)
    hashes = np.empty(n, np.uint64)
    step = max(1, tuning.HASHED_COORDINATES // max(width, 1))
    for start in range(0, n, step):
        words = np.ascontiguousarray(points[start : start + step]).view(np.uint64)
        # Round numbers have all their bits on top, where a product modulo 2**64 forgets them.
        hashes[start : start + step] = (words ^ (words >> np.uint64(32))) @ factors
    return hashes


def column_hashes(columns: Sequence[Floats]) -> NDArray[np.uint64]:
    """Return the hash of each row of a table by its columns, as `point_hashes` of the table."""
    hashes = np.zeros(len(columns[0]), np.uint64)
    for column, factor in zip(columns, _factors(0, len(columns)), strict=True):
        words = (column + 0.0).view(np.uint64)
        words ^= words >> np.uint64(32)
        words *= factor
        hashes += words
    return hashes


def row_hashes(
    labels: NDArray[np.uint64], codes: Places, points: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    """Return the hash of each row from those of its label and its point."""
    return _mixed(labels[codes] + points)


def by_content(rows: PointRows, size: int) -> tuple[PointRows, Places]:
    """Return the rows, and the clusters, in an order that does not depend on labels.

    Points are in the order of their hashes, clusters in that of the sum of theirs: clusters whose
    sums are the same hold the same points, and may change places. What is added up in this order
    has the same bits whatever the clusters are called.
    """
    hashes = _mixed(point_hashes(rows.points))
    terms = hashes * rows.copies.astype(np.uint64)
    sums = added_at(rows.codes, terms.view(np.int64), size).view(np.uint64)
    places = np.empty(size, np.intp)
    places[np.argsort(sums)] = np.arange(size)
    order = np.argsort(hashes)
    return rows.take(order), places


def canonical(rows: PointRows, limit: int) -> PointRows:
    """Return the `limit` distinct rows that come first by hash, then label, then coordinates."""
    order = np.argsort(rows.hashes)
    new = _new(rows, order)
    if new is None:  # different rows share a hash: equal ones need not be neighbours
        keys = (*rows.points.T[::-1], rows.codes, rows.hashes)
        order = np.lexsort(keys)
        new = _distinct(rows, order, np.arange(1, order.size))
    starts = np.flatnonzero(new)
    copies = np.add.reduceat(rows.copies[order], starts) if starts.size else rows.copies[:0]
    first = rows.take(order[starts[:limit]])
    return first._replace(copies=copies[:limit])


def _new(rows: PointRows, order: Places) -> Bools | None:
    """Return where a row differs from the one before; ``None`` where only the hash is the same."""
    hashes = rows.hashes[order]
    alike = np.flatnonzero(hashes[1:] == hashes[:-1]) + 1
    new = _distinct(rows, order, alike)
    return None if new[alike].any() else new


def _distinct(rows: PointRows, order: Places, places: Places) -> Bools:
    """Return False at those of the `places` whose row equals the one before, else True."""
    here, before = order[places], order[places - 1]
    equal = rows.codes[here] == rows.codes[before]
    equal &= (rows.points[here] == rows.points[before]).all(axis=1)
    new = np.ones(order.size, np.bool_)
    new[places] = ~equal
    return new
