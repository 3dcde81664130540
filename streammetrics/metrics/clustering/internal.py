"""Clustering without ground truth: dispersion, distances and silhouettes."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, cast

import numpy as np

from streammetrics.core.configured import require
from streammetrics.core.constraints import MaxPoints, NanPolicy, Seed
from streammetrics.core.errors import EstimateWarning, StateFormatError
from streammetrics.core.metric import Metric
from streammetrics.core.results.values import Interval, KeyedValues
from streammetrics.metrics.families import POINTS
from streammetrics.statistics.centroids import LARGEST, CentroidSums, ClusterSums
from streammetrics.statistics.points import (
    DIRECTED,
    Cloud,
    PointSample,
    by_content,
    directions,
    lengths,
    nearest_and_farthest,
    silhouettes,
)

if TYPE_CHECKING:
    from streammetrics.core.feeding.states import State
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import Array, ArrayLike, Floats, Ints, Places

    Held = CentroidSums | PointSample


class Spread(NamedTuple):
    """Mean distances to the centroid of each cluster: the estimate and its bounds, each (K,)."""

    estimate: Floats
    low: Floats
    high: Floats
    centroids: Floats
    slack: float


def spread(sums: ClusterSums, sample: PointSample) -> Spread:
    """Return the spread of clusters, in coordinates relative to the overall mean, none above 2."""
    n, size = sums.counts, len(sums.counts)
    if not (np.array_equal(sums.labels, sample.labels) and np.array_equal(n, sample.counts)):
        raise StateFormatError("the sums and the points of the state are not of the same clusters")
    rows, _ = by_content(sample.rows, size)
    exponent, (lowest, highest, points) = scaled(sample.low, sample.high, rows.points)
    origin, centroids = sums.centroids(exponent)
    lowest, highest, points = lowest - origin, highest - origin, points - origin
    total = np.bincount(rows.codes, rows.copies * lengths(points - centroids[rows.codes]), size)
    copies = np.bincount(rows.codes, rows.copies, size)
    corner = lengths(np.maximum(highest - centroids, centroids - lowest))
    low, high = total / n, (total + (n - copies) * corner) / n
    estimate = np.where(copies > 0, total / np.maximum(copies, 1), (low + high) / 2)
    # Rounding the differences changes no distance by more than this.
    reach = max(np.abs(lowest).max(initial=0.0), np.abs(highest).max(initial=0.0))
    slack = 2.0**-50 * float(reach) * math.sqrt(max(centroids.shape[1], 1))
    low, high = np.maximum(low * (1 - 2.0**-40) - slack, 0.0), high * (1 + 2.0**-40) + slack
    return Spread(estimate, low, high, centroids, slack)


def scaled(low: Floats, high: Floats, *others: Floats) -> tuple[int, tuple[Floats, ...]]:
    """Return the exponent of the power of two that scales boxes to [-1, 1], and scaled arrays."""
    largest = max(np.abs(low).max(initial=0.0), np.abs(high).max(initial=0.0))
    exponent = -int(np.frexp(largest)[1])
    return exponent, tuple(np.ldexp(values, exponent) for values in (low, high, *others))


def worst_ratios(spreads: Floats, centroids: Floats, slack: float = 0.0) -> Floats:
    """Return each cluster's largest (S_i + S_j) / (M_ij + 2 slack), ``nan`` if all M are 0."""
    worst = np.zeros(len(spreads))
    any_apart = False
    for place, spread in enumerate(spreads):
        apart = lengths(centroids - centroids[place])
        other = apart > 0.0
        if other.any():
            any_apart = True
            distances = np.maximum(apart[other] + 2.0 * slack, 0.0)
            with np.errstate(divide="ignore"):
                worst[place] = np.max((spread + spreads[other]) / distances)
    return worst if any_apart else worst + math.nan


def smallest_gap(low: Floats, high: Floats) -> float:
    """Return the smallest distance between two boxes."""
    gaps = []
    for place in range(len(low) - 1):
        rest = slice(place + 1, None)
        apart = np.maximum(low[rest] - high[place], low[place] - high[rest])
        gaps.append(float(lengths(np.maximum(apart, 0.0)).min()))
    return min(gaps)


class InternalMetric(Metric[float]):
    """Base class of metrics of points and the labels of their clusters.

    Args:
        nan_policy: ``"raise"``, or ``"omit"``: rows with a missing value are left out.
    """

    nan_policy: NanPolicy = "raise"

    def update(self, X: ArrayLike, labels: ArrayLike, *, counts: ArrayLike = None) -> Self:  # noqa: N803 - the usual name for points
        """Add a batch of rows.

        Args:
            X: Points, (n, d) finite numbers, the same d in every batch; (n,) is one coordinate.
            labels: The cluster of each point: integers, booleans or strings.
            counts: How many rows each row stands for, (n,); whole numbers.

        Raises:
            InvalidBatchError: A column has a wrong type or shape, or a missing value; the state is
                unchanged.
        """
        return self.feed({"X": X, "labels": labels, "counts": counts})


