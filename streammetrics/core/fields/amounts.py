"""How much there is of something: rows are counted while they weigh one, else summed exactly.

Where it matters how sure a value is, the squares of weights are summed as well: rows of weight w
vary as one row times w does, by w².
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Self

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum, exponent_array
from streammetrics.core.counting import added_at, counts_of
from streammetrics.core.field import not_among
from streammetrics.core.state.arrays import nested

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streammetrics.core.counting import Grouping
    from streammetrics.core.types import Array, Floats, Ints, Numeric, Places

MANY = 1 << 62  # counts below can be added
_DIGIT = 1 << 31  # counts below are digits of exact sums


class Amount:
    """The weight of rows, of one thing or for each of several: counts, and sums of weights.

    Rows without a weight are counted in an array of int64, or in a Python integer where the shape
    is ``()``; only those with a weight cost an exact sum. Its `squares` are the sums of the squares
    of the same weights, ``None`` where nobody asked for them. Whoever makes one sees to it that
    nothing is negative, and that `squares` are of the rows of `weights`.
    """

    __slots__ = ("_most", "counts", "squares", "weights")

    def __init__(
        self,
        counts: Numeric,
        weights: ExactSum | None = None,
        most: int = 0,
        squares: ExactSum | None = None,
    ) -> None:
        self.counts: Numeric = counts
        self.weights, self.squares = weights, squares
        self._most = most  # no count in an array is larger
        if most >= MANY:
            many = ExactSum.counts(counts)
            self.squares = many if weights is None else _sum(squares, many)
            self.weights = many if weights is None else weights + many
            self.counts, self._most = np.zeros_like(counts), 0

    @classmethod
    def zero(cls, shape: tuple[int, ...] = ()) -> Self:
        """Return no amount of each."""
        return cls(np.zeros(shape, np.int64) if shape else 0)

    @classmethod
    def of_rows(cls, n: int, weight: Floats | None, *, squared: bool = False) -> Self:
        """Return the weight of `n` rows, 1 each without one, and if `squared` its squares."""
        if weight is None:
            return cls(n)
        squares = ExactSum.product(weight, weight) if squared else None
        return cls(0, ExactSum.of(weight), squares=squares)

    @classmethod
    def at_places(
        cls, places: Places, size: int, weight: Floats | None, *, squared: bool = True
    ) -> Self:
        """Return the weights of rows, and if `squared` their squares, at each of `size` places."""
        if weight is None:
            return cls.of_counts(counts_of((size,), places), places.size)
        if squared:
            return cls.of_weights(*ExactSum.grouped_weights(places, size, weight))
        return cls.of_weights(ExactSum.grouped(places, size, weight))

    @classmethod
    def by_group(cls, group: Grouping, weight: Floats | None) -> Self:
        """Return how much there is of each group, without squares."""
        if weight is None:
            return cls.of_counts(group.counts, group.codes.size)
        return cls.at_places(group.index, group.size, weight, squared=False)

    @classmethod
    def of_counts(cls, counts: Ints, most: int | None = None) -> Self:
        """Return the amount of rows of weight one; no count is larger than `most`."""
        return cls(counts, None, int(counts.max(initial=0)) if most is None else most)

    @classmethod
    def of_weights(cls, weights: ExactSum, squares: ExactSum | None = None) -> Self:
        """Return the amount of rows none of which is known to weigh one."""
        counts = np.zeros(weights.shape, np.int64) if weights.shape else 0
        return cls(counts, weights, squares=squares)

    @classmethod
    def of_exact(cls, amount: ExactSum, squares: ExactSum | None = None) -> Self:
        """Return an amount: counts if all are whole and below 2**62, else exact sums.

        Squares, where given, say that not all rows weigh one; whole amounts without squares are
        taken for counts.
        """
        if squares is not None and squares != amount:
            return cls.of_weights(amount, squares)
        if amount.shape == ():
            value, unit = amount.integers()
            if unit >= 0:
                return cls(value << unit)
            whole = value >> -unit
            return cls(whole) if whole << -unit == value else cls(0, amount, squares=squares)
        if squares is None and amount.exponent >= 0:
            squares = amount
        if amount.exponent == 0 and amount.digits.shape[1] == 1:
            return cls.of_counts(amount.digits.reshape(amount.shape))
        floats = np.abs(np.asarray(amount.to_float()))
        if amount.exponent < 0 or floats.max(initial=0.0) >= MANY:
            return cls.of_weights(amount, squares)
        counts = np.zeros(amount.shape, np.int64)
        for place, digits in enumerate(amount.digits.T):
            counts += (digits << (32 * place + amount.exponent)).reshape(amount.shape)
        return cls.of_counts(counts)

    @classmethod
    def of_all(cls, every: Sequence[Self]) -> Self | None:
        """Return the sum of amounts; ``None`` unless all are arrays of counts that can be added."""
        most = sum([amount._most for amount in every])
        plain = all(amount.weights is None for amount in every)
        if most >= MANY or not plain or not isinstance(every[0].counts, np.ndarray):
            return None
        return cls(np.add.reduce([amount.counts for amount in every]), None, most)

    def __add__(self, other: Self) -> Self:
        weights, squares = self.weights, self.squares
        if other.weights is not None:
            squares = other.squares if weights is None else _sum(squares, other.squares)
            weights = other.weights if weights is None else weights + other.weights
        return type(self)(self.counts + other.counts, weights, self._most + other._most, squares)

    def __sub__(self, other: Self) -> Self:
        mine, theirs = self.squared(), other.squared()
        squares = None if mine is None or theirs is None else mine - theirs
        left = self.of_exact(self.exact() - other.exact(), squares)
        if left.any_negative or (left.squares is not None and left.squares.any_negative):
            raise not_among("there are fewer of them here")
        return left

    def __bool__(self) -> bool:
        """Whether there is something."""
        if isinstance(self.counts, int):
            return bool(self.counts or (self.weights is not None and self.weights.integers()[0]))
        return bool(np.any(self.signs()))

    def spread(self, places: Places | None, size: int) -> Self:
        """Return amounts ``(n,)`` at their places among `size`, all different; none elsewhere."""
        if places is None:
            return self
        counts = np.zeros(size, np.int64)
        counts[places] = self.counts
        weights, squares = (
            None if sums is None else sums.regroup(places, size)
            for sums in (self.weights, self.squares)
        )
        return type(self)(counts, weights, self._most, squares)

    def at(self, index: object) -> Self:
        """Return some of the amounts, indexed as in NumPy."""
        weights, squares = (
            None if sums is None else sums[index] for sums in (self.weights, self.squares)
        )
        counts = self.counts[index]
        return type(self)(counts if np.ndim(counts) else int(counts), weights, self._most, squares)

    def squared(self) -> ExactSum | None:
        """Return the sums of the squares of all weights, ``None`` where they are not known."""
        if self.weights is None:
            return self.exact()
        return None if self.squares is None else Amount(self.counts, self.squares).exact()

    def plain_squared(self) -> Ints | ExactSum | None:
        """Return the same, as counts where rows have no weights."""
        return self.counts if self.weights is None else self.squared()

    def shaped(self, shape: tuple[int, ...]) -> Self:
        """Return the same amounts in another shape."""
        weights, squares = (
            None if sums is None else sums.reshaped(shape) for sums in (self.weights, self.squares)
        )
        return type(self)(self.counts.reshape(shape), weights, self._most, squares)

    def exact(self) -> ExactSum:
        """Return the amounts as exact sums."""
        if not isinstance(self.counts, np.ndarray):
            counts = ExactSum.single(self.counts)
        elif self.weights is not None and not self.counts.any():
            return self.weights
        else:
            counts = ExactSum.counts(self.counts)
        return counts if self.weights is None else self.weights + counts

    def arrays(self) -> dict[str, Array]:
        """Return the arrays of `exact`, and of squares where rows are known not to weigh 1 each."""
        counts = self.counts
        plain = self.weights is None and isinstance(counts, np.ndarray)
        if plain and self._most < _DIGIT and counts.any():  # they are digits as they are
            return {"digits": counts.reshape(-1, 1), "exponent": exponent_array(0)}
        exact, squares = self.exact(), None if self.squares is None else self.squared()
        if squares is None or (squares == exact and exact.exponent >= 0):
            return exact.arrays()
        return exact.arrays() | nested("squares", squares.arrays())

    def plain(self) -> Ints | ExactSum:
        """Return the counts, or exact sums where rows have weights."""
        return self.counts if self.weights is None else self.exact()

    def fraction(self) -> Fraction:
        """Return the exact weight of one thing."""
        return Fraction(*self.ratio())

    def ratio(self) -> tuple[int, int]:
        """Return the same as a fraction's two integers."""
        if self.weights is None:
            return int(self.counts), 1
        return (self.weights.fraction() + int(self.counts)).as_integer_ratio()

    @property
    def any_negative(self) -> bool:
        """Whether there is less than nothing of something."""
        if self.weights is not None:
            return self.exact().any_negative
        if isinstance(self.counts, int):
            return self.counts < 0
        return bool((self.counts < 0).any())

    def signs(self) -> Array:
        """Return numbers that have the signs of the amounts."""
        return np.asarray(self.counts) if self.weights is None else signs_of(self.exact())

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        counts: int = self.counts.nbytes if isinstance(self.counts, np.ndarray) else 8
        return counts + sum(s.nbytes for s in (self.weights, self.squares) if s is not None)

    def scaled(self, weight: float, *, squared: bool = False) -> Self:
        """Return the same rows, each `weight` times as heavy, and if `squared` with squares."""
        amount, squares = self.exact().times(weight), self.squared() if squared else None
        if squares is not None:
            return self.of_exact(amount, squares.times(weight).times(weight))
        return self.of_weights(amount) if squared else self.of_exact(amount)


