"""The counts of rows with several labels that classification reads: per label, per kind of row."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from operator import mul
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.fields.amounts import Amount
from streammetrics.metrics.averages import light
from streammetrics.metrics.classification.margins import GroupedClasses, in_one_unit
from streammetrics.metrics.classification.view import ROOM

if TYPE_CHECKING:
    from streammetrics.core.types import Array, ClassLabel, Floats, Ints, Numeric
    from streammetrics.metrics.classification.view import Outcomes
    from streammetrics.statistics.tables.multilabel import LabelTables, RowKinds, RowTables


class LabelCounts(GroupedClasses):
    """The counts of each label (1, L), with the names that `Confusion` has for those of classes."""

    def __init__(self, labels: list[ClassLabel], amount: Amount, rows: Amount) -> None:
        self.labels, self.size, self.kept = labels, len(labels), len(labels)
        self.exponent = _exponent(rows)  # all floats here are divided by this power of two
        sums, total = amount.exact(), rows.exact()
        true, predicted, both = sums[0], sums[1], sums[2]
        rows_each = total[np.zeros(self.size, np.intp)]
        self._cells = (rows_each - (true + predicted - both), predicted - both, true - both, both)
        floats = [
            np.asarray(part.to_float(-self.exponent))[None]
            for part in (true, predicted, *self._cells)
        ]
        self.actual, self.predicted, self.tn, self.fp, self.fn, self.tp = floats
        self.total = np.array([total[0].to_float(-self.exponent)])
        self.seen = (self.actual > 0) | (self.predicted > 0)

    @classmethod
    def of(cls, table: LabelTables, labels: tuple[ClassLabel, ...] | None) -> LabelCounts:
        """Return the counts; labels without names are numbered."""
        width = table.amount.counts.shape[1]
        return cls(list(labels or range(width)), _wide(table.amount, labels), table.rows)

    def outcomes(self) -> list[list[Outcomes]]:
        """Return TP, FP, FN and TN of each label, as integers of a common unit."""
        tn, fp, fn, tp = in_one_unit(self._cells)
        return [list(zip(tp, fp, fn, tn, strict=True))]

    @cached_property
    def counts(self) -> Ints | None:
        """TN, FP, FN and TP of each label, (4, L).

        ``None`` where some are not whole or reach 2**62, whether rows came with weights or not.
        """
        cells = [Amount.of_exact(cell).plain() for cell in self._cells]
        if any(isinstance(cell, ExactSum) for cell in cells):
            return None
        return np.array(cells, np.int64)

    @property
    def tables(self) -> Array:
        """The table of each label, (L, 2, 2): integers where they are counts."""
        cells: Any = self.counts
        if cells is None:
            cells = [self.unscaled(cell) for cell in (self.tn, self.fp, self.fn, self.tp)]
        return np.stack(list(cells), axis=-1).reshape(-1, 2, 2)

    def unscaled(self, amount: Numeric) -> Numeric:
        """Return floats of this table without the scaling, infinite where they are too large."""
        with np.errstate(over="ignore"):
            return np.ldexp(amount, self.exponent) if self.exponent else amount


def _wide(amount: Amount, labels: tuple[ClassLabel, ...] | None) -> Amount:
    """Return the amounts of all labels, zeros where there are no rows."""
    if amount.counts.shape[1] or not labels:
        return amount
    return Amount.zero((amount.counts.shape[0], len(labels)))


class RowCounts(GroupedClasses):
    """The counts of labels (1, m) in each kind of row, and `amount` (m,), how many rows it has.

    With `joined` the counts are of all rows of a kind together, so that their sums are the totals.
    """

    def __init__(self, kinds: RowKinds, amount: Floats, *, joined: bool) -> None:
        self.kinds, self.amount = kinds, amount
        # Floats are multiples of powers of two, so that fractions of them are exact.
        self._times: list[Any] = [Fraction(x) if joined else 1 for x in amount.tolist()]
        self.size, self.labels = len(amount), list(range(len(amount)))
        self.kept = self.size
        times: Floats = (amount if joined else np.ones(self.size))[None]
        self.tp, self.fp, self.fn = kinds.tp * times, kinds.fp * times, kinds.fn * times
        self.tn: Floats = (kinds.width - kinds.tp - kinds.fp - kinds.fn) * times
        self.actual, self.predicted = self.tp + self.fn, self.tp + self.fp
        self.total = np.array([amount.sum()])

    @classmethod
    def of(cls, table: RowTables, *, joined: bool) -> RowCounts:
        """Return the counts."""
        kinds = table.kinds()
        exact, over = kinds.amount.exact(), _exponent(kinds.amount)
        room = over + 2 * kinds.width.bit_length() if over else 0  # a row has as many labels
        counts = cls(kinds, np.asarray(exact.to_float(-room)), joined=joined)
        if joined:
            (counts._times,) = in_one_unit([exact])
        return counts

    def outcomes(self) -> list[list[Outcomes]]:
        """Return TP, FP, FN and TN of one row of each kind, or of all, without rounding."""
        kinds = self.kinds
        sides = (kinds.tp, kinds.fp, kinds.fn, kinds.width - kinds.tp - kinds.fp - kinds.fn)
        columns = [map(mul, side.astype(int).tolist(), self._times) for side in sides]
        return [list(zip(*columns, strict=True))]

    def mean(self, values: Floats, zero_division: float | None) -> Floats:
        """Return the mean (1,) over rows of the values of their kinds, of which ``nan`` is 0/0."""
        (values,), amount = values, self.amount
        empty = np.isnan(values)
        if empty.any() and zero_division is None:
            count = float(amount[empty].sum())
            why = (
                f"counts {count:,.12g} row{'s' * (count != 1)} as 0 in its average, being 0/0 "
                "there (zero_division=0 says so without a warning, zero_division=nan leaves them "
                "out)"
            )
            self.doubt(np.ones(1, np.bool_), lambda _: why)
            values = np.where(empty, 0.0, values)
        elif empty.any():
            values, amount = values[~empty], amount[~empty]
        amount = light(amount)
        whole = math.fsum(amount)  # 0 without rows, or where weights underflow
        return np.array([math.fsum(values * amount) / whole if whole else math.nan])


def _exponent(amount: Amount) -> int:
    """Return the power of two by which sums must be divided to be added up as floats."""
    total, unit = amount.exact().sum().integers()
    return max(0, int(total).bit_length() + unit - ROOM)
