"""Sorted histograms of scores by class, and of values."""

from __future__ import annotations

import math
from abc import abstractmethod
from bisect import bisect_left, bisect_right
from fractions import Fraction
from itertools import permutations
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.arithmetic.histogram import SortedHistogram
from streammetrics.core.columns.batch import WEIGHT
from streammetrics.core.columns.labels import KINDS, UNKNOWN, Indicators
from streammetrics.core.columns.long import LongNumbers, nearest
from streammetrics.core.columns.schema import NEGATIVE, Schema
from streammetrics.core.columns.scores import ScoredLabels, Scores
from streammetrics.core.constraints import Bins, NanPolicy
from streammetrics.core.counting import group_order
from streammetrics.core.errors import IncompatibleMetricsError, StateFormatError
from streammetrics.core.fields.histograms import GroupedHistograms, Weighed, WeighedHistograms
from streammetrics.core.fields.sums import Extreme
from streammetrics.core.fields.weights import have_weights, split_squares
from streammetrics.core.state.arrays import take_array
from streammetrics.core.statistic import Statistic
from streammetrics.core.types import ClassLabel
from streammetrics.statistics.sums import values_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Self

    from numpy.typing import NDArray

    from streammetrics.core.arithmetic.cells import Mass
    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.schema import Facts
    from streammetrics.core.configured import Configured
    from streammetrics.core.counting import GroupCodes
    from streammetrics.core.fields.histograms import Added
    from streammetrics.core.types import Array, Arrays, Columns, Floats, Ints, Places, ReadColumn


_FIRST = 1 << 12  # rows checked first; they usually contain both classes


class ScoredStatistic(Statistic):
    """A statistic of labels and scores, with one score a row or one for each class."""

    pos_label: ClassLabel | None = None
    labels: tuple[ClassLabel, ...] | None = None
    nan_policy: NanPolicy = "raise"
    ignore_index: int | None = None

    matrix: ClassVar[bool] = False  # whether scores must be (n, K)

    @property
    @abstractmethod
    def scores(self) -> Scores:
        """The scores that the statistic reads."""

    def plain_binary(self, batch: Batch) -> tuple[Array, Floats] | None:
        """Return labels and scores if both are plain arrays that need no conversion, else `None`.

        Labels may still be other than 0 and 1, and scores may be nan.
        """
        if type(self).schema is not ScoredStatistic.schema:  # it reads other columns
            return None
        truth, score = batch.plain("y_true", "biu"), batch.plain("y_score", "f")
        if truth is None or score is None or score.dtype != np.float64 or batch.has(WEIGHT):
            return None
        if self.labels is not None or self.ignore_index is not None:
            return None
        return (truth, score) if self.pos_label in {None, 1} else None

    @staticmethod
    def facts_of(truth: Array) -> Facts:
        """Return the facts of plain columns with labels 0 and 1."""
        facts: Facts = {"labels": KINDS[truth.dtype.kind], "columns of scores": 0}
        if not truth[:_FIRST].all() or not truth.all():
            facts["negative label"] = 0
        return facts

    @property
    def schema(self) -> Schema:
        """A label and its score, or a score for each class."""
        scored = ScoredLabels(
            self.scores,
            self.pos_label,
            self.labels,
            matrix=self.matrix,
            ignore_index=self.ignore_index,
        )
        return Schema((scored,), self.nan_policy)


MAX_BINS = 1 << 20


