"""Statistics of counts and exact sums by group: all groups are counted and summed in one pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from streammetrics.core.fields.plain import Width
from streammetrics.core.fields.spreads import SquaredWeight, SquareWeighted
from streammetrics.core.fields.sums import NamedSums, Sum
from streammetrics.core.fields.tables import PairTable
from streammetrics.core.fields.weights import Weight
from streammetrics.statistics.grouped.fields import (
    GroupedNamedSums,
    GroupedSum,
    GroupedWeight,
    GroupedWidth,
)
from streammetrics.statistics.grouped.forms import Form
from streammetrics.statistics.grouped.lifts import LIFTS
from streammetrics.statistics.grouped.pairs import GroupedPairs
from streammetrics.statistics.grouped.split import split
from streammetrics.statistics.grouped.waiting import GroupedRows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streammetrics.core.field import StateField
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import Array, Arrays, Floats, Places
    from streammetrics.statistics.grouped.fields import GroupedField
    from streammetrics.statistics.grouped.grouping import Grouping


_FIELDS: dict[type[StateField[Any]], type[GroupedField[Any]]] = {
    Sum: GroupedSum,
    NamedSums: GroupedNamedSums,
    Weight: GroupedWeight,
    Width: GroupedWidth,
    PairTable: GroupedPairs,
    SquareWeighted: GroupedNamedSums,
    SquaredWeight: GroupedWeight,
}


class Tables(Form):
    """The fields of a statistic, each a table with a row for every group.

    What is rare (numbers that no float64 holds, losses that overflow) is lifted group by group.
    """

    def __init__(self, of: Statistic, size: int, values: Mapping[str, object]) -> None:
        self.of, self.size, self._values = of, size, values
        self._fields = _fields(of)

    @classmethod
    def fits(cls, of: Statistic) -> bool:
        """Whether a statistic has such a form: all its fields have one, and are lifted together."""
        if type(of) not in LIFTS:
            return False
        _, lifted = LIFTS[type(of)]
        return {*lifted} == {*of.fields} and all(type(f) in _FIELDS for f in of.fields.values())

    @classmethod
    def empty(cls, of: Statistic, size: int = 0) -> Self:
        """Return the states of no rows."""
        return cls(of, size, {name: f.empty(of, size) for name, f in _fields(of).items()})

    @classmethod
    def restored(cls, of: Statistic, every: Sequence[Arrays]) -> Self:
        """Return the states whose `arrays_at` are given."""
        return cls._of_states(of, [of.restored(arrays) for arrays in every])

    @classmethod
    def _of_states(cls, of: Statistic, states: Sequence[Statistic]) -> Self:
        return cls(
            of,
            len(states),
            {
                name: field.joined([state.__dict__[name] for state in states], of)
                for name, field in _fields(of).items()
            },
        )

    def updated(self, by: Grouping, columns: Sequence[object], weight: Floats | None) -> Self:
        """Return the states after rows."""
        lift, _ = LIFTS[type(self.of)]
        values = lift(self.of, by, columns, weight)
        if values is None:
            rows = GroupedRows.of(by.codes, columns, weight, self.size)
            states = split([self.of] * self.size, [rows])
            return self.plus(self._of_states(self.of, states))
        return self.plus(type(self)(self.of, self.size, values))

    def regrouped(self, places: Places, size: int) -> Self:
        """Return what the groups at each place hold together."""
        values = {
            name: field.regrouped(self._values[name], places, size)
            for name, field in self._fields.items()
        }
        return type(self)(self.of, size, values)

    def plus(self, other: Self) -> Self:
        """Return what both hold together, group by group."""
        values = {
            name: field.plus(self._values[name], other._values[name])
            for name, field in self._fields.items()
        }
        return type(self)(self.of, self.size, values)

    def value(self, name: str) -> Any:
        """Return a field of all groups, as `fields` holds it."""
        return self._values[name]

    def arrays_at(self, group: int) -> dict[str, Array]:
        """Return the canonical arrays of the state of a group."""
        return self.at(group).arrays()

    def at(self, group: int) -> Statistic:
        """Return the state of a group as a statistic of its own."""
        statistic = self.of.fork()
        for name, field in self._fields.items():
            statistic.__dict__[name] = field.at(self._values[name], group)
        return statistic

    @property
    def nbytes(self) -> int:
        """Bytes of state held now."""
        return sum(field.nbytes(self._values[name]) for name, field in self._fields.items())


def _fields(of: Statistic) -> dict[str, GroupedField[Any]]:
    return {name: _FIELDS[type(field)](field) for name, field in of.fields.items()}
