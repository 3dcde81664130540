"""What metrics that are the mean of one number per row share, whatever their columns are."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from streammetrics.core.constraints import NanPolicy
from streammetrics.core.exact.rounding import nearest
from streammetrics.core.metric import Metric

if TYPE_CHECKING:
    from streammetrics.statistics.sums.rowwise import RowSum


class RowMean(Metric[float]):
    """Base of the metrics that are the mean of one number per row, correctly rounded.

    ``nan`` without rows.

    Args:
        nan_policy: ``"raise"``, or ``"omit"``: rows with a missing value are left out; `n_omitted`
            counts them.

    Memory and cost: exact sums of the numbers and of their squares, which `confidence` needs: about
    200 bytes.
    """

    higher_is_better: ClassVar[bool | None] = False

    nan_policy: NanPolicy = "raise"

    _ends: ClassVar[tuple[float, float]] = (0.0, float("inf"))  # the mean lies between these

    def readout(self, held: RowSum) -> float:
        """Return the mean."""
        return nearest(held.exact_mean())
