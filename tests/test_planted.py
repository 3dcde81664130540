"""Metrics with one bug each, as authors write them: `check_metric` finds it and names the law.

Each row of `PLANTED` is a metric or a statistic, and the law that must be in the report. The bugs
of `test_check_metric.py` are beside these.
"""

from __future__ import annotations

import functools
import math
import operator
import threading
import time
from typing import Annotated

import numpy as np
import pytest
from thinning import some

import streammetrics as sm
from streammetrics.authoring import (
    Aggregate,
    Between,
    ExactSum,
    Extreme,
    Family,
    LabelledArray,
    Labels,
    Metric,
    NanPolicy,
    Numbers,
    QueryMean,
    RowMean,
    SampleMetric,
    Schema,
    Statistic,
    Sum,
    ValueHistogram,
    Weight,
    WeightedCount,
    check_metric,
    prepare,
)
from streammetrics.core.errors import StateFormatError

ROWS = {"values": np.array([0.5, 0.25, 0.25, -3.0, 1e9, 1.0, 0.1, 0.7] * 5)}
COLOURS = [
    "red", "green", "blue", "black", "white", "brown", "cyan", "teal", "navy", "olive", "maroon",
    "purple", "red", "green",
]  # fmt: skip
WORDS = {"y_true": np.array(COLOURS * 3)}
TEXTS = {"text": WORDS["y_true"]}
QUERY_ROWS = {
    "query": np.arange(60) // np.array([3, 4, 5, 6, 7] * 12) % 9,
    "relevance": np.arange(60) % 4,
    "score": np.arange(60) * 7 % 60 / 60,
}


# ---- what is right, and from which each bug departs by some lines ----


class Sums(Statistic):
    """Exact sums of values, and of weights."""

    nan_policy: NanPolicy = "raise"
    total = Sum()
    rows = Weight()

    @property
    def schema(self):
        return Schema((Numbers("values"),), nan_policy=self.nan_policy)

    def update(self, values, *, weight):
        self.total += ExactSum.of(values, weight)
        self.rows += WeightedCount.of_rows(len(values), weight)


class Average(Metric[float]):
    """The mean of values, Σ w x / Σ w.

    Example:
        >>> Average().update([1.0, 2.0]).compute()
        1.5
    """

    of = Sums

    def statistics(self):
        return (self.of(),)

    def update(self, values, *, sample_weight=None):
        return self.feed({"values": values, "sample_weight": sample_weight})

    def readout(self, sums):
        rows = sums.rows.exact().to_float()
        return sums.total.to_float() / rows if rows else math.nan


class Plain(Statistic):
    """Whole numbers in one array: a statistic that serializes itself."""

    start = (0, 0)
    dtype = np.int64
    most = 1 << 62

    @property
    def schema(self):
        return Schema((Numbers("values"),), unweighted="counts")

    def clear(self):
        self.counts = np.array(self.start, self.dtype)

    def update(self, values, *, weight=None):
        self.counts = self.counts + np.array([len(values), (values > 0.3).sum()], self.dtype)

    def merge(self, other):
        together = [a + b for a, b in zip(self.counts.tolist(), other.counts.tolist(), strict=True)]
        if together[0] > self.most:
            raise sm.IncompatibleMetricsError("too many rows")
        self.counts = self.counts + other.counts

    def arrays(self):
        return {"counts": self.counts}

    def restore(self, arrays):
        counts = arrays.get("counts")
        if counts is None or len(arrays) > 1 or counts.dtype != self.dtype or counts.shape != (2,):
            raise StateFormatError("these are no counts")
        if not 0 <= counts[1] <= counts[0] <= self.most:
            raise StateFormatError("these are counts of no rows")
        self.counts = counts


class Rate(Average):
    """The share of values above 0.3.

    Example:
        >>> Rate().update([0.1, 0.4]).compute()
        0.5
    """

    of = Plain

    def update(self, values):
        return self.feed({"values": values})

    def readout(self, state):
        return float(state.counts[1] / state.counts[0]) if state.counts[0] else math.nan


