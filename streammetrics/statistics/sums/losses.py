"""Sums of one row's loss: what every mean loss of regression reads.

Each loss is rounded elementwise, as the formula is evaluated in float64; the sum of the rounded
losses is exact. A square beyond the normal floats, on either side, is not rounded at all. Losses
are non-negative, so the sum is as accurate as its terms. Integers beyond 2**53 are subtracted
whole; where a loss divides by a number, or takes its logarithm or power, that is of the nearest
float64. Logarithms and powers are the platform's, taken on contiguous arrays: their bits do not
depend on how rows arrive.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.columns.batch import extent
from streammetrics.core.columns.long import nearest
from streammetrics.core.columns.numbers import Numbers
from streammetrics.core.exact.sums import ExactSum
from streammetrics.statistics.sums.moments import ExactSums
from streammetrics.statistics.sums.targets import PRED, TRUE, FiniteTerms, regression_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from streammetrics.core.columns.schema import Schema
    from streammetrics.core.statistic import Statistic
    from streammetrics.statistics.sums.targets import Extent

    Floats = NDArray[np.float64]

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
_NORMAL = float(np.finfo(np.float64).tiny)
_TAME = 2.0**500  # squares of what is below are far from overflow
_FAR = 20.0  # log cosh d is d - log 2 from here on, to the last bit
_ROOT = 2.0**511  # squares of what is below, and above its inverse, are normal floats
_ROOM = 1024.0  # corners of an extent are moved outwards by this when overflow is looked for


_quiet = np.errstate(all="ignore")  # what overflows has been refused, or is mended


class Loss(NamedTuple):
    """One row's loss of target and prediction, given a parameter."""

    terms: Callable[[Floats, Floats, float], Floats]
    bounded: bool = True  # finite wherever the difference of target and prediction is
    root: Callable[[Floats, Floats, float], Floats] | None = None  # what the terms are squares of


def _absolute(y: Floats, p: Floats, _: float) -> Floats:
    d = y - p
    return np.abs(d, out=d)


def _square(d: Floats) -> Floats:
    if d.size <= tuning.FEW_ROWS:  # to look costs less than to ask for the processor's flags
        low, high = extent(d)
        if -_TAME < low <= high < _TAME:
            squares = d * d
            if squares.item(squares.argmin()) >= _NORMAL:
                return squares
    # The processor's flags cost nothing: a square below the normal floats that is exact sets none.
    with np.errstate(over="raise", under="raise"):
        return np.multiply(d, d, out=d)


def _squared(y: Floats, p: Floats, _: float) -> Floats:
    return _square(y - p)


def _magnitude(y: Floats, _p: Floats, _: float) -> Floats:
    return abs(y)


@_quiet
def _absolute_and_magnitude(y: Floats, p: Floats, _: float) -> Floats:
    d = _absolute(y, p, 0.0)
    return np.add(d, np.abs(nearest(y)), out=d)


def _percentage(y: Floats, p: Floats, _: float) -> Floats:
    d = _absolute(y, p, 0.0)
    return np.divide(d, np.maximum(np.abs(nearest(y)), _EPSILON), out=d)


@_quiet
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
    return _square(_log_difference(y, p))


def _absolute_log(y: Floats, p: Floats, _: float) -> Floats:
    d = _log_difference(y, p)
    return np.abs(d, out=d)


@_quiet
def _log_difference(y: Floats, p: Floats) -> Floats:
    d = np.log1p(nearest(y))
    d -= np.log1p(nearest(p))
    return d


@_quiet
def _pinball(y: Floats, p: Floats, alpha: float) -> Floats:
    d = y - p
    below = d * (alpha - 1)
    return np.maximum(np.multiply(d, alpha, out=d), below, out=d)


@_quiet
def _huber(y: Floats, p: Floats, delta: float) -> Floats:
    d = _absolute(y, p, 0.0)
    near = np.minimum(d, delta)
    d -= near / 2
    return np.multiply(d, near, out=d)


