"""Which slices are worst, and how far apart they are: readings of one metric over all slices.

Two kinds of limits, never mixed: certain ones of these rows (`bounds`), and those of the population
that the rows are a sample of (`confidence`).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from streammetrics.core.confidence import ConfidenceInterval
from streammetrics.core.errors import NoConfidenceError, UndefinedMetricWarning
from streammetrics.core.results.values import Interval, plain
from streammetrics.inference.distributions import normal_quantile, normal_tail

if TYPE_CHECKING:
    from collections.abc import Callable

    from streammetrics.core.layout import Layout, State
    from streammetrics.core.metric import Metric

Method = Literal["between_groups", "to_overall"]


@dataclass(frozen=True)
class Measured:
    """One slice's value, with the certain limits and those of confidence."""

    title: str
    n_rows: int
    state: State
    value: float
    certain: Interval
    confidence: ConfidenceInterval | None


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
    """

    value: float
    bounds: Interval
    confidence: ConfidenceInterval | None
    lowest: str
    highest: str

    def __float__(self) -> float:
        return self.value

    def to_dict(self) -> dict[str, Any]:
        """Return all of it in plain Python."""
        return {
            "value": self.value,
            "bounds": self.bounds.to_dict(),
            "confidence": None if self.confidence is None else self.confidence.to_dict(),
            "lowest": self.lowest,
            "highest": self.highest,
        }


def measured(
    name: str, metric: Metric, title: str, n_rows: int, state: State, level: float | None
) -> Measured:
    """Read one metric of one slice.

    Raises:
        ValueError: It is not one number.
        NoConfidenceError: It has no confidence limits, and a level is asked for.
    """
    value, _ = metric._judged(*metric._chosen(state))
    if not isinstance(value, int | float | np.number):
        raise ValueError(  # noqa: TRY004 - of a parameter of the metric
            f"{name!r} is several numbers, and slices are ranked by one: use an average, such as "
            'average="macro"'
        )
    certain = metric.interval(*metric._chosen(state))
    limits = None
    if level is not None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UndefinedMetricWarning)
                limits = metric._confident(state, level, anytime=False)
        except NoConfidenceError as error:
            raise NoConfidenceError(
                f"{name!r}: {error}; confidence=None goes by the values alone"
            ) from None
    return Measured(title, n_rows, state, float(value), certain, limits)


def p_value(one: Measured, rest: Measured, level: float) -> float:
    """Return the probability of so large a difference between two samples if there is none.

    From the limits of both, which need not be symmetric: the variance of either is that of the side
    that looks to the other (MOVER; Zou and Donner, Statistics in Medicine 27, 2008).
    """
    if one.confidence is None or rest.confidence is None:
        return math.nan
    difference = one.value - rest.value
    if difference < 0:
        one_margin = one.confidence.high - one.value
        rest_margin = rest.value - rest.confidence.low
    else:
        one_margin = one.value - one.confidence.low
        rest_margin = rest.confidence.high - rest.value
    spread = math.hypot(one_margin, rest_margin)
    if math.isnan(difference) or math.isnan(spread):
        return math.nan
    if not spread:
        return 0.0 if difference else 1.0
    z = abs(difference) / spread * normal_quantile((1 + level) / 2)
    return 2 * normal_tail(z)


def adjusted(p: Sequence[float]) -> list[float]:
    """Return p-values adjusted for their number by Benjamini and Hochberg's rule; nan stays.

    >>> adjusted([0.01, 0.04, 0.03])
    [0.03, 0.04, 0.04]
    """
    known = sorted((value, place) for place, value in enumerate(p) if not math.isnan(value))
    result, least = list(p), 1.0
    for rank in range(len(known), 0, -1):
        value, place = known[rank - 1]
        least = min(least, value * len(known) / rank)
        result[place] = least
    return result


def without_each(layout: Layout, states: Sequence[State], wanted: Sequence[bool]) -> list[Any]:
    """Return for each state that is wanted what all the others hold together, else ``None``."""
    rests: list[State | None] = [None] * len(states)

    def walk(start: int, stop: int, outside: State) -> None:
        if not any(wanted[start:stop]):
            return
        if stop - start == 1:
            rests[start] = outside
            return
        middle = (start + stop) // 2
        walk(start, middle, layout.merged(outside, states[middle:stop]))
        walk(middle, stop, layout.merged(outside, states[start:middle]))

    if states:
        walk(0, len(states), layout.start)
    return rests


def simultaneous(level: float, count: int) -> float:
    """Return the level at which each of several intervals holds, if all are to (Bonferroni)."""
    return 1 - (1 - level) / max(count, 1)


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
        return _over(min(low), max(high)), min(1.0, _over(min(high), max(low)))

    return _disparity(every, overall, method, level, _over, between, _to_overall)


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
    if not known:
        nothing = Interval(math.nan, math.nan)
        return Disparity(math.nan, nothing, None, "", "")

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
        found = limits([each.confidence for each in known], overall.confidence)
        words = f"Bonferroni over {len(known)} slices of {known[0].confidence.method}"  # type: ignore[union-attr]  # a level was asked for
        confidence = ConfidenceInterval(*found, level, words)
    return Disparity(value, certain, confidence, lowest.title, highest.title)


def _from_overall(low: Limits, high: Limits, whole: Bounds) -> Bounds:
    nearest = (max(0.0, a - whole[1], whole[0] - b) for a, b in zip(low, high, strict=True))
    farthest = (max(b - whole[0], whole[1] - a) for a, b in zip(low, high, strict=True))
    return max(nearest), max(farthest)


def _to_overall(low: Limits, high: Limits, whole: Bounds) -> Bounds:
    """Return limits of the smallest ratio of a slice and all rows, the smaller over the larger."""
    lows, highs = [], []
    for a, b in zip(low, high, strict=True):
        ends = [_over(a, whole[1]), _over(b, whole[0])]
        folded = [min(x, _over(1.0, x)) if x > 0 else x for x in ends]
        lows.append(min(folded))
        highs.append(1.0 if ends[0] <= 1 <= ends[1] else max(folded))
    return min(lows), min(highs)


def plain_limits(limits: ConfidenceInterval | None) -> tuple[float, float]:
    """Return both limits as floats, nan where there are none."""
    if limits is None:
        return math.nan, math.nan
    low, high = map(plain, limits)
    return float(low), float(high)
