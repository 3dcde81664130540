"""One slice that was read, its limits, and the table of the worst ones."""

from __future__ import annotations

import math
import warnings
from itertools import compress
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core.confidence import unsure
from streammetrics.core.errors import NoConfidenceError, UndefinedMetricWarning
from streammetrics.inference.corrections import benjamini_hochberg
from streammetrics.inference.groups import Readings
from streammetrics.slices.fairness import (
    Measured,
    measured,
    p_by_unit,
    p_values,
    plain_limits,
    value_of,
    without_each,
)
from streammetrics.slices.table import SliceTable, key_columns, named

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

    from streammetrics.core.confidence import ConfidenceInterval
    from streammetrics.core.feeding.layout import Layout
    from streammetrics.core.feeding.states import State
    from streammetrics.core.metric import Metric
    from streammetrics.slices.groups import KeptSlices
    from streammetrics.slices.units import Rests
    from streammetrics.statistics.grouped.keys import Part


class Slice:
    """One slice that was read; its state is made where it is asked for."""

    __slots__ = ("_made", "_state", "columns", "n_rows", "parts")

    def __init__(
        self,
        columns: tuple[str, ...],
        parts: tuple[Part, ...] | None,
        n_rows: int,
        state: Callable[[], State],
    ) -> None:
        self.columns, self.parts, self.n_rows, self._state = columns, parts, n_rows, state
        self._made: State | None = None

    @property
    def state(self) -> State:
        """The state of its rows."""
        if self._made is None:
            self._made = self._state()
        return self._made

    @property
    def title(self) -> str:
        """What it is called."""
        return named(self.columns, self.parts)

    def measured(
        self,
        name: str,
        metric: Metric,
        level: float | None,
        without: Sequence[State] | None = None,
    ) -> Measured:
        """Return the value and the limits of a metric, of units where it is known without them."""
        return measured(name, metric, self.title, self.n_rows, self.state, level, without)

    def beside(self, name: str, metric: Metric, rest: State, level: float | None) -> Measured:
        """Return the value and the limits of a metric for all other rows."""
        return measured(name, metric, f"all but {self.title}", 0, rest, level)


class RankedSlice(NamedTuple):
    """A slice beside all other rows: its value, theirs, and how probable the difference is."""

    slice: Slice
    value: float
    low: float
    high: float
    rest: float = math.nan
    p: float = math.nan

    @classmethod
    def of(cls, one: Slice, mine: Measured, rest: float = math.nan, p: float = math.nan) -> Self:
        """Return a slice that was read; without limits its value stands in their place."""
        limits = (mine.value, mine.value)
        if mine.confidence is not None:
            limits = plain_limits(mine.confidence)
        return cls(one, mine.value, *limits, rest, p)


def beside_rest(
    layout: Layout,
    every: Sequence[Slice],
    kept: KeptSlices,
    name: str,
    metric: Metric,
    least: int,
    level: float | None,
) -> list[RankedSlice]:
    """Return the slices of so many rows beside all other rows, as samples of rows."""
    wanted = [each.n_rows >= least for each in every]
    if level is None:
        chosen = compress(every, wanted)
        return [RankedSlice.of(each, each.measured(name, metric, None)) for each in chosen]
    found = kept.beside_rest(metric, level)
    if found is None:
        rests = without_each(layout, [each.state for each in every], wanted)
        pairs = [
            (each.measured(name, metric, level), each.beside(name, metric, rest, level))
            for each, rest in zip(every, rests, strict=True)
            if rest is not None
        ]
        mine, rest = map(_readings, zip(*pairs, strict=True)) if pairs else (_NONE, _NONE)
    else:
        mine, rest = (Readings(*(each[wanted] for each in side)) for side in found)
    p = p_values(mine, rest, level)
    columns = [*(each.tolist() for each in (*mine, rest.value)), p]
    return list(map(RankedSlice, compress(every, wanted), *columns))


_NONE = Readings(*[np.empty(0)] * 3)


def _readings(every: Sequence[Measured]) -> Readings:
    """Return what was read of slices in turn."""
    table = np.array([(each.value, *plain_limits(each.confidence)) for each in every])
    return Readings(*table.T)


def beside_units(
    layout: Layout,
    pairs: Sequence[tuple[Slice, Rests]],
    name: str,
    metric: Metric,
    least: int,
    level: float,
) -> list[RankedSlice]:
    """Return the same as samples of units, some of which may have rows in many slices."""
    wanted = [each.n_rows >= least for each, _ in pairs]

    def apart(states: Sequence[State]) -> list[tuple[float, float]]:
        rests = without_each(layout, states, wanted)
        return [
            (math.nan, math.nan)
            if rest is None
            else (value_of(name, metric, one), value_of(name, metric, rest))
            for one, rest in zip(states, rests, strict=True)
        ]

    now = apart([each.state for each, _ in pairs])
    groups = sorted({group for _, own in pairs for group in own}, key=str)
    without = np.array(
        [apart([own.get(group, each.state) for each, own in pairs]) for group in groups]
    )
    return [
        RankedSlice.of(
            each,
            each.measured(name, metric, level, list(own.values())),
            rest,
            p_by_unit(one - rest, without[:, place, 0] - without[:, place, 1]),
        )
        for place, ((each, own), (one, rest)) in enumerate(zip(pairs, now, strict=True))
        if wanted[place]
    ]


def ranked(
    rows: Sequence[RankedSlice],
    name: str,
    k: int,
    level: float | None,
    *,
    low_is_bad: bool,
) -> SliceTable:
    """Return the worst slices as a table."""
    p = [row.p for row in rows]
    adjusted_p = benjamini_hochberg(p)

    def badness(place: int) -> tuple[bool, float, float]:
        one = rows[place]
        limit = one.high if low_is_bad else -one.low
        value = one.value if low_is_bad else -one.value
        return math.isnan(limit), 0.0 if math.isnan(limit) else limit, value

    known = [place for place, row in enumerate(rows) if _is_worse(row, low_is_bad=low_is_bad)]
    order = sorted(known, key=badness)[:k]
    chosen = [rows[place] for place in order]
    table = SliceTable(key_columns([(row.slice.columns, row.slice.parts) for row in chosen]))
    table["n_rows"] = np.array([row.slice.n_rows for row in chosen], np.int64)
    table[name] = np.array([row.value for row in chosen], float)
    if level is not None:
        table[f"{name}_low"] = np.array([row.low for row in chosen], float)
        table[f"{name}_high"] = np.array([row.high for row in chosen], float)
        table[f"{name}_rest"] = np.array([row.rest for row in chosen], float)
        table["p"] = np.array([p[place] for place in order], float)
        table["p_adjusted"] = np.array([adjusted_p[place] for place in order], float)
    return table


def _is_worse(row: RankedSlice, *, low_is_bad: bool) -> bool:
    """Whether a slice has a value, and none that is as good as that of all other rows."""
    value, rest = row.value, row.rest
    if math.isnan(value) or math.isnan(rest):
        return not math.isnan(value)
    return value < rest if low_is_bad else value > rest


def limits_of(
    metric: Metric, state: State, level: float, *, anytime: bool = False
) -> tuple[ConfidenceInterval, str]:
    """Return the confidence limits of a metric at a state; where there are none, why."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        try:
            return metric._confident(state, level, anytime=anytime), ""
        except NoConfidenceError as error:
            return unsure(level, ""), str(error)
