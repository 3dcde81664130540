"""Extremes of the calibration error over missing labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.results.values import Interval
from streammetrics.live.possible.classes import two_classes
from streammetrics.live.possible.orders import is_plain, scores_of
from streammetrics.live.possible.remembered import unknown_of, with_unlabelled
from streammetrics.metrics.scores.base import outward
from streammetrics.metrics.scores.calibration import (
    CalibrationError,
    bin_sums,
    bins_of_cells,
    floats,
    uncertain_bin_sums,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streammetrics.core.metric import Metric
    from streammetrics.core.types import Numeric
    from streammetrics.live.possible.remembered import ScoreCells
    from streammetrics.metrics.scores.base import CumulativeCounts


def asks(metric: Metric, titles: Mapping[str, str]) -> ScoreCells | None:
    """Return the scores to remember, or None if there is no rule for the metric."""
    if type(metric) is not CalibrationError or not is_plain(metric, "n_bins", "norm", "strategy"):
        return None
    return scores_of(metric, titles)


def interval(known: CalibrationError[None], held: ScoreCells, _: object) -> Interval | None:
    """Return the error with the smallest and the largest possible gap of each bin.

    Every norm is monotone in the gap of each bin, and bins share no rows. A gap is largest if all
    or none of the bin's unlabelled rows are positive, and smallest at one of the two counts beside
    the sum of scores. Gaps are compared as they are read, because that sum is rounded.
    """
    both = None if two_classes(known) is None else with_unlabelled(known, held)
    if both is None:
        return None
    stairs, seen = both
    size, strategy = known.n_bins, known.strategy
    if not stairs.exact:
        return _certain(known, stairs, with_unlabelled(known, held, 1))
    bins, unknown = bins_of_cells(stairs, size, strategy), unknown_of(stairs, seen)
    rows = np.bincount(bins, unknown, size)
    sums = bin_sums(stairs, size, strategy)
    wanted = floats(sums.scores - sums.positives)  # positives that would close the gap
    beside = [np.clip(side(wanted), 0, rows) for side in (np.floor, np.ceil)]
    gaps = []
    for counts in (*beside, np.zeros(size), rows):
        more = ExactSum.counts(counts.astype(np.int64))
        gaps.append(np.abs(floats(sums.positives + more - sums.scores)))
    least, most = np.minimum(*gaps[:2]), np.maximum(*gaps[2:])
    return Interval(*[known._of_gaps(gap, floats(sums.rows)) for gap in (least, most)])


def _certain(
    known: CalibrationError[None], negative: CumulativeCounts, other: Numeric
) -> Interval | None:
    """Return the interval for inexact cells, with all unlabelled rows in either class."""
    if other is None:
        return None
    sides = (negative, other[0])
    fewest, bins = (uncertain_bin_sums(each, known.n_bins, known.strategy) for each in sides)
    least, most = known._between(fewest, bins, negative.positives + negative.negatives)
    low, high = outward(least, most, most)
    return Interval(float(low), float(high))
