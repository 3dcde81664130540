"""The area under the ROC curve, of a class against the rest or of pairs of classes."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from streammetrics.core.configured import require
from streammetrics.core.constraints import Between
from streammetrics.core.exact.sums import ExactSum
from streammetrics.metrics.averages import mean_of_classes
from streammetrics.metrics.scores.base import ClassScoreMetric, best_guess
from streammetrics.metrics.scores.curves import (
    ROCCurve,
    roc_points,
)
from streammetrics.statistics.scores.versus import VersusHistogram

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import Array, Floats
    from streammetrics.metrics.scores.view import Staircase


__all__ = ["ROCAUC"]


class ROCAUC(ClassScoreMetric):
    """Area under the ROC curve: how often a positive scores above a negative.

    Formula: P(s_+ > s_-) + P(s_+ = s_-) / 2

    Σ n (T + p / 2) / (P N) over cells, in integers and rounded once. A cell of several scores
    counts as a tie; `bounds()` is what it would give with all its positives below all its
    negatives, and above: ± Σ p n / (2 P N) over such cells. With `max_fpr` the area up to that
    false positive rate, with `min_tpr` the area above that true positive rate, standardised
    (McClish 1989) so that chance gives 0.5 and perfection 1. ``nan`` without rows of both classes.

    The other parameters are those of `ScoreMetric`.

    Args:
        max_fpr: In (0, 1]; ``None``: the whole area.
        average: ``"macro"``, ``"weighted"`` or ``None`` over the classes of (n, K) scores, each
            against the rest; or over the pairs of classes.
        min_tpr: In [0, 1), in place of `max_fpr`; ``None``: the whole area.
        multi_class: What classes of (n, K) scores are told from: the rest (``"ovr"``), or each of
            the others alone (``"ovo"``; Hand and Till 2001), which does not depend on how many
            rows they have: the mean over ordered pairs (j, k) of the area of the score of j among
            the rows of both. ``"weighted"`` is then by the rows of both.

    Raises:
        ValueError: `max_fpr` is not in (0, 1], or `min_tpr` not in [0, 1), or both are given; or
            pairs are not averaged.

    Memory and cost: that of a `ScoreHistogram`, for (n, K) scores with ``"ovo"`` that of K (K - 1);
    `compute` takes about 5 ns per cell.

    Reference: ``sklearn.metrics.roc_auc_score``; with `min_tpr` that of both classes, and the
    signs of scores, exchanged.

    Example:
        >>> import streammetrics as sm
        >>> sm.ROCAUC().update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).compute()
        0.75
    """

    max_fpr: Annotated[float, Between(0, 1, without=(0,))] | None = None
    min_tpr: Annotated[float, Between(0, 1, without=(1,))] | None = None
    multi_class: Literal["ovr", "ovo"] = "ovr"

    _younger = (*ClassScoreMetric._younger, ("min_tpr", None), ("multi_class", "ovr"))

    def check_parameters(self) -> None:
        """Check that there is one limit, and that pairs of classes are averaged."""
        super().check_parameters()
        require(self, "min_tpr", self.min_tpr is None or self.max_fpr is None, "None with max_fpr")
        pairs = self.multi_class == "ovo"
        fits = not pairs or self.average in {"macro", "weighted"}
        require(self, "average", fits, "an average with 'ovo': 'macro' or 'weighted'")
        require(self, "multilabel", not (pairs and self.multilabel), "False with 'ovo'")

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the histogram of scores, or that of all pairs of classes."""
        if self.multi_class == "ovr":
            return super().statistics()
        options = {**self._schema_options, "from_logits": self.from_logits}
        return (VersusHistogram(max_bins=self.max_bins, **options),)

    _curve = staticmethod(roc_points)
    _pictured_by = ROCCurve

    def _shape(self, scores: Any, *_: Any) -> Any:
        if self.multi_class == "ovo":
            raise TypeError("ROCAUC of pairs of classes has no picture: multi_class='ovr' has one")
        return super()._shape(scores)

    read = best_guess

    def certain(self, stairs: Staircase) -> tuple[float, float, float]:
        """Return the area with negatives first, with ties, and with positives first in cells."""
        if not stairs.positives or not stairs.negatives:
            return math.nan, math.nan, math.nan
        side, rate = self._limited(stairs)
        whole = 2 * _product(stairs)
        areas = _roc_areas(side, rate)
        if rate < 1:  # else this changes nothing
            chance = Fraction(rate) * rate / 2
            shares = [Fraction(twice) / whole for twice in areas]
            areas = [(1 + (share - chance) / (rate - chance)) / 2 for share in shares]
            whole = 1
        low, value, high = [min(float(area / whole), 1.0) for area in areas]
        return low, value, high

    def _limited(self, stairs: Staircase) -> tuple[Staircase, Fraction | int]:
        """Return what the area is read from, and up to which rate of false positives there.

        An area above a true positive rate is one up to a rate of false positives with the classes
        exchanged, from the lowest score up.
        """
        if self.min_tpr is None:
            return stairs, 1 if self.max_fpr is None else Fraction(self.max_fpr)
        return stairs.mirrored(), 1 - Fraction(self.min_tpr)

    def _averaged(
        self, classes: tuple[Staircase, ...], values: list[float]
    ) -> tuple[float | Floats, str]:
        if self.multi_class == "ovr" or len(classes) == 1:
            return super()._averaged(classes, values)
        each = np.array([self._filled(value) for value in values])
        seen = np.array([bool(stairs.positives and stairs.negatives) for stairs in classes])
        size = math.isqrt(len(classes)) + 1
        labels = list(permutations(self.labels or range(size), 2))
        rows = np.ones(len(classes))
        if self.average == "weighted":
            unit = max(stairs.unit for stairs in classes)
            totals = [float(stairs.positives + stairs.negatives) for stairs in classes]
            rows = np.ldexp(totals, [stairs.unit - unit for stairs in classes])
        return mean_of_classes(each, rows, lambda: seen, labels, self.zero_division)


