"""The area under the ROC curve, of each class against the rest or of pairs of classes."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.configured import require
from streammetrics.core.constraints import Between
from streammetrics.metrics.averages import mean_of_classes
from streammetrics.metrics.families import Family
from streammetrics.metrics.scores.base import ClassScoreMetric, middle_of
from streammetrics.metrics.scores.curves import (
    ROCCurve,
    roc_points,
)
from streammetrics.statistics.scores.versus import VersusHistogram

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.results.curves import Curves, Points
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import Array, Floats
    from streammetrics.metrics.scores.view import Staircase
    from streammetrics.statistics.scores.histogram import ScoreHistogram


__all__ = ["ROCAUC"]


class ROCAUC(ClassScoreMetric):
    """Area under the ROC curve: the probability that a positive scores above a negative.

    Formula: P(s_+ > s_-) + P(s_+ = s_-) / 2, with s_+ the score of a positive and s_- that of a
    negative.

    Computed in integers and rounded once. A cell of several scores counts as a tie; in `bounds()`
    all its positives score below, and above, all its negatives. With `max_fpr` the value is the
    partial area up to that false positive rate, with `min_tpr` the area above that true positive
    rate, standardized so that chance gives 0.5 and a perfect ranking 1 (McClish 1989). ``nan``
    without rows of both classes.

    The other parameters are those of `ClassScoreMetric`.

    Args:
        max_fpr: The largest false positive rate, in (0, 1]; ``None``: the whole area.
        average: ``"macro"``, ``"weighted"``, ``"micro"`` or ``None``, over the classes of (n, K)
            scores or, with ``multi_class="ovo"``, ``"macro"`` or ``"weighted"`` over pairs of them.
        min_tpr: The smallest true positive rate, in [0, 1), instead of `max_fpr`; ``None``: the
            whole area.
        multi_class: For (n, K) scores, ``"ovr"``: each class against the rest. ``"ovo"``: each
            class against each other one, the mean over ordered pairs (j, k) of the area of the
            scores of j among the rows of both (Hand and Till 2001), which does not depend on how
            many rows classes have; ``"weighted"`` then weighs pairs by their rows.

    Raises:
        ValueError: `max_fpr` is not in (0, 1], `min_tpr` is not in [0, 1), or both are given; or
            `average` is not one that ``"ovo"`` allows.

    Memory and cost: that of a `ScoreHistogram`, with ``"ovo"`` that of K (K - 1) of them;
    `compute` takes about 5 ns per cell.

    Reference: ``sklearn.metrics.roc_auc_score``; with `min_tpr` the same function with the classes
    exchanged and the scores negated.

    Example:
        >>> import streammetrics as sm
        >>> sm.ROCAUC().update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).compute()
        0.75
    """

    higher_is_better = True
    value_range = (0.0, 1.0)
    family = Family.ROC_AREA

    max_fpr: Annotated[float, Between(0, 1, without=(0,))] | None = None
    min_tpr: Annotated[float, Between(0, 1, without=(1,))] | None = None
    multi_class: Literal["ovr", "ovo"] = "ovr"

    def check_parameters(self) -> None:
        """Check that there is at most one limit, and that values of pairs are averaged."""
        super().check_parameters()
        require(self, "min_tpr", self.min_tpr is None or self.max_fpr is None, "None with max_fpr")
        pairs = self.multi_class == "ovo"
        fits = not pairs or self.average in {"macro", "weighted"}
        require(self, "average", fits, "an average with 'ovo': 'macro' or 'weighted'")
        require(self, "multilabel", not (pairs and self.multilabel), "False with 'ovo'")

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the score histogram, or that of all pairs of classes."""
        if self.multi_class == "ovr":
            return super().statistics()
        options = {**self._schema_options, "from_logits": self.from_logits}
        return (VersusHistogram(max_bins=self.max_bins, **options),)

    _curve = staticmethod(roc_points)
    _pictured_by = ROCCurve

    def _shape(self, scores: ScoreHistogram, *_: object) -> Points | Curves:
        if self.multi_class == "ovo":
            raise TypeError("ROCAUC of pairs of classes has no picture: multi_class='ovr' has one")
        return super()._shape(scores)

    def certain(self, stairs: Staircase) -> tuple[float, float, float]:
        """Return the area with negatives first, with ties, and with positives first in cells."""
        if not stairs.positives or not stairs.negatives:
            return math.nan, math.nan, math.nan
        side, rate = self._limited(stairs)
        areas, whole = roc_areas(side, rate)
        if rate < 1:  # else this changes nothing
            chance = Fraction(rate) * rate / 2
            shares = [Fraction(twice) / whole for twice in areas]
            areas = [(1 + (share - chance) / (rate - chance)) / 2 for share in shares]
            whole = 1
        low, value, high = [min(float(area / whole), 1.0) for area in areas]
        return low, value, high

    read = middle_of(certain)

    def _limited(self, stairs: Staircase) -> tuple[Staircase, Fraction | int]:
        """Return the steps that the area is read from, and the largest false positive rate.

        The area above a true positive rate equals one up to a false positive rate, if the classes
        are exchanged and the scores negated.
        """
        if self.min_tpr is None:
            return stairs, 1 if self.max_fpr is None else Fraction(self.max_fpr)
        return stairs.mirrored(), 1 - Fraction(self.min_tpr)

    def _names(self, classes: Sequence[Staircase]) -> Sequence[object]:
        if self.multi_class == "ovr" or len(classes) == 1:
            return super()._names(classes)
        return list(permutations(self.labels or range(math.isqrt(len(classes)) + 1), 2))

    def _averaged(
        self, classes: tuple[Staircase, ...], values: list[float]
    ) -> tuple[float | Floats, str]:
        if self.multi_class == "ovr" or len(classes) == 1:
            return super()._averaged(classes, values)
        each = np.array([self._filled(value) for value in values])
        seen = np.array([bool(stairs.positives and stairs.negatives) for stairs in classes])
        labels = self._names(classes)
        rows = np.ones(len(classes))
        if self.average == "weighted":
            unit = max(stairs.unit for stairs in classes)
            totals = [float(stairs.positives + stairs.negatives) for stairs in classes]
            rows = np.ldexp(totals, [stairs.unit - unit for stairs in classes])
        return mean_of_classes(each, rows, lambda: seen, labels, self.zero_division)


