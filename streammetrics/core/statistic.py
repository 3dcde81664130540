"""The base class of statistics, and the states of one statistic for many groups."""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Self
from weakref import WeakValueDictionary

import numpy as np

from streammetrics.core.authored import check_class, if_added_later
from streammetrics.core.configured import Configured, check_constructor
from streammetrics.core.errors import (
    IncompatibleMetricsError,
    InvalidBatchError,
    StateFormatError,
    an,
)
from streammetrics.core.field import Fields, StateField, declared, named, not_among, parted
from streammetrics.core.state.arrays import narrowed, same, widened

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.schema import Facts, Rows, Schema
    from streammetrics.core.counting import GroupCodes
    from streammetrics.core.types import Array, Arrays, Columns, Places, ReadColumn


class SharedColumns(tuple[Any, ...]):
    """The columns of one update that several statistics are given; `lift` may share results.

    Attributes:
        peers: The statistics.
        found: What one of them has computed, and others need too, by a key.
    """

    peers: tuple[Statistic, ...]
    found: dict[object, ReadColumn]

    @classmethod
    def of(cls, columns: Columns, peers: tuple[Statistic, ...]) -> Self:
        """Return the columns with the statistics that are given them."""
        shared = cls(columns)
        shared.peers, shared.found = peers, {}
        return shared


