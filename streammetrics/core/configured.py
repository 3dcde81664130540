"""Parameters fixed at construction: what two objects must share to be merged."""

from __future__ import annotations

import inspect
import sys
import types
from contextlib import suppress
from functools import cached_property
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

from streammetrics.core.columns.naming import near
from streammetrics.core.constraints import Constraint, OrNan

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_BEYOND = 1 << 63  # integers are of 64 bits
_BEYOND_FLOATS = (
    int(sys.float_info.max) + 1
)  # and those among several, which may be meant as floats
_PLAIN: frozenset[Any] = frozenset({bool, int, float, str, type(None)})
_KINDS = {float: "a number", int: "an integer", str: "a string", bool: "a boolean"}


class Option(NamedTuple):
    """One alternative of an annotation: a type, and the constraints on its values."""

    kind: Any
    constraints: tuple[Constraint, ...]

    def allows(self, value: Any) -> bool:
        """Whether a value, Python's own by now, is one of these."""
        return (
            self._is_of_kind(value)
            # Comparisons with nan are all false, so that a constraint may pass it.
            and (value == value or OrNan() in self.constraints)  # noqa: PLR0124 - the test for nan
            and all(constraint.allows(value) for constraint in self.constraints)
        )

    def _is_of_kind(self, value: Any) -> bool:
        if self.kind is Any:
            return _is_plain(value)
        if get_origin(self.kind) is Literal:
            return isinstance(value, str) and value in get_args(self.kind)
        if self.kind in {int, float} and isinstance(value, bool):
            return False
        if self.kind is float:
            return isinstance(value, int | float)
        return isinstance(value, get_origin(self.kind) or self.kind)

    def words(self) -> str:
        """Return what is allowed, as a part of a message."""
        if get_origin(self.kind) is Literal:
            return _either([repr(choice) for choice in get_args(self.kind)])
        if self.kind is type(None):
            return "None"
        name = str(getattr(get_origin(self.kind) or self.kind, "__name__", self.kind))
        kind = _KINDS.get(self.kind, f"an {name}" if name[0] in "aeiou" else f"a {name}")
        told = [constraint.words(kind) for constraint in self.constraints]
        return " and ".join(told) if told else kind


class Parameter:
    """A parameter of a class: its default and what it may be.

    It stands on the class in the place of the annotated attribute and refuses to set it in an
    object that is made; reading finds the value in the object.
    """

    def __init__(self, owner: type, name: str, annotation: Any, default: Any) -> None:
        self.owner, self.name, self.annotation, self.given = owner, name, annotation, default

    @property
    def required(self) -> bool:
        """Whether there is no default."""
        return self.given is inspect.Parameter.empty

    @cached_property
    def default(self) -> Any:
        """The default, as values are."""
        return self.given if self.required else self.brought(self.given, self.owner)

    @cached_property
    def options(self) -> tuple[Option, ...]:
        """What it may be."""
        # Annotations are strings in this package; resolving them is slow, so once a parameter.
        holder: Any = type("", (), {"__annotations__": {self.name: self.annotation}})
        module = sys.modules.get(self.owner.__module__)
        names = vars(module) if module is not None else {}
        hints = get_type_hints(holder, names, dict(vars(self.owner)), include_extras=True)
        return tuple(_options(hints[self.name], ()))

    def brought(self, value: Any, cls: type) -> Any:
        """Return a value in its canonical Python type, or say what is wrong with it."""
        canonical = _canonical(value)
        for option in self.options:
            if option.allows(canonical):
                # An integer is a float where a float is meant and an integer is not.
                whole = type(canonical) is int
                if whole and option.kind is float and all(o.kind is not int for o in self.options):
                    with suppress(OverflowError):
                        return float(canonical)
                elif _is_of_size(canonical, _BEYOND):
                    return canonical
        told = self.words
        if isinstance(canonical, tuple) and not _is_of_size(canonical, _BEYOND):
            told = "integers within the range of float64"
        if canonical != canonical:  # noqa: PLR0124 - the test for nan
            told += ", and nan is none"
        raise ValueError(f"{cls.__name__}({self.name}={_brief(canonical)}): expected {told}")

    @property
    def words(self) -> str:
        """What it may be, in words."""
        return _either(list(dict.fromkeys(option.words() for option in self.options)))

    def __set__(self, what: Any, value: Any) -> None:
        if "_key" in what.__dict__:
            raise AttributeError(
                f"{self.name} is fixed at construction: "
                f"make another {type(what).__name__}({self.name}={value!r})"
            )
        what.__dict__[self.name] = value


def declared(cls: type) -> dict[str, Parameter]:
    """Return the parameters of a class, inherited ones first, and let them stand on it.

    They are its annotated public attributes. One may be given another default without saying
    again what it may be.
    """
    found: dict[str, Parameter] = dict(getattr(cls, "_parameters", {}))
    for name, annotation in inspect.get_annotations(cls).items():
        if not (name.startswith("_") or _is_of_class(annotation)):
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
    cls.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]  # what `inspect` looks for
    return found


