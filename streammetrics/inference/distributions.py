"""Distributions, limits of counts and means, and corrections for multiple tests."""

from __future__ import annotations

import math
from functools import cache, lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streammetrics.core.types import Floats, Numeric

    Limits = tuple[Numeric, Numeric]  # floats, or arrays of one shape


_NORMAL = NormalDist()
_LARGE = 1000.0  # beta parameter above which the density is integrated numerically
_TINY = 1e-300
_TERMS = 100_000  # limit on the terms of a continued fraction, which needs some hundreds at most


def normal_tail(z: float) -> float:
    """Return the probability that a standard normal variable exceeds z."""
    return math.erfc(z / math.sqrt(2)) / 2


def normal_quantile(p: float) -> float:
    """Return the p-quantile of the standard normal distribution."""
    if not 0 < p < 1:
        return math.copysign(math.inf, p - 0.5)
    return _NORMAL.inv_cdf(p)


def t_tail(t: float, df: float) -> float:
    """Return the probability that a variable with Student's t distribution exceeds t."""
    whole = df + t * t
    if math.isinf(whole):
        return 0.0 if t > 0 else 1.0
    half = _beta_below(df / whole, t * t / whole, df / 2, 0.5) / 2
    return half if t >= 0 else 1 - half


def t_quantile(p: float, df: float) -> float:
    """Return the p-quantile of Student's t distribution."""
    if not 0 < p < 1:
        return math.copysign(math.inf, p - 0.5)
    if p < 0.5:
        return -t_quantile(1 - p, df) if p > 1e-3 else -_t_above(p, df)
    return _t_above(1 - p, df)


@lru_cache(maxsize=1 << 14)  # slices often have the same number of rows
def _t_above(tail: float, df: float) -> float:
    """Return the value exceeded with a probability of at most 1/2, by Newton's method."""
    low, high = 0.0, 1.0
    while t_tail(high, df) > tail:
        low, high = high, 2 * high
    constant = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - math.log(df * math.pi) / 2
    z = normal_quantile(1 - tail) if tail > 1e-15 else high
    t = min(max(z + (z**3 + z) / (4 * df), low), high)  # a good start for many degrees of freedom
    for _ in range(200):
        excess = t_tail(t, df) - tail
        low, high = (t, high) if excess > 0 else (low, t)
        slope = math.exp(constant - (df + 1) / 2 * math.log1p(t * t / df))
        step = t + excess / slope if slope else math.inf
        if abs(step - t) <= 1e-9 * abs(step):  # quadratic convergence
            return step
        t = step if low < step < high else (low + high) / 2
    return t


def beta_cdf(x: float, a: float, b: float) -> float:
    """Return the probability of at most x in a beta distribution, for positive a and b."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    return _beta_below(x, 1 - x, a, b)


def beta_quantile(p: float, a: float, b: float) -> float:
    """Return the p-quantile of a beta distribution."""
    if not 0 < p < 1:
        return float(p >= 1)
    low, high = 0.0, 1.0
    x = a / (a + b)
    for _ in range(300):
        excess = beta_cdf(x, a, b) - p
        low, high = (low, x) if excess > 0 else (x, high)
        slope = _beta_density(x, 1 - x, a, b)
        step = x - excess / slope if slope else math.inf
        after = step if low < step < high else (low + high) / 2
        if abs(after - x) <= 4e-16 * min(after, 1 - after) or not low < after < high:
            return after
        x = after
    return x


def binomial_cdf(k: int, n: int, p: float) -> float:
    """Return the probability of at most k successes in n trials with probability p."""
    if k < 0 or k >= n:
        return float(k >= n)
    if p <= 0 or p >= 1:
        return float(p <= 0)
    return _beta_below(1 - p, p, n - k, k + 1)


def binomial_quantile(q: float, n: int, p: float) -> int:
    """Return the smallest k for which `binomial_cdf` is at least q."""
    spread = math.sqrt(n * p * (1 - p))
    guess = min(max(int(n * p + normal_quantile(q) * spread), 0), n)
    low, high, step = guess, guess, 1
    while low >= 0 and binomial_cdf(low, n, p) >= q:
        low, step = low - step, 2 * step
    step = 1
    while high < n and binomial_cdf(high, n, p) < q:
        high, step = min(high + step, n), 2 * step
    low = max(low, -1)  # invariant: the probability is below q at `low`, and at least q at `high`
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if binomial_cdf(middle, n, p) >= q else (middle, high)
    return high


def deviance(x: float, mean: float) -> float:
    """Return x log(x / mean) + mean - x, which is never negative, accurate for x near the mean."""
    gap = x - mean
    if x == 0 or mean == 0:
        return math.inf if x else mean
    if abs(gap) > 0.1 * (x + mean):
        return x * math.log(x / mean) - gap
    v = gap / (x + mean)
    total, power, order = gap * v, 2 * x * v, 1
    while True:
        power *= v * v
        order += 2
        after = total + power / order
        if after == total or math.isnan(after):
            return after
        total = after


@cache
def stirling_error(n: float) -> float:
    """Return log Γ(n + 1) minus Stirling's approximation to it, for positive n."""
    if n < 15:
        return math.lgamma(n + 1) - (n + 0.5) * math.log(n) + n - math.log(2 * math.pi) / 2
    square = 1 / (n * n)
    series = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
    total = 0.0
    for coefficient in reversed(series):
        total = total * square + coefficient
    return total / n


