"""Columns that grow: numbers, labels and texts of rows that wait, as narrow as they can be."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.columns.conversion import Column
from streammetrics.core.columns.strings import merge_codes
from streammetrics.core.errors import InvalidBatchError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streammetrics.core.types import Array, Ints, Places

_LONG = 1 << 17  # rows from which on an array is long
_STEP = 1 << 15  # rows by which it grows
_FAR = 1 << 25  # bytes beyond which allocators map memory of its own for an array
_KINDS = {"f": "numbers", "i": "integers", "b": "booleans", "u": "integers", "U": "strings"}


class GrowingColumn:
    """One column of a table that grows at its end.

    All its rows are of one kind: numbers, integers, booleans or strings, or as many numbers each.
    Integers take the bytes that the largest needs.
    """

    def __init__(self, name: str, dtype: type = np.int8) -> None:
        self.name = name
        self.kind = ""  # of the first rows, and so of all
        self.vocabulary: NDArray[np.str_] | None = None
        self._data: Array = np.empty(0, dtype)
        self._n = 0

    def __len__(self) -> int:
        return self._n

    @property
    def values(self) -> Array:
        """The rows; of strings, codes into the vocabulary."""
        if len(self._data) < self._n:
            return np.broadcast_to(np.zeros((), self._data.dtype), (self._n, *self._data.shape[1:]))
        return self._data[: self._n]

    @property
    def nbytes(self) -> int:
        """Bytes of the rows."""
        return self._data[: self._n].nbytes + (
            0 if self.vocabulary is None else self.vocabulary.nbytes
        )

    def check(self, column: Column) -> None:
        """Raise where rows are of another kind than those that are there."""
        kind = kind_of(column)
        shape, dtype = column.values.shape[1:], column.values.dtype
        if self.kind and kind != self.kind:
            raise InvalidBatchError(
                f"{self.name} holds {_KINDS[kind]} here, {_KINDS[self.kind]} in rows seen before; "
                "convert them to one kind"
            )
        floats = shape and kind == "f"
        if self.kind and (shape != self._data.shape[1:] or (floats and dtype != self._data.dtype)):
            raise InvalidBatchError(
                f"{self.name} has rows of {shape} {dtype} here, of {self._data.shape[1:]} "
                f"{self._data.dtype} before; pass one form"
            )
        if column.nulls is not None:
            row = int(np.argmax(column.nulls.reshape(len(column), -1).any(axis=1)))
            raise InvalidBatchError(
                f"{self.name} is missing, first in row {row}; a row that waits has all its columns",
                self.name,
                row,
            )

    def append(self, column: Column) -> None:
        """Take rows that `check` has let through."""
        values = column.values
        self.begin(column)
        if column.vocabulary is not None:
            values = self._coded(column)
        values = self._fitting(values)
        start = self._n
        self._grow(start + len(values))
        self._data[start : self._n] = values

    def append_blank(self, n: int) -> None:
        """Take rows of which nothing is known yet; they take no room while no row is set."""
        if len(self._data):
            self._grow(self._n + n)
            self._data[self._n - n : self._n] = 0
        else:
            self._n += n

    def _grow(self, n: int) -> None:
        """Make room for so many rows."""
        self._data = with_room(self._data, self._n, n)
        self._n = n

    def put(self, rows: Ints, column: Column) -> None:
        """Set some rows again."""
        self.begin(column)
        if len(self._data) < self._n:
            self._data = np.zeros((self._n, *self._data.shape[1:]), self._data.dtype)
        values = self._coded(column) if column.vocabulary is not None else column.values
        self._data[rows] = self._fitting(values)

    def begin(self, column: Column) -> None:
        """Learn from the first rows what all are; there may be blank ones before them."""
        if not self.kind:
            self.kind = kind_of(column)
            shape = (len(self._data), *column.values.shape[1:])
            self._data = np.zeros(shape, _first(column.values, self._data.dtype))

    def _fitting(self, values: Array) -> Array:
        """Return values of a type that the rows have, which are widened where that is needed."""
        dtype = self._data.dtype
        narrow = dtype.kind == "i" and (dtype.itemsize < 8 or values.dtype.kind == "u")
        if narrow and values.size:
            limits = np.iinfo(dtype)
            low, high = int(values.min()), int(values.max())
            if low < limits.min or high > limits.max:
                self._data = self._data.astype(_narrow(low, high, dtype))
        return values

    def _coded(self, column: Column) -> Array:
        assert column.vocabulary is not None
        mine = np.empty(0, "U1") if self.vocabulary is None else self.vocabulary
        codes, vocabulary = merge_codes(
            [(np.arange(len(mine)), mine), (column.values, column.vocabulary)]
        )
        places = codes[: len(mine)]
        if len(mine) and not np.array_equal(places, np.arange(len(mine))):
            moved = places[self.values]
            self._data = self._data.astype(_narrow(0, len(vocabulary), self._data.dtype))
            self._data[: self._n] = moved
        self.vocabulary = vocabulary
        return codes[len(mine) :]

    def at(self, rows: Places | slice) -> Column:
        """Return some rows as a batch has them."""
        values = self.values[rows]
        if self.kind in "iU":
            values = values.astype(np.int64)
        if self.vocabulary is not None:
            used, codes = np.unique(values, return_inverse=True)
            return Column(codes.astype(np.intp), None, True, self.vocabulary[used])
        return Column(values, None, True)

    def drop(self, gone: Ints, last: Ints) -> None:
        """Let rows go, into the places of which the last ones move."""
        if len(self._data):
            self._data[gone[: len(last)]] = self._data[last]
        self._n -= len(gone)

    def keep(self, rows: Ints) -> None:
        """Keep some rows, in the order given, and give the place of the others back."""
        self._data = self._data[rows] if len(self._data) else self._data
        self._n = len(rows)

    def copy(self) -> GrowingColumn:
        """Return independent cells of the same rows."""
        twin = GrowingColumn(self.name)
        twin.kind, twin.vocabulary = self.kind, self.vocabulary
        twin._data, twin._n = self._data[: self._n].copy(), self._n
        return twin


def with_room(data: Array, used: int, n: int) -> Array:
    """Return an array with the rows that are used, and room for `n`.

    A short one has room for half as many more. A long one begins with more than the system hands
    out of what others gave back: pages that no row has touched are none, and from then on it grows
    where it is, so that no call waits for a copy of it.
    """
    if n <= len(data):
        return data
    if n < _LONG:
        data.resize((n + max(n >> 1, 4096), *data.shape[1:]), refcheck=False)
        return data
    width = max(data[:0].itemsize * math.prod(data.shape[1:]), 1)
    if data.nbytes < _FAR:
        longer = np.empty((max(n, _FAR // width) + _STEP, *data.shape[1:]), data.dtype)
        longer[:used] = data[:used]
        return longer
    data.resize((n + _STEP, *data.shape[1:]), refcheck=False)
    return data


def kind_of(column: Column) -> str:
    """Return what a column holds, as one letter."""
    if column.vocabulary is not None:
        return "U"
    kind = column.values.dtype.kind
    return "i" if kind == "u" else kind


def _first(values: Array, least: np.dtype[Any]) -> np.dtype[Any]:
    if values.dtype.kind == "f":
        return values.dtype if values.ndim > 1 else np.dtype(np.float64)
    return np.dtype(np.bool_) if values.dtype.kind == "b" else least


def _narrow(low: int, high: int, least: np.dtype[Any]) -> np.dtype[Any]:
    for width in (1, 2, 4, 8):
        limits = np.iinfo(f"i{width}")
        if width >= least.itemsize and limits.min <= low and high <= limits.max:
            return np.dtype(f"i{width}")
    raise InvalidBatchError("integers beyond 64 signed bits: pass them as strings")
