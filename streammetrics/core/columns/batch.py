"""Batches: the named columns of one update, and the tables they come from."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy import iterable

from streammetrics.core import tuning
from streammetrics.core.columns.column import EXACT, Column
from streammetrics.core.columns.conversion import as_column
from streammetrics.core.columns.nested import Nested, as_nested
from streammetrics.core.columns.objects import as_objects, as_sets, marked, objects_in
from streammetrics.core.counting import extent
from streammetrics.core.errors import InvalidBatchError, an
from streammetrics.core.kernels import kernels

if TYPE_CHECKING:
    from collections.abc import Collection

    from streammetrics.core.columns.objects import Preparation
    from streammetrics.core.types import Array, ClassLabel, Floats, Foreign, Places


_LISTED = 20


def natural(text: str) -> list[object]:
    """Return a sort key that orders p2 before p10."""
    return [int(part) if part.isdigit() else part for part in re.split(r"([0-9]+)", text)]


def meant(name: str, names: Iterable[str]) -> str:
    """Return "; did you mean ...?" with the `names` closest to `name`, or an empty string."""
    by_lower = {known.lower(): known for known in names if isinstance(known, str)}
    close = difflib.get_close_matches(name.lower(), by_lower, n=3, cutoff=0.6)
    if not close:
        return ""
    return f"; did you mean {' or '.join(repr(by_lower[key]) for key in close)}?"


def near(name: str, names: Iterable[str], what: str = "there are") -> str:
    """Return the end of an error message: close matches of `name`, then the available names."""
    names = list(names)
    text = meant(name, names)
    if not names:
        return f"{text}; {what} none"
    return f"{text or ';'} {what[:1].upper() + what[1:] if text else what}: {_some(names)}"


def as_renamed(columns: object) -> dict[str, str]:
    """Validate the mapping from input to user column; a list of columns becomes one text."""
    if not isinstance(columns, Mapping) or not all(isinstance(name, str) for name in columns):
        raise TypeError(
            f"columns={columns!r}: expected a dictionary from an input's name to your column, such "
            "as {'y_true': 'label', 'y_score': 'score'}"
        )
    return {name: as_text(asked) for name, asked in columns.items()}


def as_text(columns: str | Sequence[str]) -> str:
    """Return a column name as it is, and a list of names joined by commas."""
    if isinstance(columns, str):
        return columns
    if not iterable(columns) or not all(isinstance(name, str) for name in columns):
        raise TypeError(
            f"{columns!r} is not a column: expected its name, or a list of names; where these are "
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
    """Split ``"p0,p1"`` into its names."""
    return [part.strip() for part in text.split(",")]


def check_single(wanted: Iterable[str], names: Sequence[str], where: str = "") -> None:
    """Raise if one of the `wanted` columns occurs more than once among `names`."""
    if len(set(names)) == len(names):
        return
    for name in wanted:
        if (count := names.count(name)) > 1:
            raise InvalidBatchError(
                f"{where}{count} columns are called {name!r}: rename them, so that it is said "
                "which one is read"
            )


def asks_for(text: str, name: str) -> bool:
    """Whether `text` (a name, a comma-separated list or a glob) may refer to the column `name`."""
    return name == text or name in listed(text) or (is_glob(text) and fnmatchcase(name, text))


def is_several(text: str) -> bool:
    """Whether `text` may refer to several columns: it is a list or a glob."""
    return "," in text or is_glob(text)


def is_glob(text: str) -> bool:
    """Whether `text` contains a wildcard."""
    return "*" in text or "?" in text or "[" in text


def parted(
    text: str, names: Sequence[str], taken: Collection[str], where: str = ""
) -> tuple[str, ...]:
    """Resolve `text` (a column name, a comma-separated list or a glob) to column names.

    A glob skips the names in `taken`. Its matches are in natural order: p2 before p10.

    Raises:
        InvalidBatchError: A column does not exist, nothing matches, or a glob matches both numbered
            and other columns. The message begins with `where`.
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
    """Raise if a glob matches both numbered columns (p0, p1) and others (``predicted``)."""
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
    """A table that is read batch by batch.

    Attributes:
        names: The column names.
        batches: Returns the batches, restricted to the given columns.

    """

    names: list[str]
    batches: Callable[[list[str]], Iterable[Foreign]]


