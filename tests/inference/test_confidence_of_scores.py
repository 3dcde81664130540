"""Confidence of metrics of scores: shardings, classes, curves, past the budget, and at the ends."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import streammetrics as sm

METRICS = (
    sm.ROCAUC(),
    sm.ROCAUC(max_fpr=0.3),
    sm.AveragePrecision(),
    sm.PRAUC(),
    sm.KolmogorovSmirnov(),
    sm.RecallAtPrecision(p=0.6),
    sm.PrecisionAtRecall(r=0.5),
    sm.SensitivityAtSpecificity(s=0.8),
)


def named(value):
    return repr(value).partition(" <")[0] if isinstance(value, sm.Metric) else str(value)


def rows(n=500, seed=0, places=None):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    s = 1 / (1 + np.exp(-(y + rng.standard_normal(n))))
    return y, s if places is None else np.round(s, places)


@pytest.mark.parametrize("metric", METRICS, ids=named)
def test_any_sharding_gives_the_same_limits_to_the_bit(metric):
    y, s = rows(places=2)
    whole = metric.copy().update(y, s).confidence()
    merged = sm.merge([metric.copy().update(y[k::5], s[k::5]) for k in (4, 1, 3, 0, 2)])
    assert sm.from_bytes(merged.to_bytes()).confidence() == whole
    assert whole.low < merged.compute() < whole.high


@pytest.mark.parametrize("metric", METRICS[:4], ids=named)
def test_errors_are_those_of_leaving_rows_out(metric):
    y, s = rows(300, places=2)
    values = [
        metric.copy().update(np.delete(y, row), np.delete(s, row)).compute() for row in range(300)
    ]
    error = np.sqrt(299 * np.var(values))
    low, high = metric.copy().update(y, s).confidence()
    assert (high - low) / 2 / 1.96 == pytest.approx(error, rel=0.15)


@pytest.mark.parametrize("metric", METRICS[:5], ids=named)
def test_past_the_budget_limits_are_widened_by_what_is_certain(metric):
    y, s = rows(4000)
    rough = type(metric)(**{**metric.config, "max_bins": 32}).update(y, s)
    exact, wide = metric.copy().update(y, s).confidence(), rough.confidence()
    certain = rough.bounds()
    # The largest of few distances is too large by less: its lower limit may be the higher one.
    floors = [certain.low] if isinstance(metric, sm.KolmogorovSmirnov) else [exact.low, certain.low]
    assert wide.low < min(floors)
    assert wide.high > max(exact.high, certain.high)


def test_a_perfect_order_falls_back_to_the_smaller_class_and_says_so():
    y = np.repeat([0, 1], [50, 12])
    interval = sm.ROCAUC().update(y, y.astype(float)).confidence()
    assert tuple(interval) == pytest.approx((0.025 ** (1 / 12), 1.0))
    assert "Clopper-Pearson of 12 rows" in interval.method
    below = sm.ROCAUC().update(y, 1.0 - y).confidence()
    assert tuple(below) == pytest.approx((0.0, 1 - 0.025 ** (1 / 12)))
    for metric in (sm.AveragePrecision(), sm.KolmogorovSmirnov()):
        assert metric.update(y, y.astype(float)).confidence().low < 0.9


AREAS = [
    (sm.ROCAUC(), 0),
    (sm.Gini(), -1),
    (sm.ROCAUC(max_fpr=0.1), None),
    (sm.ROCAUC(min_tpr=0.9), None),
]


@pytest.mark.parametrize(("metric", "least"), AREAS)
def test_a_perfect_order_of_weighted_rows_is_exactly_one(metric, least):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        y = np.repeat([0, 1], rng.integers(2, 40, 2))
        score, weights = y + rng.random(y.size), rng.choice([0.1, 0.2, 0.3, 3.7], y.size)
        found = metric.copy().update(y, score, sample_weight=weights)
        assert (found.compute(), *found.bounds()) == (1, 1, 1)
        assert found.confidence().high == 1
        assert found.confidence().method.startswith("Clopper-Pearson")
        if least is not None:
            below = metric.copy().update(y, -score, sample_weight=weights)
            assert (below.compute(), *below.bounds()) == (least, least, least)
    exactly = metric.copy().update([0, 0, 1, 1], [1, 2, 8, 9], sample_weight=[0.1, 0.2, 0.1, 0.1])
    assert exactly.compute() == 1


def test_the_largest_distance_is_lowered_by_what_it_is_too_large_as_a_maximum():
    """Of labels and scores that have nothing to do with each other there is one by chance."""
    rng = np.random.default_rng(3)
    y, s = rng.integers(0, 2, 200), rng.random(200)
    metric = sm.KolmogorovSmirnov().update(y, s)
    value, (low, _) = metric.compute(), metric.confidence()
    assert value > 0.08
    assert 0 <= low < value / 10


def test_limits_of_the_largest_distance_hold_its_population():
    """Those of a normal score, 1 apart, hold 0.383 of 40 samples but for a few."""
    rng, held = np.random.default_rng(8), 0
    for _ in range(40):
        y = rng.integers(0, 2, 100)
        low, high = sm.KolmogorovSmirnov().update(y, y + rng.standard_normal(100)).confidence()
        held += low <= 0.38292 <= high
    assert held >= 36


def test_one_positive_is_told_by_exact_limits():
    low, high = sm.ROCAUC().update([0, 0, 1, 0], [0.1, 0.2, 0.3, 0.4]).confidence()
    assert low < 0.1
    assert high > 0.9


def test_an_average_precision_of_one_positive_is_told_by_exact_limits():
    interval = sm.AveragePrecision().update([0, 0, 1, 0], [0.1, 0.2, 0.3, 0.4]).confidence()
    assert interval.method == "Clopper-Pearson of 1 rows, as no row varies"
    assert tuple(interval) == pytest.approx((0.0004, 0.9996), abs=1e-4)


def test_limits_of_an_average_precision_of_few_positives_are_as_often_too_high_as_too_low():
    """Scores of positives are 1.5 higher, of which and of 19 negatives to each it is 0.3351."""
    rng, beside = np.random.default_rng(40), np.zeros(2)
    for _ in range(200):
        y = (rng.random(800) < 0.05).astype(int)
        interval = sm.AveragePrecision().update(y, 1.5 * y + rng.standard_normal(y.size))
        low, high = interval.confidence()
        beside += low > 0.3351, high < 0.3351
    assert (beside <= 7).all()


@pytest.mark.parametrize("metric", METRICS, ids=named)
def test_a_class_without_rows_has_no_limits_and_warns(metric):
    with pytest.warns(sm.UndefinedMetricWarning, match="limits that are nan"):
        assert np.isnan(metric.copy().update([0, 0], [0.1, 0.9]).confidence()).all()
    with pytest.warns(sm.UndefinedMetricWarning, match="no rows were seen"):
        metric.copy().confidence()


def several(n=600):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, n)
    s = rng.random((n, 3)) + np.eye(3)[y]
    return y, s / s.sum(axis=1, keepdims=True)


def test_classes_have_limits_each_and_a_mean_has_those_of_classes_that_vary_together():
    y, s = several()
    low, high = each = sm.ROCAUC(average=None).update(y, s).confidence()
    for k in range(3):
        alone = sm.ROCAUC().update(y == k, np.ascontiguousarray(s[:, k])).confidence()
        assert (low[k], high[k]) == pytest.approx(tuple(alone))
    assert each.low.to_dict().keys() == {0, 1, 2}
    mean = sm.ROCAUC().update(y, s).confidence()
    assert "at most" in mean.method
    assert mean.high - mean.low == pytest.approx(np.mean(high - low), rel=0.05)
    weighted = sm.ROCAUC(average="weighted").update(y, s).confidence()
    assert weighted.high - weighted.low > mean.high - mean.low


def test_points_of_curves_are_shares():
    y, s = rows(400, places=1)
    roc = sm.ROCCurve().update(y, s)
    low, high = roc.confidence()
    value = roc.compute()
    assert (low.tpr[0], high.tpr[0], low.fpr[0], high.fpr[0]) == (0, 0, 0, 0)
    inside = slice(1, -1)
    assert (low.tpr[inside] < value.tpr[inside]).all()
    assert (value.fpr[inside] < high.fpr[inside]).all()
    place = 3
    recall = sm.Recall(threshold=value.thresholds[place]).update(y, s).confidence()
    assert (low.tpr[place], high.tpr[place]) == pytest.approx(tuple(recall))
    low, high = sm.PrecisionRecallCurve().update(y, s).confidence()
    precision = sm.Precision(threshold=low.thresholds[2]).update(y, s).confidence()
    assert (low.precision[2], high.precision[2]) == pytest.approx(tuple(precision))
    assert (low.precision[-1], high.recall[-1]) == (1.0, 0.0)


def test_bins_of_a_calibration_curve_are_shares():
    y, s = rows(400)
    curve = sm.CalibrationCurve(n_bins=4).update(y, s)
    low, high = curve.confidence()
    inside = (s > 0.25) & (s <= 0.5)
    share = sm.Accuracy().update(y[inside], np.ones(inside.sum(), int)).confidence()
    assert (low.prob_true[1], high.prob_true[1]) == pytest.approx(tuple(share))
    assert low.prob_pred == pytest.approx(curve.compute().prob_pred)


def test_curves_of_several_classes():
    y, s = several()
    for metric in (sm.ROCCurve(), sm.PrecisionRecallCurve(), sm.CalibrationCurve(n_bins=3)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            low, high = metric.update(y, s).confidence()
        assert len(low) == len(high) == 3


def test_anytime_is_not_for_areas():
    y, s = rows()
    for metric in (sm.ROCAUC(), sm.ROCCurve(), sm.CalibrationCurve()):
        with pytest.raises(sm.NoConfidenceError, match="anytime=True is for rates"):
            metric.update(y, s).confidence(anytime=True)
