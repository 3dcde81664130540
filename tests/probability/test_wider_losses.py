"""Losses and calibration beyond the oracles: what is certain past the budget, what is refused."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest
from kinds.rows import with_parameters
from oracles.base import assert_close

import streammetrics as sm
from streammetrics.core.results.values import plain
from streammetrics.testing import check_metric


def rows(seed, n=3000):
    rng = np.random.default_rng(seed)
    y_score = rng.beta(2, 3, n)
    weight = rng.integers(1, 4, n) / 2 if seed % 2 else np.ones(n)
    return {"y_true": rng.random(n) < y_score, "y_score": y_score, "sample_weight": weight}


def numbers(value):
    value = plain(value)
    return list(value.values()) if isinstance(value, dict) else [value]


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    "metric",
    [
        *(
            sm.CalibrationError(n_bins=5, norm=norm, strategy="quantile", max_bins=64)
            for norm in ("l1", "l2", "max")
        ),
        sm.CalibrationIntercept(max_bins=64),
        sm.CalibrationSlope(max_bins=64),
        *(
            sm.BrierDecomposition(n_bins=5, strategy=how, max_bins=64)
            for how in ("uniform", "quantile")
        ),
    ],
    ids=lambda metric: repr(metric).partition(" <")[0],
)
def test_bounds_hold_the_exact_value_past_the_budget(metric, seed):
    data = rows(seed)
    fed = metric.copy().update(**data)
    exact = with_parameters(metric, max_bins=1 << 20).update(**data)
    assert exact.exact
    assert not fed.exact
    sides = map(numbers, (fed.bounds().low, fed.compute(), fed.bounds().high))
    for low, value, high, true in zip(*sides, numbers(exact.compute()), strict=True):
        assert low <= true <= high
        assert low <= value <= high


def test_equal_masses_keep_equal_scores_together():
    error = sm.CalibrationError(n_bins=4, strategy="quantile", norm="max")
    error.update([0, 1, 1, 1, 0, 0, 1, 1], [0.5] * 7 + [0.75])
    assert error.compute() == 0.25
    curve = sm.CalibrationCurve(n_bins=4, strategy="quantile")
    curve.update([0, 1, 1, 1, 0, 0, 1, 1], [0.5] * 7 + [0.75])
    assert curve.compute().prob_pred.tolist() == [0.5, 0.75]


def test_a_decomposition_of_few_scores_is_that_of_the_brier_score():
    data = rows(1)
    data["y_score"] = data["y_score"].round(1)
    parts = sm.BrierDecomposition(n_bins=50).update(**data).compute()
    total = parts["reliability"] - parts["resolution"] + parts["uncertainty"]
    assert_close(total, sm.BrierScore().update(**data).compute(), 1e-12, 0)


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
@pytest.mark.parametrize("metric", [sm.CalibrationSlope, sm.CalibrationIntercept])
def test_a_fit_that_does_not_exist_is_nan(metric):
    assert np.isnan(metric().update([1, 1, 1], [0.2, 0.5, 0.75]).compute())
    if metric is sm.CalibrationSlope:
        for y_true in itertools.permutations([0, 0, 1]):
            parted = y_true != (0, 1, 0)
            assert np.isnan(metric().update(y_true, [0.1, 0.5, 0.75]).compute()) == parted
        assert np.isnan(metric().update([0, 1, 0, 1], [0.5] * 4).compute())


def test_extreme_probabilities_are_clipped_in_a_fit():
    slope = sm.CalibrationSlope().update([0, 1, 1, 0, 1], [0.0, 1.0, 0.0, 1.0, 0.5])
    assert np.isfinite(slope.compute())


def test_fits_of_saturated_probabilities_keep_their_digits():
    fit = sm.CalibrationIntercept
    assert fit().update([0, 1], [0.0, 1.0]).compute() == 0.0
    assert fit().update([0, 1, 0, 1], [0.0, 1.0, 1.0, 0.0]).compute() == 0.0
    # By symmetry a / 2 of these: 1000 exp(a - z) = 10 exp(-a - z).
    far = fit().update([0] * 1000 + [1] * 10, [0.0] * 1000 + [1.0] * 10).compute()
    assert_close(far, math.log(0.01) / 2, 1e-13, 0)
    # Newton's step from 0 would overshoot: all but the heaviest rows are beyond float64 there.
    slope = sm.CalibrationSlope().update(
        [1, 0, 0, 0, 0, 0, 0, 0, 1, 0],
        [1e-17, 1.0, 1e-05, 1e-17, 1e-15, 1e-17, 0.5, 0.5, 1e-15, 1e-05],
        sample_weight=[1e8, 2.0, 1e-05, 1e-05, 2.0, 1.0, 1e-05, 2.0, 2.0, 2.0],
    )
    assert_close(slope.compute(), -12.24064878054413, 1e-9, 0)  # mpmath, 60 digits


@pytest.mark.parametrize("score", [np.inf, 1e200])
def test_decision_values_whose_squares_overflow_are_refused(score):
    with pytest.raises(sm.InvalidBatchError, match="too large for a margin in 1 row, first in row"):
        sm.HingeLoss().update([0, 1], [0.5, score])


def test_ranked_scores_are_of_matrices():
    with pytest.raises(sm.InvalidBatchError, match=r"\(n, K\) scores are needed"):
        sm.RankedProbabilityScore().update([0, 1], [0.5, 0.25])
    with pytest.raises(sm.InvalidBatchError, match=r"\(n, K\) scores are needed"):
        sm.CalibrationError(average="top_label").update([0, 1], [0.5, 0.25])


def test_perplexity_of_samples_leaves_padding_out():
    scores = np.random.default_rng(0).dirichlet(np.ones(4), (2, 3))
    tokens = np.array([[1, 3, -100], [0, -100, -100]])
    whole = sm.Perplexity(ignore_index=-100).update(tokens, np.moveaxis(scores, -1, 1))
    kept = tokens >= 0
    alone = sm.Perplexity().update(tokens[kept], scores[kept])
    assert whole.compute() == alone.compute()
    assert whole.confidence().low < whole.compute() < whole.confidence().high


def test_a_metric_of_matrices_can_be_checked():
    rng = np.random.default_rng(0)
    columns = {"y_true": rng.integers(0, 3, 40), "y_score": rng.dirichlet(np.ones(3), 40)}
    check_metric(sm.RankedProbabilityScore(), columns)


@pytest.mark.parametrize("metric", [sm.CalibrationIntercept(), sm.CalibrationSlope()])
@pytest.mark.parametrize("exponent", [-350, -325, -310, -200, -40, -1])
@pytest.mark.parametrize("scores", [(0.2, 0.4, 0.6, 0.3), (1e-300, 1 - 1e-16, 0.5, 0.3)])
@pytest.mark.parametrize("labels", [(0, 1, 0, 1), (1, 0, 1, 0)])
def test_fits_of_classes_whose_weights_lie_far_apart(metric, exponent, scores, labels):
    weight = [10.0 ** (exponent // 2), 10.0 ** -(exponent // 2)] * 2
    fed = metric.copy().update(labels, scores, sample_weight=weight)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sm.UndefinedMetricWarning)
        assert not np.isinf(fed.compute())
    if exponent == -1:
        assert np.isfinite(fed.compute())
