"""Values as Markdown: the tables of the terminal, for a page or a pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streammetrics.core.results.table import plain_text
from streammetrics.show.grids import grids, is_exact

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streammetrics.show.grids import Grid
    from streammetrics.show.report import ModelReports


def as_markdown(results: ModelReports) -> str:
    """Return the tables and the notes."""
    parts = ["\n".join(_drawn(grid)) for grid in grids(results)]
    if is_exact(results):
        parts.insert(1, "every value is exact")
    if results.notes:
        parts.append("\n".join(f"- {plain_text(note)}" for note in results.notes))
    return "\n\n".join(parts) + "\n"


def _drawn(grid: Grid) -> Iterable[str]:
    if grid.title:
        yield f"**{plain_text(grid.title)}**\n"
    yield _line(map(plain_text, grid.header))
    yield _line(":--" if place in grid.texts else "--:" for place in range(len(grid.header)))
    for line in grid.lines:
        yield _line(map(plain_text, line))


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
