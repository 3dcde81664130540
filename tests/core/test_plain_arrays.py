"""Plain arrays are read at once: the same rows, refusals and states as of any other columns."""

from __future__ import annotations

import numpy as np
import pytest

import streammetrics as sm
from streammetrics.core import tuning

RNG = np.random.default_rng(5)
TRUE, PRED = RNG.gamma(2.0, size=(2, 40))
LABELS, SCORES = RNG.integers(0, 2, 40), RNG.random(40)
PAIR = {"y_true": TRUE, "y_pred": PRED}
SCORED = {"y_true": LABELS, "y_score": SCORES}
CASES = [
    (sm.MSE(), PAIR),
    (sm.MSLE(), PAIR),
    (sm.R2(spread=True), PAIR),
    (sm.MaxError(), PAIR),
    (sm.TweedieDeviance(power=1.5), PAIR),
    (sm.Mean(), {"values": TRUE}),
    (sm.Quantile(q=0.5), {"values": TRUE}),
    (sm.F1(threshold=0.5), SCORED),
    (sm.F1(threshold=0.5, pos_label=0), SCORED),
    (sm.ROCAUC(), SCORED),
    (sm.LogLoss(), SCORED),
    (sm.LogLoss(from_logits=True), {"y_true": LABELS, "y_score": TRUE - 1}),
    (sm.BrierScore(), {"y_true": LABELS.astype(np.bool_), "y_score": SCORES.astype(np.float32)}),
    (sm.MetricSet({"loss": sm.LogLoss(), "auc": sm.ROCAUC()}), SCORED),
]


def refused(metric, columns):
    """Return the message of a refusal, which leaves the state as it was; None if there is none."""
    before = metric.to_bytes()
    try:
        metric.feed(columns)
    except sm.InvalidBatchError as error:
        assert metric.to_bytes() == before
        return str(error)
    return None


@pytest.mark.parametrize(("metric", "columns"), CASES, ids=lambda x: str(x)[:40])
def test_arrays_and_lists_are_the_same_rows(metric, columns):
    metric = metric.copy()
    whole = metric.copy().feed(columns).to_bytes()
    assert metric.copy().feed({name: v.tolist() for name, v in columns.items()}).to_bytes() == whole
    swapped = {name: v.astype(v.dtype.newbyteorder()) for name, v in columns.items()}
    assert metric.copy().feed(swapped).to_bytes() == whole
    strided = {name: np.repeat(v, 2)[::2] for name, v in columns.items()}
    assert metric.copy().feed(strided).to_bytes() == whole
    beside = {**columns, "sample_weight": np.ones(40)}
    assert metric.copy().feed(beside).compute() == metric.copy().feed(columns).compute()


@pytest.mark.parametrize(("metric", "columns"), CASES, ids=lambda x: str(x)[:40])
def test_arrays_and_lists_are_refused_alike(metric, columns):
    *_, last = columns
    for value in (np.nan, np.inf, -np.inf, -2.0, 2.0, 1e308):
        changed = columns[last].astype(np.float64)
        changed[17] = value
        of_arrays = refused(metric.copy(), {**columns, last: changed})
        assert of_arrays == refused(metric.copy(), {**columns, last: changed.tolist()})
    for name in columns:
        short = {**columns, name: columns[name][1:]}
        of_arrays = refused(metric.copy(), short)
        assert of_arrays == refused(metric.copy(), {key: v.tolist() for key, v in short.items()})
        assert (of_arrays is not None) == (len(columns) > 1)
        wide = {**columns, name: columns[name][:, None] * np.ones((1, 2))}
        lists = {key: v.tolist() for key, v in wide.items()}
        assert refused(metric.copy(), wide) == refused(metric.copy(), lists)


@pytest.mark.parametrize("n", [3, 40, tuning.STAGED_ROWS])
@pytest.mark.parametrize(("metric", "columns"), CASES, ids=lambda x: str(x)[:40])
def test_rows_that_wait_are_the_metrics_own(metric, columns, n):
    """A caller may write to its arrays as soon as `update` has returned."""
    given = {name: np.resize(values, n) for name, values in columns.items()}
    expected = metric.copy().feed({name: v.copy() for name, v in given.items()}).to_bytes()
    changed = metric.copy().feed(given)
    for values in given.values():
        values[:] = 0
    assert changed.to_bytes() == expected


def test_a_batch_with_another_negative_label_is_refused():
    signs = {**SCORED, "y_true": np.where(LABELS == 1, 1, -1)}
    for one, other in ((SCORED, signs), (signs, SCORED)):
        metric = sm.F1(threshold=0.5).feed(one)
        assert "negative label" in (refused(metric, other) or "")
        assert metric.n_rows == 40
