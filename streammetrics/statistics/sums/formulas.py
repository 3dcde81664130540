"""The loss of one row by its name, and of many elementwise, as the formula is in float64.

Integers beyond 2**53 are subtracted whole; where a loss divides by a number, or takes its logarithm
or power, that is of the nearest float64. Logarithms and powers are those of `elementary`, so that
the bits depend neither on how rows arrive nor on the processor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from streammetrics.core import elementary, tuning
from streammetrics.core.columns.long import nearest
from streammetrics.core.counting import extent
from streammetrics.statistics.sums.deviances import tweedie_deviance
from streammetrics.statistics.sums.precise import log_terms, power_terms, y_log_terms

if TYPE_CHECKING:
    from collections.abc import Callable

    from streammetrics.core.columns.long import LongNumbers
    from streammetrics.core.types import Bools, Floats


LossName: TypeAlias = Literal[
    "absolute",
    "squared",
    "magnitude",
    "absolute_and_magnitude",
    "percentage",
    "symmetric_percentage",
    "squared_log",
    "pinball",
    "huber",
    "log_cosh",
    "tweedie",
    "tweedie_target",
    "power",
]
_EPSILON = float(np.finfo(np.float64).eps)
_SMALLEST = 5e-324
NORMAL = float(np.finfo(np.float64).tiny)
_TAME = 2.0**500  # squares of what is below are far from overflow
_FAR = 20.0  # log cosh d is d - log 2 from here on, to the last bit
quiet = np.errstate(all="ignore")  # what overflows has been refused, or is mended


class Loss(NamedTuple):
    """One row's loss of target and prediction, given a parameter."""

    terms: Callable[[Floats, Floats, float], Any]
    bounded: bool = True  # finite wherever the difference of target and prediction is
    root: Callable[[Floats, Floats, float], Floats] | None = None  # what the terms are squares of
    # What the terms are squares of up to rounding: so they are summed beyond the normal floats.
    rough_root: Callable[[Floats, Floats, float], Floats] | None = None
    signed: bool = False  # can be negative, if only as earlier versions rounded it
    long: bool = False  # terms are `LongNumbers`, of whose sums a small difference is read


def _absolute(y: Floats, p: Floats, _: float) -> Floats:
    d = y - p
    return np.abs(d, out=d)


def _square(d: Floats) -> Floats:
    if d.size <= tuning.FEW_ROWS:  # to look costs less than to ask for the processor's flags
        low, high = extent(d)
        if -_TAME < low <= high < _TAME:
            squares = d * d
            if squares.item(squares.argmin()) >= NORMAL:
                return squares
    # The processor's flags cost nothing: a square below the normal floats that is exact sets none.
    with np.errstate(over="raise", under="raise"):
        return np.multiply(d, d, out=d)


def _squared(y: Floats, p: Floats, _: float) -> Floats:
    return _square(y - p)


def _magnitude(y: Floats, _p: Floats, _: float) -> Floats:
    return abs(y)


@quiet
def _absolute_and_magnitude(y: Floats, p: Floats, _: float) -> Floats:
    d = _absolute(y, p, 0.0)
    return np.add(d, np.abs(nearest(y)), out=d)


def _percentage(y: Floats, p: Floats, _: float) -> Floats:
    d = _absolute(y, p, 0.0)
    return np.divide(d, np.maximum(np.abs(nearest(y)), _EPSILON), out=d)


@quiet
def _symmetric_percentage(y: Floats, p: Floats, _: float) -> Floats:
    d = _absolute(y, p, 0.0)
    y, p = nearest(y), nearest(p)
    size = np.abs(y)
    size += np.abs(p)
    if np.isinf(size.max()):
        # |y| + |p| overflows: there, and only there, the ratio is taken of quarters, which are
        # exact for numbers of that size.
        far = np.isinf(size)
        d[far] /= 4
        size[far] = np.abs(y[far]) / 4 + np.abs(p[far]) / 4
    np.maximum(size, _SMALLEST, out=size)  # 0 / 0 is a loss of 0
    np.divide(d, size, out=d)
    return np.multiply(d, 2, out=d)


def _squared_log(y: Floats, p: Floats, _: float) -> Floats:
    return _square(_absolute_log(y, p, 0.0))


