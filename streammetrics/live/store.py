"""A file in which events survive, and who writes it."""

from __future__ import annotations

import atexit
import errno
import json
import os
import sqlite3
import threading
import time
import uuid
import weakref
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple, Protocol

from streammetrics.core.errors import IncompatibleMetricsError, StateFormatError, StreamMetricsError
from streammetrics.core.locks import Locked
from streammetrics.live.events import read, written
from streammetrics.live.telling import tell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from streammetrics.live.events import Events


FORMAT = 1
_APPLICATION = 0x736D4C76  # by which SQLite files of ours are known
_CHUNK = 64 << 20  # bytes of a row, of which SQLite takes no more than 10^9
_LEAST = 1 << 20  # bytes of the journal that are worth a fold
_PART = 1 << 13  # bytes that a part counts as beside its own, as each takes its time to be read
_LOG = 4 << 20  # bytes that stay with the log in which SQLite writes ahead
_PROBE = 1 << 16  # bytes that are probed for beside a part: pages of tables, and of the cache
_PAUSE = 0.01  # seconds between attempts to prepare a file
_GONE = 86_400 * 2  # seconds without a sign after which a worker is forgotten
_SCHEMA = """
create table empty (blob blob not null);
create table base (
    through integer not null, kept integer not null, counters text not null,
    claimed integer not null
);
create table parts (place integer primary key, blob blob not null);
create table journal (
    seq integer primary key autoincrement,
    worker text not null, number integer not null, blob blob not null
);
create table workers (worker text primary key, number integer not null, seen real not null);
"""
_ALERTS = "create table if not exists alerts (name text primary key, told text not null)"
_COLUMNS = """
select tables.name || '.' || columns.name
from sqlite_master as tables, pragma_table_info(tables.name) as columns
where tables.type = 'table'
"""


class MissingStoreError(sqlite3.OperationalError):
    """The file or its log was deleted or cut off, or another file has its place."""


class Base(NamedTuple):
    """A state that all parts up to a number are folded into, and what is counted beside it."""

    through: int
    counters: dict[str, int]
    blob: bytes


class JournalPart(NamedTuple):
    """A part of the journal."""

    seq: int
    worker: str
    number: int
    blob: bytes


