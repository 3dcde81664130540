"""How many rows wait in each pane, kept as they come and leave, so that nobody counts them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streammetrics.core.types import Ints


class Present:
    """The number of rows in each pane that has some.

    Args:
        unit: How long a pane is, in nanoseconds.
    """

    def __init__(self, unit: int) -> None:
        self._unit = unit
        self._counts: dict[int, int] = {}

    def add(self, times: Ints) -> None:
        """Learn of rows that come."""
        for number, count in self._counted(times):
            self._counts[number] = self._counts.get(number, 0) + count

    def remove(self, times: Ints) -> None:
        """Learn of rows that leave."""
        for number, count in self._counted(times):
            left = self._counts[number] - count
            if left:
                self._counts[number] = left
            else:
                del self._counts[number]

    def _counted(self, times: Ints) -> Iterator[tuple[int, int]]:
        if not len(times):
            return
        first, last = int(times.min()) // self._unit, int(times.max()) // self._unit
        if first == last:  # as most rows that come together are
            yield first, len(times)
            return
        numbers, counts = np.unique(times // self._unit, return_counts=True)
        yield from zip(numbers.tolist(), counts.tolist(), strict=True)

    @property
    def starts(self) -> Ints:
        """When each pane with rows begins, in no order."""
        return np.fromiter(self._counts, np.int64, len(self._counts)) * self._unit

    def copy(self) -> Present:
        """Return an independent one of the same rows."""
        twin = Present(self._unit)
        twin._counts = dict(self._counts)
        return twin
