"""Forecasts: intervals, distributions, and errors relative to a scale."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np

from streammetrics.core.arithmetic.exact import nearest, root
from streammetrics.core.configured import require
from streammetrics.core.constraints import Between, NanPolicy
from streammetrics.core.metric import Metric
from streammetrics.core.results.values import LabelledArray
from streammetrics.metrics.families import Family
from streammetrics.metrics.rowwise import MeanOfRows
from streammetrics.statistics.forecasts import (
    BinnedShares,
    EnsembleSum,
    GaussianSum,
    IntervalSum,
    QuantileSum,
    ScaledSum,
)

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import ArrayLike
    from streammetrics.statistics.sums import RowSum


class IntervalMetric(MeanOfRows):
    """Base class of metrics of targets and prediction intervals."""

    def update(
        self,
        y_true: ArrayLike,
        y_low: ArrayLike,
        y_high: ArrayLike,
        *,
        sample_weight: ArrayLike = None,
        counts: ArrayLike = None,
    ) -> Self:
        """Add a batch of rows: targets (n,) and the lower and upper ends of intervals, each (n,).

        Raises:
            InvalidBatchError: A lower end is above the upper one, or a column has a wrong type or
                length, or a missing or infinite value; the state is unchanged.
        """
        columns = {"y_true": y_true, "y_low": y_low, "y_high": y_high}
        return self.feed({**columns, "sample_weight": sample_weight, "counts": counts})


class IntervalCoverage(IntervalMetric):
    """Coverage: the share of targets that lie in their interval, ends included.

    Formula: Σ w [low <= y <= high] / Σ w

    For calibrated intervals it equals their nominal level, so neither higher nor lower is better.

    Parameters are those of `MeanOfRows`.

    Reference: Gneiting and Raftery, "Strictly proper scoring rules", JASA 102 (2007).

    Example:
        >>> import streammetrics as sm
        >>> sm.IntervalCoverage().update([1.0, 2.0, 5.0, 4.0], [0, 1, 1, 4], [2, 2, 3, 6]).compute()
        0.75
    """

    higher_is_better = None

    value_range = (0.0, 1.0)

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the number of targets in their interval."""
        return (IntervalSum(loss="coverage", nan_policy=self.nan_policy),)


class IntervalWidth(IntervalMetric):
    """Mean width of prediction intervals.

    Formula: Σ w (high - low) / Σ w

    Parameters are those of `MeanOfRows`.

    Reference: Gneiting and Raftery, "Strictly proper scoring rules", JASA 102 (2007).

    Example:
        >>> import streammetrics as sm
        >>> sm.IntervalWidth().update([1.0, 2.0], [0.0, 1.0], [2.0, 1.5]).compute()
        1.25
    """

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of widths."""
        return (IntervalSum(loss="width", nan_policy=self.nan_policy),)


class WinklerScore(IntervalMetric):
    """Mean interval score (Winkler score): the width plus a penalty for targets outside.

    Formula: mean (u - l + (2 / alpha) max(l - y, y - u, 0)), with the interval from l to u.

    The central interval of level 1 - alpha has the smallest expected score.

    The other parameters are those of `MeanOfRows`.

    Args:
        alpha: The nominal share of targets outside their interval.

    Reference: Winkler, "A decision-theoretic approach to interval estimation", JASA 67 (1972);
    ``scoringrules.interval_score``.

    Example:
        >>> import streammetrics as sm
        >>> sm.WinklerScore(alpha=0.5).update([1.0, 3.0], [0.0, 1.0], [2.0, 2.0]).compute()
        3.5
    """

    alpha: Annotated[float, Between(1e-9, 1, without=(1,))] = 0.05

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of scores."""
        return (IntervalSum(loss="winkler", alpha=self.alpha, nan_policy=self.nan_policy),)


