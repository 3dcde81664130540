"""Clustering against ground truth: pairs of points, matching and purity."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, ClassVar, NamedTuple, Self, cast

import numpy as np

from streammetrics.core.arithmetic.exact import exact_dot
from streammetrics.core.confidence import Refusal
from streammetrics.core.constraints import NanPolicy, Positive
from streammetrics.core.counting import added_at
from streammetrics.core.errors import StreamMetricsError
from streammetrics.core.metric import Metric
from streammetrics.core.results.values import LabelledArray
from streammetrics.core.types import Ints, V_co
from streammetrics.metrics.families import GROWS, SEVERAL, Family
from streammetrics.statistics.tables import LabelPairs

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import ArrayLike, Floats, Places

    Counts = Ints


class Overlap(NamedTuple):
    """The number of rows shared by each pair of clusters, without pairs that share none."""

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
            added_at(side, counts, len(labels))
            for side, labels in ((rows, row_labels), (columns, column_labels))
        )
        return cls(int(counts.sum()), counts, rows, columns, *sizes)

    def expected(self) -> tuple[Floats, Floats, int]:
        """Return the counts expected of independent labelings, times n, from exact integers.

        Returns:
            For each pair that occurs, n times its expected count, and n times its count minus that,
            rounded only after subtracting; and for all pairs that never occur, n times the sum of
            their expected counts.
        """
        true, pred = self.true_sizes[self.rows], self.pred_sizes[self.columns]
        kind = np.int64 if self.n < 2**31 else object  # the square of n must not overflow
        product = true.astype(kind) * pred
        apart = self.counts.astype(kind) * self.n - product
        absent = self.n**2 - exact_dot(true, pred)
        return product.astype(np.float64), apart.astype(np.float64), absent


class LabelingMetric(Metric[V_co]):
    """Base class of metrics of two labelings of the same rows.

    The labels of the two sides may be of different types. Only pairs of labels that occur are
    stored, so thousands of clusters on both sides take no more memory than those pairs need.

    Args:
        nan_policy: ``"raise"``, or ``"omit"``: rows with a missing label are left out.

    Memory and cost: 16 bytes per pair of labels that occurs.
    """

    family: ClassVar[str | None] = Family.LABELINGS

    _formula: ClassVar[tuple[str, ...]] = ("readout", "read")

    nan_policy: NanPolicy = "raise"

    def update(
        self, labels_true: ArrayLike, labels_pred: ArrayLike, *, counts: ArrayLike = None
    ) -> Self:
        """Add a batch of rows.

        Args:
            labels_true: The true class of each row, (n,): integers, booleans or strings.
            labels_pred: The cluster assigned to each row, (n,).
            counts: How many rows each row stands for, (n,); whole numbers.

        Raises:
            InvalidBatchError: A column has a wrong type or length, or a missing label; the state is
                unchanged.
        """
        return self.feed({"labels_true": labels_true, "labels_pred": labels_pred, "counts": counts})

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the counts of pairs of labels."""
        return (LabelPairs(nan_policy=self.nan_policy),)

    def _largest(self, overlap: Overlap) -> float:
        """Return the largest value that labelings with clusters of these sizes can have."""
        return (self.value_range or (-math.inf, math.inf))[1]

    def readout(self, table: LabelPairs) -> V_co:
        """Return the value for the counts; ``nan`` without rows."""
        return self.read(Overlap.of(table)) if len(table.counts) else self._nothing()

    def _lacking(self, table: LabelPairs) -> str:
        if self._nan_reason:
            return self._nan_reason
        overlap = Overlap.of(table)
        sides = {"labels_true": overlap.true_sizes, "labels_pred": overlap.pred_sizes}
        single = [name for name, sizes in sides.items() if sizes.size == 1]
        return f"{' and '.join(single)} had a single label only" if single else ""

    def _nothing(self) -> V_co:
        return cast("V_co", math.nan)

    @abstractmethod
    def read(self, overlap: Overlap) -> V_co:
        """Return the value; there is at least one row."""


class Pairs(NamedTuple):
    """Numbers of ordered pairs of different rows, by which labelings group the two together."""

    both: int
    only_true: int
    only_pred: int
    neither: int

    @classmethod
    def of(cls, overlap: Overlap) -> Pairs:
        """Return the exact numbers of pairs, n (n - 1) in all."""
        n = overlap.n
        shared, true, pred = (
            exact_dot(sizes, sizes)
            for sizes in (overlap.counts, overlap.true_sizes, overlap.pred_sizes)
        )
        return cls(shared - n, true - shared, pred - shared, n * n - true - pred + shared)


def ratio_or_nan(numerator: int, denominator: int) -> float:
    """Return a quotient of integers of any size, rounded once; ``nan`` for 0 / 0."""
    return numerator / denominator if denominator else math.nan


class PairMetric(LabelingMetric[float]):
    """Base class of metrics that count pairs of rows, exactly, in integers of any size."""

    _formula = ("readout", "read", "read_pairs")

    def read(self, overlap: Overlap) -> float:
        """Return the value from the numbers of pairs."""
        return self.read_pairs(Pairs.of(overlap))

    @abstractmethod
    def read_pairs(self, pairs: Pairs) -> float:
        """Return the value from the numbers of ordered pairs, which are all 0 for a single row."""


