"""Base class of metrics that are the mean of one number per row."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from streammetrics.core.constraints import NanPolicy
from streammetrics.core.metric import Metric
from streammetrics.metrics.families import Family
from streammetrics.statistics.sums.means import mean_of

if TYPE_CHECKING:
    from streammetrics.statistics.sums.spreads import RowSum


class RowMean(Metric[float]):
    """Base class of metrics that are the mean of one number per row, correctly rounded.

    ``nan`` without rows.

    Args:
        nan_policy: ``"raise"``, or ``"omit"``: rows with a missing value are left out; `n_omitted`
            counts them.

    Memory and cost: exact sums of the numbers and of their squares, which `confidence` needs; about
    200 bytes.
    """

    higher_is_better: ClassVar[bool | None] = False
    value_range = (0.0, math.inf)
    family = Family.ROW_MEAN
    _reads_groups = True

    nan_policy: NanPolicy = "raise"

    def readout(self, held: RowSum) -> float:
        """Return the mean."""
        return mean_of(held.total, held.rows)
