"""Regression: losses relative to that of the best constant prediction, and adjusted R²."""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

from streammetrics.core.arithmetic.rounding import nearest
from streammetrics.core.confidence import Refusal
from streammetrics.core.constraints import AtLeast, Bins, Share
from streammetrics.core.results.values import Interval
from streammetrics.metrics.families import BASELINE
from streammetrics.metrics.regression.base import RegressionMetric, averaged, where_zero
from streammetrics.statistics.sums.losses import LossSum
from streammetrics.statistics.sums.moments import Moments
from streammetrics.statistics.sums.values import EnclosedValue, ValueHistogram, deviation, quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.statistic import Statistic
    from streammetrics.metrics.regression.base import Value

__all__ = ["AdjustedR2", "D2AbsoluteError", "D2Pinball", "RelativeAbsoluteError"]


class TargetShare(RegressionMetric):
    """Base of the losses relative to that of a constant, which needs a histogram of the targets.

    Args:
        max_bins: How many distinct targets are kept apart for each output. Up to these the value is
            exact; beyond that `bounds()` contains it.
    """

    max_bins: Bins = 1 << 20

    def _targets(self) -> ValueHistogram:
        return ValueHistogram(of="targets", max_bins=self.max_bins, nan_policy=self.nan_policy)

    @abstractmethod
    def _shares(self, *statistics: object) -> list[EnclosedValue]:
        """Return the value of each output and its bounds."""

    def readout(self, *statistics: object) -> Value:
        """Return the value, or an estimate within its bounds."""
        return averaged([each.value for each in self._shares(*statistics)], self.multioutput)

    def _lacking(self, *statistics: Any) -> str:
        defined = [not math.isnan(each.value) for each in self._shares(*statistics)]
        return where_zero(defined, "the target is constant")

    def interval(self, *statistics: object) -> Interval[Value]:
        """Return the interval that certainly contains the value."""
        values = self._shares(*statistics)
        low = averaged([each.low for each in values], self.multioutput)
        return Interval(low, averaged([each.high for each in values], self.multioutput))

    def is_exact(self, *statistics: object) -> bool:
        """Whether the histogram of targets holds every one of them."""
        return all(not each.low < each.high for each in self._shares(*statistics))


class D2Pinball(TargetShare):
    """D² pinball: how much lower the pinball loss is than that of the targets' quantile.

    Formula: 1 - L(p) / L(q), with L the pinball loss and q the alpha quantile of the targets.

    This quantile is the best constant prediction: 1 is perfect, 0 no better than it. Undefined
    where the target is constant.

    The other parameters are those of `RegressionMetric`.

    Args:
        alpha: The level of the quantile that is predicted, from 0 to 1.
        max_bins: How many distinct targets are kept apart for each output; up to these the value
            is exact.

    Memory and cost: 16 bytes per distinct target, up to `max_bins`; about 15 ns per row.

    Confidence: only by units, ``MetricSet(..., unit=...)``: the state does not hold how
    the two losses vary together.

    Reference: ``sklearn.metrics.d2_pinball_score``.

    Example:
        >>> import streammetrics as sm
        >>> sm.D2Pinball(alpha=0.5).update([1.0, 2.0, 3.0], [1.0, 2.5, 3.0]).compute()
        0.75
    """

    higher_is_better = True
    family = Refusal(BASELINE.format("loss", "PinballLoss"))

    alpha: Share = 0.5

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of losses, and the histogram of targets."""
        loss = LossSum(loss="pinball", parameter=self.alpha, nan_policy=self.nan_policy)
        return loss, self._targets()

    def _shares(self, *statistics: object) -> list[EnclosedValue]:
        up = Fraction(str(self.alpha))  # as the quantile has it, of which it is the least then
        return _saved(statistics, self.alpha, (up, 1 - up))


class D2AbsoluteError(TargetShare):
    """D² absolute error: how much lower the absolute error is than that of the targets' median.

    Formula: 1 - Σ w |y - p| / Σ w |y - m|, with m the median of y.

    1 is perfect, 0 no better than the median. Undefined where the target is constant.

    The other parameters are those of `RegressionMetric`.

    Args:
        max_bins: How many distinct targets are kept apart for each output; up to these the value
            is exact.

    Memory and cost: 16 bytes per distinct target, up to `max_bins`; about 15 ns per row.

    Confidence: only by units, ``MetricSet(..., unit=...)``: the state does not hold how
    the two losses vary together.

    Reference: ``sklearn.metrics.d2_absolute_error_score``.

    Example:
        >>> import streammetrics as sm
        >>> sm.D2AbsoluteError().update([1.0, 2.0, 3.0], [1.0, 2.5, 3.0]).compute()
        0.75
    """

    higher_is_better = True
    family = Refusal(BASELINE.format("loss", "MAE"))

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of absolute errors, and the histogram of targets."""
        return LossSum(loss="absolute", nan_policy=self.nan_policy), self._targets()

    def _shares(self, *statistics: object) -> list[EnclosedValue]:
        return _saved(statistics, 0.5, (Fraction(1), Fraction(1)))


