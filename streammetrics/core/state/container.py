"""Arrays and what they mean in one safetensors file: versioned, checksummed, checked first.

Equal descriptions and arrays give equal bytes, and only these bytes are read back: the header is
written here in the one form that safetensors writes, and compared with that on reading. Nothing is
allocated that a file merely claims: arrays are views of its bytes.
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

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

FORMAT = 1  # of metrics and sets; readers open every older one
LATEST = 2  # of ledgers of many shards
ROWS = "feeds"  # under which a description ends with what there is to say of rows

_BLANK = "0" * 64
_CHECKSUM = re.compile(rb'\\"checksum\\":\\"([0-9a-f]{64})\\"')
_HEADER = 100_000_000  # bytes, the limit of safetensors
_DEPTH = 32  # of what JSON nests
_EMPTY = 1 << 16  # longest side of an array that holds nothing
# In the order in which safetensors lays them out: wide ones first.
_DTYPES = {
    "<u8": "U64", "<i8": "I64", "<f8": "F64", "<f4": "F32", "<u4": "U32", "<i4": "I32",
    "<f2": "F16", "<u2": "U16", "<i2": "I16", "|i1": "I8", "|u1": "U8", "|b1": "BOOL",
}  # fmt: skip
_PLACES = {name: place for place, name in enumerate(_DTYPES)}
_NAMES = {code: np.dtype(name) for name, code in _DTYPES.items()}


class File(NamedTuple):
    """What a file says, its arrays as views of its bytes, and its header without the checksum.

    Where it opens as one that is known, `known` is what was said of that, and `meta` has only what
    comes after the opening.
    """

    meta: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    header: bytes
    known: Any

    def holds(
        self,
        description: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        opening: str = "",
    ) -> bool:
        """Whether the file is what `packed` makes of these."""
        arrays = {name: _plain(array) for name, array in arrays.items()}
        return _header(description, arrays, opening) == self.header and all(
            _equal(array, self.arrays[name]) for name, array in arrays.items()
        )


def opened(configuration: Mapping[str, Any]) -> str:
    """Return how files of a configuration open: JSON, to be made only once.

    It goes on with ``ROWS``, the only key that the rest of the description may then have.
    """
    return _text({"format": FORMAT, "checksum": _BLANK, **configuration})[:-1]


def packed(
    description: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], opening: str = ""
) -> bytes:
    """Return the file: equal descriptions and arrays give equal bytes.

    The description comes after the `opening`, if there is one.
    """
    arrays = {name: _plain(array) for name, array in arrays.items()}
    header = bytearray(_header(description, arrays, opening))
    body = [_bytes(arrays[name]) for name in _laid_out(arrays)]
    start = _checksum_at(header)
    digest = hashlib.sha256(header)
    for array in body:
        digest.update(array)
    header[start : start + 64] = digest.hexdigest().encode()
    return b"".join([header, *body])


def unpacked(blob: bytes, known: Callable[[str], Any] = lambda _: None) -> File:
    """Return what a file holds, once it is known to be whole.

    An opening of which `known` returns anything but None is not read again.

    Raises:
        StateFormatError: It is not.
    """
    size = 8 + struct.unpack("<Q", blob[:8])[0] if len(blob) >= 8 else 0
    if not 8 < size <= min(len(blob), _HEADER):
        raise StateFormatError(f"not a state of streammetrics, or cut short ({len(blob):,} bytes)")
    header = bytearray(blob[:size])
    start = _checksum_at(header)
    claimed = header[start : start + 64].decode()
    header[start : start + 64] = _BLANK.encode()
    found = hashlib.sha256(header)
    found.update(memoryview(blob)[size:])
    if found.hexdigest() != claimed:
        raise StateFormatError("the checksum does not match: the state was altered or cut short")
    tensors = _parsed(header[8:])
    text = tensors.pop("__metadata__", None) if isinstance(tensors, dict) else None
    if not isinstance(text, dict) or not isinstance(text.get("streammetrics"), str):
        raise StateFormatError("not a state of streammetrics: it says nothing of itself")
    opening, _, rest = text["streammetrics"].rpartition(f',"{ROWS}":')
    what = known(opening)
    if what is not None:
        rows = {ROWS: _decoded(_parsed(rest[:-1]), _DEPTH)}
        return File(rows, _views(tensors, blob, size), bytes(header), what)
    meta = _decoded(_parsed(text["streammetrics"]), _DEPTH)
    if not isinstance(meta, dict) or type(meta.get("format")) is not int:
        raise StateFormatError("the state does not say which format it has")
    if not 1 <= meta["format"] <= LATEST:
        raise StateFormatError(
            f"the state has format {brief(meta['format'])}; this version reads formats up to "
            f"{LATEST}"
        )
    return File(meta, _views(tensors, blob, size), bytes(header), None)


def brief(value: Any) -> str:
    """Return what a file says, short enough for a message."""
    if isinstance(value, int) and value.bit_length() > 128:
        return "a number of many digits"
    text = repr(value[:80] if isinstance(value, str | bytes) else value)
    return text if len(text) <= 80 else f"{text[:60]}..."


def _header(
    description: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], opening: str
) -> bytes:
    """Return the length and the header as safetensors writes them, with a blank checksum."""
    text = f"{opening},{_text(description)[1:]}" if opening else f"{opened(description)}}}"
    header = {"__metadata__": {"streammetrics": text}, **_placed(arrays)}
    encoded = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    encoded += b" " * (-len(encoded) % 8)
    if len(encoded) > _HEADER:
        raise ValueError(
            f"the parameters and names of this state take {len(encoded):,} bytes, of {_HEADER:,}"
        )
    return struct.pack("<Q", len(encoded)) + encoded


def _text(said: Mapping[str, Any]) -> str:
    return _JSON.encode(_encoded(said))


def _placed(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """Return for each array its type, its shape, and where its bytes stand."""
    placed, end = {}, 0
    for name in _laid_out(arrays):
        array = arrays[name]
        start, end = end, end + array.nbytes
        placed[name] = {
            "dtype": _DTYPES[array.dtype.str],
            "shape": array.shape,
            "data_offsets": (start, end),
        }
    return placed


def _laid_out(arrays: Mapping[str, NDArray[Any]]) -> list[str]:
    return sorted(arrays, key=lambda name: (_PLACES[arrays[name].dtype.str], name))


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array as it stands in files: contiguous, little-endian, of a type they know."""
    if array.dtype.str in _PLACES and array.flags.c_contiguous:
        return array
    little = array.dtype.newbyteorder("<")
    if little.str not in _PLACES:
        raise TypeError(f"a state cannot hold an array of {array.dtype}")
    return np.asarray(array, little, order="C")


