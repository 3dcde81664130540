"""A bad value is counted, and its row named, beside values that are as far as a good one goes."""

from __future__ import annotations

import re

import numpy as np
import pytest
from oracles.table import ORACLES, distinct, thinned

import streammetrics as sm
from kinds.rows import plain_rows

BAD = (-0.5, 1.5, -1.0, np.inf, -np.inf, np.nan)
EDGES = (0.0, 1.0, -1.0)
ROW = 3


def told(metric, rows):
    """Return how many values or rows of some are refused and the first, None where none is."""
    try:
        metric.copy().update(**rows)
    except sm.InvalidBatchError as error:
        found = re.search(r"in ([0-9]+) (?:row|value)s?, first in row ([0-9]+)", str(error))
        return found and tuple(map(int, found.groups()))
    return None


def with_value(rows, name, row, value):
    """Return rows with the first number of one of them replaced."""
    column = rows[name].copy()
    column[(row, *[0] * (column.ndim - 1))] = value
    return {**rows, name: column}


def numeric(rows):
    """Return the columns of floats."""
    return [name for name, column in rows.items() if column.dtype.kind == "f" and column.size]


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
@pytest.mark.parametrize("oracle", thinned(distinct(ORACLES), columns=False))
def test_only_bad_values_are_counted(oracle):
    metric, rows = oracle.metric, plain_rows(oracle, 12)
    for name in numeric(rows):
        for bad in BAD:
            wrong = with_value(rows, name, ROW, bad)
            if told(metric, wrong) != (1, ROW):
                continue  # it is a good value here, or what is wrong is not the value alone
            for edge in EDGES:
                near = with_value(rows, name, 1, edge)
                try:
                    metric.copy().update(**near)
                except sm.InvalidBatchError:
                    continue
                assert told(metric, with_value(near, name, ROW, bad)) == (1, ROW)
                twice = with_value(with_value(near, name, ROW, bad), name, 7, bad)
                assert told(metric, twice) == (2, ROW)


@pytest.mark.parametrize("metric", [sm.F1, sm.ROCAUC, sm.LogLoss])
@pytest.mark.parametrize("kind", [list, np.array])
@pytest.mark.parametrize("labels", [("a", "b", "c"), (1, 2, 3), (-5, 7, 1 << 60)])
def test_a_label_that_was_not_given_is_counted_and_named(metric, kind, labels):
    good, other, wrong = labels
    given = metric(labels=[good, other], pos_label=good)
    score = "y_pred" if metric is sm.F1 else "y_score"
    said = [good, good, good, good, good] if metric is sm.F1 else [0.5, 0.25, 0.5, 0.75, 0.5]
    with pytest.raises(sm.InvalidBatchError, match=r"in 2 rows, first in row 1\b") as refused:
        given.update(**{"y_true": kind([good, wrong, good, wrong, good]), score: kind(said)})
    assert repr(wrong) in str(refused.value)
