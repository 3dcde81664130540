"""Outputs: what is written, and what is not overwritten."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
import stat
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from streammetrics.cli.errors import CommandError
from streammetrics.core.errors import StreamMetricsError
from streammetrics.core.mergeable import Mergeable
from streammetrics.core.results.table import csv_text, printable
from streammetrics.core.state.files import write_whole
from streammetrics.core.stateful import load
from streammetrics.readers.paths import brings
from streammetrics.readers.sources import STDIN as STDOUT  # one dash, either way
from streammetrics.show.formats import FIELDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


def say(line: str) -> None:
    """Write a line to standard error."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError):  # there is nowhere left to say it
            print(printable(" ".join(line.split())), file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Outcome:
    """What goes to standard output, the exit code, and one line for standard error."""

    text: str = ""
    code: int = 0
    error: str = ""


_LARGEST = 1 << 26  # bytes of a file that is looked at
_ABOUT = {
    "task", "columns", "by", "files", "left_out", "options", "qrels", "run", "annotations",
    "results", "state", "shards",
}  # fmt: skip
_REPORT = {"n_rows", "n_omitted", "metrics", "notes"}
_SLICES = {"slices", "worst"}
_ENTRY = {"value", "low", "high", "exact", "n_rows", "n_omitted", "parameters"}
_HEAD = re.compile(r"\| Metric \| Value \| (Certainly within \| )?Rows \| Omitted \|")
_LINE = re.compile(r"|\| .* \||\*\*.+\*\*|- .+|every value is exact")


def is_json(path: str) -> bool:
    """Tell whether a file is what ``--json`` writes, with nothing besides."""
    text = _text(path)
    try:
        found = json.loads(text)
    except ValueError:
        return False
    if (
        not isinstance(found, dict)
        or text != json.dumps(found, indent=2, ensure_ascii=False) + "\n"
    ):
        return False
    models = found.get("models")
    if models is None:
        return _is_report(found)
    known = isinstance(models, dict) and found.keys() <= _ABOUT | {"models"}
    return known and all(map(_is_report, models.values()))


def _is_report(found: object) -> bool:
    if not isinstance(found, dict) or not _REPORT <= found.keys() <= _REPORT | _ABOUT | _SLICES:
        return False
    entries = found["metrics"].values() if isinstance(found["metrics"], dict) else [None]
    return all(
        isinstance(entry, dict) and _ENTRY <= entry.keys() <= _ENTRY | {"labels", "per_query"}
        for entry in entries
    )


def is_csv(path: str) -> bool:
    """Tell whether a file is what ``--csv`` writes, with nothing besides."""
    text = _text(path)
    try:
        header, *rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    except (ValueError, csv.Error):
        return False
    if tuple(header) not in {FIELDS, ("model", *FIELDS)}:
        return False
    return csv_text([header, *rows]) == text and all(_is_row(row, len(header)) for row in rows)


def _is_row(row: Sequence[str], width: int) -> bool:
    try:
        *_, value, low, high, exact, n_rows, n_omitted = row
        _ = [float(text) for text in (value, low, high) if text], int(n_rows), int(n_omitted)
    except ValueError:
        return False
    return len(row) == width and exact in {"true", "false"}


def is_markdown(path: str) -> bool:
    """Tell whether a file is of such lines as ``--markdown`` writes, and of no others."""
    first, *lines = _text(path).split("\n")
    of_models = first.startswith("| Metric | ") and any(x.startswith("| Rows | ") for x in lines)
    return bool(_HEAD.fullmatch(first) or of_models) and all(map(_LINE.fullmatch, lines))


def _text(path: str) -> str:
    """Return what is in a file, or nothing where it is no text or too large to be of us."""
    with open(path, "rb") as file:
        data = file.read(_LARGEST + 1)
    try:
        return data.decode() if len(data) <= _LARGEST else ""
    except UnicodeDecodeError:
        return ""


_DEVICES = ("/dev/fd/", "/dev/std", "/proc/")  # names of what is open: nothing is renamed to them
_OF_STATES = ("--save", "-o")  # beside whose output standard output has words
_KNOWN = 1 << 26  # bytes of a file that are looked at to know whether it is an earlier output


@dataclass(frozen=True)
class Output:
    """One output: where it goes, which option says so, and how an earlier one is known again."""

    option: str
    path: str
    is_earlier: Callable[[str], bool]

    @property
    def is_stdout(self) -> bool:
        """Whether this is standard output, by a dash or by another name."""
        return self.path == STDOUT or (_is_device(self.path) and _is_open_as(self.path, 1))


def check_places(outputs: Iterable[Output]) -> None:
    """Raise before anything is opened where an output could not be written."""
    for output in outputs:
        if not output.path:
            raise CommandError(f"{output.option} '' names no file")
        if not output.is_stdout:
            _check_writable(output.path)
        elif output.option in _OF_STATES:
            raise CommandError(
                f"{output.option} {output.path}: a state is written to a file: name one"
            )


def check_outputs(
    outputs: Sequence[Output],
    inputs: Iterable[str],
    *,
    force: bool,
    asked: Iterable[str] = (),
    fmt: str | None = None,
) -> None:
    """Raise before anything is read where an output would destroy something.

    Args:
        outputs: What will be written.
        inputs: The files that are read; they stay as they are, whatever they are called.
        force: Whether files that are no earlier outputs may be replaced.
        asked: What led to the inputs: an output that it leads to as well would be one, next time.
        fmt: The format that all inputs were said to have.

    Raises:
        CommandError: An output is an input, two are one, or it is a file to keep.
    """
    check_places(outputs)
    read = {key: path for path in inputs if (key := identity(path)) is not None}
    written: dict[str, str] = {}
    for output in outputs:
        name = STDOUT if output.is_stdout else os.path.realpath(output.path)
        if name in written:
            raise CommandError(
                f"{written[name]} and {output.option} both write to {output.path}: name two files"
            )
        written[name] = output.option
        _check_not_read(output, read)
        if not output.is_stdout:
            _check_not_among(output, asked, fmt)
            _check_replaceable(output, force=force)
    _check_not_read(Output("standard output", STDOUT, bool), read)


def _check_not_read(output: Output, read: dict[tuple[int, int], str]) -> None:
    key = identity(1 if output.is_stdout else output.path)
    if key in read:
        same = "" if output.path == read[key] else f" (it is {output.path})"
        raise CommandError(
            f"{output.option} would overwrite {read[key]}{same}, which is read: name another file"
        )


def _check_not_among(output: Output, asked: Iterable[str], fmt: str | None) -> None:
    if _is_stream(output.path):
        return
    for path in asked:
        if brings(path, output.path, fmt):
            which = "lies in" if os.path.isdir(path) else "matches"
            raise CommandError(
                f"{output.option} {output.path} {which} {path}, all of which is read, so the "
                "next run would read it too: name a file elsewhere"
            )


def _check_writable(path: str) -> None:
    folder = os.path.dirname(path) or "."
    if _is_stream(path):
        return
    if not os.path.isdir(folder):
        raise CommandError(f"{path}: cannot be written, there is no folder {folder!r}")
    if os.path.isdir(path):
        raise CommandError(f"{path}: cannot be written, it is a folder")
    if not os.access(folder, os.W_OK):
        raise CommandError(f"{path}: cannot be written, {folder!r} is read-only")


def _check_replaceable(output: Output, *, force: bool) -> None:
    path = output.path
    if force or _is_stream(path) or not os.path.isfile(path) or not os.path.getsize(path):
        return
    if not output.is_earlier(path):
        writes = output.option if output.option.startswith("-") else "this command"
        raise CommandError(
            f"{path} is there and holds something else than {writes} writes here: "
            "--force replaces it, or name another file"
        )


def write(path: str, content: str | bytes) -> None:
    """Write a file so that at any moment it is the old one or the new one.

    What UTF-8 has no bytes for, as in a file's name that is not UTF-8, is escaped as JSON does it.
    """
    data = content.encode(errors="backslashreplace") if isinstance(content, str) else content
    try:
        if _is_device(path):
            with open(path, "wb") as stream:
                stream.write(data)
        else:
            write_whole(path, data)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CommandError(f"{path}: cannot be written: {error.strerror}") from error


# --- outputs of earlier runs ---------------------------------------------------------------------


def is_like(state: object) -> Callable[[str], bool]:
    """Return a test for files that hold a metric or a set as `state` is, rows aside.

    A ledger is like none: it holds shards that no other state makes up for.
    """

    def test(path: str) -> bool:
        found = state_in(path)
        return isinstance(found, Mergeable) and found._alike(state)

    return test


def state_in(path: str) -> object:
    """Return the state in a file, or None where it holds something else."""
    if not os.path.isfile(path):
        return None
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        if size > _KNOWN or b"streammetrics" not in file.read(size):
            return None  # it need not be read, however large
    try:
        found: object = load(path)
    except StreamMetricsError:
        return None
    return found


# --- files by what they are, whatever they are called --------------------------------------------


def identity(path: str | int) -> tuple[int, int] | None:
    """Return what two names of one file have in common; devices and what is not there: None."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return None if stat.S_ISCHR(found.st_mode) else (found.st_dev, found.st_ino)


def _is_open_as(path: str, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except OSError:
        return False


def _is_device(path: str) -> bool:
    return os.path.abspath(path).startswith(_DEVICES) and sys.platform != "win32"


def _is_stream(path: str) -> bool:
    return _is_device(path) or (
        os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)
    )
