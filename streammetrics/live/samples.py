"""Histograms of columns in states, compared with a reference: distances, and what chance does."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from streammetrics.core.fields.histograms import Weighed
from streammetrics.core.floating import own_arithmetic
from streammetrics.inference.distributions import normal_quantile
from streammetrics.live.possible.remembered import ScoreCells
from streammetrics.metrics.drift import (
    JensenShannon,
    KSDistance,
    PopulationStability,
    Wasserstein,
    gaps_of,
)
from streammetrics.statistics.histograms import MAX_BINS, ScoreHistogram, ValueHistogram
from streammetrics.statistics.probabilities import SampleHistogram

if TYPE_CHECKING:
    from streammetrics.core.arithmetic.histogram import SortedHistogram
    from streammetrics.core.mergeable import Mergeable
    from streammetrics.core.types import Floats
    from streammetrics.metrics.drift import SampleDistance

Method = Literal["ks", "wasserstein", "psi", "js"]
PSEUDO_COUNT = 0.5  # of a PSI, which an empty bin would make infinite


class ColumnHistogram(NamedTuple):
    """The histogram of a column, ``None`` without rows, and whether it holds logits."""

    histogram: SortedHistogram | None
    logits: bool


def values_in(what: Mergeable, column: str | None) -> ColumnHistogram:
    """Return the histogram of a column in a set or a metric; with None, the first histogram.

    Raises:
        ValueError: There is no such histogram, or the column has several.
    """
    held = statistic_in(what, column)
    histograms = held.columns if isinstance(held, ScoreCells) else held.histograms
    if len(histograms) > 1:
        raise ValueError(f"{column!r} has {len(histograms)} columns of scores, not one")
    logits = isinstance(held, ScoreHistogram) and held.keeps_logits
    return ColumnHistogram(histograms[0] if histograms else None, logits)


def statistic_in(what: Mergeable, column: str | None) -> Any:
    """Return the statistic with the histogram of a column; with None, the first such statistic."""
    titles = getattr(what, "columns", {})
    for statistic in what._accumulator.flush().statistics:
        name = statistic.schema.inputs[-1]
        plain = isinstance(statistic, ValueHistogram) and statistic.of == "values"
        fits = column is None or titles.get(name, name) in {column, f"input/{column}"}
        if fits and (plain or isinstance(statistic, ScoreHistogram | ScoreCells)):
            return statistic
    raise ValueError(
        f"there is no histogram of {column or 'values'!r}: put a Quantile of it into the set, or a "
        "metric of scores such as ROCAUC"
    )


@lru_cache(maxsize=64)
def _pooled(reference: SortedHistogram, most: int) -> SortedHistogram:
    """Return an immutable reference as the first sample; cached, because it is used often."""
    return reference.pooled(most, 0)


def together(reference: SortedHistogram, current: SortedHistogram) -> SampleHistogram:
    """Return both histograms as the two samples of one histogram."""
    most = max(reference.max_cells, current.max_cells)
    both = _pooled(reference, most).fork()
    both.merge(current.pooled(most, 1))
    return samples_of(both, most)


def samples_of(histogram: SortedHistogram, most: int) -> SampleHistogram:
    """Return a histogram of two samples as a statistic."""
    samples = SampleHistogram(max_bins=most)
    whole = all(isinstance(total, int) for total in histogram.totals())
    samples.counted = Weighed((histogram,), whole=whole)
    return samples


def metric_for(
    method: Method, bins: int | Literal["categories"], max_bins: int = MAX_BINS
) -> SampleDistance:
    """Return the metric of a distance between samples."""
    if method == "ks":
        return KSDistance(max_bins=max_bins)
    if method == "wasserstein":
        return Wasserstein(max_bins=max_bins)
    if method == "psi":
        return PopulationStability(max_bins=max_bins, bins=bins, pseudo_count=PSEUDO_COUNT)
    return JensenShannon(max_bins=max_bins, bins=bins)


def distance_of(samples: SampleHistogram, method: Method, bins: int) -> tuple[float, float, float]:
    """Return the distance of two samples, and its certain lower and upper bound."""
    with own_arithmetic():
        low, value, high = metric_for(method, bins, samples.max_bins)._certain(samples)
    return (value, value, value) if samples.exact else (value, low, high)


def chance_of(samples: SampleHistogram, method: Method, bins: int, level: float) -> float:
    """Return a bound on the `level` quantile of the distance of samples of one population."""
    (histogram,) = samples.classes()
    n, m = histogram.totals()
    parts, tail = 1 / n + 1 / m, 1 - level
    if method == "ks":  # Smirnov's limit law; conservative with ties
        return min(math.sqrt(-math.log(tail / 2) / 2 * parts), 1.0)
    if method == "wasserstein":
        # The integral of |B(F)| for a Brownian bridge B: its mean plus a concentration bound.
        spread = gaps_of(samples).spread
        width = math.sqrt(2 / math.pi) + math.sqrt(-2 * math.log(tail))
        return spread * math.sqrt(parts) * width
    return chance_of_bins(method, np.full(bins, 1 / bins), parts, level)


def chance_of_bins(method: Method, shares: Floats, parts: float, level: float) -> float:
    """Return the bound for PSI or JS of bins with some shares of the population.

    The divergence is about a weighted chi-squared variable. With many rows in each bin it has one
    degree of freedom less than there are bins. With few, its mean and its spread are those of
    independent Poisson counts. The larger quantile is the bound, which holds for either.

    Args:
        method: The distance.
        shares: The shares of the bins, which are positive and have the sum 1.
        parts: The sum of 1 / rows of both samples.
        level: The share of samples whose distance stays below.
    """
    if len(shares) == 1:
        return 0.0
    with own_arithmetic():
        mean, variance = _sparse(method, shares, parts)
    free = 2 * mean**2 / variance  # of a chi-squared variable with this mean and spread
    dense = _chi_squared(len(shares) - 1, level) * (1.0 if method == "psi" else 1 / 8)
    divergence = parts * max(dense, mean / free * _chi_squared(free, level))
    return divergence if method == "psi" else math.sqrt(divergence)


def _chi_squared(free: float, level: float) -> float:
    """Return a quantile of Pearson's chi-squared, in the Wilson-Hilferty approximation."""
    cube = 1 - 2 / (9 * free) + normal_quantile(level) * math.sqrt(2 / (9 * free))
    return free * max(cube, 0.0) ** 3


