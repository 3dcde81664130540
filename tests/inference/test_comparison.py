"""Comparisons of models on the same rows, against formulas written out and other libraries."""

from __future__ import annotations

import math
import pickle
import warnings

import numpy as np
import pytest
from oracles.table import ORACLES
from scipy import stats
from sklearn.metrics import average_precision_score, f1_score
from thinning import some

import streammetrics as sm
from streammetrics.inference.paired import sign_flips


def binary(n, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    common = rng.normal(size=n)
    a, b = (
        1 / (1 + np.exp(-(shift * (2 * y - 1) + common + 0.7 * rng.normal(size=n))))
        for shift in (1.0, 0.7)
    )
    return {"y_true": y, "a": a, "b": b}


def duel(metrics, rows, models=("a", "b"), weight=None, **options):
    suite = sm.MetricSet(
        metrics, columns={} if weight is None else {"sample_weight": "sample_weight"}
    )
    made = sm.Comparison(suite, {model: model for model in models}, **options)
    return made.update(rows if weight is None else {**rows, "sample_weight": weight})


def error(line, level=0.95, df=None):
    """Return the standard error that the limits of a line were made with."""
    tail = (1 + level) / 2
    quantile = stats.norm.ppf(tail) if df is None else stats.t.ppf(tail, df)
    return (line.high - line.low) / (2 * quantile)


def freedom(*weights):
    """Return the degrees of freedom of weighted rows of the classes."""
    return min(w.sum() ** 2 / (w**2).sum() for w in weights) - 1


# --- counts --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "of", "says"),
    [
        (sm.Accuracy, None, None),
        (sm.Recall, 1, 1),
        (sm.FalseNegativeRate, 1, 0),
        (sm.Specificity, 0, 0),
        (sm.FalsePositiveRate, 0, 1),
    ],
)
def test_shares_of_the_same_rows_have_the_exact_p_of_mcnemar(metric, of, says):
    rows = binary(300)
    y = rows["y_true"]
    (line,) = duel({"m": metric(threshold=0.5)}, rows).compute()
    called = [(rows[model] >= 0.5).astype(int) for model in "ab"]
    hits = [c == (y if says is None else says) for c in called]
    kept = np.ones(len(y), bool) if of is None else y == of
    only = int((hits[0] & ~hits[1] & kept).sum())
    other = int((hits[1] & ~hits[0] & kept).sum())
    assert line.p == pytest.approx(stats.binomtest(only, only + other, 0.5).pvalue, rel=1e-10)
    assert line.difference == pytest.approx((only - other) / kept.sum(), abs=1e-15)
    assert line.low <= line.difference <= line.high
    lower_is_better = metric in {sm.FalseNegativeRate, sm.FalsePositiveRate}
    if line.p < 0.05:
        assert line.verdict == f"{'ab'[(line.difference > 0) == lower_is_better]} better"


def test_labels_and_scores_at_a_threshold_are_compared_alike():
    rows = binary(300)
    (cut,) = duel({"m": sm.Recall(threshold=0.5)}, rows).compute()
    named = {
        "y_true": np.array(["no", "yes"])[rows["y_true"]],
        **{m: np.array(["no", "yes"])[(rows[m] >= 0.5).astype(int)] for m in "ab"},
    }
    (labels,) = duel({"m": sm.Recall(pos_label="yes")}, named).compute()
    assert labels == cut


@pytest.mark.parametrize("weighted", some([True, False], every=2))
def test_the_variance_of_counts_is_the_sum_of_squares_of_what_each_row_does(weighted):
    rows = binary(40)
    rng = np.random.default_rng(1)
    weight = rng.integers(1, 5, 40) / 4 if weighted else None
    (line,) = duel({"f1": sm.F1(threshold=0.5)}, rows, weight=weight).compute()
    w = np.ones(40) if weight is None else weight
    adds = []
    for model in "ab":
        called = rows[model] >= 0.5
        slopes = []
        for i in range(40):
            ends = []
            for step in (1e-5, -1e-5):
                moved = w.copy()
                moved[i] += step
                ends.append(f1_score(rows["y_true"], called, sample_weight=moved))
            slopes.append((ends[0] - ends[1]) / 2e-5)
        adds.append(np.array(slopes))
    expected = np.sqrt((w**2 * (adds[0] - adds[1]) ** 2).sum())
    df = w.sum() ** 2 / (w**2).sum() - 1 if weighted else np.inf
    scale = stats.t.isf(0.025, df) / stats.norm.isf(0.025)
    assert error(line) == pytest.approx(scale * expected, rel=1e-5)
    assert line.p == pytest.approx(2 * stats.t.sf(abs(line.difference) / expected, df), rel=1e-3)


def test_shares_of_the_top_k_have_the_exact_p_of_mcnemar():
    rng = np.random.default_rng(9)
    y = rng.integers(0, 4, 200)
    scores = {m: rng.random((200, 4)) + s * np.eye(4)[y] for m, s in (("a", 0.5), ("b", 0.2))}
    (line,) = duel({"top": sm.TopKAccuracy(k=2)}, {"y_true": y, **scores}).compute()
    hits = [(np.argsort(-scores[m], axis=1)[:, :2] == y[:, None]).any(axis=1) for m in "ab"]
    only, other = int((hits[0] & ~hits[1]).sum()), int((hits[1] & ~hits[0]).sum())
    assert line.p == pytest.approx(stats.binomtest(only, only + other).pvalue, rel=1e-10)
    assert line.test == "McNemar, exact"


# --- curves --------------------------------------------------------------------------------------


def delong(y, a, b):
    """Return difference and variance of two areas, by comparing every two rows."""
    parts = []
    for scores in (a, b):
        positive, negative = scores[y == 1][:, None], scores[y == 0][None, :]
        parts.append((positive > negative) + 0.5 * (positive == negative))
    gap = parts[0] - parts[1]
    by_positive, by_negative = gap.mean(axis=1), gap.mean(axis=0)
    variance = by_positive.var(ddof=1) / len(by_positive)
    return gap.mean(), variance + by_negative.var(ddof=1) / len(by_negative)


