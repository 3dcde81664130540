"""Distances of nearly equal samples are read from integers, not from differences of shares."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import streammetrics as sm

GAPS = [sm.KolmogorovSmirnov, sm.KSDistance]


def largest_gap(classes, scores, weights):
    weights = [Fraction(weight) for weight in weights]
    best = Fraction(0)
    for cut in scores:
        shares = []
        for code in (0, 1):
            own = [(s, w) for c, s, w in zip(classes, scores, weights, strict=True) if c == code]
            shares.append(sum(w for s, w in own if s >= cut) / sum(w for _, w in own))
        best = max(best, abs(shares[1] - shares[0]))
    return float(best)


@pytest.mark.parametrize("metric", GAPS)
@pytest.mark.parametrize(
    "weights",
    [[3e9, 3e9, 3e9, 3e9 + 1], [2.0**52, 2.0**52, 2.0**52, 2.0**52 + 1],
     [1.0, 1.0, 1.0, 1 + 2.0**-52], [0.1, 0.2, 0.3, 0.6]],
)  # fmt: skip
def test_the_largest_gap_is_rounded_once(metric, weights):
    classes, scores = [0, 0, 1, 1], [0.1, 0.2, 0.1, 0.2]
    filled = metric().update(classes, scores, sample_weight=weights)
    exact = largest_gap(classes, scores, weights)
    assert filled.compute() == exact
    assert filled.bounds() == (exact, exact)


@pytest.mark.parametrize("metric", GAPS)
@pytest.mark.parametrize("unit", [1.0, 1 / 3, 2.0**-300])
def test_gaps_within_rounding_of_the_largest_are_told_apart(metric, unit):
    rng = np.random.default_rng(0)
    classes, scores = np.tile([0, 1], 30), np.repeat(np.arange(30.0), 2) / 32
    weights = unit * (2.0**40 + rng.integers(-2, 3, 60))
    filled = metric().update(classes, scores, sample_weight=weights)
    assert filled.compute() == largest_gap(classes, scores, weights)
    rough = metric(max_bins=8).update(classes, scores, sample_weight=weights)
    low, high = rough.bounds()
    assert low <= filled.compute() <= high


@pytest.mark.parametrize("light", [0.1, 1.0, 2.0**-100, 2.0**52, 1e307])
@pytest.mark.parametrize("heavy", [1.0, 2.0**52, 1e307])
@pytest.mark.parametrize("noise", [2.0**-52, 2.0**-20, 0.1])
def test_areas_and_informedness_of_nearly_equal_samples(light, heavy, noise):
    rng = np.random.default_rng(1)
    classes, scores = np.tile([0, 1], 20), np.repeat(np.arange(20.0), 2) / 32
    weights = np.where(classes == 1, light, heavy) * (1 + noise * rng.integers(0, 3, 40))
    gaps = []
    for cut in np.unique(scores):
        shares = []
        for code in (0, 1):
            own = [
                (s, Fraction(w))
                for c, s, w in zip(classes, scores, weights, strict=True)
                if c == code
            ]
            shares.append(sum(w for s, w in own if s >= cut) / sum(w for _, w in own))
        gaps.append(shares[1] - shares[0])
    area = float(sum(abs(gap) for gap in gaps) / 32)
    rows = {"sample_weight": weights}
    found = sm.Wasserstein().update(classes, scores, **rows)
    assert found.compute() == pytest.approx(area, rel=1e-14)
    own = sum(Fraction(w) for w in weights[::2])
    ends = zip(weights[::2], gaps, [*gaps[1:], 0], strict=True)
    gini = sm.Gini().update(classes, scores, **rows)
    exact = float(sum(Fraction(w) / own * (one + other) for w, one, other in ends))
    assert gini.compute() == pytest.approx(exact, rel=1e-12)
    best = sm.BestThreshold(for_="informedness").update(classes, scores, **rows).compute()
    assert best.value == pytest.approx(float(max(gaps)), rel=1e-14)


@pytest.mark.parametrize("seed", range(20))
def test_perfect_rankings_of_weighted_rows_give_exactly_one(seed):
    rng = np.random.default_rng(seed)
    classes, scores = np.arange(20) // 10, np.arange(20.0) / 32
    weights = rng.exponential(size=20)
    distance = sm.KolmogorovSmirnov().update(classes, scores, sample_weight=weights)
    assert distance.compute() == 1.0
    best = sm.BestThreshold(for_="informedness")
    assert best.update(classes, scores, sample_weight=weights).compute().value == 1.0
