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
from streammetrics.metrics.classification.view import Margins

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streammetrics.core.metric import Metric
    from streammetrics.core.types import Array, Floats, Numeric
    from streammetrics.metrics.classification.view import Confusion


_STEP = 2.0**-17  # relative: its square, and rounding over it, leave about ten digits
_CANCELLED = 2.0**-30  # of the terms of a slope: what is left below is their rounding
_BITS = 60  # of the total, where sums are told as integers
_FEW = 4096  # cells whose readouts are taken one by one


class _NeedsCells(Exception):  # noqa: N818 - no error, only an answer
    """A readout looked at single cells."""


class _Margins(Margins):
    """A table as those see it that read nothing but the sums of each class.

    They need not be the sums of any table, so that each can be changed on its own.
    """

    def __init__(self, of: Confusion, sums: Sequence[Floats]) -> None:
        self.labels, self.size, self.seen, self.exponent = of.labels, of.size, of.seen, of.exponent
        self.kept = of.kept
        self.tp, self.actual, self.predicted = sums
        self.doubt = ""
        self.unscaled = of.unscaled

    def __getattr__(self, name: str) -> Numeric:
        raise _NeedsCells(name)

    def within(self) -> _Margins:
        if self.size > self.kept:
            raise _NeedsCells("within")
        return self

    @property
    def total(self) -> float:
        return float(self.actual.sum())

    @property
    def hits(self) -> float:
        return float(self.tp.sum())

    @property
    def misses(self) -> float:
        return float(self.fn.sum())

    def integers(self) -> tuple[Numeric, Numeric, Numeric, Numeric]:
        if max(self.actual.max(), self.predicted.max()) > (1 - 4 * _STEP) * self.total:
            raise _NeedsCells("sums that a step brings above the total")
        shift = _BITS - math.frexp(self.total)[1]
        sums = (self.actual, self.predicted, self.tp)
        return (*(_whole(each, shift) for each in sums), _Unread())  # type: ignore[return-value]  # three and it


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

    def read_with(place: int, side: Floats) -> Numeric:
        return read(_Margins(table, [*sums[:place], side, *sums[place + 1 :]]))

    return [derivatives(side, partial(read_with, place)) for place, side in enumerate(sums)]


def derivatives(amounts: Floats, read: Callable[[Floats], Any]) -> Floats:
    """Return how a readout changes with each of some amounts; with one that is 0 it does not."""
    found = []
    for index, amount in enumerate(amounts.tolist()):
        ends = []
        for sign in (1.0, -1.0):
            moved = amounts.copy()
            moved[index] = amount * (1 + sign * _STEP)
            ends.append(_read(read, moved))
        found.append((ends[0] - ends[1]) / (2 * _STEP * amount) if amount else 0 * ends[0])
    return np.array(found)


def _of_cells(metric: Metric[object], table: Confusion, read: Callable[[Any], Any]) -> Floats:
    if table.amount.size > _FEW:
        raise without(
            metric,
            f"its value is read from single cells, of which there are {table.amount.size:,}, and "
            f"more than {_FEW:,} take too long",
        )
    # Counts that are so large that steps of them are whole.
    amount = np.ldexp(table.amount, 52 - math.frexp(table.total)[1])
    slopes = []
    for index, size in enumerate(amount.tolist()):
        ends, places = [], []
        for sign in (1.0, -1.0):
            moved = np.rint(amount).astype(np.int64)
            places.append(round(size * (1 + sign * _STEP)))
            moved[index] = places[-1]
            ends.append(_read(read, table.holding(moved)))
        apart = places[0] - places[1]
        slopes.append((ends[0] - ends[1]) / apart if apart else 0 * ends[0])
    return np.array(slopes) * float(amount.sum() / table.total)


def _read(read: Callable[[Any], Any], table: object) -> Numeric:
    return np.asarray(read(table), np.float64)


def standard_error(influences: Floats, squares: Floats) -> Floats:
    """Return √Σ w² (∂θ/∂W)², over cells of which `squares` holds the sums of squared weights."""
    with np.errstate(
        over="ignore", invalid="ignore"
    ):  # weights too far apart say nothing: inf, nan
        return np.sqrt(np.tensordot(squares, influences**2, axes=1))
