"""Fields of a single number or truth, and of what is smallest and largest."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.errors import IncompatibleMetricsError, StateFormatError
from streammetrics.core.field import GroupedField, StateField
from streammetrics.core.state.arrays import Stack

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.configured import Configured
    from streammetrics.core.types import Array, Arrays, Floats, Places


class Width(GroupedField[int, int]):
    """How many numbers a row has: 0 without rows, and then the same for all, in all groups.

    `of` says in messages what they are.
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

    def each_arrays(self, values: Sequence[int]) -> dict[str, Stack]:
        """Return the numbers."""
        return {"": Stack.equal(np.array(values, np.int64), (1,))}

    def taken(self, arrays: Arrays, of: Configured) -> int:  # noqa: ARG002 - nothing depends on it
        """Return a number that is not negative, nor too large."""
        width = self.the_array(arrays, "int64")
        if width.shape != (1,) or not 0 <= width[0] <= self._largest:
            raise StateFormatError(f"{width.tolist()} is not a number of {self._of}")
        return int(width[0])

    def each_taken(self, stacks: Arrays, n: int, of: Configured) -> list[int]:
        """Return the number of each."""
        widths = stacks.get("")
        if len(stacks) == 1 and widths is not None and widths.shape == (n, 1):
            different = np.unique(widths)  # of which there are few
            for width in different:
                self.taken({"": np.array([width])}, of)
            found: list[int] = widths[:, 0].tolist()
            return found
        return list(super().each_taken(stacks, n, of))

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

    def no_groups(self, of: Configured, size: int) -> int:  # noqa: ARG002 - as of no rows
        """Return 0."""
        return 0

    def regrouped(self, value: int, places: Places, size: int) -> int:
        """Return the same, while there is a group."""
        return value if size and places.size else 0

    groups_plus, groups_nbytes = plus, nbytes

    def at(self, value: int, group: int) -> int:  # noqa: ARG002 - all have as many
        """Return the same."""
        return value

    def of_groups(self, values: Sequence[int], of: Configured) -> int:  # noqa: ARG002 - the values say it
        """Return the one there is."""
        return reduce(self.plus, values, 0)


class Extreme(StateField["Floats"]):
    """The smallest number of each column, or with `largest` the largest; ``(0,)`` without rows.

    They may be infinite; -0.0 is to be taken as 0.0.
    """

    def __init__(self, *, largest: bool = False) -> None:
        super().__init__()
        self._better = np.maximum if largest else np.minimum

    def empty(self, of: Configured) -> Floats:  # noqa: ARG002 - nothing depends on it
        """Return no number."""
        return np.empty(0)

    def plus(self, mine: Floats, other: Floats) -> Floats:
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
