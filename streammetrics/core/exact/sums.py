"""Sums of float64 kept as exact integers: what every sum in a state is made of.

A float64 is an integer multiple of 2**-1074, a product of two of 2**-2148, so any sum of them is an
integer in a small enough unit. `ExactSum` keeps that integer, for a whole array of sums at once:
adding is exact, associative, commutative and invertible, and the array that holds it is a function
of the value alone. `streammetrics.core.exact.digits` has the integers,
`streammetrics.core.exact.reductions` the fast way to them from rows.
"""

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Self

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.columns.batch import extent
from streammetrics.core.columns.long import LongNumbers, halves, nearest
from streammetrics.core.exact.digits import Floats, are_in_range, canonical, frozen
from streammetrics.core.exact.few import (
    MANY,
    DigitColumn,
    few_groups,
    few_moments,
    few_sums,
)
from streammetrics.core.exact.folds import extremes
from streammetrics.core.exact.numbers import SMALL, ExactNumbers
from streammetrics.core.exact.reductions import (
    add_groups,
    add_moments,
    add_powers,
    add_sums,
    add_weighted,
    add_wide_moments,
    powered,
    tables,
)
from streammetrics.core.exact.totals import Totals
from streammetrics.core.types import Array, Ints, Places, ReadColumn


class ExactSum(ExactNumbers):
    r"""An immutable array of exact sums of float64, of any shape, ``()`` for a single one.

    .. math:: S = 2^{e} \sum_d \mathrm{digits}_{\cdot, d} \, 2^{32 d}

    Rows come in through constructors such as `of`, `product`, `moments`, `grouped` and `counts`;
    sums of equal shape can be added and subtracted. Values and weights must be finite, else
    `InvalidBatchError`; a weight is one float64 a row.

    Memory: 8 bytes for each 32 bits between the highest and the lowest bit in use, mostly 16 to 40
    bytes a sum. Cost, for a long column of ordinary doubles: about five times ``np.sum``, fifteen
    times for its squares, less for those of values of few bits, such as integers.

    References: see `streammetrics.core.exact.folds`.

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

    __slots__ = ()

    @classmethod
    def of(
        cls,
        values: Array | LongNumbers,
        weight: Array | None = None,
    ) -> Self:
        """Return the sums over axis 0 of `values` ``(n, *shape)``, times `weight` ``(n,)``."""
        if isinstance(values, LongNumbers):
            return cls.of(values.head, weight) + cls.of(values.tail, weight)
        if weight is None and values.ndim == 1 and 0 < values.size <= tuning.FOLDED_ROWS:
            column = np.asarray(values, np.float64)
            low, high = extent(column)
            (total,) = few_sums([column], [0.0], max(-low, high))
            return cls.single(*total)
        (table,) = tables([values], weight)
        if weight is not None and _are_few(values):
            return cls.single(*DigitColumn.of(values).times(DigitColumn.of(weight)).total())
        totals = Totals(values.shape[1:])
        add_sums(totals, table, weight)
        return cls._from_totals(totals)

    @classmethod
    def of_terms(
        cls,
        terms: Callable[..., Floats],
        columns: Sequence[object],
        weight: Array | None = None,
    ) -> Self:
        """Return the sums of ``terms(*columns)``, which makes a new array.

        The term of a row must not depend on other rows: without weights, terms are made of a
        block of rows at a time, which stays in the cache.

        >>> ExactSum.of_terms(np.subtract, [np.array([3.0, 5.0]), np.array([1.0, 2.0])]).to_float()
        5.0
        """
        if weight is not None:
            return cls.of(terms(*columns), weight)
        return cls.of_powers(terms, columns, (1,))[0][1]

    @classmethod
    def of_powers(
        cls, terms: Callable[..., Any], columns: Sequence[ReadColumn], powers: Collection[int]
    ) -> tuple[dict[int, Self], float, float]:
        """Return the sums of powers of ``terms(*columns)`` by exponent, and the terms' extremes.

        The exponents are among 1, 2, 4, ...: each power but the first is the `squares` of the one
        before. The extremes are the smallest magnitude but 0, and the largest; 0 if all are 0.

        >>> sums, least, most = ExactSum.of_powers(np.negative, [np.array([1.0, 3.0])], (1, 2, 4))
        >>> {power: total.to_float() for power, total in sums.items()}, least, most
        ({1: -4.0, 2: 10.0, 4: 82.0}, 1.0, 3.0)
        """
        if len(columns[0]) > tuning.FOLDED_ROWS and not any(
            column.ndim > 1 or isinstance(column, LongNumbers) for column in columns
        ):
            totals = {power: Totals(()) for power in powers}
            low, high = add_powers(totals, terms, columns)
            return {power: cls._from_totals(total) for power, total in totals.items()}, low, high
        values = terms(*columns)
        if values.shape[1:] == (1,):
            values = values[:, 0]
        near = nearest(values)
        low, high = extremes(near)
        every = powered(near, low, high, powers)
        if near is values and values.ndim == 1 and 0 < values.size <= tuning.FOLDED_ROWS:
            exponents, columns, leasts, mosts = zip(*every, strict=True)
            # The least of a column is 0 only where all of it is.
            few = few_sums(columns, [least or math.inf for least in leasts], max(mosts))
            sums = {power: cls.single(*sum_) for power, sum_ in zip(exponents, few, strict=True)}
            return sums, low, high
        sums = {power: cls.of(values if power == 1 else column) for power, column, *_ in every}
        return sums, low, high

    @classmethod
    def product(cls, x: Array, y: Array, weight: Array | None = None) -> Self:
        """Return the sums over axis 0 of ``x * y``, each ``(n, *shape)``, times `weight` (n,)."""
        columns = tables([x] if x is y else [x, y], weight)
        if _are_few(x):
            column = DigitColumn.of(x)
            column = column.times(column if x is y else DigitColumn.of(y))
            if weight is not None:
                column = column.times(DigitColumn.of(weight))
            return cls.single(*column.total())
        totals = Totals(x.shape[1:])
        add = add_moments if x.ndim == 1 else add_wide_moments
        add([], {(0, len(columns) - 1): totals}, columns, weight)
        return cls._from_totals(totals)

    @classmethod
    def weighted(cls, columns: Sequence[Array], weight: Floats) -> tuple[list[Self], list[Self]]:
        """Return the sums of each column ``(n,)`` times the weight, and times its square.

        They take one pass; a column may be a mask. Last come those of the weight, and of its
        square, alone.

        >>> once, twice = ExactSum.weighted([np.array([1.0, 3.0])], np.array([2.0, 0.5]))
        >>> [total.to_float() for total in once + twice]
        [3.5, 2.5, 4.75, 4.25]
        """
        if _are_few(weight):
            factor = DigitColumn.of(weight)
            factors = [factor, factor.times(factor)]
            plain = list(map(DigitColumn.of, columns))
            sides = [[*(column.times(f) for column in plain), f] for f in factors]
            once, twice = ([cls.single(*c.total()) for c in side] for side in sides)
            return once, twice
        first, second = ([Totals(()) for _ in (*columns, weight)] for _ in range(2))
        add_weighted(first, second, tables([*columns, weight])[:-1], weight)
        once, twice = ([cls._from_totals(total) for total in side] for side in (first, second))
        return once, twice

    @classmethod
    def moments(
        cls, columns: Sequence[ReadColumn], weight: Array | None = None
    ) -> tuple[list[Self], dict[tuple[int, int], Self]]:
        """Return the sums of each column, and of the products of each pair ``(i, j)``, ``i <= j``.

        They take one pass: each column, ``(n, *shape)``, is split into folds only once.

        >>> first, second = ExactSum.moments([np.array([1.0, 2.0]), np.array([3.0, 5.0])])
        >>> [s.to_float() for s in first], second[0, 1].to_float()
        ([3.0, 8.0], 13.0)
        """
        if any(isinstance(column, LongNumbers) for column in columns):
            return cls._long_moments(columns, weight)
        shape = columns[0].shape[1:]
        pairs = [(i, j) for i in range(len(columns)) for j in range(i, len(columns))]
        if _are_few(columns[0]):
            found = few_moments(tables(columns)) if weight is None else None
            if found is not None:
                ones, twos = found
                return (
                    [cls.single(*total) for total in ones],
                    {pair: cls.single(*total) for pair, total in twos.items()},
                )
            plain = list(map(DigitColumn.of, tables(columns, weight)))
            held = plain
            if weight is not None:
                factor = DigitColumn.of(weight)
                held = [column.times(factor) for column in plain]
            return (
                [cls.single(*column.total()) for column in held],
                {(i, j): cls.single(*held[i].times(plain[j]).total()) for i, j in pairs},
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
        cls, columns: Sequence[ReadColumn], weight: Array | None
    ) -> tuple[list[Self], dict[tuple[int, int], Self]]:
        """Return the same of columns some of which are long: products of their halves are added."""
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
        index: Places,
        size: int,
        values: Array,
        weight: Array | None = None,
    ) -> Self:
        """Return the sums of `values` ``(n,)`` in each group ``0 <= index < size``, times `weight`.

        Without weights, values may be ``(n, k)``: those of a row are added up.
        """
        tables([values if values.ndim == 1 else values[:, 0], index], weight)
        low, high = extent(index)
        if index.size and not 0 <= low <= high < size:
            raise IndexError(f"groups {low} to {high} of {size}")
        if 0 < size <= SMALL and 0 < values.size < MANY and values.ndim == 1:
            few = few_groups(index, size, values, weight)
            if few is not None:
                return cls.few((size,), *few)
        totals = Totals((size,))
        add_groups(totals, index, values, weight)
        return cls._from_totals(totals)

    @classmethod
    def grouped_weights(cls, index: Places, size: int, weight: Floats) -> tuple[Self, Self]:
        """Return the sums of weights (n,), and of their squares, in each group below `size`."""
        if size > tuning.MASKED_GROUPS or weight.size <= tuning.FEW_ROWS:
            return cls.grouped(index, size, weight), cls.grouped(index, size, weight, weight)
        once, twice = cls.weighted([index == group for group in range(size)], weight)
        return cls.row_of(once[:-1]), cls.row_of(twice[:-1])

    @classmethod
    def row_of(cls, every: Sequence[Self]) -> Self:
        """Return single sums as an array of them."""
        integers = [total.integers() for total in every]
        low = min([unit for _, unit in integers])
        return cls.few((len(every),), [value << unit - low for value, unit in integers], low)

    def plus_at(self, rows: Iterable[tuple[Places, Floats | None]]) -> Self:
        """Return these sums (m,) with values (n,) added at an index (n,); ``None`` adds 1 each."""
        totals = self.totals.copy(self.shape)
        for index, values in rows:
            if values is None:
                totals.add_at(index, np.int64(1), 0, 0)
            else:
                add_groups(totals, index, values, None)
        return self._from_totals(totals)

    @classmethod
    def gathered(cls, parts: Iterable[tuple[Places, Self]], size: int) -> Self:
        """Return ``(size, ...)``, to whose row ``index[i]`` each row ``i`` of all parts is added.

        Every index is ascending.
        """
        every = list(parts)
        shape = every[0][1].shape[1:]
        totals, width = Totals((size, *shape)), math.prod(shape)
        for index, sums in every:
            starts = np.flatnonzero(index[1:] != index[:-1])
            most = int(np.diff(starts, prepend=-1, append=index.size - 1).max())
            places = (index[:, None] * width + np.arange(width)).ravel()
            totals.add_totals(places, sums.totals, most)
        return cls._from_totals(totals)

    @classmethod
    def counts(cls, integers: Ints) -> Self:
        """Return integers of any shape as sums."""
        if integers.shape == ():
            return cls.single(int(integers))
        if integers.size <= SMALL:
            return cls.few(integers.shape, integers.ravel().tolist(), 0)
        flat = np.array(integers, np.int64).reshape(-1, 1)
        if are_in_range(flat) and flat.any():  # canonical as they are
            return cls(integers.shape, frozen(flat), 0)
        return cls(integers.shape, *canonical(flat, 0))

    @classmethod
    def _from_totals(cls, totals: Totals) -> Self:
        if totals.shape == ():
            return cls.single(*totals.integer())
        if math.prod(totals.shape) > tuning.DIGIT_ROWS:  # worth to be made once for several
            return cls.of_totals(totals)
        return cls(totals.shape, *totals.result())


def _are_few(column: Array) -> bool:
    return column.ndim == 1 and 0 < column.size <= tuning.FEW_ROWS