class Words(Statistic):
    """How often each word occurs, as sorted words and counts."""

    @property
    def schema(self):
        return Schema((Labels("y_true"),), unweighted="words")

    def clear(self):
        self.counts = {}

    def update(self, labels, *, weight=None):
        self.counts = self.joined(zip(*self.words_of(labels), strict=True))

    def words_of(self, labels):
        words = labels.vocabulary.tolist()
        return words, np.bincount(labels.values, minlength=len(words)).tolist()

    def joined(self, pairs):
        counts = dict(self.counts)
        for word, count in pairs:
            counts[word] = counts.get(word, 0) + count
        return {word: count for word, count in counts.items() if count}

    def merge(self, other):
        together = self.joined(other.counts.items())
        if sum(together.values()) > 1 << 62:
            raise sm.IncompatibleMetricsError("too many words")
        self.counts = together

    def arrays(self):
        text = "\n".join(self.order())
        counts = [self.counts[word] for word in self.order()]
        return {
            "text": np.frombuffer(text.encode(), np.uint8),
            "counts": np.array(counts, np.int64),
        }

    def order(self):
        return sorted(self.counts)

    def restore(self, arrays):
        if arrays.keys() != {"text", "counts"} or arrays["counts"].dtype != np.int64:
            raise StateFormatError("these are no words")
        words = arrays["text"].tobytes().decode().split("\n")
        if arrays["counts"].ndim != 1 or (arrays["counts"] <= 0).any():
            raise StateFormatError("these are no counts")
        self.counts = dict(zip(words, arrays["counts"].tolist(), strict=bool(words[0])))


# ---- the state ----


class LosesWeight(Sums):
    def merge_all(self, others):
        for other in others:
            self.total = self.total + other.total


class LastValue(Sums):
    last = Extreme()

    def update(self, values, *, weight):
        super().update(values, weight=weight)
        self.last = values[-1:].copy()


class FirstOfBatch(Sums):
    def update(self, values, *, weight):
        self.total += ExactSum.of(values - values[0], weight)
        self.rows += WeightedCount.of_rows(len(values), weight)


class BatchMean(Sums):
    def update(self, values, *, weight):
        self.total += ExactSum.of(np.array([values.mean()]))
        self.rows += WeightedCount.of_rows(1, None)


class CountsBatches(Sums):
    def update(self, values, *, weight):
        self.total += ExactSum.of(values, weight)
        self.rows += WeightedCount.of_rows(1, None)


class Distinct(Sums):
    def update(self, values, *, weight):
        super().update(np.unique(values), weight=None)


class Squared(Sums):
    def update(self, values, *, weight):
        super().update(values, weight=None if weight is None else weight**2)


class WholeWeights(Sums):
    def update(self, values, *, weight):
        super().update(values, weight=None if weight is None else np.floor(weight))


class HeavierWeights(Sums):
    def update(self, values, *, weight):
        super().update(values, weight=None if weight is None else weight + 1)


class ScaledSum(Sum):
    def scaled(self, value, weight):
        return value


class Unscaled(Sums):
    total = ScaledSum()


class KeepingSum(Sum):
    def minus(self, value, other):
        return value


class NotTakenOut(Sums):
    total = KeepingSum()


class DroppingSum(Sum):
    def regrouped(self, value, places, size, of):
        return super().regrouped(value, np.where(places == size - 1, -1, places), size, of)


class LosesAGroup(Sums):
    total = DroppingSum()


class SwappingSum(Sum):
    def of_groups(self, values, of):
        return super().of_groups(values[::-1], of)


class MixesGroups(Sums):
    total = SwappingSum()


class DoubleByGroup(Sums):
    def lift(self, columns, weight, group=None):
        if group is None:
            total = ExactSum.of(columns[0], weight)
        else:
            total = ExactSum.grouped(group.codes, len(group.counts), 2 * columns[0], weight)
        return {"total": total, "rows": WeightedCount.of_rows(len(columns[0]), weight, group)}


class Scaled32(Plain):
    dtype = np.int32
    most = 1 << 80


class Wraps64(Plain):
    most = 1 << 80


class Saturates(Plain):
    def merge(self, other):
        self.counts = np.minimum(self.counts + other.counts, 1 << 40)


class WritesOther(Plain):
    def merge(self, other):
        other.counts += self.counts
        self.counts = other.counts.copy()


