"""What the missing labels could do is what enumerating all of them finds."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest
from live.events import START

import streammetrics as sm

SUITE = {
    "auc": sm.ROCAUC(),
    "loss": sm.LogLoss(),
    "brier": sm.BrierScore(),
    "accuracy": sm.Accuracy(threshold=0.5),
    "precision": sm.Precision(threshold=0.5),
    "recall": sm.Recall(threshold=0.5),
    "f1": sm.F1(threshold=0.5),
    "fbeta": sm.FBeta(threshold=0.5, beta=2.0),
    "jaccard": sm.Jaccard(threshold=0.5),
    "specificity": sm.Specificity(threshold=0.5),
    "fpr": sm.FalsePositiveRate(threshold=0.5),
    "fnr": sm.FalseNegativeRate(threshold=0.5),
    "npv": sm.NegativePredictiveValue(threshold=0.5),
    "table": sm.ConfusionMatrix(threshold=0.5),
}


def values(suite):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sm.UndefinedMetricWarning)
        return suite.compute()


@pytest.mark.parametrize("seed", range(40))
def test_intervals_are_those_of_all_labelings(seed):
    dice = np.random.default_rng(seed)
    known, missing = int(dice.integers(0, 7)), int(dice.integers(1, 7))
    scores = dice.integers(1, 8, known + missing) / 8
    labels = dice.integers(0, 2, known)
    live = sm.Live(sm.MetricSet(SUITE))
    for place, score in enumerate(scores.tolist()):
        live.predict(id=place, time=START, y_score=score)
    for place, label in enumerate(labels.tolist()):
        live.label(id=place, time=START, y_true=label)
    found = live.possible("1min")
    every = []
    for rest in itertools.product([0, 1], repeat=missing):
        suite = sm.MetricSet(SUITE)
        every.append(values(suite.update(y_true=[*labels.tolist(), *rest], y_score=scores)))
    assert found.pop("table") is None
    for name, interval in found.items():
        defined = [one[name] for one in every if not math.isnan(one[name])]
        if not defined:
            assert interval is None
            continue
        assert interval.low == pytest.approx(min(defined), abs=1e-12), name
        assert interval.high == pytest.approx(max(defined), abs=1e-12), name


def test_errors_need_a_range_of_targets():
    live = sm.Live(sm.MetricSet({"mae": sm.MAE(), "rmse": sm.RMSE(), "r2": sm.R2()}))
    live.observe(time=START, y_true=3.0, y_pred=2.0)
    live.predict(id=1, time=START, y_pred=1.0).predict(id=2, time=START, y_pred=7.0)
    assert live.possible("1min") == {"mae": None, "rmse": None, "r2": None}
    found = live.possible("1min", target_range=(0.0, 5.0))
    assert found["mae"] == sm.Interval((1 + 0 + 2) / 3, (1 + 4 + 7) / 3)
    assert found["rmse"].high == pytest.approx(math.sqrt((1 + 16 + 49) / 3))
    assert found["r2"] is None


def test_without_missing_labels_it_is_what_is_known():
    live = sm.Live(sm.ROCAUC()).observe(time=START, y_true=1, y_score=0.5)
    live.observe(time=START, y_true=0, y_score=0.25)
    assert live.possible("1min") == sm.Interval(1.0, 1.0)
    live.predict(id=1, time=START, y_score=0.75)
    assert live.possible("1min") == sm.Interval(0.5, 1.0)


def test_a_label_that_never_comes_is_none_where_it_has_a_default():
    live = sm.Live(sm.Accuracy(threshold=0.5), label_ttl="5min", default_label=0)
    live.predict(id=1, time=START, y_score=0.75)
    assert live.possible("1h") == sm.Interval(0.0, 1.0)
    assert live.now(START + 301).possible("1h") == sm.Interval(0.0, 0.0)


def test_rows_that_left_without_a_label_leave_nothing_certain():
    live = sm.Live(sm.Accuracy(threshold=0.5), label_ttl="5min", label_lateness="5min")
    live.predict(id=1, time=START, y_score=0.75).observe(time=START + 900, y_true=1, y_score=1.0)
    live.to_bytes()
    assert live.possible("1h") is None
    assert live.possible("1min") == sm.Interval(1.0, 1.0)
