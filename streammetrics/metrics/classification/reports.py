"""The table of labels itself, and reports of several numbers a class."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from streammetrics.core.errors import InvalidBatchError
from streammetrics.core.results.values import LabelledArray, Report
from streammetrics.metrics.averages import mean_of_classes
from streammetrics.metrics.classification.base import ContingencyMetric

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streammetrics.metrics.classification.view import Confusion

__all__ = ["ClassificationReport", "ConfusionMatrix"]

_ENTRIES = {"accuracy", "macro avg", "weighted avg"}  # of a report, beside those of classes


class ConfusionMatrix(ContingencyMetric[LabelledArray]):
    """Rows of each class (row) by predicted class (column), C[i, j].

    Counts are integers; with weights that are not whole, or from 2**62 on, they are sums as
    floats. Without rows they are 0.

    The other parameters are those of every metric of labels, see `ContingencyMetric`.

    Args:
        normalize: ``"true"`` divides by the rows of the true class, ``"pred"`` by those of the
            predicted one, ``"all"`` by all rows; a class without rows gives `zero_division`.

    Memory and cost: 16 bytes per pair of labels that occurs; the result is (K, K).

    Reference: ``sklearn.metrics.confusion_matrix``, where a class without rows gives 0.

    Example:
        >>> import streammetrics as sm
        >>> sm.ConfusionMatrix().update([0, 1, 2, 2], [0, 2, 2, 2]).compute()
        array([[1, 0, 0],
               [0, 0, 1],
               [0, 0, 2]])
    """

    higher_is_better = None

    normalize: Literal["true", "pred", "all"] | None = None

    def read(self, table: Confusion) -> LabelledArray:
        """Return the matrix."""
        if self.normalize is None and table.counts is not None:
            whole = np.zeros((table.size, table.size), np.int64)
            whole[table.rows, table.columns] = table.counts
            return _labelled(whole, table)
        matrix = np.zeros((table.size, table.size))
        matrix[table.rows, table.columns] = table.amount
        if self.normalize is None:
            return _labelled(table.unscaled(matrix), table)
        by = {
            "true": table.actual[:, None],
            "pred": table.predicted[None, :],
            "all": np.full((1, 1), table.total),
        }[self.normalize]
        return _labelled(self._ratios(matrix, by), table)

    def _nothing(self, table: Confusion) -> LabelledArray:
        """Return zeros, or nan where they would be divided by nothing."""
        shape = (table.size, table.size)
        zeros = np.zeros(shape, np.int64)
        return _labelled(zeros if self.normalize is None else np.full(shape, math.nan), table)


def _labelled(matrix: NDArray[Any], table: Confusion) -> LabelledArray:
    labels = tuple(table.labels)
    return LabelledArray(matrix, (("y_true", labels), ("y_pred", labels)))


class ClassificationReport(ContingencyMetric[Report]):
    """Precision, recall, F1 and support of every class, with accuracy and averages.

    A dictionary: one entry per class under ``str(label)``, then ``"accuracy"``, ``"macro avg"``
    and ``"weighted avg"``. What a class without predictions or rows gets, `zero_division` says.

    Parameters are those of every metric of labels, see `ContingencyMetric`.

    Reference: ``sklearn.metrics.classification_report(output_dict=True)``.

    Example:
        >>> import streammetrics as sm
        >>> report = sm.ClassificationReport().update([0, 1, 1, 1], [0, 1, 1, 0]).compute()
        >>> report["1"]["recall"], report["accuracy"], report["macro avg"]["support"]
        (0.6666666666666666, 0.75, 4.0)
    """

    higher_is_better = None

    def read(self, table: Confusion) -> Report:
        """Return the report."""
        columns = {
            "precision": self._ratios(table.tp, table.predicted),
            "recall": self._ratios(table.tp, table.actual),
            "f1-score": self._ratios(2 * table.tp, table.actual + table.predicted),
        }
        support = table.unscaled(table.actual).tolist()
        shared = [title for title in map(str, table.labels) if title in _ENTRIES]
        if shared:
            raise InvalidBatchError(
                f"a class is called {shared[0]!r}, as an entry of every report is: rename it, or "
                "read Precision, Recall and F1 with average=None"
            )
        report = Report(
            {
                str(label): {
                    **{name: float(column[place]) for name, column in columns.items()},
                    "support": support[place],
                }
                for place, label in enumerate(table.labels)
            }
        )
        report["accuracy"] = float(table.tp.sum()) / table.total
        doubts = {}
        for title, weight in (
            ("macro avg", np.ones(table.size)),
            ("weighted avg", table.actual),
        ):
            report[title] = {}
            for name, column in columns.items():
                report[title][name], doubt = mean_of_classes(
                    column,
                    weight,
                    lambda: table.seen,
                    table.labels,
                    self.zero_division,
                    f"the {name} of ",
                )
                doubts[doubt] = title
            report[title]["support"] = float(table.unscaled(table.total))
        table.doubt = "; and ".join(filter(None, doubts))
        return report

    def _nothing(self, table: Confusion) -> Report:
        """Return a report of nan with a support of 0."""
        entry = {"precision": math.nan, "recall": math.nan, "f1-score": math.nan, "support": 0.0}
        titles = [*map(str, table.labels), "macro avg", "weighted avg"]
        return Report({**{title: dict(entry) for title in titles}, "accuracy": math.nan})
