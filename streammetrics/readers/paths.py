"""Files to read: their bytes in UTF-8, and how names, folders and globs lead to them."""

from __future__ import annotations

import contextlib
import fnmatch
import glob
import io
import os
import shutil
import stat
import sys
import tempfile
import weakref
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import unquote

import pyarrow as pa

from streammetrics.core.columns.batch import natural, near
from streammetrics.core.errors import StreamMetricsError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


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


SUFFIXES = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "tsv",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".conll": "conll",
    ".iob": "conll",
    ".bio": "conll",
    ".eval": "eval",
}
FORMATS = tuple(dict.fromkeys(SUFFIXES.values()))
_COMPRESSED = (".gz", ".zst")
_SHOWN = 3

# Reasons why an entry of a folder is left out; the note prefixes their number.
_HIDDEN = "hidden (the name begins with . or _)"
_OTHER = "of other kinds"
_FOLDER_LINK = "links to folders"
_SAME = "further names of files that are read"
_SPECIAL = "neither files nor folders"


class Found(NamedTuple):
    """The files to read, and notes on the files left out."""

    sources: list[Source]
    notes: list[str]


def find(
    paths: Sequence[str],
    fmt: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
) -> Found:
    """Return the files that `paths` lead to, in order; those of a folder by name.

    Args:
        paths: Files, folders (read recursively), globs, or ``-`` for standard input.
        fmt: The format of all files; ``None``: by suffix.
        delimiter: The delimiter of CSV files; ``None``: detected for each file.
        decimal: The decimal point of CSV files, a dot or a comma; ``None``: a dot.

    Raises:
        ReadError: A path does not exist, cannot be read, is named twice, or has no known format.
    """
    if fmt is not None and fmt not in FORMATS:
        raise ReadError(f"no format {fmt!r}{near(fmt, FORMATS)}")
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise ReadError(f"the delimiter {delimiter!r} is not one character, such as ';' or '|'")
    if decimal not in {None, ".", ","}:
        raise ReadError(f"the decimal point {decimal!r} is neither '.' nor ','")
    if decimal is not None and decimal == delimiter:
        raise ReadError(
            f"{decimal!r} is both the delimiter and the decimal point: name another one"
        )
    search = _Search(fmt)
    for place, path in enumerate(paths):
        search.take(path, place)
    if not search.sources:
        what = "; ".join([f"no files of a known format ({', '.join(SUFFIXES)})", *search.notes()])
        raise ReadError(f"{', '.join(paths)}: {what}")
    if delimiter is None and decimal is None:
        return Found(search.sources, search.notes())
    what = "decimal point" if delimiter is None else "delimiter"
    for source in search.sources:
        if source.format not in DELIMITED:
            raise ReadError(f"{source} is read as {source.format}, and only CSV has a {what}")
    sources = [
        replace(source, delimiter=delimiter or "", decimal=decimal or ".")
        for source in search.sources
    ]
    return Found(sources, search.notes())


def brings(path: str, new: str, fmt: str | None = None) -> bool:
    """Return whether a path to read would match a new file that is to be written.

    Args:
        path: The path to read: a folder, a glob, or a file, which matches nothing else.
        new: The new file, in an existing folder.
        fmt: As in `find`.
    """
    target = os.path.realpath(new)
    if os.path.isdir(path):
        return _in_folder(path, target, fmt)
    if os.path.exists(path) or not glob.has_magic(path):
        return False
    folder, pattern = os.path.split(path)
    folders = glob.glob(folder, recursive=True) if glob.has_magic(folder) else [folder]
    below = [name for name in glob.iglob(path, recursive=True) if os.path.isdir(name)]
    if pattern == "**":
        folders += below
    beside = os.path.dirname(target) in map(os.path.realpath, folders)
    name = os.path.basename(target)
    seen = pattern.startswith(".") or not name.startswith(".")
    return (beside and seen and fnmatch.fnmatch(name, pattern)) or any(
        _in_folder(folder, target, fmt) for folder in below
    )


def _in_folder(folder: str, target: str, fmt: str | None) -> bool:
    root = os.path.realpath(folder)
    if os.path.commonpath([target, root]) != root:
        return False
    within = os.path.relpath(target, root).split(os.sep)
    return bool(fmt or format_of(target)) and not any(map(_is_hidden, within))


