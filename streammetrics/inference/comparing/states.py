"""Two states of different rows: what can be said where nothing is paired."""

from __future__ import annotations

import math
import os
import warnings
from typing import TYPE_CHECKING

from streammetrics.core.confidence import check_level
from streammetrics.core.errors import (
    IncompatibleMetricsError,
    NoConfidenceError,
    StreamMetricsError,
    UndefinedMetricWarning,
    an,
)
from streammetrics.core.metric import Metric
from streammetrics.core.metric_set import MetricSet
from streammetrics.core.results.differences import Difference, Differences
from streammetrics.core.stateful import load
from streammetrics.inference.comparing.base import LEAST, Estimate
from streammetrics.inference.comparing.comparison import Comparison
from streammetrics.inference.comparing.verdicts import verdict
from streammetrics.inference.distributions import normal_quantile, normal_tail
from streammetrics.inference.limits import margin

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streammetrics.core.confidence import ConfidenceInterval, Unit

__all__ = ["compare"]

UNPAIRED = "unpaired, weaker than paired"


def compare(
    a: Metric | MetricSet | str | os.PathLike[str],
    b: Metric | MetricSet | str | os.PathLike[str],
    *,
    confidence: float = 0.95,
    names: tuple[str, str] = ("a", "b"),
    unit: Unit = ...,
) -> Differences:
    """Return how two states differ that were fed with different rows.

    This is the weaker test: what rows have in common does not cancel out as it does where both
    models judge the same ones, which is what `Comparison` is for. It is the right one for two
    weeks, two groups of users, two halves of an A/B test.

    The limits of the difference are made of those of either value (`Metric.confidence`) by squares
    and sums (MOVER; Zou and Donner 2008), so they are as right as these are for small samples and
    values near their ends; p is that of a normal number with these limits.

    Args:
        a: A metric, a set, or the path of a saved state.
        b: Another one of the same metrics.
        confidence: The level of the limits; a difference is evidence where p is below
            ``1 - confidence``.
        names: How the two are called.
        unit: What is sampled: by default the `unit` of either set, if it has one; ``None``: rows.
            No unit may be in both sets, as no user is in both halves of an A/B test.

    Raises:
        IncompatibleMetricsError: They are not of the same metrics.
        ValueError: They do not keep that unit.
        StreamMetricsError: None of the metrics has confidence limits, see `Metric.confidence`.

    Example:
        >>> import streammetrics as sm
        >>> monday = sm.Accuracy().update([1] * 100, [1] * 90 + [0] * 10)
        >>> tuesday = sm.Accuracy().update([1] * 100, [1] * 75 + [0] * 25)
        >>> found = sm.compare(monday, tuesday, names=("monday", "tuesday"))
        >>> found[0].verdict, round(found[0].p, 4)
        ('monday better', 0.0052)
    """
    level = check_level(confidence)
    if len(names) != 2 or names[0] == names[1]:
        raise ValueError(f"names={names!r}: expected two different ones")
    states = _read(a), _read(b)
    one, other = map(_by_name, states)
    _check_same(one, other, names)
    lines, refused = [], []
    for name, metric in one.items():
        try:
            lines.append(_line(name, (metric, other[name]), names, level, unit))
        except NoConfidenceError as error:
            refused.append(f"{name!r}: {error}")
    if not lines:
        raise StreamMetricsError(f"none of the metrics can be compared: {'; '.join(refused)}")
    for reason in refused:
        warnings.warn(f"left out: {reason}", UndefinedMetricWarning, stacklevel=2)
    rows = {name: state.n_rows for name, state in zip(names, states, strict=True)}
    return Differences(lines, level, rows)


def _read(state: object) -> Metric | MetricSet:
    what = load(state) if isinstance(state, str | os.PathLike) else state
    if isinstance(what, Comparison) or not isinstance(what, Metric | MetricSet):
        raise TypeError(
            f"{an(type(what).__name__)} cannot be compared: pass metrics, sets or paths of such"
        )
    return what


def _by_name(what: Metric | MetricSet) -> Mapping[str, Metric]:
    return {type(what).__name__: what} if isinstance(what, Metric) else dict(what.items())


def _check_same(
    one: Mapping[str, Metric], other: Mapping[str, Metric], names: tuple[str, str]
) -> None:
    """Raise unless the metrics are the same; what columns they are read from does not matter."""
    for name in {**one, **other}:
        mine, theirs = one.get(name), other.get(name)
        if mine is None or theirs is None:
            has = names[0] if theirs is None else names[1]
            raise IncompatibleMetricsError(f"{name!r} is only in {has}, so they cannot be compared")
        if mine._key != theirs._key:
            raise IncompatibleMetricsError(
                f"{name!r} is {mine._titled()} in {names[0]} and {theirs._titled()} in {names[1]}, "
                "which cannot be compared"
            )


def _line(
    name: str,
    pair: tuple[Metric, Metric],
    names: tuple[str, str],
    level: float,
    unit: Unit,
) -> Difference:
    one, other = pair
    if not all(isinstance(metric.compute(), int | float) for metric in pair):
        raise NoConfidenceError(f"{one._titled()} is several numbers")
    values = float(one.compute()), float(other.compute())
    limits = [metric.confidence(level, unit=unit) for metric in pair]
    estimate = unpaired(limits, values, level)
    says = verdict(one, names, estimate.difference, estimate.p, 1 - level)
    return Difference(name, *names, *values, *estimate[:4], estimate.p, says, estimate.test)


def unpaired(
    limits: Sequence[ConfidenceInterval], values: tuple[float, float], level: float
) -> Estimate:
    """Return the difference of two independent values by the limits of either."""
    difference = values[0] - values[1]
    low, high = _apart(limits, values)
    if not (math.isfinite(difference) and math.isfinite(low) and math.isfinite(high)):
        return Estimate(difference, math.nan, math.nan, math.nan, UNPAIRED)
    # As of a normal number whose limits these are: at levels far beyond, the limits of few rows
    # themselves shrink too slowly, and would call rare what is not.
    side = difference - low if difference > 0 else high - difference
    z = abs(difference) / side * normal_quantile((1 + level) / 2) if side else math.inf
    p = min(1.0, max(2 * normal_tail(z), LEAST)) if difference else 1.0
    return Estimate(difference, low, high, p, UNPAIRED)


def _apart(
    limits: Sequence[ConfidenceInterval], values: tuple[float, float]
) -> tuple[float, float]:
    """Return the difference less and plus the root of the squares of what either may be off by."""
    (a_low, a_high), (b_low, b_high) = limits
    a, b = values
    difference = a - b
    below, above = margin(a, a_low, b, b_high), margin(b, b_low, a, a_high)
    return float(difference - below), float(difference + above)