def _beta_scale(x: float, y: float, a: float, b: float) -> float:
    """Return x^a y^b / B(a, b), where y = 1 - x."""
    n = a + b
    error = stirling_error(n) - stirling_error(a) - stirling_error(b)
    apart = deviance(a, n * x) + deviance(b, n * y)
    return math.sqrt(a * b / (2 * math.pi * n)) * math.exp(error - apart)


def _beta_density(x: float, y: float, a: float, b: float) -> float:
    return _beta_scale(x, y, a, b) / (x * y) if x > 0 and y > 0 else 0.0


def _beta_below(x: float, y: float, a: float, b: float) -> float:
    """Return the probability of at most x, where y is 1 - x without rounding error."""
    if x <= 0 or y <= 0:
        return float(y <= 0)
    more = 1 if min(a, b) < 1 else 0  # the mean may be an end, where no fraction converges
    if x * (b + more) < y * (a + more):  # x is below the mean, a / (a + b)
        below = _beta_integral(x, y, a, b) if a > _LARGE else _beta_fraction(x, y, a, b)
        return min(below, 1.0)
    return 1 - (_beta_integral(y, x, b, a) if b > _LARGE else _beta_fraction(y, x, b, a))


def _beta_fraction(x: float, y: float, a: float, b: float) -> float:
    """Return the probability of at most x by Lentz's continued fraction, for x below the mean."""
    c, d = 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (d if abs(d) > _TINY else _TINY)
    fraction = d
    for m in range(1, _TERMS):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 + term * d
            d = 1 / (d if abs(d) > _TINY else _TINY)
            c = 1 + term / c
            c = c if abs(c) > _TINY else _TINY
            fraction *= c * d
        if abs(c * d - 1) < 1e-16:
            break
    return _beta_scale(x, y, a, b) * fraction / a


@cache
def _nodes() -> tuple[Floats, Floats]:
    return np.polynomial.legendre.leggauss(128)


def _beta_integral(x: float, y: float, a: float, b: float) -> float:
    """Return the probability of at most x, below the mean, by integrating the density."""
    n = a + b
    slope = (a - 1) / x - (b - 1) / y  # of the log density, which is concave for b above 1
    spread = math.sqrt(a * b / n) / n
    reach = min(40 * (spread + 1 / n), 40 / min(slope, a - 1) if slope > 0 else math.inf, x)
    places, weights = _nodes()
    steps = reach / 2 * (1 - places)  # downwards from x
    change = (a - 1) * np.log1p(-steps / x) + (b - 1) * np.log1p(steps / y)
    return _beta_density(x, y, a, b) * reach / 2 * float(np.dot(weights, np.exp(change)))


_TAILS = (0.25, 0.15, 0.1, 0.05, 0.025, 0.01, 0.005)


