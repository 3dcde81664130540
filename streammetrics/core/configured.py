"""Parameters fixed at construction: what two objects must share to be merged."""

from __future__ import annotations

import dataclasses
import types
from contextlib import suppress
from functools import cache
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Self,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

from streammetrics.core.columns.naming import near

if TYPE_CHECKING:
    from collections.abc import Iterable


_BEYOND = 1 << 63  # integers are of 64 bits
_PLAIN: frozenset[Any] = frozenset({bool, int, float, str, type(None)})


@dataclass_transform(kw_only_default=True, eq_default=False)
class Configured:
    """An object whose annotated class attributes are its keyword-only parameters.

    Subclasses become dataclasses. Parameters are brought to one canonical Python type, so that
    ``threshold=1`` and ``threshold=np.float32(1.0)`` are one configuration; a `Literal` annotation
    is enforced; setting a parameter after construction raises.
    """

    _names: ClassVar[tuple[str, ...]] = ()
    _may_be_nan: ClassVar[frozenset[str]] = frozenset()  # parameters of which nan is a value
    _key: ClassVar[tuple[Any, ...]]  # each object has its own; not a parameter

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        dataclasses.dataclass(kw_only=True, eq=False, repr=False)(cls)
        cls._names = tuple(field.name for field in dataclasses.fields(cls))  # type: ignore[arg-type]  # just made one

    def __new__(cls, *args: Any, **parameters: Any) -> Self:
        """Refuse what is no parameter, with words: `__init__` would only say that it is none."""
        unknown = parameters.keys() - cls._names
        if unknown:
            name = min(unknown)
            raise TypeError(f"{cls.__name__} has no parameter {name!r}{near(name, cls._names)}")
        if args:
            raise TypeError(f"{cls.__name__} takes its parameters by name: {', '.join(cls._names)}")
        return super().__new__(cls)

    def __post_init__(self) -> None:
        cls: Any = type(self)
        for name, (options, plain, words) in _options(cls).items():
            value = getattr(self, name)
            kind = type(value)
            if kind is int:
                known = int in plain and -_BEYOND <= value < _BEYOND
            else:
                known = kind in plain or (kind is str and value in words)
            if not known:
                value = self.__dict__[name] = _canonical(value, options, cls, name)
            # Comparisons with nan are all false, so that those of `check_parameters` may pass it.
            if value != value and name not in cls._may_be_nan:  # noqa: PLR0124 - the test for nan
                raise ValueError(f"{cls.__name__}({name}=nan): expected {_expected(options)}")
        self.check_parameters()
        # What identifies the configuration: hashable, and equal where the parameters are. Made
        # once, as every merge compares it; parameters do not change from here on.
        self.__dict__["_key"] = (cls, *map(_comparable, self.config.values()))

    @classmethod
    def _takes(cls, names: Iterable[str]) -> bool:
        """Whether these are parameters, and all that have no default are among them."""
        given = set(names)
        needed = {f.name for f in dataclasses.fields(cls) if f.default is dataclasses.MISSING}  # type: ignore[arg-type]  # subclasses are
        return needed <= given <= set(cls._names)

    def check_parameters(self) -> None:
        """Raise `ValueError` where a parameter, of the right type by now, has no sense.

        Subclasses override it, and may bring a parameter to a canonical form.
        """

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._names and "_key" in self.__dict__:
            raise AttributeError(
                f"{name} is fixed at construction: "
                f"make another {type(self).__name__}({name}={value!r})"
            )
        object.__setattr__(self, name, value)

    @property
    def config(self) -> dict[str, Any]:
        """The parameters and their values, in the order of declaration."""
        return {name: getattr(self, name) for name in self._names}

    def _apart(self, other: Configured) -> str:
        """Return which parameters differ in another object of this class, and how."""
        mine, theirs = self.config, other.config
        return ", ".join(
            f"{name} is {_brief(theirs[name])} there and {_brief(mine[name])} here"
            for name in mine
            if _comparable(theirs[name]) != _comparable(mine[name])
        )

    def _shown(self) -> str:
        """Return the parameters that differ from their defaults, as they would be written."""
        defaults = {field.name: field.default for field in dataclasses.fields(self)}  # type: ignore[arg-type]  # subclasses are
        return ", ".join(
            f"{name}={_brief(value)}"
            for name, value in self.config.items()
            if _comparable(value) != _comparable(defaults[name])
        )


