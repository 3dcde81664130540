"""Tests of differences between models, by family of metrics."""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from streammetrics.core.arithmetic.exact import nearest, root
from streammetrics.core.columns.numbers import Numbers
from streammetrics.core.columns.scores import ScoredLabels
from streammetrics.core.confidence import without
from streammetrics.core.errors import StreamMetricsError
from streammetrics.core.floating import own_arithmetic
from streammetrics.inference.areas import (
    GROUPS,
    CurveInfluence,
    class_influences,
    curve_influence,
    influence,
    seeded,
)
from streammetrics.inference.distributions import (
    anytime_difference,
    binomial_cdf,
    normal_quantile,
    normal_tail,
    t_quantile,
    t_tail,
)
from streammetrics.inference.means import error_of_mean, freedom, slopes_of_means
from streammetrics.inference.units import is_whole_area, warn_few
from streammetrics.metrics.classification.multilabel import MultilabelMetric
from streammetrics.metrics.families import NO_MEAN, SEVERAL, Family
from streammetrics.metrics.rowwise import RowMean
from streammetrics.metrics.scores.base import staircases
from streammetrics.metrics.scores.losses import LabelRankingMetric
from streammetrics.metrics.text import TextMean
from streammetrics.statistics.joint import (
    OF_MODELS,
    JointMoments,
    JointTable,
    RowSample,
    labels_of,
    over_models,
    rows_of,
    terms_of,
)
from streammetrics.statistics.points import (
    PointRows,
    canonical,
    label_hashes,
    point_hashes,
    row_hashes,
)
from streammetrics.statistics.sums import FormulaSum, LossSum
from streammetrics.statistics.tables import ThresholdTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from streammetrics.core.columns.schema import Bring, Schema
    from streammetrics.core.metric import Metric
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import Array, Floats, Ints, Numeric, Options
    from streammetrics.inference.units import UnitInfluence
    from streammetrics.metrics.classification.base import ContingencyMetric
    from streammetrics.metrics.scores.base import ClassScoreMetric
    from streammetrics.statistics.tables import LabelCells


K = TypeVar("K")

LEAST = 1e-300  # a p-value that underflows is not 0


class Estimate(NamedTuple):
    """A difference of two values, its limits, its p-value, and the name of the test.

    `df` is the degrees of freedom of the limits, infinite for normal limits.
    """

    difference: float
    low: float
    high: float
    p: float
    test: str
    df: float = math.inf


class Joint(NamedTuple):
    """A joint statistic that a metric needs, its models, and how it is updated."""

    statistic: Statistic
    models: tuple[str, ...]
    of: Schema  # schema of the metric for the rows of one model
    bring: Bring

    def schema(self, models: Sequence[str], own: tuple[str, ...]) -> Schema:
        """Return the schema that reads the rows of all models."""
        return over_models(self.of, models, self.models, self.bring, own)


class Side(NamedTuple):
    """A model, its current metric and value, and its index among the models."""

    model: str
    metric: Any
    value: float
    place: int


class PairedTest(ABC):
    """The test of a family of metrics."""

    @abstractmethod
    def joints(self, models: Sequence[str], pairs: Sequence[tuple[str, str]]) -> list[Joint]:
        """Return the joint statistics that these pairs of models need."""

    def n_rows(self, one: Side) -> int | None:
        """Return the number of rows behind both values; rows left out for one model are for all."""
        return int(one.metric.n_rows)

    def n_units(self, one: Side) -> int:
        """Return the sample size: the number of rows or queries."""
        return int(one.metric.n_rows)

    @abstractmethod
    def estimate(self, one: Side, other: Side, joint: Statistic | None, level: float) -> Estimate:
        """Return the difference between two models."""

    def anytime(self, one: Side, other: Side, joint: Statistic | None, level: float) -> Estimate:
        """Return the difference with limits that hold at all times at once.

        Raises:
            NoConfidenceError: There are none for this metric.
        """
        raise without(
            one.metric, "anytime=True compares shares of the same rows, such as accuracy and recall"
        )


def estimated(
    difference: float, error: float, level: float, test: str, df: float, n: int = 0
) -> Estimate:
    """Return the estimate of a difference from its standard error.

    `df` is inf for a normal test, which has `n` rows; other tests have df + 1 rows or groups.
    """
    normal = math.isinf(df)
    if not error > 0:  # or NaN
        if error == 0 and difference == 0:
            return constant(0.0, 2.0 ** (1 - n if normal else -df), level)._replace(df=df)
        return Estimate(difference, math.nan, math.nan, math.nan, test, df)
    tail = (1 + level) / 2
    reach = error * (normal_quantile(tail) if normal else t_quantile(tail, df))
    t = abs(difference) / error
    p = min(1.0, max(2 * (normal_tail(t) if normal else t_tail(t, df)), LEAST))
    return Estimate(difference, difference - reach, difference + reach, p, test, df)


EQUAL_SIGNS = "equal signs"


