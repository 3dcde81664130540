"""Tables of labels: pairs of labels, labels and scores, several labels a row, and ratings."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.columns.column import Column, unique
from streammetrics.core.columns.labels import UNKNOWN, Indicators, Labels
from streammetrics.core.columns.numbers import Numbers
from streammetrics.core.columns.schema import (
    ADVICE,
    NEGATIVE,
    Condition,
    Schema,
    reject,
    reject_present,
)
from streammetrics.core.columns.scores import SAMPLES, Scores, binary_codes
from streammetrics.core.constraints import NanPolicy
from streammetrics.core.counting import (
    GroupCodes,
    added_at,
    counts_above,
    counts_of,
    extent,
    is_dense,
    packed,
)
from streammetrics.core.errors import StateFormatError
from streammetrics.core.fields.keyed import LabelledEntries, LabelTable, Sums, Weights, coded_labels
from streammetrics.core.fields.sums import Width
from streammetrics.core.fields.tables import GroupedCells, PairTable
from streammetrics.core.fields.weights import Weight, WeightedCount, WideWeights, have_weights
from streammetrics.core.statistic import Statistic
from streammetrics.core.types import ClassLabel
from streammetrics.statistics.histograms import ScoredStatistic

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.schema import Facts, Finished, Taken
    from streammetrics.core.types import Array, Bools, Columns, Floats, Ints, Places, ReadColumn

    Marks = NDArray[np.uint8]


_FIRST = 1 << 12  # rows from which the number of labels is guessed


class LabelCells(NamedTuple):
    """The pairs that occur: labels of both sides, places in them, and how much of each pair."""

    row_labels: Array
    column_labels: Array
    rows: Places
    columns: Places
    amount: Ints | ExactSum


def amounts_of(
    shape: tuple[int, ...], *codes: Array, weight: Floats | None, squared: bool = True
) -> tuple[Places, WeightedCount]:
    """Return which cells of a table have rows, ascending, and how much there is of each.

    A row is in the cell that its codes name; cells are numbered row by row. With `squared` the
    squares of weights are summed as well.
    """
    size, n = math.prod(shape), len(codes[0])
    if is_dense(size, n):
        times = None if have_weights(weight) else weight
        counts = counts_of(shape, *codes, times=times).reshape(-1)
        found = np.flatnonzero(counts)
        if not have_weights(weight):
            return found, WeightedCount.of_counts(counts[found])
        places = packed(shape, *codes)
        return found, WeightedCount.at_places(places, size, weight, squared=squared).at(found)
    found, places = unique(packed(shape, *codes))
    return found, WeightedCount.at_places(places, found.size, weight, squared=squared)


def _counted_few(
    columns: tuple[Column, ...], times: Array | None, *outer: tuple[int, Array]
) -> Ints | None:
    """Return how many rows have each pair of labels, integers from 0 on; ``None`` for others.

    Counts are (rows, columns), behind the axes of the outer codes, of each of which the size is
    given. How many labels there are is guessed from the first rows, which saves a pass.
    """
    one, other = columns
    if one.vocabulary is not None or other.vocabulary is not None:
        return None
    (low, high), (least, most) = (extent(column.values[:_FIRST]) for column in columns)
    shape, n = (*[size for size, _ in outer], int(high) + 1, int(most) + 1), len(one.values)
    if not 0 <= min(low, least) <= max(high, most) < n or not is_dense(math.prod(shape), n):
        return None
    codes = *[codes for _, codes in outer], one.values, other.values
    try:
        return counts_of(shape, *codes, times=times)
    except IndexError:  # a label of a later row
        return None


def _cells(
    columns: tuple[Column, ...], weight: Floats | None, *outer: tuple[int, Array]
) -> GroupedCells:
    """Return the pairs of the labels of two columns, of each group if there are groups."""
    counts = _counted_few(columns, weight, *outer) if not have_weights(weight) else None
    if counts is not None:
        flat = counts.reshape(-1)
        (cells,) = flat.nonzero()
        most = len(columns[0].values) if weight is None else None
        amount = WeightedCount.of_counts(flat[cells], most)
        row_labels, column_labels = map(np.arange, counts.shape[-2:])
        return GroupedCells(row_labels, column_labels, cells, amount)
    (rows, row_labels), (cols, column_labels) = map(coded_labels, columns)
    shape = *[size for size, _ in outer], len(row_labels), len(column_labels)
    cells, amount = amounts_of(shape, *[codes for _, codes in outer], rows, cols, weight=weight)
    return GroupedCells(row_labels, column_labels, cells, amount)


class ContingencyTable(Statistic):
    """Counts, or exact sums of weights, of (row label, column label) pairs.

    Only pairs that occur are held, so memory grows with them (16 bytes each) and not with the
    square of the classes. Each side keeps its own labels, sorted. `alike` sides hold labels of
    one kind, and the second may be an (n, K) matrix of scores. With `others` there may be labels
    besides those given.
    """

    in_kernels = takes_counts = True

    row: str = "y_true"
    column: str = "y_pred"
    labels: tuple[ClassLabel, ...] | None = None
    alike: bool = True
    nan_policy: Literal["raise", "omit"] = "raise"
    ignore_index: int | None = None
    others: bool = False

    table = PairTable(inline=True)

    def check_fields(self) -> None:
        """Check that labels are among those given, where there may be no others."""
        if self.labels is None or self.others:
            return
        given = set(self.labels)
        if not given.issuperset(
            [*self.table.row_labels.tolist(), *self.table.column_labels.tolist()]
        ):
            raise StateFormatError(f"labels of the table are not among {self.labels!r:.200}")

    def check_groups(self, values: Mapping[str, Any], size: int) -> None:
        """Check the labels of all groups at once."""
        cells = values["table"]
        if type(self).check_fields is not ContingencyTable.check_fields or type(cells) is tuple:
            super().check_groups(values, size)
        else:
            twin = self.fork()
            twin.table = cells
            twin.check_fields()

    @property
    def schema(self) -> Schema:
        """Two columns of labels."""
        if self.alike:
            first = Labels(self.row, self.labels, ignore_index=self.ignore_index, leader=self.row)
            second = Labels(self.column, self.labels, matrix=True, truth=self.row)
            sides = (replace(side, others=self.others) for side in (first, second))
            return Schema(tuple(sides), self.nan_policy)
        sides = (Labels(name, fact=f"labels of {name}") for name in (self.row, self.column))
        return Schema(tuple(sides), self.nan_policy)

    def lift(
        self, columns: Columns, weight: Array | None, group: GroupCodes | None = None
    ) -> dict[str, object]:
        """Return the pairs of the rows."""
        if group is None:
            return {"table": _cells(columns, weight).narrowed()}
        return {"table": _cells(columns, weight, (group.size, group.codes))}

    def cells(self) -> LabelCells:
        """Return the pairs that occur, in order of their labels."""
        table = self.table
        return LabelCells(
            table.row_labels, table.column_labels, *table.places, table.amount.plain()
        )

    def squares(self) -> Ints | ExactSum | None:
        """Return the sums of the squared weights of the `cells`; ``None`` if they are not known."""
        return self.table.amount.plain_squared()

    @property
    def counts(self) -> Ints:
        """How many rows have each pair, where no row has a weight."""
        counts: Ints = self.table.amount.counts
        return counts


UNWEIGHTED = "metrics of clusterings"  # as pairs of points have no weight


class LabelPairs(ContingencyTable):
    """How many rows have each pair of labels of two labelings, which may differ in kind."""

    row: str = "labels_true"
    column: str = "labels_pred"
    alike: bool = False

    table = PairTable(whole=True, inline=True)

    @property
    def schema(self) -> Schema:
        """Two columns of labels, without weights."""
        schema = super().schema
        return replace(schema, unweighted=UNWEIGHTED)

    def check_rows(self, n: int) -> None:
        """Check that the counts are those of n rows."""
        if int(self.counts.sum()) != n:
            raise StateFormatError(f"the counts of labelings are not those of {n} rows")


@dataclass(frozen=True)
class SampleLabels(Labels):
    """The sample of each row: 1 for the current sample, 0 for the reference."""

    name: str = "sample"
    current: ClassLabel | None = None

    def finish(self, batch: Batch, taken: Columns, rows: Places | None) -> Finished:
        """Return the codes of the samples; raise if there is a third one."""
        column = taken[0] if rows is None else taken[0][rows]
        codes, facts = binary_codes(batch, self.name, column, self.current, None, rows, SAMPLES)
        return (Column(codes.astype(np.int64), None, True),), facts


class SampleTable(ContingencyTable):
    """How much of two samples has each category, by the code of the sample: 1 is the current."""

    row: str = "sample"
    column: str = "values"
    alike: bool = False
    current: ClassLabel | None = None

    exact: ClassVar[bool] = True  # as of a histogram in which every value has a cell

    @property
    def schema(self) -> Schema:
        """The sample of each row, and its category."""
        sides = SampleLabels(current=self.current), Labels("values", fact="labels of values")
        return Schema(sides, self.nan_policy)

    def check_fields(self) -> None:
        """Check that there are two samples at most."""
        if not {*self.table.row_labels.tolist()} <= {0, 1}:
            raise StateFormatError("the codes of samples are not 0 and 1")

    def amounts(self) -> tuple[Array, Array, int] | None:
        """Return how much of the current sample and of the reference has each category.

        Both are integers of a common unit, whose exponent is returned too. ``None`` unless both
        have rows.
        """
        rows, columns = self.table.places
        if len(self.table.row_labels) < 2:
            return None
        amounts, exponent = self.table.amount.exact().integers()
        counts = np.zeros((2, len(self.table.column_labels)), object)
        counts[rows, columns] = amounts
        return counts[1], counts[0], exponent


_SIDES, _ROWS, _COLUMNS = np.arange(2), np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])


class ThresholdTable(ScoredStatistic):
    """True and false positives and negatives, a row being positive where score >= threshold.

    The cells are in the order of a two-by-two confusion matrix: true negatives, false positives,
    false negatives, true positives. 32 bytes.
    """

    in_kernels = takes_counts = True

    threshold: float = 0.5

    amount = Weight((4,), squared=True, inline=True)

    @property
    def scores(self) -> Scores:
        """Scores (n,), of which only the order matters."""
        return Scores(long=True)

    def lift(
        self, columns: Columns, weight: Array | None, group: GroupCodes | None = None
    ) -> dict[str, object]:
        """Return the rows in each cell."""
        positive, score = columns
        sizes, codes = ((), ()) if group is None else ((group.size,), (group.codes,))
        if not have_weights(weight) and isinstance(score, np.ndarray):
            counts = counts_above(
                (*sizes, 2), score, self.threshold, *codes, positive, times=weight
            )
            if group is not None and weight is None:
                group.counts = counts.sum(axis=(1, 2))  # saves a pass over the rows
            return {"amount": WeightedCount.of_counts(counts.reshape(*sizes, 4))}
        cell = packed((*sizes, 2, 2), *codes, positive, score >= self.threshold)
        amount = WeightedCount.at_places(cell, 4 * math.prod(sizes), weight, squared=True)
        return {"amount": amount.shaped((*sizes, 4))}

    @property
    def absent_facts(self) -> frozenset[str]:
        """The negative label, if only positive rows are left."""
        return frozenset([NEGATIVE] if not self.amount.signs()[:2].any() else [])

    def take_whole(self, batch: Batch) -> tuple[Self, Facts] | None:
        """Return the table with all rows of plain columns of 0 and 1 and of scores."""
        columns = self.plain_binary(batch)
        if columns is None:
            return None
        truth, score = columns
        twin = self.fork()
        try:
            twin.update(truth, score, weight=None)
        except IndexError:  # another label, or no number
            return None
        return twin, self.facts_of(truth)

    def cells(self) -> LabelCells:
        """Return the four cells; the labels are 0 and 1 for the negative and the positive."""
        return LabelCells(_SIDES, _SIDES, _ROWS, _COLUMNS, self.amount.plain())

    def squares(self) -> Ints | ExactSum | None:
        """Return the sums of the squared weights of the `cells`; ``None`` if they are not known."""
        return self.amount.plain_squared()


# ---- top k ----


class TopKHits(ScoredStatistic):
    """The weight of the rows whose true class is in their top k, and of all rows.

    Of one score a row the first of two classes is the positive one where the score is above a
    half, of logits above 0.
    """

    takes_counts = True

    k: int = 1
    from_logits: bool = False

    hits = Weight(squared=True)
    total = Weight(squared=True)

    @property
    def matrix(self) -> bool:  # type: ignore[override]  # read-only where the base only declares
        """Whether scores must be (n, K): with one score a row, the top 2 are always right."""
        return self.k > 1

    @property
    def scores(self) -> Scores:
        """Scores (n, K), of which only the order within a row matters, or one a row."""
        return Scores(wide=True, use="rank", from_logits=self.from_logits)

    def lift(
        self, columns: Columns, weight: Array | None, group: GroupCodes | None = None
    ) -> dict[str, object]:
        """Return the rows with fewer than k better classes, and all rows."""
        hit = self.hit(*columns)
        right = None if weight is None else weight[hit]
        own = None if group is None else GroupCodes(group.codes[hit], group.size)
        hits = WeightedCount.of_rows(int(np.count_nonzero(hit)), right, own, squared=True)
        return {"hits": hits, "total": WeightedCount.of_rows(len(hit), weight, group, squared=True)}

    def hit(self, truth: Array, scores: Floats) -> Bools:
        """Return whether each row's true class is in its top k."""
        if scores.ndim == 1:
            first = scores > (0.0 if self.from_logits else 0.5)
            right: Bools = first == (truth == 1)
            return right
        own = scores[np.arange(len(truth)), truth][:, None]
        # Among equal scores the higher class comes first, as in scikit-learn.
        better = (scores > own) | ((scores == own) & (np.arange(scores.shape[1]) > truth[:, None]))
        hit: Bools = np.count_nonzero(better, axis=1) < self.k
        return hit

    def check_fields(self) -> None:
        """Check that there are no more hits than rows."""
        if self.hits.fraction() > self.total.fraction():
            raise StateFormatError("there are more hits than rows")


