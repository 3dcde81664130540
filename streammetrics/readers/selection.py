"""Columns as the user names them: a name, a list, or a glob over the columns of a file."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from streammetrics.core.columns.batch import check_single, near, parted
from streammetrics.core.columns.schema import KINDS
from streammetrics.core.errors import InvalidBatchError
from streammetrics.readers.numbers import lost_integers, overflows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from streammetrics.core.columns.schema import Kind
    from streammetrics.core.types import Foreign


@dataclass(frozen=True)
class WantedColumn:
    """The columns of one input: a single column, or several as a matrix."""

    title: str  # as the user wrote it
    names: tuple[str, ...]
    kind: Kind


def resolve(
    asked: Mapping[str, str],
    kinds: Mapping[str, Kind],
    names: Sequence[str],
    where: object,
    *,
    keys: Iterable[str] = (),
) -> dict[str, WantedColumn]:
    """Return the columns of each input.

    Args:
        asked: For each input, a column name, a list ``"a,b,c"`` or a glob ``"p*"``. A glob skips
            columns that another input names, and sorts in natural order: p2 before p10.
        kinds: The kind of each input.
        names: The columns of the file.
        where: The file, for messages.
        keys: Columns in the path of the file, which no glob matches.
    """
    single = {*names, *keys}
    taken = {text for text in asked.values() if text in single}
    chosen = {
        key: (text,) if text in single else parted(text, names, taken, f"{where}: ")
        for key, text in asked.items()
    }
    found: dict[str, Kind] = {}
    for key, text in asked.items():
        kind: Kind = "number" if len(chosen[key]) > 1 else kinds[key]
        found[text] = max(kind, found.get(text, kind), key=KINDS.index)
    return {key: WantedColumn(text, chosen[key], found[text]) for key, text in asked.items()}


def check(columns: Sequence[WantedColumn], names: Sequence[str], where: object) -> tuple[str, ...]:
    """Return the distinct names that `columns` need; raise unless `names` has each exactly once."""
    present = set(names)
    wanted = needed(columns)
    for name in wanted:
        if name not in present:
            raise InvalidBatchError(f"{where}: no column {name!r}{near(name, names)}")
    check_single(wanted, names, f"{where}: ")
    return tuple(wanted)


def needed(columns: Sequence[WantedColumn]) -> list[str]:
    """Return the distinct names of the columns to read."""
    return list(dict.fromkeys(name for column in columns for name in column.names))


def of_kind(columns: Sequence[WantedColumn], kind: Kind) -> set[str]:
    """Return the names of the columns of one kind."""
    return {name for column in columns if column.kind == kind for name in column.names}


def table(batch: pa.RecordBatch, columns: Sequence[WantedColumn]) -> dict[str, Foreign]:
    """Return a batch as a mapping by column title; several columns form a matrix."""
    return {
        column.title: _matrix(batch, column.names)
        if len(column.names) > 1
        else _array(batch.column(column.names[0]))
        for column in columns
    }


def _matrix(batch: pa.RecordBatch, names: Sequence[str]) -> Foreign:
    parts = [_array(batch.column(name)) for name in names]
    if all(isinstance(part, np.ndarray) and part.dtype == np.float64 for part in parts):
        return np.column_stack(parts)
    return batch.select(list(names))


def _array(column: Foreign) -> Foreign:
    """Return a numeric column as an array without a copy; other columns are unchanged.

    Arrow's own conversion imports pandas if it is installed, which takes longer than reading ten
    million rows.
    """
    kind = column.type
    if not column.null_count and (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return np.from_dlpack(column)
    return column


def repeated(value: object, rows: int) -> object:
    """Return a column that repeats one value."""
    if value is None:
        return pa.nulls(rows)
    return pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), pa.array([value]))


def spelled(texts: Foreign) -> Foreign:
    """Convert texts to integers, floats or booleans if all of them are spelled that way.

    Text like 0x1f stays text: Arrow would read it as 31, but it may be the name of a class. So does
    a column with both true and 1, which Arrow would read as one value.
    """
    if _is_hexadecimal(texts):
        return texts
    for kind in (pa.int64(), pa.float64(), pa.bool_()):
        with contextlib.suppress(pa.ArrowInvalid):
            values = texts.cast(kind)
            if pa.types.is_floating(kind) and overflows(values, texts):
                return texts
            rounded = pa.types.is_floating(kind) and lost_integers(values, texts)
            mixed = pa.types.is_boolean(kind) and not {"0", "1"}.isdisjoint(texts.to_pylist())
            return texts if rounded or mixed else values
    return texts


def classes_of(texts: Sequence[str]) -> tuple[str, ...] | tuple[int, ...] | None:
    """Return the classes that texts name, integers or text; ``None`` if they may be either."""
    values = spelled(pa.array(texts)).to_pylist()
    if list(map(str, values)) != list(texts) or not isinstance(values[0], int | str):
        return None
    return None if isinstance(values[0], bool) else tuple(values)


def _is_hexadecimal(texts: Foreign) -> bool:
    data = texts.buffers()[2]
    if data is None or b"x" not in data.to_pybytes().lower():
        return False
    return any(text is not None and text.startswith(("0x", "0X")) for text in texts.to_pylist())
