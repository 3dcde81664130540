"""Confidence of rows with weights: of tables, scores and quantiles, from Σ w² where rows are."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import streammetrics as sm
from streammetrics.inference.distributions import normal_quantile

Z = normal_quantile(0.975)


def labelled(rng, n=300):
    y = rng.integers(0, 2, n)
    return {"y_true": y, "y_pred": np.where(rng.random(n) < 0.7, y, 1 - y)}


def scored(rng, n=300):
    y = rng.integers(0, 2, n)
    return {"y_true": y, "y_score": 1 / (1 + np.exp(-(y + rng.normal(size=n))))}


def several(rng, n=300):
    y = rng.integers(0, 3, n)
    scores = rng.random((n, 3)) + np.eye(3)[y]
    return {"y_true": y, "y_score": scores / scores.sum(axis=1, keepdims=True)}


def valued(rng, n=300):
    return {"values": rng.normal(size=n)}


def wrong(rng, n=300):
    y = rng.normal(size=n)
    return {"y_true": y, "y_pred": y + rng.normal(size=n)}


EVERY = [
    (sm.Accuracy(), labelled), (sm.F1(), labelled), (sm.FBeta(beta=2.0), labelled),
    (sm.Specificity(), labelled), (sm.MatthewsCorrcoef(), labelled),
    (sm.CohenKappa(weights="linear"), labelled), (sm.BalancedAccuracy(), labelled),
    (sm.Recall(average="macro"), labelled), (sm.Precision(average="micro"), labelled),
    (sm.Jaccard(threshold=0.5), scored), (sm.ConfusionMatrix(normalize="true"), labelled),
    (sm.TopKAccuracy(k=1), several), (sm.ROCAUC(), scored), (sm.ROCAUC(max_fpr=0.3), scored),
    (sm.ROCAUC(average="weighted"), several), (sm.AveragePrecision(), scored),
    (sm.PRAUC(), scored), (sm.KolmogorovSmirnov(), scored),
    (sm.RecallAtPrecision(p=0.6), scored), (sm.ROCAUC(max_bins=64), scored),
]  # fmt: skip
CURVES = [
    (sm.ROCCurve(), "tpr"), (sm.PrecisionRecallCurve(), "precision"),
    (sm.CalibrationCurve(n_bins=5), "prob_true"), (sm.DETCurve(), "fnr"),
]  # fmt: skip


@pytest.mark.parametrize(("metric", "draw"), EVERY, ids=[repr(m) for m, _ in EVERY])
def test_rows_that_all_weigh_the_same_are_as_sure_as_those_of_weight_one(metric, draw):
    rows = draw(np.random.default_rng(1))
    plain = metric.copy().update(**rows).confidence()
    heavy = metric.copy().update(**rows, sample_weight=np.full(300, 2.5)).confidence()
    np.testing.assert_allclose(heavy.low, plain.low, rtol=2e-3)
    np.testing.assert_allclose(heavy.high, plain.high, rtol=2e-3)


@pytest.mark.parametrize(("metric", "of"), CURVES)
def test_curves_of_rows_that_all_weigh_the_same_are_as_sure_as_well(metric, of):
    rows = scored(np.random.default_rng(1))
    plain = metric.copy().update(**rows).confidence()
    heavy = metric.copy().update(**rows, sample_weight=np.full(300, 2.5)).confidence()
    for one, other in zip(heavy, plain, strict=True):
        np.testing.assert_allclose(getattr(one, of), getattr(other, of), rtol=1e-9)


def derived_error(metric, rows, weight):
    """Return √Σ w² (∂θ/∂w)² over the rows, by moving each weight."""
    total, step = 0.0, 2.0**-12
    for row in range(len(weight)):
        ends = []
        for sign in (1.0, -1.0):
            moved = weight.copy()
            moved[row] *= 1 + sign * step
            ends.append(metric.copy().update(**rows, sample_weight=moved).compute())
        total += ((ends[0] - ends[1]) / (2 * step)) ** 2
    return np.sqrt(total)


@pytest.mark.parametrize(
    ("metric", "draw"),
    [
        (sm.Accuracy(), labelled), (sm.MatthewsCorrcoef(), labelled),
        (sm.F1(average="macro"), labelled), (sm.ROCAUC(), scored),
        (sm.AveragePrecision(), scored),
    ],
)  # fmt: skip
def test_the_error_is_that_of_what_each_weight_does(metric, draw):
    rng = np.random.default_rng(2)
    n = 120 if isinstance(metric, sm.AveragePrecision) else 60
    rows, weight = draw(rng, n), rng.integers(1, 9, n) / 4
    low, high = metric.copy().update(**rows, sample_weight=weight).confidence()
    value = metric.copy().update(**rows, sample_weight=weight).compute()
    error = derived_error(metric, rows, weight)
    width = {sm.MatthewsCorrcoef: 2}.get(type(metric), 1)
    scale = (
        np.log((value + width - 1) / (1 - value)),
        error * width / ((value + width - 1) * (1 - value)),
    )
    ends = [1 / (1 + np.exp(-(scale[0] + sign * Z * scale[1]))) for sign in (-1, 1)]
    expected = [width * end - (width - 1) for end in ends]
    np.testing.assert_allclose([low, high], expected, atol=0.1 * (high - low))


def test_limits_of_the_brier_score_of_few_rows_stay_within_its_range():
    rows = [1, 0], [0.8474337369372327, 0.763774618976614]
    assert sm.BrierScore().update(*rows).confidence().high == 1.0
    assert sm.BrierScore(scale_by_half=False).update(*rows).confidence().high == 2.0


@pytest.mark.parametrize("metric", [sm.CalibrationSlope(), sm.CalibrationIntercept()])
def test_a_fit_of_weighted_rows_varies_as_they_do(metric):
    rng = np.random.default_rng(2)
    rows, weight = scored(rng, 60), rng.integers(1, 9, 60) / 4
    full = metric.copy().update(**rows, sample_weight=weight)
    reach = Z * derived_error(metric, rows, weight)
    expected = full.compute() - reach, full.compute() + reach
    np.testing.assert_allclose(full.confidence(), expected, rtol=1e-4)
    times = metric.copy().update(**rows, sample_weight=weight * 2.0**40)
    np.testing.assert_allclose(times.confidence(), full.confidence(), rtol=1e-9)


@pytest.mark.parametrize("metric", [sm.Quantile(q=0.5), sm.Quantile(q=0.9)])
def test_limits_of_quantiles_are_where_the_share_below_may_lie(metric):
    rng = np.random.default_rng(3)
    rows, weight = valued(rng, 400), rng.exponential(size=400)
    low, high = metric.copy().update(**rows, sample_weight=weight).confidence()
    order = np.argsort(rows["values"])
    share = np.cumsum(weight[order]) / weight.sum()
    below = rows["values"] <= metric.copy().update(**rows, sample_weight=weight).compute()
    error = np.sqrt((weight**2 * (below - metric.q) ** 2).sum()) / weight.sum()
    at = np.searchsorted(rows["values"][order], [low, high])
    expected = [metric.q - Z * error, metric.q + Z * error]
    np.testing.assert_allclose(share[at], expected, atol=0.15 * error + 0.01)
    even = metric.copy().update(**rows, sample_weight=np.full(400, 3.0)).confidence()
    plain = metric.copy().update(**rows).confidence()
    spread = np.diff(plain)[0]
    np.testing.assert_allclose(even, plain, atol=0.2 * spread)


def test_errors_of_a_regression_have_weighted_quantiles_too():
    rng = np.random.default_rng(4)
    rows = wrong(rng)
    low, high = sm.MedianAbsoluteError().update(**rows, sample_weight=rng.random(300)).confidence()
    assert 0 < low < high < 2


@pytest.mark.parametrize(
    ("metric", "draw"),
    [
        (sm.F1(), labelled), (sm.F1(threshold=0.5), scored), (sm.TopKAccuracy(k=1), several),
        (sm.ROCAUC(), scored), (sm.ROCAUC(max_bins=32), scored), (sm.ROCAUC(), several),
        (sm.Quantile(q=0.5), valued),
    ],
)  # fmt: skip
def test_squares_are_a_function_of_the_rows(metric, draw):
    rng = np.random.default_rng(5)
    rows, weight = draw(rng), rng.choice([0.1, 1.0, 1.0, 3.0, 0.7], 300)
    rows["sample_weight"] = weight
    whole = metric.copy().update(**rows)
    order = rng.permutation(300)
    parts = []
    for places in np.split(order, [7, 50, 51, 200]):
        own = {name: column[places] for name, column in rows.items()}
        parts.append(metric.copy().update(**own))
    first = metric.copy().update(
        **{n: c[weight == 1] for n, c in rows.items() if n != "sample_weight"}
    )
    rest = metric.copy().update(**{n: c[weight != 1] for n, c in rows.items()})
    for other in (
        sm.merge(parts),
        sm.merge(parts[::-1]),
        sm.merge([first, rest]),
        rest.merge(first),
    ):
        assert other.to_bytes() == whole.to_bytes()
    assert sm.from_bytes(whole.to_bytes()).to_bytes() == whole.to_bytes()
    assert sm.from_bytes(whole.to_bytes()).confidence() == whole.confidence()
    del rows["sample_weight"]
    plain = metric.copy().update(**rows)
    assert metric.copy().update(**rows, sample_weight=np.ones(300)).to_bytes() == plain.to_bytes()
    assert b"squares" not in plain.to_bytes()
    assert b"squares" in whole.to_bytes()


def test_weights_are_counted_in_any_unit():
    rng = np.random.default_rng(7)
    rows, weight = labelled(rng), rng.random(300)
    expected = sm.MatthewsCorrcoef().update(**rows, sample_weight=weight).confidence()
    for scale in (2.0**-1000, 2.0**-40, 2.0**900):
        moved = sm.MatthewsCorrcoef().update(**rows, sample_weight=weight * scale).confidence()
        np.testing.assert_allclose(moved, expected, rtol=1e-9)
    auc = sm.ROCAUC().update(**scored(rng), sample_weight=weight * 2.0**-600)
    with pytest.raises(sm.NoConfidenceError, match="not of their squares"):
        auc.confidence()


@pytest.mark.parametrize(
    "metric",
    [
        sm.KolmogorovSmirnov(), sm.EqualErrorRate(), sm.TopDecileLift(),
        sm.RecallAtPrecision(p=0.6), sm.PrecisionAtRecall(r=0.7),
        sm.SensitivityAtSpecificity(s=0.8), sm.SpecificityAtSensitivity(s=0.8),
    ],
)  # fmt: skip
@pytest.mark.parametrize("power", [-40, -13, 20])
def test_limits_of_many_scores_do_not_depend_on_the_unit_of_weights(metric, power):
    rng = np.random.default_rng(0)
    rows = scored(rng, 5000)
    weights = rng.choice([0.5, 1, 2, 3.7], 5000)
    one = metric.copy().update(**rows, sample_weight=weights).confidence()
    other = metric.copy().update(**rows, sample_weight=np.ldexp(weights, power)).confidence()
    assert other == pytest.approx(one, rel=1e-9)
    assert one.low < metric.copy().update(**rows, sample_weight=weights).compute() < one.high


@pytest.mark.parametrize("n", [10, 40, 300])
@pytest.mark.parametrize("scale", [1e-100, 1e-6, 1e-2, 2, 1e6, 1e100])
def test_limits_of_a_variance_do_not_depend_on_the_unit_of_weights(n, scale):
    rng = np.random.default_rng(n)
    values, weights = rng.lognormal(size=n), rng.choice([0.5, 1, 2, 3.7], n)
    metric = sm.Variance(spread=True)
    one = metric.copy().update(values, sample_weight=weights).confidence()
    other = metric.copy().update(values, sample_weight=scale * weights).confidence()
    assert other == pytest.approx(one, rel=1e-6)
    plain = metric.copy().update(values).confidence()
    equal = metric.copy().update(values, sample_weight=np.full(n, scale)).confidence()
    assert equal == pytest.approx(plain, rel=1e-6)


@pytest.mark.parametrize("power", [-1000, 520, 1000])
@pytest.mark.parametrize("metric", [
    sm.MAE(), sm.MSE(), sm.RMSE(), sm.MAPE(), sm.WAPE(), sm.MeanError(), sm.LogLoss(),
    sm.BrierScore(), sm.Perplexity(),
])  # fmt: skip
def test_limits_of_losses_do_not_depend_on_the_scale_of_weights(metric, power):
    """Squares of weights from 1e154 on are beyond float64, those of losses are not."""
    rng = np.random.default_rng(12)
    y, p, weight = rng.normal(3.0, 1.0, 60), rng.random(60), rng.random(60) + 0.5
    scores = isinstance(metric, (sm.LogLoss, sm.BrierScore, sm.Perplexity))
    columns = (y > 3 if scores else y, p)
    limits = [
        metric.copy().update(*columns, sample_weight=weight * scale).confidence()
        for scale in (1.0, 2.0**power)
    ]
    assert limits[0] == limits[1]
    assert np.isfinite(limits[0][:2]).all()


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150])
def test_a_variance_says_that_its_weights_cannot_be_squared(scale):
    metric = sm.Variance(spread=True).update([1.0, 2.0, 4.0], sample_weight=np.full(3, scale))
    with pytest.raises(sm.NoConfidenceError, match="rescale such weights"):
        metric.confidence()


def test_limits_at_all_times_are_of_rows_that_weigh_one():
    rng = np.random.default_rng(8)
    accuracy = sm.Accuracy().update(**labelled(rng), sample_weight=rng.random(300))
    with pytest.raises(sm.NoConfidenceError, match="count rows, and these have weights"):
        accuracy.confidence(anytime=True)


def test_where_no_row_errs_limits_are_of_as_many_rows_as_weights_are_worth():
    y = np.repeat([0, 1], 50)
    weight = np.tile([1.0, 3.0], 50)
    low, high = interval = sm.ROCAUC().update(y, y * 1.0, sample_weight=weight).confidence()
    assert high == 1
    assert low == pytest.approx(0.025 ** (1 / 40))  # (Σ w)² / Σ w² of either class
    assert interval.method.startswith("Clopper-Pearson of 40 rows")


def test_slices_of_weighted_rows_have_limits():
    rng = np.random.default_rng(9)
    rows = {**scored(rng), "w": rng.random(300), "key": rng.choice(["a", "b"], 300)}
    suite = sm.MetricSet(
        {"f1": sm.F1(threshold=0.5), "auc": sm.ROCAUC()}, columns={"sample_weight": "w"}
    )
    table = sm.Slices(suite, by=["key"]).update(rows).compute(confidence=0.9)
    for place, key in enumerate(["a", "b"]):
        own = {name: rows[name][rows["key"] == key] for name in ("y_true", "y_score", "w")}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            alone = suite.copy().update(own).confidence(0.9)
        for name in ("f1", "auc"):
            found = table[f"{name}_low"][place], table[f"{name}_high"][place]
            assert found == tuple(alone[name])


@pytest.mark.parametrize("weight", [1e-300, 1e300])
def test_weights_that_a_histogram_cannot_square_are_told_as_that(weight):
    metric = sm.ROCAUC().update([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4], sample_weight=[weight, 1, 1, 1])
    with pytest.raises(sm.NoConfidenceError, match="so far from 1 .*rescale such weights"):
        metric.confidence()


def test_light_rows_are_not_worth_more_than_rows():
    """Limits of four rows, of which one light one was wrong, were those of 24 rows."""
    limits = sm.Accuracy().update([1] * 4, [1, 1, 1, 0], sample_weight=[1, 1, 1, 0.1]).confidence()
    n, p = 3.1**2 / 3.01, 3 / 3.1
    z = 1.959963984540054
    centre, reach = p + z * z / 2 / n, z * np.sqrt(p * (1 - p) / n + z * z / 4 / n / n)
    wilson = [(centre - reach) / (1 + z * z / n), (centre + reach) / (1 + z * z / n)]
    assert list(limits[:2]) == pytest.approx(wilson, rel=1e-9)
    limits = sm.Accuracy().update([1, 1], [1, 0], sample_weight=[1, 1e-9]).confidence()
    assert limits.low < 0.3


def test_a_share_of_rows_is_one_whatever_the_metric_and_the_weights():
    rng = np.random.default_rng(0)
    for inside in (np.ones(30, int), rng.integers(0, 2, 30)):
        for weight in (None, np.full(30, 2.0), rng.random(30) + 0.1):
            rows = {"y_true": np.where(inside, 0.5, 2.0), "y_low": [0.0] * 30, "y_high": [1.0] * 30}
            found = sm.IntervalCoverage().update(**rows, sample_weight=weight).confidence()
            same = sm.Accuracy().update([1] * 30, inside, sample_weight=weight).confidence()
            assert list(found[:2]) == pytest.approx(list(same[:2]), rel=1e-9)


@pytest.mark.parametrize("metric", [sm.KolmogorovSmirnov(), sm.AveragePrecision(), sm.PRAUC()])
def test_limits_of_rows_of_which_three_have_half_of_the_weight_hold_the_value(metric):
    rng = np.random.default_rng(21)

    def sample(n):
        y = np.arange(n) % 2
        return y, rng.normal(size=n) + 1.5 * y

    value, n, held = metric.copy().update(*sample(100_000)).compute(), 1000, 0
    for _ in range(60):
        weight = np.ones(n)
        weight[rng.choice(n, 3, replace=False)] = (n - 3) / 3
        low, high = metric.copy().update(*sample(n), sample_weight=weight).confidence()
        held += low <= value <= high
    assert held >= 56
