"""How sure are shares of rows of labels: those that count, and those that do not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.confidence import (
    Asked,
    ConfidenceInterval,
    not_anytime,
)
from streammetrics.inference.limits import share_limits
from streammetrics.metrics.families import Family

if TYPE_CHECKING:
    from streammetrics.core.metric import Metric
    from streammetrics.core.types import Numeric
    from streammetrics.metrics.classification.averaged import Parts
    from streammetrics.metrics.classification.view import Confusion


WILSON = "Wilson's score"
ANYTIME = "beta-binomial mixture, at all times at once"


def parts_of(metric: Any) -> Parts | None:
    """Return what a share is of: successes, and failures that count as much as they say.

    With odds o the value is o s / (o s + f).
    """
    if metric.family == Family.SHARE:
        counted: Parts = metric._parts
        return counted
    if metric.family == Family.F_BETA:
        if metric.beta > 1:  # as below, over the square of beta, which can overflow
            share = 1 / metric.beta / metric.beta
            return "tp", {"fn": 1.0, "fp": share}, 1 + share
        return "tp", {"fn": metric.beta**2, "fp": 1.0}, 1 + metric.beta**2
    return None


def shares_of(parts: Parts, table: Confusion, power: int) -> tuple[Numeric, Numeric]:
    """Return the successes, and what failures count, of each class of each group of a table."""
    success, failures, _ = parts
    failed = sum(share**power * getattr(table, name) for name, share in failures.items())
    return getattr(table, success)[:, : table.kept], np.asarray(failed)[:, : table.kept]


def share_rows(metric: Any, table: Confusion, power: int) -> tuple[Numeric, Numeric] | None:
    """Return successes and failures of each group, to a power; ``None`` if the value is no share.

    They are (groups,), and with ``average=None`` (groups, classes).
    """
    if metric.family in {Family.HITS, Family.MISSES}:
        sides = table.hits, table.misses
        return sides if metric.family == Family.HITS else sides[::-1]
    parts = parts_of(metric)
    if parts is None or metric.average in {"macro", "weighted"}:
        return None
    success, failures, _ = parts
    if metric.average == "micro":  # each row is a hit, or wrong in two classes
        if "tn" in failures or success == "tn" or table.size > table.kept:
            return None
        sides = table.hits, (table.total - table.hits) * sum(failures.values()) ** power
        return sides if success == "tp" else sides[::-1]
    rows = shares_of(parts, table, power)
    if metric.average == "binary":
        place = metric._positive(table)
        return table.at(rows[0], place), table.at(rows[1], place)
    return rows


def share(
    metric: Metric, asked: Asked, rows: Numeric, squares: object, odds: float = 1.0
) -> ConfidenceInterval:
    """Return the interval of o s / (o s + f), of sums of weights and of their squares."""
    success, failure = (np.asarray(side, np.float64) for side in rows)
    if asked.anytime and odds not in {1.0, 2.0}:
        raise not_anytime(metric)
    units = units_of((success, failure), squares)
    sides = share_limits(success, failure, asked.tail, units, odds, anytime=asked.anytime)
    return ConfidenceInterval(*sides, asked.level, ANYTIME if asked.anytime else WILSON)


def units_of(rows: Numeric, squares: Numeric) -> tuple[Numeric, Numeric]:
    """Return Σw² / Σw of successes and of failures; where there are none, that of the others."""
    s, f = rows
    s_square, f_square = (np.asarray(side, np.float64) for side in squares)
    both = np.divide(s_square + f_square, s + f, out=np.ones_like(s + f), where=s + f > 0)
    s_unit, f_unit = (
        np.divide(square, side, out=np.array(both), where=side > 0)
        for side, square in ((s, s_square), (f, f_square))
    )
    return s_unit, f_unit