@_quiet
def _log_cosh(y: Floats, p: Floats, _: float) -> Floats:
    # log cosh d = log1p(2 sinh(d / 2)**2), which keeps its digits near 0.
    d = _absolute(y, p, 0.0)
    near = np.minimum(d, _FAR)
    d -= near
    near /= 2
    np.sinh(near, out=near)
    near *= near
    near *= 2
    d += np.log1p(near, out=near)
    return d


@_quiet
def _tweedie(y: Floats, p: Floats, power: float) -> Floats:
    y, p = nearest(y), nearest(p)
    if power == 1:
        ratio = y / p
        logarithm = np.log(np.where(y > 0, ratio, 1.0))
        return 2 * (y * logarithm - y + p)
    if power == 2:
        return 2 * (np.log(p / y) + y / p - 1)
    positive = np.maximum(y, 0.0)
    return 2 * (
        np.power(positive, 2 - power) / ((1 - power) * (2 - power))
        - y * np.power(p, 1 - power) / (1 - power)
        + np.power(p, 2 - power) / (2 - power)
    )


@_quiet
def _tweedie_target(y: Floats, _p: Floats, power: float) -> Floats:
    """What of the deviance does not depend on the prediction, or is taken with its mean."""
    y = nearest(y)
    if power == 1:
        return y * np.log(np.where(y > 0, y, 1.0))
    if power == 2:
        return np.log(y)
    terms: Floats = np.power(np.maximum(y, 0.0), 2 - power) / ((1 - power) * (2 - power))
    return terms


@_quiet
def _power(y: Floats, p: Floats, order: float) -> Floats:
    d = _absolute(y, p, 0.0)
    return np.power(d, order, out=d)


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
    "tweedie": Loss(_tweedie, bounded=False),
    "tweedie_target": Loss(_tweedie_target, bounded=False),
    "power": Loss(_power, bounded=False),
}


@dataclass(frozen=True)
class FiniteLoss(FiniteTerms):
    """Refuses rows whose loss overflows."""

    loss: str = ""
    parameter: float = 0.0

    def fits(self, true: Extent, pred: Extent) -> bool:
        """Whether the loss is finite at the corners, which are moved well outwards.

        Each loss is a sum of a few terms monotone in either number on either side of 0.
        """
        corners = np.meshgrid(_corners(*true), _corners(*pred))
        with np.errstate(all="ignore"):
            return bool(np.isfinite(self.terms(*corners)).all())

    def terms(self, true: Floats, pred: Floats) -> Floats:
        """Return the losses."""
        return LOSSES[self.loss].terms(true, pred, self.parameter)

    def complaint(self) -> str:
        """Say that the loss overflows."""
        return "have a loss beyond float64"


def _corners(low: float, high: float) -> list[float]:
    corners = [low * _ROOM, low / _ROOM, high / _ROOM, high * _ROOM]
    return [*corners, 0.0] if low <= 0 <= high else corners


