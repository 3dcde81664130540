"""Mutual information of two labelings, and how much of it is expected by chance.

Everything is made of deviances ``D(x, m) = x log(x / m) - x + m``, which are never negative: with
margins a_i, b_j and m_ij = a_i b_j / n, both sums of n_ij and of m_ij are n, so

    MI = (1 / n) Σ n_ij log(n_ij / m_ij) = (1 / n) Σ D(n_ij, m_ij),

so that a small mutual information is not the difference of large terms.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.statistics.sums.deviances import deviance

if TYPE_CHECKING:
    from streammetrics.core.types import Array, Floats, Ints, Places


_TERMS = 1 << 18  # of an expectation at a time, so that a dozen arrays of them stay small
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)
_FACTORIALS = np.array([math.lgamma(k + 1.0) for k in range(16)])


def entropy(sizes: Ints) -> float:
    """Return the entropy of a labeling with clusters of these sizes, in nats."""
    if len(sizes) < 2:
        return 0.0
    n = sizes.sum()
    share, rest = sizes / n, (n - sizes) / n
    # The logarithm of a share near 1 comes from the others, which are not rounded off it.
    logs = np.where(rest < 0.5, np.log1p(-np.minimum(rest, 0.5)), np.log(share))
    return float(-(share * logs).sum())


def expected_information(rows: Ints, columns: Ints) -> float:
    """Return the mean mutual information of random labelings with clusters of these sizes.

    The number of rows that two clusters share is hypergeometric, and the mean of D(count, m) is
    wanted. It depends on the two sizes only, so each pair of *different* sizes is computed once,
    from at most a few hundred counts around m, however large n is (see `_mean_deviance`).
    """
    n = int(rows.sum())
    sizes_a, times_a = np.unique(rows, return_counts=True)
    sizes_b, times_b = np.unique(columns, return_counts=True)
    total = 0.0
    step = max(1, _TERMS // (256 * len(sizes_b)))
    for start in range(0, len(sizes_a), step):
        part = slice(start, start + step)
        a = np.repeat(sizes_a[part], len(sizes_b))
        b = np.tile(sizes_b, len(sizes_a[part]))
        times = np.multiply.outer(times_a[part].astype(float), times_b.astype(float)).ravel()
        total += float((times * _mean_deviance(a, b, n)).sum())
    return total / n


def _mean_deviance(a: Ints, b: Ints, n: int) -> Floats:
    """Return the mean of D(x, a b / n) for hypergeometric x, for each pair of sizes.

    x is a sum of independent binary variables (Pitman 1997) of variance v, so by Bennett's
    inequality it is further than t from its mean with a probability below 2 exp(-D(v + t, v)),
    here 1e-23. Of the counts in that range it suffices to add up every h-th, h <= sqrt(v) / 3: the
    error of such a sum is the characteristic function at multiples of 2 pi / h, at most
    exp(-v (1 - cos(2 pi / h))) < 1e-31.
    """
    m = a.astype(np.float64) * b / n
    variance = m * (1.0 - a / n) * (n - b) / max(n - 1, 1)
    reach = _reach(variance)
    step = np.maximum(np.floor(np.sqrt(variance) / 3.0), 1.0)
    lowest, highest = np.maximum(0, a + b - n), np.minimum(a, b)
    low = np.maximum(np.floor(m) - reach, lowest)
    counts = np.floor((np.minimum(np.ceil(m) + reach, highest) - low) / step) + 1.0
    means = np.empty(len(m))
    # Sorted by length, so that little is padded; those that visit every count come first.
    order = np.lexsort((counts, step > 1.0))
    for start in range(0, len(order), 256):
        part = order[start : start + 256]
        steps = np.arange(int(counts[part[-1]]))
        each = [column[part, None] for column in (a, b, m, low, step, counts)]
        means[part] = _summed(steps, n, *each)
    return means


def _reach(variance: Floats) -> Floats:
    """Return a t with D(v + t, v) >= 53, found by bisection at the next larger power of two."""
    variances = 2.0 ** np.arange(-40.0, 81.0)
    low, high = np.zeros_like(variances), 40.0 + 12.0 * np.sqrt(variances)
    for _ in range(40):
        middle = (low + high) / 2
        enough = deviance(variances + middle, variances) >= 53.0
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    place = np.searchsorted(variances, variance)
    return np.ceil(high[np.minimum(place, len(variances) - 1)])


def _summed(
    steps: Places, n: int, a: Array, b: Array, m: Array, low: Array, step: Array, counts: Array
) -> Floats:
    inside = steps < counts
    x = low + step * np.where(inside, steps, 0)
    deviances = _of_counts(x, m)
    if (step == 1.0).all():
        # The probability of each count is a rational multiple of the one before.
        before = x[:, :-1]
        odds = (a - before) * (b - before) / ((before + 1.0) * (n - a - b + before + 1.0))
        exponent = np.zeros_like(x)
        np.cumsum(np.log(np.where(inside[:, 1:], odds, 1.0)), axis=1, out=exponent[:, 1:])
    else:
        # The probability of a 2 x 2 table with given margins is, up to a factor, the product of
        # those of its four counts, each given its expectation.
        rest = ((a - x, a - m), (b - x, b - m), (n - a - b + x, n - a - b + m))
        exponent = -deviances - _stirling(x)
        for count, mean in rest:
            exponent -= _of_counts(count, mean) + _stirling(count)
    exponent = np.where(inside, exponent, -np.inf)
    chance = np.exp(exponent - exponent.max(axis=1, keepdims=True))
    return np.asarray((chance * deviances).sum(axis=1) / chance.sum(axis=1))


def _of_counts(count: Floats, mean: Floats) -> Floats:
    # Where the mean is 0, the count is 0 and so is the deviance.
    return deviance(count, np.where(mean > 0.0, mean, 1.0)) * (mean > 0.0)


def _stirling(count: Floats) -> Floats:
    """Return log(count!) - (count log count - count), 0 for 0."""
    large = np.maximum(count, 16.0)
    inverse = 1.0 / large
    square = inverse * inverse
    tail = inverse * np.polynomial.polynomial.polyval(square, _STIRLING)
    small = np.minimum(count, 15.0)
    logged = small * np.log(np.maximum(small, 1.0)) - small
    return np.where(
        count < 16.0,
        _FACTORIALS[small.astype(np.intp)] - logged,
        0.5 * np.log(2.0 * math.pi * large) + tail,
    )
