"""Silhouettes of points by every distance: of each point, of copies, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sklearn.metrics as sk

import streammetrics as sm

RNG = np.random.default_rng(5)
LABELS = RNG.integers(0, 4, 90)
POINTS = RNG.normal(size=(90, 3)).round(1) + LABELS[:, None]


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine", "chebyshev"])
def test_those_of_points_are_silhouette_samples(metric):
    names = np.array(["d", "a", "c", "b"])[LABELS]
    silhouette = sm.Silhouette(metric=metric)
    silhouette.update(POINTS[:50], names[:50]).update(POINTS[50:], names[50:])
    order = RNG.permutation(90)
    expected = sk.silhouette_samples(POINTS, names, metric=metric)[order]
    found = silhouette.per_point(POINTS[order], names[order])
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_points_that_are_not_there_have_none():
    silhouette = sm.Silhouette().update([[0.0], [1.0], [4.0], [5.0]], [0, 0, 1, 1])
    found = silhouette.per_point([[0.0], [2.0], [5.0], [4.0]], [0, 0, 7, 1])
    assert np.isnan(found).tolist() == [False, True, True, False]
    alone = sm.Silhouette().update([[0.0], [1.0]], [0, 0])
    assert np.isnan(alone.per_point([[0.0]], [0])).all()
    assert np.isnan(alone.per_point([1.0], [0])).all()
    with pytest.raises(ValueError, match="with centroids none is"):
        sm.Silhouette(centroids=[[0.0], [1.0]]).per_point([[0.0]], [0])


def test_a_point_without_a_direction_is_apart_from_all():
    alike = [[0.1, 0.1, 0.1], [0.0, 1.0, 2.0], [0.0, 2.0, 4.0], [3.0, 1.0, 2.0]]
    of_alike = sm.Silhouette(metric="correlation").update(alike, [0, 0, 1, 1])
    assert of_alike.per_point(alike[:1], [0]).tolist() == [0.0]
    points, labels = [[0.0, 0.0], [1.0, 1.0], [2.0, 0.0], [1.0, 0.0]], [0, 0, 1, 1]
    for metric in ("cosine", "manhattan"):
        expected = sk.silhouette_score(points, labels, metric=metric)
        assert sm.Silhouette(metric=metric).update(points, labels).compute() == pytest.approx(
            expected, abs=1e-14
        )


def test_points_without_a_direction_are_apart_from_each_other(monkeypatch):
    points = [[0.0, 0.0, 0.0]] * 2 + [[1.0, 2.0, 3.0]] * 2
    for metric in ("cosine", "correlation"):
        silhouette = sm.Silhouette(metric=metric).update(points, [0, 0, 1, 1])
        assert silhouette.compute() == 0.5
        assert silhouette.per_point(points, [0, 0, 1, 1]).tolist() == [0.0, 0.0, 1.0, 1.0]
    monkeypatch.setattr("streammetrics.core.tuning.MEAN_DISTANCES", 1000)
    rng = np.random.default_rng(3)
    table = rng.integers(-1, 2, (900, 3)).astype(float) * 1e200
    labels = rng.integers(0, 4, 900)
    assert (table == 0).all(axis=1).sum() > 8
    expected = sk.silhouette_score(np.sign(table), labels, metric="cosine")
    found = sm.Silhouette(metric="cosine").update(table, labels).compute()
    assert found == pytest.approx(expected, abs=1e-13)


def test_points_that_are_infinitely_far_count_as_in_scikit_learn():
    points, labels = [[0.1, -0.7], [1.1, 0.9], [-1.1, -0.9]], [0, 1, 0]  # the last two are opposite
    metric = sm.Silhouette(metric="braycurtis").update(points, labels)
    expected = sk.silhouette_score(points, labels, metric="braycurtis")
    assert metric.compute() == pytest.approx(expected, abs=1e-15)


def test_centroids_take_euclidean_distances():
    with pytest.raises(ValueError, match="'euclidean' or 'sqeuclidean' with centroids"):
        sm.Silhouette(metric="cosine", centroids=[[0.0], [1.0]])


def test_a_sample_is_within_what_is_certain():
    metric = sm.Silhouette(metric="manhattan", max_points=20).update(POINTS, LABELS)
    with pytest.warns(sm.EstimateWarning, match="Silhouette is an estimate"):
        value = metric.compute()
    assert metric.bounds().low <= value <= metric.bounds().high
    assert math.isfinite(value)