@pytest.mark.parametrize("digits", [1, 16])
def test_areas_have_the_paired_test_of_delong(digits):
    rows = binary(250, seed=3)
    rows |= {model: np.round(rows[model], digits) for model in "ab"}
    (line,) = duel({"auc": sm.ROCAUC()}, rows).compute()
    difference, variance = delong(rows["y_true"], rows["a"], rows["b"])
    assert line.difference == pytest.approx(difference, rel=1e-12)
    assert error(line) == pytest.approx(np.sqrt(variance), rel=1e-9)


def test_an_area_past_the_sample_is_as_sure_as_by_all_rows():
    rows = binary(20_000, seed=4)
    (line,) = duel({"auc": sm.ROCAUC()}, rows, max_rows=512).compute()
    (whole,) = duel({"auc": sm.ROCAUC()}, rows, max_rows=1 << 15).compute()
    _, variance = delong(rows["y_true"][:3000], rows["a"][:3000], rows["b"][:3000])
    assert error(whole) == pytest.approx(np.sqrt(variance * 3000 / 20_000), rel=0.06)
    assert error(line) == pytest.approx(error(whole), rel=0.15)
    assert line.difference == whole.difference


@pytest.mark.parametrize("weighted", some([True, False], every=2))
def test_average_precision_varies_as_its_derivatives_by_each_row_say(weighted):
    rows = binary(60, seed=5)
    weight = np.random.default_rng(2).integers(1, 5, 60) / 2 if weighted else None
    (line,) = duel({"ap": sm.AveragePrecision()}, rows, weight=weight).compute()
    w = np.ones(60) if weight is None else weight
    adds = []
    for model in "ab":
        slopes = []
        for i in range(60):
            ends = []
            for step in (1e-5, -1e-5):
                moved = w.copy()
                moved[i] += step
                ends.append(
                    average_precision_score(rows["y_true"], rows[model], sample_weight=moved)
                )
            slopes.append((ends[0] - ends[1]) / 2e-5)
        adds.append(np.array(slopes))
    expected = np.sqrt((w**2 * (adds[0] - adds[1]) ** 2).sum())
    df = freedom(w[rows["y_true"] == 0], w[rows["y_true"] == 1]) if weighted else None
    assert error(line, df=df) == pytest.approx(expected, rel=1e-5)


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
@pytest.mark.parametrize("seen", some([2, 3], every=2), ids=["a class without rows", "all classes"])
def test_weighted_areas_and_averages_of_classes_vary_as_their_rows(seen):
    rng = np.random.default_rng(6)
    y = rng.integers(0, seen, 30)
    scores = {
        m: rng.dirichlet(np.ones(3), 30) + s * np.eye(3)[y] for m, s in (("a", 0.8), ("b", 0.4))
    }
    scores = {m: s / s.sum(axis=1, keepdims=True) for m, s in scores.items()}
    weight = rng.integers(1, 4, 30).astype(float)
    labels = (0, 1, 2)
    metrics = {
        "macro": sm.ROCAUC(labels=labels),
        "weighted": sm.AveragePrecision(labels=labels, average="weighted"),
    }
    lines = duel(metrics, {"y_true": y, **scores}, weight=weight).compute()
    for line, metric in zip(lines, metrics.values(), strict=True):
        adds = []
        for model in "ab":
            slopes = []
            for i in range(30):
                ends = []
                for step in (1e-5, -1e-5):
                    moved = weight.copy()
                    moved[i] += step
                    part = metric.copy().update(y, scores[model], sample_weight=moved)
                    ends.append(part.compute())
                slopes.append((ends[0] - ends[1]) / 2e-5)
            adds.append(np.array(slopes))
        expected = np.sqrt((weight**2 * (adds[0] - adds[1]) ** 2).sum())
        assert error(line, df=freedom(weight)) == pytest.approx(expected, rel=1e-4)


HEAVY = {
    "loss": (sm.MAE(), lambda rng, n: (rng.random(n), *rng.random((2, n)))),
    "area": (sm.ROCAUC(), lambda rng, n: (rng.integers(0, 2, n), *rng.random((2, n)))),
    "texts": (sm.ExactMatch(), lambda rng, n: rng.choice(["yes", "no"], (3, n))),
}


@pytest.mark.parametrize("kind", HEAVY)
@pytest.mark.parametrize("heavy", [100.0, 1e4, 1e6])
def test_one_heavy_row_decides_nothing(kind, heavy):
    metric, draw = HEAVY[kind]
    weight, wrong = np.ones(100), 0
    weight[0] = heavy
    for seed in range(40):
        y, a, b = draw(np.random.default_rng(seed), 100)
        shared = "reference" if kind == "texts" else "y_true"
        suite = sm.MetricSet({"m": metric.copy()}, columns={"sample_weight": "w"})
        found = sm.Comparison(suite, ["a", "b"])
        (line,) = found.update({shared: y, "a": a, "b": b, "w": weight}).compute()
        wrong += line.p <= 0.05
    assert wrong <= 6  # 40 equal pairs: more have a chance of 1 % at 5 %


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
@pytest.mark.parametrize("weight", [[1e200, 1, 1, 1, 1, 1], [1e-200] * 6])
@pytest.mark.parametrize("metric", [sm.ROCAUC(), sm.AveragePrecision(), sm.R2(), sm.LogLoss()])
def test_weights_whose_squares_are_no_float64_leave_a_difference_without_limits(metric, weight):
    suite = sm.MetricSet({"m": metric}, columns={"sample_weight": "w"})
    rows = {"y_true": [0, 1, 1, 0, 1, 0], "w": weight}
    rows |= {"a": [0.1, 0.9, 0.4, 0.2, 0.8, 0.6], "b": [0.3, 0.4, 0.6, 0.7, 0.9, 0.1]}
    (line,) = sm.Comparison(suite, ["a", "b"]).update(rows).compute()
    assert math.isfinite(line.difference)
    assert not line.p <= 0.05


# --- losses --------------------------------------------------------------------------------------


def regression(n, seed=0):
    rng = np.random.default_rng(seed)
    y, common = rng.normal(size=(2, n))
    a, b = (y + 0.5 * common + s * rng.normal(size=n) for s in (0.5, 0.6))
    return {"y_true": y, "a": a, "b": b}


