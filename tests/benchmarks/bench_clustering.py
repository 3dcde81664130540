"""Clustering, against a truth and without one."""

from __future__ import annotations

import numpy as np
import sklearn.metrics as sk
from measuring import Case, Figure, growth_of

import streammetrics as sm


def labelings(scale):
    """ARI and NMI."""
    rng, n = np.random.default_rng(9), int(10_000_000 * scale)
    truth = rng.integers(0, 50, n)
    found = np.where(rng.random(n) < 0.5, truth, rng.integers(0, 50, n))

    def ours():
        suite = sm.MetricSet({"ari": sm.AdjustedRandIndex(), "nmi": sm.NormalizedMutualInfo()})
        return suite.update(labels_true=truth, labels_pred=found).compute()

    def theirs():
        return (
            sk.adjusted_rand_score(truth, found),
            sk.normalized_mutual_info_score(truth, found),
        )

    return Case(
        f"ARI + NMI, {n:,} rows, 50 x 50 clusters",
        ours,
        {"scikit-learn": theirs},
        {"scikit-learn": 30},
        (truth, found),
        repeats=2,
    )


def points(n):
    """Return points in 16 dimensions around ten centres, and their clusters."""
    rng = np.random.default_rng(10)
    labels = rng.integers(0, 10, n)
    return rng.normal(size=(10, 16))[labels] * 2 + rng.normal(size=(n, 16)), labels


def silhouette(scale):
    """The silhouette."""
    x, labels = points(int(20_000 * scale))
    return Case(
        f"silhouette, {len(x):,} x 16",
        lambda: sm.Silhouette().update(x, labels).compute(),
        {"scikit-learn": lambda: sk.silhouette_score(x, labels)},
        {"scikit-learn": 3},
        (x,),
    )


def calinski(scale):
    """Calinski-Harabasz."""
    x, labels = points(int(1_000_000 * scale))
    return Case(
        f"Calinski-Harabasz, exact sums, {len(x):,} x 16",
        lambda: sm.CalinskiHarabasz().update(x, labels).compute(),
        {"scikit-learn (inexact)": lambda: sk.calinski_harabasz_score(x, labels)},
        {"scikit-learn (inexact)": 2},
        (x,),
    )


def dunn(scale):
    """Dunn's index, which no peer has."""
    x, labels = points(int(20_000 * scale))
    return Case(
        f"Dunn index, {len(x):,} x 16",
        lambda: sm.DunnIndex().update(x, labels).compute(),
        {"(no peer) silhouette of scikit-learn": lambda: sk.silhouette_score(x, labels)},
        {},
        (x,),
    )


WORK = """
rng = np.random.default_rng(0)
x, labels = rng.normal(size=(rows, 16)), rng.integers(0, 10, rows)
sm.Silhouette().update(x[:500], labels[:500]).compute()
begin()
sm.Silhouette().update(x, labels).compute()
"""


def memory(scale):
    """Growth of the resident set for a silhouette."""
    rows = int(20_000 * scale)
    growth = growth_of(WORK, rows)["growth"] / 1e6
    title = f"memory of a silhouette of {rows:,} points"
    return [Figure(title, f"{growth:.0f} MB peak growth", "300 MB", growth < 300)]


BENCHMARKS = {
    "ARI + NMI": labelings,
    "silhouette": silhouette,
    "Calinski-Harabasz": calinski,
    "Dunn": dunn,
    "memory of a silhouette": memory,
}
