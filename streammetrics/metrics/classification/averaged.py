"""Ratios of counts per class, and how they are averaged over classes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import numpy as np

from streammetrics.core.configured import require
from streammetrics.core.errors import InvalidBatchError
from streammetrics.core.results.labelled import LabelledArray
from streammetrics.core.types import Floats
from streammetrics.metrics.averages import lone_doubt, mean_of_classes
from streammetrics.metrics.classification.base import ContingencyMetric
from streammetrics.metrics.classification.parameters import (
    check_multilabel,
    multilabel_options,
)
from streammetrics.metrics.classification.several import LabelCounts, RowCounts
from streammetrics.metrics.classification.together import Confusions
from streammetrics.metrics.families import Family
from streammetrics.statistics.tables.multilabel import LabelTables, RowTables

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import Bools, ClassLabel
    from streammetrics.metrics.classification.view import Confusion

Parts = tuple[str, Mapping[str, float], float]


class AveragedMetric(ContingencyMetric[float | Floats]):
    """Base of the metrics that are a ratio of counts per class, averaged over classes.

    Args:
        average: How classes are averaged. ``"binary"``: the value of `pos_label`; more than two
            classes raise. ``"micro"``: the counts of all classes are added first. ``"macro"``: the
            mean of the classes' values. ``"weighted"``: the mean weighted by the rows of each
            class. ``"samples"``: the mean of the rows' values, each over its labels. ``None``: an
            array, in the order of `classes`.
        multilabel: Whether a row may have any number of labels. `update` then takes indicator
            matrices (n, L) of 0 and 1, dense or sparse, or sets of `labels`, and with a threshold
            scores (n, L). Each label is treated as a class. ``"samples"`` implies it.
    """

    family = Family.AVERAGES
    # Of `Family.SHARE`: what counts, what does not, each with its factor, and odds. With odds o the
    # value is o s / (o s + f).
    _parts: ClassVar[Parts | None] = None

    average: Literal["binary", "micro", "macro", "weighted", "samples"] | None = "binary"
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
        require(self, "ignore_index", self.ignore_index is None, "None with multilabel=True")
        check_multilabel(self)

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the table of labels, or with `multilabel` the counts per label or kind of row."""
        if not self.multilabel:
            return super().statistics()
        kind = RowTables if self.average in {"micro", "samples"} else LabelTables
        return (kind(**multilabel_options(self)),)

    @property
    def _takes_others(self) -> bool:
        """Whether rows may have labels besides those given; these then count as wrong."""
        return self.labels is not None and self.average != "binary"

    def _confusions(self, form: object) -> Confusions | None:
        """Return the tables of all groups, if one class or the sums over classes are read."""
        one = self.average in {"binary", "micro"} and not self.multilabel
        return super()._confusions(form) if one else None

    def _confusion(self, table: Any) -> Confusion:
        """Return the counts per class, or with `multilabel` per label or per kind of row."""
        if not self.multilabel:
            return self._with_positive(super()._confusion(table))
        counts: Any
        if isinstance(table, LabelTables):
            counts = LabelCounts.of(table, self.labels)
        else:
            counts = RowCounts.of(table, joined=self.average == "micro")
        return cast("Confusion", counts)

    def averaged(self, table: Confusion, numerator: Floats, denominator: Floats) -> float | Floats:
        """Return the ratio of two counts per class, averaged over classes as configured."""
        several: Any = table
        if isinstance(several, Confusions):
            return self._of_groups(several, numerator, denominator)
        numerator, denominator = numerator[: table.kept], denominator[: table.kept]
        if self.average == "micro":
            return self._defined(table, self.ratio(numerator.sum(), denominator.sum()))
        if self.average == "binary":
            place = self._positive(table)
            if denominator[place]:
                return float(numerator[place]) / float(denominator[place])
            lacks = {what: where[[place]] for what, where in _lacks(table).items()}
            table.doubt = lone_doubt([self._positive_label], self._zero_by_zero, lacks)
            return self._zero_by_zero
        values = self._ratios(numerator, denominator)
        if self.average == "samples":
            mean = cast("RowCounts", table).mean(values, self.zero_division)
            return self._defined(table, mean)
        if self.average is None:
            lacks = {what: where[: table.kept] for what, where in _lacks(table).items()}
            table.doubt = lone_doubt(table.labels, values, lacks)
            return LabelledArray.of(values, table.labels)
        kept = slice(table.kept)
        weight = table.actual[kept] if self.average == "weighted" else np.ones(table.kept)
        mean, table.doubt = mean_of_classes(
            values, weight, lambda: table.seen[kept], table.labels, self.zero_division
        )
        return self._defined(table, mean)

    def _defined(self, table: Confusion, value: float) -> float:
        """Return an average; where it is ``nan``, say what every class lacks."""
        if math.isnan(value):
            lacks = [what for what, where in _lacks(table).items() if where[: table.kept].all()]
            why = " and ".join(f"no {what} any class that counts" for what in lacks)
            why = f"there are {why}" if why else "it is 0/0"
            table.doubt = f"is nan: {why} (zero_division=0 makes it 0)"
        return value

    def _of_groups(
        self, tables: Confusions, numerator: Floats, denominator: Floats
    ) -> float | Floats:
        """Return the ratio of each group as an array; a number where groups are read one by one."""
        if self.average == "micro":
            sums = [
                np.where(tables.there, each, 0.0).sum(axis=0) for each in (numerator, denominator)
            ]
            return self._ratios(*sums)
        if not tables.are_two(self._positive_label):
            return math.nan
        place = self._positive(tables)
        return self._ratios(numerator[place], denominator[place])

    def _with_positive(self, table: Confusion) -> Confusion:
        """Return the table with the positive class also where no row is of it.

        What it takes no such row to define, as the specificity, is then read as any other value.
        """
        labels, positive = table.labels, self._positive_label
        if self.average != "binary" or len(labels) > 1 or positive in labels:
            return table
        alike = not labels or isinstance(labels[0], str) == isinstance(positive, str)
        return table.with_class(positive) if alike else table

    def _positive(self, table: Confusion | Confusions) -> int:
        """Return the position of the positive class."""
        positive = self._positive_label
        if isinstance(table, Confusions):  # of which none has more than one other
            return table.labels.index(positive)
        if len(table.labels) > 2 or positive not in table.labels:
            advice = "average='macro', 'micro', 'weighted' or None takes any number of classes"
            if len(table.labels) <= 2:
                advice = f"pos_label={table.labels[-1]!r} or another says which is positive"
            raise InvalidBatchError(
                f"average='binary' needs two classes of which one is {positive!r} "
                f"(pos_label); the labels seen are {_listed(table.labels)}: {advice}"
            )
        return table.labels.index(positive)

    def _nothing(self, table: Confusion) -> float | Floats:
        """Return nan, or with ``average=None`` an array of nan for the known classes."""
        if self.average is not None:
            return math.nan
        return LabelledArray.of(np.full(table.kept, math.nan), table.labels)


def _lacks(table: Confusion) -> dict[str, Bools]:
    """Return which classes have no rows or predictions, and which have no others beside them."""
    return {
        "rows of": table.actual == 0,
        "predictions of": table.predicted == 0,
        "rows outside": (table.fp == 0) & (table.tn == 0),
        "predictions outside": (table.fn == 0) & (table.tn == 0),
    }


def _listed(labels: list[ClassLabel]) -> str:
    shown = ", ".join(map(repr, labels[:5]))
    return f"{shown}, ... ({len(labels)})" if len(labels) > 5 else shown