@pytest.mark.parametrize(
    ("metric", "loss"),
    [
        (sm.MAE(), lambda y, p: np.abs(y - p)),
        (sm.MSE(), lambda y, p: (y - p) ** 2),
        (sm.MeanError(), lambda y, p: p - y),
        (sm.PinballLoss(alpha=0.9), lambda y, p: np.maximum(0.9 * (y - p), -0.1 * (y - p))),
    ],
)
def test_mean_losses_have_the_paired_t_test(metric, loss):
    rows = regression(200)
    (line,) = duel({"m": metric}, rows).compute(confidence=0.9)
    found = stats.ttest_rel(*(loss(rows["y_true"], rows[model]) for model in "ab"))
    limits = found.confidence_interval(0.9)
    assert line.p == pytest.approx(found.pvalue, rel=1e-8)
    assert line[6:8] == pytest.approx(limits, rel=1e-8)


def test_probabilities_lose_in_pairs_too():
    rows = binary(200)
    lines = duel({"log": sm.LogLoss(), "brier": sm.BrierScore()}, rows).compute()
    y = rows["y_true"]
    log = [-np.log(np.where(y == 1, rows[m], 1 - rows[m])) for m in "ab"]
    brier = [(y - rows[m]) ** 2 for m in "ab"]
    for line, losses in zip(lines, (log, brier), strict=True):
        assert line.p == pytest.approx(stats.ttest_rel(*losses).pvalue, rel=1e-8)
        assert line.verdict in {"a better", "no evidence"}


@pytest.mark.parametrize("weighted", some([True, False], every=2))
def test_roots_and_weighted_means_are_linear_in_their_rows(weighted):
    rows = regression(150, seed=2)
    w = np.random.default_rng(3).integers(1, 5, 150) / 4 if weighted else np.ones(150)
    (line,) = duel({"rmse": sm.RMSE()}, rows, weight=w if weighted else None).compute()
    adds = []
    for model in "ab":
        squares = (rows["y_true"] - rows[model]) ** 2
        mean = (w * squares).sum() / w.sum()
        adds.append((squares - mean) / (2 * np.sqrt(mean)))
    expected = np.sqrt((w**2 * (adds[0] - adds[1]) ** 2).sum()) / w.sum() * np.sqrt(150 / 149)
    worth = w.sum() ** 2 / (w**2).sum()  # in rows of equal weight
    assert error(line, df=worth - 1) == pytest.approx(expected, rel=1e-9)


def test_losses_far_from_zero_and_far_apart_do_not_cancel():
    rng = np.random.default_rng(0)
    y = np.zeros(100)
    base = 1e9 + rng.normal(size=100)
    rows = {"y_true": y, "a": base, "b": base + rng.normal(size=100) * 1e-3}
    (line,) = duel({"mae": sm.MAE()}, rows).compute()
    found = stats.ttest_rel(rows["a"], rows["b"])
    assert line.p == pytest.approx(found.pvalue, rel=1e-5)
    huge = {"y_true": y, "a": base * 1e60, "b": base * 2e60}
    (line,) = duel({"mse": sm.MSE()}, huge).compute()
    assert line.verdict == "a better"
    beyond = {"y_true": y, "a": base * 1e140, "b": base * 2e140}
    (line,) = duel({"mse": sm.MSE()}, beyond).compute()  # the variance is beyond float64
    assert line.verdict == "a better"
    assert -np.inf < line.low < line.difference < line.high < 0


# --- all others ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "metric",
    some([sm.R2(), sm.PearsonCorrelation(), sm.WAPE(), sm.ExplainedVariance(), sm.SpearmanRho()]),
    ids=lambda metric: type(metric).__name__,
)
def test_other_metrics_vary_as_samples_drawn_again_do(metric):
    rows = regression(600, seed=7)
    (line,) = duel({"m": metric}, rows).compute()
    rng, gaps = np.random.default_rng(0), []
    for _ in range(300):
        drawn = rng.integers(0, 600, 600)
        y = rows["y_true"][drawn]
        a, b = (metric.copy().update(y, rows[model][drawn]).compute() for model in "ab")
        gaps.append(a - b)
    assert error(line, df=63) == pytest.approx(np.std(gaps), rel=0.25)


def test_samples_of_all_rows_say_what_all_rows_say():
    rows = regression(30_000, seed=8)
    (few,) = duel({"r2": sm.R2()}, rows, max_rows=2048).compute()
    (all_,) = duel({"r2": sm.R2()}, rows, max_rows=1 << 15).compute()
    assert few.difference == all_.difference
    assert error(few, df=63) == pytest.approx(error(all_, df=63), rel=0.35)


def ratings(n, seed=1):
    rng = np.random.default_rng(seed)
    y = rng.integers(1, 6, n)
    a, b = (np.clip(y + rng.integers(-off, off + 1, n), 1, 5) for off in (1, 2))
    return {"y_true": y, "a": a, "b": b}


@pytest.mark.parametrize(
    "metric",
    some([sm.R2(), sm.PearsonCorrelation(), sm.SpearmanRho(), sm.ExplainedVariance()]),
    ids=lambda metric: type(metric).__name__,
)
def test_limits_of_rows_that_repeat_are_those_of_samples_drawn_again(metric):
    rows = ratings(2000)
    (line,) = duel({"m": metric}, rows).compute()
    rng, gaps = np.random.default_rng(0), []
    for _ in range(200):
        at = rng.integers(0, 2000, 2000)
        drawn = {name: column[at] for name, column in rows.items()}
        a, b = (metric.copy().update(drawn["y_true"], drawn[m]).compute() for m in "ab")
        gaps.append(a - b)
    assert error(line, df=63) == pytest.approx(np.std(gaps), rel=0.3)


def test_limits_of_scores_of_few_digits_are_those_of_samples_drawn_again():
    y, *scores = binary(2000).values()
    a, b = (np.round(each, 1) for each in scores)
    metrics = {"ks": sm.KolmogorovSmirnov(), "ece": sm.CalibrationError()}
    lines = duel(metrics, {"y_true": y, "a": a, "b": b}).compute()
    rng, gaps = np.random.default_rng(0), []
    for _ in range(200):
        at = rng.integers(0, 2000, 2000)
        first, second = (sm.MetricSet(metrics).update(y_true=y[at], y_score=s[at]) for s in (a, b))
        one, other = first.compute(), second.compute()
        gaps.append([one[name] - other[name] for name in metrics])
    for line, spread in zip(lines, np.std(gaps, axis=0), strict=True):
        assert error(line, df=63) == pytest.approx(spread, rel=0.35)


