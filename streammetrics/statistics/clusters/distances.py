"""Distances between many points in tiles that stay in cache, never as one n x n matrix.

Squared distances come from a matrix product, |x|^2 + |y|^2 - 2 x.y, after the origin was moved
into the block of rows at hand, and where one is small against |x|^2 + |y|^2, so that the formula
would lose digits, it is computed again from the differences of coordinates.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.counting import group_order
from streammetrics.statistics.clusters.tiles import DIRECTED, TILES

if TYPE_CHECKING:
    from streammetrics.core.types import Array, Floats, Ints, Places
    from streammetrics.statistics.clusters.tiles import Tile

    Codes = Places

CLOSE = 1e-9  # relative; squared distances in a tile are nearer than that to the true ones
_LOST = 2.0**-10  # part of |x|^2 + |y|^2 below which a squared distance has lost ten bits


class Cloud(NamedTuple):
    """Points in the order of their clusters, times a power of two: coordinates are within one."""

    points: Floats
    codes: Codes
    copies: Floats
    order: Places

    @classmethod
    def of(cls, points: Floats, codes: Codes, copies: Ints) -> Cloud:
        """Return the points by cluster; a power of two is exact and saves squares' overflow."""
        order = group_order(codes, int(codes.max(initial=-1)) + 1)[0]
        exponent = int(np.frexp(np.abs(points).max(initial=0.0))[1])
        scaled = np.ldexp(points[order], -exponent)
        return cls(scaled, codes[order], copies[order].astype(np.float64), order)


def lengths(vectors: Floats) -> Floats:
    """Return the Euclidean length of each row, without overflow or underflow on the way."""
    exponents = np.frexp(np.abs(vectors).max(axis=1, initial=0.0))[1]
    scaled = np.ldexp(vectors, -exponents[:, None])
    return np.asarray(np.ldexp(np.sqrt(np.einsum("ij,ij->i", scaled, scaled)), exponents))


