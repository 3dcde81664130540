"""Results as a table: a data frame, or HTML for notebooks."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from html import escape
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    Column = Sequence[Any] | NDArray[Any]

Library = Literal["pandas", "polars"]

_SHOWN = 30  # rows, and columns, of a table in a notebook


@dataclass(frozen=True)
class Table:
    """Columns of equal length: those that say what a row is of, and the values."""

    index: Mapping[str, Column]
    columns: Mapping[Any, Column]
    across: str | None = None  # what the titles of the columns are: the predicted classes, say

    def __len__(self) -> int:
        return max(map(len, chain(self.index.values(), self.columns.values())), default=0)

    def frame(self, library: Library) -> Any:
        """Return the table as a data frame of a library."""
        if library not in {"pandas", "polars"}:
            raise ValueError(f"to_frame({library!r}): expected 'pandas' or 'polars'")
        try:
            frames = importlib.import_module(library)
        except ImportError as error:
            other = "polars" if library == "pandas" else "pandas"
            raise ImportError(
                f"to_frame() needs {library}: pip install {library}, or ask for "
                f"to_frame({other!r}) or to_dict()"
            ) from error
        return _polars(frames, self) if library == "polars" else _pandas(frames, self)

    def html(self) -> str:
        """Return the table as HTML, cut short where it is long; all text is escaped."""
        columns = list(self.columns.items())
        titles = [*self.index, *(title for title, _ in columns[:_SHOWN])]
        shown = [*self.index.values(), *(values for _, values in columns[:_SHOWN])]
        rows: list[list[Any]] = [[values[at] for values in shown] for at in self._rows()]
        if len(columns) > _SHOWN:
            titles.append(f"{len(columns) - _SHOWN:,} more")
            rows = [[*row, "..."] for row in rows]
        lines = [_line("th", titles), *(_line("td", row) for row in rows)]
        if len(self) > _SHOWN:
            lines.append(_line("td", [f"{len(self) - _SHOWN:,} more rows"]))
        return f"<table>{''.join(lines)}</table>"

    def _rows(self) -> range:
        return range(min(len(self), _SHOWN))


def _pandas(pandas: Any, table: Table) -> Any:
    index = None
    if len(table.index) == 1:
        ((name, values),) = table.index.items()
        index = pandas.Index(list(values), name=name)
    elif table.index:
        names = list(table.index)
        index = pandas.MultiIndex.from_arrays(list(map(list, table.index.values())), names=names)
    # Titles may be of any kind, and a frame of no columns still has its rows.
    frame = pandas.DataFrame(dict(enumerate(table.columns.values())), index=index)
    frame.columns = pandas.Index(list(table.columns), name=table.across)
    return frame


def _polars(polars: Any, table: Table) -> Any:
    columns = chain(table.index.items(), table.columns.items())
    return polars.DataFrame([polars.Series(str(name), values) for name, values in columns])


def _line(tag: str, cells: Iterable[Any]) -> str:
    inside = "".join(f"<{tag}>{escape(shown(cell))}</{tag}>" for cell in cells)
    return f"<tr>{inside}</tr>"


def shown(value: Any) -> str:
    """Return a value in a few characters."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"{value:,}" if type(value) is int else str(value)
