"""Exact dot products against their definition."""

from __future__ import annotations

import numpy as np
import pytest

from streammetrics.core.arithmetic.exact import exact_dot


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
