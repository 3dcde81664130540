"""Clusterings compared with true labels by the pairs of rows that each labeling groups together."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np

from streammetrics.core.arithmetic.exact import exact_dot
from streammetrics.core.confidence import Refusal
from streammetrics.core.constraints import Positive
from streammetrics.core.results.labelled import LabelledArray
from streammetrics.metrics.clustering.base import LabelingMetric
from streammetrics.metrics.families import GROWS, SEVERAL

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
    """Base of the metrics that count pairs of rows, exactly, in integers of any size."""

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
    where a number exceeds 64 bits; all 0 without rows.

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

    ``nan`` where neither labeling groups any pair together.

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
        """Return the share of shared pairs."""
        return ratio_or_nan(pairs.both, pairs.both + pairs.only_true + pairs.only_pred)


class PairPrecision(PairMetric):
    """Pair precision: the share of pairs in one cluster that are of one class.

    Formula: TP / (TP + FP)

    ``nan`` where no two rows are in one cluster.

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
    """Pair recall: the share of pairs of one class that are in one cluster.

    Formula: TP / (TP + FN)

    ``nan`` where no two rows are of one class.

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

    ``nan`` where neither labeling groups any pair together.

    The other parameters are those of `LabelingMetric`.

    Args:
        beta: How many times as much recall counts as precision.

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

    0 where no pair is grouped together by both labelings, as in scikit-learn.

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
