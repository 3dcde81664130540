"""States made of fields: what follows from a declaration, and the laws of `scaled` and `minus`."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import streammetrics as sm
from streammetrics.authoring import check_metric
from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.columns.batch import Batch
from streammetrics.core.columns.labels import Labels
from streammetrics.core.columns.numbers import Numbers
from streammetrics.core.columns.schema import Schema, SharedReading
from streammetrics.core.errors import (
    IncompatibleMetricsError,
    InvalidBatchError,
    StateFormatError,
)
from streammetrics.core.fields.keyed import (
    LabelledEntries,
    LabelTable,
    Sums,
    Weights,
    coded_labels,
    used_labels,
)
from streammetrics.core.fields.sums import Extreme, Sum, Width
from streammetrics.core.fields.weights import Weight, WeightedCount
from streammetrics.core.statistic import Statistic
from streammetrics.statistics.centroids import CentroidSums, ClusterSums
from streammetrics.statistics.histograms import Extremes, ScoreHistogram, ValueHistogram
from streammetrics.statistics.pairs import PairHistogram
from streammetrics.statistics.points import PointSample
from streammetrics.statistics.probabilities import Probabilities, ProbabilityLossSum
from streammetrics.statistics.rankings import RankingBuffer
from streammetrics.statistics.sums import LossSum, Moments
from streammetrics.statistics.tables import ContingencyTable, LabelPairs, ThresholdTable, TopKHits
from streammetrics.testing import check_laws
from streammetrics.testing.laws import broken_states


class LogSum(Statistic):
    """The form of a user's statistic: exact sums of log(x) and of the weights, and the range."""

    logs = Sum()
    rows = Weight()
    width = Width("columns")
    low = Extreme()

    @property
    def schema(self):
        return Schema((Numbers("values", above=0.0),))

    def update(self, values, *, weight):
        self.logs += ExactSum.of(np.log(values), weight)
        self.rows += WeightedCount.of_rows(len(values), weight)
        self.width = 1
        self.low = type(self).low.plus(self.low, np.array([values.min()]))

    def check_fields(self):
        if bool(self.rows) != (self.width == 1) or self.low.shape != (self.width,):
            raise StateFormatError("rows, columns and the smallest do not fit each other")


class ByLabel(Statistic):
    """A table by label, of rows that may have weights, and of their sums."""

    table = LabelTable(rows=Weights(), sums=Sums())

    @property
    def schema(self):
        return Schema((Numbers("values"), Labels("labels")))

    def update(self, values, labels, *, weight):
        places, every = coded_labels(labels)
        used, codes = used_labels(every, places)
        size = len(used)
        rows = (
            WeightedCount.of_counts(np.bincount(codes, minlength=size))
            if weight is None
            else WeightedCount.of_weights(ExactSum.grouped(codes, size, weight))
        )
        sums = ExactSum.grouped(codes, size, values, weight).reshaped((size, 1))
        more = LabelledEntries(used, {"rows": rows, "sums": sums})
        self.table = type(self).table.plus(self.table, more)


class GeometricMean(sm.Metric):
    """The exponential of the mean logarithm."""

    def statistics(self):
        return (LogSum(),)

    def update(self, values, *, sample_weight=None):
        return self.feed({"values": values, "sample_weight": sample_weight})

    def readout(self, sums):
        rows = sums.rows.fraction()
        return float(np.exp(float(sums.logs.fraction() / rows))) if rows else float("nan")


def classes(rng, n):
    return {"y_true": rng.integers(0, 4, n), "y_pred": rng.integers(0, 5, n)}


def scored(rng, n):
    return {"y_true": rng.integers(0, 2, n), "y_score": rng.integers(0, 9, n) / 8}


def shares(rng, n):
    scores = rng.dirichlet(np.ones(3), n)
    return {"y_true": rng.integers(0, 3, n), "y_score": scores / scores.sum(1, keepdims=True)}


def numbers(rng, n):
    return {"y_true": rng.normal(size=n), "y_pred": rng.normal(size=n) * 1e9}


def wide(rng, n):
    return {"y_true": rng.normal(size=(n, 2)), "y_pred": rng.normal(size=(n, 2))}


