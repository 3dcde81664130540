"""Tails and quantiles against SciPy, over parameters from a half to a billion."""

from __future__ import annotations

import math
import random

import pytest
from scipy import special, stats

from streammetrics.inference.distributions import (
    beta_cdf,
    beta_quantile,
    binomial_cdf,
    binomial_quantile,
    deviance,
    normal_quantile,
    normal_tail,
    t_quantile,
    t_tail,
)

TAILS = (1e-8, 1e-4, 0.005, 0.025, 0.1, 0.4, 0.6, 0.9, 0.975, 0.995)


def drawn(count, *, most=8.0, seed=0):
    rng = random.Random(seed)
    return [(10 ** rng.uniform(-0.3, most), 10 ** rng.uniform(-0.3, most)) for _ in range(count)]


def test_the_normal_distribution():
    for p in TAILS:
        assert normal_quantile(p) == pytest.approx(stats.norm.ppf(p), rel=1e-12)
        assert normal_tail(normal_quantile(p)) == pytest.approx(1 - p, rel=1e-12)
    assert normal_quantile(0.0) == -math.inf
    assert normal_quantile(1.0) == math.inf


@pytest.mark.parametrize("df", [0.5, 1, 2, 5.5, 63, 1e3, 1e6])
def test_the_t_distribution(df):
    for p in TAILS:
        assert t_quantile(p, df) == pytest.approx(stats.t.ppf(p, df), rel=1e-11)
    for t in (-40.0, -2.0, 0.0, 0.1, 3.0, 12.0):
        assert t_tail(t, df) == pytest.approx(stats.t.sf(t, df), rel=1e-11)


def test_tails_of_the_beta_distribution():
    for a, b in drawn(200):
        for p in (1e-4, 0.1, 0.5, 0.9):
            x = special.betaincinv(a, b, p)
            if 1e-290 < x < 1:
                below, above = special.betainc(a, b, x), special.betaincc(a, b, x)
                assert beta_cdf(x, a, b) == pytest.approx(below, rel=1e-10, abs=1e-13)
                assert 1 - beta_cdf(x, a, b) == pytest.approx(above, rel=1e-9, abs=1e-12)


def test_quantiles_of_the_beta_distribution():
    for a, b in drawn(100, seed=1):
        for p in (0.005, 0.025, 0.5, 0.975):
            expected = special.betaincinv(a, b, p)
            if expected > 1e-290:
                assert beta_quantile(p, a, b) == pytest.approx(expected, rel=1e-10)
    assert beta_quantile(0.025, 30, 1) == pytest.approx(0.025 ** (1 / 30), rel=1e-14)


@pytest.mark.parametrize("few", [1e-300, 1e-38, 1e-9, 0.3])
def test_beta_of_next_to_no_rows_on_one_side(few):
    for x in (1e-12, 0.5, 0.9999, 1 - 2**-50):
        above = math.exp(few * math.log1p(-x))  # of a = 1; of b = 1 it is the other way round
        assert beta_cdf(x, 1, few) == pytest.approx(1 - above, abs=1e-12)
        assert beta_cdf(1 - x, few, 1) == pytest.approx((1 - x) ** few, abs=1e-12)
    assert beta_quantile(0.975, 1, few) == pytest.approx(-math.expm1(math.log(0.025) / few))
    assert beta_quantile(0.025, few, 1) == pytest.approx(0.025 ** (1 / few), abs=1e-12)


@pytest.mark.parametrize("p", [0.5, 0.9, 0.013])
@pytest.mark.parametrize("n", [1, 7, 200, 100_000, 10**9])
def test_the_binomial_distribution(n, p):
    for q in (0.025, 0.2, 0.975):
        k = int(stats.binom.ppf(q, n, p))
        assert binomial_quantile(q, n, p) == k
        assert binomial_cdf(k, n, p) == pytest.approx(stats.binom.cdf(k, n, p), rel=1e-9)


def test_a_deviance_keeps_its_digits_where_both_are_near():
    assert deviance(1e9 + 1, 1e9) == pytest.approx(1 / (2e9 + 2 / 3), rel=1e-12)
    assert deviance(3.0, 1.0) == pytest.approx(3 * math.log(3) - 2, rel=1e-15)
    assert deviance(0.0, 2.0) == 2.0
    assert deviance(2.0, 0.0) == math.inf
