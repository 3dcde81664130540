"""Certified intervals: every arrangement of rows within the cells is enumerated on small data."""

from __future__ import annotations

import itertools
import math
from functools import cache, partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kinds.rows import statistics_of
from oracles.decisions import equal_error_rate, gini, lift_at, specificity_at_sensitivity
from oracles.probability import (
    calibration_error,
    ks_distance,
    log_area,
    pr_area,
    precision_at_recall,
    recall_at_precision,
    reliability_weighted,
    sensitivity_at_specificity,
    sk,
    turned_area,
)
from thinning import some

import streammetrics as sm
from streammetrics.metrics.scores.base import staircases
from streammetrics.statistics.histograms import ScoreHistogram

SLACK = 2.0**-45

# Scores of which tiny budgets make cells of several, with labels.
SMALL = [
    ([0.1, 0.11, 0.12, 0.8, 0.81, 0.9], [0, 1, 0, 1, 0, 1]),
    ([0.1, 0.11, 0.12, 0.13, 0.91, 0.92], [0, 1, 1, 0, 1, 0]),
    ([0.2, 0.2, 0.21, 0.22, 0.7, 0.71], [1, 0, 1, 0, 0, 1]),
    ([0.3, 0.31, 0.32, 0.33, 0.34], [1, 1, 0, 0, 1]),
    ([-2.0, -1.9, -1.8, 5.0, 5.1, math.inf], [1, 0, 1, 0, 1, 0]),
    ([0.5, 0.55, 0.6, 0.95, 0.96], [0, 0, 0, 1, 1]),
]

METRICS = {
    "auc": sm.ROCAUC,
    "auc to 0.3": partial(sm.ROCAUC, max_fpr=0.3),
    "auc to 0.75": partial(sm.ROCAUC, max_fpr=0.75),
    "auc above 0.4": partial(sm.ROCAUC, min_tpr=0.4),
    "log auc": partial(sm.LogAUC, min_fpr=0.2, max_fpr=0.9),
    "average precision": sm.AveragePrecision,
    "pr auc": sm.PRAUC,
    "ks": sm.KolmogorovSmirnov,
    "recall": partial(sm.RecallAtPrecision, p=0.6),
    "recall, all": partial(sm.RecallAtPrecision, p=1.0),
    "precision": partial(sm.PrecisionAtRecall, r=0.5),
    "sensitivity": partial(sm.SensitivityAtSpecificity, s=0.6),
    "specificity": partial(sm.SpecificityAtSensitivity, s=0.6),
    "gini": sm.Gini,
    "lift": partial(sm.TopDecileLift, share=0.3),
    "equal error": sm.EqualErrorRate,
}
PLAIN = {
    "auc": sk.roc_auc_score,
    "auc to 0.3": partial(sk.roc_auc_score, max_fpr=0.3),
    "auc to 0.75": partial(sk.roc_auc_score, max_fpr=0.75),
    "auc above 0.4": turned_area(0.6),
    "log auc": log_area(0.2, 0.9),
    "average precision": sk.average_precision_score,
    "pr auc": pr_area,
    "ks": ks_distance,
    "recall": recall_at_precision(0.6),
    "recall, all": recall_at_precision(1.0),
    "precision": precision_at_recall(0.5),
    "sensitivity": sensitivity_at_specificity(0.6),
    "specificity": specificity_at_sensitivity(0.6),
    "gini": gini,
    "lift": lift_at(0.3),
    "equal error": equal_error_rate,
}
LOWEST_IS_REACHED = {
    "auc", "auc to 0.3", "auc to 0.75", "auc above 0.4", "gini", "lift", "equal error"
}  # fmt: skip
HIGHEST_IS_REACHED = METRICS.keys() - {"average precision", "pr auc"}


@cache
def weak_orders(n: int) -> list[tuple[int, ...]]:
    """Return all ways to rank n rows, ties included."""
    ranks = itertools.product(range(n), repeat=n)
    return [each for each in ranks if set(each) == set(range(max(each) + 1))]


