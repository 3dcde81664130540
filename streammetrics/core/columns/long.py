"""Numbers beyond float64: integers above 2**53 as the sum of two floats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.types import Array, Bools, Floats


@dataclass(frozen=True, slots=True, eq=False)
class LongNumbers:
    """A column of numbers (n,) or (n, d) that are exactly ``head + tail``.

    It replaces a float64 array if, and only if, a row holds an integer that float64 cannot
    represent. It never converts to a float64 array implicitly; `head` is the nearest one. Negation
    and absolute value are exact and return `LongNumbers`. A difference is rounded to the nearest
    float64.

    Attributes:
        head: The nearest float64 of each number.
        tail: The rounding error of `head`, at most half a unit in its last place.

    >>> column = LongNumbers(np.array([2.0**60, 3.0]), np.array([1.0, 0.0]))
    >>> column - np.array([2.0**60, 0.5])
    array([1. , 2.5])
    """

    head: Floats
    tail: Floats

    __array_ufunc__ = None  # makes arrays defer to the methods below

    def __array__(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("these numbers do not fit float64; take head and tail")

    def __len__(self) -> int:
        return len(self.head)

    def __getitem__(self, rows: slice | Array | tuple[slice, int]) -> LongNumbers:
        return LongNumbers(self.head[rows], self.tail[rows])

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the column."""
        return self.head.shape

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.head.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.head.size

    def reshape(self, *shape: int) -> LongNumbers:
        """Return the same numbers in another shape."""
        return LongNumbers(self.head.reshape(*shape), self.tail.reshape(*shape))

    def copy(self) -> LongNumbers:
        """Return a column that shares no memory with this one."""
        return LongNumbers(self.head.copy(), self.tail.copy())

    def __neg__(self) -> LongNumbers:
        return LongNumbers(-self.head, -self.tail)

    def __abs__(self) -> LongNumbers:
        return LongNumbers(np.abs(self.head), np.where(self.head < 0, -self.tail, self.tail))

    def __ge__(self, limit: float) -> Bools:
        return np.where(self.head == limit, self.tail >= 0, self.head > limit)

    def __sub__(self, other: Floats | LongNumbers) -> Floats:
        return _difference(self, other)

    def __rsub__(self, other: Any) -> Floats:
        return _difference(other, self)


def joined_numbers(parts: Sequence[Floats | LongNumbers]) -> Floats | LongNumbers:
    """Concatenate columns of numbers."""
    if not any(isinstance(part, LongNumbers) for part in parts):
        return np.concatenate(parts)
    heads, tails = zip(*map(halves, parts), strict=True)
    return LongNumbers(np.concatenate(heads), np.concatenate(tails))


def nearest(column: Floats | LongNumbers) -> Floats:
    """Return the nearest float64 of each number."""
    return column.head if isinstance(column, LongNumbers) else column


def halves(column: Floats | LongNumbers) -> tuple[Floats, Floats]:
    """Return the head and the tail of each number; the tail of a float64 array is zero."""
    if isinstance(column, LongNumbers):
        return column.head, column.tail
    return column, np.zeros(column.shape)


def _difference(x: Floats | LongNumbers, y: Floats | LongNumbers) -> Floats:
    """Return ``x - y``, rounded once.

    This is a correctly rounded sum of three numbers: tails are small integers, so their difference
    is exact. See Boldo, Melquiond, "Emulation of FMA and correctly rounded sums", IEEE Trans.
    Comput. 57 (2008).
    """
    (x_head, x_tail), (y_head, y_tail) = halves(x), halves(y)
    small, smaller = _two_sum(-y_head, x_tail - y_tail)
    large, left = _two_sum(x_head, small)
    odd, lost = _two_sum(left, smaller)
    # Rounding to odd keeps enough information for the last addition to break ties correctly.
    bits = odd.view(np.int64)
    away = np.where((lost > 0) == (odd > 0), 1, -1)
    bits += np.where((lost != 0) & (bits & 1 == 0), away, 0)
    return np.add(large, odd, out=large)


def _two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return the rounded sums and their errors: ``sum + error == a + b`` exactly (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)
