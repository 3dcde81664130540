"""Clustering metrics against scikit-learn, and against plain formulas where it has none."""

from __future__ import annotations

import itertools

import numpy as np
import sklearn.metrics as sk
from scipy.optimize import linear_sum_assignment
from sklearn.metrics.cluster import pair_confusion_matrix

import streammetrics as sm
from oracles.base import Oracle

CENTROIDS = np.array([[0.0, 0.0, 0.0], [3.0, 0.0, 1.0], [0.0, 4.0, -1.0], [9.0, 9.0, 9.0]])


def labelings(rng, n):
    true = rng.integers(-2, 4, n)
    pred = np.where(rng.random(n) < 0.6, true % 5, rng.integers(0, 7, n))
    return {"labels_true": true, "labels_pred": np.array(list("abcdefg"))[pred]}


def independent_labelings(rng, n):
    return {"labels_true": rng.integers(0, 3, n), "labels_pred": rng.random(n) < 0.5}


def one_cluster_each(rng, n):
    return {"labels_true": np.zeros(n, int), "labels_pred": np.full(n, 7)}


def one_true_cluster(rng, n):
    return {"labels_true": np.zeros(n, int), "labels_pred": rng.integers(0, 4, n)}


def one_predicted_cluster(rng, n):
    return {"labels_true": rng.integers(0, 4, n), "labels_pred": np.zeros(n, int)}


def every_row_its_own_cluster(rng, n):
    return {"labels_true": rng.permutation(n), "labels_pred": rng.permutation(n)}


def own_clusters_predicted(rng, n):
    return {"labels_true": rng.integers(0, 4, n), "labels_pred": rng.permutation(n)}


def points(rng, n):
    labels = rng.integers(0, 4, n)
    return {"X": CENTROIDS[labels] + rng.normal(size=(n, 3)), "labels": labels}


def points_with_copies(rng, n):
    labels = rng.integers(-1, 3, n)
    return {
        "X": rng.integers(-2, 3, (n, 2)) + 0.25 * labels[:, None],
        "labels": np.array(["aa", "b", "cccc", "d"])[labels],
    }


def points_far_away(rng, n):
    columns = points(rng, n)
    return {**columns, "X": columns["X"] + 2.0**20}


def points_with_single_ones(rng, n):
    columns = points(rng, n)
    columns["labels"][:3] = [10, 11, 12]
    return columns


def pair_ratio(formula):
    def reference(labels_true, labels_pred):
        (_, fp), (fn, tp) = pair_confusion_matrix(labels_true, labels_pred)
        return formula(int(tp), int(fp), int(fn))

    return reference


def purity(labels_true, labels_pred):
    return sk.cluster.contingency_matrix(labels_true, labels_pred).max(axis=0).sum() / len(
        labels_true
    )


def matched(labels_true, labels_pred):
    table = sk.cluster.contingency_matrix(labels_true, labels_pred)
    return table[linear_sum_assignment(table, maximize=True)].sum() / len(labels_true)


def dunn(X, labels):  # noqa: N803
    apart = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=2))
    same = labels[:, None] == labels[None]
    return apart[~same].min() / apart[same].max()


def unshifted(reference):
    """Return a reference for points moved by 2**20, whose own rounding it is spared."""
    return lambda X, labels: reference(X - 2.0**20, labels)  # noqa: N803


def simplified_silhouette(metric):
    def reference(X, labels):  # noqa: N803
        apart = sk.pairwise_distances(X, CENTROIDS, metric=metric)
        own = apart[np.arange(len(X)), labels]
        apart[np.arange(len(X)), labels] = np.inf
        other = apart.min(axis=1)
        values = (other - own) / np.maximum(own, other)
        return np.where(np.bincount(labels)[labels] > 1, values, 0.0).mean()

    return reference


def davies_bouldin(X, labels, centroids=None):  # noqa: N803
    of = np.unique(labels)
    if centroids is None:
        centroids = np.array([X[labels == k].mean(axis=0) for k in of])
    spread = [
        np.sqrt(((X[labels == k] - centroid) ** 2).sum(axis=1)).mean()
        for k, centroid in zip(of, centroids, strict=True)
    ]
    worst = np.zeros(len(of))
    for i, j in itertools.permutations(range(len(of)), 2):
        apart = np.linalg.norm(centroids[i] - centroids[j])
        worst[i] = max(worst[i], (spread[i] + spread[j]) / apart)
    return worst.mean()


def davies_bouldin_of_centroids(X, labels):  # noqa: N803
    return davies_bouldin(X, labels, CENTROIDS)


def same(reference, **parameters):
    return lambda labels_true, labels_pred: reference(labels_true, labels_pred, **parameters)


