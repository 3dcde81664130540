"""Output files: checked before anything is read, written atomically, never over an input."""

from __future__ import annotations

import os
import stat
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from streammetrics.cli.result import NO_ROWS, CommandError, CommandResult
from streammetrics.core.state.files import write_whole
from streammetrics.readers.paths import STDIN as STDOUT  # the same dash
from streammetrics.readers.paths import brings
from streammetrics.show.formats import as_csv, as_json, as_junit, as_markdown, as_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from streammetrics.show.report import ModelReports

_DEVICES = ("/dev/fd/", "/dev/std", "/proc/")  # open descriptors: files cannot be renamed to these
_FORMS = {"--json": as_json, "--csv": as_csv, "--markdown": as_markdown, "--junit": as_junit}
_TO_FILES = ("--save", "--receipt", "-o")  # options that cannot write to standard output


@dataclass(frozen=True)
class Output:
    """An output: the option that names it, and its path."""

    option: str
    path: str

    @property
    def is_stdout(self) -> bool:
        """Whether this is standard output, as a dash or by another name."""
        return self.path == STDOUT or (_is_device(self.path) and _is_open_as(self.path, 1))


def check_places(outputs: Iterable[Output]) -> None:
    """Raise if an output cannot be written, before anything is opened."""
    for output in outputs:
        if not output.path:
            raise CommandError(f"{output.option} '' names no file")
        if not output.is_stdout:
            _check_writable(output.path)
        elif output.option in _TO_FILES:
            raise CommandError(
                f"{output.option} {output.path}: this is written to a file only: name one"
            )


def check_outputs(
    outputs: Sequence[Output],
    inputs: Iterable[str],
    *,
    force: bool,
    patterns: Iterable[str] = (),
    fmt: str | None = None,
) -> None:
    """Raise if an output would overwrite something, before anything is read.

    Args:
        outputs: The outputs of the command.
        inputs: The files to read. They are never overwritten, under any name.
        force: Whether other existing files may be overwritten.
        patterns: The arguments that led to the inputs. An output that matches one of them would be
            an input of the next run.
        fmt: The format given for all inputs.

    Raises:
        CommandError: An output is an input, two outputs are one file, or a file exists without
            `force`.
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
            _check_not_matched(output, patterns, fmt)
            _check_replaceable(output.path, force=force)
    _check_not_read(Output("standard output", STDOUT), read)


def _check_not_read(output: Output, read: dict[tuple[int, int], str]) -> None:
    key = identity(1 if output.is_stdout else output.path)
    if key in read:
        same = "" if output.path == read[key] else f" (it is {output.path})"
        raise CommandError(
            f"{output.option} would overwrite {read[key]}{same}, which is read: name another file"
        )


def _check_not_matched(output: Output, patterns: Iterable[str], fmt: str | None) -> None:
    if _is_stream(output.path):
        return
    for path in patterns:
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


def _check_replaceable(path: str, *, force: bool) -> None:
    if not force and not _is_stream(path) and os.path.isfile(path) and os.path.getsize(path):
        raise CommandError(f"{path} exists: add --force to overwrite it, or name another file")


def write(path: str, content: str | bytes) -> None:
    """Write a file atomically.

    Characters that UTF-8 cannot encode, e.g. in file names, are escaped as in JSON.
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


def outputs_of(json: str | None, csv: str | None, markdown: str | None) -> list[Output]:
    """Return the outputs of the options for results."""
    given = (("--json", json), ("--csv", csv), ("--markdown", markdown))
    return [Output(option, path) for option, path in given if path is not None]


def finish(results: ModelReports, outputs: Sequence[Output]) -> CommandResult:
    """Write the results; print the table unless another format goes to standard output."""
    empty = [name for name, report in results.models.items() if not report.n_rows]
    text = as_text(results) if len(empty) < len(results.models) else ""
    for output in outputs:
        form = _FORMS.get(output.option)
        if form is None:
            continue
        if output.is_stdout:
            text = form(results)
        else:
            write(output.path, form(results))
    if not empty:
        return CommandResult(text)
    return CommandResult(text, NO_ROWS, _nothing(results, empty))


def _nothing(results: ModelReports, empty: Sequence[str]) -> str:
    of = f" of {', '.join(empty)}" if len(results.models) > 1 else ""
    omitted = sum(results.models[name].n_omitted for name in empty)
    if omitted:
        return f"no rows{of}: all {omitted:,} lack a value and were omitted"
    return f"no rows{of}: nothing was measured"


def identity(path: str | int) -> tuple[int, int] | None:
    """Return the device and inode of a file, None for devices and missing files."""
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
