"""Bytes from the start: decompressed, text as UTF-8, and of a pipe the beginning more than once."""

from __future__ import annotations

import io
import weakref
from typing import IO, Any, Literal

import pyarrow as pa

_BUFFER = 1 << 16
_CODECS: dict[bytes, Literal["gzip", "zstd"]] = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_UTF8 = b"\xef\xbb\xbf"
_ENCODINGS = {  # by the marks that files begin with; the first two begin as the others do
    b"\xff\xfe\x00\x00": "utf-32",
    b"\x00\x00\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}


class Pipe:
    """Bytes that come once. Those that `peek` has read are kept, and `take` begins with them."""

    def __init__(self, file: IO[bytes], *, ours: bool) -> None:
        self.file = file
        self.kept = bytearray()
        self.taken = False
        if ours:
            weakref.finalize(self, file.close)

    def peek(self) -> io.RawIOBase:
        """Return the bytes, to look at their beginning."""
        return _Flow(self, keep=True)

    def take(self) -> io.RawIOBase:
        """Return all the bytes, for good."""
        if self.taken:
            raise OSError("it can be read only once, and has been")
        self.taken = True
        return _Flow(self, keep=False)


class _Flow(io.RawIOBase):
    """A pipe from its start."""

    def __init__(self, pipe: Pipe, *, keep: bool) -> None:
        self._pipe, self._keep, self._at = pipe, keep, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer, with what is kept or what comes, until the end."""
        room, kept = memoryview(buffer), self._pipe.kept
        if self._at < len(kept):
            part = kept[self._at : self._at + len(room)]
        else:
            part = bytearray(self._pipe.file.read(len(room)))
            if self._keep:
                kept += part
        room[: len(part)] = part
        self._at += len(part)
        return len(part)


def buffered(raw: Any) -> io.BufferedReader:
    """Return a stream that peeks and reads lines."""
    return io.BufferedReader(raw, _BUFFER)


def decompressed(stream: io.BufferedReader) -> io.BufferedReader:
    """Return what gzip or Zstandard has wrapped, anything else as it is."""
    head = stream.peek(4)
    for magic, codec in _CODECS.items():
        if head.startswith(magic):
            return buffered(pa.CompressedInputStream(stream, codec))
    return stream


def in_utf8(stream: io.BufferedReader) -> io.BufferedReader:
    """Return text in UTF-8, without the mark of its encoding that it may begin with."""
    head = stream.peek(4)
    for mark, encoding in _ENCODINGS.items():
        if head.startswith(mark):
            file = pa.PythonFile(stream, mode="r")
            return buffered(pa.transcoding_input_stream(file, encoding, "utf-8"))
    if head.startswith(_UTF8):
        stream.read(len(_UTF8))
    return stream
