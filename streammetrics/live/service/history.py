"""Events from files, fed in the order of their times, whatever the order of the files."""

from __future__ import annotations

import re
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from streammetrics.core.errors import InvalidBatchError
from streammetrics.live.events import instants
from streammetrics.live.validation import kinds_of, truth_of
from streammetrics.readers.files import BATCH_ROWS
from streammetrics.readers.formats import FILES, pieces_of
from streammetrics.readers.paths import find
from streammetrics.slices.bins import Bins, title_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from streammetrics.core.columns.schema import Kind
    from streammetrics.core.types import Array, Foreign, Ints, Options, Places
    from streammetrics.live.live import Live
    from streammetrics.live.service.config import Settings

AT_ONCE = 1 << 15  # events that are taken together
_INTEGER = re.compile("[+-]?[0-9]+")


class HistoryRows(NamedTuple):
    """Rows of some files as columns, by the parameter names of `Live`, with their origin."""

    times: Ints
    columns: dict[str, Foreign]
    files: tuple[tuple[str, int], ...]  # name and number of the first row of each file

    def part(self, rows: Places) -> Options:
        """Return some rows as arguments of `observe`, `predict` or `label`."""
        named = {name: column.take(rows) for name, column in self.columns.items()}
        return {"time": self.times[rows].view("datetime64[ns]"), **named}

    def place(self, row: int) -> str:
        """Return the row and the file of a row, for messages."""
        name, first = next((n, at) for n, at in reversed(self.files) if at <= row)
        return f"in row {row - first} of {name}"


class History(NamedTuple):
    """All events of some files."""

    kinds: tuple[tuple[str, HistoryRows], ...]  # the method of `Live`, and its rows
    sources: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def n_events(self) -> int:
        """The number of events."""
        return sum(len(rows.times) for _, rows in self.kinds)

    def feed(self, live: Live, progress: Callable[[int], None] | None = None) -> None:
        """Feed all events to a live state, oldest first.

        Raises:
            InvalidBatchError: A row is invalid; the message names its file. `live` has taken the
                rows before it.
        """
        times = np.concatenate([rows.times for _, rows in self.kinds])
        order = np.argsort(times, kind="stable")
        ends = np.cumsum([len(rows.times) for _, rows in self.kinds])
        # Each part spans at most the label lateness, so that feeding it by kind rejects no label.
        # Labels are first: predictions of the same part could make rows leave before their labels.
        sections = times[order] // live._config.label_lateness
        cuts = np.flatnonzero(np.diff(sections)) + 1
        starts = np.union1d(cuts, np.arange(0, len(order), AT_ONCE))
        for part in np.split(order, starts[starts > 0]):
            for (kind, rows), end in reversed([*zip(self.kinds, ends.tolist(), strict=True)]):
                first = end - len(rows.times)
                mine = part[(part >= first) & (part < end)] - first
                if len(mine):
                    _call(getattr(live, kind), rows, mine)
            if progress is not None:
                progress(len(part))


def _call(method: Callable[..., object], rows: HistoryRows, mine: Places) -> None:
    try:
        method(**rows.part(mine))
    except InvalidBatchError as error:
        if error.row is None:
            raise
        row = _odd_row(rows.columns.get(error.column or ""), int(mine[error.row]))
        text = str(error).replace(f"in row {error.row}", rows.place(row), 1)
        raise InvalidBatchError(text, error.column, row) from error


def _odd_row(column: Foreign, row: int) -> int:
    """Return the row to blame: if words make text of integers, that of the first word."""
    if isinstance(column, pa.Array) and pa.types.is_string(column.type):
        words = [text is not None and not _INTEGER.fullmatch(text) for text in column.to_pylist()]
        is_to_blame = words[row] or not column[row].is_valid
        return row if is_to_blame or True not in words else words.index(True)
    return row


def history(
    found: Settings, predictions: Sequence[str], labels: Sequence[str], fmt: str | None = None
) -> History:
    """Read files of predictions and of labels, or of rows with both.

    Raises:
        InvalidBatchError: A column is missing, or a value is invalid.
        ReadError: A file cannot be read.
    """
    suite, names = found.suite, found.names
    keys: dict[str, Kind] = {
        title_of(column): "number" if isinstance(column, Bins) else _kind(found, title_of(column))
        for spec in found.options["by"]
        for column in spec
    }
    truth, kinds, proxy = truth_of(suite), {**keys, **kinds_of(suite)}, found.options["proxy"]
    inputs = {suite.columns.get(name, name): None for name in suite.inputs}
    if proxy is not None:
        inputs[proxy], kinds[proxy] = None, kinds[truth]
    for one in found.options["inputs"].values():
        kinds.setdefault(one.name, "number" if one.kind == "number" else "id")
    weight = suite.columns.get("sample_weight")
    beside = [*([weight] if weight else []), *(key for key in keys if key not in inputs)]
    beside += [name for name in found.options["inputs"] if name not in {*inputs, *beside}]
    predicted = [*(title for title in inputs if title != truth), *beside]
    first = _Files(predictions, fmt)
    has = first.names
    if labels:
        second = _Files(labels, fmt)
        when = names.label_time if names.label_time in second.names else names.time
        version = {"version": names.version} if names.version in second.names else {}
        events = [
            ("predict", first.rows({"id": names.id}, names.time, predicted, kinds)),
            ("label", second.rows({"id": names.id, **version}, when, [truth], kinds)),
        ]
        _check_ids(*[rows for _, rows in events])
        return History(tuple(events), (*first.sources, *second.sources), first.notes + second.notes)
    later = {names.id, names.label_time} <= has
    if not truth or (truth in has and not later):
        rows = first.rows({}, names.time, [*inputs, *beside], kinds)
        return History((("observe", rows),), first.sources, first.notes)
    events = [("predict", first.rows({"id": names.id}, names.time, predicted, kinds))]
    if later and truth in has:
        events.append(("label", first.rows({"id": names.id}, names.label_time, [truth], kinds)))
    return History(tuple(events), first.sources, first.notes)