def cells_of(metric, score):
    """Return the edges of the cells, and the cell of each row."""
    (histogram,) = statistics_of(metric)[0].histograms
    blocks = list(histogram.cells())
    low = np.concatenate([block.low for block in blocks])
    high = np.concatenate([block.high for block in blocks])
    place = np.searchsorted(low, score, side="right") - 1
    assert np.all((low[place] <= score) & (score <= high[place]))
    return low, high, place


def arrangements(metric, score):
    """Yield scores of the rows that have the same cells: every order within, ties included."""
    low, high, place = cells_of(metric, score)
    groups = [np.flatnonzero(place == k) for k in range(low.size)]
    ranked = [
        weak_orders(len(rows)) if high[k] > low[k] else [(0,) * len(rows)]
        for k, rows in enumerate(groups)
    ]
    for ranks in itertools.product(*ranked):
        arranged = np.empty(len(score))
        for k, (rows, each) in enumerate(zip(groups, ranks, strict=True)):
            arranged[rows] = k + np.array(each) / 100
        yield arranged


@pytest.mark.parametrize(
    ("data", "max_bins", "weighted"),
    some(itertools.product(range(len(SMALL)), [2, 3], [False, True]), every=5),
)
def test_interval_holds_every_arrangement(data, max_bins, weighted):
    score, label = map(np.array, SMALL[data])
    weight = np.array([1.0, 0.25, 3.0, 0.5, 0.125, 1.0, 2.0][: score.size]) if weighted else None
    metrics = {
        name: make(max_bins=max_bins).update(label, score, sample_weight=weight)
        for name, make in METRICS.items()
    }
    values = {name: [] for name in METRICS}
    for arranged in arrangements(metrics["auc"], score):
        statistic = ScoreHistogram()
        statistic.update(label.astype(np.uint8), arranged, weight=weight)
        (stairs,) = staircases(statistic)
        for name, metric in metrics.items():
            values[name].append(metric.read(stairs))
    for name, metric in metrics.items():
        low, high = metric.bounds()
        least, most = min(values[name]), max(values[name])
        assert low <= metric.compute() <= high, name
        assert low <= least <= most <= high, name
        assert not metric.exact
        if name in LOWEST_IS_REACHED:
            assert low >= least - SLACK * max(1, most), name
        if name in HIGHEST_IS_REACHED:
            assert high <= most + SLACK * max(1, most), name
    low, high = metrics["auc"].bounds()
    assert metrics["auc"].compute() == pytest.approx((low + high) / 2, abs=SLACK)


@pytest.mark.parametrize("name", METRICS)
def test_values_that_the_enumeration_compares_are_right(name):
    rng = np.random.default_rng(0)
    for _ in range(20):
        label, score = rng.integers(0, 2, 12), rng.integers(0, 6, 12)
        label[:2] = 0, 1
        value = METRICS[name]().update(label, score).compute()
        assert value == pytest.approx(PLAIN[name](label, score), abs=1e-14)


@pytest.mark.parametrize(
    ("n_bins", "weighted", "max_bins", "norm"),
    some(itertools.product([1, 3, 10], [False, True], [2, 3, 4], ["l1", "l2", "max"]), every=4),
)
def test_calibration_interval_holds_every_placement(norm, max_bins, weighted, n_bins):
    rng = np.random.default_rng(max_bins + 10 * n_bins + weighted)
    score = np.array([0.05, 0.06, 0.3, 0.32, 0.36, 0.6, 0.64, 0.69, 0.97, 1.0, 0.0])
    label = (rng.random(score.size) < score).astype(int)
    weight = rng.integers(1, 9, score.size) / 4 if weighted else None
    metric = sm.CalibrationError(n_bins=n_bins, norm=norm, max_bins=max_bins)
    metric.update(label, score, sample_weight=weight)
    curve = sm.CalibrationCurve(n_bins=n_bins, max_bins=max_bins)
    curve.update(label, score, sample_weight=weight)
    low, high = metric.bounds()
    assert low <= metric.compute() <= high
    bottom, top, place = cells_of(metric, score)
    bottom, top = np.maximum(bottom[place], 0.0), np.minimum(top[place], 1.0)
    edges = np.linspace(0, 1, n_bins + 1)
    corners = np.concatenate([edges, np.nextafter(edges, 1)])
    plain, points = calibration_error(n_bins, norm), reliability_weighted(n_bins)
    least, most = curve.bounds()
    shown = bins_of(curve.compute().prob_pred, n_bins)
    for trial in range(100):
        placed = rng.choice(corners if trial % 2 else [0.0, 1.0], score.size)
        placed = np.where(rng.random(score.size) < 0.2, rng.random(score.size), placed)
        placed = np.clip(placed, bottom, top)
        assert low - 1e-15 <= plain(label, placed, weight) <= high + 1e-15
        rows = np.ones(score.size) if weight is None else weight
        true, pred = points(label, placed, rows)
        held = np.unique(bins_of(placed, n_bins))
        _, here, at = np.intersect1d(shown, held, return_indices=True)
        for side, value in ((0, true[at]), (1, pred[at])):
            assert np.all(least[side][here] - 1e-15 <= value)
            assert np.all(value <= most[side][here] + 1e-15)


