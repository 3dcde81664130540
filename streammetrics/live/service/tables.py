"""A table of Arrow as columns of events by their kind."""

from __future__ import annotations

from typing import Any

from streammetrics.live.events import KINDS
from streammetrics.live.service.groups import BodyError, Group, no_kind


def of_table(body: bytes, kind: str | None) -> list[Group]:
    """Return the rows of a table, which say their kind unless it is said of all.

    Raises:
        BodyError: It is no table, or a row has no kind.
    """
    import pyarrow as pa  # noqa: PLC0415 - only for those who send it
    import pyarrow.compute as pc  # noqa: PLC0415

    opened = pa.ipc.open_file if body[:6] == b"ARROW1" else pa.ipc.open_stream
    try:
        table = opened(body).read_all().combine_chunks()
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, EOFError) as error:
        raise BodyError(f"the body is no Arrow: {str(error).splitlines()[0]}") from None
    names = table.column_names
    if len({*names}) < len(names):
        raise BodyError(f"the table has two columns of one name: {', '.join(names)}")
    if "kind" not in names and kind is not None:
        return [_group(kind, range(table.num_rows), table)] if table.num_rows else []
    if "kind" not in names:
        raise BodyError(f"the table has no column 'kind': add it, or ?kind={'|'.join(KINDS)}")
    told, table = table["kind"], table.drop_columns(["kind"])
    kinds: list[Any] = pc.unique(told).to_pylist()
    for which in kinds:
        if which not in KINDS:
            no_kind(which, told.to_pylist().index(which))
    if len(kinds) == 1:  # nothing has to be copied
        return [_group(kinds[0], range(table.num_rows), table)]
    found = []
    for which in kinds:
        rows = pc.indices_nonzero(pc.equal(told, which)).to_numpy()
        found.append(_group(which, rows, table.take(rows)))
    return found


def _group(kind: Any, rows: Any, table: Any) -> Group:
    columns = {}
    for name in table.column_names:
        column = table[name]
        if column.null_count == len(column) and len(column):
            continue  # which events of another kind have
        columns[name] = column.combine_chunks()
    return Group(kind, rows, columns)
