"""One file to read: its bytes from the start, and whether it still is the one that was found."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
import tempfile
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from streammetrics.readers.errors import ReadError
from streammetrics.readers.streams import Pipe, buffered, decompressed, in_utf8

if TYPE_CHECKING:
    import io
    from collections.abc import Iterator

STDIN = "-"
DELIMITED = ("csv", "tsv")  # formats with something between the fields
TEXT = (
    *DELIMITED,
    "jsonl",
    "trec",
    "conll",
    "coco",
)  # formats that may be compressed, and in UTF-16
_NULL = "__HIVE_DEFAULT_PARTITION__"
_OURS = ("/dev/", "/proc/")  # names there mean another file in another process


class Stamp(NamedTuple):
    """What a file is known by. Where one of these differs, so may the rows."""

    device: int
    inode: int
    size: int
    modified: int  # in nanoseconds

    @classmethod
    def of(cls, path: str) -> Stamp:
        """Return that of the file, or the one that a link leads to."""
        found = os.stat(path)
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


@dataclass(frozen=True)
class Source:
    """One file and its format.

    Attributes:
        path: Where it is.
        format: What its bytes mean.
        title: What messages call it.
        stamp: The file that was found; ``None`` of a pipe.
        pipe: Where it can be read only once, and only here.
        delimiter: What is between the fields of CSV; empty: what the file says.
    """

    path: str
    format: str
    title: str
    stamp: Stamp | None = None
    pipe: Pipe | None = None
    delimiter: str = ""

    @property
    def keys(self) -> list[tuple[str, str | None]]:
        """What its folders say as ``country=DE``, in the way of Hive: columns of one value."""
        parts = self.title.split(os.sep)[:-1]
        pairs = [part.split("=", 1) for part in parts if "=" in part]
        return [
            (unquote(name), None if value == _NULL else unquote(value)) for name, value in pairs
        ]

    def __str__(self) -> str:
        return self.title

    @property
    def once(self) -> bool:
        """Whether this can only be read here, and once."""
        return self.pipe is not None

    def open(self) -> io.BufferedReader:
        """Return all the bytes, decompressed; of a pipe this works once."""
        return self._plain(self.pipe.take() if self.pipe else None)

    def peek(self) -> io.BufferedReader:
        """Return the bytes, decompressed, to look at the beginning of them."""
        return self._plain(self.pipe.peek() if self.pipe else None)

    def _plain(self, raw: io.RawIOBase | None) -> io.BufferedReader:
        stream = decompressed(buffered(raw or open(self.path, "rb", buffering=0)))  # noqa: SIM115 - the reader closes it
        return in_utf8(stream) if self.format in TEXT else stream

    def check(self) -> None:
        """Raise `ReadError` where the file is no longer the one that was found."""
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
    """Name the path in what the system says of it."""
    try:
        yield
    except (OSError, ValueError) as error:  # a name may hold what no file's name can
        why = getattr(error, "strerror", None) or str(error)
        at = getattr(error, "filename", None) or path
        raise ReadError(f"{at}: cannot be read: {why}") from error


def identity(path: str) -> tuple[int, int]:
    """Return the device and the number of the file, which all its names share."""
    where: Any = path
    if path == STDIN:
        try:
            where = sys.stdin.fileno()
        except (AttributeError, OSError):  # something else stands for it
            return 0, id(sys.stdin)
    found = os.stat(where)
    return found.st_dev, found.st_ino


def source_of(path: str, form: str, delimiter: str = "") -> Source:
    """Return the file, opened if it is a pipe.

    Raises:
        ReadError: It cannot be opened, or not be kept while it is read.
    """
    with seeing(path):
        if path == STDIN:
            if sys.stdin is None:
                raise ReadError("standard input is closed")
            return _flowing(Pipe(sys.stdin.buffer, ours=False), "standard input", form, delimiter)
        mode = os.stat(path).st_mode
        where = os.path.realpath(path) if path.startswith(_OURS) else path
        if stat.S_ISREG(mode) and _same(path, where):
            return Source(where, form, path, Stamp.of(where), delimiter=delimiter)
        if stat.S_ISDIR(mode):
            raise ReadError(f"{path}: is a folder; a file is needed")
        return _flowing(Pipe(open(path, "rb"), ours=True), path, form, delimiter)


def _same(path: str, other: str) -> bool:
    """Whether both are one file; one that was deleted since it was opened has no other name."""
    return path == other or (os.path.exists(other) and os.path.samefile(path, other))


def _flowing(pipe: Pipe, title: str, form: str, delimiter: str) -> Source:
    if form == "parquet" or (form == "arrow" and _has_directory(pipe)):
        return _kept(pipe, title, form)
    return Source(title, form, title, pipe=pipe, delimiter=delimiter)


def _has_directory(pipe: Pipe) -> bool:
    """Whether an Arrow file, rather than a stream, comes."""
    return decompressed(buffered(pipe.peek())).read(6) == b"ARROW1"


def _kept(pipe: Pipe, title: str, form: str) -> Source:
    """Write what has its directory at the end to a temporary file, which lives with the source."""
    try:
        spool = tempfile.NamedTemporaryFile(prefix="streammetrics-")  # noqa: SIM115 - it outlives this
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
