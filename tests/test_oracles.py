"""Every metric against its reference and against the laws, over random splits and shards."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.base import assert_close
from oracles.table import ORACLES, distinct, thinned
from thinning import some

import streammetrics as sm
from streammetrics.testing import check_laws, split_rows

FEW = 60
SEEN = {type(oracle.metric): oracle for oracle in reversed(ORACLES)}
# A default run takes many rows of one oracle of every metric, and few of all.
VALUES = [
    pytest.param(o, id=o.id, marks=[] if SEEN[type(o.metric)] is o else [pytest.mark.long])
    for o in ORACLES
]


# Random splits of few rows may leave a metric undefined, which its reference then says too.
@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 2))])
@pytest.mark.parametrize("oracle", VALUES)
def test_value_is_the_references(oracle, seed):
    value_is_the_references(oracle, oracle.n, seed)


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
@pytest.mark.parametrize("oracle", some(ORACLES), ids=lambda oracle: oracle.id)
def test_value_of_few_rows_is_the_references(oracle):
    value_is_the_references(oracle, min(oracle.n, FEW), 3)


def value_is_the_references(oracle, n, seed):
    rng = np.random.default_rng(seed)
    rows = oracle.rows(rng, n)
    shards = [oracle.metric.copy() for _ in range(3)]
    for batch in split_rows(rows, rng):
        shards[int(rng.integers(3))].update(**batch)
    value = sm.merge(shards).compute()
    assert_close(value, oracle.reference(**rows), oracle.rel, oracle.abs)


@pytest.mark.parametrize("oracle", thinned(distinct(ORACLES, readouts=True), columns=False))
def test_laws_hold(oracle):
    rows = oracle.rows(np.random.default_rng(99), min(oracle.n, 60))
    check_laws(oracle.metric, rows, seed=5)
