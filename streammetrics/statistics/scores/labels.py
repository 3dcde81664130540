"""How well scores rank the labels of a row: exact sums of what each row has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.columns.indicators import Indicators
from streammetrics.core.columns.schema import Schema
from streammetrics.core.constraints import NanPolicy
from streammetrics.core.errors import StateFormatError
from streammetrics.core.fields.amounts import Amount
from streammetrics.core.fields.sums import Sum
from streammetrics.core.fields.weights import Weight
from streammetrics.core.statistic import Statistic
from streammetrics.core.types import ClassLabel
from streammetrics.statistics.sums.spreads import Spreading, sums_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streammetrics.core.types import Array, Bools, Floats, ReadColumn


class LabelRankingSum(Statistic):
    """The exact sum of what each row has, rounded row by row, and of the weights.

    `of` is ``"coverage"``: how many labels down the ranking the last true one is; ``"precision"``:
    the mean over true labels of the share of true ones among those ranked as high;
    ``"inversions"``: the share of pairs of a true and a false label that are in the wrong order,
    or tied.
    """

    of: Literal["coverage", "precision", "inversions"]
    labels: tuple[ClassLabel, ...] | None = None
    nan_policy: NanPolicy = "raise"

    total = Sum()
    rows = Weight()

    @property
    def schema(self) -> Schema:
        """Indicators beside scores of each label."""
        indicators = Indicators("y_score", True, self.labels, len(self.labels or ()))
        return Schema((indicators,), self.nan_policy)

    def update(self, *columns: ReadColumn, weight: Floats | None) -> None:
        """Add what the rows have."""
        self.total += ExactSum.of(self.of_each(*columns), weight)
        self.rows += Amount.of_rows(len(columns[0]), weight)

    def check_fields(self) -> None:
        """Check that there is no sum without rows, nor below 0."""
        if self.total.fraction() < 0 or (self.total.fraction() and not self.rows):
            raise StateFormatError("the sum is not that of any rows")

    def of_each(self, truth: NDArray[np.uint8], scores: Floats) -> Floats:
        """Return what each row has."""
        marks = truth.view(np.bool_)
        true = np.count_nonzero(marks, axis=1)
        if self.of == "coverage":
            least = np.where(marks, scores, np.inf).min(axis=1)
            covered = np.count_nonzero(scores >= least[:, None], axis=1)
            return np.where(true > 0, covered, 0).astype(np.float64)
        rank, hits, marks = _ranked(marks, scores)
        some = (true > 0) & (true < truth.shape[1])
        if self.of == "precision":
            shares = np.where(marks, hits / rank, 0.0).sum(axis=1) / np.maximum(true, 1)
            return np.where(some, shares, 1.0)
        wrong = np.where(marks, rank - hits, 0).sum(axis=1)
        pairs = np.maximum(true * (truth.shape[1] - true), 1)
        return np.where(some, wrong / pairs, 0.0)


def _ranked(marks: Bools, scores: Floats) -> tuple[Array, Array, Bools]:
    """Return of labels, best first, how many rank as high, how many true ones, and which are."""
    order = np.argsort(-scores, axis=1, kind="stable")
    ranked = np.take_along_axis(scores, order, axis=1)
    marks = np.take_along_axis(marks, order, axis=1)
    width = scores.shape[1]
    last = np.broadcast_to(np.arange(width), scores.shape).copy()  # of labels with this score
    last[:, :-1][ranked[:, 1:] == ranked[:, :-1]] = width
    ends = np.minimum.accumulate(last[:, ::-1], axis=1)[:, ::-1]
    hits = np.take_along_axis(np.cumsum(marks, axis=1), ends, axis=1)
    return ends + 1, hits, marks


class LabelRankingSpread(Spreading, LabelRankingSum):
    """The sum of what each row has, and of its square."""

    def check_fields(self) -> None:
        """Check that there are rows of squares."""
        super().check_fields()
        if bool(self.rows) != bool(self.squared_weight):
            raise StateFormatError("the squares are not those of the rows")

    def update(self, *columns: ReadColumn, weight: Floats | None) -> None:
        """Add what the rows have, and the squares."""
        found = sums_of(self.numbers, columns, weight)
        self.total += found.total
        self.rows += found.rows
        self.spread_by(found.powers, found.squared)

    def numbers(self, *columns: ReadColumn) -> Floats:
        """Return what each row has."""
        return self.of_each(*columns)
