"""Constraints on the values of parameters, declared in their annotations.

    threshold: Annotated[float, Between(0, 1)] | None = None
    k: Annotated[int, AtLeast(1)]

A constraint applies to one alternative of a union, so ``None`` above needs no exception. The
classes that check constraints are in `streammetrics.core.configured`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from streammetrics.core.types import Floats

if TYPE_CHECKING:
    from collections.abc import Callable


NanPolicy = Literal["raise", "omit"]
"""Treatment of rows with a missing value."""


class Constraint(ABC):
    """A condition on a value of the right type."""

    @abstractmethod
    def allows(self, value: object) -> bool:
        """Whether a value satisfies the condition; comparisons reject NaN."""

    @abstractmethod
    def words(self, kind: str) -> str:
        """Describe the allowed values; `kind` is the type in words, such as "a number"."""


@dataclass(frozen=True)
class Between(Constraint):
    """From `low` to `high` inclusive, except for the values in `without`."""

    low: float
    high: float
    without: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise ValueError(f"Between({self.low!r}, {self.high!r}): expected the smaller first")

    def allows(self, value: Any) -> bool:
        """Whether the value is in the range."""
        return bool(self.low <= value <= self.high) and value not in self.without

    def words(self, kind: str) -> str:
        """Describe the range."""
        span = f"{kind} from {_number(self.low)} to {_number(self.high)}"
        return (
            f"{span}, but not {' or '.join(map(_number, self.without))}," if self.without else span
        )


@dataclass(frozen=True)
class AtLeast(Constraint):
    """Finite and at least `low`."""

    low: float

    def allows(self, value: Any) -> bool:
        """Whether the value is finite and at least `low`."""
        return bool(self.low <= value < math.inf)

    def words(self, kind: str) -> str:
        """Describe the limit."""
        return f"{_finite(kind)}, {_number(self.low)} or above"


@dataclass(frozen=True)
class Above(Constraint):
    """Finite and above `low`."""

    low: float

    def allows(self, value: Any) -> bool:
        """Whether the value is finite and above `low`."""
        return bool(self.low < value < math.inf)

    def words(self, kind: str) -> str:
        """Describe the limit."""
        return f"{_finite(kind)} above {_number(self.low)}"


@dataclass(frozen=True)
class Outside(Constraint):
    """Finite and not strictly between `low` and `high`."""

    low: float
    high: float

    def allows(self, value: Any) -> bool:
        """Whether the value is finite and outside the gap."""
        return abs(value) < math.inf and not self.low < value < self.high

    def words(self, kind: str) -> str:
        """Describe the gap."""
        gap = f"between {_number(self.low)} and {_number(self.high)}"
        return f"{_finite(kind)} that is not {gap}"


@dataclass(frozen=True)
class Satisfies(Constraint):
    """A condition given by the function `test`, described by `told`."""

    test: Callable[[Any], bool]
    told: str

    def allows(self, value: object) -> bool:
        """Return the result of the test."""
        return self.test(value)

    def words(self, kind: str) -> str:
        """Return the description of the test."""
        return self.told


@dataclass(frozen=True)
class OrNan(Constraint):
    """A number of absolute value at most `most`, or NaN, which all other annotations reject."""

    most: float = math.inf

    def allows(self, value: Any) -> bool:
        """Whether the value is NaN or within the limit; its type is checked elsewhere."""
        return not abs(value) > self.most  # false for NaN

    def words(self, kind: str) -> str:
        """Describe the range, and mention NaN."""
        span = "" if self.most == math.inf else f" from {-self.most:g} to {self.most:g}"
        return f"{kind}{span}, nan"


Positive = Above(0)
"""A constraint: above 0."""
Share = Annotated[float, Between(0, 1)]
"""A parameter from 0 to 1."""
Positives: TypeAlias = Annotated[Floats, Positive]
"""A column of numbers above 0."""
Shares: TypeAlias = Annotated[Floats, Between(0, 1)]
"""A column of numbers from 0 to 1."""
Bins = Annotated[int, Between(2, 1 << 29)]
"""Largest number of cells of a histogram."""
MaxPairs = Annotated[int, Between(4, 1 << 27)]
"""Largest number of pairs of cells."""
MaxPoints = Annotated[int, AtLeast(2)]
"""Largest number of points of a sample."""
Seed = Annotated[int, Between(0, (1 << 32) - 1)]
"""Seed of a sample."""


def _finite(kind: str) -> str:
    return kind.replace("a number", "a finite number")


def _number(value: float) -> str:
    """Format a number for a message; large powers of two as such."""
    if isinstance(value, int) and value >= 1 << 16 and value.bit_count() == 1:
        return f"2**{value.bit_length() - 1}"
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"
