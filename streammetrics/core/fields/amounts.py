"""How much there is of something: rows are counted while they weigh one, else summed exactly."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from streammetrics.core.errors import IncompatibleMetricsError, StateFormatError
from streammetrics.core.exact.scaling import times
from streammetrics.core.exact.sums import ExactSum
from streammetrics.core.fields.field import StateField, not_among

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from streammetrics.core.configured import Configured

    Shape = tuple[int, ...] | Callable[[Any], tuple[int, ...]]

MOST = 1 << 61  # rows of what is counted in 64 bits: merges stop far below what could wrap
MANY = 1 << 62  # counts below can be added
_DIGIT = 1 << 31  # counts below are digits of exact sums
_NO_EXPONENT = np.array(0, np.int64)
_NO_EXPONENT.flags.writeable = False


class Amount:
    """The weight of rows, of one thing or for each of several: counts, and sums of weights.

    Rows without a weight are counted in an array of int64, or in a Python integer where the shape
    is ``()``; only those with a weight cost an exact sum. What is neither negative nor of other
    rows than `weights` and `counts` together is up to who made it.
    """

    __slots__ = ("_most", "counts", "weights")

    def __init__(self, counts: Any, weights: ExactSum | None = None, most: int = 0) -> None:
        self.counts: Any = counts
        self.weights = weights
        self._most = most  # no count in an array is larger
        if most >= MANY:
            many = ExactSum.counts(counts)
            self.weights = many if weights is None else weights + many
            self.counts, self._most = np.zeros_like(counts), 0

    @classmethod
    def zero(cls, shape: tuple[int, ...] = ()) -> Self:
        """Nothing of anything."""
        return cls(np.zeros(shape, np.int64) if shape else 0)

    @classmethod
    def of_rows(cls, n: int, weight: NDArray[np.float64] | None) -> Self:
        """The weight of `n` rows, of one each where there is none."""
        return cls(n) if weight is None else cls(0, ExactSum.of(weight))

    @classmethod
    def of_counts(cls, counts: NDArray[np.int64], most: int | None = None) -> Self:
        """Rows of weight one, of which `most` are of one thing."""
        return cls(counts, None, int(counts.max(initial=0)) if most is None else most)

    @classmethod
    def of_weights(cls, weights: ExactSum) -> Self:
        """Rows of which none is known to weigh one."""
        return cls(np.zeros(weights.shape, np.int64) if weights.shape else 0, weights)

    @classmethod
    def of_exact(cls, amount: ExactSum) -> Self:
        """The same amount: counts if all are whole and below 2**62, else exact sums."""
        if amount.shape == ():
            value, unit = amount.integers()
            if unit >= 0:
                return cls(value << unit)
            whole = value >> -unit
            return cls(whole) if whole << -unit == value else cls(0, amount)
        if amount.exponent == 0 and amount.digits.shape[1] == 1:
            return cls.of_counts(amount.digits.reshape(amount.shape))
        floats = np.abs(np.asarray(amount.to_float()))
        if amount.exponent < 0 or floats.max(initial=0.0) >= MANY:
            return cls.of_weights(amount)
        counts = np.zeros(amount.shape, np.int64)
        for place, digits in enumerate(amount.digits.T):
            counts += (digits << (32 * place + amount.exponent)).reshape(amount.shape)
        return cls.of_counts(counts)

    def __add__(self, other: Self) -> Self:
        weights = self.weights
        if other.weights is not None:
            weights = other.weights if weights is None else weights + other.weights
        return type(self)(self.counts + other.counts, weights, self._most + other._most)

    def __sub__(self, other: Self) -> Self:
        left = self.of_exact(self.exact() - other.exact())
        if (left.signs() < 0).any():
            raise not_among("there are fewer of them here")
        return left

    def __bool__(self) -> bool:
        """Whether there is something."""
        if isinstance(self.counts, int):
            return bool(self.counts or (self.weights is not None and self.weights.integers()[0]))
        return bool(np.any(self.signs()))

    def spread(self, places: NDArray[np.intp] | None, size: int) -> Self:
        """Amounts ``(n,)`` at their places among `size`, which differ; none elsewhere."""
        if places is None:
            return self
        counts = np.zeros(size, np.int64)
        counts[places] = self.counts
        weights = None if self.weights is None else self.weights.regroup(places, size)
        return type(self)(counts, weights, self._most)

    def at(self, index: Any) -> Self:
        """Index the array as NumPy would."""
        weights = None if self.weights is None else self.weights[index]
        return type(self)(self.counts[index], weights, self._most)

    def exact(self) -> ExactSum:
        """The same as exact sums."""
        if not isinstance(self.counts, np.ndarray):
            counts = ExactSum.single(self.counts)
        elif self.weights is not None and not self.counts.any():
            return self.weights
        else:
            counts = ExactSum.counts(self.counts)
        return counts if self.weights is None else self.weights + counts

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays of `exact`."""
        counts = self.counts
        plain = self.weights is None and isinstance(counts, np.ndarray)
        if plain and self._most < _DIGIT and counts.any():  # they are digits as they are
            return {"digits": counts.reshape(-1, 1), "exponent": _NO_EXPONENT}
        return self.exact().arrays()

    def plain(self) -> NDArray[np.int64] | ExactSum:
        """The counts, or exact sums where rows have weights."""
        return self.counts if self.weights is None else self.exact()

    def fraction(self) -> Fraction:
        """The exact weight of one thing."""
        return Fraction(*self.ratio())

    def ratio(self) -> tuple[int, int]:
        """The same as two integers, the weight times the second of them and this."""
        if self.weights is None:
            return int(self.counts), 1
        return (self.weights.fraction() + int(self.counts)).as_integer_ratio()

    def signs(self) -> NDArray[Any]:
        """Numbers of the signs that the amounts have."""
        if self.weights is None:
            return np.asarray(self.counts)
        amount = self.exact()
        if amount.shape == ():
            return np.array((amount.integers()[0] > 0) - (amount.integers()[0] < 0))
        # The highest digit has the sign, but it may be 0 above others that are not.
        signs = np.where(amount.digits.any(axis=1), 1, 0)
        signs[(amount.digits[:, -1:] < 0).any(axis=1)] = -1
        return signs.reshape(amount.shape)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        counts = self.counts.nbytes if isinstance(self.counts, np.ndarray) else 8
        return counts + (0 if self.weights is None else self.weights.nbytes)

    def scaled(self, weight: float) -> Self:
        """The same rows, each of them weighing so many times as much."""
        return self.of_exact(times(self.exact(), weight))


