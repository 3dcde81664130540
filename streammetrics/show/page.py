"""HTML reports: one file for one or more states, including live ones over time."""

from __future__ import annotations

import hashlib
import importlib
import io
import json
import re
import warnings
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streammetrics.core.confidence import ConfidenceRequest, confidence_of
from streammetrics.core.errors import StreamMetricsError, undefined_expected
from streammetrics.core.metric import Metric
from streammetrics.core.metric_set import MetricSet
from streammetrics.core.registry import VERSION
from streammetrics.core.results.hooks import reported
from streammetrics.core.results.table import Table, shown
from streammetrics.core.results.values import Curves
from streammetrics.core.state.files import write_whole
from streammetrics.inference.comparison import Comparison, compare
from streammetrics.inference.estimated import Estimated
from streammetrics.ledger import Ledger
from streammetrics.live.events import duration, shown_duration, shown_time
from streammetrics.live.live import Live
from streammetrics.live.panes import TOLD
from streammetrics.live.spans import Number, numbers_of
from streammetrics.metrics.distributions import Distribution
from streammetrics.metrics.scores.base import PRPoints, ROCPoints
from streammetrics.show.formats import DETAIL, DUEL, Grid, as_json, grids, plain
from streammetrics.show.formulas import formula, set_formula, set_letters
from streammetrics.show.pictures.canvas import COLOURS, GREY, Sheet, library
from streammetrics.show.pictures.curves import pictures, together
from streammetrics.show.pictures.values import metrics_of, metrics_of_series
from streammetrics.show.report import ModelReports, Sliced, number, report
from streammetrics.slices.slices import Slices

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Container, Iterator, Mapping, Sequence
    from datetime import datetime

    from streammetrics.core.results.differences import Differences
    from streammetrics.core.results.values import Interval
    from streammetrics.core.types import Document, Json
    from streammetrics.live.alerts.rule import Alerts, Rule
    from streammetrics.live.events import Tier
    from streammetrics.live.panes import Coverage
    from streammetrics.live.queries import Series
    from streammetrics.show.report import ModelReport


_INK, _LINE = "#1a2b3c", "#a1b2c3"  # placeholders, replaced by colours of the page
_ROWS = 24  # rows of the table beside a curve
_LARGE = 60_000  # maximum characters of a picture
_MOST = 16  # maximum number of pictures
_ALL = 330_000  # characters of all pictures and tables, which keeps a page to about 0.5 MB
SLICED = 4  # number of metrics drawn by slice or over time
_KINDS: dict[type, tuple[str | None, ...]] = {ROCPoints: ("roc",), PRPoints: ("pr", "thresholds")}
_STYLE = {
    "svg.hashsalt": "streammetrics", "text.color": _INK, "axes.labelcolor": _INK,
    "axes.edgecolor": _INK, "xtick.color": _INK, "ytick.color": _INK,
    "axes.facecolor": "none", "figure.facecolor": "none", "grid.color": _LINE,
    "font.family": "sans-serif", "font.size": 10.0,
}  # fmt: skip


@dataclass(frozen=True)
class Figure:
    """A picture, its title, and the table of its numbers."""

    title: str
    svg: str
    header: tuple[str, ...]
    lines: list[tuple[object, ...]]
    more: int  # number of lines left out of the table

    @property
    def size(self) -> int:
        """The approximate number of characters that it adds to the page."""
        return len(self.svg) + sum(len(str(cell)) + 10 for line in self.lines for cell in line)


def figures(found: Findings) -> Iterator[Figure]:
    """Yield the pictures of all models: differences, time series, slices, and curves and tables."""
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
        yield partial(_figure, "Differences of models", differences, differences._table())
    if several:
        for name, curves in together({each.name: each.metrics for each in found.subjects}):
            title = _figure_title(name, curves[0], _KINDS.get(type(curves[0]), (None,))[0])
            yield partial(_figure, f"{title} of all models", curves, curves._table())
    for subject in found.subjects:
        of = f", {subject.name}" if several else ""
        yield from _timeline(subject, found, of)
        yield from _slices(subject, found, of)
        yield from _metrics(subject, found.confidence, of)


