"""Clusterings judged without a truth, by the points alone."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from streammetrics.core.configured import require
from streammetrics.core.constraints import MaxPoints, NanPolicy, Seed
from streammetrics.core.errors import EstimateWarning
from streammetrics.core.metric import Metric
from streammetrics.core.results.values import Interval, KeyedValues
from streammetrics.metrics.clustering.geometry import (
    scaled,
    smallest_gap,
    spread,
    worst_ratios,
)
from streammetrics.statistics.clusters.centroids import LARGEST, CentroidSums
from streammetrics.statistics.clusters.distances import (
    Cloud,
    lengths,
    nearest_and_farthest,
    silhouettes,
)
from streammetrics.statistics.clusters.rows import by_content
from streammetrics.statistics.clusters.sample import PointSample
from streammetrics.statistics.clusters.sums import ClusterSums

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streammetrics.core.layout import State
    from streammetrics.core.statistic import Statistic

    Floats = NDArray[np.float64]

__all__ = ["CalinskiHarabasz", "DaviesBouldin", "DunnIndex", "Silhouette"]


class InternalMetric(Metric):
    """Base of the metrics of points and the labels of their clusters.

    Args:
        nan_policy: ``"raise"`` or ``"omit"`` rows with a missing value.
    """

    nan_policy: NanPolicy = "raise"

    def update(self, X: Any, labels: Any) -> Self:  # noqa: N803 - the field's name for points
        """Take a batch.

        Args:
            X: Points, (n, d) finite numbers, the same d in every batch; (n,) is one coordinate.
            labels: The cluster of each point: integers, booleans or strings.

        Raises:
            InvalidBatchError: A column is not what it should be; nothing has changed.
        """
        return self.feed({"X": X, "labels": labels})


class SampledMetric(InternalMetric):
    """Base of the metrics that need the points, and keep up to a budget of them.

    Up to `max_points` distinct (point, label) rows the value is exact. Beyond, it is computed from
    a sample of them (those with the smallest seeded hash, each with the number of times it was
    seen, the same in every order of arrival), `exact` is False, and the first `compute` says so
    with an `EstimateWarning`.

    Args:
        max_points: How many distinct rows are kept.
        seed: Of the hash that draws the sample; states merge only if it is the same.
        nan_policy: ``"raise"`` or ``"omit"`` rows with a missing value.
    """

    max_points: MaxPoints = 20_000
    seed: Seed = 0

    def _sample(self) -> PointSample:
        """Return an empty sample of this metric's budget."""
        return PointSample(max_points=self.max_points, seed=self.seed, nan_policy=self.nan_policy)

    def _computed(self, state: State, depth: int = 3) -> Any:
        value = super()._computed(state, depth + 1)
        if not self.is_exact(*self._chosen(state)) and not self.__dict__.get("_told", False):
            self.__dict__["_told"] = True
            warnings.warn(
                f"{type(self).__name__} is an estimate: more than max_points={self.max_points:,} "
                "distinct points were seen; bounds() gives what is certain",
                EstimateWarning,
                stacklevel=depth,
            )
        return value

    def is_exact(self, *statistics: Any) -> bool:
        """Whether every point seen was kept, or none is needed."""
        return all(s.complete for s in statistics if isinstance(s, PointSample))

    def interval(self, *statistics: Any) -> Interval:
        """Return what certainly holds the exact value."""
        if self.is_exact(*statistics):
            value = self.readout(*statistics)
            return Interval(value, value)
        low, high = self._certain(*statistics)
        return Interval(float(low), float(high))

    @abstractmethod
    def _certain(self, *statistics: Any) -> tuple[float, float]:
        """Return bounds of the value where points were left out of the sample."""


