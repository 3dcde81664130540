"""How sure are clusterings judged against a truth: by a jackknife or a bootstrap of the table."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.confidence import (
    Asked,
    ConfidenceInterval,
    not_anytime,
    rule_of,
    unsure,
    without,
)
from streammetrics.inference.bootstrap import REPLICATES, drawn
from streammetrics.inference.distributions import normal_quantile
from streammetrics.inference.limits import limits
from streammetrics.inference.tables import UNBOUNDED, at_end
from streammetrics.metrics.clustering.view import Overlap
from streammetrics.metrics.families import Family

if TYPE_CHECKING:
    from streammetrics.core.types import Ints, Places
    from streammetrics.metrics.clustering.base import LabelingMetric
    from streammetrics.statistics.tables.contingency import LabelPairs

    Counts = Ints

_FEW = 512  # pairs of labels that are left out one by one
_COSTLY = 8  # how many times as long an adjusted information takes


@rule_of(Family.LABELINGS, Family.ADJUSTED_INFORMATION)
def of_labelings(
    metric: LabelingMetric[float], asked: Asked, table: LabelPairs
) -> ConfidenceInterval:
    """Any readout of how two labelings overlap, both being given: rows are what is sampled."""
    if asked.anytime:
        raise not_anytime(metric)
    value = metric.readout(table)
    if not isinstance(value, int | float):
        raise without(metric, "its value is not one number")
    few, replicates = _FEW, REPLICATES
    if metric.family == Family.ADJUSTED_INFORMATION:
        few, replicates = few // _COSTLY, replicates // 2
    counts = table.counts
    if not counts.size:
        return unsure(asked.level, "jackknife")
    cells = table.cells()
    if counts.size <= few:
        error = _jackknife(metric, cells.rows, cells.columns, counts)
        method = f"jackknife of the {counts.size} pairs of labels"
    else:
        draws = drawn(counts, replicates)
        values = [metric.read(overlap(cells.rows, cells.columns, row)) for row in draws]
        error, method = float(np.std(values)), f"bootstrap of {counts.size} pairs of labels"
    ends = metric.value_range or UNBOUNDED
    low, high = limits(value, error, normal_quantile(1 - asked.tail), *ends)
    if not error and value == ends[1]:
        return at_end(value, ends, float(Overlap.of(table).true_sizes.min()), asked)
    return ConfidenceInterval(low, high, asked.level, method)


def _jackknife(
    metric: LabelingMetric[float], rows: Places, columns: Places, counts: Counts
) -> float:
    """Return the standard error by leaving out a row of each pair of labels."""
    n = int(counts.sum())
    if n < 2:
        return 0.0
    values = np.zeros(counts.size)
    for place in range(counts.size):
        left = counts.copy()
        left[place] -= 1
        values[place] = metric.read(overlap(rows, columns, left))
    mean = float(counts @ values) / n
    return math.sqrt((n - 1) / n * float(counts @ (values - mean) ** 2))


def overlap(rows: Places, columns: Places, counts: Counts) -> Overlap:
    """Return an overlap of counts some of which may be 0."""
    occurs = counts > 0
    sides = [np.unique(side[occurs], return_inverse=True)[1] for side in (rows, columns)]
    sizes = [np.bincount(side, counts[occurs]).astype(np.int64) for side in sides]
    return Overlap(int(counts.sum()), counts[occurs], sides[0], sides[1], sizes[0], sizes[1])
