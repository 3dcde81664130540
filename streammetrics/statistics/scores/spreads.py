"""Sums of losses of probabilities that keep how far rows spread as well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streammetrics.statistics.scores.losses import ProbabilityLossSum
from streammetrics.statistics.sums.spreads import Spreading, sums_of

if TYPE_CHECKING:
    from streammetrics.core.types import Floats


class ProbabilityLossSpread(Spreading, ProbabilityLossSum):
    """The sum of a loss of probabilities, and of its squares."""

    def update(self, *columns: Any, weight: Floats | None) -> None:
        """Add the losses of the rows, and their squares, in one pass where none has a weight."""
        loss, powers = sums_of(self.numbers, columns, weight)
        self.add(columns, weight, loss)
        self.spread_by(powers, len(columns[0]), weight)

    def numbers(self, *columns: Any) -> Floats:
        """Return the losses."""
        return self.losses(*columns)