def _check_ids(predictions: HistoryRows, labels: HistoryRows) -> None:
    """Raise if the types of ids differ, so that no label can match a prediction."""
    first, second = (_type_of_ids(rows.columns["id"]) for rows in (predictions, labels))
    if first and second and first != second:
        raise InvalidBatchError(
            f"ids are {first} in {predictions.files[0][0]} and {second} in {labels.files[0][0]}, "
            "so no label matches a prediction: convert both to text, or write both files as "
            "Parquet (ids in CSV are text)",
            "id",
        )


def _type_of_ids(ids: Foreign) -> str:
    """Return the type of ids in words; "" if there are none or they have another type."""
    if not len(ids):
        return ""
    if isinstance(ids, np.ndarray):
        return "integers" if ids.dtype.kind in "iu" else ""
    is_text = pa.types.is_string(ids.type) or pa.types.is_large_string(ids.type)
    return "text" if is_text else "integers" if pa.types.is_integer(ids.type) else ""


def _kind(found: Settings, title: str) -> Kind:
    """Return how to read text in a key column: as the declared type, which is text by default."""
    return "id" if found.options["types"].get(title, "text") == "text" else "label"


class _Files:
    """Files that are read as one table."""

    def __init__(self, paths: Sequence[str], fmt: str | None) -> None:
        self._found = find(paths, fmt)
        self.sources = tuple(source.path for source in self._found.sources)
        self.notes = tuple(self._found.notes)
        opened = [FILES[source.format](source) for source in self._found.sources]
        self.names = {*opened[0].names, *opened[0].keys}

    def rows(
        self, heads: dict[str, str], time: str, titles: Sequence[str], kinds: dict[str, Kind]
    ) -> HistoryRows:
        """Return columns of all files: `heads` by parameter name, the others by their own names."""
        wanted = {"time": time, **heads, **{title: title for title in titles}}
        every: dict[str, Kind] = {**dict.fromkeys(wanted, "label"), **kinds, "id": "id"}
        read = {key: every[key] for key in wanted}
        opened = pieces_of(self._found.sources, lambda _: wanted, read)
        times: list[Ints] = []
        files: list[tuple[str, int]] = []
        at = 0
        columns: dict[str, list[Foreign]] = {key: [] for key in wanted if key != "time"}
        for piece in opened.pieces:
            if not files or files[-1][0] != str(piece):
                files.append((str(piece), at))
            with closing(piece.tables(BATCH_ROWS)) as tables:
                for n, table in tables:
                    try:
                        times.append(instants(table[time], time))
                    except InvalidBatchError as error:
                        raise error.after(at - files[-1][1], f"file {piece}") from None
                    for key, column in columns.items():
                        column.append(table[wanted[key]])
                    at += n
        whole = {key: _together(parts) for key, parts in columns.items()}
        return HistoryRows(np.concatenate([np.empty(0, np.int64), *times]), whole, tuple(files))


def _together(parts: Sequence[Foreign]) -> Foreign:
    """Concatenate parts of a column; the result is a NumPy array if all parts are."""
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts) if parts else np.empty(0)
    arrays = [_decoded(part) for part in parts]
    kinds = list(dict.fromkeys(array.type for array in arrays))
    if len(kinds) > 1:  # integers in one batch, words in another
        arrays = [array.cast(pa.string()) for array in arrays]
    return pa.concat_arrays(arrays)


def _decoded(part: Foreign) -> Foreign:
    array: Foreign = part if isinstance(part, pa.Array) else pa.array(part)
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def series_rows(series: dict[str, Array]) -> Iterator[tuple[str, ...]]:
    """Yield the rows of a series as text, its header first."""
    yield tuple(series)
    yield from zip(*[_texts(column) for column in series.values()], strict=True)


def _texts(column: Array) -> list[str]:
    if column.dtype.kind == "M":
        return [f"{time}Z" for time in column.astype("datetime64[s]")]
    return [*map(repr, column.tolist())]
