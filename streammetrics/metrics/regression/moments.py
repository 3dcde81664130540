"""Explained variance and correlation, from moments and shares of losses."""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from itertools import starmap
from typing import TYPE_CHECKING, Annotated, Any, Literal

from streammetrics.core.arithmetic.exact import nearest, quotient, root
from streammetrics.core.confidence import Refusal
from streammetrics.core.constraints import AtLeast, Bins, Share
from streammetrics.core.results.values import Interval
from streammetrics.core.types import RawValues
from streammetrics.metrics.families import BASELINE, Family
from streammetrics.metrics.regression.base import (
    RegressionMetric,
    Weights,
    averaged,
    ratio_or_none,
    where_zero,
)
from streammetrics.statistics.histograms import EnclosedValue, ValueHistogram, deviation, quantile
from streammetrics.statistics.joint import MomentSample
from streammetrics.statistics.sums import LossSum, Moments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.statistic import Statistic
    from streammetrics.metrics.regression.base import Value


def _sampled(metric: VarianceRatio[RawValues] | PairMoments[RawValues]) -> tuple[MomentSample, ...]:
    """Return the sample of rows that `confidence` needs, if the metric has ``spread=True``."""
    return (MomentSample(nan_policy=metric.nan_policy),) if metric.spread else ()


def _constant(*statistics: Statistic) -> str:
    """Return which column is constant."""
    (moments,) = (each for each in statistics if isinstance(each, Moments))
    why = where_zero(moments.centred("y", "y"), "the target is constant")
    if moments.of != "pair":
        return why
    return why or where_zero(moments.centred("p", "p"), "the prediction is constant")


class PairMoments(RegressionMetric[RawValues]):
    """Base class of metrics that are a ratio of moments of targets and predictions."""

    spread: bool = False

    def _lacking(self, *statistics: Statistic) -> str:
        return _constant(*statistics)


class VarianceRatio(RegressionMetric[RawValues]):
    """Base class of ratios to the variance of the target; undefined for outputs where it is 0."""

    spread: bool = False
    multioutput: Literal["uniform_average"] | RawValues | Literal["variance_weighted"] | Weights = (
        "uniform_average"  # type: ignore[assignment]  # one more value than in the base
    )

    def _lacking(self, *statistics: Statistic) -> str:
        return _constant(*statistics)

    def _averaged(self, values: Sequence[Fraction | None], spread: Sequence[Fraction]) -> Value:
        return _over_outputs(values, spread, self.multioutput)


def _over_outputs(
    values: Sequence[Fraction | None], spread: Sequence[Fraction], multioutput: str | Weights
) -> Value:
    """Return the values of the outputs, or their mean, which may be weighted by variances."""
    if multioutput != "variance_weighted" or not any(spread):
        return averaged(values, multioutput)
    weighted = sum(value * s for value, s in zip(values, spread, strict=True) if value and s)
    return nearest(Fraction(weighted) / sum(spread))


def _shares(
    left: Sequence[Fraction], spread: Sequence[Fraction], *, force_finite: bool
) -> list[Fraction | None]:
    """Return 1 - unexplained / variance for each output: 1 is perfect."""
    shares: list[Fraction | None] = []
    for error, variance in zip(left, spread, strict=True):
        if variance:
            (above, unit), (below, other) = map(Fraction.as_integer_ratio, (error, variance))
            shares.append(Fraction(below * unit - above * other, below * unit))
        else:
            shares.append(Fraction(error == 0) if force_finite else None)
    return shares


