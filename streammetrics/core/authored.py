"""Checks of an author's class of metrics or statistics, when it is defined."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, get_origin

from streammetrics.core.configured import brief
from streammetrics.core.constraints import Constraint
from streammetrics.core.errors import an
from streammetrics.core.field import StateField

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streammetrics.core.configured import Parameter

T = TypeVar("T")

_VALUES = (0.0, 0, "", True, (), None)  # one of each kind that a parameter can have
_MARKS = {"__new__", "__slots__", "__eq__", "__hash__"}
_OF_METRICS = {*_MARKS, "__post_init__"}


def is_authored(cls: type) -> bool:
    """Whether a class is not of this package."""
    return cls.__module__.partition(".")[0] != __name__.partition(".")[0]


def check_class(cls: type) -> None:
    """Raise `TypeError` with the first mistake in the body of an author's class."""
    if is_authored(cls):
        for mistake in _mistakes(cls):
            raise TypeError(f"{cls.__name__}{mistake}")


def check_statistics(metric: object, statistics: T) -> T:
    """Return what `statistics` of a metric returned; raise `TypeError` for anything else."""
    kinds = isinstance(statistics, tuple) and [hasattr(type(one), "schema") for one in statistics]
    if not kinds or not all(kinds):
        name = type(metric).__name__
        told = "return a tuple of objects of Statistic classes, as in (MyStatistic(),)"
        raise TypeError(f"{name}.statistics() returned {brief(statistics)}: {told}")
    for one in cast("tuple[Any, ...]", statistics):
        if not hasattr(one.schema, "plain"):
            told = f"{type(one).__name__}.schema is {brief(one.schema)}"
            raise TypeError(f"{told}: return a Schema, as in Schema((Numbers('values'),))")
    return statistics


def if_added_later(cls: type, name: str, before: str) -> str:
    """Return how an author's class reads states of before a parameter or a field; "" for others."""
    if not is_authored(cls):
        return ""
    told = f"add state_defaults = {{{name!r}: {before}}} to {cls.__name__}"
    return f"; if it was added since, {told}"


def _mistakes(cls: Any) -> Iterator[str]:
    for name in sorted((_MARKS if hasattr(cls, "fields") else _OF_METRICS) & vars(cls).keys()):
        if vars(cls)[name] is not None:
            yield (
                f" defines {name}: leave it out; objects are equal if their states are, and "
                "annotated attributes of the class are its parameters"
            )
    yield from _bases(cls)
    for name, value in vars(cls).items():
        if not name.startswith("__"):
            yield from _attribute(cls, name, value)
    for name, known in cls._parameters.items():
        if vars(cls).get(name) is known:
            yield from _parameter(known)
    yield from _facts(cls)


def _bases(cls: type) -> Iterator[str]:
    """Yield that a class has two bases that say differently what is remembered."""
    whole = [base for base in cls.__bases__ if hasattr(base, "_parameters")]
    for name in ("statistics", "schema"):
        owners = {getattr(base, name) for base in whole if hasattr(base, name)}
        both = hasattr(cls, "statistics") and hasattr(cls, "schema")
        if len(whole) > 1 and (len(owners) > 1 or both):
            yield f" has the bases {' and '.join(base.__name__ for base in whole)}: choose one"


def _attribute(cls: type, name: str, value: object) -> Iterator[str]:
    """Yield what is wrong with an attribute."""
    where = f".{name}"
    if isinstance(value, type) and issubclass(value, StateField):
        yield f"{where} is the class {value.__name__}: make a field of it, {value.__name__}()"
    if isinstance(value, StateField) and not hasattr(cls, "fields"):
        yield f"{where} is a field, and metrics have none: put it into a Statistic"
    if getattr(getattr(value, "__func__", value), "prepares", False) and name != "_prepares":
        yield from _preparation(cls, name, value)
    inherited = [base for base in cls.__mro__[1:] if name in vars(base)]
    if not inherited or (name == "update" and not hasattr(cls, "fields")):
        return
    known = vars(inherited[0])[name]
    if name == "compute":
        yield f"{where} is not called by sets, slices and windows: write readout or read"
    if inspect.isfunction(known) and not name.startswith("_"):
        yield from _method(where, value, known)
    elif isinstance(known, property) and inspect.isfunction(value):
        yield f"{where} is a method: write @property above it"


