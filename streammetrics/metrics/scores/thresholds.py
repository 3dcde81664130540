"""The best value over all thresholds, or over those at which another rate is high enough."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.constraints import Share
from streammetrics.metrics.families import Family
from streammetrics.metrics.scores.base import ClassScoreMetric
from streammetrics.metrics.scores.best import (
    certainly_highest,
    highest,
    lacks_a_class,
    lacks_positives,
)
from streammetrics.metrics.scores.curves import (
    PrecisionRecallCurve,
    ROCCurve,
    pr_points,
    roc_points,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from streammetrics.core.types import Array, Floats
    from streammetrics.metrics.scores.view import Staircase

    _Rate = Callable[[Staircase, Array, Array, Array], Floats]
    _Reached = Callable[[Any, Staircase, Array, Array, Array, float], tuple[Array, float]]

__all__ = [
    "KolmogorovSmirnov",
    "PrecisionAtRecall",
    "RecallAtPrecision",
    "SensitivityAtSpecificity",
    "SpecificityAtSensitivity",
]


class KolmogorovSmirnov(ClassScoreMetric):
    """Kolmogorov-Smirnov statistic: the largest distance between the classes' score distributions.

    Formula: max_t |TP / P - FP / N|, with P positives and N negatives.

    ``nan`` without rows of both classes.

    Parameters are those of `ClassScoreMetric`.

    Memory and cost: that of a `ScoreHistogram`; `compute` takes about 5 ns per cell.

    Reference: ``scipy.stats.ks_2samp(positives, negatives).statistic``.

    Example:
        >>> import streammetrics as sm
        >>> sm.KolmogorovSmirnov().update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).compute()
        0.5
    """

    higher_is_better = True
    value_range = (0.0, 1.0)
    family = Family.DISTANCE

    _curve = staticmethod(roc_points)
    _pictured_by = ROCCurve

    def read(self, stairs: Staircase) -> float:
        """Return the largest distance at an edge of cells."""
        return math.nan if self._undefined(stairs) else stairs.largest_gap()

    def certain(self, stairs: Staircase) -> tuple[float, float, float]:
        """Return the largest distance at edges of cells, twice, and at corners of cells."""
        value = self.read(stairs)
        return value, value, certainly_highest(self, stairs)[2]

    def _reached(
        self,
        stairs: Staircase,
        tp: Array,
        fp: Array,
        tn: Array,  # noqa: ARG002
        margin: float,  # noqa: ARG002
    ) -> tuple[Array, float]:
        """Return the distance times P N, an integer if rows are counted."""
        gaps = np.abs(tp * stairs.negatives - fp * stairs.positives)
        return gaps, stairs.positives * stairs.negatives

    _undefined = lacks_a_class


def _recall(stairs: Staircase, tp: Array, fp: Array, tn: Array) -> Floats:  # noqa: ARG001 - as others
    """Return the true positive rates, the sensitivities, at thresholds."""
    return tp / np.float64(stairs.positives)


def _specificity(stairs: Staircase, tp: Array, fp: Array, tn: Array) -> Floats:  # noqa: ARG001 - as others
    """Return the true negative rates."""
    return tn / np.float64(stairs.negatives)


def _precision(stairs: Staircase, tp: Array, fp: Array, tn: Array) -> Floats:  # noqa: ARG001 - as others
    """Return the precisions, 1 where nothing is found."""
    found = tp + fp
    rates = np.ones(found.size)
    np.divide(tp, found, out=rates, where=found > 0)
    return rates


def _where(value: _Rate, required: _Rate, parameter: str) -> _Reached:
    """Return what reads one rate where another is at least the metric's parameter, and else 0."""

    def reached(
        metric: ClassScoreMetric,
        stairs: Staircase,
        tp: Array,
        fp: Array,
        tn: Array,
        margin: float,
    ) -> tuple[Array, float]:
        least = min(getattr(metric, parameter) + margin, 1.0)
        enough = required(stairs, tp, fp, tn) >= least
        return np.where(enough, value(stairs, tp, fp, tn), 0.0), 1.0

    return reached