_LABEL_BITS = 21  # of each count of labels of a row, of which a key is made of three
_MOST_LABELS = (1 << _LABEL_BITS) - 1
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
    width = Width("columns of labels", _MOST_LABELS)

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
        rows = LabelledEntries((((tp << _LABEL_BITS) | fp) << _LABEL_BITS) | fn, {"amount": amount})
        self.table = type(self).table.plus(self.table, rows)
        self.width = width

    def kinds(self) -> RowKinds:
        """Return the kinds of rows that occur, in order."""
        labels = self.table.labels
        shifts = (2 * _LABEL_BITS, _LABEL_BITS, 0)
        tp, fp, fn = (((labels >> shift) & _MOST_LABELS).astype(np.float64) for shift in shifts)
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
    words: Array = marks.view(np.uint32 if size == 4 else np.uint64)
    sums = words[:, 0].copy()
    for place in range(1, words.shape[1]):
        sums += words[:, place]
    sums *= sums.dtype.type(0x0101010101010101 >> (64 - 8 * size))  # to the highest byte
    sums >>= sums.dtype.type(8 * (size - 1))
    totals: Places = sums.astype(np.intp)
    return totals


_RATINGS = "ratings of an item"
_MOST_RATINGS = 1 << 20  # ratings of an item that fall to one category
_CODES = 1 << 10  # categories that raters may name
_RATING_BITS = 20  # of a key: the number of ratings of an item, and each of two codes
_CELLS = 1 << 22  # pairs of codes that are made at once


