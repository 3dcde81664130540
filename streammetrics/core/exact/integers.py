"""Exact products of whole numbers, beyond 64 bits where they must be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core import tuning

if TYPE_CHECKING:
    from streammetrics.core.types import Ints


_BITS = 21  # of each of three parts of an int64: a million products of parts add up in 64 bits


def exact_dot(a: Ints, b: Ints) -> int:
    """Return the sum of ``a * b`` as a Python integer, past the range of int64."""
    if not a.size:
        return 0
    largest_a, largest_b = (max(int(part.max()), -int(part.min())) for part in (a, b))
    if a.size * largest_a * largest_b < 1 << 63:
        return int(a @ b)
    total = 0
    for start in range(0, a.size, tuning.INTEGER_ROWS):
        lefts, rights = (_parts(side[start : start + tuning.INTEGER_ROWS]) for side in (a, b))
        for i, left in enumerate(lefts):
            for j, right in enumerate(rights):
                total += int(np.dot(left, right)) << _BITS * (i + j)
    return total


def _parts(values: Ints) -> tuple[Ints, Ints, Ints]:
    """Return three parts of the values, the lowest first; the highest has the sign."""
    low = (1 << _BITS) - 1
    return values & low, (values >> _BITS) & low, values >> 2 * _BITS
