"""Parameters fixed at construction; two objects must agree on them to be merged."""

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
    ClassVar,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

from streammetrics.core.columns.batch import near
from streammetrics.core.constraints import Constraint, OrNan
from streammetrics.core.errors import an

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from streammetrics.core.types import Options

_BEYOND = 1 << 63  # integers have 64 bits
# Integers in a sequence may stand for floats, and so may be larger.
_BEYOND_FLOATS = int(sys.float_info.max) + 1
_PLAIN: frozenset[type] = frozenset({bool, int, float, str, type(None)})
_KINDS = {float: "a number", int: "an integer", str: "a string", bool: "a boolean"}
_REFUSED = object()


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

    def elements(self, value: tuple[object, ...]) -> object:
        """Return the value with elements of the annotated types, or `_REFUSED`."""
        kinds = get_args(self.kind) if get_origin(self.kind) is tuple else ()
        if not kinds or Any in kinds:
            return value
        if kinds[1:] == (...,):
            kinds = kinds[:1] * len(value)
        if len(kinds) != len(value):
            return _REFUSED
        each = [
            _brought(one, tuple(_options(kind, ())), _BEYOND_FLOATS)
            for one, kind in zip(value, kinds, strict=True)
        ]
        return _REFUSED if any(one is _REFUSED for one in each) else tuple(each)

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
        of = get_args(self.kind) if get_origin(self.kind) is tuple else ()
        if of[1:] == (...,) and of[0] is not Any:
            kind = f"{kind} of {_plural(of[0])}"
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
    def default(self) -> object:
        """The default, in its canonical type."""
        return self.given if self.required else self.brought(self.given, self.owner)

    @cached_property
    def options(self) -> tuple[Option, ...]:
        """The alternatives of the annotation."""
        # Annotations are strings in this package. Resolving them is slow, so it is done once.
        holder = type("", (), {"__annotations__": {self.name: self.annotation}})
        module = sys.modules.get(self.owner.__module__)
        names = vars(module) if module is not None else {}
        hints = get_type_hints(holder, names, dict(vars(self.owner)), include_extras=True)
        return tuple(_options(hints[self.name], ()))

    def brought(self, value: object, cls: type) -> object:
        """Return a value in its canonical Python type; raise `ValueError` if it is not allowed."""
        canonical = _canonical(value)
        found = _brought(canonical, self.options, _BEYOND)
        if found is not _REFUSED:
            return found
        told = self.words
        if isinstance(canonical, tuple) and not _is_of_size(canonical, _BEYOND):
            told = "integers within the range of float64"
        if _has_nan(canonical):
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


def _brought(value: object, options: Iterable[Option], beyond: int) -> object:
    """Return a value as the first alternative that allows it has it, or `_REFUSED`.

    An integer becomes a float if a float is allowed and an integer is not.
    """
    options = tuple(options)
    for option in options:
        found = option.elements(value) if isinstance(value, tuple) else value
        if found is _REFUSED or not (option.allows(found) and option.holds(value)):
            continue
        if option.kind is float and type(found) is int and all(o.kind is not int for o in options):
            return float(found)
        if _is_of_size(found, beyond):
            return found
    return _REFUSED


def _plural(kind: object) -> str:
    """Describe values of a type that a sequence may have as elements."""
    if get_origin(kind) is tuple:
        return f"tuples of {_plural(get_args(kind)[0])}"
    return " or ".join(f"{each.words().split()[-1]}s" for each in _options(kind, ()))


def _has_nan(value: object) -> bool:
    if isinstance(value, tuple):
        return any(map(_has_nan, value))
    return value != value  # noqa: PLR0124 - true for NaN alone


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


def _canonical(value: object) -> object:
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


def _tupled(value: object) -> object:
    if isinstance(value, list | tuple | range):
        return tuple(map(_tupled, value))
    return value.item() if isinstance(value, np.generic) else value


def declared(cls: type) -> dict[str, Parameter]:
    """Collect the parameters of a class, inherited ones first, and install their descriptors.

    Parameters are annotated public attributes. A subclass may change a default without repeating
    the annotation.

    Raises:
        TypeError: A parameter has a reserved name, or a type that no parameter can have.
    """
    found: dict[str, Parameter] = dict(getattr(cls, "_parameters", {}))
    for name, annotation in inspect.get_annotations(cls).items():
        if not (name.startswith("_") or _is_of_class(annotation)):
            if name not in found and any(hasattr(base, name) for base in cls.__bases__):
                raise TypeError(
                    f"{cls.__name__}.{name} cannot be a parameter: {name!r} is reserved; rename "
                    "it, or leave out the annotation of a fact about the value"
                )
            check_type(cls, name, annotation)
            default = cls.__dict__.get(name, inspect.Parameter.empty)
            found[name] = Parameter(cls, name, annotation, default)
            setattr(cls, name, found[name])
    for name, known in found.items():
        if not isinstance(default := cls.__dict__.get(name, known), Parameter):
            found[name] = Parameter(known.owner, name, known.annotation, default)
            setattr(cls, name, found[name])
    signature = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=p.given, annotation=p.annotation
        )
        for name, p in found.items()
    ]
    cls.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]  # read by `inspect.signature`
    return found


