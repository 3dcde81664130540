"""Losses relative to that of the best constant, against the same formulas in fractions."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import streammetrics as sm

numbers = st.floats(-1e300, 1e300) | st.integers(-3, 3).map(float)
weights = st.floats(2.0**-60, 2.0**60) | st.sampled_from([1.0, 1e20, 0.1])
rows = st.lists(st.tuples(numbers, numbers, weights), min_size=1, max_size=12)


def fractions(rows):
    return [tuple(map(Fraction, row)) for row in rows]


def absolute(rows, constant=None):
    """Return the sum of absolute errors, which are rounded, or of those of a constant."""
    if constant is not None:
        return sum(w * abs(y - constant) for y, _, w in fractions(rows))
    return sum(Fraction(w) * Fraction(abs(y - p)) for y, p, w in rows)


def relative_absolute(rows):
    mean = sum(w * y for y, _, w in fractions(rows)) / sum(w for _, _, w in fractions(rows))
    null = absolute(rows, mean)
    return absolute(rows) / null if null else None


def saved_absolute(rows):
    null = min(absolute(rows, Fraction(y)) for y, _, _ in rows)
    return 1 - absolute(rows) / null if null else None


def fed(metric, rows):
    y, p, w = np.array(rows).T
    return metric.update(y, p, sample_weight=w)


def nearest(value):
    if value is None:
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def within(metric, value):
    """Whether the bounds of a metric hold a value, and are nan only where it is."""
    low, high = metric.bounds()
    if math.isnan(value):
        return math.isnan(low) == math.isnan(high) == math.isnan(metric.compute())
    return low <= value <= high and low <= metric.compute() <= high


CASES = {sm.RelativeAbsoluteError: relative_absolute, sm.D2AbsoluteError: saved_absolute}


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
@pytest.mark.parametrize("metric", CASES, ids=lambda metric: metric.__name__)
@given(rows=rows, max_bins=st.integers(2, 6))
@example(rows=[(1e16, 1e16, 1.0), (1e16, 1e16, 1.0), (1e16 + 2, 1e16, 1.0)], max_bins=2)
@example(rows=[(1.0, 1.0, 1e20), (2.0, 1.5, 1.0)], max_bins=2)
@example(rows=[(1.0, 1.0, 1.0), (1.0, 1.0, 1.0), (1 + 2.0**-52, 1.0, 1.0)], max_bins=2)
@example(rows=[(0.0, 2.0, 458937.0), (2.5529242186236218e-303, 0.0, 1.0)], max_bins=2)
def test_exact_below_the_budget_and_within_bounds_beyond_it(metric, rows, max_bins):
    expected = nearest(CASES[metric](rows))
    exact = fed(metric(), rows)
    assert exact.exact
    assert exact.compute() == expected or math.isnan(expected)
    assert within(exact, expected)
    rough = fed(metric(max_bins=max_bins), rows)
    assert within(rough, expected)
    low, high = rough.bounds()
    assert rough.exact == (not low < high)


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
@pytest.mark.parametrize("alpha", [0, 0.1, 0.5, 0.7, 1])
@given(
    rows=st.lists(st.tuples(*3 * [st.integers(-2000, 2000)]), min_size=1, max_size=12),
    max_bins=st.integers(2, 6),
)
@example(rows=[(-3, 0, 1), (-1, 0, 1), (0, 0, 1), (1, 0, 1), (2, 0, 1), (4, 0, 1)], max_bins=2)
@example(rows=[(370, -193, 1), (610, -24, 1), (-150, -20, 1), (-1470, -104, 1)], max_bins=2)
def test_few_bins_hold_the_share_of_the_pinball_loss(alpha, rows, max_bins):
    rows = [(float(y), float(p), float(abs(w) + 1)) for y, p, w in rows]
    exact = fed(sm.D2Pinball(alpha=alpha), rows)
    rough = fed(sm.D2Pinball(alpha=alpha, max_bins=max_bins), rows)
    assert within(rough, exact.compute())
    low, high = rough.bounds()
    assert rough.exact == (not low < high)


@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("max_bins", [2, 3, 64])
def test_normal_targets_in_few_bins(alpha, max_bins):
    rng = np.random.default_rng(0)
    y = rng.normal(size=5000)
    p = y + rng.normal(size=5000)
    exact = sm.D2Pinball(alpha=alpha).update(y, p).compute()
    rough = sm.D2Pinball(alpha=alpha, max_bins=max_bins).update(y, p)
    assert not rough.exact
    assert within(rough, exact)


def test_the_smallest_target_costs_nothing_at_level_0():
    for alpha, max_bins in ((0, 2), (0, 64), (1, 3)):
        metric = sm.D2Pinball(alpha=alpha, max_bins=max_bins).update(range(100), [0.0] * 100)
        with pytest.warns(sm.UndefinedMetricWarning, match="constant"):
            assert math.isnan(metric.compute())
        assert all(map(math.isnan, metric.bounds()))


def decimal(value):
    return Decimal(value.numerator) / Decimal(value.denominator)


def deviance(y, p, power):
    """Return the Tweedie deviance of one row, of fractions, to the digits of the context."""
    y, p, q = decimal(y), decimal(p), Decimal(power)
    if power == 1:
        return 2 * (y * (y / p).ln() - y + p)
    if power == 2:
        return 2 * ((p / y).ln() + y / p - 1)
    parts = y ** (2 - q) / ((1 - q) * (2 - q)), y * p ** (1 - q) / (1 - q), p ** (2 - q) / (2 - q)
    return 2 * (parts[0] - parts[1] + parts[2])


def saved_deviance(rows, power):
    with localcontext(prec=120):
        rows = fractions(rows)
        mean = sum(w * y for y, _, w in rows) / sum(w for _, _, w in rows)
        loss = sum(decimal(w) * deviance(y, p, power) for y, p, w in rows)
        return float(1 - loss / sum(decimal(w) * deviance(y, mean, power) for y, _, w in rows))


@pytest.mark.parametrize("power", [-1.0, 1.0, 1.1, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("targets", [(1.0, 2.0), (3.0, 7.0), (0.7, 700.0), (5.0, 0.01)])
@pytest.mark.parametrize("weight", [1e10, 5e18, 1e19, 1e20, 1e22])
def test_a_light_target_far_from_the_others(power, targets, weight):
    heavy, light = targets
    rows = [(heavy, heavy, weight), (light, 1.5, 1.0)]
    expected = saved_deviance(rows, power)
    value = fed(sm.D2Tweedie(power=power), rows).compute()
    assert 1 - value == pytest.approx(1 - expected, rel=1e-8)


@pytest.mark.parametrize("power", [-1.0, 1.0, 1.1, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("spread", [1e-3, 1e-8, 1e-9, 1e-10, 1e-11, 1e-15])
def test_targets_close_to_each_other(power, spread):
    targets = [3.0 * (1 + spread * k) for k in (0, 1, -2, 2.5)]
    rows = list(zip(targets, [3.0, 3.0, 3.0, targets[1]], [1.0, 2.0, 0.5, 1.0], strict=True))
    expected = saved_deviance(rows, power)
    value = fed(sm.D2Tweedie(power=power), rows).compute()
    assert 1 - value == pytest.approx(1 - expected, rel=1e-9)
