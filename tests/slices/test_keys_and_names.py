"""Keys that are hard to tell apart, and columns of the result that would have one name."""

from __future__ import annotations

import datetime
import uuid
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import streammetrics as sm
from streammetrics.slices import keyed
from streammetrics.slices.table import named
from streammetrics.statistics.keys import parts_of_each

ACC = sm.MetricSet({"acc": sm.Accuracy()})


def by_key(keys, by="k"):
    rows = {"y_true": [1] * len(keys), "y_pred": [1] * len(keys), "k": keys}
    return sm.Slices(ACC, by=by).update(rows)


@pytest.mark.parametrize("name", ["acc_low", "acc_high", "acc_rest", "p", "p_adjusted", "by"])
def test_key_is_not_called_as_a_column_of_the_result(name):
    with pytest.raises(ValueError, match=f"by names the column '{name}.*rename one"):
        sm.Slices(ACC, by=[[], [name]])


@pytest.mark.parametrize("name", ["n_rows", "by", "p"])
def test_metric_is_not_called_as_a_column_of_the_result(name):
    metrics = sm.MetricSet({name: sm.Accuracy()})
    with pytest.raises(ValueError, match=f"the result has a column '{name}': rename the metric"):
        sm.Slices(metrics, by="k")
    assert sm.MetricSet({name: sm.Accuracy()}, unit="user").n_rows == 0  # which has no table


def test_metrics_do_not_share_a_column_of_the_result():
    with pytest.raises(
        ValueError, match="metric 'acc_low', which is the name of a limit of metric 'acc'"
    ):
        sm.Slices(sm.MetricSet({"acc": sm.Accuracy(), "acc_low": sm.Recall()}), by="k")
    several = sm.MetricSet({"f": sm.F1(average=None, zero_division=0), "f_1": sm.Recall()})
    slices = sm.Slices(several, by="k").update(y_true=[1], y_pred=[1], k=["a"])
    with pytest.raises(ValueError, match="two columns of the result are called 'f_1'"):
        slices.compute()


def test_column_without_a_name_is_refused():
    with pytest.raises(ValueError, match="where a column is a name, Bins or Periods"):
        sm.Slices(ACC, by=[[], [""]])


def test_names_with_commas_are_columns_like_others():
    rows = {"y_true": [1, 1], "y_pred": [1, 0], "city, state": ["Bonn", None], "k": [1, 2]}
    table = sm.Slices(ACC, by=[[], ["city, state"], ["k", "city, state"]]).update(rows).compute()
    assert str(table).splitlines()[3].split() == ["city,", "state", "missing", "1", "0"]
    assert [table._sliced(at) for at in (0, 1, 3)] == [[], ["city, state"], ["k", "city, state"]]


def test_bins_are_told_apart_to_the_last_digit():
    slices = by_key([1_000_000, 1_000_001, 1_000_002], sm.Bins("k", [1_000_001, 1_000_002]))
    assert slices.compute()["k"].tolist() == ["< 1000001", "[1000001, 1000002)", ">= 1000002"]
    assert slices[{"k": "[1000001, 1000002)"}].n_rows == 1
    near = by_key([0.12345671, 0.12345675], sm.Bins("k", [0.1234567, 0.12345672])).compute()
    assert near["k"].tolist() == ["[0.1234567, 0.12345672)", ">= 0.12345672"]


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_large_integers_are_cut_exactly(dtype):
    edge = 2**53 + 4
    values = np.array([edge - 1, edge, edge + 1, 5], dtype)  # the first is edge as a float64
    table = by_key(values, sm.Bins("k", [-2.5, 5.5, edge, 1e30])).compute()
    told = dict(zip(table["k"].tolist(), table["n_rows"].tolist(), strict=True))
    assert list(told.values()) == [1, 1, 2]
    with pytest.raises(
        ValueError, match=f"edge {2**53 + 1} is not a float64; the nearest .* {2**53}"
    ):
        sm.Bins("k", [2**53 + 1])


DAY = datetime.datetime(2024, 1, 2)
UTC, BERLIN = datetime.UTC, datetime.timezone(datetime.timedelta(hours=1), "Berlin")


@pytest.mark.parametrize(
    "make",
    [
        lambda zone, _: [DAY.replace(tzinfo=zone)],
        lambda _, name: pd.Series([DAY]).dt.tz_localize(name),
        lambda _, name: pa.array([DAY], pa.timestamp("us", name)),
        lambda _, name: pl.Series([DAY]).dt.replace_time_zone(name),
    ],
)
def test_days_of_a_zone_are_those_of_utc_or_refused(make):
    assert by_key(make(UTC, "UTC")).compute().to_dict()["k"] == ["2024-01-02"]
    with pytest.raises(
        sm.InvalidBatchError, match="times of the zone .*Berlin.*convert them to UTC"
    ):
        by_key(make(BERLIN, "Europe/Berlin"))


