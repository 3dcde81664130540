"""Fields of a single number or truth, and of what is smallest and largest."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.errors import IncompatibleMetricsError, StateFormatError
from streammetrics.core.field import StateField, not_among

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.configured import Configured
    from streammetrics.core.counting import GroupCodes
    from streammetrics.core.types import Array, Arrays, Floats, Ints, Places


class Width(StateField[int]):
    """How many numbers a row has: 0 without rows, and then the same for all.

    `of` says in messages what they are. Grouped values are an array ``(size,)``.
    """

    def __init__(self, of: str, largest: int = (1 << 31) - 1) -> None:
        super().__init__()
        self._of, self._largest = of, largest

    def empty(self, of: Configured) -> int:  # noqa: ARG002 - nothing depends on it
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

    def taken(self, arrays: Arrays, of: Configured) -> int:  # noqa: ARG002 - nothing depends on it
        """Return a number that is not negative, nor too large."""
        width = self.the_array(arrays, "int64")
        if width.shape != (1,) or not 0 <= width[0] <= self._largest:
            raise StateFormatError(f"{width.tolist()} is not a number of {self._of}")
        return int(width[0])

    def nbytes(self, value: int) -> int:  # noqa: ARG002 - all are of one size
        """Bytes of a number."""
        return 8

    def scaled(self, value: int, weight: float) -> int:  # noqa: ARG002 - weights do not matter
        """Return the same number."""
        return value

    def minus(self, value: int, other: int) -> int:
        """Return the same number, while there are rows."""
        self.plus(value, other)
        return value

    def no_groups(self, of: Configured, size: int) -> Ints:  # noqa: ARG002 - as of no rows
        """Return zeros."""
        return np.zeros(size, np.int64)

    def of_groups(self, values: Sequence[int], of: Configured) -> Ints:  # noqa: ARG002 - the values say it
        """Return the numbers of all groups."""
        return np.array(values, np.int64)

    def of_batch(self, found: int, group: GroupCodes) -> Ints:
        """Return the number of all groups that have rows in a batch."""
        return np.where(group.counts > 0, np.int64(found), 0)

    def at(self, value: Ints, group: int) -> int:
        """Return the number of one group."""
        return int(value[group])

    def groups_plus(self, mine: Ints, other: Ints, size: int) -> Ints:  # noqa: ARG002 - arrays say it
        """Return the one that there is in each group."""
        odd = np.flatnonzero((mine != other) & (mine > 0) & (other > 0))
        if odd.size:
            self.plus(int(mine[odd[0]]), int(other[odd[0]]))
        widths: Ints = np.maximum(mine, other)
        return widths

    def regrouped(self, value: Ints, places: Places, size: int, of: Configured) -> Ints:
        """Return the one that there is among the groups that go to each place."""
        widths = self.no_groups(of, size)
        kept = (places >= 0) & (value > 0)
        widths[places[kept]] = value[kept]
        odd = np.flatnonzero(widths[places[kept]] != value[kept])
        if odd.size:
            self.plus(int(widths[places[kept]][odd[0]]), int(value[kept][odd[0]]))
        return widths

    def groups_nbytes(self, value: Ints) -> int:
        """Bytes held now."""
        return value.nbytes

    def groups_arrays(self, value: Ints, size: int) -> dict[str, Array]:  # noqa: ARG002 - the array says it
        """Return the numbers."""
        return {"": value}

    def groups_taken(self, arrays: Arrays, size: int, of: Configured) -> Ints:  # noqa: ARG002 - nothing depends on it
        """Return the numbers, none of them negative, nor too large."""
        widths = self.the_array(arrays, "int64")
        least, most = widths.min(initial=0), widths.max(initial=0)
        if widths.shape != (size,) or not 0 <= least <= most <= self._largest:
            raise StateFormatError(f"{least} to {most} are not numbers of {self._of}")
        return widths


class Extreme(StateField["Floats"]):
    """The smallest number of each column, or with `largest` the largest; ``(0,)`` without rows.

    They may be infinite; -0.0 is to be taken as 0.0. Grouped values are an array (groups, columns),
    nan in those without rows, or a tuple where groups have different numbers of columns.
    """

    def __init__(self, *, largest: bool = False) -> None:
        super().__init__()
        self._better = np.maximum if largest else np.minimum
        self._of_any = np.fmax if largest else np.fmin

    def empty(self, of: Configured) -> Floats:  # noqa: ARG002 - nothing depends on it
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

    def taken(self, arrays: Arrays, of: Configured) -> Floats:  # noqa: ARG002 - nothing depends on it
        """Return the numbers, none of them nan or -0.0."""
        values = self.the_array(arrays, "float64")
        if np.isnan(values).any():
            raise StateFormatError(f"the extremes {self.name!r} are not those of any rows")
        if (np.signbit(values) & (values == 0)).any():
            raise StateFormatError("an extreme is -0.0, which is kept as 0.0")
        return values.copy()

    def scaled(self, value: Floats, weight: float) -> Floats:  # noqa: ARG002 - weights do not matter
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

    def no_groups(self, of: Configured, size: int) -> Floats:  # noqa: ARG002 - as of no rows
        """Return no columns."""
        return np.empty((size, 0))

    def of_batch(self, found: Floats, group: GroupCodes) -> Floats:
        """Return the extremes of the numbers of rows (n, columns)."""
        value = np.full((group.size, found.shape[1]), np.nan)
        for column, numbers in zip(value.T, found.T, strict=True):
            self._of_any.at(column, group.index, numbers)
        return value

    def at(self, value: Any, group: int) -> Floats:
        """Return the extremes of one group."""
        found = super().at(value, group)
        if type(value) is tuple or not found.size or not math.isnan(found[0]):
            return found
        return np.empty(0)

    def groups_plus(self, mine: Any, other: Any, size: int) -> Any:
        """Return the extremes of both."""
        if type(mine) is not tuple and type(other) is not tuple:
            if not mine.shape[1] or not other.shape[1]:
                return mine if mine.shape[1] else other
            if mine.shape == other.shape:
                return self._of_any(mine, other)
        return super().groups_plus(mine, other, size)

    def regrouped(self, value: Any, places: Places, size: int, of: Configured) -> Any:
        """Return the extremes of the groups that go to each place."""
        if type(value) is tuple:
            return super().regrouped(value, places, size, of)
        kept = places >= 0
        found = np.full((size, value.shape[1]), np.nan)
        self._of_any.at(found, places[kept], value[kept])
        return found

    def together(self, value: Any) -> Any:
        """Return the extremes of all groups, if they have one column."""
        return value if type(value) is not tuple and value.shape[1] == 1 else None

    def groups_nbytes(self, value: Any) -> int:
        """Bytes held now."""
        return super().groups_nbytes(value) if type(value) is tuple else value.nbytes
