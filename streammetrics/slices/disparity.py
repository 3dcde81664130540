"""How far apart slices are: the difference and the ratio of one metric over all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from streammetrics.core.confidence import ConfidenceInterval
from streammetrics.core.results.values import Interval
from streammetrics.slices.fairness import plain_limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from streammetrics.slices.fairness import Measured

Method = Literal["between_groups", "to_overall"]


@dataclass(frozen=True)
class Disparity:
    """How far apart slices are.

    Attributes:
        value: The difference or the ratio.
        bounds: What certainly holds it for these rows.
        confidence: What holds it for the population, at the level asked for, for all slices at
            once: each slice has its limits at a level so high that all hold together.
        lowest: The slice of the smallest value.
        highest: The slice of the largest value.

    Of one slice alone nothing is apart: then all of it is nan, and there is no confidence.
    """

    value: float
    bounds: Interval
    confidence: ConfidenceInterval | None
    lowest: str
    highest: str

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        words = [f"{self.value:.6g}"]
        if self.bounds.low < self.bounds.high:
            words.append(f"certainly {self.bounds.low:.6g} .. {self.bounds.high:.6g}")
        if self.confidence is not None:
            low, high = self.confidence
            words.append(f"{low:.6g} .. {high:.6g} ({100 * self.confidence.level:.6g} %)")
        if self.lowest:
            words.append(f"lowest {self.lowest}, highest {self.highest}")
        return "; ".join(words)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it in plain Python."""
        return {
            "value": self.value,
            "bounds": self.bounds.to_dict(),
            "confidence": None if self.confidence is None else self.confidence.to_dict(),
            "lowest": self.lowest,
            "highest": self.highest,
        }


_UNDEFINED = Disparity(math.nan, Interval(math.nan, math.nan), None, "", "")


def simultaneous(level: float, count: int) -> float:
    """Return the level at which each of several intervals holds, if all are to (Bonferroni)."""
    return 1 - (1 - level) / max(count, 1)


def alone(every: Sequence[Measured], overall: Measured, method: Method) -> Measured | None:
    """Return the one slice that has a value, where there is nothing else to compare it with."""
    known = [each for each in every if not math.isnan(each.value)]
    if len(known) != 1 or (method == "to_overall" and known[0].n_rows < overall.n_rows):
        return None
    return known[0]


def difference(
    every: Sequence[Measured], overall: Measured, method: Method, level: float | None
) -> Disparity:
    """Return the largest difference between slices, or from all rows."""

    def between(low: Sequence[float], high: Sequence[float]) -> tuple[float, float]:
        return max(0.0, max(low) - min(high)), max(high) - min(low)

    return _disparity(every, overall, method, level, lambda a, b: b - a, between, _from_overall)


def ratio(
    every: Sequence[Measured], overall: Measured, method: Method, level: float | None
) -> Disparity:
    """Return the smallest ratio between slices, or to all rows; at most 1."""

    def between(low: Sequence[float], high: Sequence[float]) -> tuple[float, float]:
        if min(low) < 0:
            return _BELOW_ZERO
        return _over(min(low), max(high)), min(1.0, _over(min(high), max(low)))

    if any(each.value < 0 for each in (overall, *every)):
        return _UNDEFINED
    return _disparity(every, overall, method, level, _over, between, _to_overall)


# Of what may be below zero the ratio may be anything: so may the limits that hold it.
_BELOW_ZERO = (-math.inf, 1.0)


def _over(a: float, b: float) -> float:
    return a / b if b else math.nan


Limits = Sequence[float]
Bounds = tuple[float, float]


def _disparity(
    every: Sequence[Measured],
    overall: Measured,
    method: Method,
    level: float | None,
    apart: Callable[[float, float], float],
    between: Callable[[Limits, Limits], Bounds],
    from_overall: Callable[[Limits, Limits, Bounds], Bounds],
) -> Disparity:
    known = [each for each in every if not math.isnan(each.value)]
    if not known or alone(every, overall, method) is not None:
        return _UNDEFINED

    def limits(values: Sequence[Any], whole: Any) -> Bounds:
        low, high = ([float(value[side]) for value in values] for side in (0, 1))
        if method == "between_groups":
            return between(low, high)
        return from_overall(low, high, (float(whole[0]), float(whole[1])))

    values = [(each.value, each.value) for each in known]
    lowest = min(known, key=lambda each: each.value)
    highest = max(known, key=lambda each: each.value)
    if method == "between_groups":
        value = apart(lowest.value, highest.value)
    else:
        value = limits(values, (overall.value, overall.value))[0]
    certain = Interval(*limits([each.certain for each in known], overall.certain))
    confidence = None
    if level is not None:
        sure = [overall, *known] if method == "to_overall" else known
        unknown = [each.title for each in sure if math.isnan(plain_limits(each.confidence)[0])]
        words = f"Bonferroni over {len(known)} slices of {known[0].confidence.method}"  # type: ignore[union-attr]  # a level was asked for
        if unknown:  # of all slices at once nothing is known then
            words = f"{unknown[0] or 'all rows'} has none; min_rows leaves out what is small"
            found = (math.nan, math.nan)
        else:
            found = limits([each.confidence for each in known], overall.confidence)
        confidence = ConfidenceInterval(*found, level, words)
    return Disparity(value, certain, confidence, lowest.title, highest.title)


def _from_overall(low: Limits, high: Limits, whole: Bounds) -> Bounds:
    nearest = (max(0.0, a - whole[1], whole[0] - b) for a, b in zip(low, high, strict=True))
    farthest = (max(b - whole[0], whole[1] - a) for a, b in zip(low, high, strict=True))
    return max(nearest), max(farthest)


def _to_overall(low: Limits, high: Limits, whole: Bounds) -> Bounds:
    """Return limits of the smallest ratio of a slice and all rows, the smaller over the larger."""
    if min(*low, whole[0]) < 0:
        return _BELOW_ZERO
    lows, highs = [], []
    for a, b in zip(low, high, strict=True):
        ends = [_over(a, whole[1]), _over(b, whole[0])]
        folded = [min(x, _over(1.0, x)) if x > 0 else x for x in ends]
        lows.append(min(folded))
        highs.append(1.0 if ends[0] <= 1 <= ends[1] else max(folded))
    return min(lows), min(highs)
