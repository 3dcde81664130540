"""Whether predicted probabilities mean what they say: calibration in bins of equal width."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import numpy as np

from streammetrics.core.constraints import Between
from streammetrics.core.exact.sums import ExactSum
from streammetrics.core.results.curves import Curves, Points
from streammetrics.core.results.values import Interval
from streammetrics.metrics.scores.base import ClassScoreMetric, ScoreMetric, one_or_all, outward
from streammetrics.metrics.scores.view import staircases
from streammetrics.statistics.scores.losses import Probabilities

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streammetrics.core.statistic import Statistic
    from streammetrics.metrics.scores.view import Staircase, Steps
    from streammetrics.statistics.scores.histogram import ScoreHistogram

    Floats = NDArray[np.float64]

__all__ = ["CalibrationCurve", "CalibrationError"]

_MOST_BINS = 1 << 20  # more would cost what no state says


class _Calibration(NamedTuple):
    prob_true: Floats
    prob_pred: Floats


class CalibrationPoints(Points, _Calibration):
    """Fraction of positives and mean score of each bin that holds rows, by ascending score."""

    __slots__ = ()


class CalibrationError(ClassScoreMetric):
    """Distance between the fraction of positives and the mean score, over bins of equal width.

    With gap_b that distance in bin b and w_b the part of all rows that it holds, ``"l1"`` is
    the expected calibration error, the sum of w_b gap_b; ``"l2"`` the root of the sum of
    w_b gap_b**2; ``"max"`` the largest gap. Bins hold scores above their lower edge up to their
    upper one, the first also 0. A cell of several scores counts with the middle of its edges;
    `bounds()` holds for any scores that its rows may have, in any bin. ``nan`` of no rows.

    Args:
        n_bins: How many bins.
        norm: ``"l1"``, ``"l2"`` or ``"max"``.
        average: Over the classes of (n, K) scores, each against the rest. The others: see
            `ScoreMetric`.

    Raises:
        ValueError: `n_bins` is not positive, or beyond a million.

    Memory and cost: that of `ScoreHistogram`; reading takes some 50 ns a cell.

    Reference: Guo et al. 2017; ``torchmetrics.classification.BinaryCalibrationError`` but for
    scores on the edge of a bin, which go where ``sklearn.calibration.calibration_curve`` has them.

    Example:
        >>> import streammetrics as sm
        >>> sm.CalibrationError(n_bins=2).update([0, 1, 1, 1], [0.25, 0.25, 0.75, 1.0]).compute()
        0.1875
    """

    higher_is_better = False

    n_bins: Annotated[int, Between(1, _MOST_BINS)] = 15
    norm: Literal["l1", "l2", "max"] = "l1"

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the score histogram, and the check that scores are probabilities."""
        return (*super().statistics(), *_check(self))

    def read(self, stairs: Staircase) -> float:
        """Return the error with every cell in its middle."""
        bins = _read(stairs, self.n_bins)
        rows, gap = _floats(bins.rows), np.abs(_floats(bins.positives - bins.scores))
        if not rows.any():
            return math.nan
        return self._whole(self._parts(gap, rows), rows.sum())

    def certain(self, stairs: Staircase) -> tuple[float, float, float]:
        """Return the error with the least, the middle and the largest gap of each bin."""
        bins = _read_uncertain(stairs, self.n_bins)
        rows, below, above = bins.p + bins.n, bins.p - bins.high, bins.p - bins.low
        # Of the rows that may come, a positive widens a gap above 0 by 1 - score at most, a
        # negative one below 0 by its score. Every norm of a bin is convex, or monotone, in how
        # many of them come: it is largest with all or none.
        up, down = bins.p_moved * (1.0 - bins.floor), bins.n_moved * bins.ceiling
        most = [
            self._parts(np.maximum(gap, 0.0), held)
            for gap, held in (
                (above, rows),
                (above + up, rows + bins.p_moved),
                (-below, rows),
                (down - below, rows + bins.n_moved),
            )
        ]
        least = np.maximum(np.maximum(below - down, -above - up), 0.0)
        held = rows + bins.p_moved + bins.n_moved
        total = stairs.positives + stairs.negatives
        return (
            self._whole(self._parts(least, held), total),
            self.read(stairs),
            self._whole(np.max(most, axis=0), total),
        )

    def _parts(self, gap: Floats, rows: Floats) -> Floats:
        """Return what bins add, where `gap` is what they have in sum over their rows."""
        if self.norm == "l1":
            return gap
        share = _ratio(gap, rows, 0.0)
        return share if self.norm == "max" else gap * share

    def _whole(self, parts: Floats, total: float) -> float:
        if self.norm == "max":
            return float(parts.max())
        error = parts.sum() / total
        return float(error if self.norm == "l1" else np.sqrt(error))


