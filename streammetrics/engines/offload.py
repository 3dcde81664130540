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
from contextlib import ExitStack, suppress
from functools import partial
from queue import Empty, Full, SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from streammetrics.core.accumulator import Locked
from streammetrics.core.errors import InvalidBatchError, StreamMetricsError, an
from streammetrics.core.kernels import kernels
from streammetrics.core.mergeable import Mergeable
from streammetrics.engines import counted
from streammetrics.engines.shards import located

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from streammetrics.core.types import Foreign, Options

    Job = Callable[[], object]

M = TypeVar("M", bound="Mergeable[object]")


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
        another one, without waiting; those of other accelerators are moved in `update`. Large
        batches of a `MetricSet` stay on the device, up to 1 GiB of them, until their distinct rows
        are counted there; if these are few, the counts are moved instead of the rows. Otherwise the
        next batches are moved as rows.

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
        self._roles = counted.roles_of(suite)
        self._open()
        _OFFLOADS.add(self)

    def _open(self) -> None:
        """Start without batches; the thread starts with the first one."""
        self._jobs: _Jobs | None = None
        self._errors: deque[BaseException] = deque()
        # Bytes of batches that stay on their device, and of those that no longer do. Only the
        # thread writes the second: were there a lock, a signal's handler that drains would wait
        # for the thread, which would wait for the lock of what the handler interrupted.
        self._kept = self._freed = 0
        self._counts_from = 0  # the number of the first batch that may be counted there
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
        if self._errors:
            self._raise_refused()
        try:
            self._room.get(self._block)
        except Empty:
            raise QueueFullError(
                f"{self._queue} batches wait, and block=False: call update again later, or pass a "
                "larger queue"
            ) from None
        try:
            batch: _Copies | _Snapshot | None = _copied(args, columns)
            if batch is None:
                room = _KEPT - self._kept + self._freed
                if self.enqueued < self._counts_from:
                    room = 0
                batch = _Snapshot(args, columns, self._roles, room)
            with self._lock:
                if self._closed:
                    raise StreamMetricsError(  # noqa: TRY301 - its room is given back below
                        "this Offload was closed: make another one"
                    )
                jobs = self._start() if self._jobs is None else self._jobs
                self.enqueued += 1
                if isinstance(batch, _Snapshot):
                    self._kept += batch.kept
                many = self.enqueued - self.processed > self._queue // 2
                jobs.put(partial(self._process, batch), now=many)
        except BaseException:
            self._room.put(None)
            raise

    def drain(self) -> M:
        """Wait until all batches are processed, and return the suite."""
        done: SimpleQueue[None] = SimpleQueue()
        with self._lock:
            if self._jobs is None:
                done.put(None)
            else:
                self._jobs.put(partial(done.put, None), now=True)
        done.get()
        self._raise_refused()
        return self.suite

    def compute(self) -> Any:
        """Drain, and return the value of the suite."""
        return self.drain().compute()

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

    def _start(self) -> _Jobs:
        self._jobs = jobs = _Jobs()
        # The thread knows the jobs alone, and ends with the last reference to this object.
        self._end = weakref.finalize(self, jobs.put, None, now=True)
        self._end.atexit = False
        threading.Thread(target=jobs.work, name="offload", daemon=True).start()
        return jobs

    def _process(self, batch: _Copies | _Snapshot) -> None:
        number = self.processed
        try:
            with located(f"batch {number}", 0, "batch"):
                if isinstance(batch, _Snapshot):
                    self._update(batch, number)
                else:
                    args, columns = _restored(*batch)
                    self.suite.update(*args, **columns)
        except BaseException as error:  # of whatever kind: the next call raises it
            if not isinstance(error, InvalidBatchError):
                error.add_note(f"in batch {number} of an Offload")
            self._errors.append(error)
        finally:
            if isinstance(batch, _Snapshot):
                self._freed += batch.kept
            self.processed += 1
            self._room.put(None)

    def _update(self, batch: _Snapshot, number: int) -> None:
        batch.wait()
        if not (batch.kept and self._take_counts(batch)):
            self.suite.update(*batch.args, **batch.rows())
        if batch.in_vain:  # those that follow are likely to be alike
            self._counts_from = number + _PAUSE

    def _take_counts(self, batch: _Snapshot) -> bool:
        """Update with the counts of a batch; if that does not work, move its rows.

        Errors of counts name other rows than those of the batch, which then raises its own.
        """
        counts = batch.counts()
        if counts is not None:
            with suppress(Exception):
                self.suite.update(**counts)
                return True
        batch.move()
        batch.wait()
        return False

    def _raise_refused(self) -> None:
        """Raise the first error, if there is one, with those that followed it as notes."""
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