def check_constructor(cls: type) -> None:
    """Raise `TypeError` if a class of metrics or statistics has its own constructor."""
    if "__init__" in vars(cls):
        raise TypeError(
            f"{cls.__name__} defines __init__: annotated attributes of the class are its "
            "parameters, and check_parameters() checks them"
        )


def configure(what: Any, args: tuple[object, ...], given: Mapping[str, object]) -> None:
    """Set the parameters of a new object, and ``_key``, which identifies its configuration.

    Values are converted to one canonical Python type, so that ``threshold=1`` and
    ``threshold=np.float32(1.0)`` are the same configuration.

    Raises:
        TypeError: A parameter is unknown, missing or given by position.
        ValueError: The annotation or `check_parameters` does not allow a value.
    """
    cls = type(what)
    parameters: dict[str, Parameter] = cls._parameters
    if not given.keys() <= parameters.keys():
        name = min(given.keys() - parameters.keys())
        raise TypeError(f"{cls.__name__} has no parameter {name!r}{near(name, parameters)}")
    if args:
        raise TypeError(f"{cls.__name__} takes its parameters by name: {', '.join(parameters)}")
    values = what.__dict__
    for name, parameter in parameters.items():
        if name in given:
            values[name] = parameter.brought(given[name], cls)
        elif parameter.required:
            raise TypeError(f"{cls.__name__} needs the parameter {name}: it has no default")
        else:
            values[name] = parameter.default
    what.check_parameters()
    # Hashable; equal for equal parameters. Computed once, because every merge compares it and
    # parameters never change.
    values["_key"] = (cls, *[_comparable(values[name]) for name in parameters])


def configuration(what: Any) -> Options:
    """Return the parameters and their values, in the order of declaration."""
    return {name: what.__dict__[name] for name in what._parameters}


def differing(here: object, there: object) -> str:
    """Describe the parameters that differ between two objects of one class."""
    mine, theirs = configuration(here), configuration(there)
    return ", ".join(
        f"{name} is {brief(theirs[name])} there and {brief(mine[name])} here"
        for name in mine
        if _comparable(theirs[name]) != _comparable(mine[name])
    )


def written(what: Any) -> str:
    """Return the parameters that differ from their defaults, as source code."""
    return ", ".join(
        f"{name}={brief(value)}"
        for name, value in configuration(what).items()
        if _comparable(value) != _comparable(what._parameters[name].default)
    )


@dataclass_transform(kw_only_default=True, eq_default=False)
class Configured:
    """An object whose annotated public attributes are its keyword-only parameters.

    Annotations are enforced, including their constraints (`streammetrics.core.constraints`).
    Setting a parameter after construction raises.
    """

    _parameters: ClassVar[dict[str, Parameter]] = {}
    _key: tuple[object, ...]

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        cls._parameters = declared(cls)

    def __init__(self, *args: object, **parameters: object) -> None:
        configure(self, args, parameters)
        self.__post_init__()

    def __post_init__(self) -> None:
        """Initialize attributes derived from the parameters."""

    def check_parameters(self) -> None:
        """Raise `ValueError` if parameters that are valid one by one do not fit together."""

    @property
    def config(self) -> Options:
        """The parameters and their values, in the order of declaration."""
        return configuration(self)


def require(what: object, name: str, fits: bool, expected: str) -> None:
    """Raise `ValueError` with the parameter, its value and the expected values, unless `fits`."""
    if not fits:
        value = getattr(what, name)
        raise ValueError(f"{type(what).__name__}({name}={value!r}): expected {expected}")


def _is_of_class(annotation: object) -> bool:
    """Whether an annotation is a `ClassVar`, so that the attribute is not a parameter."""
    if isinstance(annotation, str):
        return annotation.partition("[")[0].rpartition(".")[2] == "ClassVar"
    return annotation is ClassVar or get_origin(annotation) is ClassVar


def _comparable(value: object) -> object:
    # NaN differs from itself and 1 equals True: replace NaN by text, and include the type.
    if isinstance(value, tuple):
        return tuple(map(_comparable, value))
    return (type(value), "nan" if value != value else value)  # noqa: PLR0124 - tests for NaN
