"""Confusion tables over groups, from which metrics of labels are read."""

from __future__ import annotations

import math
from abc import abstractmethod
from bisect import bisect
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from operator import mul
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.columns.column import numbered
from streammetrics.core.columns.labels import places_or_last
from streammetrics.core.counting import Union, moved
from streammetrics.core.errors import StreamMetricsError
from streammetrics.core.fields.weights import WeightedCount
from streammetrics.metrics.averages import light
from streammetrics.statistics.tables import LabelTables, PartialLabelTables, RowTables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from streammetrics.core.fields.tables import GroupedCells
    from streammetrics.core.types import Array, Bools, ClassLabel, Floats, Ints, Numeric, Places
    from streammetrics.statistics.tables import LabelCells, RowKinds

    Amounts = Ints | ExactSum
    Outcomes = tuple[int, int, int, int]


class GroupedClasses:
    """The classes of each group, and the warnings about the values computed from them.

    Every group has `size` classes, of which `kept` have names. Without `codes`, all groups have the
    classes `labels`; `codes`, (groups, kept), are indices into `labels`.
    """

    groups: int = 1
    codes: Places | None = None
    labels: list[ClassLabel]
    kept: int
    size: int
    _doubts: tuple[tuple[Bools, Callable[[int], str]], ...] = ()

    def labels_of(self, group: int) -> list[ClassLabel]:
        """Return the classes of a group, in order."""
        if self.codes is None:
            return self.labels
        return [self.labels[code] for code in self.codes[group].tolist()]

    def place_of(self, label: ClassLabel) -> int | Places:
        """Return the position of a class, -1 if absent: one for all groups, or (groups,)."""
        place = self.labels.index(label) if label in self.labels else -1
        if self.codes is None or place < 0:
            return place
        there = self.codes == place
        return np.where(there.any(axis=1), there.argmax(axis=1), -1)

    def at(self, values: Array, place: int | Places) -> Array:
        """Return the values (groups,) at a position, from values (groups, classes)."""
        return values[:, place] if isinstance(place, int) else values[np.arange(self.groups), place]

    def each(self) -> list[Self]:
        """Return the classes of each group separately."""
        assert self.groups == 1
        return [self]

    def doubt(self, where: Bools, why: Callable[[int], str]) -> None:
        """Register a warning for some groups, (groups,); `why` returns the text for one group."""
        if np.count_nonzero(where):
            self._doubts = (*self._doubts, (where, why))

    def why(self, group: int) -> str:
        """Return the warning about the value of a group, empty if there is none."""
        texts = (why(group) for where, why in reversed(self._doubts) if where[group])
        return next(texts, "")

    @property
    def doubtful(self) -> Bools:
        """Which groups have a warning, (groups,)."""
        doubtful = np.zeros(self.groups, np.bool_)
        for where, _ in self._doubts:
            doubtful |= where
        return doubtful


class Margins(GroupedClasses):
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
        tn: Floats = self.total[:, None] - self.actual - self.fp
        return tn

    @property
    def everyone(self) -> Floats:
        """The rows among which each class is counted: all of the group."""
        return np.broadcast_to(self.total[:, None], (self.groups, self.size))

    def counts_of(self, label: ClassLabel) -> ClassCounts:
        """Return the counts of one class; without rows of it, all are true negatives."""
        place = self.place_of(label)
        total = np.asarray(self.total, dtype=np.float64)
        sides = ((self.tp, 0.0), (self.fp, 0.0), (self.fn, 0.0), (self.tn, total))
        here = np.asarray(place) >= 0
        return ClassCounts(*(np.where(here, self.at(side, place), none) for side, none in sides))

    def recalls(self) -> tuple[Floats, Bools]:
        """Return the recall of each class, 0 without rows, and which classes have rows."""
        seen = self.actual > 0
        return np.divide(self.tp, self.actual, out=np.zeros(seen.shape), where=seen), seen

    @abstractmethod
    def integers(self) -> list[Integers]:
        """Return the counts of each group as integers of one unit."""

    def outcomes(self) -> list[list[Outcomes]]:
        """Return TP, FP, FN and TN of each class of each group, in the units of `integers`."""
        found = []
        for actual, predicted, tp, _ in self.integers():
            n, sides = sum(actual), zip(actual, predicted, tp, strict=True)
            of_classes = [
                (hit, pred - hit, true - hit, n - true - pred + hit) for true, pred, hit in sides
            ]
            found.append(of_classes[: self.kept])
        return found


