"""Rows of several labels: how often each was true and said, and how many were of a row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.columns.labels import UNKNOWN, Indicators
from streammetrics.core.columns.schema import Schema
from streammetrics.core.constraints import NanPolicy
from streammetrics.core.errors import StateFormatError
from streammetrics.core.fields.keyed import LabelledEntries, LabelTable, Weights
from streammetrics.core.fields.sums import Width
from streammetrics.core.fields.weights import Weight, WeightedCount, WideWeights, have_weights
from streammetrics.core.statistic import Statistic
from streammetrics.core.types import ClassLabel
from streammetrics.statistics.tables.contingency import amounts_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streammetrics.core.types import Array, Floats, Ints, Places, ReadColumn

    Marks = NDArray[np.uint8]

_BITS = 21  # of each count of labels of a row, of which a key is made of three
_MOST = (1 << _BITS) - 1
_BYTE = 255  # rows of which a sum of marks fits a byte


class MultilabelStatistic(Statistic):
    """A statistic of rows with several labels, judged by labels or by scores of each."""

    threshold: Any = None
    labels: tuple[ClassLabel, ...] | None = None
    nan_policy: NanPolicy = "raise"
    ignore_index: int | None = None

    @property
    def schema(self) -> Schema:
        """Indicators, beside such or beside scores."""
        scored = self.threshold is not None
        second = "y_score" if scored else "y_pred"
        indicators = Indicators(
            second, scored, self.labels, self._told, ignore_index=self.ignore_index
        )
        return Schema((indicators,), self.nan_policy)

    @property
    def _told(self) -> int:
        """How many labels the parameters say there are, 0 where they do not say."""
        several = isinstance(self.threshold, tuple)
        return len(self.labels or ()) or (len(self.threshold) if several else 0)

    def _check_width(self, width: int) -> None:
        """Check that there are as many columns of labels as parameters say, or no rows."""
        if width and self._told and width != self._told:
            raise StateFormatError(f"there are {width} labels, but parameters of {self._told}")

    def _called(self, judged: Array) -> Marks:
        """Return which labels rows are said to have."""
        if self.threshold is None:
            return judged
        return (judged >= np.array(self.threshold)).view(np.uint8)


class LabelTables(MultilabelStatistic):
    """Of each label the rows that have it, are said to have it, and both; and of all rows."""

    takes_counts = True

    amount = WideWeights(3, "columns of labels")
    rows = Weight((1,))

    def update(self, truth: Marks, judged: ReadColumn, *, weight: Floats | None) -> None:
        """Count the labels of the rows."""
        called = self._called(judged)
        amount = _amounts((truth, called, truth & called), weight)
        self.amount = type(self).amount.plus(self.amount, amount)
        self.rows += (
            WeightedCount.of_weights(ExactSum.of(weight[:, None]))
            if have_weights(weight)
            else WeightedCount.of_counts(np.array([len(truth) if weight is None else weight.sum()]))
        )

    def check_fields(self) -> None:
        """Check that no label has more rows than there are, nor more of both than of either."""
        width = self.amount.counts.shape[1]
        self._check_width(width)
        if bool(self.rows) != bool(width):
            raise StateFormatError("there are labels without rows, or rows without labels")
        amount = self.amount.exact()
        true, said, both = amount[0], amount[1], amount[2]
        # Of all rows some have the label or are said to: as many as of either, less those of both.
        rest = self.rows.exact()[np.zeros(width, np.intp)] - (true + said - both)
        if any(x.any_negative for x in (true - both, said - both, rest)):
            raise StateFormatError("labels are said of more rows than there are")


class PartialLabelTables(MultilabelStatistic):
    """Counts per label over the rows in which it is known: true, predicted, both, and all."""

    takes_counts = True

    amount = WideWeights(4, "columns of labels")

    def update(self, truth: Marks, judged: ReadColumn, *, weight: Floats | None) -> None:
        """Count each label over the rows in which it is known."""
        known = (truth != UNKNOWN).view(np.uint8)
        true, called = truth & known, self._called(judged) & known
        amount = _amounts((true, called, true & called, known), weight)
        self.amount = type(self).amount.plus(self.amount, amount)

    def check_fields(self) -> None:
        """Check that no label has more rows than are known, nor more of both than of either."""
        self._check_width(self.amount.counts.shape[1])
        amount = self.amount.exact()
        true, said, both, known = (amount[side] for side in range(4))
        if any(x.any_negative for x in (true - both, said - both, known - (true + said - both))):
            raise StateFormatError("labels are predicted for more rows than are known")


def _amounts(sides: tuple[Marks, ...], weight: Array | None) -> WeightedCount:
    """Return how much there is in each column of each matrix of 0 and 1."""
    if have_weights(weight):
        return WeightedCount.of_weights(ExactSum.of(np.stack(sides, axis=1).view(np.bool_), weight))
    if weight is None:
        return WeightedCount.of_counts(np.stack([_column_sums(marks) for marks in sides]))
    times = weight.astype(np.float64)  # their sum is exact as well
    return WeightedCount.of_counts(np.stack([times @ marks for marks in sides]).astype(np.int64))


class RowKinds(NamedTuple):
    """Kinds of rows (m,) by how many labels they have and are said to have, and their amounts."""

    tp: Floats
    fp: Floats
    fn: Floats
    width: int
    amount: WeightedCount


class RowTables(MultilabelStatistic):
    """How many rows have each (true positives, false positives, false negatives) of labels.

    Memory: 16 bytes for each such triple that occurs, of which L labels have at most
    (L + 1) (L + 2) (L + 3) / 6.
    """

    takes_counts = True

    table = LabelTable(amount=Weights())
    width = Width("columns of labels", _MOST)

    def update(self, truth: Marks, judged: ReadColumn, *, weight: Floats | None) -> None:
        """Count the rows by their labels."""
        called = self._called(judged)
        width = truth.shape[1]
        if self.ignore_index is not None:
            known = (truth != UNKNOWN).view(np.uint8)
            truth, called = truth & known, called & known
        true, said, both = map(_row_sums, (truth, called, truth & called))
        kinds, amount = amounts_of(
            (width + 1,) * 3, both, said - both, true - both, weight=weight, squared=False
        )
        high, fn = np.divmod(kinds, width + 1)
        tp, fp = np.divmod(high, width + 1)
        rows = LabelledEntries((((tp << _BITS) | fp) << _BITS) | fn, {"amount": amount})
        self.table = type(self).table.plus(self.table, rows)
        self.width = width

    def kinds(self) -> RowKinds:
        """Return the kinds of rows that occur, in order."""
        labels = self.table.labels
        shifts = (2 * _BITS, _BITS, 0)
        tp, fp, fn = (((labels >> shift) & _MOST).astype(np.float64) for shift in shifts)
        return RowKinds(tp, fp, fn, self.width, self.table.columns["amount"])

    def check_fields(self) -> None:
        """Check that no row has more labels than there are."""
        self._check_width(self.width)
        labels = self.table.labels
        if labels.dtype != np.int64 or bool(len(labels)) != bool(self.width):
            raise StateFormatError("the kinds of rows and the number of labels do not fit")
        tp, fp, fn, width, _ = self.kinds()
        if (labels < 0).any() or (tp + fp + fn > width).any():
            raise StateFormatError(f"a row has more than the {width} labels there are")


def _column_sums(marks: Marks) -> Ints:
    """Return the sums of 0 and 1 in each column, in bytes as far as they fit."""
    rows, width = marks.shape
    beside = max(1, 512 // width)  # rows that are added side by side, as one is short
    whole = rows // (beside * _BYTE)
    sums = np.zeros(width, np.int64)
    if whole:
        blocks = marks[: whole * beside * _BYTE].reshape(whole, _BYTE, beside * width)
        folded = np.add.reduce(blocks, axis=1, dtype=np.uint8)
        sums += folded.reshape(-1, width).sum(axis=0, dtype=np.int64)
    rest: Ints = marks[whole * beside * _BYTE :].sum(axis=0, dtype=np.int64)
    return sums + rest


def _row_sums(marks: Marks) -> Places:
    """Return the sums of 0 and 1 in each row (n, L), of which the bytes of words are added first.

    A word holds four or eight bytes, none of which comes to more than 255.
    """
    rows, width = marks.shape
    if width > _BYTE:  # bits, whose sums are known
        bits: Array = np.bitwise_count(np.packbits(marks, axis=1))
        counts: Places = bits.sum(axis=1, dtype=np.intp)
        return counts
    size = 4 if width % 8 == 4 else 8
    if width % size:
        padded = np.zeros((rows, -(-width // size) * size), np.uint8)
        padded[:, :width] = marks
        marks = padded
    words: Any = marks.view(np.uint32 if size == 4 else np.uint64)
    sums = words[:, 0].copy()
    for place in range(1, words.shape[1]):
        sums += words[:, place]
    sums *= sums.dtype.type(0x0101010101010101 >> (64 - 8 * size))  # to the highest byte
    sums >>= sums.dtype.type(8 * (size - 1))
    totals: Places = sums.astype(np.intp)
    return totals
