"""Tables for terminals, programs and Markdown."""

from __future__ import annotations

import io
import json
import math
import sys
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import TYPE_CHECKING, Literal
from xml.sax.saxutils import quoteattr

import numpy as np
from rich.cells import cell_len
from rich.console import Console

from streammetrics.core.results.table import csv_text, plain_text, printable
from streammetrics.core.results.values import VALUE, LabelledArray, Result, numbers
from streammetrics.show.report import SHOWN, Matrix, NumberTable, Vector, number, part_of
from streammetrics.show.report import cells as cells_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from streammetrics.core.results.differences import Differences
    from streammetrics.core.types import Document, Json
    from streammetrics.show.report import MetricRow, ModelReport, ModelReports, Sliced


DUEL = "Which is better"  # title of the table of differences
DETAIL = "  ("  # start of the part of a cell that may be dropped
_CLASSES = 30  # largest matrix to print, in classes; larger ones are only in JSON and CSV


@dataclass(frozen=True)
class Grid:
    """A title, a header and rows of cells.

    Attributes:
        texts: Indices of the text columns; the others hold numbers. Where space is short, cells are
            cut at `DETAIL`.
        shows: What the rows are.
        lacks: What is only in the JSON and in the CSV, as in "without f1"; empty for nothing.
    """

    title: str
    header: tuple[str, ...]
    lines: list[tuple[str, ...]]
    texts: frozenset[int] = frozenset({0})
    shows: Literal["values", "differences", "slices", "worst"] = "values"
    lacks: str = ""

    def titled(self, elsewhere: str = "--json or --csv") -> str:
        """Return the title, and what of the table is elsewhere."""
        return f"{self.title}, {self.lacks}; {elsewhere} has all" if self.lacks else self.title


def grids(results: ModelReports) -> Iterator[Grid]:
    """Yield the table of all values, then the tables of non-scalar values and of single queries."""
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
    """Return whether every value of every model is exact."""
    return all(row.exact for report in results.models.values() for row in report.rows)


def _slices(report: ModelReport, slices: Sliced, model: str) -> Iterator[Grid]:
    of = f" of {model}" if model else ""
    tables = [
        row.name for row in report.rows if isinstance(part_of(row.value), Matrix | NumberTable)
    ]
    table = slices.without(tables)
    header, lines, texts = cells_of(table)
    total = len(table)
    few = f" ({slices.hidden:,} of fewer rows left out)" if slices.hidden else ""
    lacks = [f"the first {SHOWN} of {total:,}"] if total > SHOWN else []
    lacks += [f"without {' and '.join(tables)}"] if tables else []
    yield Grid(f"Slices{of}{few}", header, lines, texts, "slices", ", ".join(lacks))
    if slices.worst is not None:
        header, lines, texts = cells_of(slices.worst)
        how = "the surest first" if "p" in slices.worst else "which has no limits of confidence"
        yield Grid(f"Worst by {slices.by}{of}, {how}", header, lines, texts, "worst")


# --- one row per metric --------------------------------------------------------------------------


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
    """Return a table with a column per model, empty where it lacks a metric."""
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
    """Return a table with a row for each metric and pair of models."""
    header, lines = found.grid()
    title = f"{DUEL}, {found.rows_said}" if found.rows_said else DUEL
    texts = frozenset({0, 1, 3, len(header) - 2, len(header) - 1})
    return Grid(title, header, lines, texts, "differences")


def _with_interval(row: MetricRow | None, inexact: bool) -> str:
    if row is None:
        return ""
    value, interval = cells(row)
    if not isinstance(row.value, int | float):  # the tables of its parts show the limits
        return value
    sure = "" if row.sure is None else f" ({_limits(row)})"
    if row.exact or not inexact:
        return f"{value}{sure}"
    return f"{value} in {interval.partition(DETAIL)[0]}{sure}"


def _limits(row: MetricRow) -> str:
    """Return the confidence limits as the table shows them."""
    if row.sure is None:
        return ""
    low, high = row.sure
    if not isinstance(low, int | float):
        return "see --json"
    return "none" if math.isnan(low) else f"{number(low)} .. {number(high)}"


def cells(row: MetricRow) -> tuple[str, str]:
    """Return a value and its certain bounds as the table shows them."""
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
    # Round outward, so that the printed bounds still contain the exact value.
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