class Store:
    """One file, as one process has it open; whoever calls holds a lock of its own.

    Args:
        path: The file, which is made where there is none.
        empty: The state of no events, by which stores of another configuration are told.
        differing: Says in what such a state of a store differs.
        durable: Whether what is written is on the disk, and not only with the system.
        timeout: Seconds to wait for others who write.

    Raises:
        StateFormatError: The file is no store, or of another format.
        IncompatibleMetricsError: It is one of another configuration.
        StreamMetricsError: It cannot be opened: others have it, there is no room, or no permission.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        empty: bytes,
        differing: Callable[[bytes], str],
        *,
        durable: bool,
        timeout: float,
    ) -> None:
        self.path, self._differing = os.fspath(path), differing
        self._place: tuple[int, int] | None = None  # of the file, once it is open
        _check_place(self.path)
        try:
            self._db = sqlite3.connect(
                self.path, timeout=timeout, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare_in_turn(empty, durable=durable, timeout=timeout)
                # While it is open, the file never shrinks, and its log is never deleted or emptied.
                self._place, self._size = _seen(self.path)
                self._log, self._written = _seen(f"{self.path}-wal")
            except BaseException:
                self._db.close()
                raise
        except sqlite3.OperationalError as error:
            raise StreamMetricsError(
                f"the store {self.path} cannot be opened ({error}): see that its folder may be "
                "written and has room, and that nobody holds the file"
            ) from error
        except sqlite3.DatabaseError as error:
            raise StateFormatError(f"{self.path} is no store of streammetrics: {error}") from error

    def _prepare_in_turn(self, empty: bytes, *, durable: bool, timeout: float) -> None:
        """Prepare the file; of workers that start together, one after the other."""
        # SQLite waits for whoever writes, but not for whoever changes the mode of the journal.
        until = time.monotonic() + timeout
        while True:
            try:
                return self._prepare(empty, durable=durable)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise
            time.sleep(_PAUSE)

    def _prepare(self, empty: bytes, *, durable: bool) -> None:
        db = self._db
        # In this order: whoever makes the tables at this moment says in one step whose they are.
        (tables,) = db.execute("select count(*) from sqlite_master").fetchone()
        (application,) = db.execute("pragma application_id").fetchone()
        if tables and application != _APPLICATION:
            raise StateFormatError(f"{self.path} is a database, but no store of streammetrics")
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
                db.execute("insert into base values (0, 0, '{}', 0)")
            db.execute(_ALERTS)  # which older stores do not have
        (version,) = db.execute("pragma user_version").fetchone()
        if version > FORMAT:
            raise StateFormatError(
                f"{self.path} has format {version}; this version reads formats up to {FORMAT}"
            )
        if lacking := sorted(_columns_of_schema() - _columns(db)):
            raise StateFormatError(
                f"{self.path} was written by another version, without {', '.join(lacking)}: open "
                "it with that one, or name a new file"
            )
        ((held,),) = db.execute("select blob from empty").fetchall()
        if held != empty:
            told = self._differing(held)
            raise IncompatibleMetricsError(f"{self.path} is of another configuration: {told}")

    def check_place(self) -> None:
        """Raise where a file is no longer the one that was opened: what is written is nowhere.

        Raises:
            MissingStoreError: It was deleted or cut off, or another file has its place.
        """
        place, size = _seen(self.path)
        log, written = _seen(f"{self.path}-wal")
        if place is None:
            what = "the file was deleted: put it back, or restart the service with a new one"
        elif place != self._place:
            what = "another file has its place: restart the service to go on with that one"
        elif size < self._size or log != self._log or written == 0 < self._written:
            what = (
                f"it or its log {self.path}-wal was cut off, deleted or replaced: end the service, "
                "which saves what it still can, and start it again"
            )
        else:
            self._size, self._written = size, written
            return
        raise MissingStoreError(what)

    def reading(self) -> Transaction:
        """Return a transaction in which the file is read as it is at one moment."""
        return Transaction(self._db, "begin")

    def writing(self) -> Transaction:
        """Return a transaction in which nobody else writes.

        Raises:
            MissingStoreError: The file is no longer there, see `check_place`.
        """
        if self._place is not None:
            self.check_place()
        return Transaction(self._db, "begin immediate")

    def base(self) -> Base:
        """Return the base; of no bytes where nothing was folded yet."""
        through, counters = self._db.execute("select through, counters from base").fetchone()
        parts = self._db.execute("select blob from parts order by place").fetchall()
        return Base(through, json.loads(counters), b"".join(blob for (blob,) in parts))

    def since(self, seq: int) -> list[JournalPart] | None:
        """Return the parts after one, ``None`` where some of them are in the base alone."""
        (kept,) = self._db.execute("select kept from base").fetchone()
        if seq < kept:
            return None
        query = "select seq, worker, number, blob from journal where seq > ? order by seq"
        return [JournalPart(*row) for row in self._db.execute(query, (seq,))]

    def last(self, worker: str) -> int:
        """Return the number of the last part of a worker, 0 where there is none."""
        query = "select number from workers where worker = ?"
        found = self._db.execute(query, (worker,)).fetchone()
        return 0 if found is None else int(found[0])

    def put(self, worker: str, number: int, blob: bytes) -> None:
        """Write a part, once however often it is tried."""
        db = self._db
        if self.last(worker) >= number:
            return  # it came through
        db.execute("insert or replace into workers values (?, ?, ?)", (worker, number, time.time()))
        db.execute(
            "insert into journal (worker, number, blob) values (?, ?, ?)", (worker, number, blob)
        )

    @property
    def due(self) -> bool:
        """Whether the journal is long enough to be folded, and nobody is about to."""
        query = """
            select coalesce(sum(length(blob) + ?), 0) from journal
            where seq > (select through from base)
        """
        (waiting,) = self._db.execute(query, (_PART,)).fetchone()
        (size,) = self._db.execute("select coalesce(sum(length(blob)), 0) from parts").fetchone()
        (claimed,) = self._db.execute("select claimed from base").fetchone()
        # Whoever has claimed it may be gone: then it is another's turn when there is more to do.
        return bool(waiting > max(_LEAST, size // 2) << 2 * claimed)

    def claim(self) -> int:
        """Say that all parts are about to be folded; return the number of the last of them."""
        db = self._db
        db.execute("update base set claimed = claimed + 1")
        query = "select coalesce(max(seq), (select through from base)) from journal"
        (through,) = db.execute(query).fetchone()
        return int(through)

    def fold(self, through: int, counters: dict[str, int], blob: bytes) -> None:
        """Replace the base by a state of the parts up to one, unless it is newer already."""
        db = self._db
        (before,) = db.execute("select through from base").fetchone()
        if before >= through:
            return
        db.execute("delete from parts")
        for start in range(0, len(blob), _CHUNK):
            db.execute("insert into parts (blob) values (?)", (blob[start : start + _CHUNK],))
        db.execute(
            "update base set through = ?, kept = ?, counters = ?, claimed = 0",
            (through, before, json.dumps(counters)),
        )
        db.execute("delete from journal where seq <= ?", (before,))
        db.execute("delete from workers where seen < ?", (time.time() - _GONE,))

    @property
    def unfolded(self) -> bool:
        """Whether there is a part that is not in the base, and nobody is about to fold it."""
        query = (
            "select claimed = 0 and exists (select * from journal where seq > through) from base"
        )
        (found,) = self._db.execute(query).fetchone()
        return bool(found)

    def alerts(self) -> dict[str, str]:
        """Return what is told of each alert."""
        return dict(self._db.execute("select name, told from alerts order by rowid").fetchall())

    def put_alerts(self, told: Mapping[str, str]) -> None:
        """Replace what is told of all alerts."""
        self._db.execute("delete from alerts")
        self._db.executemany("insert into alerts values (?, ?)", [*told.items()])

    def probe(self, size: int) -> None:
        """Raise where a part of so many bytes cannot be written; in a transaction.

        The bytes are taken back, so that the room is there for the part itself.
        """
        db = self._db
        (cached,) = db.execute("pragma cache_size").fetchone()
        db.execute("pragma cache_size=1")  # pages go to the disk at once, and not at the commit
        try:
            db.execute("savepoint probe")
            db.execute("insert into journal values (null, '', 0, zeroblob(?))", (size + _PROBE,))
            db.execute("rollback to probe")
            db.execute("update base set claimed = claimed")
        finally:
            db.execute(f"pragma cache_size={cached}")

    def forget(self, worker: str) -> None:
        """Forget a worker that writes no more; where that fails, it is forgotten in time."""
        with suppress(sqlite3.Error), self.writing():
            self._db.execute("delete from workers where worker = ?", (worker,))

    def close(self) -> None:
        """Close the file."""
        self._db.close()


def _columns(db: sqlite3.Connection) -> set[str]:
    """Return the columns of all tables, each after its table."""
    return {name for (name,) in db.execute(_COLUMNS)}


def _columns_of_schema() -> set[str]:
    """Return the columns of a store that is made now."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(_SCHEMA)
        return _columns(db)


