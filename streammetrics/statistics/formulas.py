"""Losses of a row, in forms that keep their digits."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np

from streammetrics.core import elementary, tuning
from streammetrics.core.columns.long import LongNumbers, nearest
from streammetrics.core.counting import extent

if TYPE_CHECKING:
    from collections.abc import Callable

    from streammetrics.core.types import Bools, Floats, Numeric


_SERIES = 2.0 / np.arange(3, 23, 2)  # 2 / (2 j + 1), in powers of v**2 <= 0.01
_NEAR = 1 / 16  # the largest d, times a where that is above 1, at which the series is summed
_TERMS = 16  # of that series, each at most a sixteenth of the one before
_TAME_POWERS = 1e280  # powers up to this, and down to its inverse, are multiplied without overflow
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
    strays = np.logical_not((ratio > 1 / _TAME_POWERS) & (ratio < _TAME_POWERS))
    return np.where(strays, elementary.log(x) - elementary.log(m), logs) if np.any(strays) else logs


def _scaled(values: Floats, p: Floats, exponent: float) -> Floats:
    """Return values times p**exponent, which overflows only where the product does."""
    if exponent == 0:
        return values
    power = p if exponent == 1 else elementary.power(p, exponent)
    strays = ~((power > 1 / _TAME_POWERS) & (power < _TAME_POWERS))
    scaled = values * power
    if strays.any():
        root = np.minimum(elementary.power(p[strays], exponent / 2), _LARGEST)  # 0 times it is 0
        scaled[strays] = values[strays] * root * root
    return scaled


DIGITS = Context(prec=60)
_STEPS = (64.0, 4096.0, 262144.0)  # of the tables
_MOST = 96  # entries of a table on either side of the middle one
_BLOCK = 2**13  # rows at a time, whose arrays stay in the cache
Pair = tuple["Floats", "Floats"]


def y_log_terms(y: Floats) -> LongNumbers:
    """Return y log y for y >= 0."""

    def terms(y: Floats) -> Pair:
        head, tail = _times(_log(np.where(y > 0, y, 1.0)), y)
        return head, tail

    return _in_blocks(terms, y)


def power_terms(y: Floats, exponent: float, factor: float) -> LongNumbers:
    """Return y**exponent / factor for y > 0, and 0 for others."""

    def terms(y: Floats) -> Pair:
        head, tail = _exp(_times(_log(np.where(y > 0, y, 1.0)), exponent))
        quotient = head / factor
        product, rest = product_and_error(quotient, factor)
        tail = ((head - product) - rest + tail) / factor
        return np.where(y > 0, quotient, 0.0), np.where((y > 0) & np.isfinite(tail), tail, 0.0)

    return _in_blocks(terms, y)


@np.errstate(all="ignore")
def softmax_and_error(logits: Floats) -> Pair:
    """Return the softmax of each row (n, K), rounded, and what was rounded off."""
    odds = _exp(_sum(logits, -logits.max(axis=1, keepdims=True)))
    total = [np.zeros((len(logits), 1))] * 2
    for k in range(logits.shape[1]):
        head, tail = _sum(total[0], odds[0][:, k : k + 1])
        total = [head, tail + total[1] + odds[1][:, k : k + 1]]
    whole, rest = _sum(*total)
    share = odds[0] / whole
    product, error = product_and_error(share, whole)
    return _sum(share, (((odds[0] - product) - error) + odds[1] - share * rest) / whole)


@np.errstate(all="ignore")
def _in_blocks(terms: Callable[[Floats], Pair], y: Floats) -> LongNumbers:
    flat = y.reshape(-1)
    head, tail = np.empty(y.shape), np.empty(y.shape)
    for start in range(0, flat.size, _BLOCK):
        rows = slice(start, start + _BLOCK)
        found = _sum(*terms(flat[rows]))
        head.reshape(-1)[rows], tail.reshape(-1)[rows] = found
    return LongNumbers(head, np.where(np.isfinite(head), tail, 0.0))


def _sum(x: Floats, y: Floats | float) -> Pair:
    """Return the rounded sum, and its error (Knuth)."""
    total = x + y
    other = total - x
    return total, (x - (total - other)) + (y - other)


def product_and_error(x: Floats, y: Floats | float) -> Pair:
    """Return the rounded product, and its error (Dekker)."""
    product = x * y
    (xh, xl), (yh, yl) = _halves(x), _halves(y)
    return product, ((xh * yh - product) + xh * yl + xl * yh) + xl * yl


def _halves(x: Floats | float) -> tuple[Floats, Floats]:
    scaled = x * 134217729.0
    high = scaled - (scaled - x)
    return np.asarray(high), np.asarray(x - high)


def _times(x: Pair, y: Floats | float) -> Pair:
    head, tail = product_and_error(x[0], y)
    return head, tail + x[1] * y


def _added(parts: list[Floats], tail: Floats) -> Pair:
    """Return the sum of parts, and of small ones that are a tail already."""
    total = parts[0]
    for part in parts[1:]:
        total, error = _sum(total, part)
        tail = tail + error
    return _sum(total, tail)


def _log(y: Floats) -> Pair:
    rest, exponent = np.frexp(y)
    low = rest < math.sqrt(0.5)
    rest = np.where(low, rest * 2, rest)
    e = exponent - low.astype(np.float64)
    log_2, _ = _constants()
    parts, tail = [e * log_2[0], e * log_2[1]], e * log_2[2]
    divisor = np.ones_like(rest)
    for level, step in enumerate(_STEPS):
        place = np.rint((rest / divisor - 1.0) * step)
        divisor = divisor * (1.0 + place / step)
        heads, tails = _table(level, "ln")
        at = place.astype(np.intp) + _MOST
        parts.append(heads[at])
        tail = tail + tails[at]
    apart = rest - divisor  # exact, as are divisors
    z = apart / divisor
    product, error = product_and_error(z, divisor)
    fine = ((apart - product) - error) / divisor
    square, error = product_and_error(z, z)
    small = z * square * (1 / 3 - z * (1 / 4 - z / 5))
    parts += [z, square * -0.5]
    return _added(parts, tail + (small + fine - (error * 0.5 + z * fine)))


def _exp(x: Pair) -> Pair:
    log_2, per = _constants()
    e = np.rint(np.clip(x[0] * per, -1100.0, 1100.0))
    rest, tail = _added([x[0], -e * log_2[0], -e * log_2[1]], x[1] - e * log_2[2])
    found: list[Pair] = []
    for level, step in enumerate(_STEPS):
        place = np.rint(np.clip(rest * step, -_MOST, _MOST))
        at = place.astype(np.intp) + _MOST
        heads, tails = _table(level, "exp")
        found.append((heads[at], tails[at]))
        rest, error = _sum(rest, place / -step)
        tail = tail + error
    rest, tail = _sum(rest, tail)
    square, error = product_and_error(rest, rest)
    small = rest * square * (1 / 6 + rest * (1 / 24 + rest / 120))
    one = np.ones_like(rest)
    head, tail = _added([one, rest, square * 0.5], tail + rest * tail + error * 0.5 + small)
    for factor, rest in found:
        product, error = product_and_error(head, factor)
        head, tail = _sum(product, error + (head * rest + tail * factor))
    scale = e.astype(np.int64)
    return np.ldexp(head, scale), np.ldexp(tail, scale)


@cache
def _constants() -> tuple[tuple[float, float, float], float]:
    """Return log 2 in three parts, of which two times an exponent are exact, and its inverse."""
    exact = DIGITS.ln(Decimal(2))
    first = math.floor(float(exact) * 2**40) / 2**40
    second = math.floor(float(DIGITS.subtract(exact, Decimal(first))) * 2.0**80) / 2.0**80
    rest = DIGITS.subtract(DIGITS.subtract(exact, Decimal(first)), Decimal(second))
    return (first, second, float(rest)), 1 / float(exact)


@cache
def _table(level: int, function: str) -> Pair:
    """Return log(1 + k / step), or exp(k / step), for k on either side of 0."""
    step = int(_STEPS[level])
    heads, tails = np.zeros(2 * _MOST + 1), np.zeros(2 * _MOST + 1)
    for k in range(-_MOST, _MOST + 1):
        at = DIGITS.divide(Decimal(k), Decimal(step))
        if function == "ln" and k <= -step:
            continue  # no argument is so small
        exact = DIGITS.ln(1 + at) if function == "ln" else DIGITS.exp(at)
        heads[k + _MOST] = head = float(exact)
        tails[k + _MOST] = float(DIGITS.subtract(exact, Decimal(head)))
    return heads, tails


LossName: TypeAlias = Literal[
    "absolute",
    "squared",
    "magnitude",
    "absolute_and_magnitude",
    "percentage",
    "symmetric_percentage",
    "squared_log",
    "pinball",
    "huber",
    "log_cosh",
    "tweedie",
    "tweedie_target",
    "power",
]
_EPSILON = float(np.finfo(np.float64).eps)
_SMALLEST = 5e-324
NORMAL = float(np.finfo(np.float64).tiny)
_TAME = 2.0**500  # squares of what is below are far from overflow
_FAR = 20.0  # log cosh d is d - log 2 from here on, to the last bit
quiet = np.errstate(all="ignore")  # what overflows has been refused, or is mended


class Loss(NamedTuple):
    """One row's loss of target and prediction, given a parameter."""

    terms: Callable[[Floats, Floats, float], Numeric]
    bounded: bool = True  # finite wherever the difference of target and prediction is
    root: Callable[[Floats, Floats, float], Floats] | None = None  # what the terms are squares of
    # What the terms are squares of up to rounding: so they are summed beyond the normal floats.
    rough_root: Callable[[Floats, Floats, float], Floats] | None = None
    signed: bool = False  # can be negative, if only as earlier versions rounded it
    long: bool = False  # terms are `LongNumbers`, of whose sums a small difference is read


