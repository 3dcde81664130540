"""Values at a threshold, and the best threshold."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Protocol

import numpy as np

from streammetrics.core.arithmetic.exact import nearest, root
from streammetrics.core.confidence import Refusal
from streammetrics.core.configured import require
from streammetrics.core.constraints import AtLeast, Share
from streammetrics.core.results.table import Table
from streammetrics.core.results.values import Curves, Interval, Points
from streammetrics.core.types import FloatSequence, NoAverage
from streammetrics.metrics.averages import beta_weights
from streammetrics.metrics.families import GROWS, SEVERAL, Family
from streammetrics.metrics.scores.base import (
    ROUNDING,
    ClassScoreMetric,
    PrecisionRecallCurve,
    ROCCurve,
    ScoreMetric,
    corners,
    one_or_all,
    staircases,
)
from streammetrics.statistics.formulas import product_and_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from streammetrics.core.types import Array, Document, Floats, Places
    from streammetrics.metrics.scores.base import Corners, CumulativeCounts
    from streammetrics.statistics.histograms import ScoreHistogram

    _Rate = Callable[[CumulativeCounts, Array, Array, Array], Floats]
    _Reached = Callable[
        [ClassScoreMetric[None], CumulativeCounts, Array, Array, Array, float], tuple[Array, float]
    ]


def _fbeta(tp: Floats, fp: Floats, fn: Floats, tn: Floats, beta: float) -> Floats:  # noqa: ARG001 - same signature as the others
    recall, precision = beta_weights(beta)
    right = (recall + precision) * tp
    return right / (right + recall * fn + precision * fp)


def _rates(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> tuple[Floats, Floats]:
    return tp / (tp + fn), tn / (tn + fp)


def _scaled(*counts: Floats) -> tuple[Floats, ...]:
    """Return counts divided by a power of two, so that products of four do not overflow."""
    _, exponent = np.frexp(np.max(counts))
    return tuple(np.ldexp(each, -exponent) for each in counts)


def _determinant(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Return tp tn - fp fn, including the rounding errors of both products."""
    (one, lost), (other, more) = product_and_error(tp, tn), product_and_error(fp, fn)
    return (one - other) + (lost - more)


def _informedness(tp: Floats, fp: Floats, fn: Floats, tn: Floats, _: float) -> Floats:
    tp, fp, fn, tn = _scaled(tp, fp, fn, tn)
    return _determinant(tp, fp, fn, tn) / ((tp + fn) * (fp + tn))


def _correlation(tp: Floats, fp: Floats, fn: Floats, tn: Floats, _: float) -> Floats:
    tp, fp, fn, tn = _scaled(tp, fp, fn, tn)
    sides = np.sqrt((tp + fn) * (fp + tn)) * np.sqrt((tp + fp) * (fn + tn))
    correlation: Floats = np.clip(_determinant(tp, fp, fn, tn) / sides, -1.0, 1.0)
    return correlation


def _kappa(tp: Floats, fp: Floats, fn: Floats, tn: Floats, _: float) -> Floats:
    tp, fp, fn, tn = _scaled(tp, fp, fn, tn)
    chance = (tp + fn) * (fn + tn) + (tp + fp) * (fp + tn)
    return 2 * _determinant(tp, fp, fn, tn) / chance


VALUES: dict[str, Callable[[Floats, Floats, Floats, Floats, float], Floats]] = {
    "f1": lambda tp, fp, fn, tn, _: _fbeta(tp, fp, fn, tn, 1.0),
    "fbeta": _fbeta,
    "jaccard": lambda tp, fp, fn, tn, _: tp / (tp + fp + fn),  # noqa: ARG005 - same signature as the others
    "accuracy": lambda tp, fp, fn, tn, _: (tp + tn) / (tp + fp + fn + tn),
    "balanced_accuracy": lambda tp, fp, fn, tn, _: np.mean(_rates(tp, fp, fn, tn), axis=0),
    "informedness": _informedness,
    "g_mean": lambda tp, fp, fn, tn, _: np.sqrt(np.prod(_rates(tp, fp, fn, tn), axis=0)),
    "matthews_corrcoef": _correlation,
    "cohen_kappa": _kappa,
}