def _method(where: str, value: object, known: Any) -> Iterator[str]:
    """Yield what is wrong with a method in place of an inherited one."""
    name = where[1:]
    if isinstance(value, staticmethod | classmethod | property) or not callable(value):
        yield f"{where} is {an(type(value).__name__)}: write a method, def {name}(self, ...)"
    if not inspect.isfunction(value):
        return
    if inspect.iscoroutinefunction(value) or inspect.isgeneratorfunction(value):
        yield f"{where} is async or a generator: return the value"
    kinds = inspect.Parameter
    theirs, mine = (list(inspect.signature(each).parameters.values()) for each in (known, value))
    theirs_by, mine_by = ({p.kind for p in each} for each in (theirs, mine))
    given = [p.name for p in theirs if p.kind is kinds.POSITIONAL_OR_KEYWORD]
    named = {p.name: None for p in theirs if p.kind is kinds.KEYWORD_ONLY}
    taken = [p.name for p in mine if p.kind is kinds.POSITIONAL_OR_KEYWORD]
    if not taken and kinds.VAR_POSITIONAL not in mine_by:
        yield f"{where} has no self: write def {name}(self, ...)"
    elif kinds.VAR_POSITIONAL in theirs_by or name == "update":
        if len(taken) < 2 and kinds.VAR_POSITIONAL not in mine_by:
            yield f"{where} takes nothing but self: name what it is given, def {name}(self, ...)"
        weighted = "weight" in {p.name for p in mine} or kinds.VAR_KEYWORD in mine_by
        if name == "update" and not weighted:
            yield f"{where} takes no weight: write def update(self, ..., *, weight)"
    elif kinds.VAR_KEYWORD not in theirs_by:
        told = f"it is called with ({', '.join(given[1:])})"
        if taken != given and sorted(taken) == sorted(given):
            yield f"{where} takes ({', '.join(taken[1:])}), and {told}"
        try:
            inspect.signature(value).bind(*given, **named)
        except TypeError:
            yield f"{where} takes ({', '.join(taken[1:])}), and {told}"


def _preparation(cls: Any, name: str, value: object) -> Iterator[str]:
    """Yield what is wrong with a method marked with `prepare`."""
    if not hasattr(cls, "_prepares"):
        yield f".{name} is marked with @prepare, which is for RowMean and SampleMetric"
    elif not inspect.isfunction(value):
        yield f".{name} is marked with @prepare: let it be a method, def {name}(self, ...)"
    elif name.startswith("_") or name == cls._reader:
        yield f".{name} is marked with @prepare: mark another method, of a public name"
    else:
        columns = list(inspect.signature(value).parameters.values())[1:]
        plain = inspect.Parameter.POSITIONAL_OR_KEYWORD
        fits = all(p.kind is plain and p.default is p.empty for p in columns)
        if not columns or not fits:
            yield f".{name}: name each argument of update, without a default"


def _parameter(known: Parameter) -> Iterator[str]:
    """Yield what is wrong with a parameter."""
    where = f".{known.name}"
    if isinstance(known.given, StateField):
        yield f"{where} is a field: leave out its annotation, which is of parameters"
        return
    if isinstance(known.annotation, Constraint):
        yield f"{where} is annotated with a constraint alone: write Annotated[float, ...]"
        return
    try:
        options = known.options
    except NameError as error:
        yield f"{where} has an annotation that is not known at run time ({error})"
        return
    for option in options:
        kind = get_origin(option.kind) or option.kind
        if kind is Literal or kind is Any:
            continue
        if not (isinstance(kind, type) and any(isinstance(value, kind) for value in _VALUES)):
            told = getattr(kind, "__name__", kind)
            yield (
                f"{where} is annotated with {told}: parameters are float, int, str, bool, None, "
                "Literal and tuples of these"
            )
            return
    if not known.required:
        if isinstance(known.given, property) or inspect.isfunction(known.given):
            yield f"{where} has an annotation, and is a {type(known.given).__name__}: leave it out"
        elif isinstance(known.given, list):
            yield f"{where} = {brief(known.given)}: write a tuple"
        else:
            try:
                known.brought(known.given, known.owner)
            except ValueError:
                yield f"{where} = {brief(known.given)}: expected {known.words}"


def _facts(cls: Any) -> Iterator[str]:
    """Yield what is wrong with the facts that a class states."""
    span = vars(cls).get("value_range")
    if span is not None and not isinstance(span, property):
        pair = isinstance(span, tuple) and len(span) == 2
        if not (pair and all(isinstance(end, int | float) for end in span) and span[0] < span[1]):
            yield f".value_range = {brief(span)}: expected (smallest, largest), or None"
    higher = vars(cls).get("higher_is_better")
    if not isinstance(higher, bool | property | None):
        yield f".higher_is_better = {brief(higher)}: expected True, False or None"
    family = vars(cls).get("family")
    if type(family) is str:
        yield f".family = {brief(family)}: expected a member of Family, as in Family.HITS, or None"
    later = vars(cls).get("state_defaults")
    if later is not None:
        known = [*getattr(cls, "fields", ()), *cls._parameters]
        if not isinstance(later, Mapping) or not later.keys() <= {*known}:
            told = f"expected a dictionary by name; there are {', '.join(known) or 'none'}"
            yield f".state_defaults = {brief(later)}: {told}"
            return
        for name in later.keys() & getattr(cls, "fields", {}).keys():
            if isinstance(later[name], int | float | str | list):
                told = f"{name!r} is a field: expected None, or a value of the field"
                yield f".state_defaults = {brief(later)}: {told}"
