"""Mean losses of regression, absolute and relative."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from streammetrics.core.arithmetic.exact import nearest, root
from streammetrics.core.confidence import Refusal
from streammetrics.core.constraints import AtLeast, Outside, Positive, Share
from streammetrics.core.types import RawValues
from streammetrics.metrics.families import BASELINE, GROWS, Family
from streammetrics.metrics.regression.base import (
    RegressionMetric,
    averaged,
    ratio_or_none,
    summed,
    where_zero,
)
from streammetrics.metrics.rowwise import MeanOfRows
from streammetrics.statistics.forecasts import CosineSum
from streammetrics.statistics.formulas import DIGITS
from streammetrics.statistics.histograms import Extremes
from streammetrics.statistics.sums import (
    LossSum,
    Moments,
    MomentSpread,
    mean_of,
    ratio_of,
    root_mean_of,
)

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import ArrayLike
    from streammetrics.metrics.regression.base import Value
    from streammetrics.statistics.formulas import LossName


class MeanLoss(RegressionMetric[RawValues]):
    """Base class of metrics that are the mean of one loss per row."""

    spread: bool = True

    higher_is_better = False
    value_range = (0.0, math.inf)
    family = Family.MEAN_LOSS
    _reads_groups = True

    def readout(self, losses: LossSum) -> Value:
        """Return the mean loss."""
        if losses.one_output and self.multioutput == "uniform_average":
            return mean_of(losses.sums["loss"], losses.weight)
        return averaged(losses.means("loss"), self.multioutput)


class MAE(MeanLoss[RawValues]):
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


class MSE(MeanLoss[RawValues]):
    """Mean squared error.

    Formula: Σ w (y - p)² / Σ w

    Squares are rounded to float64. Squares that would overflow are added exactly, so the mean is
    infinite only if it is itself too large for float64.

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


class RootMeanLoss(RegressionMetric[RawValues]):
    """Base class of metrics that are the root of a mean loss, correctly rounded per output."""

    spread: bool = True

    higher_is_better = False
    value_range = (0.0, math.inf)
    family = Family.ROOT_MEAN_LOSS
    _reads_groups = True

    def readout(self, losses: LossSum) -> Value:
        """Return the root."""
        if losses.one_output and self.multioutput == "uniform_average":
            return root_mean_of(losses.sums["loss"], losses.weight)
        return averaged([root(mean) for mean in losses.means("loss")], self.multioutput)


class RMSE(RootMeanLoss[RawValues]):
    """Root mean squared error.

    Formula: √(Σ w (y - p)² / Σ w)

    The root is taken for each output, before outputs are averaged.

    Parameters are those of `RegressionMetric`.

    Memory and cost: same as `MSE`; both share one state in a `MetricSet`.

    Reference: ``sklearn.metrics.root_mean_squared_error``.

    Example:
        >>> import streammetrics as sm
        >>> sm.RMSE().update([3.0, -0.5, 2.0, 7.0], [2.5, 0.0, 2.0, 8.0]).compute()
        0.6123724356957945
    """

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of squared errors."""
        return (summed(self, "squared"),)


class MeanError(RegressionMetric[RawValues]):
    """Mean error (bias): positive if predictions are too high on average.

    Formula: Σ w (p - y) / Σ w

    Computed from the exact sums of predictions and of targets, and rounded once.

    The other parameters are those of `RegressionMetric`.

    Args:
        spread: Whether to also sum the squares of errors, which `confidence` needs; large batches
            then take longer.

    Memory and cost: two exact sums per output; about 5 ns per row.

    Reference: Hyndman and Koehler, "Another look at measures of forecast accuracy", Int. J.
    Forecasting 22 (2006), with the sign of a bias (prediction minus target).

    Example:
        >>> import streammetrics as sm
        >>> sm.MeanError().update([3.0, -0.5, 2.0, 7.0], [2.5, 0.0, 2.0, 8.0]).compute()
        0.25
    """

    family = Family.MEAN_ERROR
    _reads_groups = True

    spread: bool = True

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sums of targets and predictions."""
        return (
            (MomentSpread if self.spread else Moments)(
                of="pair", order="first", nan_policy=self.nan_policy
            ),
        )

    def readout(self, moments: Moments) -> Value:
        """Return the difference of the means."""
        if moments.one_output and self.multioutput == "uniform_average":
            return mean_of(moments.sums["p"] - moments.sums["y"], moments.weight)
        means = zip(moments.means("y"), moments.means("p"), strict=True)
        return averaged([p - y for y, p in means], self.multioutput)


