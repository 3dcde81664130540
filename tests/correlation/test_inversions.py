"""Inversions and exact dot products against their definitions."""

from __future__ import annotations

import numpy as np
import pytest

from streammetrics.core.exact.integers import exact_dot
from streammetrics.statistics.pairs.inversions import grid_inversions, inversions


def counted(ranks, counts):
    return sum(
        int(counts[i]) * int(counts[j])
        for i in range(len(ranks))
        for j in range(i + 1, len(ranks))
        if ranks[i] > ranks[j]
    )


@pytest.mark.parametrize("size", [0, 1, 2, 31, 32, 33, 64, 65, 129, 300])
@pytest.mark.parametrize("distinct", [1, 5, 1000])
def test_inversions(size, distinct):
    rng = np.random.default_rng(size)
    ranks, counts = rng.integers(0, distinct, size), rng.integers(1, 9, size)
    assert inversions(ranks) == counted(ranks, np.ones(size))
    assert inversions(ranks, counts) == counted(ranks, counts)


def test_counts_whose_product_is_beyond_64_bits():
    rng = np.random.default_rng(0)
    ranks, counts = rng.integers(0, 90, 90), rng.integers(1, 2**44, 90)
    assert inversions(ranks, counts) == counted(ranks, counts)


def test_order_and_its_reverse():
    ranks = np.arange(1000)
    assert inversions(ranks) == 0
    assert inversions(ranks[::-1]) == 1000 * 999 // 2


@pytest.mark.parametrize(("height", "width"), [(1, 1), (1, 9), (9, 1), (30, 40), (1000, 300)])
def test_grid(height, width, monkeypatch):
    monkeypatch.setattr("streammetrics.core.tuning.GRID_ENTRIES", 1000)
    rng = np.random.default_rng(height)
    places = np.unique(rng.integers(0, height * width, 500))
    rows, columns = np.divmod(places, width)
    counts = rng.integers(1, 2**40, places.size)
    assert grid_inversions(rows, columns, counts, width) == counted(columns, counts)
    assert grid_inversions(rows[:0], columns[:0], counts[:0], width) == 0


@pytest.mark.parametrize("bits", [4, 31, 40, 47, 52])
def test_exact_dot(bits):
    rng = np.random.default_rng(bits)
    limit = 2**bits
    for low in (0, -limit):
        a, b = rng.integers(low, limit, 50), rng.integers(low, limit, 50)
        expected = sum(int(x) * int(y) for x, y in zip(a, b, strict=True))
        assert exact_dot(a, b) == expected
    assert exact_dot(a[:0], b[:0]) == 0
    assert exact_dot(np.array([2**53]), np.array([-(2**60)])) == -(2**113)
