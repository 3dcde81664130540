"""Survival: concordance of risks and times."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from streammetrics.core.arithmetic.exact import exact_dot
from streammetrics.core.confidence import Refusal
from streammetrics.core.constraints import MaxPairs, NanPolicy
from streammetrics.core.counting import added_at
from streammetrics.core.kernels import kernels
from streammetrics.core.metric import Metric
from streammetrics.core.results.values import Interval
from streammetrics.metrics.families import BY
from streammetrics.statistics.pairs import MAX_PAIRS, SurvivalPairs

if TYPE_CHECKING:
    from streammetrics.core.arithmetic.pairs import PairCells
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import ArrayLike, Ints, Places


class _ComparablePairs(NamedTuple):
    """Numbers of comparable pairs of rows: all, concordant ones, and those tied in score.

    Of the tied pairs, `open_ties` may have different scores. `unknown` pairs share a cell of times,
    so their order is not known.
    """

    comparable: int
    concordant: int
    tied: int
    open_ties: int
    unknown: int

    @classmethod
    def of(cls, held: SurvivalPairs) -> Self:
        """Return the counts for the cells of a histogram."""
        cells = [held.events.cells(), held.censored.cells()]
        level = max(each.level for each in cells)
        events, censored = (each.at_level(level) for each in cells)
        x, *rows = events.x.union(censored.x)
        y, *columns = events.y.union(censored.y)
        several = np.isnan(x.values)
        # A row censored at the time of an event outlives it; within a cell the order is unknown.
        places = [rows[side][cell.rows] for side, cell in enumerate((events, censored))]
        time = np.concatenate([2 * places[0], 2 * places[1] + ~several[places[1]]])
        score = np.concatenate(
            [columns[side][cell.columns] for side, cell in enumerate((events, censored))]
        ).astype(np.int32)
        counts = np.concatenate([events.counts, censored.counts])
        seen = np.concatenate([events.counts, np.zeros_like(censored.counts)])
        comparable = _comparable(time, seen, counts)
        orders = np.lexsort((score, time)), np.lexsort((-score, time))
        right, wrong = (
            kernels.inversions(ranks[order], seen[order], counts[order])
            for ranks, order in zip((score, -score), orders, strict=True)
        )
        tied = comparable - right - wrong
        open_ties = tied if np.isnan(y.values).any() else 0
        return cls(comparable, right, tied, open_ties, _within(several, places, events, censored))

    def share(self) -> Fraction | None:
        """Return the share of comparable pairs in the right order; ties count half."""
        if not self.comparable:
            return None
        return Fraction(2 * self.concordant + self.tied, 2 * self.comparable)

    def sides(self) -> tuple[Fraction, Fraction]:
        """Return the smallest and the largest possible share."""
        total = 2 * (self.comparable + self.unknown)
        known = 2 * self.concordant + self.tied
        low, high = known - self.open_ties, known + self.open_ties + 2 * self.unknown
        return Fraction(low, total), Fraction(high, total)


def _comparable(time: Ints, seen: Ints, counts: Ints) -> int:
    """Return the number of pairs of an event and a row with a later time."""
    size = int(time.max(initial=0)) + 1
    at, events = added_at(time, counts, size), added_at(time, seen, size)
    return exact_dot(events, at.sum() - np.cumsum(at))


def _within(several: Places, places: list[Ints], events: PairCells, censored: PairCells) -> int:
    """Return the number of pairs with an event within one cell of several times."""
    seen, others = (
        added_at(at, cells.counts, several.size)[several]
        for at, cells in zip(places, (events, censored), strict=True)
    )
    return exact_dot(seen, seen - 1) // 2 + exact_dot(seen, others)


class ConcordanceIndex(Metric[float]):
    """Concordance index (Harrell's C): how often the row with the higher risk has the event first.

    Formula: (C + T / 2) / pairs, with C concordant and T tied ones of the comparable pairs.

    Two rows are comparable if the earlier time is that of an event, or if the times are equal and
    exactly one of them is that of an event. Pairs tied in score count half. Scores are risks: the
    higher, the earlier the event; for predicted times pass their negatives. Undefined if no pair
    is comparable.

    Exact for up to `max_pairs` distinct pairs of a time and a score. Beyond that, neighbouring
    pairs share a cell, and `bounds()` holds for any order and ties of the rows within a cell.

    Args:
        max_pairs: The largest number of distinct pairs kept apart, for events and for censored
            rows each.
        nan_policy: ``"raise"``, or ``"omit"``: rows with a missing value are left out.

    Memory and cost: twice that of a `PairHistogram`; `compute` takes about 400 ns per pair.

    Reference: Harrell, Lee and Mark, Stat. Med. 15 (1996);
    ``lifelines.utils.concordance_index(time, -score, event)``.

    Example:
        >>> import streammetrics as sm
        >>> rows = {"time": [2.0, 5.0, 5.0, 9.0], "event": [1, 1, 0, 0]}
        >>> sm.ConcordanceIndex().update(**rows, score=[0.9, 0.3, 0.3, 0.5]).compute()
        0.7
    """

    higher_is_better = True
    family = Refusal(
        "pairs share their rows, and how many of its pairs each row has right is not kept; "
        + BY.format("id")
    )

    _nan_reason = "no two rows are comparable, as no event comes before the time of another row"

    max_pairs: MaxPairs = MAX_PAIRS
    nan_policy: NanPolicy = "raise"

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the counts of pairs."""
        return (SurvivalPairs(max_pairs=self.max_pairs, nan_policy=self.nan_policy),)

    def update(
        self, time: ArrayLike, event: ArrayLike, score: ArrayLike, *, counts: ArrayLike = None
    ) -> Self:
        """Add a batch of rows.

        Args:
            time: The time of the event or of censoring, at least 0, (n,).
            event: 1 if `time` is that of an event, 0 if it is that of censoring, (n,).
            score: The predicted risk, (n,).
            counts: How many rows each row stands for, (n,); whole numbers.

        Raises:
            InvalidBatchError: A time is negative or infinite, an event is neither 0 nor 1, or a
                score is nan; the state is unchanged.
        """
        return self.feed({"time": time, "event": event, "score": score, "counts": counts})

    def readout(self, held: SurvivalPairs) -> float:
        """Return the index; beyond `max_pairs` an estimate from the order of the cells."""
        index = _ComparablePairs.of(held).share()
        return math.nan if index is None else float(index)

    def interval(self, held: SurvivalPairs) -> Interval[float]:
        """Return the range over all orders and ties of rows within cells."""
        pairs = _ComparablePairs.of(held)
        if not pairs.comparable + pairs.unknown:
            return Interval(math.nan, math.nan)
        if self.is_exact(held):
            return Interval(self.readout(held), self.readout(held))
        if not pairs.comparable:
            return Interval(0.0, 1.0)
        low, high = map(float, pairs.sides())
        return Interval(max(0.0, math.nextafter(low, 0.0)), min(1.0, math.nextafter(high, 1.0)))

    def _lacking(self, held: SurvivalPairs) -> str:
        if self.is_exact(held):
            return self._nan_reason
        return "no two rows can be compared by their cells: max_pairs is too small"

    def is_exact(self, held: SurvivalPairs) -> bool:
        """Whether every distinct pair has a cell of its own."""
        return not (held.events.cells().level or held.censored.cells().level)