class _Options(NamedTuple):
    """What a parameter may be, and which types and words need no conversion."""

    options: tuple[Any, ...]
    plain: frozenset[type]
    words: frozenset[str]


@cache
def _options(cls: type[Configured]) -> dict[str, _Options]:
    """Return for each parameter what it may be."""
    # Annotations are strings in this package; resolving them is slow, so once a class.
    hints = get_type_hints(cls)
    union = {Union, types.UnionType}
    found = {}
    for name in cls._names:
        hint = hints[name]
        options = get_args(hint) if get_origin(hint) in union else (hint,)
        plain = _PLAIN if Any in options else _PLAIN.intersection(options)
        words = (get_args(option) for option in options if get_origin(option) is Literal)
        found[name] = _Options(options, plain, frozenset().union(*words))
    return found


def _brief(value: Any) -> str:
    text = repr(value)
    if len(text) <= 60:
        return text
    return f"{text[:40]}... ({len(value)} items)" if isinstance(value, tuple) else f"{text[:57]}..."


def _comparable(value: Any) -> Any:
    # nan differs from itself and 1 equals True; types make both comparable.
    if isinstance(value, tuple):
        return tuple(map(_comparable, value))
    return (type(value), "nan" if value != value else value)  # noqa: PLR0124 - the test for nan


def _canonical(value: Any, options: tuple[Any, ...], cls: type, name: str) -> Any:
    """Bring one parameter to its canonical Python type, or say what is wrong with it."""
    if isinstance(value, np.generic):
        value = value.item()
    elif isinstance(value, np.ndarray):
        value = _tupled(value.tolist())
    elif isinstance(value, list | range):
        value = _tupled(value)
    if any(_fits(value, option) for option in options):
        # An integer is a float where a float is meant and an integer is not.
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole:
            return value
        if float not in options or int in options:
            if -_BEYOND <= value < _BEYOND:
                return value
        else:
            with suppress(OverflowError):
                return float(value)
    raise ValueError(f"{cls.__name__}({name}={_brief(value)}): expected {_expected(options)}")


def _fits(value: Any, option: Any) -> bool:
    if option is Any:
        return _is_plain(value)
    if get_origin(option) is Literal:
        return isinstance(value, str) and value in get_args(option)
    if option in {int, float} and isinstance(value, bool):
        return False
    if option is float:
        return isinstance(value, int | float)
    return isinstance(value, get_origin(option) or option)


def _is_plain(value: Any) -> bool:
    """Whether a value can be compared, hashed and written to a file."""
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | str)


def _tupled(value: Any) -> Any:
    if isinstance(value, list | tuple | range):
        return tuple(map(_tupled, value))
    return value.item() if isinstance(value, np.generic) else value


def _expected(options: tuple[Any, ...]) -> str:
    words = []
    for option in options:
        if get_origin(option) is Literal:
            words += [repr(choice) for choice in get_args(option)]
        elif option is type(None):
            words.append("None")
        else:
            kind = str(getattr(get_origin(option) or option, "__name__", option))
            words.append(f"an {kind}" if kind[0] in "aeiou" else f"a {kind}")
    return " or ".join(words)


def require(what: Configured, name: str, fits: bool, expected: str) -> None:
    """Raise `ValueError` naming the parameter, its value and what is expected."""
    if not fits:
        value = getattr(what, name)
        raise ValueError(f"{type(what).__name__}({name}={value!r}): expected {expected}")


def within(value: Any, low: float, high: float) -> bool:
    """Whether a parameter is in a range; of what is not a number the check of types complains."""
    return not isinstance(value, int | float | np.number) or bool(low <= value <= high)