class CalinskiHarabasz(InternalMetric):
    r"""Variance ratio of clusters, (B / (K - 1)) / (W / (n - K)).

    B is the squared distance from the mean to the centroid of each point's cluster, W that from
    the point to it, summed over all n points of K clusters. Sums are exact, and so are B and W
    until they are divided: points far from the origin lose nothing. ``nan`` with fewer than two
    clusters, and where W is 0 (scikit-learn gives 1.0).

    Args:
        nan_policy: see `InternalMetric`.

    Memory and cost: 24 bytes a cluster and column; one pass.

    Reference: `sklearn.metrics.calinski_harabasz_score`; Calinski and Harabasz (1974).

    Example:
        >>> import streammetrics as sm
        >>> ch = sm.CalinskiHarabasz()
        >>> ch.update([[0.0, 0.0], [0.0, 1.0], [4.0, 0.0], [4.0, 1.0]], [0, 0, 1, 1]).compute()
        32.0
    """

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sums of clusters."""
        return (ClusterSums(nan_policy=self.nan_policy),)

    def readout(self, sums: ClusterSums) -> float:
        """Return the ratio from exact integers.

        With S the sum of n points of square sum Q, S_k and n_k those of a cluster: the sum
        A = Σ |S_k|² / n_k is taken with so many bits after the point that W = Q - A and
        B = A - |S|² / n are zero or have 64 right ones, as neither can be between 0 and n**-3
        units.
        """
        clusters, n = len(sums.labels), int(sums.counts.sum())
        if not 2 <= clusters < n:
            return math.nan
        sums_of, exponent = sums.sums.integers()
        squares, unit = sums.squares.integers()
        base = min(2 * exponent, unit)
        bits = 3 * n.bit_length() + clusters.bit_length() + 64
        square_lengths = (sums_of * sums_of).sum(axis=1) << (2 * exponent - base + bits)
        explained = int((square_lengths // sums.counts.astype(object)).sum())
        mean = (int((sums_of.sum(axis=0) ** 2).sum()) << (2 * exponent - base + bits)) // n
        within = (squares << (unit - base + bits)) - explained
        between = explained - mean
        if within <= clusters:
            return math.nan
        if between <= clusters:
            return 0.0
        try:
            return float(between * (n - clusters) / (within * (clusters - 1)))
        except OverflowError:
            return math.inf


class DaviesBouldin(SampledMetric):
    r"""Mean over clusters of the worst (S_i + S_j) / M_ij with another cluster.

    S is the mean distance of a cluster's points to its centroid, M the distance between two
    centroids; smaller is better. Pairs of clusters with one centroid are left out, as in
    scikit-learn; ``nan`` where no pair is left.

    With `centroids`, (K, d), labels are the numbers of their rows, and both S and M use them
    instead of the means: the index of a fitted model on any data, in one pass without keeping
    points. On the data a k-means converged on the two are the same. Clusters without points
    are left out.

    Past `max_points` the centroids stay exact and S is estimated; the interval takes the points
    left out to be anywhere in the box of their cluster.

    Args:
        centroids: Of a fitted model, coordinates up to 1e150; then nothing is sampled.
        max_points: see `SampledMetric`, as `seed` and `nan_policy`.

    Raises:
        ValueError: Centroids are not a finite (K, d) matrix.

    Memory and cost: 8 (d + 3) bytes a point kept; with centroids 32 bytes a cluster.

    Reference: `sklearn.metrics.davies_bouldin_score`; Davies and Bouldin (1979).

    Example:
        >>> import streammetrics as sm
        >>> points, labels = [[0.0, 0.0], [0.0, 2.0], [4.0, 0.0], [4.0, 2.0]], [0, 0, 1, 1]
        >>> sm.DaviesBouldin().update(points, labels).compute()
        0.5
        >>> sm.DaviesBouldin(centroids=[[0.0, 1.0], [4.0, 1.0]]).update(points, labels).compute()
        0.5
    """

    centroids: Any = None

    def check_parameters(self) -> None:
        """Bring the centroids to tuples."""
        self.centroids = as_centroids(self.centroids)

    def statistics(self) -> tuple[Statistic, ...]:
        """Return sums by centroid, or sums of clusters and a sample of points."""
        if self.centroids is not None:
            return (CentroidSums(centroids=self.centroids, nan_policy=self.nan_policy),)
        return ClusterSums(nan_policy=self.nan_policy), self._sample()

    def readout(self, *statistics: Any) -> float:
        """Return the mean of the worst ratios."""
        _, worst = self._by_cluster(*statistics)
        return math.fsum(worst) / worst.size if worst.size else math.nan

    def per_cluster(self) -> KeyedValues:
        """Return the worst ratio of each cluster, by its label."""
        statistics: Any = self._read()
        labels, worst = self._by_cluster(*statistics)
        return KeyedValues(dict(zip(labels.tolist(), worst.tolist(), strict=True)), "cluster")

    def _by_cluster(
        self, sums: Any, sample: PointSample | None = None
    ) -> tuple[NDArray[Any], Floats]:
        if sample is not None:
            found = spread(sums, sample)
            labels, counts = sums.labels, sums.counts
            worst = worst_ratios(found.estimate, found.centroids)
        else:
            labels = np.flatnonzero(sums.counts)
            counts = sums.counts[labels]
            worst = worst_ratios(sums.means[labels], np.array(self.centroids)[labels])
        defined = 2 <= len(labels) < counts.sum()
        return labels, worst if defined else np.full(len(labels), math.nan)

    def _certain(self, *statistics: Any) -> tuple[float, float]:
        """Return the mean worst ratios of the smallest and of the largest spreads."""
        found = spread(*statistics)
        if len(found.low) < 2:
            return math.nan, math.nan
        low = worst_ratios(found.low, found.centroids, slack=found.slack)
        high = worst_ratios(found.high, found.centroids, slack=-found.slack)
        return float(low.mean()) * (1 - 2.0**-40), float(high.mean()) * (1 + 2.0**-40)


class Silhouette(SampledMetric):
    r"""Mean over points of (b - a) / max(a, b), from -1 to 1.

    a is the mean distance of a point to the others of its cluster, b the smallest mean distance
    to the points of another cluster; 0 for the only point of a cluster. ``nan`` with fewer than
    two clusters, or where every point is one.

    With `centroids`, (K, d), labels are the numbers of their rows, a is the distance to the own
    centroid and b that to the closest other one: the *simplified* silhouette, another quantity
    than the above, exact in one pass without keeping points.

    Past `max_points` the value is that of the sample, brought into what is certain: its range, and
    that the only points of their clusters have 0.

    Args:
        metric: ``"euclidean"``, or ``"sqeuclidean"`` for squared distances.
        centroids: Of a fitted model, coordinates up to 1e150; then nothing is sampled.
        max_points: see `SampledMetric`, as `seed` and `nan_policy`.

    Raises:
        ValueError: Centroids are not a finite (K, d) matrix.

    Memory and cost: 8 (d + 3) bytes a point kept, and n² distances in blocks at `compute`; with
        centroids 32 bytes a cluster.

    Reference: `sklearn.metrics.silhouette_score`; Rousseeuw (1987); simplified: Hruschka, de
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

    metric: Literal["euclidean", "sqeuclidean"] = "euclidean"
    centroids: Any = None

    def check_parameters(self) -> None:
        """Bring the centroids to tuples; a silhouette compares at least two."""
        self.centroids = as_centroids(self.centroids)
        several = self.centroids is None or len(self.centroids) > 1
        require(self, "centroids", several, "at least two rows, as a silhouette compares them")

    def statistics(self) -> tuple[Statistic, ...]:
        """Return sums by centroid, or a sample of points."""
        if self.centroids is None:
            return (self._sample(),)
        sums = CentroidSums(
            centroids=self.centroids,
            value="silhouette",
            metric=self.metric,
            nan_policy=self.nan_policy,
        )
        return (sums,)

    def readout(self, held: Any) -> float:
        """Return the mean over all points."""
        _, means, counts = self._by_cluster(held)
        value = math.fsum(means * counts) / float(counts.sum()) if len(means) else math.nan
        if self.is_exact(held):
            return value
        low, high = self._certain(held)  # that of a sample may lie beyond what is certain
        return min(max(value, low), high)

    def per_cluster(self) -> KeyedValues:
        """Return the mean over the points of each cluster, by its label."""
        labels, means, _ = self._by_cluster(*self._read())
        return KeyedValues(dict(zip(labels.tolist(), means.tolist(), strict=True)), "cluster")

    def _by_cluster(self, held: Any) -> tuple[NDArray[Any], Floats, NDArray[np.int64]]:
        """Return the labels of the clusters, the mean of each, and how many points it is of."""
        if isinstance(held, CentroidSums):
            labels = np.flatnonzero(held.counts)
            counts = held.counts[labels]
            means = np.where(counts > 1, held.means[labels], 0.0)
        else:
            present, codes = np.unique(held.rows.codes, return_inverse=True)
            labels = held.labels[present]
            rows, places = by_content(held.rows._replace(codes=codes), len(labels))
            cloud = Cloud.of(rows.points, places[rows.codes], rows.copies)
            amounts = np.bincount(cloud.codes, cloud.copies, len(labels))
            counts = amounts.astype(np.int64)[places]
            if 2 <= len(labels) < counts.sum():
                values = silhouettes(cloud, len(labels), squared=self.metric == "sqeuclidean")
                added = np.bincount(cloud.codes, cloud.copies * values, len(labels))
                means = (added / amounts)[places]
        if not 2 <= len(labels) < counts.sum():
            means = np.full(len(labels), math.nan)
        return labels, means, counts

    def _certain(self, *statistics: Any) -> tuple[float, float]:
        """Return the range of values that points in clusters of several can have."""
        counts = statistics[0].counts
        if len(counts) < 2:
            return math.nan, math.nan
        share = float(counts[counts > 1].sum() / counts.sum())
        return -share, share