def _absolute(y: Floats, p: Floats, _: float) -> Floats:
    d = y - p
    return np.abs(d, out=d)


def _square(d: Floats) -> Floats:
    if d.size <= tuning.FEW_ROWS:  # to look costs less than to ask for the processor's flags
        low, high = extent(d)
        if -_TAME < low <= high < _TAME:
            squares = d * d
            if squares.item(squares.argmin()) >= NORMAL:
                return squares
    # The processor's flags cost nothing: a square below the normal floats that is exact sets none.
    with np.errstate(over="raise", under="raise"):
        return np.multiply(d, d, out=d)


def _squared(y: Floats, p: Floats, _: float) -> Floats:
    return _square(y - p)


def _magnitude(y: Floats, _p: Floats, _: float) -> Floats:
    return abs(y)


@quiet
def _absolute_and_magnitude(y: Floats, p: Floats, _: float) -> Floats:
    d = _absolute(y, p, 0.0)
    return np.add(d, np.abs(nearest(y)), out=d)


def _percentage(y: Floats, p: Floats, _: float) -> Floats:
    d = _absolute(y, p, 0.0)
    return np.divide(d, np.maximum(np.abs(nearest(y)), _EPSILON), out=d)


@quiet
def _symmetric_percentage(y: Floats, p: Floats, _: float) -> Floats:
    d = _absolute(y, p, 0.0)
    y, p = nearest(y), nearest(p)
    size = np.abs(y)
    size += np.abs(p)
    if np.isinf(size.max()):
        # |y| + |p| overflows: there, and only there, the ratio is taken of quarters, which are
        # exact for numbers of that size.
        far = np.isinf(size)
        d[far] /= 4
        size[far] = np.abs(y[far]) / 4 + np.abs(p[far]) / 4
    np.maximum(size, _SMALLEST, out=size)  # 0 / 0 is a loss of 0
    np.divide(d, size, out=d)
    return np.multiply(d, 2, out=d)


