"""Logistic regression of labels on the logits of probabilities, fitted to histogram cells."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core.columns.logits import sigmoid
from streammetrics.statistics.scores.losses import EPSILON

if TYPE_CHECKING:
    from collections.abc import Callable

    from streammetrics.core.types import Floats
    from streammetrics.metrics.scores.view import Staircase


_FURTHEST = math.log((1 - EPSILON) / EPSILON)  # the largest logit of a clipped probability
_STEPS = 200
_CLOSE = 1e-13  # relative: a fit has converged when it changes by less


class LogitCells(NamedTuple):
    """Cells (m,): the range of their logits, and the weights of positives and of all rows."""

    low: Floats
    high: Floats
    positives: Floats
    rows: Floats

    @property
    def middle(self) -> Floats:
        """The midpoint of each cell."""
        return np.where(self.low == self.high, self.low, (self.low + self.high) / 2)


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
        (_logits(stairs, each.low), _logits(stairs, each.high), each.p, each.p + each.n)
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
    positives, rows = cells.positives.sum(), cells.rows.sum()
    if not 0 < positives < rows or positives / rows == 0:
        return Fit.none()  # one class weighs so little that float64 loses it beside the other
    coefficient = fit(cells.middle, cells)
    return coefficient._replace(moved=coefficient.moved * stairs.one)


def slope_of(logits: Floats, cells: LogitCells) -> Fit:
    """Return the slope, by Newton's method."""
    ones, zeros = logits[cells.positives > 0], logits[cells.rows > cells.positives]
    if ones.min() >= zeros.max() or zeros.min() >= ones.max():
        return Fit.none()  # a score separates the classes: the likelihood has no maximum
    centre = (logits * cells.rows).sum() / cells.rows.sum()
    z = logits - centre
    at, b, best = 0.0, 0.0, -math.inf
    step = np.zeros(2)
    for _ in range(_STEPS):
        eta = at + b * z
        likelihood = (cells.positives * eta - cells.rows * np.logaddexp(0.0, eta)).sum()
        if likelihood < best + _CLOSE * best:  # the step was too long; the likelihood is negative
            step /= 2
            at, b = at - step[0], b - step[1]
            continue
        best, p = likelihood, sigmoid(eta)
        left, weight = cells.positives - cells.rows * p, cells.rows * p * (1 - p)
        h00, h01, h11 = weight.sum(), (weight * z).sum(), (weight * z * z).sum()
        determinant = h00 * h11 - h01 * h01
        if not determinant > 0:
            return Fit.none()  # weights differ so much that float64 sees a single logit
        g0, g1 = left.sum(), (left * z).sum()
        step = np.array([h11 * g0 - h01 * g1, h00 * g1 - h01 * g0]) / determinant
        at, b = at + step[0], b + step[1]
        if np.abs(step).max() <= _CLOSE * (1 + abs(at) + abs(b)):
            break
    moved = (h00 * z - h01) / determinant
    return Fit(float(b), math.sqrt(h00 / determinant), p, moved)


def intercept_of(logits: Floats, cells: LogitCells) -> Fit:
    """Return the intercept at slope 1, by Newton's method within a shrinking bracket."""
    # At the ends of this bracket the expected positives are at most, and at least, those wanted.
    wanted = cells.positives.sum()
    mean = math.log(wanted / (cells.rows.sum() - wanted))
    low, high = mean - logits.max(), mean - logits.min()
    a = min(max(0.0, low), high)
    for _ in range(_STEPS):
        p = sigmoid(a + logits)
        excess, slope = (cells.rows * p).sum() - wanted, (cells.rows * p * (1 - p)).sum()
        low, high = (low, a) if excess > 0 else (a, high)
        newton = a - excess / slope if slope > 0 else math.inf
        ahead = newton if low < newton < high else (low + high) / 2
        if abs(ahead - a) <= _CLOSE * (1 + abs(a)):
            break
        a = ahead
    return Fit(float(a), 1 / math.sqrt(slope), p, np.full_like(p, 1 / slope))
