"""The service's answers about its metrics, as JSON values."""

from __future__ import annotations

import json
import math
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streammetrics.core.errors import (
    StreamMetricsError,
    undefined_expected,
)
from streammetrics.core.metric import read_together
from streammetrics.live.alerts.rule import source_of
from streammetrics.live.events import (
    SECOND,
    SliceKeys,
    duration,
    shown_duration,
    shown_time,
)
from streammetrics.live.pairing import paired
from streammetrics.live.panes import same, size_of
from streammetrics.live.pipeline import merged
from streammetrics.live.queries import Wholes
from streammetrics.live.spans import (
    ALONE,
    Number,
    bounds_of,
    confidence_of,
    metrics_of,
    number_of,
    slice_columns,
    span_of,
    spans_of,
)
from streammetrics.slices.bins import title_of
from streammetrics.slices.slices import Slices

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from streammetrics.core.feeding.states import State
    from streammetrics.core.mergeable import Mergeable
    from streammetrics.core.metric import Metric
    from streammetrics.core.types import Document, Json
    from streammetrics.live.alerts.rule import Alerts
    from streammetrics.live.events import Tier
    from streammetrics.live.panes import Coverage
    from streammetrics.live.possible.judged import EstimatedValue
    from streammetrics.live.queries import Queries, WindowRead
    from streammetrics.live.service.delivery import Deliverer
    from streammetrics.live.service.server import PageView
    from streammetrics.live.spans import Span

LEVEL = 0.95  # confidence level
POINTS = 1000  # maximum points of a series in one request
BYTES = 1 << 28  # maximum bytes of states that a request may merge, which takes some seconds
FRESH = 0.5  # seconds that a request of the page reads windows that were never read before
_SLICES = 500  # maximum rows of a table
_LENGTHS = ("1min", "5min", "15min", "30min", "1h", "3h", "6h", "12h", "1d", "7d", "30d")
_SPANS = ("1h", "3h", "6h", "12h", "1d", "3d", "7d", "14d", "30d", "90d", "365d")


def view(queries: Queries, shown: PageView) -> Document:
    """Return what the page can show: windows, spans, groups, and the metrics of references."""
    tiers = queries.config.tiers
    lengths = {text: duration(text, "window") for text in (*_LENGTHS, shown.window, shown.every)}
    found = []
    for text in sorted(lengths, key=lengths.__getitem__):
        every = {}
        for other, length in lengths.items():
            with suppress(ValueError):  # no tier has such windows at this distance
                spans_of(tiers, text, other, -1, 0, 0)
                every[other] = length / SECOND
        if every:
            found.append({"window": text, "every": every})
    reach = max(tier.length * tier.count for tier in tiers)
    references = {
        title: {name: measured(metric) for name, metric in saved.items() if name in _names(queries)}
        for title, saved in shown.references
    }
    spans = {text: duration(text, "span") / SECOND for text in _SPANS}
    return {
        "title": shown.title,
        "window": shown.window,
        "every": shown.every,
        "windows": found,
        "spans": {text: seconds for text, seconds in spans.items() if seconds * SECOND <= reach},
        "groups": [{"title": title, "metrics": [*names]} for title, names in shown.groups],
        "references": references,
        "model": shown.model,
        "models": [*shown.models],
    }


def _names(queries: Queries) -> Collection[str]:
    return metrics_of(SliceKeys(queries.suite).inner)


def now(queries: Queries, view: PageView) -> Document:
    """Return the newest window: each metric with its intervals, and the label coverage."""
    window = queries.window(view.window)
    start, end = bounds_of(queries.config.tiers, queries.span(view.window))
    may_be, found = _possible(queries, view), {}
    if queries.config.declared.proxy is not None:
        found = _estimated(queries, view)
    metrics = {
        name: {**measured(metric), "possible": may_be[name], "estimated": found.get(name)}
        for name, metric in metrics_of(window).items()
    }
    return {
        "title": view.title,
        "window": view.window,
        "start": shown_time(start),
        "end": shown_time(end),
        "n_rows": window.n_rows,
        "metrics": metrics,
        "coverage": counted(queries.coverage(view.window)),
        "expired_early": queries.expired_early,
    }


def compared(models: Mapping[str, Queries], since: int) -> Document:
    """Return the differences of models to the first one, on the rows that all have predicted."""
    found = paired(models, since)
    told: Document = json.loads(
        json.dumps(found.differences.to_dict()), parse_constant=lambda _: None
    )
    return {
        **told,
        "models": [*models],
        "n_rows": found.n_rows,
        "labels_differ": found.labels_differ,
        "left_out": [*found.left_out],
    }


