"""A table of two labelings as the metrics of clustering see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from streammetrics.core.types import Ints, Places
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


def _sizes(side: Places, counts: Counts, size: int) -> Counts:
    sizes = np.zeros(size, np.int64)
    np.add.at(sizes, side, counts)
    return sizes
