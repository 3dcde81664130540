"""The journal of a live state: writes its events to the store, and reads those of other workers."""

from __future__ import annotations

import atexit
import json
import os
import sqlite3
import threading
import time
import uuid
import weakref
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from streammetrics.core.accumulator import Locked
from streammetrics.core.errors import (
    StateFormatError,
    StreamMetricsError,
    warn_caller,
)
from streammetrics.live.events import read, written
from streammetrics.live.join import NO_LIMIT
from streammetrics.live.pipeline import Pipeline
from streammetrics.live.serialization import Base, base_of, bytes_of, pipeline_in, pipeline_of
from streammetrics.live.store import (
    ForgottenError,
    MissingStoreError,
    Promise,
    Store,
    StoreError,
    StoreWarning,
    damaged,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from streammetrics.live.events import Events
    from streammetrics.live.pipeline import SharedPipeline
    from streammetrics.live.store import JournalPart

    Change = Callable[[dict[str, str]], Mapping[str, str]]  # of the texts that workers share


T = TypeVar("T")

_TIMEOUT = 1.0  # seconds to wait for another writer
PATIENCE = 30.0  # seconds to wait in close(), when events would be lost
_BUSY = 5.0  # seconds for which others may lock the file without a warning
_PAUSE = 0.05  # seconds between attempts in close()
_TOGETHER = 64  # calls whose events make one part, where many are written at once
_FLOORS = "floors"  # the name of the text with the floors of all tiers
# The file and its log hold at most a state, two parts of the journal of half its size, the state
# that replaces it, and the events written during that fold.
_STATES = 5
LEAST = 16 << 20  # least value of the maximum bytes
_ROOM = 0.9  # share of the allowed bytes that is left when old panes expire, so that it lasts
_BEAT = 10.0  # seconds after which a worker with nothing to write says that it is there
SILENCE = 60.0  # seconds without a word from a worker for which the others wait


class EventSource(Protocol):
    """The source and sink of events: an `Ingest`, which owns the journal."""

    shared: SharedPipeline

    @property
    def unwritten(self) -> int:
        """The number of events since the last `take_arrived`."""

    def take_arrived(self, ahead: int = 0, lowest: int = 0) -> tuple[list[Events], int]:
        """Return the events that came, and the time before which no more predictions will."""

    def limit(self, time: int) -> None:
        """Let rows before a time leave, and keep the others."""

    def evict(self, floors: Sequence[int]) -> None:
        """Let panes before some floors expire early."""

    def snapshot(self, *, limited: bool = False) -> Pipeline:
        """Return a settled copy of the pipeline; `limited`: without what must not leave yet."""

    def apply(self, events: Sequence[Events]) -> None:
        """Transfer events of other workers to the pipeline."""

    def replace(
        self,
        pipeline: Pipeline,
        events: Sequence[Events],
        own: Sequence[Events],
        lowest: int,
        *,
        again: bool,
    ) -> list[Events]:
        """Use another pipeline, with these events and those that came meanwhile."""


class Claim(NamedTuple):
    """What is folded into the base of a store: the state of all parts up to a sequence number."""

    through: int
    pipeline: Pipeline
    known: set[str]  # the documents that the store has


class Journal:
    """Writes the events of one worker to a store, and reads those of the others.

    An event that one worker has accepted is taken by all of them, however far their clocks are
    apart. To that end a row waits until every worker has promised in the store to accept nothing
    about it any more, and everything that was accepted before that promise has been read. A worker
    that was silent for `SILENCE` seconds is no longer waited for, and reads the store again before
    it writes anything.

    Its lock is taken before that of the pipeline, never after it. While the file cannot be written,
    events stay in memory, and writing is tried again.

    Args:
        source: The source of events.
        cls: The class of the live state, recorded in serialized states.
        path: The file.
        durable: Whether events are on the disk when `commit` returns.
        most: The maximum bytes of the file and its log; 0 for any. Beyond it, old panes expire.
        every: Seconds between two writes.
    """

    def __init__(
        self,
        source: EventSource,
        cls: type,
        path: str,
        *,
        durable: bool,
        most: int = 0,
        every: float = 1.0,
    ) -> None:
        self._source, self._cls = weakref.ref(source), cls  # the source owns this object
        self._path, self.durable, self.most = path, durable, most
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
        self._notes: list[str] = []  # what the next caller is warned of
        self.is_overfull = False  # whether the state alone is too large for `most`
        self._holds = False  # whether events are written later, all of them at once
        self._beside: Change | None = None  # of the shared texts, written with the next commit
        source.limit(0)
        self._start()
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
        """Start as a new worker with nothing to write, and read the file."""
        self.worker, self._number = uuid.uuid4().hex, 0
        self._store = open_store(
            self._path,
            self._cls,
            self._empty,
            durable=self.durable,
            timeout=_TIMEOUT,
            worker=self.worker,
        )
        self._forked, self._folding = False, threading.RLock()
        self._closed = 0  # no prediction before this time comes after those that wait here
        self._promised = self._store.promises()[self.worker]
        self._others: dict[str, tuple[int, int]] = {}  # what they promise, and kept until then
        self._heard: dict[str, tuple[float, float]] = {}  # their last word, and when it came
        self._said = time.monotonic()  # when this worker wrote last
        self._seen = 0  # the last part of the journal that is in the pipeline
        self._waiting: list[Events] = []  # of this worker, not in a part yet
        self._part: tuple[int, bytes] | None = None  # a part that may or may not be in the file
        self._mine: list[Events] = []  # the events of that part
        self._given_up: set[int] = set()  # parts whose call has raised
        source = self._source()
        assert source is not None  # it starts, or uses, this object
        self._counted = source.shared.current.counters  # what the file has of this process
        try:
            self._load()
        except BaseException:
            self._store.close()
            raise
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
        self, check: Callable[[], Sequence[Events]], take: Callable[[Sequence[Events]], list[int]]
    ) -> list[int]:
        """Write events, and take them once they are on the disk.

        Args:
            check: Returns the events, or raises where they would be refused; nobody else changes
                the state before `take`.
            take: Brings them to the stream; what it returns is returned.

        Raises:
            StoreError: They cannot be written; nothing has changed.
        """
        with self._alone():
            events = check()
            blob = written(events)
            try:
                with self._store.writing():
                    self._learn_number()
                    self._store.put(self.worker, self._number + 1, blob)
                    self._put_beside()
            except sqlite3.Error as error:
                self._failed(error)
                if not self._came_through():
                    self._refused = len(blob)
                    raise self._store_error(error) from error
            self._number += 1
            self._beside = None
            self._recovered()
            return take(events)

    @contextmanager
    def beside(self, change: Change) -> Iterator[None]:
        """Change the shared texts in the transaction of the block's commit, or after it alone.

        Raises:
            StoreError: They cannot be written; nothing has changed.
        """
        self._beside = change
        try:
            yield
            with self._alone():
                if self._beside is not None:  # there was no commit
                    try:
                        with self._store.writing():
                            self._put_beside()
                    except sqlite3.Error as error:
                        self._failed(error)
                        raise self._store_error(error) from error
                    self._recovered()
        finally:
            self._beside = None

    def _put_beside(self) -> None:
        if self._beside is not None:
            self._store.put_texts(self._beside(self._store.texts()))

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
        source = self._source()
        assert source is not None  # the caller holds it
        if not self._others:
            source.limit(NO_LIMIT)
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
            self._gather()
            events = self._waiting
            firsts = range(0, len(events), _TOGETHER)
            while True:
                try:
                    with self._store.writing():
                        self._learn_number()
                        for number, first in enumerate(firsts, self._number + 1):
                            part = written(events[first : first + _TOGETHER])
                            self._store.put(self.worker, number, part)
                        alone = self._store.promises().keys() <= {self.worker}
                except sqlite3.Error as error:
                    if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                        raise self._store_error(error) from error
                    time.sleep(_PAUSE)
                else:
                    break
            self._number += len(firsts)
            self._waiting = []
            if not alone:  # rows may have left of which another worker takes labels
                self._load()

    def _store_error(self, error: sqlite3.Error) -> StoreError:
        full = _code(error) == sqlite3.SQLITE_FULL
        return StoreError(self._path, error, full=full)

    def drop(self) -> None:
        """Close the file without writing the events that came; a new one is removed."""
        with self._alone():
            self._stop.set()
            self._store.forget(self.worker)
            self._store.close()
            self._store.remove_unused()
            _JOURNALS.discard(self)

    def try_to_write(self) -> bool:
        """Write all events that came, without a warning where this fails."""
        is_written = not self._holds and self._try(self._write)
        if is_written:
            self._fold(lambda: self._store.due)
        return is_written

    def _write(self) -> None:
        self._append()
        self._count()
        self._recovered()

    def _count(self) -> None:
        """Add what this process has refused and dropped since the last time."""
        source = self._source()
        if source is None:
            return
        counters = source.shared.current.counters
        more = {name: n - self._counted[name] for name, n in counters.items()}
        if any(more.values()):
            with self._store.writing():
                self._store.count(more)
            self._counted = counters

    def _follow_counters(self, counters: Mapping[str, int]) -> None:
        """Set what other processes have refused and dropped."""
        source = self._source()
        if source is not None:
            source.shared.current.elsewhere = {
                name: counters.get(name, 0) - n for name, n in self._counted.items()
            }

    def tick(self) -> None:
        """Write, and see what the other workers have promised, as each second."""
        if self._holds:
            self._try(self._speak)
            return
        self._try(self._follow_promises)
        self.try_to_write()

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
    def size(self) -> int:
        """The bytes of the file and its log; 0 if they are gone."""
        paths = (self._path, f"{self._path}-wal")
        return sum(os.path.getsize(path) for path in paths if os.path.exists(path))

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
        self._store.is_ending = True
        while not (is_written := self._try(self._append)) and self.unwritten:
            self._warn()
            if time.monotonic() > until:
                self._store.is_ending = False
                raise StreamMetricsError(
                    "the store cannot be written, and would lose events: close() again when it "
                    "can be"
                )
            time.sleep(_PAUSE)
        if is_written:
            self._recovered()
        self._try(self._count)
        # Tried once: the events are in the file, and other workers can fold them.
        self._fold(lambda: self._store.unfolded)
        with self._alone():
            self._stop.set()
            self._store.forget(self.worker)
            self._store.close()
            _JOURNALS.discard(self)

    def _append(self) -> None:
        """Write all events that came as a part, which counts once however often it is tried."""
        self._gather()
        self._store.check_place()
        if self.trouble and self._part is None and not self._waiting:
            with self._store.writing():
                self._store.probe(self._refused)
        try:
            self._put_all()
        except ForgottenError:
            self._return()
            self._put_all()

    def _put_all(self) -> None:
        """Write the events that wait, and then what this worker promises."""
        while self._part is not None or self._waiting:
            self._make_part()
            with self._store.writing():
                self._put_part()
            self._part, self._mine = None, []
            self._said = time.monotonic()
        self._promise()

    def _return(self) -> None:
        """Start again from the file, as others have gone on without this worker."""
        with self._store.writing():
            self._store.enter(self.worker)
            self._promised = self._store.promises()[self.worker]
        self._load(again=True)

    def _gather(self) -> None:
        """Take over the events that came."""
        source = self._source()
        if source is not None:
            ahead = max([closed for closed, _ in self._others.values()], default=0)
            arrived, self._closed = source.take_arrived(ahead, self._lowest)
            self._waiting += arrived

    @property
    def _lowest(self) -> int:
        """The time before which no other worker takes a prediction that is not here."""
        return min([closed for closed, _ in self._others.values()], default=NO_LIMIT)

    def _follow_floors(self) -> None:
        """Let the panes expire that a worker has removed because the file was too large."""
        source = self._source()
        if self.most and source is not None:
            source.evict(_floors_in(self._store.texts()))

    def _follow_promises(self) -> None:
        """Read what others wrote before they promised something new.

        Others that say nothing for long are no longer waited for.
        """
        self._follow_floors()
        found, now = self._store.promises(), time.monotonic()
        if self.worker not in found:
            self._return()
            return
        self._speak()
        for worker in found.keys() - {self.worker}:
            word, since = self._heard.get(worker, (0.0, now))
            if word != found[worker].seen:
                self._heard[worker] = found[worker].seen, now
            elif now - since > SILENCE:
                with self._store.writing():
                    self._store.leave_behind(worker, found[worker])
        if _of_others(found, self.worker) != self._others:
            self._read()

    def _speak(self) -> None:
        """Say that this worker is there, if it has written nothing for some time."""
        if time.monotonic() - self._said > _BEAT:
            self._promised = self._promised._replace(seen=time.time())
            with self._store.writing():
                self._store.promise(self.worker, self._promised)
            self._said = time.monotonic()

    def _promise(self) -> None:
        """Promise to take nothing about rows that are too old, once all events are written."""
        final = self._final(self._lowest)
        if (self._closed, final) != self._promised[:2]:
            with self._store.writing():
                found = _of_others(self._store.promises(), self.worker)  # with those that are new
                final = self._final(self._lowest, *[closed for closed, _ in found.values()])
                promised = Promise(self._closed, final, time.time())
                self._store.promise(self.worker, promised)
            self._promised, self._said = promised, time.monotonic()
        source = self._source()
        if source is not None:
            source.limit(
                min([self._promised.final, *[final for _, final in self._others.values()]])
            )

    def _final(self, *lowest: int) -> int:
        return max(self._promised.final, min(self._closed, *lowest))

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
            found, promises = self._store.since(self._seen), self._store.promises()
            counters = self._store.counters()
        if found is None:  # others have folded the journal twice meanwhile
            self._load()
        else:
            self._follow(found)
            self._others = _of_others(promises, self.worker)
            self._follow_counters(counters)

    @contextmanager
    def _decoding(self) -> Iterator[None]:
        """Name the file in errors about its contents."""
        try:
            yield
        except StateFormatError as error:
            raise damaged(self._path, str(error)) from error

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

    def _load(self, *, again: bool = False) -> None:
        """Replace the pipeline by that of the file, plus the events that are not in it yet.

        Args:
            again: Whether others have gone on without this worker.
        """
        source = self._source()
        if source is None:
            return
        self._gather()
        with self._store.reading():
            base, counters = self._store.base(), self._store.counters()
            through = self._store.through
            parts = self._store.since(through) or []
            came_through = self._store.last(self.worker) >= self._number
            self._others = _of_others(self._store.promises(), self.worker)
        mine = [] if self._part is None or came_through else self._mine
        if again:  # number the events that are not in the file anew
            self._waiting = [*mine, *self._waiting]
            mine, self._mine, self._part = [], [], None
        with self._decoding():
            events = [event for part in parts for event in read(part.blob)]
            pipeline = Pipeline(self._empty.suite, self._empty.config)
            if base is not None:
                pipeline = pipeline_in(base)
                self._empty.check_alike(pipeline)
            pipeline.join.unmatched = counters.get("unmatched", 0)
            self._waiting = source.replace(
                pipeline, [*events, *mine], self._waiting, self._lowest, again=again
            )
        self._seen = parts[-1].seq if parts else through
        self._follow_counters(counters)

    def rewrite(self, change: Callable[[Pipeline], T]) -> T:
        """Change the state of all events, and write it in place of what the file holds.

        No other worker may use the store, and this one is closed afterwards.
        """
        with self._alone():
            self._append()
            source = self._source()
            assert source is not None  # the caller holds it
            pipeline = source.snapshot(limited=True)
            found = change(pipeline)
            self._store.rewrite(pipeline.join.unmatched, base_of(self._cls, pipeline, ()))
            self._load()
            return found

    def texts(self) -> dict[str, str]:
        """Return the texts that workers share, by name; empty if the file cannot be read."""
        found: dict[str, str] = {}
        self._try(lambda: found.update(self._store.texts()))
        return found

    def exchange(self, change: Change) -> bool:
        """Let `change` read the texts that workers share, and replace those that it returns.

        It is done in one transaction, and the result is whether it succeeded.
        """

        def write() -> None:
            with self._store.writing():
                self._store.put_texts(change(self._store.texts()))

        return self._try(write)

    def _fold(self, due: Callable[[], bool]) -> None:
        """Fold all parts so far into one state, if it is due and no other worker has claimed it.

        The state is written without holding the journal's lock, so requests are served meanwhile.
        If another thread is folding, wait for it, so that the file grows no further.
        """
        with self._folding:
            claimed: list[Claim] = []
            self._try(lambda: claimed.extend(self._claim(due)))
            try:
                for claim in claimed:
                    base = self._fitted(claim)
                    self._try(partial(self._put_base, claim, base))
            except StreamMetricsError as error:
                self._failed(error)

    def _claim(self, due: Callable[[], bool]) -> Iterator[Claim]:
        """Yield what is to be folded, unless another worker has done so."""
        source = self._source()
        if source is None or not due():
            return
        self._read()
        with self._store.writing():
            found = self._store.since(self._seen)
            if found is None or not due():  # another worker was faster
                return
            self._follow(found)
            self._follow_floors()
            with source.shared.locked():
                self._gather()
                pipeline = source.snapshot(limited=True)
            self._make_part()
            self._put_part()
            through = self._store.claim()
        self._part, self._mine, self._seen = None, [], through
        yield Claim(through, pipeline, self._store.documents())

    def _put_base(self, claim: Claim, base: Base) -> None:
        """Replace the base of the store, and let panes expire that it no longer has."""
        through, pipeline, _ = claim
        with self._store.writing():
            self._store.fold(through, pipeline.join.unmatched, base)
            if any(pipeline.floors):
                pipeline.evict(_floors_in(self._store.texts()))
                self._store.put_texts({_FLOORS: json.dumps(pipeline.floors)})
        source = self._source()
        if source is not None:
            source.evict(pipeline.floors)

    def _fitted(self, claim: Claim) -> Base:
        """Return a state as it is stored, after old panes have expired if they are too many."""
        _, pipeline, known = claim
        had = any(pipeline.floors)
        base = base_of(self._cls, pipeline, known)
        if not self.most:
            return base
        most = self.most // _STATES
        while base.size > most:
            floors = pipeline.smaller(_ROOM * most / base.size)
            if floors == pipeline.floors:  # the rest are rows that wait, and newest panes
                break
            pipeline.evict(floors)
            base = base_of(self._cls, pipeline, known)
        if any(pipeline.floors) and not had:
            self._notes.append(
                f"the store has reached max_store, {self.most:,} bytes: from now on its oldest "
                "panes expire early, the finest first"
            )
        if base.size > most and not self.is_overfull:
            self._notes.append(
                f"the store exceeds max_store, {self.most:,} bytes, although it has only the "
                "newest panes: lower max_pending or max_slices, or raise max_store"
            )
        self.is_overfull = base.size > most
        return base

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

    def _failed(self, error: Exception) -> None:
        self.failures += 1
        self.is_gone |= isinstance(error, MissingStoreError)  # until something can be written
        now = time.monotonic()
        self._busy = self._busy or now
        if _code(error) == sqlite3.SQLITE_BUSY and now - self._busy < _BUSY:
            self.trouble = self.trouble or "others hold the file"
            return
        self.trouble = str(error) or type(error).__name__
        if not self.durable:  # otherwise each call raises
            self._warning = self._warning or self.trouble

    def _recovered(self) -> None:
        """Reset the failures after a successful write."""
        self.trouble, self.is_gone, self._busy, self._refused = "", False, 0.0, 0

    def _warn(self) -> None:
        """Warn about what has happened, of a failure once, in a thread of the caller."""
        while self._notes:
            warn_caller(self._notes.pop(), StoreWarning)
        if self._warning and not self._warned:
            self._warned = True
            warn_caller(
                f"the store cannot be used ({self._warning}): events are kept in memory, and it "
                "is tried again each second",
                StoreWarning,
            )


