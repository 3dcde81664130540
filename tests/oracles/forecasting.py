"""Forecasts, shares of the constant's loss, and distributions against peers and plain formulas."""

from __future__ import annotations

import numpy as np
import scipy.spatial
import scipy.special
import scipy.stats
import sklearn.metrics as sk
from sklearn.metrics.pairwise import paired_cosine_distances

import streammetrics as sm
from oracles.base import Oracle
from oracles.regression import counts, of, pairs, positive_weighted, tables, weighted


def intervals(rng, n):
    low = rng.normal(size=n).round(1)
    y_true = rng.normal(size=n).round(1)
    return {"y_true": y_true, "y_low": low, "y_high": low + rng.exponential(2, n).round(1)}


def intervals_weighted(rng, n):
    return {**intervals(rng, n), "sample_weight": rng.exponential(size=n)}


def ensembles(rng, n):
    return {"y_true": rng.normal(size=n), "y_ensemble": rng.normal(size=(n, 7))}


def gaussians(rng, n):
    return {
        "y_true": 3 * rng.normal(size=n),
        "y_mean": rng.normal(size=n),
        "y_std": rng.exponential(size=n) + 0.05,
    }


def quantiles(rng, n):
    return {"y_true": rng.normal(size=n), "y_quantiles": np.sort(rng.normal(size=(n, 3)), axis=1)}


def transforms(rng, n):
    return {"pit": rng.random(n).round(2)}


def transforms_weighted(rng, n):
    return {**transforms(rng, n), "sample_weight": rng.exponential(size=n)}


def series(rng, n):
    return {**pairs(rng, n), "scale": rng.choice([0.5, 1.0, 3.0], n)}


def series_weighted(rng, n):
    return {**series(rng, n), "sample_weight": rng.exponential(size=n)}


def soft_labels(rng, n):
    return {
        "y_true": rng.dirichlet([0.5, 1.0, 2.0], n),
        "y_score": rng.dirichlet([1.0, 1.0, 2.0], n),
    }


def soft_labels_weighted(rng, n):
    return {**soft_labels(rng, n), "sample_weight": rng.exponential(size=n)}


def soft_binary(rng, n):
    return {"y_true": rng.random(n), "y_score": rng.random(n)}


def soft_logits(rng, n):
    return {"y_true": rng.dirichlet([0.5, 1.0], n), "y_score": rng.normal(size=(n, 2))}


def vectors(rng, n):
    return {"y_true": rng.normal(size=(n, 3)), "y_pred": rng.normal(size=(n, 3))}


def mean_of(formula):
    def reference(sample_weight=None, **columns):
        return np.average(formula(**columns), weights=sample_weight)

    return reference


def winkler(y_true, y_low, y_high):
    outside = np.maximum(y_low - y_true, 0) + np.maximum(y_true - y_high, 0)
    return y_high - y_low + 2 / 0.2 * outside


def crps_of_members(y_true, y_ensemble, *, fair=False):
    m = y_ensemble.shape[1]
    apart = np.abs(y_ensemble[:, :, None] - y_ensemble[:, None]).sum(axis=(1, 2))
    near = np.abs(y_ensemble - y_true[:, None]).mean(axis=1)
    return near - apart / 2 / (m * (m - 1) if fair else m * m)


def crps_of_gaussians(y_true, y_mean, y_std):
    z, norm = (y_true - y_mean) / y_std, scipy.stats.norm
    return y_std * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))


def crps_of_quantiles(y_true, y_quantiles):
    return np.mean(
        [
            [
                2 * sk.mean_pinball_loss([y], [q], alpha=level)
                for q, level in zip(row, LEVELS, strict=True)
            ]
            for y, row in zip(y_true, y_quantiles, strict=True)
        ],
        axis=1,
    )


def histogram(n_bins):
    def reference(pit, sample_weight=None):
        rows = np.histogram(pit, n_bins, (0, 1), weights=sample_weight)[0]
        return rows / rows.sum()

    return reference


def scaled(y_true, y_pred, scale):
    return np.abs(y_true - y_pred) / scale


def root_scaled(sample_weight=None, **columns):
    return np.sqrt(np.average(scaled(**columns) ** 2, weights=sample_weight))


def divergence(y_true, y_score):
    if y_true.ndim == 1:
        y_true, y_score = (np.stack([1 - p, p], axis=1) for p in (y_true, y_score))
    return scipy.stats.entropy(y_true, y_score, axis=1)


def cross_entropy(y_true, y_score):
    if y_true.ndim == 1:
        y_true, y_score = (np.stack([1 - p, p], axis=1) for p in (y_true, y_score))
    return -(y_true * np.log(y_score)).sum(axis=1)


def of_logits(formula):
    return lambda y_true, y_score: formula(y_true, scipy.special.softmax(y_score, axis=1))


