"""How two labelings of the same rows overlap, and what the metrics that compare them share."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, Self, cast

from streammetrics.core.constraints import NanPolicy
from streammetrics.core.metric import Metric
from streammetrics.core.types import V_co
from streammetrics.metrics.clustering.view import Overlap
from streammetrics.statistics.tables.contingency import LabelPairs

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import ArrayLike, Ints

    Counts = Ints


class LabelingMetric(Metric[V_co]):
    """Base of the metrics of two labelings of the same rows.

    Labels of the two sides may differ in kind. Only pairs of labels that occur are counted, so
    thousands of clusters on both sides take no more memory than the pairs that occur.

    Args:
        nan_policy: ``"raise"`` or ``"omit"`` rows with a missing label.

    Memory and cost: 16 bytes for each pair of labels that occurs.
    """

    higher_is_better: ClassVar[bool | None] = True

    nan_policy: NanPolicy = "raise"

    def update(self, labels_true: ArrayLike, labels_pred: ArrayLike) -> Self:
        """Take a batch.

        Args:
            labels_true: The true cluster of each row: integers, booleans or strings.
            labels_pred: The cluster each row was put in.

        Raises:
            InvalidBatchError: A column is not what it should be; nothing has changed.
        """
        return self.feed({"labels_true": labels_true, "labels_pred": labels_pred})

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the counts of pairs of labels."""
        return (LabelPairs(nan_policy=self.nan_policy),)

    def readout(self, table: LabelPairs) -> V_co:
        """Return the value for the counts; ``nan`` without rows."""
        return self.read(Overlap.of(table)) if len(table.counts) else self._nothing()

    def _nothing(self) -> V_co:
        return cast("V_co", math.nan)

    @abstractmethod
    def read(self, overlap: Overlap) -> V_co:
        """Return the value for at least one row."""