# --- non-scalar values ---------------------------------------------------------------------------


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


def _cell(value: float | None) -> str:
    if value is None:
        return ""
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 1e15 and value != 1
    return number(int(value)) if whole and value else number(value)


# --- one row per query ---------------------------------------------------------------------------


def _queries(rows: Sequence[MetricRow], model: str) -> Grid:
    each = [row.per_query or {} for row in rows]
    queries = sorted({query for values in each for query in values})
    lines = []
    for query in queries:
        values = [found.get(query) for found in each]
        lines.append((str(query), *("-" if v is None else number(v) for v in values)))
    return Grid(model, ("Query", *(row.name for row in rows)), lines)


_ELSEWHERE = ("files", "left_out")  # too long for a line, or already written to standard error
_WIDE = 10_000  # width if the output is not a terminal, so that no line wraps
_GAP = 2  # spaces between two columns


def console(*, stderr: bool = False) -> Console:
    """Return a console; if the output is not a terminal, it is unstyled and does not wrap lines."""
    stream = (sys.stderr if stderr else sys.stdout) or io.StringIO()  # None if the stream is closed
    found = Console(file=stream, highlight=False, markup=False, emoji=False)
    return found if found.is_terminal else Console(
        file=stream, highlight=False, markup=False, emoji=False, width=_WIDE
    )  # fmt: skip


def as_text(results: ModelReports) -> str:
    """Return the tables, row counts and notes as this terminal shows them."""
    out, text = _sheet()
    _print(results, out)
    return text.getvalue()


def drawn(tables: Iterable[Grid]) -> str:
    """Return the grids one below the other, as this terminal shows them."""
    out, text = _sheet()
    for place, grid in enumerate(tables):
        if place:
            out.print()
        _draw(grid, out)
    return text.getvalue()


def _sheet() -> tuple[Console, io.StringIO]:
    """Return a console with this terminal's settings, and the buffer that it writes to."""
    like, text = console(), io.StringIO()
    return Console(
        file=text,
        force_terminal=like.is_terminal,
        color_system=like.color_system,  # type: ignore[arg-type]  # one of the names that Console accepts
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
    """Print a grid, as several tables if its columns do not fit side by side."""
    if grid.title:
        out.print(printable(grid.titled()), style="bold")
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
        # Print all lines at once and unmeasured: there may be a million.
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
    """Yield the columns of each table; the first column is in every one."""
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


_UNKNOWN = {VALUE: None}
FIELDS = ("metric", "part", "value", "low", "high", "exact", "n_rows", "n_omitted")
SURE = ("confidence_low", "confidence_high")  # if requested


def as_json(results: ModelReports) -> str:
    """Return the results as JSON in full precision.

    NaN is null; infinities, which JSON lacks, are "Infinity" and "-Infinity". The bounds of exact
    curves and reports are null, because they equal the value.
    """
    if len(results.models) == 1:
        document = {**plain(results.only.about), **_document(results.only)}
    else:
        shared = results.shared
        own = {
            name: {key: value for key, value in report.about.items() if value != shared.get(key)}
            for name, report in results.models.items()
        }
        models = {
            name: {**plain(own[name]), **_document(report)}
            for name, report in results.models.items()
        }
        document = {**plain(shared), "models": models}
    if results.differences is not None:
        document["comparison"] = plain(results.differences)
    return json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def _document(report: ModelReport) -> Document:
    return {
        "n_rows": report.n_rows,
        "n_omitted": report.n_omitted,
        "metrics": {row.name: _entry(row) for row in report.rows},
        "notes": report.notes,
        **({} if report.slices is None else plain(report.slices.document())),
    }


def _entry(row: MetricRow) -> dict[str, object]:
    same = row.exact and not isinstance(row.value, int | float | np.ndarray)
    entry = {
        "value": plain(row.value),
        "low": None if same else plain(row.low),
        "high": None if same else plain(row.high),
        "exact": row.exact,
        "n_rows": row.n_rows,
        "n_omitted": row.n_omitted,
        "parameters": plain(dict(row.parameters)),
    }
    if isinstance(row.value, LabelledArray):
        entry["labels"] = plain(row.value.axes[0][1])
    if row.sure is not None:
        entry["confidence"] = plain(row.sure)
    if row.per_query is not None:
        entry["per_query"] = plain(dict(row.per_query))
    return entry


def plain(value: object) -> Json:
    """Return the value of any metric as JSON types."""
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, Result):
        return plain(value.to_dict())
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def as_csv(results: ModelReports) -> str:
    """Return the results as CSV, one line per number; with several models, the model comes first.

    Non-scalar results have one line per part. A part is named after its class, ``cat``; its true
    and predicted class, ``cat/dog``; its class and column, ``cat/recall``; or its index and column,
    ``0/fpr``. The value of a query is ``query=17``. NaN is an empty field. Confidence limits come
    last, if requested.
    """
    several = len(results.models) > 1
    asked = any(row.sure is not None for report in results.models.values() for row in report.rows)
    rows: list[tuple[object, ...]] = [("model", *FIELDS, *(SURE if asked else ()))]
    for name, report in results.models.items():
        rows += [(name, row.name, *line) for row in report.rows for line in _lines(row)]
        for metric, part, *numbers_of in report.slices.lines() if report.slices is not None else ():
            rows.append((name, metric, part, *map(_text, numbers_of)))
    return csv_text(rows if several else (row[1:] for row in rows))


