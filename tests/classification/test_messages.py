"""Messages, read as one who has just made the mistake: each says what to type next."""

from __future__ import annotations

import numpy as np
import pytest

import streammetrics as sm

Y, S = [0, 1, 1, 0], [0.1, 0.7, 0.4, 0.2]
WORDS = ["no", "yes", "yes", "no"]
MATRIX = [[0.2, 0.3, 0.5]] * 4

MISTAKES = [
    (sm.F1(), (Y, S), r"y_pred is not a label .*threshold=0\.5"),
    (sm.Accuracy(), (S, Y), "y_true is not a label"),
    (sm.ROCAUC(), (S, Y), "y_true is not a label .*labels come first, scores second"),
    (sm.F1(threshold=0.5), (WORDS, S), "holds strings; say which .*pos_label='yes'"),
    (sm.ROCAUC(), (WORDS, S), "pos_label='yes'"),
    (sm.LogLoss(pos_label="yes"), (Y, S), "holds integers, but pos_label is 'yes'; .*pos_label=1"),
    (sm.Accuracy(), (WORDS, Y), r"y_true holds strings, y_pred holds integers: convert one"),
    (sm.Accuracy(), (np.eye(4), Y), r"y_pred has shape .*one-hot .*y_true\.argmax"),
    (sm.Accuracy(), (Y, WORDS), "y_true holds integers, y_pred holds strings"),
    (sm.Accuracy(), (WORDS, MATRIX), r"holds strings; .* column of y_pred .*labels=\[\.\.\.\] in"),
    (sm.Precision(), (["1", "0", "1", "0"], MATRIX), r"holds strings; .*labels=\[\.\.\.\] in"),
    (
        sm.ROCAUC(),
        ([0, 1, 2, 0], S),
        r"neither 0, .*\(2\); one score .*pass \(n, K\) scores",
    ),
    (sm.ROCAUC(), ([2, 3, 3, 2], S), "neither 0, 1 nor -1 in 4 rows.*pos_label=3 or another"),
    (sm.ROCAUC(), ([0, 1, 5, 0], MATRIX), r"3 columns of scores .*labels=\[\.\.\.\]"),
    (sm.ROCAUC(), (WORDS, MATRIX), r"holds strings; .*labels=\[\.\.\.\] in their order"),
    (sm.ROCAUC(), (Y, WORDS), "y_score holds text; numbers are needed"),
    (sm.TopKAccuracy(), (Y, S), r"one number a row; \(n, K\) scores are needed"),
    (sm.F1(threshold=0.5), (Y, MATRIX), "a threshold cuts one score a row: .*as y_pred"),
    (sm.Accuracy(labels=[0, 2]), (Y, Y), r"not one of the labels given .*labels=\[0, 2\]"),
    (sm.Accuracy(labels=[0, 1]), (WORDS, WORDS), r"the labels given are numbers: labels=\[0, 1\]"),
    (sm.Accuracy(labels=[0, 1]), (Y, MATRIX), r"3 columns for 2 labels, labels=\[0, 1\]"),
    (sm.LogLoss(), (Y, [-2.0, 3.0, 1.0, 0.5]), r"outside \[0, 1\] in 2 rows.*from_logits=True"),
]


@pytest.mark.parametrize(("metric", "columns", "message"), MISTAKES)
def test_a_mistake_in_the_first_batch_says_what_to_type(metric, columns, message):
    with pytest.raises(sm.InvalidBatchError, match=message) as caught:
        metric.update(*columns)
    assert "rows seen before" not in str(caught.value)
    assert metric.n_rows == 0


@pytest.mark.parametrize(
    ("metric", "first", "second", "message"),
    [
        (sm.Accuracy(), (Y, Y), (WORDS, WORDS), "convert them to one kind"),
        (sm.ROCAUC(), (Y, S), ([1, -1, -1, 1], S), r"pos_label=\.\.\. says which is positive"),
        (sm.ROCAUC(), (Y, S), (Y, MATRIX), r"pass \(n,\) or \(n, K\) in every batch"),
    ],
)
def test_a_batch_unlike_those_before_says_so(metric, first, second, message):
    metric.update(*first)
    with pytest.raises(sm.InvalidBatchError, match=f"rows seen before; .*{message}"):
        metric.update(*second)


