"""Metrics of the whole confusion table, top-k accuracy, and reports of many numbers."""

from __future__ import annotations

import math
from itertools import accumulate, repeat
from operator import add, mul
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, cast

import numpy as np

from streammetrics.core.arithmetic.exact import nearest
from streammetrics.core.columns.labels import Label, one_kind
from streammetrics.core.confidence import Refusal
from streammetrics.core.configured import require
from streammetrics.core.constraints import AtLeast, NanPolicy
from streammetrics.core.errors import InvalidBatchError
from streammetrics.core.metric import Metric, dependent
from streammetrics.core.results.values import LabelledArray, Report
from streammetrics.metrics.averages import lone_doubt, mean_of_classes, row_sums
from streammetrics.metrics.classification.base import (
    ContingencyMetric,
    check_multilabel,
    multilabel_options,
)
from streammetrics.metrics.classification.view import LabelCounts, RowCounts
from streammetrics.metrics.families import SEVERAL, Family
from streammetrics.statistics.tables import LabelTables, RowTables, TopKHits

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import Array, ArrayLike, ClassLabel, Floats, Numeric
    from streammetrics.metrics.classification.view import Confusion, Integers


class Accuracy(ContingencyMetric[float]):
    """Accuracy: the share of rows that are predicted correctly.

    Formula: Σ_i C_ii / n, with C_ij the rows of class i predicted as j.

    The other parameters are those of `ContingencyMetric`.

    Args:
        normalize: Whether to return the share of correct rows instead of their number.

    Reference: ``sklearn.metrics.accuracy_score``.

    Example:
        >>> import streammetrics as sm
        >>> sm.Accuracy().update(["cat", "dog", "dog"], ["cat", "dog", "cat"]).compute()
        0.6666666666666666
    """

    higher_is_better = True
    family = Family.HITS

    normalize: bool = True

    @dependent
    def value_range(self) -> tuple[float, float] | None:
        """From 0 to 1; a number of rows is unbounded."""
        return (0.0, 1.0) if self.normalize else None

    def read(self, table: Confusion) -> Floats:
        """Return the share of rows on the diagonal, or their number."""
        return self.ratio(table.hits, table.total) if self.normalize else table.unscaled(table.hits)


class ZeroOneLoss(ContingencyMetric[float]):
    """Zero-one loss: the share of rows that are predicted incorrectly.

    Formula: 1 - Σ_i C_ii / n, with C_ij the rows of class i predicted as j.

    The other parameters are those of `ContingencyMetric`.

    Args:
        normalize: Whether to return the share of incorrect rows instead of their number.

    Reference: ``sklearn.metrics.zero_one_loss``.

    Example:
        >>> import streammetrics as sm
        >>> sm.ZeroOneLoss().update(["cat", "dog", "dog"], ["cat", "dog", "cat"]).compute()
        0.3333333333333333
    """

    higher_is_better = False
    family = Family.MISSES

    normalize: bool = True

    @dependent
    def value_range(self) -> tuple[float, float] | None:
        """From 0 to 1; a number of rows is unbounded."""
        return (0.0, 1.0) if self.normalize else None

    def read(self, table: Confusion) -> Floats:
        """Return the share of rows off the diagonal, or their number."""
        misses = table.misses
        return self.ratio(misses, table.total) if self.normalize else table.unscaled(misses)


