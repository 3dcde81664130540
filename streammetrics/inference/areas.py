"""How much areas under curves change with each row: in closed form, from the cells of scores.

Every function takes cells in ascending order of score, and returns the area's influences: for each
cell those of one more positive and of one more negative there, of which Σ p ψ₊² + Σ n ψ₋² is the
variance of the area.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.arithmetic.histogram import DyadicHistogram
    from streammetrics.core.types import Array, Floats
    from streammetrics.metrics.scores.view import Staircase


class Ladder(NamedTuple):
    """All cells of one class against the rest: how much of each in them, and how much above.

    With weights w `p_square` and `n_square` are what the cells have of Σ w²; without they are rows.
    """

    p: Floats
    n: Floats
    p_above: Floats
    n_above: Floats
    positives: float
    negatives: float
    p_square: Floats
    n_square: Floats

    @classmethod
    def of(
        cls,
        stairs: Staircase,
        positives: float,
        negatives: float,
        squares: DyadicHistogram | None = None,
    ) -> Ladder:
        """Return the cells, of so many rows, or of that weight; `squares` are those of weights."""
        steps = [(s.p, s.n, s.tp_above, s.fp_above, s.low) for s in stairs.steps()]
        scale = positives / stairs.positives if positives else 1.0  # of large or weighted amounts
        if not math.isfinite(scale):
            raise OverflowError("weights beyond what float64 holds")
        *sides, low = _joined(steps) if steps else [np.zeros(0)] * 5
        p, n, p_above, n_above = (
            column.astype(np.float64) if scale == 1 else column * scale for column in sides
        )
        own = (p, n) if squares is None or not steps else _shared(squares, low, p, n)
        if not all(side.all(where=weight > 0) for side, weight in zip(own, (p, n), strict=True)):
            raise FloatingPointError("squares of weights that float64 does not tell from 0")
        if not np.isfinite([side.sum() for side in own]).all():
            raise OverflowError("squares of weights beyond what float64 holds")
        return cls(p, n, p_above, n_above, positives, negatives, *own)

    @property
    def rows(self) -> tuple[float, float]:
        """How many rows of weight one the positives and the negatives are worth."""
        if self.p_square is self.p:
            return self.positives, self.negatives
        sides = ((self.positives, self.p_square), (self.negatives, self.n_square))
        positives, negatives = (w * w / s.sum() if w else 0.0 for w, s in sides)
        return float(positives), float(negatives)

    def mirrored(self) -> Ladder:
        """Return the cells from the other end, with the classes exchanged."""
        p_below = self.positives - self.p_above - self.p
        n_below = self.negatives - self.n_above - self.n
        sides = (self.n, self.p, n_below, p_below, self.n_square, self.p_square)
        n, p, n_below, p_below, n_square, p_square = (side[::-1] for side in sides)
        return Ladder(n, p, n_below, p_below, self.negatives, self.positives, n_square, p_square)


def _joined(parts: Sequence[tuple[Array, ...]]) -> list[Array]:
    """Return each column of all parts; where there is one part only, as it is."""
    return (
        list(parts[0]) if len(parts) == 1 else list(map(np.concatenate, zip(*parts, strict=True)))
    )


def _shared(squares: DyadicHistogram, low: Floats, p: Floats, n: Floats) -> tuple[Floats, Floats]:
    """Return what each cell has of the squares, which are known of wider ones, by its weight."""
    edges, sums = [], []
    unit = 2.0**squares.unit
    for block in squares.cells():
        edges.append(block.low)
        sums.append(block.counts * unit)
    at = np.searchsorted(np.concatenate(edges), low, side="right") - 1
    negative, positive = np.concatenate(sums, axis=1)
    shared = []
    for side, square in ((p, positive), (n, negative)):
        held = np.bincount(at, side, square.size)
        each = np.divide(square, held, out=np.zeros_like(held), where=held > 0)
        shared.append(side * each[at])
    return shared[0], shared[1]


class Influences(NamedTuple):
    """What one more row in each cell adds to an area."""

    positive: Floats
    negative: Floats

    def variances(self, cells: Ladder) -> tuple[float, float]:
        """Return what the positives and the negatives add to the variance."""
        positive, negative = self.positive**2, self.negative**2
        return float((cells.p_square * positive).sum()), float((cells.n_square * negative).sum())

    def error(self, cells: Ladder) -> float:
        """Return the standard error."""
        return math.sqrt(sum(self.variances(cells)))


def structural_components(cells: Ladder) -> tuple[Floats, Floats]:
    """Return DeLong's (1988): the share of the other class that a row of each cell is right of."""
    beats = (cells.negatives - cells.n_above - cells.n / 2) / cells.negatives  # ties halved
    return beats, (cells.p_above + cells.p / 2) / cells.positives


