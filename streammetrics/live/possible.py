"""What the missing labels could do: certain intervals over everything that they may be."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streammetrics.core.errors import InvalidBatchError, UndefinedMetricWarning
from streammetrics.core.metric_set import MetricSet
from streammetrics.core.results.values import Interval
from streammetrics.live.rows import AT_ONCE, batch_of
from streammetrics.metrics.classification.overall import Accuracy, ZeroOneLoss
from streammetrics.metrics.classification.rates import (
    FalseDiscoveryRate,
    FalseOmissionRate,
    Prevalence,
)
from streammetrics.metrics.classification.ratios import (
    F1,
    FalseNegativeRate,
    FalsePositiveRate,
    FBeta,
    Jaccard,
    NegativePredictiveValue,
    Precision,
    Recall,
    Specificity,
)
from streammetrics.metrics.regression.losses import MAE, MSE, RMSE
from streammetrics.metrics.scores.areas import ROCAUC
from streammetrics.metrics.scores.losses import BrierScore, LogLoss
from streammetrics.metrics.scores.view import staircases

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from streammetrics.core.columns.conversion import Column
    from streammetrics.core.layout import State
    from streammetrics.core.mergeable import Mergeable
    from streammetrics.core.metric import Metric

    Numbers = NDArray[np.float64]

# Each grows, or falls, with either of two counts: those of the rows that are called positive, and
# those that are called negative, whose label is positive. So its extremes are at the corners.
_COUNTED = (
    Accuracy, Precision, Recall, FBeta, F1, Jaccard, Specificity, FalsePositiveRate,
    FalseNegativeRate, NegativePredictiveValue, FalseDiscoveryRate, FalseOmissionRate, Prevalence,
    ZeroOneLoss,
)  # fmt: skip
_LOSSES = (LogLoss, BrierScore)  # whose rows cost least where the label is the likelier one
_ERRORS = (MAE, MSE, RMSE)  # which grow with the distance between target and prediction


class Unlabelled(NamedTuple):
    """Rows without a label, by the names of their columns; and how a label is named."""

    columns: Mapping[str, Column]
    label: str
    titles: Mapping[str, str]  # the user's names of inputs

    def of(self, name: str) -> NDArray[Any] | None:
        """Return the numbers of an input, ``None`` where it holds none."""
        column = self.columns.get(self.titles.get(name, name))
        if column is None or column.vocabulary is not None or column.values.ndim > 1:
            return None
        return column.values


def possible(
    suite: Mergeable, state: State, rows: Unlabelled, target_range: tuple[float, float] | None
) -> Any:
    """Return what each metric may be, by name, or of a single one; ``None`` where nobody knows."""
    metrics: Any = suite.items() if isinstance(suite, MetricSet) else [("", suite)]
    found = {name: _interval(metric, suite, state, rows, target_range) for name, metric in metrics}
    return found if isinstance(suite, MetricSet) else found[""]


def _interval(
    metric: Metric,
    suite: Mergeable,
    state: State,
    rows: Unlabelled,
    target_range: tuple[float, float] | None,
) -> Interval | None:
    known = metric._over(suite._at(state)._accumulator)  # of this metric at the state
    if not rows.columns or not len(next(iter(rows.columns.values()))):
        return known.bounds()
    if "sample_weight" in rows.columns or not known.exact:
        return None
    kind, config = type(metric), metric.config
    labels: Iterator[NDArray[Any]] | None = None
    if kind in _ERRORS and target_range is not None:
        labels = _targets(rows.of("y_pred"), *target_range)
    elif kind in {ROCAUC, *_COUNTED, *_LOSSES} and _is_binary(config):
        scores = rows.of("y_score")
        if scores is None or config.get("from_logits"):
            return None
        if kind is ROCAUC:
            return _area(known, scores)
        threshold = config.get("threshold") if kind in _COUNTED else 0.5
        labels = None if threshold is None else _corners(scores >= threshold)
    return None if labels is None else _extremes(known, rows, labels)


def _is_binary(config: Mapping[str, Any]) -> bool:
    plain = config.get("average", "binary") in {"binary", "macro"}
    plain = plain and not config.get("max_fpr") and not config.get("min_tpr")
    return plain and config.get("pos_label", 1) == 1 and config.get("labels") in {None, (0, 1)}


def _corners(called: NDArray[np.bool_]) -> Iterator[NDArray[Any]]:
    """Yield the labels at which the counts are as small, or as large, as they can be."""
    yield from (called, ~called, np.zeros(len(called), bool), np.ones(len(called), bool))


def _targets(predicted: Numbers | None, low: float, high: float) -> Iterator[Numbers]:
    """Yield the nearest targets and the farthest ones."""
    if predicted is not None:
        yield np.clip(predicted, low, high)
        yield np.where(predicted - low > high - predicted, low, high)


def _extremes(known: Metric, rows: Unlabelled, assigned: Iterator[NDArray[Any]]) -> Interval | None:
    """Return the least and the most of a metric's values at some labels of the rows."""
    values = []
    for labels in assigned:
        # Integers, as a metric of integers takes no booleans as another kind of labels.
        column = labels.astype(np.int64) if labels.dtype == np.bool_ else labels
        twin = known.copy()
        title = rows.titles.get("y_true", "y_true")
        every: dict[str, Any] = {**rows.columns, title: column}
        inputs = {name: every[rows.titles.get(name, name)] for name in known.inputs}
        try:
            for start in range(0, len(column), AT_ONCE):
                part = {name: c[start : start + AT_ONCE] for name, c in inputs.items()}
                twin.feed(batch_of(twin, part)._columns)
        except InvalidBatchError:  # its labels are of another kind
            return None
        values.append(_value(twin))
    defined = [value for value in values if not math.isnan(value)]
    return Interval(min(defined), max(defined)) if defined else None


