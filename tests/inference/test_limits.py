"""Limits by scale and by counting: against enumeration, and where nothing varies."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from streammetrics.inference.distributions import (
    anytime_limits,
    clopper_pearson,
    limits,
    share_limits,
    wilson,
)


def test_wilson_solves_the_score_equation():
    for s, n in ((0, 10), (3, 10), (10, 10), (2.5, 7.25), (999, 1_000_000)):
        low, high = wilson(np.float64(s), np.float64(n), 1.96)
        for side in (low, high):
            apart = (s / n - side) ** 2
            assert apart == pytest.approx(1.96**2 * side * (1 - side) / n, rel=1e-9, abs=1e-16)
        assert low <= s / n <= high


def test_clopper_pearson_is_scipys():
    for s, n in ((0, 5), (3, 10), (10, 10), (450, 1000)):
        expected = stats.binomtest(s, n).proportion_ci(0.95, method="exact")
        assert clopper_pearson(s, n, 0.025) == pytest.approx((expected.low, expected.high))


def test_a_share_of_rows_that_count_twice_is_as_sure_as_half_of_them():
    once = share_limits(30.0, 10.0, 0.025)
    assert share_limits(60.0, 20.0, 0.025, (2.0, 2.0)) == pytest.approx(once, rel=1e-14)


def test_odds_are_those_of_f1():
    low, high = share_limits(30.0, 20.0, 0.025)
    f1 = share_limits(30.0, 20.0, 0.025, odds=2.0)
    assert f1 == pytest.approx((2 * low / (1 + low), 2 * high / (1 + high)), rel=1e-14)


def test_scales():
    assert limits(0.5, 0.1, 2.0) == pytest.approx((0.3, 0.7))
    low, high = limits(4.0, 1.0, 2.0, 0.0)
    assert (low, high) == pytest.approx((4 / math.exp(0.5), 4 * math.exp(0.5)))
    low, high = limits(0.6, 0.1, 2.0, -1.0, 1.0)
    half = 2 * 0.1 / (1 - 0.36)
    assert (math.atanh(low), math.atanh(high)) == pytest.approx(
        (math.atanh(0.6) - half, math.atanh(0.6) + half)
    )


def test_values_at_an_end_and_without_an_error_have_no_limits():
    low, high = limits([1.0, 0.5, 0.5], [0.1, 0.0, 0.1], 2.0, 0.0, 1.0)
    assert np.isnan(low).tolist() == np.isnan(high).tolist() == [True, True, False]
    assert np.isnan(share_limits(0.0, 0.0, 0.025)).all()
    assert np.isnan(anytime_limits(0.0, 0.0, 0.05)).all()


def test_the_mixture_is_the_beta_binomial_one():
    for s, n in ((0.0, 1.0), (3.0, 10.0), (0.3, 5.5), (70.0, 70.0), (1234.0, 1e4)):
        low, high = anytime_limits(s, n, 0.05)
        for side in {low, high} - {0.0, 1.0}:
            grid = np.linspace(0, 1, 200_001)[1:-1]
            prior = grid**-0.5 * (1 - grid) ** -0.5 / math.pi
            ratio = s * np.log(grid / side) + (n - s) * np.log((1 - grid) / (1 - side))
            assert np.sum(prior * np.exp(ratio)) * 5e-6 == pytest.approx(20, rel=0.02)


def test_looking_after_every_row_misses_rarely_at_any_time():
    rng = np.random.default_rng(0)
    missed = 0
    for _ in range(40):
        hits = np.cumsum(rng.random(2_000) < 0.3)
        looks = range(20, 2_000, 90)
        sides = (anytime_limits(float(hits[n - 1]), float(n), 0.05) for n in looks)
        missed += any(not low <= 0.3 <= high for low, high in sides)
    assert missed <= 2