@pytest.mark.parametrize("metric", [sm.R2(), sm.KendallTau()], ids=["weights", "no weights"])
def test_limits_of_doubled_rows_shrink_by_the_root_of_two(metric):
    found = duel({"m": metric}, ratings(2000))
    (line,) = found.compute()
    for _ in range(20):
        found = found.merge(found.copy())
    (doubled,) = found.compute()
    assert doubled.difference == pytest.approx(line.difference)
    assert error(doubled) == pytest.approx(error(line) / 2**10, rel=0.4)


def test_limits_of_rows_that_repeat_do_not_depend_on_shards():
    rows = ratings(500)
    metrics = {"r2": sm.R2(), "tau": sm.KendallTau()}
    parts = [duel(metrics, {n: c[i::3] for n, c in rows.items()}) for i in (2, 0, 1)]
    assert sm.merge(parts).compute() == duel(metrics, rows).compute()


def test_limits_are_within_what_values_can_differ_by():
    rows = {"y_true": [0, 1, 0, 1, 1], "a": [0.1, 0.9, 0.2, 0.8, 0.1], "b": [0.9, 0.1, 0.8, 0.1, 1]}
    rows = {name: column * 2 for name, column in rows.items()}
    for line in duel({"ks": sm.KolmogorovSmirnov(), "ece": sm.CalibrationError()}, rows).compute():
        assert -1 <= line.low <= line.difference <= line.high <= 1
    values = {"y_true": [1.0, 2.0, 3.0, 4.0], "a": [1.0, 2.0, 4.0, 3.0], "b": [4.0, 3.0, 2.0, 1.5]}
    (line,) = duel({"r": sm.PearsonCorrelation()}, values).compute()
    assert line.difference <= line.high <= 2


# --- rankings ------------------------------------------------------------------------------------


def rankings(n, seed=0, models="abc"):
    rng = np.random.default_rng(seed)
    query, doc = np.repeat(np.arange(n), 12), np.tile(np.arange(12), n)
    relevance = rng.integers(0, 2, 12 * n)
    runs = {
        m: relevance * (0.6 - 0.2 * place) + rng.normal(size=12 * n)
        for place, m in enumerate(models)
    }
    return {"query": query, "doc": doc, "relevance": relevance, **runs}


def test_runs_are_compared_query_by_query_with_a_baseline():
    rows = rankings(40)
    made = duel({"ndcg": sm.NDCG(k=5)}, rows, models="abc", baseline="c")
    found = made.compute()
    assert [(line.model, line.against) for line in found] == [("a", "c"), ("b", "c")]
    gaps = {}
    for model in "ab":
        one, other = (made[m]["ndcg"].per_query() for m in (model, "c"))
        gaps[model] = np.array([one[query] - other[query] for query in one])
    for line in found:
        paired = stats.ttest_1samp(gaps[line.model], 0)
        assert line[6:8] == pytest.approx(paired.confidence_interval(), rel=1e-9)
        assert line.p == sign_flips(gaps[line.model])
        assert line.p == pytest.approx(paired.pvalue, abs=0.02)
    least, most = sorted(line.p for line in found)
    adjusted = {line.p: line.p_adjusted for line in found}
    assert adjusted[least] == min(1, 2 * least)
    assert adjusted[most] == max(2 * least, most)


def test_judgments_and_runs_may_come_apart():
    rows = rankings(20)
    ids = {name: rows[name] for name in ("query", "doc")}
    whole = duel({"map": sm.MAP()}, rows, models="abc")
    parts = sm.Comparison({"map": sm.MAP()}, {m: m for m in "abc"})
    parts.update({**ids, "relevance": rows["relevance"]})
    for model in "cab":
        parts.update({**ids, model: rows[model]})
    assert parts.compute() == whole.compute()


def test_a_null_score_is_a_document_that_a_run_has_not():
    query, doc = ["q", "q", "r", "r"], ["1", "2", "1", "2"]
    relevance = [1, None, 1, None]  # of what is retrieved only, nothing is judged
    table = {"query": query, "doc": doc, "relevance": relevance}
    made = sm.Comparison({"mrr": sm.MRR()}, {"a": "a", "b": "b"})
    made.update({**table, "a": [2.0, 1.0, 1.0, 2.0], "b": [1.0, None, None, 2.0]})
    assert made["a"].compute() == {"mrr": 0.75}
    assert made["b"].compute() == {"mrr": 0.5}


def test_signs_are_flipped_in_all_ways_where_these_are_few():
    gaps = np.random.default_rng(1).normal(0.4, 1, 9)
    signs = np.array(np.meshgrid(*[[-1, 1]] * 9)).reshape(9, -1).T
    reached = np.abs(signs @ gaps) >= abs(gaps.sum()) * (1 - 1e-12)
    assert sign_flips(gaps) == reached.mean()


def test_signs_flipped_at_random_come_near_all_ways():
    gaps = np.random.default_rng(2).normal(0.4, 1, 16)
    signs = ((np.arange(1 << 16)[:, None] >> np.arange(16)) & 1) * 2 - 1
    exact = (np.abs(signs @ gaps) >= abs(gaps.sum()) * (1 - 1e-12)).mean()
    assert sign_flips(gaps) == pytest.approx(exact, abs=4 * np.sqrt(exact / 10_000))
    assert sign_flips(gaps[::-1]) == sign_flips(gaps)
    assert sign_flips(np.full(50, 1.0)) == 1 / 10_000


def test_roots_of_several_outputs_are_told_to_be_compared_otherwise():
    y = np.zeros((5, 2))
    rows = {"y_true": y, "a": y + 1, "b": y + np.arange(10).reshape(5, 2)}
    made = duel({"rmse": sm.RMSE()}, rows)
    with pytest.raises(sm.StreamMetricsError, match="compare the mean losses, such as MSE"):
        made.compute()
    (line,) = duel({"mae": sm.MAE()}, rows).compute()
    assert line.difference == 1 - 4.5


# --- the state -----------------------------------------------------------------------------------

EVERYTHING = {
    "accuracy": sm.Accuracy(threshold=0.5),
    "f1": sm.F1(threshold=0.4),
    "auc": sm.ROCAUC(),
    "ap": sm.AveragePrecision(),
    "loss": sm.LogLoss(),
    "ks": sm.KolmogorovSmirnov(),
}


