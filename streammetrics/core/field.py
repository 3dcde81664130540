"""What every field of a state can do, whatever its type."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

from streammetrics.core.errors import (
    IncompatibleMetricsError,
    InvalidBatchError,
    StateFormatError,
)
from streammetrics.core.state.arrays import by_shapes, same, take_array

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streammetrics.core.configured import Configured
    from streammetrics.core.state.arrays import Stack
    from streammetrics.core.types import Array, Arrays, Places

V = TypeVar("V")
G = TypeVar("G")
A = TypeVar("A")


class StateField(ABC, Generic[V]):
    """A part of a state: its values are a commutative monoid, and immutable.

    Declared in the body of a statistic, which may be asked for its parameters by `empty` and
    `taken`. Its arrays are named for it, ``name/key``, or just ``name`` where the key is ``""``;
    `inline`, they are named by their keys alone, which one field of a statistic can be.
    """

    name = ""
    owner: type  # the class in whose body the field is declared

    def __init__(self, *, inline: bool = False) -> None:
        self.inline = inline

    def __set_name__(self, owner: type, name: str) -> None:
        self.owner, self.name = owner, name

    def __reduce__(self) -> tuple[object, ...]:
        # By name, as pickle does with a class: its functions of parameters are mostly lambdas.
        return getattr, (self.owner, self.name)

    @overload
    def __get__(self, statistic: None, owner: type) -> Self: ...
    @overload
    def __get__(self, statistic: object, owner: type) -> V: ...
    def __get__(self, statistic: object, owner: type) -> Any:
        # The value stands in the statistic itself, where it is found first.
        if statistic is None:
            return self
        raise AttributeError(f"the {self.name} of this {owner.__name__} has not been set")

    @abstractmethod
    def empty(self, of: Configured) -> V:
        """Return the value of no rows."""

    @abstractmethod
    def plus(self, mine: V, other: V) -> V:
        """Return the value of the rows of both, or raise `IncompatibleMetricsError`."""

    def merged(self, mine: V, others: Sequence[V]) -> V:
        """Return the value of the rows of all.

        Values of as many others are added up first, as a binary counter carries: where values grow,
        each is copied a few times and not once for every other.
        """
        if len(others) == 1:
            return self.plus(mine, others[0])
        carried: list[tuple[int, V]] = []
        for other in others:
            count, value = 1, other
            while carried and carried[-1][0] == count:
                value = self.plus(carried.pop()[1], value)
                count *= 2
            carried.append((count, value))
        for _, value in reversed(carried):
            mine = self.plus(mine, value)
        return mine

    @abstractmethod
    def arrays(self, value: V) -> dict[str, Array]:
        """Return the canonical arrays: equal values, and only they, have equal ones."""

    def each_arrays(self, values: Sequence[V]) -> dict[str, Stack] | None:  # noqa: ARG002 - for those that can
        """Return the arrays of many values, which all have the same ones, of whatever shapes.

        ``None`` where that is not so, or making them together is no cheaper than one by one.
        """
        return None

    @abstractmethod
    def taken(self, arrays: Arrays, of: Configured) -> V:
        """Return the value of its `arrays`; `ValueError` unless `arrays` gives them again.

        They may come from anyone, and no other array may be among them.
        """

    def each_taken(self, stacks: Arrays, n: int, of: Configured) -> Sequence[V]:
        """Return the values of `n` states whose arrays are of the same shapes, ``(n, ...)``.

        As `taken` of each. Fields of which there can be many that are small check all at once.
        """
        found = []
        for place in range(n):
            arrays = {key: stack[place, ...] for key, stack in stacks.items()}
            value = self.taken(arrays, of)
            if not same(self.arrays(value), arrays):
                raise StateFormatError(f"the arrays of {self.name} are not such as are written")
            found.append(value)
        return found

    def each_of(self, stacks: Mapping[str, Stack], n: int, of: Configured) -> Sequence[V]:
        """Return the values of `n` states whose arrays are of any shapes, as `taken` of each.

        Those of the same shapes are taken together. Fields whose arrays mostly differ in length
        take all at once.
        """
        return by_shapes(stacks, n, lambda arrays, m: self.each_taken(arrays, m, of))

    def the_array(self, arrays: Arrays, dtype: str, ndim: int = 1) -> Array:
        """Return the one array of a field that has no others, after checking what it is."""
        if arrays.keys() != {""}:
            raise StateFormatError(f"the state lacks the array {self.name!r}, or has more of them")
        return take_array({self.name: arrays[""]}, self.name, dtype, ndim)

    def nbytes(self, value: V) -> int:
        """Bytes held now."""
        return sum(array.nbytes for array in self.arrays(value).values())

    def scaled(self, value: V, weight: float) -> V:  # noqa: ARG002 - for those that can
        """Return the value of the same rows, each of them weighing so many times as much.

        The weight is positive and finite. Raises `InvalidBatchError` where rows have no weight.
        """
        raise InvalidBatchError(f"{self.name} cannot be scaled: its rows have no weight")

    def minus(self, value: V, other: V) -> V:  # noqa: ARG002 - for those that can
        """Return the value that with `other` added is this one.

        Raises `IncompatibleMetricsError` where there is none, or it cannot be told.
        """
        raise IncompatibleMetricsError(
            f"{self.name} cannot be told without some of its rows: merge those that are to stay"
        )


class GroupedField(StateField[V], Generic[V, G]):
    """A field of which the values of groups 0 to ``size - 1`` are held as one, an array mostly.

    Such a value is immutable, as that of one group is.
    """

    @abstractmethod
    def no_groups(self, of: Configured, size: int) -> G:
        """Return the value of `size` groups without rows."""

    @abstractmethod
    def regrouped(self, value: G, places: Places, size: int) -> G:
        """Return what the groups that go to each of `size` places hold together; -1 is nowhere."""

    @abstractmethod
    def groups_plus(self, mine: G, other: G) -> G:
        """Return what both hold together, group by group."""

    @abstractmethod
    def at(self, value: G, group: int) -> V:
        """Return the value of one group, which has rows."""

    @abstractmethod
    def of_groups(self, values: Sequence[V], of: Configured) -> G:
        """Return the groups of which these are the values."""

    @abstractmethod
    def groups_nbytes(self, value: G) -> int:
        """Bytes held now."""


def not_among(what: str) -> IncompatibleMetricsError:
    """Return the error of a `minus` of rows that were never added."""
    return IncompatibleMetricsError(
        f"the rows to be taken out are not among those of this state: {what}"
    )


def declared(cls: type) -> dict[str, StateField[Any]]:
    """Return the fields of a class by name, those of its bases first."""
    found: dict[str, StateField[Any]] = {}
    for base in reversed(cls.__mro__):
        for name, value in vars(base).items():
            if isinstance(value, StateField):
                found[name] = value
            else:
                found.pop(name, None)
    return found


def named(fields: Mapping[str, StateField[Any]], values: Mapping[str, object]) -> dict[str, Any]:
    """Return the arrays of all fields, as those of a statistic."""
    arrays: dict[str, Array] = {}
    for name, field in fields.items():
        for key, array in field.arrays(values[name]).items():
            arrays[_named(name, field, key)] = array
    return arrays


def each_named(
    fields: Mapping[str, StateField[Any]], every: Sequence[Mapping[str, object]]
) -> dict[str, Stack] | None:
    """Return the arrays of many statistics, or ``None`` where a field has none of many."""
    stacks: dict[str, Stack] = {}
    for name, field in fields.items():
        mine = field.each_arrays([values[name] for values in every])
        if mine is None:
            return None
        stacks |= {_named(name, field, key): stack for key, stack in mine.items()}
    return stacks


def _named(name: str, field: StateField[Any], key: str) -> str:
    return key if field.inline else f"{name}/{key}" if key else name


def parted(
    fields: Mapping[str, StateField[Any]], arrays: Mapping[str, A]
) -> dict[str, dict[str, A]]:
    """Return the arrays of each field by its name; one that is of none is of the inline field.

    Raises `StateFormatError` where there is no such field.
    """
    parts: dict[str, dict[str, A]] = {name: {} for name in fields}
    for name, array in arrays.items():
        head, _, key = name.partition("/")
        field = fields.get(head)
        if field is not None and not field.inline and (key or name == head):
            parts[head][key] = array
        else:
            rest = next((name for name, field in fields.items() if field.inline), None)
            if rest is None:
                raise StateFormatError(f"{name!r} is not an array of this state")
            parts[rest][name] = array
    return parts
