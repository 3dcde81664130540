"""Columns whose rows are lists: the boxes of an image, the tags of a sentence."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.columns.column import Column, concatenate
from streammetrics.core.columns.conversion import as_column, kind_of
from streammetrics.core.columns.long import joined_numbers
from streammetrics.core.errors import InvalidBatchError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.types import Array, Bools, Floats, Foreign, Ints, Places, ReadColumn

    Counts = Ints

_MOST_NDIM = 8  # rows of points may be maps of any shape


@dataclass(slots=True)
class Nested(Column):
    """A column of lists; its `values` are the length of each list.

    Attributes:
        flat: The items of all rows, concatenated: (m,) or (m, d).

    >>> column = Nested.of(np.array([2, 0, 1]), Column(np.array([5, 6, 7])))
    >>> column[np.array([2, 0])].flat.values.tolist()
    [7, 5, 6]
    """

    flat: Column = field(kw_only=True)

    @classmethod
    def of(cls, counts: Counts, flat: Column, nulls: Bools | None = None) -> Nested:
        """Make a column of lists from their lengths, the concatenated items and a mask of nulls."""
        some = None if nulls is None or not nulls.any() else nulls
        return cls(counts, some, True, None, flat=flat)

    def __getitem__(self, rows: slice | Array) -> Nested:
        """Return some of the rows."""
        starts = np.cumsum(self.values) - self.values
        counts, nulls = self.values[rows], None if self.nulls is None else self.nulls[rows]
        if isinstance(rows, slice):
            first = int(starts[rows][0]) if counts.size else 0
            return Nested.of(counts, self.flat[first : first + int(counts.sum())], nulls)
        return Nested.of(counts, self.flat[within(starts[rows], counts)], nulls)

    @property
    def rows(self) -> Places:
        """The row of each item."""
        return np.repeat(np.arange(self.values.size), self.values)

    def copy(self) -> Nested:
        """Return a copy that owns its values."""
        return Nested.of(self.values.copy(), self.flat.copy(), self.nulls)


def within(starts: Counts, counts: Counts) -> Places:
    """Return the concatenated ranges ``start`` to ``start + count - 1``.

    >>> within(np.array([7, 2]), np.array([2, 3])).tolist()
    [7, 8, 2, 3, 4]
    """
    ends = np.cumsum(counts)
    places: Places = np.arange(ends[-1] if ends.size else 0)
    places += np.repeat(starts - (ends - counts), counts)
    return places


def joined(parts: Sequence[ReadColumn]) -> Foreign:
    """Concatenate columns of one kind: nested, plain or numeric."""
    if isinstance(parts[0], Nested):
        flat = concatenate([part.flat for part in parts])
        return Nested.of(np.concatenate([part.values for part in parts]), flat)
    return concatenate(parts) if isinstance(parts[0], Column) else joined_numbers(parts)


def joined_weights(every: Sequence[tuple[Floats | None, int]]) -> Floats | None:
    """Concatenate the weights of several batches, each given with its number of rows.

    A batch without weights (``None``) has weights of one. Returns ``None`` if no batch has weights.
    """
    if all(weight is None for weight, _ in every):
        return None
    return np.concatenate([np.ones(n) if weight is None else weight for weight, n in every])


def as_nested(value: object, name: str, each: str) -> Nested:
    """Convert rows of lists to a nested column.

    Rows are lists, arrays or tensors, or come from a list column of Arrow, pandas or polars. A row
    with a missing item is null. `each` describes a row in error messages.
    """
    if isinstance(value, Nested):
        return value
    nested = _read(value, name, each)
    flat = nested.flat
    absent = np.isnan(flat.values) if flat.values.dtype.kind == "f" else np.zeros(1, np.bool_)
    if flat.nulls is not None:
        absent = absent | flat.nulls
    if not absent.any():
        return nested
    nulls = np.zeros(len(nested), np.bool_) if nested.nulls is None else nested.nulls.copy()
    nulls[nested.rows[absent.reshape(len(flat), -1).any(axis=1)]] = True
    return Nested.of(nested.values, flat, nulls)


def _read(value: Foreign, name: str, each: str) -> Nested:
    if hasattr(value, "to_arrow") and not hasattr(value, "columns"):  # a polars Series
        value = value.to_arrow()
    if hasattr(value, "combine_chunks"):
        value = value.combine_chunks()
    if hasattr(value, "value_lengths"):
        return _from_arrow(value, name)
    if getattr(getattr(value, "dtype", None), "kind", "") == "O":  # else a row is an array
        value = value.tolist()
    if isinstance(value, list | tuple):
        return _from_rows([_points(row) for row in value], name, each)
    column = as_column(value, name, max_ndim=_MOST_NDIM)
    if column.values.ndim == 1 and len(column):
        raise _no_lists(name, each, 0)
    if column.values.ndim == 1:
        return Nested.of(np.zeros(0, np.int64), column)
    n, *inner = column.values.shape
    places, point = (inner, []) if len(inner) < 2 else (inner[:-1], inner[-1:])
    width = math.prod(places)
    flat = Column(column.values.reshape(n * width, *point), None, column.owned)
    return Nested.of(np.full(n, width), flat)


def _from_arrow(value: Foreign, name: str) -> Nested:
    nulls = np.asarray(value.is_null().to_numpy(zero_copy_only=False))
    lengths = value.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    return Nested.of(np.asarray(lengths, np.int64), as_column(value.flatten(), name), nulls)


def _points(row: object) -> Foreign:
    """Reshape an array of more than two dimensions to a list of points; return others unchanged."""
    return row.reshape(-1, row.shape[-1]) if type(row) is np.ndarray and row.ndim > 2 else row


def _from_rows(rows: Sequence[object], name: str, each: str) -> Nested:
    kinds = {kind_of(row) for row in {type(row): row for row in rows}.values()}
    if not kinds <= {"[", "a", "0"}:
        wrong = next(place for place, row in enumerate(rows) if kind_of(row) not in "[a0")
        raise _no_lists(name, each, wrong)
    nulls = np.array([kind_of(row) == "0" for row in rows], np.bool_)
    counts = np.zeros(len(rows), np.int64)
    for place in np.flatnonzero(~nulls).tolist():
        counts[place] = _length(rows[place], place, name, each)
    some = [rows[place] for place in np.flatnonzero(counts).tolist()]
    flat = _flat(some, kinds)
    if flat is None or len(flat) != counts.sum():
        flat = _one_by_one(rows, counts, name)
    return Nested.of(counts, flat, nulls)


def _flat(rows: list[Any], kinds: set[str]) -> Column | None:
    """Concatenate the items of all rows at once; ``None`` if rows must be converted one by one."""
    if not rows:
        return Column(np.empty(0), None, True)
    try:
        if kinds <= {"[", "0"}:
            return as_column(list(chain.from_iterable(rows)), "")
        if all(type(row) is np.ndarray for row in rows):
            return as_column(np.concatenate(rows), "")
    except ValueError:
        pass
    return None


def _one_by_one(rows: Sequence[object], counts: Counts, name: str) -> Column:
    parts = [
        as_column(row, f"{name}, row {place},")
        for place, (row, count) in enumerate(zip(rows, counts.tolist(), strict=True))
        if count
    ]
    for place, part in zip(np.flatnonzero(counts).tolist(), parts, strict=True):
        if len(part) != counts[place]:
            raise InvalidBatchError(f"{name} has no list in row {place}", name, place)
        if part.values.shape[1:] != parts[0].values.shape[1:]:
            raise InvalidBatchError(
                f"{name} has values of shape {part.values.shape[1:]} in row {place}, and of "
                f"{parts[0].values.shape[1:]} in rows before",
                name,
                place,
            )
    return concatenate(parts, name)


def _length(row: Any, place: int, name: str, each: str) -> int:
    try:
        return len(row)
    except TypeError:  # a zero-dimensional array
        raise _no_lists(name, each, place) from None


def _no_lists(name: str, each: str, row: int) -> InvalidBatchError:
    return InvalidBatchError(
        f"{name} holds single values, first in row {row}: a row is a list, {each}", name, row
    )
