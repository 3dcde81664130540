"""Results as grids of text, which a terminal and Markdown draw each in their way."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import TYPE_CHECKING, Any

from streammetrics.show.parts import Matrix, NumberTable, Vector, part_of
from streammetrics.show.report import number
from streammetrics.show.slices import SHOWN
from streammetrics.show.slices import cells as cells_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streammetrics.core.results.differences import Differences
    from streammetrics.show.report import MetricRow, ModelReport, ModelReports
    from streammetrics.show.sliced import Sliced

DUEL = "Which is better"  # how the title of differences begins
DETAIL = "  ("  # how what can be left out begins
_CLASSES = 30  # of a matrix that is shown; a larger one is for machines


@dataclass(frozen=True)
class Grid:
    """A title, a header and lines of cells.

    Attributes:
        texts: The columns of text; others are of numbers. From `DETAIL` on, text may be left out.
    """

    title: str
    header: tuple[str, ...]
    lines: list[tuple[str, ...]]
    texts: frozenset[int] = frozenset({0})


def grids(results: ModelReports) -> Iterator[Grid]:
    """Yield the values of all metrics, then what is more than a number, then values of queries."""
    if len(results.models) == 1:
        yield _values(results.only)
    else:
        yield _compared(results)
    if results.differences is not None:
        yield _differences(results.differences)
    for name, report in results.models.items():
        model = name if len(results.models) > 1 else ""
        yield from _parts(report, model)
        if report.slices is not None:
            yield from _slices(report, report.slices, model)
        rows = [row for row in report.rows if row.per_query is not None]
        if rows:
            yield _queries(rows, model)


def is_exact(results: ModelReports) -> bool:
    """Tell whether every value of every model is exact."""
    return all(row.exact for report in results.models.values() for row in report.rows)


def _slices(report: ModelReport, slices: Sliced, model: str) -> Iterator[Grid]:
    of = f" of {model}" if model else ""
    tables = [row.name for row in report.rows if _is_table(row)]
    table = slices.without(tables)
    header, lines, texts = cells_of(table)
    total = len(table)
    title = f"Slices{of}"
    if total > SHOWN:
        title += f", the first {SHOWN} of {total:,}; --json or --csv has all"
    if slices.hidden:
        title += f" ({slices.hidden:,} of fewer rows left out)"
    if tables:
        title += f", without {' and '.join(tables)}; --json or --csv has all"
    yield Grid(title, header, lines, texts)
    if slices.worst is not None:
        header, lines, texts = cells_of(slices.worst)
        how = "the surest first" if "p" in slices.worst else "which has no limits of confidence"
        yield Grid(f"Worst by {slices.by}{of}, {how}", header, lines, texts)


# --- one line a metric ---------------------------------------------------------------------------


def _values(report: ModelReport) -> Grid:
    inexact = any(not row.exact for row in report.rows)
    within = ["Certainly within"] if inexact else []
    sure = [
        f"{100 * row.sure.level:.10g} % confidence"
        for row in report.rows[:1]
        if row.sure is not None
    ]
    lines = []
    for row in report.rows:
        value, interval = cells(row)
        counts = f"{row.n_rows:,}", f"{row.n_omitted:,}"
        beside = [*([interval] if inexact else []), *([_limits(row)] if sure else [])]
        lines.append((row.name, value, *beside, *counts))
    header = ("Metric", "Value", *within, *sure, "Rows", "Omitted")
    return Grid("", header, lines, frozenset({0, *range(2, 2 + len(within) + len(sure))}))


def _compared(results: ModelReports) -> Grid:
    """Return a column for each model, empty where it lacks a metric, and below their rows."""
    reports = list(results.models.values())
    found = [{row.name: row for row in report.rows} for report in reports]
    names = dict.fromkeys(name for rows in found for name in rows)
    inexact = not is_exact(results)
    lines = [(name, *(_with_interval(rows.get(name), inexact) for rows in found)) for name in names]
    lines.append(("Rows", *(f"{report.n_rows:,}" for report in reports)))
    if any(report.n_omitted for report in reports):
        lines.append(("Omitted", *(f"{report.n_omitted:,}" for report in reports)))
    return Grid("", ("Metric", *results.models), lines)


def _differences(found: Differences) -> Grid:
    """Return a line for each metric and pair of models."""
    header, lines = found.grid()
    title = f"{DUEL}, {found.rows_said}" if found.rows_said else DUEL
    return Grid(title, header, lines, frozenset({0, 1, 3, len(header) - 2, len(header) - 1}))


def _with_interval(row: MetricRow | None, inexact: bool) -> str:
    if row is None:
        return ""
    value, interval = cells(row)
    if not isinstance(row.value, int | float):  # whose limits stand where its parts do
        return value
    sure = "" if row.sure is None else f" ({_limits(row)})"
    if row.exact or not inexact:
        return f"{value}{sure}"
    return f"{value} in {interval.partition(DETAIL)[0]}{sure}"


def _limits(row: MetricRow) -> str:
    """Return the limits of confidence as the table shows them."""
    if row.sure is None:
        return ""
    low, high = row.sure
    if not isinstance(low, int | float):
        return "see --json"
    return "none" if math.isnan(low) else f"{number(low)} .. {number(high)}"


def cells(row: MetricRow) -> tuple[str, str]:
    """Return a value, and what it certainly lies within, as the table shows them."""
    value, low, high = row.value, row.low, row.high
    if not isinstance(value, int | float):
        return _elsewhere(row), "exact" if row.exact else "see --json"
    if row.exact:
        return number(value), "exact"
    width = high - low
    if not 0 < width < math.inf:
        return number(value), f"{number(low)} .. {number(high)}"
    places = max(0, 1 - math.floor(math.log10(width)))
    bounds = f"{_rounded(low, places, ROUND_FLOOR)} .. {_rounded(high, places, ROUND_CEILING)}"
    return f"{value:.{max(places, 6)}f}", f"{bounds}{DETAIL}width {width:.1e})"


def _rounded(value: float, places: int, rounding: str) -> str:
    # Outward, so that what is printed still certainly holds the exact value.
    step = Decimal(1).scaleb(-places)
    return f"{Decimal(value).quantize(step, rounding, Context(prec=400)):f}"


def _elsewhere(row: MetricRow) -> str:
    match part_of(row.value):
        case Matrix() as matrix if _is_large(matrix):
            return f"{len(matrix.down)} x {len(matrix.across)} values, see --json"
        case Matrix() | NumberTable() | Vector():
            return "below"
        case points:
            return f"{points} points, see --json" if points else "see --json"


def _is_table(row: MetricRow) -> bool:
    return isinstance(part_of(row.value), Matrix | NumberTable)


# --- what is more than a number ------------------------------------------------------------------


def _parts(report: ModelReport, model: str) -> Iterator[Grid]:
    vectors: dict[tuple[str, ...], list[tuple[str, Vector]]] = {}
    rest = []
    for row in report.rows:
        match part_of(row.value):
            case Vector() as vector:
                vectors.setdefault((vector.what, *vector.names), []).append((row.name, vector))
            case Matrix() as matrix if not _is_large(matrix):
                rest.append(_matrix(_title(row.name, model), matrix))
            case NumberTable() as table:
                lines = [(name, *map(_cell, each)) for name, each in table.lines.items()]
                rest.append(
                    Grid(_title(row.name, model), (table.what.capitalize(), *table.header), lines)
                )
    for columns in vectors.values():
        what, names = columns[0][1].what, columns[0][1].names
        values = zip(*(vector.values for _, vector in columns), strict=True)
        lines = [(name, *map(number, each)) for name, each in zip(names, values, strict=True)]
        yield Grid(model, (what.capitalize(), *(name for name, _ in columns)), lines)
    yield from rest


def _title(name: str, model: str) -> str:
    return f"{name} of {model}" if model else name


def _matrix(title: str, matrix: Matrix) -> Grid:
    down, across = matrix.what
    lines = [
        (name, *map(_cell, values)) for name, values in zip(matrix.down, matrix.values, strict=True)
    ]
    return Grid(f"{title}: {down} down, {across} across", ("", *matrix.across), lines)


def _is_large(matrix: Matrix) -> bool:
    return max(len(matrix.down), len(matrix.across)) > _CLASSES


def _cell(value: Any) -> str:
    if value is None:
        return ""
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 1e15 and value != 1
    return number(int(value)) if whole and value else number(value)


# --- a line a query ------------------------------------------------------------------------------


def _queries(rows: Sequence[MetricRow], model: str) -> Grid:
    each = [row.per_query or {} for row in rows]
    queries = sorted({query for values in each for query in values})
    lines = []
    for query in queries:
        values = [found.get(query) for found in each]
        lines.append((str(query), *("-" if v is None else number(v) for v in values)))
    return Grid(model, ("Query", *(row.name for row in rows)), lines)
