"""How metrics went: columns of the windows of a stream that end one after the other."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.errors import UndefinedMetricWarning
from streammetrics.core.metric_set import MetricSet
from streammetrics.core.results.result import Result
from streammetrics.core.results.table import Table
from streammetrics.live.reading import numbers_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.types import Array, Floats, Json
    from streammetrics.live.keys import By
    from streammetrics.live.reading import Span
    from streammetrics.live.stream import Stream
    from streammetrics.slices.slices import Slices


class Series(Result, dict[str, Any]):
    """Metrics over windows that end one after the other: columns by name."""

    def to_dict(self) -> dict[str, list[Json]]:
        """Return the columns as lists, times as text of ISO 8601."""
        plain = {name: column.tolist() for name, column in self.items() if name != "time"}
        return {"time": np.datetime_as_string(self["time"], timezone="UTC").tolist(), **plain}

    def _table(self) -> Table:
        return Table({}, dict(self))


def series_over(stream: Stream, spans: Sequence[Span], clock: int, by: By = None) -> Series:
    """Return the series of windows of a stream, with `by` of its slices, at a time of reading."""
    keys = stream.keys
    states = [keys.shown(stream.over(span, clock), by) for span in spans]
    if not spans:  # a window without rows tells which columns there are
        alone = keys.shown(stream.suite._layout.start, by)
        none = _columns([alone], [math.nan], [0], by)
        return Series({name: column[:0] for name, column in none.items()})
    covered = [stream.share(span, clock) for span in spans]
    ends = [stream.config.tiers[span.place].start(span.last + 1) for span in spans]
    return _columns(states, covered, ends, by)


def _columns(
    states: Sequence[Any], covered: Sequence[float], ends: Sequence[int], by: By
) -> Series:
    times = np.array(ends, np.int64).view("datetime64[ns]")
    if by is not None:
        return _of_slices(states, times)
    return _of_all(states, times, np.array(covered, np.float64))


def _of_all(states: Sequence[Any], ends: Array, coverage: Floats) -> Series:
    """Return the columns of a series: times, rows, and each metric with its interval.

    Args:
        states: The sets, or metrics, of the windows.
        ends: When each window ends.
        coverage: Of the rows that were predicted, the part whose label is known.
    """
    columns: dict[str, list[float]] = {}
    for window in states:
        for name, value in _numbers(window).items():
            columns.setdefault(name, []).append(value)
    rows = np.array([window.n_rows for window in states], np.int64)
    whole = {n: np.array(c) for n, c in columns.items() if len(c) == len(states)}
    return Series({"time": ends, "n_rows": rows, "coverage": coverage, **whole})


def _of_slices(states: Sequence[Slices], ends: Array) -> Series:
    """Return the columns of a series of slices, a row for each slice of each window."""
    tables = []
    for window in states:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            tables.append({**window.compute(), **window.bounds()})
    rows = [len(table["n_rows"]) for table in tables]
    some = [table for table, n in zip(tables, rows, strict=True) if n]
    names = [name for name in (some or tables)[-1] if all(name in table for table in some)]
    columns = {name: np.concatenate([table[name] for table in some or tables]) for name in names}
    return Series({"time": np.repeat(ends, rows), **columns})


def _numbers(window: object) -> dict[str, float]:
    """Return the columns of a window: of a single metric ``value``, ``low`` and ``high``."""
    alone = not isinstance(window, MetricSet)
    found: dict[str, float] = {}
    for name, (value, low, high) in numbers_of(window).items():
        prefix = "" if alone else f"{name}_"
        found |= {name: value, f"{prefix}low": low, f"{prefix}high": high}
    return found
