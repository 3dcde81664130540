"""Parsing of request bodies: JSON lines, JSON arrays and Arrow tables."""

from __future__ import annotations

import contextlib
import io
import json
import re
import time
from contextlib import suppress
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Union

import numpy as np

from streammetrics.core.errors import InvalidBatchError, needs
from streammetrics.live.events import KINDS
from streammetrics.live.ingest import EventColumns, PartError
from streammetrics.live.service.letters import MOST, PATIENCE
from streammetrics.live.validation import kinds_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from streammetrics.core.types import Document, Json
    from streammetrics.live.events import Kind

    Told = tuple[str | None, frozenset[str]]  # kind in the query, keys of the first row
    from streammetrics.live.ingest import Ingest
    from streammetrics.live.service.letters import DeadLetters
    from streammetrics.live.service.names import Names


class BodyError(InvalidBatchError):
    """A request without events or with an invalid one; `row` is its zero-based number."""


class Group(NamedTuple):
    """Rows of one kind: their numbers in the request, and their columns."""

    kind: Kind
    rows: Any  # a sequence of integers
    columns: dict[str, Any]


def no_kind(which: object, row: int) -> NoReturn:
    """Raise for a row with an unknown kind."""
    shown = "no kind" if which is None else f"the kind {which!r}"
    raise BodyError(f"row {row} has {shown}: say one of {', '.join(KINDS)} in it", "kind", row)


def of_lines(body: bytes, kind: str | None) -> list[Group]:
    """Parse JSON events; each states its kind, unless `kind` gives it for all.

    Raises:
        BodyError: A row is not an object, has no kind, or has other keys than its kind's first row.
    """
    found: dict[str, tuple[list[int], list[Document]]] = {}
    for row, event in enumerate(_objects(body)):
        if type(event) is not dict:
            raise BodyError(f"row {row} is not a JSON object", None, row)
        which = event.pop("kind", kind)
        if which not in KINDS:
            no_kind(which, row)
        rows, events = found.setdefault(which, ([], []))
        rows.append(row)
        events.append(event)
    return [_alike(which, *mine) for which, mine in found.items()]


def _alike(kind: str, rows: Sequence[int], events: Sequence[Mapping[str, Json]]) -> Group:
    """Return events of one kind as columns."""
    keys = tuple(events[0])
    if {*map(len, events)} != {len(keys)}:
        _differ(kind, rows, events)
    try:
        columns = {key: [*map(itemgetter(key), events)] for key in keys}
    except KeyError:
        _differ(kind, rows, events)
    return Group(kind, rows, columns)  # type: ignore[arg-type]  # it is one of `KINDS`


def _differ(kind: str, rows: Sequence[int], events: Sequence[Mapping[str, Json]]) -> NoReturn:
    """Raise for the first event whose keys differ from those of the first one."""
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


def _objects(body: bytes) -> Iterator[Json]:
    """Yield the values of non-empty lines, or of an array; raise for the first invalid one."""
    if body.lstrip().startswith(b"["):
        yield from _decoded(body, 0)
        return
    row = 0
    for line in io.BytesIO(body):  # lazily, because most invalid bodies fail at the first line
        if not line.isspace():
            yield _decoded(line, row)
            row += 1


def _decoded(line: bytes, row: int) -> Json:
    try:
        return _DECODER.decode(line.decode())
    except (json.JSONDecodeError, UnicodeDecodeError, InvalidBatchError) as error:
        raise BodyError(f"row {row} is not JSON: {error}", None, row) from None
    except RecursionError:
        raise BodyError(f"row {row} is nested too deeply", None, row) from None
    except ValueError:  # Python's limit, whose advice is not for a client
        raise BodyError(f"row {row} has an integer with too many digits", None, row) from None


def _no_number(word: str) -> NoReturn:
    raise InvalidBatchError(f"{word} is not a JSON number")


_DECODER = json.JSONDecoder(parse_constant=_no_number)


def of_table(body: bytes, kind: str | None) -> list[Group]:
    """Parse an Arrow table; its rows state their kind, unless `kind` gives it for all.

    Raises:
        BodyError: The body is not a table, or a row has no kind.
    """
    return _groups_of(_table(body), kind)


