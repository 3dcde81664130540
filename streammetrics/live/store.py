"""The store: an SQLite file with a state, a journal of later events, and texts of alerts."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import sqlite3
import time
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from streammetrics.core.errors import IncompatibleMetricsError, StateFormatError, StreamMetricsError
from streammetrics.live.serialization import Base

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

FORMAT = 1
_APPLICATION = 0x736D4C76  # identifies these SQLite files
_CHUNK = 64 << 20  # maximum bytes of a row; SQLite allows 10^9
_LEAST = 1 << 20  # minimum bytes of a journal to fold
_PART = 1 << 13  # bytes added to the size of each part, for its overhead when read
_LOG = 4 << 20  # bytes to which SQLite truncates its write-ahead log
_PROBE = 1 << 16  # bytes probed for beyond a part, for pages of tables and of the cache
_PAUSE = 0.01  # seconds between attempts to prepare a file
_GONE = 86_400 * 2  # seconds without a write after which a worker is forgotten
_FORGOTTEN = "this worker was silent for long, and reads the store again"
_SCHEMA = """
create table empty (blob blob not null);
create table base (
    through integer not null, kept integer not null, counters text not null,
    claimed integer not null, digest text not null
);
create table parts (place integer primary key, blob blob not null);
create table documents (name text primary key, through integer not null, blob blob not null);
create table journal (
    seq integer primary key autoincrement,
    worker text not null, number integer not null, blob blob not null
);
create table workers (
    worker text primary key, number integer not null, seen real not null,
    closed integer, final integer
);
"""
_TEXTS = "create table if not exists texts (name text primary key, told text not null)"
_OPTIONAL = ("closed", "final")  # columns that may be null
_COLUMNS = """
select tables.name, columns.name, lower(columns.type)
from sqlite_master as tables, pragma_table_info(tables.name) as columns
where tables.type = 'table'
"""


class MissingStoreError(sqlite3.OperationalError):
    """The file or its log was deleted, truncated or replaced."""


class ForgottenError(sqlite3.OperationalError):
    """Other workers wait no longer for this one, which was silent for long."""


class StoreError(StreamMetricsError):
    """A durable store or a dead-letter file cannot be written, and no event of the call was kept.

    Attributes:
        full: Whether its disk is full; otherwise the file is locked or unreachable.
    """

    def __init__(self, path: str, error: Exception, *, full: bool, what: str = "store") -> None:
        advice = "make room on its disk" if full else "send it again in a second"
        # A `MissingStoreError` ends with what to do.
        why = f": {error}" if isinstance(error, MissingStoreError) else f" ({error}): {advice}"
        super().__init__(f"nothing was kept, the {what} {path} cannot be written{why}")
        self.full = full


class StoreWarning(UserWarning):
    """A store cannot be written; events stay in memory, and writing is retried."""


class JournalPart(NamedTuple):
    """A part of the journal."""

    seq: int
    worker: str
    number: int
    blob: bytes


class Promise(NamedTuple):
    """What a worker takes no more, after all of its parts in the file.

    A row may leave when no worker takes anything about it.
    """

    closed: int  # predictions before this time
    final: int  # labels of rows before this time; of these, it has read all predictions
    seen: float  # when it wrote last, by its own clock


class Store:
    """An SQLite file, opened by one process; the caller serializes access with a lock.

    Args:
        path: The file, which is made where there is none.
        empty: The state of no events, by which stores of another configuration are told.
        differing: Says in what such a state of a store differs.
        durable: Whether what is written is on the disk, and not only with the system.
        timeout: Seconds to wait for others who write.
        worker: The worker that the others are to wait for, if any.

    Raises:
        StateFormatError: The file is not a store, is damaged, or has another format.
        IncompatibleMetricsError: The store has another configuration.
        StreamMetricsError: The file cannot be opened: it is locked, the disk is full, or permission
            is denied.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        empty: bytes,
        differing: Callable[[bytes], str],
        *,
        durable: bool,
        timeout: float,
        worker: str = "",
    ) -> None:
        self.path, self._differing = os.fspath(path), differing
        self._place: tuple[int, int] | None = None  # device and inode of the file, once it is open
        _check_place(self.path)
        check_log(self.path)
        self._is_new = not os.path.exists(self.path)
        self.is_ending = False  # whether it is closed soon, and needs no log any more
        try:
            self._db = sqlite3.connect(
                self.path, timeout=timeout, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare_in_turn(empty, worker, durable=durable, timeout=timeout)
                # While it is open, the file never shrinks, and its log is never deleted or emptied.
                self._place, self._size = _seen(self.path)
                self._log, self._written = _seen(f"{self.path}-wal")
            except BaseException:
                self._db.close()
                raise
        except UnicodeDecodeError as error:  # SQLite's message has bytes of the file
            raise damaged(self.path, "its schema is not UTF-8") from error
        except sqlite3.DatabaseError as error:
            if is_damage(error):
                raise unreadable(self.path, error) from error
            raise StreamMetricsError(
                f"the store {self.path} cannot be opened ({error}): see that its folder may be "
                "written and has room, and that nobody holds the file"
            ) from error

    def _prepare_in_turn(self, empty: bytes, worker: str, *, durable: bool, timeout: float) -> None:
        """Prepare the file; workers that start together do it one after the other."""
        # SQLite waits for processes that write, but not for those that set the journal mode.
        until = time.monotonic() + timeout
        while True:
            try:
                return self._prepare(empty, worker, durable=durable)
            except sqlite3.OperationalError as error:
                is_busy = not is_damage(error) and error.sqlite_errorcode == sqlite3.SQLITE_BUSY
                if not is_busy or time.monotonic() > until:
                    raise
            time.sleep(_PAUSE)

    def _prepare(self, empty: bytes, worker: str, *, durable: bool) -> None:
        db = self._db
        # In this order, because a process creates the tables and sets the application id
        # atomically.
        (tables,) = db.execute("select count(*) from sqlite_master").fetchone()
        if tables:
            check_form(db, self.path)
        db.execute("pragma journal_mode=wal")
        db.execute(f"pragma journal_size_limit={_LOG}")
        db.execute(f"pragma synchronous={'full' if durable else 'normal'}")
        with self.writing():
            (tables,) = db.execute("select count(*) from sqlite_master").fetchone()
            if not tables:
                for statement in _SCHEMA.split(";")[:-1]:
                    db.execute(statement)
                db.execute(f"pragma application_id={_APPLICATION}")
                db.execute(f"pragma user_version={FORMAT}")
                db.execute("insert into empty values (?)", (empty,))
                db.execute("insert into base values (0, 0, '{}', 0, '')")
                self._seal()
            db.execute(_TEXTS)  # missing in older stores
        if lacking := sorted(_columns_of_schema() - _columns(db)):
            raise StateFormatError(
                f"{self.path} was written by another version, without {', '.join(lacking)}: open "
                "it with that one, or name a new file"
            )
        with self.reading():
            check_contents(db, self.path)
        (held,) = db.execute("select blob from empty").fetchone()
        if held != empty:
            try:
                told = self._differing(held)
            except StateFormatError as error:
                raise damaged(self.path, f"its configuration cannot be read, {error}") from error
            raise IncompatibleMetricsError(f"{self.path} is of another configuration: {told}")
        if worker:
            with self.writing():
                self.enter(worker)

    def check_place(self) -> None:
        """Raise if the path no longer leads to the file that was opened; writes would be lost.

        Raises:
            MissingStoreError: The file was deleted, truncated or replaced.
        """
        place, size = _seen(self.path)
        log, written = _seen(f"{self.path}-wal")
        if place is None:
            what = (
                "the file was deleted: move it back, or restart the service with a new, empty one"
            )
        elif place != self._place:
            what = "another file has its place: move it back, or restart the service with this one"
        elif size < self._size or (log and (log != self._log or written == 0 < self._written)):
            what = (
                f"it or its log {self.path}-wal was cut off or replaced: restart the service with "
                "a backup"
            )
        elif log is None:
            # All processes still have the log open: this moves what it holds to the file.
            self._db.execute("pragma wal_checkpoint")
            if self.is_ending:
                return
            what = f"its log {self.path}-wal was deleted: restart the service, which saves all"
        else:
            self._size, self._written = size, written
            return
        raise MissingStoreError(what)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read a snapshot of the file.

        Raises:
            StateFormatError: The file is damaged.
        """
        try:
            with Transaction(self._db, "begin"):
                yield
        except sqlite3.DatabaseError as error:
            if is_damage(error):
                raise unreadable(self.path, error) from error
            raise

    def writing(self) -> Transaction:
        """Return a transaction that excludes other writers.

        Raises:
            MissingStoreError: The file is gone, see `check_place`.
        """
        if self._place is not None:
            self.check_place()
        return Transaction(self._db, "begin immediate")

    @property
    def through(self) -> int:
        """The sequence number of the last part in the base."""
        (through,) = self._db.execute("select through from base").fetchone()
        return int(through)

    def base(self) -> Base | None:
        """Return the base, the state of all parts up to `through`; ``None`` before any fold.

        Raises:
            StateFormatError: Rows of the file are missing, or were changed.
        """
        check_contents(self._db, self.path)
        parts = self._db.execute("select blob from parts order by place").fetchall()
        documents = dict(self._db.execute("select name, blob from documents").fetchall())
        head = b"".join(blob for (blob,) in parts)
        size = len(head) + sum(map(len, documents.values()))
        return Base(head, documents, size) if parts else None

    def documents(self) -> set[str]:
        """Return the names of the documents of the base."""
        return {name for (name,) in self._db.execute("select name from documents")}

    def counters(self) -> dict[str, int]:
        """Return the counters of all workers, and `unmatched`, which belongs to the base."""
        (told,) = self._db.execute("select counters from base").fetchone()
        counters: dict[str, int] = json.loads(told)
        return counters

    def count(self, more: Mapping[str, int]) -> None:
        """Add to the counters of all workers."""
        told = self.counters()
        told |= {name: told.get(name, 0) + n for name, n in more.items()}
        counters = json.dumps(told)
        query = "update base set counters = ?, digest = substr(digest, 1, 64) || ?"
        self._db.execute(query, (counters, _sha256(counters.encode())))

    def since(self, seq: int) -> list[JournalPart] | None:
        """Return the parts after a sequence number, ``None`` if some exist only in the base.

        Raises:
            StateFormatError: Some are missing.
        """
        (kept,) = self._db.execute("select kept from base").fetchone()
        if seq < kept:
            return None
        query = "select seq, worker, number, blob from journal where seq > ? order by seq"
        parts = [JournalPart(*row) for row in self._db.execute(query, (seq,))]
        _check_numbers(self._db, self.path, [part.seq for part in parts], seq)
        return parts

    def last(self, worker: str) -> int:
        """Return the number of the last part of a worker, 0 if there is none."""
        query = "select number from workers where worker = ?"
        found = self._db.execute(query, (worker,)).fetchone()
        return 0 if found is None else int(found[0])

    def put(self, worker: str, number: int, blob: bytes) -> None:
        """Write a part, once however often this is tried.

        Raises:
            ForgottenError: Others have gone on without this worker.
        """
        db = self._db
        query = "select number, closed from workers where worker = ?"
        last, closed = db.execute(query, (worker,)).fetchone() or (0, None)
        if last >= number:
            return  # it is in the file
        if closed is None:
            raise ForgottenError(_FORGOTTEN)
        change = "update workers set number = ?, seen = ? where worker = ?"
        db.execute(change, (number, time.time(), worker))
        db.execute(
            "insert into journal (worker, number, blob) values (?, ?, ?)", (worker, number, blob)
        )

    def enter(self, worker: str) -> None:
        """Have the others wait for a worker, which takes nothing before it has read the file."""
        start = min([promise.final for promise in self.promises().values()], default=0)
        self._db.execute(
            "insert into workers values (?, 0, ?, ?, ?) on conflict (worker) do update "
            "set seen = excluded.seen, closed = excluded.closed, final = excluded.final",
            (worker, time.time(), start, start),
        )

    def promises(self) -> dict[str, Promise]:
        """Return what each worker promises that the others wait for."""
        query = "select worker, closed, final, seen from workers where closed is not null"
        return {worker: Promise(*promise) for worker, *promise in self._db.execute(query)}

    def promise(self, worker: str, promise: Promise) -> None:
        """Replace what a worker promises.

        Raises:
            ForgottenError: Others have gone on without this worker.
        """
        change = (
            "update workers set closed = ?, final = ?, seen = ? "
            "where worker = ? and closed is not null"
        )
        if not self._db.execute(change, (*promise, worker)).rowcount:
            raise ForgottenError(_FORGOTTEN)

    def leave_behind(self, worker: str, promise: Promise) -> None:
        """Wait no longer for a worker, unless it has written since."""
        self._db.execute(
            "update workers set closed = null where worker = ? and seen = ?", (worker, promise.seen)
        )

    @property
    def due(self) -> bool:
        """Whether the journal is long enough to be folded, and no worker has claimed it."""
        query = """
            select coalesce(sum(length(blob) + ?), 0) from journal
            where seq > (select through from base)
        """
        (waiting,) = self._db.execute(query, (_PART,)).fetchone()
        # A fold replaces the head of the base, and the documents of panes that have changed.
        size = """
            select (select coalesce(sum(length(blob)), 0) from parts) + coalesce(sum(
                length(blob)), 0) from documents where through = (select through from base)
        """
        (size,) = self._db.execute(size).fetchone()
        (claimed,) = self._db.execute("select claimed from base").fetchone()
        # Each claim quadruples the limit, so that another worker folds if the claimant has died.
        return bool(waiting > max(_LEAST, size // 2) << 2 * claimed)

    def claim(self) -> int:
        """Claim folding all parts; return the sequence number of the last one."""
        db = self._db
        db.execute("update base set claimed = claimed + 1")
        query = "select coalesce(max(seq), (select through from base)) from journal"
        (through,) = db.execute(query).fetchone()
        return int(through)

    def fold(self, through: int, unmatched: int, base: Base) -> None:
        """Replace the base by the state of the parts up to `through`, unless the base is newer.

        If another worker has removed a document that is needed, nothing changes, and the next fold
        writes it.
        """
        db, before = self._db, self.through
        lacking = {name for name, blob in base.documents.items() if not blob} - self.documents()
        if before >= through or lacking:
            return
        self._put_base(through, before, unmatched, base)
        db.execute("delete from workers where closed is null and seen < ?", (time.time() - _GONE,))

    def _put_base(self, through: int, kept: int, unmatched: int, base: Base) -> None:
        """Replace the base, and delete the parts of the journal up to `kept`."""
        db, there, documents = self._db, self.documents(), base.documents
        db.execute("delete from parts")
        for start in range(0, len(base.head), _CHUNK):
            chunk = base.head[start : start + _CHUNK]
            db.execute("insert into parts (blob) values (?)", (chunk,))
        gone = [(name,) for name in there - documents.keys()]
        db.executemany("delete from documents where name = ?", gone)
        new = [(name, through, documents[name]) for name in documents.keys() - there]
        db.executemany("insert into documents values (?, ?, ?)", new)
        db.execute(
            "update base set through = ?, kept = ?, counters = ?, claimed = 0",
            (through, kept, json.dumps({**self.counters(), "unmatched": unmatched})),
        )
        db.execute("delete from journal where seq <= ?", (kept,))
        self._seal()

    def _seal(self) -> None:
        """Record what the base has, so that `check_contents` finds what is missing."""
        self._db.execute("update base set digest = ?", (_digest(self._db),))

    def rewrite(self, unmatched: int, base: Base) -> None:
        """Replace the base by a state of all parts, and erase what was there before."""
        self._db.execute("pragma secure_delete=on")
        with self.writing():
            through = self.claim()
            self._put_base(through, through, unmatched, base)

    @property
    def unfolded(self) -> bool:
        """Whether some part is not in the base, and no worker has claimed it."""
        query = (
            "select claimed = 0 and exists (select * from journal where seq > through) from base"
        )
        (found,) = self._db.execute(query).fetchone()
        return bool(found)

    def texts(self) -> dict[str, str]:
        """Return the texts that workers share, by name."""
        return dict(self._db.execute("select name, told from texts").fetchall())

    def put_texts(self, told: Mapping[str, str]) -> None:
        """Replace some of the texts that workers share."""
        self._db.executemany("insert or replace into texts values (?, ?)", [*told.items()])

    def probe(self, size: int) -> None:
        """Raise if a part of `size` bytes cannot be written; call it within a transaction.

        The probe is rolled back, so that the space is available for the part itself.
        """
        db = self._db
        (cached,) = db.execute("pragma cache_size").fetchone()
        db.execute("pragma cache_size=1")  # write pages to the disk at once, not at the commit
        try:
            db.execute("savepoint probe")
            db.execute("insert into journal values (null, '', 0, zeroblob(?))", (size + _PROBE,))
            db.execute("rollback to probe")
            db.execute("update base set claimed = claimed")
        finally:
            db.execute(f"pragma cache_size={cached}")

    def forget(self, worker: str) -> None:
        """Remove a worker that writes no more; if this fails, it is removed later."""
        with suppress(sqlite3.Error), self.writing():
            self._db.execute("delete from workers where worker = ?", (worker,))

    def close(self) -> None:
        """Close the file."""
        with suppress(sqlite3.Error):
            self._db.execute("pragma wal_checkpoint")  # the log may have been deleted
        self._db.close()

    def remove_unused(self) -> None:
        """Remove the closed file if this object has made it, and nobody has used it."""
        # Others that have it open have a log.
        is_alone = not os.path.exists(f"{self.path}-wal")
        if self._is_new and is_alone and _seen(self.path)[0] == self._place:
            with closing(sqlite3.connect(self.path)) as db:
                query = (
                    "select not exists (select * from journal) and through = 0 and "
                    "not exists (select * from workers) from base"
                )
                (unused,) = db.execute(query).fetchone()
            if unused:
                os.unlink(self.path)


def check_form(db: sqlite3.Connection, path: str) -> None:
    """Raise unless a database is a store in a format that this version reads.

    Raises:
        StateFormatError: It is not; the message says what to do.
    """
    (application,) = db.execute("pragma application_id").fetchone()
    if application != _APPLICATION:
        raise StateFormatError(f"{path} is a database, but not a streammetrics store")
    (version,) = db.execute("pragma user_version").fetchone()
    if version > FORMAT:
        raise StateFormatError(
            f"{path} has format {version}; this version reads formats up to {FORMAT}: install the "
            "version that wrote it or a newer one, or restore a backup from before the upgrade "
            "with `streammetrics live restore`"
        )
    if version < 1:
        raise damaged(path, f"its format is {version}, which no version has")


def check_contents(db: sqlite3.Connection, path: str) -> None:
    """Raise if rows of a store are missing or were changed, in one transaction of the caller.

    The bytes of documents and of parts of the journal have checksums of their own.

    Raises:
        StateFormatError: The store is damaged.
    """
    for table, column, kind in db.execute(_COLUMNS).fetchall():
        query = f'select count(*) from "{table}" where typeof("{column}") not in (?, ?)'
        optional = "null" if column in _OPTIONAL else kind
        (n,) = db.execute(query, (kind, optional)).fetchone()
        if kind and n:
            raise damaged(path, f"its table {table} has {n} rows in which {column} is no {kind}")
    for table in ("base", "empty"):
        (n,) = db.execute(f"select count(*) from {table}").fetchone()
        if n != 1:
            raise damaged(path, f"its table {table} has {n} rows instead of 1")
    (expected,) = db.execute("select cast(digest as blob) from base").fetchone()
    if expected != _digest(db).encode():
        raise damaged(path, "rows of its tables base or documents are missing or were changed")
    query = "select through > 0 and not exists (select * from parts), kept from base"
    lacking, kept = db.execute(query).fetchone()
    if lacking:
        raise damaged(path, "its table parts has no rows")
    numbers = [seq for (seq,) in db.execute("select seq from journal order by seq")]
    _check_numbers(db, path, numbers, kept)


def _check_numbers(db: sqlite3.Connection, path: str, numbers: Sequence[int], start: int) -> None:
    """Raise unless parts of the journal have all numbers after `start` that were ever given."""
    query = "select seq from sqlite_sequence where name = 'journal'"
    (last,) = db.execute(query).fetchone() or (0,)
    ends = (numbers[0], numbers[-1]) if numbers else (start + 1, last)
    if len(numbers) != last - start or ends != (start + 1, last):
        raise damaged(
            path, f"its journal has {len(numbers):,} parts instead of those {start + 1} to {last}"
        )


def _digest(db: sqlite3.Connection) -> str:
    """Return two checksums: of the names of all documents and what they are of; of counters."""
    through, kept, counters = db.execute(
        "select through, kept, cast(counters as blob) from base"
    ).fetchone()
    names = db.execute("select cast(name as blob) from documents order by name").fetchall()
    return _sha256(repr((through, kept, names)).encode()) + _sha256(counters)


def _sha256(blob: bytes) -> str:
    return hashlib.sha256(blob).hexdigest()


def damaged(path: str, why: str) -> StateFormatError:
    """Return the error that a store is damaged."""
    return StateFormatError(
        f"the store {path} is damaged: {why}: restore an earlier backup with `streammetrics live "
        "restore`, or name a new file"
    )


def is_damage(error: sqlite3.Error) -> bool:
    """Return whether an error is about the bytes of a file, and not about access to it."""
    if isinstance(error, sqlite3.OperationalError):
        return not hasattr(error, "sqlite_errorcode")  # Python's, of text that is not UTF-8
    return type(error) is sqlite3.DatabaseError


def unreadable(path: str, error: sqlite3.Error) -> StateFormatError:
    """Return the error about a file for which `is_damage` holds."""
    if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_NOTADB:
        return StateFormatError(f"{path} is not a streammetrics store: {error}")
    return damaged(path, str(error))


def _columns(db: sqlite3.Connection) -> set[str]:
    """Return the columns of all tables, as TABLE.COLUMN."""
    return {f"{table}.{column}" for table, column, _ in db.execute(_COLUMNS)}


def _columns_of_schema() -> set[str]:
    """Return the columns of a new store."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(_SCHEMA)
        return _columns(db)


def _seen(path: str) -> tuple[tuple[int, int] | None, int]:
    """Return the device and inode of a file, ``None`` if it does not exist, and its size."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None, 0
    return (found.st_dev, found.st_ino), found.st_size


def _check_place(path: str) -> None:
    """Raise if no file can be at the path; SQLite's error would not name it."""
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, "there is no folder for the store", folder)
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, "a store is a file, and this is a folder", path)


def check_log(path: str) -> None:
    """Raise if a store is empty, or is not there, but a log with what it held is.

    SQLite would take it as new and delete the log. A store that is made has no log before it has a
    header.

    Raises:
        StateFormatError: The store was deleted or emptied while nobody used it.
    """
    if not _seen(path)[1] and _seen(f"{path}-wal")[1]:
        raise damaged(path, f"it is empty or gone, and its log {path}-wal is not")


class Transaction:
    """A transaction that commits at the end, or rolls back after an exception."""

    def __init__(self, db: sqlite3.Connection, begin: str) -> None:
        self._db, self._begin = db, begin

    def __enter__(self) -> None:
        self._db.execute(self._begin)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            try:
                self._db.execute("commit")
            except sqlite3.Error:
                self._roll_back()
                raise
        else:
            self._roll_back()

    def _roll_back(self) -> None:
        if self._db.in_transaction:
            self._db.execute("rollback")