class PinballLoss(MeanLoss[RawValues]):
    """Mean pinball loss (quantile loss).

    Formula: Σ w max(alpha (y - p), (alpha - 1) (y - p)) / Σ w

    The other parameters are those of `RegressionMetric`.

    Args:
        alpha: The level of the quantile that is predicted, from 0 to 1.

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


class HuberLoss(MeanLoss[RawValues]):
    """Mean Huber loss: half the squared error up to δ, linear beyond.

    Formula: mean (e² / 2 if |e| <= δ, else δ (|e| - δ / 2)), with e = y - p.

    The other parameters are those of `RegressionMetric`.

    Args:
        delta: The absolute error beyond which the loss is linear; above 0.

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


class LogCoshError(MeanLoss[RawValues]):
    """Mean log-cosh error: quadratic for small errors, linear for large ones.

    Formula: Σ w log(cosh(y - p)) / Σ w

    Parameters are those of `RegressionMetric`.

    Memory and cost: one exact sum per output; about 30 ns per row.

    Reference: ``torchmetrics.LogCoshError``, but accurate for errors near 0 as well.

    Example:
        >>> import streammetrics as sm
        >>> sm.LogCoshError().update([0.0, 0.0], [1.0, 0.0]).compute()
        0.21689041524151362
    """

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of losses."""
        return (summed(self, "log_cosh"),)


class MAPE(MeanLoss[RawValues]):
    """Mean absolute percentage error, as a fraction: 0.1 is 10%.

    Formula: Σ w (|y - p| / max(|y|, ε)) / Σ w, with ε = 2⁻⁵².

    Parameters are those of `RegressionMetric`.

    Raises:
        InvalidBatchError: From `update`, if the relative error of a row overflows float64.

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


class SMAPE(MeanLoss[RawValues]):
    """Symmetric mean absolute percentage error, from 0 to 2.

    Formula: Σ w (2 |y - p| / (|y| + |p|)) / Σ w

    A row in which both are 0 has the error 0.

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


class WAPE(RegressionMetric[RawValues]):
    """Weighted absolute percentage error.

    Formula: Σ w |y - p| / Σ w |y|

    Undefined if every target is 0.

    The other parameters are those of `RegressionMetric`.

    Args:
        spread: Whether to also sum squares and products, which `confidence` needs; large batches
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
    _reads_groups = True

    spread: bool = True

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sums of absolute errors and of targets, and their products if needed."""
        sums = summed(self, "absolute"), summed(self, "magnitude")
        return (*sums, summed(self, "absolute_and_magnitude")) if self.spread else sums

    def _lacking(self, *statistics: LossSum) -> str:
        return where_zero(statistics[1].exact("loss"), "every target is 0")

    def readout(self, errors: LossSum, targets: LossSum, *_: LossSum) -> Value:
        """Return the ratio."""
        if errors.one_output and self.multioutput == "uniform_average":
            return ratio_of(errors.sums["loss"], targets.sums["loss"])
        sums = zip(errors.exact("loss"), targets.exact("loss"), strict=True)
        return averaged([ratio_or_none(error, size) for error, size in sums], self.multioutput)


class MSLE(MeanLoss[RawValues]):
    """Mean squared logarithmic error.

    Formula: Σ w (log(1 + y) - log(1 + p))² / Σ w

    Parameters are those of `RegressionMetric`.

    Raises:
        InvalidBatchError: From `update`, if a target or a prediction is -1 or less.

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


