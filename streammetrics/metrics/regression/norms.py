"""Regression: errors relative to the size of the target, distances, and cosine similarity."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from streammetrics.core.arithmetic.rounding import nearest, root
from streammetrics.core.confidence import Refusal
from streammetrics.core.constraints import AtLeast
from streammetrics.metrics.families import BASELINE, GROWS
from streammetrics.metrics.regression.base import RegressionMetric, averaged, where_zero
from streammetrics.metrics.rowwise import RowMean
from streammetrics.statistics.sums.extremes import Extremes
from streammetrics.statistics.sums.forecasts import CosineSum
from streammetrics.statistics.sums.losses import LossSum
from streammetrics.statistics.sums.moments import Moments
from streammetrics.statistics.sums.precise import DIGITS

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import ArrayLike
    from streammetrics.metrics.regression.base import Value

__all__ = ["NRMSE", "CosineSimilarity", "MinkowskiDistance"]


class NRMSE(RegressionMetric):
    """Normalized root mean squared error: the RMSE over the size of the target.

    Formula: √(Σ w (y - p)² / Σ w) / size

    Undefined where the size is 0.

    The other parameters are those of `RegressionMetric`.

    Args:
        normalization: The size: the ``"range"`` of the target, its ``"mean"``, its standard
            deviation ``"std"`` (divided by n), or its norm ``"l2"``, √(Σ w y²).

    Memory and cost: three exact sums per output; about 10 ns per row.

    Confidence: only by units, ``MetricSet(..., unit=...)``: the state does not
    hold how errors and size vary together.

    Reference: ``torchmetrics.regression.NormalizedRootMeanSquaredError``.

    Example:
        >>> import streammetrics as sm
        >>> sm.NRMSE(normalization="range").update([0.0, 1.0, 2.0, 2.0], [0, 1, 2, 3]).compute()
        0.25
    """

    higher_is_better = False
    family = Refusal(BASELINE.format("size", "RMSE"))

    normalization: Literal["range", "mean", "std", "l2"] = "mean"

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of squared errors, and the statistic that the size is read from."""
        squares = LossSum(loss="squared", nan_policy=self.nan_policy)
        if self.normalization == "range":
            return squares, Extremes(of="targets", nan_policy=self.nan_policy)
        order: Literal["first", "second"] = "first" if self.normalization == "mean" else "second"
        return squares, Moments(of="target", order=order, nan_policy=self.nan_policy)

    def readout(self, squares: LossSum, targets: object) -> Value:
        """Return the ratio of each output."""
        sizes = self._squared_sizes(targets)
        values = [
            (-1 if size < 0 else 1) * root(mean / abs(size)) if size else None
            for mean, size in zip(squares.means("loss"), sizes, strict=True)
        ]
        return averaged(values, self.multioutput)

    def _lacking(self, *statistics: Any) -> str:
        why = f"the {self.normalization} of the target is 0"
        return where_zero(self._squared_sizes(statistics[1]), why)

    def _squared_sizes(self, targets: Any) -> list[Fraction]:
        """Return the squares of the sizes, each with the sign of the size."""
        if self.normalization == "range":
            ends = zip(targets.low.tolist(), targets.high.tolist(), strict=True)
            return [(Fraction(high) - Fraction(low)) ** 2 for low, high in ends]
        if self.normalization == "mean":
            return [mean * abs(mean) for mean in targets.means("y")]
        if self.normalization == "std":
            return [spread / targets.total for spread in targets.centred("y", "y")]
        squares: list[Fraction] = targets.exact("yy")
        return squares


class MinkowskiDistance(RegressionMetric):
    """Minkowski distance between targets and predictions.

    Formula: (Σ w |y - p|^order)^(1 / order)

    It grows with the number of rows n: with order 1 it is n times `MAE`, with order 2 the Euclidean
    distance.

    The other parameters are those of `RegressionMetric`.

    Args:
        order: The exponent, 1 or more.

    Raises:
        InvalidBatchError: From `update`, where |y - p|^(order / 2) is beyond float64.

    With an order above 2, errors below 1e-308^(2 / order) add nothing beside larger ones; where
    there are no others but 0 the value is ``nan``.

    Memory and cost: one exact sum per output; about 30 ns per row.

    Reference: ``scipy.spatial.distance.minkowski``; ``torchmetrics.MinkowskiDistance``.

    Example:
        >>> import streammetrics as sm
        >>> sm.MinkowskiDistance(order=2).update([0.0, 0.0], [3.0, 4.0]).compute()
        5.0
    """

    higher_is_better = False
    family = Refusal(GROWS.format("a mean, such as MAE,"))

    order: Annotated[float, AtLeast(1)] = 2.0

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of powers."""
        return (LossSum(loss="power", parameter=self.order, nan_policy=self.nan_policy),)

    def readout(self, powers: LossSum) -> Value:
        """Return the root of the sum."""
        return averaged(self._roots(powers), self.multioutput)

    def _roots(self, powers: LossSum) -> list[float]:
        lost = powers.total * _LOST if self.order > 2 else 0
        return [
            math.nan if 0 < total < lost else self._root(total) for total in powers.exact("loss")
        ]

    def _root(self, total: Fraction) -> float:
        if not total or self.order == 1:
            return nearest(total)
        if self.order == 2:
            return root(total)
        above, below = map(Decimal, total.as_integer_ratio())
        power = DIGITS.divide(Decimal(1), Decimal(self.order))
        return float(DIGITS.power(DIGITS.divide(above, below), power))

    def _lacking(self, *statistics: Any) -> str:
        defined = [not math.isnan(value) for value in self._roots(*statistics)]
        what = "powers of the errors vanish, of which a smaller order or unit keeps more"
        return where_zero(defined, what)


# A power whose root is no normal float is off by up to 2**-2095, unless the root is the error:
# nothing is lost of a mean that is larger by 2**50 or more.
_LOST = Fraction(1, 2**2045)


class CosineSimilarity(RowMean):
    """Cosine similarity of targets and predictions, in the mean over rows.

    Formula: mean (y · p / (‖y‖ ‖p‖))

    A row where a vector is 0 has the similarity 0.

    Parameters are those of `RowMean`.

    Reference: 1 - ``sklearn.metrics.pairwise.paired_cosine_distances``;
    ``torchmetrics.CosineSimilarity(reduction="mean")``.

    Example:
        >>> import streammetrics as sm
        >>> cosine = sm.CosineSimilarity()
        >>> cosine.update([[1.0, 0.0], [3.0, 4.0]], [[0.0, 2.0], [6.0, 8.0]]).compute()
        0.5
    """

    higher_is_better = True

    value_range = (-1.0, 1.0)

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of cosines."""
        return (CosineSum(nan_policy=self.nan_policy),)

    def update(
        self, y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: ArrayLike = None
    ) -> Self:
        """Add a batch of rows: targets and predictions, vectors (n, d)."""
        return self.feed({"y_true": y_true, "y_pred": y_pred, "sample_weight": sample_weight})
