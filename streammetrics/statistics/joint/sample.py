"""Whole rows of all models, up to a budget: how far models go together where no sums can say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.columns.long import LongNumbers
from streammetrics.core.columns.scored import ScoredLabels
from streammetrics.core.errors import StateFormatError
from streammetrics.core.state.arrays import nested, part, take_array
from streammetrics.statistics.clusters.rows import (
    PointRows,
    canonical,
    column_hashes,
    label_hashes,
    point_hashes,
    row_hashes,
)
from streammetrics.statistics.joint.base import JointStatistic
from streammetrics.statistics.joint.schema import Bring
from streammetrics.statistics.sums.spreads import squares_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from streammetrics.core.columns.schema import Schema
    from streammetrics.core.types import Array, Arrays, Columns, Floats, Ints, Places


_MOST = 1 << 62  # copies of a row that are counted


class RowSample(JointStatistic):
    """The distinct rows whose seeded hash is smallest, with multiplicities: a canonical sample.

    A row is the target or the code of the true class, the scores or predictions of every model and
    the weight. Up to `max_rows` distinct rows it holds all of them; with `by_class` up to so many
    of the negatives and so many of the positives, as long as there is one score a row. Of all rows
    it has the number, the weight and the squared weight. 8 bytes a number, and 16 a row.

    The state is spelled here and not declared by fields: there are one or two strata, with columns
    of as many numbers as the first rows have, and none of both before.
    """

    max_rows: int = 8192
    by_class: bool = False
    seed: int = 0

    def clear(self) -> None:
        """Forget all rows."""
        self.strata: tuple[PointRows, ...] = ()
        self.counts: Ints = np.zeros(0, np.int64)  # rows of each stratum
        self.sums = ExactSum.zero((0, 2))  # weights, and squared weights, of each

    def update(self, first: Floats, *scores: Floats, weight: Floats | None) -> None:
        """Take the rows among those kept: targets or classes (n, d), each model's scores (n, K)."""
        ones = np.ones(len(first)) if weight is None else weight
        columns = [*first.T, *(column for block in scores for column in block.T), ones]
        strata = 2 if self.by_class and scores[0].shape[1] == 1 else 1
        codes = first[:, 0].astype(np.intp) if strata == 2 else np.zeros(len(first), np.intp)
        seeds = label_hashes(np.arange(strata), self.seed)
        hashes = row_hashes(seeds, codes, column_hashes(columns))
        chosen = np.flatnonzero(hashes <= self._last(strata)[codes])
        points = np.stack([column[chosen] for column in columns], axis=1)
        points += 0.0  # a negative zero is the same score
        kept = PointRows(hashes[chosen], codes[chosen], points, np.ones(len(chosen), np.int64))
        parts = [kept.take(kept.codes == stratum) for stratum in range(strata)]
        counts = np.bincount(codes, minlength=strata)
        self._add(parts, counts, _sums(codes, counts, weight))

    def _last(self, strata: int) -> NDArray[np.uint64]:
        """Return the largest hash that a row of each stratum may have to be kept."""
        last = np.full(strata, np.iinfo(np.uint64).max)
        for stratum, rows in enumerate(self.strata):
            if len(rows.hashes) == self.max_rows:
                last[stratum] = rows.hashes[-1]
        return last

    def merge(self, other: RowSample) -> None:
        """Take the rows of another sample."""
        if other.strata:
            self._add(other.strata, other.counts, other.sums)

    def _add(self, parts: Sequence[PointRows], counts: Ints, sums: ExactSum) -> None:
        if not self.strata:
            self.strata = tuple(canonical(rows, self.max_rows) for rows in parts)
            self.counts, self.sums = counts, sums
            return
        self.strata = tuple(
            canonical(_together(mine, theirs), self.max_rows) if len(theirs.codes) else mine
            for mine, theirs in zip(self.strata, parts, strict=True)
        )
        self.counts, self.sums = self.counts + counts, self.sums + sums

    @property
    def complete(self) -> bool:
        """Whether every row seen is in the sample."""
        copies = [int(rows.copies.sum()) for rows in self.strata]
        return bool(copies == self.counts.tolist())

    @property
    def nbytes(self) -> int:
        """Bytes of state held now."""
        size = sum(array.nbytes for rows in self.strata for array in rows)
        return size + self.counts.nbytes + self.sums.nbytes

    def arrays(self) -> dict[str, Array]:
        """Return the sample in the order of its hashes, and what is known of all rows."""
        arrays = {"counts": self.counts, **nested("sums", self.sums.arrays())}
        for stratum, rows in enumerate(self.strata):
            arrays |= {f"{stratum}/rows": rows.points, f"{stratum}/copies": rows.copies}
        return arrays

    def restore(self, arrays: Arrays) -> None:
        """Set the sample; hashes are computed anew, and must be in order."""
        counts = take_array(arrays, "counts", "int64")
        size = len(counts)
        if size > 1 + self.by_class or (size and counts.min() < 0) or counts.max(initial=0) > _MOST:
            raise StateFormatError(f"{counts.tolist()} are not the rows of a sample")
        sums = ExactSum.from_arrays((size, 2), part(arrays, "sums"))
        weights, squares = np.asarray(sums.to_float()).reshape(size, 2).T
        if not (((weights > 0) == (counts > 0)) & (squares >= 0)).all():
            raise StateFormatError("the weights of a sample do not fit its rows")
        seeds = label_hashes(np.arange(size), self.seed)
        strata = []
        for stratum in range(size):
            points = take_array(arrays, f"{stratum}/rows", "float64", 2)
            copies = take_array(arrays, f"{stratum}/copies", "int64")
            strata.append(self._restored(stratum, points, copies, int(counts[stratum]), seeds))
        if len({rows.points.shape[1] for rows in strata}) > 1 or len(arrays) != 3 + 2 * size:
            raise StateFormatError("the parts of a sample of rows do not fit together")
        self.strata, self.counts, self.sums = tuple(strata), counts, sums

    def _restored(
        self, stratum: int, points: Floats, copies: Ints, count: int, seeds: Any
    ) -> PointRows:
        if len(points) != len(copies) or len(points) > self.max_rows or points.shape[1] < 2:
            raise StateFormatError("the columns of a sample of rows do not fit together")
        if np.isnan(points).any() or bool(np.signbit(points[points == 0.0]).any()):
            raise StateFormatError("a number of a sample of rows is not one that we write")
        held = sum(copies.tolist())
        if bool((copies < 1).any()) or held > count:
            raise StateFormatError("rows occur less than once, or more often than in all rows")
        if len(points) < self.max_rows and held < count:
            raise StateFormatError("a sample of rows lacks some")
        if not bool((np.isfinite(points[:, -1]) & (points[:, -1] > 0)).all()):
            raise StateFormatError("a row of a sample has no positive weight")
        codes = np.full(len(points), stratum, np.intp)
        if len(seeds) == 2 and bool((points[:, 0] != stratum).any()):
            raise StateFormatError("a row of a sample is not of its class")
        rows = PointRows(row_hashes(seeds, codes, point_hashes(points)), codes, points, copies)
        for column, again in zip(rows, canonical(rows, self.max_rows), strict=True):
            if not np.array_equal(column, again):
                raise StateFormatError("the rows of a sample are out of order")
        return rows


def _together(one: PointRows, other: PointRows) -> PointRows:
    return PointRows(*(np.concatenate(pair) for pair in zip(one, other, strict=True)))


def _sums(codes: Places, counts: Ints, weight: Floats | None) -> ExactSum:
    """Return the sums of weights and of their squares, (strata, 2)."""
    if weight is None:
        return ExactSum.counts(np.stack([counts, counts], axis=1))
    group = np.concatenate([2 * codes, 2 * codes + 1])
    values = np.concatenate([weight, squares_of(weight)])
    sums = ExactSum.grouped(group, 2 * len(counts), values)
    return ExactSum((len(counts), 2), sums.digits, sums.exponent)


def rows_of(schema: Schema) -> tuple[Schema, Bring]:
    """Return how models are read and become rows: what all have alike, then each one's own.

    Metrics that read the same numbers share a sample, whatever each of them refuses; but not one
    that keeps logits with one that makes probabilities of them.
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
