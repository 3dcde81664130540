"""However the calls differ in form, the state is that of one batch of all their rows.

Weighted batches beside plain ones, rows left out beside clean ones, small batches that wait
beside long ones that are cut up, in any order.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.table import thinned

import streammetrics as sm
from kinds.rows import FIRST, plain_rows, taken, with_parameters

FORMS = ("plain", "ones", "weighted", "some of weight 0", "all of weight 0", "one missing",
         "all missing", "weighted, one missing", "some of weight 0, one missing",
         "weighted, one weight missing", "empty", "batch", "merged")  # fmt: skip
# A row must have the id of its query or unit. A missing code is of a rater who did not rate the
# item, whose row stays.
FLAT = [
    oracle
    for oracle in FIRST
    if not {"query", "unit"} & {*oracle.metric.inputs}
    and not oracle.metric.config.get("from_raters")
]
N = 6


def spoilt(rows, where):
    """Return the rows with a missing value in each of those places, or None for strings."""
    name = next((n for n, c in rows.items() if c.dtype.kind == "f"), None)
    name = name or next((n for n, c in rows.items() if c.dtype.kind in "bi"), None)
    if name is None:
        return None
    column = rows[name].astype(np.float64)
    column[where] = np.nan
    return {**rows, name: column}


def takes_weights(metric, rows):
    try:
        metric.copy().update(**rows, sample_weight=np.ones(N))
    except TypeError:  # its `update` has no such column
        return False
    except sm.InvalidBatchError as error:
        if "do not accept weights" in str(error):
            return False
        raise
    return True


def fed(metric, form, rows, rng):
    """Feed the rows in a form; return which count, their weights, and how many were left out."""
    every, where, weight = np.arange(N), [], np.ones(N)
    if "weighted" in form:
        weight = rng.integers(1, 9, N) / 2
    if "weight 0" in form:
        weight = np.where(rng.random(N) < (0.5 if "some" in form else 2), 0.0, weight)
    if "missing" in form:
        where = every if form.startswith("all") else rng.integers(0, N, 1)
        if "weight missing" in form:
            weight[where] = np.nan
        else:
            rows = spoilt(rows, where)
        every = np.setdiff1d(every, where)
    every = every[weight[every] > 0]
    if form in {"plain", "one missing", "all missing"}:
        metric.update(**rows)
    elif form == "merged":
        metric.merge(metric.copy().reset().update(**rows))
    elif form == "batch":
        metric.batch(**rows)
    elif form == "empty":
        metric.update(**taken(rows, slice(0)))
        every = every[:0]
    else:
        metric.update(**rows, sample_weight=weight)
    return every, weight[every], len(where)


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
@pytest.mark.filterwarnings("ignore::streammetrics.EstimateWarning")
@pytest.mark.parametrize("oracle", thinned(FLAT, columns=False))
@settings(max_examples=6)
@given(forms=st.lists(st.sampled_from(FORMS), min_size=2, max_size=6), seed=st.integers(0, 99))
def test_forms_of_calls_mix(oracle, forms, seed):
    rng, rows = np.random.default_rng(seed), plain_rows(oracle, N, seed)
    policy = {"nan_policy": "omit"} if "nan_policy" in oracle.metric.config else {}
    weighs, metric = takes_weights(oracle.metric, rows), with_parameters(oracle.metric, **policy)
    kept, weights, omitted = [], [], 0
    for form in forms:
        if ("weight" in form or form == "ones") and not weighs:
            continue
        if "missing" in form and (not policy or spoilt(rows, [0]) is None):
            continue
        every, weight, left_out = fed(metric, form, rows, rng)
        kept, weights, omitted = [*kept, *every], [*weights, *weight], omitted + left_out
    kept, weights = [*kept, *[N] * omitted], [*weights, *[1.0] * omitted]
    whole = with_parameters(oracle.metric, **policy)
    if kept:
        more = spoilt(rows, np.arange(N)) or rows  # whose first row is one to be left out
        both = {name: np.append(rows[name], more[name][:1], axis=0) for name in rows}
        whole.update(**taken(both, kept), **({"sample_weight": weights} if weighs else {}))
    assert (metric.n_rows, metric.n_omitted) == (len(kept) - omitted, omitted)
    assert metric.to_bytes() == whole.to_bytes()


@pytest.mark.parametrize("oracle", thinned([o for o in FLAT if "nan_policy" in o.metric.config]))
def test_a_missing_value_in_any_column_leaves_its_row_out(oracle):
    metric, rows = with_parameters(oracle.metric, nan_policy="omit"), plain_rows(oracle, N)
    spoilable = [name for name, column in rows.items() if column.dtype.kind in "bif"]
    whole = metric.copy().update(**taken(rows, np.arange(len(spoilable), N)))
    for where, name in enumerate(spoilable):
        rows[name] = rows[name].astype(np.float64)
        rows[name][where] = np.nan
    metric.update(**rows)
    assert (metric.n_rows, metric.n_omitted) == (whole.n_rows, len(spoilable))
    rest = {name: column[: len(spoilable)] for name, column in rows.items()}
    assert metric == whole.merge(whole.copy().reset().update(**rest))


LONG = {
    "f1": (lambda: sm.F1(threshold=0.5, nan_policy="omit"), ("y_true", "y_score")),
    "auc": (lambda: sm.ROCAUC(nan_policy="omit"), ("y_true", "y_score")),
    "loss": (lambda: sm.LogLoss(nan_policy="omit"), ("y_true", "y_score")),
    "error": (lambda: sm.MSE(nan_policy="omit"), ("y_true", "y_pred")),
    "quantile": (lambda: sm.Quantile(q=0.3, nan_policy="omit"), ("values",)),
    "set": (lambda: sm.MetricSet({"mean": sm.MeanError(nan_policy="omit"),
                                  "log": sm.LogLoss(nan_policy="omit")}),
            ("y_true", "y_score", "y_pred")),
}  # fmt: skip


@pytest.mark.parametrize("name", LONG)
def test_rows_that_wait_and_rows_that_are_cut_up_mix(name):
    make, names = LONG[name]
    rng, mixed, whole, omitted = np.random.default_rng(7), make(), make(), 0
    batches = []
    for n in (3, 20_000, 1, 70_000, 16_384, 5, 16_385, 2, 65_536, 4):
        rows = {column: rng.random(n).round(2) for column in names}
        if "y_true" in rows:
            rows["y_true"] = rng.integers(0, 2, n).astype(float)
        if len(batches) % 3:
            rows[names[-1]][0], omitted = np.nan, omitted + 1
        rows["sample_weight"] = np.ones(n) if len(batches) % 2 else rng.integers(0, 3, n) / 2.0
        weighted = rows["sample_weight"].min() < 1 or n == 5
        mixed.update(**{c: rows[c] for c in rows if weighted or c != "sample_weight"})
        batches.append(rows)
    whole.update(**{c: np.concatenate([b[c] for b in batches]) for c in batches[0]})
    assert mixed.n_omitted == omitted
    assert mixed.to_bytes() == whole.to_bytes()
    assert mixed.n_rows == whole.n_rows


# As much as their squares: no squares are written beside them, and yet no row weighs one.
ODD = np.array([0.5, 1.5, 0.5, 0.5])
SAME = {
    "threshold": (sm.F1(threshold=0.5), {"y_true": [1] * 4, "y_score": [0.7] * 4}),
    "labels": (sm.Accuracy(), {"y_true": [1] * 4, "y_pred": [1] * 4}),
    "first": (sm.TopKAccuracy(k=1), {"y_true": [1] * 4, "y_score": [[0.2, 0.8]] * 4}),
    "scores": (sm.ROCAUC(), {"y_true": [1] * 4, "y_score": [0.7] * 4}),
    "values": (sm.Quantile(q=0.5), {"values": [0.7] * 4}),
    "mean": (sm.Mean(), {"values": [0.7] * 4}),
}


@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("more", [0.25, 1.0, 3.0])
def test_weights_that_are_as_much_as_their_squares_are_not_taken_for_others(name, more):
    metric, rows = SAME[name]
    odd = metric.copy().update(**rows, sample_weight=ODD)
    other = metric.copy().update(**rows, sample_weight=np.full(4, more))
    twice = {column: values * 2 for column, values in rows.items()}
    whole = metric.copy().update(**twice, sample_weight=[*ODD, *[more] * 4])
    for merged in (sm.from_bytes(odd.to_bytes()).merge(other), other.copy().merge(odd)):
        assert merged.to_bytes() == whole.to_bytes()
    assert sm.from_bytes(odd.to_bytes()).merge(odd).to_bytes() == odd.copy().merge(odd).to_bytes()
