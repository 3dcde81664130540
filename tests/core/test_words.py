"""What is taken, and what messages say."""

from __future__ import annotations

import re

import numpy as np
import pytest

import streammetrics as sm

UNDEFINED = [
    (sm.ROCAUC(), ([1, 1], [0.1, 0.2]), "only one class was seen, as every row is positive"),
    (sm.AveragePrecision(), ([0, 0], [0.1, 0.2]), "only one class was seen, as every row is neg"),
    (sm.R2(), ([2.0, 2.0], [1.0, 3.0]), "the target is constant"),
    (sm.ExplainedVariance(), ([2.0, 2.0], [1.0, 3.0]), "the target is constant"),
    (sm.PearsonCorrelation(), ([1.0, 3.0], [2.0, 2.0]), "the prediction is constant"),
    (sm.KendallTau(), ([2.0, 2.0], [1.0, 3.0]), "y_true is constant"),
    (sm.SpearmanRho(), ([1.0, 2.0], [1.0, 1.0]), "y_pred is constant"),
    (sm.Precision(), ([1, 0], [0, 0]), "1, as there are no predictions of it"),
    (sm.Recall(), ([0, 0], [1, 0]), "1, as there are no rows of it"),
    (sm.Specificity(), ([1, 1], [1, 0]), "1, as there are no rows outside it"),
    (
        sm.Recall(labels=[0, 1, 2], average=None),
        ([0, 0], [1, 0]),
        "1, 2, as there are no rows of the classes 1, 2 and no predictions of the class 2",
    ),
    (sm.CohenKappa(), ([0, 0], [0, 0]), "all rows are of one class"),
    (sm.MatthewsCorrcoef(), ([0, 1], [0, 0]), "or predicted as one"),
    (sm.CramersV(), ([0, 0], [0, 1]), "labels_true had a single label only"),
    (sm.TheilsU(), ([0, 0], [0, 0]), "labels_true and labels_pred had a single label"),
    (sm.PairPrecision(), ([0, 0], [0, 1]), "no two rows have the same label in labels_pred"),
    (sm.PairRecall(), ([0, 1], [0, 0]), "no two rows have the same label in labels_true"),
    (sm.Silhouette(), ([[1.0], [2.0]], [0, 0]), "fewer than two clusters"),
    (sm.NDCG(), (["q", "q"], [None, None], [0.1, 0.2]), "no query has a judged document"),
    (
        sm.NDCG(no_relevant="skip"),
        (["q", "q"], [0.0, 0.0], [0.1, 0.2]),
        "no judged query has a relevant document .no_relevant='zero'",
    ),
    (sm.MAE(), ([], []), "no rows were seen"),
    (sm.MAE(), ([1.0], [2.0], [0.0]), "all of them had weight 0"),
    (sm.Mean(), ([1.0], [0.0]), "all of them had weight 0"),
    (sm.WAPE(), ([0.0, 0.0], [1.0, 2.0]), "every target is 0"),
    (sm.R2(), ([[1.0, 2.0], [1.0, 3.0]],) * 2, "the target is constant in output 0$"),
    (sm.RelativeAbsoluteError(), ([2.0, 2.0], [1.0, 3.0]), "the target is constant"),
    (
        sm.ROCAUC(labels=[0, 1, 2]),
        ([1, 1], [[0.2, 0.5, 0.3]] * 2),
        "no positive rows of the classes 0, 2 and no negative rows of the class 1",
    ),
    (
        sm.AveragePrecision(average=None),
        ([0, 1], [[0.2, 0.5, 0.3]] * 2),
        "the class 2, as there are no positive rows of it",
    ),
]


@pytest.mark.parametrize(("metric", "rows", "why"), UNDEFINED, ids=lambda x: repr(x)[:24])
def test_nan_says_what_the_rows_lack(metric, rows, why):
    columns = (*metric.inputs, *(["sample_weight"] if len(rows) > len(metric.inputs) else []))
    metric.update(**dict(zip(columns, rows, strict=False)))
    with pytest.warns(sm.UndefinedMetricWarning, match=why):
        assert np.isnan(metric.compute()).any()


def test_a_reason_holds_for_its_formula_only():
    class Doubled(sm.PairPrecision):
        def read(self, overlap):
            return float("nan")

    with pytest.warns(sm.UndefinedMetricWarning, match="the rows seen do not define it"):
        Doubled().update([0, 0, 1], [0, 0, 1]).compute()


def test_rounded_probabilities_are_told_about_their_rounding():
    with pytest.raises(sm.InvalidBatchError, match="rounded") as refused:
        sm.LogLoss().update([0, 1], [[0.3333, 0.3333, 0.3333], [0.2, 0.3, 0.5]])
    assert "logits" not in str(refused.value)
    p = np.array([[0.3333, 0.3333, 0.3333], [0.2, 0.3, 0.5]])
    (advice,) = re.findall(r"p / p\.sum\(.*\)", str(refused.value))
    assert sm.LogLoss().update([0, 1], eval(advice, {"p": p})).n_rows == 2
    with pytest.raises(sm.InvalidBatchError, match="from_logits=True"):
        sm.LogLoss().update([0, 1], [[0.3, 0.9, 0.9], [0.2, 0.3, 0.5]])


def test_one_metric_is_evaluated_as_a_set_of_one():
    rows = {"y_true": [1.0, 2.0], "y_pred": [2.0, 4.0]}
    found = sm.evaluate(sm.MAE(), [rows, rows])
    assert type(found) is sm.MAE
    assert (found.compute(), found.n_rows) == (1.5, 4)
    assert found.to_bytes() == sm.MAE().update(**rows).update(**rows).to_bytes()


def test_slices_take_a_dictionary_and_comparisons_a_list():
    rows = {"y_true": [1, 0, 1, 0], "y_pred": [1, 0, 0, 0], "c": ["a", "a", "b", "b"]}
    slices = sm.Slices({"acc": sm.Accuracy()}, by="c").update(rows)
    assert slices.compute().to_dict()["acc"] == [1.0, 0.5]
    duel = sm.Comparison({"acc": sm.Accuracy()}, ["one", "two"])
    duel.update({"y_true": [1, 0], "one": [1, 0], "two": [0, 0]})
    assert [(line.model, line.against) for line in duel.compute()] == [("one", "two")]


def test_the_worst_slices_are_worse_than_the_rest():
    n = 100
    rows = {"y_true": [1] * 3 * n, "c": ["a"] * n + ["b"] * n + ["c"] * n}
    rows["y_pred"] = [1] * n + [1] * 90 + [0] * 10 + [1] * 50 + [0] * 50
    slices = sm.Slices({"recall": sm.Recall()}, by="c").update(rows)
    assert slices.worst("recall")["c"].tolist() == ["c"]


def test_bins_are_drawn_in_their_order():
    pytest.importorskip("matplotlib")
    pit = sm.PITHistogram(n_bins=5).update([0.1, 0.5, 0.5, 0.9, 0.95, 0.97])
    ax = pit.plot()
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names == sorted(names, reverse=True)
