"""Pieces of data read by several processes of one machine: the same bytes however many read.

Each worker is an executor of the standard library with one process, so that a worker that dies,
is stopped or fails takes nothing with it that another one waits for, and is known by name. A worker
keeps what its pieces come to until the end: states are large, and merging one for each piece would
cost more than reading does.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from multiprocessing.context import SpawnContext
from typing import TYPE_CHECKING, Any

from streammetrics.core.errors import StreamMetricsError
from streammetrics.engines.worker import BEATS, ROWS, TICK, begin, hand_over, read_piece

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from multiprocessing.context import SpawnProcess

    from streammetrics.core.accumulator import Accumulator
    from streammetrics.core.metric_set import MetricSet
    from streammetrics.engines.shards import Progress, S
    from streammetrics.readers.files import Piece

    Done = Accumulator | Exception | None

SILENCE = 60.0  # seconds without a sign of life from a worker, after which it is given up

_START = 300.0  # seconds that a process may take to begin, on a machine that is short of everything
_UNGUARDED = 86  # the exit code of a worker whose script would start workers of its own
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def shared(
    suite: S, pieces: Sequence[Piece], batch_rows: int, workers: int, progress: Progress
) -> list[S]:
    """Let workers read all pieces, and return their sets.

    Raises:
        StreamMetricsError: A piece cannot be read, or its rows not be taken: the first such piece;
            or a worker died, was stopped, or cannot be started.
    """
    _check_startable()
    crew = [_Worker(suite, batch_rows) for _ in range(workers)]
    try:
        return [suite._over(share) for share in _shares(crew, pieces, progress)]
    finally:
        for worker in crew:
            worker.end()


def _check_startable() -> None:
    process = multiprocessing.current_process()
    # Python sets this while a worker imports its parent's script, and refuses by it, but tells
    # only the worker's standard error.
    if getattr(process, "_inheriting", False):
        sys.exit(_UNGUARDED)
    if process.daemon:
        raise StreamMetricsError(
            "this process is daemonic and cannot start workers: pass workers=1, or start it "
            "with daemon=False"
        )


def _shares(
    crew: Sequence[_Worker], pieces: Sequence[Piece], progress: Progress
) -> list[Accumulator]:
    """Hand out the pieces in order, and return what each worker's come to."""
    turns = iter(enumerate(pieces))
    errors: dict[int, BaseException] = {}
    shares: list[Accumulator] = []
    busy = {worker.do(next(turns)): worker for worker in crew}
    while busy:
        done, _ = wait(busy, TICK, FIRST_COMPLETED)
        for worker in busy.values():
            progress(worker.new_rows())
            worker.check_alive()
        for future in done:
            worker = busy.pop(future)
            result = worker.result(future)
            if isinstance(result, BaseException):
                errors[worker.index] = result
            elif result is not None:
                shares.append(result)
                continue
            # Pieces are handed out in order and those begun are finished, so the first piece that
            # fails is the same however many read.
            if not errors:
                busy[worker.do(next(turns, None))] = worker
    if errors:
        raise errors[min(errors)]
    return shares


class _Spawning(SpawnContext):
    """Starts processes as `spawn` does, and remembers the last one for its exit code."""

    process: SpawnProcess | None = None

    def Process(self, *args: Any, **kwargs: Any) -> SpawnProcess:  # type: ignore[override]  # noqa: N802 - a class
        """Return a process that is not started yet."""
        self.process = SpawnContext.Process(*args, **kwargs)
        return self.process


class _Worker:
    """A process that reads pieces, seen from here."""

    def __init__(self, suite: MetricSet, batch_rows: int) -> None:
        self.context = _Spawning()
        self.signs = self.context.RawArray("q", 2)
        self.executor = ProcessPoolExecutor(
            1,
            mp_context=self.context,
            initializer=begin,
            initargs=(suite, batch_rows, self.signs),
        )
        self.index, self.doing = -1, "handed over what it had read"
        self.rows = self.beats = 0
        self.silence, self.looked = 0.0, time.monotonic()

    def do(self, turn: tuple[int, Piece] | None) -> Future[Done]:
        """Let it read a piece; without one, hand over what it has read."""
        with _uninterrupted(), _one_thread():  # the first call starts the process
            if turn is None:
                self.doing = "handed over what it had read"
                return self.executor.submit(hand_over)
            self.index, piece = turn
            self.doing = f"read {piece}"
            return self.executor.submit(read_piece, piece)

    def result(self, future: Future[Done]) -> Done | BaseException:
        """Return what it has done, an error of its own, or raise that it is gone."""
        error = future.exception()
        if isinstance(error, BrokenExecutor):
            raise StreamMetricsError(self._death()) from None
        return future.result() if error is None else error

    def new_rows(self) -> int:
        """Return how many rows it has read since it was asked last."""
        before, self.rows = self.rows, self.signs[ROWS]
        return self.rows - before

    def check_alive(self) -> None:
        """Raise where it has given no sign of life for too long.

        Raises:
            StreamMetricsError: It is stopped, or so short of everything that it may as well be.
        """
        now = time.monotonic()
        # While this process was itself stopped, no sign of anyone was to be seen.
        self.silence += min(now - self.looked, 2 * TICK)
        self.looked = now
        if self.signs[BEATS] != self.beats:
            self.beats, self.silence = self.signs[BEATS], 0.0
        limit = SILENCE if self.beats else _START
        if self.silence > limit:
            pid = self.context.process.pid if self.context.process else None
            raise StreamMetricsError(
                f"the worker process {pid} gave no sign of life for {limit:g} s while it "
                f"{self.doing}: it is stopped (SIGSTOP, a debugger), or the machine is overloaded; "
                "try again, or with fewer workers"
            )

    def _death(self) -> str:
        process = self.context.process
        assert process is not None
        process.join()
        # The executor waits for it as well, and who comes second is told a little later.
        deadline = time.monotonic() + SILENCE
        while process.exitcode is None and time.monotonic() < deadline:
            time.sleep(TICK)
        code = process.exitcode or 0
        if code == _UNGUARDED:
            return (
                "workers import the script that starts them, and this one would start workers "
                'again: put what it does under  if __name__ == "__main__":'
            )
        how = f"exit code {code}" if code >= 0 else signal.Signals(-code).name
        if not self.signs[BEATS]:
            return f"a worker process died ({how}) before it began; what it wrote may say why"
        advice = "; systems do that for want of memory: try fewer workers" if code < 0 else ""
        return f"a worker process died ({how}) while it {self.doing}{advice}"

    def end(self) -> None:
        """End the process, whatever it does, and wait for that."""
        process = self.context.process
        if process is not None and process.pid is not None:
            process.kill()  # a stopped one does not hear anything else
        self.executor.shutdown(cancel_futures=True)


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let no signal break the start of a process, which would be left half begun.

    Ctrl-C is ignored, which the process inherits: ending it is its parent's part. A handler of
    SIGTERM is called afterwards.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    handler = signal.getsignal(signal.SIGTERM)
    if callable(handler):
        signal.signal(signal.SIGTERM, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if callable(handler):
            signal.signal(signal.SIGTERM, handler)
        if came:
            signal.raise_signal(signal.SIGTERM)


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Let a process started meanwhile have no threads for linear algebra: cores are taken."""
    missing = [name for name in _THREADS if name not in os.environ]
    os.environ.update(dict.fromkeys(missing, "1"))
    try:
        yield
    finally:
        for name in missing:
            del os.environ[name]
