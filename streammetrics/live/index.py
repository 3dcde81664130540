"""A table of predictions by id: growing columns and a hash index."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core.columns.column import distinct, merge_codes
from streammetrics.core.columns.conversion import Column
from streammetrics.core.columns.schema import reject
from streammetrics.core.errors import InvalidBatchError
from streammetrics.core.kernels import kernels

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from streammetrics.core.types import Array, Ints, Places

    Keys = NDArray[np.uint64]  # (n, 2)
    Rows = Ints
    Slots = NDArray[np.uint32]


class Present:
    """The number of rows in each pane that has rows.

    Args:
        unit: The length of a pane in nanoseconds.
    """

    def __init__(self, unit: int) -> None:
        self._unit = unit
        self._counts: dict[int, int] = {}

    def add(self, times: Ints) -> None:
        """Count added rows."""
        for number, count in self._counted(times):
            self._counts[number] = self._counts.get(number, 0) + count

    def remove(self, times: Ints) -> None:
        """Subtract removed rows."""
        for number, count in self._counted(times):
            left = self._counts[number] - count
            if left:
                self._counts[number] = left
            else:
                del self._counts[number]

    def _counted(self, times: Ints) -> Iterator[tuple[int, int]]:
        if not len(times):
            return
        first, last = int(times.min()) // self._unit, int(times.max()) // self._unit
        if first == last:  # the common case: rows of a batch are close in time
            yield first, len(times)
            return
        numbers = times // self._unit
        codes, rows = distinct(numbers)
        yield from zip(numbers[rows].tolist(), np.bincount(codes).tolist(), strict=True)

    @property
    def starts(self) -> Ints:
        """The start time of each pane with rows, unordered."""
        return np.fromiter(self._counts, np.int64, len(self._counts)) * self._unit

    def copy(self) -> Present:
        """Return an independent copy."""
        twin = Present(self._unit)
        twin._counts = dict(self._counts)
        return twin


_LONG = 1 << 17  # number of rows from which an array is long
_STEP = 1 << 15  # rows by which a long array grows
_FAR = 1 << 25  # bytes from which allocators map an array separately
_KINDS = {"f": "numbers", "i": "integers", "b": "booleans", "u": "integers", "U": "strings"}


class GrowingColumn:
    """A column of a table that grows at its end.

    All rows have one kind: numbers, integers, booleans, strings, or number vectors of one shape.
    Integers use the smallest width that holds the largest value.
    """

    def __init__(self, name: str, dtype: type = np.int8) -> None:
        self.name = name
        self.kind = ""  # set by the first rows
        self.vocabulary: NDArray[np.str_] | None = None
        self._data: Array = np.empty(0, dtype)
        self._n = 0

    def __len__(self) -> int:
        return self._n

    @property
    def values(self) -> Array:
        """The rows; for strings, codes into the vocabulary."""
        if len(self._data) < self._n:
            return np.broadcast_to(np.zeros((), self._data.dtype), (self._n, *self._data.shape[1:]))
        return self._data[: self._n]

    @property
    def nbytes(self) -> int:
        """Bytes used by the rows and the vocabulary."""
        return self._data[: self._n].nbytes + (
            0 if self.vocabulary is None else self.vocabulary.nbytes
        )

    def check(self, column: Column) -> None:
        """Raise if rows differ in kind or shape from those in the column, or have nulls."""
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
            advice = "a row that waits has all its columns"
            reject(self.name, "is missing (NaN or null)", column.nulls, advice=advice)

    def append(self, column: Column) -> None:
        """Append rows that have passed `check`."""
        values = column.values
        self.begin(column)
        if column.vocabulary is not None:
            values = self._coded(column)
        values = self._fitting(values)
        start = self._n
        self._grow(start + len(values))
        self._data[start : self._n] = values

    def append_blank(self, n: int) -> None:
        """Append n unknown rows; they use no memory until a value is set."""
        if len(self._data):
            self._grow(self._n + n)
            self._data[self._n - n : self._n] = 0
        else:
            self._n += n

    def _grow(self, n: int) -> None:
        """Extend the column to n rows."""
        self._data = with_room(self._data, self._n, n)
        self._n = n

    def put(self, rows: Ints, column: Column) -> None:
        """Overwrite some rows."""
        self.begin(column)
        if len(self._data) < self._n:
            self._data = np.zeros((self._n, *self._data.shape[1:]), self._data.dtype)
        values = self._coded(column) if column.vocabulary is not None else column.values
        self._data[rows] = self._fitting(values)

    def begin(self, column: Column) -> None:
        """Set the kind and shape from the first rows; unknown rows may precede them."""
        if not self.kind:
            self.kind = kind_of(column)
            shape = (len(self._data), *column.values.shape[1:])
            self._data = np.zeros(shape, _first(column.values, self._data.dtype))

    def _fitting(self, values: Array) -> Array:
        """Return the values, after widening the column's integers if needed."""
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
        """Return some rows as a column of a batch."""
        values = self.values[rows]
        if self.kind in "iU":
            values = values.astype(np.int64)
        if self.vocabulary is not None:
            is_used = np.bincount(values, minlength=len(self.vocabulary)) > 0
            codes = (np.cumsum(is_used) - 1)[values]
            return Column(codes.astype(np.intp), None, True, self.vocabulary[is_used])
        return Column(values, None, True)

    def drop(self, gone: Ints, last: Ints) -> None:
        """Remove rows; the rows at `last` move into their places."""
        if len(self._data):
            self._data[gone[: len(last)]] = self._data[last]
        self._n -= len(gone)

    def keep(self, rows: Ints) -> None:
        """Keep only the given rows, in that order, and free the memory of the others."""
        self._data = self._data[rows] if len(self._data) else self._data
        self._n = len(rows)

    def copy(self) -> GrowingColumn:
        """Return an independent copy."""
        twin = GrowingColumn(self.name)
        twin.kind, twin.vocabulary = self.kind, self.vocabulary
        twin._data, twin._n = self._data[: self._n].copy(), self._n
        return twin