@pytest.mark.parametrize("weighted", some([True, False], every=2))
def test_the_state_is_that_of_the_rows_however_they_come(weighted):
    rows = binary(3000)
    rng = np.random.default_rng(0)
    if weighted:
        rows["sample_weight"] = rng.integers(1, 9, 3000) / 4
    columns = {"sample_weight": "sample_weight"} if weighted else {}
    empty = sm.Comparison(
        sm.MetricSet(EVERYTHING, columns=columns), {"a": "a", "b": "b"}, max_rows=200
    )
    whole = empty.copy().update(rows)
    for shards in (2, 20):
        shard = rng.integers(0, shards, 3000)
        parts = [
            empty.copy().update({n: values[shard == s] for n, values in rows.items()})
            for s in rng.permutation(shards)
        ]
        while len(parts) > 1:
            first = parts.pop(rng.integers(len(parts)))
            parts[rng.integers(len(parts))].merge(first)
        assert parts[0].to_bytes() == whole.to_bytes()
        assert parts[0].compute() == whole.compute()


def test_many_classes_and_text_merge_to_the_same_bytes():
    rng = np.random.default_rng(0)
    names = np.array([f"class {i}" for i in range(40)])
    rows = {name: names[rng.integers(0, 40, 900)] for name in ("y_true", "a", "b")}
    empty = sm.Comparison({"f1": sm.F1(average="macro")}, {"a": "a", "b": "b"})
    whole = empty.copy().update(rows)
    parts = [empty.copy().update({n: v[i::9] for n, v in rows.items()}) for i in range(9)]
    assert sm.merge(parts[::-1]).to_bytes() == whole.to_bytes()


def test_it_is_saved_copied_pickled_and_reset_as_a_metric(tmp_path):
    made = duel(EVERYTHING, binary(100), baseline="b")
    found = made.compute()
    made.save(tmp_path / "duel.state")
    for again in (
        sm.load(tmp_path / "duel.state"),
        sm.from_bytes(made.to_bytes()),
        pickle.loads(pickle.dumps(made)),
        made.copy(),
    ):
        assert again == made
        assert again.compute() == found
    assert made.n_rows == 100
    assert made.nbytes > 0
    assert again.reset().n_rows == 0
    assert again.merge(made) == made


def test_it_counts_once_in_a_ledger():
    made = duel(EVERYTHING, binary(50))
    other = duel(EVERYTHING, binary(60, seed=1))
    ledger = sm.Ledger()
    for shard in (made, other, made):
        ledger.add("one" if shard is made else "two", shard)
    assert ledger.merged() == sm.merge([made, other])


@pytest.mark.long
def test_files_are_read_by_several_processes(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    rows = binary(400)
    table = pa.table({"label": rows["y_true"], "a": rows["a"], "b": rows["b"]})
    for part in range(2):
        pq.write_table(table.slice(200 * part, 200), tmp_path / f"{part}.parquet")
    suite = sm.MetricSet(EVERYTHING, columns={"y_true": "label"})
    empty = sm.Comparison(suite, {"a": "a", "b": "b"})
    assert sm.evaluate(empty, tmp_path, workers=2) == empty.copy().update(table)


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metrics", "models", "options", "words"),
    [
        ({"auc": sm.ROCAUC()}, {"a": "x"}, {}, "at least two"),
        ({"auc": sm.ROCAUC()}, {"a": "x", "b": "x"}, {}, "'a' and 'b' are read from the same"),
        ({"auc": sm.ROCAUC()}, {"a": "x", "b": "y"}, {"baseline": "c"}, "'c' is not a model"),
        ({"auc": sm.ROCAUC()}, {"a": "x", "b": "y"}, {"max_rows": 3}, "max_rows=3"),
        (
            {"roc": sm.ROCCurve()},
            {"a": "x", "b": "y"},
            {},
            r"'roc', ROCCurve\(\), cannot be compared",
        ),
        ({"f": sm.F1(average=None)}, {"a": "x", "b": "y"}, {}, "several numbers"),
        ({"n": sm.MASE()}, {"a": "x", "b": "y"}, {}, "'n', .* nothing is known of how it varies"),
        (
            {"n": sm.ConcordanceIndex()},
            {"a": "x", "b": "y"},
            {},
            "'n', .* nothing is known of how it varies",
        ),
        ({"n": sm.Count()}, {"a": "x", "b": "y"}, {}, "'n', .* cannot be compared"),
        ({"max": sm.MaxError()}, {"a": "x", "b": "y"}, {}, "how sure"),
        ({"k": sm.Purity()}, {"a": "x", "b": "y"}, {}, "nothing is known of how it varies"),
        ({"f": sm.F1(), "l": sm.LogLoss()}, {"a": "x", "b": "y"}, {}, "y_pred and y_score"),
        ({"auc": sm.ROCAUC()}, {"a": {"y_pred": "x"}, "b": "y"}, {}, "expected columns for"),
    ],
)
def test_what_cannot_be_compared_is_told(metrics, models, options, words):
    with pytest.raises(ValueError, match=words):
        sm.Comparison(metrics, models, **options)


@pytest.mark.parametrize("column", [1, ["x", 2], None])
def test_what_is_no_column_of_a_model_is_told(column):
    with pytest.raises(TypeError, match="is not a column: expected its name, or a list of names"):
        sm.Comparison({"auc": sm.ROCAUC()}, {"a": column, "b": "y"})


def test_a_suite_with_rows_is_refused():
    auc = sm.MetricSet({"auc": sm.ROCAUC()}).update(y_true=[0, 1], y_score=[0.1, 0.2])
    with pytest.raises(ValueError, match="already seen 2 rows"):
        sm.Comparison(auc, {"a": "x", "b": "y"})