class CountedScores(WeighedHistograms):
    """Histograms of scores by label, and whether every weight in them is a whole number.

    `whole` can be lost: scaling weights that are not all whole does not make it True again, and
    after a subtraction it cannot always be determined for the remaining weights.
    """

    def __init__(self) -> None:
        super().__init__(lambda of: of.max_bins, 2, "columns of scores", inline=True)

    def merged(self, mine: Weighed, others: Sequence[Weighed]) -> Weighed:
        """Return the rows of all."""
        whole = mine.whole and all(other.whole for other in others)
        return super().merged(mine, others)._replace(whole=whole)

    def arrays(self, value: Weighed) -> dict[str, Array]:
        """Return the number of histograms, whether weights are whole, and the histograms."""
        form = np.array([len(value.columns), value.whole], np.int64)
        return self.columns.headed("form", form, value.columns) | self.of_squares(value)

    def taken(self, arrays: Arrays, of: Configured) -> Weighed:
        """Return the histograms after validating them."""
        own, squares = split_squares(arrays)
        form, columns = self.columns.taken_headed("form", 2, own, of)
        if form[1] not in {0, 1} or not (columns or form[1]):
            raise StateFormatError(f"{form} is not the form of score histograms")
        return self.with_squares(columns, squares, of)._replace(whole=bool(form[1]))

    def groups_arrays(self, value: Any, size: int) -> dict[str, Array]:
        """Return whether weights are whole, and the arrays of all histograms."""
        plain = isinstance(value, GroupedHistograms)
        whole = [True] * size if plain else [each.whole for each in value]
        return {"whole": np.array(whole, np.bool_), **super().groups_arrays(value, size)}

    def groups_taken(self, arrays: Arrays, size: int, of: Configured) -> object:
        """Return the histograms of every group."""
        own = {key: array for key, array in arrays.items() if key != "whole"}
        whole = take_array(arrays, "whole", "bool")
        weighed = super().groups_taken(own, size, of)
        if whole.shape == (size,) and whole.all() and isinstance(weighed, GroupedHistograms):
            return weighed
        every = [self.at(weighed, group) for group in range(size)]
        seen = np.array([bool(each.columns) for each in every], np.bool_)
        if whole.shape != (size,) or not (whole | seen).all():
            raise StateFormatError("score histograms do not say whether weights are whole")
        pairs = zip(every, whole.tolist(), strict=True)
        return tuple([each._replace(whole=known) for each, known in pairs])

    def scaled(self, value: Weighed, weight: float) -> Weighed:
        """Return the same rows with weights multiplied by `weight`."""
        whole = value.whole and (weight.is_integer() or not value.columns)
        return super().scaled(value, weight)._replace(whole=whole)

    def minus(self, value: Weighed, other: Weighed) -> Weighed:
        """Return the difference of the rows."""
        if not other.columns:
            return value
        left = super().minus(value, other)
        if not left.columns or value.whole or other.whole:
            return left._replace(whole=value.whole or not left.columns)
        if all(_are_whole(histogram) for histogram in left.columns):
            raise IncompatibleMetricsError(
                "the weights that are left add up to whole numbers, and it is unknown whether "
                "each is one: merge the states to keep instead"
            )
        return left._replace(whole=False)


def _are_whole(histogram: SortedHistogram) -> bool:
    """Whether the weight of each cell is whole; weights of 2**53 and more always are."""
    blocks = (block.counts for block in histogram.cells())
    return all(bool((np.rint(counts) == counts).all()) for counts in blocks)


def _by_histogram(codes: Array, scores: ReadColumn, weight: Floats | None) -> list[Added]:
    """Return the rows of each histogram: one for scores (n,), one a class for scores (n, K)."""
    if scores.ndim == 1:
        long = isinstance(scores, LongNumbers)
        heads, tails = (scores.head, scores.tail) if long else (scores, None)
        return [(heads, codes.view(np.uint8), weight, tails)]
    return [
        (np.ascontiguousarray(scores[:, k]), (codes == k).view(np.uint8), weight, None)
        for k in range(scores.shape[1])
    ]


