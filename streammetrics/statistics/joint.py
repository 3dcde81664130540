"""Joint statistics of several models on the same rows: counts, moments and samples."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import singledispatch
from itertools import chain
from typing import TYPE_CHECKING, Literal, NamedTuple, Self

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.columns.column import distinct
from streammetrics.core.columns.conversion import Column
from streammetrics.core.columns.long import LongNumbers, nearest
from streammetrics.core.columns.numbers import Numbers
from streammetrics.core.columns.schema import Bring, Schema
from streammetrics.core.columns.scores import ScoredLabels
from streammetrics.core.counting import Union, counts_of, extent, is_dense, moved, packed
from streammetrics.core.errors import (
    IncompatibleMetricsError,
    StateFormatError,
    StreamMetricsError,
    an,
)
from streammetrics.core.field import StateField, not_among
from streammetrics.core.fields.keyed import (
    coded_labels,
    packed_labels,
    unpacked_labels,
    used_labels,
)
from streammetrics.core.fields.sums import Sum
from streammetrics.core.state.arrays import nested, part, take_array
from streammetrics.core.statistic import Statistic
from streammetrics.statistics.formulas import squared_losses
from streammetrics.statistics.points import (
    PointRows,
    canonical,
    column_hashes,
    label_hashes,
    point_hashes,
    row_hashes,
    subtracted,
)
from streammetrics.statistics.probabilities import ProbabilityLossSum
from streammetrics.statistics.ranking_rows import RankingRows
from streammetrics.statistics.sums import (
    PRED,
    TRUE,
    FormulaSum,
    LossSum,
    Moments,
    regression_schema,
    squares_of,
)
from streammetrics.statistics.tables import ThresholdTable, TopKHits
from streammetrics.statistics.texts import TextScores

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from streammetrics.core.configured import Configured
    from streammetrics.core.types import (
        Array,
        Arrays,
        Columns,
        Floats,
        Ints,
        Places,
        ReadColumn,
    )
    from streammetrics.statistics.tables import ContingencyTable


class JointStatistic(Statistic):
    """Base class of statistics of several models together, read through a schema `over_models`."""

    @property
    def schema(self) -> Schema:
        """Raise `TypeError`: the comparison that owns the statistic provides the schema."""
        raise TypeError(
            "joint statistics cannot be sliced or decayed: make one Comparison per slice, or one "
            "Estimated"
        )


# Inputs that each model has its own version of; all other inputs are shared.
OF_MODELS = ("y_score", "y_pred", "score", "labels_pred", "values", "prediction")


def alias(name: str, model: str, own: tuple[str, ...] = OF_MODELS) -> str:
    """Return the name of a model's input in a batch of all models."""
    return f"{name} of {model}" if name in own else name


def over_models(
    schema: Schema,
    models: Sequence[str],
    shown: Sequence[str],
    bring: Bring | None = None,
    own: tuple[str, ...] = OF_MODELS,
) -> Schema:
    """Return the schema of a statistic over `models`, of which it gets the `shown` ones."""
    return replace(
        schema,
        fields=tuple(
            replace(field, partial=True) if isinstance(field, RankingRows) else field
            for field in schema.fields
        ),
        models=tuple(tuple((name, alias(name, model, own)) for name in own) for model in models),
        shown=tuple(map(models.index, shown)),
        bring=bring,
    )


_TERMS = 1 << 14  # rows per block of terms, which then stay in the cache
_LARGEST = float(np.finfo(np.float64).max)