def check_window(queries: Queries, window: str) -> None:
    """Raise ValueError if no window has this length."""
    span_of(queries.config.tiers, window, -1, None, 0)


def check_series(
    queries: Queries, view: PageView, back: str | None, ago: str | None, only: str | None
) -> None:
    """Raise ValueError if parameters of a series cannot be read, or there are no such slices."""
    if only is not None:
        SliceKeys(queries.suite).shown(queries.suite._plan.start, ChosenSlice.read(only).by)
    spans_of(queries.config.tiers, view.window, view.every, -1, 0, 0)
    for text, name in ((back, "span"), (ago, "ago")):
        if text is not None:
            duration(text, name)


class CostError(StreamMetricsError, ValueError):
    """A read would cost too much; the message names the largest one that is allowed."""


def check_cost(queries: Queries, window: str, go_on: Callable[[], None]) -> None:
    """Raise `CostError` if the states of the newest window exceed the limit of a read.

    Args:
        queries: The live state.
        window: The length of the window.
        go_on: Called between two merges; raises if no client waits any more.
    """
    span = queries.span(window)
    cost = queries.cost(span, go_on)
    if cost <= BYTES:
        return
    least, most = 1, span.last - span.first + 1  # in panes: a single one is always allowed
    while most - least > 1:
        middle = (least + most) // 2
        good = queries.cost(span._replace(first=span.last - middle + 1), go_on) <= BYTES
        least, most = (middle, most) if good else (least, middle)
    longest = shown_duration(least * queries.config.tiers[span.place].length)
    if least < span.last - span.first + 1:
        raise CostError(
            f"a window of {window} would merge {_size(cost)} of states, and a request may merge "
            f"{_size(BYTES)}: the largest span is window={longest}"
        )


class WindowAnswers:
    """Series of windows; unchanged windows are not computed again.

    Args:
        other: Another series of the same rows, whose windows are not computed again either.
    """

    def __init__(self, other: WindowAnswers | None = None) -> None:
        self._other = other
        self._known: dict[Span, tuple[Sequence[State], WindowRow]] = {}

    def read(
        self,
        queries: Queries,
        view: PageView,
        back: str | None,
        go_on: Callable[[], None],
        *,
        whole: bool,
        ago: str | None = None,
        only: ChosenSlice | None = None,
    ) -> Iterator[Document | None]:
        """Yield ``None`` after each window, and at last the windows, with each metric as columns.

        The page gets the newest windows soon, and the next requests older ones, at least one each:
        `more` is true while there are some. A client that leaves loses nothing that was read.

        Args:
            queries: The live state.
            view: The length and the distance of the windows.
            back: How far back windows may end; ``None`` goes back to the first row.
            go_on: Called between two windows; raises if no client waits any more.
            whole: Whether to return all windows or raise, instead of the newest that a read may
                cost.
            ago: How much earlier the windows end; ``None`` for the newest ones.
            only: The slice to read; ``None`` for all rows.

        Raises:
            CostError: With `whole`, all windows cost more than a read may.
        """
        spans = queries.spans(view.window, view.every)
        spans = _within(queries.config.tiers, spans, back, ago)
        wanted = spans[-POINTS:]
        self._known = {span: self._known[span] for span in wanted if span in self._known}
        if whole:
            yield from self._check(queries, spans, view, go_on)
        cost, added, more = 0, False, False
        until = math.inf if whole else time.monotonic() + FRESH
        rows: list[WindowRow] = []
        wholes = Wholes(queries.suite)
        for found in queries.windows(reversed(wanted), go_on):
            row = self._known_row(found)
            if row is None:
                is_new = found.span not in self._known
                cost += size_of(found.parts)
                more = is_new and added and time.monotonic() >= until
                added |= is_new
                if more or (cost > BYTES and rows and not whole):
                    break
                if only is None:
                    window = wholes.shown(found.parts)
                else:
                    window = only.of(queries, merged(queries.suite, found.parts))
                row = WindowRow.of(found, window)
            coverage = _number(found.coverage) if only is None else None  # known of all rows alone
            self._known[found.span] = found.parts, row._replace(coverage=coverage)
            rows.append(self._known[found.span][1])
            yield None
        complete = len(rows) == len(spans)
        while rows and not rows[-1].n_rows:
            rows.pop()  # the series begins with the first row
        told = {"window": view.window, "every": view.every, "complete": complete, "more": more}
        yield {**told, **_columns(rows[::-1])}

    def _known_row(self, found: WindowRead) -> WindowRow | None:
        """Return a window as it was read before; ``None`` if it was not, or has changed since."""
        for line in (self, self._other):
            before = None if line is None else line._known.get(found.span)
            if before is not None and same(before[0], found.parts):
                return before[1]
        return None

    def _check(
        self, queries: Queries, spans: Sequence[Span], view: PageView, go_on: Callable[[], None]
    ) -> Iterator[None]:
        """Raise `CostError` if windows are too many, or too many states have to be merged."""

        def refused(what: str, most: str, first: Span) -> CostError:
            ends = [bounds_of(queries.config.tiers, span) for span in (spans[0], first, spans[-1])]
            longest, whole = ends[2][1] - ends[1][1], ends[2][1] - ends[0][0]
            return CostError(
                f"windows of {view.window} every {view.every} over {shown_duration(whole)} {what}, "
                f"and a request may {most}: the largest span is span={shown_duration(longest)}; "
                "or take a larger every"
            )

        if len(spans) > POINTS:
            raise refused(f"are {len(spans):,}", f"read {POINTS:,}", spans[-POINTS - 1])
        cost = 0
        for place, found in enumerate(queries.windows(reversed(spans), go_on)):
            if self._known_row(found) is None:
                cost += size_of(found.parts)
                if place and cost > BYTES:
                    raise refused("merge too much", f"merge {_size(BYTES)} of states", found.span)
            yield None


