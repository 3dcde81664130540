"""Spans that tags mark: how many there are of each type, how many were found, and rightly so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.columns.schema import Schema
from streammetrics.core.constraints import NanPolicy
from streammetrics.core.errors import StateFormatError
from streammetrics.core.fields.amounts import Amount
from streammetrics.core.fields.tables import Pairs, PairTable
from streammetrics.core.statistic import Statistic
from streammetrics.statistics.texts.tags import Scheme, Tags, spans_of

if TYPE_CHECKING:
    from streammetrics.core.types import Floats, Ints, ReadColumn

_KINDS = 3  # true spans, predicted ones, and those that are both


class SpanCounts(Statistic):
    """Counts of the spans of each type: true, predicted, and both."""

    scheme: Scheme | None = None
    suffix: bool = False
    nan_policy: NanPolicy = "raise"

    counts = PairTable(whole=True, of="spans")

    @property
    def schema(self) -> Schema:
        """The tags of sentences."""
        return Schema((Tags(self.scheme, self.suffix),), self.nan_policy, "metrics of spans")

    def update(self, *columns: ReadColumn, weight: Floats | None) -> None:  # noqa: ARG002 - the schema refuses weights
        """Count the spans of sentences."""
        true, pred, names = spans_of((columns[0], columns[1]), self.scheme, suffix=self.suffix)
        # No two spans of a side have one end.
        _, first, second = np.intersect1d(
            true.ends, pred.ends, assume_unique=True, return_indices=True
        )
        both = (true.starts[first] == pred.starts[second]) & (
            true.types[first] == pred.types[second]
        )
        types = np.concatenate([true.types, pred.types, true.types[first[both]]])
        sizes = [true.types.size, pred.types.size, int(both.sum())]
        kinds = np.repeat(np.arange(_KINDS), sizes)
        counts = np.bincount(types * _KINDS + kinds)
        found = np.flatnonzero(counts)
        pairs = Pairs.of(np.array(names), np.arange(_KINDS), found, Amount.of_counts(counts[found]))
        self.counts = type(self).counts.plus(self.counts, pairs)

    def table(self) -> tuple[list[str], Ints]:
        """Return the types and the counts of each, (n, 3)."""
        held = self.counts
        rows, columns = held.places
        table = np.zeros((len(held.row_labels), _KINDS), np.int64)
        table[rows, held.column_labels[columns]] = held.amount.counts
        return [str(name) for name in held.row_labels.tolist()], table

    def check_fields(self) -> None:
        """Check that there are not more spans that are both than of either kind."""
        kinds, types = self.counts.column_labels, self.counts.row_labels
        if kinds.dtype != np.int64 or (kinds.size and not 0 <= kinds[0] <= kinds[-1] < _KINDS):
            raise StateFormatError("something else than spans is counted")
        if types.size and types.dtype.kind != "U":
            raise StateFormatError("the types of spans are no text")
        _, table = self.table()
        if (table[:, 2] > table[:, :2].min(axis=1)).any():
            raise StateFormatError("more spans are right than there are")
