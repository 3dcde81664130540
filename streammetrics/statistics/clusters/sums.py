"""What clusterings are judged by: pairs of labels, and exact sums of each cluster's points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from streammetrics.core.errors import StateFormatError
from streammetrics.core.exact.clusters import cluster_sums
from streammetrics.core.exact.sums import ExactSum
from streammetrics.core.fields.amounts import check_rows, countable
from streammetrics.core.fields.labels import (
    coded_labels,
    packed_labels,
    unpacked_labels,
    used_labels,
)
from streammetrics.core.fields.unions import Union, spread
from streammetrics.core.state.arrays import nested, part, take_array
from streammetrics.core.statistic import Statistic
from streammetrics.statistics.clusters.schema import points_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from streammetrics.core.columns.conversion import Column
    from streammetrics.core.columns.schema import Schema


class ClusterSums(Statistic):
    """Each cluster's number of points and their exact sum, and the exact sum of all squares.

    About 24 bytes a cluster and column, whatever the number of points.
    """

    nan_policy: Literal["raise", "omit"] = "raise"

    @property
    def schema(self) -> Schema:
        """Points and the label of the cluster of each."""
        return points_schema(self.nan_policy)

    def clear(self) -> None:
        """Forget all points."""
        self.labels: NDArray[Any] = np.empty(0, np.int64)
        self.counts: NDArray[np.int64] = np.empty(0, np.int64)
        self.sums = ExactSum.zero((0, 0))
        self.squares = ExactSum.zero()

    def update(self, points: NDArray[np.float64], labels: Column, *, weight: None) -> None:  # noqa: ARG002 - the schema refuses weights
        """Add the points to the sums of their clusters."""
        places, every = coded_labels(labels)
        used, codes = used_labels(every, places)
        counts = np.bincount(codes, minlength=len(used))
        self._add(used, counts, *cluster_sums(points, codes, len(used)))

    def merge(self, other: ClusterSums) -> None:
        """Add the sums of another."""
        check_rows(self.counts, other.counts)
        if len(other.labels):
            self._add(other.labels, other.counts, other.sums, other.squares)

    def _add(
        self, labels: NDArray[Any], counts: NDArray[np.int64], sums: ExactSum, squares: ExactSum
    ) -> None:
        if not len(self.labels):
            self.labels, self.counts, self.sums, self.squares = labels, counts, sums, squares
            return
        keys, mine, theirs = Union.of(self.labels, labels)
        size = len(keys)
        self.counts = spread(self.counts, mine, size) + spread(counts, theirs, size)
        held = self.sums if mine is None else self.sums.regroup(mine, size)
        self.sums = held + (sums if theirs is None else sums.regroup(theirs, size))
        self.labels, self.squares = keys, self.squares + squares

    @property
    def nbytes(self) -> int:
        """Bytes of state held now."""
        return self.labels.nbytes + self.counts.nbytes + self.sums.nbytes + self.squares.nbytes

    def centroids(self, exponent: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the mean of all points, and from there that of each cluster, times 2**exponent.

        The differences are correctly rounded, so equal means are equal bits, and clusters far
        from zero and close to each other lose nothing.
        """
        integers, unit = self.sums.integers()
        counts, shift = self.counts.astype(object)[:, None], max(0, -unit - exponent)
        integers = integers << (unit + exponent + shift)
        origin = np.asarray(integers.sum(axis=0) / (counts.sum() << shift), np.float64)
        ratios = [value.as_integer_ratio() for value in origin.tolist()]
        wide = max((denominator.bit_length() for _, denominator in ratios), default=1)
        whole = np.array([(top << wide) // bottom for top, bottom in ratios], object)
        apart = (integers << wide) - counts * (whole << shift)
        return origin, np.asarray(apart / (counts << (wide + shift)), np.float64)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return labels in order, and by them counts and sums."""
        return {
            "labels": packed_labels(self.labels),
            "counts": self.counts,
            "width": np.array([self.sums.shape[1]]),
            **nested("sums", self.sums.arrays()),
            **nested("squares", self.squares.arrays()),
        }

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Set the sums."""
        self.labels, self.counts = take_clusters(arrays)
        width = take_array(arrays, "width", "int64")
        if width.shape != (1,) or width[0] < 0 or (width[0] > 0) != (len(self.labels) > 0):
            raise StateFormatError("the sums of clusters do not say how wide points are")
        shape = (len(self.labels), int(width[0]))
        self.sums = ExactSum.from_arrays(shape, part(arrays, "sums"))
        self.squares = ExactSum.from_arrays((), part(arrays, "squares"))
        if self.squares.to_float() < 0:
            raise StateFormatError("a sum of squares is negative")


def take_clusters(
    arrays: Mapping[str, NDArray[Any]],
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the labels of clusters, in order, and the number of points of each, from a state."""
    labels, counts = unpacked_labels(arrays, "labels"), take_array(arrays, "counts", "int64")
    if not bool((labels[1:] > labels[:-1]).all()):
        raise StateFormatError("the labels of clusters are out of order")
    if counts.shape != labels.shape or not bool((counts > 0).all()):
        raise StateFormatError("a cluster has no positive number of points")
    if not countable(counts):
        raise StateFormatError("clusters have more points than are counted")
    return labels, counts
