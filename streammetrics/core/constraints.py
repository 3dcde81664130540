"""What a parameter may be beyond its type: constraints that stand in its annotation.

    threshold: Annotated[float, Between(0, 1)] | None = None
    k: Annotated[int, AtLeast(1)]

A constraint holds for one alternative of a union, so that ``None`` above needs no exception. The
classes that check them are in `streammetrics.core.parameters`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable


NanPolicy = Literal["raise", "omit"]  # of rows with a missing value


class Constraint(ABC):
    """What a value has to satisfy, having the right type."""

    @abstractmethod
    def allows(self, value: object) -> bool:
        """Whether a value satisfies it; nan, of which comparisons are false, mostly does not."""

    @abstractmethod
    def words(self, kind: str) -> str:
        """Return what is allowed, where `kind` is the type in words: "a number"."""


@dataclass(frozen=True)
class Between(Constraint):
    """From `low` to `high`, both included, but none of `without`."""

    low: float
    high: float
    without: tuple[float, ...] = ()

    def allows(self, value: Any) -> bool:
        """Whether it lies there."""
        return bool(self.low <= value <= self.high) and value not in self.without

    def words(self, kind: str) -> str:
        """Return the range."""
        span = f"{kind} from {_number(self.low)} to {_number(self.high)}"
        return (
            f"{span}, but not {' or '.join(map(_number, self.without))}," if self.without else span
        )


@dataclass(frozen=True)
class AtLeast(Constraint):
    """Finite and not below `low`."""

    low: float

    def allows(self, value: Any) -> bool:
        """Whether it is."""
        return bool(self.low <= value < math.inf)

    def words(self, kind: str) -> str:
        """Return the limit."""
        return f"{_finite(kind)}, {_number(self.low)} or above"


@dataclass(frozen=True)
class Above(Constraint):
    """Finite and above `low`."""

    low: float

    def allows(self, value: Any) -> bool:
        """Whether it is."""
        return bool(self.low < value < math.inf)

    def words(self, kind: str) -> str:
        """Return the limit."""
        return f"{_finite(kind)} above {_number(self.low)}"


@dataclass(frozen=True)
class Outside(Constraint):
    """Finite and not strictly between `low` and `high`."""

    low: float
    high: float

    def allows(self, value: Any) -> bool:
        """Whether it is."""
        return abs(value) < math.inf and not self.low < value < self.high

    def words(self, kind: str) -> str:
        """Return the gap."""
        gap = f"between {_number(self.low)} and {_number(self.high)}"
        return f"{_finite(kind)} that is not {gap}"


@dataclass(frozen=True)
class Satisfies(Constraint):
    """Whatever `test` says, `told` in words."""

    test: Callable[[Any], bool]
    told: str

    def allows(self, value: object) -> bool:
        """Whether the test says so."""
        return self.test(value)

    def words(self, kind: str) -> str:  # noqa: ARG002 - the words say the type too
        """Return what the test is for."""
        return self.told


@dataclass(frozen=True)
class OrNan(Constraint):
    """A number no larger than `most` either way, or nan, which no other annotation allows."""

    most: float = math.inf

    def allows(self, value: Any) -> bool:
        """Whether it is not beyond `most`; that it is a number, its type says."""
        return not abs(value) > self.most  # which nan is not

    def words(self, kind: str) -> str:
        """Return that nan is one."""
        span = "" if self.most == math.inf else f" from {-self.most:g} to {self.most:g}"
        return f"{kind}{span}, nan"


Positive = Above(0)
Share = Annotated[float, Between(0, 1)]
# How much a state may hold: cells of a histogram, pairs of cells, points of a sample.
Bins = Annotated[int, Between(2, 1 << 29)]
MaxPairs = Annotated[int, Between(4, 1 << 27)]
MaxPoints = Annotated[int, AtLeast(2)]
Seed = Annotated[int, Between(0, (1 << 32) - 1)]


def _finite(kind: str) -> str:
    return kind.replace("a number", "a finite number")


def _number(value: float) -> str:
    """Return a number as a message shows it: large powers of two as such."""
    if isinstance(value, int) and value >= 1 << 16 and value.bit_count() == 1:
        return f"2**{value.bit_length() - 1}"
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"
