"""A file to read: its bytes, decompressed and in UTF-8, and a check that it has not changed."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import stat
import sys
import tempfile
import weakref
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import unquote

import pyarrow as pa

from streammetrics.core.errors import StreamMetricsError

if TYPE_CHECKING:
    from collections.abc import Iterator

STDIN = "-"
DELIMITED = ("csv", "tsv")  # formats with a delimiter
TEXT = (
    *DELIMITED,
    "jsonl",
    "trec",
    "conll",
    "coco",
)  # formats that may be compressed or in UTF-16
_NULL = "__HIVE_DEFAULT_PARTITION__"
_OURS = ("/dev/", "/proc/")  # in another process these names lead to other files
_BUFFER = 1 << 16
_CODECS: dict[bytes, Literal["gzip", "zstd"]] = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_UTF8 = b"\xef\xbb\xbf"
_ENCODINGS = {  # by byte order mark; utf-32 first, because its mark begins with that of utf-16
    b"\xff\xfe\x00\x00": "utf-32",
    b"\x00\x00\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}


class ReadError(StreamMetricsError):
    """A file is missing or does not have the expected content; the one-line message names it."""


class Pipe:
    """Bytes that can be read only once; `take` starts with the bytes that `peek` has read."""

    def __init__(self, file: IO[bytes], *, ours: bool) -> None:
        self.file = file
        self.kept = bytearray()
        self.taken = False
        if ours:
            weakref.finalize(self, file.close)

    def peek(self) -> io.RawIOBase:
        """Return a stream to inspect the beginning; its bytes are kept for `take`."""
        return _Flow(self, keep=True)

    def take(self) -> io.RawIOBase:
        """Return a stream of all bytes; can be called only once."""
        if self.taken:
            raise OSError("it can be read only once, and has been")
        self.taken = True
        return _Flow(self, keep=False)


class _Flow(io.RawIOBase):
    """A pipe, read from its start."""

    def __init__(self, pipe: Pipe, *, keep: bool) -> None:
        self._pipe, self._keep, self._at = pipe, keep, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer from the kept bytes, then from the pipe."""
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
    """Return a buffered stream, which can peek and read lines."""
    return io.BufferedReader(raw, _BUFFER)


def decompressed(stream: io.BufferedReader) -> io.BufferedReader:
    """Decompress gzip or Zstandard; return other streams unchanged."""
    head = stream.peek(4)
    for magic, codec in _CODECS.items():
        if head.startswith(magic):
            return buffered(pa.CompressedInputStream(stream, codec))
    return stream


def in_utf8(stream: io.BufferedReader) -> io.BufferedReader:
    """Return the text as UTF-8, without a byte order mark."""
    head = stream.peek(4)
    for mark, encoding in _ENCODINGS.items():
        if head.startswith(mark):
            file = pa.PythonFile(stream, mode="r")
            return buffered(pa.transcoding_input_stream(file, encoding, "utf-8"))
    if head.startswith(_UTF8):
        stream.read(len(_UTF8))
    return stream


class Stamp(NamedTuple):
    """The identity of a file; if any of it changes, the rows may have changed."""

    device: int
    inode: int
    size: int
    modified: int  # in nanoseconds

    @classmethod
    def of(cls, path: str) -> Stamp:
        """Return the stamp of a file, or of the target of a link."""
        found = os.stat(path)
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


