"""Confusion counts: large batches and the small ones of a training loop."""

from __future__ import annotations

import numpy as np
import sklearn.metrics as sk
import torch
from measuring import Case
from peers import peer

import streammetrics as sm

te, tc = peer("torcheval.metrics"), peer("torchmetrics.classification")


def once(metric, *columns):
    """Return a call that makes a peer's metric, feeds it once and reads it."""

    def call():
        fresh = metric()
        fresh.update(*columns)
        return fresh.compute()

    return call


def f1(scale):
    """F1 at a threshold."""
    rng, n = np.random.default_rng(0), int(10_000_000 * scale)
    y, s = rng.integers(0, 2, n), rng.random(n)
    return Case(
        f"F1 at a threshold, {n:,} rows",
        lambda: sm.F1(threshold=0.5).update(y, s).compute(),
        {
            "scikit-learn": lambda: sk.f1_score(y, s >= 0.5),
            "torchmetrics": once(tc.BinaryF1Score, torch.from_numpy(s), torch.from_numpy(y)),
        },
        {"scikit-learn": 40, "torchmetrics": 15},
        (y, s),
    )


def multilabel(scale):
    """Macro F1 of 20 labels a row."""
    rng, n = np.random.default_rng(3), int(10_000_000 * scale)
    y, p = rng.integers(0, 2, (2, n, 20), dtype=np.uint8)
    return Case(
        f"macro F1 of 20 labels a row, {n:,} rows",
        lambda: sm.F1(average="macro", multilabel=True).update(y, p).compute(),
        {
            "scikit-learn": lambda: sk.f1_score(y, p, average="macro"),
            "torchmetrics": once(
                lambda: tc.MultilabelF1Score(num_labels=20, average="macro"),
                torch.from_numpy(p),
                torch.from_numpy(y),
            ),
        },
        {"scikit-learn": 20, "torchmetrics": 5},
        (y, p),
    )


def confusion(scale):
    """10-class confusion matrix."""
    rng, n = np.random.default_rng(1), int(10_000_000 * scale)
    y, p = rng.integers(0, 10, n), rng.integers(0, 10, n)
    return Case(
        f"10-class confusion matrix, {n:,} rows",
        lambda: sm.ConfusionMatrix().update(y, p).compute(),
        {
            "scikit-learn": lambda: sk.confusion_matrix(y, p),
            "torchmetrics": once(
                lambda: tc.MulticlassConfusionMatrix(num_classes=10),
                torch.from_numpy(p),
                torch.from_numpy(y),
            ),
        },
        {"scikit-learn": 20, "torchmetrics": 12},
        (y, p),
    )


def small(scale):
    """F1 update with a batch of 64 rows."""
    rng = np.random.default_rng(2)
    y, s = rng.integers(0, 2, 64), rng.random(64)
    ty, ts = torch.from_numpy(y), torch.from_numpy(s)
    ours, theirs, evals = sm.F1(threshold=0.5), tc.BinaryF1Score(), te.BinaryF1Score()
    return Case(
        "F1 update, batch of 64 rows",
        lambda: ours.update(y, s),
        {
            "torchmetrics": lambda: theirs.update(ts, ty),
            "torcheval": lambda: evals.update(ts, ty),
        },
        {"torchmetrics": 6, "torcheval": 3},
        repeats=20,
        calls=max(int(1000 * scale), 200),
    )


BENCHMARKS = {
    "F1 at a threshold": f1,
    "F1 of several labels": multilabel,
    "confusion matrix": confusion,
    "F1 small batch": small,
}
