"""Intervals by name, which reproduce the figures of papers and of other programs.

The rules of families choose a method that covers well. A name asks for one method as published.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.confidence import ConfidenceInterval, method_of, without
from streammetrics.inference.areas import drawn, roc_influences
from streammetrics.inference.distributions import clopper_pearson, limits, normal_quantile, wilson
from streammetrics.inference.scores import ladders, rate_of
from streammetrics.inference.tables import trials_of
from streammetrics.metrics.classification.base import ContingencyMetric
from streammetrics.metrics.families import Family

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.confidence import ConfidenceRequest
    from streammetrics.core.errors import NoConfidenceError
    from streammetrics.core.metric import Metric
    from streammetrics.metrics.scores.areas import ROCAUC
    from streammetrics.statistics.histograms import ScoreHistogram


_REDRAWS = 2000


def _trials(
    metric: Metric, asked: ConfidenceRequest, name: str, statistics: Sequence[object]
) -> tuple[int, int]:
    """Return successes and trials of a share of rows.

    Raises:
        NoConfidenceError: The metric is not such a share, or its rows have weights.
    """
    refusal = without(
        metric,
        f"method={name!r} is for shares of rows, such as Accuracy, and Precision and Recall of one "
        "class or with average='micro'",
    )
    if metric.family == Family.BRIER:
        raise refusal
    try:
        s, n = trials_of(metric, *statistics)
    except TypeError:
        raise refusal from None
    if s != int(s) or n != int(n) or not _counts(statistics[0], asked):
        raise without(metric, f"method={name!r} counts rows, and these have weights")
    return int(s), int(n)


def _counts(statistic: Any, asked: ConfidenceRequest) -> bool:
    """Whether a table holds counts of rows without weights."""
    if hasattr(statistic, "total"):  # of top-k hits
        return statistic.total.weights is None and statistic.total.fraction() == asked.n_rows
    squares = statistic.squares()
    return isinstance(squares, np.ndarray) and int(squares.sum()) == asked.n_rows


@method_of("wilson")
def of_wilson(metric: Metric, asked: ConfidenceRequest, *statistics: object) -> ConfidenceInterval:
    """Wilson (1927), without a continuity correction."""
    s, n = _trials(metric, asked, "wilson", statistics)
    low, high = wilson(np.array(float(s)), np.array(float(n)), normal_quantile(1 - asked.tail))
    return ConfidenceInterval(float(low), float(high), asked.level, f"Wilson, {s} of {n}")


@method_of("clopper-pearson")
def of_clopper_pearson(
    metric: Metric, asked: ConfidenceRequest, *statistics: object
) -> ConfidenceInterval:
    """Clopper and Pearson (1934), by quantiles of the beta distribution."""
    s, n = _trials(metric, asked, "clopper-pearson", statistics)
    low, high = clopper_pearson(s, n, asked.tail) if n else (math.nan, math.nan)
    return ConfidenceInterval(low, high, asked.level, f"Clopper-Pearson, {s} of {n}")


@method_of("wald")
def of_wald(metric: Metric, asked: ConfidenceRequest, *statistics: object) -> ConfidenceInterval:
    """The normal approximation p ± z √(p (1 - p) / n), cut off at 0 and 1."""
    s, n = _trials(metric, asked, "wald", statistics)
    p = s / n if n else math.nan
    half = normal_quantile(1 - asked.tail) * math.sqrt(p * (1 - p) / n) if n else math.nan
    low, high = max(p - half, 0.0) if n else p, min(p + half, 1.0) if n else p
    return ConfidenceInterval(low, high, asked.level, f"Wald, {s} of {n}")


def _delong(
    metric: ROCAUC[None], asked: ConfidenceRequest, scores: ScoreHistogram, name: str
) -> tuple[float, float]:
    """Return a ROC AUC and its standard error by DeLong et al. (1988).

    Raises:
        NoConfidenceError: The metric is not the whole area of one class, or not exact.
    """
    whole = metric.family == Family.ROC_AREA and rate_of(metric) == 1
    found = ladders(metric, asked, scores) if whole else []
    if len(found) != 1 or not found[0][0].exact:
        raise without(
            metric, f"method={name!r} is for the exact ROCAUC of two classes, without max_fpr"
        )
    stairs, cells = found[0]
    value = metric.read(stairs)
    if min(cells.rows) <= 1:
        return value, math.nan
    return value, math.sqrt(sum(roc_influences(cells, value).variances(cells)))


@method_of("delong")
def of_delong(
    metric: ROCAUC[None], asked: ConfidenceRequest, scores: ScoreHistogram, *_: object
) -> ConfidenceInterval:
    """DeLong, DeLong and Clarke-Pearson (1988), normal and cut off at 0 and 1."""
    value, error = _delong(metric, asked, scores, "delong")
    half = normal_quantile(1 - asked.tail) * error
    low, high = (min(max(side, 0.0), 1.0) for side in (value - half, value + half))
    return ConfidenceInterval(low, high, asked.level, "DeLong, normal")


@method_of("delong-logit")
def of_delong_logit(
    metric: ROCAUC[None], asked: ConfidenceRequest, scores: ScoreHistogram, *_: object
) -> ConfidenceInterval:
    """DeLong's variance, normal on the logit (Pepe 2003)."""
    value, error = _delong(metric, asked, scores, "delong-logit")
    low, high = limits(value, error, normal_quantile(1 - asked.tail), 0.0, 1.0)
    return ConfidenceInterval(float(low), float(high), asked.level, "DeLong, normal on the logit")


@method_of("bootstrap")
def of_bootstrap(metric: Metric, asked: ConfidenceRequest, *statistics: Any) -> ConfidenceInterval:
    """Percentiles of multinomial redraws of the cells, with a seed derived from the counts."""
    table = statistics[0]
    value = metric.readout(*statistics)
    if not isinstance(metric, ContingencyMetric) or not isinstance(value, int | float):
        raise _no_bootstrap(metric)
    if not _counts(table, asked):
        raise without(metric, "method='bootstrap' redraws rows, and these have weights")
    amounts = metric._confusion(table)
    counts = np.asarray(table.cells().amount)
    values = []
    for redrawn in drawn(counts, _REDRAWS):
        there = np.flatnonzero(redrawn)
        values.append(float(metric._of_table(amounts._of_cells(there, redrawn[there]))))
    low, high = np.quantile(values, [asked.tail, 1 - asked.tail]) if values else (math.nan,) * 2
    method = f"percentiles of {_REDRAWS:,} bootstrap redraws of the counts"
    return ConfidenceInterval(float(low), float(high), asked.level, method)


def _no_bootstrap(metric: Metric) -> NoConfidenceError:
    return without(
        metric, "method='bootstrap' is for one number that is read from a table of counts"
    )
