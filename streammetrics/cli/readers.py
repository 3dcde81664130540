"""Which reader reads which format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streammetrics.cli.columnar import Arrow, Parquet
from streammetrics.cli.text import Csv, JsonLines

if TYPE_CHECKING:
    from streammetrics.cli.reading import File
    from streammetrics.cli.sources import Source

FILES: dict[str, type[File]] = {
    "parquet": Parquet,
    "arrow": Arrow,
    "csv": Csv,
    "tsv": Csv,
    "jsonl": JsonLines,
}


def opened(source: Source) -> File:
    """Return the file of a source, its names read."""
    return FILES[source.format](source)
