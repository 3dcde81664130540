"""Counts past the range of int64, and the mutual information that chance alone gives."""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn import metrics as sk

import streammetrics as sm
from streammetrics.core.arithmetic.exact import exact_dot
from streammetrics.metrics.clustering.information import entropy, expected_information
from streammetrics.statistics.formulas import deviance

AGAINST_TRUTH = [
    sm.Purity,
    sm.RandIndex,
    sm.AdjustedRandIndex,
    sm.PairJaccard,
    sm.PairPrecision,
    sm.PairRecall,
    sm.PairFBeta,
    sm.FowlkesMallows,
    sm.MutualInfo,
    sm.NormalizedMutualInfo,
    sm.AdjustedMutualInfo,
    sm.Homogeneity,
    sm.Completeness,
    sm.VMeasure,
]


def repeated(metric, true, pred, doublings):
    """Feed rows 2**doublings times."""
    metric.update(true, pred)
    for _ in range(doublings):
        metric.merge(metric.copy())
    return metric


@pytest.mark.parametrize("doublings", [0, 30, 40])
def test_pairs_are_exact_past_four_billion_rows(doublings):
    true, pred = [0, 0, 0, 1, 1, 2], ["a", "a", "b", "b", "b", "c"]
    times = 2**doublings
    table = [2, 1, 2, 1]
    choose = [sum(comb(size * times, 2) for size in side) for side in (table, [3, 2, 1], [2, 3, 1])]
    both, in_true, in_pred = map(Fraction, choose)
    every = comb(6 * times, 2)
    expected = in_true * in_pred / every
    exact = {
        sm.AdjustedRandIndex: (both - expected) / ((in_true + in_pred) / 2 - expected),
        sm.RandIndex: (every + 2 * both - in_true - in_pred) / every,
        sm.PairJaccard: both / (in_true + in_pred - both),
        sm.PairPrecision: both / in_pred,
        sm.PairRecall: both / in_true,
        sm.PairFBeta: 2 * both / (in_true + in_pred),
    }
    for metric, value in exact.items():
        filled = repeated(metric(), true, pred, doublings)
        assert filled.n_rows == 6 * times
        assert filled.compute() == float(value)


@pytest.mark.parametrize("metric", AGAINST_TRUTH)
def test_information_does_not_change_with_repetition(metric):
    rng = np.random.default_rng(3)
    true, pred = rng.integers(0, 5, 300), rng.integers(0, 4, 300)
    once = repeated(metric(), true, pred, 0).compute()
    often = repeated(metric(), true, pred, 35).compute()
    assert math.isfinite(often)
    if metric in {sm.Purity, sm.MutualInfo, sm.NormalizedMutualInfo, sm.VMeasure}:
        assert often == pytest.approx(once, rel=1e-13)


def test_adjustment_vanishes_as_rows_grow():
    rng = np.random.default_rng(4)
    true, pred = rng.integers(0, 5, 300), rng.integers(0, 4, 300)
    adjusted = repeated(sm.AdjustedMutualInfo(), true, pred, 35).compute()
    plain = repeated(sm.NormalizedMutualInfo(), true, pred, 35).compute()
    assert adjusted == pytest.approx(plain, rel=1e-9)


@given(st.lists(st.tuples(*[st.integers(0, 2**62)] * 2), max_size=20))
def test_dot_of_counts_is_exact(pairs):
    columns = np.array(pairs, np.int64).reshape(-1, 2).T
    assert exact_dot(*columns) == sum(x * y for x, y in pairs)


def direct(a, b, n):
    """Mean of D(x, m) over the hypergeometric distribution, term by term."""
    m, every = Fraction(a * b, n), comb(n, b)
    total = 0.0
    for x in range(max(0, a + b - n), min(a, b) + 1):
        total += float(Fraction(comb(a, x) * comb(n - a, b - x), every)) * float(deviance(x, m))
    return total


@pytest.mark.parametrize("n", [2, 7, 30, 400, pytest.param(3000, marks=pytest.mark.long)])
def test_expected_information_is_that_of_the_distribution(n):
    rng = np.random.default_rng(n)
    for _ in range(8):
        a, b = rng.integers(1, n, 2).tolist()
        rows, columns = np.array([a, n - a]), np.array([b, n - b])
        exact = sum(direct(x, y, n) for x in (a, n - a) for y in (b, n - b)) / n
        assert expected_information(rows, columns) == pytest.approx(exact, rel=1e-12)