def with_room(data: Array, used: int, n: int) -> Array:
    """Return an array with the used rows and room for `n`.

    A short array gets room for half as many more rows. A long array is allocated once above the
    size from which allocators map memory separately: untouched pages use no memory, and later
    growth remaps pages instead of copying, so that no call waits for a copy.
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
    """Return the kind of a column as a one-letter dtype kind."""
    if column.vocabulary is not None:
        return "U"
    kind = column.values.dtype.kind
    return "i" if kind == "u" else kind


def _first(values: Array, least: np.dtype) -> np.dtype:
    if values.dtype.kind == "f":
        return values.dtype if values.ndim > 1 else np.dtype(np.float64)
    return np.dtype(np.bool_) if values.dtype.kind == "b" else least


def _narrow(low: int, high: int, least: np.dtype) -> np.dtype:
    for width in (1, 2, 4, 8):
        limits = np.iinfo(f"i{width}")
        if width >= least.itemsize and limits.min <= low and high <= limits.max:
            return np.dtype(f"i{width}")
    raise InvalidBatchError("integers beyond 64 signed bits: pass them as strings")


_LEAST = 11  # log2 of the minimum number of slots
_SMALL = 1 << 14  # capacity in rows up to which the slots grow eightfold instead of twofold
_MOVED = 2  # rows moved to the new slots per added row, so that no call has to move all


class Index:
    """A hash index from the keys of a table to their rows.

    A key takes 16 bytes, or 8 while the second half of all keys is equal. A slot takes 4 bytes, and
    at most three quarters of the slots are used. To grow, rows are moved to a larger array of slots
    in small steps; until then they are looked up in the old array.
    """

    def __init__(self) -> None:
        self._keys: Keys = np.empty((0, 1), np.uint64)
        self._second = np.zeros(1, np.uint64)  # half of all keys, if `_keys` has width 1
        self._n = 0
        self._slots: Slots = np.zeros(1 << _LEAST, np.uint32)
        self._old: Slots | None = None
        self._moved, self._before = 0, 0  # rows moved so far, and rows to move

    def __getitem__(self, rows: Rows | slice) -> Keys:
        """Return the keys of some rows, (m, 2)."""
        some = self._keys[: self._n][rows]
        if self._width == 2:
            return some
        keys = np.empty((len(some), 2), np.uint64)
        keys[:, :1], keys[:, 1] = some, self._second
        return keys

    @property
    def _width(self) -> int:
        width: int = self._keys.shape[1]
        return width

    @property
    def nbytes(self) -> int:
        """Bytes used."""
        slots = self._slots.nbytes + (0 if self._old is None else self._old.nbytes)
        return self._keys[: self._n].nbytes + slots

    def copy(self) -> Index:
        """Return an independent copy."""
        twin = Index()
        twin._keys, twin._second, twin._n = self._keys[: self._n].copy(), self._second, self._n
        twin._slots, twin._old = self._slots.copy(), self._old
        twin._moved, twin._before = self._moved, self._before
        return twin

    def find(self, keys: Keys) -> Rows:
        """Return the row of each key, -1 if it is missing."""
        rows = np.full(len(keys), -1, np.int64)
        if not self._n:
            return rows
        words = np.ascontiguousarray(keys[:, : self._width])
        self._find(self._slots, words, rows)
        if self._old is not None and (others := np.flatnonzero(rows < 0)).size:
            found = rows[others]
            self._find(self._old, words[others], found)
            rows[others] = found
        if self._width == 1:
            rows[keys[:, 1] != self._second] = -1
        return rows

    def _find(self, slots: Slots, words: Keys, rows: Rows) -> None:
        width = 8 * self._width
        kernels.factorize(slots, self._keys, width, self._n, words, rows, False, None)

    def add(self, keys: Keys) -> None:
        """Append the keys of new rows, which must be distinct and not in the index."""
        if not len(keys):
            return
        if not self._n:
            self._second = keys[:1, 1].copy()
        if self._width == 1 and (keys[:, 1] != self._second).any():
            self._keys = self[:]
            self._remake(self._n)
        first, self._n = self._n, self._n + len(keys)
        self._keys = with_room(self._keys, first, self._n)
        self._keys[first : self._n] = keys[:, : self._width]
        room = len(self._slots) // 4 * 3
        if self._n > room:
            self._move(self._before)
            self._old, self._moved, self._before = self._slots, 0, first
            self._slots = _slots(max(self._n, (room if room > _SMALL else 4 * room) + 1))
        self._put(first, self._n)
        if self._old is not None:
            self._move(self._moved + _MOVED * len(keys))

    def drop(self, gone: Rows, last: Rows) -> None:
        """Remove rows; the rows at `last` move into their places."""
        self._move(self._before)
        width, holes = 8 * self._width, gone[: len(last)]
        kernels.table_move(self._slots, self._keys, width, self._n, gone, None)
        kernels.table_move(self._slots, self._keys, width, self._n, last, holes)
        self._keys[holes] = self._keys[last]
        self._n -= len(gone)

    def keep(self, rows: Rows) -> None:
        """Keep only the given rows, in that order, and free the memory of the others."""
        self._keys, self._n = self._keys[rows], len(rows)
        self._remake(self._n)

    def _remake(self, n: int) -> None:
        self._slots, self._old = _slots(n), None
        self._moved = self._before = 0
        self._put(0, n)

    def _put(self, start: int, stop: int) -> None:
        kernels.table_put(self._slots, self._keys, 8 * self._width, start, stop)

    def _move(self, end: int) -> None:
        """Move the rows before `end` out of the old slots."""
        end = min(end, self._before)
        if self._old is not None and end > self._moved:
            self._put(self._moved, end)
            self._moved = end
        if self._moved >= self._before:
            self._old = None


def _slots(n: int) -> Slots:
    """Return empty slots for n rows."""
    return np.zeros(1 << max((n * 4 // 3).bit_length(), _LEAST), np.uint32)


_MANY = 4  # if more than 1/_MANY of the rows are dropped, the others are copied to new arrays
LABELLED, CORRECTED, CONFLICT, LATE, REPEATED, EARLY = 1, 2, 4, 8, 16, 32  # flags of a row


class Predictions(NamedTuple):
    """New predictions: ids, times, and the columns that metrics read besides the label."""

    keys: NDArray[np.uint64]
    times: Ints
    columns: tuple[Column, ...]

    def take(self, rows: Ints) -> Predictions:
        """Return the predictions of some rows."""
        columns = tuple([column[rows] for column in self.columns])
        return Predictions(self.keys[rows], self.times[rows], columns)


class LabelRows(NamedTuple):
    """New labels: ids, times, versions and values."""

    keys: NDArray[np.uint64]
    times: Ints
    versions: Ints
    values: Column

    def take(self, rows: Ints) -> LabelRows:
        """Return the labels of some rows."""
        return LabelRows(self.keys[rows], self.times[rows], self.versions[rows], self.values[rows])


class PredictionTable:
    """Predictions by id, each with its current label, if any.

    A row takes 8 bytes for its time and for each number, 1 for the flags, 5 to 11 in the index, and
    16 for the id, or 8 if all ids are integers. After the first label, a row takes 8 more bytes for
    the label time, and 1 to 8 each for label and version.
    """

    def __init__(self, names: Sequence[str], label: str, unit: int) -> None:
        self.columns = tuple([GrowingColumn(name) for name in names])
        self.times, self.label_times = (
            GrowingColumn("time", np.int64),
            GrowingColumn("label_time", np.int64),
        )
        self.versions, self.flags, self.labels = (
            GrowingColumn("version"),
            GrowingColumn("flags"),
            GrowingColumn(label),
        )
        self.keys, self.present = Index(), Present(unit)
        self._n = 0

    def __len__(self) -> int:
        return self._n

    def check(self, columns: Mapping[str, Column]) -> None:
        """Raise if columns of predictions differ from those held, if any, or have nulls."""
        for cells in self.columns or [*map(GrowingColumn, sorted(columns))]:
            cells.check(columns[cells.name])

    @property
    def _cells(self) -> tuple[GrowingColumn, ...]:
        times = (self.times, self.label_times, self.versions, self.flags)
        return (*times, self.labels, *self.columns)

    @property
    def nbytes(self) -> int:
        """Bytes used."""
        return self.keys.nbytes + sum(cells.nbytes for cells in self._cells)

    def find(self, keys: NDArray[np.uint64]) -> Rows:
        """Return the row of each id, -1 if it is missing."""
        return self.keys.find(keys)

    def append(self, new: Predictions) -> None:
        """Append predictions, whose ids must be new and distinct."""
        n = len(new.keys)
        self._n += n
        self.keys.add(new.keys)
        self.times.append(Column(new.times))
        self.flags.append(Column(np.zeros(n, np.int8)))
        for cells in (self.label_times, self.versions, self.labels):
            cells.append_blank(n)
        for cells, column in zip(self.columns, new.columns, strict=True):
            cells.append(column)
        self.present.add(new.times)

    def replace(self, rows: Rows, new: Predictions) -> None:
        """Overwrite the times and columns of some rows."""
        self.present.remove(self.times.values[rows])
        self.present.add(new.times)
        self.times.put(rows, Column(new.times))
        for cells, column in zip(self.columns, new.columns, strict=True):
            cells.put(rows, column)

    def mark(self, rows: Rows, flag: int) -> None:
        """Set a flag in some rows."""
        flags = self.flags.values
        flags[rows] |= flag

    def label(self, rows: Rows, labels: LabelRows) -> None:
        """Set the labels of some rows."""
        self.label_times.put(rows, Column(labels.times))
        self.versions.put(rows, Column(labels.versions))
        self.labels.put(rows, labels.values)
        self.mark(rows, LABELLED)

    def labels_at(self, rows: Rows) -> LabelRows:
        """Return the labels of some labelled rows."""
        times, versions = self.label_times.values[rows], self.versions.values[rows]
        values = self.labels.at(rows)
        return LabelRows(self.keys[rows], times, versions.astype(np.int64), values)

    def at(self, rows: Rows) -> Predictions:
        """Return some rows as predictions."""
        columns = tuple([cells.at(rows) for cells in self.columns])
        return Predictions(self.keys[rows], self.times.values[rows], columns)

    def drop(self, gone: Rows) -> None:
        """Drop rows (ascending); if they are few, the last rows move into their places."""
        self.present.remove(self.times.values[gone])
        n = self._n - len(gone)
        stay = np.ones(len(gone), bool)
        stay[gone[gone >= n] - n] = False
        last = n + np.flatnonzero(stay)
        if len(gone) > self._n // _MANY:
            every = np.ones(self._n, bool)
            every[gone] = False
            self._keep(np.flatnonzero(every))
            return
        self._n = n
        self.keys.drop(gone, last)
        for cells in self._cells:
            cells.drop(gone, last)

    def _keep(self, rows: Rows) -> None:
        """Keep only the given rows, in that order."""
        self._n = len(rows)
        self.keys.keep(rows)
        for cells in self._cells:
            cells.keep(rows)

    def copy(self) -> PredictionTable:
        """Return an independent copy."""
        twin = object.__new__(PredictionTable)
        twin.keys, twin._n = self.keys.copy(), self._n
        twin.columns = tuple([cells.copy() for cells in self.columns])
        for name in ("times", "label_times", "versions", "flags", "labels"):
            setattr(twin, name, getattr(self, name).copy())
        twin.present = self.present.copy()
        return twin
