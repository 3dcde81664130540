"""Clusters may be called anything: not a bit of what judges them depends on their names."""

import numpy as np
import pytest

import streammetrics as sm

CENTROIDS = np.array([[0.0, 0.3], [1.1, -0.7], [0.4, 0.9], [-1.3, 0.2]])
METRICS = {
    "silhouette": sm.Silhouette(),
    "squared": sm.Silhouette(metric="sqeuclidean"),
    "davies-bouldin": sm.DaviesBouldin(),
    "calinski-harabasz": sm.CalinskiHarabasz(),
    "dunn": sm.DunnIndex(),
}


def judged(points, labels):
    return sm.MetricSet(METRICS).update(X=points, labels=labels).compute()


@pytest.mark.parametrize("names", ["integers", "strings"])
def test_values_are_the_same_bits_under_other_names(names):
    rng = np.random.default_rng(7)
    for _ in range(60):
        n, clusters = int(rng.integers(8, 60)), int(rng.integers(2, 7))
        points = rng.normal(size=(n, int(rng.integers(1, 5)))) * 10.0 ** rng.integers(-3, 4)
        points = points[rng.integers(0, n, n)]  # some points several times
        codes = np.concatenate([np.arange(clusters), rng.integers(0, clusters, n - clusters)])
        others = rng.permutation(1000)[:clusters]
        renamed = others if names == "integers" else np.array([f"c{name}" for name in others])
        assert judged(points, codes) == judged(points, renamed[codes])


def test_clusters_larger_than_a_block_are_the_same_bits_under_other_names():
    rng = np.random.default_rng(8)
    points, codes = rng.normal(size=(900, 3)), rng.integers(0, 3, 900)
    first = judged(points, codes)
    for names in ([2, 0, 1], [1, 2, 0], [7, 3, -5]):
        assert judged(points, np.array(names)[codes]) == first


def test_values_by_cluster_keep_their_names():
    points = [[0.0], [1.0], [4.0], [6.0], [20.0], [20.5]]
    codes = np.array([0, 0, 1, 1, 2, 2])
    for metric in (sm.Silhouette(), sm.DaviesBouldin()):
        plain = metric.copy().update(points, codes).per_cluster()
        renamed = metric.copy().update(points, np.array([5, 9, 1])[codes]).per_cluster()
        assert renamed == {1: plain[2], 5: plain[0], 9: plain[1]}


@pytest.mark.parametrize("metric", [sm.Silhouette, sm.DaviesBouldin])
def test_given_centroids_may_be_in_any_order(metric):
    rng = np.random.default_rng(9)
    points, codes = rng.normal(size=(200, 2)), rng.integers(0, 4, 200)
    first = metric(centroids=CENTROIDS).update(points, codes).compute()
    for _ in range(20):
        order = rng.permutation(4)
        moved = metric(centroids=CENTROIDS[order])
        assert moved.update(points, np.argsort(order)[codes]).compute() == first
