"""Distances between the shares of two samples in bins."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np

from streammetrics.core.configured import require
from streammetrics.core.constraints import Above, AtLeast, Between
from streammetrics.metrics.drift.base import SampleDistance
from streammetrics.metrics.families import APART
from streammetrics.metrics.scores.base import ROUNDING
from streammetrics.metrics.scores.view import corners

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.types import Array, Floats
    from streammetrics.metrics.scores.view import Staircase


__all__ = ["JensenShannon", "PopulationStability"]


class Range(NamedTuple):
    """Amounts and their bounds."""

    low: Floats
    value: Floats
    high: Floats

    def differences(self) -> Range:
        """Return the differences of neighbouring amounts, which ascend."""
        return Range(
            np.maximum(self.low[1:] - self.high[:-1], 0.0),
            np.diff(self.value),
            self.high[1:] - self.low[:-1],
        )

    def shares(self, total: float, added: float) -> Range:
        """Return the shares of the total, each amount being larger by `added`."""
        whole = total + added * self.value.size
        return Range._make([np.minimum((side + added) / whole, 1.0) for side in self])


class BinnedDistance(SampleDistance):
    """Base of the distances between the shares of two samples in bins ``(a, b]``.

    The other parameters are those of `SampleDistance`.

    Args:
        bins: How many bins. Their edges are quantiles of the reference, at levels 1 / bins,
            2 / bins, ...: each the smallest value at or below which that share lies. Bins hold
            equal shares of the reference, as far as ties allow.
        edges: Ascending inner edges, instead of quantiles: bins are right-closed, so that a value
            equal to an edge is in the bin below it, and the outer bins are open.
        pseudo_count: A weight that is added to each sample in each bin. Without it, a bin that is
            empty in one sample can make the distance infinite.
    """

    _formula = ("readout", "certain", "terms", "total")

    bins: Annotated[int, Between(2, 1000)] = 10
    edges: Any = None
    pseudo_count: Annotated[float, AtLeast(0)] = 0.0

    def check_parameters(self) -> None:
        """Check that the edges ascend."""
        if self.edges is not None:
            good = isinstance(self.edges, tuple) and len(self.edges) > 0
            good = good and all(_is_number(edge) for edge in self.edges)
            good = good and all(np.diff(self.edges) > 0)
            require(self, "edges", good, "ascending finite numbers, one at least")

    @abstractmethod
    def terms(self, p: Floats, q: Floats) -> Floats:
        """Return the term of each bin: convex in both shares, and 0 where they are equal."""

    @abstractmethod
    def total(self, terms: float) -> float:
        """Return the distance from the terms of all bins."""

    def certain(self, stairs: Staircase) -> tuple[float, float, float]:
        """Return the smallest, the nominal and the largest distance within the bounds of shares."""
        cells = _SampleCells.of(stairs)
        one, other = cells.at(self.edges) if self.edges else cells.quantiles(self.bins)
        pseudo_weight = self.pseudo_count * stairs.one if self.pseudo_count else 0.0
        p = one.differences().shares(float(stairs.positives), pseudo_weight)
        q = other.differences().shares(float(stairs.negatives), pseudo_weight)
        # Convex terms are largest in a corner of the rectangle of possible shares, and smallest
        # on the diagonal, or in the corner nearest to it.
        corners = [self.terms(a, b) for a in (p.low, p.high) for b in (q.low, q.high)]
        nearest = np.clip(q.value, p.low, p.high)
        least = self.terms(nearest, np.clip(nearest, q.low, q.high))
        low = math.fsum(least) * (1 - ROUNDING) - ROUNDING
        high = math.fsum(np.max(corners, axis=0)) * (1 + ROUNDING) + ROUNDING
        value = math.fsum(self.terms(p.value, q.value))
        return self.total(max(low, 0.0)), self.total(value), self.total(high)


class PopulationStability(BinnedDistance):
    """Population stability index (PSI) of the shares of two samples in bins.

    Formula: Σ_b (p_b - q_b) log(p_b / q_b), with p_b and q_b the shares of the current sample and
    of the reference in bin b.

    ``nan`` unless both samples have rows; ``inf`` where a bin is empty in one of them only. For two
    samples of n and m rows from the same population it is about (bins - 1) (1 / n + 1 / m) by
    chance.

    Beyond `max_bins`, the rows of a cell that contains an edge may be on either side of it.

    Parameters are those of `BinnedDistance`.

    Memory and cost: that of a `ScoreHistogram`; `compute` takes about 10 ns per cell.

    Reference: Siddiqi, "Credit Risk Scorecards" (2006); Yurdakul and Naranjo, "Statistical
    properties of the population stability index", J. Risk Model Validation 14 (2020).

    Example:
        >>> import streammetrics as sm
        >>> metric = sm.PopulationStability(bins=2)
        >>> metric.update([0, 0, 0, 0, 1, 1, 1, 1], [1, 2, 3, 4, 2, 3, 4, 5]).compute()
        0.2746530721670274
    """

    higher_is_better = False
    family = APART

    def terms(self, p: Floats, q: Floats) -> Floats:
        """Return (p - q) ln(p / q)."""
        return 2 * (p - q) * _half_log_ratio(p, q)

    def total(self, terms: float) -> float:
        """Return the sum."""
        return terms


class JensenShannon(BinnedDistance):
    """Jensen-Shannon distance of the shares of two samples in bins.

    Formula: √((KL(p, m) + KL(q, m)) / 2), with m = (p + q) / 2, and p and q the shares of the
    current sample and of the reference in bins.

    It is the square root of the Jensen-Shannon divergence, at most √(ln 2), or 1 with ``base=2``.
    ``nan`` unless both samples have rows.

    Beyond `max_bins`, the rows of a cell that contains an edge may be on either side of it.

    The other parameters are those of `BinnedDistance`.

    Args:
        base: The base of the logarithm; ``None``: e, as in SciPy.

    Memory and cost: that of a `ScoreHistogram`; `compute` takes about 10 ns per cell.

    Reference: ``scipy.spatial.distance.jensenshannon(p, q)``.

    Example:
        >>> import streammetrics as sm
        >>> metric = sm.JensenShannon(edges=[2.5], base=2)
        >>> round(metric.update([0, 0, 0, 0, 1, 1, 1, 1], [1, 2, 3, 4, 2, 3, 4, 5]).compute(), 6)
        0.220896
    """

    higher_is_better = False
    family = APART

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
    """Return ln(p / q) / 2, accurate where both are close, and 0 for 0/0."""
    both = p + q
    with np.errstate(divide="ignore"):
        return np.arctanh((p - q) / np.where(both > 0, both, 1.0))


class _SampleCells(NamedTuple):
    """Ascending cells, and the weight of each sample below and in each, starting with 0."""

    low: Floats
    high: Floats
    current: Array  # (m + 1,)
    reference: Array

    @classmethod
    def of(cls, stairs: Staircase) -> _SampleCells:
        """Return the cells of a staircase."""
        known = corners(stairs)
        return cls(known.low, known.high, known.fn, known.tn)

    def quantiles(self, bins: int) -> tuple[Range, Range]:
        """Return the weight of both samples at or below each quantile of the reference."""
        total, mass = self.reference[-1], self.reference[1:]
        if mass.dtype.kind == "i":
            wanted = np.array([-(-k * int(total) // bins) for k in range(1, bins)])
            first = place = last = np.searchsorted(mass, wanted)
            target = wanted.astype(np.float64)
        else:  # sums of floats have errors of a unit, so an edge may be one cell further
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
        # The whole cell of the edge, or none of the part of it that may be above the edge.
        lower = np.where((first == last) & ~mixed, place + 1, first)
        return self._ranges(lower, place, share, last + 1)

    def at(self, edges: Sequence[float]) -> tuple[Range, Range]:
        """Return the weight of both samples at or below each edge."""
        wanted = np.array(edges, np.float64)
        below = np.searchsorted(self.high, wanted, "right")  # cells that end at or below an edge
        reached = np.searchsorted(self.low, wanted, "right")
        place = np.minimum(below, self.low.size - 1)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            inside = (wanted - self.low[place]) / (self.high[place] - self.low[place])
        share = np.where(reached > below, np.nan_to_num(inside, nan=0.5), 0.0)
        share[below == self.low.size] = 1.0  # of the last cell, all of which is at or below
        return self._ranges(below, place, share, reached)

    def _ranges(
        self, lower: Array, place: Array, share: Floats, upper: Array
    ) -> tuple[Range, Range]:
        """Return the amounts up to cells: the least, with a share of the next one, the most."""
        ranges = []
        for mass in (self.current, self.reference):
            ends = [np.array([0.0]), np.array([float(mass[-1])])]
            value = mass[place] + share * (mass[place + 1] - mass[place])
            sides = (mass[lower], value, mass[upper])
            ranges.append(Range._make([np.concatenate([ends[0], side, ends[1]]) for side in sides]))
        return ranges[0], ranges[1]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
