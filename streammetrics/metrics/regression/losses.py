"""Regression: means of one row's loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from streammetrics.core.constraints import Outside, Positive, Share
from streammetrics.core.exact.rounding import root
from streammetrics.metrics.regression.base import OutputwiseMetric, averaged, ratio
from streammetrics.statistics.sums.moments import Moments

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic
    from streammetrics.metrics.regression.base import Value
    from streammetrics.statistics.sums.losses import LossSum

__all__ = [
    "MAE",
    "MAPE",
    "MSE",
    "MSLE",
    "RMSE",
    "RMSLE",
    "SMAPE",
    "WAPE",
    "GammaDeviance",
    "HuberLoss",
    "LogCoshError",
    "MeanError",
    "PinballLoss",
    "PoissonDeviance",
    "TweedieDeviance",
]


class MeanLoss(OutputwiseMetric):
    """A mean of one row's loss."""

    def readout(self, losses: LossSum) -> Value:
        """Return the mean loss."""
        return averaged(losses.means("loss"), self.multioutput)


class MAE(MeanLoss):
    """Mean absolute error, Σ w |y - p| / Σ w.

    Args: see `RegressionMetric`.
    Memory and cost: one exact sum for each output; about 4 ns a row.
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
        return (self._losses("absolute"),)


class MSE(MeanLoss):
    """Mean squared error, Σ w (y - p)² / Σ w.

    A square is rounded as float64; where it would overflow it is summed exactly, and the mean is
    infinite only if it is itself too large.

    Args: see `RegressionMetric`.
    Memory and cost: one exact sum for each output; about 4 ns a row.
    Reference: ``sklearn.metrics.mean_squared_error``.

    Example:
        >>> import streammetrics as sm
        >>> sm.MSE().update([3.0, -0.5, 2.0, 7.0], [2.5, 0.0, 2.0, 8.0]).compute()
        0.375
    """

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of squared errors."""
        return (self._losses("squared"),)


class RootMeanLoss(OutputwiseMetric):
    """The square root of a mean loss, correctly rounded for each output."""

    def readout(self, losses: LossSum) -> Value:
        """Return the root."""
        return averaged([root(mean) for mean in losses.means("loss")], self.multioutput)


class RMSE(RootMeanLoss):
    """Root mean squared error, √MSE of each output.

    Args: see `RegressionMetric`.
    Memory and cost: as `MSE`, with which it shares its state in a set.
    Reference: ``sklearn.metrics.root_mean_squared_error``.

    Example:
        >>> import streammetrics as sm
        >>> sm.RMSE().update([3.0, -0.5, 2.0, 7.0], [2.5, 0.0, 2.0, 8.0]).compute()
        0.6123724356957945
    """

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of squared errors."""
        return (self._losses("squared"),)


class MeanError(OutputwiseMetric):
    """Mean error or bias, Σ w (p - y) / Σ w: positive where predictions are too high.

    Exact: taken from the sums of predictions and of targets, so nothing cancels.

    Args: see `RegressionMetric`.
    Memory and cost: two exact sums for each output; about 5 ns a row.
    Reference: Hyndman and Koehler, "Another look at measures of forecast accuracy", Int. J.
    Forecasting 22 (2006), with the sign of a bias (prediction minus target).

    Example:
        >>> import streammetrics as sm
        >>> sm.MeanError().update([3.0, -0.5, 2.0, 7.0], [2.5, 0.0, 2.0, 8.0]).compute()
        0.25
    """

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sums of targets and predictions."""
        return (Moments(of="pair", order="first", nan_policy=self.nan_policy),)

    def readout(self, moments: Moments) -> Value:
        """Return the difference of the means."""
        means = zip(moments.means("y"), moments.means("p"), strict=True)
        return averaged([p - y for y, p in means], self.multioutput)


