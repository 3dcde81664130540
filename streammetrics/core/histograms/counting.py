"""Cells of a dyadic histogram counted from sorted rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.exact.sums import ExactSum
from streammetrics.core.histograms.cells import CellBlock, Cells, narrow_counts, narrow_ids, runs_of
from streammetrics.core.histograms.keys import cell_edges, cell_ids

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streammetrics.core.histograms.keys import ScoredRows
    from streammetrics.core.types import Array, Ints, Places


def run_blocks(rows: ScoredRows, classes: int) -> Iterator[CellBlock]:
    """Yield the cells of sorted rows of weight one, a cell for each score, in ascending blocks."""
    for part in _parts(rows, 0):
        scores = low = part.scores
        starts = None
        if not (scores[1:] != scores[:-1]).all():  # mostly they all differ
            starts, low, _ = runs_of(scores, scores)
        counts = _by_class(part, starts, classes)
        yield CellBlock(low, low, np.ones(low.size, np.bool_), counts)


def _parts(rows: ScoredRows, level: int) -> Iterator[ScoredRows]:
    """Yield parts of sorted rows that fit the cache, none of which ends within a cell."""
    start, size = 0, rows.scores.size
    while start < size:
        stop = start + tuning.CELLS_READ
        if stop < size:
            edge = rows.scores[stop - 1 : stop]
            if level:
                edge = cell_edges(cell_ids(edge, level), level)[1]
            stop = int(np.searchsorted(rows.scores, edge[0], side="right"))
        yield rows.part(slice(start, stop))
        start = stop


def counted(rows: ScoredRows, level: int, classes: int) -> Cells:
    """Return the cells of rows that are sorted by score or, if weighted, at least by cell."""
    if rows.weight is not None:
        return _counted(rows, level, classes)
    parts = [_counted(part, level, classes) for part in _parts(rows, level)]
    _, ids, scores, masses, _ = zip(*parts, strict=True)
    single = np.concatenate(scores)
    first = np.concatenate(ids) if level else single
    return Cells(level, first, single, np.concatenate(masses), classes)


def _counted(rows: ScoredRows, level: int, classes: int) -> Cells:
    scores = rows.scores
    ids = narrow_ids(cell_ids(scores, level), level) if level else scores
    starts, first, single = runs_of(ids, scores, ascending=rows.weight is None)
    mass: Array | ExactSum
    if rows.weight is None:
        mass = narrow_counts(_by_class(rows, starts, classes).T)
    else:
        entry = np.repeat(np.arange(starts.size) * classes, _lengths(starts, scores.size))
        if rows.codes is not None:
            entry += rows.codes
        flat = ExactSum.grouped(entry, starts.size * classes, rows.weight)
        mass = flat.reshaped((starts.size, classes))
    return Cells(level, first, single, mass, classes)


def _by_class(rows: ScoredRows, starts: Places | None, classes: int) -> Ints:
    """Return the rows of each class in the runs that begin at `starts`; ``None``: in each row."""
    size = rows.scores.size
    counts = np.empty((classes, size if starts is None else starts.size), np.int64)
    counts[0] = 1 if starts is None else _lengths(starts, size)
    if rows.codes is not None:
        if counts.shape[1] == size:
            counts[1] = rows.codes
        else:
            ones = np.cumsum(rows.codes, dtype=np.int64)[starts + counts[0] - 1]
            counts[1] = ones
            counts[1, 1:] -= ones[:-1]
        counts[0] -= counts[1]
    return counts


def _lengths(starts: Places, size: int) -> Places:
    lengths = np.empty_like(starts)
    np.subtract(starts[1:], starts[:-1], out=lengths[:-1])
    lengths[-1:] = size - starts[-1:]
    return lengths
