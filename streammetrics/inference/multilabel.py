"""How sure are metrics of rows with several labels: rows are the sample, whatever their labels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.confidence import (
    Asked,
    ConfidenceInterval,
    not_anytime,
    rule_of,
    unsure,
    without,
)
from streammetrics.core.results.labelled import LabelledArray
from streammetrics.inference.distributions import normal_quantile
from streammetrics.inference.influence import derivatives, influence
from streammetrics.inference.limits import limits
from streammetrics.inference.shares import parts_of, share, shares_of
from streammetrics.inference.tables import (
    JACKKNIFE,
    UNBOUNDED,
    at_end,
    general,
    of_classes,
)
from streammetrics.metrics.classification.several import LabelCounts, RowCounts
from streammetrics.metrics.classification.view import Confusion
from streammetrics.metrics.families import Family
from streammetrics.statistics.tables.multilabel import LabelTables, RowTables

if TYPE_CHECKING:
    from collections.abc import Callable

    from streammetrics.core.metric import Metric
    from streammetrics.core.types import Floats, Ints
    from streammetrics.metrics.classification.averaged import AveragedMetric

_KINDS = 1 << 14  # kinds of rows whose readouts are taken one by one


@rule_of(Family.AVERAGES, Family.SHARE, Family.F_BETA)
def of_averages(metric: AveragedMetric, asked: Asked, table: object) -> ConfidenceInterval:
    """Quotients of counts: by class, or of several labels a row by label or over rows."""
    if isinstance(table, RowTables):
        return _of_rows(metric, asked, table, metric.read, joined=metric.average == "micro")
    if not isinstance(table, LabelTables):
        return of_classes(metric, asked, table)
    counts = LabelCounts.of(table, metric.labels)
    _check_rows(metric, asked, float(counts.total[0]), counts.counts is not None)
    if metric.average is not None:
        return _of_mean(metric, asked, counts)
    parts = parts_of(metric)
    if parts is not None:
        rows = shares_of(parts, counts, 1)  # type: ignore[arg-type]  # a label stands for a class
        low, high = interval = share(
            metric, asked, [s[0] for s in rows], [s[0] for s in rows], parts[2]
        )
        method = interval.method
    else:
        sides = [_of_label(metric, asked, cells) for cells in counts.tables.reshape(-1, 4)]
        low, high = (np.array([side[end] for side in sides]) for end in (0, 1))
        method = sides[0].method if sides else JACKKNIFE
    low, high = (LabelledArray.of(np.atleast_1d(side), counts.labels) for side in (low, high))
    return ConfidenceInterval(low, high, asked.level, method)


def _of_label(metric: AveragedMetric, asked: Asked, cells: Ints) -> ConfidenceInterval:
    """Return the limits of one label, as of the positive class of a table (4,) of two."""
    twin, table = _alone(metric), _of_two(cells)
    value = twin._of_table(table)
    return general(twin, asked, value, table, table)


def _alone(metric: AveragedMetric) -> AveragedMetric:
    """Return the metric of one label, as of the positive of two classes."""
    config = {**metric.config, "multilabel": False, "average": "binary"}
    return type(metric)(**{**config, "labels": None, "threshold": None, "pos_label": 1})


def _of_two(cells: Ints) -> Confusion:
    occupied = np.flatnonzero(cells)
    return Confusion([0, 1], occupied // 2, occupied % 2, cells[occupied])


def _of_mean(metric: AveragedMetric, asked: Asked, counts: LabelCounts) -> ConfidenceInterval:
    """Return the limits of a mean over labels, whose errors add up at most.

    Which labels a row has together is not kept: the error of a sum is at most the sum of errors,
    which it is where labels are of the same rows.
    """
    if asked.anytime:
        raise not_anytime(metric)
    cells: Any = counts.tables.reshape(-1, 4)
    total = float(counts.total[0])
    if not total:
        return unsure(asked.level, JACKKNIFE)
    values, slopes = _of_labels(metric, cells)
    have = cells[:, 2] + cells[:, 3]  # rows with the label
    weight = have if metric.average == "weighted" else np.ones(len(have))
    if metric.zero_division is None and not np.isnan(values).all():  # as in `mean_of_classes`
        values[np.isnan(values) & counts.seen[0]] = 0.0
    counted = ~np.isnan(values) & (weight > 0)
    if not counted.any():
        return unsure(asked.level, JACKKNIFE)
    share = weight[counted] / weight[counted].sum()
    value = float(share @ values[counted])
    adds, cells = slopes[counted] * share[:, None], cells[counted]
    if metric.average == "weighted":  # a row more that has the label lets it weigh more
        adds[:, 2:] += ((values[counted] - value) / weight[counted].sum())[:, None]
    adds -= (adds * cells).sum(axis=1, keepdims=True) / total
    error = float(np.sqrt((cells * adds**2).sum(axis=1)).sum())
    span = metric.value_range or UNBOUNDED
    if value in span and error == 0 and math.isfinite(span[1]):
        classes = np.concatenate([have[counted], total - have[counted]])
        return at_end(value, span, float(classes[classes > 0].min()), asked)
    low, high = limits(value, error, normal_quantile(1 - asked.tail), *span)
    method = f"{JACKKNIFE}, of a mean over labels as if they varied together (at most)"
    return ConfidenceInterval(low, high, asked.level, method)


def _of_labels(metric: AveragedMetric, cells: Ints) -> tuple[Floats, Floats]:
    """Return the value of each label, and how it moves with each of its cells, (L, 4)."""
    twin, slopes = _alone(metric), np.zeros(cells.shape)
    values = np.full(len(cells), math.nan)
    for place, amounts in enumerate(cells):
        table = _of_two(amounts)
        values[place] = twin._of_table(table)
        slopes[place, np.flatnonzero(amounts)] = influence(twin, table, twin.read)
    return values, np.nan_to_num(slopes)  # what is 0/0 does not move


@rule_of(Family.ROWS, Family.SUBSETS)
def of_rows(metric: Any, asked: Asked, table: RowTables) -> ConfidenceInterval:
    """The share of rows that are right, and means over rows of what each has."""
    if metric.family == Family.SUBSETS:
        if not metric.normalize:
            raise without(metric, "a sum grows with the rows; normalize=True has the share of them")
        rows = RowCounts.of(table, joined=False)
        _check_rows(metric, asked, float(rows.total[0]), rows.kinds.amount.weights is None)
        right = float(rows.amount @ metric._of_rows(rows)[0])
        counts = right, float(rows.total[0]) - right
        return share(metric, asked, counts, counts)
    return _of_rows(
        metric, asked, table, lambda rows: rows.mean(metric._of_rows(rows), None), joined=False
    )


def _of_rows(
    metric: Metric, asked: Asked, table: RowTables, read: Callable[[Any], Any], *, joined: bool
) -> ConfidenceInterval:
    """Return the limits of a readout by how it moves with the rows of every kind."""
    if asked.anytime:
        raise not_anytime(metric)
    rows = RowCounts.of(table, joined=joined)
    _check_rows(metric, asked, float(rows.total[0]), rows.kinds.amount.weights is None)
    if rows.size > _KINDS:
        raise without(metric, f"{rows.size:,} kinds of rows, more than {_KINDS:,}, take too long")
    if not rows.size:
        return unsure(asked.level, JACKKNIFE)
    value = float(read(rows)[0])
    slopes = derivatives(
        rows.amount,
        lambda moved: [read(RowCounts(rows.kinds, each, joined=joined))[0] for each in moved],
    )
    error = math.sqrt(float(rows.amount @ slopes**2))
    span = metric.value_range or UNBOUNDED
    if value in span and error == 0 and math.isfinite(span[1]):
        return at_end(value, span, float(rows.total[0]), asked, "all")
    low, high = limits(value, error, normal_quantile(1 - asked.tail), *span)
    return ConfidenceInterval(low, high, asked.level, f"{JACKKNIFE} of kinds of rows")


def _check_rows(metric: Metric, asked: Asked, total: float, counted: bool) -> None:
    if not counted or total != asked.n_rows:
        raise without(
            metric,
            "its state holds sums of weights and not of their squares, which say how many rows "
            "they are worth",
        )