def _table(body: bytes) -> Any:
    """Parse an Arrow table."""
    import pyarrow as pa  # noqa: PLC0415 - imported only to parse Arrow

    opened = pa.ipc.open_file if body[:6] == b"ARROW1" else pa.ipc.open_stream
    try:
        table = opened(body).read_all().combine_chunks()
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, EOFError) as error:
        raise BodyError(f"the body is not Arrow: {str(error).splitlines()[0]}") from None
    names = table.column_names
    if len({*names}) < len(names):
        raise BodyError(f"the table has two columns of one name: {', '.join(names)}")
    return table


def _groups_of(table: Any, kind: str | None) -> list[Group]:
    """Return the rows of a table by kind."""
    import pyarrow.compute as pc  # noqa: PLC0415 - imported only to parse Arrow

    names = table.column_names
    if "kind" not in names and kind is not None:
        return [_group(kind, range(table.num_rows), table)] if table.num_rows else []
    if "kind" not in names:
        raise BodyError(f"the table has no column 'kind': add it, or ?kind={'|'.join(KINDS)}")
    told, table = table["kind"], table.drop_columns(["kind"])
    kinds: list[Any] = pc.unique(told).to_pylist()
    for which in kinds:
        if which not in KINDS:
            no_kind(which, told.to_pylist().index(which))
    if len(kinds) == 1:  # no copy needed
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
            continue  # a column of other kinds of events
        columns[name] = column.combine_chunks()
    return Group(kind, rows, columns)


with needs("msgspec", "live"):
    import msgspec


_MOST = 64  # maximum number of known forms; beyond it, they are probably junk
_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class LineForm(NamedTuple):
    """A decoder of lines, with the class of rows of each kind and its keys in order."""

    read: Callable[[bytes], Any]
    keys: Mapping[Kind, tuple[str, ...]]
    kinds: Mapping[type, Kind]

    @classmethod
    def of(cls, keys: Mapping[Kind, tuple[str, ...]], *, tagged: bool) -> LineForm:
        """Return the form of rows with the given keys; if `tagged`, each states its kind."""
        classes = {_row(keys[kind], kind if tagged else None): kind for kind in keys}
        # A decoder of a single class would not check the kind of a row.
        every = [*classes, _row((), "")] if tagged else [*classes]
        read = msgspec.json.Decoder(Union[tuple(every)]).decode  # noqa: UP007 - of any number
        return cls(read, keys, classes)


class Forms:
    """The forms of accepted requests, by the kind and keys of their first row."""

    def __init__(self) -> None:
        self._known: dict[Told, LineForm] = {}

    def read(self, body: bytes, kind: str | None) -> list[Group] | None:
        """Decode a body with a known form; return ``None`` if there is none."""
        form = self._known.get(_told(body, kind))
        if form is None:
            return None
        try:
            rows = [*map(form.read, io.BytesIO(body))]
        except _ERRORS:
            return None
        return _groups(form, rows)

    def learn(self, body: bytes, kind: str | None, groups: Sequence[Group]) -> None:
        """Remember the form of a body that was parsed into these groups."""
        told = _told(body, kind)
        tagged = "kind" in told[1]
        if not told[1] or (len(groups) > 1 and not tagged):
            return
        keys = {group.kind: tuple(group.columns) for group in groups}
        if told in self._known:  # a body with the same first row had other kinds
            keys = {**self._known[told].keys, **keys}
        if len(self._known) >= _MOST:
            self._known.clear()
        with suppress(ValueError):  # invalid field names
            self._known[told] = LineForm.of(keys, tagged=tagged)


def _told(body: bytes, kind: str | None) -> Told:
    """Return the key of a body's form; without names if the body is not several lines."""
    line, several, _ = body.partition(b"\n")
    try:
        row = msgspec.json.decode(line) if several else None
    except _ERRORS:
        row = None
    return kind, frozenset(row if type(row) is dict else ())


def _row(keys: Sequence[str], kind: str | None) -> type:
    """Return a class of rows of one kind with exactly these keys."""
    names = [f"value_{place}" for place in range(len(keys))]
    row: type = msgspec.defstruct(
        "Row",
        [(name, Any) for name in names],
        rename=dict(zip(names, keys, strict=True)),
        tag_field=None if kind is None else "kind",
        tag=kind,
        forbid_unknown_fields=True,
        gc=False,
    )
    return row


