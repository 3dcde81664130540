"""The journal of a live state: writes its events to the store, and reads those of other workers."""

from __future__ import annotations

import atexit
import os
import sqlite3
import threading
import time
import uuid
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from streammetrics.core.errors import (
    IncompatibleMetricsError,
    StateFormatError,
    StreamMetricsError,
    warn_caller,
)
from streammetrics.core.locks import Locked
from streammetrics.live.events import read, written
from streammetrics.live.pipeline import Pipeline
from streammetrics.live.serialization import bytes_of, pipeline_of
from streammetrics.live.store import MissingStoreError, Store, StoreError, StoreWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from streammetrics.live.events import Events
    from streammetrics.live.pipeline import SharedPipeline
    from streammetrics.live.store import JournalPart


_TIMEOUT = 1.0  # seconds to wait for another writer
PATIENCE = 30.0  # seconds to wait in close(), when events would be lost
_BUSY = 5.0  # seconds for which others may lock the file without a warning
_PAUSE = 0.05  # seconds between attempts in close()
_TOGETHER = 64  # number of event blocks in a part, when many are written at once


class EventSource(Protocol):
    """The source and sink of events: an `Ingest`, which owns the journal."""

    shared: SharedPipeline

    @property
    def unwritten(self) -> int:
        """The number of events since the last `take_arrived`."""

    def take_arrived(self) -> list[Events]:
        """Return the events since the last call; they are already in the pipeline."""

    def snapshot(self) -> Pipeline:
        """Return a settled copy of the pipeline."""

    def apply(self, events: Sequence[Events]) -> None:
        """Transfer events of other workers to the pipeline."""

    def replace(self, pipeline: Pipeline, events: Sequence[Events]) -> None:
        """Use another pipeline, with these events and those not yet in the journal."""


