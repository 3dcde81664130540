"""Ratios of counts per class, averaged over classes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import numpy as np

from streammetrics.core.configured import require
from streammetrics.core.errors import Hint, InvalidBatchError
from streammetrics.core.metric import NumberOrArray
from streammetrics.core.results.labelled import LabelledArray
from streammetrics.core.types import Floats, NoAverage
from streammetrics.metrics.averages import class_means, lone_doubt
from streammetrics.metrics.classification.base import (
    ContingencyMetric,
    check_multilabel,
    multilabel_options,
)
from streammetrics.metrics.classification.multilabel import LabelCounts, RowCounts, label_tables
from streammetrics.metrics.families import Family
from streammetrics.statistics.tables.multilabel import (
    LabelTables,
    PartialLabelTables,
    RowTables,
)

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import Bools, ClassLabel, Places
    from streammetrics.metrics.classification.view import Confusion

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
        """Return the counts per class; with `multilabel` per label or per kind of row."""
        if not self.multilabel:
            return self._with_positive(super()._confusion(table))
        counts: Any
        if isinstance(table, LabelTables | PartialLabelTables):
            counts = LabelCounts.of(table, self.labels)
        else:
            counts = RowCounts.of(table, joined=self.average == "micro")
        return cast("Confusion", counts)

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

    def _listed(self, values: Any, table: Confusion) -> list[float | LabelledArray]:
        """Return the value of each group; with ``average=None`` an array with labels."""
        if self.average is not None:
            return super()._listed(values, table)
        return [LabelledArray.of(each, table.labels_of(group)) for group, each in enumerate(values)]

    def _with_positive(self, table: Confusion) -> Confusion:
        """Return the table with the positive class, even if it has no rows.

        Values that need none of its rows, such as specificity, are then defined.
        """
        labels, positive = table.labels, self._positive_label
        if self.average != "binary" or len(labels) > 1 or positive in labels:
            return table
        alike = not labels or isinstance(labels[0], str) == isinstance(positive, str)
        return table.with_class(positive) if alike else table

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
