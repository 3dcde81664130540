"""Areas under curves of scores, and gains and lift."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Protocol

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum, nearest
from streammetrics.core.confidence import Refusal
from streammetrics.core.configured import require
from streammetrics.core.constraints import Between
from streammetrics.core.fields.histograms import GroupedHistograms
from streammetrics.core.metric import GroupValues, dependent
from streammetrics.core.results.values import Curves, Points
from streammetrics.core.types import NoAverage
from streammetrics.metrics.averages import mean_of_classes
from streammetrics.metrics.families import SEVERAL, Family
from streammetrics.metrics.scores.base import (
    COUNTABLE,
    ClassScoreMetric,
    PrecisionRecallCurve,
    ROCCurve,
    ScoreMetric,
    certain_points,
    corners,
    middle_of,
    one_or_all,
    roc_points,
    rows_of,
    staircases,
)
from streammetrics.statistics.histograms import VersusHistogram

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streammetrics.core.results.values import LabelledArray
    from streammetrics.core.statistic import GroupedStates, Statistic
    from streammetrics.core.types import Array, Floats, Places
    from streammetrics.metrics.scores.base import Corners, CumulativeCounts, Steps
    from streammetrics.statistics.histograms import ScoreHistogram


def auc(x: object, y: object) -> float:
    """Return the area under the points (x, y) by the trapezoidal rule.

    For the area under the curve of streamed rows use `ROCAUC` or `PRAUC`, which can be merged and
    have bounds.

    Args:
        x: Finite numbers (n,), ascending or descending, at least two.
        y: Finite numbers (n,).

    Raises:
        ValueError: The shapes or values do not meet these requirements.

    Example:
        >>> import streammetrics as sm
        >>> curve = sm.ROCCurve().update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).compute()
        >>> sm.auc(curve.fpr, curve.tpr)
        0.75
    """
    sides = [np.asarray(side, np.float64) for side in (x, y)]
    for name, side in zip("xy", sides, strict=True):
        if side.ndim != 1 or len(side) < 2:
            raise ValueError(f"{name} has shape {side.shape}: at least two numbers are needed")
        if not np.isfinite(side).all():
            place = int(np.argmin(np.isfinite(side)))
            raise ValueError(f"{name} is {side[place]} at place {place}: numbers have to be finite")
    along, up = sides
    if len(along) != len(up):
        raise ValueError(f"x and y differ in length: {len(along)} and {len(up)}")
    steps = np.diff(along)
    if (steps < 0).any() and (steps > 0).any():
        turn = int(np.argmax(np.sign(steps) == -np.sign(steps[steps != 0][0])))
        raise ValueError(
            f"x neither ascends nor descends: it turns at place {turn + 1} ({along[turn + 1]:g}); "
            "sort the points by x"
        )
    return math.fsum(np.abs(steps) * (up[1:] / 2 + up[:-1] / 2))


class ROCAUC(ClassScoreMetric[NoAverage]):
    """Area under the ROC curve: the probability that a positive scores above a negative.

    Formula: P(s_+ > s_-) + P(s_+ = s_-) / 2, with s_+ the score of a positive and s_- that of a
    negative.

    Computed in integers and rounded once if all weights are whole numbers, otherwise correct to
    1e-15. A cell of several scores counts as a tie; for `bounds()` all its positives score below,
    or all above, its negatives. With `max_fpr` the value is the partial area up to that false
    positive rate, with `min_tpr` the area above that true positive rate. Both are standardized so
    that chance gives 0.5 and a perfect ranking 1 (McClish 1989). ``nan`` without rows of both
    classes.

    The other parameters are those of `ClassScoreMetric`.

    Args:
        max_fpr: The largest false positive rate, in (0, 1]; ``None``: the whole area.
        average: ``"macro"``, ``"weighted"``, ``"micro"`` or ``None``, over the classes of (n, K)
            scores or, with ``multi_class="ovo"``, ``"macro"`` or ``"weighted"`` over pairs of them.
        min_tpr: The smallest true positive rate, in [0, 1), instead of `max_fpr`; ``None``: the
            whole area.
        multi_class: For (n, K) scores, ``"ovr"``: each class against the rest. ``"ovo"``: each
            class against each other one: the mean over ordered pairs (j, k) of the area for the
            scores of j on the rows of both classes (Hand and Till 2001). It does not depend on the
            numbers of rows of the classes, except that ``"weighted"`` weighs pairs by their rows.

    Raises:
        ValueError: `max_fpr` is not in (0, 1], `min_tpr` is not in [0, 1), both are given, or
            ``"ovo"`` does not allow the `average`.

    Memory and cost: that of a `ScoreHistogram`, with ``"ovo"`` that of K (K - 1) of them;
    `compute` takes about 5 ns per cell.

    Reference: ``sklearn.metrics.roc_auc_score``; with `min_tpr` the same function with the classes
    exchanged and the scores negated.

    Example:
        >>> import streammetrics as sm
        >>> sm.ROCAUC().update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).compute()
        0.75
    """

    higher_is_better = True
    value_range = (0.0, 1.0)
    family = Family.ROC_AREA

    max_fpr: Annotated[float, Between(0, 1, without=(0,))] | None = None
    min_tpr: Annotated[float, Between(0, 1, without=(1,))] | None = None
    multi_class: Literal["ovr", "ovo"] = "ovr"

    def check_parameters(self) -> None:
        """Check that there is at most one limit, and that ``"ovo"`` allows the `average`."""
        super().check_parameters()
        require(self, "min_tpr", self.min_tpr is None or self.max_fpr is None, "None with max_fpr")
        pairs = self.multi_class == "ovo"
        fits = not pairs or self.average in {"macro", "weighted"}
        require(self, "average", fits, "an average with 'ovo': 'macro' or 'weighted'")
        require(self, "multilabel", not (pairs and self.multilabel), "False with 'ovo'")

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the score histogram, or those of all pairs of classes."""
        if self.multi_class == "ovr":
            return super().statistics()
        options = {**self._schema_options, "from_logits": self.from_logits}
        return (VersusHistogram(max_bins=self.max_bins, **options),)

    _pictured_by = ROCCurve

    def _shape(self, scores: ScoreHistogram, *_: object) -> Points | Curves:
        if self.multi_class == "ovo":
            raise TypeError("ROCAUC of pairs of classes has no picture: multi_class='ovr' has one")
        return super()._shape(scores)

    def certain(self, stairs: CumulativeCounts) -> tuple[float, float, float]:
        """Return the area with negatives first, with ties, and with positives first in cells."""
        if not stairs.positives or not stairs.negatives:
            return math.nan, math.nan, math.nan
        side, rate = self._limited(stairs)
        areas, whole = roc_areas(side, rate)
        if rate < 1:  # a rate of 1 changes nothing
            chance = Fraction(rate) * rate / 2
            shares = [Fraction(twice) / whole for twice in areas]
            areas = [(1 + (share - chance) / (rate - chance)) / 2 for share in shares]
            whole = 1
        low, value, high = [min(float(area / whole), 1.0) for area in areas]
        return low, value, high

    read = middle_of(certain)

    def _of_groups(self, *forms: GroupedStates) -> GroupValues | None:
        found = forms[0].values["counted"]
        if not isinstance(found, GroupedHistograms) or (self.max_fpr, self.min_tpr) != (None, None):
            return None
        twice, negatives, positives = found.areas()
        if (negatives * positives.astype(np.float64)).max(initial=0.0) > COUNTABLE:
            return None
        whole = 2 * negatives * positives
        values = np.divide(twice, whole, out=np.full(whole.size, np.nan), where=whole > 0)
        for group in np.flatnonzero(whole >= 1 << 53).tolist():  # too large for float64
            values[group] = int(twice[group]) / int(whole[group])
        if self.zero_division is not None:
            values[(whole == 0) & (negatives + positives > 0)] = self.zero_division
        return GroupValues(values, np.isnan(values))

    def _limited(self, stairs: CumulativeCounts) -> tuple[CumulativeCounts, Fraction | int]:
        """Return the steps from which the area is computed, and the largest false positive rate.

        The area above a true positive rate equals the area up to a false positive rate after
        exchanging the classes and negating the scores.
        """
        if self.min_tpr is None:
            return stairs, 1 if self.max_fpr is None else Fraction(self.max_fpr)
        return stairs.mirrored(), 1 - Fraction(self.min_tpr)

    def _names(self, classes: Sequence[CumulativeCounts]) -> Sequence[object]:
        if self.multi_class == "ovr" or len(classes) == 1:
            return super()._names(classes)
        return list(permutations(self.labels or range(math.isqrt(len(classes)) + 1), 2))

    def _averaged(
        self, classes: tuple[CumulativeCounts, ...], values: list[float]
    ) -> tuple[float | LabelledArray, str]:
        if self.multi_class == "ovr" or len(classes) == 1:
            return super()._averaged(classes, values)
        each = np.array([self._filled(value) for value in values])
        seen = np.array([bool(stairs.positives and stairs.negatives) for stairs in classes])
        labels = self._names(classes)
        rows = np.ones(len(classes))
        if self.average == "weighted":
            unit = max(stairs.unit for stairs in classes)
            totals = [float(stairs.positives + stairs.negatives) for stairs in classes]
            rows = np.ldexp(totals, [stairs.unit - unit for stairs in classes])
        return mean_of_classes(each, rows, lambda: seen, labels, self.zero_division)


