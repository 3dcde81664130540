"""What the tests of kinds share: one oracle of every metric, and rows as it takes them."""

from __future__ import annotations

import numpy as np
from oracles.table import ORACLES

import streammetrics as sm
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.columns.batch import Batch
from streammetrics.core.feeding.plan import Plan

FIRST = list({type(oracle.metric): oracle for oracle in reversed(ORACLES)}.values())[::-1]


def named(oracle):
    """Return the name of the oracle's metric."""
    return type(oracle.metric).__name__


def plain_rows(oracle, n, seed=0):
    """Return rows of an oracle without their weights."""
    rows = oracle.rows(np.random.default_rng(seed), n)
    columns = {name: np.asarray(rows[name]) for name in rows if name != "sample_weight"}
    return {name: c.astype(np.int64) if c.dtype == bool else c for name, c in columns.items()}


def taken(rows, index):
    """Return some of the rows."""
    return {name: column[index] for name, column in rows.items()}


def with_parameters(metric, /, **changed):
    """Return a new metric of the same configuration but for what is changed."""
    return type(metric)(**{**metric.config, **changed})


def statistics_of(metric):
    """Return the statistics that a metric reads, as its own `interval` is given them."""
    twin = metric.copy()
    twin.interval = lambda *statistics: statistics
    return twin.bounds()


def plan_of(metric):
    """Return the layout of the statistics that a metric reads, or those of a set."""
    metrics = metric.values() if isinstance(metric, sm.MetricSet) else [metric]
    return Plan(statistic for one in metrics for statistic in one.statistics())


def state_of(plan, *batches):
    """Return the state of rows in a layout."""
    accumulator = Accumulator(plan)
    for batch in batches:
        accumulator.update(Batch(batch))
    return accumulator.flush()


def repeated(metric, times):
    """Return the state of a metric's rows so many times over, merged of doubled ones."""
    power, parts = sm.from_bytes(metric.to_bytes()), []
    while times:
        if times & 1:
            parts.append(power)
        times >>= 1
        if times:
            power = sm.merge([power, power])
    return sm.merge(parts)
