"""The area under points: as scikit-learn's, and what cannot be one is refused."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.metrics as sk

import streammetrics as sm


def test_it_is_the_area_by_trapezoids():
    rng = np.random.default_rng(0)
    x, y = np.sort(rng.integers(0, 9, 20)), rng.normal(size=20)
    for along in (x, x[::-1]):
        assert sm.auc(along, y) == pytest.approx(sk.auc(along, y), rel=1e-14)
    assert sm.auc([2, 2], [1, 5]) == 0.0


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ([0, 1, 0.5], [0, 1, 1], r"x neither .* turns at place 2 \(0\.5\); sort the points by x"),
        ([0], [1], r"x has shape \(1,\): at least two"),
        ([0, 1], [1], r"y has shape \(1,\)"),
        ([0, 1, 2], [1, 2], "x and y differ in length: 3 and 2"),
        ([0, 1], [1, np.nan], "y is nan at place 1: numbers have to be finite"),
    ],
)
def test_what_is_no_curve_is_refused(x, y, message):
    with pytest.raises(ValueError, match=message):
        sm.auc(x, y)
