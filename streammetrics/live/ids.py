"""Ids in: strings, bytes, integers and UUIDs as keys of 16 bytes.

A short id is its key, a longer one gives 120 bits of a hash: two of ten million are the same with a
probability of 10^-22. The last byte tells the kind and the length apart.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Set
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NoReturn, TypeGuard
from uuid import UUID

import numpy as np

from streammetrics.core.errors import InvalidBatchError
from streammetrics.live.packing import packed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from streammetrics.core.types import Array, Foreign, Ints

IDS = frozenset({str, int, bytes, UUID})  # others are brought to these
_STR, _BYTES, _INT, _UUID = 0x00, 0x20, 0x40, 0x60  # and 0x10 for what is hashed
_HASHED = 0x10
_SHORT = 15  # bytes
_NO_COLUMNS = (str, bytes, Set, Mapping)  # which have parts, but no rows in order


def keys_of(ids: object) -> NDArray[np.uint64]:
    """Return the key of each id, (n, 2).

    Raises:
        InvalidBatchError: One of them is no id.
    """
    if isinstance(ids, _NO_COLUMNS) or not hasattr(ids, "__iter__") or not getattr(ids, "ndim", 1):
        raise InvalidBatchError(f"id is {ids!r} beside columns: pass an id a row, in order", "id")
    array = ids if isinstance(ids, np.ndarray) else None
    if array is not None and array.ndim == 1 and array.dtype.kind in "iu":
        return _of_integers(array)
    keys = _of_arrow(ids) if hasattr(ids, "to_pylist") else None
    if keys is not None:
        return keys
    every: Iterable[Any] = ids.tolist() if hasattr(ids, "tolist") else ids
    if hasattr(ids, "to_pylist"):
        every = ids.to_pylist()
    listed = every if isinstance(every, list) else list(every)
    found = _of_alike(listed)
    if found is not None:
        return found
    blob = b"".join([_key(value, row) for row, value in enumerate(listed)])
    return np.frombuffer(blob, ">u8").astype(np.uint64).reshape(-1, 2)


def keys_of_checked(ids: list[Any]) -> NDArray[np.uint64]:
    """Return the same of ids that are known to be such: mostly all of them are integers."""
    try:
        return _of_integers(packed(ids, "q"))
    except struct.error:  # one is none, or beyond 64 bits
        return keys_of(ids)


def _of_alike(ids: list[Any]) -> NDArray[np.uint64] | None:
    """Return the keys of integers, or of short plain texts, together; ``None`` of others."""
    kinds = set(map(type, ids))
    if kinds == {int}:
        try:
            return _of_integers(packed(ids, "q"))
        except struct.error:  # one is beyond 64 bits
            return None
    if kinds != {str} or not (joined := "".join(ids)).isascii():
        return None
    lengths = np.fromiter(map(len, ids), np.int64, len(ids))
    return _of_texts(np.frombuffer(joined.encode(), np.uint8), lengths)


def _of_arrow(ids: Foreign) -> NDArray[np.uint64] | None:
    """Return the keys of short texts of Arrow, ``None`` of others."""
    wide = {"string": np.int32, "large_string": np.int64}.get(str(ids.type))
    if wide is None or not hasattr(ids, "buffers") or ids.null_count or not len(ids):
        return None
    _, ends, texts = ids.buffers()
    places = np.frombuffer(ends, wide)[ids.offset : ids.offset + len(ids) + 1].astype(np.int64)
    data = np.frombuffer(texts or b"", np.uint8)[places[0] : places[-1]]
    return _of_texts(data, np.diff(places))


def _of_texts(data: NDArray[np.uint8], lengths: Ints) -> NDArray[np.uint64] | None:
    """Return the keys of texts that follow on each other; ``None`` where one is long."""
    if lengths.max() > _SHORT:
        return None
    whole = np.zeros((len(lengths), 16), np.uint8)
    whole[np.arange(16) < lengths[:, None]] = data
    whole[:, _SHORT] = lengths | _STR
    return whole.view(">u8").astype(np.uint64)


def versions_of(versions: object, n: int = 1) -> Ints:
    """Return the version of each label: one for all, or a column.

    Raises:
        InvalidBatchError: One of them is no integer from 0 on.
    """
    several = hasattr(versions, "__len__")
    try:
        array = np.asarray(versions if several else [versions] * n)
    except ValueError:  # one of them is a list
        _no_version(versions)
    are_integers = array.ndim == 1 and array.dtype.kind in "iu"
    good = are_integers and array.size and array.min() >= 0 and array.max() < 1 << 63
    if not good and array.shape != (0,):
        _no_version(versions if several and array.ndim and len(array) else [versions])
    return array.astype(np.int64)


def _no_version(versions: Any) -> NoReturn:
    """Raise about the first of some versions that is none."""
    listed = versions.tolist() if hasattr(versions, "tolist") else list(versions)
    good = [_is_integer(each) and 0 <= each < 1 << 63 for each in listed]
    row = good.index(False) if False in good else 0
    raise InvalidBatchError(
        f"version is {listed[row]!r}, first in row {row}: versions are integers from 0 to 2^63 - 1",
        "version",
        row,
    )


def _of_integers(array: Array) -> NDArray[np.uint64]:
    if array.dtype.kind == "u" and array.size and array.max() >= 1 << 63:
        return keys_of(array.tolist())
    keys = np.empty((len(array), 2), np.uint64)
    keys[:, 0] = array.astype(np.int64).view(np.uint64) ^ np.uint64(1 << 63)
    keys[:, 1] = _INT
    return keys


def _is_integer(value: object) -> TypeGuard[int]:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _key(value: object, row: int = 0) -> bytes:
    if isinstance(value, str):
        return _of_bytes(value.encode(errors="surrogatepass"), _STR)
    if _is_integer(value):
        if -(1 << 63) <= value < 1 << 63:
            return (int(value) + (1 << 63)).to_bytes(8, "big") + bytes(7) + bytes([_INT])
        return _hashed(str(value).encode(), _INT)
    if isinstance(value, bytes):
        return _of_bytes(value, _BYTES)
    if isinstance(value, UUID):
        return _hashed(value.bytes, _UUID)
    raise InvalidBatchError(
        f"id is {value!r}, first in row {row}; an id is a string, bytes, an integer or a UUID",
        "id",
        row,
    )


def _of_bytes(value: bytes, kind: int) -> bytes:
    n = len(value)
    return value.ljust(15, b"\0") + bytes([kind | n]) if n <= _SHORT else _hashed(value, kind)


def _hashed(value: bytes, kind: int) -> bytes:
    return blake2b(value, digest_size=15).digest() + bytes([kind | _HASHED])