class RMSLE(RootMeanLoss[RawValues]):
    """Root mean squared logarithmic error.

    Formula: √(Σ w (log(1 + y) - log(1 + p))² / Σ w)

    The root is taken for each output, before outputs are averaged.

    Parameters are those of `RegressionMetric`.

    Raises:
        InvalidBatchError: From `update`, if a target or a prediction is -1 or less.

    Memory and cost: same as `MSLE`; both share one state in a `MetricSet`.

    Reference: ``sklearn.metrics.root_mean_squared_log_error``.

    Example:
        >>> import streammetrics as sm
        >>> round(sm.RMSLE().update([3.0, 5.0], [2.5, 5.0]).compute(), 6)
        0.094421
    """

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of squared differences of logarithms."""
        return (summed(self, "squared_log"),)


class NRMSE(RegressionMetric[RawValues]):
    """Normalized root mean squared error: the RMSE over the size of the target.

    Formula: √(Σ w (y - p)² / Σ w) / size

    Undefined if the size is 0.

    The other parameters are those of `RegressionMetric`.

    Args:
        normalization: The size: the ``"range"`` of the target, its ``"mean"``, its standard
            deviation ``"std"`` (divided by n), or its norm ``"l2"``, √(Σ w y²).

    Memory and cost: three exact sums per output; about 10 ns per row.

    Confidence: only with ``MetricSet(..., unit=...)``: the state does not record how errors and
    size vary together.

    Reference: ``torchmetrics.regression.NormalizedRootMeanSquaredError``.

    Example:
        >>> import streammetrics as sm
        >>> sm.NRMSE(normalization="range").update([0.0, 1.0, 2.0, 2.0], [0, 1, 2, 3]).compute()
        0.25
    """

    higher_is_better = False
    family = Refusal(BASELINE.format("size", "RMSE"))

    normalization: Literal["range", "mean", "std", "l2"] = "mean"

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of squared errors, and the statistic for the size of the target."""
        squares = LossSum(loss="squared", nan_policy=self.nan_policy)
        if self.normalization == "range":
            return squares, Extremes(of="targets", nan_policy=self.nan_policy)
        order: Literal["first", "second"] = "first" if self.normalization == "mean" else "second"
        return squares, Moments(of="target", order=order, nan_policy=self.nan_policy)

    def readout(self, squares: LossSum, targets: object) -> Value:
        """Return the ratio, combined over outputs as configured."""
        sizes = self._squared_sizes(targets)
        values = [
            (-1 if size < 0 else 1) * root(mean / abs(size)) if size else None
            for mean, size in zip(squares.means("loss"), sizes, strict=True)
        ]
        return averaged(values, self.multioutput)

    def _lacking(self, *statistics: Statistic) -> str:
        why = f"the {self.normalization} of the target is 0"
        return where_zero(self._squared_sizes(statistics[1]), why)

    def _squared_sizes(self, targets: Any) -> list[Fraction]:
        """Return the squared size of each output, with the sign of the size."""
        if self.normalization == "range":
            ends = zip(targets.low.tolist(), targets.high.tolist(), strict=True)
            return [(Fraction(high) - Fraction(low)) ** 2 for low, high in ends]
        if self.normalization == "mean":
            return [mean * abs(mean) for mean in targets.means("y")]
        if self.normalization == "std":
            return [spread / targets.total for spread in targets.centred("y", "y")]
        squares: list[Fraction] = targets.exact("yy")
        return squares


