"""Rows by id: a hash table of cells."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streammetrics.core.columns.column import merge_codes
from streammetrics.core.columns.conversion import Column
from streammetrics.core.errors import InvalidBatchError
from streammetrics.core.kernels import kernels

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from streammetrics.core.types import Array, Ints, Places

    Keys = NDArray[np.uint64]  # (n, 2)
    Rows = Ints
    Slots = NDArray[np.uint32]
    from collections.abc import Sequence


class Present:
    """The number of rows in each pane that has some.

    Args:
        unit: How long a pane is, in nanoseconds.
    """

    def __init__(self, unit: int) -> None:
        self._unit = unit
        self._counts: dict[int, int] = {}

    def add(self, times: Ints) -> None:
        """Learn of rows that come."""
        for number, count in self._counted(times):
            self._counts[number] = self._counts.get(number, 0) + count

    def remove(self, times: Ints) -> None:
        """Learn of rows that leave."""
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
        if first == last:  # as most rows that come together are
            yield first, len(times)
            return
        numbers, counts = np.unique(times // self._unit, return_counts=True)
        yield from zip(numbers.tolist(), counts.tolist(), strict=True)

    @property
    def starts(self) -> Ints:
        """When each pane with rows begins, in no order."""
        return np.fromiter(self._counts, np.int64, len(self._counts)) * self._unit

    def copy(self) -> Present:
        """Return an independent one of the same rows."""
        twin = Present(self._unit)
        twin._counts = dict(self._counts)
        return twin


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


_LEAST = 11  # bits of the number of slots
_SMALL = 1 << 14  # rows for which there is room up to which slots grow at once to eight times
_MOVED = 2  # rows that move to more slots for each that comes, so that no call waits for all


class Index:
    """The keys of the rows of a table, and the row of each key.

    A key takes 16 bytes, or 8 as long as the second half of all is the same, and a slot 4; three
    quarters of the slots at most are in use. When there are too few, rows move to more of them
    some at a time, while the others are looked up in the old ones.
    """

    def __init__(self) -> None:
        self._keys: Keys = np.empty((0, 1), np.uint64)
        self._second = np.zeros(1, np.uint64)  # of all keys, where they are held by the first half
        self._n = 0
        self._slots: Slots = np.zeros(1 << _LEAST, np.uint32)
        self._old: Slots | None = None
        self._moved, self._before = 0, 0  # rows that have moved, and that were there to be moved

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
        """Bytes held now."""
        slots = self._slots.nbytes + (0 if self._old is None else self._old.nbytes)
        return self._keys[: self._n].nbytes + slots

    def copy(self) -> Index:
        """Return an independent index of the same rows."""
        twin = Index()
        twin._keys, twin._second, twin._n = self._keys[: self._n].copy(), self._second, self._n
        twin._slots, twin._old = self._slots.copy(), self._old
        twin._moved, twin._before = self._moved, self._before
        return twin

    def find(self, keys: Keys) -> Rows:
        """Return the row of each key, -1 where there is none."""
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
        """Take the keys of more rows, which are not here yet and all different."""
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
        """Forget rows, into the places of which the last ones move."""
        self._move(self._before)
        width, holes = 8 * self._width, gone[: len(last)]
        kernels.table_move(self._slots, self._keys, width, self._n, gone, None)
        kernels.table_move(self._slots, self._keys, width, self._n, last, holes)
        self._keys[holes] = self._keys[last]
        self._n -= len(gone)

    def keep(self, rows: Rows) -> None:
        """Keep some rows, in the order given, and give the place of the others back."""
        self._keys, self._n = self._keys[rows], len(rows)
        self._remake(self._n)

    def _remake(self, n: int) -> None:
        self._slots, self._old = _slots(n), None
        self._moved = self._before = 0
        self._put(0, n)

    def _put(self, start: int, stop: int) -> None:
        kernels.table_put(self._slots, self._keys, 8 * self._width, start, stop)

    def _move(self, end: int) -> None:
        """Move the rows before one from the old slots."""
        end = min(end, self._before)
        if self._old is not None and end > self._moved:
            self._put(self._moved, end)
            self._moved = end
        if self._moved >= self._before:
            self._old = None


def _slots(n: int) -> Slots:
    """Return empty slots for so many rows."""
    return np.zeros(1 << max((n * 4 // 3).bit_length(), _LEAST), np.uint32)


_MANY = 4  # one of so many rows that leave, and the others are moved to arrays of their own
LABELLED, CORRECTED, CONFLICT, LATE, REPEATED = 1, 2, 4, 8, 16  # what is known of a row


class Predictions(NamedTuple):
    """Predictions that come: ids, times, and the columns that metrics read beside the label."""

    keys: NDArray[np.uint64]
    times: Ints
    columns: tuple[Column, ...]

    def take(self, rows: Ints) -> Predictions:
        """Return some of them."""
        columns = tuple([column[rows] for column in self.columns])
        return Predictions(self.keys[rows], self.times[rows], columns)


class LabelRows(NamedTuple):
    """Labels that come: ids, times, versions and what they are."""

    keys: NDArray[np.uint64]
    times: Ints
    versions: Ints
    values: Column

    def take(self, rows: Ints) -> LabelRows:
        """Return some of them."""
        return LabelRows(self.keys[rows], self.times[rows], self.versions[rows], self.values[rows])


class PredictionTable:
    """Predictions with the label that counts, if there is one yet.

    A row takes 8 bytes for its time and each number, 1 for the flags, 5 to 11 in the index, and 16
    for the id, or 8 where all ids are integers. Once there is a label, a row takes 8 bytes for the
    time of its own, and 1 to 8 each for label and version.
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

    @property
    def _cells(self) -> tuple[GrowingColumn, ...]:
        times = (self.times, self.label_times, self.versions, self.flags)
        return (*times, self.labels, *self.columns)

    @property
    def nbytes(self) -> int:
        """Bytes held now."""
        return self.keys.nbytes + sum(cells.nbytes for cells in self._cells)

    def find(self, keys: NDArray[np.uint64]) -> Rows:
        """Return the row of each id, -1 where there is none."""
        return self.keys.find(keys)

    def append(self, new: Predictions) -> None:
        """Take predictions whose ids are new, all different."""
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
        """Set the times and the columns of some rows again."""
        self.present.remove(self.times.values[rows])
        self.present.add(new.times)
        self.times.put(rows, Column(new.times))
        for cells, column in zip(self.columns, new.columns, strict=True):
            cells.put(rows, column)

    def mark(self, rows: Rows, flag: int) -> None:
        """Set a flag of some rows."""
        flags = self.flags.values
        flags[rows] |= flag

    def label(self, rows: Rows, labels: LabelRows) -> None:
        """Set the labels of some rows."""
        self.label_times.put(rows, Column(labels.times))
        self.versions.put(rows, Column(labels.versions))
        self.labels.put(rows, labels.values)
        self.mark(rows, LABELLED)

    def labels_at(self, rows: Rows) -> LabelRows:
        """Return the labels of some rows that have one."""
        times, versions = self.label_times.values[rows], self.versions.values[rows]
        values = self.labels.at(rows)
        return LabelRows(self.keys[rows], times, versions.astype(np.int64), values)

    def at(self, rows: Rows) -> Predictions:
        """Return some rows as predictions that come."""
        columns = tuple([cells.at(rows) for cells in self.columns])
        return Predictions(self.keys[rows], self.times.values[rows], columns)

    def drop(self, gone: Rows) -> None:
        """Let some rows go, in ascending order; of few, others of the last rows take the places."""
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
        """Keep some rows, in the order given."""
        self._n = len(rows)
        self.keys.keep(rows)
        for cells in self._cells:
            cells.keep(rows)

    def copy(self) -> PredictionTable:
        """Return an independent table of the same rows."""
        twin = object.__new__(PredictionTable)
        twin.keys, twin._n = self.keys.copy(), self._n
        twin.columns = tuple([cells.copy() for cells in self.columns])
        for name in ("times", "label_times", "versions", "flags", "labels"):
            setattr(twin, name, getattr(self, name).copy())
        twin.present = self.present.copy()
        return twin
