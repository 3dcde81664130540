"""Rows with several labels."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from streammetrics.core.confidence import Refusal
from streammetrics.core.configured import require
from streammetrics.core.constraints import NanPolicy
from streammetrics.core.metric import Metric, dependent
from streammetrics.core.results.values import LabelledArray
from streammetrics.core.types import FloatSequence, V_co
from streammetrics.metrics.classification.base import (
    check_multilabel,
    judged_column,
    label_tables,
    multilabel_options,
)
from streammetrics.metrics.classification.view import LabelCounts, RowCounts
from streammetrics.metrics.families import Family
from streammetrics.statistics.tables import (
    LabelTables,
    PartialLabelTables,
    RowTables,
)

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import Array, ArrayLike, Floats


class MultilabelMetric(Metric[V_co]):
    """Base class of metrics of rows that may have any number of labels.

    Args:
        threshold: ``None``: `update` takes ``y_true, y_pred``, both indicator matrices (n, L) of 0
            and 1, dense or sparse, or sets of `labels`. A number, or one per label: `update` takes
            ``y_true, y_score``, and a label is predicted if ``y_score >= threshold``.
        labels: The names of the labels, in the order of columns; ``None``: they are numbered.
        nan_policy: ``"raise"``, or ``"omit"``: rows with a missing value are left out.
        from_logits: Whether scores are logits; the threshold is then compared with their sigmoid.
        ignore_index: The value of a true label that is unknown; it is left out of its row.
    """

    threshold: float | FloatSequence | None = None
    labels: Any = None
    nan_policy: NanPolicy = "raise"
    from_logits: bool = False
    ignore_index: int | None = None

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
        counts: ArrayLike = None,
    ) -> Self:
        """Add a batch of rows: true and predicted labels, or labels and scores with a threshold.

        Args:
            y_true: The true labels: indicators (n, L), or n sets.
            y_pred: The predicted labels in the same form; without a threshold.
            y_score: The scores of all labels, (n, L); with a threshold.
            sample_weight: Non-negative weights, (n,).
            counts: How many rows each row stands for, (n,); whole numbers.

        Raises:
            InvalidBatchError: A column has a wrong type or shape, a missing value or an unknown
                label, or both or neither of `y_pred` and `y_score` are given; the state is
                unchanged.
        """
        name, second = judged_column(self, y_pred, y_score)
        return self.feed(
            {"y_true": y_true, name: second, "sample_weight": sample_weight, "counts": counts}
        )


class RowsMetric(MultilabelMetric[float]):
    """Base class of metrics that are a mean over rows of a value of the row's TP, FP and FN.

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
    """Subset accuracy (exact match ratio): the share of rows whose labels are all correct.

    Formula: Σ w [Y = Z] / Σ w, with Y the true and Z the predicted labels of a row.

    The other parameters are those of `MultilabelMetric`.

    Args:
        normalize: Whether to return the share of correct rows instead of their number.

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

    @dependent
    def value_range(self) -> tuple[float, float] | None:
        """From 0 to 1; a number of rows is unbounded."""
        return (0.0, 1.0) if self.normalize else None

    def readout(self, table: RowTables) -> float:
        """Return the share of correct rows, or their number."""
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

    def check_parameters(self) -> None:
        """Check that all labels are known."""
        super().check_parameters()
        known = "None; LabelAccuracy(average='micro') is 1 minus the loss of known labels"
        require(self, "ignore_index", self.ignore_index is None, known)

    def _of_rows(self, rows: RowCounts) -> Floats:
        return (rows.fp + rows.fn) / max(rows.kinds.width, 1)


class MultilabelConfusionMatrix(MultilabelMetric[LabelledArray]):
    """Confusion table of each label, (L, 2, 2): ``[[TN, FP], [FN, TP]]``.

    Formula: C_ij = Σ w [y = i, p = j], with i and j 0 or 1, for each label.

    Counts are integers; sums of fractional weights, or from 2**62 on, are floats. Without rows they
    are 0 for the given `labels`. Pass rows of one class each as sets of one label.

    The other parameters are those of `MultilabelMetric`.

    Args:
        normalize: ``"true"`` divides by the rows with the same truth, ``"pred"`` by those with the
            same prediction, ``"all"`` by all rows of the label; 0/0 is ``nan``. ``None``: counts.
        average: One table (2, 2) of all labels: ``"micro"`` their sum, ``"macro"`` their mean,
            ``"weighted"`` their mean weighted by the rows that have the label. ``None``: each.

    Raises:
        ValueError: Both `normalize` and `average` are given.

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

    _nan_reason = "a label has none of these rows, or there are no labels"

    normalize: Literal["true", "pred", "all"] | None = None
    average: Literal["micro", "macro", "weighted"] | None = None

    def check_parameters(self) -> None:
        """Check that tables are normalized or averaged, but not both."""
        super().check_parameters()
        one = self.normalize is None or self.average is None
        require(self, "normalize", one, "None with average=...")

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the counts of each label."""
        return (label_tables(self),)

    def readout(self, table: LabelTables | PartialLabelTables) -> LabelledArray:
        """Return the tables."""
        counts = LabelCounts.of(table, self.labels)
        sides = ("y_true", (0, 1)), ("y_pred", (0, 1))
        axes = (("label", tuple(counts.labels)), *sides)
        tables = counts.tables
        if self.normalize is not None:
            along = {"true": 2, "pred": 1}.get(self.normalize, (1, 2))
            cells = np.stack([counts.tn, counts.fp, counts.fn, counts.tp], axis=-1)
            cells = cells.reshape(-1, 2, 2)  # scaled, so that their sums are finite
            return LabelledArray(_divided(cells, cells.sum(axis=along, keepdims=True)), axes)
        if self.average is None:
            return LabelledArray(tables, axes)
        if self.average == "micro":
            return LabelledArray(tables.sum(axis=0), sides)
        weight = np.ones(len(tables)) if self.average == "macro" else counts.actual[0]
        share = _divided(weight, weight.sum())
        return LabelledArray(
            _divided((tables * share[:, None, None]).sum(axis=0), share.sum()), sides
        )


def _divided(amounts: Array, by: Array) -> Floats:
    with np.errstate(invalid="ignore"):
        quotients: Floats = amounts / by
    return quotients
