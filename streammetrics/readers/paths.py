"""Paths to files: names, folders and globs, with a note on every file left out."""

from __future__ import annotations

import fnmatch
import glob
import os
import stat
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from streammetrics.core.columns.batch import natural, near
from streammetrics.readers.sources import (
    DELIMITED,
    STDIN,
    TEXT,
    ReadError,
    Source,
    identity,
    seeing,
    source_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
