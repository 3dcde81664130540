"""Which label scores are of: 1 of {0, 1}, {-1, 1} and booleans, and of others the one that is said.

The verdict on labels does not depend on the order in which they come.
"""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from sklearn import metrics as sk

import streammetrics as sm
from streammetrics.core.columns.scores import ScoredLabels
from streammetrics.core.registry import catalogue

pytestmark = pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
S = np.array([0.1, 0.4, 0.35, 0.8])
CUT = {"threshold": 0.5}
# What needs more than its defaults to take a label and one score a row.
MORE = {
    "TopKAccuracy": {"k": 1}, "RecallAtPrecision": {"p": 0.5}, "PrecisionAtRecall": {"r": 0.5},
    "SensitivityAtSpecificity": {"s": 0.5}, "ConfusionAtThresholds": {"thresholds": [0.25, 0.5]},
    "BinaryNetBenefit": CUT,
}  # fmt: skip


def judges():
    """Yield every metric that can be made to take labels and (n,) scores."""
    for name, cls in catalogue().items():
        for given in ({}, MORE.get(name, CUT), {"q": 0.1}, {"share": 0.1}, {"average": "binary"}):
            try:
                metric = cls(**given)
                fields = metric.statistics()[0].schema.fields
            except (TypeError, ValueError):
                continue
            if any(isinstance(field, ScoredLabels) and not field.matrix for field in fields):
                yield pytest.param(metric, id=repr(metric))
                break


JUDGES = [p for p in judges() if p.values[0].config.get("pos_label", 0) is None]


def taken(metric, y, s=S):
    return metric.copy().update(y_true=np.asarray(y), y_score=np.asarray(s))


def numbers(value):
    """Return the numbers of a value, whatever its classes are called."""
    if hasattr(value, "to_dict"):
        value = value.to_dict()
    if isinstance(value, dict):
        return [number for one in value.values() for number in numbers(one)]
    return [repr(value)]


def read(metric):
    return numbers(metric.compute())


def test_there_are_many():
    assert len(JUDGES) > 40


@pytest.mark.parametrize("metric", JUDGES)
@pytest.mark.parametrize("y", [[1, 2, 1, 2], [0, 2, 2, 0], [-5, 1, 1, -5], ["a", "b", "a", "b"]])
def test_other_labels_are_refused_with_what_to_type(metric, y):
    before = metric.to_bytes()
    with pytest.raises(sm.InvalidBatchError, match=r"pos_label=") as refused:
        taken(metric, y)
    typed = re.search(r"pos_label=('?\w+'?)", str(refused.value))[1]
    assert metric.to_bytes() == before
    said = type(metric)(**{**metric.config, "pos_label": max(y)})
    assert repr(max(y)) == typed
    ones = [int(label == max(y)) for label in y]
    assert read(taken(said, y)) == read(taken(metric, ones))


@pytest.mark.parametrize("metric", JUDGES)
@pytest.mark.parametrize("y", [[0, 1, 1, 0], [-1, 1, 1, -1], [False, True, True, False]])
def test_clear_pairs_need_no_word(metric, y):
    said = type(metric)(**{**metric.config, "pos_label": 1})
    assert read(taken(metric, y)) == read(taken(said, y))


def test_the_value_of_the_label_that_is_said_is_that_of_scikit_learn():
    y = [1, 1, 2, 2]
    assert sm.ROCAUC(pos_label=2).update(y, S).compute() == sk.roc_auc_score(y, S) == 0.75
    assert sm.BrierScore(pos_label=2).update(y, S).compute() == pytest.approx(
        sk.brier_score_loss(y, S, pos_label=2)
    )
    assert sm.F1(threshold=0.5, pos_label=1).update(y, S).compute() == 0.0
    assert sm.F1().update([1, 1, 2, 2], [1, 2, 2, 2]).compute() == sk.f1_score(
        [1, 1, 2, 2], [1, 2, 2, 2]
    )


@pytest.mark.parametrize("metric", [sm.ROCAUC(), sm.LogLoss(), sm.F1(threshold=0.5)])
def test_the_order_of_batches_does_not_decide(metric):
    kinds = [[1], [0], [-1], [2], [True], [False], [1, 0], [1, -1], [0, -1]]
    for batches in itertools.combinations(kinds, 3):
        ends = []
        for order in itertools.permutations(batches):
            state = metric.copy()
            try:
                for y in order:
                    state.update(y, S[: len(y)])
            except sm.InvalidBatchError:
                ends.append(b"refused")
            else:
                ends.append(state.to_bytes())
        seen = {int(label) for y in batches for label in y}
        clear = seen <= {0, 1} or seen <= {-1, 1}
        assert len(set(ends)) == 1, batches
        assert (ends[0] != b"refused") == clear, batches


def test_shards_merge_where_one_stream_would_have_been_taken():
    for one, other in itertools.product([[1], [0], [-1], [0, 1], [-1, 1]], repeat=2):
        left, right = (taken(sm.ROCAUC(), y, S[: len(y)]) for y in (one, other))
        if {0, -1} <= {*one, *other}:
            with pytest.raises(sm.IncompatibleMetricsError, match="negative label"):
                left.merge(right)
        else:
            assert left.merge(right).n_rows == len(one) + len(other)


@pytest.mark.parametrize("labels", [[1, 2], [-1, 0], ["no", "yes"]])
def test_labels_that_are_given_do_not_say_which_is_positive(labels):
    word = f"pos_label={labels[1]!r}"
    with pytest.raises(sm.InvalidBatchError, match=word):
        sm.ROCAUC(labels=labels).update(labels[:1], [0.5])
    with pytest.raises(ValueError, match="pos_label="):
        sm.F1(threshold=0.5, labels=labels)
    assert sm.ROCAUC(labels=labels, pos_label=labels[1]).update(labels, [0.1, 0.9]).compute() == 1
    matrix = [[0.9, 0.1], [0.2, 0.8]]  # of which each column has its label
    assert sm.ROCAUC(labels=labels).update(labels, matrix).compute() == 1


@pytest.mark.parametrize("distance", [sm.PopulationStability(edges=[0.0]), sm.KSDistance()])
def test_samples_say_which_is_the_current_one(distance):
    with pytest.raises(sm.InvalidBatchError, match="is the current one, current=2 or another"):
        distance.update([1, 2], [0.5, 1.0])


def test_labels_of_classes_may_come_before_the_scores_they_are_judged_with():
    live = sm.Live(sm.ROCAUC(), labels=[0, 1, 2], types={"y_score": 3})
    for place, label in enumerate([2, 0, 1]):
        live.label(id=place, time=0, y_true=label)
        live.predict(id=place, time=0, y_score=[float(k == label) for k in range(3)])
    assert live.window("1min").compute() == 1.0
    with pytest.raises(sm.InvalidBatchError, match="none of the classes"):
        sm.Live(sm.F1(threshold=0.5)).label(id=1, time=0, y_true=2)
    with pytest.raises(sm.InvalidBatchError, match="declared are labels"):
        sm.Live(sm.ROCAUC()).label(id=1, time=0, y_true="yes")


def test_two_labels_of_which_none_is_positive_are_no_third_one():
    said = r"neither 1, the positive label, nor -1 in 1 row.*\(0\); no label is 1: .*pos_label=0"
    with pytest.raises(sm.InvalidBatchError, match=said):
        sm.ROCAUC().update([-1, 0, -1], [0.1, 0.2, 0.3])