@pytest.mark.parametrize(
    "keys", [pd.Series(pd.cut([1.0, 2.0], [0, 1, 2])), [uuid.UUID(int=5)], [b"a"]]
)
def test_what_is_no_key_is_told_what_to_pass(keys):
    with pytest.raises(sm.InvalidBatchError, match="keys are text, integers.*pass them as text"):
        by_key(keys)


def test_key_of_another_kind_is_told():
    with pytest.raises(KeyError, match="no slice k='1': keys there are int"):
        by_key([1, 2])[{"k": "1"}]
    with pytest.raises(KeyError, match="no metric 'ac'; did you mean 'acc'"):
        by_key([1])["ac"]


@pytest.mark.parametrize(
    ("options", "told"),
    [({"k": 0}, "k=0"), ({"k": 2.5}, "k=2.5"), ({"min_rows": -1}, "min_rows=-1"),
     ({"lowest": "x"}, "lowest='x'")],
)  # fmt: skip
def test_worst_refuses_what_is_no_number_of_slices(options, told):
    with pytest.raises(ValueError, match=told):
        by_key([1, 2]).worst("acc", **options)


def test_gap_tells_which_slices_it_leaves_out():
    slices = sm.Slices(sm.MetricSet({"auc": sm.ROCAUC()}), by="k")
    slices.update(y_true=[1, 0, 1], y_score=[0.1, 0.2, 0.3], k=["a", "a", "b"])
    with pytest.warns(
        sm.UndefinedMetricWarning, match=r"of 1 slices: 1 are left out, first k=b, as 'auc' is nan"
    ):
        _ = slices.gap("auc", method="to_overall")


HALF = "b\ud800"  # of a character: such text is neither printed nor written to a file


@pytest.mark.parametrize("keys", [["a", HALF, HALF], np.array(["a", HALF, HALF])])
def test_half_a_character_is_no_key(keys):
    slices = by_key(["a"])
    before = slices.to_bytes()
    rows = {"y_true": [1] * 3, "y_pred": [1] * 3, "k": keys}
    told = r"k holds half a character .* in 2 rows, first in row 1 \('b\\ud800'\); decode it anew"
    with pytest.raises(sm.InvalidBatchError, match=told):
        slices.update(rows)
    assert slices.to_bytes() == before
    whole = by_key(["a", "\U0001f600", "\ue000"])
    assert sm.from_bytes(whole.to_bytes())[{"k": "\U0001f600"}].n_rows == 1


def test_tables_for_people_say_what_is_missing():
    slices = by_key(["a", None], [[], ["k"]])
    html, text = slices._repr_html_(), slices.compute().to_markdown()
    assert "None" not in html + text
    assert "<td>missing</td>" in html
    assert text.splitlines()[1] == "| :-- | :-- | --: | --: |"


def test_many_look_ups_read_the_keys_once(monkeypatch):
    rows = {"y_true": [1] * 300, "y_pred": [1] * 300, "k": range(300), "half": [0, 1] * 150}
    slices = sm.Slices(ACC, by=[["k"], ["k", "half"]]).update(rows)
    read = []
    monkeypatch.setattr(
        keyed, "parts_of_each", lambda texts: read.extend(texts) or parts_of_each(texts)
    )
    found = [slices[{"k": key}].n_rows for key in range(300)]
    assert (found, slices[{}].n_rows) == ([1] * 300, 300)
    finest, coarser = 300, 300  # the keys that are kept, and those of the kind that is asked for
    assert len(read) <= finest + coarser
    slices.update({"y_true": [0], "y_pred": [1], "k": [7], "half": [0]})
    assert (slices[{"k": 7}].n_rows, slices[{"k": 7, "half": 0}].n_rows) == (2, 1)


def test_curves_have_no_columns_but_a_slice_has_its_own():
    suite = sm.MetricSet(
        {"auc": sm.ROCAUC(), "roc": sm.ROCCurve(), "best": sm.RecallAtPrecision(p=0.5)}
    )
    y, s, key = [0, 1, 0, 1, 1], [0.1, 0.9, 0.6, 0.5, 0.7], ["a", "a", "b", "b", "b"]
    slices = sm.Slices(suite, by="k").update(y_true=y, y_score=s, k=key)
    values = {title.partition("_")[0] for title in slices.confidence(0.9) if title not in {"k"}}
    assert values == {"n", "auc", "best"}
    assert not any(title.startswith("roc") for title in slices.bounds())
    alone = sm.ROCCurve().update(y[2:], s[2:]).compute()
    assert all(map(np.array_equal, slices[{"k": "b"}]["roc"].compute(), alone))


def of_key(*keys, by="k"):
    slices = sm.Slices(sm.MetricSet({"mean": sm.Mean()}), by=by)
    return slices.update(values=np.arange(float(len(keys))), k=list(keys))


