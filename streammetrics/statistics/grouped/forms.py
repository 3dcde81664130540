"""How the states of one statistic are held for many groups at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.counting import Grouping
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import Array, Arrays, Floats, Places


class Form(ABC):
    """The states of a statistic for groups 0 to ``size - 1``, as one value that never changes.

    Every operation returns another form; arrays are shared, and none is written to once it can be
    reached from a form.
    """

    of: Statistic  # without rows
    size: int

    @classmethod
    @abstractmethod
    def empty(cls, of: Statistic, size: int = 0) -> Self:
        """Return the states of no rows."""

    @classmethod
    @abstractmethod
    def restored(cls, of: Statistic, every: Sequence[Arrays]) -> Self:
        """Return the states whose `arrays_at` are given, or raise `StateFormatError`."""

    @abstractmethod
    def updated(self, by: Grouping, columns: Sequence[object], weight: Floats | None) -> Self:
        """Return the states after rows, each of its group."""

    @abstractmethod
    def regrouped(self, places: Places, size: int) -> Self:
        """Return `size` groups, of which ``places[i]`` takes what group ``i`` holds.

        Several may go to one place, and -1 is nowhere.
        """

    @abstractmethod
    def plus(self, other: Self) -> Self:
        """Return what both hold together, group by group."""

    @abstractmethod
    def arrays_at(self, group: int) -> dict[str, Array]:
        """Return the canonical arrays of the state of a group."""

    def at(self, group: int) -> Statistic:
        """Return the state of a group as a statistic of its own."""
        return self.of.restored(self.arrays_at(group))

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of state held now."""
