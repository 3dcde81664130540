"""Distances that the Davies-Bouldin and Dunn indices are made of, and their bounds by boxes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core.errors import StateFormatError
from streammetrics.statistics.clusters.distances import lengths
from streammetrics.statistics.clusters.rows import by_content

if TYPE_CHECKING:
    from streammetrics.core.types import Floats
    from streammetrics.statistics.clusters.sample import PointSample
    from streammetrics.statistics.clusters.sums import ClusterSums


class Spread(NamedTuple):
    """Mean distances to the centroid of each cluster: the estimate and its bounds, each (K,)."""

    estimate: Floats
    low: Floats
    high: Floats
    centroids: Floats
    slack: float


def spread(sums: ClusterSums, sample: PointSample) -> Spread:
    """Return the spread of clusters, in coordinates around the overall mean, none above 2."""
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
    # The rounding of the differences changes no distance by more than this.
    reach = max(np.abs(lowest).max(initial=0.0), np.abs(highest).max(initial=0.0))
    slack = 2.0**-50 * float(reach) * math.sqrt(max(centroids.shape[1], 1))
    low, high = np.maximum(low * (1 - 2.0**-40) - slack, 0.0), high * (1 + 2.0**-40) + slack
    return Spread(estimate, low, high, centroids, slack)


def scaled(low: Floats, high: Floats, *others: Floats) -> tuple[int, tuple[Floats, ...]]:
    """Return the power of two that scales boxes to within [-1, 1], and everything scaled by it."""
    largest = max(np.abs(low).max(initial=0.0), np.abs(high).max(initial=0.0))
    exponent = -int(np.frexp(largest)[1])
    return exponent, tuple(np.ldexp(values, exponent) for values in (low, high, *others))


def worst_ratios(spreads: Floats, centroids: Floats, slack: float = 0.0) -> Floats:
    """Return each cluster's largest (S_i + S_j) / (M_ij + 2 slack), ``nan`` where no M is left."""
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
