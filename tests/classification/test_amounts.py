"""Counts are read in float64 where that is exact, and as integers of any size where it is not."""

from __future__ import annotations

import numpy as np
import pytest

import streammetrics as sm
from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.metrics.classification.view import Confusion
from streammetrics.statistics.tables import LabelCells

SIDES = np.array([3, 5, 9]), np.arange(3, 12)  # of few cells and of many
NAMES = ("tp", "fp", "fn", "tn", "actual", "predicted", "total", "hits", "amount", "seen")


@pytest.mark.parametrize("largest", [1, 9, 2**50, 2**53 - 1, 2**55])
@pytest.mark.parametrize("labels", [None, (9, 5, 3), (5, 7, 3, 9)])
@pytest.mark.parametrize("sides", SIDES, ids=len)
def test_counts_are_read_as_their_exact_sums_are(largest, labels, sides):
    rng = np.random.default_rng(largest % 97)
    pairs = np.flatnonzero(rng.random(sides.size**2) < 0.7)
    counts = rng.integers(1, largest, pairs.size, np.int64, endpoint=True)
    cells = LabelCells(sides, sides, *np.divmod(pairs, sides.size), counts)
    plain = Confusion.of_labels(cells, labels)
    exact = Confusion.of_labels(cells._replace(amount=ExactSum.counts(counts)), labels)
    for name in NAMES:
        one, other = getattr(plain, name), getattr(exact, name)
        assert np.asarray(one).dtype == np.asarray(other).dtype, name
        np.testing.assert_array_equal(one, other, name)
    for one, other in zip(plain.integers()[0], exact.integers()[0], strict=True):
        assert [int(a) for a in one] == [int(b) for b in other]


def test_labels_of_one_side_only():
    matrix = sm.ConfusionMatrix().update([1, 2, 2], [2, 2, 3])
    assert matrix.compute().tolist() == [[0, 1, 0], [0, 1, 1], [0, 0, 0]]
    assert matrix.classes == [1, 2, 3]
    words = sm.ConfusionMatrix(labels=["b", "a"]).update(["a", "b", "a"], ["a", "a", "a"])
    assert words.compute().tolist() == [[0, 1], [0, 2]]


@pytest.mark.parametrize("heavy", [1e290, 5e307, 1e308])
def test_a_weight_near_the_largest_beside_empty_cells(heavy):
    rows = [1, 0, 0], [0.7, 0.2, 0.9]
    weight = [heavy, 1.0, 1.0]
    for metric in (sm.Accuracy(threshold=0.5), sm.F1(threshold=0.5)):
        assert metric.update(*rows, sample_weight=weight).compute() == 1.0
    kappa = sm.CohenKappa(threshold=0.5).update(*rows, sample_weight=weight).compute()
    assert kappa == pytest.approx(2 / 3)  # 2 (tp tn - fp fn) / (...) with tp far above all others
