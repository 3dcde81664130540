"""Disparity between slices: the difference and the ratio of one metric over all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from streammetrics.core.confidence import ConfidenceInterval
from streammetrics.core.results.values import Interval
from streammetrics.slices.fairness import plain_limits
from streammetrics.slices.worst import difference_limits, pairs_of, ratio_limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from streammetrics.core.types import Floats
    from streammetrics.slices.fairness import Measured

Method = Literal["between_groups", "to_overall"]


@dataclass(frozen=True)
class Disparity:
    """The difference or ratio of a metric between slices.

    Attributes:
        value: The difference or the ratio.
        bounds: Certain limits of the exact value for these rows.
        confidence: Limits for the population at the given level. They hold for all slices
            simultaneously, because the level of each pair's limits is corrected for their number.
        lowest: The slice with the smallest value.
        highest: The slice with the largest value.

    With a single slice the numbers are nan, and there is no confidence.
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
        """Return all attributes as plain Python objects."""
        return {
            "value": self.value,
            "bounds": self.bounds.to_dict(),
            "confidence": None if self.confidence is None else self.confidence.to_dict(),
            "lowest": self.lowest,
            "highest": self.highest,
        }


_UNDEFINED = Disparity(math.nan, Interval(math.nan, math.nan), None, "", "")


class Comparing(NamedTuple):
    """How slices are compared: the method, the confidence level, and their independence."""

    method: Method
    level: float | None
    independent: bool  # whether slices share no rows and no units

    @property
    def by_pairs(self) -> bool:
        """Whether limits are computed for each pair of slices."""
        return self.independent and self.method == "between_groups"

    def level_of_each(self, slices: int) -> float | None:
        """Return the level of each slice's limits at which all hold together (Bonferroni)."""
        if self.level is None:
            return None
        count = pairs_of(slices) if self.by_pairs else slices + (self.method == "to_overall")
        return 1 - (1 - self.level) / max(count, 1)

    def words(self, slices: int, method: str) -> str:
        """Return a description of how limits are computed from those of `slices` slices."""
        if self.by_pairs:
            return f"MOVER of {pairs_of(slices):,} pairs of slices (Bonferroni), from {method}"
        return f"Bonferroni over {slices:,} slices of {method}"


def alone(every: Sequence[Measured], overall: Measured, method: Method) -> Measured | None:
    """Return the only slice with a value if it has nothing to be compared with, else ``None``."""
    known = [each for each in every if not math.isnan(each.value)]
    if len(known) != 1 or (method == "to_overall" and known[0].n_rows < overall.n_rows):
        return None
    return known[0]


Limits = Sequence[float]
Bounds = tuple[float, float]


class _Distance(NamedTuple):
    """A measure of distance between two values, with functions for its limits."""

    apart: Callable[[float, float], float]
    between: Callable[[Limits, Limits], Bounds]
    from_overall: Callable[[Limits, Limits, Bounds], Bounds]
    of_pairs: Callable[[Floats, Floats, Floats], Bounds]

    def limits(self, every: Sequence[Bounds], overall: Bounds, method: Method) -> Bounds:
        """Return limits of the distance, given limits of all slices and of all rows."""
        low, high = zip(*every, strict=True)
        if method == "between_groups":
            return self.between(low, high)
        return self.from_overall(low, high, overall)


def difference(every: Sequence[Measured], overall: Measured, how: Comparing) -> Disparity:
    """Return the largest difference between slices, or from all rows."""

    def between(low: Limits, high: Limits) -> Bounds:
        return max(0.0, max(low) - min(high)), max(high) - min(low)

    distance = _Distance(lambda a, b: b - a, between, _from_overall, difference_limits)
    return _disparity(every, overall, how, distance)


