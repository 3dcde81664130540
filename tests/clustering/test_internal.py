"""Clusterings judged by their points: numerics, given centroids, degenerate and bad input."""

from __future__ import annotations

import math
import tracemalloc
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk
from thinning import some

import streammetrics as sm
from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.statistics.points import Cloud, lengths, nearest_and_farthest, silhouettes
from streammetrics.testing import check_laws

INTERNAL = [sm.CalinskiHarabasz, sm.DaviesBouldin, sm.Silhouette, sm.DunnIndex]
CENTROIDS = [[0.0, 0.0], [5.0, 1.0], [0.0, 6.0]]
OF_CENTROIDS = [
    sm.DaviesBouldin(centroids=CENTROIDS),
    sm.Silhouette(centroids=CENTROIDS),
    sm.Silhouette(centroids=CENTROIDS, metric="sqeuclidean"),
]


def blobs(seed, n, width=2, clusters=3, scale=4.0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, clusters, n)
    return rng.normal(size=(n, width)) + scale * rng.normal(size=(clusters, width))[codes], codes


@pytest.mark.parametrize("metric", INTERNAL)
@pytest.mark.parametrize("size", [1, 2, 3, 20])
def test_clusters_named_by_booleans_are_0_and_1(metric, size):
    points, codes = blobs(3, 20, clusters=2)
    by_boolean, by_integer = metric(), metric()
    for at in range(0, 20, size):
        rows = slice(at, at + size)
        by_boolean.update(points[rows], codes[rows] == 1)
        by_integer.update(points[rows], codes[rows])
        by_boolean.to_bytes()  # so that the statistic takes each batch by itself
    assert by_boolean.compute() == by_integer.compute()
    assert by_boolean.n_rows == 20


def exact_calinski_harabasz(points, codes):
    rows = [[Fraction(x) for x in point] for point in points.tolist()]
    n, width, of = len(rows), points.shape[1], sorted(set(codes.tolist()))
    mean = [sum(row[j] for row in rows) / n for j in range(width)]
    between = within = Fraction(0)
    for k in of:
        mine = [row for row, code in zip(rows, codes.tolist(), strict=True) if code == k]
        centre = [sum(row[j] for row in mine) / len(mine) for j in range(width)]
        between += len(mine) * sum((c - m) ** 2 for c, m in zip(centre, mean, strict=True))
        within += sum((x - c) ** 2 for row in mine for x, c in zip(row, centre, strict=True))
    if not within or len(of) < 2 or len(of) == n:
        return math.nan
    try:
        return float(between / (len(of) - 1) / (within / (n - len(of))))
    except OverflowError:
        return math.inf


hostile = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, -0.0, 5e-324, 1e308, -1e308, 1.0, 1.0 + 2**-52, 1e16, 2.0**-60]),
)


@given(st.lists(st.tuples(hostile, hostile, st.integers(0, 2)), min_size=2, max_size=25))
@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
def test_calinski_harabasz_is_correctly_rounded(rows):
    table = np.array([row[:2] for row in rows])
    codes = np.array([row[2] for row in rows])
    value = sm.CalinskiHarabasz().update(table, codes).compute()
    expected = exact_calinski_harabasz(table, codes)
    assert value == pytest.approx(expected, rel=1e-15, nan_ok=True)


@given(st.lists(st.tuples(hostile, hostile, st.integers(0, 3)), min_size=1, max_size=40))
def test_cluster_sums_are_exact(rows):
    points, codes = np.array([row[:2] for row in rows]), np.array([row[2] for row in rows])
    sums = ExactSum.grouped(codes, 4, points)
    for k in range(4):
        for j in range(2):
            exact = sum((Fraction(row[j]) for row in rows if row[2] == k), Fraction(0))
            assert sums[k, j].fraction() == exact


@pytest.mark.parametrize(("width", "clusters"), some(product([3, 1, 700], [40, 1, 5000])))
def test_cluster_sums_of_many_blocks_are_exact(width, clusters):
    rng = np.random.default_rng(width)
    n = 70_000 if width < 10 else 300
    points = rng.integers(-(2**53), 2**53, (n, width)).astype(float)
    points *= 2.0 ** rng.integers(-3, 3, (n, 1))
    codes = rng.integers(0, clusters, n)
    sums = ExactSum.grouped(codes, clusters, points)
    totals = np.zeros((clusters, width), object)
    np.add.at(totals, codes, (points * 8).astype(object).astype(int).astype(object))
    found, exponent = sums.integers()
    assert (found * 2 ** (exponent + 3 + 64) == totals * 2**64).all()


