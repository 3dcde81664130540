"""Which reader reads which format, and files opened as pieces that can be read side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streammetrics.readers.columnar import Arrow, Parquet
from streammetrics.readers.selection import resolve
from streammetrics.readers.text import Csv, JsonLines

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from streammetrics.core.columns.schema import Kind
    from streammetrics.readers.files import File, FilePiece
    from streammetrics.readers.selection import Column
    from streammetrics.readers.sources import Source

FILES: dict[str, type[File]] = {
    "parquet": Parquet,
    "arrow": Arrow,
    "csv": Csv,
    "tsv": Csv,
    "jsonl": JsonLines,
}


def pieces_of(
    sources: Sequence[Source],
    asked: Callable[[Sequence[str]], Mapping[str, str]],
    kinds: Mapping[str, Kind],
) -> tuple[dict[str, Column], list[FilePiece]]:
    """Open every file, so that a mistake in the last one is told before the first is read.

    Args:
        sources: The files.
        asked: Returns, for the names of the columns of the first file, the text that each input
            of the metrics is asked for with.
        kinds: What each input holds.

    Returns:
        The columns that each input is read from, and the pieces.
    """
    columns: dict[str, Column] = {}
    pieces: list[FilePiece] = []
    for source in sources:
        file = FILES[source.format](source)
        columns = columns or resolve(asked(file.names), kinds, file.names, source)
        pieces += file.pieces(tuple({column.title: column for column in columns.values()}.values()))
    return columns, pieces
