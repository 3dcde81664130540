"""Statistics that panes keep of rows without a label."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.columns.labels import Labels
from streammetrics.core.columns.numbers import Numbers
from streammetrics.core.columns.schema import Schema
from streammetrics.core.constraints import Bins, NanPolicy
from streammetrics.core.counting import added_at
from streammetrics.core.errors import StateFormatError, undefined_expected
from streammetrics.core.fields.histograms import Histograms
from streammetrics.core.fields.keyed import (
    LabelledEntries,
    LabelTable,
    Weights,
    coded_labels,
    used_labels,
)
from streammetrics.core.fields.sums import Sum
from streammetrics.core.fields.weights import Weight, WeightedCount
from streammetrics.core.results.values import Interval
from streammetrics.core.statistic import Statistic
from streammetrics.metrics.scores.base import CumulativeCounts, staircases
from streammetrics.statistics.probabilities import ProbabilityLossSum

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from streammetrics.core.metric import Metric
    from streammetrics.core.types import Array, ClassLabel

    Rows = Sequence[tuple[ClassLabel, ClassLabel, int]]  # label, prediction, number of rows
    Limits = tuple[float, float]
    from streammetrics.core.arithmetic.histogram import SortedHistogram
    from streammetrics.core.columns.conversion import Column
    from streammetrics.core.types import Bools, Floats, Ints


def with_rows(known: Metric, name: str, rows: Rows) -> Limits:
    """Return the certain bounds of a metric after adding rows."""
    some = [row for row in rows if row[2]]
    labels, predicted, counts = map(list, zip(*some, strict=True)) if some else ([], [], [])
    return with_columns(known, name, np.array(labels), np.array(predicted), np.array(counts))


def with_columns(
    known: Metric, name: str, labels: Array, predicted: Array, counts: Array
) -> Limits:
    """Return the certain bounds after adding rows, each `counts` times, given in columns."""
    twin = known.copy()
    if len(counts):
        twin.update(y_true=labels, sample_weight=counts, **{name: predicted})
    with undefined_expected():
        low, high = twin.bounds()
    return float(low), float(high)


def extremes(values: Iterable[Limits]) -> Interval | None:
    """Return the smallest and largest value, ``None`` if all are undefined."""
    defined = [pair for pair in values if not any(map(math.isnan, pair))]
    if not defined:
        return None
    return Interval(min(low for low, _ in defined), max(high for _, high in defined))


READ_CELLS = 1 << 20  # cells for rows that still wait, and for rows that left as far as they fit

UNWEIGHTED = "metrics of rows without a label"  # no rule supports weights


class Remembered(Statistic):
    """A statistic of one column of unlabelled rows; `of` is the user's name of the column."""

    of: str
    nan_policy: NanPolicy = "raise"

    @property
    def schema(self) -> Schema:
        """A column of numbers."""
        return Schema((Numbers(self.of, ordered=True),), self.nan_policy, UNWEIGHTED)

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """The number of rows in the statistic."""

    def check_rows(self, n: int) -> None:
        """Raise if a deserialized state does not have n rows."""
        if self.n_rows != n:
            raise StateFormatError(f"{self.n_rows} rows of {self.of} are remembered, and not {n}")

    def widened(self) -> Self:
        """Return the same rows with room to distinguish more of the rows merged into them."""
        return self


class ScoreCells(Remembered):
    """A sorted histogram of scores or of predicted numbers."""

    max_bins: Bins

    columns = Histograms(lambda of: of.max_bins, 1, "columns of predictions", inline=True)

    def update(self, values: Floats, *, weight: None) -> None:
        """Count the values of the rows."""
        (cells,) = type(self).columns.forks(self.columns, 1, self)
        if values.size:
            cells.add(values)
        self.columns = (cells,)

    @property
    def n_rows(self) -> int:
        """The number of rows in the cells."""
        return int(sum(sum(cells.totals()) for cells in self.columns))

    def widened(self) -> Self:
        """Return the same rows in a histogram with room for `READ_CELLS` cells."""
        twin = type(self)(
            of=self.of, nan_policy=self.nan_policy, max_bins=max(self.max_bins, READ_CELLS)
        )
        twin.columns = tuple([cells.narrowed(twin.max_bins) for cells in self.columns])
        return twin

    @property
    def histogram(self) -> SortedHistogram:
        """The histogram, which has no cells if there are no rows."""
        return type(self).columns.forks(self.columns, 1, self)[0]


def ends_of(histogram: SortedHistogram) -> tuple[Floats, Floats, Ints]:
    """Return the lower and upper end of each cell, and its number of rows (of code 0)."""
    empty = np.empty(0), np.empty(0), np.empty(0, np.int64)
    parts = [(block.low, block.high, block.counts[0]) for block in histogram.cells()]
    low, high, counts = map(np.concatenate, zip(empty, *parts, strict=True))
    return low, high, counts.astype(np.int64)


