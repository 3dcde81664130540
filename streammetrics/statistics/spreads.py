"""Sums that keep how far rows spread as well, which the confidence of their mean takes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.columns.long import nearest
from streammetrics.core.errors import StateFormatError
from streammetrics.core.fields.spreads import LARGEST, Spread, Spreads
from streammetrics.statistics.scores.losses import ProbabilityLossSum, losses_of
from streammetrics.statistics.sums.losses import LossSum, squared_losses
from streammetrics.statistics.sums.moments import Moments

if TYPE_CHECKING:
    from streammetrics.core.types import Floats


class Spreading(ABC):
    """What is added to a statistic of sums: the squares of what is summed."""

    spreads = Spreads()

    @abstractmethod
    def summed(self, columns: tuple[Any, ...]) -> Floats:
        """Return the number of each row that is summed, (n,) or (n, d)."""

    def update(self, *columns: Any, weight: Floats | None) -> None:
        """Add the sums of the rows, and of their squares."""
        super().update(*columns, weight=weight)  # type: ignore[misc]  # of the statistic
        numbers = self.summed(columns)
        if numbers.ndim > 1 and numbers.shape[1] == 1:
            numbers = numbers[:, 0]
        field = type(self).spreads
        self.spreads = field.plus(self.spreads, Spread.of(numbers, weight))

    def check_fields(self) -> None:
        """Check as well that the squares are those of as many outputs."""
        super().check_fields()  # type: ignore[misc]  # of the statistic
        width = getattr(self, "width", 1)
        held = self.spreads
        if held is not None and held.values.shape != (() if width == 1 else (width,)):
            raise StateFormatError(f"there are no sums of squares of {width} outputs")


class LossSpread(Spreading, LossSum):
    """The sum of a loss, and of its squares."""

    def summed(self, columns: tuple[Any, ...]) -> Floats:
        """Return the losses; those beyond float64 are as large as it goes."""
        with np.errstate(over="ignore", under="ignore"):
            try:
                return self.terms(*columns)
            except FloatingPointError:  # of a square
                return np.minimum(squared_losses(self.loss, *columns), LARGEST)


class MomentSpread(Spreading, Moments):
    """The sum of values, or of targets and predictions, and the squares of their differences."""

    def summed(self, columns: tuple[Any, ...]) -> Floats:
        """Return the values, or predictions less targets."""
        return columns[1] - columns[0] if self.of == "pair" else nearest(columns[0])


class ProbabilityLossSpread(Spreading, ProbabilityLossSum):
    """The sum of a loss of probabilities, and of its squares."""

    def summed(self, columns: tuple[Any, ...]) -> Floats:
        """Return the losses."""
        return losses_of(self.loss, columns)