class R2(VarianceRatio[RawValues]):
    """R², the coefficient of determination.

    Formula: 1 - Σ w (y - p)² / Σ w (y - ȳ)², with ȳ the mean target.

    The sums of squares around the mean are computed from exact integers, so targets far from 0 lose
    no digits. Undefined if the target is constant. With `force_finite` it is then 1 or 0, unless
    the total weight of the rows is at most 1, as for a single row.

    With ``multioutput="variance_weighted"`` outputs with a constant target are left out.

    The other parameters are those of `RegressionMetric`.

    Args:
        force_finite: Whether an output with a constant target gives 1 for perfect predictions and
            0 otherwise, as by default in scikit-learn.
        spread: Whether to also keep a sample of 4,096 rows, about 200 KB, which `confidence` needs.

    Memory and cost: three exact sums per output, one of them that of `MSE`; about 10 ns per row.

    Reference: ``sklearn.metrics.r2_score``.

    Example:
        >>> import streammetrics as sm
        >>> sm.R2().update([3.0, -0.5, 2.0, 7.0], [2.5, 0.0, 2.0, 8.0]).compute()
        0.9486081370449678
    """

    higher_is_better = True
    family = Family.R2

    force_finite: bool = False

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of squared errors and the target's moments."""
        squares = LossSum(loss="squared", nan_policy=self.nan_policy)
        return squares, Moments(of="target", nan_policy=self.nan_policy), *_sampled(self)

    def readout(self, squares: LossSum, moments: Moments, *_: MomentSample) -> Value:
        """Return the value."""
        ratios = moments.centred_ratios("y", "y")
        if squares.width == 1 and ratios[0][0] and self.multioutput == "uniform_average":
            ((variance, unit),), ((error, other),) = ratios, squares.exact_ratios("loss")
            return quotient(variance * other - error * unit, variance * other)
        spread = list(starmap(Fraction, ratios))
        if not any(spread) and squares.total <= 1:
            return averaged([None] * squares.width, self.multioutput)
        shares = _shares(squares.exact("loss"), spread, force_finite=self.force_finite)
        return self._averaged(shares, spread)


class ExplainedVariance(VarianceRatio[RawValues]):
    """Explained variance: like `R2`, but not lowered by a constant bias.

    Formula: 1 - Var(y - p) / Var(y)

    With ``multioutput="variance_weighted"`` outputs with a constant target are left out.

    The other parameters are those of `RegressionMetric`.

    Args:
        force_finite: Whether an output with a constant target gives 1 if the error is constant and
            0 otherwise, as by default in scikit-learn.
        spread: As in `R2`.

    Memory and cost: five exact sums per output; about 12 ns per row.

    Reference: ``sklearn.metrics.explained_variance_score``.

    Example:
        >>> import streammetrics as sm
        >>> sm.ExplainedVariance().update([3.0, -0.5, 2.0, 7.0], [2.5, 0.0, 2.0, 8.0]).compute()
        0.9571734475374732
    """

    higher_is_better = True
    family = Family.EXPLAINED_VARIANCE

    force_finite: bool = False

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the moments of target and prediction."""
        return Moments(of="pair", nan_policy=self.nan_policy), *_sampled(self)

    def readout(self, moments: Moments, *_: MomentSample) -> Value:
        """Return the value."""
        yy, pp, yp = _centred(moments)
        left = [y + p - 2 * both for y, p, both in zip(yy, pp, yp, strict=True)]
        return self._averaged(_shares(left, yy, force_finite=self.force_finite), yy)


class RelativeSquaredError(VarianceRatio[RawValues]):
    """Relative squared error: 1 - `R2`.

    Formula: Σ w (y - p)² / Σ w (y - ȳ)², with ȳ the mean target.

    Undefined if the target is constant.

    With ``multioutput="variance_weighted"`` outputs with a constant target are left out.

    The other parameters are those of `RegressionMetric`.

    Args:
        spread: As in `R2`.

    Memory and cost: same as `R2`; both share one state in a `MetricSet`.

    Reference: ``torchmetrics.RelativeSquaredError``.

    Example:
        >>> import streammetrics as sm
        >>> sm.RelativeSquaredError().update([1.0, 2.0, 3.0], [1.0, 2.0, 4.0]).compute()
        0.5
    """

    higher_is_better = False
    value_range = (0.0, math.inf)
    family = Family.SQUARED_RATIO

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of squared errors and the target's moments."""
        squares = LossSum(loss="squared", nan_policy=self.nan_policy)
        return squares, Moments(of="target", nan_policy=self.nan_policy), *_sampled(self)

    def readout(self, squares: LossSum, moments: Moments, *_: MomentSample) -> Value:
        """Return the ratio."""
        spread = moments.centred("y", "y")
        sums = zip(squares.exact("loss"), spread, strict=True)
        return self._averaged([ratio_or_none(error, variance) for error, variance in sums], spread)