_NAMES = ("column_names", "columns", "keys")  # Arrow tables, data frames, mappings


def is_table(what: object) -> bool:
    """Whether `what` has named columns, or is a stream of batches that do."""
    return is_stream(what) or any(hasattr(what, attribute) for attribute in _NAMES)


def is_stream(what: object) -> bool:
    """Whether `streamed` accepts `what`; nothing is read from it."""
    if isinstance(what, Mapping):
        return False
    each = ("collect_schema", "collect"), ("scanner", "to_batches"), ("project", "fetchall")
    return hasattr(what, "read_next_batch") or (
        not hasattr(what, "get_columns")  # a polars DataFrame
        and any(hasattr(what, one) and hasattr(what, other) for one, other in each)
    )


def streamed(table: Foreign) -> BatchStream | None:
    """Return a stream over the batches of a table; ``None`` for a table that is held in memory.

    Streams are polars LazyFrames, Arrow Datasets and RecordBatchReaders, and DuckDB relations.
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
    import pyarrow as pa  # noqa: PLC0415 - optional: DuckDB exports its rows through Arrow

    def batches(names: list[str]) -> Foreign:
        return pa.RecordBatchReader.from_stream(table.project(_quoted(names)))

    return BatchStream(list(table.columns), batches)


def _narrowed(dataset: Foreign, names: Sequence[str]) -> Foreign:
    """Restrict an Arrow Dataset to `names`: it cannot be scanned if column names repeat."""
    schema = dataset.schema
    if len(set(schema.names)) == len(schema.names):
        return dataset
    import pyarrow as pa  # noqa: PLC0415 - optional: loaded only for Arrow datasets

    return dataset.replace_schema(pa.schema([schema.field(name) for name in names]))


def _quoted(names: Iterable[str]) -> str:
    return ", ".join('"' + name.replace('"', '""') + '"' for name in names)


def table_columns(table: object) -> list[str]:
    """Return the column names of any kind of table."""
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
    shape = getattr(table, "shape", None)  # pandas, polars and Arrow tables
    if shape is not None:
        return int(shape[0])
    if hasattr(table, "num_rows"):
        return int(table.num_rows)
    names = table_columns(table)
    if not names:
        raise InvalidBatchError("the table has no columns")
    column = table[names[0]]
    return len(column) if hasattr(column, "__len__") and not isinstance(column, str) else 1


_NEAR = 1e-2  # rounding error of a sum of half-precision probabilities


def by_row(column: Column, positions: tuple[int, ...], title: str) -> Column:
    """Reshape a column of two or more dimensions to (n,) or (n, d).

    `positions` is the shape (B, T...) of the labels; it is empty if the labels are (n,). Scores of
    shape (B, K, T...) become (B * T..., K).

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
        if math.prod(shape[2:]) == 1:  # scores (B, K, 1) of labels (B, 1)
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
    """Raise if labels (n, K) are one-hot and the other column holds rows of probabilities.

    Both would be read as n * K rows of two classes, which is almost never intended: labels of
    positions usually have a row with no 1 or several, or scores that do not sum to 1.
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
COUNTS = "counts"  # how many rows each row stands for

MAX_NDIM = 32  # dimensions accepted before `by_row` reshapes a column
_FLOAT64 = np.dtype(np.float64)
_INTEGERS = "?bBhHiIlq"
_LONG = frozenset(c for c in np.typecodes["AllInteger"] if np.dtype(c).itemsize == 8)


@dataclass(slots=True)  # not frozen, although never changed: creation would be three times slower
class Numeric:
    """A column as float64, with NaN for nulls; `low` and `high` are NaN if any value is."""

    values: Floats
    low: float
    high: float
    residual: Floats | None  # rounding error of integers, 0 of nulls; None if there is none


class Batch:
    """The columns of one update by canonical name, each converted at first use.

    Columns of at most `copied` rows are copied before they are validated, so that they can be kept.

    `renamed` maps canonical names (``"y_true"``) to the user's (``"label"``). Error messages use
    the user's names. Conversions are cached, so that statistics which read the same column share
    them.
    """

    __slots__ = (
        "_bits",
        "_columns",
        "_grids",
        "_positions",
        "_prepared",
        "_raw",
        "_renamed",
        "_views",
        "copied",
        "first",
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
        self.n_rows = -1  # unknown until a column is converted
        self.first = 0  # index of the first row in the batch this is a slice of
        self._positions: tuple[int, ...] = ()  # shape (B, T...) of the labels
        self._raw = raw
        self._renamed = renamed or {}
        self._columns: dict[str, Column] = {}
        self._grids: dict[str, tuple[int, ...]] = {}  # columns of the labels' shape (n, L)
        self.known: dict[str, Numeric] = {}  # columns already read as numbers
        self._bits: dict[str, tuple[Array, int, str]] = {}
        self._views: dict[tuple[str, ...], Batch] = {}  # aliased batches, one per renaming
        self._prepared: dict[Preparation, Batch] = {}

    def title(self, name: str) -> str:
        """Return the user's name of a column."""
        return self._renamed.get(name, name)

    def has(self, name: str) -> bool:
        """Whether the column was given; an optional input may be ``None`` or absent."""
        return self._raw.get(self._renamed.get(name, name)) is not None

    def column(self, name: str) -> Column:
        """Return a converted column; raise if it is missing or its length differs from others."""
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
                labels = next(iter(self._columns.values()))  # `spread` converts labels first
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
        """Convert a column of labels; if its shape is (B, T...), each position becomes a row."""
        title = self._renamed.get(name, name)
        value = self._raw.get(title)
        if value is not None:  # a missing column is reported when it is read
            column = as_column(value, title, max_ndim=MAX_NDIM, copied=self.copied)
            if column.values.ndim > 1 and column.values.shape[1:] != (1,):
                self._positions = column.values.shape
            self._keep(title, column)

    def mark(self, name: str, labels: tuple[ClassLabel, ...] | None) -> None:
        """Convert a column of label sets to indicators; leave any other column unconverted."""
        title = self._renamed.get(name, name)
        rows = as_sets(self._raw.get(title)) if title not in self._columns else None
        if rows is not None:
            self._keep(title, marked(rows, labels, title))

    def grid(self, name: str) -> tuple[int, ...]:
        """Return the shape (n, L) if this column and the labels both have it, else ``()``."""
        return self._grids.get(self.title(name), ()) if self._grids else ()

    def nest(self, name: str, each: str) -> None:
        """Convert a column whose rows are lists; `each` describes a list in error messages."""
        title = self._renamed.get(name, name)
        value = self._raw.get(title)
        if value is not None and title not in self._columns:
            column = as_nested(value, title, each)
            self._keep(title, column.copy() if len(column.values) <= self.copied else column)

    def keep_objects(self, name: str) -> None:
        """Keep the objects of a column for a preparation; text is converted at first use."""
        title = self._renamed.get(name, name)
        value = self._raw.get(title)
        if value is not None and title not in self._columns:
            objects = as_objects(value)
            if not set(map(type, objects.items)) <= {str}:
                self._keep(title, objects)

    def prepared(self, preparation: Preparation) -> Batch:
        """Return the columns that a preparation makes of others; it is called once."""
        found = self._prepared.get(preparation)
        if found is None:
            objects = [objects_in(self.column(name)) for name in preparation.names]
            found = Batch(preparation(*objects), copied=self.copied)
            for name in preparation.columns:
                found.column(name)
            if found.n_rows != self.n_rows:
                raise InvalidBatchError(
                    f"{preparation.title} made {found.n_rows} rows of {self.n_rows}; "
                    "return one for each"
                )
            self._prepared[preparation] = found
        return found

    @property
    def bulk(self) -> int:
        """The number of rows, or of list items if a nested column has more."""
        lists = [c.flat for c in self._columns.values() if isinstance(c, Nested)]
        return max([self.n_rows, *map(len, lists)])

    def slice(self, start: int, stop: int) -> Batch:
        """Return rows ``start`` to ``stop`` of the columns converted so far."""
        part = Batch(self._raw, self._renamed)
        part.n_rows, part.first = min(stop, self.n_rows) - start, start
        part._columns = {title: col[start:stop] for title, col in self._columns.items()}
        return part

    def take(self, rows: Places) -> Batch:
        """Return some rows of the columns converted so far."""
        part = Batch(self._raw, self._renamed)
        part.n_rows = len(rows)
        part._columns = {title: column[rows] for title, column in self._columns.items()}
        return part

    def aliased(self, names: Mapping[str, str]) -> Batch:
        """Return a view of the batch in which other inputs go by `names`; conversions are shared.

        The row count is known once a column is converted, so the caller must copy the view's
        `n_rows` back to this batch.
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
        """Return a column as contiguous float64, with NaN for nulls.

        Integers beyond 2**53 are rounded to the nearest float64; `numeric` has the rounding error.
        """
        return self.numeric(name).values

    def numeric(self, name: str) -> Numeric:
        """Return a column as float64 with its extent and residual; raise if it holds text."""
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
        """Return an array (n,) of float32 or float64 if it is contiguous, else ``None``."""
        if (found := self.known.get(name)) is not None:
            return found
        value = self._raw.get(self._renamed.get(name, name))
        if type(value) is not np.ndarray or value.ndim != 1 or value.dtype.char not in "df":
            return None
        if len(value) > tuning.BATCH_ROWS:  # larger batches are read in slices
            return None
        try:
            values = value.astype(_FLOAT64, copy=len(value) <= self.copied)
            low, high = kernels.extent(values)
        except BufferError:  # not contiguous
            return None
        found = self.known[name] = Numeric(values, low, high, None)
        return found

    def bits(self, name: str) -> tuple[Array, int, str] | None:
        """Return a contiguous array (n,) of integers 0 and 1 as uint8, else ``None``.

        Also returns how many are 1, and the kind of the integers.
        """
        if (found := self._bits.get(name)) is not None:
            return found
        value = self._raw.get(self._renamed.get(name, name))
        if type(value) is not np.ndarray or value.ndim != 1 or value.dtype.char not in _INTEGERS:
            return None
        if not (value.flags.carray and value.dtype.isnative):
            return None
        codes = np.empty(len(value), np.uint8)
        ones = kernels.bits(codes, value)
        if ones < 0:
            return None
        found = self._bits[name] = (codes, ones, value.dtype.kind)
        return found

    def refuse_long(self, name: str, what: str) -> None:
        """Raise if float64 cannot represent an integer of a column exactly."""
        residual = self.numeric(name).residual
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
        """Return the smallest and the largest number of a column, both NaN if any value is NaN."""
        numbers = self.numeric(name)
        return numbers.low, numbers.high

    def plain(self, name: str, kinds: str) -> Array | None:
        """Return an array (n,) without nulls if its dtype kind is in `kinds`, else ``None``."""
        column = self.column(name)
        values = column.values
        if column.nulls is not None or column.vocabulary is not None or self.grid(name):
            return None
        return values if values.ndim == 1 and values.dtype.kind in kinds else None

    def weight(self) -> Floats | None:
        """Return the weights before validation; ``None`` if no weights were given."""
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
    # Both 32-bit halves are exact in float64, and so is the rounding error of their sum.
    upper = (values >> 32).astype(np.float64) * 2.0**32
    lower = (values & values.dtype.type(0xFFFFFFFF)).astype(np.float64)
    residual: Floats = lower - (head - upper)
    if column.nulls is not None:
        residual[column.nulls] = 0.0
    return residual if residual.any() else None
