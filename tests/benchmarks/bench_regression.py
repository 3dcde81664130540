"""Regression: exact sums against plain floating point."""

from __future__ import annotations

import numpy as np
import sklearn.metrics as sk
from measuring import Case

import streammetrics as sm


def errors(scale):
    """MAE, MSE and R2."""
    rng, n = np.random.default_rng(4), int(10_000_000 * scale)
    y = rng.normal(size=n)
    p = y + rng.normal(scale=0.5, size=n)

    def ours():
        suite = sm.MetricSet({"mae": sm.MAE(), "mse": sm.MSE(), "r2": sm.R2()})
        return suite.update(y_true=y, y_pred=p).compute()

    def theirs():
        return (
            sk.mean_absolute_error(y, p),
            sk.mean_squared_error(y, p),
            sk.r2_score(y, p),
        )

    return Case(
        f"MAE + MSE + R2, exact sums, {n:,} rows",
        ours,
        {"scikit-learn (inexact)": theirs},
        {"scikit-learn (inexact)": 2.5},
        (y, p),
    )


BENCHMARKS = {"MAE + MSE + R2": errors}
