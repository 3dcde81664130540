"""Confidence limits of the strengths of players."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.confidence import (
    ConfidenceInterval,
    ConfidenceRequest,
    not_anytime,
    rule_of,
)
from streammetrics.inference.distributions import normal_quantile
from streammetrics.metrics.arena import StrengthFit
from streammetrics.metrics.families import Family

if TYPE_CHECKING:
    from streammetrics.metrics.arena import BradleyTerry
    from streammetrics.statistics.matches import MatchTable


@rule_of(Family.STRENGTHS)
def of_strengths(
    metric: BradleyTerry, asked: ConfidenceRequest, table: MatchTable
) -> ConfidenceInterval:
    """The sandwich variance, which holds if matches do not follow the model, too."""
    if asked.anytime:
        raise not_anytime(metric)
    fit = StrengthFit.of(table)
    error = np.sqrt(fit.covariance().diagonal())
    quantile = normal_quantile(1 - asked.tail)
    low, high = (fit.labelled(sign * quantile * error) for sign in (-1, 1))
    return ConfidenceInterval(low, high, asked.level, "sandwich")
