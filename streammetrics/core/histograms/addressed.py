"""Cells found in a table over the range of their ids: quicker than a sort if it is short."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.exact.sums import ExactSum
from streammetrics.core.histograms.cells import (
    Cells,
    columns_of,
    exact_mass,
    fitting_level,
    narrow_ids,
)
from streammetrics.core.histograms.keys import cell_ids

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.histograms.cells import CountType
    from streammetrics.core.histograms.keys import ScoredRows
    from streammetrics.core.types import Array, Floats, Ints


def addressed(chain: Cells, max_cells: int, dtype: CountType) -> Cells | None:
    """Return the union of cells at the lowest level that fits `max_cells`.

    `chain` holds them in no order, some more than once. They are first marked in a table over the
    range of their ids, at a level at which it is short: if more are marked than fit, the marks tell
    the level to go up to, at which the cells are counted in a shorter table. ``None`` if the marks
    of every table fit, so that a level below it may be the lowest.
    """
    least = chain.level or 1
    for bits in (max_cells.bit_length() + tuning.ADDRESS_BITS, tuning.ADDRESSES.bit_length()):
        places = _ids_at(chain, least)
        found, low, occupied = _marked(places, least, bits)
        if occupied.size > max_cells or found == chain.level:
            occupied += low
            level = fitting_level(occupied, found, max_cells)
            return _counted(chain, level, places, _raise(places, low, level - found), dtype)
    return None


def weighed(rows: ScoredRows, level: int, max_cells: int, classes: int) -> Cells | None:
    """Return the cells of weighted rows at the lowest level, from this one on, that fits.

    ``None`` as of `_found`.
    """
    if not level and rows.scores.size <= max_cells:
        return None
    found = _found(cell_ids(rows.scores, level or 1), level, max_cells)
    if found is None:
        return None
    places, scores = found.places, found.scores(rows.scores)
    if rows.codes is not None:
        places *= classes
        places += rows.codes
    assert rows.weight is not None
    mass = ExactSum.grouped(places, scores.size * classes, rows.weight)
    return Cells(found.level, found.ids, scores, mass.reshaped((scores.size, classes)), classes)


def summed(every: Sequence[Cells], max_cells: int) -> Cells | None:
    """Return the union of cells at the lowest level that fits, with exact sums as their mass.

    ``None`` as of `_found`.
    """
    level = max(cells.level for cells in every)
    if not level and sum([cells.ids.size for cells in every]) <= max_cells:
        return None
    ids = np.concatenate([_ids_at(cells, level or 1) for cells in every])
    found = _found(ids, level, max_cells)
    if found is None:
        return None
    scores = found.scores(np.concatenate([cells.scores for cells in every]))
    ends = np.cumsum([cells.ids.size for cells in every])[:-1]
    masses = [exact_mass(cells.mass) for cells in every]
    mass = ExactSum.gathered(zip(np.split(found.places, ends), masses, strict=True), scores.size)
    return Cells(found.level, found.ids, scores, mass, every[0].classes)


class _Found(NamedTuple):
    """Cells that a table tells: their level and ids, and which of them each id given is of."""

    level: int
    ids: Array
    places: Ints

    def scores(self, of: Floats) -> Floats:
        """Return the score of each cell, of the scores of those that were given."""
        scores = np.empty(self.ids.size)
        _put_scores(scores, self.places, of)
        return scores + 0.0


def _found(ids: Ints, level: int, max_cells: int) -> _Found | None:
    """Return the cells at the lowest level, from this one on, that fits `max_cells`.

    `ids`, which are overwritten, are of that level, or of level 1 where it is 0. ``None`` if the
    table would be so long beside them that it does not tell the level.
    """
    bits = min(ids.size, max_cells).bit_length() + tuning.ROW_ADDRESS_BITS
    found, low, occupied = _marked(ids, level or 1, bits)
    if found != level and occupied.size <= max_cells:
        return None  # a level below may do
    level = fitting_level(occupied + low, found, max_cells)
    _raise(occupied, low, level - found)
    low = _raise(ids, low, level - found)
    occupied = occupied[np.flatnonzero(np.diff(occupied, prepend=-1))]
    positions = np.empty(int(occupied[-1]) + 1, np.int32)
    positions[occupied] = np.arange(occupied.size, dtype=np.int32)
    return _Found(level, narrow_ids(occupied + low, level), positions.take(ids).astype(np.intp))


def _ids_at(chain: Cells, level: int) -> Ints:
    """Return the ids of cells at a level, in a new array."""
    if not chain.level:
        return cell_ids(chain.scores, level)
    return chain.ids.astype(np.int64) >> (level - chain.level)


def _marked(ids: Ints, level: int, bits: int) -> tuple[int, int, Ints]:
    """Return the lowest level at which ids span so many bits, the lowest of them, and all there.

    They are less the lowest one, and ids are overwritten with the same.
    """
    low, high = int(ids.min()), int(ids.max())
    above = max((high - low).bit_length() - bits, 0)
    ids >>= above
    low >>= above
    ids -= low
    marks = np.zeros((high >> above) - low + 1, np.bool_)
    marks[ids] = True
    return level + above, low, np.flatnonzero(marks)


def _raise(ids: Ints, low: int, above: int) -> int:
    """Bring ids less `low` to a higher level, in place, and return the lowest there."""
    if above:
        ids += low
        ids >>= above
        low >>= above
        ids -= low
    return low


def _put_scores(table: Floats, places: Ints, scores: Floats) -> None:
    """Write the score of each place, nan where there are several."""
    table[places] = scores  # any one of those of a cell
    table[places[table.take(places) != scores]] = np.nan


def _counted(chain: Cells, level: int, places: Ints, low: int, dtype: CountType) -> Cells:
    """Return the cells at `level`, whose ids less `low` are their places."""
    size = int(places.max()) + 1
    scores = np.empty(size)
    _put_scores(scores, places, chain.scores)
    counts = np.zeros((size, chain.classes), dtype)
    mass = np.asarray(chain.mass, dtype)
    for column, more in zip(columns_of(counts, dtype), columns_of(mass, dtype), strict=True):
        np.add.at(column, places, more)
    occupied = np.flatnonzero(np.logical_or.reduce([column != 0 for column in counts.T]))
    ids = narrow_ids(occupied + low, level)
    return Cells(level, ids, scores[occupied], counts[occupied], chain.classes)
