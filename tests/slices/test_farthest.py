"""Limits of the farthest two slices, against all pairs and equations solved by bisection."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from thinning import some

import streammetrics as sm
from streammetrics.slices.worst import difference_limits, ratio_limits


def estimates(rng, count):
    value = rng.random(count)
    low = value * rng.random(count)
    return value, low, value + rng.random(count)


def of_a_ratio(a, b, looking):
    """Return the ratio at which what is between them is what chance takes, from its definition."""
    (a, to_a), (b, to_b) = a, b

    def lacks(r):
        return math.hypot(to_a - a, r * (to_b - b)) - looking * (a - r * b)

    return brentq(lacks, a / b, 0.0) if looking > 0 else brentq(lacks, a / b, 1e9, xtol=1e-13)


@pytest.mark.parametrize("count", [2, 3, 7, pytest.param(60, marks=pytest.mark.long)])
def test_limits_are_those_of_all_pairs(count):
    rng = np.random.default_rng(count)
    for _ in range(20):
        value, low, high = estimates(rng, count)
        every = [(i, j) for i in range(count) for j in range(count) if i != j]
        least = max(
            value[i] - value[j] - math.hypot(value[i] - low[i], high[j] - value[j])
            for i, j in every
        )
        most = max(
            value[i] - value[j] + math.hypot(high[i] - value[i], value[j] - low[j])
            for i, j in every
        )
        found = difference_limits(value, low, high)
        assert found == pytest.approx((max(0.0, least), most), rel=1e-14)
        least = min(of_a_ratio((value[i], low[i]), (value[j], high[j]), 1) for i, j in every)
        most = min(of_a_ratio((value[i], high[i]), (value[j], low[j]), -1) for i, j in every)
        found = ratio_limits(value, low, high)
        assert found == pytest.approx((least, min(1.0, most)), rel=1e-6)


def test_equal_slices_and_limits_without_end_leave_no_pair_out():
    same = np.full(3, 0.5)
    assert difference_limits(same, same - 0.3, same + 0.4) == (0.0, pytest.approx(0.5))
    assert ratio_limits(same, same, same) == (1.0, 1.0)
    value, nowhere = np.array([0.2, 0.6]), np.full(2, np.inf)
    assert difference_limits(value, -nowhere, nowhere) == (0.0, np.inf)
    assert ratio_limits(value, np.zeros(2), nowhere) == (0.0, 1.0)
    zero = np.array([0.0, 0.8])  # none of the first slice, whose limit says how few there may be
    low, high = ratio_limits(zero, np.array([0.0, 0.7]), np.array([0.1, 0.9]))
    assert low == 0.0
    assert 0.1 / 0.9 < high < 0.1 / 0.7


def of_groups(shares, n, seed):
    rng = np.random.default_rng([seed, n])
    group = np.repeat(np.arange(len(shares)), n)
    right = rng.random(group.size) < np.repeat(shares, n)
    suite = sm.MetricSet({"acc": sm.Accuracy()})
    return sm.Slices(suite, by="group").update(
        y_true=np.ones_like(right), y_pred=right, group=group
    )


@pytest.mark.parametrize(
    ("shares", "most", "found"),
    some(
        [((0.5, 0.8), 0.97, 0.9), ((0.7, 0.8), 0.99, 0.15), ((0.5, 0.7, 0.7, 0.7, 0.9), 1.0, 0.97)]
    ),
)
def test_limits_of_the_farthest_hold_and_say_something(shares, most, found):
    """Of 0.7 and 0.8 of 60 rows each the limits of 3 samples in 100 were above 0, as at chance.

    Those of two slices hold in 95 samples of 100 where they are far apart, and miss on one side
    where they are near; of more slices they hold in more, as the farthest two are not known.
    """
    every = [of_groups(shares, 60, seed) for seed in range(300)]
    for limits, truth in (
        ([slices.gap("acc").confidence for slices in every], max(shares) - min(shares)),
        ([slices.ratio("acc").confidence for slices in every], min(shares) / max(shares)),
    ):
        assert 0.93 <= np.mean([low <= truth <= high for low, high in limits]) <= most
        none = round(truth)  # 0 or 1, of equal slices
        assert np.mean([not low <= none <= high for low, high in limits]) >= found


def test_limits_of_values_that_are_not_exact_hold_these_too():
    rng = np.random.default_rng(0)
    rows = {"y_true": [0, 1] * 400, "y_score": rng.random(800), "k": [0] * 400 + [1] * 400}
    coarse, fine = (
        sm.Slices(sm.MetricSet({"auc": sm.ROCAUC(max_bins=bins)}), by="k").update(rows)
        for bins in (4, 1 << 20)
    )
    low, high = coarse.gap("auc").confidence
    assert coarse.gap("auc").bounds.low < coarse.gap("auc").bounds.high
    assert low <= fine.gap("auc").value <= high
    assert "MOVER of 1 pairs of slices (Bonferroni)" in coarse.gap("auc").confidence.method