_EXCHANGE: tuple[Foreign, ...] | None = None  # what the kernel takes to copy tensors of PyTorch


def _find_exchange() -> tuple[Foreign, ...] | None:
    """Find PyTorch's table of functions, once PyTorch is imported; older versions have none."""
    global _EXCHANGE  # noqa: PLW0603 - found once for all
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)
    table = getattr(tensor, "__dlpack_c_exchange_api__", None)
    if tensor is not None and table is not None:
        _EXCHANGE = tensor, table, tensor.is_neg
    return _EXCHANGE


_Copies = tuple[tuple[str, ...], tuple[tuple[bytearray, int, int, tuple[int, ...]], ...]]
_KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat"}  # codes of DLPack; Booleans have another


def _copied(args: tuple[object, ...], columns: dict[str, object]) -> _Copies | None:
    """Return the names of columns, and copies of all arguments; ``None`` if not all are tensors.

    A `_Snapshot` of small tensors on the CPU takes two to three times as long.
    """
    exchange = _EXCHANGE or _find_exchange()
    if exchange is None:
        return None
    copies = kernels.copy_tensors((*args, *columns.values()), *exchange)
    return None if copies is None else (tuple(columns), copies)


def _restored(
    names: tuple[str, ...], copies: tuple[tuple[bytearray, int, int, tuple[int, ...]], ...]
) -> tuple[list[Foreign], dict[str, Foreign]]:
    """Return the positional arguments and the columns."""
    torch, values = sys.modules["torch"], []
    for data, code, bits, shape in copies:
        dtype = getattr(torch, f"{_KINDS[code]}{bits}") if code in _KINDS else torch.bool
        values.append(torch.frombuffer(data, dtype=dtype).view(shape))
    n_args = len(values) - len(names)
    return values[:n_args], dict(zip(names, values[n_args:], strict=True))


class _Snapshot:
    """The arguments of an update with the values that they have now.

    Tensors of a device are cloned on its current stream, where a later change comes after the
    clone, and the clones are moved on a stream that nothing else waits for. A large batch of at
    most `room` bytes stays on its device until it is counted there, as the `roles` say. Of scores
    of classes, if only the largest one is read, its place is kept, which is much smaller.
    """

    __slots__ = (
        "args",
        "clones",
        "columns",
        "events",
        "found",
        "in_vain",
        "kept",
        "roles",
        "widths",
    )
    events: list[Foreign]  # recorded where the columns are complete
    widths: dict[str, int]  # of the columns of places

    def __init__(
        self,
        args: tuple[object, ...],
        columns: dict[str, object],
        roles: counted.ColumnRoles | None,
        room: int,
    ) -> None:
        self.clones: list[Foreign] = []
        self.events, self.widths, self.kept, self.in_vain = [], {}, 0, False
        if roles is not None and not getattr(columns.get(roles.labels), "is_cpu", True):
            with suppress(RuntimeError):  # as when they are counted
                columns, self.widths = counted.narrowed(columns, roles)
        own = self._own
        self.args = tuple([own(each) for each in args])
        self.columns = {name: own(columns[name]) for name in columns}
        if not self.clones:
            return
        self.roles, self.found = roles, None
        self.kept = self._bytes_to_count()
        if not 0 < self.kept <= room:
            self.kept = 0
            self.move()
            return
        device = self.clones[0].device
        backend = _backend(device)
        if backend is None:  # without streams, its operations belong to this thread
            self.found = self._count()
            if self.found is None:
                self.kept = 0
                self.move()
            return
        # With `blocking` the worker sleeps while it waits, instead of keeping a processor busy.
        event = backend.Event(blocking=True)
        self.events.append(backend.current_stream(device).record_event(event))

    def _own(self, value: Foreign) -> object:
        """Return a copy of a column; a clone on a device other than the CPU is kept as such."""
        if hasattr(value, "detach"):
            clone = (value.detach() if value.requires_grad else value).clone()
            if not clone.is_cpu:
                self.clones.append(clone)
            return clone
        return _each(self._own, value) if type(value) in _NESTED else copy.deepcopy(value)

    def _bytes_to_count(self) -> int:
        """Return the size of columns that may be counted on their device; 0 for others."""
        if self.roles is None or self.args:
            return 0
        if not self.widths and sum(clone.numel() for clone in self.clones) < counted.LEAST:
            return 0
        given = sum(column is not None for column in self.columns.values())
        if len(self.clones) != given or len({clone.device for clone in self.clones}) != 1:
            return 0
        return sum(clone.nbytes for clone in self.clones)

    def move(self) -> None:
        """Move the clones to the CPU."""
        moved: dict[int, object] = {}  # by the identity of the clone
        for device in {clone.device for clone in self.clones}:
            clones = [clone for clone in self.clones if clone.device == device]
            backend = _backend(device)
            if backend is None:
                moved |= {id(clone): clone.to("cpu") for clone in clones}
                continue
            side = _side(device)
            side.wait_stream(backend.current_stream(device))
            with backend.stream(side):
                for clone in clones:
                    moved[id(clone)] = clone.to("cpu", non_blocking=True)  # pinned memory
                    clone.record_stream(side)  # its own memory is not used again before
            self.events.append(side.record_event(backend.Event(blocking=True)))
        if moved:
            batch = self.args, self.columns
            self.args, self.columns = _each(lambda value: moved.get(id(value), value), batch)
            self.clones = []

    def counts(self) -> dict[str, Foreign] | None:
        """Return the counts of a batch that stayed; ``None`` if its rows are to be moved."""
        device = self.clones[0].device
        backend = _backend(device)
        if backend is None:
            return self.found
        with backend.stream(_side(device)):
            return self._count()

    def _count(self) -> dict[str, Foreign] | None:
        columns = {name: column for name, column in self.columns.items() if column is not None}
        with suppress(RuntimeError):  # the device has no memory left, or lacks an operation
            found = self.roles and counted.counted(columns, self.widths, self.roles)
            self.in_vain = found is None
            return found
        return None

    def rows(self) -> Options:
        """Return the columns as the suite takes them."""
        columns: Options = self.columns
        restored = {name: counted.scores(columns[name], self.widths[name]) for name in self.widths}
        return columns | restored

    def wait(self) -> None:
        """Wait until all columns are here, or complete where they stay."""
        for event in self.events:
            event.synchronize()


