"""What a table by label may hold of each label: an amount of rows, exact sums or extremes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.errors import IncompatibleMetricsError, StateFormatError
from streammetrics.core.fields.weights import WeightedCount, check_rows, countable
from streammetrics.core.sorted_union import Union, spread
from streammetrics.core.state.arrays import nested, part, take_array

if TYPE_CHECKING:
    from streammetrics.core.types import Array, Arrays, Bools, Floats, Places

C = TypeVar("C")


class Entries(ABC, Generic[C]):
    """A column of a table: what it holds for each of its labels, a commutative monoid."""

    @abstractmethod
    def none(self) -> C:
        """Return the entries of no labels."""

    @abstractmethod
    def plus(self, mine: C, other: C, union: Union) -> C:
        """Return the entries of both at the places of a union."""

    @abstractmethod
    def arrays(self, name: str, value: C) -> dict[str, Array]:
        """Return the arrays, all of them named for the column."""

    @abstractmethod
    def taken(self, name: str, arrays: Arrays, size: int) -> C:
        """Return as many entries from the arrays of all columns, or raise `ValueError`."""

    @abstractmethod
    def at(self, value: C, rows: Places) -> C:
        """Return some of the entries."""

    def minus(self, value: C, other: C, places: Places | None) -> C:  # noqa: ARG002 - most can
        """Return the entries less `other`, which stands at some of their places."""
        raise IncompatibleMetricsError(
            "a minimum or maximum cannot be computed without some of its rows"
        )

    def scaled(self, value: C, weight: float) -> C:  # noqa: ARG002 - most do not weigh
        """Return the entries of rows of so many times the weight."""
        return value

    def used(self, value: C) -> Bools | None:  # noqa: ARG002 - most cannot tell
        """Return which labels have rows; ``None`` where these entries cannot tell."""
        return None


class Weights(Entries[WeightedCount]):
    """How much there is of each label, which is more than nothing.

    With `whole` rows have no weights: their counts are an array of their own, and there are at most
    2**61 of them.
    """

    def __init__(self, *, whole: bool = False) -> None:
        self._whole = whole

    def none(self) -> WeightedCount:
        """Return no amounts."""
        return WeightedCount.of_counts(np.empty(0, np.int64))

    def plus(self, mine: WeightedCount, other: WeightedCount, union: Union) -> WeightedCount:
        """Return the sums."""
        if self._whole:
            check_rows(mine.counts, other.counts)
        size = len(union.keys)
        return mine.spread(union.mine, size) + other.spread(union.theirs, size)

    def arrays(self, name: str, value: WeightedCount) -> dict[str, Array]:
        """Return counts, or digits of exact sums."""
        return {name: value.counts} if self._whole else nested(name, value.arrays())

    def taken(self, name: str, arrays: Arrays, size: int) -> WeightedCount:
        """Return amounts, all of them positive."""
        if self._whole:
            counts = take_array(arrays, name, "int64")
            if not countable(counts):
                raise StateFormatError(f"{name} are more rows than are counted")
            value = WeightedCount.of_counts(counts)
        else:
            value = WeightedCount.of_exact(ExactSum.from_arrays((size,), part(arrays, name)))
        if value.counts.shape != (size,) or not (value.signs() > 0).all():
            raise StateFormatError(f"{name} of labels are not positive, one for each")
        return value

    def at(self, value: WeightedCount, rows: Places) -> WeightedCount:
        """Return some of the amounts."""
        return value.at(rows)

    def minus(
        self, value: WeightedCount, other: WeightedCount, places: Places | None
    ) -> WeightedCount:
        """Return the differences, none of them negative."""
        return value - other.spread(places, len(value.counts))

    def scaled(self, value: WeightedCount, weight: float) -> WeightedCount:
        """Return the products."""
        return value.scaled(weight)

    def used(self, value: WeightedCount) -> Bools:
        """Return where there is something."""
        used: Bools = value.signs() != 0
        return used


class Sums(Entries[ExactSum]):
    """Exact sums (labels, width), as wide as the rows turn out to be."""

    def none(self) -> ExactSum:
        """Return no sums."""
        return ExactSum.zero((0, 0))

    def plus(self, mine: ExactSum, other: ExactSum, union: Union) -> ExactSum:
        """Return the sums of both."""
        if mine.shape[1:] != other.shape[1:]:
            raise IncompatibleMetricsError(
                f"sums of {other.shape[1]} columns cannot join those of {mine.shape[1]}"
            )
        size = len(union.keys)
        return _regrouped(mine, union.mine, size) + _regrouped(other, union.theirs, size)

    def arrays(self, name: str, value: ExactSum) -> dict[str, Array]:
        """Return the digits."""
        return nested(name, value.arrays())

    def taken(self, name: str, arrays: Arrays, size: int) -> ExactSum:
        """Return canonical sums."""
        parts = part(arrays, name)
        rows = len(parts["digits"]) if "digits" in parts and parts["digits"].ndim else 0
        return ExactSum.from_arrays((size, rows // size if size else 0), parts)

    def at(self, value: ExactSum, rows: Places) -> ExactSum:
        """Return some of the sums."""
        return value[rows]

    def minus(self, value: ExactSum, other: ExactSum, places: Places | None) -> ExactSum:
        """Return the differences."""
        return value - _regrouped(other, places, value.shape[0])

    def scaled(self, value: ExactSum, weight: float) -> ExactSum:
        """Return the products."""
        return value.times(weight)


class KeyedExtremes(Entries["Floats"]):
    """The smallest number of each column (labels, width), or the `largest`; all are finite."""

    def __init__(self, *, largest: bool = False) -> None:
        self._better = np.maximum if largest else np.minimum
        self._worst = -np.inf if largest else np.inf

    def none(self) -> Floats:
        """Return no numbers."""
        return np.empty((0, 0))

    def plus(self, mine: Floats, other: Floats, union: Union) -> Floats:
        """Return the extremes of both."""
        if mine.shape[1:] != other.shape[1:]:
            raise IncompatibleMetricsError(
                f"{other.shape[1]} columns cannot join {mine.shape[1]} columns"
            )
        size = len(union.keys)
        better: Floats = self._better(
            spread(mine, union.mine, size, self._worst),
            spread(other, union.theirs, size, self._worst),
        )
        return better

    def arrays(self, name: str, value: Floats) -> dict[str, Array]:
        """Return the numbers."""
        return {name: value}

    def taken(self, name: str, arrays: Arrays, size: int) -> Floats:
        """Return the numbers, each as it is written."""
        values = take_array(arrays, name, "float64", 2)
        if len(values) != size:
            raise StateFormatError(f"{name} of {len(values)} labels, not of {size}")
        if not np.isfinite(values).all() or np.signbit(values[values == 0.0]).any():
            raise StateFormatError(f"{name} of labels are not finite, or -0.0")
        return values

    def at(self, value: Floats, rows: Places) -> Floats:
        """Return some of the numbers."""
        return value[rows]


def _regrouped(sums: ExactSum, places: Places | None, size: int) -> ExactSum:
    return sums if places is None else sums.regroup(places, size)