def _timeline(
    subject: Subject, found: Findings, of: str
) -> Iterator[Callable[[int], Figure | None]]:
    timeline = found.timelines.get(subject.name)
    if timeline is None:
        return
    for metric in metrics_of_series(timeline.series)[:SLICED]:
        title = f"{metric} over time, {timeline.every} each{of}"
        table = _only(timeline.series._table(), metric, "time", "coverage")
        yield partial(_figure, title, timeline.series, table, metric=metric)


def _slices(subject: Subject, found: Findings, of: str) -> Iterator[Callable[[int], Figure | None]]:
    sliced = found.results.models[subject.name].slices
    if sliced is None or not len(sliced.table):
        return
    names, state = sliced_metrics(subject, found)[:SLICED], sliced.read._accumulator.flush()
    with warnings.catch_warnings(action="ignore"):
        table = sliced.read._read(state, found.confidence, anytime=False, only=names)
    keys = list(table)[: list(table).index("n_rows")]
    for metric in names:
        told = _only(table._told(), metric, *keys)
        yield partial(_figure, f"{metric} by slice{of}", table, told, metric=metric)


def sliced_metrics(subject: Subject, found: Findings) -> list[str]:
    """Return the metrics whose value in each slice is a single number."""
    sliced = found.results.models[subject.name].slices
    titles = [] if sliced is None else metrics_of(sliced.table)
    metrics = subject.metrics
    return [title for title in titles if title in metrics]


def _only(table: Table, metric: str, *beside: str) -> Table:
    """Return the columns of one metric, for all rows."""
    told = {"n_rows", metric, f"{metric}_low", f"{metric}_high", *beside}
    return Table(table.index, {name: c for name, c in table.columns.items() if name in told})


def _metrics(
    subject: Subject, confidence: float, of: str
) -> Iterator[Callable[[int], Figure | None]]:
    for picture in pictures(subject.metrics):
        name, metric, value = picture
        first = picture.first
        for kind in _KINDS.get(type(first), (None,)):
            if kind == "thresholds" and isinstance(value, Curves):
                continue
            title = _figure_title(name, first, kind) + of
            sure = _sure(metric, value, confidence)
            yield partial(_figure, title, metric, value._table(), kind=kind, **sure)


def _figure_title(name: str, value: object, kind: str | None) -> str:
    known = {"roc": "ROC", "pr": "Precision and recall", "thresholds": "Thresholds"}
    if kind in known:
        return known[kind]
    return f"Quantiles of {name}" if isinstance(value, Distribution) else name


def _sure(metric: Metric, value: object, confidence: float) -> Document:
    """Return the `confidence` option of a picture, or {} if the metric has no confidence limits."""
    with undefined_expected():
        read, curve = metric._read(), metric._pictured()
        try:
            if isinstance(curve.readout(*read), type(value)):
                confidence_of(
                    curve, ConfidenceRequest(confidence, anytime=False, n_rows=metric.n_rows), *read
                )
                return {"confidence": confidence}
        except StreamMetricsError:
            pass
    return {}


def _figure(title: str, what: Any, table: Table, number: int, **options: object) -> Figure | None:
    """Draw a picture; return None if it is too large."""
    sheet = Sheet()
    with library("").rc_context(_STYLE), warnings.catch_warnings(action="ignore"):
        what.plot(sheet, **{k: v for k, v in options.items() if v is not None})
        out = io.StringIO()
        sheet.figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    svg = _inline(out.getvalue(), title, number)
    if len(svg) > _LARGE:
        return None
    header, lines, more = _lines(table)
    return Figure(title, svg, header, lines, more)


def _inline(text: str, title: str, number: int) -> str:
    """Return an SVG file as an inline element with the page's colours and unique ids."""
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
        f'aria-labelledby="f{number}-title"><title id="f{number}-title">'
        f"{escape(title, quote=False)}</title>"
        f"{text}"
    )


def _lines(table: Table) -> tuple[tuple[str, ...], list[tuple[object, ...]], int]:
    """Return a table's header, rows and number of rows left out; long tables are sampled evenly."""
    titles = (*table.index, *table.columns)
    columns = [*table.index.values(), *table.columns.values()]
    size = len(table)
    if size > _ROWS:
        places = sorted({round(k * (size - 1) / (_ROWS - 1)) for k in range(_ROWS)})
    else:
        places = list(range(size))
    lines = [tuple(column[at] for column in columns) for at in places]
    return tuple(map(str, titles)), lines, size - len(places)


