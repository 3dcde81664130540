"""What the metrics that compare two labelings of the same rows share."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, Self, cast

from streammetrics.core.constraints import NanPolicy
from streammetrics.core.metric import Metric
from streammetrics.core.types import V_co
from streammetrics.metrics.clustering.view import Overlap
from streammetrics.metrics.families import Family
from streammetrics.statistics.tables.contingency import LabelPairs

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import ArrayLike, Ints

    Counts = Ints


class LabelingMetric(Metric[V_co]):
    """Base of the metrics of two labelings of the same rows.

    The labels of the two sides may be of different types. Only pairs of labels that occur are
    stored, so thousands of clusters on both sides take no more memory than those pairs need.

    Args:
        nan_policy: ``"raise"``, or ``"omit"``: rows with a missing label are left out.

    Memory and cost: 16 bytes per pair of labels that occurs.
    """

    family: ClassVar[str | None] = Family.LABELINGS

    _formula: ClassVar[tuple[str, ...]] = ("readout", "read")

    nan_policy: NanPolicy = "raise"

    def update(self, labels_true: ArrayLike, labels_pred: ArrayLike) -> Self:
        """Add a batch of rows.

        Args:
            labels_true: The true class of each row, (n,): integers, booleans or strings.
            labels_pred: The cluster that each row was assigned to, (n,).

        Raises:
            InvalidBatchError: A column has a wrong type or length, or a missing label; the state is
                unchanged.
        """
        return self.feed({"labels_true": labels_true, "labels_pred": labels_pred})

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the counts of pairs of labels."""
        return (LabelPairs(nan_policy=self.nan_policy),)

    def readout(self, table: LabelPairs) -> V_co:
        """Return the value for the counts; ``nan`` without rows."""
        return self.read(Overlap.of(table)) if len(table.counts) else self._nothing()

    def _lacking(self, table: LabelPairs) -> str:
        if self._nan_reason:
            return self._nan_reason
        overlap = Overlap.of(table)
        sides = {"labels_true": overlap.true_sizes, "labels_pred": overlap.pred_sizes}
        single = [name for name, sizes in sides.items() if sizes.size == 1]
        return f"{' and '.join(single)} had a single label only" if single else ""

    def _nothing(self) -> V_co:
        return cast("V_co", math.nan)

    @abstractmethod
    def read(self, overlap: Overlap) -> V_co:
        """Return the value for at least one row."""
