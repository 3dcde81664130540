"""Taking the rows with the highest scores first: cumulative gains, lift and Gini."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.arithmetic.rounding import nearest
from streammetrics.core.confidence import Refusal
from streammetrics.core.constraints import Between
from streammetrics.core.results.curves import Curves, Points
from streammetrics.metrics.families import SEVERAL, Family
from streammetrics.metrics.scores.base import (
    ClassScoreMetric,
    ScoreMetric,
    certain_points,
    middle_of,
    one_or_all,
)
from streammetrics.metrics.scores.curves import rows_of
from streammetrics.metrics.scores.roc_area import roc_areas
from streammetrics.metrics.scores.view import corners, staircases

if TYPE_CHECKING:
    from collections.abc import Callable

    from streammetrics.core.types import Floats, Places
    from streammetrics.metrics.scores.view import Corners, Staircase
    from streammetrics.statistics.scores.histogram import ScoreHistogram

__all__ = ["CumulativeGains", "Gini", "LiftCurve", "TopDecileLift"]

_ROUNDED = 2.0**-48  # relative: more than sums of weights are rounded by
_NEAR = 0.1  # below it 2 AUC - 1 of rounded areas has fewer digits than a sum of gaps


class _Gains(NamedTuple):
    depth: Floats
    gain: Floats
    thresholds: Floats


class GainPoints(Points, _Gains):
    """Shares (m,) of all rows and of the positives with a score of at least each threshold."""


class _Lift(NamedTuple):
    depth: Floats
    lift: Floats
    thresholds: Floats


class LiftPoints(Points, _Lift):
    """Shares (m,) of all rows with a score of at least each threshold, and the lift among them."""


class CumulativeGains(ScoreMetric[GainPoints | Curves]):
    """Cumulative gains: the share of positives among the rows with the highest scores.

    Formula: TP / P over (TP + FP) / n, with P positives among n rows.

    The result has the gain TP / P at each depth (TP + FP) / n, from the highest threshold down. The
    first point is (0, 0) at the threshold ``inf``, followed by one per distinct score. Beyond
    `max_bins` distinct scores there is one point per cell, at its lower edge. Every point is exact;
    `exact` says whether there is one for every score. Gains are ``nan`` without positives. (n, K)
    scores give a tuple of curves, one per class.

    Parameters are those of `ScoreMetric`.

    Memory and cost: that of a `ScoreHistogram`; the curve takes 24 bytes per point.

    Reference: the plain formula; ``scikitplot.metrics.plot_cumulative_gain``.

    Example:
        >>> import streammetrics as sm
        >>> curve = sm.CumulativeGains().update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).compute()
        >>> curve.depth.tolist(), curve.gain.tolist()
        ([0.0, 0.25, 0.5, 0.75, 1.0], [0.0, 0.5, 0.5, 1.0, 1.0])
    """

    family = Family.GAINS
    _incomparable = SEVERAL

    interval = certain_points

    def readout(self, scores: ScoreHistogram) -> GainPoints | Curves:
        """Return the curve, or one per class."""
        return one_or_all([_gains(stairs) for stairs in staircases(scores)], self.labels)


class LiftCurve(ScoreMetric[LiftPoints | Curves]):
    """Lift: the rate of positives among the rows with the highest scores, over the overall rate.

    Formula: (TP / P) / ((TP + FP) / n) over (TP + FP) / n, with P positives among n rows.

    The result has the lift at each depth (TP + FP) / n, from the highest threshold down, with one
    point per distinct score. Beyond `max_bins` distinct scores there is one point per cell, at its
    lower edge. Every point is exact; `exact` says whether there is one for every score. Lifts are
    ``nan`` without positives. (n, K) scores give a tuple of curves, one per class.

    Parameters are those of `ScoreMetric`.

    Memory and cost: that of a `ScoreHistogram`; the curve takes 24 bytes per point.

    Reference: the plain formula; ``scikitplot.metrics.plot_lift_curve``.

    Example:
        >>> import streammetrics as sm
        >>> curve = sm.LiftCurve().update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).compute()
        >>> curve.depth.tolist(), curve.lift.round(3).tolist()
        ([0.25, 0.5, 0.75, 1.0], [2.0, 1.0, 1.333, 1.0])
    """

    family = Refusal(
        "its points are quotients of shares of the same rows; CumulativeGains has limits for each "
        "point, and TopDecileLift at one depth"
    )
    _incomparable = SEVERAL

    interval = certain_points

    def readout(self, scores: ScoreHistogram) -> LiftPoints | Curves:
        """Return the curve, or one per class."""
        return one_or_all([_lifts(stairs) for stairs in staircases(scores)], self.labels)


def _gains(stairs: Staircase) -> GainPoints:
    known = corners(stairs)
    with np.errstate(invalid="ignore"):
        gain = known.tp[::-1] / np.float64(stairs.positives)
        depth = (known.tp + known.fp)[::-1] / np.float64(stairs.positives + stairs.negatives)
    cuts = np.append(stairs.probabilities(known.low), math.inf)[::-1]
    return GainPoints(depth, gain, cuts.copy()).told(**rows_of(stairs))


def _lifts(stairs: Staircase) -> LiftPoints:
    depth, gain, cuts = (values[1:] for values in _gains(stairs))
    return LiftPoints(depth, gain / depth, cuts).told(**rows_of(stairs))


class TopDecileLift(ClassScoreMetric):
    """Top decile lift: the rate of positives in the top tenth by score, over the overall rate.

    Formula: (TP / P) / share, with TP of P positives in that share of rows.

    The rows are taken from the highest score down until they make up `share` of all. Of tied rows
    at the end, as many positives are taken as there are on average. Where the end lies in a cell of
    several scores, the bounds have all its negatives first, and all its positives first. ``nan``
    without positives.

    The other parameters are those of `ClassScoreMetric`.

    Args:
        share: The share of all rows that is taken, in (0, 1].

    Raises:
        ValueError: `share` is not in (0, 1].

    Memory and cost: that of a `ScoreHistogram`; `compute` takes about 5 ns per cell.

    Reference: the plain formula; ``scikitplot.metrics.plot_lift_curve`` at one depth.

    Example:
        >>> import streammetrics as sm
        >>> lift = sm.TopDecileLift(share=0.25).update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
        >>> lift.compute()
        2.0
    """

    higher_is_better = True
    family = Family.DEPTH

    share: Annotated[float, Between(0, 1, without=(0,))] = 0.1

    @property
    def value_range(self) -> tuple[float, float]:  # type: ignore[override]  # by the share
        """The smallest and the largest lift."""
        return 0.0, float(1 / self._level)

    @property
    def _level(self) -> Fraction:
        return Fraction(str(self.share))

    def certain(self, stairs: Staircase) -> tuple[float, float, float]:
        """Return the lift with the fewest, the mean and the most positives of the last cell."""
        if not stairs.positives:
            return math.nan, math.nan, math.nan
        return self._found(corners(stairs), None if stairs.counted else stairs.sums_above)

    read = middle_of(certain)

    def _found(
        self, known: Corners, sums_above: Callable[[Places], list[list[int]]] | None = None
    ) -> tuple[float, float, float]:
        """Return the lift with the fewest, the mean and the most positives of the last cell.

        `sums_above` gives what cells and all above them weigh, where the counts are rounded.
        """
        called = known.tp.astype(np.float64) + known.fp
        # The sums of cells are rounded: those that may be where the share ends are taken exactly.
        end, room = self.share * called[0], _ROUNDED * called[0]
        first = np.flatnonzero(called[:-1] >= end + room)[-1:].sum()
        last = max(np.flatnonzero(called[:-1] >= end - room)[-1], first) + 1
        places = np.arange(first, min(last + 1, known.low.size))
        if sums_above is None:
            found = np.stack([known.fp, known.tp], axis=1)[[0, *places]].tolist()
        else:
            found = sums_above(places)
        (negatives, positives), *sums = ([*map(Fraction, pair)] for pair in (*found, (0, 0)))
        share = self._level * (positives + negatives)
        at = max(k for k, (n, p) in enumerate(sums[:-1]) if n + p >= share)
        (fp, tp), (fp_above, tp_above) = sums[at : at + 2]
        p, n, left = tp - tp_above, fp - fp_above, share - tp_above - fp_above
        whole = self._level * positives
        least, most = tp_above + max(left - n, Fraction(0)), tp_above + min(left, p)
        mean = nearest((tp_above + p * left / (p + n)) / whole)
        if known.single[places[at]]:
            return mean, mean, mean
        return nearest(least / whole), mean, nearest(most / whole)


class Gini(ClassScoreMetric):
    """Gini coefficient of a ranking by score, also called accuracy ratio.

    Formula: 2 AUC - 1, with AUC the area under the ROC curve.

    0 by chance, 1 where all positives score above all negatives, -1 where all score below them.
    ``nan`` without rows of both classes.

    Parameters are those of `ClassScoreMetric`.

    Memory and cost: that of a `ScoreHistogram`; `compute` takes about 5 ns per cell.

    Reference: ``2 * sklearn.metrics.roc_auc_score - 1``; Somers' D of score and class.

    Example:
        >>> import streammetrics as sm
        >>> sm.Gini().update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).compute()
        0.5
    """

    higher_is_better = True
    value_range = (-1.0, 1.0)
    family = Family.GINI

    def certain(self, stairs: Staircase) -> tuple[float, float, float]:
        """Return the value for the smallest, the tied and the largest area."""
        if not stairs.positives or not stairs.negatives:
            return math.nan, math.nan, math.nan
        areas, whole = roc_areas(stairs)
        low, value, high = [min(float((2 * area - whole) / whole), 1.0) for area in areas]
        if not stairs.counted and abs(value) < _NEAR:
            value = _between_gaps(stairs)
        return low, value, high

    read = middle_of(certain)


def _between_gaps(stairs: Staircase) -> float:
    """Return Σ n_i / N (g_i + g_(i+1)), with g = TP / P - FP / N at both edges of a cell.

    It is 2 AUC - 1: of TP / P alone the sum is 2 AUC, and of FP / N alone it is 1.
    """
    gaps = np.append(stairs.gaps(), 0.0)
    negatives = np.concatenate([steps.n for steps in stairs.steps()])
    doubled = float(ExactSum.product(negatives, gaps[:-1] + gaps[1:]).to_float())
    return doubled / stairs.negatives
