"""Labels at which scores are calibrated as well, and as badly, as can be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.metrics.scores.bins import bins_of_cells, floats, read

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from streammetrics.metrics.scores.view import Staircase


def labels(
    metric: Any, stairs: Staircase, scores: NDArray[np.float64]
) -> Iterator[NDArray[np.bool_]]:
    """Yield which rows are positive at the extremes.

    Each norm grows with the gap of each bin, and gaps are each of their own rows: a gap is largest
    where all or none of them are positive, and least at the count next to the sum of the scores.

    Args:
        metric: The calibration error.
        stairs: The scores seen, and those of the rows as negatives.
        scores: The scores of the rows.
    """
    size = metric.n_bins
    cells = np.concatenate([steps.low for steps in stairs.steps()])
    bins = bins_of_cells(stairs, size, metric.strategy)[np.searchsorted(cells, scores)]
    held = read(stairs, size, metric.strategy)
    wanted = floats(held.scores - held.positives)  # positives that would close the gap
    rows = np.bincount(bins, minlength=size)
    widest = np.where(np.abs(wanted) >= np.abs(wanted - rows), 0, rows)
    for counts in (np.clip(np.rint(wanted), 0, rows), widest):
        order = np.argsort(bins, kind="stable")
        place = np.arange(len(scores)) - (np.cumsum(rows) - rows)[bins[order]]
        chosen = np.empty(len(scores), bool)
        chosen[order] = place < counts[bins[order]]
        yield chosen
