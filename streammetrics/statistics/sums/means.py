"""Means of exact sums and their roots, correctly rounded: of one group, or of all at once."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum, quotient, root
from streammetrics.core.floating import quiet
from streammetrics.statistics.sums.formulas import product_and_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from streammetrics.core.fields.weights import WeightedCount
    from streammetrics.core.types import Bools, Floats

_FAR = 2.0**400  # products of numbers below this, and above its inverse, are split without error
_OFF = 2.0**-48  # more than a few dozen roundings are off
_TINY = 2.0**-100  # more than what a pair of floats lacks of a number


def mean_of(total: ExactSum, rows: WeightedCount) -> float:
    """Return a sum over the weight of its rows as the nearest float; ``nan`` without rows.

    Of the sums of groups (m,) an array of them, which only readouts over groups see.
    """
    if total.shape == ():
        return quotient(*ratio) if (ratio := _ratio(total, rows)) else math.nan
    means = _quotient(total, rows.exact())
    return means.rounded(lambda group: mean_of(total[group], rows.at(group)))  # type: ignore[return-value]  # of groups


def root_mean_of(total: ExactSum, rows: WeightedCount) -> float:
    """Return the root of the mean likewise."""
    if total.shape == ():
        return root(Fraction(*ratio)) if (ratio := _ratio(total, rows)) else math.nan
    roots = _quotient(total, rows.exact()).root()
    return roots.rounded(lambda group: root_mean_of(total[group], rows.at(group)))  # type: ignore[return-value]  # of groups


def ratio_of(above: ExactSum, below: ExactSum) -> float:
    """Return the quotient of two sums of numbers of one sign likewise; ``nan`` if `below` is 0."""
    if above.shape == ():
        (x, x_unit), (y, y_unit) = above.integers(), below.integers()
        unit = x_unit - y_unit
        return quotient(x << max(unit, 0), y << max(-unit, 0)) if y else math.nan
    ratios = _quotient(above, below)
    return ratios.rounded(lambda group: ratio_of(above[group], below[group]))  # type: ignore[return-value]  # of groups


def _ratio(total: ExactSum, rows: WeightedCount) -> tuple[int, int] | None:
    """Return one sum over its weight as two integers, ``None`` without rows."""
    integer, exponent = total.integers()
    weight, parts = rows.ratio()
    above, below = integer * parts << max(exponent, 0), weight << max(-exponent, 0)
    return (above, below) if weight else None


class _Near(NamedTuple):
    """Numbers of groups, each within `error` of ``head + tail`` where it is `known`.

    The `head` of those that are `plain` is the nearest float.
    """

    head: Floats
    tail: Floats
    error: Floats
    known: Bools
    plain: Bools

    @quiet
    def rounded(self, exact: Callable[[int], float]) -> Floats:
        """Return the nearest floats; `exact` gives those of groups that may be either of two."""
        values = np.where(self.plain, self.head, self.head + (self.tail - self.error))
        sure = self.plain | (values == self.head + (self.tail + self.error))
        for group in np.flatnonzero(~(sure & self.known)).tolist():
            values[group] = exact(group)
        return values

    @quiet
    def root(self) -> _Near:
        """Return the square roots."""
        head = np.sqrt(self.head)
        square, lost = product_and_error(head, head)
        left = ((self.head - square) - lost) + self.tail
        below = np.where(head == 0, 1.0, head)
        error = (np.abs(left) * _OFF + self.error) / below + head * _TINY
        return _Near(head, left / (2 * below), error, self.known, np.zeros_like(self.plain))


@quiet
def _quotient(total: ExactSum, rows: ExactSum) -> _Near:
    (above, low, fits), (below, less, has_rows) = _pair(total), _pair(rows)
    head = above / below
    product, lost = product_and_error(head, below)
    rest, more = (above - product) - lost, head * less
    tail = (rest + (low - more)) / below
    error = (np.abs(rest) + np.abs(low) + np.abs(more)) / below * _OFF + np.abs(head) * _TINY
    plain = (np.frexp(below)[0] == 0.5) & (less == 0)  # a power of two: dividing rounds nothing
    return _Near(head, tail, error, fits & has_rows & (below > 0), plain)


def _pair(sums: ExactSum) -> tuple[Floats, Floats, Bools]:
    """Return each sum as the nearest float and what it lacks, and which are 0 or in range."""
    near = np.asarray(sums.to_float())
    size = np.abs(near)
    fits = (size < _FAR) & (size > 1 / _FAR)
    head = np.where(fits, near, 0.0)
    tail = sums - ExactSum.grouped(np.arange(head.size), head.size, head)
    return head, np.asarray(tail.to_float()), fits | ~sums.digits.any(axis=1)
