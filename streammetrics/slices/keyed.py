"""Stored slices, how each kind of slice is read from them, and the base of sets that keep them."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np

from streammetrics.core.columns.batch import near
from streammetrics.core.columns.conversion import Column
from streammetrics.core.errors import InvalidBatchError, an
from streammetrics.core.floating import own_arithmetic
from streammetrics.core.metric import GroupValues
from streammetrics.core.metric_set import MetricSet
from streammetrics.core.results.values import Interval
from streammetrics.inference.tables import Readings, limits_of_groups, readings_of
from streammetrics.inference.units import (
    GroupedSet,
    Rests,
    UnitRows,
    limits_by_unit,
    rest_of,
    standalone,
    unit_column,
    without_each,
)
from streammetrics.slices.bins import (
    Bins,
    KeySpec,
    day_of,
    days_of,
    key_column,
    read_keys,
    specs_of,
    title_of,
)
from streammetrics.slices.fairness import Slice, reading, readings
from streammetrics.slices.table import BESIDE, OTHERS, OWN, key_columns, named
from streammetrics.statistics.grouped import Grouped, Groups, grouped
from streammetrics.statistics.keys import (
    GROUPS,
    OTHER,
    Bin,
    GroupedPlan,
    Part,
    encoded,
    order,
    parts_of_each,
    text_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from streammetrics.core.columns.schema import Kind
    from streammetrics.core.confidence import ConfidenceInterval
    from streammetrics.core.feeding.plan import Plan
    from streammetrics.core.feeding.states import State
    from streammetrics.core.metric import Metric
    from streammetrics.core.statistic import GroupedStates, Statistic
    from streammetrics.core.types import Array, Floats, Ints, Places
    from streammetrics.statistics.keys import Part

    Parts = tuple[Part, ...]
    Beside = tuple[Readings, Readings]
    By = Sequence[Sequence[KeySpec] | KeySpec] | KeySpec


class FinestSlices:
    """Rows grouped by the values of some columns: the finest slices that are stored."""

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
        self.name = f"by/{number}"  # unlikely to be the name of a user's column
        self.title = f"by {', '.join(self.titles)}"
        # The keys whose slices were sorted last, and that order.
        self.ordered: tuple[Array | None, Places, list[Parts | None]] = (
            None,
            np.empty(0, np.intp),
            [],
        )
        self.statistics = grouped(
            plan, name=self.name, titles=self.titles, most=most, overflow=overflow
        )

    def groups(self, state: State) -> Groups:
        """Return the groups of a state by key."""
        every = [s for s in state.statistics if isinstance(s, Grouped) and s.name == self.name]
        return Groups.holding(self.plan, every)


@dataclass(frozen=True)
class Grouping:
    """One kind of slice: some of the columns of the stored slices that it is computed from."""

    columns: tuple[str, ...]
    cut: FinestSlices

    @classmethod
    def of(cls, spec: Sequence[KeySpec], cuts: Sequence[FinestSlices]) -> Grouping:
        """Return a kind of slice with the stored slices of its columns, or the finest ones."""
        columns = tuple(map(title_of, spec))
        own = (cut for cut in cuts if cut.titles == columns)
        return cls(columns, next(own, cuts[0]))

    def groups(self, state: State) -> tuple[list[Parts | None], Groups]:
        """Return the key parts of every slice, and the groups."""
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
        """Return all slices of this kind, sorted."""
        finest, (known, turns, ordered) = self.cut.groups(state), self.cut.ordered
        if known is finest.keys and self.columns == self.cut.titles:
            return GroupView(self.columns, finest, turns, ordered)
        parts, groups = self._coarsened(finest)
        if not parts and not self.columns:
            return GroupView((), groups, np.empty(0, np.intp), [()])  # all rows: there are none yet
        turns = places_in_order(parts)
        ordered = [parts[place] for place in turns.tolist()]
        if self.columns == self.cut.titles:
            self.cut.ordered = finest.keys, turns, ordered
        return GroupView(self.columns, groups, turns, ordered)


class SliceReading(NamedTuple):
    """A metric of a slice: value, certain bounds, whether it is exact, rows seen and left out."""

    value: object
    bounds: Interval[object]
    exact: bool
    n_rows: int
    n_omitted: int


class GroupView(NamedTuple):
    """The slices of one kind, sorted by their keys."""

    columns: tuple[str, ...]
    groups: Groups
    turns: Places  # the place of each slice among the groups
    keys: Sequence[Parts | None]  # the key parts of each slice; None for folded slices

    @property
    def n_rows(self) -> Ints:
        """The number of rows of each slice."""
        if not len(self.groups):
            return np.zeros(len(self.keys), np.int64)
        return self.groups.n_rows[self.turns]

    def state(self, place: int) -> State:
        """Return the state of the slice at a place."""
        if not len(self.groups):
            return self.groups.plan.start
        return self.groups.state(self.turns[place : place + 1])

    def slices(self) -> list[Slice]:
        """Return the slices; their states are built on demand."""
        return [
            Slice(self.columns, parts, n, partial(self.state, place))
            for place, (parts, n) in enumerate(zip(self.keys, self.n_rows.tolist(), strict=True))
        ]

    def slice(self, place: int) -> Slice:
        """Return the slice at a place."""
        rows = int(self.n_rows[place])
        return Slice(self.columns, self.keys[place], rows, partial(self.state, place))

    def values(self, metric: Metric) -> GroupValues:
        """Return a metric of each slice, and a mask of slices that need a warning."""
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

    def readings(self, metric: Metric, places: Iterable[int]) -> Iterator[SliceReading]:
        """Yield a metric of the slices at some places."""
        values = self.values(metric).values
        rows, omitted = self.groups.rows_of(metric), self.groups.omitted_of(metric)
        forms = self.groups.forms(metric)
        for place in places:
            turn, value = self.turns[place], values[place]
            if forms is None:
                statistics = metric._chosen(self.state(place))
            else:
                statistics = tuple([form.at(turn) for form in forms])
            exact = metric.is_exact(*statistics)
            with own_arithmetic():
                bounds = Interval(value, value) if exact else metric.interval(*statistics)
            yield SliceReading(value, bounds, exact, int(rows[turn]), int(omitted[turn]))

    def limits(self, metric: Metric, level: float) -> tuple[Floats, Floats] | None:
        """Return the confidence limits of all slices; ``None`` if they must be read singly."""
        forms = self.groups.forms(metric) if len(self.groups) else None
        if forms is None:
            return None
        with own_arithmetic():
            found = limits_of_groups(metric, level, self.groups.rows_of(metric), *forms)
        return None if found is None else (found[0][self.turns], found[1][self.turns])

    def beside_rest(self, name: str, metric: Metric, level: float) -> Beside | None:
        """Return a metric of each slice and of all other rows; ``None`` if rows must be merged.

        Raises:
            ValueError: The metric's value is not one number.
            NoConfidenceError: The metric has no confidence limits.
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
    """Return a metric read one by one, and a mask of values that need a warning."""
    judged = [metric._judged(*statistics) for statistics in every]
    doubtful = np.array([bool(doubt) for _, doubt in judged], np.bool_)
    return GroupValues([value for value, _ in judged], doubtful)


