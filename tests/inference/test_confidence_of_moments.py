"""Confidence of ratios of moments: from what rows of a sample add, against moving each weight."""

from __future__ import annotations

import numpy as np
import pytest
from thinning import some

import streammetrics as sm
from streammetrics.inference.distributions import t_quantile

CORRELATIONS = [sm.PearsonCorrelation(spread=True), sm.ConcordanceCorrelation(spread=True)]
RATIOS = [
    sm.R2(spread=True), sm.ExplainedVariance(spread=True), sm.RelativeSquaredError(spread=True),
    sm.R2(spread=True, multioutput="variance_weighted"),
    sm.ExplainedVariance(spread=True, multioutput="variance_weighted"),
]  # fmt: skip


def rows(rng, n, wide):
    y = rng.gamma(2.0, size=(n, wide))
    return {"y_true": y, "y_pred": 0.3 + 0.8 * y * np.exp(0.4 * rng.normal(size=(n, wide)))}


def derived_error(metric, data, weight):
    total, step = 0.0, 2.0**-12
    for row in range(len(weight)):
        ends = []
        for sign in (1.0, -1.0):
            moved = weight.copy()
            moved[row] *= 1 + sign * step
            ends.append(metric.copy().update(**data, sample_weight=moved).compute())
        total += ((ends[0] - ends[1]) / (2 * step)) ** 2
    n = len(weight)
    return np.sqrt(total * n / (n - 1))


@pytest.mark.parametrize("wide", some([2, 1], every=2))
@pytest.mark.parametrize("metric", CORRELATIONS)
def test_the_error_is_that_of_what_each_weight_does(metric, wide):
    rng = np.random.default_rng(1)
    data, weight = rows(rng, 40, wide), rng.integers(1, 9, 40) / 4
    full = metric.copy().update(**data, sample_weight=weight)
    value, error = full.compute(), derived_error(metric, data, weight)
    reach = t_quantile(0.975, 39) * error
    ends = np.tanh(np.arctanh(value) + np.array([-1, 1]) * reach / (1 - value**2))
    np.testing.assert_allclose(full.confidence(), ends, rtol=1e-4)


def centred(x, weight):
    return x - np.average(x, axis=0, weights=weight)


@pytest.mark.parametrize("wide", some([2, 1], every=2))
@pytest.mark.parametrize("metric", RATIOS)
def test_the_error_of_a_ratio_is_of_what_each_row_does_to_all_others(metric, wide):
    rng = np.random.default_rng(1)
    data, weight = rows(rng, 40, wide), rng.integers(1, 9, 40) / 4
    e = data["y_true"] - data["y_pred"]
    if isinstance(metric, sm.ExplainedVariance):
        e = centred(e, weight)
    e2, y2 = e**2, centred(data["y_true"], weight) ** 2
    if getattr(metric, "multioutput", "") == "variance_weighted":
        e2, y2 = (side.sum(axis=1, keepdims=True) for side in (e2, y2))
    slopes = np.zeros(40)
    for output in range(e2.shape[1]):
        left, total = weight @ e2[:, output], weight @ y2[:, output]
        for row, w in enumerate(weight):
            a, b = e2[row, output], y2[row, output]
            slopes[row] += left / total * (a / (left - w * a) - b / (total - w * b)) / e2.shape[1]
    full = metric.copy().update(**data, sample_weight=weight)
    error = np.sqrt((weight**2 * slopes**2).sum() * 40 / 39)
    ratio = full.compute() if isinstance(metric, sm.RelativeSquaredError) else 1 - full.compute()
    low, high = ratio * np.exp(np.array([-1, 1]) * t_quantile(0.975, 39) * error / ratio)
    ends = (low, high) if isinstance(metric, sm.RelativeSquaredError) else (1 - high, 1 - low)
    np.testing.assert_allclose(full.confidence(), ends, rtol=1e-9)


def test_one_row_with_all_of_an_error_leaves_the_ratio_open():
    low, high = sm.R2(spread=True).update([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 9.0]).confidence()
    assert (low, high) == (-np.inf, 1.0)


def test_a_variance_has_limits_on_the_logarithm():
    rng = np.random.default_rng(2)
    x = np.sort(rng.exponential(size=500))
    low, high = sm.Variance(spread=True).update(x).confidence()
    cut = int(1.5 * np.sqrt(500))  # rows on either side that the mean is trimmed of
    around = (x - x[cut:-cut].mean()) ** 2
    error = np.sqrt(((around - x.var()) ** 2).sum() / 500 / 499)
    t = t_quantile(0.975, 499)
    lean = 500 / (500 - t)
    reach, middle = t * error * lean / x.var(), np.log(x.var() * lean)
    np.testing.assert_allclose(np.log([low, high]), [middle - reach, middle + reach], rtol=1e-9)


@pytest.mark.parametrize("n", [3, 5, 30])
def test_a_variance_of_few_rows_has_limits_around_it(n):
    x = np.random.default_rng(5).standard_normal(n)
    low, high = sm.Variance(spread=True).update(x).confidence()
    assert low < sm.Variance().update(x).compute() < high


def test_outputs_have_limits_of_their_own():
    data = rows(np.random.default_rng(3), 300, 2)
    each = sm.R2(spread=True, multioutput="raw_values").update(**data).confidence()
    for place in (0, 1):
        own = {name: column[:, place] for name, column in data.items()}
        alone = sm.R2(spread=True).update(**own).confidence()
        np.testing.assert_allclose([each.low[place], each.high[place]], alone, rtol=1e-9)


def test_of_many_rows_a_sample_tells_the_variance_and_all_rows_the_value():
    data = rows(np.random.default_rng(4), 30_000, 1)
    data = {name: column[:, 0] for name, column in data.items()}
    large = sm.R2(spread=True).update(**data)
    assert large.compute() == sm.R2().update(**data).compute()
    low, high = interval = large.confidence()
    assert "4,096 rows" in interval.method
    y, p = data["y_true"], data["y_pred"]
    e2, t2 = (y - p) ** 2, (y - y.mean()) ** 2
    error = np.sqrt(((e2 - e2.sum() / t2.sum() * t2) ** 2).sum()) / t2.sum()
    assert (high - low) / (2 * 1.96 * error) == pytest.approx(1, abs=0.2)
    shards = [sm.R2(spread=True).update(y[k::7], p[k::7]) for k in range(7)]
    assert sm.merge(shards).to_bytes() == large.to_bytes()
    assert sm.from_bytes(large.to_bytes()).confidence() == interval
    assert large.nbytes < 210_000


def test_without_a_sample_it_says_what_keeps_one():
    y = np.arange(5.0)
    for metric in (sm.R2(), sm.PearsonCorrelation()):
        with pytest.raises(sm.NoConfidenceError, match=r"\(spread=True\) keeps a sample of rows"):
            metric.update(y, y + 1).confidence()
    with pytest.warns(sm.UndefinedMetricWarning, match="limits that are nan"):
        assert np.isnan(sm.R2(spread=True).update([1.0], [1.0]).confidence().low)