class Journal:
    """Writes the events of one worker to a store, and reads those of the others.

    Its lock is acquired before that of the pipeline, never after it. While the file cannot be
    written, events stay in memory, and writing is retried.

    Args:
        source: The source of events.
        cls: The class of the live state, recorded in serialized states.
        path: The file.
        durable: Whether events are on the disk when `commit` returns.
        every: Seconds between two writes.
    """

    def __init__(
        self, source: EventSource, cls: type, path: str, *, durable: bool, every: float = 1.0
    ) -> None:
        self._source, self._cls = weakref.ref(source), cls  # the source owns this object
        self._path, self.durable = path, durable
        shared = source.shared
        self._empty = Pipeline(shared.suite, shared.config)
        self._guard, self._every = Locked(), every
        self._using: object = None  # the lock, while its thread uses the store
        self.failures = 0  # number of failed attempts to read or write
        self.trouble = ""  # why the file cannot be written; empty if it can
        self.is_gone = False  # whether the file was deleted or replaced
        self._busy = 0.0  # time of the first of the current failures
        self._refused = 0  # bytes of the last rejected call
        self._warning, self._warned = "", False
        self._holds = False  # whether writing is deferred, to write all events at once
        self._start()
        self._load()
        _JOURNALS.add(self)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the lock; raise if a signal handler calls this while its thread holds it."""
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
        """Start as a new worker without unwritten events."""
        self._store = open_store(
            self._path, self._cls, self._empty, durable=self.durable, timeout=_TIMEOUT
        )
        self._forked = False
        self.worker, self._number = uuid.uuid4().hex, 0
        self._seen = 0  # sequence number of the last part that is in the pipeline
        self._waiting: list[Events] = []  # events of this worker that are not yet in a part
        self._part: tuple[int, bytes] | None = None  # a part that may or may not be in the file
        self._mine: list[Events] = []  # the events of that part
        self._given_up: set[int] = set()  # numbers of parts whose call has raised
        self._stop = threading.Event()
        threading.Thread(
            target=_run, args=(weakref.ref(self), self._stop, self._every), daemon=True
        ).start()

    def sync(self) -> None:
        """Read the events of other workers."""
        with self._alone():
            try:
                self._read()
            except sqlite3.OperationalError as error:
                self._failed(error)
        self._warn()

    def commit(
        self, events: Sequence[Events], check: Callable[[], None], take: Callable[[], None]
    ) -> None:
        """Write events, and take them once they are on the disk.

        Args:
            events: The events.
            check: Raises if they would be rejected; the state cannot change between `check` and
                `take`.
            take: Transfers them to the stream.

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
                    self._refused = len(blob)
                    raise self._store_error(error) from error
            self._number += 1
            self._recovered()
            take()

    def _learn_number(self) -> None:
        """Detect whether a part whose call has raised was written nevertheless."""
        last = self._store.last(self.worker)
        if last > self._number:
            self._given_up.add(last)
            self._number = last

    def _came_through(self) -> bool:
        """Return whether the part is in the file although writing it raised."""
        try:
            return self._store.last(self.worker) > self._number
        except sqlite3.Error:
            return False

    def write(self) -> bool:
        """Write all new events; return whether they are in the file."""
        done = self.try_to_write()
        self._warn()
        return done

    @contextmanager
    def all_or_none(self) -> Iterator[None]:
        """Write all events of the block in one transaction, or none if it raises.

        After an error, the live state must not be used any more, because its events are lost.
        Events after the block are written within a second, as with a store that is not durable.

        Raises:
            StoreError: The file cannot be written.
        """
        self.durable, self._holds = False, True
        try:
            yield
            self._write_together()
        except BaseException:
            self.drop()
            raise
        self._holds = False

    def _write_together(self) -> None:
        """Write all new events in one transaction, as parts of bounded size."""
        source = self._source()
        assert source is not None  # the caller holds it
        until = time.monotonic() + PATIENCE
        with self._alone():
            events = [*self._waiting, *source.take_arrived()]
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
                        raise self._store_error(error) from error
                    time.sleep(_PAUSE)
                else:
                    break
            self._number += len(firsts)
            self._waiting = []

    def _store_error(self, error: sqlite3.Error) -> StoreError:
        full = _code(error) == sqlite3.SQLITE_FULL
        return StoreError(self._path, str(error), full=full)

    def drop(self) -> None:
        """Close the file without writing new events."""
        with self._alone():
            self._stop.set()
            self._store.close()
            _JOURNALS.discard(self)

    def try_to_write(self) -> bool:
        """Write all new events; do not warn if this fails."""
        if self._holds:
            return False

        def write() -> None:
            self._append()
            self._fold()
            self._recovered()

        return self._try(write)

    def _try(self, write: Callable[[], None]) -> bool:
        """Run `write`; return whether it succeeded. A closed journal writes nothing."""
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
        """The number of events that are not in the file because it could not be written."""
        return sum(len(events.times) for events in [*self._waiting, *self._mine])

    @property
    def unwritten(self) -> int:
        """The number of events that are only in memory."""
        source = self._source()
        return self.waiting + (0 if source is None else source.unwritten)

    def close(self) -> None:
        """Write all new events, and close the file.

        Raises:
            StreamMetricsError: The file cannot be written, and events would be lost; nothing was
                closed.
        """
        until = time.monotonic() + PATIENCE
        while not self._try(self._append) and self.unwritten:
            self._warn()
            if time.monotonic() > until:
                raise StreamMetricsError(
                    "the store cannot be written, and would lose events: close() again when it "
                    "can be"
                )
            time.sleep(_PAUSE)
        self._try(
            self._fold_rest
        )  # tried once: the events are in the file, and other workers can fold them
        with self._alone():
            self._stop.set()
            self._store.forget(self.worker)
            self._store.close()
            _JOURNALS.discard(self)

    def _append(self) -> None:
        """Write all new events as a part, which counts once however often it is tried."""
        source = self._source()
        if source is not None:
            self._waiting += source.take_arrived()
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
        if found is None:  # others have folded the journal twice meanwhile
            self._load()
        else:
            self._follow(found)

    @contextmanager
    def _decoding(self) -> Iterator[None]:
        """Name the file in errors about its contents."""
        try:
            yield
        except StateFormatError as error:
            raise StateFormatError(f"the store {self._path} is damaged: {error}") from error

    def _follow(self, parts: list[JournalPart]) -> None:
        """Transfer parts of other workers to the pipeline."""
        source = self._source()
        others = [part for part in parts if not self._has(part)]
        if others and source is not None:
            with self._decoding():
                events = [events for part in others for events in read(part.blob)]
            source.apply(events)
        self._seen = parts[-1].seq if parts else self._seen

    def _has(self, part: JournalPart) -> bool:
        """Return whether a part was written by this worker, and is already in the pipeline."""
        return part.worker == self.worker and part.number not in self._given_up

    def _load(self) -> None:
        """Replace the pipeline by that of the file plus the events that the file lacks."""
        source = self._source()
        if source is None:
            return
        self._waiting += source.take_arrived()
        with self._store.reading():
            base = self._store.base()
            parts = self._store.since(base.through) or []
            came_through = self._store.last(self.worker) >= self._number
        mine = [] if self._part is None or came_through else self._mine
        with self._decoding():
            events = [event for part in parts for event in read(part.blob)]
            pipeline = Pipeline(self._empty.suite, self._empty.config)
            if base.blob:
                pipeline = pipeline_of(base.blob)
                self._empty.check_alike(pipeline)
            pipeline.counters = base.counters
            source.replace(pipeline, [*events, *mine, *self._waiting])
        self._seen = parts[-1].seq if parts else base.through

    def alerts(self) -> dict[str, str]:
        """Return the saved state of each alert; empty if the file cannot be read."""
        found: dict[str, str] = {}
        self._try(lambda: found.update(self._store.alerts()))
        return found

    def put_alerts(self, told: Mapping[str, str]) -> bool:
        """Save the states of all alerts; return whether they are in the file."""

        def write() -> None:
            with self._store.writing():
                self._store.put_alerts(told)

        return self._try(write)

    def _fold(self) -> None:
        """Fold all parts so far into one state, if there are enough."""
        if self._store.due:
            self._fold_all(lambda: self._store.due)

    def _fold_rest(self) -> None:
        """Fold all parts into one state, so that the file opens faster the next time."""
        if self._store.unfolded:
            self._fold_all(lambda: self._store.unfolded)

    def _fold_all(self, due: Callable[[], bool]) -> None:
        """Fold all parts so far into one state, unless another worker has done so."""
        self._read()
        source = self._source()
        if source is None:
            return
        with self._store.writing():
            found = self._store.since(self._seen)
            if found is None or not due():  # another worker was faster
                return
            self._follow(found)
            with source.shared.locked():
                self._waiting += source.take_arrived()
                pipeline = source.snapshot()
                counters = pipeline.counters
            self._make_part()
            self._put_part()
            through = self._store.claim()
        self._part, self._mine, self._seen = None, [], through
        blob = bytes_of(self._cls, pipeline)  # other workers can write meanwhile
        with self._store.writing():
            self._store.fold(through, counters, blob)

    def forked(self) -> None:
        """Note that this process is a fork; the parent writes the pending events."""
        source = self._source()
        if source is not None:
            source.take_arrived()
        _LEFT.append(self._store)  # a forked child must not close it
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
        if not self.durable:  # otherwise each call raises
            self._warning = self._warning or str(error)

    def _recovered(self) -> None:
        """Reset the failures after a successful write."""
        self.trouble, self.is_gone, self._busy, self._refused = "", False, 0.0, 0

    def _warn(self) -> None:
        """Warn once about a failure, in a thread of the caller."""
        if self._warning and not self._warned:
            self._warned = True
            warn_caller(
                f"the store cannot be used ({self._warning}): events are kept in memory, and it "
                "is tried again each second",
                StoreWarning,
            )


def open_store(path: str, cls: type, empty: Pipeline, *, durable: bool, timeout: float) -> Store:
    """Open the store of a configuration, or create it.

    Args:
        path: The file.
        cls: The class of the live state.
        empty: The pipeline without events.
        durable: See `Store`.
        timeout: See `Store`.
    """

    def differing(blob: bytes) -> str:
        try:
            empty.check_alike(pipeline_of(blob))
        except IncompatibleMetricsError as error:
            return str(error)
        return "another version wrote it"

    return Store(path, bytes_of(cls, empty), differing, durable=durable, timeout=timeout)


def _code(error: Exception) -> int:
    """Return the primary result code of an SQLite error."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _run(journal: weakref.ref[Journal], stop: threading.Event, every: float) -> None:
    while not stop.wait(every):
        mine = journal()
        if mine is None:
            return
        mine.try_to_write()
        del mine


_JOURNALS: weakref.WeakSet[Journal] = weakref.WeakSet()
_LEFT: list[Store] = []


def _forked() -> None:
    for journal in list(_JOURNALS):
        journal.forked()


def _at_exit() -> None:
    for journal in list(_JOURNALS):
        journal.try_to_write()


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(after_in_child=_forked)
