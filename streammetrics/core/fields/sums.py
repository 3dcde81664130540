"""Fields of numbers: exact sums, widths and extremes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.errors import IncompatibleMetricsError, StateFormatError
from streammetrics.core.field import StateField, not_among
from streammetrics.core.fields.weights import ShapedField, Weight, WeightedCount, shape_of
from streammetrics.core.state.arrays import nested, take_array
from streammetrics.core.state.arrays import parted as parts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streammetrics.core.configured import Configured
    from streammetrics.core.counting import GroupCodes
    from streammetrics.core.types import Array, Arrays, Bools, Floats, Ints, Places


class Sum(ShapedField[ExactSum]):
    """An exact sum, or an array of them of a shape."""

    def zeros(self, shape: tuple[int, ...]) -> ExactSum:
        """Return sums of nothing."""
        return ExactSum.zero(shape)

    def merged(self, mine: ExactSum, others: Sequence[ExactSum]) -> ExactSum:
        """Return the sums of all."""
        return mine.plus_all(others)

    def read(self, shape: tuple[int, ...], arrays: Arrays) -> ExactSum:
        """Return the sums, which are canonical."""
        return ExactSum.from_arrays(shape, arrays)

    def scaled(self, value: ExactSum, weight: float) -> ExactSum:
        """Return the products, exactly."""
        return value.times(weight)

    def regrouped(self, value: ExactSum, places: Places, size: int, of: Configured) -> ExactSum:
        """Return the sums of groups that go to one place."""
        return value.regroup(places, size)

    def at(self, value: ExactSum, group: int) -> ExactSum:
        """Return the sums of one group."""
        return value[group]

    def of_groups(self, values: Sequence[ExactSum], of: Configured) -> ExactSum:
        """Return the sums of all groups."""
        return ExactSum.stacked(values, shape_of(self._shape, of))


class GroupedSums(NamedTuple):
    """Exact sums by name ``(size, ...)``, and which of the groups have rows."""

    seen: Bools
    sums: dict[str, ExactSum]

    @property
    def nbytes(self) -> int:
        """Bytes held now."""
        return self.seen.nbytes + sum(total.nbytes for total in self.sums.values())

    def at(self, group: int) -> dict[str, ExactSum]:
        """Return the sums of one group."""
        return {n: total[group] for n, total in self.sums.items()} if self.seen[group] else {}

    def groups_plus(self, other: GroupedSums) -> GroupedSums | None:
        """Return the sums of both; ``None`` if they are of different numbers of outputs."""
        seen = self.seen | other.seen
        if not self.sums or not other.sums:
            return GroupedSums(seen, self.sums or other.sums)
        if any(self.sums[name].shape != total.shape for name, total in other.sums.items()):
            return None
        return GroupedSums(seen, {n: total + other.sums[n] for n, total in self.sums.items()})

    def regrouped(self, places: Places, size: int) -> GroupedSums:
        """Return the sums of groups that go to one place."""
        seen = np.zeros(size, np.bool_)
        seen[places[self.seen & (places >= 0)]] = True
        return GroupedSums(seen, {n: t.regroup(places, size) for n, t in self.sums.items()})


class NamedSums(StateField[dict[str, ExactSum]]):
    """Exact sums by name, each one or ``(d,)`` for as many outputs as rows turn out to have.

    There are none without rows. `names` says how they are called, by the parameters. Grouped values
    are `GroupedSums`, or a tuple where groups have different numbers of outputs.
    """

    def __init__(self, names: Callable[[Any], tuple[str, ...]], *, inline: bool = False) -> None:
        super().__init__(inline=inline)
        self._names = names

    def empty(self, of: Configured) -> dict[str, ExactSum]:
        """Return no sums."""
        return {}

    def plus(self, mine: dict[str, ExactSum], other: dict[str, ExactSum]) -> dict[str, ExactSum]:
        """Return the sums of both."""
        if not mine or not other:
            return mine or other
        sums = {}
        try:
            for name, total in mine.items():
                sums[name] = total + other[name]
        except ValueError as error:
            raise _other_outputs(error) from None
        return sums

    def merged(
        self, mine: dict[str, ExactSum], others: Sequence[dict[str, ExactSum]]
    ) -> dict[str, ExactSum]:
        """Return the sums of all."""
        seen = [value for value in (mine, *others) if value]
        if len(seen) < 2:
            return seen[0] if seen else {}
        first, *rest = seen
        try:
            return {
                name: total.plus_all([other[name] for other in rest])
                for name, total in first.items()
            }
        except ValueError as error:
            raise _other_outputs(error) from None

    def arrays(self, value: dict[str, ExactSum]) -> dict[str, Array]:
        """Return digits and exponent of each."""
        arrays: dict[str, Array] = {}
        for name, total in value.items():
            arrays |= nested(name, total.arrays())
        return arrays

    def taken(self, arrays: Arrays, of: Configured) -> dict[str, ExactSum]:
        """Return the sums: all names or none, of one width."""
        if not arrays:
            return {}
        parts, width = self._parts(arrays, of)
        shape = () if width == 1 else (width,)
        return {name: ExactSum.from_arrays(shape, part) for name, part in parts.items()}

    def _parts(self, arrays: Arrays, of: Configured) -> tuple[dict[str, dict[str, Array]], int]:
        """Return the arrays of each sum, and how many numbers all of them have."""
        parts, names = parts_of(arrays), self._names(of)
        if parts.keys() != set(names):
            raise StateFormatError(f"{sorted(arrays)} are not the sums {list(names)}")
        widths = {part["digits"].shape[:1] for part in parts.values() if "digits" in part}
        if len(widths) != 1 or widths == {()}:
            raise StateFormatError(f"sums {list(names)} are of different widths")
        ((width,),) = widths
        return {name: parts[name] for name in names}, width

    def nbytes(self, value: dict[str, ExactSum]) -> int:
        """Bytes held now."""
        return sum(total.nbytes for total in value.values())

    def scaled(self, value: dict[str, ExactSum], weight: float) -> dict[str, ExactSum]:
        """Return the products, exactly."""
        return {name: total.times(weight) for name, total in value.items()}

    def minus(self, value: dict[str, ExactSum], other: dict[str, ExactSum]) -> dict[str, ExactSum]:
        """Return the differences, exactly."""
        if not other:
            return value
        return {name: total - _fitting(total, other[name]) for name, total in value.items()}

    def no_groups(self, of: Configured, size: int) -> GroupedSums:
        """Return no sums."""
        return GroupedSums(np.zeros(size, np.bool_), {})

    def of_groups(
        self, values: Sequence[dict[str, ExactSum]], of: Configured
    ) -> GroupedSums | tuple[dict[str, ExactSum], ...]:
        """Return the sums of all groups, of which those without rows have none."""
        return self._grouped(values)

    def _grouped(
        self, values: Sequence[dict[str, ExactSum]]
    ) -> GroupedSums | tuple[dict[str, ExactSum], ...]:
        known = next(filter(None, values), None)
        if known is None:
            return GroupedSums(np.zeros(len(values), np.bool_), {})
        shape = next(iter(known.values())).shape
        if any(total.shape != shape for value in values for total in value.values()):
            return tuple(values)
        zeros = dict.fromkeys(known, ExactSum.zero(shape))
        every = [value or zeros for value in values]
        sums = {name: ExactSum.stacked([each[name] for each in every], shape) for name in known}
        return GroupedSums(np.array([bool(value) for value in values], np.bool_), sums)

    def of_batch(self, found: dict[str, ExactSum], group: GroupCodes) -> GroupedSums:
        """Return the sums of the rows of a batch, by name."""
        return GroupedSums((group.counts > 0) & bool(found), found)

    def together(self, value: object) -> dict[str, ExactSum] | None:
        """Return the sums of all groups, where each has rows, of one output."""
        if not isinstance(value, GroupedSums) or not value.sums or not value.seen.all():
            return None
        return value.sums if all(len(total.shape) == 1 for total in value.sums.values()) else None

    def groups_arrays(self, value: Any, size: int) -> dict[str, Array]:
        """Return which groups have rows, and digits and exponent of each sum."""
        if not isinstance(value, GroupedSums):
            value = self._grouped(value)
        if not isinstance(value, GroupedSums):
            return super().groups_arrays(value, size)
        return {"seen": value.seen, **(self.arrays(value.sums) if value.seen.any() else {})}

    def groups_taken(self, arrays: Arrays, size: int, of: Configured) -> object:
        """Return the sums of all groups: all names or none, of one width."""
        if "seen" not in arrays:
            return super().groups_taken(arrays, size, of)
        seen = take_array(arrays, "seen", "bool")
        own = {name: array for name, array in arrays.items() if name != "seen"}
        if seen.shape != (size,) or bool(own) != bool(seen.any()):
            raise StateFormatError(f"{self.name} do not say which groups have rows")
        if not own:
            return GroupedSums(seen, {})
        parts, width = self._parts(own, of)
        if width % size:
            raise StateFormatError(f"{width} sums are not those of {size} groups")
        shape = (size,) if width == size else (size, width // size)
        sums = {name: ExactSum.from_arrays(shape, part) for name, part in parts.items()}
        for total in sums.values():
            if total.digits.reshape(size, -1)[~seen].any():
                raise StateFormatError(f"there are {self.name} of groups without rows")
        return GroupedSums(seen, sums)


def _other_outputs(error: ValueError) -> IncompatibleMetricsError:
    return IncompatibleMetricsError(f"these are sums of other outputs: {error}")


def _fitting(mine: ExactSum, other: ExactSum) -> ExactSum:
    if mine.shape != other.shape:
        raise IncompatibleMetricsError(
            f"sums of {other.shape} outputs cannot join those of {mine.shape}"
        )
    return other


class SquareWeighted(NamedSums):
    """Exact sums of terms that each hold the square of their row's weight."""

    def scaled(self, value: dict[str, ExactSum], weight: float) -> dict[str, ExactSum]:
        """Return the products with the square of the weight, exactly."""
        return super().scaled(super().scaled(value, weight), weight)


