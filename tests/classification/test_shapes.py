"""Shapes: one-column arrays are columns, labels (B, T...) have a row for each position."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import streammetrics as sm

RNG = np.random.default_rng(7)
B, K, T, U = 6, 4, 5, 3
TOKENS = RNG.integers(0, K, (B, T))
CALLED = RNG.integers(0, K, (B, T))
LOGITS = RNG.standard_normal((B, K, T))
FLAT = np.moveaxis(LOGITS, 1, -1).reshape(-1, K)
BINARY = RNG.integers(0, 2, 40)
SCORES = RNG.random(40).round(2)


@pytest.mark.parametrize("column", [lambda x: x, lambda x: x[:, None]], ids=["(n,)", "(n, 1)"])
@pytest.mark.parametrize(
    ("metric", "second"),
    [
        (sm.Accuracy(), BINARY[::-1].copy()),
        (sm.F1(threshold=0.5), SCORES),
        (sm.ROCAUC(), SCORES),
        (sm.LogLoss(), SCORES),
        (sm.CalibrationError(), SCORES),
        (sm.MAE(), SCORES),
        (sm.SpearmanRho(), SCORES),
    ],
    ids=lambda what: type(what).__name__,
)
def test_one_column_arrays_are_columns(metric, second, column):
    plain = metric.copy().update(BINARY, second)
    weight = np.ones(len(BINARY))
    assert metric.copy().update(BINARY[:, None], column(second)) == plain
    assert metric.copy().update(column(BINARY), second[:, None]) == plain
    if not isinstance(metric, sm.SpearmanRho):
        weighted = metric.copy().update(BINARY, second[:, None], sample_weight=weight[:, None])
        assert weighted.compute() == plain.compute()


def test_one_column_tables_are_columns():
    names = np.array(["no", "yes"])
    frame = pd.DataFrame({"y": BINARY, "p": SCORES, "name": names[BINARY]})
    called = (SCORES >= 0.5).astype(int)
    assert sm.Accuracy().update(frame[["y"]], called[:, None]).compute() == np.mean(
        called == BINARY
    )
    auc = sm.ROCAUC(pos_label="yes").update(frame[["name"]], frame[["p"]])
    assert auc.compute() == sm.ROCAUC().update(BINARY, SCORES).compute()
    words = sm.Accuracy().update(names[BINARY][:, None], names[called].astype(object)[:, None])
    assert words.compute() == np.mean(called == BINARY)
    suite = sm.MetricSet({"f1": sm.F1(threshold=0.5)}, columns={"y_true": "y", "y_score": "p"})
    suite.update(y=frame[["y"]].to_numpy(), p=frame[["p"]].to_numpy())
    assert suite["f1"].compute() == sm.F1().update(BINARY, called).compute()


def test_classes_of_one_column_of_scores_are_not_all_zero():
    with pytest.raises(sm.InvalidBatchError, match=r"y_pred is not a label .*threshold=0\.5"):
        sm.Accuracy().update(BINARY, SCORES[:, None])


@pytest.mark.parametrize("metric", [sm.Accuracy(), sm.F1(average="macro"), sm.ConfusionMatrix()])
def test_labels_at_positions_are_rows(metric):
    plain = metric.copy().update(TOKENS.ravel(), CALLED.ravel())
    assert metric.copy().update(TOKENS, CALLED) == plain
    assert metric.copy().update(TOKENS.tolist(), CALLED.tolist()) == plain
    of_scores = metric.copy().update(TOKENS.ravel(), FLAT)
    assert metric.copy().update(TOKENS, LOGITS) == of_scores
    pixels = TOKENS[:, :, None].repeat(U, axis=2)
    many = metric.copy().update(pixels, LOGITS[..., None].repeat(U, axis=3))
    assert many == sm.merge([of_scores] * U)


@pytest.mark.parametrize("metric", [sm.ROCAUC, sm.BrierScore, sm.LogLoss, sm.TopKAccuracy])
def test_scores_of_classes_at_positions_have_the_class_second(metric):
    weight = RNG.integers(1, 4, (B, T)).astype(float)
    ours = metric(from_logits=True).update(TOKENS, LOGITS, sample_weight=weight)
    theirs = metric(from_logits=True).update(TOKENS.ravel(), FLAT, sample_weight=weight.ravel())
    assert ours == theirs


def test_scores_of_one_class_at_positions():
    y_true, y_score = BINARY.reshape(8, 5), SCORES.reshape(8, 5)
    padded = sm.ROCAUC(ignore_index=-100)
    assert padded.copy().update(y_true, y_score) == padded.copy().update(BINARY, SCORES)
    assert sm.ROCAUC().update(y_true, y_score[:, None]) == sm.ROCAUC().update(BINARY, SCORES)
    one_position = sm.Accuracy().update(TOKENS[:, :1], LOGITS[:, :, :1])
    assert one_position == sm.Accuracy().update(TOKENS[:, 0], LOGITS[:, :, 0])


def test_tensors_and_many_positions():
    torch = pytest.importorskip("torch")
    ours = sm.Accuracy().update(torch.tensor(TOKENS), torch.tensor(LOGITS))
    assert ours == sm.Accuracy().update(TOKENS.ravel(), FLAT)
    long = RNG.integers(0, 3, (40, 3000))
    assert sm.Accuracy().update(long, long[::-1]) == sm.Accuracy().update(
        long.ravel(), long[::-1].ravel()
    )


ONE_HOT, PROBABILITIES = np.eye(3), np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])


@pytest.mark.parametrize("dtype", [bool, int, float, np.float32])
@pytest.mark.parametrize(
    "metric",
    [
        sm.ROCAUC, sm.ROCCurve, sm.LogLoss, sm.BrierScore, sm.CalibrationError, sm.TopKAccuracy,
        sm.Accuracy, sm.ConfusionMatrix, lambda: sm.F1(threshold=0.5),
    ],
)  # fmt: skip
def test_one_hot_labels_beside_probabilities_are_told_what_to_do(metric, dtype):
    told = r"y_(score|pred) has shape \(\d+, 3\) .*one-hot: pass y_true.argmax\(axis=1\)"
    for scores in (PROBABILITIES, PROBABILITIES.astype(np.float16), PROBABILITIES.tolist()):
        with pytest.raises(sm.InvalidBatchError, match=told):
            metric().update(ONE_HOT.astype(dtype), scores)
    with pytest.raises(sm.InvalidBatchError, match=told):  # as long as they may be
        metric().update(
            np.tile(ONE_HOT.astype(dtype), (50_000, 1)), np.tile(PROBABILITIES, (50_000, 1))
        )


@pytest.mark.parametrize(
    "metric",
    [sm.ROCAUC, sm.LogLoss, lambda: sm.F1(threshold=0.5), lambda: sm.Accuracy(threshold=0)],
)
def test_several_labels_a_row_beside_their_scores_are_told_what_to_say(metric):
    several = ONE_HOT.copy()
    several[0] = 1
    told = (
        r"y_true and y_score both have shape \(3, 3\): several labels .* multilabel=True; .*reshape"
    )
    free = PROBABILITIES * 0.5
    for labels, scores in ((several, PROBABILITIES), (ONE_HOT, free), (several.tolist(), free)):
        with pytest.raises(sm.InvalidBatchError, match=told):
            metric().update(labels, scores)
        with pytest.raises(sm.InvalidBatchError, match=told):
            sm.MetricSet({"m": metric()}).update(y_true=labels, y_score=scores)
    assert sm.ROCAUC(multilabel=True).update(several, free).n_rows == 3


def test_labels_at_positions_that_are_not_one_hot_are_rows():
    several = ONE_HOT.copy()
    several[0] = 1
    free = PROBABILITIES * 0.5
    for labels, scores in ((several, PROBABILITIES), (ONE_HOT, free), (ONE_HOT * 2, PROBABILITIES)):
        metric = sm.ROCAUC(pos_label=int(labels.max()), ignore_index=-100)
        expected = metric.copy().update(labels.reshape(-1), scores.reshape(-1))
        assert metric.update(labels, scores) == expected
    pixels = (ONE_HOT[..., None].repeat(2, axis=2), free[..., None].repeat(2, axis=2))
    assert sm.ROCAUC().update(*pixels).n_rows == 18
    weighed = sm.ROCAUC(ignore_index=-100).update(ONE_HOT, free, sample_weight=PROBABILITIES)
    assert weighed.n_rows == 9


@pytest.mark.parametrize(
    ("y_score", "message"),
    [
        (np.moveaxis(LOGITS, 1, -1), r"\(6, 5, 4\), and the labels \(6, 5\).*\(6, K, 5\)"),
        (LOGITS[:, :, :3], "and the labels"),
        (LOGITS[:5], "and the labels"),
        (LOGITS[:, 0, 0], "and the labels"),
    ],
)
def test_other_shapes_are_refused_with_words(y_score, message):
    for metric in (sm.Accuracy(), sm.ROCAUC(from_logits=True)):
        with pytest.raises(sm.InvalidBatchError, match=message):
            metric.update(TOKENS, y_score)
        assert metric.n_rows == 0
    with pytest.raises(sm.InvalidBatchError, match=r"sample_weight has shape \(6,\), and the lab"):
        sm.Accuracy().update(TOKENS, CALLED, sample_weight=np.ones(B))
    with pytest.raises(sm.InvalidBatchError, match=r"y_score has shape .* \(B, K, T...\)"):
        sm.ROCAUC().update(TOKENS[:, 0], LOGITS)


IGNORING = [
    (sm.Accuracy, {}),
    (sm.F1, {"average": "macro"}),
    (sm.TopKAccuracy, {}),
    (sm.ROCAUC, {"from_logits": True}),
    (sm.LogLoss, {"from_logits": True}),
    (sm.BrierScore, {"from_logits": True}),
    (sm.CalibrationError, {"from_logits": True}),
]


@pytest.mark.parametrize(("metric", "options"), IGNORING)
def test_ignored_labels_are_as_if_absent_and_counted(metric, options):
    y_true, y_score = TOKENS.copy(), LOGITS.copy()
    padded = np.arange(T) >= np.array([[5], [4], [3], [2], [1], [0]])
    y_true[padded] = -100
    np.moveaxis(y_score, 1, -1)[padded] = np.nan  # whatever else the rows hold
    weight = np.where(padded, -1.0, 2.0)
    ours = metric(ignore_index=-100, **options).update(y_true, y_score, sample_weight=weight)
    kept = ~padded.ravel()
    theirs = metric(**options).update(
        TOKENS.ravel()[kept], FLAT[kept], sample_weight=weight.ravel()[kept]
    )
    np.testing.assert_array_equal(ours.compute(), theirs.compute())
    assert (ours.n_rows, ours.n_omitted) == (kept.sum(), padded.sum())
    assert sm.from_bytes(ours.to_bytes()) == ours


def test_ignored_labels_beside_a_threshold_missing_values_and_strings():
    metric = sm.F1(threshold=0.5, ignore_index=-1, nan_policy="omit")
    metric.update([0, 1, -1, 1], [0.1, 0.9, np.nan, np.nan])
    assert (metric.n_rows, metric.n_omitted) == (2, 2)
    with pytest.raises(
        sm.InvalidBatchError, match="y_score is missing .* in 1 row, first in row 3"
    ):
        sm.F1(threshold=0.5, ignore_index=-1).update([0, 1, -1, 1], [0.1, 0.9, np.nan, np.nan])
    words = sm.Accuracy(ignore_index=-1).update(["a", "b"], ["a", "a"])
    assert words.n_omitted == 0
    everything = sm.Accuracy(ignore_index=3).update([3, 3], [0, 1])
    assert (everything.n_rows, everything.n_omitted) == (0, 2)
    floats = sm.Accuracy(ignore_index=-100).update([1.0, -100.0], [1, -100])
    assert floats.compute() == 1.0


def test_a_label_cannot_be_named_and_ignored():
    for metric in (sm.Accuracy, sm.ROCAUC, sm.TopKAccuracy):
        with pytest.raises(ValueError, match="ignore_index=2 is one of labels"):
            metric(labels=[0, 1, 2], ignore_index=2)


def test_labels_given_as_whole_floats_are_integers():
    metric = sm.Accuracy(labels=[0.0, 1.0, np.float32(2)])
    assert metric.labels == (0, 1, 2)
    assert metric.update([0.0, 2.0], [0, 1]).classes == [0, 1, 2]
    with pytest.raises(ValueError, match=r"labels=\(0\.5, 1\)"):
        sm.Accuracy(labels=[0.5, 1.0])


@pytest.mark.filterwarnings("error")
def test_half_precision_labels():
    metric = sm.Accuracy().update(np.array([0, 1, 2], np.float16), np.array([0, 1, 1], np.float32))
    assert metric.compute() == 2 / 3


def test_indicators_of_several_labels_that_are_taken_for_positions_are_named():
    rows = np.array([[1, 0, 1], [0, 1, 1]])
    for metric in (sm.Accuracy(), sm.F1(average="macro")):
        with pytest.warns(UserWarning, match=r"\(2, 3\) of 0 and 1, .* 6 rows .*multilabel=True"):
            metric.update(rows, rows)
    assert sm.MeanIoU().update(rows, rows).compute() == 1.0  # of masks, which are positions
    assert sm.Accuracy(ignore_index=-1).update(rows, rows).n_rows == 6
    said = sm.Accuracy(labels=[0, 1]).update(rows, rows)
    assert said.n_rows == sm.Accuracy().update(rows.reshape(-1), rows.reshape(-1)).n_rows == 6
    assert sm.Accuracy().update(rows + 1, rows + 1).n_rows == 6
