"""What every statistic must promise, and nothing about any one of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

from streammetrics.core.configured import Configured
from streammetrics.core.errors import StateFormatError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from streammetrics.core.columns.schema import Rows, Schema


class Statistic(Configured, ABC):
    """What is remembered of the rows seen: a commutative monoid.

    ``update(rows)`` equals ``merge(lift(rows))`` to the byte, where the lift is an empty statistic
    updated with the rows; ``merge`` is associative and commutative to the byte.

    State lives in attributes that are *rebound, never mutated*: an array once reachable from a
    statistic is never written to. A `fork` is therefore a snapshot at the cost of a dictionary
    copy, and whoever updates a fork and then puts it in place has all-or-nothing for free.

    ``update`` *takes every row that the schema has accepted*: rows of small batches wait, so that
    a refusal in `update` would come when the call that brought them has long returned. What can
    be refused is refused by the schema; rows that can contradict earlier ones are `urgent`. Rows
    that `update` refuses all the same are dropped, and the read that comes upon them raises.

    Several threads may read one statistic. Where a read brings the state to another form, it
    replaces it in one assignment: keep what belongs together in one attribute.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self.clear()

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """How the columns of a batch are named, validated and brought to this statistic."""

    @abstractmethod
    def clear(self) -> None:
        """Set the state of no rows."""

    @abstractmethod
    def update(self, *columns: Any, **weight: Any) -> None:
        """Take the columns that the schema has validated, and ``weight=``.

        The weight is an array of positive numbers, or ``None`` where every row weighs one.
        """

    @abstractmethod
    def merge(self, other: Self) -> None:
        """Take what another statistic of the same configuration has seen; it is untouched."""

    def merge_all(self, others: Sequence[Self]) -> None:
        """Take what several have seen: as `merge` of one after the other, but cheaper.

        States that are of as many others are merged first, as a binary counter carries: where
        states grow, the rows of each are copied a few times and not once for every other.
        """
        carried: list[tuple[int, Self]] = []
        for other in others:
            count, state = 1, other.fork()
            while carried and carried[-1][0] == count:
                _, before = carried.pop()
                before.merge(state)
                count, state = 2 * count, before
            carried.append((count, state))
        for _, state in reversed(carried):
            self.merge(state)

    @abstractmethod
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the canonical state: equal multisets of rows give equal bytes."""

    @abstractmethod
    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Set the state from `arrays`, or raise `ValueError` where they are not one.

        They may come from anyone: take each by `take_array`, and check its values.
        """

    def urgent(self, rows: Rows) -> bool:  # noqa: ARG002 - for those that do depend on them
        """Whether rows must be taken at once, as `update` may find that they contradict others."""
        return False

    @property
    def nbytes(self) -> int:
        """Bytes of state held now."""
        return sum(array.nbytes for array in self.arrays().values())

    def fork(self) -> Self:
        """Return a snapshot that shares every array with this statistic."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    @classmethod
    def from_arrays(cls, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Build a statistic from its parameters and the arrays of another's `arrays`.

        Raises `StateFormatError` where they are not those of a state. What is no `ValueError` is
        no verdict on them but a defect, or want of memory, and passes through.
        """
        return cls(**config).restored(arrays)

    def restored(self, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return a statistic of this configuration in the state of `arrays`, as `from_arrays`."""
        statistic = self.fork()
        try:
            statistic.restore(arrays)
        except StateFormatError:
            raise
        except ValueError as error:
            name = type(self).__name__
            raise StateFormatError(f"the arrays are not a {name}: {error}") from error
        return statistic
