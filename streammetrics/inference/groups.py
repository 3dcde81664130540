"""Confidence limits of shares for many groups at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streammetrics.core.confidence import Asked
from streammetrics.inference.tables import share_of
from streammetrics.metrics.classification.base import ContingencyMetric
from streammetrics.statistics.grouped.tables import Tables

if TYPE_CHECKING:
    from streammetrics.core.metric import Metric
    from streammetrics.core.types import Floats


class Readings(NamedTuple):
    """A metric of each group: its value and its limits, each (groups,)."""

    value: Floats
    low: Floats
    high: Floats


def readings_of(metric: Metric[Any], level: float, *forms: object) -> Readings | None:
    """Return what a metric is in every group, of rows that all weigh one.

    Of its statistics the states are given as a form of all groups holds them. ``None`` where they
    are to be read in turn.
    """
    values = metric._of_groups(*forms)
    if values is None or not isinstance(values.values, np.ndarray):
        return None
    limits = _limits_of(metric, level, *forms)
    return None if limits is None else Readings(values.values, *limits)


def _limits_of(metric: Any, level: float, form: Tables) -> tuple[Floats, Floats] | None:
    if not isinstance(metric, ContingencyMetric) or not getattr(metric, "normalize", True):
        return None
    low, high = np.full((2, form.size), np.nan)
    for groups, table in metric._confusions(form):
        found = share_of(metric, Asked(level, False, 0), table, table) if table.counted else None
        if found is None:
            return None
        low[groups], high[groups] = found
    return low, high
