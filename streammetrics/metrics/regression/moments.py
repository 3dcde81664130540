"""Regression: ratios of variances and correlations, from exact moments."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import starmap
from typing import TYPE_CHECKING, Any, Literal

from streammetrics.core.arithmetic.rounding import nearest, quotient, root
from streammetrics.metrics.families import Family
from streammetrics.metrics.regression.base import (
    RegressionMetric,
    Weights,
    averaged,
    ratio_or_none,
    where_zero,
)
from streammetrics.statistics.joint.pairs import MomentSample
from streammetrics.statistics.sums.losses import LossSum
from streammetrics.statistics.sums.moments import Moments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.statistic import Statistic
    from streammetrics.metrics.regression.base import Value

__all__ = [
    "R2",
    "ConcordanceCorrelation",
    "ExplainedVariance",
    "PearsonCorrelation",
    "RelativeSquaredError",
]


Outputs = Literal["uniform_average", "raw_values", "variance_weighted"] | Weights


def _sampled(metric: VarianceRatio | PairMoments) -> tuple[MomentSample, ...]:
    """Return the sample of rows that `confidence` needs, if the metric has ``spread=True``."""
    return (MomentSample(nan_policy=metric.nan_policy),) if metric.spread else ()


def _constant(*statistics: Statistic) -> str:
    """Return which column does not vary."""
    (moments,) = (each for each in statistics if isinstance(each, Moments))
    why = where_zero(moments.centred("y", "y"), "the target is constant")
    if moments.of != "pair":
        return why
    return why or where_zero(moments.centred("p", "p"), "the prediction is constant")


class PairMoments(RegressionMetric):
    """Base of the metrics that are a ratio of moments of targets and predictions."""

    spread: bool = False

    def _lacking(self, *statistics: Any) -> str:
        return _constant(*statistics)


class VarianceRatio(RegressionMetric):
    """Base of the ratios to the variance of the target, undefined for outputs where it is 0."""

    spread: bool = False
    multioutput: Outputs = "uniform_average"  # type: ignore[assignment]  # one more than elsewhere

    def _lacking(self, *statistics: Any) -> str:
        return _constant(*statistics)

    def _averaged(self, values: Sequence[Fraction | None], spread: Sequence[Fraction]) -> Value:
        if self.multioutput != "variance_weighted" or not any(spread):
            return averaged(values, self.multioutput)
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


class R2(VarianceRatio):
    """R², the coefficient of determination.

    Formula: 1 - Σ w (y - p)² / Σ w (y - ȳ)², with ȳ the mean target.

    The squares around the mean are computed from exact integers, so targets far from 0 lose no
    digits. Undefined where the target is constant; whatever `force_finite` says, if all rows
    together weigh at most 1, as a single row does.

    With ``multioutput="variance_weighted"`` outputs with a constant target are left out.

    The other parameters are those of `RegressionMetric`.

    Args:
        force_finite: Whether an output with a constant target gives 1 for perfect predictions and
            else 0, as is scikit-learn's default.
        spread: Whether to keep a sample of 4,096 rows too, about 200 KB, which `confidence` needs.

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


class ExplainedVariance(VarianceRatio):
    """Explained variance: as `R2`, but a constant bias does not lower it.

    Formula: 1 - Var(y - p) / Var(y)

    With ``multioutput="variance_weighted"`` outputs with a constant target are left out.

    The other parameters are those of `RegressionMetric`.

    Args:
        force_finite: Whether an output with a constant target gives 1 where the error is constant
            and else 0, as is scikit-learn's default.
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


class RelativeSquaredError(VarianceRatio):
    """Relative squared error: 1 - `R2`.

    Formula: Σ w (y - p)² / Σ w (y - ȳ)², with ȳ the mean target.

    Undefined where the target is constant.

    With ``multioutput="variance_weighted"`` outputs with a constant target are left out.

    The other parameters are those of `RegressionMetric`.

    Args:
        spread: As in `R2`.

    Memory and cost: as `R2`, with which it shares its state in a set.

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


class PearsonCorrelation(PairMoments):
    """Pearson correlation of targets and predictions, correctly rounded.

    Formula: Cov(y, p) / √(Var(y) Var(p))

    Undefined where either column is constant.

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


class ConcordanceCorrelation(PairMoments):
    """Concordance correlation coefficient (Lin).

    Formula: 2 Cov(y, p) / (Var(y) + Var(p) + (ȳ - p̄)²)

    Variances are divided by n. Undefined where both columns are constant.

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
