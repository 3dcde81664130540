"""The normal, Student's t, the beta and the binomial distribution: tails and quantiles.

Right to about 1e-12 of the smaller tail, or of the whole where a parameter of a beta distribution
is below 1, for samples of a few rows and of billions: densities are Loader's saddle points (2000),
which do not cancel, tails a continued fraction, or where both parameters are large the integral of
the density.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from streammetrics.core.types import Floats

_NORMAL = NormalDist()
_LARGE = 1000.0  # parameters of a beta distribution from which its density is integrated
_TINY = 1e-300
_TERMS = 100_000  # of a continued fraction: it takes some hundreds at most


def normal_tail(z: float) -> float:
    """Return the probability of a standard normal number above z."""
    return math.erfc(z / math.sqrt(2)) / 2


def normal_quantile(p: float) -> float:
    """Return the number that a standard normal one is below with probability p."""
    if not 0 < p < 1:
        return math.copysign(math.inf, p - 0.5)
    return _NORMAL.inv_cdf(p)


def t_tail(t: float, df: float) -> float:
    """Return the probability of a number of Student's t distribution above t."""
    whole = df + t * t
    if math.isinf(whole):
        return 0.0 if t > 0 else 1.0
    half = _beta_below(df / whole, t * t / whole, df / 2, 0.5) / 2
    return half if t >= 0 else 1 - half


def t_quantile(p: float, df: float) -> float:
    """Return the number that one of Student's t distribution is below with probability p."""
    if not 0 < p < 1:
        return math.copysign(math.inf, p - 0.5)
    if p < 0.5:
        return -t_quantile(1 - p, df) if p > 1e-3 else -_t_above(p, df)
    return _t_above(1 - p, df)


@lru_cache(maxsize=1 << 14)  # slices often have equally many rows
def _t_above(tail: float, df: float) -> float:
    """Return what is exceeded with a probability up to 1/2: a root, by steps of Newton's."""
    low, high = 0.0, 1.0
    while t_tail(high, df) > tail:
        low, high = high, 2 * high
    constant = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - math.log(df * math.pi) / 2
    z = normal_quantile(1 - tail) if tail > 1e-15 else high
    t = min(max(z + (z**3 + z) / (4 * df), low), high)  # near it, where there are many degrees
    for _ in range(200):
        excess = t_tail(t, df) - tail
        low, high = (t, high) if excess > 0 else (low, t)
        slope = math.exp(constant - (df + 1) / 2 * math.log1p(t * t / df))
        step = t + excess / slope if slope else math.inf
        if abs(step - t) <= 1e-9 * abs(step):  # the next would be of the square of that
            return step
        t = step if low < step < high else (low + high) / 2
    return t


def beta_cdf(x: float, a: float, b: float) -> float:
    """Return the probability of a beta distributed number up to x, for a and b above 0."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    return _beta_below(x, 1 - x, a, b)


def beta_quantile(p: float, a: float, b: float) -> float:
    """Return the number that a beta distributed one is below with probability p."""
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
    """Return the probability of at most k successes of n, each of probability p."""
    if k < 0 or k >= n:
        return float(k >= n)
    if p <= 0 or p >= 1:
        return float(p <= 0)
    return _beta_below(1 - p, p, n - k, k + 1)


def binomial_quantile(q: float, n: int, p: float) -> int:
    """Return the least k of which at most k successes of n have a probability of at least q."""
    spread = math.sqrt(n * p * (1 - p))
    guess = min(max(int(n * p + normal_quantile(q) * spread), 0), n)
    low, high, step = guess, guess, 1
    while low >= 0 and binomial_cdf(low, n, p) >= q:
        low, step = low - step, 2 * step
    step = 1
    while high < n and binomial_cdf(high, n, p) < q:
        high, step = min(high + step, n), 2 * step
    low = max(low, -1)  # which has less than q, as `high` has not
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if binomial_cdf(middle, n, p) >= q else (middle, high)
    return high


def deviance(x: float, mean: float) -> float:
    """Return x log(x / mean) + mean - x, never negative and without loss where both are near."""
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
    """Return log Γ(n + 1) less Stirling's formula for it, for n above 0."""
    if n < 15:
        return math.lgamma(n + 1) - (n + 0.5) * math.log(n) + n - math.log(2 * math.pi) / 2
    square = 1 / (n * n)
    series = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
    total = 0.0
    for coefficient in reversed(series):
        total = total * square + coefficient
    return total / n


def _beta_scale(x: float, y: float, a: float, b: float) -> float:
    """Return x^a y^b / B(a, b), where y is 1 - x."""
    n = a + b
    error = stirling_error(n) - stirling_error(a) - stirling_error(b)
    apart = deviance(a, n * x) + deviance(b, n * y)
    return math.sqrt(a * b / (2 * math.pi * n)) * math.exp(error - apart)


def _beta_density(x: float, y: float, a: float, b: float) -> float:
    return _beta_scale(x, y, a, b) / (x * y) if x > 0 and y > 0 else 0.0


def _beta_below(x: float, y: float, a: float, b: float) -> float:
    """Return the probability of at most x, where y is 1 - x without its rounding."""
    if x <= 0 or y <= 0:
        return float(y <= 0)
    more = 1 if min(a, b) < 1 else 0  # then the mean may be an end, at which no fraction converges
    if x * (b + more) < y * (a + more):  # below the mean, a / (a + b)
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
    """Return the probability of at most x, below the mean, as an integral of the density."""
    n = a + b
    slope = (a - 1) / x - (b - 1) / y  # of its logarithm, which falls ever faster for b above 1
    spread = math.sqrt(a * b / n) / n
    reach = min(40 * (spread + 1 / n), 40 / min(slope, a - 1) if slope > 0 else math.inf, x)
    places, weights = _nodes()
    steps = reach / 2 * (1 - places)  # from x downwards
    change = (a - 1) * np.log1p(-steps / x) + (b - 1) * np.log1p(steps / y)
    return _beta_density(x, y, a, b) * reach / 2 * float(np.dot(weights, np.exp(change)))