class WindowRow(NamedTuple):
    """One window of a series, as JSON values."""

    start: str
    end: str
    n_rows: int
    coverage: Json
    metrics: dict[str, Document]

    @classmethod
    def of(cls, found: WindowRead, window: Any) -> WindowRow:
        """Return the computed metrics of a window, or of a slice of it."""
        with read_together():
            metrics = {name: measured(metric) for name, metric in metrics_of(window).items()}
        ends = shown_time(found.start), shown_time(found.end)
        return cls(*ends, window.n_rows, None, metrics)


def _columns(rows: Sequence[WindowRow]) -> Document:
    """Transpose rows to columns."""
    metrics: dict[str, dict[str, list[Json]]] = {}
    for row in rows:
        for name, values in row.metrics.items():
            for part, value in values.items():
                metrics.setdefault(name, {}).setdefault(part, []).append(value)
    return {
        "time": [row.end for row in rows],
        "start": [row.start for row in rows],
        "n_rows": [row.n_rows for row in rows],
        "coverage": [row.coverage for row in rows],
        "metrics": metrics,
    }


class ChosenSlice(NamedTuple):
    """A slice by its columns and its keys as text, as `slices` returns them."""

    by: tuple[str, ...]
    keys: tuple[str | None, ...]

    @classmethod
    def read(cls, text: str) -> ChosenSlice:
        """Return the slice in a JSON object.

        Raises:
            ValueError: The text is not an object of texts.
        """
        try:
            told = json.loads(text)
        except (ValueError, RecursionError):
            told = None
        good = isinstance(told, dict) and told
        if not good or not all(key is None or isinstance(key, str) for key in told.values()):
            raise ValueError(f'slice={text[:100]!r}: expected a JSON object, as {{"country":"DE"}}')
        return cls(tuple(told), tuple(told.values()))

    def of(self, queries: Queries, state: State) -> Mergeable:
        """Return the metrics of this slice at a state of the suite; empty without rows.

        Raises:
            ValueError: There are no slices by these columns.
        """
        slices: Slices = SliceKeys(queries.suite).shown(state, self.by)
        keys = slices._read(slices._accumulator.flush(), None, anytime=False, only=())
        for row in zip(*[keys[name].tolist() for name in self.by], strict=True):
            if tuple(map(shown_key, row)) == self.keys:
                return slices[dict(zip(self.by, row, strict=True))]
        inner = SliceKeys(queries.suite).inner
        return inner._at(inner._plan.start)


def _within(
    tiers: Sequence[Tier], spans: list[Span], back: str | None, ago: str | None
) -> list[Span]:
    """Return the windows that end `ago` before the last one, or less than `back` earlier."""
    earlier = 0 if ago is None else duration(ago, "ago")
    length = None if back is None else duration(back, "span")
    if not spans:
        return spans
    ends = [bounds_of(tiers, span)[1] for span in spans]
    until = ends[-1] - earlier
    since = -1 if length is None else until - length
    return [span for span, end in zip(spans, ends, strict=True) if since < end <= until]


def _size(n: int) -> str:
    return f"{n / 1e6:,.0f} MB"


