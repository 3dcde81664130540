"""Estimates over all rows of a window, of which few have a label and all have a judgment."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core.columns.batch import WEIGHT
from streammetrics.core.columns.conversion import Column, as_column
from streammetrics.core.metric_set import MetricSet
from streammetrics.inference.estimated import LABELS, TRUTHS, Estimated, kind_of
from streammetrics.live.rows import batch_of
from streammetrics.live.spans import ALONE, metrics_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.mergeable import Mergeable

LABEL = TRUTHS[0]  # the input that a judgment stands for


class EstimatedValue(NamedTuple):
    """The estimate of a metric over all rows, with confidence limits at a level."""

    value: float
    low: float
    high: float
    level: float
    method: str


def estimator_of(suite: Mergeable, proxy: str) -> Estimated:
    """Return the estimates of the metrics of a suite that have one.

    Raises:
        ValueError: No metric has one, or the proxy is not the name of a column.
    """
    metrics, why = {}, "no metric reads a label"
    for name, metric in metrics_of(suite).items():
        try:
            kind_of(name, metric)
        except ValueError as error:
            why = str(error)
            continue
        if LABEL in metric._plan.required:
            metrics[name] = metric
    if not metrics:
        raise ValueError(f"proxy={proxy!r}: nothing can be estimated: {why}")
    read = {WEIGHT, *MetricSet(metrics).inputs}
    renamed: Mapping[str, str] = getattr(suite, "columns", {})
    columns = {name: title for name, title in renamed.items() if name in read}
    return Estimated(MetricSet(metrics, columns=columns), proxy=proxy)


def judged_batch(estimator: Estimated, columns: Mapping[str, object]) -> Batch:
    """Return rows as they are estimated; without a column of labels, all labels are missing."""
    label, proxy = estimator._suite.columns.get(LABEL, LABEL), estimator.proxy
    if label not in columns:
        missing = np.full(as_column(columns[proxy], proxy).values.shape, np.nan)
        columns = {**columns, label: Column(missing, None, True)}
    return batch_of(estimator, columns, checked=True)


def estimates(suite: Mergeable, found: Estimated, level: float) -> object:
    """Return the estimate of each metric by name, or of a single metric; ``None`` if unknown."""
    every: dict[str, EstimatedValue | None] = dict.fromkeys(metrics_of(suite))
    if found[LABELS].n_rows:
        values = found.compute()
        for name, limits in found.confidence(level).items():
            ends = limits.low, limits.high
            every[name] = EstimatedValue(values[name], *ends, level, limits.method)
    return every if isinstance(suite, MetricSet) else every[ALONE]