@pytest.mark.parametrize("offset", [0.0, 1e9, -3e11])
def test_far_from_the_origin_nothing_is_lost(offset):
    # A grid that survives the shift exactly.
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 3, 300)
    points = rng.integers(0, 64, (300, 2)) / 16 + 5.0 * codes[:, None]
    for metric in INTERNAL:
        near = metric().update(points, codes).compute()
        assert metric().update(points + offset, codes).compute() == pytest.approx(near, rel=1e-12)


@pytest.mark.parametrize("scale", [2.0**-1000, 2.0**-500, 2.0**500, 2.0**1000])
def test_scale_does_not_matter(scale):
    points, codes = blobs(3, 200)
    for metric in INTERNAL:
        one = metric().update(points, codes).compute()
        assert metric().update(points * scale, codes).compute() == pytest.approx(one, rel=1e-12)


def plain_silhouettes(points, codes, copies):
    rows, labels = np.repeat(points, copies, axis=0), np.repeat(codes, copies)
    apart = np.sqrt(((rows[:, None] - rows[None]) ** 2).sum(axis=2))
    names, own = np.unique(labels, return_inverse=True)
    members = own[:, None] == np.arange(len(names))
    total, size = apart @ members, members.sum(axis=0)
    a = total[members] / np.maximum(size[own] - 1, 1)
    b = np.where(members, np.inf, total / size).min(axis=1)
    larger = np.maximum(a, b)
    values = np.where((size[own] > 1) & (larger > 0), (b - a) / np.where(larger > 0, larger, 1), 0)
    return values[np.cumsum(copies) - 1]


@pytest.mark.parametrize("clusters", [2, 5, 100])
@pytest.mark.parametrize("width", [1, 2, 20])
def test_silhouettes_in_blocks_are_the_plain_ones(monkeypatch, clusters, width):
    monkeypatch.setattr("streammetrics.core.tuning.MEAN_DISTANCES", 1000)
    rng = np.random.default_rng(clusters)
    codes = np.concatenate([np.arange(clusters), rng.integers(0, clusters, 400)])
    points = rng.normal(size=(len(codes), width)) * 10.0 ** rng.integers(-6, 2, (len(codes), 1))
    points[5::50] = points[4]
    copies = rng.integers(1, 4, len(codes))
    cloud = Cloud.of(points, codes, copies)
    found = np.empty(len(codes))
    found[cloud.order] = silhouettes(cloud, clusters, "euclidean")
    np.testing.assert_allclose(found, plain_silhouettes(points, codes, copies), atol=1e-11)


@pytest.mark.parametrize(
    ("layout", "clusters"), some(product(["blobs", "grid", "shells", "copies"], [1, 2, 40, 900]))
)
def test_nearest_and_farthest_are_those_of_all_pairs(clusters, layout):
    rng = np.random.default_rng(clusters)
    codes = np.sort(rng.integers(0, clusters, 1500))
    codes = np.unique(codes, return_inverse=True)[1]
    points = rng.normal(size=(1500, 3))
    if layout == "blobs":
        points += 9.0 * rng.normal(size=(clusters, 3))[codes]
    elif layout == "grid":
        points = rng.integers(0, 30, (1500, 3)).astype(float)
    elif layout == "shells":
        points *= (1.0 + codes)[:, None] / lengths(points)[:, None]
    else:
        points = np.repeat(points[::5], 5, axis=0)
    cloud = Cloud.of(points, codes, np.ones(1500, np.int64))
    points, codes = cloud.points, cloud.codes
    apart = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2))
    same = codes[:, None] == codes
    near, far = nearest_and_farthest(cloud)
    assert near == pytest.approx(apart[~same].min(initial=math.inf), rel=1e-12)
    assert far == pytest.approx(apart[same].max(), rel=1e-12)


def test_memory_stays_far_below_all_pairs():
    points, codes = blobs(4, 6000, width=8)
    metrics = [sm.Silhouette().update(points, codes), sm.DunnIndex().update(points, codes)]
    for metric in metrics:
        metric.to_bytes()
        tracemalloc.start()
        metric.compute()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 20e6  # 6000 x 6000 distances are 288 MB


