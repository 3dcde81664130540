"""CSV and JSON lines: read from the start, and a column's type never hangs on its first rows."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from streammetrics.core.errors import InvalidBatchError
from streammetrics.readers.files import File, FilePiece
from streammetrics.readers.selection import needed, of_kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streammetrics.readers.selection import Column
    from streammetrics.readers.sources import Source

_TEXT_BLOCK = 1 << 22  # bytes of text parsed at a time
_HEAD = 1 << 16  # bytes of JSON lines whose keys are the names of the columns

# --- CSV -----------------------------------------------------------------------------------------

_TEXT: dict[str, pa.DataType] = {
    "number": pa.float64(),
    "id": pa.string(),
    "label": pa.dictionary(pa.int32(), pa.string()),
}
_CONVERSION = re.compile(r"In CSV column #(\d+): Row #(\d+): .* error to \w+: invalid value '(.*)'")


@dataclass(frozen=True)
class CsvPiece(FilePiece):
    """A whole file of comma- or tab-separated text."""

    names: tuple[str, ...]

    def batches(self, batch_rows: int, *, threads: bool) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - one thread numbers the rows
        """Parse block by block; the type of a column never hangs on what its first block holds."""
        import pyarrow.csv as pc  # noqa: PLC0415 - only for those who read CSV

        types = {name: _TEXT[column.kind] for column in self.columns for name in column.names}
        with self.source.open() as stream:
            if not self.source.once:
                _header(stream, self.source)
            if not stream.peek(1):
                return
            try:
                yield from map(_with_labels, pc.open_csv(
                    stream,
                    pc.ReadOptions(
                        use_threads=False, block_size=_TEXT_BLOCK, column_names=list(self.names)
                    ),
                    pc.ParseOptions(delimiter=_delimiter(self.source), newlines_in_values=True),
                    pc.ConvertOptions(
                        include_columns=needed(self.columns),
                        column_types=types,
                        strings_can_be_null=True,
                        quoted_strings_can_be_null=False,
                    ),
                ))  # fmt: skip
            except pa.ArrowInvalid as error:
                self._explain(str(error))
                raise

    def _explain(self, message: str) -> None:
        found = _CONVERSION.match(message)
        if found:
            column, row, value = found.groups()
            raise InvalidBatchError(
                f"{self.source}: {self.names[int(column)]} holds {value!r} in row {int(row) - 1}; "
                "numbers are needed"
            )


class Csv(File):
    """A CSV or TSV file with a line of names."""

    def read_names(self) -> Sequence[str]:
        """Read the first line."""
        if self.source.once:
            return _header(self.source.open(), self.source)
        with self.source.open() as stream:
            return _header(stream, self.source)

    def split(self, columns: tuple[Column, ...]) -> list[FilePiece]:
        """Text has to be read from the start."""
        return [CsvPiece(self.source, columns, None, self.names)]


def _delimiter(source: Source) -> str:
    return "\t" if source.format == "tsv" else ","


def _header(stream: io.BufferedReader, source: Source) -> list[str]:
    line = more = stream.readline()
    while line.count(b'"') % 2 and more:  # a name with a line break in it
        more = stream.readline()
        line += more
    text = io.StringIO(line.decode("utf-8-sig"), newline="")
    names = next(csv.reader(text, delimiter=_delimiter(source)), [])
    if not names:
        raise InvalidBatchError(f"{source}: is empty; a line with the columns' names is expected")
    return names


def _with_labels(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch with text that spells numbers or booleans as what it spells."""
    columns = [
        _typed(column) if pa.types.is_dictionary(column.type) else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _typed(column: Any) -> Any:
    for kind in (pa.int64(), pa.float64(), pa.bool_()):
        with contextlib.suppress(pa.ArrowInvalid):
            return pa.DictionaryArray.from_arrays(column.indices, column.dictionary.cast(kind))
    return column


# --- JSON lines ----------------------------------------------------------------------------------

_KINDS: dict[type, pa.DataType] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
}


