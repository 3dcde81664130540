"""Arrays and what they mean in one safetensors file: versioned, checksummed, checked first.

Equal descriptions and arrays give equal bytes, and only these bytes are read back: what was read
is written again and compared. Nothing is allocated that a file merely claims: arrays are views of
its bytes.
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

FORMAT = 1  # of what is written; readers open every older one
ROWS = "feeds"  # under which a description ends with what there is to say of rows

_BLANK = "0" * 64
_TEXT = (
    b'{"__metadata__":{"streammetrics":"'  # begins a file's header, and its text in JSON follows
)
_ROWS = rb",\"%b\":" % ROWS.encode()  # as it stands in that
_CHECKSUM = re.compile(rb'\\"checksum\\":\\"([0-9a-f]{64})\\"')
_HEADER = 100_000_000  # bytes, the limit of safetensors
_DEPTH = 32  # of what JSON nests
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
    """What a file says, its arrays as views of its bytes, and its bytes without the checksum.

    Where it opens as one that is known, `known` is what was said of that, and `meta` has only what
    comes after the opening.
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
        """Whether the file is what `packed` makes of these."""
        return _written(description, arrays, opening) == self.unsigned


def header_of(opening: str) -> bytes:
    """Return how the header of a file with an opening begins, up to its rows."""
    return _TEXT + json.dumps(opening)[1:-1].encode()


def opened(configuration: Mapping[str, object]) -> str:
    """Return how files of a configuration open: JSON, to be made only once.

    It goes on with ``ROWS``, the only key that the rest of the description may then have.
    """
    return _text({"format": FORMAT, "checksum": _BLANK, **configuration})[:-1]


def packed(description: Mapping[str, object], arrays: Arrays, opening: str = "") -> bytes:
    """Return the file: equal descriptions and arrays give equal bytes.

    The description comes after the `opening`, if there is one.
    """
    blob = bytearray(_written(description, arrays, opening))
    start = _checksum_at(blob)
    blob[start : start + 64] = hashlib.sha256(blob).hexdigest().encode()
    return bytes(blob)


def unpacked(blob: bytes, known: Callable[[bytes], Any] = lambda _: None) -> StateFile:
    """Return what a file holds, once it is known to be whole.

    What begins as `header_of` an opening of which `known` returns anything but None is not read
    again.

    Raises:
        StateFormatError: It is not.
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
    """Return what a file says, short enough for a message."""
    if isinstance(value, int) and value.bit_length() > 128:
        return "a number of many digits"
    text = repr(value[:80] if isinstance(value, str | bytes) else value)
    return text if len(text) <= 80 else f"{text[:60]}..."


def _written(description: Mapping[str, object], arrays: Arrays, opening: str) -> bytes:
    """Return the file with a blank checksum."""
    text = f"{opening},{_text(description)[1:]}" if opening else f"{opened(description)}}}"
    plain = {name: _plain(array) for name, array in arrays.items()}
    header: Document = {"__metadata__": {"streammetrics": text}}
    parts, end = [], 0
    # Wide types first, so that every array is aligned: the order of safetensors.
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


def _plain(array: Array) -> Array:
    """Return an array of little-endian numbers that files can hold."""
    dtype = array.dtype
    if dtype in _KNOWN:
        return array
    if dtype.newbyteorder("<") not in _KNOWN:
        raise TypeError(f"a state cannot hold an array of {dtype}")
    return array.astype(dtype.newbyteorder("<"))


def _text(said: Mapping[str, object]) -> str:
    try:
        return _JSON.encode(said)
    except ValueError:  # JSON has neither infinities nor nan
        return _JSON.encode(_encoded(said))


def _views(tensors: Mapping[str, object], blob: bytes, start: int) -> dict[str, Array]:
    """Return the arrays of a file, each a view of bytes that are there, one after the other."""
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
        if not flat.flags.aligned:  # the bytes may begin anywhere in memory
            flat = flat.copy()
        arrays[name] = flat if len(shape) == 1 else flat.reshape(shape)
        end += size
    if end != room:
        raise StateFormatError("there are bytes that belong to no array")
    return arrays


def _whole(value: object) -> tuple[int, ...] | None:
    """Return a list of whole numbers that are not negative, as a tuple."""
    if type(value) is not list:
        return None
    for n in value:  # mostly one or two
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
