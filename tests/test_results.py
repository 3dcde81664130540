"""Results of several numbers: arrays, tuples and dictionaries that know what they are of."""

from __future__ import annotations

import copy
import json
import math
import pickle
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from oracles.table import ORACLES

import streammetrics as sm
from streammetrics.core.results.values import LabelledArray, Result
from streammetrics.testing import same_value, split_rows

HOSTILE = "<script>alert('&')</script>"
CLASSES = ["cat", "dog", HOSTILE]
RNG = np.random.default_rng(0)
N = 200
ROWS = {
    "y_true": np.array(CLASSES)[RNG.integers(0, 3, N)],
    "y_pred": np.array(CLASSES)[RNG.integers(0, 3, N)],
}
SHARES = RNG.dirichlet(np.ones(3), N)
SCORES = {"y_true": ROWS["y_true"], "y_score": SHARES}
TARGETS = {"y_true": RNG.normal(size=(N, 2)), "y_pred": RNG.normal(size=(N, 2))}
QUERIES = {
    "query": RNG.integers(0, 9, N),
    "relevance": RNG.integers(0, 3, N),
    "score": RNG.random(N),
}
POINTS = {"X": RNG.normal(size=(N, 2)), "labels": RNG.integers(0, 3, N)}
SUITE = sm.MetricSet({"accuracy": sm.Accuracy(), "recall": sm.Recall(average=None)})

# Each way to a result: a metric, its rows, and how it is read.
RESULTS = {
    "confusion matrix": (sm.ConfusionMatrix(), ROWS, sm.Metric.compute),
    "shares of a confusion matrix": (sm.ConfusionMatrix(normalize="all"), ROWS, sm.Metric.compute),
    "values of classes": (sm.F1(average=None), ROWS, sm.Metric.compute),
    "areas of classes": (sm.ROCAUC(average=None, labels=CLASSES), SCORES, sm.Metric.compute),
    "report": (sm.ClassificationReport(), ROWS, sm.Metric.compute),
    "ROC curves": (sm.ROCCurve(labels=CLASSES), SCORES, sm.Metric.compute),
    "precision-recall curves": (sm.PrecisionRecallCurve(), SCORES_01 := {
        "y_true": RNG.integers(0, 2, N), "y_score": RNG.random(N)}, sm.Metric.compute),
    "calibration": (sm.CalibrationCurve(), SCORES_01, sm.Metric.compute),
    "outputs": (sm.MAE(multioutput="raw_values"), TARGETS, sm.Metric.compute),
    "queries": (sm.NDCG(), QUERIES, sm.NDCG.per_query),
    "clusters": (sm.Silhouette(), POINTS, sm.Silhouette.per_cluster),
    "interval": (sm.ROCAUC(max_bins=16), SCORES_01, sm.Metric.bounds),
    "interval of classes": (sm.F1(average=None), ROWS, sm.Metric.bounds),
    "interval of a curve": (sm.CalibrationCurve(max_bins=16), SCORES_01, sm.Metric.bounds),
    "set": (SUITE, ROWS, sm.MetricSet.compute),
    "bounds of a set": (SUITE, ROWS, sm.MetricSet.bounds),
}  # fmt: skip


@pytest.fixture(params=RESULTS)
def result(request):
    metric, rows, read = RESULTS[request.param]
    return read(metric.copy().feed(rows))


def test_result_is_plain_python_ready_for_json(result):
    plain = result.to_dict()
    assert types_in(plain) <= {dict, list, str, int, float}
    assert json.loads(json.dumps(plain))


def types_in(value):
    inside = [*value.keys(), *value.values()] if type(value) is dict else value
    if not isinstance(inside, list):
        return {type(value)}
    return {type(value)}.union(*map(types_in, inside))


def test_frames_of_both_libraries_have_the_same_cells(result):
    frame, other = result.to_frame(), result.to_frame("polars")
    assert isinstance(frame, pd.DataFrame)
    assert isinstance(other, pl.DataFrame)
    if frame.index.names != [None]:
        frame = frame.reset_index()
    assert other.columns == list(map(str, frame.columns))
    assert len(frame) == len(other) > 0
    for (_, mine), theirs in zip(frame.items(), other.iter_columns(), strict=True):
        assert list(map(str, mine.tolist())) == list(map(str, theirs.to_list()))


def test_html_is_a_table_of_escaped_text(result):
    html = result._repr_html_()
    assert html.startswith("<table>")
    assert "<script" not in html
    assert len(html) < 40_000


def test_result_is_pickled_and_copied_with_what_it_is_of(result):
    for twin in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result), copy.copy(result)):
        assert type(twin) is type(result)
        assert same_value(twin, result)
        assert twin.to_dict() == result.to_dict()