def test_slices_of_a_comparison_are_refused():
    made = sm.Comparison({"auc": sm.ROCAUC()}, {"a": "a", "b": "b"})
    with pytest.raises(TypeError, match="one Comparison per slice"):
        sm.Slices(made, by=["country"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"b": [0.5]}, "differ in length"),
        ({"b": [0.5, np.nan, 0.25, 0.75]}, "b is missing"),
        ({"b": ["x", "y", "x", "y"]}, "b holds text"),
        ({"a": None}, "no column 'a'"),
    ],
)
def test_rows_that_are_not_whole_change_nothing(change, words):
    made = duel({"auc": sm.ROCAUC(), "loss": sm.LogLoss()}, binary(20))
    before = made.to_bytes()
    rows = {"y_true": [0, 1, 0, 1], "a": [0.5, 0.5, 0.25, 0.75], "b": [0.5, 0.5, 0.25, 0.75]}
    table = {name: values for name, values in (rows | change).items() if values is not None}
    with pytest.raises(sm.InvalidBatchError, match=words):
        made.update(table)
    assert made.to_bytes() == before


def test_rows_left_out_for_one_model_are_left_out_for_all():
    made = sm.Comparison({"mae": sm.MAE(nan_policy="omit")}, {"a": "a", "b": "b"})
    made.update(y_true=[1.0, 2.0, 3.0], a=[1.0, np.nan, 4.0], b=[1.0, 2.0, 5.0])
    assert (made.n_rows, made.n_omitted) == (2, 1)
    assert made["b"].compute() == {"mae": 1.0}


def test_comparisons_of_other_models_do_not_merge():
    one = sm.Comparison({"mae": sm.MAE()}, {"a": "a", "b": "b"})
    other = sm.Comparison({"mae": sm.MAE()}, {"a": "a", "c": "c"})
    with pytest.raises(sm.IncompatibleMetricsError, match=r"models are \['a', 'c'\] there"):
        one.merge(other)
    third = sm.Comparison({"mae": sm.MAE()}, {"a": "a", "b": "b"}, baseline="a")
    with pytest.raises(sm.IncompatibleMetricsError, match="baseline is 'a' there and None here"):
        one.merge(third)


def test_a_query_that_counts_for_one_run_only_is_told():
    metric = sm.MRR(unretrieved="skip")
    made = sm.Comparison({"mrr": metric}, {"a": "a", "b": "b"})
    made.update(query=[1, 2], doc=[1, 1], relevance=[1, 1], a=[0.5, 0.5], b=[0.5, None])
    with pytest.raises(sm.StreamMetricsError, match="1 of them, first 2, count for one only"):
        made.compute()


def test_a_run_without_any_result_is_told():
    made = sm.Comparison({"mrr": sm.MRR()}, {"a": "a", "b": "typo"})
    made.update(query=[1, 2], doc=[1, 1], relevance=[1, 1], a=[0.5, 0.5])
    with pytest.raises(sm.StreamMetricsError, match="no row has a score of 'b'"):
        made.compute()


# --- the result ----------------------------------------------------------------------------------


def test_the_result_is_a_table_for_people_and_machines():
    found = duel({"auc": sm.ROCAUC(), "loss": sm.LogLoss()}, binary(200)).compute()
    assert "within (95 %)" in repr(found)
    assert len(repr(found).splitlines()) == 4
    assert [line.metric for line in found["loss"]] == ["loss"]
    told = found.to_dict()
    assert told["confidence"] == 0.95
    assert told["values"]["auc"]["a"] == found[0].value
    assert told["differences"][0]["verdict"] == found[0].verdict
    frame = found.to_frame()
    assert frame.loc[("auc", "a", "b"), "p"] == found[0].p
    assert "<table>" in found._repr_html_()
    assert pickle.loads(pickle.dumps(found)) == found
    with pytest.raises(KeyError, match="no metric 'f1'"):
        found["f1"]


@pytest.mark.parametrize(
    "metric",
    [
        sm.ROCAUC(),
        sm.Accuracy(threshold=0.5),
        sm.Accuracy(),
        sm.MatthewsCorrcoef(),
        sm.F1(average="macro"),
        sm.Informedness(average="macro"),
    ],
)
def test_without_rows_nothing_is_said(metric):
    made = sm.Comparison({"it": metric}, {"a": "a", "b": "b"})
    with pytest.warns(sm.UndefinedMetricWarning, match="no rows were seen"):
        found = made.compute()
    assert [line.verdict for line in found] == ["no evidence"]


def test_equal_predictions_are_no_evidence():
    rows = binary(100)
    rows["b"] = rows["a"].copy()
    for line in duel(EVERYTHING, rows).compute():
        assert (line.difference, line.p, line.verdict) == (0.0, 1.0, "no evidence"), line


def test_limits_hold_for_whatever_the_exact_values_are():
    rows = binary(2000)
    (exact,) = duel({"auc": sm.ROCAUC()}, rows).compute()
    made = duel({"auc": sm.ROCAUC(max_bins=32)}, rows)
    (coarse,) = made.compute()
    widths = [made[m]["auc"].bounds() for m in "ab"]
    slack = sum(high - low for low, high in widths) / 2
    assert slack > 0
    assert coarse.low < exact.low - slack / 4
    assert coarse.high > exact.high + slack / 4
    assert coarse.p >= exact.p


def test_p_of_few_different_rows_is_near_that_of_fishers_exact_test():
    """One error in two rows is nothing rare: by limits at levels far beyond, p was 0.00002."""
    few, many = sm.Accuracy().update([1, 1], [1, 0]), sm.Accuracy().update([1] * 100, [1] * 100)
    (line,) = sm.compare(few, many)
    exact = stats.fisher_exact([[1, 1], [100, 0]]).pvalue
    assert line.p == pytest.approx(exact, rel=0.3)
    assert (line.p < 0.05) == (not line.low <= 0 <= line.high)


def test_values_beside_a_difference_say_which_rows_they_are_of():
    made = sm.Comparison({"mae": sm.MAE(nan_policy="omit")}, {"a": "a", "b": "b"})
    made.update(y_true=[1.0, 2.0, 3.0], a=[1.0, np.nan, 4.0], b=[1.0, 2.0, 5.0])
    found = made.compute()
    (line,) = found
    assert (line.value, line.other, line.n_rows, found.n_rows) == (0.5, 1.0, 2, 2)
    assert found.to_dict()["n_rows"] == found.to_dict()["differences"][0]["n_rows"] == 2
    assert str(found).splitlines()[-1] == "values of the 2 rows that all models have"
    assert str(pickle.loads(pickle.dumps(found))) == str(found)


