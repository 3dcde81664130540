"""ROC AUC and average precision: DeLong's test, and its like for the precision-recall curve.

What each row adds to a model's area is known from that model's histogram, exactly, wherever the
row's score is: so are both variances. How far the two go together is read from a canonical sample
of rows, of which up to its size all are there: then the whole is the paired test of DeLong and
others (1988).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.inference.areas import Ladder, precision_influences, structural_components
from streammetrics.inference.comparing.base import Estimate, Joint, PairedTest, estimated
from streammetrics.metrics.families import Family
from streammetrics.metrics.scores.view import staircases
from streammetrics.statistics.joint.sample import RowSample, rows_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import Bools, Floats
    from streammetrics.inference.comparing.base import Side
    from streammetrics.metrics.scores.base import ClassScoreMetric
    from streammetrics.metrics.scores.view import Staircase


DELONG = "DeLong, paired"
INFLUENCE = "influence of rows"


class Influence(NamedTuple):
    """What a row of each cell adds to an area, times the rows of its class."""

    low: Floats  # lower edges of the cells, ascending
    p: Floats
    n: Floats
    of_positive: Floats
    of_negative: Floats

    def at(self, positive: Bools, scores: Floats) -> Floats:
        """Return what rows add."""
        order = np.argsort(scores)  # to look for one beside the other stays in the cache
        cell = np.empty(scores.size, np.intp)
        cell[order] = np.searchsorted(self.low, scores[order], side="right") - 1
        return np.where(positive, self.of_positive[cell], self.of_negative[cell])


class CurveFamily(PairedTest):
    """Areas below curves of (n,) scores, or averages of those of (n, K)."""

    def __init__(self, metric: ClassScoreMetric, max_rows: int) -> None:
        self.metric, self.max_rows = metric, max_rows  # of a sample

    def joints(self, models: Sequence[str], pairs: Sequence[tuple[str, str]]) -> list[Joint]:  # noqa: ARG002 - all pairs at once
        """Return a sample of the rows of all models."""
        (statistic,) = self.metric.statistics()
        sample = RowSample(max_rows=self.max_rows, by_class=True)
        return [Joint(sample, tuple(models), *rows_of(statistic.schema))]

    def estimate(self, one: Side, other: Side, joint: Statistic | None, level: float) -> Estimate:
        """Return the test of the difference, normal as areas are for many rows."""
        assert isinstance(joint, RowSample)
        is_roc = self.metric.family == Family.ROC_AREA
        test = DELONG if is_roc else INFLUENCE
        difference = one.value - other.value
        if not math.isfinite(difference):
            return estimated(difference, math.nan, level, test, math.inf)
        if len(joint.strata) == 2 and joint.counts.tolist() == joint.sums[:, 1].to_float().tolist():  # type: ignore[union-attr]  # an array
            variance = self._by_class(one, other, joint)
        else:
            variance = self._by_row(one, other, joint)
        return estimated(difference, variance, level, test, math.inf)

    def _influence(self, stairs: Staircase) -> Influence:
        return (_roc if self.metric.family == Family.ROC_AREA else _precision)(stairs)

    def _by_class(self, one: Side, other: Side, sample: RowSample) -> float:
        """Return the variance from the exact ones of each class and their correlation."""
        a, b = (self._influence(staircases(side.metric._read()[0])[0]) for side in (one, other))
        total = 0.0
        for positive, (rows, count) in enumerate(zip(sample.strata, sample.counts, strict=True)):
            is_positive = np.full(len(rows.points), bool(positive))
            one_adds = a.at(is_positive, rows.points[:, 1 + one.place])
            other_adds = b.at(is_positive, rows.points[:, 1 + other.place])
            copies = rows.copies.astype(np.float64)
            squares = np.dot(copies, one_adds**2), np.dot(copies, other_adds**2)
            both = math.sqrt(squares[0] * squares[1])
            together = float(np.dot(copies, one_adds * other_adds) / both) if both else 0.0
            exact = [_square(each, bool(positive)) for each in (a, b)]
            spread = sum(exact) - 2 * together * math.sqrt(exact[0] * exact[1])
            if sample.complete:  # the same without the rounding of a correlation near 1
                spread = float(np.dot(copies, (one_adds - other_adds) ** 2) / count)
            # Each class has its own mean, which an area over recall does not have.
            least = 1 if self.metric.family == Family.ROC_AREA else 0
            total += max(spread, 0.0) / (count - least) if count > least else math.nan
        return total

    def _by_row(self, one: Side, other: Side, sample: RowSample) -> float:
        """Return the variance from the rows of the sample alone: they are weighted, or of K."""
        known = np.asarray(sample.sums.to_float())
        whole, total = float(known[:, 0].sum()), 0.0
        for rows, (_, squares) in zip(sample.strata, known, strict=True):
            gap = self._adds(one, rows.points) - self._adds(other, rows.points)
            amount = rows.copies * rows.points[:, -1] ** 2
            if amount.any():
                total += float(np.dot(amount, gap**2)) * squares / float(amount.sum())
        return total / whole**2

    def _adds(self, side: Side, points: Floats) -> Floats:
        """Return what rows add to the average of the classes, times the weight of all rows."""
        (histogram,) = side.metric._read()
        classes = staircases(histogram)
        width = len(classes)
        weighted = width > 1 and self.metric.average == "weighted"
        shares = np.array([stairs.share for stairs in classes])
        seen = (shares > 0) & (shares < 1)
        each = shares if weighted else seen / max(int(seen.sum()), 1)
        total = np.zeros(len(points))
        for k in np.flatnonzero(seen).tolist():  # the others have no area
            adds = self._influence(classes[k])
            positive = points[:, 0] == (k if width > 1 else 1)
            scores = points[:, 1 + side.place * width + k]
            share = np.where(positive, shares[k], 1 - shares[k])
            total += each[k] * adds.at(positive, scores) / share
            if weighted:  # a class that has one more row also counts for more
                total += (positive - shares[k]) * self.metric.read(classes[k])
        return total


def _square(adds: Influence, positive: bool) -> float:
    """Return the mean square of what the rows of a class add."""
    rows = adds.p if positive else adds.n
    squares = (adds.of_positive if positive else adds.of_negative) ** 2
    return float(np.dot(rows, squares) / rows.sum())


def _ladder(stairs: Staircase) -> tuple[Floats, Ladder]:
    """Return the lower edges of all cells, and the cells."""
    low = np.concatenate([step.low for step in stairs.steps()] or [np.zeros(0)])
    cells = Ladder.of(stairs, float(stairs.positives), float(stairs.negatives))
    return low.astype(np.float64, copy=False), cells


def _roc(stairs: Staircase) -> Influence:
    """Return how often a row of each cell is on the right side of one of the other class."""
    low, cells = _ladder(stairs)
    with np.errstate(invalid="ignore", divide="ignore"):
        beats, beaten = structural_components(cells)
        area = float(np.dot(cells.p, beats)) / cells.positives
    return Influence(low, cells.p, cells.n, beats - area, beaten - area)


def _precision(stairs: Staircase) -> Influence:
    """Return what a row of each cell adds to the average precision."""
    low, cells = _ladder(stairs)
    with np.errstate(invalid="ignore", divide="ignore"):
        tp, fp = cells.p_above + cells.p, cells.n_above + cells.n
        area = float(np.dot(cells.p, tp / (tp + fp))) / cells.positives
        (positive, negative), _ = precision_influences(cells, area, trapezoid=False)
    return Influence(low, cells.p, cells.n, positive * cells.positives, negative * cells.negatives)
