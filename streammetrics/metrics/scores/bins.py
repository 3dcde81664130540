"""Scores in bins of equal width or equal mass, which calibration is read from."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from operator import add
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.errors import StreamMetricsError

if TYPE_CHECKING:
    from streammetrics.core.types import Array, Floats, Places
    from streammetrics.metrics.scores.view import Staircase, Steps


Strategy: TypeAlias = Literal["uniform", "quantile"]

MOST_BINS = 1 << 20  # more would take memory when read that the size of a state does not tell


class ScoreBins(NamedTuple):
    """Exact sums over the rows of each bin, with every cell at its midpoint."""

    positives: ExactSum
    rows: ExactSum
    scores: ExactSum


class UncertainBins(NamedTuple):
    """The certain and the uncertain rows of each bin.

    `p` and `n` are the positives and negatives of cells entirely within the bin, `low` and `high`
    bounds of the sum of their scores. `p_moved` and `n_moved` are those of cells across an edge:
    any part of them may be in the bin, with scores from `floor` to `ceiling`.
    """

    p: Floats
    n: Floats
    low: Floats
    high: Floats
    p_moved: Floats
    n_moved: Floats
    floor: Floats
    ceiling: Floats


def bin_sums(stairs: Staircase, size: int, strategy: Strategy = "uniform") -> ScoreBins:
    """Return the sums of each of `size` bins."""
    bounds = edges_of(stairs, size, strategy)
    sums: ScoreBins | None = None
    for steps in stairs.steps():
        middle = _middle(stairs, steps)
        at, rows = _bins(middle, bounds.middle), steps.p + steps.n
        if not rows.all():  # bins of such rows alone would be left out
            raise StreamMetricsError("the weights lie more than 2**1300 apart; rescale them")
        positives, weight = _grouped(at, size, steps.p), None
        if (rows == 1).all():  # the usual case: one row per score, so no product is needed
            counts = ExactSum.counts(np.bincount(at, minlength=size))
        else:
            counts, weight = _grouped(at, size, rows), rows.astype(np.float64)
        parts = ScoreBins(positives, counts, ExactSum.grouped(at, size, middle, weight))
        sums = parts if sums is None else ScoreBins(*map(add, sums, parts))
    return sums or ScoreBins(*[ExactSum.zero((size,))] * 3)


def bins_of_cells(stairs: Staircase, size: int, strategy: Strategy) -> Places:
    """Return the bin of each cell of scores, by its midpoint."""
    bounds = edges_of(stairs, size, strategy).middle
    bins = [_bins(_middle(stairs, steps), bounds) for steps in stairs.steps()]
    return np.concatenate(bins) if bins else np.zeros(0, np.intp)


def uncertain_bin_sums(
    stairs: Staircase, size: int, strategy: Strategy = "uniform"
) -> UncertainBins:
    """Return the certain and the uncertain rows of each of `size` bins."""
    bounds = edges_of(stairs, size, strategy)
    sums = [ExactSum.zero((size,))] * 4
    p_moved, n_moved = np.zeros(size), np.zeros(size)
    floor, ceiling = np.ones(size), np.zeros(size)
    for steps in stairs.steps():
        low, high = _edges(stairs, steps)
        first, last = _bins(low, bounds.high), _bins(high, bounds.low)
        within = first == last
        at, rows = first[within], (steps.p + steps.n)[within].astype(np.float64)
        parts = (
            _grouped(at, size, steps.p[within]),
            _grouped(at, size, steps.n[within]),
            ExactSum.grouped(at, size, low[within], rows),
            ExactSum.grouped(at, size, high[within], rows),
        )
        sums = [total + part for total, part in zip(sums, parts, strict=True)]
        cells = np.flatnonzero(~within)
        reach = last[cells] - first[cells] + 1
        cell = np.repeat(cells, reach)
        at = np.arange(cell.size) + np.repeat(first[cells] - np.cumsum(reach) + reach, reach)
        p_moved += np.bincount(at, steps.p[cell], size)
        n_moved += np.bincount(at, steps.n[cell], size)
        np.minimum.at(floor, at, np.maximum(low[cell], bounds.low[at]))
        np.maximum.at(ceiling, at, np.minimum(high[cell], bounds.high[at + 1]))
    p, n, low, high = map(floats, sums)
    return UncertainBins(p, n, low, high, p_moved, n_moved, floor, ceiling)


def _middle(stairs: Staircase, steps: Steps) -> Floats:
    if steps.single.all():
        return stairs.probabilities(steps.low)
    low, high = _edges(stairs, steps)
    return np.where(steps.single, low, (low + high) / 2)


def _edges(stairs: Staircase, steps: Steps) -> tuple[Floats, Floats]:
    """Return the edges of cells, clipped to [0, 1], as scores do not lie outside."""
    low, high = stairs.probabilities(steps.low), stairs.probabilities(steps.high)
    return np.maximum(low, 0.0), np.minimum(high, 1.0)


class Bounds(NamedTuple):
    """The edges of bins (size + 1,), as estimates with their bounds; they are read-only."""

    low: Floats
    middle: Floats
    high: Floats


def edges_of(stairs: Staircase, size: int, strategy: Strategy) -> Bounds:
    """Return the edges of bins of equal width, or of equal mass."""
    if strategy == "uniform":
        return _equal_widths(size)
    ends = stairs.quantiles([Fraction(place, size) for place in range(1, size)])
    low, high = (np.clip(stairs.probabilities(side), 0.0, 1.0) for side in ends)
    middle = np.where(low == high, low, (low + high) / 2)
    return Bounds(*(np.concatenate([[0.0], side, [1.0]]) for side in (low, middle, high)))


@lru_cache(maxsize=16)
def _equal_widths(size: int) -> Bounds:
    edges = np.linspace(0.0, 1.0, size + 1)
    return Bounds(edges, edges, edges)


def _bins(scores: Floats, bounds: Floats) -> Places:
    """Return the bins of ascending scores; the outer bounds are 0 and 1."""
    ends = scores.searchsorted(bounds[1:], side="right")
    ends[-1] = scores.size
    ends[1:] -= ends[:-1]
    return np.repeat(_places(ends.size), ends)


@lru_cache(maxsize=16)
def _places(size: int) -> Places:
    places = np.arange(size)
    places.flags.writeable = False
    return places


def _grouped(at: Places, size: int, amount: Array) -> ExactSum:
    if amount.dtype == np.int64:  # below 2**53, so these sums are exact
        return ExactSum.counts(np.bincount(at, amount, size).astype(np.int64))
    return ExactSum.grouped(at, size, amount)


def floats(sums: ExactSum) -> Floats:
    """Return the sums as floats, each rounded once."""
    return np.asarray(sums.to_float())


def ratio_or(part: Floats, whole: Floats, nothing: float) -> Floats:
    """Return the quotients, and `nothing` where `whole` is 0."""
    return np.divide(part, whole, out=np.full_like(part, nothing), where=whole > 0)