@dataclass(frozen=True)
class WholeRatings(Condition):
    """Refuses items of which a number is not whole."""

    def check(self, batch: Batch, missing: Bools | None) -> None:
        """Check the counts, or the codes."""
        numbers = batch.numbers("ratings")
        numbers = numbers[:, None] if numbers.ndim == 1 else numbers
        broken: Bools = ((np.rint(numbers) != numbers) & ~np.isnan(numbers)).any(axis=1)
        title = batch.title("ratings")
        reject_present(title, "holds numbers that are not whole", broken, missing, numbers)


@dataclass(frozen=True)
class CountColumns(Numbers):
    """Counts (n, K) of the ratings of each item; with `equal` all items have as many ratings."""

    equal: bool = False

    def finish(self, batch: Batch, taken: Columns, rows: Places | None) -> Finished:
        """Return the counts, and the number of ratings that all rated items have."""
        (values,), facts = super().finish(batch, taken, rows)
        sums = values.reshape(len(values), -1).sum(axis=1)
        if self.equal and sums.any():
            first = sums[sums > 0][0]
            wrong = (sums != first) & (sums > 0)
            if wrong.any():
                what = f"adds up to another number than the {first:g} ratings of rows before"
                reject(
                    batch.title(self.name), what, wrong, values, rows=rows, advice=ADVICE[_RATINGS]
                )
            facts = {**facts, _RATINGS: int(first)}
        return (values,), facts


