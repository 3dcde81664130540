"""Arrays of big integers: the fixed-point digits under :class:`ExactSum`.

A table of ``m`` integers in units of ``2**exponent`` is an int64 array ``(m, D)`` of base-2**32
digits, lowest first, the highest one signed. *Canonical* means that equal values have equal arrays:

- digits ``0 .. D-2`` are in ``[0, 2**32)`` and the highest is in ``[-2**31, 2**31)``;
- ``D`` is as small as the largest integer allows, and 0 when all are zero;
- ``exponent`` is a multiple of 32, as large as it can be, and 0 when all are zero.
"""

import functools
import math
import operator
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics.core import tuning

Floats: TypeAlias = NDArray[np.float64]
Digits: TypeAlias = NDArray[np.int64]

MASK = np.int64(0xFFFFFFFF)
# The lowest and the highest bit that sums of weight * x * y of doubles can have, with room
# for 2**160 rows; a state beyond them was not written by us.
LOWEST, HIGHEST = -3232, 3232
_MAX_REACHED = 1 << 61
_SHORT = 3  # digits that need only a few operations to be rounded


def canonical(digits: Digits, exponent: int) -> tuple[Digits, int]:
    """Canonical form of any int64 digits ``(m, W)``, each of magnitude at most ``2**62``."""
    return _canonical(list(digits.T), len(digits), exponent)


def _canonical(columns: Sequence[Digits], rows: int, exponent: int) -> tuple[Digits, int]:
    """Canonical form of digits in columns ``(m,)``, the lowest first."""
    lowest, widest, start = len(columns), 0, 0
    form = np.zeros((rows, 0), np.int64)
    while start < rows and columns:
        work = _carried(columns, start)
        low, high = _used(work)
        if low < lowest or high > widest:  # wider than those before, which mostly are the first
            lowest, widest, start = min(low, lowest), max(high, widest), 0
            form = np.empty((rows, widest - lowest), np.int64)
            continue
        work = work[lowest:widest]
        if 0 < widest <= len(columns):  # the columns above, which repeat its sign, are left out
            work[-1] -= (work[-1] >> 31) << 32
        for place, column in enumerate(work):  # three times as fast as all of them transposed
            form[start : start + tuning.DIGIT_ROWS, place] = column
        start += tuning.DIGIT_ROWS
    return frozen(form), exponent + 32 * lowest if widest else 0


def _carried(columns: Sequence[Digits], start: int) -> Digits:
    """Digits of a few rows, by column, in ``[0, 2**32)`` but for one more, the sign's."""
    work = np.zeros((len(columns) + 1, min(tuning.DIGIT_ROWS, columns[0].size - start)), np.int64)
    for place, column in enumerate(columns):
        work[place] += column[start : start + tuning.DIGIT_ROWS]
        np.right_shift(work[place], 32, out=work[place + 1])
        work[place] &= MASK
    return work


def _used(work: Digits) -> tuple[int, int]:
    """The columns that carried digits need, from and to, the highest signed; ``(W, 0)`` for 0."""
    top = len(work)
    signed = work[-1]
    while top > 1 and not (signed + (work[top - 2] >> 31)).any():
        top -= 1  # the column only repeated the sign of the one below, which now has it
        signed = work[top - 1] - ((work[top - 1] >> 31) << 32)
    low = 0
    while low < top and not work[low].any():
        low += 1
    return (low, top) if low < top else (len(work) - 1, 0)


def are_in_range(digits: Digits) -> bool:
    """Whether all digits ``(m, D)`` are such as canonical ones are."""
    if not digits.size:
        return True
    lower, highest = digits[:, :-1], digits[:, -1]
    within = int(highest.min()) >= -(2**31) and int(highest.max()) < 2**31
    return within and not (lower.size and (lower >> 32).any())


def are_shortest(digits: Digits) -> bool:
    """Whether digits in range need all their columns, the lowest and the highest."""
    width = digits.shape[1]
    if not width:
        return True
    if width > 1 and np.array_equal(digits[:, -1], -(digits[:, -2] >> 31)):
        return False  # the highest only repeats the sign of the one below
    return bool(digits[:, 0].any())


def is_canonical(row: Sequence[int]) -> bool:
    """Whether the digits of one integer are in range, and such that all are needed."""
    if not row:
        return True
    *lower, highest = row
    if not (row[0] and -(2**31) <= highest < 2**31):
        return False
    if lower and highest == -(lower[-1] >> 31):
        return False  # it only repeats the sign of the one below
    return all(0 <= digit < 2**32 for digit in lower)


