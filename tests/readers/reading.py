"""A set, a table for it, and its state: what readers' tests compare."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import streammetrics as sm


def suite(**columns: object) -> sm.MetricSet:
    """Return an empty set whose state tells every row, and how often it came."""
    columns = columns or {"y_true": "label", "y_score": "score"}
    return sm.MetricSet({"auc": sm.ROCAUC(), "f1": sm.F1(threshold=0.5)}, columns=columns)


def rows(n: int, seed: int = 0) -> pa.Table:
    """Return labels and scores, all scores different."""
    rng = np.random.default_rng(seed)
    return pa.table({"label": rng.integers(0, 2, n), "score": rng.random(n)})


def fed(*tables: object, **columns: object) -> sm.MetricSet:
    """Return a set that has taken the tables."""
    state = suite(**columns)
    for table in tables:
        state.update(table)
    return state
