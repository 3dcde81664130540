"""Confidence limits of clusterings against a truth, and of associations of labels."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.confidence import ConfidenceInterval, rule_of, unsure, without
from streammetrics.core.counting import added_at
from streammetrics.inference.areas import REPLICATES, drawn
from streammetrics.inference.distributions import (
    clopper_pearson,
    limits,
    normal_quantile,
    wider_tails,
)
from streammetrics.inference.tables import UNBOUNDED, at_end
from streammetrics.metrics.clustering.pairs import LabelingMetric, Overlap
from streammetrics.metrics.families import Family
from streammetrics.statistics.tables import LabelPairs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.confidence import ConfidenceRequest
    from streammetrics.core.types import Ints, Places

    Counts = Ints


_FEW = 512  # most pairs of labels for a jackknife
_COSTLY = 8  # relative cost of an adjusted information
_ROUNDED = 2.0**-40  # relative; values and errors that are apart by less are equal


@rule_of(Family.LABELINGS, Family.ADJUSTED_INFORMATION)
def of_labelings(
    metric: LabelingMetric[float], asked: ConfidenceRequest, table: LabelPairs
) -> ConfidenceInterval:
    """Any value of the overlap of two given labelings; the rows are the sample."""
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
        error, bias = _jackknife(metric, value, cells.rows, cells.columns, counts)
        method = f"jackknife of the {counts.size} pairs of labels"
    else:
        draws = drawn(counts, replicates)
        values = [metric.read(overlap(cells.rows, cells.columns, row)) for row in draws]
        error, bias = float(np.std(values)), float(np.mean(values)) - value
        method = f"bootstrap of {counts.size} pairs of labels"
    ends, quantile = metric.value_range or UNBOUNDED, normal_quantile(1 - asked.tail)
    whole = Overlap.of(table)
    # On the scale of logarithms, mutual information near 0 would have no upper limit to speak of.
    scale = ends[0], metric._largest(whole)
    low, high = limits(value, error, quantile, *(scale if math.isfinite(scale[1]) else UNBOUNDED))
    if (alone := _at_largest(metric, asked, value, whole)) is not None:
        if error <= _ROUNDED * value:
            return alone
        low, high = np.fmin(low, alone.low), np.fmax(high, alone.high)
    if error and math.isfinite(value - bias):
        # Chance alone raises most values: the limits are also those without that bias.
        reach = quantile * error
        low = max(ends[0], min(value, np.fmin(low, value - bias - reach)))
        high = max(value, np.fmax(high, value - bias + reach))
        high = min(scale[1] if math.isfinite(ends[1]) else math.inf, high)
    return ConfidenceInterval(float(low), float(high), asked.level, method)


_CELLS = 1 << 20  # most pairs of labels of a population with errors
_POPULATION = 1 << 40  # its rows


def of_agreement(
    metric: object, asked: ConfidenceRequest, statistics: Sequence[object]
) -> ConfidenceInterval | None:
    """Return the limits of rows of labelings without an error; ``None`` for all other states.

    Limits of other kinds, which see no variance in what is all right, are at least as wide.
    """
    table = statistics[0]
    if not isinstance(metric, LabelingMetric) or not isinstance(table, LabelPairs):
        return None
    value = metric.readout(table)
    if not isinstance(value, float) or not table.counts.size:
        return None
    return _at_largest(metric, asked, value, Overlap.of(table))


def _at_largest(
    metric: LabelingMetric[float], asked: ConfidenceRequest, value: float, whole: Overlap
) -> ConfidenceInterval | None:
    """Return the limits of the largest value of these clusters; ``None`` for another value.

    No row is in error. By Clopper and Pearson this still allows errors in a share of all rows, and
    in a larger one of the rows of the smallest class. The lower limit is the smallest of the values
    with either, where errors of a class are spread evenly over labels that it does not have: most
    values fall faster than the share of correct rows, and rise again where most rows are in error.
    """
    ends = (metric.value_range or UNBOUNDED)[0], metric._largest(whole)
    if not math.isfinite(ends[1]) or not value >= ends[1] * (1 - _ROUNDED):
        return None
    sizes, smallest = whole.true_sizes, int(whole.true_sizes.min())
    alone = at_end(value, ends, smallest, asked)
    shape = sizes.size, whole.pred_sizes.size + 1
    if math.prod(shape) > _CELLS:
        return alone
    absent = np.ones(shape, np.bool_)
    absent[whole.rows, whole.columns] = False
    absent[:, -1] = ~absent[:, :-1].any(axis=1)  # a class that has every label gets a new one
    scale, low = max(1, _POPULATION // whole.n), alone.low
    sets = (sizes > 0, whole.n), (np.arange(sizes.size) == sizes.argmin(), smallest)
    for (chosen, n), tail in itertools.product(sets, wider_tails(asked.tail)):
        rate = clopper_pearson(0, n, tail)[1] * chosen
        rows, columns = np.nonzero(absent & chosen[:, None])
        wrong = sizes * rate * scale / absent.sum(axis=1)
        counts = whole.counts * (1 - rate[whole.rows]) * scale, wrong[rows]
        sides = zip((whole.rows, whole.columns, counts[0]), (rows, columns, counts[1]), strict=True)
        places, others, amounts = map(np.concatenate, sides)
        low = min(low, metric.read(overlap(places, others, np.rint(amounts).astype(np.int64))))
    method = f"the value at the error rate that {whole.n:,} rows without an error allow"
    return ConfidenceInterval(low, alone.high, asked.level, f"{method} (Clopper-Pearson)")


_SHARE = 20  # log2 of the rows of which one is left out; of more rows, as large a share


def _jackknife(
    metric: LabelingMetric[float], value: float, rows: Places, columns: Places, counts: Counts
) -> tuple[float, float]:
    """Return the standard error and the bias; a row of each pair of labels is left out in turn.

    Of very many rows, several are: one would not move the value by more than it is rounded.
    """
    n = int(counts.sum())
    if n < 2:
        return 0.0, 0.0
    most = max(1, n >> _SHARE)
    moves = np.zeros(counts.size)  # by each row
    for place, fewer in enumerate(np.minimum(counts, most).tolist()):
        left = counts.copy()
        left[place] -= fewer
        moves[place] = (metric.read(overlap(rows, columns, left)) - value) / fewer
    shares = counts / n
    mean = float(shares @ moves)
    error = math.sqrt((n - 1) * float(shares @ (moves - mean) ** 2))
    return error, (n - 1) * mean / most


def overlap(rows: Places, columns: Places, counts: Counts) -> Overlap:
    """Return the overlap for counts that may be 0."""
    occurs = counts > 0
    sides = [np.unique(side[occurs], return_inverse=True)[1] for side in (rows, columns)]
    sizes = [added_at(side, counts[occurs], side.max(initial=-1) + 1) for side in sides]
    return Overlap(int(counts.sum()), counts[occurs], sides[0], sides[1], sizes[0], sizes[1])