@dataclass(frozen=True)
class CodeColumns(Numbers):
    """The category that each of R raters put an item into, (n, R).

    With `partial`, nan where a rater did not rate an item; without, such an item is missing.
    """

    partial: bool = True

    def take(self, batch: Batch) -> Taken:
        """Return the codes, and the items that are missing."""
        codes, missing = super().take(batch)
        return codes, None if self.partial else missing

    def validate(self, batch: Batch, taken: Columns, missing: Bools | None) -> None:
        """Check the codes that are there."""
        values: Floats = taken[0]
        wrong = ~(np.isnan(values) | self._inside(values))
        if wrong.any():
            title = batch.title(self.name)
            reject(title, self._complaint(values, wrong), wrong, values, advice=_NUMBERED)


_NUMBERED = "categories are numbered from 0, as by np.unique(codes, return_inverse=True)"


class Items(NamedTuple):
    """Items with one number of ratings each: how many, their counts, and products of them."""

    ratings: int
    items: int
    counts: list[int]
    pairs: list[list[int]]
    values: list[int]  # the categories, in order


class RatingCounts(Statistic):
    """Sums of the counts (K,) of items, and of their products (K, K), by the number of ratings.

    With `equal` an item with another number of ratings than those before is refused. Items that
    nobody rated are left out.
    """

    nan_policy: NanPolicy = "raise"
    equal: bool = False

    held = LabelTable(items=Weights(whole=True), counts=Sums(), pairs=Sums(), inline=True)

    @property
    def schema(self) -> Schema:
        """Counts (n, K): how many raters put each item into each of the categories."""
        counts = CountColumns("ratings", 0.0, float(_MOST_RATINGS), wide=True, equal=self.equal)
        return Schema((counts,), self.nan_policy, "metrics of agreement", (WholeRatings(),))

    def update(self, *columns: ReadColumn, weight: Floats | None) -> None:
        """Add the items."""
        counts = columns[0].reshape(len(columns[0]), -1).astype(np.int64)
        counts = counts[counts.any(axis=1)]
        if not counts.size:
            return
        ratings, of, items = np.unique(counts.sum(axis=1), return_inverse=True, return_counts=True)
        width = counts.shape[1]
        sums = added_at(of, counts, ratings.size)
        # Few numbers of ratings differ, and for each of them products are one of matrices.
        products = [(rows := counts[of == place]).T @ rows for place in range(ratings.size)]
        columns_of = {
            "items": WeightedCount.of_counts(items.astype(np.int64)),
            "counts": ExactSum.counts(sums),
            "pairs": ExactSum.counts(np.array(products).reshape(ratings.size, width * width)),
        }
        self.held = type(self).held.plus(self.held, LabelledEntries(ratings, columns_of))

    def check_fields(self) -> None:
        """Check that there are products of as many categories, and ratings of every item."""
        labels, columns = self.held
        width = columns["counts"].shape[1]
        whole = labels.dtype == np.int64 and columns["pairs"].shape[1] == width * width
        if not whole or any(sum(each.counts) != each.ratings * each.items for each in self.items()):
            raise StateFormatError("the sums are not those of any ratings")

    def items(self) -> list[Items]:
        """Return what there is of items by their number of ratings."""
        labels, columns = self.held
        found = []
        for place, ratings in enumerate(labels.tolist()):
            counts = _integers(columns["counts"][place])
            pairs = np.array(_integers(columns["pairs"][place]), object)
            products = pairs.reshape(len(counts), -1).tolist() if counts else []
            items = int(columns["items"].counts[place])
            found.append(Items(ratings, items, counts, products, list(range(len(counts)))))
        return found


