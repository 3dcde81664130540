"""Counts and weights as fields: amounts, counts, and those of several outputs."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self, TypeGuard, TypeVar

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum, exponent_array
from streammetrics.core.counting import added_at, counts_of
from streammetrics.core.errors import IncompatibleMetricsError, StateFormatError
from streammetrics.core.field import StateField, not_among
from streammetrics.core.state.arrays import nested, part

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streammetrics.core.configured import Configured
    from streammetrics.core.counting import GroupCodes
    from streammetrics.core.types import Array, Arrays, Floats, Ints, Numeric, Places

    Shape = int | tuple[int, ...] | Callable[[Any], int | tuple[int, ...]]


V = TypeVar("V", "ExactSum", "WeightedCount")

MANY = 1 << 62  # counts below can be added
_DIGIT = 1 << 31  # counts below are digits of exact sums


def have_weights(weight: Array | None) -> TypeGuard[Floats]:
    """Whether rows weigh other than 1; int64 says how often each of them counts."""
    return weight is not None and weight.dtype.kind == "f"


class WeightedCount:
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
    def of_rows(
        cls,
        n: int,
        weight: Floats | None,
        group: GroupCodes | None = None,
        *,
        squared: bool = False,
    ) -> Self:
        """Return the weight of `n` rows, 1 each without one, or with `group` that of each group.

        If `squared`, the squares of weights are summed as well.
        """
        if group is not None:
            if weight is None:
                return cls.of_counts(group.counts, n)
            return cls.at_places(group.index, group.size, weight, squared=squared)
        if weight is None:
            return cls(n)
        if have_weights(weight):
            squares = ExactSum.product(weight, weight) if squared else None
            return cls(0, ExactSum.of(weight), squares=squares)
        return cls(int(weight.sum()))

    @classmethod
    def at_places(
        cls, places: Places, size: int, weight: Array | None, *, squared: bool = False
    ) -> Self:
        """Return the weights of rows, and if `squared` their squares, at each of `size` places."""
        if not have_weights(weight):
            return cls.of_counts(counts_of((size,), places, times=weight))
        squares = ExactSum.grouped(places, size, weight, weight) if squared else None
        return cls.of_weights(ExactSum.grouped(places, size, weight), squares)

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
        if (type(self.counts) is np.ndarray) is not (type(other.counts) is np.ndarray):
            raise ValueError("one amount is added to several: WeightedCount.at_places makes them")
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

    def regrouped(self, places: Places, size: int) -> Self:
        """Return `size` amounts: the i-th of these is added at ``places[i]``; -1 drops it."""
        value = self
        if float(value.counts.sum(dtype=np.float64)) >= MANY:
            value = type(self)(value.counts, value.weights, MANY, value.squares)
        kept = np.flatnonzero(places >= 0)
        counts = added_at(places[kept], value.counts[kept], size)
        weights, squares = (
            None if sums is None else sums.regroup(places, size)
            for sums in (value.weights, value.squares)
        )
        return type(self)(counts, weights, int(counts.max(initial=0)), squares)

    def at(self, index: object) -> Self:
        """Return some of the amounts, indexed as in NumPy."""
        weights = None if self.weights is None else self.weights[index]
        squares = None if self.squares is None else self.squares[index]
        counts = self.counts[index]
        several = isinstance(counts, np.ndarray)
        return type(self)(counts if several else int(counts), weights, self._most, squares)

    def squared(self) -> ExactSum | None:
        """Return the sums of the squares of all weights, ``None`` where they are not known."""
        if self.weights is None:
            return self.exact()
        return None if self.squares is None else WeightedCount(self.counts, self.squares).exact()

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


def chained_amounts(values: Sequence[WeightedCount]) -> WeightedCount:
    """Return amounts ``(n,)`` one after the other."""
    if all(value.weights is None for value in values):
        return WeightedCount.of_counts(np.concatenate([value.counts for value in values]))

    def chained(sums: Sequence[ExactSum]) -> ExactSum:
        tables, low = ExactSum.aligned(sums)
        return ExactSum.of_digits(np.concatenate(tables), low)

    return _joined(values, chained)


def _joined(
    values: Sequence[WeightedCount], joined: Callable[[Sequence[ExactSum]], ExactSum]
) -> WeightedCount:
    squares = [value.squared() for value in values]
    known = [each for each in squares if each is not None]
    return WeightedCount.of_weights(
        joined([value.exact() for value in values]),
        joined(known) if len(known) == len(squares) else None,
    )


def read_amount(shape: tuple[int, ...], arrays: Arrays, *, squared: bool = False) -> WeightedCount:
    """Return the amounts of `arrays`: counts if they are whole and without squares.

    With `squared`, those of rows that do not all weigh one have squares.
    """
    own, squares = split_squares(arrays)
    exact = ExactSum.from_arrays(shape, own)
    if not squares:
        if squared and (exact.exponent < 0):
            raise StateFormatError("weights that are not integers have no squares")
        return WeightedCount.of_exact(exact)
    return _with_squares(exact, ExactSum.from_arrays(shape, squares))


def split_squares(arrays: Arrays) -> tuple[Arrays, dict[str, Array]]:
    """Return arrays of weights, and those of their squares."""
    squares = part(arrays, "squares")
    if squares:
        arrays = {key: array for key, array in arrays.items() if not key.startswith("squares/")}
    return arrays, squares


def _with_squares(amount: ExactSum, squares: ExactSum) -> WeightedCount:
    """Return the amounts that a state tells, with the squares of their weights."""
    if (signs_of(squares) != np.sign(signs_of(amount))).any():
        raise StateFormatError("there are squares of weights without weights, or the reverse")
    if squares == amount and amount.exponent >= 0:
        raise StateFormatError("squared weights are stored although all weights are 1")
    return WeightedCount.of_exact(amount, squares)


class ShapedField(StateField[V]):
    """A field of things of a shape, which may be a function of the statistic and its parameters.

    Grouped values are of the same type, with the groups along their first axis.
    """

    def __init__(self, shape: Shape = (), *, inline: bool = False) -> None:
        super().__init__(inline=inline)
        self._shape = shape

    @abstractmethod
    def zeros(self, shape: tuple[int, ...]) -> V:
        """Return the value of no rows."""

    @abstractmethod
    def read(self, shape: tuple[int, ...], arrays: Arrays) -> V:
        """Return the value of untrusted `arrays`."""

    def empty(self, of: Configured) -> V:
        """Return the value of no rows."""
        return self.zeros(shape_of(self._shape, of))

    def taken(self, arrays: Arrays, of: Configured) -> V:
        """Return the value of untrusted `arrays`."""
        return self.read(shape_of(self._shape, of), arrays)

    def plus(self, mine: V, other: V) -> V:
        """Return the sums of both."""
        return mine + other

    def minus(self, value: V, other: V) -> V:
        """Return the differences, exactly."""
        return value - other

    def arrays(self, value: V) -> dict[str, Array]:
        """Return the arrays of exact sums."""
        return value.arrays()

    def nbytes(self, value: V) -> int:
        """Bytes held now."""
        return value.nbytes

    def no_groups(self, of: Configured, size: int) -> V:
        """Return the values of no rows."""
        return self.zeros((size, *shape_of(self._shape, of)))

    def groups_plus(self, mine: V, other: V, size: int) -> V:
        """Return the sums of both."""
        return mine + other

    def groups_arrays(self, value: V, size: int) -> dict[str, Array]:
        """Return the arrays of exact sums."""
        return value.arrays()

    def groups_taken(self, arrays: Arrays, size: int, of: Configured) -> V:
        """Return the values of untrusted `arrays`."""
        return self.read((size, *shape_of(self._shape, of)), arrays)


MOST = 1 << 61  # rows of what is counted in 64 bits: merges stop far below what could wrap


class Weight(ShapedField[WeightedCount]):
    """How much there is of each thing, not negative; with `squared` amounts have squares."""

    def __init__(self, shape: Shape = (), *, squared: bool = False, inline: bool = False) -> None:
        super().__init__(shape, inline=inline)
        self._squared = squared

    def zeros(self, shape: tuple[int, ...]) -> WeightedCount:
        """Return nothing of anything."""
        return WeightedCount.zero(shape)

    def merged(self, mine: WeightedCount, others: Sequence[WeightedCount]) -> WeightedCount:
        """Return what there is of each together: amounts of one thing are added up at once."""
        if len(others) > 1 and isinstance(mine.counts, int):
            weighed = [each for each in (mine, *others) if each.weights is not None]
            weights = _total([each.weights for each in weighed])
            squares = _total([each.squares for each in weighed])
            return WeightedCount(
                sum([a.counts for a in others], mine.counts), weights, squares=squares
            )
        together = WeightedCount.of_all([mine, *others])
        return super().merged(mine, others) if together is None else together

    def read(self, shape: tuple[int, ...], arrays: Arrays) -> WeightedCount:
        """Return the amounts, none of which is negative."""
        value = read_amount(shape, arrays, squared=self._squared)
        if value.any_negative:
            raise StateFormatError(f"sums of {self.name} are negative, which no rows have")
        return value

    def scaled(self, value: WeightedCount, weight: float) -> WeightedCount:
        """Return the products, exactly."""
        return value.scaled(weight, squared=self._squared)

    def of_groups(self, values: Sequence[WeightedCount], of: Configured) -> WeightedCount:
        """Return the amounts of all groups."""
        shape = shape_of(self._shape, of)
        if all(value.weights is None for value in values):
            counts = [value.counts for value in values]
            if shape:
                table = np.concatenate(counts) if counts else np.empty(0, np.int64)
                return WeightedCount.of_counts(table.reshape(len(values), *shape))
            if max(counts, default=0) < MANY:  # of one thing they are Python integers
                return WeightedCount.of_counts(np.array(counts, np.int64))
        return _joined(values, lambda sums: ExactSum.stacked(sums, shape))


def _total(sums: Sequence[ExactSum | None]) -> ExactSum | None:
    """Return the sum of exact sums, ``None`` of none and where one of them is not known."""
    known = [each for each in sums if each is not None]
    return known[0].plus_all(known[1:]) if known and len(known) == len(sums) else None


def shape_of(shape: Shape, of: Configured) -> tuple[int, ...]:
    """Return a shape, which may be a function of the parameters, or the size of a row of things."""
    found = shape(of) if callable(shape) else shape
    return (found,) if isinstance(found, int) else found


class Counts(StateField["Ints"]):
    """Rows of each thing, of which none has a weight; at most 2**61 together.

    The shape may be a function of the statistic, which knows its parameters.
    """

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self._shape = shape

    def empty(self, of: Configured) -> Ints:
        """Return zeros."""
        return np.zeros(shape_of(self._shape, of), np.int64)

    def plus(self, mine: Ints, other: Ints) -> Ints:
        """Return the sums."""
        check_rows(mine, other)
        return mine + other

    def arrays(self, value: Ints) -> dict[str, Array]:
        """Return the counts."""
        return {"": value}

    def taken(self, arrays: Arrays, of: Configured) -> Ints:
        """Return the counts, none of them negative and not too many together."""
        shape = shape_of(self._shape, of)
        counts = self.the_array(arrays, "int64", len(shape))
        if counts.shape != shape or (counts < 0).any() or not countable(counts):
            raise StateFormatError(f"the counts of {self.name} are not those of any rows")
        return counts

    def nbytes(self, value: Ints) -> int:
        """Bytes held now."""
        return value.nbytes

    def minus(self, value: Ints, other: Ints) -> Ints:
        """Return the differences, where none is negative."""
        if (other > value).any():
            raise not_among("there are fewer of them here")
        return value - other


def countable(counts: Ints) -> bool:
    """Whether the sum of counts, none of them negative, is far from wrapping."""
    return float(counts.sum(dtype=np.float64)) < MANY


def check_rows(*counts: Ints, most: int = MOST, of: str = "a clustering") -> None:
    """Raise where there are more rows together than is safe to count in 64 bits, or than `most`."""
    rows = sum(int(count.sum()) for count in counts)
    if rows > most:
        raise IncompatibleMetricsError(
            f"the merged state would have {rows} rows; "
            f"at most 2**{most.bit_length() - 1} of {of} are counted"
        )


class WideWeights(StateField[WeightedCount]):
    """How much there is of each of L things, (k, L) and not negative; L is 0 without rows.

    Args:
        kinds: How many amounts there are of each thing, k.
        of: What the things are, for messages.
    """

    def __init__(self, kinds: int, of: str) -> None:
        super().__init__()
        self._kinds, self._of = kinds, of

    def empty(self, of: Configured) -> WeightedCount:
        """Return amounts of nothing."""
        return WeightedCount.zero((self._kinds, 0))

    def plus(self, mine: WeightedCount, other: WeightedCount) -> WeightedCount:
        """Return what there is of each together."""
        one, two = mine.counts.shape[1], other.counts.shape[1]
        if one and two and one != two:
            raise IncompatibleMetricsError(f"{two} {self._of} cannot join {one}")
        return mine + other if one and two else (mine if one else other)

    def arrays(self, value: WeightedCount) -> dict[str, Array]:
        """Return those of exact sums, whether rows have weights or not."""
        return value.arrays()

    def taken(self, arrays: Arrays, of: Configured) -> WeightedCount:
        """Return the amounts, none of which is negative."""
        digits = arrays.get("digits")
        size = len(digits) if digits is not None and digits.ndim == 2 else 0
        if size % self._kinds:
            raise StateFormatError(f"{size} sums are not those of {self._kinds} for each thing")
        value = WeightedCount.of_exact(
            ExactSum.from_arrays((self._kinds, size // self._kinds), arrays)
        )
        if value.any_negative:
            raise StateFormatError(f"sums of {self.name} are negative, which no rows have")
        return value

    def nbytes(self, value: WeightedCount) -> int:
        """Bytes held now."""
        return value.nbytes

    def scaled(self, value: WeightedCount, weight: float) -> WeightedCount:
        """Return the products, exactly."""
        return value.scaled(weight) if value.counts.shape[1] else value

    def minus(self, value: WeightedCount, other: WeightedCount) -> WeightedCount:
        """Return the differences, where none is negative; of no rows there is nothing."""
        if not other.counts.shape[1]:
            return value
        if value.counts.shape != other.counts.shape:
            raise IncompatibleMetricsError(
                f"{other.counts.shape[1]} {self._of} are not among {value.counts.shape[1]}"
            )
        return value - other