def _groups(form: LineForm, rows: Sequence[Any]) -> list[Group] | None:
    """Group rows by kind, in order of appearance; ``None`` if one has no known kind."""
    found = []
    types = [*map(type, rows)]
    classes = dict.fromkeys(types)
    for cls in classes:
        kind = form.kinds.get(cls)
        if kind is None:
            return None
        mine: Sequence[int] = range(len(rows))
        if len(classes) > 1:
            mine = [row for row in mine if types[row] is cls]
        some = [rows[row] for row in mine]
        columns = {
            key: [*map(attrgetter(f"value_{place}"), some)]
            for place, key in enumerate(form.keys[kind])
        }
        found.append(Group(kind, mine, columns))
    return found


JSON_TYPES = ("application/x-ndjson", "application/jsonl", "application/json", "text/plain", "")
ARROW_TYPES = ("application/vnd.apache.arrow.stream", "application/vnd.apache.arrow.file")


class Bodies:
    """Feeds requests to a live state, one after the other.

    Args:
        ingest: The destination of the events.
        names: The names of their columns.
        letters: Where refused events go, so that the others of a request are taken.
    """

    def __init__(self, ingest: Ingest, names: Names, letters: DeadLetters | None = None) -> None:
        self._letters = letters
        self._ingest, self._names, self._forms = ingest, names, Forms()
        # Names that errors use for the event's own columns, except for those that a metric reads.
        self._heads = {"id", "time", "version"} - kinds_of(ingest.shared.suite).keys()

    def take(self, body: bytes, form: str, kind: str | None, key: str = "") -> dict[str, int]:
        """Bring the events of a request to the state, all or none, or those that are valid.

        Returns:
            How many of each kind are taken, and how many came too late or were refused, if any.

        Args:
            body: The body of the request.
            form: Its content type, one of those above.
            kind: The kind of rows that do not state one.
            key: The idempotency key of the request: with the numbers of the rows, it gives ids to
                observations without ids of their own.

        Raises:
            BodyError: A row is invalid, or the body has no rows; nothing has changed.
            StoreError: A durable store or the file of dead letters cannot be written.
        """
        if kind is not None and kind not in KINDS:
            raise BodyError(f"no kind {kind!r}: there are {', '.join(KINDS)}")
        try:
            return self._take_all(body, form, kind, key)
        except BodyError as error:
            if self._letters is None or error.row is None:
                raise
        return self._take_good(self._letters, body, form, kind, key)

    def _take_all(self, body: bytes, form: str, kind: str | None, key: str) -> dict[str, int]:
        """Bring all events of a request to the state, or raise."""
        if form in ARROW_TYPES:
            groups = of_table(body, kind)
            late = self._bring(groups, key)
        elif (known := self._forms.read(body, kind)) is not None:
            groups = known
            late = self._bring(groups, key)
        else:
            groups = of_lines(body, kind)
            late = self._bring(groups, key)
            self._forms.learn(body, kind, groups)
        return _counts(groups, late)

    def _take_good(
        self, letters: DeadLetters, body: bytes, form: str, kind: str | None, key: str
    ) -> dict[str, int]:
        """Bring the valid events of a request to the state, and write the others to a file."""
        rows = ArrowRows(_table(body)) if form in ARROW_TYPES else JSONRows(body)
        left, until = list(range(len(rows))), time.monotonic() + PATIENCE
        groups: list[Group] = []
        late: list[int] = []
        while left:
            try:
                groups = _numbered(rows, left, kind)
                late = self._bring(groups, key)
                break
            except BodyError as error:
                row, groups = error.row, []
                if row is None:
                    raise
                if len(rows) - len(left) >= MOST or time.monotonic() > until:
                    raise BodyError(
                        f"too many events of the request are refused, so none is taken: {error}",
                        error.column,
                        row,
                    ) from error
                letters.write(rows.event(row), error, key)
                left.remove(row)
        return {**_counts(groups, late), "refused": len(rows) - len(left)}

    def _bring(self, groups: Sequence[Group], key: str) -> list[int]:
        names, reads_id = self._names, self._ingest.reads_id
        parts = [_part(group, names, key, reads_id=reads_id) for group in groups]
        try:
            return self._ingest.take_all(parts)
        except PartError as error:
            raise self._placed(error, groups[error.place].rows) from error

    def _placed(self, error: InvalidBatchError, rows: Any) -> BodyError:
        """Return an error with the row's number in the request, and the user's column names."""
        text, column = str(error), error.column
        if column in self._heads:
            column = getattr(self._names, column)
            text = f"{column}{text.removeprefix(error.column or '')}"
        if error.row is None:
            return BodyError(text, column)
        row = int(rows[error.row])
        return BodyError(re.sub(rf"\brow {error.row}\b", f"row {row}", text), column, row)