def _product(stairs: Staircase) -> Fraction | int:
    if stairs.counted:  # Python's integers are as exact as fractions, and faster
        return int(stairs.positives) * int(stairs.negatives)
    return Fraction(stairs.positives) * Fraction(stairs.negatives)


def roc_areas(
    stairs: Staircase, rate: Fraction | int = 1
) -> tuple[list[Fraction | int], Fraction | int]:
    """Return the area up to a false positive rate, times 2 P N, and 2 P N.

    The area is the least, with ties, and the most.
    """
    if stairs.counted and rate >= 1:
        twice, unsure = stairs.area()
        return [twice - unsure, twice, twice + unsure], 2 * _product(stairs)
    end = rate * Fraction(stairs.negatives)
    last = int(end) if stairs.counted else float(end)
    area: Fraction | int = 0
    slack: Fraction | int = 0
    beyond: Fraction | int = 0
    for steps in stairs.steps():
        n, twice_tp = steps.n, steps.tp_above + steps.tp
        if rate < 1:
            for cell in np.flatnonzero((steps.fp_above <= last) & (steps.fp > last)).tolist():
                # The limit cuts this cell. The curve in it is a straight line if its rows are tied;
                # if they are not, it may stay at the bottom or run along the top.
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
    return [area - slack, area, area + slack + beyond], 2 * _product(stairs)


def _dot(x: Array, y: Array) -> Fraction | int:
    """Return the exact sum of products."""
    if x.dtype == np.int64:
        return int(np.dot(x, y))
    return ExactSum.product(x, y).fraction()