def nrmse(size):
    def reference(y_true, y_pred, sample_weight=None):
        roots = sk.root_mean_squared_error(
            y_true, y_pred, sample_weight=sample_weight, multioutput="raw_values"
        )
        return np.mean(roots / size(y_true, sample_weight))

    return reference


def minkowski(order):
    def reference(y_true, y_pred, sample_weight=None):
        return scipy.spatial.distance.minkowski(y_true, y_pred, order, sample_weight)

    return reference


def relative_absolute(y_true, y_pred, sample_weight=None):
    mean = np.average(y_true, weights=sample_weight, axis=0)
    off = [np.average(np.abs(y_true - p), weights=sample_weight, axis=0) for p in (y_pred, mean)]
    return np.mean(off[0] / off[1])


def adjusted(p, **options):
    def reference(y_true, y_pred):
        n = len(y_true)
        return 1 - (1 - sk.r2_score(y_true, y_pred, **options)) * (n - 1) / (n - p - 1)

    return reference


LEVELS = (0.1, 0.5, 0.8)

ORACLES = [
    *(
        Oracle(metric, rows, mean_of(formula))
        for metric, formula in (
            (
                sm.IntervalCoverage(),
                lambda y_true, y_low, y_high: (y_low <= y_true) & (y_true <= y_high),
            ),
            (sm.IntervalWidth(), lambda y_true, y_low, y_high: y_high - y_low),
            (sm.WinklerScore(alpha=0.2), winkler),
        )
        for rows in (intervals, intervals_weighted)
    ),
    Oracle(sm.CRPSEnsemble(), ensembles, mean_of(crps_of_members)),
    Oracle(
        sm.CRPSEnsemble(fair=True),
        ensembles,
        mean_of(lambda **rows: crps_of_members(**rows, fair=True)),
    ),
    Oracle(sm.CRPSGaussian(), gaussians, mean_of(crps_of_gaussians)),
    Oracle(sm.CRPSQuantiles(levels=LEVELS), quantiles, mean_of(crps_of_quantiles)),
    Oracle(sm.PITHistogram(n_bins=4), transforms, histogram(4)),
    Oracle(sm.PITHistogram(), transforms_weighted, histogram(10)),
    *(Oracle(sm.MASE(), rows, mean_of(scaled)) for rows in (series, series_weighted)),
    Oracle(sm.RMSSE(), series_weighted, root_scaled),
    Oracle(
        sm.CosineSimilarity(),
        vectors,
        mean_of(lambda y_true, y_pred: 1 - paired_cosine_distances(y_true, y_pred)),
    ),
    *(
        Oracle(metric(), rows, mean_of(formula))
        for metric, formula in ((sm.KLDivergence, divergence), (sm.CrossEntropy, cross_entropy))
        for rows in (soft_labels, soft_labels_weighted, soft_binary)
    ),
    Oracle(sm.CrossEntropy(from_logits=True), soft_logits, mean_of(of_logits(cross_entropy))),
    Oracle(sm.D2AbsoluteError(), weighted, of(sk.d2_absolute_error_score)),
    Oracle(sm.D2AbsoluteError(), tables, of(sk.d2_absolute_error_score)),
    *(
        Oracle(sm.D2Pinball(alpha=alpha), rows, of(sk.d2_pinball_score, alpha=alpha))
        for alpha, rows in ((0.5, pairs), (0.9, weighted), (0.3, counts))
    ),
    *(
        Oracle(sm.D2Tweedie(power=power), rows, of(sk.d2_tweedie_score, power=power))
        for power, rows in (
            (0.0, weighted),
            (1.0, counts),
            (1.5, positive_weighted),
            (2.0, positive_weighted),
            (-1.0, positive_weighted),
        )
    ),
    Oracle(sm.RelativeAbsoluteError(), weighted, relative_absolute),
    Oracle(sm.RelativeAbsoluteError(), tables, relative_absolute),
    Oracle(sm.AdjustedR2(n_features=3), pairs, adjusted(3)),
    Oracle(
        sm.AdjustedR2(n_features=3, multioutput="variance_weighted"),
        tables,
        adjusted(3, multioutput="variance_weighted"),
        rel=1e-11,
    ),
    *(
        Oracle(sm.NRMSE(normalization=how), rows, nrmse(size))
        for how, rows, size in (
            ("range", tables, lambda y, w: np.ptp(y, axis=0)),
            ("mean", weighted, lambda y, w: np.average(y, weights=w)),
            ("std", tables, lambda y, w: y.std(axis=0)),
            ("l2", weighted, lambda y, w: np.sqrt(np.sum(w * y * y))),
        )
    ),
    *(
        Oracle(sm.MinkowskiDistance(order=order), rows, minkowski(order))
        for order, rows in ((1.0, pairs), (3.0, weighted), (2.5, pairs))
    ),
]
