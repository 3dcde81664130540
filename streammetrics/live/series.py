"""Series of windows, and windows that decay."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streammetrics.core.errors import UndefinedMetricWarning
from streammetrics.core.metric_set import MetricSet
from streammetrics.core.results.result import Result
from streammetrics.core.results.table import Table
from streammetrics.live.events import SliceKeys
from streammetrics.live.reading import Span, numbers_of
from streammetrics.live.stream import merged

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from streammetrics.core.feeding.states import State
    from streammetrics.core.mergeable import Mergeable
    from streammetrics.core.types import Array, Json
    from streammetrics.live.events import By, Tier
    from streammetrics.live.stream import Stream


class Series(Result, dict[str, Any]):
    """Metrics over windows that end one after the other: columns by name."""

    def to_dict(self) -> dict[str, list[Json]]:
        """Return the columns as lists, times as text of ISO 8601."""
        return {name: _plain(column) for name, column in self.items()}

    def _table(self) -> Table:
        return Table({}, dict(self))


def _plain(column: Array) -> list[Json]:
    if column.dtype.kind == "M":
        column = np.datetime_as_string(column, timezone="UTC")
    found: list[Json] = column.tolist()
    return found


class WindowRead(NamedTuple):
    """A window as it was read.

    Attributes:
        span: The panes that it is made of.
        start: When it begins, in nanoseconds.
        end: When it ends.
        parts: The states that its rows are merged from.
        coverage: Of the rows that were predicted, the part whose label is known.
    """

    span: Span
    start: int
    end: int
    parts: Sequence[State]
    coverage: float


def series_of(suite: Mergeable, windows: Iterable[WindowRead], by: By = None) -> Series:
    """Return the series of windows of a suite, with `by` of its slices.

    Each window is merged and let go, so that a long series takes no more memory than a short one.
    """
    keys, ends, tables = SliceKeys(suite), [], []
    for window in windows:
        shown = keys.shown(merged(suite, window.parts), by)
        ends.append(window.end)
        tables.append(_table(shown, window.start, window.coverage, by))
    if not tables:  # a window without rows tells which columns there are
        none = _table(keys.shown(suite._plan.start, by), 0, math.nan, by)
        return Series({name: column[:0] for name, column in _joined([0], [none]).items()})
    return _joined(ends, tables)


def _table(window: Any, start: int, coverage: float, by: By) -> dict[str, Array]:
    """Return the columns of one window: a row, or with `by` one for each slice."""
    begin = np.array([start], np.int64).view("datetime64[ns]")
    if by is None:
        numbers = {name: np.array([value]) for name, value in _numbers(window).items()}
        rows = np.array([window.n_rows], np.int64)
        return {"n_rows": rows, "coverage": np.array([coverage]), "start": begin, **numbers}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        slices = {**window.compute(), **window.bounds()}
    place, starts = list(slices).index("n_rows") + 1, begin.repeat(len(slices["n_rows"]))
    columns = list(slices.items())
    return dict([*columns[:place], ("start", starts), *columns[place:]])


def _joined(ends: Sequence[int], tables: Sequence[Mapping[str, Array]]) -> Series:
    """Return the tables of windows that end at these times as one."""
    times, rows = np.array(ends, np.int64).view("datetime64[ns]"), [*map(_rows, tables)]
    some = [table for table, n in zip(tables, rows, strict=True) if n] or tables[-1:]
    names = [name for name in some[-1] if all(name in table for table in some)]
    columns = {name: np.concatenate([table[name] for table in some]) for name in names}
    return Series({"time": times.repeat(rows), **columns})


def _rows(table: Mapping[str, Array]) -> int:
    return len(table["n_rows"])


def _numbers(window: object) -> dict[str, float]:
    """Return the columns of a window: of a single metric ``value``, ``low`` and ``high``."""
    alone = not isinstance(window, MetricSet)
    found: dict[str, float] = {}
    for name, (value, low, high) in numbers_of(window).items():
        prefix = "" if alone else f"{name}_"
        found |= {name: value, f"{prefix}low": low, f"{prefix}high": high}
    return found


_REACH = 8  # half-lives that a tier should reach back: what is older weighs less than 1/256


def decayed(stream: Stream, half_life: int, clock: int) -> list[State]:
    """Return the panes of a tier, each scaled by its age.

    A row in pane k weighs ``2 ** -((newest - k) * length / half_life)``. The tier is the finest one
    that reaches back eight half-lives, else the one that reaches back furthest.

    Raises:
        InvalidBatchError: Rows of a metric have no weights.
    """
    tiers = stream.config.tiers
    place = next((n for n, tier in enumerate(tiers) if _reaches(tier, half_life)), len(tiers) - 1)
    tier = tiers[place]
    newest = tier.number(clock)
    found = []
    for number in range(newest - tier.count + 1, newest + 1):
        weight = 2.0 ** -((newest - number) * tier.length / half_life)
        state = merged(stream.suite, stream.parts(Span(place, number, number), clock))
        if weight > 0 and any(feed.n_rows for feed in state.infos):
            whole = stream.keys.whole(state)
            scaled = tuple([statistic.scaled(weight) for statistic in whole.statistics])
            found.append(whole._replace(statistics=scaled))
    return found


def _reaches(tier: Tier, half_life: int) -> bool:
    return tier.length * tier.count >= _REACH * half_life
