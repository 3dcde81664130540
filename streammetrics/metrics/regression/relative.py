"""Regression: errors relative to the target, and errors of logarithms."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from streammetrics.metrics.families import Family
from streammetrics.metrics.regression.base import (
    RegressionMetric,
    averaged,
    ratio_or_none,
    summed,
    where_zero,
)
from streammetrics.metrics.regression.losses import MeanLoss, RootMeanLoss

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic
    from streammetrics.metrics.regression.base import Value
    from streammetrics.statistics.sums.losses import LossSum

__all__ = ["MAPE", "MSLE", "RMSLE", "SMAPE", "WAPE"]


class MAPE(MeanLoss):
    """Mean absolute percentage error, as a fraction: 0.1 is 10%.

    Formula: Σ w (|y - p| / max(|y|, ε)) / Σ w, with ε = 2⁻⁵².

    Parameters are those of `RegressionMetric`.

    Raises:
        InvalidBatchError: From `update`, where the relative error of a row is beyond float64.

    Memory and cost: one exact sum per output; about 6 ns per row.

    Reference: ``sklearn.metrics.mean_absolute_percentage_error``.

    Example:
        >>> import streammetrics as sm
        >>> sm.MAPE().update([2.0, 4.0], [1.0, 5.0]).compute()
        0.375
    """

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of relative errors."""
        return (summed(self, "percentage"),)


class SMAPE(MeanLoss):
    """Symmetric mean absolute percentage error, from 0 to 2.

    Formula: Σ w (2 |y - p| / (|y| + |p|)) / Σ w

    A row where both are 0 has the error 0.

    Parameters are those of `RegressionMetric`.

    Memory and cost: one exact sum per output; about 6 ns per row.

    Reference: Makridakis and Hibon, "The M3-Competition", Int. J. Forecasting 16 (2000), where
    it is a percentage.

    Example:
        >>> import streammetrics as sm
        >>> sm.SMAPE().update([0.0, 1.0], [0.0, 3.0]).compute()
        0.5
    """

    value_range = (0.0, 2.0)
    family = Family.BOUNDED_LOSS

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of symmetric relative errors."""
        return (summed(self, "symmetric_percentage"),)


class WAPE(RegressionMetric):
    """Weighted absolute percentage error.

    Formula: Σ w |y - p| / Σ w |y|

    Undefined where every target is 0.

    The other parameters are those of `RegressionMetric`.

    Args:
        spread: Whether to sum squares and products too, which `confidence` needs; large batches
            then take longer.

    Memory and cost: two exact sums per output, one of them that of `MAE`; about 6 ns per row.

    Reference: Kolassa and Schütz, "Advantages of the MAD/Mean ratio over the MAPE",
    Foresight 6 (2007).

    Example:
        >>> import streammetrics as sm
        >>> sm.WAPE().update([2.0, 6.0], [1.0, 7.0]).compute()
        0.25
    """

    higher_is_better = False
    value_range = (0.0, math.inf)
    family = Family.LOSS_RATIO

    spread: bool = True

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sums of absolute errors and of targets, and if needed their second moments."""
        sums = summed(self, "absolute"), summed(self, "magnitude")
        return (*sums, summed(self, "absolute_and_magnitude")) if self.spread else sums

    def _lacking(self, *statistics: Any) -> str:
        return where_zero(statistics[1].exact("loss"), "every target is 0")

    def readout(self, errors: LossSum, targets: LossSum, *_: LossSum) -> Value:
        """Return the ratio."""
        sums = zip(errors.exact("loss"), targets.exact("loss"), strict=True)
        return averaged([ratio_or_none(error, size) for error, size in sums], self.multioutput)


class MSLE(MeanLoss):
    """Mean squared logarithmic error.

    Formula: Σ w (log(1 + y) - log(1 + p))² / Σ w

    Parameters are those of `RegressionMetric`.

    Raises:
        InvalidBatchError: From `update`, where a target or a prediction is -1 or less.

    Memory and cost: one exact sum per output; about 15 ns per row.

    Reference: ``sklearn.metrics.mean_squared_log_error``.

    Example:
        >>> import streammetrics as sm
        >>> round(sm.MSLE().update([3.0, 5.0], [2.5, 5.0]).compute(), 6)
        0.008915
    """

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of squared differences of logarithms."""
        return (summed(self, "squared_log"),)


class RMSLE(RootMeanLoss):
    """Root mean squared logarithmic error.

    Formula: √(Σ w (log(1 + y) - log(1 + p))² / Σ w)

    The root is taken for each output, before outputs are averaged.

    Parameters are those of `RegressionMetric`.

    Raises:
        InvalidBatchError: From `update`, where a target or a prediction is -1 or less.

    Memory and cost: as `MSLE`, with which it shares its state in a set.

    Reference: ``sklearn.metrics.root_mean_squared_log_error``.

    Example:
        >>> import streammetrics as sm
        >>> round(sm.RMSLE().update([3.0, 5.0], [2.5, 5.0]).compute(), 6)
        0.094421
    """

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of squared differences of logarithms."""
        return (summed(self, "squared_log"),)
