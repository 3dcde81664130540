"""Arrays of exact numbers, each an integer times a power of two."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from operator import add, sub
from typing import TYPE_CHECKING, Self

import numpy as np

from streammetrics.core.exact.digits import (
    canonical,
    each_from_integer,
    from_integers,
    frozen,
    small_integers,
    to_integer,
)
from streammetrics.core.exact.restoring import each_digits, read_digits
from streammetrics.core.exact.rounding import all_nearest, rounded
from streammetrics.core.exact.totals import Totals
from streammetrics.core.state.arrays import Stack

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streammetrics.core.exact.digits import Digits, Floats
    from streammetrics.core.types import Array, Arrays, Ints, Numeric, Places


_LONG = 64  # rows that `sum` adds up side by side, as one long row
SMALL = 64  # numbers up to which Python's integers are quicker than a table of digits


class ExactNumbers:
    """An immutable array of exact numbers of any shape, ``()`` for a single one.

    They are held as a table of digits, see `streammetrics.core.exact.digits`. Few of them, up to
    `SMALL`, may be held as Python integers and the exponent of their unit instead; digits are made
    of these when somebody asks for them. Numbers of equal shape can be added and subtracted.
    """

    __slots__ = ("_few", "_form", "shape")

    def __init__(self, shape: tuple[int, ...], digits: Digits, exponent: int) -> None:
        self.shape = shape
        self._form: tuple[Digits, int] | Totals | None = (digits, exponent)
        self._few: tuple[list[int], int] | None = None

    @classmethod
    def single(cls, value: int, unit: int = 0) -> Self:
        """Return one number, ``value * 2**unit``."""
        number = object.__new__(cls)
        number.shape, number._form, number._few = (), None, ([value], unit)
        return number

    @classmethod
    def few(cls, shape: tuple[int, ...], values: list[int], unit: int) -> Self:
        """Return numbers of a shape: in C order ``value * 2**unit`` of each value."""
        numbers = object.__new__(cls)
        numbers.shape, numbers._form, numbers._few = shape, None, (values, unit)
        return numbers

    @classmethod
    def of_totals(cls, totals: Totals) -> Self:
        """Return several numbers; digits are made of their totals when they are asked for."""
        numbers = object.__new__(cls)
        numbers.shape, numbers._form, numbers._few = totals.shape, totals.flushed(), None
        return numbers

    @classmethod
    def zero(cls, shape: tuple[int, ...] = ()) -> Self:
        """Return zeros."""
        size = math.prod(shape)
        if size <= SMALL:
            return cls.few(shape, [0] * size, 0)
        return cls(shape, frozen(np.zeros((size, 0), np.int64)), 0)

    @property
    def _canonical(self) -> tuple[Digits, int]:
        form = self._form
        if isinstance(form, tuple):
            return form
        if form is None:
            assert self._few is not None
            made = from_integers(*self._few)
        else:
            made = form.result()
        self._form = made
        return made

    @property
    def totals(self) -> Totals:
        """The totals of several numbers, carried or not: copy them before anything is added."""
        form = self._form
        if isinstance(form, Totals):
            return form
        return Totals.of_digits(self.shape, *self._canonical)

    @property
    def digits(self) -> Digits:
        """The canonical digits ``(m, D)`` of the m numbers."""
        return self._canonical[0]

    @property
    def exponent(self) -> int:
        """The exponent of the unit of the lowest digits."""
        return self._canonical[1]

    def reshaped(self, shape: tuple[int, ...]) -> Self:
        """Return the same numbers in another shape."""
        numbers = object.__new__(type(self))
        form = self._form if isinstance(self._form, Totals) else self._canonical  # made once, here
        numbers.shape, numbers._form, numbers._few = shape, form, self._few
        return numbers

    def __add__(self, other: Self) -> Self:
        return self._plus(other, add) if isinstance(other, ExactNumbers) else NotImplemented

    def __sub__(self, other: Self) -> Self:
        return self._plus(other, sub) if isinstance(other, ExactNumbers) else NotImplemented

    def __neg__(self) -> Self:
        return self.zero(self.shape) - self

    def _plus(self, other: Self, operation: Callable[[Numeric, Numeric], Numeric]) -> Self:
        if self.shape != other.shape:
            raise ValueError(f"sums of shapes {self.shape} and {other.shape} cannot be added")
        mine, theirs = self._few, other._few
        if self.shape == ():
            mine, theirs = mine or self._counted(), theirs or other._counted()
        if mine is not None and theirs is not None:
            (ours, unit), (others, other_unit) = mine, theirs
            if unit > other_unit:
                ours = [value << unit - other_unit for value in ours]
                unit = other_unit
            elif unit < other_unit:
                others = [value << other_unit - unit for value in others]
            return self.few(self.shape, list(map(operation, ours, others)), unit)
        if not other.digits.shape[1]:  # all zero, as sums are before the first rows
            return self
        if operation is add and not self.digits.shape[1]:
            return other
        low = min(self.exponent, other.exponent)
        left, right = (self.exponent - low) // 32, (other.exponent - low) // 32
        rows, width = self.digits.shape
        other_width = other.digits.shape[1]
        digits = np.zeros((rows, max(left + width, right + other_width)), np.int64)
        digits[:, left : left + width] = self.digits
        part = digits[:, right : right + other_width]
        part[...] = operation(part, other.digits)
        return type(self)(self.shape, *canonical(digits, low))

    def plus_all(self, others: Sequence[Self]) -> Self:
        """Return the sum of this and others of its shape."""
        if self.shape != () or len(others) == 1:
            return functools.reduce(add, others, self)
        every = [number._counted() for number in (self, *others) if number.shape == ()]
        if len(every) <= len(others):
            raise ValueError("a single sum and several cannot be added")
        low = min([unit for _, unit in every])
        return self.single(sum([value << unit - low for (value,), unit in every]), low)

    def _counted(self) -> tuple[list[int], int]:
        """Return a single number as a list of its integer, and the exponent of its unit."""
        few = self._few
        if few is None:
            digits, exponent = self._canonical
            few = self._few = [to_integer(digits[0])], exponent
        return few

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ExactNumbers):
            return NotImplemented
        return (
            self.shape == other.shape
            and self.exponent == other.exponent
            and np.array_equal(self.digits, other.digits)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.to_float()!r})"

    def _table(self) -> Digits:
        """Return the digits ``(*shape, D)``."""
        return self.digits.reshape(*self.shape, self.digits.shape[1])

    def _like(self, digits: Digits) -> Self:
        """Return the numbers of digits ``(*shape, D)`` with this exponent."""
        return self.of_digits(digits, self.exponent)

    @classmethod
    def of_digits(cls, digits: Digits, exponent: int) -> Self:
        """Return the numbers of int64 digits ``(*shape, W)``, none above ``2**62`` in magnitude."""
        shape = digits.shape[:-1]
        return cls(shape, *canonical(digits.reshape(math.prod(shape), digits.shape[-1]), exponent))

    @staticmethod
    def aligned(every: Sequence[ExactNumbers]) -> tuple[list[Digits], int]:
        """Return the digits ``(*shape, W)`` of all, of one width and one exponent; and that."""
        ranges = [(sums.exponent, sums.digits.shape[1]) for sums in every if sums.digits.size]
        low = min((exponent for exponent, _ in ranges), default=0)
        width = max(((e - low) // 32 + size for e, size in ranges), default=0)
        tables = []
        for sums in every:
            digits, first = sums.digits, (sums.exponent - low) // 32 if sums.digits.size else 0
            if digits.shape[1] != width:
                digits = np.zeros((len(digits), width), np.int64)
                digits[:, first : first + sums.digits.shape[1]] = sums.digits
            tables.append(digits.reshape(*sums.shape, width))
        return tables, low

    def __getitem__(self, index: object) -> Self:
        """Return some of the numbers, indexed as in NumPy: ``[2]``, ``[order]``, ``[i, j]``."""
        if type(index) is int and len(self.shape) == 1:  # as they are asked for one by one
            return self.single(to_integer(self.digits[index]), self.exponent)
        entries = index if isinstance(index, tuple) else (index,)
        return self._like(self._table()[(*entries, slice(None))])

    def regroup(self, index: Places, size: int) -> Self:
        """Return ``(size, ...)``, to whose row ``index[i]`` each row ``i`` of these is added."""
        shape = (size, *self.shape[1:], self.digits.shape[1])
        width = math.prod(shape[1:])
        digits = np.zeros(size * width, np.int64)
        # Flat, since np.add.at is an order of magnitude slower by rows. Digits below 2**32 in
        # magnitude leave room for 2**31 rows.
        places = np.asarray(index, np.intp)[:, None] * width + np.arange(width)
        np.add.at(digits, places.ravel(), self.digits.ravel())
        return self._like(digits.reshape(shape))

    def sum(self, axis: int | tuple[int, ...] | None = None) -> Self:
        """Return the sum over one axis, several, or all of them."""
        axes = range(len(self.shape)) if axis is None else np.atleast_1d(axis).tolist()
        positive = tuple(a % len(self.shape) for a in axes)
        table = self._table()
        if positive == (0,) and len(table) > _LONG:  # few long rows are added up sooner
            whole = len(table) // _LONG * _LONG
            long = table[:whole].reshape(-1, _LONG, *table.shape[1:]).sum(axis=0)
            table = np.concatenate([long, table[whole:]])
        return self._like(table.sum(axis=positive))

    def to_float(self, exponent: int = 0) -> float | Floats:
        """Return the nearest float64 of each times ``2**exponent``, ties to even.

        It is infinite only if the number itself is too large. A ``float`` for a single number,
        else an array.
        """
        few = self._counted() if self.shape == () else self._few
        if few is not None:
            values, unit = few
            near = all_nearest(values, unit + exponent)
            return near[0] if self.shape == () else np.array(near).reshape(self.shape)
        return rounded(self.digits, self.exponent + exponent).reshape(self.shape)

    def integers(self) -> tuple[Numeric, int]:
        """Return the exact integers and the exponent of their unit: ``integer * 2**exponent``.

        An ``int`` for a single number, else an array of Python integers.
        """
        if self.shape == ():
            (value,), unit = self._counted()
            return value, unit
        (integers,) = small_integers(self.digits[None])
        return np.array(integers, object).reshape(self.shape), self.exponent

    @property
    def any_negative(self) -> bool:
        """Whether any of the numbers is negative."""
        if self.shape == ():
            return bool(self.integers()[0] < 0)
        return bool((self.digits[:, -1:] < 0).any())  # the highest digit has the sign

    def fraction(self) -> Fraction:
        """Return the exact value of a single number."""
        if self.shape != ():
            raise ValueError(f"one fraction of sums of shape {self.shape}")
        value, unit = self.integers()
        return Fraction(value << unit) if unit >= 0 else Fraction(value, 1 << -unit)

    @property
    def nbytes(self) -> int:
        """Bytes of the digits."""
        form = self._form
        return form.nbytes if isinstance(form, Totals) else self.digits.nbytes

    def arrays(self) -> dict[str, Array]:
        """Return the canonical arrays: equal numbers, and only they, have equal ones."""
        return {"digits": self.digits, "exponent": exponent_array(self.exponent)}

    @staticmethod
    def each_arrays(every: Sequence[ExactNumbers]) -> dict[str, Stack] | None:
        """Return the arrays of many single numbers; ``None`` unless all are single."""
        if any(numbers.shape != () for numbers in every):
            return None
        counted = [numbers._counted() for numbers in every]
        values, units = [value for (value,), _ in counted], [unit for _, unit in counted]
        digits, widths, exponents = each_from_integer(values, units)
        return {
            "digits": Stack(digits, np.array([(1, width) for width in widths], np.int64)),
            "exponent": Stack.equal(np.array(exponents, np.int64), ()),
        }

    @classmethod
    def from_arrays(cls, shape: tuple[int, ...], arrays: Arrays) -> Self:
        """Return the numbers of `arrays`; raises `StateFormatError` for anything else."""
        return cls(shape, *read_digits(shape, arrays))

    @classmethod
    def each_of_arrays(cls, shape: tuple[int, ...], stacks: Arrays, n: int) -> list[Self]:
        """The sums of each of `n` states of the same widths, of which arrays are ``(n, ...)``.

        As :meth:`from_arrays` of each, but all are checked at once.
        """
        digits, units = each_digits(shape, stacks, n)
        if digits.shape[1] > SMALL:
            return [cls(shape, mine, unit) for mine, unit in zip(digits, units, strict=True)]
        return list(map(cls.few, [shape] * n, small_integers(digits), units))


@functools.cache  # there are 203
def exponent_array(exponent: int) -> Ints:
    """Return the exponent of canonical digits as states have it."""
    array = np.array(exponent, np.int64)
    array.flags.writeable = False
    return array
