"""One update's columns: named, converted once, and sliced into blocks that stay in cache."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.columns.conversion import Column, as_column
from streammetrics.core.errors import InvalidBatchError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

WEIGHT = "sample_weight"

_FLOAT64 = np.dtype(np.float64)
_SHORT = 1024


class Batch:
    """The columns of one update by their canonical names, each converted at first use.

    `renamed` maps canonical names (``"y_true"``) to the user's (``"label"``); errors speak of the
    user's. Conversions are kept, so that statistics which read one column share them.
    """

    __slots__ = ("_columns", "_extents", "_numbers", "_raw", "_renamed", "n_rows")

    def __init__(self, raw: Mapping[str, Any], renamed: Mapping[str, str] | None = None) -> None:
        self.n_rows = -1  # until a column is converted
        self._raw = raw
        self._renamed = renamed or {}
        self._columns: dict[str, Column] = {}
        self._numbers: dict[str, NDArray[np.float64]] = {}
        self._extents: dict[str, tuple[float, float]] = {}

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
        if column is None:
            value = self._raw.get(title)
            if value is None:
                raise InvalidBatchError(
                    f"no column {title!r}{f' (for {name})' if name != title else ''}; "
                    f"there are: {', '.join(k for k, v in self._raw.items() if v is not None)}"
                )
            column = as_column(value, title)
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

    def slice(self, start: int, stop: int) -> Batch:
        """Return rows ``start`` to ``stop`` of the columns converted so far."""
        part = Batch(self._raw, self._renamed)
        part.n_rows = min(stop, self.n_rows) - start
        part._columns = {title: col[start:stop] for title, col in self._columns.items()}
        return part

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Return a column as contiguous float64 with ``nan`` where it is null."""
        values = self._numbers.get(name)
        if values is None:
            column = self.column(name)
            values = column.values
            if values.dtype != _FLOAT64 or column.nulls is not None:
                values = _to_float(column, self.title(name))
            self._numbers[name] = values
        return values

    def extent(self, name: str) -> tuple[float, float]:
        """Return the smallest and the largest number of a column, ``nan`` where it holds one."""
        found = self._extents.get(name)
        if found is None:
            found = self._extents[name] = extent(self.numbers(name))
        return found

    def weight(self) -> NDArray[np.float64] | None:
        """Return the weights, not yet validated; ``None`` where every row weighs one."""
        if self._raw.get(self._renamed.get(WEIGHT, WEIGHT)) is None:
            return None
        weight = self.numbers(WEIGHT)
        if weight.ndim != 1:
            raise InvalidBatchError(f"{self.title(WEIGHT)} has {weight.ndim} dimensions, not one")
        return weight


def _to_float(column: Column, title: str) -> NDArray[np.float64]:
    if column.vocabulary is not None:
        raise InvalidBatchError(f"{title} holds text; numbers are needed")
    values = column.values.astype(np.float64)
    if column.nulls is not None:
        values[column.nulls] = math.nan
    return values


def has_nan(values: NDArray[np.float64]) -> bool:
    """Whether a value is nan; infinities are none."""
    flat = values if values.ndim == 1 else values.reshape(-1)
    if flat.size == 0:
        return False
    # A nan is the largest value to argmax, which is cheaper to call; minimum is cheaper a value.
    return math.isnan(flat[flat.argmax()] if flat.size <= _SHORT else np.minimum.reduce(flat))


def extent(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return minimum and maximum, both ``nan`` where a value is; ``(inf, -inf)`` of nothing."""
    if values.size == 0:
        return math.inf, -math.inf
    flat = values.reshape(-1)
    return float(np.minimum.reduce(flat)), float(np.maximum.reduce(flat))