def _saved(
    statistics: Sequence[Any], level: float, slopes: tuple[Fraction, Fraction]
) -> list[EnclosedValue]:
    """Return 1 less the ratios of losses to those of the best constant, a quantile."""
    losses, targets = statistics
    values = []
    for loss, histogram in zip(losses.exact("loss"), targets.histograms, strict=True):
        at = quantile(histogram, level, "averaged_inverted_cdf")
        # The smallest and the largest target are on one side of all: errors there cost nothing.
        costly = deviation(histogram, (at.low, at.high), *slopes) if all(slopes) else _FREE
        value, low, high = _over(loss, costly)
        values.append(EnclosedValue(*(nearest(1 - each) for each in (value, high, low))))
    return values


_FREE = (Fraction(0), Fraction(0), Fraction(0))


def _over(
    loss: Fraction, nulls: tuple[Fraction, Fraction, Fraction]
) -> tuple[Fraction | float, Fraction | float, Fraction | float]:
    """Return the ratio of a loss to that of a constant, given as bounds and a value between them.

    The value, then its bounds. The loss of a constant is 0 only where the targets are, and then all
    three are: targets of which a cell holds several differ.
    """
    least, null, most = nulls
    if not most:
        return math.nan, math.nan, math.nan
    if not loss:
        return loss, loss, loss
    return loss / null, loss / most, loss / least if least else math.inf


class RelativeAbsoluteError(TargetShare):
    """Relative absolute error: the absolute error over that of predicting the targets' mean.

    Formula: Σ w |y - p| / Σ w |y - ȳ|, with ȳ the mean target.

    Undefined where the target is constant.

    The other parameters are those of `RegressionMetric`.

    Args:
        max_bins: How many distinct targets are kept apart for each output; up to these the value
            is exact.

    Memory and cost: 16 bytes per distinct target, up to `max_bins`; about 20 ns per row.

    Confidence: only by units, ``MetricSet(..., unit=...)``: the state does not hold how
    the two losses vary together.

    Reference: Witten, Frank and Hall, "Data Mining" (2011), 5.8.

    Example:
        >>> import streammetrics as sm
        >>> sm.RelativeAbsoluteError().update([1.0, 2.0, 3.0], [1.0, 2.0, 4.0]).compute()
        0.5
    """

    higher_is_better = False
    family = Refusal(BASELINE.format("loss", "MAE"))

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sums of absolute errors and of targets, and the histogram of targets."""
        of_targets = Moments(of="target", order="first", nan_policy=self.nan_policy)
        return LossSum(loss="absolute", nan_policy=self.nan_policy), of_targets, self._targets()

    def _shares(self, *statistics: Any) -> list[EnclosedValue]:
        losses, moments, targets = statistics
        values = []
        each = zip(losses.exact("loss"), moments.means("y"), targets.histograms, strict=True)
        for loss, mean, histogram in each:
            nulls = deviation(histogram, (mean, mean), Fraction(1), Fraction(1))
            values.append(EnclosedValue(*map(nearest, _over(loss, nulls))))
        return values


class AdjustedR2(RegressionMetric):
    """Adjusted R², which takes the number of features of the model into account.

    Formula: 1 - (1 - R²) (n - 1) / (n - p - 1), with p features and n the number of rows, or their
    total weight.

    Undefined where the target is constant, or n is at most p + 1.

    The other parameters are those of `RegressionMetric`.

    Args:
        n_features: The number p of features, not counting the intercept.

    Memory and cost: as `R2`, with which it shares its state in a set.

    Reference: Theil, "Economic Forecasts and Policy" (1961); ``torchmetrics.R2Score(adjusted=p)``.

    Example:
        >>> import streammetrics as sm
        >>> adjusted = sm.AdjustedR2(n_features=1)
        >>> adjusted.update([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 5.0]).compute()
        0.7
    """

    higher_is_better = True
    _nan_reason = "the target is constant, or there are at most n_features + 1 rows"
    family = Refusal("it takes off what R2 is too large by; R2(spread=True) has limits")

    n_features: Annotated[int, AtLeast(0)]

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of squared errors and the target's moments."""
        squares = LossSum(loss="squared", nan_policy=self.nan_policy)
        return squares, Moments(of="target", nan_policy=self.nan_policy)

    def readout(self, squares: LossSum, moments: Moments) -> Value:
        """Return the value."""
        n, left = squares.total, squares.total - self.n_features - 1
        pairs = zip(squares.exact("loss"), moments.centred("y", "y"), strict=True)
        shares = [
            1 - error / spread * (n - 1) / left if spread and left > 0 else None
            for error, spread in pairs
        ]
        return averaged(shares, self.multioutput)
