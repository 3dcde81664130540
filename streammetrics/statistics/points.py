"""Points in clusters: canonical samples, and distances computed in tiles."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.columns.conversion import Column
from streammetrics.core.columns.labels import Labels
from streammetrics.core.columns.numbers import Numbers
from streammetrics.core.columns.schema import Schema
from streammetrics.core.constraints import MaxPoints, NanPolicy, Seed
from streammetrics.core.counting import Union, added_at, group_order, moved
from streammetrics.core.errors import (
    IncompatibleMetricsError,
    InvalidBatchError,
    StateFormatError,
)
from streammetrics.core.field import StateField, not_among
from streammetrics.core.fields.keyed import (
    KeyedExtremes,
    LabelledEntries,
    LabelTable,
    Weights,
    coded_labels,
    used_labels,
)
from streammetrics.core.fields.weights import WeightedCount, countable
from streammetrics.core.kernels import kernels
from streammetrics.core.kernels.reference import mixed
from streammetrics.core.state.arrays import take_array
from streammetrics.core.statistic import Statistic
from streammetrics.statistics.tables import UNWEIGHTED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.schema import Finished
    from streammetrics.core.configured import Configured
    from streammetrics.core.types import Array, Arrays, Bools, Columns, Floats, Ints, Places

    Codes = Places


@dataclass(frozen=True)
class PointMatrix(Numbers):
    """A matrix of finite coordinates, with exactly `width` columns if that is given."""

    name: str = "X"
    wide: bool = True
    width: int | None = None

    def finish(self, batch: Batch, taken: Columns, rows: Places | None) -> Finished:
        """Return coordinates (n, d)."""
        ((points,), facts) = super().finish(batch, taken, rows)
        points = points.reshape(len(points), math.prod(points.shape[1:]))
        if self.width not in {None, points.shape[1]}:
            raise InvalidBatchError(
                f"{batch.title(self.name)} has {points.shape[1]} columns, "
                f"the centroids {self.width}"
            )
        return (points,), facts


def points_schema(nan_policy: str) -> Schema:
    """Return the schema of points and their cluster labels."""
    return Schema((PointMatrix(), Labels("labels")), nan_policy, UNWEIGHTED)


# Fills a tile (n, m) with the distances of columns (d, n, 1) and (d, 1, m).
Tile = Callable[["Floats", "Floats", "Floats"], None]


def _manhattan(one: Floats, other: Floats, out: Floats) -> None:
    out[:] = 0.0
    for x, y in zip(one, other, strict=True):
        out += np.abs(x - y)


def _chebyshev(one: Floats, other: Floats, out: Floats) -> None:
    out[:] = 0.0
    for x, y in zip(one, other, strict=True):
        np.maximum(out, np.abs(x - y), out=out)


def _canberra(one: Floats, other: Floats, out: Floats) -> None:
    out[:] = 0.0
    for x, y in zip(one, other, strict=True):
        out += _ratio(np.abs(x - y), np.abs(x) + np.abs(y))


def _braycurtis(one: Floats, other: Floats, out: Floats) -> None:
    out[:] = 0.0
    whole = np.zeros_like(out)
    for x, y in zip(one, other, strict=True):
        out += np.abs(x - y)
        whole += np.abs(x + y)
    out[:] = _ratio(out, whole)


def _hamming(one: Floats, other: Floats, out: Floats) -> None:
    out[:] = 0.0
    for x, y in zip(one, other, strict=True):
        out += x != y


def _ratio(part: Floats, whole: Floats) -> Floats:
    """Return part / whole; 0 / 0 is 0, and a positive number / 0 is infinite."""
    nothing = np.where(part > 0, np.inf, 0.0)
    return np.divide(part, whole, out=nothing, where=whole > 0)


TILES: dict[str, Tile] = {
    "manhattan": _manhattan,
    "chebyshev": _chebyshev,
    "canberra": _canberra,
    "braycurtis": _braycurtis,
    "hamming": _hamming,
}


DIRECTED = frozenset({"cosine", "correlation"})  # twice these are squared distances of `directions`


def directions(points: Floats, *, centred: bool) -> Floats:
    """Return unit vectors; half the squared distance of two is 1 - cos of the angle between them.

    With `centred` the mean of each point's coordinates is subtracted first, which makes it 1 minus
    the correlation of their coordinates. Points without a direction (zero length) are placed on a
    separate last axis, at distance 1 from all others; `silhouettes` corrects the distances between
    them to 1 as well.
    """
    width = max(points.shape[1], 1)
    scale = np.abs(points).max(axis=1, initial=0.0, keepdims=True)
    points = np.divide(points, scale, out=np.zeros_like(points), where=scale > 0)
    if centred:
        points = points - points.sum(axis=1, keepdims=True) / width
    size = np.sqrt(np.einsum("ij,ij->i", points, points))[:, None]
    some = size > (width * 2.0**-50 if centred else 0.0)  # equal coordinates leave a rounding error
    units = np.divide(points, size, out=np.zeros_like(points), where=some)
    return np.column_stack([units, (~some).astype(np.float64)])


CLOSE = 1e-9  # bound on the relative error of squared distances in a tile
_LOST = 2.0**-10  # fraction of |x|^2 + |y|^2 below which a squared distance has lost ten bits


class Cloud(NamedTuple):
    """Points ordered by cluster, scaled by a power of two to coordinates within [-1, 1]."""

    points: Floats
    codes: Codes
    copies: Floats
    order: Places

    @classmethod
    def of(cls, points: Floats, codes: Codes, copies: Ints) -> Cloud:
        """Return the points by cluster; scaling by a power of two is exact and avoids overflow."""
        order = group_order(codes, int(codes.max(initial=-1)) + 1)[0]
        exponent = int(np.frexp(np.abs(points).max(initial=0.0))[1])
        scaled = np.ldexp(points[order], -exponent)
        return cls(scaled, codes[order], copies[order].astype(np.float64), order)


def lengths(vectors: Floats) -> Floats:
    """Return the Euclidean length of each row, without intermediate overflow or underflow."""
    exponents = np.frexp(np.abs(vectors).max(axis=1, initial=0.0))[1]
    scaled = np.ldexp(vectors, -exponents[:, None])
    return np.asarray(np.ldexp(np.sqrt(np.einsum("ij,ij->i", scaled, scaled)), exponents))


class Block:
    """Some points of a cloud; computes tiles of squared distances to other blocks."""

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
        # A small matrix product runs faster as several products below the threading threshold.
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
            np.fill_diagonal(tile, np.inf)  # excludes the diagonal from refinement
        if tile.min() < _LOST * (self._norms.max() + norms.max()):
            self._refine(tile, other, norms)
        if other is self:
            np.fill_diagonal(tile, 0.0)
        return tile

    def apart(self, other: Block, out: Floats, by: Tile) -> Floats:
        """Return the distances from these points to those of another block, computed by `by`."""
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
    """Return ranges of whole clusters; adjacent small clusters share a range of one block."""
    bounds = np.flatnonzero(np.diff(codes, prepend=-1, append=-1)).tolist()
    runs = [(0, 0)]
    for start, stop in pairwise(bounds):
        if stop - runs[-1][0] <= tuning.DISTANCE_ROWS:
            runs[-1] = (runs[-1][0], stop)
        else:
            runs.append((start, stop))
    return [run for run in runs if run[1]]


class _Members(Block):
    """A block that sums distances by the clusters of its points."""

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
    """Return the silhouette of each point of the cloud; 0 for a point alone in its cluster.

    The silhouette is ``(b - a) / max(a, b)``. Here a is the mean distance to the other points of
    the cluster (including copies of the point), and b is the smallest mean distance to the points
    of another cluster. It is 0 where max(a, b) is infinite, as in scikit-learn; the Bray-Curtis
    distance of opposite points is infinite. The table of mean distances by point and cluster is
    computed for a limited number of points at a time, so that it stays below 64 MB.

    Args:
        cloud: The points; each of the clusters has at least one.
        size: Number of clusters.
        metric: ``"euclidean"``, ``"sqeuclidean"``, or one of `TILES` or `DIRECTED`.
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
    """Add the distances between points without a direction, which share one position."""
    axis = cloud.points[:, -1]
    amounts = np.bincount(cloud.codes, cloud.copies * (axis > 0), sums.shape[1])
    rows = np.flatnonzero(axis[start : start + len(sums)])
    apart = 2.0 * axis[start + rows] ** 2
    sums[rows] += np.outer(apart, amounts)
    sums[rows, cloud.codes[start + rows]] -= apart  # the distance to itself is 0


