"""Rows in the order of their groups: as they wait, and as they are cut into those of each group."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core.columns.conversion import Column
from streammetrics.core.columns.long import LongNumbers
from streammetrics.core.columns.nested import Nested, joined, joined_weights, within
from streammetrics.core.counting import group_order
from streammetrics.core.runs import piled

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streammetrics.core.types import Array, Columns, Floats, Places, ReadColumn

_EACH = 64  # rows of a group in a chunk, from which on it is not joined with others
_PIECE = 1 << 20  # rows that are brought together at a time


class GroupedRows(NamedTuple):
    """Rows by ascending group, in arrays of their own."""

    codes: Array
    columns: Columns
    weight: Floats | None

    @classmethod
    def of(
        cls, codes: Array, columns: Sequence[ReadColumn], weight: Floats | None, size: int
    ) -> GroupedRows:
        """Return rows of `size` groups, in the order of these."""
        rows = cls(codes, tuple(columns), weight)
        ordered = rows._sorted(size)
        if ordered.columns is not rows.columns:
            return ordered
        own = None if weight is None else weight.copy()
        return cls(ordered.codes, tuple([column.copy() for column in columns]), own)

    def _sorted(self, size: int) -> GroupedRows:
        """Return the rows by ascending group, with the same columns where they are so already."""
        narrow: Array = self.codes.astype(np.uint16 if size <= 1 << 16 else np.int64)
        rows = self._replace(codes=narrow)
        if bool(np.greater_equal(narrow[1:], narrow[:-1]).all()):
            return rows
        return rows.at(group_order(narrow, size)[0])

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
        return rows._replace(codes=codes)._sorted(size)

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
        return _between(some, _starts(some, size))

    return piled(
        chunks, last, size=lambda rows: rows.codes.size, join=join, small=min(_EACH * size, _PIECE)
    )


def in_order(chunks: Sequence[GroupedRows], size: int) -> Iterator[GroupedRows]:
    """Yield all rows by ascending group: those of some groups at a time, where rows are many."""
    starts = _starts(chunks, size)
    before = starts.sum(axis=0)  # rows of the groups before each
    low = 0
    while low < size:
        high = int(np.searchsorted(before, before[low] + _PIECE, "right")) - 1
        high = max(high, low + 1)
        if before[high] > before[low]:
            yield _between(chunks, starts[:, low : high + 1])
        low = high


def _starts(chunks: Sequence[GroupedRows], size: int) -> Places:
    """Return where the rows of each group start in each chunk, and where the last ones end."""
    groups = np.arange(size + 1)
    return np.array([np.searchsorted(rows.codes, groups) for rows in chunks])


def _between(chunks: Sequence[GroupedRows], starts: Places) -> GroupedRows:
    """Return the rows of consecutive groups that start there in each chunk, by ascending group."""
    ends = zip(chunks, starts[:, 0].tolist(), starts[:, -1].tolist(), strict=True)
    parts = [rows.at(slice(first, end)) for rows, first, end in ends]
    if len(parts) == 1:
        return parts[0]
    # The rows of a group in each chunk, one after the other.
    begin = np.cumsum(starts[:, -1] - starts[:, 0]) - starts[:, -1]
    order = within((starts[:, :-1] + begin[:, None]).T.ravel(), np.diff(starts).T.ravel())
    return _joined(parts).at(order)


def _joined(parts: Sequence[GroupedRows]) -> GroupedRows:
    weight = joined_weights([(rows.weight, rows.codes.size) for rows in parts])
    codes = np.concatenate([rows.codes for rows in parts])
    columns = map(joined, zip(*[rows.columns for rows in parts], strict=True))
    return GroupedRows(codes, tuple(columns), weight)