def test_per_cluster_is_what_the_mean_is_of():
    points, codes = blobs(5, 300)
    names = np.array(["left", "up", "right"])[codes]
    silhouette = sm.Silhouette().update(points, names)
    values = silhouette.per_cluster()
    samples = sk.silhouette_samples(points, names)
    assert list(values) == ["left", "right", "up"]
    for name, value in values.items():
        assert value == pytest.approx(samples[names == name].mean(), rel=1e-12)
    worst = sm.DaviesBouldin().update(points, names)
    assert list(worst.per_cluster()) == ["left", "right", "up"]
    assert np.mean(list(worst.per_cluster().values())) == pytest.approx(worst.compute())
    given_centroids = OF_CENTROIDS[0].copy().update(points[codes > 0], codes[codes > 0])
    assert list(given_centroids.per_cluster()) == [1, 2]


def test_fitted_centroids_give_the_index_itself():
    points, codes = blobs(6, 500)
    means = np.array([points[codes == k].mean(axis=0) for k in range(3)])
    fitted = sm.DaviesBouldin(centroids=means).update(points, codes)
    assert fitted.compute() == pytest.approx(sk.davies_bouldin_score(points, codes), rel=1e-12)
    assert fitted.exact
    assert fitted.nbytes < 1000


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
def test_silhouettes_of_centroids_compare_the_distances_to_them(metric):
    points, codes = blobs(6, 60)
    each = sm.Silhouette(centroids=CENTROIDS, metric=metric)
    far = np.linalg.norm(points[:, None] - np.array(CENTROIDS), axis=2)
    far = far if metric == "euclidean" else far**2
    own = far[np.arange(len(codes)), codes]
    other = np.where(np.arange(len(CENTROIDS)) == codes[:, None], np.inf, far).min(axis=1)
    expected = ((other - own) / np.maximum(own, other)).mean()
    assert each.update(points, codes).compute() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("metric", OF_CENTROIDS, ids=repr)
@pytest.mark.parametrize("width", [2])
def test_laws_hold_for_given_centroids(metric, width):
    rng = np.random.default_rng(7)
    points = rng.normal(size=(80, width)) * 10.0 ** rng.integers(-160, 140, (80, 1))
    points[::9] = 0.0
    check_laws(metric, {"X": points, "labels": rng.integers(0, 3, 80)}, seed=2)


@pytest.mark.parametrize("wide", [1, 3, 9, 33])
def test_value_of_a_point_does_not_depend_on_its_batch(wide):
    points, codes = blobs(8, 5000, width=wide, clusters=4)
    centroids = np.random.default_rng(1).normal(size=(4, wide)).tolist()
    for metric in (sm.Silhouette(centroids=centroids), sm.DaviesBouldin(centroids=centroids)):
        whole, single = metric.copy().update(points, codes), metric.copy()
        for start in range(0, 5000, 1250):
            part = slice(start, start + 1250)
            single.merge(metric.copy().update(points[part], codes[part]))
        one = sm.merge([metric.copy().update(points[i : i + 1], codes[i]) for i in range(40)])
        assert single.to_bytes() == whole.to_bytes()
        assert one.to_bytes() == metric.copy().update(points[:40], codes[:40]).to_bytes()


@pytest.mark.parametrize("metric", [*(m() for m in INTERNAL), *OF_CENTROIDS], ids=repr)
def test_fewer_than_two_clusters_are_undefined(metric):
    with pytest.warns(sm.UndefinedMetricWarning, match="no rows"):
        assert math.isnan(metric.copy().compute())
    with pytest.warns(sm.UndefinedMetricWarning, match="fewer than two clusters"):
        assert math.isnan(metric.copy().update([[0.0, 1.0], [2.0, 3.0]], [1, 1]).compute())
    with pytest.warns(sm.UndefinedMetricWarning, match="fewer than two clusters"):
        assert math.isnan(metric.copy().update([[0.0, 1.0], [2.0, 3.0]], [1, 0]).compute())
    single = metric.copy().update([[0.0, 1.0], [2.0, 3.0], [2.0, 4.0]], [1, 0, 0])
    assert math.isfinite(single.compute())


def test_single_points_have_silhouette_zero():
    metric = sm.Silhouette().update([[0.0], [1.0], [9.0]], [0, 0, 1])
    assert metric.per_cluster()[1] == 0.0
    assert metric.compute() == sk.silhouette_score([[0.0], [1.0], [9.0]], [0, 0, 1])


