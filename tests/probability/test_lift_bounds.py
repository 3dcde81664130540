"""The lift at a depth, against fractions: exact below the budget of bins, held beyond it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import streammetrics as sm

tenths = st.integers(1, 20).map(lambda k: k / 10)
rows = st.lists(st.tuples(st.integers(0, 1), tenths, tenths), min_size=2, max_size=9)


def lift(rows, share):
    """Return the lift, of weights as fractions and the share as the decimal that it prints as."""
    share = Fraction(str(share))
    rows = [(y, score, Fraction(weight)) for y, score, weight in rows]
    positives = sum(weight for y, _, weight in rows if y)
    left, taken = share * sum(weight for _, _, weight in rows), Fraction(0)
    for score in sorted({score for _, score, _ in rows}, reverse=True):
        mass = sum(weight for _, s, weight in rows if s == score)
        part = min(left / mass, Fraction(1))
        taken += part * sum(weight for y, s, weight in rows if y and s == score)
        left -= part * mass
    return float(taken / positives / share)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7, 1.0])
@given(rows=rows, max_bins=st.sampled_from([2, 3, 16]), weighted=st.booleans())
@example(
    rows=[(1, 0.7, 1.4), (0, 0.9, 1.9), (1, 0.1, 0.7), (0, 0.8, 1.5)], max_bins=2, weighted=True
)
@example(
    rows=[
        (1, 0.557973483587243, 1.1799909551271635),
        (1, 0.2851483969875701, 1.031418907538644),
        (0, 0.9807383716133506, 1.5574558502943603),
    ],
    max_bins=2,
    weighted=True,
)
def test_bounds_hold_the_exact_lift(share, rows, max_bins, weighted):
    rows = [(y, score, weight if weighted else 1.0) for y, score, weight in rows]
    y, scores, weights = map(list, zip(*rows, strict=True))
    assume(any(y))
    expected = lift(rows, share)
    exact = sm.TopDecileLift(share=share).update(y, scores, sample_weight=weights)
    assert exact.compute() == expected
    low, high = exact.value_range
    assert low <= expected <= high
    rough = sm.TopDecileLift(share=share, max_bins=max_bins)
    low, high = rough.update(y, scores, sample_weight=weights).bounds()
    assert low <= expected <= high
    assert low <= rough.compute() <= high


@pytest.mark.parametrize("max_bins", [2, 3, 4, 6])
def test_bounds_of_an_infinite_distance(max_bins):
    values = [1.0, 2.0, 3.0, 4.0, 5.0, np.inf]
    metric = sm.Wasserstein(max_bins=max_bins).update([0, 0, 0, 1, 1, 1], values)
    low, high = metric.bounds()
    assert low <= metric.compute() <= high == np.inf
