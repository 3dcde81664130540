"""What clusterings are judged by: pairs of labels, and exact sums of each cluster's points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.errors import StateFormatError
from streammetrics.core.fields.amounts import Amount
from streammetrics.core.fields.entries import Sums, Weights
from streammetrics.core.fields.keyed import LabelledEntries, LabelTable
from streammetrics.core.fields.labels import coded_labels, used_labels
from streammetrics.core.fields.plain import Width
from streammetrics.core.fields.sums import Sum
from streammetrics.core.statistic import Statistic
from streammetrics.statistics.clusters.schema import points_schema

if TYPE_CHECKING:
    from streammetrics.core.columns.conversion import Column
    from streammetrics.core.columns.schema import Schema
    from streammetrics.core.types import Array, Floats, Ints


class ClusterSums(Statistic):
    """Each cluster's number of points and their exact sum, and the exact sum of all squares.

    About 24 bytes a cluster and column, whatever the number of points.
    """

    nan_policy: Literal["raise", "omit"] = "raise"

    width = Width("columns")
    clusters = LabelTable(counts=Weights(whole=True), sums=Sums(), inline=True)
    squares = Sum()

    @property
    def schema(self) -> Schema:
        """Points and the label of the cluster of each."""
        return points_schema(self.nan_policy)

    def update(self, points: Floats, labels: Column, *, weight: None) -> None:  # noqa: ARG002 - the schema refuses weights
        """Add the points to the sums of their clusters."""
        places, every = coded_labels(labels)
        used, codes = used_labels(every, places)
        counts = Amount.at_places(codes, len(used), None)
        sums, flat = ExactSum.grouped(codes, len(used), points), points.reshape(-1)
        more = LabelledEntries(used, {"counts": counts, "sums": sums})
        self.clusters = type(self).clusters.plus(self.clusters, more)
        self.squares += ExactSum.product(flat, flat)
        self.width = points.shape[1]

    def check_fields(self) -> None:
        """Check that points are as wide as they are said to be, and squares not negative."""
        if self.sums.shape[1] != self.width or (self.width > 0) != (len(self.labels) > 0):
            raise StateFormatError("the sums of clusters do not say how wide points are")
        square = self.squares.integers()[0]
        if square < 0 or (self.sums.digits.any() and not square) or (square and not self.width):
            raise StateFormatError("the sum of squares is not that of any points")

    @property
    def labels(self) -> Array:
        """The labels of the clusters, in order."""
        return self.clusters.labels

    @property
    def counts(self) -> Ints:
        """The number of points of each cluster."""
        counts: Ints = self.clusters.columns["counts"].counts
        return counts

    @property
    def sums(self) -> ExactSum:
        """The exact sum of the points of each cluster."""
        sums: ExactSum = self.clusters.columns["sums"]
        return sums

    def centroids(self, exponent: int) -> tuple[Floats, Floats]:
        """Return the mean of all points, and from there that of each cluster, times 2**exponent.

        The differences are correctly rounded, so equal means are equal bits, and clusters far
        from zero and close to each other lose nothing. No point is beyond 1, times 2**exponent.
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