def _distance_sums(blocks: list[_Members], chosen: range, size: int, metric: str) -> Floats:
    """Return the sums of distances from the points of the chosen blocks to each cluster."""
    base = blocks[chosen.start].rows.start
    sums = np.zeros((blocks[chosen.stop - 1].rows.stop - base, size))
    buffer = np.empty(tuning.DISTANCE_ROWS * tuning.DISTANCE_ROWS)
    for place in chosen:
        block = blocks[place]
        mine = sums[block.rows.start - base : block.rows.stop - base]
        for index, other in enumerate(blocks):
            both = index in chosen  # then one tile serves the points of both blocks
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


def nearest_and_farthest(cloud: Cloud) -> tuple[float, float]:
    """Return the smallest distance between clusters and the largest within one.

    Points are grouped into balls of neighbours. Pairs of balls are visited in the order of their
    distance bounds until no remaining pair can hold a closer, or a farther, pair of points. Both
    distances are in the scale of the cloud; with fewer than two clusters the first is infinite.
    """
    balls = _Balls(cloud)
    near, far = np.inf, 0.0
    for left, right, gap in balls.by_gap():
        if gap > near or near == 0.0:
            break
        near = balls.nearest(left, right, near)
    for left, right, span in balls.by_span():
        if span < far:
            break
        far = balls.farthest(left, right, far)
    return near, far


