"""Scores and probabilities against scikit-learn, SciPy and plain formulas."""

from __future__ import annotations

import itertools

import numpy as np
import scipy.special
import scipy.stats
import sklearn.metrics as sk
from sklearn.calibration import calibration_curve

import streammetrics as sm
from oracles.base import Oracle


def scores(rng, n):
    y_true = rng.random(n) < 0.4
    return {"y_true": y_true, "y_score": np.round(0.3 * y_true + 0.7 * rng.random(n), 2)}


def scores_weighted(rng, n):
    return {**scores(rng, n), "sample_weight": rng.exponential(size=n)}


def probabilities(rng, n):
    y_score = rng.random(n)
    return {"y_true": rng.random(n) < y_score, "y_score": np.round(y_score, 3)}


def probabilities_weighted(rng, n):
    return {**probabilities(rng, n), "sample_weight": rng.exponential(size=n)}


def margins(rng, n):
    y_true = rng.integers(0, 2, n)
    return {"y_true": y_true, "y_score": 4 * rng.standard_normal(n) + y_true}


def words(rng, n):
    y_true = rng.choice(["ham", "spam"], n)
    return {"y_true": y_true, "y_score": rng.random(n).round(1)}


def three_classes(rng, n):
    y_score = rng.dirichlet([1.0, 1.0, 2.0], n)
    return {"y_true": (y_score.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), "y_score": y_score}


def three_classes_weighted(rng, n):
    return {**three_classes(rng, n), "sample_weight": rng.exponential(size=n)}


def two_columns(rng, n):
    y_score = rng.dirichlet([1.0, 2.0], n)
    return {"y_true": rng.integers(0, 2, n), "y_score": y_score}


def three_logits(rng, n):
    return {"y_true": rng.integers(0, 3, n), "y_score": 20 * rng.standard_normal((n, 3))}


def of(function, **options):
    """Return the reference with options bound."""

    def reference(y_true, y_score, sample_weight=None):
        return function(y_true, y_score, sample_weight=sample_weight, **options)

    return reference


def each_class(function, average):
    """Return the reference of each class against the rest, averaged."""

    def reference(y_true, y_score, sample_weight=None):
        classes = range(y_score.shape[1])
        values = [
            function(y_true == k, y_score[:, k], sample_weight=sample_weight) for k in classes
        ]
        if average is None:
            return np.array(values)
        weight = np.ones(len(y_true)) if sample_weight is None else sample_weight
        rows = [weight[y_true == k].sum() if average == "weighted" else 1.0 for k in classes]
        return np.average(values, weights=rows)

    return reference


def curves(function):
    """Return the reference for the curve of each class."""

    def reference(y_true, y_score, sample_weight=None):
        classes = range(y_score.shape[1])
        return tuple(function(y_true == k, y_score[:, k], sample_weight) for k in classes)

    return reference


def roc_curve(y_true, y_score, sample_weight=None):
    return sk.roc_curve(y_true, y_score, sample_weight=sample_weight, drop_intermediate=False)


def log_area(low, high):
    """Return the area over the logarithm of false positive rates, by its points."""

    def value(y_true, y_score, sample_weight=None):
        fpr, tpr, _ = roc_curve(y_true, y_score, sample_weight)
        inside = (fpr > low) & (fpr < high)
        x = [low, *fpr[inside], high]
        y = [np.interp(low, fpr, tpr), *tpr[inside], np.interp(high, fpr, tpr)]
        return np.trapezoid(y, np.log(x)) / np.log(high / low)

    return value


def pr_curve(y_true, y_score, sample_weight=None):
    return sk.precision_recall_curve(y_true, y_score, sample_weight=sample_weight)


def pr_area(y_true, y_score, sample_weight=None):
    precision, recall, _ = pr_curve(y_true, y_score, sample_weight)
    return sk.auc(recall, precision)


def ks_distance(y_true, y_score, sample_weight=None):
    if sample_weight is None:
        return scipy.stats.ks_2samp(y_score[y_true == 1], y_score[y_true == 0]).statistic
    fpr, tpr, _ = roc_curve(y_true, y_score, sample_weight)
    return np.abs(tpr - fpr).max()


def recall_at_precision(p):
    def reference(y_true, y_score, sample_weight=None):
        precision, recall, _ = pr_curve(y_true, y_score, sample_weight)
        return recall[precision >= p].max()

    return reference


