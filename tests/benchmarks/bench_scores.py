"""ROC AUC, exact and certified."""

from __future__ import annotations

import numpy as np
import sklearn.metrics as sk
import torch
import torchmetrics.classification as tc
from bench_classification import once
from run import Case

import streammetrics as sm


def columns(scale):
    """Return labels and distinct scores that know something of them."""
    rng, n = np.random.default_rng(3), int(10_000_000 * scale)
    y = rng.integers(0, 2, n)
    return y, 1 / (1 + np.exp(-rng.normal(y - 0.5, 1.0)))


def auc(scale, title, power, goals):
    """ROC AUC with a budget of 2**power bins."""
    y, s = columns(scale)
    return Case(
        f"ROC AUC, {title}, {len(y):,} rows",
        lambda: sm.ROCAUC(max_bins=2**power).update(y, s).compute(),
        {
            "scikit-learn": lambda: sk.roc_auc_score(y, s),
            "torchmetrics": once(tc.BinaryAUROC, torch.from_numpy(s), torch.from_numpy(y)),
        },
        dict(zip(("scikit-learn", "torchmetrics"), goals, strict=True)),
        (y, s),
        repeats=2,
    )


BENCHMARKS = {
    "ROC AUC exact": lambda scale: auc(scale, "exact, distinct scores", 24, (8, 5)),
    "ROC AUC certified": lambda scale: auc(scale, "2^16 bins, certified", 16, (40, 25)),
}
