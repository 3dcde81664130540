"""Which slices are kept, and how each kind of slice is read from what is kept."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.columns.batch import near
from streammetrics.core.counting import is_dense
from streammetrics.core.errors import InvalidBatchError
from streammetrics.core.fields.sums import GroupedSums
from streammetrics.core.fields.tables import GroupedCells
from streammetrics.core.fields.weights import WeightedCount
from streammetrics.core.floating import own_arithmetic
from streammetrics.core.groups import GroupedStates
from streammetrics.core.metric import GroupValues
from streammetrics.inference.tables import Readings, limits_of_groups, readings_of
from streammetrics.slices.bins import Bins, KeySpec, title_of
from streammetrics.slices.dates import day_of, days_of
from streammetrics.slices.fairness import Slice, reading, readings
from streammetrics.slices.table import OTHERS, key_columns, named
from streammetrics.statistics.grouped.grouped import Grouped
from streammetrics.statistics.grouped.groups import Groups
from streammetrics.statistics.grouped.keys import (
    OTHER,
    Bin,
    Part,
    encoded,
    order,
    parts_of_each,
    text_of,
)
from streammetrics.statistics.grouped.plans import grouped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from streammetrics.core.feeding.plan import Plan
    from streammetrics.core.feeding.states import State
    from streammetrics.core.metric import Metric
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import Array, Floats, Ints, Places

    Parts = tuple[Part, ...]
    Beside = tuple[Readings, Readings]


class FinestSlices:
    """Rows kept by the values of some columns: the finest slices of which anything is known."""

    def __init__(
        self,
        plan: Plan,
        number: int,
        by: tuple[KeySpec, ...],
        most: int,
        overflow: Literal["raise", "other"],
    ) -> None:
        self.plan, self.by = plan, by
        self.titles = tuple(map(title_of, by))
        self.name = f"by/{number}"  # as no column of a user's is likely to be called
        self.title = f"by {', '.join(self.titles)}"
        # The keys whose slices were last put in order, and that order.
        self.ordered: tuple[Array | None, Places, list[Parts | None]] = (
            None,
            np.empty(0, np.intp),
            [],
        )
        self.statistics = grouped(
            plan, name=self.name, titles=self.titles, most=most, overflow=overflow
        )

    def groups(self, state: State) -> Groups:
        """Return what a state holds by key."""
        every = [s for s in state.statistics if isinstance(s, Grouped) and s.name == self.name]
        return Groups.holding(self.plan, every)


@dataclass(frozen=True)
class Grouping:
    """One kind of slice: some columns of a cut, by which it is read."""

    columns: tuple[str, ...]
    cut: FinestSlices

    @classmethod
    def of(cls, spec: Sequence[KeySpec], cuts: Sequence[FinestSlices]) -> Grouping:
        """Return how a kind of slice is read: from its own cut, or from the one that is finer."""
        columns = tuple(map(title_of, spec))
        own = (cut for cut in cuts if cut.titles == columns)
        return cls(columns, next(own, cuts[0]))

    def groups(self, state: State) -> tuple[list[Parts | None], Groups]:
        """Return the parts of the key of every slice, and the slices."""
        return self._coarsened(self.cut.groups(state))

    def _coarsened(self, groups: Groups) -> tuple[list[Parts | None], Groups]:
        keys = parts_of_each(groups.keys.tolist())
        if self.columns == self.cut.titles:
            return keys, groups
        places = [self.cut.titles.index(column) for column in self.columns]
        texts = [
            OTHER
            if parts is None and self.columns
            else text_of(encoded((parts or ())[place]) for place in places)
            for parts in keys
        ]
        coarse, to = np.unique(np.array(texts), return_inverse=True)
        return parts_of_each(coarse.tolist()), groups.regrouped(to, coarse)

    def kept(self, state: State) -> GroupView:
        """Return all slices of this kind."""
        finest, (known, turns, ordered) = self.cut.groups(state), self.cut.ordered
        if known is finest.keys and self.columns == self.cut.titles:
            return GroupView(self.columns, finest, turns, ordered)
        parts, groups = self._coarsened(finest)
        if not parts and not self.columns:
            return GroupView((), groups, np.empty(0, np.intp), [()])  # all rows, of which none is
        turns = places_in_order(parts)
        ordered = [parts[place] for place in turns.tolist()]
        if self.columns == self.cut.titles:
            self.cut.ordered = finest.keys, turns, ordered
        return GroupView(self.columns, groups, turns, ordered)


class GroupView(NamedTuple):
    """The slices of one kind, sorted by their values."""

    columns: tuple[str, ...]
    groups: Groups
    turns: Places  # of each slice the place among the groups
    keys: Sequence[Parts | None]  # the parts of each

    @property
    def n_rows(self) -> Ints:
        """Rows of each slice."""
        if not len(self.groups):
            return np.zeros(len(self.keys), np.int64)
        return self.groups.n_rows[self.turns]

    def state(self, place: int) -> State:
        """Return the state of the rows of a slice."""
        if not len(self.groups):
            return self.groups.plan.start
        return self.groups.state(self.turns[place : place + 1])

    def slices(self) -> list[Slice]:
        """Return the slices, whose states are made where they are asked for."""
        return [
            Slice(self.columns, parts, n, partial(self.state, place))
            for place, (parts, n) in enumerate(zip(self.keys, self.n_rows.tolist(), strict=True))
        ]

    def slice(self, place: int) -> Slice:
        """Return one of the slices."""
        rows = int(self.n_rows[place])
        return Slice(self.columns, self.keys[place], rows, partial(self.state, place))

    def values(self, metric: Metric) -> GroupValues:
        """Return a metric of each slice, and where there is something to warn of."""
        with own_arithmetic():
            forms = self.groups.forms(metric) if len(self.groups) else None
            together = None if forms is None else metric._of_groups(*forms)
            if together is None and forms is not None:
                together = _in_turn(metric, _each(forms))
            if together is None:
                states = map(self.state, range(len(self.keys)))
                return _in_turn(metric, map(metric._chosen, states))
        values, doubtful = together
        if isinstance(values, np.ndarray):
            return GroupValues(values[self.turns], doubtful[self.turns])
        return GroupValues([values[turn] for turn in self.turns.tolist()], doubtful[self.turns])

    def limits(self, metric: Metric, level: float) -> tuple[Floats, Floats] | None:
        """Return the confidence limits of all slices at once; ``None``: they are read in turn."""
        forms = self.groups.forms(metric) if len(self.groups) else None
        if forms is None:
            return None
        with own_arithmetic():
            found = limits_of_groups(metric, level, self.groups.rows_of(metric), *forms)
        return None if found is None else (found[0][self.turns], found[1][self.turns])

    def beside_rest(self, name: str, metric: Metric, level: float) -> Beside | None:
        """Return a metric of each slice, and of all other rows; ``None`` if rows must be merged.

        Raises:
            ValueError: It is not one number.
            NoConfidenceError: It has no confidence limits.
        """
        forms = self.groups.forms(metric) if len(self.groups) else None
        others = [rest for form in forms or () if (rest := rest_of(form)) is not None]
        if forms is None or len(others) < len(forms):
            return None
        rows = self.groups.rows_of(metric)
        sides = []
        pairs: list[tuple[Ints, Sequence[GroupedStates]]] = [
            (rows, forms),
            (rows.sum() - rows, others),
        ]
        for n_rows, side in pairs:
            with own_arithmetic():
                found = readings_of(metric, level, n_rows, *side)
            if found is None:
                every = zip(n_rows.tolist(), _each(side), strict=True)
                found = readings(
                    [reading(name, metric, n, statistics, level) for n, statistics in every]
                )
            sides.append(Readings(*(each[self.turns] for each in found)))
        return sides[0], sides[1]


def _in_turn(metric: Metric, every: Iterable[Sequence[Statistic]]) -> GroupValues:
    """Return a metric of each of several statistics, and where there is something to warn of."""
    judged = [metric._judged(*statistics) for statistics in every]
    doubtful = np.array([bool(doubt) for _, doubt in judged], np.bool_)
    return GroupValues([value for value, _ in judged], doubtful)


def keys_of(kinds: Sequence[GroupView]) -> dict[str, Any]:
    """Return the columns that say which slices there are, and of how many rows."""
    columns = key_columns([(kept.columns, kept.keys) for kept in kinds])
    return {**columns, "n_rows": np.concatenate([kept.n_rows for kept in kinds])}


def places_in_order(keys: Sequence[Parts | None]) -> Places:
    """Return the places of keys sorted by their values, missing ones after others, folded last.

    >>> places_in_order([("b", 1), ("a", 2), None, ("a", None)]).tolist()
    [1, 3, 0, 2]
    """
    columns = [] if None in keys else list(zip(*keys, strict=True))
    kinds = [set(map(type, column)) for column in columns]
    if kinds == [{int}]:
        return np.argsort(np.array(columns[0]), kind="stable")
    plain = [len(kind) == 1 and kind < {int, str, bool, datetime.date} for kind in kinds]
    values: Any = keys if plain and all(plain) else list(map(sort_key, keys))
    return np.array(sorted(range(len(keys)), key=values.__getitem__), np.intp)


def sort_key(parts: Parts | None) -> tuple[object, ...]:
    """Return what slices are sorted by: values, then the missing ones, then what is folded."""
    return (1,) if parts is None else (0, *map(order, parts))


class GroupLookup:
    """The slices of one kind by the texts of their keys: who looks up many reads them once."""

    def __init__(self, spec: Grouping, state: State) -> None:
        self._spec = spec
        self._keys, self._groups = spec.groups(state)
        self._places = {text: place for place, text in enumerate(self._groups.keys.tolist())}

    def state(self, which: Mapping[str, object]) -> State:
        """Return the state of one slice.

        Raises:
            KeyError: There is none.
        """
        spec = self._spec
        if OTHER in self._places and set(which.values()) == {OTHERS}:
            return self._groups.state(np.array([self._places[OTHER]]))
        asked = tuple(_asked(which[title], _by(spec, title)) for title in spec.columns)
        for key in (asked, tuple(map(_dated, asked))):  # a table tells dates as text
            place = self._places.get(text_of(map(encoded, key)))
            if place is not None:
                return self._groups.state(np.array([place]))
        title, titles = (
            named(spec.columns, asked),
            [named(spec.columns, parts) for parts in self._keys],
        )
        if title in titles:
            pairs = ", ".join(
                f"{name}={part!r}" for name, part in zip(spec.columns, asked, strict=True)
            )
            raise KeyError(f"no slice {pairs}: keys there are {_types(self._keys)}")
        raise KeyError(f"no slice {title}{near(title, titles)}")


def state_of_all(state: State, cut: FinestSlices) -> State:
    """Return the state of all rows."""
    groups = cut.groups(state)
    return groups.state(np.arange(len(groups))) if len(groups) else cut.plan.start


def _types(keys: Sequence[Parts | None]) -> str:
    found = {type(part).__name__ for parts in keys for part in parts or () if part is not None}
    return ", ".join(sorted(found))


def spec_of(
    which: Mapping[str, object], specs: Sequence[Grouping], cuts: Sequence[FinestSlices]
) -> Grouping:
    """Return the kind of a slice, by its columns.

    Raises:
        KeyError: There is none.
    """
    for spec in specs:
        if set(spec.columns) == set(which):
            return spec
    if not which or (len(cuts) == 1 and set(which) <= set(cuts[0].titles)):
        return Grouping(tuple(title for title in cuts[0].titles if title in which), cuts[0])
    known = [list(spec.columns) for spec in specs]
    raise KeyError(f"slices are by {known}, and none by {list(which)}")


def _by(spec: Grouping, title: str) -> KeySpec:
    return spec.cut.by[spec.cut.titles.index(title)]


def _dated(part: Part) -> Part:
    """Return the date that a text spells, and anything else as it is."""
    try:
        return datetime.date.fromisoformat(part) if isinstance(part, str) else part
    except ValueError:
        return part


def _asked(value: Any, by: KeySpec) -> Part:
    """Return a value as the part of a key that it is: of numbers to be binned their bin."""
    if isinstance(value, np.datetime64):
        return _day(np.array([value]), value, by)
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or value != value or isinstance(value, Bin):  # noqa: PLR0124 - the test for nan
        return None if value is None or value != value else value  # noqa: PLR0124 - as above
    if isinstance(by, Bins):
        for part in by.bins:
            if value == str(part) or (
                isinstance(value, int | float)
                and (part.low is None or value >= part.low)
                and (part.high is None or value < part.high)
            ):
                return part
    if isinstance(value, datetime.datetime):
        return _day([value], value, by)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str | int | datetime.date):
        return value
    raise KeyError(f"{title_of(by)}={value!r} is no key: text, an integer, a boolean or a date")


def _day(times: Any, value: object, by: KeySpec) -> Part:
    """Return the date that a time is, if it is one that could have been a key."""
    try:
        days: Any = days_of(times, title_of(by))
    except InvalidBatchError:
        raise KeyError(
            f"{title_of(by)}={value!r} is no key: times of day, or of a zone, are no dates"
        ) from None
    return None if np.isnat(days[0]) else day_of(int(days[0].astype(np.int64)))


def _each(forms: Sequence[GroupedStates]) -> Iterator[tuple[Statistic, ...]]:
    """Yield the statistics of each group in turn."""
    return zip(*[states.each() for states in forms], strict=True)


def rest_of(states: GroupedStates) -> GroupedStates | None:
    """Return for each group what all others hold; ``None`` where that takes too much."""
    values = {name: _rest(value, states.size) for name, value in states.values.items()}
    if any(value is None for value in values.values()):
        return None
    return GroupedStates(states.of, states.size, values)


def _rest(value: Any, size: int) -> Any:
    """Return the same of the grouped value of a field."""
    if isinstance(value, ExactSum):
        return value.regroup(np.zeros(size, np.intp), 1)[np.zeros(size, np.intp)] - value
    if isinstance(value, WeightedCount):
        if value.weights is None:
            return WeightedCount.of_counts(value.counts.sum(axis=0) - value.counts)
        squares = value.squared()
        left = None if squares is None else _rest(squares, size)
        return WeightedCount.of_weights(_rest(value.exact(), size), left)
    if isinstance(value, GroupedSums):
        left = {name: _rest(sums, size) for name, sums in value.sums.items()}
        return GroupedSums(np.count_nonzero(value.seen) > value.seen, left)
    if isinstance(value, GroupedCells):
        return _rest_of_cells(value, size)
    if isinstance(value, np.ndarray):  # of widths, which are the same in all groups with rows
        return np.where(np.count_nonzero(value) > (value > 0), value.max(initial=0), 0)
    return None


def _rest_of_cells(cells: GroupedCells, size: int) -> GroupedCells | None:
    if not is_dense(size * cells.area, cells.codes.size):
        return None
    amount = cells.amount.spread(cells.codes, size * cells.area)
    left = _rest(amount.shaped((size, cells.area)), size).shaped((size * cells.area,))
    found = np.flatnonzero(left.signs())
    return cells._replace(codes=found, amount=left.at(found))
