"""Spans that tags mark: seqeval's own examples, schemes, and tags that are none."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from oracles.spans import PREFIXES, reference, tagged
from seqeval.metrics import f1_score, recall_score
from seqeval.scheme import IOB2

import streammetrics as sm

# Of seqeval's README and of its tests.
TRUE = [["O", "O", "O", "B-MISC", "I-MISC", "I-MISC", "O"], ["B-PER", "I-PER", "O"]]
PRED = [["O", "O", "B-MISC", "I-MISC", "I-MISC", "I-MISC", "O"], ["B-PER", "I-PER", "O"]]
LENIENT = [["B-NP", "I-NP", "O"]], [["I-NP", "I-NP", "O"]]


def test_the_examples_of_seqeval():
    assert sm.SpanF1().update(TRUE, PRED).compute() == 0.5
    each = sm.SpanF1(average=None).update(TRUE, PRED).compute()
    assert each.to_dict() == {"MISC": 0.0, "PER": 1.0}
    assert sm.SpanF1().update(*LENIENT).compute() == 1.0
    assert sm.SpanF1(scheme="IOB2", zero_division=0).update(*LENIENT).compute() == 0.0
    assert f1_score(*LENIENT, mode="strict", scheme=IOB2, zero_division=0) == 0.0


@pytest.mark.parametrize("scheme", PREFIXES)
def test_spans_of_a_scheme_are_those_of_seqeval(scheme):
    rows = tagged(PREFIXES[scheme])(np.random.default_rng(0), 200)
    metric = sm.SpanF1(scheme=scheme).update(**rows)
    assert metric.compute() == pytest.approx(reference(f1_score, "micro", scheme)(**rows))
    each = sm.SpanRecall(scheme=scheme, average="macro").update(**rows).compute()
    assert each == pytest.approx(reference(recall_score, "macro", scheme)(**rows))


def test_tags_with_the_prefix_behind():
    true = [["PER-B", "PER-I", "O", "LOC-B"], ["PER-B", "LOC-B"]]
    pred = [["PER-B", "PER-I", "O", "LOC-I"], ["LOC-B", "LOC-B"]]
    assert sm.SpanF1(suffix=True).update(true, pred).compute() == f1_score(true, pred, suffix=True)
    strict = {"mode": "strict", "scheme": IOB2, "suffix": True}
    metric = sm.SpanF1(suffix=True, scheme="IOB2").update(true, pred)
    assert metric.compute() == pytest.approx(f1_score(true, pred, **strict), rel=1e-15)


def test_columns_of_lists_of_other_libraries():
    table = pa.table({"y_true": TRUE, "y_pred": PRED})
    suite = sm.MetricSet({"f1": sm.SpanF1(), "precision": sm.SpanPrecision()}).update(table)
    assert suite.compute() == {"f1": 0.5, "precision": 0.5}


@pytest.mark.parametrize("zero_division", [0, 1])
@pytest.mark.parametrize(("ours", "theirs"), [(sm.SpanF1, f1_score), (sm.SpanRecall, recall_score)])
def test_sentences_without_spans_give_the_number_that_is_asked_for(ours, theirs, zero_division):
    nothing = [["O", "O"], ["O"]]
    expected = theirs(nothing, nothing, average="weighted", zero_division=zero_division)
    for average in ("micro", "macro", "weighted"):
        metric = ours(average=average, zero_division=zero_division)
        assert metric.copy().update(nothing, nothing).compute() == expected == zero_division
        suite = sm.MetricSet({"spans": metric}).update(y_true=nothing, y_pred=nothing)
        assert suite.compute() == {"spans": expected}


def test_sentences_without_tags_or_spans():
    metric = sm.SpanF1().update([[], ["O", "O"]], [[], ["O", "O"]])
    with pytest.warns(sm.UndefinedMetricWarning, match="SpanF1"):
        assert math.isnan(metric.compute())
    assert metric.update(TRUE, PRED).compute() == 0.5
    assert metric.n_rows == 4


@pytest.mark.parametrize(
    ("true", "pred", "told"),
    [
        ([["O"], ["O", "O"]], [["O"], ["O"]], "y_pred needs one tag for each of y_true in 1 row, "
         "first in row 1"),
        ([["O"], ["X-PER"]], [["O"], ["O"]], "y_true has a tag that is not of the scheme IOB2 "
         r"\(I, O, B\) in 1 row, first in row 1"),
        ([["O"], ["O"]], [["O"], [""]], "y_pred has a tag that is not of the scheme"),
        ([["O"], [1]], [["O"], ["O"]], "y_true.* strings and numbers"),
        ([[0], [1]], [["O"], ["O"]], "y_true does not hold text"),
        (["O", "O"], [["O"], ["O"]], "y_true holds single values, first in row 0: a row is a list, "
         "the tags of a sentence"),
        ([["O"], None], [["O"], ["O"]], r"y_true is missing \(NaN or null\) in 1 row"),
    ],
)  # fmt: skip
def test_tags_that_are_none_are_told_by_their_sentence(true, pred, told):
    metric = sm.SpanF1(scheme="IOB2").update(TRUE, PRED)
    before = metric.to_bytes()
    with pytest.raises(sm.InvalidBatchError, match=told):
        metric.update(true, pred)
    assert metric.to_bytes() == before


def test_missing_sentences_are_left_out_if_that_is_asked_for():
    metric = sm.SpanF1(nan_policy="omit").update([*TRUE, None], [*PRED, ["O"]])
    assert (metric.compute(), metric.n_omitted) == (0.5, 1)


def test_the_order_of_sentences_does_not_matter():
    order = np.array([1, 0])
    columns = [np.array([*map(tuple, side), None], object)[:2] for side in (TRUE, PRED)]
    shuffled = [column[order] for column in columns]
    assert sm.SpanF1().update(*shuffled).to_bytes() == sm.SpanF1().update(TRUE, PRED).to_bytes()


@pytest.mark.parametrize("metric", [sm.SpanF1(), sm.SpanRecall(scheme="IOB2", average="macro")])
def test_sentences_without_a_span_are_the_same_state_however_they_came(metric):
    none = metric.copy().update([["O", "O"]], [["O", "O"]])
    assert sm.merge([none, metric]) == sm.merge([metric, none]) == none
    assert sm.from_bytes(none.to_bytes()).to_bytes() == none.to_bytes()
    some = metric.copy().update([["B-PER"]], [["O"]])
    whole = metric.copy().update([["O", "O"], ["B-PER"]], [["O", "O"], ["O"]])
    assert sm.merge([none, some]) == sm.merge([some, none]) == whole
