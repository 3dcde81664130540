"""The smallest and the largest: of plain values, or of the errors of a regression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from streammetrics.core.columns.long import nearest
from streammetrics.core.errors import StateFormatError
from streammetrics.core.state.arrays import take_array
from streammetrics.core.statistic import Statistic
from streammetrics.statistics.sums.targets import values_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from streammetrics.core.columns.schema import Schema

    Floats = NDArray[np.float64]


class Extremes(Statistic):
    """The extremes for each output; weights do not matter, as rows of weight 0 are left out.

    Of values, which may be infinite, or of errors ``y_true - y_pred``. -0.0 counts as 0.0.
    Rounding keeps the order, so the extremes of rounded numbers are the rounded extremes.
    """

    of: Literal["values", "errors"]
    nan_policy: Literal["raise", "omit"] = "raise"

    @property
    def schema(self) -> Schema:
        """Values, or a target and a prediction."""
        return values_schema(self.of, self.nan_policy, long=True)

    def clear(self) -> None:
        """Forget all rows."""
        self.low: Floats = np.empty(0)
        self.high: Floats = np.empty(0)

    def update(self, *columns: Floats, weight: Floats | None) -> None:  # noqa: ARG002 - see above
        """Take the extremes of the rows."""
        values = nearest(columns[0]) if self.of == "values" else columns[0] - columns[1]
        if values.ndim == 1 or values.shape[1] == 1:  # a reduction of one column is vectorised
            flat = values.reshape(-1)
            low, high = np.array([flat.min()]), np.array([flat.max()])
        else:
            low, high = values.min(axis=0), values.max(axis=0)
        self._take(low + 0.0, high + 0.0)

    def merge(self, other: Extremes) -> None:
        """Take the extremes of another."""
        if other.low.size:
            self._take(other.low, other.high)

    def _take(self, low: Floats, high: Floats) -> None:
        if self.low.size:
            low, high = np.minimum(self.low, low), np.maximum(self.high, high)
        self.low, self.high = low, high

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return both extremes, (d,), or (0,) without rows."""
        return {"low": self.low, "high": self.high}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take back what `arrays` gave."""
        low, high = (take_array(arrays, name, "float64") for name in ("low", "high"))
        if len(arrays) != 2 or low.shape != high.shape or not (low <= high).all():
            raise StateFormatError("the extremes are not those of any rows")
        zeros = np.concatenate([low, high])
        if (np.signbit(zeros) & (zeros == 0)).any():
            raise StateFormatError("an extreme is -0.0, which is kept as 0.0")
        self.low, self.high = low.copy(), high.copy()
