"""How sure are values whose rows hang together: a jackknife that leaves out groups of whole units.

Rows of one user are alike, so that many rows of few users say less than their number. Units are
put into groups by a hash, and a value is read once without each group: how much these differ is how
much it varies from one sample of units to another (Kott 2001; Chamandy et al. 2012).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.confidence import ConfidenceInterval
from streammetrics.core.results.labelled import LabelledArray
from streammetrics.inference.distributions import t_quantile
from streammetrics.inference.limits import limits
from streammetrics.inference.rankings import SHARES
from streammetrics.inference.tables import ends_of
from streammetrics.metrics.classification.base import ContingencyMetric
from streammetrics.metrics.clustering.base import LabelingMetric
from streammetrics.metrics.clustering.entropy import MutualInfo
from streammetrics.metrics.correlation.rank import RankCorrelation
from streammetrics.metrics.regression import losses, moments, relative
from streammetrics.metrics.scores import losses as scored
from streammetrics.metrics.scores.base import ClassScoreMetric

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.metric import Metric

_SHARED = (ClassScoreMetric, LabelingMetric, *SHARES)
_SIGNED = (RankCorrelation, moments.PearsonCorrelation, moments.ConcordanceCorrelation)
_POSITIVE = (
    MutualInfo, losses.MeanLoss, losses.RootMeanLoss, relative.WAPE, scored.LogLoss,
    scored.BrierScore,
)  # fmt: skip


def unit_limits(
    metric: Metric, value: Any, without: Sequence[Any], level: float
) -> ConfidenceInterval | None:
    """Return limits of a value, of which is known what it is without each group of units.

    ``None`` where it is not one number or an array of some.
    """
    arrays = isinstance(value, LabelledArray)
    if not arrays and not isinstance(value, int | float):
        return None
    groups = len(without)
    method = f"jackknife of {groups} groups of units, Student's t"
    if groups < 2 or any(np.shape(each) != np.shape(value) for each in without):
        nothing = np.full(np.shape(value), math.nan)
        low = high = LabelledArray(nothing, value.axes) if arrays else math.nan
        return ConfidenceInterval(low, high, level, method)
    every = np.array([np.asarray(each, np.float64) for each in without])
    error = np.sqrt((groups - 1) * np.var(every, axis=0))
    quantile = t_quantile((1 + level) / 2, groups - 1)
    low, high = limits(np.asarray(value), error, quantile, *_ends(metric))
    if arrays:
        low, high = LabelledArray(low, value.axes), LabelledArray(high, value.axes)
    return ConfidenceInterval(low, high, level, method)


def _ends(metric: Metric[object]) -> tuple[float, float]:
    """Return between what a metric's values lie."""
    if isinstance(metric, ContingencyMetric):
        return ends_of(metric)
    if isinstance(metric, _POSITIVE):
        return 0.0, math.inf
    if isinstance(metric, _SIGNED):
        return -1.0, 1.0
    return (0.0, 1.0) if isinstance(metric, _SHARED) else (-math.inf, math.inf)