def _exact_fbeta(tp: int, fp: int, fn: int, tn: int, beta: float) -> Fraction:  # noqa: ARG001 - same signature as the others
    recall, precision = map(Fraction, beta_weights(beta))
    right = (recall + precision) * tp
    return right / (right + recall * fn + precision * fp)


def _exact_correlation(tp: int, fp: int, fn: int, tn: int, _: float) -> Fraction:
    apart = tp * tn - fp * fn
    return Fraction(apart * abs(apart), (tp + fn) * (fp + tn) * (tp + fp) * (fn + tn))


def _exact_kappa(tp: int, fp: int, fn: int, tn: int, _: float) -> Fraction:
    chance = (tp + fn) * (fn + tn) + (tp + fp) * (fp + tn)
    return Fraction(2 * (tp * tn - fp * fn), chance)


def _exact_informedness(tp: int, fp: int, fn: int, tn: int, _: float) -> Fraction:
    return Fraction(tp * tn - fp * fn, (tp + fn) * (fp + tn))


# The same in exact arithmetic, for tables where the functions above are defined.
EXACTLY: dict[str, Callable[[int, int, int, int, float], Fraction]] = {
    "f1": lambda tp, fp, fn, tn, _: _exact_fbeta(tp, fp, fn, tn, 1.0),
    "fbeta": _exact_fbeta,
    "jaccard": lambda tp, fp, fn, tn, _: Fraction(tp, tp + fp + fn),  # noqa: ARG005 - same signature as the others
    "accuracy": lambda tp, fp, fn, tn, _: Fraction(tp + tn, tp + fp + fn + tn),
    "balanced_accuracy": lambda *table: (1 + _exact_informedness(*table)) / 2,
    "informedness": _exact_informedness,
    "g_mean": lambda tp, fp, fn, tn, _: Fraction(tp * tn, (tp + fn) * (tn + fp)),
    "matthews_corrcoef": _exact_correlation,
    "cohen_kappa": _exact_kappa,
}
SQUARED = ("g_mean", "matthews_corrcoef")  # squared with their sign, which keeps their order


class Target(Protocol):
    """A value that is compared between thresholds, under a condition that it may have to meet."""

    def _reached(
        self, stairs: CumulativeCounts, tp: Array, fp: Array, tn: Array, margin: float
    ) -> tuple[Array, float]:
        """Return the scaled value at each threshold, and the scale.

        Args:
            stairs: The cumulative counts of the class.
            tp: The true positives at each threshold, (m,).
            fp: The false positives, (m,).
            tn: The true negatives, (m,).
            margin: How far the condition must be exceeded.
        """

    def _undefined(self, stairs: CumulativeCounts) -> bool:
        """Whether a required class has no rows."""


def _best(
    target: Target, stairs: CumulativeCounts, margin: float = 0.0, *, within: bool = False
) -> float:
    """Return the best value over all thresholds, ``nan`` if it is undefined."""
    if target._undefined(stairs):
        return math.nan
    known = corners(stairs)
    places = [(known.tp, known.fp, known.tn)]
    if within:
        mixed = ~known.single
        places.append((known.tp[:-1][mixed], known.fp[1:][mixed], known.tn[1:][mixed]))
        places.append((known.tp[1:][mixed], known.fp[:-1][mixed], known.tn[:-1][mixed]))
    reached = [target._reached(stairs, *place, margin) for place in places]
    return max(float(values.max(initial=0) / scale) for values, scale in reached)


def highest(target: Target, stairs: CumulativeCounts) -> float:
    """Return the best value over the thresholds at the edges of cells."""
    return _best(target, stairs)


def certainly_highest(target: Target, stairs: CumulativeCounts) -> tuple[float, float, float]:
    """Return a lower bound, the best value at edges, and an upper bound from corners of cells."""
    value = _best(target, stairs)
    margin = 0.0 if stairs.counted else ROUNDING
    low = _best(target, stairs, margin) if margin else value
    return low, value, _best(target, stairs, -margin, within=True)


def lacks_a_class(_: object, stairs: CumulativeCounts) -> bool:
    """Whether one of the two classes has no rows."""
    return not stairs.positives or not stairs.negatives


def lacks_positives(_: object, stairs: CumulativeCounts) -> bool:
    """Whether there are no positives."""
    return not stairs.positives