def _sum(one: ExactSum | None, other: ExactSum | None) -> ExactSum | None:
    """Return a sum of what may not be known."""
    return None if one is None or other is None else one + other


def signs_of(amount: ExactSum) -> Array:
    """Return numbers that have the signs of exact sums."""
    if amount.shape == ():
        return np.array((amount.integers()[0] > 0) - (amount.integers()[0] < 0))
    # The highest digit has the sign, but it may be 0 above others that are not.
    signs = np.where(amount.digits.any(axis=1), 1, 0)
    signs[(amount.digits[:, -1:] < 0).any(axis=1)] = -1
    return signs.reshape(amount.shape)


# ---- amounts of groups, along the first axis ----


def regrouped_amounts(value: Amount, places: Places, size: int) -> Amount:
    """Return the amounts of rows that go to one place, of which -1 is none."""
    if float(value.counts.sum(dtype=np.float64)) >= MANY:
        value = Amount(value.counts, value.weights, MANY, value.squares)
    kept = np.flatnonzero(places >= 0)
    counts = added_at(places[kept], value.counts[kept], size)
    weights, squares = (
        None if sums is None else sums.regroup(places, size)
        for sums in (value.weights, value.squares)
    )
    return Amount(counts, weights, int(counts.max(initial=0)), squares)


