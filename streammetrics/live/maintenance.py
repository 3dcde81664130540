"""Maintenance of stores: backups, restoring them, and compaction; no configuration is needed."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from streammetrics.core.errors import StateFormatError, StreamMetricsError
from streammetrics.core.state.container import unpacked
from streammetrics.core.state.files import is_special, replacing
from streammetrics.live.journal import SILENCE
from streammetrics.live.panes import digest
from streammetrics.live.store import (
    check_contents,
    check_form,
    damaged,
    is_damage,
    unreadable,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_TIMEOUT = 30.0  # seconds to wait for others who write


def backup(store: str, file: str) -> int:
    """Copy a store at one moment, also while services use it; return the size of the copy.

    Raises:
        StreamMetricsError: The store cannot be read, or the file cannot be written.
    """
    with _opened(store) as db:
        _copy(db, store, file)
    return os.path.getsize(file)


def restore(file: str, store: str) -> None:
    """Replace a store that no service uses by a backup.

    Raises:
        StreamMetricsError: The backup cannot be read, or a service uses the store.
    """
    with _opened(file) as db:
        if os.path.exists(store) and os.path.getsize(store):
            with _opened(store) as old:
                _check_unused(old, store)
        _copy(db, file, store)


def compact(store: str) -> tuple[int, int]:
    """Give unused space of a store back to its disk; return its size before and after.

    Raises:
        StreamMetricsError: A service uses the store, or it cannot be read or written.
    """
    with _opened(store) as db:
        _check_unused(db, store)
        before = _size(store)
        db.execute("vacuum")
        db.execute("pragma wal_checkpoint(truncate)")
    return before, _size(store)


def check(path: str) -> None:
    """Raise `StreamMetricsError` unless a file is a whole store."""
    with _opened(path) as db:
        db.execute("begin")
        _check(db, path)


@contextmanager
def readable(store: str) -> Iterator[str]:
    """Yield the path of a store to read: a copy of it if it, or its folder, cannot be written.

    Raises:
        StreamMetricsError: The store cannot be read.
    """
    if _is_writable(store):
        yield store
        return
    with TemporaryDirectory() as folder:
        copy = os.path.join(folder, os.path.basename(store))
        backup(store, copy)
        yield copy


def _is_writable(path: str) -> bool:
    """Return whether SQLite can write a file, and its log beside it."""
    return all(os.access(each, os.W_OK) for each in (path, os.path.dirname(path) or "."))


@contextmanager
def _opened(path: str) -> Iterator[sqlite3.Connection]:
    """Open a store, or a copy of one; errors name it."""
    if not os.path.isfile(path):
        raise StreamMetricsError(f"{path} does not exist, or is not a file")
    log = f"{path}-wal"
    mode = "mode=rw"
    if not _is_writable(path):  # without a log, nobody else writes either
        mode = "mode=ro" if os.path.exists(log) else "mode=ro&immutable=1"
    uri = f"{Path(path).absolute().as_uri()}?{mode}"
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=_TIMEOUT, isolation_level=None)) as db:
            check_form(db, path)
            yield db
    except UnicodeDecodeError as error:  # SQLite's message has bytes of the file
        raise damaged(path, "its schema is not UTF-8") from error
    except sqlite3.DatabaseError as error:
        if is_damage(error):
            raise unreadable(path, error) from error
        why = f"{path}: {error}"
        if mode != "mode=rw":
            why += f": this user may not write it: copy it, and {log} if there is one, elsewhere"
        raise StreamMetricsError(why) from error


def _check_unused(db: sqlite3.Connection, path: str) -> None:
    """Raise if a service has used a store in the last minute."""
    (seen,) = db.execute("select max(seen) from workers where closed is not null").fetchone()
    seconds = SILENCE if seen is None else time.time() - seen
    if seconds < SILENCE:
        raise StreamMetricsError(
            f"a service used {path} {max(seconds, 0):.0f} s ago: stop it, or wait a minute after a "
            "crash"
        )


def _copy(db: sqlite3.Connection, source: str, path: str) -> None:
    """Write a copy of a store, whole or not at all.

    Raises:
        StateFormatError: The store is damaged.
    """
    if is_special(path):
        raise StreamMetricsError(f"{path} is no file, and a store is copied to a file alone")
    try:
        with replacing(path) as (made, _):
            with closing(sqlite3.connect(made)) as copy:
                db.backup(copy)
                copy.execute("pragma journal_mode=delete")  # all in one file
                _check(copy, source)
                copy.execute("delete from workers")  # they use the store and not its copy
                copy.commit()
            for end in ("-wal", "-shm"):  # of the file that is replaced
                with suppress(FileNotFoundError):
                    os.unlink(f"{os.path.realpath(path)}{end}")
    except (OSError, sqlite3.OperationalError) as error:
        if isinstance(error, sqlite3.Error) and is_damage(error):
            raise unreadable(source, error) from error
        raise StreamMetricsError(f"{path} cannot be written: {error}") from error


def _check(db: sqlite3.Connection, path: str) -> None:
    """Raise unless all bytes of a store are those that were written."""
    (told,) = db.execute("pragma quick_check(1)").fetchone()
    if told != "ok":
        raise damaged(path, told)
    check_contents(db, path)
    for name, blob in db.execute("select name, blob from documents"):
        if digest(blob) != name:
            raise damaged(path, "the checksum of panes does not match")
    parts = db.execute("select blob from parts order by place").fetchall()
    heads = [b"".join(blob for (blob,) in parts)] if parts else []
    (empty,) = db.execute("select blob from empty").fetchone()
    try:
        for blob in (empty, *heads):
            unpacked(blob)
        for _, blob in db.execute("select worker, blob from journal"):
            unpacked(blob)
    except StateFormatError as error:
        raise damaged(path, str(error)) from error


def check_unused(store: str) -> None:
    """Raise if a service has used a store in the last minute."""
    with _opened(store) as db:
        _check_unused(db, store)


def _size(path: str) -> int:
    """Return the bytes of a store and its log."""
    return sum(os.path.getsize(p) for p in (path, f"{path}-wal") if os.path.exists(p))