def values(rng, n):
    return {"values": rng.lognormal(size=n)}


def long_scores(rng, n):
    scores = (1 << 60) + rng.integers(-5, 5, n)
    return {"y_true": rng.integers(0, 2, n), "y_score": np.where(rng.random(n) < 0.3, 1, scores)}


def named(rng, n):
    return {"values": rng.normal(size=n), "labels": rng.choice(["x", "yy", "z", "w"], n)}


def points(rng, n):
    return {"X": rng.normal(size=(n, 2)).round(1), "labels": rng.integers(0, 3, n)}


def ranks(rng, n):
    return {"y_true": rng.integers(0, 4, n) / 4, "y_pred": rng.integers(0, 5, n) / 4}


def queries(rng, n):
    named = {"query": rng.integers(0, 4, n), "score": rng.integers(0, 9, n) / 8}
    return named | {"relevance": rng.integers(0, 3, n)}


def documents(rng, n):
    docs = rng.choice(10_000, n, replace=False)
    return queries(rng, n) | {"doc": [f"d{doc}" for doc in docs.tolist()]}


def labelings(rng, n):
    return {"labels_true": rng.integers(0, 3, n), "labels_pred": rng.choice(["a", "b", "c"], n)}


WEIGHTED = [
    (ContingencyTable(), classes),
    (ThresholdTable(), scored),
    (TopKHits(k=2), shares),
    (ProbabilityLossSum(loss="brier"), shares),
    (Probabilities(), shares),
    (LossSum(loss="absolute"), numbers),
    (LossSum(loss="squared"), wide),
    (Moments(of="pair"), numbers),
    (Moments(of="values", order="count"), values),
    (ScoreHistogram(), scored),
    (ScoreHistogram(), shares),
    (ScoreHistogram(), long_scores),
    (ValueHistogram(of="errors"), wide),
    (Extremes(of="errors"), wide),
    (LogSum(), values),
    (ByLabel(), named),
]
UNWEIGHTED = [
    (LabelPairs(), labelings),
    (ClusterSums(), points),
    (CentroidSums(centroids=((0.0, 0.0), (1.0, 1.0), (0.0, 2.0))), points),
    (PointSample(), points),
    (PointSample(max_points=5), points),
    (PairHistogram(), ranks),
    (RankingBuffer(), queries),
    (RankingBuffer(k=2, named=True), documents),
]
PAST = [(ScoreHistogram(max_bins=2), scored), (ValueHistogram(of="values", max_bins=4), values)]
EVERY = [*WEIGHTED, *UNWEIGHTED]
LASTING = (Extremes, LogSum, PointSample, RankingBuffer)  # of which nothing can be taken out


def of(statistic, columns, weight=None):
    """Return a statistic of the same configuration that has seen these rows."""
    given = columns if weight is None else {**columns, "sample_weight": weight}
    read = SharedReading([statistic.schema]).read(Batch(given))
    seen = statistic.fork()
    if read.n:
        seen.update(*statistic.schema.present(read.columns), weight=read.weight)
    return seen


def told(arrays):
    """What arrays say: those of a statistic, or by name."""
    arrays = arrays if isinstance(arrays, dict) else arrays.arrays()
    return {name: (a.dtype, a.shape, a.tobytes()) for name, a in arrays.items()}


def merged(*statistics):
    first, *rest = (statistic.fork() for statistic in statistics)
    first.merge_all(rest)
    return first


def name(value):
    return type(value).__name__ if isinstance(value, Statistic) else None


@pytest.mark.parametrize(("statistic", "rows"), EVERY, ids=name)
def test_a_state_of_fields_is_sound_and_read_back(statistic, rows):
    rng = np.random.default_rng(0)
    seen = of(statistic, rows(rng, 50))
    for state in (statistic, seen, merged(seen, of(statistic, rows(rng, 9)), statistic)):
        state.check()
        assert told(state.restored(state.arrays())) == told(state)
        assert state.nbytes >= 0
    fork = seen.fork()
    fork.merge(seen)
    assert told(fork) == told(merged(seen, seen)), "merging a fork leaves the original"
    fork.clear()
    assert told(fork) == told(statistic)


