"""Distances between two samples."""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np

from streammetrics.core import elementary
from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.columns.labels import Label  # noqa: TC001 - parameter annotations are read at run time
from streammetrics.core.configured import require
from streammetrics.core.constraints import Above, AtLeast, Between, Bins, NanPolicy
from streammetrics.core.metric import Metric
from streammetrics.core.results.values import Interval
from streammetrics.core.types import FloatSequence
from streammetrics.metrics.families import APART
from streammetrics.metrics.scores.base import ROUNDING, corners, outward, staircases
from streammetrics.statistics.histograms import MAX_BINS
from streammetrics.statistics.probabilities import SampleHistogram
from streammetrics.statistics.tables import SampleTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import Array, ArrayLike, Bools, Floats, Places
    from streammetrics.metrics.scores.base import CumulativeCounts


CATEGORIES = "categories"


class SampleDistance(Metric[float]):
    """Base class of distances between two samples, exact for up to `max_bins` distinct values.

    Args:
        current: The label of the current sample in `sample`; all rows of the reference must have
            the same other label. ``None``: 1, with labels 0 and 1, -1 and 1, or booleans; other
            labels raise.
        max_bins: The largest number of distinct values kept apart. Beyond that, neighbouring values
            share a cell: memory stays bounded, and `bounds()` holds wherever values lie in their
            cells.
        nan_policy: ``"raise"``, or ``"omit"``: rows with a missing value are left out.
    """

    _formula: ClassVar[tuple[str, ...]] = ("readout", "certain")

    current: Label | None = None
    max_bins: Bins = MAX_BINS
    nan_policy: NanPolicy = "raise"

    def update(
        self,
        sample: ArrayLike,
        values: ArrayLike,
        *,
        sample_weight: ArrayLike = None,
        counts: ArrayLike = None,
    ) -> Self:
        """Add a batch of rows.

        Args:
            sample: The label of each row's sample, (n,); there are two labels.
            values: Numbers, (n,), which may be infinite.
            sample_weight: Non-negative weights, (n,).
            counts: How many rows each row stands for, (n,); whole numbers.

        Raises:
            InvalidBatchError: A column has a wrong type or length, a missing value or a third
                label; the state is unchanged.
        """
        return self.feed(
            {"sample": sample, "values": values, "sample_weight": sample_weight, "counts": counts}
        )

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the histogram of both samples."""
        return (
            SampleHistogram(
                pos_label=self.current, max_bins=self.max_bins, nan_policy=self.nan_policy
            ),
        )

    @abstractmethod
    def certain(self, stairs: CumulativeCounts) -> tuple[float, float, float]:
        """Return a lower bound, the value and an upper bound, allowing for rounding.

        Both samples have rows. The current sample is the positive class.
        """

    def _seen(self, samples: Any) -> tuple[bool, bool]:
        """Return whether the current sample and the reference have rows."""
        (stairs,) = staircases(samples)
        return stairs.positives > 0, stairs.negatives > 0

    def readout(self, samples: SampleHistogram) -> float:
        """Return the distance; ``nan`` unless both samples have rows."""
        return self._certain(samples)[1]

    def interval(self, samples: SampleHistogram) -> Interval[float]:
        """Return the range of the distance over all positions of rows within their cells."""
        low, value, high = self._certain(samples)
        return Interval(value, value) if samples.exact else Interval(low, high)

    def _certain(self, samples: SampleHistogram) -> tuple[float, float, float]:
        (stairs,) = staircases(samples)
        if not (stairs.positives and stairs.negatives):
            return math.nan, math.nan, math.nan
        return self.certain(stairs)

    def _lacking(self, samples: SampleHistogram) -> str:
        of = "reference" if self._seen(samples)[0] else "current sample"
        return f"there are no rows of the {of}"

    def is_exact(self, samples: SampleHistogram) -> bool:
        """Whether every cell holds a single value."""
        return samples.exact


class Range(NamedTuple):
    """Amounts with lower and upper bounds."""

    low: Floats
    value: Floats
    high: Floats

    def differences(self) -> Range:
        """Return the differences of neighbouring amounts, which are in ascending order."""
        return Range(
            np.maximum(self.low[1:] - self.high[:-1], 0.0),
            np.diff(self.value),
            self.high[1:] - self.low[:-1],
        )

    def shares(self, total: float, added: float) -> Range:
        """Return the shares of the total after adding `added` to each amount."""
        whole = total + added * self.value.size
        return Range._make([np.minimum((side + added) / whole, 1.0) for side in self])


class BinnedDistance(SampleDistance):
    """Base class of distances between the shares of two samples in bins ``(a, b]``.

    The other parameters are those of `SampleDistance`.

    Args:
        bins: The number of bins. Their edges are the quantiles of the reference at levels 1 / bins,
            2 / bins, ...: each is the smallest value at or below which that share lies. Bins hold
            equal shares of the reference, as far as ties allow. With ``"categories"``, values are
            labels of any one kind, each of which is a bin; memory grows with them.
        edges: Ascending inner edges to use instead of quantiles. Bins are right-closed, so a value
            equal to an edge is in the bin below it. The outer bins are unbounded.
        pseudo_count: A weight added to each bin of each sample. Without it, a bin that is empty in
            one sample can make the distance infinite.
    """

    _formula = ("readout", "certain", "terms", "total")

    bins: Annotated[int, Between(2, 1000)] | Literal["categories"] = 10
    edges: FloatSequence | None = None
    pseudo_count: Annotated[float, AtLeast(0)] = 0.0

    def check_parameters(self) -> None:
        """Check that the edges ascend, and that only numbers have them."""
        if self.edges is not None:
            require(self, "edges", self.bins != CATEGORIES, "None, as categories have none")
            good = isinstance(self.edges, tuple) and len(self.edges) > 0
            good = good and all(_is_number(edge) for edge in self.edges)
            good = good and all(np.diff(self.edges) > 0)
            require(self, "edges", good, "ascending finite numbers, one at least")

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the histogram of both samples, or the table of their categories."""
        if self.bins == CATEGORIES:
            return (SampleTable(current=self.current, nan_policy=self.nan_policy),)
        return super().statistics()

    def _seen(self, samples: object) -> tuple[bool, bool]:
        if not isinstance(samples, SampleTable):
            return super()._seen(samples)
        codes = samples.table.row_labels.tolist()
        return 1 in codes, 0 in codes

    def _certain(self, samples: SampleHistogram | SampleTable) -> tuple[float, float, float]:
        if not isinstance(samples, SampleTable):
            return super()._certain(samples)
        amounts = samples.amounts()
        value = math.nan if amounts is None else self.of_amounts(*amounts)
        return value, value, value

    @abstractmethod
    def terms(self, p: Floats, q: Floats, apart: Floats) -> Floats:
        """Return the term of each bin: convex in both shares, and 0 where they are equal.

        `apart` is p - q, which shares that are rounded do not give.
        """

    @abstractmethod
    def total(self, terms: float) -> float:
        """Return the distance from the terms of all bins."""

    def of_amounts(self, current: Array, reference: Array, exponent: int = 0) -> float:
        """Return the distance of two samples with these amounts in bins, without pseudo-counts.

        Amounts are integers (m,) in units of 2**exponent. Shares and their differences are each
        rounded once.
        """
        added, unit = (Fraction(self.pseudo_count) / Fraction(2) ** exponent).as_integer_ratio()
        n, m = (int(side.sum()) * unit + added * side.size for side in (current, reference))
        kind = np.float64 if n * m <= 1 << 53 else object  # products are exact in both
        a, b = (side.astype(kind) * unit + added for side in (current, reference))
        shares = (a / n, b / m, (a * m - b * n) / (n * m))
        return self.total(math.fsum(self.terms(*(side.astype(np.float64) for side in shares))))

    def certain(self, stairs: CumulativeCounts) -> tuple[float, float, float]:
        """Return the smallest, the nominal and the largest distance, given bounds of the shares."""
        cells = _SampleCells.of(stairs)
        cuts = cells.at(self.edges) if self.edges else cells.quantiles(int(self.bins))
        if stairs.exact:
            value = self.of_amounts(*cells.amounts(cuts))
            return value, value, value
        one, other = cells.ranges(cuts)
        pseudo_weight = self.pseudo_count * stairs.one if self.pseudo_count else 0.0
        p = one.differences().shares(float(stairs.positives), pseudo_weight)
        q = other.differences().shares(float(stairs.negatives), pseudo_weight)
        # Terms are convex: they are largest at a corner of the rectangle of possible shares, and
        # smallest on the diagonal, or at the corner nearest to it.
        corners = [self.terms(a, b, a - b) for a in (p.low, p.high) for b in (q.low, q.high)]
        nearest = np.clip(q.value, p.low, p.high)
        opposite = np.clip(nearest, q.low, q.high)
        least = self.terms(nearest, opposite, nearest - opposite)
        low = math.fsum(least) * (1 - ROUNDING) - ROUNDING
        high = math.fsum(np.max(corners, axis=0)) * (1 + ROUNDING) + ROUNDING
        value = math.fsum(self.terms(p.value, q.value, p.value - q.value))
        return self.total(max(low, 0.0)), self.total(value), self.total(high)


