"""Values on a terminal: tables a person can read."""

from __future__ import annotations

import math
import sys
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from streammetrics.show.report import number

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from streammetrics.show.report import Report, Row


_SHOWN = 8  # values of an array that stand in the table
_ELSEWHERE = ("files", "left_out")  # what is too long for a line, or on standard error already
_WIDE = 10_000  # columns of a console that is no terminal, so that no line is broken


def console(*, stderr: bool = False) -> Console:
    """Return a console that is plain where it is no terminal, and then breaks no line."""
    stream = sys.stderr if stderr else sys.stdout
    found = Console(file=stream, highlight=False, markup=False, emoji=False)
    return found if found.is_terminal else Console(
        file=stream, highlight=False, markup=False, emoji=False, width=_WIDE
    )  # fmt: skip


def show(result: Report, out: Console) -> None:
    """Print the table, the rows seen, and the notes."""
    told = {key: value for key, value in result.about.items() if key not in _ELSEWHERE}
    about = [f"{key}={_brief(value)}" for key, value in _flat(told)]
    out.print("  ".join(about), style="dim")
    plain = not out.is_terminal
    table = Table(box=None if plain else box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    table.add_column("Metric", no_wrap=True)
    table.add_column("Value", justify="right")
    inexact = any(not row.exact for row in result.rows)
    if inexact:
        table.add_column("Certainly within")
    table.add_column("Rows", justify="right")
    table.add_column("Omitted", justify="right")
    for row in result.rows:
        value, interval = _cells(row)
        within = [interval] if inexact else []
        table.add_row(row.name, value, *within, f"{row.n_rows:,}", f"{row.n_omitted:,}")
    out.print(table)
    if not inexact:
        out.print("every value is exact", style="dim")
    for note in result.notes:
        out.print(f"note: {note}", style="yellow")
    _show_queries([row for row in result.rows if row.per_query is not None], out)


def _show_queries(rows: Sequence[Row], out: Console) -> None:
    """Print the value of each query, a line each: there may be a million."""
    queries = sorted({query for row in rows for query in row.per_query or ()})
    if not queries:
        return
    texts = list(map(str, queries))
    width = max(len("Query"), *map(len, texts))
    widths = [max(len(row.name), 9) for row in rows]
    titles = [f"{row.name:>{wide}}" for row, wide in zip(rows, widths, strict=True)]
    lines = [f"{'Query':<{width}}  {'  '.join(titles)}"]
    for query, text in zip(queries, texts, strict=True):
        values = [row.per_query.get(query) for row in rows if row.per_query is not None]
        shown = ["-" if value is None else number(value) for value in values]
        cells = [f"{cell:>{wide}}" for cell, wide in zip(shown, widths, strict=True)]
        lines.append(f"{text:<{width}}  {'  '.join(cells)}")
    out.file.write("\n" + "\n".join(lines) + "\n")


def _flat(about: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    for key, value in about.items():
        yield from _flat(value) if isinstance(value, dict) else [(key, value)]


def _brief(value: Any) -> str:
    if isinstance(value, list | tuple) and len(value) > 3:
        return f"{value[0]}..{value[-1]} ({len(value)})"
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _cells(row: Row) -> tuple[str, str]:
    value, low, high = row.value, row.low, row.high
    if not isinstance(value, int | float):
        return _summary(value), "exact" if row.exact else "see --json"
    if row.exact:
        return number(value), "exact"
    width = high - low
    if not 0 < width < math.inf:
        return number(value), f"{number(low)} .. {number(high)}"
    places = max(0, 1 - math.floor(math.log10(width)))
    bounds = f"{_rounded(low, places, ROUND_FLOOR)} .. {_rounded(high, places, ROUND_CEILING)}"
    return f"{value:.{max(places, 6)}f}", f"{bounds}  (width {width:.1e})"


def _rounded(value: float, places: int, rounding: str) -> str:
    # Outward, so that what is printed still certainly holds the exact value.
    step = Decimal(1).scaleb(-places)
    return f"{Decimal(value).quantize(step, rounding, Context(prec=400)):f}"


def _summary(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.size <= _SHOWN:
        if value.ndim == 1:
            return "  ".join(number(v) for v in value.tolist())
        return "\n".join("  ".join(number(v) for v in row) for row in value.tolist())
    if isinstance(value, np.ndarray):
        return f"{' x '.join(map(str, value.shape))} values, see --json"
    if isinstance(value, tuple):
        return f"{len(value[-1])} points, see --json"
    return "see --json"
