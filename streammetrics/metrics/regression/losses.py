"""Regression: means of one row's loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from streammetrics.core.constraints import Positive, Share
from streammetrics.core.exact.rounding import root
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
    """A mean of one row's loss."""

    spread: bool = True

    _younger = (("spread", False),)

    higher_is_better = False

    def readout(self, losses: LossSum) -> Value:
        """Return the mean loss."""
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

    A square is rounded as float64; where it would overflow it is summed exactly, and the mean is
    infinite only if it is itself too large.

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
    """The square root of a mean loss, correctly rounded for each output."""

    spread: bool = True

    _younger = (("spread", False),)

    higher_is_better = False

    def readout(self, losses: LossSum) -> Value:
        """Return the root."""
        return averaged([root(mean) for mean in losses.means("loss")], self.multioutput)


class RMSE(RootMeanLoss):
    """Root mean squared error, of each output.

    Formula: √(Σ w (y - p)² / Σ w)

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
    """Mean error or bias: positive where predictions are too high.

    Formula: Σ w (p - y) / Σ w

    Exact: taken from the sums of predictions and of targets, so nothing cancels.

    The other parameters are those of `RegressionMetric`.

    Args:
        spread: Whether the squares are summed as well that `confidence` needs; without them a
            large batch takes less time.

    Memory and cost: two exact sums per output; about 5 ns per row.

    Reference: Hyndman and Koehler, "Another look at measures of forecast accuracy", Int. J.
    Forecasting 22 (2006), with the sign of a bias (prediction minus target).

    Example:
        >>> import streammetrics as sm
        >>> sm.MeanError().update([3.0, -0.5, 2.0, 7.0], [2.5, 0.0, 2.0, 8.0]).compute()
        0.25
    """

    spread: bool = True

    _younger = (("spread", False),)

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
    """Pinball or quantile loss.

    Formula: Σ w max(alpha (y - p), (alpha - 1) (y - p)) / Σ w

    The other parameters are those of `RegressionMetric`.

    Args:
        alpha: The quantile that predictions are of, from 0 to 1.

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
    """Huber loss: half a square up to δ, straight beyond.

    Formula: mean (e² / 2 if |e| <= δ, else δ (|e| - δ / 2)), with e = y - p.

    The other parameters are those of `RegressionMetric`.

    Args:
        delta: Where the loss turns from a square to a line, above 0.

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
    """Mean log-cosh error: a square near 0, straight far out.

    Formula: Σ w log(cosh(y - p)) / Σ w

    Parameters are those of `RegressionMetric`.

    Memory and cost: one exact sum per output; about 30 ns per row. The bits of logarithms are
    those of the platform.

    Reference: ``torchmetrics.LogCoshError``; digits are kept for errors near 0 as well.

    Example:
        >>> import streammetrics as sm
        >>> sm.LogCoshError().update([0.0, 0.0], [1.0, 0.0]).compute()
        0.21689041524151362
    """

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of losses."""
        return (summed(self, "log_cosh"),)
