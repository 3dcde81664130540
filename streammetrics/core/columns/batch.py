"""A batch: tables and columns by name."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy import iterable

from streammetrics.core import tuning
from streammetrics.core.columns.column import EXACT, Column
from streammetrics.core.columns.conversion import as_column
from streammetrics.core.columns.nested import Nested, as_nested
from streammetrics.core.columns.sets import as_sets, marked
from streammetrics.core.counting import extent
from streammetrics.core.errors import InvalidBatchError, an
from streammetrics.core.kernels import kernels

if TYPE_CHECKING:
    from collections.abc import Collection

    from streammetrics.core.types import Array, ClassLabel, Floats, Foreign


_LISTED = 20


def natural(text: str) -> list[Any]:
    """Return the key under which p2 sorts before p10."""
    return [int(part) if part.isdigit() else part for part in re.split(r"([0-9]+)", text)]


def meant(name: str, names: Iterable[str]) -> str:
    """Return the question which of `names` was meant, as a part of a message; mostly none is."""
    by_lower = {known.lower(): known for known in names if isinstance(known, str)}
    close = difflib.get_close_matches(name.lower(), by_lower, n=3, cutoff=0.6)
    if not close:
        return ""
    return f"; did you mean {' or '.join(repr(by_lower[key]) for key in close)}?"


def near(name: str, names: Iterable[str], what: str = "there are") -> str:
    """Return the names to choose from, as the end of a message, those like `name` first."""
    names = list(names)
    text = meant(name, names)
    if not names:
        return f"{text}; {what} none"
    return f"{text or ';'} {what[:1].upper() + what[1:] if text else what}: {_some(names)}"


def as_renamed(columns: object) -> dict[str, str]:
    """Return the user's column, or several as one text, for each input that `columns` renames."""
    if not isinstance(columns, Mapping) or not all(isinstance(name, str) for name in columns):
        raise TypeError(
            f"columns={columns!r}: expected a dictionary from an input's name to your column, such "
            "as {'y_true': 'label', 'y_score': 'score'}"
        )
    return {name: as_text(asked) for name, asked in columns.items()}


def as_text(columns: str | Sequence[str]) -> str:
    """Return a name, or several as one text."""
    if isinstance(columns, str):
        return columns
    if not iterable(columns) or not all(isinstance(name, str) for name in columns):
        raise TypeError(
            f"{columns!r} is no column: expected its name, or a list of names; where these are "
            "numbers or tuples, pass the columns by name, or rename them"
        )
    odd = [name for name in columns if "," in name or not name.strip()]
    if odd or not columns:
        raise ValueError(
            f"{list(columns)!r} cannot be a list of columns: "
            f"{f'{odd[0]!r} cannot stand in one, rename it' if odd else 'it is empty'}"
        )
    return ",".join(columns)


def listed(text: str) -> list[str]:
    """Return the names of a list ``"p0,p1"``."""
    return [part.strip() for part in text.split(",")]


def check_single(wanted: Iterable[str], names: Sequence[str], where: str = "") -> None:
    """Raise where one of the columns that are read is there more than once."""
    if len(set(names)) == len(names):
        return
    for name in wanted:
        if (count := names.count(name)) > 1:
            raise InvalidBatchError(
                f"{where}{count} columns are called {name!r}: rename them, so that it is said "
                "which one is read"
            )


def asks_for(text: str, name: str) -> bool:
    """Whether a name, list or glob may mean the column."""
    return name == text or name in listed(text) or (is_glob(text) and fnmatchcase(name, text))


def is_several(text: str) -> bool:
    """Whether a text may mean more than the column of its name."""
    return "," in text or is_glob(text)


def is_glob(text: str) -> bool:
    """Whether a text may match several names."""
    return "*" in text or "?" in text or "[" in text


def parted(
    text: str, names: Sequence[str], taken: Collection[str], where: str = ""
) -> tuple[str, ...]:
    """Return the columns that a text asks for: the one of this name, a list, or a glob's.

    A glob takes none of those `taken` by name, and has the natural order: p2 before p10.

    Raises:
        InvalidBatchError: There is no such column, or a glob means numbered ones and others; the
            message begins with `where`.
    """
    if text in names:
        return (text,)
    parts = listed(text)
    missing = [part for part in parts if part not in names]
    if missing and is_glob(text):
        found = [name for name in names if fnmatchcase(name, text) and name not in taken]
        if not found:
            raise InvalidBatchError(f"{where}no column matches {text!r}{near(text, names)}")
        _check_alike(text, found, where)
        return tuple(sorted(found, key=natural))
    if missing:
        raise InvalidBatchError(f"{where}no column {missing[0]!r}{near(missing[0], names)}")
    return tuple(parts)