_WINDOWS = ("1h", "1d", "7d", "28d")  # window lengths that are reported if they are kept
_STEPS = ("1min", "5min", "15min", "1h", "3h", "6h", "12h", "1d", "7d", "28d")
_COURSE_POINTS = 60  # approximate maximum number of points of a series


@dataclass(frozen=True)
class Window:
    """The window that ends now: its values, their possible range, and its label coverage."""

    n_rows: int
    values: Mapping[str, Number]
    possible: Mapping[str, Interval | None]
    coverage: Coverage


@dataclass(frozen=True)
class Timeline:
    """The history of a live state.

    Attributes:
        every: Length of each window of the series.
        series: All windows since the earliest event kept.
        windows: Windows that end now, by length.
        alerts: State of each alert rule.
    """

    every: str
    series: Series
    windows: Mapping[str, Window]
    alerts: Alerts

    def grids(self, of: str) -> Iterator[Grid]:
        """Yield the tables of windows, labels and alerts."""
        names = list(dict.fromkeys(name for each in self.windows.values() for name in each.values))
        values = [
            (length, f"{each.n_rows:,}", *(number(each.values[name][0]) for name in names))
            for length, each in self.windows.items()
        ]
        yield Grid(f"Newest windows{of}", ("Window", "Rows", *names), values)
        if any(each.coverage.predicted for each in self.windows.values()):
            yield from self._labels(of, names)
        if self.alerts:
            lines: list[tuple[str, ...]] = [
                (each.name, each.state, _moment(each.since), each.why) for each in self.alerts
            ]
            header = ("Alert", "State", "Since (UTC)", "Why")
            yield Grid(f"Alerts{of}", header, lines, frozenset(range(4)))

    def _labels(self, of: str, names: Sequence[str]) -> Iterator[Grid]:
        header = tuple(f"Last {length}" for length in self.windows)
        found = [each.coverage for each in self.windows.values()]
        counts: list[tuple[str, ...]] = [
            (kind, *(f"{getattr(each, kind):,}" for each in found))
            for kind in TOLD
            if any(getattr(each, kind) for each in found)
        ]
        share = ("share labelled", *(f"{each.coverage:.1%}" for each in found))
        yield Grid(f"Labels of predictions{of}", ("Predictions", *header), [*counts, share])
        some = {n: each.possible for n, each in self.windows.items() if any(each.possible.values())}
        if some:
            lines: list[tuple[str, ...]] = [
                (name, *(_between(possible[name]) for possible in some.values())) for name in names
            ]
            title = f"What values may be once all labels are there{of}"
            yield Grid(title, ("Metric", *(f"Last {length}" for length in some)), lines)

    def document(self) -> Document:
        """Return the history in full, as JSON values."""
        windows = {
            length: {
                "n_rows": each.n_rows,
                "metrics": {
                    name: {
                        "value": value,
                        "low": low,
                        "high": high,
                        "possible": each.possible[name],
                    }
                    for name, (value, low, high, _) in each.values.items()
                },
                "coverage": each.coverage._asdict(),
            }
            for length, each in self.windows.items()
        }
        alerts = [each.to_dict() for each in self.alerts]
        return {"windows": windows, "every": self.every, "series": self.series, "alerts": alerts}


def timeline_of(live: Live, rules: Sequence[Rule]) -> Timeline:
    """Read the windows of a live state and the state of its alert rules."""
    begin, end = live._queries.extent()
    place, panes = _step(live._config.tiers, begin, end)
    every = shown_duration(panes * live._config.tiers[place].length)
    series = live._queries.series(live._queries.runs(place, panes, begin))
    return Timeline(every, series, dict(_windows(live, end - begin)), live.alerts(rules))


