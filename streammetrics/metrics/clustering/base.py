"""How two labelings of the same rows overlap, and what the metrics that compare them share."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np

from streammetrics.core.metric import Metric
from streammetrics.statistics.clusters.sums import LabelPairs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streammetrics.core.statistic import Statistic

    Counts = NDArray[np.int64]


class Overlap(NamedTuple):
    """How many rows each pair of clusters shares, without the pairs that share none."""

    n: int
    counts: Counts
    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    true_sizes: Counts
    pred_sizes: Counts

    @classmethod
    def of(cls, table: LabelPairs) -> Overlap:
        """Return the counts of a table of labels."""
        _, _, rows, columns, _ = table.cells()
        sizes = (
            _sizes(side, table.counts, len(labels))
            for side, labels in ((rows, table.row_labels), (columns, table.column_labels))
        )
        return cls(int(table.counts.sum()), table.counts, rows, columns, *sizes)


def _sizes(side: NDArray[np.intp], counts: Counts, size: int) -> Counts:
    sizes = np.zeros(size, np.int64)
    np.add.at(sizes, side, counts)
    return sizes


def exact_dot(x: Counts, y: Counts) -> int:
    """Return the sum of products of counts as a Python integer, past the range of int64.

    Counts are cut into three parts of 21 bits, whose products can be summed a million at a time.
    """
    total = 0
    for start in range(0, len(x), 1 << 20):
        parts = [
            [(side[start : start + (1 << 20)] >> shift) & 0x1FFFFF for shift in (0, 21, 42)]
            for side in (x, y)
        ]
        for i, left in enumerate(parts[0]):
            for j, right in enumerate(parts[1]):
                total += int(np.dot(left, right)) << 21 * (i + j)
    return total


class LabelingMetric(Metric):
    """Base of the metrics of two labelings of the same rows.

    Labels of the two sides may differ in kind. Only pairs of labels that occur are counted, so
    thousands of clusters on both sides take no more memory than the pairs that occur.

    Args:
        nan_policy: ``"raise"`` or ``"omit"`` rows with a missing label.
    """

    nan_policy: Literal["raise", "omit"] = "raise"

    def update(self, labels_true: Any, labels_pred: Any) -> Self:
        """Take a batch.

        Args:
            labels_true: The true cluster of each row: integers, booleans or strings.
            labels_pred: The cluster each row was put in.

        Raises:
            InvalidBatchError: A column is not what it should be; nothing has changed.
        """
        return self.feed({"labels_true": labels_true, "labels_pred": labels_pred})

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the counts of pairs of labels."""
        return (LabelPairs(nan_policy=self.nan_policy),)

    def readout(self, table: LabelPairs) -> float:
        """Return the value for the counts; ``nan`` without rows."""
        return self.of_overlap(Overlap.of(table)) if len(table.counts) else math.nan

    @abstractmethod
    def of_overlap(self, overlap: Overlap) -> float:
        """Return the value for at least one row."""


def check_beta(beta: float) -> None:
    """Raise where a weight is not positive and finite."""
    if not 0.0 < beta < math.inf:
        raise ValueError(f"beta={beta}: expected a positive finite number")
