"""What every statistic must promise, and nothing about any one of them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Self

from streammetrics.core.configured import Configured
from streammetrics.core.errors import (
    IncompatibleMetricsError,
    InvalidBatchError,
    StateFormatError,
    an,
)
from streammetrics.core.field import StateField, declared, named, not_among, parted
from streammetrics.core.state.arrays import same

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.schema import Facts, Rows, Schema
    from streammetrics.core.counting import GroupCodes
    from streammetrics.core.types import Array, Arrays, Places, ReadColumn


class Statistic(Configured, ABC):
    """What is remembered of the rows seen: a commutative monoid, the product of its fields.

    A statistic declares the `~streammetrics.core.fields` of its state, says in `schema` which
    columns it reads, and adds rows to its fields in `update`. All else follows from the fields; who
    has none spells `clear`, `merge`, `arrays` and `restore`, and is neither scaled nor taken out.

    ``update(rows)`` equals ``merge(lift(rows))`` to the byte, where the lift is an empty statistic
    updated with the rows; ``merge`` is associative and commutative to the byte.

    State lives in attributes that are *rebound, never mutated*: an array once reachable from a
    statistic is never written to. A `fork` is therefore a snapshot at the cost of a dictionary
    copy, and whoever updates a fork and then puts it in place has all-or-nothing for free.

    ``update`` *takes every row that the schema has accepted*: rows of small batches wait, so that
    a refusal in `update` would come when the call that brought them has long returned. What can
    be refused is refused by the schema; `may_refuse` says which rows can contradict earlier ones.
    Rows that `update` refuses all the same are dropped, and the read that comes upon them raises.

    Several threads may read one statistic. Where a read brings the state to another form, it
    replaces it in one assignment: keep what belongs together in one field.
    """

    fields: ClassVar[dict[str, StateField[Any]]] = {}
    # Whether `update` mostly runs without the GIL; said by each class that has one of its own.
    in_kernels: ClassVar[bool] = False
    spelled: ClassVar[bool] = False  # own `clear`, `merge`, `arrays` and `restore`, and no fields

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        cls.fields = declared(cls)
        cls.spelled = cls.merge is not Statistic.merge
        if "update" in vars(cls) and "in_kernels" not in vars(cls):
            cls.in_kernels = False
        if {"update", "update_among"} & vars(cls).keys():
            for name in {"by_group", "by_sorted_group"} - vars(cls).keys():
                setattr(cls, name, getattr(Statistic, name))  # not a base's
        if "update" in vars(cls) and "update_among" not in vars(cls):
            cls.update_among = Statistic.update_among  # type: ignore[method-assign]  # not a base's

    def __post_init__(self) -> None:
        super().__post_init__()
        self.clear()

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """How the columns of a batch are named, validated and brought to this statistic."""

    @abstractmethod
    def update(self, *columns: Any, **weight: Any) -> None:
        """Take the columns that the schema has validated, and ``weight=``.

        The weight is an array of positive numbers, or ``None`` where every row weighs one.
        """

    def check_fields(self) -> None:
        """Raise `StateFormatError` where fields, each valid alone, do not fit together.

        Called for every state that is read. Subclasses override it.
        """

    def check_groups(self, values: Mapping[str, Any], size: int) -> None:
        """Run `check_fields` for the grouped values of fields.

        Statistics that can check all groups at once override it.
        """
        if type(self).check_fields is not Statistic.check_fields:
            for state in self.each_at(values, size):
                state.check_fields()

    def at(self, values: Mapping[str, Any], group: int) -> Self:
        """Return the state of one group of grouped values of the fields."""
        twin = self.fork()
        for name, field in self.fields.items():
            twin.__dict__[name] = field.at(values[name], group)
        return twin

    def each_at(self, values: Mapping[str, Any], size: int) -> Iterator[Self]:
        """Yield the state of every group."""
        columns = [field.each_at(values[name], size) for name, field in self.fields.items()]
        for each in zip(*columns, strict=True) if columns else [()] * size:
            twin = self.fork()
            twin.__dict__.update(zip(self.fields, each, strict=True))
            yield twin

    def of_rows(self, n: int) -> None:
        """Learn of how many rows the state is that was just read."""

    @property
    def can_refuse(self) -> bool:
        """Whether there are rows for which `may_refuse` says yes, whatever has been seen."""
        return type(self).may_refuse is not Statistic.may_refuse

    def may_refuse(self, rows: Rows) -> bool:  # noqa: ARG002 - for those that do depend on them
        """Whether rows must be taken at once, as `update` may find that they contradict others."""
        return False

    def clear(self) -> None:
        """Set the state of no rows."""
        for name, field in self.fields.items():
            self.__dict__[name] = field.empty(self)

    def update_among(
        self,
        peers: Sequence[Statistic],  # noqa: ARG002 - for those that have something in common
        found: dict[object, ReadColumn],  # noqa: ARG002
        columns: tuple[object, ...],
        weight: Array | None,
    ) -> None:
        """Add rows as `update` does; `peers`, this statistic among them, take the same rows.

        What it has computed from the rows, and peers need too, it may leave for them in `found`.
        """
        self.update(*columns, weight=weight)

    def by_group(
        self,
        group: GroupCodes,  # noqa: ARG002 - for those that can
        columns: tuple[Any, ...],  # noqa: ARG002
        weight: Array | None,  # noqa: ARG002
    ) -> dict[str, object] | None:
        """Return what rows add to each field, in all groups at once.

        The field makes a grouped value of it, see `StateField.of_batch`. ``None`` where `update` is
        to be called for the rows of each group.
        """
        return None

    def by_sorted_group(
        self,
        n: int,  # noqa: ARG002 - for those that can
        pieces: Iterable[tuple[Places, Any, Array | None]],  # noqa: ARG002
    ) -> dict[str, object] | None:
        """Return the grouped value of each field, of `n` rows in the order of their groups.

        They come some groups at a time: where the rows of each of all groups begin and the last
        ones end, the columns, and the weight. ``None`` where `update` is to be called for the rows
        of each group.
        """
        return None

    def take_whole(self, batch: Batch) -> tuple[Self, Facts] | None:  # noqa: ARG002 - for those that count
        """Return this statistic after all rows of a long batch, and the facts of them.

        ``None`` where columns are not plain arrays in which `update` itself finds what is wrong:
        the schema then reads them, some rows at a time, and says what is.
        """
        return None

    def merge(self, other: Self) -> None:
        """Take what another statistic of the same configuration has seen; it is untouched."""
        self.merge_all([other])

    def merge_all(self, others: Sequence[Self]) -> None:
        """Take what several have seen: as `merge` of one after the other, but cheaper."""
        if self.spelled:
            for other in others:
                self.merge(other)
            return
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
        """Set the state from `arrays`, which may come from anyone.

        Raises `StateFormatError`, or another `ValueError`, where they are not those of a state.
        """
        parts = parted(self.fields, arrays)
        for name, field in self.fields.items():
            self.__dict__[name] = field.taken(parts[name], self)
        self.check_fields()

    @property
    def nbytes(self) -> int:
        """Bytes of state held now."""
        if self.spelled:
            return sum(array.nbytes for array in self.arrays().values())
        return sum(field.nbytes(self.__dict__[name]) for name, field in self.fields.items())

    def fork(self) -> Self:
        """Return a snapshot that shares every array with this statistic."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def is_same(self, other: Self) -> bool:
        """Whether another's state is this one to the byte."""
        return same(self.arrays(), other.arrays())

    def check(self) -> None:
        """Verify every invariant: what is written now can be read, and is written again.

        Raises `StateFormatError` naming what is broken.
        """
        arrays = self.arrays()
        if not same(self.restored(arrays).arrays(), arrays):
            raise StateFormatError(f"{an(type(self).__name__)} is not what it is when read again")

    def scaled(self, weight: float) -> Self:
        """Return the statistic of the same rows, each weighing so many times as much, exactly.

        Where the products are float64 as well, ``update(rows, weight=w)`` then ``scaled(v)`` is
        ``update(rows, weight=w * v)`` to the byte; in any case scaling distributes over `merge`,
        and scaling twice is scaling by the product where that is a float64.

        Raises:
            InvalidBatchError: The rows have no weights (rankings, rank correlations, samples,
                pairs of points), the weight is not positive and finite, or a sum leaves the range.
        """
        what = self.schema.unweighted or (self.spelled and "statistics without fields")
        if what:
            raise InvalidBatchError(
                f"{an(type(self).__name__)} cannot be scaled: {what} take no weights"
            )
        if not (isinstance(weight, int | float) and 0 < weight < math.inf):
            raise InvalidBatchError(f"{weight!r} is no weight: expected a positive finite number")
        twin = self.fork()
        for name, field in self.fields.items():
            twin.__dict__[name] = field.scaled(self.__dict__[name], float(weight))
        return twin

    def minus(self, other: Self) -> Self:
        """Return the statistic without the rows of another, which must be among its own.

        ``(a merged with b).minus(b)`` is ``a`` to the byte.

        Raises:
            IncompatibleMetricsError: What was added cannot be told apart again (extremes, samples,
                rankings, histograms past their budget), or the rows were never added.
        """
        if self._key != other._key or self.spelled:
            which = "of other parameters" if self._key != other._key else "without fields"
            raise IncompatibleMetricsError(
                f"{an(type(other).__name__)} cannot be taken out of "
                f"{an(type(self).__name__)} {which}"
            )
        twin = self.fork()
        for name, field in self.fields.items():
            twin.__dict__[name] = field.minus(self.__dict__[name], other.__dict__[name])
        if self.is_same(other):  # what is known of rows goes with the last one
            twin.clear()
        try:
            twin.check_fields()
        except StateFormatError as error:
            raise not_among(str(error)) from None
        return twin

    @classmethod
    def from_arrays(cls, config: Mapping[str, object], arrays: Arrays) -> Self:
        """Build a statistic from its parameters and the arrays of another's `arrays`.

        Raises `StateFormatError` where they are not those of a state. What is no `ValueError` is
        no verdict on them but a defect, or want of memory, and passes through.
        """
        return cls(**config).restored(arrays)

    def restored(self, arrays: Arrays) -> Self:
        """Return a statistic of this configuration in the state of `arrays`, as `from_arrays`."""
        statistic = self.fork()
        with self.judging_arrays():
            statistic.restore(arrays)
        return statistic

    @contextmanager
    def judging_arrays(self) -> Iterator[None]:
        """Raise any `ValueError` that arrays cause as a `StateFormatError` about them."""
        try:
            yield
        except StateFormatError:
            raise
        except ValueError as error:
            name = type(self).__name__
            raise StateFormatError(f"the arrays are not {an(name)}: {error}") from error
