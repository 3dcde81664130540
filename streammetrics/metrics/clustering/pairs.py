"""Clusterings judged against a truth by the pairs of rows that two labelings put together."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np

from streammetrics.core.constraints import Positive
from streammetrics.core.exact.integers import exact_dot
from streammetrics.core.results.values import LabelledArray
from streammetrics.metrics.clustering.base import LabelingMetric

if TYPE_CHECKING:
    from streammetrics.metrics.clustering.view import Overlap

__all__ = [
    "AdjustedRandIndex",
    "FowlkesMallows",
    "PairConfusionMatrix",
    "PairFBeta",
    "PairJaccard",
    "PairPrecision",
    "PairRecall",
    "RandIndex",
]


class Pairs(NamedTuple):
    """Ordered pairs of different rows, by whether either labeling puts the two together."""

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


def ratio(numerator: int, denominator: int) -> float:
    """Return a quotient of integers of any size, rounded once; ``nan`` for 0 / 0."""
    return numerator / denominator if denominator else math.nan


class PairMetric(LabelingMetric[float]):
    """Base of the metrics that count pairs of rows, exactly, in integers of any size."""

    def read(self, overlap: Overlap) -> float:
        """Return the value for the numbers of pairs."""
        return self.read_pairs(Pairs.of(overlap))

    @abstractmethod
    def read_pairs(self, pairs: Pairs) -> float:
        """Return the value for numbers of ordered pairs, all 0 for a single row."""


class PairConfusionMatrix(LabelingMetric[LabelledArray]):
    r"""Ordered pairs of rows by whether the truth, and the clustering, puts the two together.

    Formula: C_ab = |{(i, j), i ≠ j: t_ij = a, p_ij = b}|, with t and p 1 where a labeling puts two
    rows together, else 0.

    ``[[neither, only predicted], [only true, both]]``: integers, and floats where one of them is
    beyond 64 bits. Without rows they are 0.

    Args:
        nan_policy: see `LabelingMetric`.

    Reference: `sklearn.metrics.cluster.pair_confusion_matrix`.

    Example:
        >>> import streammetrics as sm
        >>> sm.PairConfusionMatrix().update([0, 0, 1, 1], [0, 0, 1, 2]).compute()
        array([[8, 0],
               [2, 2]])
    """

    higher_is_better = None

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
    r"""Share of the pairs of rows that both labelings put together, or both put apart.

    Formula: (TP + TN) / (TP + TN + FP + FN), with counts of pairs of rows.

    1 for a single row, as in scikit-learn.

    Args:
        nan_policy: see `LabelingMetric`.

    Reference: `sklearn.metrics.rand_score`; Rand (1971).

    Example:
        >>> import streammetrics as sm
        >>> sm.RandIndex().update([0, 0, 1, 1], [0, 0, 1, 2]).compute()
        0.8333333333333334
    """

    def read_pairs(self, pairs: Pairs) -> float:
        """Return the share of agreeing pairs."""
        return ratio(pairs.both + pairs.neither, sum(pairs)) if sum(pairs) else 1.0


class AdjustedRandIndex(PairMetric):
    r"""Rand index with chance taken out.

    Formula: (RI - E[RI]) / (1 - E[RI])

    0 on average for random labelings with clusters of these sizes, 1 for equal ones.

    Args:
        nan_policy: see `LabelingMetric`.

    Reference: `sklearn.metrics.adjusted_rand_score`; Hubert and Arabie (1985).

    Example:
        >>> import streammetrics as sm
        >>> sm.AdjustedRandIndex().update([0, 0, 1, 1], [0, 0, 1, 2]).compute()
        0.5714285714285714
    """

    def read_pairs(self, pairs: Pairs) -> float:
        """Return the adjusted share of agreeing pairs."""
        both, only_true, only_pred, neither = pairs
        if not only_true and not only_pred:
            return 1.0
        true, pred = both + only_true, both + only_pred
        by_chance = true * (only_true + neither) + pred * (only_pred + neither)
        return 2 * (both * neither - only_true * only_pred) / by_chance


class PairJaccard(PairMetric):
    r"""Pairs of rows together in both labelings over pairs together in either.

    Formula: TP / (TP + FP + FN)

    ``nan`` where no pair is together in either.

    Args:
        nan_policy: see `LabelingMetric`.

    Reference: Jaccard index of the entries of `sklearn.metrics.cluster.pair_confusion_matrix`.

    Example:
        >>> import streammetrics as sm
        >>> sm.PairJaccard().update([0, 0, 1, 1], [0, 0, 1, 2]).compute()
        0.5
    """

    def read_pairs(self, pairs: Pairs) -> float:
        """Return the share of shared pairs."""
        return ratio(pairs.both, pairs.both + pairs.only_true + pairs.only_pred)


class PairPrecision(PairMetric):
    r"""Share of the pairs of rows put together that belong together.

    Formula: TP / (TP + FP)

    ``nan`` where no pair is put together.

    Args:
        nan_policy: see `LabelingMetric`.

    Reference: precision of `sklearn.metrics.cluster.pair_confusion_matrix`.

    Example:
        >>> import streammetrics as sm
        >>> sm.PairPrecision().update([0, 0, 1, 1], [0, 0, 1, 2]).compute()
        1.0
    """

    def read_pairs(self, pairs: Pairs) -> float:
        """Return the precision."""
        return ratio(pairs.both, pairs.both + pairs.only_pred)


class PairRecall(PairMetric):
    r"""Share of the pairs of rows that belong together that are put together.

    Formula: TP / (TP + FN)

    ``nan`` where no pair belongs together.

    Args:
        nan_policy: see `LabelingMetric`.

    Reference: recall of `sklearn.metrics.cluster.pair_confusion_matrix`.

    Example:
        >>> import streammetrics as sm
        >>> sm.PairRecall().update([0, 0, 1, 1], [0, 0, 1, 2]).compute()
        0.5
    """

    def read_pairs(self, pairs: Pairs) -> float:
        """Return the recall."""
        return ratio(pairs.both, pairs.both + pairs.only_true)


class PairFBeta(PairMetric):
    r"""F-measure of pairs.

    Formula: (1 + β²) TP / ((1 + β²) TP + β² FN + FP)

    ``nan`` where no pair is together in either labeling.

    Args:
        beta: Weight of recall against precision.
        nan_policy: see `LabelingMetric`.

    Raises:
        ValueError: `beta` is not positive and finite.

    Reference: F-measure of `sklearn.metrics.cluster.pair_confusion_matrix`.

    Example:
        >>> import streammetrics as sm
        >>> sm.PairFBeta().update([0, 0, 1, 1], [0, 0, 1, 2]).compute()
        0.6666666666666666
    """

    beta: Annotated[float, Positive] = 1.0

    def read_pairs(self, pairs: Pairs) -> float:
        """Return the F-measure."""
        top, bottom = self.beta.as_integer_ratio()
        recall_part, one = top * top, bottom * bottom
        hits = (one + recall_part) * pairs.both
        return ratio(hits, hits + recall_part * pairs.only_true + one * pairs.only_pred)


class FowlkesMallows(PairMetric):
    r"""Geometric mean of the precision and the recall of pairs.

    Formula: TP / √((TP + FP) (TP + FN))

    0 where no pair is together in both labelings, as in scikit-learn.

    Args:
        nan_policy: see `LabelingMetric`.

    Reference: `sklearn.metrics.fowlkes_mallows_score`; Fowlkes and Mallows (1983).

    Example:
        >>> import streammetrics as sm
        >>> sm.FowlkesMallows().update([0, 0, 1, 1], [0, 0, 1, 2]).compute()
        0.7071067811865476
    """

    def read_pairs(self, pairs: Pairs) -> float:
        """Return the geometric mean."""
        if not pairs.both:
            return 0.0
        true, pred = pairs.both + pairs.only_true, pairs.both + pairs.only_pred
        return math.sqrt(pairs.both**2 / (true * pred))
