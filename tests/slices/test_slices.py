"""Slices: each is what a set of its own rows is, and bad keys change nothing."""

from __future__ import annotations

import datetime
import pickle
import threading
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from fuzz.forging import forged

import streammetrics as sm
from streammetrics.slices import bins
from streammetrics.testing import laws


def suite():
    metrics = {
        "f1": sm.F1(threshold=0.5),
        "auc": sm.ROCAUC(),
        "recall": sm.Recall(average=None, threshold=0.5),
        "mean": sm.Mean(nan_policy="omit"),
        "median": sm.Quantile(q=0.5),
    }
    return sm.MetricSet(metrics, columns={"values": "amount", "y_true": "label"})


def rows(n=400, seed=0):
    rng = np.random.default_rng(seed)
    amount = rng.normal(size=n).round(2)
    return {
        "label": rng.integers(0, 2, n),
        "y_score": rng.random(n).round(2),
        "amount": amount,
        "country": rng.choice(np.array(["DE", "FR", "q\"'\\", "", "ü"]), n),
        "age": rng.integers(0, 90, n),
        "device": rng.integers(-1, 2, n),
        "new": rng.integers(0, 2, n).astype(bool),
    }


BY = [[], ["country"], ["device", "country"], [sm.Bins("age", [18, 30.5, 50]), "new"]]


def taken(table, index):
    return {name: column[index] for name, column in table.items()}


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
@pytest.mark.parametrize("overflow", ["raise", pytest.param("other", marks=pytest.mark.long)])
def test_laws_hold(overflow):
    empty, table = sm.Slices(suite(), by=BY, overflow=overflow, max_slices=900), rows(50)
    case = laws.Case(empty, table, seed=1, trials=3)
    for law in (laws.splits, laws.monoid, laws.travels, laws.independence, laws.refusals):
        law(case)
    whole = case.whole
    again = whole.copy().reset().update(table).compute()["auc"]
    assert whole.batch(table)["auc"].tobytes() == again.tobytes()


@pytest.mark.parametrize("overflow", ["raise", "other"])
def test_each_slice_is_a_set_of_its_rows(overflow):
    table = rows()
    slices = sm.Slices(suite(), by=BY, overflow=overflow).update(table)
    assert slices[{}] == suite().update({k: table[k] for k in ("label", "y_score", "amount")})
    result = slices.compute()
    assert len(result) == 1 + 5 + 15 + 8
    bins = {"< 18": (-1, 18), "[18, 30.5)": (18, 30.5), "[30.5, 50)": (30.5, 50), ">= 50": (50, 99)}
    for row in range(len(result)):
        mask = np.ones(400, bool)
        which = {}
        for name in (part for part in result["by"][row].split(", ") if part):
            value = which[name] = result[name][row]
            if name == "age":
                low, high = bins[value]
                mask &= (table["age"] >= low) & (table["age"] < high)
            else:
                mask &= table[name] == value
        fresh = suite().update(**{k: table[k][mask] for k in ("label", "y_score", "amount")})
        assert slices[which] == fresh
        assert result["n_rows"][row] == fresh.n_rows == mask.sum()
        values = fresh.compute()
        assert result["auc"][row] == values["auc"]
        assert [result["recall_0"][row], result["recall_1"][row]] == values["recall"].tolist()


def test_only_days_that_occur_are_spelt_out(monkeypatch):
    asked, day_of = [], bins.day_of
    monkeypatch.setattr(bins, "day_of", lambda day: asked.append(day) or day_of(day))
    days = [datetime.date(2026, 11, 22), datetime.date(1970, 1, 1), datetime.date(2026, 11, 22)]
    slices = sm.Slices(sm.MetricSet({"n": sm.Count()}), by="day").update(values=[1, 2, 3], day=days)
    assert slices.compute().to_dict()["day"] == ["1970-01-01", "2026-11-22"]
    assert len(asked) == 2