def _bytes(array: NDArray[Any]) -> Any:
    return array.reshape(-1).view(np.uint8)


def _equal(array: NDArray[Any], other: NDArray[Any]) -> bool:
    """Whether two arrays of one type and shape have the same bytes."""
    step = 1 << 16
    if array.nbytes <= step:
        return array.tobytes() == other.tobytes()
    if array.ctypes.data == other.ctypes.data:  # an array of the file, kept as it is
        return True
    a, b = _bytes(array), _bytes(other)
    return all(np.array_equal(a[i : i + step], b[i : i + step]) for i in range(0, len(a), step))


def _views(tensors: Mapping[str, Any], blob: bytes, start: int) -> dict[str, NDArray[Any]]:
    """Return the arrays of a file, each a view of bytes that are there, one after the other."""
    arrays, end = {}, 0
    for name, told in tensors.items():
        if not isinstance(told, dict) or told.keys() != {"dtype", "shape", "data_offsets"}:
            raise StateFormatError(f"the array {brief(name)} is not described")
        dtype = _NAMES.get(told["dtype"]) if isinstance(told["dtype"], str) else None
        shape = _whole(told["shape"])
        if dtype is None or shape is None or len(shape) > _DEPTH:
            raise StateFormatError(f"the array {brief(name)} has no type or shape")
        size = math.prod(shape) * dtype.itemsize
        if told["data_offsets"] != [end, end + size] or max(shape, default=0) > len(blob) + _EMPTY:
            raise StateFormatError(f"the array {brief(name)} is not where it should be")
        if start + end + size > len(blob):
            raise StateFormatError(f"the array {brief(name)} goes beyond the end")
        flat = np.frombuffer(blob, dtype, math.prod(shape), start + end if size else 0)
        arrays[name] = flat.reshape(shape)
        end += size
    if start + end != len(blob):
        raise StateFormatError("there are bytes that belong to no array")
    return arrays


def _whole(value: Any) -> tuple[int, ...] | None:
    """Return a list of whole numbers that are not negative, as a tuple."""
    if not isinstance(value, list) or any(type(n) is not int or n < 0 for n in value):
        return None
    return tuple(value)


def _checksum_at(header: bytes | bytearray) -> int:
    found = _CHECKSUM.search(header)
    if found is None:
        raise StateFormatError("not a state of streammetrics: it has no checksum")
    return found.start(1)


def _parsed(text: str | bytes | bytearray) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StateFormatError(f"the header of the state is not JSON: {error}") from error


def _encoded(value: Any) -> Any:
    # JSON has neither infinities nor nan.
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if isinstance(value, dict):
        return {key: _encoded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encoded(item) for item in value]
    return value


def _decoded(value: Any, depth: int) -> Any:
    if not depth:
        raise StateFormatError("what the state says is nested too deeply")
    if isinstance(value, list):
        return tuple([_decoded(item, depth - 1) for item in value])
    if isinstance(value, dict):
        if value.keys() == {"float"}:
            return _FLOATS.get(value["float"]) if isinstance(value["float"], str) else None
        return {key: _decoded(item, depth - 1) for key, item in value.items()}
    return value


_JSON = json.JSONEncoder(separators=(",", ":"))
_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
