"""One machine: a set of metrics over files or tables."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, TypeVar, overload

from streammetrics.core.columns.batch import is_table, streamed
from streammetrics.core.errors import IncompatibleMetricsError, an, needs
from streammetrics.core.mergeable import merge
from streammetrics.core.metric import Metric
from streammetrics.core.metric_set import MetricSet
from streammetrics.engines.shards import S, blank, located, read
from streammetrics.readers.files import BATCH_ROWS, Piece, StreamPiece, TablePiece

if TYPE_CHECKING:
    from streammetrics.engines.shards import Progress

__all__ = ["evaluate"]

E = TypeVar("E", bound=MetricSet | Metric)


@overload
def evaluate(
    suite: E,
    data: object,
    *,
    workers: int = ...,
    batch_rows: int = ...,
    format: str | None = ...,
    delimiter: str | None = ...,
    decimal: str | None = ...,
    progress: Progress | None = ...,
) -> E: ...
@overload
def evaluate(
    suite: Mapping[str, Metric],
    data: object,
    *,
    workers: int = ...,
    batch_rows: int = ...,
    format: str | None = ...,
    delimiter: str | None = ...,
    decimal: str | None = ...,
    progress: Progress | None = ...,
) -> MetricSet: ...
def evaluate(
    suite: MetricSet | Metric | Mapping[str, Metric],
    data: object,
    *,
    workers: int = 1,
    batch_rows: int = BATCH_ROWS,
    format: str | None = None,  # noqa: A002 - as the command line calls it
    delimiter: str | None = None,
    decimal: str | None = None,
    progress: Progress | None = None,
) -> MetricSet | Metric:
    """Return a new set that has taken all rows of files or tables; `suite` is untouched.

    The bytes of the result are those of one pass over all rows, whatever `workers` and
    `batch_rows` are. Only the columns that the metrics read are read; ``columns`` of the set may
    name several as a list ``"p0,p1"`` or a glob ``"p*"`` where an input is a matrix of scores.

    Args:
        suite: An empty set, a metric, or a dictionary of metrics, which is made a set.
        data: Paths (Parquet, Arrow, CSV, JSON: files, folders, globs, pipes), tables as
            `MetricSet.update` takes them, a sequence of both, or an iterator of them. Tables of an
            iterator are taken one by one, so that they need not fit in memory together, and by
            this process only. What of folders is left out, and why, is a warning.
        workers: Threads where every metric is one of sums, tables or curves, whose kernels leave
            the GIL; else processes, which are spawned, so a script needs the usual
            ``if __name__ == "__main__":``. They share files by row groups, batches or whole, and
            tables whole; of processes, states travel back, rows do not.
        batch_rows: Rows of a file read at a time, at most; Parquet of many columns, or of texts,
            is read in smaller batches.
        format: The format of all files: parquet, arrow, csv, tsv or jsonl; by default what their
            endings say.
        delimiter: What is between the fields of CSV; by default what the first rows of each file
            say: a comma, semicolon, tab or ``|``.
        decimal: The decimal point of numbers in CSV: ``"."``, or ``","``, where a dot is none.
        progress: Called now and then with the number of rows read since the last call.

    Raises:
        IncompatibleMetricsError: The set has been fed already.
        InvalidBatchError: A column is missing, or rows are not what they should be: the message
            names the file or table, the column, the count and the first row.
        StreamMetricsError: A file is not there or cannot be read, or a worker died.
        ImportError: Files need ``streammetrics[io]``.

    Memory and cost:
        A state and a batch of rows per worker. A process takes some 0.4 s to start, so further
        ones are worth it from some ten million rows on; threads start at once.

    Example:
        >>> import streammetrics as sm
        >>> metrics = {"auc": sm.ROCAUC(), "mean": sm.Mean()}
        >>> suite = sm.MetricSet(metrics, columns={"values": "y_score"})
        >>> monday = {"y_true": [0, 1], "y_score": [0.25, 0.5]}
        >>> tuesday = {"y_true": [0, 1], "y_score": [0.75, 1.0]}
        >>> sm.evaluate(suite, [monday, tuesday]).compute()
        {'auc': 0.75, 'mean': 0.625}
    """
    how = {"fmt": format, "delimiter": delimiter, "decimal": decimal}
    _check_options(workers, batch_rows, how, progress)
    if isinstance(suite, Metric):  # read as a set of one
        name = type(suite).__name__
        one = evaluate(
            MetricSet({name: suite}), data, workers=workers, batch_rows=batch_rows, format=format,
            delimiter=delimiter, decimal=decimal, progress=progress,
        )  # fmt: skip
        return one[name].copy()
    if not isinstance(suite, MetricSet) and isinstance(suite, Mapping):
        suite = MetricSet(suite)
    empty = blank(suite)
    pieces = _pieces(empty, data, how)
    return _filled(empty, pieces, batch_rows, workers, progress or _silent)


def _check_options(
    workers: object, batch_rows: object, how: Mapping[str, object], progress: object
) -> None:
    """Raise where an argument of `evaluate` is of another type or not positive."""
    for name, value in (("workers", workers), ("batch_rows", batch_rows)):
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"{name}={value!r}: expected an integer, 1 or above")
        if value < 1:
            raise ValueError(f"{name}={value}: expected an integer, 1 or above")
    for name, text in how.items():
        if not (text is None or isinstance(text, str)):
            given = "format" if name == "fmt" else name
            raise TypeError(f"{given}={text!r}: expected a string or None")
    if not (progress is None or callable(progress)):
        raise TypeError(f"progress={progress!r}: expected a function of the number of rows read")


def _filled(
    suite: S, pieces: Iterable[Piece], batch_rows: int, workers: int, progress: Progress
) -> S:
    """Return a copy of the set that has taken the rows of all pieces.

    Several workers get the next piece whenever they are free, unless pieces come one by one or can
    be read once. A state is a function of the multiset of rows, so who read what cannot be seen.
    """
    if isinstance(pieces, Sequence) and not any(piece.once for piece in pieces):
        workers = min(workers, len(pieces))
        if workers > 1:
            from streammetrics.engines import processes, threads  # noqa: PLC0415 - slow to import

            share = threads.shared if threads.gains(suite, pieces) else processes.shared
            shares = share(suite, pieces, batch_rows, workers, progress)
            try:
                return merge(shares)
            except IncompatibleMetricsError:
                progress = _silent  # rows that contradict each other: one pass meets where they do
    state = suite.copy()
    for piece in pieces:
        read(piece, state, batch_rows, progress)
    return state


def _silent(rows: int) -> None:
    """Tell nobody."""


def _pieces(suite: MetricSet, data: object, how: Mapping[str, str | None]) -> Iterable[Piece]:
    """Return what to read: all at once, unless tables come one by one."""
    if isinstance(data, str | os.PathLike) or is_table(data):
        return _of_items(suite, [data], how)
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
    return _of_items(suite, list(data), how)


def _of_items(
    suite: MetricSet, items: Sequence[object], how: Mapping[str, str | None]
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
    return [*_of_files(suite, paths, how), *pieces] if paths else pieces


def _piece(suite: MetricSet, table: object, index: int) -> Piece:
    """Return a table as what to read; of one that comes in batches the columns are known first."""
    stream = streamed(table)
    if stream is None:
        return TablePiece(table, index)
    with located(f"table {index}", 0, "table"):
        return StreamPiece(stream, index, suite._reads(stream.names))


def _of_files(
    suite: MetricSet, paths: Sequence[str], how: Mapping[str, str | None]
) -> Sequence[Piece]:
    with needs("pyarrow", "io"):
        from streammetrics.readers.formats import pieces_of  # noqa: PLC0415 - needs the extra
        from streammetrics.readers.paths import find  # noqa: PLC0415

    found = find(paths, **how)
    opened = pieces_of(found.sources, suite._asked, suite._kinds)
    for note in [*found.notes, *opened.notes]:
        warnings.warn(note, stacklevel=5)  # where `evaluate` was called
    return opened.pieces
