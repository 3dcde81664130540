"""What the metrics of scores share: inputs, averages over classes, bounds."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar

import numpy as np

from streammetrics.core.columns.labels import Label, one_kind
from streammetrics.core.configured import require
from streammetrics.core.constraints import Bins, NanPolicy
from streammetrics.core.metric import Metric
from streammetrics.core.results.curves import Curves
from streammetrics.core.results.labelled import LabelledArray
from streammetrics.core.results.values import Interval
from streammetrics.core.types import Floats, V_co
from streammetrics.metrics.averages import ZeroDivision, lone_doubt, mean_of_classes
from streammetrics.metrics.families import Family
from streammetrics.metrics.scores.view import missing_sides, staircases, why_undefined
from streammetrics.statistics.scores.histogram import MAX_BINS, ScoreHistogram
from streammetrics.statistics.scores.joined import JoinedHistogram, LabelHistograms

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streammetrics.core.results.curves import Points
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import ArrayLike, Numeric, Options
    from streammetrics.metrics.scores.view import Staircase

C = TypeVar("C", bound="Points")

# Every value of this family is at most 1, and what a few dozen roundings add up to is less.
ROUNDING = 2.0**-46


class ScoredMetric(Metric[V_co]):
    """Base of the metrics of labels and scores.

    Args:
        pos_label: The positive class of (n,) scores. ``None``: 1 of {0, 1}, {-1, 1} or booleans;
            any other labels raise.
        labels: The two classes of (n,) scores, or the class of each column of (n, K) scores; others
            raise. ``None``: any, or the class k for column k.
        nan_policy: ``"raise"``, or ``"omit"``: rows with a missing value are left out.
        from_logits: Whether scores are logits. They are made probabilities row by row: (n,) scores
            by the sigmoid, (n, K) scores by the softmax.
        ignore_index: Rows with this true label are left out, whatever else they hold.
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
        self, y_true: ArrayLike, y_score: ArrayLike, *, sample_weight: ArrayLike = None
    ) -> Self:
        """Add a batch of rows: labels (n,), and scores (n,) of the positive class or (n, K).

        Raises:
            InvalidBatchError: A column has a wrong type or shape, or a missing value.
        """
        return self.feed({"y_true": y_true, "y_score": y_score, "sample_weight": sample_weight})

    @property
    def _schema_options(self) -> Options:
        return schema_options(self)

    def _names(self, classes: Sequence[Staircase]) -> Sequence[object]:
        """Return what the classes, or whatever else is averaged, are called."""
        return self.labels or range(len(classes))

    def _histogram(self, max_bins: int) -> ScoreHistogram:
        options = {"from_logits": self.from_logits, **self._schema_options}
        return ScoreHistogram(max_bins=max_bins, **options)


def _check_multilabel(metric: Any) -> None:
    """Check that no parameter contradicts `multilabel`."""
    fits = not metric.multilabel or metric.ignore_index is None
    require(metric, "ignore_index", fits, "None with multilabel=True")


def _label_histograms(metric: Any, max_bins: int, *, joined: bool = False) -> LabelHistograms:
    """Return the histograms of the labels, for rows with several labels."""
    return LabelHistograms(
        max_bins=max_bins,
        joined=joined,
        from_logits=metric.from_logits,
        labels=metric.labels,
        nan_policy=metric.nan_policy,
    )


def schema_options(metric: object) -> Options:
    """Return the parameters that say how labels are read."""
    return {n: getattr(metric, n) for n in ("pos_label", "labels", "nan_policy", "ignore_index")}


def _has_single_scores(_: Metric[object], scores: ScoreHistogram, *__: object) -> bool:
    """Whether every cell holds a single score."""
    return scores.exact


def _missing_rows(metric: ScoredMetric[object], scores: ScoreHistogram, *_: object) -> str:
    """Return of which class no rows were seen, or what else makes the value undefined."""
    classes = staircases(scores)
    return why_undefined(classes, metric._names(classes)) or metric._nan_reason


def middle_of(certain: Callable[..., tuple[float, float, float]]) -> Callable[..., float]:
    """Return a ``read`` that gives the value which `certain` gives with its bounds."""

    def read(self: ClassScoreMetric, stairs: Staircase) -> float:
        """Return the value of one class, ``nan`` where it is undefined."""
        return certain(self, stairs)[1]

    return read


def certain_points(metric: Metric[V_co], scores: ScoreHistogram) -> Interval[V_co]:
    """Return the `interval` of curves: every point is at an edge of cells, and so is certain."""
    value = metric.readout(scores)
    return Interval(value, value)


class ScoreMetric(ScoredMetric[V_co]):
    """Base of the metrics of a score histogram, exact up to `max_bins` distinct scores.

    The other parameters are those of `ScoredMetric`.

    Args:
        max_bins: How many distinct scores are kept apart. Beyond that neighbouring scores share a
            cell, and `bounds()` holds for any order of the rows within a cell.
    """

    max_bins: Bins = MAX_BINS

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the score histogram."""
        return (self._histogram(self.max_bins),)

    is_exact, _lacking = _has_single_scores, _missing_rows


class CurveMetric(ScoredMetric[V_co]):
    """Base of the curves of one class against the rest, or one curve per class or label.

    The other parameters are those of `ScoredMetric`.

    Args:
        max_bins: How many distinct scores are kept apart, as in `ScoreMetric`.
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