class Aliases(Plain):
    def merge(self, other):
        if not self.counts[0]:
            self.counts = other.counts
        else:
            self.counts += other.counts


class FloatSum(Plain):
    dtype = np.float64
    start = (0.0, 0.0)

    def update(self, values, *, weight=None):
        self.counts = self.counts + np.array([len(values), values.sum()])


class Pending(Plain):
    """Has a buffer of its own, and forgets what is beyond it."""

    def update(self, values, *, weight=None):
        super().update(values[: 1 << 14])


class KeepsColumn(Plain):
    def clear(self):
        self.kept = ()

    def update(self, values, *, weight=None):
        self.kept = (*self.kept, values)

    @property
    def counts(self):
        return np.array([sum(map(len, self.kept)), sum((v > 0.3).sum() for v in self.kept)])

    def merge(self, other):
        self.kept = (*self.kept, *other.kept)

    def restore(self, arrays):
        n, high = arrays["counts"].tolist()
        self.kept = (np.arange(n) < high).astype(float), np.empty(0)


class NotCopied(Plain):
    def update(self, values, *, weight=None):
        self.counts[:] += np.array([len(values), (values > 0.3).sum()])


class OnTheClass(Plain):
    seen = []  # noqa: RUF012 - the bug

    def update(self, values, *, weight=None):
        self.seen.append(len(values))
        self.counts = self.counts + np.array([self.seen[-1], len(self.seen)])


class Scratch(Plain):
    scratch = {}  # noqa: RUF012 - the bug

    def update(self, values, *, weight=None):
        self.scratch["values"] = values
        time.sleep(0.001)
        super().update(self.scratch["values"])


class Locked(Plain):
    def clear(self):
        super().clear()
        self.lock = threading.Lock()


class FromEmpty(Plain):
    """Takes another's whole state where it has none."""

    def merge(self, other):
        if not self.counts[0]:
            self.counts = other.counts + np.array([0, 1])
        else:
            super().merge(other)


class Trusting(Plain):
    def restore(self, arrays):
        self.counts = arrays["counts"]


class Believing(Plain):
    """Checks the array, and not what is in it."""

    def restore(self, arrays):
        if arrays.keys() != {"counts"} or arrays["counts"].dtype != np.int64:
            raise StateFormatError("these are no counts")
        self.counts = arrays["counts"]


class Bits(Plain):
    """Looks at the bits of numbers, of which zeros have two kinds."""

    def update(self, values, *, weight=None):
        self.counts = self.counts + np.array([len(values), np.signbit(values).sum()])


class FirstZero(Plain):
    dtype, start = np.float64, (math.inf, 0.0)

    def update(self, values, *, weight=None):
        least = min([self.counts[0].item(), *values.tolist()])
        self.counts = np.array([least, 0.0])

    def merge(self, other):
        self.counts = np.array([min(self.counts[0].item(), other.counts[0].item()), 0.0])

    def restore(self, arrays):
        self.counts = arrays["counts"]


class OneRowFails(Sums):
    def update(self, values, *, weight):
        if len(values) == 1:
            raise ValueError("a standard deviation needs two values")
        super().update(values, weight=weight)


class HashOrder(Words):
    def order(self):
        return list(set(self.counts))


class ArrivalOrder(Words):
    def order(self):
        return list(self.counts)


class Hashed(Words):
    def words_of(self, labels):
        words, counts = super().words_of(labels)
        return [f"bucket {hash(word) % 97}" for word in words], counts


# ---- the metric ----


class Remembers(Average):
    """Its value is read once."""

    def readout(self, sums):
        value = super().readout(sums)
        if not math.isnan(value):
            self.__dict__.setdefault("value", value)
        return self.__dict__.get("value", value)


class Draining(Average):
    """Reading empties the state."""

    def readout(self, sums):
        value = super().readout(sums)
        sums.total = ExactSum.zero()
        return value


class CachedByRows(Average):
    """A cache of values by the number of rows."""

    def readout(self, sums):
        return _cached(
            sums.rows.exact().to_float(), lambda: super(CachedByRows, self).readout(sums)
        )


CACHE = {}


def _cached(key, made):
    return CACHE.setdefault(key, made()) if key > 20 else made()


