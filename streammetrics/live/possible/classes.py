"""Labels at which metrics of counts, and losses of labels, are as small and as large as can be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.metrics.classification.overall import (
    Accuracy,
    BalancedAccuracy,
    CohenKappa,
    GMean,
    MatthewsCorrcoef,
    ZeroOneLoss,
)
from streammetrics.metrics.classification.rates import FalseDiscoveryRate, Informedness
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
from streammetrics.metrics.scores.losses import BrierScore, LogLoss

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from streammetrics.core.metric import Metric
    from streammetrics.live.possible.unlabelled import Unlabelled

    Labels = list[NDArray[Any]]
    Two = tuple[Any, Any]  # the negative class, and the positive one

# Each grows, or falls, with either of two counts: those of the rows that are called positive, and
# those that are called negative, whose label is positive. So its extremes are at the corners.
_COUNTED = frozenset({
    Accuracy, ZeroOneLoss, BalancedAccuracy, GMean, MatthewsCorrcoef, CohenKappa, Precision, Recall,
    FBeta, F1, Jaccard, Specificity, FalsePositiveRate, FalseNegativeRate, FalseDiscoveryRate,
    NegativePredictiveValue, Informedness,
})  # fmt: skip
_LOSSES = (LogLoss, BrierScore)  # whose rows cost least where the label is the likelier one
_MATCHES = (Accuracy, ZeroOneLoss)  # which count the rows where two labels are one, however many


def two_classes(known: Metric, rows: Unlabelled) -> Two | None:
    """Return the two classes that labels are of, ``None`` where there may be others."""
    config = known.config
    positive, fixed = config.get("pos_label", 1), config.get("labels")
    seen = _seen(known)
    if "y_pred" in known.inputs:
        predicted = rows.plain("y_pred")
        seen |= set() if predicted is None else set(np.unique(predicted).tolist())
    others = set(fixed or seen) - {positive}
    if len(others) > 1 or (fixed is not None and (positive not in fixed or not others)):
        return None
    return (next(iter(others)) if others else _another(positive)), positive


def _seen(known: Metric) -> set[Any]:
    """Return the labels that rows had, as far as the state tells."""
    facts = [feed.facts for feed in known._accumulator.flush().feeds]
    found = {fact["negative label"] for fact in facts if "negative label" in fact}
    return found | set(getattr(known, "classes", ()) if "y_pred" in known.inputs else ())


def _another(label: Any) -> Any:
    """Return a label that is not this one."""
    if isinstance(label, str):
        return label + "~"
    return 0 if label else 1


def rule_of(
    metric: Metric, rows: Unlabelled, two: Two | None, known: Metric
) -> tuple[Any, Callable[[], Labels] | None] | None:
    """Return the labels of the extremes, and others near them; ``None`` where no rule is known."""
    kind, config = type(metric), metric.config
    if config.get("from_logits") or config.get("ignore_index") is not None:
        return None
    if kind in _MATCHES and config.get("threshold") is None:
        predicted = rows.plain("y_pred")
        return None if predicted is None else (_matching(predicted, known), None)
    called = _called(metric, rows, two)
    if called is None or two is None or kind not in {*_COUNTED, *_LOSSES}:
        return None
    if kind in _LOSSES:
        return [_named(one, two) for one in (called, ~called)], None
    plain = config.get("average", "binary") == "binary" and config.get("weights") is None
    subset = kind is CohenKappa and config.get("labels") is not None  # beside which are others
    if not plain or subset:
        return None
    corners = [called, ~called, np.zeros_like(called), np.ones_like(called)]
    return (
        [_named(one, two) for one in corners],
        lambda: [_named(near, two) for one in corners for near in _one_off(one, called)],
    )


def _called(metric: Metric, rows: Unlabelled, two: Two | None) -> NDArray[np.bool_] | None:
    """Return which rows are called positive, ``None`` where that is not known of each."""
    threshold = 0.5 if type(metric) in _LOSSES else metric.config.get("threshold")
    if threshold is not None:
        scores = rows.of("y_score")
        return None if scores is None else scores >= threshold
    predicted = rows.plain("y_pred")
    return None if predicted is None or two is None else predicted == two[1]


def _one_off(labels: NDArray[np.bool_], called: NDArray[np.bool_]) -> Iterator[NDArray[np.bool_]]:
    """Yield labels of which one is another, of a row called positive or of one called negative."""
    for group in (np.flatnonzero(called), np.flatnonzero(~called)):
        if group.size:
            near = labels.copy()
            near[group[0]] ^= True
            yield near


def _named(positive: NDArray[np.bool_], two: Two) -> NDArray[Any]:
    return np.array(two)[positive.astype(np.intp)]


def _matching(predicted: NDArray[Any], known: Metric) -> Labels:
    """Return labels that are all right, and labels that are all wrong."""
    fixed = known.config.get("labels")
    every = sorted({*np.unique(predicted).tolist(), *_seen(known)} if fixed is None else fixed)
    if len(every) == 1 and fixed is None:
        every.append(_another(every[0]))
    if len(every) == 1:
        return [predicted]
    first, second = every[:2]
    return [predicted, np.where(predicted == first, second, first)]
