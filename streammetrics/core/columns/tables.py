"""Tables of any library: the names of their columns and the number of their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from streammetrics.core.errors import InvalidBatchError, an

if TYPE_CHECKING:
    from streammetrics.core.types import Foreign


class BatchStream(NamedTuple):
    """Rows that come batch by batch: the names of their columns, and those of some of them."""

    names: list[str]
    batches: Callable[[list[str]], Iterable[Foreign]]


_NAMES = ("column_names", "columns", "keys")  # of Arrow tables, of data frames, of mappings


def is_table(what: object) -> bool:
    """Whether it has columns by name, or is a stream of batches that have."""
    return is_stream(what) or any(hasattr(what, attribute) for attribute in _NAMES)


def is_stream(what: object) -> bool:
    """Whether `streamed` takes it; nothing of it is read."""
    if isinstance(what, Mapping):
        return False
    each = ("collect_schema", "collect"), ("scanner", "to_batches"), ("project", "fetchall")
    return hasattr(what, "read_next_batch") or (
        not hasattr(what, "get_columns")  # a data frame of polars
        and any(hasattr(what, one) and hasattr(what, other) for one, other in each)
    )


def streamed(table: Foreign) -> BatchStream | None:
    """Return a table whose rows come batch by batch as a stream, ``None`` where it is none.

    These are polars LazyFrames, Arrow Datasets and RecordBatchReaders, and DuckDB relations.
    """
    if not is_stream(table):
        return None
    if hasattr(table, "read_next_batch"):
        return BatchStream(list(table.schema.names), lambda _: table)
    if hasattr(table, "collect_schema"):
        names = table.collect_schema().names()
        return BatchStream(names, lambda names: [table.select(names).collect()])
    if hasattr(table, "scanner"):
        return BatchStream(
            list(table.schema.names),
            lambda names: _narrowed(table, names).to_batches(columns=names),
        )
    import pyarrow as pa  # noqa: PLC0415 - DuckDB hands over its rows by it

    def batches(names: list[str]) -> Foreign:
        return pa.RecordBatchReader.from_stream(table.project(_quoted(names)))

    return BatchStream(list(table.columns), batches)


def _narrowed(dataset: Foreign, names: Sequence[str]) -> Foreign:
    """Return an Arrow Dataset of some columns: one in which two have a name cannot be scanned."""
    schema = dataset.schema
    if len(set(schema.names)) == len(schema.names):
        return dataset
    import pyarrow as pa  # noqa: PLC0415 - whose dataset it is

    return dataset.replace_schema(pa.schema([schema.field(name) for name in names]))


def _quoted(names: Iterable[str]) -> str:
    return ", ".join('"' + name.replace('"', '""') + '"' for name in names)


def table_columns(table: object) -> list[str]:
    """Return the names of a table's columns, whatever kind of table it is."""
    for attribute in _NAMES:
        names = getattr(table, attribute, None)
        if names is not None:
            return list(names() if callable(names) else names)
    raise InvalidBatchError(
        f"{an(type(table).__name__)} is not a table: pass a mapping of arrays, a pandas or polars "
        "DataFrame, an Arrow Table, RecordBatch or Dataset, or columns by name"
    )


def n_rows(table: Foreign) -> int:
    """Return the number of rows of a table."""
    shape = getattr(table, "shape", None)  # of pandas, polars and Arrow tables
    if shape is not None:
        return int(shape[0])
    if hasattr(table, "num_rows"):
        return int(table.num_rows)
    names = table_columns(table)
    if not names:
        raise InvalidBatchError("the table has no columns")
    column = table[names[0]]
    return len(column) if hasattr(column, "__len__") and not isinstance(column, str) else 1