def _check_alike(glob: str, found: Sequence[str], where: str) -> None:
    """Raise where a glob means p0 and p1, and ``predicted`` as well, which it takes for a third."""
    digits = re.escape(glob).replace(r"\*", "[0-9]+")
    numbered = [name for name in found if re.fullmatch(digits, name)]
    others = [name for name in found if name not in numbered]
    if len(numbered) > 1 and others:
        first, *_, last = sorted(numbered, key=natural)
        raise InvalidBatchError(
            f"{where}{glob!r} means {len(numbered)} numbered columns, {first} to {last}, and others"
            f": {_some(others)}; {glob.replace('*', '[0-9]*')!r} means the numbered ones, and a "
            "list such as 'a,b,c' those of your choice"
        )


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _LISTED:,} more" if len(names) > _LISTED else ""
    return f"{', '.join(map(str, names[:_LISTED]))}{more}"


class BatchStream(NamedTuple):
    """Rows that come batch by batch: the names of their columns, and those of some of them."""

    names: list[str]
    batches: Callable[[list[str]], Iterable[Foreign]]


_NAMES = ("column_names", "columns", "keys")  # of Arrow tables, of data frames, of mappings


def is_table(what: object) -> bool:
    """Whether it has columns by name, or is a stream of batches that have."""
    return is_stream(what) or any(hasattr(what, attribute) for attribute in _NAMES)


def is_stream(what: object) -> bool:
    """Whether `streamed` takes it; nothing of it is read."""
    if isinstance(what, Mapping):
        return False
    each = ("collect_schema", "collect"), ("scanner", "to_batches"), ("project", "fetchall")
    return hasattr(what, "read_next_batch") or (
        not hasattr(what, "get_columns")  # a data frame of polars
        and any(hasattr(what, one) and hasattr(what, other) for one, other in each)
    )


def streamed(table: Foreign) -> BatchStream | None:
    """Return a table whose rows come batch by batch as a stream, ``None`` where it is none.

    These are polars LazyFrames, Arrow Datasets and RecordBatchReaders, and DuckDB relations.
    """
    if not is_stream(table):
        return None
    if hasattr(table, "read_next_batch"):
        return BatchStream(list(table.schema.names), lambda _: table)
    if hasattr(table, "collect_schema"):
        names = table.collect_schema().names()
        return BatchStream(names, lambda names: [table.select(names).collect()])
    if hasattr(table, "scanner"):
        return BatchStream(
            list(table.schema.names),
            lambda names: _narrowed(table, names).to_batches(columns=names),
        )
    import pyarrow as pa  # noqa: PLC0415 - DuckDB hands over its rows by it

    def batches(names: list[str]) -> Foreign:
        return pa.RecordBatchReader.from_stream(table.project(_quoted(names)))

    return BatchStream(list(table.columns), batches)


def _narrowed(dataset: Foreign, names: Sequence[str]) -> Foreign:
    """Return an Arrow Dataset of some columns: one in which two have a name cannot be scanned."""
    schema = dataset.schema
    if len(set(schema.names)) == len(schema.names):
        return dataset
    import pyarrow as pa  # noqa: PLC0415 - whose dataset it is

    return dataset.replace_schema(pa.schema([schema.field(name) for name in names]))


def _quoted(names: Iterable[str]) -> str:
    return ", ".join('"' + name.replace('"', '""') + '"' for name in names)


def table_columns(table: object) -> list[str]:
    """Return the names of a table's columns, whatever kind of table it is."""
    for attribute in _NAMES:
        names = getattr(table, attribute, None)
        if names is not None:
            return list(names() if callable(names) else names)
    raise InvalidBatchError(
        f"{an(type(table).__name__)} is not a table: pass a mapping of arrays, a pandas or polars "
        "DataFrame, an Arrow Table, RecordBatch or Dataset, or columns by name"
    )


def n_rows(table: Foreign) -> int:
    """Return the number of rows of a table."""
    shape = getattr(table, "shape", None)  # of pandas, polars and Arrow tables
    if shape is not None:
        return int(shape[0])
    if hasattr(table, "num_rows"):
        return int(table.num_rows)
    names = table_columns(table)
    if not names:
        raise InvalidBatchError("the table has no columns")
    column = table[names[0]]
    return len(column) if hasattr(column, "__len__") and not isinstance(column, str) else 1


_NEAR = 1e-2  # as far off as sums of probabilities in half precision may be


