"""Errors divided by the scale of each row's series."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Self

from streammetrics.core.arithmetic.rounding import nearest, root
from streammetrics.metrics.families import Family
from streammetrics.metrics.rowwise import RowMean
from streammetrics.statistics.sums.forecasts import ScaledSum

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import ArrayLike
    from streammetrics.statistics.sums.rowwise import RowSum

__all__ = ["MASE", "RMSSE"]


class ScaledMetric(RowMean):
    """Base of the metrics of targets, predictions and the scale of each row's series."""

    def update(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        scale: ArrayLike,
        *,
        sample_weight: ArrayLike = None,
    ) -> Self:
        """Add a batch of rows: targets, predictions and the scales of their series, each (n,).

        Raises:
            InvalidBatchError: A scale is not above 0, or a column has a wrong type or length, or a
                missing or infinite value; the state is unchanged.
        """
        columns = {"y_true": y_true, "y_pred": y_pred, "scale": scale}
        return self.feed({**columns, "sample_weight": sample_weight})


class MASE(ScaledMetric):
    """Mean absolute scaled error.

    Formula: Σ w (|y - p| / s) / Σ w, with s the scale of the row's series.

    The scale of a series is the mean absolute error of the naive forecast, the value one season
    before, on the training rows: one number per series, given with each of its rows. Below 1 the
    predictions are better than the naive forecast was.

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

    Formula: √(Σ w ((y - p) / s)² / Σ w), with s the scale of the row's series.

    The scale of a series is the root mean squared error of the naive forecast on the training rows.
    For several series the mean is over the rows of all; for the value of each use `Slices` by
    series.

    Parameters are those of `RowMean`.

    Reference: Makridakis, Spiliotis and Assimakopoulos, "The M5 competition", Int. J. Forecasting
    38 (2022); ``sktime.performance_metrics.forecasting.MeanSquaredScaledError(square_root=True)``.

    Example:
        >>> import streammetrics as sm
        >>> sm.RMSSE().update([3.0, 5.0], [2.0, 5.0], [0.5, 0.5]).compute()
        1.4142135623730951
    """

    higher_is_better = False
    value_range = (0.0, math.inf)
    family = Family.ROOT_ROW_MEAN

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of squares of scaled errors."""
        return (ScaledSum(squared=True, nan_policy=self.nan_policy),)

    def readout(self, held: RowSum) -> float:
        """Return the root of the mean."""
        mean = held.exact_mean()
        return nearest(mean) if mean is None else root(mean)
