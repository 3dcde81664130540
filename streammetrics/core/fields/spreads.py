"""How far the numbers of rows spread, as fields: what the error of their mean is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streammetrics.core.fields.sums import NamedSums
from streammetrics.core.fields.weights import Weight

if TYPE_CHECKING:
    from streammetrics.core.arithmetic.exact import ExactSum
    from streammetrics.core.fields.weights import WeightedCount


class SquareWeighted(NamedSums):
    """Exact sums of terms that each hold the square of their row's weight."""

    def scaled(self, value: dict[str, ExactSum], weight: float) -> dict[str, ExactSum]:
        """Return the products with the square of the weight, exactly."""
        return super().scaled(super().scaled(value, weight), weight)


class SquaredWeight(Weight):
    """The sum of the squares of weights, which is the number of rows where each weighs one."""

    def scaled(self, value: WeightedCount, weight: float) -> WeightedCount:
        """Return the product with the square of the weight, exactly."""
        return super().scaled(super().scaled(value, weight), weight)