def test_metrics_of_other_rows_have_their_own_count():
    suite = {"loss": sm.LogLoss(nan_policy="omit"), "f1": sm.F1(nan_policy="omit")}
    models = {m: {"y_score": f"{m}s", "y_pred": f"{m}p"} for m in "ab"}
    made = sm.Comparison(suite, models).update({
        "y_true": [0, 1, 1, 0], "as": [0.1, 0.2, 0.9, np.nan], "bs": [0.2, 0.6, 0.7, 0.4],
        "ap": [0, 1, 1, 1], "bp": [0, 1, 0, 0],
    })  # fmt: skip
    found = made.compute()
    assert {line.metric: line.n_rows for line in found} == {"loss": 3, "f1": 4}
    header, lines = found.grid()
    assert [line[header.index("rows")] for line in lines] == ["3", "4"]
    assert "that all models have" not in str(found)


def test_states_of_other_rows_say_how_many_each_has():
    one, other = (sm.Accuracy().update([1] * n, [1] * n) for n in (90, 80))
    found = sm.compare(one, other, names=("monday", "tuesday"))
    assert found[0].n_rows is None
    assert found.to_dict()["n_rows"] == {"monday": 90, "tuesday": 80}
    said = "values of each one's own rows: 90 of monday, 80 of tuesday"
    assert str(found).splitlines()[-1] == said


CONSTANT = [  # metrics, labels, and predictions of two models whose losses differ by a constant
    (sm.LogLoss(), [1, 0], [0.9, 0.1], [0.1, 0.9]),
    (sm.MAE(), [1.1, 2.3], [1.2, 2.4], [1.3, 2.5]),
    (sm.RMSE(), [1.1, 2.3], [1.2, 2.4], [1.3, 2.5]),
    (sm.MAE(), [1.0, 2.0], [1.0, 2.0], [2.0, 3.0]),
    (sm.MAE(), [0.3, 19.7], [0.3 + 0.1, 19.7 + 0.1], [0.3 + 0.2, 19.7 + 0.2]),
    (sm.MSE(), [1.0, 2.0], [1.0 + 0.1, 2.0 + 0.1], [1.0 + 0.2, 2.0 + 0.2]),
]


@pytest.mark.parametrize(("metric", "true", "one", "other"), CONSTANT)
@pytest.mark.parametrize("copies", [1, 3, 50])
def test_differences_that_do_not_vary_are_judged_by_their_signs(metric, true, one, other, copies):
    """The rounding of losses is no variance: two such rows once had a p of 6e-17."""
    duel = sm.Comparison({"m": metric}, {"a": "one", "b": "other"})
    duel.update(y_true=true * copies, one=one * copies, other=other * copies)
    (line,) = duel.compute()
    assert line.test == "equal signs"
    assert line.p == 2.0 ** (1 - 2 * copies)
    limits = [line.low, line.high]
    known = line.p < 0.05
    assert limits == [line.difference] * 2 if known else np.isnan(limits).all()
    assert (line.verdict != "no evidence") == known


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
@pytest.mark.parametrize(
    "metric",
    [sm.MedianAbsoluteError(), sm.AbsoluteErrorQuantile(q=0.9), sm.NRMSE(normalization="mean")],
)
def test_one_row_has_no_limits(metric):
    duel = sm.Comparison({"m": metric}, {"a": "one", "b": "other"})
    (line,) = duel.update(y_true=[2.0], one=[1.0], other=[4.0]).compute()
    assert math.isfinite(line.difference)
    assert np.isnan([line.low, line.high, line.p]).all()


