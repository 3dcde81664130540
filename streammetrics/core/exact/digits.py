"""Arrays of big integers: the fixed-point digits of an `ExactSum`.

A table of ``m`` integers in units of ``2**exponent`` is an int64 array ``(m, D)`` of base-2**32
digits, lowest first, the highest one signed. Equal values have equal arrays if they are canonical:

- digits ``0 .. D-2`` are in ``[0, 2**32)`` and the highest is in ``[-2**31, 2**31)``;
- ``D`` is as small as the largest integer allows, and 0 when all are zero;
- ``exponent`` is a multiple of 32, as large as it can be, and 0 when all are zero.
"""

import functools
import operator
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics.core import tuning
from streammetrics.core.types import Ints

Floats: TypeAlias = NDArray[np.float64]
Digits: TypeAlias = Ints

MASK = np.int64(0xFFFFFFFF)
_LOW_BITS = np.dtype("<u4")
# The lowest and the highest bit of sums of weight * x * y of doubles, with room for 2**160 rows.
# No state that we write goes beyond them.
LOWEST, HIGHEST = -3232, 3232


def canonical(digits: Digits, exponent: int) -> tuple[Digits, int]:
    """Return the canonical form of int64 digits ``(m, W)``, none above ``2**62`` in magnitude."""
    return canonical_columns(list(digits.T), len(digits), exponent)


def canonical_columns(columns: Sequence[Digits], rows: int, exponent: int) -> tuple[Digits, int]:
    """Return the canonical form of digits in columns ``(m,)``, the lowest first."""
    lowest, widest, start = len(columns), 0, 0
    form = np.zeros((rows, 0), np.int64)
    while start < rows and columns:
        work = _carried(columns, start)
        low, high = _used(work)
        if low < lowest or high > widest:  # wider than the blocks before it: begin again
            lowest, widest, start = min(low, lowest), max(high, widest), 0
            form = np.empty((rows, widest - lowest), np.int64)
            continue
        work = work[lowest:widest]
        if 0 < widest <= len(columns):  # columns above only repeat the sign: it goes to this one
            work[-1] -= (work[-1] >> 31) << 32
        for place, column in enumerate(work):  # three times as fast as to transpose all
            form[start : start + tuning.DIGIT_ROWS, place] = column
        start += tuning.DIGIT_ROWS
    return frozen(form), exponent + 32 * lowest if widest else 0


def _carried(columns: Sequence[Digits], start: int) -> Digits:
    """Return the digits of some rows by column, in ``[0, 2**32)``, and one more, of the sign."""
    work = np.zeros((len(columns) + 1, min(tuning.DIGIT_ROWS, columns[0].size - start)), np.int64)
    for place, column in enumerate(columns):
        work[place] += column[start : start + tuning.DIGIT_ROWS]
        np.right_shift(work[place], 32, out=work[place + 1])
        work[place] &= MASK
    return work


def _used(work: Digits) -> tuple[int, int]:
    """Return the first column in use and the one past the last; ``(W, 0)`` if all are 0.

    The digits are carried, and the last column in use is to be signed.
    """
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
    """Whether all digits ``(m, D)`` are in the range of canonical ones."""
    if not digits.size:
        return True
    lower, highest = digits[:, :-1], digits[:, -1]
    within = int(highest.min()) >= -(2**31) and int(highest.max()) < 2**31
    return within and not (lower.size and (lower >> 32).any())


def are_shortest(digits: Digits) -> bool:
    """Whether digits in range need both their lowest and their highest column."""
    width = digits.shape[1]
    if not width:
        return True
    if width > 1 and np.array_equal(digits[:, -1], -(digits[:, -2] >> 31)):
        return False  # the highest only repeats the sign of the one below
    return bool(digits[:, 0].any())


def is_canonical(row: Sequence[int]) -> bool:
    """Whether the digits of one integer are canonical."""
    if not row:
        return True
    *lower, highest = row
    if not (row[0] and -(2**31) <= highest < 2**31):
        return False
    if lower and highest == -(lower[-1] >> 31):
        return False  # the highest only repeats the sign of the one below
    return not lower or (min(lower) >= 0 and max(lower) < 2**32)


def each_shortest(stack: Digits) -> bool:
    """Whether each of the tables ``(n, m, D)`` of digits in range needs all its columns."""
    width = stack.shape[2]
    if not width or not len(stack):
        return True
    if width > 1 and not (stack[:, :, -1] != -(stack[:, :, -2] >> 31)).any(axis=1).all():
        return False
    return bool(stack[:, :, 0].any(axis=1).all())


def small_integers(stack: Digits) -> list[list[int]]:
    """Return the integers of each of the tables ``(n, m, D)`` of canonical digits."""
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
    """Return an array that nobody else holds, made read-only."""
    digits.flags.writeable = False
    return digits


def from_integer(value: int, exponent: int) -> tuple[Digits, int]:
    """Return the canonical digits ``(1, D)`` and the exponent of ``value * 2**exponent``."""
    if value == 0:
        return frozen(np.zeros((1, 0), np.int64)), 0
    value, exponent = value << exponent % 32, exponent - exponent % 32
    zeros = ((value & -value).bit_length() - 1) // 32
    value, exponent = value >> 32 * zeros, exponent + 32 * zeros
    row = []
    while not -(1 << 31) <= value < 1 << 31:
        row.append(value & 0xFFFFFFFF)
        value >>= 32
    row.append(value)
    return frozen(np.array([row], np.int64)), exponent


def each_from_integer(
    values: Sequence[int], exponents: Sequence[int]
) -> tuple[Digits, list[int], list[int]]:
    """Return the same of many: digits end to end, how many each has, and their exponents."""
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
    """Return the canonical digits ``(m, D)`` and the exponent of each ``value * 2**exponent``."""
    if len(values) == 1:
        return from_integer(values[0], exponent)
    bits = functools.reduce(operator.or_, values, 0)  # the bits that any of them has
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
    """Return the Python integer of one row of canonical digits."""
    low = row.astype(_LOW_BITS).tobytes()  # two's complement: the cast keeps the low 32 bits
    return int.from_bytes(low, "little", signed=True)