class CRPSEnsemble(MeanOfRows):
    """Continuous ranked probability score (CRPS) of ensembles.

    Formula: mean_i |x_i - y| - mean_(i,j) |x_i - x_j| / 2, with x_i the members and y the target of
    a row.

    This is the integral of the squared difference between the distribution function of equally
    likely members and the step function at the target, averaged over rows. With one member it is
    the absolute error.

    The other parameters are those of `MeanOfRows`.

    Args:
        fair: Whether to take the second mean only over pairs of different members, which makes the
            score unbiased for the distribution that the members are drawn from.

    Reference: Gneiting and Raftery, JASA 102 (2007); ``scoringrules.crps_ensemble``,
    ``torchmetrics.regression.ContinuousRankedProbabilityScore``.

    Example:
        >>> import streammetrics as sm
        >>> sm.CRPSEnsemble().update([1.0, 0.0], [[0.0, 1.0, 2.0], [1.0, 1.0, 1.0]]).compute()
        0.6111111111111112
    """

    fair: bool = False

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of scores."""
        return (EnsembleSum(fair=self.fair, nan_policy=self.nan_policy),)

    def update(
        self,
        y_true: ArrayLike,
        y_ensemble: ArrayLike,
        *,
        sample_weight: ArrayLike = None,
        counts: ArrayLike = None,
    ) -> Self:
        """Add a batch of rows: targets (n,) and ensembles of m members (n, m)."""
        columns = {"y_true": y_true, "y_ensemble": y_ensemble}
        return self.feed({**columns, "sample_weight": sample_weight, "counts": counts})


class CRPSGaussian(MeanOfRows):
    """Continuous ranked probability score (CRPS) of normal distributions.

    Formula: s (z (2 Φ(z) - 1) + 2 φ(z) - 1 / √π), with z = (y - m) / s, for the target y, the mean
    m and the standard deviation s of a row, in the mean over rows.

    Parameters are those of `MeanOfRows`.

    Raises:
        InvalidBatchError: From `update`, if a standard deviation is not above 0.

    Reference: Gneiting et al., Mon. Weather Rev. 133 (2005); ``scoringrules.crps_normal``.

    Example:
        >>> import streammetrics as sm
        >>> round(sm.CRPSGaussian().update([0.0, 1.0], [0.0, 0.0], [1.0, 0.5]).compute(), 6)
        0.480045
    """

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of scores."""
        return (GaussianSum(nan_policy=self.nan_policy),)

    def update(
        self,
        y_true: ArrayLike,
        y_mean: ArrayLike,
        y_std: ArrayLike,
        *,
        sample_weight: ArrayLike = None,
        counts: ArrayLike = None,
    ) -> Self:
        """Add a batch of rows: targets, means and standard deviations, each (n,)."""
        columns = {"y_true": y_true, "y_mean": y_mean, "y_std": y_std}
        return self.feed({**columns, "sample_weight": sample_weight, "counts": counts})