@pytest.mark.parametrize("name", RESULTS)
def test_labels_are_right_after_any_sharding(name):
    metric, rows, read = RESULTS[name]
    whole = read(metric.copy().feed(rows)).to_dict()
    for seed in range(3):
        rng = np.random.default_rng(seed)
        order = rng.permutation(N)
        shuffled = {column: values[order] for column, values in rows.items()}
        shards = [metric.copy().feed(part) for part in split_rows(shuffled, rng)]
        assert read(sm.merge(shards[::-1])).to_dict() == whole


def test_cells_of_a_matrix_are_those_of_its_labels():
    matrix = sm.ConfusionMatrix().update(**ROWS).compute()
    frame, plain, wide = matrix.to_frame(), matrix.to_dict(), matrix.to_frame("polars")
    for true in CLASSES:
        for pred in CLASSES:
            count = int(np.sum((ROWS["y_true"] == true) & (ROWS["y_pred"] == pred)))
            assert frame.loc[true, pred] == plain[true][pred] == count
            assert wide.filter(pl.col("y_true") == true)[pred].item() == count
    assert (frame.index.name, frame.columns.name) == ("y_true", "y_pred")


def test_arrays_behave_as_arrays():
    matrix = sm.ConfusionMatrix().update([0, 1, 1], [0, 1, 0]).compute()
    assert isinstance(matrix, np.ndarray)
    np.testing.assert_array_equal(matrix, [[1, 0], [1, 1]])
    assert (matrix == np.array([[1, 0], [1, 1]])).all()
    assert repr(matrix) == "array([[1, 0],\n       [1, 1]])"
    assert matrix.tolist() == [[1, 0], [1, 1]]
    for made in (matrix[0], matrix[:, 1], matrix @ matrix, matrix.sum(axis=0), matrix.cumsum(0)):
        assert not isinstance(made, LabelledArray) or not made.axes
    assert type(matrix[1, 1]) is np.int64
    assert type(matrix.sum()) is np.int64


def test_what_is_computed_place_by_place_keeps_the_labels():
    matrix = sm.ConfusionMatrix().update(["a", "b", "b"], ["a", "b", "a"]).compute()
    assert (matrix / 2).to_dict() == {"a": {"a": 0.5, "b": 0.0}, "b": {"a": 0.5, "b": 0.5}}
    assert (1 - matrix + matrix).to_dict()["b"] == {"a": 1, "b": 1}
    others = sm.ConfusionMatrix().update(["c", "d"], ["c", "d"]).compute()
    assert type(matrix + others) is np.ndarray  # whose labels would these be?


def test_what_is_made_of_an_array_does_not_borrow_its_labels():
    matrix = sm.ConfusionMatrix().update(**ROWS).compute()
    with pytest.raises(ValueError, match="ask the result"):
        matrix.T.to_frame()
    with pytest.raises(ValueError, match="ask the result"):
        matrix.copy().to_dict()
    assert matrix.T._repr_html_() is None


def test_report_in_a_frame_has_accuracy_in_the_column_of_f1():
    report = sm.ClassificationReport().update([0, 1, 1, 1], [0, 1, 1, 0]).compute()
    frame = report.to_frame()
    assert isinstance(report, dict)
    assert list(frame.index) == ["0", "1", "accuracy", "macro avg", "weighted avg"]
    assert frame.loc["accuracy", "f1-score"] == 0.75
    assert math.isnan(frame.loc["accuracy", "precision"])
    assert frame.loc["1", "support"] == 3


def test_class_that_is_called_as_an_average_is_not_lost_in_a_report():
    report = sm.ClassificationReport().update(["accuracy", "speed"], ["accuracy", "accuracy"])
    with pytest.raises(sm.InvalidBatchError, match="a class is called 'accuracy'"):
        report.compute()


def test_last_point_of_a_precision_recall_curve_has_no_threshold():
    curve = sm.PrecisionRecallCurve().update([0, 1], [0.2, 0.6]).compute()
    frame = curve.to_frame()
    assert list(frame.columns) == ["precision", "recall", "threshold"]
    assert frame["threshold"].isna().tolist() == [False, False, True]
    assert list(curve.to_dict()) == ["precision", "recall", "thresholds"]


def test_curves_of_many_points_are_shown_in_a_few_lines():
    y, s = RNG.integers(0, 2, 900), RNG.random(900)
    curve = sm.ROCCurve().update(y, s).compute()
    assert len(repr(curve)) < 500
    assert "871 more rows" in curve._repr_html_()


def test_wide_matrices_are_cut_short_in_notebooks():
    labels = np.arange(100)
    html = sm.ConfusionMatrix().update(labels, labels).compute()._repr_html_()
    assert "70 more" in html
    assert html.count("<tr>") == 32


def test_set_in_a_frame_has_a_row_for_every_number():
    frame = (
        sm.MetricSet({"a": sm.Accuracy(), "f1": sm.F1(average=None)})
        .update(y_true=[0, 1], y_pred=[0, 0])
        .compute()
        .to_frame("polars")
    )
    assert frame.rows()[:2] == [("a", "", 0.5), ("f1", "0", 2 / 3)]
    plain = sm.MetricSet({"a": sm.Accuracy()}).update(y_true=[0, 1], y_pred=[0, 0])
    assert plain.compute().to_frame("polars").rows() == [("a", 0.5)]
    assert plain.bounds().to_frame("polars").rows() == [("a", 0.5, 0.5)]


