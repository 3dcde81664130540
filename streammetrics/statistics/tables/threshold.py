"""Tables of labels and scores: cut at a threshold, and among the k highest scores."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from streammetrics.core.columns.schema import NEGATIVE
from streammetrics.core.columns.scores import Scores
from streammetrics.core.counting import GroupCodes, counts_above, packed
from streammetrics.core.errors import StateFormatError
from streammetrics.core.fields.weights import Weight, WeightedCount, have_weights
from streammetrics.statistics.scores.histogram import ScoredStatistic
from streammetrics.statistics.tables.contingency import LabelCells

if TYPE_CHECKING:
    from streammetrics.core.arithmetic.exact import ExactSum
    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.schema import Facts
    from streammetrics.core.types import Array, Bools, Columns, Floats, Ints

_SIDES, _ROWS, _COLUMNS = np.arange(2), np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])


class ThresholdTable(ScoredStatistic):
    """True and false positives and negatives, a row being positive where score >= threshold.

    The cells are in the order of a two-by-two confusion matrix: true negatives, false positives,
    false negatives, true positives. 32 bytes.
    """

    in_kernels = takes_counts = True

    threshold: float = 0.5

    amount = Weight((4,), squared=True, inline=True)

    @property
    def scores(self) -> Scores:
        """Scores (n,), of which only the order matters."""
        return Scores(long=True)

    def lift(
        self, columns: Columns, weight: Array | None, group: GroupCodes | None = None
    ) -> dict[str, Any]:
        """Return the rows in each cell."""
        positive, score = columns
        sizes, codes = ((), ()) if group is None else ((group.size,), (group.codes,))
        if not have_weights(weight) and isinstance(score, np.ndarray):
            counts = counts_above(
                (*sizes, 2), score, self.threshold, *codes, positive, times=weight
            )
            if group is not None and weight is None:
                group.counts = counts.sum(axis=(1, 2))  # saves a pass over the rows
            return {"amount": WeightedCount.of_counts(counts.reshape(*sizes, 4))}
        cell = packed((*sizes, 2, 2), *codes, positive, score >= self.threshold)
        amount = WeightedCount.at_places(cell, 4 * math.prod(sizes), weight, squared=True)
        return {"amount": amount.shaped((*sizes, 4))}

    @property
    def absent_facts(self) -> frozenset[str]:
        """The negative label, if only positive rows are left."""
        return frozenset([NEGATIVE] if not self.amount.signs()[:2].any() else [])

    def take_whole(self, batch: Batch) -> tuple[Self, Facts] | None:
        """Return the table with all rows of plain columns of 0 and 1 and of scores."""
        columns = self.plain_binary(batch)
        if columns is None:
            return None
        truth, score = columns
        twin = self.fork()
        try:
            twin.update(truth, score, weight=None)
        except IndexError:  # another label, or no number
            return None
        return twin, self.facts_of(truth)

    def cells(self) -> LabelCells:
        """Return the four cells; the labels are 0 and 1 for the negative and the positive."""
        return LabelCells(_SIDES, _SIDES, _ROWS, _COLUMNS, self.amount.plain())

    def squares(self) -> Ints | ExactSum | None:
        """Return the sums of the squared weights of the `cells`; ``None`` if they are not known."""
        return self.amount.plain_squared()


# ---- top k ----


class TopKHits(ScoredStatistic):
    """The weight of the rows whose true class is in their top k, and of all rows.

    Of one score a row the first of two classes is the positive one where the score is above a
    half, of logits above 0.
    """

    takes_counts = True

    k: int = 1
    from_logits: bool = False

    hits = Weight(squared=True)
    total = Weight(squared=True)

    @property
    def matrix(self) -> bool:  # type: ignore[override]  # read-only where the base only declares
        """Whether scores must be (n, K): with one score a row, the top 2 are always right."""
        return self.k > 1

    @property
    def scores(self) -> Scores:
        """Scores (n, K), of which only the order within a row matters, or one a row."""
        return Scores(wide=True, use="rank", from_logits=self.from_logits)

    def lift(
        self, columns: Columns, weight: Array | None, group: GroupCodes | None = None
    ) -> dict[str, Any]:
        """Return the rows with fewer than k better classes, and all rows."""
        hit = self.hit(*columns)
        right = None if weight is None else weight[hit]
        own = None if group is None else GroupCodes(group.codes[hit], group.size)
        hits = WeightedCount.of_rows(int(np.count_nonzero(hit)), right, own, squared=True)
        return {"hits": hits, "total": WeightedCount.of_rows(len(hit), weight, group, squared=True)}

    def hit(self, truth: Array, scores: Floats) -> Bools:
        """Return whether each row's true class is in its top k."""
        if scores.ndim == 1:
            first = scores > (0.0 if self.from_logits else 0.5)
            right: Bools = first == (truth == 1)
            return right
        own = scores[np.arange(len(truth)), truth][:, None]
        # Among equal scores the higher class comes first, as in scikit-learn.
        better = (scores > own) | ((scores == own) & (np.arange(scores.shape[1]) > truth[:, None]))
        hit: Bools = np.count_nonzero(better, axis=1) < self.k
        return hit

    def check_fields(self) -> None:
        """Check that there are no more hits than rows."""
        if self.hits.fraction() > self.total.fraction():
            raise StateFormatError("there are more hits than rows")
