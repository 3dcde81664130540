"""Dead letters: refused events and undelivered alerts, as lines of a file."""

from __future__ import annotations

import errno
import json
import os
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from streammetrics.live.store import StoreError

if TYPE_CHECKING:
    from streammetrics.core.errors import InvalidBatchError
    from streammetrics.core.types import Document

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
    line = json.dumps(letter, default=str).encode() + b"\n"
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
