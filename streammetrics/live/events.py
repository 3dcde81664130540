"""Events as they are taken, written to a journal and read from it: columns, checked already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from streammetrics.core.columns.column import null_mask
from streammetrics.core.columns.conversion import Column, concatenate
from streammetrics.core.columns.nested import Nested
from streammetrics.core.errors import StateFormatError
from streammetrics.core.fields.labels import packed_labels, unpacked_labels
from streammetrics.core.state.arrays import nested, part, take_array
from streammetrics.core.state.container import packed, unpacked

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from streammetrics.core.types import Array, Arrays, Ints

Kind = Literal["observe", "predict", "label"]
KINDS: tuple[Kind, ...] = ("observe", "predict", "label")
_NO_KEYS = np.empty((0, 2), np.uint64)
_NO_VERSIONS = np.empty(0, np.int64)


class Events(NamedTuple):
    """Events of one kind that have the same columns."""

    kind: Kind
    times: Ints
    columns: Mapping[str, Column]
    keys: NDArray[np.uint64] = _NO_KEYS  # of their ids, except of what is observed
    versions: Ints = _NO_VERSIONS  # of labels

    @property
    def form(self) -> tuple[object, ...]:
        """What events have in common that can be taken as one: their kind, columns and types."""
        types = [
            (name, c.values.dtype, c.values.shape[1:], c.vocabulary is None, c.nulls is None)
            for name, c in self.columns.items()
        ]
        return (self.kind, *types)

    def take(self, rows: slice) -> Events:
        """Return some of them."""
        kind, times, columns, keys, versions = self
        some = {name: column[rows] for name, column in columns.items()}
        return Events(kind, times[rows], some, keys[rows], versions[rows])


def alike(parts: Sequence[Events]) -> list[list[Events]]:
    """Return events in groups that can be taken as one."""
    groups: dict[tuple[object, ...], list[Events]] = {}
    for events in parts:
        groups.setdefault(events.form, []).append(events)
    return list(groups.values())


def joined_events(group: Sequence[Events]) -> Events:
    """Return events of one form as one."""
    if len(group) == 1:
        return group[0]
    kinds, times, columns, keys, versions = zip(*group, strict=True)
    names = columns[0]
    whole = {name: _joined([some[name] for some in columns], name) for name in names}
    rows = map(np.concatenate, (keys, versions))
    return Events(kinds[0], np.concatenate(times), whole, *rows)


def _joined(columns: Sequence[Column], name: str) -> Column:
    """Return the rows of columns one after the other, also where a row holds several values."""
    if not isinstance(columns[0], Nested):
        return concatenate(columns, name)
    nested = [column for column in columns if isinstance(column, Nested)]
    counts = np.concatenate([column.values for column in nested])
    nulls = np.concatenate([null_mask(column) for column in nested])
    return Nested.of(counts, concatenate([column.flat for column in nested], name), nulls)


def written(parts: Sequence[Events]) -> bytes:
    """Return events as bytes, with a checksum over all."""
    arrays: dict[str, Array] = {}
    told = []
    for place, events in enumerate(parts):
        told.append([events.kind, list(events.columns)])
        mine: dict[str, Array] = {"times": events.times}
        if events.kind != "observe":
            mine["keys"] = events.keys
        if events.kind == "label":
            mine["versions"] = events.versions
        for number, column in enumerate(events.columns.values()):
            mine |= nested(f"column/{number}", column_arrays(column))
        arrays |= nested(str(place), mine)
    return packed({"events": told}, arrays)


def read(blob: bytes) -> list[Events]:
    """Return the events that `written` made bytes of.

    Raises:
        StateFormatError: They are other bytes.
    """
    file = unpacked(blob)
    told = file.meta.get("events")
    if not isinstance(told, tuple) or not all(map(_is_told, told)):
        raise StateFormatError("a part of the journal does not say what events it has")
    return [
        _events(kind, names, part(file.arrays, str(place)))
        for place, (kind, names) in enumerate(told)
    ]


def _is_told(told: object) -> bool:
    if not isinstance(told, tuple) or len(told) != 2 or told[0] not in KINDS:
        return False
    return isinstance(told[1], tuple) and all(isinstance(name, str) for name in told[1])


def _events(kind: Kind, names: Sequence[str], arrays: Arrays) -> Events:
    times = take_array(arrays, "times", "int64")
    keys = _NO_KEYS if kind == "observe" else take_array(arrays, "keys", "uint64", 2)
    versions = take_array(arrays, "versions", "int64") if kind == "label" else _NO_VERSIONS
    columns = {
        name: column_of(part(arrays, f"column/{number}")) for number, name in enumerate(names)
    }
    lengths = {len(times), *map(len, columns.values())}
    lengths |= set() if kind == "observe" else {len(keys)}
    lengths |= {len(versions)} if kind == "label" else set()
    if len(lengths) > 1:
        raise StateFormatError("the columns of events in the journal differ in length")
    return Events(kind, times, columns, keys, versions)


def column_arrays(column: Column) -> dict[str, Array]:
    """Return the arrays of a column; of a vocabulary, those words that occur."""
    arrays: dict[str, Array] = {"values": column.values}
    if column.vocabulary is not None:
        used, codes = np.unique(column.values, return_inverse=True)
        first = int(used.searchsorted(0))  # nulls have a negative code
        arrays["values"] = codes.astype(np.int64) - first
        arrays["vocabulary"] = packed_labels(column.vocabulary[used[first:]])
    if column.nulls is not None:
        arrays["nulls"] = column.nulls
    if isinstance(column, Nested):
        arrays |= nested("flat", column_arrays(column.flat))
    return arrays


def column_of(arrays: Arrays) -> Column:
    """Return the column that `column_arrays` made arrays of, after checking them."""
    values, nulls = arrays.get("values"), arrays.get("nulls")
    if values is None or values.dtype.kind not in "biuf" or values.ndim not in {1, 2}:
        raise StateFormatError("a column is of no type that columns have")
    if nulls is not None and (nulls.dtype != np.bool_ or nulls.shape != values.shape):
        raise StateFormatError("what is missing of a column does not fit it")
    flat = part(arrays, "flat")
    if flat:
        counts, within = take_array(arrays, "values", "int64"), column_of(flat)
        if (counts < 0).any() or counts.sum() != len(within):
            raise StateFormatError("the values of a column are not as many as its rows hold")
        return Nested.of(counts, within, nulls)
    if "vocabulary" not in arrays:
        return Column(values, nulls)
    words = unpacked_labels(arrays, "vocabulary")
    least = 0 if nulls is None else -1
    if words.dtype.kind != "U" or values.dtype != np.int64 or values.ndim != 1:
        raise StateFormatError("a column of texts holds none")
    if len(values) and not least <= values.min() <= values.max() < len(words):
        raise StateFormatError("a text of a column is not among those there are")
    return Column(values.astype(np.intp), nulls, False, words)
