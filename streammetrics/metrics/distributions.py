"""Quantiles of values, and the distribution of a histogram that they are read from."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np

from streammetrics.core.constraints import Bins, Satisfies, Share
from streammetrics.core.metric import NumberOrArray
from streammetrics.core.results.values import Curves, Interval, LabelledArray, Points
from streammetrics.core.types import Floats, Several
from streammetrics.metrics.aggregation import Aggregate
from streammetrics.metrics.families import Family
from streammetrics.statistics.histograms import (
    LIGHT,
    EnclosedValue,
    QuantileMethod,
    ValueHistogram,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.arithmetic.histogram import SortedHistogram
    from streammetrics.core.results.values import Result
    from streammetrics.core.statistic import Statistic


class _CumulativeShares(NamedTuple):
    low: Floats
    high: Floats
    share: Floats


class Distribution(Points, _CumulativeShares):
    """Cells (m,) in ascending order: lower and upper edges, and cumulative shares.

    The edges of a cell are equal if it holds a single value. A share is that of all rows in this
    cell or a lower one, so the last share is 1.
    """


def distribution(values: ValueHistogram) -> Distribution | Curves:
    """Return the distribution of the values, or one per output."""
    distributions = [_of_one(histogram) for histogram in values.histograms] or [_nothing()]
    return (
        distributions[0]
        if len(distributions) == 1
        else Curves(distributions, range(len(distributions)))
    )


def _nothing() -> Distribution:
    return Distribution(np.zeros(0), np.zeros(0), np.zeros(0))


def _of_one(histogram: SortedHistogram) -> Distribution:
    cells = [(low, high, counts[0]) for low, high, _, counts in histogram.cells()]
    if not cells:
        return _nothing()
    low, high, mass = map(np.concatenate, zip(*cells, strict=True))
    below = np.cumsum(mass / mass.max())
    return Distribution(low, high, below / below[-1]).told(exact=histogram.exact)


def _are_shares(values: Sequence[float]) -> bool:
    return bool(values) and all(type(x) in {int, float} and 0 <= x <= 1 for x in values)


class Quantile(NumberOrArray[Several], Aggregate[float | LabelledArray]):
    """Quantile of the values. Infinities are allowed.

    Formula: quantile_q x

    Exact for up to `max_bins` distinct values. Beyond that, `bounds()` gives an interval that is
    guaranteed to contain the quantile.

    The other parameters are those of `Aggregate`.

    Args:
        q: The level, from 0 to 1, interpreted as the decimal number it prints as. For several
            levels the value is an array.

        method: ``"linear"`` interpolates between order statistics; a row of weight w counts as w
            equal rows, and the quantile is undefined if the total weight is below 1.
            ``"averaged_inverted_cdf"`` is the smallest value at or below which at least a share
            `q` of the weight lies, or the mean of this value and the next if that share is exactly
            `q`. It does not depend on the scale of the weights.
        max_bins: The largest number of distinct values for which the quantile is exact.

    Memory and cost: 16 bytes per distinct value, up to `max_bins`; about 8 ns per row.

    Reference: ``numpy.quantile`` with the same `method`; with weights and ``"linear"``,
    ``wtd.quantile`` of the R package Hmisc.

    Example:
        >>> import streammetrics as sm
        >>> sm.Quantile(q=0.25).update([1.0, 2.0, 3.0, 4.0]).compute()
        1.75
        >>> sm.Quantile(q=[0.5, 0.9]).update([1.0, 2.0, 3.0, 4.0]).compute().to_dict()
        {0.5: 2.5, 0.9: 3.7}
        >>> rough = sm.Quantile(q=0.25, max_bins=2).update([1.0, 2.0, 3.0, 4.0])
        >>> rough.exact
        False
    """

    family = Family.QUANTILE
    _nan_reason = f"{LIGHT}, or it is between -inf and inf"

    q: Share | Annotated[Several, Satisfies(_are_shares, "levels from 0 to 1")]
    method: QuantileMethod = "linear"
    max_bins: Bins = 1 << 20

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the histogram."""
        return (ValueHistogram(of="values", max_bins=self.max_bins, nan_policy=self.nan_policy),)

    def _shape(self, values: ValueHistogram) -> Result:
        return distribution(values)

    @property
    def _levels(self) -> tuple[float, ...]:
        """The levels, one or several."""
        return (self.q,) if isinstance(self.q, int | float) else tuple(self.q)

    def _of_levels(self, values: Sequence[float]) -> float | LabelledArray:
        """Return a number for a single level, and an array for several."""
        return (
            LabelledArray.of(values, self._levels, "q") if isinstance(self.q, tuple) else values[0]
        )

    def _estimates(self, values: ValueHistogram) -> list[EnclosedValue]:
        nothing = [EnclosedValue(math.nan, math.nan, math.nan)]
        return [(values.quantiles(q, self.method) or nothing)[0] for q in self._levels]

    def readout(self, values: ValueHistogram) -> float | LabelledArray:
        """Return the quantile, or the midpoint of the interval that contains it."""
        return self._of_levels([each.value for each in self._estimates(values)])

    def interval(self, values: ValueHistogram) -> Interval[float | LabelledArray]:
        """Return an interval that is guaranteed to contain the quantile."""
        found = self._estimates(values)
        sides = ([each.low for each in found], [each.high for each in found])
        return Interval(*map(self._of_levels, sides))

    def is_exact(self, values: ValueHistogram) -> bool:
        """Whether each cell that the quantile is read from holds a single value."""
        return not any(each.low < each.high for each in self._estimates(values))
