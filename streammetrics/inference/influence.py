"""How much a value changes with each cell of a table: what the variance of any count metric is of.

A readout of counts that does not change when all of them are doubled is nearly linear in them, so
its variance is Σ n_c (∂θ/∂n_c)² over the cells (the infinitesimal jackknife; Jaeckel 1972, Efron
1982), with weights Σ w² in place of n_c. Derivatives are numeric, of the readout as it is.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.confidence import without
from streammetrics.metrics.classification.margins import Integers, Margins

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streammetrics.core.metric import Metric
    from streammetrics.core.types import Array, Floats, Numeric
    from streammetrics.metrics.classification.view import Confusion


_STEP = 2.0**-17  # relative: its square, and rounding over it, leave about ten digits
_CANCELLED = 2.0**-30  # of the terms of a slope: what is left below is their rounding
_BITS = 60  # of the total, where sums are told as integers
_ROOM = 1 << 20  # numbers of moved tables that are read at a time
_FEW = 4096  # cells whose readouts are taken one by one


class _NeedsCells(Exception):  # noqa: N818 - no error, only an answer
    """A readout looked at single cells."""


class _Margins(Margins):
    """A table as those see it that read nothing but the sums of each class.

    They need not be the sums of any table, so that each can be changed on its own.
    """

    def __init__(self, of: Confusion, sums: Sequence[Floats]) -> None:
        self.labels, self.size, self.kept, self.exponent = of.labels, of.size, of.kept, of.exponent
        self.tp, self.actual, self.predicted = sums
        self.groups, self.seen = len(self.tp), np.repeat(of.seen, len(self.tp), axis=0)
        self.unscaled = of.unscaled

    def __getattr__(self, name: str) -> Numeric:
        raise _NeedsCells(name)

    def each(self) -> list[_Margins]:
        raise _NeedsCells("each")

    def within(self) -> _Margins:
        if self.size > self.kept:
            raise _NeedsCells("within")
        return self

    @property
    def total(self) -> Floats:
        total: Floats = self.actual.sum(axis=1)
        return total

    @property
    def hits(self) -> Floats:
        hits: Floats = self.tp.sum(axis=1)
        return hits

    @property
    def misses(self) -> Floats:
        misses: Floats = self.fn.sum(axis=1)
        return misses

    def integers(self) -> list[Integers]:
        found = []
        for *sums, total in zip(self.actual, self.predicted, self.tp, self.total, strict=True):
            if max(sums[0].max(), sums[1].max()) > (1 - 4 * _STEP) * total:
                raise _NeedsCells("sums that a step brings above the total")
            shift = _BITS - math.frexp(total)[1]
            parts: Any = (*(_whole(each, shift) for each in sums), _Unread())
            found.append(Integers(*parts))
        return found


class _Unread:
    """The cells of a table of which only the sums are there."""

    def __getattr__(self, name: str) -> Numeric:
        raise _NeedsCells(name)

    def __mul__(self, other: object) -> Numeric:
        raise _NeedsCells("*")

    __rmul__ = __array__ = __mul__
    __array_ufunc__ = None


def _whole(values: Floats, shift: int) -> Array:
    return np.array([round(math.ldexp(value, shift)) for value in values.tolist()], dtype=object)


def influence(metric: Metric[object], table: Confusion, read: Callable[[Any], Any]) -> Floats:
    """Return ∂θ/∂n for every cell of a table, (cells, *the shape of the value)."""
    try:
        of_tp, of_actual, of_predicted = _of_margins(table, read)
    except _NeedsCells:
        return _of_cells(metric, table, read)
    hit = (table.rows == table.columns).reshape(-1, *[1] * (of_tp.ndim - 1))
    terms = (of_actual[table.rows], of_predicted[table.columns], hit * of_tp[table.rows])
    slopes: Floats = np.sum(terms, axis=0)
    cancelled = np.abs(slopes) <= _CANCELLED * np.sum(np.abs(terms), axis=0)
    return np.where(cancelled, 0.0, slopes)


def _of_margins(table: Confusion, read: Callable[[Any], Any]) -> list[Floats]:
    sums = [table.tp, table.actual, table.predicted]

    def read_with(place: int, moved: Floats) -> Numeric:
        sides = [np.repeat(side, len(moved), axis=0) for side in sums]
        sides[place] = moved
        return read(_Margins(table, sides))

    return [derivatives(side[0], partial(read_with, place)) for place, side in enumerate(sums)]


def derivatives(amounts: Floats, read: Callable[[Floats], Any]) -> Floats:
    """Return how a readout changes with each of some amounts; with one that is 0 it does not.

    Amounts are (n,), and `read` is given tables of them, (m, n), of each of which it returns the
    value.
    """
    found = []
    block = max(1, _ROOM // (2 * max(amounts.size, 1)))
    for first in range(0, amounts.size, block):
        index = np.arange(first, min(first + block, amounts.size))
        moved = np.repeat(amounts[None], 2 * index.size, axis=0)
        for row, sign in enumerate((1.0, -1.0)):
            moved[row::2][np.arange(index.size), index] = amounts[index] * (1 + sign * _STEP)
        values = np.asarray(read(moved), np.float64)
        up, down = values[::2], values[1::2]
        amount = amounts[index].reshape(-1, *[1] * (values.ndim - 1))
        with np.errstate(all="ignore"):
            slopes = (up - down) / (2 * _STEP * amount)
        found.append(np.where(amount == 0, 0 * up, slopes))
    return np.concatenate(found)


def _of_cells(metric: Metric[object], table: Confusion, read: Callable[[Any], Any]) -> Floats:
    if table.amount.size > _FEW:
        raise without(
            metric,
            f"its value is read from single cells, of which there are {table.amount.size:,}, and "
            f"more than {_FEW:,} take too long",
        )
    # Counts that are so large that steps of them are whole.
    total = float(table.total[0])
    amount = np.ldexp(table.amount, 52 - math.frexp(total)[1])
    slopes = []
    for index, size in enumerate(amount.tolist()):
        ends, places = [], []
        for sign in (1.0, -1.0):
            moved = np.rint(amount).astype(np.int64)
            places.append(round(size * (1 + sign * _STEP)))
            moved[index] = places[-1]
            ends.append(np.asarray(read(table.holding(moved))[0], np.float64))
        apart = places[0] - places[1]
        slopes.append((ends[0] - ends[1]) / apart if apart else 0 * ends[0])
    return np.array(slopes) * float(amount.sum() / total)


def standard_error(influences: Floats, squares: Floats) -> Floats:
    """Return √Σ w² (∂θ/∂W)², over cells of which `squares` holds the sums of squared weights."""
    with np.errstate(
        over="ignore", invalid="ignore"
    ):  # weights too far apart say nothing: inf, nan
        return np.sqrt(np.tensordot(squares, influences**2, axes=1))
