"""Amounts by pairs of labels, of which only those that occur are held."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streammetrics.core.counting import Union, counts_of, moved
from streammetrics.core.errors import StateFormatError
from streammetrics.core.field import StateField, not_among
from streammetrics.core.fields.keyed import packed_labels, unpacked_labels, used_labels
from streammetrics.core.fields.weights import (
    MANY,
    MOST,
    WeightedCount,
    chained_amounts,
    check_rows,
    read_amount,
)
from streammetrics.core.state.arrays import nested, part, take_array, take_sizes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.configured import Configured
    from streammetrics.core.types import Array, Arrays, Ints, Places


class GroupedCells(NamedTuple):
    """How much there is of each pair of a row label and a column label: of one group, or by group.

    Labels of both sides are sorted. A code is ``(group * rows + row) * columns + column``; codes
    ascend. Of one group all labels are in use, and there is something of each code.
    """

    row_labels: Array
    column_labels: Array
    codes: Ints
    amount: WeightedCount

    @classmethod
    def empty(cls) -> GroupedCells:
        """Return no pairs."""
        none = np.empty(0, np.int64)
        return cls(none, none, none, WeightedCount.of_counts(none))

    @property
    def area(self) -> int:
        """How many codes a group has."""
        return max(len(self.row_labels) * len(self.column_labels), 1)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Whether labels of either side are integers or text; none without pairs."""
        sides = (self.row_labels, self.column_labels)
        return tuple([side.dtype.kind for side in sides]) if self.codes.size else ()

    @property
    def places(self) -> tuple[Ints, Ints]:
        """The places of the labels of each code: of rows with the group, and of columns."""
        return np.divmod(self.codes, max(len(self.column_labels), 1))

    def narrowed(self) -> GroupedCells:
        """Return the same with the labels that occur; of no pairs, labels of no kind."""
        if not self.codes.size:
            return self.empty()
        several = self.codes[-1] >= self.area
        if not several and self.codes.size == self.area:
            return self
        row, column = self.places
        group: Ints | int = 0
        if several:
            group, row = np.divmod(row, len(self.row_labels))
        rows, row = used_labels(self.row_labels, row)
        columns, column = used_labels(self.column_labels, column)
        codes = (group * len(rows) + row) * len(columns) + column
        return GroupedCells(rows, columns, codes, self.amount)

    def used(self) -> GroupedCells:
        """Return the pairs of which there is something, of labels that all occur."""
        there = self.amount.signs() > 0
        if there.all():
            return self.narrowed()
        amount = self.amount.at(np.flatnonzero(there))
        return self._replace(codes=self.codes[there], amount=amount).narrowed()

    def plus(self, other: GroupedCells) -> GroupedCells:
        """Return the pairs of both, with the sums of their amounts."""
        if not other.codes.size or not self.codes.size:
            return self if self.codes.size else other
        rows = Union.of(self.row_labels, other.row_labels)
        columns = Union.of(self.column_labels, other.column_labels)
        pairs = _united(
            self._recoded(rows.mine, columns.mine, len(rows.keys), len(columns.keys)),
            other._recoded(rows.theirs, columns.theirs, len(rows.keys), len(columns.keys)),
        )
        size = len(pairs.keys)
        amount = self.amount.spread(pairs.mine, size) + other.amount.spread(pairs.theirs, size)
        return GroupedCells(rows.keys, columns.keys, pairs.keys, amount)

    def _recoded(
        self, rows: Places | None, columns: Places | None, height: int, width: int
    ) -> Ints:
        """Return the codes among `height` row labels and `width` column labels."""
        if rows is None and columns is None:
            return self.codes
        row, column = self.places
        group, row = np.divmod(row, len(self.row_labels))
        return (group * height + moved(rows, row)) * width + moved(columns, column)

    @property
    def nbytes(self) -> int:
        """Bytes held now."""
        return sum(part.nbytes for part in self)

    def at(self, group: int) -> GroupedCells:
        """Return the pairs of one group, and its labels."""
        first = group * self.area
        low, high = np.searchsorted(self.codes, [first, first + self.area]).tolist()
        codes, amount = self.codes[low:high] - first, self.amount.at(slice(low, high))
        return self._replace(codes=codes, amount=amount).used()

    def groups_plus(self, other: GroupedCells) -> GroupedCells | None:
        """Return the pairs of both; ``None`` if labels of one are integers, of the other text."""
        alike = self.kinds == other.kinds or not self.codes.size or not other.codes.size
        return self.plus(other) if alike else None

    def regrouped(self, places: Places, size: int) -> GroupedCells:
        """Return the pairs of groups that go to one place."""
        group, cell = np.divmod(self.codes, self.area)
        to = places[group]
        kept = np.flatnonzero(to >= 0)
        codes, amount = to[kept] * self.area + cell[kept], self.amount
        if kept.size < to.size:
            amount = amount.at(kept)
        if (codes[1:] > codes[:-1]).all():
            return self._replace(codes=codes, amount=amount)
        codes, place = np.unique(codes, return_inverse=True)
        return self._replace(codes=codes, amount=amount.regrouped(place, codes.size))

    def minus(self, other: GroupedCells) -> GroupedCells:
        """Return the pairs of one group that are left without those of another."""
        both = self.plus(other)
        if both.codes.size != self.codes.size:
            raise not_among("some pairs of labels are not here")
        # As many pairs are the same ones, so those of the other are the only ones to find.
        nothing = WeightedCount.zero((self.codes.size,))
        left = self.amount - self._replace(amount=nothing).plus(other).amount
        kept = np.flatnonzero(left.signs())
        return self._replace(codes=self.codes[kept], amount=left.at(kept)).narrowed()


