"""A table of labels as the metrics of classification see it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from streammetrics.core.columns.labels import places_among

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streammetrics.core.exact.sums import ExactSum
    from streammetrics.statistics.tables.contingency import Cells

    Floats = NDArray[np.float64]


class Confusion:
    """Counts of each class, in the order of `labels`; sums are exact and rounded once."""

    def __init__(
        self, labels: list[Any], rows: NDArray[Any], columns: NDArray[Any], amount: ExactSum
    ) -> None:
        self.labels, self.size = labels, len(labels)
        self.rows, self.columns, self.amount = rows, columns, amount
        self._hit = rows == columns
        self.doubt = ""  # what a reading of it has to warn of

    @classmethod
    def of_labels(cls, cells: Cells, labels: tuple[Any, ...] | None) -> Self:
        """Return the table over the labels given, or over all labels seen on either side."""
        if labels is None:
            # Without pairs a side has no labels, so their kind is the other side's.
            sides = [side for side in (cells.row_labels, cells.column_labels) if len(side)]
            labels = tuple(np.unique(np.concatenate(sides)).tolist()) if sides else ()
        rows, columns = (
            places_among(side, labels)[place] if len(side) else place
            for side, place in (
                (cells.row_labels, cells.rows),
                (cells.column_labels, cells.columns),
            )
        )
        return cls(list(labels), rows, columns, cells.amount)

    def exact(self, side: NDArray[Any], chosen: NDArray[np.bool_] | None = None) -> ExactSum:
        """Return for each class the sum of the cells, or of the chosen ones, it has on a side."""
        if chosen is None:
            return self.amount.regroup(side, self.size)
        return self.amount[np.flatnonzero(chosen)].regroup(side[chosen], self.size)

    @cached_property
    def total(self) -> float:
        """All rows."""
        return float(self.amount.sum().to_float())

    @cached_property
    def tp(self) -> Floats:
        """True positives: rows of the class that were predicted so."""
        return _floats(self.exact(self.rows, self._hit))

    @cached_property
    def fp(self) -> Floats:
        """False positives: rows predicted to be of the class that are not."""
        return _floats(self.exact(self.columns, ~self._hit))

    @cached_property
    def fn(self) -> Floats:
        """False negatives: rows of the class that were predicted otherwise."""
        return _floats(self.exact(self.rows, ~self._hit))

    @cached_property
    def tn(self) -> Floats:
        """True negatives: rows not of the class that were not predicted so."""
        everything = self.amount.regroup(np.zeros(len(self.rows), np.intp), 1)
        touched = self.exact(self.rows) + self.exact(self.columns, ~self._hit)
        return _floats(everything[np.zeros(self.size, np.intp)] - touched)

    @cached_property
    def actual(self) -> Floats:
        """Rows of the class."""
        return _floats(self.exact(self.rows))

    @cached_property
    def predicted(self) -> Floats:
        """Rows predicted to be of the class."""
        return _floats(self.exact(self.columns))

    @property
    def seen(self) -> NDArray[np.bool_]:
        """Whether a class has rows, as the true or as the predicted one."""
        seen: NDArray[np.bool_] = np.zeros(self.size, np.bool_)
        seen[self.rows] = seen[self.columns] = True
        return seen

    def integers(self) -> tuple[Any, Any, Any]:
        """Return rows, predictions and true positives of each class as integers of one unit."""
        everything = self.amount.integers()[1]
        sums = (self.exact(self.rows), self.exact(self.columns), self.exact(self.rows, self._hit))
        return tuple(  # type: ignore[return-value]  # three in, three out
            np.array([value << (unit - everything) for value in values], dtype=object)
            for values, unit in (one.integers() for one in sums)
        )


def _floats(amount: ExactSum) -> Floats:
    return np.asarray(amount.to_float())
