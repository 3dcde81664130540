"""What everything with a state has in common: bytes, equality, pickling, and a name in files."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

from streammetrics.core import tuning
from streammetrics.core.errors import StateFormatError, an
from streammetrics.core.registry import REGISTRY, class_named, register, registered_name
from streammetrics.core.state.container import brief, header_of, packed, unpacked
from streammetrics.core.state.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streammetrics.core.types import Array, Arrays, Document

    # What a file says of an object, its arrays, and the opening.
    Description = tuple[Document, dict[str, Array], str]

_TEXT = 2000  # characters of a message: a file may quote all of itself


class Stateful(ABC):
    """An object whose configuration and state are `to_bytes()`, and nothing else.

    Metrics and sets are, and what keeps them, such as a ledger. `from_bytes` finds a class by its
    registered name; what stands in the file is what its `_describe` and `_rebuild` say.
    """

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        register(cls)

    @abstractmethod
    def _describe(self) -> Description:
        """Return what a file says of this object, its class first, its arrays, and an opening.

        The opening, if there is one, is `opened` of the configuration, and says the class.
        """

    @classmethod
    @abstractmethod
    def _rebuild(cls, meta: Mapping[str, object], arrays: Arrays) -> Self:
        """Return the object that `_describe` described, after checking all of it."""

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
        return packed(*self._describe())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `to_bytes()` to a file, in one step: `load` finds the old state or the new one.

        The state is written to a hidden file beside it, brought to the disk and renamed; what a
        process that was killed left there goes with the next save. A link stays a link.

        Raises:
            OSError: The file cannot be written; an old one is as it was.
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
    """Return what `pickle` keeps of an object with a state: its bytes, and a user's own classes.

    Naming a class makes pickle import its module. Those of the package are found by name.
    """
    return from_bytes, (blob, *[cls for cls in types if "." in registered_name(cls)])


# Objects without rows, and the classes they are made of, by how the headers of their files begin:
# states come by the thousand of one configuration.
_KNOWN: dict[bytes, tuple[Any, dict[str, type[Any]]]] = {}


def from_bytes(blob: bytes, *classes: type[Any]) -> Any:
    """Rebuild the metric, the set or the ledger whose `to_bytes` gave `blob`.

    Nothing is unpickled, and nothing outside the package is imported: a file with a user's own
    metric needs the module that defines it to be imported first. Only what `to_bytes` writes is
    read: the object that comes back gives the same bytes again.

    Args:
        blob: The bytes of a state.
        classes: Classes of your own that the state may name, where their definition is not the
            latest one of that name; pickle passes those that it has imported.

    Raises:
        StateFormatError: The bytes are truncated, altered, of a later format or not a state.
        TypeError: They are no bytes.
        MemoryError: There is too little memory for the state.

    Example:
        >>> import streammetrics as sm
        >>> blob = sm.Mean().update([1.0, 2.0]).to_bytes()
        >>> sm.from_bytes(blob).compute()
        1.5
    """
    if isinstance(blob, str | os.PathLike):
        raise TypeError(f"from_bytes takes the bytes of a state, and load({blob!r}) reads a file")
    try:
        own = blob if type(blob) is bytes else bytes(memoryview(blob))
    except TypeError:
        what = an(type(blob).__name__)
        raise TypeError(f"from_bytes takes the bytes that to_bytes() gave, not {what}") from None
    for cls in classes:
        register(cls)
    try:
        return _rebuilt(own)
    except StateFormatError as error:
        text = str(error)
        if len(text) <= _TEXT:
            raise
        raise StateFormatError(f"{text[:_TEXT]}...") from None


# What pickles name, so that no pickle depends on where in the package the function stands.
from_bytes.__module__ = "streammetrics"


def load(path: str | os.PathLike[str]) -> Any:
    """Rebuild the metric, the set or the ledger that `save` wrote, as `from_bytes` does.

    Raises:
        OSError: The file cannot be read.
        StateFormatError: It is not a state; the message names the file.

    Example:
        >>> import os, tempfile
        >>> import streammetrics as sm
        >>> path = os.path.join(tempfile.mkdtemp(), "mean.state")
        >>> sm.Mean().update([1.0, 2.0]).save(path)
        >>> sm.load(path).compute()
        1.5
    """
    with open(os.fspath(path), "rb") as file:
        blob = file.read()
    try:
        return from_bytes(blob)
    except StateFormatError as error:
        raise StateFormatError(f"{os.fspath(path)}: {error}") from error


def _rebuilt(blob: bytes) -> object:
    file = unpacked(blob, _known)
    what: Any
    if file.known is not None:
        what = file.known._refilled(file.meta, file.arrays)
    else:
        what = registered(file.meta.get("class"))._rebuild(file.meta, file.arrays)
    description, arrays, opening = what._describe()
    if not file.holds(description, arrays, opening):
        raise StateFormatError("these are not the bytes that to_bytes gives for this state")
    if file.known is None and 0 < len(opening) <= tuning.OPENING_CHARACTERS:
        if len(_KNOWN) >= tuning.KNOWN_OPENINGS:
            _KNOWN.clear()
        classes = {registered_name(cls): cls for cls in (type(what), *what._types)}
        _KNOWN[header_of(opening)] = what._blank(), classes
    return what


def _known(header: bytes) -> Any:
    """Return an object whose file begins so, if its classes are still the ones of their names."""
    blank, classes = _KNOWN.get(header, (None, {}))
    return blank if classes.items() <= REGISTRY.items() else None


def registered(name: object) -> type[Any]:
    """Return the class that states name so, or raise `StateFormatError` where it is unknown."""
    cls = class_named(name) if isinstance(name, str) else None
    if cls is None:
        raise StateFormatError(
            f"the state is of {an(name) if isinstance(name, str) else brief(name)}, which is not "
            "defined here: import its module first, or read it with the version of streammetrics "
            "that wrote it"
        )
    return cls