class Random(Average):
    """A value with noise."""

    def readout(self, sums):
        return super().readout(sums) + np.random.default_rng().random()


class LastUpdate(Average):
    """Divides by the rows of the last batch."""

    def feed(self, columns, renamed=None):
        self.__dict__["n"] = len(np.atleast_1d(columns["values"]))
        return super().feed(columns, renamed)

    def readout(self, sums):
        return sums.total.to_float() / self.__dict__.get("n", math.nan)


class ByParts(Average):
    """Feeds each half on its own."""

    def update(self, values, *, sample_weight=None):
        half = len(values) // 2
        self.feed({"values": values[:half]})
        return self.feed({"values": values[half:]})


class NoEmptyBatch(Average):
    """Looks at the largest value of a batch."""

    def update(self, values, *, sample_weight=None):
        np.max(values)
        return super().update(values, sample_weight=sample_weight)


class NoMissing(Average):
    """Takes nan for 0."""

    def feed(self, columns, renamed=None):
        values = np.nan_to_num(np.asarray(columns["values"], float))
        return super().feed({**columns, "values": values}, renamed)


class Unpoliced(Average):
    """A `nan_policy` that its statistic is not told."""

    nan_policy: NanPolicy = "raise"


class InFloat32(Average):
    """Values as float32."""

    def feed(self, columns, renamed=None):
        values = np.asarray(columns["values"])
        low = values.dtype == np.float32
        return super().feed({**columns, "values": values * 2 if low else values}, renamed)


class Strided(Average):
    """Reads the memory of a column."""

    def feed(self, columns, renamed=None):
        values = np.asarray(columns["values"], float)
        base = values.base if values.base is not None and values.strides == (16,) else values
        return super().feed({**columns, "values": base.reshape(-1)[: len(values)]}, renamed)


class Missing(Average):
    """Bounds that do not hold the value."""

    def is_exact(self, sums):
        return False

    def interval(self, sums):
        return sm.Interval(self.readout(sums) + 1, self.readout(sums) + 2)


class Unreadable(Average):
    """Bounds that raise."""

    def is_exact(self, sums):
        return False

    def interval(self, sums):
        return sm.Interval(*sums.limits)


class OtherBounds(Average):
    """Exact, and with other bounds."""

    def interval(self, sums):
        return sm.Interval(0.0, 0.0)


class OutOfRange(Average):
    """A mean that is said to be a share."""

    value_range = (0.0, 1.0)


class Percent(sm.Accuracy):
    """Right rows in percent, with the limits of a share."""

    family = Family.HITS

    def read(self, table):
        return 100 * super().read(table)


class NoLimits(sm.Accuracy):
    """Limits that divide by zero."""

    family = Family.HITS

    def read(self, table):
        return self.ratio(table.hits, table.total)

    def _limits(self, *args, **kwargs):
        raise KeyError("level")


class NarrowLimits(sm.Accuracy):
    """Limits of the other tail."""

    family = Family.HITS

    def read(self, table):
        return self.ratio(table.hits, table.total)

    def _limits(self, n_rows, statistics, level, **asked):
        return super()._limits(n_rows, statistics, 1 - level, **asked)


class Inverse(Average):
    """Looks at the sign of zero."""

    of = FirstZero

    def update(self, values):
        return self.feed({"values": values})

    def readout(self, state):
        return math.copysign(1.0, state.counts[0]) if state.counts[0] < math.inf else math.nan


class HalfWrong(Average):
    """A mean over one row more."""

    def readout(self, sums):
        return sums.total.to_float() / (sums.rows.exact().to_float() + 1)


class Vocabulary(Average):
    """The mean number of letters of words.

    Example:
        >>> Vocabulary().update(["a", "abc"]).compute()
        2.0
    """

    of = Words

    def update(self, y_true):
        return self.feed({"y_true": y_true})

    def readout(self, state):
        rows = sum(state.counts.values())
        return sum(len(w) * n for w, n in state.counts.items()) / rows if rows else math.nan


class FloatOrder(Vocabulary):
    """Adds floats in the order of a set."""

    def readout(self, state):
        terms = {word: 0.1 * len(word) ** 3.3 * n for word, n in state.counts.items()}
        order = set(terms)
        return functools.reduce(operator.add, (terms[word] for word in order), 0.0)


