"""Requests with events: their bodies, read as JSON lines, JSON arrays or Arrow tables."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import math
import re
import time
import zlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Union

import numpy as np

from streammetrics.core.columns.batch import meant
from streammetrics.core.columns.column import EXACT
from streammetrics.core.errors import InvalidBatchError, StreamMetricsError, needs
from streammetrics.live.events import KINDS
from streammetrics.live.ingest import EventColumns, PartError
from streammetrics.live.service.logs import MOST, PATIENCE, DeadLetters
from streammetrics.live.store import StoreError
from streammetrics.live.validation import kinds_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from streammetrics.core.types import Document, Foreign, Json, Places
    from streammetrics.live.events import Kind

    Told = tuple[str | None, frozenset[str]]  # kind in the query, keys of the first row
    from starlette.requests import Request

    from streammetrics.live.ingest import Ingest
    from streammetrics.live.service.server import Names, Server


class BodyError(InvalidBatchError):
    """A request without events or with an invalid one; `row` is its zero-based number."""


class Group(NamedTuple):
    """Rows of one kind: their numbers in the request, and their columns."""

    kind: Kind
    rows: Sequence[int] | Places
    columns: dict[str, Any]


def no_kind(which: object, row: int) -> NoReturn:
    """Raise for a row with an unknown kind."""
    shown = "no kind" if which is None else f"the kind {which!r}"
    raise BodyError(f"row {row} has {shown}: say one of {', '.join(KINDS)} in it", "kind", row)


def of_lines(body: bytes, kind: str | None) -> list[Group]:
    """Parse JSON events; each states its kind, unless `kind` gives it for all.

    Raises:
        BodyError: A row is not an object, or has no kind.
    """
    return _grouped(enumerate(_objects(body)), kind)


def _grouped(
    numbered: Iterable[tuple[int, Json]], kind: str | None, *, by_form: bool = False
) -> list[Group]:
    """Return numbered events by kind and keys, as columns; `by_form` also by lists among them."""
    found: dict[object, tuple[Kind, list[int], list[Document]]] = {}
    forms: dict[object, tuple[Kind, list[int], list[Document]]] = {}  # keys in an order
    for row, event in numbered:
        if type(event) is not dict:
            raise BodyError(f"row {row} is not a JSON object", None, row)
        which: object = event.get("kind", kind)
        if which not in KINDS:
            no_kind(which, row)
        apart = tuple([key for key in event if _is_apart(event[key])]) if by_form else ()
        form = which, tuple(event), apart
        mine = forms.get(form)
        if mine is None:
            same = which, frozenset(event), frozenset(apart)
            mine = forms[form] = found.setdefault(same, (which, [], []))
        mine[1].append(row)
        mine[2].append(event)
    return [
        Group(which, rows, {k: [*map(itemgetter(k), events)] for k in events[0] if k != "kind"})
        for which, rows, events in found.values()
    ]


def _is_apart(value: Json) -> bool:
    """Return whether a value may be valid alone and not in a column of numbers or texts."""
    return type(value) is list or (type(value) is int and abs(value) > EXACT)


def _objects(body: bytes) -> Iterator[Json]:
    """Yield the values of non-empty lines, or of an array; raise for the first invalid one."""
    if _is_array(body):
        yield from _decoded(body, None)
        return
    row = 0
    for line in io.BytesIO(body):  # lazily, because most invalid bodies fail at the first line
        if not line.isspace():
            yield _decoded(line, row)
            row += 1


def _is_array(body: bytes) -> bool:
    return body.lstrip().startswith(b"[")


def _decoded(line: bytes, row: int | None) -> Json:
    """Parse a row, or the array of all rows."""
    try:
        return _DECODER.decode(line.decode())
    except (json.JSONDecodeError, UnicodeDecodeError, InvalidBatchError) as error:
        why = f"is not JSON: {error}"
    except RecursionError:
        why = "is nested too deeply"
    except ValueError:  # Python's limit, whose advice is not for a client
        why = "has an integer with too many digits"
    raise BodyError(f"{'the body' if row is None else f'row {row}'} {why}", None, row)


def _no_number(word: str) -> NoReturn:
    raise InvalidBatchError(f"{word} is not a JSON number")


_DECODER = json.JSONDecoder(parse_constant=_no_number)


def of_table(body: bytes, kind: str | None) -> list[Group]:
    """Parse an Arrow table; its rows state their kind, unless `kind` gives it for all.

    Raises:
        BodyError: The body is not a table, or a row has no kind.
    """
    return _groups_of(_table(body), kind)


def _table(body: bytes) -> Foreign:
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


def _groups_of(table: Foreign, kind: str | None) -> list[Group]:
    """Return the rows of a table by kind."""
    import pyarrow.compute as pc  # noqa: PLC0415 - imported only to parse Arrow

    names = table.column_names
    if "kind" not in names and kind is not None:
        return [_group(kind, range(table.num_rows), table)] if table.num_rows else []
    if "kind" not in names:
        raise BodyError(f"the table has no column 'kind': add it, or ?kind={'|'.join(KINDS)}")
    told, table = table["kind"], table.drop_columns(["kind"])
    kinds: list[Foreign] = pc.unique(told).to_pylist()
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


def _group(kind: Any, rows: Foreign, table: Foreign) -> Group:
    columns = {}
    for name in table.column_names:
        column = table[name]
        if column.null_count == len(column) and len(column):
            continue  # a column of other kinds of events
        columns[name] = column.combine_chunks()
    return Group(kind, rows, columns)


with needs("msgspec", "live"):
    import msgspec

with needs("starlette", "live"):
    from starlette.requests import ClientDisconnect
    from starlette.responses import JSONResponse, Response


_MOST = 64  # maximum number of known forms; beyond it, they are probably junk
_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class LineForm(NamedTuple):
    """A decoder of lines, with the class of rows of each kind and its keys in order."""

    read: Callable[[bytes], Foreign]
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
        if len({group.kind for group in groups}) < len(groups):  # a kind has one form
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


def _groups(form: LineForm, rows: Sequence[Foreign]) -> list[Group] | None:
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
            read = ArrowRows if form in ARROW_TYPES else JSONRows
            if self._letters is not None:
                rows = read(body)
                return self._take_good(self._letters, rows, self._bad(rows, kind, key), kind, key)
            if error.row is not None:  # no later row is the first that is refused
                for first in self._bad(read(body, error.row + 1), kind, key):
                    raise first from error
            rows = read(body)
            for first in self._bad(rows, kind, key):
                raise first from error
            groups = rows.groups(range(len(rows)), kind)
            return _counts(groups, self._bring(groups, key))

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

    def _bad(self, rows: JSONRows | ArrowRows, kind: str | None, key: str) -> Iterator[BodyError]:
        """Yield the error of each event that would be refused alone, in their order.

        The first one is found in about twice the time that a valid request takes; then, patience
        is limited.
        """
        starts, until = range(0, len(rows), _CHECKED), math.inf
        parts = [range(start, min(start + _CHECKED, len(rows))) for start in reversed(starts)]
        while parts:
            part = parts.pop()
            if time.monotonic() > until:
                raise BodyError(
                    "it takes too long to find the events that are refused, so none is taken: send "
                    "fewer in a request"
                )
            try:
                self._bring(rows.groups(part, kind), key, check=True)
            except BodyError as error:
                if half := len(part) // 2:
                    parts += [part[half:], part[:half]]
                    continue
                until = min(until, time.monotonic() + PATIENCE)
                yield _of_row(error, part[0])

    def _take_good(
        self,
        letters: DeadLetters,
        rows: JSONRows | ArrowRows,
        bad: Iterator[BodyError],
        kind: str | None,
        key: str,
    ) -> dict[str, int]:
        """Bring the valid events of a request to the state, and write the others to a file."""
        refused: dict[int, BodyError] = {}
        groups, until = list[Group](), math.inf
        while len(refused) < len(rows):
            error = next(bad, None)
            if error is None:
                left = [row for row in range(len(rows)) if row not in refused]
                try:
                    groups = rows.groups(left, kind)
                    self._bring(groups, key, check=True)
                    break
                except BodyError as together:  # each of them is valid alone
                    error = together
            if error.row is None:
                raise error
            refused[error.row] = error
            until = min(until, time.monotonic() + PATIENCE)
            if len(refused) > MOST or time.monotonic() > until:
                raise BodyError(
                    f"too many events of the request are refused, so none is taken: {error}",
                    error.column,
                    error.row,
                )
        for row, error in refused.items():
            letters.write(rows.event(row), error, key)
        counts = _counts(groups, self._bring(groups, key)) if len(refused) < len(rows) else {}
        return counts | ({"refused": len(refused)} if refused else {})

    def _bring(self, groups: Sequence[Group], key: str, *, check: bool = False) -> list[int]:
        """Bring events to the state, or only `check` whether it would take them."""
        names, reads_id = self._names, self._ingest.reads_id
        parts = [_part(group, names, key, reads_id=reads_id) for group in groups]
        _check_alike(groups, parts)
        try:
            return (self._ingest.check_all if check else self._ingest.take_all)(parts)
        except PartError as error:
            raise self._placed(error, groups[error.place].rows) from error

    def _placed(self, error: PartError, rows: Foreign) -> BodyError:
        """Return an error with the row's number in the request, and the user's column names."""
        text, column = str(error), error.column
        if column in self._heads:
            column = getattr(self._names, column)
            text = f"{column}{text.removeprefix(error.column or '')}"
        if error.hint is not None and "nan_policy" in error.hint.parameters:
            text += " if it is a parameter of each metric that reads them, in [metrics]"
        if error.row is None:
            return BodyError(text, column)
        row = int(rows[error.row])
        return BodyError(re.sub(rf"\brow {error.row}\b", f"row {row}", text), column, row)


class JSONRows:
    """The first lines of a body, or values of its array, one for each event; by default all."""

    def __init__(self, body: bytes, most: int | None = None) -> None:
        self._lines: list[bytes] = []
        self._events: dict[int, Json] = {}  # of lines, those that were asked for
        if _is_array(body):
            self._events = dict(enumerate(_decoded(body, None)[:most]))
        else:
            lines = (line.strip() for line in io.BytesIO(body) if not line.isspace())
            self._lines = [*islice(lines, most)]

    def __len__(self) -> int:
        return len(self._lines or self._events)

    def groups(self, rows: Sequence[int], kind: str | None) -> list[Group]:
        """Return some events by kind, numbered as in the request."""
        return _grouped(((row, self._event(row)) for row in rows), kind, by_form=True)

    def event(self, row: int) -> Json:
        """Return an event, or the text of a line that is no JSON."""
        try:
            return self._event(row)
        except BodyError:
            return self._lines[row].decode(errors="replace")

    def _event(self, row: int) -> Json:
        if row not in self._events:
            self._events[row] = _decoded(self._lines[row], row)
        return self._events[row]


class ArrowRows:
    """The first rows of a table, one for each event; by default all."""

    def __init__(self, body: bytes, most: int | None = None) -> None:
        self._table = _table(body).slice(0, most)

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def groups(self, rows: Sequence[int], kind: str | None) -> list[Group]:
        """Return some events by kind, numbered as in the request."""
        some = self._table.take(list(rows)).combine_chunks()
        try:
            groups = _groups_of(some, kind)
        except BodyError as error:
            raise error if error.row is None else _of_row(error, rows[error.row]) from None
        return [group._replace(rows=[rows[row] for row in group.rows]) for group in groups]

    def event(self, row: int) -> Json:
        """Return an event."""
        return self._table.slice(row, 1).to_pylist()[0]


def _of_row(error: BodyError, row: int) -> BodyError:
    """Return an error with another number of its row, or with one if it has none."""
    if error.row is None:
        return BodyError(f"row {row}: {error}", error.column, row)
    text = re.sub(rf"\brow {error.row}\b", f"row {row}", str(error))
    return BodyError(text, error.column, row)


def _counts(groups: Sequence[Group], late: Sequence[int]) -> dict[str, int]:
    """Return how many events of each kind are taken, and how many came too late, if any did."""
    counts: dict[str, int] = {}
    for group, n in zip(groups, late, strict=True):
        counts[group.kind] = counts.get(group.kind, 0) + len(group.rows) - n
    return {**counts, "late": sum(late)} if any(late) else counts


def _check_alike(groups: Sequence[Group], parts: Sequence[EventColumns]) -> None:
    """Raise for the first event whose columns differ from those of the first one of its kind."""
    first: dict[Kind, Mapping[str, object]] = {}
    for group, part in zip(groups, parts, strict=True):
        known = first.setdefault(group.kind, part.columns)
        if known.keys() != part.columns.keys():
            here, there = (", ".join(each) or "none" for each in (part.columns, known))
            row = int(group.rows[0])
            raise BodyError(
                f"row {row} has the columns {here}, and the first to {group.kind} {there}: in a "
                "request all events of a kind have the same columns",
                None,
                row,
            )


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


_AGAIN = (429, 503)  # answers that ask the client to retry
_STATUSES = ("400", "408", "413", "415", "422", "429", "503", "507")  # of rejected requests
_GZIP = 31  # zlib's window bits for gzip
_CHECKED = 1024  # events that are checked at once when some are refused
_PIECE = 4096  # bytes that are decompressed at once
_PACKED = ("gzip", "x-gzip")  # two names of one encoding in HTTP
KEY = "idempotency-key"  # header that makes the observations of a retried request count once
LONGEST_KEY = 255
_HELD = 16  # number of maximum-size bodies that memory may hold at once


def _encoding(request: Request) -> str:
    """Return the content encoding of a body in lower case."""
    written: str = request.headers.get("content-encoding", "identity")
    return written.strip().lower()


class RefusalError(Exception):
    """A request is rejected; the answer says why."""

    def __init__(self, status: int, why: str, **more: object) -> None:
        super().__init__(why)
        headers = {"retry-after": "1"} if status in _AGAIN else {"connection": "close"}
        told = {"error": why, **more}
        some = status in {408, 413, *_AGAIN}
        self.answer = JSONResponse(told, status, headers if some else None)


def misread(request: Request, path: str, known: Sequence[str]) -> str:
    """Return what is wrong with the names of a query's parameters, otherwise ""."""
    given = [name for name, _ in request.query_params.multi_items()]
    for name in given:
        if name not in known:
            reads = f"it reads {', '.join(known) or 'none'}{meant(name, known)}"
            return f"{path} has no parameter {name!r}: {reads}"
        if given.count(name) > 1:
            return f"{path} has the parameter {name!r} {given.count(name)} times: give it once"
    return ""


