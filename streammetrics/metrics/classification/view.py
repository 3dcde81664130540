"""The confusion table that the metrics of classification read."""

from __future__ import annotations

from bisect import bisect
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.columns.labels import places_or_last
from streammetrics.core.errors import StreamMetricsError
from streammetrics.core.fields.amounts import Amount

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streammetrics.core.types import Array, Bools, ClassLabel, Floats, Ints, Numeric
    from streammetrics.statistics.tables.contingency import LabelCells

    Amounts = Ints | ExactSum
    Outcomes = tuple[int, int, int, int]


ROOM = 1020  # sums below 2**1020 can be doubled twice
_FEW = 32  # cells up to which Python adds up sooner than NumPy is called
_SMALLEST = float(np.finfo(np.float64).smallest_normal)
WHOLE = 1 << 53  # integers with a sum below this are exact in float64, and so are all partial sums


class Margins:
    """False positives, false negatives and true negatives of each class, from its margins."""

    actual: Numeric
    predicted: Numeric
    tp: Numeric
    total: Numeric

    @property
    def fp(self) -> Floats:
        """False positives of each class."""
        fp: Floats = self.predicted - self.tp
        return fp

    @property
    def fn(self) -> Floats:
        """False negatives of each class."""
        fn: Floats = self.actual - self.tp
        return fn

    @property
    def tn(self) -> Floats:
        """True negatives of each class."""
        tn: Floats = self.total - self.actual - self.fp
        return tn


class Integers(NamedTuple):
    """Each class's rows, predictions and true positives, and all cells, in one unit.

    They are Python's integers, whose products do not overflow.
    """

    actual: list[int]
    predicted: list[int]
    tp: list[int]
    cells: list[int]


