"""A table of two labelings as the metrics of clustering see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core.arithmetic.exact import exact_dot
from streammetrics.core.counting import added_at

if TYPE_CHECKING:
    from streammetrics.core.types import Floats, Ints, Places
    from streammetrics.statistics.tables.contingency import LabelPairs

    Counts = Ints


class Overlap(NamedTuple):
    """How many rows each pair of clusters shares, without the pairs that share none."""

    n: int
    counts: Counts
    rows: Places
    columns: Places
    true_sizes: Counts
    pred_sizes: Counts

    @classmethod
    def of(cls, table: LabelPairs) -> Overlap:
        """Return the counts of a table of labels."""
        row_labels, column_labels, rows, columns, _ = table.cells()
        counts = table.counts
        sizes = (
            _sizes(side, counts, len(labels))
            for side, labels in ((rows, row_labels), (columns, column_labels))
        )
        return cls(int(counts.sum()), counts, rows, columns, *sizes)

    def expected(self) -> tuple[Floats, Floats, int]:
        """Return what independent labelings would share, times n, from integers.

        Returns:
            n times the expected count of each pair that occurs, n times what its count exceeds
            that by, rounded only after subtracting, and n times the sum of the expected counts of
            all pairs that never occur.
        """
        true, pred = self.true_sizes[self.rows], self.pred_sizes[self.columns]
        kind = np.int64 if self.n < 2**31 else object  # squares of the total must not overflow
        product = true.astype(kind) * pred
        apart = self.counts.astype(kind) * self.n - product
        absent = self.n**2 - exact_dot(true, pred)
        return product.astype(np.float64), apart.astype(np.float64), absent


def _sizes(side: Places, counts: Counts, size: int) -> Counts:
    return added_at(side, counts, size)