class Weight(StateField[Amount]):
    """How much there is of each thing, not negative: of one, or of as many as the shape says.

    The shape may be a function of the statistic, which knows its parameters.
    """

    def __init__(self, shape: Shape = (), *, inline: bool = False) -> None:
        super().__init__(inline=inline)
        self._shape = shape

    def empty(self, of: Configured) -> Amount:
        """Return nothing of anything."""
        return Amount.zero(shape_of(self._shape, of))

    def plus(self, mine: Amount, other: Amount) -> Amount:
        """Return what there is of each together."""
        return mine + other

    def arrays(self, value: Amount) -> dict[str, NDArray[Any]]:
        """Return those of exact sums, whether rows have weights or not."""
        return value.arrays()

    def merged(self, mine: Amount, others: Sequence[Amount]) -> Amount:
        """Return what there is of each together: amounts of one thing are added up at once."""
        if len(others) > 1 and isinstance(mine.counts, int):
            weights = [a.weights for a in (mine, *others) if a.weights is not None]
            total = weights[0].plus_all(weights[1:]) if weights else None
            return Amount(sum([other.counts for other in others], mine.counts), total)
        return super().merged(mine, others)

    def taken(self, arrays: Mapping[str, NDArray[Any]], of: Configured) -> Amount:
        """Return the amounts, none of which is negative."""
        value = Amount.of_exact(ExactSum.from_arrays(shape_of(self._shape, of), arrays))
        if (value.signs() < 0).any():
            raise StateFormatError(f"sums of {self.name} are negative, which no rows have")
        return value

    def each_taken(
        self, stacks: Mapping[str, NDArray[Any]], n: int, of: Configured
    ) -> list[Amount]:
        """Return the amounts of each, all of them checked at once."""
        sums = ExactSum.each_of_arrays(shape_of(self._shape, of), stacks, n)
        if (stacks["digits"][:, :, -1:] < 0).any():  # the highest digit has the sign
            raise StateFormatError(f"sums of {self.name} are negative, which no rows have")
        return [Amount.of_exact(total) for total in sums]

    def nbytes(self, value: Amount) -> int:
        """Bytes held now."""
        return value.nbytes

    def scaled(self, value: Amount, weight: float) -> Amount:
        """Return the products, exactly."""
        return value.scaled(weight)

    def minus(self, value: Amount, other: Amount) -> Amount:
        """Return the differences, where none is negative."""
        return value - other


def shape_of(shape: Shape, of: Configured) -> tuple[int, ...]:
    """Return a shape, which may be a function of the parameters."""
    return shape(of) if callable(shape) else shape


class Counts(StateField["NDArray[np.int64]"]):
    """Rows of each thing, of which none has a weight; at most 2**61 together.

    The shape may be a function of the statistic, which knows its parameters.
    """

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self._shape = shape

    def empty(self, of: Configured) -> NDArray[np.int64]:
        """Return zeros."""
        return np.zeros(shape_of(self._shape, of), np.int64)

    def plus(self, mine: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sums."""
        check_rows(mine, other)
        return mine + other

    def arrays(self, value: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        """Return the counts."""
        return {"": value}

    def taken(self, arrays: Mapping[str, NDArray[Any]], of: Configured) -> NDArray[np.int64]:
        """Return the counts, none of them negative and not too many together."""
        shape = shape_of(self._shape, of)
        counts = self.the_array(arrays, "int64", len(shape))
        if counts.shape != shape or (counts < 0).any() or not countable(counts):
            raise StateFormatError(f"the counts of {self.name} are not those of any rows")
        return counts

    def nbytes(self, value: NDArray[np.int64]) -> int:
        """Bytes held now."""
        return value.nbytes

    def minus(self, value: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the differences, where none is negative."""
        if (other > value).any():
            raise not_among("there are fewer of them here")
        return value - other


def countable(counts: NDArray[np.int64]) -> bool:
    """Whether the sum of counts, none of them negative, is far from wrapping."""
    return float(counts.sum(dtype=np.float64)) < MANY


def check_rows(*counts: NDArray[np.int64]) -> None:
    """Raise where there are more rows together than is safe to count in 64 bits."""
    rows = sum(int(count.sum()) for count in counts)
    if rows > MOST:
        raise IncompatibleMetricsError(
            f"the states hold {rows} rows together; at most 2**61 of a clustering are counted"
        )
