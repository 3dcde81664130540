"""The two-by-two table of labels and scores cut at a threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.columns.scores import Scores
from streammetrics.core.fields.amounts import Amount
from streammetrics.core.fields.weights import Weight
from streammetrics.statistics.scores.base import ScoredStatistic
from streammetrics.statistics.tables.contingency import LabelCells

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streammetrics.core.exact.sums import ExactSum
    from streammetrics.core.types import Floats, Ints


_SIDES, _ROWS, _COLUMNS = np.arange(2), np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])


class ThresholdTable(ScoredStatistic):
    """True and false positives and negatives, a row being positive where score >= threshold.

    The cells are in the order of a two-by-two confusion matrix: true negatives, false positives,
    false negatives, true positives. 32 bytes.
    """

    threshold: float = 0.5

    amount = Weight((4,), squared=True, inline=True)

    @property
    def scores(self) -> Scores:
        """Scores (n,), of which only the order matters."""
        return Scores(long=True)

    def update(
        self,
        positive: NDArray[np.uint8],
        score: Floats,
        *,
        weight: Floats | None,
    ) -> None:
        """Count the rows in each cell."""
        truth, called = positive.view(np.bool_), score >= self.threshold
        if weight is not None:
            cell = (positive << 1) | called
            self.amount += Amount.at_places(cell.astype(np.intp), 4, weight)
            return
        both = np.count_nonzero(truth & called)
        true, call = np.count_nonzero(truth), np.count_nonzero(called)
        cells = (truth.size - true - call + both, call - both, true - both, both)
        self.amount += Amount.of_counts(np.array(cells), truth.size)

    def of_rows(self, n: int) -> None:
        """Forget squares of weights where amounts exceed n: such rows do not weigh one each."""
        if self.amount.exceeds(n):
            self.amount = self.amount.unsure()

    def cells(self) -> LabelCells:
        """Return the four cells; the labels are 0 and 1 for the negative and the positive."""
        return LabelCells(_SIDES, _SIDES, _ROWS, _COLUMNS, self.amount.plain())

    def squares(self) -> Ints | ExactSum | None:
        """Return the sums of the squared weights of the `cells`; ``None`` if they are not known."""
        return self.amount.plain_squared()
