"""Regression metrics: the largest absolute error, its median and other quantiles."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.confidence import Refusal
from streammetrics.core.constraints import Bins, Share
from streammetrics.core.results.values import Interval
from streammetrics.core.types import RawValues
from streammetrics.metrics.distributions import distribution
from streammetrics.metrics.families import EXTREME, NO_MEAN, Family
from streammetrics.metrics.regression.base import RegressionMetric, averaged
from streammetrics.statistics.histograms import (
    LIGHT,
    Extremes,
    QuantileMethod,
    ValueHistogram,
    only,
)

if TYPE_CHECKING:
    from streammetrics.core.results.values import Result
    from streammetrics.core.statistic import Statistic
    from streammetrics.metrics.regression.base import Value
    from streammetrics.statistics.histograms import EnclosedValue


class MaxError(RegressionMetric[RawValues]):
    """Largest absolute error.

    Formula: max |y - p|

    Parameters are those of `RegressionMetric`.

    Memory and cost: 16 bytes per output; about 2 ns per row.

    Reference: ``sklearn.metrics.max_error``, which takes one output.

    Example:
        >>> import streammetrics as sm
        >>> sm.MaxError().update([3.0, -0.5, 2.0, 7.0], [2.5, 0.0, 2.0, 8.0]).compute()
        1.0
    """

    higher_is_better = False
    family = Refusal(EXTREME.format("largest", "AbsoluteErrorQuantile(q=0.99)"))
    _incomparable = NO_MEAN
    _reads_groups = True

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the extremes of the errors."""
        return (Extremes(of="errors", nan_policy=self.nan_policy),)

    def readout(self, errors: Extremes) -> Value:
        """Return the largest absolute error, combined over outputs as configured."""
        largest = np.maximum(errors.high, 0.0 - errors.low)
        if largest.ndim > 1:
            return only(largest)
        return averaged(largest.tolist(), self.multioutput)


class ErrorQuantile(RegressionMetric[RawValues]):
    """Base class of quantiles of the absolute error, with guaranteed bounds."""

    higher_is_better = False
    value_range = (0.0, math.inf)
    family = Family.ERROR_QUANTILE

    max_bins: Bins = 1 << 20

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the histogram of absolute errors."""
        return (ValueHistogram(of="errors", max_bins=self.max_bins, nan_policy=self.nan_policy),)

    def _shape(self, errors: ValueHistogram) -> Result:
        return distribution(errors)

    @abstractmethod
    def _estimates(self, errors: ValueHistogram) -> list[EnclosedValue]:
        """Return the quantile of each output."""

    def readout(self, errors: ValueHistogram) -> Value:
        """Return the quantile, or the midpoint of the interval that contains it."""
        return averaged([e.value for e in self._estimates(errors)], self.multioutput)

    def interval(self, errors: ValueHistogram) -> Interval[Value]:
        """Return an interval that is guaranteed to contain the quantile."""
        estimates = self._estimates(errors)
        return Interval(
            averaged([e.low for e in estimates], self.multioutput),
            averaged([e.high for e in estimates], self.multioutput),
        )

    def is_exact(self, errors: ValueHistogram) -> bool:
        """Whether each cell that the quantile is read from holds a single value."""
        return all(not e.low < e.high for e in self._estimates(errors))


class MedianAbsoluteError(ErrorQuantile[RawValues]):
    """Median absolute error: the mean of the two middle errors for an even number of rows.

    Formula: median |y - p|

    With weights it is the smallest error at or below which at least half the weight lies, or the
    mean of this error and the next if that is exactly half. The scale of the weights does not
    matter. Exact for up to `max_bins` distinct errors; beyond that, `bounds()` contains the value.

    The other parameters are those of `RegressionMetric`.

    Args:
        max_bins: The largest number of distinct errors per output for which the value is exact.

    Memory and cost: 16 bytes per distinct error, up to `max_bins`; about 10 ns per row.

    Reference: ``sklearn.metrics.median_absolute_error``.

    Example:
        >>> import streammetrics as sm
        >>> sm.MedianAbsoluteError().update([3.0, -0.5, 2.0, 7.0], [2.5, 0.0, 2.0, 8.0]).compute()
        0.5
    """

    def _estimates(self, errors: ValueHistogram) -> list[EnclosedValue]:
        return errors.quantiles(0.5, "averaged_inverted_cdf")


class AbsoluteErrorQuantile(ErrorQuantile[RawValues]):
    """Quantile of the absolute error.

    Formula: quantile_q |y - p|

    Exact for up to `max_bins` distinct errors. Beyond that, `bounds()` gives an interval that is
    guaranteed to contain the quantile.

    The other parameters are those of `RegressionMetric`.

    Args:
        q: The level, from 0 to 1, interpreted as the decimal number it prints as.
        method: ``"linear"`` or ``"averaged_inverted_cdf"``, as in `Quantile`.
        max_bins: The largest number of distinct errors per output for which the value is exact.

    Memory and cost: 16 bytes per distinct error, up to `max_bins`; about 10 ns per row.

    Reference: ``numpy.quantile`` with the same `method`.

    Example:
        >>> import streammetrics as sm
        >>> worst = sm.AbsoluteErrorQuantile(q=0.9)
        >>> worst.update([0.0, 0.0, 0.0], [1.0, 2.0, 3.0]).compute()
        2.8
    """

    _nan_reason = LIGHT

    q: Share
    method: QuantileMethod = "linear"

    def _estimates(self, errors: ValueHistogram) -> list[EnclosedValue]:
        return errors.quantiles(self.q, self.method)
