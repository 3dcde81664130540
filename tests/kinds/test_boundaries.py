"""No size at which work is cut can be seen, and counts pass every power of two unharmed."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pytest
from oracles.base import assert_close
from oracles.table import thinned
from thinning import some

import streammetrics as sm
from kinds.rows import FIRST, plain_rows, repeated, with_parameters
from streammetrics.core import tuning

LITTLE = {
    "BATCH_ROWS": 7, "STAGED_ROWS": 16, "STAGED_LEAST": 1, "KEYED_ROWS": 9, "KEYED_EACH": 2,
    "KNOWN_LAYOUTS": 2,
    "KNOWN_OPENINGS": 2, "OPENING_CHARACTERS": 64, "FEW_ROWS": 2, "CELLS_READ": 4,
    "BUFFERED_ROWS": 8, "BUFFERS": 3,
    "PASS_ROWS": 4, "JOINED_ROWS": 4, "RANKED_ROWS": 8, "PENDING_RANKINGS": 8,
    "CENTROID_DISTANCES": 16, "DISTANCE_ROWS": 4, "ALONE_PRODUCTS": 32, "THIN_ROWS": 2,
    "MEAN_DISTANCES": 8, "HASHED_COORDINATES": 8,
}  # fmt: skip


@pytest.fixture
def little_sizes(monkeypatch):
    """Return what sets the sizes."""

    def set_all():
        for name, size in LITTLE.items():
            monkeypatch.setattr(tuning, name, size)

    return set_all


def everything(oracle):
    """Return the state of several batches and merges, and what is read from it."""
    metric, other = oracle.metric.copy(), oracle.metric.copy()
    for n, seed in ((40, 1), (3, 2), (90, 3)):
        metric.update(**oracle.rows(np.random.default_rng(seed), n))
        other.update(**oracle.rows(np.random.default_rng(seed + 9), n))
    metric.merge(other, sm.from_bytes(other.to_bytes()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return metric.to_bytes(), metric.compute(), tuple(metric.bounds())


@pytest.mark.parametrize("oracle", thinned(FIRST, columns=False))
def test_rows_of_zeros_make_a_state_that_travels(oracle):
    rows = {
        name: np.zeros(np.shape(column)) if np.asarray(column).dtype.kind == "f" else column
        for name, column in plain_rows(oracle, 30).items()
    }
    metrics = [oracle.metric]
    if "spread" in oracle.metric.config:
        metrics.append(with_parameters(oracle.metric, spread=False))
    for metric in metrics:
        try:
            seen = metric.copy().update(**rows)
        except sm.InvalidBatchError:  # of what has to be positive
            continue
        again = sm.from_bytes(seen.to_bytes())
        assert again == seen
        assert again.merge(seen).n_rows == 2 * seen.n_rows


@pytest.mark.parametrize("oracle", thinned(FIRST, columns=False))
def test_sizes_of_work_cannot_be_seen(oracle, little_sizes):
    blob, value, bounds = everything(oracle)
    little_sizes()
    again = everything(oracle)
    assert again[0] == blob
    assert_close(again[1:], (value, bounds), 1e-12, 1e-15)


GROWING = (sm.Count, sm.Sum, sm.ConfusionMatrix, sm.ClassificationReport, sm.CalinskiHarabasz)
TABLES = (  # which grow with the rows
    sm.ConfusionAtThresholds, sm.EditDistance, sm.MinkowskiDistance, sm.MultilabelConfusionMatrix,
    sm.PairConfusionMatrix, sm.PredictionError,
)  # fmt: skip
COUNTED = [
    oracle for oracle in FIRST
    if "query" not in oracle.metric.inputs and not isinstance(oracle.metric, TABLES)
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
@pytest.mark.filterwarnings("ignore::streammetrics.EstimateWarning")
@pytest.mark.parametrize(("n", "edge"), some([(8, 1 << 53), (8, 1 << 31), (1, 1 << 31)]))
@pytest.mark.parametrize("oracle", thinned(COUNTED, columns=False))
def test_counts_pass_the_edges_of_integers(oracle, n, edge):
    metric, values = oracle.metric.copy().update(**plain_rows(oracle, n)), []
    # Once all rows, and once each of them alone, are counted up to the edge and past it.
    for times in (part + k for part in dict.fromkeys((edge // n, edge)) for k in (-1, 0, 1)):
        try:
            state = repeated(metric, times)
        except sm.IncompatibleMetricsError as error:
            if edge == 1 << 53 and "the merged state would have" in str(error):
                continue  # a limit that is told
            raise
        assert state.n_rows == n * times
        values.append(state.compute())
        blob = state.to_bytes()
        again = sm.from_bytes(blob)
        assert again.to_bytes() == blob
        assert_close(again.compute(), values[-1], 0.0, 0.0)
    for value in values[: 3 if isinstance(metric, GROWING) else None]:
        assert_close(value, values[0], 1e-6, 1e-9)


@pytest.mark.parametrize("method", ["linear", "averaged_inverted_cdf"])
@pytest.mark.parametrize("times", [1, 0.5])
def test_quantiles_at_the_edge_of_a_block_of_cells(method, times):
    values = np.arange(1 << 17)
    rows = {"values": values, "sample_weight": np.full(values.size, times)}
    for q in (0.5, 0.499999, 0.500001, 65_536 / 131_071, 65_535 / 131_071):
        metric = sm.Quantile(q=q, method=method).update(**rows)
        if times == 1:
            assert metric.compute() == pytest.approx(
                np.quantile(values, q, method=method), rel=1e-15
            )
        elif method == "averaged_inverted_cdf":
            assert metric.compute() == np.quantile(values, q, method=method)
        else:  # each weighs a half, so two of them are one row
            assert metric.compute() == pytest.approx(2 * (q * 65_535) + 0.5, abs=1)


MADE = {
    "mean": sm.Mean,
    "set": lambda: sm.MetricSet({"f1": sm.F1(threshold=0.5), "auc": sm.ROCAUC()}),
    "ndcg": lambda: sm.NDCG(k=2),
    "error": sm.MedianAbsoluteError,
}
ROW = {
    "mean": {"values": [1.0]},
    "set": {"y_true": [1], "y_score": [0.25]},
    "ndcg": {"query": [1], "relevance": [1], "score": [0.5]},
    "error": {"y_true": [1.0], "y_pred": [0.5]},
}


@pytest.mark.parametrize("name", some(MADE, every=4))
def test_memory_of_many_single_rows_is_bounded(name):
    metric, row = MADE[name](), ROW[name]
    metric.update(**row).to_bytes()
    tracemalloc.start()
    try:
        held = []
        for _ in range(5):
            for _ in range(400):
                metric.update(**row)
            held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert max(held) < 1_500_000
    assert metric.n_rows == 2001