def by_row(column: Column, positions: tuple[int, ...], title: str) -> Column:
    """Return a column (n,) or (n, d) of one of two or more dimensions.

    `positions` is the shape of labels (B, T...), and empty where they are (n,).

    >>> by_row(Column(np.array([[1], [2]])), (), "y_true").values
    array([1, 2])
    >>> by_row(Column(np.arange(12).reshape(2, 2, 3)), (2, 3), "y_score").values.tolist()
    [[0, 3], [1, 4], [2, 5], [6, 9], [7, 10], [8, 11]]
    """
    shape = column.values.shape
    if not positions:
        if shape[1:] == (1,):
            return _reshaped(column, (shape[0],))
        if len(shape) == 2:
            return column
        if math.prod(shape[2:]) == 1:  # (B, K, 1) scores, whose labels (B, 1) are (n,)
            return _reshaped(column, shape[:2])
        raise InvalidBatchError(
            f"{title} has shape {shape}; pass (n,) or (n, d), which .reshape(-1) makes of numbers "
            "that are a row each, or beside labels of shape (B, T...) scores of shape (B, K, T...)"
        )
    if shape == positions:
        return _reshaped(column, (math.prod(shape),))
    if len(shape) > len(positions) and shape[:1] + shape[2:] == positions:
        moved = Column(_class_last(column.values), None, True)
        if column.nulls is not None:
            moved.nulls = _class_last(column.nulls)
        return by_row(_reshaped(moved, (math.prod(positions), shape[1])), (), title)
    sample, *rest = map(str, positions)
    raise InvalidBatchError(
        f"{title} has shape {shape}, and the labels {positions}: pass one value for each label, or "
        f"scores of shape ({', '.join([sample, 'K', *rest])}), the class second; labels that are "
        "one-hot come as y_true.argmax(axis=1)"
    )


def refuse_one_hot(labels: Column, column: Column, positions: tuple[int, ...], title: str) -> None:
    """Raise where labels (n, K) are one-hot, and what is beside them is rows of probabilities.

    Both would be read as n * K rows of two classes, and hardly anybody means that: labels at
    positions have none or several of the class in some row, or scores that do not sum to 1.
    """
    if len(positions) != 2 or column.values.shape != positions or labels.vocabulary is not None:
        return
    if column.values.dtype.kind != "f":
        return
    marks = labels.values.reshape(positions)
    one = marks == 1
    if not ((one | (marks == 0)).all() and (np.count_nonzero(one, axis=1) == 1).all()):
        return
    if (np.abs(column.values.sum(axis=1, dtype=np.float64) - 1) <= _NEAR).all():
        raise InvalidBatchError(
            f"{title} has shape {positions} and rows that sum to 1, beside labels that are "
            "one-hot: pass y_true.argmax(axis=1) for rows of classes, or both columns as "
            ".reshape(-1) for rows of positions"
        )


def _class_last(values: Array) -> Array:
    return np.ascontiguousarray(np.moveaxis(values, 1, -1))


def _reshaped(column: Column, shape: tuple[int, ...]) -> Column:
    nulls = None if column.nulls is None else column.nulls.reshape(shape)
    return Column(column.values.reshape(shape), nulls, column.owned, column.vocabulary)


WEIGHT = "sample_weight"

MAX_NDIM = 32  # of a column before it is brought to rows
_FLOAT64 = np.dtype(np.float64)
_INTEGERS = "?bBhHiIlq"
_LONG = frozenset(c for c in np.typecodes["AllInteger"] if np.dtype(c).itemsize == 8)


@dataclass(slots=True)  # never changed, but a frozen one is three times as slow to make
class Numeric:
    """A column as float64: ``nan`` where it is null, and then its extent is ``nan`` as well."""

    values: Floats
    low: float
    high: float
    residual: Floats | None  # what float64 cannot hold of integers, mostly nothing