class MAPE(MeanLoss):
    """Mean absolute percentage error, as a share: Σ w |y - p| / max(|y|, ε) / Σ w, ε = 2⁻⁵².

    Args: see `RegressionMetric`.

    Raises:
        InvalidBatchError: From `update`, where a row's error is beyond float64.

    Memory and cost: one exact sum for each output; about 6 ns a row.
    Reference: ``sklearn.metrics.mean_absolute_percentage_error``.

    Example:
        >>> import streammetrics as sm
        >>> sm.MAPE().update([2.0, 4.0], [1.0, 5.0]).compute()
        0.375
    """

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of relative errors."""
        return (self._losses("percentage"),)


class SMAPE(MeanLoss):
    """Symmetric mean absolute percentage error, Σ w 2 |y - p| / (|y| + |p|) / Σ w, from 0 to 2.

    A row where both are 0 has no error.

    Args: see `RegressionMetric`.
    Memory and cost: one exact sum for each output; about 6 ns a row.
    Reference: Makridakis and Hibon, "The M3-Competition", Int. J. Forecasting 16 (2000), where
    it is given in percent.

    Example:
        >>> import streammetrics as sm
        >>> sm.SMAPE().update([0.0, 1.0], [0.0, 3.0]).compute()
        0.5
    """

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of symmetric relative errors."""
        return (self._losses("symmetric_percentage"),)


class WAPE(OutputwiseMetric):
    """Weighted absolute percentage error, Σ w |y - p| / Σ w |y|.

    Undefined where every target is 0.

    Args: see `RegressionMetric`.
    Memory and cost: two exact sums for each output, one of them that of `MAE`; about 6 ns a row.
    Reference: Kolassa and Schütz, "Advantages of the MAD/Mean ratio over the MAPE",
    Foresight 6 (2007).

    Example:
        >>> import streammetrics as sm
        >>> sm.WAPE().update([2.0, 6.0], [1.0, 7.0]).compute()
        0.25
    """

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sums of absolute errors and of targets."""
        return self._losses("absolute"), self._losses("magnitude")

    def readout(self, errors: LossSum, targets: LossSum) -> Value:
        """Return the ratio."""
        sums = zip(errors.exact("loss"), targets.exact("loss"), strict=True)
        return averaged([ratio(error, size) for error, size in sums], self.multioutput)


class MSLE(MeanLoss):
    """Mean squared logarithmic error, Σ w (log(1 + y) - log(1 + p))² / Σ w.

    Args: see `RegressionMetric`.

    Raises:
        InvalidBatchError: From `update`, where a target or prediction is -1 or less.

    Memory and cost: one exact sum for each output; about 15 ns a row. The bits of logarithms are
    those of the platform.
    Reference: ``sklearn.metrics.mean_squared_log_error``.

    Example:
        >>> import streammetrics as sm
        >>> sm.MSLE().update([3.0, 5.0], [2.5, 5.0]).compute()
        0.008915316408122194
    """

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of squared differences of logarithms."""
        return (self._losses("squared_log"),)


class RMSLE(RootMeanLoss):
    """Root mean squared logarithmic error, √MSLE of each output.

    Args: see `RegressionMetric`.

    Raises:
        InvalidBatchError: From `update`, where a target or prediction is -1 or less.

    Memory and cost: as `MSLE`, with which it shares its state in a set.
    Reference: ``sklearn.metrics.root_mean_squared_log_error``.

    Example:
        >>> import streammetrics as sm
        >>> sm.RMSLE().update([3.0, 5.0], [2.5, 5.0]).compute()
        0.09442095322608321
    """

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of squared differences of logarithms."""
        return (self._losses("squared_log"),)


class PinballLoss(MeanLoss):
    """Pinball or quantile loss, Σ w max(alpha (y - p), (alpha - 1) (y - p)) / Σ w.

    Args:
        alpha: The quantile that predictions are of, from 0 to 1.
        multioutput, nan_policy: See `RegressionMetric`.

    Memory and cost: one exact sum for each output; about 5 ns a row.
    Reference: ``sklearn.metrics.mean_pinball_loss``.

    Example:
        >>> import streammetrics as sm
        >>> sm.PinballLoss(alpha=0.75).update([1.0, 2.0], [0.0, 4.0]).compute()
        0.625
    """

    alpha: Share = 0.5

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of losses."""
        return (self._losses("pinball", self.alpha),)