def coverage(queries: Queries, view: PageView) -> Document:
    """Return the label coverage of the newest window."""
    return {"window": view.window, **counted(queries.coverage(view.window))}


def possible(queries: Queries, view: PageView) -> Document:
    """Return the interval of each metric over all values of the missing labels."""
    return {"window": view.window, "metrics": _possible(queries, view)}


def _possible(queries: Queries, view: PageView) -> dict[str, list[object] | None]:
    found = queries.possible(view.window, target_range=view.target_range)
    named = found if isinstance(found, dict) else {ALONE: found}
    return {name: _interval(interval) for name, interval in named.items()}


def estimated(queries: Queries, view: PageView) -> Document:
    """Return the estimate of each metric over all rows, by their judgments."""
    return {"window": view.window, "metrics": _estimated(queries, view)}


def _estimated(queries: Queries, view: PageView) -> dict[str, Document | None]:
    with undefined_expected():
        found = queries.estimated(view.window, level=LEVEL)
    named = found if isinstance(found, dict) else {ALONE: found}
    return {name: each and _estimate(each) for name, each in named.items()}


def _estimate(found: EstimatedValue) -> Document:
    told = {name: _number(value) for name, value in found._asdict().items()}
    return {**told, "method": found.method}


def inputs(queries: Queries, view: PageView) -> Document:
    """Return the inputs of the newest window: counts, and distances from their references."""
    found = []
    for one in queries.inputs(view.window) if queries.config.declared.inputs else ():
        distances = {
            method: {side: _number(value) for side, value in each._asdict().items()}
            for method, each in one.distances.items()
        }
        found.append({**one._asdict(), "distances": distances})
    return {"window": view.window, "inputs": found}


def alerts(queries: Queries, judged: Alerts, deliverer: Deliverer | None = None) -> Document:
    """Return the states of alert rules and their newest changes, firing ones first."""
    found = []
    for one in judged:
        suite, _ = source_of(one.rule, queries.pipeline)
        metric, limit = one.rule.line(suite) or (None, None)
        told = {**one.to_dict(), "changes": len(one.changes)}
        found.append({**told, "metric": metric, "limit": limit})
    if deliverer is not None:
        found = [told | deliverer.told(one) for told, one in zip(found, judged, strict=True)]
    for alert in found:
        alert |= {key: _number(alert[key]) for key in ("value", "low", "high")}
    order = {"firing": 0, "no data": 1}
    return {"alerts": sorted(found, key=lambda alert: order.get(str(alert["state"]), 2))}


def slices(queries: Queries, view: PageView) -> Document:
    """Return each kind of slices of the newest window, as rows of a table."""
    window = view.window
    if not isinstance(queries.suite, Slices):
        return {"window": window, "slices": []}
    found = []
    for spec in filter(None, queries.suite.by):
        by = [title_of(part) for part in spec]
        columns = slice_columns(queries.window(window, by=by))
        wanted = {n: c for n, c in columns.items() if n in by or _is_plain(c)}
        rows = [[_cell(cell) for cell in row] for row in zip(*wanted.values(), strict=True)]
        found.append({"by": by, "header": list(wanted), "rows": rows[:_SLICES]})
    return {"window": window, "slices": found}


def _is_plain(cells: Json) -> bool:
    return all(isinstance(cell, int | float | np.number) for cell in cells)


def _cell(cell: object) -> object:
    return _number(cell) if isinstance(cell, int | float | np.number) else shown_key(cell)


def shown_key(key: object) -> str | None:
    """Return a key as text, None if it is missing."""
    return None if key is None else str(key)


def measured(metric: Metric[Any]) -> dict[str, object]:
    """Return a numeric value, its bounds and confidence limits, or why it cannot be read."""
    found = number_of(metric) or Number(math.nan, math.nan, math.nan)
    limits = confidence_of(metric)
    return {
        "value": _number(found.value),
        "low": _number(found.low),
        "high": _number(found.high),
        "sure_low": _number(limits and limits.low),
        "sure_high": _number(limits and limits.high),
        "why": found.why or None,
    }


def counted(found: Coverage) -> Document:
    """Return the counts and the share of `Coverage`."""
    counts = {name: _number(value) for name, value in found._asdict().items()}
    return {**counts, "coverage": _number(found.coverage)}


def _interval(interval: Any) -> list[object] | None:
    if interval is None or not isinstance(interval.low, int | float | np.number):
        return None
    return [_number(interval.low), _number(interval.high)]


def _number(value: object) -> Json:
    """Return a number as JSON, where NaN and infinities are null."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, int | float) else None