def bins_of(scores, n_bins):
    return np.searchsorted(np.linspace(0, 1, n_bins + 1)[1:-1], scores)


SCORES = st.one_of(
    st.floats(allow_nan=False, width=64),
    st.sampled_from([0.0, -0.0, 5e-324, 1 - 2**-53, 1.0, 0.5, math.inf, -math.inf, 1e308]),
    st.floats(0, 1),
)
ROWS = st.lists(
    st.tuples(SCORES, st.booleans(), st.sampled_from([1.0, 1.0, 3.0, 0.1, 1e-9, 1e9])),
    min_size=1,
    max_size=40,
)


@given(rows=ROWS, max_bins=st.integers(2, 9), weighted=st.booleans())
@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
def test_interval_holds_the_exact_value(rows, max_bins, weighted):
    score, label, weight = map(np.array, zip(*rows, strict=True))
    weight = weight if weighted else None
    for make in METRICS.values():
        exact = make().update(label, score, sample_weight=weight)
        metric = make(max_bins=max_bins).update(label, score, sample_weight=weight)
        value, (low, high) = exact.compute(), metric.bounds()
        assert exact.exact
        assert exact.bounds() == (value, value) or math.isnan(value)
        if math.isnan(value):
            assert math.isnan(low)
            assert math.isnan(high)
        else:
            assert low - 1e-13 * weighted <= value <= high + 1e-13 * weighted
            assert low <= metric.compute() <= high


@given(
    rows=st.lists(
        st.tuples(st.floats(0, 1), st.booleans(), st.sampled_from([1.0, 0.1, 5.0])),
        min_size=1,
        max_size=40,
    ),
    max_bins=st.integers(2, 9),
    norm=st.sampled_from(["l1", "l2", "max"]),
)
def test_calibration_interval_holds_the_exact_value(rows, max_bins, norm):
    score, label, weight = map(np.array, zip(*rows, strict=True))
    options = {"n_bins": 4, "norm": norm}
    exact = sm.CalibrationError(**options).update(label, score, sample_weight=weight)
    metric = sm.CalibrationError(**options, max_bins=max_bins)
    metric.update(label, score, sample_weight=weight)
    low, high = metric.bounds()
    assert low <= exact.compute() <= high
    assert low <= metric.compute() <= high


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("name", ["PRAUC", "AveragePrecision", "LogAUC", "ROCAUC", "Gini"])
@pytest.mark.parametrize("seed", some(range(120), every=4))
def test_weights_far_apart_in_one_cell(name, seed):
    """Ratios beyond float64 raised, and the rounding of a difference made a negative area."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 60))
    score, label = rng.random(n), rng.integers(0, 2, n)
    widest = (5, 150, 300)[seed % 3]
    weight = 10.0 ** rng.uniform(-widest, widest, n)
    weight[rng.random(n) < 0.4] = 1e-310
    label[:2], weight[:2] = (0, 1), 1.0
    coarse, exact = (
        getattr(sm, name)(max_bins=bins).update(label, score, sample_weight=weight)
        for bins in (16, 1 << 20)
    )
    value, (low, high), (least, most) = coarse.compute(), coarse.bounds(), coarse.value_range
    assert least <= low <= value <= high <= most
    assert low <= exact.compute() <= high