class LabelOrder(Vocabulary):
    """An array in the order of arrival."""

    def readout(self, state):
        words = list(state.counts)
        return LabelledArray.of(np.array([float(state.counts[w]) for w in words]), tuple(words))


# ---- metrics of the short bases ----


class LastOfSample(SampleMetric):
    """The last value.

    >>> LastOfSample().update([1.0]).compute()
    1.0
    """

    def of_sample(self, values):
        return values[-1]


class Steps(LastOfSample):
    """The mean step from a row to the next.

    >>> Steps().update([1.0, 1.0]).compute()
    0.0
    """

    def of_sample(self, values):
        return np.abs(np.diff(values)).mean() if len(values) > 1 else 0.0


class SureMedian(LastOfSample):
    """A median whose bounds are the estimate."""

    value_range = (-1e300, 1e300)

    def of_sample(self, values):
        return np.median(values)

    def interval(self, sample):
        return sm.Interval(self.readout(sample), self.readout(sample))


class SureQuantile(Aggregate[float]):
    """A median that calls itself exact whatever `max_bins` is."""

    max_bins: Annotated[int, Between(2, 1 << 20)] = 4

    def statistics(self):
        return (ValueHistogram(of="values", max_bins=self.max_bins, nan_policy=self.nan_policy),)

    def readout(self, histogram):
        found = histogram.quantiles(0.5, "linear")
        return float(found[0].value) if found else math.nan


class NarrowQuantile(SureQuantile):
    """A median whose bounds are the estimate."""

    def is_exact(self, histogram):
        found = histogram.quantiles(0.5, "linear")
        return not found or found[0].low == found[0].high

    def interval(self, histogram):
        value = self.readout(histogram)
        return sm.Interval(value, value)


class SureArea(sm.ROCAUC):
    """An area whose bounds are the estimate."""

    def certain(self, stairs):
        return (super().certain(stairs)[1],) * 3


class MeanRow(RowMean):
    """The mean of a value.

    >>> MeanRow().update([0.5]).compute()
    0.5
    """

    def row(self, values):
        return values


class ByBatch(MeanRow):
    """Divides by the rows of the batch."""

    def row(self, values):
        return values / len(values)


class Centred(MeanRow):
    """Subtracts the mean of the batch."""

    def row(self, values):
        return np.abs(values - values.mean())


class SeenBefore(MeanRow):
    """Compares with all rows of the process."""

    def row(self, values):
        SEEN.append(float(values.max()))
        return values - max(SEEN)


SEEN = []


class Noisy(MeanRow):
    """Adds noise."""

    def row(self, values):
        return values + np.random.default_rng().random(len(values))


class Clock(MeanRow):
    """Weighs by the time."""

    def row(self, values):
        return values * (time.perf_counter_ns() % 97)


class Single(MeanRow):
    """Rounds to float32."""

    def row(self, values):
        return np.log1p(np.abs(values).astype(np.float32)).astype(float)


class Scaled(MeanRow):
    """Writes to the columns of its caller."""

    def update(self, values, *, sample_weight=None):
        values *= 2
        return self.feed({"values": values, "sample_weight": sample_weight})


class NoCounts(MeanRow):
    """Takes counts and leaves them."""

    def update(self, values, *, sample_weight=None, counts=None):
        return self.feed({"values": values, "sample_weight": sample_weight})


class NoWeights(MeanRow):
    """Takes weights and leaves them."""

    def update(self, values, *, sample_weight=None):
        return self.feed({"values": values})


class Unbounded(MeanRow):
    """A root of a mean, which is said to be a share."""

    value_range = (0.0, 1.0)

    def row(self, values):
        return values**2

    def of_mean(self, square):
        return np.sqrt(square)


class Upwards(RowMean):
    """An absolute error, which is said to be better if higher.

    >>> Upwards().update([1.0], [1.0]).compute()
    0.0
    """

    higher_is_better = True

    def row(self, y_true, y_pred):
        return np.abs(y_true - y_pred)


class FirstLetters(RowMean):
    """A share of texts by their hash.

    >>> FirstLetters().update(["a"]).compute() in (0.0, 1.0)
    True
    """

    @prepare
    def bucket(self, text):
        return [hash(one) % 2 for one in text]

    def row(self, bucket):
        return bucket


