"""A value that is defined is given, also where no row is of the positive class."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import streammetrics as sm

pytestmark = pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")

# Each rate as a ratio of two sums of the cells of a two-by-two table.
RATES = {
    sm.Precision: lambda tp, fp, fn, tn: (tp, tp + fp),
    sm.Recall: lambda tp, fp, fn, tn: (tp, tp + fn),
    sm.Specificity: lambda tp, fp, fn, tn: (tn, tn + fp),
    sm.NegativePredictiveValue: lambda tp, fp, fn, tn: (tn, tn + fn),
    sm.FalsePositiveRate: lambda tp, fp, fn, tn: (fp, fp + tn),
    sm.FalseNegativeRate: lambda tp, fp, fn, tn: (fn, fn + tp),
    sm.FalseOmissionRate: lambda tp, fp, fn, tn: (fn, fn + tn),
    sm.FalseDiscoveryRate: lambda tp, fp, fn, tn: (fp, fp + tp),
    sm.SelectionRate: lambda tp, fp, fn, tn: (tp + fp, tp + fp + fn + tn),
    sm.LabelAccuracy: lambda tp, fp, fn, tn: (tp + tn, tp + fp + fn + tn),
    sm.Prevalence: lambda tp, fp, fn, tn: (tp + fn, tp + fp + fn + tn),
    sm.F1: lambda tp, fp, fn, tn: (2 * tp, 2 * tp + fp + fn),
    sm.Jaccard: lambda tp, fp, fn, tn: (tp, tp + fp + fn),
}
CELLS = list(itertools.product(range(3), repeat=4))  # tp, fp, fn, tn


def rows(cells):
    y, p = zip((1, 1), (0, 1), (1, 0), (0, 0), strict=True)
    return np.repeat(y, cells), np.repeat(p, cells)


def expected(rate, cells, zero_division=math.nan):
    numerator, denominator = RATES[rate](*cells)
    if not sum(cells):
        return math.nan
    return numerator / denominator if denominator else zero_division


def same(one, other):
    return one == other or (math.isnan(one) and math.isnan(other))


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("weighted", [False, True])
def test_every_table_has_its_value_however_labels_come(rate, weighted):
    for cells in CELLS:
        y, p = rows(cells)
        weight = np.full(len(y), 0.5) if weighted else None
        for metric, judged in [
            (rate(), {"y_pred": p}),
            (rate(labels=[0, 1]), {"y_pred": p}),
            (rate(threshold=0.5), {"y_score": p.astype(float)}),
        ]:
            metric.update(y, **judged, sample_weight=weight)
            assert same(metric.compute(), expected(rate, cells)), (metric, cells)
        filled = rate(zero_division=0.25).update(y, p, sample_weight=weight)
        assert same(filled.compute(), expected(rate, cells, 0.25)), cells


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("some", [CELLS, [c for c in CELLS if not c[0] + c[1] + c[2]]])
def test_slices_have_the_values_of_their_rows(rate, some):
    some = [cells for cells in some if sum(cells)]
    slices = sm.Slices(sm.MetricSet({"rate": rate(), "cut": rate(threshold=0.5)}), by=["g"])
    parts = [rows(cells) for cells in some]
    y, p = (np.concatenate(side) for side in zip(*parts, strict=True))
    group = np.repeat(np.arange(len(some)), [sum(cells) for cells in some])
    slices.update(y_true=y, y_pred=p, y_score=p.astype(float), g=group)
    table = slices.compute().to_dict()
    found = dict(zip(table["g"], zip(table["rate"], table["cut"], strict=True), strict=True))
    for place, cells in enumerate(some):
        assert all(same(value, expected(rate, cells)) for value in found[place]), cells


@pytest.mark.parametrize(("labels", "positive"), [(["a", "b"], "b"), ([5, 7], 7), ([7, 5], 5)])
def test_the_positive_class_may_be_any(labels, positive):
    other = labels[0]
    one = sm.Specificity(pos_label=positive).update([other] * 3, [other] * 3)
    assert one.compute() == 1.0
    assert one.classes == sorted(labels)
    false = sm.Specificity(pos_label=positive).update([other] * 2, labels)
    assert false.compute() == 0.5


def test_words_do_not_have_the_label_1():
    with pytest.raises(sm.InvalidBatchError, match="pos_label='a' or another says"):
        sm.Specificity().update(["a", "a"], ["a", "a"]).compute()


@pytest.mark.parametrize("rate", RATES)
def test_limits_are_those_of_the_table_whose_labels_are_given(rate):
    y, p = rows((0, 1, 0, 3))
    metric, given = (rate(**labels).update(y, p) for labels in ({}, {"labels": [0, 1]}))
    assert repr(metric.confidence()) == repr(given.confidence())
    y, p = rows((0, 0, 0, 3))
    metric, given = (rate(**labels).update(y, p) for labels in ({}, {"labels": [0, 1]}))
    assert repr(metric.confidence()) == repr(given.confidence())
