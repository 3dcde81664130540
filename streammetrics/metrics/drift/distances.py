"""Distances between distribution functions of two samples: the largest gap, and the area."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.metrics.drift.base import SampleDistance
from streammetrics.metrics.families import APART
from streammetrics.metrics.scores.base import ROUNDING, outward
from streammetrics.metrics.scores.view import staircases

if TYPE_CHECKING:
    from streammetrics.core.types import Bools, Floats
    from streammetrics.metrics.scores.view import Staircase
    from streammetrics.statistics.scores.samples import SampleHistogram


__all__ = ["KSDistance", "Wasserstein"]


class Gaps(NamedTuple):
    """The ascending cells of two samples, and the differences F - G of their distributions.

    `f` and `g` (m,) are the shares of the current sample and of the reference in each cell;
    `before` (m,) is F - G below the cell and `after` (m,) above it.
    """

    low: Floats
    high: Floats
    f: Floats
    g: Floats
    before: Floats
    after: Floats

    @classmethod
    def of(cls, stairs: Staircase) -> Self:
        """Return the gaps of a staircase."""
        blocks = list(stairs.steps())
        low, high, p, n = map(
            np.concatenate, zip(*((s.low, s.high, s.p, s.n) for s in blocks), strict=True)
        )
        positives, negatives = float(stairs.positives), float(stairs.negatives)
        # What is at or above a cell, as differences of it have one sign on both sides.
        before = 0.0 - stairs.gaps()
        after = np.append(before[1:], 0.0)
        return cls(low, high, p / positives, n / negatives, before, after)

    @property
    def spread(self) -> float:
        """The integral of √(F (1 - F)), F being the distribution function of the reference."""
        below = np.minimum(np.cumsum(self.g), 1.0)
        return _area(np.sqrt(below * (1 - below))[:-1], _widths(self.high[:-1], self.high[1:]))

    @property
    def mixed(self) -> Bools:
        """Which cells may hold several values."""
        return self.low < self.high

    @property
    def extremes(self) -> tuple[Floats, Floats]:
        """The smallest and the largest possible |F - G| within each cell."""
        low, high = self.before - self.g, self.before + self.f
        most = np.maximum(np.abs(low), np.abs(high))
        least = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
        return least, most


def gaps_of(samples: SampleHistogram) -> Gaps:
    """Return the gaps of two samples that both have rows."""
    (stairs,) = staircases(samples)
    return Gaps.of(stairs)


class KSDistance(SampleDistance):
    """Two-sample Kolmogorov-Smirnov distance.

    Formula: max_x |F(x) - G(x)|, with F and G the distribution functions of the two samples.

    ``nan`` unless both samples have rows. It is `KolmogorovSmirnov` with values for scores and
    samples for classes.

    Parameters are those of `SampleDistance`.

    Memory and cost: that of a `ScoreHistogram`; `compute` takes about 10 ns per cell.

    Reference: ``scipy.stats.ks_2samp(reference, current).statistic``.

    Example:
        >>> import streammetrics as sm
        >>> sm.KSDistance().update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).compute()
        0.5
    """

    higher_is_better = False
    family = APART

    def certain(self, stairs: Staircase) -> tuple[float, float, float]:
        """Return the largest difference at the edges of cells, and with those within cells."""
        gaps = Gaps.of(stairs)
        value = stairs.largest_gap()
        low, high = outward(value, value, gaps.extremes[1][gaps.mixed].max(initial=0.0))
        return float(low), value, float(high)


class Wasserstein(SampleDistance):
    """First Wasserstein distance (earth mover's distance).

    Formula: ∫ |F(x) - G(x)| dx, with F and G the distribution functions of the two samples.

    It has the unit of the values. ``nan`` unless both samples have rows; ``inf`` where their shares
    at an infinity differ.

    Beyond `max_bins`, a cell adds at least its width times the smallest, and at most its width
    times the largest possible difference within it.

    Parameters are those of `SampleDistance`.

    Memory and cost: that of a `ScoreHistogram`; `compute` takes about 20 ns per cell.

    Reference: ``scipy.stats.wasserstein_distance(reference, current)``.

    Example:
        >>> import streammetrics as sm
        >>> sm.Wasserstein().update([0, 0, 1, 1], [1.0, 2.0, 2.0, 4.0]).compute()
        1.5
    """

    higher_is_better = False
    family = APART

    def certain(self, stairs: Staircase) -> tuple[float, float, float]:
        """Return the areas between and within cells."""
        gaps = Gaps.of(stairs)
        distance, (least, most) = np.abs(gaps.after[:-1]), gaps.extremes
        between = _area(distance, _widths(gaps.high[:-1], gaps.low[1:]))
        width = _widths(gaps.low, gaps.high)
        finite = np.where(np.isinf(width), 0.0, width)
        low, high = between + _area(least, finite), between + _area(most, width)
        # Rows are taken as spread evenly within a cell, so that the difference is a straight line.
        value = min(max(between + _area(_means(gaps.before, gaps.after), finite), low), high)
        # Each share within a cell has an error of a few 2**-52.
        reach = 0.0 if stairs.counted else float(finite.sum())
        sizes = (value, min(reach, math.ldexp(1.0, 1000)))
        room = ROUNDING * sum(size for size in sizes if size < math.inf)
        return max(low - room, 0.0), value, high + room


def _widths(low: Floats, high: Floats) -> Floats:
    """Return the lengths between ends, 0 between two equal infinities."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where(low == high, 0.0, high - low)


def _area(heights: Floats, widths: Floats) -> float:
    """Return the sum of non-negative products, where a height of 0 gives 0."""
    with np.errstate(invalid="ignore", over="ignore"):
        areas = np.where(heights > 0, heights * widths, 0.0)
    return float(ExactSum.of(areas).to_float()) if np.isfinite(areas).all() else math.inf


def _means(start: Floats, end: Floats) -> Floats:
    """Return the mean absolute value along straight lines between two values."""
    one, other = np.abs(start), np.abs(end)
    both = one + other
    crossing = (one**2 + other**2) / np.where(both > 0, 2 * both, 1.0)
    return np.where(start * end < 0, crossing, both / 2)
