"""Totals: exact integers that floats are added to one by one, made canonical at the end."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.exact.digits import MASK, Digits, canonical_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MAX_REACHED = 1 << 61


class Totals:
    """A running table of exact integers, fed with float64 that are multiples of a known unit."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self._parts: dict[int, Any] = {}  # unit -> int, or int64 (m,)
        self._columns: dict[int, Digits] = {}  # digit position -> int64 (m,)
        self._additions = 0
        self._reached = 0  # what a digit may have grown to by rows added one by one

    @classmethod
    def of_digits(cls, shape: tuple[int, ...], digits: Digits, exponent: int) -> Totals:
        """Canonical digits as they are: to be copied before anything is added to them."""
        totals = cls(shape)
        totals._columns = dict(enumerate(digits.T, exponent // 32))
        totals._reached = 1 << 32
        return totals

    def copy(self, shape: tuple[int, ...]) -> Totals:
        """The same digits, to go on with in a shape of that size."""
        twin = Totals(shape)
        twin._columns = {position: column.copy() for position, column in self._columns.items()}
        twin._reached = self._reached
        return twin

    def add(self, values: Any, unit: int, shift: int) -> None:
        """Add ``values * 2**shift``: multiples of ``2**unit``, at most ``2**54`` of them."""
        at = unit + shift
        if self.shape == ():
            self.add_integer(int(math.ldexp(values, -unit)), at)
            return
        whole = np.multiply(values, 2.0**-unit).astype(np.int64).ravel()
        if at in self._parts:
            self._parts[at] += whole
        else:
            self._parts[at] = whole
        self._additions += 1
        if self._additions >= tuning.PENDING_ADDITIONS or len(self._parts) > tuning.PENDING_PARTS:
            self._flush()

    def add_integer(self, value: int, unit: int) -> None:
        """Add ``value * 2**unit`` to a single sum."""
        self._parts[unit] = self._parts.get(unit, 0) + value

    def add_at(self, index: NDArray[np.intp], digits: object, position: int, bits: int) -> None:
        """Add integers of at most so many bits, ``digits * 2**(32 * position)``, to entries."""
        self._add_at(index, {position: digits}, index.size << bits)

    def add_totals(self, index: NDArray[np.intp], other: Totals, most: int) -> None:
        """Add the digits of other totals to the entries of an index, to one at most so many."""
        if other._reached * most > _MAX_REACHED:
            other = other.copy(other.shape)
            other._carry()
        self._add_at(index, other._columns, other._reached * most)

    def _add_at(self, index: NDArray[np.intp], columns: dict[int, Any], reached: int) -> None:
        self._reached += reached
        if self._reached > _MAX_REACHED:
            self._carry()
            self._reached += reached
        for position, digits in columns.items():
            if position not in self._columns:
                self._columns[position] = np.zeros(math.prod(self.shape), np.int64)
            np.add.at(self._columns[position], index, digits)

    def _carry(self) -> None:
        """Bring all digits below 2**32, with the sign in one more column where it is needed."""
        low, high = min(self._columns, default=0), max(self._columns, default=-1)
        for position in range(low, high + 1):
            column = self._columns.get(position)
            if column is None or not (carry := column >> 32).any():
                continue
            column &= MASK
            if position + 1 in self._columns:
                self._columns[position + 1] += carry
            else:
                self._columns[position + 1] = carry
        self._reached = 1 << 32

    def _flush(self) -> None:
        """Move the parts to the digit columns; each gets less than 2**34 in magnitude a time."""
        for unit, part in self._parts.items():
            position, left = divmod(unit, 32)
            low, high = (part & MASK) << left, (part >> 32) << left
            middle = (low >> 32) + (high & MASK)
            for offset, column in enumerate((low & MASK, middle, high >> 32)):
                if position + offset in self._columns:
                    self._columns[position + offset] += column
                else:
                    self._columns[position + offset] = column
        self._reached += len(self._parts) << 34
        self._parts.clear()
        self._additions = 0

    def integer(self) -> tuple[int, int]:
        """A single sum, an integer and the exponent of its unit."""
        base = min(self._parts, default=0)
        return sum(v << (u - base) for u, v in self._parts.items()), base

    def flushed(self) -> Totals:
        """The same, all of it in digits, and from then on never changed."""
        self._flush()
        return self

    @property
    def nbytes(self) -> int:
        """Bytes of the digits."""
        return sum(column.nbytes for column in self._columns.values())

    def result(self) -> tuple[Digits, int]:
        """Canonical digits and exponent of several."""
        self._flush()
        low, high = min(self._columns, default=0), max(self._columns, default=0)
        rows = math.prod(self.shape)
        columns = [
            self._columns[position] if position in self._columns else np.zeros(rows, np.int64)
            for position in range(low, high + 1)
        ]
        return canonical_columns(columns, rows, 32 * low)
