"""A set of metrics over many pieces of data, read in parallel: the same bytes however many read."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, Protocol

from streammetrics.core.accumulator import Accumulator
from streammetrics.core.errors import InvalidBatchError, StreamMetricsError
from streammetrics.core.metric_set import MetricSet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from multiprocessing.context import SpawnProcess

    from streammetrics.core.metric import Metric

    Progress = Callable[[int], None]

_TICK = 0.1  # seconds between two messages of a worker on how far it is
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


class Piece(Protocol):
    """Rows that one worker reads at a time; its text is what messages call it."""

    @property
    def once(self) -> bool:
        """Whether it can only be read in this process."""

    @property
    def rows(self) -> int | None:
        """How many rows it has, where that is known."""

    def first_row(self) -> int:
        """Return the number of rows before it in its file."""

    def tables(self, batch_rows: int, *, threads: bool) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """Yield the number of rows and the table of each batch."""


def evaluate(
    suite: MetricSet,
    pieces: Sequence[Piece],
    *,
    batch_rows: int,
    workers: int = 1,
    progress: Progress | None = None,
) -> None:
    """Update `suite` with the rows of all pieces, or raise and leave it as it was.

    This process is one of the workers, the others are spawned, and whoever is free takes the next
    piece. A state is a function of the multiset of rows, so who read what cannot be seen.

    Args:
        suite: The metrics.
        pieces: What to read.
        batch_rows: Rows read at a time.
        workers: Processes that read; pieces that can be read once keep it to this one.
        progress: Called with the number of rows read since it was last called.

    Raises:
        StreamMetricsError: A piece cannot be read, or its rows not be taken: the first such piece.
    """
    task = _Task(suite, pieces, batch_rows)
    workers = min(workers, len(pieces))
    if workers > 1 and not any(piece.once for piece in pieces):
        states = _shared(task, workers, progress or _silent)
    else:
        mine = task.suite()
        for index in range(len(pieces)):
            task.read(index, mine, progress or _silent, threads=True)
        states = [mine]
    suite.merge(*states)


def _silent(rows: int) -> None:
    """Tell nobody."""


class _Task:
    """What every worker knows. Pickling the metrics imports the modules that define them."""

    def __init__(self, suite: MetricSet, pieces: Sequence[Piece], batch_rows: int) -> None:
        self.metrics: dict[str, Metric] = {name: suite[name].copy().reset() for name in suite}
        self.columns = suite.columns
        self.pieces = pieces
        self.batch_rows = batch_rows

    def suite(self) -> MetricSet:
        """Return an empty set of the metrics."""
        return MetricSet(self.metrics, columns=self.columns)

    def read(self, index: int, suite: MetricSet, progress: Progress, *, threads: bool) -> None:
        """Update the set with the rows of a piece."""
        piece, row = self.pieces[index], 0
        for rows, table in piece.tables(self.batch_rows, threads=threads):
            try:
                suite.update(table)
            except InvalidBatchError as error:
                raise _located(error, piece, row) from None
            row += rows
            progress(rows)


def _located(error: InvalidBatchError, piece: Piece, row: int) -> InvalidBatchError:
    """Return the error with the file and, for the row in the batch, the one in the file."""
    text, found = str(error), error.row
    if found is not None:
        at = piece.first_row() + row + found
        text = text.replace(f"in row {found}", f"in row {at} of the file", 1)
        found = at
    return InvalidBatchError(f"{piece}: {text}", error.column, found)


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
            receiver, sender = context.Pipe(duplex=False)
            process = context.Process(target=_help, args=(task, turns, sender), daemon=True)
            with _uninterrupted(), _one_thread():
                process.start()
            sender.close()
            helpers[receiver] = process
        return _Boss(task, turns, helpers, progress).states()
    finally:
        for receiver, process in helpers.items():
            process.terminate()
            process.join()
            receiver.close()


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
        mine = self.task.suite()
        index = 0
        try:
            for index in self.turns:
                self.task.read(index, mine, self._tick, threads=False)
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
        for receiver in wait(self.open, timeout):
            assert isinstance(receiver, Connection)
            try:
                message = receiver.recv()
            except EOFError:
                message = None
            match message:
                case int(rows):
                    self.progress(rows)
                case Accumulator():
                    self.results.append(self.task.suite().over(message))
                    self.open.remove(receiver)
                case (index, error):
                    self._failed(index, error)
                    self.open.remove(receiver)
                case None:
                    self.helpers[receiver].join()
                    code = self.helpers[receiver].exitcode
                    raise StreamMetricsError(
                        f"a worker process died (exit code {code}), perhaps for want of memory: "
                        "try fewer workers"
                    )


def _help(task: _Task, turns: _Turns, sender: Connection) -> None:
    """Work in another process: send rows read now and then, in the end the set or an error."""
    suite = task.suite()
    unsaid, said = 0, time.monotonic()

    def progress(rows: int) -> None:
        nonlocal unsaid, said
        unsaid += rows
        if time.monotonic() - said >= _TICK:
            sender.send(unsaid)
            unsaid, said = 0, time.monotonic()

    index = -1
    try:
        for index in turns:
            task.read(index, suite, progress, threads=False)
        sender.send(unsaid)
        # The statistics as they are: bytes would be checked, summed and sorted for nobody.
        sender.send(suite.alone())
    except Exception as error:
        sender.send((index, error))
