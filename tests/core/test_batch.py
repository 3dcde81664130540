"""What goes in: the value of one batch, rows that a statistic refuses, and messages of sets."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import streammetrics as sm
from streammetrics.core.columns.batch import Batch
from streammetrics.core.columns.numbers import Numbers
from streammetrics.core.columns.schema import Schema
from streammetrics.core.metric import Metric
from streammetrics.core.statistic import Statistic
from streammetrics.testing import check_laws

RNG = np.random.default_rng(0)
METRICS = {
    "f1": (lambda: sm.F1(threshold=0.5), ("y_true", "y_score")),
    "auc": (sm.ROCAUC, ("y_true", "y_score")),
    "mse": (sm.MSE, ("y_true", "y_pred")),
    "ndcg": (lambda: sm.NDCG(k=3), ("query", "relevance", "score", "doc")),
    "set": (lambda: sm.MetricSet({"f1": sm.F1(threshold=0.5), "loss": sm.LogLoss()}),
            ("y_true", "y_score")),
}  # fmt: skip


def some(names, n, start=0):
    rows = {name: RNG.random(n) for name in names}
    for name in {"y_true", "relevance", "query"} & {*names}:
        rows[name] = RNG.integers(0, 2, n)
    if "doc" in names:
        rows["doc"] = np.arange(start, start + n)
    return rows


@pytest.mark.parametrize("n", [2, 64, 20_000, 70_000])
@pytest.mark.parametrize("name", METRICS)
def test_batch_updates_and_gives_the_value_of_the_batch_alone(name, n):
    make, names = METRICS[name]
    running, updated = make(), make()
    for start in (0, n, 2 * n):
        rows = some(names, n, start)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sm.UndefinedMetricWarning)
            value, alone = running.batch(**rows), make().update(**rows).compute()
        np.testing.assert_equal(value, alone)
        assert type(value) is type(alone)
        updated.update(**rows)
    assert running.to_bytes() == updated.to_bytes()


def test_a_batch_that_cannot_be_read_changes_nothing():
    f1, before = sm.F1(), sm.F1().update([0, 1], [1, 1])
    f1.merge(before)
    with pytest.raises(sm.InvalidBatchError, match="two classes"):
        f1.batch([0, 1, 2], [0, 1, 2])
    with pytest.raises(sm.InvalidBatchError, match="missing"):
        f1.batch([0.0, np.nan], [0, 1])
    assert f1 == before
    accuracy = sm.Accuracy().update([0, 1], [1, 1])
    for n in (1, 20_000):
        with pytest.raises(sm.InvalidBatchError, match="'strings' here"):
            accuracy.batch(["a"] * n, ["a"] * n)
    assert accuracy == sm.Accuracy().update([0, 1], [1, 1])
    with pytest.raises(sm.StreamMetricsError, match="view"):
        sm.MetricSet({"a": accuracy.reset()})["a"].batch([0], [0])


def test_warnings_name_the_line_that_asked():
    suite = sm.MetricSet({"auc": sm.ROCAUC()})
    for metric in (suite, suite["auc"], sm.ROCAUC()):
        with pytest.warns(sm.UndefinedMetricWarning, match="no rows were seen") as caught:
            metric.compute()
        assert [warning.filename for warning in caught] == [__file__]
    for metric in (suite, sm.ROCAUC()):
        with pytest.warns(sm.UndefinedMetricWarning, match="only one class was seen") as caught:
            metric.batch(y_true=[1], y_score=[0.5])
        assert [warning.filename for warning in caught] == [__file__]


class Picky(Statistic):
    """Counts rows, and refuses 13 too late."""

    @property
    def schema(self):
        return Schema((Numbers("values"),))

    def clear(self):
        self.n = 0

    def update(self, values, *, weight):
        if 13.0 in values:
            raise RuntimeError("thirteen")
        if 99.0 in values:
            raise MemoryError
        self.n += len(values)

    def merge(self, other):
        self.n += other.n

    def arrays(self):
        return {"n": np.array([self.n])}

    def restore(self, arrays):
        self.n = int(arrays["n"][0])


class PickyCount(Metric):
    """Counts rows."""

    def statistics(self):
        return (Picky(),)

    def readout(self, counts):
        return float(counts.n)

    def update(self, values):
        return self.feed({"values": values})


READS = (
    "compute", "bounds", "to_bytes", "copy", "__repr__",
    lambda m: m.n_rows, lambda m: m.nbytes, lambda m: sm.merge([m, m]),
    lambda m: m.merge(PickyCount()), lambda m: m.update(np.ones(70_000)),
)  # fmt: skip


@pytest.mark.parametrize("read", READS)
def test_rows_that_a_statistic_refuses_are_dropped_with_their_error(read):
    metric = PickyCount().update([1.0, 2.0]).update([3.0, 13.0, 4.0]).update([5.0])
    with pytest.raises(sm.InvalidBatchError, match=r"3 rows .* update 2 of the 3 .*thirteen") as e:
        read(metric) if callable(read) else getattr(metric, read)()
    assert isinstance(e.value.__cause__, RuntimeError)
    assert (metric.compute(), metric.n_rows) == (3.0, 3)
    assert metric == PickyCount().update([1.0, 2.0, 5.0])


def test_rows_refused_at_once_are_not_taken():
    metric = PickyCount().update([1.0])
    many = np.append(np.ones(20_000), 13.0)
    with pytest.raises(RuntimeError, match="thirteen"):
        metric.update(many)
    with pytest.raises(sm.InvalidBatchError, match="thirteen"):
        metric.batch([13.0])
    assert metric.compute() == 1.0


def test_an_exhausted_memory_drops_nothing():
    metric = PickyCount().update([1.0]).update([99.0])
    for _ in range(2):
        with pytest.raises(MemoryError, match="^$"):
            metric.compute()


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("times", [1, 2])
def test_what_a_signals_handler_raises_drops_nothing(read, times, monkeypatch):
    """A timeout is passed on, and is not taken for what a statistic says of its rows."""
    metric = PickyCount().update([1.0, 2.0]).update([3.0])
    due, plain = [TimeoutError("time is up")] * times, Picky.update

    def interrupted(*columns, **weight):
        if due:
            raise due.pop()
        plain(*columns, **weight)

    monkeypatch.setattr(Picky, "update", interrupted)
    with pytest.raises(TimeoutError, match="time is up"):
        read(metric) if callable(read) else getattr(metric, read)()
    assert (metric.compute(), metric.n_rows) == (3.0, 3)


def test_dropped_rows_leave_no_trace():
    class PickyLabels(Picky):
        @property
        def schema(self):
            return sm.Accuracy().statistics()[0].schema

        def update(self, true, pred, *, weight):
            if len(true.values) == 3:
                raise ValueError
            self.n += len(true.values)

    class Labels(PickyCount):
        def statistics(self):
            return (PickyLabels(),)

    metric = Labels().feed({"y_true": list("abc"), "y_pred": list("abc")})
    with pytest.raises(sm.InvalidBatchError, match="3 rows were dropped"):
        metric.compute()
    assert metric == Labels()
    assert metric.feed({"y_true": [1], "y_pred": [1]}).compute() == 1.0


def test_the_law_kit_finds_statistics_that_refuse_too_late():
    check_laws(PickyCount(), {"values": np.arange(10.0)})
    with pytest.raises(AssertionError, match=r"takes every row that its schema accepts.*thirteen"):
        check_laws(PickyCount(), {"values": np.arange(20.0)})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sm.MetricSet([sm.F1(), sm.ROCAUC()]),
         r"by name, not as a list: MetricSet\(\{'f1': sm.F1\(\), 'rocauc': sm.ROCAUC\(\)\}\)"),
        (lambda: sm.MetricSet(sm.F1()), r"not as an F1: MetricSet\(\{'f1': sm.F1\(\)\}\)"),
        (lambda: sm.MetricSet({"f1": sm.F1}), r"'f1' is a class, not a metric: F1\(\) makes one"),
        (lambda: sm.MetricSet({"f1": 1}), "'f1' is an int, not a metric"),
        (lambda: sm.F1(treshold=0.5), "no parameter 'treshold'; did you mean 'threshold'[?] There"),
        (lambda: sm.Mean(x=1), "Mean has no parameter 'x'; there are: nan_policy"),
        (lambda: sm.F1(0.5), "by name: threshold, labels"),
        (lambda: sm.MetricSet({"a": sm.MAE()}, columns={"y_true": 0, "y_pred": 1}),
         "0 is not a column: .* where these are numbers or tuples, pass the columns by name"),
    ],
)  # fmt: skip
def test_what_makes_no_metric_or_set_is_said_in_words(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_a_set_of_nothing_and_misspelt_columns_are_refused_with_words():
    with pytest.raises(sm.InvalidBatchError, match="no metrics to update"):
        sm.MetricSet({}).update(y_true=[1])
    assert sm.MetricSet({}).compute() == {}
    with pytest.raises(sm.InvalidBatchError, match="no column 'values'; there are: none$"):
        sm.Mean().update(None)
    suite = sm.MetricSet({"f1": sm.F1()}, columns={"y_true": "label"})
    with pytest.raises(sm.InvalidBatchError, match="'lable'; did you mean 'label'"):
        suite.update(lable=[1], y_pred=[1])
    with pytest.raises(
        sm.InvalidBatchError, match="there are: 'Lable', 'y_pred'; did you mean 'La"
    ):
        suite.update({"Lable": [1], "y_pred": [1]})
    for columns in (("y", "p"), ["y"], "y", {3: "y"}, {("a", "b"): "y"}, 3):
        with pytest.raises(TypeError, match="columns=.*expected a dictionary from an input's name"):
            sm.MetricSet({"f1": sm.F1()}, columns=columns)
        with pytest.raises(TypeError, match="columns=.*expected a dictionary from an input's name"):
            sm.MetricSet({"f1": sm.F1()}, columns=columns, unit="user")
    with pytest.raises(ValueError, match="renames 'y_tru'.*did you mean 'y_true'"):
        sm.MetricSet({"f1": sm.F1()}, columns={"y_tru": "label"})


def test_merging_says_the_difference_and_no_more():
    f1, auc = sm.F1(threshold=0.5), sm.ROCAUC(max_bins=64)
    suite = sm.MetricSet({"f1": f1, "auc": auc})
    columns = {"y_true": "label"}
    for other, difference in (
        ({"f1": sm.F1(threshold=0.4), "auc": auc}, "of 'f1', threshold is 0.4 there and 0.5 here"),
        ({"f1": f1, "auc": sm.LogLoss()}, "'auc' is LogLoss() there, ROCAUC(max_bins=64) here"),
        ({"f1": f1, "area": auc}, "'area' is only there; 'auc' is only here"),
        ({"auc": auc, "f1": f1}, "the metrics are in another order"),
    ):
        with pytest.raises(sm.IncompatibleMetricsError, match="differ [(]") as caught:
            suite.merge(sm.MetricSet(other))
        assert f"the configurations differ ({difference})" in str(caught.value)
    with pytest.raises(sm.IncompatibleMetricsError, match=r"columns are \{'y_true': 'label'\} the"):
        suite.merge(sm.MetricSet({"f1": f1, "auc": auc}, columns=columns))
    with pytest.raises(
        sm.IncompatibleMetricsError, match=r"differ \(threshold is None there and 0"
    ):
        f1.merge(sm.F1())
    with pytest.raises(sm.IncompatibleMetricsError, match="a MetricSet of 2 metrics into F1"):
        f1.merge(suite)


def test_a_metric_takes_what_a_view_of_a_set_has_seen():
    rows = {"y_true": [0, 1, 1], "y_score": [0.1, 0.9, 0.2]}
    suite = sm.MetricSet({"loss": sm.LogLoss(), "auc": sm.ROCAUC()}).update(**rows)
    for name, blank in (("loss", sm.LogLoss()), ("auc", sm.ROCAUC())):
        assert blank.merge(suite[name]) == type(blank)().update(**rows)


@pytest.mark.parametrize("metric", [sm.F1(), sm.MSE(), sm.NDCG(), sm.Mean(), sm.ROCAUC()])
def test_a_misspelt_column_is_told(metric):
    name = type(metric).update.__qualname__
    with pytest.raises(TypeError, match=rf"^{name}\(\) got an unexpected.*'y_tru'"):
        metric.update(y_tru=[0, 1])


def binary_set():
    return sm.MetricSet({"f1": sm.F1(threshold=0.5), "auc": sm.ROCAUC(), "loss": sm.LogLoss()})


def test_metrics_that_share_a_column_read_arrays_as_they_read_lists():
    y, score = np.array([0, 1, 1, 0]), np.array([0.25, 0.75, 0.5, 1.0])
    whole = binary_set().update(y_true=y, y_score=score)
    listed = binary_set().update(y_true=y.tolist(), y_score=score.tolist())
    assert whole == listed
    assert binary_set()._plan.whole(Batch({"y_true": y, "y_score": score})) is not None


@pytest.mark.parametrize("wrong", [1.5, np.nan, -0.5])
def test_what_one_of_several_metrics_refuses_no_metric_takes(wrong):
    suite, score = binary_set(), np.array([0.25, wrong, 0.5, 1.0])
    with pytest.raises(sm.InvalidBatchError, match="first in row 1"):
        suite.update(y_true=np.array([0, 1, 1, 0]), y_score=score)
    assert suite == binary_set()
