"""Which group each row of a block is of: passed to every form, counted once for all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from streammetrics.core.types import Array, Places


class Grouping:
    """The group of each row, 0 to ``size - 1``, given as integers of any width."""

    __slots__ = ("_counts", "_places", "size")

    def __init__(self, places: Array, size: int) -> None:
        self._places, self.size = places, size
        self._counts: Places | None = None

    @property
    def codes(self) -> Places:
        """The group of each row; not to be written to."""
        if self._places.dtype != np.intp:
            self._places = self._places.astype(np.intp)
        return self._places

    def cells(self, area: int) -> Places:
        """Return the first cell of each row's group, of which each has so many: a new array."""
        cells: Places = np.multiply(self._places, area, dtype=np.intp)
        return cells

    @property
    def counts(self) -> Places:
        """How many rows each group has; not to be written to."""
        if self._counts is None:
            self._counts = np.bincount(self._places, minlength=self.size)
        return self._counts

    def tell(self, cells: Places) -> None:
        """Take the rows counted in the cells of each group, so that nobody counts them again."""
        if self._counts is None:
            self._counts = np.einsum("ij->i", cells.reshape(self.size, -1))  # of short rows