def configure(what: Any, args: tuple[Any, ...], given: Mapping[str, Any]) -> None:
    """Set the parameters of a new object, and ``_key``, which identifies its configuration.

    Parameters are brought to one canonical Python type, so that ``threshold=1`` and
    ``threshold=np.float32(1.0)`` are one configuration.

    Raises:
        TypeError: A parameter is unknown, missing or given by position.
        ValueError: A value is none that its annotation or `check_parameters` allows.
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
    # Hashable, and equal where the parameters are. Made once, as every merge compares it;
    # parameters do not change from here on.
    values["_key"] = (cls, *[_comparable(values[name]) for name in parameters])


def configuration(what: Any) -> dict[str, Any]:
    """Return the parameters and their values, in the order of declaration."""
    return {name: what.__dict__[name] for name in what._parameters}


def takes(cls: Any, names: Iterable[str]) -> bool:
    """Whether these are parameters, and all that have no default are among them."""
    given = set(names)
    parameters: dict[str, Parameter] = cls._parameters
    needed = {name for name, parameter in parameters.items() if parameter.required}
    return needed <= given <= parameters.keys()


def differing(here: Any, there: Any) -> str:
    """Return which parameters differ in two objects of one class, and how."""
    mine, theirs = configuration(here), configuration(there)
    return ", ".join(
        f"{name} is {_brief(theirs[name])} there and {_brief(mine[name])} here"
        for name in mine
        if _comparable(theirs[name]) != _comparable(mine[name])
    )


def written(what: Any) -> str:
    """Return the parameters that differ from their defaults, as they would be written."""
    return ", ".join(
        f"{name}={_brief(value)}"
        for name, value in configuration(what).items()
        if _comparable(value) != _comparable(what._parameters[name].default)
    )


@dataclass_transform(kw_only_default=True, eq_default=False)
class Configured:
    """An object whose annotated public attributes are its keyword-only parameters.

    An annotation is enforced, with the constraints in it (`streammetrics.core.constraints`);
    setting a parameter after construction raises.
    """

    _parameters: ClassVar[dict[str, Parameter]] = {}
    _key: tuple[Any, ...]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._parameters = declared(cls)

    def __init__(self, *args: Any, **parameters: Any) -> None:
        configure(self, args, parameters)
        self.__post_init__()

    def __post_init__(self) -> None:
        """Make what follows from the parameters."""

    def check_parameters(self) -> None:
        """Raise `ValueError` where parameters, each of which may be so, do not fit together."""

    @property
    def config(self) -> dict[str, Any]:
        """The parameters and their values, in the order of declaration."""
        return configuration(self)


def require(what: Any, name: str, fits: bool, expected: str) -> None:
    """Raise `ValueError` naming the parameter, its value and what is expected."""
    if not fits:
        value = getattr(what, name)
        raise ValueError(f"{type(what).__name__}({name}={value!r}): expected {expected}")


def _options(hint: Any, constraints: tuple[Constraint, ...]) -> Iterable[Option]:
    """Yield the alternatives of an annotation."""
    if get_origin(hint) is Annotated:
        kind, *extra = get_args(hint)
        yield from _options(kind, (*constraints, *(c for c in extra if isinstance(c, Constraint))))
    elif get_origin(hint) in {Union, types.UnionType}:
        for alternative in get_args(hint):
            yield from _options(alternative, constraints)
    else:
        yield Option(hint, constraints)


def _is_of_class(annotation: Any) -> bool:
    """Whether an annotation says that an attribute is the class's, so no parameter."""
    if isinstance(annotation, str):
        return annotation.partition("[")[0].rpartition(".")[2] == "ClassVar"
    return annotation is ClassVar or get_origin(annotation) is ClassVar


def _brief(value: Any) -> str:
    text = repr(value)
    if len(text) <= 60:
        return text
    return f"{text[:40]}... ({len(value)} items)" if isinstance(value, tuple) else f"{text[:57]}..."


def _either(words: list[str]) -> str:
    return " or ".join(words).removesuffix(",")


def _comparable(value: Any) -> Any:
    # nan differs from itself and 1 equals True; types make both comparable.
    if isinstance(value, tuple):
        return tuple(map(_comparable, value))
    return (type(value), "nan" if value != value else value)  # noqa: PLR0124 - the test for nan


def _canonical(value: Any) -> Any:
    """Return NumPy's numbers as Python's, and sequences as tuples of them."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return _tupled(value.tolist())
    return _tupled(value) if isinstance(value, list | range) else value


def _is_plain(value: Any) -> bool:
    """Whether a value can be compared, hashed and written to a file."""
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | str)


def _is_of_size(value: Any, beyond: int) -> bool:
    """Whether no integer is out of range."""
    if isinstance(value, tuple):
        return all(_is_of_size(one, _BEYOND_FLOATS) for one in value)
    return type(value) is not int or -beyond <= value < beyond


def _tupled(value: Any) -> Any:
    if isinstance(value, list | tuple | range):
        return tuple(map(_tupled, value))
    return value.item() if isinstance(value, np.generic) else value
