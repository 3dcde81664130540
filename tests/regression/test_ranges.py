"""Errors whose powers are beyond float64, on either side, against fractions."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import streammetrics as sm


def minkowski(errors, weights, order):
    with localcontext(prec=60):
        total = sum(
            Decimal(weight) * Decimal(error) ** Decimal(order)
            for error, weight in zip(errors, weights, strict=True)
        )
        return float(total ** (1 / Decimal(order))) if total else 0.0


sizes = st.integers(-1000, 1000).map(lambda k: math.ldexp(1.375, k)) | st.sampled_from([0.0, 1.0])


@given(
    errors=st.lists(sizes, min_size=1, max_size=6),
    order=st.sampled_from([1, 1.5, 2]),
    data=st.data(),
)
@example(errors=[1e154, 1e154], order=2, data=None)
@example(errors=[1e-300, 3e-300], order=2, data=None)
def test_distances_up_to_order_2_of_all_floats(errors, order, data):
    weights = [1.0] * len(errors)
    if data is not None:
        weights = data.draw(
            st.lists(st.sampled_from([0.3, 1.0, 1e9]), min_size=len(errors), max_size=len(errors))
        )
    metric = sm.MinkowskiDistance(order=order)
    value = metric.update(np.zeros(len(errors)), errors, sample_weight=weights).compute()
    assert value == pytest.approx(minkowski(errors, weights, order), rel=1e-15, abs=0)


@pytest.mark.parametrize(
    ("order", "errors"),
    [
        (100, [1e-4, 0.0]),
        (100, [1e4, 1.0]),
        (10, [4e-33, 1e-33]),
        (10, [1e60, 1e-60]),
        (3, [1e-200, 3e-120]),
        (2.5, [1e200, 1.5e200]),
    ],
)
def test_distances_of_higher_order(order, errors):
    value = sm.MinkowskiDistance(order=order).update([0.0, 0.0], errors).compute()
    assert value == pytest.approx(minkowski(errors, [1, 1], order), rel=1e-15, abs=0)


def test_one_row_at_a_time_or_all_at_once_in_any_order():
    errors = np.array([1e-4, 1.0, 1e-5, 0.0, 1e4, 7.0, 3e-5])
    for order in (2, 3, 100):
        whole = sm.MinkowskiDistance(order=order).update(errors, np.zeros(7))
        parts = sm.MinkowskiDistance(order=order)
        for error in errors[::-1]:
            parts.update([error], [0.0])
        assert parts.to_bytes() == whole.to_bytes()


def test_powers_beyond_every_state():
    metric = sm.MinkowskiDistance(order=100).update([0.0, 0.0], [1e-8, 0.0])
    with pytest.warns(sm.UndefinedMetricWarning, match="powers of the errors vanish"):
        assert math.isnan(metric.compute())
    assert metric.update([0.0], [0.5]).compute() == 0.5
    with pytest.raises(sm.InvalidBatchError, match="have a loss beyond float64 in 1 row"):
        metric.update([0.0], [1e7])
    assert sm.MinkowskiDistance(order=100).update([1.0], [1.0]).compute() == 0.0


@pytest.mark.parametrize("unit", [1e-210, 1e-160, 1e-150, 1.0, 1e140])
def test_scaled_errors_of_every_size(unit):
    size = 1e70 if unit >= 1 else 1e-200
    y, scale = np.array([3.0, 5.0, 1.0]) * size, np.full(3, size / unit)
    metric = sm.RMSSE().update(y, np.zeros(3), scale, sample_weight=[1.0, 2.0, 0.5])
    rows = zip(y, scale, [1.0, 2.0, 0.5], strict=True)
    mean = sum(Fraction(a / b) ** 2 * Fraction(w) for a, b, w in rows) / Fraction(7, 2)
    root = Fraction(math.isqrt(int(mean * 2**3000)), 2**1500)
    assert metric.compute() == pytest.approx(float(root), rel=1e-15, abs=0)


def test_scaled_errors_do_not_depend_on_how_they_arrive():
    y, scale = [3e-200, 1.0, 2e-170, 0.0], [1.0, 2.0, 3.0, 4.0]
    whole = sm.RMSSE().update(y, [0.0] * 4, scale)
    parts = sm.RMSSE()
    for row in range(4):
        parts.update(y[row : row + 1], [0.0], scale[row : row + 1])
    assert parts.to_bytes() == whole.to_bytes()
    slices = sm.Slices(sm.MetricSet({"error": sm.RMSSE()}), by=[["key"]])
    slices.update(y_true=y, y_pred=[0.0] * 4, scale=scale, key=list("abab"))
    halves = [sm.RMSSE().update(y[k::2], [0.0] * 2, scale[k::2]).compute() for k in (0, 1)]
    assert slices.compute()["error"].tolist() == halves


@pytest.mark.parametrize(
    ("power", "targets"), [(-1.5, [1e-300, 2e-300, 3e-300]), (5.0, [1e150, 2e150, 3e150])]
)
def test_deviances_that_vanish(power, targets):
    metric = sm.D2Tweedie(power=power).update(targets, [targets[1]] * 3)
    with pytest.warns(sm.UndefinedMetricWarning, match="another unit of target and prediction"):
        assert math.isnan(metric.compute())
    whole = [y / targets[0] for y in targets]
    assert sm.D2Tweedie(power=power).update(whole, [whole[1]] * 3).compute() == pytest.approx(0.0)
