"""Classification by class: quotients of true and false positives and negatives, averaged."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

from streammetrics.core.constraints import Between
from streammetrics.metrics.classification.averaged import AveragedMetric
from streammetrics.metrics.classification.together import elementwise

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
    """Share of the rows predicted to be of a class that are.

    Formula: TP / (TP + FP)

    Parameters are those of `AveragedMetric` and `ContingencyMetric`.

    Reference: ``sklearn.metrics.precision_score``, whose `zero_division` is 0 by default.

    Example:
        >>> import streammetrics as sm
        >>> sm.Precision(threshold=0.5).update([0, 1, 1], [0.6, 0.7, 0.2]).compute()
        0.5
    """

    @elementwise
    def read(self, table: Confusion) -> float | Floats:
        """Return TP / (TP + FP)."""
        return self.averaged(table, table.tp, table.predicted)


class Recall(AveragedMetric):
    """True positive rate: share of the rows of a class predicted so.

    Formula: TP / (TP + FN)

    Parameters are those of `AveragedMetric` and `ContingencyMetric`.

    Reference: ``sklearn.metrics.recall_score``, whose `zero_division` is 0 by default.

    Example:
        >>> import streammetrics as sm
        >>> sm.Recall(average="macro").update([0, 1, 2, 2], [0, 2, 2, 2]).compute()
        0.6666666666666666
    """

    @elementwise
    def read(self, table: Confusion) -> float | Floats:
        """Return TP / (TP + FN)."""
        return self.averaged(table, table.tp, table.actual)


class Specificity(AveragedMetric):
    """True negative rate: share of the other rows predicted so.

    Formula: TN / (TN + FP)

    Parameters are those of `AveragedMetric` and `ContingencyMetric`.

    Reference: ``sklearn.metrics.recall_score`` of the negative class.

    Example:
        >>> import streammetrics as sm
        >>> sm.Specificity().update([0, 0, 1, 0], [0, 1, 1, 0]).compute()
        0.6666666666666666
    """

    @elementwise
    def read(self, table: Confusion) -> float | Floats:
        """Return TN / (TN + FP)."""
        return self.averaged(table, table.tn, table.tn + table.fp)


class FalsePositiveRate(AveragedMetric):
    """Share of the other rows predicted to be of a class.

    Formula: FP / (FP + TN)

    Parameters are those of `AveragedMetric` and `ContingencyMetric`.

    Reference: 1 - specificity; ``sklearn.metrics.roc_curve`` at one threshold.

    Example:
        >>> import streammetrics as sm
        >>> sm.FalsePositiveRate().update([0, 0, 1, 0], [0, 1, 1, 0]).compute()
        0.3333333333333333
    """

    higher_is_better = False

    @elementwise
    def read(self, table: Confusion) -> float | Floats:
        """Return FP / (FP + TN)."""
        return self.averaged(table, table.fp, table.fp + table.tn)


class FalseNegativeRate(AveragedMetric):
    """Miss rate: share of the rows of a class predicted otherwise.

    Formula: FN / (FN + TP)

    Parameters are those of `AveragedMetric` and `ContingencyMetric`.

    Reference: 1 - ``sklearn.metrics.recall_score``.

    Example:
        >>> import streammetrics as sm
        >>> sm.FalseNegativeRate().update([0, 1, 1, 1], [0, 1, 0, 1]).compute()
        0.3333333333333333
    """

    higher_is_better = False

    @elementwise
    def read(self, table: Confusion) -> float | Floats:
        """Return FN / (FN + TP)."""
        return self.averaged(table, table.fn, table.actual)


class NegativePredictiveValue(AveragedMetric):
    """Share of the rows not predicted to be of a class that are not.

    Formula: TN / (TN + FN)

    Parameters are those of `AveragedMetric` and `ContingencyMetric`.

    Reference: ``sklearn.metrics.precision_score`` of the negative class.

    Example:
        >>> import streammetrics as sm
        >>> sm.NegativePredictiveValue().update([0, 1, 1, 0], [0, 1, 0, 0]).compute()
        0.6666666666666666
    """

    @elementwise
    def read(self, table: Confusion) -> float | Floats:
        """Return TN / (TN + FN)."""
        return self.averaged(table, table.tn, table.tn + table.fn)


class FBeta(AveragedMetric):
    """Weighted harmonic mean of precision and recall.

    Formula: (1 + β²) TP / ((1 + β²) TP + β² FN + FP)

    The other parameters are those of `AveragedMetric` and `ContingencyMetric`.

    Args:
        beta: How many times recall counts as much as precision; of ``inf`` it is recall alone.

    Raises:
        ValueError: `beta` is negative.

    Reference: ``sklearn.metrics.fbeta_score``, whose `zero_division` is 0 by default.

    Example:
        >>> import streammetrics as sm
        >>> sm.FBeta(beta=2.0).update([0, 1, 1, 1], [0, 1, 0, 0]).compute()
        0.38461538461538464
    """

    beta: Annotated[float, Between(0, math.inf)] = 1.0

    @elementwise
    def read(self, table: Confusion) -> float | Floats:
        """Return the weighted harmonic mean."""
        if self.beta > 1:  # as below, over the square of beta, which can overflow
            share = 1 / self.beta / self.beta
            return self.averaged(
                table, (1 + share) * table.tp, table.actual + share * table.predicted
            )
        square = self.beta**2
        return self.averaged(
            table, (1 + square) * table.tp, square * table.actual + table.predicted
        )


class F1(AveragedMetric):
    """Harmonic mean of precision and recall.

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

    @elementwise
    def read(self, table: Confusion) -> float | Floats:
        """Return 2 TP / (2 TP + FN + FP)."""
        return self.averaged(table, 2 * table.tp, table.actual + table.predicted)


class Jaccard(AveragedMetric):
    """Intersection over union of the rows of a class and those predicted so.

    Formula: TP / (TP + FP + FN)

    Parameters are those of `AveragedMetric` and `ContingencyMetric`.

    Reference: ``sklearn.metrics.jaccard_score``, whose `zero_division` is 0 by default.

    Example:
        >>> import streammetrics as sm
        >>> sm.Jaccard().update([0, 1, 1, 1], [1, 1, 0, 1]).compute()
        0.5
    """

    @elementwise
    def read(self, table: Confusion) -> float | Floats:
        """Return TP / (TP + FP + FN)."""
        return self.averaged(table, table.tp, table.actual + table.fp)