class PairConfusionMatrix(LabelingMetric[LabelledArray]):
    """Pair confusion matrix: ordered pairs of rows by whether each labeling groups them together.

    Formula: C_ab = |{(i, j), i ≠ j: t_ij = a, p_ij = b}|, with t_ij and p_ij 1 where the true
    and the predicted labels of rows i and j are equal, else 0.

    The result is ``[[neither, only predicted], [only true, both]]``, as integers, or as floats
    if a number exceeds 64 bits; all 0 without rows.

    Parameters are those of `LabelingMetric`.

    Reference: ``sklearn.metrics.cluster.pair_confusion_matrix``.

    Example:
        >>> import streammetrics as sm
        >>> sm.PairConfusionMatrix().update([0, 0, 1, 1], [0, 0, 1, 2]).compute()
        array([[8, 0],
               [2, 2]])
    """

    higher_is_better = None
    family = Refusal(GROWS.format("a share of pairs, such as RandIndex,"))
    _incomparable = SEVERAL

    def read(self, overlap: Overlap) -> LabelledArray:
        """Return the numbers of pairs."""
        return self._matrix(Pairs.of(overlap))

    def _nothing(self) -> LabelledArray:
        return self._matrix(Pairs(0, 0, 0, 0))

    def _matrix(self, pairs: Pairs) -> LabelledArray:
        counts = np.array([[pairs.neither, pairs.only_pred], [pairs.only_true, pairs.both]], object)
        places = ("apart", "together")
        return LabelledArray(
            counts.astype(np.int64 if max(pairs) < 1 << 63 else np.float64),
            (("labels_true", places), ("labels_pred", places)),
        )


class RandIndex(PairMetric):
    """Rand index: the share of pairs of rows on which both labelings agree.

    Formula: (TP + TN) / (TP + TN + FP + FN), with TP the pairs that both labelings group together,
    TN those that neither does, FP only the predicted and FN only the true one.

    1 for a single row, as in scikit-learn.

    Parameters are those of `LabelingMetric`.

    Reference: ``sklearn.metrics.rand_score``; Rand (1971).

    Example:
        >>> import streammetrics as sm
        >>> sm.RandIndex().update([0, 0, 1, 1], [0, 0, 1, 2]).compute()
        0.8333333333333334
    """

    higher_is_better = True
    value_range = (0.0, 1.0)

    def read_pairs(self, pairs: Pairs) -> float:
        """Return the share of agreeing pairs."""
        return ratio_or_nan(pairs.both + pairs.neither, sum(pairs)) if sum(pairs) else 1.0


class AdjustedRandIndex(PairMetric):
    """Adjusted Rand index: the Rand index corrected for chance.

    Formula: (RI - E[RI]) / (1 - E[RI])

    0 on average for random labelings with clusters of the same sizes, 1 for equal labelings.

    Parameters are those of `LabelingMetric`.

    Reference: ``sklearn.metrics.adjusted_rand_score``; Hubert and Arabie (1985).

    Example:
        >>> import streammetrics as sm
        >>> sm.AdjustedRandIndex().update([0, 0, 1, 1], [0, 0, 1, 2]).compute()
        0.5714285714285714
    """

    higher_is_better = True
    value_range = (-1.0, 1.0)

    def read_pairs(self, pairs: Pairs) -> float:
        """Return the adjusted share of agreeing pairs."""
        both, only_true, only_pred, neither = pairs
        if not only_true and not only_pred:
            return 1.0
        true, pred = both + only_true, both + only_pred
        by_chance = true * (only_true + neither) + pred * (only_pred + neither)
        return 2 * (both * neither - only_true * only_pred) / by_chance


class PairJaccard(PairMetric):
    """Pair Jaccard index: pairs grouped together by both labelings over those by either.

    Formula: TP / (TP + FP + FN)

    ``nan`` if neither labeling groups any pair together.

    Parameters are those of `LabelingMetric`.

    Reference: Jaccard index of the entries of ``sklearn.metrics.cluster.pair_confusion_matrix``.

    Example:
        >>> import streammetrics as sm
        >>> sm.PairJaccard().update([0, 0, 1, 1], [0, 0, 1, 2]).compute()
        0.5
    """

    higher_is_better = True
    value_range = (0.0, 1.0)
    _nan_reason = "no two rows have the same label"

    def read_pairs(self, pairs: Pairs) -> float:
        """Return the share of pairs grouped together by both."""
        return ratio_or_nan(pairs.both, pairs.both + pairs.only_true + pairs.only_pred)


