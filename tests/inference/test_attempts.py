"""Repeated attempts: exact values, runs that were killed, and contradictory rows."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import t

import streammetrics as sm

METRICS = [
    sm.PassAtK(k=2), sm.PassHatK(k=2), sm.MeanAtK(), sm.AttemptSpread(), sm.MajorityAtK(k=2),
]  # fmt: skip


def log(units=6, attempts=5, *, text=False):
    """Return the columns of a run: which attempts solve a unit is a function of both."""
    unit, attempt = (side.ravel() for side in np.indices((units, attempts)))
    solved = (unit * unit + 3 * attempt) % 4 < 2
    answer = np.where(solved, "right", np.array(["wrong", "other"])[attempt % 2])
    name = np.array([f"q{each}" for each in unit]) if text else unit
    return {"unit": name, "y_true": solved, "attempt": attempt, "answer": answer}


def fed(metric, rows, places=slice(None), *, ids=True):
    names = [n for n in metric.inputs if ids or n != "attempt"]
    return metric.copy().update(**{name: rows[name][places] for name in names})


@pytest.mark.parametrize("k", [1, 2, 3, 10, 64, 100, 199, 200])
def test_pass_at_k_is_the_fraction_of_every_count_up_to_200(k):
    at_least, every = sm.PassAtK(k=k), sm.PassHatK(k=k)
    for n in range(k, 201):
        subsets = math.comb(n, k)
        for c in range(n + 1):
            assert at_least.read((n, c)) == 1 - Fraction(math.comb(n - c, k), subsets)
            assert every.read((n, c)) == Fraction(math.comb(c, k), subsets)


def test_every_count_up_to_9_is_the_share_of_subsets():
    for n in range(1, 10):
        for c in range(n + 1):
            solved = [1] * c + [0] * (n - c)
            for k in range(1, n + 1):
                subsets = list(combinations(solved, k))
                some, whole = sum(map(any, subsets)), sum(map(all, subsets))
                assert sm.PassAtK(k=k).read((n, c)) == Fraction(some, len(subsets))
                assert sm.PassHatK(k=k).read((n, c)) == Fraction(whole, len(subsets))


def test_the_mean_over_units_is_rounded_once():
    rng = np.random.default_rng(0)
    n = rng.integers(3, 40, 500)
    unit = np.repeat(np.arange(500), n)
    solved = rng.random(unit.size) < rng.random(500)[unit]
    counts = zip(n.tolist(), np.bincount(unit, solved).astype(int).tolist(), strict=True)
    exact = [1 - Fraction(math.comb(n - c, 3), math.comb(n, 3)) for n, c in counts]
    assert sm.PassAtK(k=3).update(unit, solved).compute() == float(sum(exact) / 500)


def test_many_attempts_do_not_overflow():
    rows = {"unit": np.zeros(5000, int), "y_true": np.arange(5000) < 3}
    exact = 1 - Fraction(math.comb(4997, 2000), math.comb(5000, 2000))
    assert sm.PassAtK(k=2000).update(**rows).compute() == float(exact)
    assert sm.PassAtK(k=5000).update(**rows).compute() == 1.0


@pytest.mark.parametrize("metric", METRICS, ids=repr)
@pytest.mark.parametrize("text", [False, True])
def test_killed_and_resumed_runs_merge_to_the_bytes_of_one_that_was_not(metric, text):
    rows = log(text=text)
    whole = fed(metric, rows)
    killed, resumed = fed(metric, rows, slice(0, 17)), fed(metric, rows, slice(11, None))
    assert sm.merge([killed, resumed]).to_bytes() == whole.to_bytes()
    assert sm.merge([resumed, killed, whole]).to_bytes() == whole.to_bytes()
    for places in (slice(3, 9), slice(None), slice(0, 1)):
        killed.update(**{name: rows[name][places] for name in metric.inputs})
    assert killed.to_bytes() == whole.to_bytes()
    assert killed.n_rows == 30
    assert sm.from_bytes(whole.to_bytes()) == whole
    again = {name: np.concatenate([rows[name], rows[name]]) for name in metric.inputs}
    assert metric.copy().update(**again).to_bytes() == whole.to_bytes()


@pytest.mark.parametrize("metric", METRICS, ids=repr)
def test_a_set_by_slice_and_by_unit_counts_repeats_once(metric):
    rows = {**log(), "half": np.arange(30) % 6 // 3, "passage": log()["unit"] // 2}
    for make in (
        lambda: sm.MetricSet({"m": metric.copy()}),
        lambda: sm.MetricSet({"m": metric.copy()}, unit="passage"),
        lambda: sm.Slices(sm.MetricSet({"m": metric.copy()}), by=["half"]),
    ):
        whole, killed = make().update(rows), make()
        for places in (slice(0, 17), slice(11, 30)):
            killed.update({name: column[places] for name, column in rows.items()})
        parts = [make().update({n: c[p] for n, c in rows.items()}) for p in
                 (slice(0, 17), slice(11, 30))]  # fmt: skip
        assert killed.to_bytes() == sm.merge(parts).to_bytes() == whole.to_bytes()
        assert sm.from_bytes(whole.to_bytes()) == whole
        assert whole.n_rows == 30


def test_a_ledger_counts_repeats_of_two_shards_once():
    rows = log()
    ledger = sm.Ledger()
    for shard, places in (("a", slice(0, 17)), ("b", slice(11, None))):
        ledger.add(shard, fed(sm.PassAtK(k=2), rows, places))
    assert ledger.merged().to_bytes() == fed(sm.PassAtK(k=2), rows).to_bytes()


def test_attempts_without_ids_are_all_counted():
    rows = log()
    metric = fed(sm.PassAtK(k=2), rows, ids=False)
    assert metric.compute() == fed(sm.PassAtK(k=2), rows).compute()
    twice = sm.merge([metric, metric])
    assert twice.n_rows == 60
    assert twice.to_bytes() == fed(metric, rows, ids=False).to_bytes()


@pytest.mark.parametrize("metric", METRICS, ids=repr)
def test_a_contradiction_is_refused_with_column_count_and_row(metric):
    rows = log(text=True)
    fed_metric = fed(metric, rows)
    before = fed_metric.to_bytes()
    wrong = {name: rows[name][4:].copy() for name in metric.inputs}
    wrong["y_true"][[3, 7]] ^= True
    message = "y_true contradicts .* in 2 rows, first in row 3"
    with pytest.raises(sm.InvalidBatchError, match=message) as caught:
        fed_metric.update(**wrong)
    assert (caught.value.column, caught.value.row) == ("y_true", 3)
    assert "unit 'q1', attempt 2" in str(caught.value)
    assert fed_metric.to_bytes() == before
    other = metric.copy().update(**wrong)
    with pytest.raises(sm.IncompatibleMetricsError, match=r"unit 'q1', attempt 2 has two"):
        sm.merge([fed_metric, other])
    assert fed_metric.to_bytes() == before


def test_a_contradiction_within_a_batch_and_past_omitted_rows():
    metric = sm.PassAtK(k=1, nan_policy="omit").update([5], [1], [0])
    with pytest.raises(sm.InvalidBatchError, match="in 1 row, first in row 3") as caught:
        metric.update([1, 2, 1, 1], [0.0, math.nan, math.nan, 1.0], [0, 0, 1, 0])
    assert caught.value.row == 3
    assert metric.n_rows == 1


def test_another_answer_is_a_contradiction():
    metric = sm.MajorityAtK(k=1).update(["a"], [0], ["7"], [0])
    with pytest.raises(sm.InvalidBatchError, match="answer contradicts .*: '7' before, '8' here"):
        metric.update(["b", "a"], [0, 0], ["7", "8"], [0, 0])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"unit": ["a", None], "y_true": [1, 0]}, "unit is missing .* in 1 row, first in row 1"),
        ({"unit": ["a", "b"], "y_true": [1, 2]}, "y_true is neither 0 nor 1 in 1 row, first in"),
        ({"unit": ["a", "b"], "y_true": ["C", "I"]}, "y_true holds text .*1 is solved"),
        ({"unit": ["a", "b"], "y_true": [1, math.nan]}, "y_true is missing .* first in row 1"),
        ({"unit": [1, 2], "y_true": [1, 0]}, "units: 'integers' here, 'strings' in rows seen"),
        ({"unit": [0.5, 2], "y_true": [1, 0]}, "unit is not a label"),
        ({"unit": ["a"], "y_true": [1], "attempt": [0]}, "attempts: 'integers' here, 'none'"),
        ({"unit": ["a", "b"], "y_true": [1, 0], "attempt": [0, None]}, "attempt is missing .* 1"),
        ({"unit": ["a", "b"], "y_true": [1]}, "1 row|length|rows"),
    ],
)  # fmt: skip
def test_bad_rows_are_refused_and_nothing_changes(rows, message):
    metric = sm.PassAtK(k=1).update(["a"], [1])
    before = metric.to_bytes()
    with pytest.raises(sm.InvalidBatchError, match=message):
        metric.update(**rows)
    assert metric.to_bytes() == before


def test_a_unit_with_too_few_attempts_is_named_or_left_out():
    rows = {"unit": ["b", "a", "a"], "y_true": [1, 1, 0]}
    metric = sm.PassAtK(k=2).update(**rows)
    with pytest.warns(
        sm.UndefinedMetricWarning, match="1 of 2 units have fewer than 2 .* 'b' with 1"
    ):
        assert math.isnan(metric.compute())
    skipping = sm.PassAtK(k=2, incomplete="skip").update(**rows)
    assert skipping.compute() == 1.0
    assert skipping.per_unit() == {"a": 1.0}
    with pytest.warns(sm.UndefinedMetricWarning, match="2 of 2 units"):
        assert math.isnan(sm.PassAtK(k=3, incomplete="skip").update(**rows).compute())


def test_limits_are_those_of_units():
    rng = np.random.default_rng(1)
    rows = {**log(units=40), "y_true": rng.random(200) < np.repeat(rng.random(40), 5)}
    metric = fed(sm.PassAtK(k=2), rows)
    values = np.array(list(metric.per_unit().values()))
    limits = metric.confidence(0.9)
    half = t.ppf(0.95, 39) * values.std(ddof=1) / math.sqrt(40)
    np.testing.assert_allclose(limits, [values.mean() - half, values.mean() + half], rtol=1e-12)
    spread = fed(sm.AttemptSpread(), rows)
    low, high = spread.confidence()
    assert 0 < low < spread.compute() < high < 1
    ones = sm.PassAtK(k=1).update(np.arange(30), np.ones(30))
    assert ones.confidence().method == "Clopper-Pearson of 30 units: all of them have 1"


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("codes", [0, 1, 1, 3]), ("codes", [1, 0, 2, 3]), ("codes", [0, 1, 2, 4]), ("codes", [0]),
        ("codes", [-1, 1, 2, 3]), ("codes", [0, 1, 1, 1]), ("results", [0, 1, 2, 1]),
        ("results", [0, -1, 0, 1]), ("times", [1, 1, 2, 1]), ("times", [1, 1, 0, 1]),
        ("units", [5, 5]), ("units", [5]), ("ids", [1, 0]), ("ids", []), ("answers", [3]),
    ],
)  # fmt: skip
def test_a_state_that_is_no_table_of_attempts_is_refused(name, wrong):
    (statistic,) = sm.PassAtK(k=2).statistics()
    sound = {"units": [5, 6], "ids": [0, 1], "answers": [], "codes": [0, 1, 2, 3],
             "results": [0, 1, 0, 1], "times": [1, 1, 1, 1]}  # fmt: skip
    sound = {key: np.array(each, np.int64) for key, each in sound.items()}
    statistic.restored(sound).check()
    with pytest.raises(sm.StateFormatError, match="attempts"):
        statistic.restored({**sound, name: np.array(wrong, np.int64)})


def test_small_batches_are_cheap_and_give_the_same_bytes():
    rows = log(units=200, attempts=4)
    metric = sm.PassAtK(k=2)
    for first in range(0, 800, 4):
        part = slice(first, first + 4)
        metric.update(rows["unit"][part], rows["y_true"][part], rows["attempt"][part])
    assert metric.to_bytes() == fed(sm.PassAtK(k=2), rows).to_bytes()
