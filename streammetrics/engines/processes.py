"""Pieces of data read by several processes of one machine: the same bytes however many read."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any

from streammetrics.core.accumulator import Accumulator
from streammetrics.core.errors import StreamMetricsError
from streammetrics.core.mergeable import merge
from streammetrics.engines.shards import located
from streammetrics.readers.pieces import TablePiece

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from multiprocessing.context import SpawnProcess

    from streammetrics.core.metric_set import MetricSet
    from streammetrics.readers.pieces import Piece

    Progress = Callable[[int], None]

_TICK = 0.1  # seconds between two messages of a worker on how far it is
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def fill(
    suite: MetricSet,
    pieces: Iterable[Piece],
    *,
    batch_rows: int,
    workers: int = 1,
    progress: Progress | None = None,
) -> MetricSet:
    """Return a copy of `suite` that has taken the rows of all pieces.

    This process is one of the workers, the others are spawned, and whoever is free takes the next
    piece. A state is a function of the multiset of rows, so who read what cannot be seen.

    Args:
        suite: The metrics.
        pieces: What to read; those that come one by one, or can be read once, keep it to this
            process.
        batch_rows: Rows read at a time.
        workers: Processes that read.
        progress: Called with the number of rows read since it was last called.

    Raises:
        StreamMetricsError: A piece cannot be read, or its rows not be taken: the first such piece.
    """
    tell = progress or _silent
    if isinstance(pieces, Sequence) and not any(piece.once for piece in pieces):
        workers = min(workers, len(pieces))
        if workers > 1:
            return merge(_shared(_Task(suite, pieces, batch_rows), workers, tell))
    state = suite.copy()
    for piece in pieces:
        _read(piece, state, batch_rows, tell, threads=True)
    return state


def _silent(rows: int) -> None:
    """Tell nobody."""


def _read(
    piece: Piece, suite: MetricSet, batch_rows: int, progress: Progress, *, threads: bool
) -> None:
    """Update the set with the rows of a piece."""
    row = 0
    for rows, table in piece.tables(batch_rows, threads=threads):
        with located(str(piece), lambda: piece.first_row() + row, piece.unit):  # noqa: B023 - called before the next
            suite.update(table)
        row += rows
        progress(rows)


class _Task:
    """What every worker knows. Tables stay in the process that has them, until asked for."""

    def __init__(self, suite: MetricSet, pieces: Sequence[Piece], batch_rows: int) -> None:
        self.suite, self.batch_rows = suite, batch_rows
        self.pieces: list[Any] = list(pieces)

    def __getstate__(self) -> dict[str, Any]:
        pieces = [None if isinstance(piece, TablePiece) else piece for piece in self.pieces]
        return {**self.__dict__, "pieces": pieces}

    def read(self, piece: Piece, suite: MetricSet, progress: Progress) -> None:
        """Update the set with the rows of a piece."""
        _read(piece, suite, self.batch_rows, progress, threads=False)


@dataclass(frozen=True)
class _Ask:
    """A worker's wish for a piece that it could not be sent beforehand."""

    index: int


class _Turns:
    """Hands out the numbers of pieces, in order, to all processes."""

    def __init__(self, context: Any, count: int) -> None:
        self.next = context.Value("q", 0)
        self.count = count

    def __iter__(self) -> Iterator[int]:
        while True:
            with self.next.get_lock():
                index = self.next.value
                self.next.value = index + 1
            if index >= self.count:
                return
            yield index

    def stop(self) -> None:
        """Hand out no more."""
        with self.next.get_lock():
            self.next.value = self.count


def _shared(task: _Task, workers: int, progress: Progress) -> list[MetricSet]:
    context = multiprocessing.get_context("spawn")
    turns = _Turns(context, len(task.pieces))
    helpers: dict[Connection, SpawnProcess] = {}
    try:
        for _ in range(workers - 1):
            mine, theirs = context.Pipe()
            process = context.Process(target=_help, args=(task, turns, theirs), daemon=True)
            with _uninterrupted(), _one_thread():
                process.start()
            theirs.close()
            helpers[mine] = process
        return _Boss(task, turns, helpers, progress).states()
    finally:
        for connection, process in helpers.items():
            process.terminate()
            process.join()
            connection.close()


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ignore Ctrl-C, which a process started meanwhile inherits: ending it is its parent's part."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


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


class _Boss:
    """The process that works along and hears the others."""

    def __init__(
        self,
        task: _Task,
        turns: _Turns,
        helpers: Mapping[Connection, SpawnProcess],
        progress: Progress,
    ) -> None:
        self.task, self.turns, self.helpers, self.progress = task, turns, helpers, progress
        self.open = list(helpers)
        self.results: list[MetricSet] = []
        self.errors: dict[int, Exception] = {}

    def states(self) -> list[MetricSet]:
        """Work, wait for the others, and return everybody's set."""
        mine = self.task.suite.copy()
        index = 0
        try:
            for index in self.turns:
                self.task.read(self.task.pieces[index], mine, self._tick)
        except Exception as error:
            self._failed(index, error)
        while self.open:
            self._hear(None)
        if self.errors:
            # Pieces are handed out in order and those begun are finished, so the first piece that
            # fails is the same however many read.
            raise self.errors[min(self.errors)]
        return [mine, *self.results]

    def _tick(self, rows: int) -> None:
        self.progress(rows)
        self._hear(0)

    def _failed(self, index: int, error: Exception) -> None:
        self.errors[index] = error
        self.turns.stop()

    def _hear(self, timeout: float | None) -> None:
        for connection in wait(self.open, timeout):
            assert isinstance(connection, Connection)
            try:
                message = connection.recv()
            except EOFError:
                message = None
            match message:
                case int(rows):
                    self.progress(rows)
                case _Ask(index=index):
                    connection.send(self.task.pieces[index])
                case Accumulator():
                    self.results.append(self.task.suite._over(message))
                    self.open.remove(connection)
                case (index, error):
                    self._failed(index, error)
                    self.open.remove(connection)
                case None:
                    self.helpers[connection].join()
                    code = self.helpers[connection].exitcode
                    raise StreamMetricsError(
                        f"a worker process died (exit code {code}), perhaps for want of memory: "
                        "try fewer workers"
                    )


def _help(task: _Task, turns: _Turns, boss: Connection) -> None:
    """Work in another process: send rows read now and then, in the end the set or an error."""
    suite = task.suite.copy()
    unsaid, said = 0, time.monotonic()

    def progress(rows: int) -> None:
        nonlocal unsaid, said
        unsaid += rows
        if time.monotonic() - said >= _TICK:
            boss.send(unsaid)
            unsaid, said = 0, time.monotonic()

    index = -1
    try:
        for index in turns:
            piece = task.pieces[index]
            if piece is None:
                boss.send(_Ask(index))
                piece = boss.recv()
            task.read(piece, suite, progress)
        boss.send(unsaid)
        # The statistics as they are: bytes would be checked, summed and sorted for nobody.
        boss.send(suite._alone())
    except Exception as error:
        boss.send((index, error))
