"""Exact sums as fields: one, an array of them, or named ones of outputs yet to be counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.errors import IncompatibleMetricsError, StateFormatError
from streammetrics.core.field import GroupedField
from streammetrics.core.fields.weights import shape_of
from streammetrics.core.state.arrays import nested
from streammetrics.core.state.arrays import parted as parts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streammetrics.core.configured import Configured
    from streammetrics.core.fields.weights import Shape
    from streammetrics.core.state.arrays import Stack
    from streammetrics.core.types import Array, Arrays, Places


class Sum(GroupedField[ExactSum, ExactSum]):
    """An exact sum, or an array of them of a shape, which may be a function of the statistic.

    Those of groups are one array, with the groups along its first axis.
    """

    def __init__(self, shape: Shape = (), *, inline: bool = False) -> None:
        super().__init__(inline=inline)
        self._shape = shape

    def empty(self, of: Configured) -> ExactSum:
        """Return sums of nothing."""
        return ExactSum.zero(shape_of(self._shape, of))

    def plus(self, mine: ExactSum, other: ExactSum) -> ExactSum:
        """Return the sums of both."""
        return mine + other

    def merged(self, mine: ExactSum, others: Sequence[ExactSum]) -> ExactSum:
        """Return the sums of all."""
        return mine.plus_all(others)

    def arrays(self, value: ExactSum) -> dict[str, Array]:
        """Return digits and exponent."""
        return value.arrays()

    def each_arrays(self, values: Sequence[ExactSum]) -> dict[str, Stack] | None:
        """Return those of single sums."""
        return ExactSum.each_arrays(values)

    def taken(self, arrays: Arrays, of: Configured) -> ExactSum:
        """Return the sums, which are canonical."""
        return ExactSum.from_arrays(shape_of(self._shape, of), arrays)

    def each_taken(self, stacks: Arrays, n: int, of: Configured) -> list[ExactSum]:
        """Return the sums of each, all of them checked at once."""
        return ExactSum.each_of_arrays(shape_of(self._shape, of), stacks, n)

    def nbytes(self, value: ExactSum) -> int:
        """Bytes held now."""
        return value.nbytes

    def scaled(self, value: ExactSum, weight: float) -> ExactSum:
        """Return the products, exactly."""
        return value.times(weight)

    def minus(self, value: ExactSum, other: ExactSum) -> ExactSum:
        """Return the differences, exactly."""
        return value - other

    def no_groups(self, of: Configured, size: int) -> ExactSum:
        """Return sums of nothing."""
        return ExactSum.zero((size, *shape_of(self._shape, of)))

    def regrouped(self, value: ExactSum, places: Places, size: int) -> ExactSum:
        """Return the sums of groups that go to one place."""
        return value.regroup(places, size)

    groups_plus, groups_nbytes = plus, nbytes

    def at(self, value: ExactSum, group: int) -> ExactSum:
        """Return the sums of one group."""
        return value[group]

    def of_groups(self, values: Sequence[ExactSum], of: Configured) -> ExactSum:
        """Return the sums of all groups."""
        return ExactSum.stacked(values, shape_of(self._shape, of))


class NamedSums(GroupedField[dict[str, ExactSum], dict[str, ExactSum]]):
    """Exact sums by name, each one or ``(d,)`` for as many outputs as rows turn out to have.

    There are none without rows. `names` says how they are called, by the parameters. Those of
    groups have the groups along their first axis.
    """

    def __init__(self, names: Callable[[Any], tuple[str, ...]], *, inline: bool = False) -> None:
        super().__init__(inline=inline)
        self._names = names

    def empty(self, of: Configured) -> dict[str, ExactSum]:  # noqa: ARG002 - nothing depends on it
        """Return no sums."""
        return {}

    def plus(self, mine: dict[str, ExactSum], other: dict[str, ExactSum]) -> dict[str, ExactSum]:
        """Return the sums of both."""
        return each_plus(mine, other)

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

    def each_arrays(self, values: Sequence[dict[str, ExactSum]]) -> dict[str, Stack] | None:
        """Return those of single sums, of states that all have seen rows."""
        names = values[0].keys()
        if not names or any(value.keys() != names for value in values):
            return None
        stacks: dict[str, Stack] = {}
        for name in names:
            mine = ExactSum.each_arrays([value[name] for value in values])
            if mine is None:
                return None
            stacks |= {f"{name}/{key}": stack for key, stack in mine.items()}
        return stacks

    def taken(self, arrays: Arrays, of: Configured) -> dict[str, ExactSum]:
        """Return the sums: all names or none, of one width."""
        if not arrays:
            return {}
        parts, shape = self._parts(arrays, of, 0)
        return {name: ExactSum.from_arrays(shape, part) for name, part in parts.items()}

    def each_taken(self, stacks: Arrays, n: int, of: Configured) -> list[dict[str, ExactSum]]:
        """Return the sums of each, all of them checked at once."""
        if not stacks:
            return [{} for _ in range(n)]
        parts, shape = self._parts(stacks, of, 1)
        columns = [ExactSum.each_of_arrays(shape, part, n) for part in parts.values()]
        return [dict(zip(parts, sums, strict=True)) for sums in zip(*columns, strict=True)]

    def _parts(
        self, arrays: Arrays, of: Configured, axis: int
    ) -> tuple[dict[str, dict[str, Array]], tuple[int, ...]]:
        """Return the arrays of each sum, and the shape that the length of an axis says all have."""
        parts, names = parts_of(arrays), self._names(of)
        if parts.keys() != set(names):
            raise StateFormatError(f"{sorted(arrays)} are not the sums {list(names)}")
        digits = [part["digits"] for part in parts.values() if "digits" in part]
        widths = {array.shape[axis : axis + 1] for array in digits}
        if len(widths) != 1:
            raise StateFormatError(f"sums {list(names)} are of different widths")
        (width,) = widths
        return {name: parts[name] for name in names}, () if width == (1,) else width

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

    def no_groups(self, of: Configured, size: int) -> dict[str, ExactSum]:  # noqa: ARG002 - as of no rows
        """Return no sums."""
        return {}

    def regrouped(
        self, value: dict[str, ExactSum], places: Places, size: int
    ) -> dict[str, ExactSum]:
        """Return the sums of groups that go to one place."""
        return {name: total.regroup(places, size) for name, total in value.items()}

    groups_plus, groups_nbytes = plus, nbytes

    def at(self, value: dict[str, ExactSum], group: int) -> dict[str, ExactSum]:
        """Return the sums of one group."""
        return {name: total[group] for name, total in value.items()}

    def of_groups(
        self,
        values: Sequence[dict[str, ExactSum]],
        of: Configured,  # noqa: ARG002 - the values say it
    ) -> dict[str, ExactSum]:
        """Return the sums of all groups, of which those without rows have none."""
        known = next(filter(None, values), {})
        zeros = {name: ExactSum.zero(total.shape) for name, total in known.items()}
        return {
            name: ExactSum.stacked([(value or zeros)[name] for value in values], total.shape)
            for name, total in known.items()
        }


def each_plus(mine: dict[str, ExactSum], other: dict[str, ExactSum]) -> dict[str, ExactSum]:
    """Return sums by name added to others of the same names, or to none."""
    if not mine or not other:
        return mine or other
    sums = {}
    try:
        for name, total in mine.items():
            sums[name] = total + other[name]
    except ValueError as error:
        raise _other_outputs(error) from None
    return sums


def _other_outputs(error: ValueError) -> IncompatibleMetricsError:
    return IncompatibleMetricsError(f"these are sums of other outputs: {error}")


def _fitting(mine: ExactSum, other: ExactSum) -> ExactSum:
    if mine.shape != other.shape:
        raise IncompatibleMetricsError(
            f"sums of {other.shape} outputs cannot join those of {mine.shape}"
        )
    return other