def roc_areas(
    stairs: CumulativeCounts, rate: Fraction | int = 1
) -> tuple[list[Fraction | int], Fraction | int]:
    """Return the areas up to a false positive rate, times 2 P N, and 2 P N.

    The areas are the smallest, the one with ties, and the largest.
    """
    if stairs.counted and rate >= 1 and (areas := stairs.histogram.area()):
        twice, unsure = areas
        pairs = 2 * int(stairs.positives) * int(stairs.negatives)
        return [twice - unsure, twice, twice + unsure], pairs
    # Sums of cells and not their rounded total, so that a perfect ranking has exactly 2 P N.
    negatives = Fraction(
        stairs.negatives if stairs.counted else sum(_sum(steps.n) for steps in stairs.steps())
    )
    end = rate * negatives
    last = int(end) if stairs.counted else float(end)
    area: Fraction | int = 0
    slack: Fraction | int = 0
    beyond: Fraction | int = 0
    for steps in stairs.steps():
        n, twice_tp = steps.n, steps.tp_above + steps.tp
        if rate < 1:
            n = n * (steps.fp <= last)
            for cell in np.flatnonzero((steps.fp_above <= last) & (steps.fp > last)).tolist():
                # The limit cuts this cell. The curve within it is a straight line if its rows are
                # tied; otherwise it may stay at the bottom or run along the top.
                # Weighted cells are one block, so that `n` has all the rows above the cut.
                past = end - (int(steps.fp_above[cell]) if stairs.counted else _sum(n))
                across = past * Fraction(steps.p[cell].item())
                tied = across * past / Fraction(steps.n[cell].item())
                area += 2 * past * Fraction(steps.tp_above[cell].item()) + tied
                if not steps.single[cell]:
                    slack += tied
                    beyond += 2 * (across - tied)
        area += _dot(n, twice_tp)
        if not steps.single.all():
            slack += _dot(n, steps.p * ~steps.single)
    whole = 2 * Fraction(stairs.positives) * negatives
    return [area - slack, area, area + slack + beyond], whole