class SampledMetric(InternalMetric):
    """Base class of metrics that need the points, of which they keep a limited number.

    With up to `max_points` distinct (point, label) rows the value is exact. Beyond that, it is
    computed from a sample: the rows with the smallest seeded hash, with the number of times each
    was seen. The sample does not depend on the order of arrival. `exact` is then False, and the
    first `compute` gives an `EstimateWarning`.

    Args:
        max_points: The largest number of distinct rows to keep.
        seed: The seed of the hash that draws the sample; only states with the same seed merge.
        nan_policy: ``"raise"``, or ``"omit"``: rows with a missing value are left out.
    """

    _facts = (*Metric._facts, "certain")

    max_points: MaxPoints = 20_000
    seed: Seed = 0

    def _sample(self) -> PointSample:
        """Return an empty sample with this metric's parameters."""
        return PointSample(max_points=self.max_points, seed=self.seed, nan_policy=self.nan_policy)

    def _computed(self, state: State, depth: int = 3) -> float:
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

    def is_exact(self, *statistics: object) -> bool:
        """Whether every point was kept, or no points are needed."""
        return all(s.complete for s in statistics if isinstance(s, PointSample))

    def interval(self, *statistics: object) -> Interval[float]:
        """Return an interval that is guaranteed to contain the exact value."""
        if self.is_exact(*statistics):
            value = self.readout(*statistics)
            return Interval(value, value)
        low, high = self.certain(*statistics)
        return Interval(float(low), float(high))

    def certain(self, *statistics: object) -> tuple[float, float]:
        """Return bounds of the value if the sample does not hold all points."""
        return self.value_range or (-math.inf, math.inf)


def as_centroids(centroids: object) -> tuple[tuple[float, ...], ...] | None:
    """Return a matrix of centroids (K, d) as a tuple of rows; raise `ValueError` if it is not."""
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


class CalinskiHarabasz(InternalMetric):
    """Calinski-Harabasz index: the variance between clusters over the variance within them.

    Formula: (B / (K - 1)) / (W / (n - K))

    B is the sum over all n points of the squared distance from the overall mean to the centroid of
    the point's cluster. W is the sum of the squared distances from the points to those centroids,
    and K the number of clusters. B and W are exact until they are divided, so points far from the
    origin lose no digits. ``nan`` with fewer than two clusters, or if W is 0 (scikit-learn gives
    1.0).

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
        """Return the ratio, computed from exact integers.

        Let S be the sum of the n points and Q that of their squares; S_k and n_k are those of a
        cluster. The sum A = Σ |S_k|² / n_k is computed with enough bits after the point that
        W = Q - A and B = A - |S|² / n are 0 or have 64 correct bits, because neither can lie
        between 0 and n**-3 units.
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

    S_i is the mean distance of the points of cluster i to its centroid, and M_ij the distance
    between two centroids. Smaller is better. Pairs of clusters with the same centroid are left out,
    as in scikit-learn; ``nan`` if no pair is left.

    With `centroids`, (K, d), a label is the row number of a centroid, and S and M use these
    centroids instead of the means of the clusters. This gives the index of a fitted model on any
    data, in one pass and without storing points. On the data that k-means converged on, both are
    the same. Clusters without points are left out.

    Beyond `max_points` distinct points the centroids stay exact and S is estimated from a sample.
    `bounds()` then allows points that were not kept to lie anywhere in the bounding box of their
    cluster.

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

    def readout(self, sums: CentroidSums | ClusterSums, *sample: PointSample) -> float:
        """Return the mean over clusters of the worst ratios."""
        _, worst = self._by_cluster(sums, *sample)
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
        """Return the mean worst ratios for the smallest and the largest possible spreads."""
        spreads = spread(*statistics)
        if len(spreads.low) < 2:
            return math.nan, math.nan
        low = worst_ratios(spreads.low, spreads.centroids, slack=spreads.slack)
        high = worst_ratios(spreads.high, spreads.centroids, slack=-spreads.slack)
        return float(low.mean()) * (1 - 2.0**-40), float(high.mean()) * (1 + 2.0**-40)