def wider_tails(tail: float) -> list[float]:
    """Return a tail and those of usual levels below its own.

    A value that does not move one way as a share grows takes its extreme over all of them, so that
    the limits of a higher level contain those of a lower one.
    """
    return [tail, *(each for each in _TAILS if each > tail)]


def limits(
    value: object, error: object, quantile: float, low: float = -math.inf, high: float = math.inf
) -> Limits:
    """Return confidence limits of values with standard errors and a known range.

    The limits are symmetric on the logit scale for a bounded range (Fisher's z for -1 to 1), on the
    log scale for a lower bound only, and on the original scale otherwise. They are NaN where the
    error is 0 or the value is at an end of the range.
    """
    value, error = np.asarray(value, np.float64), np.asarray(error, np.float64)
    inside = (value > low) & (value < high) & (error > 0)
    with np.errstate(all="ignore"):
        if math.isinf(low):
            sides = value - quantile * error, value + quantile * error
        elif math.isinf(high):
            factor = np.exp(quantile * error / (value - low))
            sides = low + (value - low) / factor, low + (value - low) * factor
        else:
            up, down = value - low, high - value
            factor = np.exp(quantile * error * (high - low) / (up * down))
            width = high - low
            sides = (
                low + width * up / (up + down * factor),
                low + width * up / (up + down / factor),
            )
    sides = np.minimum(sides[0], value), np.maximum(sides[1], value)  # despite rounding
    return _plain(*(np.where(inside, side, np.nan) for side in sides))


def score_limits(
    values: Floats, shares: Floats, n: float, tail: float, ends: tuple[float, float]
) -> tuple[float, float]:
    """Return the limits of the mean of values from n rows, of which each has a share.

    A mean is within the limits unless a score test rejects it: Wilson's score if the values are 0
    and 1. The test estimates the probabilities of the values by maximum likelihood for that mean.
    Probability may be on an end of the range that no row has.

    Reference: Tango, "Equivalence test and confidence interval for the difference in proportions
    for the paired-sample design", Stat. Med. 17 (1998), for one such mean.
    """
    least, most = ends
    if least == most:
        return least, most
    scaled, z = (values - least) / (most - least), normal_quantile(1 - tail)
    low, high = 1 - _upper_score(1 - scaled, shares, n, z), _upper_score(scaled, shares, n, z)
    return least + (most - least) * low, least + (most - least) * high


def _upper_score(values: Floats, shares: Floats, n: float, z: float) -> float:
    """Return the largest mean of values in [0, 1] that a score test does not reject.

    Given a mean, the probabilities are in proportion to shares / (1 - values + r values), with r
    from 1, for the mean of the rows, down to 0. At 0 the rest of the probability, if no row has it,
    is on 1: the test then is a quadratic inequality in the mean.
    """
    mean = float(values @ shares)
    rest = 1 - values
    if not rest.any():
        return 1.0

    def tested(r: float) -> tuple[float, float]:
        """Return a mean, and how far it is beyond what the test rejects."""
        weights = shares / (rest + r * values)
        weights /= weights.sum()
        at = float(values @ weights)
        return at, n * (at - mean) ** 2 - z * z * float(((values - at) ** 2) @ weights)

    if rest.all() and tested(0.0)[1] <= 0:
        # The variance of a mean m is (1 - m) (1 + m - c): a quadratic of its distance from `mean`.
        c = float(shares @ (1 / rest)) - float(shares @ (values**2 / rest))
        slope, at_mean = z * z * (c - 2 * mean) / 2, (1 - mean) * (1 + mean - c)
        square = n + z * z
        root = math.sqrt(max(0.0, slope**2 + square * z * z * at_mean))
        return mean + (slope + root) / square
    below, above = -1000.0, 0.0  # of the logarithm of r to base 2
    for _ in range(64):
        middle = (below + above) / 2
        below, above = (middle, above) if tested(2.0**middle)[1] > 0 else (below, middle)
    return tested(2.0**above)[0]


