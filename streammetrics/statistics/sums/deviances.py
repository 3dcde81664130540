"""Deviances of target and prediction, to full relative accuracy also where both are nearly equal.

With ``d = (y - p) / p`` and ``a = 2 - power`` the deviance is ``2 p**a g(d)``, where

    g(d) = ((1 + d)**a - 1 - a d) / (a (a - 1)) = d**2 / 2 + (a - 2) d**3 / 6 + ...

Its terms cancel near 0, so the series is summed there. Elsewhere powers less 1 come from `expm1`,
so that nothing cancels where the power is near 1 or 2 either; their limits are the deviances of
Poisson and gamma. No result is negative.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core import elementary

if TYPE_CHECKING:
    from streammetrics.core.types import Floats, Numeric

_SERIES = 2.0 / np.arange(3, 23, 2)  # 2 / (2 j + 1), in powers of v**2 <= 0.01
_NEAR = 1 / 16  # the largest d, times a where that is above 1, at which the series is summed
_TERMS = 16  # of that series, each at most a sixteenth of the one before
_TAME = 1e280  # powers up to this, and down to its inverse, are multiplied without overflow
_LARGEST = float(np.finfo(np.float64).max)
_quiet = np.errstate(all="ignore")  # what overflows is refused, or mended


@_quiet
def deviance(x: Numeric, m: Numeric, apart: Numeric | None = None) -> Floats:
    """Return x log(x / m) - x + m, for m > 0 and x = 0 or x / m > 0, to full relative accuracy.

    Where x is near m it is (x - m) v + 2 x (v**3 / 3 + v**5 / 5 + ...) with
    v = (x - m) / (x + m) (Loader, "Fast and accurate computation of binomial probabilities",
    2000).

    Args:
        x: Counts, targets or probabilities.
        m: What they are expected to be.
        apart: x - m, where x and m are rounded and the difference is known better.
    """
    x, m = np.broadcast_arrays(np.asarray(x, np.float64), np.asarray(m, np.float64))
    apart = x - m if apart is None else apart
    v = apart / 2 / (x / 2 + m / 2)  # of halves, whose sum does not overflow
    near = np.abs(v) < 0.1
    square = np.where(near, v, 0.0)
    square *= square
    series = np.zeros_like(square)
    for factor in _SERIES[::-1]:
        series += factor
        series *= square
    logs = _log_ratio(np.where(near | (x == 0.0), 1.0, x), np.where(near | (x == 0.0), 1.0, m))
    return np.asarray(np.where(near, apart * v + x * v * series, x * logs - apart))


@_quiet
def tweedie_deviance(y: Floats, p: Floats, power: float) -> Floats:
    """Return the deviance of each row for p > 0, infinite or ``nan`` where it overflows."""
    if power == 1:
        return 2 * deviance(y, p)
    d = np.asarray((y - p) / p)
    near = np.abs(d) <= _NEAR / max(1.0, abs(2 - power))
    middle = ~near & (d >= -0.5) & (d <= 1.0)
    far = ~(near | middle)
    half = np.empty_like(d)
    if near.any():
        half[near] = _scaled(_series(d[near], power), p[near], 2 - power)
    if middle.any():
        half[middle] = _scaled(_closed(d[middle], power), p[middle], 2 - power)
    if far.any():
        half[far] = _apart(y[far], p[far], power)
    return 2 * half


def _series(d: Floats, power: float) -> Floats:
    """Return g(d) near 0, by its series."""
    factors = [0.5]
    for j in range(1, _TERMS):
        factors.append(factors[-1] * (1 - power - j) / (j + 2))
    total = np.full_like(d, factors[-1])
    for factor in factors[-2::-1]:
        total *= d
        total += factor
    total *= d
    total *= d
    return total


def _closed(d: Floats, power: float) -> Floats:
    """Return g(d) for d from -1/2 to 1, not near 0."""
    a, b = 2 - power, 1 - power
    logs = elementary.log1p(d)
    if abs(b) <= 0.5:
        return ((1 + d) * _grown(logs, b) - d) / a
    return (_grown(logs, a) - d) / b


def _apart(y: Floats, p: Floats, power: float) -> Floats:
    """Return half the deviance where one number is twice the other or more, or y <= 0."""
    a, b = 2 - power, 1 - power
    x = np.maximum(y, 0.0)
    logs = _log_ratio(x, p)
    if abs(b) <= 0.5:
        grown = np.where(x > 0, x * _grown(logs, b), 0.0)
        return _scaled(grown - (y - p), p, b) / a
    if abs(a) <= 0.25:
        grown = _scaled(_grown(logs, a), p, a)
    else:
        grown = (elementary.power(x, a) - elementary.power(p, a)) / a
    return (grown - _scaled(y - p, p, b)) / b


def _grown(logs: Floats, exponent: float) -> Floats:
    """Return (r**exponent - 1) / exponent for r with these logarithms; the logarithms for 0."""
    return elementary.expm1(exponent * logs) / exponent if exponent else logs


def _log_ratio(x: Floats, m: Floats) -> Floats:
    """Return log(x / m), also where the ratio overflows or loses digits below the normal floats."""
    ratio = x / m
    logs: Floats = elementary.log(ratio)
    strays = np.logical_not((ratio > 1 / _TAME) & (ratio < _TAME))
    return np.where(strays, elementary.log(x) - elementary.log(m), logs) if np.any(strays) else logs


def _scaled(values: Floats, p: Floats, exponent: float) -> Floats:
    """Return values times p**exponent, which overflows only where the product does."""
    if exponent == 0:
        return values
    power = p if exponent == 1 else elementary.power(p, exponent)
    strays = ~((power > 1 / _TAME) & (power < _TAME))
    scaled = values * power
    if strays.any():
        root = np.minimum(elementary.power(p[strays], exponent / 2), _LARGEST)  # 0 times it is 0
        scaled[strays] = values[strays] * root * root
    return scaled