class KolmogorovSmirnov(ClassScoreMetric[NoAverage]):
    """Kolmogorov-Smirnov statistic: the largest distance between the classes' score distributions.

    Formula: max_t |TP / P - FP / N|, with P positives and N negatives.

    ``nan`` without rows of both classes.

    Parameters are those of `ClassScoreMetric`.

    Memory and cost: that of a `ScoreHistogram`; `compute` takes about 5 ns per cell.

    Reference: ``scipy.stats.ks_2samp(positives, negatives).statistic``.

    Example:
        >>> import streammetrics as sm
        >>> sm.KolmogorovSmirnov().update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).compute()
        0.5
    """

    higher_is_better = True
    value_range = (0.0, 1.0)
    family = Family.DISTANCE

    _pictured_by = ROCCurve

    def read(self, stairs: CumulativeCounts) -> float:
        """Return the largest distance at an edge of a cell."""
        return math.nan if self._undefined(stairs) else stairs.largest_gap()

    def certain(self, stairs: CumulativeCounts) -> tuple[float, float, float]:
        """Return the largest distance at edges of cells, twice, and that at corners of cells."""
        value = self.read(stairs)
        return value, value, certainly_highest(self, stairs)[2]

    def _reached(
        self, stairs: CumulativeCounts, tp: Array, fp: Array, tn: Array, margin: float
    ) -> tuple[Array, float]:
        """Return the distance times P N, an integer if rows are counted."""
        gaps = np.abs(tp * stairs.negatives - fp * stairs.positives)
        return gaps, stairs.positives * stairs.negatives

    _undefined = lacks_a_class


def _recall(stairs: CumulativeCounts, tp: Array, fp: Array, tn: Array) -> Floats:  # noqa: ARG001 - same signature as the others
    """Return the true positive rates (sensitivities) at thresholds."""
    return tp / np.float64(stairs.positives)


def _specificity(stairs: CumulativeCounts, tp: Array, fp: Array, tn: Array) -> Floats:  # noqa: ARG001 - same signature as the others
    """Return the true negative rates."""
    return tn / np.float64(stairs.negatives)


def _precision(stairs: CumulativeCounts, tp: Array, fp: Array, tn: Array) -> Floats:  # noqa: ARG001 - same signature as the others
    """Return the precisions, 1 if nothing is predicted positive."""
    found = tp + fp
    rates = np.ones(found.size)
    np.divide(tp, found, out=rates, where=found > 0)
    return rates


def _where(value: _Rate, required: _Rate, parameter: str) -> _Reached:
    """Return a function for one rate if another is at least the metric's parameter, else 0."""

    def reached(
        metric: ClassScoreMetric[None],
        stairs: CumulativeCounts,
        tp: Array,
        fp: Array,
        tn: Array,
        margin: float,
    ) -> tuple[Array, float]:
        least = min(getattr(metric, parameter) + margin, 1.0)
        enough = required(stairs, tp, fp, tn) >= least
        return np.where(enough, value(stairs, tp, fp, tn), 0.0), 1.0

    return reached


class RecallAtPrecision(ClassScoreMetric[NoAverage]):
    """Recall at precision: the highest recall of any threshold with a precision of at least `p`.

    Formula: max_t (TP / P) where TP / (TP + FP) >= p

    0 if no threshold reaches the precision, which is compared as the float64 quotient
    TP / (TP + FP). ``nan`` without positives.

    The other parameters are those of `ClassScoreMetric`.

    Args:
        p: The required precision, in [0, 1].
        average: How to average the classes of (n, K) scores, as in `ClassScoreMetric`.

    Raises:
        ValueError: `p` is not in [0, 1].

    Memory and cost: that of a `ScoreHistogram`; `compute` takes about 5 ns per cell.

    Reference: the largest of ``recall[precision >= p]`` of
    ``sklearn.metrics.precision_recall_curve``.

    Example:
        >>> import streammetrics as sm
        >>> sm.RecallAtPrecision(p=0.9).update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).compute()
        0.5
    """

    higher_is_better = True
    value_range = (0.0, 1.0)
    family = Family.BEST_RATE

    p: Share

    _pictured_by = PrecisionRecallCurve

    read, certain = highest, certainly_highest

    _reached = _where(_recall, _precision, "p")

    _undefined = lacks_positives


