"""Metrics by short names, and values in one call."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.metrics as sk
from sklearn.metrics import get_scorer, get_scorer_names

import streammetrics as sm
from streammetrics.core.names import named_metric


def test_every_scorer_of_scikit_learn_has_a_metric_or_says_why_not():
    for name in get_scorer_names():
        if name.startswith("neg_"):
            with pytest.raises(ValueError, match="with its sign changed"):
                named_metric(name)
        assert named_metric(name.removeprefix("neg_")).n_rows == 0


def test_names_give_what_the_scorers_give():
    rng = np.random.default_rng(0)
    y_true, y_pred = rng.integers(0, 3, (2, 90))
    names = ["accuracy", "f1_macro", "recall_weighted", "jaccard_micro", "mean_squared_error"]
    found = sm.MetricSet(names).update(y_true=y_true, y_pred=y_pred).compute()
    for name in names:
        scorer = get_scorer(f"neg_{name}" if "error" in name else name)
        assert found[name] == pytest.approx(
            scorer._score_func(y_true, y_pred, **scorer._kwargs), rel=1e-12
        )


def test_a_score_leaves_its_metric_as_it_is():
    metric = sm.Accuracy().update([1], [1])
    assert sm.score(metric, [0, 1], [1, 1], sample_weight=[3.0, 1.0]) == 0.25
    assert metric.n_rows == 1
    suite = sm.MetricSet(["f1", "accuracy"])
    assert sm.score(suite, y_true=[0, 1], y_pred=[1, 1])["accuracy"] == 0.5
    assert sm.score("roc_auc", [0, 1, 1], [0.2, 0.1, 0.7]) == sk.roc_auc_score(
        [0, 1, 1], [0.2, 0.1, 0.7]
    )


@pytest.mark.parametrize(
    ("names", "error", "message"),
    [
        (["f1", "roc_aux"], ValueError, "no metric 'roc_aux'; did you mean 'roc_auc'"),
        (["balanced_acuracy"], ValueError, "did you mean 'balanced_accuracy'"),
        (["zzz"], ValueError, "the name of a scorer of scikit-learn"),
        (["ranking_metric"], ValueError, "no metric 'ranking_metric'"),  # only a base of some
        (["recall_at_precision"], ValueError, r"pass sm.RecallAtPrecision\(p=...\) by a name"),
        (["f1", "f1"], ValueError, "'f1' is asked for twice"),
        ([sm.F1(), "f1"], TypeError, "a set takes its metrics by name"),
    ],
)
def test_names_that_are_none_are_told(names, error, message):
    with pytest.raises(error, match=message):
        sm.MetricSet(names)


def test_what_is_no_metric_has_no_score():
    with pytest.raises(TypeError, match="a metric, a set or a name, not a list"):
        sm.score([sm.F1()], [1], [1])
    with pytest.raises(TypeError, match=r"not the class F1: F1\(\) makes one"):
        sm.score(sm.F1, [1], [1])
