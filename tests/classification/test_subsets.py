"""Labels of which some are asked for: what other rows count for, and what is still refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sklearn.metrics as sk

import streammetrics as sm

RNG = np.random.default_rng(3)
Y = RNG.integers(0, 4, 300)
P = np.where(RNG.random(300) < 0.6, Y, RNG.integers(0, 4, 300))


def test_a_subset_has_limits_near_those_of_its_bootstrap():
    metric = sm.F1(labels=[3, 1], average="macro").update(Y, P)
    rows = RNG.integers(0, 300, (400, 300))
    values = [sk.f1_score(Y[r], P[r], labels=[3, 1], average="macro") for r in rows]
    low, high = metric.confidence(0.95)
    assert np.quantile(values, [0.025, 0.975]) == pytest.approx([low, high], abs=0.03)
    micro = sm.Precision(labels=[3, 1], average="micro").update(Y, P)
    assert micro.confidence().low < micro.compute() < micro.confidence().high
    kappa = sm.CohenKappa(labels=[3, 1], weights="linear").update(Y, P)
    inside = np.isin(Y, [3, 1]) & np.isin(P, [3, 1])
    plain = sm.CohenKappa(weights="linear").update(Y[inside], P[inside])
    assert kappa.confidence() == plain.confidence()


def test_a_subset_is_compared_as_its_classes_are():
    other = np.where(RNG.random(300) < 0.8, Y, P)
    suite = sm.MetricSet({"recall": sm.Recall(labels=[2], average="macro")})
    models = sm.Comparison(suite, models={"a": "p", "b": "q"})
    models.update({"y_true": Y, "p": P, "q": other})
    said = [sk.recall_score(Y, p, labels=[2], average="macro") for p in (P, other)]
    assert [dict(models.items())[name].compute()["recall"] for name in "ab"] == said
    difference = models.compute()["recall"][0]
    assert difference.low < difference.difference < difference.high


def test_other_labels_are_refused_where_they_have_no_meaning():
    for metric in (
        sm.F1(labels=[0, 1]),
        sm.Accuracy(labels=[0, 1]),
        sm.BalancedAccuracy(labels=[0]),
    ):
        with pytest.raises(sm.InvalidBatchError, match="is not one of the labels given"):
            metric.update(Y, P)
    with pytest.raises(sm.InvalidBatchError, match="y_true holds strings; the labels given are n"):
        sm.F1(labels=[0, 1], average="macro").update(["a", "b"], ["a", "b"])


def test_a_label_that_never_comes_is_named():
    metric = sm.F1(labels=[0, 7], average="macro").update(Y, P)
    with pytest.warns(sm.UndefinedMetricWarning, match="leaves the class 7 out of its average"):
        assert metric.compute() == sk.f1_score(Y, P, labels=[0], average="macro")
    nothing = sm.ConfusionMatrix(labels=[7, 8]).update(Y, P)
    assert nothing.compute().tolist() == [[0, 0], [0, 0]]


def test_slices_and_states_of_a_subset():
    metric = sm.F1(labels=[3, 1], average=None)
    country = np.where(Y == P, "DE", "FR")
    slices = sm.Slices(sm.MetricSet({"f1": metric}), by="country")
    slices.update(y_true=Y, y_pred=P, country=country)
    found = slices[{"country": "DE"}].compute()["f1"]
    assert found.to_dict() == {3: 1.0, 1: 1.0}
    state = metric.update(Y, P)
    assert sm.from_bytes(state.to_bytes()).to_bytes() == state.to_bytes()


def test_a_report_of_no_rows_of_several_labels():
    with pytest.warns(sm.UndefinedMetricWarning, match="ClassificationReport"):
        report = sm.ClassificationReport(labels=["a", "b"], multilabel=True).compute()
    assert list(report) == ["a", "b", "micro avg", "macro avg", "weighted avg", "samples avg"]
    assert all(math.isnan(entry["recall"]) for entry in report.values())


def test_one_score_a_row_is_a_probability_or_a_logit():
    with pytest.raises(sm.InvalidBatchError, match="y_score is outside .* from_logits=True"):
        sm.TopKAccuracy(k=1).update([0, 1], [-1.0, 2.0])
    assert sm.TopKAccuracy(k=1, from_logits=True).update([0, 1], [-1.0, 2.0]).compute() == 1.0
    with pytest.raises(sm.InvalidBatchError, match="one number a row; .* scores are needed"):
        sm.TopKAccuracy(k=2).update([0, 1], [0.9, 0.2])  # of two classes two are always right
    words = sm.TopKAccuracy(k=1, pos_label="b", labels=["a", "b"])
    assert words.update(["a", "b", "b"], [0.4, 0.7, 0.2]).compute() == 2 / 3