class JointMoments(JointStatistic):
    """Σ w, Σ w·t_i, and Σ of all products of w, w·t_1, ..., w·t_m; t_i is model i's term of a row.

    They determine exactly the variance of any difference of weighted means of the terms. The
    products w·t_i are rounded row by row. A few hundred bytes.
    """

    models: int = 2

    weight = Sum()
    totals = Sum(lambda of: (of.models,))
    products = Sum(lambda of: (len(of._pairs),))

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        return [(i, j) for i in range(self.models + 1) for j in range(i, self.models + 1)]

    def update(self, *terms: Floats, weight: Floats | None) -> None:
        """Add the sums of products of the rows."""
        if weight is None:
            first, second = ExactSum.moments([_finite(term) for term in terms])
            sums = {(i + 1, j + 1): product for (i, j), product in second.items()}
            sums |= {(0, i): total for i, total in enumerate(first, 1)}
            first = [ExactSum.counts(np.array(len(terms[0]))), *first]
            sums[0, 0] = first[0]
        else:
            with np.errstate(over="ignore", under="ignore"):
                columns = [weight, *(_finite(term * weight) for term in terms)]
            first, sums = ExactSum.moments(columns)
        self.weight = self.weight + first[0]
        self.totals = self.totals + ExactSum.row_of(first[1:])
        self.products = self.products + ExactSum.row_of([sums[pair] for pair in self._pairs])

    def product(self, i: int, j: int) -> ExactSum:
        """Return Σ w² t_i t_j; model 0 stands for the weight alone, with t_0 = 1."""
        return self.products[self._pairs.index((min(i, j), max(i, j)))]

    def check_fields(self) -> None:
        """Check that sums of squares and the sum of weights are not negative."""
        squares = [self._pairs.index((i, i)) for i in range(self.models + 1)]
        products = np.asarray(self.products.to_float())
        if self.weight.fraction() < 0 or bool((products[squares] < 0).any()):
            raise StateFormatError("a sum of squares, or of weights, is negative")


def _finite(terms: Floats) -> Floats:
    """Return terms clipped to the finite range; a loss or its weighted value can overflow."""
    low, high = extent(terms)
    return terms if low >= -_LARGEST and high <= _LARGEST else np.clip(terms, -_LARGEST, _LARGEST)


def terms_of(statistic: Statistic) -> Bring:
    """Return the conversion of each model's columns to its row terms, as by `row_terms`.

    The columns of a formula are its terms, of which there may be several.
    """
    if isinstance(statistic, FormulaSum):
        return Bring(("terms", statistic._key), _every)
    return Bring(("terms", statistic._key), _Terms(statistic))


def _every(columns: list[Columns]) -> Columns:
    return tuple(chain(*columns))


class _Terms:
    """Computes one term a row for each model."""

    def __init__(self, statistic: Statistic) -> None:
        self.statistic = statistic

    def __call__(self, columns: list[Columns]) -> Columns:
        return tuple(map(self._of_model, columns))

    def _of_model(self, columns: Columns) -> Floats:
        terms = np.empty(len(columns[0]))
        for start in range(0, len(terms), _TERMS):
            rows = slice(start, start + _TERMS)
            terms[rows] = row_terms(self.statistic, *[column[rows] for column in columns])
        return terms


@singledispatch
def row_terms(statistic: Statistic, *columns: object) -> Floats:  # noqa: ARG001 - overloads use the columns
    """Return each row's term of the statistic's sum (n,), averaged over outputs."""
    raise StreamMetricsError(f"{an(type(statistic).__name__)} is not a sum over rows")


@row_terms.register(LossSum)
def _(statistic: LossSum, y: Floats, p: Floats) -> Floats:
    with np.errstate(all="ignore"):
        try:
            found = statistic.terms(y, p)
        except FloatingPointError:  # a square outside the range of normal floats
            found = squared_losses(statistic.loss, y, p)
    return _one(nearest(found))


@row_terms.register(ProbabilityLossSum)
def _(statistic: ProbabilityLossSum, codes: Array, scores: Floats) -> Floats:
    return statistic.losses(codes, scores)


@row_terms.register(TextScores)
def _(statistic: TextScores, *texts: Array) -> Floats:
    return statistic.scores(texts)


@row_terms.register(TopKHits)
def _(statistic: TopKHits, truth: ReadColumn, scores: ReadColumn) -> Floats:
    return statistic.hit(truth, scores).astype(np.float64)


@row_terms.register(Moments)
def _(statistic: Moments, *columns: ReadColumn) -> Floats:
    if statistic.of == "pair":
        y, p = columns
        return _one(p - y)
    (values,) = columns
    return _one(values.head if isinstance(values, LongNumbers) else values)


def _one(terms: Floats) -> Floats:
    """Return one number a row, the mean over outputs."""
    return terms if terms.ndim == 1 else terms.sum(axis=1) / terms.shape[1]


