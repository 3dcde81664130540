"""Base classes of metrics of labels: tables of labels, and ratios of counts over classes."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeGuard, cast

import numpy as np

from streammetrics.core.columns.labels import Label, one_kind
from streammetrics.core.columns.scores import clear_pair, log_odds
from streammetrics.core.configured import require
from streammetrics.core.constraints import NanPolicy
from streammetrics.core.errors import Hint, InvalidBatchError
from streammetrics.core.metric import GroupValues, Metric, NumberOrArray, has_nan
from streammetrics.core.results.values import LabelledArray
from streammetrics.core.statistic import GroupedStates
from streammetrics.core.types import Floats, FloatSequence, NoAverage, V_co
from streammetrics.metrics.averages import ZeroDivision, class_means, lone_doubt
from streammetrics.metrics.classification.view import (
    Confusion,
    LabelCounts,
    RowCounts,
    tables_of_groups,
    tables_of_two,
)
from streammetrics.metrics.families import Family
from streammetrics.statistics.tables import (
    ContingencyTable,
    LabelTables,
    PartialLabelTables,
    RowTables,
    ThresholdTable,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import (
        Array,
        ArrayLike,
        Bools,
        ClassLabel,
        Numeric,
        Options,
        Places,
    )
    from streammetrics.metrics.classification.view import ClassCounts


def judged_column(metric: Any, y_pred: object, y_score: object) -> tuple[str, object]:
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
        cuts = log_odds(cuts) if isinstance(cuts, int | float) else tuple(map(log_odds, cuts))
    options = {name: getattr(metric, name) for name in ("labels", "nan_policy", "ignore_index")}
    return {"threshold": cuts, **options}


def warn_of_indicators(metric: ContingencyMetric, true: Any, pred: Any) -> None:
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

    def _read_all(self, table: Confusion) -> Numeric:
        """Return the result of `read`, after checking that it has an entry for each group."""
        values = self.read(table)
        shape = getattr(values, "shape", None)
        size = len(values) if isinstance(values, list) else shape and shape[0]
        if size != table.groups:
            raise TypeError(
                f"{type(self).__name__}.read() must return an array with an entry for each of the "
                f"{table.groups:,} groups of its table, not {values!r:.80}: counts of classes are "
                "(groups, classes), so a sum over classes has axis=1"
            )
        return values

    def _listed(self, values: Numeric, table: Confusion) -> list[V_co]:
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
    def read(self, table: Confusion) -> Numeric:
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
        if not np.count_nonzero(zero):
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


Parts = tuple[str, Mapping[str, float], float]


class AveragedMetric(NumberOrArray[NoAverage], ContingencyMetric[float | LabelledArray]):
    """Base class of metrics that are a ratio of counts per class, averaged over classes.

    Args:
        average: How to average classes. ``"binary"``: the value of `pos_label`; more than two
            classes raise. ``"micro"``: the counts of all classes are added first. ``"macro"``: the
            mean of the classes' values. ``"weighted"``: the mean weighted by the rows of each
            class. ``"samples"``: the mean of the rows' values, each over its labels. ``None``: an
            array, in the order of `classes`.
        multilabel: Whether a row may have any number of labels. `update` then takes indicator
            matrices (n, L) of 0 and 1, dense or sparse, or sets of `labels`; with a threshold
            scores (n, L). Each label is treated as a class. ``"samples"`` implies it. A true label
            equal to `ignore_index` is unknown, and left out of its row.

    """

    family = Family.AVERAGES
    # For `Family.SHARE`: the counts s that are included, the counts f that are not, each with its
    # factor, and the odds o. The value is s / (s + f), or with odds o s / (o s + f).
    _parts: ClassVar[Parts | None] = None

    average: Literal["binary", "micro", "macro", "weighted", "samples"] | NoAverage = "binary"
    multilabel: bool = False

    def check_parameters(self) -> None:
        """Check that no parameter contradicts `multilabel`."""
        if self.average == "samples":
            self.multilabel = True
        if not self.multilabel:
            super().check_parameters()
            return
        averaged = "'micro', 'macro', 'weighted', 'samples' or None with multilabel=True"
        require(self, "average", self.average != "binary", averaged)
        known = self.ignore_index is None or self.average != "samples"
        require(self, "ignore_index", known, "None with multilabel=True and average='samples'")
        check_multilabel(self)

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the table of labels; with `multilabel` the counts per label or kind of row."""
        if not self.multilabel:
            return super().statistics()
        if self.average == "samples" or (self.average == "micro" and self.ignore_index is None):
            return (RowTables(**multilabel_options(self)),)
        return (label_tables(self),)

    @property
    def _takes_others(self) -> bool:
        """Whether rows may have labels besides the given ones; these then count as wrong."""
        return self.labels is not None and self.average != "binary"

    @property
    def _at_least(self) -> ClassLabel | None:
        return self._positive_label if self.average == "binary" else None

    def _confusion(self, table: Any) -> Confusion:
        """Return the counts per class; with `multilabel` per label or per kind of row.

        The positive class is in the table even if it has no rows. Values that need none of its
        rows, such as specificity, are then defined.
        """
        if self.multilabel:
            counts: object
            if isinstance(table, LabelTables | PartialLabelTables):
                counts = LabelCounts.of(table, self.labels)
            else:
                counts = RowCounts.of(table, joined=self.average == "micro")
            return cast("Confusion", counts)
        found = super()._confusion(table)
        labels = found.labels
        if self.average != "binary" or len(labels) > 1:
            return found
        positive = self._positive_label
        alike = not labels or isinstance(labels[0], str) == isinstance(positive, str)
        return found.with_class(positive) if alike and positive not in labels else found

    def averaged(self, table: Confusion, numerator: Floats, denominator: Floats) -> Floats:
        """Return the ratio of two counts per class, averaged over classes as configured.

        Counts are (groups, classes). So are values with ``average=None``; otherwise (groups,).
        """
        numerator, denominator = numerator[:, : table.kept], denominator[:, : table.kept]
        if self.average == "micro":
            return self._defined(table, self.ratio(numerator.sum(axis=1), denominator.sum(axis=1)))
        if self.average == "binary":
            place = self._positive(table)
            values = self.ratio(table.at(numerator, place), table.at(denominator, place))
            table.doubt(
                np.isnan(values),
                lambda group: lone_doubt(
                    [self._positive_label],
                    values[group],
                    _lacks(table, group, np.broadcast_to(place, table.groups)[[group]]),
                ),
            )
            return values
        values = self.ratio(numerator, denominator)
        if self.average == "samples":
            mean = cast("RowCounts", table).mean(values, self.zero_division)
            return self._defined(table, mean)
        kept = slice(table.kept)
        if self.average is None:
            table.doubt(
                np.logical_or.reduce(np.isnan(values), axis=1),
                lambda group: lone_doubt(
                    table.labels_of(group), values[group], _lacks(table, group, kept)
                ),
            )
            return values
        weight = np.ones(values.shape)
        if self.average == "weighted":
            weight = table.actual[:, kept]
        means = class_means(values, weight, lambda: table.seen[:, kept], self.zero_division)
        table.doubt(means.doubtful, lambda group: means.why(group, table.labels_of(group)))
        return self._defined(table, means.values)

    def _defined(self, table: Confusion, values: Floats) -> Floats:
        """Return averages; for those that are ``nan``, register what every class lacks."""

        def why(group: int) -> str:
            lacks = _lacks(table, group, slice(table.kept)).items()
            every = " and ".join(f"no {what} any class that counts" for what, w in lacks if w.all())
            every = f"there are {every}" if every else "it is 0/0"
            return f"is nan: {every} (zero_division=0 makes it 0)"

        table.doubt(np.isnan(values), why)
        return values

    def _listed(self, values: Numeric, table: Confusion) -> list[float | LabelledArray]:
        """Return the value of each group; with ``average=None`` an array with labels."""
        if self.average is not None:
            return super()._listed(values, table)
        return [LabelledArray.of(each, table.labels_of(group)) for group, each in enumerate(values)]

    def _positive(self, table: Confusion) -> int | Places:
        """Return the position of the positive class in each group."""
        positive = self._positive_label
        place = table.place_of(positive)
        missing = place < 0 if isinstance(place, int) else bool((place < 0).any())
        if table.kept > 2 or missing:
            labels = table.labels_of(0 if table.kept > 2 else int(np.argmin(place)))
            hint = Hint(
                "{average}, micro, weighted or none takes any number of classes", average="macro"
            )
            if len(labels) <= 2:
                hint = Hint("{pos_label} or another says which is positive", pos_label=labels[-1])
            raise InvalidBatchError(
                f"average='binary' needs two classes of which one is {positive!r} "
                f"(pos_label); the labels seen are {_listed(labels)}",
                hint=hint,
            )
        return place

    def _nothing(self, table: Confusion) -> float | LabelledArray:
        """Return nan, or with ``average=None`` an array of nan for the known classes."""
        if self.average is not None:
            return math.nan
        return LabelledArray.of(np.full(table.kept, math.nan), table.labels)


def _lacks(table: Confusion, group: int, places: Places | slice) -> dict[str, Bools]:
    """Return which classes of a group have no rows or predictions, or none outside them."""
    counts = (table.actual, table.predicted, table.fp, table.fn, table.tn)
    actual, predicted, fp, fn, tn = (each[group, places] == 0 for each in counts)
    return {
        "rows of": actual,
        "predictions of": predicted,
        "rows outside": fp & tn,
        "predictions outside": fn & tn,
    }


def _listed(labels: list[ClassLabel]) -> str:
    shown = ", ".join(map(repr, labels[:5]))
    return f"{shown}, ... ({len(labels)})" if len(labels) > 5 else shown


def label_tables(metric: Any) -> LabelTables | PartialLabelTables:
    """Return the counts of each label, over the rows in which it is known."""
    kind = LabelTables if metric.ignore_index is None else PartialLabelTables
    return kind(**multilabel_options(metric))
