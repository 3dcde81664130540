"""The nearest float64 of exact values: integers, tables of their digits, fractions, roots."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.exact.digits import MASK, Digits, Floats

if TYPE_CHECKING:
    from collections.abc import Sequence

    Value = float | Floats
    Number = Fraction | float | None

_BEYOND = (1 << 1024) - (1 << 970)  # the smallest integer that rounds to infinity
_SHORT = 3  # digits that a few operations in float64 round


def nearest(value: Number) -> float:
    """Return the nearest float of an exact value; nan for ``None``, which stands for undefined."""
    if value is None:
        return math.nan
    try:
        if not isinstance(value, Fraction):
            return float(value)
        above, below = value.as_integer_ratio()
        return above / below
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def are_finite(values: Sequence[int], unit: int, weight: int, parts: int) -> bool:
    """Whether ``values * 2**unit / (weight / parts)`` are finite, as means of finite floats are."""
    longest = max(map(int.bit_length, values), default=0)
    if longest + unit + parts.bit_length() < 1023 + weight.bit_length():  # clearly so
        return True
    limit = (_BEYOND * weight) << max(-unit, 0)
    return all((abs(value) * parts) << max(unit, 0) < limit for value in values)


def root(value: Fraction) -> float:
    """Return the nearest float of the square root of an exact value."""
    numerator, denominator = value.as_integer_ratio()
    # An even shift that leaves at least 64 bits of the root before the binary point.
    shift = 2 * max(0, 65 + (denominator.bit_length() - numerator.bit_length()) // 2)
    quotient, left = divmod(numerator << shift, denominator)
    whole = math.isqrt(quotient)
    inexact = left != 0 or whole * whole != quotient
    # If anything is left, the last bit is made odd, so that rounding never takes it for a tie.
    return nearest_scaled(2 * whole + inexact, -(shift // 2 + 1))


def nearest_scaled(value: int, exponent: int) -> float:
    """Return the float64 nearest to ``value * 2**exponent``: dividing integers rounds once."""
    try:
        return (value << max(exponent, 0)) / (1 << max(-exponent, 0))
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def all_nearest(values: Sequence[int], exponent: int) -> list[float]:
    """Return the float64 nearest to ``value * 2**exponent`` of each value."""
    above, below = 1 << max(exponent, 0), 1 << max(-exponent, 0)
    try:
        return [value * above / below for value in values]
    except OverflowError:  # one of them is too large
        return [nearest_scaled(value, exponent) for value in values]


def rounded(digits: Digits, exponent: int) -> Floats:
    """Return the float64 nearest to every row, ties to even; infinite only if it overflows."""
    rows, width = digits.shape
    result = np.zeros(rows)
    normal = exponent >= -1074 and exponent + 32 * max(width, _SHORT) <= 1023
    for start in range(0, rows if width else 0, tuning.DIGIT_ROWS):
        part = slice(start, start + tuning.DIGIT_ROWS)
        block, out = digits[part], result[part]
        if not normal or (width > _SHORT and block[:, -1].min() < 0):
            out[:] = _rounded(block, exponent)
            continue
        out[:] = _rounded_short(block[:, :_SHORT], 0.0) * math.ldexp(1.0, exponent)
        for low in range(1, width - _SHORT + 1):  # of rows with more digits the highest ones
            more = np.flatnonzero(block[:, low + _SHORT - 1])
            longer = block[more]
            below = np.where(longer[:, :low].any(axis=1), 0.5, 0.0)
            near = _rounded_short(longer[:, low : low + _SHORT], below)
            out[more] = near * math.ldexp(1.0, exponent + 32 * low)
    return result


def _rounded_short(digits: Digits, below: float | Floats) -> Floats:
    """Return the float64 nearest to integers of one to three digits, plus a part below 1.

    If the highest of three digits is not 0, there are more than 64 bits: only whether the part is
    0 matters then, not how large it is.
    """
    high: Floats
    *lower, high = np.array(digits.T, np.float64, order="C")
    if lower:
        shifted = high * 2.0**32
        high = shifted + lower[-1]
    if len(lower) == 2:
        # What that sum lacks has at most 12 bits: with the lowest digit it is still one double.
        lacking = (shifted - high) + lower[-1]
        high = high * 2.0**32 + (lacking * 2.0**32 + (lower[0] + below))
    return high


def _rounded(digits: Digits, exponent: int) -> Floats:
    rows, width = digits.shape
    negative = digits[:, -1] < 0
    # Two zero columns below: every leading digit has two under it. One above: for a carry.
    size = np.zeros((rows, width + 3), np.int64)
    size[:, 2:-1] = np.where(negative[:, None], -digits, digits)
    for column in range(2, width + 2):
        size[:, column + 1] += size[:, column] >> 32
        size[:, column] &= MASK
    lead = width + 2 - np.argmax(size[:, :1:-1] != 0, axis=1)
    each = np.arange(rows)
    first, second, third = (size[each, lead - k].astype(np.uint64) for k in range(3))
    used = np.frexp(first.astype(np.float64))[1]  # bits of the leading digit, 0 for zero
    bits = used.astype(np.uint64)
    word = first << (64 - bits) | second << (32 - bits) | third >> bits
    sticky = (third & ((np.uint64(1) << bits) - np.uint64(1))) != 0
    lowest_set = np.argmax(size != 0, axis=1)
    sticky |= lowest_set < lead - 2
    # The value is word * 2**unit, and sticky says whether there is more below. The leading bit of
    # word is bit 63: 53 bits are kept, fewer if the result is subnormal.
    unit = exponent + 32 * (lead - 2) + used - 64
    drop = np.maximum(11, -1074 - unit)
    word = np.where(drop > 64, np.uint64(0), word)
    drop = np.minimum(drop, 64)
    half = np.uint64(1) << (drop - 1).astype(np.uint64)
    rest = word & (half | (half - np.uint64(1)))
    kept = np.where(drop < 64, word >> np.minimum(drop, 63).astype(np.uint64), np.uint64(0))
    odd = (kept & np.uint64(1)) != 0
    kept += (rest > half) | ((rest == half) & (sticky | odd))
    with np.errstate(over="ignore", under="ignore"):
        result: Floats = np.ldexp(kept.astype(np.float64), unit + drop)
    np.negative(result, out=result, where=negative)
    return result