def constant(difference: float, chance: float, level: float, test: str = EQUAL_SIGNS) -> Estimate:
    """Return the estimate for differences that are the same in all rows.

    Their variance cannot be estimated. `chance` is that of as many equal signs, which is p unless
    there is no difference; if it is not below 1 - `level`, there are no limits.
    """
    side = difference if chance < 1 - level else math.nan
    return Estimate(difference, side, side, chance if difference else 1.0, test)


NO_EVIDENCE = "no evidence"


def verdict(
    metric: Metric[object], pair: tuple[str, str], difference: float, p: float, chance: float
) -> str:
    """Return which model is better, or which is higher if the metric has no direction."""
    if not p < chance:  # or NaN
        return NO_EVIDENCE
    higher = metric.higher_is_better
    first = difference > 0 if higher is not False else difference < 0
    return f"{pair[0] if first else pair[1]} {'higher' if higher is None else 'better'}"


def widened(estimate: Estimate, one: Side, other: Side) -> Estimate:
    """Widen an estimate so that it holds for all possible exact values, if they are not known.

    The limits move outwards by the possible error of the difference. The p-value becomes that of
    the smallest possible difference.
    """
    if one.metric.exact and other.metric.exact:
        return estimate
    first, second = one.metric.bounds(), other.metric.bounds()
    below = (one.value - first.low) + (second.high - other.value)
    above = (first.high - one.value) + (other.value - second.low)
    difference = estimate.difference
    off = below if difference > 0 else above
    p = estimate.p
    if off >= abs(difference):
        p = 1.0
    elif off > 0 and 0 < p < 1:
        z = -normal_quantile(p / 2) if p > 1e-300 else math.inf
        p = min(1.0, 2 * normal_tail(z * (1 - off / abs(difference)))) if z < math.inf else p
    return estimate._replace(low=estimate.low - below, high=estimate.high + above, p=p)


def clipped(estimate: Estimate, metric: Metric[object]) -> Estimate:
    """Clip the limits of an estimate to the largest possible difference of two values."""
    if metric.value_range is None:
        return estimate
    lowest, highest = metric.value_range
    most = highest - lowest
    return estimate._replace(low=max(estimate.low, -most), high=min(estimate.high, most))


MCNEMAR = "McNemar, exact"
ANYTIME = "betting, at all times"
DELTA = "joint counts"


class Discordant(NamedTuple):
    """Counts of McNemar's test: rows in all, rows only one model has, rows only the other has."""

    rows: int
    only: int
    other: int

    def estimate(self, level: float) -> Estimate:
        """Return the difference: McNemar's exact p-value, and the limits of Bonett and Price."""
        n, only, other = self
        least = min(only, other)
        p = 2 * binomial_cdf(least, only + other, 0.5) if only + other else 1.0
        p = min(1.0, max(p, LEAST))
        a, b = (only + 1) / (n + 2), (other + 1) / (n + 2)
        spread = normal_quantile((1 + level) / 2) * math.sqrt((a + b - (a - b) ** 2) / (n + 2))
        difference = (only - other) / n
        # The limits surround a difference that is shrunk towards 0; extend them to include this
        # one.
        low, high = min(a - b - spread, difference), max(a - b + spread, difference)
        return Estimate(difference, max(low, -1.0), min(high, 1.0), p, MCNEMAR)

    def anytime(self, level: float) -> Estimate:
        """Return the difference with limits and a p-value that hold at all times at once."""
        n, only, other = self
        low, high, p = anytime_difference(only, other, n, 1 - level)
        return Estimate((only - other) / n, low, high, max(p, LEAST), ANYTIME)


class TableFamily(PairedTest):
    """Accuracy, F1 and all other metrics of a table of true and predicted labels."""

    def __init__(self, metric: ContingencyMetric) -> None:
        self.metric = metric

    def joints(self, models: Sequence[str], pairs: Sequence[tuple[str, str]]) -> list[Joint]:
        """Return a table for each pair."""
        (table,) = self.metric.statistics()
        bring = labels_of(table)  # type: ignore[arg-type]  # by the metric's `statistics`
        return [Joint(JointTable(), pair, table.schema, bring) for pair in pairs]

    def anytime(self, one: Side, other: Side, joint: Statistic | None, level: float) -> Estimate:
        """Return the difference of shares of the same rows."""
        assert isinstance(joint, JointTable)
        shares = discordant(one.metric, joint)
        if shares is None or not shares.rows:
            return super().anytime(one, other, joint, level)
        return shares.anytime(level)

    def estimate(self, one: Side, other: Side, joint: Statistic | None, level: float) -> Estimate:
        """Test shares of the same rows by McNemar, others by the variance Σ w² (∂θ_A - ∂θ_B)²."""
        assert isinstance(joint, JointTable)
        shares = discordant(one.metric, joint)
        if shares is not None and shares.rows:
            return shares.estimate(level)
        labels, cells = joint.triples.labels, joint.triples.cells
        a, b = (
            slopes_at(labels, cells[:, 0], cells[:, column], *slopes(side.metric))
            for column, side in ((1, one), (2, other))
        )
        squares = np.asarray(joint.triples.squares.to_float())
        variance = float(np.dot(squares, (a - b) ** 2))
        difference, n = one.value - other.value, int(one.metric.n_rows)
        # A rare class has few differing rows, of which the variance would be far too sure.
        differs = cells[:, 1] != cells[:, 2]
        amounts = np.asarray(joint.triples.amount.to_float())
        chance = swap_chance(np.abs(a - b)[differs], amounts[differs], squares[differs])
        error = math.sqrt(variance)
        if difference and chance > LEAST:
            z = -normal_quantile(chance / 2)
            error = max(error, abs(difference) / z if z > 0 else math.inf)
        total, of_squares = float(amounts.sum()), float(squares.sum())
        df = math.inf if total == of_squares else freedom(total**2 / of_squares)
        return estimated(difference, error, level, DELTA, df, n)


