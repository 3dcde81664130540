"""Shared parts of metrics of scores: parameters, cumulative counts and bins."""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self, TypeVar

import numpy as np

from streammetrics.core.columns.labels import Label, one_kind
from streammetrics.core.columns.scores import log_odds, sigmoid
from streammetrics.core.configured import require
from streammetrics.core.constraints import Bins, NanPolicy
from streammetrics.core.errors import StreamMetricsError
from streammetrics.core.metric import Metric, NumberOrArray, made_once
from streammetrics.core.results.values import Curves, Interval, LabelledArray, Points
from streammetrics.core.types import Floats, NoAverage, V_co
from streammetrics.metrics.averages import (
    ZeroDivision,
    lacking_classes,
    lone_doubt,
    mean_of_classes,
)
from streammetrics.metrics.families import SEVERAL, Family
from streammetrics.statistics.formulas import product_and_error
from streammetrics.statistics.histograms import (
    MAX_BINS,
    JoinedHistogram,
    LabelHistograms,
    ScoreHistogram,
    cells_at,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from fractions import Fraction

    from streammetrics.core.arithmetic.histogram import SortedHistogram
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import Array, ArrayLike, Bools, Numeric, Options, Places


COUNTABLE = 1 << 61  # twice the product of two sums of counts up to this fits in int64
_ROUNDED = 2.0**-48  # above the rounding error of a difference of two shares


@dataclass(eq=False)  # never changed, but creating a frozen one takes three times as long
class Steps:
    """Neighbouring cells in ascending order, and the positives and negatives at or above each.

    `p` and `n` (m,) are the positives and negatives in a cell. `tp` and `fp` are those with a score
    of at least its lower edge, which are predicted positive at that threshold; `tp_above` and
    `fp_above` are those of higher cells only. In a `single` cell all rows have the score `low`.
    `positives` and `negatives` are the sums from each cell up (m + 1,), or only the first of them.
    """

    low: Floats
    high: Floats
    single: Bools
    p: Array
    n: Array
    positives: Array | int
    negatives: Array | int

    @cached_property
    def _tp(self) -> Array:
        return _counted_down(self.positives, self.p)

    @cached_property
    def _fp(self) -> Array:
        return _counted_down(self.negatives, self.n)

    @property
    def tp(self) -> Array:
        """Positives in the cell and above."""
        return self._tp[:-1]

    @property
    def fp(self) -> Array:
        """Negatives in the cell and above."""
        return self._fp[:-1]

    @property
    def tp_above(self) -> Array:
        """Positives above the cell."""
        return self._tp[1:]

    @property
    def fp_above(self) -> Array:
        """Negatives above the cell."""
        return self._fp[1:]

    def mirrored(self, positives: Numeric, negatives: Numeric) -> Steps:
        """Return the cells in reverse order, with the classes exchanged, of so many rows in all."""
        low, high, single = -self.high[::-1], -self.low[::-1], self.single[::-1]
        below_p, below_n = (positives - self._fp)[::-1], (negatives - self._tp)[::-1]
        return Steps(low, high, single, self.n[::-1], self.p[::-1], below_p, below_n)


def _counted_down(sums: Array | int, counts: Array) -> Array:
    if not isinstance(sums, int):
        return sums
    down = np.empty(counts.size + 1, np.int64)
    down[0] = sums
    counts.cumsum(out=down[1:])
    np.subtract(sums, down[1:], out=down[1:])
    return down


class CumulativeCounts:
    """One class against the rest, or against another class: the steps of its ROC and PR curves.

    Amounts are integers (int64 arrays, whose products do not overflow) or float64. In float64 they
    are weights scaled by a power of two, and their sums are correct to about one unit in the last
    place. `least` is the smallest weight that a row can have, or 0 if unknown; `one` is the scaled
    weight of 1; `logits` is whether scores are kept as logits.
    """

    def __init__(self, histogram: SortedHistogram, whole: bool, logits: bool) -> None:
        self.histogram, self.logits = histogram, logits
        self._mirrors: CumulativeCounts | None = None
        self.least, self.one = 1.0 if whole else 0.0, 1.0
        self._weighed: Steps | None = None
        self._only: Steps | None = None  # the steps, once they are read, if they are one block
        self.counted = True  # whether amounts are integers, so that sums of them are exact
        self.unit = 0  # exponent of the power of two that is the unit of amounts
        negatives, positives = histogram.totals()
        if not isinstance(positives, int) or positives * negatives > COUNTABLE:
            self._weighed, self.unit = _weighed(histogram, negatives > 0, positives > 0)
            self.counted = False
            total, positives = positives, float(self._weighed.tp[0])
            negatives = float(self._weighed.fp[0])
            self.least, self.one = 0.0, positives / total if total else 1.0
        self.positives, self.negatives = positives, negatives

    @property
    def exact(self) -> bool:
        """Whether no cell holds several distinct scores."""
        return self.histogram.exact

    @property
    def share(self) -> float:
        """The share of all rows that are positive, 0 without rows."""
        return self.positives / ((self.positives + self.negatives) or 1)

    @property
    def rows(self) -> float:
        """The weight of all rows, not scaled."""
        return float(sum(map(float, self.histogram.totals())))

    def largest_gap(self) -> float:
        """Return max |TP / P - FP / N| over the edges of cells, rounded once; both have rows."""
        if self._weighed is None:
            p, n = int(self.positives), int(self.negatives)
            return max(int(np.abs(s.tp * n - s.fp * p).max()) for s in self.steps()) / (p * n)
        steps = self._weighed
        gaps = np.abs(steps.tp / self.positives - steps.fp / self.negatives)
        # Candidates for the largest gap, within rounding errors, are compared in integers.
        near = np.flatnonzero(gaps >= gaps.max() - _ROUNDED)
        (n, p), *sums = self.sums_above(near)
        return float(max(abs(tp * n - fp * p) for fp, tp in sums) / (p * n))

    def gaps(self) -> Floats:
        """Return TP / P - FP / N at the lower edges of all cells (m,); both have rows.

        Their error is at most 1e-15 of their size, or 1e-30.
        """
        if self._weighed is None:
            every, others = int(self.positives), int(self.negatives)
            gaps = [(s.tp * others - s.fp * every) / (every * others) for s in self.steps()]
            return np.concatenate(gaps)
        (fp, fp_tail, n, n_tail), (tp, tp_tail, p, p_tail) = self.histogram.shares_above()
        (one, lost), (other, more) = product_and_error(tp, n), product_and_error(fp, p)
        tails = (tp * n_tail + tp_tail * n) - (fp * p_tail + fp_tail * p)
        whole, rest = product_and_error(np.asarray(p), n)
        # If it contains all positives and no negatives, the gap is exactly 1.
        scale = whole + (rest + (p * n_tail + p_tail * n))
        return ((one - other) + ((lost - more) + tails)) / scale

    def sums_above(self, places: Places) -> list[list[int]]:
        """Return the exact weights of negatives and positives: in all, then from each cell up."""
        sums: list[list[int]] = self.histogram.sums_above(places)[0].tolist()
        return sums

    def cuts(self, thresholds: Floats) -> Floats:
        """Return thresholds, as logits if scores are kept as logits."""
        if not self.logits:
            return thresholds
        return np.array([log_odds(x) if 0 <= x <= 1 else x * math.inf for x in thresholds.tolist()])

    def mirrored(self) -> CumulativeCounts:
        """Return the same rows with the classes exchanged and the scores negated."""
        twin = copy.copy(self)
        twin._mirrors, twin.positives, twin.negatives = self, self.negatives, self.positives
        return twin

    def probabilities(self, scores: Floats) -> Floats:
        """Return scores as probabilities; they may be kept as logits."""
        return sigmoid(scores) if self.logits else scores

    def quantiles(self, levels: Sequence[Fraction]) -> tuple[Floats, Floats]:
        """Return the edges of the cells in which each share of all rows is reached."""
        edges = cells_at(self.histogram, levels)
        return np.array([low for low, _ in edges]), np.array([high for _, high in edges])

    def steps(self) -> Iterator[Steps]:
        """Yield the cells in blocks, each in ascending order; mirrored blocks come from the top."""
        if self._mirrors is not None:
            for steps in self._mirrors.steps():
                yield steps.mirrored(self.positives, self.negatives)
            return
        if (one := self._weighed or self._only) is not None:
            yield one
            return
        tp, fp = int(self.positives), int(self.negatives)
        for place, (low, high, single, (n, p)) in enumerate(self.histogram.cells()):
            steps = Steps(low, high, single, p, n, tp, fp)
            tp, fp = tp - int(p.sum()), fp - int(n.sum())
            if not place and tp == fp == 0:
                self._only = steps
            yield steps


def _weighed(histogram: SortedHistogram, *has_rows: bool) -> tuple[Steps, int]:
    """Return all cells with scaled float64 amounts, and the exponent that undoes the scaling.

    The heaviest cell is scaled to about 2**300. Products of three sums then stay far from both ends
    of float64 even if one class weighs 2**-1200 of the other; larger ratios raise. `has_rows` is
    whether each class has rows.
    """
    low, high, single, counts = map(np.concatenate, zip(*_transposed(histogram), strict=True))
    exponent = 300 - int(np.frexp(counts.max())[1])
    scaled = np.ldexp(counts, exponent)
    if ((scaled.sum(axis=0) < 2.0**-900) & has_rows).any():
        raise StreamMetricsError(
            "the weights of the two classes lie more than 2**1200 apart; bring them closer together"
        )
    negatives, positives = scaled.T
    p, n = np.ascontiguousarray(positives), np.ascontiguousarray(negatives)
    steps = Steps(low, high, single, p, n, _sums_above(p), _sums_above(n))
    return steps, histogram.unit - exponent


def _transposed(histogram: SortedHistogram) -> Iterator[tuple[Array, ...]]:
    for low, high, single, counts in histogram.cells():
        yield low, high, single, counts.astype(np.float64).T


def _sums_above(mass: Floats) -> Floats:
    """Return the sum of each entry and all later ones (m + 1,), ending with 0.

    Each entry is split into a multiple of a unit and a rest. The total is less than 2**53 units, so
    the multiples add up without error, and the rests are too small for their errors to matter.
    """
    unit = np.ldexp(1.0, np.frexp(mass.sum())[1] - 52)
    coarse = np.floor(mass / unit) * unit
    fine = mass - coarse
    sums = np.zeros(mass.size + 1)
    sums[:-1] = (np.cumsum(coarse[::-1]) + np.cumsum(fine[::-1]))[::-1]
    return sums


def staircases(scores: ScoreHistogram) -> tuple[CumulativeCounts, ...]:
    """Return the cumulative counts of each class, which the metrics of a set share."""
    return made_once(_staircases, scores)


def _staircases(scores: ScoreHistogram) -> tuple[CumulativeCounts, ...]:
    classes = scores.classes()
    logits = scores.keeps_logits
    return tuple(CumulativeCounts(histogram, scores.whole, logits) for histogram in classes)


class Corners(NamedTuple):
    """All cells (m,) in ascending order, and the confusion table at their edges.

    `tp` and `fp` (m + 1,) are those with a score of at least the lower edge of each cell, and 0 at
    the end. `fn` and `tn` are those below, which in float64 keep digits that differences lose. A
    threshold within a cell has counts between those of its edge and of the next one.
    """

    low: Floats
    high: Floats
    single: Bools
    tp: Array
    fp: Array
    fn: Array
    tn: Array


def corners(stairs: CumulativeCounts) -> Corners:
    """Return all cells of a class at once."""
    parts = [(s.low, s.high, s.single, s.tp, s.fp, s.p, s.n) for s in stairs.steps()]
    empty = np.zeros(0), np.zeros(0), np.zeros(0, np.bool_), *(np.zeros(0, int),) * 4
    low, high, single, tp, fp, p, n = map(np.concatenate, zip(*(parts or [empty]), strict=True))
    tp, fp = np.append(tp, 0), np.append(fp, 0)
    if stairs.counted:
        fn, tn = stairs.positives - tp, stairs.negatives - fp
    else:
        fn, tn = (_sums_above(side[::-1])[::-1] for side in (p, n))
    return Corners(low, high, single, tp, fp, fn, tn)


def missing_sides(classes: Sequence[CumulativeCounts]) -> dict[str, Bools]:
    """Return which classes have no positive rows, and which have no negative ones."""
    return {
        "positive rows of": np.array([not stairs.positives for stairs in classes]),
        "negative rows of": np.array([not stairs.negatives for stairs in classes]),
    }


def why_undefined(classes: Sequence[CumulativeCounts], names: Sequence[object]) -> str:
    """Return which rows are missing, empty if each class has positive and negative rows."""
    (first, *more) = classes
    if not more and bool(first.positives) != bool(first.negatives):
        side = "positive" if first.positives else "negative"
        return f"only one class was seen, as every row is {side}"
    why = lacking_classes(names, missing_sides(classes))
    return f"there are {why}" if why else ""


C = TypeVar("C", bound="Points")

# All values of this family are at most 1; a few dozen rounding errors add up to less than this.
ROUNDING = 2.0**-46


class ScoredMetric(Metric[V_co]):
    """Base class of metrics of labels and scores.

    Args:
        pos_label: The positive class of (n,) scores. ``None``: 1 of {0, 1}, {-1, 1} or booleans;
            any other labels raise.
        labels: The two classes of (n,) scores, or the class of each column of (n, K) scores; other
            labels raise. ``None``: any labels, or class k for column k.
        nan_policy: ``"raise"``, or ``"omit"``: rows with a missing value are left out.
        from_logits: Whether scores are logits. They are converted to probabilities row by row:
            (n,) scores by the sigmoid, (n, K) scores by the softmax.
        ignore_index: Rows with this true label are left out, regardless of their other values.
    """

    pos_label: Label | None = None
    labels: Any = None
    nan_policy: NanPolicy = "raise"
    from_logits: bool = False
    ignore_index: int | None = None

    def check_parameters(self) -> None:
        """Convert the labels to one type."""
        self.labels = one_kind(self.labels, self.ignore_index)

    def update(
        self,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        sample_weight: ArrayLike = None,
        counts: ArrayLike = None,
    ) -> Self:
        """Add a batch of rows: labels (n,), and scores (n,) of the positive class or (n, K).

        Raises:
            InvalidBatchError: A column has a wrong type or shape, or a missing value.
        """
        return self.feed(
            {"y_true": y_true, "y_score": y_score, "sample_weight": sample_weight, "counts": counts}
        )

    @property
    def _schema_options(self) -> Options:
        return schema_options(self)

    def _names(self, classes: Sequence[CumulativeCounts]) -> Sequence[object]:
        """Return the names of the classes, or of whatever else is averaged."""
        return self.labels or range(len(classes))

    def _histogram(self, max_bins: int) -> ScoreHistogram:
        options = {"from_logits": self.from_logits, **self._schema_options}
        return ScoreHistogram(max_bins=max_bins, **options)


def _check_multilabel(metric: CurveMetric[object] | ClassScoreMetric[None]) -> None:
    """Check that no parameter contradicts `multilabel`."""
    fits = not metric.multilabel or metric.ignore_index not in {0, 1}
    require(metric, "ignore_index", fits, "neither 0 nor 1 with multilabel=True")


def _label_histograms(
    metric: CurveMetric[object] | ClassScoreMetric[None], max_bins: int, *, joined: bool = False
) -> LabelHistograms:
    """Return the histograms of the labels, for rows with several labels."""
    return LabelHistograms(
        max_bins=max_bins,
        joined=joined,
        from_logits=metric.from_logits,
        labels=metric.labels,
        nan_policy=metric.nan_policy,
        ignore_index=metric.ignore_index,
    )


def schema_options(metric: object) -> Options:
    """Return the parameters that define how labels are read."""
    return {n: getattr(metric, n) for n in ("pos_label", "labels", "nan_policy", "ignore_index")}


def _has_single_scores(_: Metric[object], scores: ScoreHistogram, *__: object) -> bool:
    """Whether every cell holds a single score."""
    return scores.exact


def _missing_rows(metric: ScoredMetric[object], scores: ScoreHistogram, *_: object) -> str:
    """Return which class has no rows, or what else makes the value undefined."""
    classes = staircases(scores)
    return why_undefined(classes, metric._names(classes)) or metric._nan_reason


def middle_of(certain: Callable[..., tuple[float, float, float]]) -> Callable[..., float]:
    """Return a ``read`` method that returns the value of `certain` without its bounds."""

    def read(self: ClassScoreMetric[None], stairs: CumulativeCounts) -> float:
        """Return the value of one class, ``nan`` if it is undefined."""
        return certain(self, stairs)[1]

    return read


def certain_points(metric: Metric[V_co], scores: ScoreHistogram) -> Interval[V_co]:
    """Return the `interval` of curves: every point is at an edge of a cell, so it is exact."""
    value = metric.readout(scores)
    return Interval(value, value)


class ScoreMetric(ScoredMetric[V_co]):
    """Base class of metrics of a score histogram, exact for up to `max_bins` distinct scores.

    The other parameters are those of `ScoredMetric`.

    Args:
        max_bins: The largest number of distinct scores kept apart. Beyond that, neighbouring scores
            share a cell, and `bounds()` holds for any order of the rows within a cell.
    """

    max_bins: Bins = MAX_BINS

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the score histogram."""
        return (self._histogram(self.max_bins),)

    is_exact, _lacking = _has_single_scores, _missing_rows


class CurveMetric(ScoredMetric[V_co]):
    """Base class of curves of one class against the rest, or one curve per class or label.

    The other parameters are those of `ScoredMetric`.

    Args:
        max_bins: The largest number of distinct scores kept apart, as in `ScoreMetric`.
        multilabel: As in `ClassScoreMetric`; the result is one curve per label.
    """

    max_bins: Bins = MAX_BINS
    multilabel: bool = False

    def check_parameters(self) -> None:
        """Check that no parameter contradicts `multilabel`."""
        super().check_parameters()
        _check_multilabel(self)

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the score histogram."""
        if self.multilabel:
            return (_label_histograms(self, self.max_bins),)
        return (self._histogram(self.max_bins),)

    is_exact, _lacking = _has_single_scores, _missing_rows


class ClassScoreMetric(NumberOrArray[NoAverage], ScoredMetric[float | LabelledArray]):
    """Base class of metrics with a value per class, which are averaged for (n, K) scores.

    Args:
        max_bins: The largest number of distinct scores kept apart, as in `ScoreMetric`.
        average: How to average classes. ``"macro"``: the mean of the classes' values.
            ``"weighted"``: the mean weighted by the rows of each class. ``"micro"``: the scores of
            all classes are pooled. ``None``: an array with the value of each class.
        zero_division: The value of a class for which it is undefined. ``None``: ``nan`` for a
            single class; an average leaves out a class without rows, with an
            `UndefinedMetricWarning` that names it. A number is used as it is.
        multilabel: Whether a row may have any number of labels. `y_true` is then an indicator
            matrix (n, L) of 0 and 1, dense or sparse, or sets of `labels`, and scores are (n, L).
            Each label is treated as a class; with `from_logits` each has its own sigmoid. A
            true label equal to `ignore_index` is unknown, and left out of its row.
    """

    family: ClassVar[str | None] = Family.STAIRS

    _formula = ("readout", "read", "certain")
    _facts = (*Metric._facts, "certain", "_sides", "_judged")

    max_bins: Bins = MAX_BINS
    average: Literal["macro", "weighted", "micro"] | NoAverage = "macro"
    zero_division: ZeroDivision = None
    multilabel: bool = False

    def check_parameters(self) -> None:
        """Check that no parameter contradicts `multilabel`."""
        super().check_parameters()
        _check_multilabel(self)

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the score histogram."""
        return (self._histogram(self.max_bins),)

    def _histogram(self, max_bins: int) -> ScoreHistogram:
        joined = self.average == "micro"
        if self.multilabel:
            return _label_histograms(self, max_bins, joined=joined)
        if joined:
            return JoinedHistogram(
                max_bins=max_bins, from_logits=self.from_logits, **self._schema_options
            )
        return super()._histogram(max_bins)

    is_exact, _lacking = _has_single_scores, _missing_rows

    @abstractmethod
    def read(self, stairs: CumulativeCounts) -> float:
        """Return the value of one class, ``nan`` if it is undefined."""

    def certain(self, stairs: CumulativeCounts) -> tuple[float, float, float]:
        """Return a lower bound, the value and an upper bound, each correct up to `ROUNDING`.

        By default the bounds are those of `value_range`.
        """
        low, high = self.value_range or (-math.inf, math.inf)
        value = self.read(stairs)
        return (low, value, high) if value == value else (value, value, value)  # noqa: PLR0124 - tests for nan

    def _shape(self, scores: ScoreHistogram, *_: object) -> Points | Curves:
        """Return the curves that the values are read from."""
        if (pictured := self._pictured()) is not self:
            curves: Points | Curves = pictured._shape(scores)
            return curves
        return one_or_all([self._curve(stairs) for stairs in staircases(scores)], self.labels)

    # The curve plotted for the value.
    _pictured_by: ClassVar[type[Metric] | None] = None

    def _pictured(self) -> Metric:
        if self._pictured_by is None:
            return self
        known = self._pictured_by._parameters
        return self._pictured_by(**{n: v for n, v in self.config.items() if n in known})

    def _curve(self, stairs: CumulativeCounts) -> Points:
        """Return the curve that the value of one class is read from."""
        raise TypeError(f"{type(self).__name__} has no picture")

    def readout(self, scores: ScoreHistogram, *_: object) -> float | LabelledArray:
        """Read the classes and average them."""
        return self._of_classes(scores)[0]

    def _judged(self, scores: ScoreHistogram, *_: object) -> tuple[float | LabelledArray, str]:
        value, doubt = self._of_classes(scores)
        return value, doubt or self._why_nan(value, scores)

    def _of_classes(self, scores: ScoreHistogram) -> tuple[float | LabelledArray, str]:
        classes = staircases(scores)
        return self._averaged(classes, [self.read(stairs) for stairs in classes])

    def interval(self, scores: ScoreHistogram, *_: object) -> Interval[float | LabelledArray]:
        """Bound the classes and average the bounds."""
        classes = staircases(scores)
        spans = [self._sides(stairs) for stairs in classes]
        low, high = (self._averaged(classes, list(side))[0] for side in zip(*spans, strict=True))
        return Interval(low, high)

    def _sides(self, stairs: CumulativeCounts) -> tuple[float, float]:
        if stairs.exact:
            value = self.read(stairs)
            return value, value
        low, high = outward(*self.certain(stairs), self.value_range or (-math.inf, math.inf))
        return float(low), float(high)

    def _averaged(
        self, classes: tuple[CumulativeCounts, ...], values: list[float]
    ) -> tuple[float | LabelledArray, str]:
        if len(classes) == 1:
            has_rows = classes[0].positives or classes[0].negatives
            return (self._filled(values[0]) if has_rows else math.nan), ""
        labels = self._names(classes)
        if not any(stairs.positives or stairs.negatives for stairs in classes):  # no rows
            each = np.full(len(classes), math.nan)
            return (LabelledArray.of(each, labels) if self.average is None else math.nan), ""
        each = np.array(list(map(self._filled, values)))
        if self.average is None:
            return LabelledArray.of(each, labels), lone_doubt(labels, each, missing_sides(classes))
        seen = np.array([stairs.positives > 0 for stairs in classes])
        weight = np.ones(len(classes))
        if self.average == "weighted":
            weight = np.array([float(stairs.share) for stairs in classes])
            if self.multilabel and self.ignore_index is not None:  # labels have different rows
                unit = max(stairs.unit for stairs in classes)
                weight = np.ldexp(
                    [float(stairs.positives) for stairs in classes],
                    [stairs.unit - unit for stairs in classes],
                )
        return mean_of_classes(each, weight, lambda: seen, labels, self.zero_division)

    def _filled(self, value: float) -> float:
        return value if self.zero_division is None or value == value else self.zero_division  # noqa: PLR0124 - tests for nan


def outward(
    low: Numeric, value: Numeric, high: Numeric, ends: tuple[float, float] = (0.0, 1.0)
) -> tuple[Numeric, Numeric]:
    """Return bounds within the ends, widened for rounding and to contain the value."""
    sizes = [np.where(np.isfinite(side), np.abs(side), 0.0) for side in (low, high)]
    margin = ROUNDING * np.maximum(1.0, np.maximum(*sizes))
    return (
        np.maximum(np.minimum(low, value) - margin, ends[0]),
        np.minimum(np.maximum(high, value) + margin, ends[1]),
    )


def one_or_all(curves: Sequence[C], labels: tuple[object, ...] | None) -> C | Curves:
    """Return the only curve, or one per class."""
    return curves[0] if len(curves) == 1 else Curves(curves, labels or range(len(curves)))


class _ROC(NamedTuple):
    fpr: Floats
    tpr: Floats
    thresholds: Floats


class ROCPoints(Points, _ROC):
    """False and true positive rates (m,) of the rows with a score of at least each threshold."""


class _PR(NamedTuple):
    precision: Floats
    recall: Floats
    thresholds: Floats


class PRPoints(Points, _PR):
    """Precision (m + 1,) and recall (m + 1,) at thresholds (m,): score >= threshold is positive."""


class ROCCurve(CurveMetric[ROCPoints | Any]):
    """ROC curve: the true positive rate over the false positive rate, at every threshold.

    Formula: TP / P over FP / N, with P positives and N negatives.

    The first point is (0, 0) at the threshold ``inf``, followed by one per distinct score. Beyond
    `max_bins` distinct scores there is one point per cell, at its lower edge. Every point is exact;
    `exact` is True if every score has a point. A rate is ``nan`` if its class has no rows.
    (n, K) scores give a tuple of curves, one per class.

    Parameters are those of `CurveMetric`.

    Memory and cost: that of a `ScoreHistogram`; the curve takes 24 bytes per point.

    Reference: ``sklearn.metrics.roc_curve(drop_intermediate=False)``.

    Example:
        >>> import streammetrics as sm
        >>> curve = sm.ROCCurve().update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).compute()
        >>> curve.fpr.tolist(), curve.tpr.tolist()
        ([0.0, 0.0, 0.5, 0.5, 1.0], [0.0, 0.5, 0.5, 1.0, 1.0])
        >>> curve.thresholds.tolist()
        [inf, 0.8, 0.4, 0.35, 0.1]
    """

    family = Family.ROC_CURVE
    _incomparable = SEVERAL

    interval = certain_points

    def readout(self, scores: ScoreHistogram) -> ROCPoints | Curves:
        """Return the curve, or one per class."""
        return one_or_all([roc_points(stairs) for stairs in staircases(scores)], self.labels)


class PrecisionRecallCurve(CurveMetric[PRPoints | Any]):
    """Precision-recall curve: the precision over the recall, from the lowest threshold up.

    Formula: TP / (TP + FP) over TP / P, with P positives.

    There is one point per distinct score, and a last one (recall 0, precision 1) without a
    threshold. Beyond `max_bins` distinct scores there is one point per cell, at its lower edge.
    Every point is exact; `exact` is True if every score has a point. Recall is ``nan``
    without positives. (n, K) scores give a tuple of curves, one per class.

    Parameters are those of `CurveMetric`.

    Memory and cost: that of a `ScoreHistogram`; the curve takes 24 bytes per point.

    Reference: ``sklearn.metrics.precision_recall_curve``.

    Example:
        >>> import streammetrics as sm
        >>> curve = sm.PrecisionRecallCurve().update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).compute()
        >>> curve.precision.round(3).tolist(), curve.recall.tolist()
        ([0.5, 0.667, 0.5, 1.0, 1.0], [1.0, 1.0, 0.5, 0.5, 0.0])
        >>> curve.thresholds.tolist()
        [0.1, 0.35, 0.4, 0.8]
    """

    family = Family.PR_CURVE
    _incomparable = SEVERAL

    interval = certain_points

    def readout(self, scores: ScoreHistogram) -> PRPoints | Curves:
        """Return the curve, or one per class."""
        return one_or_all([pr_points(stairs) for stairs in staircases(scores)], self.labels)


def _points(stairs: CumulativeCounts) -> tuple[Array, Array, Floats]:
    """Return the true and false positives at ascending thresholds, and the thresholds."""
    parts = [(steps.tp, steps.fp, steps.low) for steps in stairs.steps()]
    if not parts:
        return np.zeros(0), np.zeros(0), np.zeros(0)
    tp, fp, low = map(np.concatenate, zip(*parts, strict=True))
    return tp, fp, low


def roc_points(stairs: CumulativeCounts) -> ROCPoints:
    """Return the ROC curve of one class."""
    tp, fp, low = _points(stairs)
    with np.errstate(invalid="ignore"):
        fpr = np.append(fp, 0)[::-1] / np.float64(stairs.negatives)
        tpr = np.append(tp, 0)[::-1] / np.float64(stairs.positives)
    thresholds = np.append(stairs.probabilities(low), math.inf)[::-1].copy()
    return ROCPoints(fpr, tpr, thresholds).told(**rows_of(stairs))


def pr_points(stairs: CumulativeCounts) -> PRPoints:
    """Return the precision-recall curve of one class."""
    tp, fp, low = _points(stairs)
    with np.errstate(invalid="ignore"):
        recall = np.append(tp, 0) / np.float64(stairs.positives)
    points = PRPoints(np.append(tp / (tp + fp), 1.0), recall, stairs.probabilities(low))
    return points.told(**rows_of(stairs))


def rows_of(stairs: CumulativeCounts) -> dict[str, object]:
    """Return the information on rows shown in a plot; no counts if weights are fractional."""
    known = {"positives": stairs.positives, "negatives": stairs.negatives}
    return {"exact": stairs.exact, **(known if stairs.counted else {})}


class _DET(NamedTuple):
    fpr: Floats
    fnr: Floats
    thresholds: Floats


class DETPoints(Points, _DET):
    """False positive and false negative rates (m,) at each threshold."""


class DETCurve(CurveMetric[DETPoints | Any]):
    """DET curve (detection error tradeoff): the false negative rate over the false positive rate.

    Formula: FN / P over FP / N, with P positives and N negatives.

    The curve runs from the highest threshold without false negatives to the lowest without false
    positives, with one point per distinct score. Beyond `max_bins` distinct scores there is one
    point per cell, at its lower edge. Every point is exact; `exact` is True if every score has a
    point. A rate is ``nan`` if its class has no rows. (n, K) scores give a tuple of curves, one per
    class.

    Parameters are those of `CurveMetric`.

    Memory and cost: that of a `ScoreHistogram`; the curve takes 24 bytes per point.

    Reference: ``sklearn.metrics.det_curve``.

    Example:
        >>> import streammetrics as sm
        >>> curve = sm.DETCurve().update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).compute()
        >>> curve.fpr.tolist(), curve.fnr.tolist(), curve.thresholds.tolist()
        ([0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.35, 0.4, 0.8])
    """

    family = Family.DET_CURVE
    _incomparable = SEVERAL

    interval = certain_points

    def readout(self, scores: ScoreHistogram) -> DETPoints | Curves:
        """Return the curve, or one per class."""
        return one_or_all([_det_points(stairs) for stairs in staircases(scores)], self.labels)


def _det_points(stairs: CumulativeCounts) -> DETPoints:
    known = corners(stairs)
    cuts = np.append(stairs.probabilities(known.low), math.inf)
    first = int(np.flatnonzero(known.tp == known.tp[0])[-1])
    last = int(np.flatnonzero(known.fp == 0)[0])
    shown = slice(first, max(first, last) + 1)
    with np.errstate(invalid="ignore"):
        fpr = known.fp[shown] / np.float64(stairs.negatives)
        fnr = known.fn[shown] / np.float64(stairs.positives)
    return DETPoints(fpr, fnr, cuts[shown].copy()).told(**rows_of(stairs))


class EqualErrorRate(ClassScoreMetric[NoAverage]):
    """Equal error rate: the false positive rate where it equals the false negative rate.

    Formula: FP / N = FN / P, with P positives and N negatives.

    The ROC curve is interpolated linearly between thresholds. If the point lies in a cell of
    several scores, the bounds are the larger of the two smallest rates in the cell and the smaller
    of the two largest. ``nan`` without rows of both classes.

    Parameters are those of `ClassScoreMetric`.

    Memory and cost: that of a `ScoreHistogram`; `compute` takes about 20 ns per cell.

    Reference: ``scipy.optimize.brentq`` of ``sklearn.metrics.roc_curve``; torchmetrics' EER is
    the mean of both rates at the threshold where they are nearest.

    Example:
        >>> import streammetrics as sm
        >>> sm.EqualErrorRate().update([0, 0, 1, 1, 1], [0.1, 0.4, 0.35, 0.8, 0.9]).compute()
        0.3333333333333333
    """

    higher_is_better = False
    value_range = (0.0, 1.0)
    family = Family.CROSSING

    def certain(self, stairs: CumulativeCounts) -> tuple[float, float, float]:
        """Return the smallest, the interpolated and the largest rate."""
        if not stairs.positives or not stairs.negatives:
            return math.nan, math.nan, math.nan
        return self._found(corners(stairs))

    read = middle_of(certain)

    def _found(self, known: Corners) -> tuple[float, float, float]:
        fpr = known.fp / np.float64(known.fp[0])
        fnr = known.fn / np.float64(known.tp[0])
        # From the lowest threshold up, false positives decrease and false negatives increase.
        cell = int(np.flatnonzero(fpr >= fnr)[-1])
        if cell + 1 == fpr.size:  # a threshold above all scores: nothing is predicted positive
            return (float(fpr[cell]),) * 3
        (most_p, least_p), (least_n, most_n) = fpr[cell : cell + 2], fnr[cell : cell + 2]
        gap, other = most_p - least_n, most_n - least_p
        value = float(least_n + (most_n - least_n) * (gap / (gap + other)))
        if known.single[cell]:
            return value, value, value
        return float(max(least_p, least_n)), value, float(min(most_p, most_n))