@dataclass(frozen=True)
class Source:
    """A file and its format.

    Attributes:
        path: Its path.
        format: Its format.
        title: Its name in messages.
        stamp: The stamp of the file when it was found; ``None`` for a pipe.
        pipe: The pipe, if it can be read only once and only in this process.
        delimiter: The delimiter of CSV; empty to detect it.
        decimal: The decimal point of numbers in CSV: a dot or a comma.
        added: Further columns of one value: names and values.
    """

    path: str
    format: str
    title: str
    stamp: Stamp | None = None
    pipe: Pipe | None = None
    delimiter: str = ""
    decimal: str = "."
    added: tuple[tuple[str, str], ...] = ()

    @property
    def keys(self) -> list[tuple[str, str | None]]:
        """Columns of one value, from folder names such as ``country=DE`` and from `added`."""
        parts = self.title.split(os.sep)[:-1]
        pairs = [part.split("=", 1) for part in parts if "=" in part]
        return [
            *((unquote(name), None if value == _NULL else unquote(value)) for name, value in pairs),
            *self.added,
        ]

    def __str__(self) -> str:
        return self.title

    @property
    def once(self) -> bool:
        """Whether the source can be read only once, in this process."""
        return self.pipe is not None

    def open(self) -> io.BufferedReader:
        """Return a stream of all bytes, decompressed; only once for a pipe."""
        return self._plain(self.pipe.take() if self.pipe else None)

    def peek(self) -> io.BufferedReader:
        """Return a decompressed stream to inspect the beginning."""
        return self._plain(self.pipe.peek() if self.pipe else None)

    def _plain(self, raw: io.RawIOBase | None) -> io.BufferedReader:
        stream = decompressed(buffered(raw or open(self.path, "rb", buffering=0)))  # noqa: SIM115 - the reader closes it
        return in_utf8(stream) if self.format in TEXT else stream

    def check(self) -> None:
        """Raise `ReadError` if the file has changed since it was found."""
        if self.stamp is None:
            return
        try:
            now = Stamp.of(self.path)
        except OSError as error:
            raise ReadError(f"{self} was there, and is gone: {error.strerror}") from error
        if now == self.stamp:
            return
        if now[:2] != self.stamp[:2]:
            how = "another file is in its place"
        elif now.size != self.stamp.size:
            how = f"it had {self.stamp.size:,} bytes and has {now.size:,}"
        else:
            how = "it was written to"
        raise ReadError(
            f"{self} changed while it was read: {how}; nothing of it is kept, read it again when "
            "nobody writes to it"
        )


@contextlib.contextmanager
def seeing(path: str) -> Iterator[None]:
    """Name the path in an error of the operating system."""
    try:
        yield
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        why = getattr(error, "strerror", None) or str(error)
        at = getattr(error, "filename", None) or path
        raise ReadError(f"{at}: cannot be read: {why}") from error


def identity(path: str) -> tuple[int, int]:
    """Return the device and inode number of a file, which all its names share."""
    where: Any = path
    if path == STDIN:
        try:
            where = sys.stdin.fileno()
        except (AttributeError, OSError):  # standard input was replaced
            return 0, id(sys.stdin)
    found = os.stat(where)
    return found.st_dev, found.st_ino


def source_of(path: str, form: str) -> Source:
    """Return the source of a path, opened if it is a pipe.

    Raises:
        ReadError: It cannot be opened, or cannot be copied to a temporary file.
    """
    with seeing(path):
        if path == STDIN:
            if sys.stdin is None:
                raise ReadError("standard input is closed")
            return _flowing(Pipe(sys.stdin.buffer, ours=False), "standard input", form)
        mode = os.stat(path).st_mode
        where = os.path.realpath(path) if path.startswith(_OURS) else path
        if stat.S_ISREG(mode) and _same(path, where):
            return Source(where, form, path, Stamp.of(where))
        if stat.S_ISDIR(mode):
            raise ReadError(f"{path}: is a folder; a file is needed")
        return _flowing(Pipe(open(path, "rb"), ours=True), path, form)


def _same(path: str, other: str) -> bool:
    """Return whether both paths are one file; a deleted open file has no other name."""
    return path == other or (os.path.exists(other) and os.path.samefile(path, other))


def _flowing(pipe: Pipe, title: str, form: str) -> Source:
    if form in {"parquet", "eval"} or (form == "arrow" and _has_directory(pipe)):
        return _kept(pipe, title, form)
    return Source(title, form, title, pipe=pipe)


def _has_directory(pipe: Pipe) -> bool:
    """Return whether this is an Arrow file rather than a stream."""
    return decompressed(buffered(pipe.peek())).read(6) == b"ARROW1"


def _kept(pipe: Pipe, title: str, form: str) -> Source:
    """Copy a pipe of a format with its directory at the end to a temporary file."""
    try:
        spool = tempfile.NamedTemporaryFile(prefix="streammetrics-")  # noqa: SIM115 - closed by the finalizer below
        shutil.copyfileobj(decompressed(buffered(pipe.take())), spool, 1 << 20)
        spool.flush()
    except OSError as error:
        raise ReadError(
            f"{title}: {form} from a pipe has to be kept until its end, and cannot be in "
            f"{tempfile.gettempdir()}: {error.strerror or error}; set TMPDIR to a folder with room"
        ) from error
    source = Source(spool.name, form, title, Stamp.of(spool.name))
    weakref.finalize(source, spool.close)
    return source