class CalibrationCurve(ScoreMetric[CalibrationPoints | Curves]):
    """Fraction of positives and mean score in each of `n_bins` bins of equal width on [0, 1].

    Bins hold scores above their lower edge up to their upper one, the first also 0; bins without
    rows are left out. A cell of several scores counts with the middle of its edges; `bounds()`
    holds for any scores that its rows may have, in the bins that are shown. (n, K) scores give a
    tuple of curves, each class against the rest.

    Args:
        n_bins: How many bins. The others: see `ScoreMetric`.

    Raises:
        ValueError: `n_bins` is not positive, or beyond a million.

    Memory and cost: that of `ScoreHistogram`; reading takes some 50 ns a cell.

    Reference: ``sklearn.calibration.calibration_curve(strategy="uniform")``.

    Example:
        >>> import streammetrics as sm
        >>> sm.CalibrationCurve(n_bins=2).update([0, 1, 1, 1], [0.25, 0.25, 0.75, 1.0]).compute()
        CalibrationPoints(prob_true=array([0.5, 1. ]), prob_pred=array([0.25 , 0.875]))
    """

    n_bins: Annotated[int, Between(1, _MOST_BINS)] = 5

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the score histogram, and the check that scores are probabilities."""
        return (*super().statistics(), *_check(self))

    def readout(self, scores: ScoreHistogram, *_: Any) -> CalibrationPoints | Curves:
        """Return the curve with every cell in its middle, or one for each class."""
        return one_or_all(
            [_points(_read(stairs, self.n_bins)) for stairs in staircases(scores)], self.labels
        )

    def interval(self, scores: ScoreHistogram, *_: Any) -> Interval[CalibrationPoints | Curves]:
        """Return the curve with the least and with the most that each point may have."""
        spans = [self.certain(stairs) for stairs in staircases(scores)]
        low, high = zip(*spans, strict=True)
        return Interval(one_or_all(low, self.labels), one_or_all(high, self.labels))

    def certain(self, stairs: Staircase) -> tuple[CalibrationPoints, CalibrationPoints]:
        """Return the least and the most that each point of one class may have."""
        read = _read(stairs, self.n_bins)
        value = _points(read)
        if stairs.exact:
            return value, value
        bins, shown = _read_uncertain(stairs, self.n_bins), _floats(read.rows) > 0
        rows, moved = bins.p + bins.n, bins.p_moved + bins.n_moved
        true = (
            _ratio(bins.p, rows + bins.n_moved, 1.0),
            _ratio(bins.p + bins.p_moved, rows + bins.p_moved, 0.0),
        )
        # Rows that may come to a bin can only pull its mean as far as they lie beyond it.
        low = _ratio(bins.low + moved * bins.floor, rows + moved, 0.0)
        high = _ratio(bins.high + moved * bins.ceiling, rows + moved, 1.0)
        mean = (
            np.minimum(low, _ratio(bins.low, rows, math.inf)),
            np.maximum(high, _ratio(bins.high, rows, -math.inf)),
        )
        sides = [
            outward(least[shown], own, most[shown])
            for (least, most), own in zip((true, mean), value, strict=True)
        ]
        low_side, high_side = zip(*sides, strict=True)
        return CalibrationPoints(*low_side), CalibrationPoints(*high_side)


class _Bins(NamedTuple):
    """Exact sums over the rows of each bin, with every cell in its middle."""

    positives: ExactSum
    rows: ExactSum
    scores: ExactSum


class _UncertainBins(NamedTuple):
    """What is certain of each bin, and what is not.

    `p` and `n` are the positives and negatives that cells within the bin hold, `low` and `high`
    the bounds of the sum of their scores. `p_moved` and `n_moved` are those of cells across an
    edge, of which any part may be in the bin, with scores from `floor` to `ceiling`.
    """

    p: Floats
    n: Floats
    low: Floats
    high: Floats
    p_moved: Floats
    n_moved: Floats
    floor: Floats
    ceiling: Floats


def _read(stairs: Staircase, size: int) -> _Bins:
    sums = [ExactSum.zero((size,))] * 3
    for steps in stairs.steps():
        middle, high = _edges(stairs, steps)
        if not steps.single.all():
            middle = np.where(steps.single, middle, (middle + high) / 2)
        at, rows = _bins(middle, size), steps.p + steps.n
        # Mostly every score is of one row, and its product with a weight is not needed.
        weight = None if (rows == 1).all() else rows.astype(np.float64)
        parts = (
            _grouped(at, size, steps.p),
            _grouped(at, size, rows),
            ExactSum.grouped(at, size, middle, weight),
        )
        sums = [total + part for total, part in zip(sums, parts, strict=True)]
    return _Bins(*sums)


def _read_uncertain(stairs: Staircase, size: int) -> _UncertainBins:
    sums = [ExactSum.zero((size,))] * 4
    p_moved, n_moved = np.zeros(size), np.zeros(size)
    floor, ceiling = np.ones(size), np.zeros(size)
    edges = _bounds(size)
    for steps in stairs.steps():
        low, high = _edges(stairs, steps)
        first, last = _bins(low, size), _bins(high, size)
        within = first == last
        at, rows = first[within], (steps.p + steps.n)[within].astype(np.float64)
        parts = (
            _grouped(at, size, steps.p[within]),
            _grouped(at, size, steps.n[within]),
            ExactSum.grouped(at, size, low[within], rows),
            ExactSum.grouped(at, size, high[within], rows),
        )
        sums = [total + part for total, part in zip(sums, parts, strict=True)]
        cells = np.flatnonzero(~within)
        reach = last[cells] - first[cells] + 1
        cell = np.repeat(cells, reach)
        at = np.arange(cell.size) + np.repeat(first[cells] - np.cumsum(reach) + reach, reach)
        p_moved += np.bincount(at, steps.p[cell], size)
        n_moved += np.bincount(at, steps.n[cell], size)
        np.minimum.at(floor, at, np.maximum(low[cell], edges[at]))
        np.maximum.at(ceiling, at, np.minimum(high[cell], edges[at + 1]))
    p, n, low, high = map(_floats, sums)
    return _UncertainBins(p, n, low, high, p_moved, n_moved, floor, ceiling)


def _edges(stairs: Staircase, steps: Steps) -> tuple[Floats, Floats]:
    """Return the edges of cells, which may lie outside [0, 1] where no score does."""
    low, high = stairs.probabilities(steps.low), stairs.probabilities(steps.high)
    return np.maximum(low, 0.0), np.minimum(high, 1.0)


@lru_cache(maxsize=16)
def _bounds(size: int) -> Floats:
    """Return the edges of bins; nobody writes to them."""
    return np.linspace(0.0, 1.0, size + 1)


def _bins(scores: Floats, size: int) -> NDArray[np.intp]:
    """Return the bins of ascending scores."""
    ends = scores.searchsorted(_bounds(size)[1:-1], side="right")
    at = np.zeros(scores.size, np.intp)
    np.add.at(at, ends[ends < scores.size], 1)
    return np.cumsum(at, out=at)


def _grouped(at: NDArray[np.intp], size: int, amount: NDArray[Any]) -> ExactSum:
    if amount.dtype == np.int64:  # below 2**53, so these sums are exact
        return ExactSum.counts(np.bincount(at, amount, size).astype(np.int64))
    return ExactSum.grouped(at, size, amount)


def _floats(sums: ExactSum) -> Floats:
    return np.asarray(sums.to_float())


def _ratio(part: Floats, whole: Floats, nothing: float) -> Floats:
    """Return the quotients, and `nothing` where there are no rows."""
    return np.divide(part, whole, out=np.full_like(part, nothing), where=whole > 0)


def _points(bins: _Bins) -> CalibrationPoints:
    rows = _floats(bins.rows)
    shown = rows > 0
    if not shown.any():
        return CalibrationPoints(np.array([math.nan]), np.array([math.nan]))
    true, pred = _floats(bins.positives)[shown], _floats(bins.scores)[shown]
    return CalibrationPoints(true / rows[shown], pred / rows[shown])


def rows_of_bins(scores: ScoreHistogram, n_bins: int) -> list[Floats]:
    """Return for each class how many rows the bins that a curve shows hold."""
    rows = [_floats(_read(stairs, n_bins).rows) for stairs in staircases(scores)]
    return [held[held > 0] if held.any() else np.zeros(1) for held in rows]


def _check(metric: CalibrationError | CalibrationCurve) -> tuple[Statistic, ...]:
    """Return the statistic that checks probabilities, where they are not made of logits."""
    return () if metric.from_logits else (Probabilities(**metric._schema_options),)