class DunnIndex(SampledMetric):
    r"""Smallest distance between points of two clusters / largest distance within one.

    ``nan`` with fewer than two clusters, or where no cluster has two different points.

    Past `max_points` the value is that of the sample, which is never too small: leaving points
    out only moves clusters apart and makes them narrower. The lower bound is from the boxes that
    hold the points of each cluster.

    Args:
        max_points: see `SampledMetric`, as `seed` and `nan_policy`.

    Memory and cost: 8 (d + 3) bytes a point kept; at `compute` the distances of those groups of
        points that their bounding balls cannot rule out.

    Reference: Dunn (1974), "Well-separated clusters and optimal fuzzy partitions".

    Example:
        >>> import streammetrics as sm
        >>> sm.DunnIndex().update([[0.0], [1.0], [4.0], [6.0]], [0, 0, 1, 1]).compute()
        1.5
    """

    def statistics(self) -> tuple[Statistic, ...]:
        """Return a sample of points."""
        return (self._sample(),)

    def readout(self, sample: PointSample) -> float:
        """Return the ratio of the extreme distances of the sample."""
        near, far = self._extremes(sample)
        return near / far if far > 0.0 and near < math.inf else math.nan

    def _extremes(self, sample: PointSample) -> tuple[float, float]:
        rows = sample.rows
        if not len(rows.codes):
            return math.inf, 0.0
        return nearest_and_farthest(Cloud.of(rows.points, rows.codes, rows.copies))

    def _certain(self, *statistics: Any) -> tuple[float, float]:
        """Return the ratio for the boxes, and for the sample."""
        (sample,) = statistics
        _, (lowest, highest) = scaled(sample.low, sample.high)
        widest = float(lengths(highest - lowest).max(initial=0.0))
        if len(sample.labels) < 2 or widest == 0.0:
            return math.nan, math.nan
        near, far = self._extremes(sample)
        low = smallest_gap(lowest, highest) / widest * (1 - 2.0**-40)
        return low, near / far * (1 + 2.0**-40) if far > 0.0 else math.inf


def as_centroids(centroids: Any) -> tuple[Any, ...] | None:
    """Return a (K, d) matrix of centroids as a tuple of rows, or say what is wrong with it."""
    if centroids is None:
        return None
    try:
        matrix = np.array(centroids, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"centroids must be a (K, d) matrix of numbers: {error}") from None
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(f"centroids has shape {matrix.shape}; expected (K, d), K and d at least 1")
    if not bool((np.abs(matrix) <= LARGEST).all()):
        raise ValueError(f"centroids must be finite, and at most {LARGEST:g} in magnitude")
    return tuple(map(tuple, (matrix + 0.0).tolist()))