def _united(mine: Ints, theirs: Ints) -> Union:
    """Unite sorted codes, of which those of a batch are mostly among those of all before."""
    if len(theirs) < len(mine):
        found = np.minimum(np.searchsorted(mine, theirs), len(mine) - 1)
        if np.array_equal(mine[found], theirs):
            return Union(mine, None, found)
    return Union.of(mine, theirs)


class PairTable(StateField[GroupedCells]):
    """How much there is of each pair of two labels, and the squares of weights.

    Memory grows with the pairs that occur. Grouped values are `GroupedCells`, or a tuple where some
    groups have labels of integers and others of text.

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

    def empty(self, of: Configured) -> GroupedCells:
        """Return no pairs."""
        return GroupedCells.empty()

    def plus(self, mine: GroupedCells, other: GroupedCells) -> GroupedCells:
        """Return the pairs of both."""
        if self._whole:
            check_rows(mine.amount.counts, other.amount.counts, most=self._most, of=self._of)
        return mine.plus(other)

    def arrays(self, value: GroupedCells) -> dict[str, Array]:
        """Return labels, pairs and exact amounts."""
        return {
            "row_labels": packed_labels(value.row_labels),
            "column_labels": packed_labels(value.column_labels),
            "pairs": value.codes,
            **nested("amount", value.amount.arrays()),
        }

    def taken(self, arrays: Arrays, of: Configured) -> GroupedCells:
        """Return labels, pairs and amounts, all of which are in order and in use."""
        pairs = take_array(arrays, "pairs", "int64")
        return self._read({**arrays, "sizes": np.array([len(pairs)])}, 1)

    def _read(self, arrays: Arrays, size: int) -> GroupedCells:
        """Return the pairs of all groups."""
        rows, columns = (unpacked_labels(arrays, f"{side}_labels") for side in ("row", "column"))
        pairs, amounts = take_array(arrays, "pairs", "int64"), part(arrays, "amount")
        sizes = take_sizes(arrays, "sizes", size, len(pairs))
        if len(arrays) != 4 + len(amounts):
            raise StateFormatError(f"{sorted(arrays)} are not the arrays of pairs of labels")
        amount = read_amount(pairs.shape, amounts, squared=not self._whole)
        area = len(rows) * len(columns)
        if pairs.size and not 0 <= pairs.min() <= pairs.max() < area:
            raise StateFormatError("a pair of a contingency table names no label")
        if area * size >= MANY:
            raise StateFormatError("there are too many pairs of labels")
        group = np.repeat(np.arange(size), sizes)
        codes = group * max(area, 1) + pairs
        for values in (rows, columns, codes):
            if not (values[1:] > values[:-1]).all():
                raise StateFormatError("labels or pairs of a contingency table are out of order")
        for places, side in zip(
            np.divmod(pairs, max(len(columns), 1)), (rows, columns), strict=True
        ):
            if not counts_of((len(side),), places).all():
                raise StateFormatError("a label of a contingency table is in no pair")
        if not (amount.signs() > 0).all():
            raise StateFormatError("a pair of a contingency table has no positive count")
        if self._whole and (
            amount.weights is not None
            or np.bincount(group, amount.counts.astype(np.float64)).max(initial=0.0) >= MANY
        ):
            raise StateFormatError("the counts of labelings are not whole, or too many")
        return GroupedCells(rows, columns, codes, amount)

    def nbytes(self, value: GroupedCells) -> int:
        """Bytes held now."""
        return value.nbytes

    def scaled(self, value: GroupedCells, weight: float) -> GroupedCells:
        """Return the same pairs with as many times the amounts."""
        return value._replace(amount=value.amount.scaled(weight, squared=True))

    def minus(self, value: GroupedCells, other: GroupedCells) -> GroupedCells:
        """Return the pairs that are left, and their labels."""
        return value.minus(other)

    def no_groups(self, of: Configured, size: int) -> GroupedCells:
        """Return no pairs."""
        return GroupedCells.empty()

    def of_groups(
        self, values: Sequence[GroupedCells], of: Configured
    ) -> GroupedCells | tuple[GroupedCells, ...]:
        """Return the pairs of all groups."""
        return _grouped(values)

    def groups_arrays(self, value: Any, size: int) -> dict[str, Array]:
        """Return labels, how many pairs each group has, pairs and exact amounts."""
        if not isinstance(value, GroupedCells):
            value = _grouped(value)
        if not isinstance(value, GroupedCells):
            return super().groups_arrays(value, size)
        cells = value.used()
        group, pairs = np.divmod(cells.codes, cells.area)
        return {
            "row_labels": packed_labels(cells.row_labels),
            "column_labels": packed_labels(cells.column_labels),
            "sizes": counts_of((size,), group),
            "pairs": pairs,
            **nested("amount", cells.amount.arrays()),
        }

    def groups_taken(self, arrays: Arrays, size: int, of: Configured) -> object:
        """Return labels, pairs and amounts of all groups, in order and in use."""
        if "names" in arrays:
            return super().groups_taken(arrays, size, of)
        return self._read(arrays, size)


def _grouped(values: Sequence[GroupedCells]) -> GroupedCells | tuple[GroupedCells, ...]:
    """Return the pairs of groups, side by side where labels are of several kinds."""
    sizes = np.array([pairs.codes.size for pairs in values], np.int64)
    there = np.flatnonzero(sizes)
    some = [values[place] for place in there.tolist()]
    if len({(p.row_labels.dtype.kind, p.column_labels.dtype.kind) for p in some}) > 1:
        return tuple(values)
    if not some:
        return GroupedCells.empty()
    rows, height, row_starts = _vocabulary([pairs.row_labels for pairs in some])
    columns, width, column_starts = _vocabulary([pairs.column_labels for pairs in some])
    which = np.repeat(np.arange(len(some)), sizes[there])  # of the groups that have pairs
    codes = np.concatenate([pairs.codes for pairs in some])
    row, column = np.divmod(codes, np.diff(column_starts)[which])
    row = height[row_starts[which] + row]
    column = width[column_starts[which] + column]
    codes = (there[which] * len(rows) + row) * len(columns) + column
    amount = chained_amounts([pairs.amount for pairs in some])
    return GroupedCells(rows, columns, codes, amount)


def _vocabulary(every: Sequence[Array]) -> tuple[Array, Places, Ints]:
    """Return all labels, the place of each one given among them, and where those of each start."""
    labels, places = np.unique(np.concatenate(every), return_inverse=True)
    starts = np.cumsum([0, *map(len, every)])
    return labels, places, starts
