"""Parameters: the values each may take, read from its annotation, and conversion of values."""

from __future__ import annotations

import inspect
import re
import sys
import types
from functools import cached_property
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

from streammetrics.core.constraints import Constraint, OrNan
from streammetrics.core.errors import an

if TYPE_CHECKING:
    from collections.abc import Iterable


_BEYOND = 1 << 63  # integers have 64 bits
# Integers in a sequence may stand for floats, and so may be larger.
_BEYOND_FLOATS = int(sys.float_info.max) + 1
_PLAIN: frozenset[Any] = frozenset({bool, int, float, str, type(None)})
_KINDS = {float: "a number", int: "an integer", str: "a string", bool: "a boolean"}


class Option(NamedTuple):
    """One alternative of an annotation: a type, and constraints on its values."""

    kind: Any
    constraints: tuple[Constraint, ...]

    def allows(self, value: object) -> bool:
        """Whether a value, already in its Python type, matches."""
        return (
            self._is_of_kind(value)
            # Comparisons with NaN are false, so that a constraint may let it pass.
            and (value == value or any(isinstance(each, OrNan) for each in self.constraints))  # noqa: PLR0124 - false for NaN
            and all(constraint.allows(value) for constraint in self.constraints)
        )

    def _is_of_kind(self, value: object) -> bool:
        if self.kind is Any:
            return _is_plain(value)
        if get_origin(self.kind) is Literal:
            return isinstance(value, str) and value in get_args(self.kind)
        if self.kind in {int, float} and isinstance(value, bool):
            return False
        if self.kind is float:
            return isinstance(value, int | float)
        return isinstance(value, get_origin(self.kind) or self.kind)

    def holds(self, value: object) -> bool:
        """Whether float64 represents the value exactly, if the type is float."""
        meant = self.kind is float or float in get_args(self.kind)
        return not meant or _is_float(value)

    def words(self) -> str:
        """Describe the allowed values, as a part of an error message."""
        if get_origin(self.kind) is Literal:
            return _either([repr(choice) for choice in get_args(self.kind)])
        if self.kind is type(None):
            return "None"
        if self.kind is Any:
            return "numbers, text, booleans or None, or sequences of these"
        name = str(getattr(get_origin(self.kind) or self.kind, "__name__", self.kind))
        kind = _KINDS.get(self.kind, an(name))
        told = [constraint.words(kind) for constraint in self.constraints]
        return " and ".join(told) if told else kind


class Parameter:
    """A parameter of a class: its default and its allowed values.

    A descriptor that replaces the annotated attribute on the class. Setting the parameter of a
    finished object raises. Reads find the value in the object's own dictionary.
    """

    def __init__(self, owner: type, name: str, annotation: object, default: object) -> None:
        self.owner, self.name, self.annotation, self.given = owner, name, annotation, default

    @property
    def required(self) -> bool:
        """Whether there is no default."""
        return self.given is inspect.Parameter.empty

    @cached_property
    def default(self) -> Any:
        """The default, in its canonical type."""
        return self.given if self.required else self.brought(self.given, self.owner)

    @cached_property
    def options(self) -> tuple[Option, ...]:
        """The alternatives of the annotation."""
        # Annotations are strings in this package. Resolving them is slow, so it is done once.
        holder: Any = type("", (), {"__annotations__": {self.name: self.annotation}})
        module = sys.modules.get(self.owner.__module__)
        names = vars(module) if module is not None else {}
        hints = get_type_hints(holder, names, dict(vars(self.owner)), include_extras=True)
        return tuple(_options(hints[self.name], ()))

    def brought(self, value: object, cls: type) -> Any:
        """Return a value in its canonical Python type; raise `ValueError` if it is not allowed."""
        canonical = _canonical(value)
        for option in self.options:
            if option.allows(canonical):
                # An integer becomes a float if a float is allowed and an integer is not.
                whole = type(canonical) is int
                if not option.holds(canonical):
                    continue
                if whole and option.kind is float and all(o.kind is not int for o in self.options):
                    return float(canonical)
                if _is_of_size(canonical, _BEYOND):
                    return canonical
        told = self.words
        if isinstance(canonical, tuple) and not _is_of_size(canonical, _BEYOND):
            told = "integers within the range of float64"
        if canonical != canonical:  # noqa: PLR0124 - tests for NaN
            told += ", and nan is none"
        elif not all(option.holds(canonical) for option in self.options):
            told += "; float64 would round an integer that is given"
        raise ValueError(f"{cls.__name__}({self.name}={brief(canonical)}): expected {told}")

    @property
    def words(self) -> str:
        """A description of the allowed values."""
        return _either(list(dict.fromkeys(option.words() for option in self.options)))

    def __set__(self, what: object, value: object) -> None:
        if "_key" in what.__dict__:
            raise AttributeError(
                f"{self.name} is fixed at construction: "
                f"make another {type(what).__name__}({self.name}={value!r})"
            )
        what.__dict__[self.name] = value