def _seen(path: str) -> tuple[tuple[int, int] | None, int]:
    """Return which file stands at a path, ``None`` where there is none, and its size."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None, 0
    return (found.st_dev, found.st_ino), found.st_size


def _check_place(path: str) -> None:
    """Raise where there cannot be a file, which SQLite would only say without its name."""
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, "there is no folder for the store", folder)
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, "a store is a file, and this is a folder", path)


class Transaction:
    """A transaction that is committed, or rolled back where anything is raised."""

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


_TIMEOUT = 1.0  # seconds to wait for another who writes
PATIENCE = 30.0  # the same at the end, when what waits would be lost
_BUSY = 5.0  # seconds for which others may have the file before it is told: it is theirs, too
_KEEPER_PAUSE = 0.05
_TOGETHER = 64  # calls whose events make one part, where many are written at once


class StoreError(StreamMetricsError):
    """A durable store cannot be written just now, and nothing was kept of what came.

    Attributes:
        full: Whether there is no room on its disk; else others hold it, or it cannot be reached.
    """

    def __init__(self, path: str, why: str, *, full: bool) -> None:
        advice = "make room on its disk" if full else "send it again in a second"
        super().__init__(f"the store {path} cannot be written ({why}), nothing was kept: {advice}")
        self.full = full


class StoreWarning(UserWarning):
    """A store cannot be written just now; events are kept in memory and it is tried again."""


class Image(NamedTuple):
    """A stream at one moment."""

    events: list[Events]  # which are in it, and were not taken before
    counters: dict[str, int]  # what is counted beside the state
    blob: Callable[[], bytes]  # the state, which takes its time


class Kept(Protocol):
    """What a keeper keeps: the owner of a stream and of the lock around it."""

    def _unwritten(self) -> int:
        """Return how many events came since the last call of `_taken`."""

    def _taken(self) -> list[Events]:
        """Take all events that came since the last call, which are in the stream already."""

    def _apply(self, events: list[Events]) -> None:
        """Bring events of other workers to the stream."""

    def _restore(self, blob: bytes, counters: Mapping[str, int], events: list[Events]) -> None:
        """Put a state in the place of the stream, and then events."""

    def _differing(self, blob: bytes) -> str:
        """Return in what another state's configuration differs."""

    def _image(self) -> Image:
        """Return the stream as it is, and take the events as `_taken` does."""


