"""The front door: metrics and sets of them."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import streammetrics as sm

Y = np.array([0, 1, 1, 0, 1])
S = np.array([0.1, 0.4, 0.9, 0.2, 0.7])


def test_update_chains_and_counts():
    f1 = sm.F1(threshold=0.5).update(Y, S).update(y_true=[1], y_score=[0.9])
    assert f1.n_rows == 6
    assert f1.compute() == pytest.approx(6 / 7)
    assert f1.exact
    assert f1.bounds() == sm.Interval(f1.compute(), f1.compute())
    assert repr(f1) == "F1(threshold=0.5) <6 rows> = 0.857143"


def test_parameters_are_keyword_only_canonical_and_fixed():
    with pytest.raises(TypeError, match="by name: threshold"):
        sm.F1(0.5)
    assert sm.F1(threshold=1) == sm.F1(threshold=np.float32(1))
    assert sm.ConfusionMatrix(labels=np.array([0, 1])) == sm.ConfusionMatrix(labels=[0, 1])
    with pytest.raises(AttributeError, match="fixed at construction"):
        sm.F1().threshold = 0.4
    with pytest.raises(ValueError, match="'binary' or 'micro'"):
        sm.F1(average="mean")
    with pytest.raises(ValueError, match="expected a number or a tuple of numbers or None"):
        sm.F1(threshold="high")


def test_undefined_is_nan_with_one_warning():
    with pytest.warns(sm.UndefinedMetricWarning, match="F1 is nan: no rows") as caught:
        assert np.isnan(sm.F1().compute())
    assert len(caught) == 1
    with pytest.warns(sm.UndefinedMetricWarning, match="all rows are of one class"):
        assert np.isnan(sm.MatthewsCorrcoef().update([1, 0], [0, 0]).compute())
    with pytest.warns(sm.UndefinedMetricWarning, match="class 1"):
        assert np.isnan(sm.Precision().update([1, 0], [0, 0]).compute())
    assert sm.Precision(zero_division=0.0).update([1, 0], [0, 0]).compute() == 0


def test_copies_are_equal_and_independent():
    f1 = sm.F1(threshold=0.5).update(Y, S)
    for twin in (f1.copy(), copy.copy(f1), copy.deepcopy(f1), pickle.loads(pickle.dumps(f1))):
        assert twin == f1
        twin.update(Y, S)
        assert twin != f1
    assert f1.n_rows == 5
    assert f1 != sm.Recall(threshold=0.5).update(Y, S)


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (sm.F1(threshold=0.4), "F1(threshold=0.4)"), (sm.F1(), "F1()"),
        (sm.Recall(threshold=0.5), "Recall(threshold=0.5)"),
        (sm.MetricSet({}), "a MetricSet of 0 metrics"),
    ],
)  # fmt: skip
def test_merging_another_configuration_names_both(other, named):
    f1 = sm.F1(threshold=0.5).update(Y, S)
    before = f1.to_bytes()
    with pytest.raises(sm.IncompatibleMetricsError, match=r"F1\(threshold=0.5\)") as caught:
        f1.merge(f1.copy(), other)
    assert "F1(threshold=0.5)" in str(caught.value)
    assert named in str(caught.value)
    assert f1.to_bytes() == before


def test_merging_other_kinds_of_labels_raises():
    words = sm.Accuracy().update(["a"], ["a"])
    numbers = sm.Accuracy().update([1], [1])
    with pytest.raises(sm.IncompatibleMetricsError, match="strings"):
        numbers.merge(words)
    assert numbers.merge(sm.Accuracy().update([True], [True])).compute() == 1


def test_merge_of_nothing():
    with pytest.raises(ValueError, match="nothing to merge"):
        sm.merge([])


def test_small_batches_are_seen_at_once_and_do_not_alias():
    f1 = sm.F1(threshold=0.5)
    y, s = Y.copy(), S.copy()
    states = []
    for _ in range(3):
        f1.update(y, s)
        y[:], s[:] = 0, 1
        states.append(f1.to_bytes())
        y[:], s[:] = Y, S
    assert sm.from_bytes(states[0]) == sm.F1(threshold=0.5).update(Y, S)
    assert f1.n_rows == 15


@pytest.mark.parametrize("n", [1, 64, 16_384, 16_385, 65_536, 65_537, 200_000])
def test_sizes_around_blocks(n):
    rng = np.random.default_rng(0)
    y, s = rng.integers(0, 2, n), rng.random(n)
    one = sm.F1(threshold=0.5).update(y, s)
    many = sm.F1(threshold=0.5)
    for part in np.array_split(np.arange(n), 7):
        many.update(y[part], s[part])
    assert one == many
    assert one.n_rows == n


def test_many_tiny_batches():
    f1, rows = sm.F1(threshold=0.5), 3_000
    for _ in range(rows):
        f1.update([1], [0.7])
    assert (f1.n_rows, f1.compute()) == (rows, 1.0)


def suite():
    metrics = {"f1": sm.F1(threshold=0.5), "recall": sm.Recall(threshold=0.5), "acc": sm.Accuracy()}
    return sm.MetricSet(metrics, columns={"y_true": "label", "y_score": "p", "y_pred": "called"})


TABLE = {"label": Y, "p": S, "called": (S > 0.5).astype(int), "more": S}


def test_set_reads_what_its_metrics_would():
    fed = suite().update(TABLE)
    assert fed.compute() == {
        "f1": sm.F1(threshold=0.5).update(Y, S).compute(),
        "recall": sm.Recall(threshold=0.5).update(Y, S).compute(),
        "acc": sm.Accuracy().update(Y, TABLE["called"]).compute(),
    }
    assert (fed.n_rows, fed.exact, len(fed), list(fed)) == (5, True, 3, ["f1", "recall", "acc"])
    assert fed.bounds()["f1"].low == fed.compute()["f1"]
    assert sm.from_bytes(fed.to_bytes()) == fed == pickle.loads(pickle.dumps(fed)) == fed.copy()
    assert sm.merge([fed, fed]).n_rows == 10
    assert fed.copy().reset() == suite()


def test_set_shares_statistics_and_views_are_read_only():
    fed = suite().update(TABLE)
    apart = [fed[name].copy().nbytes for name in ("f1", "recall", "acc")]
    assert fed.nbytes == apart[0] + apart[2] == apart[1] + apart[2]
    view = fed["f1"]
    for call in (lambda: view.update(Y, S), lambda: view.merge(view), view.reset):
        with pytest.raises(sm.StreamMetricsError, match="view"):
            call()
    mine = view.copy()
    assert mine == sm.F1(threshold=0.5).update(Y, S)
    mine.update(Y, S)
    assert (view.n_rows, mine.n_rows) == (5, 10)
    fed.update(TABLE)
    assert view == mine
    assert sm.from_bytes(view.to_bytes()) == mine


def test_set_takes_tables_and_keywords():
    pd, pl, pa = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    expected = suite().update(TABLE)
    assert suite().update(label=Y, p=S, called=TABLE["called"]) == expected
    for table in (
        pd.DataFrame(TABLE),
        pl.DataFrame(TABLE),
        pa.table(TABLE),
        pa.RecordBatch.from_pydict(TABLE),
    ):
        assert suite().update(table) == expected


def test_two_inputs_may_name_one_column():
    both = sm.MetricSet({"acc": sm.Accuracy()}, columns={"y_true": "a", "y_pred": "a"})
    assert both.update(a=[1, 2, 3]).compute() == {"acc": 1.0}


def test_weights_by_name():
    weighted = sm.MetricSet({"acc": sm.Accuracy()}, columns={"sample_weight": "w"})
    table = {"y_true": [1, 0], "y_pred": [1, 1], "w": [3.0, 1.0]}
    assert weighted.update(table).compute() == {"acc": 0.75}
    with pytest.raises(sm.InvalidBatchError, match="no column 'w'"):
        weighted.update(y_true=[1], y_pred=[1])
    plain = sm.MetricSet({"acc": sm.Accuracy()})
    assert plain.update(y_true=[1, 0], y_pred=[1, 1], sample_weight=[3, 1]).compute()["acc"] == 0.75


@pytest.mark.parametrize("kind", [dict, pd.DataFrame, pa.table], ids=["dict", "pandas", "arrow"])
def test_a_tables_weights_count_only_where_they_are_named(kind):
    table = kind({"y_true": [1, 0], "y_pred": [1, 1], "sample_weight": [3.0, 1.0]})
    plain = sm.MetricSet({"acc": sm.Accuracy()})
    with pytest.warns(UserWarning, match="'sample_weight' is not read, and every row weighs 1"):
        plain.update(table)
    plain.update(table)  # said once
    assert plain.compute() == {"acc": 0.5}
    named = sm.MetricSet({"acc": sm.Accuracy()}, columns={"sample_weight": "sample_weight"})
    assert named.update(table).compute() == {"acc": 0.75}
    other = sm.MetricSet({"mean": sm.Mean()}, columns={"values": "sample_weight"})
    assert other.update(table).compute() == {"mean": 2.0}  # read, though not as weights


def test_set_refuses_to_start_fed_or_misnamed():
    with pytest.raises(ValueError, match="already seen 5 rows"):
        sm.MetricSet({"f1": sm.F1(threshold=0.5).update(Y, S)})
    with pytest.raises(ValueError, match="'y_tru'.*'y_true', 'y_pred', 'sample_weight'"):
        sm.MetricSet({"f1": sm.F1()}, columns={"y_tru": "label"})
    with pytest.raises(TypeError, match="not a metric"):
        sm.MetricSet({"f1": sm.F1})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.update({"label": Y, "p": S}), "no column 'called'; there are: 'label', 'p'"),
        (lambda s: s.update(label=Y, p=S, called=Y, w=S), "no input is called 'w'"),
        (lambda s: s.update(label=Y, p=S), "no column 'called'"),
        (lambda s: s.update(TABLE, label=Y), "not both"),
        (lambda s: s.update([1, 2]), "not a table"),
        (
            lambda s: s.update(label=Y, p=[*S[:4], np.nan], called=Y),
            "p .*missing.*1 row, first in row 4",
        ),
        (lambda s: s.update(label=Y, p=S, called=Y[:4]), "label has 5 rows, called has 4"),
    ],
)
def test_set_refuses_whole_batches(call, message):
    fed = suite().update(TABLE)
    before = fed.to_bytes()
    with pytest.raises(sm.InvalidBatchError, match=message):
        call(fed)
    assert fed.to_bytes() == before


def test_a_set_takes_other_names_after_an_update():
    one, weight = sm.MetricSet({"acc": sm.Accuracy(), "f1": sm.F1()}), [1.0, 2.0, 1.0, 1.0, 3.0]
    one.update(y_true=Y, y_pred=Y)
    one.update(y_pred=1 - Y, sample_weight=weight, y_true=Y)
    for columns, message in (
        ({"y_true": Y, "y_pred": None}, "y_pred is None; pass its values"),
        ({"y_true": Y, "y_prd": Y}, "no input is called 'y_prd'; did you mean 'y_pred'"),
        ({"y_true": Y}, "no column 'y_pred'; there are: 'y_true'"),
        ({}, "there are: none"),
    ):
        with pytest.raises(sm.InvalidBatchError, match=message):
            one.update(**columns)
    one.update(y_true=Y, y_pred=Y)
    other = sm.MetricSet({"acc": sm.Accuracy(), "f1": sm.F1()}, columns={"sample_weight": "w"})
    other.update({"y_true": Y, "y_pred": 1 - Y, "w": weight})
    for _ in range(2):
        other.update({"y_true": Y, "y_pred": Y, "w": np.ones(5)})
    assert one.compute() == other.compute()


@pytest.mark.parametrize("name", [1, None, ("a", 1)])
def test_a_set_has_names_that_its_bytes_can_hold(name):
    with pytest.raises(TypeError, match="a metric is named by a string, not by"):
        sm.MetricSet({name: sm.F1()})


def test_a_metric_that_a_set_has_not_is_told_with_those_it_has():
    with pytest.raises(KeyError, match="no metric 'acu'; did you mean 'auc'"):
        sm.MetricSet({"auc": sm.ROCAUC()})["acu"]


@pytest.mark.parametrize("what", [sm.F1(), sm.MetricSet({"a": sm.F1()}), sm.Ledger(), 3])
def test_what_is_merged_comes_in_a_list(what):
    with pytest.raises(TypeError, match=r"merge takes what it merges in a list: merge\(\[a, b\]\)"):
        sm.merge(what)


def test_what_is_no_state_is_not_merged():
    with pytest.raises(
        TypeError, match="item 1 to merge is not a metric, set or ledger but of type b"
    ):
        sm.merge([sm.F1(), sm.F1().to_bytes()])
