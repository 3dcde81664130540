"""Regression: how large absolute errors get, at most and at a quantile."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.constraints import Bins, Share
from streammetrics.core.results.values import Interval
from streammetrics.metrics.distributions import distribution
from streammetrics.metrics.regression.base import RegressionMetric, averaged
from streammetrics.statistics.sums.extremes import Extremes
from streammetrics.statistics.sums.values import QuantileMethod, ValueHistogram

if TYPE_CHECKING:
    from streammetrics.core.results.values import Result
    from streammetrics.core.statistic import Statistic
    from streammetrics.metrics.regression.base import Value
    from streammetrics.statistics.sums.values import EnclosedValue

__all__ = ["AbsoluteErrorQuantile", "MaxError", "MedianAbsoluteError"]


class MaxError(RegressionMetric):
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

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the extremes of the errors."""
        return (Extremes(of="errors", nan_policy=self.nan_policy),)

    def readout(self, errors: Extremes) -> Value:
        """Return the larger of both in magnitude."""
        return averaged(np.maximum(errors.high, 0.0 - errors.low).tolist(), self.multioutput)


class ErrorQuantile(RegressionMetric):
    """A quantile of the absolute error, certain to lie in `bounds`."""

    higher_is_better = False

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
        """Return the quantile, or the middle of the interval it lies in."""
        return averaged([e.value for e in self._estimates(errors)], self.multioutput)

    def interval(self, errors: ValueHistogram) -> Interval[Value]:
        """Return what the quantile certainly lies in."""
        estimates = self._estimates(errors)
        return Interval(
            averaged([e.low for e in estimates], self.multioutput),
            averaged([e.high for e in estimates], self.multioutput),
        )

    def is_exact(self, errors: ValueHistogram) -> bool:
        """Whether the cells that the quantile lies in hold a single value."""
        return all(not e.low < e.high for e in self._estimates(errors))


class MedianAbsoluteError(ErrorQuantile):
    """Median of the absolute error: the mean of the two middle ones where there are two.

    Formula: median |y - p|

    With weights, the error at which half the total weight is passed, or the mean of its two
    neighbours where half is met exactly; the scale of the weights does not matter.

    The other parameters are those of `RegressionMetric`.

    Args:
        max_bins: Distinct errors, for each output, up to which the value is exact.

    Memory and cost: 16 bytes per distinct error, up to `max_bins`; about 10 ns per row.

    Reference: ``sklearn.metrics.median_absolute_error``.

    Example:
        >>> import streammetrics as sm
        >>> sm.MedianAbsoluteError().update([3.0, -0.5, 2.0, 7.0], [2.5, 0.0, 2.0, 8.0]).compute()
        0.5
    """

    def _estimates(self, errors: ValueHistogram) -> list[EnclosedValue]:
        return errors.quantiles(0.5, "averaged_inverted_cdf")


class AbsoluteErrorQuantile(ErrorQuantile):
    """Quantile of the absolute error: what a share `q` of the errors stays below.

    Formula: quantile_q |y - p|

    The other parameters are those of `RegressionMetric`.

    Args:
        q: The level, from 0 to 1, read as the decimal it prints as.
        method: ``"linear"`` interpolates between order statistics; a weight is that many equal
            rows, and a total weight below 1 leaves it undefined. ``"averaged_inverted_cdf"`` does
            not depend on the scale of the weights.
        max_bins: Distinct errors, for each output, up to which the value is exact.

    Memory and cost: 16 bytes per distinct error, up to `max_bins`; about 10 ns per row.

    Reference: ``numpy.quantile`` with the same `method`.

    Example:
        >>> import streammetrics as sm
        >>> worst = sm.AbsoluteErrorQuantile(q=0.9)
        >>> worst.update([0.0, 0.0, 0.0], [1.0, 2.0, 3.0]).compute()
        2.8
    """

    q: Share
    method: QuantileMethod = "linear"

    def _estimates(self, errors: ValueHistogram) -> list[EnclosedValue]:
        return errors.quantiles(self.q, self.method)
