"""The reader of each format, and the pieces of files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from streammetrics.core.columns.batch import WEIGHT
from streammetrics.core.errors import InvalidBatchError
from streammetrics.readers.columnar import Arrow, Parquet
from streammetrics.readers.conll import Conll
from streammetrics.readers.delimited import Csv
from streammetrics.readers.evallog import EvalLog
from streammetrics.readers.jsonlines import JsonLines
from streammetrics.readers.numbers import exact
from streammetrics.readers.selection import resolve, spelled
from streammetrics.readers.where import FilteredPiece, of_conditions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from streammetrics.core.columns.schema import Kind
    from streammetrics.readers.files import File
    from streammetrics.readers.pieces import Piece
    from streammetrics.readers.selection import WantedColumn
    from streammetrics.readers.sources import Source
    from streammetrics.readers.where import RowCondition

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