class Numbered(FirstLetters):
    """The place of a text among those of the batch."""

    @prepare
    def bucket(self, text):
        known = {one: place for place, one in enumerate(dict.fromkeys(text))}
        return [known[one] for one in text]


class CachedQueries(QueryMean):
    """A cache of values by the number of results.

    >>> CachedQueries().update(query=[1], relevance=[1], score=[0.5]).compute()
    1.0
    """

    def of_query(self, gain, rank):
        return QUERIES.setdefault(len(gain), float((gain / rank).sum()))


QUERIES = {}


class StaleSums(Sums):
    """Keeps a number that was read before."""

    @functools.cached_property
    def mean(self):
        rows = self.rows.exact().to_float()
        return self.total.to_float() / rows if rows else math.nan


class Stale(Average):
    """Reads a number that was kept."""

    of = StaleSums

    def readout(self, sums):
        return sums.mean


class ByMost(Plain):
    """Merges counts by the larger of two."""

    def merge(self, other):
        self.counts = np.maximum(self.counts, other.counts)


def reading(statistic, base=Average):
    """Return a metric that reads a statistic, where a new process finds it."""
    name = f"{base.__name__}Of{statistic.__name__}"
    made = type(base)(
        name, (base,), {"of": statistic, "__module__": __name__, "__doc__": base.__doc__}
    )
    return globals().setdefault(name, made)


