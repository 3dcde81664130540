"""Arrays and what they mean in one safetensors file: versioned, checksummed, checked first."""

from __future__ import annotations

import hashlib
import json
import re
import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import safetensors.numpy

from streammetrics.core.errors import StateFormatError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

FORMAT = 1  # raised when the layout changes; readers open every older one

_BLANK = "0" * 64
_CHECKSUM = re.compile(rb'\\"checksum\\":\\"([0-9a-f]{64})\\"')


def packed(description: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return the file: equal descriptions and arrays give equal bytes."""
    arrays = {name: np.require(array, requirements="C") for name, array in arrays.items()}
    meta = {"format": FORMAT, "checksum": _BLANK, **description}
    text = json.dumps(_encoded(meta), separators=(",", ":"))
    blob = bytearray(safetensors.numpy.save(dict(arrays), {"streammetrics": text}))
    start = _checksum_at(blob)
    blob[start : start + 64] = hashlib.sha256(blob).hexdigest().encode()
    return bytes(blob)


def unpacked(blob: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the description and the arrays of a file, once it is known to be whole.

    Raises:
        StateFormatError: It is not.
    """
    if len(blob) < 8 or struct.unpack("<Q", blob[:8])[0] > len(blob) - 8:
        raise StateFormatError(f"not a state of streammetrics, or cut short ({len(blob)} bytes)")
    start = _checksum_at(blob)
    claimed = blob[start : start + 64].decode()
    view = memoryview(blob)
    found = hashlib.sha256(view[:start])
    found.update(_BLANK.encode())
    found.update(view[start + 64 :])
    if found.hexdigest() != claimed:
        raise StateFormatError("the checksum does not match: the state was altered or cut short")
    header = json.loads(blob[8 : 8 + struct.unpack("<Q", blob[:8])[0]])
    meta = _decoded(json.loads(header["__metadata__"]["streammetrics"]))
    if not isinstance(meta, dict) or not isinstance(meta.get("format"), int):
        raise StateFormatError("the state does not say which format it has")
    if not 1 <= meta["format"] <= FORMAT:
        raise StateFormatError(
            f"the state has format {meta['format']}; this version reads formats up to {FORMAT}"
        )
    return meta, safetensors.numpy.load(blob)


def _checksum_at(blob: bytes | bytearray) -> int:
    size = struct.unpack("<Q", blob[:8])[0]
    found = _CHECKSUM.search(blob, 8, 8 + size)
    if found is None:
        raise StateFormatError("not a state of streammetrics: it has no checksum")
    return found.start(1)


def _encoded(value: Any) -> Any:
    # JSON has neither infinities nor nan.
    if isinstance(value, float) and not np.isfinite(value):
        return {"float": repr(value)}
    if isinstance(value, dict):
        return {key: _encoded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encoded(item) for item in value]
    return value


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_decoded(item) for item in value)
    if isinstance(value, dict):
        if value.keys() == {"float"}:
            return float(value["float"])
        return {key: _decoded(item) for key, item in value.items()}
    return value