class _Balls:
    """Groups of neighbouring points, with bounds on the distances between groups."""

    def __init__(self, cloud: Cloud) -> None:
        order, self._slices = _neighbours(cloud)
        points, self._codes = cloud.points[order], cloud.codes[order]
        self._blocks = [Block(points, rows) for rows in self._slices]
        starts = [rows.start for rows in self._slices]
        sizes = np.diff([*starts, len(order)])
        centres = np.add.reduceat(points, starts, axis=0) / sizes[:, None]
        radii = np.maximum.reduceat(lengths(points - centres.repeat(sizes, axis=0)), starts)
        left, right = np.triu_indices(len(starts))
        apart, reach = lengths(centres[left] - centres[right]), radii[left] + radii[right]
        # Coordinates are at most 1, so this bounds the rounding errors of centres and lengths.
        slack = 2.0**-48 * np.sqrt(points.shape[1])
        self._left, self._right = left, right
        self._gaps, self._spans = apart - reach - slack, apart + reach + slack
        self._first = self._codes[starts]
        self._last = self._codes[np.add(starts, sizes) - 1]
        self._buffer = np.empty(tuning.DISTANCE_ROWS * tuning.DISTANCE_ROWS)

    def by_gap(self) -> Iterator[tuple[int, int, float]]:
        """Yield the pairs of balls that have points of different clusters, by smallest gap."""
        pure = self._first == self._last
        alike = pure[self._left] & pure[self._right]
        alike &= self._first[self._left] == self._first[self._right]
        return self._pairs(~alike, self._gaps, 1.0)

    def by_span(self) -> Iterator[tuple[int, int, float]]:
        """Yield the pairs of balls that may have points of the same cluster, by largest span."""
        return self._pairs(self._last[self._left] >= self._first[self._right], self._spans, -1.0)

    def _pairs(self, kept: Bools, keys: Floats, sign: float) -> Iterator[tuple[int, int, float]]:
        places = np.flatnonzero(kept)
        places = places[np.argsort(sign * keys[places], kind="stable")]
        columns = (self._left[places], self._right[places], keys[places])
        yield from zip(*(column.tolist() for column in columns), strict=True)

    def nearest(self, left: int, right: int, best: float) -> float:
        """Return the smallest distance between points of different clusters, at most `best`."""
        tile, same = self._tile(left, right)
        tile[same] = np.inf
        value = tile.min()
        if value >= best**2:
            return best
        return min(best, float(self._measured(left, right, tile <= value * (1 + CLOSE)).min()))

    def farthest(self, left: int, right: int, best: float) -> float:
        """Return the largest distance between points of the same cluster, at least `best`."""
        tile, same = self._tile(left, right)
        tile[~same] = 0.0
        value = tile.max()
        if value <= best**2:
            return best
        return max(best, float(self._measured(left, right, tile >= value * (1 - CLOSE)).max()))

    def _tile(self, left: int, right: int) -> tuple[Floats, Bools]:
        rows, columns = self._slices[left], self._slices[right]
        tile = self._blocks[left].squared(self._blocks[right], self._buffer)
        return tile, self._codes[rows][:, None] == self._codes[columns]

    def _measured(self, left: int, right: int, chosen: Bools) -> Floats:
        """Return the distances of the chosen pairs, from the differences of their coordinates."""
        rows, columns = (places[: tuning.DISTANCE_ROWS] for places in np.nonzero(chosen))
        return lengths(self._blocks[left].points[rows] - self._blocks[right].points[columns])


