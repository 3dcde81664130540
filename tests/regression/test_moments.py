"""Variances and correlations from exact moments: right to the last digit."""

from __future__ import annotations

import math
import sys
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streammetrics as sm
from streammetrics.core.arithmetic.exact import root
from streammetrics.core.errors import StateFormatError
from streammetrics.statistics.histograms import Extremes
from streammetrics.statistics.sums import LossSum, Moments

HOSTILE = st.floats(-1e150, 1e150) | st.sampled_from([0.0, -0.0, 5e-324, 1e9, 1e9 + 1e-6, 1.0])
PAIRS = st.lists(st.tuples(HOSTILE, HOSTILE, st.integers(1, 4)), min_size=2, max_size=8)


def exact(pairs):
    """Return centred sums and means of target and prediction, as fractions."""
    y, p, w = ([Fraction(v) for v in column] for column in zip(*pairs, strict=True))
    n = sum(w)

    def mean(values):
        return sum(a * b for a, b in zip(values, w, strict=True)) / n

    a, b = [v - mean(y) for v in y], [v - mean(p) for v in p]
    yy = n * mean([v * v for v in a])
    pp = n * mean([v * v for v in b])
    yp = n * mean([u * v for u, v in zip(a, b, strict=True)])
    return n, mean(y), mean(p), yy, pp, yp


def columns(pairs):
    y, p, w = np.array(pairs, float).T
    return {"y_true": y, "y_pred": p, "sample_weight": w}


def nearest(value):
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def square(error):
    """Return the square as it is summed: rounded where it is a normal number, else exact."""
    exact_square, rounded = Fraction(error) ** 2, nearest(Fraction(error) ** 2)
    return Fraction(rounded) if sys.float_info.min <= rounded < math.inf else exact_square


@given(PAIRS)
def test_ratios_are_correctly_rounded(pairs):
    n, mean_y, mean_p, yy, pp, yp = exact(pairs)
    rows = columns(pairs)
    errors = (rows["y_true"] - rows["y_pred"]).tolist()
    left = sum(square(e) * w for e, (_, _, w) in zip(errors, pairs, strict=True))
    if yy:
        assert sm.R2().update(**rows).compute() == nearest(1 - left / yy)
        assert sm.RelativeSquaredError().update(**rows).compute() == nearest(left / yy)
        explained = 1 - (yy + pp - 2 * yp) / yy
        assert sm.ExplainedVariance().update(**rows).compute() == nearest(explained)
    if yy or pp:
        concordance = 2 * yp / (yy + pp + n * (mean_y - mean_p) ** 2)
        assert sm.ConcordanceCorrelation().update(**rows).compute() == nearest(concordance)


@given(PAIRS)
def test_pearson_is_correctly_rounded(pairs):
    *_, yy, pp, yp = exact(pairs)
    if not (yy and pp):
        return
    value = sm.PearsonCorrelation().update(**columns(pairs)).compute()
    square = yp * yp / (yy * pp)
    assert -1 <= value <= 1
    assert math.copysign(1, value) == (1 if yp >= 0 else -1)
    assert_nearest_root(abs(value), square)


def assert_nearest_root(value, square):
    """The neighbours' halfway points lie on either side of the exact root."""
    above = (Fraction(value) + Fraction(math.nextafter(value, math.inf))) / 2
    below = (Fraction(value) + Fraction(math.nextafter(value, 0.0))) / 2
    assert below**2 <= square <= above**2


@given(st.fractions(min_value=0) | st.floats(0, 1e308).map(Fraction))
def test_root_is_the_nearest_float(value):
    assert_nearest_root(root(value), value)


def test_roots_of_squares_are_exact():
    for x in (0.0, 1.0, 5e-324, 1e-200, 1 / 3, 1e200, 1.7e308):
        assert root(Fraction(x) ** 2) == x


def test_targets_far_from_zero_lose_nothing():
    rng = np.random.default_rng(0)
    y = 1e9 + rng.normal(size=5000)
    p = y + rng.normal(size=5000)
    squares = [Fraction(e) for e in np.square(y - p).tolist()]
    targets = [Fraction(v) for v in y.tolist()]
    middle = sum(targets) / len(targets)
    expected = 1 - sum(squares) / sum((v - middle) ** 2 for v in targets)
    assert sm.R2().update(y, p).compute() == float(expected)
    with localcontext() as context:
        context.prec = 60
        values = [Decimal(v) for v in y.tolist()]
        mean = sum(values) / len(values)
        variance = float(sum((v - mean) ** 2 for v in values) / len(values))
    assert sm.Variance().update(y).compute() == variance


CONSTANT = {"y_true": [2.0, 2.0, 2.0], "y_pred": [2.0, 2.0, 3.0]}


@pytest.mark.parametrize(
    "metric",
    [
        sm.R2(),
        sm.ExplainedVariance(),
        sm.RelativeSquaredError(),
        sm.PearsonCorrelation(),
        sm.R2(multioutput="variance_weighted"),
    ],
)
@pytest.mark.parametrize("rows", [CONSTANT, {"y_true": [1.0], "y_pred": [1.0]}, None])
def test_constant_targets_are_undefined(metric, rows):
    metric = metric.copy()
    if rows:
        metric.update(**rows)
    why = "the target is constant" if rows else "no rows were seen"
    with pytest.warns(sm.UndefinedMetricWarning, match=why):
        assert math.isnan(metric.compute())


