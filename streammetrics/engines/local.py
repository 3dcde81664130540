"""One machine: a set of metrics over files or tables."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from streammetrics.core.columns.tables import is_table, streamed
from streammetrics.core.errors import an
from streammetrics.core.needs import needs
from streammetrics.engines.shards import S, blank, located
from streammetrics.readers.pieces import BATCH_ROWS, Piece, StreamPiece, TablePiece

if TYPE_CHECKING:
    from streammetrics.core.metric_set import MetricSet
    from streammetrics.engines.worker import Progress

__all__ = ["evaluate"]


def evaluate(
    suite: S,
    data: object,
    *,
    workers: int = 1,
    batch_rows: int = BATCH_ROWS,
    format: str | None = None,  # noqa: A002 - as the command line calls it
    delimiter: str | None = None,
    progress: Progress | None = None,
) -> S:
    """Return a new set that has taken all rows of files or tables; `suite` is untouched.

    The bytes of the result are those of one pass over all rows, whatever `workers` and
    `batch_rows` are. Only the columns that the metrics read are read; ``columns`` of the set may
    name several as a list ``"p0,p1"`` or a glob ``"p*"`` where an input is a matrix of scores.

    Args:
        suite: An empty set.
        data: Paths (Parquet, Arrow, CSV, JSON: files, folders, globs, pipes), tables as
            `MetricSet.update` takes them, a sequence of both, or an iterator of them. Tables of an
            iterator are taken one by one, so that they need not fit in memory together, and by
            this process only. What of folders is left out, and why, is a warning.
        workers: Processes; more than one are spawned, so a script needs the usual
            ``if __name__ == "__main__":``. They share files by row groups, batches or whole, and
            tables whole; states travel back, rows do not.
        batch_rows: Rows of a file that are read at a time.
        format: The format of all files: parquet, arrow, csv, tsv or jsonl; by default what their
            endings say.
        delimiter: What is between the fields of CSV; by default what the first rows of each file
            say: a comma, semicolon, tab or ``|``.
        progress: Called now and then with the number of rows read since the last call.

    Raises:
        IncompatibleMetricsError: The set has been fed already.
        InvalidBatchError: A column is missing, or rows are not what they should be: the message
            names the file or table, the column, the count and the first row.
        StreamMetricsError: A file is not there or cannot be read, or a worker died.
        ImportError: Files need ``streammetrics[io]``.

    Memory and cost:
        A state and a batch of rows per worker. A process takes some 0.4 s to start, so further
        workers are worth it from some ten million rows on.

    Example:
        >>> import streammetrics as sm
        >>> metrics = {"auc": sm.ROCAUC(), "mean": sm.Mean()}
        >>> suite = sm.MetricSet(metrics, columns={"values": "y_score"})
        >>> monday = {"y_true": [0, 1], "y_score": [0.25, 0.5]}
        >>> tuesday = {"y_true": [0, 1], "y_score": [0.75, 1.0]}
        >>> sm.evaluate(suite, [monday, tuesday]).compute()
        {'auc': 0.75, 'mean': 0.625}
    """
    from streammetrics.engines.processes import fill  # noqa: PLC0415 - it is slow to import

    if workers < 1 or batch_rows < 1:
        raise ValueError(f"workers={workers} and batch_rows={batch_rows} must be positive")
    if not (isinstance(workers, int) and isinstance(batch_rows, int)):
        raise TypeError(f"workers={workers!r} and batch_rows={batch_rows!r} must be integers")
    empty = blank(suite)
    pieces = _pieces(empty, data, format, delimiter)
    return fill(empty, pieces, batch_rows=batch_rows, workers=workers, progress=progress)


def _pieces(
    suite: MetricSet, data: object, form: str | None, delimiter: str | None
) -> Iterable[Piece]:
    """Return what to read: all at once, unless tables come one by one."""
    if isinstance(data, str | os.PathLike) or is_table(data):
        return _of_items(suite, [data], form, delimiter)
    if not isinstance(data, Iterable):
        raise TypeError(f"{an(type(data).__name__)} is neither a path or table nor several of them")
    if isinstance(data, bytes) or hasattr(data, "read"):
        raise TypeError(
            f"{an(type(data).__name__)} is neither a path nor a table: pass a file's name as text"
        )
    if isinstance(data, Iterator):
        first = next(data, None)
        if first is not None and is_table(first):
            return (_piece(suite, table, index) for index, table in enumerate(chain([first], data)))
        data = [] if first is None else [first, *data]
    return _of_items(suite, list(data), form, delimiter)


def _of_items(
    suite: MetricSet, items: Sequence[object], form: str | None, delimiter: str | None
) -> list[Piece]:
    pieces: list[Piece] = []
    paths: list[str] = []
    for index, item in enumerate(items):
        if isinstance(item, str | os.PathLike):
            paths.append(os.fspath(item))
        elif isinstance(item, Piece):
            pieces.append(item)
        elif is_table(item):
            pieces.append(_piece(suite, item, index))
        else:
            raise TypeError(
                f"item {index} is {an(type(item).__name__)}, neither a path nor a table"
            )
    return [*_of_files(suite, paths, form, delimiter), *pieces] if paths else pieces


def _piece(suite: MetricSet, table: object, index: int) -> Piece:
    """Return a table as what to read; of one that comes in batches the columns are known first."""
    stream = streamed(table)
    if stream is None:
        return TablePiece(table, index)
    with located(f"table {index}", 0, "table"):
        return StreamPiece(stream, index, suite._reads(stream.names))


def _of_files(
    suite: MetricSet, paths: Sequence[str], form: str | None, delimiter: str | None
) -> Sequence[Piece]:
    with needs("pyarrow", "io"):
        from streammetrics.readers.formats import pieces_of  # noqa: PLC0415 - needs the extra
        from streammetrics.readers.paths import find  # noqa: PLC0415

    found = find(paths, form, delimiter)
    opened = pieces_of(found.sources, suite._asked, suite._kinds)
    for note in [*found.notes, *opened.notes]:
        warnings.warn(note, stacklevel=5)  # where `evaluate` was called
    return opened.pieces
