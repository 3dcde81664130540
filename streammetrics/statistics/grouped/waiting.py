"""Rows that wait beside the groups they are of, and in the order of these."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.columns.conversion import Column
from streammetrics.core.columns.long import LongNumbers
from streammetrics.core.columns.nested import Nested, joined, joined_weights
from streammetrics.core.counting import are_moved, counts_of, group_order, rows_by_group
from streammetrics.core.field import piled

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streammetrics.core.counting import GroupCodes
    from streammetrics.core.types import Array, Columns, Floats, Places, ReadColumn

_PIECE = 1 << 18  # rows that are brought together at a time


class GroupedRows(NamedTuple):
    """Rows beside the group of each, in arrays of their own."""

    codes: Array
    columns: Columns
    weight: Floats | None

    @classmethod
    def of(
        cls, by: GroupCodes, columns: Sequence[ReadColumn], weight: Floats | None
    ) -> GroupedRows:
        """Return rows of groups in the order of these."""
        narrow = by.codes.astype(np.uint16 if by.size <= 1 << 16 else np.int64)
        if not by.ascending or any(not isinstance(column, np.ndarray) for column in columns):
            return cls(narrow, tuple(columns), weight).ordered(by.size)
        own = tuple([column.copy() for column in columns])
        return cls(narrow, own, None if weight is None else weight.copy())

    def ordered(self, size: int) -> GroupedRows:
        """Return the rows by ascending group."""
        return self.at(group_order(self.codes, size)[0])

    def by_group(self, size: int) -> tuple[Places, Columns, Floats | None]:
        """Return where the rows of each group begin, and columns and weight ordered by group."""
        given = [*self.columns, *([] if self.weight is None else [self.weight])]
        if are_moved(given):
            starts, moved = rows_by_group(self.codes, size, given)
        else:
            order, starts = group_order(self.codes, size)
            moved = [column[order] for column in given]
        weight = None if self.weight is None else moved.pop()
        return starts, tuple(moved), weight

    def at(self, rows: Places | slice) -> GroupedRows:
        """Return some of the rows, or all in another order."""
        weight = None if self.weight is None else self.weight[rows]
        return GroupedRows(
            self.codes[rows], tuple([column[rows] for column in self.columns]), weight
        )

    def moved(self, places: Places, size: int) -> GroupedRows:
        """Return the rows with the groups that they go to; those that go nowhere are left out."""
        codes, rows = places[self.codes], self
        if codes.min(initial=0) < 0:
            kept = np.flatnonzero(codes >= 0)
            codes, rows = codes[kept], rows.at(kept)
        return rows._replace(codes=codes).ordered(size)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        size = self.codes.nbytes + (0 if self.weight is None else self.weight.nbytes)
        return size + sum([_size(column) for column in self.columns])


def _size(column: ReadColumn) -> int:
    if isinstance(column, Nested):
        return column.values.nbytes + column.flat.values.nbytes
    if isinstance(column, LongNumbers):
        return column.head.nbytes + column.tail.nbytes
    values: Array = column.values if isinstance(column, Column) else column
    return values.nbytes


def rows_of(chunks: Sequence[GroupedRows]) -> int:
    """Return how many rows there are in all chunks."""
    return sum([rows.codes.size for rows in chunks])


def appended(
    chunks: tuple[GroupedRows, ...], last: GroupedRows, size: int
) -> tuple[GroupedRows, ...]:
    """Return the chunks and one more, joined with small ones before it."""

    def join(some: Sequence[GroupedRows]) -> GroupedRows:
        return _joined(some).ordered(size)

    rows = tuning.JOINED_ROWS
    return piled(chunks, last, size=lambda rows: rows.codes.size, join=join, small=rows)


def in_order(
    chunks: Sequence[GroupedRows], size: int
) -> Iterator[tuple[Places, Columns, Floats | None]]:
    """Yield where the rows of each group begin, columns and weight of some groups at a time.

    All rows come by ascending group. Chunks are in this order, so that runs of rows are moved.
    """
    starts = np.zeros((len(chunks), size + 1), np.intp)  # of the rows of each group in a chunk
    for each, rows in zip(starts, chunks, strict=True):
        np.cumsum(counts_of((size,), rows.codes), out=each[1:])
    before, low = starts.sum(axis=0), 0  # rows of the groups before each
    while low < size:
        high = int(np.searchsorted(before, before[low] + _PIECE, "right")) - 1
        high = max(high, low + 1)
        ends = starts[:, [low, high]].tolist()
        parts = [rows.at(slice(*end)) for rows, end in zip(chunks, ends, strict=True)]
        if before[high] > before[low]:
            yield _joined(parts).by_group(size)
        low = high


def _joined(parts: Sequence[GroupedRows]) -> GroupedRows:
    if len(parts) == 1:
        return parts[0]
    weight = joined_weights([(rows.weight, rows.codes.size) for rows in parts])
    codes = np.concatenate([rows.codes for rows in parts])
    columns = map(joined, zip(*[rows.columns for rows in parts], strict=True))
    return GroupedRows(codes, tuple(columns), weight)
