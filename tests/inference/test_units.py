"""Confidence by unit: a jackknife over groups of users, of sets, slices and saved states."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import streammetrics as sm
from streammetrics.slices.keyed import groups_of


def rows(users=400, each=8, seed=0):
    rng = np.random.default_rng(seed)
    easy = np.repeat(rng.beta(2.0, 1.0, users), each)
    y = rng.integers(0, 2, easy.size)
    return {
        "y_true": y,
        "y_pred": np.where(rng.random(y.size) < easy, y, 1 - y),
        "user": np.repeat(rng.permutation(10**6)[:users], each),
        "country": np.repeat(rng.choice(["DE", "FR"], users), each),
    }


def sliced(by=((),), **metrics):
    suite = sm.MetricSet(metrics or {"acc": sm.Accuracy()})
    return sm.Slices(suite, by=[list(spec) for spec in by], unit="user")


def test_limits_are_those_of_leaving_out_each_group_of_users():
    table = rows()
    told = sliced().update(table).confidence(0.95, unit="user")
    group = groups_of(table["user"], "user")
    right = table["y_true"] == table["y_pred"]
    values = [right[group != g].mean() for g in np.unique(group)]
    error = math.sqrt((len(values) - 1) * np.var(values))
    low, high, value = told["acc_low"][0], told["acc_high"][0], right.mean()
    half = 1.998340542520741 * error / value / (1 - value)
    logit = math.log(value / (1 - value))
    assert low == pytest.approx(1 / (1 + math.exp(half - logit)), rel=1e-9)
    assert high == pytest.approx(1 / (1 + math.exp(-half - logit)), rel=1e-9)


def test_rows_that_hang_together_are_less_sure_than_as_many_others():
    table = rows(each=20)
    by_unit = sliced().update(table).confidence(unit="user")
    as_rows = sm.Accuracy().update(table["y_true"], table["y_pred"]).confidence()
    assert by_unit["acc_high"][0] - by_unit["acc_low"][0] > 1.5 * (as_rows.high - as_rows.low)


def test_every_slice_has_limits_by_its_own_units():
    table = rows()
    told = sliced([[], ["country"]]).update(table).confidence(unit="user")
    assert told["country"].tolist() == [None, "DE", "FR"]
    german = {name: column[table["country"] == "DE"] for name, column in table.items()}
    alone = sliced().update(german).confidence(unit="user")
    assert told["acc_low"][1] == alone["acc_low"][0]


def test_metrics_without_other_limits_have_these():
    rng = np.random.default_rng(0)
    y = rng.standard_normal(900)
    table = {"y_true": y, "y_pred": y + rng.standard_normal(900), "user": np.arange(900)}
    told = sliced(r2=sm.R2(), mae=sm.MAE(), corr=sm.PearsonCorrelation()).update(table)
    for name in ("r2", "mae", "corr"):
        limits = told.confidence(unit="user")
        assert limits[f"{name}_low"][0] < limits[name][0] < limits[f"{name}_high"][0]


def test_any_sharding_and_a_saved_state_give_the_same_limits():
    table = rows()
    whole = sliced([[], ["country"]]).update(table)
    parts = [
        sliced([[], ["country"]]).update({name: column[k::3] for name, column in table.items()})
        for k in (2, 0, 1)
    ]
    merged = sm.merge(parts)
    assert merged.to_bytes() == whole.to_bytes()
    again = sm.from_bytes(merged.to_bytes()).confidence(unit="user").to_dict()
    assert again == whole.confidence(unit="user").to_dict()


def test_a_unit_is_in_the_same_group_whatever_its_type_and_neighbours():
    ids = np.array([5, 17, 2**40])
    groups = groups_of(ids, "user").tolist()
    assert groups_of(ids.astype(float), "user").tolist() == groups
    assert groups_of(ids[::-1], "user").tolist() == groups[::-1]
    texts = ["a", "longer than others", "b"]
    assert groups_of(texts, "user")[0] == groups_of(["a"], "user")[0]
    spread = np.bincount(groups_of(np.arange(64_000), "user"), minlength=64)
    assert spread.min() > 800


def encodings(texts):
    """Yield columns of the same texts, as libraries hold them."""
    yield "list", texts
    yield "tuple", tuple(texts)
    yield "str_", np.array(texts)
    yield "wide", np.array(texts).astype("U300")
    yield "swapped", np.array(texts).astype(np.dtype("U40").newbyteorder())
    yield "strided", np.repeat(np.array(texts), 2)[::2]
    yield "objects", np.array(texts, object)
    yield "own str", [np.str_(text) for text in texts]
    series = pd.Series(texts, dtype=object)
    yield "series", series
    yield "nullable", series.astype("string")
    yield "category", pd.Series(pd.Categorical(texts, ["unused", *sorted(set(texts))]))
    plain = pa.array(texts)
    yield "arrow", plain
    yield "large", plain.cast(pa.large_string())
    yield "slice", pa.array(["other", *texts]).dictionary_encode()[1:]
    yield "chunks", pa.chunked_array([plain[:3].dictionary_encode(), plain[3:].dictionary_encode()])
    repeated = [*texts, "unused", None]  # each row has an entry of its own
    yield "repeated", pa.DictionaryArray.from_arrays(np.arange(len(texts)), pa.array(repeated))
    yield "polars", pl.Series(texts)


@pytest.mark.parametrize("units", [50, 4096, 4097])
def test_text_ids_are_the_same_units_however_they_are_held(units):
    texts = [f"Frage {k % units} 日本" for k in range(units + 20)]
    table = {"y_true": np.ones(len(texts), int), "y_pred": np.arange(len(texts)) % 3 > 0}
    made = {}
    for name, column in encodings(texts):
        suite = sm.MetricSet({"accuracy": sm.Accuracy()}, unit="user").update(**table, user=column)
        made[name] = suite.to_bytes()
    assert {name: state == made["list"] for name, state in made.items()} == dict.fromkeys(
        made, True
    )
    suite = sm.from_bytes(made["list"])
    groups = "64 groups of units" if units > 4096 else f"{units:,} units"
    assert suite["accuracy"].confidence().method.startswith(groups)


@pytest.mark.parametrize("row", [0, 2])
def test_missing_text_ids_are_counted_however_they_are_held(row):
    texts = ["a", "b", "a", "c"]
    texts[row] = None
    series = pd.Series(texts, dtype=object)
    columns = [texts, series, series.astype("string"), series.astype("category"), pa.array(texts)]
    columns += [pa.array(texts).dictionary_encode(), pl.Series(texts), np.array(texts, object)]
    suite = sm.MetricSet({"accuracy": sm.Accuracy()}, unit="user")
    for column in columns:
        with pytest.raises(
            sm.InvalidBatchError, match=r"user is missing \(NaN or null\) in 1 row"
        ) as caught:
            suite.update(y_true=[1] * 4, y_pred=[1] * 4, user=column)
        assert (caught.value.column, caught.value.row) == ("user", row)
    assert suite.n_rows == 0


def test_mistakes():
    table = rows()
    slices = sliced()
    with pytest.raises(sm.InvalidBatchError, match="no column 'user'"):
        slices.update({name: table[name] for name in ("y_true", "y_pred")})
    with pytest.raises(
        sm.InvalidBatchError, match=r"user is missing \(NaN or null\) in .*; every row needs a unit"
    ):
        slices.update({**table, "user": [None, *table["user"][1:].tolist()]})
    with pytest.raises(sm.InvalidBatchError, match="user holds numbers that are not ids"):
        slices.update({**table, "user": table["user"] + 0.5})
    assert slices.n_rows == 0
    with pytest.raises(ValueError, match="units are kept by 'user'"):
        slices.confidence(unit="account")
    plain = sm.Slices(sm.MetricSet({"acc": sm.Accuracy()}), by=[["country"]])
    with pytest.raises(ValueError, match="no units are kept"):
        plain.confidence(unit="user")
    with pytest.raises(ValueError, match="overflow='raise'"):
        sm.Slices(
            sm.MetricSet({"acc": sm.Accuracy()}), by=[["country"]], unit="user", overflow="other"
        )
    with pytest.raises(sm.IncompatibleMetricsError, match="unit is"):
        sm.Slices(sm.MetricSet({"acc": sm.Accuracy()}), by=[["country"]], unit="user").merge(plain)
    with pytest.raises(ValueError, match="does not name a column"):
        sm.Slices(sm.MetricSet({"acc": sm.Accuracy()}), by=[[]])


def test_values_that_are_no_numbers_have_no_limits():
    told = sliced(matrix=sm.ConfusionMatrix(), recall=sm.Recall(average=None)).update(rows())
    table = told.confidence(unit="user").to_dict()
    assert any(name.startswith("recall") and name.endswith("low") for name in table)


def test_metrics_that_have_no_limits_by_rows_have_them_by_units():
    rng = np.random.default_rng(0)
    y = rng.normal(size=2000)
    rows = {
        "y_true": y,
        "y_pred": y + rng.normal(size=2000),
        "ratings": rng.multinomial(4, [0.5, 0.3, 0.2], 2000),
        "id": np.arange(2000),
    }
    metrics = {
        "d2": sm.D2Tweedie(power=0),
        "nrmse": sm.NRMSE(normalization="std"),
        "kappa": sm.FleissKappa(),
    }
    suite = sm.MetricSet(metrics, unit="id").update(rows)
    for name, (low, high) in suite.confidence(unit="id").items():
        assert low < suite[name].compute() < high < low + 0.3
    for name in metrics:
        with pytest.raises(
            sm.NoConfidenceError, match=r"MetricSet\(\.\.\., unit='i.*\) has limits"
        ):
            suite[name].confidence(unit=None)


def test_states_are_compared_as_samples_of_units():
    rng = np.random.default_rng(5)
    suite = sm.MetricSet({"mae": sm.MAE(), "r2": sm.R2()}, unit="user")

    def some(first: int) -> sm.MetricSet:
        target, off = rng.normal(size=2000), np.repeat(rng.normal(size=100), 20)
        user = np.repeat(np.arange(first, first + 100), 20)
        return suite.copy().update(y_true=target, y_pred=target + off, user=user)

    a, b = some(0), some(100)
    found = sm.compare(a, b, unit="user")
    assert [line.metric for line in found] == ["mae", "r2"]
    for line in found:
        one, other = (each[line.metric].confidence(unit="user") for each in (a, b))
        below = math.hypot(line.value - one.low, other.high - line.other)
        above = math.hypot(one.high - line.value, line.other - other.low)
        expected = (line.difference - below, line.difference + above)
        assert (line.low, line.high) == pytest.approx(expected)
    with pytest.warns(sm.UndefinedMetricWarning, match="left out: 'r2': R2 has no confidence"):
        (by_rows,) = sm.compare(a, b, unit=None)
    assert found["mae"][0].p > by_rows.p
    with pytest.raises(ValueError, match="units are kept by 'user'"):
        sm.compare(a, b, unit="session")


@pytest.mark.long
def test_users_that_are_alike_are_seldom_told_apart():
    rng = np.random.default_rng(6)
    suite = sm.MetricSet({"acc": sm.Accuracy()}, unit="user")

    def some() -> sm.MetricSet:
        right = rng.random(1500) < np.repeat(rng.beta(2, 1, 100), 15)
        rows = {"y_true": np.ones(1500, int), "y_pred": right.astype(int)}
        return suite.copy().update({**rows, "user": np.repeat(np.arange(100), 15)})

    pairs = [(some(), some()) for _ in range(150)]
    assert np.mean([sm.compare(*pair, unit=None)[0].p < 0.05 for pair in pairs]) > 0.2
    assert np.mean([sm.compare(*pair, unit="user")[0].p < 0.05 for pair in pairs]) < 0.1


def alike(seed=0, users=40, rows=50):
    """Return rows of users, of whom each is right with a probability of its own."""
    rng = np.random.default_rng(seed)
    user = np.repeat(np.arange(users), rows)
    right = rng.random(users * rows) < np.repeat(rng.beta(2, 1, users), rows)
    return {"y_true": np.ones(users * rows, int), "y_pred": right.astype(int), "user": user}


def test_a_set_with_a_unit_has_limits_by_it_unless_rows_are_asked_for():
    suite = sm.MetricSet({"acc": sm.Accuracy()}, unit="user").update(alike())
    by_unit, by_row = suite.confidence(unit="user")["acc"], suite.confidence(unit=None)["acc"]
    assert by_unit.high - by_unit.low > 2.5 * (by_row.high - by_row.low)
    assert suite.confidence()["acc"] == by_unit
    assert suite["acc"].confidence() == by_unit
    assert suite["acc"].confidence(unit=None) == by_row
    assert sm.from_bytes(suite.to_bytes())["acc"].confidence() == by_unit
    with pytest.raises(ValueError, match="unit=None has limits of rows at all times"):
        suite["acc"].confidence(anytime=True)
    assert suite["acc"].confidence(anytime=True, unit=None).low < by_row.low


def test_slices_with_a_unit_have_limits_by_it_everywhere():
    rows = alike()
    rows["week"] = np.arange(len(rows["user"])) % 2
    suite = sm.MetricSet({"acc": sm.Accuracy()})
    slices = sm.Slices(suite, by=[[], ["week"]], unit="user").update(rows)
    table = slices.confidence(unit="user").to_dict()
    assert slices.confidence().to_dict() == table
    assert slices.compute(confidence=0.95).to_dict() == table
    assert slices.compute(confidence=0.95, unit=None).to_dict()["acc_low"] != table["acc_low"]
    for place, which in enumerate(({}, {"week": 0}, {"week": 1})):
        limits = slices[which]["acc"].confidence()
        assert tuple(limits) == (table["acc_low"][place], table["acc_high"][place])
        assert slices[which].confidence()["acc"] == limits
        assert slices[which]["acc"].confidence(unit=None).low > limits.low
    for read in (slices.gap, slices.ratio):
        assert read("acc") == read("acc", unit="user") != read("acc", unit=None)
    worst = slices.worst("acc").to_dict()
    assert worst == slices.worst("acc", unit="user").to_dict()
    assert worst != slices.worst("acc", unit=None).to_dict()


def test_two_sets_with_a_unit_are_compared_by_it():
    one, other = (sm.MetricSet({"a": sm.Accuracy()}, unit="user").update(alike(s)) for s in (1, 2))
    assert sm.compare(one, other) == sm.compare(one, other, unit="user")
    by_row = sm.compare(one, other, unit=None)[0]
    assert sm.compare(one, other)[0].p > by_row.p


def test_a_comparison_takes_the_unit_of_its_set_unless_rows_are_asked_for():
    suite = sm.MetricSet({"acc": sm.Accuracy()}, unit="user")
    models = {"a": "one", "b": "two"}
    assert sm.Comparison(suite, models).unit == "user"
    assert sm.Comparison(suite, models, unit=None).unit is None
    assert sm.Comparison(suite, models, unit="item").unit == "item"
    with pytest.raises(ValueError, match=r"unit=3\): expected the name of a column"):
        sm.Comparison(suite, models, unit=3)


@pytest.mark.long
def test_default_limits_of_a_set_with_a_unit_hold_where_users_differ():
    inside = {...: 0, None: 0}
    for seed in range(400):
        suite = sm.MetricSet({"acc": sm.Accuracy()}, unit="user").update(alike(seed))
        for unit in inside:
            low, high = suite["acc"].confidence(unit=unit)
            inside[unit] += low <= 2 / 3 <= high
    assert inside[...] >= 0.91 * 400
    assert inside[None] < 0.75 * 400


@pytest.mark.parametrize("cls", [sm.BalancedAccuracy, sm.Informedness, sm.Recall, sm.GMean])
def test_a_rare_class_that_is_all_right_is_as_unsure_by_unit_as_by_row(cls):
    rows = {"y_true": [1] * 8 + [0] * 392, "y_pred": [1] * 28 + [0] * 372}
    found = sm.MetricSet({"m": cls()}, unit="u").update(**rows, u=np.arange(400))["m"]
    by_unit, by_row = found.confidence(), found.confidence(unit=None)
    assert by_unit.low <= by_row.low + 1e-9
    assert by_unit.high >= by_row.high - 1e-3
