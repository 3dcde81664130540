"""The bootstrap of counts: a table is drawn anew at reading, so that no row needs a key.

The draws depend on the counts alone, through a seed made of them: the same for any sharding.
"""

from __future__ import annotations

import math
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streammetrics.core.arithmetic.histogram import DyadicHistogram
from streammetrics.metrics.scores.view import Corners, Staircase

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streammetrics.core.types import Array, Floats, Ints
    from streammetrics.inference.areas import Ladder


REPLICATES = 200
GROUPS = 64  # of rows that are left out in turn
_GROUPS = 2048  # of neighbouring cells that are drawn as one: what is between them varies little
_MOST = 2.0**62  # rows that are drawn: as many of each cell as of more


def drawn(counts: Ints, replicates: int = REPLICATES) -> Ints:
    """Return multinomial redraws of as many rows, (replicates, cells)."""
    generator = seeded(counts)
    n = int(counts.sum())
    if n < 1:
        return np.zeros((replicates, counts.size), np.int64)
    return generator.multinomial(n, counts / n, size=replicates)


def seeded(counts: Ints) -> np.random.Generator:
    """Return a generator whose draws depend on the counts alone."""
    seed = int.from_bytes(blake2b(np.ascontiguousarray(counts).tobytes(), digest_size=16).digest())
    return np.random.Generator(np.random.PCG64(seed))


class _Redraw(NamedTuple):
    """Both classes of a redraw, as thresholds need them."""

    positives: float
    negatives: float


def best_errors(metric: Any, cells: Ladder) -> float:
    """Return the standard error of the best value over thresholds."""
    values = []
    for p, n in _redrawn(cells):
        tp, fp = np.cumsum(p[::-1]), np.cumsum(n[::-1])
        if not metric._undefined(_Redraw(tp[-1], fp[-1])):
            values.append(_best(metric, tp, fp))
    return float(np.std(values)) if values else 0.0


def point_errors(metric: Any, cells: Ladder) -> float:
    """Return the standard error of a value that is read from a point of a curve."""
    values = []
    for p, n in _redrawn(cells):
        tp, fp = (np.append(np.cumsum(side[::-1])[::-1], 0) for side in (p, n))
        if 0 < tp[0] < np.inf and 0 < fp[0] < np.inf:
            places, tied = np.arange(p.size, dtype=np.float64), np.ones(p.size, np.bool_)
            known = Corners(places, places, tied, tp, fp, tp[0] - tp, fp[0] - fp)
            values.append(metric._found(known)[1])
    return float(np.std(values)) if values else 0.0


def top_rise(cells: Ladder) -> float:
    """Return by how much the largest distance of redraws is larger, on average, than their own."""
    values = []
    for p, n in ((cells.p, cells.n), *_redrawn(cells)):
        above, below = np.cumsum(_grouped(p, cells)), np.cumsum(_grouped(n, cells))
        if above[-1] and below[-1]:
            values.append(float(np.abs(above / above[-1] - below / below[-1]).max()))
    return max(float(np.mean(values[1:])) - values[0], 0.0) if len(values) > 1 else 0.0


def _redrawn(cells: Ladder) -> Iterator[tuple[Floats, Floats]]:
    """Yield redraws of the positives and the negatives in ascending cells.

    With weights a row of a cell counts for as much as makes its sum vary as theirs does.
    """
    every = (cells.p, cells.n), (cells.p_square, cells.n_square)
    weight, square = (np.concatenate([_grouped(side, cells) for side in pair]) for pair in every)
    unit = np.divide(square, weight, out=np.ones_like(weight), where=weight > 0)
    weighted = bool((unit != 1).any())
    rows = weight / unit
    rows *= min(1.0, _MOST / max(rows.sum(), 1.0))
    for row in drawn(np.rint(rows).astype(np.int64)):
        positives, negatives = np.split(row * unit if weighted else row, 2)
        yield positives, negatives


def _best(metric: Any, tp: Array, fp: Array) -> float:
    side = _Redraw(tp[-1], fp[-1])
    none = np.zeros(1)
    reached = [metric._reached(side, t, f, fp[-1] - f, 0.0) for t, f in ((none, none), (tp, fp))]
    return float(max(values.max() / scale for values, scale in reached))


def jackknife_error(metric: Any, stairs: Staircase, cells: Ladder) -> float:
    """Return the standard error of any value of a class: it is read without each group of rows.

    The rows are dealt to groups at random, by a seed made of the counts alone.
    """
    low = np.concatenate([step.low for step in stairs.steps()])
    counts = np.rint(np.concatenate([cells.n, cells.p])).astype(np.int64)
    codes = np.repeat(np.array([0, 1], np.uint8), low.size)
    generator = seeded(counts)
    left, rows = counts.copy(), int(counts.sum())
    groups, values = min(GROUPS, rows), []
    for size in np.diff(np.arange(groups + 1) * rows // groups).tolist():
        group = generator.multivariate_hypergeometric(left, size, method="marginals")
        left -= group
        kept = counts - group
        some = kept > 0
        histogram = DyadicHistogram(max_cells=2 * counts.size + 2, classes=2)
        histogram.add(np.tile(low, 2)[some], codes[some], kept[some].astype(np.float64))
        values.append(metric.read(Staircase(histogram, True, stairs.logits)))
    known = np.array(values)
    return math.sqrt((groups - 1) * float(np.var(known))) if np.isfinite(known).all() else math.nan


def _grouped(side: Floats, cells: Ladder) -> Floats:
    """Return sums over groups of neighbouring cells that hold about as many rows each."""
    if side.size <= _GROUPS:
        return side
    passed = np.cumsum(cells.p + cells.n)
    at = np.minimum((passed - 0.5) * (_GROUPS / passed[-1]), _GROUPS - 1).astype(np.intp)
    groups: Floats = np.bincount(at, side, _GROUPS).astype(np.float64)
    return groups