@pytest.mark.parametrize(("statistic", "rows"), WEIGHTED, ids=name)
@pytest.mark.parametrize("factor", [2.0, 0.375, 2**-40, 3])
def test_scaling_is_updating_with_the_products(statistic, rows, factor):
    rng = np.random.default_rng(1)
    columns, weight = rows(rng, 60), rng.integers(1, 1000, 60) / 64  # products are float64
    plain, weighted = of(statistic, columns), of(statistic, columns, weight)
    assert told(plain.scaled(factor)) == told(of(statistic, columns, np.full(60, float(factor))))
    assert told(weighted.scaled(factor)) == told(of(statistic, columns, weight * factor))
    both = merged(plain, weighted)
    assert told(both.scaled(factor)) == told(merged(plain.scaled(factor), weighted.scaled(factor)))
    assert told(both.scaled(factor).scaled(0.25)) == told(both.scaled(factor * 0.25))
    assert told(both.scaled(1.0)) == told(both)
    assert told(statistic.scaled(factor)) == told(statistic)
    both.scaled(0.1).check()


def is_unsure(one, other):
    """Whether whole weights are left of fractional ones, which may have been parts of wholes."""
    known = isinstance(one, ScoreHistogram) and one.histograms and other.histograms
    return known and one.whole and not other.whole


def may_be_of(whole, part):
    """Whether a part may have set what the whole keeps: an extreme, a sample, a ranking."""
    if isinstance(whole, PointSample):
        return not whole.complete
    if isinstance(whole, RankingBuffer):
        return True
    names = [each for each, field in whole.fields.items() if isinstance(field, Extreme)]
    ends = [(getattr(whole, each), getattr(part, each)) for each in names]
    return any(other.size and np.any(mine == other) for mine, other in ends)


@pytest.mark.parametrize(("statistic", "rows"), EVERY, ids=name)
def test_what_was_merged_is_taken_out_again(statistic, rows):
    rng = np.random.default_rng(2)
    a, b = (of(statistic, rows(rng, n)) for n in (30, 40))
    weight = rng.random(20) + 0.5
    states = [a, b, statistic]
    if (statistic, rows) in WEIGHTED:
        states.append(of(statistic, rows(rng, 20), weight))
    for one in states:
        for other in states:
            if isinstance(statistic, LASTING) and may_be_of(merged(one, other), other):
                with pytest.raises(IncompatibleMetricsError, match="cannot be computed without"):
                    merged(one, other).minus(other)
            elif is_unsure(one, other):
                with pytest.raises(IncompatibleMetricsError, match="unknown whether"):
                    merged(one, other).minus(other)
            else:
                left = merged(one, other).left(other, one is not statistic)
                assert told(left) == told(one)
                left.check()


@pytest.mark.parametrize(
    ("statistic", "rows"),
    [case for case in EVERY if case[0].arrays() and case[1] is not values],
    ids=name,
)
def test_rows_that_were_never_added_are_not_taken_out(statistic, rows):
    rng = np.random.default_rng(3)
    less, more = of(statistic, rows(rng, 5)), of(statistic, rows(rng, 80))
    with pytest.raises(IncompatibleMetricsError, match="not among|cannot be computed without"):
        less.minus(more)
    with pytest.raises(IncompatibleMetricsError, match="other parameters"):
        less.minus(LossSum(loss="huber", parameter=1.0))


@pytest.mark.parametrize(("statistic", "rows"), PAST, ids=name)
def test_histograms_past_their_budget_are_scaled_and_nothing_is_taken_out(statistic, rows):
    rng = np.random.default_rng(6)
    columns, weight = rows(rng, 60), rng.integers(1, 9, 60) * 0.25
    seen = of(statistic, columns, weight)
    assert told(seen.scaled(0.5)) == told(of(statistic, columns, weight * 0.5))
    seen.scaled(0.3).check()
    with pytest.raises(IncompatibleMetricsError, match="distinct scores does not tell them apart"):
        merged(seen, seen).minus(seen)


