"""Pieces of data that workers read independently, and the base classes of the readers."""

from __future__ import annotations

import contextlib
import csv
import zlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import pyarrow as pa

from streammetrics.core.columns.batch import n_rows
from streammetrics.core.errors import InvalidBatchError
from streammetrics.readers import selection as wanted
from streammetrics.readers.paths import ReadError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence

    from streammetrics.core.columns.batch import BatchStream
    from streammetrics.core.types import Foreign, Places
    from streammetrics.readers.paths import Source
    from streammetrics.readers.selection import WantedColumn


BATCH_ROWS = 1 << 20  # large enough to hide the overhead of calling every statistic


class FilteredTable(dict[str, Any]):
    """The columns of some rows of a table, and the place of each of these rows in it."""

    def __init__(self, columns: Mapping[str, Any], places: Places) -> None:
        super().__init__(columns)
        self.places = places


@runtime_checkable
class Piece(Protocol):
    """A part of the data; `str()` names it in messages."""

    unit: ClassVar[str]  # rows are counted from its beginning: "file" or "table"

    @property
    def once(self) -> bool:
        """Whether the piece can be read only once, in this process."""

    @property
    def rows(self) -> int | None:
        """The number of rows, ``None`` if unknown."""

    def first_row(self) -> int:
        """Return the number of rows before the piece in its file."""

    def tables(self, batch_rows: int) -> Generator[tuple[int, Foreign], None, None]:
        """Yield the number of rows and the table of each batch."""


@dataclass(frozen=True)
class SourcePiece:
    """A file or a part of one, named by the file in messages."""

    source: Source

    unit: ClassVar[str] = "file"

    @property
    def once(self) -> bool:
        """Whether the piece can be read only once, in this process."""
        return self.source.once

    def __str__(self) -> str:
        return str(self.source)

    def first_row(self) -> int:
        """Return the row of the file at which the piece begins."""
        return 0


@dataclass(frozen=True)
class StreamPiece:
    """A table that arrives batch by batch and can be read only in this process."""

    stream: BatchStream
    index: int
    names: list[str]  # of the columns to read

    unit: ClassVar[str] = "table"
    once: ClassVar[bool] = True
    rows: ClassVar[None] = None

    def __str__(self) -> str:
        return f"table {self.index}"

    def first_row(self) -> int:
        """Return 0."""
        return 0

    def tables(self, batch_rows: int) -> Generator[tuple[int, Foreign], None, None]:
        """Yield the batches."""
        for batch in self.stream.batches(self.names):
            yield n_rows(batch), batch


@dataclass(frozen=True)
class TablePiece:
    """A whole table in memory."""

    table: Foreign
    index: int

    unit: ClassVar[str] = "table"
    once: ClassVar[bool] = False

    def __str__(self) -> str:
        return f"table {self.index}"

    @property
    def rows(self) -> int:
        """The number of rows."""
        return n_rows(self.table)

    def first_row(self) -> int:
        """Return 0."""
        return 0

    def tables(self, batch_rows: int) -> Generator[tuple[int, Foreign], None, None]:
        """Yield the table."""
        yield self.rows, self.table


PIECE_ROWS = 1 << 20  # per worker, so that the cost of opening a file is small

_KINDS = {
    "csv": "CSV",
    "tsv": "TSV",
    "arrow": "Arrow",
    "parquet": "Parquet",
    "jsonl": "JSON lines",
    "trec": "TREC",
    "conll": "tagged text",
    "coco": "COCO JSON",
    "eval": "a log of Inspect",
}


@dataclass(frozen=True)
class FilePiece(SourcePiece, ABC):
    """A file with columns, or a part of it, which can be sent to another process."""

    columns: tuple[WantedColumn, ...]
    rows: int | None  # ``None`` if unknown

    def tables(self, batch_rows: int) -> Generator[tuple[int, Foreign], None, None]:
        """Yield the number of rows and the columns of each batch of at most `batch_rows` rows."""
        with reading(self.source):
            for batch in self.batches(batch_rows):
                for start in range(0, batch.num_rows, batch_rows):
                    part = batch.slice(start, batch_rows)
                    yield part.num_rows, wanted.table(part, self.columns)

    @abstractmethod
    def batches(self, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield record batches of the needed columns."""


@dataclass(frozen=True)
class WrappedPiece(SourcePiece):
    """A piece whose tables are changed as they are read; its rows are counted before that."""

    piece: FilePiece | KeyedPiece

    @property
    def rows(self) -> int | None:
        """The number of rows, ``None`` if unknown."""
        return self.piece.rows

    def first_row(self) -> int:
        """Return the row of the file at which the piece begins."""
        return self.piece.first_row()


@dataclass(frozen=True)
class KeyedPiece(WrappedPiece):
    """A piece with additional columns whose values come from the path of its file."""

    values: Mapping[str, object]  # by column title

    def tables(self, batch_rows: int) -> Generator[tuple[int, Foreign], None, None]:
        """Yield the number of rows and the columns of each batch."""
        with contextlib.closing(self.piece.tables(batch_rows)) as tables:
            for rows, table in tables:
                keys = {title: wanted.repeated(value, rows) for title, value in self.values.items()}
                yield rows, {**table, **keys}


class File(ABC):
    """A file whose column names are known before any column is read."""

    names: tuple[str, ...]
    lacking: tuple[str, ...] = ()  # requested columns that the file lacks
    keys: dict[str, str | None]  # columns whose value comes from the path, unless the file has them

    def __init__(self, source: Source) -> None:
        self.source = source
        with reading(source):
            self.names = tuple(self.read_names())
        self.keys = {key: value for key, value in source.keys if key not in self.names}

    @abstractmethod
    def read_names(self) -> Sequence[str]:
        """Return the column names, from the header or the footer of the file."""

    @property
    def advice(self) -> str:
        """A hint to append to the error for a missing column."""
        return ""

    def pieces(self, columns: Sequence[WantedColumn], keys: Mapping[str, object]) -> list[Any]:
        """Return the parts that can be read independently; `keys` holds path values by title."""
        stored = tuple(column for column in columns if column.title not in keys)
        wanted.check(stored, self.names, self.source)
        with reading(self.source):
            parts = self.split(stored)
        return [KeyedPiece(self.source, part, keys) for part in parts] if keys else parts

    @abstractmethod
    def split(self, columns: tuple[WantedColumn, ...]) -> list[FilePiece]:
        """Return pieces of about `PIECE_ROWS` rows if the format allows."""


@contextlib.contextmanager
def reading(source: Source) -> Iterator[None]:
    """Name the file in every error while reading it, and check that it does not change meanwhile.

    The check comes first, because a truncated or replaced file explains every other error.
    """
    source.check()
    try:
        yield
    except InvalidBatchError:
        source.check()
        raise
    except (OSError, EOFError, zlib.error, pa.ArrowException, ValueError, csv.Error) as error:
        source.check()
        why = str(getattr(error, "strerror", None) or error).splitlines() or [type(error).__name__]
        raise ReadError(
            f"{source}: cannot be read as {_KINDS[source.format]}: {why[0].rstrip('. ')}"
        ) from error
    source.check()
