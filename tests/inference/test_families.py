"""Confidence of rankings, quantiles, clusterings and rank correlations."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

import streammetrics as sm


def queries(n=40, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "query": np.repeat(np.arange(n), 10),
        "relevance": rng.integers(0, 2, 10 * n),
        "score": rng.random(10 * n),
    }


def test_rankings_take_t_over_queries():
    metric = sm.MAP().update(**queries())
    values = list(metric.per_query().values())
    expected = scipy.stats.t.interval(0.9, 39, np.mean(values), scipy.stats.sem(values))
    assert tuple(metric.confidence(0.9)) == pytest.approx(expected, rel=1e-12)


def test_queries_that_all_have_the_same_value():
    hits = sm.HitRateAtK(k=1).update(np.arange(20), np.ones(20), np.zeros(20))
    assert tuple(hits.confidence()) == pytest.approx((0.025 ** (1 / 20), 1.0))
    gains = sm.DCG().update(np.arange(20), np.ones(20), np.zeros(20))
    with pytest.warns(sm.UndefinedMetricWarning, match="do not tell how it varies"):
        assert np.isnan(gains.confidence()).all()


def test_anytime_of_rankings_is_for_shares():
    now, always = (sm.NDCG().update(**queries()).confidence(anytime=on) for on in (False, True))
    assert always.low < now.low < now.high < always.high
    with pytest.raises(sm.NoConfidenceError, match="anytime=True is for rates"):
        sm.DCG().update(**queries()).confidence(anytime=True)


def test_quantiles_take_ranks_of_the_binomial():
    values = np.random.default_rng(0).standard_normal(101)
    low, high = sm.Quantile(q=0.5).update(values).confidence()
    ordered = np.sort(values)
    first, last = (int(scipy.stats.binom.ppf(p, 101, 0.5)) for p in (0.025, 0.975))
    assert (low, high) == (ordered[first - 1], ordered[last])


def test_few_rows_have_quantiles_without_a_limit():
    assert sm.Quantile(q=0.9).update([1.0, 2.0, 3.0]).confidence()[1] == math.inf
    low, high = sm.MedianAbsoluteError().update([0.0, 0.0], [1.0, 2.0]).confidence()
    assert (low, high) == (0.0, math.inf)


@pytest.mark.parametrize("q", [0.0, 0.1, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("weight", [None, 0.75])
def test_limits_of_few_rows_hold_the_value_that_is_read_between_two_of_them(q, weight):
    for n in (2, 3, 7):
        values = np.arange(n) ** 2.0
        weights = None if weight is None else np.full(n, weight)
        for method in ("linear", "averaged_inverted_cdf"):
            metrics = (
                sm.Quantile(q=q, method=method).update(values, sample_weight=weights),
                sm.AbsoluteErrorQuantile(q=q, method=method).update(
                    0 * values, values, sample_weight=weights
                ),
            )
            for metric in metrics:
                for level in (0.01, 0.5, 0.95):
                    low, high = metric.confidence(level)
                    assert low <= metric.compute() <= high


def test_quantiles_past_the_budget_are_widened_to_their_cells():
    values = np.random.default_rng(0).standard_normal(2000)
    exact = sm.Quantile(q=0.3).update(values).confidence()
    rough = sm.Quantile(q=0.3, max_bins=16).update(values).confidence()
    assert rough.low < exact.low
    assert rough.high > exact.high


def test_quantiles_of_outputs():
    true = np.random.default_rng(0).standard_normal((200, 2))
    low, high = sm.MedianAbsoluteError(multioutput="raw_values").update(true, 0 * true).confidence()
    mean = sm.MedianAbsoluteError().update(true, 0 * true).confidence()
    assert tuple(mean) == pytest.approx((low.mean(), high.mean()))
    assert "at most" in mean.method


def labelings(n=300, seed=0):
    rng = np.random.default_rng(seed)
    true = rng.integers(0, 4, n)
    return true, np.where(rng.random(n) < 0.8, true, rng.integers(0, 5, n))


@pytest.mark.parametrize("metric", [sm.RandIndex(), sm.AdjustedRandIndex(), sm.VMeasure()])
def test_clusterings_are_near_the_jackknife_of_rows(metric):
    true, pred = labelings()
    values = [
        metric.copy().update(np.delete(true, row), np.delete(pred, row)).compute()
        for row in range(len(true))
    ]
    low, high = metric.copy().update(true, pred).confidence()
    error, n = np.sqrt((len(true) - 1) * np.var(values)), len(true)
    bias = (n - 1) * (np.mean(values) - metric.copy().update(true, pred).compute())
    assert high - low == pytest.approx(2 * 1.96 * error + abs(bias), rel=0.05)


@pytest.mark.parametrize("metric", [sm.MutualInfo(), sm.VMeasure(), sm.TheilsU()])
def test_limits_hold_0_where_labels_are_independent(metric):
    """Chance alone raises such values: without that bias their limits never held 0."""
    rng, held = np.random.default_rng(0), 0
    for _ in range(20):
        held += metric.copy().update(*rng.integers(0, 10, (2, 1000))).confidence().low == 0
    assert held >= 18


def test_many_pairs_of_labels_are_drawn_anew_the_same_for_any_sharding():
    rng = np.random.default_rng(0)
    true, pred = rng.integers(0, 40, 3000), rng.integers(0, 40, 3000)
    pred = np.where(rng.random(3000) < 0.7, true, pred)
    whole = sm.PairPrecision().update(true, pred).confidence()
    parts = [sm.PairPrecision().update(true[k::3], pred[k::3]) for k in (2, 0, 1)]
    assert sm.merge(parts).confidence() == whole
    assert "bootstrap" in whole.method
    value = sm.merge(parts).compute()
    assert whole.low < value < whole.high


def test_equal_labelings_have_exact_limits():
    labels = np.repeat([0, 1, 2], [30, 20, 9])
    interval = sm.AdjustedRandIndex().update(labels, labels).confidence()
    assert tuple(interval) == pytest.approx((2 * 0.025 ** (1 / 9) - 1, 1.0))
    assert "9 rows" in interval.method


@pytest.mark.parametrize("places", [None, 0])
@pytest.mark.parametrize(
    "metric", [sm.KendallTau(), sm.KendallTau(variant="a"), sm.SpearmanRho()], ids=repr
)
def test_rank_correlations_are_near_the_jackknife_of_rows(metric, places):
    x, y = np.random.default_rng(0).multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], 250).T
    if places is not None:
        x, y = np.round(x, places), np.round(y, places)
    values = [
        metric.copy().update(np.delete(x, row), np.delete(y, row)).compute() for row in range(250)
    ]
    value, interval = metric.copy().update(x, y).compute(), metric.copy().update(x, y).confidence()
    half = (math.atanh(interval.high) - math.atanh(interval.low)) / 2 / 1.96
    assert half * (1 - value**2) == pytest.approx(np.sqrt(249 * np.var(values)), rel=0.05)


def test_a_grid_of_ranks_tells_nearly_as_much_as_all_of_them():
    x, y = np.random.default_rng(0).multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], 5000).T
    for metric in (sm.KendallTau(), sm.SpearmanRho()):
        few, all_of_them = metric.copy().update(x[:256], y[:256]), metric.copy().update(x, y)
        widths = [m.confidence().high - m.confidence().low for m in (few, all_of_them)]
        assert widths[0] / widths[1] == pytest.approx(math.sqrt(5000 / 256), rel=0.2)


def test_a_perfect_rank_correlation_has_exact_limits():
    interval = sm.KendallTau().update([1, 2, 3, 4, 5], [1, 2, 3, 4, 5]).confidence()
    assert tuple(interval) == pytest.approx((2 * 0.025 ** (1 / 5) - 1, 1.0))


@pytest.mark.parametrize(
    "metric",
    [
        sm.CramersV(), sm.TheilsU(), sm.MutualInfo(), sm.AdjustedMutualInfo(), sm.FowlkesMallows(),
        sm.AdjustedRandIndex(), sm.PearsonsContingencyCoefficient(),
    ],
    ids=repr,
)  # fmt: skip
def test_limits_of_clusterings_shrink_with_the_root_of_any_number_of_rows(metric):
    sides = [0, 0, 0, 1, 1, 1, 2, 2, 2], [0, 1, 2] * 3
    counts = np.array([50, 3, 2, 4, 60, 5, 1, 7, 40])

    def width(power):
        low, high = metric.copy().update(*sides, counts=counts * 10**power).confidence()
        return (high - low) * 10 ** (power / 2)

    # Differences are those of bias, and of the share of rows that is left out.
    assert [width(power) for power in (8, 12, 15)] == pytest.approx([width(6)] * 3, rel=1e-3)


@pytest.mark.parametrize("cls", [sm.CramersV, sm.TschuprowsT, sm.PearsonsContingencyCoefficient])
def test_associations_of_very_many_rows_that_are_nearly_independent_have_limits(cls):
    n = 10**17
    counts = [n // 4 + 1000, n // 4, n // 4, n // 4]
    low, high = cls().update([1, 1, 0, 0], [1, 0, 1, 0], counts=counts).confidence()
    assert low == 0 < high < 1e-9


def test_labelings_without_an_error_have_the_value_at_the_error_rate_that_they_allow():
    def table(rate):  # of two equal classes
        counts = np.rint(1e9 * np.array([1 - rate, rate, rate, 1 - rate])).astype(int)
        return {"labels_true": [0, 0, 1, 1], "labels_pred": [0, 1, 0, 1], "counts": counts}

    rate = 1 - 0.025 ** (1 / 200)
    for metric in (sm.NormalizedMutualInfo(), sm.MutualInfo(), sm.AdjustedRandIndex()):
        sure = metric.copy().update([0, 1], [0, 1], counts=[100, 100])
        assert sure.confidence().low <= metric.copy().update(**table(rate)).compute() + 1e-3
        assert sure.confidence().high == sure.compute()
    rare = sm.NormalizedMutualInfo().update([0, 1], [0, 1], counts=[8, 10**5]).confidence()
    assert rare.low < 0.7  # as one of the 8 rows may be wrong in three
    units = sm.MetricSet({"mi": sm.MutualInfo()}, unit="u")
    units.update(labels_true=[0, 1] * 100, labels_pred=[0, 1] * 100, u=np.arange(200) // 2)
    by_row = sm.MutualInfo().update([0, 1] * 100, [0, 1] * 100).confidence()
    assert units.confidence()["mi"].low <= by_row.low < 0.61


@pytest.mark.long
@pytest.mark.parametrize(("n", "rate"), [(200, 0.01), (2000, 0.001)])
def test_labelings_with_few_errors_hold_as_often_as_they_say(n, rate):
    shares = np.array([1 - rate, rate, rate, 1 - rate]) / 2
    sides, rng = ([0, 0, 1, 1], [0, 1, 0, 1]), np.random.default_rng(0)
    samples = rng.multinomial(n, shares, 300)
    metrics = [
        sm.NormalizedMutualInfo(), sm.MutualInfo(), sm.AdjustedMutualInfo(), sm.TheilsU(),
        sm.PairJaccard(), sm.AdjustedRandIndex(), sm.CramersV(),
    ]  # fmt: skip
    for metric in metrics:
        true = metric.copy().update(*sides, counts=np.rint(1e9 * shares).astype(int)).compute()
        held = 0
        for counts in samples:
            low, high = metric.copy().update(*sides, counts=counts).confidence()
            held += low <= true <= high
        assert held >= 0.95 * 300, metric