class PopulationStability(BinnedDistance):
    """Population stability index (PSI) of the shares of two samples in bins.

    Formula: Σ_b (p_b - q_b) log(p_b / q_b), with p_b and q_b the shares of the current sample and
    of the reference in bin b.

    ``nan`` unless both samples have rows; ``inf`` if a bin is empty in only one of them. By chance
    alone, two samples of n and m rows from the same population give about
    (bins - 1) (1 / n + 1 / m).

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

    def terms(self, p: Floats, q: Floats, apart: Floats) -> Floats:
        """Return (p - q) ln(p / q)."""
        distance = np.abs(apart)
        return distance * _log_ratios(np.minimum(p, q), distance)

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

    def terms(self, p: Floats, q: Floats, apart: Floats) -> Floats:
        """Return half of p ln(p / m) + q ln(q / m)."""
        distance, less, mean = np.abs(apart), np.minimum(p, q), (p + q) / 2
        one = np.where(mean > 0, mean, 1.0)
        u = distance / one / 2
        logs = np.minimum(_log_ratios(less, distance), 2e3)  # finite logarithms are below 1455
        near = elementary.log1p(-u * u) + u * logs
        far = 2 * (elementary.LOG_2 - elementary.log1p(less / (one + distance / 2)))
        return mean * np.where(u < 0.5, near, far - less / one * logs) / 2

    def total(self, terms: float) -> float:
        """Return the square root."""
        return math.sqrt(terms / (float(elementary.log(self.base)) if self.base else 1.0))


def _log_ratios(less: Floats, distance: Floats) -> Floats:
    """Return ln(1 + distance / less), 0 where the distance is 0."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        ratio = distance / np.where(distance > 0, less, 1.0)
        apart = elementary.log(distance) - elementary.log(less)
    return np.where(ratio < np.inf, elementary.log1p(ratio), apart)


