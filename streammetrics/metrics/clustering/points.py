"""What metrics of clusterings without true labels share: points, and a sample of them."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Self

import numpy as np

from streammetrics.core.constraints import MaxPoints, NanPolicy, Seed
from streammetrics.core.errors import EstimateWarning
from streammetrics.core.metric import Metric
from streammetrics.core.results.values import Interval
from streammetrics.statistics.clusters.centroids import LARGEST
from streammetrics.statistics.clusters.sample import PointSample

if TYPE_CHECKING:
    from streammetrics.core.feeding.states import State
    from streammetrics.core.types import ArrayLike


class InternalMetric(Metric[float]):
    """Base of the metrics of points and the labels of their clusters.

    Args:
        nan_policy: ``"raise"``, or ``"omit"``: rows with a missing value are left out.
    """

    nan_policy: NanPolicy = "raise"

    def update(self, X: ArrayLike, labels: ArrayLike) -> Self:  # noqa: N803 - the field's name for points
        """Add a batch of rows.

        Args:
            X: Points, (n, d) finite numbers, the same d in every batch; (n,) is one coordinate.
            labels: The cluster of each point: integers, booleans or strings.

        Raises:
            InvalidBatchError: A column has a wrong type or shape, or a missing value; the state is
                unchanged.
        """
        return self.feed({"X": X, "labels": labels})


class SampledMetric(InternalMetric):
    """Base of the metrics that need the points, and keep a limited number of them.

    Up to `max_points` distinct (point, label) rows the value is exact. Beyond that it is computed
    from a sample: the rows with the smallest seeded hash, each with the number of times it was
    seen, which are the same in every order of arrival. `exact` is then False, and the first
    `compute` gives an `EstimateWarning`.

    Args:
        max_points: How many distinct rows are kept.
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
        """Whether every point seen was kept, or none is needed."""
        return all(s.complete for s in statistics if isinstance(s, PointSample))

    def interval(self, *statistics: object) -> Interval[float]:
        """Return what certainly holds the exact value."""
        if self.is_exact(*statistics):
            value = self.readout(*statistics)
            return Interval(value, value)
        low, high = self.certain(*statistics)
        return Interval(float(low), float(high))

    def certain(self, *statistics: object) -> tuple[float, float]:  # noqa: ARG002 - for those that depend on it
        """Return bounds of the value where the sample does not hold all points."""
        return self.value_range or (-math.inf, math.inf)


def as_centroids(centroids: object) -> tuple[tuple[float, ...], ...] | None:
    """Return a matrix of centroids (K, d) as a tuple of rows; raise `ValueError` if it is none."""
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
