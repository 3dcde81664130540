"""What 0/0 gives, alone and in averages: one rule for every metric."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import sklearn.metrics as sk
from thinning import some

import streammetrics as sm

# Class 2 is never predicted, class 3 is never true, and class 4 of FIXED is neither.
TRUE, PREDICTED = [0, 0, 1, 1, 2, 2], [0, 0, 1, 0, 1, 3]
FIXED = [0, 1, 2, 3, 4]
RATIOS = [
    (sm.Precision, sk.precision_score),
    (sm.Recall, sk.recall_score),
    (sm.F1, sk.f1_score),
    (sm.Jaccard, sk.jaccard_score),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("average", ["macro", "weighted", "micro"])
@pytest.mark.parametrize(("metric", "reference"), RATIOS)
def test_by_default_averages_are_those_of_scikit_learn(metric, reference, average):
    value = metric(average=average).update(TRUE, PREDICTED).compute()
    assert value == pytest.approx(reference(TRUE, PREDICTED, average=average), rel=1e-14)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("zero_division", [0.0, 1.0, math.nan])
@pytest.mark.parametrize("average", ["macro", "weighted", None])
@pytest.mark.parametrize(("metric", "reference"), RATIOS[:3])
def test_a_given_zero_division_is_that_of_scikit_learn(metric, reference, average, zero_division):
    ours = metric(average=average, zero_division=zero_division, labels=FIXED)
    expected = reference(
        TRUE, PREDICTED, average=average, zero_division=zero_division, labels=FIXED
    )
    np.testing.assert_allclose(ours.update(TRUE, PREDICTED).compute(), expected, rtol=1e-14)


def fewer_labels(seed):
    """Return few rows of few labels, among which much is 0/0."""
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 6)
    return rng.integers(0, 4, n).tolist(), rng.integers(0, 3, n).tolist()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("average", some(["macro", "weighted", "micro"]))
@pytest.mark.parametrize(
    ("metric", "reference", "given"),
    [
        (*ratio, given)
        for ratio in RATIOS
        for given in (None, 0.0, 1.0, math.nan)
        if ratio[0] is not sm.Jaccard or given in (None, 0.0, 1.0)  # that one refuses nan
    ],
)
def test_averages_of_few_rows_are_those_of_scikit_learn(metric, reference, average, given):
    options = {"average": average} | ({} if given is None else {"zero_division": given})
    for seed in range(10):
        true, predicted = fewer_labels(seed)
        value = metric(**options).update(true, predicted).compute()
        expected = reference(true, predicted, **options)
        if average == "weighted" and math.isnan(value):
            assert math.isnan(given)
            assert expected == 0.0  # what is left are classes that weigh nothing
            continue
        np.testing.assert_allclose(value, expected, rtol=1e-14)


def test_a_weighted_average_of_classes_that_are_never_predicted_is_zero():
    true, predicted = [2, 2, 1], [0, 0, 0]
    weighted = sm.Precision(average="weighted").update(true, predicted)
    with pytest.warns(sm.UndefinedMetricWarning, match="the classes 1, 2 as 0 in its average"):
        assert weighted.compute() == 0.0
    report = sm.ClassificationReport().update(true, predicted)
    with pytest.warns(sm.UndefinedMetricWarning, match="precision of the classes 1, 2 as 0"):
        assert report.compute()["weighted avg"]["precision"] == 0.0
    left_out = sm.Precision(average="weighted", zero_division=math.nan).update(true, predicted)
    with pytest.warns(sm.UndefinedMetricWarning, match="Precision is nan"):
        assert math.isnan(left_out.compute())


def test_a_class_with_rows_counts_as_zero_and_is_named():
    precision = sm.Precision(average="macro").update(["a", "b", "c"], ["a", "b", "b"])
    with pytest.warns(sm.UndefinedMetricWarning, match=r"Precision counts the class 'c' as 0"):
        assert precision.compute() == 0.5
    recall = sm.Recall(average="macro").update(["a", "b", "b"], ["a", "b", "c"])
    with pytest.warns(sm.UndefinedMetricWarning, match=r"'c' as 0.*zero_division=nan leaves"):
        assert recall.compute() == 0.5


def test_a_class_without_rows_is_left_out_and_named():
    precision = sm.Precision(average="macro", labels=[0, 1, 7, 8]).update([0, 1], [0, 1])
    with pytest.warns(sm.UndefinedMetricWarning, match="leaves the classes 7, 8 out"):
        assert precision.compute() == 1.0
    both = sm.Precision(average="macro", labels=FIXED).update(TRUE, PREDICTED)
    with pytest.warns(
        sm.UndefinedMetricWarning, match="the class 2 as 0.*; and leaves the class 4"
    ):
        assert both.compute() == pytest.approx((2 / 3 + 1 / 2) / 4)


def test_what_does_not_change_the_average_is_not_warned_of():
    weighted = sm.Recall(average="weighted").update([0, 0], [0, 1])  # 1 weighs nothing
    explicit = sm.Precision(average="macro", zero_division=math.nan).update(TRUE, PREDICTED)
    given = sm.Precision(average="macro", zero_division=0).update(TRUE, PREDICTED)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert weighted.compute() == 0.5
        assert explicit.compute() == pytest.approx((2 / 3 + 1 / 2 + 0) / 3)
        assert given.compute() == pytest.approx((2 / 3 + 1 / 2 + 0) / 4)


@pytest.mark.parametrize("zero_division", [None, math.nan])
def test_a_value_that_stands_alone_is_nan_and_named(zero_division):
    options = {"zero_division": zero_division}
    lone = sm.Precision(**options).update([0, 1], [0, 0])
    with pytest.warns(sm.UndefinedMetricWarning, match=r"nan for the class 1.*zero_division=0"):
        assert math.isnan(lone.compute())
    never_seen = sm.Recall(pos_label="yes", **options).update(["no"], ["no"])
    with pytest.warns(sm.UndefinedMetricWarning, match="nan for the class 'yes'"):
        assert math.isnan(never_seen.compute())
    each = sm.Precision(average=None, **options).update(TRUE, PREDICTED)
    with pytest.warns(sm.UndefinedMetricWarning, match="nan for the class 2"):
        assert np.isnan(each.compute()).tolist() == [False, False, True, False]


def test_an_average_of_nothing_defined_is_nan():
    metric = sm.Specificity(average="macro").update([1, 1], [1, 1])
    with pytest.warns(sm.UndefinedMetricWarning, match="Specificity is nan"):
        assert math.isnan(metric.compute())


def test_the_report_averages_by_the_same_rule():
    report = sm.ClassificationReport().update(TRUE, PREDICTED)
    expected = "precision of the class 2 as 0.*recall of the class 3 as 0"
    with pytest.warns(sm.UndefinedMetricWarning, match=expected):
        value = report.compute()
    reference = sk.classification_report(TRUE, PREDICTED, output_dict=True, zero_division=0)
    for title in ("macro avg", "weighted avg"):
        assert value[title] == pytest.approx(reference[title])
    assert math.isnan(value["2"]["precision"])
    assert math.isnan(value["3"]["recall"])


def test_reading_bounds_and_exactness_does_not_warn():
    metric = sm.Precision(average="macro").update(TRUE, PREDICTED)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert metric.bounds().low == metric.bounds().high
        assert metric.exact


def test_the_default_is_kept_in_files_and_that_of_0_1_0_is_too():
    for metric in (sm.F1(), sm.F1(zero_division=math.nan), sm.F1(zero_division=0.5)):
        back = sm.from_bytes(metric.to_bytes())
        assert repr(back) == repr(metric)
    with pytest.raises(sm.IncompatibleMetricsError, match="zero_division is"):
        sm.F1().merge(sm.F1(zero_division=math.nan))


MATRIX = [[0.7, 0.2, 0.1], [0.3, 0.4, 0.3], [0.2, 0.7, 0.1], [0.5, 0.25, 0.25]]
SCORED = [
    sm.ROCAUC,
    sm.AveragePrecision,
    sm.PRAUC,
    sm.KolmogorovSmirnov,
    lambda **options: sm.RecallAtPrecision(p=0.5, **options),
    lambda **options: sm.SensitivityAtSpecificity(s=0.5, **options),
]


@pytest.mark.parametrize("metric", SCORED)
def test_score_metrics_leave_out_a_class_without_rows_and_name_it(metric):
    macro, each, given = (
        metric(**options).update([0, 1, 1, 0], MATRIX)
        for options in ({}, {"average": None}, {"zero_division": 0.25})
    )
    with pytest.warns(sm.UndefinedMetricWarning, match="leaves the class 2 out of its average"):
        value = macro.compute()
    with pytest.warns(sm.UndefinedMetricWarning, match="nan for the class 2"):
        values = each.compute()
    assert np.isnan(values).tolist() == [False, False, True]
    assert value == pytest.approx(values[:2].mean())
    assert macro.bounds() == (value, value)
    assert given.compute() == pytest.approx((values[:2].sum() + 0.25) / 3)


def test_a_score_metric_of_one_class_is_nan_and_never_zero():
    of_matrix = sm.ROCAUC().update([0, 0], MATRIX[:2])
    binary = sm.ROCAUC().update([1, 1], [0.5, 0.75])
    for metric in (of_matrix, binary, sm.ROCAUC(zero_division=0.5)):
        with pytest.warns(sm.UndefinedMetricWarning, match="ROCAUC is nan"):
            assert math.isnan(metric.compute())
    assert sm.ROCAUC(zero_division=0.5).update([1, 1], [0.5, 0.75]).compute() == 0.5


@pytest.mark.parametrize("zero_division", [0.0, 1.0])
@pytest.mark.parametrize(("metric", "reference"), RATIOS)
def test_a_weighted_mean_of_classes_without_weight_is_scikit_learns(
    metric, reference, zero_division
):
    none, called = [[0, 0], [0, 0]], [[1, 0], [1, 1]]
    ours = metric(average="weighted", multilabel=True, zero_division=zero_division)
    expected = reference(none, called, average="weighted", zero_division=zero_division)
    assert ours.update(none, called).compute() == expected
    silent = metric(average="weighted", multilabel=True).update(none, called)
    with pytest.warns(sm.UndefinedMetricWarning, match="is nan"):
        assert math.isnan(silent.compute())


@pytest.mark.parametrize("made", [sm.F1, sm.Precision, sm.Recall, sm.Jaccard, sm.Specificity])
@pytest.mark.parametrize("zero_division", [1e100, -1e100])
def test_the_largest_zero_division_has_finite_averages(made, zero_division):
    labels = {"y_true": np.tile([0, 1, 2, 3], 5), "y_pred": np.tile([0, 1, 2, 2, 1], 4)}
    sets = {"y_true": np.eye(4, dtype=int)[[0, 1, 3, 3]], "y_pred": np.zeros((4, 4), int)}
    sets["y_true"][2:] = 0
    weight = np.full(4, 1e300)
    given = {"zero_division": zero_division, "multilabel": True}
    report = sm.ClassificationReport(**given).update(**sets, sample_weight=weight).compute()
    values = [sum(report["samples avg"].values())]
    for average in ("macro", "weighted", "samples"):
        metric = made(average=average, **given)
        values.append(metric.update(**sets, sample_weight=weight).compute())
    for average in ("macro", "weighted"):
        metric = made(average=average, zero_division=zero_division)
        values.append(metric.update(**labels, sample_weight=np.full(20, 1e300)).compute())
    assert np.isfinite(values).all()
    with pytest.raises(ValueError, match=r"expected a number from -1e\+100 to 1e\+100, nan or"):
        made(zero_division=2 * zero_division)
