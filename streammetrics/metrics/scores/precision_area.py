"""Areas under the precision-recall curve, by steps and by trapezoids."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.metrics.families import Family
from streammetrics.metrics.scores.base import ClassScoreMetric, middle_of
from streammetrics.metrics.scores.curves import (
    PrecisionRecallCurve,
    pr_points,
)

if TYPE_CHECKING:
    from streammetrics.core.types import Array, Floats
    from streammetrics.metrics.scores.view import Staircase, Steps


__all__ = ["PRAUC", "AveragePrecision"]


class _Heights(Protocol):
    """How precision, the height of the curve, runs through each cell."""

    def _tied(self, steps: Steps) -> Floats:
        """Return the mean precision over a cell of one score."""

    def _least(self, steps: Steps, row: float) -> Floats:
        """Return the smallest mean precision over a cell, where a row weighs at least `row`."""

    def _most(self, steps: Steps) -> Floats:
        """Return the largest mean precision over a cell."""


def _precision_area(heights: _Heights, stairs: Staircase) -> tuple[float, float, float]:
    """Return a lower bound, an estimate and an upper bound of the area over recall.

    Each is a sum over cells of the positives times a precision, divided by all positives.
    """
    if not stairs.positives:
        return math.nan, math.nan, math.nan
    # In the unit of the positives, products with small precisions are no smaller than the area.
    unit = math.ldexp(1.0, -math.frexp(stairs.positives)[1])
    certain: ExactSum | None = None  # over cells of one score
    sums: list[ExactSum] = []  # over other cells: least, estimate, most
    for steps in stairs.steps():
        positives = steps.p * unit
        tied = positives * heights._tied(steps)
        if steps.single.all():
            part = ExactSum.of(tied[tied > 0])
            certain = part if certain is None else certain + part
            continue
        least, most = heights._least(steps, stairs.least), heights._most(steps)
        guess = np.clip(_halfway(steps, stairs.least), least, most)
        each = [np.where(steps.single, tied, positives * height) for height in (least, guess, most)]
        before = sums or [ExactSum.zero()] * 3
        sums = [total + ExactSum.of(part) for total, part in zip(before, each, strict=True)]
    if certain is not None:
        sums = [certain + total for total in sums] or [certain]
    values = [min(float(total.to_float()) / (stairs.positives * unit), 1.0) for total in sums]
    return values[0], values[len(values) // 2], values[-1]


def _halfway(steps: Steps, row: float) -> Floats:
    """Return the precision halfway through cells, as if their rows were well mixed."""
    return _precision(steps.tp_above + (steps.p + row) / 2, steps.fp_above + steps.n / 2)


def _precision(tp: Array, fp: Array) -> Floats:
    """Return tp / (tp + fp), and 1 where nothing is predicted positive."""
    called = tp + fp
    if called.all():
        return np.asarray(tp / called)
    precision = np.ones(called.shape)
    np.divide(tp, called, out=precision, where=called > 0)
    return precision


class AveragePrecision(ClassScoreMetric):
    """Average precision: the area under the precision-recall curve, as a sum of steps.

    Formula: Σ_i (R_i - R_(i-1)) P_i, with recall R and precision P at the i-th highest threshold.

    For a cell of several scores, let p and n be its positives and negatives, and T and F the true
    and false positives above it. With its positives first and tied, it adds the most to the sum:
    p (T + p) / (T + p + F). With its negatives first and its positives one by one, it adds at
    least p (f(r) + f(p)) / 2, where f(t) = (T + t) / (T + t + F + n) and no row weighs less than r
    (1 if all weights are whole numbers, else 0). `compute()` assumes that its rows are well mixed.
    ``nan`` without positives.

    Parameters are those of `ClassScoreMetric`.

    Memory and cost: that of a `ScoreHistogram`; `compute` takes about 10 ns per cell.

    Reference: ``sklearn.metrics.average_precision_score``.

    Example:
        >>> import streammetrics as sm
        >>> sm.AveragePrecision().update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).compute()
        0.8333333333333333
    """

    higher_is_better = True
    value_range = (0.0, 1.0)
    family = Family.AVERAGE_PRECISION

    _curve = staticmethod(pr_points)
    _pictured_by = PrecisionRecallCurve

    certain = _precision_area
    read = middle_of(_precision_area)

    def _tied(self, steps: Steps) -> Floats:
        """Return the precision at the threshold of the cell, which all its positives have."""
        return _precision(steps.tp, steps.fp)

    def _least(self, steps: Steps, row: float) -> Floats:
        """Return the mean of the first and the last precision, as precision is concave between."""
        first = _precision(steps.tp_above + row, steps.fp)
        return (first + _precision(steps.tp, steps.fp)) / 2

    def _most(self, steps: Steps) -> Floats:
        """Return the precision of all positives of the cell together, before its negatives."""
        return _precision(steps.tp, steps.fp_above)


class PRAUC(ClassScoreMetric):
    """Area under the precision-recall curve by the trapezoidal rule, from (recall 0, precision 1).

    Formula: Σ_i (R_i - R_(i-1)) (P_i + P_(i-1)) / 2, with recall R and precision P at the i-th
    highest threshold.

    Linear interpolation between points of this curve is too optimistic; `AveragePrecision` avoids
    it. For a cell of several scores, let p and n be its positives and negatives, and T and F the
    true and false positives above it. It adds at most the area with its positives first,
    p - F ln((T + p + F) / (T + F)), and at least the trapezoid with its negatives first,
    p (T / (T + F + n) + (T + p) / (T + p + F + n)) / 2. `compute()` assumes that its rows are well
    mixed. ``nan`` without positives.

    Parameters are those of `ClassScoreMetric`.

    Memory and cost: that of a `ScoreHistogram`; `compute` takes about 10 ns per cell.

    Reference: ``sklearn.metrics.auc(recall, precision)`` of ``precision_recall_curve``.

    Example:
        >>> import streammetrics as sm
        >>> sm.PRAUC().update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).compute()
        0.7916666666666666
    """

    higher_is_better = True
    value_range = (0.0, 1.0)
    family = Family.PR_AREA

    _curve = staticmethod(pr_points)
    _pictured_by = PrecisionRecallCurve

    certain = _precision_area
    read = middle_of(_precision_area)

    def _tied(self, steps: Steps) -> Floats:
        """Return the mean precision of the straight line through the cell."""
        before = _precision(steps.tp_above, steps.fp_above)
        return (before + _precision(steps.tp, steps.fp)) / 2

    def _least(self, steps: Steps, row: float) -> Floats:  # noqa: ARG002 - holds for any rows
        """Return that of the chord of the curve with negatives first, which is concave."""
        return (_precision(steps.tp_above, steps.fp) + _precision(steps.tp, steps.fp)) / 2

    def _most(self, steps: Steps) -> Floats:
        """Return that of the curve with positives first; all others lie below it."""
        above = np.asarray(steps.tp_above + steps.fp_above, np.float64)
        growth = np.zeros_like(above)
        np.divide(steps.p, above, out=growth, where=above > 0)
        below = np.zeros_like(above)
        np.divide(steps.fp_above * np.log1p(growth), steps.p, out=below, where=steps.p > 0)
        return 1.0 - below
