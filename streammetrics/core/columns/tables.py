"""Tables of any library: the names of their columns and the number of their rows."""

from __future__ import annotations

from typing import Any

from streammetrics.core.errors import InvalidBatchError

_NAMES = ("column_names", "columns", "keys")  # of Arrow tables, of data frames, of mappings


def is_table(what: Any) -> bool:
    """Whether it has columns by name."""
    return any(hasattr(what, attribute) for attribute in _NAMES)


def table_columns(table: Any) -> list[str]:
    """Return the names of a table's columns, whatever kind of table it is."""
    for attribute in _NAMES:
        names = getattr(table, attribute, None)
        if names is not None:
            return list(names() if callable(names) else names)
    raise InvalidBatchError(
        f"a {type(table).__name__} is not a table: pass a mapping of arrays, a pandas or polars "
        "DataFrame, an Arrow Table or RecordBatch, or columns by name"
    )


def n_rows(table: Any) -> int:
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
