"""Harrell's index: what is refused, and what is certain past the budget."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.survival import harrell, lives

import streammetrics as sm


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            {"time": [1.0, -2.0], "event": [1, 0]},
            "time is not at least 0 in 1 row, first",
        ),
        (
            {"time": [1.0, 2.0], "event": [1, 2]},
            "event is neither 0 nor 1 in 1 row",
        ),
        ({"time": [np.inf, 2.0], "event": [1, 0]}, "time is infinite in 1 row, first in row 0"),
    ],
)
def test_lives_that_cannot_be_are_refused(rows, message):
    with pytest.raises(sm.InvalidBatchError, match=message):
        sm.ConcordanceIndex().update(**rows, score=[0.5, 0.25])


@pytest.mark.parametrize("seed", range(4))
def test_bounds_hold_the_exact_value_past_the_budget(seed):
    rng = np.random.default_rng(seed)
    rows = lives(rng, 400)
    rows["score"] = -rows["time"] + rng.normal(size=400).round(seed)
    metric = sm.ConcordanceIndex(max_pairs=(16, 30, 60, 150)[seed])
    for part in range(4):
        metric.update(**{name: column[part::4] for name, column in rows.items()})
    low, high = metric.bounds()
    assert not metric.exact
    assert low <= harrell(**rows) <= high
    assert low <= metric.compute() <= high


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
def test_without_a_comparable_pair_it_is_undefined():
    assert np.isnan(sm.ConcordanceIndex().update([1, 2], [0, 0], [0.5, 0.25]).compute())
    assert np.isnan(sm.ConcordanceIndex().update([2, 2], [1, 1], [0.5, 0.25]).compute())
    assert sm.ConcordanceIndex().update([2, 2], [1, 0], [0.5, 0.25]).compute() == 1.0


def test_where_cells_tell_nothing_the_budget_is_named():
    time = [6.9, 2.7, 6.3, 0.4, 0.3, 3.8, 2.3, 0.1, 26.7, 1.7, 0.3, 2.5, 0.8]
    event = [0, 0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0]
    score = [0.22, 0.48, 0.28, 0.88, 0.06, 0.65, 0.86, 0.92, 0.48, 0.4, 0.04, 0.46, 0.65]
    metric = sm.ConcordanceIndex(max_pairs=4).update(time, event, score)
    with pytest.warns(sm.UndefinedMetricWarning, match="max_pairs is too small"):
        assert np.isnan(metric.compute())