def _sum(x: Array) -> Fraction:
    """Return the exact sum."""
    return ExactSum.of(x).fraction()


def _dot(x: Array, y: Array) -> Fraction | int:
    """Return the exact sum of products."""
    if x.dtype == np.int64:
        return int(np.dot(x, y))
    return ExactSum.product(x, y).fraction()


class _Heights(Protocol):
    """How precision, the height of the curve, changes within each cell."""

    def _tied(self, steps: Steps) -> Floats:
        """Return the mean precision over a cell of one score."""

    def _least(self, steps: Steps, row: float) -> Floats:
        """Return the smallest mean precision over a cell, if each row weighs at least `row`."""

    def _most(self, steps: Steps) -> Floats:
        """Return the largest mean precision over a cell."""


def _precision_area(heights: _Heights, stairs: CumulativeCounts) -> tuple[float, float, float]:
    """Return a lower bound, an estimate and an upper bound of the area over recall.

    Each is a sum over cells of the positives times a precision, divided by all positives.
    """
    if not stairs.positives:
        return math.nan, math.nan, math.nan
    # In units of the positives, products with small precisions are no smaller than the area.
    unit = math.ldexp(1.0, -math.frexp(stairs.positives)[1])
    certain: ExactSum | None = None  # over cells of one score
    sums: list[ExactSum] = []  # over other cells: least, estimate, most
    for steps in stairs.steps():
        positives = steps.p * unit
        tied = positives * heights._tied(steps)
        if steps.single.all():
            part = ExactSum.of(tied[tied > 0])
            certain = part if certain is None else certain + part
            continue
        least = heights._least(steps, stairs.least)
        most = np.maximum(heights._most(steps), least)  # rounding may put it below
        # Halfway through a cell, as if its rows were well mixed.
        tp_halfway = steps.tp_above + (steps.p + stairs.least) / 2
        guess = np.clip(_precision(tp_halfway, steps.fp_above + steps.n / 2), least, most)
        each = [np.where(steps.single, tied, positives * height) for height in (least, guess, most)]
        before = sums or [ExactSum.zero()] * 3
        sums = [total + ExactSum.of(part) for total, part in zip(before, each, strict=True)]
    if certain is not None:
        sums = [certain + total for total in sums] or [certain]
    values = [min(float(total.to_float()) / (stairs.positives * unit), 1.0) for total in sums]
    return values[0], values[len(values) // 2], values[-1]


def _precision(tp: Array, fp: Array) -> Floats:
    """Return tp / (tp + fp), or 1 if nothing is predicted positive."""
    called = tp + fp
    if called.all():
        return np.asarray(tp / called)
    precision = np.ones(called.shape)
    np.divide(tp, called, out=precision, where=called > 0)
    return precision


class AveragePrecision(ClassScoreMetric[NoAverage]):
    """Average precision: the area under the precision-recall curve, as a sum of steps.

    Formula: Σ_i (R_i - R_(i-1)) P_i, with recall R and precision P at the i-th highest threshold.

    For a cell of several scores, let p and n be its positives and negatives, and T and F the true
    and false positives above it. If its positives come first and are tied, it adds the most to the
    sum: p (T + p) / (T + p + F). If its negatives come first and its positives one by one, it adds
    at least p (f(r) + f(p)) / 2, where f(t) = (T + t) / (T + t + F + n) and r is the smallest
    possible weight of a row (1 if all weights are whole numbers, else 0). `compute()` assumes that
    the rows of the cell are well mixed. ``nan`` without positives.

    Parameters are those of `ClassScoreMetric`.

    Memory and cost: that of a `ScoreHistogram`; `compute` takes about 10 ns per cell.

    Reference: ``sklearn.metrics.average_precision_score``.

    Example:
        >>> import streammetrics as sm
        >>> sm.AveragePrecision().update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).compute()
        0.8333333333333333
    """

    higher_is_better = True
    value_range = (0.0, 1.0)
    family = Family.AVERAGE_PRECISION

    _pictured_by = PrecisionRecallCurve

    certain = _precision_area
    read = middle_of(_precision_area)

    def _tied(self, steps: Steps) -> Floats:
        """Return the precision at the threshold of the cell, which applies to all its positives."""
        return _precision(steps.tp, steps.fp)

    def _least(self, steps: Steps, row: float) -> Floats:
        """Return the mean of the first and the last precision; precision is concave in between."""
        first = _precision(steps.tp_above + row, steps.fp)
        return (first + _precision(steps.tp, steps.fp)) / 2

    def _most(self, steps: Steps) -> Floats:
        """Return the precision of all positives of the cell, before its negatives."""
        return _precision(steps.tp, steps.fp_above)


class PRAUC(ClassScoreMetric[NoAverage]):
    """Area under the precision-recall curve by the trapezoidal rule, from (recall 0, precision 1).

    Formula: Σ_i (R_i - R_(i-1)) (P_i + P_(i-1)) / 2, with recall R and precision P at the i-th
    highest threshold.

    Linear interpolation between points of this curve is too optimistic; `AveragePrecision` avoids
    it. For a cell of several scores, let p and n be its positives and negatives, and T and F the
    true and false positives above it. It adds at most the area with its positives first,
    p - F ln((T + p + F) / (T + F)), and at least the trapezoid with its negatives first,
    p (T / (T + F + n) + (T + p) / (T + p + F + n)) / 2. `compute()` assumes that its rows are well
    mixed. ``nan`` without positives.

    Parameters are those of `ClassScoreMetric`.

    Memory and cost: that of a `ScoreHistogram`; `compute` takes about 10 ns per cell.

    Reference: ``sklearn.metrics.auc(recall, precision)`` of ``precision_recall_curve``.

    Example:
        >>> import streammetrics as sm
        >>> sm.PRAUC().update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).compute()
        0.7916666666666666
    """

    higher_is_better = True
    value_range = (0.0, 1.0)
    family = Family.PR_AREA

    _pictured_by = PrecisionRecallCurve

    certain = _precision_area
    read = middle_of(_precision_area)

    def _tied(self, steps: Steps) -> Floats:
        """Return the mean precision of the straight line through the cell."""
        before = _precision(steps.tp_above, steps.fp_above)
        return (before + _precision(steps.tp, steps.fp)) / 2

    def _least(self, steps: Steps, row: float) -> Floats:
        """Return the mean precision on the chord of the curve with negatives first (concave)."""
        return (_precision(steps.tp_above, steps.fp) + _precision(steps.tp, steps.fp)) / 2

    def _most(self, steps: Steps) -> Floats:
        """Return the mean precision of the curve with positives first; no other is higher."""
        above = np.asarray(steps.tp_above + steps.fp_above, np.float64)
        growth = np.zeros_like(above)
        with np.errstate(over="ignore"):
            np.divide(steps.p, above, out=growth, where=above > 0)
        # Of positives that weigh 2**1024 times as much, F ln(growth) / p is nothing.
        growth[np.isinf(growth)] = 0.0
        below = np.zeros_like(above)
        np.divide(steps.fp_above * np.log1p(growth), steps.p, out=below, where=steps.p > 0)
        return 1.0 - below


class LogAUC(ClassScoreMetric[NoAverage]):
    """Area under the ROC curve over the logarithm of the false positive rate, within a range.

    Formula: ∫ TPR d(ln FPR) / ln (b / a), with a and b the ends of the range.

    Every decade of false positive rates has the same weight. This suits tasks in which only the top
    scores matter: screening, retrieval, alerts. Points of the curve are joined by straight lines
    over the logarithm of the rate; at the ends of the range the curve is interpolated linearly in
    the rate. In a cell of several scores, the bounds have all its positives last, or all first.
    ``nan`` without rows of both classes.

    The other parameters are those of `ClassScoreMetric`.

    Args:
        min_fpr: The start of the range, at least 1e-100.
        max_fpr: The end of the range.

    Raises:
        ValueError: `min_fpr` is not below `max_fpr`.

    Memory and cost: that of a `ScoreHistogram`; `compute` takes about 50 ns per cell.

    Reference: Mysinger and Shoichet, J. Chem. Inf. Model. 50 (2010);
    ``torchmetrics.classification.LogAUC``.

    Example:
        >>> import streammetrics as sm
        >>> area = sm.LogAUC(min_fpr=0.01, max_fpr=1.0)
        >>> area.update([0, 0, 1, 1], [0.1, 0.8, 0.35, 0.9]).compute()
        0.5752574989159952
    """

    higher_is_better = True
    value_range = (0.0, 1.0)
    family = Refusal(
        "how the first few false positives vary makes most of it, which is unlike any mean; "
        "ROCAUC(max_fpr=0.1), which asks nearly the same, has limits"
    )

    min_fpr: Annotated[float, Between(1e-100, 1)] = 0.001
    max_fpr: Annotated[float, Between(0, 1, without=(0,))] = 0.1

    def check_parameters(self) -> None:
        """Check that the range is not empty."""
        super().check_parameters()
        require(self, "min_fpr", self.min_fpr < self.max_fpr, "below max_fpr")

    _curve = staticmethod(roc_points)

    def certain(self, stairs: CumulativeCounts) -> tuple[float, float, float]:
        """Return the area with negatives first, with ties, and with positives first in cells."""
        if not stairs.positives or not stairs.negatives:
            return math.nan, math.nan, math.nan
        unit = math.ldexp(1.0, -math.frexp(stairs.negatives)[1])
        ends = [float(stairs.negatives) * unit * rate for rate in (self.min_fpr, self.max_fpr)]
        sums = [ExactSum.zero()] * 3
        for steps in stairs.steps():
            parts = _areas(steps, unit, ends[0], ends[1])
            sums = [total + ExactSum.of(part) for total, part in zip(sums, parts, strict=True)]
        whole = float(stairs.positives) * math.log(self.max_fpr / self.min_fpr)
        low, value, high = [min(float(total.to_float()) / whole, 1.0) for total in sums]
        return low, value, high

    read = middle_of(certain)


def _areas(steps: Steps, unit: float, first: float, last: float) -> tuple[Floats, Floats, Floats]:
    """Return the area of each cell over the log false positives: smallest, tied and largest."""
    p, below, above = (side.astype(np.float64) for side in (steps.p, steps.tp_above, steps.tp))
    n, start, end = (side * unit for side in (steps.n, steps.fp_above, steps.fp))
    left, right = np.maximum(start, first), np.minimum(end, last)
    overlaps = left < right
    across = np.where(overlaps, np.log1p(np.where(overlaps, right - left, 0.0) / left), 0.0)
    inside = np.where(overlaps, (left - start) + (right - start), 0.0) / 2
    share = np.divide(inside, n, out=np.zeros_like(n), where=n > 0)  # unlike p / n it is finite
    tied = np.clip(below + p * share, below, above) * across
    least = np.where(steps.single, tied, below * across)
    return least, tied, np.where(steps.single, tied, above * across)


_ROUNDED = 2.0**-48  # relative; above the rounding error of sums of weights
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


class CumulativeGains(ScoreMetric[GainPoints | Any]):
    """Cumulative gains: the share of positives among the rows with the highest scores.

    Formula: TP / P over (TP + FP) / n, with P positives among n rows.

    The result has the gain TP / P at each depth (TP + FP) / n, from the highest threshold down. The
    first point is (0, 0) at the threshold ``inf``, followed by one per distinct score. Beyond
    `max_bins` distinct scores there is one point per cell, at its lower edge. Every point is exact;
    `exact` is True if every score has a point. Gains are ``nan`` without positives. (n, K)
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


class LiftCurve(ScoreMetric[LiftPoints | Any]):
    """Lift: the rate of positives among the rows with the highest scores, over the overall rate.

    Formula: (TP / P) / ((TP + FP) / n) over (TP + FP) / n, with P positives among n rows.

    The result has the lift at each depth (TP + FP) / n, from the highest threshold down, with one
    point per distinct score. Beyond `max_bins` distinct scores there is one point per cell, at its
    lower edge. Every point is exact; `exact` is True if every score has a point. Lifts are
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


def _gains(stairs: CumulativeCounts) -> GainPoints:
    known = corners(stairs)
    with np.errstate(invalid="ignore"):
        gain = known.tp[::-1] / np.float64(stairs.positives)
        depth = (known.tp + known.fp)[::-1] / np.float64(stairs.positives + stairs.negatives)
    cuts = np.append(stairs.probabilities(known.low), math.inf)[::-1]
    return GainPoints(depth, gain, cuts.copy()).told(**rows_of(stairs))


def _lifts(stairs: CumulativeCounts) -> LiftPoints:
    depth, gain, cuts = (values[1:] for values in _gains(stairs))
    return LiftPoints(depth, gain / depth, cuts).told(**rows_of(stairs))


class TopDecileLift(ClassScoreMetric[NoAverage]):
    """Top decile lift: the rate of positives in the top tenth by score, over the overall rate.

    Formula: (TP / P) / share, with TP of P positives in that share of rows.

    Rows are taken from the highest score down until they make up `share` of all. Of tied rows at
    the end, the expected number of positives is counted. If the end lies in a cell of several
    scores, the bounds have all its negatives first, or all its positives first. ``nan`` without
    positives.

    The other parameters are those of `ClassScoreMetric`.

    Args:
        share: The share of all rows to take, in (0, 1].

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

    @dependent
    def value_range(self) -> tuple[float, float]:
        """The smallest and the largest lift."""
        return 0.0, float(1 / self._level)

    @property
    def _level(self) -> Fraction:
        return Fraction(str(self.share))

    def certain(self, stairs: CumulativeCounts) -> tuple[float, float, float]:
        """Return the lift with the fewest, the mean and the most positives from the last cell."""
        if not stairs.positives:
            return math.nan, math.nan, math.nan
        return self._found(corners(stairs), None if stairs.counted else stairs.sums_above)

    read = middle_of(certain)

    def _found(
        self, known: Corners, sums_above: Callable[[Places], list[list[int]]] | None = None
    ) -> tuple[float, float, float]:
        """Return the lift with the fewest, the mean and the most positives from the last cell.

        `sums_above` gives the exact weights from each cell up; it is used if counts are rounded.
        """
        called = known.tp.astype(np.float64) + known.fp
        # Sums of cells are rounded, so cells where the share may end are summed exactly.
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


class Gini(ClassScoreMetric[NoAverage]):
    """Gini coefficient of a ranking by score, also called accuracy ratio.

    Formula: 2 AUC - 1, with AUC the area under the ROC curve.

    0 by chance, 1 if all positives score above all negatives, -1 if all score below them.
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

    def certain(self, stairs: CumulativeCounts) -> tuple[float, float, float]:
        """Return the value for the smallest, the tied and the largest area."""
        if not stairs.positives or not stairs.negatives:
            return math.nan, math.nan, math.nan
        areas, whole = roc_areas(stairs)
        low, value, high = [min(float((2 * area - whole) / whole), 1.0) for area in areas]
        if not stairs.counted and abs(value) < _NEAR:
            value = _between_gaps(stairs)
        return low, value, high

    read = middle_of(certain)


def _between_gaps(stairs: CumulativeCounts) -> float:
    """Return Σ n_i / N (g_i + g_(i+1)), with g = TP / P - FP / N at the two edges of a cell.

    It equals 2 AUC - 1: the sum is 2 AUC for TP / P alone, and 1 for FP / N alone.
    """
    gaps = np.append(stairs.gaps(), 0.0)
    negatives = np.concatenate([steps.n for steps in stairs.steps()])
    doubled = float(ExactSum.product(negatives, gaps[:-1] + gaps[1:]).to_float())
    return doubled / stairs.negatives