class PrecisionAtRecall(ClassScoreMetric[NoAverage]):
    """Precision at recall: the highest precision of any threshold with a recall of at least `r`.

    Formula: max_t (TP / (TP + FP)) where TP / P >= r

    Recall is compared as the float64 quotient TP / P. The threshold above all scores has recall 0
    and precision 1. ``nan`` without positives.

    The other parameters are those of `ClassScoreMetric`.

    Args:
        r: The required recall, in [0, 1].
        average: How to average the classes of (n, K) scores, as in `ClassScoreMetric`.

    Raises:
        ValueError: `r` is not in [0, 1].

    Memory and cost: that of a `ScoreHistogram`; `compute` takes about 5 ns per cell.

    Reference: the largest of ``precision[recall >= r]`` of
    ``sklearn.metrics.precision_recall_curve``.

    Example:
        >>> import streammetrics as sm
        >>> sm.PrecisionAtRecall(r=0.5).update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).compute()
        1.0
    """

    higher_is_better = True
    value_range = (0.0, 1.0)
    family = Family.BEST_RATE

    r: Share

    _pictured_by = PrecisionRecallCurve

    read, certain = highest, certainly_highest

    _reached = _where(_precision, _recall, "r")

    _undefined = lacks_positives


class SensitivityAtSpecificity(ClassScoreMetric[NoAverage]):
    """Sensitivity at specificity: the highest TP / P of any threshold with TN / N at least `s`.

    Formula: max_t (TP / P) where TN / N >= s

    Specificity is compared as the float64 quotient. ``nan`` without rows of both classes.

    The other parameters are those of `ClassScoreMetric`.

    Args:
        s: The required specificity, in [0, 1].
        average: How to average the classes of (n, K) scores, as in `ClassScoreMetric`.

    Raises:
        ValueError: `s` is not in [0, 1].

    Memory and cost: that of a `ScoreHistogram`; `compute` takes about 5 ns per cell.

    Reference: the largest of ``tpr[1 - fpr >= s]`` of ``sklearn.metrics.roc_curve``.

    Example:
        >>> import streammetrics as sm
        >>> metric = sm.SensitivityAtSpecificity(s=0.5)
        >>> metric.update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).compute()
        1.0
    """

    higher_is_better = True
    value_range = (0.0, 1.0)
    family = Family.BEST_RATE

    s: Share

    _pictured_by = ROCCurve

    read, certain = highest, certainly_highest

    _reached = _where(_recall, _specificity, "s")

    _undefined = lacks_a_class


class SpecificityAtSensitivity(ClassScoreMetric[NoAverage]):
    """Specificity at sensitivity: the highest TN / N of any threshold with TP / P at least `s`.

    Formula: max_t (TN / N) where TP / P >= s

    Sensitivity is compared as the float64 quotient. ``nan`` without rows of both classes.

    The other parameters are those of `ClassScoreMetric`.

    Args:
        s: The required sensitivity, in [0, 1].
        average: How to average the classes of (n, K) scores, as in `ClassScoreMetric`.

    Raises:
        ValueError: `s` is not in [0, 1].

    Memory and cost: that of a `ScoreHistogram`; `compute` takes about 5 ns per cell.

    Reference: the largest of ``1 - fpr[tpr >= s]`` of ``sklearn.metrics.roc_curve``.

    Example:
        >>> import streammetrics as sm
        >>> metric = sm.SpecificityAtSensitivity(s=0.5)
        >>> metric.update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).compute()
        1.0
    """

    higher_is_better = True
    value_range = (0.0, 1.0)
    family = Family.BEST_RATE

    s: Share

    read, certain = highest, certainly_highest

    _reached = _where(_specificity, _recall, "s")

    _undefined = lacks_a_class


class _Counts(NamedTuple):
    tn: Floats
    fp: Floats
    fn: Floats
    tp: Floats
    thresholds: Floats


class ConfusionPoints(Points, _Counts):
    """Entries (m,) of the two-by-two confusion table at each threshold, and rates of them.

    A rate is ``nan`` where it is 0/0.
    """

    __slots__ = ()

    @property
    def tpr(self) -> Floats:
        """The true positive rate, or recall."""
        return _share(self.tp, self.fn)

    @property
    def fpr(self) -> Floats:
        """The false positive rate."""
        return _share(self.fp, self.tn)

    @property
    def precision(self) -> Floats:
        """The share of the rows predicted positive that are."""
        return _share(self.tp, self.fp)


