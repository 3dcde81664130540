"""Columns to slice by: as they are, numbers in bins, or times by day, week, month or hour."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, get_args

from numpy import iterable

from streammetrics.statistics.grouped.keys import Bin

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, init=False, repr=False)
class Bins:
    """A column of numbers to slice by, cut at edges: ``edges[i] <= x < edges[i + 1]``.

    What is below the first edge has a bin of its own, and so has what is from the last one on. A
    missing number is a slice of its own.

    Args:
        column: The column's name.
        edges: Where bins begin, finite and ascending.

    Raises:
        ValueError: There are no edges, or they do not ascend.

    Example:
        >>> import streammetrics as sm
        >>> suite = sm.MetricSet({"mae": sm.MAE()})
        >>> slices = sm.Slices(suite, by=[[sm.Bins("age", [18, 30, 50])]])
        >>> _ = slices.update(y_true=[1.0, 2.0, 3.0], y_pred=[1.0, 1.0, 1.0], age=[17, 30, 49])
        >>> slices.compute().to_dict()
        {'age': ['< 18', '[30, 50)'], 'n_rows': [1, 2], 'mae': [0.0, 1.5]}
    """

    column: str
    edges: tuple[float, ...]

    def __init__(self, column: str, edges: Sequence[float]) -> None:
        if not isinstance(column, str) or not column:
            raise TypeError(f"Bins({column!r}): expected the name of a column first, then edges")
        try:
            # Whole edges are told as integers: 18 and 18.0 are one edge.
            every: Any = edges
            given = [] if isinstance(every, str) else list(every)  # of a text its letters
            numbers = [float(edge) for edge in given]
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"Bins({column!r}, {edges!r}): expected numbers as edges") from None
        rounded = [edge for edge, number in zip(given, numbers, strict=True) if edge != number]
        if rounded and math.isfinite(rounded[0]):
            raise ValueError(
                f"Bins({column!r}, ...): the edge {rounded[0]} is no float64; the nearest one is "
                f"{int(float(rounded[0]))}"
            )
        ascending = all(a < b for a, b in pairwise(numbers))
        if not numbers or not ascending or not all(map(math.isfinite, numbers)):
            raise ValueError(
                f"Bins({column!r}, {edges!r}): expected one or more finite edges, ascending, such "
                f"as Bins({column!r}, [18, 30, 50])"
            )
        whole = (int(x) if x.is_integer() and abs(x) < 2**53 else x for x in numbers)
        object.__setattr__(self, "column", column)
        object.__setattr__(self, "edges", tuple(whole))

    def __repr__(self) -> str:
        return f"Bins({self.column!r}, {list(self.edges)!r})"

    @property
    def bins(self) -> list[Bin]:
        """All bins, in order."""
        return [Bin(*pair) for pair in zip((None, *self.edges), (*self.edges, None), strict=True)]


Period = Literal["hour", "day", "week", "month"]
PERIODS: tuple[Period, ...] = get_args(Period)


@dataclass(frozen=True, repr=False)
class Periods:
    """A column of times to slice by, cut to hours, days, weeks or months.

    Times are those of Arrow, pandas, polars or NumPy, Python's dates and datetimes, or text that
    spells them in ISO 8601. They have no zone or are of UTC. A day is a date, a week that of its
    Monday; a month is text, ``2026-01``, and so is an hour, ``2026-01-31 23:00``. A missing time is
    a slice of its own.

    Args:
        column: The column's name.
        period: ``"hour"``, ``"day"``, ``"week"`` or ``"month"``.

    Raises:
        ValueError: There is no such period.

    Example:
        >>> import streammetrics as sm
        >>> slices = sm.Slices(sm.MetricSet({"n": sm.Count()}), by=[[sm.Periods("when", "month")]])
        >>> days = ["2026-01-31 23:59", "2026-02-01", "2026-02-28"]
        >>> slices.update(values=[1, 1, 1], when=days).compute().to_dict()
        {'when': ['2026-01', '2026-02'], 'n_rows': [1, 2], 'n': [1, 2]}
    """

    column: str
    period: Period

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column:
            raise TypeError(f"Periods({self.column!r}): expected the name of a column first")
        if self.period not in PERIODS:
            raise ValueError(
                f"Periods({self.column!r}, {self.period!r}): expected "
                f"{', '.join(map(repr, PERIODS[:-1]))} or {PERIODS[-1]!r}"
            )

    def __repr__(self) -> str:
        return f"Periods({self.column!r}, {self.period!r})"


KeySpec = str | Bins | Periods


def title_of(by: KeySpec) -> str:
    """Return the name of the column."""
    return by if isinstance(by, str) else by.column


def column_of(text: str) -> KeySpec:
    """Return a column as it is written: its name, ``age:18:30`` in bins, or ``when:day``.

    Raises:
        ValueError: It is neither.
    """
    name, *edges = text.strip().split(":")
    if not name:
        raise ValueError(f"{text!r} names no column")
    if not edges:
        return name
    if len(edges) == 1 and (period := next((p for p in PERIODS if p == edges[0]), None)):
        return Periods(name, period)
    try:
        return Bins(name, [float(edge) for edge in edges])
    except ValueError:
        raise ValueError(
            f"{text}: expected a column, or with ascending edges of bins age:18:30:50, or times "
            f"by {', '.join(PERIODS)}: when:day"
        ) from None


def specs_of(by: object, *, some: bool = True) -> tuple[tuple[KeySpec, ...], ...]:
    """Return what to slice by: for each kind of slice its columns.

    Raises:
        ValueError: It names no column, where there must be `some`, one in two ways, or the same
            columns twice; or it is a set, which has no order.
    """
    if any(isinstance(each, set | frozenset) for each in (by, *(by if iterable(by) else ()))):
        raise ValueError(f"by={by!r}: a set has no order, and results would differ in it: a list")
    given = [by] if isinstance(by, KeySpec) or not iterable(by) else list(by)
    specs: list[tuple[KeySpec, ...]] = []
    for spec in given:
        columns = (spec,) if isinstance(spec, KeySpec) or not iterable(spec) else tuple(spec)
        if not all(isinstance(column, KeySpec) and title_of(column) for column in columns):
            raise ValueError(
                f"by={by!r}: expected a list of lists of columns, such as "
                '[["country"], ["country", "device"]], where a column is a name, Bins or Periods'
            )
        if len(set(map(title_of, columns))) < len(columns):
            raise ValueError(f"by names a column twice in {list(columns)!r}")
        if columns in specs:
            continue
        same = next((other for other in specs if set(other) == set(columns)), None)
        if same is not None:
            raise ValueError(f"by has one kind of slice twice: {list(same)} and {list(columns)}")
        specs.append(columns)
    if not any(specs) and (some or not specs):
        raise ValueError(f'by={by!r} names no column to slice by: by=[["country"]]')
    ways: dict[str, KeySpec] = {}
    for column in (column for spec in specs for column in spec):
        if ways.setdefault(title_of(column), column) != column:
            raise ValueError(
                f"by has {title_of(column)!r} in two ways: "
                f"{ways[title_of(column)]!r} and {column!r}; a copy of the column under another "
                "name may be sliced the other way"
            )
    return tuple(specs)
