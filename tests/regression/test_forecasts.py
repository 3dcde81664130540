"""Forecasts: what is refused of them, and what is certain past the budget of a histogram."""

from __future__ import annotations

import numpy as np
import pytest
from kinds.rows import with_parameters

import streammetrics as sm


@pytest.mark.parametrize(
    ("metric", "rows", "message"),
    [
        (
            sm.IntervalWidth(),
            {"y_true": [1, 2, 3], "y_low": [0, 3, 2], "y_high": [2, 1, 4]},
            r"y_low and y_high cross in 1 row, first in row 1 \(\[3.0, 1.0\]\)",
        ),
        (
            sm.CRPSQuantiles(levels=(0.1, 0.9)),
            {"y_true": [1, 2], "y_quantiles": [[0, 1], [2, 1]]},
            r"y_quantiles cross in 1 row, first in row 1",
        ),
        (
            sm.CRPSQuantiles(levels=(0.1, 0.5, 0.9)),
            {"y_true": [1, 2], "y_quantiles": [[0, 1], [2, 3]]},
            "y_quantiles has 2 numbers a row for 3 levels",
        ),
        (
            sm.CRPSGaussian(),
            {"y_true": [1.0], "y_mean": [0.0], "y_std": [0.0]},
            "y_std is outside .* in 1 row, first in row 0",
        ),
        (
            sm.MASE(),
            {"y_true": [1.0, 2.0], "y_pred": [0.0, 2.0], "scale": [1.0, -1.0]},
            "scale is outside .* in 1 row, first in row 1",
        ),
        (sm.PITHistogram(), {"pit": [0.5, 1.5]}, r"pit is outside \[0, 1\] in 1 row"),
        (
            sm.KLDivergence(),
            {"y_true": [[0.5, 0.5]], "y_score": [[0.25, 0.25, 0.5]]},
            "distributions over the same classes",
        ),
        (
            sm.CrossEntropy(),
            {"y_true": [[0.5, 0.25]], "y_score": [[0.5, 0.5]]},
            "y_true does not sum to 1 in 1 row, first in row 0",
        ),
    ],
)
def test_forecasts_that_cannot_be_are_refused(metric, rows, message):
    before = metric.to_bytes()
    with pytest.raises(sm.InvalidBatchError, match=message):
        metric.update(**rows)
    assert metric.to_bytes() == before


@pytest.mark.parametrize("levels", [(), (0.5, 0.5), (0.9, 0.1), (0.0, 1.0), 2.0, "a"])
def test_levels_ascend_between_0_and_1(levels):
    with pytest.raises(ValueError, match=r"CRPSQuantiles\(levels=.*ascending numbers between"):
        sm.CRPSQuantiles(levels=levels)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    "metric",
    [
        sm.D2AbsoluteError(max_bins=256),
        sm.D2Pinball(alpha=0.8, max_bins=256),
        sm.RelativeAbsoluteError(max_bins=256),
    ],
)
def test_bounds_hold_the_exact_value_past_the_budget(metric, seed):
    rng = np.random.default_rng(seed)
    y = rng.normal(3, 2, 2000)
    rows = {"y_true": y, "y_pred": y + rng.normal(size=2000)}
    if seed:
        rows["sample_weight"] = rng.exponential(size=2000)
    fed = metric.copy().update(**rows)
    exact = with_parameters(metric, max_bins=1 << 20).update(**rows)
    assert exact.exact
    assert not fed.exact
    assert fed.bounds().low <= exact.compute() <= fed.bounds().high
    assert fed.bounds().low <= fed.compute() <= fed.bounds().high
    assert fed.bounds().high - fed.bounds().low < 0.5


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
@pytest.mark.parametrize(
    "metric",
    [
        sm.D2AbsoluteError(), sm.D2Pinball(), sm.D2Tweedie(power=1), sm.RelativeAbsoluteError(),
        sm.AdjustedR2(n_features=1), sm.NRMSE(normalization="range"), sm.NRMSE(normalization="std"),
    ],
)  # fmt: skip
def test_of_a_constant_target_nothing_is_saved(metric):
    assert np.isnan(metric.update([2.0, 2.0, 2.0], [2.0, 3.0, 4.0]).compute())


def test_far_normal_distributions_are_a_line():
    far = sm.CRPSGaussian().update([1000.0], [0.0], [1.0]).compute()
    assert far == 1000 - 1 / np.sqrt(np.pi)


def test_limits_of_a_coverage_are_those_of_a_share():
    rows = {"y_true": np.arange(20.0), "y_low": np.zeros(20), "y_high": np.full(20, 17.5)}
    coverage, accuracy = sm.IntervalCoverage().update(**rows), sm.Accuracy()
    accuracy.update([1] * 20, rows["y_true"] <= 17.5)
    assert tuple(coverage.confidence()) == tuple(accuracy.confidence())
    assert coverage.confidence(anytime=True).low < 0.9 < coverage.confidence(anytime=True).high


def test_one_member_is_an_absolute_error():
    rng = np.random.default_rng(0)
    y, p = rng.normal(size=(2, 30))
    assert sm.CRPSEnsemble().update(y, p[:, None]).compute() == sm.MAE().update(y, p).compute()