class Batch:
    """The columns of one update by their canonical names, each converted at first use.

    Columns of at most `copied` rows are copied before they are looked at, so that they may be kept.

    `renamed` maps canonical names (``"y_true"``) to the user's (``"label"``); errors speak of the
    user's. Conversions are kept, so that statistics which read one column share them.
    """

    __slots__ = (
        "_columns",
        "_grids",
        "_positions",
        "_raw",
        "_renamed",
        "_views",
        "copied",
        "known",
        "n_rows",
    )

    def __init__(
        self,
        raw: Mapping[str, object],
        renamed: Mapping[str, str] | None = None,
        copied: int = 0,
    ) -> None:
        self.copied = copied
        self.n_rows = -1  # until a column is converted
        self._positions: tuple[int, ...] = ()  # the shape of labels that are (B, T...)
        self._raw = raw
        self._renamed = renamed or {}
        self._columns: dict[str, Column] = {}
        self._grids: dict[str, tuple[int, ...]] = {}  # shapes (n, L) like that of the labels
        self.known: dict[str, Numeric] = {}  # columns that were read as numbers
        self._views: dict[tuple[str, ...], Batch] = {}  # as several models name the columns

    def title(self, name: str) -> str:
        """Return the user's name of a column."""
        return self._renamed.get(name, name)

    def has(self, name: str) -> bool:
        """Whether the column was given; an input that may be left out is ``None`` or absent."""
        return self._raw.get(self._renamed.get(name, name)) is not None

    def column(self, name: str) -> Column:
        """Return a column, converted; all columns of a batch have as many rows."""
        title = self._renamed.get(name, name)
        column = self._columns.get(title)
        if column is not None:
            return column
        value = self._raw.get(title)
        if value is None:
            given = ", ".join(k for k, v in self._raw.items() if v is not None)
            raise InvalidBatchError(
                f"no column {title!r}{f' (for {name})' if name != title else ''}; "
                f"there are: {given or 'none'}"
            )
        column = as_column(value, title, max_ndim=MAX_NDIM, copied=self.copied)
        values = column.values
        if values.ndim == 1 and column.owned and len(values) == self.n_rows and not self._positions:
            self._columns[title] = column
            return column
        return self._keep(title, column)

    def _keep(self, title: str, column: Column) -> Column:
        if not column.owned and len(column.values) <= self.copied:
            column = column.copy()
        if column.values.ndim > 1 or self._positions:
            if self._columns and title != self.title(WEIGHT):
                labels = next(iter(self._columns.values()))  # which `spread` has kept first
                refuse_one_hot(labels, column, self._positions, title)
                if column.values.shape == self._positions and column.values.ndim == 2:
                    self._grids[title] = self._positions
            column = by_row(column, self._positions, title)
        n_rows = len(column.values)
        if n_rows != self.n_rows:
            if self.n_rows >= 0:
                first = next(iter(self._columns))
                raise InvalidBatchError(
                    f"columns differ in length: {first} has {self.n_rows} rows, "
                    f"{title} has {n_rows}"
                )
            self.n_rows = n_rows
        self._columns[title] = column
        return column

    def spread(self, name: str) -> None:
        """Give each position of a column of labels a row, where they are (B, T...)."""
        title = self._renamed.get(name, name)
        value = self._raw.get(title)
        if value is not None:  # else there is an error to come
            column = as_column(value, title, max_ndim=MAX_NDIM, copied=self.copied)
            if column.values.ndim > 1 and column.values.shape[1:] != (1,):
                self._positions = column.values.shape
            self._keep(title, column)

    def mark(self, name: str, labels: tuple[ClassLabel, ...] | None) -> None:
        """Bring a column of sets of labels, if it is such, to indicators of them."""
        title = self._renamed.get(name, name)
        rows = as_sets(self._raw.get(title)) if title not in self._columns else None
        if rows is not None:
            self._keep(title, marked(rows, labels, title))

    def grid(self, name: str) -> tuple[int, ...]:
        """Return the shape (n, L) that a column and the labels came in, empty for any other."""
        return self._grids.get(self.title(name), ())

    def nest(self, name: str, each: str) -> None:
        """Read a column whose rows hold several values, of which each row is a list."""
        title = self._renamed.get(name, name)
        value = self._raw.get(title)
        if value is not None and title not in self._columns:
            column = as_nested(value, title, each)
            self._keep(title, column.copy() if len(column.values) <= self.copied else column)

    @property
    def bulk(self) -> int:
        """How many rows there are, or where these hold several values how many of those."""
        lists = [c.flat for c in self._columns.values() if isinstance(c, Nested)]
        return max([self.n_rows, *map(len, lists)])

    def slice(self, start: int, stop: int) -> Batch:
        """Return rows ``start`` to ``stop`` of the columns converted so far."""
        part = Batch(self._raw, self._renamed)
        part.n_rows = min(stop, self.n_rows) - start
        part._columns = {title: col[start:stop] for title, col in self._columns.items()}
        return part

    def aliased(self, names: Mapping[str, str]) -> Batch:
        """Return the batch with names for other inputs of it; columns are converted once for both.

        Who reads it brings its `n_rows` back, as they are known when a column is converted.
        """
        key = tuple(names.values())
        view = self._views.get(key)
        if view is None:
            titles = {name: self.title(other) for name, other in names.items()}
            view = self._views[key] = Batch(self._raw, {**self._renamed, **titles}, self.copied)
            view._columns, view._positions = self._columns, self._positions
            view._grids = self._grids
        view.n_rows = self.n_rows
        return view

    def numbers(self, name: str) -> Floats:
        """Return a column as contiguous float64 with ``nan`` where it is null.

        Integers beyond 2**53 are rounded to the nearest: `residual` is what is left of them.
        """
        return self.numeric(name).values

    def numeric(self, name: str) -> Numeric:
        """Return a column as numbers, and what there is to know of them."""
        found = self.known.get(name)
        if found is not None:
            return found
        column = self.column(name)
        values, residual = column.values, None
        if column.vocabulary is not None:
            title = self.title(name)
            raise InvalidBatchError(f"{title} holds text; numbers are needed", title)
        if (kind := values.dtype.char) != "d":
            values = values.astype(_FLOAT64)
        if column.nulls is not None:
            values = np.where(column.nulls, math.nan, values)
        low, high = kernels.extent(values)
        if kind in _LONG:
            residual = _residual(column, values, (low, high))
        found = self.known[name] = Numeric(values, low, high, residual)
        return found

    def floats(self, name: str) -> Numeric | None:
        """Return a column that comes as one array (n,) of floats; ``None`` for any other."""
        value = self._raw.get(self._renamed.get(name, name))
        if type(value) is not np.ndarray or value.ndim != 1 or value.dtype.char not in "df":
            return None
        if len(value) > tuning.BATCH_ROWS:  # some of them are read at a time
            return None
        try:
            values = value.astype(_FLOAT64, copy=len(value) <= self.copied)
            low, high = kernels.extent(values)
        except BufferError:  # not contiguous
            return None
        found = self.known[name] = Numeric(values, low, high, None)
        return found

    def integers(self, name: str) -> Array | None:
        """Return a column that comes as one array (n,) of integers; ``None`` for any other."""
        value = self._raw.get(self._renamed.get(name, name))
        if type(value) is not np.ndarray or value.ndim != 1 or value.dtype.char not in _INTEGERS:
            return None
        return value if value.flags.carray and value.dtype.isnative else None

    def residual(self, name: str) -> Floats | None:
        """Return what float64 cannot hold of the integers of a column, mostly ``None``: nothing.

        The values of the column are exactly ``numbers(name) + residual(name)``. The residual is 0
        where a row is null.
        """
        return self.numeric(name).residual

    def refuse_long(self, name: str, what: str) -> None:
        """Raise where float64 cannot hold an integer of a column."""
        residual = self.residual(name)
        if residual is not None:
            wrong = residual != 0
            first = np.argwhere(wrong)[0]
            count = int(np.count_nonzero(wrong))
            value = self.column(name).values[tuple(first)]
            raise InvalidBatchError(
                f"{self.title(name)} holds integers beyond 2**53 that float64 cannot hold, in "
                f"{count} value{'s' * (count != 1)}, first in row {first[0]} ({value}); {what} "
                "would round them: subtract an offset or divide, so that they fit",
                self.title(name),
                int(first[0]),
            )

    def extent(self, name: str) -> tuple[float, float]:
        """Return the smallest and the largest number of a column, ``nan`` where it holds one."""
        numbers = self.numeric(name)
        return numbers.low, numbers.high

    def plain(self, name: str, kinds: str) -> Array | None:
        """Return a column that is one array (n,) of these kinds as it is; ``None`` for others."""
        column = self.column(name)
        values = column.values
        if column.nulls is not None or column.vocabulary is not None or self.grid(name):
            return None
        return values if values.ndim == 1 and values.dtype.kind in kinds else None

    def weight(self) -> Floats | None:
        """Return the weights, not yet validated; ``None`` where every row weighs one."""
        if self._raw.get(self._renamed.get(WEIGHT, WEIGHT)) is None:
            return None
        weight = self.numbers(WEIGHT)
        if weight.ndim != 1:
            raise InvalidBatchError(f"{self.title(WEIGHT)} has {weight.ndim} dimensions, not one")
        self.refuse_long(WEIGHT, "a weight is one float64, which")
        return weight


def _residual(column: Column, head: Floats, limits: tuple[float, float]) -> Floats | None:
    values = column.values
    low, high = limits if column.nulls is None else extent(values)
    if low > -EXACT and high < EXACT:
        return None
    # Both halves of 64 bits are exact, and so is what the rounding of their sum leaves.
    upper = (values >> 32).astype(np.float64) * 2.0**32
    lower = (values & values.dtype.type(0xFFFFFFFF)).astype(np.float64)
    residual: Floats = lower - (head - upper)
    if column.nulls is not None:
        residual[column.nulls] = 0.0
    return residual if residual.any() else None
