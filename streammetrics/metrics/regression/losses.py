"""Regression: means of one loss per row."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

from streammetrics.core.arithmetic.rounding import root
from streammetrics.core.constraints import Positive, Share
from streammetrics.metrics.families import Family
from streammetrics.metrics.regression.base import RegressionMetric, averaged, summed
from streammetrics.statistics.sums.moments import Moments
from streammetrics.statistics.sums.spreads import MomentSpread

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic
    from streammetrics.metrics.regression.base import Value
    from streammetrics.statistics.sums.losses import LossSum

__all__ = [
    "MAE",
    "MSE",
    "RMSE",
    "HuberLoss",
    "LogCoshError",
    "MeanError",
    "PinballLoss",
]


class MeanLoss(RegressionMetric):
    """Base of the metrics that are the mean of one loss per row."""

    spread: bool = True

    higher_is_better = False
    value_range = (0.0, math.inf)
    family = Family.MEAN_LOSS

    def readout(self, losses: LossSum) -> Value:
        """Return the mean loss."""
        if losses.width == 1 and self.multioutput == "uniform_average":
            return losses.rounded_mean("loss")
        return averaged(losses.means("loss"), self.multioutput)


class MAE(MeanLoss):
    """Mean absolute error.

    Formula: Σ w |y - p| / Σ w

    Parameters are those of `RegressionMetric`.

    Memory and cost: one exact sum per output; about 4 ns per row.

    Reference: ``sklearn.metrics.mean_absolute_error``.

    Example:
        >>> import streammetrics as sm
        >>> sm.MAE().update([3.0, -0.5, 2.0, 7.0], [2.5, 0.0, 2.0, 8.0]).compute()
        0.5
        >>> sm.MAE(multioutput="raw_values").update([[1, 2], [3, 4]], [[1, 3], [3, 6]]).compute()
        array([0. , 1.5])
    """

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of absolute errors."""
        return (summed(self, "absolute"),)


class MSE(MeanLoss):
    """Mean squared error.

    Formula: Σ w (y - p)² / Σ w

    Squares are rounded to float64. One that would overflow is added exactly, so the mean is
    infinite only if it is itself too large for float64.

    Parameters are those of `RegressionMetric`.

    Memory and cost: one exact sum per output; about 4 ns per row.

    Reference: ``sklearn.metrics.mean_squared_error``.

    Example:
        >>> import streammetrics as sm
        >>> sm.MSE().update([3.0, -0.5, 2.0, 7.0], [2.5, 0.0, 2.0, 8.0]).compute()
        0.375
    """

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of squared errors."""
        return (summed(self, "squared"),)


class RootMeanLoss(RegressionMetric):
    """Base of the metrics that are the root of a mean loss, correctly rounded per output."""

    spread: bool = True

    higher_is_better = False
    value_range = (0.0, math.inf)
    family = Family.ROOT_MEAN_LOSS

    def readout(self, losses: LossSum) -> Value:
        """Return the root."""
        return averaged([root(mean) for mean in losses.means("loss")], self.multioutput)


class RMSE(RootMeanLoss):
    """Root mean squared error.

    Formula: √(Σ w (y - p)² / Σ w)

    The root is taken for each output, before outputs are averaged.

    Parameters are those of `RegressionMetric`.

    Memory and cost: as `MSE`, with which it shares its state in a set.

    Reference: ``sklearn.metrics.root_mean_squared_error``.

    Example:
        >>> import streammetrics as sm
        >>> sm.RMSE().update([3.0, -0.5, 2.0, 7.0], [2.5, 0.0, 2.0, 8.0]).compute()
        0.6123724356957945
    """

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of squared errors."""
        return (summed(self, "squared"),)


class MeanError(RegressionMetric):
    """Mean error (bias): positive where predictions are too high.

    Formula: Σ w (p - y) / Σ w

    Computed from the exact sums of predictions and of targets, and rounded once.

    The other parameters are those of `RegressionMetric`.

    Args:
        spread: Whether to sum the squares of errors too, which `confidence` needs; large batches
            then take longer.

    Memory and cost: two exact sums per output; about 5 ns per row.

    Reference: Hyndman and Koehler, "Another look at measures of forecast accuracy", Int. J.
    Forecasting 22 (2006), with the sign of a bias (prediction minus target).

    Example:
        >>> import streammetrics as sm
        >>> sm.MeanError().update([3.0, -0.5, 2.0, 7.0], [2.5, 0.0, 2.0, 8.0]).compute()
        0.25
    """

    family = Family.MEAN_ERROR

    spread: bool = True

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sums of targets and predictions."""
        return (
            (MomentSpread if self.spread else Moments)(
                of="pair", order="first", nan_policy=self.nan_policy
            ),
        )

    def readout(self, moments: Moments) -> Value:
        """Return the difference of the means."""
        means = zip(moments.means("y"), moments.means("p"), strict=True)
        return averaged([p - y for y, p in means], self.multioutput)


class PinballLoss(MeanLoss):
    """Mean pinball loss (quantile loss).

    Formula: Σ w max(alpha (y - p), (alpha - 1) (y - p)) / Σ w

    The other parameters are those of `RegressionMetric`.

    Args:
        alpha: The level of the quantile that is predicted, from 0 to 1.

    Memory and cost: one exact sum per output; about 5 ns per row.

    Reference: ``sklearn.metrics.mean_pinball_loss``.

    Example:
        >>> import streammetrics as sm
        >>> sm.PinballLoss(alpha=0.75).update([1.0, 2.0], [0.0, 4.0]).compute()
        0.625
    """

    alpha: Share = 0.5

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of losses."""
        return (summed(self, "pinball", self.alpha),)


class HuberLoss(MeanLoss):
    """Mean Huber loss: half the squared error up to δ, linear beyond.

    Formula: mean (e² / 2 if |e| <= δ, else δ (|e| - δ / 2)), with e = y - p.

    The other parameters are those of `RegressionMetric`.

    Args:
        delta: The absolute error from which the loss is linear, above 0.

    Memory and cost: one exact sum per output; about 6 ns per row.

    Reference: Huber, "Robust estimation of a location parameter", Ann. Math. Statist. 35 (1964);
    ``torch.nn.HuberLoss``.

    Example:
        >>> import streammetrics as sm
        >>> sm.HuberLoss(delta=1.0).update([0.0, 0.0], [0.5, 3.0]).compute()
        1.3125
    """

    delta: Annotated[float, Positive] = 1.0

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of losses."""
        return (summed(self, "huber", self.delta),)


class LogCoshError(MeanLoss):
    """Mean log-cosh error: quadratic for small errors, linear for large ones.

    Formula: Σ w log(cosh(y - p)) / Σ w

    Parameters are those of `RegressionMetric`.

    Memory and cost: one exact sum per output; about 30 ns per row.

    Reference: ``torchmetrics.LogCoshError``, but accurate for errors near 0 as well.

    Example:
        >>> import streammetrics as sm
        >>> sm.LogCoshError().update([0.0, 0.0], [1.0, 0.0]).compute()
        0.21689041524151362
    """

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of losses."""
        return (summed(self, "log_cosh"),)