def joined_amounts(values: Sequence[Amount], shape: tuple[int, ...]) -> Amount:
    """Return amounts of one shape as rows of an array of them."""
    if all(value.weights is None for value in values):
        counts = [value.counts for value in values]
        if shape:
            table = np.concatenate(counts) if counts else np.empty(0, np.int64)
            return Amount.of_counts(table.reshape(len(values), *shape))
        if max(counts, default=0) < MANY:  # of one thing they are Python integers
            return Amount.of_counts(np.array(counts, np.int64))
    return _joined(values, lambda sums: ExactSum.stacked(sums, shape))


def chained_amounts(values: Sequence[Amount]) -> Amount:
    """Return amounts ``(n,)`` one after the other."""
    if all(value.weights is None for value in values):
        return Amount.of_counts(np.concatenate([value.counts for value in values]))

    def chained(sums: Sequence[ExactSum]) -> ExactSum:
        tables, low = ExactSum.aligned(sums)
        return ExactSum.of_digits(np.concatenate(tables), low)

    return _joined(values, chained)


def _joined(values: Sequence[Amount], joined: Callable[[Sequence[ExactSum]], ExactSum]) -> Amount:
    squares = [value.squared() for value in values]
    known = [each for each in squares if each is not None]
    return Amount.of_weights(
        joined([value.exact() for value in values]),
        joined(known) if len(known) == len(squares) else None,
    )
