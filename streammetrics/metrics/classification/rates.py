"""Rates of a confusion table."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, cast

import numpy as np

from streammetrics.core.constraints import Between
from streammetrics.core.types import NoAverage
from streammetrics.metrics.classification.base import AveragedMetric
from streammetrics.metrics.families import Family

if TYPE_CHECKING:
    from collections.abc import Callable

    from streammetrics.core.types import Floats
    from streammetrics.metrics.classification.view import Confusion, Outcomes

    Parts = Callable[[Floats, Floats, Floats, Floats], tuple[Floats, Floats]]


class Precision(AveragedMetric[NoAverage]):
    """Precision: the share of the rows predicted as a class that belong to it.

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


class Recall(AveragedMetric[NoAverage]):
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


class Specificity(AveragedMetric[NoAverage]):
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


class LabelAccuracy(AveragedMetric[NoAverage]):
    """Accuracy per class or label: the share of rows where its presence is predicted right.

    Formula: (TP + TN) / (TP + TN + FP + FN)

    Parameters are those of `AveragedMetric` and `ContingencyMetric`.

    Reference: ``torchmetrics.classification.MultilabelAccuracy``; with ``average="micro"`` it is 1
    less `HammingLoss`. ``MulticlassAccuracy(average=None)`` there is `Recall`.

    Example:
        >>> import streammetrics as sm
        >>> metric = sm.LabelAccuracy(average=None, multilabel=True)
        >>> metric.update([[0, 1], [1, 1]], [[0, 1], [1, 0]]).compute()
        array([1. , 0.5])
    """

    higher_is_better = True
    value_range = (0.0, 1.0)

    def read(self, table: Confusion) -> Floats:
        """Return (TP + TN) over all rows."""
        right = table.tp + table.tn
        return self.averaged(table, right, right + table.fp + table.fn)


class FalsePositiveRate(AveragedMetric[NoAverage]):
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


class FalseNegativeRate(AveragedMetric[NoAverage]):
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


class NegativePredictiveValue(AveragedMetric[NoAverage]):
    """Negative predictive value: the share of rows not predicted as a class that are outside it.

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


class FBeta(AveragedMetric[NoAverage]):
    """F-beta score: the weighted harmonic mean of precision and recall.

    Formula: (1 + β²) TP / ((1 + β²) TP + β² FN + FP)

    The other parameters are those of `AveragedMetric` and `ContingencyMetric`.

    Args:
        beta: The weight of recall relative to precision; ``inf`` gives recall alone.

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
        if self.beta > 1:  # both terms divided by the square of beta, which may overflow
            share = 1 / self.beta / self.beta
            return self.averaged(
                table, (1 + share) * table.tp, table.actual + share * table.predicted
            )
        square = self.beta**2
        return self.averaged(
            table, (1 + square) * table.tp, square * table.actual + table.predicted
        )


class F1(AveragedMetric[NoAverage]):
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


class Jaccard(AveragedMetric[NoAverage]):
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


class FalseDiscoveryRate(AveragedMetric[NoAverage]):
    """False discovery rate: the share of the rows predicted as a class that are outside it.

    Formula: FP / (FP + TP)

    Parameters are those of `AveragedMetric` and `ContingencyMetric`.

    Reference: 1 - ``sklearn.metrics.precision_score``.

    Example:
        >>> import streammetrics as sm
        >>> sm.FalseDiscoveryRate(threshold=0.5).update([0, 1, 1], [0.6, 0.7, 0.2]).compute()
        0.5
    """

    higher_is_better = False
    value_range = (0.0, 1.0)
    family = Family.SHARE
    _parts = ("fp", {"tp": 1.0}, 1.0)

    def read(self, table: Confusion) -> Floats:
        """Return FP / (FP + TP)."""
        return self.averaged(table, table.fp, table.predicted)


class FalseOmissionRate(AveragedMetric[NoAverage]):
    """False omission rate: the share of the rows not predicted as a class that belong to it.

    Formula: FN / (FN + TN)

    Parameters are those of `AveragedMetric` and `ContingencyMetric`.

    Reference: 1 - ``sklearn.metrics.precision_score`` of the negative class.

    Example:
        >>> import streammetrics as sm
        >>> sm.FalseOmissionRate().update([0, 1, 1, 0], [0, 1, 0, 0]).compute()
        0.3333333333333333
    """

    higher_is_better = False
    value_range = (0.0, 1.0)
    family = Family.SHARE
    _parts = ("fn", {"tn": 1.0}, 1.0)

    def read(self, table: Confusion) -> Floats:
        """Return FN / (FN + TN)."""
        return self.averaged(table, table.fn, table.fn + table.tn)


