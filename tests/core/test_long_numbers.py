"""Integers beyond 2**53: read whole, subtracted with one rounding, else refused."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streammetrics as sm
from streammetrics.core.columns.batch import Batch
from streammetrics.core.columns.long import LongNumbers, joined_numbers, nearest

integers = st.integers(-(2**63), 2**63 - 1) | st.builds(
    lambda power, step: max(-(2**63), min(2**63 - 1, (1 << power) + step)),
    st.integers(50, 63),
    st.integers(-2000, 2000),
)


def exact(values, residual):
    return [int(head) + int(tail) for head, tail in zip(values, residual, strict=True)]


@given(
    st.lists(integers, min_size=1, max_size=8)
    | st.lists(integers.map(lambda value: value % 2**64), min_size=1, max_size=8)
)
def test_numbers_and_residual_are_the_integers(values):
    batch = Batch({"x": np.array(values, np.uint64 if max(values) >= 2**63 else np.int64)})
    residual = batch.numeric("x").residual
    assert batch.numbers("x").tolist() == [float(value) for value in values]
    if residual is None:
        assert batch.numbers("x").tolist() == values
    else:
        assert exact(batch.numbers("x"), residual) == values


@pytest.mark.parametrize(
    "column",
    [
        np.array([2**53, -(2**53), 2**60, 2**62 + 2**20]),
        np.array([2.0**60, 0.1]),
        np.array([1, 2], np.int32),
        np.array([], np.int64),
        [None, 5],
    ],
    ids=["representable", "floats", "narrow", "empty", "null"],
)
def test_there_is_no_residual_where_float64_holds_every_integer(column):
    assert Batch({"x": column}).numeric("x").residual is None


def test_nulls_and_slices_keep_the_residual_of_their_rows():
    batch = Batch({"x": [None, 2**53 + 1, 2**60 + 3, 7]})
    assert batch.numeric("x").residual.tolist() == [0.0, 1.0, 3.0, 0.0]
    assert batch.slice(2, 4).numeric("x").residual.tolist() == [3.0, 0.0]
    assert batch.slice(3, 4).numeric("x").residual is None


def test_matrices_have_a_residual_of_their_shape():
    batch = Batch({"x": [[2**53 + 1, 1], [2, 2**60 + 1]]})
    assert batch.numeric("x").residual.tolist() == [[1.0, 0.0], [0.0, 1.0]]


numbers = st.tuples(integers, integers) | st.tuples(
    integers, st.floats(-1e30, 1e30, allow_nan=False)
)


def long(*values):
    heads = np.array([float(value) for value in values])
    tails = [int(value) - int(head) for value, head in zip(values, heads, strict=True)]
    return LongNumbers(heads, np.array(tails, np.float64))


@given(st.lists(numbers, min_size=1, max_size=6))
def test_differences_are_rounded_once(pairs):
    x = long(*(a for a, _ in pairs))
    for a, b in pairs:
        wanted = float(Fraction(a) - Fraction(b))
        if isinstance(b, int):
            assert (long(a) - long(b)).tolist() == [wanted]
        else:
            assert (long(a) - np.array([b])).tolist() == [wanted]
            assert (np.array([b]) - long(a)).tolist() == [-wanted]
    assert (x - x).tolist() == [0.0] * len(pairs)


@given(st.lists(integers, min_size=1, max_size=6), integers)
def test_sign_size_and_limits_are_those_of_the_integers(values, limit):
    column = long(*values)
    assert exact((-column).head, (-column).tail) == [-value for value in values]
    assert exact(abs(column).head, abs(column).tail) == [abs(value) for value in values]
    assert (column >= float(limit)).tolist() == [value >= int(float(limit)) for value in values]


def test_rows_are_taken_and_joined_like_those_of_arrays():
    column = long(2**60 + 1, 3, 2**61 + 5)
    both = joined_numbers([np.array([0.5]), column[1:], column.reshape(3, 1)[:, 0].copy()])
    assert (len(both), both.size, both.ndim, both.shape) == (6, 6, 1, (6,))
    assert nearest(both).tolist() == [0.5, 3.0, 2.0**61, 2.0**60, 3.0, 2.0**61]
    assert both.tail.tolist() == [0.0, 0.0, 5.0, 1.0, 0.0, 5.0]
    assert joined_numbers([np.array([1.0]), np.array([2.0])]).tolist() == [1.0, 2.0]


def test_long_numbers_are_never_rounded_unasked():
    with pytest.raises(TypeError, match="do not fit float64"):
        np.asarray(long(2**53 + 1))
    with pytest.raises(TypeError, match="ufunc"):
        np.abs(long(2**53 + 1))


BIG = [2**60, 2**53 + 1]


@pytest.mark.parametrize(
    ("metric", "rows"),
    [
        (sm.Mean(), {"values": [1.0, 2.0], "sample_weight": BIG}),
        (sm.LogLoss(from_logits=True), {"y_true": [0, 1], "y_score": BIG}),
        (sm.TopKAccuracy(k=1), {"y_true": [0, 1], "y_score": [BIG, BIG]}),
        (sm.Accuracy(), {"y_true": [0, 1], "y_pred": [BIG, BIG]}),
        (sm.CalinskiHarabasz(), {"X": [BIG, BIG], "labels": [0, 1]}),
        (sm.MRR(), {"query": [1, 1], "relevance": [0, 1], "score": BIG}),
        (sm.MRR(), {"query": [1, 1], "relevance": BIG, "score": [0.1, 0.2]}),
    ],
    ids=["weight", "logits", "top k", "matrix of labels", "points", "score", "relevance"],
)
def test_what_cannot_be_exact_refuses_such_integers(metric, rows):
    with pytest.raises(sm.InvalidBatchError, match=r"beyond 2\*\*53.*9007199254740993"):
        metric.update(**rows)
    assert metric.n_rows == 0


@pytest.mark.parametrize("values", [[2**70], [2**60 + 1, 0.5]])
def test_long_integers_of_lists_are_refused_with_advice_for_numbers_and_for_ids(values):
    says = "pass labels and ids as strings, divide numbers or subtract an offset"
    with pytest.raises(sm.InvalidBatchError, match=rf"values holds an integer .*row 0; {says}"):
        sm.Sum().update(values)


@pytest.mark.parametrize("n", [3, 600])  # few rows are added up as Python's integers
@pytest.mark.parametrize("outputs", [1, 5])
def test_integers_of_rows_with_weights_are_added_up_whole(n, outputs):
    rng = np.random.default_rng(n)
    true = 2**60 + rng.integers(1, 1000, (n, outputs))
    pred, weight = true - rng.integers(-9, 9, (n, outputs)), rng.exponential(size=n)
    metric = sm.WAPE(multioutput="raw_values").update(true, pred, sample_weight=weight)
    weights = [Fraction(each) for each in weight.tolist()]
    for k, value in enumerate(np.atleast_1d(metric.compute()).tolist()):
        rows = list(zip(weights, true[:, k].tolist(), pred[:, k].tolist(), strict=True))
        lost = sum(w * abs(p - y) for w, y, p in rows)
        assert value == float(lost / sum(w * abs(y) for w, y, _ in rows))
    assert metric.confidence() is not None
