"""What everything with a state has in common: bytes, equality, pickling."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self


class Stateful(ABC):
    """An object whose configuration and state are `to_bytes()`, and nothing else."""

    @abstractmethod
    def merge(self, *others: Self) -> Self:
        """Take what `others` have seen, in place, and return this object."""

    @abstractmethod
    def copy(self) -> Self:
        """Return an independent object of the same configuration and state."""

    @property
    @abstractmethod
    def _types(self) -> tuple[type, ...]:
        """The classes of metrics that must be defined where the state is read."""

    def to_bytes(self) -> bytes:
        """Return the state as bytes: safe, versioned, checksummed, equal for equal rows."""
        from streammetrics.core.reading import to_bytes  # noqa: PLC0415 - it builds metrics in turn

        return to_bytes(self)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.to_bytes() == other.to_bytes()

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __reduce__(self) -> tuple[Any, ...]:
        from streammetrics.core.reading import from_bytes  # noqa: PLC0415 - it builds metrics in turn

        return _unpickled, (self._types, from_bytes, self.to_bytes())


def _unpickled(classes: tuple[Any, ...], from_bytes: Any, blob: bytes) -> Any:
    # Naming the classes makes pickle import them. A class that was pickled by value is built again
    # and given up for the one that is there already, which has to be registered again.
    for cls in classes:
        cls.register()
    return from_bytes(blob)