_MANY = 1000.0  # rows of a bin from which its moments hardly change


def _sparse(method: Method, shares: Floats, parts: float) -> tuple[float, float]:
    """Return mean and variance of a divergence divided by `parts`, of independent Poisson counts.

    The variance is that of counts with a fixed sum.
    """
    alike, times = np.unique(shares, return_counts=True)
    rates = np.minimum(alike / parts, _MANY)
    first = np.maximum(rates - 12 * np.sqrt(rates), 0).astype(np.int64)
    sizes = (rates + 12 * np.sqrt(rates)).astype(np.int64) + 30 - first
    starts = np.cumsum(sizes) - sizes
    rate, many = np.repeat(rates, sizes), np.repeat(times, sizes)
    counts = np.arange(len(rate)) - np.repeat(starts - first, sizes)
    factorials = np.cumsum(np.log(np.maximum(np.arange(counts.max() + 1), 1)))
    chance = many * np.exp(counts * np.log(rate) - rate - factorials[counts])
    if method == "psi":
        terms = (counts - rate) * np.log((counts + PSEUDO_COUNT) / (rate + PSEUDO_COUNT))
    else:
        middle = (counts + rate) / 2
        terms = counts * np.log(np.maximum(counts, 1) / middle) + rate * np.log(rate / middle)
        terms /= 2
    means = np.add.reduceat(chance * terms, starts)
    apart = terms - np.repeat(means / times, sizes)
    shared = float((chance * apart * (counts - rate)).sum())
    return float(means.sum()), float((chance * apart**2).sum()) - shared**2 * parts
