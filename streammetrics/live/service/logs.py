"""The log of a service on standard error: lines of text, or of JSON."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

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


def server_logs() -> dict[str, Any]:
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
