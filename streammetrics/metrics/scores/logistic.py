"""Logistic regression of labels on the logits of probabilities, fitted to histogram cells."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.columns.logits import sigmoid
from streammetrics.statistics.scores.losses import EPSILON

if TYPE_CHECKING:
    from collections.abc import Callable

    from streammetrics.core.types import Floats
    from streammetrics.metrics.scores.view import Staircase


_FURTHEST = math.log((1 - EPSILON) / EPSILON)  # the largest logit of a clipped probability
_STEPS = 200
_FARTHEST_STEP = 8.0  # of log odds: Newton's steps are too long where every cell is saturated
_CLOSE = 1e-13  # relative: a fit has converged when it changes by less


class LogitCells(NamedTuple):
    """Cells (m,): the range of their logits, and the weights of positives and of negatives."""

    low: Floats
    high: Floats
    positives: Floats
    negatives: Floats

    @property
    def rows(self) -> Floats:
        """The weight of all rows of each cell."""
        return self.positives + self.negatives

    @property
    def middle(self) -> Floats:
        """The midpoint of each cell."""
        return np.where(self.low == self.high, self.low, (self.low + self.high) / 2)


class _Expected(NamedTuple):
    """Cells at log odds eta: P = sigmoid(eta), and how many more positives there are than rows P.

    That difference is `small` plus `whole`. The first is rows times P or, where it is smaller,
    1 - P, which has all its digits; the second is whole rows. `weight` is rows P (1 - P).
    """

    share: Floats
    small: Floats
    whole: Floats
    weight: Floats

    @classmethod
    def of(cls, cells: LogitCells, eta: Floats) -> _Expected:
        """Return what is expected of cells at these log odds."""
        p, q, above = sigmoid(eta), sigmoid(-eta), eta > 0
        small = cells.rows * np.where(above, q, -p)
        whole = np.where(above, -cells.negatives, cells.positives)
        return cls(p, small, whole, cells.rows * p * q)

    def lacking(self, factor: Floats | float = 1.0) -> float:
        """Return the sum of positives minus those expected, each times a factor."""
        terms = np.concatenate([self.small * factor, self.whole * factor])
        return float(ExactSum.of(terms).to_float())


class Fit(NamedTuple):
    """A fitted coefficient, its standard error, and the influence of single rows.

    One more row of weight 1 in a cell changes the coefficient by `moved` times (y - `share`), where
    `share` is the fitted probability of the cell.
    """

    value: float
    error: float
    share: Floats
    moved: Floats

    @classmethod
    def none(cls) -> Fit:
        """Return the undefined fit: of a single class, or of classes that a score separates."""
        return cls(math.nan, math.nan, np.zeros(0), np.zeros(0))


def cells_of(stairs: Staircase) -> LogitCells:
    """Return the cells of one class."""
    blocks = [
        (_logits(stairs, each.low), _logits(stairs, each.high), each.p, each.n)
        for each in stairs.steps()
    ]
    if not blocks:
        return LogitCells(*(np.zeros(0) for _ in range(4)))
    return LogitCells(
        *(np.concatenate(side).astype(np.float64) for side in zip(*blocks, strict=True))
    )


def _logits(stairs: Staircase, scores: Floats) -> Floats:
    if stairs.logits:
        return np.clip(scores, -_FURTHEST, _FURTHEST)
    p = np.clip(scores, EPSILON, 1 - EPSILON)
    return np.log(p) - np.log1p(-p)


def fitted(stairs: Staircase, fit: Callable[[Floats, LogitCells], Fit]) -> Fit:
    """Return a coefficient with every cell at its midpoint."""
    cells = cells_of(stairs)
    positives, negatives = cells.positives.sum(), cells.negatives.sum()
    share = positives / ((positives + negatives) or 1.0)
    if not 0 < share < 1:
        return Fit.none()  # one class weighs so little that float64 loses it beside the other
    coefficient = fit(cells.middle, cells)
    return coefficient._replace(moved=coefficient.moved * stairs.one)


def slope_of(logits: Floats, cells: LogitCells) -> Fit:
    """Return the slope, by Newton's method."""
    ones, zeros = logits[cells.positives > 0], logits[cells.rows > cells.positives]
    if ones.min() >= zeros.max() or zeros.min() >= ones.max():
        return Fit.none()  # a score separates the classes: the likelihood has no maximum
    z = logits - (logits * cells.rows).sum() / cells.rows.sum()
    at, b, best = 0.0, 0.0, -math.inf
    step = np.zeros(2)
    for _ in range(_STEPS):
        eta = at + b * z
        lost = cells.positives * np.logaddexp(0.0, -eta) + cells.negatives * np.logaddexp(0.0, eta)
        likelihood = -lost.sum()
        if likelihood < best + _CLOSE * best:  # the step was too long; the likelihood is negative
            step /= 2
            at, b = at - step[0], b - step[1]
            continue
        best, expected = likelihood, _Expected.of(cells, eta)
        weight = expected.weight.sum()
        middle = (expected.weight * z).sum() / weight if weight > 0 else 0.0
        apart = z - middle
        spread = (expected.weight * apart * apart).sum()
        if not spread > 0:
            return Fit.none()  # weights differ so much that float64 sees a single logit
        steeper = expected.lacking(apart) / spread
        step = np.array([expected.lacking() / weight - middle * steeper, steeper])
        step /= max(1.0, np.abs(step[0] + step[1] * z).max() / _FARTHEST_STEP)
        at, b = at + step[0], b + step[1]
        if np.abs(step).max() <= _CLOSE * (1 + abs(at) + abs(b)):
            break
    return Fit(float(b), 1 / math.sqrt(spread), expected.share, apart / spread)


def intercept_of(logits: Floats, cells: LogitCells) -> Fit:
    """Return the intercept at slope 1, by Newton's method within a shrinking bracket."""
    # At the ends of this bracket the expected positives are at most, and at least, those wanted.
    mean = math.log(cells.positives.sum()) - math.log(cells.negatives.sum())
    low, high = mean - logits.max(), mean - logits.min()
    a = min(max(0.0, low), high)
    for _ in range(_STEPS):
        expected = _Expected.of(cells, a + logits)
        lacking, slope = expected.lacking(), expected.weight.sum()
        low, high = (low, a) if lacking < 0 else (a, high)
        newton = a + lacking / slope if slope > 0 else math.inf
        ahead = newton if low <= newton <= high else (low + high) / 2
        if abs(ahead - a) <= _CLOSE * (1 + abs(a)):
            break
        a = ahead
    return Fit(float(a), 1 / math.sqrt(slope), expected.share, np.full(logits.size, 1 / slope))
