"""The nearest float64 of exact values: integers, fractions, roots."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    Number = Fraction | float | None

_BEYOND = (1 << 1024) - (1 << 970)  # the smallest integer that rounds to infinity


def nearest(value: Number) -> float:
    """Return the nearest float of an exact value; nan for ``None``, which stands for undefined."""
    if value is None:
        return math.nan
    try:
        if not isinstance(value, Fraction):
            return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    return quotient(*value.as_integer_ratio())


def quotient(above: int, below: int) -> float:
    """Return the nearest float of a fraction, whose denominator is positive."""
    try:
        return above / below  # dividing integers rounds once
    except OverflowError:
        return math.inf if above > 0 else -math.inf


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
    """Return the float64 nearest to ``value * 2**exponent``."""
    return quotient(value << max(exponent, 0), 1 << max(-exponent, 0))
