"""The best value that any threshold reaches: the highest point of a curve under a condition.

At the edges of cells everything is known, so the best of them is certainly reached: it is what
`compute()` gives and the lower bound. Within a cell of several scores a threshold passes at best
all positives and no negatives, or the reverse: those corners give the upper bound.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

from streammetrics.metrics.scores.base import ROUNDING
from streammetrics.metrics.scores.view import corners

if TYPE_CHECKING:
    from streammetrics.core.types import Array
    from streammetrics.metrics.scores.view import Staircase


class Target(Protocol):
    """What thresholds are compared by: a value, under a condition that it may have to meet."""

    def _reached(
        self, stairs: Staircase, tp: Array, fp: Array, tn: Array, margin: float
    ) -> tuple[Array, float]:
        """Return the value at each threshold, times a scale, and the scale.

        Args:
            stairs: The class that is read.
            tp: The true positives at each threshold, (m,).
            fp: The false positives, (m,).
            tn: The true negatives, (m,).
            margin: By how much more than asked for the condition is to be met.
        """

    def _undefined(self, stairs: Staircase) -> bool:
        """Whether a class that is needed has no rows."""


def _best(target: Target, stairs: Staircase, margin: float = 0.0, *, within: bool = False) -> float:
    """Return the best value of any threshold, ``nan`` where it is undefined."""
    if target._undefined(stairs):
        return math.nan
    known = corners(stairs)
    places = [(known.tp, known.fp, known.tn)]
    if within:
        mixed = ~known.single
        places.append((known.tp[:-1][mixed], known.fp[1:][mixed], known.tn[1:][mixed]))
        places.append((known.tp[1:][mixed], known.fp[:-1][mixed], known.tn[:-1][mixed]))
    reached = [target._reached(stairs, *place, margin) for place in places]
    return max(float(values.max(initial=0) / scale) for values, scale in reached)


def highest(target: Target, stairs: Staircase) -> float:
    """Return the best value of the thresholds at the edges of cells."""
    return _best(target, stairs)


def certainly_highest(target: Target, stairs: Staircase) -> tuple[float, float, float]:
    """Return a lower bound, the best value at edges, and an upper bound from corners of cells."""
    value = _best(target, stairs)
    margin = 0.0 if stairs.counted else ROUNDING
    low = _best(target, stairs, margin) if margin else value
    return low, value, _best(target, stairs, -margin, within=True)


def lacks_a_class(_: object, stairs: Staircase) -> bool:
    """Whether one of the two classes has no rows."""
    return not stairs.positives or not stairs.negatives


def lacks_positives(_: object, stairs: Staircase) -> bool:
    """Whether there are no positives."""
    return not stairs.positives