def _product(stairs: Staircase) -> Fraction | int:
    if stairs.counted:  # Python's integers divide as fractions do, and quicker
        return int(stairs.positives) * int(stairs.negatives)
    return Fraction(stairs.positives) * Fraction(stairs.negatives)


def _roc_areas(stairs: Staircase, rate: Fraction | int) -> list[Fraction | int]:
    """Return twice the area P * N up to a false positive rate: the least, with ties, the most."""
    end = rate * Fraction(stairs.negatives)
    last = int(end) if stairs.counted else float(end)
    area: Fraction | int = 0
    slack: Fraction | int = 0
    beyond: Fraction | int = 0
    for steps in stairs.steps():
        n, twice_tp = steps.n, steps.tp_above + steps.tp
        if rate < 1:
            for cell in np.flatnonzero((steps.fp_above <= last) & (steps.fp > last)).tolist():
                # The cell that the limit cuts. A straight line if its rows are tied; a curve that
                # stays at the bottom, or goes along the top, if they are not.
                past = end - Fraction(steps.fp_above[cell].item())
                across = past * Fraction(steps.p[cell].item())
                tied = across * past / Fraction(n[cell].item())
                area += 2 * past * Fraction(steps.tp_above[cell].item()) + tied
                if not steps.single[cell]:
                    slack += tied
                    beyond += 2 * (across - tied)
            n = n * (steps.fp <= last)
        area += _dot(n, twice_tp)
        if not steps.single.all():
            slack += _dot(n, steps.p * ~steps.single)
    return [area - slack, area, area + slack + beyond]


def _dot(x: Array, y: Array) -> Fraction | int:
    """Return the exact sum of products."""
    if x.dtype == np.int64:
        return int(np.dot(x, y))
    return ExactSum.product(x, y).fraction()
