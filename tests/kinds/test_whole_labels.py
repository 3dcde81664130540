"""Labels that are whole numbers are those integers, in whatever type and beside whatever others."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.table import thinned

import streammetrics as sm
from kinds.rows import FIRST, plain_rows

LONG = 2**53 + 1  # the first integer that no float64 is


def labels_of(oracle):
    """Return the columns of an oracle's rows that hold integers as labels."""
    rows = plain_rows(oracle, 12)
    kinds = [one.schema.kinds.items() for one in oracle.metric.statistics()]
    found = {name for kind in kinds for name, told in kind if told == "label" and name in rows}
    return sorted(name for name in found if all(a.dtype.kind == "i" for a in lists(rows[name])))


def is_nested(column):
    """Whether a row of the column is a list."""
    return isinstance(column, list) or column.dtype == object


def lists(column):
    """Return the arrays that a column of lists holds, or the column."""
    return [np.asarray(row) for row in column] if is_nested(column) else [column]


def mapped(rows, names, change):
    """Return rows with some columns changed."""
    changed = dict(rows)
    for name in names:
        new = [change(array) for array in lists(rows[name])]
        changed[name] = new if is_nested(rows[name]) else new[0]
    return changed


def outcome(metric, *batches):
    """Return the bytes of a metric that was given batches, or why it refuses them."""
    try:
        metric = metric.copy()
        for batch in batches:
            metric.update(**batch)
        return metric.to_bytes()
    except sm.InvalidBatchError as error:
        return type(error)


@pytest.mark.parametrize(
    "oracle", thinned([oracle for oracle in FIRST if labels_of(oracle)], columns=False)
)
def test_floats_that_are_whole_are_those_labels(oracle):
    rows, names, metric = plain_rows(oracle, 12), labels_of(oracle), oracle.metric
    floats = mapped(rows, names, np.float64)
    both = outcome(metric, rows, rows)
    assert isinstance(both, bytes)
    assert outcome(metric, rows, floats) == outcome(metric, floats, floats) == both
    long = mapped(rows, names, lambda labels: labels * 2 + LONG)
    assert outcome(metric, long, floats) == outcome(metric, long, rows)
    assert outcome(metric, floats, long) == outcome(metric, rows, long)
    for name in names:
        others = mapped(long, [name], lambda labels: labels - 1)
        mixed = mapped(others, [name], np.float64)
        assert outcome(metric, mixed) == outcome(metric, others)
        assert outcome(metric, long, mixed) == outcome(metric, long, others)
