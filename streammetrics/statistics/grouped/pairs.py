"""A table of pairs of labels for many groups: only the pairs that occur are held."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core.fields.amounts import Amount
from streammetrics.core.fields.tables import Pairs
from streammetrics.core.unions import Union, moved
from streammetrics.statistics.grouped.fields import GroupedField, joined_amounts, regrouped_amounts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import Array, Ints, Places


class GroupedCells(NamedTuple):
    """Pairs of labels by group: a code is ``(group * rows + row) * columns + column``.

    Codes ascend; there may be nothing of some of them.
    """

    row_labels: Array
    column_labels: Array
    codes: Ints
    amount: Amount

    @property
    def area(self) -> int:
        """How many codes a group has."""
        return max(len(self.row_labels) * len(self.column_labels), 1)

    def recoded(self, rows: Union, columns: Union, *, mine: bool) -> Ints:
        """Return the codes for other labels, of which these are some."""
        to_rows, to_columns = (rows.mine, columns.mine) if mine else (rows.theirs, columns.theirs)
        if to_rows is None and to_columns is None:
            return self.codes
        row, column = np.divmod(self.codes, max(len(self.column_labels), 1))
        group, row = np.divmod(row, max(len(self.row_labels), 1))
        row = group * len(rows.keys) + moved(to_rows, row)
        codes: Ints = row * len(columns.keys) + moved(to_columns, column)
        return codes


def _united(mine: Ints, theirs: Ints) -> Union:
    """Unite sorted codes, of which those of a batch are mostly among those of all before."""
    if np.array_equal(mine, theirs):
        return Union(mine, None, None)
    found = np.minimum(np.searchsorted(mine, theirs), len(mine) - 1)
    if len(theirs) < len(mine) and np.array_equal(mine[found], theirs):
        return Union(mine, None, found)
    return Union.of(mine, theirs)


class GroupedPairs(GroupedField[GroupedCells]):
    """Amounts by group and pair of labels, of which only those that occur are held."""

    def empty(self, of: Statistic, size: int) -> GroupedCells:  # noqa: ARG002 - as of no rows
        """Return no pairs."""
        return GroupedCells(*Pairs.empty())

    def regrouped(self, value: GroupedCells, places: Places, size: int) -> GroupedCells:  # noqa: ARG002 - the places say it
        """Return the pairs of groups that go to one place."""
        group, cell = np.divmod(value.codes, value.area)
        to = places[group]
        kept = np.flatnonzero(to >= 0)
        codes, amount = to[kept] * value.area + cell[kept], value.amount
        if kept.size < to.size:
            amount = amount.at(kept)
        if (codes[1:] > codes[:-1]).all():
            return value._replace(codes=codes, amount=amount)
        codes, place = np.unique(codes, return_inverse=True)
        return value._replace(codes=codes, amount=regrouped_amounts(amount, place, codes.size))

    def plus(self, mine: GroupedCells, other: GroupedCells) -> GroupedCells:
        """Return the pairs of both."""
        if not mine.codes.size or not other.codes.size:
            return mine if mine.codes.size else other
        rows = Union.of(mine.row_labels, other.row_labels)
        columns = Union.of(mine.column_labels, other.column_labels)
        pairs = _united(
            mine.recoded(rows, columns, mine=True), other.recoded(rows, columns, mine=False)
        )
        size = len(pairs.keys)
        amount = mine.amount.spread(pairs.mine, size) + other.amount.spread(pairs.theirs, size)
        return GroupedCells(rows.keys, columns.keys, pairs.keys, amount)

    def at(self, value: GroupedCells, group: int) -> Pairs:
        """Return the pairs of one group, and its labels."""
        first = group * value.area
        low, high = np.searchsorted(value.codes, [first, first + value.area]).tolist()
        codes, amount = value.codes[low:high], value.amount.at(slice(low, high))
        there = amount.signs() > 0
        if not there.all():
            codes, amount = codes[there], amount.at(np.flatnonzero(there))
        return Pairs.of(value.row_labels, value.column_labels, codes - first, amount)

    def joined(self, values: Sequence[Pairs], of: Statistic) -> GroupedCells:
        """Return the pairs of all groups."""
        some = [pairs for pairs in values if pairs.codes.size]
        if not some:
            return self.empty(of, 0)
        row_labels = np.unique(np.concatenate([pairs.row_labels for pairs in some]))
        column_labels = np.unique(np.concatenate([pairs.column_labels for pairs in some]))
        codes = []
        for group, pairs in enumerate(values):
            if pairs.codes.size:
                row, column = pairs.places
                row = np.searchsorted(row_labels, pairs.row_labels)[row]
                column = np.searchsorted(column_labels, pairs.column_labels)[column]
                codes.append((group * len(row_labels) + row) * len(column_labels) + column)
        if all(pairs.amount.weights is None for pairs in some):
            counts = np.concatenate([pairs.amount.counts for pairs in some])
            amount = Amount.of_counts(counts)
        else:
            amounts = [pairs.amount.at(k) for pairs in some for k in range(len(pairs.codes))]
            amount = joined_amounts(amounts, ())
        return GroupedCells(row_labels, column_labels, np.concatenate(codes), amount)

    def nbytes(self, value: GroupedCells) -> int:
        """Bytes held now."""
        return sum(part.nbytes for part in value)
