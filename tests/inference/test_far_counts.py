"""Limits of counts and sums that no float64 holds: nan, with a reason."""

from __future__ import annotations

import numpy as np
import pytest
from fuzz.forging import forged, joined, split

import streammetrics as sm

FAR = 10**400
Y = np.arange(1.0, 25.0)


def with_rows(blob):
    """Return a state that says it has seen more rows than a float64 counts."""

    def change(_, meta):
        for feed in meta["feeds"]:
            feed[1] = FAR

    return forged(blob, change)


def with_sums(blob, name, power=1504):
    """Return a state whose sums are 2**power times as large."""
    header, body = split(blob)
    start, end = header[name]["data_offsets"]
    exponent = np.frombuffer(body[start:end], np.int64) + power
    return joined(header, body[:start] + exponent.tobytes() + body[end:])


@pytest.mark.parametrize("metric", [sm.GammaDeviance(), sm.MAE(), sm.RMSE(), sm.MAPE()])
def test_more_rows_than_a_float64_counts(metric):
    back = sm.from_bytes(with_rows(metric.update(Y, Y + Y**0.5).to_bytes()))
    assert back.n_rows == FAR
    with pytest.warns(sm.UndefinedMetricWarning, match="beyond what a float64 holds"):
        limits = back.confidence()
    assert np.isnan(limits.low)
    assert np.isnan(limits.high)


def test_limits_of_errors_that_no_float64_holds_leave_everything_open():
    rows = {"reference": ["a b c", "b c d e", "a c"], "prediction": ["a b", "b c e e", "c a"]}
    blob = with_sums(sm.CER().update(**rows).to_bytes(), "0/products/exponent", 2400)
    limits = sm.from_bytes(blob).confidence()
    assert (limits.low, limits.high) == sm.CER.value_range


@pytest.mark.parametrize("metric", [sm.SubsetAccuracy(), sm.HammingLoss()])
def test_means_of_rows_whose_weights_no_float64_holds(metric):
    metric.update([[0, 1], [1, 1]], [[0, 1], [1, 0]], sample_weight=[0.5, 0.3])
    back = sm.from_bytes(with_sums(metric.to_bytes(), "0/table/amount/exponent", -2016))
    with pytest.warns(sm.UndefinedMetricWarning, match="beyond what a float64 holds"):
        assert np.isnan(back.compute())


@pytest.mark.parametrize("metric", [sm.CalibrationSlope(), sm.CalibrationIntercept()])
@pytest.mark.parametrize("each", [10**6, 10**7, 10**9])
def test_a_fit_of_billions_of_rows_has_limits_that_narrow_by_the_root(metric, each):
    rng = np.random.default_rng(0)
    true = rng.random(1000) < 0.3
    score = np.clip(rng.normal(0.3 + 0.4 * true, 0.2), 0.001, 0.999)
    few, many = (
        metric.copy().update(true, score, counts=np.full(1000, n)).confidence() for n in (1, each)
    )
    assert (many.high - many.low) * each**0.5 == pytest.approx(few.high - few.low, rel=1e-6)


@pytest.mark.parametrize("doublings", [60, 62, 64, 100])
@pytest.mark.parametrize(
    "metric", [sm.PrecisionAtRecall(r=0.5), sm.SensitivityAtSpecificity(s=0.5)]
)
def test_limits_of_more_rows_than_can_be_redrawn(metric, doublings):
    metric = metric.copy().update(np.arange(9) % 2, np.arange(9) % 7 / 7)
    metric = metric.update([0, 1], [0.2, 0.9], sample_weight=[0.5, 0.25])
    for _ in range(doublings):
        metric = sm.merge([metric, metric])
    low, high = metric.confidence()
    value = metric.compute()
    assert low <= value <= high
    assert high - low < 1e-6


@pytest.mark.parametrize("metric", [sm.PrecisionAtRecall(r=0.5), sm.ROCAUC()])
def test_limits_of_weights_that_no_float64_holds(metric):
    metric = metric.copy().update([0, 1, 0, 1], [0.2, 0.5, 0.6, 0.9], sample_weight=[0.5] * 4)
    for _ in range(1100):
        metric = sm.merge([metric, metric])
    with pytest.warns(sm.UndefinedMetricWarning, match="beyond what a float64 holds"):
        assert np.isnan(metric.confidence()).all()