class Triples(NamedTuple):
    """The distinct triples (true label, first model's label, second model's label)."""

    labels: Array
    cells: Ints  # (T, 3) indices into `labels`, in lexicographic order
    amount: ExactSum  # (T,) weight of each triple
    squares: ExactSum  # (T,) squared weight of each triple; equals `amount` without weights

    @classmethod
    def empty(cls) -> Triples:
        """Return no triples."""
        nothing = ExactSum.zero((0,))
        return cls(np.empty(0, np.int64), np.empty((0, 3), np.int64), nothing, nothing)

    def plus(self, other: Triples) -> Triples:
        """Return the triples of both."""
        if not len(self.cells) or not len(other.cells):
            return self if len(self.cells) else other
        labels = Union.of(self.labels, other.labels)
        mine, theirs = moved(labels.mine, self.cells), moved(labels.theirs, other.cells)
        sums = [self[2:], other[2:]]
        if np.array_equal(mine, theirs):
            return Triples(labels.keys, mine, *(a + b for a, b in zip(*sums, strict=True)))
        every, group = np.unique(np.concatenate([mine, theirs]), axis=0, return_inverse=True)
        places, size = group.reshape(-1), len(self.cells)
        parts = places[:size], places[size:]
        both = (
            a.regroup(parts[0], len(every)) + b.regroup(parts[1], len(every))
            for a, b in zip(*sums, strict=True)
        )
        return Triples(labels.keys, every, *both)


class TripleTable(StateField[Triples]):
    """The weight of each triple of labels; memory grows with the number of distinct triples."""

    def empty(self, of: Configured) -> Triples:
        """Return no triples."""
        return Triples.empty()

    def plus(self, mine: Triples, other: Triples) -> Triples:
        """Return the triples of both."""
        return mine.plus(other)

    def minus(self, value: Triples, other: Triples) -> Triples:
        """Return the difference, where none is negative."""
        less = other._replace(amount=-other.amount, squares=-other.squares)
        left = value.plus(less)
        if left.amount.any_negative or left.squares.any_negative:
            raise not_among("some triples of labels are not here")
        kept = np.flatnonzero(np.asarray(left.amount.to_float()))
        labels, cells = used_labels(left.labels, left.cells[kept])
        return Triples(labels, cells, left.amount[kept], left.squares[kept])

    def arrays(self, value: Triples) -> dict[str, Array]:
        """Return labels, triples and exact sums."""
        return {
            "labels": packed_labels(value.labels),
            "cells": value.cells,
            **nested("amount", value.amount.arrays()),
            **nested("squares", value.squares.arrays()),
        }

    def taken(self, arrays: Arrays, of: Configured) -> Triples:
        """Return the triples after checking that labels and triples are ordered and in use."""
        labels = unpacked_labels(arrays, "labels")
        cells = take_array(arrays, "cells", "int64", 2)
        parts = [part(arrays, name) for name in ("amount", "squares")]
        if len(arrays) != 2 + sum(map(len, parts)) or cells.shape[1] != 3:
            raise StateFormatError(
                f"expected the arrays of triples of labels, got {sorted(arrays)}"
            )
        sums = [ExactSum.from_arrays((len(cells),), each) for each in parts]
        if not np.array_equal(np.unique(cells), np.arange(len(labels))):
            raise StateFormatError("the triples of a joint table do not match its labels")
        ordered = np.array_equal(cells, np.unique(cells, axis=0))
        if not ordered or not (labels[1:] > labels[:-1]).all():
            raise StateFormatError("labels or triples of a joint table are out of order")
        amount, squares = (np.asarray(each.to_float()) for each in sums)
        if not (amount > 0).all() or not (squares >= 0).all():
            raise StateFormatError("a triple of a joint table has no positive amount")
        return Triples(labels, cells, *sums)

    def nbytes(self, value: Triples) -> int:
        """Bytes held now."""
        return sum(each.nbytes for each in value)


