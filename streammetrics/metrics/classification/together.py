"""The confusion tables of many groups, read at once as if they were one."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from streammetrics.core.columns.labels import places_among
from streammetrics.core.counting import is_dense
from streammetrics.metrics.classification.view import WHOLE, Margins

if TYPE_CHECKING:
    from collections.abc import Callable

    from streammetrics.core.fields.amounts import Amount
    from streammetrics.core.fields.tables import GroupedCells
    from streammetrics.core.types import Array, Bools, ClassLabel, Floats, Ints, Numeric


def elementwise(read: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a `read` that only adds, multiplies and divides what it takes from a table.

    Such a method reads `Confusions` just as it reads a `Confusion`.
    """
    read.elementwise = True  # type: ignore[attr-defined]  # read where tables are
    return read


class Confusions(Margins):
    """What `Confusion` has per class, for many groups: arrays are (classes, groups).

    Rows are not weighted, and each group has fewer than 2**53, so that floats hold all sums.
    """

    def __init__(self, labels: list[ClassLabel], counts: Array, *, known: bool) -> None:
        """Take counts (groups, true, predicted); `known`: every group has all of the labels."""
        self.labels, self._counts, self._known = labels, counts.astype(np.float64), known
        self.kept = self.size = len(labels)

    @classmethod
    def of_amounts(cls, labels: list[ClassLabel], amount: Amount, *, flip: bool) -> Self | None:
        """Return the tables of two classes (groups, 4), with `flip` in reverse order."""
        if amount.weights is not None or not _fit(amount.counts):
            return None
        counts = amount.counts.reshape(-1, 2, 2)
        return cls(labels, counts[:, ::-1, ::-1] if flip else counts, known=True)

    @classmethod
    def of_cells(
        cls, cells: GroupedCells, size: int, labels: tuple[ClassLabel, ...] | None
    ) -> Self | None:
        """Return tables over the labels given, or over all labels of any group."""
        sides = (cells.row_labels, cells.column_labels)
        classes = np.unique(np.concatenate(sides)).tolist() if labels is None else list(labels)
        area = len(classes) ** 2
        if cells.amount.weights is not None or not _fit(cells.amount.counts):
            return None
        if not is_dense(size * area, cells.codes.size):
            return None
        rows, columns = (places_among(side, tuple(classes)) for side in sides)
        own = (rows[:, None] * len(classes) + columns).reshape(-1)  # of each cell of a group
        group, cell = np.divmod(cells.codes, cells.area)
        counts = np.zeros(size * area, np.int64)
        counts[group * area + own[cell]] = cells.amount.counts
        shape = (size, len(classes), len(classes))
        return cls(classes, counts.reshape(shape), known=labels is not None)

    @cached_property
    def actual(self) -> Floats:
        """Rows of each class."""
        return np.ascontiguousarray(self._counts.sum(axis=2).T)

    @cached_property
    def predicted(self) -> Floats:
        """Rows predicted to be of each class."""
        return np.ascontiguousarray(self._counts.sum(axis=1).T)

    @cached_property
    def tp(self) -> Floats:
        """True positives of each class."""
        return np.ascontiguousarray(self._counts.diagonal(axis1=1, axis2=2).T)

    @cached_property
    def total(self) -> Floats:
        """All rows of each group, (groups,)."""
        total: Floats = self._counts.sum(axis=(1, 2))
        return total

    @property
    def hits(self) -> Floats:
        """Rows predicted right, (groups,)."""
        hits: Floats = self.tp.sum(axis=0)
        return hits

    @property
    def misses(self) -> Floats:
        """Rows predicted wrong, (groups,)."""
        return self.total - self.hits

    def rest(self) -> Self:
        """Return of each group the table of all other groups together."""
        counts = self._counts.sum(axis=0) - self._counts
        return type(self)(self.labels, counts, known=self._known)

    def unscaled(self, amount: Numeric) -> Numeric:
        """Return the amount, as nothing is scaled here."""
        return amount

    @cached_property
    def there(self) -> Bools:
        """Which classes each group has."""
        there: Bools = self.actual + self.predicted > 0
        return there | self._known

    def are_two(self, label: ClassLabel) -> bool:
        """Whether some group has a class, and none has two others."""
        if label not in self.labels:
            return False
        others = np.delete(self.there, self.labels.index(label), axis=0)
        return bool((others.sum(axis=0) <= 1).all())


def _fit(counts: Ints) -> bool:
    return float(counts.sum(dtype=np.float64)) < WHOLE
