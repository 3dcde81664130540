"""Weights that are whole numbers are counts in files: what is read does not tell the two apart."""

from __future__ import annotations

import numpy as np
import pytest
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