def _windows(live: Live, lasted: int) -> Iterator[tuple[str, Window]]:
    """Yield the windows that are kept, up to the first one that covers all events."""
    for length in _WINDOWS:
        try:
            window = live.window(length)
        except ValueError:  # no tier keeps this window
            continue
        values = numbers_of(window)
        possible = live.possible(length)
        if not isinstance(possible, dict):
            possible = dict.fromkeys(values, possible)
        yield length, Window(window.n_rows, values, possible, live.coverage(length))
        if duration(length, "window") >= lasted:
            return


def _step(tiers: Sequence[Tier], begin: int, end: int) -> tuple[int, int]:
    """Return the tier of the series and the panes per window, chosen to keep the points few."""
    reaching = [at for at, tier in enumerate(tiers) if tier.start(tier.oldest(end)) <= begin]
    place = min(reaching, default=len(tiers) - 1)
    length = tiers[place].length
    steps = sorted({length, *(duration(step, "every") for step in _STEPS)})
    fitting = [step for step in steps if step % length == 0]
    few = [step for step in fitting if end - begin <= _COURSE_POINTS * step]
    return place, (few or fitting[-1:])[0] // length


def _moment(time: datetime | None) -> str:
    return f"{time:%Y-%m-%d %H:%M}" if time else ""


def _between(limits: Interval | None) -> str:
    return "" if limits is None else f"{number(limits.low)} .. {number(limits.high)}"


UNPAIRED = "The models were measured on different rows, which is the weaker test."


@dataclass(frozen=True)
class Subject:
    """One model: its metrics or slices, and their source."""

    name: str
    state: Metric | MetricSet
    about: Mapping[str, Json] = field(default_factory=dict)

    @cached_property
    def metrics(self) -> dict[str, Metric]:
        """The metrics by name, computed on all rows."""
        if isinstance(self.state, Metric):
            return {type(self.state).__name__: self.state}
        whole = self.state[{}] if isinstance(self.state, Slices) else self.state
        return {name: whole[name] for name in whole}


@dataclass(frozen=True)
class Findings:
    """The content of a report: the subjects, their values, and the differences between models."""

    subjects: Sequence[Subject]
    results: ModelReports
    confidence: float
    notes: Sequence[str]
    timelines: Mapping[str, Timeline] = field(default_factory=dict)  # live states only

    @property
    def differences(self) -> Differences | None:
        """The differences between models, if there are several."""
        return self.results.differences


def subjects_of(name: str, state: Any, about: Mapping[str, object]) -> list[Subject]:
    """Return the models of a state: all models of a comparison, otherwise a single one."""
    told = dict(about)
    if isinstance(state, Ledger):
        told["shards"] = len(state.ids)
        state = state.merged()
    if isinstance(state, Live):
        begin, end = state._queries.extent()
        told["from"], told["until"] = shown_time(begin), shown_time(end)
        state = state._suite._at(state._queries.whole())
    if isinstance(state, Estimated):
        raise StreamMetricsError("an Estimated has no page: show it, or read its two sides alone")
    told["checksum"] = f"sha256:{hashlib.sha256(state.to_bytes()).hexdigest()}"
    if not isinstance(state, Metric):
        told["columns"] = dict(state.columns)
    if isinstance(state, Slices):
        told["sliced by"] = [", ".join(map(str, spec)) for spec in state.by if spec]
    if isinstance(state, Comparison):
        return [Subject(model, state[model], told) for model in state]
    return [Subject(name, state, told)]


def findings(
    states: Mapping[str, object],
    about: Mapping[str, Mapping[str, Json]],
    *,
    confidence: float,
    min_rows: int = 0,
    rules: Mapping[str, Sequence[Rule]] | None = None,
) -> Findings:
    """Read every state, and compare the states if there are several.

    Args:
        states: The states to report, by name.
        about: Further facts about each state, by name.
        confidence: The confidence level of the limits.
        min_rows: Minimum rows of a slice; smaller slices are left out.
        rules: Alert rules of live states, by name.

    Raises:
        StreamMetricsError: A metric cannot be computed from the rows seen.
    """
    subjects = [s for name, state in states.items() for s in subjects_of(name, state, about[name])]
    notes: list[str] = []
    reports = {each.name: _report(each, confidence, min_rows) for each in subjects}
    differences = _differences(states, subjects, confidence, notes)
    timelines = {
        name: timeline_of(state, (rules or {}).get(name, ()))
        for name, state in states.items()
        if isinstance(state, Live)
    }
    return Findings(subjects, ModelReports(reports, differences), confidence, notes, timelines)