class Prevalence(AveragedMetric[NoAverage]):
    """Prevalence: the share of all rows that belong to a class.

    Formula: (TP + FN) / n

    Parameters are those of `AveragedMetric` and `ContingencyMetric`.

    Reference: the mean of ``y_true == label``.

    Example:
        >>> import streammetrics as sm
        >>> sm.Prevalence().update([0, 1, 1, 0, 0], [0, 1, 0, 0, 1]).compute()
        0.4
    """

    higher_is_better = None
    value_range = (0.0, 1.0)
    family = Family.SHARE
    _parts = ("actual", {"fp": 1.0, "tn": 1.0}, 1.0)

    def read(self, table: Confusion) -> Floats:
        """Return (TP + FN) / n."""
        return self.averaged(table, table.actual, table.everyone)


class SelectionRate(AveragedMetric[NoAverage]):
    """Selection rate: the share of all rows that are predicted as a class.

    Formula: (TP + FP) / n

    Parameters are those of `AveragedMetric` and `ContingencyMetric`. Its gap between `Slices` is
    the demographic parity difference.

    Reference: ``fairlearn.metrics.selection_rate``; the mean of ``y_pred == label``.

    Example:
        >>> import streammetrics as sm
        >>> sm.SelectionRate().update([0, 1, 1, 0, 0], [0, 1, 0, 0, 0]).compute()
        0.2
    """

    higher_is_better = None
    value_range = (0.0, 1.0)
    family = Family.SHARE
    _parts = ("predicted", {"fn": 1.0, "tn": 1.0}, 1.0)

    def read(self, table: Confusion) -> Floats:
        """Return (TP + FP) / n."""
        return self.averaged(table, table.predicted, table.everyone)


class PositiveLikelihoodRatio(AveragedMetric[NoAverage]):
    """Positive likelihood ratio: the factor by which a positive prediction raises the odds.

    Formula: (TP / (TP + FN)) / (FP / (FP + TN))

    0/0 (see `zero_division`) if the class or the rest has no rows, or if there are no false
    positives.

    Parameters are those of `AveragedMetric` and `ContingencyMetric`.

    Reference: the first of ``sklearn.metrics.class_likelihood_ratios``.

    Example:
        >>> import streammetrics as sm
        >>> sm.PositiveLikelihoodRatio().update([0, 0, 0, 1, 1], [0, 0, 1, 1, 0]).compute()
        1.5
    """

    higher_is_better = True
    value_range = (0.0, math.inf)

    def read(self, table: Confusion) -> Floats:
        """Return TPR / FPR."""
        return _quotient(self, table, lambda tp, fp, fn, tn: (_over(tp, fn), _over(fp, tn)))


class NegativeLikelihoodRatio(AveragedMetric[NoAverage]):
    """Negative likelihood ratio: the factor by which a negative prediction changes the odds.

    Formula: (FN / (FN + TP)) / (TN / (TN + FP))

    0/0 (see `zero_division`) if the class or the rest has no rows, or if there are no true
    negatives.

    Parameters are those of `AveragedMetric` and `ContingencyMetric`.

    Reference: the second of ``sklearn.metrics.class_likelihood_ratios``.

    Example:
        >>> import streammetrics as sm
        >>> sm.NegativeLikelihoodRatio().update([0, 0, 0, 1, 1], [0, 0, 1, 1, 0]).compute()
        0.75
    """

    higher_is_better = False
    value_range = (0.0, math.inf)

    def read(self, table: Confusion) -> Floats:
        """Return FNR / TNR."""
        return _quotient(self, table, lambda tp, fp, fn, tn: (_over(fn, tp), _over(tn, fp)))


