"""The common base of sets that group their rows by key: what they store and how they are fed."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from streammetrics.core.accumulator import Accumulator, ReadOnly
from streammetrics.core.columns.conversion import Column
from streammetrics.core.errors import an
from streammetrics.core.metric_set import MetricSet
from streammetrics.inference.units import (
    UnitRows,
    UnitSet,
    WholeView,
    check_one_time,
    limits_by_unit,
    unit_column,
    without_each,
)
from streammetrics.slices.bins import Bins, KeySpec, specs_of, title_of
from streammetrics.slices.groups import FinestSlices, Grouping, GroupLookup, spec_of, state_of_all
from streammetrics.slices.reading import key_column, read_keys
from streammetrics.slices.table import BESIDE, OWN
from streammetrics.statistics.grouped.keys import GROUPS
from streammetrics.statistics.grouped.schema import GroupedPlan, KeyedSchema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.columns.schema import Kind
    from streammetrics.core.confidence import ConfidenceInterval
    from streammetrics.core.feeding.states import RowInfo, State
    from streammetrics.core.metric import Metric
    from streammetrics.core.types import Ints
    from streammetrics.inference.units import Rests
    from streammetrics.slices.fairness import Slice
    from streammetrics.statistics.grouped.grouped import Groups
    from streammetrics.statistics.grouped.keys import Part

    By = Sequence[Sequence[KeySpec] | KeySpec] | KeySpec


def hashed(title: str) -> str:
    """Return the name of the column of unit groups."""
    return f"hash of {title}"


def groups_of(value: object, title: str) -> Ints:
    """Return the group of each row's unit, from 0 to 63.

    Raises:
        InvalidBatchError: The column does not exist, or a row has no valid id.
    """
    groups: Ints = unit_column(value, title).values & np.int64(GROUPS - 1)
    return groups


class KeyedSet(MetricSet):
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
        if not isinstance(suite, MetricSet) or isinstance(suite, KeyedSet | UnitSet):
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
        self._suite, self.by, self.unit = suite.copy(), specs_of(by, some=unit is None), unit
        columns = {title_of(column): column for spec in self.by for column in spec}
        self._check_titles(columns, suite)
        finest = (*columns.values(), *([] if unit is None else [hashed(unit)]))
        apart = [spec for spec in self.by if spec] if overflow == "other" else [finest]
        self._cuts = tuple(
            FinestSlices(suite._plan, number, parts, max_slices, overflow)
            for number, parts in enumerate(apart)
        )
        plan = GroupedPlan([each for cut in self._cuts for each in cut.statistics])
        super().__init__(dict(suite.items()), columns=suite.columns)
        self._plan = plan
        self._specs = tuple(Grouping.of(spec, self._cuts) for spec in self.by)
        self._accumulator = Accumulator(self._plan)
        asked = (*columns, *([] if unit is None else [unit]))
        self._titles = {**suite._titles, **{f"by {title}": title for title in asked}}
        self._needed = tuple(dict.fromkeys((*suite._needed, *asked)))
        self._viewed = None
        self._merged: tuple[State | None, State] = (None, suite._plan.start)
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

    def _without_groups(self, spec: Grouping, state: State) -> list[tuple[Slice, Rests]]:
        """Return every slice of a kind, with its state without each group of its units."""
        units = Grouping((*spec.columns, hashed(str(self.unit))), self._cuts[0]).kept(state)
        parts: dict[Any, dict[Part, State]] = {}
        for place, key in enumerate(units.keys):
            *own, group = key or ()
            parts.setdefault(tuple(own), {})[group] = units.state(place)
        pairs = []
        for each in spec.kept(state).slices():
            held = parts.get(each.parts, {})
            rests = without_each(self._suite._plan, list(held.values()), [True] * len(held))
            pairs.append((each, dict(zip(held, rests, strict=True))))
        return pairs

    def groups(self) -> Groups:
        """Return the states of groups of units."""
        state, cut = self._accumulator.flush(), self._cuts[0]
        return Grouping((hashed(str(self.unit)),), cut).groups(state)[1]

    @property
    def _kept_unit(self) -> str | None:
        return self.unit

    def _slice_set(self, state: State, which: Mapping[str, object]) -> MetricSet:
        """Return a slice as a separate set, which uses this set's unit for its limits."""
        found = self._slice(state, which)
        if self.unit is None:
            return self._suite._at(found)

        def of_units(metric: Any, level: float) -> ConfidenceInterval:
            return limits_by_unit(metric, found, self._parts_of(state, which), level)

        return self._suite._over(UnitRows(self._suite._plan, found, self.unit, of_units))

    def _limits_by_unit(self, metric: Any, level: float) -> ConfidenceInterval:
        spec = Grouping((), self._cuts[0])
        ((each, rests),) = self._without_groups(spec, self._accumulator.flush())
        return limits_by_unit(metric, each.state, list(rests.values()), level)

    def _parts_of(self, state: State, which: Mapping[str, object]) -> list[State]:
        """Return the states of a slice without each group of its units."""
        held = []
        for group in range(GROUPS):
            with suppress(KeyError):
                held.append(self._slice(state, {**which, hashed(str(self.unit)): group}))
        return without_each(self._suite._plan, held, [True] * len(held))

    def _open_view(self) -> ReadOnly:
        return WholeView(self)

    def _whole(self, state: State) -> State:
        known, merged = self._merged
        if known is not state:
            merged = state_of_all(state, self._cuts[0])
            self._merged = (state, merged)
        return merged

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

    def _check_unit(self, unit: str, *, anytime: bool) -> None:
        """Raise `ValueError` if there are no confidence limits by this unit."""
        if unit != self.unit:
            kept = "no units are kept" if self.unit is None else f"units are kept by {self.unit!r}"
            raise ValueError(
                f"confidence(unit={unit!r}): {kept}; {self._called}(..., unit={unit!r}) keeps those"
            )
        check_one_time(unit, anytime=anytime)

    def _chosen_feeds(self, state: State) -> Sequence[RowInfo]:
        pairs = zip(self._plan.schemas, state.infos, strict=True)
        return [feed for schema, feed in pairs if isinstance(schema, KeyedSchema)]

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