def _neighbours(cloud: Cloud) -> tuple[Places, list[slice]]:
    """Return an order of points by cluster, and slices of it whose points are close together."""
    order = np.arange(len(cloud.codes))
    todo, done = runs_of(cloud.codes), []
    while todo:
        start, stop = todo.pop()
        if stop - start <= tuning.DISTANCE_ROWS:
            done.append(slice(start, stop))
            continue
        rows = order[start:stop]
        points = cloud.points[rows]
        half = (stop - start) // 2
        axis = int(np.argmax(np.ptp(points, axis=0)))
        order[start:stop] = rows[np.argpartition(points[:, axis], half)]
        todo += [(start, start + half), (start + half, stop)]
    return order, sorted(done, key=lambda rows: rows.start)


_GOLDEN = 0x9E3779B97F4A7C15  # 2**64 / golden ratio, odd


class PointRows(NamedTuple):
    """Distinct rows with their multiplicities."""

    hashes: NDArray[np.uint64]
    codes: Places
    points: Floats
    copies: Ints

    def take(self, rows: Array) -> PointRows:
        """Return the selected rows."""
        return PointRows._make(column[rows] for column in self)

    def beside(self, other: PointRows) -> PointRows:
        """Return the rows of both, one after the other."""
        return PointRows(*(np.concatenate(pair) for pair in zip(self, other, strict=True)))


def _factors(start: int, count: int) -> NDArray[np.uint64]:
    steps = np.arange(start + 1, start + count + 1, dtype=np.uint64) * np.uint64(_GOLDEN)
    return mixed(steps) | np.uint64(1)


def label_hashes(labels: Array | Column, seed: int) -> NDArray[np.uint64]:
    """Return a hash of each label, which depends on its value or text, not on the dtype's width."""
    if isinstance(labels, Column):
        labels = labels.values if labels.vocabulary is None else labels.vocabulary[labels.values]
    start = _factors(seed, 1)
    if labels.dtype.kind != "U":
        return mixed(labels.astype(np.int64).view(np.uint64) + start)
    hashes, width = np.empty(len(labels), np.uint64), labels.dtype.itemsize // 4
    letters = np.ascontiguousarray(labels).view(np.int32)
    factors = _factors(1 << 32, width).view(np.int64)
    kernels.hash_texts(hashes.view(np.int64), letters, factors, int(start.view(np.int64)[0]))
    return hashes


def text_hashes(texts: list[object], seed: int) -> NDArray[np.uint64] | None:
    """Return the `label_hashes` of a list of short strings, ``None`` if it holds anything else."""
    hashes, start = np.empty(len(texts), np.uint64), int(_factors(seed, 1).view(np.int64)[0])
    factors = _factors(1 << 32, 1 << 8).view(np.int64)
    done = kernels.hash_texts(hashes.view(np.int64), texts, factors, start)
    return hashes if done == len(texts) else None


