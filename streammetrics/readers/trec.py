"""TREC files as tables: judgments ("qrels") and runs, plain or compressed, in batches.

A line of judgments is ``topic iteration document relevance``. A line of a run is ``topic Q0
document rank score tag``. Fields are separated by whitespace. As in trec_eval, scores are rounded
to 32-bit floats and ranks are ignored.
"""

from __future__ import annotations

import io
import math
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.errors import InvalidBatchError
from streammetrics.readers.files import SourcePiece, reading
from streammetrics.readers.numbers import is_infinity
from streammetrics.readers.paths import matching, source_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
    from pathlib import Path

    from streammetrics.core.types import Array, Foreign
    from streammetrics.readers.paths import Source

    Table = dict[str, Foreign]

BATCH_ROWS = 1 << 18
INPUTS = {name: name for name in ("query", "relevance", "score", "doc")}

_QRELS = ("topic", "iteration", "document", "relevance")
_RUN = ("topic", "Q0", "document", "rank", "score", "tag")


def read_qrels(path: str | Path, *, batch_rows: int = BATCH_ROWS) -> Iterator[Table]:
    """Yield the judgments of a file as columns ``query``, ``doc`` and ``relevance``.

    Raises:
        InvalidBatchError: A line is not a judgment; the message names the file and the line.
        StreamMetricsError: The file cannot be read.
    """
    return _judgments(source_of(str(path), "trec"), batch_rows)


def read_run(path: str | Path, *, batch_rows: int = BATCH_ROWS) -> Iterator[Table]:
    """Yield the results of a file as columns ``query``, ``doc`` and ``score``.

    Raises:
        InvalidBatchError: A line is not a result of a run; the message names the file and the line.
        StreamMetricsError: The file cannot be read.
    """
    return _results(source_of(str(path), "trec"), batch_rows)


def _judgments(source: Source, batch_rows: int) -> Iterator[Table]:
    for fields, start, lines in _batches(source, _QRELS, batch_rows):
        relevance = _numbers(fields[3], int, "an integer relevance", source, lines, start)
        yield {"query": list(fields[0]), "doc": list(fields[2]), "relevance": relevance}


def _results(source: Source, batch_rows: int) -> Iterator[Table]:
    for fields, start, lines in _batches(source, _RUN, batch_rows):
        score = _numbers(fields[4], float, "a number as score", source, lines, start)
        with np.errstate(over="ignore", under="ignore"):
            score = score.astype(np.float32).astype(np.float64)
        yield {"query": list(fields[0]), "doc": list(fields[2]), "score": score}


def _batches(
    source: Source, names: tuple[str, ...], batch_rows: int
) -> Iterator[tuple[list[tuple[str, ...]], int, list[list[str]]]]:
    """Yield text columns, the number of the first line, and the fields of each line."""
    number = 1
    with reading(source), io.TextIOWrapper(source.open(), encoding="utf-8") as file:
        while lines := list(islice(file, batch_rows)):
            rows = [line.split() for line in lines]
            if set(map(len, rows)) != {len(names)}:
                _check_widths(source, rows, number, names)
                rows = [row or [""] * len(names) for row in rows]  # blank lines count as lines
            blank = [not row[0] for row in rows]
            kept = [row for row, empty in zip(rows, blank, strict=True) if not empty]
            if kept:
                yield list(zip(*kept, strict=True)), number, rows
            number += len(lines)


def _check_widths(
    source: Source, rows: Iterable[list[str]], number: int, names: tuple[str, ...]
) -> None:
    for line, row in enumerate(rows, number):
        if row and len(row) != len(names):
            raise InvalidBatchError(
                f"{source}, line {line}: expected {len(names)} fields ({' '.join(names)}), "
                f"found {len(row)}"
            )


def _numbers(
    texts: tuple[str, ...],
    kind: Callable[[str], float],
    expected: str,
    source: Source,
    rows: list[list[str]],
    start: int,
) -> Array:
    try:
        values = _array(texts, kind)
    except (ValueError, OverflowError):
        values = np.array([math.nan])
    if not np.isfinite(values).all():
        _check_numbers(kind, expected, source, rows, start)
    return values


def _array(texts: Sequence[str], kind: Callable[[str], float]) -> Array:
    return np.array(list(map(kind, texts)), np.int64 if kind is int else np.float64)


def _check_numbers(
    kind: Callable[[str], float], expected: str, source: Source, rows: list[list[str]], start: int
) -> None:
    column = 3 if kind is int else 4
    for line, row in enumerate(rows, start):
        if not row[0]:
            continue
        try:
            (value,) = _array(row[column : column + 1], kind)
            wrong = math.isnan(value) or (math.isinf(value) and not is_infinity(row[column]))
        except (ValueError, OverflowError):
            wrong = True
        if wrong:
            raise InvalidBatchError(
                f"{source}, line {line}: expected {expected}, found {row[column]!r:.60}"
            )


@dataclass(frozen=True)
class TrecPiece(SourcePiece):
    """A file of judgments or results."""

    judged: bool
    score: str = "score"  # column name of the scores of a run
    rows = None  # unknown until the end is read

    def tables(self, batch_rows: int) -> Generator[tuple[int, Table], None, None]:
        """Yield the number of rows and the columns of each batch."""
        read = _judgments if self.judged else _results
        for table in read(self.source, batch_rows):
            named = {self.score if name == "score" else name: table[name] for name in table}
            yield len(table["query"]), named


def pieces(qrels: str, run: str) -> list[TrecPiece]:
    """Return the pieces of judgments and results; each argument is a path or a glob."""
    return [
        TrecPiece(source_of(path, "trec"), judged)
        for pattern, judged in ((qrels, True), (run, False))
        for path in matching(pattern)
    ]
