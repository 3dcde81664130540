"""The best value that any threshold reaches: the highest point of a curve under a condition.

At the edges of cells everything is known, so the best of them is certainly reached: it is what
`compute()` gives and the lower bound. Within a cell of several scores a threshold passes at best
all positives and no negatives, or the reverse: those corners give the upper bound.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

import numpy as np

from streammetrics.metrics.scores.base import ROUNDING

if TYPE_CHECKING:
    from streammetrics.core.types import Array
    from streammetrics.metrics.scores.view import Staircase


class Target(Protocol):
    """What thresholds are compared by: a value, under a condition that it may have to meet."""

    def _reached(
        self, stairs: Staircase, tp: Array, fp: Array, margin: float
    ) -> tuple[Array, float]:
        """Return the value at each threshold, times a scale, and the scale.

        Args:
            stairs: The class that is read.
            tp: The true positives at each threshold, (m,).
            fp: The false positives, (m,).
            margin: By how much more than asked for the condition is to be met.
        """

    def _undefined(self, stairs: Staircase) -> bool:
        """Whether a class that is needed has no rows."""


def _best(
    target: Target, stairs: Staircase, margin: float = 0.0, *, corners: bool = False
) -> float:
    """Return the best value of any threshold, ``nan`` where it is undefined."""
    if target._undefined(stairs):
        return math.nan
    none = np.zeros(1, np.int64)
    values, scale = target._reached(stairs, none, none, margin)
    best = values.max()
    for steps in stairs.steps():
        places = [(steps.tp, steps.fp)]
        if corners:
            single = steps.single
            places.append((steps.tp, np.where(single, steps.fp, steps.fp_above)))
            places.append((np.where(single, steps.tp, steps.tp_above), steps.fp))
        for tp, fp in places:
            best = max(best, target._reached(stairs, tp, fp, margin)[0].max())
    return float(best.item() / scale)


def highest(target: Target, stairs: Staircase) -> float:
    """Return the best value of the thresholds at the edges of cells."""
    return _best(target, stairs)


def certainly_highest(target: Target, stairs: Staircase) -> tuple[float, float, float]:
    """Return a lower bound, the best value at edges, and an upper bound from corners of cells."""
    value = _best(target, stairs)
    margin = 0.0 if stairs.counted else ROUNDING
    low = _best(target, stairs, margin) if margin else value
    return low, value, _best(target, stairs, -margin, corners=True)


def lacks_a_class(_: object, stairs: Staircase) -> bool:
    """Whether one of the two classes has no rows."""
    return not stairs.positives or not stairs.negatives


def lacks_positives(_: object, stairs: Staircase) -> bool:
    """Whether there are no positives."""
    return not stairs.positives