def swap_chance(gaps: Floats, amounts: Floats, squares: Floats) -> float:
    """Return the smallest p that the rows of a difference can have.

    If models are equal, each row in which they differ could as well be the other way round. This is
    the chance of all of them having one sign, of as many equal rows as these are worth by their
    parts of the difference or by their weights: a class that has one heavy row, or few, has no
    derivative.
    """
    chance = 0.0
    for parts in (gaps, np.ones_like(gaps)):
        if spread := float(parts**2 @ squares):
            chance = max(chance, min(1.0, 2.0 ** (1 - float(parts @ amounts) ** 2 / spread)))
    return chance


def slopes(metric: ContingencyMetric) -> tuple[LabelCells, Floats]:
    """Return the cells of a metric's table, and the value's derivative with respect to each."""
    (table,) = metric._read()
    confusion = metric._confusion(table)  # type: ignore[arg-type]  # by its `statistics`
    cells: LabelCells = table.cells()  # type: ignore[attr-defined]
    scale = 2.0**-confusion.exponent
    return cells, influence(metric, confusion, metric.read) * scale


def slopes_at(
    labels: Array,
    truth: Array,
    called: Array,
    cells: LabelCells,
    slope: Floats,
) -> Floats:
    """Return the slopes of cells, given as pairs of indices into `labels`."""
    size = max(len(labels), 1)
    rows, columns = (
        np.searchsorted(labels, side)[place]
        for side, place in ((cells.row_labels, cells.rows), (cells.column_labels, cells.columns))
    )
    packed = rows * size + columns
    order = np.argsort(packed)
    wanted = truth * size + called
    known = np.append(packed[order], -1)
    places = np.searchsorted(known[:-1], wanted)
    if not np.array_equal(known[places], wanted):  # this is not checked when a state is restored
        raise StreamMetricsError("the joint counts of this state are not those of its models")
    return slope[order[places]]


def discordant(metric: ContingencyMetric, joint: JointTable) -> Discordant | None:
    """Return the counts of McNemar's test if both values are shares of the same rows, else None."""
    labels, cells, amount, squares = joint.triples
    if amount != squares:  # rows have weights
        return None
    truth, one, other = cells.T
    is_share = metric.config.get("normalize") is not False
    if metric.family in {Family.HITS, Family.MISSES} and is_share:
        of = np.ones(len(cells), np.bool_)
        right = metric.family == Family.HITS
        hits = (one == truth) == right, (other == truth) == right
    elif metric.family == Family.SHARE and metric.average == "binary":  # type: ignore[attr-defined]  # exists in this family
        success, failures, _ = metric._parts  # type: ignore[attr-defined]  # exists in this family
        wants = {success, *failures} == {"tp", "fn"}
        if not wants and {success, *failures} != {"fp", "tn"}:
            return None  # a share of rows that depend on the model
        threshold = isinstance(metric.statistics()[0], ThresholdTable)
        is_positive = labels == (1 if threshold else metric._positive_label)
        says = success in {"tp", "fp"}
        of = is_positive[truth] == wants
        hits = is_positive[one] == says, is_positive[other] == says
    else:
        return None
    counts = np.asarray(amount.integers()[0]) << amount.integers()[1]
    only, others = of & hits[0] & ~hits[1], of & hits[1] & ~hits[0]
    return Discordant(*(int(counts[chosen].sum()) for chosen in (of, only, others)))


PAIRED_T = "paired t"

# Relative spread of differences up to which they are taken as equal: predictions and losses are
# rounded one by one, so that equal differences vary by far more than a unit in the last place.
_ROUNDING = Fraction(1, 1 << 44)


