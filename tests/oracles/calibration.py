"""Calibration against SciPy's fits and plain formulas."""

from __future__ import annotations

import bisect
import itertools
from fractions import Fraction

import numpy as np
import scipy.optimize
import scipy.special
import sklearn.metrics as sk

import streammetrics as sm
from oracles.base import Oracle
from oracles.probability import each_class, probabilities, probabilities_weighted, three_classes


def edges_of(strategy, n_bins, y_score, sample_weight):
    """Return the edges of bins, of equal width or of equal mass."""
    if strategy == "uniform":
        return np.linspace(0, 1, n_bins + 1)
    order = np.argsort(y_score, kind="stable")
    weight = [Fraction(1)] * len(order) if sample_weight is None else map(Fraction, sample_weight)
    sums = list(itertools.accumulate(np.array(list(weight))[order]))
    reached = (bisect.bisect_left(sums, sums[-1] * k / n_bins) for k in range(1, n_bins))
    return np.concatenate([[0], y_score[order][list(reached)], [1]])


def in_bins(strategy, n_bins, y_true, y_score, sample_weight):
    """Return the weight, the positives and the sum of scores of each bin that has rows."""
    weight = np.ones(len(y_true)) if sample_weight is None else sample_weight
    edges = edges_of(strategy, n_bins, y_score, sample_weight)
    at = np.searchsorted(edges[1:-1], y_score)
    sums = [np.bincount(at, weight * x, n_bins) for x in (np.ones(len(at)), y_true, y_score)]
    return [each[sums[0] > 0] for each in sums]


def error(norm, rows, ones, scores):
    gap, share = np.abs(ones - scores) / rows, rows / rows.sum()
    return {"l1": share @ gap, "l2": np.sqrt(share @ gap**2), "max": gap.max()}[norm]


def equal_mass(n_bins, norm):
    def reference(y_true, y_score, sample_weight=None):
        return error(norm, *in_bins("quantile", n_bins, y_true, y_score, sample_weight))

    return reference


def equal_mass_curve(n_bins):
    def reference(y_true, y_score):
        rows, ones, scores = in_bins("quantile", n_bins, y_true, y_score, None)
        return ones / rows, scores / rows

    return reference


def top_label(n_bins, norm):
    def reference(y_true, y_score):
        hit, top = y_score.argmax(axis=1) == y_true, y_score.max(axis=1)
        return error(norm, *in_bins("uniform", n_bins, hit, top, None))

    return reference


def decomposition(strategy, n_bins):
    def reference(y_true, y_score, sample_weight=None):
        rows, ones, scores = in_bins(strategy, n_bins, y_true, y_score, sample_weight)
        share, mean = rows / rows.sum(), ones.sum() / rows.sum()
        return {
            "reliability": share @ ((scores - ones) / rows) ** 2,
            "resolution": share @ (ones / rows - mean) ** 2,
            "uncertainty": mean * (1 - mean),
        }

    return reference


def summed_over_classes(reference):
    def summed(y_true, y_score):
        parts = [reference(y_true == k, y_score[:, k]) for k in range(y_score.shape[1])]
        return {name: sum(part[name] for part in parts) for name in parts[0]}

    return summed


def logistic(y_true, y_score, sample_weight=None, *, slope=None):
    """Return what SciPy finds to be the likeliest intercept and slope."""
    z = scipy.special.logit(np.clip(y_score, 2.0**-52, 1 - 2.0**-52))
    weight = np.ones(len(z)) if sample_weight is None else sample_weight
    of = np.stack([np.ones(len(z)), z]) if slope is None else np.ones((1, len(z)))
    fixed = 0 if slope is None else slope * z

    def gradient(beta):
        return of @ (weight * (scipy.special.expit(beta @ of + fixed) - y_true))

    return scipy.optimize.root(gradient, np.zeros(len(of)), tol=1e-14).x


def slope(y_true, y_score, sample_weight=None):
    return logistic(y_true, y_score, sample_weight)[1]


def intercept(y_true, y_score, sample_weight=None):
    return logistic(y_true, y_score, sample_weight, slope=1.0)[0]


def in_the_large(y_true, y_score, sample_weight=None):
    if y_score.ndim == 1:
        return np.average(y_score - y_true, weights=sample_weight)
    return y_score.max(axis=1).mean() - sk.accuracy_score(y_true, y_score.argmax(axis=1))


FIT = {"rel": 1e-9, "abs": 1e-11, "why": "SciPy's solver stops there"}

ORACLES = [
    *(
        Oracle(
            sm.CalibrationError(n_bins=n, norm=norm, strategy="quantile"), rows, equal_mass(n, norm)
        )
        for n, norm in ((15, "l1"), (10, "l2"), (7, "max"))
        for rows in (probabilities, probabilities_weighted)
    ),
    Oracle(
        sm.CalibrationError(strategy="quantile", average=None),
        three_classes,
        each_class(equal_mass(15, "l1"), None),
    ),
    *(
        Oracle(
            sm.CalibrationError(n_bins=n, norm=norm, average="top_label"),
            three_classes,
            top_label(n, norm),
        )
        for n, norm in ((15, "l1"), (10, "l2"), (7, "max"))
    ),
    Oracle(sm.CalibrationCurve(n_bins=6, strategy="quantile"), probabilities, equal_mass_curve(6)),
    *(
        Oracle(sm.BrierDecomposition(n_bins=n, strategy=how), rows, decomposition(how, n))
        for n, how in ((10, "uniform"), (4, "quantile"))
        for rows in (probabilities, probabilities_weighted)
    ),
    Oracle(
        sm.BrierDecomposition(),
        three_classes,
        summed_over_classes(decomposition("uniform", 10)),
    ),
    *(
        Oracle(metric(), rows, reference, **FIT)
        for metric, reference in (
            (sm.CalibrationSlope, slope),
            (sm.CalibrationIntercept, intercept),
        )
        for rows in (probabilities, probabilities_weighted)
    ),
    Oracle(sm.CalibrationSlope(average=None), three_classes, each_class(slope, None), **FIT),
    Oracle(sm.CalibrationInTheLarge(), probabilities, in_the_large),
    Oracle(sm.CalibrationInTheLarge(), probabilities_weighted, in_the_large),
    Oracle(sm.CalibrationInTheLarge(), three_classes, in_the_large),
]
