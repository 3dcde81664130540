"""Bad input: a typed error that names the column, the count and the first row; nothing changes."""

from __future__ import annotations

import numpy as np
import pytest

import streammetrics as sm
from streammetrics.core.errors import an

NAN = float("nan")
INF = float("inf")

LABELS = sm.Accuracy().update([0, 1, 2], [0, 1, 1])
WORDS = sm.Accuracy().update(["a"], ["b"])
FIXED = sm.Accuracy(labels=[0, 1, 2]).update([0], [1])
CUT = sm.F1(threshold=0.5).update([0, 1], [0.1, 0.9])
YES = sm.F1(threshold=0.5, pos_label="yes").update(["yes", "no"], [0.1, 0.9])

CASES = [
    (LABELS, ([0, 1], [0]), "differ in length: y_true has 2 rows, y_pred has 1"),
    (LABELS, ([0.5, 1.0], [0, 1]), "y_true is not a label .* in 1 row, first in row 0"),
    (LABELS, (["a", "b"], [0, 1]), "y_true holds strings, y_pred holds integers"),
    (LABELS, (["a", "b"], ["a", "b"]), "labels: 'strings' here, 'integers' in rows seen before"),
    (WORDS, ([1], [1]), "labels: 'integers' here, 'strings'"),
    (LABELS, ([0, None, None], [0, 1, 1]), "y_true is missing .* in 2 rows, first in row 1"),
    (LABELS, ([[0, 1]], [[0, 1, 2]]), r"y_pred has shape \(1, 3\), and the labels \(1, 2\)"),
    (LABELS, (np.array([object()]), [1]), "y_true"),
    (LABELS, (np.array([1, "a"], dtype=object), [1, 1]), "y_true"),
    (LABELS, ([1 + 2j], [1]), "y_true"),
    (LABELS, (np.zeros((2, 2, 2)), [1, 1]), "y_pred has shape"),
    (LABELS, (None, [1]), "no column 'y_true'"),
    (LABELS, ([1], None), "no column 'y_pred'"),
    (
        FIXED,
        ([0, 3, 3], [0, 0, 0]),
        r"y_true is not one of the labels given in 2 rows, first in row 1 \(3\)",
    ),
    (FIXED, (["a"], ["a"]), "y_true holds strings; the labels given are numbers"),
    (FIXED, ([0], np.ones((1, 2))), "2 columns for 3 labels"),
    (CUT, ([0, 1], [0.5, NAN]), r"y_score is missing .* in 1 row, first in row 1"),
    (CUT, ([0, 1], ["a", "b"]), "y_score holds text"),
    (CUT, ([0, 1], [[0.5, 0.5], [0.5, 0.5]]), "y_score has shape .* column of the positive class"),
    (
        CUT,
        ([0, 1, 2], [0.1, 0.2, 0.3]),
        r"y_true is neither 0, 1 nor -1 in 1 row, first in row 2 \(2\)",
    ),
    (CUT, ([-1, 1], [0.1, 0.2]), "negative label: -1 here, 0 in rows seen before"),
    (CUT, (["no", "yes"], [0.1, 0.2]), "y_true holds strings; .*pos_label='yes' or another"),
    (YES, (["maybe", "yes"], [0.1, 0.2]), "negative label: 'maybe' here, 'no' in rows"),
    (YES, ([0, 1], [0.1, 0.2]), "pos_label is 'yes'"),
]


def repeatable(columns):
    """Whether the columns are arrays that NumPy can repeat as they are."""
    return all(c is not None and np.asarray(c).dtype != object for c in columns)


def repeated(columns, n):
    """Return the columns repeated until they are long enough to be taken in slices."""
    arrays = [np.asarray(column) for column in columns]
    return tuple(np.concatenate([array] * (n // len(array) + 1)) for array in arrays)


@pytest.mark.parametrize(
    ("metric", "columns", "message", "large"),
    [
        *((*case, False) for case in CASES),
        *((*case, True) for case in CASES if repeatable(case[1])),
    ],
)
def test_bad_columns(metric, columns, message, large):
    metric = metric.copy()
    before = metric.to_bytes()
    if large:
        columns = repeated(columns, 70_000)
        message = message.split(" in ")[0].split(" has ")[0]
    with pytest.raises(sm.InvalidBatchError, match=message):
        metric.update(*columns)
    assert metric.to_bytes() == before


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1, -1], r"sample_weight is negative or infinite in 1 row, first in row 1 \(-1.0\)"),
        ([INF, 1], "negative or infinite in 1 row, first in row 0"),
        ([NAN, NAN], "sample_weight is missing .* in 2 rows, first in row 0"),
        ([1], "differ in length"),
        ([[1, 2], [3, 4]], "sample_weight has 2 dimensions"),
        (["a", "b"], "sample_weight holds text"),
    ],
)
def test_bad_weights(weight, message):
    metric = CUT.copy()
    with pytest.raises(sm.InvalidBatchError, match=message):
        metric.update([0, 1], [0.2, 0.3], sample_weight=weight)
    assert metric == CUT


def test_error_of_a_long_batch_counts_all_of_it():
    y = np.zeros(200_000, int)
    s = np.zeros(200_000)
    s[[70_001, 150_000, 199_999]] = NAN
    metric = CUT.copy()
    with pytest.raises(sm.InvalidBatchError, match="in 3 rows, first in row 70001") as caught:
        metric.update(y, s)
    assert (caught.value.column, caught.value.row) == ("y_score", 70_001)
    assert metric == CUT


