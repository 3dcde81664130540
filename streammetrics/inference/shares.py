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
    from streammetrics.metrics.classification.together import Confusions
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
    """Return the successes, and what failures count, of each class of a table."""
    success, failures, _ = parts
    failed = sum(share**power * getattr(table, name) for name, share in failures.items())
    return getattr(table, success)[: table.kept], np.asarray(failed)[: table.kept]


def micro_rows(
    parts: Parts, amounts: Confusion | Confusions, squares: Confusion | Confusions
) -> Numeric:
    """Return successes and failures of all classes: each row is a hit, or wrong in two of them."""
    success, failures, _ = parts
    if "tn" in failures or success == "tn" or amounts.size > amounts.kept:
        return None
    each = sum(failures.values())
    counts = (
        (table.hits, (table.total - table.hits) * each**power)
        for table, power in ((amounts, 1), (squares, 2))
    )
    return [side if success == "tp" else side[::-1] for side in counts]


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
