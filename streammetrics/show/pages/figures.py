"""Pictures as SVG inside of a page: text stays text, and colours are the page's, light or dark."""

from __future__ import annotations

import io
import re
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streammetrics.core.confidence import Asked, confidence_of
from streammetrics.core.errors import StreamMetricsError, UndefinedMetricWarning
from streammetrics.core.results.curves import Curves
from streammetrics.core.results.labelled import LabelledArray
from streammetrics.core.results.pictures import drawn
from streammetrics.core.results.result import Result
from streammetrics.core.results.table import Table
from streammetrics.core.results.values import KeyedValues, Report
from streammetrics.metrics.distributions import Distribution
from streammetrics.metrics.scores.curves import PRPoints, ROCPoints
from streammetrics.show.pictures import series as courses
from streammetrics.show.pictures.canvas import COLOURS, GREY, Sheet, library
from streammetrics.show.pictures.forests import metrics_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from streammetrics.core.metric import Metric
    from streammetrics.show.pages.subjects import Findings, Subject

_INK, _LINE = "#1a2b3c", "#a1b2c3"  # stand-ins, each for a colour of the page
_ROWS = 24  # of the table beside a curve
_LARGE = 60_000  # characters of a picture
_MOST = 16  # pictures
_ALL = 330_000  # characters of all of them and their tables, so that a page has half a megabyte
SLICED = 4  # metrics whose slices, or whose course over time, are drawn
_KINDS: dict[type, tuple[str | None, ...]] = {ROCPoints: ("roc",), PRPoints: ("pr", "thresholds")}
_STYLE = {
    "svg.hashsalt": "streammetrics", "text.color": _INK, "axes.labelcolor": _INK,
    "axes.edgecolor": _INK, "xtick.color": _INK, "ytick.color": _INK,
    "axes.facecolor": "none", "figure.facecolor": "none", "grid.color": _LINE,
    "font.family": "sans-serif", "font.size": 10.0,
}  # fmt: skip


@dataclass(frozen=True)
class Figure:
    """A picture, what it shows, and the numbers it was drawn of."""

    title: str
    svg: str
    header: tuple[str, ...]
    lines: list[tuple[object, ...]]
    more: int  # lines that are left out

    @property
    def size(self) -> int:
        """Some number of characters that it takes of a page."""
        return len(self.svg) + sum(len(str(cell)) + 10 for line in self.lines for cell in line)


def figures(found: Findings) -> Iterator[Figure]:
    """Yield the pictures of all models: what their values are read from, slices, differences."""
    number = size = 0
    for draw in _drawings(found):
        if number == _MOST:
            return
        figure = draw(number)
        if figure is not None and (larger := size + figure.size) <= _ALL:
            number, size = number + 1, larger
            yield figure


def _drawings(found: Findings) -> Iterator[Callable[[int], Figure | None]]:
    several = len(found.subjects) > 1
    if found.differences:
        differences = found.differences
        yield lambda at: _figure("Differences of models", differences, differences._table(), at)
    for subject in found.subjects:
        of = f", {subject.name}" if several else ""
        yield from _course(subject, found, of)
        yield from _slices(subject, found, of)
        yield from _metrics(subject, found.confidence, of)


def _course(subject: Subject, found: Findings, of: str) -> Iterator[Callable[[int], Figure | None]]:
    course = found.courses.get(subject.name)
    if course is None:
        return
    for metric in courses.metrics_of(course.series)[:SLICED]:
        title = f"{metric} over time, {course.every} each{of}"
        table = _only(course.series._table(), metric, "time", "coverage")
        yield lambda at, t=title, told=table, m=metric: _figure(  # type: ignore[misc]  # they are bound at once
            t, course.series, told, at, metric=m
        )


def _slices(subject: Subject, found: Findings, of: str) -> Iterator[Callable[[int], Figure | None]]:
    sliced = found.results.models[subject.name].slices
    if sliced is None or not len(sliced.table):
        return
    names, state = sliced_metrics(subject, found)[:SLICED], sliced.read._accumulator.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = sliced.read._read(state, found.confidence, anytime=False, only=names)
    keys = list(table)[: list(table).index("n_rows")]
    for metric in names:
        yield lambda at, metric=metric: _figure(  # type: ignore[misc]  # it is bound at once
            f"{metric} by slice{of}", table, _only(table._told(), metric, *keys), at, metric=metric
        )


def sliced_metrics(subject: Subject, found: Findings) -> list[str]:
    """Return the metrics that are one number in each slice."""
    sliced = found.results.models[subject.name].slices
    titles = [] if sliced is None else metrics_of(sliced.table)
    metrics = subject.metrics
    return [title for title in titles if title in metrics]


