"""Metrics updated off the critical path: a queue of copied batches, and a thread that takes them.

A state is a function of the multiset of rows, so batches that are counted later, or in another
order, give the same bytes as plain updates.
"""

from __future__ import annotations

import atexit
import copy
import os
import sys
import threading
import weakref
from collections import deque
from contextlib import ExitStack
from functools import partial
from queue import Empty, Full, SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from streammetrics.core.accumulator import Locked
from streammetrics.core.errors import InvalidBatchError, StreamMetricsError, an
from streammetrics.core.mergeable import Mergeable
from streammetrics.engines.shards import located

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from streammetrics.core.types import Foreign

    Jobs = SimpleQueue[Callable[[], object] | None]

M = TypeVar("M", bound="Mergeable[Any]")


class QueueFullError(StreamMetricsError, Full):
    """The queue of an `Offload` with ``block=False`` has no room; the batch has not been taken."""


class Offload(Locked, Generic[M]):
    """Updates a metric or a set in a thread of its own: `update` copies the batch and returns.

    Nothing is lost: the queue is drained by `compute`, by pickling, at the end of a ``with`` block
    and at the exit of the interpreter. In a forked child the queue is empty, and the metric is a
    copy with the batches that the parent had processed; the parent counts the others.

    Args:
        suite: What is updated. It can be read at any time, and then shows the batches processed
            so far.
        queue: How many batches may wait.
        block: Whether `update` waits while the queue is full, instead of raising.

    Attributes:
        suite: The metric or set.
        enqueued: Batches taken by `update`.
        processed: Batches that the suite has taken or refused: all of them after `drain`.

    Raises:
        Exception: From `update`, `drain`, `compute`, `close` and pickling: what the suite raised
            for an earlier batch, with the number of that batch, counted from 0. The suite has not
            changed for that batch, and has taken or will take those after it. Each error is raised
            once; the call that raises has done nothing else.

    Memory and cost:
        At most `queue` copied batches. Tensors on the CPU, arrays and Python objects are copied in
        `update`. CUDA tensors are cloned on the current stream and moved to pinned memory on
        another one, without waiting; those of other accelerators are moved in `update`.

    Example:
        >>> import streammetrics as sm
        >>> from streammetrics.engines.offload import Offload
        >>> with Offload(sm.Mean()) as mean:
        ...     for batch in ([1.0, 2.0], [6.0]):
        ...         mean.update(batch)
        ...     mean.compute()
        3.0
        >>> mean.enqueued, mean.processed
        (2, 2)
    """

    def __init__(self, suite: M, queue: int = 64, *, block: bool = True) -> None:
        if not isinstance(suite, Mergeable):
            raise TypeError(f"{an(type(suite).__name__)} is not a metric or a MetricSet")
        if queue < 1:
            raise ValueError(f"queue={queue}, but at least 1 batch must have room")
        super().__init__()
        self.suite, self.enqueued, self.processed = suite, 0, 0
        self._queue, self._block, self._closed = queue, block, False
        self._open()
        _OFFLOADS.add(self)

    def _open(self) -> None:
        """Start without batches; the thread starts with the first one."""
        self._jobs: Jobs | None = None
        self._errors: deque[BaseException] = deque()
        self._room: SimpleQueue[None] = SimpleQueue()
        for _ in range(self._queue):
            self._room.put(None)

    def update(self, /, *args: object, **columns: object) -> None:
        """Take a batch, as `update` of the suite does; the caller may overwrite it afterwards.

        Raises:
            QueueFullError: There is no room, with ``block=False``; it is a `queue.Full`.
            StreamMetricsError: It was closed.
            Exception: An earlier batch was refused; this one has not been taken.
        """
        self._raise_refused()
        try:
            self._room.get(self._block)
        except Empty:
            raise QueueFullError(
                f"{self._queue} batches wait, and block=False: call update again later, or pass a "
                "larger queue"
            ) from None
        try:
            self._enqueue(_Snapshot(args, columns))
        except BaseException:
            self._room.put(None)
            raise

    def _enqueue(self, batch: _Snapshot) -> None:
        with self._lock:
            if self._closed:
                raise StreamMetricsError("this Offload was closed: make another one")
            jobs = self._start() if self._jobs is None else self._jobs
            self.enqueued += 1
            jobs.put(partial(self._process, batch))

    def drain(self) -> M:
        """Wait until all batches are processed, and return the suite."""
        done: SimpleQueue[None] = SimpleQueue()
        with self._lock:
            if self._jobs is None:
                done.put(None)
            else:
                self._jobs.put(partial(done.put, None))
        done.get()
        self._raise_refused()
        return self.suite

    def compute(self) -> Any:
        """Drain, and return the value of the suite."""
        suite: Any = self.drain()
        return suite.compute()

    def close(self) -> None:
        """Drain, and end the thread; from then on `update` raises."""
        with self._lock:
            self._closed = True
        try:
            self.drain()
        finally:
            with self._lock:
                if self._jobs is not None:
                    self._end()
                    self._jobs = None

    def _start(self) -> Jobs:
        jobs: Jobs = SimpleQueue()
        self._jobs = jobs
        # The thread knows the jobs alone, and ends with the last reference to this object.
        self._end = weakref.finalize(self, jobs.put, None)
        self._end.atexit = False
        threading.Thread(target=_work, args=(jobs,), name="offload", daemon=True).start()
        return jobs

    def _process(self, batch: _Snapshot) -> None:
        number = self.processed
        try:
            with located(f"batch {number}", 0, "batch"):
                batch.wait()
                self.suite.update(*batch.args, **batch.columns)
        except BaseException as error:  # of whatever kind: the next call raises it
            if not isinstance(error, InvalidBatchError):
                error.add_note(f"in batch {number} of an Offload")
            self._errors.append(error)
        finally:
            self.processed += 1
            self._room.put(None)

    def _raise_refused(self) -> None:
        """Raise the first error, with those that followed it as notes."""
        if not self._errors:
            return
        first, *others = (self._errors.popleft() for _ in range(len(self._errors)))
        for error in others:
            first.add_note(f"and then {type(error).__name__}: {error}")
        raise first

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self.close()
        except Exception as refused:
            if error is None:
                raise
            error.add_note(f"and then {type(refused).__name__}: {refused}")

    def __reduce__(self) -> tuple[object, ...]:
        return partial(type(self), block=self._block), (self.drain(), self._queue)

    def __repr__(self) -> str:
        return f"Offload({self.suite!r}) <{self.processed:,} of {self.enqueued:,} batches>"

    def _forked(self) -> None:
        """Leave the queue to the parent, whose thread this process does not have."""
        if self._jobs is not None:
            self._end.detach()
            _INHERITED.append((self._jobs, self._room))
        self.enqueued = self.processed
        self._open()


