"""Exact sums as integers, and their rounding to float64."""

from __future__ import annotations

import functools
import math
import operator
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from streammetrics.core.columns.long import LongNumbers
from streammetrics.core.errors import InvalidBatchError, StateFormatError
from streammetrics.core.kernels import kernels

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from streammetrics.core.types import Array, Arrays, Floats, Ints, Numeric, Places, ReadColumn

    Number = Fraction | float | None
    Digits: TypeAlias = Ints


_BEYOND = (1 << 1024) - (1 << 970)  # the smallest integer that rounds to infinity


def nearest(value: Number) -> float:
    """Return the nearest float of an exact value; ``None`` (undefined) gives nan."""
    if value is None:
        return math.nan
    try:
        if not isinstance(value, Fraction):
            return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    return quotient(*value.as_integer_ratio())


def quotient(above: int, below: int) -> float:
    """Return the nearest float of a fraction; the denominator must be positive."""
    try:
        return above / below  # integer division in Python rounds once
    except OverflowError:
        return math.inf if above > 0 else -math.inf


def are_finite(values: Sequence[int], unit: int, weight: int, parts: int) -> bool:
    """Whether all ``values * 2**unit / (weight / parts)`` round to finite floats."""
    longest = max(map(int.bit_length, values), default=0)
    if longest + unit + parts.bit_length() < 1023 + weight.bit_length():  # sufficient
        return True
    limit = (_BEYOND * weight) << max(-unit, 0)
    return all((abs(value) * parts) << max(unit, 0) < limit for value in values)


