"""Results of earlier runs, known again by the form of the whole file: others' files are kept."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import TYPE_CHECKING

from streammetrics.core.results.table import csv_text
from streammetrics.show.machines import FIELDS

if TYPE_CHECKING:
    from collections.abc import Sequence

_LARGEST = 1 << 26  # bytes of a file that is looked at
_ABOUT = {
    "task", "columns", "by", "files", "left_out", "options", "qrels", "run", "annotations",
    "results", "state", "shards",
}  # fmt: skip
_REPORT = {"n_rows", "n_omitted", "metrics", "notes"}
_SLICES = {"slices", "worst"}
_ENTRY = {"value", "low", "high", "exact", "n_rows", "n_omitted", "parameters"}
_HEAD = re.compile(r"\| Metric \| Value \| (Certainly within \| )?Rows \| Omitted \|")
_LINE = re.compile(r"|\| .* \||\*\*.+\*\*|- .+|every value is exact")


def is_json(path: str) -> bool:
    """Tell whether a file is what ``--json`` writes, with nothing besides."""
    text = _text(path)
    try:
        found = json.loads(text)
    except ValueError:
        return False
    if (
        not isinstance(found, dict)
        or text != json.dumps(found, indent=2, ensure_ascii=False) + "\n"
    ):
        return False
    models = found.get("models")
    if models is None:
        return _is_report(found)
    known = isinstance(models, dict) and found.keys() <= _ABOUT | {"models"}
    return known and all(map(_is_report, models.values()))


def _is_report(found: object) -> bool:
    if not isinstance(found, dict) or not _REPORT <= found.keys() <= _REPORT | _ABOUT | _SLICES:
        return False
    entries = found["metrics"].values() if isinstance(found["metrics"], dict) else [None]
    return all(
        isinstance(entry, dict) and _ENTRY <= entry.keys() <= _ENTRY | {"labels", "per_query"}
        for entry in entries
    )


def is_csv(path: str) -> bool:
    """Tell whether a file is what ``--csv`` writes, with nothing besides."""
    text = _text(path)
    try:
        header, *rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    except (ValueError, csv.Error):
        return False
    if tuple(header) not in {FIELDS, ("model", *FIELDS)}:
        return False
    return csv_text([header, *rows]) == text and all(_is_row(row, len(header)) for row in rows)


def _is_row(row: Sequence[str], width: int) -> bool:
    try:
        *_, value, low, high, exact, n_rows, n_omitted = row
        _ = [float(text) for text in (value, low, high) if text], int(n_rows), int(n_omitted)
    except ValueError:
        return False
    return len(row) == width and exact in {"true", "false"}


def is_markdown(path: str) -> bool:
    """Tell whether a file is of such lines as ``--markdown`` writes, and of no others."""
    first, *lines = _text(path).split("\n")
    of_models = first.startswith("| Metric | ") and any(x.startswith("| Rows | ") for x in lines)
    return bool(_HEAD.fullmatch(first) or of_models) and all(map(_LINE.fullmatch, lines))


def _text(path: str) -> str:
    """Return what is in a file, or nothing where it is no text or too large to be of us."""
    with open(path, "rb") as file:
        data = file.read(_LARGEST + 1)
    try:
        return data.decode() if len(data) <= _LARGEST else ""
    except UnicodeDecodeError:
        return ""
