"""Shares of rows as trials: how many came out so, of how many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.inference.shares import parts_of, shares_of
from streammetrics.metrics.families import Family

if TYPE_CHECKING:
    from collections.abc import Callable

    from streammetrics.metrics.classification.averaged import AveragedMetric
    from streammetrics.metrics.classification.overall import Accuracy
    from streammetrics.metrics.classification.topk import TopKAccuracy
    from streammetrics.metrics.scores.losses import BrierScore
    from streammetrics.statistics.scores.losses import ProbabilityLossSum
    from streammetrics.statistics.tables.contingency import ContingencyTable
    from streammetrics.statistics.tables.threshold import ThresholdTable
    from streammetrics.statistics.tables.topk import TopKHits


def trials_of(metric: Any, *statistics: Any) -> tuple[float, float]:
    """Return the sum of numbers in [0, 1], one a row, of which a metric is the mean; and how many.

    Raises:
        TypeError: It is no such mean.
    """
    if metric.family not in _TRIALS:
        raise _no_share(metric)
    return _TRIALS[metric.family](metric, *statistics)


def _no_share(metric: object) -> TypeError:
    return TypeError(
        f"{type(metric).__name__} is no share of rows: Accuracy, TopKAccuracy, BrierScore, and "
        "Precision, Recall, Specificity and their kin of one class or with average='micro' are"
    )


def _of_accuracy(metric: Accuracy, table: ContingencyTable | ThresholdTable) -> tuple[float, float]:
    cells = metric._confusion(table)
    return float(cells.hits[0]), float(cells.total[0])


def _of_top_k(metric: TopKAccuracy, counts: TopKHits) -> tuple[float, float]:  # noqa: ARG001 - as others
    return float(counts.hits.fraction()), float(counts.total.fraction())


def _of_brier(metric: BrierScore, held: ProbabilityLossSum) -> tuple[float, float]:
    total = float(held.rows.fraction())
    return (metric.readout(held) * total if total else 0.0), total


def _of_classes(metric: AveragedMetric, table: object) -> tuple[float, float]:
    cells, parts = metric._confusion(table), parts_of(metric)
    if parts is None or parts[2] != 1 or metric.average not in {"binary", "micro"}:
        raise _no_share(metric)
    if not cells.total[0]:
        return 0.0, 0.0
    right, wrong = (side[0] for side in shares_of(parts, cells, 1))
    if metric.average == "binary":
        place = int(metric._positive(cells))
        return float(right[place]), float((right + wrong)[place])
    return float(np.sum(right)), float(np.sum(right + wrong))


_TRIALS: dict[str, Callable[..., tuple[float, float]]] = {
    Family.HITS: _of_accuracy,
    Family.TOP_K: _of_top_k,
    Family.BRIER: _of_brier,
    Family.SHARE: _of_classes,
    Family.F_BETA: _of_classes,
}