def _report(subject: Subject, confidence: float, min_rows: int) -> ModelReport:
    state, sliced = subject.state, None
    if isinstance(state, Slices):
        by = next((n for n, m in subject.metrics.items() if _is_rankable(m)), None)
        worst = None
        if by is not None:
            try:
                worst = state.worst(by, min_rows=min_rows, confidence=confidence)
            except StreamMetricsError:  # the metric has no limits to rank by
                worst = state.worst(by, min_rows=min_rows, confidence=None)
        sliced = Sliced.of(state, min_rows, by, worst)
    return report(state, subject.about, slices=sliced, confidence=confidence)


def _is_rankable(metric: Metric) -> bool:
    if metric.higher_is_better is None:
        return False
    with undefined_expected():
        return isinstance(metric.compute(), int | float)


def _differences(
    states: Mapping[str, object], subjects: Sequence[Subject], confidence: float, notes: list[str]
) -> Differences | None:
    """Return the differences: paired for a comparison, else between the first model and others."""
    (first, *others) = states.values()
    if not others:
        return first.compute(confidence) if isinstance(first, Comparison) and first.n_rows else None
    one, *rest = subjects
    lines: Differences | None = None
    rows = {one.name: one.state.n_rows}
    for other in rest:
        with warnings.catch_warnings(record=True, action="always") as caught:
            try:
                names = one.name, other.name
                found = compare(
                    _plain(one), _plain(other), confidence=confidence, names=names
                )  # fmt: skip
            except (StreamMetricsError, TypeError, ValueError) as error:
                notes.append(f"{one.name} and {other.name} are not compared: {error}")
                continue
        notes += [str(warning.message) for warning in caught]
        rows[other.name] = other.state.n_rows
        lines = type(found)([*(lines or ()), *found], confidence, rows)
    if lines is not None:
        notes.append(UNPAIRED)
    return lines


def _plain(subject: Subject) -> Any:
    state = subject.state
    return state[{}] if isinstance(state, Slices) else state


_ENDS = re.compile("_(low|high|rest|adjusted)$")  # of column names; a page breaks the line there
_POINTS = 500  # maximum points of a curve in JSON
_SIDES = ("value", "low", "high", "confidence")
MADE = "streammetrics report"
_ANSWERS = {"differences": DUEL, "slices": "For whom", "worst": "For whom", "values": "In detail"}
_ORDER = ("How good, and how sure", "Over time", DUEL, "For whom", "In detail")


def as_page(found: Findings, title: str = "") -> str:
    """Return the report as HTML.

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
        title=title or _titled(found), made=MADE, version=VERSION, found=found,
        sections=_sections(found), figures=drawn, glossary=glossary(found), formulas=maths,
        notes=_notes(found),
        reports=found.results.models, level=f"{100 * found.confidence:.10g} %",
    )  # fmt: skip
    return page


def as_document(found: Findings, title: str = "") -> str:
    """Return the same content as JSON: every value, limit, slice and difference, in full.

    Curves of more than 500 points are sampled evenly, and a remark gives their full length. In
    full, a curve of a million rows would take about 100 MB.
    """
    results = json.loads(as_json(found.results))
    models = results.get("models", {"": results})
    remarks = [remark for name, model in models.items() for remark in _told_in_points(name, model)]
    over_time = {name: plain(timeline.document()) for name, timeline in found.timelines.items()}
    document = {
        "made_by": MADE,
        "version": VERSION,
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
    """Sample the long curves of a model's document in place, and yield a remark on each."""
    of = f" of {model}" if model else ""
    for name, entry in document["metrics"].items():
        most = max(_fewer(entry, side) for side in _SIDES)
        if most > _POINTS:
            yield (
                f"{name}{of}: {_POINTS} of up to {most:,} points of a curve, at equal distances; "
                "streammetrics show --json has all"
            )