class MeanFamily(PairedTest):
    """Mean losses and their square roots, means of an author's numbers and functions of them."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        (statistic,) = metric.statistics()
        self.width = statistic.count if isinstance(statistic, FormulaSum) else 1  # terms of a model

    def joints(self, models: Sequence[str], pairs: Sequence[tuple[str, str]]) -> list[Joint]:
        """Return the joint moments of all models."""
        (statistic,) = self.metric.statistics()
        moments = JointMoments(models=self.width * len(models))
        return [Joint(moments, tuple(models), statistic.schema, terms_of(statistic))]

    def estimate(self, one: Side, other: Side, joint: Statistic | None, level: float) -> Estimate:
        """Test the differences of terms by the paired t-test, linearized for functions of means."""
        assert isinstance(joint, JointMoments)
        i, j = one.place + 1, other.place + 1
        if self.metric.family == Family.TOP_K and joint.product(0, 0) == joint.weight:
            only, others = (joint.product(k, k) - joint.product(i, j) for k in (i, j))
            counts = (int(each.fraction()) for each in (joint.weight, only, others))
            shares = Discordant(*counts)
            if shares.rows:
                return shares.estimate(level)
        weight, n = joint.weight.fraction(), one.metric.n_rows
        if n < 2 or not math.isfinite(one.value - other.value):
            return estimated(one.value - other.value, math.nan, level, PAIRED_T, 1.0)
        mine, theirs = (self._terms(side, joint) for side in (one, other))
        if not mine or not theirs:
            return estimated(one.value - other.value, math.nan, level, PAIRED_T, 1.0)
        terms = [*mine, *((k, -x) for k, x in theirs)]
        twice = sum(x * y * joint.product(k, m).fraction() for k, x in terms for m, y in terms)
        once = sum(x * joint.product(0, k).fraction() for k, x in terms)
        mean = sum(x * joint.totals[k - 1].fraction() for k, x in terms) / weight
        spread = twice - 2 * mean * once + mean * mean * joint.product(0, 0).fraction()
        size = sum(x * x * joint.product(k, k).fraction() for k, x in terms)
        error = root(max(spread, Fraction(0)) * n / (n - 1) / weight**2)
        is_linear = self.metric.family not in {Family.ROOT_MEAN_LOSS, Family.OF_MEANS}
        difference = nearest(mean) if is_linear else one.value - other.value
        worth = float(weight**2 / joint.product(0, 0).fraction())  # in rows of equal weight
        if difference and spread <= size * _ROUNDING**2:
            return constant(difference, max(2.0 ** (1 - worth), LEAST), level)
        return estimated(difference, error, level, PAIRED_T, freedom(worth))

    def _terms(self, side: Side, joint: JointMoments) -> list[tuple[int, Fraction]]:
        """Return the place of each term of a model, and the derivative of its value by the mean.

        There are none where the value has no finite derivative.
        """
        first, weight = side.place * self.width, joint.weight.fraction()
        places = range(first + 1, first + self.width + 1)
        means = [joint.totals[place - 1].fraction() / weight for place in places]
        if self.metric.family != Family.OF_MEANS:
            return [(places[0], self.slope(side, means[0]))]
        weights = joint.product(0, 0).fraction()
        squares = [float(joint.product(place, place).fraction() / weights) for place in places]
        with own_arithmetic():
            slopes = slopes_of_means(side.metric, means, squares)
        if not all(map(math.isfinite, slopes)):
            return []
        return list(zip(places, map(Fraction, slopes), strict=True))

    def slope(self, side: Side, mean: Fraction) -> Fraction:
        """Return the derivative of a model's value with respect to the mean of its terms."""
        _check_range(side, mean)
        (losses,) = side.metric._read()
        if self.metric.family == Family.ROOT_MEAN_LOSS:
            if losses.width > 1:
                raise StreamMetricsError(
                    f"{side.metric._titled()} of {losses.width} outputs cannot be compared, as it "
                    "is a mean of roots: compare the mean losses, such as MSE"
                )
            return 1 / (2 * Fraction(side.value)) if side.value else Fraction(0)
        halved = self.metric.family == Family.BRIER and side.value < nearest(mean)
        return Fraction(1, 2) if halved else Fraction(1)


def _check_range(side: Side, mean: Fraction) -> None:
    """Raise unless the rounded losses of rows have the exact mean, up to their rounding."""
    (losses,) = side.metric._read()
    if isinstance(losses, LossSum):
        exact = losses.means("loss")
        whole = sum(exact, Fraction(0)) / len(exact)
        if abs(whole - mean) > whole * _ROUNDING:
            raise without(
                side.metric,
                "losses of rows are too small or too large for float64; multiply targets and "
                "predictions by a constant",
            )


DELONG = "DeLong, paired"
INFLUENCE = "influence of rows"