class JointTable(JointStatistic):
    """Weights and squared weights of the label triples (true, first model, second model).

    They show which rows one model gets right and the other does not, and give the covariance of any
    count-based metric of the two. Only triples that occur are stored, with 24 bytes and two sums
    each.
    """

    triples = TripleTable()

    def update(self, *columns: Column, weight: Floats | None) -> None:
        """Count the triples of the rows."""
        coded = [coded_labels(column) for column in columns]
        labels = coded[0][1]
        for _, theirs in coded[1:]:
            if not np.array_equal(labels, theirs):
                labels = np.union1d(labels, theirs)
        places = [
            codes if len(known) == len(labels) else np.searchsorted(labels, known)[codes]
            for codes, known in coded
        ]
        if is_dense(len(labels) ** 3, len(places[0])):
            shape = (len(labels),) * 3
            counts = counts_of(shape, *places)
            kept = np.flatnonzero(counts)
            cells = np.argwhere(counts)
            if weight is None:
                whole = ExactSum.counts(counts.reshape(-1)[kept])
                amounts = whole, whole
            else:
                sums = _amounts(packed(shape, *places), counts.size, weight)
                amounts = sums[0][kept], sums[1][kept]
        else:
            group, rows = distinct(np.stack(places, axis=1, dtype=np.int64))
            cells = np.stack([codes[rows] for codes in places], axis=1)
            order = np.lexsort(cells.T[::-1])
            rank = np.empty(order.size, np.int64)
            rank[order] = np.arange(order.size)
            cells, amounts = cells[order], _amounts(rank[group], order.size, weight)
        used, inverse = np.unique(cells, return_inverse=True)
        cells = inverse.reshape(cells.shape).astype(np.int64)
        self.triples = self.triples.plus(Triples(labels[used], cells, *amounts))


def _amounts(group: Places, size: int, weight: Floats | None) -> tuple[ExactSum, ExactSum]:
    """Return the weight and the squared weight of each group."""
    if weight is None:
        whole = ExactSum.counts(counts_of((size,), group))
        return whole, whole
    return ExactSum.grouped(group, size, weight), ExactSum.grouped(group, size, squares_of(weight))


def labels_of(table: ContingencyTable | ThresholdTable) -> Bring:
    """Return the conversion of two models' columns to the true labels and each model's labels."""
    if isinstance(table, ThresholdTable):
        return Bring(("labels", table._key), _Cut(table.threshold))
    return Bring(("labels", table._key), _first_and_others)


def _first_and_others(columns: list[Columns]) -> Columns:
    return (columns[0][0], *(predicted for _, predicted in columns))


@dataclass(frozen=True)
class _Cut:
    """Converts scores to labels 0 and 1 by a threshold."""

    threshold: float

    def __call__(self, columns: list[Columns]) -> Columns:
        truth = columns[0][0].astype(np.int8)
        called = [(scores >= self.threshold).astype(np.int8) for _, scores in columns]
        return tuple(Column(values, None, True) for values in (truth, *called))


_MOST = 1 << 62  # largest count of copies of a row