class PearsonCorrelation(PairMoments[RawValues]):
    """Pearson correlation of targets and predictions, correctly rounded.

    Formula: Cov(y, p) / √(Var(y) Var(p))

    Undefined if either column is constant.

    The other parameters are those of `RegressionMetric`.

    Args:
        spread: As in `R2`.

    Memory and cost: five exact sums per output; about 12 ns per row.

    Reference: ``scipy.stats.pearsonr``.

    Example:
        >>> import streammetrics as sm
        >>> sm.PearsonCorrelation().update([1.0, 2.0, 3.0], [1.0, 2.0, 4.0]).compute()
        0.9819805060619657
    """

    higher_is_better = True
    value_range = (-1.0, 1.0)
    family = Family.PEARSON

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the moments of target and prediction."""
        return Moments(of="pair", nan_policy=self.nan_policy), *_sampled(self)

    def readout(self, moments: Moments, *_: MomentSample) -> Value:
        """Return the correlation."""
        values: list[float | None] = []
        for y, p, both in zip(*_centred(moments), strict=True):
            square = ratio_or_none(both * both, y * p)
            values.append(
                None if square is None else root(square) if both > 0 else 0.0 - root(square)
            )
        return averaged(values, self.multioutput)


class ConcordanceCorrelation(PairMoments[RawValues]):
    """Concordance correlation coefficient (Lin).

    Formula: 2 Cov(y, p) / (Var(y) + Var(p) + (ȳ - p̄)²)

    Variances are divided by n. Undefined if both columns are constant.

    The other parameters are those of `RegressionMetric`.

    Args:
        spread: As in `R2`.

    Memory and cost: five exact sums per output; about 12 ns per row.

    Reference: Lin, "A concordance correlation coefficient to evaluate reproducibility",
    Biometrics 45 (1989).

    Example:
        >>> import streammetrics as sm
        >>> sm.ConcordanceCorrelation().update([1.0, 2.0, 3.0], [2.0, 3.0, 4.0]).compute()
        0.5714285714285714
    """

    higher_is_better = True
    value_range = (-1.0, 1.0)
    family = Family.CONCORDANCE

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the moments of target and prediction."""
        return Moments(of="pair", nan_policy=self.nan_policy), *_sampled(self)

    def readout(self, moments: Moments, *_: MomentSample) -> Value:
        """Return the correlation."""
        total = moments.total
        means = zip(moments.means("y"), moments.means("p"), strict=True)
        values: list[Fraction | None] = []
        for (y, p, both), (a, b) in zip(zip(*_centred(moments), strict=True), means, strict=True):
            values.append(2 * both / (y + p + total * (a - b) ** 2) if y or p else None)
        return averaged(values, self.multioutput)


def _centred(moments: Moments) -> tuple[list[Fraction], list[Fraction], list[Fraction]]:
    return moments.centred("y", "y"), moments.centred("p", "p"), moments.centred("y", "p")


class TargetShare(RegressionMetric[RawValues]):
    """Base class of losses relative to that of a constant, with a histogram of the targets.

    Args:
        max_bins: The largest number of distinct targets per output for which the value is exact.
            Beyond that, `bounds()` contains it.
    """

    max_bins: Bins = 1 << 20

    def _targets(self) -> ValueHistogram:
        return ValueHistogram(of="targets", max_bins=self.max_bins, nan_policy=self.nan_policy)

    @abstractmethod
    def _shares(self, *statistics: object) -> list[EnclosedValue]:
        """Return the value of each output and its bounds."""

    def readout(self, *statistics: object) -> Value:
        """Return the value; if it is not exact, an estimate within its bounds."""
        return averaged([each.value for each in self._shares(*statistics)], self.multioutput)

    def _lacking(self, *statistics: Statistic) -> str:
        defined = [not math.isnan(each.value) for each in self._shares(*statistics)]
        return where_zero(defined, "the target is constant")

    def interval(self, *statistics: object) -> Interval[Value]:
        """Return an interval that is guaranteed to contain the value."""
        values = self._shares(*statistics)
        low = averaged([each.low for each in values], self.multioutput)
        return Interval(low, averaged([each.high for each in values], self.multioutput))

    def is_exact(self, *statistics: object) -> bool:
        """Whether the histogram holds every distinct target separately."""
        return all(not each.low < each.high for each in self._shares(*statistics))