class Block:
    """Some points of a cloud, from which tiles of squared distances to other blocks are made."""

    def __init__(self, points: Floats, rows: slice) -> None:
        self.rows = rows
        self.points = points[rows]
        self._origin = self.points.mean(axis=0)
        centred = self.points - self._origin
        self._norms = np.einsum("ij,ij->i", centred, centred)
        width = centred.shape[1] + 2
        left = np.zeros((tuning.DISTANCE_ROWS, width))
        left[: len(centred), :-2] = -2.0 * centred
        left[: len(centred), -2] = self._norms
        left[: len(centred), -1] = 1.0
        # A product so small that threads cost more than they save is made of smaller ones.
        size = tuning.DISTANCE_ROWS
        alone = 1 << (max(tuning.ALONE_PRODUCTS // (size * width), 1).bit_length() - 1)
        height = min(alone, size) if alone >= tuning.THIN_ROWS else size
        self._left = left.reshape(-1, height, width)

    def squared(self, other: Block, out: Floats) -> Floats:
        """Return the squared distances from these points to those of another block."""
        theirs = other.points - self._origin
        norms = np.einsum("ij,ij->i", theirs, theirs)
        right = np.column_stack([theirs, np.ones(len(theirs)), norms])
        room = out[: tuning.DISTANCE_ROWS * len(theirs)]
        parts = room.reshape(*self._left.shape[:2], len(theirs))
        np.matmul(self._left, right.T, out=parts)
        tile = parts.reshape(tuning.DISTANCE_ROWS, len(theirs))[: len(self.points)]
        if other is self:
            np.fill_diagonal(tile, np.inf)  # until the others are refined
        if tile.min() < _LOST * (self._norms.max() + norms.max()):
            self._refine(tile, other, norms)
        if other is self:
            np.fill_diagonal(tile, 0.0)
        return tile

    def apart(self, other: Block, out: Floats, by: Tile) -> Floats:
        """Return the distances from these points to those of another block, by coordinates."""
        size = (len(self.points), len(other.points))
        tile = out[: size[0] * size[1]].reshape(size)
        by(self.points.T[:, :, None], other.points.T[:, None, :], tile)
        return tile

    def _refine(self, tile: Floats, other: Block, norms: Floats) -> None:
        rows, places = np.nonzero(tile < np.add.outer(_LOST * self._norms, _LOST * norms))
        step = max(1, tile.size // self.points.shape[1])
        for start in range(0, rows.size, step):
            row, place = rows[start : start + step], places[start : start + step]
            apart = self.points[row] - other.points[place]
            tile[row, place] = np.einsum("ij,ij->i", apart, apart)


def runs_of(codes: Codes) -> list[tuple[int, int]]:
    """Return consecutive clusters, small ones joined up to the rows of a block, as ranges."""
    bounds = np.flatnonzero(np.diff(codes, prepend=-1, append=-1)).tolist()
    runs = [(0, 0)]
    for start, stop in pairwise(bounds):
        if stop - runs[-1][0] <= tuning.DISTANCE_ROWS:
            runs[-1] = (runs[-1][0], stop)
        else:
            runs.append((start, stop))
    return [run for run in runs if run[1]]


class _Members(Block):
    """A block that adds distances up by the clusters of its points."""

    def __init__(self, cloud: Cloud, rows: slice) -> None:
        super().__init__(cloud.points, rows)
        codes, copies = cloud.codes[rows], cloud.copies[rows]
        self._starts = np.flatnonzero(np.diff(codes, prepend=-1))
        self.clusters = slice(int(codes[0]), int(codes[-1]) + 1)
        self._copies = copies if (copies > 1.0).any() else None

    def added(self, distances: Floats) -> Floats:
        """Return the sums by cluster of distances (n, points of this block)."""
        if self._copies is not None:
            distances = distances * self._copies
        if len(self._starts) == 1:
            return np.asarray(distances.sum(axis=1, keepdims=True))
        return np.add.reduceat(distances, self._starts, axis=1)


def silhouettes(cloud: Cloud, size: int, metric: str) -> Floats:
    """Return the silhouette of each point of the cloud, 0 for the only one of its cluster.

    `metric` is ``"euclidean"``, ``"sqeuclidean"``, or one of `TILES` or `DIRECTED`.
    ``(b - a) / max(a, b)``, with a the mean distance to the others of its cluster (a copy of the
    point is one of them) and b the smallest of the mean distances to another of the `size`
    clusters, all of which have points; 0 where the larger is infinite, as in scikit-learn, which
    opposite points are by Bray and Curtis. The table of means by point and cluster is made for so
    many points at a time that it stays below 64 MB.
    """
    amounts = np.bincount(cloud.codes, cloud.copies, size)
    blocks = [
        _Members(cloud, slice(first, min(first + tuning.DISTANCE_ROWS, stop)))
        for start, stop in runs_of(cloud.codes)
        for first in range(start, stop, tuning.DISTANCE_ROWS)
    ]
    at_once = max(1, tuning.MEAN_DISTANCES // (size * tuning.DISTANCE_ROWS))
    values = []
    for first in range(0, len(blocks), at_once):
        sums = _distance_sums(blocks, range(first, min(first + at_once, len(blocks))), size, metric)
        start = blocks[first].rows.start
        if metric in DIRECTED:
            _part_undirected(sums, cloud, start)
        values.append(_silhouettes(sums, cloud.codes[start : start + len(sums)], amounts))
    return np.concatenate(values)


def _part_undirected(sums: Floats, cloud: Cloud, start: int) -> None:
    """Add the distances between points without a direction, which all lie in one place."""
    axis = cloud.points[:, -1]
    amounts = np.bincount(cloud.codes, cloud.copies * (axis > 0), sums.shape[1])
    rows = np.flatnonzero(axis[start : start + len(sums)])
    apart = 2.0 * axis[start + rows] ** 2
    sums[rows] += np.outer(apart, amounts)
    sums[rows, cloud.codes[start + rows]] -= apart  # none from itself


def _distance_sums(blocks: list[_Members], chosen: range, size: int, metric: str) -> Floats:
    """Return the sums of distances from the points of the chosen blocks to each cluster."""
    base = blocks[chosen.start].rows.start
    sums = np.zeros((blocks[chosen.stop - 1].rows.stop - base, size))
    buffer = np.empty(tuning.DISTANCE_ROWS * tuning.DISTANCE_ROWS)
    for place in chosen:
        block = blocks[place]
        mine = sums[block.rows.start - base : block.rows.stop - base]
        for index, other in enumerate(blocks):
            both = index in chosen  # then one tile serves the points on both its sides
            if both and index < place:
                continue
            if metric in TILES:
                tile = block.apart(other, buffer, TILES[metric])
            else:
                tile = block.squared(other, buffer)
            if metric == "euclidean":
                np.sqrt(tile, out=tile)
            mine[:, other.clusters] += other.added(tile)
            if both and index > place:
                theirs = sums[other.rows.start - base : other.rows.stop - base]
                theirs[:, block.clusters] += block.added(tile.T)
    return sums


def _silhouettes(sums: Floats, own: Codes, amounts: Array) -> Floats:
    each = np.arange(len(own))
    others = amounts[own] - 1.0
    a = sums[each, own] / np.maximum(others, 1.0)
    sums /= amounts
    sums[each, own] = np.inf
    b = sums.min(axis=1)
    larger = np.maximum(a, b)
    defined = (others > 0.0) & (larger > 0.0) & np.isfinite(larger)
    values: Floats = np.subtract(b, a, out=np.zeros_like(a), where=defined)
    np.divide(values, larger, out=values, where=defined)
    return values
