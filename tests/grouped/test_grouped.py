"""Statistics by key: each key holds, to the byte, what a fresh metric of its rows holds."""

from __future__ import annotations

import numpy as np
import pytest
from kinds.rows import plan_of, state_of
from oracles.table import ORACLES, distinct, thinned
from thinning import some

import streammetrics as sm
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.columns.batch import Batch
from streammetrics.core.feeding.plan import Plan, described, filled
from streammetrics.core.fields.weights import Weight
from streammetrics.core.state.container import packed
from streammetrics.statistics.grouped import Groups, grouped_plan
from streammetrics.statistics.keys import KEY
from streammetrics.statistics.tables import ThresholdTable
from streammetrics.testing import split_rows


def fed(metric, *batches):
    """Return the accumulator of a metric's statistics by key."""
    accumulator = Accumulator(grouped_plan(plan_of(metric)))
    for batch in batches:
        accumulator.update(Batch(batch))
    return accumulator


def blob(accumulator):
    return bytes_of(accumulator.flush())


def bytes_of(state):
    rows, arrays = described(state)
    return packed({"rows": rows}, arrays, "")


def taken(rows, index):
    return {name: np.asarray(column)[index] for name, column in rows.items()}


def keyed(rows, rng, keys):
    n = len(next(iter(rows.values())))
    return {**rows, KEY: rng.choice(keys, n)}


def of(metric, rows):
    """Return the bytes of a fresh state that has seen rows, whose keys it does not know."""
    columns = {name: column for name, column in rows.items() if name != KEY}
    return bytes_of(state_of(plan_of(metric), columns))


KEYS = {"integers": np.array([-(2**62), -3, 0, 7]), "text": np.array(["", "a", "\udcff", "é" * 9])}


@pytest.mark.filterwarnings("ignore::streammetrics.EstimateWarning")
@pytest.mark.parametrize("oracle", thinned(distinct(ORACLES), columns=False))
def test_a_key_holds_what_a_fresh_metric_of_its_rows_does(oracle):
    rng = np.random.default_rng(7)
    metric = oracle.metric.copy().reset()
    rows = keyed(oracle.rows(rng, min(oracle.n, 80)), rng, KEYS[rng.choice(list(KEYS))])
    whole = fed(metric, rows)
    groups = Groups.of(plan_of(metric), whole.flush())
    for place, key in enumerate(groups.keys):
        mine = taken(rows, rows[KEY] == key)
        assert bytes_of(groups.state(np.array([place]))) == of(metric, mine)
        own = {name: column for name, column in mine.items() if name != KEY}
        assert groups.n_rows[place] == metric.copy().feed(own).n_rows
    some = np.arange(1, len(groups))
    assert bytes_of(groups.state(some)) == of(metric, taken(rows, rows[KEY] != groups.keys[0]))
    assert bytes_of(groups.state(np.arange(len(groups)))) == of(metric, rows)


@pytest.mark.filterwarnings("ignore::streammetrics.EstimateWarning")
@pytest.mark.parametrize("oracle", thinned(distinct(ORACLES), columns=False))
def test_the_state_is_a_function_of_the_rows(oracle):
    rng = np.random.default_rng(8)
    metric = oracle.metric.copy().reset()
    rows = keyed(oracle.rows(rng, min(oracle.n, 80)), rng, KEYS["text"])
    whole = fed(metric, rows)
    expected = blob(whole)
    for _ in range(3):
        order = rng.permutation(len(rows[KEY]))
        batches = split_rows(taken(rows, order), rng)
        assert blob(fed(metric, *batches)) == expected
        shards = [fed(metric, batch) for batch in batches]
        merged = Accumulator(whole.plan)
        merged.merge(shards)
        assert blob(merged) == expected
        merged.merge([fed(metric)])
        assert blob(merged) == expected
    told, arrays = described(whole.flush())
    back = Accumulator(whole.plan, filled(whole.plan, tuple(map(tuple, told)), arrays))
    assert blob(back) == expected
    back.update(Batch(rows))
    assert blob(back) == blob(fed(metric, rows, rows))


HOSTILE = np.array([1e308, -1e308, 5e-324, 1e-170, -0.0, 1e16, 1.0, 1e200, 0.1])


