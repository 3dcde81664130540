"""Exact integers, and tables of their digits, to the nearest float64."""

import math
from collections.abc import Sequence

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.exact.digits import MASK, Digits, Floats

_SHORT = 3  # digits that need only a few operations to be rounded


def nearest(value: int, exponent: int) -> float:
    """Nearest float64 of ``value * 2**exponent``: Python's division of integers rounds once."""
    try:
        return (value << max(exponent, 0)) / (1 << max(-exponent, 0))
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def all_nearest(values: Sequence[int], exponent: int) -> list[float]:
    """Nearest float64 of ``value * 2**exponent`` of each value."""
    above, below = 1 << max(exponent, 0), 1 << max(-exponent, 0)
    try:
        return [value * above / below for value in values]
    except OverflowError:  # of one
        return [nearest(value, exponent) for value in values]


def rounded(digits: Digits, exponent: int) -> Floats:
    """Nearest float64 of every row, ties to even, infinite only where the value overflows."""
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
        for low in range(1, width - _SHORT + 1):  # the highest digits of those that have more
            more = np.flatnonzero(block[:, low + _SHORT - 1])
            longer = block[more]
            below = np.where(longer[:, :low].any(axis=1), 0.5, 0.0)
            near = _rounded_short(longer[:, low : low + _SHORT], below)
            out[more] = near * math.ldexp(1.0, exponent + 32 * low)
    return result


def _rounded_short(digits: Digits, below: float | Floats) -> Floats:
    """Nearest float64 of integers of one to three digits, and of a part below one.

    Any such part will do for another where the highest of three digits is not 0.
    """
    high: Floats
    *lower, high = np.array(digits.T, np.float64, order="C")
    if lower:
        shifted = high * 2.0**32
        high = shifted + lower[-1]
    if len(lower) == 2:
        # What that sum lacks has at most 12 bits: with the lowest digit it is a double as well.
        lacking = (shifted - high) + lower[-1]
        high = high * 2.0**32 + (lacking * 2.0**32 + (lower[0] + below))
    return high


def _rounded(digits: Digits, exponent: int) -> Floats:
    rows, width = digits.shape
    negative = digits[:, -1] < 0
    # Two zero columns below make three digits under every leading one; one above takes 2**31.
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
    # The value is (word + sticky) * 2**unit with the leading bit at 63: keep 53 bits of it, or
    # fewer where the result is subnormal.
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
