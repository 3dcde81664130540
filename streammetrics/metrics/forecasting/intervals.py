"""Prediction intervals: whether they hold what came, how wide they are, and both in one score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Self

from streammetrics.core.constraints import Between
from streammetrics.metrics.rowwise import RowMean
from streammetrics.statistics.sums.forecasts import IntervalSum

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import ArrayLike

__all__ = ["IntervalCoverage", "IntervalWidth", "WinklerScore"]


class IntervalMetric(RowMean):
    """A metric of targets and of intervals for them."""

    def update(
        self,
        y_true: ArrayLike,
        y_low: ArrayLike,
        y_high: ArrayLike,
        *,
        sample_weight: ArrayLike = None,
    ) -> Self:
        """Take rows: targets (n,) and the ends of intervals (n,), the lower one first.

        Raises:
            InvalidBatchError: Ends cross, or a column is not what it should be.
        """
        columns = {"y_true": y_true, "y_low": y_low, "y_high": y_high}
        return self.feed({**columns, "sample_weight": sample_weight})


class IntervalCoverage(IntervalMetric):
    """Share of targets that lie in their interval, ends included.

    Formula: Σ w [low <= y <= high] / Σ w

    It should be what the intervals claim, so neither more nor less of it is better.

    Parameters are those of `RowMean`.

    Reference: Gneiting and Raftery, "Strictly proper scoring rules", JASA 102 (2007).

    Example:
        >>> import streammetrics as sm
        >>> sm.IntervalCoverage().update([1.0, 2.0, 5.0, 4.0], [0, 1, 1, 4], [2, 2, 3, 6]).compute()
        0.75
    """

    higher_is_better = None

    _ends = (0.0, 1.0)

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the number of targets that are held."""
        return (IntervalSum(loss="coverage", nan_policy=self.nan_policy),)


class IntervalWidth(IntervalMetric):
    """Mean width of prediction intervals.

    Formula: Σ w (high - low) / Σ w

    Parameters are those of `RowMean`.

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
    """Mean interval score: the width, and 2 / alpha times how far a target lies outside.

    Formula: mean (u - l + (2 / alpha) max(l - y, y - u, 0)), with the interval from l to u.

    Intervals that are the central ones of level 1 - alpha have the least expected score.

    The other parameters are those of `RowMean`.

    Args:
        alpha: The share of targets that the intervals are to miss.

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
