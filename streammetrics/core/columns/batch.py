"""One update's columns: named, converted once, and sliced into blocks that stay in cache."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.columns.column import EXACT
from streammetrics.core.columns.conversion import Column, as_column
from streammetrics.core.columns.nested import Nested, as_nested
from streammetrics.core.columns.positions import by_row, refuse_one_hot
from streammetrics.core.columns.sets import as_sets, marked
from streammetrics.core.counting import extent
from streammetrics.core.errors import InvalidBatchError
from streammetrics.core.kernels import kernels

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streammetrics.core.types import Array, ClassLabel, Floats

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
            raise InvalidBatchError(
                f"no column {title!r}{f' (for {name})' if name != title else ''}; "
                f"there are: {', '.join(k for k, v in self._raw.items() if v is not None)}"
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
