"""A comparison of two models does not depend on which is named first."""

from __future__ import annotations

import numpy as np
import pytest

import streammetrics as sm
from streammetrics.inference.paired import sign_flips

METRICS = [
    sm.Accuracy(threshold=0.5),
    sm.F1(threshold=0.5),
    sm.ROCAUC(),
    sm.AveragePrecision(),
    sm.LogLoss(),
    sm.D2LogLoss(),
    sm.KolmogorovSmirnov(),
    sm.CalibrationError(),
    sm.CalibrationInTheLarge(),
    sm.EqualErrorRate(),
    sm.RecallAtPrecision(p=0.7),
]


def rows(n=400):
    rng = np.random.default_rng(7)
    y = rng.integers(0, 2, n)
    scores = {
        m: np.clip(0.5 * y + rng.normal(0.25, s, n), 0, 1) for m, s in (("b", 0.3), ("a", 0.4))
    }
    return y, scores


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("unit", [None, "user"])
@pytest.mark.parametrize("metric", METRICS, ids=repr)
def test_the_order_of_models_does_not_change_a_comparison(metric, unit, weighted):
    y, scores = rows()
    more = {"sample_weight": np.random.default_rng(1).exponential(size=len(y))} if weighted else {}
    if unit:
        more[unit] = np.arange(len(y)) % 30
    found = []
    for models in (["a", "b"], ["b", "a"]):
        comparison = sm.Comparison({"m": metric.copy()}, models, unit=unit)
        comparison.update(y_true=y, **scores, **more)
        (line,) = comparison.compute()
        found.append(line)
    one, other = found
    assert (one.p, one.low, one.high) == pytest.approx((other.p, -other.high, -other.low), rel=1e-9)


@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("metric", METRICS, ids=repr)
def test_another_model_does_not_change_a_comparison(metric, rounded):
    y, scores = rows()
    scores["0"] = np.random.default_rng(2).random(len(y))
    if rounded:  # rows repeat
        scores = {name: np.round(score, 1) for name, score in scores.items()}
    two, three = (
        sm.Comparison({"m": metric.copy()}, models).update(
            y_true=y, **{model: scores[model] for model in models}
        )
        for models in (["b", "a"], ["b", "0", "a"])
    )
    (one,) = two.compute()
    (other,) = [line for line in three.compute() if (line.model, line.against) == ("b", "a")]
    assert (one.p, one.low, one.high) == pytest.approx((other.p, other.low, other.high), rel=1e-9)


@pytest.mark.parametrize("scale", [3.0, 0.1, 2.0**40])
@pytest.mark.parametrize("metric", METRICS, ids=repr)
def test_the_unit_of_weights_does_not_change_a_comparison(metric, scale):
    """Rows were dealt to the groups of a jackknife by a hash of their weights, too."""
    y, scores = rows()
    weight, found = np.random.default_rng(1).exponential(size=len(y)), []
    for weights in (weight, weight * scale):
        comparison = sm.Comparison({"m": metric.copy()}, ["a", "b"])
        (line,) = comparison.update(y_true=y, **scores, sample_weight=weights).compute()
        found.append((line.p, line.low, line.high))
    assert found[0] == pytest.approx(found[1], rel=1e-7)


@pytest.mark.parametrize("n", [8, 40])
def test_sign_flips_are_the_same_for_both_orders(n):
    gaps = np.random.default_rng(n).normal(0.2, 1, n)
    assert sign_flips(gaps) == sign_flips(-gaps) == sign_flips(gaps[::-1])
