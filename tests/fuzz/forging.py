"""States taken apart, changed and put together again with a checksum that fits."""

from __future__ import annotations

import hashlib
import json
import re
import struct
from typing import TYPE_CHECKING, Any

from streammetrics.core.state.container import unpacked

if TYPE_CHECKING:
    from collections.abc import Callable

CHECKSUM = re.compile(rb'\\"checksum\\":\\"([0-9a-f]{64})\\"')


def split(blob: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the header and the bytes of the arrays."""
    size = 8 + struct.unpack("<Q", blob[:8])[0]
    return json.loads(blob[8:size]), blob[size:]


def sealed(header: bytes, body: bytes) -> bytes:
    """Return the file of a header's text and arrays, padded, its checksum made to fit."""
    header += b" " * (-len(header) % 8)
    blob = bytearray(struct.pack("<Q", len(header)) + header + body)
    found = CHECKSUM.search(blob)
    if found:
        blob[found.start(1) : found.end(1)] = b"0" * 64
        blob[found.start(1) : found.end(1)] = hashlib.sha256(blob).hexdigest().encode()
    return bytes(blob)


def joined(header: Any, body: bytes) -> bytes:
    """Return the file of a header and arrays."""
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False)
    return sealed(text.encode(errors="surrogatepass"), body)


def forged(blob: bytes, change: Callable[[dict[str, Any], dict[str, Any]], Any]) -> bytes:
    """Return a state after a change of its header and of what it says of itself."""
    header, body = split(blob)
    meta = json.loads(header["__metadata__"]["streammetrics"])
    change(header, meta)
    header["__metadata__"]["streammetrics"] = json.dumps(meta, separators=(",", ":"))
    return joined(header, body)


def arrays_of(blob: bytes, place: int = 0) -> dict[str, Any]:
    """Return the arrays of a statistic of a state, by its place."""
    start = f"{place}/"
    arrays = unpacked(blob).arrays.items()
    return {name.removeprefix(start): array for name, array in arrays if name.startswith(start)}
