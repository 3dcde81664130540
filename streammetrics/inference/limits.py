"""Limits of values: on the scale on which they are nearly normal, and of shares by counting."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.inference.distributions import (
    beta_quantile,
    deviance,
    normal_quantile,
    stirling_error,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from streammetrics.core.types import Floats, Numeric

    Limits = tuple[Numeric, Numeric]  # floats or arrays of one shape


def limits(
    value: object, error: object, quantile: float, low: float = -math.inf, high: float = math.inf
) -> Limits:
    """Return the limits of values with standard errors, which lie between two ends.

    They are symmetric on the logit of a value with two ends, which between -1 and 1 is Fisher's z;
    on the logarithm of one with a low end; and else on the value's own scale. Where there is no
    error, or the value is at an end, there are none: ``nan``.
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
    return _plain(*(np.where(inside, side, np.nan) for side in sides))


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

    By Wilson's score of s / (s + f), which is binomial given the rows of both. Rows may count for
    more than one: `units` are the sums of their squares over their sums, by which amounts of as
    much variance as a count of rows are made. With `anytime` by the mixture of
    `anytime_limits`; without any rows ``nan``.
    """
    s_unit, f_unit = (np.asarray(unit, np.float64) for unit in units)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # units too small: nan
        s, f = np.asarray(success, np.float64) / s_unit, np.asarray(failure, np.float64) / f_unit
        ratio = odds * s_unit / f_unit
    if anytime:
        sides = np.vectorize(anytime_limits, otypes=[float, float])(s, s + f, 2 * tail)
    else:
        sides = wilson(s, s + f, normal_quantile(1 - tail))
    with np.errstate(invalid="ignore"):
        return _plain(*(side * ratio / (side * ratio + (1 - side)) for side in sides))


def wilson(s: Floats, n: Floats, z: float) -> Limits:
    """Return Wilson's limits of a probability of which s of n trials were successes."""
    with np.errstate(invalid="ignore", divide="ignore"):
        centre = (s + z * z / 2) / (n + z * z)
        half = z / (n + z * z) * np.sqrt(s * (n - s) / n + z * z / 4)
        low = np.where(s > 0, np.maximum(centre - half, 0.0), 0.0)
        high = np.where(s < n, np.minimum(centre + half, 1.0), 1.0)
    none = ~(n > 0)
    return np.where(none, np.nan, low), np.where(none, np.nan, high)


def clopper_pearson(s: float, n: float, tail: float) -> tuple[float, float]:
    """Return the exact binomial limits of a probability of which s of n trials were successes."""
    if not 0 < n < math.inf:  # weights so far apart that their squares do not say of how many rows
        return math.nan, math.nan
    if s in {0, n}:  # in closed form
        far = tail ** (1 / n)
        return (far, 1.0) if s else (0.0, 1 - far)
    return beta_quantile(tail, s, n - s + 1), beta_quantile(1 - tail, s + 1, n - s)


def anytime_limits(s: float, n: float, alpha: float) -> tuple[float, float]:
    """Return limits of a mean of numbers in [0, 1], s their sum, that hold at all n at once.

    They are those p that the mixture of all likelihoods, with the prior Beta(1/2, 1/2), does not
    exceed by 1 / alpha: its ratio to the likelihood of the true p is a martingale (for numbers
    that are not 0 or 1 it is below one), which ever passes 1 / alpha with a probability of at most
    alpha. So one may look after every row, and stop where one likes.
    """
    if not n > 0:
        return math.nan, math.nan
    mean = min(max(s / n, 0.0), 1.0)
    allowed = math.log(1 / alpha) - _log_mixture(s, n)

    def beyond(p: float) -> bool:
        return deviance(s, n * p) + deviance(n - s, n * (1 - p)) > allowed

    return _edge(beyond, mean, 0.0), _edge(beyond, mean, 1.0)


def _log_mixture(s: float, n: float) -> float:
    """Return log of B(s + 1/2, n - s + 1/2) / B(1/2, 1/2) over the largest likelihood."""
    # Stirling's formula of every Γ: what is large cancels before it is computed.
    halves = math.log(2 / math.pi) / 2 - 1 - stirling_error(n) - math.log(n) / 2
    for x in (s, n - s):
        halves += stirling_error(x + 0.5) + (x * math.log1p(0.5 / x) if x > 0 else 0.0)
    return halves


def _edge(beyond: Callable[[float], bool], inside: float, outside: float) -> float:
    """Return where `beyond` turns true on the way from one end to the other."""
    if not beyond(outside):
        return outside
    for _ in range(200):
        middle = (inside + outside) / 2
        if middle in (inside, outside):
            break
        inside, outside = (inside, middle) if beyond(middle) else (middle, outside)
    return inside


def margin(a: Numeric, a_low: Numeric, b: Numeric, b_high: Numeric) -> Numeric:
    """Return by how much two independent values may come together by chance, or part.

    From the limits of either that look to each other, which need not be symmetric (MOVER; Zou and
    Donner, Statistics in Medicine 27, 2008): ``a - b - margin`` is the lower limit of ``a - b``,
    and ``a - b + margin(b, b_low, a, a_high)`` the upper one.

    >>> float(margin(0.9, 0.6, 0.5, 0.9))
    0.5
    """
    return np.hypot(a - a_low, b_high - b)


def _plain(*sides: object) -> Limits:
    low, high = (side.item() if np.ndim(side) == 0 else side for side in map(np.asarray, sides))
    return low, high
