"""The empirical distribution function of a histogram, which pictures of quantiles show."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core.results.curves import Curves, Points

if TYPE_CHECKING:
    from streammetrics.core.histograms.histogram import DyadicHistogram
    from streammetrics.core.types import Floats
    from streammetrics.statistics.sums.values import ValueHistogram


class _CumulativeShares(NamedTuple):
    low: Floats
    high: Floats
    share: Floats


class Distribution(Points, _CumulativeShares):
    """Ascending cells (m,): their edges, which are equal where a cell holds one value, and shares.

    A share is that of all rows in this cell or a lower one, so the last share is 1.
    """


def distribution(values: ValueHistogram) -> Distribution | Curves:
    """Return the distribution of the values, or one per output."""
    found = [_of_one(histogram) for histogram in values.histograms] or [_nothing()]
    return found[0] if len(found) == 1 else Curves(found, range(len(found)))


def _nothing() -> Distribution:
    return Distribution(np.zeros(0), np.zeros(0), np.zeros(0))


def _of_one(histogram: DyadicHistogram) -> Distribution:
    cells = [(low, high, counts[0]) for low, high, _, counts in histogram.cells()]
    if not cells:
        return _nothing()
    low, high, mass = map(np.concatenate, zip(*cells, strict=True))
    below = np.cumsum(mass / mass.max())
    return Distribution(low, high, below / below[-1]).told(exact=histogram.exact)
