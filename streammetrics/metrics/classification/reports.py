"""The confusion matrix, and a report of several numbers per class."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from streammetrics.core.confidence import Refusal
from streammetrics.core.configured import require
from streammetrics.core.errors import InvalidBatchError
from streammetrics.core.results.labelled import LabelledArray
from streammetrics.core.results.values import Report
from streammetrics.metrics.averages import lone_doubt, mean_of_classes
from streammetrics.metrics.classification.base import (
    ContingencyMetric,
    check_multilabel,
    multilabel_options,
)
from streammetrics.metrics.classification.multilabel import LabelCounts, RowCounts
from streammetrics.metrics.families import SEVERAL, Family
from streammetrics.statistics.tables.multilabel import LabelTables, RowTables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import Array, ClassLabel, Floats
    from streammetrics.metrics.classification.view import Confusion

# The entries of a report besides those of the classes.
_ENTRIES = {"accuracy", "micro avg", "macro avg", "weighted avg", "samples avg"}


class ConfusionMatrix(ContingencyMetric[LabelledArray]):
    """Confusion matrix: the rows of each class (row) by predicted class (column).

    Formula: C_ij = Σ w [y = i, p = j], with y the true and p the predicted class of a row.

    Counts are integers; sums of fractional weights, or from 2**62 on, are floats. Without rows they
    are 0. If `labels` is a subset, only rows whose two labels are both in it count.

    The other parameters are those of `ContingencyMetric`.

    Args:
        normalize: ``"true"`` divides by the rows of the true class, ``"pred"`` by those of the
            predicted class, ``"all"`` by all rows; 0/0 gives `zero_division`. ``None``: counts.

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
    family = Family.CONFUSION_MATRIX
    _incomparable = SEVERAL

    normalize: Literal["true", "pred", "all"] | None = None

    @property
    def _takes_others(self) -> bool:
        """Whether there may be other labels; their rows are left out."""
        return self.labels is not None

    def read(self, table: Confusion) -> Array:
        """Return the matrices, (groups, classes, classes)."""
        found = [self._matrix(each) for each in table.within().each()]
        doubts = [why for _, why in found]
        table.doubt(np.array(doubts) != "", doubts.__getitem__)
        return np.stack([matrix for matrix, _ in found])

    def _listed(self, values: Any, table: Confusion) -> list[LabelledArray]:
        """Return the matrix of each group with its labels."""
        return [_labelled(matrix, table.labels_of(group)) for group, matrix in enumerate(values)]

    def _matrix(self, table: Confusion) -> tuple[Array, str]:
        if self.normalize is None and table.counts is not None:
            counts = np.zeros((table.size, table.size), np.int64)
            counts[table.rows, table.columns] = table.counts
            return counts, ""
        matrix = np.zeros((table.size, table.size))
        matrix[table.rows, table.columns] = table.amount
        if self.normalize is None:
            return table.unscaled(matrix), ""
        by = {
            "true": table.actual.T,
            "pred": table.predicted,
            "all": table.total[:, None],
        }[self.normalize]
        shares = self.ratio(matrix, by)
        what, side = ("predictions of", table.predicted[0])
        if self.normalize != "pred":
            what, side = ("rows of", table.actual[0])
        why = lone_doubt(table.labels, np.diag(shares), {what: side == 0})
        return shares, why

    def _nothing(self, table: Confusion) -> LabelledArray:
        """Return zeros, or nan if the matrix is normalized."""
        shape = (table.kept, table.kept)
        zeros = np.zeros(shape, np.int64)
        matrix = zeros if self.normalize is None else np.full(shape, math.nan)
        return _labelled(matrix, table.labels)


def _labelled(matrix: Array, labels: Sequence[ClassLabel]) -> LabelledArray:
    return LabelledArray(matrix, (("y_true", tuple(labels)), ("y_pred", tuple(labels))))


