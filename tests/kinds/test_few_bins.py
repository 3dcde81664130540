"""Of few cells the bounds are wide, and still hold what all the cells give, whatever is asked."""

from __future__ import annotations

import numbers

import numpy as np
import pytest
from oracles.table import ORACLES

from kinds.rows import with_parameters

BINNED = [
    oracle
    for oracle in {repr(oracle.metric): oracle for oracle in ORACLES}.values()
    if "max_bins" in oracle.metric.config
]


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
@pytest.mark.filterwarnings("ignore::streammetrics.EstimateWarning")
@pytest.mark.parametrize("oracle", [pytest.param(oracle, id=oracle.id) for oracle in BINNED])
def test_bounds_of_few_cells_hold_the_value_of_all(oracle):
    rows = oracle.rows(np.random.default_rng(4), min(oracle.n, 60))
    exact = oracle.metric.copy().update(**rows).compute()
    for bins in (16, 32):
        low, high = with_parameters(oracle.metric, max_bins=bins).update(**rows).bounds()
        if isinstance(exact, numbers.Real | np.ndarray):
            some = np.isfinite(exact)
            room = 1e-12 * np.maximum(np.abs(np.where(some, exact, 0.0)), 1.0)
            assert (np.isnan(exact) | (low <= exact + room) & (exact - room <= high)).all()
        else:
            assert type(low) is type(high)
