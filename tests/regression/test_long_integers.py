"""Integers beyond 2**53 in sums, moments, losses and extremes: whole, or rounded once."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streammetrics as sm

signed = st.integers(2**60 - 40, 2**60 + 40) | st.integers(-(2**63), 2**63 - 1)
unsigned = st.integers(2**64 - 40, 2**64 - 1) | st.integers(0, 2**64 - 1)
columns = st.lists(signed, min_size=1, max_size=8) | st.lists(unsigned, min_size=1, max_size=8)
pairs = (
    st.integers(1, 8)
    .flatmap(
        lambda n: st.tuples(
            *[st.lists(signed, min_size=n, max_size=n) | st.lists(unsigned, min_size=n, max_size=n)]
            * 2
        )
    )
    .map(lambda sides: list(zip(*sides, strict=True)))
)


def array(values):
    return np.array(values, np.uint64 if max(values) >= 2**63 else np.int64)


def mean(values):
    return sum(values, Fraction(0)) / len(values)


@given(columns, st.booleans())
def test_aggregates_are_those_of_the_integers(values, listed):
    column = values if listed else array(values)
    exact = [Fraction(value) for value in values]
    suite = sm.MetricSet(
        {
            "sum": sm.Sum(),
            "mean": sm.Mean(),
            "variance": sm.Variance(),
            "low": sm.Minimum(),
            "high": sm.Maximum(),
        }
    )
    assert suite.update(values=column).compute() == {
        "sum": float(sum(exact)),
        "mean": float(mean(exact)),
        "variance": float(mean([(value - mean(exact)) ** 2 for value in exact])),
        "low": float(min(values)),
        "high": float(max(values)),
    }


@given(pairs)
def test_errors_are_of_exact_differences(rows):
    y, p = map(array, zip(*rows, strict=True))
    errors = [float(a - b) for a, b in rows]
    sizes = [Fraction(abs(error)) for error in errors]
    suite = sm.MetricSet({"mae": sm.MAE(), "mse": sm.MSE(), "bias": sm.MeanError()})
    suite.update(y_true=y, y_pred=p)
    assert suite.compute() == {
        "mae": float(mean(sizes)),
        "mse": float(mean([Fraction(error * error) for error in errors])),
        "bias": float(mean([Fraction(b - a) for a, b in rows])),
    }
    assert sm.MaxError().update(y, p).compute() == max(map(abs, errors))
    if any(y):
        exact = sum(sizes) / sum(abs(a) for a, _ in rows)
        assert sm.WAPE().update(y, p).compute() == float(exact)


@pytest.mark.parametrize(
    ("metric", "y", "p", "value"),
    [
        (sm.MAE(), [2**60 + 1], [2**60], 1.0),
        (sm.MAE(), [2**60 + 1], [2.0**60], 1.0),
        (sm.MAE(), [2**64 - 1], [2**64 - 2], 1.0),
        (sm.MAE(), np.array([2**64 - 1], np.uint64), [2.0**64], 1.0),
        (sm.MSE(), [[2**60 + 3, 1]], [[2**60, 1]], 4.5),
        (sm.R2(), [2**60, 2**60 + 1, 2**60 + 2], [2**60, 2**60 + 1, 2**60 + 4], -1.0),
        (sm.PearsonCorrelation(), [2**60, 2**60 + 1, 2**60 + 2], [1, 2, 3], 1.0),
        (sm.PinballLoss(alpha=0.25), [2**60 + 4], [2**60], 1.0),
        (sm.HuberLoss(delta=1.0), [2**60 + 3], [2**60], 2.5),
        (sm.LogCoshError(), [2**60 + 1], [2**60], float(np.log(np.cosh(1.0)))),
        (sm.MAPE(), [2**60 + 1], [2**60], 2.0**-60),
        (sm.SMAPE(), [2**60 + 1], [2**60], 2.0**-60),
        (sm.MSLE(), [2**60 + 1], [2**60], 0.0),
        (sm.PoissonDeviance(), [2**60 + 1], [2**60], 0.0),
        (sm.MedianAbsoluteError(), [2**60 + 1, 5], [2**60, 5], 0.5),
    ],
    ids=lambda part: type(part).__name__ if isinstance(part, sm.Metric) else "",
)
def test_every_loss_takes_them(metric, y, p, value):
    assert metric.update(y, p).compute() == pytest.approx(value, rel=1e-15)


@given(pairs, st.data())
def test_states_forget_how_such_rows_came(rows, data):
    y, p = map(array, zip(*rows, strict=True))
    weight = np.array(data.draw(st.lists(st.floats(0.1, 9), min_size=len(y), max_size=len(y))))
    whole = sm.MetricSet({"r2": sm.R2(), "mae": sm.MAE(), "worst": sm.MaxError()})
    parts = whole.copy()
    whole.update(y_true=y, y_pred=p, sample_weight=weight)
    for row in data.draw(st.permutations(range(len(y)))):
        one = [row]
        fits = int(float(y[row])) == int(y[row])
        true = y[one].astype(np.float64) if fits else y[one]
        parts.update(y_true=true, y_pred=p[one], sample_weight=weight[one])
    assert parts.to_bytes() == whole.to_bytes()


def test_blocks_of_large_batches_may_be_long_or_not():
    y, p = np.arange(2**53 - 100_000, 2**53 + 100_000), np.full(200_000, 2**53)
    whole = sm.MAE().update(y, p)
    halves = [sm.MAE().update(y[:100_000].astype(float), p[:100_000].astype(float))]
    halves += [sm.MAE().update(y[100_000:], p[100_000:])]
    assert sm.merge(halves) == whole
    assert whole.compute() == 50_000.0


def test_missing_integers_are_left_out_and_their_neighbours_kept_whole():
    metric = sm.MAE(nan_policy="omit")
    metric.update([None, 2**60 + 1, 2**60 + 5], [1, 2**60, None])
    assert (metric.compute(), metric.n_omitted) == (1.0, 2)


def test_thresholds_are_compared_with_whole_integers():
    metric = sm.Accuracy(threshold=2.0**60)
    assert metric.update([0, 1, 1], [2**60 - 1, 2**60, 2**60 + 1]).compute() == 1.0
    metric = sm.Accuracy(threshold=2.0**64)
    assert metric.update([0, 0], np.array([2**64 - 1, 2**64 - 2], np.uint64)).compute() == 1.0


def test_labels_and_ids_beyond_signed_integers_are_to_be_strings():
    with pytest.raises(sm.InvalidBatchError, match=r"y_true is beyond 64 signed bits .* row 1 "):
        sm.Accuracy().update([1, 2**63], [1, 2])
    with pytest.raises(sm.InvalidBatchError, match=r"query is beyond .* pass .* as strings"):
        sm.MRR().update(np.array([2**64 - 1], np.uint64), [1], [0.5])


@pytest.mark.parametrize(
    "metric",
    [
        sm.RelativeAbsoluteError(),
        sm.D2AbsoluteError(),
        sm.D2Pinball(alpha=0.3),
        sm.NRMSE(normalization="range"),
        sm.R2(spread=True),
        sm.PearsonCorrelation(spread=True),
    ],
    ids=str,
)
def test_what_rounded_targets_would_make_wrong_refuses_them(metric):
    """How far targets are apart, or a sample of rows, cannot be had of rounded ones."""
    y, p = np.arange(5) + 2**60, np.array([1, 0, 3, 2, 5]) + 2**60
    with pytest.raises(sm.InvalidBatchError, match=r"y_true holds integers beyond 2\*\*53"):
        metric.update(y, p)
    assert metric.update(y - 2**60, p - 2**60).n_rows == 5


def test_the_spread_of_a_variance_refuses_long_values():
    with pytest.raises(sm.InvalidBatchError, match=r"values holds integers beyond 2\*\*53"):
        sm.Variance(spread=True).update([2**60 + 1, 2**60])
