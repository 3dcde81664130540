"""Arrays of big integers: the fixed-point digits under :class:`ExactSum`.

A table of ``m`` integers in units of ``2**exponent`` is an int64 array ``(m, D)`` of base-2**32
digits, lowest first, the highest one signed. *Canonical* means that equal values have equal arrays:

- digits ``0 .. D-2`` are in ``[0, 2**32)`` and the highest is in ``[-2**31, 2**31)``;
- ``D`` is as small as the largest integer allows, and 0 when all are zero;
- ``exponent`` is a multiple of 32, as large as it can be, and 0 when all are zero.
"""

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Digits: TypeAlias = NDArray[np.int64]

MASK = np.int64(0xFFFFFFFF)
# The lowest and the highest bit that sums of weight * x * y of doubles can have, with room
# for 2**160 rows; a state beyond them was not written by us.
LOWEST, HIGHEST = -3232, 3232
# Each addition to a part is below 2**54, so this many cannot overflow int64.
_MAX_ADDITIONS = 256
_MAX_PARTS = 8


def canonical(digits: Digits, exponent: int) -> tuple[Digits, int]:
    """Canonical form of any int64 digits ``(m, W)``, each of magnitude at most ``2**62``."""
    rows, width = digits.shape
    work = np.zeros((rows, width + 1), np.int64)
    work[:, :width] = digits
    for column in range(width):
        work[:, column + 1] += work[:, column] >> 32
        work[:, column] &= MASK
    top, low = width + 1, 0
    while top > 1 and bool(np.all(work[:, top - 1] == -(work[:, top - 2] >> 31))):
        top -= 1  # the column only repeated the sign of the one below, which now carries it
        work[:, top - 1] -= (work[:, top - 1] >> 31) << 32
    if not work[:, :top].any():
        return frozen(np.zeros((rows, 0), np.int64)), 0
    while not work[:, low].any():
        low += 1
    return frozen(np.ascontiguousarray(work[:, low:top])), exponent + 32 * low


def frozen(digits: Digits) -> Digits:
    """Make an array that nobody else holds read-only."""
    digits.flags.writeable = False
    return digits


def from_integer(value: int, exponent: int) -> tuple[Digits, int]:
    """Canonical digits ``(1, D)`` of ``value * 2**exponent``."""
    if value == 0:
        return frozen(np.zeros((1, 0), np.int64)), 0
    value, exponent = value << exponent % 32, exponent - exponent % 32
    zeros = ((value & -value).bit_length() - 1) // 32
    value, exponent = value >> 32 * zeros, exponent + 32 * zeros
    width = (value if value >= 0 else ~value).bit_length() // 32 + 1
    raw = np.frombuffer(value.to_bytes(4 * width, "little", signed=True), "<u4")
    digits = raw.astype(np.int64)
    digits[-1] -= (digits[-1] >> 31) << 32
    return frozen(digits.reshape(1, width)), exponent


def to_integer(row: Digits) -> int:
    """The Python integer of one row of canonical digits."""
    low = row.astype("<u4").tobytes()  # two's complement: the cast keeps the low 32 bits
    return int.from_bytes(low, "little", signed=True)


def nearest(value: int, exponent: int) -> float:
    """Nearest float64 of ``value * 2**exponent``: Python's division of integers rounds once."""
    try:
        return (value << max(exponent, 0)) / (1 << max(-exponent, 0))
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def rounded(digits: Digits, exponent: int) -> Floats:
    """Nearest float64 of every row, ties to even, infinite only where the value overflows."""
    rows, width = digits.shape
    if rows == 0 or width == 0:
        return np.zeros(rows)
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


class Totals:
    """A running table of exact integers, fed with float64 that are multiples of a known unit."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self._parts: dict[int, Any] = {}  # unit -> int, or int64 (m,)
        self._columns: dict[int, Digits] = {}  # digit position -> int64 (m,)
        self._additions = 0

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
        if self._additions >= _MAX_ADDITIONS or len(self._parts) > _MAX_PARTS:
            self._flush()

    def add_integer(self, value: int, unit: int) -> None:
        """Add ``value * 2**unit`` to a single sum."""
        self._parts[unit] = self._parts.get(unit, 0) + value

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
        self._parts.clear()
        self._additions = 0

    def result(self) -> tuple[Digits, int]:
        """Canonical digits and exponent."""
        if self.shape == ():
            base = min(self._parts, default=0)
            return from_integer(sum(v << (u - base) for u, v in self._parts.items()), base)
        self._flush()
        low, high = min(self._columns, default=0), max(self._columns, default=0)
        digits = np.zeros((math.prod(self.shape), high - low + 1), np.int64)
        for position, column in self._columns.items():
            digits[:, position - low] = column
        return canonical(digits, 32 * low)
