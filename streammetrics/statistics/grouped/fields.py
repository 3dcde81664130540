"""Fields of a state for many groups: one array of counts or of exact sums, and not one for each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.counting import added_at
from streammetrics.core.fields.amounts import MANY, Amount
from streammetrics.core.fields.sums import each_plus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.field import StateField
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import Places


V = TypeVar("V")


class GroupedField(ABC, Generic[V]):
    """A field of a statistic, for groups 0 to ``size - 1``; values are immutable."""

    def __init__(self, field: StateField[Any]) -> None:
        self.field = field

    @abstractmethod
    def empty(self, of: Statistic, size: int) -> V:
        """Return the values of no rows."""

    @abstractmethod
    def regrouped(self, value: V, places: Places, size: int) -> V:
        """Return what the groups at each place hold together; -1 is nowhere."""

    @abstractmethod
    def plus(self, mine: V, other: V) -> V:
        """Return what both hold together, group by group."""

    @abstractmethod
    def at(self, value: V, group: int) -> Any:
        """Return the field's value of one group, which has rows."""

    @abstractmethod
    def joined(self, values: Sequence[Any], of: Statistic) -> V:
        """Return the groups of which the field's values are given."""

    @abstractmethod
    def nbytes(self, value: V) -> int:
        """Bytes held now."""


class GroupedSum(GroupedField[ExactSum]):
    """Exact sums, groups along the first axis."""

    def empty(self, of: Statistic, size: int) -> ExactSum:
        """Return sums of nothing."""
        return ExactSum.zero((size, *self.field.empty(of).shape))

    def regrouped(self, value: ExactSum, places: Places, size: int) -> ExactSum:
        """Return the sums of groups that go to one place."""
        return regrouped_sums(value, places, size)

    def plus(self, mine: ExactSum, other: ExactSum) -> ExactSum:
        """Return the sums of both."""
        return mine + other

    def at(self, value: ExactSum, group: int) -> ExactSum:
        """Return the sums of one group."""
        return value[group]

    def joined(self, values: Sequence[ExactSum], of: Statistic) -> ExactSum:
        """Return the sums of all groups."""
        return joined_sums(values, self.field.empty(of).shape)

    def nbytes(self, value: ExactSum) -> int:
        """Bytes held now."""
        return value.nbytes


def regrouped_sums(value: ExactSum, places: Places, size: int) -> ExactSum:
    """Return the sums of rows that go to one place, of which -1 is none."""
    kept = np.flatnonzero(places >= 0)
    if kept.size < places.size:
        value, places = value[kept], places[kept]
    return value.regroup(places, size)


def joined_sums(values: Sequence[ExactSum], shape: tuple[int, ...]) -> ExactSum:
    """Return sums of one shape as rows of an array of them."""
    if not values:
        return ExactSum.zero((0, *shape))
    tables, exponent = ExactSum.aligned(values)
    return ExactSum.of_digits(np.stack(tables), exponent)


class GroupedNamedSums(GroupedField[dict[str, ExactSum]]):
    """Exact sums by name, groups along the first axis; none while there are no rows."""

    def empty(self, of: Statistic, size: int) -> dict[str, ExactSum]:  # noqa: ARG002 - as of no rows
        """Return no sums."""
        return {}

    def regrouped(
        self, value: dict[str, ExactSum], places: Places, size: int
    ) -> dict[str, ExactSum]:
        """Return the sums of groups that go to one place."""
        return {name: regrouped_sums(total, places, size) for name, total in value.items()}

    def plus(self, mine: dict[str, ExactSum], other: dict[str, ExactSum]) -> dict[str, ExactSum]:
        """Return the sums of both."""
        return each_plus(mine, other)

    def at(self, value: dict[str, ExactSum], group: int) -> dict[str, ExactSum]:
        """Return the sums of one group."""
        return {name: total[group] for name, total in value.items()}

    def joined(
        self,
        values: Sequence[dict[str, ExactSum]],
        of: Statistic,  # noqa: ARG002 - the values say it
    ) -> dict[str, ExactSum]:
        """Return the sums of all groups, of which those without rows have none."""
        known = next(filter(None, values), {})
        zeros = {name: ExactSum.zero(total.shape) for name, total in known.items()}
        return {
            name: joined_sums([(value or zeros)[name] for value in values], total.shape)
            for name, total in known.items()
        }

    def nbytes(self, value: dict[str, ExactSum]) -> int:
        """Bytes held now."""
        return sum(total.nbytes for total in value.values())