def test_missing_keys_and_kinds_of_keys():
    days = [datetime.date(2026, 1, 2), None, datetime.date(1969, 7, 20), datetime.date(2026, 1, 2)]
    mean = sm.MetricSet({"mean": sm.Mean()})
    slices = sm.Slices(mean, by=[["day"]])
    slices.update(values=[1.0, 2.0, 3.0, 4.0], day=days)
    assert slices.compute().to_dict() == {
        "day": ["1969-07-20", "2026-01-02", None],
        "n_rows": [1, 2, 1],
        "mean": [3.0, 2.5, 2.0],
    }
    same = [
        np.array(days, "datetime64[D]"),
        pd.Series(pd.to_datetime(days)),
        pl.Series(days),
        pa.array(days),
        pa.chunked_array([pa.array(days).cast(pa.timestamp("ms"))]),
        pd.Series(days, dtype=object),
    ]
    for column in same:
        other = sm.Slices(mean, by=[["day"]]).update(values=[1.0, 2.0, 3.0, 4.0], day=column)
        assert other == slices
    assert slices[{"day": datetime.date(2026, 1, 2)}].n_rows == 2
    assert slices[{"day": None}].compute() == {"mean": 2.0}


def test_columns_of_any_library_give_one_state():
    table = {"values": np.arange(4.0), "key": ["b", None, "", "b"], "code": [1, None, 3, 1]}
    by = [["key", "code", sm.Bins("values", [2])]]
    expected = sm.Slices(sm.MetricSet({"mean": sm.Mean()}), by=by).update(table)
    frame = pd.DataFrame(table)
    for same in (frame, pa.table(table), pl.DataFrame(table), frame.astype({"key": "category"})):
        assert expected.copy().reset().update(same) == expected
    result = expected.compute()
    assert result["key"].tolist() == ["", "b", "b", None]
    assert result["code"].tolist() == [3, 1, 1, None]
    assert result["values"].tolist() == [">= 2", "< 2", ">= 2", "< 2"]
    assert expected[{"key": "b", "code": 1, "values": 0.5}].n_rows == 1


def test_results_travel():
    slices = sm.Slices(suite(), by=BY).update(rows())
    result = slices.compute()
    arrow, frame = result.to_arrow(), result.to_frame()
    assert arrow.column_names == list(frame.columns) == list(result)
    assert result.to_frame("polars").columns == list(result)
    assert arrow.num_rows == len(frame) == len(result)
    assert "<table>" in slices._repr_html_()
    assert pickle.loads(pickle.dumps(result)).keys() == result.keys()
    assert repr(slices).endswith("<400 rows>")
    assert slices.n_omitted == 0
    assert slices["auc"].compute() == slices[{}].compute()["auc"]
    assert list(slices) == ["f1", "auc", "recall", "mean", "median"]


def test_bounds_hold_the_values():
    slices = sm.Slices(sm.MetricSet({"auc": sm.ROCAUC(max_bins=2)}), by=[["k"], []])
    rng = np.random.default_rng(0)
    slices.update(y_true=rng.integers(0, 2, 99), y_score=rng.random(99), k=rng.integers(0, 3, 99))
    values, bounds = slices.compute(), slices.bounds()
    assert (bounds["auc_low"] < values["auc"]).all()
    assert (values["auc"] < bounds["auc_high"]).all()
    assert not slices.exact


def test_confidence_is_that_of_each_slice():
    f1 = sm.MetricSet({"f1": sm.F1(threshold=0.5)}, columns={"y_true": "label"})
    table = {name: rows()[name] for name in ("label", "y_score", "device")}
    slices = sm.Slices(f1, by=[["device"]]).update(table)
    result = slices.compute(confidence=0.9)
    for row, device in enumerate(result["device"]):
        limits = slices[{"device": device}]["f1"].confidence(0.9)
        assert [result["f1_low"][row], result["f1_high"][row]] == list(limits)
    assert slices.confidence(0.9)["f1_low"].tolist() == result["f1_low"].tolist()


