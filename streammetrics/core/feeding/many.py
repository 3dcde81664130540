"""The states of a plan for many groups: shards of a ledger, panes of time."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Self

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.errors import IncompatibleMetricsError, InvalidBatchError, StateFormatError
from streammetrics.core.feeding.kinds import ColumnKinds
from streammetrics.core.feeding.states import RowInfo, State
from streammetrics.core.fields.weights import MANY, WeightedCount, read_amount, regrouped_amounts
from streammetrics.core.floating import own_arithmetic
from streammetrics.core.groups import GroupedStates
from streammetrics.core.state.arrays import narrowed, nested, part, same, widened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.feeding.plan import Plan
    from streammetrics.core.types import Array, Arrays, Places


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
        counts = regrouped_amounts(self.counts, mine, size)
        counts += regrouped_amounts(other.counts, theirs, size)
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
        counts = regrouped_amounts(self.counts, places, 1)
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
        return cls(plan, kinds, counts, table._of_rows())

    def _of_rows(self) -> tuple[GroupedStates, ...]:
        rows, unit = self.counts.exact().integers()
        every = (np.asarray(rows, object) << unit)[:, :, 0].T.tolist()
        pairs = zip(self.groups, self.plan.sources, strict=True)
        return tuple([groups.of_rows(every[source]) for groups, source in pairs])


def _counted(counts: list[int], shape: tuple[int, ...]) -> WeightedCount:
    """Return an array of counts; none of them may be negative."""
    if max(counts, default=0) < MANY:
        return WeightedCount.of_counts(np.array(counts, np.int64).reshape(shape))
    every = ExactSum.row_of([ExactSum.single(count) for count in counts])
    return WeightedCount.of_weights(every.reshaped(shape))
