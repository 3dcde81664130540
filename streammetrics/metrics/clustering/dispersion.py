"""Clusterings evaluated without true labels, by the distances of points to their centroids."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.results.values import KeyedValues
from streammetrics.metrics.clustering.geometry import (
    spread,
    worst_ratios,
)
from streammetrics.metrics.clustering.points import InternalMetric, SampledMetric, as_centroids
from streammetrics.metrics.families import POINTS
from streammetrics.statistics.clusters.centroids import CentroidSums
from streammetrics.statistics.clusters.sums import ClusterSums

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import Array, Floats
    from streammetrics.statistics.clusters.sample import PointSample


__all__ = ["CalinskiHarabasz", "DaviesBouldin"]


class CalinskiHarabasz(InternalMetric):
    """Calinski-Harabasz index: the variance between clusters over the variance within them.

    Formula: (B / (K - 1)) / (W / (n - K))

    B is the sum over all n points of the squared distance from the overall mean to the centroid of
    the point's cluster, and W that of the squared distance from the point to that centroid; K is
    the number of clusters. B and W are exact until they are divided, so points far from the
    origin lose no digits. ``nan`` with fewer than two clusters, or where W is 0 (scikit-learn
    gives 1.0).

    Parameters are those of `InternalMetric`.

    Memory and cost: 24 bytes per cluster and column; one pass.

    Reference: ``sklearn.metrics.calinski_harabasz_score``; Calinski and Harabasz (1974).

    Example:
        >>> import streammetrics as sm
        >>> ch = sm.CalinskiHarabasz()
        >>> ch.update([[0.0, 0.0], [0.0, 1.0], [4.0, 0.0], [4.0, 1.0]], [0, 0, 1, 1]).compute()
        32.0
    """

    higher_is_better = True
    _nan_reason = "there are fewer than two clusters, or each has one distinct point only"
    family = POINTS

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
    """Davies-Bouldin index: the mean over clusters of the largest similarity to another cluster.

    Formula: (1 / K) Σ_i max_(j ≠ i) ((S_i + S_j) / M_ij)

    S_i is the mean distance of the points of cluster i to its centroid, M_ij the distance between
    two centroids; smaller is better. Pairs of clusters with the same centroid are left out, as in
    scikit-learn; ``nan`` where no pair is left.

    With `centroids`, (K, d), a label is the row number of a centroid, and S and M use these
    centroids instead of the clusters' means. This gives the index of a fitted model on any data,
    in one pass and without storing points; on the data that k-means converged on, both are the
    same. Clusters without points are left out.

    Beyond `max_points` distinct points the centroids stay exact and S is estimated from a sample;
    `bounds()` lets the points that were not kept lie anywhere in the bounding box of their cluster.

    The other parameters are those of `SampledMetric`.

    Args:
        centroids: The centroids of a fitted model, (K, d), with coordinates up to 1e150; points are
            then not stored.

    Raises:
        ValueError: `centroids` is not a finite (K, d) matrix.

    Memory and cost: 8 (d + 3) bytes per point kept; with centroids 32 bytes per cluster.

    Reference: ``sklearn.metrics.davies_bouldin_score``; Davies and Bouldin (1979).

    Example:
        >>> import streammetrics as sm
        >>> points, labels = [[0.0, 0.0], [0.0, 2.0], [4.0, 0.0], [4.0, 2.0]], [0, 0, 1, 1]
        >>> sm.DaviesBouldin().update(points, labels).compute()
        0.5
        >>> sm.DaviesBouldin(centroids=[[0.0, 1.0], [4.0, 1.0]]).update(points, labels).compute()
        0.5
    """

    higher_is_better = False
    _nan_reason = (
        "there are fewer than two clusters with distinct centroids, or every point is a cluster of "
        "its own"
    )
    family = POINTS

    centroids: Any = None

    def check_parameters(self) -> None:
        """Convert the centroids to tuples."""
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
        self, sums: CentroidSums | ClusterSums, *sample: PointSample
    ) -> tuple[Array, Floats]:
        labels: Array
        if isinstance(sums, CentroidSums):
            labels = np.flatnonzero(sums.counts)
            counts = sums.counts[labels]
            worst = worst_ratios(sums.means[labels], np.array(self.centroids)[labels])
        else:
            spreads = spread(sums, *sample)
            labels, counts = sums.labels, sums.counts
            worst = worst_ratios(spreads.estimate, spreads.centroids)
        defined = 2 <= len(labels) < counts.sum()
        return labels, worst if defined else np.full(len(labels), math.nan)

    def certain(self, *statistics: Any) -> tuple[float, float]:
        """Return the mean worst ratios of the smallest and of the largest spreads."""
        spreads = spread(*statistics)
        if len(spreads.low) < 2:
            return math.nan, math.nan
        low = worst_ratios(spreads.low, spreads.centroids, slack=spreads.slack)
        high = worst_ratios(spreads.high, spreads.centroids, slack=-spreads.slack)
        return float(low.mean()) * (1 - 2.0**-40), float(high.mean()) * (1 + 2.0**-40)
