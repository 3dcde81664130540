"""Ratios of true and false positives and negatives per class: precision, recall, F1 and others."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

from streammetrics.core.constraints import Between
from streammetrics.metrics.classification.averaged import AveragedMetric
from streammetrics.metrics.families import Family

if TYPE_CHECKING:
    from streammetrics.core.types import Floats
    from streammetrics.metrics.classification.view import Confusion


__all__ = [
    "F1",
    "FBeta",
    "FalseNegativeRate",
    "FalsePositiveRate",
    "Jaccard",
    "NegativePredictiveValue",
    "Precision",
    "Recall",
    "Specificity",
]


class Precision(AveragedMetric):
    """Precision: the share of the rows predicted as a class that are of it.

    Formula: TP / (TP + FP)

    Parameters are those of `AveragedMetric` and `ContingencyMetric`.

    Reference: ``sklearn.metrics.precision_score``, whose `zero_division` is 0 by default.

    Example:
        >>> import streammetrics as sm
        >>> sm.Precision(threshold=0.5).update([0, 1, 1], [0.6, 0.7, 0.2]).compute()
        0.5
    """

    higher_is_better = True
    value_range = (0.0, 1.0)
    family = Family.SHARE
    _parts = ("tp", {"fp": 1.0}, 1.0)

    def read(self, table: Confusion) -> Floats:
        """Return TP / (TP + FP)."""
        return self.averaged(table, table.tp, table.predicted)


class Recall(AveragedMetric):
    """Recall (true positive rate): the share of the rows of a class that are predicted as it.

    Formula: TP / (TP + FN)

    Parameters are those of `AveragedMetric` and `ContingencyMetric`.

    Reference: ``sklearn.metrics.recall_score``, whose `zero_division` is 0 by default.

    Example:
        >>> import streammetrics as sm
        >>> sm.Recall(average="macro").update([0, 1, 2, 2], [0, 2, 2, 2]).compute()
        0.6666666666666666
    """

    higher_is_better = True
    value_range = (0.0, 1.0)
    family = Family.SHARE
    _parts = ("tp", {"fn": 1.0}, 1.0)

    def read(self, table: Confusion) -> Floats:
        """Return TP / (TP + FN)."""
        return self.averaged(table, table.tp, table.actual)


class Specificity(AveragedMetric):
    """Specificity (true negative rate): the share of rows outside a class not predicted as it.

    Formula: TN / (TN + FP)

    Parameters are those of `AveragedMetric` and `ContingencyMetric`.

    Reference: ``sklearn.metrics.recall_score`` of the negative class.

    Example:
        >>> import streammetrics as sm
        >>> sm.Specificity().update([0, 0, 1, 0], [0, 1, 1, 0]).compute()
        0.6666666666666666
    """

    higher_is_better = True
    value_range = (0.0, 1.0)
    family = Family.SHARE
    _parts = ("tn", {"fp": 1.0}, 1.0)

    def read(self, table: Confusion) -> Floats:
        """Return TN / (TN + FP)."""
        return self.averaged(table, table.tn, table.tn + table.fp)


class FalsePositiveRate(AveragedMetric):
    """False positive rate: the share of rows outside a class that are predicted as it.

    Formula: FP / (FP + TN)

    Parameters are those of `AveragedMetric` and `ContingencyMetric`.

    Reference: 1 - specificity; ``sklearn.metrics.roc_curve`` at one threshold.

    Example:
        >>> import streammetrics as sm
        >>> sm.FalsePositiveRate().update([0, 0, 1, 0], [0, 1, 1, 0]).compute()
        0.3333333333333333
    """

    higher_is_better = False
    value_range = (0.0, 1.0)
    family = Family.SHARE
    _parts = ("fp", {"tn": 1.0}, 1.0)

    def read(self, table: Confusion) -> Floats:
        """Return FP / (FP + TN)."""
        return self.averaged(table, table.fp, table.fp + table.tn)


class FalseNegativeRate(AveragedMetric):
    """False negative rate (miss rate): the share of rows of a class predicted as another.

    Formula: FN / (FN + TP)

    Parameters are those of `AveragedMetric` and `ContingencyMetric`.

    Reference: 1 - ``sklearn.metrics.recall_score``.

    Example:
        >>> import streammetrics as sm
        >>> sm.FalseNegativeRate().update([0, 1, 1, 1], [0, 1, 0, 1]).compute()
        0.3333333333333333
    """

    higher_is_better = False
    value_range = (0.0, 1.0)
    family = Family.SHARE
    _parts = ("fn", {"tp": 1.0}, 1.0)

    def read(self, table: Confusion) -> Floats:
        """Return FN / (FN + TP)."""
        return self.averaged(table, table.fn, table.actual)


class NegativePredictiveValue(AveragedMetric):
    """Negative predictive value: the share of rows not predicted as a class that are not of it.

    Formula: TN / (TN + FN)

    Parameters are those of `AveragedMetric` and `ContingencyMetric`.

    Reference: ``sklearn.metrics.precision_score`` of the negative class.

    Example:
        >>> import streammetrics as sm
        >>> sm.NegativePredictiveValue().update([0, 1, 1, 0], [0, 1, 0, 0]).compute()
        0.6666666666666666
    """

    higher_is_better = True
    value_range = (0.0, 1.0)
    family = Family.SHARE
    _parts = ("tn", {"fn": 1.0}, 1.0)

    def read(self, table: Confusion) -> Floats:
        """Return TN / (TN + FN)."""
        return self.averaged(table, table.tn, table.tn + table.fn)


class FBeta(AveragedMetric):
    """F-beta score: the weighted harmonic mean of precision and recall.

    Formula: (1 + β²) TP / ((1 + β²) TP + β² FN + FP)

    The other parameters are those of `AveragedMetric` and `ContingencyMetric`.

    Args:
        beta: How many times as much recall counts as precision; ``inf`` gives recall alone.

    Raises:
        ValueError: `beta` is negative.

    Reference: ``sklearn.metrics.fbeta_score``, whose `zero_division` is 0 by default.

    Example:
        >>> import streammetrics as sm
        >>> sm.FBeta(beta=2.0).update([0, 1, 1, 1], [0, 1, 0, 0]).compute()
        0.38461538461538464
    """

    higher_is_better = True
    value_range = (0.0, 1.0)
    family = Family.F_BETA

    beta: Annotated[float, Between(0, math.inf)] = 1.0

    def read(self, table: Confusion) -> Floats:
        """Return the weighted harmonic mean."""
        if self.beta > 1:  # as below, divided by the square of beta, which may overflow
            share = 1 / self.beta / self.beta
            return self.averaged(
                table, (1 + share) * table.tp, table.actual + share * table.predicted
            )
        square = self.beta**2
        return self.averaged(
            table, (1 + square) * table.tp, square * table.actual + table.predicted
        )


class F1(AveragedMetric):
    """F1 score: the harmonic mean of precision and recall.

    Formula: 2 TP / (2 TP + FN + FP)

    Parameters are those of `AveragedMetric` and `ContingencyMetric`.

    Reference: ``sklearn.metrics.f1_score``, whose `zero_division` is 0 by default.

    Example:
        >>> import streammetrics as sm
        >>> f1 = sm.F1(threshold=0.5)
        >>> f1.update([0, 1, 1, 0], [0.1, 0.4, 0.9, 0.2]).compute()
        0.6666666666666666
        >>> f1.update([1], [0.7]).compute()
        0.8
    """

    higher_is_better = True
    value_range = (0.0, 1.0)
    family = Family.SHARE
    _parts = ("tp", {"fp": 1.0, "fn": 1.0}, 2.0)

    def read(self, table: Confusion) -> Floats:
        """Return 2 TP / (2 TP + FN + FP)."""
        return self.averaged(table, 2 * table.tp, table.actual + table.predicted)


class Jaccard(AveragedMetric):
    """Jaccard index: the intersection over union of the rows of a class and those predicted as it.

    Formula: TP / (TP + FP + FN)

    Parameters are those of `AveragedMetric` and `ContingencyMetric`.

    Reference: ``sklearn.metrics.jaccard_score``, whose `zero_division` is 0 by default.

    Example:
        >>> import streammetrics as sm
        >>> sm.Jaccard().update([0, 1, 1, 1], [1, 1, 0, 1]).compute()
        0.5
    """

    higher_is_better = True
    value_range = (0.0, 1.0)
    family = Family.SHARE
    _parts = ("tp", {"fp": 1.0, "fn": 1.0}, 1.0)

    def read(self, table: Confusion) -> Floats:
        """Return TP / (TP + FP + FN)."""
        return self.averaged(table, table.tp, table.actual + table.fp)
