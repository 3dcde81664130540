"""What a request brings: lines of JSON or a table of Arrow, as columns of events by their kind."""

from __future__ import annotations

import contextlib
import io
import json
import re
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from streammetrics.core.errors import InvalidBatchError
from streammetrics.live.events import KINDS
from streammetrics.live.together import Part, PartError, take_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from streammetrics.live.entrance import Entrance
    from streammetrics.live.events import Kind
    from streammetrics.live.service.names import Names

JSON_TYPES = ("application/x-ndjson", "application/jsonl", "application/json", "text/plain", "")
ARROW_TYPES = ("application/vnd.apache.arrow.stream", "application/vnd.apache.arrow.file")


class BodyError(InvalidBatchError):
    """A request holds no events, or one that is refused; `row` is its number, from 0 on."""


class Group(NamedTuple):
    """Rows of one kind: their numbers in the request, and their columns."""

    kind: Kind
    rows: Any  # a sequence of integers
    columns: dict[str, Any]


def take(live: Entrance, names: Names, body: bytes, form: str, kind: str | None) -> dict[str, int]:
    """Bring the events of a request to a live state, all or none; return how many of each kind.

    Args:
        live: Where they are brought.
        names: What their columns are called.
        body: The request's.
        form: Its type, one of those above.
        kind: That of rows which do not say their own, in `kind`.

    Raises:
        BodyError: A row is refused, or what there is are no rows; nothing has changed.
    """
    if kind is not None and kind not in KINDS:
        raise BodyError(f"no kind {kind!r}: there are {', '.join(KINDS)}")
    groups = _of_arrow(body, kind) if form in ARROW_TYPES else _of_lines(body, kind)
    try:
        take_all(live, [_part(group, names) for group in groups])
    except PartError as error:
        raise _placed(error, groups[error.place].rows) from error
    return {group.kind: len(group.rows) for group in groups}


def _placed(error: InvalidBatchError, rows: Any) -> BodyError:
    """Return an error of a group with the row's number in the request."""
    if error.row is None:
        return BodyError(str(error), error.column)
    row = int(rows[error.row])
    return BodyError(re.sub(rf"\brow {error.row}\b", f"row {row}", str(error)), error.column, row)


def _part(group: Group, names: Names) -> Part:
    """Return a group as it is taken."""
    kind, columns = group.kind, dict(group.columns)
    time = columns.pop(names.time, None)
    if time is None:
        _refuse(f"has no {names.time!r}", group)
    heads: tuple[Any, ...] = ()
    if kind != "observe":
        ids = columns.pop(names.id, None)
        if ids is None:
            _refuse(f"has no {names.id!r}", group)
        heads = (ids,) if kind == "predict" else (ids, columns.pop(names.version, 1))
    return Part(kind, _as_array(time), heads, columns)


def _as_array(times: Any) -> Any:
    """Return a list of numbers as an array, which need not be looked at one by one."""
    if type(times) is list and {*map(type, times)} <= {float, int}:
        with contextlib.suppress(OverflowError):
            return np.array(times, np.float64)
    return times


def _refuse(why: str, group: Group) -> NoReturn:
    row = int(group.rows[0])
    raise BodyError(f"an event to {group.kind} {why}, first in row {row}", None, row)


# --- lines of JSON ---------------------------------------------------------------------------


def _of_lines(body: bytes, kind: str | None) -> list[Group]:
    events = _objects(body)
    if {*map(type, events)} - {dict}:
        row = next(row for row, event in enumerate(events) if type(event) is not dict)
        raise BodyError(f"row {row} is no JSON object", None, row)
    kinds = [event.pop("kind", kind) for event in events]
    found = []
    for which in _distinct(kinds):
        rows = [row for row, each in enumerate(kinds) if each == which]
        found.append(_alike(which, rows, [events[row] for row in rows]))
    return found


def _distinct(kinds: Sequence[Any]) -> Iterable[str]:
    """Return which kinds there are, in the order in which they come."""
    try:
        found = dict.fromkeys(kinds)
    except TypeError:  # one is a list, or an object
        found = {}
    if not found or found.keys() - {*KINDS}:
        for row, which in enumerate(kinds):
            if which not in KINDS:
                _no_kind(which, row)
    return found


def _alike(kind: str, rows: Sequence[int], events: Sequence[Mapping[str, Any]]) -> Group:
    """Return events of a kind as columns."""
    keys = tuple(events[0])
    if {*map(len, events)} != {len(keys)}:
        _differ(kind, rows, events)
    try:
        columns = {key: [*map(itemgetter(key), events)] for key in keys}
    except KeyError:
        _differ(kind, rows, events)
    return Group(kind, rows, columns)  # type: ignore[arg-type]  # it is one of `KINDS`


def _differ(kind: str, rows: Sequence[int], events: Sequence[Mapping[str, Any]]) -> NoReturn:
    """Raise about the first event that has other keys than the first one."""
    first = events[0]
    row, other = next(
        (row, event)
        for row, event in zip(rows, events, strict=True)
        if event.keys() != first.keys()
    )
    here, there = ", ".join(other) or "nothing", ", ".join(first) or "nothing"
    raise BodyError(
        f"row {row} has {here}, and the first to {kind} {there}: in a request all events of "
        "a kind have the same keys",
        None,
        row,
    )


def _no_kind(which: Any, row: int) -> NoReturn:
    shown = "no kind" if which is None else f"the kind {which!r}"
    raise BodyError(f"row {row} has {shown}: say one of {', '.join(KINDS)} in it", "kind", row)


def _objects(body: bytes) -> list[Any]:
    """Return what the lines, or an array, hold."""
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        row = body.count(b"\n", 0, error.start)
        raise BodyError(f"row {row} is no UTF-8", None, row) from None
    text = text.strip()
    listed = text.startswith("[")
    try:
        # What breaks a line within a text is no JSON, and stays none.
        found = _DECODER.decode(text if listed else "[" + text.replace("\n", ",\n") + "]")
    except (ValueError, RecursionError):
        return _one_by_one(text, listed=listed)
    # A line may hold several objects, or a part of one, and rows would be miscounted.
    is_right = listed or len(found) == (text.count("\n") + 1 if text else 0)
    return found if is_right else _one_by_one(text, listed=listed)


def _one_by_one(text: str, *, listed: bool) -> list[Any]:
    """Return what the lines that are not empty hold, or raise about the first that is no JSON."""
    lines = [text] if listed else [line for line in text.split("\n") if not line.isspace() and line]
    found = []
    for row, line in enumerate(lines):
        try:
            found.append(_DECODER.decode(line))
        except (ValueError, RecursionError) as error:
            raise BodyError(f"row {row} is no JSON: {error}", None, row) from None
    return found


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_number)


# --- tables of Arrow -------------------------------------------------------------------------


def _of_arrow(body: bytes, kind: str | None) -> list[Group]:
    import pyarrow as pa  # noqa: PLC0415 - only for those who send it
    import pyarrow.compute as pc  # noqa: PLC0415

    opened = pa.ipc.open_file if body[:6] == b"ARROW1" else pa.ipc.open_stream
    try:
        table = opened(io.BytesIO(body)).read_all().combine_chunks()
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
    found = []
    for which in pc.unique(told).to_pylist():
        rows = (
            pc.indices_nonzero(pc.equal(told, which)).to_numpy()
            if which in KINDS
            else _no_kind(which, told.to_pylist().index(which))
        )
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
