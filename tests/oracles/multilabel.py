"""Rows of several labels against scikit-learn."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import sklearn.metrics as sk

import streammetrics as sm
from oracles.base import Oracle
from oracles.probability import calibration_error


def indicators(rng, n):
    y_true = rng.random((n, 5)) < (0.1, 0.3, 0.5, 0.02, 0.6)
    return {"y_true": y_true, "y_pred": np.where(rng.random((n, 5)) < 0.8, y_true, ~y_true)}


def indicators_weighted(rng, n):
    return {**indicators(rng, n), "sample_weight": rng.exponential(size=n)}


def indicator_scores(rng, n):
    y_true = rng.integers(0, 2, (n, 3))
    return {"y_true": y_true, "y_score": (0.4 * y_true + 0.6 * rng.random((n, 3))).round(2)}


def of(function, **options):
    """Return the reference with options bound."""

    def reference(y_true, y_pred, sample_weight=None):
        return function(y_true, y_pred, sample_weight=sample_weight, **options)

    return reference


def cut(function, threshold, **options):
    """Return the reference of scores cut at a threshold, or at one for each label."""

    def reference(y_true, y_score, sample_weight=None):
        y_pred = y_score >= np.array(threshold)
        return function(y_true, y_pred, sample_weight=sample_weight, **options)

    return reference


def by_default(function, average, **options):
    """Return the reference where 0/0 is nan for a label that stands alone, 0 in an average."""
    empty = math.nan if average is None and function is not sk.jaccard_score else 0.0
    return of(function, average=average, zero_division=empty, **options)


def informedness(y_true, y_pred):
    tables = sk.multilabel_confusion_matrix(y_true, y_pred)
    return np.array([tp / (tp + fn) - fp / (fp + tn) for (tn, fp), (fn, tp) in tables])


def indicator_scores_weighted(rng, n):
    return {**indicator_scores(rng, n), "sample_weight": rng.exponential(size=n)}


def classes(rng, n):
    y_score = rng.dirichlet([1.0, 1.0, 2.0], n)
    return {"y_true": (y_score.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), "y_score": y_score}


def scored(function, **options):
    """Return the reference of scores with options bound."""

    def reference(y_true, y_score, sample_weight=None):
        return function(y_true, y_score, sample_weight=sample_weight, **options)

    return reference


def calibration(y_true, y_score):
    one = calibration_error(15, "l1")
    return np.mean([one(y_true[:, k], y_score[:, k]) for k in range(y_true.shape[1])])


FUNCTIONS = (
    (sm.Precision, sk.precision_score),
    (sm.Recall, sk.recall_score),
    (sm.F1, sk.f1_score),
    (sm.Jaccard, sk.jaccard_score),
)


def curves_of(curve):
    """Return the reference of a curve for each label."""

    def reference(y_true, y_score, sample_weight=None):
        return tuple(
            curve(y_true[:, k], y_score[:, k], sample_weight=sample_weight) for k in range(3)
        )

    return reference


def roc(y_true, y_score, sample_weight):
    return sk.roc_curve(y_true, y_score, sample_weight=sample_weight, drop_intermediate=False)


def partly(rng, n):
    """Return indicators of which some true ones are not known."""
    rows = indicators(rng, n)
    unknown = rng.random((n, 5)) < 0.3
    return {**rows, "y_true": np.where(unknown, -1, rows["y_true"].astype(int))}


def partly_weighted(rng, n):
    return {**partly(rng, n), "sample_weight": rng.exponential(size=n)}


def partly_scored(rng, n):
    rows = indicator_scores(rng, n)
    return {**rows, "y_true": np.where(rng.random((n, 3)) < 0.3, -1, rows["y_true"])}


def known(function, average, **options):
    """Return the reference of known labels: each by itself, pooled, or averaged."""

    def reference(y_true, sample_weight=None, **judged):
        (second,) = judged.values()
        weights = np.ones(len(y_true)) if sample_weight is None else sample_weight
        weights = np.broadcast_to(weights[:, None], y_true.shape)
        there = y_true >= 0

        def value(at):
            return function(y_true[at], second[at], sample_weight=weights[at], **options)

        if average == "micro":
            return value(there)
        places = [(there[:, k], k) for k in range(y_true.shape[1])]
        each = np.array([value(at) for at in places])
        if average is None:
            return each
        have = [weights[at][y_true[at] > 0].sum() for at in places]
        return np.average(each, axis=0, weights=have if average == "weighted" else None)

    return reference


def tables(y_true, y_pred, sample_weight):
    return sk.confusion_matrix(y_true, y_pred, sample_weight=sample_weight, labels=[0, 1])


def normalized(how):
    def reference(y_true, y_pred):
        sides = zip(y_true.T, y_pred.T, strict=True)
        return np.array([sk.confusion_matrix(t, p, normalize=how) for t, p in sides])

    return reference


PARTLY = {"multilabel": True, "ignore_index": -1}
AVERAGES = ("micro", "macro", "weighted", None)
ORACLES = [
    *(
        Oracle(metric(multilabel=True), rows, curves_of(curve))
        for metric, curve in (
            (sm.ROCCurve, roc),
            (sm.PrecisionRecallCurve, sk.precision_recall_curve),
            (sm.DETCurve, sk.det_curve),
        )
        for rows in (indicator_scores, indicator_scores_weighted)
    ),
    Oracle(
        sm.ClassificationReport(multilabel=True, zero_division=0),
        indicators_weighted,
        lambda y_true, y_pred, sample_weight: sk.classification_report(
            y_true, y_pred, sample_weight=sample_weight, output_dict=True, zero_division=0.0
        ),
    ),
    *(
        Oracle(metric(average=average, multilabel=True), rows, by_default(function, average))
        for metric, function in FUNCTIONS
        for average in ("micro", "macro", "weighted", "samples", None)
        for rows in (indicators, indicators_weighted)
    ),
    Oracle(
        sm.FBeta(beta=2.0, average="samples", zero_division=1.0),
        indicators,
        of(sk.fbeta_score, beta=2.0, average="samples", zero_division=1.0),
    ),
    Oracle(sm.Informedness(average=None, multilabel=True), indicators, informedness, abs=1e-14),
    Oracle(
        sm.F1(average="macro", multilabel=True, threshold=0.5),
        indicator_scores,
        cut(sk.f1_score, 0.5, average="macro"),
    ),
    Oracle(
        sm.F1(average="samples", threshold=(0.3, 0.5, 0.7), labels=["a", "b", "c"]),
        indicator_scores,
        cut(sk.f1_score, (0.3, 0.5, 0.7), average="samples", zero_division=0.0),
    ),
    *(
        Oracle(metric(average=average, multilabel=True), rows, scored(function, average=average))
        for metric, function in (
            (sm.ROCAUC, sk.roc_auc_score),
            (sm.AveragePrecision, sk.average_precision_score),
        )
        for average in ("macro", "micro", "weighted", None)
        for rows in (indicator_scores, indicator_scores_weighted)
    ),
    Oracle(
        sm.ROCAUC(average="micro"),
        classes,
        scored(sk.roc_auc_score, multi_class="ovr", average="micro"),
    ),
    Oracle(sm.CalibrationError(multilabel=True), indicator_scores, calibration),
    *(
        Oracle(metric(), rows, scored(function))
        for metric, function in (
            (sm.CoverageError, sk.coverage_error),
            (sm.LabelRankingAveragePrecision, sk.label_ranking_average_precision_score),
            (sm.LabelRankingLoss, sk.label_ranking_loss),
        )
        for rows in (indicator_scores, indicator_scores_weighted)
    ),
    Oracle(sm.SubsetAccuracy(), indicators, of(sk.accuracy_score)),
    Oracle(
        sm.SubsetAccuracy(normalize=False),
        indicators_weighted,
        of(sk.accuracy_score, normalize=False),
    ),
    Oracle(sm.SubsetAccuracy(), indicators_weighted, of(sk.accuracy_score)),
    Oracle(sm.HammingLoss(), indicators, of(sk.hamming_loss)),
    Oracle(sm.HammingLoss(), indicators_weighted, of(sk.hamming_loss)),
    Oracle(sm.HammingLoss(threshold=0.5), indicator_scores, cut(sk.hamming_loss, 0.5)),
    Oracle(
        sm.MultilabelConfusionMatrix(), indicators, of(sk.multilabel_confusion_matrix), abs=1e-12
    ),
    Oracle(
        sm.MultilabelConfusionMatrix(),
        indicators_weighted,
        of(sk.multilabel_confusion_matrix),
        abs=1e-12,
    ),
    *(
        Oracle(metric(average=average, **PARTLY), rows, known(f, average))
        for metric, rows, f in (
            (sm.LabelAccuracy, partly, sk.accuracy_score),
            (sm.LabelAccuracy, partly_weighted, sk.accuracy_score),
            (
                partial(sm.Recall, zero_division=0),
                partly,
                partial(sk.recall_score, zero_division=0),
            ),
            (sm.ROCAUC, partly_scored, sk.roc_auc_score),
        )
        for average in AVERAGES
    ),
    *(
        Oracle(sm.MultilabelConfusionMatrix(average=how, ignore_index=-1), rows, known(tables, how))
        for how in AVERAGES
        for rows in (partly, partly_weighted)
    ),
    *(
        Oracle(sm.MultilabelConfusionMatrix(normalize=how), indicators, normalized(how))
        for how in ("true", "pred", "all")
    ),
    Oracle(
        sm.SubsetAccuracy(ignore_index=-1),
        partly,
        lambda y_true, y_pred: np.mean(((y_true < 0) | (y_true == y_pred)).all(axis=1)),
    ),
    Oracle(
        sm.ROCCurve(multilabel=True, ignore_index=-1),
        partly_scored,
        lambda y_true, y_score: tuple(
            roc(t[t >= 0], s[t >= 0], None) for t, s in zip(y_true.T, y_score.T, strict=True)
        ),
    ),
]
