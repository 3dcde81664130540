"""Sums of float64 kept as exact integers: what every sum in a state is made of.

A float64 is an integer multiple of 2**-1074, a product of two of 2**-2148, so any sum of them is an
integer in a small enough unit. :class:`ExactSum` keeps that integer, for a whole array of sums at
once: adding is exact, associative, commutative and invertible, and the array that holds it is a
function of the value alone. :mod:`~streammetrics.core.exact.digits` has the integers,
:mod:`~streammetrics.core.exact.reductions` the fast way to them from rows.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.columns.long import LongNumbers, halves
from streammetrics.core.errors import StateFormatError
from streammetrics.core.exact.digits import (
    HIGHEST,
    LOWEST,
    Digits,
    Floats,
    Totals,
    are_in_range,
    are_shortest,
    canonical,
    from_integer,
    frozen,
    nearest,
    rounded,
    to_integer,
)
from streammetrics.core.exact.few import FEW, Column
from streammetrics.core.exact.reductions import (
    add_groups,
    add_moments,
    add_sums,
    add_terms,
    add_wide_moments,
    tables,
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ExactSum:
    r"""An immutable array of exact sums of float64, of any shape, ``()`` for a single one.

    .. math:: S = 2^{e} \sum_d \mathrm{digits}_{\cdot, d} \, 2^{32 d}

    Rows come in through the constructors :meth:`of`, :meth:`product`, :meth:`moments`,
    :meth:`grouped` and :meth:`counts`; values of equal shape are added and subtracted.
    Values and weights must be finite, else ``InvalidBatchError``; a weight is one float64 a row.

    Memory: 8 bytes for each 32 bits between the highest and the lowest bit in use, mostly 16 to 40
    bytes a sum. Cost, for a long column of ordinary doubles: about five times ``np.sum``, fifteen
    times for its squares, less for those of values of few bits, such as integers.

    References: see :mod:`streammetrics.core.exact.folds`.

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

    shape: tuple[int, ...]
    digits: Digits
    exponent: int

    @classmethod
    def zero(cls, shape: tuple[int, ...] = ()) -> Self:
        """Sums of nothing."""
        return cls(shape, frozen(np.zeros((math.prod(shape), 0), np.int64)), 0)

    @classmethod
    def of(cls, values: NDArray[Any] | LongNumbers, weight: NDArray[Any] | None = None) -> Self:
        """Sums over axis 0 of ``values`` ``(n, *shape)``, times ``weight`` ``(n,)``."""
        if isinstance(values, LongNumbers):
            return cls.of(values.head, weight) + cls.of(values.tail, weight)
        (table,) = tables([values], weight)
        if _are_few(values):
            column = Column.of(values)
            return cls._single(column if weight is None else column.times(Column.of(weight)))
        totals = Totals(values.shape[1:])
        add_sums(totals, table, weight)
        return cls._from_totals(totals)

    @classmethod
    def of_terms(
        cls,
        terms: Callable[..., Floats],
        columns: Sequence[Any],
        weight: NDArray[Any] | None = None,
    ) -> Self:
        """Sums of ``terms(*columns)``, a new array; without weights computed in the cache.

        The term of a row must not depend on other rows.

        >>> ExactSum.of_terms(np.subtract, [np.array([3.0, 5.0]), np.array([1.0, 2.0])]).to_float()
        5.0
        """
        if (
            weight is not None
            or len(columns[0]) <= FEW
            or any(column.ndim > 1 or isinstance(column, LongNumbers) for column in columns)
        ):
            return cls.of(terms(*columns), weight)
        totals = Totals(())
        add_terms(totals, terms, columns)
        return cls._from_totals(totals)

    @classmethod
    def product(cls, x: NDArray[Any], y: NDArray[Any], weight: NDArray[Any] | None = None) -> Self:
        """Sums over axis 0 of ``x * y``, both ``(n, *shape)``, times ``weight`` ``(n,)``."""
        columns = tables([x] if x is y else [x, y], weight)
        if _are_few(x):
            column = Column.of(x)
            column = column.times(column if x is y else Column.of(y))
            return cls._single(column if weight is None else column.times(Column.of(weight)))
        totals = Totals(x.shape[1:])
        add = add_moments if x.ndim == 1 else add_wide_moments
        add([], {(0, len(columns) - 1): totals}, columns, weight)
        return cls._from_totals(totals)

    @classmethod
    def moments(
        cls, columns: Sequence[Any], weight: NDArray[Any] | None = None
    ) -> tuple[list[Self], dict[tuple[int, int], Self]]:
        """Sums of every column, and of the products of every pair ``(i, j)`` with ``i <= j``.

        One pass for all: each column, ``(n, *shape)``, is split into folds only once.

        >>> first, second = ExactSum.moments([np.array([1.0, 2.0]), np.array([3.0, 5.0])])
        >>> [s.to_float() for s in first], second[0, 1].to_float()
        ([3.0, 8.0], 13.0)
        """
        if any(isinstance(column, LongNumbers) for column in columns):
            return cls._long_moments(columns, weight)
        shape = columns[0].shape[1:]
        pairs = [(i, j) for i in range(len(columns)) for j in range(i, len(columns))]
        if _are_few(columns[0]):
            plain = list(map(Column.of, tables(columns, weight)))
            held = plain
            if weight is not None:
                factor = Column.of(weight)
                held = [column.times(factor) for column in plain]
            return (
                list(map(cls._single, held)),
                {(i, j): cls._single(held[i].times(plain[j])) for i, j in pairs},
            )
        first = [Totals(shape) for _ in columns]
        second = {pair: Totals(shape) for pair in pairs}
        add = add_wide_moments if shape else add_moments
        add(first, second, tables(columns, weight), weight)
        return (
            [cls._from_totals(totals) for totals in first],
            {pair: cls._from_totals(totals) for pair, totals in second.items()},
        )

    @classmethod
    def _long_moments(
        cls, columns: Sequence[Any], weight: NDArray[Any] | None
    ) -> tuple[list[Self], dict[tuple[int, int], Self]]:
        """The same of columns among which are long ones, from the products of their halves."""
        parts = [part for column in columns for part in halves(column)]
        ones, twos = cls.moments(parts, weight)
        first = [ones[i] + ones[i + 1] for i in range(0, len(ones), 2)]
        second = {
            (i, j): (twos[2 * i, 2 * j] + twos[2 * i + 1, 2 * j + 1])
            + (twos[2 * i, 2 * j + 1] + twos[min(2 * i + 1, 2 * j), max(2 * i + 1, 2 * j)])
            for i in range(len(first))
            for j in range(i, len(first))
        }
        return first, second

    @classmethod
    def grouped(
        cls,
        index: NDArray[np.intp],
        size: int,
        values: NDArray[Any],
        weight: NDArray[Any] | None = None,
    ) -> Self:
        """Sums of ``values`` ``(n,)`` for each group ``0 <= index < size``, times ``weight``."""
        totals = Totals((size,))
        tables([values, index], weight)
        add_groups(totals, index, values, weight)
        return cls._from_totals(totals)

    def plus_at(self, rows: Iterable[tuple[NDArray[np.intp], Floats | None]]) -> Self:
        """Sums ``(m,)`` and values ``(n,)``, or 1 for None, each added at its index ``(n,)``."""
        totals = Totals(self.shape)
        totals.start(self.digits, self.exponent)
        for index, values in rows:
            if values is None:
                totals.add_at(index, np.int64(1), 0, 0)
            else:
                add_groups(totals, index, values, None)
        return self._from_totals(totals)

    @classmethod
    def counts(cls, integers: NDArray[np.int64]) -> Self:
        """The integers themselves, of any shape."""
        if integers.shape == ():
            return cls((), *from_integer(int(integers), 0))
        flat = np.array(integers, np.int64).reshape(-1, 1)
        if are_in_range(flat) and flat.any():  # canonical as they are
            return cls(integers.shape, frozen(flat), 0)
        return cls(integers.shape, *canonical(flat, 0))

    @classmethod
    def _from_totals(cls, totals: Totals) -> Self:
        return cls(totals.shape, *totals.result())

    @classmethod
    def _single(cls, column: Column) -> Self:
        return cls((), *from_integer(*column.total()))

    def __add__(self, other: Self) -> Self:
        if not isinstance(other, ExactSum):
            return NotImplemented
        return self._plus(other, 1)

    def __sub__(self, other: Self) -> Self:
        if not isinstance(other, ExactSum):
            return NotImplemented
        return self._plus(other, -1)

    def __neg__(self) -> Self:
        return self.zero(self.shape) - self

    def _plus(self, other: Self, sign: int) -> Self:
        if self.shape != other.shape:
            raise ValueError(f"sums of shapes {self.shape} and {other.shape} cannot be added")
        if not other.digits.shape[1]:  # all zero, as sums are before the first rows
            return self
        if sign == 1 and not self.digits.shape[1]:
            return other
        low = min(self.exponent, other.exponent)
        if self.shape == ():  # Python's integers are quicker for one
            value = to_integer(self.digits[0]) << (self.exponent - low)
            value += sign * (to_integer(other.digits[0]) << (other.exponent - low))
            return type(self)((), *from_integer(value, low))
        left, right = (self.exponent - low) // 32, (other.exponent - low) // 32
        rows, width = self.digits.shape
        other_width = other.digits.shape[1]
        digits = np.zeros((rows, max(left + width, right + other_width)), np.int64)
        digits[:, left : left + width] = self.digits
        digits[:, right : right + other_width] += sign * other.digits
        return type(self)(self.shape, *canonical(digits, low))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ExactSum):
            return NotImplemented
        return (
            self.shape == other.shape
            and self.exponent == other.exponent
            and np.array_equal(self.digits, other.digits)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ExactSum({self.to_float()!r})"

    def _table(self) -> Digits:
        """The digits ``(*shape, D)``."""
        return self.digits.reshape(*self.shape, self.digits.shape[1])

    def _like(self, digits: Digits) -> Self:
        """The value of digits ``(*shape, D)`` with this exponent."""
        return self.of_digits(digits, self.exponent)

    @classmethod
    def of_digits(cls, digits: Digits, exponent: int) -> Self:
        """The value of any digits ``(*shape, W)``, each of magnitude at most ``2**62``."""
        shape = digits.shape[:-1]
        return cls(shape, *canonical(digits.reshape(math.prod(shape), digits.shape[-1]), exponent))

    @staticmethod
    def aligned(every: Sequence["ExactSum"]) -> tuple[list[Digits], int]:
        """Digits ``(*shape, W)`` of all, as many of each and of one exponent, which follows."""
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

    def __getitem__(self, index: Any) -> Self:
        """Index the array of sums as NumPy would: ``sums[2]``, ``sums[order]``, ``sums[i, j]``."""
        entries = index if isinstance(index, tuple) else (index,)
        return self._like(self._table()[(*entries, slice(None))])

    def regroup(self, index: NDArray[np.intp], size: int) -> Self:
        """Add row ``i`` of ``(k, ...)`` into row ``index[i]`` of ``(size, ...)``."""
        shape = (size, *self.shape[1:], self.digits.shape[1])
        width = math.prod(shape[1:])
        digits = np.zeros(size * width, np.int64)
        # Flat, since np.add.at is an order of magnitude slower by rows. Digits below 2**32 in
        # magnitude leave room for 2**31 rows.
        places = np.asarray(index, np.intp)[:, None] * width + np.arange(width)
        np.add.at(digits, places.ravel(), self.digits.ravel())
        return self._like(digits.reshape(shape))

    def sum(self, axis: int | tuple[int, ...] | None = None) -> Self:
        """Sum over one axis, several, or all of them."""
        axes = range(len(self.shape)) if axis is None else np.atleast_1d(axis).tolist()
        positive = tuple(a % len(self.shape) for a in axes)
        return self._like(self._table().sum(axis=positive))

    def to_float(self, exponent: int = 0) -> float | Floats:
        """The nearest float64, ties to even; infinite only where the sum itself is too large.

        Times ``2**exponent``, where given, before it is rounded. A ``float`` for a single sum,
        else an array.
        """
        if self.shape == ():
            return nearest(to_integer(self.digits[0]), self.exponent + exponent)
        return rounded(self.digits, self.exponent + exponent).reshape(self.shape)

    def integers(self) -> tuple[Any, int]:
        """The exact integers and the exponent of their unit, ``sum == integer * 2**exponent``.

        An ``int`` for a single sum, else an array of Python integers.
        """
        if self.shape == ():
            return to_integer(self.digits[0]), self.exponent
        integers = np.zeros(len(self.digits), object)
        for column in reversed(range(self.digits.shape[1])):
            integers = integers * 2**32 + self.digits[:, column].astype(object)
        return integers.reshape(self.shape), self.exponent

    def fraction(self) -> Fraction:
        """The exact value of a single sum."""
        if self.shape != ():
            raise ValueError(f"one fraction of sums of shape {self.shape}")
        value, unit = to_integer(self.digits[0]), self.exponent
        return Fraction(value << unit) if unit >= 0 else Fraction(value, 1 << -unit)

    @property
    def nbytes(self) -> int:
        """Bytes of the digits."""
        return self.digits.nbytes

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The canonical arrays: equal sums, and only they, have equal ones."""
        return {"digits": self.digits, "exponent": np.array(self.exponent, np.int64)}

    @classmethod
    def from_arrays(cls, shape: tuple[int, ...], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The sums that :meth:`arrays` was read from; ``StateFormatError`` for anything else."""
        if set(arrays) != {"digits", "exponent"}:
            raise StateFormatError(f"exact sums need digits and exponent, not {sorted(arrays)}")
        digits, exponent = arrays["digits"], arrays["exponent"]
        if digits.dtype != np.int64 or exponent.dtype != np.int64:
            raise StateFormatError("digits and exponent of exact sums must be int64")
        if digits.ndim != 2 or len(digits) != math.prod(shape) or exponent.shape != ():
            raise StateFormatError(
                f"digits of exact sums of shape {shape} cannot have shape {digits.shape}"
            )
        low, width = int(exponent), digits.shape[1]
        if low % 32 or low < LOWEST or low + 32 * width > HIGHEST:
            raise StateFormatError(f"exponent {low} of exact sums is not one that we write")
        if shape == ():  # Python's integers are quicker for one
            form, position = from_integer(to_integer(digits[0]), low)
            if form.tolist() != digits.tolist() or position != low:
                raise StateFormatError("digits of exact sums are not in canonical form")
            return cls(shape, form, low)
        if not are_in_range(digits):
            raise StateFormatError("digits of exact sums are out of range")
        if not are_shortest(digits) or (low and not width):
            raise StateFormatError("digits of exact sums are not in canonical form")
        return cls(shape, frozen(digits.copy(order="C")), low)


def _are_few(column: NDArray[Any]) -> bool:
    return column.ndim == 1 and 0 < column.size <= FEW