def test_counts_and_means_are_in_one_column():
    both = sm.MetricSet({"n": sm.Count(), "mean": sm.Mean()}).update(values=[1.0, 2.0]).compute()
    assert both.to_frame("polars").rows() == [("n", 2.0), ("mean", 1.5)]
    assert both.to_frame()["value"].tolist() == [2.0, 1.5]
    assert both.to_dict() == {"n": 2, "mean": 1.5}


def test_frame_library_that_is_missing_or_unknown_is_named(monkeypatch):
    values = SUITE.copy().update(**ROWS).compute()
    with pytest.raises(ValueError, match="expected 'pandas' or 'polars'"):
        values.to_frame("spark")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install pandas, or ask for to_frame\('polars'\)"):
        values.to_frame()


def test_undefined_values_stay_nan():
    with pytest.warns(sm.UndefinedMetricWarning, match="no rows were seen"):
        empty = sm.F1(average=None, labels=["a", "b"]).compute()
    assert list(map(math.isnan, empty.to_dict().values())) == [True, True]
    assert isinstance(empty, LabelledArray)


def test_set_is_read_as_a_dictionary():
    assert list(SUITE.keys()) == list(SUITE) == ["accuracy", "recall"]
    assert dict(SUITE).keys() == dict(SUITE.items()).keys()
    assert [metric.config for metric in SUITE.values()] == [SUITE[n].config for n in SUITE]


def test_metric_shows_its_value_where_reading_is_cheap():
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # looking at a metric warns of nothing
        assert repr(sm.Mean()) == "Mean() <0 rows>"
        assert repr(sm.Mean().update([1.0, 2.0])) == "Mean() <2 rows> = 1.5"
        assert repr(sm.ROCAUC().update([1], [0.5])) == "ROCAUC() <1 rows> = nan"
        # Three classes have no binary average, and showing the metric is no place to say so.
        assert repr(sm.F1().update([0, 1, 2], [0, 1, 2])) == "F1() <3 rows>"
        large = sm.ROCAUC().update(RNG.integers(0, 2, 9000), RNG.random(9000))
        assert repr(large) == "ROCAUC() <9,000 rows>"


def test_metrics_and_sets_show_themselves_in_notebooks():
    matrix = sm.ConfusionMatrix().update(**ROWS)._repr_html_()
    suite = sm.MetricSet({HOSTILE: sm.Accuracy(), "f1": sm.F1(average=None, pos_label=HOSTILE)})
    html = suite.update(**ROWS)._repr_html_()
    assert "200 rows" in matrix
    assert "<script" not in matrix + html
    assert f"{suite[HOSTILE].compute():.6g}" in html


def test_ledgers_show_themselves_in_notebooks():
    suite = sm.MetricSet({HOSTILE: sm.Accuracy()})
    ledger = sm.Ledger(suite)
    assert "0 shards" in ledger._repr_html_()
    html = ledger.add(1, suite.copy().update(**ROWS))._repr_html_()
    assert "1 shard, 0 sealed" in html
    assert f"{suite.update(**ROWS)[HOSTILE].compute():.6g}" in html
    html = ledger.add(1, suite)._repr_html_()
    assert "1 shard, 0 sealed" in html
    html = ledger.add(1, suite.update(**ROWS))._repr_html_()
    assert "1 contradicted" in html
    assert "<script" not in html


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
@pytest.mark.filterwarnings("ignore::streammetrics.EstimateWarning")
def test_every_value_of_every_metric_is_a_number_or_tells_what_it_is_of():
    for oracle in ORACLES:
        metric = oracle.metric.copy().feed(oracle.rows(np.random.default_rng(0), 30))
        for value in (metric.compute(), *metric.bounds()):
            assert isinstance(value, int | float | Result), oracle.id
            if isinstance(value, Result):
                assert len(value.to_frame()) > 0
                assert types_in(value.to_dict()) <= {dict, list, str, int, float}


def test_a_matrix_of_no_classes_is_an_empty_table():
    matrix = sm.ConfusionMatrix().compute()
    assert matrix.to_dict() == {}
    assert matrix._repr_html_() == "<table><tr><th>y_true</th></tr></table>"
    slices = sm.Slices(sm.MetricSet({"matrix": sm.ConfusionMatrix()}), by=[[], ["k"]])
    assert slices.compute().to_dict()["n_rows"] == [0]


def test_slashes_within_names_do_not_make_two_parts_one():
    suite = sm.MetricSet({"m": sm.ConfusionMatrix()})
    suite.update(y_true=["a", "a/a", "a"], y_pred=["a/a", "a", "a"])
    of = suite.compute().to_frame("polars")["of"].to_list()
    assert of == ["a/a", r"a/a\/a", r"a\/a/a", r"a\/a/a\/a"]