class ClassScoreMetric(ScoredMetric[float | Floats]):
    """Base of the metrics that give a number per class, which are averaged for (n, K) scores.

    Args:
        max_bins: How many distinct scores are kept apart, as in `ScoreMetric`.
        average: How classes are averaged. ``"macro"``: the mean of the classes' values;
            ``"weighted"``: the mean weighted by the rows of each class; ``"micro"``: the scores of
            all classes are pooled. ``None``: an array with the value of each class.
        zero_division: The value of a class where it is undefined. ``None``: ``nan`` for a single
            class; an average leaves a class without rows out, with an `UndefinedMetricWarning` that
            names it. A number is used as it is.
        multilabel: Whether a row may have any number of labels. `y_true` is then an indicator
            matrix (n, L) of 0 and 1, dense or sparse, or sets of `labels`, and scores are (n, L).
            Each label is treated as a class, and with `from_logits` has a sigmoid of its own.
    """

    family: ClassVar[str | None] = Family.STAIRS

    _formula = ("readout", "read", "certain")
    _facts = (*Metric._facts, "certain", "_sides", "_judged")

    max_bins: Bins = MAX_BINS
    average: Literal["macro", "weighted", "micro"] | None = "macro"
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
    def read(self, stairs: Staircase) -> float:
        """Return the value of one class, ``nan`` where it is undefined."""

    def certain(self, stairs: Staircase) -> tuple[float, float, float]:
        """Return a lower bound, the value and an upper bound, each correct up to `ROUNDING`.

        By default the bounds are those of `value_range`.
        """
        low, high = self.value_range or (-math.inf, math.inf)
        value = self.read(stairs)
        return (low, value, high) if value == value else (value, value, value)  # noqa: PLR0124 - the test for nan

    def _shape(self, scores: ScoreHistogram, *_: object) -> Points | Curves:
        """Return the curves that the values are read from."""
        return one_or_all([self._curve(stairs) for stairs in staircases(scores)], self.labels)

    # The curve that a picture of the value shows.
    _pictured_by: ClassVar[type[Metric] | None] = None

    def _pictured(self) -> Metric:
        if self._pictured_by is None:
            return self
        known = self._pictured_by._parameters
        return self._pictured_by(**{n: v for n, v in self.config.items() if n in known})

    def _curve(self, stairs: Staircase) -> Points:  # noqa: ARG002 - what those with one take
        """Return the curve that the value of one class is read from."""
        raise TypeError(f"{type(self).__name__} has no picture")

    def readout(self, scores: ScoreHistogram, *_: object) -> float | Floats:
        """Read the classes and average them."""
        return self._of_classes(scores)[0]

    def _judged(self, scores: ScoreHistogram, *_: object) -> tuple[float | Floats, str]:
        value, doubt = self._of_classes(scores)
        return value, doubt or self._why_nan(value, scores)

    def _of_classes(self, scores: ScoreHistogram) -> tuple[float | Floats, str]:
        classes = staircases(scores)
        return self._averaged(classes, [self.read(stairs) for stairs in classes])

    def interval(self, scores: ScoreHistogram, *_: object) -> Interval[float | Floats]:
        """Bound the classes and average the bounds."""
        classes = staircases(scores)
        spans = [self._sides(stairs) for stairs in classes]
        low, high = (self._averaged(classes, list(side))[0] for side in zip(*spans, strict=True))
        return Interval(low, high)

    def _sides(self, stairs: Staircase) -> tuple[float, float]:
        if stairs.exact:
            value = self.read(stairs)
            return value, value
        low, high = outward(*self.certain(stairs), self.value_range or (-math.inf, math.inf))
        return float(low), float(high)

    def _averaged(
        self, classes: tuple[Staircase, ...], values: list[float]
    ) -> tuple[float | Floats, str]:
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
        return mean_of_classes(each, weight, lambda: seen, labels, self.zero_division)

    def _filled(self, value: float) -> float:
        return value if self.zero_division is None or value == value else self.zero_division  # noqa: PLR0124 - the test for nan


def outward(
    low: Numeric, value: Numeric, high: Numeric, ends: tuple[float, float] = (0.0, 1.0)
) -> tuple[Numeric, Numeric]:
    """Return bounds within the ends, widened for rounding and so that they contain the value."""
    sizes = [np.where(np.isfinite(side), np.abs(side), 0.0) for side in (low, high)]
    margin = ROUNDING * np.maximum(1.0, np.maximum(*sizes))
    return (
        np.maximum(np.minimum(low, value) - margin, ends[0]),
        np.minimum(np.maximum(high, value) + margin, ends[1]),
    )


def one_or_all(curves: Sequence[C], labels: tuple[object, ...] | None) -> C | Curves:
    """Return the only curve, or one per class."""
    return curves[0] if len(curves) == 1 else Curves(curves, labels or range(len(curves)))
