"""Classification: read from how often each pair of true and predicted label was seen."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from streammetrics.core.metric import Metric
from streammetrics.metrics.confusion import AveragedMetric, Confusion, ContingencyMetric, one_kind
from streammetrics.statistics.topk import TopKHits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = [
    "F1",
    "Accuracy",
    "BalancedAccuracy",
    "ClassificationReport",
    "CohenKappa",
    "ConfusionMatrix",
    "FBeta",
    "FalseNegativeRate",
    "FalsePositiveRate",
    "Jaccard",
    "MatthewsCorrcoef",
    "NegativePredictiveValue",
    "Precision",
    "Recall",
    "Specificity",
    "TopKAccuracy",
]


class ConfusionMatrix(ContingencyMetric):
    """Rows of each class (row) by predicted class (column), C[i, j].

    Counts are integers; with weights that are not whole, sums as floats. Without rows they are 0.

    Args:
        normalize: ``"true"`` divides by the rows of the true class, ``"pred"`` by those of the
            predicted one, ``"all"`` by all rows; a class without rows gives `zero_division`.

    The other parameters are those of every metric of labels, see `ContingencyMetric`.

    Memory and cost: 16 bytes per pair of labels that occurs; the result is (K, K).

    Reference: ``sklearn.metrics.confusion_matrix``, where a class without rows gives 0.

    Example:
        >>> import streammetrics as sm
        >>> sm.ConfusionMatrix().update([0, 1, 2, 2], [0, 2, 2, 2]).compute()
        array([[1, 0, 0],
               [0, 0, 1],
               [0, 0, 2]])
    """

    normalize: Literal["true", "pred", "all"] | None = None

    counts_rows = True

    def read(self, table: Confusion) -> NDArray[Any]:
        """Return the matrix."""
        matrix = np.zeros((table.size, table.size))
        matrix[table.rows, table.columns] = table.amount.to_float()
        if self.normalize is None:
            whole = matrix.astype(np.int64)
            return whole if (whole == matrix).all() else matrix
        by = {
            "true": table.actual[:, None],
            "pred": table.predicted[None, :],
            "all": np.full((1, 1), table.total),
        }[self.normalize]
        shares = np.full_like(matrix, self.zero_division)
        np.divide(matrix, by, out=shares, where=by != 0)
        return shares

    def nothing(self, table: Confusion) -> NDArray[Any]:
        """Return zeros, or nan where they would be divided by nothing."""
        shape = (table.size, table.size)
        return np.zeros(shape, np.int64) if self.normalize is None else np.full(shape, math.nan)


class Accuracy(ContingencyMetric):
    """Share of rows predicted right, Σ C[i, i] / n.

    Parameters are those of every metric of labels, see `ContingencyMetric`.

    Memory and cost: 16 bytes per pair of labels that occurs.

    Reference: ``sklearn.metrics.accuracy_score``.

    Example:
        >>> import streammetrics as sm
        >>> sm.Accuracy().update(["cat", "dog", "dog"], ["cat", "dog", "cat"]).compute()
        0.6666666666666666
    """

    def read(self, table: Confusion) -> float:
        """Return the share of the diagonal."""
        hits = table.amount[np.flatnonzero(table.rows == table.columns)]
        return self.ratio(float(hits.sum().to_float()), table.total)


class BalancedAccuracy(ContingencyMetric):
    """Mean recall of the classes that have rows.

    Args:
        adjusted: Rescale so that chance is 0 and a perfect prediction 1.

    The other parameters are those of every metric of labels, see `ContingencyMetric`.

    Memory and cost: 16 bytes per pair of labels that occurs.

    Reference: ``sklearn.metrics.balanced_accuracy_score``.

    Example:
        >>> import streammetrics as sm
        >>> sm.BalancedAccuracy().update([0, 0, 0, 1], [0, 0, 1, 1]).compute()
        0.8333333333333333
    """

    adjusted: bool = False

    def read(self, table: Confusion) -> float:
        """Return the mean recall."""
        seen = table.actual > 0
        score = float((table.tp[seen] / table.actual[seen]).mean())
        if not self.adjusted:
            return score
        chance = 1 / int(seen.sum())
        return self.ratio(score - chance, 1 - chance)


class Precision(AveragedMetric):
    """Share of the rows predicted to be of a class that are, TP / (TP + FP).

    Parameters are those of every averaged metric of labels, see `AveragedMetric` and
    `ContingencyMetric`.

    Memory and cost: 16 bytes per pair of labels that occurs.

    Reference: ``sklearn.metrics.precision_score``, whose `zero_division` is 0 by default.

    Example:
        >>> import streammetrics as sm
        >>> sm.Precision(threshold=0.5).update([0, 1, 1], [0.6, 0.7, 0.2]).compute()
        0.5
    """

    def read(self, table: Confusion) -> float | Floats:
        """Return TP / (TP + FP)."""
        return self.averaged(table, table.tp, table.predicted)


class Recall(AveragedMetric):
    """True positive rate: share of the rows of a class predicted so, TP / (TP + FN).

    Parameters are those of every averaged metric of labels, see `AveragedMetric` and
    `ContingencyMetric`.

    Memory and cost: 16 bytes per pair of labels that occurs.

    Reference: ``sklearn.metrics.recall_score``, whose `zero_division` is 0 by default.

    Example:
        >>> import streammetrics as sm
        >>> sm.Recall(average="macro").update([0, 1, 2, 2], [0, 2, 2, 2]).compute()
        0.6666666666666666
    """

    def read(self, table: Confusion) -> float | Floats:
        """Return TP / (TP + FN)."""
        return self.averaged(table, table.tp, table.actual)


class Specificity(AveragedMetric):
    """True negative rate, TN / (TN + FP).

    Parameters are those of every averaged metric of labels, see `AveragedMetric` and
    `ContingencyMetric`.

    Memory and cost: 16 bytes per pair of labels that occurs.

    Reference: ``sklearn.metrics.recall_score`` of the negative class.

    Example:
        >>> import streammetrics as sm
        >>> sm.Specificity().update([0, 0, 1, 0], [0, 1, 1, 0]).compute()
        0.6666666666666666
    """

    def read(self, table: Confusion) -> float | Floats:
        """Return TN / (TN + FP)."""
        return self.averaged(table, table.tn, table.tn + table.fp)


class FalsePositiveRate(AveragedMetric):
    """Share of the other rows predicted to be of a class, FP / (FP + TN).

    Parameters are those of every averaged metric of labels, see `AveragedMetric` and
    `ContingencyMetric`.

    Memory and cost: 16 bytes per pair of labels that occurs.

    Reference: 1 - specificity; ``sklearn.metrics.roc_curve`` at one threshold.

    Example:
        >>> import streammetrics as sm
        >>> sm.FalsePositiveRate().update([0, 0, 1, 0], [0, 1, 1, 0]).compute()
        0.3333333333333333
    """

    def read(self, table: Confusion) -> float | Floats:
        """Return FP / (FP + TN)."""
        return self.averaged(table, table.fp, table.fp + table.tn)


class FalseNegativeRate(AveragedMetric):
    """Miss rate: share of the rows of a class predicted otherwise, FN / (FN + TP).

    Parameters are those of every averaged metric of labels, see `AveragedMetric` and
    `ContingencyMetric`.

    Memory and cost: 16 bytes per pair of labels that occurs.

    Reference: 1 - ``sklearn.metrics.recall_score``.

    Example:
        >>> import streammetrics as sm
        >>> sm.FalseNegativeRate().update([0, 1, 1, 1], [0, 1, 0, 1]).compute()
        0.3333333333333333
    """

    def read(self, table: Confusion) -> float | Floats:
        """Return FN / (FN + TP)."""
        return self.averaged(table, table.fn, table.actual)


class NegativePredictiveValue(AveragedMetric):
    """Share of the rows not predicted to be of a class that are not, TN / (TN + FN).

    Parameters are those of every averaged metric of labels, see `AveragedMetric` and
    `ContingencyMetric`.

    Memory and cost: 16 bytes per pair of labels that occurs.

    Reference: ``sklearn.metrics.precision_score`` of the negative class.

    Example:
        >>> import streammetrics as sm
        >>> sm.NegativePredictiveValue().update([0, 1, 1, 0], [0, 1, 0, 0]).compute()
        0.6666666666666666
    """

    def read(self, table: Confusion) -> float | Floats:
        """Return TN / (TN + FN)."""
        return self.averaged(table, table.tn, table.tn + table.fn)


class FBeta(AveragedMetric):
    """Weighted harmonic mean of precision and recall, (1 + β²) TP / ((1 + β²) TP + β² FN + FP).

    Args:
        beta: How many times recall counts as much as precision.

    The other parameters are those of every averaged metric of labels, see `AveragedMetric` and
    `ContingencyMetric`.

    Raises:
        ValueError: `beta` is negative or not finite.

    Memory and cost: 16 bytes per pair of labels that occurs.

    Reference: ``sklearn.metrics.fbeta_score``, whose `zero_division` is 0 by default.

    Example:
        >>> import streammetrics as sm
        >>> sm.FBeta(beta=2.0).update([0, 1, 1, 1], [0, 1, 0, 0]).compute()
        0.38461538461538464
    """

    beta: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.beta < math.inf:
            raise ValueError(f"beta={self.beta!r}: expected a finite number that is not negative")
        super().__post_init__()

    def read(self, table: Confusion) -> float | Floats:
        """Return the weighted harmonic mean."""
        square = self.beta**2
        return self.averaged(
            table, (1 + square) * table.tp, square * table.actual + table.predicted
        )


class F1(AveragedMetric):
    """Harmonic mean of precision and recall, 2 TP / (2 TP + FN + FP).

    Parameters are those of every averaged metric of labels, see `AveragedMetric` and
    `ContingencyMetric`.

    Memory and cost: 16 bytes per pair of labels that occurs.

    Reference: ``sklearn.metrics.f1_score``, whose `zero_division` is 0 by default.

    Example:
        >>> import streammetrics as sm
        >>> f1 = sm.F1(threshold=0.5)
        >>> f1.update([0, 1, 1, 0], [0.1, 0.4, 0.9, 0.2]).compute()
        0.6666666666666666
        >>> f1.update([1], [0.7]).compute()
        0.8
    """

    def read(self, table: Confusion) -> float | Floats:
        """Return 2 TP / (2 TP + FN + FP)."""
        return self.averaged(table, 2 * table.tp, table.actual + table.predicted)


class Jaccard(AveragedMetric):
    """Intersection over union of the rows of a class and those predicted so, TP / (TP + FP + FN).

    Parameters are those of every averaged metric of labels, see `AveragedMetric` and
    `ContingencyMetric`.

    Memory and cost: 16 bytes per pair of labels that occurs.

    Reference: ``sklearn.metrics.jaccard_score``, whose `zero_division` is 0 by default.

    Example:
        >>> import streammetrics as sm
        >>> sm.Jaccard().update([0, 1, 1, 1], [1, 1, 0, 1]).compute()
        0.5
    """

    def read(self, table: Confusion) -> float | Floats:
        """Return TP / (TP + FP + FN)."""
        return self.averaged(table, table.tp, table.actual + table.fp)


class MatthewsCorrcoef(ContingencyMetric):
    """Correlation of true and predicted class, (c n − Σ t p) / √((n² − Σ p²) (n² − Σ t²)).

    With c rows predicted right, t the rows and p the predictions of each class. Computed from
    integers and rounded once, so that it holds for billions of rows of one class. Undefined,
    `zero_division`, where all rows are of one class or predicted so.

    Parameters are those of every metric of labels, see `ContingencyMetric`.

    Memory and cost: 16 bytes per pair of labels that occurs.

    Reference: ``sklearn.metrics.matthews_corrcoef``, which gives 0 where it is undefined.

    Example:
        >>> import streammetrics as sm
        >>> sm.MatthewsCorrcoef().update([1, 1, 1, 0], [1, 0, 1, 1]).compute()
        -0.3333333333333333
    """

    def read(self, table: Confusion) -> float:
        """Return the multiclass correlation coefficient."""
        actual, predicted, tp = table.integers()
        n = actual.sum()
        covariance = tp.sum() * n - (actual * predicted).sum()
        spread = (n * n - (predicted**2).sum()) * (n * n - (actual**2).sum())
        if spread == 0:
            return self.zero_division
        return math.copysign(math.sqrt(Fraction(covariance**2, spread)), covariance)


class CohenKappa(ContingencyMetric):
    """Agreement beyond chance, 1 − Σ w C / Σ w E, with E[i, j] = t[i] p[j] / n.

    Args:
        weights: What disagreement of classes i and j costs: 1 (``None``), their distance
            (``"linear"``) or its square (``"quadratic"``) in the order of `classes`.

    The other parameters are those of every metric of labels, see `ContingencyMetric`. Undefined,
    `zero_division`, where chance already agrees.

    Memory and cost: 16 bytes per pair of labels that occurs.

    Reference: ``sklearn.metrics.cohen_kappa_score``.

    Example:
        >>> import streammetrics as sm
        >>> sm.CohenKappa().update([0, 1, 2, 2], [0, 2, 2, 2]).compute()
        0.5555555555555556
    """

    weights: Literal["linear", "quadratic"] | None = None

    def read(self, table: Confusion) -> float:
        """Return the weighted kappa."""
        actual, predicted, tp = table.integers()
        n = actual.sum()
        cells, _ = table.amount.integers()
        gap = np.abs(table.rows - table.columns).astype(object)
        place = np.arange(table.size).astype(object)
        if self.weights is None:
            seen, chance = n - tp.sum(), n * n - (actual * predicted).sum()
        elif self.weights == "linear":
            # Σ |i - j| t p is, over each gap between neighbours, the mass on its two sides.
            below, under = np.cumsum(actual), np.cumsum(predicted)
            seen = (gap * cells).sum()
            chance = (below * (n - under) + under * (n - below)).sum()
        else:
            seen = (gap**2 * cells).sum()
            chance = n * ((actual + predicted) * place**2).sum()
            chance -= 2 * (actual * place).sum() * (predicted * place).sum()
        return 1 - float(Fraction(seen * n, chance)) if chance else self.zero_division


class ClassificationReport(ContingencyMetric):
    """Precision, recall, F1 and support of every class, with accuracy and averages.

    A dictionary: one entry per class under ``str(label)``, then ``"accuracy"``, ``"macro avg"``
    and ``"weighted avg"``. `zero_division` is what a class without predictions or rows gets.

    Parameters are those of every metric of labels, see `ContingencyMetric`.

    Memory and cost: 16 bytes per pair of labels that occurs.

    Reference: ``sklearn.metrics.classification_report(output_dict=True)``.

    Example:
        >>> import streammetrics as sm
        >>> report = sm.ClassificationReport().update([0, 1, 1, 1], [0, 1, 1, 0]).compute()
        >>> report["1"]["recall"], report["accuracy"], report["macro avg"]["support"]
        (0.6666666666666666, 0.75, 4.0)
    """

    def read(self, table: Confusion) -> dict[str, Any]:
        """Return the report."""
        columns = {
            "precision": self._divided(table.tp, table.predicted),
            "recall": self._divided(table.tp, table.actual),
            "f1-score": self._divided(2 * table.tp, table.actual + table.predicted),
            "support": table.actual,
        }
        report: dict[str, Any] = {
            str(label): {name: float(column[place]) for name, column in columns.items()}
            for place, label in enumerate(table.labels)
        }
        report["accuracy"] = float(table.tp.sum()) / table.total
        for title, weight in (
            ("macro avg", np.ones(table.size)),
            ("weighted avg", table.actual),
        ):
            report[title] = {name: _mean(column, weight) for name, column in columns.items()}
            report[title]["support"] = table.total
        return report

    def nothing(self, table: Confusion) -> dict[str, Any]:
        """Return a report of nan with a support of 0."""
        entry = {"precision": math.nan, "recall": math.nan, "f1-score": math.nan, "support": 0.0}
        titles = [*map(str, table.labels), "macro avg", "weighted avg"]
        return {**{title: dict(entry) for title in titles}, "accuracy": math.nan}

    def _divided(self, numerator: Floats, denominator: Floats) -> Floats:
        values = np.full(len(numerator), self.zero_division)
        np.divide(numerator, denominator, out=values, where=denominator != 0)
        return values


def _mean(values: Floats, weight: Floats) -> float:
    defined = ~np.isnan(values)
    total = float(weight[defined].sum())
    return float((values[defined] * weight[defined]).sum()) / total if total else math.nan


class TopKAccuracy(Metric):
    """Share of rows whose true class is among the k highest scores.

    Among equal scores the class of the later column comes first, whatever the order of rows.

    Args:
        k: How many classes may be named.
        labels: The class of each column of scores; ``None``: the integers 0 to K - 1.
        nan_policy: ``"raise"``, or ``"omit"``: rows with a missing value are left out.

    Raises:
        ValueError: `k` is not positive.

    Memory and cost: two sums.

    Reference: ``sklearn.metrics.top_k_accuracy_score``.

    Example:
        >>> import streammetrics as sm
        >>> top = sm.TopKAccuracy(k=2)
        >>> top.update([0, 2], [[0.4, 0.5, 0.1], [0.3, 0.6, 0.1]]).compute()
        0.5
    """

    k: int = 2
    labels: tuple[Any, ...] | None = None
    nan_policy: Literal["raise", "omit"] = "raise"

    def __post_init__(self) -> None:
        if self.labels is not None:
            self.labels = one_kind(self.labels)
        if self.k < 1:
            raise ValueError(f"k={self.k!r}: expected a positive number of classes")
        super().__post_init__()

    def statistics(self) -> tuple[TopKHits]:
        """Return the hits."""
        return (TopKHits(k=self.k, labels=self.labels, nan_policy=self.nan_policy),)

    def update(self, y_true: Any, y_score: Any, *, sample_weight: Any = None) -> Self:
        """Take rows: labels, and (n, K) scores."""
        return self.feed({"y_true": y_true, "y_score": y_score, "sample_weight": sample_weight})

    def readout(self, counts: TopKHits) -> float:
        """Return hits over rows."""
        total = counts.total.fraction()
        return float(counts.hits.fraction() / total) if total else math.nan
