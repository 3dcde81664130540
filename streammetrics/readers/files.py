"""What every format's reader promises: columns known first, then tables in batches."""

from __future__ import annotations

import contextlib
import csv
import zlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from streammetrics.core.errors import InvalidBatchError
from streammetrics.readers import selection as wanted
from streammetrics.readers.errors import ReadError
from streammetrics.readers.pieces import SourcePiece

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence

    from streammetrics.core.types import Foreign
    from streammetrics.readers.selection import WantedColumn
    from streammetrics.readers.sources import Source

PIECE_ROWS = 1 << 20  # what a worker takes at a time: long enough that opening a file is nothing

_KINDS = {
    "csv": "CSV",
    "tsv": "TSV",
    "arrow": "Arrow",
    "parquet": "Parquet",
    "jsonl": "JSON lines",
    "trec": "TREC",
    "conll": "tagged text",
    "coco": "COCO JSON",
}


@dataclass(frozen=True)
class FilePiece(SourcePiece, ABC):
    """A file of columns, or a part of one. It can be sent to a process."""

    columns: tuple[WantedColumn, ...]
    rows: int | None  # how many, where it is known

    def tables(self, batch_rows: int) -> Generator[tuple[int, Foreign], None, None]:
        """Yield the number of rows and the columns of each batch, of at most `batch_rows`."""
        with reading(self.source):
            for batch in self.batches(batch_rows):
                for start in range(0, batch.num_rows, batch_rows):
                    part = batch.slice(start, batch_rows)
                    yield part.num_rows, wanted.table(part, self.columns)

    @abstractmethod
    def batches(self, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the needed columns."""


@dataclass(frozen=True)
class KeyedPiece(SourcePiece):
    """A piece, with columns that every row of its file has from the file's path."""

    piece: FilePiece
    values: Mapping[str, object]  # by the column's title

    @property
    def rows(self) -> int | None:
        """How many rows it has, where that is known."""
        return self.piece.rows

    def first_row(self) -> int:
        """Return where in the file the piece begins."""
        return self.piece.first_row()

    def tables(self, batch_rows: int) -> Generator[tuple[int, Foreign], None, None]:
        """Yield the number of rows and the columns of each batch."""
        with contextlib.closing(self.piece.tables(batch_rows)) as tables:
            for rows, table in tables:
                keys = {title: wanted.repeated(value, rows) for title, value in self.values.items()}
                yield rows, {**table, **keys}


class File(ABC):
    """A file whose columns are known, before any is read."""

    names: tuple[str, ...]
    lacking: tuple[str, ...] = ()  # columns that it lacks, and that would be read if it had them
    keys: dict[str, str | None]  # columns of which the path says the value, if the file has none

    def __init__(self, source: Source) -> None:
        self.source = source
        with reading(source):
            self.names = tuple(self.read_names())
        self.keys = {key: value for key, value in source.keys if key not in self.names}

    @abstractmethod
    def read_names(self) -> Sequence[str]:
        """Return the columns' names from what stands at the file's beginning or end."""

    @property
    def advice(self) -> str:
        """What to say beside the names where one that is wanted is not among them."""
        return ""

    def pieces(self, columns: Sequence[WantedColumn], keys: Mapping[str, object]) -> list[Any]:
        """Return the parts that can be read on their own; `keys` are values by title."""
        stored = tuple(column for column in columns if column.title not in keys)
        wanted.check(stored, self.names, self.source)
        with reading(self.source):
            parts = self.split(stored)
        return [KeyedPiece(self.source, part, keys) for part in parts] if keys else parts

    @abstractmethod
    def split(self, columns: tuple[WantedColumn, ...]) -> list[FilePiece]:
        """Return the parts, of `PIECE_ROWS` rows or so where the format allows."""


@contextlib.contextmanager
def reading(source: Source) -> Iterator[None]:
    """Name the file in whatever goes wrong in reading it, and see that it stays what it was.

    A file that was cut or replaced explains every other error, so that one comes first.
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