def _squared_log(y: Floats, p: Floats, _: float) -> Floats:
    return _square(_absolute_log(y, p, 0.0))


@quiet
def _absolute_log(y: Floats, p: Floats, _: float) -> Floats:
    """Return |log((1 + y) / (1 + p))|, without a difference of nearly equal logarithms."""
    d = _absolute(y, p, 0.0)
    y, p = nearest(y), nearest(p)
    d /= 1 + np.minimum(y, p)
    return elementary.log1p(d, out=d)


@quiet
def _pinball(y: Floats, p: Floats, alpha: float) -> Floats:
    d = y - p
    below = d * (alpha - 1)
    return np.maximum(np.multiply(d, alpha, out=d), below, out=d)


@quiet
def _huber(y: Floats, p: Floats, delta: float) -> Floats:
    d = _absolute(y, p, 0.0)
    near = np.minimum(d, delta)
    d -= near / 2
    return np.multiply(d, near, out=d)


@quiet
def _log_cosh(y: Floats, p: Floats, _: float) -> Floats:
    # log cosh d = log1p(E**2 / (2 E + 2)) with E = exp(d) - 1, which keeps its digits near 0.
    d = _absolute(y, p, 0.0)
    near = np.minimum(d, _FAR)
    d -= near
    elementary.expm1(near, out=near)
    near *= near / (2 * near + 2)
    d += elementary.log1p(near, out=near)
    return d


