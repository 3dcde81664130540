"""Results as a table: a data frame, or HTML for notebooks."""

from __future__ import annotations

import importlib
import math
import re
from dataclasses import dataclass
from html import escape
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from streammetrics.core.types import Array, Foreign

    Column = Sequence[Any] | Array

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

    def frame(self, library: Library) -> Foreign:
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

    def csv(self) -> str:
        """Return the table as CSV, numbers in full precision and ``nan`` an empty field."""
        rows = chain([self._titles()], self._cells())
        return csv_text([_full(cell) for cell in row] for row in rows)

    def markdown(self) -> str:
        """Return the table as Markdown."""
        rule = [":--" if left else "--:" for left in self._left()]
        rows = [list(map(str, self._titles())), rule, *(map(shown, row) for row in self._cells())]
        first, second, *rest = ([plain_text(cell) for cell in row] for row in rows)
        return "".join(f"| {' | '.join(row)} |\n" for row in (first, second, *rest))

    def latex(self) -> str:
        """Return the table as a LaTeX tabular, with the rules of booktabs."""
        form = "".join("l" if left else "r" for left in self._left())
        head, *lines = (
            " & ".join(_tex(cell) for cell in row) + r" \\"
            for row in (map(str, self._titles()), *(map(shown, row) for row in self._cells()))
        )
        inside = [r"\toprule", head, r"\midrule", *lines, r"\bottomrule"]
        return "\n".join([rf"\begin{{tabular}}{{{form}}}", *inside, r"\end{tabular}"]) + "\n"

    def _left(self) -> list[bool]:
        """Return which columns begin at the left: what rows are of, and text."""
        texts = [any(isinstance(x, str) for x in column) for column in self.columns.values()]
        return [True] * len(self.index) + texts

    def _titles(self) -> list[object]:
        return [*self.index, *self.columns]

    def _cells(self) -> Iterable[list[object]]:
        every = [*self.index.values(), *self.columns.values()]
        return ([column[at] for column in every] for at in range(len(self)))

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

    def text(self) -> str:
        """Return the table as lines of text, cut short where it has many rows."""
        columns = {**self.index, **{str(title): each for title, each in self.columns.items()}}
        rows = self._rows()
        cells = [
            [title, *(shown(each[at]) for at in self._rows())] for title, each in columns.items()
        ]
        left = {
            place
            for place, each in enumerate(columns.values())
            if any(isinstance(each[at], str) for at in rows)
        }
        more = f"\n{len(self) - _SHOWN:,} more rows" if len(self) > _SHOWN else ""
        return aligned(list(zip(*cells, strict=True)), left) + more

    def _rows(self) -> range:
        return range(min(len(self), _SHOWN))


def _pandas(pandas: Foreign, table: Table) -> object:
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


def _polars(polars: Foreign, table: Table) -> object:
    columns = chain(table.index.items(), table.columns.items())
    return polars.DataFrame([polars.Series(str(name), values) for name, values in columns])


def _line(tag: str, cells: Iterable[object]) -> str:
    inside = "".join(f"<{tag}>{escape(shown(cell))}</{tag}>" for cell in cells)
    return f"<tr>{inside}</tr>"


# What would break a line, command a terminal, or show a text in another order than it has.
_CONTROLS = {
    code: ascii(chr(code))[1:-1]
    for codes in ((0x0, 0x20), (0x7F, 0xA0), (0x2028, 0x202F), (0x2066, 0x206A))
    for code in range(*codes)
}


def printable(text: str) -> str:
    r"""Return a text as one line that no terminal obeys: a line break is the two signs ``\n``."""
    return text if text.isprintable() else text.translate(_CONTROLS)


def aligned(rows: Sequence[Sequence[str]], text: Container[int]) -> str:
    """Return rows of cells, a header first, one below the other; those of `text` begin left."""
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(
            cell.ljust(width) if at in text else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)


def shown(value: object) -> str:
    """Return a value in a few characters."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"{value:,}" if type(value) is int else str(value)


def _full(value: object) -> object:
    plain = value.item() if isinstance(value, np.generic) else value
    return "" if plain is None or (isinstance(plain, float) and math.isnan(plain)) else plain


# What Markdown reads as more than itself: an underscore within a word, or an ampersand that begins
# no entity, is plain; an address without brackets is a link in most dialects.
_MARKED = re.compile(
    r"[\\`*\[\]|~]|(?<![^\W_])_|_(?![^\W_])|(?<=:)/(?=/)|(?<=www)\.", re.IGNORECASE
)
_ENTITY = re.compile(r"&(?=#?\w+;)")


def plain_text(text: str) -> str:
    """Return a text so that Markdown, in a table's cell or elsewhere, shows it as it is."""
    text = _MARKED.sub(r"\\\g<0>", printable(text))
    return _ENTITY.sub("&amp;", text).replace("<", "&lt;")


_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_EMPTY = '""'  # a field that is alone in its line, which would be skipped
_QUOTED = re.compile(r'[",\r\n]')


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """Return rows as CSV; the numbers are in full, and what is None is empty.

    Text that a spreadsheet would take for a formula gets an apostrophe before it; numbers do not.
    """
    lines = (",".join(map(_csv_cell, row)) for row in rows)
    return "".join(f"{line or _EMPTY}\n" for line in lines)


def _csv_cell(value: object) -> str:
    text = "" if value is None else str(value)
    if text.startswith(_FORMULA) and not _is_number(text):
        text = f"'{text}"
    return '"' + text.replace('"', '""') + '"' if _QUOTED.search(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


_TEX = {character: "\\" + character for character in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}


def _tex(text: str) -> str:
    return "".join(_TEX.get(character, character) for character in printable(text))
