"""Paths to files: names, folders, globs and standard input, each with its format."""

from __future__ import annotations

import glob
import gzip
import os
import re
import shutil
import sys
import tempfile
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, NamedTuple, cast

from streammetrics.readers.errors import ReadError, near

if TYPE_CHECKING:
    import io
    from collections.abc import Iterator, Sequence

STDIN = "-"
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
}
FORMATS = tuple(dict.fromkeys(SUFFIXES.values()))
_ZIPPED = ("csv", "tsv", "jsonl")  # text, which .gz may wrap
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class Source:
    """One file and its format; `stream` is set where it can be read only once."""

    path: str
    format: str
    title: str = ""  # what messages call it, where that is not its path
    stream: io.BufferedReader | None = None

    def __str__(self) -> str:
        return self.title or self.path

    @property
    def once(self) -> bool:
        """Whether this can only be read here, and once."""
        return self.stream is not None

    def open(self) -> io.BufferedReader:
        """Return the bytes, decompressed, from the start; a stream goes on where it is."""
        if self.stream is not None:
            return self.stream
        with open(self.path, "rb") as file:
            zipped = file.read(2) == _GZIP
        stream = gzip.open(self.path) if zipped else open(self.path, "rb")  # noqa: SIM115 - the reader closes it
        return cast("io.BufferedReader", stream)  # the other one reads and peeks alike


class Found(NamedTuple):
    """The files to read, and those in folders that are in no known format."""

    sources: list[Source]
    ignored: list[str]
    spools: list[IO[bytes]]  # temporary files, which are there as long as this is


def find(paths: Sequence[str], fmt: str | None = None) -> Found:
    """Return the files behind `paths`, in their order, those of a folder by name.

    Args:
        paths: Files, folders (taken with all that is in them), globs, or ``-``.
        fmt: The format of all of them; ``None``: as their endings say.

    Raises:
        ReadError: A path is not there, named twice, or in no known format.
    """
    if fmt is not None and fmt not in FORMATS:
        raise ReadError(f"no format {fmt!r}{near(fmt, FORMATS)}")
    sources: list[Source] = []
    ignored: list[str] = []
    spools: list[IO[bytes]] = []
    for path in paths:
        if path == STDIN:
            sources.append(_standard_input(fmt, spools))
            continue
        for name in matching(path):
            if os.path.isdir(name):
                files = list(_walk(name))
                known = [(file, fmt or _format(file)) for file in files]
                sources += [Source(file, form) for file, form in known if form]
                ignored += [file for file, form in known if not form]
            else:
                sources.append(Source(name, fmt or _format(name) or _unknown(name)))
    _check_once(sources)
    if not sources:
        raise ReadError(f"{', '.join(paths)}: no files of a known format ({', '.join(SUFFIXES)})")
    return Found(sources, ignored, spools)


def natural(text: str) -> list[Any]:
    """Return the key under which p2 sorts before p10."""
    return [int(part) if part.isdigit() else part for part in re.split(r"([0-9]+)", text)]


def matching(path: str) -> list[str]:
    """Return the path if it is there, or the files that match it in natural order."""
    if os.path.exists(path):
        return [path]
    if glob.has_magic(path):
        found = [name for name in glob.glob(path, recursive=True) if not os.path.isdir(name)]
        if not found:
            raise ReadError(f"{path}: no file matches")
        return sorted(found, key=natural)
    folder, name = os.path.split(path)
    if not os.path.isdir(folder or "."):
        raise ReadError(f"{path}: no such file or folder; there is no folder {folder!r} either")
    raise ReadError(
        f"{path}: no such file or folder"
        f"{near(name, sorted(os.listdir(folder or '.')), 'in it are')}"
    )


def _walk(folder: str) -> Iterator[str]:
    for root, folders, files in os.walk(folder):
        folders[:] = sorted((f for f in folders if not _hidden(f)), key=natural)
        for file in sorted(files, key=natural):
            if not _hidden(file):
                yield os.path.join(root, file)


def _hidden(name: str) -> bool:
    return name.startswith((".", "_"))  # _SUCCESS and the like beside the parts of a data set


def _format(path: str) -> str | None:
    stem, suffix = os.path.splitext(path.lower())
    zipped = suffix == ".gz"
    if zipped:
        suffix = os.path.splitext(stem)[1]
    form = SUFFIXES.get(suffix)
    return None if zipped and form not in _ZIPPED else form


def _unknown(path: str) -> str:
    raise ReadError(
        f"{path}: the ending says no format that is known ({', '.join(SUFFIXES)}); "
        f"--format names one of {', '.join(FORMATS)}"
    )


def _standard_input(fmt: str | None, spools: list[IO[bytes]]) -> Source:
    if fmt is None:
        raise ReadError(f"standard input needs --format: one of {', '.join(FORMATS)}")
    stream = cast("io.BufferedReader", sys.stdin.buffer)
    if stream.peek(2)[:2] == _GZIP:
        stream = cast("io.BufferedReader", gzip.GzipFile(fileobj=stream))
    head = stream.peek(8)[:6]
    if fmt == "parquet" or (fmt == "arrow" and head == b"ARROW1"):
        # These have their directory at the end, so they have to be whole before reading starts.
        spool = tempfile.NamedTemporaryFile(prefix="streammetrics-")  # noqa: SIM115 - it outlives this
        shutil.copyfileobj(stream, spool, 1 << 20)
        spool.flush()
        spools.append(cast("IO[bytes]", spool))
        return Source(spool.name, fmt, title="standard input")
    return Source(STDIN, fmt, title="standard input", stream=stream)


def _check_once(sources: Sequence[Source]) -> None:
    seen = set()
    for source in sources:
        key = source.title or os.path.realpath(source.path)
        if key in seen:
            raise ReadError(f"{source}: named twice, and its rows would count twice")
        seen.add(key)
