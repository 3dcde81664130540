"""The container of states: arrays and their description in one safetensors file.

Files are versioned and checksummed. Equal descriptions and arrays give equal bytes, and no other
bytes are accepted: a file that is read is serialized again and compared. Reading allocates no
memory for sizes that a file merely claims, because arrays are views of its bytes.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import struct
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streammetrics.core.errors import StateFormatError
from streammetrics.core.state.arrays import LONGEST_EMPTY, MOST_DIMENSIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streammetrics.core.types import Array, Arrays, Document, Json

FORMAT = 1  # format that is written; older ones can be read
ROWS = "feeds"  # last key of a description, for the information about rows

_BLANK = "0" * 64
# Start of a header; the description follows as a JSON string.
_TEXT = b'{"__metadata__":{"streammetrics":"'
_ROWS = rb",\"%b\":" % ROWS.encode()  # as it appears within that string
_CHECKSUM = re.compile(rb'\\"checksum\\":\\"([0-9a-f]{64})\\"')
_HEADER = 100_000_000  # bytes, the limit of safetensors
_DEPTH = 32  # limit on the nesting of JSON
_TYPES = {
    "U64": "<u8", "I64": "<i8", "F64": "<f8", "F32": "<f4", "U32": "<u4", "I32": "<i4",
    "F16": "<f2", "U16": "<u2", "I16": "<i2", "I8": "|i1", "U8": "|u1", "BOOL": "|b1",
}  # fmt: skip
_DTYPES = {code: np.dtype(name) for code, name in _TYPES.items()}
_CODES = {dtype: code for code, dtype in _DTYPES.items()}
_PLACES = {dtype: place for place, dtype in enumerate(_DTYPES.values())}
_KNOWN = frozenset(_DTYPES.values())
_TOLD = frozenset({"dtype", "shape", "data_offsets"})


class StateFile(NamedTuple):
    """A parsed file.

    Attributes:
        meta: The description; only the part after the opening if the opening is `known`.
        arrays: The arrays, as views of the file's bytes.
        unsigned: The bytes with a blank checksum.
        known: The result of the `known` argument of `unpacked` for the opening, else ``None``.

    """

    meta: Document
    arrays: dict[str, Array]
    unsigned: bytes
    known: Any

    def holds(
        self,
        description: Mapping[str, object],
        arrays: Arrays,
        opening: str = "",
    ) -> bool:
        """Whether the file is exactly what `packed` makes of the arguments."""
        return _written(description, arrays, opening) == self.unsigned


def header_of(opening: str) -> bytes:
    """Return the start of the header of a file with this opening, up to the row information."""
    return _TEXT + json.dumps(opening)[1:-1].encode()


def opened(configuration: Mapping[str, object]) -> str:
    """Return the opening of files of a configuration: unterminated JSON, which can be cached.

    It continues with the key ``ROWS``, the only key that the rest of the description may have.
    """
    return _text({"format": FORMAT, "checksum": _BLANK, **configuration})[:-1]


def packed(description: Mapping[str, object], arrays: Arrays, opening: str = "") -> bytes:
    """Serialize a description and arrays; equal ones give equal bytes.

    The description follows the `opening`, if there is one.
    """
    blob = bytearray(_written(description, arrays, opening))
    start = _checksum_at(blob)
    blob[start : start + 64] = hashlib.sha256(blob).hexdigest().encode()
    return bytes(blob)


def unpacked(blob: bytes, known: Callable[[bytes], object] = lambda _: None) -> StateFile:
    """Verify and parse a file.

    If `known` returns a value other than ``None`` for the start of the header (see `header_of`),
    the opening is not parsed again.

    Raises:
        StateFormatError: The file is invalid.
    """
    size = 8 + struct.unpack("<Q", blob[:8])[0] if len(blob) >= 8 else 0
    if not 8 < size <= min(len(blob), _HEADER):
        raise StateFormatError(f"not a state of streammetrics, or cut short ({len(blob):,} bytes)")
    start = _checksum_at(blob[:size])
    unsigned = b"".join([blob[:start], _BLANK.encode(), blob[start + 64 :]])
    if hashlib.sha256(unsigned).hexdigest() != blob[start : start + 64].decode():
        raise StateFormatError("the checksum does not match: the state was altered or cut short")
    beginning, mark, rest = unsigned[8:size].rpartition(_ROWS)
    what = known(beginning) if mark else None
    tensors = _parsed(
        unsigned[8:size] if what is None else b"".join([_TEXT, b"{", _ROWS[1:], rest])
    )
    text = tensors.pop("__metadata__", None) if isinstance(tensors, dict) else None
    if not isinstance(text, dict) or not isinstance(text.get("streammetrics"), str):
        raise StateFormatError("not a state of streammetrics: it says nothing of itself")
    meta = _decoded(_parsed(text["streammetrics"]), _DEPTH)
    if what is None:
        _check_format(meta)
    return StateFile(meta, _views(tensors, blob, size), unsigned, what)


def _check_format(meta: object) -> None:
    if not isinstance(meta, dict) or type(meta.get("format")) is not int:
        raise StateFormatError("the state does not say which format it has")
    if not 1 <= meta["format"] <= FORMAT:
        raise StateFormatError(
            f"the state has format {brief(meta['format'])}; this version reads formats up to "
            f"{FORMAT}"
        )


def brief(value: object) -> str:
    """Format a value from a file, shortened for an error message."""
    if isinstance(value, int) and value.bit_length() > 128:
        return "a number of many digits"
    text = repr(value[:80] if isinstance(value, str | bytes) else value)
    return text if len(text) <= 80 else f"{text[:60]}..."


def _written(description: Mapping[str, object], arrays: Arrays, opening: str) -> bytes:
    """Return the file with a blank checksum."""
    text = f"{opening},{_text(description)[1:]}" if opening else f"{opened(description)}}}"
    plain = {name: _plain(name, array) for name, array in arrays.items()}
    header: Document = {"__metadata__": {"streammetrics": text}}
    parts, end = [], 0
    # Wide types first, as in safetensors, so that every array is aligned.
    for name in sorted(plain, key=lambda name: (_PLACES[plain[name].dtype], name)):
        array = plain[name]
        offsets = [end, end := end + array.nbytes]
        header[name] = {
            "dtype": _CODES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": offsets,
        }
        parts.append(array.tobytes())
    head = _HEADERS.encode(header).encode()
    head += b" " * (-len(head) % 8)
    if 8 + len(head) > _HEADER:
        raise ValueError(
            f"the parameters and names of this state take {len(head):,} bytes, of {_HEADER:,}"
        )
    return b"".join([struct.pack("<Q", len(head)), head, *parts])


def _plain(name: str, array: Array) -> Array:
    """Convert an array to little-endian; raise if files cannot hold its type."""
    dtype = array.dtype
    if dtype in _KNOWN:
        return array
    if dtype.newbyteorder("<") not in _KNOWN:
        raise TypeError(f"a state cannot hold the array {name!r} of {dtype}")
    return array.astype(dtype.newbyteorder("<"))


def _text(said: Mapping[str, object]) -> str:
    try:
        return _JSON.encode(said)
    except ValueError:  # JSON cannot represent infinities and NaN
        return _JSON.encode(_encoded(said))


def _views(tensors: Mapping[str, object], blob: bytes, start: int) -> dict[str, Array]:
    """Return the arrays of a file as views of its bytes, which they must fill without gaps."""
    arrays, end, room = {}, 0, len(blob) - start
    for name, told in tensors.items():
        if type(told) is not dict or told.keys() != _TOLD:
            raise StateFormatError(f"the array {brief(name)} is not described")
        dtype = _DTYPES.get(told["dtype"]) if type(told["dtype"]) is str else None
        shape = _whole(told["shape"])
        if dtype is None or shape is None or len(shape) > MOST_DIMENSIONS:
            raise StateFormatError(f"the array {brief(name)} has no type or shape")
        count = math.prod(shape)
        size = count * dtype.itemsize
        if told["data_offsets"] != [end, end + size] or not (
            count or max(shape) <= len(blob) + LONGEST_EMPTY
        ):
            raise StateFormatError(f"the array {brief(name)} is not where it should be")
        if end + size > room:
            raise StateFormatError(f"the array {brief(name)} goes beyond the end")
        flat = np.frombuffer(blob, dtype, count, start + end if size else 0)
        if not flat.flags.aligned:  # the buffer may start at any address
            flat = flat.copy()
        arrays[name] = flat if len(shape) == 1 else flat.reshape(shape)
        end += size
    if end != room:
        raise StateFormatError("there are bytes that belong to no array")
    return arrays


def _whole(value: object) -> tuple[int, ...] | None:
    """Return a list of non-negative integers as a tuple; ``None`` for anything else."""
    if type(value) is not list:
        return None
    for n in value:  # usually one or two
        if type(n) is not int or n < 0:
            return None
    return tuple(value)


def _checksum_at(header: bytes | bytearray) -> int:
    found = _CHECKSUM.search(header)
    if found is None:
        raise StateFormatError("not a state of streammetrics: it has no checksum")
    return found.start(1)


def _parsed(text: str | bytes | bytearray) -> Json:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StateFormatError(f"the header of the state is not JSON: {error}") from error


def _encoded(value: object) -> Json:
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if isinstance(value, dict):
        return {key: _encoded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encoded(item) for item in value]
    return value


def _decoded(value: object, depth: int) -> Json:
    if not depth:
        raise StateFormatError("what the state says is nested too deeply")
    if isinstance(value, list):
        return tuple([_decoded(item, depth - 1) for item in value])
    if isinstance(value, dict):
        if value.keys() == {"float"}:
            return _FLOATS.get(value["float"]) if isinstance(value["float"], str) else None
        return {key: _decoded(item, depth - 1) for key, item in value.items()}
    return value


_JSON = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_HEADERS = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)
_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