class BalancedAccuracy(ContingencyMetric[float]):
    """Balanced accuracy: the mean recall of the classes that have rows.

    Formula: mean_i (C_ii / t_i), with t_i the rows of class i.

    The other parameters are those of `ContingencyMetric`.

    Args:
        adjusted: Whether to rescale so that chance gives 0 and a perfect prediction 1.

    Reference: ``sklearn.metrics.balanced_accuracy_score``.

    Example:
        >>> import streammetrics as sm
        >>> sm.BalancedAccuracy().update([0, 0, 0, 1], [0, 0, 1, 1]).compute()
        0.8333333333333333
    """

    higher_is_better = True
    _nan_reason = "all rows are of one class"

    adjusted: bool = False

    @dependent
    def value_range(self) -> tuple[float, float]:
        """From 0 to 1, or from -1 to 1 if adjusted."""
        return (-1.0, 1.0) if self.adjusted else (0.0, 1.0)

    def read(self, table: Confusion) -> Floats:
        """Return the mean recall."""
        if self.adjusted:
            return np.array([self._above_chance(each) for each in table.integers()])
        recalls, seen = table.recalls()
        return np.asarray(row_sums(recalls, seen) / seen.sum(axis=1))

    def _above_chance(self, of: Integers) -> float:
        """Return (Σ recall - 1) / (K - 1), with recalls in units small enough to avoid rounding.

        For two classes the sum differs from 1 by more than a unit, or not at all.
        """
        actual, tp = of.actual, of.tp
        one = 1 << 2 * max(actual).bit_length() + 64
        recalls = [hits * one // rows for hits, rows in zip(tp, actual, strict=True) if rows]
        if len(recalls) < 2:
            return self._zero_by_zero
        above = sum(recalls) - one
        return above / ((len(recalls) - 1) * one) if abs(above) > len(recalls) else 0.0


class GMean(ContingencyMetric[float]):
    """G-mean: the geometric mean of the recalls of the classes that have rows.

    Formula: (Π_k r_k)^(1/K), with r_k the recall of class k of K.

    For two classes it is the square root of sensitivity times specificity. 0 if no row of a class
    is predicted correctly.

    Parameters are those of `ContingencyMetric`.

    Reference: Kubat and Matwin (1997); ``imblearn.metrics.geometric_mean_score``.

    Example:
        >>> import streammetrics as sm
        >>> sm.GMean().update([0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 1, 0]).compute()
        0.7071067811865476
    """

    higher_is_better = True
    value_range = (0.0, 1.0)

    def read(self, table: Confusion) -> Floats:
        """Return the geometric mean, from logarithms, because the product may underflow."""
        recalls, seen = table.recalls()
        count = seen.sum(axis=1)
        with np.errstate(divide="ignore"):
            logs = np.log(recalls)
        means: Floats = np.exp(row_sums(logs, seen) / count)
        return np.where(count == 2, np.sqrt(recalls.prod(axis=1, where=seen)), means)


class ExpectedCost(ContingencyMetric[float]):
    """Expected cost: the mean cost of rows, by true and predicted class.

    Formula: Σ_(i,j) C_ij cost_ij / n, with C_ij the rows of class i predicted as j.

    The other parameters are those of `ContingencyMetric`.

    Args:
        cost: The cost of a row of class i (row) that is predicted as class j (column), in the order
            of `labels`. Without `labels` the classes are 0 to K - 1; with a threshold the negative
            class comes first.

    Raises:
        ValueError: `cost` is not a square matrix of finite numbers with one row per class.

    Reference: Elkan (2001), "The Foundations of Cost-Sensitive Learning".

    Example:
        >>> import streammetrics as sm
        >>> sm.ExpectedCost(cost=((0, 1), (5, 0))).update([0, 1, 1, 0], [1, 1, 0, 0]).compute()
        1.5
    """

    higher_is_better = False
    family = Family.COST

    cost: tuple[tuple[float, ...], ...]

    @dependent
    def value_range(self) -> tuple[float, float]:
        """From the lowest to the highest cost."""
        return float(np.min(self.cost)), float(np.max(self.cost))

    def check_parameters(self) -> None:
        """Check that there is a cost for every pair of classes, and set the labels if needed."""
        costs = np.array([len(row) if isinstance(row, tuple) else -1 for row in self.cost])
        square = costs.size > 0 and bool((costs == costs.size).all())
        numbers = square and all(
            isinstance(x, int | float) and math.isfinite(x) for row in self.cost for x in row
        )
        require(self, "cost", numbers, "a square of finite numbers")
        if self.labels is None and self.threshold is None:
            self.labels = tuple(range(len(self.cost)))
        super().check_parameters()
        size = 2 if self.labels is None else len(self.labels)
        require(self, "cost", len(self.cost) == size, f"a square of {size} classes")

    def read(self, table: Confusion) -> Floats:
        """Return the mean cost."""
        terms = table.parts(self._costs(table) * (table.amount / table.total[table.group]))
        return np.array([math.fsum(each) for each in terms])

    def _costs(self, table: Confusion) -> Floats:
        """Return the cost of a row of each cell of a table."""
        return np.array(self.cost, np.float64)[table.rows, table.columns]


class MatthewsCorrcoef(ContingencyMetric[float]):
    """Matthews correlation coefficient: the correlation of the true and the predicted class.

    Formula: (c n - Σ_k t_k p_k) / √((n² - Σ_k p_k²) (n² - Σ_k t_k²)), with c of n rows predicted
    right, t_k rows of class k and p_k predictions of it.

    Computed from integers and rounded once, so it is accurate for billions of rows. Undefined (see
    `zero_division`) if all rows are of one class, or are predicted as one class.

    Parameters are those of `ContingencyMetric`.

    Reference: ``sklearn.metrics.matthews_corrcoef``, which gives 0 if it is undefined.

    Example:
        >>> import streammetrics as sm
        >>> sm.MatthewsCorrcoef().update([1, 1, 1, 0], [1, 0, 1, 1]).compute()
        -0.3333333333333333
    """

    higher_is_better = True
    value_range = (-1.0, 1.0)
    _nan_reason = "all rows are of one class, or predicted as one"

    def read(self, table: Confusion) -> Floats:
        """Return the multiclass correlation coefficient."""
        return np.array(list(map(self._correlation, table.integers())))

    def _correlation(self, counts: Integers) -> float:
        actual, predicted, tp, _ = counts
        n = sum(actual)
        covariance = sum(tp) * n - _dot(actual, predicted)
        spread = (n * n - _dot(predicted, predicted)) * (n * n - _dot(actual, actual))
        if spread == 0:
            return self._zero_by_zero
        size = math.sqrt(covariance**2 / spread)  # quotients of integers are rounded once
        return size if covariance > 0 else 0.0 - size


class CohenKappa(ContingencyMetric[float]):
    """Cohen's kappa: agreement of true and predicted classes beyond chance.

    Formula: 1 - Σ w C / Σ w E, with C_ij the rows of class i predicted as j, E_ij = t_i p_j / n
    those expected by chance, and w_ij the cost of the disagreement.

    Computed from integers and rounded once, as for `MatthewsCorrcoef`.

    Undefined (see `zero_division`) if agreement is complete by chance alone.

    The other parameters are those of `ContingencyMetric`.

    Args:
        weights: The cost of a disagreement between classes i and j: 1 (``None``), |i - j|
            (``"linear"``) or its square (``"quadratic"``), by their positions in `classes`.

    Reference: ``sklearn.metrics.cohen_kappa_score``.

    Example:
        >>> import streammetrics as sm
        >>> sm.CohenKappa().update([0, 1, 2, 2], [0, 2, 2, 2]).compute()
        0.5555555555555556
    """

    higher_is_better = True
    value_range = (-1.0, 1.0)
    family = Family.KAPPA
    _nan_reason = "all rows are of one class and predicted as it, or of labels that are left out"

    weights: Literal["linear", "quadratic"] | None = None

    @property
    def _takes_others(self) -> bool:
        """Whether there may be other labels; their rows are left out."""
        return self.labels is not None

    def read(self, table: Confusion) -> Floats:
        """Return the weighted kappa."""
        table = table.within()
        apart = table.parts(np.abs(table.rows - table.columns)) if self.weights else repeat([])
        return np.array(list(map(self._agreement, table.integers(), apart)))

    def _agreement(self, counts: Integers, gaps: list[int]) -> float:
        actual, predicted, tp, cells = counts
        n = sum(actual)
        if self.weights is None:
            seen, chance = n - sum(tp), n * n - _dot(actual, predicted)
            return (chance - seen * n) / chance if chance else self._zero_by_zero
        if self.weights == "linear":
            # Σ |i - j| t p adds up the pairs across each gap between neighbouring classes.
            below, under = list(accumulate(actual)), list(accumulate(predicted))
            seen = _dot(gaps, cells)
            chance = n * (sum(below) + sum(under)) - 2 * _dot(below, under)
        else:
            places = range(len(actual))
            seen = _dot(map(mul, gaps, gaps), cells)
            chance = n * _dot(map(add, actual, predicted), map(mul, places, places))
            chance -= 2 * _dot(actual, places) * _dot(predicted, places)
        return (chance - seen * n) / chance if chance else self._zero_by_zero


def _dot(one: Iterable[int], other: Iterable[int]) -> int:
    return sum(map(mul, one, other))


class TopKAccuracy(Metric[float]):
    """Top-k accuracy: the share of rows whose true class is among the k highest scores.

    Formula: Σ w [rank_y <= k] / Σ w, with rank_y the rank of the true class.

    If scores are equal, the class of the later column ranks first. Scores (n,) are probabilities of
    the positive of two classes, which ranks first if its score is above 0.5; they are allowed only
    for ``k=1``.

    Args:
        k: The number of highest scores that count, at least 1.
        labels: The class of each column of scores; ``None``: the integers 0 to K - 1.
        pos_label: The positive class of (n,) scores. ``None``: 1, with labels 0 and 1, -1 and 1, or
            booleans; any other labels raise.
        nan_policy: ``"raise"``, or ``"omit"``: rows with a missing value are left out.
        from_logits: Whether scores are logits: scores (n,) are then compared with 0 instead of 0.5.
            For (n, K) scores it makes no difference.
        ignore_index: Rows with this true label are left out, regardless of their other values.
        normalize: Whether to return the share of correct rows instead of their number.

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
    family = Family.TOP_K

    k: Annotated[int, AtLeast(1)] = 2
    labels: Any = None
    nan_policy: NanPolicy = "raise"
    from_logits: bool = False
    ignore_index: int | None = None
    normalize: bool = True
    pos_label: Label | None = None

    def check_parameters(self) -> None:
        """Convert the labels to one type."""
        self.labels = one_kind(self.labels, self.ignore_index)

    @dependent
    def value_range(self) -> tuple[float, float] | None:
        """From 0 to 1; a number of rows is unbounded."""
        return (0.0, 1.0) if self.normalize else None

    def statistics(self) -> tuple[TopKHits]:
        """Return the hits."""
        hits = TopKHits(
            k=self.k,
            labels=self.labels,
            pos_label=self.pos_label,
            nan_policy=self.nan_policy,
            ignore_index=self.ignore_index,
            from_logits=self.from_logits,
        )
        return (hits,)

    def update(
        self,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        sample_weight: ArrayLike = None,
        counts: ArrayLike = None,
    ) -> Self:
        """Add a batch of rows: labels (n,), and scores (n, K) or (n,)."""
        return self.feed(
            {"y_true": y_true, "y_score": y_score, "sample_weight": sample_weight, "counts": counts}
        )

    def readout(self, counts: TopKHits) -> float:
        """Return the share of hits, or their number."""
        total = counts.total.fraction()
        if not self.normalize:
            return nearest(counts.hits.fraction())
        return nearest(counts.hits.fraction() / total if total else None)


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

    def _listed(self, values: Numeric, table: Confusion) -> list[LabelledArray]:
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
