"""Rows and cells counted in a short table that their ids are looked up in, without a sort."""

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
from streammetrics.core.histograms.keys import cell_ids, concatenated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.histograms.cells import CountType
    from streammetrics.core.histograms.keys import ScoredRows
    from streammetrics.core.types import Array, Floats, Ints, Places


def row_cells(chunks: Sequence[ScoredRows], classes: int) -> Cells:
    """Return a cell for each row of weight one, in no order."""
    scores, codes, _ = concatenated(chunks)
    mass = np.ones((scores.size, classes), np.int32)
    if codes is not None:
        mass[:, 1] = codes
        np.subtract(1, codes, out=mass[:, 0], casting="unsafe")
    return Cells(0, scores, scores, mass, classes)


def addressed(chain: Cells, max_cells: int, dtype: CountType) -> Cells | None:
    """Return the union of cells at the lowest level that fits `max_cells`; ``None`` as of `_found`.

    `chain` holds them in no order, some more than once.
    """
    bits = max_cells.bit_length() + tuning.ADDRESS_BITS
    ids = _ids_at(chain, chain.level or 1)
    found = _found(ids, chain.scores, chain.level, max_cells, bits)
    if found is None:
        return None
    counts = np.zeros((found.ids.size, chain.classes), dtype)
    mass = np.asarray(chain.mass, dtype)
    for column, more in zip(columns_of(counts, dtype), columns_of(mass, dtype), strict=True):
        np.add.at(column, found.places, more)
    return Cells(found.level, found.ids, found.scores, counts, chain.classes)


def weighed(rows: ScoredRows, level: int, max_cells: int, classes: int) -> Cells | None:
    """Return the cells of weighted rows at the lowest level, from this one on, that fits.

    ``None`` as of `_found`.
    """
    scores, codes, weight = rows
    if not level and scores.size <= max_cells and not _repeat(scores):
        return None
    bits = min(scores.size, max_cells).bit_length() + tuning.ROW_ADDRESS_BITS
    found = _found(cell_ids(scores, level or 1), scores, level, max_cells, bits)
    if found is None:
        return None
    places, size = found.places, found.ids.size
    if codes is not None:
        places *= classes
        places += codes
    assert weight is not None
    mass = ExactSum.grouped(places, size * classes, weight).reshaped((size, classes))
    return Cells(found.level, found.ids, found.scores, mass, classes)


def summed(every: Sequence[Cells], max_cells: int) -> Cells | None:
    """Return the union of cells at the lowest level that fits, with exact sums as their mass.

    ``None`` as of `_found`.
    """
    level = max(cells.level for cells in every)
    scores = np.concatenate([cells.scores for cells in every])
    if not level and scores.size <= max_cells:
        return None
    bits = min(scores.size, max_cells).bit_length() + tuning.ROW_ADDRESS_BITS
    ids = np.concatenate([_ids_at(cells, level or 1) for cells in every])
    found = _found(ids, scores, level, max_cells, bits)
    if found is None:
        return None
    ends = np.cumsum([cells.ids.size for cells in every])[:-1]
    masses = [exact_mass(cells.mass) for cells in every]
    parts = zip(np.split(found.places, ends), masses, strict=True)
    mass = ExactSum.gathered(parts, found.ids.size)
    return Cells(found.level, found.ids, found.scores, mass, every[0].classes)


def _repeat(scores: Floats) -> bool:
    """Whether scores, of which some are looked at, mostly occur more than once."""
    some = np.sort(scores[:: max(1, scores.size // tuning.KEY_ROWS)])
    return 2 * int(np.count_nonzero(some[1:] != some[:-1])) < some.size


class _Found(NamedTuple):
    """Cells that a table tells: level, ids and scores, and which of them each id given is of."""

    level: int
    ids: Array
    scores: Floats
    places: Places


def _found(ids: Ints, scores: Floats, level: int, max_cells: int, bits: int) -> _Found | None:
    """Return the cells at the lowest level, from this one on, that fits `max_cells`.

    `ids`, each with its score, are of that level, or of level 1 where it is 0. They are marked in a
    table that spans so many bits, more than `max_cells` has. While the marks fit, each of them
    becomes a page of another table of that length, of a lower level. Once more are marked than fit,
    the marks tell the level to go up to. ``None`` if there are so few scores that each may have a
    cell, and the marks do not tell them apart.
    """
    first, last = int(ids.min()), int(ids.max())
    above = max((last - first).bit_length() - bits, 0)
    places = ids >> above
    pages, before, page_bits = np.array([first >> above]), 0, bits + 1  # the first id of each page
    places -= pages[0]
    size = int(places.max()) + 1
    while True:
        marks = np.zeros(size, np.bool_)
        marks[places] = True
        occupied = np.flatnonzero(marks)
        there = pages[occupied >> page_bits] + (occupied & ((1 << page_bits) - 1))
        if occupied.size > max_cells or (level and not above):
            found = fitting_level(there, (level or 1) + above, max_cells)
            there >>= found - (level or 1) - above
            return _cells_at(there, occupied, places, scores, found)
        if not above or occupied.size < 2 * before:
            break
        before = occupied.size
        page_bits = min(above, bits - before.bit_length())
        above -= page_bits
        pages, starts = there << page_bits, np.empty(size, np.intp)
        starts[occupied] = np.arange(before) << page_bits
        places = starts.take(places)
        places += (ids >> above) & ((1 << page_bits) - 1)
        size = before << page_bits
    if level:
        return None
    cells = _cells_at(occupied, occupied, places, scores, 0)
    return None if np.isnan(cells.scores).any() else cells._replace(ids=cells.scores)


def _cells_at(ids: Ints, occupied: Places, places: Places, scores: Floats, level: int) -> _Found:
    """Return the cells of a level, of which those at occupied places have these ids."""
    starts = np.ones(ids.size, np.bool_)
    np.not_equal(ids[1:], ids[:-1], out=starts[1:])
    ids = ids[starts]
    cells = np.empty(int(occupied[-1]) + 1, np.int32)  # half as long to look up in
    cells[occupied] = np.cumsum(starts) - 1
    places = cells.take(places).astype(np.intp)
    single = np.empty(ids.size)
    single[places] = scores  # any one of those of a cell
    single[places[single.take(places) != scores]] = np.nan
    return _Found(level, narrow_ids(ids, level), single + 0.0, places)


def _ids_at(chain: Cells, level: int) -> Ints:
    """Return the ids of cells at a level, in a new array."""
    if not chain.level:
        return cell_ids(chain.scores, level)
    return chain.ids.astype(np.int64) >> (level - chain.level)