class ScoreHistogram(ScoredStatistic):
    """Weight of both classes at each score, or in each cell of scores beyond `max_bins`.

    For scores (n,) there is one histogram, of the positive class's score. For scores (n, K) there
    are K, each class against the rest. See `SortedHistogram` for memory and cost of each. With
    `from_logits`, scores (n, K) are stored as probabilities, and scores (n,) as logits, whose order
    is the same.
    """

    in_kernels = takes_counts = True

    max_bins: Bins = MAX_BINS
    from_logits: bool = False

    counted = CountedScores()

    @property
    def scores(self) -> Scores:
        """Any scores: only their order is used."""
        # Integer logits would have to be rounded by the softmax.
        return Scores(wide=True, from_logits=self.from_logits, long=not self.from_logits)

    def update(self, *columns: ReadColumn, weight: Floats | None) -> None:
        """Count rows: codes (n,), and scores (n,) or (n, K)."""
        codes, scores = columns
        self.add(_by_histogram(codes, scores, weight), weight)

    def by_sorted_group(
        self, n: int, pieces: Iterable[tuple[Places, ReadColumn, Array | None]]
    ) -> dict[str, object] | None:
        """Return histograms of sorted groups of unweighted rows with scores (n,), or `None`."""
        found = GroupedHistograms.of_rows(self.max_bins, n, pieces)
        return None if found is None else {"counted": found}

    def take_whole(self, batch: Batch) -> tuple[Self, Facts] | None:
        """Return a copy with all rows of the batch added and their facts; `None` if not plain."""
        if type(self).update is not ScoreHistogram.update:
            return None
        columns = self.plain_binary(batch)
        if columns is None:
            return None
        truth, score = columns
        (column,) = type(self).counted.columns.forks(self.histograms, 1, self)
        if self.counted.squares is not None or not column.add_unchecked(score, truth):
            return None
        twin = self.fork()
        twin.counted = self.counted._replace(columns=(column,))
        return twin, self.facts_of(truth)

    def add(self, rows: Sequence[Added], weight: Floats | None) -> None:
        """Add rows to each histogram; `weight` has the weights of the batch."""
        whole = self.counted.whole
        if whole and have_weights(weight):
            whole = bool((np.rint(weight) == weight).all())
        added = type(self).counted.added(self.counted, rows, self)
        self.counted = added._replace(whole=whole)

    @property
    def absent_facts(self) -> frozenset[str]:
        """The negative label, if only positive rows are left."""
        return frozenset([] if any(each.totals()[0] for each in self.histograms) else [NEGATIVE])

    @property
    def weighed(self) -> Weighed:
        """The histograms, and those of squared weights."""
        return self.counted

    @property
    def histograms(self) -> tuple[SortedHistogram, ...]:
        """One histogram for each column of scores; empty before the first row."""
        return self.counted.columns

    @property
    def whole(self) -> bool:
        """Whether every weight is a whole number, so that a row may stand for several rows."""
        return self.counted.whole

    @property
    def keeps_logits(self) -> bool:
        """Whether scores are stored as logits; scores (n, K) are stored as probabilities."""
        return self.from_logits and len(self.classes()) == 1

    @property
    def amount(self) -> float:
        """The total weight of all rows."""
        return sum(self.classes()[0].totals())

    @property
    def exact(self) -> bool:
        """Whether every cell holds a single distinct score."""
        return all(histogram.exact for histogram in self.histograms)

    def classes(self) -> tuple[SortedHistogram, ...]:
        """Return the histogram of each class; a single one for scores (n,) or without rows."""
        return self.histograms or (SortedHistogram(self.max_bins, 2),)


class TopLabelHistogram(ScoreHistogram):
    """Histogram of the largest score of each row (n, K), by whether it is of the true class."""

    takes_counts = True
    matrix = True

    @property
    def keeps_logits(self) -> bool:
        """Return False: scores (n, K) are stored as probabilities."""
        return False

    def update(self, *columns: ReadColumn, weight: Floats | None) -> None:
        """Count rows at their largest score."""
        codes, scores = columns
        best = scores.argmax(axis=1)
        hit = (best == codes).view(np.uint8)
        super().update(hit, scores[np.arange(best.size), best], weight=weight)


def _indicators(
    labels: tuple[ClassLabel, ...] | None,
    *,
    probabilities: bool = False,
    ignore_index: int | None = None,
) -> Indicators:
    return Indicators("y_score", True, labels, len(labels or ()), probabilities, ignore_index)


def _joined(scores: Floats, marks: NDArray[np.uint8], weight: Floats | None) -> Added:
    """Return every score (n, K) with its mark and the weight of its row, flattened."""
    each = None if weight is None else np.repeat(weight, scores.shape[1])
    return np.ascontiguousarray(scores).reshape(-1), marks.reshape(-1), each, None