class CurveFamily(PairedTest):
    """Areas under curves for (n,) scores, and averages of them for (n, K) scores."""

    def __init__(self, metric: ClassScoreMetric[None], max_rows: int) -> None:
        self.metric, self.max_rows = metric, max_rows  # of the sample

    def joints(self, models: Sequence[str], pairs: Sequence[tuple[str, str]]) -> list[Joint]:
        """Return a sample of the rows of all models."""
        (statistic,) = self.metric.statistics()
        sample = RowSample(max_rows=self.max_rows, by_class=True)
        return [Joint(sample, tuple(models), *rows_of(statistic.schema))]

    def estimate(self, one: Side, other: Side, joint: Statistic | None, level: float) -> Estimate:
        """Test the difference by its variance, with a normal distribution."""
        assert isinstance(joint, RowSample)
        is_roc = self.metric.family == Family.ROC_AREA
        test = DELONG if is_roc else INFLUENCE
        difference = one.value - other.value
        if not math.isfinite(difference):
            return estimated(difference, math.nan, level, test, math.inf)
        if len(joint.strata) == 2 and joint.counts.tolist() == joint.sums[:, 1].to_float().tolist():  # type: ignore[union-attr]  # an array
            variance, df = self._by_class(one, other, joint), math.inf
        else:
            variance, df = self._by_row(one, other, joint)
        n = int(one.metric.n_rows)
        return estimated(difference, math.sqrt(variance), level, test, df, n)

    def _by_class(self, one: Side, other: Side, sample: RowSample) -> float:
        """Return the variance, from the exact one of each class and the sampled correlation."""
        a, b = (
            curve_influence(side.metric, staircases(side.metric._read()[0])[0])
            for side in (one, other)
        )
        total = 0.0
        for positive, (rows, count) in enumerate(zip(sample.strata, sample.counts, strict=True)):
            is_positive = np.full(len(rows.points), bool(positive))
            one_adds = a.at(is_positive, rows.points[:, 1 + one.place])
            other_adds = b.at(is_positive, rows.points[:, 1 + other.place])
            copies = rows.copies.astype(np.float64)
            squares = np.dot(copies, one_adds**2), np.dot(copies, other_adds**2)
            both = math.sqrt(squares[0] * squares[1])
            together = float(np.dot(copies, one_adds * other_adds) / both) if both else 0.0
            exact = [_square(each, bool(positive)) for each in (a, b)]
            spread = sum(exact) - 2 * together * math.sqrt(exact[0] * exact[1])
            if sample.complete and count:  # the same, without rounding of a correlation near 1
                spread = float(np.dot(copies, (one_adds - other_adds) ** 2) / count)
            # Each class has its own mean, except for an area over recall.
            least = 1 if self.metric.family == Family.ROC_AREA else 0
            total += max(spread, 0.0) / (count - least) if count > least else math.nan
        return total

    def _by_row(self, one: Side, other: Side, sample: RowSample) -> tuple[float, float]:
        """Return the variance from the sample alone, for weighted rows or (n, K) scores.

        Also returns the degrees of freedom: inf, or for weights the number of equal rows that those
        of the class with the fewest are worth, less one.
        """
        known = np.asarray(sample.sums.to_float())
        whole, total, least = known[:, 0].sum(), np.float64(0.0), np.float64(math.inf)
        with own_arithmetic():  # squares may be beyond float64
            for rows, (weight, squares) in zip(sample.strata, known, strict=True):
                gap = self._adds(one, rows.points) - self._adds(other, rows.points)
                amount = rows.copies * rows.points[:, -1] ** 2
                if amount.any():
                    total += np.dot(amount, gap**2) * squares / amount.sum()
                    least = np.fmin(least, weight * weight / squares)
            variance = float(total / whole / whole)
        if (known[:, 0] == sample.counts).all():
            return variance, math.inf
        return variance, freedom(float(least))

    def _adds(self, side: Side, points: Floats) -> Floats:
        """Return the influence of rows on the class average, times the weight of all rows."""
        classes = staircases(side.metric._read()[0])
        width, total = len(classes), np.zeros(len(points))
        for each in class_influences(self.metric, classes):
            positive = points[:, 0] == (each.place if width > 1 else 1)
            scores = points[:, 1 + side.place * width + each.place]
            share = np.where(positive, each.share, 1 - each.share)
            total += each.weight * each.adds.at(positive, scores) / share
            total += (positive - each.share) * each.area
        return total


def _square(adds: CurveInfluence, positive: bool) -> float:
    """Return the mean squared influence of the rows of a class."""
    rows = adds.p if positive else adds.n
    squares = (adds.of_positive if positive else adds.of_negative) ** 2
    total = rows.sum()
    return float(np.dot(rows, squares) / total) if total else math.nan


PERMUTATIONS = 9_999
SIGNS = "sign flips"
_MANY = 1 << 17  # queries above which the mean is normal, so that sign flips add nothing
_BLOCK = 1 << 22  # signs processed at a time
_SLACK = 1e-12  # relative; tolerates rounding of sums in another order


class QueryFamily(PairedTest):
    """Means over queries."""

    def joints(self, models: Sequence[str], pairs: Sequence[tuple[str, str]]) -> list[Joint]:
        """Return nothing: each run keeps its own queries."""
        return []

    def n_rows(self, one: Side) -> int | None:
        """Return None: the values are of the same queries, with different rows."""
        return None

    def n_units(self, one: Side) -> int:
        """Return the number of queries."""
        return int(one.metric.n_queries)

    def estimate(self, one: Side, other: Side, joint: Statistic | None, level: float) -> Estimate:
        """Compute limits by the paired t-test, and p by flipping the signs of differences."""
        ours, theirs = one.metric.per_query(), other.metric.per_query()
        for side in (one, other):
            _check_run(side)
        advice = "unretrieved='zero' counts those that a run has no results for as 0"
        gaps = gaps_of(one, ours, theirs, "queries", "run", advice)
        return of_gaps(gaps, one.value - other.value, _weights_of(one), level)


def gaps_of(
    one: Side,
    ours: Mapping[K, float],
    theirs: Mapping[K, float],
    units: str,
    model: str,
    advice: str,
) -> Floats:
    """Return the difference of the two values of each query or unit.

    Raises:
        StreamMetricsError: A query or unit counts for only one of the two.
    """
    apart = [unit for unit in ours if unit not in theirs]
    apart += [unit for unit in theirs if unit not in ours]
    if apart:
        raise StreamMetricsError(
            f"{one.metric._titled()} counts other {units} for the one {model} than for the other: "
            f"{len(apart)} of them, first {apart[0]!r}, count for one only; {advice}"
        )
    return np.array([value - theirs[unit] for unit, value in ours.items()])