class RecallAtPrecision(ClassScoreMetric):
    """Recall at precision: the highest recall of any threshold with a precision of at least `p`.

    Formula: max_t (TP / P) where TP / (TP + FP) >= p

    0 where no threshold reaches the precision, which is compared as the float64 quotient
    TP / (TP + FP). ``nan`` without positives.

    The other parameters are those of `ClassScoreMetric`.

    Args:
        p: The required precision, in [0, 1].
        average: How the classes of (n, K) scores are averaged, as in `ClassScoreMetric`.

    Raises:
        ValueError: `p` is not in [0, 1].

    Memory and cost: that of a `ScoreHistogram`; `compute` takes about 5 ns per cell.

    Reference: the largest of ``recall[precision >= p]`` of
    ``sklearn.metrics.precision_recall_curve``.

    Example:
        >>> import streammetrics as sm
        >>> sm.RecallAtPrecision(p=0.9).update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).compute()
        0.5
    """

    higher_is_better = True
    value_range = (0.0, 1.0)
    family = Family.BEST_RATE

    p: Share

    _curve = staticmethod(pr_points)
    _pictured_by = PrecisionRecallCurve

    read, certain = highest, certainly_highest

    _reached = _where(_recall, _precision, "p")

    _undefined = lacks_positives


class PrecisionAtRecall(ClassScoreMetric):
    """Precision at recall: the highest precision of any threshold with a recall of at least `r`.

    Formula: max_t (TP / (TP + FP)) where TP / P >= r

    Recall is compared as the float64 quotient TP / P; the threshold above all scores has recall 0
    and precision 1. ``nan`` without positives.

    The other parameters are those of `ClassScoreMetric`.

    Args:
        r: The required recall, in [0, 1].
        average: How the classes of (n, K) scores are averaged, as in `ClassScoreMetric`.

    Raises:
        ValueError: `r` is not in [0, 1].

    Memory and cost: that of a `ScoreHistogram`; `compute` takes about 5 ns per cell.

    Reference: the largest of ``precision[recall >= r]`` of
    ``sklearn.metrics.precision_recall_curve``.

    Example:
        >>> import streammetrics as sm
        >>> sm.PrecisionAtRecall(r=0.5).update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).compute()
        1.0
    """

    higher_is_better = True
    value_range = (0.0, 1.0)
    family = Family.BEST_RATE

    r: Share

    _curve = staticmethod(pr_points)
    _pictured_by = PrecisionRecallCurve

    read, certain = highest, certainly_highest

    _reached = _where(_precision, _recall, "r")

    _undefined = lacks_positives


class SensitivityAtSpecificity(ClassScoreMetric):
    """Sensitivity at specificity: the highest TP / P of any threshold with TN / N at least `s`.

    Formula: max_t (TP / P) where TN / N >= s

    Specificity is compared as the float64 quotient. ``nan`` without rows of both classes.

    The other parameters are those of `ClassScoreMetric`.

    Args:
        s: The required specificity, in [0, 1].
        average: How the classes of (n, K) scores are averaged, as in `ClassScoreMetric`.

    Raises:
        ValueError: `s` is not in [0, 1].

    Memory and cost: that of a `ScoreHistogram`; `compute` takes about 5 ns per cell.

    Reference: the largest of ``tpr[1 - fpr >= s]`` of ``sklearn.metrics.roc_curve``.

    Example:
        >>> import streammetrics as sm
        >>> metric = sm.SensitivityAtSpecificity(s=0.5)
        >>> metric.update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).compute()
        1.0
    """

    higher_is_better = True
    value_range = (0.0, 1.0)
    family = Family.BEST_RATE

    s: Share

    _curve = staticmethod(roc_points)
    _pictured_by = ROCCurve

    read, certain = highest, certainly_highest

    _reached = _where(_recall, _specificity, "s")

    _undefined = lacks_a_class


class SpecificityAtSensitivity(ClassScoreMetric):
    """Specificity at sensitivity: the highest TN / N of any threshold with TP / P at least `s`.

    Formula: max_t (TN / N) where TP / P >= s

    Sensitivity is compared as the float64 quotient. ``nan`` without rows of both classes.

    The other parameters are those of `ClassScoreMetric`.

    Args:
        s: The required sensitivity, in [0, 1].
        average: How the classes of (n, K) scores are averaged, as in `ClassScoreMetric`.

    Raises:
        ValueError: `s` is not in [0, 1].

    Memory and cost: that of a `ScoreHistogram`; `compute` takes about 5 ns per cell.

    Reference: the largest of ``1 - fpr[tpr >= s]`` of ``sklearn.metrics.roc_curve``.

    Example:
        >>> import streammetrics as sm
        >>> metric = sm.SpecificityAtSensitivity(s=0.5)
        >>> metric.update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).compute()
        1.0
    """

    higher_is_better = True
    value_range = (0.0, 1.0)
    family = Family.BEST_RATE

    s: Share

    read, certain = highest, certainly_highest

    _reached = _where(_specificity, _recall, "s")

    _undefined = lacks_a_class