class RowSample(JointStatistic):
    """The distinct rows with the smallest seeded hashes, with multiplicities: a canonical sample.

    A row is the target or the code of the true class, the scores or predictions of every model, and
    the weight. The sample holds all distinct rows up to `max_rows`; with `by_class` and one score a
    row, it holds up to `max_rows` negatives and as many positives. It also has the number of all
    rows, their weight, and their squared weight. 8 bytes a number, and 16 a row.

    The state is implemented by methods instead of declared by fields, because its shape depends on
    the first rows: there are no strata before them, then one or two, with as many columns as these
    rows have.
    """

    max_rows: int = 8192
    by_class: bool = False
    seed: int = 0

    def clear(self) -> None:
        """Remove all rows."""
        self.strata: tuple[PointRows, ...] = ()
        self.counts: Ints = np.zeros(0, np.int64)  # rows of each stratum
        self.sums = ExactSum.zero((0, 2))  # weights and squared weights of each stratum

    def update(self, first: Floats, *scores: Floats, weight: Floats | None) -> None:
        """Add rows to the sample: targets or classes (n, d), and each model's scores (n, K)."""
        ones = np.ones(len(first)) if weight is None else weight
        columns = [*first.T, *(column for block in scores for column in block.T), ones]
        strata = 2 if self.by_class and scores[0].shape[1] == 1 else 1
        codes = first[:, 0].astype(np.intp) if strata == 2 else np.zeros(len(first), np.intp)
        seeds = label_hashes(np.arange(strata), self.seed)
        hashes = row_hashes(seeds, codes, column_hashes(columns))
        chosen = np.flatnonzero(hashes <= self._last(strata)[codes])
        points = np.stack([column[chosen] for column in columns], axis=1)
        points += 0.0  # turns -0.0 into 0.0: they are the same score
        kept = PointRows(hashes[chosen], codes[chosen], points, np.ones(len(chosen), np.int64))
        parts = [kept.take(kept.codes == stratum) for stratum in range(strata)]
        counts = np.bincount(codes, minlength=strata)
        self._add(parts, counts, _sums(codes, counts, weight))

    def _last(self, strata: int) -> NDArray[np.uint64]:
        """Return the largest hash with which a row of each stratum is kept."""
        last = np.full(strata, np.iinfo(np.uint64).max)
        for stratum, rows in enumerate(self.strata):
            if len(rows.hashes) == self.max_rows:
                last[stratum] = rows.hashes[-1]
        return last

    def merge(self, other: RowSample) -> None:
        """Merge the rows of another sample into this one."""
        if other.strata:
            self._add(other.strata, other.counts, other.sums)

    def minus(self, other: Self) -> Self:
        """Return the sample without the rows of another, if it contains all rows."""
        if not self.complete:
            raise IncompatibleMetricsError(
                f"a sample of more than {self.max_rows} distinct rows cannot be computed without "
                "some of its rows: merge the states to keep instead"
            )
        if len(self.strata) != len(other.strata):
            raise not_among("they are rows of another kind")
        left = self.fork()
        left.strata = tuple(map(subtracted, self.strata, other.strata))
        left.counts, left.sums = self.counts - other.counts, self.sums - other.sums
        if not left.complete or left.sums.any_negative:
            raise not_among("there are fewer of them here")
        return left

    def _add(self, parts: Sequence[PointRows], counts: Ints, sums: ExactSum) -> None:
        if not self.strata:
            self.strata = tuple(canonical(rows, self.max_rows) for rows in parts)
            self.counts, self.sums = counts, sums
            return
        self.strata = tuple(
            canonical(mine.beside(theirs), self.max_rows) if len(theirs.codes) else mine
            for mine, theirs in zip(self.strata, parts, strict=True)
        )
        self.counts, self.sums = self.counts + counts, self.sums + sums

    @property
    def complete(self) -> bool:
        """Whether the sample contains every row seen."""
        copies = [int(rows.copies.sum()) for rows in self.strata]
        return bool(copies == self.counts.tolist())

    @property
    def nbytes(self) -> int:
        """Bytes of state held now."""
        size = sum(array.nbytes for rows in self.strata for array in rows)
        return size + self.counts.nbytes + self.sums.nbytes

    def arrays(self) -> dict[str, Array]:
        """Return the sample in the order of its hashes, and the totals of all rows."""
        arrays = {"counts": self.counts, **nested("sums", self.sums.arrays())}
        for stratum, rows in enumerate(self.strata):
            arrays |= {f"{stratum}/rows": rows.points, f"{stratum}/copies": rows.copies}
        return arrays

    def restore(self, arrays: Arrays) -> None:
        """Set the sample; recomputes the hashes and checks that they are in order."""
        counts = take_array(arrays, "counts", "int64")
        size = len(counts)
        if size > 1 + self.by_class or (size and counts.min() < 0) or counts.max(initial=0) > _MOST:
            raise StateFormatError(f"invalid numbers of rows of a sample: {counts.tolist()}")
        sums = ExactSum.from_arrays((size, 2), part(arrays, "sums"))
        weights, squares = np.asarray(sums.to_float()).reshape(size, 2).T
        if not (((weights > 0) == (counts > 0)) & (squares >= 0)).all():
            raise StateFormatError("the weights of a sample do not match its rows")
        seeds = label_hashes(np.arange(size), self.seed)
        strata = []
        for stratum in range(size):
            points = take_array(arrays, f"{stratum}/rows", "float64", 2)
            copies = take_array(arrays, f"{stratum}/copies", "int64")
            strata.append(self._restored(stratum, points, copies, int(counts[stratum]), seeds))
        if len({rows.points.shape[1] for rows in strata}) > 1 or len(arrays) != 3 + 2 * size:
            raise StateFormatError("the parts of a sample of rows differ in width")
        self.strata, self.counts, self.sums = tuple(strata), counts, sums

    def _restored(
        self, stratum: int, points: Floats, copies: Ints, count: int, seeds: Array
    ) -> PointRows:
        if len(points) != len(copies) or len(points) > self.max_rows or points.shape[1] < 2:
            raise StateFormatError("the columns of a sample of rows differ in length")
        if np.isnan(points).any() or bool(np.signbit(points[points == 0.0]).any()):
            raise StateFormatError("a number of a sample of rows is nan or -0.0")
        held = sum(copies.tolist())
        if bool((copies < 1).any()) or held > count:
            raise StateFormatError("rows occur less than once, or more often than in all rows")
        if len(points) < self.max_rows and held < count:
            raise StateFormatError("a sample below its size limit lacks rows")
        if not bool((np.isfinite(points[:, -1]) & (points[:, -1] > 0)).all()):
            raise StateFormatError("a row of a sample has no positive weight")
        codes = np.full(len(points), stratum, np.intp)
        if len(seeds) == 2 and bool((points[:, 0] != stratum).any()):
            raise StateFormatError("a row of a sample has the wrong class")
        rows = PointRows(row_hashes(seeds, codes, point_hashes(points)), codes, points, copies)
        for column, again in zip(rows, canonical(rows, self.max_rows), strict=True):
            if not np.array_equal(column, again):
                raise StateFormatError("the rows of a sample are out of order")
        return rows