def test_slices_without_confidence_are_warned_of_once():
    buffered = sm.MetricSet({"report": sm.ConfusionMatrix()})
    slices = sm.Slices(buffered, by="k").update(y_true=[0, 1], y_pred=[0, 1], k=[1, 2])
    with pytest.warns(sm.UndefinedMetricWarning, match="has no confidence limits in 2 of 2 slices"):
        slices.compute(confidence=0.9)


def test_the_warning_says_why_there_are_no_limits():
    binned = sm.Slices(sm.MetricSet({"ece": sm.CalibrationError()}), by="k")
    binned.update(y_true=[0, 1], y_score=[0.2, 0.6], k=[1, 2])
    with pytest.warns(sm.UndefinedMetricWarning, match="first of k=1: .* chance alone moves every"):
        table = binned.compute(confidence=0.9)
    assert np.isnan(table["ece_low"]).all()


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"by": "d"}, r"\(by is \[\['d'\]\] there and \[\['k'\]\] here\)"),
        ({"by": "k", "unit": "u"}, r"\(unit is 'u' there and None here\)"),
    ],
)
def test_a_refused_merge_tells_what_differs_and_nothing_else(other, told):
    metrics = sm.MetricSet({"acc": sm.Accuracy()})
    with pytest.raises(sm.IncompatibleMetricsError, match=told):
        sm.Slices(metrics, by="k").merge(sm.Slices(metrics, **other))
    renamed = sm.MetricSet({"acc": sm.Accuracy()}, columns={"y_true": "label"})
    with pytest.raises(sm.IncompatibleMetricsError, match=r"differ \(columns are .* here\)"):
        sm.Slices(metrics, by="k").merge(sm.Slices(renamed, by="k"))


def test_folded_slices_do_not_depend_on_the_order():
    rng = np.random.default_rng(5)
    table = {
        "values": rng.random(600),
        "user": rng.integers(0, 200, 600),
        "k": rng.integers(0, 3, 600),
    }
    by = [[], ["user"], ["k"]]
    empty = sm.Slices(sm.MetricSet({"mean": sm.Mean()}), by=by, max_slices=20, overflow="other")
    expected = empty.copy().update(table)
    for _ in range(4):
        shards = [
            empty.copy().update(taken(table, index))
            for index in np.array_split(rng.permutation(600), 5)
        ]
        assert sm.merge(shards) == expected
    result = expected.compute()
    users = result["by"] == "user"
    assert users.sum() == 21
    assert result["user"][users][-1] == "(other)"
    assert result["n_rows"][users].sum() == result["n_rows"][0] == 600
    assert (result["by"] == "k").sum() == 3
    assert expected[{"user": "(other)"}].n_rows == result["n_rows"][users][-1]
    kept = result["user"][users][0]
    assert result["n_rows"][users][0] == (table["user"] == kept).sum()
    assert sm.from_bytes(expected.to_bytes()) == expected


REFUSED = [
    ({"country": ["a", 1]}, "country"),
    (
        {"country": [1, 2]},
        "by country: 'integers' here, 'text' in rows seen before; write keys as one kind",
    ),
    ({"country": [True, False]}, "by country: 'true or false' here, 'text'"),
    ({"country": [0.5, 1.0]}, r"country is not a key .* in 1 row, first in row 0 \(0.5\)"),
    ({"country": np.zeros((2, 2), int)}, r"country has shape \(2, 2\)"),
    ({"country": np.array(["2026-01-01T10", "2026-01-01"], "M8[h]")}, "country holds times of day"),
    ({"country": [datetime.date(2026, 1, 1), "x"]}, "country holds dates and 'x', first in row 1"),
    ({"country": ["a"]}, "country has 1 rows"),
    ({"age": ["old", "young"]}, "age holds text; Bins need numbers"),
    ({"country": ["DE", "x1"]}, r"6 slices and more, beyond the limit of 5: 'country' alone has"),
]


