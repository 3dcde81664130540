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
    "balanced": sm.BalancedAccuracy(threshold=0.5),
    "mcc": sm.MatthewsCorrcoef(threshold=0.5),
    "kappa": sm.CohenKappa(threshold=0.5),
    "gmean": sm.GMean(threshold=0.5),
    "wrong": sm.ZeroOneLoss(threshold=0.5),
    "fdr": sm.FalseDiscoveryRate(threshold=0.5),
    "informed": sm.Informedness(threshold=0.5),
    "ap": sm.AveragePrecision(),
    "ks": sm.KolmogorovSmirnov(),
    "ece": sm.CalibrationError(n_bins=4),
    "rmsce": sm.CalibrationError(n_bins=4, norm="l2"),
    "mce": sm.CalibrationError(n_bins=4, norm="max", strategy="quantile"),
    "table": sm.ConfusionMatrix(threshold=0.5),
    "area": sm.PRAUC(),
    "partial": sm.ROCAUC(max_fpr=0.5),
    "micro": sm.F1(threshold=0.5, average="micro"),
}
WITHOUT = {"table", "area", "partial", "micro"}


def values(suite):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sm.UndefinedMetricWarning)
        return suite.compute()


def agrees(interval, every, name):
    """Check an interval with the values of all labelings."""
    defined = [value for value in every if not math.isnan(value)]
    if not defined:
        assert interval is None, name
        return
    assert interval is not None, name
    assert interval.low == pytest.approx(min(defined), abs=1e-9), name
    assert interval.high == pytest.approx(max(defined), abs=1e-9), name


def asked(metrics, scores, labels, name="y_score", **parameters):
    """Return what is possible where the last rows have no label."""
    live = sm.Live(metrics)
    for place, score in enumerate(scores):
        live.predict(id=place, time=START, **{name: score})
    for place, label in enumerate(labels):
        live.label(id=place, time=START, y_true=label)
    return live.possible("1min", **parameters)


@pytest.mark.parametrize(
    "seed", [*range(8), *[pytest.param(n, marks=pytest.mark.long) for n in range(8, 60)]]
)
def test_intervals_are_those_of_all_labelings(seed):
    dice = np.random.default_rng(seed)
    known, missing = int(dice.integers(0, 7)), int(dice.integers(1, 6))
    scores = dice.integers(1, dice.choice([4, 8, 64]), known + missing) / 64
    if seed % 2:
        scores = 1 - scores
    labels = dice.integers(0, 2, known)
    found = asked(sm.MetricSet(SUITE), scores.tolist(), labels.tolist())
    every = []
    for rest in itertools.product([0, 1], repeat=missing):
        suite = sm.MetricSet(SUITE)
        every.append(values(suite.update(y_true=[*labels.tolist(), *rest], y_score=scores)))
    assert {name: found[name] for name in WITHOUT} == dict.fromkeys(WITHOUT)
    for name in SUITE.keys() - WITHOUT:
        agrees(found[name], [one[name] for one in every], name)


@pytest.mark.parametrize("two", [("no", "yes"), (7, 3), (0, 1), (1, 0)])
@pytest.mark.parametrize("seed", range(2))
def test_labels_may_be_any_two(two, seed):
    dice = np.random.default_rng(seed)
    metrics = {
        "auc": sm.ROCAUC(pos_label=two[1]),
        "loss": sm.LogLoss(pos_label=two[1], labels=two),
        "f1": sm.F1(threshold=0.5, pos_label=two[1]),
        "ks": sm.KolmogorovSmirnov(pos_label=two[1], labels=two),
        "ece": sm.CalibrationError(pos_label=two[1], n_bins=3),
    }
    scores = (dice.integers(1, 8, 8) / 8).tolist()
    labels = [two[n] for n in dice.integers(0, 2, 4)]
    found = asked(sm.MetricSet(metrics), scores, labels)
    every = [
        values(sm.MetricSet(metrics).update(y_true=[*labels, *rest], y_score=scores))
        for rest in itertools.product(two, repeat=4)
    ]
    for name, interval in found.items():
        agrees(interval, [one[name] for one in every], name)