class ClassificationReport(ContingencyMetric[Report]):
    """Classification report: precision, recall, F1 and support of every class, and averages.

    Formula: P = TP / (TP + FP), R = TP / (TP + FN), F1 = 2 P R / (P + R)

    The result is a dictionary with one entry per class under ``str(label)``, then ``"accuracy"``,
    ``"macro avg"`` and ``"weighted avg"``. 0/0 gives `zero_division`. If `labels` is a subset, or
    with `multilabel`, ``"micro avg"`` replaces ``"accuracy"``. With `multilabel` a last entry
    ``"samples avg"`` is the mean over rows.

    The other parameters are those of `ContingencyMetric`.

    Args:
        multilabel: Whether a row may have any number of labels, as in `AveragedMetric`.

    Reference: ``sklearn.metrics.classification_report(output_dict=True)``.

    Example:
        >>> import streammetrics as sm
        >>> report = sm.ClassificationReport().update([0, 1, 1, 1], [0, 1, 1, 0]).compute()
        >>> report["1"]["recall"], report["accuracy"], report["macro avg"]["support"]
        (0.6666666666666666, 0.75, 4.0)
        >>> several = sm.ClassificationReport(multilabel=True)
        >>> several.update([[1, 0], [1, 1]], [[1, 0], [0, 1]]).compute()["samples avg"]["recall"]
        0.75
    """

    higher_is_better = None
    family = Refusal(
        "its entries have: Accuracy, and Precision, Recall and F1 with average=None, 'macro' or "
        "'weighted', read the same table"
    )
    _incomparable = SEVERAL

    multilabel: bool = False

    def check_parameters(self) -> None:
        """Check that no parameter contradicts `multilabel`."""
        if not self.multilabel:
            super().check_parameters()
            return
        require(self, "ignore_index", self.ignore_index is None, "None with multilabel=True")
        check_multilabel(self)

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the table of labels; with `multilabel` the counts per label and per row."""
        if not self.multilabel:
            return super().statistics()
        options = multilabel_options(self)
        return LabelTables(**options), RowTables(**options)

    @property
    def _takes_others(self) -> bool:
        """Whether rows may have labels besides the given ones; these then count as wrong."""
        return self.labels is not None

    def _confusion(self, table: Any, rows: object = None) -> Confusion:
        """Return the counts per class; with `multilabel` per label."""
        if isinstance(table, LabelTables):
            return cast("Confusion", LabelCounts.of(table, self.labels))
        return super()._confusion(table)

    def readout(self, table: object, rows: object = None) -> Report:
        """Return the report; with `multilabel` from the counts per label and per row."""
        return self._of_tables(table, *([] if rows is None else [rows]))[0]

    def _judged(self, *statistics: Any) -> tuple[Report, str]:
        return self._of_tables(*statistics)

    def _of_tables(self, *statistics: Any) -> tuple[Report, str]:
        report, doubt = super()._judged(statistics[0])
        if self.multilabel:
            rows = RowCounts.of(statistics[1], joined=False)
            of_rows = self._columns(cast("Confusion", rows))
            entry: dict[str, float] = {}
            doubts = [doubt]
            for name, column in of_rows.items():
                entry[name] = float(rows.mean(column, self.zero_division)[0])
                why = rows.why(0) if np.isnan(column).any() else ""
                doubts.append(why and f"of the {name}s of rows {why}")
            doubt = "; and ".join(filter(None, doubts))
            report["samples avg"] = {**entry, "support": report["macro avg"]["support"]}
        return report, doubt

    def _columns(self, table: Confusion) -> dict[str, Floats]:
        """Return precision, recall and F1 of each class or kind of row."""
        tp, actual, predicted = (
            side[:, : table.kept] for side in (table.tp, table.actual, table.predicted)
        )
        return {
            "precision": self.ratio(tp, predicted),
            "recall": self.ratio(tp, actual),
            "f1-score": self.ratio(2 * tp, actual + predicted),
        }

    def read(self, table: Confusion) -> list[Report]:
        """Return the reports."""
        found = [self._report(each) for each in table.each()]
        doubts = [why for _, why in found]
        table.doubt(np.array(doubts) != "", doubts.__getitem__)
        return [report for report, _ in found]

    def _report(self, table: Confusion) -> tuple[Report, str]:
        columns, kept = (
            {name: of[0] for name, of in self._columns(table).items()},
            slice(table.kept),
        )
        actual = table.actual[0, kept]
        support = table.unscaled(actual).tolist()
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
        total = float(table.unscaled(actual.sum()))
        if self.multilabel or table.kept < table.size:
            report["micro avg"] = {**self._micro(table), "support": total}
        else:
            report["accuracy"] = float(table.tp.sum() / table.total[0])
        doubts = {}
        for title, weight in (("macro avg", np.ones(table.kept)), ("weighted avg", actual)):
            report[title] = {}
            for name, column in columns.items():
                report[title][name], doubt = mean_of_classes(
                    column,
                    weight,
                    lambda: table.seen[0, kept],
                    table.labels,
                    self.zero_division,
                    f"the {name} of ",
                )
                doubts[doubt] = title
            report[title]["support"] = total
        return report, "; and ".join(filter(None, doubts))

    def _micro(self, table: Confusion) -> dict[str, float]:
        """Return precision, recall and F1 of the sums over classes."""
        tp, actual, predicted = (
            side[0, : table.kept].sum() for side in (table.tp, table.actual, table.predicted)
        )
        return {
            "precision": float(self.ratio(tp, predicted)),
            "recall": float(self.ratio(tp, actual)),
            "f1-score": float(self.ratio(2 * tp, actual + predicted)),
        }

    def _nothing(self, table: Confusion) -> Report:
        """Return a report of nan with a support of 0."""
        entry = {"precision": math.nan, "recall": math.nan, "f1-score": math.nan, "support": 0.0}
        averages = ["macro avg", "weighted avg"]
        if self.multilabel:
            averages = ["micro avg", *averages]
        report = Report({title: dict(entry) for title in [*map(str, table.labels), *averages]})
        if not self.multilabel:
            report["accuracy"] = math.nan
        return report