def share_limits(
    success: object,
    failure: object,
    tail: float,
    units: tuple[Numeric, Numeric] = (1.0, 1.0),
    odds: float = 1.0,
    *,
    anytime: bool = False,
) -> Limits:
    """Return the limits of ``odds * s / (odds * s + f)``, where s and f count different rows.

    They are Wilson's score limits of s / (s + f), which is binomial given the total number of rows.
    Rows may be weighted: `units` are the sums of squared weights divided by the sums of weights, of
    s and f. Dividing by them converts amounts to equivalent numbers of rows. Where they differ, the
    limits are also those of (Σ w)² / Σ w² rows, so that light rows are not worth more than rows.
    With `anytime`, the limits are those of `anytime_limits`. Without rows they are NaN.
    """
    s_unit, f_unit = (np.asarray(unit, np.float64) for unit in units)
    s, f = np.asarray(success, np.float64), np.asarray(failure, np.float64)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # units too small: NaN
        rows, others, ratio = s / s_unit, f / f_unit, odds * s_unit / f_unit
    if anytime:
        sides = np.vectorize(anytime_limits, otypes=[float, float])(rows, rows + others, 2 * tail)
    else:
        sides = wilson(rows, rows + others, normal_quantile(1 - tail))
    with np.errstate(invalid="ignore"):
        low, high = (side * ratio / (side * ratio + (1 - side)) for side in sides)
    if np.any(s_unit != f_unit):
        whole = s + f
        unit = np.divide(s * s_unit + f * f_unit, whole, out=np.ones_like(low), where=whole > 0)
        least, most = share_limits(s, f, tail, (unit, unit), odds)
        low, high = np.fmin(low, least), np.fmax(high, most)
    return _plain(low, high)


def wilson(s: Floats, n: Floats, z: float) -> Limits:
    """Return Wilson's limits of a probability, for s successes in n trials."""
    with np.errstate(invalid="ignore", divide="ignore"):
        centre = (s + z * z / 2) / (n + z * z)
        half = z / (n + z * z) * np.sqrt(s * (n - s) / n + z * z / 4)
        low = np.where(s > 0, np.maximum(centre - half, 0.0), 0.0)
        high = np.where(s < n, np.minimum(centre + half, 1.0), 1.0)
    none = ~(n > 0)
    return np.where(none, np.nan, low), np.where(none, np.nan, high)


def clopper_pearson(s: float, n: float, tail: float) -> tuple[float, float]:
    """Return the exact binomial limits of a probability, for s successes in n trials."""
    if not 0 < n < math.inf:  # weights so uneven that their squares give no number of rows
        return math.nan, math.nan
    if s in {0, n}:  # closed form
        far = tail ** (1 / n)
        return (far, 1.0) if s else (0.0, 1 - far)
    return beta_quantile(tail, s, n - s + 1), beta_quantile(1 - tail, s + 1, n - s)


def anytime_limits(s: float, n: float, alpha: float) -> tuple[float, float]:
    """Return limits of the mean of n numbers in [0, 1] with sum s that hold for all n at once.

    They are the p whose likelihood is at least alpha times the mixture of all likelihoods with the
    prior Beta(1/2, 1/2). The ratio of the mixture to the likelihood of the true p is a martingale
    (a supermartingale for numbers between 0 and 1), which ever exceeds 1 / alpha with probability
    at most alpha. One may therefore look after every row, and stop at will.
    """
    if not n > 0:
        return math.nan, math.nan
    mean = min(max(s / n, 0.0), 1.0)
    allowed = math.log(1 / alpha) - _log_mixture(s, n)

    def beyond(p: float) -> bool:
        return deviance(s, n * p) + deviance(n - s, n * (1 - p)) > allowed

    return _edge(beyond, mean, 0.0), _edge(beyond, mean, 1.0)


def _log_mixture(s: float, n: float) -> float:
    """Return the log of B(s + 1/2, n - s + 1/2) / B(1/2, 1/2), over the largest likelihood."""
    # Stirling's formula for every Γ: large terms cancel before they are computed.
    halves = math.log(2 / math.pi) / 2 - 1 - stirling_error(n) - math.log(n) / 2
    for x in (s, n - s):
        halves += stirling_error(x + 0.5) + (x * math.log1p(0.5 / x) if x > 0 else 0.0)
    return halves