def each_shortest(stack: Digits) -> bool:
    """Whether each of the tables ``(n, m, D)`` of digits in range needs all its columns."""
    width = stack.shape[2]
    if not width or not len(stack):
        return True
    if width > 1 and not (stack[:, :, -1] != -(stack[:, :, -2] >> 31)).any(axis=1).all():
        return False
    return bool(stack[:, :, 0].any(axis=1).all())


def small_integers(stack: Digits) -> list[list[int]]:
    """The integers of each of the tables ``(n, m, D)`` of canonical digits."""
    n, size, width = stack.shape
    if width <= 2:
        table = np.zeros((n, size), np.int64)
        for column in reversed(range(width)):
            table = (table << 32) + stack[:, :, column]
    else:
        table = np.zeros((n, size), object)
        for column in reversed(range(width)):
            table = table * 2**32 + stack[:, :, column].astype(object)
    integers: list[list[int]] = table.tolist()
    return integers


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


def each_from_integer(
    values: Sequence[int], exponents: Sequence[int]
) -> tuple[Digits, list[int], list[int]]:
    """The same of many: digits one after the other, how many each has, and their exponents."""
    parts, widths, lowest = [], [], []
    for value, exponent in zip(values, exponents, strict=True):
        if not value:
            widths.append(0)
            lowest.append(0)
            continue
        shift = exponent % 32
        value <<= shift  # noqa: PLW2901 - the loop's own
        zeros = ((value & -value).bit_length() - 1) // 32
        value >>= 32 * zeros  # noqa: PLW2901
        width = (value if value >= 0 else ~value).bit_length() // 32 + 1
        parts.append(value.to_bytes(4 * width, "little", signed=True))
        widths.append(width)
        lowest.append(exponent - shift + 32 * zeros)
    digits = np.frombuffer(b"".join(parts), "<u4").astype(np.int64)
    highest = np.cumsum([width for width in widths if width], dtype=np.intp) - 1
    digits[highest] -= (digits[highest] >> 31) << 32
    return digits, widths, lowest


def from_integers(values: Sequence[int], exponent: int) -> tuple[Digits, int]:
    """Canonical digits ``(m, D)`` of ``value * 2**exponent`` of each value."""
    if len(values) == 1:
        return from_integer(values[0], exponent)
    bits = functools.reduce(operator.or_, values, 0)  # which are in use by any
    if not bits:
        return frozen(np.zeros((len(values), 0), np.int64)), 0
    exponent, shift = exponent - exponent % 32, exponent % 32
    unused = ((bits << shift & -(bits << shift)).bit_length() - 1) // 32 * 32
    shift, exponent = shift - unused, exponent + unused
    moved = [value << shift if shift >= 0 else value >> -shift for value in values]
    width = max([(value if value >= 0 else ~value).bit_length() for value in moved]) // 32 + 1
    raw = b"".join([value.to_bytes(4 * width, "little", signed=True) for value in moved])
    digits = np.frombuffer(raw, "<u4").astype(np.int64).reshape(len(values), width)
    highest = digits[:, -1]
    highest -= highest >> 31 << 32
    return frozen(digits), exponent


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


class Totals:
    """A running table of exact integers, fed with float64 that are multiples of a known unit."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self._parts: dict[int, Any] = {}  # unit -> int, or int64 (m,)
        self._columns: dict[int, Digits] = {}  # digit position -> int64 (m,)
        self._additions = 0
        self._reached = 0  # what a digit may have grown to by rows added one by one

    def start(self, digits: Digits, exponent: int) -> None:
        """Begin with a table of canonical digits."""
        for place, column in enumerate(digits.T, exponent // 32):
            self._columns[place] = column.copy()

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

    def add_at(self, index: NDArray[np.intp], digits: Any, position: int, bits: int) -> None:
        """Add integers of at most so many bits, ``digits * 2**(32 * position)``, to entries."""
        self._reached += index.size << bits
        if self._reached > _MAX_REACHED:
            self._carry()
            self._reached = index.size << bits
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

    def integer(self) -> tuple[int, int]:
        """A single sum, an integer and the exponent of its unit."""
        base = min(self._parts, default=0)
        return sum(v << (u - base) for u, v in self._parts.items()), base

    def result(self) -> tuple[Digits, int]:
        """Canonical digits and exponent of several."""
        self._flush()
        low, high = min(self._columns, default=0), max(self._columns, default=0)
        rows = math.prod(self.shape)
        columns = [
            self._columns[position] if position in self._columns else np.zeros(rows, np.int64)
            for position in range(low, high + 1)
        ]
        return _canonical(columns, rows, 32 * low)
