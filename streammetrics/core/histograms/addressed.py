"""Cells found in a table over the range of their ids: quicker than a sort if it is short."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.exact.sums import ExactSum
from streammetrics.core.histograms.cells import Cells, columns_of, fitting_level, narrow_ids
from streammetrics.core.histograms.keys import cell_ids

if TYPE_CHECKING:
    from streammetrics.core.histograms.cells import CountType
    from streammetrics.core.histograms.keys import ScoredRows
    from streammetrics.core.types import Floats, Ints


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
    """Return the cells of weighted rows at a level; at level 0 at the lowest that they can need.

    ``None`` if the table would be long beside them, or, of level 0, if a lower level may do.
    """
    if not level and rows.scores.size <= max_cells:
        return None
    ids = cell_ids(rows.scores, level or 1)
    bits = min(rows.scores.size, max_cells).bit_length() + tuning.ROW_ADDRESS_BITS
    if level and int(ids.max()) - int(ids.min()) >> bits:
        return None
    found, low, occupied = _marked(ids, level or 1, bits)
    if not level:
        if occupied.size <= max_cells:
            return None
        level = fitting_level(occupied + low, found, max_cells)
        _raise(occupied, low, level - found)
        low = _raise(ids, low, level - found)
        occupied = occupied[np.flatnonzero(np.diff(occupied, prepend=-1))]
    positions = np.empty(int(occupied[-1]) + 1, np.int32)
    positions[occupied] = np.arange(occupied.size, dtype=np.int32)
    places = positions.take(ids).astype(np.intp)
    scores = np.empty(occupied.size)
    _put_scores(scores, places, rows.scores)
    occupied += low
    if rows.codes is not None:
        places *= classes
        places += rows.codes
    assert rows.weight is not None
    mass = ExactSum.grouped(places, occupied.size * classes, rows.weight)
    shaped = mass.reshaped((occupied.size, classes))
    return Cells(level, narrow_ids(occupied, level), scores + 0.0, shaped, classes)


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
