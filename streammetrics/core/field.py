"""The base class of the fields of a state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeAlias, TypeVar, overload

import numpy as np

from streammetrics.core.errors import (
    IncompatibleMetricsError,
    InvalidBatchError,
    StateFormatError,
)
from streammetrics.core.state.arrays import laid_out, take_array, taken_apart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from streammetrics.core.configured import Configured
    from streammetrics.core.counting import GroupCodes
    from streammetrics.core.types import Array, Arrays, Places

V = TypeVar("V")


def in_pairs(values: Iterable[V], plus: Callable[[V, V], V]) -> Iterator[V]:
    """Add values pairwise, like the carries of a binary counter; yield what has no pair.

    Growing values are copied a logarithmic number of times, instead of once for every other.
    """
    carried: list[tuple[int, V]] = []
    for each in values:
        count, value = 1, each
        while carried and carried[-1][0] == count:
            value = plus(carried.pop()[1], value)
            count *= 2
        carried.append((count, value))
    for _, value in reversed(carried):
        yield value


class GroupedValue(Protocol):
    """The values of many groups in arrays over all of them."""

    @property
    def nbytes(self) -> int:
        """The number of bytes currently in use."""

    def at(self, group: int) -> Any:
        """Return the value of one group."""

    def groups_plus(self, other: Any) -> Self | None:
        """Return the sums, group by group; ``None`` if they do not fit such arrays."""

    def regrouped(self, places: Places, size: int) -> Self:
        """Return `size` groups: group ``i`` is added to group ``places[i]``; -1 drops it."""


class StateField(ABC, Generic[V]):
    """A part of a state whose values are immutable and form a commutative monoid.

    Fields are declared in the class body of a statistic. `empty` and `taken` receive the statistic,
    to read its parameters. The arrays of a field are named ``name/key``, or ``name`` if the key is
    ``""``. At most one field of a statistic is `inline`: its arrays are named by their keys alone.

    The values of groups 0 to ``size - 1`` are stored together as one *grouped* value: by default a
    tuple. A field whose values are arrays should store one array over all groups, and override the
    methods on grouped values, from `no_groups` on; or it stores them as a `GroupedValue` where they
    fit one, and else as a tuple. Grouped values are immutable, too.
    """

    name = ""
    owner: type  # the class in whose body the field is declared

    def __init__(self, *, inline: bool = False) -> None:
        self.inline = inline

    def __set_name__(self, owner: type, name: str) -> None:
        self.owner, self.name = owner, name

    def __reduce__(self) -> tuple[object, ...] | str:
        # Pickle by name, like a class: the field's functions of parameters are mostly lambdas.
        return getattr, (self.owner, self.name)

    @overload
    def __get__(self, statistic: None, owner: type) -> Self: ...
    @overload
    def __get__(self, statistic: object, owner: type) -> V: ...
    def __get__(self, statistic: object, owner: type) -> object:
        # The value is in the statistic's own dictionary, which is looked up first.
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

        The others are summed pairwise, see `in_pairs`.
        """
        if len(others) == 1:
            return self.plus(mine, others[0])
        for value in in_pairs(others, self.plus):
            mine = self.plus(mine, value)
        return mine

    @abstractmethod
    def arrays(self, value: V) -> dict[str, Array]:
        """Return the canonical arrays: two values are equal if and only if their arrays are."""

    @abstractmethod
    def taken(self, arrays: Arrays, of: Configured) -> V:
        """Return the value of untrusted `arrays`, which contain no other names.

        Raises `ValueError` unless `arrays` of the result gives them back.
        """

    def the_array(self, arrays: Arrays, dtype: str, ndim: int = 1) -> Array:
        """Return the only array of a field after checking its dtype and number of dimensions."""
        if arrays.keys() != {""}:
            raise StateFormatError(f"the state lacks the array {self.name!r}, or has more of them")
        return take_array({self.name: arrays[""]}, self.name, dtype, ndim)

    def nbytes(self, value: V) -> int:
        """The number of bytes currently in use."""
        return sum(array.nbytes for array in self.arrays(value).values())

    # ---- values of many groups ----

    def no_groups(self, of: Configured, size: int) -> Any:
        """Return the grouped value of `size` groups without rows."""
        return (self.empty(of),) * size

    def of_groups(self, values: Sequence[V], of: Configured) -> object:
        """Return the grouped value of groups with the given values."""
        return tuple(values)

    def of_batch(self, found: Any, group: GroupCodes) -> Any:
        """Convert the result of `Statistic.lift` for groups to a grouped value."""
        return found

    def at(self, value: Any, group: int) -> V:
        """Return the value of one group."""
        found: V = value[group] if type(value) is tuple else value.at(group)
        return found

    def groups_plus(self, mine: Any, other: Any, size: int) -> Any:
        """Return the sums of two grouped values, group by group."""
        if type(mine) is not tuple and type(other) is not tuple:
            both = mine.groups_plus(other)
            if both is not None:
                return both
        pairs = ((self.at(mine, group), self.at(other, group)) for group in range(size))
        return tuple([self.plus(one, two) for one, two in pairs])

    def regrouped(self, value: Any, places: Places, size: int, of: Configured) -> Any:
        """Return `size` groups: group ``i`` is added to group ``places[i]``; -1 drops it."""
        if type(value) is not tuple:
            return value.regrouped(places, size)
        kept = places[places >= 0]
        if not kept.size or np.bincount(kept).max() < 2:  # every target is used at most once
            return _placed([self.empty(of)] * size, value, places)
        gathered: list[list[V]] = [[] for _ in range(size)]
        for each, place in zip(value, places.tolist(), strict=True):
            if place >= 0:
                gathered[place].append(each)
        return tuple([self._together(values, of) for values in gathered])

    def _together(self, values: Sequence[V], of: Configured) -> V:
        if len(values) < 2:
            return values[0] if values else self.empty(of)
        return self.merged(values[0], values[1:])

    def groups_nbytes(self, value: Any) -> int:
        """The number of bytes used by a grouped value."""
        return sum(map(self.nbytes, value)) if type(value) is tuple else value.nbytes

    def groups_arrays(self, value: Any, size: int) -> dict[str, Array]:
        """Return the canonical arrays of all groups; by default those of each group, packed."""
        return laid_out([self.arrays(self.at(value, group)) for group in range(size)])

    def groups_taken(self, arrays: Arrays, size: int, of: Configured) -> object:
        """Return the grouped value of untrusted `groups_arrays`.

        Raises `ValueError` unless `groups_arrays` of the result gives them back.
        """
        return tuple([self.taken(each, of) for each in taken_apart(arrays, size)])

    def together(self, value: object) -> object:
        """Return a grouped value for a readout of all groups at once; ``None`` if impossible."""
        return None if type(value) is tuple else value

    def put(
        self, value: object, other: object, places: Places, size: int, of: Configured
    ) -> object:
        """Return `size` groups: group ``i`` of `other` replaces the empty group ``places[i]``.

        -1 drops it.
        """
        if type(value) is not tuple or type(other) is not tuple:
            return self.groups_plus(value, self.regrouped(other, places, size, of), size)
        return _placed(list(value), other, places)

    # ---- other values ----

    def scaled(self, value: V, weight: float) -> V:
        """Return the value of the same rows with each weight multiplied by `weight`.

        The factor is positive and finite. Raises `InvalidBatchError` if rows have no weights.
        """
        raise InvalidBatchError(f"{self.name} cannot be scaled: its rows have no weight")

    def minus(self, value: V, other: V) -> V:
        """Return the value that gives `value` when `other` is added to it.

        Raises `IncompatibleMetricsError` if there is none, or if it cannot be determined.
        """
        raise IncompatibleMetricsError(
            f"{self.name} cannot be computed without some of its rows: merge the states to "
            "keep instead"
        )


