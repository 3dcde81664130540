"""One metric of one slice with its limits, and how probable its distance from other rows is.

Two kinds of limits, never mixed: certain ones of these rows (`certain`), and those of the
population that the rows are a sample of (`confidence`).
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.errors import NoConfidenceError, UndefinedMetricWarning
from streammetrics.core.floating import own_arithmetic
from streammetrics.core.results.values import Interval, plain
from streammetrics.inference.distributions import margin, normal_quantile, normal_tail, t_tail
from streammetrics.inference.tables import Readings
from streammetrics.slices.table import named
from streammetrics.slices.units import limits_by_unit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streammetrics.core.confidence import ConfidenceInterval
    from streammetrics.core.feeding.plan import Plan
    from streammetrics.core.feeding.states import State
    from streammetrics.core.metric import Metric
    from streammetrics.core.statistic import Statistic
    from streammetrics.statistics.grouped.keys import Part


@dataclass(frozen=True)
class Measured:
    """One slice's value, with the certain limits and those of confidence."""

    title: str
    n_rows: int
    state: State
    value: float
    certain: Interval
    confidence: ConfidenceInterval | None


def value_of(name: str, metric: Metric, state: State) -> float:
    """Return a metric's value of a state.

    Raises:
        ValueError: It is not one number.
    """
    with own_arithmetic():
        value, _ = metric._judged(*metric._chosen(state))
    return number_of(name, value)


def number_of(name: str, value: object) -> float:
    """Return a value as a float, or raise `ValueError` where it is not one number."""
    if not isinstance(value, int | float | np.number):
        raise ValueError(  # noqa: TRY004 - of a parameter of the metric
            f"{name!r} is several numbers, and slices are ranked by one: use an average, such as "
            'average="macro"'
        )
    return float(value)


def measured(
    name: str,
    metric: Metric,
    title: str,
    n_rows: int,
    state: State,
    level: float | None,
    without: Sequence[State] | None = None,
) -> Measured:
    """Read one metric of one slice.

    Limits are those of a sample of rows, or where it is known what the slice is `without` each
    group of units, of a sample of units.

    Raises:
        ValueError: It is not one number.
        NoConfidenceError: It has no confidence limits, and a level is asked for.
    """
    value = value_of(name, metric, state)
    with own_arithmetic():
        certain = metric.interval(*metric._chosen(state))
    limits = None
    if level is not None and without is not None:
        limits = limits_by_unit(metric, state, without, level)
    elif level is not None:
        limits = _limits(name, metric, metric._n_rows(state), metric._chosen(state), level)
    return Measured(title, n_rows, state, value, certain, limits)


def _limits(
    name: str, metric: Metric, n_rows: int, statistics: Sequence[Statistic], level: float
) -> ConfidenceInterval:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            return metric._limits(n_rows, statistics, level)
    except NoConfidenceError as error:
        raise NoConfidenceError(
            f"{name!r}: {error}; confidence=None goes by the values alone"
        ) from None


def reading(
    name: str, metric: Metric, n_rows: int, statistics: Sequence[Statistic], level: float
) -> tuple[float, float, float]:
    """Return the value and the confidence limits of statistics of so many rows, as `measured`."""
    with own_arithmetic():
        value = number_of(name, metric._judged(*statistics)[0])
    return (value, *plain_limits(_limits(name, metric, n_rows, statistics, level)))


def readings(every: Sequence[tuple[float, float, float]]) -> Readings:
    """Return what was read in turn as arrays."""
    return Readings(*np.array(every, np.float64).reshape(-1, 3).T)


def p_values(one: Readings, rest: Readings, level: float) -> list[float]:
    """Return the probabilities of so large differences of pairs of samples if there are none.

    From the limits of both: the variance of either is that of the side that looks to the other.
    """
    difference = np.subtract(one.value, rest.value)
    spread = np.array(margin(one.value, one.low, rest.value, rest.high))
    np.copyto(spread, margin(rest.value, rest.low, one.value, one.high), where=difference < 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.abs(difference) / spread * normal_quantile((1 + level) / 2)
    z[(difference == 0.0) & (spread == 0.0)] = 0.0  # both are what they are for certain
    return [2 * normal_tail(each) for each in z.tolist()]


def p_by_unit(difference: float, without: Sequence[float]) -> float:
    """Return the same of samples that have units in common, by what it is without each group.

    A jackknife of the difference itself: what both sides have in common cancels.
    """
    groups = len(without)
    if groups < 2:
        return math.nan
    error = math.sqrt((groups - 1) * float(np.var(without)))
    if not error > 0:  # nan, or no group of units differs
        return 1.0 if difference == 0 == error else math.nan
    return 2 * t_tail(abs(difference) / error, groups - 1)


def without_each(plan: Plan, states: Sequence[State], wanted: Sequence[bool]) -> list[Any]:
    """Return for each state that is wanted what all the others hold together, else ``None``."""
    rests: list[State | None] = [None] * len(states)

    def walk(start: int, stop: int, outside: State) -> None:
        if not any(wanted[start:stop]):
            return
        if stop - start == 1:
            rests[start] = outside
            return
        middle = (start + stop) // 2
        walk(start, middle, plan.merged(outside, states[middle:stop]))
        walk(middle, stop, plan.merged(outside, states[start:middle]))

    if states:
        walk(0, len(states), plan.start)
    return rests


def plain_limits(limits: ConfidenceInterval | None) -> tuple[float, float]:
    """Return both limits as floats, nan where there are none."""
    if limits is None:
        return math.nan, math.nan
    low, high = map(plain, limits)
    return float(low), float(high)


class Slice:
    """One slice that was read; its state is made where it is asked for."""

    __slots__ = ("_made", "_state", "columns", "n_rows", "parts")

    def __init__(
        self,
        columns: tuple[str, ...],
        parts: tuple[Part, ...] | None,
        n_rows: int,
        state: Callable[[], State],
    ) -> None:
        self.columns, self.parts, self.n_rows, self._state = columns, parts, n_rows, state
        self._made: State | None = None

    @property
    def state(self) -> State:
        """The state of its rows."""
        if self._made is None:
            self._made = self._state()
        return self._made

    @property
    def title(self) -> str:
        """What it is called."""
        return named(self.columns, self.parts)

    def measured(
        self,
        name: str,
        metric: Metric,
        level: float | None,
        without: Sequence[State] | None = None,
    ) -> Measured:
        """Return the value and the limits of a metric, of units where it is known without them."""
        return measured(name, metric, self.title, self.n_rows, self.state, level, without)

    def beside(self, name: str, metric: Metric, rest: State, level: float | None) -> Measured:
        """Return the value and the limits of a metric for all other rows."""
        return measured(name, metric, f"all but {self.title}", 0, rest, level)