class JSONRows:
    """The lines of a body, or the values of its array, one for each event."""

    def __init__(self, body: bytes) -> None:
        if body.lstrip().startswith(b"["):
            found = _decoded(body, 0)
            self._lines = [json.dumps(event).encode() for event in found]
        else:
            self._lines = [line.strip() for line in io.BytesIO(body) if not line.isspace()]

    def __len__(self) -> int:
        return len(self._lines)

    def groups(self, rows: Sequence[int], kind: str | None) -> list[Group]:
        """Return some events by kind, numbered from 0."""
        return of_lines(b"\n".join([self._lines[row] for row in rows]), kind)

    def event(self, row: int) -> Json:
        """Return an event, or the text of a line that is no JSON."""
        try:
            return json.loads(self._lines[row])
        except (ValueError, RecursionError):
            return self._lines[row].decode(errors="replace")


class ArrowRows:
    """The rows of a table, one for each event."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def groups(self, rows: Sequence[int], kind: str | None) -> list[Group]:
        """Return some events by kind, numbered from 0."""
        return _groups_of(self._table.take(list(rows)).combine_chunks(), kind)

    def event(self, row: int) -> Json:
        """Return an event."""
        return self._table.slice(row, 1).to_pylist()[0]


def _numbered(rows: JSONRows | ArrowRows, left: Sequence[int], kind: str | None) -> list[Group]:
    """Return the events that are left by kind, numbered as in the request."""
    try:
        groups = rows.groups(left, kind)
    except BodyError as error:
        if error.row is None:
            raise
        row = left[error.row]
        text = re.sub(rf"\brow {error.row}\b", f"row {row}", str(error))
        raise BodyError(text, error.column, row) from None
    return [group._replace(rows=[left[row] for row in group.rows]) for group in groups]


def _counts(groups: Sequence[Group], late: Sequence[int]) -> dict[str, int]:
    """Return how many events of each kind are taken, and how many came too late, if any did."""
    counts: dict[str, int] = {
        group.kind: len(group.rows) - n for group, n in zip(groups, late, strict=True)
    }
    return {**counts, "late": sum(late)} if any(late) else counts


def _part(group: Group, names: Names, key: str, *, reads_id: bool) -> EventColumns:
    """Return a group as event columns."""
    kind, columns = group.kind, dict(group.columns)
    time = columns.pop(names.time, None)
    if time is None:
        _refuse(f"has no {names.time!r}", group)
    heads: tuple[object, ...] = ()
    if kind == "observe":
        ids = None if reads_id else columns.pop(names.id, None)
        if ids is None and key:
            ids = [f"{key} {row}" for row in group.rows]
        heads = () if ids is None else (ids,)
    else:
        ids = columns.pop(names.id, None)
        if ids is None:
            _refuse(f"has no {names.id!r}", group)
        heads = (ids,) if kind == "predict" else (ids, columns.pop(names.version, 1))
    return EventColumns(kind, _as_array(time), heads, columns)


def _as_array(times: object) -> object:
    """Convert a list of numbers to an array, which needs no check of each value."""
    if type(times) is list and {*map(type, times)} <= {float, int}:
        with contextlib.suppress(OverflowError):
            return np.array(times, np.float64)
    return times


def _refuse(why: str, group: Group) -> NoReturn:
    row = int(group.rows[0])
    raise BodyError(f"an event to {group.kind} {why}, first in row {row}", None, row)