def _fewer(holder: Json, key: Json) -> int:
    """Sample the curves at `key` in place, and return the number of points of the longest."""
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
    """Return a one-line description of each metric and of each term on the page."""
    told = {}
    for subject in found.subjects:
        for name, metric in subject.metrics.items():
            summary = (type(metric).__doc__ or "").strip().partition("\n")[0]
            told[name] = summary.replace("``", "").replace("`", "")
    return {**told, **_WORDS}


def formulas(found: Findings) -> dict[str, tuple[str, str]]:
    """Return the formula, as typed, and its legend for each metric that documents one."""
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
    """Group the tables that the terminal shows under the questions that they answer."""
    names = {name for subject in found.subjects for name in subject.metrics}
    first, *rest = (_narrow(grid, names) for grid in grids(found.results))
    sections: dict[str, list[Grid]] = {"How good, and how sure": [first]}
    for name, timeline in found.timelines.items():
        of = f" of {name}" if len(found.subjects) > 1 else ""
        sections.setdefault("Over time", []).extend(timeline.grids(of))
    for grid in rest:
        sections.setdefault(_ANSWERS[grid.shows], []).append(grid)
    sections.get("For whom", []).sort(key=lambda grid: grid.shows == "slices")
    return {name: sections[name] for name in _ORDER if name in sections}


def _narrow(grid: Grid, metrics: Container[str]) -> Grid:
    """Return a table without columns that a picture shows better, e.g. one for each curve point.

    To fit the page, p-values have two digits, and the column of omitted rows is dropped if it is
    all zeros.
    """
    sliced = grid.shows in {"slices", "worst"}
    omitted = [at for at, title in enumerate(grid.header) if title == "Omitted"]
    none = {at for at in omitted if all(line[at] == "0" for line in grid.lines)}
    kept = [
        at
        for at, title in enumerate(grid.header)
        if at not in none and not (sliced and at not in grid.texts and _is_part(title, metrics))
    ]
    lines = [tuple(_cell(grid.header[at], line[at]) for at in kept) for line in grid.lines]
    texts = frozenset(new for new, at in enumerate(kept) if at in grid.texts)
    worst = grid.shows == "worst"  # all its column names are generated here
    header = (_ENDS.sub(r" \1", grid.header[at]) if worst else grid.header[at] for at in kept)
    return Grid(grid.titled("the JSON"), tuple(header), lines, texts, grid.shows)


def _is_part(title: str, metrics: Container[str]) -> bool:
    """Return whether a column is part of a value, as ``cm_0/1``, and not a metric ``val/f1``."""
    ends = [at for at in range(1, len(title) + 1) if title[:at] in metrics]
    return "/" in title[max(ends, default=0) :]


def _cell(title: str, text: str) -> str:
    if title in {"p", "p_adjusted"}:
        with suppress(ValueError):  # "undefined", "< 1e-300"
            return f"{float(text):.2g}"
    text = "see below" if text == "below" else text.replace("see --json", "see below")
    return text.partition(DETAIL)[0]


def _notes(found: Findings) -> list[str]:
    return [*found.results.notes, *found.notes, *_undrawn(found)]


def _undrawn(found: Findings) -> Iterator[str]:
    """Yield a note for each subject of which only some metrics are drawn by slice."""
    several = len(found.subjects) > 1
    for subject in found.subjects:
        names = sliced_metrics(subject, found)
        if len(names) > SLICED:
            of = f" of {subject.name}" if several else ""
            drawn = ", ".join(names[:SLICED])
            yield f"By slice{of}, {drawn} are drawn; all {len(names)} metrics are in the table."


def _text(value: object) -> str:
    """Return a value of `about` as text."""
    if isinstance(value, dict):
        return ", ".join(f"{key}: {item}" for key, item in value.items()) or "as they are called"
    if isinstance(value, list | tuple):
        return "; ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value)


@reported.register(Metric)
@reported.register(MetricSet)
@reported.register(Live)
def write_report(
    state: Metric | MetricSet | Live,
    path: str | os.PathLike[str],
    *,
    title: str,
    confidence: float,
    rules: Sequence[Rule] = (),
) -> None:
    """Write the report of one state; the file is replaced atomically."""
    found = findings({"model": state}, {"model": {}}, confidence=confidence, rules={"model": rules})
    write_whole(path, as_page(found, title).encode(errors="backslashreplace"))
