"""Exact sums of few rows in Python's integers: folds have more to set up than to add.

A float64 is an integer of at most 53 bits times a power of two. Sums and products of such are
integers again once all are shifted to the lowest of the powers.
"""

from __future__ import annotations

from operator import lshift, mul
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streammetrics.core.errors import InvalidBatchError

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEW = 64  # rows up to which this is faster, twice to three times


class Column(NamedTuple):
    """The value of each row, ``integers * 2**(exponents - unit)``."""

    integers: list[int]
    exponents: NDArray[np.int32]
    unit: int

    @classmethod
    def of(cls, values: NDArray[Any]) -> Column:
        """The same values (n,) as float64; raises where one is not finite."""
        values = np.asarray(values, np.float64)
        if not np.isfinite(values).all():
            raise InvalidBatchError("values to be summed must be finite")
        fractions, exponents = np.frexp(values)
        return cls((fractions * 2.0**53).astype(np.int64).tolist(), exponents, 53)

    def times(self, other: Column) -> Column:
        """The products of each row's values."""
        return Column(
            list(map(mul, self.integers, other.integers)),
            self.exponents + other.exponents,
            self.unit + other.unit,
        )

    def total(self) -> tuple[int, int]:
        """The sum, an integer and the exponent of its unit."""
        low = int(self.exponents.min())
        shifts = (self.exponents - low).tolist()
        return sum(map(lshift, self.integers, shifts)), low - self.unit