def of_gaps(gaps: Floats, difference: float, weights: Floats | None, level: float) -> Estimate:
    """Compute limits by the paired t-test, and p by flipping the signs of differences."""
    n = len(gaps)
    if n < 2 or not np.isfinite(gaps).all() or not math.isfinite(difference):
        return estimated(difference, math.nan, level, SIGNS, 1.0)
    error = error_of_mean(gaps, difference, weights)
    found = estimated(difference, error, level, PAIRED_T, n - 1)
    if not gaps.any() or n > _MANY:
        return found
    p = sign_flips(gaps if weights is None else gaps * (weights / weights.max()))
    if math.isnan(found.low):
        return constant(difference, p, level, SIGNS)
    return found._replace(p=p, test=SIGNS)


def paired_by_unit(one: Side, other: Side, level: float) -> Estimate | None:
    """Estimate the difference of two states that hold a value of each query or unit.

    Returns ``None`` for other metrics.
    """
    if one.metric.family == Family.QUERIES:
        return QueryFamily().estimate(one, other, None, level)
    if one.metric.family != Family.UNITS:
        return None
    advice = "evaluate both on the same units, with enough attempts at each"
    values = one.metric.per_unit(), other.metric.per_unit()
    gaps = gaps_of(one, *values, "units", "state", advice)
    return of_gaps(gaps, one.value - other.value, None, level)


def of_units(
    one: Side, other: Side, ours: UnitInfluence, theirs: UnitInfluence, level: float
) -> Estimate:
    """Estimate a difference from what each unit adds to it.

    The limits are by Student's t with Satterthwaite's degrees of freedom; p is by flipping the
    signs of the units' parts of the difference.

    Raises:
        StreamMetricsError: A unit counts for only one of the two.
    """
    if not np.array_equal(ours.keys, theirs.keys):
        apart = np.setxor1d(ours.keys, theirs.keys)
        raise StreamMetricsError(
            f"{one.metric._titled()} counts other units for {one.model!r} than for "
            f"{other.model!r}: {len(apart)} of them count for one only"
        )
    difference, gaps = one.value - other.value, ours.adds - theirs.adds
    if _rounded(difference, one.value) and _rounded(gaps, ours.adds):
        difference, gaps = 0.0, np.zeros_like(gaps)
    values = [one.value * ours.share, other.value * ours.share, ours.adds, theirs.adds]
    if difference and _rounded(gaps, np.concatenate(values)):  # every unit adds the same
        return constant(difference, max(2.0 ** (1 - len(gaps)), LEAST), level)
    adds = ours._replace(adds=gaps)
    warn_few(one.metric, adds)
    found = estimated(difference, float(adds.error), level, f"{adds.of}, t", adds.df)
    if math.isnan(found.low) or not found.low < found.high:
        return found
    # Values that move in steps change by more or less than their parts: these have to sum to the
    # difference, of which the signs are a test.
    p = sign_flips(gaps + adds.share * (difference - math.fsum(gaps)))
    return found._replace(p=p, test=f"{adds.of}, sign flips")


def _rounded(gaps: Numeric, values: Numeric) -> bool:
    """Whether the gaps from some values are no larger than rounding errors of the largest."""
    largest = np.abs(values).max(initial=0.0)
    return bool(np.abs(gaps).max(initial=0.0) <= _SLACK * largest)


def _spread(values: Floats) -> float:
    """Return the root of the sum of squares around the mean, without squares beyond float64."""
    around = values - values.mean()
    largest = float(np.abs(around).max())
    return largest * math.sqrt(float(((around / largest) ** 2).sum())) if largest else 0.0


def _weights_of(side: Side) -> Floats | None:
    """Return the weights of the queries that count, which are the same for the other run."""
    (buffer,) = side.metric._read()
    weights: Floats | None = side.metric._weights(buffer, side.metric._counted(buffer)[0])
    return weights


def _check_run(side: Side) -> None:
    """Raise if a run has judgments but no results: its column may be misspelled."""
    (buffer,) = side.metric._read()
    if len(buffer.table.queries) and not len(buffer.table.results.query):
        raise StreamMetricsError(
            f"no row has a score of {side.model!r}: is its column called otherwise?"
        )


