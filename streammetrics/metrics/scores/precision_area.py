"""Areas under the precision-recall curve, by steps and by trapezoids."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

import numpy as np

from streammetrics.core.exact.sums import ExactSum
from streammetrics.metrics.scores.base import ClassScoreMetric, best_guess
from streammetrics.metrics.scores.curves import (
    PrecisionRecallCurve,
    pr_points,
)

if TYPE_CHECKING:
    from streammetrics.core.types import Array, Floats
    from streammetrics.metrics.scores.view import Staircase, Steps


__all__ = ["PRAUC", "AveragePrecision"]


class _Heights(Protocol):
    """How high the area over recall is in each cell."""

    def _tied(self, steps: Steps) -> Floats:
        """Return the height over recall of cells of one score."""

    def _least(self, steps: Steps, row: float) -> Floats:
        """Return the least mean height of cells of several, where a row weighs at least `row`."""

    def _most(self, steps: Steps) -> Floats:
        """Return the largest mean height that they may have."""


def _precision_area(heights: _Heights, stairs: Staircase) -> tuple[float, float, float]:
    """Return the area over recall with the least, the best guess and the most of each cell.

    It is a sum over cells of bounded terms, divided by the positives.
    """
    if not stairs.positives:
        return math.nan, math.nan, math.nan
    certain: ExactSum | None = None  # of tied rows
    sums: list[ExactSum] = []  # of the three heights
    for steps in stairs.steps():
        tied = steps.p * heights._tied(steps)
        if steps.single.all():
            part = ExactSum.of(tied[tied > 0])
            certain = part if certain is None else certain + part
            continue
        least, most = heights._least(steps, stairs.least), heights._most(steps)
        guess = np.clip(_halfway(steps, stairs.least), least, most)
        each = [np.where(steps.single, tied, steps.p * height) for height in (least, guess, most)]
        before = sums or [ExactSum.zero()] * 3
        sums = [total + ExactSum.of(part) for total, part in zip(before, each, strict=True)]
    if certain is not None:
        sums = [certain + total for total in sums] or [certain]
    values = [_share(total, stairs) for total in sums]
    return values[0], values[len(values) // 2], values[-1]


def _share(total: ExactSum, stairs: Staircase) -> float:
    """Return what a sum over the positives is of each, but for the rounding of its terms."""
    return min(float(total.to_float()) / stairs.positives, 1.0)


def _halfway(steps: Steps, row: float) -> Floats:
    """Return the precision halfway through cells whose rows are well mixed."""
    return _precision(steps.tp_above + (steps.p + row) / 2, steps.fp_above + steps.n / 2)


def _precision(tp: Array, fp: Array) -> Floats:
    """Return tp / (tp + fp), and 1 where nothing is called positive."""
    called = tp + fp
    if called.all():
        return np.asarray(tp / called)
    precision = np.ones(called.shape)
    np.divide(tp, called, out=precision, where=called > 0)
    return precision


class AveragePrecision(ClassScoreMetric):
    """Area under the precision-recall curve by steps.

    Formula: Σ_i (R_i - R_(i-1)) P_i, with recall R and precision P at the i-th highest threshold.

    A cell of several scores adds at most what it would with its positives first and tied,
    p (T + p) / (T + p + F), and at least what it would with its negatives first and its positives
    one by one: p (f(r) + f(p)) / 2 with f(t) = (T + t) / (T + t + F + n), where no row weighs less
    than r (1 if all weights are whole numbers, else 0). `compute()` takes its rows as well mixed.
    ``nan`` without a positive.

    Parameters are those of `ClassScoreMetric`.

    Memory and cost: that of a `ScoreHistogram`; `compute` takes about 10 ns per cell.

    Reference: ``sklearn.metrics.average_precision_score``.

    Example:
        >>> import streammetrics as sm
        >>> sm.AveragePrecision().update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).compute()
        0.8333333333333333
    """

    _curve = staticmethod(pr_points)
    _pictured_by = PrecisionRecallCurve

    read, certain = best_guess, _precision_area

    def _tied(self, steps: Steps) -> Floats:
        """Every positive has the precision at the threshold of the cell."""
        return _precision(steps.tp, steps.fp)

    def _least(self, steps: Steps, row: float) -> Floats:
        """Precision is concave in the positives passed: the mean of its ends is below its mean."""
        first = _precision(steps.tp_above + row, steps.fp)
        return (first + _precision(steps.tp, steps.fp)) / 2

    def _most(self, steps: Steps) -> Floats:
        """Every positive comes with all others and before the negatives."""
        return _precision(steps.tp, steps.fp_above)


class PRAUC(ClassScoreMetric):
    """Area under the precision-recall curve by trapezoids, from (recall 0, precision 1).

    Formula: Σ_i (R_i - R_(i-1)) (P_i + P_(i-1)) / 2, with recall R and precision P at the i-th
    highest threshold.

    A straight line between points of this curve is too optimistic; `AveragePrecision` is not. A
    cell of several scores adds at most the area below the concave curve of positives first,
    p - F ln((T + p + F) / (T + F)), and at least the trapezoid of negatives first,
    p (T / (T + F + n) + (T + p) / (T + p + F + n)) / 2. `compute()` takes its rows as well mixed.
    ``nan`` without a positive.

    Parameters are those of `ClassScoreMetric`.

    Memory and cost: that of a `ScoreHistogram`; `compute` takes about 10 ns per cell.

    Reference: ``sklearn.metrics.auc(recall, precision)`` of ``precision_recall_curve``.

    Example:
        >>> import streammetrics as sm
        >>> sm.PRAUC().update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).compute()
        0.7916666666666666
    """

    _curve = staticmethod(pr_points)
    _pictured_by = PrecisionRecallCurve

    read, certain = best_guess, _precision_area

    def _tied(self, steps: Steps) -> Floats:
        """One line from the point before the cell to the point after it."""
        before = _precision(steps.tp_above, steps.fp_above)
        return (before + _precision(steps.tp, steps.fp)) / 2

    def _least(self, steps: Steps, row: float) -> Floats:  # noqa: ARG002 - holds for any rows
        """All points lie above the chord of the concave curve of negatives first."""
        return (_precision(steps.tp_above, steps.fp) + _precision(steps.tp, steps.fp)) / 2

    def _most(self, steps: Steps) -> Floats:
        """All points, and so the lines between them, lie below that of positives first."""
        above = np.asarray(steps.tp_above + steps.fp_above, np.float64)
        growth = np.zeros_like(above)
        np.divide(steps.p, above, out=growth, where=above > 0)
        below = np.zeros_like(above)
        np.divide(steps.fp_above * np.log1p(growth), steps.p, out=below, where=steps.p > 0)
        return 1.0 - below
