"""Cells of a dyadic histogram counted from sorted rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core import tuning
from streammetrics.core.exact.sums import ExactSum
from streammetrics.core.histograms.cells import Cells, narrow_counts, narrow_ids, runs_of
from streammetrics.core.histograms.keys import cell_edges, cell_ids

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from streammetrics.core.histograms.keys import ScoredRows


def counted_parts(rows: ScoredRows, level: int, classes: int) -> Iterator[Cells]:
    """Ascending parts of the cells of rows that ``sorted_rows`` has sorted.

    The temporaries of a part stay in the cache.
    """
    start, size = 0, rows.scores.size
    while start < size:
        stop = start + tuning.CELLS_READ
        if stop < size:  # do not cut through a cell
            edge = rows.scores[stop - 1 : stop]
            if level:
                edge = cell_edges(cell_ids(edge, level), level)[1]
            stop = int(np.searchsorted(rows.scores, edge[0], side="right"))
        yield _counted(rows.part(slice(start, stop)), level, classes)
        start = stop


def counted(rows: ScoredRows, level: int, classes: int) -> Cells:
    """Cells of rows that :func:`~streammetrics.core.histograms.keys.sorted_rows` has sorted."""
    if rows.weight is not None:
        return _counted(rows, level, classes)
    _, ids, scores, masses, _ = zip(*counted_parts(rows, level, classes), strict=True)
    single = np.concatenate(scores)
    first = np.concatenate(ids) if level else single
    return Cells(level, first, single, np.concatenate(masses), classes)


def _counted(rows: ScoredRows, level: int, classes: int) -> Cells:
    scores, size = rows.scores, rows.scores.size
    ids = narrow_ids(cell_ids(scores, level), level) if level else scores
    starts, first, single = runs_of(ids, scores)
    runs = np.empty_like(starts)
    np.subtract(starts[1:], starts[:-1], out=runs[:-1])
    runs[-1:] = size - starts[-1:]
    mass: NDArray[Any] | ExactSum
    if rows.weight is not None:
        entry = np.repeat(np.arange(starts.size) * classes, runs)
        if rows.codes is not None:
            entry += rows.codes
        flat = ExactSum.grouped(entry, starts.size * classes, rows.weight)
        mass = flat.reshaped((starts.size, classes))
    elif rows.codes is None:
        mass = narrow_counts(runs[:, None])
    else:
        counts = np.empty((starts.size, classes), np.int64)
        if starts.size == size:
            counts[:, 1] = rows.codes
        else:
            ones = np.cumsum(rows.codes, dtype=np.int64)[starts + runs - 1]
            counts[:, 1] = ones
            counts[1:, 1] -= ones[:-1]
        np.subtract(runs, counts[:, 1], out=counts[:, 0])
        mass = narrow_counts(counts)
    return Cells(level, first, single, mass, classes)