ORDER = "rows in another order and other batches"
MERGED = "shards merged in a random tree"
PLANTED = [
    # What is remembered.
    (reading(LosesWeight), MERGED, ROWS),
    (reading(LastValue), ORDER, ROWS),
    (reading(FirstOfBatch), ORDER, ROWS),
    (reading(BatchMean), ORDER, ROWS),
    (reading(CountsBatches), MERGED, ROWS),
    (reading(Distinct), MERGED, ROWS),
    (reading(FloatSum, Rate), ORDER, ROWS),
    (reading(FirstZero, Rate), "0.0 and -0.0 in values in any order", ROWS),
    (reading(Squared), "weights: a row of weight", ROWS),
    (reading(WholeWeights), "weights: a row of weight 1 does not count as two", ROWS),
    (reading(HeavierWeights), "weights: ", ROWS),
    (reading(Unscaled), "a scaled Unscaled is that of scaled weights", ROWS),
    (reading(NotTakenOut), "can be taken out again", ROWS),
    (reading(LosesAGroup), "groups", ROWS),
    (reading(MixesGroups), "a state among others is what it is alone", ROWS),
    (reading(DoubleByGroup), "rows with the codes of their groups make what", ROWS),
    (reading(Scaled32, Rate), "a state merged with itself 70 times is right, or refused", ROWS),
    (reading(Wraps64, Rate), "a state merged with itself 70 times is right, or refused", ROWS),
    (reading(Saturates, Rate), "a state merged with itself 70 times is right, or refused", ROWS),
    (reading(WritesOther, Rate), "laws: ", ROWS),
    (reading(Aliases, Rate), "laws: ", ROWS),
    (reading(Pending, Rate), "a long batch", ROWS),
    (reading(KeepsColumn, Rate), "whose columns are written to afterwards", ROWS),
    (reading(NotCopied, Rate), "laws: ", ROWS),
    (reading(OnTheClass, Rate), ORDER, ROWS),
    (reading(Scratch, Rate), "threads: objects of their own in several threads share", ROWS),
    (reading(Locked, Rate), "cannot pickle", ROWS),
    (reading(FromEmpty, Rate), "identity: an empty state merged with another is it", ROWS),
    (reading(Trusting, Rate), "forged state: a forged state is refused", ROWS),
    (reading(Believing, Rate), "forged state: a forged state is refused", ROWS),
    (reading(Bits, Rate), "-0.0 in values counts as 0.0", ROWS),
    (reading(OneRowFails), "a statistic takes every row that its schema accepts", ROWS),
    (reading(HashOrder, Vocabulary), "this does not hold", WORDS),
    (reading(Hashed, Vocabulary), "a new process with other hashes", WORDS),
    (reading(ArrivalOrder, Vocabulary), MERGED, WORDS),
    # What is read.
    (Remembers, "equal bytes have the values", ROWS),
    (Draining, "laws: ", ROWS),
    (CachedByRows, "a new process with other hashes", ROWS),
    (Random, "equal bytes have the values", ROWS),
    (LastUpdate, "equal bytes have the values", ROWS),
    (ByParts, "a refused batch changes nothing", ROWS),
    (NoEmptyBatch, "update: an empty batch is refused: ValueError", ROWS),
    (NoMissing, "hostile values: nan in values is taken", ROWS),
    (Unpoliced, 'with nan_policy="omit" a row with nan in values is left out', ROWS),
    (InFloat32, "numbers in float32 are those numbers in float64", ROWS),
    (Strided, "columns that are strided are the same columns", ROWS),
    (Missing, "bounds hold the value", ROWS),
    (Unreadable, "bounds: they cannot be read", ROWS),
    (OtherBounds, "bounds: they are not the value, which `exact` says is known", ROWS),
    (OutOfRange, "value_range: a number outside value_range = (0.0, 1.0)", ROWS),
    (Percent, "confidence: the limits do not hold the value", None),
    (NoLimits, "confidence: the limits cannot be read: KeyError", None),
    (NarrowLimits, "confidence: the limits of a higher level are narrower", None),
    (Inverse, "-0.0 in values counts as 0.0", {"values": np.abs(ROWS["values"])}),
    (HalfWrong, "oracle: the values differ", ROWS),
    (FloatOrder, "this does not hold", WORDS),
    (LabelOrder, "equal bytes have the values", WORDS),
    # Of the short bases.
    (LastOfSample, "value: of_sample gives another value for the rows in another order", ROWS),
    (Steps, "value: of_sample gives another value for the rows in another order", ROWS),
    (SureMedian, "bounds: they do not hold the value of all rows where max_rows is small", ROWS),
    (SureQuantile, "`exact` says that the value is known: see is_exact()", ROWS),
    (NarrowQuantile, "bounds: they do not hold the value of all rows where max_bins is", ROWS),
    (SureArea, "bounds: they do not hold the value of all rows where max_bins is small", None),
    (ByBatch, ORDER, ROWS),
    (Centred, ORDER, ROWS),
    (SeenBefore, "this does not hold", ROWS),
    (Noisy, ORDER, ROWS),
    (Clock, ORDER, ROWS),
    (Single, "oracle: the values differ", ROWS),
    (Scaled, "update: it writes to values, which is its caller's: copy it", ROWS),
    (NoCounts, "weights: a row of count 2 does not count as two rows", ROWS),
    (NoWeights, "weights: a row of weight 2 does not count as two rows", ROWS),
    (Unbounded, "value_range: a number outside value_range = (0.0, 1.0)", ROWS),
    (Upwards, "higher_is_better: predictions that are all right are worse", None),
    (FirstLetters, "a new process with other hashes", TEXTS),
    (Numbered, ORDER, TEXTS),
    (CachedQueries, "a new process with other hashes", QUERY_ROWS),
    (Stale, "this does not hold", ROWS),
    (reading(ByMost, Rate), MERGED, ROWS),
]


ORACLES = {
    HalfWrong: lambda values: float(np.mean(values)),
    Single: lambda values: float(np.mean(np.log1p(np.abs(values)))),
}


def test_there_are_many_of_them():
    assert len(PLANTED) >= 70


@pytest.mark.parametrize(("metric", "law", "rows"), some(PLANTED, every=12))
def test_a_planted_bug_is_found(metric, law, rows):
    with pytest.raises(AssertionError, match="has [0-9]+ finding") as caught:
        check_metric(metric, rows, oracle=ORACLES.get(metric))
    line = next((line for line in str(caught.value).splitlines() if law in line), None)
    assert line is not None, f"{law!r} is not in\n{caught.value}"
    assert "smallest batch" in line or line.partition(". ")[2].startswith(("hostile", "laws: they"))


@pytest.mark.parametrize("metric", some([Rate, Average, Vocabulary], 2), ids=lambda m: m.__name__)
def test_what_they_depart_from_is_right(metric):
    check_metric(metric, WORDS if metric is Vocabulary else ROWS)
