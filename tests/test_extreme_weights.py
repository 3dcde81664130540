"""Weights and values at the ends of float64: exact ratios, and no scale that a ratio could see."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import strategies as st
from oracles.base import assert_close
from oracles.table import ORACLES, thinned
from thinning import drawn

import streammetrics as sm

# Sums and counts, and what reads a weight as that many rows.
SCALED = (
    sm.Accuracy, sm.ClassificationReport, sm.ConfusionAtThresholds, sm.ConfusionMatrix, sm.Count,
    sm.MinkowskiDistance, sm.MultilabelConfusionMatrix, sm.SubsetAccuracy, sm.Sum, sm.TopKAccuracy,
    sm.ZeroOneLoss,
)  # fmt: skip
AS_ROWS = ("AdjustedR2(", "AbsoluteErrorQuantile(q=0.9)", "Quantile(q=", "Variance(ddof=1")
GROWING = ("NRMSE(normalization='l2')",)  # a mean's root over a sum's
WEIGHTLESS = (sm.KendallTau, sm.SpearmanRho)


def is_scale_free(oracle):
    metric, text = oracle.metric, repr(oracle.metric)
    counts = isinstance(metric, SCALED) and not getattr(metric, "normalize", None)
    counts = counts or getattr(metric, "pseudo_count", 0)  # which is added to weights
    takes = not any(schema.unweighted for schema in schemas(metric))
    return takes and not counts and not text.startswith((*AS_ROWS, *GROWING))


def schemas(metric):
    return [statistic.schema for statistic in metric.statistics()]


SCALE_FREE = [
    oracle for oracle in {repr(oracle.metric): oracle for oracle in ORACLES}.values()
    if is_scale_free(oracle)
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
@pytest.mark.parametrize("oracle", thinned(SCALE_FREE, columns=False))
def test_a_power_of_two_times_all_weights_changes_no_bit(oracle):
    rng = np.random.default_rng(99)
    rows = oracle.rows(rng, min(oracle.n, 24))
    rows.pop("sample_weight", None)
    n = len(next(iter(rows.values())))
    weight = rng.choice([0.25, 0.5, 1.0, 3.0, 0.1, 7.25], n)
    metric = oracle.metric.copy().update(**rows, sample_weight=weight)
    value, bounds = metric.compute(), repr(metric.bounds())
    for power in (-1000, 600, 1020):
        scaled = oracle.metric.copy().update(**rows, sample_weight=np.ldexp(weight, power))
        assert_close(scaled.compute(), value, 0.0, 0.0)
        assert repr(scaled.bounds()) == bounds
        assert sm.from_bytes(scaled.to_bytes()) == scaled


extremes = st.sampled_from([1e-300, 1e-200, 1.0, 3.0, 1e200, 1e308])
binary_rows = st.lists(st.tuples(st.booleans(), st.booleans(), extremes), min_size=1, max_size=8)


@pytest.mark.filterwarnings("ignore::streammetrics.UndefinedMetricWarning")
@drawn(20, 100, binary_rows)
def test_ratios_of_counts_are_those_of_exact_sums(rows):
    true, pred, weight = (np.array(side) for side in zip(*rows, strict=True))
    exact = [(t, p, Fraction(w)) for t, p, w in rows]
    hits = sum(w for t, p, w in exact if t and p)
    actual = sum(w for t, _, w in exact if t)
    called = sum(w for _, p, w in exact if p)
    right = sum(w for t, p, w in exact if t == p)
    for metric, above, below in (
        (sm.Accuracy(), right, sum(w for *_, w in exact)),
        (sm.Recall(), hits, actual),
        (sm.Precision(), hits, called),
        (sm.F1(), 2 * hits, actual + called),
    ):
        value = metric.update(true, pred, sample_weight=weight).compute()
        expected = float(above / below) if below else np.nan
        assert value == pytest.approx(expected, rel=1e-15, abs=1e-300, nan_ok=True)


@pytest.mark.parametrize("weight", [[1e-200, 1e200, 1.0], [1e308] * 3, [5e-324, 1.0, 1e308]])
@pytest.mark.parametrize("metric", [sm.ROCAUC(), sm.KolmogorovSmirnov(), sm.AveragePrecision()])
def test_curves_hold_at_extreme_weights(metric, weight):
    metric = metric.copy().update([0, 1, 0], [0.1, 0.9, 0.2], sample_weight=weight)
    assert sm.merge([metric] * 4).compute() == 1.0
    assert metric.compute() == 1.0
    assert metric.bounds() == sm.Interval(1.0, 1.0)


@pytest.mark.parametrize("light", [1e-200, 1e-300])
def test_areas_below_light_positives_keep_their_digits(light):
    rows = [1, 0], [0.2, 0.3]
    weight = [light, 1.0]
    area = sm.AveragePrecision().update(*rows, sample_weight=weight)
    assert area.compute() == pytest.approx(light, rel=1e-15)
    trapezoid = sm.PRAUC(max_bins=2).update(*rows, sample_weight=weight)
    assert trapezoid.bounds().low <= light / 2 <= trapezoid.bounds().high
    share = sm.SpecificityAtSensitivity(s=0.5)
    share.update([0, 0, 1], [0.5, 0.25, 0.5], sample_weight=[1.0, light, 1.0])
    assert share.compute() == pytest.approx(light, rel=1e-15)


def test_bins_of_rows_that_no_float_holds_beside_the_others_are_refused():
    error = sm.CalibrationError(norm="max")
    error.update([0, 0, 0], [0.1, 0.4, 0.06], sample_weight=[1.0, 1e-300, 1e300])
    with pytest.raises(sm.StreamMetricsError, match="lie more than 2.*smallest ones the weight 0"):
        error.compute()
    error = sm.CalibrationError(norm="max")
    error.update([0, 0, 0], [0.1, 0.4, 0.06], sample_weight=[1.0, 0.0, 1e300])
    assert error.compute() == 0.1  # as the message advises


def test_weights_of_classes_that_no_float_holds_together_are_refused_with_words():
    recall = sm.Recall(average=None)
    recall.update([1, 0], [1, 0], sample_weight=[5e-324, 1e308])
    with pytest.raises(sm.StreamMetricsError, match="lie more than 2.*smallest ones the weight 0"):
        recall.compute()
    auc = sm.ROCAUC().update([1, 0], [0.2, 0.1], sample_weight=[5e-324, 1e308])
    with pytest.raises(sm.StreamMetricsError, match="lie more than 2.*closer together"):
        auc.compute()


@pytest.mark.parametrize(
    ("sign", "value"), [(1.0, 0.3273268353539886), (-1.0, -0.3273268353539886)]
)
def test_correlation_of_values_whose_products_overflow(sign, value):
    y, p = np.array([1e160, 2e160, 4e160]), sign * np.array([1e160, 3e160, 2e160])
    assert sm.PearsonCorrelation().update(y, p).compute() == value


def test_beta_may_be_as_large_as_a_float():
    assert sm.FBeta(beta=1e200).update([1, 1, 0], [1, 0, 0]).compute() == 0.5
    assert sm.PairFBeta(beta=1e200).update([1, 1, 0], [1, 1, 1]).compute() == 1.0
    ranked = sm.FBetaAtK(k=2, beta=1e200)
    assert ranked.update(query=[1, 1], relevance=[1, 0], score=[0.1, 0.2]).compute() == 1.0


@pytest.mark.parametrize("q", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("method", ["linear", "averaged_inverted_cdf"])
def test_quantiles_of_a_total_weight_beyond_float64(q, method):
    quantile = sm.Quantile(q=q, method=method)
    quantile.update([1.0, 2.0, 3.0], sample_weight=[1e308] * 3)
    assert quantile.compute() == 1.0 + 2.0 * q
    assert sm.merge([quantile] * 4).compute() == 1.0 + 2.0 * q


def test_sums_of_weights_beyond_float64_are_infinite_and_their_shares_are_not():
    rows = {"y_true": [1, 1, 0], "y_pred": [1, 1, 0], "sample_weight": [1e308] * 3}
    matrix = sm.ConfusionMatrix().update(**rows).compute()
    assert np.array_equal(matrix, [[1e308, 0.0], [0.0, np.inf]])
    report = sm.ClassificationReport().update(**rows).compute()
    assert (report["1"]["recall"], report["1"]["support"]) == (1.0, np.inf)
    assert sm.MatthewsCorrcoef().update(**rows).compute() == 1.0
