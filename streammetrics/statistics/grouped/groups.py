"""Groups: what a grouped state holds by key, and the ordinary states of one key or of several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.counting import added_at
from streammetrics.core.feeding.states import RowInfo, State
from streammetrics.statistics.grouped.grouped import Grouped
from streammetrics.statistics.grouped.keys import OTHER, lowest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.feeding.plan import Plan
    from streammetrics.core.groups import GroupedStates
    from streammetrics.core.metric import Metric
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import Array, Ints, Places


@dataclass(frozen=True)
class _Part:
    """The statistics of one schema by key, and the rows that it left out."""

    kept: Grouped
    left: Grouped | None

    def every(self) -> list[Grouped]:
        return [self.kept] if self.left is None else [self.kept, self.left]


@dataclass(frozen=True)
class Groups:
    """All that a state of `grouped_plan` holds, by key.

    Attributes:
        plan: Of the statistics without keys.
        keys: All keys, sorted: integers or text.
    """

    plan: Plan
    keys: Array
    _parts: tuple[_Part, ...]

    @classmethod
    def of(cls, plan: Plan, state: State) -> Groups:
        """Return the groups of a state of ``grouped_plan(plan)``, without buffered rows."""
        return cls.holding(plan, [s for s in state.statistics if isinstance(s, Grouped)])

    @classmethod
    def holding(cls, plan: Plan, every: Sequence[Grouped]) -> Groups:
        """Return the groups of grouped statistics, in the order of `grouped_plan`."""
        parts: list[_Part] = []
        if len({grouped.are_groups for grouped in every if grouped.size}) > 1:
            every = [grouped.united() for grouped in every]
        for grouped in every:
            if grouped.left_out:
                parts[-1] = _Part(parts[-1].kept, grouped)
            else:
                parts.append(_Part(grouped, None))
        seen = [grouped.keys for grouped in every if grouped.size]
        keys: Array = seen[0] if seen else np.empty(0, np.int64)
        if not all(np.array_equal(keys, more) for more in seen):
            keys = np.unique(np.concatenate(seen))
            keys = _within(keys, every[0])
        return cls(plan, keys, tuple(parts))

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def n_rows(self) -> Ints:
        """Rows seen of each key, as `MetricSet.n_rows` counts them."""
        rows = np.zeros(len(self), np.int64)
        for part in self._parts:
            rows = np.maximum(rows, self._counted(part.kept))
        return rows

    def _counted(self, grouped: Grouped) -> Ints:
        return added_at(self._places(grouped), grouped.rows, len(self))

    def _places(self, grouped: Grouped) -> Places:
        """Return where the keys of one statistic are among all; some are in `OTHER`."""
        if grouped.keys is self.keys or not grouped.size:
            return np.arange(grouped.size)
        found = np.minimum(np.searchsorted(self.keys, grouped.keys), len(self) - 1)
        return np.where(self.keys[found] == grouped.keys, found, 0)

    def regrouped(self, places: Places, keys: Array) -> Groups:
        """Return coarser groups: key ``i`` goes to ``keys[places[i]]``, or -1: nowhere."""

        def moved(grouped: Grouped) -> Grouped:
            mine = places[self._places(grouped)]
            there = np.unique(mine[mine >= 0])
            rank = np.full(len(keys) + 1, -1, np.intp)  # the last place is that of -1
            rank[there] = np.arange(there.size)
            return grouped.regrouped(rank[mine], keys[there])

        parts = [
            _Part(moved(p.kept), None if p.left is None else moved(p.left)) for p in self._parts
        ]
        return Groups(self.plan, keys, tuple(parts))

    def state(self, selected: Places) -> State:
        """Return the state of the rows of some keys, by their places, as one fresh metric's."""
        places = np.full(len(self), -1, np.intp)
        places[selected] = 0
        if len(selected) == 1:
            return self._state_at(int(selected[0]))
        return self.regrouped(places, self.keys[:1])._state_at(0)

    def forms(self, metric: Metric) -> tuple[GroupedStates, ...] | None:
        """Return what a metric reads, of all keys; ``None`` where some have none of it."""
        found = []
        for place, source in zip(metric._reads, metric._feeds, strict=True):
            kept = self._parts[source].kept
            if kept.size != len(self):
                return None
            found.append(kept.states[self.plan.sources[:place].count(source)].states)
        return tuple(found)

    def seen_by(self, metric: Metric) -> Groups:
        """Return the groups in which a metric has rows."""
        there = np.ones(len(self), np.bool_)
        for source in metric._feeds:
            there &= np.isin(self.keys, self._parts[source].kept.keys)
        if there.all():
            return self
        return self.regrouped(np.where(there, np.cumsum(there) - 1, -1), self.keys[there])

    def rows_of(self, metric: Metric) -> Ints:
        """Return how many rows of each key a metric has seen."""
        rows: Ints = np.zeros(len(self), np.int64)
        for source in metric._feeds:
            rows = np.maximum(rows, self._counted(self._parts[source].kept))
        return rows

    def omitted_of(self, metric: Metric) -> Ints:
        """Return how many rows of each key were left out for a metric."""
        rows: Ints = np.zeros(len(self), np.int64)
        for source in metric._feeds:
            if (left := self._parts[source].left) is not None:
                rows = np.maximum(rows, self._counted(left))
        return rows

    def _state_at(self, place: int) -> State:
        infos: list[RowInfo] = []
        found: dict[tuple[int, int], Statistic] = {}
        for source, part in enumerate(self._parts):
            feed = RowInfo({}, 0, 0)
            at = self._place_in(part.kept, place)
            for number, states in enumerate(part.kept.states):
                found[source, number] = states.of if at is None else states.at(at)
            if at is not None:
                feed = part.kept.feed(at)
            if part.left is not None and (out := self._place_in(part.left, place)) is not None:
                feed = feed._replace(n_omitted=int(part.left.rows[out]))
            infos.append(feed)
        turns = [0] * len(self._parts)
        statistics = []
        for source in self.plan.sources:
            statistics.append(found[source, turns[source]])
            turns[source] += 1
        return State(tuple(infos), tuple(statistics))

    def _place_in(self, grouped: Grouped, place: int) -> int | None:
        if grouped.keys is self.keys:
            return place
        if not grouped.size or not len(self):
            return None
        found = int(np.searchsorted(grouped.keys, self.keys[place]))
        return found if found < grouped.size and grouped.keys[found] == self.keys[place] else None


def _within(keys: Array, grouped: Grouped) -> Array:
    """Return the keys that there may be, where statistics that saw other rows hold others."""
    if grouped.overflow != "other" or grouped.most is None or len(keys) <= grouped.most:
        return keys
    kept = keys[lowest(keys, grouped.most)]
    return np.concatenate([[OTHER], kept]) if len(kept) < len(keys) else keys