class PairPrecision(PairMetric):
    """Pair precision: the share of pairs in the same cluster that are in the same class.

    Formula: TP / (TP + FP)

    ``nan`` if no two rows are in the same cluster.

    Parameters are those of `LabelingMetric`.

    Reference: precision of ``sklearn.metrics.cluster.pair_confusion_matrix``.

    Example:
        >>> import streammetrics as sm
        >>> sm.PairPrecision().update([0, 0, 1, 1], [0, 0, 1, 2]).compute()
        1.0
    """

    higher_is_better = True
    value_range = (0.0, 1.0)
    _nan_reason = "no two rows have the same label in labels_pred"

    def read_pairs(self, pairs: Pairs) -> float:
        """Return the precision."""
        return ratio_or_nan(pairs.both, pairs.both + pairs.only_pred)


class PairRecall(PairMetric):
    """Pair recall: the share of pairs in the same class that are in the same cluster.

    Formula: TP / (TP + FN)

    ``nan`` if no two rows are in the same class.

    Parameters are those of `LabelingMetric`.

    Reference: recall of ``sklearn.metrics.cluster.pair_confusion_matrix``.

    Example:
        >>> import streammetrics as sm
        >>> sm.PairRecall().update([0, 0, 1, 1], [0, 0, 1, 2]).compute()
        0.5
    """

    higher_is_better = True
    value_range = (0.0, 1.0)
    _nan_reason = "no two rows have the same label in labels_true"

    def read_pairs(self, pairs: Pairs) -> float:
        """Return the recall."""
        return ratio_or_nan(pairs.both, pairs.both + pairs.only_true)


class PairFBeta(PairMetric):
    """Pair F-measure: the weighted harmonic mean of pair precision and pair recall.

    Formula: (1 + β²) TP / ((1 + β²) TP + β² FN + FP)

    ``nan`` if neither labeling groups any pair together.

    The other parameters are those of `LabelingMetric`.

    Args:
        beta: The weight of recall relative to precision.

    Raises:
        ValueError: `beta` is not positive and finite.

    Reference: F-measure of ``sklearn.metrics.cluster.pair_confusion_matrix``.

    Example:
        >>> import streammetrics as sm
        >>> sm.PairFBeta().update([0, 0, 1, 1], [0, 0, 1, 2]).compute()
        0.6666666666666666
    """

    higher_is_better = True
    value_range = (0.0, 1.0)
    _nan_reason = "no two rows have the same label"

    beta: Annotated[float, Positive] = 1.0

    def read_pairs(self, pairs: Pairs) -> float:
        """Return the F-measure."""
        top, bottom = self.beta.as_integer_ratio()
        recall_part, one = top * top, bottom * bottom
        hits = (one + recall_part) * pairs.both
        return ratio_or_nan(hits, hits + recall_part * pairs.only_true + one * pairs.only_pred)


class FowlkesMallows(PairMetric):
    """Fowlkes-Mallows index: the geometric mean of pair precision and pair recall.

    Formula: TP / √((TP + FP) (TP + FN))

    0 if no pair is grouped together by both labelings, as in scikit-learn.

    Parameters are those of `LabelingMetric`.

    Reference: ``sklearn.metrics.fowlkes_mallows_score``; Fowlkes and Mallows (1983).

    Example:
        >>> import streammetrics as sm
        >>> sm.FowlkesMallows().update([0, 0, 1, 1], [0, 0, 1, 2]).compute()
        0.7071067811865476
    """

    higher_is_better = True
    value_range = (0.0, 1.0)

    def read_pairs(self, pairs: Pairs) -> float:
        """Return the geometric mean."""
        if not pairs.both:
            return 0.0
        true, pred = pairs.both + pairs.only_true, pairs.both + pairs.only_pred
        return math.sqrt(pairs.both**2 / (true * pred))


_LARGE = 1 << 62
_MOST = 1 << 24  # pairs: a table of 128 MB


class ClusterAccuracy(LabelingMetric[float]):
    """Share of rows that agree under the best one-to-one matching of clusters with classes.

    Formula: (1 / n) max_f Σ_j n_(f(j) j), with n_ij the rows of class i in cluster j, over all
    one-to-one maps f.

    If the numbers of clusters and classes differ, the rows of unmatched ones count as wrong.
    `Purity` allows several clusters to be matched with the same class.

    Parameters are those of `LabelingMetric`.

    Raises:
        StreamMetricsError: From `compute`, with more than 2**24 pairs of a class and a cluster.

    Memory and cost: 16 bytes per pair of labels that occurs. `compute` takes 8 bytes per possible
    pair, and time proportional to a² b, where a is the smaller and b the larger of the numbers of
    classes and clusters: a few milliseconds for a hundred of each.

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
    """Purity: the share of rows that belong to the most frequent class of their cluster.

    Formula: (1 / n) Σ_j max_i n_ij, with n_ij the rows of class i in cluster j.

    It is 1 if every row is a cluster of its own, so it cannot compare clusterings with different
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
        """Return the share of rows that are in the most frequent class of their cluster."""
        largest = np.zeros(len(overlap.pred_sizes), np.int64)
        np.maximum.at(largest, overlap.columns, overlap.counts)
        return int(largest.sum()) / overlap.n


def largest_assignment(table: Ints) -> int:
    """Return the largest sum of entries, no two of which share a row or a column.

    Computed by shortest augmenting paths (Jonker and Volgenant, Computing 38, 1987), in integers.

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