def _value(metric: Metric) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        return float(metric.compute())


def _area(known: Metric, scores: Numbers) -> Interval | None:
    """Return the area's least and most: the k lowest, or the k highest, are the positives."""
    scores_seen: Any = known._read()[0]
    stairs = staircases(scores_seen)
    if len(stairs) > 1 or not all(stair.counted for stair in stairs):
        return None
    steps = [(s.low, s.p, s.n) for stair in stairs for s in stair.steps()]
    empty = np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64)
    low, p, n = map(np.concatenate, zip(empty, *steps, strict=True))
    most = _halves(low, p, n, np.sort(scores)[::-1], highest=True)
    least = _halves(low, p, n, np.sort(scores), highest=False)
    found = [x for x in (*most, *least) if not math.isnan(x)]
    return Interval(min(found), max(found)) if found else None


def _halves(low: Numbers, p: Any, n: Any, scores: Numbers, *, highest: bool) -> list[float]:
    """Return the extremes over k of the area where the first k of the sorted scores are positive.

    Twice the pairs in order are counted, so that a tie is one.
    """
    u = len(scores)
    left, right = np.searchsorted(low, scores, "left"), np.searchsorted(low, scores, "right")
    below = np.append(0, np.cumsum(n))
    under = below[left] + below[right]  # twice the negatives below, ties once
    over = np.append(0, np.cumsum(p))
    above = 2 * over[-1] - over[left] - over[right]
    gained = np.append(0, np.cumsum(under))
    lost = np.append(np.cumsum(above[::-1])[::-1], 0)
    k = np.arange(u + 1)
    groups = np.unique(-scores if highest else scores, return_inverse=True)[1].reshape(-1)
    sizes = np.bincount(groups, minlength=1)
    starts = np.append(0, np.cumsum(sizes))[np.append(groups, groups[-1])]
    here = k - starts  # of the tie that k is in the middle of
    tied = here * (sizes[np.append(groups, groups[-1])] - here)
    among = 2 * k * (u - k) - tied if highest else tied
    inside = int((p * (below[:-1] + below[1:])).sum())
    pairs = inside + gained + lost + among
    whole = (over[-1] + k) * (below[-1] + u - k)
    good = whole > 0
    areas = pairs[good] / (2.0 * whole[good])
    return [float(areas.min()), float(areas.max())] if areas.size else [math.nan]
