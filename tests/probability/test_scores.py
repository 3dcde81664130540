"""Score metrics beyond the oracle table: real data, weights, extremes, refusals, sharing."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import sklearn.metrics as sk
from kinds.rows import statistics_of
from oracles.probability import pr_area
from thinning import some

import streammetrics as sm
from streammetrics.metrics.scores import base as view
from streammetrics.statistics.histograms import ScoreHistogram
from streammetrics.statistics.probabilities import ProbabilityLossSum
from streammetrics.testing import check_laws

SCALARS = [
    sm.ROCAUC(),
    sm.ROCAUC(max_fpr=0.4),
    sm.AveragePrecision(),
    sm.PRAUC(),
    sm.KolmogorovSmirnov(),
    sm.RecallAtPrecision(p=0.5),
    sm.PrecisionAtRecall(r=0.5),
    sm.SensitivityAtSpecificity(s=0.5),
]
CALIBRATION = [sm.CalibrationError(), sm.CalibrationError(norm="max"), sm.CalibrationCurve()]
CURVES = [sm.ROCCurve(), sm.PrecisionRecallCurve()]
LOSSES = [sm.LogLoss(), sm.LogLoss(from_logits=True), sm.BrierScore()]
EVERY = [*SCALARS, *CALIBRATION, *CURVES, *LOSSES]


def names(metric):
    return repr(metric).partition(" <")[0]


def made(metric, **options):
    """Return an empty metric like this one with other parameters."""
    return type(metric)(**{**metric.config, **options})


@pytest.fixture(scope="module")
def adult():
    folder = Path(__file__).parents[2] / "examples" / "data"
    pd = pytest.importorskip("pandas")
    path = folder / "adult_income_predictions.parquet"
    if not path.exists():
        pytest.skip("the adult income predictions are not among the examples")
    return pd.read_parquet(path)


def test_adult_income_to_the_last_digits(adult):
    auc = sm.ROCAUC().update(adult.label, adult.score).compute()
    assert auc == pytest.approx(0.9287288086187685, abs=2e-16)
    auc = sm.ROCAUC().update(adult.label, adult.baseline_score).compute()
    assert auc == pytest.approx(0.9065411816952464, abs=2e-16)
    ap = sm.AveragePrecision().update(adult.label, adult.score).compute()
    assert ap == pytest.approx(0.8288894106150219, abs=1e-15)


def test_adult_income_with_census_weights(adult):
    options = {"sample_weight": adult.weight / 3}
    for metric, reference in (
        (sm.ROCAUC(), sk.roc_auc_score),
        (sm.AveragePrecision(), sk.average_precision_score),
        (sm.PRAUC(), pr_area),
        (sm.LogLoss(), sk.log_loss),
        (sm.BrierScore(), sk.brier_score_loss),
    ):
        value = metric.update(adult.label, adult.score, **options).compute()
        assert value == pytest.approx(reference(adult.label, adult.score, **options), rel=1e-12)


def test_small_budgets_hold_the_value_of_adult_income(adult):
    widths = []
    for max_bins in (50, 500, 5000):
        metric = sm.ROCAUC(max_bins=max_bins).update(adult.label, adult.score)
        low, high = metric.bounds()
        assert not metric.exact
        assert low < 0.9287288086187685 < high
        widths.append(high - low)
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < 5e-4


def test_area_is_correctly_rounded():
    rng = np.random.default_rng(1)
    label, score = rng.random(300) < 0.3, rng.integers(0, 40, 300)
    positive, negative = score[label][:, None], score[~label][None]
    pairs = 2 * np.sum(positive > negative) + np.sum(positive == negative)
    expected = Fraction(int(pairs), 2 * positive.size * negative.size)
    assert sm.ROCAUC().update(label, score).compute() == float(expected)


@pytest.mark.parametrize("metric", EVERY, ids=names)
def test_weights_are_repeated_rows(metric):
    if "spread" in metric.config:  # two rows are surer than one that counts twice
        metric = type(metric)(**{**metric.config, "spread": False})
    rng = np.random.default_rng(2)
    label, score = rng.integers(0, 2, 50), rng.random(50).round(1)
    times = rng.integers(0, 4, 50)
    weighted = made(metric).update(label, score, sample_weight=times)
    repeated = made(metric).update(np.repeat(label, times), np.repeat(score, times))
    weighted_state, repeated_state = (statistics_of(m)[0].arrays() for m in (weighted, repeated))
    # But for their squares: two rows are surer than one that counts twice.
    weighted_state = {k: v for k, v in weighted_state.items() if not k.startswith("squares/")}
    assert weighted_state.keys() == repeated_state.keys()
    for key, array in weighted_state.items():
        assert array.tobytes() == repeated_state[key].tobytes()


@pytest.mark.parametrize(
    ("metric", "weight"), some(product([*SCALARS, *CALIBRATION, *CURVES], [None, 0.1]), every=7)
)
def test_laws_hold_past_the_budget(metric, weight):
    rng = np.random.default_rng(3)
    score = rng.random(60) ** 4
    rows = {"y_true": rng.random(60) < score, "y_score": score}
    if weight:
        rows["sample_weight"] = rng.integers(1, 5, 60) * weight
    check_laws(made(metric, max_bins=7), rows, seed=4)
    classes = {**rows, "y_true": rng.integers(0, 3, 60), "y_score": rng.dirichlet([1, 1, 1], 60)}
    check_laws(made(metric, max_bins=7), classes, seed=4, trials=2)


@pytest.mark.parametrize("metric", EVERY, ids=names)
def test_no_rows_are_undefined(metric):
    with pytest.warns(sm.UndefinedMetricWarning, match="no rows"):
        value = made(metric).compute()
    values = value if isinstance(value, tuple) else (value,)
    assert any(np.isnan(one).all() for one in values)


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("metric", SCALARS, ids=names)
def test_one_class_only(metric, label):
    metric = made(metric).update([label] * 3, [0.1, 0.2, 0.3])
    precision = type(metric).__name__ in {
        "AveragePrecision", "PRAUC", "RecallAtPrecision", "PrecisionAtRecall"
    }  # fmt: skip
    if label == 1 and precision:
        assert metric.compute() == 1.0
        return
    with pytest.warns(sm.UndefinedMetricWarning, match="only one class was seen"):
        assert math.isnan(metric.compute())
    assert math.isnan(metric.bounds().low)


def test_labels_name_the_columns():
    labels = ("cat", "dog", "eel")
    y_true = np.array(["eel", "cat", "dog", "cat", "eel", "dog"])
    y_score = np.random.default_rng(0).dirichlet([1, 1, 1], 6)
    for metric in (sm.ROCAUC, sm.LogLoss, sm.BrierScore):
        named = metric(labels=labels).update(y_true, y_score).compute()
        codes = np.searchsorted(labels, y_true)
        assert named == metric().update(codes, y_score).compute()


@pytest.mark.parametrize("metric", [sm.ROCAUC(), sm.AveragePrecision(), sm.PRAUC()], ids=names)
@pytest.mark.parametrize("scale", [2.0**31, 1e-300, 1e300, 5e-324 * 2**60])
def test_weights_of_any_scale(metric, scale):
    rng = np.random.default_rng(5)
    label, score = rng.integers(0, 2, 40), rng.random(40).round(1)
    weight = rng.integers(1, 9, 40)
    expected = made(metric).update(label, score, sample_weight=weight).compute()
    scaled = made(metric).update(label, score, sample_weight=weight * scale)
    assert scaled.compute() == pytest.approx(expected, rel=1e-14)
    coarse = made(metric, max_bins=4).update(label, score, sample_weight=weight * scale)
    assert coarse.bounds().low < expected < coarse.bounds().high


def test_unequal_weights_keep_their_digits():
    """Tiny weights above and huge ones below: the sums from the top do not lose the tiny ones."""
    label = np.tile([1, 0], 50)
    score = np.linspace(1, 0, 100)
    weight = np.geomspace(1e-12, 1e12, 100)
    exact = [Fraction(w) for w in weight.tolist()]
    tp = fp = area = Fraction(0)
    for w, positive in zip(exact, label, strict=True):
        if positive:
            tp += w
            area += w * tp / (tp + fp)
        else:
            fp += w
    value = sm.AveragePrecision().update(label, score, sample_weight=weight).compute()
    assert value == pytest.approx(float(area / tp), rel=4e-16)


@pytest.mark.parametrize("bad", [-0.01, 1.01, math.inf, math.nan])
@pytest.mark.parametrize("metric", [*CALIBRATION, sm.LogLoss(), sm.BrierScore()], ids=names)
def test_scores_that_are_no_probabilities(metric, bad):
    metric = made(metric).update([0, 1], [0.5, 0.75])
    before = metric.to_bytes()
    with pytest.raises(sm.InvalidBatchError, match=r"y_score .* 1 row, first in row 1"):
        metric.update([0, 1, 1], [0.1, bad, 0.3])
    assert metric.to_bytes() == before


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (([0, 1], [0.5, math.nan]), "y_score is missing"),
        (([0, 1, 2], [0.1, 0.2, 0.3]), "neither 0, 1 nor -1"),
        (([0, 1], [0.1, 0.2, 0.3]), "differ in length"),
        (([0, 1], ["a", "b"]), "numbers are needed"),
        ((["no", "yes"], [0.1, 0.2]), "pos_label"),
        (([0, 3], [[0.1, 0.9], [0.2, 0.8]]), "not the number of one of the 2 columns"),
        (([0, 1], [[0.1, 0.9], [0.2, 0.8]]), "columns of scores"),
        (([0, 1], [0.1, 0.2], [1.0, -1.0]), "negative"),
    ],
)
@pytest.mark.parametrize("metric", EVERY, ids=names)
def test_bad_rows_change_nothing(metric, columns, message):
    metric = made(metric).update([0, 1], [0.25, 0.5])
    before = metric.to_bytes()
    y_true, y_score, *weight = columns
    with pytest.raises(sm.InvalidBatchError, match=message):
        metric.update(y_true, y_score, sample_weight=weight[0] if weight else None)
    assert metric.to_bytes() == before


def test_infinite_logits_are_refused_and_large_ones_not():
    metric = sm.LogLoss(from_logits=True)
    with pytest.raises(sm.InvalidBatchError, match="infinite"):
        metric.update([0, 1], [0.0, math.inf])
    with pytest.raises(sm.InvalidBatchError, match="too large for a logit"):
        metric.update([0, 1], [0.0, -1.7e308])
    assert metric.update([1, 0], [8e307, -8e307]).compute() == 0.0
    assert metric.copy().update([0, 0], [8e307, 8e307]).compute() == 4e307
    rows = ([0, 1], [[8e307, -8e307], [8e307, -8e307]])
    assert sm.LogLoss(from_logits=True).update(*rows).compute() == 8e307


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sm.ROCAUC(max_fpr=0.0), "max_fpr=0.0"),
        (lambda: sm.ROCAUC(max_fpr=1.5), "max_fpr=1.5"),
        (lambda: sm.ROCAUC(max_bins=1), "1"),
        (lambda: sm.ROCAUC(average="samples"), "average='samples'"),
        (lambda: sm.RecallAtPrecision(p=1.1), "p=1.1"),
        (lambda: sm.PrecisionAtRecall(r=-0.1), "r=-0.1"),
        (lambda: sm.SensitivityAtSpecificity(s=math.nan), "s=nan"),
        (lambda: sm.CalibrationError(n_bins=0), "n_bins=0"),
        (lambda: sm.CalibrationError(norm="l3"), "norm='l3'"),
        (lambda: sm.CalibrationCurve(n_bins=-1), "n_bins=-1"),
        (lambda: sm.BrierScore(scale_by_half="yes"), "scale_by_half='yes'"),
        (lambda: sm.LogLoss(labels=("a", 1)), "labels="),
    ],
)
def test_bad_parameters(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_one_histogram_serves_all():
    rng = np.random.default_rng(6)
    label, score = rng.integers(0, 2, 1000), rng.random(1000)
    suite = sm.MetricSet({str(k): made(m) for k, m in enumerate([*SCALARS, *CALIBRATION, *CURVES])})
    suite.update(y_true=label, y_score=score)
    alone = sm.ROCAUC().update(label, score)
    suite.compute()
    alone.compute()
    assert suite.nbytes == alone.nbytes


def test_points_of_curves_past_the_budget_are_on_the_exact_curve():
    rng = np.random.default_rng(7)
    label, score = rng.integers(0, 2, 500), rng.random(500)
    coarse = sm.ROCCurve(max_bins=40).update(label, score)
    assert not coarse.exact
    fpr, tpr, thresholds = coarse.compute()
    assert len(fpr) <= 41
    for x, y, threshold in zip(fpr, tpr, thresholds, strict=True):
        assert x == np.mean(score[label == 0] >= threshold)
        assert y == np.mean(score[label == 1] >= threshold)
    precision, recall, thresholds = (
        sm.PrecisionRecallCurve(max_bins=40).update(label, score).compute()
    )
    for x, y, threshold in zip(precision[:-1], recall[:-1], thresholds, strict=True):
        assert x == np.mean(label[score >= threshold])
        assert y == np.mean(score[label == 1] >= threshold)


def test_nan_policy_omit():
    metric = sm.ROCAUC(nan_policy="omit").update([0, 1, 1, 0], [0.1, 0.4, math.nan, 0.35])
    assert (metric.compute(), metric.n_rows, metric.n_omitted) == (1.0, 3, 1)


@pytest.mark.parametrize(
    ("statistic", "name", "value"),
    [
        (ScoreHistogram(), "form", np.array([2, 1])),
        (ScoreHistogram(), "form", np.array([-1, 1])),
        (ScoreHistogram(), "form", np.array([1, 2])),
        (ScoreHistogram(), "form", np.array([1.0, 1.0])),
        (ScoreHistogram(), "form", np.array([2**62, 1])),
        (ScoreHistogram(), "other", np.array([1])),
        (ProbabilityLossSum(loss="log"), "columns", np.array([0])),
        (ProbabilityLossSum(loss="log"), "columns", np.array([-1])),
        (ProbabilityLossSum(loss="log"), "columns", np.array([1, 1])),
        (ProbabilityLossSum(loss="log"), "total/digits", np.array([[-1]])),
    ],
)
def test_hostile_states(statistic, name, value):
    codes, scores = np.array([0, 1], np.uint8), np.array([0.25, 0.5])
    statistic = statistic.fork()
    statistic.clear()
    statistic.update(codes, scores, weight=None)
    arrays = statistic.arrays()
    back = type(statistic).from_arrays(statistic.config, arrays)
    assert back.arrays().keys() == arrays.keys()
    with pytest.raises(sm.StateFormatError, match="score|array|columns"):
        type(statistic).from_arrays(statistic.config, {**arrays, name: value})


LONG = [2**60, 2**60 + 1, 2**60 + 2, 2**60 + 3, 5]


@pytest.mark.parametrize(
    "metric",
    [sm.ROCAUC(), sm.AveragePrecision(), sm.PRAUC(), sm.KolmogorovSmirnov()],
    ids=lambda metric: type(metric).__name__,
)
def test_integers_that_float64_cannot_tell_apart_are_no_ties(metric):
    y = [1, 0, 0, 1, 1]
    ranks = metric.copy().update(y, np.argsort(np.argsort(LONG)))
    shifted = [2**64 - 4, 2**64 - 3, 2**64 - 2, 2**64 - 1, 5]
    mine = metric.copy().update(y, np.array(shifted, np.uint64))
    assert (mine.compute(), mine.exact) == (ranks.compute(), True)
    for dtype in (np.int64, np.uint64, object):
        mine = metric.copy().update(y, np.array(LONG, dtype))
        assert (mine.compute(), mine.bounds(), mine.exact) == (
            ranks.compute(), ranks.bounds(), True,
        )  # fmt: skip
    parts = [metric.copy().update([label], [score]) for label, score in zip(y, LONG, strict=True)]
    assert sm.merge(parts).to_bytes() == mine.to_bytes()
    assert sm.from_bytes(mine.to_bytes()) == mine
    assert metric.copy().update([1], [0.5]).merge(mine).update([0], [1e300]).exact


def test_integers_past_the_budget_are_bounded_and_not_exact():
    y = [1, 0, 0, 1, 1]
    mine = sm.ROCAUC(max_bins=2).update(y, LONG)
    assert not mine.exact
    low, high = mine.bounds()
    assert low <= sm.ROCAUC().update(y, LONG).compute() <= high
    assert low < high


def test_long_integers_as_logits_are_refused():
    with pytest.raises(sm.InvalidBatchError, match="subtract an offset"):
        sm.ROCAUC(from_logits=True).update([1, 0, 0, 1, 1], LONG)


@pytest.mark.parametrize("metric", [sm.Quantile(q=0.5), sm.KendallTau(), sm.SpearmanRho()])
def test_what_would_round_integers_refuses_them(metric):
    columns = dict.fromkeys(metric.inputs, LONG)
    with pytest.raises(sm.InvalidBatchError, match=r"beyond 2\*\*53.*subtract an offset"):
        metric.update(**columns)


def test_metrics_of_a_set_read_weighted_cells_once(monkeypatch):
    made = []
    weighed = view._weighed
    monkeypatch.setattr(view, "_weighed", lambda *args: made.append(args) or weighed(*args))
    rng = np.random.default_rng(8)
    suite = sm.MetricSet({"auc": sm.ROCAUC(), "ap": sm.AveragePrecision(), "ece": CALIBRATION[0]})
    before = None
    for _ in range(2):  # what was made for one reading is not kept for the next
        y, s, w = rng.integers(0, 2, 500), rng.random(500), rng.exponential(size=500)
        suite.update(y_true=y, y_score=s, sample_weight=w)
        made.clear()
        values = suite.compute()
        assert len(made) == 1
        assert values == {name: metric.compute() for name, metric in suite.items()} != before
        before = values


@pytest.mark.parametrize("n", [40, 5000])
def test_columns_that_cannot_be_written_to(n):
    rng = np.random.default_rng(n)
    columns = rng.integers(0, 2, n), rng.random(n), rng.random(n)
    expected = sm.ROCAUC().update(*columns[:2], sample_weight=columns[2])
    for column in columns:
        column.setflags(write=False)
    assert sm.ROCAUC().update(*columns[:2], sample_weight=columns[2]) == expected


def brier_parts(labels, scores, weights, n_bins=10):
    """Return resolution and uncertainty in fractions."""
    rows, positives = [Fraction(0)] * n_bins, [Fraction(0)] * n_bins
    for label, score, weight in zip(labels, scores, weights, strict=True):
        at = min(int(score * n_bins), n_bins - 1)
        rows[at] += Fraction(weight)
        positives[at] += Fraction(weight) * int(label)
    whole, p = sum(rows), sum(positives)
    resolution = sum(
        of * (mine / of - p / whole) ** 2 for mine, of in zip(positives, rows, strict=True) if of
    )
    return float(resolution / whole), float(p * (whole - p) / whole**2)


@pytest.mark.parametrize("positives", [1, 999_999])
@pytest.mark.parametrize("weight", [None, 2.0**-40])
def test_parts_of_the_brier_score_do_not_cancel_at_extreme_base_rates(positives, weight):
    """1 minus a share near 1 has few digits, and the shares of bins hardly differ from it."""
    labels = np.arange(1_000_000) < positives
    scores = np.where(np.arange(1_000_000) % 3, 0.05, 0.95)
    weights = np.ones(labels.size) if weight is None else np.where(labels, weight, 1.0)
    metric = sm.BrierDecomposition()
    metric.update(labels, scores, sample_weight=None if weight is None else weights)
    found = metric.compute()
    cells = {}
    for cell in {(True, 0.05), (False, 0.05), (True, 0.95), (False, 0.95)}:
        cells[cell] = Fraction(weights[(labels == cell[0]) & (scores == cell[1])].sum())
    table = [(*cell, amount) for cell, amount in cells.items() if amount]
    resolution, uncertainty = brier_parts(*zip(*table, strict=True))
    assert found["uncertainty"] == pytest.approx(uncertainty, rel=4e-16, abs=0)
    assert found["resolution"] == pytest.approx(resolution, rel=1e-13, abs=0)


def test_rows_of_several_labels_have_no_top_label():
    with pytest.raises(ValueError, match="a row of several labels has no top label"):
        sm.CalibrationError(average="top_label", multilabel=True)