class JoinedHistogram(ScoreHistogram):
    """One histogram of all scores (n, K); each is positive if its class is the row's true class.

    Scores are stored as probabilities, including logits (n,).
    """

    takes_counts = True

    @property
    def scores(self) -> Scores:
        """Any scores; logits are converted to probabilities."""
        if self.from_logits:
            return Scores(wide=True, from_logits=True, use="probability")
        return Scores(wide=True, long=True)

    @property
    def keeps_logits(self) -> bool:
        """Return False: scores are stored as probabilities."""
        return False

    def update(self, *columns: ReadColumn, weight: Floats | None) -> None:
        """Count every score of the rows."""
        codes, scores = columns
        if scores.ndim == 1:
            super().update(codes, scores, weight=weight)
            return
        marks = (codes[:, None] == np.arange(scores.shape[1])).view(np.uint8)
        self.add([_joined(scores, marks, weight)], weight)


class LabelHistograms(ScoreHistogram):
    """L histograms of the scores of each label, by whether the row has the label.

    With `joined` there is one histogram of the scores of all labels. Logits are stored as logits.
    """

    takes_counts = True

    joined: bool = False

    @property
    def schema(self) -> Schema:
        """Indicators and scores of each label."""
        return Schema((_indicators(self.labels, ignore_index=self.ignore_index),), self.nan_policy)

    @property
    def keeps_logits(self) -> bool:
        """Whether scores are stored as logits."""
        return self.from_logits

    def update(self, *columns: ReadColumn, weight: Floats | None) -> None:
        """Count the rows at their scores."""
        truth, scores = columns
        if self.joined:
            rows = [self._known(*_joined(scores, truth, weight)[:3])]
        else:
            sides = zip(scores.T, truth.T, strict=True)
            rows = [self._known(score, true, weight) for score, true in sides]
        self.add(rows, weight)

    def _known(self, score: Floats, true: ReadColumn, weight: Floats | None) -> Added:
        """Return the rows in which the label is known."""
        if self.ignore_index is not None:
            known = true != UNKNOWN
            score, true = score[known], true[known]
            weight = None if weight is None else weight[known]
        return np.ascontiguousarray(score), np.ascontiguousarray(true), weight, None


class LabelProbabilities(Statistic):
    """Stores nothing: its schema checks that every score of a label is in [0, 1]."""

    labels: tuple[ClassLabel, ...] | None = None
    nan_policy: NanPolicy = "raise"
    ignore_index: int | None = None

    @property
    def schema(self) -> Schema:
        """Indicators and probabilities of each label."""
        indicators = _indicators(self.labels, probabilities=True, ignore_index=self.ignore_index)
        return Schema((indicators,), self.nan_policy)

    def update(self, *columns: object, weight: Floats | None) -> None:
        """Do nothing: the schema has checked the rows."""


class VersusHistogram(ScoreHistogram):
    """Weight at each score of a class, of its own rows and of those of one other class.

    For scores (n, K) there are K (K - 1) histograms, one for each ordered pair of classes in the
    order (0, 1), (0, 2), ... For scores (n,) one histogram suffices for the two classes.
    """

    takes_counts = True

    def update(self, *columns: ReadColumn, weight: Floats | None) -> None:
        """Count the rows of each class at that class's score, against each other class."""
        codes, scores = columns
        if scores.ndim == 1 or scores.shape[1] == 1:
            super().update(*columns, weight=weight)
            return
        k = scores.shape[1]
        order, starts = group_order(codes, k)
        rows = np.split(order, starts[1:-1])
        every = []
        for own, other in permutations(range(k), 2):
            both = np.concatenate([rows[own], rows[other]])
            marks = np.zeros(both.size, np.uint8)
            marks[: rows[own].size] = 1
            each = None if weight is None else weight[both]
            every.append((scores[both, own], marks, each, None))
        self.add(every, weight)

    @property
    def amount(self) -> float:
        """The total weight of all rows; each row is in 2 (K - 1) of the histograms."""
        every = sum(sum(histogram.totals()) for histogram in self.classes())
        return every / max(1, 2 * (self.width - 1)) if len(self.histograms) > 1 else every

    @property
    def width(self) -> int:
        """The number of classes: 2 for scores (n,), 0 without rows."""
        count = len(self.histograms)
        return 2 if count == 1 else (1 + int(np.sqrt(1 + 4 * count))) // 2 if count else 0

    def check_fields(self) -> None:
        """Check that there is a histogram for every ordered pair of classes."""
        count = len(self.histograms)
        if count not in {0, 1, self.width * (self.width - 1)}:
            raise StateFormatError(f"{count} histograms are not those of all pairs of classes")


