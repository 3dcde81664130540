"""What was merged into any statistic is taken out of it again, to the byte, or that is refused."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.table import thinned

import streammetrics as sm
from kinds.rows import FIRST, plain_rows, plan_of, state_of, taken
from streammetrics.core.state.arrays import same

N = 24


def without(whole, part):
    """Return what is left of a statistic, or why that cannot be."""
    try:
        return whole.minus(part)
    except sm.IncompatibleMetricsError as error:
        return str(error)


@pytest.mark.parametrize("oracle", thinned(FIRST, columns=False))
def test_what_was_merged_is_taken_out_again_or_refused(oracle):
    plan, rows = plan_of(oracle.metric), plain_rows(oracle, N)
    n = len(next(iter(rows.values())))
    first, rest = (
        state_of(plan, taken(rows, part)) for part in (np.arange(n // 4), np.arange(n // 4, n))
    )
    both = plan.merged(first, [rest])
    for whole, less, left in zip(both.statistics, first.statistics, rest.statistics, strict=True):
        found = without(whole, less)
        if isinstance(found, str):
            assert "cannot be told" in found
        elif whole.arrays():
            assert same(found.arrays(), left.arrays())
            assert "not among" in without(less, whole)


def test_outcomes_of_boxes_that_are_not_there_are_not_taken_out():
    one = {"true_boxes": [[[0, 0, 1, 1]]], "true_labels": [[1]], "pred_boxes": [[[0, 0, 1, 1]]],
           "pred_scores": [[0.5]]}  # fmt: skip
    plan = plan_of(sm.BoxAveragePrecision())
    seen = [state_of(plan, {**one, "pred_labels": [[label]]}) for label in (1, 2)]
    held, other = (state.statistics[0].outcomes for state in seen)
    field = type(seen[0].statistics[0]).outcomes
    both = field.plus(held, other)
    assert field.minus(both, other).keys() == held.keys()
    for wrong in (both, other):
        with pytest.raises(sm.IncompatibleMetricsError, match="outcomes of boxes are not"):
            field.minus(held, wrong)