@pytest.mark.parametrize("seed", range(6))
def test_predicted_classes(seed):
    dice = np.random.default_rng(seed)
    names = ["ant", "bee", "cat"][: 2 + seed % 2]
    metrics = {"accuracy": sm.Accuracy(), "wrong": sm.ZeroOneLoss(normalize=False)}
    if len(names) == 2:
        metrics["recall"] = sm.Recall(pos_label="bee")
        metrics["mcc"] = sm.MatthewsCorrcoef(labels=names, pos_label="bee")
    predicted = [names[n] for n in dice.integers(0, len(names), 6)]
    labels = [names[n] for n in dice.integers(0, len(names), 3)]
    found = asked(sm.MetricSet(metrics), predicted, labels, "y_pred")
    every = [
        values(sm.MetricSet(metrics).update(y_true=[*labels, *rest], y_pred=predicted))
        for rest in itertools.product(names, repeat=3)
    ]
    for name, interval in found.items():
        agrees(interval, [one[name] for one in every], name)
    several = asked(sm.MetricSet({"f1": sm.F1(average="macro")}), predicted, labels, "y_pred")
    assert several == {"f1": None}


ERRORS = {
    "mae": sm.MAE(),
    "huber": sm.HuberLoss(delta=1.0),
    "logcosh": sm.LogCoshError(),
    "bias": sm.MeanError(),
    "pinball": sm.PinballLoss(alpha=0.8),
    "median": sm.MedianAbsoluteError(),
    "quantile": sm.AbsoluteErrorQuantile(q=0.9),
    "most": sm.MaxError(),
    "msle": sm.MSLE(),
    "rmsle": sm.RMSLE(),
    "mape": sm.MAPE(),
    "smape": sm.SMAPE(),
    "r2": sm.R2(),
    "wape": sm.WAPE(),
}


@pytest.mark.parametrize("seed", range(4))
def test_errors_over_all_targets_of_a_range(seed):
    dice = np.random.default_rng(seed)
    predicted, labels = dice.integers(1, 40, 6) / 4, dice.integers(1, 20, 3) / 2
    low, high = sorted((dice.integers(1, 20, 2) / 2 + [0.0, 0.25]).tolist())
    found = asked(
        sm.MetricSet(ERRORS), predicted.tolist(), labels.tolist(), "y_pred",
        target_range=(low, high),
    )  # fmt: skip
    grid = [
        sorted({low, (low + high) / 2, high, float(np.clip(guess, low, high))})
        for guess in predicted[3:]
    ]
    every = [
        values(sm.MetricSet(ERRORS).update(y_true=[*labels, *rest], y_pred=predicted))
        for rest in itertools.product(*grid)
    ]
    assert found["r2"] is found["wape"] is None
    for name in ERRORS.keys() - {"r2", "wape"}:
        agrees(found[name], [one[name] for one in every], name)


def test_many_rows_have_certain_limits():
    dice = np.random.default_rng(0)
    scores = dice.random(30_000)
    labels = (dice.random(30_000) < scores).astype(int)
    metrics = {"ks": sm.KolmogorovSmirnov(), "auc": sm.ROCAUC(), "ap": sm.AveragePrecision()}
    live = sm.Live(sm.MetricSet(metrics)).predict(
        id=np.arange(30_000), time=np.full(30_000, START), y_score=scores
    )
    live.label(id=np.arange(15_000), time=np.full(15_000, START), y_true=labels[:15_000])
    found = live.possible("1min")
    whole = sm.MetricSet(metrics).update(y_true=labels, y_score=scores).compute()
    assert found["ap"] is None
    for name in ("ks", "auc"):
        assert found[name].low < whole[name] < found[name].high


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


@pytest.mark.parametrize("wrong", [(3, 0), (math.nan, 1), (0,), 5, ("a", 1)])
def test_a_range_of_targets_that_is_none_is_refused(wrong):
    state = sm.Live(sm.MAE()).predict(id=1, time=START, y_pred=1.0)
    with pytest.raises(ValueError, match="target_range=.*: expected the least and the largest"):
        state.possible("1min", target_range=wrong)