def sign_flips(gaps: Floats, permutations: int = PERMUTATIONS) -> float:
    """Return the p-value of the sum of `gaps` under random signs (a two-sided randomization test).

    For up to 13 differences all signs are enumerated. Otherwise `permutations` are drawn, and the
    observed one is added: p = (r + 1) / (B + 1), which is never 0. The signs depend on the
    differences only, so that the same queries give the same p in any order.

    >>> sign_flips(np.array([1.0, 1.0, 1.0, 1.0]))
    0.125
    """
    seen = abs(float(np.sort(gaps).sum()))
    gaps = np.sort(np.abs(gaps[gaps != 0]))  # so that p is the same for both orders of two models
    n, least = len(gaps), seen - _SLACK * float(gaps.sum())
    if 1 << n <= permutations + 1:
        every = (np.arange(1 << n)[:, None] >> np.arange(n)) & 1
        sums = gaps.sum() - 2 * (every @ gaps)
        return float(np.count_nonzero(np.abs(sums) >= least)) / (1 << n)
    seed = int.from_bytes(hashlib.sha256(np.ascontiguousarray(gaps, "<f8").tobytes()).digest()[:8])
    random, reached = np.random.Generator(np.random.PCG64(seed)), 0
    words = -(-n // 64)
    step = max(1, _BLOCK // (64 * words))
    for start in range(0, permutations, step):
        rows = min(step, permutations - start)
        drawn = random.integers(0, 1 << 64, (rows, words), np.uint64, endpoint=False)
        flipped = np.unpackbits(drawn.view(np.uint8), axis=1, count=n)
        sums = gaps.sum() - 2 * (flipped.astype(np.float64) @ gaps)
        reached += int(np.count_nonzero(np.abs(sums) >= least))
    return (reached + 1) / (permutations + 1)


JACKKNIFE = "jackknife, 64 groups"

_REPEATED = 1 << 16  # most repeated rows for a statistic that takes no weights


class SampledFamily(PairedTest):
    """Any metric of numbers whose value is a single number and smooth in its rows."""

    def __init__(self, metric: Metric, models: int, max_rows: int) -> None:
        self.metric, self.models, self.max_rows = metric, models, max_rows

    def joints(self, models: Sequence[str], pairs: Sequence[tuple[str, str]]) -> list[Joint]:
        """Return a sample of the rows of all models."""
        schema = self.metric.statistics()[0].schema
        return [Joint(RowSample(max_rows=self.max_rows), tuple(models), *rows_of(schema))]

    def estimate(self, one: Side, other: Side, joint: Statistic | None, level: float) -> Estimate:
        """Return the difference with its jackknife variance."""
        assert isinstance(joint, RowSample)
        difference = one.value - other.value
        if not joint.strata or not math.isfinite(difference):
            return estimated(difference, math.nan, level, JACKKNIFE, GROUPS - 1)
        rows = self._of_pair(joint.strata[0], one.place, other.place)
        copies = self._thinned(rows.copies)
        if copies.sum() < 2:  # nothing is left without the only row
            return estimated(difference, math.nan, level, JACKKNIFE, 1.0)
        values, first = [], int(one.place > other.place)
        for group in dealt(copies):
            kept = np.flatnonzero(copies > group)
            points, times = rows.points[kept], (copies - group)[kept]
            sides = [self._value(place, points, times) for place in (first, 1 - first)]
            values.append(sides[0] - sides[1])
        without, size = np.array(values), len(values)
        if size < 2:
            return estimated(difference, math.nan, level, JACKKNIFE, 1.0)
        spread = _spread(without) * math.sqrt((size - 1) / size)
        # Effective number of rows of the sample, and of all rows.
        total, squares = np.asarray(joint.sums.to_float())[0].tolist()
        weight = rows.points[:, -1]
        with own_arithmetic():  # squares may be beyond float64
            worth = (copies @ weight) ** 2 / (copies @ weight**2), np.float64(total) ** 2 / squares
            error = spread * float(np.sqrt(worth[0] / worth[1]))
        return estimated(difference, error, level, JACKKNIFE, size - 1)

    def _thinned(self, copies: Ints) -> Ints:
        """Return how often rows are repeated; thinned at random if a statistic takes no weights."""
        most, total = max(_REPEATED, copies.size), int(copies.sum())
        weighted = not any(each.schema.unweighted for each in self.metric.statistics())
        if weighted or total <= most:
            return copies
        return seeded(copies).binomial(copies, most / total)

    def _of_pair(self, rows: PointRows, one: int, other: int) -> PointRows:
        """Return the rows of two models alone, in an order of their own.

        So groups depend neither on other models nor on the unit of weights, of which float32 leaves
        no rounding error.
        """
        shared, own = self._widths(rows.points, self.models)
        firsts = [shared + place * own for place in sorted((one, other))]
        sides = [rows.points[:, first : first + own] for first in firsts]
        points = np.hstack([rows.points[:, :shared], *sides, rows.points[:, -1:]])
        hashed = points.copy()
        hashed[:, -1] = (points[:, -1] / points[:, -1].max(initial=0.0)).astype(np.float32)
        hashes = row_hashes(label_hashes(np.arange(1), 0), rows.codes, point_hashes(hashed))
        return canonical(rows._replace(hashes=hashes, points=points), len(points))

    @property
    def _scored(self) -> bool:
        """Whether the first column holds codes of classes, and the others scores."""
        return any(isinstance(f, ScoredLabels) for f in self.metric._plan.schemas[0].fields)

    def _widths(self, points: Floats, models: int) -> tuple[int, int]:
        """Return how many columns the models share, and how many each has."""
        width = points.shape[1] - 1  # without the weight
        return (1, (width - 1) // models) if self._scored else (width // (models + 1),) * 2

    def _value(self, place: int, points: Floats, times: Ints) -> float:
        """Return the metric of a model for some rows of a pair, repeated `times` times."""
        columns = self._columns(place, points)
        weight = times * points[:, -1]
        read = []
        for statistic in self.metric.statistics():
            schema = statistic.schema
            taken = columns[len(columns) - len(schema.inputs) :]
            if schema.unweighted:
                statistic.update(*(np.repeat(each, times, axis=0) for each in taken), weight=None)
            else:
                statistic.update(*taken, weight=None if (weight == 1).all() else weight)
            read.append(statistic)
        return float(self.metric.readout(*read))

    def _columns(self, place: int, points: Floats) -> list[Array]:
        """Return the columns of one model as read by the schema: the shared one, and its own."""
        shared, own = self._widths(points, 2)
        start = shared + place * own
        both = (points[:, :shared], points[:, start : start + own])
        columns = [np.ascontiguousarray(x[:, 0] if x.shape[1] == 1 else x) for x in both]
        if self._scored:
            columns[0] = columns[0].astype(np.uint8 if own == 1 else np.intp)
        return columns


def dealt(copies: Ints) -> Iterator[Ints]:
    """Yield the number of copies of each row in each jackknife group, (rows,)."""
    size, rows = min(GROUPS, int(copies.sum())), np.arange(copies.size)
    if size < GROUPS:  # each row is a group
        for row in np.repeat(rows, copies):
            yield (rows == row).astype(np.int64)
        return
    generator, often = seeded(copies), np.flatnonzero(copies > 1)
    left = copies[often]
    for place in range(size):
        group = np.where(rows % size == place, copies, 0)
        group[often] = generator.binomial(left, 1 / (size - place))
        left = left - group[often]
        yield group


TABLES = {
    Family.TABLE, Family.AVERAGES, Family.SHARE, Family.F_BETA, Family.HITS, Family.MISSES,
    Family.KAPPA, Family.COST,
}  # fmt: skip
_MEANS = {
    Family.MEAN_LOSS, Family.BOUNDED_LOSS, Family.ROOT_MEAN_LOSS, Family.MEAN_ERROR,
    Family.LOG_LOSS, Family.BRIER, Family.TOP_K, Family.MEAN,
}  # fmt: skip


def is_mean(metric: Metric) -> bool:
    """Whether a metric is a mean loss, its root, an author's mean or one of texts.

    All outputs of a mean loss count alike.
    """
    if metric.family == Family.ROW_MEAN:
        return isinstance(metric, RowMean | TextMean)
    return metric.family in _MEANS and not isinstance(metric.config.get("multioutput"), tuple)


def family_of(
    name: str, metric: Any, models: int, max_rows: int, own: Sequence[str] = OF_MODELS
) -> PairedTest:
    """Return the test for a metric, of which each model has its `own` inputs.

    Raises:
        ValueError: The metric cannot be compared; the message names it and the reason.
    """
    why = refused(metric, own)
    if why:
        raise ValueError(f"{name!r}, {metric._titled()}, cannot be compared: {why}")
    if metric.family == Family.QUERIES:
        return QueryFamily()
    if metric.family in TABLES:
        return TableFamily(metric)
    if is_mean(metric) or metric.family == Family.OF_MEANS:
        return MeanFamily(metric)
    if metric.family == Family.AVERAGE_PRECISION or (
        metric.family == Family.ROC_AREA and is_whole_area(metric)
    ):
        return CurveFamily(metric, max_rows)
    return SampledFamily(metric, models, max_rows)


def refused(metric: Metric, own: Sequence[str] = OF_MODELS) -> str:
    """Return why a metric cannot be compared; empty if it can."""
    config: Options = metric.config
    if metric._incomparable == SEVERAL or ("average" in config and config["average"] is None):
        return SEVERAL
    if isinstance(config.get("q"), tuple):
        return "it is several numbers; give one q"
    if config.get("multioutput") == "raw_values":
        return "it is several numbers; multioutput='uniform_average' makes one of them"
    if isinstance(metric, MultilabelMetric | LabelRankingMetric) or config.get("multilabel"):
        return "the correlation between the labels of a row in two models is not kept"
    if config.get("aggregation", "mean") != "mean":
        return "only the mean over queries can be compared; use aggregation='mean'"
    is_sum = config.get("normalize") is False and metric.value_range is None
    if metric._incomparable or is_sum:
        return metric._incomparable or NO_MEAN
    if not set(metric.inputs) & set(own):
        return f"it reads nothing that is a model's own ({', '.join(own)})"
    if is_mean(metric) or metric.family == Family.OF_MEANS:
        return ""
    if apart := sorted(set(metric.inputs) & set(own).difference(OF_MODELS)):
        return f"models have their own {', '.join(apart)}, which only means of rows can compare"
    fields = [field for schema in metric._plan.schemas for field in schema.fields]
    plain = all(isinstance(field, ScoredLabels | Numbers) or not field.names for field in fields)
    plain = plain and len(metric.inputs) <= 2  # sampled rows have a truth and a prediction
    if not plain and metric.family not in {*TABLES, Family.QUERIES}:
        return "nothing is known of how it varies with its rows"
    return ""
