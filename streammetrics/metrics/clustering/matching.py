"""Clusters matched with classes: one to one, or each with the class of most of its rows."""

from __future__ import annotations

import numpy as np

from streammetrics.core.errors import StreamMetricsError
from streammetrics.core.types import Ints
from streammetrics.metrics.clustering.base import LabelingMetric
from streammetrics.metrics.clustering.view import Overlap  # noqa: TC001 - of a public method

__all__ = ["ClusterAccuracy", "Purity"]

_LARGE = 1 << 62
_MOST = 1 << 24  # pairs: a table of 128 MB


class ClusterAccuracy(LabelingMetric[float]):
    """Share of rows that agree under the best one-to-one matching of clusters with classes.

    Formula: (1 / n) max_f Σ_j n_(f(j) j), with n_ij the rows of class i in cluster j, over all
    one-to-one maps f.

    Where the numbers of clusters and classes differ, the rows of those left unmatched count as
    wrong. `Purity` lets several clusters be matched with the same class.

    Parameters are those of `LabelingMetric`.

    Raises:
        StreamMetricsError: From `compute`, with more than 2**24 pairs of a class and a cluster.

    Memory and cost: 16 bytes per pair of labels that occurs. `compute` takes 8 bytes per possible
    pair, and time that grows as a² b, where a is the smaller of the numbers of classes and
    clusters and b the larger: a few milliseconds for a hundred of each.

    Reference: Yang, Xu, Nie, Yan and Zhuang, "Image clustering using local discriminant models",
    IEEE TIP 19 (2010); ``scipy.optimize.linear_sum_assignment`` of the table;
    ``torchmetrics.clustering.ClusterAccuracy``.

    Example:
        >>> import streammetrics as sm
        >>> sm.ClusterAccuracy().update([0, 0, 1, 1], ["b", "b", "a", "b"]).compute()
        0.75
    """

    higher_is_better = True
    value_range = (0.0, 1.0)

    def read(self, overlap: Overlap) -> float:
        """Return the share of rows in matched pairs."""
        shape = overlap.true_sizes.size, overlap.pred_sizes.size
        if shape[0] * shape[1] > _MOST:
            raise StreamMetricsError(
                f"{shape[0]:,} classes and {shape[1]:,} clusters are too many to be matched: at "
                f"most {_MOST:,} pairs are looked at; Purity has no such limit"
            )
        table = np.zeros(shape, np.int64)
        table[overlap.rows, overlap.columns] = overlap.counts
        return largest_assignment(table) / overlap.n


class Purity(LabelingMetric[float]):
    """Purity: the share of rows that are of the most frequent class of their cluster.

    Formula: (1 / n) Σ_j max_i n_ij, with n_ij the rows of class i in cluster j.

    It is 1 where every row is a cluster of its own, so it cannot compare clusterings with different
    numbers of clusters.

    Parameters are those of `LabelingMetric`.

    Reference: Manning, Raghavan and Schütze (2008), "Introduction to Information Retrieval", 16.3.

    Example:
        >>> import streammetrics as sm
        >>> sm.Purity().update([0, 0, 1, 1], ["a", "a", "a", "b"]).compute()
        0.75
    """

    higher_is_better = True
    value_range = (0.0, 1.0)

    def read(self, overlap: Overlap) -> float:
        """Return the share of rows in the majorities."""
        largest = np.zeros(len(overlap.pred_sizes), np.int64)
        np.maximum.at(largest, overlap.columns, overlap.counts)
        return int(largest.sum()) / overlap.n


def largest_assignment(table: Ints) -> int:
    """Return the largest sum of entries of which no two share a row or a column.

    By shortest augmenting paths (Jonker and Volgenant, Computing 38, 1987), in integers.

    >>> largest_assignment(np.array([[3, 5, 0], [0, 4, 1]]))
    7
    """
    table = table.T if len(table) > table.shape[1] else table
    n, m = table.shape
    kind = np.int64 if int(table.max(initial=0)) * (n + m) < _LARGE else object
    cost = (table.max(initial=0) - table).astype(kind)
    rows, columns = np.zeros(n, kind), np.zeros(m, kind)  # the dual variables
    row_of, column_of = np.full(m, -1), np.full(n, -1)
    for first in range(n):
        shortest = np.full(m, _LARGE * (_LARGE if kind is object else 1), kind)
        before, open_ = np.full(m, -1), np.ones(m, np.bool_)
        row, length, passed = first, 0, []
        while True:
            passed.append(row)
            reached = length + cost[row] - rows[row] - columns
            nearer = open_ & (reached < shortest)
            shortest[nearer], before[nearer] = reached[nearer], row
            free = np.flatnonzero(open_)
            column = int(free[shortest[free].argmin()])
            length, open_[column] = shortest[column], False
            if row_of[column] < 0:
                break
            row = int(row_of[column])
        rows[first] += length
        others = np.array(passed[1:], np.intp)
        rows[others] += length - shortest[column_of[others]]
        columns[~open_] += shortest[~open_] - length
        while True:
            row = int(before[column])
            row_of[column] = row
            column, column_of[row] = int(column_of[row]), column
            if row == first:
                break
    return int(table[np.arange(n), column_of].sum())