class HuberLoss(MeanLoss):
    """Huber loss: the mean of e² / 2 where |e| <= δ, δ (|e| - δ / 2) beyond; e = y - p.

    Args:
        delta: Where the loss turns from a square to a line, above 0.
        multioutput, nan_policy: See `RegressionMetric`.

    Memory and cost: one exact sum for each output; about 6 ns a row.
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
        return (self._losses("huber", self.delta),)


class LogCoshError(MeanLoss):
    """Mean of log cosh(y - p): a square near 0, |y - p| - log 2 far out.

    Args: see `RegressionMetric`.
    Memory and cost: one exact sum for each output; about 30 ns a row. The bits of logarithms are
    those of the platform.
    Reference: ``torchmetrics.LogCoshError``; digits are kept for errors near 0 as well.

    Example:
        >>> import streammetrics as sm
        >>> sm.LogCoshError().update([0.0, 0.0], [1.0, 0.0]).compute()
        0.21689041524151362
    """

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of losses."""
        return (self._losses("log_cosh"),)


class TweedieDeviance(MeanLoss):
    """Mean deviance of a Tweedie distribution: the larger the power, the less far targets count.

    ``2 (max(y, 0)^(2-q) / ((1-q)(2-q)) - y p^(1-q) / (1-q) + p^(2-q) / (2-q))`` for the power q;
    q = 0 is `MSE`, 1 `PoissonDeviance`, 2 `GammaDeviance`, 3 that of the inverse Gaussian.

    Args:
        power: 0 or less, or 1 or more.
        multioutput, nan_policy: See `RegressionMetric`.

    Raises:
        InvalidBatchError: From `update`, where a prediction is not above 0 (unless the power is 0),
            a target is below 0 (a power from 1) or is 0 (a power from 2).

    Memory and cost: one exact sum for each output; about 60 ns a row. The bits of powers are
    those of the platform.
    Reference: ``sklearn.metrics.mean_tweedie_deviance``.

    Example:
        >>> import streammetrics as sm
        >>> sm.TweedieDeviance(power=1.5).update([1.0, 4.0], [4.0, 4.0]).compute()
        1.0
    """

    power: Annotated[float, Outside(0, 1)] = 0.0

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of deviances."""
        if self.power == 0:
            return (self._losses("squared"),)
        return (self._losses("tweedie", self.power),)


class PoissonDeviance(MeanLoss):
    """Mean deviance of a Poisson distribution, Σ w 2 (y log(y / p) - y + p) / Σ w.

    Args: see `RegressionMetric`.

    Raises:
        InvalidBatchError: From `update`, where a target is below 0 or a prediction not above 0.

    Memory and cost: as `TweedieDeviance`, half the time.
    Reference: ``sklearn.metrics.mean_poisson_deviance``.

    Example:
        >>> import streammetrics as sm
        >>> sm.PoissonDeviance().update([2.0, 0.0], [2.0, 1.5]).compute()
        1.5
    """

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of deviances."""
        return (self._losses("tweedie", 1.0),)


class GammaDeviance(MeanLoss):
    """Mean deviance of a gamma distribution, Σ w 2 (log(p / y) + y / p - 1) / Σ w.

    Args: see `RegressionMetric`.

    Raises:
        InvalidBatchError: From `update`, where a target or prediction is not above 0.

    Memory and cost: as `TweedieDeviance`, half the time.
    Reference: ``sklearn.metrics.mean_gamma_deviance``.

    Example:
        >>> import streammetrics as sm
        >>> sm.GammaDeviance().update([1.0, 2.0], [2.0, 2.0]).compute()
        0.1931471805599454
    """

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of deviances."""
        return (self._losses("tweedie", 2.0),)