class ClassCounts(NamedTuple):
    """The counts of one class against the rest in each group, (groups,)."""

    tp: Floats
    fp: Floats
    fn: Floats
    tn: Floats


class Integers(NamedTuple):
    """Each class's rows, predictions and true positives, and all cells, in one unit.

    They are Python integers, so products do not overflow.
    """

    actual: list[int]
    predicted: list[int]
    tp: list[int]
    cells: list[int]


def in_one_unit(sums: Sequence[ExactSum]) -> list[list[int]]:
    """Return sums as integers of a common unit."""
    integers = [one.integers() for one in sums]
    unit = min(exponent for _, exponent in integers)  # an empty sum may have a larger one
    return [[value << (exponent - unit) for value in values] for values, exponent in integers]


ROOM = 1020  # sums below 2**1020 can be doubled twice
_FEW = 32  # number of cells up to which Python adds up faster than a call of NumPy
_SMALLEST = float(np.finfo(np.float64).smallest_normal)
WHOLE = 1 << 53  # integers with a sum below this are exact in float64, and so are all partial sums


class Confusion(Margins):
    """The counts of each class in each group; sums are exact and rounded once.

    Counts of classes are (groups, size), and of all rows (groups,); a single metric has one group.
    With `others`, one more class for all other labels follows those with names. Cells that occur
    are listed group by group: `group`, the class in `rows` and the predicted class in `columns`.
    """

    def __init__(
        self,
        labels: list[ClassLabel],
        rows: Array,
        columns: Array,
        amount: Amounts,
        *,
        others: bool = False,
        group: Places | None = None,
        groups: int = 1,
        codes: Places | None = None,
    ) -> None:
        if groups == 1 and codes is not None:
            labels, codes = [labels[code] for code in codes[0].tolist()], None
        self.labels, self.codes, self.groups = labels, codes, groups
        self.kept = len(labels) if codes is None else codes.shape[1]
        self.size = self.kept + others
        self.rows, self.columns, self._group = rows, columns, group if groups > 1 else None
        self.exponent = 0  # all floats here are divided by 2 to this power, which ratios ignore
        self._few: Integers | None = None  # the counts, if they are few
        self._amount: Amounts = amount
        if isinstance(amount, ExactSum):
            self.exponent = _exponent(amount) if groups == 1 else 0
        elif groups == 1 and max(amount.size, self.size) <= _FEW:
            few = _added(rows.tolist(), columns.tolist(), amount.tolist(), self.size)
            total = sum(few.cells)
            if total < WHOLE:
                self._few = few
                self.total = np.array([total], np.float64)
                self.actual, self.predicted, self.tp = np.array(few[:3], np.float64)[:, None]
                return
        self.total = self._sums(None)
        if not self.total.max(initial=0.0) < WHOLE and not isinstance(amount, ExactSum):
            self._amount = ExactSum.counts(amount)
            self.total = self._sums(None)

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
            classes = united(sides)
        places: list[Array] = [cells.rows, cells.columns]
        for index, (side, own) in enumerate(zip(sides, names, strict=True)):
            if own and own != classes:
                among = places_or_last(side, tuple(classes))
                others = others or bool((among == len(classes)).any())
                places[index] = among[places[index]]
        return cls(classes, places[0], places[1], cells.amount, others=others)

    def each(self) -> list[Self]:
        """Return the tables of the groups, one by one."""
        if self.groups == 1:
            return [self]
        ends = np.searchsorted(self.group, np.arange(self.groups + 1)).tolist()
        return [
            type(self)(
                self.labels_of(group),
                self.rows[first:last],
                self.columns[first:last],
                self._amount[first:last],
                others=self.size > self.kept,
            )
            for group, (first, last) in enumerate(pairwise(ends))
        ]

    def parts(self, values: Array) -> list[list[int]]:
        """Return values of the cells, split by group."""
        if self.groups == 1:
            return [values.tolist()]
        ends = np.searchsorted(self.group, np.arange(1, self.groups))
        return [part.tolist() for part in np.split(values, ends)]

    def holding(self, amount: Amounts) -> Confusion:
        """Return a table with the same cells and other amounts."""
        return self._of_cells(slice(None), amount)

    def doubled(self) -> Confusion:
        """Return a table with twice the amounts."""
        amount = self._amount
        return self.holding(amount + amount if isinstance(amount, ExactSum) else 2 * amount)

    def _of_cells(
        self, chosen: Array | slice, amount: Amounts, *, inner: bool = False
    ) -> Confusion:
        """Return a table of some of the cells, with these amounts; `inner` without other labels."""
        return Confusion(
            self.labels,
            self.rows[chosen],
            self.columns[chosen],
            amount,
            others=self.size > self.kept and not inner,
            group=None if self._group is None else self._group[chosen],
            groups=self.groups,
            codes=self.codes,
        )

    def with_class(self, label: ClassLabel) -> Confusion:
        """Return a table with one more class, without rows; labels must be sorted."""
        place = bisect(self.labels, label)
        labels = [*self.labels[:place], label, *self.labels[place:]]
        rows, columns = (side + (side >= place) for side in (self.rows, self.columns))
        return Confusion(labels, rows, columns, self._amount)

    def against_rest(self) -> list[Confusion]:
        """Return the table of each class, as 1, beside all others, as 0."""
        found = []
        for place in range(self.kept):
            codes = 2 * (self.rows == place) + (self.columns == place)
            occupied, codes = np.unique(codes, return_inverse=True)
            if isinstance(self._amount, ExactSum):
                amount: Amounts = self._amount.regroup(codes, occupied.size)
            else:
                amount = np.zeros(occupied.size, np.int64)
                np.add.at(amount, codes, self._amount)
            found.append(Confusion([0, 1], occupied // 2, occupied % 2, amount))
        return found

    def within(self) -> Confusion:
        """Return the table of the rows whose two labels are both among `labels`."""
        if self.size == self.kept:
            return self
        inside = np.flatnonzero((self.rows < self.kept) & (self.columns < self.kept))
        return self._of_cells(inside, self._amount[inside], inner=True)

    @property
    def counted(self) -> bool:
        """Whether all rows are known to have weight 1."""
        return not isinstance(self._amount, ExactSum)

    @property
    def group(self) -> Places:
        """The group of each cell."""
        return np.zeros(len(self.rows), np.intp) if self._group is None else self._group

    def _codes(self, side: Array | None) -> tuple[Array, tuple[int, ...]]:
        """Return where each cell counts: by group and class on one side, or by group."""
        if side is None:
            return self.group, (self.groups,)
        codes = side if self._group is None else self._group * self.size + side
        return codes, (self.groups, self.size)

    def _exact(self, side: Array | None, chosen: Bools | None = None) -> ExactSum:
        """Return the sums of all cells, or of the chosen ones, by group and class."""
        amount, (codes, shape) = self._amount, self._codes(side)
        if not isinstance(amount, ExactSum):
            amount = ExactSum.counts(amount)
        if chosen is not None:
            amount, codes = amount[np.flatnonzero(chosen)], codes[chosen]
        return amount.regroup(codes, math.prod(shape)).reshaped(shape)

    def _sums(self, side: Array | None, chosen: Bools | None = None) -> Floats:
        if isinstance(self._amount, ExactSum):
            return np.asarray(self._exact(side, chosen).to_float(-self.exponent))
        codes, shape = self._codes(side)
        amount = self._amount if chosen is None else self._amount * chosen
        counts = np.bincount(codes, amount, math.prod(shape)).reshape(shape)
        return counts.astype(np.float64, copy=False)

    @cached_property
    def amount(self) -> Floats:
        """The rows of each pair of classes that occurs."""
        if isinstance(self._amount, ExactSum):
            return np.asarray(self._amount.to_float(-self.exponent))
        return self._amount.astype(np.float64)

    def unscaled(self, amount: Floats) -> Floats:
        """Return floats of this table without the scaling, infinite if they are too large."""
        if not self.exponent:
            return amount
        with np.errstate(over="ignore"):
            return np.asarray(np.ldexp(amount, self.exponent))

    @property
    def counts(self) -> Ints | None:
        """The amounts as integers, ``None`` if they are not whole or reach 2**62."""
        if isinstance(self._amount, ExactSum):
            counts = WeightedCount.of_exact(self._amount).plain()
            return None if isinstance(counts, ExactSum) else counts
        return self._amount

    @cached_property
    def _hit(self) -> Bools:
        hit: Bools = self.rows == self.columns
        return hit

    @cached_property
    def hits(self) -> Floats:
        """Rows predicted correctly, (groups,)."""
        return self.tp.sum(axis=1) if self.counted else self._sums(None, self._hit)

    @cached_property
    def misses(self) -> Floats:
        """Rows predicted incorrectly, (groups,)."""
        return self.total - self.hits if self.counted else self._sums(None, ~self._hit)

    @cached_property
    def tp(self) -> Floats:
        """True positives: rows of the class that are predicted as it."""
        return self._sums(self.rows, self._hit)

    @cached_property
    def fp(self) -> Floats:
        """False positives: rows predicted as the class that are outside it."""
        return super().fp if self.counted else self._sums(self.columns, ~self._hit)

    @cached_property
    def fn(self) -> Floats:
        """False negatives: rows of the class that are predicted as another."""
        return super().fn if self.counted else self._sums(self.rows, ~self._hit)

    @cached_property
    def tn(self) -> Floats:
        """True negatives: rows of other classes that are not predicted as the class."""
        if not isinstance(self._amount, ExactSum):
            return super().tn
        everything = self._exact(None)[np.repeat(np.arange(self.groups), self.size)]
        touched = self._exact(self.rows) + self._exact(self.columns, ~self._hit)
        outside = everything.reshaped(touched.shape) - touched
        return np.asarray(outside.to_float(-self.exponent))

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
        seen: Bools = np.zeros((self.groups, self.size), np.bool_)
        seen[self.group, self.rows] = seen[self.group, self.columns] = True
        return seen

    def integers(self) -> list[Integers]:
        """Return the counts of each group, or its weights as integers of a common unit."""
        amount = self._amount
        if self._few:
            return [self._few]
        if self.groups > 1:
            return [one for each in self.each() for one in each.integers()]
        if not isinstance(amount, ExactSum):
            sides = (self.actual, self.predicted, self.tp)
            actual, predicted, tp = (side[0].astype(np.int64).tolist() for side in sides)
            return [Integers(actual, predicted, tp, amount.tolist())]
        exact = [
            self._exact(self.rows)[0],
            self._exact(self.columns)[0],
            self._exact(self.rows, self._hit)[0],
            amount,
        ]
        return [Integers(*in_one_unit(exact))]


def united(sides: Sequence[Array]) -> list[ClassLabel]:
    """Return all labels, sorted; a side without labels does not affect their type."""
    labelled = [side for side in sides if len(side)]
    return np.unique(np.concatenate(labelled)).tolist() if labelled else []


def _added(rows: list[int], columns: list[int], cells: list[int], size: int) -> Integers:
    """Return the counts, by a loop that is faster than NumPy for few classes."""
    actual, predicted, tp = [0] * size, [0] * size, [0] * size
    for row, column, count in zip(rows, columns, cells, strict=True):
        actual[row] += count
        predicted[column] += count
        if row == column:
            tp[row] += count
    return Integers(actual, predicted, tp, cells)


def _exponent(amount: ExactSum) -> int:
    """Return the exponent of the power of two by which sums must be divided to fit in floats."""
    total, unit = amount.sum().integers()
    over: int = max(0, total.bit_length() + unit - ROOM)
    if over:
        divided, there = (np.asarray(amount.to_float(by)) for by in (-over, 0))
        if (divided[there > 0] < _SMALLEST).any():
            raise StreamMetricsError(
                "the weights lie more than 2**2000 apart; give the smallest ones the weight 0"
            )
    return over


def tables_of_groups(
    cells: GroupedCells,
    size: int,
    labels: tuple[ClassLabel, ...] | None,
    at_least: ClassLabel | None = None,
) -> Iterator[tuple[Places, Confusion]]:
    """Yield a table for all groups with the same number of classes, and the indices of the groups.

    The table of a group equals the result of `Confusion.of_labels` for that group alone. Groups
    without rows have none. A group with a single class also gets the class `at_least`.
    """
    cell, amounts = cells.codes, cells.amount
    there = amounts.signs() > 0
    if not there.all():
        cell, amounts = cell[there], amounts.at(np.flatnonzero(there))
    group, cell = np.divmod(cell, cells.area)
    sides = [cells.row_labels, cells.column_labels]
    rows, columns = np.divmod(cell, max(len(sides[1]), 1))
    names = [side.tolist() for side in sides]
    classes = names[0]
    if labels is not None:
        classes = list(labels)
    elif names[0] != names[1]:
        classes = united(sides)
    if at_least is not None and at_least not in classes and _alike(classes, at_least):
        classes = classes if labels is not None else sorted([*classes, at_least])
    if classes != names[0] and names[0]:
        rows = places_or_last(sides[0], tuple(classes))[rows]
    if classes != names[1] and names[1]:
        columns = places_or_last(sides[1], tuple(classes))[columns]
    width = len(classes)
    kept = np.where(np.bincount(group, minlength=size) > 0, width, 0)
    others = np.zeros(size, np.bool_)
    codes: Places | None = None
    if labels is not None:
        others[group[np.maximum(rows, columns) == width]] = True
    elif group.size < size * width**2:  # some groups may lack a class
        pairs = np.concatenate([group * width + rows, group * width + columns])
        pairs, codes = numbered(pairs, size * width)
        kept = np.bincount(codes // width, minlength=size)
        if at_least in classes:
            lone, added = np.flatnonzero(kept == 1), classes.index(at_least)
            lone = lone[codes[(np.cumsum(kept) - kept)[lone]] % width != added]
            codes, mine, _ = Union.of(codes, lone * width + added)
            pairs = moved(mine, pairs)
            kept[lone] = 2
        rows, columns = pairs.reshape(2, -1) - (np.cumsum(kept) - kept)[group]
    amount = amounts.plain()
    for kind in sorted(set((2 * kept + others).tolist()) - {0, 1}):
        count, has_others = divmod(kind, 2)
        alike = np.flatnonzero((kept == count) & (others == has_others))
        for chosen in _in_one_unit(alike, amount, group):
            number = np.full(size, -1)
            number[chosen] = np.arange(chosen.size)
            own, cell = None, np.flatnonzero(number[group] >= 0)
            if codes is not None and count < width:
                start = (np.cumsum(kept) - kept)[chosen]
                own = (codes % width)[start[:, None] + np.arange(count)]
            yield (
                chosen,
                Confusion(
                    classes,
                    rows[cell],
                    columns[cell],
                    amount if cell.size == group.size else amount[cell],
                    others=bool(has_others),
                    group=number[group[cell]],
                    groups=chosen.size,
                    codes=own,
                ),
            )


def tables_of_two(
    labels: list[ClassLabel], amount: WeightedCount, *, flip: int
) -> Iterator[tuple[Places, Confusion]]:
    """Yield tables and groups for amounts (groups, 4) of two classes; `flip` reverses the order."""
    two, size = np.arange(2) ^ flip, len(amount.counts)
    seen = np.flatnonzero(amount.signs().any(axis=1))
    cells = amount.shaped((4 * size,)).plain()
    for chosen in _in_one_unit(seen, cells, np.repeat(np.arange(size), 4)):
        n = chosen.size
        mine = (4 * chosen[:, None] + np.arange(4)).reshape(-1)
        sides = np.tile(np.repeat(two, 2), n), np.tile(two, 2 * n)
        group = np.repeat(np.arange(n), 4)
        yield chosen, Confusion(labels, *sides, cells[mine], group=group, groups=n)


def _in_one_unit(groups: Places, amount: Ints | ExactSum, group: Places) -> Iterator[Places]:
    """Yield groups whose sums fit in one unit: all together, except sums beyond 2**1019.

    A table has one `exponent`, which must be 0 if it has several groups.
    """
    if groups.size and isinstance(amount, ExactSum):
        total = np.asarray(amount.regroup(group, int(group.max()) + 1).to_float())
        heavy = total[groups] >= 2.0 ** (ROOM - 1)
        yield from groups[heavy][:, None]
        groups = groups[~heavy]
    if groups.size:
        yield groups


def _alike(labels: Sequence[ClassLabel], label: ClassLabel) -> bool:
    """Whether a label is of the same kind as the others: text or numbers."""
    return not labels or isinstance(labels[0], str) == isinstance(label, str)


# ---- rows with several labels ----


class LabelCounts(GroupedClasses):
    """The counts of each label (1, L), under the names that `Confusion` uses for classes."""

    def __init__(
        self, labels: list[ClassLabel], amount: WeightedCount, rows: WeightedCount
    ) -> None:
        self.labels, self.size, self.kept = labels, len(labels), len(labels)
        self.exponent = _exponent_of(rows)  # all floats here are divided by 2 to this power
        sums, total = amount.exact(), rows.exact()
        true, predicted, both = sums[0], sums[1], sums[2]
        partly = amount.counts.shape[0] > 3
        rows_each = sums[3] if partly else total[np.zeros(self.size, np.intp)]
        self._cells = (rows_each - (true + predicted - both), predicted - both, true - both, both)
        floats = [
            np.asarray(part.to_float(-self.exponent))[None]
            for part in (true, predicted, rows_each, *self._cells)
        ]
        self.actual, self.predicted, self.everyone, *cells = floats
        self.tn, self.fp, self.fn, self.tp = cells
        self.total = np.array([total[0].to_float(-self.exponent)])
        self.seen = (self.actual > 0) | (self.predicted > 0)

    @classmethod
    def of(
        cls, table: LabelTables | PartialLabelTables, labels: tuple[ClassLabel, ...] | None
    ) -> LabelCounts:
        """Return the counts; labels without names are numbered."""
        width, amount = table.amount.counts.shape[1], _wide(table.amount, labels)
        if isinstance(table, LabelTables):
            return cls(list(labels or range(width)), amount, table.rows)
        rows = WeightedCount.of_exact(amount.exact()[3].sum()[None])
        return cls(list(labels or range(width)), amount, rows)

    def outcomes(self) -> list[list[Outcomes]]:
        """Return TP, FP, FN and TN of each label, as integers of a common unit."""
        tn, fp, fn, tp = in_one_unit(self._cells)
        return [list(zip(tp, fp, fn, tn, strict=True))]

    @cached_property
    def counts(self) -> Ints | None:
        """TN, FP, FN and TP of each label, (4, L).

        ``None`` if some are not whole or reach 2**62, with or without weights.
        """
        cells = [WeightedCount.of_exact(cell).plain() for cell in self._cells]
        if any(isinstance(cell, ExactSum) for cell in cells):
            return None
        return np.array(cells, np.int64)

    @property
    def tables(self) -> Array:
        """The table of each label, (L, 2, 2); integers if they are counts."""
        cells: Numeric = self.counts
        if cells is None:
            cells = [self.unscaled(cell) for cell in (self.tn, self.fp, self.fn, self.tp)]
        return np.stack(list(cells), axis=-1).reshape(-1, 2, 2)

    def unscaled(self, amount: Numeric) -> Numeric:
        """Return floats of this table without the scaling, infinite if they are too large."""
        with np.errstate(over="ignore"):
            return np.ldexp(amount, self.exponent) if self.exponent else amount


def _wide(amount: WeightedCount, labels: tuple[ClassLabel, ...] | None) -> WeightedCount:
    """Return the amounts of all labels, zeros without rows."""
    if amount.counts.shape[1] or not labels:
        return amount
    return WeightedCount.zero((amount.counts.shape[0], len(labels)))


class RowCounts(GroupedClasses):
    """The counts of labels (1, m) in each kind of row, and the number `amount` (m,) of its rows.

    With `joined` the counts are those of all rows of a kind, so their sums are the totals.
    """

    def __init__(self, kinds: RowKinds, amount: Floats, *, joined: bool) -> None:
        self.kinds, self.amount = kinds, amount
        # Floats are multiples of powers of two, so fractions represent them exactly.
        self._times: Sequence[Fraction | int] = [
            Fraction(x) if joined else 1 for x in amount.tolist()
        ]
        self.size, self.labels = len(amount), list(range(len(amount)))
        self.kept = self.size
        times: Floats = (amount if joined else np.ones(self.size))[None]
        self.tp, self.fp, self.fn = kinds.tp * times, kinds.fp * times, kinds.fn * times
        self.tn: Floats = (kinds.width - kinds.tp - kinds.fp - kinds.fn) * times
        self.actual, self.predicted = self.tp + self.fn, self.tp + self.fp
        self.everyone = np.broadcast_to(kinds.width * times, self.tp.shape)
        self.total = np.array([amount.sum()])

    @classmethod
    def of(cls, table: RowTables, *, joined: bool) -> RowCounts:
        """Return the counts."""
        kinds = table.kinds()
        exact, over = kinds.amount.exact(), _exponent_of(kinds.amount)
        room = over + 2 * kinds.width.bit_length() if over else 0  # a row has up to width labels
        counts = cls(kinds, np.asarray(exact.to_float(-room)), joined=joined)
        if joined:
            (counts._times,) = in_one_unit([exact])
        return counts

    @property
    def counted(self) -> bool:
        """Whether the weights of all kinds are whole and below 2**62."""
        return WeightedCount.of_exact(self.kinds.amount.exact()).weights is None

    def outcomes(self) -> list[list[Outcomes]]:
        """Return TP, FP, FN and TN of one row of each kind, or of all its rows, exactly."""
        kinds = self.kinds
        sides = (kinds.tp, kinds.fp, kinds.fn, kinds.width - kinds.tp - kinds.fp - kinds.fn)
        columns = [map(mul, side.astype(int).tolist(), self._times) for side in sides]
        return [list(zip(*columns, strict=True))]

    def mean(self, values: Floats, zero_division: float | None) -> Floats:
        """Return the mean (1,) over rows of the values of their kinds; ``nan`` means 0/0."""
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
        whole = math.fsum(amount)  # 0 without rows, or if weights underflow
        return np.array([math.fsum(values * amount) / whole if whole else math.nan])


def _exponent_of(amount: WeightedCount) -> int:
    """Return the exponent of the power of two by which sums must be divided to fit in floats."""
    total, unit = amount.exact().sum().integers()
    return max(0, int(total).bit_length() + unit - ROOM)
