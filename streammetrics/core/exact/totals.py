"""Totals: running sums as exact integers, made canonical once at the end."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.exact.digits import MASK, Digits, canonical_columns

if TYPE_CHECKING:
    from streammetrics.core.types import Array, Numeric, Places

_MAX_REACHED = 1 << 61


class Totals:
    """A running table of exact integers, to which multiples of known units are added."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self._parts: dict[int, Numeric] = {}  # unit -> int, or int64 (m,)
        self._columns: dict[int, Digits] = {}  # digit position -> int64 (m,)
        self._additions = 0
        self._reached = 0  # no digit is larger in magnitude

    @classmethod
    def of_digits(cls, shape: tuple[int, ...], digits: Digits, exponent: int) -> Totals:
        """Return totals that share canonical digits: copy them before anything is added."""
        totals = cls(shape)
        totals._columns = dict(enumerate(digits.T, exponent // 32))
        totals._reached = 1 << 32
        return totals

    def copy(self, shape: tuple[int, ...]) -> Totals:
        """Return totals of the same digits, in another shape of that size, to add to."""
        twin = Totals(shape)
        twin._columns = {position: column.copy() for position, column in self._columns.items()}
        twin._reached = self._reached
        return twin

    def add(self, values: Array, unit: int, shift: int) -> None:
        """Add ``values * 2**shift`` to several sums; values are at most 2**54 times ``2**unit``."""
        at = unit + shift
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

    def add_at(self, index: Places, digits: object, position: int, bits: int) -> None:
        """Add ``digits * 2**(32 * position)``, integers of at most so many bits, to entries."""
        self._add_at(index, {position: digits}, index.size << bits)

    def add_totals(self, index: Places, other: Totals, most: int) -> None:
        """Add entry ``i`` of other totals to entry ``index[i]``; none gets more than `most`."""
        if other._reached * most > _MAX_REACHED:
            other = other.copy(other.shape)
            other._carry()
        self._add_at(index, other._columns, other._reached * most)

    def _add_at(self, index: Places, columns: dict[int, Numeric], reached: int) -> None:
        self._reached += reached
        if self._reached > _MAX_REACHED:
            self._carry()
            self._reached += reached
        for position, digits in columns.items():
            if position not in self._columns:
                self._columns[position] = np.zeros(math.prod(self.shape), np.int64)
            np.add.at(self._columns[position], index, digits)

    def _carry(self) -> None:
        """Bring all digits to ``[0, 2**32)``, with the sign in one more column if it needs one."""
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
        """Move the parts to the columns of digits, which grow by less than 2**34 for each part."""
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
        """Return a single sum, an integer and the exponent of its unit."""
        base = min(self._parts, default=0)
        return sum(v << (u - base) for u, v in self._parts.items()), base

    def flushed(self) -> Totals:
        """Return these totals with all of them in digits; nothing may be added from then on."""
        self._flush()
        return self

    @property
    def nbytes(self) -> int:
        """Bytes of the digits."""
        return sum(column.nbytes for column in self._columns.values())

    def result(self) -> tuple[Digits, int]:
        """Return the canonical digits and the exponent of several sums."""
        self._flush()
        low, high = min(self._columns, default=0), max(self._columns, default=0)
        rows = math.prod(self.shape)
        columns = [
            self._columns[position] if position in self._columns else np.zeros(rows, np.int64)
            for position in range(low, high + 1)
        ]
        return canonical_columns(columns, rows, 32 * low)
