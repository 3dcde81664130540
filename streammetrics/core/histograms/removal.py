"""Rows taken out of the cells of a histogram: exact while every score has a cell of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.errors import IncompatibleMetricsError
from streammetrics.core.exact.sums import ExactSum
from streammetrics.core.histograms.cells import Cells, exact_mass, narrow_counts, normal_mass
from streammetrics.core.histograms.long import LongCells

if TYPE_CHECKING:
    from streammetrics.core.types import Array, Places

    Mass = Array | ExactSum


def without(cells: Cells, other: Cells) -> Cells:
    """Return cells of level 0 without the rows of `other`, at level 0, which must all be there."""
    places = np.searchsorted(cells.scores, other.scores)
    if not np.array_equal(cells.scores.take(places, mode="clip"), other.scores):
        raise never_added()
    mass, kept = _left(cells.mass, other.mass, places)
    scores = cells.scores[kept]
    return cells._replace(ids=scores, scores=scores, mass=mass)


def long_without(cells: LongCells, other: LongCells) -> LongCells:
    """Return long cells without the rows of `other`, which must all be there."""
    negative = other._replace(mass=-other.mass)
    both = LongCells.union([cells, negative])
    if both.size != cells.size:
        raise never_added()
    kept = _kept(both.mass)
    return LongCells(both.heads[kept], both.tails[kept], both.mass[kept])


def _left(mine: Mass, theirs: Mass, places: Places) -> tuple[Mass, Places]:
    """Return what is left of the mass (n, classes), and which cells still have some.

    The mass `theirs` is taken from the cells at `places`.
    """
    if isinstance(mine, ExactSum) or isinstance(theirs, ExactSum):
        exact = exact_mass(mine)
        left = exact - exact_mass(theirs).regroup(places, exact.shape[0])
        kept = _kept(left)
        return normal_mass(left[kept]), kept
    counts = mine.astype(np.int64)
    counts[places] -= theirs
    if counts.min(initial=0) < 0:
        raise never_added()
    kept = np.flatnonzero(counts.any(axis=1))
    return narrow_counts(counts[kept]), kept


def _kept(mass: ExactSum) -> Places:
    """Return the places of the cells that weigh anything; raises if one weighs less than 0."""
    if (mass.digits[:, -1:] < 0).any():  # the highest digit has the sign
        raise never_added()
    return np.flatnonzero(np.any(mass.digits.any(axis=1).reshape(mass.shape), axis=1))


def never_added() -> IncompatibleMetricsError:
    """Return the error of rows that were never added."""
    return IncompatibleMetricsError(
        "the rows to be taken out are not among those of this state: some scores, or some of the "
        "rows with them, were never added"
    )