def test_it_is_not_guessed_whether_weights_are_whole():
    rows = {"y_true": [0, 1], "y_score": [0.25, 0.75]}
    halves = of(ScoreHistogram(), rows, np.array([0.5, 0.5]))
    third = of(ScoreHistogram(), rows, np.array([0.25, 0.25]))
    assert told(merged(halves, third).minus(third)) == told(halves)
    four = merged(halves, halves, third)
    with pytest.raises(IncompatibleMetricsError, match="it is unknown whether each is one"):
        four.minus(third)


@pytest.mark.parametrize(("statistic", "rows"), UNWEIGHTED, ids=name)
def test_rows_without_weights_are_not_scaled(statistic, rows):
    seen = of(statistic, rows(np.random.default_rng(0), 5))
    with pytest.raises(InvalidBatchError, match=r"do not accept weights"):
        seen.scaled(2.0)


@pytest.mark.parametrize("weight", [0, -1.0, np.inf, np.nan, "2", None])
def test_only_weights_scale(weight):
    with pytest.raises(
        InvalidBatchError, match="is not a weight: expected a positive finite number"
    ):
        of(Moments(of="values"), {"values": [1.0]}).scaled(weight)


def test_scaling_stays_within_what_a_state_holds():
    far = of(Moments(of="values"), {"values": [1e300, 1.0]})
    with pytest.raises(InvalidBatchError, match="beyond what a state holds"):
        far.scaled(1e308).scaled(1e308)
    near = far.scaled(1e-300)
    near.check()
    assert told(near.scaled(2.0**-900).scaled(2.0**900)) == told(near)


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=6),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
)
def test_exact_sums_are_scaled_exactly(terms, factor, single):
    column = np.array(terms)
    sums = ExactSum.of(column if single else column[:, None] * np.array([1.0, 0.5, 0.0]))
    product = sums.times(factor)
    for one, other in zip(parts(product), parts(sums), strict=True):
        assert one.fraction() == other.fraction() * Fraction(factor)
    assert ExactSum.from_arrays(product.shape, product.arrays()) == product


def parts(sums):
    return [sums] if sums.shape == () else [sums[i] for i in range(sums.shape[0])]


def test_amounts_beyond_int64_are_exact_sums():
    amount = WeightedCount.of_counts(np.array([1, 1 << 61]))
    for _ in range(4):
        amount += amount
    assert amount.exact()[1].fraction() == 1 << 65
    assert amount.exact()[0].fraction() == 16
    assert (amount - amount).exact() == ExactSum.zero((2,))
    rows = WeightedCount.of_rows(1 << 62, None)
    assert (rows + rows + rows).exact().fraction() == (rows + rows + rows).fraction() == 3 << 62


def test_a_users_statistic_needs_no_line_for_its_bytes():
    rng = np.random.default_rng(0)
    columns = {"values": rng.exponential(size=50) + 1e-9}
    check_laws(GeometricMean(), columns)
    check_laws(GeometricMean(), columns | {"sample_weight": rng.random(50) + 0.1})
    mean = GeometricMean().update([1.0, 10.0, 100.0])
    assert abs(mean.compute() - 10.0) < 1e-12


@st.composite
def altered(draw, arrays):
    """Return arrays of which something is different: any array, in any way."""
    changed = dict(arrays)
    names = sorted(arrays)
    for _ in range(draw(st.integers(1, 2))):
        which = draw(st.sampled_from([*names, "more", "rows/more", ""]))
        kind = draw(st.sampled_from(["drop", "bytes", "values", "shape", "other"]))
        held = changed.get(which)
        if held is None or kind == "other":
            dtype = draw(st.sampled_from([np.int64, np.float64, np.uint8, np.int32]))
            shape = draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=4))
            changed[which] = draw(hnp.arrays(dtype, shape))
        elif kind == "drop":
            del changed[which]
        elif kind == "shape":
            changed[which] = draw(
                st.sampled_from([held[..., None], held.ravel(), held[:-1:] if held.ndim else held])
            )
        elif held.size:
            flat = held.copy().reshape(-1)
            place = draw(st.integers(0, flat.size - 1))
            if kind == "bytes":
                raw = flat.view(np.uint8)
                raw[draw(st.integers(0, raw.size - 1))] ^= draw(st.integers(1, 255))
            else:
                large = [2**31, 2**61 + 1, 2**62 + 4, 2**63 - 1]
                options = [0, 1, 2, 255] if held.dtype == np.uint8 else [0, -1, 1, *large]
                flat[place] = np.array(draw(st.sampled_from(options))).astype(held.dtype)
            changed[which] = flat.reshape(held.shape)
    return changed