_NESTED = {dict, list, tuple}


def _each(change: Callable[[object], Any], value: Any) -> Any:
    """Return nested dictionaries, lists and tuples with all that is in them changed."""
    if type(value) is dict:
        return {key: _each(change, item) for key, item in value.items()}
    if type(value) in {list, tuple}:
        return type(value)([_each(change, item) for item in value])
    return change(value)


_KEPT = 1 << 30  # bytes on devices; batches beyond that are moved at once
_PAUSE = 16  # batches moved as rows after one whose rows were needed
_SIDES: dict[Foreign, Foreign] = {}  # of each device, the stream on which its tensors are moved


def _side(device: Foreign) -> Foreign:
    return _SIDES.get(device) or _SIDES.setdefault(device, _backend(device).Stream(device))


def _backend(device: Foreign) -> Foreign:
    """Return `torch.cuda` for a device of that kind, and None for others."""
    return sys.modules["torch"].cuda if device.type == "cuda" else None


class _Jobs:
    """Jobs for a thread, which looks for them by itself as long as they come often.

    Waking a thread takes longer than everything else that an update does. So a new job wakes it
    only if it has had nothing to do for `_NAPS` naps of `_NAP` seconds, or if the job is to be done
    `now`.
    """

    __slots__ = ("_bell", "_jobs", "_rest")

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._bell: SimpleQueue[None] = SimpleQueue()
        self._rest = _NONE

    def put(self, job: Job | None, *, now: bool) -> None:
        """Add a job; ``None`` ends the thread."""
        self._jobs.put(job)
        if self._rest >= (_NAPPING if now else _ASLEEP):
            self._bell.put(None)

    def work(self) -> None:
        """Do all jobs."""
        while (job := self._next()) is not None:
            job()
            del job  # while it waits, the thread keeps no batch and no Offload alive

    def _next(self) -> Job | None:
        naps = 0
        while True:
            with suppress(Empty):
                return self._jobs.get_nowait()
            self._rest = _NAPPING if naps < _NAPS else _ASLEEP
            if self._jobs.empty():  # still, now that `put` knows of the rest
                with suppress(Empty):
                    self._bell.get(timeout=_NAP if naps < _NAPS else None)
            self._rest, naps = _NONE, naps + 1


_NAP, _NAPS = 0.005, 40
_NONE, _NAPPING, _ASLEEP = range(3)


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