def test_true_among_numbers_is_no_key_of_the_same_kind():
    """True would count as 1, and say nothing."""
    slices = of_key()
    for keys in ([1, True, 2], [None, 1, False], [1.0, np.bool_(True)]):
        for column in (keys, np.array(keys, object)):
            with pytest.raises(
                sm.InvalidBatchError, match=r"k holds numbers and, first in row 1|2"
            ):
                slices.update(values=np.arange(float(len(keys))), k=column)
    assert slices.n_rows == 0
    assert of_key(True, None, False).compute()["k"].tolist() == [False, True, None]


def test_dates_are_found_by_the_text_that_a_table_tells():
    day = datetime.date(2024, 2, 29)
    slices = of_key(day, datetime.date(2024, 3, 1), day)
    told = slices.compute().to_dict()["k"]
    assert told == ["2024-02-29", "2024-03-01"]
    assert [slices[{"k": key}].n_rows for key in told] == [2, 1]
    with pytest.raises(KeyError, match="no slice k='29 Feb'|no slice k=29 Feb"):
        slices[{"k": "29 Feb"}]
    texts = of_key("2024-02-29", "2024-03-01")
    assert texts[{"k": "2024-02-29"}].n_rows == 1
    with pytest.raises(KeyError, match="keys there are str"):
        texts[{"k": day}]


@pytest.mark.parametrize(
    "found",
    [
        datetime.datetime(2024, 2, 29),
        datetime.datetime(2024, 2, 29, tzinfo=datetime.UTC),
        np.datetime64("2024-02-29", "ns"),
        np.datetime64("2024-02-29"),
        pd.Timestamp("2024-02-29"),
    ],
)
def test_dates_are_found_by_any_date_that_could_be_a_key(found):
    slices = of_key(datetime.date(2024, 2, 29), datetime.date(2024, 3, 1), None)
    assert slices[{"k": found}].n_rows == 1
    for missing in (np.datetime64("NaT"), pd.NaT, None):
        assert slices[{"k": missing}].n_rows == 1


@pytest.mark.parametrize(
    "odd",
    [
        datetime.datetime(2024, 2, 29, 5),
        np.datetime64("2024-02-29T05:00"),
        pd.Timestamp("2024-02-29", tz="Europe/Berlin"),
    ],
)
def test_a_time_that_is_no_key_finds_no_date(odd):
    slices = of_key(datetime.date(2024, 2, 29))
    with pytest.raises(KeyError, match="is not a key: times of day, or of a zone, are not dates"):
        slices[{"k": odd}]


def test_a_gap_that_is_not_defined_has_no_bounds_to_tell():
    with pytest.warns(
        sm.UndefinedMetricWarning, match="it takes two slices, and only k=a is there"
    ):
        gap = by_key(["a"]).gap("acc")
    assert str(gap) == "nan"


@pytest.mark.parametrize("by", [3, [3], None, [None], [["k", 3]]])
def test_what_is_no_column_to_slice_by_is_told_how_to_write_it(by):
    with pytest.raises(ValueError, match=r'such as \[\["country"\], \["country", "device"\]\]'):
        sm.Slices(sm.MetricSet({"mean": sm.Mean()}), by=by)


@pytest.mark.parametrize("edges", ["30", "18,30", "", [], [3, 1], [1, 1]])
def test_edges_that_are_none_are_told_how_to_write_them(edges):
    with pytest.raises(ValueError, match=r"such as Bins\('age', \[18, 30, 50\]\)"):
        sm.Bins("age", edges)


@pytest.mark.parametrize("values", [[datetime.date(2024, 1, 1)], [b"a"], [{}]])
def test_bins_and_units_say_what_they_need(values):
    accuracy = sm.MetricSet({"acc": sm.Accuracy()})
    binned = sm.Slices(accuracy, by=[[sm.Bins("k", [1])]])
    with pytest.raises(sm.InvalidBatchError, match="k holds .* in row 0; Bins need numbers"):
        binned.update(y_true=[1], y_pred=[1], k=values)
    with pytest.raises(sm.InvalidBatchError, match="u holds .*; units are text or integers"):
        sm.Slices(accuracy, by="k", unit="u").update(y_true=[1], y_pred=[1], k=[1], u=values)


def test_inputs_that_share_a_column_are_told_once():
    suite = sm.MetricSet(
        {"acc": sm.Accuracy(threshold=0.5), "mean": sm.Mean()}, columns={"values": "y_score"}
    )
    told = "the inputs are 'y_true', 'y_score', 'sample_weight'$"
    with pytest.raises(sm.InvalidBatchError, match=told):
        suite.update(y_true=[1], y_score=[0.5], label=[1])


def test_slices_of_different_keys_have_different_names():
    texts = ["missing", "(other)", "x", "x, h=y", 'x", h="y', "z", "y, h=z"]
    keys = [*product([None, *texts], repeat=2)]
    names = [named(("g", "h"), parts) for parts in keys]
    assert len({*names, named(("g", "h"), None)}) == len(keys) + 1
    assert named(("g", "h"), ("DE", None)) == "g=DE, h=missing"