class RaterCodes(Statistic):
    """Sums of the products of the counts of every two categories, by the number of ratings.

    The key of a sum holds the number of ratings of an item, and two codes that it has. The counts
    are the sums of products over the other code, each divided by the number of ratings. With
    `partial` a rater may leave an item out.
    """

    nan_policy: NanPolicy = "raise"
    partial: bool = True

    held = LabelTable(pairs=Weights(whole=True), inline=True)

    @property
    def schema(self) -> Schema:
        """Codes (n, R): the category that each rater put each item into."""
        most = float(_CODES - 1)
        codes = CodeColumns("ratings", 0.0, most, wide=True, partial=self.partial)
        return Schema((codes,), self.nan_policy, "metrics of agreement", (WholeRatings(),))

    def update(self, *columns: ReadColumn, weight: Floats | None) -> None:
        """Add the items."""
        codes = columns[0].reshape(len(columns[0]), -1)
        step = max(1, _CELLS // max(1, codes.shape[1]) ** 2)
        for first in range(0, len(codes), step):
            self._add(codes[first : first + step])

    def _add(self, codes: Floats) -> None:
        item, rater = np.nonzero(~np.isnan(codes))
        if not item.size:
            return
        cells = (item << _RATING_BITS) | codes[item, rater].astype(np.int64)
        cells, times = np.unique(cells, return_counts=True)
        item, code = cells >> _RATING_BITS, cells & _MASK
        ratings = np.bincount(item, times).astype(np.int64)
        size = np.bincount(item)  # categories of each item
        first = np.cumsum(size) - size
        # Each category of an item beside all of its categories.
        one = np.repeat(np.arange(item.size), size[item])
        start = np.cumsum(size[item]) - size[item]
        other = np.arange(one.size) - start[one] + first[item[one]]
        keys = (((ratings[item[one]] << _RATING_BITS) | code[one]) << _RATING_BITS) | code[other]
        keys, places = np.unique(keys, return_inverse=True)
        sums = np.zeros(keys.size, np.int64)
        np.add.at(sums, places, times[one] * times[other])
        entries = LabelledEntries(keys, {"pairs": WeightedCount.of_counts(sums)})
        self.held = type(self).held.plus(self.held, entries)

    def check_fields(self) -> None:
        """Check that the products are those of items with so many ratings."""
        keys = self.held.labels
        whole = keys.dtype == np.int64 and (not keys.size or keys[0] >> 2 * _RATING_BITS > 0)
        codes = (
            np.array([keys & _MASK, keys >> _RATING_BITS & _MASK]) if whole else np.zeros((2, 0))
        )
        if not whole or (codes >= _CODES).any() or not all(map(_are_of_items, self.items())):
            raise StateFormatError("the products are not those of any ratings")

    def items(self) -> list[Items]:
        """Return what there is of items by their number of ratings."""
        keys, sums = self.held.labels, self.held.columns["pairs"].counts.tolist()
        one, other = keys >> _RATING_BITS & _MASK, keys & _MASK
        values = np.union1d(one, other)
        places = [np.searchsorted(values, side).tolist() for side in (one, other)]
        found: dict[int, list[list[int]]] = {}
        for ratings, row, column, amount in zip(
            (keys >> 2 * _RATING_BITS).tolist(), *places, sums, strict=True
        ):
            if ratings not in found:
                found[ratings] = [[0] * values.size for _ in values]
            found[ratings][row][column] = amount
        items = []
        for ratings, pairs in found.items():
            counts = [sum(row) // ratings for row in pairs]
            items.append(Items(ratings, sum(counts) // ratings, counts, pairs, values.tolist()))
        return items


_MASK = (1 << _RATING_BITS) - 1


def _are_of_items(each: Items) -> bool:
    """Whether products of counts are symmetric, and add up to those of whole items."""
    ratings, pairs = each.ratings, each.pairs
    size = range(len(pairs))
    even = all(pairs[a][b] == pairs[b][a] for a in size for b in range(a))
    sums = [sum(row) for row in pairs]
    return even and sum(sums) == each.items * ratings**2 and all(n % ratings == 0 for n in sums)


def _integers(sums: ExactSum) -> list[int]:
    values, exponent = sums.integers()
    unit = Fraction(2) ** exponent
    flat: Array = np.asarray(values, object).reshape(-1)
    return [int(value * unit) for value in flat]