def test_every_metric_that_can_be_compared_is_one_number():
    for oracle in ORACLES:
        try:
            sm.Comparison({"m": oracle.metric}, {"a": "one", "b": "other"})
        except (ValueError, TypeError):
            continue
        rows = oracle.rows(np.random.default_rng(0), oracle.n)
        rows.pop("sample_weight", None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = oracle.metric.copy().update(**rows).compute()
        assert isinstance(value, float), oracle.id


@pytest.mark.parametrize(("copies", "known"), [(1, False), (3, True)])
def test_models_that_agree_on_few_rows_have_no_limits(copies, known):
    duel = sm.Comparison({"loss": sm.LogLoss()}, {"a": "one", "b": "other"})
    scores = [0.9, 0.2] * copies
    (line,) = duel.update(y_true=[1, 0] * copies, one=scores, other=scores).compute()
    assert (line.difference, line.p) == (0.0, 1.0)
    assert np.isfinite([line.low, line.high]).all() == known
    assert math.isnan(duel.detectable()["loss"])
    with pytest.raises(sm.NoConfidenceError, match="its variance cannot be estimated"):
        sm.units_needed(duel, 0.1)


AGREEING = [
    sm.Accuracy(threshold=0.5), sm.F1(threshold=0.5), sm.Precision(threshold=0.5),
    sm.MatthewsCorrcoef(threshold=0.5), sm.ROCAUC(), sm.AveragePrecision(), sm.LogLoss(),
    sm.KolmogorovSmirnov(),
]  # fmt: skip


@pytest.mark.parametrize("metric", AGREEING, ids=repr)
@pytest.mark.parametrize(("copies", "known"), [(1, False), (3, True)])
def test_models_that_agree_on_all_rows_are_judged_alike(metric, copies, known):
    """Two such rows once gave the F1 limits of 0 to 0, and the log loss none."""
    true, score = [1, 0, 1, 0] * copies, [0.9, 0.2, 0.4, 0.6] * copies
    duel = sm.Comparison({"m": metric}, ["a", "b"]).update(y_true=true, a=score, b=score)
    (line,) = duel.compute()
    assert (line.difference, line.p, line.verdict) == (0.0, 1.0, "no evidence")
    if isinstance(metric, sm.Accuracy):  # Bonett and Price
        assert line.test == "McNemar, exact"
        assert line.low < 0 < line.high
    else:
        assert line.test == "equal signs"
        assert np.isfinite([line.low, line.high]).all() == known


@pytest.mark.parametrize("metric", [sm.RMSE(), sm.MSE(), sm.MAE(), sm.MeanError(), sm.R2()])
@pytest.mark.parametrize("power", [-1000, -560, -280, 280, 500, 560, 1000])
def test_differences_at_any_magnitude_are_the_same_or_have_no_limits(metric, power):
    """Squares of errors near 1e-170 underflow, and gave limits of no width."""
    rng = np.random.default_rng(0)
    true = rng.normal(size=60)
    rows = {"y_true": true, "a": true + rng.normal(size=60) / 3, "b": true + rng.normal(size=60)}
    (line,) = sm.Comparison({"m": metric}, ["a", "b"]).update(rows).compute()
    scaled = sm.Comparison({"m": metric}, ["a", "b"])
    scaled.update({name: np.ldexp(column, power) for name, column in rows.items()})
    degree = {"MSE": 2, "R2": 0}.get(type(metric).__name__, 1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        (found,) = scaled.compute()
    if math.isnan(found.low):
        assert isinstance(metric, sm.RMSE | sm.MSE)
        assert abs(power) > 500
        assert np.isnan([found.high, found.p]).all()
        assert caught or math.isnan(found.difference)
        return
    numbers = np.array([found.difference, found.low, found.high])
    expected = [line.difference, line.low, line.high]
    np.testing.assert_allclose(np.ldexp(numbers, -power * degree), expected, rtol=1e-9)
    assert found.p == pytest.approx(line.p, rel=1e-9)


def test_losses_of_outputs_with_weights_have_the_difference_of_the_metric():
    rng = np.random.default_rng(0)
    y = rng.standard_normal((200, 2))
    a, b = (y + rng.standard_normal((200, 2)) * [scale, 1.0] for scale in (0.1, 0.5))
    metric = sm.MSE(multioutput=(0.9, 0.1))
    line = sm.Comparison({"mse": metric}, ["a", "b"]).update(y_true=y, a=a, b=b).compute()[0]
    one, other = (metric.copy().update(y, p).compute() for p in (a, b))
    assert line.difference == pytest.approx(one - other, rel=1e-12)
    assert line.low < line.difference < line.high < 0


def test_one_heavy_row_is_no_evidence():
    """With a weight of 10,000 among 400 rows p was 3e-156, as if all of them told the same."""
    rng = np.random.default_rng(0)
    true = rng.integers(0, 2, 400)
    rows = {name: np.where(rng.random(400) < 0.8, true, 1 - true) for name in "ab"}
    rows["a"][0], rows["b"][0] = true[0], 1 - true[0]
    weight = np.ones(400)
    metrics = {"right": sm.Accuracy(), "balanced": sm.BalancedAccuracy(), "error": sm.MAE()}
    for heavy in (1e4, 1e18):
        weight[0] = heavy
        duel = sm.Comparison(metrics, ["a", "b"])
        for line in duel.update(y_true=true, **rows, sample_weight=weight).compute():
            assert line.p > 0.01


def test_costs_and_scores_of_ordered_classes_are_compared():
    rng = np.random.default_rng(0)
    true = rng.integers(0, 3, 200)
    scores = {name: rng.dirichlet([1, 1, 1], 200) for name in "ab"}
    scores["a"][np.arange(200), true] += 0.5
    scores = {name: each / each.sum(axis=1, keepdims=True) for name, each in scores.items()}
    (line,) = (
        sm.Comparison({"m": sm.RankedProbabilityScore()}, ["a", "b"])
        .update(y_true=true, **scores)
        .compute()
    )
    assert line.verdict == "a better"
    cost = sm.ExpectedCost(cost=((0, 1, 1), (5, 0, 1), (1, 1, 0)))
    (line,) = (
        sm.Comparison({"m": cost}, ["a", "b"])
        .update(y_true=true, **{name: each.argmax(axis=1) for name, each in scores.items()})
        .compute()
    )
    assert line.verdict == "a better"


def test_few_differing_rows_of_a_rare_class_are_no_evidence():
    """Their variance was taken as known: one row of 500 gave p = 1e-300."""
    true = np.zeros(500, int)
    true[:2] = 1
    metrics = {
        "kappa": sm.CohenKappa(), "f1": sm.F1(), "macro": sm.F1(average="macro"),
        "balanced": sm.BalancedAccuracy(), "informed": sm.Informedness(),
    }  # fmt: skip
    for positives in (1, 2):
        right, none = true.copy(), np.zeros(500, int)
        right[positives:2] = 0
        duel = sm.Comparison(metrics, ["a", "b"]).update(y_true=true, a=right, b=none)
        for line in duel.compute():
            assert line.p >= 2.0 ** (1 - positives)
            assert line.low < 0 < line.high


@pytest.mark.long
def test_equal_models_seldom_differ_where_a_class_is_rare():
    rng, found = np.random.default_rng(2), []
    metrics = {"kappa": sm.CohenKappa(), "macro": sm.F1(average="macro"), "f1": sm.F1()}
    for _ in range(300):
        true = (rng.random(500) < 0.01).astype(int)
        true[:2] = 1
        models = [
            np.where(true == 1, rng.random(500) < 0.6, rng.random(500) > 0.999).astype(int)
            for _ in "ab"
        ]
        comparison = sm.Comparison(metrics, ["a", "b"])
        lines = comparison.update(y_true=true, a=models[0], b=models[1]).compute()
        found.append([line.p < 0.05 for line in lines])
    assert (np.mean(found, axis=0) < 0.09).all()  # three standard errors of 0.05 are 0.038


def test_means_of_texts_are_compared_by_the_paired_t_test_of_their_rows():
    rng, words = np.random.default_rng(0), list("abcdefghi")
    table = {"reference": [" ".join(rng.choice(words, 4)) for _ in range(60)]}
    for model, right in (("a", 0.8), ("b", 0.6)):
        table[model] = [
            " ".join(w if rng.random() < right else rng.choice(words) for w in text.split())
            for text in table["reference"]
        ]
    metrics = {"f1": sm.TokenF1(), "rouge": sm.RougeL(), "distance": sm.ExtendedEditDistance()}
    for line in sm.Comparison(metrics, ["a", "b"]).update(table).compute():
        one, other = (
            [metrics[line.metric].copy().update([r], [p]).compute() for r, p in each]
            for each in (zip(table["reference"], table[model], strict=True) for model in "ab")
        )
        test = stats.ttest_rel(one, other)
        assert line.p == pytest.approx(test.pvalue, rel=1e-9)
        assert (line.low, line.high) == pytest.approx(tuple(test.confidence_interval()), rel=1e-9)
    with pytest.raises(ValueError, match="cannot be compared: nothing is known of how it varies"):
        sm.Comparison({"bleu": sm.BLEU()}, ["a", "b"])
