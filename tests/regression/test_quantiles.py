"""Quantiles: exact while bins suffice, then certainly inside their bounds."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import streammetrics as sm
from streammetrics.core.errors import StateFormatError
from streammetrics.statistics.histograms import ValueHistogram

METHODS = ("linear", "averaged_inverted_cdf")
LEVELS = (0, 0.1, 0.25, 0.5, 0.7, 0.9, 1)


@pytest.mark.parametrize("method", METHODS)
@given(
    values=st.lists(st.floats(-1e300, 1e300) | st.sampled_from([1.0, 2.0, -0.0]), min_size=1),
    q=st.sampled_from(LEVELS),
    max_bins=st.integers(2, 6),
)
def test_bounds_hold_the_quantile(method, values, q, max_bins):
    exact = sm.Quantile(q=q, method=method).update(values)
    assert exact.exact
    assert exact.bounds() == (exact.compute(), exact.compute())
    rough = sm.Quantile(q=q, method=method, max_bins=max_bins).update(values)
    low, high = rough.bounds()
    assert low <= exact.compute() <= high
    assert low <= rough.compute() <= high
    assert rough.exact == (low == high)
    if len(set(values)) <= max_bins:
        assert rough.exact


@pytest.mark.parametrize("method", METHODS)
@given(
    rows=st.lists(st.tuples(st.integers(0, 9), st.integers(1, 5)), min_size=1, max_size=20),
    q=st.sampled_from(LEVELS),
)
def test_whole_weights_are_repeated_rows(method, rows, q):
    values, weights = np.array(rows).T
    weighted = sm.Quantile(q=q, method=method).update(values, sample_weight=weights)
    repeated = sm.Quantile(q=q, method=method).update(np.repeat(values, weights))
    assert weighted.compute() == repeated.compute()
    expected = np.quantile(np.repeat(values, weights), q, method=method)
    assert weighted.compute() == pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(
    rows=st.lists(st.tuples(st.integers(0, 9), st.floats(1e-3, 1e3)), min_size=1, max_size=20),
    scale=st.sampled_from([2.0**-40, 2.0**40]),
)
def test_the_median_does_not_depend_on_the_scale_of_weights(rows, scale):
    errors, weights = np.array(rows).T
    zeros = np.zeros(len(errors))
    median = sm.MedianAbsoluteError().update(zeros, errors, sample_weight=weights)
    scaled = sm.MedianAbsoluteError().update(zeros, errors, sample_weight=weights * scale)
    assert median.compute() == scaled.compute()
    below = sum(Fraction(w) for e, w in rows if e < median.compute())
    above = sum(Fraction(w) for e, w in rows if e > median.compute())
    half = sum(Fraction(w) for _, w in rows) / 2
    assert max(below, above) <= half * (1 + Fraction(1, 2**50))


def test_half_of_the_weight_met_exactly():
    # Six weights of 0.1 do not add up to 0.6 in float64; their exact sum is twice that of three.
    errors = np.arange(6.0)
    median = sm.MedianAbsoluteError().update(np.zeros(6), errors, sample_weight=np.full(6, 0.1))
    assert median.compute() == 2.5


def test_levels_are_decimals():
    # 0.29 * 100 is 28.999999999999996 in float64.
    metric = sm.Quantile(q=0.29, method="averaged_inverted_cdf").update(np.arange(100.0))
    assert metric.compute() == 28.5


def test_linear_needs_a_total_weight_of_one():
    thin = {"values": [1.0, 2.0], "sample_weight": [0.25, 0.25]}
    with pytest.warns(sm.UndefinedMetricWarning, match="weights add up to less than 1"):
        assert math.isnan(sm.Quantile(q=0.5).update(**thin).compute())
    assert sm.Quantile(q=0.5, method="averaged_inverted_cdf").update(**thin).compute() == 1.5


def test_infinite_values():
    values = [-math.inf, 0.0, 1.0, math.inf]
    assert sm.Quantile(q=0).update(values).compute() == -math.inf
    assert sm.Quantile(q=0.5).update(values).compute() == 0.5
    assert sm.Quantile(q=0.9).update(values).compute() == math.inf
    with pytest.warns(sm.UndefinedMetricWarning, match="between -inf and inf"):
        assert math.isnan(sm.Quantile(q=0.5).update([-math.inf, math.inf]).compute())


def test_many_rows_in_few_bins():
    rng = np.random.default_rng(2)
    y, p = rng.normal(size=(2, 200_000))
    median = sm.MedianAbsoluteError(max_bins=1 << 12)
    for part in np.array_split(np.arange(y.size), 7):
        median.update(y[part], p[part])
    low, high = median.bounds()
    exact = float(np.median(np.abs(y - p)))
    assert low <= exact <= high
    assert not median.exact
    assert high - low < 2e-3
    assert median.nbytes < 1 << 18


def test_each_output_has_its_own_histogram():
    y, p = np.zeros((5, 2)), np.arange(10.0).reshape(5, 2)
    raw = sm.MedianAbsoluteError(multioutput="raw_values").update(y, p)
    assert raw.compute().tolist() == [4.0, 5.0]
    low, high = raw.bounds()
    assert low.tolist() == high.tolist() == [4.0, 5.0]
    assert raw.exact


def test_nothing_is_undefined():
    with pytest.warns(sm.UndefinedMetricWarning, match="no rows"):
        assert math.isnan(sm.MedianAbsoluteError().compute())
    low, high = sm.AbsoluteErrorQuantile(q=0.5).bounds()
    assert math.isnan(low)
    assert math.isnan(high)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sm.Quantile(q=1.01), r"Quantile\(q=1.01\): expected a number from 0 to 1"),
        (lambda: sm.Quantile(q=math.nan), r"q=nan\): expected a "),
        (lambda: sm.AbsoluteErrorQuantile(q=-1), "from 0 to 1"),
        (lambda: sm.MedianAbsoluteError(max_bins=1), "max_bins=1"),
        (lambda: sm.Quantile(q=0.5, max_bins=1 << 40), "max_bins"),
        (lambda: sm.Quantile(q=0.5, method="lower"), "'linear' or 'averaged_inverted_cdf'"),
    ],
)
def test_parameters_out_of_range(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_states_that_are_none_are_refused():
    statistic = ValueHistogram(of="errors", max_bins=8)
    statistic.update(np.ones((3, 2)), np.arange(6.0).reshape(3, 2), weight=None)
    arrays = statistic.arrays()
    for wrong in (-1, 1, 3, 1 << 40):
        with pytest.raises(StateFormatError, match="number of outputs|arrays of .+ outputs"):
            ValueHistogram.from_arrays(statistic.config, arrays | {"width": np.array([wrong])})
    for name in arrays:
        less = {key: value for key, value in arrays.items() if key != name}
        with pytest.raises(StateFormatError, match="array"):
            ValueHistogram.from_arrays(statistic.config, less)


def inverted(rows, q):
    """Return the averaged inverted distribution function, of weights as fractions."""
    level, values = Fraction(str(q)), sorted({value for value, _ in rows})
    whole = sum(Fraction(weight) for _, weight in rows)
    below = [sum(Fraction(w) for value, w in rows if value <= each) for each in values]
    first = next(k for k, mass in enumerate(below) if mass >= level * whole)
    last = next((k for k, mass in enumerate(below) if mass > level * whole), len(values) - 1)
    return float((Fraction(values[first]) + Fraction(values[last])) / 2)


def interpolated(rows, q):
    """Return the quantile between order statistics, of weights as fractions."""
    values = sorted({value for value, _ in rows})
    whole = sum(Fraction(weight) for _, weight in rows)
    below = [sum(Fraction(w) for value, w in rows if value <= each) for each in values]
    h = Fraction(str(q)) * (whole - 1)
    first = math.floor(h)

    def at(rank):
        rank = min(rank, whole)
        return Fraction(next(v for v, mass in zip(values, below, strict=True) if mass >= rank))

    return float(at(first + 1) * (1 - h + first) + at(first + 2) * (h - first))


tenths = st.integers(1, 30).map(lambda k: k / 10)


@pytest.mark.parametrize("method", METHODS)
@given(
    rows=st.lists(st.tuples(st.integers(-9, 9), tenths), min_size=1, max_size=8),
    q=st.sampled_from(LEVELS),
    max_bins=st.sampled_from([2, 3, 16]),
)
@example(rows=[(2, 1.1), (0, 0.5), (0, 0.6)], q=0.5, max_bins=16)
@example(rows=[(4, 1.7), (1, 0.9), (4, 0.4)], q=0.3, max_bins=16)
@example(rows=[(4, 1.1), (-3, 1.4), (7, 0.3)], q=0.25, max_bins=2)
@example(rows=[(4, 1.1), (-3, 1.4), (7, 0.3)], q=0.5, max_bins=16)
def test_fractional_weights_are_added_up_exactly(method, rows, q, max_bins):
    values, weights = np.array(rows, float).T
    if method == "linear" and sum(map(Fraction, weights)) < 1:
        return
    expected = (inverted if method != "linear" else interpolated)(rows, q)
    exact = sm.Quantile(q=q, method=method).update(values, sample_weight=weights)
    assert exact.compute() == expected
    rough = sm.Quantile(q=q, method=method, max_bins=max_bins).update(values, sample_weight=weights)
    low, high = rough.bounds()
    assert low <= expected <= high
    errors = sm.AbsoluteErrorQuantile(q=q, method=method, max_bins=max_bins)
    errors.update(values + 9, np.zeros(len(values)), sample_weight=weights)
    moved = (inverted if method != "linear" else interpolated)([(v + 9, w) for v, w in rows], q)
    low, high = errors.bounds()
    assert low <= moved <= high
