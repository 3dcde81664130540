"""Weights that are whole numbers: in files they are counts, and a row of weight 3 is three rows."""

from __future__ import annotations

import numpy as np
import pytest
from fuzz.states import parts
from oracles.table import ORACLES, distinct, thinned

import streammetrics as sm
from streammetrics.testing.laws import same_value

WEIGHTED = [
    oracle
    for oracle in distinct(ORACLES, readouts=True)
    if "sample_weight" in oracle.rows(np.random.default_rng(0), 8)
]


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
@pytest.mark.parametrize("oracle", thinned(WEIGHTED, columns=False))
@pytest.mark.parametrize("weights", [(1.0, 2.0, 3.0), (0.5, 1.5)], ids=["whole", "halves"])
def test_a_state_from_bytes_reads_as_the_one_that_was_written(oracle, weights):
    rng = np.random.default_rng(1)
    rows = dict(oracle.rows(rng, 40))
    rows["sample_weight"] = rng.choice(weights, len(rows["sample_weight"]))
    metric = oracle.metric.copy().update(**rows)
    opened = sm.from_bytes(metric.to_bytes())
    assert same_value(metric.compute(), opened.compute())
    assert same_value(metric.bounds(), opened.bounds())


def repeated(rows, times):
    """Return each row as often as it weighs."""
    return {
        name: np.repeat(column, times, axis=0)
        if isinstance(column, np.ndarray)
        else [one for one, count in zip(column, times, strict=True) for _ in range(count)]
        for name, column in rows.items()
    }


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
@pytest.mark.parametrize("oracle", thinned(WEIGHTED, columns=False))
def test_a_row_of_weight_3_is_three_rows_but_for_their_number_and_squares_of_weights(oracle):
    rows = dict(oracle.rows(np.random.default_rng(2), 30))
    n = len(rows.pop("sample_weight"))
    times = np.random.default_rng(3).integers(1, 4, n)
    weighted = oracle.metric.copy().update(**rows, sample_weight=times)
    several = oracle.metric.copy().update(**repeated(rows, times))
    assert same_value(weighted.compute(), several.compute())
    assert (weighted.n_rows, several.n_rows) == (n, times.sum())
    mine, theirs = (parts(each.to_bytes())[1] for each in (weighted, several))
    differ = {name for name in mine.keys() | theirs.keys() if mine.get(name) != theirs.get(name)}
    # Powers of losses are sums of squared weights times a loss, and times its square.
    assert all("square" in name or "/powers/" in name for name in differ)


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
@pytest.mark.parametrize("oracle", thinned(WEIGHTED, columns=False))
@pytest.mark.parametrize(
    "weights", [(0.5, 1.5), (0.0, 2.0), (1e-150, 1e150)], ids=["halves", "whole", "far"]
)
def test_rows_with_and_without_weights_merge_as_states_and_as_files(oracle, weights):
    rng = np.random.default_rng(4)
    rows = dict(oracle.rows(rng, 40))
    n = len(rows.pop("sample_weight"))
    plain = oracle.metric.copy().update(**rows)
    weighted = oracle.metric.copy().update(**rows, sample_weight=rng.choice(weights, n))
    opened = [sm.from_bytes(each.to_bytes()) for each in (plain, weighted)]
    assert opened[0].merge(opened[1]).to_bytes() == plain.merge(weighted).to_bytes()
