"""Confidence intervals for clustered rows, by a jackknife over groups of whole units.

Rows of one user are correlated, so many rows of few users carry less information than their number
suggests. Units are hashed into groups, and the value is computed without each group. The variance
of these values estimates that between samples of units (Kott 2001; Chamandy et al. 2012).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.confidence import ConfidenceInterval
from streammetrics.core.results.labelled import LabelledArray
from streammetrics.inference.distributions import limits, t_quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.metric import Metric
    from streammetrics.core.results.values import Interval
    from streammetrics.core.types import Floats, Numeric


def unit_limits(
    metric: Metric,
    value: Any,
    without: Sequence[Any],
    level: float,
    certain: Interval[Any] | None = None,
) -> ConfidenceInterval | None:
    """Return limits of a value, given the values `without` each group of units.

    Returns ``None`` unless the value is a number or a labelled array. If it is not exact, `certain`
    has guaranteed limits of the exact value: the lower limit is then computed from the lower one,
    and the upper limit from the upper one.
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
    ends = metric.value_range or (-math.inf, math.inf)
    low, high = limits(np.asarray(value), error, quantile, *ends)
    if certain is not None:
        least, most = (np.asarray(side, np.float64) for side in certain)
        low = _widened(low, limits(least, error, quantile, *ends)[0], least)
        high = _widened(high, limits(most, error, quantile, *ends)[1], most)
    if arrays:
        low, high = LabelledArray(low, value.axes), LabelledArray(high, value.axes)
    else:
        low, high = float(low), float(high)
    return ConfidenceInterval(low, high, level, method)


def _widened(limit: Numeric, of_end: Numeric, end: Floats) -> Numeric:
    """Return the limit computed for an end of the range of a value; the end itself if it is NaN."""
    wider = np.where(np.isnan(of_end), end, of_end)
    return np.where(np.isnan(limit), limit, wider)
