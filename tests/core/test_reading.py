"""Metrics that ask for different things of the same columns share one reading of them."""

from __future__ import annotations

import numpy as np
import pytest

import streammetrics as sm
from streammetrics.core.columns.batch import Batch
from streammetrics.core.feeding.plan import Plan
from streammetrics.core.state.container import ROWS, opened, packed, unpacked

_Y = np.array([0, 1, 1, 0, 1])
_P = np.array([0.1, 0.4, 0.9, 0.2, 0.6])


def plan_of(*metrics):
    return Plan(statistic for metric in metrics for statistic in metric.statistics())


def refusal(metric, rows):
    with pytest.raises(sm.InvalidBatchError, match=r".") as caught:
        metric.update(**rows)
    return str(caught.value)


def bytes_of(column):
    return column.nbytes if isinstance(column, np.ndarray) else column.values.nbytes


def test_a_label_and_a_score_wait_once_at_nine_bytes_a_row():
    plan = plan_of(sm.F1(threshold=0.5), sm.ROCAUC(), sm.LogLoss(), sm.CalibrationError())
    assert len(plan.start.statistics) == 4
    (rows,) = plan.read(Batch({"y_true": _Y, "y_score": _P}))
    assert sum(map(bytes_of, rows.columns)) == 9 * _Y.size


@pytest.mark.parametrize(
    ("metrics", "rows"),
    [
        ((sm.MSE(), sm.MSLE(), sm.MAPE(), sm.TweedieDeviance(power=1.5), sm.MaxError(), sm.R2()),
         {"y_true": [1.0, 2.0], "y_pred": [1.5, 3.0]}),
        ((sm.Mean(), sm.Minimum(), sm.Quantile(q=0.5), sm.Count()), {"values": [1.0, 2.0]}),
        ((sm.NDCG(), sm.NDCG(ties="doc"), sm.ExpectedReciprocalRank(max_grade=3)),
         {"query": [1], "relevance": [1], "score": [0.5], "doc": [7]}),
        ((sm.TopKAccuracy(k=2), sm.LogLoss(), sm.ROCAUC(), sm.LogLoss(from_logits=True)),
         {"y_true": [0, 2], "y_score": [[0.2, 0.5, 0.3], [0.1, 0.2, 0.7]]}),
    ],
)  # fmt: skip
def test_metrics_of_one_task_have_one_reading(metrics, rows):
    batch = Batch({name: np.array(column) for name, column in rows.items()})
    assert len(plan_of(*metrics).read(batch)) == 1


@pytest.mark.parametrize(
    ("easy", "strict", "rows"),
    [
        (sm.ROCAUC(), sm.LogLoss(), {"y_true": _Y, "y_score": _P * 2}),
        (sm.ROCAUC(), sm.LogLoss(from_logits=True), {"y_true": _Y, "y_score": _P * np.inf}),
        (sm.LogLoss(), sm.F1(threshold=0.5),
         {"y_true": _Y, "y_score": np.stack([1 - _P, _P], axis=1)}),
        (sm.ROCAUC(), sm.TopKAccuracy(k=2), {"y_true": _Y, "y_score": _P}),
        (sm.ROCAUC(), sm.CalibrationError(), {"y_true": _Y, "y_score": _Y + 2**60}),
        (sm.MAE(), sm.MSLE(), {"y_true": _P - 2, "y_pred": _P}),
        (sm.MAE(), sm.GammaDeviance(), {"y_true": _P, "y_pred": _P - 0.5}),
        (sm.Sum(), sm.Quantile(q=0.5), {"values": _Y + 2**60}),
        (sm.Minimum(), sm.Mean(), {"values": _P * np.inf}),
        (sm.NDCG(), sm.ExpectedReciprocalRank(max_grade=1),
         {"query": _Y, "relevance": _Y * 2, "score": _P}),
    ],
)  # fmt: skip
def test_a_set_refuses_what_one_of_its_metrics_refuses(easy, strict, rows):
    easy.copy().update(**rows)
    words = refusal(strict, rows)
    for metrics in ({"a": easy, "b": strict}, {"b": strict, "a": easy}):
        suite = sm.MetricSet(metrics)
        assert refusal(suite, rows) == words
        assert suite.n_rows == 0


def test_logits_wait_as_they_are_and_each_metric_makes_its_own_of_them():
    rng = np.random.default_rng(5)
    y, z = rng.integers(0, 3, 200), rng.normal(size=(200, 3)) * 4
    metrics = {
        "auc": sm.ROCAUC(from_logits=True), "loss": sm.LogLoss(from_logits=True),
        "brier": sm.BrierScore(from_logits=True), "top": sm.TopKAccuracy(k=2),
    }  # fmt: skip
    assert len(plan_of(*metrics.values()).read(Batch({"y_true": y, "y_score": z}))) == 1
    suite = sm.MetricSet(metrics)
    for part in np.array_split(np.arange(200), 7):
        suite.update(y_true=y[part], y_score=z[part])
    for name, metric in metrics.items():
        assert metric.copy().update(y, z).to_bytes() == suite[name].to_bytes()


def test_a_state_in_which_metrics_of_one_reading_saw_different_rows_is_refused():
    suite = sm.MetricSet({"f1": sm.F1(threshold=0.5), "auc": sm.ROCAUC()})
    file = unpacked(suite.update(y_true=_Y, y_score=_P).to_bytes(), lambda _: None)
    meta = {name: value for name, value in file.meta.items() if name not in {"format", "checksum"}}
    first, second = meta[ROWS]
    meta[ROWS] = [[first[0], first[1] + 1, first[2]], second]
    opening = opened({name: meta[name] for name in meta if name != ROWS})
    with pytest.raises(sm.StateFormatError, match="saw different rows"):
        sm.from_bytes(packed({ROWS: meta[ROWS]}, file.arrays, opening))
