"""A report as one page of HTML, or as JSON of the same content."""

from __future__ import annotations

import importlib
import json
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from streammetrics.core.results.table import shown
from streammetrics.show.formulas import set_formula, set_letters
from streammetrics.show.grids import DETAIL, DUEL, Grid, grids
from streammetrics.show.machines import as_json, plain
from streammetrics.show.pages.figures import SLICED, figures, sliced_metrics
from streammetrics.show.reference import formula

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from streammetrics.core.types import Document, Json
    from streammetrics.show.pages.subjects import Findings

_ENDS = re.compile("_(low|high|rest|adjusted)$")  # of columns, which a page breaks in two lines
_POINTS = 500  # of a curve in JSON
_SIDES = ("value", "low", "high", "confidence")
MADE = "streammetrics report"  # by which a report is known again
_SLICES = ("Slices", "Worst by")  # as it calls tables of slices
_ORDER = ("How good, and how sure", "Over time", DUEL, "For whom", "In detail")


def as_page(found: Findings, title: str = "") -> str:
    """Return the page.

    Raises:
        ImportError: Jinja or Matplotlib is missing; the message names the extra.
    """
    try:
        jinja = importlib.import_module("jinja2")
    except ImportError as error:
        raise ImportError(
            "a report needs jinja2 and matplotlib: pip install 'streammetrics[report]'"
        ) from error
    environment = jinja.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja.StrictUndefined
    )
    environment.filters |= {"cell": shown, "text": _text}
    markup = jinja.utils.markupsafe.Markup
    template = environment.from_string(Path(__file__).with_name("page.html.j2").read_text("utf-8"))
    drawn = [(each, markup(each.svg)) for each in figures(found)]
    maths = {
        name: (markup(set_formula(typed)), markup(set_letters(str(markup.escape(of)))))
        for name, (typed, of) in formulas(found).items()
    }
    page: str = template.render(
        title=title or _titled(found), made=MADE, version=_version(), found=found,
        sections=_sections(found), figures=drawn, glossary=glossary(found), formulas=maths,
        notes=_notes(found),
        reports=found.results.models, level=f"{100 * found.confidence:.10g} %",
    )  # fmt: skip
    return page


def as_document(found: Findings, title: str = "") -> str:
    """Return the same content as JSON: every value, limit, slice and difference, in full.

    Long curves are told in points at equal distances, as the tables beside pictures are, and a
    remark says of how many: whole, one of a million rows would be a hundred megabytes.
    """
    results = json.loads(as_json(found.results))
    models = results.get("models", {"": results})
    remarks = [remark for name, model in models.items() for remark in _told_in_points(name, model)]
    over_time = {name: plain(course.document()) for name, course in found.courses.items()}
    document = {
        "made_by": MADE,
        "version": _version(),
        "title": title or _titled(found),
        "confidence": found.confidence,
        **results,
        **({"over_time": over_time} if over_time else {}),
        "glossary": glossary(found),
        "formulas": {name: ", with ".join(filter(None, f)) for name, f in formulas(found).items()},
        "remarks": [*found.notes, *remarks],
    }
    return json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def _told_in_points(model: str, document: Document) -> Iterator[str]:
    """Leave points of long curves out of a model's document, and say of which there were more."""
    of = f" of {model}" if model else ""
    for name, entry in document["metrics"].items():
        most = max(_fewer(entry, side) for side in _SIDES)
        if most > _POINTS:
            yield (
                f"{name}{of}: {_POINTS} of up to {most:,} points of a curve, at equal distances; "
                "streammetrics show --json has all"
            )


def _fewer(holder: Json, key: Json) -> int:
    """Thin the curves that stand at a place, and return how many points the longest had."""
    value = holder.get(key) if isinstance(holder, dict) else holder[key]
    if not isinstance(value, dict | list):
        return 0
    if isinstance(value, list) or not all(isinstance(each, list) for each in value.values()):
        inner = range(len(value)) if isinstance(value, list) else value
        return max((_fewer(value, at) for at in inner), default=0)
    size = max(map(len, value.values()), default=0)
    if size > _POINTS:
        places = [round(k * (size - 1) / (_POINTS - 1)) for k in range(_POINTS)]
        for title, each in value.items():  # the last point of a curve may have no threshold
            value[title] = [each[at] for at in places if at < len(each)]
    return size


def glossary(found: Findings) -> dict[str, str]:
    """Return what each metric is, in a line, and the words of the page."""
    told = {}
    for subject in found.subjects:
        for name, metric in subject.metrics.items():
            summary = (type(metric).__doc__ or "").strip().partition("\n")[0]
            told[name] = summary.replace("``", "").replace("`", "")
    return {**told, **_WORDS}


