"""Rebuild objects from the bytes of `to_bytes`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeVar, overload

from streammetrics.core import tuning
from streammetrics.core.errors import StateFormatError, an
from streammetrics.core.floating import check_arithmetic
from streammetrics.core.mergeable import Stateful, registered
from streammetrics.core.registry import REGISTRY, register, registered_name
from streammetrics.core.state.container import header_of, unpacked

if TYPE_CHECKING:
    from streammetrics.core.mergeable import Mergeable
    from streammetrics.core.state.container import StateFile
    from streammetrics.core.types import Document

S = TypeVar("S", bound=Stateful)

_TEXT = 2000  # longest error message: a file may quote all of itself

# Empty objects and their classes, by the start of the header of their files: often thousands of
# states have the same configuration.
_KNOWN: dict[bytes, tuple[object, dict[str, type]]] = {}


@overload
def from_bytes(blob: bytes, *classes: type) -> Mergeable: ...
@overload
def from_bytes(blob: bytes, *classes: type, kind: type[S]) -> S: ...
def from_bytes(blob: bytes, *classes: type, kind: type = Stateful) -> object:
    """Rebuild a metric, set or ledger from the bytes of `to_bytes`.

    Nothing is unpickled, and no module outside the package is imported: to read the state of a
    user's own metric, import the module that defines it first. Only bytes that `to_bytes` writes
    are accepted: the rebuilt object must serialize to the same bytes.

    Args:
        blob: The bytes of a state.
        classes: Your own classes that the state may name, if their definition is not the latest one
            of that name. Pickle passes the classes that it has imported.
        kind: The class that is expected, such as ``sm.Ledger``; by default any. Type checkers take
            the result for one of this class, and by default for a metric or a set.

    Raises:
        StateFormatError: The bytes are truncated, altered, of a newer format, not a state, or not
            one of this kind.
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
    check_arithmetic()
    try:
        found = _rebuilt(own)
    except StateFormatError as error:
        text = str(error)
        if len(text) <= _TEXT:
            raise
        raise StateFormatError(f"{text[:_TEXT]}...") from None
    if not isinstance(found, kind):
        of = an(type(found).__name__)
        raise StateFormatError(f"the state is of {of}, not of {an(kind.__name__)}")
    return found


# The name in pickles, so that they do not depend on the module of the function.
from_bytes.__module__ = "streammetrics"


@overload
def load(path: str | os.PathLike[str]) -> Mergeable: ...
@overload
def load(path: str | os.PathLike[str], *, kind: type[S]) -> S: ...
def load(path: str | os.PathLike[str], *, kind: type = Stateful) -> object:
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
        return from_bytes(blob, kind=kind)
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


def _known(header: bytes) -> object:
    """Return the cached empty object of a header, unless one of its classes has been redefined."""
    blank, classes = _KNOWN.get(header, (None, {}))
    return blank if classes.items() <= REGISTRY.items() else None
