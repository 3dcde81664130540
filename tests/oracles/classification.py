"""Classification against scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import scipy.stats
import sklearn.metrics as sk

import streammetrics as sm
from oracles.base import Oracle

NAN = math.nan


def three_classes(rng, n):
    return {"y_true": rng.integers(0, 3, n), "y_pred": rng.integers(0, 3, n)}


def three_weighted(rng, n):
    return {**three_classes(rng, n), "sample_weight": rng.exponential(size=n)}


def five_weighted(rng, n):
    y_true = rng.integers(0, 5, n)
    y_pred = np.where(rng.random(n) < 0.6, y_true, rng.integers(0, 6, n))
    return {"y_true": y_true, "y_pred": y_pred, "sample_weight": rng.exponential(size=n)}


def margins(rng, n):
    return {"y_true": rng.integers(0, 2, n), "y_score": rng.normal(size=n)}


def two_classes(rng, n):
    return {"y_true": rng.random(n) < 0.3, "y_pred": rng.random(n) < 0.4}


def words(rng, n):
    animals = np.array(["cat", "dog", "eel", "ox"])
    return {"y_true": rng.choice(animals, n), "y_pred": rng.choice(animals[:3], n)}


def scores(rng, n):
    return {"y_true": rng.integers(0, 2, n), "y_score": rng.random(n).round(2)}


def scores_weighted(rng, n):
    return {**scores(rng, n), "sample_weight": rng.exponential(size=n)}


def matrix(rng, n):
    return {"y_true": rng.integers(0, 4, n), "y_pred": rng.random((n, 4)).round(1)}


def far_labels(rng, n):
    labels = np.array([-(2**62), 7, 2**40, 2**62])
    return {"y_true": rng.choice(labels, n), "y_pred": rng.choice(labels, n)}


def cut(function, **options):
    """Return the reference for scores cut at 0.5."""

    def reference(y_true, y_score, sample_weight=None):
        return function(y_true, y_score >= 0.5, sample_weight=sample_weight, **options)

    return reference


def of(function, **options):
    """Return the reference with options bound."""

    def reference(y_true, y_pred, sample_weight=None):
        if np.ndim(y_pred) > 1:
            y_pred = np.argmax(y_pred, axis=1)
        return function(y_true, y_pred, sample_weight=sample_weight, **options)

    return reference


def by_default(function, average, **options):
    """Return the reference where 0/0 is nan for a class that stands alone, 0 in an average."""
    empty = NAN if average is None else 0.0
    return of(function, average=average, zero_division=empty, **options)


def report(y_true, y_pred, sample_weight=None):
    """Return the report whose classes stand alone, and whose averages count them as 0."""
    alone, averaged = (
        sk.classification_report(
            y_true, y_pred, sample_weight=sample_weight, output_dict=True, zero_division=empty
        )
        for empty in (NAN, 0.0)
    )
    return {title: (averaged if " avg" in title else alone)[title] for title in alone}


def one_vs_rest(ratio):
    """Return the reference of a ratio of tp, fp, fn, tn, for each class."""

    def reference(y_true, y_pred, sample_weight=None):
        tables = sk.multilabel_confusion_matrix(y_true, y_pred, sample_weight=sample_weight)
        return np.array([ratio(tp, fp, fn, tn) for (tn, fp), (fn, tp) in tables])

    return reference


def g_mean(y_true, y_pred, sample_weight=None):
    recalls = sk.recall_score(y_true, y_pred, sample_weight=sample_weight, average=None)
    return scipy.stats.gmean(recalls)


COSTS = ((0.0, 1.0, 4.5), (2.0, -1.0, 3.0), (0.25, 7.0, 0.0))


def mean_cost(y_true, y_pred, sample_weight=None):
    return np.average(np.array(COSTS)[y_true, y_pred], weights=sample_weight)


def likelihood_ratio(place):
    """Return the reference of one of both likelihood ratios."""

    def reference(y_true, y_pred, sample_weight=None):
        ratios = sk.class_likelihood_ratios(y_true, y_pred, sample_weight=sample_weight)
        return ratios[place]

    return reference


def micro(ratio):
    """Return the reference of a ratio of tp, fp, fn, tn, each the sum over the classes."""

    def reference(y_true, y_pred, sample_weight=None):
        tables = sk.multilabel_confusion_matrix(y_true, y_pred, sample_weight=sample_weight)
        (tn, fp), (fn, tp) = tables.sum(axis=0)
        return ratio(tp, fp, fn, tn)

    return reference


RATES = {
    sm.FalseDiscoveryRate: lambda tp, fp, fn, tn: fp / (fp + tp),
    sm.FalseOmissionRate: lambda tp, fp, fn, tn: fn / (fn + tn),
    sm.SelectionRate: lambda tp, fp, fn, tn: (tp + fp) / (tp + fp + fn + tn),
    sm.LabelAccuracy: lambda tp, fp, fn, tn: (tp + tn) / (tp + fp + fn + tn),
    sm.Prevalence: lambda tp, fp, fn, tn: (tp + fn) / (tp + fp + fn + tn),
    sm.PositiveLikelihoodRatio: lambda tp, fp, fn, tn: tp / (tp + fn) / (fp / (fp + tn)),
    sm.NegativeLikelihoodRatio: lambda tp, fp, fn, tn: fn / (tp + fn) / (tn / (fp + tn)),
    sm.DiagnosticOddsRatio: lambda tp, fp, fn, tn: tp * tn / (fp * fn),
    sm.Informedness: lambda tp, fp, fn, tn: tp / (tp + fn) + tn / (tn + fp) - 1,
    sm.Markedness: lambda tp, fp, fn, tn: tp / (tp + fp) + tn / (tn + fn) - 1,
}


def top(k, **options):
    """Return the reference of top-k accuracy."""

    def reference(y_true, y_score, sample_weight=None):
        return sk.top_k_accuracy_score(
            y_true, y_score, k=k, sample_weight=sample_weight, labels=range(5), **options
        )

    return reference


def one_score(k, cut):
    """Return the reference of one score a row, of which scikit-learn cuts at 0 or a half."""

    def reference(y_true, y_score, sample_weight=None):
        return sk.top_k_accuracy_score(y_true, y_score - cut, k=k, sample_weight=sample_weight)

    return reference


def score_matrix(rng, n):
    return {"y_true": rng.integers(0, 5, n), "y_score": rng.random((n, 5)).round(1)}


def score_matrix_weighted(rng, n):
    return {**score_matrix(rng, n), "sample_weight": rng.exponential(size=n)}


AVERAGES = ("micro", "macro", "weighted", None)

ORACLES = [
    Oracle(sm.ConfusionMatrix(), three_classes, of(sk.confusion_matrix)),
    Oracle(sm.ConfusionMatrix(), three_weighted, of(sk.confusion_matrix)),
    Oracle(sm.ConfusionMatrix(), words, of(sk.confusion_matrix)),
    Oracle(sm.ConfusionMatrix(), far_labels, of(sk.confusion_matrix)),
    Oracle(sm.ConfusionMatrix(), matrix, of(sk.confusion_matrix)),
    Oracle(sm.ConfusionMatrix(threshold=0.5), scores, cut(sk.confusion_matrix)),
    Oracle(
        sm.ConfusionMatrix(labels=[2, 0, 1]),
        three_classes,
        of(sk.confusion_matrix, labels=[2, 0, 1]),
    ),
    *(
        Oracle(
            sm.ConfusionMatrix(normalize=how), three_classes, of(sk.confusion_matrix, normalize=how)
        )
        for how in ("true", "pred", "all")
    ),
    Oracle(sm.Accuracy(), three_weighted, of(sk.accuracy_score)),
    Oracle(sm.Accuracy(), words, of(sk.accuracy_score)),
    Oracle(sm.Accuracy(threshold=0.5), scores_weighted, cut(sk.accuracy_score)),
    Oracle(sm.BalancedAccuracy(), three_weighted, of(sk.balanced_accuracy_score)),
    Oracle(
        sm.BalancedAccuracy(adjusted=True),
        three_classes,
        of(sk.balanced_accuracy_score, adjusted=True),
    ),
    *(
        Oracle(metric(average=average), rows, by_default(function, average))
        for metric, function in (
            (sm.Precision, sk.precision_score),
            (sm.Recall, sk.recall_score),
            (sm.F1, sk.f1_score),
        )
        for average in AVERAGES
        for rows in (three_weighted, words)
    ),
    *(
        Oracle(sm.Jaccard(average=average), three_weighted, of(sk.jaccard_score, average=average))
        for average in AVERAGES
    ),
    *(
        Oracle(
            sm.FBeta(beta=beta, average=average),
            three_weighted,
            by_default(sk.fbeta_score, average, beta=beta),
        )
        for beta in (0.5, 2.0)
        for average in ("macro", None)
    ),
    Oracle(sm.FBeta(beta=2.0), two_classes, of(sk.fbeta_score, beta=2.0)),
    Oracle(sm.Precision(), two_classes, of(sk.precision_score)),
    Oracle(sm.F1(threshold=0.5), scores_weighted, cut(sk.f1_score)),
    Oracle(
        sm.Recall(threshold=0.5, pos_label=0),
        scores,
        lambda y_true, y_score: sk.recall_score(y_true == 0, y_score >= 0.5),
    ),
    Oracle(sm.Specificity(), two_classes, of(sk.recall_score, pos_label=0)),
    Oracle(
        sm.Specificity(average=None),
        three_weighted,
        one_vs_rest(lambda tp, fp, fn, tn: tn / (tn + fp)),
    ),
    Oracle(
        sm.FalsePositiveRate(average=None),
        words,
        one_vs_rest(lambda tp, fp, fn, tn: fp / (tn + fp)),
    ),
    Oracle(
        sm.FalseNegativeRate(average=None),
        three_classes,
        one_vs_rest(lambda tp, fp, fn, tn: fn / (tp + fn)),
    ),
    Oracle(
        sm.NegativePredictiveValue(average=None),
        three_weighted,
        one_vs_rest(lambda tp, fp, fn, tn: tn / (tn + fn)),
    ),
    *(
        Oracle(metric(average=None), three_weighted, one_vs_rest(ratio), abs=1e-14)
        for metric, ratio in RATES.items()
    ),
    *(
        Oracle(metric(average="micro"), three_classes, micro(RATES[metric]))
        for metric in (sm.FalseDiscoveryRate, sm.Informedness)
    ),
    Oracle(sm.PositiveLikelihoodRatio(), two_classes, likelihood_ratio(0)),
    Oracle(sm.NegativeLikelihoodRatio(), two_classes, likelihood_ratio(1)),
    Oracle(sm.ExpectedCost(cost=COSTS), three_weighted, mean_cost),
    Oracle(sm.GMean(), three_weighted, g_mean),
    Oracle(sm.GMean(), two_classes, g_mean),
    Oracle(sm.ZeroOneLoss(), three_weighted, of(sk.zero_one_loss)),
    Oracle(sm.ZeroOneLoss(normalize=False), three_classes, of(sk.zero_one_loss, normalize=False)),
    Oracle(sm.Accuracy(normalize=False), three_weighted, of(sk.accuracy_score, normalize=False)),
    Oracle(sm.MatthewsCorrcoef(), three_weighted, of(sk.matthews_corrcoef)),
    Oracle(sm.MatthewsCorrcoef(), words, of(sk.matthews_corrcoef)),
    Oracle(sm.MatthewsCorrcoef(threshold=0.5), scores, cut(sk.matthews_corrcoef)),
    *(
        Oracle(sm.CohenKappa(weights=weights), rows, of(sk.cohen_kappa_score, weights=weights))
        for weights in (None, "linear", "quadratic")
        for rows in (three_classes, three_weighted, words)
    ),
    Oracle(sm.ClassificationReport(), three_weighted, report),
    Oracle(sm.ClassificationReport(), words, report),
    Oracle(
        sm.ClassificationReport(zero_division=1),
        words,
        of(sk.classification_report, output_dict=True, zero_division=1.0),
    ),
    Oracle(sm.TopKAccuracy(k=2), score_matrix, top(2)),
    Oracle(sm.TopKAccuracy(k=2, normalize=False), score_matrix_weighted, top(2, normalize=False)),
    Oracle(sm.FBeta(beta=math.inf), two_classes, of(sk.recall_score)),
    Oracle(sm.TopKAccuracy(k=1), scores_weighted, one_score(1, 0.5)),
    Oracle(sm.TopKAccuracy(k=1, from_logits=True), margins, one_score(1, 0.0)),
    *(
        Oracle(metric(average=average, labels=[4, 1]), five_weighted, by_labels)
        for average in AVERAGES
        for metric, function in (
            (sm.F1, sk.f1_score),
            (sm.Precision, sk.precision_score),
            (sm.Recall, sk.recall_score),
        )
        for by_labels in [by_default(function, average, labels=[4, 1])]
    ),
    *(
        Oracle(sm.CohenKappa(weights=weights, labels=[4, 1, 2]), five_weighted, kappa)
        for weights in (None, "quadratic")
        for kappa in [of(sk.cohen_kappa_score, weights=weights, labels=[4, 1, 2])]
    ),
    Oracle(
        sm.ConfusionMatrix(labels=[3, 0]), five_weighted, of(sk.confusion_matrix, labels=[3, 0])
    ),
    Oracle(
        sm.ClassificationReport(labels=["ox", "cat"], zero_division=0),
        words,
        of(sk.classification_report, labels=["ox", "cat"], output_dict=True, zero_division=0.0),
    ),
    Oracle(sm.TopKAccuracy(k=3), score_matrix_weighted, top(3)),
]
