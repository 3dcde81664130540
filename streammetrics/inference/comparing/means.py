"""Means of what each row loses: from the exact second moments of both models' losses."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from streammetrics.core.arithmetic.rounding import nearest
from streammetrics.core.errors import StreamMetricsError
from streammetrics.inference.comparing.base import (
    LEAST,
    Estimate,
    Joint,
    PairedTest,
    estimated,
)
from streammetrics.inference.comparing.counts import Discordant
from streammetrics.metrics.families import Family
from streammetrics.statistics.joint.moments import JointMoments, terms_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.metric import Metric
    from streammetrics.core.statistic import Statistic
    from streammetrics.inference.comparing.base import Side

PAIRED_T = "paired t"
SIGNS = "equal signs"


class MeanFamily(PairedTest):
    """Mean losses and their roots."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric

    def joints(self, models: Sequence[str], pairs: Sequence[tuple[str, str]]) -> list[Joint]:  # noqa: ARG002 - all pairs at once
        """Return the moments of all models."""
        (statistic,) = self.metric.statistics()
        moments = JointMoments(models=len(models))
        return [Joint(moments, tuple(models), statistic.schema, terms_of(statistic))]

    def estimate(self, one: Side, other: Side, joint: Statistic | None, level: float) -> Estimate:
        """Return the paired t test of the losses' differences, linear in them for a root."""
        assert isinstance(joint, JointMoments)
        i, j = one.place + 1, other.place + 1
        if self.metric.family == Family.TOP_K and joint.product(0, 0) == joint.weight:
            only, others = (joint.product(k, k) - joint.product(i, j) for k in (i, j))
            counts = (int(each.fraction()) for each in (joint.weight, only, others))
            shares = Discordant(*counts)
            if shares.rows:
                return shares.estimate(level)
        weight, n = joint.weight.fraction(), one.metric.n_rows
        if n < 2 or not math.isfinite(one.value - other.value):
            return estimated(one.value - other.value, math.nan, level, PAIRED_T, 1.0)
        means = [joint.totals[k - 1].fraction() / weight for k in (i, j)]
        a, b = (self._slope(side, mean) for side, mean in zip((one, other), means, strict=True))
        terms = (i, a), (j, -b)
        twice = sum(x * y * joint.product(k, m).fraction() for k, x in terms for m, y in terms)
        once = sum(x * joint.product(0, k).fraction() for k, x in terms)
        mean = a * means[0] - b * means[1]
        spread = twice - 2 * mean * once + mean * mean * joint.product(0, 0).fraction()
        variance = nearest(spread / weight**2) * n / (n - 1)
        is_root = self.metric.family == Family.ROOT_MEAN_LOSS
        difference = one.value - other.value if is_root else nearest(mean)
        if variance <= 0 and difference:  # all rows differ alike: as probable as n equal signs
            return Estimate(difference, difference, difference, max(2.0 ** (1 - n), LEAST), SIGNS)
        return estimated(difference, max(variance, 0.0), level, PAIRED_T, n - 1)

    def _slope(self, side: Side, mean: Fraction) -> Fraction:
        """Return how the value of a model moves with the mean of its terms."""
        (losses,) = side.metric._read()
        if self.metric.family == Family.ROOT_MEAN_LOSS:
            if losses.width > 1:
                raise StreamMetricsError(
                    f"{side.metric._titled()} of {losses.width} outputs cannot be compared, as it "
                    "is a mean of roots: compare the mean losses, such as MSE"
                )
            return 1 / (2 * Fraction(side.value)) if side.value else Fraction(0)
        halved = self.metric.family == Family.BRIER and side.value < nearest(mean)
        return Fraction(1, 2) if halved else Fraction(1)
