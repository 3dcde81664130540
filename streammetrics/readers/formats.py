"""The reader of each format, the pieces of files, and the small formats: columns, tags and logs."""

from __future__ import annotations

import contextlib
import io
import json
import re
import zipfile
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from streammetrics.core.columns.batch import WEIGHT
from streammetrics.core.errors import InvalidBatchError
from streammetrics.readers.delimited import Csv
from streammetrics.readers.files import PIECE_ROWS, File, FilePiece
from streammetrics.readers.jsonlines import JsonLines
from streammetrics.readers.numbers import exact
from streammetrics.readers.paths import buffered, decompressed
from streammetrics.readers.selection import needed, of_kind, resolve, spelled
from streammetrics.readers.where import FilteredPiece, of_conditions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from streammetrics.core.columns.schema import Kind
    from streammetrics.core.types import Foreign
    from streammetrics.readers.files import Piece
    from streammetrics.readers.paths import Source
    from streammetrics.readers.selection import WantedColumn
    from streammetrics.readers.where import RowCondition


_BATCH_BYTES = 1 << 24  # decoded per batch: two columns of `BATCH_ROWS` numbers
_LONG_VALUE = 128  # bytes assumed for a string or list value


@dataclass(frozen=True)
class ParquetPiece(FilePiece):
    """Consecutive row groups of a Parquet file."""

    groups: tuple[int, ...]
    start: int
    coded: tuple[str, ...]  # text columns of labels, decoded as dictionaries
    largest: int  # maximum rows per batch

    def first_row(self) -> int:
        """Return the number of rows in the preceding row groups."""
        return self.start

    def batches(self, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Decode the row groups batch by batch, in the calling thread."""
        with _parquet_file(self.source, self.coded) as file:
            yield from file.iter_batches(
                batch_size=min(batch_rows, self.largest),
                row_groups=list(self.groups),
                columns=needed(self.columns),
                use_threads=False,
            )


class Parquet(File):
    """A Parquet file; its footer holds names, types and sizes."""

    def read_names(self) -> Sequence[str]:
        """Read the footer and return the column names."""
        with _parquet_file(self.source) as file:
            self.schema, footer = file.schema_arrow, file.metadata
        self.sizes = [footer.row_group(i).num_rows for i in range(footer.num_row_groups)]
        return list(self.schema.names)

    def split(self, columns: tuple[WantedColumn, ...]) -> list[FilePiece]:
        """Split the file into pieces of consecutive row groups, joining small ones."""
        types = {name: self.schema.field(name).type for name in needed(columns)}
        labels = of_kind(columns, "label")
        texts = tuple(name for name, kind in types.items() if name in labels and _is_text(kind))
        widths = [8 if pa.types.is_primitive(kind) else _LONG_VALUE for kind in types.values()]
        largest = max(1, _BATCH_BYTES // max(1, sum(widths)))
        pieces: list[FilePiece] = []
        groups: list[int] = []
        start = rows = 0
        for group, size in enumerate(self.sizes):
            groups.append(group)
            rows += size
            if rows >= PIECE_ROWS or group == len(self.sizes) - 1:
                piece = ParquetPiece(
                    self.source, columns, rows, tuple(groups), start, texts, largest
                )
                pieces.append(piece)
                groups, start, rows = [], start + rows, 0
        return pieces


def _parquet_file(source: Source, coded: Sequence[str] = ()) -> Foreign:
    """Open a file without memory-mapping, which would kill the process if the file is truncated."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - imported only to read Parquet

    return pq.ParquetFile(source.path, read_dictionary=list(coded), page_checksum_verification=True)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


@dataclass(frozen=True)
class ArrowPiece(FilePiece):
    """Consecutive record batches of an Arrow file."""

    first: int
    stop: int

    def first_row(self) -> int:
        """Count the rows of the preceding batches, which the format does not store."""
        with _arrow_file(self.source, self.columns) as file:
            return sum(file.get_batch(i).num_rows for i in range(self.first))

    def batches(self, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Read the needed columns of the record batches."""
        with _arrow_file(self.source, self.columns) as file:
            for index in range(self.first, self.stop):
                yield file.get_batch(index)


@dataclass(frozen=True)
class ArrowStreamPiece(FilePiece):
    """A whole Arrow stream."""

    def batches(self, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Read the stream to its end."""
        with self.source.open() as stream, pa.ipc.open_stream(stream) as reader:
            yield from reader


class Arrow(File):
    """An Arrow IPC file (Feather), or a stream."""

    def read_names(self) -> Sequence[str]:
        """Read the schema and return the column names."""
        with self.source.peek() as stream:
            self.streamed = stream.peek(8)[:6] != b"ARROW1"
            if self.streamed:
                return list(pa.ipc.open_stream(stream).schema.names)
        with _arrow_file(self.source, ()) as file:
            self.count = file.num_record_batches
            self.rows = file.get_batch(0).num_rows if self.count else 0
            return list(file.schema.names)

    def split(self, columns: tuple[WantedColumn, ...]) -> list[FilePiece]:
        """Split the file into pieces of batches, assuming that all are as long as the first."""
        if self.streamed:
            return [ArrowStreamPiece(self.source, columns, None)]
        step = max(1, PIECE_ROWS // max(1, self.rows))
        return [
            ArrowPiece(self.source, columns, None, first, min(first + step, self.count))
            for first in range(0, self.count, step)
        ]


@contextlib.contextmanager
def _arrow_file(source: Source, columns: Sequence[WantedColumn]) -> Iterator[Foreign]:
    """Open a file without memory-mapping, which would kill the process if the file is truncated."""
    with pa.OSFile(source.path, "rb") as file:
        names = pa.ipc.open_file(file).schema.names
        fields = [names.index(name) for name in needed(columns)] or None
        yield pa.ipc.open_file(file, options=pa.ipc.IpcReadOptions(included_fields=fields))


_TOKENS = 1 << 16  # approximate tokens per batch; sentences are not split


@dataclass(frozen=True)
class ConllPiece(FilePiece):
    """A whole CoNLL file."""

    width: int  # number of columns
    separator: str | None

    def batches(self, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Parse the file, some sentences at a time."""
        sentences: list[list[list[str]]] = []
        tokens = 0
        for sentence in self._sentences():
            sentences.append(sentence)
            tokens += len(sentence)
            if tokens >= _TOKENS:
                yield self._batch(sentences)
                sentences, tokens = [], 0
        yield self._batch(sentences)

    def _sentences(self) -> Iterator[list[list[str]]]:
        """Yield each sentence as a list of tokens, each a list of its fields."""
        sentence: list[list[str]] = []
        with self.source.open() as stream, io.TextIOWrapper(stream, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                fields = _fields(line, self.separator)
                if line.startswith("#") and (len(fields) != self.width or fields[2:3] == ["="]):
                    continue
                if fields and len(fields) != self.width:
                    raise InvalidBatchError(
                        f"{self.source}, line {number}: expected {self.width} columns as before, "
                        f"found {len(fields)}"
                    )
                if fields:
                    sentence.append(fields)
                elif sentence:
                    yield sentence
                    sentence = []
        if sentence:
            yield sentence

    def _batch(self, sentences: list[list[list[str]]]) -> pa.RecordBatch:
        names = needed(self.columns)
        columns = [
            [[token[int(name) - 1] for token in sentence] for sentence in sentences]
            for name in names
        ]
        lists = [pa.array(column, pa.list_(pa.string())) for column in columns]
        return pa.RecordBatch.from_arrays(lists, names=names)


class Conll(File):
    """A CoNLL file."""

    def read_names(self) -> Sequence[str]:
        """Return the column numbers, from the first line that holds a token."""
        with self.source.peek() as stream, io.TextIOWrapper(stream, encoding="utf-8") as file:
            lines = (line for line in file if not line.isspace() and not line.startswith("#"))
            first = next(lines, None)
        if first is None:
            raise InvalidBatchError(
                f"{self.source}: is empty; a token and its tags a line are expected"
            )
        self.separator = "\t" if "\t" in first else None
        return [str(at + 1) for at in range(len(_fields(first, self.separator)))]

    def split(self, columns: tuple[WantedColumn, ...]) -> list[FilePiece]:
        """Return a single piece: text has to be read from its start."""
        return [ConllPiece(self.source, columns, None, len(self.names), self.separator)]


def _fields(line: str, separator: str | None) -> list[str]:
    return [] if line.isspace() else [field.strip() for field in line.split(separator)]


_LETTERS = {"C": 1, "I": 0, "N": 0, "P": 0.5}
_JOURNAL = re.compile(r"_journal/summaries/(\d+)\.json")  # of a log that is not finished
_ZSTANDARD = 93  # how Inspect compresses; zipfile reads it from Python 3.14 on


@dataclass(frozen=True)
class EvalLogPiece(FilePiece):
    """A whole log."""

    def batches(self, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Read the summaries of all samples."""
        rows, names = _rows(self.source), needed(self.columns)
        arrays = [pa.array([row.get(name) for row in rows]) for name in names]
        yield pa.RecordBatch.from_arrays(arrays, names=names)


class EvalLog(File):
    """A log of Inspect."""

    def read_names(self) -> Sequence[str]:
        """Return ``id``, ``epoch`` and the names of the scores."""
        return list(dict.fromkeys(name for row in _rows(self.source) for name in row))

    def split(self, columns: tuple[WantedColumn, ...]) -> list[FilePiece]:
        """Return a single piece."""
        return [EvalLogPiece(self.source, columns, None)]


def _rows(source: Source) -> list[dict[str, Any]]:
    """Return the id, the epoch and the scores of every sample.

    Raises:
        ValueError: The file is not a log.
    """
    try:
        with source.open() as stream, zipfile.ZipFile(stream) as log:
            names = log.namelist()
            parts = sorted(filter(None, map(_JOURNAL.fullmatch, names)), key=lambda m: int(m[1]))
            chosen = [n for n in names if n == "summaries.json"] or [part[0] for part in parts]
            every = [sample for name in chosen for sample in _content(stream, log, name)]
        return [_row(sample) for sample in every]
    except (zipfile.BadZipFile, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"it has no summaries of samples ({error})") from error


def _content(stream: io.BufferedReader, log: zipfile.ZipFile, name: str) -> Any:
    """Return what a file of JSON in the archive holds."""
    info = log.getinfo(name)
    if info.compress_type != _ZSTANDARD:
        return json.loads(log.read(info))
    stream.seek(info.header_offset + 26)  # the lengths of the name and of the extra field
    lengths = stream.read(4)
    stream.seek(lengths[0] + (lengths[1] << 8) + lengths[2] + (lengths[3] << 8), io.SEEK_CUR)
    text = decompressed(buffered(io.BytesIO(stream.read(info.compress_size)))).read()
    if zlib.crc32(text) != info.CRC:
        raise zipfile.BadZipFile(f"bad CRC-32 of {name}")
    return json.loads(text)


def _row(sample: dict[str, Any]) -> dict[str, Any]:
    row = {"id": str(sample["id"]), "epoch": int(sample["epoch"])}
    for scorer, score in (sample.get("scores") or {}).items():
        value = score["value"]
        several = value if isinstance(value, dict) else {"": value}
        for key, each in several.items():
            name = f"{scorer}/{key}" if key else scorer
            row[name] = _LETTERS.get(each, each) if isinstance(each, str) else each
    return row


FILES: dict[str, type[File]] = {
    "parquet": Parquet,
    "arrow": Arrow,
    "csv": Csv,
    "tsv": Csv,
    "jsonl": JsonLines,
    "conll": Conll,
    "eval": EvalLog,
}


class Opened(NamedTuple):
    """The columns of each input, the pieces to read, and notes for the user."""

    columns: dict[str, WantedColumn]
    pieces: list[Piece]
    notes: list[str]


def pieces_of(
    sources: Sequence[Source],
    asked: Callable[[Iterable[str]], Mapping[str, str]],
    kinds: Mapping[str, Kind],
    filters: Sequence[RowCondition] = (),
) -> Opened:
    """Open every file, so that an error in the last one is reported before the first is read.

    All files must have the same columns for each input, in any order. Otherwise the first file
    would determine which columns of the others are read.

    Args:
        sources: The files.
        asked: Maps the column names of a file to the columns of each input, as the user wrote them.
        kinds: The kind of each input.
        filters: Conditions on the rows to read.

    Raises:
        InvalidBatchError: A column is missing, or the files differ in the columns to read.
        ReadError: A file cannot be read.
    """
    files = [FILES[source.format](source) for source in sources]
    read = _columns(files[0], asked, kinds)
    columns = of_conditions(read, filters)
    for file in files[1:]:
        here = of_conditions(_columns(file, asked, kinds), filters)
        if here != columns:
            raise InvalidBatchError(_difference(files[0], columns, file, here))
    distinct = {column.title: column for column in columns.values()}
    lacking = tuple(text for key, text in asked(kinds).items() if key not in columns)
    pieces: list[Any] = []
    for file, values in zip(files, _keys(files, distinct), strict=True):
        file.lacking = lacking
        pieces += file.pieces(list(distinct.values()), values)
    if filters:
        kept = frozenset(column.title for column in read.values())
        pieces = [FilteredPiece(piece.source, piece, tuple(filters), kept) for piece in pieces]
    return Opened(read, pieces, _notes(files, distinct))


def _columns(
    file: File, asked: Callable[[Iterable[str]], Mapping[str, str]], kinds: Mapping[str, Kind]
) -> dict[str, WantedColumn]:
    texts = asked([*file.names, *file.keys])
    try:
        return resolve(texts, kinds, file.names, file.source, keys=file.keys)
    except InvalidBatchError as error:
        raise InvalidBatchError(f"{error}{file.advice}") from None


def _difference(
    one: File, columns: Mapping[str, WantedColumn], other: File, here: Mapping[str, WantedColumn]
) -> str:
    """Return the error message for two files with different columns for an input."""
    for key in dict.fromkeys([*columns, *here]):
        if key not in columns or key not in here:
            has, lacks = (one, other) if key in columns else (other, one)
            title = (columns.get(key) or here[key]).title
            return (
                f"{has.source}: has a column {title!r}, and {lacks.source} has none: it "
                "must be in every file or in none; read the files apart"
            )
        if columns[key] != here[key]:
            break
    there, found = columns[key].names, here[key].names
    return (
        f"{other.source}: {columns[key].title!r} is {', '.join(found)} here, but "
        f"{', '.join(there)} in {one.source}: name them in a list"
    )


def _keys(files: Sequence[File], columns: Mapping[str, WantedColumn]) -> list[dict[str, object]]:
    """Return the path values of each file by column title, with one type across all files."""
    found: list[dict[str, object]] = [{} for _ in files]
    for title, column in columns.items():
        name = column.names[0]
        holders = [place for place, file in enumerate(files) if name in file.keys]
        if not holders:
            continue
        values: list[Any] = [files[place].keys[name] for place in holders]
        if column.kind == "number":
            values = [_number(files[place], name) for place in holders]
        elif column.kind == "label":
            values = spelled(pa.array(values, pa.string())).to_pylist()
        for place, value in zip(holders, values, strict=True):
            found[place][title] = value
    return found


def _number(file: File, name: str) -> float | None:
    value = file.keys[name]
    if value is None:
        return None
    texts, title = pa.array([value]), f"{file.source}: {name}"
    try:
        floats = texts.cast(pa.float64())
    except pa.ArrowInvalid:
        raise InvalidBatchError(
            f"{title} holds {value!r} in the path; numbers are needed"
        ) from None
    number: float = exact(floats, texts, title, 0)[0].as_py()
    return number


def _notes(files: Sequence[File], columns: Mapping[str, WantedColumn]) -> list[str]:
    weighed = [file for file in files if WEIGHT in (*file.names, *file.keys)]
    if not weighed or any(WEIGHT in column.names for column in columns.values()):
        return []
    return [
        f"{weighed[0].source}: the column {WEIGHT!r} is not read, and every row weighs 1: "
        "columns= in Python, or --weight, names the column of weights"
    ]