def _placed(every: list[V], values: Sequence[V], places: Places) -> tuple[V, ...]:
    """Put each value in the list at its index in `places`, unless that is -1; return a tuple."""
    for place, value in zip(places.tolist(), values, strict=True):
        if place >= 0:
            every[place] = value
    return tuple(every)


def not_among(what: str) -> IncompatibleMetricsError:
    """Return the error for a `minus` of rows that were never added."""
    return IncompatibleMetricsError(
        f"the rows to subtract are not among those of this state: {what}"
    )


Fields: TypeAlias = dict[str, StateField[Any]]  # those of a class, by name


def declared(cls: type) -> Fields:
    """Return the fields of a class by name, those of its bases first."""
    found: Fields = {}
    for base in reversed(cls.__mro__):
        for name, value in vars(base).items():
            if isinstance(value, StateField):
                found[name] = value
            else:
                found.pop(name, None)
    return found


def named(fields: Fields, arrays: Mapping[str, Mapping[str, Array]]) -> dict[str, Array]:
    """Return the arrays of all fields, named as those of a statistic."""
    return {
        key if fields[name].inline else f"{name}/{key}" if key else name: array
        for name, mine in arrays.items()
        for key, array in mine.items()
    }


def parted(fields: Fields, arrays: Arrays) -> dict[str, dict[str, Array]]:
    """Return the arrays of each field by name; arrays of no other field are the inline field's.

    Raises `StateFormatError` if there is no inline field.
    """
    parts: dict[str, dict[str, Array]] = {name: {} for name in fields}
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


C = TypeVar("C")


def piled(
    chunks: tuple[C, ...],
    last: C,
    *,
    size: Callable[[C], int],
    join: Callable[[Sequence[C]], C],
    small: int,
) -> tuple[C, ...]:
    """Append a chunk; join it with the preceding chunks that are small and no larger than it.

    Chunk sizes therefore double, like the digits of a binary counter: each row is copied a few
    times, and few chunks of each size below `small` remain.

    >>> piled(([1, 2], [3]), [4], size=len, join=lambda both: sum(both, []), small=8)
    ([1, 2, 3, 4],)
    """
    first = len(chunks)
    n = size(last)
    while first and size(chunks[first - 1]) <= min(n, small):
        first -= 1
        n += size(chunks[first])
    if first == len(chunks):
        return (*chunks, last)
    return (*chunks[:first], join([*chunks[first:], last]))