class _Snapshot:
    """The arguments of an update with the values that they have now.

    Tensors of a device are cloned on its current stream, where a later change comes after the
    clone, and the clones are moved on a stream that nothing else waits for.
    """

    __slots__ = ("args", "columns", "events")
    events: list[Foreign]  # recorded where the columns are complete

    def __init__(self, args: tuple[object, ...], columns: dict[str, object]) -> None:
        clones: list[Foreign] = []
        self.args, self.columns = _each(partial(_own, clones), (args, columns))
        self.events = []
        moved: dict[int, object] = {}  # by the identity of the clone
        for device in {clone.device for clone in clones}:
            backend = _backend(device)
            side = _SIDES.get(device) or _SIDES.setdefault(device, backend.Stream(device))
            side.wait_stream(backend.current_stream(device))
            with backend.stream(side):
                for clone in clones:
                    if clone.device == device:
                        moved[id(clone)] = clone.to("cpu", non_blocking=True)  # pinned memory
                        clone.record_stream(side)  # its own memory is not used again before
            # With `blocking` the worker sleeps while it waits, instead of keeping a processor busy.
            self.events.append(side.record_event(backend.Event(blocking=True)))
        if moved:
            batch = self.args, self.columns
            self.args, self.columns = _each(lambda value: moved.get(id(value), value), batch)

    def wait(self) -> None:
        """Wait until all columns are here."""
        for event in self.events:
            event.synchronize()


def _each(change: Callable[[object], Any], value: Any) -> Any:
    """Return nested dictionaries, lists and tuples with all that is in them changed."""
    if type(value) is dict:
        return {key: _each(change, item) for key, item in value.items()}
    if type(value) in {list, tuple}:
        return type(value)([_each(change, item) for item in value])
    return change(value)


def _own(clones: list[Foreign], value: Foreign) -> object:
    """Return a copy of a column; a clone on a CUDA device is added to `clones`."""
    if not hasattr(value, "detach"):
        return copy.deepcopy(value)
    value = value.detach()
    if value.device.type == "cpu":
        return value.clone()
    if _backend(value.device) is None:
        return value.to("cpu")
    clones.append(value.clone())
    return clones[-1]


_SIDES: dict[Foreign, Foreign] = {}  # of each device, the stream on which its tensors are moved


def _backend(device: Foreign) -> Foreign:
    """Return `torch.cuda` for a device of that kind, and None for others."""
    return sys.modules["torch"].cuda if device.type == "cuda" else None


def _work(jobs: Jobs) -> None:
    while (job := jobs.get()) is not None:
        job()
        del job  # while it waits, the thread keeps no batch and no Offload alive


_OFFLOADS: weakref.WeakSet[Offload[Any]] = weakref.WeakSet()
_INHERITED: list[object] = []  # queues whose tensors belong to a device of the parent


def _at_exit() -> None:
    with ExitStack() as stack:  # all are closed, and an error is shown
        for offload in list(_OFFLOADS):
            stack.callback(offload.close)


def _forked() -> None:
    for offload in list(_OFFLOADS):
        offload._forked()


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):  # not on Windows, where no process is forked
    os.register_at_fork(after_in_child=_forked)
