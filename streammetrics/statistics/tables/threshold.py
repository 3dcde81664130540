"""The two-by-two table of labels and scores cut at a threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from streammetrics.core.columns.schema import Schema
from streammetrics.core.columns.scored import ScoredLabels
from streammetrics.core.columns.scores import Scores
from streammetrics.core.errors import StateFormatError
from streammetrics.core.exact.sums import ExactSum
from streammetrics.core.statistic import Statistic
from streammetrics.statistics.tables.contingency import MANY, Cells, amounts, as_counts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray


_SIDES, _ROWS, _COLUMNS = np.arange(2), np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])


class ThresholdTable(Statistic):
    """True and false positives and negatives, a row being positive where score >= threshold.

    The cells are in the order of a two-by-two confusion matrix: true negatives, false positives,
    false negatives, true positives. 32 bytes.
    """

    threshold: float = 0.5
    pos_label: Any = 1
    labels: tuple[Any, ...] | None = None
    nan_policy: Literal["raise", "omit"] = "raise"
    ignore_index: int | None = None

    @property
    def schema(self) -> Schema:
        """A label and a score, of which only the order matters."""
        scored = ScoredLabels(
            Scores(long=True), self.pos_label, self.labels, ignore_index=self.ignore_index
        )
        return Schema((scored,), self.nan_policy)

    def clear(self) -> None:
        """Forget all rows."""
        self.counts: NDArray[np.int64] = np.zeros(4, np.int64)
        self.weights: ExactSum | None = None
        self._most = 0  # no count is larger

    def update(
        self,
        positive: NDArray[np.uint8],
        score: NDArray[np.float64],
        *,
        weight: NDArray[np.float64] | None,
    ) -> None:
        """Count the rows in each cell."""
        truth, called = positive.view(np.bool_), score >= self.threshold
        if weight is not None:
            cell = (positive << 1) | called
            sums = ExactSum.grouped(cell.astype(np.intp), 4, weight)
            self.weights = sums if self.weights is None else self.weights + sums
            return
        both = np.count_nonzero(truth & called)
        true, call = np.count_nonzero(truth), np.count_nonzero(called)
        cells = (truth.size - true - call + both, call - both, true - both, both)
        self._count(np.array(cells), truth.size)

    def merge(self, other: ThresholdTable) -> None:
        """Add the counts of another table."""
        self._count(other.counts, other._most)
        if other.weights is not None:
            self.weights = other.weights if self.weights is None else self.weights + other.weights

    def _count(self, counts: NDArray[np.int64], most: int) -> None:
        self.counts = self.counts + counts
        self._most += most
        if self._most >= MANY:
            many = ExactSum.counts(self.counts)
            self.weights = many if self.weights is None else self.weights + many
            self.counts, self._most = np.zeros(4, np.int64), 0

    def cells(self) -> Cells:
        """Return the four cells; the labels are 0 and 1 for the negative and the positive."""
        return Cells(_SIDES, _SIDES, _ROWS, _COLUMNS, amounts(self.counts, self.weights))

    @property
    def nbytes(self) -> int:
        """Bytes of state held now."""
        return self.counts.nbytes + (0 if self.weights is None else self.weights.nbytes)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the exact amounts of the four cells."""
        amount = ExactSum.counts(self.counts)
        return (amount if self.weights is None else amount + self.weights).arrays()

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Set the four amounts."""
        amount = ExactSum.from_arrays((4,), arrays)
        if not bool((np.asarray(amount.to_float()) >= 0).all()):
            raise StateFormatError("a count of a threshold table is negative")
        self.counts, self.weights = as_counts(amount)
        self._most = int(self.counts.max())
