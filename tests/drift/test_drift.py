"""Distances of two samples: bounds past the budget, infinities, what is undefined or refused."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from kinds.rows import statistics_of
from oracles import drift as oracle
from scipy.spatial.distance import jensenshannon
from thinning import some

import streammetrics as sm
from streammetrics.metrics.scores.base import corners, staircases

DISTANCES = (
    sm.KSDistance,
    sm.Wasserstein,
    sm.PopulationStability,
    sm.JensenShannon,
)
EDGED = [
    (cls, config)
    for cls in DISTANCES
    for config in ({}, *([{"edges": [-0.5, 0.25, 0.3]}, {"bins": 3}] * hasattr(cls, "edges")))
]


def samples(rng, n):
    sample = rng.integers(0, 2, n)
    return sample, rng.choice([rng.normal(0, 1, n), rng.normal(0, 1, n).round(1)]) + 0.3 * sample


@pytest.mark.parametrize(("cls", "config"), some(EDGED, every=2), ids=str)
@pytest.mark.parametrize("weighted", some([True, False], every=2))
def test_bounds_hold_the_exact_value_whatever_the_budget(cls, config, weighted):
    rng = np.random.default_rng(5)
    narrow = 0
    for _ in range(60):
        sample, values = samples(rng, int(rng.integers(8, 60)))
        sample[:2] = 0, 1
        weight = rng.exponential(size=values.size) if weighted else None
        exact = cls(**config).update(sample, values, sample_weight=weight)
        rough = cls(**config, max_bins=int(rng.integers(2, 24)))
        rough.update(sample, values, sample_weight=weight)
        low, high = rough.bounds()
        assert low <= exact.compute() * (1 + 1e-12)
        assert exact.compute() <= high * (1 + 1e-12)
        assert low <= rough.compute() <= high
        assert low == high or not rough.exact
        narrow += low < high < math.inf
    assert narrow or cls is sm.PopulationStability


@pytest.mark.parametrize("cls", DISTANCES)
def test_bounds_are_narrow_where_cells_are(cls):
    rng = np.random.default_rng(6)
    sample = rng.integers(0, 2, 20_000)
    values = rng.normal(0.2 * sample, 1)
    exact = cls().update(sample, values)
    rough = cls(max_bins=4096).update(sample, values)
    low, high = rough.bounds()
    assert low <= exact.compute() <= high
    assert 0 < high - low < 0.02
    assert exact.bounds() == (exact.compute(), exact.compute())


def test_infinite_values_are_infinitely_far_only_where_shares_of_them_differ():
    inf = math.inf
    assert sm.Wasserstein().update([0, 1, 0, 1], [1.0, 2.0, inf, inf]).compute() == 0.5
    assert sm.Wasserstein().update([0, 1, 0, 1], [1.0, 2.0, 3.0, inf]).compute() == inf
    assert sm.Wasserstein().update([0, 1, 0, 1], [-inf, -inf, 3.0, 5.0]).compute() == 1.0


@pytest.mark.parametrize("cls", DISTANCES)
def test_one_sample_is_at_no_distance(cls):
    with pytest.warns(sm.UndefinedMetricWarning, match="is nan"):
        assert math.isnan(cls().update([1, 1], [0.5, 0.25]).compute())
    assert cls().update([0, 0, 1, 1], [2, 3, 3, 2]).compute() == 0


def test_a_bin_of_one_sample_is_infinitely_unstable_without_a_pseudo_count():
    rows = ([0, 0, 1, 1], [1.0, 2.0, 2.0, 2.0])
    assert sm.PopulationStability(bins=2).update(*rows).compute() == math.inf
    assert sm.PopulationStability(bins=2, pseudo_count=0.5).update(*rows).compute() < 2


def test_a_third_sample_and_a_table_of_values_are_refused():
    with pytest.raises(sm.InvalidBatchError, match="neither 0, 1 nor -1.*two samples are compared"):
        sm.KSDistance().update([0, 1, 2], [0.1, 0.2, 0.3])
    with pytest.raises(sm.InvalidBatchError, match="sample holds strings; say which .*current='b'"):
        sm.KSDistance().update(["a", "b"], [0.1, 0.2])
    with pytest.raises(sm.InvalidBatchError, match="one number a row"):
        sm.KSDistance().update([0, 1], [[0.1, 0.2], [0.3, 0.4]])
    with pytest.raises(ValueError, match="ascending finite numbers"):
        sm.JensenShannon(edges=[1.0, 1.0])


def test_metrics_of_one_set_share_a_histogram():
    suite = sm.MetricSet({cls.__name__: cls() for cls in DISTANCES})
    one = sm.KSDistance()
    rows = {"sample": [0, 1] * 50, "values": np.arange(100.0)}
    assert suite.update(rows).nbytes == one.update(**rows).nbytes


@pytest.mark.parametrize("rows", [oracle.two_samples, oracle.two_samples_weighted])
def test_pseudo_counts_are_added_to_each_bin_of_both_samples(rows):
    table = rows(np.random.default_rng(7), 50)
    for more in (0.5, 3.0):
        value = sm.PopulationStability(pseudo_count=more).update(**table).compute()
        assert value == pytest.approx(oracle.stability(pseudo_count=more)(**table))


GRID = [-0.5, 0.0, 0.5, 1.0, 2.0, 2.5]  # edges below, at, between and above the values 0, 1 and 2
EDGES = [list(edges) for n in (1, 2) for edges in itertools.combinations(GRID, n)]


def by_shares(cls, shares):
    """Return a distance from the shares of two samples in bins, by its formula."""
    p, q = shares
    if cls is sm.JensenShannon:
        return jensenshannon(p, q)
    both = (p > 0) & (q > 0)
    if ((p > 0) != (q > 0)).any():
        return math.inf
    return float(((p[both] - q[both]) * np.log(p[both] / q[both])).sum())


def in_bins(edges, values):
    """Return the shares in right-closed bins."""
    return np.bincount(np.searchsorted(edges, values), minlength=len(edges) + 1) / len(values)


@pytest.mark.parametrize("cls", some([sm.PopulationStability, sm.JensenShannon]))
def test_bins_with_edges_are_right_closed_wherever_edges_lie(cls):
    for edges in EDGES:
        for n in (1, 2):
            for reference, current in itertools.product(
                itertools.combinations_with_replacement([0.0, 1.0, 2.0], n), repeat=2
            ):
                metric = cls(edges=edges).update([0] * n + [1] * n, [*reference, *current])
                shares = [in_bins(edges, side) for side in (current, reference)]
                value = by_shares(cls, shares)
                assert metric.compute() == pytest.approx(value, abs=1e-12), (edges, shares)
                assert metric.bounds() == (metric.compute(), metric.compute())


@pytest.mark.parametrize("cls", [sm.PopulationStability, sm.JensenShannon])
def test_bounds_hold_every_arrangement_of_rows_within_their_cells(cls):
    rng = np.random.default_rng(8)
    rough = 0
    for edges in [*EDGES, [2.0, 3.0], [3.0, 4.0], [-2.0, -1.0]]:
        for _ in range(4):
            values = rng.integers(0, 4, 5).astype(float)
            sample = rng.permutation([0, 0, 0, 1, 1])
            metric = cls(edges=edges, max_bins=2).update(sample, values)
            low, high = metric.bounds()
            assert low <= metric.compute() <= high
            (stairs,) = staircases(statistics_of(metric)[0])
            cells = corners(stairs)
            places = []  # where each row may be: at the ends of its cell, or at an edge between
            for cell in range(cells.low.size):
                ends = cells.low[cell], cells.high[cell]
                span = {*ends, *(edge for edge in edges if ends[0] < edge < ends[1])}
                for label, mass in ((1, cells.tp), (0, cells.fp)):
                    places += [(label, span)] * int(mass[cell] - mass[cell + 1])
            labels = np.array([label for label, _ in places])
            for there in itertools.product(*(span for _, span in places)):
                rows = np.array(there)
                shares = [in_bins(edges, rows[labels == label]) for label in (1, 0)]
                value = by_shares(cls, shares)
                assert low - 1e-12 <= value <= high + 1e-12, (edges, cells, there)
            rough += not metric.exact
    assert rough > 20


def test_edges_of_any_type_are_one_configuration():
    for metric in (sm.PopulationStability, sm.JensenShannon):
        one, *others = (metric(edges=each) for each in ([1, 2], (1.0, 2.0), np.array([1, 2])))
        assert all(other == one for other in others)
    costs = ((0, 1), (5, 0)), np.array([[0.0, 1.0], [5.0, 0.0]])
    assert len({sm.BestThreshold(for_=each)._key for each in costs}) == 1
