"""Fractions to the nearest float, and their roots."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from streammetrics.core.exact import floats

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    import numpy as np
    from numpy.typing import NDArray

    Value = float | NDArray[np.float64]
    Number = Fraction | float | None

_BEYOND = (1 << 1024) - (1 << 970)  # the smallest number that is rounded to infinity


def nearest(value: Number) -> float:
    """Return the nearest float of an exact value; ``None``, which is undefined, gives nan."""
    if value is None:
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def are_finite(values: Sequence[int], unit: int, weight: int, parts: int) -> bool:
    """Whether ``values * 2**unit / (weight / parts)`` are finite, as means of finite floats are."""
    longest = max(map(int.bit_length, values), default=0)
    if longest + unit + parts.bit_length() < 1023 + weight.bit_length():  # by far
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
    # An odd last bit stands for whatever is left, so that rounding to nearest sees it.
    return floats.nearest(2 * whole + inexact, -(shift // 2 + 1))
