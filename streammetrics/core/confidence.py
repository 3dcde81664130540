"""Confidence intervals: the request, the result, and the registry of rules.

A metric class states its family (`Metric.family`). The modules of `inference` register a rule for
each family with `rule_of`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, Self

from streammetrics.core.errors import NoConfidenceError
from streammetrics.core.registry import load
from streammetrics.core.results.values import Interval, plain
from streammetrics.core.types import Document, V_co

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import EllipsisType

    Unit = str | EllipsisType | None
    Rule = Callable[..., "ConfidenceInterval"]


class ConfidenceInterval(Interval[V_co]):
    """Limits that contain the population value in a share `level` of all samples.

    The rows are treated as a sample of the population. `method` names the method. Unlike the
    guaranteed `bounds()`, the limits can miss: at a level of 0.95, those of one sample in twenty
    do.
    """

    level: float
    method: str

    def __new__(cls, low: Any, high: Any, level: float, method: str) -> Self:
        """Return the limits."""
        limits = super().__new__(cls, low, high)  # type: ignore[type-var]  # of a generic tuple
        limits.level, limits.method = level, method
        return limits

    def __getnewargs__(self) -> tuple[object, ...]:
        return (*self, self.level, self.method)

    def __repr__(self) -> str:
        fields = (self.low, self.high, self.level, self.method)
        named = zip(("low", "high", "level", "method"), fields, strict=True)
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in named)})"

    def to_dict(self) -> Document:
        """Return the limits, the level and the method in plain Python."""
        low, high = map(plain, self)
        return {"low": low, "high": high, "level": self.level, "method": self.method}


@dataclass(frozen=True)
class ConfidenceRequest:
    """The level of an interval, whether it is anytime-valid, the rows, and a method by name."""

    level: float
    anytime: bool
    n_rows: int
    method: str | None = None

    def __post_init__(self) -> None:
        check_level(self.level)
        if self.method is not None and self.anytime:
            raise ValueError(f"confidence(method={self.method!r}): anytime=True has its own method")

    @property
    def tail(self) -> float:
        """The probability outside the interval on each side."""
        return (1 - self.level) / 2


def check_level(confidence: Any) -> float:
    """Return a confidence level as a float, or raise `ValueError`."""
    share = isinstance(confidence, int | float) and not isinstance(confidence, bool)
    if not share or not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence!r}: expected a share such as 0.95")
    return float(confidence)


class Refusal(str):
    """The reason why a metric has no confidence limits, given in place of its family."""

    __slots__ = ()


class Biased(Refusal):
    """The reason, where chance alone raises a value, so that limits by unit would miss it, too."""

    __slots__ = ()


_RULES: dict[str, Rule] = {}  # by family
_ANYTIME: set[str] = set()  # families with a rule for intervals that hold at all times
_METHODS: dict[str, Rule] = {}  # by name


def rule_of(*families: str, anytime: bool = False) -> Callable[[Rule], Rule]:
    """Register a function as the rule of families of metrics.

    Args:
        *families: The families.
        anytime: Whether the rule itself answers or refuses a request for limits at all times.
    """

    def register(rule: Rule) -> Rule:
        _RULES.update(dict.fromkeys(families, rule))
        _ANYTIME.update(families if anytime else ())
        return rule

    return register


def method_of(name: str) -> Callable[[Rule], Rule]:
    """Register a function as the method of a name."""

    def register(rule: Rule) -> Rule:
        _METHODS[name] = rule
        return rule

    return register


def _method(name: str) -> Rule:
    load("limits")
    if name not in _METHODS:
        known = ", ".join(map(repr, _METHODS))
        raise ValueError(f"confidence(method={name!r}): expected one of {known}")
    return _METHODS[name]


def confidence_of(metric: Any, asked: ConfidenceRequest, *statistics: object) -> ConfidenceInterval:
    """Return the confidence interval of a metric for its statistics, by the rule of its family."""
    if asked.method is not None:
        return _method(asked.method)(metric, asked, *statistics)
    family = metric.family
    if isinstance(family, Refusal):
        raise without(metric, family)
    if family not in _RULES:
        load("limits")
    if family not in _RULES:
        raise without(
            metric,
            "no rule for its sampling variance is known; MetricSet({...}, unit='id') "
            "has limits for any value, by a jackknife over the units in column 'id'",
        )
    if asked.anytime and family not in _ANYTIME:
        raise not_anytime(metric)
    return _RULES[family](metric, asked, *statistics)


def without(metric: object, reason: str) -> NoConfidenceError:
    """Return the error for a metric without a confidence interval, with the reason."""
    return NoConfidenceError(f"{type(metric).__name__} has no confidence interval: {reason}")


def unsure(level: float, method: str) -> ConfidenceInterval:
    """Return limits that are NaN, with the reason as their method."""
    return ConfidenceInterval(math.nan, math.nan, level, method)


def without_units(_: object, unit: str, *__: object, **___: object) -> NoReturn:
    """Raise the error for limits by unit on an object that does not keep rows by unit."""
    raise ValueError(
        f"confidence(unit={unit!r}): no units are kept; MetricSet({{'f1': F1()}}, unit={unit!r}) "
        "keeps them, and its metrics have limits by unit"
    )


def check_method_of_rows(method: object, unit: str) -> None:
    """Raise `ValueError` if a method is named for limits by unit."""
    if method is not None:
        raise ValueError(
            f"confidence(method={method!r}): limits by the unit {unit!r} have one method; "
            "unit=None treats the rows as the sample"
        )


def unit_of(asked: Unit, kept: str | None) -> str | None:
    """Return the unit of the limits: `asked` if given (None for rows), else the unit `kept`."""
    return kept if asked is ... else asked


def not_anytime(metric: object) -> NoConfidenceError:
    """Return the error for a metric without an anytime-valid interval."""
    return without(metric, "anytime=True is for rates of rows and for means of bounded values")