class Keeper:
    """Writes the events of one worker to a store, and reads those of the others.

    Its lock is taken before the owner's, never after it. Where the file cannot be written, events
    stay in memory and are tried again.
    """

    def __init__(
        self, kept: Kept, path: str, empty: bytes, *, durable: bool, every: float = 1.0
    ) -> None:
        self._kept = weakref.ref(kept)
        self._path, self._empty, self.durable = path, empty, durable
        self._guard, self._every = Locked(), every
        self._using: object = None  # the lock of whose thread uses the store just now
        self.failures = 0  # attempts to read or write that failed
        self.trouble = ""  # why the file cannot be written, nothing while it can
        self.is_gone = False  # whether that is because the file was deleted or replaced
        self._busy = 0.0  # since when attempts fail
        self._refused = 0  # bytes of the last call that was refused
        self._warning, self._told = "", False
        self._holds = False  # whether what comes is written later, and all of it at once
        self._start()
        self._load()
        _KEEPERS.add(self)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the lock, or raise where this has interrupted its own thread as that held it."""
        lock = self._guard._lock
        with lock:
            if self._using is lock:
                raise StreamMetricsError(
                    "the store is in use in this thread, which was interrupted: a signal's handler "
                    "writes and reads it in a thread of its own"
                )
            self._using = lock
            try:
                self._check_process()
                yield
            finally:
                self._using = None

    def _start(self) -> None:
        """Begin as a worker of its own, with nothing to write."""
        kept = self._kept()
        assert kept is not None  # who calls is a method of it
        self._store = Store(
            self._path, self._empty, kept._differing, durable=self.durable, timeout=_TIMEOUT
        )
        self._forked = False
        self.worker, self._number = uuid.uuid4().hex, 0
        self._seen = 0  # the last part of the journal that is in the stream
        self._waiting: list[Events] = []  # of this worker, not yet part of one
        self._part: tuple[int, bytes] | None = None  # a part of which nobody knows
        self._mine: list[Events] = []  # what is in that part
        self._given_up: set[int] = set()  # parts of which a call said that they are not written
        self._stop = threading.Event()
        threading.Thread(
            target=_run, args=(weakref.ref(self), self._stop, self._every), daemon=True
        ).start()

    def sync(self) -> None:
        """Read what others have written."""
        with self._alone():
            try:
                self._read()
            except sqlite3.OperationalError as error:
                self._failed(error)
        self._tell()

    def commit(
        self, events: Sequence[Events], check: Callable[[], None], take: Callable[[], None]
    ) -> None:
        """Write events, and take them once they are on the disk.

        Args:
            events: The events.
            check: Raises where they would be refused; nobody else changes the state before `take`.
            take: Brings them to the stream.

        Raises:
            StoreError: They cannot be written; nothing has changed.
        """
        with self._alone():
            check()
            blob = written(events)
            try:
                with self._store.writing():
                    self._learn_number()
                    self._store.put(self.worker, self._number + 1, blob)
            except sqlite3.Error as error:
                self._failed(error)
                if not self._came_through():
                    full = _code(error) == sqlite3.SQLITE_FULL
                    self._refused = len(blob)
                    raise StoreError(self._path, str(error), full=full) from error
            self._number += 1
            self._recovered()
            take()

    def _learn_number(self) -> None:
        """Learn whether a part that was given up is in the file all the same."""
        last = self._store.last(self.worker)
        if last > self._number:
            self._given_up.add(last)
            self._number = last

    def _came_through(self) -> bool:
        """Whether the part is in the file, although writing it failed."""
        try:
            return self._store.last(self.worker) > self._number
        except sqlite3.Error:
            return False

    def write(self) -> bool:
        """Write what came; return whether it is in the file."""
        done = self.try_to_write()
        self._tell()
        return done

    @contextmanager
    def all_or_none(self) -> Iterator[None]:
        """Write all events that come in the block in one transaction; none where it raises.

        After that the owner is not to be used: its events are nowhere else. What comes after the
        block is written within a second, as where the store is not durable.

        Raises:
            StoreError: The file cannot be written.
        """
        self.durable, self._holds = False, True
        try:
            yield
            self._write_together()
        except BaseException:
            self._drop()
            raise
        self._holds = False

    def _write_together(self) -> None:
        """Write all that came in one transaction, as parts of bounded size."""
        kept = self._kept()
        assert kept is not None  # who calls holds it
        until = time.monotonic() + PATIENCE
        with self._alone():
            events = [*self._waiting, *kept._taken()]
            firsts = range(0, len(events), _TOGETHER)
            while True:
                try:
                    with self._store.writing():
                        self._learn_number()
                        for number, first in enumerate(firsts, self._number + 1):
                            part = written(events[first : first + _TOGETHER])
                            self._store.put(self.worker, number, part)
                except sqlite3.Error as error:
                    if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                        full = _code(error) == sqlite3.SQLITE_FULL
                        raise StoreError(self._path, str(error), full=full) from error
                    time.sleep(_KEEPER_PAUSE)
                else:
                    break
            self._number += len(firsts)
            self._waiting = []

    def _drop(self) -> None:
        """Close the file, and write nothing of what came."""
        with self._alone():
            self._stop.set()
            self._store.close()
            _KEEPERS.discard(self)

    def try_to_write(self) -> bool:
        """Write what came, and keep to itself what fails."""
        if self._holds:
            return False

        def write() -> None:
            self._append()
            self._fold()
            self._recovered()

        return self._try(write)

    def _try(self, write: Callable[[], None]) -> bool:
        """Write, and return whether that went well; a keeper that is closed writes no more."""
        with self._alone():
            if self._stop.is_set():
                return False
            try:
                write()
            except (sqlite3.Error, StreamMetricsError) as error:
                self._failed(error)
                return False
            return True

    @property
    def waiting(self) -> int:
        """How many events are not in the file, as it could not be written."""
        return sum(len(events.times) for events in [*self._waiting, *self._mine])

    @property
    def unwritten(self) -> int:
        """How many events are in memory alone."""
        kept = self._kept()
        return self.waiting + (0 if kept is None else kept._unwritten())

    def close(self) -> None:
        """Write what came, and close the file.

        Raises:
            StreamMetricsError: It cannot be written, and events would be lost; nothing was closed.
        """
        until = time.monotonic() + PATIENCE
        while not self._try(self._append) and self.unwritten:
            self._tell()
            if time.monotonic() > until:
                raise StreamMetricsError(
                    "the store cannot be written, and would lose events: close() again when it "
                    "can be"
                )
            time.sleep(_KEEPER_PAUSE)
        self._try(
            self._fold_rest
        )  # once: what is written is safe, and others fold it if this fails
        with self._alone():
            self._stop.set()
            self._store.forget(self.worker)
            self._store.close()
            _KEEPERS.discard(self)

    def _append(self) -> None:
        """Write what came as a part, which counts once, whatever becomes of an attempt."""
        kept = self._kept()
        if kept is not None:
            self._waiting += kept._taken()
        self._store.check_place()
        if self.trouble and self._part is None and not self._waiting:
            with self._store.writing():
                self._store.probe(self._refused)
        while self._part is not None or self._waiting:
            self._make_part()
            with self._store.writing():
                self._put_part()
            self._part, self._mine = None, []

    def _make_part(self) -> None:
        if self._part is None and self._waiting:
            self._mine, self._waiting = self._waiting, []
            self._number += 1
            self._part = self._number, written(self._mine)

    def _put_part(self) -> None:
        if self._part is not None:
            self._store.put(self.worker, *self._part)

    def _read(self) -> None:
        with self._store.reading():
            found = self._store.since(self._seen)
        if found is None:  # others have folded twice meanwhile
            self._load()
        else:
            self._follow(found)

    @contextmanager
    def _decoding(self) -> Iterator[None]:
        """Raise about the file where what it holds is no state, or no events."""
        try:
            yield
        except StateFormatError as error:
            raise StateFormatError(f"the store {self._path} is damaged: {error}") from error

    def _follow(self, parts: list[JournalPart]) -> None:
        """Bring parts of others to the stream."""
        kept = self._kept()
        others = [part for part in parts if not self._has(part)]
        if others and kept is not None:
            with self._decoding():
                events = [events for part in others for events in read(part.blob)]
            kept._apply(events)
        self._seen = parts[-1].seq if parts else self._seen

    def _has(self, part: JournalPart) -> bool:
        """Whether a part is in the stream, as it was written here."""
        return part.worker == self.worker and part.number not in self._given_up

    def _load(self) -> None:
        """Put what the file says in the place of the stream, and what is not in it yet."""
        kept = self._kept()
        if kept is None:
            return
        self._waiting += kept._taken()
        with self._store.reading():
            base = self._store.base()
            parts = self._store.since(base.through) or []
            came_through = self._store.last(self.worker) >= self._number
        mine = [] if self._part is None or came_through else self._mine
        with self._decoding():
            events = [event for part in parts for event in read(part.blob)]
            kept._restore(base.blob, base.counters, [*events, *mine, *self._waiting])
        self._seen = parts[-1].seq if parts else base.through

    def alerts(self) -> dict[str, str]:
        """Return what the file tells of each alert, nothing where it cannot be read."""
        found: dict[str, str] = {}
        self._try(lambda: found.update(self._store.alerts()))
        return found

    def put_alerts(self, told: Mapping[str, str]) -> bool:
        """Write what is told of all alerts; return whether it is in the file."""

        def write() -> None:
            with self._store.writing():
                self._store.put_alerts(told)

        return self._try(write)

    def _fold(self) -> None:
        """Make all parts up to now one state, where they are worth it."""
        if self._store.due:
            self._fold_all(lambda: self._store.due)

    def _fold_rest(self) -> None:
        """Make all parts one state, so that who opens the file next reads that alone."""
        if self._store.unfolded:
            self._fold_all(lambda: self._store.unfolded)

    def _fold_all(self, due: Callable[[], bool]) -> None:
        """Make all parts up to now one state, unless that is no longer due."""
        self._read()
        kept = self._kept()
        if kept is None:
            return
        with self._store.writing():
            found = self._store.since(self._seen)
            if found is None or not due():  # another was first
                return
            self._follow(found)
            image = kept._image()
            self._waiting += image.events
            self._make_part()
            self._put_part()
            through = self._store.claim()
        self._part, self._mine, self._seen = None, [], through
        blob = image.blob()  # while others write
        with self._store.writing():
            self._store.fold(through, image.counters, blob)

    def forked(self) -> None:
        """Learn that this is another process now: what waits is its parent's to write."""
        kept = self._kept()
        if kept is not None:
            kept._taken()
        _LEFT.append(self._store)  # which a child must not close
        self._forked = True

    def _check_process(self) -> None:
        if self._forked:
            self._start()
            self._load()

    def _failed(self, error: Exception) -> None:
        self.failures += 1
        self.is_gone = isinstance(error, MissingStoreError)
        now = time.monotonic()
        self._busy = self._busy or now
        if _code(error) == sqlite3.SQLITE_BUSY and now - self._busy < _BUSY:
            self.trouble = self.trouble or "others hold the file"
            return
        self.trouble = str(error)
        if not self.durable:  # else each call raises
            self._warning = self._warning or str(error)

    def _recovered(self) -> None:
        """Note that the file can be written."""
        self.trouble, self.is_gone, self._busy, self._refused = "", False, 0.0, 0

    def _tell(self) -> None:
        """Warn once of what failed, in a thread of the user's."""
        if self._warning and not self._told:
            self._told = True
            tell(
                f"the store cannot be used ({self._warning}): events are kept in memory, and it "
                "is tried again each second",
                StoreWarning,
            )


def _code(error: Exception) -> int:
    """Return the code of an error of SQLite, of which there are finer kinds."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _run(keeper: weakref.ref[Keeper], stop: threading.Event, every: float) -> None:
    while not stop.wait(every):
        mine = keeper()
        if mine is None:
            return
        mine.try_to_write()
        del mine


_KEEPERS: weakref.WeakSet[Keeper] = weakref.WeakSet()
_LEFT: list[Store] = []


def _forked() -> None:
    for keeper in list(_KEEPERS):
        keeper.forked()


def _at_exit() -> None:
    for keeper in list(_KEEPERS):
        keeper.try_to_write()


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):  # not on Windows, where no process is forked
    os.register_at_fork(after_in_child=_forked)
