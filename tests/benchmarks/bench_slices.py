"""Metrics by slice: counts of a thousand slices, and curves and losses of as many."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import sklearn.metrics as sk
from measuring import Case, Figure
from peers import peer

import streammetrics as sm

fair = peer("fairlearn.metrics")

SLICES = 1000
_FEW = 20_000  # rows of what takes too long on more


def _rows(n, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    score = np.clip(0.35 + 0.3 * y + 0.2 * rng.normal(size=n), 0, 1)
    return y, score, rng.integers(0, SLICES, n)


def _grouped(y, p, group):
    """scikit-learn's F1 and accuracy of every group, from sums by pandas."""
    frame = pd.DataFrame({"tp": y & p, "fp": ~y & p & 1, "fn": y & ~p & 1, "right": y == p})
    sums = frame.groupby(group).sum()
    f1 = 2 * sums.tp / (2 * sums.tp + sums.fp + sums.fn)
    return f1, sums.right / np.bincount(group)


def _fairlearn(y, p, group):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        metrics = {"f1": sk.f1_score, "accuracy": sk.accuracy_score}
        frame = fair.MetricFrame(metrics=metrics, y_true=y, y_pred=p, sensitive_features=group)
        return frame.by_group


def counts(scale):
    """F1 and accuracy by a thousand slices; fairlearn is given a hundredth of the rows."""
    n = int(10_000_000 * scale)
    y, score, group = _rows(n)
    p = (score >= 0.5).astype(np.int64)
    suite = sm.MetricSet({"f1": sm.F1(), "accuracy": sm.Accuracy()})

    def ours():
        slices = sm.Slices(suite, by="group").update(y_true=y, y_pred=p, group=group)
        return slices.compute()

    few = min(_FEW, n)
    name = f"fairlearn on {few:,} rows"
    peers = {
        "pandas group-by": lambda: _grouped(y, p, group),
        name: lambda: _fairlearn(y[:few], p[:few], group[:few]),
    }
    goals = {"pandas group-by": 10.0, name: 50.0 * few / n}
    return Case(f"F1 and accuracy by {SLICES:,} slices, {n:,} rows", ours, peers, goals, (y, p))


def five(scale):
    """Five metrics with ROC AUC by a thousand slices, beside the same without slices."""
    n = int(10_000_000 * scale)
    y, score, group = _rows(n, 1)
    metrics = {
        "f1": sm.F1(threshold=0.5),
        "accuracy": sm.Accuracy(threshold=0.5),
        "auc": sm.ROCAUC(max_bins=1024),
        "loss": sm.LogLoss(),
        "brier": sm.BrierScore(),
    }
    suite = sm.MetricSet(metrics)

    def ours():
        slices = sm.Slices(suite, by="group").update(y_true=y, y_score=score, group=group)
        return slices.n_rows

    def whole():
        return suite.copy().update(y_true=y, y_score=score).n_rows

    slices = sm.Slices(suite, by="group").update(y_true=y, y_score=score, group=group)
    written, held = len(slices.to_bytes()) / 1e6, slices.nbytes / 1e6
    case = Case(
        f"5 metrics with ROC AUC by {SLICES:,} slices, {n:,} rows",
        ours,
        {"ours without slices": whole},
        {"ours without slices": 0.2},
        (y, score),
    )
    return [
        case,
        Figure("  their state, once read", f"{held:.1f} MB", "20 MB", held <= 20),
        Figure("  their state as bytes", f"{written:.1f} MB", "20 MB", written <= 20),
    ]


BENCHMARKS = {"F1 and accuracy by slices": counts, "5 metrics by slices": five}