class SquaredWeight(Weight):
    """The sum of the squares of weights, which is the number of rows where each weighs one."""

    def scaled(self, value: WeightedCount, weight: float) -> WeightedCount:
        """Return the product with the square of the weight, exactly."""
        return super().scaled(super().scaled(value, weight), weight)


# ---- widths and extremes ----


class Width(StateField[int]):
    """How many numbers a row has: 0 without rows, and then the same for all.

    `of` says in messages what they are. Grouped values are an array ``(size,)``.
    """

    def __init__(self, of: str, largest: int = (1 << 31) - 1) -> None:
        super().__init__()
        self._of, self._largest = of, largest

    def empty(self, of: Configured) -> int:
        """Return 0."""
        return 0

    def plus(self, mine: int, other: int) -> int:
        """Return the one there is."""
        if mine and other and mine != other:
            raise IncompatibleMetricsError(f"{other} {self._of} cannot join {mine}")
        return mine or other

    def arrays(self, value: int) -> dict[str, Array]:
        """Return the number."""
        return {"": np.array([value], np.int64)}

    def taken(self, arrays: Arrays, of: Configured) -> int:
        """Return a number that is not negative, nor too large."""
        width = self.the_array(arrays, "int64")
        if width.shape != (1,) or not 0 <= width[0] <= self._largest:
            raise StateFormatError(f"{width.tolist()} is not a number of {self._of}")
        return int(width[0])

    def nbytes(self, value: int) -> int:
        """Bytes of a number."""
        return 8

    def scaled(self, value: int, weight: float) -> int:
        """Return the same number."""
        return value

    def minus(self, value: int, other: int) -> int:
        """Return the same number, while there are rows."""
        self.plus(value, other)
        return value

    def no_groups(self, of: Configured, size: int) -> Ints:
        """Return zeros."""
        return np.zeros(size, np.int64)

    def of_groups(self, values: Sequence[int], of: Configured) -> Ints:
        """Return the numbers of all groups."""
        return np.array(values, np.int64)

    def of_batch(self, found: int, group: GroupCodes) -> Ints:
        """Return the number of all groups that have rows in a batch."""
        return np.where(group.counts > 0, np.int64(found), 0)

    def at(self, value: Ints, group: int) -> int:
        """Return the number of one group."""
        return int(value[group])

    def groups_plus(self, mine: Ints, other: Ints, size: int) -> Ints:
        """Return the one that there is in each group."""
        odd = np.flatnonzero((mine != other) & (mine > 0) & (other > 0))
        if odd.size:
            self.plus(int(mine[odd[0]]), int(other[odd[0]]))
        return np.maximum(mine, other)

    def regrouped(self, value: Ints, places: Places, size: int, of: Configured) -> Ints:
        """Return the one that there is among the groups that go to each place."""
        widths = self.no_groups(of, size)
        kept = (places >= 0) & (value > 0)
        widths[places[kept]] = value[kept]
        odd = np.flatnonzero(widths[places[kept]] != value[kept])
        if odd.size:
            self.plus(int(widths[places[kept]][odd[0]]), int(value[kept][odd[0]]))
        return widths

    def groups_arrays(self, value: Ints, size: int) -> dict[str, Array]:
        """Return the numbers."""
        return {"": value}

    def groups_taken(self, arrays: Arrays, size: int, of: Configured) -> Ints:
        """Return the numbers, none of them negative, nor too large."""
        widths = self.the_array(arrays, "int64")
        least, most = widths.min(initial=0), widths.max(initial=0)
        if widths.shape != (size,) or not 0 <= least <= most <= self._largest:
            raise StateFormatError(f"{least} to {most} are not numbers of {self._of}")
        return widths


