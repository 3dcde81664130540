"""The canonical sample of points, and what stays certain of those left out."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kinds.rows import statistics_of
from thinning import some

import streammetrics as sm
from streammetrics.core.errors import StateFormatError
from streammetrics.statistics import points as points_rows
from streammetrics.statistics.centroids import ClusterSums
from streammetrics.statistics.points import PointSample
from streammetrics.testing import check_laws

SAMPLED = [sm.DaviesBouldin, sm.Silhouette, sm.DunnIndex]


def rows_of(rng, n, labels=4, width=2):
    codes = rng.integers(0, labels, n)
    return {"X": rng.integers(-3, 4, (n, width)) + 5.0 * codes[:, None], "labels": codes}


def sample_of(metric):
    return statistics_of(metric)[-1]


@pytest.mark.parametrize(("metric", "max_points"), some(product(SAMPLED, [2, 7, 30]), every=4))
def test_laws_hold_past_the_budget(metric, max_points):
    rng = np.random.default_rng(max_points)
    rows = rows_of(rng, 90)
    rows["labels"] = np.array(["one", "two", "three", "a longer one"])[rows["labels"]]
    rows["X"][::7] = -0.0
    check_laws(metric(max_points=max_points, seed=3), rows, seed=1)


@pytest.mark.long
@pytest.mark.parametrize("metric", some([*SAMPLED, sm.CalinskiHarabasz], every=2))
@given(
    st.lists(st.tuples(st.floats(-1e308, 1e308), st.integers(0, 3)), min_size=1, max_size=40),
    st.integers(2, 12),
    st.integers(0, 99),
)
def test_laws_hold_for_hostile_points(metric, rows, max_points, seed):
    points, labels = zip(*rows, strict=True)
    columns = {"X": np.array(points)[:, None], "labels": np.array(labels)}
    parameters = {} if metric is sm.CalinskiHarabasz else {"max_points": max_points}
    check_laws(metric(**parameters), columns, seed=seed, trials=1)


def test_an_estimate_lies_within_what_is_certain():
    # Two of four points are alone in their clusters, and one of them is left out of the sample.
    points, labels = [[0.0], [1.0], [0.0], [1.25]], [0, 2, 1, 2]
    silhouette = sm.Silhouette(max_points=3, seed=0).update(points, labels)
    with pytest.warns(sm.EstimateWarning, match="is an estimate"):
        value = silhouette.compute()
    low, high = silhouette.bounds()
    assert low <= value <= high < 0.75


@pytest.mark.parametrize("bits", [64, 3, 0])
def test_sample_is_the_smallest_hashes_with_multiplicities(monkeypatch, bits):
    # With few bits many different rows share a hash, and the rows themselves decide.
    mixed = points_rows.mixed
    mask = np.uint64(2**bits - 1)
    monkeypatch.setattr(points_rows, "mixed", lambda words: mixed(words) & mask)
    rng = np.random.default_rng(bits)
    columns = rows_of(rng, 400, width=1)
    counted = Counter(zip(columns["labels"].tolist(), columns["X"][:, 0].tolist(), strict=True))
    metric = sm.DunnIndex(max_points=9)
    for part in np.array_split(rng.permutation(400), 6):
        metric.update(columns["X"][part], columns["labels"][part]).to_bytes()
    rows = sample_of(metric).rows
    found = list(zip(rows.codes.tolist(), rows.points[:, 0].tolist(), strict=True))
    assert len(found) == 9
    assert [counted[row] for row in found] == rows.copies.tolist()
    whole = sm.DunnIndex(max_points=1000).update(**columns)
    assert found == list(
        zip(
            sample_of(whole).rows.codes[:9].tolist(),
            sample_of(whole).rows.points[:9, 0].tolist(),
            strict=True,
        )
    )


def test_hashes_spread_round_numbers():
    grid = np.stack(np.meshgrid(np.arange(-100.0, 100.0), np.arange(200.0)), axis=-1)
    hashes = points_rows.point_hashes(grid.reshape(-1, 2) + 0.0)
    assert len(np.unique(hashes)) == hashes.size


def test_seed_draws_another_sample_and_does_not_mix():
    columns = rows_of(np.random.default_rng(5), 300, width=3)
    one, two = (sm.Silhouette(max_points=20, seed=seed).update(**columns) for seed in (0, 1))
    assert not np.array_equal(sample_of(one).rows.points, sample_of(two).rows.points)
    with pytest.raises(sm.IncompatibleMetricsError, match="seed is 1 there and 0 here"):
        one.merge(two)


def test_copies_of_points_need_no_budget():
    columns = rows_of(np.random.default_rng(6), 50_000, width=1)
    metric = sm.Silhouette(max_points=100).update(**columns)
    assert metric.exact
    assert metric.n_rows == 50_000


@pytest.mark.parametrize("metric", SAMPLED)
def test_estimates_say_so_once(metric):
    columns = rows_of(np.random.default_rng(7), 300, width=3)
    estimated = metric(max_points=50).update(**columns)
    assert not estimated.exact
    with pytest.warns(sm.EstimateWarning, match=r"max_points=50.*bounds"):
        first = estimated.compute()
    assert estimated.compute() == first
    low, high = estimated.bounds()
    assert low <= first <= high


@pytest.mark.filterwarnings("ignore::streammetrics.EstimateWarning")
@pytest.mark.parametrize("metric", SAMPLED)
@pytest.mark.parametrize("seed", range(25))
def test_bounds_hold_the_value_of_all_points(metric, seed):
    rng = np.random.default_rng(seed)
    n, clusters = int(rng.integers(6, 60)), int(rng.integers(2, 5))
    codes = rng.integers(0, clusters, n)
    codes[:2] = [0, 1]
    spread = 10.0 ** rng.integers(-2, 2)
    points = rng.normal(size=(n, 2)) * spread + rng.normal(size=(clusters, 2))[codes] * 3 + 100
    whole = metric().update(points, codes)
    value = whole.compute()
    assert whole.bounds() == (value, value)
    for max_points in (2, 3, n // 2 + 1, n - 1):
        part = metric(max_points=max_points, seed=seed).update(points, codes)
        low, high = part.bounds()
        assert low <= value <= high
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sm.UndefinedMetricWarning)
            estimate = part.compute()
        assert math.isnan(estimate) or low <= estimate <= high


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::streammetrics.EstimateWarning")
def test_estimates_are_near():
    rng = np.random.default_rng(8)
    codes = rng.integers(0, 5, 20_000)
    points = rng.normal(size=(20_000, 3)) + 4.0 * rng.normal(size=(5, 3))[codes]
    for metric in (sm.Silhouette, sm.DaviesBouldin):
        whole, part = metric(), metric(max_points=2000)
        whole.update(points, codes)
        part.update(points, codes)
        assert part.compute() == pytest.approx(whole.compute(), rel=0.06)


@pytest.mark.parametrize("metric", SAMPLED)
@pytest.mark.parametrize("parameters", [{"max_points": 1}, {"seed": -1}, {"seed": 2**32}])
def test_parameters_are_checked(metric, parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        metric(**parameters)


def damaged(name, change):
    columns = rows_of(np.random.default_rng(9), 60, width=2)
    sample = sample_of(sm.DunnIndex(max_points=10).update(**columns))
    arrays = {key: array.copy() for key, array in sample.arrays().items()}
    arrays[name] = change(arrays[name])
    return arrays


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("labels", lambda a: a[::-1].copy()),
        ("labels", lambda a: a[:-1]),
        ("counts", lambda a: a - 10**6),
        ("counts", lambda a: a.astype(np.int32)),
        ("low", lambda a: a + 100.0),
        ("low", lambda a: a * np.nan),
        ("high", lambda a: a[:, :1]),
        ("codes", lambda a: a + 4),
        ("codes", lambda a: a - 1),
        ("codes", lambda a: a[:-1]),
        ("points", lambda a: a[::-1].copy()),
        ("points", lambda a: a * np.inf),
        ("points", lambda a: a.ravel()),
        ("copies", lambda a: a * 0),
        ("copies", lambda a: a + 10**6),
    ],
)
def test_damaged_samples_are_refused(name, change):
    sample = PointSample(max_points=10)
    with pytest.raises(StateFormatError, match="point|array '|cluster|coordinate|labels"):
        sample.restore(damaged(name, change))


def test_truncated_samples_are_refused():
    arrays = damaged("labels", lambda a: a)
    arrays.update({name: arrays[name][:-1] for name in ("codes", "points", "copies")})
    with pytest.raises(StateFormatError, match="lacks points"):
        PointSample(max_points=10).restore(arrays)


def test_sums_and_points_of_other_clusters_are_no_state():
    rng = np.random.default_rng(10)
    few, many = (sm.DaviesBouldin().update(**rows_of(rng, n)) for n in (40, 60))
    for one, other in ((few, many), (many, few)):
        with pytest.raises(StateFormatError, match="not of the same clusters"):
            few.readout(statistics_of(one)[0], statistics_of(other)[1])


def test_sums_of_a_negative_width_are_refused():
    arrays = ClusterSums().arrays()
    with pytest.raises(StateFormatError, match="is not a number of columns"):
        ClusterSums().restore({**arrays, "width": np.array([-1])})
