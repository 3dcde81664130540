"""Regression metrics: mean deviances of distributions, and D²."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

from streammetrics.core.confidence import Refusal
from streammetrics.core.constraints import Outside
from streammetrics.core.types import RawValues
from streammetrics.metrics.families import BASELINE
from streammetrics.metrics.regression.base import RegressionMetric, averaged, summed, where_zero
from streammetrics.metrics.regression.losses import MeanLoss
from streammetrics.statistics.sums.formulas import DIGITS
from streammetrics.statistics.sums.losses import LossSum, Moments

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic
    from streammetrics.metrics.regression.base import Value
    from streammetrics.statistics.sums.formulas import LossName


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

    def _lacking(self, *statistics: Any) -> str:
        moments: Moments = statistics[1]
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