class GroupedExtremes(NamedTuple):
    """The extremes of each column (groups, columns), nan in groups without rows."""

    of_any: np.ufunc
    table: Floats

    @property
    def nbytes(self) -> int:
        """Bytes held now."""
        return self.table.nbytes

    def at(self, group: int) -> Floats:
        """Return the extremes of one group."""
        found: Floats = self.table[group]
        return np.empty(0) if found.size and math.isnan(found[0]) else found

    def groups_plus(self, other: GroupedExtremes) -> GroupedExtremes | None:
        """Return the extremes of both; ``None`` if they are of different numbers of columns."""
        if not self.table.shape[1] or not other.table.shape[1]:
            return self if self.table.shape[1] else other
        if self.table.shape != other.table.shape:
            return None
        return self._replace(table=self.of_any(self.table, other.table))

    def regrouped(self, places: Places, size: int) -> GroupedExtremes:
        """Return the extremes of the groups that go to each place."""
        kept = places >= 0
        found = np.full((size, self.table.shape[1]), np.nan)
        self.of_any.at(found, places[kept], self.table[kept])
        return self._replace(table=found)


class Extreme(StateField["Floats"]):
    """The smallest number of each column, or with `largest` the largest; ``(0,)`` without rows.

    They may be infinite; -0.0 is to be taken as 0.0. Grouped values are `GroupedExtremes`, or a
    tuple where groups have different numbers of columns.
    """

    def __init__(self, *, largest: bool = False) -> None:
        super().__init__()
        self._better = np.maximum if largest else np.minimum
        self._of_any = np.fmax if largest else np.fmin

    def empty(self, of: Configured) -> Floats:
        """Return no number."""
        return np.empty(0)

    def plus(self, mine: Floats, other: Floats) -> Any:  # `Any` as in `ready`
        """Return the extremes of both."""
        if not mine.size or not other.size:
            return mine if mine.size else other
        if mine.shape != other.shape:
            raise IncompatibleMetricsError(f"{other.size} outputs cannot join {mine.size}")
        return self._better(mine, other)

    def arrays(self, value: Floats) -> dict[str, Array]:
        """Return the numbers."""
        return {"": value}

    def taken(self, arrays: Arrays, of: Configured) -> Floats:
        """Return the numbers, none of them nan or -0.0."""
        values = self.the_array(arrays, "float64")
        if np.isnan(values).any():
            raise StateFormatError(f"the extremes {self.name!r} are not those of any rows")
        if (np.signbit(values) & (values == 0)).any():
            raise StateFormatError("an extreme is -0.0, which is kept as 0.0")
        return values.copy()

    def scaled(self, value: Floats, weight: float) -> Floats:
        """Return the same numbers: rows are there or not, whatever they weigh."""
        return value

    def minus(self, value: Floats, other: Floats) -> Floats:
        """Return the same numbers, if the other rows have none of them."""
        if not other.size:
            return value
        if value.shape != other.shape or (self._better(value, other) != value).any():
            raise not_among(f"{self.name} is {value.tolist()} here, and {other.tolist()} there")
        if (value == other).any():
            raise IncompatibleMetricsError(
                f"{self.name} cannot be computed without rows that may have set it: merge the "
                "states to keep instead"
            )
        return value

    def no_groups(self, of: Configured, size: int) -> GroupedExtremes:
        """Return no columns."""
        return GroupedExtremes(self._of_any, np.empty((size, 0)))

    def of_batch(self, found: Floats, group: GroupCodes) -> GroupedExtremes:
        """Return the extremes of the numbers of rows (n, columns)."""
        value = np.full((group.size, found.shape[1]), np.nan)
        for column, numbers in zip(value.T, found.T, strict=True):
            self._of_any.at(column, group.index, numbers)
        return GroupedExtremes(self._of_any, value)

    def together(self, value: object) -> Floats | None:
        """Return the extremes of all groups, if they have one column."""
        columns = value.table if isinstance(value, GroupedExtremes) else np.empty((0, 0))
        return columns if columns.shape[1] == 1 else None