def formulas(found: Findings) -> dict[str, tuple[str, str]]:
    """Return the formula of each metric that says one, as typed, and what its letters are."""
    metrics = {name: metric for each in found.subjects for name, metric in each.metrics.items()}
    told = {name: formula(type(metric)) for name, metric in metrics.items()}
    return {name: parts for name, parts in told.items() if parts[0]}


_WORDS = {
    "exact": "The value is what all rows at once would give, to the last bit.",
    "certainly within": "Limits that hold the exact value for certain, where memory was bounded.",
    "confidence": (
        "Limits that hold the value of the population in this share of all samples of rows; "
        "it says how sure one can be, not how good the model is."
    ),
    "omitted": "Rows that were left out because a value was missing.",
    "checksum": "Of the state that the report was made of: the same rows give the same one.",
}


def _titled(found: Findings) -> str:
    names = [subject.name for subject in found.subjects]
    if names == ["model"]:
        return "How good the model is"
    return " and ".join(names) if len(names) < 3 else f"{len(names)} models"


def _sections(found: Findings) -> dict[str, list[Grid]]:
    """Return the tables of the terminal under the questions that they answer."""
    names = {name for subject in found.subjects for name in subject.metrics}
    first, *rest = (_narrow(grid, names) for grid in grids(found.results))
    sections: dict[str, list[Grid]] = {"How good, and how sure": [first]}
    for name, course in found.courses.items():
        of = f" of {name}" if len(found.subjects) > 1 else ""
        sections.setdefault("Over time", []).extend(course.grids(of))
    for grid in rest:
        of_slices = grid.title.startswith(_SLICES)
        question = "For whom" if of_slices else "In detail"
        question = DUEL if grid.title.startswith(DUEL) else question
        sections.setdefault(question, []).append(grid)
    sections.get("For whom", []).sort(key=lambda grid: grid.title.startswith("Slices"))
    return {name: sections[name] for name in _ORDER if name in sections}


def _narrow(grid: Grid, metrics: Container[str]) -> Grid:
    """Return a table without what a picture shows better: points of curves, a column for each.

    So that it fits a page, it has p in two digits, and no column of rows omitted where none are.
    """
    sliced = grid.title.startswith(_SLICES)
    none = {at for at, t in enumerate(grid.header) if t == "Omitted" and _are_zero(grid, at)}
    kept = [
        at
        for at, title in enumerate(grid.header)
        if at not in none and not (sliced and at not in grid.texts and _is_part(title, metrics))
    ]
    lines = [tuple(_cell(grid.header[at], line[at]) for at in kept) for line in grid.lines]
    texts = frozenset(new for new, at in enumerate(kept) if at in grid.texts)
    title = grid.title.replace("--json or --csv has all", "the JSON has all")
    worst = grid.title.startswith("Worst by")  # whose columns are ours to name
    header = (_ENDS.sub(r" \1", grid.header[at]) if worst else grid.header[at] for at in kept)
    return Grid(title, tuple(header), lines, texts)


def _is_part(title: str, metrics: Container[str]) -> bool:
    """Tell whether a column is a part of a metric's value, ``cm_0/1``, not a metric ``val/f1``."""
    ends = [at for at in range(1, len(title) + 1) if title[:at] in metrics]
    return "/" in title[max(ends, default=0) :]


def _are_zero(grid: Grid, column: int) -> bool:
    return all(line[column] == "0" for line in grid.lines)


def _cell(title: str, text: str) -> str:
    if title in {"p", "p_adjusted"}:
        with suppress(ValueError):  # "undefined", "< 1e-300"
            return f"{float(text):.2g}"
    text = "see below" if text == "below" else text.replace("see --json", "see below")
    return text.partition(DETAIL)[0]


def _notes(found: Findings) -> list[str]:
    return [*found.results.notes, *found.notes, *_undrawn(found)]


def _undrawn(found: Findings) -> Iterator[str]:
    """Yield what is said where not all values by slice are drawn."""
    several = len(found.subjects) > 1
    for subject in found.subjects:
        names = sliced_metrics(subject, found)
        if len(names) > SLICED:
            of = f" of {subject.name}" if several else ""
            drawn = ", ".join(names[:SLICED])
            yield f"By slice{of}, {drawn} are drawn; all {len(names)} metrics are in the table."


def _text(value: object) -> str:
    """Return what is told of a state as text."""
    if isinstance(value, dict):
        return ", ".join(f"{key}: {item}" for key, item in value.items()) or "as they are called"
    if isinstance(value, list | tuple):
        return "; ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value)


def _version() -> str:
    metadata = importlib.import_module("importlib.metadata")  # which is slow to import
    try:
        return str(metadata.version("streammetrics"))
    except metadata.PackageNotFoundError:  # run from a checkout
        return "not installed"