def _tweedie(y: Floats, p: Floats, power: float) -> Floats:
    return tweedie_deviance(nearest(y), nearest(p), power)


def _tweedie_target(y: Floats, _p: Floats, power: float) -> LongNumbers:
    """What of the deviance does not depend on the prediction, or is taken with its mean."""
    y = nearest(y)
    if power == 1:
        return y_log_terms(y)
    if power == 2:
        return _in_blocks(_log, y)
    return power_terms(y, 2 - power, (1 - power) * (2 - power))


@quiet
def _power(y: Floats, p: Floats, order: float) -> Floats:
    d = _absolute(y, p, 0.0)
    powers = elementary.power(d, order)
    low, high = extent(powers)
    if not (low >= NORMAL and high < np.inf) and not (_are_normal(powers) | (d == 0)).all():
        raise FloatingPointError("a power is beyond the normal floats")
    return powers


@quiet
def _half_power(y: Floats, p: Floats, order: float) -> Floats:
    """Return |y - p|**(order / 2), above 0 wherever the difference is."""
    d = _absolute(y, p, 0.0)
    return np.maximum(elementary.power(d, order / 2), np.where(d > 0, _SMALLEST, 0.0))


def _are_normal(terms: Floats) -> Bools:
    return (terms >= NORMAL) & (terms < np.inf)


LOSSES: dict[str, Loss] = {
    "absolute": Loss(_absolute),
    "squared": Loss(_squared, root=_absolute),
    "magnitude": Loss(_magnitude),
    "absolute_and_magnitude": Loss(_absolute_and_magnitude, bounded=False),
    "percentage": Loss(_percentage, bounded=False),
    "symmetric_percentage": Loss(_symmetric_percentage),
    "squared_log": Loss(_squared_log, root=_absolute_log),
    "pinball": Loss(_pinball),
    "huber": Loss(_huber, bounded=False),
    "log_cosh": Loss(_log_cosh),
    "tweedie": Loss(_tweedie, bounded=False, signed=True),
    "tweedie_target": Loss(_tweedie_target, bounded=False, signed=True, long=True),
    "power": Loss(_power, bounded=False, rough_root=_half_power),
}


def squared_losses(loss: str, y: Floats, p: Floats) -> Floats:
    """Return losses that are squares, infinite beyond float64."""
    d = squared_of(loss, y, p)
    return d * d


@quiet
def parts_of(loss: str, parameter: float, y: Floats, p: Floats) -> tuple[Floats, Floats]:
    """Return the losses of rows that are normal floats, and what those of others are squares of."""
    if loss == "power":
        root = _half_power(y, p, parameter)
        terms = elementary.power(_absolute(y, p, 0.0), parameter)
    else:
        root = squared_of(loss, y, p)
        terms = root * root
    normal = _are_normal(terms)
    return np.where(normal, terms, 0.0), np.where(normal, 0.0, root)


def squared_of(loss: str, y: Floats, p: Floats) -> Floats:
    """Return what a loss that is a square is the square of."""
    return _absolute_log(y, p, 0.0) if loss == "squared_log" else y - p