class Extremes(Statistic):
    """The extremes for each output; weights do not matter, as rows of weight 0 are left out.

    Of values, which may be infinite, of targets, or of errors ``y_true - y_pred``. -0.0 counts as
    0.0.
    Rounding keeps the order, so the extremes of rounded numbers are the rounded extremes.
    """

    takes_counts = True

    of: Literal["values", "targets", "errors"]
    nan_policy: Literal["raise", "omit"] = "raise"

    low = Extreme()
    high = Extreme(largest=True)

    @property
    def schema(self) -> Schema:
        """Values, or a target and a prediction."""
        return values_schema(self.of, self.nan_policy, long=True)

    def lift(
        self, columns: Columns, weight: Array | None, group: GroupCodes | None = None
    ) -> dict[str, object]:
        """Return the extremes of rows; of groups the numbers, whose extremes the fields take."""
        values = self._values(*columns)
        if group is not None:
            values = values.reshape(group.codes.size, -1) + 0.0
            return {"low": values, "high": values}
        if values.ndim == 1 or values.shape[1] == 1:  # a reduction of one column is vectorised
            flat = values.reshape(-1)
            low, high = np.array([flat.min()]), np.array([flat.max()])
        else:
            low, high = values.min(axis=0), values.max(axis=0)
        return {"low": low + 0.0, "high": high + 0.0}

    def _values(self, *columns: Floats) -> Floats:
        return columns[0] - columns[1] if self.of == "errors" else nearest(columns[0])

    def check_fields(self) -> None:
        """Check that nothing is smaller than the smallest, and that targets are finite."""
        if self.low.shape != self.high.shape or not (self.low <= self.high).all():
            raise StateFormatError("the extremes are not those of any rows")
        if self.of == "targets" and np.isinf([self.low, self.high]).any():
            raise StateFormatError("the extremes of the targets are not finite")


def only(extremes: Floats) -> float:
    """Return the extreme of one column, ``nan`` without rows; of all groups an array of them."""
    if extremes.ndim > 1:
        return extremes[:, 0]  # type: ignore[return-value]  # of groups
    return float(extremes[0]) if extremes.size else math.nan


QuantileMethod: TypeAlias = Literal["linear", "averaged_inverted_cdf"]

_NONE = Fraction(0)
_LARGEST = float(np.finfo(np.float64).max)


class ValueHistogram(Statistic):
    """One `SortedHistogram` of at most `max_bins` cells for each output.

    Of values, which may be infinite, of targets, or of absolute errors ``|y_true - y_pred|``.
    """

    in_kernels = takes_counts = True

    of: Literal["values", "targets", "errors"]
    max_bins: Bins = 1 << 20
    nan_policy: Literal["raise", "omit"] = "raise"

    weighed = WeighedHistograms(lambda of: of.max_bins, 1, "outputs", inline=True)

    @property
    def schema(self) -> Schema:
        """Values, or a target and a prediction."""
        return values_schema(self.of, self.nan_policy)

    def update(self, *columns: Floats, weight: Floats | None) -> None:
        """Count the values of the rows."""
        values = self._values(columns).reshape(len(columns[0]), -1)
        rows = [(np.ascontiguousarray(column), None, weight, None) for column in values.T]
        self.weighed = type(self).weighed.added(self.weighed, rows, self)

    def by_sorted_group(
        self, n: int, pieces: Iterable[tuple[Places, ReadColumn, Array | None]]
    ) -> dict[str, object] | None:
        """Return the histograms of rows of weight one that have one output."""
        found = GroupedHistograms.of_rows(
            self.max_bins,
            n,
            ((starts, (None, self._values(columns)), w) for starts, columns, w in pieces),
        )
        return None if found is None else {"weighed": found}

    def _values(self, columns: Sequence[Floats]) -> Floats:
        """Return the values, (n,) where there is one output."""
        values = np.abs(columns[0] - columns[1]) if self.of == "errors" else nearest(columns[0])
        return values[:, 0] if values.shape[1:] == (1,) else values

    @property
    def histograms(self) -> tuple[SortedHistogram, ...]:
        """One for each output; none without rows."""
        return self.weighed.columns

    def quantiles(self, q: float, method: QuantileMethod) -> list[EnclosedValue]:
        """Return the quantile of each output, none without rows."""
        return [quantile(histogram, q, method) for histogram in self.histograms]


