"""Errors by the scale of the series that a row is of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from streammetrics.core.exact.rounding import nearest, root
from streammetrics.metrics.rowwise import RowMean
from streammetrics.statistics.sums.forecasts import ScaledSum

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import ArrayLike
    from streammetrics.statistics.sums.rowwise import RowSum

__all__ = ["MASE", "RMSSE"]


class ScaledMetric(RowMean):
    """A metric of targets, predictions and the scale of each row's series."""

    def update(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        scale: ArrayLike,
        *,
        sample_weight: ArrayLike = None,
    ) -> Self:
        """Take rows: targets, predictions and the scale of their series, each (n,).

        Raises:
            InvalidBatchError: A scale is not above 0, or a column is not what it should be.
        """
        columns = {"y_true": y_true, "y_pred": y_pred, "scale": scale}
        return self.feed({**columns, "sample_weight": sample_weight})


class MASE(ScaledMetric):
    """Mean absolute scaled error.

    Formula: Σ w (|y - p| / s) / Σ w

    The scale s of a series is the mean absolute error of the naive forecast, the value one season
    before, over the rows that the model was made of: one number for each series, which stands
    beside each of its rows. Below 1 is better than that forecast was.

    Parameters are those of `RowMean`.

    Reference: Hyndman and Koehler, "Another look at measures of forecast accuracy", Int. J.
    Forecasting 22 (2006); ``sktime.performance_metrics.forecasting.MeanAbsoluteScaledError``.

    Example:
        >>> import streammetrics as sm
        >>> sm.MASE().update([3.0, 5.0, 20.0], [2.0, 5.0, 28.0], [0.5, 0.5, 8.0]).compute()
        1.0
    """

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of scaled errors."""
        return (ScaledSum(nan_policy=self.nan_policy),)


class RMSSE(ScaledMetric):
    """Root mean squared scaled error.

    Formula: √(Σ w ((y - p) / s)² / Σ w)

    The scale s of a series is the root mean squared error of the naive forecast over the rows that
    the model was made of. Of several series it is the root of the mean over all rows; that of each
    is in slices by series.

    Parameters are those of `RowMean`.

    Reference: Makridakis, Spiliotis and Assimakopoulos, "The M5 competition", Int. J. Forecasting
    38 (2022); ``sktime.performance_metrics.forecasting.MeanSquaredScaledError(square_root=True)``.

    Example:
        >>> import streammetrics as sm
        >>> sm.RMSSE().update([3.0, 5.0], [2.0, 5.0], [0.5, 0.5]).compute()
        1.4142135623730951
    """

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of squares of scaled errors."""
        return (ScaledSum(squared=True, nan_policy=self.nan_policy),)

    def readout(self, held: RowSum) -> float:
        """Return the root of the mean."""
        mean = held.exact_mean()
        return nearest(mean) if mean is None else root(mean)
