"""The smallest and the largest: of plain values, or of the errors of a regression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from streammetrics.core.columns.long import nearest
from streammetrics.core.errors import StateFormatError
from streammetrics.core.fields.plain import Extreme
from streammetrics.core.statistic import Statistic
from streammetrics.statistics.sums.targets import values_schema

if TYPE_CHECKING:
    from streammetrics.core.columns.schema import Schema
    from streammetrics.core.types import Floats


class Extremes(Statistic):
    """The extremes for each output; weights do not matter, as rows of weight 0 are left out.

    Of values, which may be infinite, of targets, or of errors ``y_true - y_pred``. -0.0 counts as
    0.0.
    Rounding keeps the order, so the extremes of rounded numbers are the rounded extremes.
    """

    of: Literal["values", "targets", "errors"]
    nan_policy: Literal["raise", "omit"] = "raise"

    low = Extreme()
    high = Extreme(largest=True)

    @property
    def schema(self) -> Schema:
        """Values, or a target and a prediction."""
        return values_schema(self.of, self.nan_policy, long=True)

    def update(self, *columns: Floats, weight: Floats | None) -> None:  # noqa: ARG002 - see above
        """Take the extremes of the rows."""
        values = columns[0] - columns[1] if self.of == "errors" else nearest(columns[0])
        if values.ndim == 1 or values.shape[1] == 1:  # a reduction of one column is vectorised
            flat = values.reshape(-1)
            low, high = np.array([flat.min()]), np.array([flat.max()])
        else:
            low, high = values.min(axis=0), values.max(axis=0)
        cls = type(self)
        self.low = cls.low.plus(self.low, low + 0.0)
        self.high = cls.high.plus(self.high, high + 0.0)

    def check_fields(self) -> None:
        """Check that nothing is smaller than the smallest."""
        if self.low.shape != self.high.shape or not (self.low <= self.high).all():
            raise StateFormatError("the extremes are not those of any rows")
