"""Parquet and Arrow files: read by column, in independent parts."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from streammetrics.readers.files import PIECE_ROWS, File, FilePiece
from streammetrics.readers.selection import needed, of_kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streammetrics.core.types import Foreign
    from streammetrics.readers.selection import WantedColumn
    from streammetrics.readers.sources import Source


_BATCH_BYTES = 1 << 24  # decoded per batch: two columns of `BATCH_ROWS` numbers
_LONG_VALUE = 128  # bytes assumed for a string or list value


@dataclass(frozen=True)
class ParquetPiece(FilePiece):
    """Consecutive row groups of a Parquet file."""

    groups: tuple[int, ...]
    start: int
    coded: tuple[str, ...]  # text columns of labels, decoded as dictionaries
    largest: int  # maximum rows per batch

    def first_row(self) -> int:
        """Return the number of rows in the preceding row groups."""
        return self.start

    def batches(self, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Decode the row groups batch by batch, in the calling thread."""
        with _parquet_file(self.source, self.coded) as file:
            yield from file.iter_batches(
                batch_size=min(batch_rows, self.largest),
                row_groups=list(self.groups),
                columns=needed(self.columns),
                use_threads=False,
            )


class Parquet(File):
    """A Parquet file; its footer holds names, types and sizes."""

    def read_names(self) -> Sequence[str]:
        """Read the footer and return the column names."""
        with _parquet_file(self.source) as file:
            self.schema, footer = file.schema_arrow, file.metadata
        self.sizes = [footer.row_group(i).num_rows for i in range(footer.num_row_groups)]
        return list(self.schema.names)

    def split(self, columns: tuple[WantedColumn, ...]) -> list[FilePiece]:
        """Split the file into pieces of consecutive row groups, joining small ones."""
        types = {name: self.schema.field(name).type for name in needed(columns)}
        labels = of_kind(columns, "label")
        texts = tuple(name for name, kind in types.items() if name in labels and _is_text(kind))
        widths = [8 if pa.types.is_primitive(kind) else _LONG_VALUE for kind in types.values()]
        largest = max(1, _BATCH_BYTES // max(1, sum(widths)))
        pieces: list[FilePiece] = []
        groups: list[int] = []
        start = rows = 0
        for group, size in enumerate(self.sizes):
            groups.append(group)
            rows += size
            if rows >= PIECE_ROWS or group == len(self.sizes) - 1:
                piece = ParquetPiece(
                    self.source, columns, rows, tuple(groups), start, texts, largest
                )
                pieces.append(piece)
                groups, start, rows = [], start + rows, 0
        return pieces


def _parquet_file(source: Source, coded: Sequence[str] = ()) -> Foreign:
    """Open a file without memory-mapping, which would kill the process if the file is truncated."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - imported only to read Parquet

    return pq.ParquetFile(source.path, read_dictionary=list(coded), page_checksum_verification=True)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


@dataclass(frozen=True)
class ArrowPiece(FilePiece):
    """Consecutive record batches of an Arrow file."""

    first: int
    stop: int

    def first_row(self) -> int:
        """Count the rows of the preceding batches, which the format does not store."""
        with _arrow_file(self.source, self.columns) as file:
            return sum(file.get_batch(i).num_rows for i in range(self.first))

    def batches(self, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Read the needed columns of the record batches."""
        with _arrow_file(self.source, self.columns) as file:
            for index in range(self.first, self.stop):
                yield file.get_batch(index)


@dataclass(frozen=True)
class ArrowStreamPiece(FilePiece):
    """A whole Arrow stream."""

    def batches(self, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Read the stream to its end."""
        with self.source.open() as stream, pa.ipc.open_stream(stream) as reader:
            yield from reader


class Arrow(File):
    """An Arrow IPC file (Feather), or a stream."""

    def read_names(self) -> Sequence[str]:
        """Read the schema and return the column names."""
        with self.source.peek() as stream:
            self.streamed = stream.peek(8)[:6] != b"ARROW1"
            if self.streamed:
                return list(pa.ipc.open_stream(stream).schema.names)
        with _arrow_file(self.source, ()) as file:
            self.count = file.num_record_batches
            self.rows = file.get_batch(0).num_rows if self.count else 0
            return list(file.schema.names)

    def split(self, columns: tuple[WantedColumn, ...]) -> list[FilePiece]:
        """Split the file into pieces of batches, assuming that all are as long as the first."""
        if self.streamed:
            return [ArrowStreamPiece(self.source, columns, None)]
        step = max(1, PIECE_ROWS // max(1, self.rows))
        return [
            ArrowPiece(self.source, columns, None, first, min(first + step, self.count))
            for first in range(0, self.count, step)
        ]


@contextlib.contextmanager
def _arrow_file(source: Source, columns: Sequence[WantedColumn]) -> Iterator[Foreign]:
    """Open a file without memory-mapping, which would kill the process if the file is truncated."""
    with pa.OSFile(source.path, "rb") as file:
        names = pa.ipc.open_file(file).schema.names
        fields = [names.index(name) for name in needed(columns)] or None
        yield pa.ipc.open_file(file, options=pa.ipc.IpcReadOptions(included_fields=fields))