def _of_others(promises: Mapping[str, Promise], worker: str) -> dict[str, tuple[int, int]]:
    """Return the times that all workers but one promise, `closed` and `final`."""
    return {name: promise[:2] for name, promise in promises.items() if name != worker}


def _floors_in(texts: Mapping[str, str]) -> tuple[int, ...]:
    return tuple(json.loads(texts.get(_FLOORS, "[]")))


def open_store(
    path: str, cls: type, empty: Pipeline, *, durable: bool, timeout: float, worker: str = ""
) -> Store:
    """Open the store of a configuration, or make it.

    Args:
        path: The file.
        cls: The class of the live state.
        empty: The pipeline without events.
        durable: See `Store`.
        timeout: See `Store`.
        worker: See `Store`.
    """

    def differing(blob: bytes) -> str:
        other = pipeline_of(blob)
        if told := empty.differing(other):
            mine, theirs = empty.suite._titled(), other.suite._titled()
            return told if mine == theirs else f"{theirs} there and {mine} here, {told}"
        return "another version wrote it"

    state = bytes_of(cls, empty)
    return Store(path, state, differing, durable=durable, timeout=timeout, worker=worker)


def _code(error: Exception) -> int:
    """Return the primary result code of an SQLite error."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _run(journal: weakref.ref[Journal], stop: threading.Event, every: float) -> None:
    while not stop.wait(every):
        mine = journal()
        if mine is None:
            return
        try:
            mine.tick()
        except Exception as error:  # a bug must be seen, and must not end the thread
            mine._failed(error)
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