@dataclass(frozen=True)
class JsonPiece(FilePiece):
    """A whole file of JSON objects, one a line; a key that a line lacks is null."""

    head: bytes  # what has been read of a stream already

    def batches(self, batch_rows: int, *, threads: bool) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - by bytes
        """Parse some lines at a time."""
        import pyarrow.json as pj  # noqa: PLC0415 - only for those who read JSON

        numbers, names = of_kind(self.columns, "number"), needed(self.columns)
        with self.source.open() as stream:
            lines, row = self.head or _lines(stream), 0
            while lines:
                kinds = _kinds(lines, [name for name in names if name not in numbers])
                schema = pa.schema([(n, pa.float64() if n in numbers else kinds[n]) for n in names])
                try:
                    read = pj.read_json(
                        io.BytesIO(lines),
                        pj.ReadOptions(use_threads=threads),
                        pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
                    )
                except pa.ArrowInvalid as error:
                    raise InvalidBatchError(
                        f"{self.source}: {_faulty(lines, row, schema, error)}"
                    ) from error
                yield from read.select(names).to_batches()
                row += read.num_rows
                lines = _lines(stream)


class JsonLines(File):
    """A file of JSON lines."""

    def read_names(self) -> Sequence[str]:
        """Collect the keys of the first lines."""
        stream = self.source.open()
        self.head = _lines(stream, _HEAD)
        if not self.source.once:
            stream.close()
        names: dict[str, None] = {}
        for row, line in enumerate(self.head.splitlines()):
            try:
                names.update(dict.fromkeys(_object(line)))
            except ValueError as error:
                raise InvalidBatchError(
                    f"{self.source}: row {row} is not a JSON object on one line ({error})"
                ) from None
        if not names:
            raise InvalidBatchError(
                f"{self.source}: is empty; JSON objects, one a line, are expected"
            )
        return list(names)

    def split(self, columns: tuple[Column, ...]) -> list[FilePiece]:
        """Text has to be read from the start."""
        return [JsonPiece(self.source, columns, None, self.head if self.source.once else b"")]


def _lines(stream: io.BufferedReader, size: int = _TEXT_BLOCK) -> bytes:
    """Return the next lines, whole, that are not blank; nothing at the end."""
    while chunk := stream.read(size):
        chunk += stream.readline()
        if not chunk.isspace():
            return chunk
    return b""


def _object(line: bytes) -> dict[str, Any]:
    """Return a line's object; what is none raises `ValueError`."""
    if not line or line.isspace():
        return {}
    value = json.loads(line)
    if not isinstance(value, dict):
        raise ValueError(f"{line[:40].decode(errors='replace')!r} is not a JSON object")  # noqa: TRY004 - as json has it
    return value


def _kinds(lines: bytes, names: Sequence[str]) -> dict[str, pa.DataType]:
    """Return the type of each column's first value that is not null."""
    kinds: dict[str, pa.DataType] = dict.fromkeys(names, pa.null())
    missing = set(names)
    for line in io.BytesIO(lines):
        if not missing:
            break
        with contextlib.suppress(ValueError):  # a broken line is told of where it is parsed
            values = _object(line)
            for name in [name for name in missing if values.get(name) is not None]:
                kinds[name] = _KINDS.get(type(values[name]), pa.string())
                missing.discard(name)
    return kinds


def _faulty(lines: bytes, row: int, schema: pa.Schema, error: Exception) -> str:
    """Find the line that is to blame, which the parser does not say."""
    accepted = {pa.float64(): (int, float), pa.int64(): (int,), pa.bool_(): (bool,)}
    for line in io.BytesIO(lines):
        if line.isspace():
            continue
        try:
            values = _object(line)
        except ValueError as broken:
            return f"row {row} is not a JSON object on one line ({broken})"
        for field in schema:
            value = values.get(field.name)
            right = accepted.get(field.type, (str,))
            if value is not None and (
                isinstance(value, bool) != (right == (bool,)) or not isinstance(value, right)
            ):
                return f"{field.name} holds {json.dumps(value)} in row {row}; {_wanted(field.type)}"
        row += 1
    return str(error)


def _wanted(kind: pa.DataType) -> str:
    return "numbers are needed" if kind == pa.float64() else f"rows before it hold {kind} values"