class Silhouette(SampledMetric):
    """Silhouette coefficient, from -1 to 1: how much closer points are to their own cluster.

    Formula: mean ((b - a) / max(a, b))

    For each point, a is the mean distance to the other points of its cluster and b the smallest
    mean distance to the points of another cluster. A point alone in its cluster counts as 0.
    ``nan`` with fewer than two clusters, or if every point is a cluster of its own.

    scikit-learn's ``sample_size`` is `max_points` here, and its ``random_state`` is `seed`. There
    is no ``metric="precomputed"``: a matrix of all distances cannot be passed in batches of rows.

    With `centroids`, (K, d), a label is the row number of a centroid, a is the distance to the
    point's own centroid and b the distance to the nearest other one. This *simplified* silhouette
    is a different quantity, exact in one pass and without storing points.

    Beyond `max_points` distinct points the value is that of a sample, clipped to `bounds()`: the
    possible range, given which points are alone in their clusters.

    The other parameters are those of `SampledMetric`.

    Args:
        metric: The distance: ``"euclidean"``, ``"sqeuclidean"``, ``"cosine"``, ``"correlation"``,
            ``"manhattan"``, ``"chebyshev"``, ``"canberra"``, ``"braycurtis"`` or ``"hamming"``,
            as in ``scipy.spatial.distance``. By cosine and correlation, a point without a direction
            is at distance 1 from all others, including equal ones. A point at an infinite distance
            (``"braycurtis"`` of opposite points) counts as 0, as in scikit-learn. Two points at the
            origin are at a Bray-Curtis distance of 0, where SciPy's is NaN.
            With `centroids` only the first two are allowed.
        centroids: The centroids of a fitted model, (K, d), with coordinates up to 1e150; points are
            then not stored.

    Raises:
        ValueError: `centroids` is not a finite (K, d) matrix of at least two rows, or `metric` is
            not allowed with centroids.

    Memory and cost: 8 (d + 3) bytes per point kept; `compute` computes n² distances, in blocks.
    With centroids 32 bytes per cluster.

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
    value_range = (-1.0, 1.0)
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
        low, high = self.certain(held)  # the value of a sample may lie outside the bounds
        return min(max(value, low), high)

    def per_cluster(self) -> KeyedValues:
        """Return the mean over the points of each cluster, by its label."""
        (held,) = self._read()
        labels, means, _ = self._by_cluster(cast("Held", held))
        return KeyedValues(dict(zip(labels.tolist(), means.tolist(), strict=True)), "cluster")

    def per_point(self, X: object, labels: object) -> Floats:  # noqa: N803 - the usual name for points
        """Return the silhouette (n,) of each of the given points, which must have been added.

        It is ``nan`` for a point that was not added, or that is not in the sample.

        Args:
            X: Points, (n, d).
            labels: Their clusters, (n,).

        Raises:
            ValueError: The metric has `centroids`, so it keeps no points.
        """
        (kept,) = self._read()
        if not isinstance(kept, PointSample):
            raise ValueError(  # noqa: TRY004 - the parameters are wrong, not the type
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
        """Return the points; for cosine and correlation their directions."""
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
        """Return the bounds: a point has -1 to 1, or 0 if it is alone in its cluster."""
        counts = statistics[0].counts
        if len(counts) < 2:
            return math.nan, math.nan
        share = float(counts[counts > 1].sum() / counts.sum())
        return -share, share


class DunnIndex(SampledMetric):
    """Dunn index: the smallest distance between two clusters over the largest within one.

    Formula: min_(c(x) ≠ c(x')) d(x, x') / max_(c(x) = c(x')) d(x, x')

    ``nan`` with fewer than two clusters, or if no cluster has two different points.

    Beyond `max_points` distinct points the value is that of a sample, which is never too small:
    leaving out points only moves clusters apart and makes them narrower. The lower bound comes from
    the bounding boxes of the clusters.

    Parameters are those of `SampledMetric`.

    Memory and cost: 8 (d + 3) bytes per point kept; `compute` skips groups of points whose
    distances cannot matter, judged by their bounding balls.

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
        """Return the ratio of the two distances in the sample."""
        near, far = self._extremes(sample)
        return near / far if far > 0.0 and near < math.inf else math.nan

    def _extremes(self, sample: PointSample) -> tuple[float, float]:
        rows = sample.rows
        if not len(rows.codes):
            return math.inf, 0.0
        return nearest_and_farthest(Cloud.of(rows.points, rows.codes, rows.copies))

    def certain(self, *statistics: Any) -> tuple[float, float]:
        """Return the ratio for the bounding boxes, and the ratio for the sample."""
        (sample,) = statistics
        _, (lowest, highest) = scaled(sample.low, sample.high)
        widest = float(lengths(highest - lowest).max(initial=0.0))
        if len(sample.labels) < 2 or widest == 0.0:
            return math.nan, math.nan
        near, far = self._extremes(sample)
        low = smallest_gap(lowest, highest) / widest * (1 - 2.0**-40)
        return low, near / far * (1 + 2.0**-40) if far > 0.0 else math.inf