class _Cuts(NamedTuple):
    """Ascending edges of bins among cells (k,).

    At or below an edge are all cells before `place` and this share of that cell: all cells before
    `lower` at least, and all before `upper` at most.
    """

    lower: Places
    place: Places
    share: Floats
    upper: Places


class _SampleCells(NamedTuple):
    """Ascending cells, and the cumulative weight of each sample, starting with 0."""

    low: Floats
    high: Floats
    current: Array  # (m + 1,)
    reference: Array
    stairs: CumulativeCounts

    @classmethod
    def of(cls, stairs: CumulativeCounts) -> _SampleCells:
        """Return the cells of a staircase."""
        known = corners(stairs)
        return cls(known.low, known.high, known.fn, known.tn, stairs)

    def amounts(self, cuts: _Cuts) -> tuple[Array, Array, int]:
        """Return the exact amounts of both samples in bins; every cell holds one value.

        They are integers of a common unit, whose exponent is returned too.
        """
        below = cuts.place + (cuts.share > 0)
        if self.stairs.counted:
            sides = (self.current, self.reference)
            a, b = (np.diff(side[below], prepend=0, append=side[-1]) for side in sides)
            return a, b, 0
        sums, exponent = self.stairs.histogram.sums_above(below)
        reference, current = np.array([*-np.diff(sums, axis=0), sums[-1]], object).T
        return current, reference, exponent

    def _smallest(self, first: Places, last: Places, bins: int) -> Places:
        """Return the cells of quantiles of the reference, by exact sums of weights."""
        near = np.unique(np.concatenate([*map(np.arange, first, last + 1)]))
        sums, _ = self.stairs.histogram.sums_above(near + 1)
        total = sums[0, 0]
        reached = (total - sums[1:, 0]) * bins
        return near[np.searchsorted(reached, np.array([k * total for k in range(1, bins)]))]

    def quantiles(self, bins: int) -> _Cuts:
        """Return the quantiles of the reference."""
        total, mass = self.reference[-1], self.reference[1:]
        if mass.dtype.kind == "i":
            wanted = np.array([-(-k * int(total) // bins) for k in range(1, bins)])
            first = place = last = np.searchsorted(mass, wanted)
            target = wanted.astype(np.float64)
        else:  # sums of floats have rounding errors, so an edge may be one cell further
            wanted = np.arange(1, bins) * total
            target, room = wanted / bins, ROUNDING * total
            first, place, last = (
                np.minimum(np.searchsorted(mass * bins, wanted + side), mass.size - 1)
                for side in (-room, 0.0, room)
            )
            if self.stairs.exact and (first != last).any():
                first = place = last = self._smallest(first, last, bins)
        mixed = self.low[place] < self.high[place]
        with np.errstate(invalid="ignore", divide="ignore"):
            inside = (target - self.reference[place]) / np.diff(self.reference)[place]
        share = np.where(mixed, np.nan_to_num(np.clip(inside, 0.0, 1.0), nan=0.5), 1.0)
        # Include the whole cell of the edge if it holds one value, else none of it.
        lower = np.where((first == last) & ~mixed, place + 1, first)
        return _Cuts(lower, place, share, last + 1)

    def at(self, edges: Sequence[float]) -> _Cuts:
        """Return edges of any values."""
        wanted = np.array(edges, np.float64)
        below = np.searchsorted(self.high, wanted, "right")  # cells that end at or below an edge
        reached = np.searchsorted(self.low, wanted, "right")
        place = np.minimum(below, self.low.size - 1)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            inside = (wanted - self.low[place]) / (self.high[place] - self.low[place])
        share = np.where(reached > below, np.nan_to_num(inside, nan=0.5), 0.0)
        share[below == self.low.size] = 1.0  # the whole last cell is at or below the edge
        return _Cuts(below, place, share, reached)

    def ranges(self, cuts: _Cuts) -> tuple[Range, Range]:
        """Return the weight of both samples at or below each edge, and in all."""
        lower, place, share, upper = cuts
        ranges = []
        for mass in (self.current, self.reference):
            ends = [np.array([0.0]), np.array([float(mass[-1])])]
            value = mass[place] + share * (mass[place + 1] - mass[place])
            sides = (mass[lower], value, mass[upper])
            ranges.append(Range._make([np.concatenate([ends[0], side, ends[1]]) for side in sides]))
        return ranges[0], ranges[1]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


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
    def of(cls, stairs: CumulativeCounts) -> Self:
        """Return the gaps of a staircase."""
        blocks = list(stairs.steps())
        low, high, p, n = map(
            np.concatenate, zip(*((s.low, s.high, s.p, s.n) for s in blocks), strict=True)
        )
        positives, negatives = float(stairs.positives), float(stairs.negatives)
        # F - G below a cell is minus the difference of the shares at or above it.
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

    ``nan`` unless both samples have rows. Equal to `KolmogorovSmirnov` with the values as scores
    and the samples as classes.

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

    def certain(self, stairs: CumulativeCounts) -> tuple[float, float, float]:
        """Return the largest difference at cell edges, with bounds that allow for those within."""
        gaps = Gaps.of(stairs)
        value = stairs.largest_gap()
        low, high = outward(value, value, gaps.extremes[1][gaps.mixed].max(initial=0.0))
        return float(low), value, float(high)


class Wasserstein(SampleDistance):
    """First Wasserstein distance (earth mover's distance).

    Formula: ∫ |F(x) - G(x)| dx, with F and G the distribution functions of the two samples.

    The unit is that of the values. ``nan`` unless both samples have rows; ``inf`` if their shares
    at an infinity differ.

    Beyond `max_bins`, each cell adds its width times a difference, which is between the smallest
    and the largest possible within the cell.

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

    def certain(self, stairs: CumulativeCounts) -> tuple[float, float, float]:
        """Return the distance and its bounds from the areas between and within cells."""
        gaps = Gaps.of(stairs)
        distance, (least, most) = np.abs(gaps.after[:-1]), gaps.extremes
        between = _area(distance, _widths(gaps.high[:-1], gaps.low[1:]))
        width = _widths(gaps.low, gaps.high)
        finite = np.where(np.isinf(width), 0.0, width)
        low, high = between + _area(least, finite), between + _area(most, width)
        # Rows are assumed to be evenly spread within a cell, so the difference is linear there.
        value = min(max(between + _area(_means(gaps.before, gaps.after), finite), low), high)
        # Each share within a cell has a rounding error of a few 2**-52.
        reach = 0.0 if stairs.counted else float(finite.sum())
        sizes = (value, min(reach, math.ldexp(1.0, 1000)))
        room = ROUNDING * sum(size for size in sizes if size < math.inf)
        return max(low - room, 0.0), value, high + room


def _widths(low: Floats, high: Floats) -> Floats:
    """Return the lengths of intervals, 0 between two equal infinities."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where(low == high, 0.0, high - low)


def _area(heights: Floats, widths: Floats) -> float:
    """Return the sum of non-negative heights times widths; a height of 0 gives 0."""
    with np.errstate(invalid="ignore", over="ignore"):
        areas = np.where(heights > 0, heights * widths, 0.0)
    return float(ExactSum.of(areas).to_float()) if np.isfinite(areas).all() else math.inf


def _means(start: Floats, end: Floats) -> Floats:
    """Return the mean absolute value along straight lines from `start` to `end`."""
    one, other = np.abs(start), np.abs(end)
    both = one + other
    crossing = (one**2 + other**2) / np.where(both > 0, 2 * both, 1.0)
    return np.where(start * end < 0, crossing, both / 2)
