"""Regression against scikit-learn, SciPy, NumPy, or the formula in plain floating point."""

from __future__ import annotations

import numpy as np
import scipy.stats
import sklearn.metrics as sk

import streammetrics as sm
from oracles.base import Oracle

RAW = {"multioutput": "raw_values"}
WEIGHED = {"multioutput": "variance_weighted"}
CHOSEN = {"multioutput": (0.25, 3.0, 0.5)}


def pairs(rng, n):
    y_true = rng.normal(5, 3, n)
    return {"y_true": y_true, "y_pred": y_true + rng.normal(0.2, 1, n)}


def weighted(rng, n):
    return {**pairs(rng, n), "sample_weight": rng.exponential(size=n)}


def tables(rng, n):
    y_true = rng.normal([0, 5, 1e4], [1, 3, 50], (n, 3))
    return {"y_true": y_true, "y_pred": y_true + rng.normal(0.2, 1, (n, 3))}


def tables_weighted(rng, n):
    return {**tables(rng, n), "sample_weight": rng.exponential(size=n)}


def positive(rng, n):
    return {"y_true": rng.gamma(2, 2, n), "y_pred": rng.gamma(2, 2, n) + 0.01}


def positive_weighted(rng, n):
    return {**positive(rng, n), "sample_weight": rng.exponential(size=n)}


def counts(rng, n):
    return {"y_true": rng.poisson(1.0, n), "y_pred": rng.gamma(2, 2, n) + 0.01}


def far_from_zero(rng, n):
    y_true = 1e9 + rng.normal(size=n)
    return {"y_true": y_true, "y_pred": y_true + rng.normal(size=n)}


def ties(rng, n):
    return {"y_true": rng.integers(0, 9, n), "y_pred": rng.integers(0, 9, n)}


def of(function, **options):
    """Return the reference with options bound."""

    def reference(y_true, y_pred, sample_weight=None):
        return function(y_true, y_pred, sample_weight=sample_weight, **options)

    return reference


def mean(loss):
    """Return the mean over rows and outputs of a formula."""

    def reference(y_true, y_pred, sample_weight=None):
        return np.mean(np.average(loss(y_true, y_pred), axis=0, weights=sample_weight))

    return reference


def wape(y_true, y_pred, sample_weight=None):
    w = 1 if sample_weight is None else sample_weight
    return np.sum(w * np.abs(y_true - y_pred)) / np.sum(w * np.abs(y_true))


def smape(y, p):
    return 2 * np.abs(y - p) / (np.abs(y) + np.abs(p))


def smape_of_ties(y, p):
    return 2 * np.abs(y - p) / np.maximum(np.abs(y) + np.abs(p), 1)


def huber(y, p):
    e = np.abs(y - p)
    return np.where(e <= 0.7, e * e / 2, 0.7 * (e - 0.35))


def pearson(y_true, y_pred, sample_weight=None):
    if sample_weight is None:
        return scipy.stats.pearsonr(y_true, y_pred).statistic
    cov = np.cov(y_true, y_pred, aweights=sample_weight)
    return cov[0, 1] / np.sqrt(cov[0, 0] * cov[1, 1])


def concordance(y_true, y_pred, sample_weight=None):
    cov = np.cov(y_true, y_pred, aweights=sample_weight, ddof=0)
    means = [np.average(c, weights=sample_weight) for c in (y_true, y_pred)]
    return 2 * cov[0, 1] / (cov[0, 0] + cov[1, 1] + (means[0] - means[1]) ** 2)


def relative_squared(y_true, y_pred, sample_weight=None):
    return 1 - sk.r2_score(y_true, y_pred, sample_weight=sample_weight)


def error_quantile(q, method="linear"):
    def reference(y_true, y_pred):
        return np.quantile(np.abs(y_true - y_pred), q, method=method)

    return reference


def outputwise(reference):
    """Return the mean over outputs of a reference for one."""

    def averaged(y_true, y_pred):
        return np.mean([reference(y, p) for y, p in zip(y_true.T, y_pred.T, strict=True)])

    return averaged


def largest(y_true, y_pred, sample_weight):
    return sk.max_error(y_true, y_pred)


