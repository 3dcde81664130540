"""Labelled points themselves, up to a budget, and what is known of all of them beyond it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.constraints import MaxPoints, NanPolicy, Seed
from streammetrics.core.errors import StateFormatError
from streammetrics.core.fields.amounts import check_rows, countable
from streammetrics.core.fields.labels import (
    coded_labels,
    packed_labels,
    used_labels,
)
from streammetrics.core.fields.unions import Union, moved, spread
from streammetrics.core.state.arrays import take_array
from streammetrics.core.statistic import Statistic
from streammetrics.statistics.clusters.rows import (
    Rows,
    canonical,
    label_hashes,
    point_hashes,
    row_hashes,
)
from streammetrics.statistics.clusters.schema import points_schema
from streammetrics.statistics.clusters.sums import take_clusters

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from streammetrics.core.columns.conversion import Column
    from streammetrics.core.columns.schema import Schema


class PointSample(Statistic):
    """The distinct (point, label) rows whose seeded hash is smallest, with multiplicities.

    Up to `max_points` distinct rows it holds all of them. Beyond, a row of the sample is among
    the smallest of every part of the stream that has it, so the sample and its multiplicities
    depend on the rows alone. Of each cluster it also keeps the number of its rows and the box
    they lie in, which stay certain. About 8 (d + 3) bytes a point and 16 (d + 1) a cluster.
    """

    max_points: MaxPoints = 20_000
    seed: Seed = 0
    nan_policy: NanPolicy = "raise"

    @property
    def schema(self) -> Schema:
        """Points and the label of the cluster of each."""
        return points_schema(self.nan_policy)

    def clear(self) -> None:
        """Forget all points."""
        self.labels: NDArray[Any] = np.empty(0, np.int64)
        self.counts: NDArray[np.int64] = np.empty(0, np.int64)
        self.low: NDArray[np.float64] = np.empty((0, 0))
        self.high: NDArray[np.float64] = np.empty((0, 0))
        nothing = np.empty(0, np.int64)
        self.rows = Rows(np.empty(0, np.uint64), nothing, np.empty((0, 0)), nothing)

    def update(self, points: NDArray[np.float64], labels: Column, *, weight: None) -> None:  # noqa: ARG002 - the schema refuses weights
        """Take the points among those kept, and into the boxes of their clusters."""
        points = points + 0.0  # a negative zero is the same coordinate
        places, every = coded_labels(labels)
        used, codes = used_labels(every, places)
        order = np.argsort(codes, kind="stable")
        counts = np.bincount(codes, minlength=len(used))
        starts = np.cumsum(counts) - counts
        by_cluster = points[order]
        low = np.minimum.reduceat(by_cluster, starts, axis=0)
        high = np.maximum.reduceat(by_cluster, starts, axis=0)
        hashes = row_hashes(label_hashes(used, self.seed), codes, point_hashes(points))
        rows = Rows(hashes, codes, points, np.ones(len(points), np.int64))
        if len(self.rows.hashes) == self.max_points:
            rows = rows.take(np.flatnonzero(hashes <= self.rows.hashes[-1]))
        self._add(used, counts, low, high, rows)

    def merge(self, other: PointSample) -> None:
        """Take the points of another sample."""
        check_rows(self.counts, other.counts)
        if len(other.labels):
            self._add(other.labels, other.counts, other.low, other.high, other.rows)

    def _add(
        self,
        labels: NDArray[Any],
        counts: NDArray[np.int64],
        low: NDArray[np.float64],
        high: NDArray[np.float64],
        rows: Rows,
    ) -> None:
        if not len(self.labels):
            self.labels, self.counts, self.low, self.high = labels, counts, low, high
            self.rows = canonical(rows, self.max_points)
            return
        keys, mine, theirs = Union.of(self.labels, labels)
        size = len(keys)
        self.counts = spread(self.counts, mine, size) + spread(counts, theirs, size)
        self.low = np.minimum(
            spread(self.low, mine, size, np.inf), spread(low, theirs, size, np.inf)
        )
        self.high = np.maximum(
            spread(self.high, mine, size, -np.inf), spread(high, theirs, size, -np.inf)
        )
        self.labels = keys
        kept = self.rows._replace(codes=moved(mine, self.rows.codes))
        if len(rows.codes):
            rows = rows._replace(codes=moved(theirs, rows.codes))
            both = Rows(*(np.concatenate(pair) for pair in zip(kept, rows, strict=True)))
            kept = canonical(both, self.max_points)
        self.rows = kept

    @property
    def complete(self) -> bool:
        """Whether every row seen is in the sample."""
        return int(self.rows.copies.sum()) == int(self.counts.sum())

    @property
    def nbytes(self) -> int:
        """Bytes of state held now."""
        held = (self.labels, self.counts, self.low, self.high, *self.rows)
        return sum(array.nbytes for array in held)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the clusters, and the sample in the order of its hashes."""
        return {
            "labels": packed_labels(self.labels),
            "counts": self.counts,
            "low": self.low,
            "high": self.high,
            "codes": self.rows.codes,
            "points": self.rows.points,
            "copies": self.rows.copies,
        }

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Set clusters and sample; hashes are computed anew, and must be in order."""
        labels, counts = take_clusters(arrays)
        low, high, points = (
            take_array(arrays, name, "float64", 2) for name in ("low", "high", "points")
        )
        codes, copies = (take_array(arrays, name, "int64") for name in ("codes", "copies"))
        width = points.shape[1]
        if low.shape != (len(labels), width) or high.shape != low.shape:
            raise StateFormatError("the boxes of clusters do not fit the points")
        if (width > 0) != (len(labels) > 0):
            raise StateFormatError("points have no coordinates")
        if not (len(codes) == len(copies) == len(points) <= self.max_points):
            raise StateFormatError("the columns of a sample of points do not fit together")
        if len(codes) and not 0 <= codes.min() <= codes.max() < len(labels):
            raise StateFormatError("a point is in no cluster")
        for values in (low, high, points):
            if not np.isfinite(values).all() or bool(np.signbit(values[values == 0.0]).any()):
                raise StateFormatError("a coordinate is not one that we write")
        inside = (points >= low[codes]) & (points <= high[codes])
        if not bool((low <= high).all() and inside.all()):
            raise StateFormatError("a point lies outside the box of its cluster")
        if not countable(copies):
            raise StateFormatError("points occur more often than is counted")
        held = np.zeros(len(labels), np.int64)
        np.add.at(held, codes, copies)
        if bool((copies < 1).any() or (held > counts).any()):
            raise StateFormatError("points occur less than once, or more often than in all rows")
        if len(codes) < self.max_points and bool((held < counts).any()):
            raise StateFormatError("a sample of points lacks some")
        hashes = row_hashes(label_hashes(labels, self.seed), codes, point_hashes(points))
        rows = Rows(hashes, codes, points, copies)
        for column, again in zip(rows, canonical(rows, self.max_points), strict=True):
            if not np.array_equal(column, again):
                raise StateFormatError("the points of a sample are out of order")
        self.labels, self.counts, self.low, self.high, self.rows = labels, counts, low, high, rows
