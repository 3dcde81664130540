"""Distances of the shares that two samples have in bins."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np

from streammetrics.core.configured import require
from streammetrics.core.constraints import Above, AtLeast, Between
from streammetrics.metrics.drift.base import SampleDistance
from streammetrics.metrics.scores.base import ROUNDING
from streammetrics.metrics.scores.view import corners

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.types import Array, Floats
    from streammetrics.metrics.scores.view import Staircase


__all__ = ["JensenShannon", "PopulationStability"]


class Range(NamedTuple):
    """Amounts, and what they certainly lie between."""

    low: Floats
    value: Floats
    high: Floats

    def differences(self) -> Range:
        """Return what lies between neighbours, which ascend."""
        return Range(
            np.maximum(self.low[1:] - self.high[:-1], 0.0),
            np.diff(self.value),
            self.high[1:] - self.low[:-1],
        )

    def shares(self, total: float, more: float) -> Range:
        """Return parts of the total, each amount being `more`."""
        whole = total + more * self.value.size
        return Range._make([np.minimum((side + more) / whole, 1.0) for side in self])


class BinnedDistance(SampleDistance):
    """A distance of the shares that two samples have in bins ``(a, b]``.

    The other parameters are those of `SampleDistance`.

    Args:
        bins: How many bins: their edges are the smallest values that a share of 1 / bins,
            2 / bins, ... of the reference does not exceed, so that each has as much of it as ties
            allow.
        edges: Ascending inner edges in the place of these; the outer bins are open.
        pseudo_count: What is added to the weight of each sample in each bin. Without it, a bin
            in which one sample has nothing can make the distance infinite.
    """

    bins: Annotated[int, Between(2, 1000)] = 10
    edges: Any = None
    pseudo_count: Annotated[float, AtLeast(0)] = 0.0

    def check_parameters(self) -> None:
        """Check that the edges are such."""
        if self.edges is not None:
            good = isinstance(self.edges, tuple) and len(self.edges) > 0
            good = good and all(_is_number(edge) for edge in self.edges)
            good = good and all(np.diff(self.edges) > 0)
            require(self, "edges", good, "ascending finite numbers, one at least")

    @abstractmethod
    def terms(self, p: Floats, q: Floats) -> Floats:
        """Return what each bin adds for two shares: convex, and 0 where they are equal."""

    @abstractmethod
    def total(self, terms: float) -> float:
        """Return the distance of what all bins add."""

    def certain(self, stairs: Staircase) -> tuple[float, float, float]:
        """Return the least, the nominal and the largest sum of terms that shares allow."""
        cells = _Cells.of(stairs)
        one, other = cells.at(self.edges) if self.edges else cells.quantiles(self.bins)
        more = self.pseudo_count * stairs.one if self.pseudo_count else 0.0
        p = one.differences().shares(float(stairs.positives), more)
        q = other.differences().shares(float(stairs.negatives), more)
        # As terms are convex, they are largest in a corner, and least on the diagonal if it is
        # met or else in the corner next to it.
        corners = [self.terms(a, b) for a in (p.low, p.high) for b in (q.low, q.high)]
        nearest = np.clip(q.value, p.low, p.high)
        least = self.terms(nearest, np.clip(nearest, q.low, q.high))
        low = math.fsum(least) * (1 - ROUNDING) - ROUNDING
        high = math.fsum(np.max(corners, axis=0)) * (1 + ROUNDING) + ROUNDING
        value = math.fsum(self.terms(p.value, q.value))
        return self.total(max(low, 0.0)), self.total(value), self.total(high)


class PopulationStability(BinnedDistance):
    """Population stability index of shares in bins.

    Formula: Σ_b (p_b - q_b) log(p_b / q_b)

    p and q are the shares of the current sample and of the reference in a bin; weights weigh rows.
    ``nan`` without rows of both; ``inf`` where a bin has rows of one only. Of two samples of one
    population, n and m rows, it is about (bins - 1) (1 / n + 1 / m) by chance alone.

    Past `max_bins`, rows of a cell in which an edge lies may be on either side of it.

    Parameters are those of `BinnedDistance`.

    Memory and cost: that of a `ScoreHistogram`; `compute` takes about 10 ns per cell.

    Reference: Siddiqi, Credit Risk Scorecards (2006); Yurdakul and Naranjo, Statistical properties
    of the population stability index (2020).

    Example:
        >>> import streammetrics as sm
        >>> metric = sm.PopulationStability(bins=2)
        >>> metric.update([0, 0, 0, 0, 1, 1, 1, 1], [1, 2, 3, 4, 2, 3, 4, 5]).compute()
        0.2746530721670274
    """

    def terms(self, p: Floats, q: Floats) -> Floats:
        """Return (p - q) ln(p / q)."""
        return 2 * (p - q) * _half_log_ratio(p, q)

    def total(self, terms: float) -> float:
        """Return the sum."""
        return terms


class JensenShannon(BinnedDistance):
    """Jensen-Shannon distance of the shares in bins: the square root of the divergence.

    Formula: √((KL(p, m) + KL(q, m)) / 2), with m = (p + q) / 2.

    The divergence is the mean of KL(p, m) and KL(q, m) with m = (p + q) / 2, p and q the shares
    of the current sample and of the reference in a bin; weights weigh rows. ``nan`` without rows
    of both. It is at most sqrt(ln 2), or 1 with ``base=2``.

    Past `max_bins`, rows of a cell in which an edge lies may be on either side of it.

    The other parameters are those of `BinnedDistance`.

    Args:
        base: Of the logarithm; ``None``: the natural one, as SciPy's.

    Memory and cost: that of a `ScoreHistogram`; `compute` takes about 10 ns per cell.

    Reference: ``scipy.spatial.distance.jensenshannon(p, q)``.

    Example:
        >>> import streammetrics as sm
        >>> metric = sm.JensenShannon(edges=[2.5], base=2)
        >>> round(metric.update([0, 0, 0, 0, 1, 1, 1, 1], [1, 2, 3, 4, 2, 3, 4, 5]).compute(), 6)
        0.220896
    """

    base: Annotated[float, Above(1)] | None = None

    def terms(self, p: Floats, q: Floats) -> Floats:
        """Return half of p ln(p / m) + q ln(q / m)."""
        mean = (p + q) / 2
        u = np.abs(p - q) / np.where(mean > 0, p + q, 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            inner = np.log1p(-(u**2)) + 2 * u * np.arctanh(u)
        return mean * np.where(u < 1, inner, 2 * math.log(2)) / 2

    def total(self, terms: float) -> float:
        """Return the square root."""
        return math.sqrt(terms / (math.log(self.base) if self.base else 1.0))


def _half_log_ratio(p: Floats, q: Floats) -> Floats:
    """Return ln(p / q) / 2, 0 of nothing to nothing: exact where they are close."""
    both = p + q
    with np.errstate(divide="ignore"):
        return np.arctanh((p - q) / np.where(both > 0, both, 1.0))


class _Cells(NamedTuple):
    """Cells in ascending order, and what both samples weigh up to and with each, from 0 on."""

    low: Floats
    high: Floats
    current: Array  # (m + 1,)
    reference: Array

    @classmethod
    def of(cls, stairs: Staircase) -> _Cells:
        """Return those of a staircase."""
        low, high, _, tp, fp = corners(stairs)
        return cls(low, high, tp[0] - tp, fp[0] - fp)

    def quantiles(self, bins: int) -> tuple[Range, Range]:
        """Return how much of both samples lies at most at each quantile of the reference."""
        total, mass = self.reference[-1], self.reference[1:]
        if mass.dtype.kind == "i":
            wanted = np.array([-(-k * int(total) // bins) for k in range(1, bins)])
            first = place = last = np.searchsorted(mass, wanted)
            target = wanted.astype(np.float64)
        else:  # sums of floats are right to a unit, so that an edge may be one cell further
            wanted = np.arange(1, bins) * total
            target, room = wanted / bins, ROUNDING * total
            first, place, last = (
                np.minimum(np.searchsorted(mass * bins, wanted + side), mass.size - 1)
                for side in (-room, 0.0, room)
            )
        mixed = self.low[place] < self.high[place]
        with np.errstate(invalid="ignore", divide="ignore"):
            inside = (target - self.reference[place]) / np.diff(self.reference)[place]
        share = np.where(mixed, np.nan_to_num(np.clip(inside, 0.0, 1.0), nan=0.5), 1.0)
        # Through the cell of the edge, or through none of what may be above an edge in it.
        lower = np.where((first == last) & ~mixed, place + 1, first)
        return self._ranges(lower, place, share, last + 1)

    def at(self, edges: Sequence[float]) -> tuple[Range, Range]:
        """Return how much of both samples lies at most at each edge."""
        wanted = np.array(edges, np.float64)
        below = np.searchsorted(self.high, wanted, "right")  # cells that are not above an edge
        reached = np.searchsorted(self.low, wanted, "right")
        place = np.minimum(below, self.low.size - 1)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            inside = (wanted - self.low[place]) / (self.high[place] - self.low[place])
        share = np.where(reached > below, np.nan_to_num(inside, nan=0.5), 0.0)
        return self._ranges(below, place, share, reached)

    def _ranges(
        self, lower: Array, place: Array, share: Floats, upper: Array
    ) -> tuple[Range, Range]:
        """Return the amounts through some cells at least, a share of one more, and at most."""
        ranges = []
        for mass in (self.current, self.reference):
            ends = [np.array([0.0]), np.array([float(mass[-1])])]
            value = mass[place] + share * (mass[place + 1] - mass[place])
            sides = (mass[lower], value, mass[upper])
            ranges.append(Range._make([np.concatenate([ends[0], side, ends[1]]) for side in sides]))
        return ranges[0], ranges[1]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
