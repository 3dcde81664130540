"""How often each pair of labels was seen together: what classification and clustering read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from streammetrics.core.columns.labels import Labels
from streammetrics.core.columns.schema import Schema
from streammetrics.core.errors import IncompatibleMetricsError, StateFormatError
from streammetrics.core.exact.sums import ExactSum
from streammetrics.core.state.arrays import nested, part, take_array
from streammetrics.core.statistic import Statistic
from streammetrics.statistics.tables.label_sets import (
    coded_labels,
    packed_labels,
    united_labels,
    unpacked_labels,
    used_labels,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from streammetrics.core.columns.conversion import Column
    from streammetrics.statistics.tables.label_sets import Labelled


MOST = 1 << 61  # rows of what is counted in 64 bits: merges stop far below what could wrap
MANY = 1 << 62  # counts below can be added
_DENSE = 1 << 16  # pairs counted by direct address: 512 KB of counts stay in cache


class Cells(NamedTuple):
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

    @property
    def schema(self) -> Schema:
        """Two columns of labels."""
        if self.alike:
            first = Labels(self.row, self.labels, ignore_index=self.ignore_index, leader=self.row)
            second = Labels(self.column, self.labels, matrix=True, truth=self.row)
            return Schema((first, second), self.nan_policy)
        sides = (Labels(name, fact=f"labels of {name}") for name in (self.row, self.column))
        return Schema(tuple(sides), self.nan_policy)

    def clear(self) -> None:
        """Forget all pairs."""
        self.row_labels: NDArray[Any] = np.empty(0, np.int64)
        self.column_labels: NDArray[Any] = np.empty(0, np.int64)
        self.pairs: NDArray[np.int64] = np.empty(0, np.int64)
        self.counts: NDArray[np.int64] = np.empty(0, np.int64)
        self.weights: ExactSum | None = None
        self._most = 0  # no count is larger

    def update(self, *columns: Column, weight: NDArray[np.float64] | None) -> None:
        """Count the pairs of the rows."""
        (rows, row_labels), (cols, column_labels) = map(coded_labels, columns)
        pair, width = rows * len(column_labels), len(column_labels)
        pair += cols
        size = len(row_labels) * width
        weights = None
        if size <= max(_DENSE, 4 * pair.size):
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
            counts = np.zeros_like(counts)
        self._add(
            used_labels(row_labels, places // width),
            used_labels(column_labels, places % width),
            counts,
            weights,
            0 if weights is not None else pair.size,
        )

    def merge(self, other: ContingencyTable) -> None:
        """Add the counts of another table."""
        if other.pairs.size:
            width = max(len(other.column_labels), 1)
            self._add(
                (other.row_labels, other.pairs // width),
                (other.column_labels, other.pairs % width),
                other.counts,
                other.weights,
                other._most,
            )

    def _add(
        self,
        rows: Labelled,
        columns: Labelled,
        counts: NDArray[np.int64],
        weights: ExactSum | None,
        most: int,
    ) -> None:
        width = len(self.column_labels)
        row_labels, mine_row, their_row = united_labels(self.row_labels, rows[0])
        column_labels, mine_column, their_column = united_labels(self.column_labels, columns[0])
        theirs = their_row[rows[1]] * len(column_labels) + their_column[columns[1]]
        mine = self.pairs
        if mine_row is not None or mine_column is not None:
            row, column = np.divmod(mine, max(width, 1))
            row = row if mine_row is None else mine_row[row]
            column = column if mine_column is None else mine_column[column]
            mine = row * len(column_labels) + column
        if np.array_equal(mine, theirs):
            self.counts = self.counts + counts
            if weights is not None:
                self.weights = weights if self.weights is None else self.weights + weights
            self.pairs = mine
        else:
            pairs = np.unique(np.concatenate([mine, theirs]))
            a, b = np.searchsorted(pairs, mine), np.searchsorted(pairs, theirs)
            total = np.zeros(pairs.size, np.int64)
            total[a] = self.counts
            total[b] += counts
            parts = [
                part.regroup(place, pairs.size)
                for part, place in ((self.weights, a), (weights, b))
                if part is not None
            ]
            self.weights = sum(parts[1:], parts[0]) if parts else None
            self.pairs, self.counts = pairs, total
        self.row_labels, self.column_labels = row_labels, column_labels
        self._most += most
        if self._most >= MANY:
            many = ExactSum.counts(self.counts)
            self.weights = many if self.weights is None else self.weights + many
            self.counts, self._most = np.zeros_like(self.counts), 0

    def cells(self) -> Cells:
        """Return the pairs that occur, in order of their labels."""
        width = max(len(self.column_labels), 1)
        rows, columns = np.divmod(self.pairs, width)
        amount = amounts(self.counts, self.weights)
        return Cells(self.row_labels, self.column_labels, rows, columns, amount)

    @property
    def nbytes(self) -> int:
        """Bytes of state held now."""
        held = (self.row_labels, self.column_labels, self.pairs, self.counts)
        weights = 0 if self.weights is None else self.weights.nbytes
        return sum(array.nbytes for array in held) + weights

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return labels, pairs and exact amounts."""
        amount = ExactSum.counts(self.counts)
        if self.weights is not None:
            amount += self.weights
        return {
            "row_labels": packed_labels(self.row_labels),
            "column_labels": packed_labels(self.column_labels),
            "pairs": self.pairs,
            **nested("amount", amount.arrays()),
        }

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Set labels, pairs and amounts, all of which must be in order and in use."""
        row_labels = unpacked_labels(arrays, "row_labels")
        column_labels = unpacked_labels(arrays, "column_labels")
        pairs = take_array(arrays, "pairs", "int64")
        amount = ExactSum.from_arrays(pairs.shape, part(arrays, "amount"))
        width = len(column_labels)
        for values in (row_labels, column_labels, pairs):
            if not (values[1:] > values[:-1]).all():
                raise StateFormatError("labels or pairs of a contingency table are out of order")
        if pairs.size and not 0 <= pairs[0] <= pairs[-1] < len(row_labels) * width:
            raise StateFormatError("a pair of a contingency table names no label")
        rows, columns = np.divmod(pairs, max(width, 1))
        used = (rows, len(row_labels)), (columns, width)  # places are below what the state has
        if not all(np.bincount(places, minlength=size).all() for places, size in used):
            raise StateFormatError("a label of a contingency table is in no pair")
        counts, weights = as_counts(amount)
        if not bool(np.all((counts if weights is None else weights.to_float()) > 0)):
            raise StateFormatError("a pair of a contingency table has no positive count")
        self.row_labels, self.column_labels, self.pairs = row_labels, column_labels, pairs
        self.counts, self.weights = counts, weights
        self._most = int(self.counts.max(initial=0))


def amounts(counts: NDArray[np.int64], weights: ExactSum | None) -> NDArray[np.int64] | ExactSum:
    """Return how much there is of each cell: counts, or exact sums where rows have weights."""
    return counts if weights is None else ExactSum.counts(counts) + weights


def as_counts(amount: ExactSum) -> tuple[NDArray[np.int64], ExactSum | None]:
    """Return amounts as plain counts if they are whole and below 2**62, else as exact sums."""
    if amount.exponent == 0 and amount.digits.shape[1] == 1:
        return amount.digits.reshape(amount.shape), None
    counts = np.zeros(amount.shape, np.int64)
    floats = np.abs(np.asarray(amount.to_float()))
    if amount.exponent < 0 or floats.max(initial=0.0) >= MANY:
        return counts, amount
    for place, digits in enumerate(amount.digits.T):
        counts += digits << (32 * place + amount.exponent)
    return counts, None


UNWEIGHTED = "metrics of clusterings"  # as pairs of points have no weight


class LabelPairs(ContingencyTable):
    """How many rows have each pair of labels of two labelings, which may differ in kind."""

    row: str = "labels_true"
    column: str = "labels_pred"
    alike: bool = False

    @property
    def schema(self) -> Schema:
        """Two columns of labels, without weights."""
        schema = super().schema
        return replace(schema, unweighted=UNWEIGHTED)

    def merge(self, other: ContingencyTable) -> None:
        """Add the counts of another table."""
        check_rows(self.counts, other.counts)
        super().merge(other)

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Set labels, pairs and counts, which are whole and of as many rows as can be."""
        super().restore(arrays)
        if self.weights is not None or not countable(self.counts):
            raise StateFormatError("the counts of labelings are not whole, or too many")


def countable(counts: NDArray[np.int64]) -> bool:
    """Whether the sum of counts, none of them negative, is far from wrapping."""
    return float(counts.sum(dtype=np.float64)) < MANY


def check_rows(*counts: NDArray[np.int64]) -> None:
    """Raise where there are more rows together than is safe to count in 64 bits."""
    rows = sum(int(count.sum()) for count in counts)
    if rows > MOST:
        raise IncompatibleMetricsError(
            f"the states hold {rows} rows together; at most 2**61 of a clustering are counted"
        )