def hostile(rng, n):
    return np.where(rng.random(n) < 0.3, rng.choice(HOSTILE[3:], n), rng.normal(size=n))


@pytest.mark.parametrize("weighted", some([True, False], every=2))
@pytest.mark.parametrize(
    ("metrics", "rows"),
    [
        (
            [sm.MAE(), sm.MSE(), sm.R2(), sm.HuberLoss()],
            lambda rng, n: {"y_true": hostile(rng, n), "y_pred": hostile(rng, n)},
        ),
        (
            [sm.MSE(multioutput="raw_values"), sm.R2(multioutput="raw_values")],
            lambda rng, n: {"y_true": rng.normal(size=(n, 3)), "y_pred": rng.normal(size=(n, 3))},
        ),
        (
            [sm.MAE(), sm.R2()],
            lambda rng, n: {"y_true": rng.integers(-(2**62), 2**62, n), "y_pred": rng.random(n)},
        ),
        (
            [sm.Mean(), sm.Variance(), sm.Sum(), sm.Count()],
            lambda rng, n: {"values": rng.choice(HOSTILE[2:], n)},
        ),
        (
            [sm.F1(threshold=0.5), sm.LogLoss(), sm.BrierScore(), sm.ROCAUC(max_bins=8)],
            lambda rng, n: {"y_true": rng.integers(0, 2, n), "y_score": rng.random(n)},
        ),
        (
            [sm.LogLoss(), sm.BrierScore(), sm.ROCAUC(max_bins=8)],
            lambda rng, n: {
                "y_true": rng.integers(0, 3, n),
                "y_score": np.eye(3)[rng.integers(0, 3, n)] * 0.7 + 0.1,
            },
        ),
        (
            [sm.IntervalCoverage(), sm.WinklerScore(alpha=0.2)],
            lambda rng, n: {
                "y_true": rng.normal(size=n),
                "y_low": rng.normal(size=n) - 3,
                "y_high": rng.normal(size=n) + 3,
            },
        ),
        (
            [sm.F1(average=None)],
            lambda rng, n: {"y_true": rng.integers(0, 9, n), "y_pred": rng.integers(0, 9, n)},
        ),
        (
            [sm.Accuracy()],
            lambda rng, n: {
                "y_true": rng.integers(-(2**62), 2**62, n),
                "y_pred": rng.integers(-(2**62), 2**62, n),
            },
        ),
    ],
)
def test_forms_hold_what_fresh_statistics_do(metrics, rows, weighted):
    rng = np.random.default_rng(11)
    table = keyed(rows(rng, 240), rng, np.arange(6))
    if weighted:
        table["sample_weight"] = rng.choice([0.0, 1.0, 0.3, 1e-300, 2.0**70], 240)
    metric = sm.MetricSet({str(place): metric for place, metric in enumerate(metrics)})
    whole = fed(metric, table)
    parts = fed(metric, *split_rows(table, rng))
    parts.merge([fed(metric, batch) for batch in split_rows(table, rng)])
    assert blob(parts) == blob(fed(metric, table, table))
    groups = Groups.of(plan_of(metric), whole.flush())
    for place, key in enumerate(groups.keys):
        fresh = of(metric, taken(table, table[KEY] == key))
        assert bytes_of(groups.state(np.array([place]))) == fresh
    assert bytes_of(groups.state(np.arange(1, 6))) == of(metric, taken(table, table[KEY] > 0))


@pytest.mark.parametrize("size", [5e-324, 1e-300, 1e-160, 1e-140, 1e-100, 1e-78, 1e160, 1e300])
@pytest.mark.parametrize("metric", [sm.MAE(), sm.MSE(), sm.RMSE(), sm.BrierScore(), sm.Mean()])
def test_groups_whose_values_are_all_tiny_or_all_huge(metric, size):
    values = np.array([size, size, 3 * size])
    rows = {
        "y_true": np.zeros(3, int) if isinstance(metric, sm.BrierScore) else values,
        "y_pred": np.zeros(3),
        "y_score": np.minimum(values, 1.0),
        "values": values,
    }
    rows = {name: rows[name] for name in metric.inputs} | {KEY: np.array([0, 1, 1])}
    groups = Groups.of(plan_of(metric), fed(metric, rows).flush())
    for key in range(2):
        assert bytes_of(groups.state(np.array([key]))) == of(metric, taken(rows, rows[KEY] == key))


