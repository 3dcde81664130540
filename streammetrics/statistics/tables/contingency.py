"""How often each pair of labels was seen together: what classification and clustering read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.columns.labels import Labels
from streammetrics.core.columns.schema import Schema
from streammetrics.core.exact.sums import ExactSum
from streammetrics.core.fields.amounts import Amount
from streammetrics.core.fields.labels import coded_labels
from streammetrics.core.fields.tables import Pairs, PairTable
from streammetrics.core.statistic import Statistic

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streammetrics.core.columns.conversion import Column


class LabelCells(NamedTuple):
    """The pairs that occur: labels of both sides, places in them, and how much of each pair."""

    row_labels: NDArray[Any]
    column_labels: NDArray[Any]
    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    amount: NDArray[np.int64] | ExactSum


class ContingencyTable(Statistic):
    """Counts, or exact sums of weights, of (row label, column label) pairs.

    Only pairs that occur are held, so memory grows with them (16 bytes each) and not with the
    square of the classes. Each side keeps its own labels, sorted. `alike` sides hold labels of
    one kind, and the second may be an (n, K) matrix of scores.
    """

    row: str = "y_true"
    column: str = "y_pred"
    labels: tuple[Any, ...] | None = None
    alike: bool = True
    nan_policy: Literal["raise", "omit"] = "raise"
    ignore_index: int | None = None

    table = PairTable(inline=True)

    @property
    def schema(self) -> Schema:
        """Two columns of labels."""
        if self.alike:
            first = Labels(self.row, self.labels, ignore_index=self.ignore_index, leader=self.row)
            second = Labels(self.column, self.labels, matrix=True, truth=self.row)
            return Schema((first, second), self.nan_policy)
        sides = (Labels(name, fact=f"labels of {name}") for name in (self.row, self.column))
        return Schema(tuple(sides), self.nan_policy)

    def update(self, *columns: Column, weight: NDArray[np.float64] | None) -> None:
        """Count the pairs of the rows."""
        (rows, row_labels), (cols, column_labels) = map(coded_labels, columns)
        pair, width = rows * len(column_labels), len(column_labels)
        pair += cols
        size = len(row_labels) * width
        weights = None
        if size <= max(tuning.DENSE_CELLS, 4 * pair.size):
            dense = np.bincount(pair, minlength=size)
            places = np.flatnonzero(dense)
            counts = dense[places]
            if weight is not None:
                group = np.empty(size, np.intp)
                group[places] = np.arange(places.size)
                weights = ExactSum.grouped(group[pair], places.size, weight)
        else:
            places, group = np.unique(pair, return_inverse=True)
            counts = np.bincount(group, minlength=places.size)
            if weight is not None:
                weights = ExactSum.grouped(group, places.size, weight)
        if weights is not None:
            amount = Amount.of_weights(weights)
        else:
            amount = Amount.of_counts(counts, pair.size)
        self.table = self.table.plus(Pairs.of(row_labels, column_labels, places, amount))

    def cells(self) -> LabelCells:
        """Return the pairs that occur, in order of their labels."""
        table = self.table
        return LabelCells(
            table.row_labels, table.column_labels, *table.places, table.amount.plain()
        )

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many rows have each pair, where no row has a weight."""
        counts: NDArray[np.int64] = self.table.amount.counts
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
