"""Prediction intervals: their coverage, their width, and both in one score."""

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
    """Base of the metrics of targets and prediction intervals."""

    def update(
        self,
        y_true: ArrayLike,
        y_low: ArrayLike,
        y_high: ArrayLike,
        *,
        sample_weight: ArrayLike = None,
    ) -> Self:
        """Add a batch of rows: targets (n,) and the lower and upper ends of intervals, each (n,).

        Raises:
            InvalidBatchError: A lower end is above the upper one, or a column has a wrong type or
                length, or a missing or infinite value; the state is unchanged.
        """
        columns = {"y_true": y_true, "y_low": y_low, "y_high": y_high}
        return self.feed({**columns, "sample_weight": sample_weight})


class IntervalCoverage(IntervalMetric):
    """Coverage: the share of targets that lie in their interval, ends included.

    Formula: Σ w [low <= y <= high] / Σ w

    It should equal the nominal level of the intervals, so neither higher nor lower is better.

    Parameters are those of `RowMean`.

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
    """Mean interval score (Winkler score): the width plus a penalty for targets outside.

    Formula: mean (u - l + (2 / alpha) max(l - y, y - u, 0)), with the interval from l to u.

    The central interval of level 1 - alpha has the smallest expected score.

    The other parameters are those of `RowMean`.

    Args:
        alpha: The share of targets that the intervals should miss.

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