def test_a_binary_average_names_what_there_is():
    with pytest.raises(sm.InvalidBatchError, match="pos_label='yes' or another says which"):
        sm.F1().update(WORDS, WORDS).compute()
    with pytest.raises(sm.InvalidBatchError, match="average='macro', micro"):
        sm.F1().update([0, 1, 2], [0, 1, 2]).compute()


@pytest.mark.parametrize(
    ("metric", "columns", "message"),
    [
        (sm.MSLE(), ([-2.0], [1.0]), r"y_true is not above -1 in 1 row, first in row 0 \(-2\.0\)"),
        (sm.PoissonDeviance(), ([-1.0], [1.0]), "y_true is not at least 0 in 1 row"),
        (sm.MAE(), (["a"], [1.0]), "y_true holds text; numbers are needed"),
        (sm.MAE(), ([1.0, 2.0], [[1.0, 2.0]] * 2), "y_true has 1 numbers a row, y_pred has 2"),
    ],
)
def test_numbers_out_of_range(metric, columns, message):
    with pytest.raises(sm.InvalidBatchError, match=message):
        metric.update(*columns)


def test_parameters_of_another_type_name_what_is_expected():
    with pytest.raises(ValueError, match=r"F1\(ignore_index=1\.5\): expected an integer or None"):
        sm.F1(ignore_index=1.5)


def test_long_rows_are_shown_in_part():
    wide = np.full((1, 1000), 0.5)
    with pytest.raises(sm.InvalidBatchError, match=r"0\.5, \.\.\. 1000 of them") as caught:
        sm.LogLoss().update([0], wide)
    assert len(str(caught.value)) < 250


THREE = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
OF_COLUMNS = [
    sm.Accuracy, sm.BalancedAccuracy, sm.ClassificationReport, sm.CohenKappa, sm.ConfusionMatrix,
    sm.MatthewsCorrcoef, sm.TopKAccuracy, sm.LogLoss, sm.BrierScore, sm.ROCAUC, sm.ROCCurve,
    sm.CalibrationError, lambda **options: sm.F1(average="macro", **options),
    lambda **options: sm.Jaccard(average="weighted", **options),
]  # fmt: skip


@pytest.mark.parametrize("metric", OF_COLUMNS)
def test_labels_beside_scores_of_classes_are_the_numbers_of_the_columns(metric):
    told = r"not the number of one of the 3 columns of scores in 1 row, first in row {} .*labels="
    for labels, row in ([1, 2, 3], 2), ([1, -1, 0], 1), ([1.0, 2.0, 3.0], 2):
        with pytest.raises(sm.InvalidBatchError, match=told.format(row)):
            metric().update(labels, THREE)
    left_out = metric(nan_policy="omit", ignore_index=-1).update([-1, None, 2], THREE)
    assert left_out.n_rows == 1
    with pytest.raises(sm.InvalidBatchError, match=told.format(1)):
        left_out.update([-1, 5, 2], THREE)


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
@pytest.mark.parametrize("metric", OF_COLUMNS)
def test_labels_say_which_class_each_column_is_for(metric):
    true, order = [0, 2, 2, 1, 0, 1], ["dog", "cat", "eel"]
    scores = THREE + THREE[::-1]
    plain = metric().update(true, scores)
    named = metric(labels=order).update([order[label] for label in true], scores)
    by_one = metric(labels=[3, 1, 2]).update([[3, 1, 2][label] for label in true], scores)
    expected = plain.compute()
    for other in named, by_one:
        value = other.compute()
        if isinstance(expected, float | np.ndarray):
            assert np.array_equal(value, expected)
        else:
            assert len(value) == len(expected)
            if isinstance(expected, dict):
                assert value["macro avg"] == expected["macro avg"]
