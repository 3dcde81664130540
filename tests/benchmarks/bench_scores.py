"""ROC AUC, exact and certified."""

from __future__ import annotations

import numpy as np
import sklearn.metrics as sk
import torch
from bench_classification import once, tc
from measuring import Case, Figure, growth_of

import streammetrics as sm
from streammetrics.cli.tasks import TASKS


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


def weighted(scale):
    """ROC AUC with a weight a row, and within a third of the time of rows without."""
    y, s = columns(scale)
    w = np.random.default_rng(4).exponential(size=len(y))
    return Case(
        f"ROC AUC, weighted, 2^20 bins, {len(y):,} rows",
        lambda: sm.ROCAUC().update(y, s, sample_weight=w).compute(),
        {
            "scikit-learn": lambda: sk.roc_auc_score(y, s, sample_weight=w),
            "unweighted": lambda: sm.ROCAUC().update(y, s).compute(),
        },
        {"scikit-learn": 3, "unweighted": 1 / 3},
        (y, s, w),
        repeats=2,
    )


WEIGHTED = """
rng = np.random.default_rng(3)
y, s, w = rng.integers(0, 2, rows), rng.random(rows), rng.exponential(size=rows)
metric = sm.ROCAUC()
begin()
metric.update(y, s, sample_weight=w).compute()
"""


def weighted_peak(scale):
    """The growth of the resident set by one call with a weight a row."""
    rows = int(10_000_000 * scale)
    grown = growth_of(WEIGHTED, rows)["growth"] / 1e6
    plain = growth_of(WEIGHTED.replace("sample_weight=w", ""), rows)["growth"] / 1e6
    return [
        Figure(f"growth, ROC AUC of one weighted call, {rows:,} rows", f"{grown:.0f} MB", "", None),
        Figure("  the same without weights", f"{plain:.0f} MB", "", None),
    ]


def weighted_set(scale):
    """What `evaluate` reports of binary scores by default, with a weight a row."""
    y, s = columns(scale)
    w = np.random.default_rng(4).exponential(size=len(y))

    def suite():
        names = TASKS["binary"].defaults["y_score"]
        return sm.MetricSet({name: getattr(sm, name)() for name in names})

    return Case(
        f"default set of binary scores, weighted, {len(y):,} rows",
        lambda: suite().update(y_true=y, y_score=s, sample_weight=w).compute(),
        {"unweighted": lambda: suite().update(y_true=y, y_score=s).compute()},
        {"unweighted": 1 / 1.5},
        (y, s, w),
        repeats=2,
    )


BENCHMARKS = {
    "ROC AUC exact": lambda scale: auc(scale, "exact, distinct scores", 24, (25, 12)),
    "ROC AUC certified": lambda scale: auc(scale, "2^16 bins, certified", 16, (100, 40)),
    "ROC AUC weighted": weighted,
    "ROC AUC weighted, memory": weighted_peak,
    "set weighted": weighted_set,
}