def _share(part: Floats, rest: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        return part / (part + rest)


class ConfusionAtThresholds(ScoreMetric[ConfusionPoints | Any]):
    """Confusion table at thresholds: true and false positives and negatives at each of them.

    Formula: TP(t) = Σ w [y = 1, s >= t], with FP, FN and TN likewise.

    Without `thresholds` there is one table per distinct score, from the highest down; beyond
    `max_bins` distinct scores there is one per cell, at its lower edge. Every table is then exact,
    and `exact` is True if every score has a table. The result also has the rates ``tpr``,
    ``fpr`` and ``precision``. With given thresholds, `compute()` counts as positive only the rows
    that certainly are, and `bounds()` holds wherever scores lie in their cells. (n, K) scores give
    a tuple, one per class.

    The other parameters are those of `ScoreMetric`.

    Args:
        thresholds: The thresholds, in the order of the result; ``None``: all scores. With
            `from_logits` they are probabilities.

    Memory and cost: that of a `ScoreHistogram`; the result takes 40 bytes per threshold.

    Reference: ``sklearn.metrics.confusion_matrix_at_thresholds``.

    Example:
        >>> import streammetrics as sm
        >>> table = sm.ConfusionAtThresholds(thresholds=[0.35, 0.5])
        >>> table.update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).compute().to_frame("polars").rows()
        [(1.0, 1.0, 0.0, 2.0, 0.35), (2.0, 0.0, 1.0, 1.0, 0.5)]
    """

    family = Refusal(GROWS.format("ROCCurve, of rates,"))
    _incomparable = SEVERAL

    thresholds: FloatSequence | None = None

    def check_parameters(self) -> None:
        """Check that thresholds are numbers."""
        super().check_parameters()
        known = [] if self.thresholds is None else self.thresholds
        require(
            self,
            "thresholds",
            all(isinstance(x, int | float) and not math.isnan(x) for x in known),
            "a sequence of numbers",
        )

    def readout(self, scores: ScoreHistogram) -> ConfusionPoints | Curves:
        """Return the table, or one per class."""
        tables = [certain for certain, _ in map(self._sides, staircases(scores))]
        return one_or_all(tables, self.labels)

    def interval(self, scores: ScoreHistogram, *_: object) -> Interval[ConfusionPoints | Curves]:
        """Return the smallest and the largest count of each entry.

        Positives are fewest if only rows count that certainly reach a threshold; negatives are
        fewest if all rows count that may reach it.
        """
        sides = [_ordered(*self._sides(stairs)) for stairs in staircases(scores)]
        low, high = zip(*sides, strict=True)
        return Interval(one_or_all(low, self.labels), one_or_all(high, self.labels))

    def is_exact(self, scores: ScoreHistogram, *_: object) -> bool:
        """Whether no threshold is left out and none lies within a cell of several scores."""
        if self.thresholds is None:
            return scores.exact
        places = (self._places(stairs, corners(stairs)) for stairs in staircases(scores))
        return all((certain == possible).all() for certain, possible in places)

    def _sides(self, stairs: CumulativeCounts) -> tuple[ConfusionPoints, ConfusionPoints]:
        """Return the table of rows that are certainly positive, and of rows that may be."""
        known = corners(stairs)
        if self.thresholds is None:
            down = np.arange(known.low.size)[::-1]
            points = _points(stairs, known, down, stairs.probabilities(known.low[down]))
            return points, points
        cuts = np.array(self.thresholds, np.float64)
        low, high = (_points(stairs, known, places, cuts) for places in self._places(stairs, known))
        return low, high

    def _places(self, stairs: CumulativeCounts, known: Corners) -> tuple[Places, Places]:
        """Return the first cells whose scores certainly reach each threshold, and may reach it."""
        cuts = stairs.cuts(np.array(self.thresholds, np.float64))
        return np.searchsorted(known.low, cuts), np.searchsorted(known.high, cuts)


def _ordered(
    certain: ConfusionPoints, possible: ConfusionPoints
) -> tuple[ConfusionPoints, ConfusionPoints]:
    return (
        certain._replace(tn=possible.tn, fn=possible.fn),
        possible._replace(tn=certain.tn, fn=certain.fn),
    )


def _points(
    stairs: CumulativeCounts, known: Corners, places: Places, cuts: Floats
) -> ConfusionPoints:
    if stairs.counted:
        table = (known.tn, known.fp, known.fn, known.tp)
        tn, fp, fn, tp = (entry[places].astype(np.float64) for entry in table)
    else:
        (fp, tp), (tn, fn) = (each.T for each in stairs.histogram.parted(places))
    return ConfusionPoints(tn, fp, fn, tp, cuts)


class _Best(NamedTuple):
    threshold: float
    value: float


class BestPoint(Points, _Best):
    """The best threshold, and the value of the metric there."""

    __slots__ = ()

    def to_dict(self) -> Document:
        """Return both numbers."""
        return self._asdict()

    def _table(self) -> Table:
        return Table({}, {name: np.array([value]) for name, value in self._asdict().items()})

    __repr__ = _Best.__repr__


class BestThreshold(ScoreMetric[BestPoint | Any]):
    """Best threshold: where a metric of the confusion table is best, and its value there.

    Formula: argmax_t m(t), with m(t) the metric at threshold t.

    The thresholds are the scores seen and ``inf``; of equally good ones the highest is taken.
    Beyond `max_bins` distinct scores they are the lower edges of cells, and `bounds()` contains the
    best value and its threshold over all scores: at best, a threshold within a cell passes all
    positives of the cell and no negatives. ``nan`` without rows.

    The other parameters are those of `ScoreMetric`.

    Args:
        for_: The metric to optimize: ``"f1"``, ``"fbeta"``, ``"jaccard"``, ``"accuracy"``,
            ``"balanced_accuracy"``, ``"informedness"`` (Youden's J), ``"g_mean"``,
            ``"matthews_corrcoef"`` or ``"cohen_kappa"``; or a matrix of costs
            ``((tn, fp), (fn, tp))``, to minimize the mean cost.
        beta: The beta of ``"fbeta"``.

    Raises:
        ValueError: `for_` is none of these, or a correct decision costs more than a wrong one.

    Memory and cost: that of a `ScoreHistogram`; `compute` takes about 50 ns per cell.

    Reference: the best of ``sklearn.metrics.confusion_matrix_at_thresholds``, as
    ``sklearn.model_selection.TunedThresholdClassifierCV`` looks for it.

    Example:
        >>> import streammetrics as sm
        >>> sm.BestThreshold(for_="f1").update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).compute()
        BestPoint(threshold=0.35, value=0.8)
        >>> costs = ((0, 1), (5, 0))
        >>> sm.BestThreshold(for_=costs).update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).compute()
        BestPoint(threshold=0.35, value=0.25)
    """

    family = Refusal(
        "where a value is best varies unlike any mean, and the value there is best of these rows "
        "only; the same metric at that threshold, on other rows, has one"
    )
    _incomparable = SEVERAL

    _nan_reason = "the scores are all equal"

    for_: str | tuple[tuple[float, ...], ...] = "f1"
    beta: Annotated[float, AtLeast(0)] = 1.0

    def check_parameters(self) -> None:
        """Check that `for_` names a metric, or is a matrix in which errors cost the most."""
        super().check_parameters()
        if isinstance(self.for_, str):
            known = ", ".join(map(repr, VALUES))
            require(self, "for_", self.for_ in VALUES, f"a matrix of costs or one of {known}")
            return
        costs = np.array(self.for_ if isinstance(self.for_, tuple) else (), object)
        numbers = costs.shape == (2, 2) and all(isinstance(x, int | float) for x in costs.flat)
        fits = numbers and costs[0, 0] <= costs[0, 1] and costs[1, 1] <= costs[1, 0]
        words = "a metric's name, or costs ((tn, fp), (fn, tp)) with fp >= tn and fn >= tp"
        fits = fits and all(map(math.isfinite, costs.flat))
        require(self, "for_", bool(fits), words)

    def readout(self, scores: ScoreHistogram) -> BestPoint | Curves:
        """Return the best threshold at an edge, or one per class."""
        return one_or_all([self._best(stairs)[1] for stairs in staircases(scores)], self.labels)

    def interval(self, scores: ScoreHistogram, *_: object) -> Interval[BestPoint | Curves]:
        """Return bounds of the best value and of its threshold."""
        sides = [self._best(stairs) for stairs in staircases(scores)]
        low, _, high = zip(*sides, strict=True)
        return Interval(one_or_all(low, self.labels), one_or_all(high, self.labels))

    def _best(self, stairs: CumulativeCounts) -> tuple[BestPoint, BestPoint, BestPoint]:
        """Return the lower bounds, the best threshold at an edge, and the upper bounds."""
        known = corners(stairs)
        values = self._values(known.tp, known.fp, known.fn, known.tn)
        if self.for_ == "informedness" and not stairs.counted and stairs.positives:
            values = np.append(stairs.gaps(), 0.0) if stairs.negatives else values
        if not stairs.rows or np.isnan(values).all():
            return (BestPoint(math.nan, math.nan),) * 3
        sign = 1.0 if isinstance(self.for_, str) else -1.0  # costs are negated values
        best, at = self._highest(stairs, values)
        edges = np.append(stairs.probabilities(known.low), math.inf)
        value = BestPoint(float(edges[at]), sign * best + 0.0)
        if stairs.exact:
            return value, value, value
        # If values are negative, one within a cell may exceed that at its corner, but not 0.
        most = self._values(known.tp[:-1], known.fp[1:], known.fn[:-1], known.tn[1:])
        most = np.where(known.single, values[:-1], most)
        if isinstance(self.for_, str):
            most = np.where(known.single, most, np.fmax(most, 0.0))
        margin = ROUNDING * max(abs(best), 1.0)
        near = np.flatnonzero(np.append(most, values[-1]) >= best - margin)
        highs = np.append(stairs.probabilities(known.high), math.inf)
        certain = best if stairs.counted else best - margin
        ends = sorted((sign * certain, sign * (max(best, float(np.nanmax(most))) + margin)))
        return (
            BestPoint(float(edges[near].min()), ends[0]),
            value,
            BestPoint(float(highs[near].max()), ends[1]),
        )

    def _highest(self, stairs: CumulativeCounts, values: Floats) -> tuple[float, int]:
        """Return the best of the values at edges, rounded once, and the last place that has it."""
        best = float(np.nanmax(values))
        if not isinstance(self.for_, str):
            room = ROUNDING * float(np.abs(self.for_).max())
        elif stairs.counted or self.for_ == "informedness":
            room = ROUNDING * abs(best)
        else:
            room = ROUNDING
        # Candidates for the best value, within rounding errors, are compared in integers.
        near = np.flatnonzero(values >= best - room)
        (negatives, positives), *sums = stairs.sums_above(near)
        exact, at = max(
            (self._exactly(tp, fp, positives - tp, negatives - fp), place)
            for place, (fp, tp) in zip(near.tolist(), sums, strict=True)
        )
        if self.for_ in SQUARED:
            return math.copysign(root(abs(exact)), exact), at
        return nearest(exact), at

    def _exactly(self, tp: int, fp: int, fn: int, tn: int) -> Fraction:
        """Return the exact value of a confusion table, or its square with its sign."""
        if isinstance(self.for_, str):
            return EXACTLY[self.for_](tp, fp, fn, tn, self.beta)
        (right_n, wrong_n), (wrong_p, right_p) = self.for_
        costs = map(Fraction, (right_p, wrong_n, wrong_p, right_n))
        terms = (cost * rows for cost, rows in zip(costs, (tp, fp, fn, tn), strict=True))
        return -sum(terms, Fraction(0)) / (tp + fp + fn + tn)

    def _values(self, *table: Array) -> Floats:
        """Return the values for these confusion tables; larger is better."""
        tp, fp, fn, tn = (entry.astype(np.float64) for entry in table)
        with np.errstate(all="ignore"):
            if isinstance(self.for_, str):
                return VALUES[self.for_](tp, fp, fn, tn, self.beta)
            (right_n, wrong_n), (wrong_p, right_p) = self.for_
            lost: Floats = right_n * tn + wrong_n * fp + wrong_p * fn + right_p * tp
            return -lost / (tp + fp + fn + tn)
