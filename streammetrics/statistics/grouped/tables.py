"""Statistics of counts and exact sums by group: all groups are counted and summed in one pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from streammetrics.core.field import GroupedField
from streammetrics.core.statistic import Statistic
from streammetrics.statistics.grouped.forms import Form
from streammetrics.statistics.grouped.split import split
from streammetrics.statistics.grouped.waiting import GroupedRows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streammetrics.core.counting import Grouping
    from streammetrics.core.types import Array, Arrays, Floats, Places


class Tables(Form):
    """The fields of a statistic, each a table with a row for every group.

    What is rare (numbers that no float64 holds, losses that overflow) is added group by group.
    """

    def __init__(self, of: Statistic, size: int, values: Mapping[str, object]) -> None:
        self.of, self.size, self._values = of, size, values
        self._fields = _fields(of)

    @classmethod
    def fits(cls, of: Statistic) -> bool:
        """Whether a statistic has such a form: all its fields do, and it adds rows by group."""
        adds = type(of).by_group is not Statistic.by_group
        return adds and all(isinstance(field, GroupedField) for field in of.fields.values())

    @classmethod
    def empty(cls, of: Statistic, size: int = 0) -> Self:
        """Return the states of no rows."""
        return cls(of, size, {name: f.no_groups(of, size) for name, f in _fields(of).items()})

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
                name: field.of_groups([state.__dict__[name] for state in states], of)
                for name, field in _fields(of).items()
            },
        )

    def updated(self, by: Grouping, columns: Sequence[object], weight: Floats | None) -> Self:
        """Return the states after rows."""
        values = self.of.by_group(by, tuple(columns), weight)
        if values is None or values.keys() != self._fields.keys():  # of a base's fields alone
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
            name: field.groups_plus(self._values[name], other._values[name])
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
        return sum(field.groups_nbytes(self._values[name]) for name, field in self._fields.items())


def _fields(of: Statistic) -> dict[str, GroupedField[Any, Any]]:
    return {name: field for name, field in of.fields.items() if isinstance(field, GroupedField)}
