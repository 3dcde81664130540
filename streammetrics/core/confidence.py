"""How sure a value is: what is asked, what is answered, and where answers come from.

Metrics of this package and their users' own get their intervals by family: the room `inference`
registers a function for each with `confidence_of`, which the metrics of a family inherit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, NoReturn

from streammetrics.core.errors import NoConfidenceError
from streammetrics.core.results.values import Interval, plain


class ConfidenceInterval(Interval):
    """Two limits that hold the value of the population in a share `level` of all samples.

    The rows are taken as a sample of it. `method` says how the limits were found. Unlike the
    certain `bounds()`, they are a matter of chance: one sample in twenty misses at 0.95.
    """

    level: float
    method: str

    def __new__(cls, low: object, high: object, level: float, method: str) -> ConfidenceInterval:
        """Return the limits."""
        limits = super().__new__(cls, low, high)
        limits.level, limits.method = level, method
        return limits

    def __getnewargs__(self) -> tuple[object, ...]:
        return (*self, self.level, self.method)

    def __repr__(self) -> str:
        fields = (self.low, self.high, self.level, self.method)
        named = zip(("low", "high", "level", "method"), fields, strict=True)
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in named)})"

    def to_dict(self) -> dict[str, Any]:
        """Return the limits, the level and the method in plain Python."""
        low, high = map(plain, self)
        return {"low": low, "high": high, "level": self.level, "method": self.method}


@dataclass(frozen=True)
class Asked:
    """What is asked of an interval, and of how many rows the state is."""

    level: float
    anytime: bool
    n_rows: int

    def __post_init__(self) -> None:
        check_level(self.level)

    @property
    def tail(self) -> float:
        """The probability that is left to either side."""
        return (1 - self.level) / 2


def check_level(confidence: Any) -> float:
    """Return a level of confidence, or raise `ValueError`."""
    share = isinstance(confidence, int | float) and not isinstance(confidence, bool)
    if not share or not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence!r}: expected a share such as 0.95")
    return float(confidence)


@singledispatch
def confidence_of(metric: object, asked: Asked, *statistics: object) -> ConfidenceInterval:  # noqa: ARG001 - what families take
    """Return the confidence interval of a metric's value of statistics, by its family."""
    raise without(metric, "nothing is known of how it varies from sample to sample")


def without(metric: object, reason: str) -> NoConfidenceError:
    """Return the error of a metric without confidence interval: why, and which metric has one."""
    return NoConfidenceError(f"{type(metric).__name__} has no confidence interval: {reason}")


def unsure(level: float, method: str) -> ConfidenceInterval:
    """Return limits that say nothing, and why."""
    return ConfidenceInterval(math.nan, math.nan, level, method)


def without_units(_: object, unit: str, *__: object, **___: object) -> NoReturn:
    """Raise the error of limits by unit, for what does not keep its rows so."""
    raise ValueError(
        f"confidence(unit={unit!r}): no units are kept; MetricSet({{'f1': F1()}}, unit={unit!r}) "
        "keeps them, and its metrics have limits by unit"
    )


def not_anytime(metric: object) -> NoConfidenceError:
    """Return the error of a metric whose limits hold at one time only."""
    return without(
        metric, "anytime=True is for rates of rows and means of what is bounded, which it is not"
    )