def test_expected_information_of_many_rows_is_the_chi_squared_limit():
    sizes = np.full(50, 2 * 10**7)
    # (R - 1) (C - 1) / (2 n) and terms of order n**-2.
    assert expected_information(sizes, sizes) == pytest.approx(49 * 49 / 2e9, rel=1e-5)
    far = np.full(50, 2 * 10**15)
    assert expected_information(far, far) == pytest.approx(49 * 49 / 2e17, rel=1e-9)


@given(st.floats(0, 1e12), st.floats(1e-6, 1e12))
def test_deviance_is_never_negative(x, m):
    assume(x == 0.0 or x / m > 0.0)
    value = float(deviance(x, m))
    assert value >= 0.0
    naive = (x * math.log(x / m) if x else 0.0) - x + m
    assert value == pytest.approx(naive, rel=1e-9, abs=1e-13 * (x + m) * (1 + abs(math.log(m))))


def test_small_information_keeps_its_digits():
    # Nearly independent: 2 x 2 with counts q + 1, q - 1, q - 1, q + 1, so MI = q**-2 / 2 + ...
    q = 10**6
    metric = sm.MutualInfo()
    for true, pred, count in ((0, 0, q + 1), (0, 1, q - 1), (1, 0, q - 1), (1, 1, q + 1)):
        metric.update(np.full(count, true), np.full(count, pred))
    assert metric.compute() == pytest.approx(0.5 / q**2, rel=1e-11)


@pytest.mark.parametrize(
    "table",
    [
        ((3 * 10**9, 3 * 10**9), (3 * 10**9, 3 * 10**9 + 1)),
        ((2**40, 3 * 2**40), (2**40 + 1, 3 * 2**40)),
        ((10**4, 10**4 + 1), (10**4, 10**4)),
        ((7**11, 7**11 + 1, 0), (7**12, 7**12, 1)),
        ((10**9, 1), (10**15, 10**6)),
    ],
)
def test_information_of_nearly_independent_labels_against_60_digits(table):
    cells = [(i, j, count) for i, row in enumerate(table) for j, count in enumerate(row)]
    with localcontext(Context(prec=60)):
        n = Decimal(sum(count for *_, count in cells))
        sides = (
            [Decimal(sum(row)) for row in table],
            [Decimal(sum(c)) for c in np.transpose(table).tolist()],
        )
        exact = sum(c / n * (c * n / (sides[0][i] * sides[1][j])).ln() for i, j, c in cells if c)
        true, pred = (-sum(x / n * (x / n).ln() for x in side) for side in sides)
        expected = {
            sm.MutualInfo: exact,
            sm.NormalizedMutualInfo: 2 * exact / (true + pred),
            sm.Homogeneity: exact / true,
            sm.Completeness: exact / pred,
            sm.VMeasure: 2 * exact / (true + pred),
            sm.TheilsU: exact / true,
        }
    for metric, value in expected.items():
        filled = metric()
        for i, j, count in cells:
            part = metric().update([i], [j])
            for bit in reversed(f"{count:b}"):
                if bit == "1" and count:
                    filled.merge(part)
                part = part.copy().merge(part)
        assert filled.compute() == pytest.approx(float(value), rel=1e-12)


def test_thousands_of_clusters_stay_sparse():
    rng = np.random.default_rng(0)
    true = rng.integers(0, 5000, 60_000)
    pred = np.where(rng.random(60_000) < 0.8, true, rng.integers(0, 5000, 60_000))
    suite = sm.MetricSet({metric.__name__: metric() for metric in AGAINST_TRUTH})
    suite.update(labels_true=true, labels_pred=pred)
    assert suite["Purity"].nbytes < 1_000_000
    values = suite.compute()
    assert values["AdjustedRandIndex"] == pytest.approx(sk.adjusted_rand_score(true, pred))
    assert values["VMeasure"] == pytest.approx(sk.v_measure_score(true, pred))
    # Sizes repeat, so the expectation takes a second where scikit-learn takes a minute.
    assert 0.5 < values["AdjustedMutualInfo"] < values["NormalizedMutualInfo"]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=24))
