"""Means of a number of each row: what such metrics share, whatever their columns are."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from streammetrics.core.constraints import NanPolicy
from streammetrics.core.exact.rounding import nearest
from streammetrics.core.metric import Metric

if TYPE_CHECKING:
    from streammetrics.statistics.sums.rowwise import RowSum


class RowMean(Metric[float]):
    """The mean of a number of each row, correctly rounded; ``nan`` of no rows.

    Args:
        nan_policy: ``"omit"`` leaves rows with a missing value out; `n_omitted` counts them.

    Memory and cost: some exact sums, 200 bytes; squares are summed too, for `confidence`.
    """

    higher_is_better: ClassVar[bool | None] = False

    nan_policy: NanPolicy = "raise"

    _ends: ClassVar[tuple[float, float]] = (0.0, float("inf"))  # between which the mean lies

    def readout(self, held: RowSum) -> float:
        """Return the mean."""
        return nearest(held.exact_mean())
