"""Best values over all thresholds: the highest point of a curve under a condition."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.constraints import Share
from streammetrics.metrics.scores.base import ROUNDING, ClassScoreMetric

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streammetrics.metrics.scores.view import Staircase

__all__ = [
    "KolmogorovSmirnov",
    "PrecisionAtRecall",
    "RecallAtPrecision",
    "SensitivityAtSpecificity",
]


class BestThreshold(ClassScoreMetric):
    """The highest value that any threshold gives.

    At the edges of cells everything is known, so the best of them is certainly reached: it is
    what `compute()` gives and the lower bound. Inside a cell of several scores a threshold passes
    at best all positives and no negative, or the reverse: those corners give the upper bound.
    """

    @abstractmethod
    def _reached(
        self, stairs: Staircase, tp: NDArray[Any], fp: NDArray[Any], margin: float
    ) -> NDArray[Any]:
        """Return the values, times `_scale`, of thresholds that call so many positive.

        The condition is met by `margin` more than asked for.
        """

    def _scale(self, stairs: Staircase) -> float:  # noqa: ARG002 - for those that depend on it
        """Return what `_reached` is to be divided by."""
        return 1

    @abstractmethod
    def _undefined(self, stairs: Staircase) -> bool:
        """Whether a class that is needed has no rows."""

    def _value(self, stairs: Staircase) -> float:
        """Return the best of the thresholds at edges."""
        return math.nan if self._undefined(stairs) else self._best(stairs, 0.0)

    def _span(self, stairs: Staircase) -> tuple[float, float, float]:
        """Return the best of the edges, with a margin below it, and of edges and corners."""
        value = self._value(stairs)
        if math.isnan(value):
            return value, value, value
        margin = 0.0 if stairs.counted else ROUNDING
        low = self._best(stairs, margin) if margin else value
        return low, value, self._best(stairs, -margin, corners=True)

    def _best(self, stairs: Staircase, margin: float, *, corners: bool = False) -> float:
        none = np.zeros(1, np.int64)
        best = self._reached(stairs, none, none, margin).max()
        for steps in stairs.steps():
            places = [(steps.tp, steps.fp)]
            if corners:
                single = steps.single
                places.append((steps.tp, np.where(single, steps.fp, steps.fp_above)))
                places.append((np.where(single, steps.tp, steps.tp_above), steps.fp))
            for tp, fp in places:
                best = max(best, self._reached(stairs, tp, fp, margin).max())
        return float(best.item() / self._scale(stairs))


class KolmogorovSmirnov(BestThreshold):
    """Largest distance between the classes' distributions of scores: the maximum of abs(TPR - FPR).

    ``nan`` without rows of both classes.

    Args: see `ScoreMetric`; `average` over the classes of (n, K) scores as in `ROCAUC`.
    Memory and cost: that of `ScoreHistogram`; reading takes some 5 ns a cell.
    Reference: ``scipy.stats.ks_2samp(positives, negatives).statistic``.

    Example:
        >>> import streammetrics as sm
        >>> sm.KolmogorovSmirnov().update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).compute()
        0.5
    """

    def _reached(
        self,
        stairs: Staircase,
        tp: NDArray[Any],
        fp: NDArray[Any],
        margin: float,  # noqa: ARG002
    ) -> NDArray[Any]:
        """Return the distance times P * N, which is an integer for counts."""
        return np.abs(tp * stairs.negatives - fp * stairs.positives)

    def _scale(self, stairs: Staircase) -> float:
        """Return P * N."""
        return stairs.positives * stairs.negatives

    def _undefined(self, stairs: Staircase) -> bool:
        """Both classes are needed."""
        return not stairs.positives or not stairs.negatives


class RecallAtPrecision(BestThreshold):
    """Highest recall of any threshold whose precision is at least `p`; 0 where none has it.

    Precision is compared as the float64 quotient TP / (TP + FP). ``nan`` without a positive.

    Args:
        p: The precision asked for, in [0, 1].
        average: Over the classes of (n, K) scores, as in `ROCAUC`. The others: see `ScoreMetric`.

    Raises:
        ValueError: `p` is not in [0, 1].

    Memory and cost: that of `ScoreHistogram`; reading takes some 5 ns a cell.
    Reference: the largest of ``recall[precision >= p]`` of
    ``sklearn.metrics.precision_recall_curve``.

    Example:
        >>> import streammetrics as sm
        >>> sm.RecallAtPrecision(p=0.9).update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).compute()
        0.5
    """

    p: Share

    def _reached(
        self, stairs: Staircase, tp: NDArray[Any], fp: NDArray[Any], margin: float
    ) -> NDArray[Any]:
        """Return recall where precision suffices, else 0."""
        enough = _rate(tp, tp + fp) >= min(self.p + margin, 1.0)
        return np.where(enough, tp / np.float64(stairs.positives), 0.0)

    def _undefined(self, stairs: Staircase) -> bool:
        """Positives are needed."""
        return not stairs.positives


class PrecisionAtRecall(BestThreshold):
    """Highest precision of any threshold whose recall is at least `r`.

    Recall is compared as the float64 quotient TP / P; the threshold above all scores has recall 0
    and precision 1. ``nan`` without a positive.

    Args:
        r: The recall asked for, in [0, 1].
        average: Over the classes of (n, K) scores, as in `ROCAUC`. The others: see `ScoreMetric`.

    Raises:
        ValueError: `r` is not in [0, 1].

    Memory and cost: that of `ScoreHistogram`; reading takes some 5 ns a cell.
    Reference: the largest of ``precision[recall >= r]`` of
    ``sklearn.metrics.precision_recall_curve``.

    Example:
        >>> import streammetrics as sm
        >>> sm.PrecisionAtRecall(r=0.5).update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).compute()
        1.0
    """

    r: Share

    def _reached(
        self, stairs: Staircase, tp: NDArray[Any], fp: NDArray[Any], margin: float
    ) -> NDArray[Any]:
        """Return precision where recall suffices, else 0."""
        enough = tp / np.float64(stairs.positives) >= min(self.r + margin, 1.0)
        return np.where(enough, _rate(tp, tp + fp), 0.0)

    def _undefined(self, stairs: Staircase) -> bool:
        """Positives are needed."""
        return not stairs.positives


class SensitivityAtSpecificity(BestThreshold):
    """Highest true positive rate of any threshold whose specificity TN / N is at least `s`.

    Specificity is compared as the float64 quotient. ``nan`` without rows of both classes.

    Args:
        s: The specificity asked for, in [0, 1].
        average: Over the classes of (n, K) scores, as in `ROCAUC`. The others: see `ScoreMetric`.

    Raises:
        ValueError: `s` is not in [0, 1].

    Memory and cost: that of `ScoreHistogram`; reading takes some 5 ns a cell.
    Reference: the largest of ``tpr[1 - fpr >= s]`` of ``sklearn.metrics.roc_curve``.

    Example:
        >>> import streammetrics as sm
        >>> metric = sm.SensitivityAtSpecificity(s=0.5)
        >>> metric.update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).compute()
        1.0
    """

    s: Share

    def _reached(
        self, stairs: Staircase, tp: NDArray[Any], fp: NDArray[Any], margin: float
    ) -> NDArray[Any]:
        """Return the true positive rate where specificity suffices, else 0."""
        enough = (stairs.negatives - fp) / np.float64(stairs.negatives) >= min(self.s + margin, 1.0)
        return np.where(enough, tp / np.float64(stairs.positives), 0.0)

    def _undefined(self, stairs: Staircase) -> bool:
        """Both classes are needed."""
        return not stairs.positives or not stairs.negatives


def _rate(part: NDArray[Any], whole: NDArray[Any]) -> NDArray[np.float64]:
    """Return the quotients, 1 where nothing is asked of nothing."""
    rates = np.ones(part.size)
    np.divide(part, whole, out=rates, where=whole > 0)
    return rates
