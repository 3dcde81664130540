"""The area under the start of the ROC curve, where there are few false positives."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.confidence import Refusal
from streammetrics.core.configured import require
from streammetrics.core.constraints import Between
from streammetrics.metrics.scores.base import ClassScoreMetric, middle_of
from streammetrics.metrics.scores.curves import roc_points

if TYPE_CHECKING:
    from streammetrics.core.types import Floats
    from streammetrics.metrics.scores.view import Staircase, Steps

__all__ = ["LogAUC"]


class LogAUC(ClassScoreMetric):
    """Area under the ROC curve on a logarithmic axis of false positive rates, in a range of these.

    Formula: ∫ TPR d(ln FPR) / ln (b / a), with a and b the ends of the range.

    Every decade of false positive rates has the same weight, which suits tasks where only the top
    scores are looked at: screening, retrieval, alerts. Points of the curve are joined by straight
    lines over the logarithm of the rate; at the ends of the range it is interpolated linearly in
    the rate. In a cell of several scores, the bounds have all its positives last, and first.
    ``nan`` without rows of both classes.

    The other parameters are those of `ClassScoreMetric`.

    Args:
        min_fpr: The start of the range, at least 1e-100.
        max_fpr: The end of the range.

    Raises:
        ValueError: `min_fpr` is not below `max_fpr`.

    Memory and cost: that of a `ScoreHistogram`; `compute` takes about 50 ns per cell.

    Reference: Mysinger and Shoichet, J. Chem. Inf. Model. 50 (2010);
    ``torchmetrics.classification.LogAUC``.

    Example:
        >>> import streammetrics as sm
        >>> area = sm.LogAUC(min_fpr=0.01, max_fpr=1.0)
        >>> area.update([0, 0, 1, 1], [0.1, 0.8, 0.35, 0.9]).compute()
        0.5752574989159952
    """

    higher_is_better = True
    value_range = (0.0, 1.0)
    family = Refusal(
        "how the first few false positives vary makes most of it, which is unlike any mean; "
        "ROCAUC(max_fpr=0.1), which asks nearly the same, has limits"
    )

    min_fpr: Annotated[float, Between(1e-100, 1)] = 0.001
    max_fpr: Annotated[float, Between(0, 1, without=(0,))] = 0.1

    def check_parameters(self) -> None:
        """Check that the range is not empty."""
        super().check_parameters()
        require(self, "min_fpr", self.min_fpr < self.max_fpr, "below max_fpr")

    _curve = staticmethod(roc_points)

    def certain(self, stairs: Staircase) -> tuple[float, float, float]:
        """Return the area with negatives first, with ties, and with positives first in cells."""
        if not stairs.positives or not stairs.negatives:
            return math.nan, math.nan, math.nan
        ends = [float(stairs.negatives) * rate for rate in (self.min_fpr, self.max_fpr)]
        sums = [ExactSum.zero()] * 3
        for steps in stairs.steps():
            parts = _areas(steps, ends[0], ends[1])
            sums = [total + ExactSum.of(part) for total, part in zip(sums, parts, strict=True)]
        whole = float(stairs.positives) * math.log(self.max_fpr / self.min_fpr)
        low, value, high = [min(float(total.to_float()) / whole, 1.0) for total in sums]
        return low, value, high

    read = middle_of(certain)


def _areas(steps: Steps, first: float, last: float) -> tuple[Floats, Floats, Floats]:
    """Return the area of each cell over the log false positives: least, tied and most."""
    n, p = steps.n.astype(np.float64), steps.p.astype(np.float64)
    below, above = steps.tp_above.astype(np.float64), steps.tp.astype(np.float64)
    start, end = steps.fp_above.astype(np.float64), steps.fp.astype(np.float64)
    left, right = np.maximum(start, first), np.minimum(end, last)
    overlaps = left < right
    across = np.where(overlaps, np.log1p(np.where(overlaps, right - left, 0.0) / left), 0.0)
    slope = np.divide(p, n, out=np.zeros_like(p), where=n > 0)
    middle = below + slope * ((left - start) + (right - start)) / 2
    tied = np.clip(middle, below, above) * across
    least = np.where(steps.single, tied, below * across)
    return least, tied, np.where(steps.single, tied, above * across)
