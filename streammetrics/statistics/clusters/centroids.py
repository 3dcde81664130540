"""Points judged against given centroids as they pass: exact sums of one value each, no points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.columns.labels import Labels, label_codes
from streammetrics.core.columns.schema import Schema
from streammetrics.core.errors import StateFormatError
from streammetrics.core.fields.sums import Sum
from streammetrics.core.fields.weights import Counts
from streammetrics.core.statistic import Statistic
from streammetrics.statistics.clusters.schema import PointMatrix
from streammetrics.statistics.tables.contingency import UNWEIGHTED

if TYPE_CHECKING:
    from streammetrics.core.columns.conversion import Column
    from streammetrics.core.types import Floats, Places


LARGEST = 1e150  # coordinates whose squared differences are finite


class CentroidSums(Statistic):
    """Exact sums, by cluster, of each point's distance to its centroid or of its silhouette.

    A label is the number of a row of `centroids`. The silhouette compares the distance to the
    own centroid with that to the closest other one. Every point's value has the same bits in
    whatever batch it comes. About 32 bytes a cluster.
    """

    centroids: tuple[Any, ...]
    value: Literal["distance", "silhouette"] = "distance"
    metric: Literal["euclidean", "sqeuclidean"] = "euclidean"
    nan_policy: Literal["raise", "omit"] = "raise"

    counts = Counts(lambda of: (len(of.centroids),))
    sums = Sum(lambda of: (len(of.centroids),))

    @property
    def schema(self) -> Schema:
        """Points as wide as the centroids, and the number of the centroid of each."""
        points = PointMatrix(low=-LARGEST, high=LARGEST, width=len(self.centroids[0]))
        labels = Labels("labels", tuple(range(len(self.centroids))))
        return Schema((points, labels), self.nan_policy, UNWEIGHTED)

    def update(self, points: Floats, labels: Column, *, weight: None) -> None:  # noqa: ARG002 - the schema refuses weights
        """Add the values of the points."""
        size = len(self.centroids)
        codes = label_codes(labels, tuple(range(size)))
        values = self._values(points, codes, np.array(self.centroids))
        self.counts = self.counts + np.bincount(codes, minlength=size)
        self.sums = self.sums + ExactSum.grouped(codes, size, values)

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
        """The mean value of each cluster, ``nan`` where it has no points."""
        used = self.counts > 0
        totals = np.asarray(self.sums.to_float())
        return np.where(used, totals / np.maximum(self.counts, 1), np.nan)


def _squared(columns: Floats, centroids: Floats) -> Floats:
    """Return squared distances, summed up coordinate by coordinate along the first axis.

    A matrix product, or a sum along rows, could round one point differently in another batch.
    """
    total = np.zeros(np.broadcast_shapes(columns.shape[1:], centroids.shape[1:]))
    apart = np.empty_like(total)
    for column, centroid in zip(columns, centroids, strict=True):
        np.subtract(column, centroid, out=apart)
        np.multiply(apart, apart, out=apart)
        total += apart
    return total


def _compared(distances: Floats, codes: Places) -> Floats:
    """Return (b - a) / max(a, b) of distances (clusters, n), which are overwritten."""
    each = np.arange(len(codes))
    a = distances[codes, each]
    distances[codes, each] = np.inf
    b = distances.min(axis=0)
    larger = np.maximum(a, b)
    return np.asarray(np.divide(b - a, larger, out=np.zeros(len(codes)), where=larger > 0.0))
