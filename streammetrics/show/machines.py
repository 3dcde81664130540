"""Results for machines, in full precision: JSON, and CSV with a line for each number."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.results.labelled import LabelledArray
from streammetrics.core.results.result import VALUE, Result
from streammetrics.core.results.table import csv_text
from streammetrics.core.results.values import numbers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streammetrics.core.types import Document, Json
    from streammetrics.show.report import MetricRow, ModelReport, ModelReports

_UNKNOWN = {VALUE: None}
FIELDS = ("metric", "part", "value", "low", "high", "exact", "n_rows", "n_omitted")
SURE = ("confidence_low", "confidence_high")  # where they were asked for


def as_json(results: ModelReports) -> str:
    """Return the results in full precision.

    ``nan`` is null; infinities, which JSON lacks, are "Infinity" and "-Infinity". The bounds of
    curves and reports are null where the value is exact: they are the value.
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
    """Return a value of any metric as what JSON has."""
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
    """Return a line for each number, with the model first where there are several.

    The part of a result that is more than a number is named for its class, ``cat``, for two, true
    and predicted, ``cat/dog``, for a class and a column, ``cat/recall``, or for a place and a
    column, ``0/fpr``; a query's value is ``query=17``. ``nan`` is an empty field. Limits of
    confidence, where they were asked for, come last.
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
        # The bounds of a curve need not have as many points.
        sides = value, low.get(part, _UNKNOWN), high.get(part, _UNKNOWN)
        limits = (_text(side.get(part, _UNKNOWN)[VALUE]) for side in sure)
        yield part, *(_text(side[VALUE]) for side in sides), *counts, *limits
    for query, figure in (row.per_query or {}).items():
        yield f"query={query}", _text(figure), "", "", *counts, *("" for _ in sure)


def _text(value: object) -> object:
    if isinstance(value, np.generic):
        value = value.item()
    return "" if value is None or (isinstance(value, float) and math.isnan(value)) else value
