"""Nothing raises NumPy's own errors or warnings where the caller makes all of them errors."""

from __future__ import annotations

import contextlib
import warnings

import numpy as np
import pytest
from oracles.table import ORACLES, distinct, thinned

import streammetrics as sm

ROWS = 24
ROWS_OF = distinct(ORACLES, readouts=True)
EVERY = thinned(ROWS_OF, every=2)


def changed(rows, kinds, change):
    """Return rows whose columns of numbers of these kinds are changed."""
    return {
        name: change(np.asarray(column)) if _is_changed(name, column, kinds) else column
        for name, column in rows.items()
    }


def _is_changed(name, column, kinds):
    return isinstance(column, np.ndarray) and column.dtype.kind in kinds and name != "query"


def variants(rows):
    """Yield rows, few of them, constant ones, of one class, tiny, huge, and of uneven weights."""
    rng = np.random.default_rng(0)
    yield "rows", rows
    yield "one row", {name: column[:1] for name, column in rows.items()}
    first = {"constant": "fiub", "one class": "iub", "one score": "f"}
    for name, kinds in first.items():
        yield name, changed(rows, kinds, lambda column: np.repeat(column[:1], len(column), axis=0))
    for factor in (5e-324, 1e-300, 1e-160, 0.0, 1e160, 1e300):
        with np.errstate(all="ignore"):
            scaled = changed(rows, "f", lambda column, by=factor: column * by)
        if "sample_weight" in rows:
            scaled["sample_weight"] = rows["sample_weight"]
        yield f"times {factor}", scaled
    n = len(next(iter(rows.values())))
    uneven = np.ones(n)
    uneven[0], uneven[-1] = 1e-300, 1e200
    with np.errstate(all="ignore"):
        weights = [rng.random(n) * factor for factor in (5e-324, 1e-300, 1e160, 1e300)]
    for weight in [*weights, uneven]:
        yield "weighted", {**rows, "sample_weight": weight}


def taken(metric, rows):
    """Whether the metric takes and reads such rows: some refuse weights or overflows."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            fed = metric.copy().update(**rows)
            fed.to_bytes(), fed.compute()
        except (TypeError, ValueError, sm.StreamMetricsError):
            return False
    return True


def use(metric, rows, *, draw):
    """Call everything that reads or changes a metric."""
    fed = metric.copy().update(**rows)
    whole = sm.from_bytes(fed.to_bytes()).merge(fed)
    for one in (whole, metric.copy()):
        one.compute(), one.bounds(), one.exact, repr(one)
        with contextlib.suppress(sm.StreamMetricsError):
            one.confidence()
    if draw:
        plt = pytest.importorskip("matplotlib.pyplot")
        with contextlib.suppress(TypeError):  # it has no picture
            whole.plot()
        plt.close("all")


@pytest.mark.parametrize("oracle", EVERY)
def test_all_that_numpy_warns_of_may_be_an_error(oracle):
    rows = oracle.rows(np.random.default_rng(1), ROWS)
    failed = []
    for name, some in variants(rows):
        if not taken(oracle.metric, some):
            continue
        with np.errstate(all="raise"), warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", sm.UndefinedMetricWarning)
            try:
                use(oracle.metric, some, draw=False)
            except (FloatingPointError, RuntimeWarning) as error:
                failed.append((name, error))
    assert not failed


@pytest.mark.long
@pytest.mark.parametrize("oracle", EVERY)
def test_pictures_too(oracle):
    rows = oracle.rows(np.random.default_rng(1), ROWS)
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", sm.UndefinedMetricWarning)
        use(oracle.metric, rows, draw=True)
