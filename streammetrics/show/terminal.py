"""Values on a terminal: tables a person can read, however wide it is."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING, Any

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from streammetrics.show.grids import grids, is_exact

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from streammetrics.show.grids import Grid
    from streammetrics.show.report import Results

_ELSEWHERE = ("files", "left_out")  # what is too long for a line, or on standard error already
_WIDE = 10_000  # columns of a console that is no terminal, so that no line is broken
_GAP = 2  # blanks between two columns
_MANY = 1000  # lines from which a table is written as it is, without measuring every cell


def console(*, stderr: bool = False) -> Console:
    """Return a console that is plain where it is no terminal, and then breaks no line."""
    stream = (sys.stderr if stderr else sys.stdout) or io.StringIO()  # None where it is closed
    found = Console(file=stream, highlight=False, markup=False, emoji=False)
    return found if found.is_terminal else Console(
        file=stream, highlight=False, markup=False, emoji=False, width=_WIDE
    )  # fmt: skip


def as_text(results: Results) -> str:
    """Return the tables, the rows seen, and the notes, as this terminal shows them."""
    like, text = console(), io.StringIO()
    out = Console(
        file=text,
        force_terminal=like.is_terminal,
        color_system=like.color_system,  # type: ignore[arg-type]  # one of the names it takes
        width=like.width,
        highlight=False,
        markup=False,
        emoji=False,
    )
    _print(results, out)
    return text.getvalue()


def _print(results: Results, out: Console) -> None:
    told = {key: value for key, value in results.shared.items() if key not in _ELSEWHERE}
    about = [f"{key}={_brief(value)}" for key, value in _flat(told)]
    out.print("  ".join(about), style="dim")
    first, *rest = grids(results)
    _draw(first, out)
    if is_exact(results):
        out.print("every value is exact", style="dim")
    for note in results.notes:
        out.print(f"note: {note}", style="yellow")
    for grid in rest:
        out.print()
        if grid.title:
            out.print(grid.title, style="bold")
        _draw(grid, out)


def _draw(grid: Grid, out: Console) -> None:
    if len(grid.lines) >= _MANY:
        out.out(_aligned(grid), end="", highlight=False)
        return
    plain = not out.is_terminal
    for columns in _pages(grid, out.width):
        table = Table(box=None if plain else box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
        for place in columns:
            is_text = place in grid.texts
            table.add_column(
                grid.header[place], justify="left" if is_text else "right", no_wrap=place == 0
            )
        for line in grid.lines:
            table.add_row(*(line[place] for place in columns))
        out.print(table)


def _pages(grid: Grid, width: int) -> Iterator[list[int]]:
    """Yield the columns of one table, or of several that are as wide as the terminal allows."""
    columns = zip(grid.header, *grid.lines, strict=True)
    widths = [max(map(cell_len, column)) + _GAP for column in columns]
    if not grid.splits:
        width = sum(widths)
    page, used = [0], widths[0]
    for place in range(1, len(widths)):
        if used + widths[place] > width and len(page) > 1:
            yield page
            page, used = [0], widths[0]
        page.append(place)
        used += widths[place]
    yield page


def _aligned(grid: Grid) -> str:
    widths = [max(map(len, column)) for column in zip(grid.header, *grid.lines, strict=True)]
    lines = [
        "  ".join(
            f"{cell:<{wide}}" if place in grid.texts else f"{cell:>{wide}}"
            for place, (cell, wide) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in (grid.header, *grid.lines)
    ]
    return "\n".join(lines) + "\n"


def _flat(about: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    for key, value in about.items():
        yield from _flat(value) if isinstance(value, dict) else [(key, value)]


def _brief(value: Any) -> str:
    if isinstance(value, list | tuple) and len(value) > 3:
        return f"{value[0]}..{value[-1]} ({len(value)})"
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
