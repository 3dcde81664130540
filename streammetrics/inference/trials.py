"""Shares of rows as trials: how many came out so, of how many."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.inference.shares import parts_of, shares_of
from streammetrics.metrics.classification import overall, topk
from streammetrics.metrics.classification.averaged import AveragedMetric
from streammetrics.metrics.scores import losses

if TYPE_CHECKING:
    from streammetrics.statistics.scores.losses import ProbabilityLossSum
    from streammetrics.statistics.tables.contingency import ContingencyTable
    from streammetrics.statistics.tables.threshold import ThresholdTable
    from streammetrics.statistics.tables.topk import TopKHits


@singledispatch
def trials_of(metric: object, *statistics: object) -> tuple[float, float]:  # noqa: ARG001 - what families take
    """Return the sum of numbers in [0, 1], one a row, of which a metric is the mean; and how many.

    Raises:
        TypeError: It is no such mean.
    """
    raise _no_share(metric)


def _no_share(metric: object) -> TypeError:
    return TypeError(
        f"{type(metric).__name__} is no share of rows: Accuracy, TopKAccuracy, BrierScore, and "
        "Precision, Recall, Specificity and their kin of one class or with average='micro' are"
    )


@trials_of.register(overall.Accuracy)
def _of_accuracy(
    metric: overall.Accuracy, table: ContingencyTable | ThresholdTable
) -> tuple[float, float]:
    cells = metric._confusion(table)
    return float(cells.hits), float(cells.total)


@trials_of.register(topk.TopKAccuracy)
def _of_top_k(metric: topk.TopKAccuracy, counts: TopKHits) -> tuple[float, float]:  # noqa: ARG001 - as others
    return float(counts.hits.fraction()), float(counts.total.fraction())


@trials_of.register(losses.BrierScore)
def _of_brier(metric: losses.BrierScore, held: ProbabilityLossSum) -> tuple[float, float]:
    total = float(held.rows.fraction())
    return (metric.readout(held) * total if total else 0.0), total


@trials_of.register(AveragedMetric)
def _of_classes(metric: AveragedMetric, table: object) -> tuple[float, float]:
    cells, parts = metric._confusion(table), parts_of(metric)
    if parts is None or parts[2] != 1 or metric.average not in {"binary", "micro"}:
        raise _no_share(metric)
    if not cells.total:
        return 0.0, 0.0
    right, wrong = shares_of(parts, cells, 1)
    if metric.average == "binary":
        place = metric._positive(cells)
        return (0.0, 0.0) if place is None else (float(right[place]), float((right + wrong)[place]))
    return float(np.sum(right)), float(np.sum(right + wrong))