def test_omitted_rows_are_as_if_absent_and_counted():
    metric = sm.F1(threshold=0.5, nan_policy="omit")
    metric.update([0, 1, 1, None], [0.1, NAN, 0.8, 0.3], sample_weight=[1, 1, 2, 1])
    assert (metric.n_rows, metric.n_omitted) == (2, 2)
    assert metric.compute() == 1.0
    metric.update([1, 1], [0.7, 0.6], sample_weight=[NAN, 1])
    assert (metric.n_rows, metric.n_omitted) == (3, 3)
    assert sm.from_bytes(metric.to_bytes()).n_omitted == 3


def test_rows_of_weight_zero_are_as_if_absent():
    metric = sm.Accuracy().update([0, 1], [0, 1])
    before = metric.to_bytes()
    metric.update([5, 6], [7, 8], sample_weight=[0, 0])
    assert metric.to_bytes() == before
    with pytest.raises(sm.InvalidBatchError, match="missing"):
        metric.update([5, None], [7, 8], sample_weight=[1, 0])


def test_weights_are_exact():
    y, p = [0, 1, 1], [0, 1, 0]
    weighted = sm.ConfusionMatrix().update(y, p, sample_weight=[3, 1, 2])
    repeated = sm.ConfusionMatrix().update([0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 0, 0])
    assert weighted.compute().tolist() == repeated.compute().tolist()
    tiny = sm.ConfusionMatrix().update([0, 0, 0], [0, 0, 0], sample_weight=[1e16, 1, 1e-300])
    back = sm.ConfusionMatrix().update([0], [0], sample_weight=[1e-300])
    back.update([0, 0], [0, 0], sample_weight=[1, 1e16])
    assert tiny == back


def test_both_second_columns_or_the_wrong_one():
    with pytest.raises(sm.InvalidBatchError, match="needs a threshold"):
        sm.F1().update([1], y_score=[0.5])
    with pytest.raises(sm.InvalidBatchError, match="not both"):
        sm.F1(threshold=0.5).update([1], [0.5], y_score=[0.5])


def test_parameters_of_a_set_that_are_passed_to_its_update():
    table, names = {"label": [0, 1], "p": [0.2, 0.8]}, {"y_true": "label", "y_score": "p"}
    suite = sm.MetricSet({"auc": sm.ROCAUC()})
    said = r"columns is .* when the set is made: MetricSet\(\.\.\., columns=\{'y_true': 'label'"
    for given in ((table,), ()):
        with pytest.raises(sm.InvalidBatchError, match=said):
            suite.update(*given, columns=names)
    with pytest.raises(sm.InvalidBatchError, match=r"MetricSet\(\.\.\., unit='user'\)"):
        suite.update(table, unit="user")
    with pytest.raises(sm.InvalidBatchError, match=r"columns=\{'sample_weight': 'COLUMN'\}"):
        suite.update(table, sample_weight=[1, 2])


@pytest.mark.parametrize(
    "name", ["an Accuracy", "an F1", "an MSE", "an ndarray", "a ROCAUC", "a str", "a UnitSet"]
)
def test_names_of_classes_have_their_article(name):
    assert an(name.split()[1]) == name


def test_binary_average_of_three_classes():
    with pytest.raises(sm.InvalidBatchError, match="two classes.*0, 1, 2"):
        sm.F1().update([0, 1, 2], [0, 1, 2]).compute()
    with pytest.raises(sm.InvalidBatchError, match="pos_label"):
        sm.F1().update([2, 3], [2, 3]).compute()


@pytest.mark.parametrize("labels", [[], [0, 0], [0, "a"], [0.5], [None], "ab", 3])
def test_bad_label_lists(labels):
    with pytest.raises(ValueError, match="labels="):
        sm.Accuracy(labels=labels)


def test_top_k_accuracy_refuses_one_score_a_row_at_once():
    metric = sm.TopKAccuracy(k=2).update([0], [[0.1, 0.7, 0.2]])
    before = metric.to_bytes()
    with pytest.raises(sm.InvalidBatchError, match=r"y_score has one number a row; \(n, K\)"):
        metric.update([0, 1], [0.1, 0.2])
    assert metric.to_bytes() == before


@pytest.mark.parametrize(("library", "column"), [("pyarrow", "array"), ("polars", "Series")])
def test_lists_of_unequal_length_are_told_with_their_row(library, column):
    column = getattr(pytest.importorskip(library), column)
    metric, truth = sm.ROCAUC(multilabel=True), [[0, 1], [1, 0]]
    with pytest.raises(sm.InvalidBatchError, match=r"length \(2 in row 0, 1 in row 1\)"):
        metric.update(truth, column([[0.5, 0.25], [0.5]]))
    with pytest.raises(sm.InvalidBatchError, match="no list in row 1, but a null"):
        metric.update(truth, column([[0.5, 0.25], None]))


def test_an_input_that_is_none_is_told_as_that():
    metrics = sm.MetricSet({"auc": sm.ROCAUC()})
    with pytest.raises(sm.InvalidBatchError, match=r"^y_score is None; pass its values$") as caught:
        metrics.update(y_true=[0, 1], y_score=None)
    assert caught.value.column == "y_score"
