"""Confidence limits of shares for many groups at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streammetrics.core.confidence import Asked
from streammetrics.inference.tables import share_of
from streammetrics.metrics.classification.base import ContingencyMetric, is_table

if TYPE_CHECKING:
    from streammetrics.core.metric import Metric
    from streammetrics.core.types import Floats, Ints


class Readings(NamedTuple):
    """A metric of each group: its value and its limits, each (groups,)."""

    value: Floats
    low: Floats
    high: Floats


def readings_of(metric: Metric[Any], level: float, n_rows: Ints, *forms: object) -> Readings | None:
    """Return what a metric is in every group of so many rows, which all weigh one.

    Of its statistics the states are given as a form of all groups holds them. ``None`` where they
    are to be read in turn.
    """
    values = metric._of_groups(*forms)
    if values is None or not isinstance(values.values, np.ndarray):
        return None
    limits = limits_of_groups(metric, level, n_rows, *forms)
    return None if limits is None else Readings(values.values, *limits)


def limits_of_groups(
    metric: Any, level: float, n_rows: Ints, *forms: object
) -> tuple[Floats, Floats] | None:
    """Return the confidence limits alone, ``None`` where they are to be found in turn."""
    form, *more = forms
    if not isinstance(metric, ContingencyMetric) or not is_table(form) or more:
        return None
    if not getattr(metric, "normalize", True) or getattr(metric, "average", "") is None:
        return None
    low, high = np.full((2, form.size), np.nan)
    for groups, table in metric._confusions(form):
        if not table.counted or (table.total != n_rows[groups]).any():
            return None
        found = share_of(metric, Asked(level, False, 0), table, table)
        if found is None:
            return None
        low[groups], high[groups] = found
    return low, high
