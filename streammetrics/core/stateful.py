"""The base class of objects with a state: serialization, equality and pickling."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

from streammetrics.core.errors import StateFormatError, an
from streammetrics.core.registry import class_named, public, register, registered_name
from streammetrics.core.state.container import brief, packed
from streammetrics.core.state.files import write_whole

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from streammetrics.core.types import Array, Arrays, Document

    # The description in a file, the arrays, and the opening.
    Description = tuple[Document, dict[str, Array], str]


class Stateful(ABC):
    """An object fully described by `to_bytes()`: its configuration and state.

    These are metrics, sets, and containers of them such as a ledger. `from_bytes` finds a class by
    its registered name; `_describe` and `_rebuild` define the contents of the file.
    """

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        register(cls)

    @abstractmethod
    def _describe(self) -> Description:
        """Return the description of this object with its class first, its arrays, and an opening.

        The opening, if not empty, is `opened` of the configuration, which includes the class.
        """

    @classmethod
    @abstractmethod
    def _rebuild(cls, meta: Mapping[str, object], arrays: Arrays) -> Self:
        """Rebuild the described object, after validating all of its description."""

    @property
    def _later(self) -> tuple[str, ...]:
        """The names in a file of fields that files of older versions may lack."""
        return ()

    def _configuration(self) -> Document:
        """Return the description without what is known of rows."""
        return {}

    @abstractmethod
    def merge(self, *others: Self) -> Self:
        """Add the rows of `others` in place, and return this object."""

    @abstractmethod
    def copy(self) -> Self:
        """Return an independent object of the same configuration and state."""

    @property
    @abstractmethod
    def _types(self) -> tuple[type, ...]:
        """The classes of metrics that must be defined to read the state."""

    def to_bytes(self) -> bytes:
        """Serialize the state: versioned, checksummed, free of code, and equal for equal rows."""
        return packed(*self._describe())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `to_bytes()` to a file atomically: `load` finds the old state or the new one.

        The state is written to a hidden file in the same folder, flushed to disk and renamed. A
        hidden file left by a killed process is deleted by the next save. Symbolic links are
        followed.

        Raises:
            OSError: The file cannot be written; an existing one is unchanged.
        """
        write_whole(path, packed(*self._describe()))

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return packed(*self._describe()) == packed(*other._describe())

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __reduce__(self) -> tuple[object, ...]:
        return pickled(self._types, packed(*self._describe()))


def pickled(types: tuple[type, ...], blob: bytes) -> tuple[Any, ...]:
    """Return the pickle of an object with a state: its bytes, and the user's own classes.

    Listing a class makes pickle import its module. Classes of the package are found by name.
    """
    return public("from_bytes"), (blob, *[cls for cls in types if "." in registered_name(cls)])


def registered(name: object) -> type[Any]:
    """Return the class with this name in files, or raise `StateFormatError` if it is unknown."""
    cls = class_named(name) if isinstance(name, str) else None
    if cls is None:
        raise StateFormatError(
            f"the state is of {an(name) if isinstance(name, str) else brief(name)}, which is not "
            "defined here: import its module first, or read it with the version of streammetrics "
            "that wrote it"
        )
    return cls