class _Search:
    """The files found so far."""

    def __init__(self, fmt: str | None) -> None:
        self.format = fmt
        self.sources: list[Source] = []
        self.left_out: dict[str, dict[str, None]] = {}
        self.known: dict[tuple[int, int], tuple[int, str]] = {}  # how it was found

    def take(self, path: str, place: int) -> None:
        """Add the files that a path leads to; `place` is the index of the argument."""
        if path == STDIN:
            if self.format is None:
                raise ReadError(f"standard input needs --input-format: one of {', '.join(FORMATS)}")
            self._add(path, self.format, place)
            return
        for name in matching(path):
            if os.path.isdir(name):
                self._take_folder(name, place)
            elif name != path and not _is_regular(name):
                self._leave(name, _SPECIAL)  # a pipe that is not named explicitly would block
            else:
                self._add(name, self.format or format_of(name) or _unknown(name), place)

    def _take_folder(self, folder: str, place: int) -> None:
        for path, why in _walk(folder):
            form = self.format or format_of(path)
            if why or not form:
                self._leave(path, why or _OTHER)
            else:
                self._add(path, form, place)

    def _add(self, path: str, form: str, place: int) -> None:
        """Add a file, unless the same argument has already led to it."""
        with seeing(path):
            key = identity(path)
        if key not in self.known:
            self.known[key] = place, path
            self.sources.append(source_of(path, form))
            return
        before, other = self.known[key]
        if before != place:
            name = path if other == path else f"{path}, which is {other},"
            raise ReadError(f"{name} is named twice, and its rows would count twice: name it once")
        if os.path.normpath(path) != os.path.normpath(other):
            self._leave(path, _SAME)

    def _leave(self, path: str, why: str) -> None:
        self.left_out.setdefault(why, {})[path] = None

    def notes(self) -> list[str]:
        """Return a note for each reason: how many files it leaves out, and the first names."""
        return [
            f"{len(paths):,} left out, {why}: {', '.join(list(paths)[:_SHOWN])}"
            + (", ..." if len(paths) > _SHOWN else "")
            for why, paths in self.left_out.items()
        ]


def matching(path: str) -> list[str]:
    """Return the path if it exists, otherwise its matches in natural order.

    Raises:
        ReadError: Nothing matches, or a folder on the way cannot be read.
    """
    with seeing(path):
        try:
            os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return sorted(_matches(path), key=natural) if glob.has_magic(path) else _missing(path)
    return [path]


def _matches(pattern: str) -> list[str]:
    folder = os.path.dirname(pattern)
    while folder and glob.has_magic(folder):
        for name in glob.iglob(folder, recursive=True):
            if os.path.isdir(name):
                os.scandir(name).close()  # raises if unreadable; glob would skip it
        folder = os.path.dirname(folder)
    os.scandir(folder or ".").close()
    found = glob.glob(pattern, recursive=True)
    if not found:
        raise ReadError(f"{pattern}: no file matches")
    return found


def _missing(path: str) -> list[str]:
    folder, name = os.path.split(path)
    if not path:
        raise ReadError("'' names no file")
    if not os.path.isdir(folder or "."):
        raise ReadError(f"{path}: no such file or folder; there is no folder {folder!r} either")
    raise ReadError(
        f"{path}: no such file or folder"
        f"{near(name, sorted(os.listdir(folder or '.')), 'in it are')}"
    )


def _walk(folder: str) -> Iterator[tuple[str, str]]:
    """Yield the path of each file below a folder, and why it is left out ("" if it is read).

    A hidden or linked folder is yielded once, as a whole.
    """
    with seeing(folder):
        entries = sorted(os.scandir(folder), key=lambda entry: natural(entry.name))
    for entry in entries:
        if _is_hidden(entry.name):
            yield entry.path, _HIDDEN
            continue
        with seeing(entry.path):
            mode = entry.stat().st_mode
        if stat.S_ISDIR(mode) and entry.is_symlink():
            yield entry.path, _FOLDER_LINK
        elif stat.S_ISDIR(mode):
            yield from _walk(entry.path)
        else:
            yield entry.path, "" if stat.S_ISREG(mode) else _SPECIAL


def _is_regular(path: str) -> bool:
    with seeing(path):
        return stat.S_ISREG(os.stat(path).st_mode)


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_"))  # e.g. _SUCCESS beside the parts of a table


def format_of(path: str) -> str | None:
    """Return the format that the ending of a path says, ``None`` if it says none."""
    stem, suffix = os.path.splitext(path.lower())
    compressed = suffix in _COMPRESSED
    if compressed:
        suffix = os.path.splitext(stem)[1]
    form = SUFFIXES.get(suffix)
    return None if compressed and form not in TEXT else form


def _unknown(path: str) -> str:
    raise ReadError(
        f"{path}: the ending says no format that is known ({', '.join(SUFFIXES)}); "
        f"--input-format, or format= in Python, names one of {', '.join(FORMATS)}"
    )
