"""JSON objects, one per line or in an array; column types never depend on the first rows."""

from __future__ import annotations

import codecs
import contextlib
import io
import json
import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from streammetrics.core.columns.batch import asks_for, is_glob
from streammetrics.core.errors import InvalidBatchError
from streammetrics.readers.files import File, FilePiece
from streammetrics.readers.numbers import BEYOND, alike, exact, long_places
from streammetrics.readers.selection import needed, of_kind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from streammetrics.core.types import Document, Json
    from streammetrics.readers.selection import WantedColumn

_BLOCK = 1 << 22  # bytes of text parsed at a time
_HEAD = 1 << 16  # bytes whose keys become the column names
_LONGEST = 1 << 24  # maximum characters of an object in an array
_KEY = re.compile(rb'"([^"\\]*)"\s*:')
_FIRST, _NEXT = re.compile(r"\s*\[\s*"), re.compile(r"\s*,\s*")
_LAST, _NONE = re.compile(r"\s*\]\s*"), re.compile(r"\s*\[\s*\]\s*")

_KINDS: dict[type, pa.DataType] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
}
_LISTS = pa.list_(pa.null())  # placeholder for a column of lists, whatever they contain


@dataclass(frozen=True)
class JsonPiece(FilePiece):
    """A whole file of JSON objects; a key that an object lacks is null."""

    known: frozenset[str]  # keys at the beginning of the file
    unsettled: tuple[str, ...]  # requested names and globs that further keys would match

    def batches(self, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Parse the file, a block of lines at a time."""
        numbers, names = of_kind(self.columns, "number"), needed(self.columns)
        row = 0
        with self.source.open() as stream:
            for lines in _blocks(stream, _BLOCK):
                self._check_keys(lines, row)
                kinds = _kinds(lines, names)
                lists = [name for name in names if kinds[name] == _LISTS]
                of_lists = _of_lists(lines, lists, f"{self.source}", row) if lists else {}
                plain = [name for name in names if name not in of_lists]
                schema = pa.schema([(n, pa.float64() if n in numbers else kinds[n]) for n in plain])
                try:
                    read = _parsed(lines, names, schema)
                except pa.ArrowInvalid as error:
                    raise InvalidBatchError(
                        f"{self.source}: {_faulty(lines, row, schema, error)}"
                    ) from error
                batch = self._exact(read.select(plain).combine_chunks(), lines, row)
                if of_lists:
                    every = of_lists | dict(zip(plain, batch.columns, strict=True))
                    batch = pa.RecordBatch.from_arrays([every[name] for name in names], names=names)
                yield batch
                row += batch.num_rows

    def _exact(self, table: pa.Table, lines: bytes, row: int) -> pa.RecordBatch:
        """Return the parsed lines as a batch, with integers where float64 would round them."""
        (batch,) = table.to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        floats = [name for name, column in columns.items() if column.type == pa.float64()]
        if not any(len(long_places(columns[name])) for name in floats):
            return batch
        objects = [_spelled(line) for line in io.BytesIO(lines) if not line.isspace()]
        for name in floats:
            texts = pa.array([values.get(name) for values in objects], pa.string())
            columns[name] = exact(columns[name], texts, f"{self.source}: {name}", row)
        columns.update(zip(floats, alike([columns[name] for name in floats]), strict=True))
        return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))

    def _check_keys(self, lines: bytes, row: int) -> None:
        """Raise if a key that would be read first occurs after the beginning of the file."""
        if not self.unsettled:
            return
        keys = {key.decode(errors="replace") for key in _KEY.findall(lines)} - self.known
        new = {key for key in keys if any(asks_for(text, key) for text in self.unsettled)}
        for at, line in enumerate(io.BytesIO(lines) if new else ()):
            found: list[str] = []
            with contextlib.suppress(ValueError):  # parsing reports invalid lines
                found = sorted(new & _object(line).keys())
            if found:
                raise InvalidBatchError(
                    f"{self.source}: the key {found[0]!r} first stands in row {row + at}, and "
                    "which columns there are is read from the first rows: give it to the first "
                    "one, null if need be"
                )


class JsonLines(File):
    """A file of JSON objects."""

    def read_names(self) -> Sequence[str]:
        """Return the keys of the first objects."""
        names: dict[str, None] = {}
        with self.source.peek() as stream:
            head = next(_blocks(stream, _HEAD), b"")
        for row, line in enumerate(head.splitlines()):
            try:
                names.update(dict.fromkeys(_object(line)))
            except ValueError as error:
                raise InvalidBatchError(
                    f"{self.source}: row {row} is not a JSON object ({error})"
                ) from None
        if not names:
            raise InvalidBatchError(f"{self.source}: is empty; JSON objects are expected")
        return list(names)

    def split(self, columns: tuple[WantedColumn, ...]) -> list[FilePiece]:
        """Return a single piece: text has to be read from its start."""
        globs = tuple(column.title for column in columns if is_glob(column.title))
        return [JsonPiece(self.source, columns, None, frozenset(self.names), globs + self.lacking)]


def _parsed(lines: bytes, names: Sequence[str], schema: pa.Schema) -> pa.Table:
    import pyarrow.json as pj  # noqa: PLC0415 - imported only to read JSON

    form = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    try:
        return pj.read_json(io.BytesIO(lines), parse_options=form)
    except pa.ArrowInvalid:
        # An object may exceed the parser's block size, or other keys may hold values that it
        # rejects.
        with contextlib.suppress(ValueError):  # the parser reports invalid lines
            lines = b"".join(_only(names, line) for line in io.BytesIO(lines))
        return pj.read_json(io.BytesIO(lines), pj.ReadOptions(block_size=len(lines)), form)


def _only(names: Sequence[str], line: bytes) -> bytes:
    """Return the line's object reduced to the given keys, as a line."""
    if line.isspace():
        return line
    values = _object(line, names)
    return json.dumps({name: values.get(name) for name in names}).encode() + b"\n"


def _blocks(stream: io.BufferedReader, size: int) -> Iterator[bytes]:
    """Yield blocks of whole lines of about `size` bytes; the objects of an array become lines."""
    if stream.peek(1).lstrip()[:1] == b"[":
        yield from _of_array(stream, size)
        return
    while chunk := stream.read(size):
        chunk += stream.readline()
        if not chunk.isspace():
            yield chunk


def _of_array(stream: io.BufferedReader, size: int) -> Iterator[bytes]:
    """Yield the items of an array, one per line; JSON strings contain no raw line breaks."""
    lines, room = [], size
    for item in _items(stream, size):
        lines.append(item.replace("\n", " ").replace("\r", " "))
        room -= len(item)
        if room < 0:
            yield "\n".join(lines).encode()
            lines, room = [], size
    if lines:
        yield "\n".join(lines).encode()


def _items(stream: io.BufferedReader, size: int) -> Iterator[str]:
    """Yield the text of each item of an array."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    scan = json.JSONDecoder().raw_decode
    text, at, row, whole = "", 0, 0, False
    while True:
        begin = (_NEXT if row else _FIRST).match(text, at)
        start = begin.end() if begin else len(text)
        try:
            _, end = scan(text, start)
        except (ValueError, RecursionError) as error:
            if (_LAST if row else _NONE).fullmatch(text, at) and not stream.peek(1):
                return
            if whole or len(text) - at > _LONGEST:
                raise ValueError(f"item {row} of its array is not whole ({error})") from None
            more = stream.read(size)
            whole = not more
            text, at = text[at:] + decoder.decode(more, final=whole), 0
            continue
        yield text[start:end]
        at, row = end, row + 1


def _object(line: bytes, once: Collection[str] = ()) -> dict[str, object]:
    """Parse a line as an object; raise `ValueError` if it is none or repeats a key of `once`."""
    if not line or line.isspace():
        return {}
    pairs: list[tuple[str, object]] = []

    def keep(found: list[tuple[str, object]]) -> dict[str, object]:
        nonlocal pairs
        pairs = found  # the outermost object comes last
        return dict(found)

    try:
        value = json.loads(line, object_pairs_hook=keep if once else None)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError(f"it is {line[:40].decode(errors='replace')!r}")  # noqa: TRY004 - the type that json raises
    if len(pairs) > len(value):
        counts = Counter(key for key, _ in pairs)
        for key in once:
            if counts[key] > 1:
                raise ValueError(f"it has the key {key!r} {counts[key]} times")
    return value


def _spelled(line: bytes) -> dict[str, object]:
    """Return a line's object with its numbers as text."""
    values: Document = json.loads(line, parse_int=str, parse_float=str, parse_constant=str)
    return values


def _kinds(lines: bytes, names: Sequence[str]) -> dict[str, pa.DataType]:
    """Return the type of the first non-null value of each column."""
    kinds: dict[str, pa.DataType] = dict.fromkeys(names, pa.null())
    missing = set(names)
    for line in io.BytesIO(lines):
        if not missing:
            break
        with contextlib.suppress(ValueError):  # parsing reports invalid lines
            values = _object(line)
            for name in [name for name in missing if values.get(name) is not None]:
                of_one = _LISTS if isinstance(values[name], list) else pa.string()
                kinds[name] = _KINDS.get(type(values[name]), of_one)
                missing.discard(name)
    return kinds


def _of_lists(lines: bytes, names: Sequence[str], where: str, row: int) -> dict[str, pa.Array[Any]]:
    """Return the columns whose rows are lists, e.g. labels, tags, scores or boxes."""
    values: dict[str, list[Json]] = {name: [] for name in names}
    for at, line in enumerate(line for line in io.BytesIO(lines) if not line.isspace()):
        try:
            found = _object(line, names)
        except ValueError as error:
            raise InvalidBatchError(
                f"{where}: row {row + at} is not a JSON object ({error})"
            ) from None
        for name in names:
            values[name].append(found.get(name))
    columns = {name: _lists(values[name], name, where, row) for name in names}
    infinite = [name for name, column in columns.items() if _is_infinite(column)]
    rows = io.BytesIO(lines) if infinite else ()
    for at, line in enumerate(line for line in rows if not line.isspace()):
        texts = _spelled(line)
        for name in infinite:
            if (text := _overflow(texts.get(name))) is not None:
                raise InvalidBatchError(
                    f"{where}: {name} holds {text:.40} in row {row + at}, {BEYOND}", name, row + at
                )
    return columns


def _is_infinite(column: Any) -> bool:
    """Whether lists, or lists of lists, hold an infinite number."""
    while pa.types.is_list(column.type):
        column = column.flatten()
    return pa.types.is_floating(column.type) and bool(np.isinf(column.to_numpy(False)).any())


def _overflow(texts: object) -> str | None:
    """Return the first finite number of lists, as text, that is infinite as a float64."""
    if isinstance(texts, list):
        return next(filter(None, map(_overflow, texts)), None)
    if not isinstance(texts, str) or not texts[-1:].isdigit():
        return None
    return texts if math.isinf(float(texts)) else None


def _lists(values: Sequence[object], name: str, where: str, row: int) -> pa.Array[Any]:
    """Return a list column; raise if the lists do not have a common type."""
    try:
        return pa.array(values, None if any(values) else pa.list_(pa.float64()))
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        few: list[Json] = []  # the first non-empty list, and one row to compare with it
        for at, value in enumerate(values):
            few = [next(filter(None, few), None), value]
            try:
                pa.array(few)
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as one:
                raise InvalidBatchError(
                    f"{where}: {name} holds {json.dumps(value)[:60]} in row {row + at}; lists of "
                    f"one kind are needed, as rows before it hold ({one})",
                    name,
                    row + at,
                ) from None
        raise InvalidBatchError(f"{where}: {name} holds no lists of one kind: {error}") from None


def _faulty(lines: bytes, row: int, schema: pa.Schema, error: Exception) -> str:
    """Return a message that names the invalid row, which Arrow's error does not."""
    accepted = {pa.float64(): (int, float), pa.int64(): (int,), pa.bool_(): (bool,)}
    for line in io.BytesIO(lines):
        if line.isspace():
            continue
        try:
            values = _object(line, schema.names)
        except ValueError as broken:
            return f"row {row} is not a JSON object ({broken})"
        for field in schema:
            value = values.get(field.name)
            right = accepted.get(field.type, (str,))
            if value is not None and (
                isinstance(value, bool) != (right == (bool,)) or not isinstance(value, right)
            ):
                wanted = _wanted(field.type, value)
                return f"{field.name} holds {json.dumps(value)} in row {row}; {wanted}"
            number = _spelled(line).get(field.name) if right == (int, float) else None
            if isinstance(number, str) and math.isinf(float(number)):
                return f"{field.name} holds {number:.40} in row {row}, {BEYOND}"
        row += 1
    return str(error)


def _wanted(kind: pa.DataType, value: object) -> str:
    if isinstance(value, list | dict):
        return "each row must be a number, text or boolean, or each row a list of these"
    return "numbers are needed" if kind == pa.float64() else f"rows before it hold {kind} values"
