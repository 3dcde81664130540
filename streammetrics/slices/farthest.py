"""Confidence limits of the largest distance between several slices, from the limits of each.

Slices of one kind share no rows, so their values are independent. Limits of a difference of two
values follow from the limits of each (MOVER, see `margin`), and so do those of a ratio (Donner and
Zou, Statistical Methods in Medical Research 21, 2012). If the limits of all pairs hold
simultaneously, the maximum over all pairs lies between the largest lower limit and the largest
upper limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streammetrics.inference.distributions import margin

if TYPE_CHECKING:
    from collections.abc import Callable

    from streammetrics.core.types import Floats, Places


def pairs_of(count: int) -> int:
    """Return the number of pairs of `count` slices."""
    return count * (count - 1) // 2


def difference_limits(value: Floats, low: Floats, high: Floats) -> tuple[float, float]:
    """Return limits of the largest value minus the smallest, for at least two values.

    >>> value, low, high = np.array([[0.5, 0.9], [0.2, 0.6], [0.9, 1.0]])
    >>> least, most = difference_limits(value, low, high)
    >>> least, round(most, 4)  # 0.4 - hypot(0.3, 0.4) is below 0; 0.4 + hypot(0.1, 0.3)
    (0.0, 0.7162)
    """

    def least(one: int, others: Places) -> Floats:
        apart = margin(value[one], low[one], value[others], high[others])
        return np.asarray(value[one] - value[others] - apart)

    def most(one: int, others: Places) -> Floats:
        apart = margin(value[others], low[others], value[one], high[one])
        return np.asarray(value[one] - value[others] + apart)

    lower = _of_pairs(least, _foremost(value, low), _foremost(-value, -high))
    upper = _of_pairs(most, _foremost(value, high), _foremost(-value, -low))
    return max(0.0, float(lower.max())), float(upper.max())


def ratio_limits(value: Floats, low: Floats, high: Floats) -> tuple[float, float]:
    """Return limits of the smallest value over the largest, for two or more non-negative values.

    They are the ratios r of a and b at which ``|a - r b| = hypot(a - a', r (b - b'))``. For the
    lower limit, a' is the lower limit of a, and b' the upper limit of b; for the upper limit, they
    are the other ones.

    >>> value, low, high = np.array([[0.5, 0.8], [0.4, 0.7], [0.6, 0.9]])
    >>> [round(limit, 4) for limit in ratio_limits(value, low, high)]
    [0.486, 0.7838]
    """
    below, above = low * (2 * value - low), high * (2 * value - high)

    def root(one: int, others: Places, product: Floats) -> Floats:
        whole = value[one] * value[others]
        return np.asarray(whole + np.sqrt(np.maximum(whole * whole - product, 0.0)))

    def least(one: int, others: Places) -> Floats:
        ratio = below[one] / root(one, others, below[one] * above[others])
        return np.where(np.isnan(ratio), 0.0, ratio)

    def most(one: int, others: Places) -> Floats:
        ratio = root(one, others, above[one] * below[others]) / below[others]
        return np.where(np.isnan(ratio), np.inf, ratio)

    with np.errstate(all="ignore"):  # 0 and infinity give nan, replaced by trivial limits
        lower = _of_pairs(least, _foremost(-value, -low), _foremost(value, high))
        upper = _of_pairs(most, _foremost(-value, -high), _foremost(value, low))
    return float(lower.min()), min(1.0, float(upper.min()))


def _foremost(value: Floats, limit: Floats) -> Places:
    """Return the slices that fewer than two others exceed in both value and limit.

    A pair's limit increases with the value and the limit of its first side. If two others exceed
    a side, one of them gives a more extreme pair, because only one can be the second side.
    """
    order = np.lexsort((limit, value))[::-1]
    found = []
    for _ in range(2):
        best = np.maximum.accumulate(limit[order])
        first = np.ones(order.size, np.bool_)
        np.greater(limit[order][1:], best[:-1], out=first[1:])
        found.append(order[first])
        order = order[~first]
    return np.concatenate(found)


def _of_pairs(limit: Callable[[int, Places], Floats], first: Places, second: Places) -> Floats:
    """Return the limit of every pair of a slice of `first` and another of `second`."""
    return np.concatenate([limit(one, second[second != one]) for one in first.tolist()])