ORACLES = [
    Oracle(sm.MAE(), pairs, of(sk.mean_absolute_error)),
    Oracle(sm.MAE(), weighted, of(sk.mean_absolute_error)),
    Oracle(sm.MAE(), tables_weighted, of(sk.mean_absolute_error)),
    Oracle(sm.MAE(**RAW), tables, of(sk.mean_absolute_error, **RAW)),
    Oracle(sm.MAE(**RAW), pairs, of(sk.mean_absolute_error, **RAW)),
    *(
        Oracle(metric(**CHOSEN), rows, of(function, **CHOSEN))
        for metric, function in (
            (sm.MAE, sk.mean_absolute_error),
            (sm.RMSE, sk.root_mean_squared_error),
            (sm.R2, sk.r2_score),
            (sm.ExplainedVariance, sk.explained_variance_score),
            (sm.MedianAbsoluteError, sk.median_absolute_error),
        )
        for rows in (tables,)
    ),
    Oracle(sm.MSE(), pairs, of(sk.mean_squared_error)),
    Oracle(sm.MSE(), tables_weighted, of(sk.mean_squared_error)),
    Oracle(sm.RMSE(), weighted, of(sk.root_mean_squared_error)),
    Oracle(sm.RMSE(), tables, of(sk.root_mean_squared_error)),
    Oracle(sm.RMSE(**RAW), tables, of(sk.root_mean_squared_error, **RAW)),
    Oracle(sm.MeanError(), weighted, mean(lambda y, p: p - y)),
    Oracle(sm.MeanError(), tables, mean(lambda y, p: p - y)),
    Oracle(sm.MAPE(), weighted, of(sk.mean_absolute_percentage_error)),
    Oracle(sm.MAPE(), tables, of(sk.mean_absolute_percentage_error)),
    Oracle(sm.MAPE(), ties, of(sk.mean_absolute_percentage_error)),
    Oracle(sm.SMAPE(), weighted, mean(smape)),
    Oracle(sm.SMAPE(), ties, mean(smape_of_ties)),
    Oracle(sm.WAPE(), pairs, wape),
    Oracle(sm.WAPE(), weighted, wape),
    Oracle(sm.WAPE(), tables, outputwise(wape)),
    Oracle(sm.MSLE(), positive_weighted, of(sk.mean_squared_log_error)),
    Oracle(sm.RMSLE(), positive, of(sk.root_mean_squared_log_error)),
    Oracle(sm.PinballLoss(), weighted, of(sk.mean_pinball_loss)),
    Oracle(sm.PinballLoss(alpha=0.9), tables, of(sk.mean_pinball_loss, alpha=0.9)),
    Oracle(sm.HuberLoss(delta=0.7), weighted, mean(huber)),
    Oracle(sm.LogCoshError(), weighted, mean(lambda y, p: np.log(np.cosh(y - p)))),
    Oracle(sm.LogCoshError(), tables, mean(lambda y, p: np.log(np.cosh(y - p)))),
    Oracle(sm.TweedieDeviance(), weighted, of(sk.mean_tweedie_deviance)),
    *(
        Oracle(
            sm.TweedieDeviance(power=q), positive_weighted, of(sk.mean_tweedie_deviance, power=q)
        )
        for q in (-1.5, 1, 1.5, 2, 3)
    ),
    Oracle(sm.PoissonDeviance(), counts, of(sk.mean_poisson_deviance)),
    Oracle(sm.PoissonDeviance(), positive_weighted, of(sk.mean_poisson_deviance)),
    Oracle(sm.GammaDeviance(), positive_weighted, of(sk.mean_gamma_deviance)),
    Oracle(sm.R2(), pairs, of(sk.r2_score)),
    Oracle(sm.R2(), weighted, of(sk.r2_score)),
    Oracle(sm.R2(), far_from_zero, of(sk.r2_score), rel=1e-6, why="the reference cancels"),
    Oracle(sm.R2(), tables, of(sk.r2_score)),
    Oracle(sm.R2(force_finite=True), tables, of(sk.r2_score)),
    Oracle(sm.R2(**RAW), tables, of(sk.r2_score, **RAW)),
    Oracle(sm.R2(**WEIGHED), tables_weighted, of(sk.r2_score, **WEIGHED)),
    Oracle(sm.ExplainedVariance(), weighted, of(sk.explained_variance_score)),
    Oracle(sm.ExplainedVariance(**RAW), tables, of(sk.explained_variance_score, **RAW)),
    Oracle(
        sm.ExplainedVariance(**WEIGHED), tables_weighted, of(sk.explained_variance_score, **WEIGHED)
    ),
    Oracle(sm.RelativeSquaredError(), weighted, relative_squared),
    Oracle(sm.RelativeSquaredError(), tables, relative_squared),
    Oracle(sm.RelativeSquaredError(**WEIGHED), tables, lambda **c: 1 - sk.r2_score(**c, **WEIGHED)),
    Oracle(sm.PearsonCorrelation(), pairs, pearson),
    Oracle(sm.PearsonCorrelation(), weighted, pearson),
    Oracle(sm.PearsonCorrelation(), tables, outputwise(pearson)),
    Oracle(sm.ConcordanceCorrelation(), pairs, concordance),
    Oracle(sm.ConcordanceCorrelation(), weighted, concordance),
    Oracle(sm.ConcordanceCorrelation(), tables, outputwise(concordance)),
    Oracle(sm.MaxError(), pairs, sk.max_error),
    Oracle(sm.MaxError(), weighted, largest),
    Oracle(sm.MaxError(), tables, outputwise(sk.max_error)),
    Oracle(sm.MedianAbsoluteError(), pairs, of(sk.median_absolute_error)),
    Oracle(sm.MedianAbsoluteError(), ties, of(sk.median_absolute_error)),
    Oracle(sm.MedianAbsoluteError(), weighted, of(sk.median_absolute_error)),
    Oracle(sm.MedianAbsoluteError(), tables, of(sk.median_absolute_error)),
    Oracle(sm.MedianAbsoluteError(**RAW), tables_weighted, of(sk.median_absolute_error, **RAW)),
    Oracle(
        sm.MedianAbsoluteError(max_bins=1 << 10),
        pairs,
        of(sk.median_absolute_error),
        n=5000,
        rel=0.05,
        why="5000 errors in 1024 bins",
    ),
    Oracle(sm.AbsoluteErrorQuantile(q=0.9), pairs, error_quantile(0.9)),
    Oracle(sm.AbsoluteErrorQuantile(q=0.9), ties, error_quantile(0.9)),
    Oracle(sm.AbsoluteErrorQuantile(q=0.9), tables, outputwise(error_quantile(0.9))),
    Oracle(
        sm.AbsoluteErrorQuantile(q=0.25, method="averaged_inverted_cdf"),
        pairs,
        error_quantile(0.25, "averaged_inverted_cdf"),
    ),
]
