"""Parameters fixed at construction; two objects must agree on them to be merged."""

from __future__ import annotations

import inspect
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    dataclass_transform,
    get_origin,
)

from streammetrics.core.columns.batch import near
from streammetrics.core.parameters import Parameter, brief, check_type

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streammetrics.core.types import Options


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
