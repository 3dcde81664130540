"""Logits: said to be such, made probabilities row by row, and refused where they are not said."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special
import sklearn.metrics as sk
from oracles.table import ORACLES

import streammetrics as sm
import streammetrics.core.columns.scores
from streammetrics.testing import check_laws, same_value

RNG = np.random.default_rng(3)
BINARY = {"y_true": RNG.integers(0, 2, 300), "y_score": 6 * RNG.standard_normal(300)}
CLASSES = {"y_true": RNG.integers(0, 4, 300), "y_score": 4 * RNG.standard_normal((300, 4))}
LOGITS = CLASSES["y_score"]
PROBABILITIES = scipy.special.softmax(LOGITS, axis=1)
SCORED = [
    sm.ROCAUC,
    sm.ROCCurve,
    sm.AveragePrecision,
    sm.PRAUC,
    sm.PrecisionRecallCurve,
    sm.KolmogorovSmirnov,
    sm.CalibrationError,
    sm.CalibrationCurve,
    sm.LogLoss,
    sm.BrierScore,
    lambda **options: sm.RecallAtPrecision(p=0.6, **options),
    lambda **options: sm.PrecisionAtRecall(r=0.6, **options),
    lambda **options: sm.SensitivityAtSpecificity(s=0.6, **options),
]
COUNTED = [sm.F1, sm.Accuracy, sm.ConfusionMatrix, sm.MatthewsCorrcoef]


def close(a, b):
    if isinstance(a, dict):
        assert list(a) == list(b)
        close(tuple(a.values()), tuple(b.values()))
    elif isinstance(a, tuple):
        for one, other in zip(a, b, strict=True):
            close(one, other)
    else:
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("metric", SCORED)
def test_logits_give_what_their_probabilities_give(metric):
    y, z = BINARY.values()
    expected = metric().update(y, scipy.special.expit(z))
    close(metric(from_logits=True).update(y, z).compute(), expected.compute())
    y, z = CLASSES.values()
    expected = metric().update(y, PROBABILITIES)
    close(metric(from_logits=True).update(y, z).compute(), expected.compute())


CASES = {
    "binary": (*BINARY.values(), scipy.special.expit(BINARY["y_score"])),
    "two columns": (BINARY["y_true"], LOGITS[:, :2], scipy.special.softmax(LOGITS[:, :2], axis=1)),
    "classes": (CLASSES["y_true"], LOGITS, PROBABILITIES),
    "labels": (RNG.integers(0, 2, (300, 4)), LOGITS, scipy.special.expit(LOGITS)),
    "shares": (RNG.random(300), BINARY["y_score"], scipy.special.expit(BINARY["y_score"])),
    "distributions": (RNG.dirichlet(np.ones(4), 300), LOGITS, PROBABILITIES),
}
NEEDED = {
    sm.ExpectedCost: {"cost": np.ones((4, 4)) - np.eye(4), "labels": range(4)},
    sm.SensitivityAtSpecificity: {"s": 0.6},
    sm.SpecificityAtSensitivity: {"s": 0.6},
    sm.PrecisionAtRecall: {"r": 0.6},
    sm.RecallAtPrecision: {"p": 0.6},
    sm.ConfusionAtThresholds: {"thresholds": (0.2, 0.5, 0.9)},
}
TAKES_LOGITS = dict.fromkeys(
    type(oracle.metric) for oracle in ORACLES if "from_logits" in oracle.metric.config
)


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
@pytest.mark.parametrize("metric", TAKES_LOGITS)
def test_logits_are_taken_wherever_their_probabilities_are(metric):
    taken = 0
    for truth, z, probabilities in CASES.values():
        for option in ({}, {"threshold": 0.3}, {"multilabel": True}, {"average": "macro"}):
            options = {**NEEDED.get(metric, {}), **option}
            try:
                expected = metric(**options).update(truth, probabilities).compute()
            except (TypeError, ValueError):
                continue  # rows or options that the metric does not take
            found = metric(**options, from_logits=True).update(truth, z)
            close(found.compute(), expected)
            taken += 1
    assert taken


AVERAGED = [
    (metric, {"average": average})
    for metric in (sm.CalibrationError, sm.ROCAUC, sm.AveragePrecision, sm.KolmogorovSmirnov)
    for average in ("macro", "weighted", "micro", None)
]
TOP = [(sm.CalibrationError, {"average": "top_label", **more})
       for more in ({}, {"norm": "max"}, {"strategy": "quantile"})]  # fmt: skip


@pytest.mark.parametrize(("metric", "options"), [*AVERAGED, *TOP])
@pytest.mark.parametrize("max_bins", [1 << 20, 16])
def test_logits_give_what_their_probabilities_give_however_classes_are_averaged(
    metric, options, max_bins
):
    y, z = CLASSES.values()
    options = {**options, "max_bins": max_bins}
    said = metric(**options).update(y, streammetrics.core.columns.scores.softmax(z))
    made = metric(**options, from_logits=True).update(y, z)
    assert repr(made.compute()) == repr(said.compute())
    assert repr(made.bounds()) == repr(said.bounds())


def test_the_largest_of_logits_is_a_probability():
    z = np.log([[0.75, 0.25], [0.35, 0.65], [0.1, 0.9]])  # largest: 0.75, 0.65 and 0.9
    top = sm.CalibrationError(average="top_label", from_logits=True, n_bins=1)
    assert top.update([0, 1, 0], z).compute() == pytest.approx((0.75 + 0.65 + 0.9 - 2) / 3)
    live = sm.Live(top.copy().reset(), types={"y_score": 2})
    live.observe(time=[0] * 3, y_true=[0, 1, 0], y_score=z)
    assert live.window("1min").compute() == top.compute()


@pytest.mark.parametrize("rows", [BINARY, CLASSES], ids=["binary", "classes"])
@pytest.mark.parametrize("metric", [sm.ROCAUC, sm.CalibrationCurve, sm.BrierScore, sm.F1])
def test_laws_hold_of_logits(metric, rows):
    made = metric(from_logits=True)
    if metric is sm.F1:
        made = sm.F1(from_logits=True, threshold=0.25) if rows is BINARY else sm.Accuracy()
        rows = rows if rows is BINARY else {"y_true": rows["y_true"], "y_pred": rows["y_score"]}
    check_laws(made, {name: column[:40] for name, column in rows.items()}, trials=1)


@pytest.mark.parametrize("metric", SCORED)
def test_past_the_budget_bounds_hold_the_value_of_logits(metric):
    if "max_bins" not in metric().config:
        return
    y, z = BINARY.values()
    fine = metric(from_logits=True).update(y, z).compute()
    coarse = metric(from_logits=True, max_bins=16).update(y, z)
    assert not coarse.exact
    low, high = coarse.bounds()
    if isinstance(fine, float):
        assert low <= fine <= high


def test_the_order_of_logits_is_not_rounded_away():
    far = ([0, 1, 0, 1], [40.0, 50.0, 60.0, 70.0])  # all of them a probability of 1
    assert sm.ROCAUC(from_logits=True).update(*far).compute() == sk.roc_auc_score(*far) == 0.75
    curve = sm.ROCCurve(from_logits=True).update([0, 1], [-1.0, 0.0]).compute()
    assert curve.thresholds.tolist() == [np.inf, 0.5, scipy.special.expit(-1.0)]


@pytest.mark.parametrize("metric", COUNTED)
@pytest.mark.parametrize("threshold", [0.0, 0.2, 0.5, 0.9, 1.0])
def test_a_threshold_cuts_the_probabilities_of_logits(metric, threshold):
    y, z = BINARY.values()
    ours = metric(threshold=threshold, from_logits=True, zero_division=0).update(y, z)
    theirs = metric(threshold=threshold, zero_division=0).update(y, scipy.special.expit(z))
    assert same_value(ours.compute(), theirs.compute())


def test_the_largest_logit_is_the_largest_probability():
    y, z = CLASSES.values()
    plain = sm.Accuracy().update(y, z).compute()
    assert sm.Accuracy(from_logits=True).update(y, z).compute() == plain
    plain = sm.TopKAccuracy(k=2).update(y, z).compute()
    assert sm.TopKAccuracy(k=2, from_logits=True).update(y, z).compute() == plain


def test_a_threshold_of_logits_is_a_probability():
    with pytest.raises(
        ValueError, match=r"threshold=2\.0\): expected a probability, with from_logits=True"
    ):
        sm.F1(threshold=2, from_logits=True)


@pytest.mark.parametrize("metric", SCORED)
def test_rows_of_classes_must_be_probabilities(metric):
    cases = [
        (CLASSES["y_score"], r"y_score is outside \[0, 1\] in \d+ rows.*from_logits=True"),
        (
            0.9 * PROBABILITIES,
            r"y_score does not sum to 1 in 300 rows, first in row 0 \(.*logits",
        ),
    ]
    for y_score, message in cases:
        refusing = metric()
        with pytest.raises(sm.InvalidBatchError, match=message):
            refusing.update(CLASSES["y_true"], y_score)
        assert refusing == metric()


@pytest.mark.parametrize("metric", [sm.CalibrationError, sm.LogLoss, sm.BrierScore])
def test_scores_of_one_class_must_be_probabilities_where_they_are_meant(metric):
    with pytest.raises(sm.InvalidBatchError, match=r"outside \[0, 1\] in 1 row.*from_logits=True"):
        metric().update([0, 1], [0.5, 1.5])


@pytest.mark.parametrize("metric", [sm.ROCAUC, sm.AveragePrecision, sm.KolmogorovSmirnov])
def test_scores_of_one_class_that_are_only_compared_may_be_any(metric):
    y, z = BINARY.values()
    shifted = metric().update(y, z - z.min())
    assert metric().update(y, z).compute() == shifted.compute()


@pytest.mark.parametrize(
    ("dtype", "off", "taken"),
    [
        (np.float64, 5e-7, True),
        (np.float64, 2e-6, False),
        (np.float32, 5e-5, True),
        (np.float32, 2e-4, False),
        (np.float16, 5e-3, True),
        (np.float16, 2e-2, False),
    ],
)
def test_how_far_rows_may_be_from_one_depends_on_their_type(dtype, off, taken):
    row = np.array([[0.3, 0.3, 0.4 + off]]).astype(dtype)
    metric = sm.LogLoss()
    for y_score in (row, row.tolist()):  # the same numbers, whatever holds them
        if taken:
            metric.update([0], y_score)
        else:
            with pytest.raises(sm.InvalidBatchError, match="does not sum to 1"):
                metric.update([0], y_score)
    assert metric.n_rows == 2 * taken


def test_rows_of_bfloat16_may_be_as_far_off_as_those_of_float16():
    torch = pytest.importorskip("torch")
    probabilities = torch.softmax(torch.tensor(CLASSES["y_score"]), 1).to(torch.bfloat16)
    sm.ROCAUC().update(torch.tensor(CLASSES["y_true"]), probabilities)


def test_masked_and_infinite_logits():
    y_score = [[0.0, -np.inf, 0.0], [5.0, 1.0, -np.inf]]
    brier = sm.BrierScore(from_logits=True, scale_by_half=False).update([0, 0], y_score)
    right = 1 / (1 + np.exp(-4.0))
    assert brier.compute() == pytest.approx((0.5 + 2 * (1 - right) ** 2) / 2)
    for bad in ([[np.inf, 0.0]], [[-np.inf, -np.inf]]):
        with pytest.raises(sm.InvalidBatchError, match="infinite or too large for a logit in 1"):
            sm.ROCAUC(from_logits=True).update([0], bad)
    huge = sm.BrierScore(from_logits=True).update([0, 1], [[1.7e308, -1.7e308]] * 2)
    assert huge.compute() == 0.5


def test_rows_that_are_left_out_need_not_be_probabilities():
    metric = sm.ROCAUC(nan_policy="omit").update([0, 1, 1], [[0.5, 0.5], [0.25, 0.75], [np.nan, 9]])
    assert (metric.n_rows, metric.n_omitted) == (2, 1)


def test_a_set_of_logits_keeps_one_histogram():
    options = {"from_logits": True}
    suite = sm.MetricSet({"auc": sm.ROCAUC(**options), "ece": sm.CalibrationError(**options)})
    suite.update(**BINARY)
    assert suite.nbytes == suite["auc"].copy().nbytes