def point_hashes(points: Floats) -> NDArray[np.uint64]:
    """Return a hash of each row of coordinates (n, d); there must be no -0.0."""
    n, width = points.shape
    factors = _factors(0, width)
    hashes = np.empty(n, np.uint64)
    step = max(1, tuning.HASHED_COORDINATES // max(width, 1))
    for start in range(0, n, step):
        words = np.ascontiguousarray(points[start : start + step]).view(np.uint64)
        # Round numbers have only high bits set, which a product modulo 2**64 would discard.
        hashes[start : start + step] = (words ^ (words >> np.uint64(32))) @ factors
    return hashes


def column_hashes(columns: Sequence[Floats]) -> NDArray[np.uint64]:
    """Return the hash of each row of a table given by columns; equals `point_hashes` of it."""
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
    """Return the hash of each row from the hashes of its label and its point."""
    return mixed(labels[codes] + points)


def by_content(rows: PointRows, size: int) -> tuple[PointRows, Places]:
    """Return the rows in an order independent of labels, and each cluster's place in one.

    Points are ordered by hash, clusters by the sum of the hashes of their points. Clusters with
    equal sums hold the same points and are interchangeable. Sums in this order have the same bits
    regardless of the cluster labels.
    """
    hashes = mixed(point_hashes(rows.points))
    terms = hashes * rows.copies.astype(np.uint64)
    sums = added_at(rows.codes, terms.view(np.int64), size).view(np.uint64)
    places = np.empty(size, np.intp)
    places[np.argsort(sums)] = np.arange(size)
    order = np.argsort(hashes)
    return rows.take(order), places


def canonical(rows: PointRows, limit: int) -> PointRows:
    """Return the first `limit` distinct rows by hash, then label, then coordinates."""
    order = np.argsort(rows.hashes)
    new = _new(rows, order)
    if new is None:  # different rows share a hash, so equal rows may not be adjacent
        keys = (*rows.points.T[::-1], rows.codes, rows.hashes)
        order = np.lexsort(keys)
        new = _distinct(rows, order, np.arange(1, order.size))
    starts = np.flatnonzero(new)
    copies = np.add.reduceat(rows.copies[order], starts) if starts.size else rows.copies[:0]
    first = rows.take(order[starts[:limit]])
    return first._replace(copies=copies[:limit])


def subtracted(rows: PointRows, other: PointRows) -> PointRows:
    """Return all rows without those of `other`, which must be among them."""
    if not len(other.codes):
        return rows
    if rows.points.shape[1:] != other.points.shape[1:]:
        raise not_among("they have other numbers of columns")
    less = other._replace(copies=-other.copies)
    both = rows.beside(less)
    left = canonical(both, len(both.codes))
    if (left.copies < 0).any():
        raise not_among("some of them are not here, or not as often")
    return left.take(left.copies > 0)


def _new(rows: PointRows, order: Places) -> Bools | None:
    """Return where rows differ from the previous one; ``None`` if different rows share a hash."""
    hashes = rows.hashes[order]
    alike = np.flatnonzero(hashes[1:] == hashes[:-1]) + 1
    new = _distinct(rows, order, alike)
    return None if new[alike].any() else new


def _distinct(rows: PointRows, order: Places, places: Places) -> Bools:
    """Return a mask that is False at those `places` whose row equals the previous one."""
    here, before = order[places], order[places - 1]
    equal = rows.codes[here] == rows.codes[before]
    equal &= (rows.points[here] == rows.points[before]).all(axis=1)
    new = np.ones(order.size, np.bool_)
    new[places] = ~equal
    return new


class Sample(NamedTuple):
    """Clusters with the count and bounding box of their rows, and the sampled rows."""

    clusters: LabelledEntries
    rows: PointRows
    limit: int  # maximum number of sampled rows

    def plus(self, other: Sample) -> Sample:
        """Return the merged sample; both samples must have rows."""
        clusters, union = _CLUSTERS.united(self.clusters, other.clusters)
        kept = self.rows._replace(codes=moved(union.mine, self.rows.codes))
        if len(other.rows.codes):
            more = other.rows._replace(codes=moved(union.theirs, other.rows.codes))
            kept = canonical(kept.beside(more), self.limit)
        return Sample(clusters, kept, self.limit)

    @classmethod
    def of(cls, labels: Array, rows: PointRows, limit: int) -> Sample:
        """Return the clusters of all `rows`, whose codes use all labels, and these rows."""
        order, starts = group_order(rows.codes, len(labels))
        by_cluster, starts = rows.points[order], starts[:-1]
        counts = np.add.reduceat(rows.copies[order], starts)
        columns = {
            "counts": WeightedCount.of_counts(counts, int(counts.sum())),
            "low": np.minimum.reduceat(by_cluster, starts, axis=0),
            "high": np.maximum.reduceat(by_cluster, starts, axis=0),
        }
        return cls(LabelledEntries(labels, columns), rows, limit)

    @property
    def complete(self) -> bool:
        """Whether the sample contains every row seen."""
        return int(self.rows.copies.sum()) == int(self.clusters.columns["counts"].counts.sum())

    def canonical(self) -> Sample:
        """Return the sample with its rows in canonical form."""
        return self._replace(rows=canonical(self.rows, self.limit))


_CLUSTERS = LabelTable(
    counts=Weights(whole=True), low=KeyedExtremes(), high=KeyedExtremes(largest=True)
)


class SampleField(StateField[Sample]):
    """The clusters and the sample of a `PointSample`; hashes are not saved.

    One field holds both, because sampled rows refer to clusters by their place in the table, and
    places shift with every new cluster.
    """

    def empty(self, of: Configured) -> Sample:
        """Return no clusters and no rows."""
        nothing = np.empty(0, np.int64)
        rows = PointRows(np.empty(0, np.uint64), nothing, np.empty((0, 0)), nothing)
        return Sample(_CLUSTERS.empty(of), rows, of.config["max_points"])

    def plus(self, mine: Sample, other: Sample) -> Sample:
        """Return the merged sample."""
        if not len(mine.clusters.labels) or not len(other.clusters.labels):
            return mine if len(mine.clusters.labels) else other
        return mine.plus(other)

    def arrays(self, value: Sample) -> dict[str, Array]:
        """Return the clusters, and the sample in the order of its hashes."""
        _, codes, points, copies = value.rows
        rows = {"codes": codes, "points": points, "copies": copies}
        return _CLUSTERS.arrays(value.clusters) | rows

    def taken(self, arrays: Arrays, of: Configured) -> Sample:
        """Return clusters and sample; recomputes the hashes and checks that they are in order."""
        known = {"codes", "points", "copies"}
        clusters = _CLUSTERS.taken({k: v for k, v in arrays.items() if k not in known}, of)
        labels, counts = clusters.labels, clusters.columns["counts"].counts
        low, high = clusters.columns["low"], clusters.columns["high"]
        points = take_array(arrays, "points", "float64", 2)
        codes, copies = (take_array(arrays, name, "int64") for name in ("codes", "copies"))
        width, limit = points.shape[1], of.config["max_points"]
        if low.shape != (len(labels), width) or high.shape != low.shape:
            raise StateFormatError("the bounding boxes of clusters do not match the points")
        if (width > 0) != (len(labels) > 0):
            raise StateFormatError("points have no coordinates")
        if not (len(codes) == len(copies) == len(points) <= limit):
            raise StateFormatError("the columns of a sample of points differ in length")
        if len(codes) and not 0 <= codes.min() <= codes.max() < len(labels):
            raise StateFormatError("a point is in no cluster")
        if not np.isfinite(points).all() or bool(np.signbit(points[points == 0.0]).any()):
            raise StateFormatError("a coordinate is nan, infinite or -0.0")
        inside = (points >= low[codes]) & (points <= high[codes])
        if not bool((low <= high).all() and inside.all()):
            raise StateFormatError("a point lies outside the box of its cluster")
        if not countable(copies):
            raise StateFormatError("there are too many points to count")
        held = added_at(codes, copies, len(labels))
        if bool((copies < 1).any() or (held > counts).any()):
            raise StateFormatError("points occur less than once, or more often than in all rows")
        if len(codes) < limit and bool((held < counts).any()):
            raise StateFormatError("a sample below its size limit lacks points")
        hashes = row_hashes(label_hashes(labels, of.config["seed"]), codes, point_hashes(points))
        rows = PointRows(hashes, codes, points, copies)
        for column, again in zip(rows, canonical(rows, limit), strict=True):
            if not np.array_equal(column, again):
                raise StateFormatError("the points of a sample are out of order")
        return Sample(clusters, rows, limit)

    def minus(self, value: Sample, other: Sample) -> Sample:
        """Return the other rows, if all rows are in the sample."""
        if not value.complete:
            raise IncompatibleMetricsError(
                f"a sample of more than {value.limit} distinct points cannot be computed without "
                "some of its rows: merge the states to keep instead"
            )
        union = Union.of(value.clusters.labels, other.clusters.labels)
        if len(union.keys) != len(value.clusters.labels):
            raise not_among("some clusters are not here")
        theirs = other.rows._replace(codes=moved(union.theirs, other.rows.codes))
        left = subtracted(value.rows, theirs)
        labels, codes = used_labels(value.clusters.labels, left.codes)
        return Sample.of(labels, left._replace(codes=codes), value.limit)

    def nbytes(self, value: Sample) -> int:
        """Bytes held now."""
        return _CLUSTERS.nbytes(value.clusters) + sum(array.nbytes for array in value.rows)


class PointSample(Statistic):
    """The distinct (point, label) rows with the smallest seeded hashes, with multiplicities.

    The sample holds all distinct rows up to `max_points`. Beyond that, a sampled row is also among
    the smallest of every part of the stream that contains it, so the sample and its multiplicities
    depend only on the rows. The number of rows of each cluster and their bounding box are always
    exact. About 8 (d + 3) bytes a point and 16 (d + 1) a cluster.
    """

    max_points: MaxPoints = 20_000
    seed: Seed = 0
    nan_policy: NanPolicy = "raise"

    held = SampleField(inline=True)

    @property
    def schema(self) -> Schema:
        """Points and their cluster labels."""
        return points_schema(self.nan_policy)

    def update(self, points: Floats, labels: Column, *, weight: None) -> None:
        """Add the points to the sample and to the boxes of their clusters."""
        points = points + 0.0  # turns -0.0 into 0.0: they are the same coordinate
        places, every = coded_labels(labels)
        used, codes = used_labels(every, places)
        hashes = row_hashes(label_hashes(used, self.seed), codes, point_hashes(points))
        rows = PointRows(hashes, codes, points, np.ones(len(points), np.int64))
        more = Sample.of(used, rows, self.max_points)
        if len(self.rows.hashes) == self.max_points:
            more = more._replace(rows=rows.take(np.flatnonzero(hashes <= self.rows.hashes[-1])))
        self.held = self.held.plus(more) if len(self.labels) else more.canonical()

    @property
    def complete(self) -> bool:
        """Whether the sample contains every row seen."""
        return self.held.complete

    @property
    def labels(self) -> Array:
        """The cluster labels, in order."""
        return self.held.clusters.labels

    @property
    def counts(self) -> Ints:
        """The number of rows of each cluster."""
        counts: Ints = self.held.clusters.columns["counts"].counts
        return counts

    @property
    def low(self) -> Floats:
        """The smallest coordinates of each cluster (k, d)."""
        low: Floats = self.held.clusters.columns["low"]
        return low

    @property
    def high(self) -> Floats:
        """The largest coordinates of each cluster (k, d)."""
        high: Floats = self.held.clusters.columns["high"]
        return high

    @property
    def rows(self) -> PointRows:
        """The sampled rows, in the order of their hashes."""
        return self.held.rows
