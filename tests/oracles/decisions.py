"""Decisions at thresholds, gains and errors against scikit-learn, SciPy and plain formulas."""

from __future__ import annotations

import numpy as np
import scipy.optimize
import sklearn.metrics as sk

import streammetrics as sm
from oracles.base import Oracle
from oracles.probability import (
    curves,
    each_class,
    probabilities,
    probabilities_weighted,
    roc_curve,
    scores,
    scores_weighted,
    three_classes,
)


def table(y_true, y_score, sample_weight=None):
    return sk.confusion_matrix_at_thresholds(y_true, y_score, sample_weight=sample_weight)


def table_at(thresholds):
    """Return the reference at given thresholds."""

    def reference(y_true, y_score, sample_weight=None):
        counts = [
            sk.confusion_matrix(y_true, y_score >= t, labels=[0, 1], sample_weight=sample_weight)
            for t in thresholds
        ]
        return (*np.reshape(counts, (-1, 4)).T, np.array(thresholds))

    return reference


def best(function, **options):
    """Return the reference of the best threshold of a metric of labels."""

    def reference(y_true, y_score, sample_weight=None):
        cuts = np.append(np.unique(y_score)[::-1], -np.inf)
        cuts = np.append(np.inf, cuts[:-1])
        values = [
            function(y_true, y_score >= t, sample_weight=sample_weight, **options) for t in cuts
        ]
        at = int(np.flatnonzero(np.isclose(values, max(values), rtol=1e-12))[0])
        return (cuts[at], values[at])

    return reference


def least_cost(y_true, y_score, sample_weight=None):
    cuts = np.append(np.inf, np.unique(y_score)[::-1])
    costs = [
        np.average(np.array(COSTS)[y_true.astype(int), (y_score >= t) * 1], weights=sample_weight)
        for t in cuts
    ]
    at = int(np.flatnonzero(np.isclose(costs, min(costs), rtol=1e-12))[0])
    return (cuts[at], costs[at])


COSTS = ((0.0, 1.0), (3.5, -0.5))


def det_curve(y_true, y_score, sample_weight=None):
    return sk.det_curve(y_true, y_score, sample_weight=sample_weight)


def equal_error_rate(y_true, y_score, sample_weight=None):
    fpr, tpr, _ = roc_curve(y_true, y_score, sample_weight)
    along = np.arange(len(fpr))

    def gap(at):
        return np.interp(at, along, fpr) - (1 - np.interp(at, along, tpr))

    return np.interp(scipy.optimize.brentq(gap, 0, along[-1], xtol=1e-14), along, fpr)


def gains(y_true, y_score, sample_weight=None):
    weight = np.ones(len(y_true)) if sample_weight is None else sample_weight
    cuts = np.append(np.inf, np.unique(y_score)[::-1])
    taken = [y_score >= t for t in cuts]
    depth = np.array([weight[rows].sum() for rows in taken]) / weight.sum()
    gain = [weight[rows & (y_true == 1)].sum() for rows in taken]
    return depth, np.array(gain) / weight[y_true == 1].sum(), cuts


def lifts(y_true, y_score, sample_weight=None):
    depth, gain, cuts = gains(y_true, y_score, sample_weight)
    return depth[1:], gain[1:] / depth[1:], cuts[1:]


def lift_at(share):
    def reference(y_true, y_score, sample_weight=None):
        depth, gain, _ = gains(y_true, y_score, sample_weight)
        return np.interp(share, depth, gain) / share

    return reference


def gini(y_true, y_score, sample_weight=None):
    return 2 * sk.roc_auc_score(y_true, y_score, sample_weight=sample_weight) - 1


def specificity_at_sensitivity(s):
    def reference(y_true, y_score, sample_weight=None):
        fpr, tpr, _ = roc_curve(y_true, y_score, sample_weight)
        return 1 - fpr[tpr >= s].min()

    return reference


def normalized_entropy(y_true, y_score, sample_weight=None):
    share = np.average(y_true, weights=sample_weight)
    named = np.full(len(y_true), share)
    loss, entropy = (sk.log_loss(y_true, p, sample_weight=sample_weight) for p in (y_score, named))
    return loss / entropy


BOTH = (scores, scores_weighted)

ORACLES = [
    *(Oracle(sm.ConfusionAtThresholds(), rows, table, abs=1e-12) for rows in BOTH),
    Oracle(
        sm.ConfusionAtThresholds(thresholds=(0.7, 0.25, 2.0)),
        scores_weighted,
        table_at((0.7, 0.25, 2.0)),
        abs=1e-12,
    ),
    *(
        Oracle(sm.BestThreshold(for_=name), scores_weighted, best(function))
        for name, function in (
            ("f1", sk.f1_score),
            ("jaccard", sk.jaccard_score),
            ("accuracy", sk.accuracy_score),
            ("balanced_accuracy", sk.balanced_accuracy_score),
            ("matthews_corrcoef", sk.matthews_corrcoef),
            ("cohen_kappa", sk.cohen_kappa_score),
        )
    ),
    Oracle(sm.BestThreshold(for_="fbeta", beta=2.0), scores, best(sk.fbeta_score, beta=2.0)),
    Oracle(
        sm.BestThreshold(for_="informedness"),
        scores,
        best(sk.balanced_accuracy_score, adjusted=True),
    ),
    *(Oracle(sm.BestThreshold(for_=COSTS), rows, least_cost) for rows in BOTH),
    *(Oracle(sm.DETCurve(), rows, det_curve) for rows in BOTH),
    Oracle(sm.DETCurve(), three_classes, curves(sk.det_curve)),
    *(
        Oracle(sm.EqualErrorRate(), rows, equal_error_rate, rel=1e-9, why="found by bisection")
        for rows in BOTH
    ),
    *(Oracle(sm.CumulativeGains(), rows, gains) for rows in BOTH),
    *(Oracle(sm.LiftCurve(), rows, lifts) for rows in BOTH),
    *(Oracle(sm.TopDecileLift(), rows, lift_at(0.1)) for rows in BOTH),
    Oracle(sm.TopDecileLift(share=0.33), scores, lift_at(0.33)),
    *(Oracle(sm.Gini(), rows, gini) for rows in BOTH),
    Oracle(sm.Gini(average="weighted"), three_classes, each_class(gini, "weighted")),
    *(
        Oracle(sm.SpecificityAtSensitivity(s=s), rows, specificity_at_sensitivity(s))
        for s in (0.45, 0.9)
        for rows in BOTH
    ),
    Oracle(sm.NormalizedEntropy(), probabilities, normalized_entropy),
    Oracle(sm.NormalizedEntropy(), probabilities_weighted, normalized_entropy),
]
