"""Aggregates of plain values: count, sum, mean, variance and extremes."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Self

from streammetrics.core.arithmetic.exact import nearest
from streammetrics.core.confidence import Refusal
from streammetrics.core.constraints import AtLeast, NanPolicy
from streammetrics.core.metric import Metric
from streammetrics.core.types import V_co
from streammetrics.metrics.families import EXTREME, GROWS, NO_MEAN, Family
from streammetrics.statistics.histograms import Extremes, only
from streammetrics.statistics.joint import MomentSample
from streammetrics.statistics.sums import Moments, MomentSpread, mean_of

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import ArrayLike


class Aggregate(Metric[V_co]):
    """Base class of metrics of one column of values, (n,). Integers beyond 2**53 stay exact.

    Args:
        nan_policy: ``"raise"``, or ``"omit"``: rows with a missing value are left out; `n_omitted`
            counts them.
    """

    nan_policy: NanPolicy = "raise"

    def update(
        self, values: ArrayLike, *, sample_weight: ArrayLike = None, counts: ArrayLike = None
    ) -> Self:
        """Add a batch of rows.

        Args:
            values: Numbers, (n,).
            sample_weight: Non-negative weights, (n,).
            counts: How many rows each row stands for, (n,); whole numbers.

        Raises:
            InvalidBatchError: A column has a wrong type or length, or a missing value; the state is
                unchanged.
        """
        return self.feed({"values": values, "sample_weight": sample_weight, "counts": counts})


class Count(Aggregate[int | float]):
    """Number of rows, or the sum of their weights; 0 without rows.

    Formula: Σ w

    The value is an int if the sum is a whole number, else a float.

    Parameters are those of `Aggregate`.

    Memory and cost: about 10 bytes; the time does not depend on the number of rows.

    Reference: ``len``.

    Example:
        >>> import streammetrics as sm
        >>> sm.Count().update([1.5, 2.5, 4.0]).compute()
        3
    """

    family = Refusal(GROWS.format("a rate, such as Accuracy,"))
    _incomparable = NO_MEAN

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the total weight."""
        return (Moments(of="values", order="count", nan_policy=self.nan_policy),)

    def readout(self, moments: Moments) -> float:
        """Return the total weight."""
        total = moments.total
        return int(total) if total.denominator == 1 else nearest(total)


class Sum(Aggregate[float]):
    """Sum of the values, correctly rounded.

    Formula: Σ w x

    Parameters are those of `Aggregate`.

    Raises:
        InvalidBatchError: From `update`, if a value is infinite.

    Memory and cost: about 30 bytes; about 2 ns per row.

    Reference: ``math.fsum``.

    Example:
        >>> import streammetrics as sm
        >>> sm.Sum().update([1e16, 1.0, -1e16]).compute()
        1.0
    """

    family = Refusal(GROWS.format("Mean"))
    _incomparable = NO_MEAN
    _reads_groups = True

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum."""
        return (Moments(of="values", order="first", nan_policy=self.nan_policy),)

    def readout(self, moments: Moments) -> float:
        """Return the sum."""
        return moments.sums["x"].to_float() if moments.one_output else math.nan  # type: ignore[return-value]  # of groups


class Mean(Aggregate[float]):
    """Mean of the values, correctly rounded.

    Formula: Σ w x / Σ w

    The other parameters are those of `Aggregate`.

    Args:
        spread: Whether to also sum the squares of the values, which `confidence` needs; large
            batches then take twice as long.

    Raises:
        InvalidBatchError: From `update`, if a value is infinite.

    Memory and cost: same as `Sum`; with ``spread=False`` both share one state in a `MetricSet`.

    Reference: ``numpy.average``.

    Example:
        >>> import streammetrics as sm
        >>> sm.Mean().update([1.0, 2.0], sample_weight=[1, 3]).compute()
        1.75
    """

    family = Family.MEAN
    _reads_groups = True

    spread: bool = True

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of values, and that of squares if ``spread=True``."""
        kind = MomentSpread if self.spread else Moments
        return (kind(of="values", order="first", nan_policy=self.nan_policy),)

    def readout(self, moments: Moments) -> float:
        """Return the mean."""
        return mean_of(moments.sums["x"], moments.weight) if moments.one_output else math.nan


class Variance(Aggregate[float]):
    """Variance of the values, correctly rounded.

    Formula: Σ w (x - x̄)² / (Σ w - ddof)

    A row of weight w counts as w equal rows. Undefined unless Σ w is above `ddof`.

    The other parameters are those of `Aggregate`.

    Args:
        ddof: Delta degrees of freedom: 0 for the variance of the values themselves, 1 for an
            unbiased estimate of the population variance.
        spread: Whether to also keep a sample of 4,096 values, about 150 KB, which `confidence`
            needs.

    Raises:
        InvalidBatchError: From `update`, if a value is infinite.

    Memory and cost: about 60 bytes; about 5 ns per row.

    Reference: ``numpy.var``.

    Example:
        >>> import streammetrics as sm
        >>> sm.Variance(ddof=1).update([1e9, 1e9 + 1, 1e9 + 2]).compute()
        1.0
    """

    value_range = (0.0, math.inf)
    family = Family.VARIANCE

    ddof: Annotated[float, AtLeast(0)] = 0.0
    spread: bool = False

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the moments, and the sample if ``spread=True``."""
        moments = Moments(of="values", nan_policy=self.nan_policy)
        if not self.spread:
            return (moments,)
        return moments, MomentSample(of="values", nan_policy=self.nan_policy)

    def _lacking(self, *_: object) -> str:
        return f"the weights, 1 of each row by default, add up to at most ddof={self.ddof:g}"

    def readout(self, moments: Moments, *_: MomentSample) -> float:
        """Return the variance."""
        if moments.total <= self.ddof:
            return math.nan
        return nearest(moments.centred("x", "x")[0] / (moments.total - Fraction(self.ddof)))


class Minimum(Aggregate[float]):
    """Smallest value. Infinities are allowed, and -0.0 counts as 0.0.

    Formula: min x

    Parameters are those of `Aggregate`.

    Memory and cost: 16 bytes; about 1 ns per row.

    Reference: ``numpy.min``.

    Example:
        >>> import streammetrics as sm
        >>> sm.Minimum().update([2.0, -1.0, 4.0]).compute()
        -1.0
    """

    family = Refusal(EXTREME.format("smallest", "Quantile(q=0.01)"))
    _incomparable = NO_MEAN
    _reads_groups = True

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the smallest and the largest value."""
        return (Extremes(of="values", nan_policy=self.nan_policy),)

    def readout(self, extremes: Extremes) -> float:
        """Return the smallest value."""
        return only(extremes.low)


class Maximum(Aggregate[float]):
    """Largest value. Infinities are allowed, and -0.0 counts as 0.0.

    Formula: max x

    Parameters are those of `Aggregate`.

    Memory and cost: same as `Minimum`; both share one state in a `MetricSet`.

    Reference: ``numpy.max``.

    Example:
        >>> import streammetrics as sm
        >>> sm.Maximum().update([2.0, -1.0, 4.0]).compute()
        4.0
    """

    family = Refusal(EXTREME.format("largest", "Quantile(q=0.99)"))
    _incomparable = NO_MEAN
    _reads_groups = True

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the smallest and the largest value."""
        return (Extremes(of="values", nan_policy=self.nan_policy),)

    def readout(self, extremes: Extremes) -> float:
        """Return the largest value."""
        return only(extremes.high)
