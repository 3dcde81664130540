"""The smallest distance between clusters and the largest within one, by balls of neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core import tuning
from streammetrics.statistics.clusters.distances import CLOSE, Block, lengths, runs_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streammetrics.core.types import Bools, Floats, Places
    from streammetrics.statistics.clusters.distances import Cloud


def nearest_and_farthest(cloud: Cloud) -> tuple[float, float]:
    """Return the smallest distance between clusters and the largest within one.

    Points are grouped in balls of neighbours; pairs of balls are visited from the most promising
    on, until no other can hold a closer, or a farther, pair. Both are in the scale of the cloud;
    without two clusters the first is infinite.
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
    """Neighbouring points in groups, with what their distances can be."""

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
        # Coordinates are at most one, so this covers the rounding of centres and lengths.
        slack = 2.0**-48 * np.sqrt(points.shape[1])
        self._left, self._right = left, right
        self._gaps, self._spans = apart - reach - slack, apart + reach + slack
        self._first = self._codes[starts]
        self._last = self._codes[np.add(starts, sizes) - 1]
        self._buffer = np.empty(tuning.DISTANCE_ROWS * tuning.DISTANCE_ROWS)

    def by_gap(self) -> Iterator[tuple[int, int, float]]:
        """Yield the pairs of balls with points of two clusters, those that may be closest first."""
        pure = self._first == self._last
        alike = pure[self._left] & pure[self._right]
        alike &= self._first[self._left] == self._first[self._right]
        return self._pairs(~alike, self._gaps, 1.0)

    def by_span(self) -> Iterator[tuple[int, int, float]]:
        """Yield the pairs of balls with points of one cluster, those that may be widest first."""
        return self._pairs(self._last[self._left] >= self._first[self._right], self._spans, -1.0)

    def _pairs(self, kept: Bools, keys: Floats, sign: float) -> Iterator[tuple[int, int, float]]:
        places = np.flatnonzero(kept)
        places = places[np.argsort(sign * keys[places], kind="stable")]
        columns = (self._left[places], self._right[places], keys[places])
        yield from zip(*(column.tolist() for column in columns), strict=True)

    def nearest(self, left: int, right: int, best: float) -> float:
        """Return the smallest distance between points of different clusters, or `best`."""
        tile, same = self._tile(left, right)
        tile[same] = np.inf
        value = tile.min()
        if value >= best**2:
            return best
        return min(best, float(self._measured(left, right, tile <= value * (1 + CLOSE)).min()))

    def farthest(self, left: int, right: int, best: float) -> float:
        """Return the largest distance between points of the same cluster, or `best`."""
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
        """Return the distances of some pairs from the differences of their coordinates."""
        rows, columns = (places[: tuning.DISTANCE_ROWS] for places in np.nonzero(chosen))
        return lengths(self._blocks[left].points[rows] - self._blocks[right].points[columns])


def _neighbours(cloud: Cloud) -> tuple[Places, list[slice]]:
    """Return an order of points by cluster, and runs of it whose points lie close together."""
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
