"""Rows of several labels: what they may come as, and what is refused of them."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
import sklearn.metrics as sk

import streammetrics as sm
from streammetrics.testing import check_metric

TRUTH = np.array([[1, 0, 1], [0, 0, 0], [0, 1, 1], [1, 1, 1]])
CALLED = np.array([[1, 0, 0], [0, 0, 0], [1, 1, 1], [0, 1, 1]])
NAMES = ["ant", "bee", "cat"]


def sets(marks, kind=set):
    return [kind(name for name, mark in zip(NAMES, row, strict=True) if mark) for row in marks]


FORMS = {
    "integers": lambda x: x,
    "booleans": lambda x: x == 1,
    "floats": lambda x: x.astype(np.float32),
    "columns": np.asfortranarray,
    "lists": lambda x: x.tolist(),
    "csr matrix": sp.csr_matrix,
    "csc array": sp.csc_array,
    "data frame": pd.DataFrame,
    "polars": lambda x: pl.DataFrame(x, schema=NAMES),
    "sets": sets,
    "lists of text": lambda x: sets(x, list),
    "tuples": lambda x: sets(x, tuple),
    "series of sets": lambda x: pd.Series(sets(x)),
    "polars lists": lambda x: pl.Series(sets(x, list)),
    "arrow lists": lambda x: pa.array(sets(x, list)),
    "array of sets": lambda x: np.array([*sets(x), None], object)[:-1],
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_rows_gives_one_state(form):
    expected = sm.MultilabelConfusionMatrix(labels=NAMES).update(TRUTH, CALLED)
    found = sm.MultilabelConfusionMatrix(labels=NAMES).update(
        FORMS[form](TRUTH), FORMS[form](CALLED)
    )
    assert found.to_bytes() == expected.to_bytes()
    assert found.compute().to_dict()["bee"] == {0: {0: 2, 1: 0}, 1: {0: 0, 1: 2}}


@pytest.mark.parametrize("width", [1, 3, 4, 8, 20, 65, 255, 256, 300])
def test_rows_and_columns_are_summed_at_any_width(width):
    rng = np.random.default_rng(width)
    truth, called = rng.integers(0, 2, (2, 700, width), dtype=np.uint8)
    truth[0] = called[0] = 1
    names = ["it"] if width == 1 else None  # else (n, 1) could be one label a row
    for average in ("samples", "macro") if width > 1 else ("samples",):
        metric = sm.F1(average=average, multilabel=True, labels=names, zero_division=0.0)
        value = metric.update(truth, called, sample_weight=np.ones(700)).compute()
        if width > 1:
            expected = sk.f1_score(truth, called, average=average, zero_division=0.0)
        else:
            expected = np.mean((truth == 1) & (called == 1))
        assert value == pytest.approx(expected, rel=1e-12)


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
def test_zero_division_says_what_a_row_without_labels_counts():
    rows = [[0, 0], [1, 1]], [[0, 0], [1, 1]]
    values = {0.0: 0.5, 1.0: 1.0, math.nan: 1.0, None: 0.5}
    for empty, value in values.items():
        assert sm.F1(average="samples", zero_division=empty).update(*rows).compute() == value


def test_a_row_without_labels_that_counts_as_0_is_warned_of():
    metric = sm.F1(average="samples").update([[0, 0], [1, 1]], [[0, 0], [1, 1]])
    with pytest.warns(sm.UndefinedMetricWarning, match="counts 1 row as 0 in its average"):
        metric.compute()


def test_a_set_counts_each_statistic_once_and_slices_tell_rows_apart():
    suite = sm.MetricSet({"samples": sm.F1(average="samples"), "loss": sm.HammingLoss()})
    sliced = sm.Slices(suite, by="country")
    sliced.update(y_true=TRUTH, y_pred=CALLED, country=["a", "b", "a", "b"])
    alone = suite.copy().update(y_true=TRUTH[::2], y_pred=CALLED[::2]).compute()
    assert sliced[{"country": "a"}].compute() == alone


@pytest.mark.parametrize(
    ("metric", "rows", "message"),
    [
        (sm.HammingLoss(), ([0, 1], [1, 1]), r"y_true has one number a row, not \(n, L\)"),
        (sm.HammingLoss(), (TRUTH, CALLED[:, :2]), r"shape \(4, 2\), and y_true has \(4, 3\)"),
        (
            sm.HammingLoss(),
            (TRUTH, CALLED + 1),
            "y_pred is neither 0 nor 1 in 3 rows, first in row 0",
        ),
        (sm.HammingLoss(), (TRUTH, CALLED / 2), "scores take a threshold"),
        (sm.HammingLoss(), (sets(TRUTH), sets(CALLED)), "say which there are"),
        (sm.HammingLoss(), (["a", "b"], ["a", "a"]), "y_true holds text; pass indicators"),
        (sm.HammingLoss(labels=["ant"]), (sets(TRUTH), sets(CALLED)), r"in 3 rows, first in row 0"),
        (sm.HammingLoss(labels=NAMES), (TRUTH[:, :2], CALLED[:, :2]), r"not \(n, 3\)"),
        (sm.HammingLoss(threshold=(0.1, 0.2)), (TRUTH, CALLED), r"not \(n, 2\)"),
        (sm.HammingLoss(threshold=0.5), (TRUTH, [[math.nan] * 3] * 4), "y_score is missing"),
        (sm.Accuracy(), (sets(TRUTH), [0, 1, 0, 1]), "a builtins.set|a set"),
    ],
)
def test_what_is_not_rows_of_labels_is_named(metric, rows, message):
    before = metric.to_bytes()
    with pytest.raises(sm.InvalidBatchError, match=message):
        metric.update(*rows)
    assert metric.to_bytes() == before


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sm.F1(multilabel=True), "'samples' or None with multilabel=True"),
        (lambda: sm.F1(threshold=(0.5, 0.5)), "one number, but with multilabel=True"),
        (lambda: sm.Accuracy(threshold=(0.5, 0.5)), "one number, but with multilabel=True"),
        (lambda: sm.F1(average="samples", ignore_index=1), "None with multilabel=True"),
        (lambda: sm.HammingLoss(ignore_index=-1), "LabelAccuracy"),
        (lambda: sm.SubsetAccuracy(ignore_index=1), "neither 0 nor 1"),
        (lambda: sm.ROCAUC(multilabel=True, ignore_index=0), "neither 0 nor 1"),
        (lambda: sm.MultilabelConfusionMatrix(normalize="all", average="macro"), "average"),
        (lambda: sm.HammingLoss(threshold=()), "a number, or one for each label"),
        (lambda: sm.HammingLoss(threshold=(0.1,), labels=NAMES), "one number, or 3 for the labels"),
        (lambda: sm.HammingLoss(threshold=2.0, from_logits=True), "probabilities"),
    ],
)
def test_parameters_that_do_not_go_together_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_labels_that_are_not_known_have_no_limits_by_rows():
    for metric in (
        sm.F1(average="macro", multilabel=True, ignore_index=-1),
        sm.ROCAUC(multilabel=True, ignore_index=-1),
    ):
        metric.update(np.where(TRUTH, 1, -1), CALLED)
        with pytest.raises(sm.NoConfidenceError, match="leaves labels of its rows out"):
            metric.confidence()


@pytest.mark.parametrize("average", ["macro", "micro"])
@pytest.mark.parametrize("told", [{"labels": ("a", "b")}, {"threshold": (0.5, 0.5)}])
def test_a_state_has_as_many_labels_as_its_parameters_tell_of(average, told):
    three, two = (sm.F1(average=average, multilabel=True, **more) for more in ({}, told))
    (state,), (other,) = three.update(TRUTH, CALLED).statistics(), two.statistics()
    state.update(TRUTH, CALLED, weight=None)
    with pytest.raises(sm.StateFormatError, match="there are 3 labels, but parameters of 2"):
        other.restored(state.arrays())


def test_batches_have_one_number_of_labels():
    metric = sm.F1(average="micro", multilabel=True).update(TRUTH, CALLED)
    with pytest.raises(sm.InvalidBatchError, match="pass a column for each label"):
        metric.update(TRUTH[:, :2], CALLED[:, :2])


def test_rows_that_lack_a_value_are_left_out():
    scores = np.where([[False], [True], [False], [False]], math.nan, CALLED / 1.0)
    loss = sm.HammingLoss(threshold=0.5, nan_policy="omit").update(TRUTH, scores)
    assert (loss.n_omitted, loss.compute()) == (1, 3 / 9)


@pytest.mark.parametrize("average", ["micro", "samples", None])
def test_limits_hold_the_value(average):
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, (400, 4))
    called = np.where(rng.random((400, 4)) < 0.8, truth, 1 - truth)
    for kind in (sm.F1, sm.Informedness, sm.Prevalence, sm.SelectionRate):
        metric = kind(average=average, multilabel=True, zero_division=0.0).update(truth, called)
        low, high = metric.confidence()
        assert np.all(low < metric.compute())
        assert np.all(metric.compute() < high)
    low, high = sm.HammingLoss().update(truth, called).confidence()
    assert low < np.mean(truth != called) < high


RATES = {
    sm.Precision: lambda tp, fp, fn, tn: tp / (tp + fp),
    sm.Recall: lambda tp, fp, fn, tn: tp / (tp + fn),
    sm.F1: lambda tp, fp, fn, tn: 2 * tp / (2 * tp + fp + fn),
    sm.Jaccard: lambda tp, fp, fn, tn: tp / (tp + fp + fn),
    sm.Specificity: lambda tp, fp, fn, tn: tn / (tn + fp),
    sm.NegativePredictiveValue: lambda tp, fp, fn, tn: tn / (tn + fn),
    sm.FalsePositiveRate: lambda tp, fp, fn, tn: fp / (fp + tn),
    sm.FalseNegativeRate: lambda tp, fp, fn, tn: fn / (fn + tp),
    sm.FalseDiscoveryRate: lambda tp, fp, fn, tn: fp / (fp + tp),
    sm.FalseOmissionRate: lambda tp, fp, fn, tn: fn / (fn + tn),
    sm.Prevalence: lambda tp, fp, fn, tn: (tp + fn) / (tp + fp + fn + tn),
    sm.SelectionRate: lambda tp, fp, fn, tn: (tp + fp) / (tp + fp + fn + tn),
}


@pytest.mark.parametrize("scale", [None, 2.0**-700, 1.0, 2.0**300])
@pytest.mark.parametrize(
    ("average", "unknown"),
    [*product(["micro", "macro", "weighted", None], [False, True]), ("samples", False)],
)
def test_averages_of_rates_are_those_of_their_counts(average, unknown, scale):
    rng = np.random.default_rng(4)
    truth, called = rng.integers(0, 2, (2, 300, 3))  # rows repeat
    if unknown:
        truth[rng.random(truth.shape) < 0.3] = -1
    weight = np.ones(300) if scale is None else rng.exponential(size=300)
    given = {} if scale is None else {"sample_weight": weight * scale}
    axis = 1 if average == "samples" else 0
    counts = [
        (each * (weight[:, None] if axis == 0 else 1)).sum(axis=axis)
        for true, pred in ((1, 1), (0, 1), (1, 0), (0, 0))
        for each in [(truth == true) & (called == pred)]
    ]
    if average == "micro":
        counts = [np.sum(each) for each in counts]
    averaged = {"samples": weight, "macro": np.ones(3), "weighted": counts[0] + counts[2]}
    for rate, formula in RATES.items():
        with np.errstate(invalid="ignore"):
            expected = np.nan_to_num(formula(*counts))
        if average in averaged:
            expected = np.average(expected, weights=averaged[average])
        options = {"ignore_index": -1} if unknown else {}
        metric = rate(average=average, multilabel=True, zero_division=0.0, **options)
        found = metric.update(truth, called, **given).compute()
        np.testing.assert_allclose(found, expected, rtol=1e-13, err_msg=rate.__name__)


SCORES = np.array([[0.9, 0.2, 0.4], [0.3, 0.1, 0.2], [0.6, 0.7, 0.8], [0.2, 0.9, 0.5]])


def test_scores_of_labels_may_stand_beside_sets_and_be_logits():
    area = sm.ROCAUC(average=None, multilabel=True, labels=NAMES).update(sets(TRUTH), SCORES)
    assert area.compute().to_dict().keys() == set(NAMES)
    np.testing.assert_allclose(area.compute(), sk.roc_auc_score(TRUTH, SCORES, average=None))
    shares = sm.CalibrationError(multilabel=True, n_bins=4).update(TRUTH, SCORES)
    logits = sm.CalibrationError(multilabel=True, n_bins=4, from_logits=True)
    logits.update(TRUTH, np.log(SCORES / (1 - SCORES)))
    assert logits.compute() == pytest.approx(shares.compute(), rel=1e-12)


@pytest.mark.parametrize(
    ("metric", "rows", "message"),
    [
        (sm.CalibrationError(multilabel=True), (TRUTH, SCORES + 1), r"is outside \[0, 1\]"),
        (sm.ROCAUC(multilabel=True), (TRUTH[:, 0], SCORES), "y_true has one number a row"),
        (sm.CoverageError(), (TRUTH, SCORES[:, :2]), r"shape \(4, 2\), and y_true has \(4, 3\)"),
    ],
)
def test_scores_that_are_not_of_the_labels_are_named(metric, rows, message):
    with pytest.raises(sm.InvalidBatchError, match=message):
        metric.update(*rows)


def test_pairs_of_classes_are_not_of_several_labels():
    with pytest.raises(ValueError, match="False with 'ovo'"):
        sm.ROCAUC(multi_class="ovo", multilabel=True)
    with pytest.raises(ValueError, match="'macro' or 'weighted'"):
        sm.ROCAUC(multi_class="ovo", average="micro")


@pytest.mark.parametrize("average", ["macro", "weighted"])
@pytest.mark.parametrize("kind", [sm.F1, sm.Informedness])
def test_a_mean_over_labels_that_are_one_is_as_sure_as_that(average, kind):
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 2, 400)
    called = np.where(rng.random(400) < 0.8, truth, 1 - truth)
    alone = kind(average="macro", multilabel=True, labels=["a"])
    alone.update(truth[:, None], called[:, None])
    thrice = kind(average=average, multilabel=True)
    thrice.update(*(np.repeat(side[:, None], 3, axis=1) for side in (truth, called)))
    limits = thrice.confidence()
    assert "as if they varied together" in limits.method
    assert tuple(limits) == pytest.approx(tuple(alone.confidence()), rel=1e-9)
    assert limits.low == pytest.approx(kind().update(truth, called).confidence().low, abs=1e-3)


@pytest.mark.parametrize("average", ["macro", "weighted"])
def test_a_mean_over_labels_varies_at_most_as_its_rows_left_out_one_by_one_tell(average):
    rng = np.random.default_rng(3)
    truth = (rng.random((80, 1)) < [0.6, 0.5, 0.3]).astype(int)  # of labels nested in each other
    called = np.where(rng.random((80, 1)) < 0.8, truth, rng.integers(0, 2, (80, 3)))
    metric = sm.F1(average=average, multilabel=True)
    left_out = [
        metric.copy().update(np.delete(truth, row, 0), np.delete(called, row, 0)).compute()
        for row in range(80)
    ]
    value = metric.update(truth, called).compute()
    error = np.sqrt(79 / 80 * np.sum((left_out - np.mean(left_out)) ** 2))
    low, high = metric.confidence()
    logits = [np.log(side / (1 - side)) for side in (low, value, high)]
    assert np.diff(logits) == pytest.approx(logits[2] - logits[1])
    ours = (logits[2] - logits[1]) / 1.959964 * value * (1 - value)
    assert error < ours < 1.5 * error


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
def test_a_mean_over_labels_of_which_none_varies_is_as_sure_as_its_smallest_class():
    perfect = sm.F1(average="macro", multilabel=True).update(TRUTH, TRUTH).confidence()
    assert perfect.method.startswith("Clopper-Pearson of the 1 rows of the smallest class")
    assert tuple(perfect) == pytest.approx((0.025, 1.0))
    nothing = sm.F1(average="macro", multilabel=True, zero_division=math.nan)
    assert np.isnan(nothing.update(0 * TRUTH, 0 * TRUTH).confidence()).all()


@pytest.mark.parametrize(
    "metric", [sm.F1(average="samples", zero_division=1.0), sm.SubsetAccuracy()], ids=repr
)
def test_the_kit_finds_nothing(metric):
    check_metric(metric, {"y_true": TRUTH, "y_pred": CALLED})


@pytest.mark.parametrize(
    ("metric", "reference"),
    [
        (sm.CoverageError, sk.coverage_error),
        (sm.LabelRankingAveragePrecision, sk.label_ranking_average_precision_score),
        (sm.LabelRankingLoss, sk.label_ranking_loss),
    ],
)
@pytest.mark.parametrize("width", [2, 3, 6])
def test_labels_that_tie_rank_together(metric, reference, width):
    rng = np.random.default_rng(width)
    truth, scores = rng.integers(0, 2, (60, width)), rng.integers(0, 3, (60, width)) / 4
    assert metric().update(truth, scores).compute() == pytest.approx(reference(truth, scores))


@pytest.mark.parametrize("average", ["macro", "weighted", "micro", None])
def test_rows_none_of_which_has_any_label_are_rows_all_the_same(average):
    truth = np.zeros((4, 3), np.int64)
    chances = np.linspace(0.1, 0.9, 12).reshape(4, 3)
    options = {"average": average, "multilabel": True}
    error = sm.CalibrationError(n_bins=4, **options, zero_division=0).update(truth, chances)
    alone = [sm.CalibrationError(n_bins=4).update([0] * 4, p).compute() for p in chances.T]
    expected = alone if average is None else np.mean(alone)
    assert error.compute() == pytest.approx(expected)
    for kind in (sm.ROCAUC, sm.AveragePrecision, sm.KolmogorovSmirnov, sm.PRAUC):
        value = kind(**options, zero_division=0.25).update(truth, chances).compute()
        assert (np.asarray(value) == 0.25).all()
        with pytest.warns(sm.UndefinedMetricWarning, match="nan"):
            undefined = kind(**options).update(truth, chances).compute()
        assert np.isnan(undefined).all()


@pytest.mark.parametrize(
    "metric",
    [
        sm.F1(average="samples"),
        sm.F1(average="macro", multilabel=True, threshold=(0.1, 0.2, 0.3)),
        sm.SubsetAccuracy(labels=NAMES),
        sm.MultilabelConfusionMatrix(),
        sm.ClassificationReport(multilabel=True),
        sm.CoverageError(),
        sm.LabelRankingLoss(),
        sm.ROCAUC(multilabel=True),
        sm.CalibrationError(multilabel=True, labels=NAMES),
    ],
    ids=repr,
)
@pytest.mark.parametrize("n", [0, 4])
def test_a_batch_of_no_rows_changes_nothing_whatever_it_is(metric, n):
    before = metric.copy().update(TRUTH[:n], CALLED[:n])
    for nothing in ([], np.zeros(0), np.zeros((0, 3))):
        assert before.copy().update(nothing, nothing).to_bytes() == before.to_bytes()
        assert before.copy().update([], nothing).to_bytes() == before.to_bytes()
    assert metric.copy().update([], []).update(TRUTH, CALLED).n_rows == 4


@pytest.mark.parametrize(
    "form", [np.asarray, sp.csr_matrix, sp.coo_array, pd.DataFrame, pl.DataFrame]
)
@pytest.mark.parametrize("metric", [sm.F1(average="macro"), sm.Accuracy(), sm.ConfusionMatrix()])
def test_indicators_that_are_read_as_classes_are_told(form, metric):
    with pytest.warns(UserWarning, match=r"\(4, 3\) of 0 and 1, read as 12 rows.*multilabel=True"):
        assert metric.copy().update(form(TRUTH), form(CALLED)).n_rows == 12


def test_classes_at_positions_are_not_told():
    positions = TRUTH + 1
    assert sm.Accuracy().update(sp.csr_matrix(positions), sp.csr_matrix(positions)).n_rows == 12
    assert sm.Accuracy(labels=[0, 1]).update(pd.DataFrame(TRUTH), pd.DataFrame(CALLED)).n_rows == 12
    tensor = pytest.importorskip("torch").tensor
    assert sm.Accuracy().update(tensor(TRUTH), tensor(CALLED)).n_rows == 12


@pytest.mark.parametrize(
    "metric",
    [
        sm.LabelRankingAveragePrecision(),
        sm.LabelRankingLoss(),
        sm.CoverageError(),
        sm.ROCAUC(multilabel=True),
        sm.HammingLoss(threshold=2**60),
        sm.F1(multilabel=True, threshold=2**60, average="macro"),
    ],
    ids=str,
)
def test_scores_of_labels_that_float64_would_round_are_refused(metric):
    """They tied, without a word: half of what one row of 1 and 0 has in its order."""
    scores = np.array([[2**60 + 1, 2**60], [2**60, 2**60 + 1]])
    with pytest.raises(sm.InvalidBatchError, match=r"y_score holds integers beyond 2\*\*53"):
        metric.update([[1, 0], [0, 1]], scores)
    assert metric.update([[1, 0], [0, 1]], scores - 2**60).n_rows == 2
