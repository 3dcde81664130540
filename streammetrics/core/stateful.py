"""The base class of objects with a state: serialization, equality and pickling."""

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

    from streammetrics.core.state.container import StateFile
    from streammetrics.core.types import Array, Arrays, Document

    # The description in a file, the arrays, and the opening.
    Description = tuple[Document, dict[str, Array], str]

_TEXT = 2000  # longest error message: a file may quote all of itself


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
    return from_bytes, (blob, *[cls for cls in types if "." in registered_name(cls)])


# Empty objects and their classes, by the start of the header of their files: often thousands of
# states have the same configuration.
_KNOWN: dict[bytes, tuple[Any, dict[str, type[Any]]]] = {}


def from_bytes(blob: bytes, *classes: type[Any]) -> Any:
    """Rebuild a metric, set or ledger from the bytes of `to_bytes`.

    Nothing is unpickled, and no module outside the package is imported: to read the state of a
    user's own metric, import the module that defines it first. Only bytes that `to_bytes` writes
    are accepted: the rebuilt object must serialize to the same bytes.

    Args:
        blob: The bytes of a state.
        classes: Your own classes that the state may name, if their definition is not the latest one
            of that name. Pickle passes the classes that it has imported.

    Raises:
        StateFormatError: The bytes are truncated, altered, of a newer format or not a state.
        TypeError: The argument is not bytes.
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


# The name in pickles, so that they do not depend on the module of the function.
from_bytes.__module__ = "streammetrics"


def load(path: str | os.PathLike[str]) -> Any:
    """Rebuild the metric, set or ledger that `save` wrote; see `from_bytes`.

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
    if not file.holds(description, arrays, opening) and not _is_older(file, what):
        raise StateFormatError("these are not the bytes that to_bytes gives for this state")
    if file.known is None and 0 < len(opening) <= tuning.OPENING_CHARACTERS:
        if len(_KNOWN) >= tuning.KNOWN_OPENINGS:
            _KNOWN.clear()
        classes = {registered_name(cls): cls for cls in (type(what), *what._types)}
        _KNOWN[header_of(opening)] = what._blank(), classes
    return what


def _is_older(file: StateFile, what: Stateful) -> bool:
    """Whether a file is what `to_bytes` wrote before there was what `state_defaults` names."""
    description, arrays, _ = what._describe()
    lacking = [name for name in arrays if name not in file.arrays]
    later = tuple(f"{name}/" for name in what._later)
    if not all(f"{name}/".startswith(later) for name in lacking):
        return False
    configuration = what._configuration()
    if file.known is None:
        configuration = _without_later(configuration, file.meta)
    kept = {name: array for name, array in arrays.items() if name in file.arrays}
    return file.holds({**configuration, **description}, kept)


def _without_later(configuration: Document, written: Document) -> Document:
    """Return a configuration without parameters that were added after it was written."""
    kept = dict(configuration)
    if "parameters" in kept:
        known = written["parameters"]
        later = registered(kept["class"]).state_defaults
        kept["parameters"] = {
            name: value
            for name, value in kept["parameters"].items()
            if name in known or name not in later
        }
    if "metrics" in kept:
        pairs = zip(kept["metrics"], written["metrics"], strict=False)  # forged ones may be fewer
        kept["metrics"] = [_without_later(one, other) for one, other in pairs]
    return kept


def _known(header: bytes) -> Any:
    """Return the cached empty object of a header, unless one of its classes has been redefined."""
    blank, classes = _KNOWN.get(header, (None, {}))
    return blank if classes.items() <= REGISTRY.items() else None


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
