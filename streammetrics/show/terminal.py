"""Values on a terminal: tables a person can read, however wide it is."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console

from streammetrics.core.results.table import printable
from streammetrics.show.grids import DETAIL, grids, is_exact

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from streammetrics.show.grids import Grid
    from streammetrics.show.report import ModelReports

_ELSEWHERE = ("files", "left_out")  # what is too long for a line, or on standard error already
_WIDE = 10_000  # columns of a console that is no terminal, so that no line is broken
_GAP = 2  # blanks between two columns


def console(*, stderr: bool = False) -> Console:
    """Return a console that is plain where it is no terminal, and then breaks no line."""
    stream = (sys.stderr if stderr else sys.stdout) or io.StringIO()  # None where it is closed
    found = Console(file=stream, highlight=False, markup=False, emoji=False)
    return found if found.is_terminal else Console(
        file=stream, highlight=False, markup=False, emoji=False, width=_WIDE
    )  # fmt: skip


def as_text(results: ModelReports) -> str:
    """Return the tables, the rows seen, and the notes, as this terminal shows them."""
    out, text = _sheet()
    _print(results, out)
    return text.getvalue()


def drawn(tables: Iterable[Grid]) -> str:
    """Return grids one below the other, as this terminal shows them."""
    out, text = _sheet()
    for place, grid in enumerate(tables):
        if place:
            out.print()
        _draw(grid, out)
    return text.getvalue()


def _sheet() -> tuple[Console, io.StringIO]:
    """Return a console that is as this terminal, and what is written to it."""
    like, text = console(), io.StringIO()
    return Console(
        file=text,
        force_terminal=like.is_terminal,
        color_system=like.color_system,  # type: ignore[arg-type]  # one of the names it takes
        width=like.width,
        highlight=False,
        markup=False,
        emoji=False,
    ), text


def _print(results: ModelReports, out: Console) -> None:
    told = {key: value for key, value in results.shared.items() if key not in _ELSEWHERE}
    about = [printable(f"{key}={_brief(value)}") for key, value in _flat(told)]
    if about:
        out.print("  ".join(about), style="dim")
    first, *rest = grids(results)
    _draw(first, out)
    if is_exact(results):
        out.print("every value is exact", style="dim")
    for note in results.notes:
        out.print(f"note: {printable(note)}", style="yellow")
    for grid in rest:
        out.print()
        _draw(grid, out)


def _draw(grid: Grid, out: Console) -> None:
    """Print a grid, in several tables where its columns do not fit side by side."""
    if grid.title:
        out.print(printable(grid.title), style="bold")
    columns = [
        tuple(map(printable, column)) for column in zip(grid.header, *grid.lines, strict=True)
    ]
    if _width(columns) > out.width:
        columns = [tuple(cell.partition(DETAIL)[0] for cell in column) for column in columns]
    sizes = [_width([column]) for column in columns]
    for places in _pages(sizes, out.width):
        padded = [_padded(columns[place], sizes[place], place in grid.texts) for place in places]
        header, *lines = (f"{'  '.join(cells)}".rstrip() for cells in zip(*padded, strict=True))
        out.print(header, style="bold", soft_wrap=True)
        if out.is_terminal:
            out.print("─" * (sum(sizes[place] + _GAP for place in places) - _GAP), style="dim")
        # All at once and as they are: there may be a million, of which each would be measured.
        out.out("\n".join(lines), highlight=False)
        if places[-1] < len(columns) - 1:
            out.print()


def _width(columns: Sequence[Sequence[str]]) -> int:
    return sum(max(map(cell_len, column)) + _GAP for column in columns) - _GAP


def _padded(column: Sequence[str], size: int, is_text: bool) -> list[str]:
    blanks = [" " * (size - cell_len(cell)) for cell in column]
    return [
        f"{cell}{blank}" if is_text else f"{blank}{cell}"
        for cell, blank in zip(column, blanks, strict=True)
    ]


def _pages(sizes: Sequence[int], width: int) -> Iterator[list[int]]:
    """Yield the columns of each table, the first one in all of them."""
    page, used = [0], sizes[0]
    for place in range(1, len(sizes)):
        if used + _GAP + sizes[place] > width and len(page) > 1:
            yield page
            page, used = [0], sizes[0]
        page.append(place)
        used += _GAP + sizes[place]
    yield page


def _flat(about: Mapping[str, object]) -> Iterable[tuple[str, object]]:
    for key, value in about.items():
        yield from _flat(value) if isinstance(value, dict) else [(key, value)]


def _brief(value: object) -> str:
    if isinstance(value, list | tuple) and len(value) > 3:
        return f"{value[0]}..{value[-1]} ({len(value)})"
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
