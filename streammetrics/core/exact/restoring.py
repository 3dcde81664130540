"""Digits of exact numbers read from the arrays of states, which may come from anyone."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.errors import StateFormatError
from streammetrics.core.exact.digits import (
    HIGHEST,
    LOWEST,
    are_in_range,
    are_shortest,
    each_shortest,
    frozen,
    is_canonical,
)

if TYPE_CHECKING:
    from streammetrics.core.exact.digits import Digits
    from streammetrics.core.types import Arrays, Ints

_INT64 = np.dtype(np.int64)
_ARRAYS = frozenset({"digits", "exponent"})


def read_digits(shape: tuple[int, ...], arrays: Arrays) -> tuple[Digits, int]:
    """Return the digits ``(m, D)`` and the exponent of numbers of a shape.

    Raises `StateFormatError` unless they are canonical.
    """
    digits, exponent = _digits_of(arrays)
    if digits.ndim != 2 or len(digits) != math.prod(shape) or exponent.shape != ():
        raise StateFormatError(
            f"digits of exact sums of shape {shape} cannot have shape {digits.shape}"
        )
    low, width = int(exponent), digits.shape[1]
    if low % 32 or low < LOWEST or low + 32 * width > HIGHEST:
        raise StateFormatError(f"exponent {low} of exact sums is not one that we write")
    if shape == ():  # Python's integers are quicker for one
        right = is_canonical(*digits.tolist())
    elif not are_in_range(digits):
        raise StateFormatError("digits of exact sums are out of range")
    else:
        right = are_shortest(digits)
    if not right or (low and not width):
        raise StateFormatError("digits of exact sums are not in canonical form")
    return frozen(digits.copy(order="C")), low


def each_digits(shape: tuple[int, ...], stacks: Arrays, n: int) -> tuple[Digits, list[int]]:
    """Return the digits ``(n, m, D)`` and the exponents of each of `n` states, as `read_digits`."""
    digits, exponents = _digits_of(stacks)
    size = math.prod(shape)
    if digits.ndim != 3 or digits.shape[1] != size or exponents.shape != (n,):
        raise StateFormatError(
            f"digits of exact sums of shape {shape} cannot have shape {digits.shape[1:]}"
        )
    width = digits.shape[2]
    low, high = int(exponents.min()), int(exponents.max())
    if (exponents % 32).any() or low < LOWEST or high + 32 * width > HIGHEST:
        raise StateFormatError(f"exponents {low} to {high} of exact sums are not ours")
    if not are_in_range(digits.reshape(n * size, width)):
        raise StateFormatError("digits of exact sums are out of range")
    if not each_shortest(digits) or (not width and (low or high)):
        raise StateFormatError("digits of exact sums are not in canonical form")
    return frozen(digits.copy()), exponents.tolist()


def _digits_of(arrays: Arrays) -> tuple[Digits, Ints]:
    """Return the digits and exponents that a state names."""
    if arrays.keys() != _ARRAYS:
        raise StateFormatError(f"exact sums need digits and exponent, not {sorted(arrays)}")
    digits, exponents = arrays["digits"], arrays["exponent"]
    if digits.dtype != _INT64 or exponents.dtype != _INT64:
        raise StateFormatError("digits and exponent of exact sums must be int64")
    return digits, exponents