# Why a quantile is undefined.
LIGHT = "the weights add up to less than 1 (method='averaged_inverted_cdf' takes them)"


class EnclosedValue(NamedTuple):
    """A value and what it certainly lies between; all three are equal where it is exact."""

    value: float
    low: float
    high: float


class _Rank(NamedTuple):
    """A mass counted from below; `left` is for what ends there, otherwise for what begins."""

    mass: Fraction
    left: bool = False


def quantile(histogram: SortedHistogram, q: float, method: QuantileMethod) -> EnclosedValue:
    """Return the quantile of level `q`, read as the decimal it prints as, of a total mass n.

    ``"linear"``: order statistics are counted from 0 and a weight is that many equal rows. With
    ``h = q (n - 1)``, interpolate between those of the ranks ``floor(h)`` and ``floor(h) + 1``;
    undefined for n < 1. This is NumPy's default, and ``wtd.quantile`` of Harrell's Hmisc.
    ``"averaged_inverted_cdf"``: the value at which the cumulative share passes `q`, or the mean of
    the two neighbours where it is met exactly. It does not depend on the scale of the weights.
    """
    level = Fraction(str(q))
    total = _mass(histogram)
    if method == "linear":
        if total < 1:
            return EnclosedValue(math.nan, math.nan, math.nan)
        h = level * (total - 1)
        first = Fraction(math.floor(h))
        ranks = (_Rank(first + 1, left=True), _Rank(min(first + 2, total), left=True))
        share = h - first
    else:
        ranks, share = (_Rank(level * total, left=True), _Rank(level * total)), Fraction(1, 2)
    (low_a, high_a), (low_b, high_b) = _located(histogram, ranks)
    low, high = _between(low_a, low_b, share), _between(high_a, high_b, share)
    if not low < high:
        return EnclosedValue(low, low, high)
    # The outermost cells reach to infinity: their middle is taken of what is finite.
    middle = _between(max(low, -_LARGEST), min(high, _LARGEST), Fraction(1, 2))
    return EnclosedValue(middle, low, high)


def ranked(histogram: SortedHistogram, rank: int) -> tuple[float, float]:
    """Return the edges of the cell that holds the row of a rank, counted from 1, of rows of 1."""
    (edges,) = _located(histogram, [_Rank(Fraction(rank), left=True)])
    return edges


def cells_at(histogram: SortedHistogram, levels: Sequence[Fraction]) -> list[tuple[float, float]]:
    """Return the edges of the cells in which each share of the total mass is reached, ascending."""
    total = _mass(histogram)
    return _located(histogram, [_Rank(level * total, left=True) for level in levels])


def deviation(
    histogram: SortedHistogram,
    around: tuple[Fraction | float, Fraction | float],
    up: Fraction,
    down: Fraction,
) -> tuple[Fraction, Fraction, Fraction]:
    """Return the sum of up (y - c) above c and down (c - y) below, and bounds: low, value, high.

    `around` is what c lies between: one number, or where the sum is the least that there is. Exact,
    and all three the same, where cells hold single values and c is one number. Values are finite,
    so that the outermost cells end at the largest floats.
    """
    first, last = (_finite(side) for side in around)
    middle = (first + last) / 2
    exact = histogram.exact and first == last
    least = value = most = Fraction(0)
    for block, mass in zip(histogram.cells(), histogram.masses(), strict=True):
        low, high = (np.clip(side, -_LARGEST, _LARGEST) for side in (block.low, block.high))
        least += _apart(low, mass, last, up, _NONE) + _apart(high, mass, first, _NONE, down)
        if not exact:
            centre = np.where(block.single, low, low / 2 + high / 2)
            value += _apart(centre, mass, middle, up, down)
            most += _apart(_farther(low, high, middle, up, down), mass, middle, up, down)
    if exact:
        return least, least, least
    return least, min(max(value, least), most), most