class LossSum(ExactSums):
    """The sum of a loss of every row, exact once each row's loss is rounded."""

    loss: LossName
    parameter: float = 0.0
    nan_policy: Literal["raise", "omit"] = "raise"

    @property
    def schema(self) -> Schema:
        """Targets and predictions in the domain of the loss."""
        if self.loss == "squared_log":
            sides = [Numbers(name, above=-1.0, wide=True, long=True) for name in (TRUE, PRED)]
            return regression_schema(self.nan_policy, true=sides[0], pred=sides[1])
        if LOSSES[self.loss].bounded:
            return regression_schema(self.nan_policy)
        finite = FiniteLoss(loss=self.loss, parameter=self.parameter)
        if not self.loss.startswith("tweedie"):
            return regression_schema(self.nan_policy, finite)
        positive = Numbers(PRED, above=0.0, wide=True, long=True)
        true = Numbers(TRUE, wide=True, long=True)
        if self.parameter >= 2:
            true = Numbers(TRUE, above=0.0, wide=True, long=True)
        elif self.parameter >= 1:
            true = Numbers(TRUE, low=0.0, wide=True, long=True)
        return regression_schema(self.nan_policy, finite, true=true, pred=positive)

    @property
    def names(self) -> tuple[str, ...]:
        """The one sum."""
        return ("loss",)

    def terms(self, y: Floats, p: Floats) -> Floats:
        """Return the loss of each row."""
        return LOSSES[self.loss].terms(y, p, self.parameter)

    def update(self, *columns: Any, weight: Floats | None) -> None:
        """Add the losses of the rows."""
        LossSum.update_among(self, (self,), {}, columns, weight)

    def update_among(
        self,
        peers: Sequence[Statistic],
        found: dict[Any, Any],
        columns: tuple[Any, ...],
        weight: Floats | None,
    ) -> None:
        """Add the losses of the rows, of which peers mostly read powers of the same terms."""
        loss = LOSSES[self.loss]
        of = loss.root or loss.terms, self.parameter
        if weight is None:
            if of not in found:
                found[of] = _powers_of(of, peers, columns)
            sums, low, high = found[of]
            if not loss.root or not high or (low > 1 / _ROOT and high < _ROOT):
                self.add_powers(columns, sums)
                return
        self.add_whole(columns, weight)

    @cached_property
    def exponents(self) -> tuple[int, ...]:
        """Which powers are summed of the terms, or of those that these are the squares of."""
        return (2,) if LOSSES[self.loss].root else (1,)

    def add_powers(self, columns: tuple[Any, ...], sums: Mapping[int, ExactSum]) -> None:
        """Add rows, of which these are the sums of powers."""
        self.add(columns, None, {"loss": sums[self.exponents[0]]})

    def add_whole(self, columns: tuple[Any, ...], weight: Floats | None) -> None:
        """Add rows that have weights, or squares beyond the normal floats."""
        self.add(columns, weight, self.lift(columns, weight))

    def lift(self, columns: tuple[Floats, ...], weight: Floats | None) -> dict[str, ExactSum]:
        """Return the sum of the losses of rows."""
        try:
            return {"loss": ExactSum.of_terms(self.terms, columns, weight)}
        except FloatingPointError:  # of a square
            y, p = columns
            return {"loss": _whole_squares(_squared_of(self.loss, y, p), weight)}


def _powers_of(
    of: tuple[Callable[..., Floats], float], peers: Sequence[Statistic], columns: tuple[Any, ...]
) -> tuple[dict[int, ExactSum], float, float]:
    """Return the sums of all powers that peers read of some terms, in one pass, and extremes."""
    terms, parameter = of
    powers: set[int] = set()
    for peer in peers:
        if isinstance(peer, LossSum) and peer.parameter == parameter:
            loss = LOSSES[peer.loss]
            if terms is (loss.root or loss.terms):
                powers.update(peer.exponents)
    return ExactSum.of_powers(lambda y, p: terms(y, p, parameter), columns, powers)


def squared_losses(loss: str, y: Floats, p: Floats) -> Floats:
    """Return losses that are squares, infinite beyond float64."""
    d = _squared_of(loss, y, p)
    return d * d


def _squared_of(loss: str, y: Floats, p: Floats) -> Floats:
    return _log_difference(y, p) if loss == "squared_log" else y - p


@_quiet
def _whole_squares(d: Floats, weight: Floats | None) -> ExactSum:
    """Return the sum of squares, rounded where they are normal floats, else exact products."""
    squares = d * d
    normal = (squares >= _NORMAL) & (squares < np.inf)
    rounded, others = np.where(normal, squares, 0.0), np.where(normal, 0.0, d)
    return ExactSum.of(rounded, weight) + ExactSum.product(others, others, weight)