def _options(hint: object, constraints: tuple[Constraint, ...]) -> Iterable[Option]:
    """Yield the alternatives of an annotation."""
    if get_origin(hint) is Annotated:
        kind, *extra = get_args(hint)
        yield from _options(kind, (*constraints, *(c for c in extra if isinstance(c, Constraint))))
    elif get_origin(hint) in {Union, types.UnionType}:
        for alternative in get_args(hint):
            yield from _options(alternative, constraints)
    elif isinstance(hint, TypeVar):  # type checkers see which alternative was chosen
        yield from _options(hint.__bound__, constraints)
    else:
        yield Option(hint, constraints)


# Types whose values cannot be compared or written to a file, and what to write instead.
_INSTEAD = {
    "dict": "a tuple of pairs, tuple[tuple[str, float], ...]",
    "list": "a tuple, tuple[float, ...]",
    "set": "a sorted tuple, tuple[str, ...]",
    "ndarray": "a tuple, tuple[float, ...]",
    "Callable": "a name, Literal['a', 'b'], by which the class finds the function",
}
_KIND = re.compile(r"(?:\w+\.)*(dict|list|set|ndarray|Callable)\b", re.IGNORECASE)


def check_type(cls: type, name: str, annotation: object) -> None:
    """Raise `TypeError` if the annotation of a parameter is of a type that none can have."""
    text = annotation if isinstance(annotation, str) else _spelled(annotation)
    kind = _KIND.match(text)
    if kind:
        of = next(each for each in _INSTEAD if each.lower() == kind[1].lower())
        raise TypeError(
            f"{cls.__name__}.{name} cannot be of type {kind[0]}: parameters are numbers, strings, "
            f"booleans, None and tuples of these; write {_INSTEAD[of]}"
        )


def _spelled(annotation: object) -> str:
    """Return the text of an annotation, without the constraints of ``Annotated``."""
    if get_origin(annotation) is Annotated:
        return _spelled(get_args(annotation)[0])
    return annotation.__name__ if type(annotation) is type else str(annotation)


def brief(value: object) -> str:
    """Return the repr of a value, truncated if it is long."""
    text = repr(value)
    if len(text) <= 60:
        return text
    return f"{text[:40]}... ({len(value)} items)" if isinstance(value, tuple) else f"{text[:57]}..."


def _either(words: list[str]) -> str:
    return " or ".join(words).removesuffix(",")


def _canonical(value: object) -> Any:
    """Convert NumPy's numbers to Python's, and sequences to tuples."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, np.generic):
        return value.item()
    if hasattr(value, "__array__") and not isinstance(value, type):
        return _tupled(np.asarray(value).tolist())
    return _tupled(value) if isinstance(value, list | range) else value


def _is_plain(value: object) -> bool:
    """Whether a value can be compared, hashed and written to a file."""
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | str)


def _is_of_size(value: object, beyond: int) -> bool:
    """Whether all integers are in range; those in a sequence only need to fit float64."""
    if isinstance(value, tuple):
        return all(_is_of_size(one, _BEYOND_FLOATS) for one in value)
    return type(value) is not int or -beyond <= value < beyond


def _is_float(value: object) -> bool:
    """Whether float64 represents every integer in a value exactly."""
    if isinstance(value, tuple):
        return all(map(_is_float, value))
    try:
        return type(value) is not int or float(value) == value
    except OverflowError:
        return False


def _tupled(value: object) -> Any:
    if isinstance(value, list | tuple | range):
        return tuple(map(_tupled, value))
    return value.item() if isinstance(value, np.generic) else value
