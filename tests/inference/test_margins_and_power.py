"""Margins, verdicts, power, and the comparison of states of the same units."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import streammetrics as sm
from streammetrics.inference.paired import sign_flips


def duel(gaps, metric=None):
    """Return two models whose values differ by these numbers, row by row."""
    gaps = np.asarray(gaps, float)
    metric = sm.MAE() if metric is None else metric
    made = sm.Comparison({"m": metric}, {"a": "a", "b": "b"})
    return made.update(y_true=np.zeros(gaps.size), a=10 + gaps, b=np.full(gaps.size, 10.0))


def limits_of(gaps, level=0.95):
    half = stats.t.ppf((1 + level) / 2, len(gaps) - 1) * stats.sem(gaps)
    return np.mean(gaps) - half, np.mean(gaps) + half


@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize("shift", np.linspace(-0.3, 0.3, 13))
@pytest.mark.parametrize("margin", [0, 0.05, 0.2])
def test_verdicts_follow_the_limits_in_the_stated_order(level, shift, margin):
    gaps = np.random.default_rng(0).normal(0, 1, 200)
    gaps += shift - gaps.mean()
    (line,) = duel(gaps).compute(level, margin=margin)
    low, high = limits_of(gaps, level)
    np.testing.assert_allclose([line.low, line.high], [low, high], rtol=1e-9, atol=1e-12)
    low, high = -high, -low  # the lower an error, the better
    expected = (
        "better" if low > 0 else
        "not worse" if low > -margin else
        "worse" if high < 0 else "undecided"
    )  # fmt: skip
    assert (line.verdict, line.margin) == (expected, margin)


def test_a_margin_is_one_number_or_one_by_metric():
    rng = np.random.default_rng(0)
    rows = {"y_true": rng.normal(size=50), "a": rng.normal(size=50), "b": rng.normal(size=50)}
    metrics = {"mae": sm.MAE(), "mse": sm.MSE(), "bias": sm.MeanError()}
    made = sm.Comparison(metrics, {"a": "a", "b": "b"}).update(rows)
    every = made.compute(margin=9.0)
    assert [line.margin for line in every] == [9.0, 9.0, None]
    assert [line.verdict for line in every] == ["not worse", "not worse", "no evidence"]
    assert "margin" in repr(every).splitlines()[0]
    one = made.compute(margin={"mse": 9})
    assert [line.margin for line in one] == [None, 9.0, None]
    assert "margin" not in repr(made.compute()).splitlines()[0]
    for margin, message in (
        ({"msa": 1}, "no metric 'msa'; did you mean 'ms"),
        ({"bias": 1}, "'bias', .* has no better direction"),
        ({"mae": -1}, "expected a number >= 0"),
        (math.nan, "expected a number >= 0"),
        ({"mae": True}, "expected a number >= 0"),
        ({}, "margin={}"),
    ):
        with pytest.raises(ValueError, match=message):
            made.compute(margin=margin)


def test_nothing_known_is_undecided():
    rows = {"y_true": [1.0], "a": [2.0], "b": [3.0]}
    made = sm.Comparison({"mae": sm.MAE()}, {"a": "a", "b": "b"}).update(rows)
    assert made.compute(margin=0.1)[0].verdict == "undecided"


def test_detectable_is_so_many_standard_errors():
    gaps = np.random.default_rng(0).normal(0, 1, 30)
    reach = stats.t.ppf(0.975, 29) + stats.t.ppf(0.9, 29)
    assert duel(gaps).detectable(0.9)["m"] == pytest.approx(reach * stats.sem(gaps), rel=1e-9)


def test_units_needed_are_the_fewest_that_detect_the_difference():
    gaps = np.random.default_rng(0).normal(0, 1, 30)
    spread = np.std(gaps, ddof=1)

    def detects(n, difference):
        reach = stats.t.ppf(0.975, n - 1) + stats.t.ppf(0.8, n - 1)
        return reach * spread / math.sqrt(n) <= difference

    for difference in (0.02, 0.1, 0.5, 3.0):
        n = sm.units_needed(duel(gaps), difference)["m"]
        assert detects(n, difference)
        assert not detects(n - 1, difference)
    assert sm.units_needed(duel(gaps), {"m": 0.1}) == sm.units_needed(duel(gaps), 0.1)
    with pytest.raises(ValueError, match="no metric 'n'"):
        sm.units_needed(duel(gaps), {"n": 0.1})
    for wrong in (0, -1, math.inf, {"m": 0}):
        with pytest.raises(ValueError, match="expected a positive number"):
            sm.units_needed(duel(gaps), wrong)
    for power in (0, 1, True, "0.8"):
        with pytest.raises(ValueError, match="expected a share"):
            duel(gaps).detectable(power)


def test_units_needed_of_one_state_are_those_of_each_of_two_samples():
    values = np.random.default_rng(0).normal(0, 1, 4000)
    needed = sm.units_needed(sm.Mean().update(values), 0.1)["Mean"]
    exact = 2 * ((stats.norm.ppf(0.975) + stats.norm.ppf(0.8)) * values.std() / 0.1) ** 2
    assert needed == pytest.approx(exact, rel=0.01)
    kept = kept_by_unit(np.arange(5000), np.arange(5000) % 3 == 0)
    with pytest.raises(ValueError, match="groups of 'u' are kept, and not how many"):
        sm.units_needed(kept, 0.1)
    attempts = sm.PassAtK(k=1).update(np.repeat(np.arange(40), 5), np.arange(200) % 3 == 0)
    assert sm.units_needed(attempts, 0.05)["PassAtK"] > 2


@pytest.mark.long
def test_power_is_within_3_points_of_simulation():
    rng = np.random.default_rng(0)
    n, samples = 500, 1500
    both = np.array([0.10, 0.15])  # rows that only the one, or only the other, has right

    def drawn(shift):
        only = rng.choice(3, n, p=[both[0] + shift / 2, both[1] - shift / 2, 1 - both.sum()])
        rows = {"y_true": np.ones(n, int), "a": (only != 1) * 1, "b": (only != 0) * 1}
        return sm.Comparison({"m": sm.Accuracy()}, {"a": "a", "b": "b"}).update(rows)

    both = np.array([0.125, 0.125])
    least = np.mean([drawn(0.0).detectable()["m"] for _ in range(50)])
    better = [drawn(least).compute(margin=0)[0].verdict == "better" for _ in range(samples)]
    assert np.mean(better) == pytest.approx(0.8, abs=0.03 + 0.02)  # two errors of the simulation
    equal = [drawn(0.0).compute(margin=least)[0].verdict for _ in range(samples)]
    assert np.isin(equal, ["better", "not worse"]).mean() == pytest.approx(0.8, abs=0.05)
    assert np.mean(np.array(equal) == "worse") <= 0.05


def answers(rng, shift=0.0, units=200, each=4):
    """Return the unit of each row, and whether either of two models has it right."""
    hard = np.repeat(rng.random(units), each)
    right = [rng.random(units * each) < np.clip(hard + skill, 0, 1) for skill in (0.0, shift)]
    return np.repeat(np.arange(units), each), right


def kept_by_unit(unit, right):
    rows = {"y_true": np.ones(right.size, int), "y_pred": right.astype(int), "u": unit}
    return sm.MetricSet({"m": sm.Accuracy()}, unit="u").update(rows)


def states(rng, **given):
    """Return two sets of the same units, of which the second is better by a shift."""
    unit, right = answers(rng, **given)
    return [kept_by_unit(unit, each) for each in right]


def test_sets_of_the_same_units_are_paired():
    unit, right = answers(np.random.default_rng(0), shift=0.05)
    old, new = (kept_by_unit(unit, each) for each in right)
    (line,) = sm.compare(new, old, paired=True, margin=0.01)
    (apart,) = sm.compare(new, old, margin=0.01)
    assert line.high - line.low < 0.7 * (apart.high - apart.low)
    gaps = (right[1].astype(float) - right[0]).reshape(200, -1).mean(axis=1)
    half = stats.t.ppf(0.975, 199) * math.sqrt(np.var(gaps, ddof=1) / 200)
    expected = [line.difference - half, line.difference + half]
    np.testing.assert_allclose([line.low, line.high], expected, rtol=1e-9)
    assert line.test == "200 units, sign flips"
    assert line.p == pytest.approx(sign_flips(gaps), abs=0.01)


def test_units_with_other_rows_cannot_be_paired():
    old, new = states(np.random.default_rng(0))
    new.update({"y_true": [1], "y_pred": [1], "u": [3]})
    message = r"other rows in a \(801\) than in b \(800"
    with pytest.raises(sm.IncompatibleMetricsError, match=message):
        sm.compare(new, old, paired=True)
    plain = sm.MetricSet({"m": sm.Accuracy()}).update(y_true=[1], y_pred=[1])
    with pytest.raises(sm.IncompatibleMetricsError, match="unit is None in a and 'u' in b"):
        sm.compare(plain, old, paired=True)
    with pytest.raises(sm.StreamMetricsError, match="keeps no values of units"):
        sm.compare(plain, plain.copy(), paired=True)
    with pytest.raises(ValueError, match="unit='v'"):
        sm.compare(old, old.copy(), paired=True, unit="v")


def test_rankings_and_attempts_are_paired_by_their_own_units():
    rng = np.random.default_rng(0)
    unit, solved = np.repeat(np.arange(60), 4), rng.random((60, 4)) < rng.random((60, 1))
    better = solved | (rng.random((60, 4)) < 0.15)
    old, new = (sm.PassAtK(k=2).update(unit, each.ravel()) for each in (solved, better))
    (line,) = sm.compare(new, old, paired=True)
    gaps = np.array(list(new.per_unit().values())) - list(old.per_unit().values())
    np.testing.assert_allclose(line[6:8], limits_of(gaps), rtol=1e-9)
    assert (line.test, line.verdict) == ("sign flips", "a better")
    few = sm.PassAtK(k=2).update(unit[:-4], solved.ravel()[:-4])
    with pytest.raises(sm.StreamMetricsError, match="other units .* 1 of them, first 59"):
        sm.compare(new, few, paired=True)
    query, score = np.repeat(np.arange(30), 5), rng.random((2, 150))
    relevance = rng.integers(0, 2, 150)
    runs = dict(zip("ab", score, strict=True))
    docs = np.tile(np.arange(5), 30)
    one, other = (sm.NDCG().update(query, relevance, s, docs) for s in score)
    trial = sm.Comparison({"NDCG": sm.NDCG()}, {name: name for name in runs})
    trial.update(query=query, relevance=relevance, doc=docs, **runs)
    assert sm.compare(one, other, paired=True)[0][3:] == trial.compute()[0][3:]


def test_spread_between_attempts_cannot_be_paired():
    spread = sm.AttemptSpread().update([0, 0, 1, 1], [1, 0, 1, 1])
    with pytest.raises(sm.StreamMetricsError, match="root of a mean of variances"):
        sm.compare(spread, spread.copy(), paired=True)


@pytest.mark.long
def test_equal_models_are_worse_in_few_samples():
    rng = np.random.default_rng(0)
    verdicts = [
        sm.compare(*states(rng, units=100), paired=True, margin=0.01)[0].verdict for _ in range(300)
    ]
    assert verdicts.count("worse") <= 0.05 * 300
