"""Write a table in any format."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pathlib import Path


def store(table: pa.Table, path: Path, rows: int = 500) -> Path:
    """Write a table in the format of the path's ending."""
    name = path.name.removesuffix(".gz")
    if name.endswith(".parquet"):
        pq.write_table(table, path, row_group_size=rows)
    elif name.endswith((".arrow", ".feather")):
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=rows)
    elif name.endswith(".arrows"):
        with pa.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=rows)
    else:
        data = text(table, "\t" if ".tsv" in path.name else ",", lines="json" in path.name)
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def text(table: pa.Table, delimiter: str = ",", *, lines: bool = False) -> bytes:
    if lines:
        return "".join(json.dumps(row) + "\n" for row in table.to_pylist()).encode()
    out = pa.BufferOutputStream()
    pc.write_csv(table, out, pc.WriteOptions(delimiter=delimiter))
    return out.getvalue().to_pybytes()
