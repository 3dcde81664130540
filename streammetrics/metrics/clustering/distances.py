"""Clusterings evaluated without true labels, by the distances between points."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from streammetrics.core.configured import require
from streammetrics.core.results.values import KeyedValues
from streammetrics.metrics.clustering.geometry import (
    scaled,
    smallest_gap,
)
from streammetrics.metrics.clustering.points import SampledMetric, as_centroids
from streammetrics.metrics.families import POINTS
from streammetrics.statistics.clusters.balls import nearest_and_farthest
from streammetrics.statistics.clusters.centroids import CentroidSums
from streammetrics.statistics.clusters.distances import Cloud, lengths, silhouettes
from streammetrics.statistics.clusters.rows import by_content
from streammetrics.statistics.clusters.sample import PointSample
from streammetrics.statistics.clusters.tiles import DIRECTED, directions

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import Array, Floats, Ints, Places

    Held = CentroidSums | PointSample


__all__ = ["DunnIndex", "Silhouette"]


class Silhouette(SampledMetric):
    """Silhouette coefficient, from -1 to 1: how much closer points are to their own cluster.

    Formula: mean ((b - a) / max(a, b))

    For each point, a is the mean distance to the other points of its cluster and b the smallest
    mean distance to the points of another cluster. A point alone in its cluster has 0. ``nan``
    with fewer than two clusters, or where every point is a cluster of its own.

    scikit-learn's ``sample_size`` is `max_points` here, and its ``random_state`` is `seed`. There
    is no ``metric="precomputed"``: a matrix of all distances cannot come in batches of rows.

    With `centroids`, (K, d), a label is the row number of a centroid, a is the distance to the
    point's own centroid and b that to the nearest other one. This *simplified* silhouette is a
    different quantity, exact in one pass and without storing points.

    Beyond `max_points` distinct points the value is that of a sample, clipped to `bounds()`: the
    range that is possible when points alone in their clusters have 0.

    The other parameters are those of `SampledMetric`.

    Args:
        metric: The distance: ``"euclidean"``, ``"sqeuclidean"``, ``"cosine"``, ``"correlation"``,
            ``"manhattan"``, ``"chebyshev"``, ``"canberra"``, ``"braycurtis"`` or ``"hamming"``,
            as in ``scipy.spatial.distance``. By cosine and correlation, a point without a
            direction is at distance 1 from all others, equal ones among them. A point at an
            infinite distance (``"braycurtis"`` of opposite points) counts as 0, as in scikit-learn.
            With `centroids` only the first two are allowed.
        centroids: The centroids of a fitted model, (K, d), with coordinates up to 1e150; points are
            then not stored.

    Raises:
        ValueError: `centroids` is not a finite (K, d) matrix of at least two rows, or `metric` is
            not one that centroids allow.

    Memory and cost: 8 (d + 3) bytes per point kept; `compute` takes n² distances, in blocks. With
    centroids 32 bytes per cluster.

    Reference: ``sklearn.metrics.silhouette_score``; Rousseeuw (1987); simplified: Hruschka, de
    Castro and Campello (2004).

    Example:
        >>> import streammetrics as sm
        >>> points, labels = [[0.0], [1.0], [4.0], [5.0]], ["a", "a", "b", "b"]
        >>> silhouette = sm.Silhouette().update(points, labels)
        >>> round(silhouette.compute(), 4)
        0.746
        >>> silhouette.exact
        True
    """

    higher_is_better = True
    _nan_reason = "there are fewer than two clusters, or every point is a cluster of its own"
    family = POINTS

    metric: Literal[
        "euclidean", "sqeuclidean", "cosine", "correlation", "manhattan", "chebyshev", "canberra",
        "braycurtis", "hamming",
    ] = "euclidean"  # fmt: skip
    centroids: Any = None

    def check_parameters(self) -> None:
        """Convert the centroids to tuples, and check that there are at least two."""
        self.centroids = as_centroids(self.centroids)
        several = self.centroids is None or len(self.centroids) > 1
        require(self, "centroids", several, "at least two rows, as a silhouette compares them")
        euclidean = self.metric in {"euclidean", "sqeuclidean"}
        fits = self.centroids is None or euclidean
        require(self, "metric", fits, "'euclidean' or 'sqeuclidean' with centroids")

    def statistics(self) -> tuple[Statistic, ...]:
        """Return sums by centroid, or a sample of points."""
        if self.centroids is None:
            return (self._sample(),)
        sums = CentroidSums(
            centroids=self.centroids,
            value="silhouette",
            metric=cast("Any", self.metric),
            nan_policy=self.nan_policy,
        )
        return (sums,)

    def readout(self, held: Held) -> float:
        """Return the mean over all points."""
        _, means, counts = self._by_cluster(held)
        value = math.fsum(means * counts) / float(counts.sum()) if len(means) else math.nan
        if self.is_exact(held):
            return value
        low, high = self.certain(held)  # that of a sample may lie beyond what is certain
        return min(max(value, low), high)

    def per_cluster(self) -> KeyedValues:
        """Return the mean over the points of each cluster, by its label."""
        (held,) = self._read()
        labels, means, _ = self._by_cluster(cast("Held", held))
        return KeyedValues(dict(zip(labels.tolist(), means.tolist(), strict=True)), "cluster")

    def per_point(self, X: object, labels: object) -> Floats:  # noqa: N803 - the field's name for points
        """Return the silhouette (n,) of each of the given points, as one of those already added.

        It is ``nan`` for a point that was not added, or that the sample did not keep.

        Args:
            X: Points, (n, d).
            labels: Their clusters, (n,).

        Raises:
            ValueError: The metric has `centroids`, and so keeps no points.
        """
        (kept,) = self._read()
        if not isinstance(kept, PointSample):
            raise ValueError(  # noqa: TRY004 - the metric has the wrong parameters
                "per_point() takes the points that are kept, and with centroids none is"
            )
        points = np.asarray(X, np.float64)
        points = points[:, None] if points.ndim == 1 else points
        wanted_labels, names = np.asarray(labels), kept.labels
        places = np.minimum(np.searchsorted(names, wanted_labels), max(len(names) - 1, 0))
        known = (
            names[places] == wanted_labels if len(names) else np.zeros(len(wanted_labels), np.bool_)
        )
        rows = kept.rows
        present, codes = np.unique(rows.codes, return_inverse=True)
        size = len(present)
        if not 2 <= size < rows.copies.sum() or points.shape[1] != rows.points.shape[1]:
            return np.full(len(points), math.nan)
        cloud = self._cloud(rows.points, codes, rows.copies)
        values = np.empty(len(rows.codes))
        values[cloud.order] = silhouettes(cloud, size, self.metric)
        both = np.concatenate(
            [np.column_stack(side) for side in ((rows.codes, rows.points), (places, points + 0.0))]
        )
        groups = np.unique(both, axis=0, return_inverse=True)[1].reshape(-1)
        by_group = np.full(groups.max() + 1, math.nan)
        by_group[groups[: len(values)]] = values
        return np.where(known, by_group[groups[len(values) :]], math.nan)

    def _cloud(self, points: Floats, codes: Places, copies: Ints) -> Cloud:
        """Return the points, or for cosine and correlation their directions."""
        if self.metric in DIRECTED:
            points = directions(points, centred=self.metric == "correlation")
        return Cloud.of(points, codes, copies)

    def _by_cluster(self, held: Held) -> tuple[Array, Floats, Ints]:
        """Return the labels of the clusters, the mean silhouette and the size of each."""
        if isinstance(held, CentroidSums):
            labels = np.flatnonzero(held.counts)
            counts = held.counts[labels]
            means = np.where(counts > 1, held.means[labels], 0.0)
        else:
            present, codes = np.unique(held.rows.codes, return_inverse=True)
            labels = held.labels[present]
            rows, places = by_content(held.rows._replace(codes=codes), len(labels))
            cloud = self._cloud(rows.points, places[rows.codes], rows.copies)
            amounts = np.bincount(cloud.codes, cloud.copies, len(labels))
            counts = amounts.astype(np.int64)[places]
            if 2 <= len(labels) < counts.sum():
                values = silhouettes(cloud, len(labels), self.metric)
                added = np.bincount(cloud.codes, cloud.copies * values, len(labels))
                means = (added / amounts)[places]
        if not 2 <= len(labels) < counts.sum():
            means = np.full(len(labels), math.nan)
        return labels, means, counts

    def certain(self, *statistics: Any) -> tuple[float, float]:
        """Return the bounds: a point has -1 to 1, but 0 where it is alone in its cluster."""
        counts = statistics[0].counts
        if len(counts) < 2:
            return math.nan, math.nan
        share = float(counts[counts > 1].sum() / counts.sum())
        return -share, share


class DunnIndex(SampledMetric):
    """Dunn index: the smallest distance between two clusters over the largest within one.

    Formula: min_(c(x) ≠ c(x')) d(x, x') / max_(c(x) = c(x')) d(x, x')

    ``nan`` with fewer than two clusters, or where no cluster has two different points.

    Beyond `max_points` distinct points the value is that of a sample, which is never too small:
    leaving points out only moves clusters apart and makes them narrower. The lower bound comes from
    the bounding boxes of the clusters.

    Parameters are those of `SampledMetric`.

    Memory and cost: 8 (d + 3) bytes per point kept; `compute` takes the distances between those
    groups of points that bounding balls do not rule out.

    Reference: Dunn (1974), "Well-separated clusters and optimal fuzzy partitions".

    Example:
        >>> import streammetrics as sm
        >>> sm.DunnIndex().update([[0.0], [1.0], [4.0], [6.0]], [0, 0, 1, 1]).compute()
        1.5
    """

    higher_is_better = True
    _nan_reason = "there are fewer than two clusters, or each has one distinct point only"
    family = POINTS

    def statistics(self) -> tuple[Statistic, ...]:
        """Return a sample of points."""
        return (self._sample(),)

    def readout(self, sample: PointSample) -> float:
        """Return the ratio of both distances in the sample."""
        near, far = self._extremes(sample)
        return near / far if far > 0.0 and near < math.inf else math.nan

    def _extremes(self, sample: PointSample) -> tuple[float, float]:
        rows = sample.rows
        if not len(rows.codes):
            return math.inf, 0.0
        return nearest_and_farthest(Cloud.of(rows.points, rows.codes, rows.copies))

    def certain(self, *statistics: Any) -> tuple[float, float]:
        """Return the ratio for the bounding boxes, and for the sample."""
        (sample,) = statistics
        _, (lowest, highest) = scaled(sample.low, sample.high)
        widest = float(lengths(highest - lowest).max(initial=0.0))
        if len(sample.labels) < 2 or widest == 0.0:
            return math.nan, math.nan
        near, far = self._extremes(sample)
        low = smallest_gap(lowest, highest) / widest * (1 - 2.0**-40)
        return low, near / far * (1 + 2.0**-40) if far > 0.0 else math.inf
