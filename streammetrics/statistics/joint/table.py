"""How often each triple of a true label and two models' labels was seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.columns.conversion import Column
from streammetrics.core.columns.distinct import distinct
from streammetrics.core.counting import counts_of, is_dense, packed
from streammetrics.core.errors import StateFormatError
from streammetrics.core.field import StateField
from streammetrics.core.fields.labels import coded_labels, packed_labels, unpacked_labels
from streammetrics.core.state.arrays import nested, part, take_array
from streammetrics.core.unions import Union, moved
from streammetrics.statistics.joint.base import JointStatistic
from streammetrics.statistics.joint.schema import Bring
from streammetrics.statistics.sums.spreads import squares_of
from streammetrics.statistics.tables.threshold import ThresholdTable

if TYPE_CHECKING:
    from streammetrics.core.configured import Configured
    from streammetrics.core.types import Array, Arrays, Columns, Floats, Ints, Places
    from streammetrics.statistics.tables.contingency import ContingencyTable


class Triples(NamedTuple):
    """The distinct triples: places of the true label, of one model's and of the other's."""

    labels: Array
    cells: Ints  # (T, 3), in order
    amount: ExactSum  # (T,)
    squares: ExactSum  # (T,), of the weights; the amount where every row weighs one

    @classmethod
    def empty(cls) -> Triples:
        """No triples."""
        nothing = ExactSum.zero((0,))
        return cls(np.empty(0, np.int64), np.empty((0, 3), np.int64), nothing, nothing)

    def plus(self, other: Triples) -> Triples:
        """The triples of both."""
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
    """How much there is of each triple of labels: memory grows with the triples that occur."""

    def empty(self, of: Configured) -> Triples:  # noqa: ARG002 - nothing depends on it
        """Return no triples."""
        return Triples.empty()

    def plus(self, mine: Triples, other: Triples) -> Triples:
        """Return the triples of both."""
        return mine.plus(other)

    def arrays(self, value: Triples) -> dict[str, Array]:
        """Return labels, triples and exact amounts."""
        return {
            "labels": packed_labels(value.labels),
            "cells": value.cells,
            **nested("amount", value.amount.arrays()),
            **nested("squares", value.squares.arrays()),
        }

    def taken(self, arrays: Arrays, of: Configured) -> Triples:  # noqa: ARG002 - nothing depends on it
        """Return labels, triples and amounts, all of which are in order and in use."""
        labels = unpacked_labels(arrays, "labels")
        cells = take_array(arrays, "cells", "int64", 2)
        parts = [part(arrays, name) for name in ("amount", "squares")]
        if len(arrays) != 2 + sum(map(len, parts)) or cells.shape[1] != 3:
            raise StateFormatError(f"{sorted(arrays)} are not the arrays of triples of labels")
        sums = [ExactSum.from_arrays((len(cells),), each) for each in parts]
        if not np.array_equal(np.unique(cells), np.arange(len(labels))):
            raise StateFormatError("the triples of a joint table do not fit its labels")
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
    """Amounts of (true, one model's, the other's) label, of the rows and of their squared weights.

    What either model got right where the other did not, and for any metric of counts how far the
    two go together. Only triples that occur are held, 24 bytes and two sums each.
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
    """Return the weight, and the squared weights, of each group."""
    if weight is None:
        whole = ExactSum.counts(counts_of((size,), group))
        return whole, whole
    return ExactSum.grouped(group, size, weight), ExactSum.grouped(group, size, squares_of(weight))


def labels_of(table: ContingencyTable | ThresholdTable) -> Bring:
    """Return how the columns of two models become the true labels and those of either."""
    if isinstance(table, ThresholdTable):
        return Bring(("labels", table._key), _Cut(table.threshold))
    return Bring(("labels", table._key), _first_and_others)


def _first_and_others(columns: list[Columns]) -> Columns:
    return (columns[0][0], *(predicted for _, predicted in columns))


@dataclass(frozen=True)
class _Cut:
    """Makes labels 0 and 1 of scores."""

    threshold: float

    def __call__(self, columns: list[Columns]) -> Columns:
        truth = columns[0][0].astype(np.int8)
        called = [(scores >= self.threshold).astype(np.int8) for _, scores in columns]
        return tuple(Column(values, None, True) for values in (truth, *called))
