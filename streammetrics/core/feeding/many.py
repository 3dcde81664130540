"""The states of a plan for many groups, such as shards or panes, and the facts of their rows."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.columns.schema import joined_facts
from streammetrics.core.errors import IncompatibleMetricsError, InvalidBatchError, StateFormatError
from streammetrics.core.feeding.states import RowInfo, State
from streammetrics.core.fields.weights import MANY, WeightedCount, read_amount
from streammetrics.core.floating import own_arithmetic
from streammetrics.core.state.arrays import (
    json_array,
    json_of,
    json_text,
    narrowed,
    nested,
    part,
    same,
    take_array,
    widened,
)
from streammetrics.core.statistic import GroupedStates

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from streammetrics.core.columns.schema import Facts
    from streammetrics.core.feeding.plan import Plan
    from streammetrics.core.types import Array, Arrays, Json, Places


class ColumnKinds(NamedTuple):
    """The distinct facts that occur, and the index of the facts of each group.

    Immutable: joining returns a new object, or the same one if nothing changes. The first facts are
    empty, for groups without rows.
    """

    facts: tuple[Facts, ...]
    which: Places

    @classmethod
    def none(cls, size: int = 0) -> ColumnKinds:
        """Return `size` groups without rows."""
        return cls(({},), np.zeros(size, np.intp))

    @classmethod
    def of(cls, every: Sequence[Facts]) -> ColumnKinds:
        """Return the facts of every group."""
        places: dict[Hashable, int] = {(): 0}
        facts: list[Facts] = [{}]
        which = np.zeros(len(every), np.intp)
        for group, each in enumerate(every):
            if each:
                place = places.setdefault((*each.items(), *map(type, each.values())), len(facts))
                if place == len(facts):
                    facts.append(each)
                which[group] = place
        return cls(tuple(facts), which)

    def joined(self, places: Places, fact: Facts) -> ColumnKinds:
        """Add a fact to the groups at `places`; raise if it contradicts theirs."""
        if not fact or not places.size:
            return self
        first = self.which[places[0]]
        known = fact.items() <= self.facts[first].items()
        if known and (self.which[places] == first).all():
            return self
        facts, moved = list(self.facts), self.which.copy()
        for old in np.flatnonzero(np.bincount(moved[places])).tolist():
            more = joined_facts(facts[old], fact)
            if more not in facts:
                facts.append(more)
            if (new := facts.index(more)) != old:
                moved[places[self.which[places] == old]] = new
        return ColumnKinds(tuple(facts), moved)

    def plus(self, other: ColumnKinds) -> ColumnKinds:
        """Merge the facts of the same groups from two tables; raise if they disagree."""
        whole = self
        for which, fact in enumerate(other.facts):
            whole = whole.joined(np.flatnonzero(other.which == which), fact)
        return whole

    def moved(self, kept: Places, places: Places, size: int) -> ColumnKinds:
        """Return the facts of `size` groups, where the groups `kept` move to `places`."""
        whole = ColumnKinds(self.facts, np.zeros(size, np.intp))
        for which, fact in enumerate(self.facts):
            whole = whole.joined(places[self.which[kept] == which], fact)
        return whole

    def agreed(self, texts: Sequence[str]) -> frozenset[str]:
        """Return those of the facts, given as text, that every group agrees on."""
        known = [self.facts[which].items() for which in self._there]
        return frozenset(t for t in texts if all(facts_of(t).items() <= fact for fact in known))

    @property
    def _there(self) -> list[int]:
        """The indices of the facts that occur."""
        return np.flatnonzero(np.bincount(self.which)).tolist()

    def at(self, place: int) -> dict[str, object]:
        """Return the facts of one group."""
        return dict(self.facts[self.which[place]])

    def arrays(self) -> dict[str, Array]:
        """Return the facts that occur as sorted texts, and the index of those of each group."""
        told = [json_text(fact) for fact in self.facts]
        texts = sorted({told[which] for which in self._there})
        places = {text: place for place, text in enumerate(texts)}
        lookup = np.array([places.get(text, 0) for text in told], np.int64)
        return {"facts": json_array(texts), "party": lookup[self.which]}

    @classmethod
    def restored(cls, arrays: Arrays, size: int) -> ColumnKinds:
        """Restore `size` groups from `arrays`."""
        party = take_array(arrays, "party", "int64")
        texts = json_of(take_array(arrays, "facts", "uint8"))
        if party.shape != (size,):
            raise StateFormatError("the facts of groups do not fit their number")
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise StateFormatError("the facts of groups are not text")
        if size and not 0 <= party.min() <= party.max() < len(texts):
            raise StateFormatError("the rows of a group agree on no facts")
        facts = [facts_of(text) for text in texts]
        if not all(map(are_facts, facts)):
            raise StateFormatError("the facts of groups are not valid")
        return cls(({}, *facts), party + 1)

    def alike(self) -> Facts:
        """Return the facts of all groups merged, or raise `InvalidBatchError` if they disagree."""
        whole: Facts = {}
        for which in self._there:
            whole = joined_facts(whole, self.facts[which])
        return whole


def facts_of(text: object) -> Json:
    """Parse facts from JSON."""
    return json_of(np.frombuffer(str(text).encode(), np.uint8))


def are_facts(facts: object) -> bool:
    """Whether parsed JSON is a valid set of facts: strings, integers and booleans by name."""
    return isinstance(facts, dict) and all(
        type(value) in {str, int, bool} for value in facts.values()
    )


class StateTable:
    """States of one plan as arrays over all states, without buffered rows; immutable.

    Attributes:
        plan: The plan of the statistics.
        kinds: The facts of each state, for each schema.
        counts: Numbers of rows and of omitted rows, of shape (states, schemas, 2).
        groups: The states of each statistic.
    """

    __slots__ = ("counts", "groups", "kinds", "plan", "size")

    def __init__(
        self,
        plan: Plan,
        kinds: tuple[ColumnKinds, ...],
        counts: WeightedCount,
        groups: tuple[GroupedStates, ...],
    ) -> None:
        self.plan, self.kinds, self.counts, self.groups = plan, kinds, counts, groups
        self.size = len(counts.counts)

    @classmethod
    def of(cls, plan: Plan, states: Sequence[State]) -> Self:
        """Return the table of a sequence of states."""
        infos = range(len(plan.schemas))
        kinds = tuple([ColumnKinds.of([s.infos[feed].facts for s in states]) for feed in infos])
        counts = [feed[1:] for state in states for feed in state.infos]
        groups = [
            GroupedStates.of_states(of, [state.statistics[place] for state in states])
            for place, of in enumerate(plan.start.statistics)
        ]
        shape = (len(states), len(infos), 2)
        return cls(plan, kinds, _counted(list(chain(*counts)), shape), tuple(groups))

    def at(self, place: int) -> State:
        """Return one state."""
        statistics = tuple([groups.at(place) for groups in self.groups])
        return self.plan.counted(State(self.infos(place), statistics))

    def infos(self, place: int) -> tuple[RowInfo, ...]:
        """Return the row information of one state, for each schema."""
        rows, unit = self.counts.at(place).exact().integers()
        pairs = (np.asarray(rows, object) << unit).tolist() if self.kinds else []
        return tuple(
            [RowInfo(of.at(place), *pair) for of, pair in zip(self.kinds, pairs, strict=True)]
        )

    def take(self, places: Places) -> Self:
        """Return the states at `places`."""
        to = np.full(self.size, -1)
        to[places] = np.arange(len(places))
        return self.beside(to, type(self).of(self.plan, []), np.empty(0, np.intp), len(places))

    def beside(self, mine: Places, other: Self, theirs: Places, size: int) -> Self:
        """Combine two tables into `size` states, placing `mine` and `theirs`; -1 drops a state."""
        kinds = []
        for one, two in zip(self.kinds, other.kinds, strict=True):
            every = ColumnKinds.of([*one.facts, *two.facts])
            which = np.zeros(size, np.intp)
            which[mine[mine >= 0]] = every.which[one.which[mine >= 0]]
            which[theirs[theirs >= 0]] = every.which[two.which[theirs >= 0] + len(one.facts)]
            kinds.append(ColumnKinds(every.facts, which))
        counts = self.counts.regrouped(mine, size)
        counts += other.counts.regrouped(theirs, size)
        pairs = zip(self.groups, other.groups, strict=True)
        groups = tuple([one.beside(mine, two, theirs, size) for one, two in pairs])
        return type(self)(self.plan, tuple(kinds), counts, groups)

    def total(self) -> State:
        """Merge all states into one; there must be at least one."""
        try:
            facts = [kinds.alike() for kinds in self.kinds]
        except InvalidBatchError as error:
            raise IncompatibleMetricsError(
                f"the states saw different kinds of rows: {error}"
            ) from None
        places = np.zeros(self.size, np.intp)
        counts = self.counts.regrouped(places, 1)
        with own_arithmetic():
            groups = tuple([each.regrouped(places, 1) for each in self.groups])
        kinds = tuple(map(ColumnKinds.of, zip(facts)))
        return type(self)(self.plan, kinds, counts, groups).at(0)

    def differing(self, other: Self) -> list[int]:
        """Return the indices of states that differ from those of a table of the same size."""
        if same(self.arrays(), other.arrays()):
            return []
        if self.size == 1:
            return [0]
        halves = np.array_split(np.arange(self.size), 2)
        return [
            int(half[place])
            for half in halves
            for place in self.take(half).differing(other.take(half))
        ]

    @property
    def nbytes(self) -> int:
        """The number of bytes currently in use."""
        own = self.counts.nbytes + sum([kinds.which.nbytes for kinds in self.kinds])
        return own + sum([groups.nbytes for groups in self.groups])

    def arrays(self) -> dict[str, Array]:
        """Return the canonical arrays over all states."""
        arrays = nested("rows", narrowed(self.counts.arrays()))
        for place, kinds in enumerate(self.kinds):
            arrays |= nested(f"kinds/{place}", narrowed(kinds.arrays()))
        for place, groups in enumerate(self.groups):
            arrays |= nested(str(place), groups.arrays())
        return arrays

    @classmethod
    def restored(cls, plan: Plan, arrays: Arrays, size: int) -> Self:
        """Restore a table of `size` states from untrusted arrays.

        Raises `StateFormatError` if they are invalid. The caller compares them with `arrays` of the
        result.
        """
        counts = read_amount((size, len(plan.schemas), 2), widened(part(arrays, "rows")))
        if counts.any_negative or (counts.weights is not None and counts.weights.exponent < 0):
            raise StateFormatError("the counts of rows are not whole, or negative")
        kinds = tuple(
            ColumnKinds.restored(widened(part(arrays, f"kinds/{place}")), size)
            for place in range(len(plan.schemas))
        )
        groups = tuple(
            GroupedStates.restored(of, part(arrays, str(place)), size)
            for place, of in enumerate(plan.start.statistics)
        )
        table = cls(plan, kinds, counts, groups)
        if len(plan.schemas) > 1 and not all(plan.agree(table.infos(k)) for k in range(size)):
            raise StateFormatError("metrics that read the same columns saw different rows")
        rows, unit = counts.exact().integers()
        every = (np.asarray(rows, object) << unit)[:, :, 0].T.tolist()
        for states, source in zip(groups, plan.sources, strict=True):
            states.check_rows(every[source])
        return table


def _counted(counts: list[int], shape: tuple[int, ...]) -> WeightedCount:
    """Return an array of counts; none of them may be negative."""
    if max(counts, default=0) < MANY:
        return WeightedCount.of_counts(np.array(counts, np.int64).reshape(shape))
    every = ExactSum.row_of([ExactSum.single(count) for count in counts])
    return WeightedCount.of_weights(every.reshaped(shape))
