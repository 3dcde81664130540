"""Points in clusters: sums around centroids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.columns.labels import Labels, label_codes
from streammetrics.core.columns.schema import Schema
from streammetrics.core.counting import counts_of
from streammetrics.core.errors import StateFormatError
from streammetrics.core.fields.keyed import (
    LabelledEntries,
    LabelTable,
    Sums,
    Weights,
    coded_labels,
    used_labels,
)
from streammetrics.core.fields.sums import Sum, Width
from streammetrics.core.fields.weights import Counts, WeightedCount
from streammetrics.core.statistic import Statistic
from streammetrics.statistics.points import PointMatrix, points_schema
from streammetrics.statistics.tables import UNWEIGHTED

if TYPE_CHECKING:
    from streammetrics.core.columns.conversion import Column
    from streammetrics.core.types import Array, Floats, Ints, Places


class ClusterSums(Statistic):
    """The number of points and the exact sum of each cluster, and the exact sum of all squares.

    About 24 bytes for each cluster and column, regardless of the number of points.
    """

    takes_counts = True

    nan_policy: Literal["raise", "omit"] = "raise"

    width = Width("columns")
    clusters = LabelTable(counts=Weights(whole=True), sums=Sums(), inline=True)
    squares = Sum()

    @property
    def schema(self) -> Schema:
        """Points and their cluster labels."""
        return points_schema(self.nan_policy)

    def update(self, points: Floats, labels: Column, *, weight: Ints | None) -> None:
        """Add the points to the sums of their clusters."""
        places, every = coded_labels(labels)
        used, codes = used_labels(every, places)
        counts = WeightedCount.at_places(codes, len(used), weight)
        sums, flat = ExactSum.grouped(codes, len(used), points, weight), points.reshape(-1)
        each = None if weight is None else np.repeat(weight, points.shape[1])
        more = LabelledEntries(used, {"counts": counts, "sums": sums})
        self.clusters = type(self).clusters.plus(self.clusters, more)
        self.squares += ExactSum.product(flat, flat, each)
        self.width = points.shape[1]

    def check_fields(self) -> None:
        """Check that sums have `width` columns, and that the sum of squares is consistent."""
        if self.sums.shape[1] != self.width or (self.width > 0) != (len(self.labels) > 0):
            raise StateFormatError("the sums of clusters do not say how wide points are")
        square = self.squares.integers()[0]
        if square < 0 or (self.sums.digits.any() and not square) or (square and not self.width):
            raise StateFormatError("the sum of squares is not that of any points")

    @property
    def labels(self) -> Array:
        """The cluster labels, in order."""
        return self.clusters.labels

    @property
    def counts(self) -> Ints:
        """The number of points of each cluster."""
        counts: Ints = self.clusters.columns["counts"].counts
        return counts

    @property
    def sums(self) -> ExactSum:
        """The exact sum of the points of each cluster, (clusters, columns)."""
        sums: ExactSum = self.clusters.columns["sums"]
        return sums

    def centroids(self, exponent: int) -> tuple[Floats, Floats]:
        """Return the mean of all points and each cluster's offset from it, times 2**exponent.

        Offsets are correctly rounded: equal means have equal bits, and clusters far from the origin
        but close to each other lose no precision. `exponent` must be such that no coordinate times
        2**exponent exceeds 1 in magnitude.
        """
        integers, unit = self.sums.integers()
        counts, shift = self.counts.astype(object)[:, None], max(0, -unit - exponent)
        integers = integers << (unit + exponent + shift)
        if (abs(integers) > counts << shift).any():
            raise StateFormatError("the sums of clusters are beyond those of their points")
        origin = np.asarray(integers.sum(axis=0) / (counts.sum() << shift), np.float64)
        ratios = [value.as_integer_ratio() for value in origin.tolist()]
        wide = max((denominator.bit_length() for _, denominator in ratios), default=1)
        whole = np.array([(top << wide) // bottom for top, bottom in ratios], object)
        apart = (integers << wide) - counts * (whole << shift)
        return origin, np.asarray(apart / (counts << (wide + shift)), np.float64)


LARGEST = 1e150  # largest coordinate; squared differences stay finite


class CentroidSums(Statistic):
    """Exact sums by cluster of each point's distance to its centroid, or of its silhouette.

    A label is a row number of `centroids`. The simplified silhouette compares the distance to the
    point's own centroid with the distance to the closest other centroid. The value of a point has
    the same bits in every batch. About 32 bytes a cluster.
    """

    takes_counts = True

    centroids: tuple[Any, ...]
    value: Literal["distance", "silhouette"] = "distance"
    metric: Literal["euclidean", "sqeuclidean"] = "euclidean"
    nan_policy: Literal["raise", "omit"] = "raise"

    counts = Counts(lambda of: (len(of.centroids),))
    sums = Sum(lambda of: (len(of.centroids),))

    @property
    def schema(self) -> Schema:
        """Points with as many columns as the centroids, and the centroid number of each."""
        points = PointMatrix(low=-LARGEST, high=LARGEST, width=len(self.centroids[0]))
        labels = Labels("labels", tuple(range(len(self.centroids))))
        return Schema((points, labels), self.nan_policy, UNWEIGHTED)

    def update(self, points: Floats, labels: Column, *, weight: Ints | None) -> None:
        """Add the values of the points."""
        size = len(self.centroids)
        codes = label_codes(labels, tuple(range(size)))
        values = self._values(points, codes, np.array(self.centroids))
        self.counts = self.counts + counts_of((size,), codes, times=weight)
        self.sums = self.sums + ExactSum.grouped(codes, size, values, weight)

    def _values(self, points: Floats, codes: Places, centroids: Floats) -> Floats:
        values = np.empty(len(points))
        width = 1 if self.value == "distance" else len(centroids)
        step = max(1, tuning.CENTROID_DISTANCES // width)
        for start in range(0, len(points), step):
            rows = slice(start, start + step)
            columns = np.ascontiguousarray(points[rows].T)
            if self.value == "distance":
                near = _squared(columns, centroids[codes[rows]].T)
                values[rows] = near if self.metric == "sqeuclidean" else np.sqrt(near)
            else:
                distances = _squared(columns[:, None], centroids.T[:, :, None])
                if self.metric == "euclidean":
                    np.sqrt(distances, out=distances)
                values[rows] = _compared(distances, codes[rows])
        return values

    def check_fields(self) -> None:
        """Check that only clusters with points have sums."""
        held = self.sums.digits.any(axis=1) if self.sums.digits.size else np.zeros(1, np.bool_)
        if (held & (self.counts == 0)).any():
            raise StateFormatError("a cluster without points has a sum")

    @property
    def means(self) -> Floats:
        """The mean value of each cluster; ``nan`` for clusters without points."""
        used = self.counts > 0
        totals = np.asarray(self.sums.to_float())
        return np.where(used, totals / np.maximum(self.counts, 1), np.nan)


def _squared(columns: Floats, centroids: Floats) -> Floats:
    """Return squared distances, added coordinate by coordinate along the first axis.

    A matrix product or a sum along rows could round the same point differently in another batch.
    """
    total = np.zeros(np.broadcast_shapes(columns.shape[1:], centroids.shape[1:]))
    apart = np.empty_like(total)
    for column, centroid in zip(columns, centroids, strict=True):
        np.subtract(column, centroid, out=apart)
        np.multiply(apart, apart, out=apart)
        total += apart
    return total


def _compared(distances: Floats, codes: Places) -> Floats:
    """Return silhouettes (b - a) / max(a, b) from distances (clusters, n); overwrites distances."""
    each = np.arange(len(codes))
    a = distances[codes, each]
    distances[codes, each] = np.inf
    b = distances.min(axis=0)
    larger = np.maximum(a, b)
    return np.asarray(np.divide(b - a, larger, out=np.zeros(len(codes)), where=larger > 0.0))
