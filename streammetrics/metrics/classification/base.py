"""The confusion table as classification reads it, and what its metrics share."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, cast

import numpy as np

from streammetrics.core.columns.labels import Label, one_kind
from streammetrics.core.columns.logits import log_odds
from streammetrics.core.configured import require
from streammetrics.core.constraints import NanPolicy
from streammetrics.core.errors import InvalidBatchError
from streammetrics.core.metric import Metric
from streammetrics.core.results.values import LabelledArray
from streammetrics.core.types import Floats, V_co
from streammetrics.metrics.averages import ZeroDivision, lone_doubt, mean_of_classes
from streammetrics.metrics.classification.several import LabelCounts, RowCounts
from streammetrics.metrics.classification.together import Confusions
from streammetrics.metrics.classification.view import Confusion
from streammetrics.statistics.grouped.tables import Tables
from streammetrics.statistics.tables.contingency import ContingencyTable
from streammetrics.statistics.tables.multilabel import LabelTables, RowTables
from streammetrics.statistics.tables.threshold import ThresholdTable

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic


class ContingencyMetric(Metric[V_co]):
    """A metric of predicted labels, or of scores cut at a threshold.

    Args:
        threshold: ``None``: `update` takes ``y_true, y_pred``, both labels (``y_pred`` may be an
            (n, K) matrix of scores: the first largest wins). A number: it takes
            ``y_true, y_score``, and a row is positive where ``score >= threshold``.
        labels: The classes and their order, ``None``: the labels seen on either side, sorted.
            Another label raises, but where a subset has a meaning, as in scikit-learn: a metric
            that is averaged over classes (not ``"binary"``) is that of these classes among all
            rows, and the table, kappa and what else compares both sides that of the rows of which
            both labels are among them.
        pos_label: The positive class.
        zero_division: What 0/0 gives. ``None``: ``nan`` where it stands alone; in an average 0 for
            a class that has rows (true or predicted), and without rows the class is left out;
            each with an `UndefinedMetricWarning` that names the class. A number counts as given;
            an explicit ``nan`` leaves every such class out of averages.
        nan_policy: ``"raise"``, or ``"omit"``: rows with a missing value are left out.
        from_logits: Whether scores are logits. With a threshold a row is then positive where the
            sigmoid of its score is at least that (its score at least log t / (1 - t)); the
            largest of (n, K) scores is the same of both.
        ignore_index: Rows with this true label are left out, whatever else they hold.

    Memory and cost: 16 bytes for each pair of labels that occurs; with a threshold 32 bytes.
    """

    higher_is_better: ClassVar[bool | None] = True

    threshold: float | tuple[float, ...] | None = None
    labels: Any = None
    pos_label: Label = 1
    zero_division: ZeroDivision = None
    nan_policy: NanPolicy = "raise"
    from_logits: bool = False
    ignore_index: int | None = None

    _younger: ClassVar[tuple[tuple[str, Any], ...]] = (
        ("from_logits", False),
        ("ignore_index", None),
    )

    def check_parameters(self) -> None:
        """Bring the labels to one kind, and check them against the threshold."""
        if self.labels is not None:
            self.labels = one_kind(self.labels, self.ignore_index)
            if self.threshold is not None and (
                len(self.labels) != 2 or self.pos_label not in self.labels
            ):
                raise ValueError(
                    f"labels={self.labels!r}: with a threshold there are two, "
                    f"and pos_label={self.pos_label!r} is one of them"
                )
        cut = self._threshold
        fits = not self.from_logits or cut is None or 0 <= cut <= 1
        require(self, "threshold", fits, "a probability, with from_logits=True")

    @property
    def _threshold(self) -> float | None:
        """The threshold of one score a row."""
        single = not isinstance(self.threshold, tuple)
        require(self, "threshold", single, "one number, but with multilabel=True")
        return cast("float | None", self.threshold)

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the table of labels, or of scores at the threshold."""
        rows: dict[str, Any] = {
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
        """Whether there may be labels besides those that are given."""
        return False

    def update(
        self, y_true: Any, y_pred: Any = None, *, y_score: Any = None, sample_weight: Any = None
    ) -> Self:
        """Take rows: labels and predicted labels, or with a threshold labels and scores."""
        name, second = judged_column(self, y_pred, y_score)
        return self.feed({"y_true": y_true, name: second, "sample_weight": sample_weight})

    def _confusion(self, table: ContingencyTable | ThresholdTable) -> Confusion:
        """Return the table as classes in order."""
        if isinstance(table, ContingencyTable):
            return Confusion.of_labels(table.cells(), self.labels)
        cells = table.cells()
        if self.labels is None:
            other = 0 if self.pos_label == 1 else f"not {self.pos_label}"
            return Confusion([other, self.pos_label], cells.rows, cells.columns, cells.amount)
        flip = self.labels.index(self.pos_label) ^ 1
        return Confusion(list(self.labels), cells.rows ^ flip, cells.columns ^ flip, cells.amount)

    @property
    def classes(self) -> list[Any]:
        """The labels of the classes, in the order in which results list them."""
        return self._confusion(*self._read()).labels  # type: ignore[arg-type]  # a table, by statistics()

    def readout(self, table: ContingencyTable | ThresholdTable) -> V_co:
        """Read the table; without rows there is nothing to read."""
        return self._judged(table)[0]

    def _judged(self, *statistics: Any) -> tuple[V_co, str]:
        confusion = self._confusion(*statistics)
        value = self.read(confusion) if confusion.total else self._nothing(confusion)
        return value, confusion.doubt or self._why_nan(value)

    def _judged_each(self, *forms: Any) -> list[tuple[V_co, str]] | None:
        tables = self._confusions(*forms) if getattr(self.read, "elementwise", False) else None
        values: Any = None if tables is None else self.read(cast("Confusion", tables))
        if not isinstance(values, np.ndarray):
            return None
        return [(value, self._why_nan(value)) for value in values.tolist()]

    def _confusions(self, form: Any) -> Confusions | None:
        """Return the tables of all groups that a form holds, where they can be read as one."""
        if not isinstance(form, Tables) or getattr(form.of, "others", False):
            return None
        if isinstance(form.of, ContingencyTable):
            return Confusions.of_cells(form.value("table"), form.size, self.labels)
        two = [f"not {self.pos_label}", self.pos_label]
        labels = two if self.labels is None else list(self.labels)
        flip = labels.index(self.pos_label) == 0
        return Confusions.of_amounts(labels, form.value("amount"), flip=flip)

    @abstractmethod
    def read(self, table: Confusion) -> V_co:
        """Return the value of a table with rows."""

    def _nothing(self, table: Confusion) -> V_co:  # noqa: ARG002 - those with an array need it
        """Return the value without rows."""
        return cast("V_co", math.nan)

    def ratio(self, numerator: Any, denominator: Any) -> float:
        """Return a quotient of two sums, or what 0/0 gives."""
        if isinstance(denominator, np.ndarray):  # of many groups
            return cast("float", self._ratios(numerator, denominator))
        return float(numerator) / float(denominator) if denominator else self._zero_by_zero

    @property
    def _zero_by_zero(self) -> float:
        """What 0/0 gives where it stands alone."""
        return math.nan if self.zero_division is None else self.zero_division

    def _ratios(self, numerator: Floats, denominator: Floats) -> Floats:
        """Return the `ratio` of every two elements; the denominator broadcasts."""
        quotients = np.full(numerator.shape, self._zero_by_zero)
        np.divide(numerator, denominator, out=quotients, where=denominator != 0)
        return quotients


class AveragedMetric(ContingencyMetric[float | Floats]):
    """A quotient of counts per class, and how classes are averaged.

    Args:
        average: ``"binary"``: the value of `pos_label`, and more than two classes raise.
            ``"micro"``: the counts of all classes are added first. ``"macro"``: the mean of the
            classes' values; ``"weighted"``: the mean weighted by the rows of each class.
            ``"samples"``: the mean of the rows' values, each over its labels. ``None``: an array,
            in the order of `classes`.
        multilabel: Whether rows have several labels, or none: `update` takes indicators (n, L) of
            0 and 1, sparse matrices of such, or sets of `labels`; with a threshold scores (n, L)
            beside the truth. A label is then what a class is above. ``"samples"`` implies it.
    """

    average: Literal["binary", "micro", "macro", "weighted", "samples"] | None = "binary"
    multilabel: bool = False

    _younger = (*ContingencyMetric._younger, ("multilabel", False))

    def check_parameters(self) -> None:
        """Check what goes with several labels a row, and what does not."""
        if self.average == "samples":
            self.multilabel = True
        if not self.multilabel:
            super().check_parameters()
            return
        averaged = "'micro', 'macro', 'weighted', 'samples' or None with multilabel=True"
        require(self, "average", self.average != "binary", averaged)
        require(self, "ignore_index", self.ignore_index is None, "None with multilabel=True")
        check_multilabel(self)

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the table of labels; of several labels a row, the counts of each or of rows."""
        if not self.multilabel:
            return super().statistics()
        kind = RowTables if self.average in {"micro", "samples"} else LabelTables
        return (kind(**multilabel_options(self)),)

    @property
    def _takes_others(self) -> bool:
        """They count as wrong where one of the classes is right, or is predicted."""
        return self.labels is not None and self.average != "binary"

    def _confusions(self, form: Any) -> Confusions | None:
        """Return the tables of all groups, of metrics of one class or of all together."""
        one = self.average in {"binary", "micro"} and not self.multilabel
        return super()._confusions(form) if one else None

    def _confusion(self, table: Any) -> Confusion:
        """Return the table as classes in order, or as labels or rows that stand for them."""
        counts: Any
        if isinstance(table, LabelTables):
            counts = LabelCounts.of(table, self.labels)
        elif isinstance(table, RowTables):
            counts = RowCounts.of(table, joined=self.average == "micro")
        else:
            return super()._confusion(table)
        return cast("Confusion", counts)

    def averaged(self, table: Confusion, numerator: Floats, denominator: Floats) -> float | Floats:
        """Return the quotient, averaged over classes as configured."""
        several: Any = table
        if isinstance(several, Confusions):
            return self._of_groups(several, numerator, denominator)
        numerator, denominator = numerator[: table.kept], denominator[: table.kept]
        if self.average == "micro":
            return self.ratio(numerator.sum(), denominator.sum())
        if self.average == "binary":
            place = self._positive(table)
            if place is not None and denominator[place]:
                return float(numerator[place]) / float(denominator[place])
            table.doubt = lone_doubt([self.pos_label], self._zero_by_zero)
            return self._zero_by_zero
        values = self._ratios(numerator, denominator)
        if self.average == "samples":
            return cast("RowCounts", table).mean(values, self.zero_division)
        if self.average is None:
            table.doubt = lone_doubt(table.labels, values)
            return LabelledArray.of(values, table.labels)
        kept = slice(table.kept)
        weight = table.actual[kept] if self.average == "weighted" else np.ones(table.kept)
        mean, table.doubt = mean_of_classes(
            values, weight, lambda: table.seen[kept], table.labels, self.zero_division
        )
        return mean

    def _of_groups(
        self, tables: Confusions, numerator: Floats, denominator: Floats
    ) -> float | Floats:
        """Return the quotient of the positive class of each group, or of all; a number: not so."""
        if self.average == "micro":
            sums = [
                np.where(tables.there, each, 0.0).sum(axis=0) for each in (numerator, denominator)
            ]
            return self._ratios(*sums)
        has = tables.has(self.pos_label)
        if has is None or self.pos_label not in tables.labels:
            return math.nan
        place = tables.labels.index(self.pos_label)
        return self._ratios(numerator[place], np.where(has, denominator[place], 0.0))

    def _positive(self, table: Confusion) -> int | None:
        """Return the place of the positive class, ``None`` where it has not been seen."""
        if len({*table.labels, self.pos_label}) > 2:
            advice = "average='macro', 'micro', 'weighted' or None takes any number of classes"
            if len(table.labels) <= 2:
                advice = f"pos_label={table.labels[-1]!r} or another says which is positive"
            raise InvalidBatchError(
                f"average='binary' needs two classes of which one is {self.pos_label!r} "
                f"(pos_label); the labels seen are {_listed(table.labels)}: {advice}"
            )
        return table.labels.index(self.pos_label) if self.pos_label in table.labels else None

    def _nothing(self, table: Confusion) -> float | Floats:
        """Return nan, for each class that is known where none is averaged."""
        if self.average is not None:
            return math.nan
        return LabelledArray.of(np.full(table.kept, math.nan), table.labels)


def _listed(labels: list[Any]) -> str:
    shown = ", ".join(map(repr, labels[:5]))
    return f"{shown}, ... ({len(labels)})" if len(labels) > 5 else shown


def judged_column(metric: Any, y_pred: Any, y_score: Any) -> tuple[str, Any]:
    """Return what stands beside the truth, predictions or with a threshold scores, and its name."""
    if y_pred is not None and y_score is not None:
        raise InvalidBatchError("pass y_pred or y_score, not both")
    if metric.threshold is None and y_score is not None:
        raise InvalidBatchError(
            f"y_score needs a threshold: {type(metric).__name__}(threshold=0.5)"
        )
    second = y_pred if y_score is None else y_score
    return ("y_pred" if metric.threshold is None else "y_score"), second


def check_multilabel(metric: Any) -> None:
    """Bring the labels to one kind, and check that there is a threshold for each or for all."""
    if metric.labels is not None:
        metric.labels = one_kind(metric.labels)
    cuts = metric.threshold
    several = cuts if isinstance(cuts, tuple) else (cuts,)
    numbers = cuts is None or all(type(x) in {int, float} and x == x for x in several)  # noqa: PLR0124 - the test for nan
    require(metric, "threshold", numbers and cuts != (), "a number, or one for each label")
    if isinstance(cuts, tuple) and metric.labels is not None:
        enough = len(cuts) == len(metric.labels)
        require(metric, "threshold", enough, f"one number, or {len(metric.labels)} for the labels")
    if metric.from_logits and cuts is not None:
        shares = all(0 <= x <= 1 for x in several)
        require(metric, "threshold", shares, "probabilities, with from_logits=True")


def multilabel_options(metric: Any) -> dict[str, Any]:
    """Return the parameters of a statistic of rows with several labels."""
    cuts = metric.threshold
    if metric.from_logits and cuts is not None:
        several = isinstance(cuts, tuple)
        cuts = tuple(map(log_odds, cuts)) if several else log_odds(cuts)
    return {"threshold": cuts, "labels": metric.labels, "nan_policy": metric.nan_policy}