class Statistic(Configured, ABC):
    """A summary of the rows seen: a commutative monoid, the product of its fields.

    A statistic declares the `~streammetrics.core.fields` of its state, says in `schema` which
    columns it reads, and adds rows to its fields in `update`. Everything else is derived from the
    fields. A statistic without fields implements `clear`, `merge`, `arrays` and `restore` itself,
    and does not support `scaled` and `minus`.

    ``update(rows)`` equals ``merge(lift(rows))`` byte for byte, where the lift is an empty
    statistic updated with the rows. ``merge`` is associative and commutative, byte for byte.

    Attributes with state are *rebound, never mutated*: an array that was once reachable from a
    statistic is never written to. A `fork` is therefore a snapshot for the cost of a dictionary
    copy. Updating a fork and then putting it in place is an all-or-nothing update.

    ``update`` *accepts every row that the schema has accepted*. Rows of small batches are buffered,
    so the call that brought them may have returned long before `update` sees them. Invalid rows
    must be refused by the schema; `may_refuse` says which rows can contradict earlier ones. If
    `update` refuses rows nevertheless, they are dropped, and the next read raises.

    Several threads may read one statistic. If a read converts the state to another representation,
    it must replace it in one assignment: keep attributes that belong together in one field.
    """

    fields: ClassVar[Fields] = {}
    # Values of fields that were added after states had been written; ``None`` for that of no rows.
    state_defaults: ClassVar[Mapping[str, object]] = {}
    # Whether `update` mostly runs without the GIL; each class with its own `update` must state it.
    in_kernels: ClassVar[bool] = False
    # Whether `update` takes int64 weights, of rows that count several times; as above.
    takes_counts: ClassVar[bool] = False
    # Whether `lift` says what `update` adds; derived.
    lifts: ClassVar[bool] = False
    # Why a row cannot stand for several (``counts``); empty if it can.
    uncounted: ClassVar[str] = ""

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        check_constructor(cls)
        cls.fields = declared(cls)
        for name in vars(cls).keys() & cls.fields.keys():
            if hasattr(Statistic, name):
                raise TypeError(
                    f"{cls.__name__}.{name} cannot be a field: it would hide Statistic.{name}; "
                    "rename it"
                )
        check_class(cls)
        own = vars(cls).keys()
        if {"update", "lift"} & own:  # what holds for the inherited ones is not inherited
            for name in {"in_kernels", "takes_counts", "by_sorted_group"} - own:
                setattr(cls, name, getattr(Statistic, name))
            cls.lifts = "lift" in own

    def __post_init__(self) -> None:
        super().__post_init__()
        cls = type(self)
        if cls.update is Statistic.update and not cls.lifts:
            raise TypeError(f"{cls.__name__} needs update(self, ..., *, weight), or lift")
        self.clear()

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """How the columns of a batch are named, validated and converted for this statistic."""

    def update(self, *columns: Any, **weight: Any) -> None:
        """Add validated columns, with the keyword argument ``weight``; by default their `lift`.

        The weight is an array of positive numbers, or ``None`` if every row has weight one.
        """
        self._add_rows(columns, **weight)

    def _add_rows(self, columns: Columns, weight: Array | None) -> None:
        mine, fields = self.__dict__, self.fields
        for name, value in (self.lift(columns, weight) or {}).items():
            mine[name] = fields[name].plus(mine[name], value)

    def _after(self, columns: Columns, weight: Array | None) -> Self:
        """Return a snapshot with more rows, for which `update` takes the columns one by one."""
        twin = self.fork()
        if self.lifts:
            twin._add_rows(columns, weight)
        else:
            twin.update(*columns, weight=weight)
        return twin

    def lift(
        self, columns: Columns, weight: Array | None, group: GroupCodes | None = None
    ) -> Mapping[str, object] | None:
        """Return what rows add to each field: the value of all rows, or with `group` of each group.

        The field converts the values of groups to a grouped value; see `StateField.of_batch`.
        ``None`` means that `update` must be called for the rows of each group. Columns of a set are
        `SharedColumns` where other statistics of it are given the same.
        """
        return None

    def check_fields(self) -> None:
        """Raise `StateFormatError` if fields that are valid one by one do not fit together.

        Called for every restored state. Subclasses override it.
        """

    def check_groups(self, values: Mapping[str, object], size: int) -> None:
        """Run `check_fields` for grouped values of the fields.

        Statistics that can check all groups at once override it.
        """
        if type(self).check_fields is not Statistic.check_fields:
            for group in range(size):
                self.at(values, group).check_fields()

    def at(self, values: Mapping[str, object], group: int) -> Self:
        """Return the state of one group, from grouped values of the fields."""
        twin = self.fork()
        for name, field in self.fields.items():
            twin.__dict__[name] = field.at(values[name], group)
        return twin

    def check_rows(self, n: int) -> None:
        """Raise `StateFormatError` if a restored state cannot be that of `n` rows."""

    @property
    def own_state(self) -> bool:
        """Whether the state is not made of fields, and has its own `merge` and `arrays`."""
        return not self.fields and bool(self.arrays())

    @property
    def own_rows(self) -> int | None:
        """Number of rows in the state, if repeated rows count once; otherwise ``None``."""
        return None

    @property
    def absent_facts(self) -> frozenset[str]:
        """Names of facts about rows that, as the state shows, no row has."""
        return frozenset()

    @property
    def _later(self) -> list[str]:
        """Names, or beginnings of names, of arrays of the fields in `state_defaults`."""
        return sorted(self.fields.keys() & self.state_defaults.keys())

    @property
    def can_refuse(self) -> bool:
        """Whether `may_refuse` can return True for any rows."""
        return type(self).may_refuse is not Statistic.may_refuse

    def may_refuse(self, rows: Rows) -> bool:
        """Whether `update` may refuse the rows, which therefore must not be buffered."""
        return False

    def clear(self) -> None:
        """Reset the state to that of no rows."""
        for name, field in self.fields.items():
            self.__dict__[name] = field.empty(self)

    def by_sorted_group(
        self, n: int, pieces: Iterable[tuple[Places, object, Array | None]]
    ) -> dict[str, object] | None:
        """Return the grouped value of each field for `n` rows that are sorted by group.

        The rows come in pieces ``(starts, columns, weight)`` of whole groups: the rows of group
        ``g`` in a piece are ``starts[g]`` to ``starts[g + 1]``. ``None`` means that `update` must
        be called for the rows of each group.
        """
        return None

    def take_whole(self, batch: Batch) -> tuple[Self, Facts] | None:
        """Fast path: return this statistic after all rows of a long batch, and their facts.

        Returns ``None`` unless the columns are plain arrays of valid values. The schema then reads
        them in slices, and reports errors.
        """
        return None

    def merge(self, other: Self) -> None:
        """Add the rows of another statistic of the same configuration, which is unchanged."""
        self._merge_fields([other])

    def merge_all(self, others: Sequence[Self]) -> None:
        """Add the rows of several statistics: the same as repeated `merge`, but cheaper."""
        if self.fields:
            self._merge_fields(others)
        else:
            for other in others:
                self.merge(other)

    def _merge_fields(self, others: Sequence[Self]) -> None:
        mine = self.__dict__
        merged = {
            name: field.merged(mine[name], [other.__dict__[name] for other in others])
            for name, field in self.fields.items()
        }
        mine.update(merged)

    def arrays(self) -> dict[str, Array]:
        """Return the canonical state: equal multisets of rows give equal bytes."""
        mine = self.__dict__
        return named(self.fields, {name: f.arrays(mine[name]) for name, f in self.fields.items()})

    def restore(self, arrays: Arrays) -> None:
        """Set the state from untrusted `arrays`.

        Raises `StateFormatError`, or another `ValueError`, if they are invalid.
        """
        parts = parted(self.fields, arrays)
        for name, field in self.fields.items():
            if not parts[name] and name in self.state_defaults:
                value = self.state_defaults[name]
                self.__dict__[name] = field.empty(self) if value is None else value
            else:
                try:
                    self.__dict__[name] = field.taken(parts[name], self)
                except ValueError as error:
                    later = "" if parts[name] else if_added_later(type(self), name, "None")
                    raise StateFormatError(f"the field {name!r}: {error}{later}") from error
        self.check_fields()

    @property
    def nbytes(self) -> int:
        """The size of the state in bytes."""
        if not self.fields:
            return sum(array.nbytes for array in self.arrays().values())
        return sum(field.nbytes(self.__dict__[name]) for name, field in self.fields.items())

    def fork(self) -> Self:
        """Return a snapshot that shares every array with this statistic."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def is_same(self, other: Self) -> bool:
        """Whether the state equals another's, byte for byte."""
        return same(self.arrays(), other.arrays())

    def check(self) -> None:
        """Verify that the state survives a round trip through its arrays.

        Raises `StateFormatError` if it does not.
        """
        arrays = self.arrays()
        if not same(self.restored(arrays).arrays(), arrays):
            raise StateFormatError(f"{an(type(self).__name__)} is not what it is when read again")

    def scaled(self, weight: float) -> Self:
        """Return the statistic of the same rows with each weight multiplied by `weight`, exactly.

        If the products are float64 numbers too, ``update(rows, weight=w)`` followed by
        ``scaled(v)`` equals ``update(rows, weight=w * v)`` byte for byte. Scaling always
        distributes over `merge`, and scaling twice equals scaling by the product if that is a
        float64 number.

        Raises:
            InvalidBatchError: The rows have no weights (rankings, rank correlations, samples, pairs
                of points), the weight is not positive and finite, or a sum overflows or underflows.
        """
        what = self.schema.unweighted or (self.own_state and "statistics without fields")
        if what:
            raise InvalidBatchError(
                f"{an(type(self).__name__)} cannot be scaled: {what} do not accept weights"
            )
        if not (isinstance(weight, int | float) and 0 < weight < math.inf):
            raise InvalidBatchError(
                f"{weight!r} is not a weight: expected a positive finite number"
            )
        twin = self.fork()
        for name, field in self.fields.items():
            twin.__dict__[name] = field.scaled(self.__dict__[name], float(weight))
        return twin

    def minus(self, other: Self) -> Self:
        """Return the statistic without the rows of another, which must be among its own.

        ``(a merged with b).minus(b)`` equals ``a`` byte for byte, if ``a`` has rows.

        Raises:
            IncompatibleMetricsError: The rows cannot be separated (extremes, samples, rankings,
                histograms beyond their budget), or they were never added.
        """
        if self._key != other._key or self.own_state:
            which = "of other parameters" if self._key != other._key else "without fields"
            raise IncompatibleMetricsError(
                f"{an(type(other).__name__)} cannot be taken out of "
                f"{an(type(self).__name__)} {which}"
            )
        twin = self.fork()
        for name, field in self.fields.items():
            twin.__dict__[name] = field.minus(self.__dict__[name], other.__dict__[name])
        try:
            twin.check_fields()
        except StateFormatError as error:
            raise not_among(str(error)) from None
        return twin

    def left(self, other: Self, rows: int) -> Self:
        """Return `minus`, of which `rows` are left; of none left, both must hold the same."""
        counted = self.own_rows is None
        if (not rows or not counted) and self.is_same(other):
            twin = self.fork()
            twin.clear()  # facts about the rows go with the last of them
            return twin
        if not rows and counted:
            raise not_among("there are as many rows here, but not the same")
        return self.minus(other)

    @classmethod
    def from_arrays(cls, config: Mapping[str, object], arrays: Arrays) -> Self:
        """Build a statistic from its parameters and the result of `arrays`.

        Raises `StateFormatError` if they are not those of a state. Exceptions other than
        `ValueError` are bugs or a lack of memory, and propagate.
        """
        return cls(**config).restored(arrays)

    def restored(self, arrays: Arrays) -> Self:
        """Return a statistic of this configuration from its `arrays`; see `from_arrays`."""
        statistic = self.fork()
        with self.judging_arrays():
            statistic.restore(arrays)
        return statistic

    @contextmanager
    def judging_arrays(self) -> Iterator[None]:
        """Convert any `ValueError` within the context to a `StateFormatError` about the arrays."""
        try:
            yield
        except StateFormatError:
            raise
        except ValueError as error:
            name = type(self).__name__
            raise StateFormatError(f"the arrays are not {an(name)}: {error}") from error


