"""The log on standard error, and the files of dead letters: refused events, undelivered alerts."""

from __future__ import annotations

import errno
import json
import logging
import os
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from streammetrics.live.store import StoreError

if TYPE_CHECKING:
    from streammetrics.core.errors import InvalidBatchError
    from streammetrics.core.types import Document


_FORM = "STREAMMETRICS_LIVE_LOG"  # tells a worker the form
FORMS = ("text", "json")
_PAUSE = 1.0  # seconds between two lines about alike requests


def use(form: str) -> None:
    """Choose the form of the log of this process and its workers."""
    os.environ[_FORM] = form


def is_json() -> bool:
    """Return whether the log consists of JSON."""
    return os.environ.get(_FORM) == "json"


def log(level: str, message: str, **more: object) -> None:
    """Write a line, if standard error is open; as text, only of warnings and errors."""
    line = _line(level, message, **more) if is_json() else f"{level}: {message}"
    if is_json() or level != "info":
        with suppress(OSError, ValueError):
            # In one piece: lines of several workers must not mix where Python does not buffer.
            print(line + "\n", end="", file=sys.stderr, flush=True)


def _line(level: str, message: str, **more: object) -> str:
    now = datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="milliseconds")
    return json.dumps(
        {"time": now, "level": level, "message": message, "process": os.getpid(), **more},
        default=str,
    )


class Formatter(logging.Formatter):
    """Formats records of the web server as the other lines of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record, with its traceback if it has one."""
        more = {"trace": self.formatException(record.exc_info)} if record.exc_info else {}
        return _line(record.levelname.lower(), record.getMessage(), **more)


def server_logs() -> Document:
    """Return the configuration of the loggers of the web server, for JSON."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": Formatter}},
        "handlers": {"json": {"class": "logging.StreamHandler", "formatter": "json"}},
        "root": {"handlers": ["json"]},
        "loggers": {"uvicorn.error": {"handlers": ["json"], "propagate": False}},
    }


class RequestLog:
    """Logs answered requests that failed: one line a second for each path and status."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, int], tuple[float, int]] = {}  # last line, and others since

    def add(self, method: str, path: str, status: int, seconds: float) -> None:
        """Add a request; `path` is one of a few."""
        if status < 400 or not is_json():
            return
        now, key = time.monotonic(), (path, status)
        last, others = self._seen.get(key, (-_PAUSE, 0))
        if now - last < _PAUSE:
            self._seen[key] = last, others + 1
            return
        self._seen[key] = now, 0
        told = {"method": method, "path": path, "status": status, "seconds": round(seconds, 4)}
        log("error" if status >= 500 else "info", "request failed", **told, more=others)


MOST = 100  # refused events of a request; with more, it is refused as a whole
PATIENCE = 2.0  # seconds to look for the refused events of a request
_BYTES = 64_000_000  # size from which the file is renamed to FILE.1, which it replaces


class DeadLetters:
    """A file with a JSON line for each refused event, so that others of its request are taken.

    Args:
        path: The file. It is made when the first event is refused, readable by its owner only.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    def write(self, event: object, error: InvalidBatchError, key: str) -> None:
        """Append an event.

        Args:
            event: The event, or the text of a line that is not an event.
            error: Why it is refused.
            key: The idempotency key of the request, or an empty text.

        Raises:
            StoreError: The file cannot be written.
        """
        letter = {
            "refused": datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="milliseconds"),
            "error": str(error),
            "row": error.row,
            "column": error.column,
            "key": key,
            "event": event,
        }
        try:
            append(self._path, letter)
        except OSError as reason:
            full = reason.errno in {errno.ENOSPC, errno.EDQUOT}
            raise StoreError(self._path, reason, full=full, what="dead-letter file") from reason


def append(path: str, letter: Document) -> None:
    """Append a JSON line to a file that several processes may share, and that is made private.

    Raises:
        OSError: The file cannot be written.
    """
    try:
        text = json.dumps(letter, default=str, allow_nan=False)
    except ValueError:  # JSON has no number that is infinite or NaN, so that it becomes text
        text = json.dumps(json.loads(json.dumps(letter, default=str), parse_constant=str))
    line = text.encode() + b"\n"
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        size = os.fstat(file).st_size
        if size and os.pread(file, 1, size - 1) != b"\n":  # a line that was cut off
            line = b"\n" + line
        written = os.write(file, line)  # at once, because other workers append too
        if written < len(line):
            end = os.lseek(file, 0, os.SEEK_CUR)
            if os.fstat(file).st_size == end:
                os.ftruncate(file, end - written)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        found = os.fstat(file)
        if found.st_size > _BYTES and os.path.samestat(found, os.stat(path)):
            os.replace(path, f"{path}.1")
    finally:
        os.close(file)
