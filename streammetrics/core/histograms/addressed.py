"""Cells merged in a table over the range of their ids: quicker than a sort if it is short."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.histograms.cells import Cells, columns_of, fitting_level, narrow_ids
from streammetrics.core.histograms.keys import cell_ids

if TYPE_CHECKING:
    from streammetrics.core.histograms.cells import CountType
    from streammetrics.core.types import Ints


def addressed(chain: Cells, max_cells: int, dtype: CountType) -> Cells | None:
    """Return the union of cells at the lowest level that fits `max_cells`.

    `chain` holds them in no order, some more than once. They are first marked in a table over the
    range of their ids, at a level at which it is short: if more are marked than fit, the marks tell
    the level to go up to, at which the cells are counted in a shorter table. ``None`` if the marks
    of every table fit, so that a level below it may be the lowest.
    """
    ends = np.array([chain.ids.min(), chain.ids.max()])
    least = chain.level or 1
    first, last = (ends if chain.level else cell_ids(ends, 1)).tolist()
    reach = (last - first).bit_length()
    for bits in (max_cells.bit_length() + tuning.ADDRESS_BITS, tuning.ADDRESSES.bit_length()):
        above = max(reach - bits, 0)
        low = first >> above
        places = _ids_at(chain, least + above)
        places -= low
        marks = np.zeros((last >> above) - low + 1, np.bool_)
        marks[places] = True
        occupied = np.flatnonzero(marks)
        if occupied.size > max_cells or least + above == chain.level:
            occupied += low
            level = fitting_level(occupied, least + above, max_cells)
            return _counted(chain, level, places, low, level - least - above, dtype)
    return None


def _ids_at(chain: Cells, level: int) -> Ints:
    """Return the ids of cells at a level, in a new array."""
    if not chain.level:
        return cell_ids(chain.scores, level)
    return chain.ids.astype(np.int64) >> (level - chain.level)


def _counted(
    chain: Cells,
    level: int,
    places: Ints,
    low: int,
    above: int,
    dtype: CountType,
) -> Cells:
    """Return the cells at `level`, so far `above` that of `places`, of which 0 is the id `low`."""
    if above:
        places += low
        places >>= above
        low >>= above
        places -= low
    size = int(places.max()) + 1
    scores = np.empty(size)
    scores[places] = chain.scores  # any one of those of a cell
    scores[places[scores.take(places) != chain.scores]] = np.nan
    counts = np.zeros((size, chain.classes), dtype)
    mass = np.asarray(chain.mass, dtype)
    for column, more in zip(columns_of(counts, dtype), columns_of(mass, dtype), strict=True):
        np.add.at(column, places, more)
    occupied = np.flatnonzero(np.logical_or.reduce([column != 0 for column in counts.T]))
    ids = narrow_ids(occupied + low, level)
    return Cells(level, ids, scores[occupied], counts[occupied], chain.classes)
