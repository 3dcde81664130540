"""A long batch, which tables take at once, is what its parts are; what is wrong in it is named."""

from __future__ import annotations

import numpy as np
import pytest
from thinning import some

import streammetrics as sm
from streammetrics.core import tuning
from streammetrics.core.columns.batch import Batch
from streammetrics.statistics.histograms import ScoreHistogram
from streammetrics.statistics.tables import ThresholdTable

ROWS = tuning.BATCH_ROWS + 5000


def in_parts(metric, *columns):
    """Return the metric after the rows of columns, a few thousand at a time."""
    for start in range(0, ROWS, 9000):
        metric.update(*[column[start : start + 9000] for column in columns])
    return metric


def labels_of(case):
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, ROWS)
    if case == "a late one":
        labels[-1] = 9
    elif case == "a negative one":
        labels[-7] = -4
    elif case == "far apart":
        labels[40_000] = 1 << 40
    elif case == "one alone":
        labels[:] = 2
    return labels


SCORED = {"cut": sm.F1(threshold=0.5), "cells": sm.ROCAUC(max_bins=64), "exact": sm.ROCAUC()}


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
@pytest.mark.parametrize("metric", SCORED)
@pytest.mark.parametrize("kind", some(["i8", "i4", "i1", "u1", "?"], every=3))
@pytest.mark.parametrize("classes", ["both", *some(["positive", "negative", "one late"])])
def test_scores_of_two_classes(kind, classes, metric):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, ROWS) if classes == "both" else np.full(ROWS, classes != "negative")
    if classes == "one late":
        truth[-1] = 0
    truth, score = truth.astype(kind), rng.random(ROWS)
    score[:3] = 0.5, -np.inf, np.inf
    whole = SCORED[metric].copy().update(truth, score)
    parts = in_parts(SCORED[metric].copy(), truth, score)
    assert whole.to_bytes() == parts.to_bytes()
    assert whole.compute() == pytest.approx(parts.compute(), nan_ok=True)


@pytest.mark.parametrize("kind", some(["i8", "i4", "i1", "u1"], every=2))
@pytest.mark.parametrize(
    "case", ["plain", "a late one", "a negative one", "far apart", "one alone"]
)
@pytest.mark.parametrize("metric", [sm.Accuracy, sm.ConfusionMatrix, sm.AdjustedRandIndex])
def test_pairs_of_labels(case, metric, kind):
    true, pred = labels_of(case), labels_of("plain")[::-1].copy()
    if case == "far apart" and kind != "i8":
        pytest.skip("beyond the type")
    if case == "a negative one" and kind == "u1":
        pytest.skip("beyond the type")
    true, pred = true.astype(kind), pred.astype(kind)
    whole = metric().update(true, pred)
    assert whole.to_bytes() == in_parts(metric(), true, pred).to_bytes()


@pytest.mark.parametrize("name", SCORED)
def test_rows_that_are_wrong_are_named(name):
    truth, score = np.zeros(ROWS, np.int64), np.zeros(ROWS)
    truth[5] = 1
    nan, third = score.copy(), truth.copy()
    nan[70_000], third[70_001] = np.nan, 2
    metric = SCORED[name].copy()
    with pytest.raises(sm.InvalidBatchError, match=r"y_score is missing.* row 70000"):
        metric.update(truth, nan)
    with pytest.raises(sm.InvalidBatchError, match=r"y_true is neither.* row 70001"):
        metric.update(third, score)
    assert metric.to_bytes() == SCORED[name].to_bytes()
    omitting = type(metric)(**{**metric.config, "nan_policy": "omit"}).update(truth, nan)
    assert omitting.n_omitted == 1


def test_kinds_of_labels_still_have_to_agree():
    labels, texts = np.zeros(ROWS, np.int64), np.full(ROWS, "a")
    metric = sm.Accuracy().update(labels, labels)
    with pytest.raises(sm.InvalidBatchError, match="labels"):
        metric.update(texts, texts)
    cut = sm.F1(threshold=0.5).update(labels, np.zeros(ROWS))
    with pytest.raises(sm.InvalidBatchError, match="negative label"):
        cut.update(labels - 1, np.zeros(ROWS))


def test_plain_columns_are_taken_at_once_and_others_are_not():
    labels, score = np.arange(ROWS) % 2, np.linspace(0, 1, ROWS)
    cut, cells = ThresholdTable(), ScoreHistogram()
    assert cut.take_whole(Batch({"y_true": labels, "y_score": score})) is not None
    assert cells.take_whole(Batch({"y_true": labels, "y_score": score})) is not None
    for truth, scores in ((labels, score + np.nan), (labels + 1, score), (labels * 1.0, score)):
        assert cut.take_whole(Batch({"y_true": truth, "y_score": scores})) is None
        assert cells.take_whole(Batch({"y_true": truth, "y_score": scores})) is None
    weighed = {"y_true": labels, "y_score": score, "sample_weight": score}
    assert cut.take_whole(Batch(weighed)) is None


def test_scores_by_other_names_are_read_as_ever():
    rng = np.random.default_rng(2)
    sample, values = np.arange(ROWS) % 2, rng.random(ROWS)
    whole = sm.Wasserstein(max_bins=64).update(sample, values)
    assert whole.to_bytes() == in_parts(sm.Wasserstein(max_bins=64), sample, values).to_bytes()