def test_coincident_centroids():
    points = [[-1.0], [1.0], [-2.0], [2.0]]
    with pytest.warns(sm.UndefinedMetricWarning, match="fewer than two clusters with distinct"):
        assert math.isnan(sm.DaviesBouldin().update(points, [0, 0, 1, 1]).compute())
    rows, labels = [*points, [7.0], [9.0]], [0, 0, 1, 1, 2, 2]
    expected = sk.davies_bouldin_score(rows, labels)
    assert sm.DaviesBouldin().update(rows, labels).compute() == pytest.approx(expected)


def test_points_on_their_centroids():
    points, labels = [[0.0, 1.0], [0.0, 1.0], [3.0, 3.0]], [0, 0, 1]
    assert sm.DaviesBouldin().update(points, labels).compute() == 0.0
    assert sm.Silhouette().update(points, labels).compute() == pytest.approx(2 / 3)
    for metric in (sm.CalinskiHarabasz(), sm.DunnIndex()):
        with pytest.warns(sm.UndefinedMetricWarning, match="one distinct point only"):
            assert math.isnan(metric.update(points, labels).compute())


@pytest.mark.parametrize("metric", [*(m() for m in INTERNAL), *OF_CENTROIDS], ids=repr)
@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"X": [[0.0, 1.0, 2.0]], "labels": [0]}, "columns"),
        ({"X": [0.0, 1.0], "labels": [0, 1]}, "columns"),
        ({"X": [[0.0, math.nan]], "labels": [0]}, "X is missing"),
        ({"X": [[0.0, math.inf]], "labels": [0]}, "X is infinite"),
        ({"X": [["a", "b"]], "labels": [0]}, "X"),
        ({"X": [[0.0, 1.0]], "labels": [0, 1]}, "differ in length"),
        ({"X": [[0.0, 1.0]] * 2, "labels": [0, "a"]}, "strings and numbers"),
        ({"X": [[0.0, 1.0]], "labels": ["a"]}, "strings"),
        ({"X": [[0.0, 1.0]], "labels": [0.5]}, "not a label"),
        ({"X": [[0.0, 1.0]], "labels": [[0, 1]]}, "one label a row"),
    ],
)
def test_bad_points_change_nothing(metric, columns, message):
    metric = metric.copy().update([[0.0, 1.0], [5.0, 5.0], [5.0, 6.0]], [0, 1, 1])
    before = metric.to_bytes()
    with pytest.raises(sm.InvalidBatchError, match=message):
        metric.update(**columns)
    assert metric.to_bytes() == before


@pytest.mark.parametrize("metric", OF_CENTROIDS, ids=repr)
def test_labels_name_centroids(metric):
    filled = metric.copy().update([[0.0, 1.0]], [2])
    before = filled.to_bytes()
    with pytest.raises(sm.InvalidBatchError, match="not one of the labels"):
        filled.update([[0.0, 1.0], [0.0, 2.0]], [0, 3])
    with pytest.raises(sm.InvalidBatchError, match="X has 3 columns, the centroids 2"):
        filled.update([[0.0, 1.0, 2.0]], [0])
    with pytest.raises(sm.InvalidBatchError, match="X is outside"):
        filled.update([[0.0, 1e200]], [0])
    assert filled.to_bytes() == before


@pytest.mark.parametrize("metric", [sm.DaviesBouldin, sm.Silhouette])
@pytest.mark.parametrize(
    "centroids",
    [[0.0, 1.0], [[0.0], [1.0, 2.0]], [[[0.0]]], [], [[]], [["a"]], [[math.nan], [0.0]], [[1e200]]],
)
def test_bad_centroids_are_refused(metric, centroids):
    with pytest.raises(ValueError, match="centroids"):
        metric(centroids=centroids)


def test_configurations_of_centroids():
    plain = sm.DaviesBouldin(centroids=[[0, 0], [5, 1]])
    array = sm.DaviesBouldin(centroids=np.array([[0.0, -0.0], [5.0, 1.0]], np.float32))
    assert plain == array
    assert plain.config == array.config
    with pytest.raises(sm.IncompatibleMetricsError, match="centroids is"):
        plain.merge(sm.DaviesBouldin(centroids=[[0, 0], [5, 2]]))
    with pytest.raises(ValueError, match="at least two"):
        sm.Silhouette(centroids=[[0.0]])


def test_missing_values_can_be_omitted():
    points, codes = blobs(9, 60)
    holes = np.vstack([points, [[math.nan, 1.0], [2.0, math.nan]]])
    for metric in INTERNAL:
        filled = metric(nan_policy="omit").update(holes, [*codes.tolist(), 0, 1])
        assert filled.n_omitted == 2
        assert filled.compute() == metric().update(points, codes).compute()