def _only(table: Table, metric: str, *beside: str) -> Table:
    """Return all rows with what is known of one metric."""
    told = {"n_rows", metric, f"{metric}_low", f"{metric}_high", *beside}
    return Table(table.index, {name: c for name, c in table.columns.items() if name in told})


def _metrics(
    subject: Subject, confidence: float, of: str
) -> Iterator[Callable[[int], Figure | None]]:
    done: set[object] = set()
    for name, metric in sorted(subject.metrics.items(), key=lambda item: _rank(item[1])):
        try:
            value = metric._shape(*metric._read())
        except (TypeError, StreamMetricsError):
            continue
        first = value[0] if isinstance(value, Curves) and value else value
        many = isinstance(first, LabelledArray) and first.ndim > 2
        if many or drawn.dispatch(type(first)) is drawn.dispatch(object):
            continue  # there is no such picture
        own = isinstance(first, LabelledArray | Report | KeyedValues)
        key = name if own else (type(first), *(s._key for s in metric.statistics()))
        if key in done:  # as it is drawn of another metric that reads the same
            continue
        done.add(key)
        for kind in _KINDS.get(type(first), (None,)):
            if kind == "thresholds" and isinstance(value, Curves):
                continue
            title = _titled(name, first, kind) + of
            yield lambda at, m=metric, v=value, k=kind, t=title: _figure(  # type: ignore[misc]  # they are bound at once
                t, m, v._table(), at, kind=k, **_sure(m, v, confidence)
            )


def _rank(metric: Metric) -> bool:
    """Put what is a curve itself before what is only read from one: it has bounds."""
    return not isinstance(metric.readout(*metric._read()), Result)


def _titled(name: str, value: object, kind: str | None) -> str:
    known = {"roc": "ROC", "pr": "Precision and recall", "thresholds": "Thresholds"}
    if kind in known:
        return known[kind]
    return f"Quantiles of {name}" if isinstance(value, Distribution) else name


def _sure(metric: Metric, value: object, confidence: float) -> dict[str, object]:
    """Return the confidence that a picture is asked for, nothing where there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        read, curve = metric._read(), metric._pictured()
        try:
            if isinstance(curve.readout(*read), type(value)):
                confidence_of(curve, Asked(confidence, anytime=False, n_rows=metric.n_rows), *read)
                return {"confidence": confidence}
        except StreamMetricsError:
            pass
    return {}


def _figure(title: str, what: Any, table: Table, number: int, **options: Any) -> Figure | None:
    """Draw something, or return None where the picture would be too large."""
    sheet = Sheet()
    with library("").rc_context(_STYLE), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if "metric" in options:  # slices, whose table has the limits
            what.plot(sheet, **options)
        else:
            what.plot(sheet, **{k: v for k, v in options.items() if v is not None})
        out = io.StringIO()
        sheet.figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    svg = _inline(out.getvalue(), title, number)
    if len(svg) > _LARGE:
        return None
    header, lines, more = _lines(table)
    return Figure(title, svg, header, lines, more)


def _inline(text: str, title: str, number: int) -> str:
    """Return an SVG file as a part of a page, in its colours, with names of its own."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    width, height = re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', text)[0]
    text = re.sub(r"<svg[^>]*>", "", text, count=1)
    text = re.sub(r'(id=")([^"]+)', rf"\1f{number}-\2", text)
    text = re.sub(r'(href="#|url\(#)', rf"\1f{number}-", text)
    colours = {_INK: "--ink", _LINE: "--line", GREY: "--dim"}
    colours |= {colour: f"--c{place}" for place, colour in enumerate(COLOURS)}
    for colour, name in colours.items():
        text = text.replace(colour.lower(), f"var({name})")
    text = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", text)
    text = re.sub(r"\n\s*", "\n", text)
    return (
        f'<svg xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 {width} {height}" '
        f'style="max-width: {1.35 * float(width):.0f}px" role="img" '
        f'aria-labelledby="f{number}-title"><title id="f{number}-title">{_escaped(title)}</title>'
        f"{text}"
    )


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _lines(table: Table) -> tuple[tuple[str, ...], list[tuple[object, ...]], int]:
    """Return a table as text, of a long one lines at equal distances, the first and last too."""
    titles = (*table.index, *table.columns)
    columns = [*table.index.values(), *table.columns.values()]
    size = len(table)
    if size > _ROWS:
        places = sorted({round(k * (size - 1) / (_ROWS - 1)) for k in range(_ROWS)})
    else:
        places = list(range(size))
    lines = [tuple(column[at] for column in columns) for at in places]
    return tuple(map(str, titles)), lines, size - len(places)
