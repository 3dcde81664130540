"""How often the limits of a difference hold, and how often chance is taken for evidence."""

from __future__ import annotations

import numpy as np
import pytest

import streammetrics as sm

pytestmark = pytest.mark.long

SAMPLES = 300
BINARY = {
    "accuracy": sm.Accuracy(threshold=0.5),
    "recall": sm.Recall(threshold=0.5),
    "f1": sm.F1(threshold=0.5),
    "auc": sm.ROCAUC(),
    "ap": sm.AveragePrecision(),
    "loss": sm.LogLoss(),
}
REGRESSION = {"mae": sm.MAE(), "rmse": sm.RMSE(), "r2": sm.R2()}


def binary(n, rng, skills):
    y = (rng.random(n) < 0.3).astype(int)
    common = rng.normal(size=n)
    noise = {
        m: skill * (2 * y - 1) + common + 0.8 * rng.normal(size=n) for m, skill in skills.items()
    }
    return {"y_true": y, **{m: 1 / (1 + np.exp(-z)) for m, z in noise.items()}}


def regression(n, rng, skills):
    y, common = rng.normal(size=(2, n))
    errors = {m: 0.5 * common + skill * rng.normal(size=n) for m, skill in skills.items()}
    return {"y_true": y, **{m: y + error for m, error in errors.items()}}


@pytest.mark.parametrize(
    ("metrics", "rows", "skills"),
    [
        (BINARY, binary, {"a": 1.0, "b": 1.0}),
        (BINARY, binary, {"a": 1.2, "b": 0.9}),
        (REGRESSION, regression, {"a": 0.6, "b": 0.6}),
        (REGRESSION, regression, {"a": 0.6, "b": 0.7}),
    ],
    ids=["equal scores", "better scores", "equal predictions", "better predictions"],
)
def test_limits_hold_as_often_as_they_say(metrics, rows, skills):
    rng = np.random.default_rng(0)
    empty = sm.Comparison(metrics, {"a": "a", "b": "b"})
    truth = {
        line.metric: 0.0 if skills["a"] == skills["b"] else line.difference
        for line in empty.copy().update(rows(400_000, rng, skills)).compute()
    }
    held, alarms = dict.fromkeys(metrics, 0), dict.fromkeys(metrics, 0)
    for _ in range(SAMPLES):
        for line in empty.copy().update(rows(300, rng, skills)).compute():
            held[line.metric] += line.low <= truth[line.metric] <= line.high
            alarms[line.metric] += line.verdict != "no evidence"
    # Three standard errors of a share of 0.95 are 4 %.
    shares = {name: times / SAMPLES for name, times in held.items()}
    assert all(0.915 <= share <= 0.99 for share in shares.values()), shares
    if skills["a"] == skills["b"]:
        told = {name: times / SAMPLES for name, times in alarms.items()}
        assert all(share <= 0.09 for share in told.values()), told


@pytest.mark.parametrize("queries", [8, 40])
def test_runs_that_are_alike_are_seldom_told_apart(queries):
    rng = np.random.default_rng(1)
    alarms = 0
    for _ in range(SAMPLES):
        query, doc = np.repeat(np.arange(queries), 6), np.tile(np.arange(6), queries)
        relevance = rng.integers(0, 2, 6 * queries)
        runs = {m: relevance + rng.normal(size=6 * queries) for m in "ab"}
        trial = sm.Comparison({"ndcg": sm.NDCG(k=3)}, {"a": "a", "b": "b"})
        trial.update(query=query, doc=doc, relevance=relevance, **runs)
        alarms += trial.compute()[0].p < 0.05
    assert alarms / SAMPLES <= 0.09


def test_of_many_pairs_none_is_told_apart_by_chance():
    rng = np.random.default_rng(2)
    models = {m: m for m in "abcdef"}
    alarms = 0
    for _ in range(200):
        trial = sm.Comparison({"loss": sm.LogLoss()}, models)
        trial.update(binary(200, rng, dict.fromkeys(models, 1.0)))
        alarms += any(line.verdict != "no evidence" for line in trial.compute())
    assert alarms / 200 <= 0.10


def test_limits_of_different_rows_hold_as_often_as_they_say():
    rng = np.random.default_rng(3)
    metrics = {name: BINARY[name] for name in ("accuracy", "recall", "f1", "auc", "ap")}
    empty = sm.MetricSet(metrics, columns={"y_score": "a"})
    truth = {
        skill: empty.copy().update(binary(400_000, rng, {"a": skill})).compute()
        for skill in (1.0, 1.2)
    }
    held = dict.fromkeys(metrics, 0)
    for _ in range(SAMPLES):
        suites = [empty.copy().update(binary(300, rng, {"a": skill})) for skill in truth]
        for line in sm.compare(*suites):
            expected = truth[1.0][line.metric] - truth[1.2][line.metric]
            held[line.metric] += line.low <= expected <= line.high
    shares = {name: times / SAMPLES for name, times in held.items()}
    assert all(0.915 <= share <= 0.99 for share in shares.values()), shares