class MinkowskiDistance(RegressionMetric[RawValues]):
    """Minkowski distance between targets and predictions.

    Formula: (Σ w |y - p|^order)^(1 / order)

    It grows with the number of rows n: with order 1 it is n times `MAE`, with order 2 it is the
    Euclidean distance.

    The other parameters are those of `RegressionMetric`.

    Args:
        order: The exponent, 1 or more.

    Raises:
        InvalidBatchError: From `update`, if |y - p|^(order / 2) overflows float64.

    With an order above 2, errors below 1e-308^(2 / order) vanish beside larger ones. If all errors
    other than 0 are that small, the value is ``nan``.

    Memory and cost: one exact sum per output; about 30 ns per row.

    Reference: ``scipy.spatial.distance.minkowski``; ``torchmetrics.MinkowskiDistance``.

    Example:
        >>> import streammetrics as sm
        >>> sm.MinkowskiDistance(order=2).update([0.0, 0.0], [3.0, 4.0]).compute()
        5.0
    """

    higher_is_better = False
    family = Refusal(GROWS.format("a mean, such as MAE,"))

    order: Annotated[float, AtLeast(1)] = 2.0

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of powers."""
        return (LossSum(loss="power", parameter=self.order, nan_policy=self.nan_policy),)

    def readout(self, powers: LossSum) -> Value:
        """Return the root of the sum."""
        return averaged(self._roots(powers), self.multioutput)

    def _roots(self, powers: LossSum) -> list[float]:
        lost = powers.total * _LOST if self.order > 2 else 0
        return [
            math.nan if 0 < total < lost else self._root(total) for total in powers.exact("loss")
        ]

    def _root(self, total: Fraction) -> float:
        if not total or self.order == 1:
            return nearest(total)
        if self.order == 2:
            return root(total)
        above, below = map(Decimal, total.as_integer_ratio())
        power = DIGITS.divide(Decimal(1), Decimal(self.order))
        return float(DIGITS.power(DIGITS.divide(above, below), power))

    def _lacking(self, *statistics: LossSum) -> str:
        defined = [not math.isnan(value) for value in self._roots(*statistics)]
        what = "powers of the errors vanish, of which a smaller order or unit keeps more"
        return where_zero(defined, what)


# A power whose square root is subnormal is off by up to 2**-2095, unless the root is the error.
# A mean that is at least 2**50 times larger loses nothing.
_LOST = Fraction(1, 2**2045)


class CosineSimilarity(MeanOfRows):
    """Cosine similarity of targets and predictions, averaged over rows.

    Formula: mean (y · p / (‖y‖ ‖p‖))

    A row with a zero vector has the similarity 0.

    Parameters are those of `MeanOfRows`.

    Reference: 1 - ``sklearn.metrics.pairwise.paired_cosine_distances``;
    ``torchmetrics.CosineSimilarity(reduction="mean")``.

    Example:
        >>> import streammetrics as sm
        >>> cosine = sm.CosineSimilarity()
        >>> cosine.update([[1.0, 0.0], [3.0, 4.0]], [[0.0, 2.0], [6.0, 8.0]]).compute()
        0.5
    """

    higher_is_better = True

    value_range = (-1.0, 1.0)

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of cosines."""
        return (CosineSum(nan_policy=self.nan_policy),)

    def update(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        sample_weight: ArrayLike = None,
        counts: ArrayLike = None,
    ) -> Self:
        """Add a batch of rows: targets and predictions, each (n, d) vectors."""
        return self.feed(
            {"y_true": y_true, "y_pred": y_pred, "sample_weight": sample_weight, "counts": counts}
        )


class TweedieDeviance(MeanLoss[RawValues]):
    """Mean Tweedie deviance; the larger the power, the less weight large targets have.

    Formula: 2 mean (max(y, 0)^(2-q) / ((1 - q) (2 - q)) - y p^(1-q) / (1 - q) + p^(2-q) / (2 - q)),
    with q the power.

    The distribution is the normal for q = 0 (`MSE`), Poisson for 1 (`PoissonDeviance`), gamma for 2
    (`GammaDeviance`) and inverse Gaussian for 3.

    The other parameters are those of `RegressionMetric`.

    Args:
        power: The power q of the variance, at most 0 or at least 1.

    Raises:
        InvalidBatchError: From `update`, if a prediction is not above 0 (unless `power` is 0), or a
            target is negative (for a `power` of 1 or more) or 0 (for 2 or more).

    Memory and cost: one exact sum per output; about 60 ns per row.

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


class PoissonDeviance(MeanLoss[RawValues]):
    """Mean Poisson deviance.

    Formula: 2 Σ w (y log(y / p) - y + p) / Σ w

    Parameters are those of `RegressionMetric`.

    Raises:
        InvalidBatchError: From `update`, if a target is negative or a prediction is not above 0.

    Memory and cost: as for `TweedieDeviance`, in half the time.

    Reference: ``sklearn.metrics.mean_poisson_deviance``.

    Example:
        >>> import streammetrics as sm
        >>> sm.PoissonDeviance().update([2.0, 0.0], [2.0, 1.5]).compute()
        1.5
    """

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of deviances."""
        return (summed(self, "tweedie", 1.0),)


