"""How often each pair of labels was seen together: what classification and clustering read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.columns.labels import Labels
from streammetrics.core.columns.schema import Schema
from streammetrics.core.errors import StateFormatError
from streammetrics.core.fields.amounts import Amount
from streammetrics.core.fields.labels import coded_labels
from streammetrics.core.fields.tables import Pairs, PairTable
from streammetrics.core.statistic import Statistic
from streammetrics.core.types import ClassLabel

if TYPE_CHECKING:
    from streammetrics.core.columns.conversion import Column
    from streammetrics.core.exact.sums import ExactSum
    from streammetrics.core.types import Array, Floats, Ints, Places


class LabelCells(NamedTuple):
    """The pairs that occur: labels of both sides, places in them, and how much of each pair."""

    row_labels: Array
    column_labels: Array
    rows: Places
    columns: Places
    amount: Ints | ExactSum


def amounts_of(
    codes: Places,
    size: int,
    weight: Floats | None,
    *,
    squared: bool = True,
) -> tuple[Places, Amount]:
    """Return those codes below `size` that occur, ascending, and how much there is of each.

    With `squared` the squares of weights are summed as well.
    """
    if size > max(tuning.DENSE_CELLS, 4 * codes.size):
        found, group = np.unique(codes, return_inverse=True)
        return found, Amount.at_places(group, found.size, weight, squared=squared)
    dense = np.bincount(codes, minlength=size)
    found = np.flatnonzero(dense)
    if weight is None:
        return found, Amount.of_counts(dense[found], codes.size)
    group = np.empty(size, np.intp)
    group[found] = np.arange(found.size)
    return found, Amount.at_places(group[codes], found.size, weight, squared=squared)


class ContingencyTable(Statistic):
    """Counts, or exact sums of weights, of (row label, column label) pairs.

    Only pairs that occur are held, so memory grows with them (16 bytes each) and not with the
    square of the classes. Each side keeps its own labels, sorted. `alike` sides hold labels of
    one kind, and the second may be an (n, K) matrix of scores. With `others` there may be labels
    besides those given.
    """

    row: str = "y_true"
    column: str = "y_pred"
    labels: tuple[ClassLabel, ...] | None = None
    alike: bool = True
    nan_policy: Literal["raise", "omit"] = "raise"
    ignore_index: int | None = None
    others: bool = False

    table = PairTable(inline=True)

    def check_fields(self) -> None:
        """Check that labels are among those given, where there may be no others."""
        if self.labels is None or self.others:
            return
        given = set(self.labels)
        if not given.issuperset(
            [*self.table.row_labels.tolist(), *self.table.column_labels.tolist()]
        ):
            raise StateFormatError(f"labels of the table are not among {self.labels!r:.200}")

    @property
    def schema(self) -> Schema:
        """Two columns of labels."""
        if self.alike:
            first = Labels(self.row, self.labels, ignore_index=self.ignore_index, leader=self.row)
            second = Labels(self.column, self.labels, matrix=True, truth=self.row)
            sides = (replace(side, others=self.others) for side in (first, second))
            return Schema(tuple(sides), self.nan_policy)
        sides = (Labels(name, fact=f"labels of {name}") for name in (self.row, self.column))
        return Schema(tuple(sides), self.nan_policy)

    def update(self, *columns: Column, weight: Floats | None) -> None:
        """Count the pairs of the rows."""
        (rows, row_labels), (cols, column_labels) = map(coded_labels, columns)
        pair, width = rows * len(column_labels), len(column_labels)
        pair += cols
        places, amount = amounts_of(pair, len(row_labels) * width, weight)
        self.table = self.table.plus(Pairs.of(row_labels, column_labels, places, amount))

    def of_rows(self, n: int) -> None:
        """Forget squares of weights where amounts exceed n: such rows do not weigh one each."""
        amount = self.table.amount
        if amount.exceeds(n):
            self.table = self.table._replace(amount=amount.unsure())

    def cells(self) -> LabelCells:
        """Return the pairs that occur, in order of their labels."""
        table = self.table
        return LabelCells(
            table.row_labels, table.column_labels, *table.places, table.amount.plain()
        )

    def squares(self) -> Ints | ExactSum | None:
        """Return the sums of the squared weights of the `cells`; ``None`` if they are not known."""
        return self.table.amount.plain_squared()

    @property
    def counts(self) -> Ints:
        """How many rows have each pair, where no row has a weight."""
        counts: Ints = self.table.amount.counts
        return counts


UNWEIGHTED = "metrics of clusterings"  # as pairs of points have no weight


class LabelPairs(ContingencyTable):
    """How many rows have each pair of labels of two labelings, which may differ in kind."""

    row: str = "labels_true"
    column: str = "labels_pred"
    alike: bool = False

    table = PairTable(whole=True, inline=True)

    @property
    def schema(self) -> Schema:
        """Two columns of labels, without weights."""
        schema = super().schema
        return replace(schema, unweighted=UNWEIGHTED)

    def of_rows(self, n: int) -> None:
        """Check that the counts are those of n rows."""
        if int(self.counts.sum()) != n:
            raise StateFormatError(f"the counts of labelings are not those of {n} rows")
