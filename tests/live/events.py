"""Events for the tests of `Live`: small histories, and the same state reached in many ways."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

import streammetrics as sm

START = 1_700_000_040  # a whole minute, in seconds
SUITE = {"accuracy": sm.Accuracy(threshold=0.5), "auc": sm.ROCAUC(), "brier": sm.BrierScore()}
TIERS = (("1min", "6min"), ("5min", "20min"))


def live(**parameters):
    return sm.Live(sm.MetricSet(SUITE), **{"tiers": TIERS, **parameters})


def joined(**parameters):
    return live(**{"label_ttl": "5min", "label_lateness": "10min", **parameters})


def rows(n, seed=0, span=1800):
    rng = np.random.default_rng(seed)
    return {
        "time": START + rng.integers(0, span * 4, n) / 4,
        "y_true": rng.integers(0, 2, n),
        "y_score": rng.integers(0, 17, n) / 16,
    }


observed = st.tuples(
    st.integers(0, 1800), st.integers(0, 1), st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])
)


def observe(into, event):
    second, label, score = event
    return into.observe(time=START + second, y_true=label, y_score=score)


def fresh(events):
    """Return a set fed with exactly these rows."""
    suite = sm.MetricSet(SUITE)
    if events:
        _, labels, scores = zip(*events, strict=True)
        suite.update(y_true=list(labels), y_score=list(scores))
    return suite
