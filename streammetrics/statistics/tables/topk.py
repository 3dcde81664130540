"""How often the true class is among the k highest scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.columns.scores import Scores
from streammetrics.core.counting import GroupCodes
from streammetrics.core.errors import StateFormatError
from streammetrics.core.fields.weights import Weight, WeightedCount
from streammetrics.statistics.scores.histogram import ScoredStatistic

if TYPE_CHECKING:
    from streammetrics.core.types import Array, Bools, Columns, Floats


class TopKHits(ScoredStatistic):
    """The weight of the rows whose true class is in their top k, and of all rows.

    Of one score a row the first of two classes is the positive one where the score is above a
    half, of logits above 0.
    """

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