class Confusion(Margins):
    """The counts of each class, in the order of `labels`; sums are exact and rounded once.

    With `others` one more class follows, of all other labels; `kept` is the number of classes
    without it.
    """

    total: float

    def __init__(
        self,
        labels: list[ClassLabel],
        rows: Array,
        columns: Array,
        amount: Amounts,
        *,
        others: bool = False,
    ) -> None:
        self.labels, self.kept, self.size = labels, len(labels), len(labels) + others
        self.rows, self.columns = rows, columns
        self.exponent = 0  # all floats here are divided by this power of two, which ratios ignore
        self.doubt = ""  # the text of a warning about the value read
        self._few: Integers | None = None  # the counts, if they are few
        total: float = 0
        if not isinstance(amount, ExactSum):
            if max(amount.size, self.size) <= _FEW:
                self._few = _added(rows.tolist(), columns.tolist(), amount.tolist(), self.size)
            total = amount.sum(dtype=np.float64) if self._few is None else sum(self._few.cells)
            if total >= WHOLE:
                amount, self._few = ExactSum.counts(amount), None
        if isinstance(amount, ExactSum):
            self.exponent = _exponent(amount)
            total = amount.sum().to_float(-self.exponent)  # type: ignore[assignment]  # of one sum
        self._amount: Amounts = amount
        self.total = float(total)  # of all rows
        if self._few is not None:
            self.actual, self.predicted, self.tp = np.array(self._few[:3], np.float64)

    @classmethod
    def of_labels(cls, cells: LabelCells, labels: tuple[ClassLabel, ...] | None) -> Self:
        """Return the table over the labels given, or over all labels seen on either side."""
        others = False
        sides = [cells.row_labels, cells.column_labels]
        names = [side.tolist() for side in sides]
        if labels is not None:
            classes = list(labels)
        elif names[0] == names[1]:
            return cls(names[0], cells.rows, cells.columns, cells.amount)
        else:
            # A side without labels has no type of its own.
            labelled = [side for side in sides if len(side)]
            classes = np.unique(np.concatenate(labelled)).tolist()
        places: list[Array] = [cells.rows, cells.columns]
        for index, (side, own) in enumerate(zip(sides, names, strict=True)):
            if own and own != classes:
                among = places_or_last(side, tuple(classes))
                others = others or bool((among == len(classes)).any())
                places[index] = among[places[index]]
        return cls(classes, places[0], places[1], cells.amount, others=others)

    def holding(self, amount: Amounts) -> Confusion:
        """Return a table with the same cells and other amounts."""
        others = self.size > self.kept
        return Confusion(self.labels, self.rows, self.columns, amount, others=others)

    def with_class(self, label: ClassLabel) -> Confusion:
        """Return a table with one more class, without rows, among labels that are sorted."""
        place = bisect(self.labels, label)
        labels = [*self.labels[:place], label, *self.labels[place:]]
        rows, columns = (side + (side >= place) for side in (self.rows, self.columns))
        return Confusion(labels, rows, columns, self._amount)

    def within(self) -> Confusion:
        """Return the table of the rows whose two labels are both among `labels`."""
        if self.size == self.kept:
            return self
        inside = np.flatnonzero((self.rows < self.kept) & (self.columns < self.kept))
        amount = self._amount[inside]
        return Confusion(self.labels, self.rows[inside], self.columns[inside], amount)

    def _exact(self, side: Array, chosen: Bools | None = None) -> ExactSum:
        """Return the sum over each class's cells on one side, all or the chosen ones."""
        amount = self._amount
        if not isinstance(amount, ExactSum):
            amount = ExactSum.counts(amount)
        if chosen is None:
            return amount.regroup(side, self.size)
        return amount[np.flatnonzero(chosen)].regroup(side[chosen], self.size)

    def _sums(self, side: Array, chosen: Bools | None = None) -> Floats:
        if isinstance(self._amount, ExactSum):
            return np.asarray(self._exact(side, chosen).to_float(-self.exponent))
        amount = self._amount if chosen is None else self._amount * chosen
        return np.bincount(side, amount, self.size).astype(np.float64, copy=False)

    @cached_property
    def amount(self) -> Floats:
        """Rows of each pair of classes that occurs."""
        if isinstance(self._amount, ExactSum):
            return np.asarray(self._amount.to_float(-self.exponent))
        return self._amount.astype(np.float64)

    def unscaled(self, amount: Numeric) -> Numeric:
        """Return floats of this table without the scaling, infinite where they are too large."""
        if not self.exponent:
            return amount
        with np.errstate(over="ignore"):
            scaled = np.ldexp(amount, self.exponent)
        return scaled if scaled.ndim else float(scaled)

    @property
    def counts(self) -> Ints | None:
        """The amounts as integers, ``None`` where they are not whole or reach 2**62."""
        if isinstance(self._amount, ExactSum):
            counts = Amount.of_exact(self._amount).plain()
            return None if isinstance(counts, ExactSum) else counts
        return self._amount

    @cached_property
    def _hit(self) -> Bools:
        hit: Bools = self.rows == self.columns
        return hit

    @cached_property
    def hits(self) -> float:
        """Rows predicted right."""
        return self._sum(self._hit) if self._few is None else float(sum(self._few.tp))

    @cached_property
    def misses(self) -> float:
        """Rows predicted wrong."""
        return self.total - self.hits if self._few else self._sum(~self._hit)

    def _sum(self, chosen: Bools) -> float:
        if isinstance(self._amount, ExactSum):
            return float(self._amount[np.flatnonzero(chosen)].sum().to_float(-self.exponent))
        return float(self._amount[chosen].sum())

    @cached_property
    def tp(self) -> Floats:
        """True positives: rows of the class that are predicted as it."""
        return self._sums(self.rows, self._hit)

    @cached_property
    def fp(self) -> Floats:
        """False positives: rows predicted as the class that are of another."""
        if isinstance(self._amount, ExactSum):
            return self._sums(self.columns, ~self._hit)
        return super().fp

    @cached_property
    def fn(self) -> Floats:
        """False negatives: rows of the class that are predicted as another."""
        if isinstance(self._amount, ExactSum):
            return self._sums(self.rows, ~self._hit)
        return super().fn

    @cached_property
    def tn(self) -> Floats:
        """True negatives: rows of other classes that are not predicted as the class."""
        if not isinstance(self._amount, ExactSum):
            return super().tn
        everything = self._amount.regroup(np.zeros(len(self.rows), np.intp), 1)
        touched = self._exact(self.rows) + self._exact(self.columns, ~self._hit)
        return np.asarray(
            (everything[np.zeros(self.size, np.intp)] - touched).to_float(-self.exponent)
        )

    @cached_property
    def actual(self) -> Floats:
        """Rows of the class."""
        return self._sums(self.rows)

    @cached_property
    def predicted(self) -> Floats:
        """Rows predicted to be of the class."""
        return self._sums(self.columns)

    @cached_property
    def seen(self) -> Bools:
        """Whether a class has rows, true or predicted."""
        seen: Bools = np.zeros(self.size, np.bool_)
        seen[self.rows] = seen[self.columns] = True
        return seen

    def integers(self) -> Integers:
        """Return the counts, or the weights as integers of a common unit."""
        amount = self._amount
        if self._few:
            return self._few
        if not isinstance(amount, ExactSum):
            sides = (self.actual, self.predicted, self.tp)
            actual, predicted, tp = (side.astype(np.int64).tolist() for side in sides)
            return Integers(actual, predicted, tp, amount.tolist())
        exact = [
            self._exact(self.rows),
            self._exact(self.columns),
            self._exact(self.rows, self._hit),
            amount,
        ]
        return Integers(*in_one_unit(exact))

    def outcomes(self) -> list[Outcomes]:
        """Return TP, FP, FN and TN of each class, as `integers`."""
        actual, predicted, tp, _ = self.integers()
        n, sides = sum(actual), zip(actual, predicted, tp, strict=True)
        return [(hit, pred - hit, true - hit, n - true - pred + hit) for true, pred, hit in sides][
            : self.kept
        ]


def in_one_unit(sums: Sequence[ExactSum]) -> list[list[int]]:
    """Return sums as integers of a common unit."""
    integers = [one.integers() for one in sums]
    unit = min(exponent for _, exponent in integers)  # that of an empty sum may be larger
    return [[value << (exponent - unit) for value in values] for values, exponent in integers]


def _added(rows: list[int], columns: list[int], cells: list[int], size: int) -> Integers:
    """Return the counts, by a loop that is faster for few classes."""
    actual, predicted, tp = [0] * size, [0] * size, [0] * size
    for row, column, count in zip(rows, columns, cells, strict=True):
        actual[row] += count
        predicted[column] += count
        if row == column:
            tp[row] += count
    return Integers(actual, predicted, tp, cells)


def _exponent(amount: ExactSum) -> int:
    """Return the power of two by which sums must be divided to be added up as floats."""
    total, unit = amount.sum().integers()
    over: int = max(0, total.bit_length() + unit - ROOM)
    if over and np.asarray(amount.to_float(-over)).min() < _SMALLEST:
        raise StreamMetricsError(
            "the weights lie more than 2**2000 apart; give the smallest ones the weight 0"
        )
    return over