def precision_at_recall(r):
    def reference(y_true, y_score, sample_weight=None):
        precision, recall, _ = pr_curve(y_true, y_score, sample_weight)
        return precision[recall >= r].max()

    return reference


def sensitivity_at_specificity(s):
    def reference(y_true, y_score, sample_weight=None):
        fpr, tpr, _ = roc_curve(y_true, y_score, sample_weight)
        return tpr[1 - fpr >= s].max()

    return reference


def calibration_error(n_bins, norm):
    """Return the plain formula of torchmetrics in the bins of scikit-learn."""

    def reference(y_true, y_score, sample_weight=None):
        weight = np.ones(len(y_true)) if sample_weight is None else sample_weight
        bins = np.searchsorted(np.linspace(0, 1, n_bins + 1)[1:-1], y_score)
        gaps, shares = [], []
        for b in np.unique(bins):
            rows = bins == b
            accuracy = np.average(y_true[rows], weights=weight[rows])
            confidence = np.average(y_score[rows], weights=weight[rows])
            gaps.append(abs(accuracy - confidence))
            shares.append(weight[rows].sum() / weight.sum())
        if norm == "max":
            return max(gaps)
        power = 1 if norm == "l1" else 2
        return np.dot(shares, np.power(gaps, power)) ** (1 / power)

    return reference


def reliability(n_bins):
    def reference(y_true, y_score, sample_weight=None):
        return calibration_curve(y_true, y_score, n_bins=n_bins)

    return reference


def reliability_weighted(n_bins):
    def reference(y_true, y_score, sample_weight):
        bins = np.searchsorted(np.linspace(0, 1, n_bins + 1)[1:-1], y_score)
        rows = np.bincount(bins, sample_weight, n_bins)
        sums = (np.bincount(bins, sample_weight * x, n_bins) for x in (y_true, y_score))
        return tuple(one[rows > 0] / rows[rows > 0] for one in sums)

    return reference


def log_loss_of_logits(y_true, y_score, sample_weight=None):
    if y_score.ndim == 1:
        loss = -scipy.special.log_expit(np.where(y_true == 1, y_score, -y_score))
    else:
        loss = -scipy.special.log_softmax(y_score, axis=1)[np.arange(len(y_true)), y_true]
    return np.average(loss, weights=sample_weight)


def turned_area(rate):
    """Return the reference of an area above a true positive rate of 1 - rate."""

    def reference(y_true, y_score, sample_weight=None):
        return AUC(y_true == 0, -y_score, max_fpr=rate, sample_weight=sample_weight)

    return reference


def versus(y_true, y_score, sample_weight):
    """Return the mean over ordered pairs of classes, with weights, which scikit-learn refuses."""
    areas = []
    for own, other in itertools.permutations(range(y_score.shape[1]), 2):
        both = (y_true == own) | (y_true == other)
        columns = (y_true == own, y_score[:, own], sample_weight)
        truth, scores, weight = (column[both] for column in columns)
        areas.append(AUC(truth, scores, sample_weight=weight))
    return np.mean(areas)


def spam(function):
    def reference(y_true, y_score):
        return function(y_true == "spam", y_score)

    return reference


AUC = sk.roc_auc_score
AP = sk.average_precision_score
L1 = calibration_error(15, "l1")