@pytest.mark.parametrize(("columns", "message"), REFUSED)
def test_bad_keys_change_nothing(columns, message):
    slices = five_slices()
    before = slices.to_bytes()
    batch = {"values": np.ones(2), "country": ["DE", "DE"], "age": np.ones(2), **columns}
    with pytest.raises(sm.InvalidBatchError, match=message):
        slices.update(batch)
    assert slices.to_bytes() == before


def five_slices():
    by = [["country", sm.Bins("age", [18])]]
    slices = sm.Slices(sm.MetricSet({"mean": sm.Mean()}), by=by, max_slices=5)
    return slices.update(
        values=[1.0] * 5, country=["DE", "DE", "FR", "FR", "x"], age=[1, 20, 1, 20, 1]
    )


@pytest.mark.parametrize(
    ("last", "message"), [("x1", "6 slices and more"), (5, "strings|kind"), (None, "6 slices")]
)
def test_bad_keys_in_long_batches_change_nothing(last, message):
    slices = five_slices()
    before = slices.to_bytes()
    country = [*["DE"] * 200_000, last]
    with pytest.raises(sm.InvalidBatchError, match=message):
        slices.update(values=np.ones(200_001), country=country, age=np.ones(200_001))
    assert slices.to_bytes() == before


def test_too_many_slices_do_not_merge():
    def some(keys):
        return sm.Slices(sm.MetricSet({"mean": sm.Mean()}), by=[["k"]], max_slices=3).update(
            values=np.ones(len(keys)), k=keys
        )

    mine, theirs = some([1, 2]), some([3, 4])
    before = mine.to_bytes()
    with pytest.raises(sm.IncompatibleMetricsError, match="4 slices and more, beyond the limit"):
        mine.merge(theirs)
    assert mine.to_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"by": []}, "does not name a column"),
        ({"by": [[]]}, "does not name a column"),
        ({"by": [[1]]}, "expected a list of lists of columns"),
        ({"by": [["a", "a"]]}, "has a column twice"),
        ({"by": [["a"], [sm.Bins("a", [1])]]}, "in two ways"),
        ({"by": [["a", "b"], ["b", "a"]]}, r"twice: \['a', 'b'\] and \['b', 'a'\]"),
        ({"by": {"a", "b"}}, "a set has no order"),
        ({"by": [{"a", "b"}]}, "a set has no order"),
        ({"by": "a", "unit": ""}, "expected the name of a column"),
        ({"by": [["f1"]]}, "a metric is called 'f1'"),
        ({"by": [["n_rows"]]}, "the result has a column 'n_rows'"),
        ({"by": "a", "max_slices": 0}, "max_slices=0"),
        ({"by": "a", "overflow": "drop"}, "overflow='drop'"),
    ],
)
def test_configurations_without_sense_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        sm.Slices(suite(), **arguments)


def test_what_is_no_fresh_set_is_refused():
    with pytest.raises(TypeError, match="Slices are of a MetricSet, not of an F1"):
        sm.Slices(sm.F1(), by="a")
    with pytest.raises(ValueError, match="has already seen 400 rows"):
        sm.Slices(suite().update({k: rows()[k] for k in ("label", "y_score", "amount")}), by="a")


@pytest.mark.parametrize("edges", [[], [2, 1], [1, 1], [float("nan")], ["a"], [float("inf")]])
def test_bins_without_sense_are_refused(edges):
    with pytest.raises(ValueError, match=r"Bins\('age'"):
        sm.Bins("age", edges)


def test_missing_slices_and_columns_are_named():
    slices = sm.Slices(suite(), by=BY).update(rows())
    with pytest.raises(KeyError, match="no slice country=DEE; did you mean .*country=DE"):
        slices[{"country": "DEE"}]
    with pytest.raises(KeyError, match=r"no slices by \['city'\]"):
        slices[{"city": 1}]
    with pytest.raises(sm.InvalidBatchError, match="no column 'country'"):
        slices.update({k: v for k, v in rows().items() if k != "country"})
    with pytest.raises(sm.IncompatibleMetricsError, match=r"by is .* there and .* here"):
        slices.merge(sm.Slices(suite(), by=BY[:2]))


