"""One metric of one slice with its limits, and significance tests against other rows.

Two kinds of limits are kept apart: certain limits of the exact value for these rows (`certain`),
and confidence limits for the population that the rows are sampled from (`confidence`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.errors import NoConfidenceError, undefined_expected
from streammetrics.core.floating import own_arithmetic
from streammetrics.core.results.values import Interval, plain
from streammetrics.inference.distributions import margin, normal_quantile, normal_tail, t_tail
from streammetrics.inference.tables import Readings
from streammetrics.inference.units import limits_by_unit
from streammetrics.slices.table import named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from streammetrics.core.confidence import ConfidenceInterval
    from streammetrics.core.feeding.states import State
    from streammetrics.core.metric import Metric
    from streammetrics.core.statistic import Statistic
    from streammetrics.statistics.keys import Part


@dataclass(frozen=True)
class Measured:
    """The value of a metric in a slice, with certain limits and confidence limits."""

    title: str
    n_rows: int
    value: float
    certain: Interval
    confidence: ConfidenceInterval | None


def value_of(name: str, metric: Metric, state: State) -> float:
    """Return the value of a metric at a state.

    Raises:
        ValueError: The value is not one number.
    """
    with own_arithmetic():
        value, _ = metric._judged(*metric._chosen(state))
    return number_of(name, value)


def number_of(name: str, value: object) -> float:
    """Return a value as a float; raise `ValueError` if it is not one number."""
    if not isinstance(value, int | float | np.number):
        raise ValueError(  # noqa: TRY004 - the cause is a parameter of the metric
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
    without: Iterable[State] | None = None,
) -> Measured:
    """Read one metric of one slice.

    Confidence limits are those of a sample of rows. If `without`, the slice's states without each
    group of units, is given, they are those of a sample of units.

    Raises:
        ValueError: The value is not one number.
        NoConfidenceError: The metric has no confidence limits although a level is given.
    """
    value = value_of(name, metric, state)
    with own_arithmetic():
        certain = metric.interval(*metric._chosen(state))
    limits = None
    if level is not None and without is not None:
        (limits,) = limits_by_unit([metric], state, without, level)
    elif level is not None:
        limits = _limits(name, metric, metric._n_rows(state), metric._chosen(state), level)
    return Measured(title, n_rows, value, certain, limits)


def _limits(
    name: str, metric: Metric, n_rows: int, statistics: Sequence[Statistic], level: float
) -> ConfidenceInterval:
    try:
        with undefined_expected():
            return metric._limits(n_rows, statistics, level)
    except NoConfidenceError as error:
        raise NoConfidenceError(
            f"{name!r}: {error}; confidence=None goes by the values alone"
        ) from None


def reading(
    name: str, metric: Metric, n_rows: int, statistics: Sequence[Statistic], level: float
) -> tuple[float, float, float]:
    """Return the value and the confidence limits at statistics of `n_rows` rows."""
    with own_arithmetic():
        value = number_of(name, metric._judged(*statistics)[0])
    return (value, *plain_limits(_limits(name, metric, n_rows, statistics, level)))


def readings(every: Sequence[tuple[float, float, float]]) -> Readings:
    """Return several readings as arrays."""
    return Readings(*np.array(every, np.float64).reshape(-1, 3).T)


def p_values(one: Readings, rest: Readings, level: float) -> list[float]:
    """Return two-sided p-values of the differences between pairs of independent samples.

    The variance of each side is derived from its limit in the direction of the other side.
    """
    difference = np.subtract(one.value, rest.value)
    spread = np.array(margin(one.value, one.low, rest.value, rest.high))
    np.copyto(spread, margin(rest.value, rest.low, one.value, one.high), where=difference < 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.abs(difference) / spread * normal_quantile((1 + level) / 2)
    z[(difference == 0.0) & (spread == 0.0)] = 0.0  # equal values without any uncertainty
    return [2 * normal_tail(each) for each in z.tolist()]


def p_by_unit(difference: float, without: Sequence[float]) -> float:
    """Return the p-value of a difference between samples that share units.

    `without` has the difference without each group of units. The jackknife is applied to the
    difference itself, so that shared variation cancels.
    """
    groups = len(without)
    if groups < 2:
        return math.nan
    error = math.sqrt((groups - 1) * float(np.var(without)))
    if not error > 0:  # nan, or the same difference without any group
        return 1.0 if difference == 0 == error else math.nan
    return 2 * t_tail(abs(difference) / error, groups - 1)


def plain_limits(limits: ConfidenceInterval | None) -> tuple[float, float]:
    """Return both limits as floats, nan if there are none."""
    if limits is None:
        return math.nan, math.nan
    low, high = map(plain, limits)
    return float(low), float(high)


class Slice:
    """One slice; its state is built on first access."""

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
        """The state of the slice's rows."""
        if self._made is None:
            self._made = self._state()
        return self._made

    def parted(self, part: Callable[[State], State]) -> Slice:
        """Return the slice with a part of its statistics."""
        return Slice(self.columns, self.parts, self.n_rows, lambda: part(self.state))

    @property
    def title(self) -> str:
        """The name of the slice."""
        return named(self.columns, self.parts)

    def measured(
        self,
        name: str,
        metric: Metric,
        level: float | None,
        without: Iterable[State] | None = None,
    ) -> Measured:
        """Return the value and limits of a metric, by unit if `without` is given."""
        return measured(name, metric, self.title, self.n_rows, self.state, level, without)

    def beside(self, name: str, metric: Metric, rest: State, level: float | None) -> Measured:
        """Return the value and limits of a metric for all other rows."""
        return measured(name, metric, f"all but {self.title}", 0, rest, level)