def _sums(codes: Places, counts: Ints, weight: Floats | None) -> ExactSum:
    """Return the sums of weights and of squared weights (strata, 2)."""
    if weight is None:
        return ExactSum.counts(np.stack([counts, counts], axis=1))
    group = np.concatenate([2 * codes, 2 * codes + 1])
    values = np.concatenate([weight, squares_of(weight)])
    sums = ExactSum.grouped(group, 2 * len(counts), values)
    return ExactSum((len(counts), 2), sums.digits, sums.exponent)


def rows_of(schema: Schema) -> tuple[Schema, Bring]:
    """Return the schema for reading models, and the conversion to rows: shared, then own columns.

    Metrics that read the same numbers share a sample, even if their restrictions differ, but a
    metric that keeps logits does not share one with a metric that converts them to probabilities.
    """
    scored = [field for field in schema.fields if isinstance(field, ScoredLabels)]
    if not any(field.scores.from_logits for field in scored):
        schema = schema.plain
    return schema, Bring("rows", _whole)


def _whole(columns: list[Columns]) -> Columns:
    return (_table(columns[0][0]), *(_table(each[-1]) for each in columns))


def _table(column: object) -> Floats:
    values = column.head if isinstance(column, LongNumbers) else np.asarray(column)
    values = values.astype(np.float64, copy=False)
    return values if values.ndim > 1 else values[:, None]


class MomentSample(RowSample):
    """A canonical sample of rows, used to estimate the variance of moment-based metrics.

    The variance of a variance needs fourth moments. Their sums suffer from cancellation; a sample
    by hash does not. Some 50 bytes a sampled row.
    """

    max_rows: int = 4096
    of: Literal["values", "pair"] = "pair"
    nan_policy: Literal["raise", "omit"] = "raise"

    @property
    def schema(self) -> Schema:
        """Values, or a target and a prediction, as the moments read them, without rounding."""
        if self.of == "values":
            return Schema((Numbers("values"),), self.nan_policy)
        true, pred = Numbers(TRUE, wide=True), Numbers(PRED, wide=True)
        return regression_schema(self.nan_policy, true=true, pred=pred)

    def update(self, *columns: ReadColumn, weight: Floats | None) -> None:
        """Add rows to the sample."""
        tables = [column.reshape(len(column), -1) for column in columns]
        super().update(*tables, weight=weight)


MOST_REPEATED = 1 << 26  # rows, some 0.5 GB a column


class SampledRows(RowSample):
    """A canonical sample of the rows of any columns of numbers."""

    read: Schema

    @property
    def schema(self) -> Schema:
        """The columns."""
        return self.read

    def update(self, *columns: Floats, weight: Floats | None) -> None:
        """Add rows to the sample."""
        super().update(*[column[:, None] for column in columns], weight=weight)

    def columns(self) -> list[Floats]:
        """Return the columns of the sampled rows, repeated as often as each was seen.

        Raises:
            StreamMetricsError: These are more rows than fit in memory.
        """
        n = sum(int(rows.copies.sum()) for rows in self.strata)
        if n > MOST_REPEATED:
            raise StreamMetricsError(
                f"the sampled rows were seen {n:,} times, and repeating them is limited to "
                f"{MOST_REPEATED:,} rows: use a metric of sums or counts"
            )
        repeated = [np.repeat(rows.points, rows.copies, axis=0) for rows in self.strata]
        return list(repeated[0].T[:-1]) if repeated else []
