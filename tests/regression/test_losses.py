"""Sums of losses: exact once each loss is rounded, whatever the way rows come."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kinds.rows import plan_of

import streammetrics as sm
from streammetrics.statistics.formulas import LOSSES
from streammetrics.statistics.sums import LossSpread, LossSum, Moments

PARAMETERS = {"pinball": 0.3, "huber": 1.5, "tweedie": 1.5}
HOSTILE = st.floats(-8e307, 8e307) | st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 1e200, -1e200])


def held(loss, y, p, weight=None):
    statistic = LossSum(loss=loss, parameter=PARAMETERS.get(loss, 0.0))
    statistic.update(np.array(y, float), np.array(p, float), weight=weight)
    return {name: array.tolist() for name, array in statistic.arrays().items()}


def rows(n, d=1):
    rng = np.random.default_rng(n + d)
    return rng.gamma(2.0, 2.0, (n, d)), rng.gamma(2.0, 2.0, (n, d))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("d", [1, 3])
def test_a_weight_is_that_many_rows_to_the_bit(loss, d):
    y, p = rows(300, d)
    weight = np.random.default_rng(1).integers(1, 5, 300)
    repeated = held(loss, np.repeat(y, weight, axis=0), np.repeat(p, weight, axis=0))
    assert held(loss, y, p, weight.astype(float)) == repeated
    assert held(loss, y, p, np.ones(300)) == held(loss, y, p)


@pytest.mark.parametrize("loss", LOSSES)
def test_bits_do_not_depend_on_length_or_alignment(loss):
    # Vectorised logarithms and powers treat the ends of an array apart.
    y, p = rows(70)
    parameter = PARAMETERS.get(loss, 0.0)

    def function(*columns):
        terms = LOSSES[loss].terms(*columns)
        return np.stack([terms.head, terms.tail], axis=-1) if LOSSES[loss].long else terms

    whole = function(y[:, 0], p[:, 0], parameter)
    for start in range(20):
        for stop in (start + 1, start + 7, start + 50):
            part = function(y[start:stop, 0], p[start:stop, 0], parameter)
            assert part.tobytes() == whole[start:stop].tobytes()
    wide = function(y.reshape(14, 5), p.reshape(14, 5), parameter)
    assert wide.tobytes() == whole.tobytes()


@pytest.mark.parametrize("power", [-1.0, 1.0, 1.5, 2.0, 2.5, 3.0])
def test_bits_of_a_deviance_do_not_depend_on_length(power):
    y, p = rows(70)
    whole = LOSSES["tweedie"].terms(y[:, 0], p[:, 0], power)
    parts = [LOSSES["tweedie"].terms(y[i : i + 1, 0], p[i : i + 1, 0], power) for i in range(70)]
    assert np.concatenate(parts).tobytes() == whole.tobytes()


@given(st.lists(st.tuples(HOSTILE, HOSTILE), min_size=1, max_size=8))
def test_absolute_errors_are_summed_exactly(pairs):
    y, p = np.array(pairs).T
    errors = [Fraction(e) for e in np.abs(y - p).tolist()]
    assert sm.MAE().update(y, p).compute() == float(sum(errors) / len(errors))
    size = sum(Fraction(abs(v)) for v in y.tolist())
    if size:
        wape = sm.WAPE().update(y, p)
        exact = sum(errors) / size
        assert wape.compute() == (math.inf if exact >= 2**1024 - 2**970 else float(exact))


@given(st.lists(st.tuples(HOSTILE, HOSTILE), min_size=1, max_size=8))
def test_root_of_squares_beyond_float64(pairs):
    y, p = np.array(pairs).T
    biggest = float(np.max(np.abs(y - p)))
    value = sm.RMSE().update(y, p).compute()
    assert biggest / math.sqrt(len(y)) * (1 - 1e-15) <= value <= biggest * (1 + 1e-15)


SCALES = st.floats(-1.0, 1.0) | st.sampled_from(
    [1e-162, 1e-200, 5e-324, 2.0**-511, 2.0**-511 - 2.0**-564, 2.0**-537, 2.0**-538, 1e160, 0.0]
)


@given(st.lists(st.tuples(SCALES, SCALES), min_size=1, max_size=8), st.data())
def test_squares_below_normal_floats_are_exact_however_they_came(pairs, data):
    y, p = np.array(pairs).T
    errors = [Fraction(e) for e in (y - p).tolist()]
    squares = [Fraction(float(e * e)) if 2**-1022 <= e * e < 2**1023 else e * e for e in errors]
    weight = np.array(
        data.draw(st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=len(y), max_size=len(y)))
    )
    whole = LossSum(loss="squared")
    whole.update(y, p, weight=weight)
    assert whole.exact("loss") == [
        sum(w * s for w, s in zip(map(Fraction, weight), squares, strict=True))
    ]
    parts = LossSum(loss="squared")
    for row in data.draw(st.permutations(range(len(y)))):
        parts.update(y[row : row + 1], p[row : row + 1], weight=weight[row : row + 1])
    assert {k: v.tolist() for k, v in parts.arrays().items()} == {
        k: v.tolist() for k, v in whole.arrays().items()
    }


def test_small_errors_are_not_nothing():
    assert sm.RMSE().update([3e-170, 4e-170], [0, 0]).compute() == pytest.approx(
        math.sqrt(12.5) * 1e-170, rel=1e-15
    )
    assert sm.RMSLE().update([[3e-200], [0.0]], [[0.0], [3e-200]]).compute() == 3e-200
    assert sm.RMSE().update([5e-324], [0.0]).compute() == 5e-324


def test_a_mean_square_beyond_float64_is_infinite_and_its_root_is_not():
    y, p = [1e200, 1.0], [0.0, 1.0]
    assert sm.MSE().update(y, p).compute() == math.inf
    assert sm.RMSE().update(y, p).compute() == pytest.approx(1e200 / math.sqrt(2), rel=1e-15)
    assert sm.RMSE().update([3e154], [0.0]).compute() == 3e154
    weighted = sm.RMSE().update(y, p, sample_weight=[1, 3]).compute()
    assert weighted == pytest.approx(5e199, rel=1e-15)


@given(st.lists(st.tuples(HOSTILE, HOSTILE), min_size=1, max_size=8))
def test_symmetric_percentage_is_from_0_to_2(pairs):
    y, p = np.array(pairs).T
    value = sm.SMAPE().update(y, p).compute()
    exact = [
        2 * abs(Fraction(a) - Fraction(b)) / (abs(Fraction(a)) + abs(Fraction(b))) if a or b else 0
        for a, b in pairs
    ]
    assert 0 <= value <= 2
    assert value == pytest.approx(float(sum(exact) / len(exact)), rel=1e-14)


def test_symmetric_percentage_where_the_sum_overflows():
    assert sm.SMAPE().update([1.6e308], [0.8e308]).compute() == pytest.approx(2 / 3, rel=1e-15)


def test_log_cosh_keeps_small_errors():
    assert sm.LogCoshError().update([1e-10], [0.0]).compute() == pytest.approx(5e-21, rel=1e-14)
    far = sm.LogCoshError().update([1e308], [0.0]).compute()
    assert far == 1e308


def test_mean_error_does_not_cancel():
    y, p = [1e16, 1.0, -1e16], [1e16 + 2, 1.0, -1e16 + 2]
    assert sm.MeanError().update(y, p).compute() == 4 / 3
    assert sm.MeanError().update([1.0], [3.0]).compute() == 2.0


@pytest.mark.parametrize(
    ("metric", "y", "p", "message"),
    [
        (sm.MAE(), [0.0, 1e308], [0.0, -1e308], "y_true and y_pred differ by more than float64"),
        (sm.MaxError(), [0.0, 1e308], [0.0, -1e308], "in 1 row, first in row 1"),
        (
            sm.MAPE(),
            [1.0, 0.0],
            [1.0, 1e300],
            "have a loss beyond float64 in 1 row, first in row 1",
        ),
        (sm.HuberLoss(delta=1e10), [0.0, 1e305], [0.0, 0.0], "first in row 1"),
        (sm.GammaDeviance(), [1.0, 1e300], [1.0, 1e-300], "first in row 1"),
        (sm.TweedieDeviance(power=3), [1.0, 1.0], [1.0, 1e-200], "first in row 1"),
        (sm.MSLE(), [0.0, -1.0], [0.0, 0.0], "y_true is not above -1 in 1 row"),
        (sm.RMSLE(), [0.0, 0.0], [0.0, -2.0], "y_pred is not above -1"),
        (sm.PoissonDeviance(), [0.0, -1.0], [1.0, 1.0], "y_true is not at least 0"),
        (sm.PoissonDeviance(), [0.0, 1.0], [1.0, 0.0], "y_pred is not above 0"),
        (sm.GammaDeviance(), [1.0, 0.0], [1.0, 1.0], "y_true is not above 0"),
        (sm.TweedieDeviance(power=-1), [-1.0, 1.0], [1.0, 0.0], "y_pred is not above 0"),
        (sm.MAE(), [0.0, math.inf], [0.0, 0.0], "y_true is infinite"),
        (sm.MAE(), [0.0, math.nan], [0.0, 0.0], "y_true is missing"),
        (sm.MAE(), [[0.0, 1.0]], [[0.0]], "y_true has 2 numbers a row, y_pred has 1"),
        (sm.MAE(), [[0.0, 1.0]], [0.0], "y_true has 2 numbers a row, y_pred has 1"),
        (sm.MAE(), ["a", "b"], [0.0, 1.0], "y_true holds text"),
        (sm.MAE(), [0.0, 1.0], [0.0], "columns differ in length"),
    ],
)
@pytest.mark.parametrize("waiting", [True, False])
def test_what_is_refused_changes_nothing(metric, y, p, message, waiting):
    metric = metric.copy()
    ones = np.ones(3 if waiting else 40_000)
    metric.update(ones, ones)
    before = metric.to_bytes()
    with pytest.raises(sm.InvalidBatchError, match=message):
        metric.update(y, p)
    assert metric.to_bytes() == before


def test_omitted_rows_may_be_outside_the_domain_elsewhere():
    metric = sm.GammaDeviance(nan_policy="omit")
    metric.update([1.0, math.nan, -1.0], [1.0, 1e-320, math.nan])
    assert (metric.n_rows, metric.n_omitted) == (1, 2)
    assert metric.compute() == 0.0
    with pytest.raises(sm.InvalidBatchError, match="first in row 1"):
        metric.update([math.nan, 1e300], [1.0, 1e-300])


def test_a_column_of_one_is_a_vector():
    one = sm.MAE().update([1.0, 2.0], [[3.0], [5.0]]).update([[1.0]], [2.0])
    assert one == sm.MAE().update([1.0, 2.0, 1.0], [3.0, 5.0, 2.0])


def test_widths_do_not_mix():
    metric = sm.MAE().update([[1.0, 2.0]], [[1.0, 2.0]])
    with pytest.raises(sm.InvalidBatchError, match="columns of numbers"):
        metric.update([1.0], [1.0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sm.PinballLoss(alpha=1.5), r"PinballLoss\(alpha=1.5\): expected a number from 0"),
        (lambda: sm.PinballLoss(alpha="half"), r"PinballLoss\(alpha='half'\)"),
        (lambda: sm.HuberLoss(delta=0), "above 0"),
        (lambda: sm.HuberLoss(delta=math.nan), r"delta=nan\): expected a "),
        (lambda: sm.HuberLoss(delta=math.inf), "above 0"),
        (lambda: sm.TweedieDeviance(power=0.5), "not between 0 and 1"),
        (lambda: sm.TweedieDeviance(power=math.inf), "not between 0 and 1"),
        (lambda: sm.MAE(multioutput="variance_weighted"), "'uniform_average' or 'raw_values'"),
    ],
)
def test_parameters_out_of_range(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_losses_that_agree_share_their_state():
    suite = sm.MetricSet(
        {"mse": sm.MSE(), "rmse": sm.RMSE(), "r2": sm.R2(), "tweedie": sm.TweedieDeviance(),
         "raw": sm.MSE(multioutput="raw_values"), "rse": sm.RelativeSquaredError()}
    )  # fmt: skip
    plan = plan_of(suite)
    squares, errors, moments = plan.start.statistics  # R2 needs no fourth powers
    assert (type(squares), type(errors), type(moments)) == (LossSpread, LossSum, Moments)
    assert len(plan.schemas) == 1
    rows = np.random.default_rng(0).normal(size=(2, 999))
    assert suite.update(y_true=rows[0], y_pred=rows[1]).nbytes < 2000


@pytest.mark.parametrize("scale", [1.0, 0.0, 1e-160, 1e160, 1e-250])
@pytest.mark.parametrize(
    ("n", "weighted"), [(3, False), (128, False), (200, True), (33_000, False)]
)
def test_losses_that_are_summed_in_one_pass_are_those_summed_alone(n, scale, weighted):
    rng = np.random.default_rng(n)
    y, p = rng.normal(size=(2, n)) * scale
    p[::3] = y[::3]
    named = {"y_true": y, "y_pred": p, "sample_weight": rng.random(n) if weighted else None}
    before = {name: None if column is None else column.copy() for name, column in named.items()}
    made = {
        "r2": sm.R2(), "mae": sm.MAE(), "mse": sm.MSE(), "least": sm.MAE(spread=False),
        "huber": sm.HuberLoss(), "near": sm.HuberLoss(delta=0.5),
    }  # fmt: skip
    alone = {name: metric.copy().feed(named).to_bytes() for name, metric in made.items()}
    for names in ([*made], ["mse", "least"]):
        suite = sm.MetricSet({name: made[name].copy() for name in names}).update(**named)
        assert {name: suite[name].to_bytes() for name in names} == {n: alone[n] for n in names}
    for name, column in named.items():
        np.testing.assert_array_equal(column, before[name])


def test_columns_that_are_summed_as_they_are_stay_so():
    values = np.arange(40_000.0)
    sm.MetricSet({"mean": sm.Mean()}).update(values=values)
    np.testing.assert_array_equal(values, np.arange(40_000.0))


class Shifted(LossSum):
    """The loss of predictions that are all one higher."""

    def update(self, *columns, weight):
        super().update(columns[0], columns[1] + 1.0, weight=weight)


class ShiftedMAE(sm.MAE):
    """The mean of such losses."""

    def statistics(self):
        return (Shifted(loss="absolute"),)


def test_a_statistic_with_an_update_of_its_own_is_fed_by_it_beside_its_base():
    suite = sm.MetricSet({"mae": sm.MAE(), "shifted": ShiftedMAE(), "mse": sm.MSE()})
    suite.update(y_true=[1.0, 2.0], y_pred=[1.5, 3.0])
    assert suite.compute() == {"mae": 0.75, "shifted": 1.75, "mse": 0.625}


@pytest.mark.parametrize("scale", [1.0, 1e200])  # of which no square is a float64
@pytest.mark.parametrize("d", [1, 3])
def test_losses_of_a_set_that_have_weights_are_those_of_each_alone(scale, d):
    y, p = rows(300, d)
    weight = np.random.default_rng(1).exponential(size=300)
    metrics = [sm.MAE(), sm.MSE(), sm.MeanError(), sm.MAPE(), sm.SMAPE(), sm.PinballLoss(alpha=0.3)]
    suite = sm.MetricSet({str(k): metric for k, metric in enumerate(metrics)})
    suite.update(y_true=scale * y, y_pred=p, sample_weight=weight)
    for k, metric in enumerate(metrics):
        metric.update(scale * y, p, sample_weight=weight)
        assert suite[str(k)].copy().to_bytes() == metric.to_bytes()