def roc_influences(cells: Ladder, area: float) -> Influences:
    """Return those of the area under the ROC curve."""
    positives, negatives = cells.positives, cells.negatives
    beats, beaten = structural_components(cells)
    # The variance of a mean of m components is estimated over m - 1, of rows of weight one.
    return Influences(
        (beats - area) / np.sqrt(positives**2 - cells.p_square.sum()),
        (beaten - area) / np.sqrt(negatives**2 - cells.n_square.sum()),
    )


def exponential_variance(area: float, positives: float, negatives: float) -> float:
    """Return the variance of an area of scores that are exponential in both classes.

    Near an end it is above those of most other scores (Hanley and McNeil, Radiology 143, 1982;
    with equal sizes in it, Newcombe, Statistics in Medicine 25, 2006, method 5).
    """
    pairs = (positives + negatives) / 2 - 1
    alike = (1 - area) / (2 - area) + area / (1 + area)
    return area * (1 - area) * (1 + pairs * alike) / (positives * negatives)


def partial_roc_influences(cells: Ladder, rate: float) -> Influences:
    """Return those of the area up to a false positive rate, of which the threshold is estimated.

    A positive scores what it beats among the negatives above the threshold; a negative there costs
    what beats it, and moves the threshold, for which the rate of positives above it stands.
    """
    positives, negatives = cells.positives, cells.negatives
    limit = rate * negatives
    inside = np.clip(limit - cells.n_above, 0.0, cells.n)  # negatives above the threshold
    share = np.divide(inside, cells.n, out=np.zeros_like(inside), where=cells.n > 0)
    cut = int(np.argmax(share > 0))  # the lowest cell with some of them
    at_cut = (cells.p_above[cut] + share[cut] * cells.p[cut]) / positives
    # Of the negatives in the cell that the limit cuts, some are above and tied on average.
    before = np.minimum(cells.n_above, limit)
    beats = (limit - before - inside + share * inside / 2) / negatives
    beaten = (cells.p_above + share * cells.p / 2) / positives
    area = float(cells.p @ beats) / positives
    moved = share * (beaten - at_cut)
    return Influences(
        (beats - area) / positives, (moved - float(cells.n @ moved) / negatives) / negatives
    )


def precision_influences(
    cells: Ladder, area: float, *, trapezoid: bool
) -> tuple[Influences, float]:
    """Return those of an area under the precision-recall curve, Σ p_i H_i / P, and its excess.

    H is the precision A = T / (T + F) at the cell, T and F being what lies there and above; or by
    trapezoids its mean with that of the cell above, where nothing has a precision of 1. A row moves
    A in its cell and in all below, by F / (T + F)² if it is a positive and -T / (T + F)² if not;
    and each A counts for the p that it stands for.

    The area of a sample is on average larger than that of its population, as each positive counts
    itself among what is called so where its precision is taken: by w F / (T + F)² in its own cell,
    w being its weight.
    """
    tp, fp = cells.p_above + cells.p, cells.n_above + cells.n
    called = tp + fp
    height, counts = tp / called, _stood_for(cells.p, trapezoid=trapezoid)
    if trapezoid:
        height = (height + np.append(height[1:], 1.0)) / 2
    # In place: to ask for memory for each step would take as long as the steps do.
    called *= called
    each = np.divide(counts, called, out=called)
    fp *= each
    tp *= each
    own = fp  # what positives count themselves, of weight one
    if cells.p_square is not cells.p:
        squares = _stood_for(cells.p_square, trapezoid=trapezoid)
        own = fp * np.divide(squares, counts, out=np.zeros_like(fp), where=counts > 0)
    excess = float(own.sum()) / cells.positives / (2 if trapezoid else 1)  # half is of cells above
    up, down = np.cumsum(fp, out=fp), np.cumsum(tp, out=tp)
    up -= area
    up += height
    up /= cells.positives
    down /= -cells.positives
    return Influences(up, down), excess


def _stood_for(p: Floats, *, trapezoid: bool) -> Floats:
    """Return of how many positives each cell's height is the precision."""
    return (p + np.append(0.0, p[:-1])) / 2 if trapezoid else p


def distance_influences(cells: Ladder) -> Influences:
    """Return those of the largest distance between two distributions, at where it is reached."""
    above = (cells.p_above + cells.p) / cells.positives
    below = (cells.n_above + cells.n) / cells.negatives
    cut = int(np.argmax(np.abs(above - below)))
    called = np.arange(cells.p.size) >= cut
    return Influences(
        (called - above[cut]) / cells.positives, (called - below[cut]) / cells.negatives
    )
