"""What every format's reader promises: columns known first, then tables in batches."""

from __future__ import annotations

import contextlib
import csv
import zlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from streammetrics.readers import selection as wanted
from streammetrics.readers.errors import ReadError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streammetrics.readers.selection import Column
    from streammetrics.readers.sources import Source

PIECE_ROWS = 1 << 20  # what a worker takes at a time: long enough that opening a file is nothing


@dataclass(frozen=True)
class FilePiece(ABC):
    """A file, or a part of one. It can be sent to a process."""

    source: Source
    columns: tuple[Column, ...]
    rows: int | None  # how many, where it is known

    unit: ClassVar[str] = "file"

    @property
    def once(self) -> bool:
        """Whether it can only be read in this process."""
        return self.source.once

    def __str__(self) -> str:
        return str(self.source)

    def first_row(self) -> int:
        """Return where in the file the piece begins."""
        return 0

    def tables(self, batch_rows: int, *, threads: bool) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the number of rows and the columns of each batch, of at most `batch_rows`."""
        with reading(self.source):
            for batch in self.batches(batch_rows, threads=threads):
                for start in range(0, batch.num_rows, batch_rows):
                    part = batch.slice(start, batch_rows)
                    yield part.num_rows, wanted.table(part, self.columns)

    @abstractmethod
    def batches(self, batch_rows: int, *, threads: bool) -> Iterator[pa.RecordBatch]:
        """Yield the needed columns."""


class File(ABC):
    """A file whose columns are known, before any is read."""

    names: tuple[str, ...]

    def __init__(self, source: Source) -> None:
        self.source = source
        with reading(source):
            self.names = tuple(self.read_names())

    @abstractmethod
    def read_names(self) -> Sequence[str]:
        """Return the columns' names from what stands at the file's beginning or end."""

    def pieces(self, columns: tuple[Column, ...]) -> list[FilePiece]:
        """Return the parts that can be read on their own."""
        wanted.check(columns, self.names, self.source)
        with reading(self.source):
            return self.split(columns)

    @abstractmethod
    def split(self, columns: tuple[Column, ...]) -> list[FilePiece]:
        """Return the parts, of `PIECE_ROWS` rows or so where the format allows."""


@contextlib.contextmanager
def reading(source: Source) -> Iterator[None]:
    """Name the file in whatever goes wrong in reading it."""
    try:
        yield
    except (
        OSError,
        EOFError,
        zlib.error,
        pa.ArrowException,
        UnicodeDecodeError,
        csv.Error,
    ) as error:
        kind = {"csv": "CSV", "tsv": "TSV", "arrow": "Arrow", "parquet": "Parquet"}
        why = str(getattr(error, "strerror", None) or error).splitlines() or [type(error).__name__]
        raise ReadError(
            f"{source}: cannot be read as {kind.get(source.format, 'JSON lines')}: "
            f"{why[0].rstrip('. ')}"
        ) from error