def _lines(row: MetricRow) -> Iterator[tuple[object, ...]]:
    counts = "true" if row.exact else "false", row.n_rows, row.n_omitted
    low, high = dict(numbers(row.low)), dict(numbers(row.high))
    sure = [] if row.sure is None else [dict(numbers(side)) for side in row.sure]
    for part, value in numbers(row.value):
        # The bounds of a curve may have fewer points than the curve.
        sides = value, low.get(part, _UNKNOWN), high.get(part, _UNKNOWN)
        limits = (_text(side.get(part, _UNKNOWN)[VALUE]) for side in sure)
        yield part, *(_text(side[VALUE]) for side in sides), *counts, *limits
    for query, figure in (row.per_query or {}).items():
        yield f"query={query}", _text(figure), "", "", *counts, *("" for _ in sure)


def _text(value: object) -> object:
    if isinstance(value, np.generic):
        value = value.item()
    return "" if value is None or (isinstance(value, float) and math.isnan(value)) else value


def as_junit(results: ModelReports) -> str:
    """Return JUnit XML: a test case for each line of a comparison with margins.

    A metric that is worse is a failure; one that is undecided is an error.
    """
    lines = results.differences or ()
    kinds = {"worse": "failure", "undecided": "error"}
    header, table = results.differences.grid() if results.differences else ((), [])
    cases = []
    for line, shown in zip(lines, table, strict=True):
        told = ", ".join(f"{name} {cell}" for name, cell in zip(header, shown, strict=True))
        kind = kinds.get(line.verdict)
        inside = f"<{kind} type={_quoted(line.verdict)} message={_quoted(told)}/>" if kind else ""
        tested = f"{line.model} against {line.against}"
        cases.append(
            f"  <testcase classname={_quoted(tested)} name={_quoted(line.metric)}>{inside}"
            "</testcase>\n"
        )
    counts = {kind: sum(f"<{kind} " in case for case in cases) for kind in kinds.values()}
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<testsuite name="streammetrics gate" tests="{len(cases)}" '
        f'failures="{counts["failure"]}" errors="{counts["error"]}">\n{"".join(cases)}'
        "</testsuite>\n"
    )


def _quoted(text: str) -> str:
    """Quote an XML attribute; control characters, which XML cannot hold, are replaced."""
    return quoteattr("".join(c if c.isprintable() else "\ufffd" for c in text))


def as_markdown(results: ModelReports) -> str:
    """Return the tables and the notes as Markdown."""
    parts = ["\n".join(_drawn(grid)) for grid in grids(results)]
    if is_exact(results):
        parts.insert(1, "every value is exact")
    if results.notes:
        parts.append("\n".join(f"- {plain_text(note)}" for note in results.notes))
    return "\n\n".join(parts) + "\n"


def _drawn(grid: Grid) -> Iterable[str]:
    if grid.title:
        yield f"**{plain_text(grid.titled())}**\n"
    yield _line(map(plain_text, grid.header))
    yield _line(":--" if place in grid.texts else "--:" for place in range(len(grid.header)))
    for line in grid.lines:
        yield _line(map(plain_text, line))


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
