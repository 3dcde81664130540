"""How often the true class is among the k highest scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from streammetrics.core.columns.schema import Schema
from streammetrics.core.columns.scored import ScoredLabels
from streammetrics.core.columns.scores import Scores
from streammetrics.core.errors import StateFormatError
from streammetrics.core.exact.sums import ExactSum
from streammetrics.core.state.arrays import nested, part
from streammetrics.core.statistic import Statistic

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray


class TopKHits(Statistic):
    """The weight of the rows whose true class is in their top k, and of all rows."""

    k: int = 1
    labels: tuple[Any, ...] | None = None
    nan_policy: Literal["raise", "omit"] = "raise"
    ignore_index: int | None = None

    @property
    def schema(self) -> Schema:
        """A label and (n, K) scores, of which only the order within a row matters."""
        scored = ScoredLabels(
            Scores(wide=True, use="rank"),
            labels=self.labels,
            matrix=True,
            ignore_index=self.ignore_index,
        )
        return Schema((scored,), self.nan_policy)

    def clear(self) -> None:
        """Forget all rows."""
        self.hits = self.total = ExactSum.zero()

    def update(self, truth: NDArray[Any], scores: NDArray[np.float64], *, weight: Any) -> None:
        """Count the rows with fewer than k better classes."""
        own = scores[np.arange(len(truth)), truth][:, None]
        # Among equal scores the higher class comes first, as in scikit-learn.
        better = (scores > own) | ((scores == own) & (np.arange(scores.shape[1]) > truth[:, None]))
        hit = np.count_nonzero(better, axis=1) < self.k
        if weight is None:
            self.hits += ExactSum.counts(np.array(np.count_nonzero(hit)))
            self.total += ExactSum.counts(np.array(len(hit)))
        else:
            self.hits += ExactSum.of(weight[hit])
            self.total += ExactSum.of(weight)

    def merge(self, other: TopKHits) -> None:
        """Add the hits and rows of another."""
        self.hits, self.total = self.hits + other.hits, self.total + other.total

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return both sums."""
        return nested("hits", self.hits.arrays()) | nested("total", self.total.arrays())

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Set both sums."""
        self.hits = ExactSum.from_arrays((), part(arrays, "hits"))
        self.total = ExactSum.from_arrays((), part(arrays, "total"))
        if not 0 <= self.hits.fraction() <= self.total.fraction():
            raise StateFormatError("there are more hits than rows")
