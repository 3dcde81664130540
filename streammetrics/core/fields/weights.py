"""Fields of how much there is of each thing: with weights, and of what has none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.errors import IncompatibleMetricsError, StateFormatError
from streammetrics.core.field import StateField, not_among
from streammetrics.core.fields.amounts import MANY, Amount, joined_amounts, regrouped_amounts
from streammetrics.core.fields.restoring import read_amount

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streammetrics.core.arithmetic.exact import ExactSum
    from streammetrics.core.configured import Configured
    from streammetrics.core.types import Array, Arrays, Ints, Places

    Shape = tuple[int, ...] | Callable[[Any], tuple[int, ...]]

MOST = 1 << 61  # rows of what is counted in 64 bits: merges stop far below what could wrap


class Weight(StateField[Amount]):
    """How much there is of each thing, not negative: of one, or of as many as the shape says.

    The shape may be a function of the statistic, which knows its parameters. With `squared` its
    amounts have squares. Grouped values have the groups along their first axis.
    """

    def __init__(self, shape: Shape = (), *, squared: bool = False, inline: bool = False) -> None:
        super().__init__(inline=inline)
        self._shape, self._squared = shape, squared

    def empty(self, of: Configured) -> Amount:
        """Return nothing of anything."""
        return Amount.zero(shape_of(self._shape, of))

    def plus(self, mine: Amount, other: Amount) -> Amount:
        """Return what there is of each together."""
        return mine + other

    def arrays(self, value: Amount) -> dict[str, Array]:
        """Return those of exact sums, whether rows have weights or not."""
        return value.arrays()

    def merged(self, mine: Amount, others: Sequence[Amount]) -> Amount:
        """Return what there is of each together: amounts of one thing are added up at once."""
        if len(others) > 1 and isinstance(mine.counts, int):
            weighed = [each for each in (mine, *others) if each.weights is not None]
            weights = _total([each.weights for each in weighed])
            squares = _total([each.squares for each in weighed])
            return Amount(sum([a.counts for a in others], mine.counts), weights, squares=squares)
        together = Amount.of_all([mine, *others])
        return super().merged(mine, others) if together is None else together

    def taken(self, arrays: Arrays, of: Configured) -> Amount:
        """Return the amounts, none of which is negative."""
        return self._read(shape_of(self._shape, of), arrays)

    def _read(self, shape: tuple[int, ...], arrays: Arrays) -> Amount:
        value = read_amount(shape, arrays, squared=self._squared)
        if value.any_negative:
            raise StateFormatError(f"sums of {self.name} are negative, which no rows have")
        return value

    def nbytes(self, value: Amount) -> int:
        """Bytes held now."""
        return value.nbytes

    def scaled(self, value: Amount, weight: float) -> Amount:
        """Return the products, exactly."""
        return value.scaled(weight, squared=self._squared)

    def minus(self, value: Amount, other: Amount) -> Amount:
        """Return the differences, where none is negative."""
        return value - other

    def no_groups(self, of: Configured, size: int) -> Amount:
        """Return nothing of anything."""
        return Amount.of_counts(np.zeros((size, *shape_of(self._shape, of)), np.int64))

    def regrouped(
        self,
        value: Amount,
        places: Places,
        size: int,
        of: Configured,  # noqa: ARG002 - nothing depends on it
    ) -> Amount:
        """Return the amounts of groups that go to one place."""
        return regrouped_amounts(value, places, size)

    def groups_plus(self, mine: Amount, other: Amount, size: int) -> Amount:  # noqa: ARG002 - amounts say it
        """Return what there is of each together."""
        return mine + other

    groups_nbytes = nbytes

    def groups_arrays(self, value: Amount, size: int) -> dict[str, Array]:  # noqa: ARG002 - amounts say it
        """Return those of exact sums, whether rows have weights or not."""
        return value.arrays()

    def groups_taken(self, arrays: Arrays, size: int, of: Configured) -> Amount:
        """Return the amounts, none of which is negative."""
        return self._read((size, *shape_of(self._shape, of)), arrays)

    def at(self, value: Amount, group: int) -> Amount:
        """Return the amounts of one group."""
        return value.at(group)

    def each_at(self, value: Amount, size: int) -> list[Amount]:
        """Return the amounts of every group."""
        if value.weights is not None:
            return [value.at(group) for group in range(size)]
        if value.counts.ndim == 1:
            return list(map(Amount, value.counts.tolist()))
        return list(map(Amount.of_counts, value.counts))

    def of_groups(self, values: Sequence[Amount], of: Configured) -> Amount:
        """Return the amounts of all groups."""
        return joined_amounts(values, shape_of(self._shape, of))


def _total(sums: Sequence[ExactSum | None]) -> ExactSum | None:
    """Return the sum of exact sums, ``None`` of none and where one of them is not known."""
    known = [each for each in sums if each is not None]
    return known[0].plus_all(known[1:]) if known and len(known) == len(sums) else None


def shape_of(shape: Shape, of: Configured) -> tuple[int, ...]:
    """Return a shape, which may be a function of the parameters."""
    return shape(of) if callable(shape) else shape


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
            f"the states hold {rows} rows together; "
            f"at most 2**{most.bit_length() - 1} of {of} are counted"
        )