class CRPSQuantiles(MeanOfRows):
    """Continuous ranked probability score (CRPS) from quantiles: twice their mean pinball loss.

    Formula: 2 mean_k max(alpha_k (y - x_k), (alpha_k - 1) (y - x_k)), with x_k the quantile of
    level alpha_k, in the mean over rows.

    With many evenly spaced levels it approaches the score of the whole distribution.

    The other parameters are those of `MeanOfRows`.

    Args:
        levels: The levels of the quantiles, ascending, in (0, 1).

    Raises:
        InvalidBatchError: From `update`, if the quantiles of a row cross, or there is not one per
            level.

    Reference: Gneiting and Ranjan, J. Bus. Econ. Stat. 29 (2011); ``scoringrules.crps_quantile``;
    twice `PinballLoss` for one level.

    Example:
        >>> import streammetrics as sm
        >>> crps = sm.CRPSQuantiles(levels=(0.25, 0.75))
        >>> crps.update([1.0, 4.0], [[0.0, 2.0], [1.0, 3.0]]).compute()
        1.0
    """

    levels: Any

    def check_parameters(self) -> None:
        """Check the levels."""
        levels = self.levels if isinstance(self.levels, tuple) else (self.levels,)
        numbers = all(isinstance(level, float) and 0 < level < 1 for level in levels)
        ascending = numbers and all(a < b for a, b in itertools.pairwise(levels))
        require(self, "levels", bool(levels) and ascending, "ascending numbers between 0 and 1")
        self.levels = levels

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of scores."""
        return (QuantileSum(levels=self.levels, nan_policy=self.nan_policy),)

    def update(
        self,
        y_true: ArrayLike,
        y_quantiles: ArrayLike,
        *,
        sample_weight: ArrayLike = None,
        counts: ArrayLike = None,
    ) -> Self:
        """Add a batch of rows: targets (n,) and quantiles (n, q), one per level."""
        columns = {"y_true": y_true, "y_quantiles": y_quantiles}
        return self.feed({**columns, "sample_weight": sample_weight, "counts": counts})


class PITHistogram(Metric[LabelledArray]):
    """PIT histogram: shares of rows by their probability integral transform.

    Formula: n_b / n, with n_b of n rows in bin b.

    The transform is the predictive distribution function evaluated at the target. For calibrated
    forecasts all bins have the same share. A U shape means that the forecasts are too narrow, a
    hump that they are too wide.

    Args:
        n_bins: The number of bins of equal width on [0, 1]. A value on an edge is in the upper bin,
            and 1 in the last.
        nan_policy: ``"raise"``, or ``"omit"``: rows with a missing value are left out.

    Memory and cost: 8 bytes per bin; about 20 ns per row.

    Reference: Gneiting, Balabdaoui and Raftery, J. R. Stat. Soc. B 69 (2007);
    ``numpy.histogram(pit, range=(0, 1))``.

    Example:
        >>> import streammetrics as sm
        >>> sm.PITHistogram(n_bins=4).update([0.125, 0.25, 0.5, 0.625]).compute()
        array([0.25, 0.25, 0.5 , 0.  ])
    """

    family = Family.BINNED_SHARES

    n_bins: Annotated[int, Between(1, 1 << 20)] = 10
    nan_policy: NanPolicy = "raise"

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the weight of each bin."""
        return (BinnedShares(n_bins=self.n_bins, nan_policy=self.nan_policy),)

    def update(
        self, pit: ArrayLike, *, sample_weight: ArrayLike = None, counts: ArrayLike = None
    ) -> Self:
        """Add a batch of rows: the distribution function at each target (n,), from 0 to 1."""
        return self.feed({"pit": pit, "sample_weight": sample_weight, "counts": counts})

    def readout(self, held: BinnedShares) -> LabelledArray:
        """Return the share of each bin."""
        rows, _ = held.bins.exact().integers()
        total = rows.sum()  # Python integers, so that shares are rounded once
        shares = (rows / total if total else np.full(self.n_bins, math.nan)).astype(np.float64)
        return LabelledArray.of(shares, range(self.n_bins), "bin")


class ScaledMetric(MeanOfRows):
    """Base class of metrics of targets, predictions and the scale of each row's series."""

    def update(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        scale: ArrayLike,
        *,
        sample_weight: ArrayLike = None,
        counts: ArrayLike = None,
    ) -> Self:
        """Add a batch of rows: targets, predictions and the scales of their series, each (n,).

        Raises:
            InvalidBatchError: A scale is not above 0, or a column has a wrong type or length, or a
                missing or infinite value; the state is unchanged.
        """
        columns = {"y_true": y_true, "y_pred": y_pred, "scale": scale}
        return self.feed({**columns, "sample_weight": sample_weight, "counts": counts})


class MASE(ScaledMetric):
    """Mean absolute scaled error.

    Formula: Σ w (|y - p| / s) / Σ w, with s the scale of the row's series.

    The scale of a series is the mean absolute error of the naive forecast (the value one season
    earlier) on the training rows: one number per series, passed with each of its rows. Below 1 the
    predictions are better than the naive forecast was.

    Parameters are those of `MeanOfRows`.

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
    With several series the mean is over all their rows; for one value per series use `Slices` by
    series.

    Parameters are those of `MeanOfRows`.

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
        """Return the sum of squared scaled errors."""
        return (ScaledSum(squared=True, nan_policy=self.nan_policy),)

    def readout(self, held: RowSum) -> float:
        """Return the root of the mean."""
        mean = held.exact_mean()
        return nearest(mean) if mean is None else root(mean)
