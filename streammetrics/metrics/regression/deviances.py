"""Regression: means of deviances of distributions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from streammetrics.core.constraints import Outside
from streammetrics.metrics.regression.base import summed
from streammetrics.metrics.regression.losses import MeanLoss

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic

__all__ = ["GammaDeviance", "PoissonDeviance", "TweedieDeviance"]


class TweedieDeviance(MeanLoss):
    """Mean deviance of a Tweedie distribution: the larger the power, the less far targets count.

    Formula: 2 mean (max(y, 0)^(2-q) / ((1 - q) (2 - q)) - y p^(1-q) / (1 - q) + p^(2-q) / (2 - q)),
    with q the power.

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
            return (summed(self, "squared"),)
        return (summed(self, "tweedie", self.power),)


class PoissonDeviance(MeanLoss):
    """Mean deviance of a Poisson distribution.

    Formula: 2 Σ w (y log(y / p) - y + p) / Σ w

    Parameters are those of `RegressionMetric`.

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
        return (summed(self, "tweedie", 1.0),)


class GammaDeviance(MeanLoss):
    """Mean deviance of a gamma distribution.

    Formula: 2 Σ w (log(p / y) + y / p - 1) / Σ w

    Parameters are those of `RegressionMetric`.

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
        return (summed(self, "tweedie", 2.0),)
