"""Pieces of data that workers read independently."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from streammetrics.core.columns.batch import n_rows

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from streammetrics.core.columns.batch import BatchStream
    from streammetrics.core.types import Foreign, Places
    from streammetrics.readers.sources import Source

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