@quiet
def _absolute_log(y: Floats, p: Floats, _: float) -> Floats:
    """Return |log((1 + y) / (1 + p))|, without a difference of nearly equal logarithms."""
    d = _absolute(y, p, 0.0)
    y, p = nearest(y), nearest(p)
    d /= 1 + np.minimum(y, p)
    return elementary.log1p(d, out=d)


@quiet
def _pinball(y: Floats, p: Floats, alpha: float) -> Floats:
    d = y - p
    below = d * (alpha - 1)
    return np.maximum(np.multiply(d, alpha, out=d), below, out=d)


@quiet
def _huber(y: Floats, p: Floats, delta: float) -> Floats:
    d = _absolute(y, p, 0.0)
    near = np.minimum(d, delta)
    d -= near / 2
    return np.multiply(d, near, out=d)


@quiet
def _log_cosh(y: Floats, p: Floats, _: float) -> Floats:
    # log cosh d = log1p(E**2 / (2 E + 2)) with E = exp(d) - 1, which keeps its digits near 0.
    d = _absolute(y, p, 0.0)
    near = np.minimum(d, _FAR)
    d -= near
    elementary.expm1(near, out=near)
    near *= near / (2 * near + 2)
    d += elementary.log1p(near, out=near)
    return d


def _tweedie(y: Floats, p: Floats, power: float) -> Floats:
    return tweedie_deviance(nearest(y), nearest(p), power)


def _tweedie_target(y: Floats, _p: Floats, power: float) -> LongNumbers:
    """What of the deviance does not depend on the prediction, or is taken with its mean."""
    y = nearest(y)
    if power == 1:
        return y_log_terms(y)
    if power == 2:
        return log_terms(y)
    return power_terms(y, 2 - power, (1 - power) * (2 - power))


@quiet
def _power(y: Floats, p: Floats, order: float) -> Floats:
    d = _absolute(y, p, 0.0)
    powers = elementary.power(d, order)
    low, high = extent(powers)
    if not (low >= NORMAL and high < np.inf) and not (_are_normal(powers) | (d == 0)).all():
        raise FloatingPointError("a power is beyond the normal floats")
    return powers


@quiet
def _half_power(y: Floats, p: Floats, order: float) -> Floats:
    """Return |y - p|**(order / 2), above 0 wherever the difference is."""
    d = _absolute(y, p, 0.0)
    return np.maximum(elementary.power(d, order / 2), np.where(d > 0, _SMALLEST, 0.0))


def _are_normal(terms: Floats) -> Bools:
    normal: Bools = (terms >= NORMAL) & (terms < np.inf)
    return normal


LOSSES: dict[str, Loss] = {
    "absolute": Loss(_absolute),
    "squared": Loss(_squared, root=_absolute),
    "magnitude": Loss(_magnitude),
    "absolute_and_magnitude": Loss(_absolute_and_magnitude, bounded=False),
    "percentage": Loss(_percentage, bounded=False),
    "symmetric_percentage": Loss(_symmetric_percentage),
    "squared_log": Loss(_squared_log, root=_absolute_log),
    "pinball": Loss(_pinball),
    "huber": Loss(_huber, bounded=False),
    "log_cosh": Loss(_log_cosh),
    "tweedie": Loss(_tweedie, bounded=False, signed=True),
    "tweedie_target": Loss(_tweedie_target, bounded=False, signed=True, long=True),
    "power": Loss(_power, bounded=False, rough_root=_half_power),
}


def squared_losses(loss: str, y: Floats, p: Floats) -> Floats:
    """Return losses that are squares, infinite beyond float64."""
    d = squared_of(loss, y, p)
    return d * d


@quiet
def parts_of(loss: str, parameter: float, y: Floats, p: Floats) -> tuple[Floats, Floats]:
    """Return the losses of rows that are normal floats, and what those of others are squares of."""
    if loss == "power":
        root = _half_power(y, p, parameter)
        terms = elementary.power(_absolute(y, p, 0.0), parameter)
    else:
        root = squared_of(loss, y, p)
        terms = root * root
    normal = _are_normal(terms)
    return np.where(normal, terms, 0.0), np.where(normal, 0.0, root)


def squared_of(loss: str, y: Floats, p: Floats) -> Floats:
    """Return what a loss that is a square is the square of."""
    return _absolute_log(y, p, 0.0) if loss == "squared_log" else y - p
