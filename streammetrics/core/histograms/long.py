"""Scores that no float64 holds, integers beyond 2**53, told apart while there are few."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core.exact.sums import ExactSum
from streammetrics.core.histograms.cells import (
    Cells,
    exact_mass,
    fitting_level,
    narrow_ids,
)
from streammetrics.core.histograms.keys import cell_ids

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.histograms.keys import ScoredRows
    from streammetrics.core.types import Bools, Floats


class LongCells(NamedTuple):
    """A cell for each score ``head + tail``, ascending, as `LongNumbers` splits them.

    No tail is 0: a score that float64 holds has its cell in `Cells`.

    Attributes:
        heads: The float64 nearest to each score (n,).
        tails: What it lacks (n,).
        mass: What each class weighs in each cell (n, classes).

    """

    heads: Floats
    tails: Floats
    mass: ExactSum

    @classmethod
    def empty(cls, classes: int) -> LongCells:
        """Return the cells of no rows."""
        return cls(np.empty(0), np.empty(0), ExactSum.zero((0, classes)))

    @classmethod
    def of(cls, rows: ScoredRows, tails: Floats, classes: int) -> LongCells:
        """Return the cells of rows whose scores are the heads."""
        size = tails.size
        entry = np.arange(size) * classes
        if rows.codes is not None:
            entry += rows.codes
        weight = np.ones(size) if rows.weight is None else rows.weight
        mass = ExactSum.grouped(entry, size * classes, weight).reshaped((size, classes))
        return cls(rows.scores, tails, mass)._united()

    @classmethod
    def union(cls, every: Sequence[LongCells]) -> LongCells:
        """Return the cells of the rows of all."""
        if len(every) == 1:
            return every[0]
        heads, tails, masses = zip(*every, strict=True)
        return cls(np.concatenate(heads), np.concatenate(tails), _stacked(masses))._united()

    def _united(self) -> LongCells:
        order = np.lexsort((self.tails, self.heads))
        heads, tails = self.heads[order], self.tails[order]
        new = np.ones(order.size, np.bool_)
        new[1:] = (heads[1:] != heads[:-1]) | (tails[1:] != tails[:-1])
        place = np.empty(order.size, np.intp)
        place[order] = np.cumsum(new) - 1
        mass = self.mass.regroup(place, int(np.count_nonzero(new)))
        return LongCells(heads[new], tails[new], mass)

    @property
    def size(self) -> int:
        """The number of cells."""
        return self.heads.size

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self.heads.nbytes + self.tails.nbytes + self.mass.nbytes

    def widened(self, max_cells: int) -> Cells:
        """Return at most `max_cells` wider cells of the heads, none of which tells its score."""
        ids = cell_ids(self.heads, 1)
        level = fitting_level(ids, 1, max_cells)
        ids = narrow_ids(ids >> (level - 1), level)
        new = np.diff(ids, prepend=ids[0] - 1) != 0
        mass = self.mass.regroup(np.cumsum(new) - 1, int(np.count_nonzero(new)))
        ids = ids[new]
        return Cells(level, ids, np.full(ids.size, np.nan), mass, mass.shape[1])

    def beside(self, cells: Cells) -> tuple[Cells, Floats]:
        """Return these cells and those of other scores at level 0 as one; and the tails of all."""
        heads = np.concatenate([cells.scores, self.heads])
        tails = np.concatenate([np.zeros(cells.scores.size), self.tails])
        order = np.lexsort((tails, heads))
        mass = _stacked([exact_mass(cells.mass), self.mass])[order]
        return Cells(0, heads[order], heads[order], mass, cells.classes).normal(), tails[order]


def grown(every: tuple[LongCells, ...], more: LongCells) -> tuple[LongCells, ...]:
    """Return parts of falling sizes with one more: so each cell is copied only a few times."""
    while every and every[-1].size <= more.size:
        more = LongCells.union([every[-1], more])
        every = every[:-1]
    return (*every, more)


def split(cells: Cells, tails: Floats) -> tuple[Cells, LongCells]:
    """Return cells without and with tails: what `LongCells.beside` makes one of."""
    mass, long, scores = exact_mass(cells.mass), tails != 0, cells.scores
    plain = cells._replace(ids=scores[~long], scores=scores[~long], mass=mass[~long])
    return plain.normal(), LongCells(scores[long], tails[long], mass[long])


def are_tails(heads: Floats, tails: Floats) -> Bools:
    """Whether each tail is 0, or what the head lacks to be an integer of 64 bits."""
    with np.errstate(invalid="ignore", over="ignore"):
        whole = (np.abs(tails) <= 1024) & (np.rint(tails) == tails)
        nearest = (heads + tails == heads) & (np.abs(heads) <= 2.0**64)
    low, high = -(2.0**63), 2.0**64
    inside = (heads > low) | ((heads == low) & (tails >= 0))
    inside &= (heads < high) | ((heads == high) & (tails < 0))
    found: Bools = (tails == 0) | (whole & nearest & inside)
    return found


def _stacked(every: Sequence[ExactSum]) -> ExactSum:
    tables, exponent = ExactSum.aligned(every)
    return ExactSum.of_digits(np.concatenate(tables), exponent)
