"""Rows of a reference text and a predicted one, of which integers are counted."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.columns.labels import Labels
from streammetrics.core.columns.schema import Condition, Schema, reject_present
from streammetrics.core.constraints import NanPolicy
from streammetrics.core.errors import InvalidBatchError, StateFormatError
from streammetrics.core.fields.labels import coded_labels
from streammetrics.core.fields.weights import Counts
from streammetrics.core.statistic import Statistic

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streammetrics.core.columns.batch import Batch

REFERENCE, PREDICTION = "reference", "prediction"


@dataclass(frozen=True)
class Texts(Condition):
    """Refuses columns that are no text, and references without a word where there has to be one."""

    filled: bool

    def check(self, batch: Batch, missing: Any) -> None:
        """Check both columns."""
        for name in (REFERENCE, PREDICTION):
            if batch.n_rows and batch.column(name).vocabulary is None:
                raise InvalidBatchError(f"{batch.title(name)} holds no text: pass strings")
        if not self.filled or not batch.n_rows:
            return
        column = batch.column(REFERENCE)
        texts: Any = column.vocabulary
        empty = np.array([not text.strip() for text in texts.tolist()], np.bool_)
        reject_present(batch.title(REFERENCE), "is empty", empty[column.values], missing)


def text_schema(condition: Texts, *, nan_policy: str, unweighted: str = "") -> Schema:
    """Return the schema of a reference and a prediction."""
    fields = tuple(Labels(name, fact=f"labels of {name}") for name in (REFERENCE, PREDICTION))
    return Schema(fields, nan_policy, unweighted, (condition,))


def distinct_pairs(columns: Any) -> tuple[list[tuple[str, str]], NDArray[np.intp]]:
    """Return the pairs of texts that occur, and which of them each row has."""
    (first, references), (second, predictions) = map(coded_labels, columns)
    codes, places = np.unique(first * len(predictions) + second, return_inverse=True)
    pairs = [divmod(code, len(predictions)) for code in codes.tolist()]
    return [(str(references[row]), str(predictions[column])) for row, column in pairs], places


class TextCounts(Statistic):
    """Sums of a few integers of every row of two texts."""

    nan_policy: NanPolicy = "raise"

    _filled = False

    counts = Counts(lambda of: (1 + of.size,))  # the rows, and what is counted in them

    @property
    def schema(self) -> Schema:
        """A reference and a prediction."""
        condition = Texts(self._filled)
        return text_schema(condition, nan_policy=self.nan_policy, unweighted="metrics of texts")

    @property
    @abstractmethod
    def size(self) -> int:
        """How many integers there are."""

    def check_fields(self) -> None:
        """Check that the counts are those of so many rows."""
        rows, *counts = self.counts.tolist()
        if not (self.countable(rows, *counts) if rows else not any(counts)):
            raise StateFormatError(f"{counts} are not the counts of {rows} rows")

    @abstractmethod
    def countable(self, rows: int, *counts: int) -> bool:
        """Whether there are `rows` of two texts, more than none, in which so much is counted."""

    @abstractmethod
    def counted(self, reference: str, prediction: str) -> list[int]:
        """Return the integers of one row."""

    def update(self, *columns: Any, weight: Any) -> None:  # noqa: ARG002 - the schema refuses weights
        """Add the integers of rows."""
        total = np.zeros(1 + self.size, np.int64)
        pairs, places = distinct_pairs(columns)
        for pair, times in zip(pairs, np.bincount(places).tolist(), strict=True):
            total += times * np.array([1, *self.counted(*pair)], np.int64)
        self.counts = type(self).counts.plus(self.counts, total)
