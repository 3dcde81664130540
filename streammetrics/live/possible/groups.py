"""Rows in order of their scores: those known, and those without a label, in the same cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streammetrics.core.counting import added_at
from streammetrics.live.possible.remembered import ends_of
from streammetrics.metrics.scores.view import Staircase, staircases

if TYPE_CHECKING:
    from streammetrics.core.arithmetic.histogram import DyadicHistogram
    from streammetrics.core.metric import Metric
    from streammetrics.core.types import Array, Bools, Ints
    from streammetrics.live.possible.remembered import ScoreCells


class ScoreGroups(NamedTuple):
    """Rows that are told apart by their scores, from the highest down."""

    positives: Ints
    negatives: Ints
    unknown: Ints
    single: Bools  # whether the rows of a group have one score

    @property
    def amounts(self) -> tuple[Ints, Ints, Ints]:
        """How many rows of each kind are in each group."""
        return self.positives, self.negatives, self.unknown

    @property
    def totals(self) -> tuple[int, int, int]:
        """How many there are of each kind."""
        return int(self.positives.sum()), int(self.negatives.sum()), int(self.unknown.sum())

    @property
    def exchanged(self) -> ScoreGroups:
        """The same rows with the classes exchanged."""
        return ScoreGroups(self.negatives, self.positives, self.unknown, self.single)


def with_unlabelled(
    known: Metric, held: ScoreCells, code: int = 0
) -> tuple[Staircase, DyadicHistogram] | None:
    """Return the scores of rows with a label and of others as one class, and the former alone.

    ``None`` where there are more than two classes, or rows with weights or with integers that
    float64 does not hold.
    """
    scores: Any = known._read()[0]
    (first, *more), classes = staircases(scores), scores.classes()
    if more or not first.counted or not classes[0].plain:
        return None
    room = max(held.max_bins, classes[0].max_cells)
    seen = classes[0].narrowed(room)
    every = held.histogram.pooled(room, code)
    every.merge(seen)
    stairs = Staircase(every, True, False)
    return (stairs, seen) if stairs.counted else None


def groups_of(stairs: Staircase, seen: DyadicHistogram) -> ScoreGroups:
    """Return the groups of all scores, of which some negatives are rows without a label."""
    low, single, p, n = _cells(stairs)
    first, _, negatives = ends_of(seen)
    # A cell is in one of the wider ones: that with the last lower edge that is not above its own.
    places = np.searchsorted(low, first, side="right") - 1
    known = added_at(places, negatives, len(low))
    return ScoreGroups(p[::-1], known[::-1], (n - known)[::-1], single[::-1])


def unknown_of(stairs: Staircase, seen: DyadicHistogram) -> Ints:
    """Return the rows without a label in each cell, from the lowest up."""
    return groups_of(stairs, seen).unknown[::-1]


def _cells(stairs: Staircase) -> tuple[Array, ...]:
    empty = np.empty(0), np.empty(0, np.bool_), np.empty(0, np.int64), np.empty(0, np.int64)
    steps = [(s.low, s.single, s.p, s.n) for s in stairs.steps()]
    low, single, p, n = map(np.concatenate, zip(empty, *steps, strict=True))
    return low, single, p.astype(np.int64), n.astype(np.int64)
