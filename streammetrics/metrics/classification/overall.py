"""Classification as a whole: the table itself, shares of it, agreement, and reports."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import numpy as np

from streammetrics.core.columns.labels import one_kind
from streammetrics.core.constraints import AtLeast, NanPolicy
from streammetrics.core.errors import InvalidBatchError
from streammetrics.core.metric import Metric
from streammetrics.core.results.values import LabelledArray, Report
from streammetrics.metrics.averages import mean_of_classes
from streammetrics.metrics.classification.base import ContingencyMetric
from streammetrics.statistics.tables.topk import TopKHits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streammetrics.metrics.classification.view import Confusion

    Floats = NDArray[np.float64]

__all__ = [
    "Accuracy",
    "BalancedAccuracy",
    "ClassificationReport",
    "CohenKappa",
    "ConfusionMatrix",
    "MatthewsCorrcoef",
    "TopKAccuracy",
]


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


class Accuracy(ContingencyMetric[float]):
    """Share of rows predicted right, Σ C[i, i] / n.

    Parameters are those of every metric of labels, see `ContingencyMetric`.

    Reference: ``sklearn.metrics.accuracy_score``.

    Example:
        >>> import streammetrics as sm
        >>> sm.Accuracy().update(["cat", "dog", "dog"], ["cat", "dog", "cat"]).compute()
        0.6666666666666666
    """

    def read(self, table: Confusion) -> float:
        """Return the share of the diagonal."""
        return self.ratio(table.hits, table.total)


class BalancedAccuracy(ContingencyMetric[float]):
    """Mean recall of the classes that have rows.

    The other parameters are those of every metric of labels, see `ContingencyMetric`.

    Args:
        adjusted: Rescale so that chance is 0 and a perfect prediction 1.

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


class MatthewsCorrcoef(ContingencyMetric[float]):
    """Correlation of true and predicted class, (c n − Σ t p) / √((n² − Σ p²) (n² − Σ t²)).

    With c rows predicted right, t the rows and p the predictions of each class. Computed from
    integers and rounded once, so that it holds for billions of rows of one class. Undefined,
    `zero_division`, where all rows are of one class or predicted so.

    Parameters are those of every metric of labels, see `ContingencyMetric`.

    Reference: ``sklearn.metrics.matthews_corrcoef``, which gives 0 where it is undefined.

    Example:
        >>> import streammetrics as sm
        >>> sm.MatthewsCorrcoef().update([1, 1, 1, 0], [1, 0, 1, 1]).compute()
        -0.3333333333333333
    """

    def read(self, table: Confusion) -> float:
        """Return the multiclass correlation coefficient."""
        actual, predicted, tp, _ = table.integers()
        n = actual.sum()
        covariance = tp.sum() * n - (actual * predicted).sum()
        spread = (n * n - (predicted**2).sum()) * (n * n - (actual**2).sum())
        if spread == 0:
            return self._zero_by_zero
        size = math.sqrt(covariance**2 / spread)  # integers round once
        return size if covariance > 0 else 0.0 - size


class CohenKappa(ContingencyMetric[float]):
    """Agreement beyond chance, 1 − Σ w C / Σ w E, with E[i, j] = t[i] p[j] / n.

    The other parameters are those of every metric of labels, see `ContingencyMetric`. Undefined,
    `zero_division`, where chance already agrees.

    Args:
        weights: What disagreement of classes i and j costs: 1 (``None``), their distance
            (``"linear"``) or its square (``"quadratic"``) in the order of `classes`.

    Reference: ``sklearn.metrics.cohen_kappa_score``.

    Example:
        >>> import streammetrics as sm
        >>> sm.CohenKappa().update([0, 1, 2, 2], [0, 2, 2, 2]).compute()
        0.5555555555555556
    """

    weights: Literal["linear", "quadratic"] | None = None

    def read(self, table: Confusion) -> float:
        """Return the weighted kappa."""
        actual, predicted, tp, cells = table.integers()
        n = actual.sum()
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
        return 1 - seen * n / chance if chance else self._zero_by_zero


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


class TopKAccuracy(Metric[float]):
    """Share of rows whose true class is among the k highest scores.

    Among equal scores the class of the later column comes first, whatever the order of rows.

    Args:
        k: How many classes may be named.
        labels: The class of each column of scores; ``None``: the integers 0 to K - 1.
        nan_policy: ``"raise"``, or ``"omit"``: rows with a missing value are left out.
        from_logits: Whether scores are logits; their order within a row is the same.
        ignore_index: Rows with this true label are left out, whatever else they hold.

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

    higher_is_better = True

    k: Annotated[int, AtLeast(1)] = 2
    labels: Any = None
    nan_policy: NanPolicy = "raise"
    from_logits: bool = False
    ignore_index: int | None = None

    _younger = (("from_logits", False), ("ignore_index", None))

    def check_parameters(self) -> None:
        """Bring the labels to one kind."""
        if self.labels is not None:
            self.labels = one_kind(self.labels, self.ignore_index)

    def statistics(self) -> tuple[TopKHits]:
        """Return the hits."""
        hits = TopKHits(
            k=self.k,
            labels=self.labels,
            nan_policy=self.nan_policy,
            ignore_index=self.ignore_index,
        )
        return (hits,)

    def update(self, y_true: Any, y_score: Any, *, sample_weight: Any = None) -> Self:
        """Take rows: labels, and (n, K) scores."""
        return self.feed({"y_true": y_true, "y_score": y_score, "sample_weight": sample_weight})

    def readout(self, counts: TopKHits) -> float:
        """Return hits over rows."""
        total = counts.total.fraction()
        return float(counts.hits.fraction() / total) if total else math.nan