class GroupedWeight(GroupedField[Amount]):
    """Amounts, groups along the first axis."""

    def empty(self, of: Statistic, size: int) -> Amount:
        """Return nothing of anything."""
        return Amount.of_counts(np.zeros((size, *self._shape(of)), np.int64))

    def _shape(self, of: Statistic) -> tuple[int, ...]:
        return np.shape(self.field.empty(of).counts)

    def regrouped(self, value: Amount, places: Places, size: int) -> Amount:
        """Return the amounts of groups that go to one place."""
        return regrouped_amounts(value, places, size)

    def plus(self, mine: Amount, other: Amount) -> Amount:
        """Return what there is of each together."""
        return mine + other

    def at(self, value: Amount, group: int) -> Amount:
        """Return the amounts of one group."""
        return value.at(group)

    def joined(self, values: Sequence[Amount], of: Statistic) -> Amount:
        """Return the amounts of all groups."""
        if all(value.weights is None and _is_small(value.counts) for value in values):
            counts = np.array([value.counts for value in values], np.int64)
            return Amount.of_counts(counts.reshape(len(values), *self._shape(of)))
        return joined_amounts(values, self._shape(of))

    def nbytes(self, value: Amount) -> int:
        """Bytes held now."""
        return value.nbytes


def _is_small(counts: object) -> bool:
    return not isinstance(counts, int) or counts < MANY


def regrouped_amounts(value: Amount, places: Places, size: int) -> Amount:
    """Return the amounts of rows that go to one place, of which -1 is none."""
    if float(value.counts.sum(dtype=np.float64)) >= MANY:
        value = Amount(value.counts, value.weights, MANY, value.squares)
    kept = np.flatnonzero(places >= 0)
    counts = added_at(places[kept], value.counts[kept], size)
    weights, squares = (
        None if sums is None else regrouped_sums(sums, places, size)
        for sums in (value.weights, value.squares)
    )
    return Amount(counts, weights, int(counts.max(initial=0)), squares)


def joined_amounts(values: Sequence[Amount], shape: tuple[int, ...]) -> Amount:
    """Return amounts of one shape as rows of an array of them."""
    told = [value.squared() for value in values]
    known = [squares for squares in told if squares is not None]
    return Amount.of_weights(
        joined_sums([value.exact() for value in values], shape),
        joined_sums(known, shape) if len(known) == len(told) else None,
    )


class GroupedWidth(GroupedField[int]):
    """How many numbers a row has: one for all groups, as all rows have as many."""

    def empty(self, of: Statistic, size: int) -> int:  # noqa: ARG002 - as of no rows
        """Return 0."""
        return 0

    def regrouped(self, value: int, places: Places, size: int) -> int:
        """Return the same, while there is a group."""
        return value if size and places.size else 0

    def plus(self, mine: int, other: int) -> int:
        """Return the one there is."""
        width: int = self.field.plus(mine, other)
        return width

    def at(self, value: int, group: int) -> int:  # noqa: ARG002 - all have as many
        """Return the same."""
        return value

    def joined(self, values: Sequence[int], of: Statistic) -> int:  # noqa: ARG002 - the values say it
        """Return the one there is."""
        width = 0
        for value in values:
            width = self.field.plus(width, value)
        return width

    def nbytes(self, value: int) -> int:  # noqa: ARG002 - all are of one size
        """Bytes of a number."""
        return 8