class Called(Remembered):
    """The number of rows below a threshold, and at or above it."""

    threshold: float

    rows = Weight((2,), inline=True)

    def update(self, values: Floats, *, weight: None) -> None:
        """Count the rows on each side."""
        positive = int(np.count_nonzero(values >= self.threshold))
        self.rows += WeightedCount.of_counts(
            np.array([values.size - positive, positive]), values.size
        )

    @property
    def n_rows(self) -> int:
        """The number of rows on both sides."""
        return int(self.rows.counts.sum())


class Terms(Remembered):
    """The exact sums of each row's smaller and larger loss over its two possible labels."""

    loss: Literal["log", "brier"]

    least = Sum()
    most = Sum()
    rows = Weight()

    def update(self, values: Floats, *, weight: None) -> None:
        """Add both losses of the rows."""
        lost = ProbabilityLossSum(loss=self.loss).losses
        codes = np.zeros(values.size, np.uint8)
        zero, one = lost(codes, values), lost(codes + np.uint8(1), values)
        self.least += ExactSum.of(np.minimum(zero, one))
        self.most += ExactSum.of(np.maximum(zero, one))
        self.rows += WeightedCount.of_rows(values.size, None)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.rows.counts)

    def check_fields(self) -> None:
        """Check that the sums are ordered, and zero without rows."""
        least, most = self.least.fraction(), self.most.fraction()
        if not 0 <= least <= most or (most and not self.rows):
            raise StateFormatError("the least and the most that rows lose are out of order")


class Classes(Remembered):
    """The number of rows predicted to be of each class."""

    classes = LabelTable(rows=Weights(whole=True), inline=True)

    @property
    def schema(self) -> Schema:
        """A column of labels."""
        labels = Labels(self.of, fact=f"labels of {self.of}")
        return Schema((labels,), self.nan_policy, UNWEIGHTED)

    def update(self, labels: Column, *, weight: object) -> None:
        """Count the rows of each class."""
        places, every = coded_labels(labels)
        used, codes = used_labels(every, places)
        counts = WeightedCount.at_places(codes, len(used), None)
        more = LabelledEntries(used, {"rows": counts})
        self.classes = type(self).classes.plus(self.classes, more)

    @property
    def n_rows(self) -> int:
        """The number of rows of all classes."""
        return int(self.classes.columns["rows"].counts.sum())

    @property
    def counts(self) -> dict[ClassLabel, int]:
        """The number of rows of each class that occurs."""
        table = self.classes
        return dict(zip(table.labels.tolist(), table.columns["rows"].counts.tolist(), strict=True))


class ScoreGroups(NamedTuple):
    """Rows grouped by score, from the highest down."""

    positives: Ints
    negatives: Ints
    unknown: Ints
    single: Bools  # whether all rows of a group have one score

    @property
    def amounts(self) -> tuple[Ints, Ints, Ints]:
        """The number of rows of each kind in each group."""
        return self.positives, self.negatives, self.unknown

    @property
    def totals(self) -> tuple[int, int, int]:
        """The total number of rows of each kind."""
        return int(self.positives.sum()), int(self.negatives.sum()), int(self.unknown.sum())

    @property
    def exchanged(self) -> ScoreGroups:
        """The same rows with positives and negatives exchanged."""
        return ScoreGroups(self.negatives, self.positives, self.unknown, self.single)


def with_unlabelled(
    known: Metric, held: ScoreCells, code: int = 0
) -> tuple[CumulativeCounts, SortedHistogram] | None:
    """Return all scores, with unlabelled rows in the class `code`, and the labelled scores.

    ``None`` if there are more than two classes, weighted rows, or integers that float64 cannot
    represent.
    """
    scores: Any = known._read()[0]
    (first, *more), classes = staircases(scores), scores.classes()
    if more or not first.counted or not classes[0].plain:
        return None
    room = max(held.max_bins, classes[0].max_cells)
    seen = classes[0].narrowed(room)
    every = held.histogram.pooled(room, code)
    every.merge(seen)
    stairs = CumulativeCounts(every, True, False)
    return (stairs, seen) if stairs.counted else None


def groups_of(stairs: CumulativeCounts, seen: SortedHistogram) -> ScoreGroups:
    """Return the score groups; unlabelled rows are the negatives of `stairs` but not `seen`."""
    low, single, p, n = _cells(stairs)
    first, _, negatives = ends_of(seen)
    # Each cell lies within the last wider cell whose lower edge is not above its own.
    places = np.searchsorted(low, first, side="right") - 1
    known = added_at(places, negatives, len(low))
    return ScoreGroups(p[::-1], known[::-1], (n - known)[::-1], single[::-1])


def unknown_of(stairs: CumulativeCounts, seen: SortedHistogram) -> Ints:
    """Return the number of unlabelled rows in each cell, from the lowest scores up."""
    return groups_of(stairs, seen).unknown[::-1]


def _cells(stairs: CumulativeCounts) -> tuple[Array, ...]:
    empty = np.empty(0), np.empty(0, np.bool_), np.empty(0, np.int64), np.empty(0, np.int64)
    steps = [(s.low, s.single, s.p, s.n) for s in stairs.steps()]
    low, single, p, n = map(np.concatenate, zip(empty, *steps, strict=True))
    return low, single, p.astype(np.int64), n.astype(np.int64)
