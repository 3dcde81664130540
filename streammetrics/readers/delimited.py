"""CSV and TSV files: read from the start; column types never depend on the first rows."""

from __future__ import annotations

import csv
import io
import re
import threading
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Literal, NamedTuple, NoReturn

import pyarrow as pa

from streammetrics._command import expect_foreign_threads
from streammetrics.core.errors import InvalidBatchError
from streammetrics.readers.files import File, FilePiece
from streammetrics.readers.numbers import alike, exact, is_number, long_places, trimmed
from streammetrics.readers.selection import needed, of_kind, spelled

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from streammetrics.core.types import Foreign
    from streammetrics.readers.paths import Source
    from streammetrics.readers.selection import WantedColumn

_BLOCK = 1 << 22  # bytes of text parsed at a time
_HEAD = 1 << 16  # bytes read to detect the delimiter
_LONGEST = 1 << 24  # maximum bytes of the header line
_SAMPLE = 20  # number of rows compared to detect the delimiter
_DELIMITERS = {"csv": ",;\t|", "tsv": "\t,;|"}  # the delimiter that the suffix suggests comes first

_TYPES: dict[str, pa.DataType] = {
    "number": pa.float64(),
    "id": pa.string(),
    "label": pa.dictionary(pa.int32(), pa.string()),
}
_CONVERSION = re.compile(
    r"In CSV column #(\d+): Row #(\d+): CSV conversion error to [^:]+: "
    r"(?:invalid value '(.*)'|invalid UTF8 data)",
    re.DOTALL,
)
_TORN = re.compile(r"CSV parse error: Row #(\d+): Expected (\d+) columns, got (\d+)")
_DECIMAL_COMMA = re.compile(r"\s*[+-]?[0-9]*,[0-9]+(?:[eE][+-]?[0-9]+)?\s*")
_SWAPPED = str.maketrans(".,", ",.")
_CODE = re.compile("[+-]?0[0-9]")
_LAST = "\x03"  # each field of the row after the end
_AHEAD = 0.2  # seconds in which Arrow's thread reads on, unless it has read far ahead
_BLOCKED = 1.0  # seconds to wait for a pipe from which nothing comes
_BLANK = re.compile(r"(?:\r\n|\r|\n)*")


class _Ended:
    """The text of a stream followed by a sentinel row, which is parsed unless it is inside quotes.

    Arrow reads and parses ahead in threads that call Python. A thread that does so while the
    interpreter shuts down hangs or aborts the process, so a caller that stops reading calls `stop`.
    One may still be on its way out of the last call then, so a command ends without the shutdown.
    """

    closed = False

    def __init__(self, stream: io.BufferedReader, row: bytes) -> None:
        expect_foreign_threads()
        self._stream, self._row, self._before = stream, row, b""
        self._reading, self._stopped, self._ended = threading.Lock(), False, threading.Event()

    def read(self, size: int) -> bytes:
        """Return the next bytes, and after the end the sentinel row."""
        with self._reading:
            data = b"" if self._stopped else self._stream.read(size)
            if data:
                self._before = data[-1:]
            elif self._row and not self._stopped:
                data = (b"" if self._before in b"\r\n" else b"\n") + self._row
                self._row = b""
            else:
                self._ended.set()
        return data

    def stop(self, batches: Iterable[object]) -> None:
        """End the text here, and wait until Arrow's threads have seen the end."""
        if not self._reading.acquire(timeout=_BLOCKED):
            return
        self._stopped = True
        self._reading.release()
        with suppress(pa.ArrowInvalid):
            deque(batches, 0)  # drain the batches that were read ahead
        self._ended.wait(_AHEAD)


class Head(NamedTuple):
    """The header of a file."""

    delimiter: str
    names: tuple[str, ...]
    blank: int  # blank lines before the header line
    more: bool  # whether anything follows the header line


