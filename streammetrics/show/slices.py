"""Slices as lines of text: one for each, its keys first."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from streammetrics.show.report import number
from streammetrics.slices.table import MISSING

if TYPE_CHECKING:
    from streammetrics.slices.table import SliceTable

SHOWN = 40  # slices that are shown; all are for machines


def cells(table: SliceTable) -> tuple[tuple[str, ...], list[tuple[str, ...]], frozenset[int]]:
    """Return the header, the lines that are shown and the places of text of a table of slices."""
    columns = {title: column for title, column in table.items() if title != "by"}
    keys = table._keys()
    header = tuple("Rows" if title == "n_rows" else title for title in columns)
    lines = []
    for row in range(min(len(table), SHOWN)):
        used = table._sliced(row)
        line = [_key(columns[title][row], title in used) for title in keys]
        line += [_number(columns[title][row]) for title in columns if title not in keys]
        lines.append(tuple(line))
    return header, lines, frozenset(range(len(keys)))


def _key(value: object, used: bool) -> str:
    if value is None:
        return MISSING if used else ""
    return str(value)


def _number(value: object) -> str:
    plain = value.item() if hasattr(value, "item") else value
    if isinstance(plain, float) and 0 < abs(plain) < 1e-300:
        return f"{plain:.1e}"
    if not isinstance(plain, int | float):
        return str(plain)
    return "" if isinstance(plain, float) and math.isnan(plain) else number(plain)
