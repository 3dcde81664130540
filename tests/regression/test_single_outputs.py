"""Values of one output are read without fractions, and are those of the general way to the bit."""

from __future__ import annotations

import numpy as np
import pytest

import streammetrics as sm


@pytest.mark.parametrize("metric", [sm.MSE, sm.MAE, sm.R2, sm.MSLE])
@pytest.mark.parametrize("scale", [1e-160, 1.0, 1e9, 1e150])
@pytest.mark.parametrize("weighted", [False, True])
def test_one_output_is_the_only_one_of_several(metric, scale, weighted):
    rng = np.random.default_rng(3)
    for n in (1, 2, 50):
        y, p = rng.gamma(2.0, scale, (2, n))
        w = rng.gamma(2.0, size=n) if weighted else None
        ways = ("uniform_average", "raw_values", (2.5,))
        found = [metric(multioutput=way).update(y, p, sample_weight=w) for way in ways]
        if n == 1 and metric is sm.R2:
            with pytest.warns(sm.UndefinedMetricWarning, match="is nan"):
                values = [np.ravel(each.compute())[0] for each in found]
        else:
            values = [np.ravel(each.compute())[0] for each in found]
        assert np.array_equal(values, [values[0]] * 3, equal_nan=True)


def test_a_mean_beyond_float64_is_infinite_in_both():
    y, p = np.full(3, 1e200), np.zeros(3)
    assert sm.MSE().update(y, p).compute() == np.inf
    assert sm.MSE(multioutput="raw_values").update(y, p).compute()[0] == np.inf
    r2 = sm.R2().update(np.array([0.0, 1e-160, 2e-160]), np.array([1e200, 0.0, 0.0]))
    assert r2.compute() == -np.inf
