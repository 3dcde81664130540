"""Amounts by pairs of labels, of which only those that occur are held."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core.errors import StateFormatError
from streammetrics.core.field import GroupedField, not_among
from streammetrics.core.fields.amounts import Amount
from streammetrics.core.fields.labels import each_unpacked, packed_labels, used_labels
from streammetrics.core.fields.restoring import each_amount
from streammetrics.core.fields.weights import (
    MOST,
    check_rows,
    countable,
    joined_amounts,
    regrouped_amounts,
)
from streammetrics.core.state.arrays import nested, part, take_array
from streammetrics.core.unions import Union, moved

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.configured import Configured
    from streammetrics.core.types import Array, Arrays, Ints, Places


class Pairs(NamedTuple):
    """Pairs of a row label and a column label, and how much there is of each.

    Labels of both sides are sorted, and all in use. A pair is ``row * columns + column`` of their
    places; pairs ascend.
    """

    row_labels: Array
    column_labels: Array
    codes: Ints
    amount: Amount

    @classmethod
    def empty(cls) -> Pairs:
        """Return no pairs."""
        none = np.empty(0, np.int64)
        return cls(none, none, none, Amount.of_counts(none))

    @classmethod
    def of(
        cls,
        row_labels: Array,
        column_labels: Array,
        codes: Ints,
        amount: Amount,
    ) -> Pairs:
        """Return pairs of labels of which some may not occur; of no pairs, labels of no kind."""
        if not codes.size:
            return cls.empty()
        rows, columns = np.divmod(codes, max(len(column_labels), 1))
        row_labels, rows = used_labels(row_labels, rows)
        column_labels, columns = used_labels(column_labels, columns)
        return cls(row_labels, column_labels, rows * len(column_labels) + columns, amount)

    @property
    def places(self) -> tuple[Ints, Ints]:
        """The places of both labels of each pair."""
        return np.divmod(self.codes, max(len(self.column_labels), 1))

    def plus(self, other: Pairs) -> Pairs:
        """Return the pairs of both, with the sums of their amounts."""
        if not other.codes.size or not self.codes.size:
            return self if self.codes.size else other
        rows = Union.of(self.row_labels, other.row_labels)
        columns = Union.of(self.column_labels, other.column_labels)
        mine, theirs = self.codes, other.codes
        if rows.mine is not None or columns.mine is not None:
            mine = self._recoded(rows.mine, columns.mine, len(columns.keys))
        if rows.theirs is not None or columns.theirs is not None:
            theirs = other._recoded(rows.theirs, columns.theirs, len(columns.keys))
        pairs = Union.of(mine, theirs)
        size = len(pairs.keys)
        amount = self.amount.spread(pairs.mine, size) + other.amount.spread(pairs.theirs, size)
        return Pairs(rows.keys, columns.keys, pairs.keys, amount)

    def _recoded(self, rows: Places | None, columns: Places | None, width: int) -> Ints:
        """Return the codes of the same pairs among other labels, of which `width` are columns."""
        row, column = self.places
        codes: Ints = moved(rows, row) * width + moved(columns, column)
        return codes

    def minus(self, other: Pairs) -> Pairs:
        """Return the pairs that are left without those of another."""
        both = self.plus(other)
        if both.codes.size != self.codes.size:
            raise not_among("some pairs of labels are not here")
        # As many pairs are the same ones, so those of the other are the only ones to find.
        theirs = Pairs(*self[:2], self.codes, Amount.zero((self.codes.size,))).plus(other)
        left = self.amount - theirs.amount
        kept = np.flatnonzero(left.signs())
        if not kept.size:
            return Pairs.empty()
        return Pairs.of(*self[:2], self.codes[kept], left.at(kept))


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


class PairTable(GroupedField[Pairs, GroupedCells]):
    """How much there is of each pair of two labels, and the squares of weights.

    Memory grows with the pairs that occur.

    Args:
        whole: Rows have no weights, and are counted in 64 bits.
        most: How many rows there may then be.
        of: What they are rows of, for messages.
        inline: As of every field.
    """

    def __init__(
        self,
        *,
        whole: bool = False,
        most: int = MOST,
        of: str = "a clustering",
        inline: bool = False,
    ) -> None:
        super().__init__(inline=inline)
        self._whole, self._most, self._of = whole, most, of

    def empty(self, of: Configured) -> Pairs:  # noqa: ARG002 - nothing depends on it
        """Return no pairs."""
        return Pairs.empty()

    def plus(self, mine: Pairs, other: Pairs) -> Pairs:
        """Return the pairs of both."""
        if self._whole:
            check_rows(mine.amount.counts, other.amount.counts, most=self._most, of=self._of)
        return mine.plus(other)

    def arrays(self, value: Pairs) -> dict[str, Array]:
        """Return labels, pairs and exact amounts."""
        return {
            "row_labels": packed_labels(value.row_labels),
            "column_labels": packed_labels(value.column_labels),
            "pairs": value.codes,
            **nested("amount", value.amount.arrays()),
        }

    def taken(self, arrays: Arrays, of: Configured) -> Pairs:
        """Return labels, pairs and amounts, all of which are in order and in use."""
        stacks = {key: array[None] for key, array in arrays.items()}
        return self.each_taken(stacks, 1, of)[0]

    def each_taken(self, stacks: Arrays, n: int, of: Configured) -> list[Pairs]:
        """Return labels, pairs and amounts of each, all of them checked at once."""
        row_labels = each_unpacked(stacks, "row_labels")
        column_labels = each_unpacked(stacks, "column_labels")
        if row_labels is None or column_labels is None:
            return list(super().each_taken(stacks, n, of))
        codes, amounts = take_array(stacks, "pairs", "int64", 2), part(stacks, "amount")
        if len(stacks) != 3 + len(amounts):
            raise StateFormatError(f"{sorted(stacks)} are not the arrays of pairs of labels")
        each = each_amount(codes.shape[1:], amounts, n)
        height, width = row_labels.shape[1], column_labels.shape[1]
        for values in (row_labels, column_labels, codes):
            if not (values[:, 1:] > values[:, :-1]).all():
                raise StateFormatError("labels or pairs of a contingency table are out of order")
        if codes.size and not 0 <= codes.min() <= codes.max() < height * width:
            raise StateFormatError("a pair of a contingency table names no label")
        used = zip(np.divmod(codes, max(width, 1)), (height, width), strict=True)
        for places, size in used:  # places are below these
            flat = places + size * np.arange(n)[:, None]
            if not np.bincount(flat.ravel(), minlength=n * size).all():
                raise StateFormatError("a label of a contingency table is in no pair")
        digits = amounts["digits"]
        if not (digits.any(axis=2).all() and (digits[:, :, -1:] >= 0).all()):
            raise StateFormatError("a pair of a contingency table has no positive count")
        if self._whole and not all(
            amount.weights is None and countable(amount.counts) for amount in each
        ):
            raise StateFormatError("the counts of labelings are not whole, or too many")
        return list(map(Pairs, row_labels, column_labels, codes, each))

    def nbytes(self, value: Pairs) -> int:
        """Bytes held now."""
        return sum(part.nbytes for part in value)

    def scaled(self, value: Pairs, weight: float) -> Pairs:
        """Return the same pairs with as many times the amounts."""
        return value._replace(amount=value.amount.scaled(weight, squared=True))

    def minus(self, value: Pairs, other: Pairs) -> Pairs:
        """Return the pairs that are left, and their labels."""
        return value.minus(other)

    def no_groups(self, of: Configured, size: int) -> GroupedCells:  # noqa: ARG002 - as of no rows
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

    def groups_plus(self, mine: GroupedCells, other: GroupedCells) -> GroupedCells:
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

    def of_groups(self, values: Sequence[Pairs], of: Configured) -> GroupedCells:
        """Return the pairs of all groups."""
        some = [pairs for pairs in values if pairs.codes.size]
        if not some:
            return self.no_groups(of, 0)
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

    def groups_nbytes(self, value: GroupedCells) -> int:
        """Bytes held now."""
        return sum(part.nbytes for part in value)