class GammaDeviance(MeanLoss[RawValues]):
    """Mean gamma deviance.

    Formula: 2 Σ w (log(p / y) + y / p - 1) / Σ w

    Parameters are those of `RegressionMetric`.

    Raises:
        InvalidBatchError: From `update`, if a target or a prediction is not above 0.

    Memory and cost: as for `TweedieDeviance`, in half the time.

    Reference: ``sklearn.metrics.mean_gamma_deviance``.

    Example:
        >>> import streammetrics as sm
        >>> round(sm.GammaDeviance().update([1.0, 2.0], [2.0, 2.0]).compute(), 6)
        0.193147
    """

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of deviances."""
        return (summed(self, "tweedie", 2.0),)


class D2Tweedie(RegressionMetric[RawValues]):
    """D² Tweedie: how much lower the deviance is than that of predicting the targets' mean.

    Formula: 1 - D(p) / D(ȳ), with D the mean deviance and ȳ the mean target.

    1 is perfect, 0 no better than the mean; with power 0 it is `R2`. Undefined if the target is
    constant.

    Terms of the targets are summed to 28 digits. The deviance of the mean has 9 correct digits if
    targets vary by 1e-10 of their mean, and 12 if they vary by 1e-8 or more. If the rows that
    differ from the others have less than 1e-20 of the total weight, there are 8 digits, one fewer
    for every factor of 10 below 1e-22, and none below 1e-28. If the deviance of the mean is below
    1e-307, the value is ``nan``: another unit of target and prediction gives the same value without
    the underflow.

    The other parameters are those of `RegressionMetric`.

    Args:
        power: The power of the variance, as in `TweedieDeviance`.

    Raises:
        InvalidBatchError: From `update`, under the same conditions as `TweedieDeviance`.

    Memory and cost: five exact sums per output; about 200 ns per row.

    Confidence: only with ``MetricSet(..., unit=...)``: the state does not record how the two
    losses vary together.

    Reference: ``sklearn.metrics.d2_tweedie_score``.

    Example:
        >>> import streammetrics as sm
        >>> round(sm.D2Tweedie(power=1).update([1.0, 2.0, 6.0], [1.0, 3.0, 5.0]).compute(), 6)
        0.874186
    """

    higher_is_better = True
    family = Refusal(BASELINE.format("loss", "TweedieDeviance"))

    power: Annotated[float, Outside(0, 1)] = 0.0

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of deviances, the targets' moments, and terms of the mean's deviance."""
        moments = Moments(of="target", nan_policy=self.nan_policy)
        if self.power == 0:
            return LossSum(loss="squared", nan_policy=self.nan_policy), moments
        names: tuple[LossName, ...] = ("tweedie", "tweedie_target")
        losses, own = (
            LossSum(loss=name, parameter=self.power, nan_policy=self.nan_policy) for name in names
        )
        return losses, moments, own

    def readout(self, losses: LossSum, moments: Moments, *of_targets: LossSum) -> Value:
        """Return the value."""
        spread = moments.centred("y", "y")
        if self.power == 0:
            total = moments.total
            nulls = [each / total for each in spread]
        else:
            means = zip(of_targets[0].means("loss"), moments.means("y"), strict=True)
            nulls = [
                self._null(own, mean, variance / moments.total)
                for (own, mean), variance in zip(means, spread, strict=True)
            ]
        least = 0 if self.power == 0 else _LEAST
        shares = [
            1 - loss / null if varies and null > least else None
            for loss, null, varies in zip(losses.means("loss"), nulls, spread, strict=True)
        ]
        return averaged(shares, self.multioutput)

    def _lacking(self, _: LossSum, moments: Moments, *__: LossSum) -> str:
        why = where_zero(moments.centred("y", "y"), "the target is constant")
        allowed = [mean >= 0 for mean in moments.means("y")]
        return why or where_zero(allowed, "the mean target is negative") or _VANISHED

    def _null(self, own: Fraction, mean: Fraction, variance: Fraction) -> Fraction:
        """Return the deviance of the mean; `own` is the mean of the terms of the targets alone."""
        q = self.power
        if mean < 0 or not variance:
            return Fraction(0)
        at = DIGITS.divide(Decimal(mean.numerator), Decimal(mean.denominator))
        if q == 1:
            read = Fraction(DIGITS.multiply(at, DIGITS.ln(at)))
        elif q == 2:
            read = Fraction(DIGITS.ln(at))
        else:
            power = DIGITS.power(at, Decimal(2 - q))
            read = Fraction(DIGITS.divide(power, Decimal((1 - q) * (2 - q))))
        null = 2 * (read - own if q == 2 else own - read)
        if not mean:
            return null
        # If all targets are close to each other, the deviance is the variance over mean**q. The
        # variance alone cannot show that, because a distant row of little weight adds little to it,
        # so the terms decide.
        flat = variance / Fraction(DIGITS.power(at, Decimal(q)))
        return flat if abs(null - flat) <= _ERROR * (abs(own) + abs(read)) else null


# Deviances below the normal floats are off by up to 2**-1074, which is negligible above this.
_LEAST = Fraction(1, 2**1020)
_VANISHED = "deviances are below the range of float64: another unit of target and prediction helps"
_ERROR = Fraction(1, 2**94)  # relative to twice a sum of terms; above their rounding errors