@dataclass(frozen=True)
class CsvPiece(FilePiece):
    """A whole CSV or TSV file."""

    head: Head

    def batches(self, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Parse block by block; a column's type does not depend on its first block.

        Numbers are parsed as float64, which is fastest, until a block may hold an integer that
        float64 cannot represent. From that block on, numbers are parsed as text first. A pipe,
        which cannot be read twice, is parsed as text from its start.
        """
        if not self.head.more:
            return
        numbers = [name for name in needed(self.columns) if name in of_kind(self.columns, "number")]
        row, words = 0, set[str]()
        if not self.source.once:
            for batch in self._parsed(pa.float64()):
                if any(len(long_places(batch.column(name))) for name in numbers):
                    break
                yield self._with_labels(batch, words)
                row += batch.num_rows
            else:
                return
        done = 0
        for batch in self._parsed(pa.string()):
            if done >= row:  # the blocks are those of before
                yield self._with_labels(self._with_numbers(batch, numbers, done), words)
            done += batch.num_rows

    def _parsed(self, number: pa.DataType) -> Iterator[pa.RecordBatch]:
        """Parse the file with the given type for number columns."""
        import pyarrow.csv as pc  # noqa: PLC0415 - imported only to read CSV

        types = {**_TYPES, "number": number}
        last = self._last
        # In a file with one column, an empty line is a row with a missing value; pandas writes it
        # as "".
        alone = len(self.head.names) == 1
        quoted = alone and all(column.kind == "number" for column in self.columns)
        ended = False

        def skipped(row: pc.InvalidRow) -> Literal["skip", "error"]:
            nonlocal ended
            ended = row.text == last
            return "skip" if ended else "error"

        rows = 0
        with self.source.open() as stream:
            text = _Ended(stream, f"{last}\n".encode())
            reader: pc.CSVStreamingReader | None = None
            try:
                reader = pc.open_csv(
                    text,  # type: ignore[arg-type]  # it has read(), which suffices
                    pc.ReadOptions(
                        use_threads=False,
                        block_size=_BLOCK,
                        column_names=list(self.head.names),
                        skip_rows_after_names=self.head.blank + 1,
                    ),
                    pc.ParseOptions(
                        delimiter=self.head.delimiter,
                        newlines_in_values=True,
                        ignore_empty_lines=not alone,
                        invalid_row_handler=skipped,
                    ),
                    pc.ConvertOptions(
                        include_columns=needed(self.columns),
                        column_types={n: types[c.kind] for c in self.columns for n in c.names},
                        strings_can_be_null=True,
                        quoted_strings_can_be_null=quoted,
                        decimal_point=self.source.decimal,
                    ),
                )
                for batch in reader:
                    yield batch
                    rows += batch.num_rows
            except pa.ArrowInvalid as error:
                self._explain(str(error))
                raise
            finally:
                text.stop(reader or ())
        if not ended:
            raise InvalidBatchError(
                f"{self.source}: a double quote opens a field of row {rows - 1}, and none closes "
                "it: the rest of the file would belong to this field",
                None,
                rows - 1,
            )

    def _with_numbers(self, batch: pa.RecordBatch, names: Sequence[str], row: int) -> Foreign:
        """Return the batch with some text columns converted to numbers."""
        columns = {name: batch.column(name) for name in batch.schema.names}
        for name in names:
            texts = self._with_points(trimmed(columns[name]))
            try:
                floats = texts.cast(pa.float64())
            except pa.ArrowInvalid:
                place = next(i for i, text in enumerate(texts) if not is_number(text))
                self._refuse(name, row + place, columns[name][place].as_py())
            columns[name] = exact(floats, texts, f"{self.source}: {name}", row)
        columns.update(zip(names, alike([columns[name] for name in names]), strict=True))
        return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))

    def _with_labels(self, batch: pa.RecordBatch, words: set[str]) -> pa.RecordBatch:
        """Return the batch with text that spells numbers or booleans as what it spells.

        Args:
            batch: The batch.
            words: The columns of which an earlier batch was text; those of this one are added.
        """
        columns: list[Foreign] = []
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if isinstance(column, pa.DictionaryArray) and name not in words:
                texts = self._with_points(column.dictionary)
                values = spelled(texts)
                if values is texts or _has_zeros_before(values, texts):
                    values = column.dictionary
                if values is column.dictionary and len(values):
                    words.add(name)
                columns.append(pa.DictionaryArray.from_arrays(column.indices, values))
            else:
                columns.append(column)
        return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)

    def _with_points(self, texts: Foreign) -> Foreign:
        """Return text in which numbers have decimal points; dots are none where commas are."""
        if self.source.decimal == ".":
            return texts
        swapped = [text and text.translate(_SWAPPED) for text in texts.to_pylist()]
        return pa.array(swapped, pa.string())

    def _explain(self, message: str) -> None:
        if "straddl" in message:
            raise InvalidBatchError(
                f"{self.source}: a row is longer than {_BLOCK:,} bytes: does a double quote open "
                "a field and none closes it?"
            )
        torn = _TORN.match(message)
        if torn:
            line, expected, got = map(int, torn.groups())
            row = self._row(line)
            raise InvalidBatchError(
                f"{self.source}: row {row} has {got} field{'s' * (got != 1)}, and the first line "
                f"has {expected} name{'s' * (expected != 1)}: put a field that contains "
                f"{self.head.delimiter!r} in double quotes",
                None,
                row,
            )
        found = _CONVERSION.match(message)
        if found:
            place, number, value = found.groups()
            self._refuse(self.head.names[int(place)], self._row(int(number)), value)

    @property
    def _last(self) -> str:
        """The sentinel row after the end, which has one field too many."""
        return self.head.delimiter.join([_LAST] * (len(self.head.names) + 1))

    def _row(self, line: int) -> int:
        """Return the zero-based row of a line number as Arrow counts it."""
        return line - 2 - self.head.blank

    def _refuse(self, column: str, row: int, value: str | None) -> NoReturn:
        if value is None:
            what = f"is not in UTF-8 in row {row}; save it in UTF-8 or UTF-16"
        else:
            value = value.partition(self._last)[0]
            what = f"holds {value!r:.60} in row {row}; numbers are needed"
            if _DECIMAL_COMMA.fullmatch(value):
                what += ", and commas are not read as decimal points without --decimal ,"
        raise InvalidBatchError(f"{self.source}: {column} {what}", column, row)


class Csv(File):
    """A CSV or TSV file with a header line."""

    def read_names(self) -> Sequence[str]:
        """Read the header line."""
        with self.source.peek() as stream:
            self.head = _head(stream, self.source)
        return self.head.names

    @property
    def advice(self) -> str:
        """A hint on the delimiter, if the header seems to be a single name."""
        if len(self.names) > 1 or self.names[0].isidentifier():
            return ""
        if self.source.decimal in self.names[0]:
            return "; with --decimal , commas separate no columns: save it with another delimiter"
        return "; if these are several, --delimiter, or delimiter= in Python, sets the delimiter"

    def split(self, columns: tuple[WantedColumn, ...]) -> list[FilePiece]:
        """Return a single piece: text has to be read from its start."""
        return [CsvPiece(self.source, columns, None, self.head)]


def _head(stream: io.BufferedReader, source: Source) -> Head:
    """Read the header, and detect the delimiter that splits the first rows into equal widths.

    Ties go to the delimiter that gives the most fields.
    """
    data, text, whole = b"", "", False
    rows: list[list[str]] = []
    found = ""
    while not rows and not whole and len(data) < _LONGEST:
        size = max(_HEAD, len(data))
        more = stream.read(size)
        data, whole = data + more, len(more) < size
        text = data.decode(errors="surrogateescape")
        best = (False, 0)
        for delimiter in source.delimiter or _DELIMITERS[source.format].replace(source.decimal, ""):
            parted = _rows(text, delimiter, whole=whole)
            widths = set(map(len, parted))
            score = (len(widths) == 1 and widths != {1}, len(parted[0]) if parted else 0)
            if score > best:
                best, rows, found = score, parted, delimiter
    if not rows:
        raise InvalidBatchError(f"{source}: is empty; expected a first line with column names")
    names = tuple(rows[0])
    if any("\udc80" <= sign <= "\udcff" for name in names for sign in name):
        raise InvalidBatchError(f"{source}: the column names are not in UTF-8 or UTF-16")
    blank = _BLANK.match(text)
    lines = len(blank[0].splitlines()) if blank else 0
    if len(names) == 1:  # an empty line is a row
        rest = io.StringIO(text[blank.end() if blank else 0 :], newline="")
        rows = list(islice(csv.reader(rest, delimiter=found), 2))
    return Head(found, names, lines, more=len(rows) > 1 or not whole)


def _rows(text: str, delimiter: str, *, whole: bool) -> list[list[str]]:
    """Return the first rows; the last one is dropped if the text may be cut within it."""
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        rows = list(islice((row for row in lines if row), _SAMPLE + 1))
    except csv.Error:  # a field longer than the limit: not the delimiter
        return []
    return rows if whole and len(rows) <= _SAMPLE else rows[:-1]


def _has_zeros_before(values: Foreign, texts: Foreign) -> bool:
    """Whether texts that spell numbers are codes such as 02134, whose zeros belong to them."""
    if pa.types.is_boolean(values.type) or values.cast(pa.string()).equals(texts):
        return False
    return any(text is not None and _CODE.match(text) for text in texts.to_pylist())
