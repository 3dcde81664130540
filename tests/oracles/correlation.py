"""Rank correlation against SciPy, and tau-a against its definition."""

from __future__ import annotations

import numpy as np
from scipy import stats

from oracles.base import Oracle
from streammetrics.metrics.correlation import KendallTau, SpearmanRho
from streammetrics.metrics.regression.predictions import PredictionError


def numbers(rng, n):
    y_true = rng.normal(size=n)
    return {"y_true": y_true, "y_pred": y_true + rng.normal(size=n)}


def ties(rng, n):
    return {"y_true": rng.integers(0, 4, n), "y_pred": rng.normal(size=n).round(1)}


def repeated_pairs(rng, n):
    return {"y_true": rng.integers(0, 3, n), "y_pred": rng.integers(0, 3, n)}


def infinities(rng, n):
    y_true = rng.choice([-np.inf, -0.0, 0.0, 1e-310, 1.0, np.inf], n)
    return {"y_true": y_true, "y_pred": -y_true + rng.integers(0, 3, n)}


def tau(variant):
    """Return SciPy's tau."""
    return lambda y_true, y_pred: float(stats.kendalltau(y_true, y_pred, variant=variant).statistic)


def tau_a(y_true, y_pred):
    """Return tau-a by its definition."""
    x, y = np.asarray(y_true, float), np.asarray(y_pred, float)
    i, j = np.triu_indices(x.size, 1)
    signs = ((x[i] > x[j]) * 1 - (x[i] < x[j])) * ((y[i] > y[j]) * 1 - (y[i] < y[j]))
    return float(signs.sum() / i.size)


def rho(y_true, y_pred):
    """Return SciPy's rho; its ranks of integers and infinities are the same."""
    return float(stats.spearmanr(y_true, y_pred).statistic)


def distinct(y_true, y_pred):
    """Return the distinct rows and their numbers."""
    rows = np.column_stack([y_true, y_pred]).astype(float) + 0.0
    pairs, counts = np.unique(rows, axis=0, return_counts=True)
    return (*pairs.T, counts)


ORACLES = [
    *(
        Oracle(metric, rows, reference)
        for rows in (numbers, ties, repeated_pairs, infinities)
        for metric, reference in (
            (KendallTau(), tau("b")),
            (KendallTau(variant="c"), tau("c")),
            (KendallTau(variant="a"), tau_a),
            (SpearmanRho(), rho),
        )
    ),
    *(Oracle(PredictionError(), rows, distinct) for rows in (numbers, repeated_pairs, infinities)),
    Oracle(KendallTau(nan_policy="omit"), numbers, tau("b")),
    Oracle(SpearmanRho(max_pairs=1000), numbers, rho),
]
