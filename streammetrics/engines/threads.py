"""Pieces of data read by several threads, where columns are read and counted without the GIL."""

from __future__ import annotations

import threading
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Generic

from streammetrics.engines.shards import S, read
from streammetrics.engines.worker import TICK
from streammetrics.readers.files import SourcePiece, TablePiece

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.engines.shards import Progress
    from streammetrics.readers.files import Piece


class _StoppedError(Exception):
    """The caller was interrupted, and waits for no more rows."""


def gains(suite: S, pieces: Sequence[Piece]) -> bool:
    """Whether threads serve these metrics and pieces better than processes, which start slowly."""
    return all(isinstance(piece, SourcePiece | TablePiece) for piece in pieces) and all(
        statistic.in_kernels for statistic in suite._plan.start.statistics
    )


def shared(
    suite: S, pieces: Sequence[Piece], batch_rows: int, workers: int, progress: Progress
) -> list[S]:
    """Let threads read all pieces, and return their sets.

    Raises:
        Exception: That of the first piece that cannot be read, or whose rows cannot be taken.
    """
    work = _Work(suite, pieces, batch_rows)
    with ThreadPoolExecutor(workers, "evaluate") as executor:
        try:
            futures = [executor.submit(work.share) for _ in range(workers)]
            busy = set(futures)
            while busy:
                _, busy = wait(busy, TICK, FIRST_EXCEPTION)
                progress(work.new_rows())
        finally:
            work.interrupted = True
    if work.errors:
        raise work.errors[min(work.errors)]
    return [future.result() for future in futures]


class _Work(Generic[S]):
    """Pieces that are handed out in order, and what became of them."""

    def __init__(self, suite: S, pieces: Sequence[Piece], batch_rows: int) -> None:
        self.suite, self.batch_rows = suite, batch_rows
        self.turns = iter(enumerate(pieces))
        self.errors: dict[int, Exception] = {}
        self.interrupted = False
        self._lock = threading.Lock()
        self._rows = 0

    def share(self) -> S:
        """Return a set of the pieces that this thread has read."""
        state = self.suite.copy()
        # Pieces are handed out in order and those begun are finished, so the first piece that
        # fails is the same however many read.
        while not self.errors:
            with self._lock:
                index, piece = next(self.turns, (-1, None))
            if piece is None:
                break
            try:
                read(piece, state, self.batch_rows, self._tell)
            except _StoppedError:
                break
            except Exception as error:  # raised by whoever waits for the threads
                self.errors[index] = error
        return state

    def new_rows(self) -> int:
        """Return how many rows were read since this was asked last."""
        with self._lock:
            rows, self._rows = self._rows, 0
        return rows

    def _tell(self, rows: int) -> None:
        with self._lock:
            self._rows += rows
        if self.interrupted:
            raise _StoppedError
