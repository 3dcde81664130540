"""Pairs of rows by whether two columns agree on their order: Kendall's counts and their range."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from streammetrics.core.arithmetic.exact import exact_dot
from streammetrics.core.arithmetic.rounding import root
from streammetrics.core.kernels import kernels

if TYPE_CHECKING:
    from streammetrics.core.arithmetic.pairs import Marginal, PairCells
    from streammetrics.core.types import Ints


class Untied(NamedTuple):
    """How many pairs of rows may differ in one coordinate, and how many distinct values it has."""

    certain: int  # those that certainly differ
    least: int
    most: int
    least_distinct: int
    most_distinct: int

    @classmethod
    def of(cls, side: Marginal, pairs: int) -> Self:
        """Return the counts of one coordinate."""
        mixed = side.counts[side.mixed]
        single = side.counts.size - mixed.size
        certain = pairs - _pairs_within(side.counts)
        rows = int(mixed.sum())
        # Of m rows that are not all equal at least m - 1 pairs differ: one row from all others.
        return cls(
            certain,
            certain + rows - mixed.size,
            certain + _pairs_within(mixed),
            single + 2 * mixed.size,
            single + rows,
        )


class Concordance(NamedTuple):
    """Pairs of rows: all, concordant less discordant, and how many may be either."""

    all: int
    known: int
    unknown: int
    x: Untied
    y: Untied

    @classmethod
    def of(cls, cells: PairCells) -> Self:
        """Return the counts of the cells of a histogram."""
        (x, y), counts = cells.marginals(), cells.counts
        pairs = cells.size * (cells.size - 1) // 2
        untied_x, untied_y = Untied.of(x, pairs), Untied.of(y, pairs)
        # The pairs untied in both are those untied in x plus those in y, less those in either.
        known = untied_x.certain + untied_y.certain - (pairs - _pairs_within(counts))
        known -= 2 * _discordant(cells)
        unknown = _pairs_within(x.counts[x.mixed]) + _pairs_within(y.counts[y.mixed])
        if unknown:
            # Pairs of one cell: where one coordinate has one value they are tied, whatever the
            # other is; where both have several they were counted twice.
            mixed = x.mixed[cells.rows] | y.mixed[cells.columns]
            unknown -= _pairs_within(counts[mixed])
        return cls(pairs, known, unknown, untied_x, untied_y)

    def times(self, largest: Fraction, smallest: Fraction) -> tuple[float, float, float]:
        """Return bounds and value of C - D times a factor that is itself in an interval."""
        low, high = self.known - self.unknown, self.known + self.unknown
        return (
            float(low * (largest if low < 0 else smallest)),
            float(self.known * smallest),
            float(high * (largest if high > 0 else smallest)),
        )


def largest_tau_b(pairs: Concordance, known: int) -> float:
    """Return the largest possible tau-b, where `known` is the certain part of C - D.

    Let a and b pairs be untied in x and in y, a0 and b0 of them certainly. Then C - D is at most
    known + min(a - a0 + b - b0, unknown), and tau-b is that over √(a b). As long as the sum is
    below `unknown`, this first falls and then rises with a, and likewise with b. Beyond, it falls
    with both, or rises with both if it is negative. So it is largest in a corner of the rectangle
    of possible (a, b), or where the line on which the sum equals `unknown` crosses an edge.
    """
    x, y = pairs.x, pairs.y
    line = pairs.unknown + x.certain + y.certain
    places = [(a, b) for a in (x.least, x.most) for b in (y.least, y.most)]
    places += [(a, line - a) for a in (x.least, x.most)]
    places += [(line - b, b) for b in (y.least, y.most)]
    return max(
        over_root(known + min(a + b - x.certain - y.certain, pairs.unknown), a * b)
        for a, b in places
        if x.least <= a <= x.most and y.least <= b <= y.most
    )


def _pairs_within(counts: Ints) -> int:
    """Return the number of pairs of rows within groups."""
    if counts.size == counts.sum():
        return 0
    return exact_dot(counts, counts - 1) // 2


def _discordant(cells: PairCells) -> int:
    """Return the number of pairs of rows whose cells are in opposite order in both coordinates."""
    # Pairs of one row ascend by column: they are in no inversion.
    ranks, counts = cells.columns.astype(np.int32), cells.counts
    found: int = (
        kernels.inversions(ranks)
        if cells.size == ranks.size
        else kernels.inversions(ranks, counts, counts)
    )
    return found


def over_root(numerator: int, squared: int) -> float:
    """Return numerator / √squared, rounded once."""
    return math.copysign(root(Fraction(numerator * numerator, squared)), numerator)
