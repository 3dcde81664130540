"""Tables of results, and their conversion to data frames, CSV, Markdown, LaTeX, HTML and text."""

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

    Column = Sequence[object] | Array

Library = Literal["pandas", "polars"]

_SHOWN = 30  # most rows and columns shown in a notebook or as text


@dataclass(frozen=True)
class Table:
    """Columns of equal length: labels of the rows (`index`), and values (`columns`)."""

    index: Mapping[str, Column]
    columns: Mapping[Any, Column]
    across: str | None = None  # what the column titles stand for, such as "predicted"

    def __len__(self) -> int:
        return max(map(len, chain(self.index.values(), self.columns.values())), default=0)

    def frame(self, library: Library) -> Foreign:
        """Return the table as a pandas or polars data frame."""
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
        """Return the table as CSV, with numbers in full precision and NaN as an empty field."""
        rows = chain([self._titles()], self._cells())
        return csv_text([_full(cell) for cell in row] for row in rows)

    def markdown(self) -> str:
        """Return the table as Markdown."""
        rule = [":--" if left else "--:" for left in self._left()]
        rows = [list(map(str, self._titles())), rule, *(map(shown, row) for row in self._cells())]
        first, second, *rest = ([plain_text(cell) for cell in row] for row in rows)
        return "".join(f"| {' | '.join(row)} |\n" for row in (first, second, *rest))

    def latex(self) -> str:
        """Return the table as a LaTeX tabular with the rules of booktabs."""
        form = "".join("l" if left else "r" for left in self._left())
        head, *lines = (
            " & ".join(_tex(cell) for cell in row) + r" \\"
            for row in (map(str, self._titles()), *(map(shown, row) for row in self._cells()))
        )
        inside = [r"\toprule", head, r"\midrule", *lines, r"\bottomrule"]
        return "\n".join([rf"\begin{{tabular}}{{{form}}}", *inside, r"\end{tabular}"]) + "\n"

    def _left(self) -> list[bool]:
        """Return which columns are left-aligned: labels, and text."""
        texts = [any(isinstance(x, str) for x in column) for column in self.columns.values()]
        return [True] * len(self.index) + texts

    def _titles(self) -> list[object]:
        return [*self.index, *self.columns]

    def _cells(self) -> Iterable[list[object]]:
        every = [*self.index.values(), *self.columns.values()]
        return ([column[at] for column in every] for at in range(len(self)))

    def html(self) -> str:
        """Return the table as escaped HTML, truncated to a limited number of rows and columns."""
        columns = list(self.columns.items())
        titles = [*self.index, *(title for title, _ in columns[:_SHOWN])]
        shown = [*self.index.values(), *(values for _, values in columns[:_SHOWN])]
        rows: list[list[object]] = [[values[at] for values in shown] for at in self._rows()]
        if len(columns) > _SHOWN:
            titles.append(f"{len(columns) - _SHOWN:,} more")
            rows = [[*row, "..."] for row in rows]
        lines = [_line("th", titles), *(_line("td", row) for row in rows)]
        if len(self) > _SHOWN:
            lines.append(_line("td", [f"{len(self) - _SHOWN:,} more rows"]))
        return f"<table>{''.join(lines)}</table>"

    def text(self) -> str:
        """Return the table as lines of text, truncated to a limited number of rows."""
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
    # Titles may be of any type, and a frame without columns keeps its rows.
    frame = pandas.DataFrame(dict(enumerate(table.columns.values())), index=index)
    frame.columns = pandas.Index(list(table.columns), name=table.across)
    return frame


def _polars(polars: Foreign, table: Table) -> object:
    columns = chain(table.index.items(), table.columns.items())
    return polars.DataFrame([polars.Series(str(name), values) for name, values in columns])


def _line(tag: str, cells: Iterable[object]) -> str:
    inside = "".join(f"<{tag}>{escape(shown(cell))}</{tag}>" for cell in cells)
    return f"<tr>{inside}</tr>"


# Characters that break a line, control a terminal or reverse the direction of text.
_CONTROLS = {
    code: ascii(chr(code))[1:-1]
    for codes in ((0x0, 0x20), (0x7F, 0xA0), (0x2028, 0x202F), (0x2066, 0x206A))
    for code in range(*codes)
}


def printable(text: str) -> str:
    r"""Return text as one line without control characters: a line break becomes ``\n``."""
    return text if text.isprintable() else text.translate(_CONTROLS)


def aligned(rows: Sequence[Sequence[str]], text: Container[int]) -> str:
    """Align rows of cells, header first, in columns; columns in `text` are left-aligned."""
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
    """Format a value in a few characters."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"{value:,}" if type(value) is int else str(value)


def _full(value: object) -> object:
    plain = value.item() if isinstance(value, np.generic) else value
    return "" if plain is None or (isinstance(plain, float) and math.isnan(plain)) else plain


# Characters with a meaning in Markdown. Underscores within words, and ampersands that begin no
# entity, are plain; most dialects turn a bare address into a link.
_MARKED = re.compile(
    r"[\\`*\[\]|~]|(?<![^\W_])_|_(?![^\W_])|(?<=:)/(?=/)|(?<=www)\.", re.IGNORECASE
)
_ENTITY = re.compile(r"&(?=#?\w+;)")


def plain_text(text: str) -> str:
    """Escape text so that Markdown shows it literally, in a table cell or elsewhere."""
    text = _MARKED.sub(r"\\\g<0>", printable(text))
    return _ENTITY.sub("&amp;", text).replace("<", "&lt;")


_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_EMPTY = '""'  # for a line of one empty field, which readers would skip
_QUOTED = re.compile(r'[",\r\n]')


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """Return rows as CSV, with numbers in full precision; None becomes an empty field.

    Text that a spreadsheet would read as a formula is prefixed with an apostrophe; numbers are not.
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