def keys_of(kinds: Sequence[GroupView]) -> dict[str, Array]:
    """Return the columns that identify the slices, and their numbers of rows."""
    columns = key_columns([(kept.columns, kept.keys) for kept in kinds])
    return {**columns, "n_rows": np.concatenate([kept.n_rows for kept in kinds])}


def places_in_order(keys: Sequence[Parts | None]) -> Places:
    """Return the places of keys sorted by value; missing values are last, then folded slices.

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
    """Return the sort key of a slice: values first, then missing values, then folded slices."""
    return (1,) if parts is None else (0, *map(order, parts))


class GroupLookup:
    """The slices of one kind indexed by the text of their keys, for repeated look-ups."""

    def __init__(self, spec: Grouping, state: State) -> None:
        self._spec = spec
        self._keys, self._groups = spec.groups(state)
        self._places = {text: place for place, text in enumerate(self._groups.keys.tolist())}

    def state(self, which: Mapping[str, object]) -> State:
        """Return the state of one slice.

        Raises:
            KeyError: There is no such slice.
        """
        spec = self._spec
        if OTHER in self._places and set(which.values()) == {OTHERS}:
            return self._groups.state(np.array([self._places[OTHER]]))
        asked = tuple(_asked(which[title], _by(spec, title)) for title in spec.columns)
        for key in (asked, tuple(map(_dated, asked))):  # tables show dates as text
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


def _types(keys: Sequence[Parts | None]) -> str:
    found = {type(part).__name__ for parts in keys for part in parts or () if part is not None}
    return ", ".join(sorted(found))


def spec_of(
    which: Mapping[str, object], specs: Sequence[Grouping], cuts: Sequence[FinestSlices]
) -> Grouping:
    """Return the kind of slice with the given columns.

    Raises:
        KeyError: There is none.
    """
    for spec in specs:
        if set(spec.columns) == set(which):
            return spec
    if not which or (len(cuts) == 1 and set(which) <= set(cuts[0].titles)):
        return Grouping(tuple(title for title in cuts[0].titles if title in which), cuts[0])
    known = [list(spec.columns) for spec in specs]
    raise KeyError(f"no slices by {list(which)}; slices are by {known}")


def _by(spec: Grouping, title: str) -> KeySpec:
    return spec.cut.by[spec.cut.titles.index(title)]


def _dated(part: Part) -> Part:
    """Return the date that a text spells; return other values unchanged."""
    try:
        return datetime.date.fromisoformat(part) if isinstance(part, str) else part
    except ValueError:
        return part


def _asked(value: Any, by: KeySpec) -> Part:
    """Return a value as a key part: a number to be binned becomes its bin."""
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
    raise KeyError(
        f"{title_of(by)}={value!r} is not a key: expected text, an integer, a boolean or a date"
    )


def _day(times: object, value: object, by: KeySpec) -> Part:
    """Return a time as a date; raise `KeyError` if it cannot be a key."""
    try:
        days: Any = days_of(times, title_of(by))
    except InvalidBatchError:
        raise KeyError(
            f"{title_of(by)}={value!r} is not a key: times of day, or of a zone, are not dates"
        ) from None
    return None if np.isnat(days[0]) else day_of(int(days[0].astype(np.int64)))


def _each(forms: Sequence[GroupedStates]) -> Iterator[tuple[Statistic, ...]]:
    """Yield the statistics of each group in turn."""
    return zip(*[states.each() for states in forms], strict=True)


def hashed(title: str) -> str:
    """Return the name of the column of unit groups."""
    return f"hash of {title}"


def groups_of(value: object, title: str) -> Ints:
    """Return the group of each row's unit, from 0 to 63.

    Raises:
        InvalidBatchError: The column does not exist, or a row has no valid id.
    """
    return unit_column(value, title).values & np.int64(GROUPS - 1)


class KeyedSet(GroupedSet):
    """Metrics by the finest keys; coarser slices and all rows are exact merges of these."""

    _called = "Slices"  # the name in error messages
    _specs: tuple[Grouping, ...]

    def __init__(
        self,
        suite: MetricSet | Mapping[str, Metric],
        *,
        by: By,
        max_slices: int = 10_000,
        overflow: Literal["raise", "other"] = "raise",
        unit: str | None = None,
        counts: str | None = None,
    ) -> None:
        if isinstance(suite, Mapping) and not isinstance(suite, MetricSet):
            suite = MetricSet(suite)
        if not isinstance(suite, MetricSet) or isinstance(suite, GroupedSet):
            raise TypeError(
                f"Slices are of a MetricSet, not of {an(type(suite).__name__)}: "
                'Slices(MetricSet({"f1": F1()}), by=[["country"]])'
            )
        if suite.n_rows or suite.n_omitted:
            raise ValueError(
                f"the set has already seen {suite.n_rows:,} rows, whose keys are unknown: "
                "pass suite.copy().reset()"
            )
        if isinstance(max_slices, bool) or not isinstance(max_slices, int) or max_slices < 1:
            raise ValueError(f"Slices(max_slices={max_slices!r}): expected a positive integer")
        if overflow not in {"raise", "other"}:
            raise ValueError(f"Slices(overflow={overflow!r}): expected 'raise' or 'other'")
        self.max_slices, self.overflow = max_slices, overflow
        if unit is not None and (not isinstance(unit, str) or not unit or overflow == "other"):
            raise ValueError(
                f"{self._called}(unit={unit!r}): expected the name of a column"
                + (", and overflow='raise', as folded slices have no units" * (overflow == "other"))
            )
        if counts is not None:
            suite = MetricSet(dict(suite.items()), columns=suite.columns, counts=counts)
        self.by, self.unit = specs_of(by, some=unit is None), unit
        columns = {title_of(column): column for spec in self.by for column in spec}
        self._check_titles(columns, suite)
        finest = (*columns.values(), *([] if unit is None else [hashed(unit)]))
        apart = [spec for spec in self.by if spec] if overflow == "other" else [finest]
        self._cuts = tuple(
            FinestSlices(suite._plan, number, parts, max_slices, overflow)
            for number, parts in enumerate(apart)
        )
        self._specs = tuple(Grouping.of(spec, self._cuts) for spec in self.by)
        plan = GroupedPlan([each for cut in self._cuts for each in cut.statistics])
        asked = (*columns, *([] if unit is None else [unit]))
        super().__init__(suite.copy(), plan, {f"by {title}": title for title in asked})
        self._lookups: tuple[State | None, dict[tuple[str, ...], GroupLookup]] = (None, {})

    def _check_titles(self, columns: Mapping[str, object], metrics: MetricSet) -> None:
        """Raise `ValueError` if two columns of the table of slices would have the same name."""
        if not any(self.by) and self._called != "Slices":
            return  # there is no such table
        for name in metrics:
            if name in OWN:
                raise ValueError(
                    f"the result has a column {name!r}: rename the metric of this name"
                )
        limits = {f"{name}{end}": name for name in metrics for end in BESIDE}
        for title in (*columns, *metrics):
            named = f"by names the column {title!r}" if title in columns else f"metric {title!r}"
            if title in limits:
                raise ValueError(
                    f"{named}, which is the name of a limit of metric {limits[title]!r}: rename one"
                )
            if title in columns and (title in metrics or title in OWN):
                what = "a metric is called" if title in metrics else "the result has a column"
                raise ValueError(f"{named}, and {what} {title!r}: rename one")

    def feed(self, columns: Mapping[str, Any], renamed: Mapping[str, str] | None = None) -> Self:
        """Add rows given as columns by name, including the columns to slice by."""
        given = columns
        if self.unit is not None:
            groups = groups_of(columns.get(self.unit), self.unit)
            given = {**columns, hashed(self.unit): groups}
        keys = {
            cut.title: read_keys(columns[cut.title], cut.by)
            if isinstance(columns.get(cut.title), Column)
            else key_column(given, cut.by)
            for cut in self._cuts
        }
        titles = {cut.name: cut.title for cut in self._cuts}
        return super().feed({**columns, **keys}, {**(renamed or {}), **titles})

    def _slices(self, state: State) -> list[Slice]:
        return [each for spec in self._specs for each in spec.kept(state).slices()]

    def _without_groups(
        self, spec: Grouping, state: State, plan: Plan
    ) -> Iterator[tuple[Slice, Rests]]:
        """Yield every slice of a kind, and its state without each group of its units.

        The states have the statistics of `plan`, which is the set's or that of one metric.
        """
        part = self._suite._plan.parting(plan)
        units = Grouping((*spec.columns, hashed(str(self.unit))), self._cuts[0]).kept(state)
        places: dict[Any, dict[Any, int]] = {}
        for place, key in enumerate(units.keys):
            *own, group = key or ()
            places.setdefault(tuple(own), {})[group] = place
        for each in spec.kept(state).slices():
            held = places.get(each.parts, {})
            states = [part(units.state(place)) for place in held.values()]
            yield each.parted(part), Rests(list(held), without_each(plan, states))

    def groups(self) -> Groups:
        """Return the states of groups of units."""
        state, cut = self._accumulator.flush(), self._cuts[0]
        return Grouping((hashed(str(self.unit)),), cut).groups(state)[1]

    def _slice_set(self, state: State, which: Mapping[str, object]) -> MetricSet:
        """Return a slice as a separate set, which uses this set's unit for its limits."""
        found = self._slice(state, which)
        if self.unit is None:
            return self._suite._at(found)

        def of_units(metric: Metric, level: float) -> ConfidenceInterval:
            own = standalone(metric)
            rests = self._parts_of(state, which, own._plan)
            whole = self._suite._plan.part(found, own._plan)
            return limits_by_unit([own], whole, rests, level)[0]

        return self._suite._over(UnitRows(self._suite._plan, found, self.unit, of_units))

    def _limits_by_unit(self, metric: Metric, level: float) -> ConfidenceInterval:
        spec, own = Grouping((), self._cuts[0]), standalone(metric)
        ((each, rests),) = self._without_groups(spec, self._accumulator.flush(), own._plan)
        return limits_by_unit([own], each.state, rests.states, level)[0]

    def _parts_of(self, state: State, which: Mapping[str, object], plan: Plan) -> Iterator[State]:
        """Return the states of a slice without each group of its units, made as they are read."""
        part = self._suite._plan.parting(plan)
        held = []
        for group in range(GROUPS):
            with suppress(KeyError):
                held.append(part(self._slice(state, {**which, hashed(str(self.unit)): group})))
        return without_each(plan, held)

    def _finest(self, state: State) -> Groups:
        return self._cuts[0].groups(state)

    def _slice(self, state: State, which: Mapping[str, object]) -> State:
        """Return the state of one slice; raise `KeyError` if there is none."""
        spec = spec_of(which, self._specs, self._cuts)
        if not spec.columns:
            return self._whole(state)
        known, lookups = self._lookups
        if known is not state:
            self._lookups = _, lookups = state, {}
        if spec.columns not in lookups:
            lookups[spec.columns] = GroupLookup(spec, state)
        return lookups[spec.columns].state(which)

    @property
    def _kinds(self) -> dict[str, Kind]:
        kinds = dict(self._suite._kinds)
        for column in (column for spec in self.by for column in spec):
            kinds[f"by {title_of(column)}"] = "number" if isinstance(column, Bins) else "label"
        if self.unit is not None:
            kinds[f"by {self.unit}"] = "id"
        return kinds

    @property
    def _identity(self) -> object:
        return super()._identity, self.by, self.max_slices, self.overflow, self.unit
