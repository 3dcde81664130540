"""Metrics of whole rows with several labels, and the confusion table of each label."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from streammetrics.core.confidence import Refusal
from streammetrics.core.constraints import NanPolicy
from streammetrics.core.metric import Metric
from streammetrics.core.results.labelled import LabelledArray
from streammetrics.core.types import V_co
from streammetrics.metrics.classification.parameters import (
    check_multilabel,
    judged_column,
    multilabel_options,
)
from streammetrics.metrics.classification.several import LabelCounts, RowCounts
from streammetrics.metrics.families import Family
from streammetrics.statistics.tables.multilabel import LabelTables, RowTables

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import ArrayLike, Floats

__all__ = ["HammingLoss", "MultilabelConfusionMatrix", "SubsetAccuracy"]


class MultilabelMetric(Metric[V_co]):
    """Base of the metrics of rows that may have any number of labels.

    Args:
        threshold: ``None``: `update` takes ``y_true, y_pred``, both indicator matrices (n, L) of 0
            and 1, dense or sparse, or sets of `labels`. A number, or one per label: it takes
            ``y_true, y_score``, and a label is predicted where ``y_score >= threshold``.
        labels: The names of the labels, in the order of columns; ``None``: they are numbered.
        nan_policy: ``"raise"``, or ``"omit"``: rows with a missing value are left out.
        from_logits: Whether scores are logits; the threshold is then compared with their sigmoid.
    """

    threshold: float | tuple[float, ...] | None = None
    labels: Any = None
    nan_policy: NanPolicy = "raise"
    from_logits: bool = False

    def check_parameters(self) -> None:
        """Check the labels and the thresholds."""
        check_multilabel(self)

    def update(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike = None,
        *,
        y_score: ArrayLike = None,
        sample_weight: ArrayLike = None,
    ) -> Self:
        """Add a batch of rows: true and predicted labels, or with a threshold labels and scores.

        Args:
            y_true: The true labels: indicators (n, L), or n sets.
            y_pred: The predicted labels in the same form; without a threshold.
            y_score: The scores of all labels, (n, L); with a threshold.
            sample_weight: Non-negative weights, (n,).

        Raises:
            InvalidBatchError: A column has a wrong type or shape, a missing value or an unknown
                label, or both or neither of `y_pred` and `y_score` are given; the state is
                unchanged.
        """
        name, second = judged_column(self, y_pred, y_score)
        return self.feed({"y_true": y_true, name: second, "sample_weight": sample_weight})


class RowsMetric(MultilabelMetric[float]):
    """Base of the metrics that are a mean over rows, of a value of the row's TP, FP and FN.

    Memory and cost: 16 bytes for each combination of these counts that occurs.
    """

    _formula = ("readout", "_of_rows")
    family = Family.ROWS

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the number of rows of each kind."""
        return (RowTables(**multilabel_options(self)),)

    _nan_reason = "the weights are beyond what a float64 holds"

    def readout(self, table: RowTables) -> float:
        """Return the mean over rows."""
        rows = RowCounts.of(table, joined=False)
        return float(rows.mean(self._of_rows(rows), None)[0])

    @abstractmethod
    def _of_rows(self, rows: RowCounts) -> Floats:
        """Return the value of each kind of row, (1, m)."""


class SubsetAccuracy(RowsMetric):
    """Subset accuracy (exact match ratio): the share of rows with every label right.

    Formula: Σ w [Y = Z] / Σ w, with Y the true and Z the predicted labels of a row.

    The other parameters are those of `MultilabelMetric`.

    Args:
        normalize: Whether to return the share of rows that are right, or else their number.

    Reference: ``sklearn.metrics.accuracy_score`` of indicators.

    Example:
        >>> import streammetrics as sm
        >>> sm.SubsetAccuracy().update([[0, 1, 1], [1, 0, 0]], [[0, 1, 1], [1, 1, 0]]).compute()
        0.5
        >>> named = sm.SubsetAccuracy(labels=["cat", "dog"])
        >>> named.update([{"cat"}, set(), {"cat", "dog"}], [{"cat"}, set(), {"dog"}]).compute()
        0.6666666666666666
    """

    higher_is_better = True
    family = Family.SUBSETS
    _nan_reason = RowsMetric._nan_reason

    normalize: bool = True

    @property
    def value_range(self) -> tuple[float, float] | None:  # type: ignore[override]  # by a parameter
        """From 0 to 1; a number of rows has no end."""
        return (0.0, 1.0) if self.normalize else None

    def readout(self, table: RowTables) -> float:
        """Return the share of rows that are right, or their number."""
        rows = RowCounts.of(table, joined=False)
        if self.normalize or not rows.amount.size:
            return float(rows.mean(self._of_rows(rows), None)[0])
        return math.fsum(rows.amount[self._of_rows(rows)[0] > 0])

    def _of_rows(self, rows: RowCounts) -> Floats:
        right: Floats = ((rows.fp == 0) & (rows.fn == 0)).astype(np.float64)
        return right


class HammingLoss(RowsMetric):
    """Hamming loss: the share of labels that are wrong.

    Formula: Σ (FP + FN) / (n L), with n rows of L labels.

    Parameters are those of `MultilabelMetric`.

    Reference: ``sklearn.metrics.hamming_loss`` of indicators.

    Example:
        >>> import streammetrics as sm
        >>> sm.HammingLoss().update([[0, 1, 1], [1, 0, 0]], [[0, 1, 1], [1, 1, 0]]).compute()
        0.16666666666666666
    """

    higher_is_better = False
    value_range = (0.0, 1.0)

    def _of_rows(self, rows: RowCounts) -> Floats:
        return (rows.fp + rows.fn) / max(rows.kinds.width, 1)


class MultilabelConfusionMatrix(MultilabelMetric[LabelledArray]):
    """Confusion table of each label, (L, 2, 2): ``[[TN, FP], [FN, TP]]``.

    Formula: C_ij = Σ w [y = i, p = j], with i and j 0 or 1, for each label.

    Counts are integers; sums of fractional weights, or from 2**62 on, are floats. Without rows they
    are 0 for `labels` that are given.

    Parameters are those of `MultilabelMetric`.

    Memory and cost: 24 bytes per label.

    Reference: ``sklearn.metrics.multilabel_confusion_matrix``.

    Example:
        >>> import streammetrics as sm
        >>> tables = sm.MultilabelConfusionMatrix(labels=["cat", "dog"])
        >>> tables.update([[0, 1], [1, 1], [0, 0]], [[0, 1], [1, 0], [1, 0]]).compute().tolist()
        [[[1, 1], [0, 1]], [[1, 0], [1, 1]]]
    """

    family = Refusal(
        "its counts grow with the rows; Recall(average=None, multilabel=True) has shares"
    )

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the counts of each label."""
        return (LabelTables(**multilabel_options(self)),)

    def readout(self, table: LabelTables) -> LabelledArray:
        """Return the tables."""
        counts = LabelCounts.of(table, self.labels)
        sides = ("y_true", (0, 1)), ("y_pred", (0, 1))
        axes = (("label", tuple(counts.labels)), *sides)
        return LabelledArray(counts.tables, axes)
