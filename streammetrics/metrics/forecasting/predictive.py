"""Predictive distributions: continuous ranked probability scores, and their calibration."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np

from streammetrics.core.configured import require
from streammetrics.core.constraints import Between, NanPolicy
from streammetrics.core.metric import Metric
from streammetrics.core.results.labelled import LabelledArray
from streammetrics.metrics.families import Family
from streammetrics.metrics.rowwise import RowMean
from streammetrics.statistics.sums.forecasts import (
    BinnedShares,
    EnsembleSum,
    GaussianSum,
    QuantileSum,
)

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import ArrayLike

__all__ = ["CRPSEnsemble", "CRPSGaussian", "CRPSQuantiles", "PITHistogram"]


class CRPSEnsemble(RowMean):
    """Continuous ranked probability score (CRPS) of ensembles.

    Formula: mean_i |x_i - y| - mean_(i,j) |x_i - x_j| / 2, with x_i the members and y the target of
    a row.

    This is the integral of the squared difference between the distribution function of equally
    likely members and the step function at the target, averaged over rows. With one member it is
    the absolute error.

    The other parameters are those of `RowMean`.

    Args:
        fair: Whether to take the second mean over pairs of different members only, which is
            unbiased for the distribution that the members are drawn from.

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
        self, y_true: ArrayLike, y_ensemble: ArrayLike, *, sample_weight: ArrayLike = None
    ) -> Self:
        """Add a batch of rows: targets (n,) and ensembles of m members (n, m)."""
        columns = {"y_true": y_true, "y_ensemble": y_ensemble}
        return self.feed({**columns, "sample_weight": sample_weight})


class CRPSGaussian(RowMean):
    """Continuous ranked probability score (CRPS) of normal distributions.

    Formula: s (z (2 Φ(z) - 1) + 2 φ(z) - 1 / √π), with z = (y - m) / s, for the target y, the mean
    m and the standard deviation s of a row, in the mean over rows.

    Parameters are those of `RowMean`.

    Raises:
        InvalidBatchError: From `update`, where a standard deviation is not above 0.

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
    ) -> Self:
        """Add a batch of rows: targets, means and standard deviations, each (n,)."""
        columns = {"y_true": y_true, "y_mean": y_mean, "y_std": y_std}
        return self.feed({**columns, "sample_weight": sample_weight})


class CRPSQuantiles(RowMean):
    """Continuous ranked probability score (CRPS) from quantiles: twice their mean pinball loss.

    Formula: 2 mean_k max(alpha_k (y - x_k), (alpha_k - 1) (y - x_k)), with x_k the quantile of
    level alpha_k, in the mean over rows.

    With many evenly spaced levels it approaches the score of the whole distribution.

    The other parameters are those of `RowMean`.

    Args:
        levels: The levels of the quantiles, ascending, in (0, 1).

    Raises:
        InvalidBatchError: From `update`, where the quantiles of a row cross, or are not one per
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
        self, y_true: ArrayLike, y_quantiles: ArrayLike, *, sample_weight: ArrayLike = None
    ) -> Self:
        """Add a batch of rows: targets (n,) and quantiles (n, q), one per level."""
        columns = {"y_true": y_true, "y_quantiles": y_quantiles}
        return self.feed({**columns, "sample_weight": sample_weight})


class PITHistogram(Metric[LabelledArray]):
    """PIT histogram: shares of rows by their probability integral transform.

    Formula: n_b / n, with n_b of n rows in bin b.

    The transform is the value of the predictive distribution function at the target. For calibrated
    forecasts all bins have the same share. A U shape means that the forecasts are too narrow, a
    hump that they are too wide.

    Args:
        n_bins: How many bins of equal width on [0, 1]. A value on an edge is in the upper bin, and
            1 in the last.
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

    def update(self, pit: ArrayLike, *, sample_weight: ArrayLike = None) -> Self:
        """Add a batch of rows: values (n,), from 0 to 1, of distribution functions at targets."""
        return self.feed({"pit": pit, "sample_weight": sample_weight})

    def readout(self, held: BinnedShares) -> LabelledArray:
        """Return the share of each bin."""
        rows, _ = held.bins.exact().integers()
        total = rows.sum()  # Python's integers, so that shares are rounded once
        shares = (rows / total if total else np.full(self.n_bins, math.nan)).astype(np.float64)
        return LabelledArray.of(shares, range(self.n_bins), "bin")
