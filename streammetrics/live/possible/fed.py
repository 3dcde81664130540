"""Metrics that have seen rows without a label as well, with labels that these may have."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.errors import UndefinedMetricWarning
from streammetrics.core.results.values import Interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from streammetrics.core.metric import Metric
    from streammetrics.core.types import Array, ClassLabel

    Rows = Sequence[
        tuple[ClassLabel, ClassLabel, int]
    ]  # a label, a prediction, and how many such rows
    Limits = tuple[float, float]


def with_rows(known: Metric, name: str, rows: Rows) -> Limits:
    """Return what the value is certainly between after rows as well."""
    some = [row for row in rows if row[2]]
    labels, predicted, counts = map(list, zip(*some, strict=True)) if some else ([], [], [])
    return with_columns(known, name, np.array(labels), np.array(predicted), np.array(counts))


def with_columns(
    known: Metric, name: str, labels: Array, predicted: Array, counts: Array
) -> Limits:
    """Return the same after rows in columns: a weight is that many equal rows, exactly."""
    twin: Any = known.copy()
    if len(counts):
        twin.update(y_true=labels, sample_weight=counts, **{name: predicted})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        low, high = twin.bounds()
    return float(low), float(high)


def extremes(values: Iterable[Limits]) -> Interval | None:
    """Return the least and the most of values, ``None`` where all are undefined."""
    defined = [pair for pair in values if not any(map(math.isnan, pair))]
    if not defined:
        return None
    return Interval(min(low for low, _ in defined), max(high for _, high in defined))