def test_force_finite_is_the_default_of_scikit_learn():
    r2, explained = sm.R2(force_finite=True), sm.ExplainedVariance(force_finite=True)
    assert r2.copy().update(**CONSTANT).compute() == 0.0
    assert r2.copy().update([2.0, 2.0], [2.0, 2.0]).compute() == 1.0
    assert explained.copy().update([2.0, 2.0], [3.0, 3.0]).compute() == 1.0
    assert explained.copy().update(**CONSTANT).compute() == 0.0
    with pytest.warns(sm.UndefinedMetricWarning, match="is constant"):
        assert math.isnan(r2.copy().update([2.0], [2.0]).compute())


def test_outputs_with_a_constant_target():
    y, p = [[1.0, 5.0], [2.0, 5.0], [4.0, 5.0]], [[1.0, 5.0], [2.0, 5.0], [3.0, 6.0]]
    raw = sm.R2(multioutput="raw_values").update(y, p)
    with pytest.warns(sm.UndefinedMetricWarning, match="is constant"):
        first, second = raw.compute()
    assert math.isnan(second)
    assert sm.R2(multioutput="variance_weighted").update(y, p).compute() == first
    with pytest.warns(sm.UndefinedMetricWarning, match="is constant"):
        assert math.isnan(sm.R2().update(y, p).compute())
    finite = sm.R2(multioutput="raw_values", force_finite=True).update(y, p)
    assert finite.compute().tolist() == [first, 0.0]


def test_concordance_of_one_constant_side_is_0():
    assert sm.ConcordanceCorrelation().update([1.0, 2.0], [3.0, 3.0]).compute() == 0.0
    with pytest.warns(sm.UndefinedMetricWarning, match="is constant"):
        assert math.isnan(sm.ConcordanceCorrelation().update([1.0, 1.0], [3.0, 3.0]).compute())


def test_weights_of_aggregates():
    rows = {"values": [1.0, 4.0], "sample_weight": [3, 1]}
    repeated = {"values": [1.0, 1.0, 1.0, 4.0]}
    for metric in (sm.Count(), sm.Sum(), sm.Mean(), sm.Variance(ddof=1), sm.Quantile(q=0.7)):
        weighed, counted = metric.copy().update(**rows), metric.copy().update(**repeated)
        assert weighed.compute() == counted.compute()
    assert sm.Count().update([1.0, math.inf], sample_weight=[0.5, 0.25]).compute() == 0.75


def test_aggregates_of_nothing():
    assert sm.Count().compute() == 0
    for metric in (
        sm.Sum(),
        sm.Mean(),
        sm.Variance(),
        sm.Minimum(),
        sm.Maximum(),
        sm.Quantile(q=0),
    ):
        with pytest.warns(sm.UndefinedMetricWarning, match="no rows"):
            assert math.isnan(metric.compute())
    with pytest.warns(sm.UndefinedMetricWarning, match="at most ddof=1"):
        assert math.isnan(sm.Variance(ddof=1).update([3.0]).compute())


def test_aggregates_refuse_what_they_cannot_sum():
    for metric in (sm.Sum(), sm.Mean(), sm.Variance()):
        with pytest.raises(
            sm.InvalidBatchError, match="values is infinite in 1 row, first in row 1"
        ):
            metric.update([1.0, math.inf])
    with pytest.raises(sm.InvalidBatchError, match="shape"):
        sm.Sum().update([[1.0, 2.0]])
    with pytest.raises(ValueError, match="ddof"):
        sm.Variance(ddof=-1)


def state(statistic, *rows):
    statistic.update(*(np.array(column, float) for column in rows), weight=None)
    return statistic


STATES = [
    state(Moments(of="values"), [1.0, 2.0, 4.0]),
    state(Moments(of="pair"), [[1.0, 2.0], [3.0, 5.0]], [[2.0, 2.0], [1.0, 0.0]]),
    state(LossSum(loss="absolute"), [[1.0], [2.0]], [[3.0], [5.0]]),
    state(Extremes(of="errors"), [[1.0], [2.0]], [[3.0], [5.0]]),
]


@pytest.mark.parametrize("statistic", STATES, ids=lambda s: type(s).__name__)
def test_states_that_are_none_are_refused(statistic):
    arrays = statistic.arrays()
    twin = type(statistic).from_arrays(statistic.config, arrays)
    assert {k: v.tolist() for k, v in twin.arrays().items()} == {
        k: v.tolist() for k, v in arrays.items()
    }
    hostile = [{k: v for k, v in arrays.items() if k != name} for name in arrays]
    hostile += [arrays | {name: arrays[name].astype(np.int32)} for name in arrays]
    hostile += [arrays | {"more": np.zeros(1)}]
    if "width" in arrays:
        hostile += [arrays | {"width": np.array([w])} for w in (-1, 0, 7, 2**60)]
        weight = -arrays["weight/digits"]
        hostile += [arrays | {"weight/digits": weight}, {"width": np.array([0])}]
    else:
        hostile += [arrays | {"low": arrays["high"] + 1}, arrays | {"low": np.array([math.nan])}]
        hostile += [arrays | {"low": np.array([-0.0]), "high": np.array([1.0])}]
    for each in hostile:
        with pytest.raises(StateFormatError, match="sums|number of outputs|extreme|array"):
            type(statistic).from_arrays(statistic.config, each)


def test_moments_of_no_rows_are_refused():
    one, other = (state(Moments(of="values"), rows) for rows in ([1.0, 2.0], [1.0, 20.0]))
    mixed = one.arrays() | {k: v for k, v in other.arrays().items() if k.startswith("x/")}
    with pytest.raises(StateFormatError, match="not those of any rows"):
        Moments.from_arrays({"of": "values"}, mixed)