def ratio(every: Sequence[Measured], overall: Measured, how: Comparing) -> Disparity:
    """Return the smallest ratio between slices, or to all rows; at most 1."""

    def between(low: Limits, high: Limits) -> Bounds:
        if min(low) < 0:
            return _BELOW_ZERO
        return _over(min(low), max(high)), min(1.0, _over(min(high), max(low)))

    def of_pairs(value: Floats, low: Floats, high: Floats) -> Bounds:
        return _BELOW_ZERO if low.min() < 0 else ratio_limits(value, low, high)

    if any(each.value < 0 for each in (overall, *every)):
        return _UNDEFINED
    return _disparity(every, overall, how, _Distance(_over, between, _to_overall, of_pairs))


# The ratio of values that may be negative is unbounded below.
_BELOW_ZERO = (-math.inf, 1.0)


def _over(a: float, b: float) -> float:
    return a / b if b else math.nan


def _disparity(
    every: Sequence[Measured], overall: Measured, how: Comparing, distance: _Distance
) -> Disparity:
    known = [each for each in every if not math.isnan(each.value)]
    if not known or alone(every, overall, how.method) is not None:
        return _UNDEFINED
    lowest = min(known, key=lambda each: each.value)
    highest = max(known, key=lambda each: each.value)
    if how.method == "between_groups":
        value = distance.apart(lowest.value, highest.value)
    else:
        values = [(each.value, each.value) for each in known]
        value, _ = distance.limits(values, (overall.value, overall.value), how.method)
    pairs = [(each.certain.low, each.certain.high) for each in known]
    whole = (overall.certain.low, overall.certain.high)
    certain = Interval(*distance.limits(pairs, whole, how.method))
    sure = None if how.level is None else _sure(known, overall, how, distance, how.level)
    if sure is not None and how.by_pairs:
        sure = _widened(sure, value, certain)
    return Disparity(value, certain, sure, lowest.title, highest.title)


def _sure(
    known: Sequence[Measured],
    overall: Measured,
    how: Comparing,
    distance: _Distance,
    level: float,
) -> ConfidenceInterval:
    """Return the confidence limits; nan if a slice has none, since then nothing is known."""
    asked = known if how.method == "between_groups" else [overall, *known]
    limits = [plain_limits(each.confidence) for each in asked]
    for each, (low, _) in zip(asked, limits, strict=True):
        if math.isnan(low):
            words = f"{each.title or 'all rows'} has none; min_rows leaves out what is small"
            return ConfidenceInterval(math.nan, math.nan, level, words)
    if how.by_pairs:
        low, high = np.array(limits, np.float64).T
        found = distance.of_pairs(np.array([each.value for each in known]), low, high)
    else:
        found = distance.limits(limits[-len(known) :], limits[0], how.method)
    method = "" if known[0].confidence is None else known[0].confidence.method
    return ConfidenceInterval(*found, level, how.words(len(known), method))


def _widened(sure: ConfidenceInterval, value: float, certain: Interval) -> ConfidenceInterval:
    """Return limits widened by the bounds of the value's error, which add linearly."""
    low = max(min(sure.low, 0.0), sure.low - (value - certain.low))
    return ConfidenceInterval(low, sure.high + (certain.high - value), sure.level, sure.method)


def _from_overall(low: Limits, high: Limits, whole: Bounds) -> Bounds:
    nearest = (max(0.0, a - whole[1], whole[0] - b) for a, b in zip(low, high, strict=True))
    farthest = (max(b - whole[0], whole[1] - a) for a, b in zip(low, high, strict=True))
    return max(nearest), max(farthest)


def _to_overall(low: Limits, high: Limits, whole: Bounds) -> Bounds:
    """Return limits of the smallest ratio between a slice and all rows, folded to at most 1."""
    if min(*low, whole[0]) < 0:
        return _BELOW_ZERO
    lows, highs = [], []
    for a, b in zip(low, high, strict=True):
        ends = [_over(a, whole[1]), _over(b, whole[0])]
        folded = [min(x, _over(1.0, x)) if x > 0 else x for x in ends]
        lows.append(min(folded))
        highs.append(1.0 if ends[0] <= 1 <= ends[1] else max(folded))
    return min(lows), min(highs)
