"""Distances of two samples: bounds past the budget, infinities, what is undefined or refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from oracles import drift as oracle
from thinning import some

import streammetrics as sm

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
    with pytest.raises(sm.InvalidBatchError, match="third label.*two samples are compared"):
        sm.KSDistance().update([0, 1, 2], [0.1, 0.2, 0.3])
    with pytest.raises(sm.InvalidBatchError, match="current is 1: say which .*current='b'"):
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
