"""Calibration of probabilities by slope and intercept, and the parts of the Brier score."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Protocol

import numpy as np

from streammetrics.core.confidence import Refusal
from streammetrics.core.constraints import Between
from streammetrics.core.results.values import Interval, KeyedValues
from streammetrics.metrics.families import Family
from streammetrics.metrics.scores.base import ClassScoreMetric, ScoreMetric, outward
from streammetrics.metrics.scores.bins import (
    MOST_BINS,
    Strategy,
    bin_sums,
    floats,
    ratio_or,
    uncertain_bin_sums,
)
from streammetrics.metrics.scores.calibration import check_of
from streammetrics.metrics.scores.logistic import Fit, cells_of, fitted, intercept_of, slope_of
from streammetrics.metrics.scores.view import staircases

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import Floats
    from streammetrics.metrics.scores.logistic import LogitCells
    from streammetrics.metrics.scores.view import Staircase
    from streammetrics.statistics.scores.histogram import ScoreHistogram

__all__ = ["BrierDecomposition", "CalibrationIntercept", "CalibrationSlope"]

_SLACK = 1e-9  # relative: far more than the error of a fit
_PARTS = ("reliability", "resolution", "uncertainty")


class _Coefficient(Protocol):
    """A coefficient of a logistic regression, which is read like the other one."""

    @property
    def _solve(self) -> Callable[[Floats, LogitCells], Fit]:
        """What fits it to cells whose rows are all at given logits."""


def _checked(metric: ClassScoreMetric) -> tuple[Statistic, ...]:
    """Return the score histogram, and the check that scores are probabilities."""
    return (*ClassScoreMetric.statistics(metric), *check_of(metric))


def _fitted(metric: _Coefficient, stairs: Staircase) -> Fit:
    """Return the fit with every cell at its midpoint."""
    return fitted(stairs, metric._solve)


def _at_midpoints(metric: _Coefficient, stairs: Staircase) -> float:
    """Return the coefficient with every cell at its midpoint."""
    return _fitted(metric, stairs).value


def _unrounded(metric: ClassScoreMetric, stairs: Staircase) -> tuple[float, float]:
    """Return the bounds of `certain` unchanged: they already allow for rounding."""
    low, value, high = metric.certain(stairs)
    return (value, value) if stairs.exact else (low, high)


class CalibrationSlope(ClassScoreMetric):
    """Calibration slope: the slope of a logistic regression of labels on logits.

    Formula: log(P / (1 - P)) = a + b z, with z the logit of a row's probability and b the slope.

    1 is ideal. Below 1 probabilities are too extreme, as overfitting makes them; above 1 they are
    not extreme enough. Probabilities are clipped as in `LogLoss`. Exact up to `max_bins` distinct
    scores; beyond that each cell is read at its midpoint, and `bounds()` is infinite. Undefined
    where a threshold separates the classes, or all scores are equal.

    Parameters are those of `ClassScoreMetric`.

    Memory and cost: that of a `ScoreHistogram`; `compute` takes about 200 ns per cell.

    Reference: Cox, "Two further applications of a model for binary regression", Biometrika 45
    (1958); ``statsmodels.api.Logit``.

    Example:
        >>> import streammetrics as sm
        >>> rows = [0, 0, 1, 0, 1, 1], [0.125, 0.25, 0.25, 0.75, 0.75, 0.875]
        >>> round(sm.CalibrationSlope().update(*rows).compute(), 6)
        0.694719
    """

    higher_is_better = None
    family = Family.CALIBRATION_FIT
    _nan_reason = "a threshold separates the classes, or the scores are all equal"

    _solve = staticmethod(slope_of)

    statistics, read, _fit, _sides = _checked, _at_midpoints, _fitted, _unrounded

    def certain(self, stairs: Staircase) -> tuple[float, float, float]:
        """Return the slope between infinite bounds, as no others are known."""
        return -math.inf, self.read(stairs), math.inf


class CalibrationIntercept(ClassScoreMetric):
    """Calibration intercept: the intercept of a logistic regression on logits, with slope 1.

    Formula: log(P / (1 - P)) = a + z, with z the logit of a row's probability and a the intercept.

    0 is ideal; below 0 probabilities are too high on the whole. They are clipped as in `LogLoss`. A
    cell of several scores is read at its midpoint, and `bounds()` holds wherever in their cells the
    scores are. Undefined where there is only one class.

    Parameters are those of `ClassScoreMetric`.

    Memory and cost: that of a `ScoreHistogram`; `compute` takes about 200 ns per cell.

    Reference: Cox, "Two further applications of a model for binary regression", Biometrika 45
    (1958); ``statsmodels.api.GLM`` with the logits as offset.

    Example:
        >>> import streammetrics as sm
        >>> rows = [0, 0, 1, 0, 1, 1], [0.125, 0.25, 0.25, 0.75, 0.75, 0.875]
        >>> abs(sm.CalibrationIntercept().update(*rows).compute()) < 1e-12
        True
    """

    higher_is_better = None
    family = Family.CALIBRATION_FIT

    _solve = staticmethod(intercept_of)

    statistics, read, _fit, _sides = _checked, _at_midpoints, _fitted, _unrounded

    def certain(self, stairs: Staircase) -> tuple[float, float, float]:
        """Return the intercepts for the highest, the middle and the lowest scores of each cell."""
        cells, value = cells_of(stairs), self.read(stairs)
        if math.isnan(value):
            return value, value, value
        low, high = (intercept_of(side, cells).value for side in (cells.high, cells.low))
        slack = _SLACK * (1 + abs(value))
        return low - slack, value, high + slack


class BrierDecomposition(ScoreMetric[KeyedValues]):
    """Brier score decomposition: reliability, resolution and uncertainty (Murphy).

    Formula: Σ_b w_b (f_b - o_b)², Σ_b w_b (o_b - o)², o (1 - o)

    f_b is the mean score of bin b, o_b its fraction of positives, w_b the share of all rows in it,
    and o the fraction of positives among all rows. The Brier score is reliability less resolution
    plus uncertainty, if the scores within each bin are equal. For (n, K) scores each part is the
    sum over classes, each against the rest. `bounds()` holds wherever in their cells the scores
    are.

    The other parameters are those of `ScoreMetric`.

    Args:
        n_bins: How many bins.
        strategy: ``"uniform"`` or ``"quantile"``, as in `CalibrationError`.

    Memory and cost: that of a `ScoreHistogram`; `compute` takes about 50 ns per cell.

    Reference: Murphy, "A new vector partition of the probability score", J. Appl. Meteorol. 12
    (1973).

    Example:
        >>> import streammetrics as sm
        >>> parts = sm.BrierDecomposition().update([0, 1, 1, 1], [0.25, 0.25, 0.75, 0.75])
        >>> parts.compute()
        {'reliability': 0.0625, 'resolution': 0.0625, 'uncertainty': 0.1875}
    """

    family = Refusal(
        "chance alone moves every bin off its score and off the mean, so that two of its parts are "
        "too large by what is not known; BrierScore has limits"
    )

    n_bins: Annotated[int, Between(1, MOST_BINS)] = 10
    strategy: Strategy = "uniform"

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the score histogram, and the check that scores are probabilities."""
        return (*super().statistics(), *check_of(self))

    def readout(self, scores: ScoreHistogram, *_: object) -> KeyedValues:
        """Return the three parts with every cell at its midpoint."""
        return _parts([self._parts_of(stairs) for stairs in staircases(scores)])

    def interval(self, scores: ScoreHistogram, *_: object) -> Interval[KeyedValues]:
        """Return the bounds of each part."""
        spans = [self._certain(stairs) for stairs in staircases(scores)]
        low, high = zip(*spans, strict=True)
        return Interval(_parts(low), _parts(high))

    def _parts_of(self, stairs: Staircase) -> Floats:
        bins = bin_sums(stairs, self.n_bins, self.strategy)
        rows, positives = floats(bins.rows), floats(bins.positives)
        if not rows.any():
            return np.full(3, math.nan)
        total, share = rows.sum(), positives.sum() / rows.sum()
        gap = np.abs(floats(bins.positives - bins.scores))
        apart = ratio_or(positives, rows, share) - share
        reliability = (gap * ratio_or(gap, rows, 0.0)).sum() / total
        return np.array([reliability, (rows * apart * apart).sum() / total, share * (1 - share)])

    def _certain(self, stairs: Staircase) -> tuple[Floats, Floats]:
        value = self._parts_of(stairs)
        if stairs.exact:
            return value, value
        bins = uncertain_bin_sums(stairs, self.n_bins, self.strategy)
        total = stairs.positives + stairs.negatives
        rows, most = bins.p + bins.n, bins.p + bins.n + bins.p_moved + bins.n_moved
        least_share = ratio_or(bins.p, rows + bins.n_moved, 0.0)
        most_share = ratio_or(bins.p + bins.p_moved, rows + bins.p_moved, 1.0)
        near, far = _distances(least_share, most_share, stairs.share, stairs.share)
        resolution = (rows * near).sum() / total, (most * far).sum() / total
        moved = bins.p_moved + bins.n_moved
        low = np.minimum(
            ratio_or(bins.low, rows, 1.0), ratio_or(bins.low + moved * bins.floor, most, 1.0)
        )
        high = np.maximum(
            ratio_or(bins.high, rows, 0.0), ratio_or(bins.high + moved * bins.ceiling, most, 0.0)
        )
        near, far = _distances(least_share, most_share, low, high)
        reliability = (rows * near).sum() / total, (most * far).sum() / total
        ends = [np.array([*pair, value[2]]) for pair in zip(reliability, resolution, strict=True)]
        return outward(ends[0], value, ends[1])


def _distances(
    low: Floats, high: Floats, start: float | Floats, end: float | Floats
) -> tuple[Floats, Floats]:
    """Return the smallest and the largest squared distance of numbers in two intervals."""
    near = np.maximum(np.maximum(low - end, start - high), 0.0)
    far = np.maximum(np.abs(high - start), np.abs(end - low))
    return near * near, far * far


def _parts(classes: Sequence[Floats]) -> KeyedValues:
    values = np.sum(classes, axis=0).tolist()
    return KeyedValues(dict(zip(_PARTS, values, strict=True)), "part")