class DiagnosticOddsRatio(AveragedMetric[NoAverage]):
    """Diagnostic odds ratio: the odds of a positive prediction in the class over those outside.

    Formula: TP TN / (FP FN)

    0/0 (see `zero_division`) if there are no false positives or no false negatives.

    Parameters are those of `AveragedMetric` and `ContingencyMetric`.

    Reference: Glas et al., "The diagnostic odds ratio", J. Clin. Epidemiol. 56 (2003); the ratio of
    both likelihood ratios.

    Example:
        >>> import streammetrics as sm
        >>> sm.DiagnosticOddsRatio().update([0, 0, 0, 1, 1], [0, 0, 1, 1, 0]).compute()
        2.0
    """

    higher_is_better = True
    value_range = (0.0, math.inf)

    def read(self, table: Confusion) -> Floats:
        """Return TP TN / (FP FN), from rates, because products of weights may overflow."""
        return _quotient(
            self,
            table,
            lambda tp, fp, fn, tn: (
                _over(tp, fn) * _over(tn, fp),
                _over(fp, tn) * _over(fn, tp),
            ),
        )


class Informedness(AveragedMetric[NoAverage]):
    """Informedness (Youden's J): sensitivity plus specificity minus 1.

    Formula: TP / (TP + FN) + TN / (TN + FP) - 1

    0/0 (see `zero_division`) if the class or the rest has no rows. Computed from integers and
    rounded once.

    Parameters are those of `AveragedMetric` and `ContingencyMetric`.

    Reference: Youden, "Index for rating diagnostic tests", Cancer 3 (1950);
    ``sklearn.metrics.balanced_accuracy_score(adjusted=True)`` for two classes.

    Example:
        >>> import streammetrics as sm
        >>> sm.Informedness().update([0, 0, 1, 1], [0, 0, 1, 0]).compute()
        0.5
    """

    higher_is_better = True
    value_range = (-1.0, 1.0)

    def read(self, table: Confusion) -> Floats:
        """Return TPR - FPR."""
        return _determinant(self, table, lambda tp, fp, fn, tn: (tp + fn) * (fp + tn))


class Markedness(AveragedMetric[NoAverage]):
    """Markedness: the positive plus the negative predictive value minus 1.

    Formula: TP / (TP + FP) + TN / (TN + FN) - 1

    0/0 (see `zero_division`) if the class is predicted for all rows or for none. Computed from
    integers and rounded once.

    Parameters are those of `AveragedMetric` and `ContingencyMetric`.

    Reference: Powers (2011), "Evaluation: from precision, recall and F-measure to ROC,
    informedness, markedness and correlation".

    Example:
        >>> import streammetrics as sm
        >>> sm.Markedness().update([0, 0, 1, 1, 1], [0, 0, 1, 1, 0]).compute()
        0.6666666666666666
    """

    higher_is_better = True
    value_range = (-1.0, 1.0)

    def read(self, table: Confusion) -> Floats:
        """Return PPV - (1 - NPV)."""
        return _determinant(self, table, lambda tp, fp, fn, tn: (tp + fp) * (fn + tn))


def _quotient(metric: AveragedMetric[None], table: Confusion, parts: Parts) -> Floats:
    """Return the averaged ratio of two parts; with ``"micro"`` counts are added first.

    A part is ``nan`` if a class has no rows; the ratio is then 0/0.
    """
    counts = [side[:, : table.kept] for side in (table.tp, table.fp, table.fn, table.tn)]
    if metric.average == "micro":
        counts = [side.sum(axis=1, keepdims=True) for side in counts]
    numerator, denominator = parts(*counts)
    missing = np.isnan(numerator) | np.isnan(denominator)
    return metric.averaged(
        table, np.where(missing, 0.0, numerator), np.where(missing, 0.0, denominator)
    )


def _over(part: Floats, rest: Floats) -> Floats:
    """Return part / (part + rest), ``nan`` for 0/0."""
    whole = part + rest
    shares = np.full(part.shape, np.nan)
    np.divide(part, whole, out=shares, where=whole > 0)
    return shares


def _determinant(
    metric: AveragedMetric[None], table: Confusion, margins: Callable[[int, int, int, int], int]
) -> Floats:
    """Return the average of TP TN - FP FN over a product of margins, rounded once per class."""
    shares, known = [], []
    for outcomes in table.outcomes():
        counts = outcomes
        if metric.average == "micro":
            counts = [cast("Outcomes", tuple(map(sum, zip(*outcomes, strict=True))))]
        below = [margins(*each) for each in counts]
        known.append([product != 0 for product in below])
        shares.append(
            [
                float((hit * rest - wrong * missed) / product) if product else 0.0
                for (hit, wrong, missed, rest), product in zip(counts, below, strict=True)
            ]
        )
    return metric.averaged(table, np.array(shares), np.array(known, np.float64))
