"""Between a stream and its file: what came is written each second, what others wrote is read."""

from __future__ import annotations

import atexit
import os
import sqlite3
import threading
import time
import uuid
import weakref
from typing import TYPE_CHECKING, NamedTuple, Protocol

from streammetrics.core.errors import StreamMetricsError
from streammetrics.core.locks import Locked
from streammetrics.live.events import read, written
from streammetrics.live.store import Store
from streammetrics.live.telling import tell

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streammetrics.live.events import Events
    from streammetrics.live.store import JournalPart

_TIMEOUT = 1.0  # seconds to wait for another who writes
PATIENCE = 30.0  # the same at the end, when what waits would be lost
_BUSY = 5.0  # seconds for which others may have the file before it is told: it is theirs, too
_PAUSE = 0.05


class StoreWarning(UserWarning):
    """A store cannot be written just now; events are kept in memory and it is tried again."""


class Image(NamedTuple):
    """A stream at one moment."""

    events: list[Events]  # which are in it, and were not taken before
    counters: dict[str, int]  # what is counted beside the state
    blob: Callable[[], bytes]  # the state, which takes its time


class Kept(Protocol):
    """What a keeper keeps: the owner of a stream and of the lock around it."""

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
        self._path, self._empty, self._durable = path, empty, durable
        self._guard, self._every = Locked(), every
        self.failures = 0  # attempts to read or write that failed
        self._trouble, self._told = "", False
        self.down = ""  # why the last attempt failed, where it did and not only others were first
        self._busy = 0.0  # since when others were first
        self._start()
        self._load()
        _KEEPERS.add(self)

    def _start(self) -> None:
        """Begin as a worker of its own, with nothing to write."""
        kept = self._kept()
        assert kept is not None  # who calls is a method of it
        self._store = Store(
            self._path, self._empty, kept._differing, durable=self._durable, timeout=_TIMEOUT
        )
        self._forked = False
        self.worker, self._number = uuid.uuid4().hex, 0
        self._seen = 0  # the last part of the journal that is in the stream
        self._waiting: list[Events] = []  # of this worker, not yet part of one
        self._part: tuple[int, bytes] | None = None  # a part of which nobody knows
        self._mine: list[Events] = []  # what is in that part
        self._stop = threading.Event()
        threading.Thread(
            target=_run, args=(weakref.ref(self), self._stop, self._every), daemon=True
        ).start()

    def sync(self) -> None:
        """Read what others have written."""
        with self._guard._lock:
            self._check_process()
            try:
                self._read()
            except sqlite3.OperationalError as error:
                self._failed(error)
        self._tell()

    def write(self) -> bool:
        """Write what came; return whether it is in the file."""
        done = self.try_to_write()
        self._tell()
        return done

    def try_to_write(self) -> bool:
        """Write what came, and keep to itself what fails."""
        return self._try(self._append) and self._try(self._fold)

    def _try(self, write: Callable[[], None]) -> bool:
        """Write, and return whether that went well."""
        with self._guard._lock:
            self._check_process()
            try:
                write()
            except (sqlite3.Error, StreamMetricsError) as error:
                self._failed(error)
                return False
            self.down, self._busy = "", 0.0
            return True

    @property
    def waiting(self) -> int:
        """How many events are not in the file, as it could not be written."""
        return sum(len(events.times) for events in [*self._waiting, *self._mine])

    def close(self) -> None:
        """Write what came, and close the file.

        Raises:
            StreamMetricsError: It cannot be written; nothing was closed.
        """
        until = time.monotonic() + PATIENCE
        while not self._try(self._append):
            self._tell()
            if time.monotonic() > until:
                raise StreamMetricsError(
                    "the store cannot be written, and would lose events: close() again when it "
                    "can be"
                )
            time.sleep(_PAUSE)
        self._try(self._fold)  # once: what is written is safe, and others fold it where this fails
        with self._guard._lock:
            self._stop.set()
            self._store.forget(self.worker)
            self._store.close()
            _KEEPERS.discard(self)

    def _append(self) -> None:
        """Write what came as a part, which counts once, whatever becomes of an attempt."""
        kept = self._kept()
        if kept is not None:
            self._waiting += kept._taken()
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

    def _follow(self, parts: list[JournalPart]) -> None:
        """Bring parts of others to the stream."""
        kept = self._kept()
        others = [part for part in parts if part.worker != self.worker]
        if others and kept is not None:
            kept._apply([events for part in others for events in read(part.blob)])
        self._seen = parts[-1].seq if parts else self._seen

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
        events = [event for part in parts for event in read(part.blob)]
        mine = [] if self._part is None or came_through else self._mine
        kept._restore(base.blob, base.counters, [*events, *mine, *self._waiting])
        self._seen = parts[-1].seq if parts else base.through

    def _fold(self) -> None:
        """Make all parts up to now one state, where they are worth it."""
        if not self._store.due:
            return
        self._read()
        kept = self._kept()
        if kept is None:
            return
        with self._store.writing():
            found = self._store.since(self._seen)
            if found is None or not self._store.due:  # another was first
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
        now = time.monotonic()
        self._busy = self._busy or now
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # of which there are finer kinds
        if code == sqlite3.SQLITE_BUSY and now - self._busy < _BUSY:
            return
        self.down = str(error)
        self._trouble = self._trouble or str(error)

    def _tell(self) -> None:
        """Warn once of what failed, in a thread of the user's."""
        if self._trouble and not self._told:
            self._told = True
            tell(
                f"the store cannot be used ({self._trouble}): events are kept in memory, and it "
                "is tried again each second",
                StoreWarning,
            )


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
