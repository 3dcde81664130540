"""Shared parts of metrics of labels: parameters and tables."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeGuard, cast

import numpy as np

from streammetrics.core.columns.labels import Label, one_kind
from streammetrics.core.columns.scores import clear_pair, log_odds
from streammetrics.core.configured import require
from streammetrics.core.constraints import NanPolicy
from streammetrics.core.errors import Hint, InvalidBatchError
from streammetrics.core.metric import GroupValues, Metric, has_nan
from streammetrics.core.statistic import GroupedStates
from streammetrics.core.types import FloatSequence, V_co
from streammetrics.metrics.averages import ZeroDivision
from streammetrics.metrics.classification.view import Confusion, tables_of_groups, tables_of_two
from streammetrics.metrics.families import Family
from streammetrics.statistics.tables.contingency import ContingencyTable
from streammetrics.statistics.tables.threshold import ThresholdTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import (
        Array,
        ArrayLike,
        ClassLabel,
        Floats,
        Numeric,
        Options,
        Places,
    )
    from streammetrics.metrics.classification.margins import ClassCounts


def judged_column(metric: Any, y_pred: Any, y_score: Any) -> tuple[str, Any]:
    """Return the name and the values of the predictions, or of the scores with a threshold."""
    if y_pred is not None and y_score is not None:
        raise InvalidBatchError("pass y_pred or y_score, not both")
    if metric.threshold is None and y_score is not None:
        raise InvalidBatchError(
            f"y_score needs a threshold: {type(metric).__name__}(threshold=0.5)"
        )
    second = y_pred if y_score is None else y_score
    return ("y_pred" if metric.threshold is None else "y_score"), second


def check_multilabel(metric: Any) -> None:
    """Convert the labels to one type, and check that there is one threshold or one per label."""
    metric.labels = one_kind(metric.labels)
    require(metric, "ignore_index", metric.ignore_index not in {0, 1}, "neither 0 nor 1")
    cuts = metric.threshold
    several = cuts if isinstance(cuts, tuple) else (cuts,)
    numbers = cuts is None or all(type(x) in {int, float} and x == x for x in several)  # noqa: PLR0124 - tests for nan
    require(metric, "threshold", numbers and cuts != (), "a number, or one for each label")
    if isinstance(cuts, tuple) and metric.labels is not None:
        enough = len(cuts) == len(metric.labels)
        require(metric, "threshold", enough, f"one number, or {len(metric.labels)} for the labels")
    if metric.from_logits and cuts is not None:
        shares = all(0 <= x <= 1 for x in several)
        require(metric, "threshold", shares, "probabilities, with from_logits=True")


def multilabel_options(metric: Any) -> Options:
    """Return the parameters of the statistics of rows with several labels."""
    cuts = metric.threshold
    if metric.from_logits and cuts is not None:
        several = isinstance(cuts, tuple)
        cuts = tuple(map(log_odds, cuts)) if several else log_odds(cuts)
    options = {name: getattr(metric, name) for name in ("labels", "nan_policy", "ignore_index")}
    return {"threshold": cuts, **options}


def warn_of_indicators(metric: Any, true: Any, pred: Any) -> None:
    """Warn if both columns are (n, L) of 0 and 1, which may mean several labels per row.

    They are read as n L rows of one class each, the usual meaning of tensors (B, T). scikit-learn
    reads arrays, sparse matrices and frames of this shape as indicators of labels.
    """
    given = metric.labels is not None or metric.ignore_index is not None
    several = metric.threshold is not None or getattr(metric, "multilabel", False)
    if given or several or true.shape[1] < 2 or getattr(pred, "shape", None) != true.shape:
        return
    sides = [_matrix(true), _matrix(pred)]
    if all(side is not None and ((side == 0) | (side == 1)).all() for side in sides):
        n, width = true.shape
        warnings.warn(
            f"y_true and y_pred are {true.shape} of 0 and 1, read as {n * width:,} rows of one "
            "class each: rows of several labels take multilabel=True; labels=[0, 1] or "
            ".reshape(-1) says that these are classes at positions",
            stacklevel=3,
        )


def _matrix(values: Any) -> Array | None:
    """Return an array, a sparse matrix or a frame as an array, ``None`` for anything else."""
    if isinstance(values, np.ndarray):
        return values
    if hasattr(values, "toarray"):
        return np.asarray(values.toarray())
    return np.asarray(values.to_numpy()) if hasattr(values, "to_numpy") else None


class ContingencyMetric(Metric[V_co]):
    """Base class of metrics of predicted labels, or of scores at a threshold.

    Args:
        threshold: ``None``: `update` takes ``y_true, y_pred``, both labels. ``y_pred`` may also be
            an (n, K) matrix of scores, the largest of which (the first if tied) gives the label. A
            number: `update` takes ``y_true, y_score``, and a row is predicted positive if
            ``y_score >= threshold``.
        labels: The classes and their order; ``None``: all labels seen, sorted. Other labels raise,
            unless a subset has a meaning, as in scikit-learn: averages (except ``"binary"``) are
            over these classes only, among all rows, and metrics that compare both sides, such as
            `ConfusionMatrix` and `CohenKappa`, use the rows whose two labels are both among them.
        pos_label: The positive class. ``None``: 1; with a threshold, labels must then be 0 and 1,
            -1 and 1, or booleans, and any others raise.
        zero_division: The value of 0/0. ``None``: ``nan`` for a single value; in an average a class
            counts as 0 if it has rows (true or predicted), and is left out if it has none, in both
            cases with an `UndefinedMetricWarning` that names the class. A number is used as it is;
            an explicit ``nan`` leaves all undefined classes out of averages.
        nan_policy: ``"raise"``, or ``"omit"``: rows with a missing value are left out.
        from_logits: Whether scores are logits. With a threshold t, a row is then predicted positive
            if the sigmoid of its score is at least t. For (n, K) scores it makes no difference.
        ignore_index: Rows with this true label are left out, regardless of their other values.

    Memory and cost: 16 bytes per pair of labels that occurs; with a threshold 32 bytes.
    """

    family: ClassVar[str | None] = Family.TABLE

    _formula = ("readout", "read")
    _facts = (*Metric._facts, "_judged", "_of_groups")

    threshold: float | FloatSequence | None = None
    labels: Any = None
    pos_label: Label | None = None
    zero_division: ZeroDivision = None
    nan_policy: NanPolicy = "raise"
    from_logits: bool = False
    ignore_index: int | None = None

    def check_parameters(self) -> None:
        """Convert the labels to one type, and check them against the threshold."""
        self.labels = labels = one_kind(self.labels, self.ignore_index)
        two = labels is None or (len(labels) == 2 and self._positive_label in labels)
        if self.threshold is not None and not two:
            raise ValueError(
                f"labels={labels!r}: with a threshold there are two, "
                f"and pos_label={self._positive_label!r} is one of them"
            )
        clear = labels is None or self.pos_label is not None or clear_pair(labels)
        if self.threshold is not None and labels and not clear:
            raise ValueError(
                f"labels={labels!r}: pos_label={labels[-1]!r} or another says which is positive"
            )
        cut = self._threshold
        fits = not self.from_logits or cut is None or 0 <= cut <= 1
        require(self, "threshold", fits, "a probability, with from_logits=True")

    @property
    def _threshold(self) -> float | None:
        """The threshold, if it is a single number."""
        single = not isinstance(self.threshold, tuple)
        require(self, "threshold", single, "one number, but with multilabel=True")
        return cast("float | None", self.threshold)

    @property
    def _positive_label(self) -> ClassLabel:
        return 1 if self.pos_label is None else self.pos_label

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the table of labels, or of scores at the threshold."""
        rows: Options = {
            "labels": self.labels,
            "nan_policy": self.nan_policy,
            "ignore_index": self.ignore_index,
        }
        cut = self._threshold
        if cut is None:
            return (ContingencyTable(others=self._takes_others, **rows),)
        cut = log_odds(cut) if self.from_logits else cut
        return (ThresholdTable(threshold=cut, pos_label=self.pos_label, **rows),)

    @property
    def _takes_others(self) -> bool:
        """Whether labels other than the given ones are allowed."""
        return False

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
            y_true: The true labels, (n,): integers, booleans or strings.
            y_pred: The predicted labels, (n,), or scores (n, K); without a threshold.
            y_score: The scores of the positive class, (n,); with a threshold.
            sample_weight: Non-negative weights, (n,).
            counts: How many rows each row stands for, (n,); whole numbers.

        Raises:
            InvalidBatchError: A column has a wrong type or shape, a missing value or an unknown
                label, or both or neither of `y_pred` and `y_score` are given; the state is
                unchanged.
        """
        name, second = judged_column(self, y_pred, y_score)
        if len(getattr(y_true, "shape", ())) == 2:
            warn_of_indicators(self, y_true, second)
        return self.feed(
            {"y_true": y_true, name: second, "sample_weight": sample_weight, "counts": counts}
        )

    def _confusion(self, table: ContingencyTable | ThresholdTable) -> Confusion:
        """Return the confusion table, with its classes in order."""
        if isinstance(table, ContingencyTable):
            return Confusion.of_labels(table.cells(), self.labels)
        cells, (labels, flip) = table.cells(), self._two_classes
        return Confusion(labels, cells.rows ^ flip, cells.columns ^ flip, cells.amount)

    @property
    def _two_classes(self) -> tuple[list[ClassLabel], int]:
        """The classes for a threshold; and 1 if the positive class comes first, else 0."""
        positive = self._positive_label
        if self.labels is None:
            return [0 if positive == 1 else f"not {positive}", positive], 0
        return list(self.labels), self.labels.index(positive) ^ 1

    @property
    def classes(self) -> list[ClassLabel]:
        """The labels of the classes, in the order in which results list them."""
        return self._confusion(*self._read()).labels  # type: ignore[arg-type]  # a table, by statistics()

    def readout(self, table: ContingencyTable | ThresholdTable) -> V_co:
        """Return the value; without rows that of `_nothing`."""
        return self._of_table(self._confusion(table))

    def _judged(self, *statistics: Any) -> tuple[V_co, str]:
        table = self._confusion(*statistics)
        value = self._of_table(table)
        return value, table.why(0) or self._why_nan(value, *statistics)

    def _of_table(self, table: Confusion) -> V_co:
        """Return the value for a table with one group."""
        if not table.total[0]:
            return self._nothing(table)
        (value,) = self._listed(self._read_all(table), table)
        return value

    def _read_all(self, table: Confusion) -> Any:
        """Return the result of `read`, after checking that it has an entry for each group."""
        values: Any = self.read(table)
        shape = getattr(values, "shape", None)
        size = len(values) if isinstance(values, list) else shape and shape[0]
        if size != table.groups:
            raise TypeError(
                f"{type(self).__name__}.read() must return an array with an entry for each of the "
                f"{table.groups:,} groups of its table, not {values!r:.80}: counts of classes are "
                "(groups, classes), so a sum over classes has axis=1"
            )
        return values

    def _listed(self, values: Any, table: Confusion) -> list[V_co]:
        """Return the value of each group."""
        return values.tolist() if getattr(values, "ndim", 0) == 1 else list(values)

    def _of_groups(self, *forms: GroupedStates) -> GroupValues | None:
        form, *more = forms
        if more or not is_table(form):
            return None
        values: Any = None
        doubtful, left = np.zeros(form.size, np.bool_), np.ones(form.size, np.bool_)
        for groups, table in self._confusions(form):
            found = self._read_all(table)
            left[groups], doubtful[groups] = False, table.doubtful
            if getattr(found, "ndim", 0) == 1:
                values = np.full(form.size, math.nan) if values is None else values
                values[groups] = found
                doubtful[groups] |= np.isnan(found)
                continue
            values = [None] * form.size if values is None else values
            for group, each in zip(groups.tolist(), self._listed(found, table), strict=True):
                values[group] = each
                doubtful[group] |= has_nan(each)
        if left.any():
            nothing, doubt = self._judged(form.of)
            values = [None] * form.size if values is None else values
            for group in np.flatnonzero(left).tolist():
                values[group] = nothing
            doubtful[left] = bool(doubt)
        return GroupValues(values, doubtful)

    def _confusions(self, form: GroupedStates) -> Iterator[tuple[Places, Confusion]]:
        """Yield the tables of all groups that have rows, with the indices of these groups."""
        if isinstance(form.of, ThresholdTable):
            labels, flip = self._two_classes
            return tables_of_two(labels, form.values["amount"], flip=flip)
        return tables_of_groups(form.values["table"], form.size, self.labels, self._at_least)

    @property
    def _at_least(self) -> ClassLabel | None:
        """A class to add to a table with a single class."""
        return None

    @abstractmethod
    def read(self, table: Confusion) -> Any:
        """Return the value of each group of a table, (groups,); all groups have rows."""

    def _nothing(self, table: Confusion) -> V_co:
        """Return the value without rows."""
        return cast("V_co", math.nan)

    def positive(self, table: Confusion) -> ClassCounts:
        """Return `tp`, `fp`, `fn` and `tn` of the positive class in each group, (groups,).

        The class is `pos_label`, by default 1; rows of one class may lack it.

        Raises:
            InvalidBatchError: The labels are text and `pos_label` is a number, or vice versa.
        """
        label = self._positive_label
        if isinstance(table.labels[0], str) != isinstance(label, str):
            hint = Hint("{pos_label} or another says which is positive", pos_label=table.labels[-1])
            raise InvalidBatchError(f"no label can be {label!r} (pos_label)", hint=hint)
        return table.counts_of(label)

    def ratio(self, numerator: Numeric, denominator: Numeric) -> Floats:
        """Return the ratio of each pair of sums, or the value of 0/0."""
        zero = np.equal(denominator, 0)
        if not zero.any():
            quotients: Floats = np.divide(numerator, denominator)
            return quotients
        quotients = np.full(np.broadcast(numerator, zero).shape, self._zero_by_zero)
        np.divide(numerator, denominator, out=quotients, where=~zero)
        return quotients

    @property
    def _zero_by_zero(self) -> float:
        """The value of 0/0 outside averages."""
        return math.nan if self.zero_division is None else self.zero_division


def is_table(form: object) -> TypeGuard[GroupedStates]:
    """Whether the states of all groups are tables, which can be read at once."""
    return isinstance(form, GroupedStates) and isinstance(
        form.of, ContingencyTable | ThresholdTable
    )
