"""Confidence of means of losses: against plain formulas, with weights, outputs, and at the ends."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

import streammetrics as sm


def rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.gamma(3.0, size=n)
    return y, y * np.exp(0.3 * rng.standard_normal(n))


def test_a_mean_of_values_takes_t():
    values, _ = rows()
    low, high = sm.Mean().update(values).confidence(0.9)
    expected = scipy.stats.t.interval(0.9, 299, values.mean(), scipy.stats.sem(values))
    assert (low, high) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("metric", "loss"),
    [
        (sm.MAE, lambda y, p: abs(y - p)),
        (sm.MSE, lambda y, p: (y - p) ** 2),
        (sm.MSLE, lambda y, p: (np.log1p(y) - np.log1p(p)) ** 2),
        (sm.PoissonDeviance, lambda y, p: 2 * (y * np.log(y / p) - y + p)),
        (sm.HuberLoss, lambda y, p: np.where(abs(y - p) < 1, (y - p) ** 2 / 2, abs(y - p) - 0.5)),
    ],
)
def test_losses_take_t_on_the_logarithm(metric, loss):
    y, p = rows()
    terms = loss(y, p)
    low, high = metric().update(y, p).confidence()
    half = scipy.stats.t.ppf(0.975, 299) * scipy.stats.sem(terms) / terms.mean()
    sides = terms.mean() / math.exp(half), terms.mean() * math.exp(half)
    assert (low, high) == pytest.approx(sides, rel=1e-9)


def test_a_root_has_the_root_of_limits():
    y, p = rows()
    squares = sm.MSE().update(y, p).confidence()
    roots = sm.RMSE().update(y, p).confidence()
    assert tuple(roots) == pytest.approx(np.sqrt(squares), rel=1e-12)


def test_the_error_of_a_mean_error():
    y, p = rows()
    low, high = sm.MeanError().update(y, p).confidence()
    expected = scipy.stats.t.interval(0.95, 299, (p - y).mean(), scipy.stats.sem(p - y))
    assert (low, high) == pytest.approx(expected, rel=1e-9)


def test_a_ratio_of_means_is_linearised():
    y, p = rows()
    e, ratio = abs(y - p), abs(y - p).sum() / y.sum()
    low, high = sm.WAPE().update(y, p).confidence()
    error = np.std(e - ratio * y, ddof=1) / math.sqrt(300) / y.mean()
    half = scipy.stats.t.ppf(0.975, 299) * error / ratio
    assert (low, high) == pytest.approx((ratio / math.exp(half), ratio * math.exp(half)), rel=1e-9)


def test_losses_of_probabilities():
    rng = np.random.default_rng(0)
    p = rng.random(400)
    y = (rng.random(400) < p).astype(int)
    for metric, terms in (
        (sm.LogLoss, -np.log(np.where(y, p, 1 - p))),
        (sm.BrierScore, (p - y) ** 2),
    ):
        low, high = metric().update(y, p).confidence()
        half = scipy.stats.t.ppf(0.975, 399) * scipy.stats.sem(terms) / terms.mean()
        assert low == pytest.approx(terms.mean() / math.exp(half), rel=1e-9)
        assert high == pytest.approx(terms.mean() * math.exp(half), rel=1e-9)


def test_weights_count_by_their_squares():
    y, p = rows()
    w = np.random.default_rng(1).exponential(size=300)
    e = abs(y - p)
    mean = np.average(e, weights=w)
    error = math.sqrt((w**2 * (e - mean) ** 2).sum() * 300 / 299) / w.sum()
    worth = w.sum() ** 2 / (w**2).sum()  # in rows of equal weight
    half = scipy.stats.t.ppf(0.975, worth - 1) * error / mean
    interval = sm.MAE().update(y, p, sample_weight=w).confidence()
    assert tuple(interval) == pytest.approx(
        (mean / math.exp(half), mean * math.exp(half)), rel=1e-9
    )
    same = sm.MAE().update(y, p, sample_weight=2 * w).confidence()
    assert tuple(same) == pytest.approx(tuple(interval), rel=1e-12)


def test_any_sharding_gives_one_state_and_the_same_limits():
    y, p = rows(999)
    w = np.where(np.arange(999) % 3, 1.0, 0.3)
    for metric in (sm.MAE(), sm.WAPE(), sm.MeanError()):
        whole = metric.copy().update(y, p, sample_weight=w)
        shards = [
            metric.copy().update(y[k::5], p[k::5], sample_weight=w[k::5]) for k in (3, 0, 4, 2, 1)
        ]
        merged = sm.merge(shards)
        assert merged.to_bytes() == whole.to_bytes()
        assert sm.from_bytes(merged.to_bytes()).confidence() == whole.confidence()
        assert merged.compute() == type(metric)().update(y, p, sample_weight=w).compute()


def test_outputs():
    y, p = rows(400)
    y, p = y.reshape(-1, 2), p.reshape(-1, 2)
    low, high = sm.RMSE(multioutput="raw_values").update(y, p).confidence()
    for k in range(2):
        alone = sm.RMSE().update(y[:, k], p[:, k]).confidence()
        assert (low[k], high[k]) == pytest.approx(tuple(alone), rel=1e-12)
    mean = sm.RMSE().update(y, p)
    assert mean.confidence().low < mean.compute() < mean.confidence().high
    assert "at most" in mean.confidence().method


def test_without_squares_the_message_says_what_to_type():
    y, p = rows()
    without = sm.MAE(spread=False).update(y, p)
    with pytest.raises(sm.NoConfidenceError, match=r"MAE\(spread=True\), the default, keeps them"):
        without.confidence()
    with pytest.raises(sm.IncompatibleMetricsError, match="spread"):
        sm.MAE().merge(without)


def test_rows_that_do_not_differ_and_none_have_no_limits():
    for values in ([0.1, 0.1, 0.1], [5.0]):
        with pytest.warns(sm.UndefinedMetricWarning, match="do not tell how it varies"):
            assert np.isnan(sm.Mean().update(values).confidence()).all()
    for metric in (sm.MAE(), sm.WAPE(), sm.LogLoss()):
        with pytest.warns(sm.UndefinedMetricWarning, match="no rows were seen"):
            assert np.isnan(metric.confidence()).all()


def test_losses_whose_squares_leave_float64_have_no_limits():
    metric = sm.MSE().update([1e100, 1.0], [0.0, 0.0])
    assert metric.compute() == 5e199
    with pytest.warns(sm.UndefinedMetricWarning, match="limits that are nan"):
        assert np.isnan(metric.confidence()).all()


def test_bounded_losses_have_limits_at_all_times():
    rng = np.random.default_rng(0)
    p = rng.random(400)
    y = (rng.random(400) < p).astype(int)
    always = sm.BrierScore().update(y, p).confidence(anytime=True)
    now = sm.BrierScore().update(y, p).confidence()
    assert 0 < always.low < now.low < now.high < always.high < 1
    assert sm.SMAPE().update(*rows()).confidence(anytime=True).high < 2
    with pytest.raises(sm.NoConfidenceError, match="anytime=True is for rates"):
        sm.MAE().update(*rows()).confidence(anytime=True)
    with pytest.raises(sm.NoConfidenceError, match="these have weights"):
        sm.SMAPE().update(*rows(), sample_weight=np.full(300, 0.5)).confidence(anytime=True)


def test_a_perplexity_beyond_float64_has_an_infinite_limit():
    low, high = sm.Perplexity().update([1, 0], [0.0, 0.5]).confidence()
    assert 1 < low < sm.Perplexity().update([1, 0], [0.0, 0.5]).compute() < high == math.inf
