"""Scores of K classes, each of them against each of the others alone."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.counting import group_order
from streammetrics.core.errors import StateFormatError
from streammetrics.statistics.scores.histogram import ScoreHistogram

if TYPE_CHECKING:
    from streammetrics.core.types import Floats, ReadColumn


class VersusHistogram(ScoreHistogram):
    """Weight at each score of a class, of its own rows and of those of one other class.

    K (K - 1) histograms for (n, K) scores, the ordered pairs of classes one after the other: of
    (0, 1), (0, 2), ... For (n,) scores there are two classes, and one histogram says all.
    """

    def update(self, *columns: ReadColumn, weight: Floats | None) -> None:
        """Count the rows of every class at the scores of it, and of each of the others."""
        codes, scores = columns
        if scores.ndim == 1 or scores.shape[1] == 1:
            super().update(*columns, weight=weight)
            return
        k = scores.shape[1]
        order, starts = group_order(codes, k)
        rows = np.split(order, starts[1:-1])
        every = []
        for own, other in permutations(range(k), 2):
            both = np.concatenate([rows[own], rows[other]])
            marks = np.zeros(both.size, np.uint8)
            marks[: rows[own].size] = 1
            each = None if weight is None else weight[both]
            every.append((scores[both, own], marks, each, None))
        self.add(every, weight)

    @property
    def amount(self) -> float:
        """What all rows weigh, each of which is among those of 2 (K - 1) pairs."""
        every = sum(sum(histogram.totals()) for histogram in self.classes())
        return every / max(1, 2 * (self.width - 1)) if len(self.histograms) > 1 else every

    @property
    def width(self) -> int:
        """How many classes there are: 2 of (n,) scores, 0 of no rows."""
        count = len(self.histograms)
        return 2 if count == 1 else (1 + int(np.sqrt(1 + 4 * count))) // 2 if count else 0

    def check_fields(self) -> None:
        """Check that there is a histogram for every ordered pair of classes."""
        count = len(self.histograms)
        if count not in {0, 1, self.width * (self.width - 1)}:
            raise StateFormatError(f"{count} histograms are not those of all pairs of classes")