def test_small_labelings_agree_with_scikit_learn(rows):
    true, pred = np.array(rows).T
    for metric, reference in (
        (sm.AdjustedRandIndex(), sk.adjusted_rand_score),
        (sm.RandIndex(), sk.rand_score),
        (sm.FowlkesMallows(), sk.fowlkes_mallows_score),
        (sm.NormalizedMutualInfo(), sk.normalized_mutual_info_score),
        (sm.AdjustedMutualInfo(), sk.adjusted_mutual_info_score),
        (sm.Homogeneity(), sk.homogeneity_score),
        (sm.Completeness(), sk.completeness_score),
        (sm.VMeasure(), sk.v_measure_score),
    ):
        expected = reference(true, pred)
        assert metric.update(true, pred).compute() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("metric", AGAINST_TRUTH)
def test_equal_labelings_are_perfect(metric):
    labels = np.random.default_rng(1).integers(0, 6, 100)
    value = metric().update(labels, np.array(list("fedcba"))[labels]).compute()
    assert value == (entropy(np.bincount(labels)) if metric is sm.MutualInfo else 1.0)


@pytest.mark.parametrize("metric", AGAINST_TRUTH)
def test_no_rows_are_undefined(metric):
    with pytest.warns(sm.UndefinedMetricWarning, match="no rows"):
        assert math.isnan(metric().compute())


@pytest.mark.parametrize("metric", [sm.PairJaccard, sm.PairPrecision, sm.PairRecall, sm.PairFBeta])
def test_pairs_without_any_are_undefined(metric):
    with pytest.warns(sm.UndefinedMetricWarning, match="no two rows have the same label"):
        assert math.isnan(metric().update([0, 1, 2], ["x", "y", "z"]).compute())


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"labels_true": [0, 1], "labels_pred": [0, 1, 1]}, "differ in length"),
        ({"labels_true": [0, "a"], "labels_pred": [0, 1]}, "strings and numbers"),
        ({"labels_true": [0.5, 1.0], "labels_pred": [0, 1]}, "not a label"),
        ({"labels_true": [[0, 1]], "labels_pred": [0]}, "one label a row"),
        ({"labels_true": [None, 1], "labels_pred": [0, 1]}, "missing"),
        ({"labels_true": ["a", "b"], "labels_pred": [0, 1]}, "rows seen before"),
    ],
)
def test_bad_labels_change_nothing(columns, message):
    metric = sm.AdjustedRandIndex().update([0, 0, 1], ["a", "b", "b"])
    before = metric.to_bytes()
    with pytest.raises(sm.InvalidBatchError, match=message):
        metric.update(**columns)
    assert metric.to_bytes() == before


def test_weights_are_refused():
    suite = sm.MetricSet({"ari": sm.AdjustedRandIndex()})
    with pytest.raises(sm.InvalidBatchError, match="do not accept weights"):
        suite.update(labels_true=[0, 1], labels_pred=[0, 1], sample_weight=[1.0, 2.0])
    assert suite.n_rows == 0


@pytest.mark.parametrize("metric", [sm.PairFBeta, sm.VMeasure])
@pytest.mark.parametrize("beta", [0.0, -1.0, math.inf, math.nan])
def test_beta_is_positive(metric, beta):
    with pytest.raises(ValueError, match="beta"):
        metric(beta=beta)


def test_unknown_averages_are_refused():
    with pytest.raises(ValueError, match="average"):
        sm.NormalizedMutualInfo(average="mean")


@pytest.mark.parametrize("cls", [sm.MutualInfo, sm.PearsonsContingencyCoefficient])
@pytest.mark.parametrize("differ", [0, 1])
def test_labelings_that_hardly_differ_have_limits(cls, differ):
    true = np.repeat([0, 1, 2], [30, 20, 10])
    pred = true.copy()
    pred[:differ] = 1
    metric = cls().update(true, pred)
    low, high = metric.confidence()
    # As unsure as Cramér's V, which has the same largest value for labelings of all sizes.
    v_low, _ = sm.CramersV().update(true, pred).confidence()
    assert 0 < low < metric.compute() * (1 - (1 - v_low) / 8)
    assert high >= metric.compute()
    if cls is sm.PearsonsContingencyCoefficient:
        assert high <= math.sqrt(2 / 3)
    balanced = cls().update(np.repeat([0, 1, 2], 20), np.repeat([2, 0, 1], 20)).confidence()
    assert 0 < balanced.low < balanced.high