def test_threads_lose_nothing():
    table = rows(600)
    slices = sm.Slices(suite(), by=BY)
    parts = [taken(table, slice(start, start + 20)) for start in range(0, 600, 20)]

    def feed(batches):
        for batch in batches:
            slices.update(batch)
            assert slices.n_rows % 20 == 0

    threads = [threading.Thread(target=feed, args=(parts[k::3],)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert slices == sm.Slices(suite(), by=BY).update(table)


def test_undefined_slices_are_warned_of_once():
    slices = sm.Slices(sm.MetricSet({"auc": sm.ROCAUC()}), by="k")
    slices.update(y_true=[1, 1, 0, 1], y_score=[0.1, 0.2, 0.3, 0.4], k=["a", "b", "c", "c"])
    with pytest.warns(
        sm.UndefinedMetricWarning, match="'auc' is nan in 2 of 3 slices, first of k=a"
    ):
        assert np.isnan(slices.compute()["auc"]).tolist() == [True, True, False]


def test_a_table_of_slices_prints_as_one():
    suite = sm.MetricSet({"acc": sm.Accuracy(), "n": sm.Mean()}, columns={"values": "x"})
    slices = sm.Slices(suite, by=[[], ["day"], ["day", "odd"]])
    slices.update(
        y_true=[1, 0, 1], y_pred=[1, 1, 1], x=[0.5, 1.5, 1 / 3], day=["Mon", None, "Mon"],
        odd=[True, False, True],
    )  # fmt: skip
    assert repr(slices.compute()).splitlines() == [
        "by        day      odd    n_rows       acc         n",
        "all rows                       3  0.666667  0.777778",
        "day       Mon                  2         1  0.416667",
        "day       missing              1         0       1.5",
        "day, odd  Mon      True        2         1  0.416667",
        "day, odd  missing  False       1         0       1.5",
    ]
    many = sm.Slices(sm.MetricSet({"x": sm.Mean()}), by="k").update(
        values=np.arange(50.0), k=np.arange(50)
    )
    lines = str(many.compute()).splitlines()
    assert lines[:2] == ["k   n_rows   x", "0        1   0"]
    assert lines[-1] == "20 more rows"
    assert len(lines) == 32


@pytest.mark.parametrize("by", [["device"], [[], ["device"], ["device", "country"]]])
@pytest.mark.parametrize("unit", [None, "age"])
def test_a_table_has_the_same_columns_before_any_row(by, unit):
    metrics = {"f1": sm.F1(threshold=0.5), "auc": sm.ROCAUC()}
    slices = sm.Slices(sm.MetricSet(metrics, columns={"y_true": "label"}), by=by, unit=unit)
    full = slices.copy().update({name: rows()[name] for name in slices._needed})
    kinds = [lambda x: x.compute(), lambda x: x.bounds(), lambda x: x.confidence(unit=unit)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sm.UndefinedMetricWarning)
        for kind in kinds:
            assert list(kind(slices)) == list(kind(full))
            assert len(kind(slices)) == ([] in by)


@pytest.mark.parametrize(
    "change",
    [lambda meta: meta.update(unit=None), lambda meta: meta.update(by=[["country", "device"]])],
)
def test_keys_of_other_columns_are_no_state(change):
    f1 = sm.MetricSet({"f1": sm.F1(threshold=0.5)}, columns={"y_true": "label"})
    slices = sm.Slices(f1, by=["country"], unit="age")
    slices.update({name: rows()[name] for name in ("label", "y_score", "country", "age")})
    blob = forged(slices.to_bytes(), lambda header, meta: change(meta))
    with pytest.raises(sm.StateFormatError, match="is not a key of"):
        sm.from_bytes(blob)