class D2Pinball(TargetShare[RawValues]):
    """D² pinball: how much lower the pinball loss is than that of a quantile of the targets.

    Formula: 1 - L(p) / L(q), with L the pinball loss and q the alpha quantile of the targets.

    This quantile is the best constant prediction. 1 is perfect, 0 no better than that constant.
    Undefined if the target is constant.

    The other parameters are those of `RegressionMetric`.

    Args:
        alpha: The level of the quantile that is predicted, from 0 to 1.
        max_bins: The largest number of distinct targets per output for which the value is exact.

    Memory and cost: 16 bytes per distinct target, up to `max_bins`; about 15 ns per row.

    Confidence: only with ``MetricSet(..., unit=...)``: the state does not record how the two
    losses vary together.

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
        up = Fraction(str(self.alpha))  # alpha as the decimal that `quantile` uses
        return _saved(statistics, self.alpha, (up, 1 - up))


class D2AbsoluteError(TargetShare[RawValues]):
    """D² absolute error: how much lower the absolute error is than that of the targets' median.

    Formula: 1 - Σ w |y - p| / Σ w |y - m|, with m the median of y.

    1 is perfect, 0 no better than the median. Undefined if the target is constant.

    The other parameters are those of `RegressionMetric`.

    Args:
        max_bins: The largest number of distinct targets per output for which the value is exact.

    Memory and cost: 16 bytes per distinct target, up to `max_bins`; about 15 ns per row.

    Confidence: only with ``MetricSet(..., unit=...)``: the state does not record how the two
    losses vary together.

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
    """Return 1 minus the ratio of each loss to that of the best constant, a quantile."""
    losses, targets = statistics
    values = []
    for loss, histogram in zip(losses.exact("loss"), targets.histograms, strict=True):
        at = quantile(histogram, level, "averaged_inverted_cdf")
        # At level 0 or 1 all targets are on one side of the constant, where errors cost nothing.
        costly = deviation(histogram, (at.low, at.high), *slopes) if all(slopes) else _FREE
        value, low, high = _over(loss, costly)
        values.append(EnclosedValue(*(nearest(1 - each) for each in (value, high, low))))
    return values


_FREE = (Fraction(0), Fraction(0), Fraction(0))


def _over(
    loss: Fraction, nulls: tuple[Fraction, Fraction, Fraction]
) -> tuple[Fraction | float, Fraction | float, Fraction | float]:
    """Return the ratio of a loss to that of a constant, as (value, lower bound, upper bound).

    `nulls` is the lower bound, value and upper bound of the constant's loss. If the loss of the
    constant is 0, all three are, because targets that share a cell differ.
    """
    least, null, most = nulls
    if not most:
        return math.nan, math.nan, math.nan
    if not loss:
        return loss, loss, loss
    return loss / null, loss / most, loss / least if least else math.inf


class RelativeAbsoluteError(TargetShare[RawValues]):
    """Relative absolute error: the absolute error over that of predicting the targets' mean.

    Formula: Σ w |y - p| / Σ w |y - ȳ|, with ȳ the mean target.

    Undefined if the target is constant.

    The other parameters are those of `RegressionMetric`.

    Args:
        max_bins: The largest number of distinct targets per output for which the value is exact.

    Memory and cost: 16 bytes per distinct target, up to `max_bins`; about 20 ns per row.

    Confidence: only with ``MetricSet(..., unit=...)``: the state does not record how the two
    losses vary together.

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


class AdjustedR2(RegressionMetric[RawValues]):
    """Adjusted R², which accounts for the number of features of the model.

    Formula: 1 - (1 - R²) (n - 1) / (n - p - 1), with p features and n the number of rows, or their
    total weight.

    Undefined if the target is constant, or if n is at most p + 1.

    The other parameters are those of `RegressionMetric`.

    Args:
        n_features: The number p of features, not counting the intercept.
        multioutput: As in `R2`.

    Memory and cost: same as `R2`; both share one state in a `MetricSet`.

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
    multioutput: Literal["uniform_average"] | RawValues | Literal["variance_weighted"] | Weights = (
        "uniform_average"  # type: ignore[assignment]  # as of `VarianceRatio`
    )

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of squared errors and the target's moments."""
        squares = LossSum(loss="squared", nan_policy=self.nan_policy)
        return squares, Moments(of="target", nan_policy=self.nan_policy)

    def readout(self, squares: LossSum, moments: Moments) -> Value:
        """Return the value."""
        n, left = squares.total, squares.total - self.n_features - 1
        spreads = moments.centred("y", "y")
        shares = [
            1 - error / spread * (n - 1) / left if spread and left > 0 else None
            for error, spread in zip(squares.exact("loss"), spreads, strict=True)
        ]
        return _over_outputs(shares, spreads if left > 0 else [], self.multioutput)