ORACLES = [
    Oracle(sm.ROCAUC(), scores, of(AUC)),
    Oracle(sm.ROCAUC(), scores_weighted, of(AUC)),
    Oracle(sm.ROCAUC(), margins, of(AUC)),
    Oracle(sm.ROCAUC(pos_label="spam"), words, spam(AUC)),
    Oracle(sm.ROCAUC(pos_label=0), scores, lambda y_true, y_score: AUC(~y_true, y_score)),
    Oracle(sm.ROCAUC(max_fpr=0.2), scores, of(AUC, max_fpr=0.2)),
    Oracle(sm.ROCAUC(max_fpr=0.37), scores_weighted, of(AUC, max_fpr=0.37)),
    Oracle(sm.LogAUC(), scores, log_area(0.001, 0.1)),
    Oracle(sm.LogAUC(min_fpr=0.013, max_fpr=0.77), scores_weighted, log_area(0.013, 0.77)),
    Oracle(sm.ROCAUC(min_tpr=0.7), scores, turned_area(0.3)),
    Oracle(sm.ROCAUC(min_tpr=0.37), scores_weighted, turned_area(0.63)),
    Oracle(sm.ROCAUC(multi_class="ovo"), three_classes, of(AUC, multi_class="ovo")),
    Oracle(
        sm.ROCAUC(multi_class="ovo", average="weighted"),
        three_classes,
        of(AUC, multi_class="ovo", average="weighted"),
    ),
    Oracle(sm.ROCAUC(multi_class="ovo"), three_classes_weighted, versus),
    Oracle(sm.ROCAUC(), three_classes, of(AUC, multi_class="ovr")),
    Oracle(sm.ROCAUC(), three_classes_weighted, each_class(AUC, "macro")),
    Oracle(sm.ROCAUC(average="weighted"), three_classes_weighted, each_class(AUC, "weighted")),
    Oracle(sm.ROCAUC(average=None), three_classes, each_class(AUC, None)),
    Oracle(sm.ROCCurve(), scores, roc_curve),
    Oracle(sm.ROCCurve(), scores_weighted, roc_curve),
    Oracle(sm.ROCCurve(), three_classes, curves(roc_curve)),
    Oracle(sm.AveragePrecision(), scores, of(AP)),
    Oracle(sm.AveragePrecision(), scores_weighted, of(AP)),
    Oracle(sm.AveragePrecision(average="weighted"), three_classes, each_class(AP, "weighted")),
    Oracle(sm.PRAUC(), scores, pr_area),
    Oracle(sm.PRAUC(), scores_weighted, pr_area),
    Oracle(sm.PRAUC(), three_classes, each_class(pr_area, "macro")),
    Oracle(sm.PrecisionRecallCurve(), scores, pr_curve),
    Oracle(sm.PrecisionRecallCurve(), scores_weighted, pr_curve),
    Oracle(sm.PrecisionRecallCurve(), three_classes, curves(pr_curve)),
    Oracle(sm.KolmogorovSmirnov(), scores, ks_distance),
    Oracle(sm.KolmogorovSmirnov(), scores_weighted, ks_distance),
    Oracle(sm.KolmogorovSmirnov(average=None), three_classes, each_class(ks_distance, None)),
    *(
        Oracle(sm.RecallAtPrecision(p=p), rows, recall_at_precision(p))
        for p in (0.0, 0.6, 0.9, 1.0)
        for rows in (scores, scores_weighted)
    ),
    *(
        Oracle(sm.PrecisionAtRecall(r=r), rows, precision_at_recall(r))
        for r in (0.0, 0.3, 0.9)
        for rows in (scores, scores_weighted)
    ),
    *(
        Oracle(sm.SensitivityAtSpecificity(s=s), rows, sensitivity_at_specificity(s))
        for s in (0.0, 0.45, 0.9)
        for rows in (scores, scores_weighted)
    ),
    *(
        Oracle(sm.CalibrationError(n_bins=n_bins, norm=norm), rows, calibration_error(n_bins, norm))
        for n_bins, norm in ((15, "l1"), (10, "l2"), (7, "max"))
        for rows in (probabilities, probabilities_weighted)
    ),
    Oracle(sm.CalibrationError(), three_classes, each_class(L1, "macro")),
    Oracle(sm.CalibrationCurve(), probabilities, reliability(5)),
    Oracle(sm.CalibrationCurve(n_bins=40), probabilities, reliability(40)),
    Oracle(sm.CalibrationCurve(n_bins=10), probabilities_weighted, reliability_weighted(10)),
    Oracle(sm.LogLoss(), probabilities, of(sk.log_loss)),
    Oracle(sm.LogLoss(), probabilities_weighted, of(sk.log_loss)),
    Oracle(sm.LogLoss(), three_classes_weighted, of(sk.log_loss, labels=[0, 1, 2])),
    Oracle(sm.LogLoss(from_logits=True), margins, log_loss_of_logits),
    Oracle(sm.LogLoss(from_logits=True), three_logits, log_loss_of_logits),
    Oracle(sm.BrierScore(), probabilities, of(sk.brier_score_loss)),
    Oracle(sm.BrierScore(), probabilities_weighted, of(sk.brier_score_loss)),
    Oracle(sm.BrierScore(), two_columns, of(sk.brier_score_loss, labels=[0, 1])),
    Oracle(sm.BrierScore(), three_classes, of(sk.brier_score_loss, labels=[0, 1, 2])),
    Oracle(
        sm.BrierScore(scale_by_half=True),
        three_classes_weighted,
        of(sk.brier_score_loss, labels=[0, 1, 2], scale_by_half=True),
    ),
    Oracle(
        sm.BrierScore(scale_by_half=False), scores, of(sk.brier_score_loss, scale_by_half=False)
    ),
]