def _apart(values: Floats, mass: Mass, c: Fraction, up: Fraction, down: Fraction) -> Fraction:
    """Return the sum of up (y - c) above c and down (c - y) below, of values that weigh this."""
    near = float(c)
    above = values >= near if near > c else values > near
    total = Fraction(0)
    for side, slope in ((above, up), (~above, -down)):
        if slope:
            part = mass[side]
            total += slope * (_product(values[side], part) - c * _exact(part))
    return total


def _farther(low: Floats, high: Floats, c: Fraction, up: Fraction, down: Fraction) -> Floats:
    """Return the end of each cell that costs more: where c is inside, the costs are compared."""
    far = np.where(low >= float(c), high, low)
    for cell in np.flatnonzero((low <= float(c)) & (float(c) <= high)):
        above, below = (Fraction(high[cell]) - c) * up, (c - Fraction(low[cell])) * down
        far[cell] = high[cell] if above > below else low[cell]
    return far


def _product(values: Floats, mass: Mass) -> Fraction:
    """Return the sum of values times what their cells weigh, which has one class."""
    if not isinstance(mass, ExactSum):
        return ExactSum.of(values, mass[:, 0].astype(np.float64)).fraction()
    digits = mass.digits.astype(np.float64)
    sums = (ExactSum.of(values, np.ascontiguousarray(digit)).fraction() for digit in digits.T)
    total = sum((each * 2 ** (32 * place) for place, each in enumerate(sums)), Fraction(0))
    return total * Fraction(2) ** mass.exponent


def _finite(value: Fraction | float) -> Fraction:
    return Fraction(value if isinstance(value, Fraction) else max(-_LARGEST, min(value, _LARGEST)))


def _between(a: float, b: float, share: Fraction) -> float:
    """Return a (1 - share) + b share, rounded once."""
    if a == b or share == 0:
        return a
    if math.isinf(a) or math.isinf(b):
        return a + b
    return float(Fraction(a) * (1 - share) + Fraction(b) * share)


def _mass(histogram: SortedHistogram) -> Fraction:
    return sum(map(_exact, histogram.masses()), Fraction(0))


def _exact(mass: Mass) -> Fraction:
    return mass.sum().fraction() if isinstance(mass, ExactSum) else Fraction(int(mass.sum()))


def _located(histogram: SortedHistogram, ranks: Sequence[_Rank]) -> list[tuple[float, float]]:
    """Return the edges of the cells that hold the ranks; of the last cell for those beyond."""
    found: list[tuple[float, float]] = []
    passed = Fraction(0)
    edges = (math.nan, math.nan)
    for block, mass in zip(histogram.cells(), histogram.masses(), strict=True):
        total = _exact(mass)
        for rank in ranks[len(found) :]:
            inside = rank.mass - passed
            if inside > total or (inside == total and not rank.left):
                break
            place = _place(mass, inside, left=rank.left)
            found.append((float(block.low[place]), float(block.high[place])))
        if len(found) == len(ranks):
            return found
        edges = float(block.low[-1]), float(block.high[-1])
        passed += total
    return found + [edges] * (len(ranks) - len(found))


def _place(mass: Mass, inside: Fraction, *, left: bool) -> int:
    """Return the first cell whose cumulative mass exceeds `inside`, or reaches it if `left`.

    The mass (m, classes) of a cell is that of all its classes.
    """
    if not isinstance(mass, ExactSum):
        sums = np.cumsum(mass.sum(axis=1))
        if left:
            return int(np.searchsorted(sums, math.ceil(inside), "left"))
        return int(np.searchsorted(sums, math.floor(inside), "right"))
    # Digits are added up without carries: they are made integers only where they are compared.
    digits = np.cumsum(mass.digits.reshape(*mass.shape, -1).sum(axis=1), axis=0)
    reached = inside / Fraction(2) ** mass.exponent
    cells = range(len(digits))
    if left:
        return bisect_left(cells, math.ceil(reached), key=lambda cell: _integer(digits[cell]))
    return bisect_right(cells, math.floor(reached), key=lambda cell: _integer(digits[cell]))


def _integer(digits: Ints) -> int:
    """Return the integer of digits, the lowest first, that may be larger than their base."""
    return sum(digit << 32 * place for place, digit in enumerate(digits.tolist()))
