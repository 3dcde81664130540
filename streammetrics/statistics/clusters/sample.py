"""Labelled points themselves, up to a budget, and what is known of all of them beyond it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core.constraints import MaxPoints, NanPolicy, Seed
from streammetrics.core.counting import added_at, group_order
from streammetrics.core.errors import StateFormatError
from streammetrics.core.field import StateField
from streammetrics.core.fields.amounts import Amount
from streammetrics.core.fields.entries import KeyedExtremes, Weights
from streammetrics.core.fields.keyed import LabelledEntries, LabelTable
from streammetrics.core.fields.labels import coded_labels, used_labels
from streammetrics.core.fields.weights import countable
from streammetrics.core.state.arrays import take_array
from streammetrics.core.statistic import Statistic
from streammetrics.core.unions import moved
from streammetrics.statistics.clusters.rows import (
    PointRows,
    canonical,
    label_hashes,
    point_hashes,
    row_hashes,
)
from streammetrics.statistics.clusters.schema import points_schema

if TYPE_CHECKING:
    from streammetrics.core.columns.conversion import Column
    from streammetrics.core.columns.schema import Schema
    from streammetrics.core.configured import Configured
    from streammetrics.core.types import Array, Arrays, Floats, Ints


class Sample(NamedTuple):
    """Clusters, with the number and the box of their rows, and the rows that are kept."""

    clusters: LabelledEntries
    rows: PointRows
    limit: int  # of rows

    def plus(self, other: Sample) -> Sample:
        """What is kept of the rows of both; none of these is without rows."""
        clusters, union = _CLUSTERS.united(self.clusters, other.clusters)
        kept = self.rows._replace(codes=moved(union.mine, self.rows.codes))
        if len(other.rows.codes):
            more = other.rows._replace(codes=moved(union.theirs, other.rows.codes))
            both = PointRows(*(np.concatenate(pair) for pair in zip(kept, more, strict=True)))
            kept = canonical(both, self.limit)
        return Sample(clusters, kept, self.limit)

    def canonical(self) -> Sample:
        """What is kept of rows as they come."""
        return self._replace(rows=canonical(self.rows, self.limit))


_CLUSTERS = LabelTable(
    counts=Weights(whole=True), low=KeyedExtremes(), high=KeyedExtremes(largest=True)
)


class SampleField(StateField[Sample]):
    """Clusters and the sample of a `PointSample`: the arrays of both, points without hashes.

    A field of its own, as its rows say their cluster by its place in the table of clusters, which
    moves with every new one.
    """

    def empty(self, of: Configured) -> Sample:
        """Return no clusters and no rows."""
        nothing = np.empty(0, np.int64)
        rows = PointRows(np.empty(0, np.uint64), nothing, np.empty((0, 0)), nothing)
        return Sample(_CLUSTERS.empty(of), rows, of.config["max_points"])

    def plus(self, mine: Sample, other: Sample) -> Sample:
        """Return what is kept of both."""
        if not len(mine.clusters.labels) or not len(other.clusters.labels):
            return mine if len(mine.clusters.labels) else other
        return mine.plus(other)

    def arrays(self, value: Sample) -> dict[str, Array]:
        """Return the clusters, and the sample in the order of its hashes."""
        _, codes, points, copies = value.rows
        rows = {"codes": codes, "points": points, "copies": copies}
        return _CLUSTERS.arrays(value.clusters) | rows

    def taken(self, arrays: Arrays, of: Configured) -> Sample:
        """Return clusters and sample; hashes are computed anew, and must be in order."""
        known = {"codes", "points", "copies"}
        clusters = _CLUSTERS.taken({k: v for k, v in arrays.items() if k not in known}, of)
        labels, counts = clusters.labels, clusters.columns["counts"].counts
        low, high = clusters.columns["low"], clusters.columns["high"]
        points = take_array(arrays, "points", "float64", 2)
        codes, copies = (take_array(arrays, name, "int64") for name in ("codes", "copies"))
        width, limit = points.shape[1], of.config["max_points"]
        if low.shape != (len(labels), width) or high.shape != low.shape:
            raise StateFormatError("the boxes of clusters do not fit the points")
        if (width > 0) != (len(labels) > 0):
            raise StateFormatError("points have no coordinates")
        if not (len(codes) == len(copies) == len(points) <= limit):
            raise StateFormatError("the columns of a sample of points do not fit together")
        if len(codes) and not 0 <= codes.min() <= codes.max() < len(labels):
            raise StateFormatError("a point is in no cluster")
        if not np.isfinite(points).all() or bool(np.signbit(points[points == 0.0]).any()):
            raise StateFormatError("a coordinate is not one that we write")
        inside = (points >= low[codes]) & (points <= high[codes])
        if not bool((low <= high).all() and inside.all()):
            raise StateFormatError("a point lies outside the box of its cluster")
        if not countable(copies):
            raise StateFormatError("points occur more often than is counted")
        held = added_at(codes, copies, len(labels))
        if bool((copies < 1).any() or (held > counts).any()):
            raise StateFormatError("points occur less than once, or more often than in all rows")
        if len(codes) < limit and bool((held < counts).any()):
            raise StateFormatError("a sample of points lacks some")
        hashes = row_hashes(label_hashes(labels, of.config["seed"]), codes, point_hashes(points))
        rows = PointRows(hashes, codes, points, copies)
        for column, again in zip(rows, canonical(rows, limit), strict=True):
            if not np.array_equal(column, again):
                raise StateFormatError("the points of a sample are out of order")
        return Sample(clusters, rows, limit)

    def nbytes(self, value: Sample) -> int:
        """Bytes held now."""
        return _CLUSTERS.nbytes(value.clusters) + sum(array.nbytes for array in value.rows)


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

    held = SampleField(inline=True)

    @property
    def schema(self) -> Schema:
        """Points and the label of the cluster of each."""
        return points_schema(self.nan_policy)

    def update(self, points: Floats, labels: Column, *, weight: None) -> None:  # noqa: ARG002 - the schema refuses weights
        """Take the points among those kept, and into the boxes of their clusters."""
        points = points + 0.0  # a negative zero is the same coordinate
        places, every = coded_labels(labels)
        used, codes = used_labels(every, places)
        order, starts = group_order(codes, len(used))
        counts, starts = np.diff(starts), starts[:-1]
        by_cluster = points[order]
        low = np.minimum.reduceat(by_cluster, starts, axis=0)
        high = np.maximum.reduceat(by_cluster, starts, axis=0)
        hashes = row_hashes(label_hashes(used, self.seed), codes, point_hashes(points))
        rows = PointRows(hashes, codes, points, np.ones(len(points), np.int64))
        if len(self.rows.hashes) == self.max_points:
            rows = rows.take(np.flatnonzero(hashes <= self.rows.hashes[-1]))
        columns = {"counts": Amount.of_counts(counts, len(points)), "low": low, "high": high}
        more = Sample(LabelledEntries(used, columns), rows, self.max_points)
        self.held = self.held.plus(more) if len(self.labels) else more.canonical()

    @property
    def complete(self) -> bool:
        """Whether every row seen is in the sample."""
        return int(self.rows.copies.sum()) == int(self.counts.sum())

    @property
    def labels(self) -> Array:
        """The labels of the clusters, in order."""
        return self.held.clusters.labels

    @property
    def counts(self) -> Ints:
        """The number of rows of each cluster."""
        counts: Ints = self.held.clusters.columns["counts"].counts
        return counts

    @property
    def low(self) -> Floats:
        """The smallest coordinates in each cluster (k, d)."""
        low: Floats = self.held.clusters.columns["low"]
        return low

    @property
    def high(self) -> Floats:
        """The largest coordinates in each cluster (k, d)."""
        high: Floats = self.held.clusters.columns["high"]
        return high

    @property
    def rows(self) -> PointRows:
        """The rows of the sample, in the order of their hashes."""
        return self.held.rows