# ---- states of many groups ----


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
        if self._fields is _WHOLE:
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

    def check_rows(self, rows: Sequence[int]) -> None:
        """Check that each restored state can be that of so many rows."""
        if type(self.of).check_rows is not Statistic.check_rows:
            for state, n in zip(self.each(), rows, strict=True):
                state.check_rows(n)

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
            values = {n: _taken_groups(field, parts[n], size, of) for n, field in fields.items()}
            if fields is not _WHOLE:
                of.check_groups(values, size)
        return cls(of, size, values)


def _taken_groups(field: StateField[Any], arrays: Arrays, size: int, of: Statistic) -> object:
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


# Statistics that `_Whole` has restored and that are still in use, by what they were restored from.
_RESTORED: WeakValueDictionary[Hashable, Statistic] = WeakValueDictionary()


class _Whole(StateField[Statistic]):
    """The whole state of a statistic without fields, treated as its only field."""

    def __reduce__(self) -> str:
        return "_ONLY"  # no class declares it

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
        """Restore the statistic from its arrays, or return one that was restored from the same.

        States do not change, and a service reads those of most panes again and again.
        """
        statistic, names = self.empty(of), sorted(arrays)
        forms = tuple([(name, arrays[name].dtype.str, arrays[name].shape) for name in names])
        data = b"".join([arrays[name].tobytes() for name in names])
        key = (statistic._key, forms, hashlib.blake2b(data, digest_size=32).digest())
        found = _RESTORED.get(key)
        if found is None:
            found = _RESTORED[key] = statistic.restored(arrays)
        return found

    def nbytes(self, value: Statistic) -> int:
        """The number of bytes currently in use."""
        return value.nbytes


_ONLY = _Whole(inline=True)
_WHOLE: Fields = {"": _ONLY}


def _fields(of: Statistic) -> Fields:
    return _WHOLE if of.own_state else of.fields