def _states(groups):
    return [groups.state(np.array([place])) for place in range(len(groups))]


def test_keys_are_dropped_and_joined():
    rng = np.random.default_rng(3)
    rows = {"y_true": rng.integers(0, 3, 500), "y_pred": rng.integers(0, 3, 500)}
    rows = keyed(rows, rng, np.arange(10, 20))
    metric = sm.F1(average="macro")
    (grouped,) = fed(metric, rows).flush().statistics
    kept = grouped.only(np.array([2, 5]))
    assert kept.keys.tolist() == [12, 15]
    expected = fed(metric, taken(rows, np.isin(rows[KEY], [12, 15]))).flush().statistics[0]
    assert packed({}, kept.arrays(), "") == packed({}, expected.arrays(), "")
    coarse = grouped.regrouped(np.arange(10) // 5, np.array([0, 1]))
    expected = fed(metric, {**rows, KEY: (rows[KEY] - 10) // 5}).flush().statistics[0]
    assert packed({}, coarse.arrays(), "") == packed({}, expected.arrays(), "")
    assert 0 < kept.nbytes < grouped.nbytes


def test_rows_left_out_are_counted_by_key():
    metric = sm.MAE(nan_policy="omit")
    rows = {
        "y_true": [1.0, np.nan, np.nan, 4.0],
        "y_pred": [1.0, 1.0, 1.0, 5.0],
        KEY: np.array([1, 1, 2, 3]),
    }
    groups = Groups.of(plan_of(metric), fed(metric, rows).flush())
    infos = [state.infos[0] for state in _states(groups)]
    assert [(feed.n_rows, feed.n_omitted) for feed in infos] == [(1, 1), (0, 1), (1, 0)]
    both = groups.state(np.array([0, 1])).infos[0]
    assert (both.n_rows, both.n_omitted) == (1, 2)


def test_facts_are_those_of_the_rows_of_a_key():
    metric = sm.ROCAUC(pos_label="yes")
    rows = {
        "y_true": np.array(["yes", "no", "yes"]),
        "y_score": np.array([0.9, 0.1, 0.5]),
        KEY: np.array(["a", "a", "b"]),
    }
    groups = Groups.of(plan_of(metric), fed(metric, rows).flush())
    a, b = _states(groups)
    assert "negative label" in a.infos[0].facts
    assert "negative label" not in b.infos[0].facts


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (np.array([0.5, 1.0]), r"by is float64\(2,\); keys are integers or text"),
        ([None, "a"], "by is text with nulls; keys are integers or text"),
    ],
)
def test_other_keys_are_refused(keys, message):
    accumulator = fed(sm.MAE())
    with pytest.raises(sm.InvalidBatchError, match=message):
        accumulator.update(Batch({"y_true": [1.0, 2.0], "y_pred": [1.0, 2.0], KEY: keys}))
    assert blob(accumulator) == blob(fed(sm.MAE()))


class Doubled(ThresholdTable):
    """Counts every row twice, with an update rule of its own and none for groups."""

    def update(self, *columns, weight):
        super().update(*columns, weight=weight)
        super().update(*columns, weight=weight)


class Counted(ThresholdTable):
    """Has a field more than its base, whose rule for groups does not know it."""

    batches = Weight()


@pytest.mark.parametrize("of", [Doubled(), Counted()])
def test_a_subclass_is_not_held_by_the_rule_of_its_base(of):
    rng = np.random.default_rng(3)
    table = keyed({"y_true": rng.integers(0, 2, 90), "y_score": rng.random(90)}, rng, np.arange(4))
    plan = Plan([of])
    accumulator = Accumulator(grouped_plan(plan))
    accumulator.update(Batch(table))
    groups = Groups.of(plan, accumulator.flush())
    for place, key in enumerate(groups.keys):
        mine = taken(table, table[KEY] == key)
        own = {name: column for name, column in mine.items() if name != KEY}
        assert bytes_of(groups.state(np.array([place]))) == bytes_of(state_of(plan, own))