@pytest.mark.parametrize(("statistic", "rows"), EVERY, ids=name)
def test_counts_of_any_size_are_refused_or_said_again(statistic, rows):
    seen = of(statistic, rows(np.random.default_rng(5), 12)).arrays()
    for title in (title for title, array in seen.items() if array.dtype == np.int64):
        for large in (2**61, 2**61 + 1, 2**62 + 4, 2**63 - 1):
            arrays = seen | {title: seen[title].copy()}
            arrays[title].reshape(-1)[:1] = large
            with suppress(StateFormatError):
                again = statistic.restored(arrays)
                assert told(again) == told(arrays)
                again.check()


@pytest.mark.parametrize(("statistic", "rows"), EVERY, ids=name)
@given(data=st.data())
def test_no_altered_state_is_believed(statistic, rows, data):
    seen = of(statistic, rows(np.random.default_rng(5), 12))
    arrays = data.draw(altered(seen.arrays()))
    try:
        again = statistic.restored(arrays)
    except StateFormatError:
        return
    # What is taken is a state: it says the same again, and can be used.
    assert told(again) == told(arrays)
    again.check()
    with suppress(IncompatibleMetricsError, InvalidBatchError):  # of other widths, or contrary
        merged(again, seen).check()


class Forgetful(LogSum):
    """Takes a field for the other when it is read."""

    def restore(self, arrays):
        super().restore(arrays)
        self.logs += self.logs


class Doubled(GeometricMean):
    """Reads a statistic whose bytes are not those of its state."""

    def statistics(self):
        return (Forgetful(),)


def test_the_law_kit_checks_the_states_of_statistics():
    metric = Doubled().update([2.0, 3.0])
    (law,) = broken_states(metric)
    assert "a Forgetful can be read again" in law
    assert not list(broken_states(GeometricMean().update([2.0, 3.0])))


def test_sums_without_rows_are_not_left():
    rows = {"values": [1.0, 2.0, 4.0], "labels": ["a", "a", "b"]}
    whole = of(ByLabel(), rows)
    other = of(ByLabel(), rows | {"values": [1.0, 3.0, 4.0]})
    with pytest.raises(IncompatibleMetricsError, match="sums are left of labels without rows"):
        whole.minus(other)
    with pytest.raises(IncompatibleMetricsError, match="some labels are not here"):
        whole.minus(of(ByLabel(), {"values": [1.0], "labels": ["c"]}))
    left = whole.minus(of(ByLabel(), {"values": [4.0], "labels": ["b"]}))
    assert left.table.labels.tolist() == ["a"]
    assert left.table.columns["sums"].to_float().tolist() == [[3.0]]


class _Hours(Statistic):
    hours = Weight(24)

    @property
    def schema(self):
        return Schema((Numbers("hour"),))

    def update(self, hour, *, weight):
        self.hours += WeightedCount.at_places((np.abs(hour) % 24).astype(int), 24, weight)


class _Busiest(sm.Metric[float]):
    """The weight of the busiest hour.

    Example:
        >>> _Busiest().update([1, 1, 3]).compute()
        2.0
    """

    def statistics(self):
        return (_Hours(),)

    def update(self, hour, *, sample_weight=None):
        return self.feed({"hour": hour, "sample_weight": sample_weight})

    def readout(self, held):
        return float(held.hours.exact().to_float().max())


def test_amounts_at_places_are_a_field_of_a_size():
    hours = np.random.default_rng(0).integers(0, 24, 50).astype(float)
    check_metric(_Busiest, {"hour": hours})
    weighted = _Busiest().update(hours, sample_weight=np.arange(50) / 8)
    assert weighted.compute() == np.bincount(hours.astype(int), np.arange(50) / 8).max()
    with pytest.raises(ValueError, match="one amount is added to several.*at_places"):
        _Hours().hours + WeightedCount.of_rows(3, None)
