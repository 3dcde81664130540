"""Outputs averaged with weights of their own."""

from __future__ import annotations

import math

import numpy as np
import pytest

import streammetrics as sm


def test_an_output_of_weight_0_does_not_count_though_it_is_undefined():
    rows = np.array([[1.0, 5.0], [2.0, 5.0], [4.0, 5.0]]), np.array([[1.0, 5.0], [2.5, 4], [4, 5]])
    options = {"force_finite": False}
    value = sm.R2(multioutput=(1, 0), **options).update(*rows).compute()
    assert value == sm.R2(**options).update(rows[0][:, 0], rows[1][:, 0]).compute()


@pytest.mark.parametrize(
    "metric", [sm.MAE, sm.RMSE, sm.MeanError, sm.WAPE, sm.GammaDeviance, sm.MedianAbsoluteError]
)
def test_weights_are_of_as_many_outputs(metric):
    metric = metric(multioutput=[1, 2, 3])
    metric.update([[1.0, 2.0], [3.0, 5.0]], [[1.0, 2.5], [4.0, 4.0]])
    for read in (metric.compute, metric.bounds, metric.confidence):
        with pytest.raises(sm.InvalidBatchError, match="3 weights for 2 outputs"):
            read()


@pytest.mark.parametrize("weights", [(), (0.0, 0), (-1, 2), (math.inf, 1), ("a", 1), "mean"])
def test_weights_are_numbers_that_can_be(weights):
    with pytest.raises(ValueError, match="weights of the outputs"):
        sm.MAE(multioutput=weights)


def test_limits_are_of_the_weighted_mean():
    rng = np.random.default_rng(0)
    y_true = rng.normal(size=(300, 2))
    y_pred = y_true + rng.normal(size=(300, 2)) * [1.0, 9.0]
    alone = sm.MAE().update(y_true[:, 0], y_pred[:, 0]).confidence()
    assert sm.MAE(multioutput=(1, 0)).update(y_true, y_pred).confidence() == pytest.approx(alone)
