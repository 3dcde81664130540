"""Differences at any time, and evaluations that stop early."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from thinning import some

import streammetrics as sm
from streammetrics.inference.distributions import anytime_difference

BETS = 0.49 * 2.0 ** (-np.arange(28) / 2)


def capital(counts, m, sign):
    """Return the average capital of all bets, number by number."""
    numbers = np.repeat([1.0, 0.0, -1.0], counts)
    return np.mean([np.prod(1 + sign * bet * (numbers - m)) for bet in BETS])


@pytest.mark.parametrize("counts", [(5, 80, 20), (30, 10, 3), (0, 50, 0), (9, 0, 0), (0, 3, 40)])
def test_limits_are_where_the_capital_is_2_over_alpha(counts):
    only, _, other = counts
    low, high, p = anytime_difference(only, other, sum(counts), 0.05)
    for limit, sign, end in ((low, 1, -1.0), (high, -1, 1.0)):
        mean = (only - other) / sum(counts)
        if capital(counts, end, sign) <= 40:
            assert limit == end
        else:
            edge = brentq(lambda m, s=sign: capital(counts, m, s) - 40, *sorted((end, mean)))
            assert limit == pytest.approx(edge, abs=1e-9)
    most = max(capital(counts, 0.0, sign) for sign in (1, -1))
    assert p == pytest.approx(min(1.0, 2 / most), rel=1e-9)
    assert (p < 0.05) == (low > 0 or high < 0)


def test_no_rows_have_no_limits():
    assert all(map(math.isnan, anytime_difference(0, 0, 0, 0.05)))


@pytest.mark.parametrize(
    ("only", "other"), some([(0.1, 0.1), (0.02, 0.02), (0.3, 0.1), (0.001, 0.01)], every=4)
)
def test_at_most_5_percent_ever_miss_in_20_000_looks(only, other):
    rng = np.random.default_rng(0)
    looks = np.unique(np.geomspace(2, 20_000, 300).astype(int))
    missed, runs = 0, 200
    for _ in range(runs):
        counts = rng.choice(3, 20_000, p=[only, other, 1 - only - other])
        firsts, others = np.cumsum(counts == 0), np.cumsum(counts == 1)
        truth = only - other
        for n in looks.tolist():
            pair = int(firsts[n - 1]), int(others[n - 1])
            if max(_log_capital(*pair, n, truth, sign) for sign in (1, -1)) > math.log(40):
                missed += 1
                break
    assert missed <= 0.05 * runs


def _log_capital(only, other, n, m, sign):
    gains = np.log1p(sign * BETS[:, None] * (np.array([1.0, 0.0, -1.0]) - m))
    return np.logaddexp.reduce(gains @ [only, n - only - other, other]) - math.log(BETS.size)


def duel(n=400):
    rng = np.random.default_rng(0)
    right = {name: (rng.random(n) < skill).astype(int) for name, skill in (("a", 0.8), ("b", 0.5))}
    rows = {"y_true": np.ones(n, int), **right}
    made = sm.Comparison({"accuracy": sm.Accuracy(), "f1": sm.F1()}, ["a", "b"])
    return made.update(rows), rows


def test_a_comparison_at_any_time_is_of_the_discordant_rows():
    made, rows = duel()
    with pytest.warns(sm.UndefinedMetricWarning, match="'f1': F1 has no .*anytime=True"):
        accuracy, f1 = made.compute(anytime=True, margin=0.1)
    only, other = ((rows["a"] > rows["b"]).sum(), (rows["b"] > rows["a"]).sum())
    expected = anytime_difference(int(only), int(other), 400, 0.05)
    assert (accuracy.low, accuracy.high, accuracy.p) == expected
    assert accuracy.verdict == "better"
    assert math.isnan(f1.low)
    assert f1.verdict == "undecided"
    narrow = made.compute()[0]
    assert accuracy.low < narrow.low < narrow.high < accuracy.high


def test_enough_is_whether_all_anytime_intervals_are_narrow():
    metrics = {"accuracy": sm.Accuracy(), "f1": sm.F1()}
    suite = sm.MetricSet(metrics)
    assert not suite.enough({"accuracy": 0.9})
    suite.update(y_true=[1, 0] * 500, y_pred=[1, 0, 0, 0] * 250)
    low, high = suite["accuracy"].confidence(anytime=True)
    assert suite.enough({"accuracy": high - low})
    assert not suite.enough({"accuracy": (high - low) * (1 - 1e-9)})
    assert suite.enough({"accuracy": 0.5, "f1": 0.5})
    assert not suite.enough({"accuracy": 0.5, "f1": 1e-3})
    assert not suite.enough({"accuracy": high - low}, level=0.99)
    made, _ = duel()
    assert made.enough({"accuracy": 0.3})
    assert not made.enough({"accuracy": 0.03})
    assert not made.enough({"f1": 0.5})
    for width, message in (
        ({}, "expected widths by metric"),
        (0.1, "expected widths by metric"),
        ({"acuracy": 0.1}, "no metric 'acuracy'; did you mean 'accuracy'"),
        ({"accuracy": 0}, "expected more than 0"),
    ):
        with pytest.raises(ValueError, match=message):
            suite.enough(width)
    with pytest.raises(ValueError, match="hold at one time only"):
        sm.MetricSet(metrics, unit="u").enough({"accuracy": 0.1})
