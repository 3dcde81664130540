"""Thresholds: what is certain of the best one, and of the counts at given ones."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from thinning import some

import streammetrics as sm

NAMES = (
    "f1", "fbeta", "jaccard", "accuracy", "balanced_accuracy", "informedness", "g_mean",
    "matthews_corrcoef", "cohen_kappa", ((0.0, 1.0), (3.0, -0.5)),
)  # fmt: skip


def drawn(seed, weighted):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 60))
    y_true, y_score = rng.integers(0, 2, n), rng.random(n).round(int(rng.integers(1, 4)))
    if seed % 3 == 0:  # worse than chance
        y_score = 1 - (0.7 * y_true + 0.3 * y_score)
    weight = rng.integers(1, 9, n) / 4 if weighted else None
    return {"y_true": y_true, "y_score": y_score, "sample_weight": weight}


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
@pytest.mark.parametrize("name", NAMES, ids=str)
@pytest.mark.parametrize("weighted", some([True, False], every=2))
@pytest.mark.parametrize("seeds", some([range(9), range(9, 30)], every=2), ids=str)
def test_bounds_of_the_best_threshold_hold_it(name, weighted, seeds):
    for seed in seeds:
        rows = drawn(seed, weighted)
        exact = sm.BestThreshold(for_=name).update(**rows)
        threshold, value = exact.compute()
        for max_bins in (2, 4, 7):
            low, high = sm.BestThreshold(for_=name, max_bins=max_bins).update(**rows).bounds()
            if math.isnan(value):
                continue
            assert low.value <= value <= high.value
            assert low.threshold <= threshold <= high.threshold


def test_a_score_at_the_best_threshold_is_called_positive():
    rows = drawn(1, False)
    best = sm.BestThreshold(for_="f1").update(**rows).compute()
    assert sm.F1(threshold=best.threshold).update(**rows).compute() == best.value


def test_calling_nothing_can_cost_least():
    best = sm.BestThreshold(for_=((0, 100), (1, 0)))
    assert best.update([0, 1, 0], [0.9, 0.5, 0.1]).compute() == (math.inf, 1 / 3)


@pytest.mark.parametrize("weighted", [False, True])
def test_bounds_of_counts_at_thresholds_hold_them(weighted):
    for seed in range(20):
        rows, cuts = drawn(seed, weighted), (0.2, 0.55, 0.8, 0.1)
        exact = sm.ConfusionAtThresholds(thresholds=cuts).update(**rows)
        rough = sm.ConfusionAtThresholds(thresholds=cuts, max_bins=3).update(**rows)
        value, (low, high) = exact.compute(), rough.bounds()
        assert exact.exact
        for table in (value, rough.compute()):
            for entry in ("tn", "fp", "fn", "tp"):
                least, count, most = (getattr(side, entry) for side in (low, table, high))
                assert (np.less_equal(least, count) & np.less_equal(count, most)).all()
        assert rough.exact == all(map(np.array_equal, low, high))


def test_thresholds_of_logits_are_probabilities():
    rows = {"y_true": [0, 1, 1, 0], "y_score": [-2.0, 0.0, 3.0, 0.5]}
    table = sm.ConfusionAtThresholds(thresholds=(0.5, 0.6, 0.0), from_logits=True)
    assert table.update(**rows).compute().tp.tolist() == [2.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"for_": "f2"}, "expected a matrix of costs or one of 'f1'"),
        ({"for_": ((1, 0), (5, 0))}, "fp >= tn and fn >= tp"),
        ({"for_": ((0, 1, 1), (5, 0, 1))}, "fp >= tn and fn >= tp"),
        ({"for_": 3}, "expected a string or a tuple of tuples of numbers"),
    ],
)
def test_what_no_threshold_is_best_for_is_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        sm.BestThreshold(**parameters)


@pytest.mark.parametrize("cost", [((0, 1), (1,)), ((0, math.inf), (1, 0)), (), ((0, "a"), (1, 0))])
def test_costs_are_a_square_of_numbers(cost):
    with pytest.raises(ValueError, match="a square of finite numbers|a tuple of tuples of numbers"):
        sm.ExpectedCost(cost=cost)


def test_costs_are_of_as_many_classes_as_labels():
    with pytest.raises(ValueError, match="a square of 3 classes"):
        sm.ExpectedCost(cost=((0, 1), (1, 0)), labels=["a", "b", "c"])


def test_one_limit_of_an_area_and_pairs_that_are_averaged():
    with pytest.raises(ValueError, match="None with max_fpr"):
        sm.ROCAUC(max_fpr=0.2, min_tpr=0.5)
    with pytest.raises(ValueError, match="an average with 'ovo'"):
        sm.ROCAUC(multi_class="ovo", average=None)


def exactly(name, tp, fp, fn, tn):
    """Return a value of a confusion table of fractions, squared with its sign for some names."""
    apart, p, n = tp * tn - fp * fn, tp + fn, fp + tn
    values = {
        "f1": lambda: 2 * tp / (2 * tp + fp + fn),
        "jaccard": lambda: tp / (tp + fp + fn),
        "accuracy": lambda: (tp + tn) / (p + n),
        "balanced_accuracy": lambda: (tp / p + tn / n) / 2,
        "informedness": lambda: tp / p + tn / n - 1,
        "g_mean": lambda: tp * tn / (p * n),
        "matthews_corrcoef": lambda: apart * abs(apart) / (p * n * (tp + fp) * (fn + tn)),
        "cohen_kappa": lambda: 2 * apart / (p * (fn + tn) + (tp + fp) * n),
    }
    try:
        return values[name]()
    except ZeroDivisionError:
        return None


@pytest.mark.parametrize("weights", [[1.0], [1.0, 2.0, 0.1, 1e-5, 1e8]])
@pytest.mark.parametrize(
    "name",
    ["f1", "jaccard", "accuracy", "balanced_accuracy", "informedness", "g_mean",
     "matthews_corrcoef", "cohen_kappa"],
)  # fmt: skip
def test_of_exactly_equal_thresholds_the_highest_is_taken(name, weights):
    rng = np.random.default_rng(5)
    for _ in range(25):
        n = rng.integers(2, 14)
        y, s = np.append(rng.integers(0, 2, n), [0, 1]), rng.integers(0, 9, n + 2) / 8
        w = rng.choice(weights, n + 2)
        rows = [(int(a), b, Fraction(c)) for a, b, c in zip(y, s.tolist(), w.tolist(), strict=True)]
        found = []
        for cut in [*sorted(set(s.tolist())), math.inf]:
            table = [
                sum((c for a, b, c in rows if a == label and (b >= cut) == called), Fraction(0))
                for label, called in ((1, True), (0, True), (1, False), (0, False))
            ]
            if (value := exactly(name, *table)) is not None:
                found.append((value, cut))
        value, cut = max(found)
        exact = float(value)
        if name in {"g_mean", "matthews_corrcoef"}:
            exact = math.copysign(math.sqrt(abs(value)), value)
        batch = {"y_true": y, "y_score": s, "sample_weight": w}
        best = sm.BestThreshold(for_=name).update(**batch).compute()
        assert best.threshold == cut
        assert best.value == pytest.approx(exact, rel=4e-16, abs=0)
        for max_bins in (2, 4):
            low, high = sm.BestThreshold(for_=name, max_bins=max_bins).update(**batch).bounds()
            assert low.value <= exact + 4e-16
            assert exact - 4e-16 <= high.value
            assert low.threshold <= cut <= high.threshold


def test_light_rows_below_a_threshold_keep_their_digits():
    table = sm.ConfusionAtThresholds(thresholds=[0.5])
    table.update([1, 1, 0, 0], [0.1, 0.9, 0.2, 0.8], sample_weight=[1e-5, 1e8, 3e-7, 1e12])
    assert [float(entry[0]) for entry in table.compute()[:4]] == [3e-7, 1e12, 1e-5, 1e8]
    curve = sm.DETCurve().update([1, 1, 0], [0.1, 0.9, 0.5], sample_weight=[1e-5, 1e8, 1.0])
    assert curve.compute().fnr[1] == pytest.approx(1e-13, rel=1e-12)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 1),
            st.integers(0, 100),
            st.sampled_from([0.0, 0.1, 0.3, 0.6, 1.2, 1e-9, 2.0**60]),
        ),
        min_size=1,
        max_size=8,
    ),
    st.lists(st.integers(0, 10), min_size=1, max_size=3, unique=True),
    st.sampled_from([2, 4, 1024]),
)
def test_weighed_counts_at_thresholds_are_rounded_once(rows, tenths, max_bins):
    truth, score, weight = (np.array(column) for column in zip(*rows, strict=True))
    cuts = np.sort(np.array(tenths) / 10)
    metric = sm.ConfusionAtThresholds(thresholds=cuts.tolist(), max_bins=max_bins)
    metric.update(truth, score / 100, sample_weight=weight)
    value, (low, high) = metric.compute(), metric.bounds()
    for place, cut in enumerate(cuts):
        called = score / 100 >= cut
        for name, true, pred in (("tn", 0, 0), ("fp", 0, 1), ("fn", 1, 0), ("tp", 1, 1)):
            of = weight[(truth == true) & (called == pred)]
            exact = float(sum(map(Fraction, of.tolist()), Fraction(0)))
            assert getattr(low, name)[place] <= exact <= getattr(high, name)[place]
            assert not metric.exact or getattr(value, name)[place] == exact


def test_tables_at_thresholds_have_the_rates_of_curves():
    rng = np.random.default_rng(0)
    y_true, y_score = rng.integers(0, 2, 50), rng.random(50).round(1)
    roc = sm.ROCCurve().update(y_true, y_score).compute()
    pr = sm.PrecisionRecallCurve().update(y_true, y_score).compute()
    found = (
        sm.ConfusionAtThresholds(thresholds=roc.thresholds[1:]).update(y_true, y_score).compute()
    )
    np.testing.assert_array_equal(found.fpr, roc.fpr[1:])
    np.testing.assert_array_equal(found.tpr, roc.tpr[1:])
    np.testing.assert_array_equal(found.precision, pr.precision[-2::-1])
    none = sm.ConfusionAtThresholds(thresholds=[2.0]).update(y_true, y_score).compute()
    assert np.isnan(none.precision).all()
