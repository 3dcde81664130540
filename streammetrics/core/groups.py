"""The states of one statistic for many groups, stored as a grouped value of each field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from streammetrics.core.authored import if_added_later
from streammetrics.core.errors import StateFormatError
from streammetrics.core.field import StateField, named, parted
from streammetrics.core.state.arrays import narrowed, widened
from streammetrics.core.statistic import Statistic

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from streammetrics.core.configured import Configured
    from streammetrics.core.counting import GroupCodes
    from streammetrics.core.types import Array, Arrays, Columns, Places


class GroupedStates:
    """The states of a statistic for groups 0 to ``size - 1``; immutable.

    Attributes:
        of: The statistic, without rows.
        size: The number of groups.
        values: The grouped value of each field, by name.
    """

    __slots__ = ("_fields", "of", "size", "values")

    def __init__(self, of: Statistic, size: int, values: Mapping[str, Any]) -> None:
        self.of, self.size, self.values = of, size, values
        self._fields = _fields(of)

    @classmethod
    def empty(cls, of: Statistic, size: int = 0) -> Self:
        """Return the states of `size` groups without rows."""
        return cls(of, size, {n: field.no_groups(of, size) for n, field in _fields(of).items()})

    @classmethod
    def of_states(cls, of: Statistic, states: Sequence[Statistic]) -> Self:
        """Return the states of groups, given one by one."""
        if of.own_state:
            return cls(of, len(states), {"": tuple(states)})
        fields = of.fields.items()
        values = {n: field.of_groups([s.__dict__[n] for s in states], of) for n, field in fields}
        return cls(of, len(states), values)

    @classmethod
    def of_batch(
        cls, of: Statistic, columns: Columns, weight: Array | None, group: GroupCodes
    ) -> Self | None:
        """Return the states of rows, or ``None`` if `Statistic.lift` does not take them."""
        found = of.lift(columns, weight, group) if of.lifts else None
        if found is None or found.keys() != of.fields.keys():  # those of a base alone
            return None
        fields = of.fields.items()
        values = {name: field.of_batch(found[name], group) for name, field in fields}
        return cls(of, group.size, values)

    def plus(self, other: Self) -> Self:
        """Return the sums of both, group by group."""
        mine, theirs, size = self.values, other.values, self.size
        fields = self._fields.items()
        values = {n: field.groups_plus(mine[n], theirs[n], size) for n, field in fields}
        return type(self)(self.of, size, values)

    def regrouped(self, places: Places, size: int) -> Self:
        """Return `size` groups: group ``i`` is added to group ``places[i]``; -1 drops it."""
        mine, of = self.values, self.of
        values = {n: f.regrouped(mine[n], places, size, of) for n, f in self._fields.items()}
        return type(self)(of, size, values)

    def put(self, groups: Places, states: Sequence[Statistic]) -> Self:
        """Return the states with those of some groups replaced."""
        kept = np.arange(self.size)
        kept[groups] = -1
        return self.beside(kept, type(self).of_states(self.of, states), groups, self.size)

    def beside(self, mine: Places, other: Self, theirs: Places, size: int) -> Self:
        """Place the groups of both in `size` groups, at most one in each; -1 drops a group."""
        one, two, of = self.regrouped(mine, size).values, other.values, self.of
        values = {n: f.put(one[n], two[n], theirs, size, of) for n, f in self._fields.items()}
        return type(self)(of, size, values)

    def at(self, group: int) -> Statistic:
        """Return the state of one group; it must not be modified."""
        if self.of.own_state:
            found: Statistic = self.values[""][group]
            return found
        return self.of.at(self.values, group)

    def each(self) -> Iterator[Statistic]:
        """Yield the state of every group; they must not be modified."""
        return map(self.at, range(self.size))

    def together(self) -> Statistic | None:
        """Return the statistic with arrays over groups as its fields, to read all groups at once.

        Returns ``None`` if the groups cannot be read together.
        """
        twin = self.of.fork()
        for name, field in self._fields.items():
            twin.__dict__[name] = found = field.together(self.values[name])
            if found is None:
                return None
        return twin

    def value(self, name: str) -> Any:
        """Return the grouped value of a field."""
        return self.values[name]

    def of_rows(self, rows: Sequence[int]) -> Self:
        """Tell restored states how many rows each of them holds."""
        if type(self.of).of_rows is Statistic.of_rows:
            return self
        changed, states = False, []
        for before, n in zip(self.each(), rows, strict=True):
            states.append(after := before.fork())
            after.of_rows(n)
            changed |= any(after.__dict__[n] is not before.__dict__[n] for n in self._fields)
        return type(self).of_states(self.of, states) if changed else self

    @property
    def nbytes(self) -> int:
        """The number of bytes currently in use."""
        return sum(field.groups_nbytes(self.values[n]) for n, field in self._fields.items())

    def arrays(self) -> dict[str, Array]:
        """Return the canonical arrays over all groups."""
        mine, fields = self.values, self._fields
        arrays = {n: field.groups_arrays(mine[n], self.size) for n, field in fields.items()}
        return narrowed(named(fields, arrays))

    @classmethod
    def restored(cls, of: Statistic, arrays: Arrays, size: int) -> Self:
        """Restore the states of `size` groups from untrusted arrays.

        Raises `StateFormatError` if they are invalid. The caller compares them with `arrays` of the
        result.
        """
        fields = _fields(of)
        with of.judging_arrays():
            parts = parted(fields, widened(arrays))
            values = {n: _taken(field, parts[n], size, of) for n, field in fields.items()}
            if not of.own_state:
                of.check_groups(values, size)
        return cls(of, size, values)


def _taken(field: StateField[Any], arrays: Arrays, size: int, of: Statistic) -> Any:
    """Return the grouped value of untrusted arrays; an error names the field."""
    if size and not arrays and field.name in of.state_defaults:
        value = of.state_defaults[field.name]
        return field.no_groups(of, size) if value is None else field.of_groups([value] * size, of)
    try:
        return field.groups_taken(arrays, size, of)
    except ValueError as error:
        if not field.name:  # the whole state
            raise
        later = "" if arrays else if_added_later(type(of), field.name, "None")
        raise StateFormatError(f"the field {field.name!r}: {error}{later}") from error


class _Whole(StateField[Statistic]):
    """The whole state of a statistic without fields, treated as its only field."""

    def empty(self, of: Configured) -> Statistic:
        """Return the statistic without rows."""
        assert isinstance(of, Statistic)
        return of

    def plus(self, mine: Statistic, other: Statistic) -> Statistic:
        """Return the merged statistic."""
        whole = mine.fork()
        whole.merge(other)
        return whole

    def arrays(self, value: Statistic) -> dict[str, Array]:
        """Return the arrays of the statistic."""
        return value.arrays()

    def taken(self, arrays: Arrays, of: Configured) -> Statistic:
        """Restore the statistic from its arrays."""
        return self.empty(of).restored(arrays)

    def nbytes(self, value: Statistic) -> int:
        """The number of bytes currently in use."""
        return value.nbytes


_WHOLE: dict[str, StateField[Any]] = {"": _Whole(inline=True)}


def _fields(of: Statistic) -> Mapping[str, StateField[Any]]:
    return _WHOLE if of.own_state else of.fields
