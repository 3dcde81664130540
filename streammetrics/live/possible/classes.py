"""Extremes of metrics of counts over missing labels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.live.possible.remembered import Called, Classes, extremes, with_rows
from streammetrics.metrics.classification.overall import (
    Accuracy,
    BalancedAccuracy,
    CohenKappa,
    GMean,
    MatthewsCorrcoef,
    ZeroOneLoss,
)
from streammetrics.metrics.classification.rates import (
    F1,
    FalseDiscoveryRate,
    FalseNegativeRate,
    FalsePositiveRate,
    FBeta,
    Informedness,
    Jaccard,
    NegativePredictiveValue,
    Precision,
    Recall,
    Specificity,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from streammetrics.core.metric import Metric
    from streammetrics.core.results.values import Interval
    from streammetrics.core.types import ClassLabel
    from streammetrics.live.possible.remembered import Rows

    Two = tuple[ClassLabel, ClassLabel]  # the negative and the positive class
    Counts = dict[ClassLabel, int]

# Each metric is monotone in each of two counts: the rows predicted positive whose label is
# positive, and the rows predicted negative whose label is positive. Its extremes are therefore at
# the corners.
_COUNTED = frozenset({
    Accuracy, ZeroOneLoss, BalancedAccuracy, GMean, MatthewsCorrcoef, CohenKappa, Precision, Recall,
    FBeta, F1, Jaccard, Specificity, FalsePositiveRate, FalseNegativeRate, FalseDiscoveryRate,
    NegativePredictiveValue, Informedness,
})  # fmt: skip
_MATCHES = (Accuracy, ZeroOneLoss)  # count rows with equal labels, with any number of classes


def asks(metric: Metric, titles: Mapping[str, str]) -> Called | Classes | None:
    """Return the rows to remember: those on each side of a threshold, or those of each class."""
    kind, config = type(metric), metric.config
    if kind not in _COUNTED or config.get("from_logits") or config["ignore_index"] is not None:
        return None
    threshold, policy = config["threshold"], config["nan_policy"]
    plain = config.get("average", "binary") == "binary" and config.get("weights") is None
    subset = kind is CohenKappa and config["labels"] is not None  # of all labels
    if (not plain or subset) and not (kind in _MATCHES and threshold is None):
        return None
    if threshold is None:
        return Classes(of=titles.get("y_pred", "y_pred"), nan_policy=policy)
    title = titles.get("y_score", "y_score")
    return Called(of=title, nan_policy=policy, threshold=threshold)


def interval(known: Metric, held: Called | Classes, _: object) -> Interval | None:
    """Return the extremes over the corners, and their neighbours if a corner is undefined."""
    if isinstance(held, Classes) and type(known) in _MATCHES:
        return _matching(known, held.counts)
    two = two_classes(known, held.counts if isinstance(held, Classes) else {})
    if two is None:
        return None
    sides = _sides_of(held, two)
    corners = [(a, b) for a in {0, sides.positive} for b in {0, sides.negative}]
    values = [sides.value(known, *corner) for corner in corners]
    if any(math.isnan(value) for pair in values for value in pair):
        near = {other for corner in corners for other in sides.beside(*corner)}
        values += [sides.value(known, *corner) for corner in near]
    return extremes(values)


class _CalledRows(NamedTuple):
    """The number of unlabelled rows predicted positive and predicted negative."""

    positive: int
    negative: int
    name: str  # name of the prediction column
    called: Two  # prediction of a row of either kind
    two: Two

    def value(self, known: Metric, a: int, b: int) -> tuple[float, float]:
        """Return the bounds if `a` of the predicted positives and `b` negatives are positive."""
        yes, no = self.called
        negative, positive = self.two
        return with_rows(known, self.name, [
            (positive, yes, a), (negative, yes, self.positive - a),
            (positive, no, b), (negative, no, self.negative - b),
        ])  # fmt: skip

    def beside(self, a: int, b: int) -> Iterator[tuple[int, int]]:
        """Yield the counts with the label of one row changed, for each kind of row."""
        if self.positive:
            yield (a - 1 if a else 1), b
        if self.negative:
            yield a, (b - 1 if b else 1)


def _sides_of(held: Called | Classes, two: Two) -> _CalledRows:
    if isinstance(held, Classes):
        counts = held.counts
        positive = counts.get(two[1], 0)
        return _CalledRows(positive, sum(counts.values()) - positive, "y_pred", two[::-1], two)
    negative, positive = map(int, held.rows.counts)
    below = float(np.nextafter(held.threshold, -np.inf))
    return _CalledRows(positive, negative, "y_score", (held.threshold, below), two)


def _matching(known: Metric, predicted: Counts) -> Interval | None:
    """Return the value if all missing labels match their predictions, and if none do."""
    fixed = known.config["labels"]
    every = sorted({*predicted, *_seen(known)} if fixed is None else fixed)
    if len(every) == 1 and fixed is None:
        every.append(_another(every[0]))
    right: Rows = [(label, label, n) for label, n in predicted.items()]
    values = [with_rows(known, "y_pred", right)]
    if len(every) > 1:
        first, second = every[:2]
        wrong: Rows = [
            (second if label == first else first, label, n) for label, n in predicted.items()
        ]
        values.append(with_rows(known, "y_pred", wrong))
    return extremes(values)


def two_classes(known: Metric, predicted: Counts | None = None) -> Two | None:
    """Return the two classes of the labels, ``None`` if there may be more."""
    config = known.config
    positive, fixed = config.get("pos_label"), config.get("labels")
    positive = 1 if positive is None else positive
    others = set(fixed or {*_seen(known), *(predicted or ())}) - {positive}
    if len(others) > 1 or (fixed is not None and (positive not in fixed or not others)):
        return None
    return (next(iter(others)) if others else _another(positive)), positive


def _seen(known: Metric) -> set[ClassLabel]:
    """Return the labels seen so far, as far as the state records them."""
    facts = [feed.facts for feed in known._accumulator.flush().infos]
    found = {fact["negative label"] for fact in facts if "negative label" in fact}
    return found | set(getattr(known, "classes", ()) if "y_pred" in known.inputs else ())


def _another(label: ClassLabel) -> ClassLabel:
    """Return a label other than this one."""
    if isinstance(label, str):
        return label + "~"
    return 0 if label else 1