class Intake:
    """Takes requests with events, one after the other, in its own thread."""

    def __init__(self, live: Any, names: Names, server: Server, letters: str | None = None) -> None:
        into = None if letters is None else DeadLetters(letters)
        self._bodies, self._server = Bodies(live._ingest, names, into), server
        self._worker = ThreadPoolExecutor(1, "events")
        self.waiting = 0  # complete requests that wait for their turn
        self.held = 0  # bytes of bodies in memory
        self.taken: Counter[str] = Counter(dict.fromkeys(KINDS, 0))  # events, by kind
        self.refused: Counter[str] = Counter(dict.fromkeys(_STATUSES, 0))  # requests
        self.dead_letters = 0  # refused events of requests whose other events are taken

    async def answer(self, request: Request) -> Response:
        """Answer a request with events."""
        body = bytearray()
        try:
            form, kind, key = self._form(request)
            await self.read(request, body)
            packed = _encoding(request) in _PACKED
            counts = await self._take(bytes(body), form, kind, key, packed=packed)
        except RefusalError as refusal:
            self.refused[str(refusal.answer.status_code)] += 1
            return refusal.answer
        except ClientDisconnect:
            self.refused["400"] += 1
            return Response(status_code=400)
        finally:
            self.held -= len(body)
        taken = {kind: counts[kind] for kind in KINDS if kind in counts}
        self.taken.update(taken)
        self.dead_letters += counts.get("refused", 0)
        return JSONResponse({"taken": sum(taken.values()), **counts}, 202)

    def _form(self, request: Request) -> tuple[str, str | None, str]:
        """Return the content type, the kind of events, and the idempotency key."""
        form = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if form not in {*JSON_TYPES, *ARROW_TYPES, "application/x-www-form-urlencoded"}:
            known = ", ".join(filter(None, (*JSON_TYPES[:1], *ARROW_TYPES[:1])))
            raise RefusalError(415, f"no content type {form!r}: send {known}")
        encoding = _encoding(request)
        if encoding not in {"identity", *_PACKED}:
            raise RefusalError(415, f"no content-encoding {encoding!r}: send gzip, or none")
        if wrong := misread(request, "/events", ["kind"]):
            raise RefusalError(422, wrong)
        key = request.headers.get(KEY, "")
        if len(key) > LONGEST_KEY:
            why = f"{KEY} has {len(key)} characters; the limit is {LONGEST_KEY}"
            raise RefusalError(422, why)
        return form, request.query_params.get("kind"), key

    async def read(self, request: Request, body: bytearray) -> None:
        """Read the body in chunks, unless it is too long or too slow; the caller lowers `held`."""
        server = self._server
        try:
            length = int(request.headers.get("content-length", "0"))
        except ValueError:
            raise RefusalError(400, "content-length is not a number") from None
        self._check_size(length)
        try:
            async with asyncio.timeout(server.timeout):
                async for chunk in request.stream():
                    self._check_size(len(body) + len(chunk))
                    if self.held + len(chunk) > _HELD * server.body:
                        raise RefusalError(
                            429, "too many bytes are waiting: send them again in a second"
                        )
                    body += chunk
                    self.held += len(chunk)
        except TimeoutError:
            raise RefusalError(408, f"the body took more than {server.timeout:g} s") from None

    def _check_size(self, size: int) -> None:
        most = self._server.body
        if size > most:
            raise RefusalError(413, f"the body has {size:,} bytes or more; the limit is {most:,}")

    def _bring(
        self, body: bytes, form: str, kind: str | None, key: str, packed: bool
    ) -> dict[str, int]:
        """Add events to the live state; only one body at a time is decompressed."""
        return self._bodies.take(self._unpacked(body) if packed else body, form, kind, key)

    def _unpacked(self, body: bytes) -> bytes:
        """Decompress gzip, unless the result exceeds the maximum size of a body."""
        found, at = bytearray(), 0
        try:
            while at < len(body):  # there may be several members
                member = zlib.decompressobj(wbits=_GZIP)
                while not member.eof:
                    piece = body[at : at + _PIECE]  # each member copies what follows it
                    if not piece:
                        raise RefusalError(400, "the gzip data is cut off")
                    found += member.decompress(piece, self._server.body + 1 - len(found))
                    self._check_size(len(found))
                    at += len(piece) - len(member.unused_data)
        except zlib.error as error:
            raise RefusalError(400, f"the body is not gzip: {error}") from None
        return bytes(found)

    async def _take(
        self, body: bytes, form: str, kind: str | None, key: str, *, packed: bool
    ) -> dict[str, int]:
        """Add events to the live state when it is their turn."""
        if self.waiting >= self._server.queue:
            why = f"{self.waiting} requests are waiting, the limit: send it again in a second"
            raise RefusalError(429, why)
        self.waiting += 1
        try:
            return await self._answered(
                self._worker.submit(self._bring, body, form, kind, key, packed)
            )
        except BodyError as error:
            raise RefusalError(422, str(error), row=error.row, column=error.column) from error
        except StoreError as error:
            raise RefusalError(507 if error.full else 503, str(error)) from error
        except StreamMetricsError as error:
            raise RefusalError(503, str(error)) from error

    async def _answered(self, taking: Future[dict[str, int]]) -> dict[str, int]:
        """Return the result of a request; at shutdown, a request that has not begun is rejected."""
        call = asyncio.wrap_future(taking)
        call.add_done_callback(self._done)
        while True:
            try:
                return await asyncio.shield(call)
            except asyncio.CancelledError:  # the service ends
                if taking.cancel():  # otherwise its events are being counted, so that it waits
                    raise RefusalError(
                        503, "the service is shutting down and did not take this: send it again"
                    ) from None

    def _done(self, call: asyncio.Future[dict[str, int]]) -> None:
        self.waiting -= 1
        if not call.cancelled():
            call.exception()  # retrieve the exception in case the client has disconnected

    def close(self) -> None:
        """Finish the request in progress and drop waiting ones, which were not acknowledged."""
        self._worker.shutdown(wait=True, cancel_futures=True)