def root(value: Fraction) -> float:
    """Return the nearest float of the square root of an exact value."""
    numerator, denominator = value.as_integer_ratio()
    # An even shift for which the integer part of the root has at least 64 bits.
    shift = 2 * max(0, 65 + (denominator.bit_length() - numerator.bit_length()) // 2)
    quotient, left = divmod(numerator << shift, denominator)
    whole = math.isqrt(quotient)
    inexact = left != 0 or whole * whole != quotient
    # If there is a remainder, the last bit is made odd, so that rounding does not see a tie.
    return nearest_scaled(2 * whole + inexact, -(shift // 2 + 1))


def nearest_scaled(value: int, exponent: int) -> float:
    """Return the float64 nearest to ``value * 2**exponent``."""
    return quotient(value << max(exponent, 0), 1 << max(-exponent, 0))


LARGEST = 2.0**1023  # larger squares are clipped to this
# The lowest and the highest bit of sums of weight * x * y of doubles, with room for 2**160 rows.
# Saved states are always within these limits.
LOWEST, HIGHEST = -3232, 3232

SQUARED = 8, 16, 32, 64  # what `ExactSum.of_powers` names sums of w, w**2, w**2 x and w**2 x**2

_TERMS = 1 << 14  # rows per block of terms, which then stay in the cache


class ExactSum:
    r"""An immutable array of exact sums of float64, of any shape; ``()`` is a single sum.

    .. math:: S = 2^{e} \sum_d \mathrm{digits}_{\cdot, d} \, 2^{32 d}

    Rows are added through constructors such as `of`, `product`, `moments`, `grouped` and `counts`.
    Sums of equal shape can be added and subtracted. Values and weights must be finite, else the
    constructors raise `InvalidBatchError`. A weight is one float64 a row, or a whole number from 0
    to 2**53.

    A single sum is stored as a Python integer and the exponent of its unit. Several sums are stored
    as a table ``(m, D)`` of base-2**32 digits, lowest first, in units of ``2**exponent``. The form
    is canonical, so equal sums have equal tables:

    - digits ``0 .. D-2`` are in ``[0, 2**32)`` and the highest is in ``[-2**31, 2**31)``;
    - ``D`` is as small as the largest sum allows, and 0 if all are zero;
    - ``exponent`` is a multiple of 32, as large as possible, and 0 if all are zero.

    Memory: 8 bytes for each 32 bits between the highest and the lowest bit in use, mostly 16 to 40
    bytes a sum. Cost: for a long column about twice that of ``np.sum``, and four times for its
    squares.

    Args:
        shape: The shape of the array.
        digits: The canonical digits ``(m, D)`` of its m sums; ``None`` for a single sum.
        exponent: The exponent of the unit.
        value: The integer of a single sum.

    References: see `streammetrics.core.kernels.reference`.

    Examples:
        >>> import numpy as np
        >>> total = ExactSum.of(np.array([1e308, 1e308])) + ExactSum.of(np.array([-1e308]))
        >>> total.to_float()
        1e+308
        >>> ExactSum.of(np.array([1e16, 1.0, -1e16])) == ExactSum.of(np.array([1.0]))
        True
        >>> ExactSum.grouped(np.array([0, 2, 2]), 3, np.array([0.5, 0.1, 0.2])).to_float()
        array([0.5, 0. , 0.3])
    """

    __slots__ = ("_digits", "_exponent", "_value", "shape")

    def __init__(
        self, shape: tuple[int, ...], digits: Digits | None, exponent: int, value: int = 0
    ) -> None:
        self.shape = shape
        self._digits, self._exponent, self._value = digits, exponent, value

    # ---- from rows ----

    @classmethod
    def of(cls, values: Array | LongNumbers, weight: Array | None = None) -> Self:
        """Return the sums over axis 0 of `values` ``(n, *shape)``, times `weight` ``(n,)``."""
        return cls.product(values, None, weight)

    @classmethod
    def product(
        cls, x: Array | LongNumbers, y: Array | LongNumbers | None, weight: Array | None = None
    ) -> Self:
        """Return the sums over axis 0 of ``x * y``, both ``(n, *shape)``, times `weight` (n,)."""
        if isinstance(x, LongNumbers):
            return cls.product(x.head, y, weight) + cls.product(x.tail, y, weight)
        if isinstance(y, LongNumbers):
            return cls.product(y, x, weight)
        _check_shapes(x, y, weight)
        if x.ndim > 1:
            return cls._added(x, y, weight, None, 1, x.shape[1:])
        try:
            found = kernels.exact_sum(x, y, weight)
        except BufferError:
            found = kernels.exact_sum(*[None if c is None else _ready(c) for c in (x, y, weight)])
        if type(found) is int:
            raise _infinite(found)
        value, unit = found
        return cls((), None, unit, value)

    @classmethod
    def of_terms(
        cls,
        terms: Callable[..., Floats],
        columns: Sequence[ReadColumn],
        weight: Array | None = None,
    ) -> Self:
        """Return the sums of ``terms(*columns)``, which must return a new array.

        The term of a row must not depend on other rows, because terms are computed for one block of
        rows at a time, which stays in the cache.

        >>> ExactSum.of_terms(np.subtract, [np.array([3.0, 5.0]), np.array([1.0, 2.0])]).to_float()
        5.0
        """
        total = None
        for start in range(0, max(len(columns[0]), 1), _TERMS):
            rows = slice(start, start + _TERMS)
            values = terms(*[column[rows] for column in columns])
            part = cls.of(values, None if weight is None else weight[rows])
            total = part if total is None else total + part
        assert total is not None
        return total

    @classmethod
    def of_powers(
        cls,
        terms: Callable[..., Floats],
        columns: Sequence[ReadColumn],
        powers: Collection[int],
        *parameters: float,
        weight: Array | None = None,
    ) -> tuple[dict[int, Self], float, float]:
        """Return sums of powers of ``x = terms(*columns, *parameters)`` by exponent, and extremes.

        Each is multiplied by the row's `weight` w (n,). The exponents are among 1, 2 and 4. Each
        power but the first is the square of the previous one, rounded to float64 and clipped to
        `LARGEST`. With weights in float64 they may also be those of `SQUARED`, for the sums of w,
        w**2, w**2 x and w**2 x**2. The extremes are the smallest nonzero and the largest magnitude
        of the terms; both are 0 if all terms are 0.

        >>> sums, least, most = ExactSum.of_powers(np.negative, [np.array([1.0, 3.0])], (1, 2, 4))
        >>> {power: total.to_float() for power, total in sums.items()}, least, most
        ({1: -4.0, 2: 10.0, 4: 82.0}, 1.0, 3.0)
        """
        rows = len(columns[0])
        if rows <= _TERMS:
            return cls._powers(terms(*columns, *parameters), powers, weight)
        totals: dict[int, Self] = {}
        lowest, highest = math.inf, 0.0
        for start in range(0, rows, _TERMS):
            part = slice(start, start + _TERMS)
            values = terms(*[column[part] for column in columns], *parameters)
            own = None if weight is None else weight[part]
            found, least, most = cls._powers(values, powers, own)
            lowest, highest = min(lowest, least or math.inf), max(highest, most)
            totals = {p: totals[p] + found[p] for p in powers} if totals else found
        return totals, lowest if highest else 0.0, highest

    @classmethod
    def _powers(
        cls, values: Floats | LongNumbers, powers: Collection[int], weight: Array | None
    ) -> tuple[dict[int, Self], float, float]:
        near = values.head if isinstance(values, LongNumbers) else values
        if near.ndim > 1:
            each = [cls._powers(values[:, k], powers, weight) for k in range(near.shape[1])]
            if len(each) == 1:
                return each[0]
            sums = {p: cls.row_of([found[p] for found, _, _ in each]) for p in powers}
            sums |= {p: total for p, total in each[0][0].items() if p in SQUARED[:2]}
            leasts = [least for _, least, _ in each if least]
            return sums, min(leasts, default=0.0), max([most for _, _, most in each])
        mask = sum(powers)
        try:
            found = kernels.exact_powers(near, mask, weight)
        except BufferError:
            own = None if weight is None else _ready(weight)
            found = kernels.exact_powers(_ready(near), mask, own)
        if type(found) is int:
            raise _infinite(found)
        sums = {p: cls((), None, u, v) for p, (v, u) in zip(sorted(powers), found[2], strict=True)}
        if 1 in sums and near is not values:
            sums[1] = cls.of(values, weight)
            if SQUARED[2] in sums:
                sums[SQUARED[2]] = cls.product(values, weight, weight)
        return sums, found[0], found[1]

    @classmethod
    def moments(
        cls, columns: Sequence[ReadColumn], weight: Array | None = None
    ) -> tuple[list[Self], dict[tuple[int, int], Self]]:
        """Return the sum of each column, and of the product of each pair ``(i, j)``, ``i <= j``.

        >>> first, second = ExactSum.moments([np.array([1.0, 2.0]), np.array([3.0, 5.0])])
        >>> [s.to_float() for s in first], second[0, 1].to_float()
        ([3.0, 8.0], 13.0)
        """
        first = [cls.of(x, weight) for x in columns]
        pairs = [(i, j) for i in range(len(columns)) for j in range(i, len(columns))]
        return first, {(i, j): cls.product(columns[i], columns[j], weight) for i, j in pairs}

    @classmethod
    def grouped(
        cls,
        index: Places,
        size: int,
        values: Array,
        weight: Array | None = None,
        *,
        times: Array | None = None,
    ) -> Self:
        """Return the sums ``(size, ...)`` of values ``(n, ...)`` by group ``0 <= index < size``.

        Values are multiplied by `times`, of the same shape, and by each row's weight ``(n,)``.

        >>> index, points = np.array([0, 1, 1]), np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        >>> ExactSum.grouped(index, 2, points, np.array([1.0, 1.0, 0.5])).to_float()
        array([[1. , 2. ],
               [5.5, 7. ]])
        """
        _check_shapes(values, times, weight)
        if index.shape != values.shape[:1]:
            raise ValueError(f"{len(values)} rows have groups of shape {index.shape}")
        return cls._added(values, times, weight, index, size, values.shape[1:])

    @classmethod
    def _added(
        cls,
        x: Array,
        y: Array | None,
        weight: Array | None,
        index: Places | None,
        groups: int,
        shape: tuple[int, ...],
    ) -> Self:
        """Return the sums of ``x * y * weight`` by group and entry of a row."""
        low, high, rows = 0, 0, len(x)
        factors = [None if factor is None else _ready(factor) for factor in (x, y, weight)]
        for factor in factors:
            if factor is not None:
                least, most = _extent(factor)
                low, high = low + least - 53, high + most + 2
        columns = math.prod(shape)
        shape = shape if index is None else (groups, *shape)
        if not rows or not columns or not groups:
            if rows and columns and index is not None and index.size:
                raise IndexError(f"groups {index.min()} to {index.max()} of {groups}")
            return cls.zero(shape)
        low -= low % 32
        width = (high - low) // 32 + 4  # 96 bits above the largest number, for any number of rows
        digits = np.zeros((groups * columns, width), np.int64)
        if index is not None:
            index = np.require(index, np.int64, ["C", "A"])
        done = kernels.exact_add(digits, width, low, *factors, index, columns)
        if done < rows:
            raise IndexError(f"row {done} belongs to a group that is not among {groups}")
        return cls(shape, *canonical(digits, low))

    @classmethod
    def grouped_squares(cls, index: Places, size: int, values: Array) -> tuple[Self, Self]:
        """Return the sums of values (n,) by group, and of their squares, as `of_powers` has these.

        >>> sums = ExactSum.grouped_squares(np.array([0, 1, 1]), 2, np.array([1.0, 2.0, 3.0]))
        >>> [each.to_float().tolist() for each in sums]
        [[1.0, 5.0], [1.0, 13.0]]
        """
        values = _ready(values)
        if not size or not values.size:
            return cls.grouped(index, size, values), cls.grouped(index, size, values)
        least, most = _extent(values)
        # Of the smallest number, 2**(least + 52) or more, the square may be rounded to 0, or be cut
        # to 2**1023. Squares below 2**-1022 have the exponent of that.
        lowest, highest = min(max(2 * least + 52, -1074), 970), min(max(2 * most, -1021), 1024)
        ends = (least, most), (lowest, highest)
        tables: list[tuple[Digits, int]] = []
        for lowest, highest in ends:
            low = (lowest - 53) // 32 * 32
            tables.append((np.zeros((size, (highest + 2 - low) // 32 + 4), np.int64), low))
        given = [part for digits, low in tables for part in (digits, digits.shape[1], low)]
        index = np.require(index, np.int64, ["C", "A"])
        if (done := kernels.exact_add_squares(*given, values, index)) < values.size:
            raise IndexError(f"row {done} belongs to a group that is not among {size}")
        first, second = (cls((size,), *canonical(digits, low)) for digits, low in tables)
        return first, second

    @classmethod
    def counts(cls, integers: Ints) -> Self:
        """Return integers of any shape as sums."""
        if integers.shape == ():
            return cls.single(int(integers))
        table = np.zeros((integers.size, 3), np.int64)
        table[:, 0] = integers.ravel()
        return cls(integers.shape, *canonical(table, 0))

    # ---- from sums ----

    @classmethod
    def single(cls, value: int, unit: int = 0) -> Self:
        """Return a single sum, ``value * 2**unit``."""
        return cls((), None, unit, value)

    @classmethod
    def zero(cls, shape: tuple[int, ...] = ()) -> Self:
        """Return zeros."""
        if shape == ():
            return cls.single(0)
        return cls(shape, frozen(np.zeros((math.prod(shape), 0), np.int64)), 0)

    @classmethod
    def row_of(cls, every: Sequence[Self]) -> Self:
        """Return an array of single sums."""
        return cls((len(every),), *_from_integers(*_in_one_unit(every)))

    @classmethod
    def stacked(cls, every: Sequence[Self], shape: tuple[int, ...]) -> Self:
        """Return an array of sums of equal shape, stacked along a new first axis."""
        if not every:
            return cls.zero((0, *shape))
        if shape == ():
            return cls.row_of(every)
        tables, exponent = cls.aligned(every)
        return cls.of_digits(np.stack(tables), exponent)

    @classmethod
    def of_digits(cls, digits: Digits, exponent: int) -> Self:
        """Return the sums of int64 digits ``(*shape, W)``, at most ``2**62`` in magnitude."""
        *shape, width = digits.shape
        table = np.zeros((math.prod(shape), width + 2), np.int64)
        table[:, :width] = digits.reshape(-1, width) if width else 0
        return cls(tuple(shape), *canonical(table, exponent))

    @classmethod
    def carried(cls, digits: Digits, exponent: int, *, canonical: bool) -> Self:
        """Return the sums of carried digits ``(*shape, W)``, used as they are if `canonical`."""
        *shape, width = digits.shape
        if not canonical or not digits.size:
            return cls.of_digits(digits, exponent)
        return cls(tuple(shape), frozen(digits.reshape(-1, width)), exponent)

    @staticmethod
    def window(column: Floats, power: int) -> tuple[int, int]:
        """Return the exponent and number of digits that can hold a power of each number.

        Sums of them may overflow the highest digit.
        """
        lowest, highest = _extent(column)
        low = power * lowest // 32 * 32
        return low, max(power * highest - power + 1 - low, 0) // 32 + 1

    @staticmethod
    def placed(every: Sequence[ExactSum]) -> tuple[int, int, list[tuple[Any, int]]]:
        """Return the lowest exponent, a common width, and each sum's digits and first position."""
        ends = [(s.exponent, s.exponent + 32 * s.digits.shape[1]) for s in every if s.digits.size]
        low = min([first for first, _ in ends], default=0)
        width = max([(last - low) // 32 for _, last in ends], default=1)
        tables = []
        for sums in every:
            digits, first = sums.digits, (sums.exponent - low) // 32
            if not digits.size:
                digits, first = np.zeros((math.prod(sums.shape), 1), np.int64), 0
            tables.append((digits.reshape(*sums.shape, digits.shape[1]), first))
        return low, width, tables

    @staticmethod
    def aligned(every: Sequence[ExactSum]) -> tuple[list[Digits], int]:
        """Return the digits ``(*shape, W)`` of all at a common width and exponent, and that."""
        low, width, placed = ExactSum.placed(every)
        tables = []
        for digits, first in placed:
            table = digits
            if digits.shape[-1] != width:
                table = np.zeros((*digits.shape[:-1], width), np.int64)
                table[..., first : first + digits.shape[-1]] = digits
            tables.append(table)
        return tables, low

    # ---- arithmetic ----

    def __add__(self, other: Self) -> Self:
        if not isinstance(other, ExactSum):
            return NotImplemented
        if self._digits is not None or other._digits is not None:
            return self._plus(other, operator.add)
        unit, apart = self._exponent, other._exponent - self._exponent
        if apart >= 0:
            return type(self)((), None, unit, self._value + (other._value << apart))
        return type(self)((), None, unit + apart, (self._value << -apart) + other._value)

    def __sub__(self, other: Self) -> Self:
        return self._plus(other, operator.sub) if isinstance(other, ExactSum) else NotImplemented

    def __neg__(self) -> Self:
        return self.zero(self.shape) - self

    def _plus(self, other: Self, operation: Callable[[Numeric, Numeric], Numeric]) -> Self:
        if self.shape != other.shape:
            raise ValueError(f"sums of shapes {self.shape} and {other.shape} cannot be added")
        if self._digits is None and other._digits is None:
            (mine, theirs), low = _in_one_unit([self, other])
            return self.single(operation(mine, theirs), low)
        if not other.digits.shape[1]:  # all zero, as before the first rows
            return self
        if operation is operator.add and not self.digits.shape[1]:
            return other
        (ours, others), low = self.aligned([self, other])
        return self.of_digits(operation(ours, others), low)

    def plus_all(self, others: Sequence[Self]) -> Self:
        """Return the sum of this and others of the same shape."""
        every = [self, *others]
        if all(sums._digits is None for sums in every):
            values, low = _in_one_unit(every)
            return self.single(sum(values), low)
        return functools.reduce(operator.add, others, self)

    def times(self, factor: float) -> Self:
        """Return each sum times a finite `factor`, exactly.

        Raises `InvalidBatchError` if a product is too large or too small for a state.

        >>> import numpy as np
        >>> ExactSum.of(np.array([[0.1, 3.0]])).times(0.1).to_float()
        array([0.01, 0.3 ])
        """
        numerator, denominator = factor.as_integer_ratio()
        unit = 1 - denominator.bit_length()
        if self.shape == ():
            product = self.single(self._value * numerator, self._exponent + unit)
        else:
            # Digits start at multiples of 32 bits; the rest of the exponent scales the integer.
            unused = max((numerator & -numerator).bit_length() - 1, 0)
            position, shift = divmod(unit + unused, 32)
            integer, sign = abs(numerator) >> unused << shift, 1 if numerator > 0 else -1
            rows, width = self.digits.shape
            pieces = range(-(-integer.bit_length() // 16))
            table = np.zeros((rows, width + len(pieces) // 2 + 3), np.int64)
            for place in pieces:  # a digit times 16 bits leaves headroom for additions
                part = self.digits * (sign * (integer >> 16 * place & 0xFFFF))
                at = place // 2
                if place % 2:
                    table[:, at + 1 : at + 1 + width] += part >> 16
                    part = (part & 0xFFFF) << 16
                table[:, at : at + width] += part
            product = type(self)(self.shape, *canonical(table, self._exponent + 32 * position))
        low, width = product.exponent, product.digits.shape[1]
        if low < LOWEST or low + 32 * width > HIGHEST:
            raise InvalidBatchError(f"sums times {factor!r} are beyond what a state holds")
        return product

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ExactSum):
            return NotImplemented
        return (
            self.shape == other.shape
            and self.exponent == other.exponent
            and np.array_equal(self.digits, other.digits)
        )

    __hash__ = None  # type: ignore[assignment]

    # ---- parts ----

    def reshaped(self, shape: tuple[int, ...]) -> Self:
        """Return the same sums in another shape."""
        return type(self)(shape, self.digits, self.exponent)

    def __getitem__(self, index: object) -> Self:
        """Return the indexed sums, as in NumPy: ``[2]``, ``[order]``, ``[i, j]``."""
        if isinstance(index, int) and len(self.shape) == 1:
            return self.single(to_integer(self.digits[index]), self.exponent)
        entries = index if isinstance(index, tuple) else (index,)
        table = self.digits.reshape(*self.shape, self.digits.shape[1])
        digits = table[(*entries, slice(None))]
        if digits.ndim == 1:
            return self.single(to_integer(digits), self.exponent)
        return self.of_digits(digits, self.exponent)

    def regroup(self, index: Places, size: int) -> Self:
        """Return ``(size, ...)``: row ``i`` is added to row ``index[i]``, or dropped for -1.

        >>> sums = ExactSum.of(np.array([[1.0, 2.0, 4.0]]))
        >>> sums.regroup(np.array([1, -1, 1]), 2).to_float()
        array([0., 5.])
        """
        kept = np.flatnonzero(index >= 0)
        if kept.size < index.size:
            return self[kept].regroup(index[kept], size)
        shape, (rows, width) = self.shape[1:], self.digits.shape
        entries, places = math.prod(shape), np.asarray(index, np.int64)
        if entries != 1:
            places = (places[:, None] * entries + np.arange(entries)).reshape(-1)
        totals = np.zeros((size * entries, width + 3), np.int64)
        if width and rows:
            done = kernels.exact_merge(totals, width + 3, self.digits, width, places, 0)
            if done < rows:
                raise IndexError(f"groups {places.min()} to {places.max()} of {size * entries}")
        return type(self)((size, *shape), *canonical(totals, self.exponent))

    def sum(self, axis: int | tuple[int, ...] | None = None) -> Self:
        """Return the sum over one axis, several axes, or all axes."""
        axes = range(len(self.shape)) if axis is None else np.atleast_1d(axis).tolist()
        table = self.digits.reshape(*self.shape, self.digits.shape[1])
        digits = table.sum(axis=tuple(a % len(self.shape) for a in axes))
        sums = self.of_digits(digits, self.exponent)
        if sums.shape == ():
            return self.single(to_integer(sums.digits[0]), sums.exponent)
        return sums

    # ---- values ----

    @property
    def digits(self) -> Digits:
        """The canonical digits ``(m, D)`` of the m sums."""
        if self._digits is None:
            return _from_integers([self._value], self._exponent)[0]
        return self._digits

    @property
    def exponent(self) -> int:
        """The exponent of the unit of the lowest digits."""
        if self._digits is None:
            return _from_integers([self._value], self._exponent)[1]
        return self._exponent

    def integers(self) -> tuple[Numeric, int]:
        """Return the exact integers and the exponent of their unit: ``integer * 2**exponent``.

        An ``int`` for a single sum, otherwise an array of Python integers.
        """
        if self._digits is None:
            return self._value, self._exponent
        return np.array(_integers(self._digits), object).reshape(self.shape), self._exponent

    def to_float(self, exponent: int = 0) -> float | Floats:
        """Return the float64 nearest to each sum times ``2**exponent``, ties to even.

        It is infinite only if the sum itself is out of range. A ``float`` for a single sum,
        otherwise an array.
        """
        if self._digits is None:
            return nearest_scaled(self._value, self._exponent + exponent)
        values = np.empty(self.shape)
        kernels.exact_round(values, self._digits, self._exponent + exponent)
        return values

    def rounded(self, rows: slice, exponent: int = 0) -> Floats:
        """Return `to_float` for a slice of the rows of an array."""
        values = np.empty((len(range(*rows.indices(self.shape[0]))), *self.shape[1:]))
        digits = self.digits.reshape(*self.shape, self.digits.shape[1])[rows]
        kernels.exact_round(values, digits, self._exponent + exponent)
        return values

    def fraction(self) -> Fraction:
        """Return the exact value of a single sum."""
        if self.shape != ():
            raise ValueError(f"one fraction of sums of shape {self.shape}")
        value, unit = self.integers()
        return Fraction(value << unit) if unit >= 0 else Fraction(value, 1 << -unit)

    @property
    def any_negative(self) -> bool:
        """Whether any of the sums is negative."""
        if self._digits is None:
            return self._value < 0
        return bool((self._digits[:, -1:] < 0).any())  # the highest digit carries the sign

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.to_float()!r})"

    # ---- arrays of states ----

    @property
    def nbytes(self) -> int:
        """Bytes of the digits."""
        return self.digits.nbytes

    def arrays(self) -> dict[str, Array]:
        """Return the canonical arrays, which are equal if and only if the sums are."""
        if self._digits is None:
            digits, exponent = _from_integers([self._value], self._exponent)
        else:
            digits, exponent = self._digits, self._exponent
        return {"digits": digits, "exponent": exponent_array(exponent)}

    @classmethod
    def from_arrays(cls, shape: tuple[int, ...], arrays: Arrays) -> Self:
        """Return the sums of `arrays`; raise `StateFormatError` if they are invalid."""
        digits, exponent = read_digits(shape, arrays)
        if shape == ():
            return cls.single(to_integer(digits[0]), exponent)
        return cls(shape, digits, exponent)


# ---- digits ----


def canonical(digits: Digits, exponent: int) -> tuple[Digits, int]:
    """Return the canonical form of digits ``(m, W)``, carried in place.

    The highest column must have room for carries.
    """
    width = digits.shape[1]
    first, last = kernels.exact_carry(digits, width)
    form = np.ascontiguousarray(digits[:, first:last])
    if 0 < last < width:  # dropped columns only repeat the sign; move it to the last one kept
        form[:, -1] -= form[:, -1] >> 31 << 32
    return frozen(form), exponent + 32 * first if last else 0


def frozen(digits: Digits) -> Digits:
    """Make an array read-only and return it; no other reference to it may exist."""
    digits.flags.writeable = False
    return digits


def to_integer(row: Digits) -> int:
    """Return the Python integer of one row of canonical digits."""
    if row.size == 1:
        return int(row[0])
    low = row.astype("<u4").tobytes()  # two's complement: the cast keeps the low 32 bits
    return int.from_bytes(low, "little", signed=True)


def _integers(digits: Digits) -> list[int]:
    """Return the Python integers of canonical digits ``(m, D)``."""
    if digits.shape[1] == 1:
        return digits[:, 0].tolist()  # type: ignore[no-any-return]  # int64 gives integers
    return list(map(to_integer, digits))


def _from_integers(values: Sequence[int], exponent: int) -> tuple[Digits, int]:
    """Return the canonical digits ``(m, D)`` and the exponent of each ``value * 2**exponent``."""
    bits = functools.reduce(operator.or_, values, 0)  # the bits set in any of them
    if not bits:
        return frozen(np.zeros((len(values), 0), np.int64)), 0
    shift = exponent % 32
    unused = ((bits & -bits).bit_length() - 1 + shift) // 32 * 32
    shift, exponent = shift - unused, exponent - shift + unused
    moved = [value << shift if shift >= 0 else value >> -shift for value in values]
    width = max([(value if value >= 0 else ~value).bit_length() for value in moved]) // 32 + 1
    raw = b"".join([value.to_bytes(4 * width, "little", signed=True) for value in moved])
    digits = np.frombuffer(raw, "<u4").astype(np.int64).reshape(len(values), width)
    digits[:, -1] -= digits[:, -1] >> 31 << 32
    return frozen(digits), exponent


@functools.cache  # there are 203 exponents
def exponent_array(exponent: int) -> Ints:
    """Return the exponent of canonical digits as the array of a state."""
    array = np.array(exponent, np.int64)
    array.flags.writeable = False
    return array


def read_digits(shape: tuple[int, ...], arrays: Arrays) -> tuple[Digits, int]:
    """Return the digits ``(m, D)`` and the exponent of sums of a shape.

    Raises:
        StateFormatError: The arrays, which may be untrusted, are not canonical.
    """
    if arrays.keys() != {"digits", "exponent"}:
        raise StateFormatError(f"exact sums need digits and exponent, not {sorted(arrays)}")
    digits, exponents = arrays["digits"], arrays["exponent"]
    if digits.dtype != np.int64 or exponents.dtype != np.int64:
        raise StateFormatError("digits and exponent of exact sums must be int64")
    size = math.prod(shape)
    if digits.ndim != 2 or len(digits) != size or exponents.shape != ():
        raise StateFormatError(
            f"digits of exact sums of shape {shape} cannot have shape {digits.shape}"
        )
    width, exponent = digits.shape[1], int(exponents)
    if exponent % 32 or exponent < LOWEST or exponent + 32 * width > HIGHEST:
        raise StateFormatError(f"exponent {exponent} of exact sums is not one that we write")
    if not width or not size:
        if exponent or width:
            raise StateFormatError("digits of exact sums are not in canonical form")
        return frozen(np.zeros(digits.shape, np.int64)), 0
    lower, highest = digits[:, :-1], digits[:, -1]
    if highest.min() < -(2**31) or highest.max() >= 2**31 or (lower >> 32).any():
        raise StateFormatError("digits of exact sums are out of range")
    short = digits[:, 0].any()
    if width > 1:  # the highest column must not merely repeat the sign of the one below
        short &= (highest != -(lower[:, -1] >> 31)).any()
    if not short:
        raise StateFormatError("digits of exact sums are not in canonical form")
    return frozen(digits.copy()), exponent


# ---- rows ----


def exact_dot(*factors: Ints) -> int:
    """Return the sum of the products of two or three columns, beyond the range of int64 as well."""
    if not factors[0].size:
        return 0
    largest = [max(int(factor.max()), -int(factor.min())) for factor in factors]
    if factors[0].size * math.prod(largest) < 1 << 63:
        return int(math.prod(factors[1:]) @ factors[0])
    if max(largest) <= 1 << 53:
        value, unit = ExactSum.product(
            *[factor.astype(np.float64) for factor in factors]
        ).integers()
        return int(value) << unit if unit >= 0 else int(value) >> -unit
    return sum(map(math.prod, zip(*[factor.tolist() for factor in factors], strict=True)))


def _in_one_unit(every: Sequence[ExactSum]) -> tuple[list[int], int]:
    """Return single sums as integers of a common unit, and its exponent."""
    low = min([sums._exponent for sums in every])
    return [sums._value << sums._exponent - low for sums in every], low


def _extent(column: Floats) -> tuple[int, int]:
    found = kernels.exact_extent(column)
    if type(found) is int:
        raise _infinite(found // max(1, column[0].size))
    return found  # type: ignore[no-any-return]  # a pair


def _ready(column: Array) -> Floats:
    return np.require(column, np.float64, ["C", "A"])


def _infinite(row: int) -> InvalidBatchError:
    return InvalidBatchError(f"values to be summed must be finite: row {row} is not")


def _check_shapes(x: Array, y: Array | None, weight: Array | None) -> None:
    if y is not None and y.shape != x.shape:
        raise ValueError(f"columns differ in shape: {x.shape} and {y.shape}")
    if weight is not None and weight.shape != x.shape[:1]:
        raise ValueError(f"{len(x)} rows have a weight of shape {weight.shape}")