AVERAGES = ("arithmetic", "geometric", "min", "max")
EDGES = (
    one_cluster_each,
    one_true_cluster,
    one_predicted_cluster,
    every_row_its_own_cluster,
    own_clusters_predicted,
)
SCIKIT = [
    (sm.RandIndex(), sk.rand_score),
    (sm.AdjustedRandIndex(), sk.adjusted_rand_score),
    (sm.FowlkesMallows(), sk.fowlkes_mallows_score),
    (sm.MutualInfo(), sk.mutual_info_score),
    (sm.NormalizedMutualInfo(), sk.normalized_mutual_info_score),
    (sm.AdjustedMutualInfo(), sk.adjusted_mutual_info_score),
    (sm.Homogeneity(), sk.homogeneity_score),
    (sm.Completeness(), sk.completeness_score),
    (sm.VMeasure(), sk.v_measure_score),
    (sm.Purity(), purity),
    (sm.ClusterAccuracy(), matched),
]
PLAIN = [
    (sm.PairJaccard(), pair_ratio(lambda tp, fp, fn: tp / (tp + fp + fn))),
    (sm.PairPrecision(), pair_ratio(lambda tp, fp, fn: tp / (tp + fp))),
    (sm.PairRecall(), pair_ratio(lambda tp, fp, fn: tp / (tp + fn))),
    (sm.PairFBeta(), pair_ratio(lambda tp, fp, fn: 2 * tp / (2 * tp + fp + fn))),
    (sm.PairFBeta(beta=0.5), pair_ratio(lambda tp, fp, fn: 5 * tp / (5 * tp + 4 * fp + fn))),
    (sm.VMeasure(beta=2.0), same(sk.v_measure_score, beta=2.0)),
    *(
        (
            sm.NormalizedMutualInfo(average=average),
            same(sk.normalized_mutual_info_score, average_method=average),
        )
        for average in AVERAGES[1:]
    ),
    *(
        (
            sm.AdjustedMutualInfo(average=average),
            same(sk.adjusted_mutual_info_score, average_method=average),
        )
        for average in AVERAGES[1:]
    ),
]
INTERNAL = [
    (sm.CalinskiHarabasz(), sk.calinski_harabasz_score),
    (sm.DaviesBouldin(), sk.davies_bouldin_score),
    (sm.Silhouette(), sk.silhouette_score),
    (
        sm.Silhouette(metric="sqeuclidean"),
        lambda X, labels: sk.silhouette_score(X, labels, metric="sqeuclidean"),  # noqa: N803
    ),
    (sm.DunnIndex(), dunn),
]
DISTANCES = [
    (
        sm.Silhouette(metric=metric),
        lambda X, labels, metric=metric: sk.silhouette_score(X, labels, metric=metric),  # noqa: N803
    )
    for metric in (
        "cosine", "correlation", "manhattan", "chebyshev", "canberra", "braycurtis", "hamming"
    )
]  # fmt: skip
WHY = "both are differences of sums of logarithms"

ORACLES = [
    *(
        Oracle(metric, rows, reference, abs=1e-12, why=WHY)
        for metric, reference in SCIKIT
        for rows in (labelings, independent_labelings, *EDGES)
    ),
    *(Oracle(metric, labelings, reference, abs=1e-12, why=WHY) for metric, reference in PLAIN),
    Oracle(
        sm.PairConfusionMatrix(),
        labelings,
        pair_confusion_matrix,
    ),
    *(
        Oracle(metric, rows, reference)
        for metric, reference in INTERNAL
        for rows in (points, points_with_copies)
    ),
    *(Oracle(metric, points, reference) for metric, reference in DISTANCES),
    *(
        Oracle(metric, points_with_copies, reference)
        for metric, reference in DISTANCES
        if metric.metric in {"manhattan", "chebyshev", "canberra", "hamming"}
    ),
    # scikit-learn puts a single point 1e-8 away from itself as its centroid.
    *(
        Oracle(metric, points_with_single_ones, reference)
        for metric, reference in ((sm.Silhouette(), sk.silhouette_score), (sm.DunnIndex(), dunn))
    ),
    Oracle(sm.DaviesBouldin(), points_with_single_ones, davies_bouldin),
    *(
        Oracle(metric, points_far_away, unshifted(reference), rel=1e-8, why="moving them rounds")
        for metric, reference in INTERNAL
    ),
    *(
        Oracle(
            sm.Silhouette(centroids=CENTROIDS, metric=metric), points, simplified_silhouette(metric)
        )
        for metric in ("euclidean", "sqeuclidean")
    ),
    Oracle(sm.DaviesBouldin(centroids=CENTROIDS), points, davies_bouldin_of_centroids),
]
