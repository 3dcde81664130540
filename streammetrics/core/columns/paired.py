"""Two columns of lists, true and predicted, whose rows hold as many values on both sides."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.columns.column import either
from streammetrics.core.columns.nested import Nested
from streammetrics.core.columns.schema import Field, reject_present

if TYPE_CHECKING:
    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.schema import Finished, Taken
    from streammetrics.core.types import Array, Bools, Columns, Places


class PairedLists(Field):
    """True and predicted lists (n,), as long as each other: a pixel or a token has one of both."""

    names = ("y_true", "y_pred")

    def take(self, batch: Batch) -> Taken:
        """Return both columns, and where a row lacks one."""
        true, pred = map(batch.column, self.names)
        return (true, pred), either(true.nulls, pred.nulls)

    def validate(self, batch: Batch, taken: Columns, missing: Bools | None) -> None:
        """Check the values of both columns, and that there are as many."""
        true, pred = map(batch.title, self.names)
        for title, column in zip((true, pred), taken, strict=True):
            self.check(title, column, missing)
        what = self.unequal(true)
        reject_present(pred, what, taken[0].values != taken[1].values, missing)

    @abstractmethod
    def check(self, title: str, column: Nested, missing: Bools | None) -> None:
        """Raise where a value of a row that is not missing is none."""

    @abstractmethod
    def unequal(self, true: str) -> str:
        """Return what is wrong with a row that has not as many values as the column `true`."""

    def finish(self, batch: Batch, taken: Columns, rows: Places | None) -> Finished:
        """Return the lists of the kept rows."""
        del batch
        kept = [column if rows is None else column[rows] for column in taken]
        return tuple(self.canonical(column) for column in kept), {}

    def canonical(self, column: Nested) -> Nested:
        """Return the lists as statistics take them, none of them missing."""
        return Nested.of(column.values, column.flat)


def reject_values(
    title: str,
    what: str,
    wrong: Bools,
    column: Nested,
    missing: Bools | None,
    values: Array | None = None,
    *,
    advice: str = "",
) -> None:
    """Raise where a value (m,) or (m, d) of a row is wrong that is not missing.

    The example is the first wrong one of a row, where `values` are given.
    """
    if not wrong.any():
        return
    each = wrong.any(axis=1) if wrong.ndim > 1 else wrong
    marked = np.zeros(len(column), np.bool_)
    marked[column.rows[each]] = True
    shown = None
    if values is not None:
        shown = np.zeros((len(column), *values.shape[1:]))
        bad = np.flatnonzero(each)[::-1]
        shown[column.rows[bad]] = values[bad]
    reject_present(title, what, marked, missing, shown, advice=advice)