# Bets on differences in [-1, 1]: below 1/2, so that the capital stays positive; the smallest ones
# are for some hundred million rows.
_BETS = 0.49 * 2.0 ** (-np.arange(28) / 2)
_LEAST = -700.0  # the exponential of less would be a subnormal number


def anytime_difference(only: int, other: int, n: int, alpha: float) -> tuple[float, float, float]:
    """Return limits and p of a mean of n numbers -1, 0 and 1 that hold for all n at once.

    `only` of the numbers are 1 and `other` are -1. A gambler who always bets the share b of the
    capital on numbers above the true mean m has the capital Π (1 + b (x - m)), a martingale, and so
    is the average over a fixed grid of b. It ever exceeds 2 / alpha with probability at most
    alpha / 2, which gives the lower limit; bets on numbers below m give the upper limit
    (Waudby-Smith and Ramdas 2024). The capital depends on the counts, not on the order of numbers.
    """
    if not n > 0:
        return math.nan, math.nan, math.nan
    counts = np.array([only, n - only - other, other], np.float64)

    def capital(m: float, sign: int) -> float:
        """Return the logarithm of the average capital."""
        gains = np.log1p(sign * _BETS[:, None] * (np.array([1.0, 0.0, -1.0]) - m)) @ counts
        most = float(gains.max())
        gains = np.maximum(gains - most, _LEAST)  # whose exponential is no subnormal number
        return most + math.log(float(np.exp(gains).mean()))

    mean, allowed = (only - other) / n, math.log(2 / alpha)
    low = _edge(lambda m: capital(m, 1) > allowed, mean, -1.0)
    high = _edge(lambda m: capital(m, -1) > allowed, mean, 1.0)
    reached = max(capital(0.0, 1), capital(0.0, -1)) - math.log(2)
    return low, high, math.exp(-max(reached, 0.0))


def _edge(beyond: Callable[[float], bool], inside: float, outside: float) -> float:
    """Return the point between two ends where `beyond` becomes true."""
    if not beyond(outside):
        return outside
    for _ in range(200):
        middle = (inside + outside) / 2
        if middle in (inside, outside):
            break
        inside, outside = (inside, middle) if beyond(middle) else (middle, outside)
    return inside


def margin(a: Numeric, a_low: Numeric, b: Numeric, b_high: Numeric) -> Numeric:
    """Return the margin of a difference of independent values, from the facing limits of both.

    The limits need not be symmetric (MOVER; Zou and Donner, Statistics in Medicine 27, 2008).
    ``a - b - margin(a, a_low, b, b_high)`` is the lower limit of ``a - b``, and
    ``a - b + margin(b, b_low, a, a_high)`` the upper one.

    >>> float(margin(0.9, 0.6, 0.5, 0.9))
    0.5
    """
    return np.hypot(a - a_low, b_high - b)


def _plain(*sides: object) -> Limits:
    low, high = (side.item() if np.ndim(side) == 0 else side for side in map(np.asarray, sides))
    return low, high


def holm(chances: Sequence[float]) -> list[float]:
    """Return p-values adjusted by Holm (1979), which controls the family-wise error rate.

    NaN is kept and does not count as a test.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    known = sorted((p, at) for at, p in enumerate(chances) if not math.isnan(p))
    adjusted, least = list(chances), 0.0
    for rank, (p, at) in enumerate(known):
        least = max(least, min(1.0, p * (len(known) - rank)))
        adjusted[at] = least
    return adjusted


def benjamini_hochberg(chances: Sequence[float]) -> list[float]:
    """Return p-values adjusted by Benjamini and Hochberg (1995): the false discovery rate.

    NaN is kept and does not count as a test.

    >>> benjamini_hochberg([0.01, 0.04, 0.03])
    [0.03, 0.04, 0.04]
    """
    adjusted = np.array(chances, np.float64)
    known = np.flatnonzero(~np.isnan(adjusted))
    order = known[np.argsort(adjusted[known])[::-1]]
    raised = adjusted[order] * order.size / np.arange(order.size, 0, -1)
    adjusted[order] = np.minimum(np.minimum.accumulate(raised), 1.0)
    found: list[float] = adjusted.tolist()
    return found
