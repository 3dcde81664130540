"""Results out: a table for people, JSON for machines."""

from __future__ import annotations

import json
import math
import sys
import warnings
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from streammetrics.cli.errors import CommandError
from streammetrics.core.errors import StreamMetricsError
from streammetrics.core.metric import Metric
from streammetrics.metrics.ranking.base import RankingMetric

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from streammetrics.core.metric_set import MetricSet

_WIDE = 10_000  # columns of a console that is no terminal, so that no line is broken
_SHOWN = 8  # values of an array that stand in the table


@dataclass(frozen=True)
class Row:
    """One metric's result."""

    name: str
    parameters: Mapping[str, Any]
    value: Any
    low: Any
    high: Any
    exact: bool
    n_rows: int
    n_omitted: int
    per_query: Mapping[Any, float] | None = None  # where it was asked for


@dataclass
class Report:
    """All results, what they are of, and what there is to say about them."""

    about: dict[str, Any]  # task, columns, ...: shown in a line above, and in the JSON
    rows: list[Row]
    n_rows: int
    n_omitted: int
    notes: list[str] = field(default_factory=list)


def report(
    what: Metric | MetricSet,
    about: Mapping[str, Any],
    notes: Iterable[str] = (),
    *,
    per_query: bool = False,
) -> Report:
    """Read every metric; warnings become notes.

    Raises:
        CommandError: A metric cannot be read from the rows seen, or none has values by query.
    """
    members = (
        {type(what).__name__: what} if isinstance(what, Metric) else {n: what[n] for n in what}
    )
    if per_query and not any(isinstance(metric, RankingMetric) for metric in members.values()):
        raise CommandError(
            f"--per-query: none of the metrics is of rankings ({', '.join(members)})"
        )
    said = list(notes)
    rows = []
    for name, metric in members.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                rows.append(_row(name, metric, per_query=per_query))
            except StreamMetricsError as error:
                raise CommandError(f"{name}: {error}") from error
        said += [_note(name, type(metric).__name__, str(warning.message)) for warning in caught]
    said += _queries(members)
    return Report(dict(about), rows, what.n_rows, what.n_omitted, list(dict.fromkeys(said)))


def _row(name: str, metric: Metric, *, per_query: bool) -> Row:
    value, exact = metric.compute(), metric.exact
    low, high = (value, value) if exact else metric.bounds()
    each = metric.per_query() if per_query and isinstance(metric, RankingMetric) else None
    counts = metric.n_rows, metric.n_omitted
    return Row(name, metric.config, value, low, high, exact, *counts, per_query=each)


def _queries(members: Mapping[str, Metric]) -> list[str]:
    """Say how many queries the means of rankings are of."""
    groups: dict[tuple[Any, ...], list[str]] = {}
    ranked = {name: m for name, m in members.items() if isinstance(m, RankingMetric)}
    for name, metric in ranked.items():
        which = metric.relevant_at, metric.no_relevant, metric.unretrieved, metric.nan_policy
        groups.setdefault(which, []).append(name)
    notes = []
    for names in groups.values():
        metric = ranked[names[0]]  # the others of the group count the same queries
        of = f" ({', '.join(names)})" if len(groups) > 1 else ""
        notes.append(
            f"means over {metric.n_queries:,} queries; {metric.n_unjudged:,} without any judgment "
            f"left out{of}"
        )
    return notes


def _note(name: str, kind: str, message: str) -> str:
    return message.replace(kind, name, 1) if message.startswith(kind) else f"{name}: {message}"


# --- for people ----------------------------------------------------------------------------------


def console(*, stderr: bool = False) -> Console:
    """Return a console that is plain where it is no terminal, and then breaks no line."""
    stream = sys.stderr if stderr else sys.stdout
    found = Console(file=stream, highlight=False, markup=False, emoji=False)
    return found if found.is_terminal else Console(
        file=stream, highlight=False, markup=False, emoji=False, width=_WIDE
    )  # fmt: skip


def show(result: Report, out: Console) -> None:
    """Print the table, the rows seen, and the notes."""
    about = [f"{key}={_brief(value)}" for key, value in _flat(result.about) if key != "files"]
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


def number(value: float) -> str:
    """Return a number as the table shows it."""
    if isinstance(value, int):
        return f"{value:,}"
    if math.isnan(value):
        return "undefined"
    return f"{value:.6f}" if 1e-3 <= abs(value) < 1e7 or value == 0 else f"{value:.6g}"


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


# --- for machines --------------------------------------------------------------------------------


def as_json(result: Report) -> str:
    """Return the results in full precision.

    ``nan`` is null; infinities, which JSON lacks, are "Infinity" and "-Infinity". The bounds of
    curves and reports are null where the value is exact: they are the value.
    """
    metrics = {}
    for row in result.rows:
        same = row.exact and not isinstance(row.value, int | float | np.ndarray)
        metrics[row.name] = {
            "value": plain(row.value),
            "low": None if same else plain(row.low),
            "high": None if same else plain(row.high),
            "exact": row.exact,
            "n_rows": row.n_rows,
            "n_omitted": row.n_omitted,
            "parameters": plain(dict(row.parameters)),
        }
        if row.per_query is not None:
            metrics[row.name]["per_query"] = plain(dict(row.per_query))
    document = {
        **plain(result.about),
        "n_rows": result.n_rows,
        "n_omitted": result.n_omitted,
        "metrics": metrics,
        "notes": result.notes,
    }
    return json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def plain(value: Any) -> Any:
    """Return a value of any metric as what JSON has."""
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value
