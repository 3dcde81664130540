"""Rows of a reference text and a predicted one, of which integers or a score are summed."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.columns.distinct import unique
from streammetrics.core.columns.labels import Labels
from streammetrics.core.columns.schema import Condition, Schema
from streammetrics.core.constraints import NanPolicy
from streammetrics.core.counting import counts_of, packed
from streammetrics.core.errors import InvalidBatchError, StateFormatError
from streammetrics.core.fields.labels import coded_labels
from streammetrics.core.fields.sums import Sum
from streammetrics.core.fields.weights import Counts
from streammetrics.core.statistic import Statistic
from streammetrics.statistics.sums.rowwise import RowSum

if TYPE_CHECKING:
    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.counting import Grouping
    from streammetrics.core.types import Array, Bools, Columns, Floats, Places, ReadColumn

REFERENCE, PREDICTION = "reference", "prediction"


@dataclass(frozen=True)
class Texts(Condition):
    """Refuses columns that are no text."""

    def check(self, batch: Batch, missing: Bools | None) -> None:  # noqa: ARG002 - missing ones are text too
        """Check both columns."""
        for name in (REFERENCE, PREDICTION):
            if batch.n_rows and batch.column(name).vocabulary is None:
                raise InvalidBatchError(f"{batch.title(name)} holds no text: pass strings")


def text_schema(*, nan_policy: str, unweighted: str = "") -> Schema:
    """Return the schema of a reference and a prediction."""
    fields = tuple(Labels(name, fact=f"labels of {name}") for name in (REFERENCE, PREDICTION))
    return Schema(fields, nan_policy, unweighted, (Texts(),))


def distinct_pairs(columns: Columns) -> tuple[list[tuple[str, str]], Places]:
    """Return the pairs of texts that occur, and which of them each row has."""
    (first, references), (second, predictions) = map(coded_labels, columns)
    codes, places = unique(packed((len(references), len(predictions)), first, second))
    pairs = [divmod(code, len(predictions)) for code in codes.tolist()]
    return [(str(references[row]), str(predictions[column])) for row, column in pairs], places


class TextCounts(Statistic):
    """Sums of a few integers of every row of two texts, and of products of every two of them."""

    nan_policy: NanPolicy = "raise"

    counts = Counts(lambda of: (1 + of.size,))  # the rows, and what is counted in them
    products = Sum(lambda of: (of.size * (of.size + 1) // 2,))  # of pairs, as `numpy.triu_indices`

    @property
    def schema(self) -> Schema:
        """A reference and a prediction."""
        return text_schema(nan_policy=self.nan_policy, unweighted="metrics of texts")

    @property
    @abstractmethod
    def size(self) -> int:
        """How many integers there are."""

    def check_fields(self) -> None:
        """Check that the counts are those of so many rows."""
        rows, *counts = self.counts.tolist()
        if not (self.countable(rows, *counts) if rows else not any(counts)):
            raise StateFormatError(f"{counts} are not the counts of {rows} rows")
        products = self.moments()
        # No square of a count is below it, and no mean of squares below the square of the mean.
        squares = [products[i][i] for i in range(self.size)]
        fits = all(s >= n and rows * s >= n * n for s, n in zip(squares, counts, strict=True))
        if not fits or any(p < 0 or p.denominator > 1 for row in products for p in row):
            raise StateFormatError(f"the products of {counts} are not those of {rows} rows")
        if not rows and any(squares):
            raise StateFormatError("there are products of no rows")

    @abstractmethod
    def countable(self, rows: int, *counts: int) -> bool:
        """Whether there are `rows` of two texts, more than none, in which so much is counted."""

    @abstractmethod
    def counted(self, reference: str, prediction: str) -> list[int]:
        """Return the integers of one row."""

    def update(self, *columns: object, weight: Floats | None) -> None:  # noqa: ARG002 - the schema refuses weights
        """Add the integers of rows."""
        pairs, places = distinct_pairs(columns)
        times = counts_of((len(pairs),), places)
        each = np.array([self.counted(*pair) for pair in pairs], np.int64)
        each = each.reshape(len(pairs), self.size)
        total = np.append(times.sum(), times @ each)
        self.counts = type(self).counts.plus(self.counts, total)
        products = (each * times[:, None]).T @ each
        self.products += ExactSum.counts(products[np.triu_indices(self.size)])

    def moments(self) -> list[list[Fraction]]:
        """Return the sums of the products of every two counts of a row."""
        table = [[Fraction(0)] * self.size for _ in range(self.size)]
        places = zip(*(side.tolist() for side in np.triu_indices(self.size)), strict=True)
        for at, (i, j) in enumerate(places):
            table[i][j] = table[j][i] = self.products[at].fraction()
        return table


class TextScores(RowSum):
    """The sum of a number from 0 to 1 of the two texts of each row."""

    nan_policy: NanPolicy = "raise"

    @property
    def schema(self) -> Schema:
        """A reference and a prediction."""
        return text_schema(nan_policy=self.nan_policy)

    @abstractmethod
    def score(self, reference: str, prediction: str) -> float:
        """Return a number from 0 to 1."""

    def update(self, *columns: object, weight: Floats | None) -> None:
        """Add the rows; each distinct pair of texts is compared once."""
        super().update(self._scores(columns), weight=weight)

    def by_group(
        self, group: Grouping, columns: tuple[Any, ...], weight: Array | None
    ) -> dict[str, object]:
        """Return the sums of each group."""
        return super().by_group(group, (self._scores(columns),), weight)

    def _scores(self, columns: Columns) -> Floats:
        pairs, places = distinct_pairs(columns)
        values = np.array([self.score(*pair) for pair in pairs], np.float64)
        return values[places]

    def numbers(self, *columns: ReadColumn) -> Floats:
        """Return what `update` has found of the rows."""
        values: Floats = columns[0]
        return values.copy()
